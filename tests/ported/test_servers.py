"""Each tool of the ported servers is called on both drivers, in memory."""

from __future__ import annotations

import asyncio
import json
import re
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from tests.harness import either
from tests.harness.world.threaded_http import fixed_response, threaded_http_server
from tests.levels import long
from tests.ported import fetch_server, sample_server, time_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from mcp_core.registry import Server

ZONES = {"source_timezone": "Asia/Tokyo", "target_timezone": "Asia/Kathmandu"}
PAGE = b"<html><style>b {}</style><body>Tea &amp; cake, <b>fresh</b></body></html>"


# --- fastmcp-sample-server ------------------------------------------------------------------------

SAMPLE: list[tuple[str, dict[str, Any], str | dict[str, Any]]] = [
    ("calculate", {"expression": "2 + 3 * 4"}, r"= 14$"),
    ("calculate", {"expression": "__import__('os')"}, "^Error"),
    ("get_server_time", {}, r"^\d{4}-\d\d-\d\d .* UTC$"),
    ("random_number", {"min_val": 7, "max_val": 8}, "^[78]$"),
    ("random_number", {"min_val": 9, "max_val": 8}, "^Error"),
    ("analyze_text", {"text": "One two. Three!"}, {"words": 3, "sentences": 2}),
    ("echo", {"message": "tea ✓"}, "tea ✓"),
    ("hash_text", {"text": "a", "algorithm": "MD5"}, {"hex": "0cc175b9c0f1b6a831c399e269772661"}),
    ("hash_text", {"text": "a", "algorithm": "crc"}, {"error": "unknown algorithm crc"}),
    ("base64_encode", {"text": "a?>", "url_safe": True}, "^YT8-$"),
    ("base64_decode", {"data": "YT8+"}, r"^a\?>$"),
    ("base64_decode", {"data": "!"}, "^Error"),
    ("uuid_generate", {"count": 2, "version": 1}, {"count": 2}),
    ("uuid_generate", {"version": 3}, {"error": "version is 1 or 4, count 1 to 100"}),
    ("password_generate", {"length": 30, "use_symbols": False}, {"length": 30}),
    ("json_format", {"data": '{"b": 1, "a": 2}', "sort_keys": True}, '"a": 2,\n  "b": 1'),
    ("json_format", {"data": "{"}, "^Error"),
    ("regex_match", {"pattern": "(a)(b)?", "text": "abxA", "ignore_case": True}, {"count": 2}),
    ("convert_units", {"value": 212, "from_unit": "F", "to_unit": "C"}, {"result": 100.0}),
    ("convert_units", {"value": 1, "from_unit": "mi", "to_unit": "km"}, {"result": 1.609344}),
    (
        "convert_units",
        {"value": 1, "from_unit": "kg", "to_unit": "m"},
        {"error": "kg isn't converted to m"},
    ),
    ("fetch_url", {"url": "http://127.0.0.1/"}, {"error": "127.0.0.1 isn't public"}),
    ("weather", {"latitude": 91, "longitude": 0}, {"error": "there is no such place"}),
    ("note_add", {"title": " "}, {"error": "a note needs a title"}),
    ("note_list", {"search": "none"}, {"count": 0, "total": 1, "notes": []}),
    ("note_get", {"note_id": 9}, {"error": "there is no note 9"}),
    ("note_update", {"note_id": 1}, {"error": "there is nothing to change"}),
    ("note_update", {"note_id": 1, "title": "cake"}, {"id": 1, "title": "cake", "body": "green"}),
    ("note_delete", {"note_id": 1}, {"deleted": True, "id": 1}),
    # Refused, where the published server converts or ignores it.
    ("note_get", {"note_id": "1"}, "Invalid argument `note_id`: expected `int`, got `str`"),
    ("echo", {"text": "tea"}, "Unknown argument `text`; the arguments are: message"),
]


