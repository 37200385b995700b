"""Which arguments of which tools a client mirrors into headers, as learned from `tools/list`.

1. A tool whose `x-mcp-header` annotations are invalid is removed from the list, the others stay
   (2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters).
2. The last list counts. If the server has changed a tool since, it rejects the call, and the list
   is requested again (`AbstractClient.call_tool`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core._errors import RemoteProtocolError
from mcp_core.schema._param_headers import param_headers

if TYPE_CHECKING:
    from mcp_core.schema._param_headers import ParamHeaders
    from mcp_core.types import ListToolsResult

__all__ = ["ToolHeaders"]

# Tools with mirrored arguments that are remembered. Above it the tools listed first are forgotten,
# and a call of one of them costs one more `tools/list`.
_MAX_TOOLS: Final = 4096


class ToolHeaders:
    """The mirrored arguments of a server's tools."""

    __slots__ = ("_by_tool",)

    def __init__(self) -> None:
        self._by_tool: dict[str, ParamHeaders] = {}

    def __repr__(self) -> str:
        return f"<ToolHeaders of {len(self._by_tool)} tools>"

    def of(self, tool: str) -> ParamHeaders | None:
        """Return the mirrored arguments of a tool, or None if it has none or was not listed."""
        return self._by_tool.get(tool)

    def learn(self, page: ListToolsResult) -> list[RemoteProtocolError]:
        """Learn from a page of `tools/list`, and remove the tools from it that cannot be called.

        Returns:
            An error for each tool that was removed.
        """
        usable = []
        problems = []
        for tool in page.tools:
            self._by_tool.pop(tool.name, None)
            try:
                mirrored = param_headers(tool.input_schema)
            except ValueError as exc:
                problems.append(RemoteProtocolError(f"tool {tool.name!r} is left out: {exc}"))
                continue
            usable.append(tool)
            if mirrored:
                self._by_tool[tool.name] = mirrored
                if len(self._by_tool) > _MAX_TOOLS:
                    del self._by_tool[next(iter(self._by_tool))]
        if problems:
            page.tools = usable
        return problems
