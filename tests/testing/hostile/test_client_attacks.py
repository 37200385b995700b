"""Hostile HTTP clients: the kit itself, and our servers against each attack."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest
import trio

from mcp_core.http import HttpLimits
from mcp_trio import Server, connect, serve_http
from mcp_trio.testing import hostile
from mcp_trio.testing.hostile import _client_attacks
from mcp_trio.testing.hostile._client_attacks import _plays, _Wire
from tests.harness.world.waiting import PATIENCE
from tests.testing.hostile.memory import MIB, BoundedMemory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# In the default run: one of each kind that ends at once.
SAMPLE: Final = (
    "half-body-closes", "resets", "endless-head", "header-flood", "no-http", "two-hosts",
    "length-and-chunked", "bad-chunk-end", "large-body", "body-deep-array", "foreign-origin",
)  # fmt: skip
# Requests that are served, or wait for the client; others get an error.
SERVED: Final = ("get-flood", "initialize-flood", "expects-continue")


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a server that still serves the time to show it."""
    monkeypatch.setattr(_client_attacks, "_PROBE_TIMEOUT", PATIENCE)


@pytest.fixture
async def url() -> AsyncIterator[str]:
    server = Server("attacked")

    @server.tool
    def echo(text: str) -> str:
        """Return the text."""
        return text

    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, server, port=0))
        yield address.url
        async with connect(address.url) as client:
            assert (await client.call_tool("echo", {"text": "x"})).text == "x"
        nursery.cancel_scope.cancel()


async def survive(url: str, attack: str) -> None:
    """Attack the server. Only the attacks of `SAMPLE` all end without the clock."""
    seconds = PATIENCE if attack in SAMPLE else 0.5
    with BoundedMemory(32 * MIB):
        outcome = await hostile.attack_server(url, attack, seconds=seconds)
    assert outcome.still_serves
    assert all(status >= 400 for status in outcome.statuses) or attack in SERVED
    assert outcome.seconds < PATIENCE


@pytest.mark.parametrize("attack", SAMPLE)
async def test_server_survives_quick_attack(url: str, attack: str, no_leaks: None) -> None:
    await survive(url, attack)


@pytest.mark.slow
@pytest.mark.parametrize("attack", [attack.name for attack in hostile.CLIENT_ATTACKS])
async def test_server_survives_attack(url: str, attack: str, no_leaks: None) -> None:
    await survive(url, attack)


SMUGGLING: Final = [
    attack.name
    for attack in hostile.CLIENT_ATTACKS
    if "Serve one request at most" in attack.expects
]


@pytest.mark.parametrize("attack", SMUGGLING)
async def test_server_serves_no_smuggled_request(url: str, attack: str) -> None:
    seconds = 0.3 if attack == "huge-chunk-size" else PATIENCE  # for the chunk the server waits
    outcome = await hostile.attack_server(url, attack, seconds=seconds)
    assert [status for status in outcome.statuses if status < 400] == []
    assert len(outcome.statuses) <= 2
    assert 404 not in outcome.statuses  # of the target /smuggled


# -- The kit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", [
    "https://127.0.0.1/", "http://192.0.2.1/mcp", "http://example.com/", "http://127.0.0.1.example/",
    "/mcp", "",
])  # fmt: skip
async def test_attack_server_elsewhere_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="only such servers are attacked"):
        await hostile.attack_server(url, "silent")


async def test_attack_server_unknown_attack_is_refused() -> None:
    with pytest.raises(ValueError, match="no such attack: 'x'; there are slow-head"):
        await hostile.attack_server("http://127.0.0.1:1/", "x")


async def test_attack_server_without_server_raises() -> None:
    async with hostile.hostile_server("silent") as server:
        url = server.url
    with pytest.raises(OSError):  # noqa: PT011 - the system words it
        await hostile.attack_server(url, "silent", seconds=PATIENCE)


