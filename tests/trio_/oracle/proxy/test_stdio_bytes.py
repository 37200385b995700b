"""The proxy on stdio in memory: bytes pass unchanged, however they are cut, and are recorded.

A server that a signal does not end is ended.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import MagicMock

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import memory_stream_pair

from mcp_core.adapters import Recording
from mcp_core.trace import DamagedLine, read_trace
from mcp_trio.oracle.proxy._stdio import _StdioProxy
from mcp_trio.recording._open import open_recorder
from tests.harness.world.pipes import rest
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

    from mcp_trio.streams._child import ChildProcess
    from mcp_trio.streams._stdio import Streams


def recorded(path: Path, sender: str) -> list[bytes]:
    """Return the messages of one side in a trace."""
    _, lines = read_trace([path.read_bytes()])
    found = [line for _, line in lines if not isinstance(line, DamagedLine)]
    return [line.message for line in found if line.sender == sender and line.message]


class PlayedChild:
    """A server in memory in place of a child process."""

    returncode = None

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    async def aclose(self) -> None:
        await self.stream.aclose()


async def passed_through(
    requests: list[bytes], responses: list[bytes], path: Path
) -> tuple[bytes, bytes]:
    """Send chunks in both directions at once, and return what arrives at server and client."""
    client, client_end = memory_stream_pair()
    child_end, server = memory_stream_pair()
    arrived: dict[str, bytes] = {}

    async def play(name: str, stream: Any, chunks: list[bytes]) -> None:
        for chunk in chunks:
            await stream.send_all(chunk)
        await stream.send_eof()
        arrived[name] = await rest(stream)

    recording = Recording(path=path, with_secrets=True)
    async with open_recorder(recording, "between", "stdio") as recorder:
        assert recorder is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(play, "client", client, requests)
            nursery.start_soon(play, "server", server, responses)
            child = cast("ChildProcess", PlayedChild(child_end))
            proxy = _StdioProxy(cast("Streams", client_end), child, recorder.stream(), nursery)
            nursery.start_soon(proxy.pass_requests)
            await proxy.pass_responses()
            await client_end.send_stream.aclose()
            while "server" not in arrived or "client" not in arrived:
                await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    return arrived["server"], arrived["client"]


def messages_in(data: bytes) -> list[bytes]:
    """Return the messages of a byte stream as a trace has them."""
    *lines, unfinished = data.split(b"\n")
    found = [each.removesuffix(b"\r") for each in lines]
    return [each for each in [*found, unfinished] if each]


CHUNKS = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=40),
        st.sampled_from([b'{"id":1}\n', b"\r\n", b"\n", b"\xff\xfe", b'{"a":"\xc3', b"\xa9"]),
        st.integers(1, 3).map(lambda size: b"x" * 30_000 * size),
    ),
    max_size=8,
)


@fewer_examples(5)
@given(requests=CHUNKS, responses=CHUNKS)
def test_any_bytes_cut_anywhere_arrive_and_are_recorded(
    requests: list[bytes], responses: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.mcp.jsonl"
    arrived = trio.run(passed_through, requests, responses, path)
    assert arrived == (b"".join(requests), b"".join(responses))
    assert recorded(path, "client") == messages_in(b"".join(requests))
    assert recorded(path, "server") == messages_in(b"".join(responses))


@pytest.mark.parametrize(("signals", "seconds"), [(1, 5.0), (2, 0.0)])
async def test_signalled_server_that_goes_on_is_ended_after_five_seconds(
    signals: int, seconds: float, autojump_clock: MockClock
) -> None:
    async def aclose() -> None:
        ended.append(trio.current_time() - began)

    ended: list[float] = []
    child = MagicMock(returncode=None, aclose=aclose)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        proxy = _StdioProxy(MagicMock(), child, None, nursery)
        for _ in range(signals):
            proxy.send_signal(signal.SIGTERM)
    assert ended[0] == pytest.approx(seconds)
    assert child.send_signal.call_count == signals
