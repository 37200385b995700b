"""One exchange of the HTTP proxy, whose client and server break in each way."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.http import Body, Head
from mcp_core.http.wire._proxy_exchange import _NO_RESPONSE
from mcp_trio.http_server._h11_heads import CHUNKED
from mcp_trio.oracle.proxy._http_exchange import NoResponse, PassedBody, ProxyExchange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trio.testing import MockClock

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED_HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


class PlayedStream:
    """A stream that gives bytes, or errors, one after the other, and then waits.

    Args:
        received: what `receive_some` returns or raises.
        send_error: what `send_all` raises; None for nothing.
    """

    def __init__(self, *received: bytes | Exception, send_error: Exception | None = None) -> None:
        self.sent: list[bytes] = []
        self._received = list(received)
        self._send_error = send_error

    async def receive_some(self, size: int) -> bytes:
        await trio.sleep(0.01)
        if not self._received:
            await trio.sleep_forever()
        found = self._received.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def send_all(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        if self._send_error is not None:
            raise self._send_error
        self.sent.append(data)


class KeptRecord:
    """The calls of a recorder."""

    def __init__(self) -> None:
        self.requests: list[tuple[bytes, bool]] = []
        self.actions: list[Any] = []
        self.ends: list[tuple[str, str]] = []

    def request_data(self, data: bytes, *, end: bool) -> None:
        self.requests.append((data, end))

    def response(self, actions: Sequence[Any]) -> None:
        self.actions += actions

    def ended(self, side: str, reason: str) -> None:
        self.ends.append((side, reason))


class KeptWatch:
    """The calls of a watch for the target of messages."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def receive_head(self, head: Head) -> None:
        self.seen.append(head.status)

    def receive_data(self, data: bytes) -> None:
        self.seen.append(data)


async def played(
    client: PlayedStream,
    server: PlayedStream,
    body: PassedBody | None = None,
    record: KeptRecord | None = None,
    watch: KeptWatch | None = None,
) -> tuple[ProxyExchange, Any]:
    """Run an exchange, and return it with its end."""
    request: Any = SimpleNamespace(
        request=SimpleNamespace(method=b"POST"), is_http_1_1=True, keep_alive=True
    )
    streams: Any = (client, server)
    kept: Any = (record, watch)
    body = body or PassedBody(b"", 0, b"")
    exchange = ProxyExchange(streams[0], request, b"HEAD", body, *kept)
    with trio.fail_after(5):
        return exchange, await exchange.run(streams[1])


BROKEN = trio.BrokenResourceError()
FAULT = ZeroDivisionError()


async def test_whole_exchange_is_passed_counted_recorded_and_watched(
    autojump_clock: MockClock,
) -> None:
    """Bytes of a later request that come meanwhile are kept for it."""
    client, server = (
        PlayedStream(b"GET", b" /2"),
        PlayedStream(OK[:9], OK[9:-2], OK[-2:-1], OK[-1:]),
    )
    record, watch = KeptRecord(), KeptWatch()
    body = PassedBody(b"", 4, b"body")
    exchange, end = await played(client, server, body, record, watch)
    assert (b"".join(client.sent), server.sent) == (OK, [b"HEADbody"])
    assert b"" not in client.sent
    assert (exchange.size, exchange.unused) == (2, b"GET /2")
    assert (record.requests, record.ends) == ([(b"body", True)], [])
    assert [each.data for each in record.actions if isinstance(each, Body)] == [b"o", b"k"]
    assert watch.seen == [200, b"o", b"k"]
    assert (end.ended_by, end.keeps_client, end.keeps_server) == (None, True, True)


async def test_server_that_sends_more_than_its_response_is_not_kept(
    autojump_clock: MockClock,
) -> None:
    _, end = await played(PlayedStream(), PlayedStream(OK + b"HTTP/1.1 200 OK"))
    assert (end.ended_by, end.keeps_client, end.keeps_server) == (None, True, False)


async def test_part_of_a_chunk_is_recorded_once_it_has_data(autojump_clock: MockClock) -> None:
    client = PlayedStream(b"b", b"\r\nabcdefghijk\r\n0\r\n\r\nGET")
    record, server = KeptRecord(), LateServer(OK)
    body = PassedBody(CHUNKED_HEAD, CHUNKED, b"")
    exchange, end = await played(client, server, body, record)
    assert record.requests == [(b"abcdefghijk", True)]
    assert b"".join(server.sent) == b"HEADb\r\nabcdefghijk\r\n0\r\n\r\n"
    assert (exchange.unused, end.keeps_client) == (b"GET", True)


