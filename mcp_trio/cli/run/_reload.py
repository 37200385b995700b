"""`mcp-trio run --reload`: serve a file, and start the server again when its code changes.

1. This process keeps what the clients are connected to: stdin and stdout, or the sockets that
   listen. A child process serves. `ReloadRelay` decides which messages pass between them.
2. This process checks the modification times of the file, and of the modules that it has imported
   from its directory. After a failed import it checks all Python files in the directory, or of the
   package: a module that doesn't compile isn't among the imported ones.
3. The server inherits the whole environment, as without `--reload`: it is the user's own file.
"""

from __future__ import annotations

import json
import math
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import trio

from mcp_core.adapters import listening_sockets
from mcp_core.processes import ReloadRelay
from mcp_core.runtime import READ_SIZE, SHUTDOWN_GRACE
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.cli._errors import NO_CONNECTION, CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._unblocked_stderr import unblocked_stderr
from mcp_trio.streams._child import Grace, spawn
from mcp_trio.streams._stdio import standard_streams, stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.adapters import HttpRunOptions, ServedSource
    from mcp_trio.streams._child import ChildProcess

__all__ = ["Watch", "run_reloading"]

_INTERVAL: Final = 0.5  # seconds between two checks of the files
# Seconds to wait after a change: editors write several files, or one in several steps. Longer than
# `_CLOCK_STEP`, so that the next process begins after the change.
_SETTLE_TIME: Final = 0.05
_CLOCK_STEP: Final = 10_000_000  # nanoseconds by which file systems round modification times
_GRACE: Final = Grace(stdin=1.0, terminate=2.0)  # the user waits for the new server
# `_reload_child.py` begins an orderly end when stdin is closed. Handlers get the usual time, and
# after it cancelled ones, the last output and the server's lifespan get a second each.
_HTTP_GRACE: Final = Grace(stdin=SHUTDOWN_GRACE + 3.0, terminate=1.0)
# Seconds for the last responses, after the client has closed stdin: as long as a server takes.
_LAST_RESPONSES: Final = 2.0


def run_reloading(source: ServedSource, words: Sequence[str], http: HttpRunOptions | None) -> int:
    """Serve until the client closes stdin or a signal arrives, and return the exit status.

    Args:
        source: the file or module.
        words: the words of `mcp-trio run` for the child, with the source and all its options.
        http: the address to listen on; None for stdio.

    Raises:
        CliError: this process cannot listen on the address.
    """
    with ExitStack() as opened:
        directory = opened.enter_context(TemporaryDirectory(prefix="mcp-trio-"))
        report = Path(directory, "modules.json")
        # -B: Python would use old bytecode for a file that was changed again within a second and
        # has the same size. -P: the current directory may have modules with the same names.
        child = [sys.executable, "-B", "-P", "-m", f"{__package__}._reload_child", str(report)]
        child += [str(source.root.resolve()), "run"]
        watch = Watch(source, report)
        # A stopped terminal, or a host that doesn't read the log, doesn't stop the client's calls.
        stderr = Screen(opened.enter_context(unblocked_stderr()))
        if http is None:
            source.explain_wait(source.path.name)
            return trio.run(_run, _StdioReloader([*child, *words], watch, stderr))
        try:
            sockets = listening_sockets(http.host, http.port)
        except OSError as exc:
            raise CliError(str(exc.strerror), NO_CONNECTION) from exc
        fds = [opened.enter_context(found).fileno() for found in sockets]
        child += ["--listening-fds", ",".join(map(str, fds))]
        return trio.run(_run, _HttpReloader([*child, *words], watch, fds, stderr))


async def _run(reloader: _StdioReloader | _HttpReloader) -> int:
    scope = trio.CancelScope()
    with stop_on_signals(scope.cancel) as signal, scope:
        await reloader.run()
    return signal.exit_code


class Watch:
    """A server's files, with their modification times when the server read them.

    Args:
        source: the server's file or module.
        report: where the child writes the files that it has imported (`_reload_child.py`).
    """

    def __init__(self, source: ServedSource, report: Path) -> None:
        self._source = source
        self._report = report
        self._times: dict[Path, int] = {}
        self._began = 0
        self._neighbours = False

    def begin(self) -> None:
        """Begin to watch for changes from now on: a process is about to read the files."""
        self._began = time.time_ns()
        self._neighbours = False
        for path in {self._source.path.resolve(), *self._times}:
            self._times[path] = _time_of(path)
        self._report.unlink(missing_ok=True)

    def include_neighbours(self) -> None:
        """Watch all Python files beside the server's file, too: one has failed, or is missing.

        Of a module, these are the files of its whole package.
        """
        self._neighbours = True
        for path in self._source.find_files():
            self._times.setdefault(path, _time_of(path))

    def find_change(self) -> Path | None:
        """Return a file that has changed since the process read it, None if all are the same."""
        with suppress(OSError, ValueError):  # not written yet
            for name, seen in json.loads(self._report.read_bytes()).items():
                # A file that changed since the process began may have been read before the change.
                recent = self._began - _CLOCK_STEP < seen <= time.time_ns()
                self._times[Path(name)] = 0 if recent else seen
        if self._neighbours:
            for path in self._source.find_files():
                self._times.setdefault(path, 0)  # a new file counts as changed
        return next((path for path, seen in self._times.items() if _time_of(path) != seen), None)

    async def changed(self) -> Path:
        """Wait for a change, and a moment for further changes. Return the changed file."""
        while (path := self.find_change()) is None:  # noqa: ASYNC110  no event of the system
            await trio.sleep(_INTERVAL)
        await trio.sleep(_SETTLE_TIME)
        return path


