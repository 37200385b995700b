"""Our client and our command with `@modelcontextprotocol/server-everything`, written in TypeScript,
over stdio.

The server supports the stateful revisions only, so every test that does not name a revision
includes the fallback.
"""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ALL, Change
from mcp_core.types import (
    CreateMessageResult,
    ElicitationCapability,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from mcp_trio import ConnectFailed, Grace, PeerError, connect_stdio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp_trio import Client

pytestmark = pytest.mark.node
E, D, C, B, A = ALL


@pytest.fixture
def argv(node_modules: Path) -> list[str]:
    script = node_modules / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    return ["node", str(script), "stdio"]


@asynccontextmanager
async def opened(argv: list[str], *versions: str, **options: Any) -> AsyncIterator[Client]:
    with trio.fail_after(20):
        # The server does not exit while an operation runs, even a cancelled one; do not wait two
        # seconds for it.
        grace = Grace(stdin=0.1)
        async with connect_stdio(
            argv, versions=versions or ALL, stderr="discard", grace=grace, **options
        ) as client:
            yield client


@pytest.mark.parametrize("version", [D, C, B, A])
async def test_node_server_each_revision_opens(argv: list[str], version: str) -> None:
    async with opened(argv, version) as client:
        assert client.peer.dialect.version == version
        assert client.peer.info is not None
        assert client.peer.info.name == "mcp-servers/everything"
        assert len(await client.list_tools()) >= 12
        assert (await client.call_tool("echo", {"message": "hi"})).content == [
            TextContent("Echo: hi")
        ]
        await client.ping()


@pytest.mark.requirement("PROBE-2")
async def test_node_server_newest_common_revision_is_negotiated(argv: list[str]) -> None:
    async with opened(argv) as client:
        assert client.peer.dialect.version == D
        assert client.peer.instructions is not None


async def test_node_server_unsupported_revision_fails_with_cause(argv: list[str]) -> None:
    with pytest.raises(ConnectFailed, match=f"does not speak {E}"):
        async with opened(argv, E):
            pass


async def test_node_server_tools_are_called(argv: list[str]) -> None:
    """One result of each kind of content, read from another implementation's JSON."""
    async with opened(argv) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        annotations = tools["get-sum"].annotations
        assert annotations is not None
        assert annotations.read_only_hint is True
        assert annotations.destructive_hint is False
        schema = tools["get-structured-content"].output_schema
        assert schema is not None
        assert set(schema["required"]) == {"temperature", "conditions", "humidity"}

        total = await client.call_tool("get-sum", {"a": 1, "b": 2.5})
        assert total.content == [TextContent("The sum of 1 and 2.5 is 3.5.")]
        weather = await client.call_tool("get-structured-content", {"location": "Chicago"})
        assert weather.structured_content == {
            "temperature": 36,
            "conditions": "Light rain / drizzle",
            "humidity": 82,
        }
        assert (await client.call_tool("get-structured-content", {"location": "Rome"})).is_error

        before, picture, *_ = (await client.call_tool("get-tiny-image")).content
        assert isinstance(before, TextContent)
        assert isinstance(picture, ImageContent)
        assert picture.mime_type == "image/png"
        assert b64decode(picture.data).startswith(b"\x89PNG")
        [message] = (
            await client.call_tool("get-annotated-message", {"messageType": "error"})
        ).content
        assert isinstance(message, TextContent)
        assert message.annotations is not None
        assert message.annotations.audience == ["user", "assistant"]
        assert message.annotations.priority == 1.0
        _, *links = (await client.call_tool("get-resource-links", {"count": 2})).content
        assert [type(link) for link in links] == [ResourceLink, ResourceLink]
        arguments = {"resourceType": "Text", "resourceId": 1}
        _, embedded, _ = (await client.call_tool("get-resource-reference", arguments)).content
        assert isinstance(embedded, EmbeddedResource)
        assert embedded.resource.uri == "demo://resource/dynamic/text/1"


async def test_node_server_resources_and_prompts_are_read(argv: list[str]) -> None:
    """Text and blobs, templates, and the errors for a wrong URI and a missing argument."""
    async with opened(argv) as client:
        resources = await client.list_resources()
        assert "architecture.md" in {found.name for found in resources}
        [contents] = (await client.read_resource(resources[0].uri)).contents
        assert contents.mime_type == "text/markdown"
        assert contents.text
        templates = {found.uri_template for found in await client.list_resource_templates()}
        assert "demo://resource/dynamic/text/{resourceId}" in templates
        [contents] = (await client.read_resource("demo://resource/dynamic/blob/7")).contents
        assert contents.blob is not None
        assert b64decode(contents.blob).startswith(b"Resource 7")
        with pytest.raises(PeerError) as missing:
            await client.read_resource("demo://nothing")
        assert missing.value.code == -32602

        prompts = {prompt.name: prompt for prompt in await client.list_prompts()}
        assert prompts["args-prompt"].arguments is not None
        assert [argument.required for argument in prompts["args-prompt"].arguments] == [True, False]
        got = await client.get_prompt("args-prompt", {"city": "Rome", "state": "Lazio"})
        assert [message.content for message in got.messages] == [
            TextContent("What's weather in Rome, Lazio?")
        ]
        with pytest.raises(PeerError) as incomplete:
            await client.get_prompt("args-prompt", {})
        assert incomplete.value.code == -32602
        got = await client.get_prompt(
            "resource-prompt", {"resourceType": "Text", "resourceId": "1"}
        )
        assert isinstance(got.messages[1].content, EmbeddedResource)


@pytest.mark.requirement("CXL-9")
async def test_node_server_sends_progress_until_cancelled(argv: list[str]) -> None:
    """The server works on after the cancellation: late progress must not reach anyone."""
    tool = "trigger-long-running-operation"
    async with opened(argv) as client:
        received: list[tuple[float, float | None, str | None]] = []
        done = await client.call_tool(
            tool, {"duration": 0.15, "steps": 3}, progress=lambda *step: received.append(step)
        )
        assert done.content == [
            TextContent("Long running operation completed. Duration: 0.15 seconds, Steps: 3.")
        ]
        assert received == [(1, 3, None), (2, 3, None), (3, 3, None)]

        # The server continues a cancelled call and reports progress. Neither may reach the caller
        # or disturb other calls.
        received.clear()
        with trio.CancelScope() as scope:

            def cancel(*step: Any) -> None:
                received.append(step)
                scope.cancel()

            await client.call_tool(tool, {"duration": 0.3, "steps": 6}, progress=cancel)
        assert scope.cancelled_caught
        again = await client.call_tool(tool, {"duration": 0.4, "steps": 1})
        assert not again.is_error
        assert len(received) == 1


@pytest.mark.requirement("LOG-3", "COMP-2", "PAGE-5", "RES-4")
@pytest.mark.parametrize("version", [D, A])
async def test_node_server_completion_pages_logs_and_updates(argv: list[str], version: str) -> None:
    """The server breaks two rules about unknown values; our client takes that calmly."""
    logged: list[Any] = []
    async with opened(argv, version, on_log=lambda message: logged.append(message.data)) as client:
        assert (await client.complete("completable-prompt", "department", "S")).values == [
            "Sales",
            "Support",
        ]
        names = await client.complete(
            "completable-prompt", "name", "", arguments={"department": "Sales"}
        )
        # `context` exists since 2025-06-18.
        assert names.values == (["David", "Eve", "Frank"] if version == D else [])
        template = "demo://resource/dynamic/text/{resourceId}"
        assert (await client.complete(template, "resourceId", "7")).values == ["7"]
        assert (await client.complete(template, "resourceId", "x")).values == []
        # The server returns no values for an unknown argument; COMP-4 requires -32602.
        assert (await client.complete("completable-prompt", "nothing", "")).values == []
        for nothing in "nothing", "demo://{nothing}":
            with pytest.raises(PeerError) as unknown:
                await client.complete(nothing, "x", "")
            assert unknown.value.code == -32602

        # The server has no pages and ignores cursors; PAGE-6 requires -32602 for an unknown one.
        for what in "tools", "resources", "resources/templates", "prompts":
            page = await client.request(f"{what}/list", {"cursor": "made up"})
            assert page == await client.request(f"{what}/list")
            assert page.next_cursor is None

        one, two = (template.replace("{resourceId}", number) for number in "12")
        toggle = "toggle-subscriber-updates"  # one update at once, more every five seconds
        async with client.listen(uris=[one]) as changes:
            while not logged:  # over HTTP it arrives on another stream  # noqa: ASYNC110
                await trio.sleep(0.01)
            [text] = logged
            assert text.startswith(f"Received Subscribe Resource request for URI: {one} ")
            await client.set_log_level("error")
            async with client.listen(uris=[two]) as others:
                await client.call_tool(toggle)
                assert await anext(changes) == Change(uri=one)
                assert await anext(others) == Change(uri=two)
                await client.call_tool(toggle)
            await client.ping()
            await client.call_tool(toggle)
            assert await anext(changes) == Change(uri=one)
        assert len(logged) == 1


# -- Input requests --------------------------------------------------------------------------------


def raw(text: str) -> Any:
    """Return the response that the server got: its tools print it as JSON at the end."""
    return json.loads(text[text.index("{") :])


@pytest.mark.requirement("ELIC-1", "ELIC-9", "ELIC-11")
@pytest.mark.parametrize("version", [D, C])
async def test_node_server_form_is_answered(argv: list[str], version: str) -> None:
    """It shows the same form in each revision, with all kinds of fields that there are in the
    newer one.
    """
    tool = "trigger-elicitation-request"
    answers: list[Any] = [{"name": "Ada", "integer": 7}, ElicitResult(action="decline"), None]
    questions: list[Any] = []

    def fill(question: Any) -> Any:
        questions.append(question)
        return answers.pop(0)

    async with opened(argv, version, on_elicit=fill) as client:
        filled = await client.call_tool(tool)
        assert "- Name: Ada\n- Favorite Integer: 7\n" in filled.text
        assert raw(filled.text) == {
            "action": "accept",
            "content": {
                "name": "Ada",
                "firstLine": "It was a dark and stormy night.",
                "integer": 7,
                "number": 3.14,
                "untitledSingleSelectEnum": "Monica",
                "untitledMultipleSelectEnum": ["Guitar"],
                "titledSingleSelectEnum": "hero-1",
                "titledMultipleSelectEnum": ["fish-1"],
                "legacyTitledEnum": "pet-1",
            },
        }
        for action in "decline", "cancel":
            assert raw((await client.call_tool(tool)).text) == {"action": action}
    assert {question.message for question in questions} == {
        "Please provide inputs for the following fields:"
    }
    assert questions[0].requested_schema["required"] == ["name"]


@pytest.mark.requirement("ELIC-14", "ELIC-15", "ELIC-16")
async def test_node_server_url_elicitation_is_answered(argv: list[str]) -> None:
    """Three user actions as the server reports them, then its -32042 error and the retry."""
    answers: list[Any] = [{}, ElicitResult(action="decline"), None, {}]
    questions: list[Any] = []

    def visit(question: Any) -> Any:
        questions.append(question)
        return answers.pop(0)

    tool = "trigger-url-elicitation"
    page = {"url": "https://example.com/pages", "elicitationId": "e1"}
    pages = ElicitationCapability(url={})
    async with opened(argv, D, on_elicit=visit, elicitation=pages) as client:
        for action in "accept", "decline", "cancel":
            assert raw((await client.call_tool(tool, page)).text) == {"action": action}
        # The server may also require a visit to a URL first, after which the same call succeeds.
        with pytest.raises(PeerError) as required:
            await client.call_tool(tool, {**page, "errorPath": True})
        assert required.value.code == -32042
        [first] = required.value.data["elicitations"]
        assert (first["mode"], first["url"]) == ("url", "https://modelcontextprotocol.io")
        assert raw((await client.call_tool(tool, {**page, "errorPath": True})).text) == {
            "action": "accept"
        }
    assert {(question.mode, question.url, question.elicitation_id) for question in questions} == {
        ("url", "https://example.com/pages", "e1")
    }


@pytest.mark.requirement("SAMP-1", "SAMP-3", "SAMP-12")
@pytest.mark.parametrize("version", [D, A])
async def test_node_server_sampling_is_answered(argv: list[str], version: str) -> None:
    """The server's text shows the result as it arrived there, and the user's refusal."""
    sampled = CreateMessageResult(
        role="assistant", content=TextContent("Hello"), model="small-1", stop_reason="endTurn"
    )
    answers = [sampled, None]
    questions: list[Any] = []

    def go_on(question: Any) -> Any:
        questions.append(question)
        return answers.pop(0)

    tool = "trigger-sampling-request"
    async with opened(argv, version, on_sample=go_on) as client:
        answered = await client.call_tool(tool, {"prompt": "Say hello.", "maxTokens": 9})
        assert raw(answered.text) == {
            "role": "assistant",
            "content": {"type": "text", "text": "Hello"},
            "model": "small-1",
            "stopReason": "endTurn",
        }
        [message] = questions[0].messages
        assert message.content == TextContent(f"Resource {tool} context: Say hello.")
        assert (questions[0].max_tokens, questions[0].temperature) == (9, 0.7)
        assert questions[0].system_prompt == "You are a helpful test server."
        refused = await client.call_tool(tool, {"prompt": "Say it again."})
        assert refused.is_error
        assert "the user rejected the request" in refused.text


@pytest.mark.requirement("ROOT-1", "ROOT-2")
@pytest.mark.parametrize("version", [D, A])
async def test_node_server_requests_roots_again_after_change(argv: list[str], version: str) -> None:
    """Our notification makes the server ask again; its log says when it has the new roots."""
    places = ["file:///home/me", "file:///work"]
    updates, updated = trio.open_memory_channel[Any](10)

    async def uris(client: Client) -> list[str]:
        """The server requests the roots once by itself, and again after a change, and logs when it
        has them.
        """
        assert (
            await updated.receive() == f"Roots updated: {len(places)} root(s) received from client"
        )
        listed = (await client.call_tool("get-roots-list")).text
        return [line.strip() for line in listed.splitlines() if "URI: " in line]

    async with opened(
        argv,
        version,
        on_roots=lambda: places,
        on_log=lambda message: updates.send_nowait(message.data),
    ) as client:
        assert await uris(client) == ["URI: file:///home/me", "URI: file:///work"]
        places = ["file:///elsewhere"]
        client.roots_changed()
        assert await uris(client) == ["URI: file:///elsewhere"]
    assert updates.statistics().current_buffer_used == 0


@pytest.mark.requirement("CXL-10")
async def test_node_server_late_input_request_is_ignored(argv: list[str]) -> None:
    """The server does not cancel the input requests of a cancelled call (CXL-18): a response
    still arrives.
    """
    cancelled, answered = trio.Event(), trio.Event()

    async def ponder(question: Any) -> None:
        scope.cancel()
        await cancelled.wait()
        answered.set()

    async with opened(argv, D, on_elicit=ponder) as client:
        with trio.CancelScope() as scope:
            await client.call_tool("trigger-elicitation-request")
        assert scope.cancelled_caught
        cancelled.set()
        await answered.wait()
        assert (await client.call_tool("echo", {"message": "hi"})).text == "Echo: hi"


# -- The command -----------------------------------------------------------------------------------


def mcp_trio(*words: str, server: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    argv = [sys.executable, "-m", "mcp_trio", *words, "--", *server]
    return subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)


def test_command_inspects_node_server(argv: list[str]) -> None:
    shown = mcp_trio("inspect", "--json", server=argv)
    assert shown.returncode == 0, shown.stderr
    offer = json.loads(shown.stdout)
    assert list(offer) == ["server", "tools", "resources", "resourceTemplates", "prompts"]
    assert offer["server"]["name"] == "mcp-servers/everything"
    assert {"echo", "get-sum"} <= {tool["name"] for tool in offer["tools"]}
    assert "architecture.md" in {found["name"] for found in offer["resources"]}
    assert len(offer["resourceTemplates"]) == 2
    assert "args-prompt" in {prompt["name"] for prompt in offer["prompts"]}

    older = mcp_trio("inspect", "--json", "--revision", B, server=argv)
    assert json.loads(older.stdout)["server"]["protocolVersion"] == B
    page = mcp_trio("inspect", server=argv)
    assert "get-sum" in page.stdout


def test_command_calls_node_server_tools(argv: list[str]) -> None:
    """Command-line arguments become numbers, as the tool's schema requires."""
    total = mcp_trio("call", "get-sum", "a=1", "b=2.5", server=argv)
    assert (total.returncode, total.stdout) == (0, "The sum of 1 and 2.5 is 3.5.\n"), total.stderr
    weather = mcp_trio(
        "call", "--json", "get-structured-content", '{"location": "Chicago"}', server=argv
    )
    assert json.loads(weather.stdout)["structuredContent"]["temperature"] == 36
    slow = mcp_trio(
        "call", "trigger-long-running-operation", "duration=0.1", "steps=2", server=argv
    )
    assert slow.stdout.startswith("Long running operation completed")
    assert "2 of 2" in slow.stderr


def test_command_with_node_server_reports_errors(argv: list[str]) -> None:
    failed = mcp_trio("call", "get-structured-content", '{"location": "Rome"}', server=argv)
    assert failed.returncode == 1
    unfit = mcp_trio("call", "get-sum", "a=1", "b=x", server=argv)
    assert unfit.returncode == 2
    assert "b must be number" in unfit.stderr
    unknown = mcp_trio("inspect", "--revision", E, server=argv)
    assert unknown.returncode == 3
    assert f"does not speak {E}" in unknown.stderr
