"""A server as a child process: how it is started, heard and ended, together with all that it has started.

Rules:

1. **A child is its process group**, signalled also when its leader is dead. One task reaps the leader and signals the
   group in the same step, for later the number may belong to a stranger.
2. **A child ends in one shielded task**, with a limit on every wait. Others only ask for the end and wait for it.
3. **stderr is read always**, whatever becomes of it: a child must not block on a complaint.

It refuses to know what the bytes mean and what a client does when its server is gone. POSIX only: others have HTTP.
"""

from __future__ import annotations

import logging
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import trio
from trio.abc import ReceiveStream

from mcp_core import ConnectFailed

if TYPE_CHECKING:
    from trio.lowlevel import FdStream  # not there on Windows

from ._stdio import Streams, is_open, require_posix

__all__ = ["Child", "Grace", "Stderr", "spawn"]

Stderr = Literal["forward", "discard"] | Callable[[str], object]

_TAIL = 64 * 1024  # bytes of stderr that are kept, and of a line that is cut when it gets longer
_STALL = 1.0  # seconds that a stuck stderr of ours may hold up the child's, once
_REAPING = 1.0  # seconds for the kernel to carry out SIGKILL; beyond it the process hangs in a device
_LAST_WORDS = 0.2  # seconds for the rest of stderr when someone outside the group still holds it
_TICK = 0.02  # seconds between two looks at something that no event tells of

_log = logging.getLogger("mcp_trio")


class Grace(NamedTuple):
    """Seconds a child gets: `stdin` after its stdin was closed, `terminate` more after SIGTERM; then SIGKILL."""

    stdin: float = 2.0
    terminate: float = 2.0


@asynccontextmanager
async def spawn(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stderr: Stderr = "forward",
    grace: Grace | None = None,
) -> AsyncIterator[Child]:
    """Start a program, without a shell, and speak with it over its stdin and stdout; leaving the block ends its tree.

    The child leads a session of its own. So Ctrl+C at the terminal reaches only us, and we end the child in order; and
    a child that would ask at the terminal fails at once, where in a mere process group it would be stopped for ever.

    Args:
        env: variables added to the inherited environment.
        cwd: its working directory; a relative program counts from there.
        stderr: `"forward"` passes its bytes on to our stderr, `"discard"` drops them, a callable gets each line as
            text (UTF-8, errors replaced). A callable that raises is logged and called no more.

    *Resource handling*: the end (`Child.aclose`) is shielded and takes at most the two graces and 1.2 s.
    *Error handling*: an exception from the block passes through as it is, in no group.

    Raises:
        ConnectFailed: the program could not be started; the text says why and what to do.
        TypeError: `argv` is one string, or empty.

    Source: basic/lifecycle, Shutdown (2026-07-28: basic/transports/stdio).
    """
    require_posix()
    if isinstance(argv, str | bytes) or not argv:
        raise TypeError(f"argv must be a sequence of words such as ['python', 'server.py'], not {argv!r}")
    pipe, environ = subprocess.PIPE, {**os.environ, **(env or {})}
    try:
        process = await trio.lowlevel.open_process(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=environ, start_new_session=True
        )
    except OSError as error:
        raise ConnectFailed(f"cannot start {argv[0]!s}: {_cause(error, argv[0], cwd, environ)}") from error
    child = Child(process, stderr, grace or Grace())
    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(child._run)
        try:
            yield child
        except BaseException as exc:  # noqa: BLE001  raised again outside: here the nursery would wrap it into a group
            failure = exc
        try:
            with trio.CancelScope(shield=True):
                await child.aclose()
        except KeyboardInterrupt as exc:  # passes every shield; the nursery still waits for the child
            failure = exc
    if failure is not None:
        raise failure


