"""WebSockets on trio, from both ends: frames, rejected upgrades, backpressure and the end."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
import trustme

from mcp_core.http import WebSocketFrames
from mcp_core.types import TextContent
from mcp_core.urls import URL_TRANSPORTS, UrlTransport
from mcp_trio import (
    AuthRequired,
    ConnectFailed,
    ConnectionLost,
    Context,
    Server,
    connect,
)
from mcp_trio.cli.use import _inspect
from mcp_trio.host import Host
from mcp_trio.http_client._connector import Connector
from tests.core.http.frames import (
    ANSWER,
    ASK,
    BINARY,
    PING,
    PONG,
    ROWS,
    TEXT,
    close,
    frame,
    message,
    upgrade,
)
from tests.core.http.server.test_auth import guard
from tests.harness.jsonrpc import D, E, stateless_request
from tests.harness.wire.http_session import MemoryListener, served_over_http
from tests.harness.wire.websocket_client import FrameWire
from tests.harness.wire.websocket_router import PROOF

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from functools import partial
    from pathlib import Path

    from mcp_trio import Client

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", D, E)


def example_server() -> Server:
    server = Server("house", version="1")

    @server.tool
    def echo(text: str) -> str:
        """Return the text at once."""
        return text

    @server.tool
    async def wait() -> str:
        """Wait forever."""
        started.set()
        try:
            await trio.Event().wait()
        finally:
            ended.set()
        return ""

    @server.tool
    async def report(context: Context, times: int, size: int) -> str:
        """Report progress often, and wait for the reader."""
        for number in range(times):
            await context.progress(number, message="x" * size)
            reported.append(number)
        return "reported"

    started, ended = trio.Event(), trio.Event()
    reported: list[int] = []
    server.started, server.ended, server.reported = started, ended, reported  # type: ignore[attr-defined]
    return server


@asynccontextmanager
async def connected(server: Server | None = None, **options: Any) -> AsyncIterator[FrameWire]:
    """A WebSocket to a server, in bytes."""
    async with served_over_http(server or example_server(), **options) as listener:
        wire = FrameWire(listener.connect())
        assert await wire.open(upgrade()) == 101
        yield wire


# -- Frames --------------------------------------------------------------------------------------


def limited() -> Server:
    from mcp_core import Limits

    return Server("house", limits=Limits(message=100_000))


@pytest.mark.parametrize("chopped", [False, True], ids=["whole", "byte by byte"])
@pytest.mark.parametrize(
    ("data", "answers"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
async def test_websocket_frames_get_their_responses(
    data: bytes, answers: list[Any], chopped: bool, autojump_clock: trio.abc.Clock
) -> None:
    size = len(data) if not chopped else 1 if len(data) < 10_000 else 997
    async with connected(limited()) as wire:
        for at in range(0, len(data), size):
            try:
                await wire.send(data[at : at + size])
            except trio.BrokenResourceError:
                break  # the server has closed
        assert await wire.receive_all() == answers


async def test_websocket_invalid_frames_end_without_waiting_for_close(
    autojump_clock: trio.abc.Clock,
) -> None:
    """Frames after an error cannot be decoded, so the peer's Close would not be noticed."""
    async with connected() as wire:
        began = trio.current_time()
        await wire.send(frame(3) + b"x" * 1000)
        assert await wire.receive_all() == [1002]
        assert trio.current_time() == began
        await wire.stream.aclose()


async def test_websocket_close_is_awaited_for_a_second(autojump_clock: trio.abc.Clock) -> None:
    """The second starts when our Close was written."""
    async with connected() as wire:
        began = trio.current_time()
        await wire.send(frame(BINARY))
        assert await wire.receive_all() == [1003]
        assert trio.current_time() == began + 1


async def test_websocket_close_over_tls_is_awaited_for_a_second(
    autojump_clock: trio.abc.Clock,
) -> None:
    authority = trustme.CA()
    ours, theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(ours)
    authority.configure_trust(theirs)
    async with served_over_http(example_server(), tls=ours) as listener:
        wire = FrameWire(trio.SSLStream(listener.connect(), theirs, server_hostname="localhost"))
        assert await wire.open(upgrade()) == 101
        began = trio.current_time()
        await wire.send(frame(3))
        assert await wire.receive_all() == [1002]
        assert trio.current_time() == began + 1


