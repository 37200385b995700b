"""Check tool results against the output schemas that the server declared.

1. Only the last complete list of tools counts. After a change of the list nothing is known, and
   unknown tools aren't checked.
2. A result that is an error needs no structured content. Any other result of a tool with an
   `outputSchema` needs structured content that matches it (server/tools, Output Schema).
3. A schema is compiled once, when its tool is first called. A list alone costs almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcp_core._errors import RemoteProtocolError
from mcp_core.protocol.jsonrpc._codec import encode, reader

from ._json_schema import InvalidSchema, SchemaTooComplex, UntrustedSchema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_core.types import CallToolResult, Tool

__all__ = ["OutputSchemas"]

_read_schema = reader(dict[str, Any])


class OutputSchemas:
    """The output schemas of a server's tools."""

    __slots__ = ("_by_tool", "_compiled")

    def __init__(self) -> None:
        # By tool name. Encoded, because the list of tools belongs to the caller that requested it.
        self._by_tool: dict[str, bytes] = {}
        # Compiled schemas by their encoding; None if a schema is too large to check with.
        self._compiled: dict[bytes, UntrustedSchema | None] = {}

    def __repr__(self) -> str:
        return f"<OutputSchemas of {len(self._by_tool)} tools>"

    def replace_all(self, tools: Iterable[Tool]) -> None:
        """Replace the known schemas by the schemas in `tools`, the complete list."""
        self._by_tool = {
            tool.name: encode(tool.output_schema)
            for tool in tools
            if tool.output_schema is not None
        }
        current = set(self._by_tool.values())
        self._compiled = {
            data: schema for data, schema in self._compiled.items() if data in current
        }

    def clear(self) -> None:
        """Forget all schemas, because the list of tools may have changed."""
        self._by_tool.clear()
        self._compiled.clear()

    def check(self, name: str, result: CallToolResult) -> None:
        """Check a result of tool `name`.

        Raises:
            RemoteProtocolError: it doesn't fit the tool's output schema.
        """
        error = self.find_error(name, result) if name in self._by_tool else None
        if error is not None:
            raise RemoteProtocolError(f"the result of tool {name!r} {error}")

    def find_error(self, name: str, result: CallToolResult) -> str | None:
        """Return what is wrong with a result of tool `name`.

        None if the result is valid or the tool is unknown.
        """
        data = self._by_tool.get(name)
        if data is None or result.is_error:
            return None
        try:
            schema = self._schema(data)
        except InvalidSchema as exc:
            return f"cannot be checked, because its outputSchema is invalid: {exc}"
        if result.structured_content is UNSET:
            return "has an outputSchema and no structuredContent"
        violation = schema.find_error(result.structured_content) if schema is not None else None
        if violation is None:
            return None
        place, problem = violation
        return f"does not fit its outputSchema: {place}{': ' if place else ''}{problem}"

    def _schema(self, data: bytes) -> UntrustedSchema | None:
        if data not in self._compiled:
            try:
                self._compiled[data] = UntrustedSchema(_read_schema(data))
            except SchemaTooComplex:
                self._compiled[data] = None
        return self._compiled[data]
