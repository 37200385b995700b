"""Templates of requests: the bytes of each, and which headers repeat arguments."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest

from mcp_core import DIALECTS
from mcp_trio.oracle.bench._requests import PreparedCall
from mcp_trio.oracle.bench.engine import _templates
from mcp_trio.oracle.bench.engine._templates import (
    INFO,
    HttpTemplates,
    Template,
    Templates,
    new_ids,
    read_mirrored,
    response_to,
)
from tests.harness.jsonrpc import D, E
from tests.trio_.oracle.bench.stand_ins import ECHO, PING

DIGITS = b"1000001000"
META = "io.modelcontextprotocol/"
REQUIRED = {
    f"{META}protocolVersion": E,
    f"{META}clientInfo": INFO,
    f"{META}clientCapabilities": {},
}
REGION = {
    "type": "object",
    "properties": {"where": {"type": "string", "x-mcp-header": "Region"}},
}


def bytes_of(template: Template) -> bytes:
    return template.head + DIGITS + template.tail


def test_ids_have_ten_digits_and_go_up() -> None:
    found = list(islice(new_ids(), 2_500))
    assert found == [b"%d" % number for number in range(1_000_001_000, 1_000_003_500)]


@pytest.mark.parametrize(
    ("params", "sent"),
    [
        (None, {"_meta": REQUIRED}),
        ({"a": 1}, {"a": 1, "_meta": REQUIRED}),
        ({"_meta": None}, {"_meta": REQUIRED}),
        ({"_meta": {"x": 1}}, {"_meta": {**REQUIRED, "x": 1}}),
        (
            {"_meta": {f"{META}clientInfo": {"name": "own"}}},
            {"_meta": {**REQUIRED, f"{META}clientInfo": {"name": "own"}}},
        ),
    ],
)
def test_line_is_one_request_with_what_its_revision_requires(
    params: dict[str, Any] | None, sent: dict[str, Any]
) -> None:
    """The call's own `_meta` wins. A revision with sessions requires nothing in each request."""
    for revision, expected in ((D, params), (E, sent)):
        line = bytes_of(Templates(DIALECTS[revision]).encode("x/y", params))
        assert line.index(b"\n") == len(line) - 1
        message = json.loads(line)
        assert message.pop("params", None) == expected
        assert message == {"jsonrpc": "2.0", "id": int(DIGITS), "method": "x/y"}


def test_call_is_encoded_once_while_it_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation makes new calls all the time, so old ones are forgotten."""
    monkeypatch.setattr(_templates, "_MAX_TEMPLATES", 2)
    templates = Templates(DIALECTS[D])
    first = templates.of(ECHO)
    assert templates.of(ECHO) is first
    assert templates.of(PING) != first
    assert templates.of(ECHO) is first
    templates.of(PreparedCall("x", None, "x"))
    assert templates.of(ECHO) is not first
    assert templates.of(ECHO) == first


@pytest.mark.parametrize("revision", [D, E])
def test_post_has_the_headers_of_its_revision_and_its_length(revision: str) -> None:
    """Those repeat the method, the name, and arguments of tools that a client would call."""
    first = b"POST /mcp HTTP/1.1\r\nHost: x\r\n"
    templates = HttpTemplates(DIALECTS[revision], first, read_mirrored([tool("near")]))
    arguments = {"where": "Rome"}
    for method, params, mirrored in (
        (
            "tools/call",
            {"name": "near", "arguments": arguments},
            ["Mcp-Method: tools/call", "Mcp-Name: near", "Mcp-Param-Region: Rome"],
        ),
        (
            "tools/call",
            {"name": "far", "arguments": arguments},
            ["Mcp-Method: tools/call", "Mcp-Name: far"],
        ),
        ("prompts/get", {"name": "near"}, ["Mcp-Method: prompts/get", "Mcp-Name: near"]),
        ("tools/list", None, ["Mcp-Method: tools/list"]),
    ):
        data = bytes_of(templates.encode(method, params))
        assert data.startswith(first)
        head, _, body = data[len(first) :].partition(b"\r\n\r\n")
        *lines, length = head.decode().split("\r\n")
        assert length == f"Content-Length: {len(body)}"
        expected = mirrored if revision == E else []
        assert [line.lower() for line in lines] == [line.lower() for line in expected]
        assert json.loads(body)["method"] == method


def tool(name: Any, schema: Any = REGION) -> dict[str, Any]:
    return {"name": name, "inputSchema": schema}


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ([tool("a"), tool("b")], ["a", "b"]),
        ([7, None, "tool", [], tool("a")], ["a"]),
        ([tool(5), {"inputSchema": REGION}, tool("a")], ["a"]),
        ([tool("b", None), tool("c", []), {"name": "d"}, tool("a")], ["a"]),
        # A client leaves out a tool whose annotation is invalid.
        ([tool("b", {"properties": {"x": {"type": "object", "x-mcp-header": "X"}}})], []),
    ],
)
def test_tools_that_repeat_arguments_are_found_among_any_values(
    listed: list[Any], names: list[str]
) -> None:
    assert list(read_mirrored(listed)) == names


@pytest.mark.parametrize(
    ("message", "response"),
    [
        ({"id": 3, "method": "ping"}, {"id": 3, "result": {}}),
        ({"id": "a", "method": "roots/list"}, -32601),
    ],
)
def test_request_of_the_server_is_answered(message: dict[str, Any], response: Any) -> None:
    found = response_to(message)
    if isinstance(response, int):
        assert (found["id"], found["error"]["code"]) == (message["id"], response)
        assert "use --through client" in found["error"]["message"]
    else:
        assert found == response