def _cause(error: OSError, program: str | os.PathLike[str], cwd: Any, environ: Mapping[str, str]) -> str:
    name = os.fspath(program)
    if cwd is not None and error.filename == cwd:
        return f"its working directory {cwd!s} cannot be entered ({error.strerror})"
    if isinstance(error, PermissionError):
        return "it may not be executed; allow it (chmod +x), or start it through its interpreter"
    if not isinstance(error, FileNotFoundError):
        return f"{error.strerror} (a script needs a first line such as #!/usr/bin/env python3)"
    if "/" in name and not Path(cwd or ".", name).exists():
        return "there is no such file; check the path (a relative one counts from the working directory)"
    if "/" not in name and shutil.which(name, path=environ.get("PATH")) is None:
        return "no program of that name on PATH; install it, or give its full path"
    return "the file is there, but the interpreter named in its first line is not"


class Child:
    """A running program at the other end of pipes. Made by `spawn`.

    `stream` writes to its stdin and reads its stdout. Reading ends with `b""` when the program has exited and its last
    bytes were read, even if a daemon it left behind still holds the pipe, and also after `aclose`. `pid` is that of
    the program, `returncode` as in `subprocess` (None until it has exited).
    """

    def __init__(self, process: trio.Process, stderr: Stderr, grace: Grace) -> None:
        self.pid = process.pid
        self.returncode: int | None = None
        self._process, self._grace = process, grace
        assert isinstance(process.stdin, trio.lowlevel.FdStream)
        assert isinstance(process.stdout, trio.lowlevel.FdStream)
        assert isinstance(process.stderr, trio.lowlevel.FdStream)
        self._stdin, self._stdout, self._stderr = process.stdin, _Output(process.stdout), process.stderr
        # To go on reading when the owner of the stream has closed it.
        self._spare = trio.lowlevel.FdStream(os.dup(process.stdout.fileno()))
        self.stream: Streams = trio.StapledStream(self._stdin, self._stdout)
        self._hears = _Forward() if stderr == "forward" else _Lines(None if stderr == "discard" else stderr)
        self._tail = bytearray()
        self._told = False
        self._ending, self._closing = trio.Event(), trio.Event()  # it died or was asked to; it was asked to
        self._exited, self._quiet, self._closed = trio.Event(), trio.Event(), trio.Event()

    def __repr__(self) -> str:
        state = "running" if self.returncode is None else f"exited {self.returncode}"
        return f"<Child {self.pid} {state}, {len(self._tail)} bytes of stderr kept>"

    @property
    def stderr_tail(self) -> bytes:
        """The last 64 KiB of its stderr; complete after `aclose`."""
        return bytes(self._tail)

    async def aclose(self) -> None:
        """End it: close stdin, wait, SIGTERM to the group, wait, SIGKILL to the group. From any task, any often.

        Meanwhile its stdout is read and dropped, so that it cannot block on a full pipe. Cancelling this stops only
        the waiting. When the program has exited by itself, its group was signalled already and little is left to do.
        """
        self._closing.set()
        self._ending.set()
        await self._closed.wait()

    @trio.lowlevel.enable_ki_protection  # or Ctrl+C could strike just here and leave the tree alive
    async def _run(self) -> None:
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read_stderr)
                nursery.start_soon(self._reap)
                await self._ending.wait()
                if self._exited.is_set():
                    nursery.start_soon(self._end_output)
                else:
                    nursery.start_soon(self._drop_output)
                    self._stdin.close()
                    with trio.move_on_after(self._grace.stdin):
                        await self._exited.wait()
                    self._terminate()
                with trio.move_on_after(self._grace.terminate) as patience:
                    await self._group_gone()
                if patience.cancelled_caught:
                    self._signal(signal.SIGKILL)
                    with trio.move_on_after(_REAPING):
                        await self._group_gone()
                await self._closing.wait()
                with trio.move_on_after(_LAST_WORDS):
                    await self._quiet.wait()
                nursery.cancel_scope.cancel()
        self._stdin.close()
        self._stdout.end()
        self._stderr.close()
        self._spare.close()
        self._hears.close()
        self._closed.set()

    async def _reap(self) -> None:
        self.returncode = await self._process.wait()
        self._terminate()  # no scheduling point since the number became free (rule 1)
        self._exited.set()
        self._ending.set()

    def _terminate(self) -> None:
        if not self._told:  # once: programs like our own server take a second SIGTERM for impatience
            self._told = True
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> bool:
        """Signal the group; False if it has no member left, or none that we may signal."""
        try:
            os.killpg(self.pid, number)
        except OSError:
            return False
        return True

    async def _group_gone(self) -> None:
        await self._exited.wait()
        while self._signal(0):
            dead = _only_zombies(self.pid)
            with suppress(
                ChildProcessError
            ):  # as process 1 of a container we inherit orphans, and have to reap them
                while os.waitpid(-self.pid, os.WNOHANG)[0]:  # noqa: ASYNC222  does not wait
                    pass
            if dead:
                return
            await trio.sleep(_TICK)

    async def _drop_output(self) -> None:
        self._stdout.end()
        os.set_blocking(self._spare.fileno(), False)  # closing the other descriptor has put the flag back
        while await self._spare.receive_some():
            pass

    async def _end_output(self) -> None:
        pipe = select.poll()
        pipe.register(self._spare.fileno(), select.POLLIN)
        while events := pipe.poll(0):
            if events[0][1] & select.POLLHUP:
                return  # nobody holds the other end: it ends by itself
            await trio.sleep(_TICK)
        self._stdout.end()

    async def _read_stderr(self) -> None:
        while chunk := bytes(await self._stderr.receive_some()):
            self._tail += chunk
            del self._tail[:-_TAIL]
            await self._hears.take(chunk)
        self._quiet.set()


