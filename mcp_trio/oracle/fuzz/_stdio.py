"""A target that is a command: each session starts a process, and speaks over stdio.

1. A process has its own process group and a short environment. The whole group is killed when the
   session ends: how a target shuts down isn't tested here.
2. Processes are started ahead, because a start takes longer than many cases. An examination plays
   each case on a fresh one.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import deque
from contextlib import suppress
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import ConnectFailed
from mcp_core.drivers import launch_secrets
from mcp_core.trace import Redactor, StreamChannel, TraceLine
from mcp_trio.streams._child import ChildProcess, Grace, spawn

from ._session import MESSAGE_LIMIT, PART_INTERVAL, RECONNECTED, TargetSession
from ._shared_trace import new_header

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mcp_core.adapters import Recorder
    from mcp_core.trace import TraceHeader

__all__ = ["CommandTarget", "StdioSession"]

MAX_INPUT: Final = 256 * 1024 * 1024  # bytes of one session; more is a flood
EXIT_TIMEOUT: Final = 2.0  # seconds for an exit after the end of stdout
PROMPT_TIMEOUT: Final = 5.0  # seconds for an exit after the end of stdin
GROUP_INTERVAL: Final = 10  # readings of memory between two searches for processes
MAX_PROCESSES: Final = 50  # of a group, whose memory is read
_TROUBLE: Final = re.compile(
    rb"Traceback \(most recent call last\)|panic(ked)?\b|[Uu]nhandled\b[^\n]{0,80}"
)


class StdioSession(TargetSession):
    """A conversation with a process. `CommandTarget.open` starts it."""

    transport = "stdio"

    def __init__(
        self,
        child: ChildProcess,
        target: CommandTarget,
        former: StdioSession | None = None,
        *,
        keep: bool,
    ) -> None:
        super().__init__(target.header(), keep=keep)
        if former is not None:
            self.follow(former)
        elif target.recorder is not None:
            self.recording = target.recorder.lines()
        self._child = child
        self._target = target
        self._channel = StreamChannel(self.number, MESSAGE_LIMIT)
        self._received = 0
        self._group: list[int] = []
        self._readings = 0
        self._opened_at = trio.current_time()
        self._released = trio.Event()
        self._stopped = trio.Event()
        self._all_read = trio.Event()
        self._may_read = trio.Event()
        self._may_read.set()
        if keep or self.recording is not None:
            self._record(kind="spawn", text=self.header.target)

    def _record(self, **members: Any) -> None:
        """Record a line that isn't from the server: the judge can't find its fault there."""
        self.record(TraceLine(t=self.time(), conversation=self.number, **members))

    async def send_text(self, text: str, message: Mapping[str, object]) -> None:
        """Write one message as a line."""
        self._record(sender="client", raw=text)
        await self._write(text.encode("utf-8", "surrogatepass") + b"\n")

    async def send_data(self, data: bytes) -> None:
        """Write bytes and a line feed."""
        for line in self._channel.client_data(self.time(), data + b"\n"):
            self.record(line)
        await self._write(data + b"\n")

    async def send_slowly(self, data: bytes, interval: float) -> None:
        """Write a line byte by byte, one every `interval` seconds."""
        self._record(sender="client", raw=data.decode())
        for byte in data + b"\n":
            await self._write(bytes([byte]))
            await trio.sleep(interval)

    async def send_parts(
        self, body: bytes, message: Mapping[str, object], how: str, cut: int
    ) -> None:
        """Write a line in two parts, cut after `cut` bytes."""
        self._record(sender="client", raw=body.decode())
        await self._write(body[:cut])
        await trio.sleep(PART_INTERVAL)
        await self._write(body[cut:] + b"\n")

    def pause_reading(self) -> None:
        """Stop reading stdout after the read that is under way."""
        self._may_read = trio.Event()

    def resume_reading(self) -> None:
        """Read on."""
        self._may_read.set()

    async def _write(self, data: bytes) -> None:
        if self.ended:
            return
        try:
            with trio.move_on_after(WRITE_TIMEOUT) as writing:
                await self._child.stream.send_all(data)
            if writing.cancelled_caught:
                self.end("it does not read its stdin")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await self._wait_for_exit(EXIT_TIMEOUT)
            self.exit_status = self._child.returncode
            self.end("it has closed its stdin")

    async def disconnect(self) -> None:
        """Close stdin and wait for the exit.

        A process that starts slowly ends slowly: it gets as much time as a start takes.
        """
        self._record(sender="client", end="closed")
        self.spent = True
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await self._child.stream.send_stream.aclose()
        await self._wait_for_exit(max(PROMPT_TIMEOUT, self.longest_start or 0.0))
        self.outlives_input = self.is_running
        if not self.is_running:
            # Else the next step would write to the closed stdin, as if the process had closed it.
            with trio.move_on_after(EXIT_TIMEOUT):
                await self._all_read.wait()

    async def successor(self) -> StdioSession:
        """Return the session of a new process, in the same trace."""
        self.end(RECONNECTED)
        return await self._target.open(keep=self.lines is not None, former=self)

    async def fresh(self) -> StdioSession:
        """Return the session of a new process."""
        return await self._target.open()

    async def aclose(self) -> None:
        """Kill the process and its group."""
        self._released.set()
        await self._stopped.wait()

    async def _wait_for_exit(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            while self._child.returncode is None:  # noqa: ASYNC110  it has no event of its own
                await trio.sleep(0.005)

    @property
    def is_running(self) -> bool:
        """True until the process has exited."""
        return self._child.returncode is None

    @property
    def longest_start(self) -> float | None:
        """The seconds that a start of the target has taken at most, None before the first."""
        return self._target.longest_start

    def memory(self) -> dict[int, int]:
        """Return how many bytes of memory each process of the group uses; empty but on Linux.

        A command such as `npx` or `sh -c` starts the server as a process of its own.
        """
        if self._readings % GROUP_INTERVAL == 0:
            self._group = _processes_of(self._child.pid)
        self._readings += 1
        found: dict[int, int] = {}
        for pid in self._group:
            with suppress(OSError, ValueError, IndexError):
                size = Path(f"/proc/{pid}/statm").read_text("ascii")
                found[pid] = int(size.split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return found

    def describe(self) -> str:
        """Return the exit status and the last lines of stderr, or ""."""
        return self._target.without_secrets(self._child.describe())

    def stderr(self) -> bytes:
        """Return the last 64 KiB of stderr."""
        return self._child.stderr_tail

    def trouble(self) -> str:
        """Return the part of stderr that shows an unhandled error, or ""."""
        found = _TROUBLE.search(self._child.stderr_tail)
        return found[0].decode(errors="replace") if found else ""

    # -- Tasks of the target -----------------------------------------------------------------------

    async def run(self) -> None:
        """Read stdout until the session is released."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read)
            await self._released.wait()
            nursery.cancel_scope.cancel()

    def stopped(self) -> None:
        """Note that the process is gone."""
        self.exit_status = self._child.returncode
        self._stopped.set()

    async def _read(self) -> None:
        stream, channel = self._child.stream, self._channel
        reason = "its stdout has ended"
        while True:
            if not self._may_read.is_set():
                await self._may_read.wait()
            try:
                data = await stream.receive_some()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            if data and not self._received and all(each.is_bounded for each in self.requests):
                self._target.add_start(trio.current_time() - self._opened_at)
            self._received += len(data)
            if self._received > MAX_INPUT:
                reason = "it sends without end"
                break
            if not data:
                break
            for line in channel.server_data(self.time(), bytes(data)):
                self.receive(line)
                if line.truncated is not None:
                    self.excuse_requests()
        await self._wait_for_exit(EXIT_TIMEOUT)
        self.exit_status = self._child.returncode
        if self.exit_status is not None:
            self._record(kind="exit", status=self.exit_status)
        self.end(reason)
        self._all_read.set()


