"""Attacks of a client on an HTTP server."""

from __future__ import annotations

import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import SplitResult

import trio
from msgspec import Struct

from ._attack import (
    MAX_BYTES,
    MAX_SECONDS,
    Attack,
    find,
    gzip_bomb,
    local_url,
    reset_when_closed,
)
from ._messages import MESSAGE_ATTACKS, hostile_message

__all__ = ["CLIENT_ATTACKS", "AttackOutcome", "attack_server"]

_LOST: Final = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3}) ")
_KEPT: Final = 1024 * 1024  # bytes of responses
_QUIET: Final = 0.1  # seconds without a byte after which a response is taken as whole
_PROBE_TIMEOUT: Final = 5.0
_REJECT: Final = "Respond with a 4xx status, or close the connection."
_TIME_OUT: Final = "Close the connection after a timeout, and serve others meanwhile."
_ONE: Final = "Serve one request at most: what follows may belong to another client."
_BOUND: Final = "Respond with a 4xx status or close the connection, with bounded memory."
_PING: Final = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class AttackOutcome(Struct, frozen=True):
    """The outcome of an attack on a server.

    Attributes:
        statuses: the status of each HTTP response, on all connections of the attack.
        was_closed: True if the server closed each connection of the attack within its time.
        sent: the number of bytes sent.
        received: the number of bytes received.
        seconds: how long the attack took.
        still_serves: True if the server responded to an honest request on another connection
            within five seconds, while the connections of the attack were open.
    """

    statuses: tuple[int, ...]
    was_closed: bool
    sent: int
    received: int
    seconds: float
    still_serves: bool


