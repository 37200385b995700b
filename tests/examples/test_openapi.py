"""`examples/openapi.py` serves an OpenAPI document: its tools, requests and refusals."""

from __future__ import annotations

import asyncio
import json
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core.registry import DeclarationError
from tests.examples.programs import load
from tests.harness.world.command import run
from tests.harness.world.threaded_http import threaded_http_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

EXAMPLE = load("openapi.py")

TEA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ID = {"name": "tea-id", "in": "path", "required": True, "schema": {"type": "string"}}


def document_for(base: str) -> dict[str, Any]:
    """Return a document with references, parameters in all places, and a body."""
    query = {"name": "limit", "in": "query", "schema": {"type": "integer"}}
    header = {"name": "X-Path", "in": "header", "schema": {"type": "string"}}
    # The names of the example's own parameters are free.
    path = {"name": "path", "in": "query", "schema": {"type": "string"}}
    cookie = {"name": "session", "in": "cookie", "schema": {"type": "string"}}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}
    order = {"type": "array", "items": {"$ref": "#/components/schemas/Tea"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Teas", "version": "1.2"},
        "servers": [{"url": f"{base}/v1/"}],
        "paths": {
            "/teas/{tea-id}": {
                "parameters": [{"$ref": "#/components/parameters/Id"}],
                "get": {"summary": "Get a tea.", "parameters": [query, header, path, cookie]},
                "delete": {"operationId": "remove tea", "description": "Remove a tea."},
            },
            "/orders": {
                "post": {
                    "operationId": "order",
                    "summary": "Order teas.",
                    "requestBody": {"required": True, "content": content},
                },
            },
            "/away": {"get": {"operationId": "away", "summary": "Lead away."}},
        },
        "components": {
            "parameters": {"Id": ID},
            "schemas": {"Tea": TEA, "Order": order, "Other": {"type": "string"}},
        },
    }


class Api(BaseHTTPRequestHandler):
    """Answers with what it was sent."""

    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.seen.append(self.path)
        status = {"/v1/away?": 302, "/v1/teas/none?": 404}.get(self.path, 200)
        length = int(self.headers.get("content-length") or 0)
        answer = {
            "request": f"{self.command} {self.path}",
            "body": self.rfile.read(length).decode(),
            "header": self.headers.get("x-path"),
            "token": self.headers.get("authorization"),
        }
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("location", "/v1/elsewhere")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("API_TOKEN", "s3cret")
    Api.seen.clear()
    with threaded_http_server(Api) as base:
        yield base


@pytest.fixture
def document(api: str, tmp_path: Path) -> Path:
    path = tmp_path / "teas.json"
    path.write_text(json.dumps(document_for(api)))
    return path


def play(driver: str, server: Any, function: Callable[[Any], Awaitable[None]]) -> None:
    """Connect in memory, by the clock of the machine: the requests are made in threads."""
    module: Any = mcp_trio if driver == "trio" else mcp_asyncio_shim

    async def main() -> None:
        async with module.connect(server) as client:
            await function(client)

    if driver == "trio":
        trio.run(main)
    else:
        asyncio.run(main())


CALLS: list[tuple[str, dict[str, Any], dict[str, Any] | str]] = [
    (
        "get_teas_tea-id",
        {"tea-id": "a/b ?c", "limit": 2, "X-Path": "h", "path": "../x"},
        {"request": "GET /v1/teas/a%2Fb%20%3Fc?limit=2&path=..%2Fx", "header": "h"},
    ),
    ("remove_tea", {"tea-id": "assam"}, {"request": "DELETE /v1/teas/assam?", "body": ""}),
    ("order", {"body": [{"name": "assam"}]}, {"body": '[{"name": "assam"}]'}),
    ("remove_tea", {"tea-id": ".."}, "tea-id='..' would lead to another path"),
    ("remove_tea", {"tea-id": ""}, "tea-id='' would lead to another path"),
    ("remove_tea", {"tea-id": "none"}, "status 404: {"),
    ("away", {}, "status 302: {"),
    ("order", {"body": [{}]}, 'Invalid argument `body[0]`: "name" is a required property'),
    ("order", {"body": "assam"}, "Invalid argument `body`"),
    ("order", {}, 'Invalid arguments: "body" is a required property'),
    ("remove_tea", {"tea-id": "a", "session": "b"}, "Invalid arguments: "),
    ("remove_tea", {"tea-id": 3}, "Invalid argument `tea-id`"),
]


@pytest.mark.parametrize("driver", ["trio", "asyncio"])
def test_openapi_example_sends_the_requests_of_its_tools(document: Path, driver: str) -> None:
    """Each part goes to its place, and the token to no other address."""

    async def calls(client: Any) -> None:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert set(tools) == {"get_teas_tea-id", "remove_tea", "order", "away"}
        assert tools["order"].description == "Order teas."
        assert set(tools["order"].input_schema["$defs"]) == {"Tea", "Order"}
        assert tools["away"].annotations.read_only_hint
        assert not tools["order"].annotations.read_only_hint
        for name, arguments, expected in CALLS:
            result = await client.call_tool(name, arguments)
            if isinstance(expected, str):
                assert result.is_error
                assert result.text.startswith(expected), result.text
            else:
                assert {"token": "Bearer s3cret", **expected}.items() <= json.loads(
                    result.text
                ).items()
        assert "/v1/elsewhere" not in Api.seen

    play(driver, EXAMPLE.make_server(EXAMPLE.read(str(document))), calls)


REFUSED: list[tuple[str, Any, type[Exception], str]] = [
    ("Tea", {"$ref": "other.json#/Tea"}, ValueError, "other.json#/Tea.* is in another document"),
    ("Tea", {"$ref": "https://a.example/t"}, ValueError, "https://a.example/t.* is in another"),
    ("Tea", {"items": {"$ref": "file:///etc"}}, ValueError, "file:///etc.* is in another document"),
    ("Tea", {"type": "text"}, DeclarationError, "input_schema"),
    ("Order", {"$ref": "#/components/parameters/Id"}, DeclarationError, "input_schema"),
]


@pytest.mark.parametrize(("name", "schema", "error", "text"), REFUSED)
def test_openapi_example_refuses_what_it_cannot_check(
    name: str, schema: Any, error: type[Exception], text: str, tmp_path: Path
) -> None:
    document = document_for("http://127.0.0.1:1")
    document["components"]["schemas"][name] = schema
    (tmp_path / "teas.json").write_text(json.dumps(document))
    with pytest.raises(error, match=text):
        EXAMPLE.make_server(EXAMPLE.read(str(tmp_path / "teas.json")))


@pytest.mark.parametrize(
    "servers",
    [
        None,
        [],
        [{"url": "/api/v3"}],
        [{"url": "file:///etc"}],
        [{"url": "https://{region}.example.com"}],
        [{"url": "//a.example"}],
    ],
)
def test_openapi_example_refuses_a_server_without_a_whole_url(servers: Any) -> None:
    """Where it is declared: such a URL would fail at each call, or read files."""
    document = document_for("http://127.0.0.1:1") | {"servers": servers}
    if servers is None:
        del document["servers"]
    with pytest.raises(ValueError, match=r"first server is '.*': write its whole http\(s\) URL"):
        EXAMPLE.make_server(document)


async def test_openapi_example_leaves_out_bodies_that_are_not_json(
    document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files and forms; the other operations are served."""
    read = EXAMPLE.read(str(document))
    for path, media_type in ("/photo", "multipart/form-data"), ("/raw", "application/octet-stream"):
        body = {"content": {media_type: {"schema": {"type": "object"}}}}
        read["paths"][path] = {"post": {"summary": "Upload.", "requestBody": body}}
    async with mcp_trio.connect(EXAMPLE.make_server(read)) as client:
        names = {tool.name for tool in await client.list_tools()}
    assert names == {"get_teas_tea-id", "remove_tea", "order", "away"}
    assert capsys.readouterr().err == (
        "left out post /photo: its body isn't JSON\nleft out post /raw: its body isn't JSON\n"
    )


@pytest.mark.process
def test_openapi_example_is_served_by_the_command(document: Path) -> None:
    """As its first lines say, with the document in a variable."""
    words = ("call", "remove_tea", "tea-id=assam", "--env", f"OPENAPI={document}")
    result = run(*words, "--env", "API_TOKEN", "examples/openapi.py")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["token"] == "Bearer s3cret"
