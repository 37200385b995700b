"""A server on stdio in this process: how it ends, with its pipes in memory.

`test_stdio.py` has real pipes and processes, and `tests/test_last_deadline.py` what the last
deadline does.
"""

from __future__ import annotations

import asyncio
import errno
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

import mcp_asyncio_shim
from mcp_asyncio_shim import _server
from mcp_asyncio_shim._tasks import open_server
from mcp_core import ConnectionLost, adapters
from mcp_core.registry import Server
from mcp_core.runtime import LAST_GRACE, SHUTDOWN_GRACE
from tests.harness.asyncio_memory import asyncio_memory_pair
from tests.harness.jsonrpc import INITIALIZED, D, initialize, line, request
from tests.harness.traces import read_file
from tests.harness.world.loop import run
from tests.test_stubborn_handlers import LINE, Stubborn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from mcp_asyncio_shim._link import Streams

    Play = Callable[["Pipes"], Awaitable[object]]


class Pipes:
    """The client's ends, which `play` uses; it is called when the server begins."""

    def __init__(self, play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
        self.play = play
        self.deadline: list[object] = []
        monkeypatch.setattr(_server, "standard_streams", self.standard_streams)

        class Deadline(adapters.LastDeadline):
            def begin(_, seconds: float, cause: str, status: int | None = None) -> None:  # noqa: N805
                self.deadline.append((seconds, cause, status))

            def lifespan_ended(_) -> None:  # noqa: N805
                self.deadline.append("the lifespan has ended")

        monkeypatch.setattr(adapters, "LastDeadline", Deadline)

    @asynccontextmanager
    async def standard_streams(self) -> AsyncIterator[Streams]:
        self.stdin, source = asyncio_memory_pair()
        self.stdout, self.sink = asyncio_memory_pair()
        playing = asyncio.create_task(self._play())
        try:
            yield source.reader, self.sink.writer
        finally:
            await playing
            self.ended = asyncio.get_running_loop().time()

    async def _play(self) -> None:
        await self.play(self)

    async def open(self, *calls: str) -> None:
        """Perform the handshake, and call tools."""
        requests = [request(name, "tools/call", {"name": name}) for name in calls]
        await self.stdin.send_all(b"".join(map(line, [initialize(D), INITIALIZED, *requests])))
        await self.stdout.receive_some()

    async def close(self) -> None:
        await self.stdin.send_eof()

    def break_(self, number: int) -> None:
        """Let the system say that stdout cannot be written."""
        self.sink.transport.break_(OSError(number, "broken"))


async def leave(pipes: Pipes) -> None:
    await pipes.open()
    await pipes.close()


def signalled(number: signal.Signals) -> Play:
    async def play(pipes: Pipes) -> None:
        await pipes.open()
        signal.raise_signal(number)
        # Another signal would end the process.
        assert {signal.getsignal(each) for each in _server._STOP_SIGNALS} == {signal.SIG_DFL}

    return play


def broken(number: int) -> Play:
    async def play(pipes: Pipes) -> None:
        await pipes.open()
        pipes.break_(number)
        await pipes.close()

    return play


GONE = (1 + LAST_GRACE, "the client had gone", None)
ENDED = "the lifespan has ended"


@pytest.mark.parametrize(
    ("play", "outcome", "deadline"),
    [
        (leave, None, [GONE, ENDED]),
        (signalled(signal.SIGINT), 130, [(SHUTDOWN_GRACE + LAST_GRACE, "SIGINT", 130), ENDED]),
        (signalled(signal.SIGTERM), 143, [(SHUTDOWN_GRACE + LAST_GRACE, "SIGTERM", 143), ENDED]),
        (broken(errno.EPIPE), None, [GONE, ENDED]),
        (broken(errno.ECONNRESET), None, [GONE, ENDED]),
        (broken(errno.EIO), "tea: cannot write to standard output: broken", [GONE, ENDED]),
    ],
    ids=["end of input", "SIGINT", "SIGTERM", "EPIPE", "ECONNRESET", "EIO"],
)
def test_run_ends_with_its_status(
    play: Play, outcome: object, deadline: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process's handlers of signals are as before, and the deadline gets its end."""

    def ignore(number: int, frame: object) -> None:
        pass

    before = {each: signal.signal(each, ignore) for each in _server._STOP_SIGNALS}
    pipes = Pipes(play, monkeypatch)
    status: object = None
    try:
        mcp_asyncio_shim.run(Server("tea"))
    except SystemExit as exc:
        status = exc.code
    finally:
        after = [signal.signal(number, handler) for number, handler in before.items()]
    assert status == outcome
    assert pipes.deadline == deadline
    assert set(after) == {ignore}


def test_run_leaves_an_ignored_signal_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that started this one, such as `nohup`, has decided that."""

    async def go_on(pipes: Pipes) -> None:
        await pipes.open()
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is not before[signal.SIGTERM]
        await pipes.close()

    before = {each: signal.getsignal(each) for each in _server._STOP_SIGNALS}
    pipes = Pipes(go_on, monkeypatch)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        mcp_asyncio_shim.run(Server("tea"))
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before[signal.SIGINT])
    assert pipes.deadline == [GONE, ENDED]
    assert signal.getsignal(signal.SIGTERM) is before[signal.SIGTERM]


def test_run_raises_what_the_lifespan_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        if server.info.name:
            raise FileNotFoundError("no such database")
        yield

    pipes = Pipes(Pipes.close, monkeypatch)
    with pytest.raises(FileNotFoundError, match="no such database"):
        mcp_asyncio_shim.run(Server("tea", lifespan=lifespan))
    assert pipes.deadline == [ENDED]


def test_stdout_that_is_closed_ends_a_silent_server_after_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client is gone, although nothing is written: a pipe tells. Its stdin may end first."""

    async def close_stdout(pipes: Pipes) -> None:
        await pipes.open()
        await asyncio.sleep(7)
        pipes.break_(errno.EPIPE)

    pipes = Pipes(close_stdout, monkeypatch)

    async def main() -> float:
        began = asyncio.get_running_loop().time()
        await mcp_asyncio_shim.serve_stdio(Server("tea"))
        return pipes.ended - began

    assert run(main()) == pytest.approx(7.5)


def test_stdout_that_cannot_be_written_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    Pipes(broken(errno.EIO), monkeypatch)
    with pytest.raises(ConnectionLost, match="cannot write to standard output: broken"):
        run(mcp_asyncio_shim.serve_stdio(Server("tea")))


@pytest.mark.parametrize("of_program", [True, False])
def test_stdio_handlers_get_a_second_and_only_a_program_has_a_last_deadline(
    of_program: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that goes on gets a line in its log for a handler that ignores its cancellation."""

    async def call(pipes: Pipes) -> None:
        await pipes.open("stubborn", "tidy", "slow")
        await stubborn[0].started.wait()
        began.append(asyncio.get_running_loop().time())
        await pipes.close()
        while b'"id":"tidy"' not in (data := await pipes.stdout.receive_some()):
            assert data
        answered.append(asyncio.get_running_loop().time())

    warns: list[bool] = []

    def open_and_note(*args: Any, **options: Any) -> Any:
        warns.append(options["warns"])
        return open_server(*args, **options)

    monkeypatch.setattr(_server, "open_server", open_and_note)
    began: list[float] = []
    answered: list[float] = []
    stubborn: list[Stubborn] = []
    pipes = Pipes(call, monkeypatch)

    async def main() -> None:
        stubborn.append(Stubborn())
        server = stubborn[0].server

        async def tidy(seconds: float) -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                await asyncio.sleep(seconds)

        @server.tool(name="tidy")
        async def half_a_second() -> None:
            """Clean up when it is cancelled."""
            await tidy(0.5)

        @server.tool(name="slow")
        async def four_seconds() -> None:
            """Clean up for as long as no handler is reported."""
            await tidy(4)

        if of_program:
            with adapters.LastDeadline("tea") as last_deadline:
                await _server._serve_stdio(server, None, 9.0, None, last_deadline)
        else:
            await mcp_asyncio_shim.serve_stdio(server)

    run(main())
    # The tidy one takes half a second after its cancellation, and the stubborn one 18 in all.
    assert answered[0] - began[0] == pytest.approx(1.5)
    assert pipes.ended - began[0] == pytest.approx(18)
    assert pipes.deadline == ([GONE] if of_program else [])
    assert warns == [not of_program]  # the same for its tasks
    assert caplog.messages == ([] if of_program else [LINE])


@pytest.mark.parametrize(
    ("grace", "after_stop", "after_end"),
    [(None, SHUTDOWN_GRACE, 1.0), (3.0, 3.0, 1.0), (0.25, 0.25, 0.25)],
)
@pytest.mark.parametrize("stops", [True, False], ids=["stop", "end of input"])
def test_stdio_gives_handlers_the_grace_and_after_its_input_a_second_at_most(
    grace: float | None,
    after_stop: float,
    after_end: float,
    stops: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client that has closed our stdin sends SIGTERM soon."""

    async def call(pipes: Pipes) -> None:
        await pipes.open("wait")
        await asyncio.sleep(7)
        stop.set() if stops else await pipes.close()

    server = Server("tea")

    @server.tool
    async def wait() -> None:
        """Wait."""
        await asyncio.sleep(1000)

    stop = asyncio.Event()
    options: Any = {} if grace is None else {"grace": grace}
    pipes = Pipes(call, monkeypatch)

    async def main() -> float:
        began = asyncio.get_running_loop().time()
        await mcp_asyncio_shim.serve_stdio(server, stop=stop, **options)
        return pipes.ended - began - 7

    assert run(main()) == pytest.approx(after_stop if stops else after_end)


def test_stdio_is_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Pipes(leave, monkeypatch)
    run(mcp_asyncio_shim.serve_stdio(Server("tea"), record=tmp_path / "a.mcp.jsonl"))
    header, lines = read_file(tmp_path / "a.mcp.jsonl")
    assert (header.observer, header.transport) == ("server", "stdio")
    assert lines[-1].end == "closed"
    assert len(lines) > 3
