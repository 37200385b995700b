"""A server on standard streams, and signals. Real processes are in `test_processes.py`.

How a served conversation ends is in `tests/drivers/test_server.py`.
"""

from __future__ import annotations

import logging
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.registry import Server
from mcp_trio import _server, memory_pair, run, serve_stdio, serve_stream
from tests.harness.jsonrpc import line, request, stateless_request
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trio.testing import MockClock


@pytest.fixture
def stdio(monkeypatch: pytest.MonkeyPatch) -> trio.abc.HalfCloseableStream:
    """The client's end of the stream that `serve_stdio` uses."""
    ours, theirs = memory_pair()

    @contextmanager
    def standard_streams() -> Iterator[trio.abc.HalfCloseableStream]:
        yield theirs

    monkeypatch.setattr(_server, "standard_streams", standard_streams)
    return ours


async def test_serve_stdio_serves_the_standard_streams(
    stdio: trio.abc.HalfCloseableStream,
    nursery: trio.Nursery,
) -> None:
    nursery.start_soon(serve_stdio, Server("idle"))
    wire = Wire(stdio)
    await wire.shake_hands()
    await stdio.send_eof()
    assert await wire.receive_all() == []


async def test_client_that_does_not_read_its_responses_has_five_seconds(
    autojump_clock: MockClock,
) -> None:
    ours, theirs = memory_pair()
    server = Server("long")
    server.add_tool(lambda: "x" * 1_000_000, name="long", description="Return much.")
    wire = Wire(ours)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_stream, server, theirs)
        await wire.shake_hands()
        await ours.send_all(line(request(1, "tools/call", {"name": "long"})))
        await ours.send_eof()
        began = trio.current_time()
    assert trio.current_time() - began == pytest.approx(5)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_run_exits_on_a_signal_after_finally_blocks(
    number: signal.Signals, status: int, stdio: Any
) -> None:
    """The exit status is 128 plus the signal, and the previous signal handlers are restored."""
    server = Server("signals")
    ran: list[str] = []

    @server.tool
    async def wait() -> None:
        """Signal, then wait."""
        try:
            os.kill(os.getpid(), number)
            await trio.sleep_forever()
        finally:
            ran.append("finally")

    stdio._outgoing.buffer += line(stateless_request(1, "tools/call", {"name": "wait"}))
    with pytest.raises(SystemExit) as caught:
        run(server, grace=0.01)
    assert caught.value.code == status
    assert ran == ["finally"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_run_returns_at_the_end_of_stdin(stdio: Any) -> None:
    stdio._outgoing.writer_closed = True
    run(Server("quick"))


def test_run_leaves_the_root_logger_unchanged(stdio: Any) -> None:
    before = logging.getLogger().handlers[:], logging.getLogger().level
    stdio._outgoing.writer_closed = True
    run(Server("quiet"))
    assert (logging.getLogger().handlers, logging.getLogger().level) == before
    assert logging.getLogger("mcp_trio").handlers == []