async def scripted(attack: str, serve: Any, seconds: float = PATIENCE) -> hostile.AttackOutcome:
    """Attack a server that is a function of a stream."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        outcome = await hostile.attack_server(
            f"http://127.0.0.1:{port}/mcp", attack, seconds=seconds
        )
        nursery.cancel_scope.cancel()
    return outcome


async def test_outcome_of_server_that_serves_everything() -> None:
    async def serve(stream: trio.SocketStream) -> None:
        while await stream.receive_some():
            await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    outcome = await scripted("foreign-origin", serve)
    assert outcome.statuses == (200,)
    assert not outcome.was_closed
    assert outcome.still_serves
    assert outcome.sent > outcome.received == 38


async def test_outcome_of_server_that_closes() -> None:
    outcome = await scripted("no-http", trio.SocketStream.aclose)
    assert outcome.statuses == ()
    assert outcome.was_closed
    assert not outcome.still_serves


async def test_outcome_of_server_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_client_attacks, "_PROBE_TIMEOUT", 0.1)

    async def serve(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    outcome = await scripted("half-body", serve, 0.2)
    assert outcome.statuses == ()
    assert not outcome.was_closed
    assert not outcome.still_serves
    assert outcome.seconds >= 0.2


async def test_server_closes_on_slow_bodies() -> None:
    """By default the server gives a body five minutes."""
    limits = HttpLimits(body_time=0.2)
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, Server("x"), port=0, limits=limits))
        for attack in ("slow-body", "half-bodies"):
            outcome = await hostile.attack_server(address.url, attack, seconds=PATIENCE)
            assert outcome.was_closed, attack
            assert set(outcome.statuses) <= {408}
        nursery.cancel_scope.cancel()


class SentBytes(_Wire):
    """Keeps what an attack sends, in place of a connection."""

    def __init__(self) -> None:
        super().__init__(urlsplit("http://example.com/mcp"), {}, reads=False)
        self.data = b""

    async def send(self, *data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.data += b"".join(data)


@pytest.mark.parametrize(
    ("attack", "sent"),
    [
        ("silent", rb""),
        ("half-head", rb"POST /mcp HTTP/1\.1\r\n(?!.*\r\n\r\n).*"),
        ("half-body", rb".*\r\nContent-Length: 100\r\n\r\n.{1,99}"),
        ("header-flood", rb".*?(\r\nX-\d+: y){10000}\r\n\r\n"),
        ("long-header", rb".*\r\nX-A: a{1048576}\r\n\r\n"),
        ("no-http", rb"(?!.*HTTP).+"),
        ("tls-hello", rb"\x16\x03.*"),
        ("http-0.9", rb"GET /\r\n\r\n"),
        ("http-9.9", rb"POST /mcp HTTP/9\.9\r\n.*"),
        ("no-host", rb"POST /mcp HTTP/1\.1\r\n(?!.*\nHost:).*"),
        ("two-hosts", rb".*\nHost: example\.com:80\r\n.*\nHost: elsewhere\.example\r\n.*"),
        ("foreign-host", rb".*\nHost: elsewhere\.example\r\n.*"),
        ("foreign-origin", rb".*\nOrigin: https://elsewhere\.example\r\n.*"),
        ("null-origin", rb".*\nOrigin: null\r\n.*"),
        ("nul-header", rb".*\nX-A: a\0b\r\n.*"),
        ("bare-cr", rb".*\nX-A: a\rX-B: b\r\n.*"),
        ("bare-lf", rb"[^\r]*\n\n"),
    ],
)
async def test_attack_sends_what_it_says(attack: str, sent: bytes) -> None:
    """Our servers reject honest requests too if something else is wrong with them."""
    assert attack in {each.name for each in hostile.CLIENT_ATTACKS}
    wire = SentBytes()
    await _plays[attack](wire)
    assert re.fullmatch(sent, wire.data, re.DOTALL)
