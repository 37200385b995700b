"""The client over HTTP against a server that the test plays: calls, connections, errors, the end.

The wire format is tested in `tests/core/http`, with the machine. Sockets are in
`test_transport_sockets.py`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import (
    ALL,
    AuthRequired,
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    PeerError,
    RemoteProtocolError,
)
from mcp_core import types as t
from mcp_trio import connect
from mcp_trio.testing import judge_trace
from tests.harness import either
from tests.harness.jsonrpc import D, E
from tests.harness.wire.client import CallTask
from tests.harness.wire.http1_server import (
    URL,
    MemoryConnector,
    PlayedHttpServer,
    Request,
    connect_to,
    connected,
    playing,
)
from tests.levels import long

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

MonkeyPatch = pytest.MonkeyPatch

pytestmark = pytest.mark.usefixtures("each_driver")

DONE: Any = {"content": [], "resultType": "complete"}
ERAS = [pytest.param(D, id="legacy"), pytest.param(E, id="modern")]
CALL = "tools/call"


def text(words: str) -> Any:
    return {"content": [{"type": "text", "text": words}], "resultType": "complete"}


async def hang(request: Request) -> None:
    await either.sleep_forever()


async def close_after(request: Request) -> None:
    await either.aclose_forcefully(request.connection.stream)


def answering(**options: Any) -> Callable[[Request], Awaitable[None]]:
    async def answer(request: Request) -> None:
        await request.answer(**options)

    return answer


async def echo(request: Request) -> None:
    await request.result(text(request.message["params"]["arguments"]["words"]))


# --- a conversation -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_http_client_is_answered_in_each_revision(
    version: str, monkeypatch: MonkeyPatch
) -> None:
    """A session begins with three requests and ends with DELETE; 2026-07-28 begins with one."""
    server = PlayedHttpServer(version, session="s1" if version == D else "")
    server.answers[CALL] = echo
    crossed: list[tuple[str, bytes]] = []
    options: Any = {"trace": lambda *each: crossed.append(each)} if either.on_trio() else {}
    async with connected(server, monkeypatch, headers={"X-Mine": "1"}, **options) as client:
        assert client.peer.dialect.version == version
        await either.wait_all_tasks_blocked()
        for words in "one", "two":
            assert (await client.call_tool("t", {"words": words})).text == words
        assert repr(client._transport._requests).endswith(": 0 under way>")
    opening = {D: ["initialize", "notifications/initialized", "GET"], E: ["server/discover"]}[
        version
    ]
    closing = {D: ["DELETE"], E: []}[version]
    assert server.request_names() == [*opening, CALL, CALL, *closing]
    assert all(request.headers["x-mine"] == "1" for request in server.requests)
    assert all(request.headers["host"] == "played.test" for request in server.requests)
    assert (
        server.opened <= 2
    )  # the standalone stream, which the server rejected, may have had a connection of its own
    if not either.on_trio():
        return
    messages = [line for direction, line in crossed if direction == "sent"]
    assert len(messages) == len([request for request in server.requests if request.message])
    assert [b'"tools/call"' in line for line in messages[-2:]] == [True, True]
    assert crossed[-1][0] == "received"
    assert b'"two"' in crossed[-1][1]


async def test_http_client_call_headers_override_client_headers(monkeypatch: MonkeyPatch) -> None:
    server = PlayedHttpServer(E, tools_call=DONE)
    async with connected(server, monkeypatch, headers={"x-mine": "1", "x-ours": "2"}) as client:
        await client.call_tool("t", headers={"X-Mine": "3"})
        await client.call_tool("t")
        with pytest.raises(ValueError, match="set by the protocol"):
            await client.call_tool("t", headers={"Mcp-Method": "x"})
    received = [
        (request.headers["x-mine"], request.headers["x-ours"]) for request in server.requests
    ]
    assert received == [("1", "2"), ("3", "2"), ("1", "2")]


@either.trio_only
async def test_http_client_connect_accepts_a_url(monkeypatch: MonkeyPatch) -> None:
    """`connect` tells a URL from a command, and uses the environment's proxy by default."""
    server = PlayedHttpServer(E)

    class ServerConnector(MemoryConnector):
        def __init__(self, *origin: Any, **options: Any) -> None:
            super().__init__(*origin, **options)
            assert (self.origin, options) == (
                ("https", "played.test", 443),
                {"tls": None, "proxy": "environment", "prior_knowledge": False},
            )

    ServerConnector.server = server
    monkeypatch.setattr("mcp_trio.http_client._connector.Connector", ServerConnector)
    async with (
        either.open_nursery() as server.nursery,
        connect("HTTPS://played.test/mcp") as client,
    ):
        assert client.peer.dialect.version == E


