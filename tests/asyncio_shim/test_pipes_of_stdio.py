"""The standard streams and a child's end without starting a program.

Descriptors 0 to 2 are pipes while a test runs. Real programs are in `test_stdio.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim import _stdio, connect
from mcp_asyncio_shim._stdio import (
    StartedProcess,
    _child_stderr,
    _CopiedStderr,
    standard_streams,
    unread_bytes,
)
from mcp_core import ConnectFailed
from mcp_trio.testing._leaks import descriptors
from tests.harness.world.virtual_time import run
from tests.harness.world.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def close(fd: int) -> None:
    with suppress(OSError):
        os.close(fd)


class Ends:
    """Pipes in place of our stdin, stdout and stderr; what is named here are the other ends."""

    def __init__(self, undo: ExitStack) -> None:
        stdin, self.requests = os.pipe()
        self.answers, stdout = os.pipe()
        self.complaints, stderr = os.pipe()
        for fd, end in enumerate((stdin, stdout, stderr)):
            kept = os.dup(fd)
            undo.callback(os.close, kept)
            undo.callback(os.dup2, kept, fd)
            os.dup2(end, fd)
            os.close(end)
        for end in (self.requests, self.answers, self.complaints):
            os.set_blocking(end, False)
            undo.callback(close, end)


@contextmanager
def pipes() -> Iterator[Ends]:
    """Put pipes in place of our standard streams. pytest replaces a fixture's."""
    with ExitStack() as undo:
        yield Ends(undo)


def read(fd: int) -> bytes:
    """Return what can be read at once."""
    try:
        return os.read(fd, 100_000)
    except BlockingIOError:
        return b""


# -- Our own stdin and stdout ----------------------------------------------------------------------


@pytest.mark.usefixtures("each_kind_of_pipe")
def test_standard_streams_have_the_pipes_to_themselves() -> None:
    """A tool's stray `print` must go to stderr, or it would corrupt the protocol's stdout."""

    async def main() -> None:
        os.write(ends.requests, b"request\n")
        async with standard_streams() as (reader, writer):
            os.write(1, b"stray output\n")
            assert os.read(0, 10) == b""
            assert await reader.readline() == b"request\n"
            writer.write(b"answer\n")
            await writer.drain()
            while not (answer := read(ends.answers)):  # noqa: ASYNC110
                await asyncio.sleep(0)
            assert answer == b"answer\n"
            assert read(ends.complaints) == b"stray output\n"
            os.write(ends.requests, b"\n")  # for a thread, which could not end otherwise
            await reader.readline()
        os.close(ends.requests)
        os.write(1, b"ours again")
        assert read(ends.answers) == b"ours again"

    with pipes() as ends:
        before = descriptors()
        del before[ends.requests]
        run(main())
        wait_until(lambda: descriptors() == before)  # a thread closes what it has used


@pytest.mark.parametrize("fails", [False, True])
def test_standard_streams_give_everything_back(fails: bool) -> None:
    """Descriptors 0 and 1 are blocking and usable again, also after an exception."""

    async def main() -> None:
        with suppress(ZeroDivisionError):
            async with standard_streams():
                assert read(ends.answers) == b""
                if fails:
                    raise ZeroDivisionError

    with pipes() as ends:
        before = descriptors()
        run(main())
        assert descriptors() == before
        for fd in (0, 1):
            assert os.get_blocking(fd)
        os.write(ends.requests, b"for others")
        assert os.read(0, 100) == b"for others"


