"""`help()` lists the options of a public function that takes them by `**options`."""

from __future__ import annotations

import importlib
import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

# With the number of their functions that take options. Overloads are not there at run time.
MODULES: Final = {
    "mcp_core.registry._server": 7,
    "mcp_core.runtime._client": 13,
    "mcp_core.runtime.host._host": 5,
    "mcp_trio._connect": 5,
    "mcp_trio.host._host": 1,
    "mcp_trio.http_server._asgi": 1,
    "mcp_asyncio_shim._connect": 1,
    "mcp_asyncio_shim._host": 1,
    "mcp_asyncio_shim._asgi": 1,
}


def functions_with_options(module: str) -> Iterator[tuple[FunctionType, str]]:
    """Yield the functions of a module, and of its classes, with the annotation of `**options`."""
    pending: list[Any] = [importlib.import_module(module)]
    while pending:
        for value in vars(pending.pop()).values():
            function = inspect.unwrap(value) if callable(value) else None
            if getattr(value, "__module__", None) != module:
                continue
            if inspect.isclass(value):
                pending.append(value)
            elif isinstance(function, FunctionType):
                code = function.__code__
                if code.co_flags & inspect.CO_VARKEYWORDS:
                    has_args = bool(code.co_flags & inspect.CO_VARARGS)
                    name = code.co_varnames[code.co_argcount + code.co_kwonlyargcount + has_args]
                    annotation = str(function.__annotations__[name])
                    # A class without options of its own leaves them to others that have some.
                    if "Unpack[" in annotation and "NoOptions" not in annotation:
                        yield value, annotation


@pytest.mark.parametrize("module", MODULES)
def test_function_with_options_shows_each_of_them(module: str) -> None:
    found = list(functions_with_options(module))
    assert len(found) == MODULES[module]
    for function, annotation in found:
        parameters = inspect.signature(function).parameters.values()
        assert not any(each.kind is each.VAR_KEYWORD for each in parameters), function
        kind = annotation.removeprefix("Unpack[").removesuffix("]").rpartition(".")[2]
        options = getattr(importlib.import_module(module), kind, None)
        shown = {each.name for each in parameters}
        if options is not None:
            assert shown >= options.__annotations__.keys(), function
