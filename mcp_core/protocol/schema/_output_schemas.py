"""Check tool results against the output schemas that the server declared.

1. Only the last complete list of tools counts. After a change to the list nothing is known, and
   unknown tools aren't checked.
2. A result that is an error needs no structured content. Any other result of a tool with an
   `outputSchema` needs structured content that matches it (server/tools, Output Schema).
3. A schema is compiled once, when its tool is first called. A list alone costs almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcp_core._errors import InvalidToolResult
from mcp_core._text import escape_text
from mcp_core.protocol.jsonrpc._codec import encode, reader

from ._json_schema import InvalidSchema, SchemaTooComplex, UntrustedSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcp_core.types import CallToolResult, Tool

__all__ = ["OutputSchemas"]

_read_schema = reader(dict[str, Any])


class OutputSchemas:
    """The output schemas of a server's tools.

    Args:
        mode: what follows if a result doesn't fit, unless its call says otherwise: "error", "warn"
            or "off".
        report: called for "warn", with what is wrong and the call's options.
    """

    __slots__ = ("_by_tool", "_compiled", "_mode", "_report")

    def __init__(self, mode: str, report: Callable[[str, Any], object]) -> None:
        self._mode = mode
        self._report = report
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

    def check(self, name: str, result: CallToolResult, options: Mapping[str, Any]) -> None:
        """Compare a result of tool `name` with the tool's output schema.

        `options` are the call's options: `check_output` says what follows.

        Raises:
            InvalidToolResult: it doesn't fit.
        """
        if name not in self._by_tool:
            return
        mode = options.get("check_output", self._mode)
        error = None if mode == "off" else self.find_error(name, result)
        if error is None:
            return
        problem = escape_text(f"the result of tool {name!r} {error}")
        if mode != "warn":
            raise InvalidToolResult(problem, result)
        self._report(problem, options)

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
