"""The standard streams of a server process, and the signals that end it.

This file decides which descriptors carry the protocol and who may touch them. Rules:

1. **Nobody else reads or writes the protocol's pipes.** While a server serves, fd 1 is another name for fd 2, and fd 0
   for the null device: `print()`, C libraries and grandchildren write to stderr, and none of them can eat a request.
2. **Descriptors, never reader threads**: a thread inside `read()` can be neither cancelled nor interrupted. Regular
   files and the null device need no second path although epoll refuses them: an `FdStream` polls only after EAGAIN,
   which these never give.
3. **O_NONBLOCK is not ours to spread.** It belongs to the open file description, which a terminal shares with the shell
   and with our own stderr. Where the system can, the pipe or terminal is opened afresh, so that even `kill -9` leaves
   the shell's alone; else (sockets, other systems) the flag is put back at the end.

It refuses to know what the bytes mean. POSIX only: others have HTTP. The client's side of the pipes is `_child.py`.
"""

from __future__ import annotations

import io
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import trio
from trio.abc import ReceiveStream, SendStream

from mcp_core import ConnectFailed

if TYPE_CHECKING:
    from trio.lowlevel import FdStream  # not there on Windows

__all__ = ["Stop", "Streams", "is_open", "require_posix", "standard_streams", "stop_on_signals"]

Streams = trio.StapledStream[SendStream, ReceiveStream]


@contextmanager
def standard_streams(stdin: int = 0, stdout: int = 1, stderr: int = 2) -> Iterator[Streams]:
    """The process's stdin and stdout as one stream for the protocol; inside the block all others are kept off them.

    What was printed before and not yet flushed goes to stderr too. At the end the descriptors, their O_NONBLOCK flags
    and the buffering of `sys.stdout` are as before, and the stream is closed; it may be closed earlier. One block at a
    time, inside `trio.run`. A reader who is gone shows as `trio.BrokenResourceError`.

    Args: descriptors, for a process that speaks over others than the standard ones.
    Raises: ConnectFailed: a descriptor is not open, or this is no POSIX system.
    Source: basic/transports (2026-07-28: basic/transports/stdio).
    """
    require_posix()
    for name, fd in ("standard input", stdin), ("standard output", stdout):
        if not is_open(fd):
            raise ConnectFailed(
                f"{name} (fd {fd}) is not open: a stdio server is started by its client, which holds the other ends"
            )
    with ExitStack() as undo:
        null = os.open(os.devnull, os.O_RDWR)
        undo.callback(os.close, null)
        source = _divert(stdin, os.O_RDONLY, null, undo)
        sink = _divert(stdout, os.O_WRONLY, stderr if is_open(stderr) else null, undo)
        # Undone from the last to the first: what handlers left in buffers goes to stderr; what stderr refuses is
        # lost, for otherwise the exit of the process would send it to the client.
        for text in _texts_on(stdout):
            undo.callback(text.reconfigure, line_buffering=text.line_buffering)
            with suppress(OSError):  # it flushes, perhaps into a stderr that nobody reads
                text.reconfigure(line_buffering=True)  # or prints would show up 8 KiB late
        undo.callback(_flush, stdout)
        undo.callback(os.dup2, null, stdout)
        undo.callback(_flush, stdout)
        yield trio.StapledStream(sink, source)


def require_posix() -> None:
    if os.name != "posix":
        raise ConnectFailed("stdio works on POSIX systems only; on this one use Streamable HTTP")


def is_open(fd: int) -> bool:
    # A standard fd that was closed when Python started is None here, and its number may since be the event loop's.
    if fd < 3 and (sys.__stdin__, sys.__stdout__, sys.__stderr__)[fd] is None:
        return False
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _divert(fd: int, mode: int, target: int, undo: ExitStack) -> FdStream:
    """Make `fd` another name for `target` until `undo` runs; what it was before is the stream returned."""
    blocking, inheritable = os.get_blocking(fd), os.get_inheritable(fd)
    kept = os.dup(fd)
    undo.callback(os.close, kept)
    undo.callback(os.set_blocking, kept, blocking)
    private = _private(fd, mode)
    # Before FdStream looks: it would put the flag back when closed, although the other stream may share the flag.
    os.set_blocking(private, False)
    stream = trio.lowlevel.FdStream(private)
    undo.callback(stream.close)
    os.dup2(target, fd)
    undo.callback(os.dup2, kept, fd, inheritable)
    return stream


def _private(fd: int, mode: int) -> int:
    """A new descriptor for what `fd` names, if possible with flags of its own."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # a file opened afresh would start at its first byte
        with suppress(OSError):  # a socket, no /dev/fd, another user's terminal, a pipe whose reader is gone
            return os.open(f"/dev/fd/{fd}", mode | os.O_NONBLOCK | os.O_NOCTTY)
    return os.dup(fd)


def _texts_on(fd: int) -> list[io.TextIOWrapper]:
    texts = []
    for text in {sys.stdout, sys.__stdout__}:
        with suppress(OSError, ValueError):  # without a descriptor, closed or detached
            if isinstance(text, io.TextIOWrapper) and text.fileno() == fd:
                texts.append(text)
    return texts


def _flush(fd: int) -> None:
    for text in _texts_on(fd):
        with suppress(OSError):
            text.flush()
    with suppress(ImportError, OSError, AttributeError):  # no ctypes, or a libc that cannot be looked up
        import ctypes

        ctypes.CDLL(None).fflush(None)


class Stop:
    """What ended a server: `caught` is the signal, or None if it ended by itself."""

    caught: signal.Signals | None = None

    @property
    def exit_code(self) -> int:
        """0, or 128 + the signal as shells count: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.caught if self.caught else 0


@contextmanager
def stop_on_signals(act: Callable[[], object]) -> Iterator[Stop]:
    """Let the first SIGINT or SIGTERM call `act`, inside trio, so that there is an orderly end; the second one kills the process.

    The first hands both signals to the kernel's default at once: so the second works also while the loop is stuck in
    blocking code, and where a handler's boundary would swallow `KeyboardInterrupt`. An ignored signal stays ignored.
    At the end the former dispositions are back. Outside the main thread, where Python gives no signals, it does
    nothing. To be entered inside `trio.run`, around everything that is to be cleaned up.
    """
    stop = Stop()
    former: dict[signal.Signals, Any] = {}
    token = trio.lowlevel.current_trio_token()

    def first(number: int, _: object) -> None:
        for each in former:
            signal.signal(each, signal.SIG_DFL)
        stop.caught = signal.Signals(number)
        token.run_sync_soon(act)

    try:
        if threading.current_thread() is threading.main_thread():
            for each in (signal.SIGINT, signal.SIGTERM):
                disposition = signal.getsignal(each)
                if disposition not in (signal.SIG_IGN, None):  # None: set by C code, could not be put back
                    former[each] = disposition
                    signal.signal(each, first)
        yield stop
    finally:
        for each, disposition in former.items():
            signal.signal(each, disposition)
