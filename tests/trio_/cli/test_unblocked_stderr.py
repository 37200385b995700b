"""The stderr of what must go on while nothing reads it."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from mcp_trio.cli import _unblocked_stderr
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._unblocked_stderr import unblocked_stderr
from tests.harness.world.stuck_files import fill

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_all(fd: int) -> None:
    os.set_blocking(fd, False)
    with suppress(BlockingIOError):
        while os.read(fd, 65_536):
            pass


class JumpingTime:
    """The module `time` with a clock that only `sleep` moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingTime:
    clock = JumpingTime()
    monkeypatch.setattr(_unblocked_stderr, "time", clock)
    return clock


@contextmanager
def stderr_on_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Give the end to read, and stderr."""
    reader, writer = os.openpty()
    with os.fdopen(writer, "w", encoding="latin-1") as stderr, os.fdopen(reader, "rb", 0):
        monkeypatch.setattr(sys, "stderr", stderr)
        yield reader, writer


def test_terminal_gets_styles_in_its_own_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """They aren't escaped, as the output of others is."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with stderr_on_terminal(monkeypatch) as (reader, _):
        with unblocked_stderr() as file:
            screen = Screen(file)
            assert screen.terminal
            screen.write_line(("h\xe9 \u2192", "bold"))
        assert os.read(reader, 100) == b"\x1b[1mh\xe9 ?\x1b[0m\r\n"


@pytest.mark.parametrize("has_room", [False, True])
def test_terminal_that_takes_nothing_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch, clock: JumpingTime, has_room: bool
) -> None:
    """It gets the later lines again, and its descriptor waits as before."""
    with stderr_on_terminal(monkeypatch) as (reader, writer), unblocked_stderr() as file:
        fill(reader, writer, room=has_room)
        screen = Screen(file)
        for _ in range(100):
            screen.write_line("lost" * 30)
        assert 101.0 <= clock.now < 101.1
        read_all(reader)
        screen.write_line("seen")
        assert os.read(reader, 100) == b"seen\r\n"
        assert os.get_blocking(writer)


@pytest.mark.parametrize("stderr", [None, io.StringIO()])
def test_stderr_without_a_descriptor_is_used_as_it_is(
    monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO | None
) -> None:
    """It was closed when Python started, or is replaced."""
    monkeypatch.setattr(sys, "stderr", stderr)
    with unblocked_stderr() as file:
        assert file is stderr


def test_windows_waits_for_its_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with unblocked_stderr() as file:
        assert file is sys.stderr


def test_pipe_whose_reader_is_gone_loses_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        with unblocked_stderr() as file:
            screen = Screen(file)
            assert not screen.terminal
            screen.write_line("lost")
            screen.write_line("too")
