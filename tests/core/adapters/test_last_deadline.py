"""The waits and the end of a `LastDeadline`, without threads: the test calls what they would run.

`tests/test_last_deadline.py` has real programs.
"""

from __future__ import annotations

import _thread
import os
import sys
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import UNSET

from mcp_core import DIALECTS
from mcp_core.adapters import LastDeadline, _last_deadline
from mcp_core.registry import Server
from mcp_core.registry.entries._invocation import Invocation
from mcp_core.runtime._service import RequestJob, RootsJob
from tests.core.adapters.test_recorder import open_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REPORT_TIMEOUT = _last_deadline._REPORT_TIMEOUT


class ProcessEnded(Exception):
    """In place of the end of the process; the status is its argument."""


class Lock:
    """The lock that a thread waits for. It gets it after so many waits."""

    def __init__(self, waits: int) -> None:
        self.left = waits
        self.timeouts: list[float] = []

    def acquire(self, timeout: float) -> bool:
        self.timeouts.append(timeout)
        self.left -= 1
        return self.left < 0

    def release(self) -> None:
        """Do nothing: no other thread waits for it."""


class Deadline:
    """A `LastDeadline` whose threads the test runs. `handlers` are those that run now."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[Callable[[], None]] = []
        self.handlers: list[str] = []
        self.lines: list[bytes] = []
        self.last = LastDeadline("notes")
        self._release: Any = None

        def start(function: Any, arguments: tuple[Any, ...]) -> None:
            self.threads.append(partial(function, *arguments))

        def write(fd: int, data: bytes) -> int:
            assert fd == 2
            self.lines.append(data)
            return len(data)

        def end(status: int) -> None:
            raise ProcessEnded(status)

        monkeypatch.setattr(_last_deadline, "_REPORT_TIMEOUT", 0)
        monkeypatch.setattr(_last_deadline, "_running_handlers", lambda: [*self.handlers])
        monkeypatch.setattr(_thread, "start_new_thread", start)
        monkeypatch.setattr(os, "write", write)
        monkeypatch.setattr(os, "_exit", end)

    def wait(self, waits: int) -> list[float]:
        """Run the thread that waits, until it has the lock. Return how long it has waited."""
        lock = Lock(waits)
        self.last._running = lock  # type: ignore[assignment]
        self.threads[0]()
        return lock.timeouts

    def end(self, waits: int = 99) -> tuple[int, str]:
        """Run it until it ends the process. Return the status, and the line on stderr."""
        with pytest.raises(ProcessEnded) as ended:
            self.wait(waits)
        self.threads[1]()
        [data] = self.lines
        return ended.value.args[0], data.decode()


@pytest.fixture
def deadline(monkeypatch: pytest.MonkeyPatch) -> Deadline:
    return Deadline(monkeypatch)


def test_last_deadline_after_its_block_ends_nothing(deadline: Deadline) -> None:
    """The program goes on, with a thread that must not end it later."""
    with deadline.last as last:
        last.lifespan_ended()
        last.begin(0, "the client had gone")
    deadline.handlers.append("tool 'slow'")
    [wait] = deadline.threads
    wait()
    wait()  # nor does it keep the lock
    assert not deadline.lines


def test_last_deadline_without_begin_starts_no_thread(deadline: Deadline) -> None:
    with deadline.last as last:
        last.lifespan_ended()
    assert not deadline.threads


def test_last_deadline_names_what_runs_then(deadline: Deadline) -> None:
    """Only the first call counts, apart from the status of a signal that comes later."""
    deadline.last.begin(6, "the client had gone")
    deadline.last.begin(1, "SIGTERM", 143)
    assert len(deadline.threads) == 1
    deadline.handlers += ["tool 'slow'", "resource \x1b[2J"]
    status, text = deadline.end()
    assert status == 143
    assert text == (
        "notes: tool 'slow', resource \\u001b[2J did not end within 6 s after the client had gone:"
        " the process ends without waiting longer\n"
    )


def test_last_deadline_names_twenty_handlers(deadline: Deadline) -> None:
    deadline.handlers += map(str, range(23))
    deadline.last.begin(6, "SIGINT")
    status, text = deadline.end()
    assert status == 1
    assert text.startswith("notes: 0, 1, ")
    assert " 18, 19, 3 more did not end within 6 s after SIGINT: " in text


@pytest.mark.parametrize("ran", [True, False])
def test_last_deadline_looks_each_second_until_the_lifespan_ends(
    ran: bool, deadline: Deadline
) -> None:
    """A lifespan may take its time. After it, a task that a handler has left is no reason to stay.

    It is called by the name of the handler that ran at the beginning, if one did.
    """
    deadline.handlers += ["tool 'slow'"] * ran
    deadline.last.begin(6, "SIGTERM")
    deadline.handlers.clear()
    assert deadline.wait(3) == [6, 1, 1, 1]
    deadline.last.lifespan_ended()
    status, text = deadline.end()
    assert status == 1
    named = "tool 'slow'" if ran else "a task or thread"
    assert text.startswith(f"notes: {named} did not end within 6 s after SIGTERM: ")


@pytest.mark.parametrize("count", [20, 21])
def test_last_deadline_names_all_of_twenty_handlers(count: int, deadline: Deadline) -> None:
    deadline.handlers += map(str, range(count))
    deadline.last.begin(6, "SIGINT")
    _, text = deadline.end()
    assert (", 18, 19 did not end" in text, "1 more did" in text) == (count == 20, count == 21)


class ReportLock:
    """A lock that notes its calls."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def acquire(self, timeout: float | None = None) -> None:
        self.calls.append(timeout)

    def release(self) -> None:
        self.calls.append("release")


