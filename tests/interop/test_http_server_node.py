"""The official TypeScript client (`@modelcontextprotocol/sdk` 1.32) with our server, over
Streamable HTTP and HTTP+SSE.

It supports the stateful revisions. `ts_client.mjs` plays a scene and reports the results.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ALL
from mcp_trio import Context, Server, connect
from tests.interop.official import D, everything, served
from tests.interop.tcp_proxy import line_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.node
SCRIPT = Path(__file__).with_name("ts_client.mjs")
UNKNOWN = "unknown session"


@pytest.fixture
def play(node_modules: Path) -> Callable[..., Awaitable[Any]]:
    """Return a function that lets the client play a scene with the server at a URL and returns its
    report.
    """

    async def play(url: str, scene: str, transport: str = "http") -> Any:
        argv = ["node", str(SCRIPT), str(node_modules), url, transport, scene]
        with trio.fail_after(30):
            done = await trio.run_process(
                argv, capture_stdout=True, capture_stderr=True, check=False
            )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    return play


def text(result: Any) -> str:
    [content] = result["content"]
    assert isinstance(content["text"], str)
    return content["text"]


def steps(report: Any) -> list[str]:
    return [progress.get("message") for progress in report["progress"]]


def verbs(report: Any) -> list[str]:
    return [request["verb"] for request in report["requests"]]


# -- Lists, calls and input requests ---------------------------------------------------------------


def toured(report: Any) -> None:
    assert report["server"] == {
        "name": "everything",
        "version": "1.2.3",
        "title": "One of everything",
    }
    assert report["instructions"] == "Call anything."
    assert set(report["capabilities"]) == {
        "tools",
        "resources",
        "prompts",
        "logging",
        "completions",
        "tasks",
    }
    # The client does not follow the pages of a list.
    assert report["tools"] == ["test_simple_text", "weather"]
    assert text(report["echo"]) == "naïve ☃ \U0001f600"
    assert report["weather"]["structuredContent"] == {"city": "Rome", "celsius": 21.5}
    assert (report["failed"]["isError"], text(report["failed"])) == (True, "the disk is full")
    assert (report["refused"]["code"], report["refused"]["data"]) == (4001, {"tomorrow": True})
    assert (report["unknown"]["code"], report["unknown"]["data"]) == (
        -32002,
        {"uri": "test://nothing"},
    )
    text_of_resource = "This is the content of the static text resource."
    assert report["resource"]["contents"][0]["text"] == text_of_resource
    assert [message["role"] for message in report["prompt"]["messages"]] == ["user", "assistant"]
    assert report["suggested"]["completion"]["values"] == ["frank", "friendly"]
    assert steps(report)[:3] == ["step 1", "step 2", "step 3"]
    assert [progress["progress"] for progress in report["progress"]] == [
        1,
        2,
        3,
        0,
    ]  # the last one belongs to `wait`
    assert report["many"] == [str(number) for number in range(20)]
    assert report["notifications"] == [
        "notifications/message",
        "notifications/message",
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    ]
    assert "enough" in report["aborted"]["message"]
    assert text(report["cancelled"]) == "yes"


@pytest.mark.requirement("SHL-11", "SHL-20", "CXL-6", "PROG-1", "RES-4", "LOG-3")
@pytest.mark.parametrize("transport", ["http", "http-sse"])
async def test_node_client_tours(play: Callable[..., Awaitable[Any]], transport: str) -> None:
    async with served(everything(), transport) as where:
        report = await play(where.url, "tour")
    toured(report)
    assert report["version"] == D
    first, *rest = report["requests"]
    assert (first["session"], first["version"]) == (None, None)
    assert {(request["session"], request["version"]) for request in rest} == {
        (report["session"], D)
    }
    assert (verbs(report).count("GET"), verbs(report)[-1], rest[-1]["status"]) == (1, "DELETE", 204)
    assert report["errors"] == []


@pytest.mark.requirement("SSE-1", "SSE-2", "SSE-4")
async def test_node_client_tours_over_http_sse(play: Callable[..., Awaitable[Any]]) -> None:
    async with served(everything()) as where:
        report = await play(where.url, "tour", "sse")
    toured(report)
    posts = [request for request in report["requests"] if request["verb"] == "POST"]
    assert {request["status"] for request in posts} == {202}
    assert report["session"] is None


@pytest.mark.parametrize(
    ("transport", "mode"),
    [("http", "http"), ("http", "http-sse"), ("http", "http-json"), ("sse", "http")],
)
async def test_node_client_answers_input_requests(
    play: Callable[..., Awaitable[Any]], transport: str, mode: str
) -> None:
    """The client's schemas check each request, and it reports no error in any mode."""
    async with served(everything(), mode) as where:
        report = await play(where.url, "questions", transport)
    assert text(report["booked"]) == "BookedSeats(count=2, where='aisle'), {'dish': 'a2'}"
    assert text(report["visited"]) == "decline"
    [page] = report["locked"]["data"]["elicitations"]
    assert (report["locked"]["code"], page["url"]) == (-32042, "https://example.com/pages?id=v2")
    assert text(report["sampled"]) == "LLM response: Hello (small-1, endTurn)"
    assert text(report["roots"]) == "Roots: home=file:///home/me"
    assert report["notifications"] == ["notifications/elicitation/complete"]
    seats, meal, page, sampled = report["questions"]
    assert (seats["message"], meal["message"]) == ("Seats on KL 1234", "To eat")
    assert (page["mode"], page["elicitationId"]) == ("url", "v1")
    assert (sampled["systemPrompt"], sampled["maxTokens"]) == ("Be brief.", 100)
    assert report["errors"] == []


