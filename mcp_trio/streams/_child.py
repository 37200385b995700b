"""Start, read and stop a server as a child process, with all processes that it started.

1. **A child is its process group**, which is also signalled after its leader has exited. One task
   reaps the leader and signals the group in the same step: later the number may be another
   process's. On Linux, processes that left the group are signalled, too (`ProcessTree`). Windows
   has no groups and no SIGTERM: there only the child itself is ended, without notice.
2. **A child is stopped by one shielded task**, with a timeout on every wait. Other tasks only
   request the stop and wait for it.
3. **stderr is always read**, even if its bytes are discarded: a child must not block on writing it.
"""

from __future__ import annotations

import logging
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, cast

import trio
from trio.abc import ReceiveStream

from mcp_core import ConnectFailed
from mcp_core.processes import ProcessTree, UnsafeArgument, child_environment, windows_command

if TYPE_CHECKING:
    from trio.lowlevel import FdStream  # not there on Windows

    from ._child_pipes import ReceivePipe, SendPipe

from . import _threads
from ._child_pipes import ThreadStderrForwarder, UnpolledStdoutStream
from ._stdio import Streams, is_open

__all__ = ["ChildProcess", "Grace", "Stderr", "spawn", "with_cure"]

Stderr = Literal["forward", "discard"] | Callable[[str], object]

_STDERR_TAIL = 64 * 1024  # bytes of stderr that are kept, and at which a longer line is split
_KILL_TIMEOUT = 1.0  # seconds for the kernel to carry out SIGKILL; longer means stuck in a device
# Seconds to read the rest of stderr while a process outside the group still holds it open.
_STDERR_TIMEOUT = 0.2
# Seconds that the reader of stdout waits at its end, for the exit and the rest of stderr, which
# explain it. Only for a program that closes stdout and goes on, or on a busy machine, does it take
# so long.
_END_TIMEOUT = 0.5
_POLL_INTERVAL = 0.02  # seconds between two checks of a state that has no event
_SCAN_INTERVAL = 0.05  # the same between two searches of all processes, which take milliseconds

_HAS_GROUPS = hasattr(os, "killpg")
# The rules of Windows for environments and names of programs. A test sets it.
_WINDOWS = os.name == "nt"
# No window for a server of a program without a console, and no Ctrl+C at ours for the server.
_CREATION_FLAGS: Final[int] = getattr(subprocess, "CREATE_NO_WINDOW", 0)
_SIGKILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)  # for a group, so on POSIX only

_log = logging.getLogger("mcp_trio")


class ChildRecorderLike(Protocol):
    """Records what becomes of a child. Its methods must not wait or raise."""

    def stderr(self, data: bytes) -> None:
        """Record a piece of its stderr."""

    def exited(self, status: int) -> None:
        """Record its exit, as of `subprocess`: a signal is negative."""


class Grace(NamedTuple):
    """Seconds that a child gets to exit before SIGKILL.

    `stdin` counts from the closing of its stdin, `terminate` from the SIGTERM that follows; each
    is 2 by default. A child that exits sooner isn't waited for any longer.
    """

    stdin: float = 2.0
    terminate: float = 2.0