WRITE_TIMEOUT: Final = 10.0  # seconds for a target that reads slowly


def _processes_of(group: int) -> list[int]:
    """Return the ids of the processes in a group; none but on Linux."""
    found: list[int] = []
    with suppress(OSError):
        for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208  faster than `iterdir`
            with suppress(OSError, ValueError, IndexError):
                # The name before the last parenthesis can have any character.
                state = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2]
                if int(state.split()[2]) == group:
                    found.append(int(pid))
            if len(found) >= MAX_PROCESSES:
                break
    return found


class CommandTarget:
    """A command that starts a server on its stdin and stdout.

    Args:
        command: the program and its arguments.
        nursery: the nursery of the processes. Cancel it to kill all of them.
        env, inherit_env, cwd: as for `mcp_trio.connect_stdio`.
        ahead: how many processes are started before they are needed, while cases are examined on
            fresh ones. By default 4. Otherwise it is at most one.
        unexpanded: the words of `command` as its configuration file has them, if it has one.
        secrets: values from that file, which must not be written.
    """

    kind = "stdio"

    def __init__(
        self,
        command: Sequence[str],
        nursery: trio.Nursery,
        *,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        cwd: str | os.PathLike[str] | None = None,
        ahead: int = 4,
        unexpanded: Sequence[str] = (),
        secrets: Collection[str] = (),
    ) -> None:
        self.command = tuple(command)
        self.unexpanded = tuple(unexpanded)
        inherited = os.environ if inherit_env else None
        self.secrets = launch_secrets(self.command, env=env, inherited=inherited).union(secrets)
        self.name = shlex.join(command)
        self._redactor = Redactor(token_bytes(32), secrets=self.secrets)
        self._shown = shlex.join(self._redactor.redact_command(self.unexpanded or self.command))
        self._nursery = nursery
        self._env, self._inherit_env, self._cwd = env, inherit_env, cwd
        self._ahead = ahead
        self._ready: deque[tuple[ChildProcess, trio.Event]] = deque()
        self._starting = 0
        self._error: ConnectFailed | None = None
        self._sessions: set[StdioSession] = set()
        self.longest_start: float | None = None
        self.recorder: Recorder | None = None

    def without_secrets(self, text: str) -> str:
        """Return a text from the target with `secrets` removed."""
        return self._redactor.hide_known(text)

    def add_start(self, seconds: float) -> None:
        """Note how long a process took until its first bytes."""
        self.longest_start = max(seconds, self.longest_start or 0.0)

    def header(self) -> TraceHeader:
        """Return the header of a trace of this target."""
        return new_header("client", "stdio", self._shown)

    def learn_tools(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Do nothing: only HTTP repeats arguments in headers."""

    async def open(self, *, keep: bool = False, former: StdioSession | None = None) -> StdioSession:
        """Start a process, or take one that was started ahead, and return its session.

        Args:
            keep: True to keep its lines.
            former: the session whose trace it continues.

        Raises:
            ConnectFailed: the program cannot be started.
        """
        found = None
        while self._ready and found is None:
            child, release = self._ready.popleft()
            if child.returncode is None:
                found = child, release
            else:
                release.set()
        child, release = found or await self._start()
        # Only examinations keep lines. Other cases seldom need a process of their own.
        ahead = self._ahead if keep else min(1, self._ahead)
        for _ in range(ahead - len(self._ready) - self._starting):
            self._starting += 1
            self._nursery.start_soon(self._start_ahead)
        session = StdioSession(child, self, former, keep=keep)
        self._nursery.start_soon(self._run_session, session, release)
        return session

    async def _run_session(self, session: StdioSession, release: trio.Event) -> None:
        try:
            await session.run()
        finally:
            release.set()
            session.stopped()

    async def _start_ahead(self) -> None:
        try:
            self._ready.append(await self._start())
        except ConnectFailed:
            pass  # the next start raises the error
        finally:
            self._starting -= 1

    async def _start(self) -> tuple[ChildProcess, trio.Event]:
        found = await self._nursery.start(self._hold)
        if isinstance(found, ConnectFailed):
            raise found
        return found  # type: ignore[no-any-return]

    async def _hold(self, task_status: trio.TaskStatus[object]) -> None:
        """Start a process and hold it until it is released."""
        release = trio.Event()
        try:
            async with spawn(
                self.command,
                env=self._env,
                inherit_env=self._inherit_env,
                cwd=self._cwd,
                stderr="discard",
                grace=Grace(0.0, 0.0),
            ) as child:
                task_status.started((child, release))
                await release.wait()
        except ConnectFailed as exc:
            task_status.started(exc)