class _Wire:
    """The connections of one attack."""

    def __init__(self, url: SplitResult, headers: Mapping[str, str], *, reads: bool) -> None:
        host, port = url.hostname or "", url.port or 80
        self.authority = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}").encode()
        self.streams: list[trio.SocketStream] = []
        self.sent = 0
        self.received = bytearray()
        self.total = 0
        self.waiting: set[trio.SocketStream] = set()
        self._host = host
        self._port = port
        self._path = (url.path or "/").encode()
        self._headers = dict(headers)
        self._reads = reads
        self._nursery: trio.Nursery | None = None
        self._responded: set[trio.SocketStream] = set()
        self._last = 0.0

    async def connect(self) -> trio.SocketStream:
        """Open a connection."""
        stream = await trio.open_tcp_stream(self._host, self._port)
        self.streams.append(stream)
        self.waiting.add(stream)
        if self._nursery is not None:
            self.read_in(self._nursery, stream)
        return stream

    def read_in(self, nursery: trio.Nursery, stream: trio.SocketStream) -> None:
        """Read a connection, and each one that is opened from now on."""
        self._nursery = nursery
        if self._reads:
            nursery.start_soon(self._read, stream)

    def forget(self, stream: trio.SocketStream) -> None:
        """Expect nothing more of a connection that the attack closes."""
        self.streams.remove(stream)
        self.waiting.discard(stream)

    async def _read(self, stream: trio.SocketStream) -> None:
        with suppress(*_LOST):
            while data := await stream.receive_some(65_536):
                self.total += len(data)
                self._last = trio.current_time()
                self._responded.add(stream)
                if len(self.received) < _KEPT:
                    self.received += data
        self.waiting.discard(stream)

    async def settled(self) -> None:
        """Wait until the server has closed each connection, or responded on it and is quiet."""
        while self.waiting - self._responded or (  # noqa: ASYNC110 - time is the condition
            self.waiting and trio.current_time() - self._last < _QUIET
        ):
            await trio.sleep(0.02)

    async def send(self, *data: bytes) -> None:
        """Send bytes on the last connection."""
        stream = self.streams[-1]
        for each in data:
            if self.sent > MAX_BYTES:
                return
            self.sent += len(each)
            await stream.send_all(each)

    async def repeat(self, data: bytes) -> None:
        """Send the same bytes until the server closes or the bound is reached."""
        block = data * (16_384 // len(data) + 1)
        while self.sent <= MAX_BYTES:
            await self.send(block)

    async def send_slowly(self, data: bytes, pause: float = 0.02) -> None:
        """Send one byte at a time."""
        for place in range(len(data)):
            await self.send(data[place : place + 1])
            await trio.sleep(pause)

    def head(self, *lines: bytes, method: bytes = b"POST", host: bytes = b"") -> bytes:
        """Return the head of a request with further lines, without a length."""
        given = [f"{name}: {value}".encode("latin-1") for name, value in self._headers.items()]
        usual = [
            b"Host: " + (host or self.authority),
            b"Content-Type: application/json",
            b"Accept: application/json, text/event-stream",
        ]
        return b"\r\n".join(
            [method + b" " + self._path + b" HTTP/1.1", *usual, *given, *lines, b"", b""]
        )

    def request(self, body: bytes, *lines: bytes) -> bytes:
        """Return an honest request with a body."""
        return self.head(b"Content-Length: %d" % len(body), *lines) + body


_Play = Callable[[_Wire], Awaitable[None]]
_plays: dict[str, _Play] = {}
_attacks: dict[str, Attack] = {}


def _attack(name: str, does: str, expects: str = _REJECT) -> Callable[[_Play], _Play]:
    def register(play: _Play) -> _Play:
        _attacks[name] = Attack(name, does, expects)
        _plays[name] = play
        return play

    return register


def _literal(name: str, does: str, make: Callable[[_Wire], bytes], expects: str = _REJECT) -> None:
    """Add an attack that sends bytes at once."""

    async def play(wire: _Wire) -> None:
        await wire.send(make(wire))

    _attack(name, does, expects)(play)


# -- Slow and half requests ------------------------------------------------------------------------


@_attack("slow-head", "Send the head one byte at a time.", _TIME_OUT)
async def _slow_head(wire: _Wire) -> None:
    await wire.send_slowly(wire.head(b"X-Padding: " + b"x" * 2_000))


@_attack("slow-body", "Send the body one byte at a time.", _TIME_OUT)
async def _slow_body(wire: _Wire) -> None:
    await wire.send(wire.head(b"Content-Length: 2000"))
    await wire.send_slowly(b" " * 2_000)


@_attack("slow-chunks", "Send the body in chunks of one byte, slowly.", _TIME_OUT)
async def _slow_chunks(wire: _Wire) -> None:
    await wire.send(wire.head(b"Transfer-Encoding: chunked"))
    for _ in range(1_000):
        await wire.send(b"1\r\n \r\n")
        await trio.sleep(0.02)


_literal("silent", "Connect, and send nothing.", lambda wire: b"", _TIME_OUT)
_literal("half-head", "Send half of a head, and stay.", lambda wire: wire.head()[:60], _TIME_OUT)
_literal(
    "half-body",
    "Send half of a body, and stay.",
    lambda wire: wire.head(b"Content-Length: 100") + _PING,
    _TIME_OUT,
)


@_attack("half-bodies", "Send half of a body on 30 connections, and stay.", _TIME_OUT)
async def _half_bodies(wire: _Wire) -> None:
    for number in range(30):
        if number:
            await wire.connect()
        await wire.send(wire.head(b"Content-Length: 100") + _PING)


@_attack("half-body-closes", "Send half of a body, and close.")
async def _half_body_closes(wire: _Wire) -> None:
    await wire.send(wire.head(b"Content-Length: 100") + _PING)
    stream = wire.streams[-1]
    wire.forget(stream)
    await stream.aclose()


@_attack("resets", "Reset 20 connections within a request.", "Forget the requests.")
async def _resets(wire: _Wire) -> None:
    for number in range(20):
        stream = await wire.connect() if number else wire.streams[-1]
        await wire.send(wire.head(b"Content-Length: 100") + _PING)
        reset_when_closed(stream)
        wire.forget(stream)
        await trio.aclose_forcefully(stream)


@_attack("reset-after-request", "Send a request, and reset before its response.", "Forget it.")
async def _reset_after_request(wire: _Wire) -> None:
    stream = wire.streams[-1]
    await wire.send(wire.request(_PING))
    reset_when_closed(stream)
    wire.forget(stream)
    await trio.aclose_forcefully(stream)


@_attack("unread", "Send requests without end, and read no response.", _BOUND)
async def _unread(wire: _Wire) -> None:
    stream = wire.streams[-1]
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    await wire.repeat(wire.request(_PING))


@_attack("pipelined", "Send 500 requests at once.", "Respond to each in order, or close.")
async def _pipelined(wire: _Wire) -> None:
    await wire.send(wire.request(_PING) * 500)


# -- Heads -----------------------------------------------------------------------------------------


@_attack("endless-head", "Send headers without end.", _BOUND)
async def _endless_head(wire: _Wire) -> None:
    await wire.send(wire.head()[:-2])
    await wire.repeat(b"X-A: a\r\n")


@_attack("endless-target", "Send a request line without end.", _BOUND)
async def _endless_target(wire: _Wire) -> None:
    await wire.send(b"POST /")
    await wire.repeat(b"a")


@_attack("endless-chunks", "Send a body of chunks without end.", _BOUND)
async def _endless_chunks(wire: _Wire) -> None:
    await wire.send(wire.head(b"Transfer-Encoding: chunked"))
    await wire.repeat(b"1000\r\n" + b" " * 4_096 + b"\r\n")


@_attack("endless-chunk-extension", "Send a chunk extension without end.", _BOUND)
async def _endless_chunk_extension(wire: _Wire) -> None:
    await wire.send(wire.head(b"Transfer-Encoding: chunked"), b"1;")
    await wire.repeat(b"a=b;")


@_attack("endless-trailers", "Send trailers without end.", _BOUND)
async def _endless_trailers(wire: _Wire) -> None:
    await wire.send(wire.head(b"Transfer-Encoding: chunked"), b"0\r\n")
    await wire.repeat(b"X-A: a\r\n")


_literal(
    "header-flood",
    "Send 10,000 headers.",
    lambda wire: wire.head(*[b"X-%d: y" % number for number in range(10_000)]),
    _BOUND,
)
_literal(
    "long-header",
    "Send a header of 1 MiB.",
    lambda wire: wire.head(b"X-A: " + b"a" * 2**20),
    _BOUND,
)
_literal("no-http", "Send bytes that are no HTTP.", lambda wire: b"\x00\xffhello\r\n\r\n")
_literal(
    "tls-hello",
    "Begin a TLS handshake on a plain port.",
    lambda wire: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
)
_literal("http-0.9", "Send a request of HTTP/0.9.", lambda wire: b"GET /\r\n\r\n")
_literal(
    "http-9.9",
    "Send a request of HTTP/9.9.",
    lambda wire: wire.request(_PING).replace(b"1.1\r", b"9.9\r", 1),
)
_literal(
    "no-host", "Send no Host.", lambda wire: wire.request(_PING).replace(b"Host:", b"X-Host:", 1)
)
_literal(
    "two-hosts",
    "Send two different Hosts.",
    lambda wire: wire.request(_PING, b"Host: elsewhere.example"),
)
_literal(
    "foreign-host",
    "Send the Host of another site, as DNS rebinding does.",
    lambda wire: wire.request(_PING).replace(wire.authority, b"elsewhere.example", 1),
)
_literal(
    "foreign-origin",
    "Send the Origin of another site.",
    lambda wire: wire.request(_PING, b"Origin: https://elsewhere.example"),
    "Respond with the status 403.",
)
_literal(
    "null-origin",
    "Send the Origin null.",
    lambda wire: wire.request(_PING, b"Origin: null"),
    "Respond with the status 403.",
)
_literal(
    "nul-header", "Send a NUL byte in a header.", lambda wire: wire.request(_PING, b"X-A: a\0b")
)
_literal(
    "bare-cr", "Send a bare CR in a header.", lambda wire: wire.request(_PING, b"X-A: a\rX-B: b")
)
_literal(
    "bare-lf",
    "End the lines of the head with LF.",
    lambda wire: wire.head(b"Content-Length: 0").replace(b"\r\n", b"\n"),
    "Serve it, or respond with a 4xx status.",
)
_literal(
    "space-before-colon",
    "Send a space before a colon.",
    lambda wire: wire.request(_PING, b"X-A : a"),
)
_literal(
    "folded-header",
    "Send a header over two lines.",
    lambda wire: wire.request(_PING, b"X-A: a\r\n b"),
)
_literal("empty-name", "Send a header without a name.", lambda wire: wire.request(_PING, b": a"))
_literal(
    "connect",
    "Send CONNECT.",
    lambda wire: b"CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n",
)
_literal(
    "unknown-method",
    "Send a method of 1,000 characters.",
    lambda wire: wire.head(b"Content-Length: 0", method=b"X" * 1_000),
)
_literal(
    "unknown-session",
    "Name a session that does not exist.",
    lambda wire: wire.request(_PING, b"Mcp-Session-Id: none"),
)
_literal(
    "huge-session",
    "Name a session of 100,000 characters.",
    lambda wire: wire.request(_PING, b"Mcp-Session-Id: " + b"s" * 100_000),
)
_literal(
    "bad-version",
    "Name a revision that does not exist.",
    lambda wire: wire.request(_PING, b"MCP-Protocol-Version: 9999-99-99"),
)


# -- Request smuggling (RFC 9112 11.2) -------------------------------------------------------------

_SMUGGLED: Final = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


def _ambiguous(name: str, does: str, *lines: bytes, body: bytes = b"0\r\n\r\n" + _SMUGGLED) -> None:
    _literal(name, does, lambda wire: wire.head(*lines) + body, _REJECT + " " + _ONE)


_ambiguous(
    "two-lengths", "Name two different lengths.", b"Content-Length: 5", b"Content-Length: 50"
)
_ambiguous("length-list", "Name two lengths in one header.", b"Content-Length: 5, 50")
_ambiguous("signed-length", "Name a length with a sign.", b"Content-Length: +5")
_ambiguous("negative-length", "Name a negative length.", b"Content-Length: -5")
_ambiguous("hex-length", "Name a length in hexadecimal.", b"Content-Length: 0x5")
_ambiguous("huge-length", "Name a length of 30 digits.", b"Content-Length: " + b"9" * 30)
_ambiguous(
    "length-and-chunked",
    "Name a length and send chunks.",
    b"Content-Length: 50",
    b"Transfer-Encoding: chunked",
)
_ambiguous(
    "chunked-and-length",
    "Send chunks and name a length.",
    b"Transfer-Encoding: chunked",
    b"Content-Length: 5",
)
_ambiguous(
    "two-codings",
    "Name two transfer codings.",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: identity",
)
_ambiguous(
    "chunked-twice", "Name the coding chunked twice.", b"Transfer-Encoding: chunked, chunked"
)
_ambiguous("unknown-coding", "Name an unknown transfer coding.", b"Transfer-Encoding: xchunked")
_ambiguous("vertical-tab-coding", "Hide the coding behind a tab.", b"Transfer-Encoding:\x0bchunked")
_ambiguous(
    "coding-space", "Put a space before the colon of the coding.", b"Transfer-Encoding : chunked"
)
_ambiguous(
    "bad-chunk-size",
    "Send a chunk whose size is no number.",
    b"Transfer-Encoding: chunked",
    body=b"zz\r\n" + _SMUGGLED,
)
_ambiguous(
    "signed-chunk-size",
    "Send a chunk whose size has a sign.",
    b"Transfer-Encoding: chunked",
    body=b"+0\r\n\r\n" + _SMUGGLED,
)
_ambiguous(
    "huge-chunk-size",
    "Send a chunk whose size wraps 64 bits.",
    b"Transfer-Encoding: chunked",
    body=b"10000000000000000\r\n\r\n" + _SMUGGLED,
)
_ambiguous(
    "bad-chunk-end",
    "End a chunk with other bytes than CR LF.",
    b"Transfer-Encoding: chunked",
    body=b"1\r\n{XX0\r\n\r\n" + _SMUGGLED,
)
_ambiguous(
    "short-length",
    "Name a length below that of the body.",
    b"Content-Length: 2",
    body=_PING + _SMUGGLED,
)


# -- Bodies ----------------------------------------------------------------------------------------

_literal(
    "wrong-type",
    "Send a form.",
    lambda wire: wire.request(_PING).replace(b"application/json\r", b"text/plain\r", 1),
)
_literal(
    "no-accept",
    "Accept pictures only.",
    lambda wire: wire.request(_PING).replace(
        b"application/json, text/event-stream", b"image/png", 1
    ),
)
_literal(
    "compressed-bomb",
    "Send a body that gzip makes 1,000 times as long.",
    lambda wire: wire.request(gzip_bomb(), b"Content-Encoding: gzip"),
    _BOUND,
)
_literal(
    "expects-continue",
    "Expect 100 before the body, and never send it.",
    lambda wire: wire.head(b"Expect: 100-continue", b"Content-Length: 10"),
    _TIME_OUT,
)
_literal(
    "upgrade",
    "Ask to switch to an unknown protocol.",
    lambda wire: wire.request(_PING, b"Connection: upgrade", b"Upgrade: x"),
    "Ignore it.",
)


@_attack("large-body", "Send a body of 8 MiB.", _BOUND)
async def _large_body(wire: _Wire) -> None:
    await wire.send(wire.head(b"Content-Length: %d" % MAX_BYTES))
    await wire.repeat(b" ")


@_attack("get-flood", "Open 40 streams with GET, and stay.", _BOUND)
async def _get_flood(wire: _Wire) -> None:
    for number in range(40):
        if number:
            await wire.connect()
        await wire.send(wire.head(method=b"GET"))


@_attack("initialize-flood", "Open 200 sessions, and close none.", "Bound the number of sessions.")
async def _initialize_flood(wire: _Wire) -> None:
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        b'"capabilities":{},"clientInfo":{"name":"hostile","version":"1"}}}'
    )
    await wire.send(wire.request(body) * 200)