async def test_websocket_invalid_messages_are_limited(autojump_clock: trio.abc.Clock) -> None:
    async with connected() as wire:
        for _ in range(2):
            await wire.send(frame(TEXT, b"no JSON"))
            assert (await wire.message())["error"]["code"] == -32700
        await trio.sleep(11)
        await wire.send(frame(TEXT, b"no JSON"))
        assert (await wire.message())["error"]["code"] == -32700
        await wire.send(frame(TEXT, b"no JSON") * 3)
        received = await wire.receive_all()
        assert received.pop() == 1007
        assert {each["error"]["code"] for each in received} == {-32700}


# -- Rejected upgrades ---------------------------------------------------------------------------

REFUSED: list[tuple[str, bytes, int, dict[bytes, bytes]]] = [
    # the request, the status, headers of the response
    ("a foreign Origin", upgrade(b"origin: http://evil.example"), 403, {}),
    ("another name", upgrade(host=b"evil.example"), 421, {}),
    (
        "another version",
        upgrade(b"sec-websocket-version: 8"),
        426,
        {b"sec-websocket-version": b"13"},
    ),
    ("no version", upgrade(b"sec-websocket-version:"), 426, {b"sec-websocket-version": b"13"}),
    ("no key", upgrade(b"sec-websocket-key:"), 400, {}),
    ("no subprotocol", upgrade(b"sec-websocket-protocol:"), 400, {}),
    ("another subprotocol", upgrade(b"sec-websocket-protocol: graphql"), 400, {}),
    ("with a body", upgrade(b"content-length: 5") + b"hello", 400, {}),
    ("with a body in chunks", upgrade(b"transfer-encoding: chunked") + b"0\r\n\r\n", 400, {}),
    ("elsewhere", upgrade(target=b"/other"), 404, {}),
]


