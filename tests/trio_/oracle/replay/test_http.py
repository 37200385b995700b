"""Replay over HTTP on loopback: the server and the client of one trace."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
import trio

from mcp_core import ConnectFailed, ConnectionLost
from mcp_core.http import Body, End, Head, HostOriginPolicy, Url
from mcp_core.trace import (
    ReplayClient,
    ReplayHttpServer,
    ReplayServer,
    diff_traces,
    load_trace,
    read_trace,
)
from mcp_trio.http_client._connector import Connector
from mcp_trio.oracle.replay._http_client import play_over_http
from mcp_trio.oracle.replay._http_server import serve_over_http
from mcp_trio.recording._open import open_recorder
from tests.core.trace.judge.conversations import META, C, S, Sent, ask, notify, result
from tests.core.trace.replay.traces import CALL, HANDSHAKE, call, recorded, text
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trio.testing import MockClock

    from mcp_core.http import Action, RequestHead

OPENED: Any = HANDSHAKE[1].message
LEGACY = [
    *HANDSHAKE,
    C(call(1)),
    S(ask(5, "elicitation/create", message="?")),
    C(result(5, action="decline")),
    S(text(1, "A")),
    *CALL,
    S(notify("notifications/tools/list_changed")),
    C(ask(3, "tools/list")),
    S(result(3, tools=[])),
]
MODERN = [
    C(ask(1, "tools/call", name="echo", _meta={META + "protocolVersion": "2026-07-28"})),
    S(notify("notifications/message", level="info", data="x")),
    S(text(1, "A")),
]


async def play(said: list[Sent], url: Url, file: Path) -> ReplayClient:
    client = ReplayClient(recorded(said, gap=0.01).sessions[0])
    connector = Connector(url.scheme, url.host, url.port)
    async with open_recorder(file, "client", "http", [str(url)]) as recorder:
        assert recorder is not None
        with trio.fail_after(PATIENCE):
            await play_over_http(
                client, url, connector, recorder, headers={}, opens_stream=said is LEGACY
            )
    return client


@pytest.mark.parametrize("said", [LEGACY, MODERN], ids=["legacy", "modern"])
async def test_client_and_server_of_a_trace_agree(said: list[Sent], tmp_path: Path) -> None:
    """Both sides of one trace are replayed against each other, and the new trace is the same."""
    trace = recorded(said)
    server = ReplayServer(trace)
    http = ReplayHttpServer(
        server, policy=HostOriginPolicy("127.0.0.1"), new_id=lambda: secrets.token_hex(8)
    )
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    stop = trio.Event()
    file = tmp_path / "new.mcp.jsonl"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_over_http, http, listeners, stop)
        client = await play(said, Url.parse(f"http://127.0.0.1:{port}/mcp"), file)
        stop.set()
    assert (client.problems, client.unanswered, server.missing) == ([], 0, [])
    with file.open("rb") as opened:
        new = load_trace(*read_trace(opened))
    assert diff_traces(trace, new).differences == []


async def test_client_of_a_trace_without_server_fails(tmp_path: Path) -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    await listeners[0].aclose()
    with pytest.raises(ConnectFailed):
        await play(MODERN, Url.parse(f"http://127.0.0.1:{port}/mcp"), tmp_path / "x.mcp.jsonl")


class SilentServer:
    """A server in memory that answers requests, and does not end its response to anything else.

    It is a connector and its connections. `begin` is of each response without an end, and `silent`
    are methods of requests that it does not answer either.
    """

    def __init__(self, begin: list[Action], *silent: str) -> None:
        self.begin = begin
        self.silent = silent
        self.methods: list[str] = []

    async def connect(self) -> SilentServer:
        await trio.lowlevel.checkpoint()
        return self

    def absolute_head(self, head: RequestHead) -> RequestHead:
        return head

    async def run(
        self, head: RequestHead, body: bytes, receive: Callable[[list[Action]], None]
    ) -> bool:
        message = json.loads(body)
        self.methods.append(message["method"])
        await trio.lowlevel.checkpoint()
        if "id" not in message or message["method"] in self.silent:
            receive(self.begin)
            await trio.sleep_forever()
        answer = OPENED if message["method"] == "initialize" else text(message["id"], "A")
        data = json.dumps(answer).encode()
        receive([Head(200, [(b"content-type", b"application/json")]), Body(data), End()])
        return True

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    "begin",
    [
        [],
        [Head(200, [(b"content-type", b"text/event-stream")])],
        [Head(200, [(b"content-type", b"text/event-stream")]), Body(b": alive\n\n")],
    ],
    ids=["silence", "stream", "comment"],
)
async def test_notification_without_complete_response_does_not_stop_the_client(
    begin: list[Action], autojump_clock: MockClock
) -> None:
    client = ReplayClient(recorded([*HANDSHAKE, *CALL]).sessions[0], response_timeout=2.0)
    server: Any = SilentServer(begin)
    url = Url.parse("http://127.0.0.1:1/mcp")
    with trio.fail_after(60):
        await play_over_http(client, url, server, MagicMock(), headers={}, opens_stream=False)
    assert server.methods == ["initialize", "notifications/initialized", "tools/call"]
    assert (client.answered, client.unanswered) == (2, 0)
    assert client.problems == ["no complete HTTP response to notifications/initialized within 2 s"]
    assert trio.current_time() < 3.0


MANY = range(2, 42)  # ids of more requests than are sent at once


@pytest.mark.parametrize(
    ("method", "responses"),
    [
        ("tools/call", []),
        ("tools/call", [text(each, "A") for each in MANY]),
        ("subscriptions/listen", []),
    ],
    ids=["not-awaited", "awaited", "long-lived"],
)
async def test_requests_without_a_response_make_room_for_what_follows(
    method: str, responses: list[Any], autojump_clock: MockClock
) -> None:
    said = [*HANDSHAKE, *(C(ask(each, method, name="echo")) for each in MANY), *map(S, responses)]
    client = ReplayClient(recorded(said).sessions[0], response_timeout=2.0)
    server: Any = SilentServer([], method)
    url = Url.parse("http://127.0.0.1:1/mcp")
    with trio.fail_after(60):
        await play_over_http(client, url, server, MagicMock(), headers={}, opens_stream=False)
    assert server.methods.count(method) >= 32
    assert client.problems.count(f"{method} was closed after 2 s") >= 32
    assert client.unanswered == (3 if responses else 0), "then it has stopped"
    assert client.sent == len(MANY) + 2
    assert client.is_over


async def test_session_whose_end_is_not_answered_is_left_after_two_seconds(
    autojump_clock: MockClock,
) -> None:
    """The server hangs at DELETE; the replay is done and must not wait for it."""

    class Server(SilentServer):
        async def run(
            self, head: RequestHead, body: bytes, receive: Callable[[list[Action]], None]
        ) -> bool:
            if head.method == b"DELETE":
                ended.append(trio.current_time())
                await trio.sleep_forever()
            session = [(b"mcp-session-id", b"1")]

            def with_session(actions: list[Action]) -> None:
                first, *rest = actions
                assert isinstance(first, Head)
                receive([Head(first.status, [*first.headers, *session]), *rest])

            return await super().run(head, body, with_session)

    ended: list[float] = []
    client = ReplayClient(recorded(HANDSHAKE[:2]).sessions[0])
    url = Url.parse("http://127.0.0.1:1/mcp")
    server: Any = Server([])
    await play_over_http(client, url, server, MagicMock(), headers={}, opens_stream=False)
    assert trio.current_time() - ended[0] == pytest.approx(2)


# -- Servers that a test plays ---------------------------------------------------------------------

SSE = Head(200, [(b"content-type", b"text/event-stream"), (b"mcp-session-id", b"1")])
JSON = Head(200, [(b"content-type", b"application/json"), (b"mcp-session-id", b"1")])


class SlowCallServer:
    """A server in memory, and its connector. It answers calls by `text`, slowly.

    Each of `streams` is the response to a GET; then there are no more.
    """

    def __init__(self, *streams: list[Action]) -> None:
        self.streams = list(streams)
        self.gets: list[tuple[float, bytes | None]] = []
        self.connects = 0
        self.refuses_after = 99
        self.closed = 0
        self.deleted = 0
        self.lost: tuple[str, ...] = ()

    async def connect(self) -> SlowCallServer:
        await trio.lowlevel.checkpoint()
        if self.connects >= self.refuses_after:
            raise ConnectFailed("no one listens")
        self.connects += 1
        return self

    def absolute_head(self, head: RequestHead) -> RequestHead:
        return head

    async def run(
        self, head: RequestHead, body: bytes, receive: Callable[[list[Action]], None]
    ) -> bool:
        await trio.sleep(5.0 if b"tools/call" in body else 0.1)
        if head.method == b"GET":
            headers = {name.lower(): value for name, value in head.headers}
            self.gets.append((trio.current_time(), headers.get(b"last-event-id")))
            receive(self.streams.pop(0) if self.streams else [Head(405, []), End()])
        elif head.method == b"DELETE":
            self.deleted += 1
            receive([Head(200, []), End()])
        else:
            self._answer(json.loads(body), receive)
        return True

    def _answer(self, message: Any, receive: Callable[[list[Action]], None]) -> None:
        if message.get("method") in self.lost:
            raise ConnectionLost("the connection was reset")
        if "id" not in message:
            receive([Head(202, []), End()])
            return
        answer = OPENED if message["method"] == "initialize" else text(message["id"], "A")
        receive([JSON, Body(json.dumps(answer).encode()), End()])

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed += 1


async def play_at(
    server: Any, said: list[Sent], recorder: Any = None, *, opens_stream: bool = False
) -> ReplayClient:
    client = ReplayClient(recorded(said, gap=1.0).sessions[0], response_timeout=30.0)
    url = Url.parse("http://127.0.0.1:1/mcp")
    await play_over_http(
        client, url, server, recorder or MagicMock(), headers={}, opens_stream=opens_stream
    )
    return client


async def test_stream_of_a_session_is_resumed_until_it_is_refused(
    autojump_clock: MockClock,
) -> None:
    """The server says where it goes on, and after which time: one second unless it says so."""
    first = b"id: 7\ndata:\n\n"
    second = b"id: 8\nretry: 2500\ndata:\n\n"
    server = SlowCallServer([SSE, Body(first), End()], [SSE, Body(second), End()])
    client = await play_at(server, [*HANDSHAKE, *CALL * 9], opens_stream=True)
    times = [time - server.gets[0][0] for time, _ in server.gets]
    assert times == pytest.approx([0.0, 1.1, 3.7])
    assert [last for _, last in server.gets] == [None, b"7", b"8"]
    assert (client.problems, client.unanswered) == ([], 0)


async def test_stream_is_not_opened_unless_it_was_recorded(autojump_clock: MockClock) -> None:
    server = SlowCallServer()
    await play_at(server, [*HANDSHAKE, *CALL * 3])
    assert server.gets == []
    assert server.deleted == 1


async def test_connections_are_kept_for_the_next_request_and_closed_at_the_end(
    autojump_clock: MockClock,
) -> None:
    server = SlowCallServer()
    await play_at(server, [*HANDSHAKE, *CALL, *CALL])
    assert (server.connects, server.closed) == (1, 1)


@pytest.mark.parametrize(
    ("refuses_after", "lost", "reason"),
    [(1, ("tools/call",), "the connection was reset"), (99, (), None)],
)
async def test_request_whose_connection_is_lost_has_failed_with_the_cause(
    refuses_after: int, lost: tuple[str, ...], reason: str | None, autojump_clock: MockClock
) -> None:
    """The next one needs a new connection, which may be refused."""
    server = SlowCallServer()
    server.refuses_after, server.lost = refuses_after, lost
    recorder = MagicMock()
    client = await play_at(server, [*HANDSHAKE, *CALL, C(call(9)), S(text(9, "A"))], recorder)
    ended = [each.args for each in recorder.begin.return_value.ended.call_args_list]
    if reason is None:
        assert (client.problems, ended) == ([], [])
    else:
        assert any(reason in each for each in client.problems)
        assert any("no one listens" in each for each in client.problems)
        assert set(ended) == {("server", "reset")}
        assert server.closed == 1
