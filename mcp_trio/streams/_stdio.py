"""The standard streams of a stdio server, and the signals that stop it.

1. **Only the protocol uses the pipes.** While a server runs, fd 1 is a duplicate of fd 2, and fd 0
   of the null device: `print()`, C libraries and child processes write to stderr, and none of them
   can consume a request.
2. **Descriptors, not reader threads**, where the system can wait for them: a thread inside `read()`
   can be neither cancelled nor interrupted. Regular files and the null device need no second path,
   although epoll rejects them: an `FdStream` polls only after EAGAIN, which they never return.
   Windows has only blocking pipes here, so there `_threads.py` is used.
3. **O_NONBLOCK must not leak.** The flag belongs to the open file description, which a terminal
   shares with the shell and with our own stderr. Where the system can, the pipe or terminal is
   opened again, so that even after `kill -9` the shell's flag is unchanged. Otherwise (sockets,
   other systems) the flag is restored at the end.

The client's side of the pipes is `_child.py`.
"""

from __future__ import annotations

import io
import os
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import trio
from trio.abc import ReceiveStream, SendStream

from mcp_core import ConnectFailed
from mcp_core.runtime import LAST_GRACE

from . import _threads
from ._threads import ThreadReceiveStream, ThreadSendStream

if TYPE_CHECKING:
    from trio.lowlevel import FdStream  # not there on Windows

    from mcp_core.adapters import LastDeadline

__all__ = [
    "StopSignal",
    "Streams",
    "has_no_reader",
    "is_open",
    "pipe_of",
    "standard_streams",
    "stop_on_signals",
]

Streams = trio.StapledStream[SendStream, ReceiveStream]

# Windows has a third signal of the terminal, Ctrl+Break. A program can also send it to another one.
_STOP_SIGNALS: Final = [
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGBREAK")
    if name in signal.Signals.__members__
]


@contextmanager
def standard_streams(stdin: int = 0, stdout: int = 1, stderr: int = 2) -> Iterator[Streams]:
    """Reserve the process's stdin and stdout for the protocol, and yield them as one stream.

    Inside the block, other code that uses stdin or stdout gets the null device or stderr. Text that
    was printed before and not yet flushed also goes to stderr. A character that the encoding of
    `sys.stdout` lacks is printed as an escape, as on stderr. At the end the descriptors, their
    O_NONBLOCK flags, the buffering and the error handler of `sys.stdout` are restored, and the
    stream is closed; it may be closed earlier. Use one block at a time, inside `trio.run`. If the
    client has closed its end, sending raises `trio.BrokenResourceError`.

    On Windows threads read and write. A thread that still waits for input at the end of the block
    takes one more chunk of it.

    Args:
        stdin: the descriptor to read from.
        stdout: the descriptor to write to.
        stderr: the descriptor that gets the output of other code.

    Raises:
        ConnectFailed: a descriptor isn't open.

    Source: basic/transports (2026-07-28: basic/transports/stdio).
    """
    for name, fd in ("standard input", stdin), ("standard output", stdout):
        if not is_open(fd):
            raise ConnectFailed(
                f"{name} (fd {fd}) is not open: a stdio server is started by its client, which"
                " holds the other ends"
            )
    with ExitStack() as undo:
        null = os.open(os.devnull, os.O_RDWR)
        undo.callback(os.close, null)
        for_prints = stderr if is_open(stderr) else null
        source: ReceiveStream
        sink: SendStream
        if _threads.HAS_POLLABLE_PIPES:
            source = _divert(stdin, os.O_RDONLY, null, undo)
            sink = _divert(stdout, os.O_WRONLY, for_prints, undo)
        else:
            source = ThreadReceiveStream(_divert_blocking(stdin, null, undo))
            undo.callback(source.close)
            sink = ThreadSendStream(_divert_blocking(stdout, for_prints, undo))
            undo.callback(sink.close)
        # Undone in reverse order. Text that handlers left in buffers goes to stderr, which fd 1
        # still is. What stderr does not accept goes to the null device: at the exit of the process
        # it would otherwise reach the client.
        for text in _text_files_on(stdout):
            undo.callback(text.reconfigure, line_buffering=text.line_buffering, errors=text.errors)
            with suppress(OSError):  # reconfigure flushes, and the reader of stderr may be gone
                # Otherwise prints appear 8 KiB late, and "✓" fails a tool in the code page cp1252.
                text.reconfigure(line_buffering=True, errors="backslashreplace")
        undo.callback(_flush, stdout)
        undo.callback(os.dup2, null, stdout)
        undo.callback(_flush, stdout)
        yield trio.StapledStream(sink, source)


def is_open(fd: int) -> bool:
    """Return True if `fd` is open; a standard descriptor must also have been open at the start."""
    # The number of a standard descriptor that was closed at the start may since have been given to
    # another file, such as the event loop's. Python's own file object is None then.
    if fd < 3 and (sys.__stdin__, sys.__stdout__, sys.__stderr__)[fd] is None:
        return False
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _divert(fd: int, mode: int, target: int, undo: ExitStack) -> FdStream:
    """Make `fd` a duplicate of `target` until `undo` runs. Return a stream on its former file."""
    blocking = os.get_blocking(fd)
    inheritable = os.get_inheritable(fd)
    original = os.dup(fd)
    undo.callback(os.close, original)
    undo.callback(os.set_blocking, original, blocking)
    private = _reopen(fd, mode)
    # Set it before FdStream reads it: a closing FdStream restores the flag that it found, but stdin
    # and stdout may share one flag.
    os.set_blocking(private, False)
    stream = trio.lowlevel.FdStream(private)
    undo.callback(stream.close)
    os.dup2(target, fd)
    undo.callback(os.dup2, original, fd, inheritable)
    return stream