@asynccontextmanager
async def spawn(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    inherit_env: bool = False,
    cwd: str | os.PathLike[str] | None = None,
    stderr: Stderr = "forward",
    grace: Grace | None = None,
    pass_fds: Sequence[int] = (),
    recorder: ChildRecorderLike | None = None,
) -> AsyncIterator[ChildProcess]:
    """Start a program without a shell, with pipes as its stdin and stdout. Stop it after the block.

    The child leads a session of its own. Ctrl+C at the terminal then reaches only this process,
    which stops the child in order. A child that tries to prompt at the terminal fails at once; in a
    mere process group it would be stopped (SIGTTIN) and never continue.

    Args:
        argv: the program and its arguments.
        env: variables that it gets beside the few that are inherited: `HOME`, `LOGNAME`, `PATH`,
            `SHELL`, `TERM`, `USER`, `LANG`, `LC_ALL`, `LC_CTYPE`, `TMPDIR` and `TZ`; on Windows
            also those that name the directories of the system and the user.
        inherit_env: whether it inherits the whole environment instead, with any secrets in it.
        cwd: its working directory; a relative program path starts there.
        stderr: `"forward"` copies its bytes to our stderr, `"discard"` drops them, and a callable
            gets each line as text (UTF-8, errors replaced). A callable that raises is logged and
            not called again. If our stderr is a terminal, control characters of forwarded text are
            escaped: they could move the cursor or imitate output of this program. A file or pipe,
            and a callable, get them unchanged.
        grace: seconds that the child gets to exit.
        pass_fds: descriptors that it inherits, under the same numbers.
        recorder: gets its stderr and its exit status too; None for no recording.

    *Resource handling*: stopping (`ChildProcess.aclose`) is shielded and takes at most the two
    times of `grace` and 1.2 s. It includes the processes of the child's group, and on Linux all
    others that the child has started.
    *Error handling*: an exception of the block propagates unchanged, not in a group.

    Raises:
        ConnectFailed: the program could not be started; the message names the cause and the cure.
        TypeError: `argv` is one string, or empty.

    Source: basic/lifecycle, Shutdown (2026-07-28: basic/transports/stdio).
    """
    if isinstance(argv, str | bytes) or not argv:
        from mcp_core.processes import target_text

        raise TypeError(
            "argv must be a sequence of words such as ['python', 'server.py'], not "
            + target_text(argv)
        )
    pipe = subprocess.PIPE
    mark = secrets.token_hex(8)
    environ = child_environment(
        os.environ, env, inherit_env=inherit_env, mark=mark, windows=_WINDOWS
    )
    command: str | Sequence[str | os.PathLike[str]] = argv
    try:
        if _WINDOWS:
            words = [os.fspath(word) for word in argv]
            command = windows_command(words, environ, is_file=os.path.isfile)
        # Typed for the system of the type checker only.
        open_process: Any = trio.lowlevel.open_process
        process: trio.Process = await open_process(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=cwd,
            env=environ,
            start_new_session=True,
            pass_fds=pass_fds,
            creationflags=_CREATION_FLAGS,
        )
    except OSError as error:
        raise _cannot_start(argv[0], error, cwd, environ) from error
    except UnsafeArgument as error:
        from mcp_core.processes import program_text

        shown = program_text(os.fspath(argv[0]))
        raise ConnectFailed(f"cannot start {shown}: {error}") from error
    child = ChildProcess(process, mark, stderr, grace or Grace(), environ, recorder)
    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(child._run)
        try:
            yield child
        except BaseException as exc:  # noqa: BLE001  raised after the nursery, which would wrap it
            failure = exc
        try:
            with trio.CancelScope(shield=True):
                await child.aclose()
        except KeyboardInterrupt as exc:  # ignores shields; the nursery still waits for the child
            failure = exc
    if failure is not None:
        raise failure


def _cannot_start(
    program: str | os.PathLike[str], error: OSError, cwd: Any, environ: Mapping[str, str]
) -> ConnectFailed:
    """Return the error for a program that could not be started."""
    from mcp_core.processes import start_problem

    def is_there(name: str) -> bool:
        if os.path.dirname(name):  # noqa: PTH120  not for `name` alone
            return Path(cwd or ".", name).exists()
        return shutil.which(name, path=environ.get("PATH")) is not None

    name = os.fspath(program)
    text = start_problem(name, error, cwd=cwd, is_there=is_there, windows=_WINDOWS)
    return ConnectFailed(text)


def with_cure(text: str, cure: str) -> str:
    """Return an error's text with a cure, which stands before the lines of a program's stderr."""
    cause, end, stderr = text.partition("\n")
    return f"{cause.removesuffix('.')}. {cure}{end}{stderr}"