class LateServer(PlayedStream):
    """A server that responds after a second."""

    async def receive_some(self, size: int) -> bytes:
        await trio.sleep(1.0)
        return await super().receive_some(size)


def test_trailers_that_the_proxy_writes_itself_are_dropped() -> None:
    data = b"1\r\na\r\n0\r\nX-Token: theirs\r\nX-Other: 1\r\n\r\n"
    body = PassedBody(CHUNKED_HEAD, CHUNKED, data, {"x-token"})
    assert body.take() == (b"a", b"1\r\na\r\n0\r\nX-Other: 1\r\n\r\n")
    assert body.is_complete


@pytest.mark.parametrize(("left", "taken", "unused"), [(3, b"abc", b""), (2, b"ab", b"c")])
def test_body_ends_at_its_length(left: int, taken: bytes, unused: bytes) -> None:
    body = PassedBody(b"", left, b"a")
    assert body.take() == (b"a", b"a")
    assert not body.is_complete
    body.feed(b"bc")
    assert body.take() == (taken[1:], taken[1:])
    assert (body.is_complete, body.unused) == (True, unused)


@pytest.mark.parametrize(
    "client",
    [
        lambda: PlayedStream(b""),
        lambda: PlayedStream(BROKEN),
        lambda: PlayedStream(trio.ClosedResourceError()),
        lambda: PlayedStream(send_error=BROKEN),
    ],
)
async def test_client_that_breaks_ends_the_exchange(
    client: Callable[[], PlayedStream], autojump_clock: MockClock
) -> None:
    record = KeptRecord()
    _, end = await played(client(), LateServer(OK), record=record)
    assert (end.ended_by, end.keeps_client, end.keeps_server) == ("client", False, False)
    assert record.ends == [("client", "closed")]


async def test_server_that_takes_no_body_may_still_respond(autojump_clock: MockClock) -> None:
    """Such as by a 413, after which it has closed its connection."""
    client = PlayedStream()
    _, end = await played(client, PlayedStream(OK, send_error=BROKEN))
    assert (client.sent, end.keeps_server) == ([OK], False)


@pytest.mark.parametrize(
    ("client", "server"),
    [
        (lambda: PlayedStream(FAULT), lambda: LateServer(OK)),
        (lambda: PlayedStream(send_error=FAULT), lambda: PlayedStream(OK)),
        (PlayedStream, lambda: PlayedStream(OK, send_error=FAULT)),
        (PlayedStream, lambda: PlayedStream(FAULT)),
    ],
)
async def test_fault_is_not_taken_for_a_disconnect(
    client: Callable[[], PlayedStream],
    server: Callable[[], PlayedStream],
    autojump_clock: MockClock,
) -> None:
    with pytest.raises((ZeroDivisionError, ExceptionGroup)) as failed:
        await played(client(), server())
    assert failed.value is FAULT or failed.group_contains(ZeroDivisionError)


def broken_by(number: int) -> Exception:
    error = trio.BrokenResourceError()
    error.__cause__ = OSError(number, "x")
    return error


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (b"", "closed"),
        (BROKEN, "reset"),
        (broken_by(errno.ECONNRESET), "reset"),
        (broken_by(errno.ETIMEDOUT), "timeout"),
    ],
)
async def test_server_without_a_response_is_an_error_that_says_how_it_ended(
    error: bytes | Exception, end: Any, autojump_clock: MockClock
) -> None:
    with pytest.raises(NoResponse) as failed:
        await played(PlayedStream(), PlayedStream(error))
    assert failed.value.answer is _NO_RESPONSE[end]


async def test_response_that_is_malformed_ends_at_once(autojump_clock: MockClock) -> None:
    """The server may keep its connection open."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    client = PlayedStream()
    _, end = await played(client, PlayedStream(head + b"2\r\nok\r\nJUNK\r\n"))
    assert (end.ended_by, client.sent) == ("server", [head + b"2\r\nok\r\n"])
