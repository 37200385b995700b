"""The copying of a child's stderr to one that takes nothing for a while."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from mcp_core.adapters import StderrCopy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

if sys.platform == "win32":
    pytest.skip("Windows has neither", allow_module_level=True)

import termios

LARGE = b"x" * 1_000_000
SECOND = 1.0


def emptied(fd: int) -> bytes:
    """Return all that can be read, which isn't the end."""
    got = bytearray()
    try:
        while data := os.read(fd, 65_536):
            got += data
    except BlockingIOError:
        pass
    return bytes(got)


@pytest.fixture(params=[os.pipe, os.openpty], ids=["pipe", "terminal"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """Give the end to read, and our stderr."""
    make: Callable[[], tuple[int, int]] = request.param
    ours, stderr = make()
    os.set_blocking(ours, False)
    yield ours, stderr
    os.close(ours)
    os.close(stderr)


def test_stderr_that_takes_nothing_is_waited_for_once(ends: tuple[int, int]) -> None:
    """Until it takes some again: then the next stall is waited for, too."""
    ours, stderr = ends
    copy = StderrCopy(os.dup(stderr))
    copy.begin(LARGE, 5.0)
    assert not copy.write_some(5.0)
    assert not copy.write_some(5.0 + SECOND - 0.01)
    assert copy.write_some(5.0 + SECOND)
    copy.begin(b"lost at once", 7.0)
    assert copy.write_some(7.0)
    assert 0 < len(emptied(ours)) < len(LARGE)
    copy.begin(b"seen", 8.0)
    assert copy.write_some(8.0)
    assert emptied(ours) == b"seen"
    copy.begin(LARGE, 9.0)
    assert not copy.write_some(9.0)
    assert copy.write_some(9.0 + SECOND)
    copy.close()
    assert os.get_blocking(stderr)


def test_chunk_that_is_taken_late_is_written_whole(ends: tuple[int, int]) -> None:
    ours, stderr = ends
    copy = StderrCopy(os.dup(stderr))
    copy.begin(b"y" * 200_000 + b"z", 5.0)
    got = b""
    while not copy.write_some(5.0):
        got += emptied(ours)
    got += emptied(ours)
    assert got == b"y" * 200_000 + b"z"
    copy.close()


def test_stderr_whose_reader_is_gone_loses_the_chunk() -> None:
    ours, stderr = os.pipe()
    copy = StderrCopy(stderr)
    os.close(ours)
    copy.begin(b"lost", 0.0)
    assert copy.write_some(0.0)
    copy.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(stderr)


@pytest.mark.parametrize("can_be_opened", [True, False])
def test_terminal_that_is_stopped_takes_nothing_until_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, can_be_opened: bool
) -> None:
    """After a change of the user, a terminal can't be opened anew."""
    if not can_be_opened:
        monkeypatch.setattr(os, "ttyname", lambda fd: "/nonexistent")
    ours, stderr = os.openpty()
    os.set_blocking(ours, False)
    copy = StderrCopy(os.dup(stderr))
    termios.tcflow(stderr, termios.TCOOFF)
    copy.begin(b"a\x1b[2J\n", 0.0)
    assert not copy.write_some(0.0)
    assert emptied(ours) == b""
    termios.tcflow(stderr, termios.TCOON)
    assert copy.write_some(0.0)
    assert emptied(ours) == b"a\\u001b[2J\r\n"
    copy.begin(LARGE, 1.0)
    assert not copy.write_some(1.0)
    assert emptied(ours)
    copy.close()
    os.close(ours)
    os.close(stderr)


def test_chunk_without_bytes_ends_no_wait() -> None:
    """An escaper keeps the first byte of a character, so that a chunk can be empty."""
    ours, stderr = os.openpty()
    copy = StderrCopy(os.dup(stderr))
    termios.tcflow(stderr, termios.TCOOFF)
    copy.begin("ü".encode()[:1], 0.0)
    assert copy.write_some(SECOND)
    copy.begin("ü".encode()[1:], 2.0)
    assert not copy.write_some(2.0)
    termios.tcflow(stderr, termios.TCOON)
    assert copy.write_some(2.0)
    assert os.read(ours, 100) == "ü".encode()
    copy.close()
    os.close(ours)
    os.close(stderr)
