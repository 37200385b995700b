"""The connection of a simple HTTP/1.1 server: what it reads, its limits, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h11
import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from mcp_core.http import Body, End, Head
from mcp_trio import memory_pair
from mcp_trio._simple_http import SimpleHttpConnection, SimpleHttpLimits, UnreadableRequest

if TYPE_CHECKING:
    from trio.testing import MockClock

    from mcp_core.http import Action, RequestHead

LIMITS = SimpleHttpLimits(head=1_000, body=10, head_seconds=7, body_seconds=5, write_seconds=3)
GET = b"GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b"
CHUNKS = b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%b"
EMPTY: list[Action] = [Head(200, [(b"content-length", b"0")]), End()]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def opened() -> tuple[Any, SimpleHttpConnection]:
    """Return the client's end, and the connection."""
    client, stream = memory_stream_pair()
    return client, SimpleHttpConnection(stream, LIMITS)


async def received(client: Any) -> bytes:
    """Return what the client has received so far."""
    await wait_all_tasks_blocked()
    return bytes(await client.receive_some())


async def next_head(connection: SimpleHttpConnection) -> RequestHead:
    head = await connection.next_head()
    assert head is not None
    return head


# -- Reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 1_000])
async def test_requests_in_pieces_are_read_one_after_the_other(size: int) -> None:
    """Three requests on one connection, however their bytes are cut."""
    client, connection = opened()
    data = POST % (3, b"abc") + GET + CHUNKS % b"2\r\nab\r\n8\r\n01234567\r\n0\r\n\r\n"
    for place in range(0, len(data), size):
        await client.send_all(data[place : place + size])
    first = await next_head(connection)
    assert (first.method, first.target) == (b"POST", b"/a")
    assert first.headers == [(b"host", b"h"), (b"content-length", b"3")]
    assert await connection.read_body() == b"abc"
    await connection.send(*EMPTY)
    assert (await next_head(connection)).target == b"/a?b"
    await connection.send(*EMPTY)  # without having read its body, which is empty
    assert (await next_head(connection)).method == b"POST"
    assert await connection.read_body() == b"ab01234567"
    await connection.send(*EMPTY)
    assert await received(client) == OK * 3


@pytest.mark.parametrize(
    "head",
    [
        b"junk\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",  # TLS
        b"\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET /" + b"x" * 1_000,
        b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 1_000,
    ],
)
async def test_head_that_is_no_http_is_unreadable(head: bytes) -> None:
    client, connection = opened()
    await client.send_all(head)
    with pytest.raises(UnreadableRequest) as caught:
        await connection.next_head()
    assert caught.value.status in (400, 431, 501)
    await connection.send(Head(caught.value.status, [(b"connection", b"close")]), End())
    assert (await received(client)).startswith(b"HTTP/1.1 %d " % caught.value.status)
    assert await connection.next_head() is None


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (POST % (11, b"0123456789a"), 413),
        (CHUNKS % b"b\r\n0123456789a\r\n0\r\n\r\n", 413),
        (CHUNKS % (b"3\r\nabc\r\n" * 4), 413),
        (CHUNKS % b"zz\r\n", 400),
        (CHUNKS % b"2\r\nabc\r\n", 400),
        (CHUNKS % b"1" * 1_200, 400),
    ],
)
async def test_body_with_an_error_is_unreadable(request_bytes: bytes, status: int) -> None:
    client, connection = opened()
    await client.send_all(request_bytes + GET)
    await next_head(connection)
    with pytest.raises(UnreadableRequest) as caught:
        await connection.read_body()
    assert caught.value.status == status
    await connection.send(Head(status, [(b"content-length", b"0")]), End())
    assert (await received(client)).startswith(b"HTTP/1.1 %d " % status)
    assert await connection.next_head() is None


def test_limits_allow_no_body_unless_one_is_given() -> None:
    limits = SimpleHttpLimits(head_seconds=1, write_seconds=2)
    assert (limits.head, limits.body, limits.body_seconds) == (65_536, 0, 0)


