"""Methods that MCP doesn't define: a name, the Struct of its params, and a function.

The connection decodes the params as any other method's, so the function gets an object, not
JSON. Its return value must be an object too, as every result of MCP is (basic/index, Responses).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from mcp_core.protocol.revisions._dialects import DIALECTS, Dialect
from mcp_core.protocol.revisions._methods import Method, Role
from mcp_core.registry._errors import DeclarationError
from mcp_core.registry.functions._function import inspect_function, runs_in_thread
from mcp_core.types import EmptyResult, Result

from ._invocation import Invocation

__all__ = ["CustomMethodEntry"]


class CustomMethodEntry:
    """A declared method.

    Raises:
        DeclarationError: the method cannot be served.
    """

    __slots__ = ("_parameter", "function", "number", "row", "thread")
    number: int  # the number of the declaration on its server

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        params: type[Struct],
        result: type[Struct] | None,
        thread: bool | None,
        threads: bool,
    ) -> None:
        self.function = found = inspect_function(function, returns=False)
        if not name:
            raise DeclarationError(f"{found.label}: a method has a name, such as 'acme/find'")
        if any(name in dialect.receives[role] for dialect in DIALECTS.values() for role in Role):
            raise DeclarationError(
                f"{found.label}: {name!r} is a method of MCP and cannot be redefined"
            )
        if len(found.parameters) > 1:
            raise DeclarationError(
                f"{found.label}: a method takes one parameter, its {params.__name__}"
            )
        self.thread = runs_in_thread(found, thread, threads)
        self._parameter = found.parameters[0].name if found.parameters else ""
        self.row = Method(name, Role.SERVER, params, result or Result)

    def __repr__(self) -> str:
        return f"<method {self.row.name!r}: {self.function.label}>"

    def prepare(self, params: Struct, dialect: Dialect) -> Invocation:
        """Return the call to make."""
        arguments = {self._parameter: params} if self._parameter else {}
        return CustomMethodInvocation(self.function, self.thread, arguments, dialect)


class CustomMethodInvocation(Invocation):
    """One call of a declared method."""

    __slots__ = ()

    def result(self, value: Any) -> Result | Raw | Struct | Mapping[str, Any]:
        if value is None:
            return EmptyResult()
        if isinstance(value, Struct | dict | Raw):
            return value
        plain = msgspec.to_builtins(value, str_keys=True)
        if not isinstance(plain, dict):
            raise TypeError(f"the result of a method is an object, not {type(value).__name__}")
        return plain
