"""An HTTP/1.1 client connection over a memory pair. The test plays the server."""

from __future__ import annotations

import ssl
from typing import Any

import h11
import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed, ConnectionLost
from mcp_core.http import MAX_ERROR_BODY, MAX_RESPONSE_HEAD, Action, Body, End, Head, RequestHead
from mcp_trio import memory_pair
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.http_client._h11_connection import (
    H11ClientConnection,
    has_input,
    open_tunnel,
    request_upgrade,
)
from tests.harness.wire.http1_server import long_head
from tests.harness.world.waiting import PATIENCE, until

HEAD = RequestHead(b"POST", b"/mcp?a=b", [(b"host", b"here"), (b"accept", b"application/json")])
REQUEST = (
    b"POST /mcp?a=b HTTP/1.1\r\nhost: here\r\n"
    b"accept: application/json\r\n"
    b"content-length: 2\r\n"
    b"\r\n{}"
)
SHORT = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
)
EMPTY = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
UNTIL_THE_END = b"HTTP/1.0 200 OK\r\n\r\nhello"


class H11Exchange:
    """One request, with the result."""

    def __init__(self, client: H11ClientConnection, body: bytes = b"{}") -> None:
        self.client, self.body = client, body
        self.actions: list[Action] = []
        self.again: bool | None = None
        self.error: Exception | None = None
        self.over = trio.Event()

    async def run(self) -> None:
        try:
            self.again = await self.client.run(HEAD, self.body, self.actions.extend)
        except (ConnectionLost, ValueError) as exc:
            self.error = exc
        self.over.set()

    @property
    def text(self) -> bytes:
        return b"".join(action.data for action in self.actions if isinstance(action, Body))


async def answered(answer: bytes, *, close: bool = False) -> tuple[H11Exchange, bytes]:
    """Return the result of a request with this response, and the request as the server read it."""
    ours, theirs = memory_pair()
    client = H11ClientConnection(ours)
    exchange = H11Exchange(client)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(exchange.run)
        request = await theirs.receive_some()
        await theirs.send_all(answer)
        if close:
            await theirs.aclose()
        with trio.fail_after(PATIENCE):
            await exchange.over.wait()
    await client.aclose()
    await theirs.aclose()
    return exchange, bytes(request)


@pytest.mark.parametrize(
    ("answer", "close", "status", "text", "again"),
    [
        pytest.param(SHORT, False, 200, b"hello", True, id="a length"),
        pytest.param(CHUNKED, False, 200, b"hello world", True, id="chunks"),
        pytest.param(EMPTY, False, 202, b"", True, id="no body"),
        pytest.param(
            b"HTTP/1.1 204 No Content\r\n\r\n", False, 204, b"", True, id="a status without a body"
        ),
        pytest.param(
            b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + SHORT,
            False,
            200,
            b"hello",
            True,
            id="interim responses",
        ),
        pytest.param(UNTIL_THE_END, True, 200, b"hello", False, id="HTTP/1.0 to its end"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
            False,
            200,
            b"hello",
            False,
            id="the last one",
        ),
        pytest.param(
            SHORT + b"HTTP/1.1 200", False, 200, b"hello", False, id="more than was asked for"
        ),
        pytest.param(
            b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
            False,
            302,
            b"",
            True,
            id="elsewhere",
        ),
    ],
)
async def test_h11_client_complete_response_is_returned(
    answer: bytes, close: bool, status: int, text: bytes, again: bool
) -> None:
    exchange, request = await answered(answer, close=close)
    assert request == REQUEST
    assert exchange.error is None
    head, *rest = exchange.actions
    assert isinstance(head, Head)
    assert head.status == status
    assert all(name == name.lower() for name, _ in head.headers)
    assert isinstance(rest[-1], End)
    assert exchange.text == text
    assert exchange.again is again


@pytest.mark.parametrize("answer", [SHORT, CHUNKED])
async def test_h11_client_truncated_response_is_connection_lost(answer: bytes) -> None:
    for length in range(len(answer)):
        exchange, _ = await answered(answer[:length], close=True)
        assert isinstance(exchange.error, ConnectionLost)
        when = "without an answer" if length == 0 else "in the middle of its answer"
        assert str(exchange.error) == f"the server closed the connection {when}"
        assert not any(isinstance(action, End) for action in exchange.actions)


