"""Which arguments of which tools travel in headers too, as a client has learned it from the lists of tools.

Rules of this file:

1. A tool whose annotations break a rule is left out of the list, and the others stay: nobody could call it so that all on the way
   agree on what is asked (2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters).
2. What is known is what was listed last. A server that knows better refuses the call, and the list is asked for anew
   (`Caller.call_tool`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core._errors import RemoteProtocolError
from mcp_core._param_headers import param_headers

if TYPE_CHECKING:
    from mcp_core._param_headers import ParamHeaders
    from mcp_core.types import ListToolsResult

__all__ = ["ToolHeaders"]

# Tools with such arguments that are remembered. Who has more of them has those forgotten that were listed first, and a call of one
# costs one more list.
_MOST: Final = 4096


class ToolHeaders:
    """The mirrored arguments of a server's tools."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, ParamHeaders] = {}

    def __repr__(self) -> str:
        return f"<ToolHeaders of {len(self._known)} tools>"

    def of(self, tool: str) -> ParamHeaders | None:
        return self._known.get(tool)

    def learn(self, page: ListToolsResult) -> list[RemoteProtocolError]:
        """Learn from a page, and take out of it the tools that cannot be called; gives what is wrong with each of those."""
        usable, complaints = [], []
        for tool in page.tools:
            self._known.pop(tool.name, None)
            try:
                mirrored = param_headers(tool.input_schema)
            except ValueError as exc:
                complaints.append(RemoteProtocolError(f"tool {tool.name!r} is left out: {exc}"))
                continue
            usable.append(tool)
            if mirrored:
                self._known[tool.name] = mirrored
                if len(self._known) > _MOST:
                    del self._known[next(iter(self._known))]
        if complaints:
            page.tools = usable
        return complaints