class ChildProcess:
    """A running program, connected by pipes. Made by `spawn`, which put `mark` in its `environ`.

    `stream` writes to its stdin and reads its stdout. Reading returns `b""` when the program has
    exited and its last bytes were read, even if a daemon that it left behind still holds the pipe,
    and also after `aclose`. `pid` is the program's; `returncode` is as in `subprocess`: None until
    it has exited.
    """

    def __init__(
        self,
        process: trio.Process,
        mark: str,
        stderr: Stderr,
        grace: Grace,
        environ: Mapping[str, str],
        recorder: ChildRecorderLike | None = None,
    ) -> None:
        self.pid = process.pid
        self.returncode: int | None = None
        self._environ = environ
        self._process = process
        self._grace = grace
        self._recorder = recorder
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._stdin = cast("SendPipe", process.stdin)
        self._stderr = cast("ReceivePipe", process.stderr)
        self._stdout: _StdoutStream | UnpolledStdoutStream
        if _threads.HAS_POLLABLE_PIPES:
            assert isinstance(process.stdout, trio.lowlevel.FdStream)
            self._stdout = _StdoutStream(process.stdout, self._wait_for_end)
        else:
            self._stdout = UnpolledStdoutStream(
                cast("ReceivePipe", process.stdout), self._wait_for_end
            )
        self.stream: Streams = trio.StapledStream(self._stdin, self._stdout)
        self._stderr_sink: _StderrForwarder | ThreadStderrForwarder | _StderrLines
        if stderr == "forward" and _threads.HAS_POLLABLE_PIPES:
            self._stderr_sink = _StderrForwarder(_duplicate_stderr())
        elif stderr == "forward":
            self._stderr_sink = ThreadStderrForwarder(_duplicate_stderr())
        else:
            self._stderr_sink = _StderrLines(None if stderr == "discard" else stderr)
        self._stderr_tail = bytearray()
        self._stderr_unwritten: deque[bytes] = deque()  # read, and not passed to the sink yet
        self._stderr_wait = trio.CancelScope()  # around the read that the reader waits in
        self._tree = ProcessTree(process.pid, mark, _list_processes, _read_process_file)
        self._tree_signals: dict[int, int] = {}  # the last signal that each process of it got
        self._sigterm_sent = False
        self._unread = 0
        self._close_requested = trio.Event()
        self._stopping = trio.Event()  # the child has exited, or `_close_requested` is set
        self._exited = trio.Event()
        self._stderr_ended = trio.Event()
        self._closed = trio.Event()

    def __repr__(self) -> str:
        state = "running" if self.returncode is None else f"exited {self.returncode}"
        return f"<ChildProcess {self.pid} {state}, {len(self._stderr_tail)} bytes of stderr kept>"

    def describe(self) -> str:
        """Return its exit status and the last lines of its stderr, to append to an error, or ""."""
        from mcp_core.processes import exit_text

        self._take_stderr()
        return exit_text(self.returncode, self.stderr_tail)

    def describe_start(self) -> str:
        """Return what `describe` does, and then the usual variables that it didn't get."""
        from mcp_core.processes import withheld_text

        return self.describe() + withheld_text(os.environ, self._environ)

    @property
    def unread(self) -> int:
        """The bytes sent to its stdin that it hasn't read; 0 if the system doesn't say."""
        with suppress(ValueError, OSError, ImportError):  # ValueError: stdin is closed
            import fcntl  # neither of the two is there on Windows
            import termios

            pipe = cast("trio.lowlevel.FdStream", self._stdin).fileno()  # where fcntl is
            size = fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0")
            self._unread = int.from_bytes(size, sys.byteorder)
        return self._unread

    @property
    def stderr_tail(self) -> bytes:
        """The last 64 KiB of its stderr; complete after `aclose`."""
        return bytes(self._stderr_tail)

    def send_signal(self, number: int) -> None:
        """Send it a signal, and all processes of its group, unless it has exited.

        On Windows this ends it at once.
        """
        if self.returncode is None:
            self._sigterm_sent |= number == signal.SIGTERM
            self._signal(number)

    async def aclose(self) -> None:
        """Stop it: close stdin, wait, SIGTERM to the group, wait, SIGKILL to the group.

        On Linux, other processes that it has started get the signals, too. On Windows the program
        alone is ended, by `TerminateProcess` in place of SIGTERM. Any task may call this, any
        number of times. Meanwhile the child's stdout is read and discarded, so that the child
        cannot block on a full pipe. Cancelling this call only ends the waiting. If the program has
        exited on its own, its group was already sent SIGTERM.
        """
        self._close_requested.set()
        self._stopping.set()
        await self._closed.wait()

    @trio.lowlevel.enable_ki_protection  # or Ctrl+C could interrupt here and leave the group alive
    async def _run(self) -> None:
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read_stderr)
                nursery.start_soon(self._reap)
                await self._stopping.wait()
                if self._exited.is_set():
                    nursery.start_soon(self._stdout.end_when_empty)
                else:
                    nursery.start_soon(self._stdout.discard)
                    # Those that no mark connects to the tree are found only while their parent
                    # runs, and remembered.
                    self._tree.find(leader_exists=self.returncode is None)
                    self._stdin.close()
                    with trio.move_on_after(self._grace.stdin):
                        await self._exited.wait()
                    if not self._exited.is_set():
                        self._terminate()
                        self._signal_tree(signal.SIGTERM)
                with trio.move_on_after(self._grace.terminate) as terminate_timeout:
                    await self._all_gone(signal.SIGTERM)
                if terminate_timeout.cancelled_caught:
                    self._signal(_SIGKILL)
                    with trio.move_on_after(_KILL_TIMEOUT):
                        await self._all_gone(_SIGKILL)
                await self._close_requested.wait()
                with trio.move_on_after(_STDERR_TIMEOUT):
                    await self._stderr_ended.wait()
                nursery.cancel_scope.cancel()
        self._stdin.close()
        self._stdout.close_pipe()
        self._stderr.close()
        self._stderr_sink.close()
        self._closed.set()

    async def _reap(self) -> None:
        self.returncode = await self._process.wait()
        if self._recorder is not None:
            self._take_stderr()  # it precedes the exit
            self._recorder.exited(self.returncode)
        _ = self.unread  # is kept, because the owner of `stream` may close stdin next
        self._terminate()  # no scheduling point since the process id became free (rule 1)
        self._exited.set()
        self._stopping.set()

    def _terminate(self) -> None:
        """Send SIGTERM to the group, once. Our own server exits at once at a second SIGTERM."""
        if not self._sigterm_sent:
            self._sigterm_sent = True
            self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> bool:
        """Signal the group. Return False if it has no member left that may be signalled.

        Where there are no groups, end the child at once, and return False.
        """
        if not _HAS_GROUPS:
            if number:
                with suppress(OSError):  # it has exited meanwhile
                    self._process.terminate()
            return False
        try:
            os.killpg(self.pid, number)
        except OSError:
            return False
        return True

    def _signal_tree(self, number: int) -> bool:
        """Signal each process of the tree outside the group, once. Return False if all have ended.

        One that ends meanwhile counts, because it may have started another one.
        """
        found = False
        for pid in self._tree.find(leader_exists=self.returncode is None, in_group=False):
            try:
                if self._tree_signals.get(pid) != number:
                    os.kill(pid, number)
                    self._tree_signals[pid] = number
            except ProcessLookupError:
                pass
            except PermissionError:
                continue  # it has become another user's
            found = True
        return found

    async def _all_gone(self, number: int) -> None:
        """Wait until no process of the group and of the tree runs. Signal those outside the group.

        The group was signalled before.
        """
        if number == signal.SIGTERM:
            await self._exited.wait()
        found = self._signal_tree(number)
        if await self._group_gone() or found:
            # They may have started others, which are found until none is left.
            while self._signal_tree(number):  # noqa: ASYNC110  the system has no event for it
                await trio.sleep(_SCAN_INTERVAL)
        for pid in self._tree_signals:  # as process 1 we have to reap them, too
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222  doesn't wait

    async def _group_gone(self) -> bool:
        """Wait until no process of the group runs. Return False if none did."""
        await self._exited.wait()
        found = False
        while self._signal(0):
            dead = _only_zombies(self.pid)
            # As process 1 of a container we inherit orphans and have to reap them.
            with suppress(ChildProcessError):
                while os.waitpid(-self.pid, os.WNOHANG)[0]:  # noqa: ASYNC222  doesn't wait
                    pass
            if dead:
                break
            found = True
            await trio.sleep(_POLL_INTERVAL)
        return found

    async def _wait_for_end(self) -> None:
        """Wait for the exit and the rest of stderr, which explain why stdout has ended."""
        with trio.move_on_after(_END_TIMEOUT):
            await self._exited.wait()
            await self._stderr_ended.wait()

    async def _read_stderr(self) -> None:
        ended = False
        while not ended:
            with trio.CancelScope() as self._stderr_wait:
                chunk = bytes(await self._stderr.receive_some())
                self._keep_stderr(chunk)
                ended = not chunk
            while self._stderr_unwritten:
                await self._stderr_sink.write(self._stderr_unwritten.popleft())
        self._stderr_ended.set()

    def _take_stderr(self) -> None:
        """Read what is in the pipe of stderr now, because its reader may not have run yet."""
        if self._stderr_ended.is_set() or self._closed.is_set():
            return
        if not _threads.HAS_POLLABLE_PIPES:
            return  # only the reader can read it
        with suppress(BlockingIOError):
            # A pipe has 64 KiB at most, unless the child is writing to it at this moment.
            if chunk := os.read(cast("FdStream", self._stderr).fileno(), _STDERR_TAIL):
                self._keep_stderr(chunk)
                self._stderr_wait.cancel()  # the reader writes it to the sink

    def _keep_stderr(self, chunk: bytes) -> None:
        self._stderr_tail += chunk
        del self._stderr_tail[:-_STDERR_TAIL]
        self._stderr_unwritten.append(chunk)
        if self._recorder is not None and chunk:
            self._recorder.stderr(chunk)


