"""The calls of a run, as the command line names them. No other tool is called."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from mcp_core import DIALECTS
from mcp_trio.oracle.bench._requests import Mix, PreparedCall, varied

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_trio.oracle.bench._requests import Work

__all__ = ["LISTS", "BenchCalls", "Calls"]

# The lists of a server, and their methods.
LISTS: Final = {
    "tools": "tools/list",
    "resources": "resources/list",
    "templates": "resources/templates/list",
    "prompts": "prompts/list",
}


class Calls(Protocol):
    """The calls of a run: `BenchCalls`, a `Script` or a `Recorded` conversation.

    Attributes:
        text: the calls, for a report.
        tools: the names of the tools among them.
        vary: whether lengths are drawn.
    """

    @property
    def text(self) -> str: ...
    @property
    def tools(self) -> tuple[str, ...]: ...
    @property
    def vary(self) -> bool: ...

    def work(self, revision: str) -> Work:
        """Return the calls for a target that speaks `revision`, which no other target shares."""

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON values, from which `calls_of` makes them again."""


@dataclass(frozen=True, kw_only=True)
class BenchCalls:
    """The requests of a run, as the command line names them.

    Attributes:
        kind: `ping` is the smallest request that the revision has.
        name: the tool, the resource's URI, or a key of `LISTS`; "" for a ping.
        arguments: the tool's.
        vary: whether the length of the tool's longest argument is drawn for each call.
    """

    kind: Literal["ping", "tool", "read", "list"] = "ping"
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    vary: bool = False

    @property
    def text(self) -> str:
        """The requests, for a report, such as "tools/call echo"."""
        match self.kind:
            case "ping":
                return "ping"
            case "list":
                return LISTS[self.name]
            case _:
                return f"{_METHODS[self.kind]} {self.name}"

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that are called."""
        return (self.name,) if self.kind == "tool" else ()

    def work(self, revision: str) -> Work:
        """Return the calls for a target that speaks this revision."""
        match self.kind:
            case "ping":
                # A revision without a ping has another request that every server answers.
                method = DIALECTS[revision].ping
                call = PreparedCall(method, None, method)
            case "tool":
                params = {"name": self.name, "arguments": dict(self.arguments)}
                call = PreparedCall("tools/call", params, self.text)
            case "read":
                call = PreparedCall("resources/read", {"uri": self.name}, self.text)
            case _:
                call = PreparedCall(self.text, None, self.text)
        return Mix(varied(call) if self.vary else [call])

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values. `BenchCalls(**values)` makes it again."""
        return asdict(self)


_METHODS: Final = {"tool": "tools/call", "read": "resources/read"}
