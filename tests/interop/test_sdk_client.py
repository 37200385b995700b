"""The official Python client (`mcp` 2.3) with our server over stdio and HTTP, in every mode: lists,
calls, errors, progress and cancellation.

`test_sdk_client_utilities.py` has the other notifications, `test_http_server_sdk.py` what is HTTP
only.
"""

from __future__ import annotations

from base64 import b64decode

import pytest
import trio
from mcp_types import BlobResourceContents, ImageContent, TextContent, TextResourceContents

from tests.interop.official import (
    HTTP,
    B,
    C,
    Case,
    D,
    E,
    cases,
    error_of,
    every_case,
    every_case_everywhere,
    every_streaming_case,
    opened,
    unfinished_streams,
)

pytestmark = unfinished_streams
READABLE = [
    ("test://static-text", "This is the content of the static text resource.", "text/plain"),
    (
        "test://template/1/data",
        '{"id":"1","templateTest":true,"data":"Data for ID: 1"}',
        "application/json",
    ),
    ("book://austen/emma", "emma, by austen.", "text/plain"),
]


@pytest.mark.requirement("LIFE-3", "LIFE-4", "META-10", "PRM-1", "RES-1", "TOOL-1")
@every_case_everywhere
async def test_sdk_client_reads_server_info(case: Case) -> None:
    async with opened(case) as client:
        if case.mode == E:  # it opens without a request
            return
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("everything", "1.2.3")
        assert client.server_info.title == ("One of everything" if case.includes(C) else None)
        assert client.instructions == "Call anything."
        offered = client.server_capabilities
        assert None not in (offered.tools, offered.resources, offered.prompts, offered.logging)
        assert (offered.completions is not None) is case.includes(B)


@every_case_everywhere
async def test_sdk_client_lists_and_reads(case: Case) -> None:
    """Members are compared as the client decodes them, in revisions that lack some of them."""
    async with opened(case) as client:
        first = await client.list_tools()
        [simple_text, weather] = first.tools
        assert (simple_text.name, weather.name) == ("test_simple_text", "weather")
        assert (weather.output_schema is not None) is case.includes(C)
        [echo, _] = (await client.list_tools(cursor=first.next_cursor)).tools
        assert echo.name == "echo"
        assert echo.input_schema["properties"] == {
            "text": {"type": "string", "description": "any text."}
        }
        assert [str(found.uri) for found in (await client.list_resources()).resources] == [
            "test://static-text",
            "test://static-binary",
        ]
        [template, _] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "test://template/{id}/data"
        for uri, text, mime_type in READABLE:
            [contents] = (await client.read_resource(uri)).contents
            assert isinstance(contents, TextResourceContents)
            assert (contents.text, contents.mime_type, contents.uri) == (text, mime_type, uri)
        [contents] = (await client.read_resource("test://static-binary")).contents
        assert isinstance(contents, BlobResourceContents)
        assert b64decode(contents.blob).startswith(b"\x89PNG")

        [prompt, _] = (await client.list_prompts()).prompts
        assert prompt.arguments is not None
        assert [(argument.name, argument.required) for argument in prompt.arguments] == [
            ("code", True),
            ("tone", False),
        ]
        got = await client.get_prompt("review", {"code": "x = 1"})
        assert [message.role for message in got.messages] == ["user", "assistant"]
        assert got.messages[0].content == TextContent(
            text="Review this, be kind: x = 1", type="text"
        )


@every_case_everywhere
async def test_sdk_client_calls_tools(case: Case) -> None:
    """Structured content, an image, and three ways to fail: no secret of a crash gets out."""
    async with opened(case) as client:
        echoed = await client.call_tool("echo", {"text": "naïve ☃ \U0001f600"})
        assert echoed.content == [TextContent(text="naïve ☃ \U0001f600", type="text")]
        assert not echoed.is_error

        rome = await client.call_tool("weather", {"city": "Rome"})
        data = {"city": "Rome", "celsius": 21.5}
        assert rome.structured_content == (data if case.includes(C) else None)
        assert rome.content == [TextContent(text='{"city":"Rome","celsius":21.5}', type="text")]

        [picture] = (await client.call_tool("test_image_content")).content
        assert isinstance(picture, ImageContent)
        assert picture.mime_type == "image/png"
        assert b64decode(picture.data).startswith(b"\x89PNG")

        failed = await client.call_tool("fail", {"how": "reason"})
        assert failed.is_error
        assert failed.content == [TextContent(text="the disk is full", type="text")]
        assert await error_of(client.call_tool("fail", {"how": "error"})) == (
            4001,
            {"tomorrow": True},
        )
        crashed = await client.call_tool("fail", {"how": "accident"})
        assert crashed.is_error
        assert "secret" not in str(crashed.content)


@pytest.mark.requirement("DEC-7", "PRM-4", "RES-7", "RES-8", "TOOL-16", "TOOL-17")
@every_case_everywhere
async def test_sdk_client_errors_have_codes_of_the_revision(case: Case) -> None:
    invalid, not_found = -32602, -32602 if case.version == E else -32002
    async with opened(case) as client:
        assert await error_of(client.call_tool("nothing")) == (invalid, None)
        assert await error_of(client.get_prompt("nothing")) == (invalid, None)
        assert await error_of(client.get_prompt("review", {})) == (invalid, None)
        missing = "test://nothing"
        assert await error_of(client.read_resource(missing)) == (not_found, {"uri": missing})
        if case.includes(C):
            assert (await client.call_tool("echo", {"txt": "typo"})).is_error
        else:
            assert await error_of(client.call_tool("echo", {"txt": "typo"})) == (invalid, None)
        assert not (await client.call_tool("echo", {"text": "still there"})).is_error


@pytest.mark.requirement("PROG-1")
@every_streaming_case
async def test_sdk_client_receives_progress(case: Case) -> None:
    """Messages of steps exist since 2025-03-26; the oldest revision gets numbers only."""
    async with opened(case) as client:
        received: list[tuple[float, float | None, str | None]] = []
        complete = trio.Event()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            # The client runs each callback in its own task: they come in any order, even after the
            # result.
            received.append((progress, total, message))
            if len(received) == 3:
                complete.set()

        counted = await client.call_tool("count", {"to": 3}, progress_callback=on_progress)
        assert counted.content == [TextContent(text="3", type="text")]
        await complete.wait()
        text = [f"step {step}" if case.includes(B) else None for step in (1, 2, 3)]
        assert sorted(received) == [(1, 3, text[0]), (2, 3, text[1]), (3, 3, text[2])]


@pytest.mark.requirement("CXL-6")
@every_case
async def test_sdk_client_cancels_call(case: Case) -> None:
    async with opened(case) as client:
        with trio.CancelScope() as scope:

            async def cancel(progress: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            await client.call_tool("wait", progress_callback=cancel)
        assert scope.cancelled_caught
        # `cancelled` returns when the handler was cancelled.
        assert (await client.call_tool("cancelled")).content == [
            TextContent(text="yes", type="text")
        ]


@cases(D, transports=["stdio", *HTTP])
async def test_sdk_client_pings_stateful_revisions(case: Case) -> None:
    async with opened(case) as client:
        await client.session.send_ping()


@cases(E, D, transports=["stdio", *HTTP])
async def test_sdk_client_many_concurrent_calls_are_answered(case: Case) -> None:
    async with opened(case) as client, trio.open_nursery() as nursery:

        async def call(number: int) -> None:
            result = await client.call_tool("echo", {"text": str(number)})
            assert result.content == [TextContent(text=str(number), type="text")]

        for number in range(100):
            nursery.start_soon(call, number)