@either.trio_only
@pytest.mark.parametrize("target", ["server.py", "ftp://here", "httpx://here"])
async def test_http_client_connect_invalid_target_raises(target: str) -> None:
    with pytest.raises(TypeError, match="connect to a URL, to a Server or to a command"):
        connect(target)


@pytest.mark.parametrize(
    ("url", "options", "text"),
    [
        ("http://", {}, "host and port of 'http://' cannot be read"),
        ("http://me:secret@here/", {}, "must not contain a user name or password"),
        (URL, {"headers": {"Host": "there"}}, "the header Host is set by the protocol"),
        (URL, {"headers": {"x": "a\r\nb"}}, "the value of the header x has characters"),
        (URL, {"keep_alive": -1}, "keep_alive is a number of seconds above 0, or None, not -1"),
    ],
)
async def test_http_client_invalid_url_or_option_raises(url: str, options: Any, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)) as caught:
        await either.connect(url, **options).__aenter__()
    assert "secret" not in str(caught.value)


async def test_http_client_message_of_a_megabyte_arrives_either_way(
    monkeypatch: MonkeyPatch,
) -> None:
    words = "x" * 1_000_000
    async with connected(PlayedHttpServer(E, tools_call=echo), monkeypatch) as client:
        assert (await client.call_tool("t", {"words": words})).text == words


async def test_http_client_two_hundred_concurrent_calls(monkeypatch: MonkeyPatch) -> None:
    """There are 100 connections; the other calls wait, and all connections are reused."""
    server = PlayedHttpServer(E)
    most = running = 0

    async def answer(request: Request) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await either.wait_all_tasks_blocked()
        running -= 1
        await echo(request)

    server.answers[CALL] = answer
    async with connected(server, monkeypatch) as client:
        results: dict[int, str] = {}

        async def call(number: int) -> None:
            results[number] = (await client.call_tool("t", {"words": str(number)})).text

        async with either.open_nursery() as nursery:
            for number in range(200):
                nursery.start_soon(call, number)
        assert results == {number: str(number) for number in range(200)}
    assert server.opened == most == 100


@pytest.mark.requirement("CXL-2", "CXL-3")
async def test_http_client_cancel_of_unsent_call_sends_nothing(
    monkeypatch: MonkeyPatch, tmp_path: Path
) -> None:
    """A server would get a cancellation of a request that it never saw."""
    server = PlayedHttpServer(D, tools_call=hang)
    may_connect = either.Event()

    async def connect_late() -> None:
        if server.request_names()[-1:] == [CALL]:
            await may_connect.wait()

    server.before_connecting = connect_late
    trace = tmp_path / "trace.mcp.jsonl"
    async with connected(server, monkeypatch, record=trace) as client:
        await either.wait_all_tasks_blocked()
        async with either.open_nursery() as nursery:
            sent = CallTask(nursery, lambda: client.call_tool("sent"))
            await either.wait_all_tasks_blocked()
            unsent = CallTask(nursery, lambda: client.call_tool("unsent"))
            await either.wait_all_tasks_blocked()  # it waits for a connection
            unsent.scope.cancel()
            await unsent.ended.wait()
            may_connect.set()
            await either.wait_all_tasks_blocked()
            assert server.request_names()[-1] == CALL
            sent.scope.cancel()
            await sent.ended.wait()
            await either.wait_all_tasks_blocked()
    [call] = [each.message["id"] for each in server.requests if each.rpc_method == CALL]
    cancelled = [
        each.message["params"]["requestId"]
        for each in server.requests
        if each.rpc_method == "notifications/cancelled"
    ]
    assert cancelled == [call]
    judge_trace(trace, level="all")


