"""`help()` and editors show options that are declared as a `TypedDict`, each by its name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from mcp_core.registry import _server
from mcp_core.runtime import _client
from mcp_core.runtime.host import _host


def methods_with_options() -> Iterator[tuple[str, Any]]:
    for module in _server, _client, _host:
        for cls in vars(module).values():
            if not isinstance(cls, type) or getattr(cls, "_is_protocol", False):
                continue
            if cls.__module__.startswith("mcp_core."):
                for name, value in vars(cls).items():
                    code = getattr(inspect.unwrap(value), "__code__", None)
                    if code is not None and code.co_flags & inspect.CO_VARKEYWORDS:
                        yield f"{cls.__name__}.{name}", value


METHODS = dict(methods_with_options())


@pytest.mark.parametrize("name", METHODS)
def test_options_of_a_method_are_in_its_signature(name: str) -> None:
    parameters = inspect.signature(METHODS[name]).parameters.values()
    assert not [each for each in parameters if each.kind is each.VAR_KEYWORD]


def test_servers_and_clients_have_methods_with_options() -> None:
    assert {"Server.add_resource", "Server.add_tool"} <= METHODS.keys()
    assert any("call" in name for name in METHODS)