@pytest.mark.parametrize(("tool", "arguments", "expected"), SAMPLE)
@pytest.mark.usefixtures("each_driver")
async def test_tool_of_the_sample_server(
    tool: str, arguments: dict[str, Any], expected: Any, tmp_path: Path
) -> None:
    """The database has one note."""
    server = sample_server.make_server(tmp_path / "notes")
    async with either.connect(server) as client:
        await client.call_tool("note_add", {"title": "tea", "body": "green"})
        result = await client.call_tool(tool, arguments)
    if isinstance(expected, str):
        assert re.search(expected, result.text)
    else:
        assert expected.items() <= result.structured_content.items()


@pytest.mark.usefixtures("each_driver")
async def test_resources_and_prompts_of_the_sample_server(tmp_path: Path) -> None:
    """A resource comes before the template that matches its URI too."""

    async def read(uri: str) -> Any:
        (content,) = (await client.read_resource(uri)).contents
        return json.loads(content.text)

    async with either.connect(sample_server.make_server(tmp_path / "notes")) as client:
        await client.call_tool("note_add", {"title": "tea"})
        assert (await read("resource://server/info"))["notes_count"] == 1
        assert (await read("resource://notes/1"))["title"] == "tea"
        assert await read("resource://notes/2") == {"error": "there is no note 2"}
        assert await read("resource://notes/tea") == {"error": "tea isn't a number"}
        assert len((await read("resource://notes/all"))["notes"]) == 1
        (call,) = (await read("resource://telemetry/recent"))["calls"]
        assert call["tool"] == "note_add"
        assert await read("resource://telemetry/summary") == {"total_recorded": 1}
        prompts = {
            "summarize_text": {"text": "tea"},
            "code_review": {"code": "tea", "language": "C"},
            "explain_error": {"error_message": "tea"},
        }
        for name, arguments in prompts.items():
            (message,) = (await client.get_prompt(name, arguments)).messages
            assert "tea" in message.content.text


# --- mcp-server-time ------------------------------------------------------------------------------


@pytest.mark.usefixtures("each_driver")
async def test_tools_of_the_time_server() -> None:
    """A result is both text and data of its schema, which the client checks."""
    async with either.connect(time_server.make_server("Asia/Tokyo")) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        now = await client.call_tool("get_current_time", {"timezone": "Asia/Tokyo"})
        then: Any = await client.call_tool("convert_time", {**ZONES, "time": "16:30"})
        wrong = [
            (await client.call_tool(tool, arguments)).text
            for tool, arguments in (
                ("get_current_time", {"timezone": "Nowhere"}),
                ("convert_time", {**ZONES, "time": "25:00"}),
                ("convert_time", {"time": "16:30"}),
            )
        ]
    assert tools["convert_time"].annotations.read_only_hint
    schema: Any = tools["convert_time"].input_schema
    assert "Asia/Tokyo" in schema["properties"]["source_timezone"]["description"]
    assert now.structured_content["datetime"].endswith("+09:00")
    assert then.structured_content["time_difference"] == "-3.25h"
    assert then.structured_content["target"]["datetime"].endswith("T13:15:00+05:45")
    assert json.loads(then.text) == then.structured_content
    assert wrong == [
        "there is no time zone 'Nowhere'",
        "'25:00' isn't a time such as 16:30",
        "Missing argument `source_timezone`",
    ]


# --- mcp-server-fetch, and the tools of the sample server that use the network --------------------


class Site(BaseHTTPRequestHandler):
    """A site with a page, a text, an error, and a part that robots may not read."""

    PAGES: ClassVar = {
        "/robots.txt": ("text/plain", b"User-agent: *\nDisallow: /private\n"),
        "/page": ("text/html; charset=utf-8", PAGE),
        "/private": ("text/html", PAGE),
        "/text": ("text/plain", b"0123456789"),
        "/v1/forecast": ("application/json", b'{"current": {"temperature_2m": 3.5}}'),
    }

    def do_GET(self) -> None:
        kind, body = self.PAGES.get(self.path.partition("?")[0], ("", b""))
        self.send_response(200 if kind else 404)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def run(driver: str, server: Server, play: Callable[[Any], Awaitable[None]]) -> None:
    """Connect to a server in memory, by the clock of the machine: sockets know no other."""
    module: Any = mcp_trio if driver == "trio" else mcp_asyncio_shim

    async def main() -> None:
        async with module.connect(server) as client:
            await play(client)

    if driver == "trio":
        trio.run(main)
    else:
        asyncio.run(main())