# --- incomplete responses -----------------------------------------------------------------------

ANSWER = b'{"jsonrpc":"2.0","id":2,"result":{"content":[],"resultType":"complete"}}'
AS_JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(ANSWER),
    ANSWER,
)
_EVENT = b"data: %b\n\n" % ANSWER
AS_EVENTS = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    b"%x\r\n%b\r\n0\r\n\r\n"
) % (len(_EVENT), _EVENT)


@pytest.mark.parametrize(
    ("answer", "whole_at"), [(AS_JSON, len(AS_JSON)), (AS_EVENTS, len(AS_EVENTS) - 7)]
)
@pytest.mark.parametrize("stride", [29, long(1)])
async def test_http_client_truncated_response_fails_its_call_only(
    answer: bytes, whole_at: int, stride: int, monkeypatch: MonkeyPatch
) -> None:
    """The response is cut after each byte; a result counts only once its message is whole."""
    server = PlayedHttpServer(E)
    edges = {whole_at - 1, whole_at, len(answer) - 1} - {len(answer)}
    for length in sorted(edges.union(range(0, len(answer), stride))):

        async def cut(request: Request, length: int = length) -> None:
            if request.message["params"]["name"] == "well":
                await request.result(text("well"))
                return
            message = answer[:length].replace(b'"id":2', b'"id":%d' % request.message["id"])
            await request.connection.stream.send_all(message)
            await close_after(request)

        server.answers[CALL] = cut
        async with connected(server, monkeypatch) as client:
            if length >= whole_at:
                assert (await client.call_tool("cut")).content == []
            else:
                with pytest.raises((ConnectionLost, RemoteProtocolError), match="tools/call: "):
                    await client.call_tool("cut")
            assert (await client.call_tool("well")).text == "well"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "not HTTP/1.1; is something else listening there?"),
        (b"220 ", "not HTTP/1.1; is something else listening there?"),  # and then it waits
        (b"\x15\x03\x01\0\x02\x02\x50", "the server speaks TLS; is its address https:// instead?"),
        # It may have echoed a header that it got.
        (b"HTTP/1.1 200 OK\r\nx CANARY: 1\r\n\r\n", "not HTTP/1.1: illegal header line"),
    ],
)
async def test_http_client_invalid_http_fails_its_call(
    answer: bytes, text: str, monkeypatch: MonkeyPatch
) -> None:
    async def nonsense(request: Request) -> None:
        await request.connection.stream.send_all(answer)
        await either.sleep_forever()

    server = PlayedHttpServer(E, tools_call=nonsense)
    async with connected(server, monkeypatch) as client:
        with pytest.raises(ConnectionLost, match=re.escape(text)) as caught:
            await client.call_tool("t")
        assert "CANARY" not in str(caught.value)
        server.answers[CALL] = DONE
        await client.call_tool("t")


async def test_http_client_bytes_after_a_response_are_not_the_next_response(
    monkeypatch: MonkeyPatch,
) -> None:
    """They come with it, before the next request: the two sides are out of step."""

    async def twice(request: Request) -> None:
        number = request.message["id"]
        messages = [
            {"jsonrpc": "2.0", "id": id, "result": text(words)}
            for id, words in ((number, "right"), (number + 1, "smuggled"))
        ]
        bodies = [json.dumps(message).encode() for message in messages]
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        await request.connection.stream.send_all(b"".join(head % len(b) + b for b in bodies))
        await either.sleep_forever()

    server = PlayedHttpServer(E, tools_call=twice)
    async with connected(server, monkeypatch) as client:
        assert (await client.call_tool("t")).text == "right"
        server.answers[CALL] = text("fresh")
        assert (await client.call_tool("t")).text == "fresh"
    assert server.opened == 2


async def test_http_client_skips_interim_responses(monkeypatch: MonkeyPatch) -> None:
    async def hint(request: Request) -> None:
        await request.connection.stream.send_all(
            b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
        )
        await request.result(text("after them"))

    server = PlayedHttpServer(E, tools_call=hint)
    async with connected(server, monkeypatch) as client:
        for _ in range(2):
            assert (await client.call_tool("t")).text == "after them"
    assert server.opened == 1