def _as_body(name: str, does: str) -> None:
    _literal(f"body-{name}", f"Post this: {does}", lambda wire: wire.request(hostile_message(name)))


for _each in MESSAGE_ATTACKS:
    _as_body(_each.name, _each.does)

# Attacks of a client on an HTTP server, for `attack_server`.
CLIENT_ATTACKS: Final = tuple(_attacks.values())


async def attack_server(
    url: str,
    attack: Attack | str,
    *,
    headers: Mapping[str, str] | None = None,
    seconds: float = 5.0,
) -> AttackOutcome:
    """Attack an HTTP server of this machine, and return the outcome.

    The connections are closed when this returns. It sends 8 MiB at most.

    Args:
        url: the endpoint: an http URL with a loopback address.
        attack: one of `CLIENT_ATTACKS`, or its name.
        headers: further headers of each request, such as `Authorization`.
        seconds: how long the attack may take, and how long its end is waited for; 30 at most.

    Raises:
        ValueError: there is no such attack, or `url` isn't one of this machine.
        OSError: the server cannot be reached before the attack.
    """
    name = find(attack, _attacks)
    parts = local_url(url)
    wire = _Wire(parts, headers or {}, reads=name != "unread")
    start = trio.current_time()
    stream = await wire.connect()
    try:
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.deadline = start + min(seconds, MAX_SECONDS)
            wire.read_in(nursery, stream)
            with suppress(*_LOST):
                await _plays[name](wire)
            await wire.settled()
            nursery.cancel_scope.cancel()
        was_closed = not wire.waiting
        still_serves = await _serves(_Wire(parts, headers or {}, reads=False))
    finally:
        for stream in wire.streams:
            await trio.aclose_forcefully(stream)
    return AttackOutcome(
        statuses=tuple(int(status) for status in _STATUS.findall(wire.received)),
        was_closed=was_closed,
        sent=wire.sent,
        received=wire.total,
        seconds=trio.current_time() - start,
        still_serves=still_serves,
    )


async def _serves(wire: _Wire) -> bool:
    """Return True if the server responds to an honest request."""
    found = b""
    with trio.move_on_after(_PROBE_TIMEOUT), suppress(*_LOST):
        stream = await wire.connect()
        await wire.send(wire.request(_PING))
        while not _STATUS.search(found) and (data := await stream.receive_some(4_096)):
            found += data
    for stream in wire.streams:
        await trio.aclose_forcefully(stream)
    return _STATUS.search(found) is not None