def test_last_deadline_ends_recordings_and_flushes_in_a_limited_time(
    deadline: Deadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them may block, so another thread does it, and the process waits for some seconds."""
    lock = ReportLock()
    done: list[str] = []
    recorder = SimpleNamespace(close=lambda: done.append("recorder"))
    monkeypatch.setattr(_last_deadline, "_REPORT_TIMEOUT", REPORT_TIMEOUT)
    monkeypatch.setattr(_last_deadline, "_open_recorders", lambda: [recorder])
    monkeypatch.setattr(_thread, "allocate_lock", lambda: lock)
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(flush=lambda: done.append("stdout")))
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(flush=lambda: done.append("stderr")))
    deadline.handlers.append("tool 'slow'")
    deadline.last.begin(6, "SIGTERM")
    deadline.end()
    assert lock.calls == [None, 2.5, "release"]
    assert done == ["recorder", "stdout", "stderr"]


# -- What runs -------------------------------------------------------------------------------------


def read_request() -> Any:
    """A request, as far as the name of its handler goes."""
    return SimpleNamespace(method=SimpleNamespace(name="resources/read"))


def test_handlers_that_run_are_found_in_their_coroutines() -> None:
    """A request's handler by its method, a hook by what it is for, and those that ended not."""
    job = RequestJob.__new__(RequestJob)
    job.request = read_request()
    hook = RootsJob.__new__(RootsJob)

    async def other() -> None:
        """No handler."""

    running = [job.run(), job.run(), hook.run(), other()]
    found = _last_deadline._running_handlers()
    for each in running:
        each.close()
    assert sorted(found) == ["a hook on changed roots", "resources/read"]
    assert not _last_deadline._running_handlers()


def test_function_that_blocks_a_thread_is_found_in_its_frames() -> None:
    """A tool by its name, and a prompt, which isn't in a table of tools, by its function's."""
    server = Server("notes")
    found: list[list[str]] = []

    @server.tool(name="other")
    def other() -> str:
        """Do nothing."""
        return ""

    @server.tool(name="looks")
    def look() -> str:
        """Look."""
        found.append(_last_deadline._running_handlers())
        return ""

    @server.prompt
    def ask() -> str:
        """Ask."""
        found.append(_last_deadline._running_handlers())
        return ""

    tool = server._tools["looks"].prepare(UNSET, DIALECTS["2026-07-28"])
    prompt = server._prompts["ask"].prepare({}, DIALECTS["2026-07-28"])
    assert isinstance(tool, Invocation)
    tool.call()
    prompt.call()
    assert found == [["tool 'looks'"], [prompt.function.label]]
    assert not _last_deadline._running_handlers()


def test_recorders_are_found_if_this_process_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = open_file(tmp_path / "a.mcp.jsonl")
    assert recorder in _last_deadline._open_recorders()
    recorder.close()
    monkeypatch.delitem(sys.modules, "mcp_core.adapters._recorder")
    assert _last_deadline._open_recorders() == []