def _divert_blocking(fd: int, target: int, undo: ExitStack) -> int:
    """Make `fd` a duplicate of `target` until `undo` runs. Return another one of its file."""
    inheritable = os.get_inheritable(fd)
    original = os.dup(fd)
    undo.callback(os.close, original)
    private = os.dup(fd)
    os.dup2(target, fd)
    undo.callback(os.dup2, original, fd, inheritable)
    return private


def _reopen(fd: int, mode: int) -> int:
    """Return a new descriptor for the file behind `fd`, if possible with its own flags."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # a regular file would start at its first byte
        # Fails on a socket, without /dev/fd, on another user's terminal, on a pipe without reader.
        with suppress(OSError):
            return os.open(f"/dev/fd/{fd}", mode | os.O_NONBLOCK | os.O_NOCTTY)
    return os.dup(fd)


def pipe_of(stream: Any) -> int | None:
    """Return the descriptor to which `stream` writes if the system reports its reader's end.

    A client may connect stdout with a pipe or, as Node does, with a socket of its own. None for a
    socket that is stdin too, for any other file or stream, and on Windows.
    """
    source: Any = getattr(stream, "receive_stream", None)
    sink: Any = getattr(stream, "send_stream", None)
    if not (hasattr(source, "fileno") and hasattr(sink, "fileno")):
        return None
    reading, writing = os.fstat(source.fileno()), os.fstat(sink.fileno())
    is_own_socket = stat.S_ISSOCK(writing.st_mode) and not os.path.samestat(reading, writing)
    fd: int = sink.fileno()
    return fd if stat.S_ISFIFO(writing.st_mode) or is_own_socket else None


def has_no_reader(fd: int) -> bool:
    """Return True if the other end of the pipe or socket `fd` is closed."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _text_files_on(fd: int) -> list[io.TextIOWrapper]:
    texts = []
    for text in {sys.stdout, sys.__stdout__}:
        with suppress(OSError, ValueError):  # without a descriptor, closed or detached
            if isinstance(text, io.TextIOWrapper) and text.fileno() == fd:
                texts.append(text)
    return texts


def _flush(fd: int) -> None:
    """Flush what Python and the C library have buffered for `fd`."""
    for text in _text_files_on(fd):
        with suppress(OSError):
            text.flush()
    # No ctypes, or no C library to look up in.
    with suppress(ImportError, OSError, AttributeError, TypeError):
        import ctypes

        # The buffers belong to the library that C extensions are linked with.
        library = "ucrtbase" if hasattr(ctypes, "WinDLL") else None
        ctypes.CDLL(library).fflush(None)


class StopSignal:
    """The signal that stopped a server, in `caught`; None if it ended without a signal."""

    caught: signal.Signals | None = None

    @property
    def exit_code(self) -> int:
        """The exit status: 0, or 128 + the signal, as in shells (SIGINT 130, SIGTERM 143)."""
        return 128 + self.caught if self.caught else 0


@contextmanager
def stop_on_signals(
    act: Callable[[], object],
    *,
    patience: float = 0.0,
    last_deadline: LastDeadline | None = None,
    grace: float = 0.0,
) -> Iterator[StopSignal]:
    """Call `act` inside trio at the first SIGINT or SIGTERM, for an orderly stop. The second kills.

    `last_deadline` begins with that signal: the time is `grace`, and `LAST_GRACE` after it.

    With `patience`, signals within so many seconds after the first one are ignored, and those
    after that kill. Use it for a stop that must be complete and takes a short time.

    On Windows, SIGBREAK (Ctrl+Break) does the same, and other programs cannot send SIGTERM.

    The first signal restores the kernel's default for all. So the second works even while the
    event loop is stuck in blocking code, or where code would catch `KeyboardInterrupt`. A signal
    that was ignored stays ignored. At the end of the block the former dispositions are restored.
    Outside the main thread, where Python delivers no signals, this does nothing. Enter it inside
    `trio.run`, around everything that needs cleanup.
    """
    stop = StopSignal()
    former: dict[signal.Signals, Any] = {}
    token = trio.lowlevel.current_trio_token()
    patient_until = 0.0

    def on_signal(number: int, _: object) -> None:
        nonlocal patient_until
        if stop.caught is None:
            stop.caught = signal.Signals(number)
            patient_until = time.monotonic() + patience
            if not patience:
                for each in former:
                    signal.signal(each, signal.SIG_DFL)
            token.run_sync_soon(act)
            if last_deadline is not None:
                seconds = grace + LAST_GRACE
                last_deadline.begin(seconds, stop.caught.name, stop.exit_code)
        elif time.monotonic() >= patient_until:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    try:
        if threading.current_thread() is threading.main_thread():
            for each in _STOP_SIGNALS:
                disposition = signal.getsignal(each)
                if disposition not in (signal.SIG_IGN, None):  # None: set by C code, not restorable
                    former[each] = disposition
                    signal.signal(each, on_signal)
        yield stop
    finally:
        for each, disposition in former.items():
            signal.signal(each, disposition)
