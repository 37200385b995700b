"""Connections to servers that don't answer: the time limit, and what is closed."""

from __future__ import annotations

import asyncio
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim import connect
from mcp_core import ConnectFailed
from tests.harness.asyncio_memory import asyncio_memory_pair
from tests.harness.world.virtual_time import run

if TYPE_CHECKING:
    from tests.harness.asyncio_memory import MemoryEnd

REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
MOVED = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /mcp\r\nContent-Length: 0\r\n\r\n"


class Network:
    """Connections in memory. The server answers each with the next of `responses`."""

    def __init__(self, *responses: bytes) -> None:
        self.responses = list(responses)
        self.ends: list[MemoryEnd] = []
        self.asked: list[tuple[Any, ...]] = []
        self.contexts: list[Any] = []

    async def open_connection(self, *address: Any, ssl: Any) -> Any:
        self.asked.append(address)
        self.contexts.append(ssl)
        if not self.responses:
            await asyncio.Event().wait()
        ours, theirs = asyncio_memory_pair()
        theirs.writer.write(self.responses.pop(0))
        self.ends.append(theirs)
        return ours.reader, ours.writer

    async def error_of(self, url: str, **options: Any) -> tuple[str, float]:
        """Return the error of a connection that fails, and when it is raised."""
        with pytest.raises(ConnectFailed) as caught:
            async with connect(url, **options):
                raise AssertionError
        for end in self.ends:
            assert end.transport.peer.is_closing()
        return str(caught.value), asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    ("url", "responses", "connections"),
    [
        ("http://example.com:1/", [], 1),
        ("ws://example.com:1/", [], 1),
        ("ws://example.com:1/", [b""], 1),
        ("ws://example.com:1/", [b"HTTP/1.1 101 "], 1),
        ("ws://example.com:1/", [MOVED], 2),
        ("ws://example.com:1/", [MOVED, b""], 2),
    ],
)
def test_connection_is_given_up_after_ten_seconds(
    url: str, responses: list[bytes], connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit holds for all of it: each step to the open WebSocket, with its redirects."""
    network = Network(*responses)
    monkeypatch.setattr(asyncio, "open_connection", network.open_connection)
    text, seconds = run(network.error_of(url))
    assert text == (
        "cannot connect to example.com:1: no answer"
        if url.startswith("http:")
        else "example.com:1 did not give us a WebSocket within 10 s"
    )
    assert seconds == pytest.approx(10)
    assert network.asked == [("example.com", 1)] * connections


def test_reason_of_the_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*address: Any, ssl: Any) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(asyncio, "open_connection", refuse)
    text, seconds = run(Network().error_of("http://example.com:1/"))
    assert text == "cannot connect to example.com:1: [Errno 111] Connection refused"
    assert seconds == 0


@pytest.mark.parametrize("scheme", ["http", "https", "ws", "wss"])
@pytest.mark.parametrize("is_given", [False, True])
def test_tls_is_begun_for_the_schemes_that_ask_for_it(
    scheme: str, is_given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the given context or, by True, with one that checks the server's certificate."""
    network = Network()
    monkeypatch.setattr(asyncio, "open_connection", network.open_connection)
    context = SSLContext(PROTOCOL_TLS_CLIENT) if is_given else None
    run(network.error_of(f"{scheme}://example.com:1/", tls=context))
    assert network.contexts == [(context or True) if scheme in ("https", "wss") else None]


@pytest.mark.parametrize(
    ("responses", "text"),
    [
        ([REFUSED], "HTTP status 403 Forbidden"),
        ([MOVED, REFUSED], "HTTP status 403 Forbidden"),
        ([b"SSH-2.0-OpenSSH_9\r\n\r\n"], "not HTTP/1.1"),
        ([b"x" * 70_000], "not HTTP/1.1"),
        ([b"HTTP/1.1 200 OK\r\nx: " + b"x" * 140_000], "head of the server's answer is too long"),
    ],
)
def test_websocket_that_is_refused_is_closed(
    responses: list[bytes], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Network(*responses)
    monkeypatch.setattr(asyncio, "open_connection", network.open_connection)
    error, seconds = run(network.error_of("ws://example.com:1/"))
    assert text in error
    assert "cannot connect" not in error
    assert seconds == 0