@pytest.mark.parametrize("answer", [SHORT, CHUNKED])
async def test_h11_client_response_byte_by_byte_is_the_same(answer: bytes) -> None:
    """TCP may split a response anywhere, and each byte is passed on as soon as it arrives."""
    whole, _ = await answered(answer)
    ours, theirs = memory_pair()
    exchange = H11Exchange(H11ClientConnection(ours))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(exchange.run)
        await theirs.receive_some()
        for byte in answer:
            assert not exchange.over.is_set()
            await theirs.send_all(bytes([byte]))
            await trio.testing.wait_all_tasks_blocked()
    assert (exchange.actions[0], exchange.text, exchange.again) == (
        whole.actions[0],
        whole.text,
        True,
    )
    assert len([action for action in exchange.actions if isinstance(action, Body)]) == len(
        whole.text
    )
    await exchange.client.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=lambda answer: repr(answer[:40]),
)
async def test_h11_client_invalid_http_is_connection_lost(answer: bytes) -> None:
    exchange, _ = await answered(answer)
    assert isinstance(exchange.error, ConnectionLost)
    assert str(exchange.error).startswith("the server's answer is not HTTP/1.1")
    assert exchange.again is None


@pytest.mark.parametrize(
    ("beginning", "error"),
    [
        (b"\x15\x03\x01", "the server speaks TLS; is its address https:// instead?"),
        (b"220", "the server's answer is not HTTP/1.1; is something else listening there?"),
    ],
)
async def test_h11_client_server_of_another_protocol_is_noticed_at_its_first_bytes(
    beginning: bytes, error: str
) -> None:
    """It may then wait for us, without the end of a line."""
    exchange, _ = await answered(beginning)
    assert str(exchange.error) == error


async def test_h11_client_long_head_in_two_pieces_is_connection_lost() -> None:
    ours, theirs = memory_pair()
    exchange = H11Exchange(H11ClientConnection(ours))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(exchange.run)
        head = long_head(MAX_RESPONSE_HEAD + 1)
        for piece in head[:60_000], head[60_000:]:
            await trio.testing.wait_all_tasks_blocked()
            await theirs.send_all(piece)
    assert str(exchange.error) == (
        "the server's answer is not HTTP/1.1: the response's head has more than 65536 bytes"
    )


async def test_h11_client_data_before_an_error_is_passed_on() -> None:
    exchange, _ = await answered(CHUNKED.partition(b"6")[0] + b"nonsense\r\n")
    assert exchange.text == b"hello"
    assert isinstance(exchange.error, ConnectionLost)


async def test_h11_client_reuses_the_connection() -> None:
    """Three exchanges share one stream, which is closed only once."""
    ours, theirs = memory_pair()
    client = H11ClientConnection(ours)
    assert not client.received
    for number in range(3):
        exchange = H11Exchange(client)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exchange.run)
            assert await theirs.receive_some() == REQUEST
            await theirs.send_all(SHORT)
        assert (exchange.again, exchange.text, client.response_count) == (
            True,
            b"hello",
            number + 1,
        )
    assert repr(client) == "<H11ClientConnection IDLE, 3 responses>"
    assert client.server_closed() is False  # not known without a socket
    await client.aclose()
    await client.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"")


async def test_h11_client_request_without_body_has_no_length() -> None:
    ours, theirs = memory_pair()
    exchange = H11Exchange(H11ClientConnection(ours), b"")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(exchange.run)
        assert await theirs.receive_some() == (
            b"POST /mcp?a=b HTTP/1.1\r\nhost: here\r\naccept: application/json\r\n\r\n"
        )
        await theirs.send_all(SHORT)
    assert exchange.again


async def test_h11_client_connection_that_ends_between_requests_has_received_nothing() -> None:
    """A response of an earlier request doesn't count: the pool may send this one again."""
    ours, theirs = memory_pair()
    client = H11ClientConnection(ours)
    first, second = H11Exchange(client), H11Exchange(client)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first.run)
        await theirs.receive_some()
        await theirs.send_all(SHORT)
    received = [client.received]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(second.run)
        await theirs.receive_some()
        await theirs.send_eof()
    received.append(client.received)
    assert received == [True, False]
    assert str(second.error) == "the server closed the connection without an answer"


