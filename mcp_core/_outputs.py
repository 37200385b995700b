"""Whether what a tool gave is what its server said that it gives.

Rules of this file:

1. A tool is known by the last complete list of tools. If they have changed since, nothing is known any more, and what is not
   known is not checked.
2. A tool that failed owes nothing. One with an `outputSchema` owes structured content that fits it (server/tools, Output Schema).
3. A schema is read when the tool is first called, and then once; a list alone costs next to nothing.

What is checked, and how thoroughly, is in `_schema.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from ._jsonrpc import encode, reader
from ._schema import ForeignSchema, UnboundedSchema, UnusableSchema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .types import CallToolResult, Tool

__all__ = ["Outputs"]

_read = reader(dict[str, Any])


class Outputs:
    """The output schemas of a server's tools."""

    __slots__ = ("_known", "_read")

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}  # encoded, for a list of tools belongs to whoever asked for it
        self._read: dict[
            bytes, ForeignSchema | None
        ] = {}  # None for one that is too large to check anything with

    def __repr__(self) -> str:
        return f"<Outputs of {len(self._known)} tools>"

    def learn(self, tools: Iterable[Tool]) -> None:
        """These are all tools there are."""
        self._known = {
            tool.name: encode(tool.output_schema) for tool in tools if tool.output_schema is not None
        }
        known = set(self._known.values())
        self._read = {data: schema for data, schema in self._read.items() if data in known}

    def forget(self) -> None:
        """There may be other tools now."""
        self._known.clear()
        self._read.clear()

    def fault_of(self, name: str, result: CallToolResult) -> str | None:
        """What is wrong with the result of tool `name`; None if nothing is, or nothing is known."""
        data = self._known.get(name)
        if data is None or result.is_error:
            return None
        try:
            schema = self._schema(data)
        except UnusableSchema as exc:
            return f"cannot be checked, for its outputSchema is none: {exc}"
        if result.structured_content is UNSET:
            return "has an outputSchema and no structuredContent"
        fault = schema.fault_of(result.structured_content) if schema is not None else None
        if fault is None:
            return None
        place, problem = fault
        return f"does not fit its outputSchema: {place}{': ' if place else ''}{problem}"

    def _schema(self, data: bytes) -> ForeignSchema | None:
        if data not in self._read:
            try:
                self._read[data] = ForeignSchema(_read(data))
            except UnboundedSchema:
                self._read[data] = None
        return self._read[data]