@pytest.mark.parametrize(
    ("head", "status", "headers"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
async def test_websocket_invalid_upgrade_is_rejected(
    head: bytes, status: int, headers: dict[bytes, bytes], autojump_clock: trio.abc.Clock
) -> None:
    """Bytes behind the request are not read: they may be meant for a WebSocket."""
    async with served_over_http(example_server()) as listener:
        wire = FrameWire(listener.connect())
        assert await wire.open(head + upgrade()) == status
        assert headers.items() <= wire.headers.items()
        assert b"close" in wire.headers[b"connection"]
        while await wire.more():
            pass
        assert wire.buffer.count(b"HTTP/1.1") == 0


@pytest.mark.parametrize(
    ("spoken", "offered", "status", "selected"),
    [
        (["mcp.v2", "mcp"], b"mcp", 101, b"mcp"),
        (["mcp.v2"], b"mcp", 400, None),
        ([], b"mcp", 101, None),
        ([], b"", 101, None),
    ],
)
async def test_websocket_subprotocols_of_the_server(
    spoken: list[str],
    offered: bytes,
    status: int,
    selected: bytes | None,
    autojump_clock: trio.abc.Clock,
) -> None:
    async with served_over_http(example_server(), subprotocols=spoken) as listener:
        wire = FrameWire(listener.connect())
        assert await wire.open(upgrade(b"sec-websocket-protocol:" + offered)) == status
        assert wire.headers.get(b"sec-websocket-protocol") == selected


async def test_websocket_upgrade_over_http_1_0_is_rejected(autojump_clock: trio.abc.Clock) -> None:
    """HTTP/1.0 has no upgrade (RFC 9110 7.8)."""
    async with served_over_http(example_server(), sessions=False) as listener:
        wire = FrameWire(listener.connect())
        assert await wire.open(upgrade(version=b"1.0")) == 405


async def test_websocket_without_token_gets_401(autojump_clock: trio.abc.Clock) -> None:
    async with served_over_http(example_server(), auth={"/mcp": guard()}) as listener:
        wire = FrameWire(listener.connect())
        assert await wire.open(upgrade()) == 401
        assert wire.headers[b"www-authenticate"].startswith(b"Bearer ")
        wire = FrameWire(listener.connect())
        assert await wire.open(upgrade(b"authorization: Bearer ann")) == 101
        await wire.send(message(ASK))
        assert await wire.message() == ANSWER


async def test_websocket_authorization_precedes_the_upgrade(autojump_clock: trio.abc.Clock) -> None:
    """Frames that arrive meanwhile are not lost."""

    async def later(text: str) -> Any:
        await trio.sleep(5)
        from tests.core.http.server.test_auth import GRANTS

        return GRANTS.get(text)

    async with served_over_http(example_server(), auth={"/mcp": guard(later)}) as listener:
        began = trio.current_time()
        wire = FrameWire(listener.connect())
        assert await wire.open(upgrade(b"authorization: Bearer ann") + message(ASK)) == 101
        assert trio.current_time() == began + 5
        assert await wire.message() == ANSWER
        gone = FrameWire(listener.connect())
        await gone.send(upgrade(b"authorization: Bearer ann"))
        await trio.sleep(1)
        await gone.stream.aclose()
        await trio.sleep(10)


async def test_websocket_upgrade_is_answered_and_logged(autojump_clock: trio.abc.Clock) -> None:
    """The server declines compression, and logs the exchange at its end, as one long request."""
    lines: list[Any] = []
    async with served_over_http(example_server(), on_exchange=lines.append) as listener:
        wire = FrameWire(listener.connect())
        assert await wire.open(upgrade(b"sec-websocket-extensions: permessage-deflate")) == 101
        assert wire.headers.keys() == {
            b"upgrade",
            b"connection",
            b"sec-websocket-accept",
            b"sec-websocket-protocol",
            b"date",
        }
        assert wire.headers[b"sec-websocket-accept"] == PROOF
        assert wire.headers[b"connection"] == b"upgrade"
        await trio.sleep(1)
        await wire.send(close(1000))
        assert await wire.receive_all() == [1000]
        await trio.sleep(0.1)
    (line,) = lines
    assert (line.method, line.target, line.status) == ("GET", "/mcp", 101)
    assert line.seconds >= 1


@pytest.mark.parametrize("patience", [0.0, 1.0])
async def test_websocket_disconnect_after_the_upgrade_ends_it(
    patience: float, autojump_clock: trio.abc.Clock
) -> None:
    """No close frame arrives, whether the handler has started or not."""
    lines: list[Any] = []
    server = example_server()
    async with served_over_http(server, on_exchange=lines.append) as listener:
        stream = listener.connect()
        await stream.send_all(
            upgrade()
            + message(stateless_request(1, "tools/call", {"name": "wait", "arguments": {}}))
        )
        if patience:
            await trio.sleep(patience)
        await trio.aclose_forcefully(stream)
        await trio.sleep(1)
        assert [line.status for line in lines] == [101]
        assert server.ended.is_set() is bool(patience)  # type: ignore[attr-defined]
        assert list(server._listeners) == []


async def test_websocket_frames_behind_the_upgrade_request_are_read(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with served_over_http(example_server()) as listener:
        wire = FrameWire(listener.connect())
        assert await wire.open(upgrade() + message(ASK) + frame(PING, b"x")) == 101
        assert await wire.next_frame() == (PONG, b"x")
        assert await wire.message() == ANSWER


async def test_websocket_upgrade_after_another_request_is_accepted(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with served_over_http(example_server()) as listener:
        wire = FrameWire(listener.connect())
        await wire.send(b"OPTIONS /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert await wire.open(b"") == 204
        assert await wire.open(upgrade()) == 101


# -- Conversations -------------------------------------------------------------------------------


@asynccontextmanager
async def connecting_to(stream: Callable[[], trio.abc.Stream]) -> AsyncIterator[None]:
    """Make every connector connect to the result of `stream()`."""

    async def reach(self: Connector, *best: str) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        return stream()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connector, "_connect", reach)
        yield


@asynccontextmanager
async def client(
    server: Server | None = None, *, of_client: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[Client]:
    """Our client and our server, in memory."""
    async with (
        served_over_http(server or example_server(), **options) as listener,
        connecting_to(listener.connect),
        connect("ws://localhost/mcp", **(of_client or {})) as opened,
    ):
        yield opened


async def echo(opened: Client, text: str) -> str:
    (content,) = (await opened.call_tool("echo", {"text": text})).content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.requirement("CUST-1", "CUST-3")
async def test_websocket_calls_are_answered_in_each_revision(
    version: str, autojump_clock: trio.abc.Clock
) -> None:
    received: list[float] = []
    async with client(of_client={"versions": [version]}) as opened:
        assert opened.peer.dialect.version == version
        assert await echo(opened, "ä€𝄞" * 100_000) == "ä€𝄞" * 100_000
        await opened.call_tool(
            "report", {"times": 3, "size": 1}, progress=lambda at, *_: received.append(at)
        )
        assert received == [0, 1, 2]
        assert [tool.name for tool in await opened.list_tools()] == ["echo", "wait", "report"]


async def test_websocket_negotiates_the_newest_revision(autojump_clock: trio.abc.Clock) -> None:
    async with client() as opened:
        assert opened.peer.dialect.version == E
    async with client(of_client={"versions": [D, E]}) as opened:
        assert opened.peer.dialect.version == E


async def test_websocket_trace_has_whole_messages(autojump_clock: trio.abc.Clock) -> None:
    seen: list[tuple[str, Any]] = []

    def trace(direction: str, data: bytes) -> None:
        seen.append((direction, json.loads(data).get("method")))

    async with client(of_client={"versions": [D], "trace": trace}) as opened:
        await opened.ping()
    assert seen == [
        ("sent", "initialize"),
        ("received", None),
        ("sent", "notifications/initialized"),
        ("sent", "ping"),
        ("received", None),
    ]


@pytest.mark.parametrize("version", [D, E])
async def test_websocket_cancelled_call_cancels_the_handler(
    version: str, autojump_clock: trio.abc.Clock
) -> None:
    server = example_server()
    async with client(server, of_client={"versions": [version]}) as opened:
        with trio.move_on_after(1):
            await opened.call_tool("wait")
        await server.ended.wait()  # type: ignore[attr-defined]
        assert await echo(opened, "still") == "still"


@pytest.mark.parametrize("how", ["leaves", "is cancelled"])
async def test_websocket_disconnect_cancels_all_handlers(
    how: str, autojump_clock: trio.abc.Clock
) -> None:
    """A handler ends with its connection, whether the client leaves its block or is cancelled."""
    server = example_server()

    async def converse() -> None:
        async with client_of(listener) as opened, trio.open_nursery() as nursery:
            nursery.start_soon(opened.call_tool, "wait")
            await server.started.wait()  # type: ignore[attr-defined]
            nursery.cancel_scope.cancel()

    @asynccontextmanager
    async def client_of(listener: MemoryListener) -> AsyncIterator[Client]:
        async with connecting_to(listener.connect), connect("ws://localhost/mcp") as opened:
            yield opened

    async with served_over_http(server) as listener:
        if how == "leaves":
            await converse()
        else:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(converse)
                await server.started.wait()  # type: ignore[attr-defined]
                nursery.cancel_scope.cancel()
        await server.ended.wait()  # type: ignore[attr-defined]


async def test_websocket_server_shutdown_closes_with_1001(autojump_clock: trio.abc.Clock) -> None:
    """The running call has the grace period of 2 seconds, then fails with an explanation."""
    stop = trio.Event()
    server = example_server()
    async with client(server, stop=stop, grace=2.0) as opened, trio.open_nursery() as nursery:

        async def call() -> None:
            with pytest.raises(Exception, match="the server is being shut down"):
                await opened.call_tool("wait")

        nursery.start_soon(call)
        await server.started.wait()  # type: ignore[attr-defined]
        began = trio.current_time()
        stop.set()
        await server.ended.wait()  # type: ignore[attr-defined]
        assert trio.current_time() - began == 2.0
        await trio.sleep(0.1)
        with pytest.raises(ConnectionLost, match=r"closed the WebSocket \(1001\)"):
            await opened.call_tool("echo", {"text": "x"})


async def test_websocket_keep_alive_pings_both_ways(autojump_clock: trio.abc.Clock) -> None:
    async with client() as opened:
        await trio.sleep(3600)
        assert await echo(opened, "x") == "x"


async def test_websocket_internal_error_ends_one_connection(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    autojump_clock: trio.abc.Clock,
) -> None:
    """It closes with 1011 and a log record, and the server goes on for the others."""
    async with served_over_http(example_server()) as listener:
        wire, other = FrameWire(listener.connect()), FrameWire(listener.connect())
        for each in (wire, other):
            assert await each.open(upgrade()) == 101
        read = WebSocketFrames.read

        def fail(self: WebSocketFrames, data: bytes, now: float) -> None:
            if data:
                raise ZeroDivisionError
            read(self, data, now)

        monkeypatch.setattr(WebSocketFrames, "read", fail)
        await wire.send(message(ASK))
        assert await wire.receive_all() == [1011]
        assert "internal error on <WebSocketServerConnection of <WebSocket" in caplog.text
        monkeypatch.undo()
        await other.send(message(ASK))
        assert await other.message() == ANSWER


async def test_websocket_broken_while_sending_ends_the_handler(
    autojump_clock: trio.abc.Clock,
) -> None:
    server = example_server()
    async with connected(server) as wire:
        params = {"name": "report", "arguments": {"times": 500, "size": 4096}}
        await wire.send(message(stateless_request(1, "tools/call", params, progressToken=1)))
        await trio.sleep(1)
        await trio.aclose_forcefully(wire.stream)
        await trio.sleep(1)
        assert len(server.reported) < 100  # type: ignore[attr-defined]


# -- Backpressure --------------------------------------------------------------------------------


async def test_websocket_unread_output_pauses_and_then_ends(autojump_clock: trio.abc.Clock) -> None:
    """A slow reader gets all 501 messages; one that stops reading is cut off after a timeout."""
    server = example_server()
    async with connected(server) as wire:
        params = {"name": "report", "arguments": {"times": 500, "size": 4096}}
        await wire.send(message(stateless_request(1, "tools/call", params, progressToken=1)))
        await trio.sleep(5)
        reported = len(server.reported)  # type: ignore[attr-defined]
        assert 10 < reported < 100
        await trio.sleep(5)
        assert len(server.reported) == reported  # type: ignore[attr-defined]
        received = [await wire.message() for _ in range(501)]
        assert received[-1]["id"] == 1
        await wire.send(message(stateless_request(2, "tools/call", params, progressToken=2)))
        await trio.sleep(40)
        while await wire.more():
            pass
        assert len(server.reported) < 700  # type: ignore[attr-defined]


async def test_websocket_server_unread_responses_pause_reading(
    autojump_clock: trio.abc.Clock,
) -> None:
    async with connected() as wire:
        ask = message(
            stateless_request(
                1, "tools/call", {"name": "echo", "arguments": {"text": "x" * 50_000}}
            )
        )
        sent = 0
        with trio.move_on_after(20):
            while sent < 1000:
                await wire.stream.send_all(ask)
                sent += 1
        assert sent < 60


async def test_websocket_server_with_authorization_needs_a_token(
    autojump_clock: trio.abc.Clock,
) -> None:
    """A WebSocket can't log in, so the token goes in headers and `auth=` is refused."""
    async with (
        served_over_http(example_server(), auth={"/mcp": guard()}) as listener,
        connecting_to(listener.connect),
    ):
        with pytest.raises(ConnectFailed, match="access token, in headers") as caught:
            async with connect("ws://localhost/mcp"):
                pass
    assert isinstance(caught.value.__cause__, AuthRequired)
    who = {"headers": {"authorization": "Bearer ann"}}
    async with client(auth={"/mcp": guard()}, of_client=who) as opened:
        assert await echo(opened, "x") == "x"
    with pytest.raises(ValueError, match="token in headers"):
        connect("wss://localhost/mcp", auth=True)


async def test_scheme_with_a_row_reaches_client_host_and_command(
    autojump_clock: trio.abc.Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An invented scheme is a row of `URL_TRANSPORTS`, and no other code knows it."""
    url = "quay://localhost/mcp"
    with pytest.raises(TypeError, match="connect to a URL"):
        connect(url)
    with pytest.raises(TypeError, match="a URL with http://"):
        Host({"far": url})
    monkeypatch.setitem(URL_TRANSPORTS, "quay", UrlTransport("websocket", "http"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    target = cast("partial[int]", _inspect.parse([url])).args[0]
    async with served_over_http(example_server()) as listener, connecting_to(listener.connect):
        async with connect(url) as opened:
            assert await echo(opened, "a") == "a"
        async with Host({"far": url}, approve="all") as host:
            assert (await host.call_tool("far", "echo", {"text": "b"})).text == "b"
        async with target.connect(trio.CancelScope()) as opened:
            assert await echo(opened, "c") == "c"
