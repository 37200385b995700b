"""Messages that a connection forms itself: some results, and progress and log notifications.

1. Requests whose result the configuration determines never become events, so a driver cannot forget
   them.
2. Progress and log messages are sent only if the peer requested them: progress by a token, log
   messages by a level. The token of a request that runs as a task is valid until the task ends.

Sources: basic/lifecycle, basic/utilities/ping, basic/utilities/progress, server/utilities/logging
of the stateful revisions; basic/utilities/tasks of 2025-11-25; server/discover of 2026-07-28.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._errors import LocalProtocolError
from mcp_core.protocol.jsonrpc._codec import encode_notification
from mcp_core.protocol.messages._outbox import MessageKind, Outgoing

from ._state import RequestAction, next_phase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_core.protocol.messages._events import Peer
    from mcp_core.protocol.revisions._config import Config
    from mcp_core.types import RequestId

    from ._requests import IncomingRequest

__all__ = [
    "BUILTIN_RESULTS",
    "ProgressSender",
    "log_notification",
    "progress_notification",
    "task_progress",
]


def _initialize(
    config: Config, params: t.InitializeParams, peer: Peer
) -> tuple[t.Result, Peer | None]:
    result = t.InitializeResult(
        protocol_version=peer.dialect.version,
        capabilities=config.capabilities,
        server_info=config.info,
        instructions=config.instructions,
    )
    return result, peer


def _discover(config: Config, params: t.DiscoverParams, peer: Peer) -> tuple[t.Result, Peer | None]:
    result = t.DiscoverResult(
        supported_versions=config.versions,
        capabilities=config.capabilities,
        instructions=config.instructions,
    )
    return result if config.cache is None else config.cache.apply_to(result), None


def _ping(config: Config, params: t.PingParams, peer: Peer) -> tuple[t.Result, Peer | None]:
    return t.EmptyResult(), None


def _set_level(
    config: Config, params: t.SetLevelParams, peer: Peer
) -> tuple[t.Result, Peer | None]:
    return t.EmptyResult(), replace(peer, log_level=params.level)


# By method. Each function returns the result, and the new `Peer` if the request changes what is
# known of it, else None.
BUILTIN_RESULTS: Final[
    Mapping[str, Callable[[Config, Any, Peer], tuple[t.Result, Peer | None]]]
] = {
    "initialize": _initialize,
    "server/discover": _discover,
    "ping": _ping,
    "logging/setLevel": _set_level,
}

_SEVERITY: Final = {level: severity for severity, level in enumerate(t.LOGGING_LEVELS)}

# Looking up a member of an enum costs more than most comparisons with it.
_NOTIFICATION = MessageKind.NOTIFICATION
_REPORT = RequestAction.REPORT


class ProgressSender(Struct):
    """The sender of a peer request's progress, for `Connection.send_progress`.

    If the request became a task, its sender is valid until the task ends.

    Attributes:
        request: the request, None if it is no longer in the table and did not become a task.
        related: the request on whose stream progress is sent: a `tasks/result` that waits for the
            task, None for the session's stream.
        meta: the notifications' `_meta`.
    """

    request: IncomingRequest | None
    related: RequestId | None = None
    meta: dict[str, Any] | None = None


def task_progress(request: IncomingRequest | None, task_id: str) -> ProgressSender | None:
    """Return the sender of progress of a request that becomes the task `task_id`.

    Return None if the peer did not request progress, or its revision has no progress of tasks: the
    extension has none.
    """
    if request is None or request.progress_token is None:
        return None
    if request.dialect_config.dialect.tasks != "requested":
        return None
    return ProgressSender(request, meta={t.META_RELATED_TASK: {"taskId": task_id}})


def progress_notification(
    sender: ProgressSender, progress: float, total: float | None, message: str | None
) -> Outgoing | None:
    """Build the progress notification for a peer's request. Return None if none is due.

    None is due for a request that was cancelled, or was answered without becoming a task.

    Raises:
        LocalProtocolError: a number is infinite or NaN, which JSON cannot express.
    """
    if not isfinite(progress) or not isfinite(total or 0.0):
        raise LocalProtocolError("progress and total are finite numbers")
    request = sender.request
    if (
        request is None
        or request.progress_token is None
        or next_phase(request.phase, _REPORT) is None
    ):
        return None
    # `progress` has to increase (basic/utilities/progress).
    if request.progress is not None and progress <= request.progress:
        return None
    params = t.ProgressParams(
        progress_token=request.progress_token,
        progress=progress,
        total=total,
        message=message,
        meta=sender.meta,
    )
    data = encode_notification(
        "notifications/progress", request.dialect_config.dialect.encode(params)
    )
    request.progress = progress
    return Outgoing(data, _NOTIFICATION, None, sender.related, "notifications/progress")


def log_notification(
    peer: Peer | None,
    level: t.LoggingLevel,
    data: Any,
    logger: str | None,
    related: RequestId | None,
    meta: dict[str, Any] | None = None,
) -> Outgoing | None:
    """Build a log notification for `peer`. Return None if it did not request this level.

    `related` is the peer's request to which the message belongs, `meta` its `_meta`.

    Raises:
        LocalProtocolError: `level` isn't a level of MCP.
        TypeError, ValueError: `data` cannot be encoded as JSON.
    """
    severity = _SEVERITY.get(level)
    if severity is None:
        raise LocalProtocolError(
            f"there is no log level {level!r}; there are {', '.join(t.LOGGING_LEVELS)}"
        )
    if peer is None:
        return None
    wanted = peer.log_level or peer.dialect.log_level
    if wanted is None or severity < _SEVERITY[wanted]:
        return None
    params = t.LoggingMessageParams(level=level, data=data, logger=logger, meta=meta)
    message = encode_notification("notifications/message", peer.dialect.encode(params))
    return Outgoing(message, _NOTIFICATION, None, related, "notifications/message")
