"""`attack_server` against scripted servers in memory: what it judges, and how long it waits."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest
import trio
from trio.testing import memory_stream_pair

from mcp_trio.testing import hostile
from mcp_trio.testing.hostile._attack import local_url
from mcp_trio.testing.hostile._client_attacks import _Wire
from mcp_trio.testing.hostile._server import AttackedRequest, _Exhausted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio.abc import Stream
    from trio.testing import MockClock

URL: Final = "http://127.0.0.1:8000/mcp"
HEAD: Final = (
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\n"
)
PING: Final = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
REFUSAL: Final = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
RESPONSE: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class AttackedNetwork:
    """Connects an attack with a function for each connection, given its number from 1."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._numbers = count(1)
        self.serve: Callable[[Stream, int], Awaitable[None]] = self.close
        self.opened: list[tuple[str, int]] = []

    async def open_tcp_stream(self, host: str, port: int) -> Any:
        await trio.lowlevel.checkpoint()
        self.opened.append((host, port))
        ours, theirs = memory_stream_pair()
        self._nursery.start_soon(self.serve, theirs, next(self._numbers))
        return ours

    async def close(self, stream: Stream, number: int) -> None:
        await stream.aclose()


@pytest.fixture
async def network(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> AttackedNetwork:
    network = AttackedNetwork(nursery)
    monkeypatch.setattr(trio, "open_tcp_stream", network.open_tcp_stream)
    return network


async def attack(network: AttackedNetwork, **options: Any) -> hostile.AttackOutcome:
    return await hostile.attack_server(URL, "foreign-origin", **options)


async def read_request(stream: Stream) -> bytes:
    """Return a request with the body PING."""
    data = b""
    while not data.endswith(PING):
        data += (part := await stream.receive_some())
        assert part
    return data


async def answer(stream: Stream, *parts: bytes, pause: float = 0) -> bytes:
    request = await read_request(stream)
    for part in parts:
        await trio.sleep(pause)
        await stream.send_all(part)
    return request


async def test_attack_is_judged_by_response_and_by_honest_request(
    network: AttackedNetwork, autojump_clock: MockClock
) -> None:
    """The honest request comes while the attack's connection is open, with the same headers."""
    requests = []
    ends = []

    async def serve(stream: Stream, number: int) -> None:
        requests.append(await answer(stream, REFUSAL if number == 1 else RESPONSE))
        ends.append((number, await stream.receive_some()))

    network.serve = serve
    outcome = await attack(network, headers={"Authorization": "Bearer x"})
    own = b"Authorization: Bearer x\r\n"
    origin = b"Origin: https://elsewhere.example\r\n"
    assert requests == [
        HEAD + own + b"Content-Length: 40\r\n" + origin + b"\r\n" + PING,
        HEAD + own + b"Content-Length: 40\r\n\r\n" + PING,
    ]
    assert outcome.statuses == (403,)
    assert not outcome.was_closed
    assert outcome.still_serves
    assert (outcome.sent, outcome.received) == (len(requests[0]), len(REFUSAL))
    assert network.opened == [("127.0.0.1", 8000)] * 2
    await trio.testing.wait_all_tasks_blocked()
    assert ends == [(2, b""), (1, b"")]


async def test_attack_on_server_that_closes_ends_at_once(
    network: AttackedNetwork, autojump_clock: MockClock
) -> None:
    async def serve(stream: Stream, number: int) -> None:
        await answer(stream, REFUSAL)
        await stream.aclose()

    network.serve = serve
    outcome = await attack(network, seconds=20)
    assert outcome.was_closed
    assert outcome.statuses == (403,)
    assert outcome.still_serves
    assert outcome.seconds <= 0.02


async def test_response_is_whole_a_tenth_of_a_second_after_its_last_byte(
    network: AttackedNetwork, autojump_clock: MockClock
) -> None:
    async def serve(stream: Stream, number: int) -> None:
        if number == 1:
            await answer(stream, *[bytes([each]) for each in REFUSAL], pause=0.09)
        else:
            await answer(stream, RESPONSE)
        await trio.sleep_forever()

    network.serve = serve
    outcome = await attack(network, seconds=20)
    assert outcome.statuses == (403,)
    assert outcome.received == len(REFUSAL)
    assert 0.1 <= outcome.seconds - 0.09 * len(REFUSAL) < 0.13


@pytest.mark.parametrize(("given", "taken"), [(None, 5), (7, 7), (29, 29), (31, 30)])
async def test_attack_without_response_ends_after_its_time(
    network: AttackedNetwork, autojump_clock: MockClock, given: float | None, taken: float
) -> None:
    async def serve(stream: Stream, number: int) -> None:
        await answer(stream, *[RESPONSE] * (number == 2))
        await trio.sleep_forever()

    network.serve = serve
    outcome = await attack(network, **({} if given is None else {"seconds": given}))
    assert outcome.seconds == pytest.approx(taken)
    assert outcome.statuses == ()
    assert not outcome.was_closed
    assert outcome.still_serves
    assert outcome.received == 0


@pytest.mark.parametrize(("after", "serves"), [(4.9, True), (5.1, False)])
async def test_honest_request_may_take_five_seconds(
    network: AttackedNetwork, autojump_clock: MockClock, after: float, serves: bool
) -> None:
    async def serve(stream: Stream, number: int) -> None:
        if number == 2:
            # A status that comes in two parts is one, too.
            await answer(stream, RESPONSE[:8], pause=after)
            await stream.send_all(RESPONSE[8:])

    network.serve = serve
    assert (await attack(network, seconds=1)).still_serves == serves


@pytest.mark.parametrize("parts", [(), (b"no HTTP",)])
async def test_honest_request_without_status_is_not_served(
    network: AttackedNetwork, autojump_clock: MockClock, parts: tuple[bytes, ...]
) -> None:
    async def serve(stream: Stream, number: int) -> None:
        await answer(stream, *parts if number == 2 else [RESPONSE])
        await stream.aclose()

    network.serve = serve
    outcome = await attack(network)
    assert outcome.statuses == (200,)
    assert not outcome.still_serves


@pytest.mark.parametrize("allowed", [1, 2])
async def test_server_that_accepts_no_more_has_an_outcome(
    network: AttackedNetwork,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    allowed: int,
) -> None:
    """Only the first connection must succeed: a server may refuse a flood of them."""

    async def open_tcp_stream(host: str, port: int) -> Any:
        if len(network.opened) == allowed:
            raise OSError("refused")
        return await network.open_tcp_stream(host, port)

    monkeypatch.setattr(trio, "open_tcp_stream", open_tcp_stream)
    outcome = await hostile.attack_server(URL, "half-bodies")
    assert outcome.statuses == ()
    assert outcome.was_closed
    assert not outcome.still_serves


async def test_further_connections_of_an_attack_are_read_and_closed(
    network: AttackedNetwork, autojump_clock: MockClock
) -> None:
    """An attack of 30 connections is over only when each has a response, or has ended."""
    ended = []

    async def serve(stream: Stream, number: int) -> None:
        await answer(stream, RESPONSE) if number == 31 else await trio.sleep(number / 10)
        if number % 2:
            await stream.send_all(REFUSAL)
        else:
            await stream.aclose()
            return
        while await stream.receive_some():
            pass
        ended.append(number)

    network.serve = serve
    outcome = await hostile.attack_server(URL, "half-bodies")
    assert outcome.statuses == (403,) * 15
    assert outcome.received == 15 * len(REFUSAL)
    assert not outcome.was_closed
    assert outcome.still_serves
    assert 3 <= outcome.seconds < 3.13
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(ended) == list(range(1, 32, 2))


async def test_unread_attack_reads_nothing_of_a_long_response(
    network: AttackedNetwork, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The responses stay in the buffers of the connection until these are full."""

    class Socket:
        def setsockopt(self, *_: object) -> None: ...

    async def open_tcp_stream(host: str, port: int) -> Any:
        stream = await network.open_tcp_stream(host, port)
        stream.socket = Socket()
        return stream

    monkeypatch.setattr(trio, "open_tcp_stream", open_tcp_stream)

    async def serve(stream: Stream, number: int) -> None:
        await answer(stream, RESPONSE)

    network.serve = serve
    outcome = await hostile.attack_server(URL, "unread", seconds=2)
    assert (outcome.received, outcome.statuses) == (0, ())
    assert outcome.sent > hostile.MAX_BYTES
    assert outcome.seconds == pytest.approx(2)


async def test_responses_beyond_a_mebibyte_are_counted_and_forgotten(
    network: AttackedNetwork, autojump_clock: MockClock
) -> None:
    size = 1024 * 1024
    block = REFUSAL + b"x" * (60_000 - len(REFUSAL))

    async def serve(stream: Stream, number: int) -> None:
        await answer(stream, *[block] * 40 if number == 1 else [RESPONSE])
        await stream.aclose()

    network.serve = serve
    outcome = await attack(network)
    assert outcome.received == 40 * len(block) > 2 * size
    assert len(outcome.statuses) == size // len(block) + 1


# -- URLs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("url", "opened", "line", "host"), [
    ("http://127.0.0.1:8000/mcp", ("127.0.0.1", 8000), b"POST /mcp", b"127.0.0.1:8000"),
    ("http://127.9.9.9/a/b", ("127.9.9.9", 80), b"POST /a/b", b"127.9.9.9:80"),
    ("http://localhost:1", ("localhost", 1), b"POST /", b"localhost:1"),
    ("http://[::1]:8000/mcp", ("::1", 8000), b"POST /mcp", b"[::1]:8000"),
])  # fmt: skip
async def test_url_of_this_machine_is_attacked_there(
    network: AttackedNetwork,
    autojump_clock: MockClock,
    url: str,
    opened: Any,
    line: bytes,
    host: bytes,
) -> None:
    """Both the attack and the honest request name the host as the URL does."""
    received = []

    async def serve(stream: Stream, number: int) -> None:
        received.append(await answer(stream, RESPONSE))
        await stream.aclose()

    network.serve = serve
    outcome = await hostile.attack_server(url, "upgrade")
    assert outcome.still_serves
    assert network.opened == [opened] * 2
    for each in received:
        assert each.startswith(line + b" HTTP/1.1\r\nHost: " + host + b"\r\n")


@pytest.mark.parametrize("url", ["http:///mcp", "http://[2001:db8::1]/", "ftp://127.0.0.1/"])
def test_url_elsewhere_is_no_local_url(url: str) -> None:
    with pytest.raises(ValueError, match="only such servers are attacked"):
        local_url(url)


# -- Limits ----------------------------------------------------------------------------------------


async def test_attack_that_begins_late_counts_its_own_time(
    network: AttackedNetwork, autojump_clock: MockClock
) -> None:
    await trio.sleep(100)
    assert (await attack(network)).seconds < 1


class CountingStream:
    """A connection that counts what is sent."""

    def __init__(self) -> None:
        self.sent = 0

    async def send_all(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.sent += len(data)


async def test_attack_sends_nothing_beyond_its_bound() -> None:
    """A part that begins within 8 MiB is sent whole, and nothing after it."""
    stream: Any = CountingStream()
    wire = _Wire(urlsplit(URL), {}, reads=False)
    wire.streams.append(stream)
    wire.sent = hostile.MAX_BYTES
    await wire.send(b"12345", b"6789")
    await wire.send(b"x")
    await wire.repeat(b"x")
    assert (stream.sent, wire.sent) == (5, hostile.MAX_BYTES + 5)

    server = hostile.HostileServer("http://x/mcp")
    request = AttackedRequest(stream, server, b"", {})
    server.bytes_sent = hostile.MAX_BYTES
    with pytest.raises(_Exhausted):
        await request.send(b"12345", b"6789")
    assert (stream.sent, server.bytes_sent) == (10, hostile.MAX_BYTES + 5)
    assert request.other_url == ""
