"""A host's options."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Literal, Protocol, TypedDict

from msgspec import Struct

from mcp_core import types as t
from mcp_core.client._options import ElicitAnswer, Place, SampleAnswer
from mcp_core.host._approvals import Approvals
from mcp_core.host._audit import AuditRecord
from mcp_core.host._names import NameScheme
from mcp_core.host.catalog._server import CatalogLimits
from mcp_core.host.config._servers import ConfigInput

from ._questions import (
    CallAnswer,
    CallQuestion,
    CallVerdict,
    DefinitionsQuestion,
    ServerQuestion,
)

__all__ = ["ApprovalStore", "HostLimits", "HostOptions", "MemoryApprovals"]


class ApprovalStore(Protocol):
    """Where a host keeps approvals. Its methods may block: they are called in a worker thread."""

    def load(self) -> Approvals:
        """Return what is stored."""

    def change(self, function: Callable[[Approvals], Approvals]) -> Approvals:
        """Replace what is stored by what `function` makes of it, and return the new approvals.

        No other process may change it in between.
        """


class MemoryApprovals:
    """An `ApprovalStore` in memory, which ends with the process.

    Args:
        approvals: the first approvals; default none.
    """

    def __init__(self, approvals: Approvals | None = None) -> None:
        self._approvals = approvals or Approvals()

    def load(self) -> Approvals:
        """Return the approvals."""
        return self._approvals

    def change(self, function: Callable[[Approvals], Approvals]) -> Approvals:
        """Replace the approvals by what `function` makes of them, and return those."""
        self._approvals = function(self._approvals)
        return self._approvals


class HostLimits(Struct, frozen=True, kw_only=True):
    """Upper bounds of a host.

    Attributes:
        servers: the number of servers. Each may be a process.
        connecting: the servers that are connected to at the same time; the others wait.
        calls: the calls in flight at one server. A further one raises `TooManyCalls`.
        catalog: what one server may list.
        listing: the bytes of memory that one list of a server may take, estimated.
    """

    servers: int = 1_000
    connecting: int = 32
    calls: int = 100
    catalog: CatalogLimits = CatalogLimits()
    listing: int = 8 * 1024 * 1024


class HostOptions(TypedDict, total=False):
    """A host's options. A callback may be an `async def` or a plain function.

    A plain function must not block. Callbacks for several servers may run at the same time: the
    application has to ask its user one question after the other.

    Keys:
        on_call: called before each call of a tool with the server's name, the tool's name there,
            and the arguments. It returns "allow", "deny", "ask", the arguments to use in place of
            the given ones, a `CallAnswer`, or None to leave the decision to the rules. It isn't
            asked about calls that a rule denies, nor about definitions that were not approved. What
            it raises propagates to the caller.
        on_approve_server: gets a `ServerQuestion` and returns True if the server may be started.
            The answer True is stored. Without it a server of a project's file is "unapproved". What
            it raises is logged, and approves nothing.
        on_approve_definitions: gets a `DefinitionsQuestion` and returns True if they may be used,
            which is stored. Without it they cannot be used. What it raises is logged.
        on_approve_call: gets a `CallQuestion` and returns a `CallAnswer`, or a bool for this call.
            Without it such a call raises `ApprovalRequired`. What it raises propagates to the
            caller.
        on_input: gets a `ConfigInput` and returns the text that the user enters, or None. It is
            called once for each input of a file, and after None again at the next attempt to
            connect. Without it a server that needs an input fails.
        approve: "all" to make calls of tools without asking; default "ask". The user is still asked
            about servers, definitions, and calls for which `on_call` returns "ask".
        approvals: where approvals, rules and pins are stored; default in memory. Entries for
            servers that the program names are stored too, so don't share the store with other
            programs.
        audit: called with the `AuditRecord` of each call of a tool. It must not block.
        audit_arguments: "digest" (the default) to record a digest of the arguments, or "redacted"
            to record them without what looks like a secret.
        audit_key: the key of these digests (HMAC), or None (the default). Without it short
            arguments can be guessed from their digest.
        names: makes the merged names of tools and prompts; default `merged_name`.
        on_elicit: as for a client, but the first argument is the server's name.
        on_sample: as for a client, but the first argument is the server's name.
        on_roots: as for a client. A function gets the server's name.
        on_log: as for a client, but the first argument is the server's name.
        log_level: as for a client.
        elicitation: as for a client.
        sampling: as for a client.
        info: as for a client.
        versions: as for a client.
        keep_alive: as for a client. If a server doesn't answer a ping, the host connects to it
            again. Default: no pings.
        restart: False to leave a server alone that could not be connected to or has ended by
            itself. Default True: it is started again, after delays that grow.
        connect_timeout: seconds for a server to be connected, unless its configuration says
            otherwise; default 60.
        call_timeout: seconds without progress for a call, unless the configuration says otherwise;
            default 60. None for no limit.
        wait: seconds that the start of the `async with` block waits for servers to connect; default
            60. None for no limit.
        limits: upper bounds; see `HostLimits`.
    """

    on_call: Callable[[str, str, dict[str, Any]], Awaitable[CallVerdict] | CallVerdict] | None
    on_approve_server: Callable[[ServerQuestion], Awaitable[bool] | bool] | None
    on_approve_definitions: Callable[[DefinitionsQuestion], Awaitable[bool] | bool] | None
    on_approve_call: (
        Callable[[CallQuestion], Awaitable[CallAnswer | bool] | CallAnswer | bool] | None
    )
    on_input: Callable[[ConfigInput], Awaitable[str | None] | str | None] | None
    approve: Literal["ask", "all"]
    approvals: ApprovalStore | None
    audit: Callable[[AuditRecord], object] | None
    audit_arguments: Literal["digest", "redacted"]
    audit_key: bytes | None
    names: NameScheme
    on_elicit: Callable[[str, t.ElicitParams], Awaitable[ElicitAnswer] | ElicitAnswer] | None
    on_sample: Callable[[str, t.CreateMessageParams], Awaitable[SampleAnswer] | SampleAnswer] | None
    on_roots: (
        Collection[Place] | Callable[[str], Awaitable[Collection[Place]] | Collection[Place]] | None
    )
    on_log: Callable[[str, t.LoggingMessageParams], object] | None
    log_level: t.LoggingLevel | None
    elicitation: t.ElicitationCapability | None
    sampling: t.SamplingCapability | None
    info: t.Implementation | None
    versions: Iterable[str]
    keep_alive: float | None
    restart: bool
    connect_timeout: float
    call_timeout: float | None
    wait: float | None
    limits: HostLimits
