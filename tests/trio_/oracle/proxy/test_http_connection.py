"""One client connection of the HTTP proxy, with a server that the test plays in bytes."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import h11
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import memory_stream_pair

from mcp_core import ConnectFailed
from mcp_core.adapters import Recording
from mcp_core.http import HostOriginPolicy, ProxyPolicy, Url
from mcp_core.trace import DamagedLine, TraceLine, read_trace
from mcp_trio.http_client._connector import Connector
from mcp_trio.http_server._connection import (
    HEAD_SECONDS,
    IDLE_SECONDS,
    LINGER_SECONDS,
    MAX_UNWANTED,
    AccessLogEntry,
)
from mcp_trio.oracle.proxy import _http_connection
from mcp_trio.oracle.proxy._http_connection import ProxyConnection, Upstream
from mcp_trio.recording._open import open_recorder
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

URL = Url.parse("http://server.test:8000/mcp")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
GET = b"GET /mcp HTTP/1.1\r\nHost: localhost:9\r\n\r\n"
POST = b"POST /mcp HTTP/1.1\r\nHost: localhost:9\r\nContent-Length: 4\r\n\r\nbody"


class PlayedUpstream(Upstream):
    """A server in memory. `next_server` waits for the proxy to connect, and gives its other end."""

    def __init__(self) -> None:
        super().__init__(URL, Connector(*URL.origin, proxy=None))
        self.connections = 0
        self.proxy_ends: list[trio.abc.Stream] = []
        self._send, self._receive = trio.open_memory_channel[Any](100)

    async def connect(self) -> trio.abc.Stream:
        ours, theirs = memory_stream_pair()
        self.connections += 1
        self.proxy_ends.append(ours)
        self._send.send_nowait(theirs)
        return ours

    async def next_server(self) -> Any:
        return await self._receive.receive()


class ProxiedClient:
    """The client's end, and what the proxy has logged."""

    def __init__(self, client: Any, upstream: PlayedUpstream) -> None:
        self.client = client
        self.upstream = upstream
        self.log: list[AccessLogEntry] = []
        self.ended = trio.Event()


@asynccontextmanager
async def proxied(recorder: Any = None, host: str = "127.0.0.1") -> AsyncIterator[ProxiedClient]:
    client, theirs = memory_stream_pair()
    upstream = PlayedUpstream()
    wire = ProxiedClient(client, upstream)
    policy = ProxyPolicy(HostOriginPolicy(host, scheme="http"), URL, adds_headers=False)
    connection = ProxyConnection(theirs, upstream, policy, recorder, wire.log.append)

    async def run() -> None:
        await connection.run()
        wire.ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        yield wire
        await client.aclose()


async def read_until(stream: Any, end: bytes) -> bytes:
    """Return what arrives up to `end`, which must be the last bytes."""
    found = b""
    while not found.endswith(end):
        data = await stream.receive_some()
        assert data, found
        found += data
    return found


async def read_rest(stream: Any) -> bytes:
    return b"".join([bytes(data) async for data in stream])


async def exchange(
    wire: ProxiedClient, request: bytes, response: bytes = OK
) -> tuple[bytes, bytes]:
    """Send a whole request, and return what the server and the client receive."""
    await wire.client.send_all(request)
    server = await wire.upstream.next_server()
    await trio.testing.wait_all_tasks_blocked()
    received = bytes(await server.receive_some())
    await server.send_all(response)
    await trio.testing.wait_all_tasks_blocked()
    return received, bytes(await wire.client.receive_some())


def lines_of(path: Path) -> list[TraceLine]:
    _, lines = read_trace([path.read_bytes()])
    return [line for _, line in lines if not isinstance(line, DamagedLine)]


# -- Heads -----------------------------------------------------------------------------------------