async def test_h11_client_invalid_request_raises_and_sends_nothing() -> None:
    ours, theirs = memory_pair()
    client = H11ClientConnection(ours)
    wrong = RequestHead(b"POST", b"/", [(b"host", b"a"), (b"x", b"a\r\nb: c")])
    with pytest.raises(ValueError, match=r"cannot be written as HTTP/1\.1"):
        await client.run(wrong, b"{}", print)
    await client.aclose()
    assert await theirs.receive_some() == b""


async def test_h11_client_on_a_broken_stream_is_connection_lost() -> None:
    ours, theirs = memory_pair()
    await theirs.aclose()
    exchange = H11Exchange(H11ClientConnection(ours))
    await exchange.run()
    assert str(exchange.error) == "the server closed the connection without an answer"


class FailingStream:
    """A stream that fails in `method`, when it has been read for `data`, if there is any.

    With None for `data` nothing can be read, and it stays open.
    """

    def __init__(self, method: str, error: type[Exception], data: bytes | None = b"") -> None:
        self.method, self.error = method, error
        self.pieces = [data] if data else []
        self.is_silent = data is None

    async def send_all(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        if self.method == "send_all":
            raise self.error

    async def receive_some(self, size: int) -> bytes:
        await trio.lowlevel.checkpoint()
        if self.pieces:
            return self.pieces.pop()
        if self.method == "receive_some":
            raise self.error
        if self.is_silent:
            await trio.sleep_forever()
        return b""


@pytest.mark.parametrize("error", [trio.BrokenResourceError, trio.ClosedResourceError])
@pytest.mark.parametrize("size", [2, 100_000])
@pytest.mark.parametrize(
    ("method", "data", "text"),
    [
        ("send_all", b"", "the server closed the connection without an answer"),
        ("receive_some", b"", "the server closed the connection without an answer"),
        ("receive_some", b"HT", "the server closed the connection in the middle of its answer"),
        ("send_all", EMPTY, None),
    ],
)
async def test_h11_client_stream_that_breaks_is_connection_lost_unless_there_is_a_response(
    method: str, data: bytes, text: str | None, size: int, error: type[Exception]
) -> None:
    stream: Any = FailingStream(method, error, data)
    exchange = H11Exchange(H11ClientConnection(stream), b"x" * size)
    await exchange.run()
    assert (str(exchange.error) if exchange.error else None) == text
    assert exchange.again is (None if text else False)  # the request wasn't sent


@pytest.mark.parametrize("method", ["send_all", "receive_some"])
@pytest.mark.parametrize("size", [2, 100_000])
async def test_h11_client_error_of_the_stream_itself_is_raised(method: str, size: int) -> None:
    """Such as `trio.BusyResourceError`: it is a bug, and not the server's fault."""
    stream: Any = FailingStream(method, ZeroDivisionError, None)
    with pytest.raises(ZeroDivisionError):
        await H11Exchange(H11ClientConnection(stream), b"x" * size).run()


# --- long requests ------------------------------------------------------------------------------

LONG = b'"' + b"x" * 300_000 + b'"'
REFUSED = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n"


async def test_h11_client_long_request_is_written_while_the_server_reads() -> None:
    """The body exceeds the buffers, so the client must write on as the server reads."""
    ours, theirs = memory_pair()
    exchange = H11Exchange(H11ClientConnection(ours), LONG)
    server = h11.Connection(h11.SERVER)
    read = bytearray()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(exchange.run)
        while True:
            event = server.next_event()
            if event is h11.NEED_DATA:
                server.receive_data(bytes(await theirs.receive_some()))
            elif isinstance(event, h11.Data):
                read += event.data
            elif isinstance(event, h11.EndOfMessage):
                break
        await theirs.send_all(SHORT)
    assert read == LONG
    assert (exchange.text, exchange.again) == (b"hello", True)


@pytest.mark.parametrize("closed", [False, True])
async def test_h11_client_long_request_rejected_early_returns_the_response(closed: bool) -> None:
    """It is read also if the server has closed after it, so that writing fails."""
    ours, theirs = memory_pair()
    exchange = H11Exchange(H11ClientConnection(ours), LONG)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(exchange.run)
        await theirs.receive_some(1000)
        await theirs.send_all(REFUSED)
        if closed:
            await theirs.aclose()
        await exchange.over.wait()
    assert isinstance(exchange.actions[0], Head)
    assert exchange.actions[0].status == 413
    assert exchange.again is False  # the rest of the request was not sent


async def test_h11_client_second_request_rejected_early_ends_the_connection() -> None:
    """That the first request was sent as a whole says nothing about the second one."""
    ours, theirs = memory_pair()
    client = H11ClientConnection(ours)
    for body, answer, again in ((b"{}", SHORT, True), (LONG, REFUSED, False)):
        exchange = H11Exchange(client, body)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exchange.run)
            await theirs.receive_some(1000)
            await theirs.send_all(answer)
            await exchange.over.wait()
        assert exchange.again is again


