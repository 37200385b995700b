"""The user's approvals for servers and tool calls, and the decision about each call.

1. A server of a project's file is approved by the digest of what it would run or connect to. The
   approval also names the files whose server of the same name it replaces.
2. A rule allows or denies a tool's calls. A permanent one names the definition that the user saw,
   and ends when the tool changes.
3. Annotations are the server's hints. They count only for servers in the user's own files.

`Approvals` is what is stored. The host keeps rules for one call or a session in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from mcp_core._errors import McpTrioError
from mcp_core._text import escape_text
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, reader
from mcp_core.types import ToolAnnotations

from ._launch import ServerLaunch, digest_launch
from ._pins import Definition, PinState

__all__ = [
    "ApprovalRequired",
    "ApprovalState",
    "Approvals",
    "CallDecision",
    "InvalidApprovals",
    "RuleLifetime",
    "ServerApproval",
    "ToolRule",
    "approval_state",
    "decide_call",
    "decode_approvals",
    "encode_approvals",
]

# Whether a launch was approved as it is, never, or in another form.
ApprovalState: TypeAlias = Literal["approved", "new", "changed"]
# How long a rule holds: for the next call, for this session, or for good.
RuleLifetime: TypeAlias = Literal["call", "session", "always"]
_VERSION: Final = 1  # of the JSON; another one is refused, as it may mean something else


class ApprovalRequired(McpTrioError):
    """A call, or a server, that the user hasn't approved.

    `server` is the server's name, `tool` the tool's name at the server, or None. `reason` says what
    needs approval.
    """

    def __init__(self, server: str, tool: str | None, reason: str) -> None:
        subject = server if tool is None else f"{tool} of {server}"
        super().__init__(f"{escape_text(subject)} is not approved: {reason}")
        self.server = server
        self.tool = tool
        self.reason = reason


class InvalidApprovals(McpTrioError):
    """Stored approvals that cannot be read."""


class ToolRule(Struct, frozen=True, kw_only=True):
    """A user's decision about calls of one tool, or of several.

    Attributes:
        tool: the tool's name at its server, or a pattern.
        is_pattern: `*` in `tool` stands for any characters. Without it a tool that a server calls
            `*` matches itself only.
        is_allowed: False if calls are denied.
        lifetime: for the next call, for this session, or for good.
        digest: the definition that the rule was made for. None for any, as with patterns.
    """

    tool: str
    is_pattern: bool = False
    is_allowed: bool = True
    lifetime: RuleLifetime = "always"
    digest: str | None = None

    def matches(self, tool: str, digest: str | None) -> bool:
        """Return True if it is about the tool with the name `tool` and the definition `digest`."""
        if self.digest is not None and self.digest != digest:
            return False
        if not self.is_pattern:
            return self.tool == tool
        return _matches_pattern(self.tool, tool)


def _matches_pattern(pattern: str, tool: str) -> bool:
    """Return True if `tool` has the parts between the stars of `pattern`, in their order.

    Taking the first match of each part is enough, so nothing is tried twice. A regular expression
    would backtrack, and servers choose the names.
    """
    first, *parts = pattern.split("*")
    if not parts:
        return tool == pattern
    last = parts.pop()
    if not tool.startswith(first):
        return False
    at = len(first)
    for part in parts:
        found = tool.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(tool) - len(last) >= at and tool.endswith(last)


class ServerApproval(Struct, frozen=True, kw_only=True):
    """The approval of one server.

    Attributes:
        launch: the `digest_launch` of what may be run, None for a server that needs no approval.
        replaces: the files, with their scopes, whose server of the same name it may replace.
        approved: when, in seconds since 1970.
        rules: the rules for its tools.
        pins: what it offered when it was approved, None before it was seen.
    """

    launch: str | None = None
    replaces: tuple[str, ...] = ()
    approved: float = 0.0
    rules: tuple[ToolRule, ...] = ()
    pins: tuple[Definition, ...] | None = None


class Approvals(Struct, frozen=True, kw_only=True):
    """A user's approvals.

    Attributes:
        servers: by the file's absolute path and the server's name in it.
        version: the JSON's version.
    """

    servers: dict[str, dict[str, ServerApproval]] = field(default_factory=dict)
    version: int = _VERSION

    def find(self, file: str, server: str) -> ServerApproval | None:
        """Return the approval of `server` of `file`, an absolute path, or None."""
        return self.servers.get(file, {}).get(server)

    def with_server(self, file: str, server: str, approval: ServerApproval | None) -> Approvals:
        """Return a copy with this `approval` for `server` of `file`. None removes it.

        `file` is an absolute path.
        """
        of_file = {**self.servers.get(file, {})}
        if approval is None:
            of_file.pop(server, None)
        else:
            of_file[server] = approval
        servers = {**self.servers, file: of_file}
        if not of_file:
            del servers[file]
        return replace(self, servers=servers)

    def with_change(
        self, file: str, server: str, function: Callable[[ServerApproval], ServerApproval]
    ) -> Approvals:
        """Return a copy in which `function` has changed the approval of `server` of `file`.

        `function` gets the old approval, or an empty one, and returns the new one.
        """
        old = self.find(file, server) or ServerApproval()
        return self.with_server(file, server, function(old))


class _Versioned(Struct):
    version: int


_read_version: Final = reader(_Versioned)
_read_approvals: Final = reader(Approvals)


def encode_approvals(approvals: Approvals) -> bytes:
    """Return `approvals` as JSON. Rules for a call or a session are left out."""
    servers = {
        file: {
            server: replace(
                each, rules=tuple(rule for rule in each.rules if rule.lifetime == "always")
            )
            for server, each in of_file.items()
        }
        for file, of_file in approvals.servers.items()
    }
    # Without indentation, which would make a deeply nested schema a thousand times as large.
    return msgspec.json.encode(replace(approvals, servers=servers)) + b"\n"


def decode_approvals(data: bytes) -> Approvals:
    """Decode `data`, the content of a file. An empty file has no approvals.

    Raises:
        InvalidApprovals: it isn't JSON of this form, or of another version.
    """
    if not data.strip():
        return Approvals()
    try:
        number = _read_version(data).version
        if number == _VERSION:
            return _read_approvals(data)
    except InvalidPayload as exc:
        raise InvalidApprovals(f"the approvals cannot be read: {exc}") from None
    raise InvalidApprovals(f"the approvals have version {number}, this program knows {_VERSION}")


def approval_state(
    launch: ServerLaunch, approval: ServerApproval | None, replaces: Collection[str]
) -> ApprovalState:
    """Return whether a launch was approved, never, or in another form.

    An approval doesn't hold if the server now replaces another one and the user wasn't shown that:
    commands for the user's own server would reach this one. The user may change their own entry
    without a new approval.

    Args:
        launch: what would be run or connected to.
        approval: the server's approval, or None.
        replaces: the files, with their scopes, whose server of the same name it replaces.
    """
    if approval is None or approval.launch is None:
        return "new"
    if approval.launch != digest_launch(launch):
        return "changed"
    return "approved" if set(approval.replaces).issuperset(replaces) else "new"


class CallDecision(Struct, frozen=True):
    """Whether a call may be made.

    Attributes:
        verdict: "allow", "ask" the user, or "deny".
        about: "definition" if the tool's definition is to be approved, else "call".
        reason: who or what decides, for people: "rule", "read-only tool".
        rule: the rule that decided. A rule for one call is used up by it.
    """

    verdict: Literal["allow", "ask", "deny"]
    reason: str
    about: Literal["definition", "call"] = "call"
    rule: ToolRule | None = None


_UNPINNED: Final[dict[PinState, str]] = {
    "changed": "its definition has changed since it was approved",
    "new": "its definition was not approved yet",
    "ambiguous": "its server lists it several times, with different definitions",
}


def decide_call(
    tool: str,
    pin: PinState,
    *,
    is_server_approved: bool,
    digest: str | None = None,
    is_trusted: bool = False,
    annotations: ToolAnnotations | None = None,
    rules: Iterable[ToolRule] = (),
    approve_all: bool = False,
) -> CallDecision:
    """Return whether a tool may be called.

    A rule that denies beats one that allows. Without a rule, read-only tools of trusted servers may
    be called. For other tools the user is asked.

    Args:
        tool: the tool's name at its server.
        pin: its definition's state.
        is_server_approved: False for a server of a project's file before its approval.
        digest: its definition's digest.
        is_trusted: True for a server in the user's own file. The annotations of others mean
            nothing.
        annotations: the server's hints.
        rules: the stored rules, and this session's.
        approve_all: allow calls without asking. The user is still asked about definitions.
    """
    if not is_server_approved:
        return CallDecision("deny", "its server is not approved")
    if pin == "absent":
        return CallDecision("deny", "its server does not offer it now")
    matching = [rule for rule in rules if rule.matches(tool, digest)]
    for rule in matching:
        if not rule.is_allowed:
            return CallDecision("deny", "rule", rule=rule)
    if pin == "ambiguous":
        # There is no one definition that could be approved.
        return CallDecision("deny", _UNPINNED[pin], "definition")
    if pin != "pinned":
        return CallDecision("ask", _UNPINNED[pin], "definition")
    if matching:
        # The rule that lasts longest: a rule for one call is kept until it is needed.
        order: tuple[RuleLifetime, ...] = ("always", "session", "call")
        rule = min(matching, key=lambda each: order.index(each.lifetime))
        return CallDecision("allow", "rule", rule=rule)
    if approve_all:
        return CallDecision("allow", "all calls are approved")
    if is_trusted and annotations is not None and annotations.read_only_hint is True:
        return CallDecision("allow", "read-only tool")
    return CallDecision("ask", "the call was not approved")