HEADS = [
    (
        (
            b"POST /a?b=%20 HTTP/1.1\r\nX-First: 1\r\nHost: LOCALHOST:9\r\nMcp-Session-Id: s\r\n"
            b"Origin: http://page.test\r\nAuthorization: Bearer x\r\nConnection: close, X-Hop\r\n"
            b"x-hop: 1\r\nAccept: a\r\naccept: b\r\nContent-Length: 0\r\n\r\n"
        ),
        (
            b"POST /a?b=%20 HTTP/1.1\r\nX-First: 1\r\n"
            b"Host: server.test:8000\r\nMcp-Session-Id: s\r\n"
            b"Origin: http://page.test\r\nAuthorization: Bearer x\r\nAccept: a\r\naccept: b\r\n"
            b"Content-Length: 0\r\n\r\n"
        ),
    ),
    (
        b"GET /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nLast-Event-ID: 7\r\nTE: trailers\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nhost: server.test:8000\r\nLast-Event-ID: 7\r\n\r\n",
    ),
    (
        b"DELETE /mcp HTTP/1.1\r\nHost: [::1]:9\r\nmcp-session-id: s\r\n\r\n",
        b"DELETE /mcp HTTP/1.1\r\nHost: server.test:8000\r\nmcp-session-id: s\r\n\r\n",
    ),
    (
        b"GET http://localhost:9/mcp?x HTTP/1.1\r\nHost: localhost:9\r\nUpgrade: h2c\r\n\r\n",
        b"GET /mcp?x HTTP/1.1\r\nHost: server.test:8000\r\n\r\n",
    ),
    # A page of the server itself, and others.
    (
        b"GET / HTTP/1.1\r\nHost: localhost:9\r\nOrigin: http://localhost:9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: server.test:8000\r\nOrigin: http://server.test:8000\r\n\r\n",
    ),
    *[
        (
            b"GET / HTTP/1.1\r\nHost: localhost:9\r\nOrigin: %b\r\n\r\n" % origin,
            b"GET / HTTP/1.1\r\nHost: server.test:8000\r\nOrigin: %b\r\n\r\n" % origin,
        )
        for origin in (
            b"http://localhost:8",
            b"https://localhost:9",
            b"http://127.0.0.1:9",
            b"http://server.test:8000",
            b"null",
        )
    ],
    (
        b"OPTIONS * HTTP/1.0\r\nHost: localhost\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: server.test:8000\r\n\r\n",
    ),
    (
        (
            b"POST / HTTP/1.1\r\nHost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
            b"3;x=y\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"
        ),
        (
            b"POST / HTTP/1.1\r\nHost: server.test:8000\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"
        ),
    ),
]


@pytest.mark.parametrize(("request_bytes", "received"), HEADS)
async def test_request_head_is_kept_but_for_fields_of_the_connection(
    request_bytes: bytes, received: bytes
) -> None:
    async with proxied() as wire:
        found, response = await exchange(wire, request_bytes)
        assert found == received
        assert response.endswith(b"ok")


