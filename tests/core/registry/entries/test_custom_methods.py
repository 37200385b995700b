"""Methods that MCP does not define."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from mcp_core import McpError, Method, Role
from mcp_core.registry import Context, DeclarationError, Server
from mcp_core.types import RequestParams, Result
from tests.core.registry.lookup_helpers import E, answered, request


class ReindexParams(RequestParams, kw_only=True):
    path: str


class Report(msgspec.Struct):
    files: int


@dataclasses.dataclass
class OldReport:
    files: int


def answer_to(value: Any) -> Any:
    server = Server("s")

    @server.method("acme/reindex", params=ReindexParams)
    def reindex(params: ReindexParams, context: Context) -> Any:
        assert params.path == "/x"
        return value

    return answered(server, server.config().methods["acme/reindex"], {"path": "/x"})


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, {}),
        ({"a": 1}, {"a": 1}),
        (Report(3), {"files": 3}),
        (OldReport(3), {"files": 3}),
        (Result(meta={"a": 1}), {"_meta": {"a": 1}}),
        (Raw(b'{"a":1}'), {"a": 1}),
    ],
)
def test_custom_method_result_is_encoded(value: Any, result: Any) -> None:
    assert answer_to(value) == result


@pytest.mark.parametrize("value", [3, "x", [1], object()])
def test_custom_method_result_other_than_object_is_an_internal_error(value: Any) -> None:
    assert answer_to(value) == {"code": -32603, "message": "Internal error (reference ref)"}


def test_custom_method_rows_are_in_the_config() -> None:
    """A method without declared types falls back to plain params and an empty result."""
    server = Server("s")

    @server.method("acme/plain")
    async def plain() -> None: ...

    @server.method("acme/typed", params=ReindexParams, result=Report, thread=True)
    def typed(params: ReindexParams) -> Report:
        return Report(1)

    rows = server.config().methods
    assert [(row.name, row.to, row.params, row.result) for row in rows.values()] == [
        ("acme/plain", Role.SERVER, RequestParams, Result),
        ("acme/typed", Role.SERVER, ReindexParams, Report),
    ]
    assert answered(server, rows["acme/plain"]) == {}
    assert answered(server, rows["acme/typed"], {"path": "x"}) == {"files": 1}
    server.remove_method("acme/plain")
    assert list(server.config().methods) == ["acme/typed"]
    assert repr(server._methods["acme/typed"]).startswith("<method 'acme/typed': function ")


def test_custom_method_unknown_is_method_not_found() -> None:
    with pytest.raises(McpError, match="Unknown method: acme/x") as caught:
        Server("s").answer(request(Method("acme/x", Role.SERVER, RequestParams, Result), {}, E))
    assert caught.value.code == -32601


def test_custom_method_invalid_declaration_raises() -> None:
    server = Server("s")
    for name in ("tools/list", "ping", "notifications/progress", "roots/list"):
        with pytest.raises(DeclarationError, match="is a method of MCP"):
            server.method(name)(lambda: None)
    with pytest.raises(DeclarationError, match="takes one parameter, its ReindexParams"):
        server.method("acme/x", params=ReindexParams)(lambda a, b: None)
    with pytest.raises(DeclarationError, match="thread=True is for a plain def"):

        @server.method("acme/x", thread=True)
        async def slow() -> None: ...

    server.method("acme/x")(lambda: None)
    with pytest.raises(DeclarationError, match="there is a method 'acme/x' already"):
        server.method("acme/x")(lambda: None)
