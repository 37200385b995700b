"""The input schemas of a server's tools, and which arguments fit them.

The schemas can be a stranger's, so checking is bounded. In doubt the arguments fit: then their
results are checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_core.drivers import InvalidSchema, UntrustedSchema

__all__ = ["ToolSchemas"]

MAX_SEARCHED: Final = 200  # characters of a text that a pattern is searched in


class ToolSchemas:
    """The input schemas by tool. Each is compiled when it is first used."""

    def __init__(self) -> None:
        self._schemas: dict[str, dict[str, Any]] = {}
        self._compiled: dict[str, UntrustedSchema | None] = {}

    def learn(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Keep the schemas of tools, as `tools/list` has them."""
        for each in tools:
            name, schema = each.get("name"), each.get("inputSchema")
            if isinstance(name, str) and isinstance(schema, dict):
                self._schemas[name] = schema
                self._compiled.pop(name, None)

    def fit(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Return False if arguments miss their tool's schema. An unknown schema fits all."""
        if tool not in self._compiled:
            self._compiled[tool] = self._compile(tool)
        compiled = self._compiled[tool]
        if compiled is None:
            return True
        return compiled.find_error(arguments) is None and not any(
            _misses_pattern(self._schemas[tool], name, value) for name, value in arguments.items()
        )

    def _compile(self, tool: str) -> UntrustedSchema | None:
        try:
            return UntrustedSchema(self._schemas[tool])
        except (KeyError, InvalidSchema):
            return None


def _misses_pattern(schema: Mapping[str, Any], name: str, value: Any) -> bool:
    """Return True if an argument is a text that misses its pattern, which `UntrustedSchema` skips.

    A pattern that may take long isn't run.
    """
    properties = schema.get("properties")
    found = properties.get(name) if isinstance(properties, dict) else None
    pattern = found.get("pattern") if isinstance(found, dict) else None
    if not isinstance(pattern, str) or not isinstance(value, str) or len(value) > MAX_SEARCHED:
        return False
    # It loads hypothesis, which a run has, and a written test doesn't need.
    from mcp_trio.oracle.strategies._from_schema import is_hard_pattern

    if is_hard_pattern(pattern):
        return False
    try:
        return re.search(pattern, value) is None
    except (re.error, RecursionError, OverflowError):
        return False