@pytest.mark.parametrize(
    ("size", "order"), [(65_536, ["written", "read"]), (65_537, ["read", "written"])]
)
async def test_h11_client_reads_beside_writing_from_64_kib_on(size: int, order: list[str]) -> None:
    """A socket takes less than that at once, so that no second task is needed."""
    done: list[str] = []
    written = trio.Event()

    class OrderedStream:
        async def send_all(self, data: bytes) -> None:
            assert len(data) == size
            await trio.testing.wait_all_tasks_blocked()
            done.append("written")
            written.set()

        async def receive_some(self, _: int) -> bytes:
            done.append("read")
            await written.wait()
            return EMPTY

    stream: Any = OrderedStream()
    exchange = H11Exchange(
        H11ClientConnection(stream), b"x" * (size - len(REQUEST) - len("65536") + len("2{}"))
    )
    await exchange.run()
    assert (done, exchange.again) == (order, True)


async def test_h11_client_paused_response_is_not_read_until_resumed() -> None:
    """The callback's event is the backpressure: unread bytes stay in the transport."""
    ours, theirs = memory_pair()
    client = H11ClientConnection(ours)
    resumed = trio.Event()
    actions: list[Action] = []

    def on_actions(some: list[Action]) -> trio.Event:
        actions.extend(some)
        return resumed

    async def run() -> None:
        assert await client.run(HEAD, b"{}", on_actions)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await theirs.receive_some()
        await theirs.send_all(CHUNKED[:-20])
        await trio.testing.wait_all_tasks_blocked()
        seen = len(actions)
        assert seen
        await theirs.send_all(CHUNKED[-20:])
        await trio.testing.wait_all_tasks_blocked()
        assert len(actions) == seen
        resumed.set()
    assert type(actions[-1]) is End
    await client.aclose()
    await theirs.aclose()


async def test_h11_client_cancelled_while_writing_or_reading() -> None:
    for body in LONG, b"{}":
        ours, theirs = memory_pair()
        exchange = H11Exchange(H11ClientConnection(ours), body)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exchange.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert not exchange.over.is_set()
        await exchange.client.aclose()
        assert (await theirs.receive_some()).startswith(b"POST")