def _list_processes() -> list[str]:
    try:
        return os.listdir("/proc")  # noqa: PTH208  only names are needed
    except OSError:
        return []  # a system without this directory


def _read_process_file(path: str) -> bytes:
    # A search reads one file of each process. This takes half the time of `Path.read_bytes`.
    fd = os.open(f"/proc/{path}", os.O_RDONLY)
    try:
        return b"".join(iter(lambda: os.read(fd, 65_536), b""))
    finally:
        os.close(fd)


def _only_zombies(group: int) -> bool:
    """Return True if every process left in the group is a zombie that process 1 hasn't reaped.

    Known on Linux only; False elsewhere.
    """
    found = False
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended meanwhile
            state, _, its_group = entry.read_bytes().rpartition(b")")[2].split()[:3]
            if int(its_group) == group:
                if state != b"Z":
                    return False
                found = True
    return found


class _StdoutStream(ReceiveStream):
    """A child's stdout that can be ended while a task reads it; that task gets an end of file."""

    def __init__(self, pipe: FdStream, wait_for_end: Callable[[], Awaitable[None]]) -> None:
        self._pipe = pipe
        self._wait_for_end = wait_for_end
        self._ended = False
        # It must still be read after this stream's owner has closed it.
        self._duplicate = trio.lowlevel.FdStream(os.dup(pipe.fileno()))

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        try:
            data = await self._pipe.receive_some(max_bytes)
        except trio.ClosedResourceError:
            if self._ended:
                return b""
            raise
        if not data:
            await self._wait_for_end()
        return bytes(data)

    async def end_when_empty(self) -> None:
        """End it once its buffered bytes are read, even if a process still holds it open."""
        pipe = select.poll()
        pipe.register(self._duplicate.fileno(), select.POLLIN)
        while events := pipe.poll(0):
            if events[0][1] & select.POLLHUP:
                return  # no process holds the other end, so the reader gets a real end of file
            await trio.sleep(_POLL_INTERVAL)
        self.end()

    async def discard(self) -> None:
        """End it, and read the pipe to its end."""
        self.end()
        # Closing the other descriptor has restored the blocking flag, which both share.
        os.set_blocking(self._duplicate.fileno(), False)
        while await self._duplicate.receive_some():
            pass

    def end(self) -> None:
        self._ended = True
        self._pipe.close()

    def close_pipe(self) -> None:
        """End it, and close the pipe."""
        self.end()
        self._duplicate.close()

    async def aclose(self) -> None:
        await self._pipe.aclose()