FETCHED: list[tuple[dict[str, Any], str]] = [
    ({"url": "SITE/page"}, r"/page:\nTea & cake, fresh$"),
    ({"url": "SITE/page", "raw": True}, r"type text/html; charset=utf-8:\n.*/page:\n<html>"),
    ({"url": "SITE/text", "max_length": 4}, "0123\n\n6 characters follow, from start_index 4$"),
    ({"url": "SITE/text", "start_index": 4}, r"/text:\n456789$"),
    ({"url": "SITE/text", "start_index": 10}, "has no more content$"),
    ({"url": "SITE/none"}, "/none has the status 404$"),
    ({"url": "SITE/private"}, "robots.txt forbids it"),
    ({"url": "SITE/page", "max_length": 0}, "`max_length`: input should be greater than 0$"),
    (
        {"url": "SITE/page", "max_length": 1_000_000},
        "`max_length`: input should be less than 1000000$",
    ),
    ({}, "Missing argument `url`$"),
    ({"url": "tea"}, 'relative URL without a base, not "tea"$'),
]


@pytest.mark.parametrize("driver", ["trio", "asyncio"])
@pytest.mark.parametrize("rows", [FETCHED[:1], long(FETCHED[1:])], ids=["one", "others"])
def test_tool_of_the_fetch_server(driver: str, rows: list[tuple[dict[str, Any], str]]) -> None:
    async def play(client: Any) -> None:
        for arguments, expected in rows:
            sent = dict(arguments)
            if "url" in sent:
                sent["url"] = sent["url"].replace("SITE", base)
            result = await client.call_tool("fetch", sent)
            assert re.search(expected, result.text, re.DOTALL), (arguments, result.text)

    with threaded_http_server(Site) as base:
        run(driver, fetch_server.make_server(), play)


@pytest.mark.parametrize("driver", ["trio", "asyncio"])
def test_prompt_of_the_fetch_server(driver: str) -> None:
    """It may read what robots may not, and says why it cannot."""

    async def play(client: Any) -> None:
        for path, text in ("/private", "Tea & cake, fresh"), ("/none", "has the status 404"):
            found = await client.get_prompt("fetch", {"url": f"{base}{path}"})
            assert text in found.messages[0].content.text
            assert base in found.description

    with threaded_http_server(Site) as base:
        run(driver, fetch_server.make_server(), play)


@pytest.mark.parametrize("driver", ["trio", "asyncio"])
def test_fetch_server_heeds_robots_that_are_forbidden(driver: str) -> None:
    async def play(client: Any) -> None:
        result = await client.call_tool("fetch", {"url": base})
        assert result.is_error
        assert "robots.txt may not be read" in result.text

    with threaded_http_server(fixed_response(403, {})) as base:
        run(driver, fetch_server.make_server(), play)


@pytest.mark.parametrize("driver", ["trio", "asyncio"])
def test_tools_of_the_sample_server_that_use_the_network(driver: str, tmp_path: Path) -> None:
    """They block in worker threads."""

    async def play(client: Any) -> None:
        page = await client.call_tool("fetch_url", {"url": f"{base}/text", "max_bytes": 4})
        assert page.structured_content["body"] == "0123"
        assert page.structured_content["truncated"]
        lost = await client.call_tool("fetch_url", {"url": f"{base}/none"})
        assert "404" in lost.structured_content["error"]
        found = await client.call_tool("weather", {"latitude": 52, "longitude": 13.4})
        assert found.structured_content["temperature"] == 3.5

    with threaded_http_server(Site) as base:
        server = sample_server.make_server(tmp_path / "notes", check_url=str, forecasts=base)
        run(driver, server, play)