@pytest.mark.parametrize(("seconds", "is_whole"), [(0.0, True), (0.5, True), (60.0, False)])
async def test_h11_client_close_has_a_second(
    seconds: float, is_whole: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """TLS says goodbye to the server, which may not read."""
    closed: list[bool] = []

    class SlowStream:
        async def aclose(self) -> None:
            await trio.sleep(seconds)
            closed.append(True)

    stream: Any = SlowStream()
    began = trio.current_time()
    await H11ClientConnection(stream).aclose()
    assert trio.current_time() - began == min(seconds, 1)
    assert bool(closed) is is_whole


# --- sockets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [False, True])
async def test_h11_client_server_closed_is_noticed_on_a_socket(tls: bool) -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        socket = await trio.open_tcp_stream(*listener.socket.getsockname())
        ours: trio.abc.Stream = socket
        if tls:
            ours = trio.SSLStream(socket, ssl.create_default_context(), server_hostname="there")
        theirs = await listener.accept()
        client = H11ClientConnection(ours)
        assert not client.server_closed()
        assert has_input(ours) is False
        await theirs.aclose()
        await until(client.server_closed)
        assert has_input(ours) is True
        await trio.aclose_forcefully(ours)


async def test_stream_without_socket_has_no_known_input() -> None:
    ours, theirs = memory_pair()
    await theirs.send_all(b"x")
    assert has_input(ours) is False


# --- tunnels ------------------------------------------------------------------------------------


async def tunnelled(answer: bytes, *, close: bool = False) -> bytes:
    """Return what a proxy with this response receives."""
    ours, theirs = memory_pair()
    async with trio.open_nursery() as nursery:

        async def play() -> None:
            await theirs.send_all(answer)
            if close:
                await theirs.send_eof()

        nursery.start_soon(play)
        await open_tunnel(ours, "there:443", [(b"proxy-authorization", b"Basic x")])
    received = bytes(await theirs.receive_some())
    # From here on the stream leads to the server.
    await theirs.send_all(b"\x16\x03")
    assert await ours.receive_some() == b"\x16\x03"
    return received


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 Connection established\r\n\r\n",
        b"HTTP/1.1 100 Wait\r\n\r\nHTTP/1.0 200 OK\r\nvia: me\r\n\r\n",
        b"HTTP/1.1 299 Odd\r\n\r\n",
    ],
)
async def test_h11_tunnel_is_opened(answer: bytes) -> None:
    received = await tunnelled(answer)
    assert received == (
        b"CONNECT there:443 HTTP/1.1\r\nhost: there:443\r\nproxy-authorization: Basic x\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("answer", "close", "error"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            False,
            "it answered 407 Proxy Authentication Required",
        ),
        (b"HTTP/1.1 502\r\n\r\n", False, "it answered 502"),
        (b"HTTP/1.1 300 Choose\r\n\r\n", False, "it answered 300 Choose"),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", True, "its answer is not HTTP/1.1"),
        (b"", True, "it closed the connection"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", False, "it sent data right after its answer"),
    ],
)
async def test_h11_tunnel_refused_raises(answer: bytes, close: bool, error: str) -> None:
    with (
        trio.fail_after(PATIENCE),
        pytest.RaisesGroup(pytest.RaisesExc(ConnectFailed, match=error)),
    ):
        await tunnelled(answer, close=close)


async def test_h11_tunnel_error_does_not_quote_the_answer() -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(ConnectFailed)) as caught:
        await tunnelled(b"proxy-authorization: Basic x\r\n\r\n")
    [error] = caught.value.exceptions
    assert str(error) == "its answer is not HTTP/1.1: illegal status line"


@pytest.mark.parametrize("error", [trio.BrokenResourceError, trio.ClosedResourceError])
@pytest.mark.parametrize("method", ["send_all", "receive_some"])
async def test_h11_tunnel_on_a_broken_stream_raises(method: str, error: type[Exception]) -> None:
    stream: Any = FailingStream(method, error)
    with pytest.raises(ConnectFailed, match=r"^it closed the connection$"):
        await open_tunnel(stream, "there:443", [])


async def test_h11_tunnel_to_a_closed_proxy_raises() -> None:
    ours, theirs = memory_pair()
    await theirs.aclose()
    with pytest.raises(ConnectFailed, match="it closed the connection"):
        await open_tunnel(ours, "there:443", [])
    await ours.aclose()


# --- WebSocket upgrades -------------------------------------------------------------------------

UPGRADE = RequestHead(b"GET", b"/ws?a", [(b"host", b"here"), (b"upgrade", b"websocket")])
SWITCH = b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n"
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n"
NO_ANSWER = "the server closed the connection without an answer"