# The response of the server, and what the client gets.
RESPONSES = [
    (OK, OK),
    (
        b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer x\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer x\r\nContent-Length: 0\r\n\r\n",
    ),
    (
        b"HTTP/1.1 307 \r\nLocation: http://other.test/\r\ncontent-length: 1\r\n\r\nx",
        b"HTTP/1.1 307 \r\nLocation: http://other.test/\r\ncontent-length: 1\r\n\r\nx",
    ),
    (b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"),
    (b"HTTP/1.1 304 Mine\r\nETag: a\r\n\r\n", b"HTTP/1.1 304 Mine\r\nETag: a\r\n\r\n"),
    (
        b"HTTP/1.1 599 X\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 599 X\r\ncontent-length: 0\r\n\r\n",
    ),
    (
        (
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
            b"content-length: 0\r\n\r\n"
        ),
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\ncontent-length: 0\r\n\r\n",
    ),
    (
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-T: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-T: 1\r\n\r\n",
    ),
]


@pytest.mark.parametrize(("response", "received"), RESPONSES)
async def test_response_head_is_kept_but_for_fields_of_the_connection(
    response: bytes, received: bytes
) -> None:
    async with proxied() as wire:
        _, found = await exchange(wire, GET, response)
        assert found == received
        assert wire.log[0].status == int(received.split()[1]) or wire.log[0].status == 200


@pytest.mark.parametrize("framing", [b"Content-Length: 12", b"Transfer-Encoding: chunked"])
async def test_response_to_head_has_no_body(framing: bytes) -> None:
    async with proxied() as wire:
        response = b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % framing
        request = GET.replace(b"GET", b"HEAD")
        assert (await exchange(wire, request, response))[1] == response
        await wire.client.send_all(request)  # the connection can still be used


async def test_expectation_and_its_interim_response_pass() -> None:
    async with proxied() as wire:
        head = POST.replace(b"\r\n\r\nbody", b"\r\nExpect: 100-continue\r\n\r\n")
        await wire.client.send_all(head)
        server = await wire.upstream.next_server()
        assert b"Expect: 100-continue" in await read_until(server, b"\r\n\r\n")
        await server.send_all(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert await read_until(wire.client, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await wire.client.send_all(b"body")
        assert await read_until(server, b"body") == b"body"
        await server.send_all(OK)
        assert await read_until(wire.client, b"ok") == OK


async def test_response_without_a_length_ends_with_the_connection_in_http_1_0() -> None:
    async with proxied() as wire:
        await wire.client.send_all(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
        server = await wire.upstream.next_server()
        await read_until(server, b"\r\n\r\n")
        await server.send_all(
            b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2\r\nab\r\n0\r\n\r\n"
        )
        assert await read_rest(wire.client) == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nab"


# -- Bodies ----------------------------------------------------------------------------------------

CHUNKS = st.lists(st.binary(min_size=1, max_size=2_000), max_size=8)
FRAMINGS = st.sampled_from(["length", "chunked", "close"])


def framed(chunks: list[bytes], framing: str) -> tuple[bytes, list[bytes]]:
    """Return the header of a body, and the pieces in which it is sent."""
    if framing == "length":
        return b"Content-Length: %d\r\n" % sum(map(len, chunks)), chunks
    if framing == "close":
        return b"Connection: close\r\n", chunks
    pieces = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks]
    return b"Transfer-Encoding: chunked\r\n", [*pieces, b"0\r\n\r\n"]


async def bodies(
    request: tuple[bytes, list[bytes]], response: tuple[bytes, list[bytes]], path: Path
) -> tuple[bytes, bytes]:
    """Send bodies in pieces, and return those that the server and the client receive."""
    found: dict[str, bytes] = {}

    async def serve(upstream: PlayedUpstream) -> None:
        server = await upstream.next_server()
        http = h11.Connection(h11.SERVER)
        body = b""
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(bytes(await server.receive_some()))
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                break
        found["server"] = body
        header, pieces = response
        await server.send_all(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n")
        for piece in pieces:
            await server.send_all(piece)
        await server.send_eof()

    recording = Recording(path=path, with_secrets=True)
    async with (
        open_recorder(recording, "between", "http") as recorder,
        proxied(recorder) as wire,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(serve, wire.upstream)
        header, pieces = request
        await wire.client.send_all(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n")
        for piece in pieces:
            await wire.client.send_all(piece)
        http = h11.Connection(h11.CLIENT)
        http.send(h11.Request(method="POST", target="/", headers=[("Host", "a")]))
        http.send(h11.EndOfMessage())
        body = b""
        while not isinstance(event := http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                http.receive_data(bytes(await wire.client.receive_some()))
            elif isinstance(event, h11.Data):
                body += event.data
    return found["server"], body


@fewer_examples(5)
@given(
    sent=CHUNKS,
    received=CHUNKS,
    request_framing=st.sampled_from(["length", "chunked"]),
    response_framing=FRAMINGS,
)
def test_any_bodies_cut_anywhere_arrive_and_are_recorded(
    sent: list[bytes],
    received: list[bytes],
    request_framing: str,
    response_framing: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "bodies.mcp.jsonl"
    request, response = framed(sent, request_framing), framed(received, response_framing)
    assert trio.run(bodies, request, response, path) == (b"".join(sent), b"".join(received))
    lines = lines_of(path)
    found = {line.sender: line.message or b"" for line in lines if line.http is not None}
    assert found == {"client": b"".join(sent), "server": b"".join(received)}


async def test_body_passes_before_its_end() -> None:
    async with proxied() as wire:
        await wire.client.send_all(POST[:-2])
        server = await wire.upstream.next_server()
        assert (await read_until(server, b"\r\n\r\nbo")).startswith(b"POST /mcp ")
        await wire.client.send_all(b"dy")
        assert await read_until(server, b"dy") == b"dy"


async def test_event_passes_before_the_end_of_its_stream(tmp_path: Path) -> None:
    """A proxy that buffers would make progress useless; the client's end reaches the server too."""
    path = tmp_path / "a.mcp.jsonl"
    async with open_recorder(path, "between", "http") as recorder, proxied(recorder) as wire:
        await wire.client.send_all(GET)
        server = await wire.upstream.next_server()
        await server.send_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        await read_until(wire.client, b"\r\n\r\n")
        for number in range(3):
            event = b'id: %d\ndata: {"jsonrpc":"2.0"}\n\n' % number
            await server.send_all(b"%x\r\n%b\r\n" % (len(event), event))
            assert event in await read_until(wire.client, b"\n\n\r\n")
        await wire.client.aclose()
        assert await read_rest(server) != b""  # the request, and then the end
    events = [line for line in lines_of(path) if line.sse is not None]
    assert [line.sse.id for line in events if line.sse is not None] == ["0", "1", "2"]
    assert [(line.sender, line.end) for line in lines_of(path) if line.end] == [
        ("client", "closed")
    ]


# -- Several requests ------------------------------------------------------------------------------


async def test_connection_and_its_server_are_used_again() -> None:
    async with proxied() as wire:
        assert (await exchange(wire, GET))[1] == OK
        server_requests = wire.upstream.connections
        await wire.client.send_all(POST)
        assert server_requests == wire.upstream.connections == 1


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with proxied() as wire:
        await wire.client.send_all(POST * 3)
        server = await wire.upstream.next_server()
        for number in range(3):
            await read_until(server, b"body")
            await server.send_all(OK.replace(b"ok", b"%02d" % number))
            assert (await read_until(wire.client, b"%02d" % number)).startswith(b"HTTP/1.1 200")
    assert wire.upstream.connections == 1
    assert [each.status for each in wire.log] == [200] * 3


@pytest.mark.parametrize(
    "request_bytes",
    [
        GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        b"GET /mcp HTTP/1.0\r\nHost: localhost\r\n\r\n",
    ],
)
async def test_client_that_wants_no_more_is_disconnected(request_bytes: bytes) -> None:
    async with proxied() as wire:
        await wire.client.send_all(request_bytes)
        server = await wire.upstream.next_server()
        await read_until(server, b"\r\n\r\n")
        await server.send_all(OK)
        assert (await read_rest(wire.client)).endswith(b"ok")


async def test_server_that_wants_no_more_is_connected_again() -> None:
    async with proxied() as wire:
        for _ in range(2):
            response = OK.replace(b"content", b"connection: close\r\ncontent")
            assert (await exchange(wire, GET, response))[1] == OK
    assert wire.upstream.connections == 2


async def test_response_before_the_end_of_the_request_passes() -> None:
    async with proxied() as wire:
        await wire.client.send_all(POST[:-4])
        server = await wire.upstream.next_server()
        await server.send_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        await server.aclose()
        await wire.client.send_all(b"body")
        assert b" 413 " in await read_rest(wire.client)


# -- Disconnecting ---------------------------------------------------------------------------------


async def test_client_that_disconnects_disconnects_the_server(tmp_path: Path) -> None:
    path = tmp_path / "a.mcp.jsonl"
    async with open_recorder(path, "between", "http") as recorder, proxied(recorder) as wire:
        await wire.client.send_all(POST)
        server = await wire.upstream.next_server()
        await read_until(server, b"body")
        await wire.client.aclose()
        assert await server.receive_some() == b""
    assert wire.log[0].status == 0
    assert [(line.sender, line.end) for line in lines_of(path) if line.end] == [
        ("client", "closed")
    ]


@pytest.mark.parametrize(
    ("response", "passed"),
    [
        (OK[:-1], OK[:-1]),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nJUNK\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        ),
    ],
)
async def test_response_that_ends_early_ends_early_for_the_client(
    response: bytes, passed: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a.mcp.jsonl"
    async with open_recorder(path, "between", "http") as recorder, proxied(recorder) as wire:
        await wire.client.send_all(GET)
        server = await wire.upstream.next_server()
        await read_until(server, b"\r\n\r\n")
        await server.send_all(response)
        await server.aclose()
        assert await read_rest(wire.client) == passed
    ends = [(line.sender, line.end) for line in lines_of(path) if line.end]
    assert ends == [("server", "closed")]


# -- What the proxy answers by itself --------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"", "the server closed the connection without an answer"),
        (b"HTTP/1.1 2", "the server closed the connection without an answer"),
        (b"SSH-2.0-OpenSSH\r\n", "not HTTP/1.1; is something else listening there?"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "the server speaks TLS; is its address https:// instead"),
        (b"HTTP/1.1 abc\r\n\r\n", "the server's answer is not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "the server's answer is not HTTP/1.1"),
    ],
)
async def test_server_without_a_response_gives_502(
    answer: bytes, text: str, tmp_path: Path
) -> None:
    """The client learns what the server sent instead, and the trace has no 502 of the server."""
    path = tmp_path / "a.mcp.jsonl"
    async with open_recorder(path, "between", "http") as recorder, proxied(recorder) as wire:
        await wire.client.send_all(POST)
        server = await wire.upstream.next_server()
        await server.send_all(answer)
        await server.aclose()
        response = (await read_rest(wire.client)).decode()
    assert response.startswith("HTTP/1.1 502 Bad Gateway\r\n")
    assert "\r\n\r\nmcp-trio proxy: the server" in response
    assert text in response
    lines = lines_of(path)
    # The response is not the server's, so the trace has a note in its place.
    assert [line for line in lines if line.http is not None and line.http.status] == []
    note = next(line.text for line in lines if line.kind == "note")
    assert note is not None
    assert note.startswith("the proxy answered 502")
    assert [(line.sender, line.end) for line in lines if line.end] == [("server", "reset")]


async def test_server_that_does_not_accept_gives_504(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client gets a response with the reason after 10 seconds, not an endless wait."""

    async def hang(self: Any) -> Any:
        await trio.sleep_forever()

    monkeypatch.setattr(Connector, "connect_stream", hang)
    client, theirs = memory_stream_pair()
    upstream = Upstream(URL, Connector(*URL.origin, proxy=None))
    async with trio.open_nursery() as nursery:
        connection = ProxyConnection(
            theirs, upstream, ProxyPolicy(HostOriginPolicy("127.0.0.1"), URL, adds_headers=False)
        )
        nursery.start_soon(connection.run)
        await client.send_all(GET)
        response = (await read_rest(client)).decode()
        assert response.startswith("HTTP/1.1 504 Gateway Timeout\r\n")
        assert "server.test:8000 did not accept a connection within 10 s" in response
        await client.aclose()


FOREIGN = [b"evil.test", b"evil.test:9", b"localhost.evil.test", b"192.168.0.1:9", b"127.1", b""]


@pytest.mark.parametrize("host", FOREIGN)
async def test_foreign_host_is_refused_before_the_server(host: bytes, tmp_path: Path) -> None:
    """A page whose name was rebound to this machine (DNS rebinding) sends its own name."""
    path = tmp_path / "a.mcp.jsonl"
    async with open_recorder(path, "between", "http") as recorder, proxied(recorder) as wire:
        await wire.client.send_all(POST.replace(b"localhost:9", host))
        response = await read_rest(wire.client)
    found = re.match(rb"HTTP/1.1 4(21|00) ", response)
    assert found
    assert wire.upstream.connections == 0
    lines = lines_of(path)
    assert [line for line in lines if line.http is not None] == []
    # A head without a host is invalid, so no policy was asked.
    notes = [line.text or "" for line in lines if line.kind == "note"]
    assert len(notes) == (found[1] == b"21")
    assert all("foreign Host" in note and host.decode() in note for note in notes)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"junk\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (POST.replace(b"4", b"4\r\nContent-Length: 5"), 400),
        (POST.replace(b"4", b"4\r\nTransfer-Encoding: chunked"), 400),
        (POST.replace(b"Content", b"X: \x01\r\nContent"), 400),
        (b"GET /" + b"x" * 40_000, 414),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000, 431),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
        (GET.replace(b"\r\n\r\n", b"\r\nUpgrade: WebSocket\r\nConnection: upgrade\r\n\r\n"), 501),
    ],
)
async def test_request_that_cannot_be_passed_on_is_rejected(
    request_bytes: bytes, status: int
) -> None:
    async with proxied() as wire:
        await wire.client.send_all(request_bytes)
        assert (await read_rest(wire.client)).startswith(b"HTTP/1.1 %d " % status)
    assert wire.upstream.connections == 0


async def test_head_that_takes_too_long_is_rejected(autojump_clock: Any) -> None:
    async with proxied() as wire:
        began = trio.current_time()
        await wire.client.send_all(GET[:10])
        assert (await read_rest(wire.client)).startswith(b"HTTP/1.1 408 ")
        assert trio.current_time() - began == pytest.approx(HEAD_SECONDS)


async def test_head_has_no_more_time_if_it_comes_byte_by_byte(autojump_clock: Any) -> None:
    """Its time begins with its first byte, and a client that was idle for long has less."""
    for idle, seconds in ((3.0, HEAD_SECONDS), (IDLE_SECONDS - 4.0, 4.0)):
        async with proxied() as wire:
            await trio.sleep(idle)
            began = trio.current_time()
            with trio.move_on_after(seconds - 0.5):
                for byte in GET[:99]:
                    await wire.client.send_all(bytes([byte]))
                    await trio.sleep(1.0)
            assert (await read_rest(wire.client)).startswith(b"HTTP/1.1 408 ")
            assert trio.current_time() - began == pytest.approx(seconds)


async def test_idle_client_is_disconnected(autojump_clock: Any) -> None:
    async with proxied() as wire:
        began = trio.current_time()
        assert await read_rest(wire.client) == b""
        assert trio.current_time() - began == pytest.approx(IDLE_SECONDS)


@pytest.mark.parametrize(("is_closed", "seconds"), [(True, 0.0), (False, LINGER_SECONDS)])
async def test_client_that_is_refused_has_a_second_to_close(
    is_closed: bool, seconds: float, autojump_clock: Any
) -> None:
    async with proxied() as wire:
        await wire.client.send_all(b"junk\r\n\r\n")
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        if is_closed:
            await wire.client.send_eof()
        await wire.ended.wait()
        assert trio.current_time() - began == pytest.approx(seconds)


async def test_client_that_is_refused_may_send_little_more(autojump_clock: Any) -> None:
    """It would be read for as long as it sends, otherwise."""
    async with proxied() as wire:
        await wire.client.send_all(b"junk\r\n\r\n")
        began = trio.current_time()
        sent = 0
        await trio.testing.wait_all_tasks_blocked()
        while not wire.ended.is_set():
            await wire.client.send_all(b"x" * 1024)
            sent += 1024
            await trio.testing.wait_all_tasks_blocked()
        assert (sent, trio.current_time()) == (MAX_UNWANTED, began)


async def test_client_that_is_gone_when_it_is_refused_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with proxied() as wire:
        await wire.client.send_all(b"junk\r\n\r\n")
        await wire.client.aclose()
    assert caplog.records == []


async def test_access_log_has_the_time_and_the_size_of_an_exchange(autojump_clock: Any) -> None:
    await trio.sleep(8.0)  # the clock begins at 0, where a sum and a difference are the same
    async with proxied() as wire:
        await wire.client.send_all(GET.replace(b"/mcp", b"/a?b=%ff"))
        server = await wire.upstream.next_server()
        await trio.sleep(1.5)
        await server.send_all(OK)
        await read_until(wire.client, b"ok")
        await trio.testing.wait_all_tasks_blocked()
        [found] = wire.log
    assert found == AccessLogEntry("GET", "/a?b=%ff", 200, 1.5, 2)


async def test_server_that_is_not_there_gives_502_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a recorder nor a log of the exchanges is needed."""

    async def refuse(self: Any) -> Any:
        await trio.lowlevel.checkpoint()
        raise ConnectFailed("no one listens at server.test")

    monkeypatch.setattr(Connector, "connect_stream", refuse)
    client, theirs = memory_stream_pair()
    upstream = Upstream(URL, Connector(*URL.origin, proxy=None))
    policy = ProxyPolicy(HostOriginPolicy("127.0.0.1"), URL, adds_headers=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ProxyConnection(theirs, upstream, policy).run)
        await client.send_all(GET)
        response = await read_rest(client)
        await client.aclose()
    assert response.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert b"no one listens at server.test" in response
    assert [each.levelname for each in caplog.records] == ["WARNING"]  # of the refusal


async def test_idle_server_that_has_ended_is_closed_and_connected_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All that an idle server sends is its end, or what belongs to no request."""
    async with proxied() as wire:
        assert (await exchange(wire, GET))[1] == OK
        monkeypatch.setattr(_http_connection, "has_input", lambda stream: True)
        assert (await exchange(wire, GET))[1] == OK
        first, second = wire.upstream.proxy_ends
        with pytest.raises(trio.ClosedResourceError):
            await first.send_all(b"x")
        await second.send_all(b"x")


@pytest.mark.parametrize(("headers", "adds"), [(None, False), ({}, False), ({"A": "b"}, True)])
def test_proxy_adds_headers_if_it_has_some(headers: dict[str, str] | None, adds: bool) -> None:
    upstream = Upstream(URL, Connector(*URL.origin, proxy=None), headers)
    assert upstream.adds_headers is adds
    assert upstream.header_names == ({"a"} if adds else set())


async def test_malformed_chunks_end_the_exchange() -> None:
    async with proxied() as wire:
        head = POST.replace(b"Content-Length: 4", b"Transfer-Encoding: chunked")[:-4]
        await wire.client.send_all(head + b"zz\r\n")
        server = await wire.upstream.next_server()
        assert await read_rest(server) in (b"", head.replace(b"localhost:9", b"server.test:8000"))
        assert await read_rest(wire.client) == b""


async def test_internal_error_ends_one_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(_http_connection, "proxied_request_headers", fail)
    async with proxied() as wire:
        await wire.client.send_all(GET)
        assert await read_rest(wire.client) == b""
    assert "internal error of the proxy" in caplog.text


async def test_exchange_in_the_trace_has_heads_and_messages(tmp_path: Path) -> None:
    path = tmp_path / "a.mcp.jsonl"
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    request = POST[:-4].replace(b"4", b"%d" % len(message), 1) + message
    response = OK.replace(b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain")
    async with open_recorder(path, "between", "http") as recorder, proxied(recorder) as wire:
        await exchange(wire, request, response)
    first, second = lines_of(path)
    assert first.http is not None
    assert second.http is not None
    assert (first.http.method, first.http.target) == ("POST", "/mcp")
    assert first.http.headers == (("host", "localhost:9"), ("content-length", str(len(message))))
    assert first.message == message
    assert (second.http.status, second.message, second.end) == (200, b"ok", "complete")
    assert second.http.headers == (("content-type", "text/plain"), ("content-length", "2"))
