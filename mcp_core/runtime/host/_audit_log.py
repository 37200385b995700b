"""Audit records: made for each tool call, and passed to the host's option `audit`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcp_core.host._approvals import ApprovalRequired
from mcp_core.host._audit import AuditRecord, CallOutcome, digest_arguments, redact_arguments
from mcp_core.host._errors import CallDenied

if TYPE_CHECKING:
    from ._options import HostOptions
    from ._runtime import HostRuntime
    from ._source import ServerSource

__all__ = ["CallInProgress", "CallRecorder"]


class CallInProgress:
    """A call of a tool that isn't recorded yet.

    Attributes:
        definition: the digest of the tool's definition, or "".
        is_tool_error: whether the result says that the tool has failed.
    """

    def __init__(
        self,
        source: ServerSource,
        tool: str,
        arguments: Mapping[str, Any] | None,
        time: float,
        now: float,
    ) -> None:
        self.source = source
        self.tool = tool
        self.arguments: Mapping[str, Any] = arguments or {}
        self.time = time
        self.began = now
        self.definition = ""
        self.approved_by = ""
        self.is_tool_error = False

    def allow(self, arguments: Mapping[str, Any], approved_by: str) -> None:
        """Note the arguments to be sent, and who or what has allowed the call."""
        self.arguments = arguments
        self.approved_by = approved_by


class CallRecorder:
    """Passes an `AuditRecord` of each call to the option `audit` of a host.

    Args:
        options: the host's options.
        runtime: its runtime.
    """

    def __init__(self, options: HostOptions, runtime: HostRuntime) -> None:
        self._audit = options.get("audit")
        self._is_redacted = options.get("audit_arguments", "digest") == "redacted"
        self._key = options.get("audit_key")
        self._runtime = runtime

    def begin(
        self, source: ServerSource, tool: str, arguments: Mapping[str, Any] | None
    ) -> CallInProgress:
        """Return a call that begins now."""
        wall_time, now = self._runtime.wall_time(), self._runtime.monotonic()
        return CallInProgress(source, tool, arguments, wall_time, now)

    def end(
        self, call: CallInProgress, outcome: CallOutcome, error: BaseException | None = None
    ) -> None:
        """Record the end of a call. What `audit` raises is logged."""
        if self._audit is None:
            return
        try:
            self._audit(self._record(call, outcome, error))
        except Exception as exc:  # noqa: BLE001 - the call itself has ended well
            self._runtime.log_error("audit failed", exc)

    def _record(
        self, call: CallInProgress, outcome: CallOutcome, error: BaseException | None
    ) -> AuditRecord:
        approved_by = call.approved_by
        if isinstance(error, ApprovalRequired | CallDenied):
            approved_by = error.reason
        arguments = dict(call.arguments)
        secrets = call.source.secrets  # read now: they are known once the server is connected
        return AuditRecord(
            time=call.time,
            server=call.source.name,
            tool=call.tool,
            outcome=outcome,
            duration=self._runtime.monotonic() - call.began,
            approved_by=approved_by,
            definition=call.definition,
            arguments=redact_arguments(arguments, secrets) if self._is_redacted else UNSET,
            arguments_digest="" if self._is_redacted else self._digest(arguments),
            error="" if error is None else redact_arguments(str(error), secrets),
        )

    def _digest(self, arguments: Mapping[str, Any]) -> str:
        """Return the digest of arguments, or "" if they aren't JSON: then nothing was sent."""
        try:
            return digest_arguments(arguments, self._key)
        except (TypeError, ValueError):
            return ""