# -- Streams and sessions that end -----------------------------------------------------------------


def worker(*steps: str) -> Server:
    """A server with a tool that reports each of `steps`.

    At `leave` it releases its client, at `wait` it waits for a call of `go_on`.
    """
    server = Server("worker", versions=ALL)
    going_on = trio.Event()

    @server.tool
    async def work(context: Context) -> str:
        """Take all steps."""
        for number, step in enumerate(steps):
            if step == "leave":
                context.close_stream(0.02)
            elif step == "wait":
                await going_on.wait()
            else:
                await context.progress(number, None, step)
        return "done"

    @server.tool
    def go_on() -> None:
        """End the wait."""
        going_on.set()

    return server


@pytest.mark.requirement("SHL-6", "SHL-7")
async def test_node_client_released_reconnects(play: Callable[..., Awaitable[Any]]) -> None:
    async with served(worker("one", "leave", "two", "three")) as where:
        report = await play(where.url, "work")
    assert (steps(report), text(report["worked"])) == (["one", "two", "three"], "done")
    # A priming event in each response, three steps and the result.
    assert len(report["tokens"]) == 6
    [back] = [request for request in report["requests"] if request["lastEventId"]]
    assert (back["verb"], back["status"], back["lastEventId"]) == ("GET", 200, report["tokens"][1])
    assert report["errors"] == []


@pytest.mark.requirement("SHL-9")
async def test_node_client_after_cut_connection_reconnects(
    play: Callable[..., Awaitable[Any]],
) -> None:
    """The connection is cut between two steps; the client resumes and misses no progress."""
    server = worker("one", "wait", "two", "three")
    reports = []
    async with served(server) as where, line_to(where.url) as line, trio.open_nursery() as nursery:

        async def cut() -> None:
            await line.until(b'"message":"one"')
            line.cut()
            async with connect(where.url) as somebody:
                await somebody.call_tool("go_on")

        nursery.start_soon(cut)
        reports.append(await play(line.url, "work"))
    [report] = reports
    assert (steps(report), text(report["worked"])) == (["one", "two", "three"], "done")
    # The call, and the standalone stream if it was open and reconnected before the end of the call.
    back = {
        (request["lastEventId"], request["status"])
        for request in report["requests"]
        if request["lastEventId"]
    }
    assert (report["tokens"][1], 200) in back
    assert back <= {(report["tokens"][1], 200), ("0-0", 200)}


@pytest.mark.requirement("SHL-9")
async def test_node_client_resumes_stream_of_another_client(
    play: Callable[..., Awaitable[Any]],
) -> None:
    async with served(worker("one", "wait", "two")) as where:
        report = await play(where.url, "successor")
    assert (steps(report), text(report["worked"])) == (["one", "two"], "done")


async def test_node_client_abandoned_calls_end(play: Callable[..., Awaitable[Any]]) -> None:
    """The client resumes the stream of a cancelled call until a status ends that."""
    async with served(everything()) as where:
        report = await play(where.url, "abandoned")
    assert "enough" in report["cancelled"]["message"]
    resumed = [each["status"] for each in report["requests"] if each["lastEventId"]]
    assert resumed[0] == 405
    assert report["before"] == 0
    assert (report["ended"]["code"], report["ended"]["message"].count("session has ended")) == (
        -32603,
        1,
    )


async def test_node_client_closed_during_call_leaves_its_session_to_a_delete(
    play: Callable[..., Awaitable[Any]],
) -> None:
    async with served(everything()) as where:
        report = await play(where.url, "leaves")
    assert "Connection closed" in report["left"]["message"]
    assert (report["deleted"], text(report["cancelled"])) == (204, "yes")


@pytest.mark.requirement("SHL-24")
async def test_node_client_ended_session_is_an_error(play: Callable[..., Awaitable[Any]]) -> None:
    async with served(everything()) as where:
        report = await play(where.url, "ended")
    assert (report["deleted"], report["gone"], report["after"]) == (204, 404, None)
    for failed in report["call"], report["again"]:
        assert failed["code"] == 404
    assert UNKNOWN in report["call"]["message"]
    assert text(report["anew"]) == "again"
