"""The pipes of stdio from both ends: this process's own stdin and stdout, and those of a child. POSIX only.

Rules: while a server serves, its fd 1 is another name for fd 2, and fd 0 for the null device, so that nobody else gets at the
pipes. O_NONBLOCK belongs to an open file, which others may share: it is set on one opened afresh, or put back. A child is its
process group for as long as it lives; what it leaves behind when it ends by itself is not ours.

What asyncio cannot wait for, such as regular files, is refused.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from signal import SIGKILL, SIGTERM
from typing import Final

from mcp_core import ConnectFailed

from ._link import READ_SIZE, Streams

_GRACE: Final = 2.0


@asynccontextmanager
async def _pipes(source: int, sink: int) -> AsyncIterator[Streams]:
    """Streams over two descriptors, which are closed at the end."""
    loop, reader, unread = asyncio.get_running_loop(), asyncio.StreamReader(), asyncio.StreamReader()
    file = os.fdopen(source, "rb", 0)
    incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    try:
        with closing(incoming):
            file = os.fdopen(sink, "wb", 0)
            outgoing, flow = await loop.connect_write_pipe(lambda: asyncio.StreamReaderProtocol(unread), file)
            with closing(outgoing):
                yield reader, asyncio.StreamWriter(outgoing, flow, unread, loop)
    finally:
        await asyncio.sleep(0)  # the transports let go of the descriptors in the next round of the loop


@asynccontextmanager
async def standard_streams() -> AsyncIterator[Streams]:
    """This process's stdin and stdout. What is printed meanwhile, or was and is not flushed, goes to stderr."""
    for fd, file in enumerate((sys.__stdin__, sys.__stdout__)):
        mode = os.fstat(fd).st_mode if file is not None else 0
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)):
            raise ConnectFailed(f"fd {fd} is no pipe, socket or terminal: asyncio cannot wait for it")
    if stat.S_ISSOCK(os.fstat(0).st_mode) and os.fstat(0).st_ino == os.fstat(1).st_ino:
        raise ConnectFailed("stdin and stdout are one socket: that is for serve_streams")
    with ExitStack() as undo:
        null = os.open(os.devnull, os.O_RDWR)
        undo.callback(os.close, null)
        source = _divert(0, os.O_RDONLY, null, undo)
        sink = _divert(1, os.O_WRONLY, null if sys.__stderr__ is None else 2, undo)
        undo.callback(_flush)
        undo.callback(os.dup2, null, 1)  # what stderr refuses is lost, or it would be flushed to the client
        undo.callback(_flush)
        async with _pipes(source, sink) as streams:
            yield streams


def _divert(fd: int, mode: int, target: int, undo: ExitStack) -> int:
    """Make `fd` another name for `target` until `undo`; gives a new descriptor of what it was."""
    kept = os.dup(fd)
    undo.callback(os.close, kept)
    undo.callback(os.set_blocking, kept, os.get_blocking(fd))
    try:
        own = os.open(f"/dev/fd/{fd}", mode | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:  # a socket, or a pipe whose other end is gone
        own = os.dup(fd)
    os.dup2(target, fd)
    undo.callback(os.dup2, kept, fd)
    return own


def _flush() -> None:
    with suppress(AttributeError, OSError, ValueError):  # there is none, nobody reads it, it was closed
        sys.stdout.flush()


@asynccontextmanager
async def child_streams(argv: Sequence[str | os.PathLike[str]]) -> AsyncIterator[Streams]:
    """The stdout and stdin of a new process, which is ended at the end."""
    (its_stdin, sink), (source, its_stdout) = os.pipe(), os.pipe()
    async with _pipes(source, sink) as (reader, writer):
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=its_stdin, stdout=its_stdout, start_new_session=True
            )
        except OSError as exc:
            raise ConnectFailed(f"cannot start {argv[0]!s}: {exc.strerror}") from exc
        finally:
            os.close(its_stdin)
            os.close(its_stdout)
        try:
            yield reader, writer
        finally:
            writer.close()
            reading = asyncio.create_task(_read_out(reader))
            try:
                for number in (0, SIGTERM, SIGKILL):  # 0 is none: the end of its stdin has to be enough
                    _signal(process, number)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_GRACE):
                            await process.wait()
            finally:
                _signal(process, SIGKILL)
                reading.cancel()


async def _read_out(reader: asyncio.StreamReader) -> None:
    """Read what nobody wants to hear any more, or a child might block on it instead of ending."""
    with suppress(OSError):
        while await reader.read(READ_SIZE):
            pass


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    if process.returncode is None:
        with suppress(OSError):
            os.killpg(process.pid, number)