def _only_zombies(group: int) -> bool:
    """Whether all that is left of a group waits for an idle process 1 to reap it (known on Linux only)."""
    found = False
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # gone meanwhile
            state, _, its_group = entry.read_bytes().rpartition(b")")[2].split()[:3]
            if int(its_group) == group:
                if state != b"Z":
                    return False
                found = True
    return found


class _Output(ReceiveStream):
    """A child's stdout that we can end under a waiting reader, who then sees an ordinary end of file."""

    def __init__(self, pipe: FdStream) -> None:
        self._pipe, self._ended = pipe, False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        try:
            return await self._pipe.receive_some(max_bytes)
        except trio.ClosedResourceError:
            if self._ended:
                return b""
            raise

    def end(self) -> None:
        self._ended = True
        self._pipe.close()

    async def aclose(self) -> None:
        await self._pipe.aclose()


class _Forward:
    """Passes a child's stderr on to ours without blocking the loop on it, and without touching its flags.

    What polls as writable takes `PIPE_BUF` bytes without blocking. What ours does not take within a second is dropped,
    and from then on whatever it does not take at once, until it takes some again.
    """

    def __init__(self) -> None:
        try:
            fd = sys.stderr.fileno()
        except (AttributeError, OSError, ValueError):  # None, replaced or closed
            fd = 2
        self._fd = os.dup(fd) if is_open(fd) else os.open(os.devnull, os.O_WRONLY)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLOUT)
        self._patience = _STALL

    async def take(self, chunk: bytes) -> None:
        deadline = trio.current_time() + self._patience
        while chunk:
            if self._poll.poll(0):
                try:
                    chunk = chunk[os.write(self._fd, chunk[: select.PIPE_BUF]) :]
                except OSError:
                    return  # nobody reads it any more
                self._patience = _STALL
            elif trio.current_time() < deadline:
                await trio.sleep(_TICK)
            else:
                self._patience = 0.0
                return

    def close(self) -> None:
        os.close(self._fd)


class _Lines:
    """Cuts a child's stderr into lines for a callback; without one it is dropped."""

    def __init__(self, tell: Callable[[str], object] | None) -> None:
        self._tell, self._rest = tell, b""

    async def take(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) >= _TAIL:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._say(line.removesuffix(b"\r"))

    def _say(self, line: bytes) -> None:
        if self._tell is not None:
            try:
                self._tell(line.decode(errors="replace"))
            except Exception:  # noqa: BLE001  the callback is a stranger's; the child must be read on
                _log.exception("the stderr callback %r failed and is called no more", self._tell)
                self._tell = None

    def close(self) -> None:
        if self._rest:
            self._say(self._rest)