async def upgraded(answer: bytes, *, end: bool, size: int = 100_000) -> tuple[Head, bytes]:
    """Return the result with a server that sends this in pieces of `size` bytes."""
    ours, theirs = memory_pair()

    async def play() -> None:
        assert await theirs.receive_some() == (
            b"GET /ws?a HTTP/1.1\r\nhost: here\r\nupgrade: websocket\r\n\r\n"
        )
        for start in range(0, len(answer), size):
            await theirs.send_all(answer[start : start + size])
            await trio.testing.wait_all_tasks_blocked()
        if end:
            await theirs.send_eof()

    with trio.fail_after(PATIENCE):
        async with open_quiet_nursery() as nursery:
            nursery.start_soon(play)
            try:
                return await request_upgrade(ours, UPGRADE)
            finally:
                nursery.cancel_scope.cancel()


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize(
    ("answer", "end", "status", "rest"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n" + SWITCH, False, 101, b""),
        (MISSING + b"hello", False, 404, b"hello"),
        (MISSING + b"hel", True, 404, b"hel"),
        (b"HTTP/1.1 400 No\r\n\r\nhello", True, 400, b"hello"),
        (
            b"HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n?\r\n",
            False,
            400,
            b"hel",
        ),
        # The body isn't waited for.
        (b"HTTP/1.1 399 Odd\r\nContent-Length: 5\r\n\r\n", False, 399, b""),
        (b"HTTP/1.1 200 OK\r\n\r\n", False, 200, b""),
    ],
)
async def test_h11_upgrade_returns_the_response(
    answer: bytes,
    end: bool,
    status: int,
    rest: bytes,
    size: int,
    autojump_clock: trio.testing.MockClock,
) -> None:
    head, found = await upgraded(answer, end=end, size=size)
    assert (head.status, found) == (status, rest)
    if status == 101:
        assert head.headers == [(b"upgrade", b"websocket")]
    if status == 404:
        assert head.headers == [(b"content-length", b"5")]


async def test_h11_upgrade_returns_the_bytes_that_follow(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A server may send its first message right behind its response."""
    assert await upgraded(SWITCH + b"\x81\x00", end=False) == (
        Head(101, [(b"upgrade", b"websocket")]),
        b"\x81\x00",
    )


async def test_h11_upgrade_body_of_an_error_is_limited(
    autojump_clock: trio.testing.MockClock,
) -> None:
    answer = b"HTTP/1.1 500 No\r\n\r\n"
    size = len(answer)
    answer += b"x" * (MAX_ERROR_BODY - size)
    # It ends exactly at the limit: no more is waited for.
    head, body = await upgraded(answer + b"y" * size, end=False, size=MAX_ERROR_BODY)
    assert (head.status, len(body)) == (500, MAX_ERROR_BODY)
    # One byte less may still be followed by others.
    head, body = await upgraded(answer + b"y" * (size - 1), end=True, size=MAX_ERROR_BODY)
    assert (head.status, len(body)) == (500, MAX_ERROR_BODY - 1)


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize(
    ("answer", "end", "error"),
    [
        (b"", True, NO_ANSWER),
        (b"HTTP/1.1 404 Not", True, NO_ANSWER),
        (
            b"SSH-2.0-OpenSSH_9.9\r\n",
            False,
            "the server's answer is not HTTP/1.1; is something else listening there?",
        ),
        (
            b"HTTP/1.1 secret\r\n\r\n",
            False,
            "the server's answer is not HTTP/1.1: illegal status line",
        ),
    ],
)
async def test_h11_upgrade_without_valid_response_raises(
    answer: bytes, end: bool, error: str, size: int, autojump_clock: trio.testing.MockClock
) -> None:
    with pytest.raises(ConnectFailed) as caught:
        await upgraded(answer, end=end, size=size)
    assert str(caught.value) == error


async def test_h11_upgrade_by_a_server_with_tls_names_the_scheme(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The alert is short, and the server then waits."""
    with pytest.raises(ConnectFailed) as caught:
        await upgraded(b"\x15\x03\x01\x00\x02\x02\x46", end=False)
    assert str(caught.value) == "the server speaks TLS; is its address wss:// instead?"


@pytest.mark.parametrize("error", [trio.BrokenResourceError, trio.ClosedResourceError])
@pytest.mark.parametrize("answer", [b"", MISSING + b"hel"])
async def test_h11_upgrade_on_a_broken_stream_keeps_what_has_arrived(
    answer: bytes, error: type[Exception]
) -> None:
    """A reset connection may follow an error's body, or part of it, which names the cause."""
    stream: Any = FailingStream("receive_some", error, answer)
    if answer:
        found = await request_upgrade(stream, UPGRADE)
        assert found == (Head(404, [(b"content-length", b"5")]), b"hel")
    else:
        with pytest.raises(ConnectFailed, match=f"^{NO_ANSWER}$"):
            await request_upgrade(stream, UPGRADE)


async def test_h11_upgrade_on_a_closed_stream_raises() -> None:
    ours, theirs = memory_pair()
    await theirs.aclose()
    with pytest.raises(ConnectFailed, match=f"^{NO_ANSWER}$"):
        await request_upgrade(ours, UPGRADE)
    await ours.aclose()