async def test_http_client_requests_without_body_have_no_length(monkeypatch: MonkeyPatch) -> None:
    """GET and DELETE: some servers refuse those that announce content (RFC 9110, 9.3)."""
    server = PlayedHttpServer(D, session="s1")
    async with connected(server, monkeypatch):
        await either.wait_all_tasks_blocked()
    lengths = {each.method: each.headers.get("content-length") for each in server.requests}
    assert lengths["POST"] is not None
    assert (lengths["GET"], lengths["DELETE"]) == (None, None)


async def test_http_client_idle_connection_closed_retries_reads_only(
    monkeypatch: MonkeyPatch,
) -> None:
    """Read-only requests are sent again.

    Calls are not, unless the end was noticed before sending.
    """
    lists: Any = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

    async def once(request: Request) -> None:
        if request.connection.requests > 1:
            await close_after(request)
        else:
            await request.result(lists)

    server = PlayedHttpServer(E, tools_list=once, tools_call=close_after)
    async with connected(server, monkeypatch) as client:
        assert await client.list_tools() == []  # the connection had carried the handshake
        assert server.request_names() == ["server/discover", "tools/list", "tools/list"]
        with pytest.raises(
            ConnectionLost, match="tools/call: the server closed the connection without an answer"
        ):
            await client.call_tool("t")
        assert server.request_names()[3:] == [CALL]


# --- cancellation and timeouts ------------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_http_client_cancelled_call_closes_its_connection_only(
    version: str, monkeypatch: MonkeyPatch, nursery: either.Nursery
) -> None:
    """At once; or, if a cancellation is sent first, when the server does not end the response."""
    server = PlayedHttpServer(version, tools_call=hang)
    async with connected(server, monkeypatch) as client:
        await either.wait_all_tasks_blocked()
        one, other = (
            CallTask(nursery, lambda: client.call_tool("t", timeout=None)) for _ in range(2)
        )
        await either.wait_all_tasks_blocked()
        assert server.live == 2
        one.scope.cancel()
        await one.ended.wait()
        await either.sleep(6)
        assert not other.ended.is_set()
        notified = server.requests[-1].rpc_method == "notifications/cancelled"
        assert notified is (version == D)
        assert "1 under way" in repr(client._transport._requests)
        # Sending the cancellation takes another connection, which is kept.
        assert server.live == (2 if notified else 1)
        server.answers[CALL] = DONE
        await client.call_tool("t")
        other.scope.cancel()
        await other.ended.wait()


async def test_http_client_slow_server_times_out(monkeypatch: MonkeyPatch) -> None:
    async def slow(request: Request) -> None:
        await either.sleep(request.message["params"]["arguments"]["seconds"])
        await request.result(DONE)

    async with connected(PlayedHttpServer(E, tools_call=slow), monkeypatch) as client:
        await client.call_tool("t", {"seconds": 59})
        with pytest.raises(CallTimeout):
            await client.call_tool("t", {"seconds": 61})
        await client.call_tool("t", {"seconds": 1})
        assert either.current_time() == 59 + 60 + 1


