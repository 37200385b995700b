"""The context: facts of the request, and nothing that sends by itself."""

from __future__ import annotations

import pytest
from msgspec import Raw

from mcp_core import McpError
from mcp_core.registry import Context, Server
from tests.core.registry.asking import C, E, Silent, request

server = Server("s")


def test_facts() -> None:
    ask = request("tools/call", {"name": "x"}, C)
    context = Silent(ask, server)
    assert context.request_id == "id-1"
    assert context.peer is ask.peer
    assert context.server is server
    assert repr(context) == "<Silent tools/call id='id-1'>"


@pytest.mark.requirement("META-1")
def test_meta_is_all_of_it() -> None:
    meta = {"progressToken": 1, "com.example/x": {"a": [None]}, "traceparent": "00-1-2-01"}
    context = Silent(request("tools/call", {"name": "x", "_meta": meta}), server)
    assert context.meta == meta
    assert context.meta is context.meta
    assert Silent(request("tools/call", {"name": "x"}), server).meta == {}
    assert Silent(request("tools/call", {"name": "x", "_meta": None}), server).meta == {}


def test_meta_that_cannot_be_read() -> None:
    ask = request("tools/call", {"name": "x"})
    ask.raw = Raw(b'{"_meta":{"a":"\xff"}}')
    with pytest.raises(McpError, match="_meta cannot be read") as caught:
        _ = Silent(ask, server).meta
    assert caught.value.code == E.codes[next(f for f in E.codes if f.name == "INVALID_PARAMS")]


def test_it_is_abstract() -> None:
    with pytest.raises(TypeError):
        Context(request("tools/call", {"name": "x"}), server)  # type: ignore[abstract]