async def test_body_of_the_limit_is_read() -> None:
    client, connection = opened()
    await client.send_all(POST % (10, b"0123456789"))
    await next_head(connection)
    assert await connection.read_body() == b"0123456789"


async def test_body_that_ends_early_is_unreadable() -> None:
    client, connection = opened()
    await client.send_all(POST % (3, b"ab"))
    await client.send_eof()
    await next_head(connection)
    with pytest.raises(UnreadableRequest):
        await connection.read_body()


async def test_client_that_waits_for_continue_gets_it_once() -> None:
    client, connection = opened()
    await client.send_all(
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    )
    await next_head(connection)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.read_body)
        await wait_all_tasks_blocked()
        assert await received(client) == b"HTTP/1.1 100 \r\n\r\n"
        await client.send_all(b"ab")
    await connection.send(*EMPTY)
    assert await received(client) == OK


# -- Time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", GET[:-2]])
async def test_head_that_does_not_arrive_ends_the_connection(
    data: bytes, autojump_clock: MockClock
) -> None:
    client, connection = opened()
    await client.send_all(data)
    assert await connection.next_head() is None
    assert trio.current_time() == 7


async def test_body_that_trickles_in_has_one_deadline(autojump_clock: MockClock) -> None:
    async def trickle() -> None:
        for _ in range(9):
            await trio.sleep(1)
            await client.send_all(b"x")

    client, connection = opened()
    await client.send_all(POST % (9, b""))
    await next_head(connection)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trickle)
        with pytest.raises(UnreadableRequest) as caught:
            await connection.read_body()
        assert caught.value.status == 408
        assert trio.current_time() == 5


@pytest.mark.parametrize("data", [b"", b"x" * 300_000])
async def test_client_that_does_not_read_is_too_slow(
    data: bytes, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_pair()
    connection = SimpleHttpConnection(theirs, LIMITS)
    await ours.send_all(GET)
    await next_head(connection)
    if data:
        with pytest.raises(trio.TooSlowError):
            await connection.send(Head(200, []), Body(data), End())
        assert trio.current_time() == 3
        assert await ours.receive_some(15) == b"HTTP/1.1 200 OK"
    else:
        await connection.send(Head(200, []), Body(data), End())
        assert trio.current_time() == 0


# -- Keeping the connection, and its end -----------------------------------------------------------


@pytest.mark.parametrize(
    ("request_bytes", "response", "is_kept"),
    [
        (GET, EMPTY, True),
        (GET, [Head(204, []), End()], True),
        (GET, [Head(200, []), Body(b"a"), End()], True),
        (GET.replace(b"GET", b"HEAD"), [Head(200, []), Body(b"a"), End()], True),
        (GET, EMPTY[:1], False),  # incomplete
        (GET, [Head(200, [(b"content-length", b"0"), (b"connection", b"close")]), End()], False),
        (GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), EMPTY, False),
        (GET.replace(b"1.1", b"1.0"), EMPTY, False),
        (POST % (3, b"ab"), EMPTY, False),  # whose body was not read
        (POST % (3, b"abc"), EMPTY, False),
    ],
)
async def test_connection_is_kept_after_complete_messages_only(
    request_bytes: bytes, response: list[Action], is_kept: bool
) -> None:
    client, connection = opened()
    await client.send_all(request_bytes)
    await next_head(connection)
    await connection.send(*response)
    await client.send_all(GET.replace(b"/a", b"/next"))
    head = await connection.next_head()
    assert (head is not None) is is_kept
    if head is not None:
        assert head.target == b"/next?b"


async def test_client_that_disconnects_sends_no_more_requests() -> None:
    for ending in ("send_eof", "aclose"):
        client, connection = opened()
        await client.send_all(GET)
        await next_head(connection)
        await connection.send(*EMPTY)
        await getattr(client, ending)()
        assert await connection.next_head() is None