async def test_http_client_progress_restarts_the_timeout(monkeypatch: MonkeyPatch) -> None:
    """The call takes 150 seconds with a timeout of 60, as each step comes after 50."""

    async def stream(request: Request) -> None:
        token = request.message["params"]["_meta"]["progressToken"]
        await request.begin_stream()
        for step in range(3):
            await either.sleep(50)
            params = {"progressToken": token, "progress": step + 1}
            await request.event(
                {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            )
        await request.event({"jsonrpc": "2.0", "id": request.message["id"], "result": DONE})
        await request.end()

    steps: list[float] = []
    async with connected(PlayedHttpServer(E, tools_call=stream), monkeypatch) as client:
        await client.call_tool("t", progress=lambda step, *_: steps.append(step))
        assert (steps, either.current_time()) == ([1, 2, 3], 150)


async def test_http_client_idle_connections_are_closed(monkeypatch: MonkeyPatch) -> None:
    """Idle for 30 seconds, or less if the server's `keep-alive` header says so."""

    async def answer(request: Request) -> None:
        await request.result(DONE, [("keep-alive", "timeout=5")])

    server = PlayedHttpServer(E, tools_call=DONE)
    async with connected(server, monkeypatch) as client:
        await client.call_tool("t")
        assert (server.opened, server.closed) == (1, 0)
        await either.sleep(29)
        await client.call_tool("t")
        await either.sleep(29)
        assert (server.opened, server.closed) == (1, 0)
        await either.sleep(2)
        assert (server.opened, server.closed) == (1, 1)
        server.answers[CALL] = answer
        await client.call_tool("t")
        await either.sleep(3)
        assert (server.opened, server.closed) == (2, 1)
        await either.sleep(2)
        assert (server.opened, server.closed) == (2, 2)


async def test_http_client_initialize_times_out_after_30_seconds(monkeypatch: MonkeyPatch) -> None:
    error = await fails(PlayedHttpServer(D, initialize=hang), monkeypatch)
    assert str(error) == "the server did not answer initialize within 30.0 s"
    assert either.current_time() == 30


# --- the standalone stream ----------------------------------------------------------------------


async def test_http_client_standalone_stream_reconnects_with_the_last_event_id(
    monkeypatch: MonkeyPatch,
) -> None:
    """The server breaks it off twice; each new GET names the last event that arrived."""
    message = {
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": "info", "data": "x"},
    }
    times: list[float] = []

    async def stream(request: Request) -> None:
        times.append(either.current_time())
        await request.begin_stream()
        await request.event(message, f"e{len(times)}")
        if len(times) < 3:
            await close_after(request)
        await either.sleep_forever()

    server = PlayedHttpServer(D, session="s1", GET=stream, tools_call=DONE)
    received: list[Any] = []
    async with connected(server, monkeypatch, on_log=received.append) as client:
        await either.sleep(100)
        assert len(received) == len(times) == 3
        assert times[0] == 0.0
        assert 1 <= times[1] < times[2] < 10
        gets = [
            request.headers.get("last-event-id")
            for request in server.requests
            if request.method == "GET"
        ]
        assert gets == [None, "e1", "e2"]
        await client.call_tool("t")
    assert server.request_names()[-1] == "DELETE"


# --- redirects ----------------------------------------------------------------------------------


class MountedServer(PlayedHttpServer):
    """A server behind `app.mount("/mcp", ...)` of Starlette, which adds a slash to each request."""

    async def play(self, request: Request) -> None:
        if request.target == "/mcp":
            location = [("location", "http://played.test/mcp/")]
            await request.answer(307, headers=location)
        else:
            await super().play(request)


@pytest.mark.parametrize("version", ERAS)
async def test_http_client_follows_the_redirects_of_a_mount(
    version: str, monkeypatch: MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Each request is made twice, on the connection of the first, and one line says so."""
    server = MountedServer(version, session="s1" if version == D else "")
    server.answers[CALL] = echo
    options: Any = {"headers": {"X-Mine": "1"}, "record": tmp_path / "trace.jsonl"}
    async with connected(server, monkeypatch, **options) as client:
        for words in "one", "two":
            assert (await client.call_tool("t", {"words": words})).text == words
        await either.wait_all_tasks_blocked()
    first, second = server.requests[::2], server.requests[1::2]
    assert {each.target for each in first} == {"/mcp"}
    assert {each.target for each in second} == {"/mcp/"}
    if version == E:  # the standalone stream of a session runs beside other requests
        assert [each.message for each in first] == [each.message for each in second]
    names = server.request_names()
    assert all(names.count(name) % 2 == 0 for name in names)
    assert names.count(CALL) == 4
    if version == D:
        assert names.count("DELETE") == names.count("GET") == 2
    assert all(each.headers["x-mine"] == "1" for each in server.requests)
    assert server.opened <= 2
    judge_trace(tmp_path / "trace.jsonl", level="all")
    lines = [each.getMessage() for each in caplog.records if "redirects" in each.getMessage()]
    assert len(lines) == 1
    assert "from http://played.test/mcp to http://played.test/mcp/: connect to that" in lines[0]


@pytest.mark.parametrize(
    ("headers", "location", "text"),
    [
        ({"authorization": "Bearer x"}, "/other", "the credential is for http://played.test/mcp."),
        ({"X-Api-Key": "x"}, "/mcp2", "the credential is for http://played.test/mcp."),
        ({}, "http://played.test/mcp/../other", "a redirect without a location that can be used"),
        ({}, "https://played.test/mcp", "a redirect to another origin"),
    ],
)
@pytest.mark.parametrize("version", ERAS)
async def test_http_client_is_not_redirected_to_another_server(
    version: str, headers: Any, location: str, text: str, monkeypatch: MonkeyPatch
) -> None:
    """Nothing is sent there, and the error says what was refused."""
    server = PlayedHttpServer(version)

    async def redirect(request: Request) -> None:
        await request.answer(307, headers=[("location", location)])

    server.answers["initialize"] = server.answers["server/discover"] = redirect
    options = {"headers": headers, "allow_cleartext": True}
    async with playing(server, monkeypatch):
        with pytest.raises(ConnectFailed, match=text):
            await connect_to(server, **options).__aenter__()
    assert {each.target for each in server.requests} == {"/mcp"}


async def test_http_client_redirected_for_ever_raises(monkeypatch: MonkeyPatch) -> None:
    server = PlayedHttpServer(E)

    async def elsewhere(request: Request) -> None:
        location = f"/mcp/{len(server.requests)}"
        await request.answer(308, headers=[("location", location)])

    server.answers["server/discover"] = elsewhere
    error = await fails(server, monkeypatch)
    assert "a redirect after 3 others, which is not followed" in str(error)
    assert [each.target for each in server.requests] == ["/mcp", "/mcp/1", "/mcp/2", "/mcp/3"]


# --- failures -----------------------------------------------------------------------------------


async def fails(server: PlayedHttpServer, monkeypatch: MonkeyPatch) -> ConnectFailed:
    async with playing(server, monkeypatch):
        with pytest.raises(ConnectFailed) as caught:
            await connect_to(server).__aenter__()
    return caught.value


PAGE = {"body": b"<html>hello</html>", "headers": [("content-type", "text/html")]}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (answering(status=404, **PAGE), "404 Not Found: is this the URL of an MCP server?"),
        (answering(status=200, **PAGE), "text/html"),
        (
            answering(status=401, headers=[("www-authenticate", 'Bearer scope="a b"')]),
            "401 Unauthorized",
        ),
        (answering(status=403), "403 Forbidden"),
        (answering(status=503), "503 Service Unavailable"),
        (
            answering(status=307, headers=[("location", "https://there/mcp")]),
            "a redirect to another origin, which is not followed: connect to https://there/mcp",
        ),
        (close_after, "the server closed the connection without an answer"),
    ],
)
@pytest.mark.parametrize("version", ERAS)
async def test_http_client_other_server_raises_with_the_cause(
    version: str, answer: Any, text: str, monkeypatch: MonkeyPatch
) -> None:
    server = PlayedHttpServer(version, initialize=answer, GET=answering(status=404))
    server.answers["server/discover"] = answer
    error = await fails(server, monkeypatch)
    assert text in str(error)
    if "401" in text:
        assert isinstance(error.__cause__, AuthRequired)
        assert error.__cause__.scopes == ("a", "b")


# As a gateway answers for a server that doesn't know the method.
UNKNOWN_METHOD: Any = {"code": -32601, "message": "Method not found"}


async def not_found(request: Request) -> None:
    body = {"jsonrpc": "2.0", "id": request.message["id"], "error": UNKNOWN_METHOD}
    await request.answer(404, json.dumps(body).encode())


async def test_http_client_unknown_probe_leads_to_the_handshake(monkeypatch: MonkeyPatch) -> None:
    """A gateway before an old server maps the error of `server/discover` to 404."""
    server = PlayedHttpServer(D, server_discover=not_found, tools_call=text("called"))
    async with connected(server, monkeypatch, versions=[D, E]) as client:
        assert (await client.call_tool("t")).text == "called"
        assert (client.peer.dialect.version, client.needs_handshake) == (D, True)
    assert server.request_names()[:2] == ["server/discover", "initialize"]


async def test_http_client_unknown_probe_and_handshake_raise(monkeypatch: MonkeyPatch) -> None:
    server = PlayedHttpServer(D, server_discover=not_found, initialize=not_found)
    async with playing(server, monkeypatch):
        with pytest.raises(ConnectFailed) as caught:
            await connect_to(server, versions=[D, E]).__aenter__()
    assert str(caught.value) == "the server refused server/discover: Method not found (-32601)"
    assert server.request_names() == ["server/discover", "initialize"]


NO_SESSION: Any = {"code": -32000, "message": "Bad Request: No valid session ID provided"}


async def test_http_client_server_that_closes_at_the_probe_is_not_tried_again(
    monkeypatch: MonkeyPatch,
) -> None:
    """Only a program that was started can be started again without a probe."""
    server = PlayedHttpServer(E, server_discover=close_after)
    async with playing(server, monkeypatch):
        with pytest.raises(ConnectFailed, match="closed the connection without an answer"):
            async with connect_to(server, versions=ALL):
                raise AssertionError
    assert set(server.request_names()) == {"server/discover"}


def forgetful(server: PlayedHttpServer, body: bytes) -> Callable[[Request], Awaitable[None]]:
    """Return a handler that answers `tools/call`, or an unknown session with status 400."""

    async def answer(request: Request) -> None:
        if request.headers["mcp-session-id"] == server.session:
            await request.result(text(server.session))
        else:
            await request.answer(400, body.replace(b"ID", str(request.message["id"]).encode()))

    return answer


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            json.dumps({"jsonrpc": "2.0", "error": NO_SESSION, "id": None}).encode(),
            id="an example of the TypeScript SDK",
        ),
        pytest.param(NO_SESSION["message"].encode(), id="the Python SDK"),
    ],
)
async def test_http_client_400_without_id_begins_a_new_session(
    body: bytes, monkeypatch: MonkeyPatch
) -> None:
    """The rejected call is sent again once, and is the first to arrive in the new session."""
    server = PlayedHttpServer(D, session="one")
    server.answers[CALL] = forgetful(server, body)
    async with connected(server, monkeypatch) as client:
        assert (await client.call_tool("t")).text == "one"
        server.session = "two"
        begin = len(server.requests)
        assert (await client.call_tool("t")).text == "two"
        assert server.request_names()[begin:] == [
            CALL, "initialize", "notifications/initialized", "GET", CALL
        ]  # fmt: skip
        assert (await client.call_tool("t")).text == "two"


async def test_http_client_400_with_id_is_the_answer(monkeypatch: MonkeyPatch) -> None:
    server = PlayedHttpServer(D, session="one")
    body = b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no session"}}'
    server.answers[CALL] = forgetful(server, body)
    async with connected(server, monkeypatch) as client:
        server.session = "another"
        for _ in range(2):
            with pytest.raises(PeerError, match="no session"):
                await client.call_tool("t")
    assert server.request_names().count("initialize") == 1
    assert server.request_names().count(CALL) == 2


async def test_http_client_400_in_every_session_is_the_answer(monkeypatch: MonkeyPatch) -> None:
    """One new session and one repetition are all that it causes, however often it is called."""
    server = PlayedHttpServer(D, session="one")
    server.answers[CALL] = answering(status=400, body=NO_SESSION["message"].encode())
    async with connected(server, monkeypatch) as client:
        for _ in range(3):
            with pytest.raises(RemoteProtocolError, match="No valid session ID provided"):
                await client.call_tool("t")
    assert server.request_names().count("initialize") == 2
    assert server.request_names().count(CALL) == 4


async def test_http_client_unreachable_server_raises(monkeypatch: MonkeyPatch) -> None:
    server = PlayedHttpServer(E)
    server.gone = True
    assert "connection refused" in str(await fails(server, monkeypatch))


async def test_http_client_unreachable_later_fails_the_call_only(monkeypatch: MonkeyPatch) -> None:
    server = PlayedHttpServer(E, tools_call=close_after)
    async with connected(server, monkeypatch) as client:
        with pytest.raises(ConnectionLost):
            await client.call_tool("t")
        server.gone = True
        with pytest.raises(ConnectionLost, match="tools/call: cannot connect to played"):
            await client.call_tool("t")
        server.gone = False
        server.answers[CALL] = DONE
        await client.call_tool("t")  # it is reachable again


# --- closing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_http_client_aclose_fails_pending_calls(
    version: str, monkeypatch: MonkeyPatch, nursery: either.Nursery
) -> None:
    """Two tasks close at once while a call hangs; a session still ends with its DELETE."""
    server = PlayedHttpServer(version, session="s1" if version == D else "", tools_call=hang)
    async with connected(server, monkeypatch) as client:
        pending = CallTask(nursery, lambda: client.call_tool("t", timeout=None))
        await either.wait_all_tasks_blocked()
        async with either.open_nursery() as closing:
            closing.start_soon(client.aclose)
            closing.start_soon(client.aclose)
        await pending.ended.wait()
        assert isinstance(pending.error, ConnectionLost)
        assert "0 under way" in repr(client._transport._requests)
        with pytest.raises(ConnectionLost):
            await client.call_tool("t")
    assert ("DELETE" in server.request_names()) is (version == D)


async def test_http_client_session_delete_has_a_second(monkeypatch: MonkeyPatch) -> None:
    server = PlayedHttpServer(D, session="s1", DELETE=hang)
    async with connected(server, monkeypatch) as client:
        await either.wait_all_tasks_blocked()
        await client.aclose()
        assert either.current_time() == 1
    assert server.request_names()[-1] == "DELETE"


async def test_http_client_closing_that_is_cancelled_leaves_no_connection(
    monkeypatch: MonkeyPatch,
) -> None:
    """The request that ends the session is cancelled and waited for, too."""
    server = PlayedHttpServer(D, session="s1", DELETE=hang)
    async with playing(server, monkeypatch):
        with either.move_on_after(0.5) as scope:
            async with connect_to(server):
                await either.wait_all_tasks_blocked()
        assert scope.cancelled_caught
        assert server.request_names()[-1] == "DELETE"
        assert server.live == 0


@pytest.mark.parametrize("version", ERAS)
async def test_http_client_cancelled_still_deletes_the_session(
    version: str, monkeypatch: MonkeyPatch
) -> None:
    server = PlayedHttpServer(
        version, session="s1" if version == D else "", tools_call=hang, GET=hang
    )
    async with playing(server, monkeypatch):
        with either.move_on_after(5) as scope:
            async with connect_to(server) as client:
                await client.call_tool("t")
        assert scope.cancelled_caught
    assert either.current_time() <= 6
    assert ("DELETE" in server.request_names()) is (version == D)


async def test_http_client_block_exception_is_not_wrapped(monkeypatch: MonkeyPatch) -> None:
    server = PlayedHttpServer(E)
    async with playing(server, monkeypatch):
        with pytest.raises(ZeroDivisionError):
            async with connect_to(server):
                raise ZeroDivisionError


# --- server requests ----------------------------------------------------------------------------


async def test_http_client_answers_a_server_request_during_a_call(monkeypatch: MonkeyPatch) -> None:
    """The request arrives on the call's stream, and its response goes out as another POST."""
    answered = either.Event()
    names: list[Any] = []

    async def ask(request: Request) -> None:
        await request.begin_stream()
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = {"message": "Who?", "requestedSchema": schema}
        await request.event(
            {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params}
        )
        await answered.wait()
        await request.event(
            {"jsonrpc": "2.0", "id": request.message["id"], "result": text(names[0])}
        )
        await request.end()

    async def take(request: Request) -> None:
        names.append(request.message["result"]["content"]["name"])
        await request.answer(202)
        answered.set()

    server = PlayedHttpServer(D, tools_call=ask, POST=take)
    server.answers["notifications/initialized"] = answering(status=202)
    async with connected(server, monkeypatch, on_elicit=lambda sent: {"name": "Ada"}) as client:
        result = await client.call_tool("t")
        assert result.content == [t.TextContent("Ada")]