def _duplicate_stderr() -> int:
    """Return a duplicate of the descriptor of `sys.stderr`, or of the null device."""
    try:
        fd = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # None, replaced or closed
        fd = 2
    return os.dup(fd) if is_open(fd) else os.open(os.devnull, os.O_WRONLY)


class _StderrForwarder:
    """A copier of a child's stderr to ours, whose flags it doesn't change: see `StderrCopy`.

    It owns the descriptor `fd`.
    """

    def __init__(self, fd: int) -> None:
        from mcp_core.adapters import StderrCopy

        self._copy = StderrCopy(fd)

    async def write(self, chunk: bytes) -> None:
        self._copy.begin(chunk, trio.current_time())
        while not self._copy.write_some(trio.current_time()):  # noqa: ASYNC110  it has no event
            await trio.sleep(_POLL_INTERVAL)

    def close(self) -> None:
        self._copy.close()


class _StderrLines:
    """A splitter of a child's stderr into lines for a callback; without one they are dropped."""

    def __init__(self, on_line: Callable[[str], object] | None) -> None:
        self._on_line = on_line
        self._unfinished = b""

    async def write(self, chunk: bytes) -> None:
        *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
        if len(self._unfinished) >= _STDERR_TAIL:
            lines.append(self._unfinished)
            self._unfinished = b""
        for line in lines:
            self._report(line.removesuffix(b"\r"))

    def _report(self, line: bytes) -> None:
        if self._on_line is not None:
            try:
                self._on_line(line.decode(errors="replace"))
            except Exception:  # noqa: BLE001  the user's code failed; stderr must still be read
                _log.exception(
                    "the stderr callback %r failed and is not called again", self._on_line
                )
                self._on_line = None

    def close(self) -> None:
        if self._unfinished:
            self._report(self._unfinished)