def test_standard_streams_flush_what_was_printed_to_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with standard_streams():
            print("printed meanwhile", end="")
            assert read(ends.answers) == b""

    with pipes() as ends, open(1, "w", closefd=False) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        run(main())
        assert read(ends.complaints) == b"printed meanwhile"
        print("printed later", end="", flush=True)
        assert read(ends.answers) == b"printed later"
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("code_page", "printed"),
    [
        ("cp1252", b"\\u2713 caf\xe9"),
        ("ascii", b"\\u2713 caf\\xe9"),
        ("utf-8", "\u2713 caf\u00e9".encode()),
    ],
)
def test_print_escapes_what_the_code_page_lacks(
    code_page: str, printed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with standard_streams():
            print("\u2713 caf\u00e9", end="", flush=True)
            assert read(ends.complaints) == printed

    with pipes() as ends, open(1, "w", encoding=code_page, closefd=False) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        run(main())
        assert stdout.errors == "strict"
        monkeypatch.undo()


@pytest.mark.parametrize("name", ["stdin", "stdout"])
def test_standard_stream_that_is_not_open_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        with pytest.raises(ConnectFailed, match=f"fd {('stdin', 'stdout').index(name)} is no pipe"):
            async with standard_streams():
                raise AssertionError

    with pipes():
        monkeypatch.setattr(sys, f"__{name}__", None)
        run(main())


@pytest.mark.usefixtures("each_kind_of_pipe")
def test_regular_file_is_for_threads_only(tmp_path: Path) -> None:
    """Where pipes are polled, a regular file is refused; the thread fallback reads it."""
    before = threading.active_count()
    (tmp_path / "requests").write_bytes(b"request\n")

    async def main() -> bytes:
        async with standard_streams() as (reader, _):
            return await reader.read()

    with pipes(), (tmp_path / "requests").open("rb") as file:
        os.dup2(file.fileno(), 0)
        if _stdio._HAS_POLLABLE_PIPES:
            with pytest.raises(ConnectFailed, match="fd 0 is no pipe, socket or terminal"):
                run(main())
        else:
            assert run(main()) == b"request\n"
        wait_until(lambda: threading.active_count() == before)


def test_one_socket_for_both_directions_is_refused() -> None:
    async def main() -> None:
        async with standard_streams():
            raise AssertionError

    ours, theirs = socket.socketpair()
    with ours, theirs, pipes():
        for fd in (0, 1):
            os.dup2(theirs.fileno(), fd)
        with pytest.raises(ConnectFailed, match="stdin and stdout are one socket"):
            run(main())


def test_output_is_discarded_without_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with standard_streams():
            os.write(1, b"stray output")

    with pipes() as ends:
        monkeypatch.setattr(sys, "__stderr__", None)
        run(main())
        assert read(ends.complaints) == read(ends.answers) == b""


def test_unread_bytes_of_a_pipe_are_counted() -> None:
    with pipes() as ends:
        os.write(ends.requests, b"x" * 300)
        assert unread_bytes(0) == 300
        os.close(closed := os.dup(0))
        assert unread_bytes(closed) == 0


# -- A child's stderr ------------------------------------------------------------------------------


class ChildRecord:
    """Notes what is recorded of a child."""

    def __init__(self) -> None:
        self.noted: list[Any] = []

    def stderr(self, data: bytes) -> None:
        self.noted.append(data)

    def exited(self, status: int) -> None:
        self.noted.append(status)


class StderrTerminal:
    """A terminal in place of our stderr."""

    def __init__(self, undo: ExitStack) -> None:
        self.screen, terminal = os.openpty()
        undo.callback(close, self.screen)
        os.dup2(terminal, 2)
        os.close(terminal)

    def shown(self, until: bytes) -> bytes:
        """Return what the terminal shows, up to `until`. The system takes its time."""
        shown = b""
        while not shown.endswith(until):
            shown += os.read(self.screen, 1000)
        return shown


@contextmanager
def at_terminal() -> Iterator[StderrTerminal]:
    with ExitStack() as undo:
        Ends(undo)
        yield StderrTerminal(undo)


def test_child_stderr_is_ours_unless_it_is_a_terminal() -> None:
    async def main() -> None:
        async with _child_stderr(_CopiedStderr()) as file:
            assert file is None

    with pipes():
        run(main())


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_child_stderr_on_a_terminal_is_copied_and_closed(
    fails: bool, closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Escape sequences from a child are shown as text, while the record keeps the raw bytes."""
    monkeypatch.setattr(_stdio, "_STDERR_TIMEOUT", 1000)  # the end of the pipe is enough
    record: Any = ChildRecord()

    async def main() -> None:
        copied = _CopiedStderr(record)
        with suppress(ZeroDivisionError):
            async with _child_stderr(copied) as file:
                assert file is not None
                file.write(b"\x1b[2J says\n")
                while not record.noted:  # noqa: ASYNC110
                    await asyncio.sleep(0)
                assert not copied.ended.is_set()
                file.write(b"the rest\n")
                if closes:
                    file.close()  # as soon as the child has it
                    await copied.ended.wait()
                if fails:
                    raise ZeroDivisionError
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1
        assert copied.tail == b"\x1b[2J says\nthe rest\n"

    with at_terminal() as terminal:
        before = descriptors()
        run(main())
        assert descriptors() == before  # 0 among them
        assert terminal.shown(until=b"rest\r\n") == b"\\u001b[2J says\r\nthe rest\r\n"
        assert record.noted == [b"\x1b[2J says\n", b"the rest\n"]


def test_child_stderr_held_open_by_another_process_is_left() -> None:
    """A grandchild that keeps the pipe open must not delay the end for longer than the timeout."""

    async def main() -> float:
        async with _child_stderr(_CopiedStderr()) as file:
            assert file is not None
            kept.append(os.dup(file.fileno()))
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1  # nothing copies any more
        return asyncio.get_running_loop().time()

    with at_terminal():
        kept: list[int] = []
        before = descriptors()
        assert run(main()) == pytest.approx(0.2)
        os.close(kept[0])
        assert descriptors() == before


def test_child_stderr_is_read_after_the_terminal_is_closed() -> None:
    async def main() -> None:
        async with _child_stderr(copied := _CopiedStderr()) as file:
            assert file is not None
            os.set_blocking(file.fileno(), False)
            os.close(terminal.screen)
            left = 300_000  # more than the pipe holds
            while left > 0:
                left -= file.write(b"x" * 30_000) or 0
                await asyncio.sleep(0)
        assert len(copied.tail) == 64 * 1024

    with at_terminal() as terminal:
        run(main())


# -- A child's end ---------------------------------------------------------------------------------

NEVER = 1e9


class Process:
    """A process whose end a test decides: so many seconds after each of the requests to end."""

    pid = 4711

    def __init__(self, ends_after: dict[str, float]) -> None:
        self.returncode: int | None = None
        self.happened: list[tuple[float, str]] = []
        self._ends_after = ends_after
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def request(self, what: str) -> None:
        self.happened.append((round(self._loop.time(), 3), what))
        if what in self._ends_after:
            self._loop.call_later(self._ends_after[what], self._end)

    def _end(self) -> None:
        self.returncode = 0
        self._ended.set()

    async def wait(self) -> int:
        await self._ended.wait()
        return 0

    def terminate(self) -> None:
        self.request("terminate")


class Writer:
    def __init__(self, process: Process) -> None:
        self.close: Callable[[], None] = lambda: process.request("stdin closed")


def stop(
    ends_after: dict[str, float],
    monkeypatch: pytest.MonkeyPatch,
    *,
    others: dict[int, str] | None = None,
    cancelled_after: float = NEVER,
    groups: bool = True,
    outside: bool = True,
) -> list[tuple[float, str]]:
    """Stop a child, and return what happened when.

    `others` are processes that it has started, `outside` of its group.
    """
    running = dict(others or {})

    async def main() -> list[tuple[float, str]]:
        process = Process(ends_after)

        def kill_group(pid: int, number: int) -> None:
            assert pid == 4711
            process.request(f"group {signal.Signals(number).name}")

        def kill(pid: int, number: int) -> None:
            name = signal.Signals(number).name
            process.request(f"{pid} {name}")
            if running.get(pid) == "another user's":
                raise PermissionError
            if running.pop(pid) == "gone":
                raise ProcessLookupError

        monkeypatch.setattr(_stdio, "_HAS_GROUPS", groups)
        monkeypatch.setattr(os, "killpg", kill_group)
        monkeypatch.setattr(os, "kill", kill)

        looked: list[int] = []

        def find(*, leader_exists: bool, in_group: bool = True) -> list[int]:
            looked.append(len(process.happened))
            assert leader_exists == (process.returncode is None)
            return [*running] if in_group or outside else []

        reader = asyncio.StreamReader()
        reader.feed_data(b"x" * 200_000)  # it is read, or the child would wait
        streams: Any = reader, Writer(process)
        child = StartedProcess(process, "mark", streams, _CopiedStderr())  # type: ignore[arg-type]
        monkeypatch.setattr(child._tree, "find", find)
        assert child.status is None
        with suppress(TimeoutError):
            async with asyncio.timeout(cancelled_after):
                await child.stop()
                process.request("end")
        # Those that are found only while their parent runs have to be found before it ends.
        assert looked[0] == 0
        assert not reader._buffer  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1
        monkeypatch.undo()
        return process.happened

    return run(main())


CLOSED = (0, "stdin closed")


@pytest.mark.parametrize(
    ("ends_after", "happened"),
    [
        ({"stdin closed": 0.5}, [CLOSED, (0.5, "end")]),
        ({"stdin closed": 1.9}, [CLOSED, (1.9, "end")]),
        # Its end is waited for. A look at all processes now and then would see it later.
        ({"group SIGTERM": 0.51}, [CLOSED, (2, "group SIGTERM"), (2.51, "end")]),
        ({"group SIGTERM": 1.9}, [CLOSED, (2, "group SIGTERM"), (3.9, "end")]),
        (
            {"group SIGKILL": 0.1},
            [CLOSED, (2, "group SIGTERM"), (4, "group SIGKILL"), (4.1, "end")],
        ),
        (  # it cannot be killed: it waits for a device
            {},
            [CLOSED, (2, "group SIGTERM"), (4, "group SIGKILL"), (6, "end")],
        ),
    ],
)
def test_child_is_asked_to_end_then_signalled(
    ends_after: dict[str, float],
    happened: list[tuple[float, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert stop(ends_after, monkeypatch) == happened


@pytest.mark.parametrize("moment", [0.5, 2.5])
def test_child_is_killed_when_its_stop_is_cancelled(
    moment: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened = stop({"group SIGKILL": 0}, monkeypatch, cancelled_after=moment)
    assert happened[-1] == (moment, "group SIGKILL")


def test_child_without_groups_is_terminated_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    happened = stop({"terminate": 0.1}, monkeypatch, groups=False)
    assert happened == [CLOSED, (2, "terminate"), (2.1, "end")]


def test_processes_of_a_child_that_has_ended_are_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    happened = stop(
        {"stdin closed": 0}, monkeypatch, others={5001: "", 5002: "gone", 5003: "another user's"}
    )
    signals = [CLOSED, *((0, f"{pid} SIGTERM") for pid in (5001, 5002, 5003))]
    # What cannot be signalled is not waited for.
    assert happened == [*signals, (0.05, "5003 SIGTERM"), (0.05, "end")]


def test_processes_outside_of_the_group_are_signalled_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    happened = stop({"group SIGTERM": 1}, monkeypatch, others={5001: ""})
    assert happened == [CLOSED, (2, "group SIGTERM"), (2, "5001 SIGTERM"), (3, "end")]


def test_processes_of_the_group_are_signalled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    happened = stop({"group SIGTERM": 1}, monkeypatch, others={5001: ""}, outside=False)
    assert happened == [CLOSED, (2, "group SIGTERM"), (4, "5001 SIGKILL"), (4.05, "end")]


@pytest.mark.parametrize(
    ("exited", "stderr", "end"),
    [(0.1, 0.3, 0.3), (0.3, 0.1, 0.3), (0.3, None, 0.3), (0.1, 60.0, 0.5), (60.0, None, 0.5)],
)
def test_end_of_a_child_s_output_waits_for_what_explains_it(
    exited: float, stderr: float | None, end: float
) -> None:
    """It waits for the exit and for the copied stderr, half a second in all."""

    async def main() -> None:
        process: Any = Process({"exit": exited})
        copied = _CopiedStderr()
        if stderr is not None:
            copied.ended.clear()
            asyncio.get_running_loop().call_later(stderr, copied.ended.set)
        streams: Any = None, None
        child = StartedProcess(process, "mark", streams, copied)
        copied.tail += b"no disk\n"
        process.request("exit")
        await child.wait_for_end()
        assert asyncio.get_running_loop().time() == pytest.approx(end)
        status = " (exit status 0)" if exited < 1 else ""
        assert child.describe() == f"{status}\n  its stderr: no disk"

    run(main())


# -- Programs that cannot be started ---------------------------------------------------------------


def test_loop_without_child_processes_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with pytest.raises(ConnectFailed, match="cannot start true: this event loop has no child"):
            async with connect(["true"]):
                raise AssertionError

    monkeypatch.setattr(_stdio, "_HAS_POLLABLE_PIPES", False)
    run(main())


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ("terminal", asyncio.subprocess.PIPE),
        ("pipe", None),
        (None, asyncio.subprocess.DEVNULL),
    ],
)
def test_child_on_pipes_of_asyncio_shares_a_stderr_that_is_no_terminal(
    ours: str | None, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows. A process without a console has no stderr to share."""

    async def refuse(*words: str, **options: Any) -> Any:
        given.update(options, words=words)
        raise FileNotFoundError(2, "No such file or directory")

    async def main() -> None:
        with pytest.raises(ConnectFailed, match="cannot start nothing: no program"):
            async with connect(["nothing", "at all"], env={"A": "1"}, cwd="/"):
                raise AssertionError

    given: dict[str, Any] = {}
    monkeypatch.setattr(_stdio, "_HAS_POLLABLE_PIPES", False)
    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    with at_terminal() if ours == "terminal" else pipes():
        if ours is None:
            monkeypatch.setattr(sys, "__stderr__", None)
        run(main())
    assert given["stderr"] == expected
    assert given["stdin"] == given["stdout"] == asyncio.subprocess.PIPE
    assert (given["words"], given["cwd"], given["env"]["A"]) == (("nothing", "at all"), "/", "1")
    assert given["start_new_session"] is True


def test_pipes_of_a_program_that_cannot_be_started_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No child exists to inherit them: every descriptor opened for it is ours to close."""

    async def refuse(*words: str, **options: Any) -> Any:
        given.update(options, words=words)
        raise FileNotFoundError(2, "No such file or directory")

    async def main() -> None:
        with pytest.raises(ConnectFailed, match="cannot start nothing: no program"):
            async with connect(["nothing", "at all"], env={"A": "1"}, cwd="/"):
                raise AssertionError

    with at_terminal():
        given: dict[str, Any] = {}
        monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
        before = descriptors()
        run(main())
        assert descriptors() == before
        assert given["words"] == ("nothing", "at all")
        assert given["cwd"] == "/"
        assert given["start_new_session"] is True
        assert given["env"]["A"] == "1"
        assert given["stderr"] not in (None, 2)


@pytest.mark.parametrize("steps", range(1, 13))
def test_pipes_of_a_child_whose_start_is_cancelled_are_closed(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run` counts the descriptors. The last rows are cancelled while the system starts it."""

    async def take_long(*words: str, **options: Any) -> Any:
        await asyncio.Event().wait()

    async def start() -> None:
        async with connect(["nothing"]):
            raise AssertionError

    async def main() -> None:
        starting = asyncio.create_task(start())
        for _ in range(steps):
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait({starting})
        assert starting.cancelled()

    with at_terminal():
        monkeypatch.setattr(asyncio, "create_subprocess_exec", take_long)
        run(main())