async def reset() -> None:
    raise trio.BrokenResourceError


async def test_client_that_resets_the_connection_sends_no_more_requests() -> None:
    _, stream = memory_stream_pair()
    stream.receive_stream.receive_some_hook = reset
    connection = SimpleHttpConnection(stream, LIMITS)
    assert await connection.next_head() is None
    await connection.wait_for_disconnect()


async def test_response_to_a_closed_connection_raises() -> None:
    client, connection = opened()
    await client.send_all(GET)
    await next_head(connection)
    await client.aclose()
    with pytest.raises(trio.BrokenResourceError):
        await connection.send(*EMPTY)


async def test_response_to_head_has_no_body() -> None:
    client, connection = opened()
    await client.send_all(GET.replace(b"GET", b"HEAD"))
    await next_head(connection)
    await connection.send(Head(200, [(b"content-length", b"3")]), Body(b"abc"), End())
    assert await received(client) == b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"
    await client.send_all(GET)
    await next_head(connection)
    await connection.send(Head(200, [(b"content-length", b"3")]), Body(b"abc"), End())
    assert (await received(client)).endswith(b"\r\n\r\nabc")


@pytest.mark.parametrize(
    "response",
    [
        [Head(200, [(b"x", b"a\r\nb: c")])],
        [Head(1000, [])],
        [Head(200, [(b"content-length", b"1")]), Body(b"ab")],
        [Head(200, [(b"content-length", b"1")]), End()],
        [Body(b"a")],
    ],
)
async def test_response_that_is_no_http_is_not_sent(
    response: list[Action], autojump_clock: MockClock
) -> None:
    client, connection = opened()
    await client.send_all(GET)
    await next_head(connection)
    with pytest.raises(h11.LocalProtocolError):
        await connection.send(*response)
    with trio.move_on_after(1) as waiting:
        await client.receive_some()
    assert waiting.cancelled_caught


async def test_bytes_are_sent_as_they_are() -> None:
    client, connection = opened()
    await client.send_all(GET)
    await next_head(connection)
    await connection.send_bytes(b"HTTP/1.1 200\r\n\xff")
    assert await received(client) == b"HTTP/1.1 200\r\n\xff"
    assert await connection.next_head() is None


async def test_status_without_a_name_has_none() -> None:
    client, connection = opened()
    await client.send_all(GET)
    await next_head(connection)
    await connection.send(Head(299, [(b"content-length", b"0")]), End())
    assert await received(client) == b"HTTP/1.1 299 \r\ncontent-length: 0\r\n\r\n"


async def test_version_is_the_last_request_s() -> None:
    client, connection = opened()
    assert connection.http_version == "1.1"
    await client.send_all(GET.replace(b"1.1", b"1.0"))
    await next_head(connection)
    assert connection.http_version == "1.0"


@pytest.mark.parametrize("ending", ["send_eof", "aclose"])
async def test_client_that_disconnects_during_a_response_is_noticed(ending: str) -> None:
    client, connection = opened()
    await client.send_all(GET)
    await next_head(connection)
    await connection.send(Head(200, []))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.wait_for_disconnect)
        await wait_all_tasks_blocked()
        await client.send_all(GET)
        await wait_all_tasks_blocked()
        assert nursery.child_tasks
        await getattr(client, ending)()
        await wait_all_tasks_blocked()
        assert not nursery.child_tasks


async def test_request_sent_ahead_is_kept_up_to_a_limit() -> None:
    """A head's bytes may wait. One more, and the client counts as disconnected."""
    client, connection = opened()
    await client.send_all(GET)
    await next_head(connection)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.wait_for_disconnect)
        await client.send_all(GET.replace(b"/a", b"/ahead"))
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    await connection.send(*EMPTY)
    assert (await next_head(connection)).target == b"/ahead?b"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.wait_for_disconnect)
        await client.send_all(b"x" * 1_000)
        await wait_all_tasks_blocked()
        assert nursery.child_tasks
        await client.send_all(b"x")