def _time_of(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0  # it is being replaced, or gone


class _StdioReloader:
    """One client on stdin and stdout, and one server after the other."""

    def __init__(self, words: Sequence[str], watch: Watch, stderr: Screen) -> None:
        self._words = words
        self._watch = watch
        self._relay = ReloadRelay()
        self._stderr = stderr
        self._child: ChildProcess | None = None
        self._writing_to_client = trio.Lock()
        self._writing_to_server = trio.Lock()
        self._resumed = trio.lowlevel.ParkingLot()
        self._input_ended = False

    async def run(self) -> None:
        """Serve until the client closes stdin."""
        with standard_streams() as client:
            self._client = client
            async with open_quiet_nursery(wait=True) as nursery:
                nursery.start_soon(self._serve)
                await self._read_client()
                with trio.move_on_after(_LAST_RESPONSES):
                    await self._end_input()
                nursery.cancel_scope.cancel()

    async def _read_client(self) -> None:
        with suppress(trio.BrokenResourceError):
            while True:
                while not self._relay.accepts_input:  # what has arrived already waits in the relay
                    await self._resumed.park()
                data = await self._client.receive_some(READ_SIZE)
                if not data:
                    return
                self._relay.receive_from_client(bytes(data))
                await self._write()

    async def _end_input(self) -> None:
        """Close the server's stdin, and wait for its last output."""
        child = self._child
        self._input_ended = True
        if child is not None:
            async with self._writing_to_server:
                await child.stream.send_stream.aclose()
            while self._child is child:
                await self._resumed.park()

    async def _serve(self) -> None:
        while True:
            self._watch.begin()
            async with (
                spawn(self._words, inherit_env=True, grace=_GRACE) as child,
                open_quiet_nursery() as nursery,
            ):
                self._child = child
                self._relay.server_started()
                await self._write()
                nursery.start_soon(self._read_server, child)
                changed = await self._watch.changed()
                self._child = None
                self._relay.server_stopping()
                await self._write()
            self._stderr.write_line(f"mcp-trio: {changed.name} has changed, starting again")

    async def _read_server(self, child: ChildProcess) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await child.stream.receive_some(READ_SIZE):
                self._relay.receive_from_server(bytes(data))
                await self._write()
        self._child = None
        if self._input_ended:
            self._resumed.unpark_all()
            return
        status = "" if child.returncode is None else f" (exit status {child.returncode})"
        self._relay.server_failed(f"the server has ended{status}, see its stderr")
        self._watch.include_neighbours()
        self._stderr.write_line(f"mcp-trio: the server has ended{status}; waiting for a change")
        await self._write()

    async def _write(self) -> None:
        """Write what the relay has for both sides. A side that doesn't read delays its peer."""
        for warning in self._relay.warnings:
            self._stderr.write_line(f"mcp-trio: {warning}")
        self._relay.warnings.clear()
        self._resumed.unpark_all()
        async with self._writing_to_client:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                if data := self._relay.data_for_client():
                    await self._client.send_all(data)
        # While the child is being stopped, a task that writes to it may hold the lock.
        while (child := self._child) is not None:
            async with self._writing_to_server:
                data = self._relay.data_for_server() if self._child is child else b""
                # If the child no longer reads, the end of its stdout will be read soon.
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    if data:
                        await child.stream.send_all(data)
            if self._child is child:
                return


class _HttpReloader:
    """Sockets that listen, and one server after the other that accepts their connections."""

    def __init__(
        self, words: Sequence[str], watch: Watch, fds: Sequence[int], stderr: Screen
    ) -> None:
        self._words = words
        self._watch = watch
        self._fds = fds
        self._stderr = stderr

    async def run(self) -> None:
        """Serve for ever."""
        while True:
            self._watch.begin()
            async with (
                spawn(
                    self._words, inherit_env=True, grace=_HTTP_GRACE, pass_fds=self._fds
                ) as child,
                open_quiet_nursery() as nursery,
            ):
                nursery.start_soon(self._copy_stdout, child)
                changed = await self._watch.changed()
            self._stderr.write_line(f"mcp-trio: {changed.name} has changed, starting again")

    async def _copy_stdout(self, child: ChildProcess) -> None:
        stdout = Screen(sys.stdout)
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await child.stream.receive_some(READ_SIZE):
                stdout.write_bytes(bytes(data))
        self._watch.include_neighbours()
        self._stderr.write_line("mcp-trio: the server has ended; waiting for a change")
        await trio.sleep(math.inf)
