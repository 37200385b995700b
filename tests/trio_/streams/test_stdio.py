"""A server's standard streams: real descriptors, real processes, real signals.

Programs are started with `python -c`. A fixture counts the descriptors before and after each test.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import textwrap
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ConnectFailed
from mcp_core.runtime import LAST_GRACE
from mcp_trio import memory_pair
from mcp_trio.streams._stdio import (
    has_no_reader,
    is_open,
    pipe_of,
    standard_streams,
    stop_on_signals,
)
from tests.harness.world.children import ends_by
from tests.harness.world.pipes import rest
from tests.harness.world.waiting import PATIENCE, cancel_once_blocked, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


LINUX = sys.platform == "linux"

# --- standard streams, on descriptors of this process -------------------------------------------


class Ends:
    """Pipes in place of a server's stdin, stdout and stderr; `theirs` are the client's ends."""

    def __init__(self, undo: ExitStack) -> None:
        def pipe() -> tuple[int, int]:
            pair = os.pipe()
            for fd in pair:
                undo.callback(close, fd)
            return pair

        self.stdin, self.requests = pipe()
        self.answers, self.stdout = pipe()
        self.complaints, self.stderr = pipe()

    def streams(self) -> Any:
        return standard_streams(self.stdin, self.stdout, self.stderr)


def close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError as error:
        if error.errno != errno.EBADF:
            raise


@pytest.fixture
def ends() -> Iterator[Ends]:
    with ExitStack() as undo:
        yield Ends(undo)


@pytest.mark.requirement("STDIO-2")
@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_stdio_only_the_stream_uses_the_pipes(ends: Ends) -> None:
    """Stray output goes to stderr and stray input is at its end, until the block is left."""
    os.write(ends.requests, b"request\n")
    with ends.streams() as stream:
        os.write(ends.stdout, b"stray output\n")
        assert os.read(ends.stdin, 10) == b""
        assert await stream.receive_some() == b"request\n"
        await stream.send_all(b"answer\n")
        assert os.read(ends.answers, 100) == b"answer\n"
        assert os.read(ends.complaints, 100) == b"stray output\n"
    os.write(ends.stdout, b"ours again")
    assert os.read(ends.answers, 100) == b"ours again"
    os.write(ends.requests, b"for others")
    assert os.read(ends.stdin, 100) == b"for others"
    assert not os.get_inheritable(ends.stdin)
    os.close(ends.requests)
    with ends.streams() as stream:
        assert await rest(stream) == b""


@pytest.mark.usefixtures("each_kind_of_pipe")
@pytest.mark.parametrize(
    ("code_page", "printed"),
    [
        ("cp1252", b"\\u2713 caf\xe9\n"),
        ("cp437", b"\\u2713 caf\x82\n"),
        ("ascii", b"\\u2713 caf\\xe9\n"),
        ("utf-8", "\u2713 caf\u00e9\n".encode()),
    ],
)
async def test_stdio_print_escapes_what_the_code_page_lacks(
    code_page: str, printed: bytes, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that prints a check mark would fail on Windows, for a text that is no message."""
    with os.fdopen(ends.stdout, "w", encoding=code_page, closefd=False, newline="\n") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        with ends.streams():
            print("\u2713 caf\u00e9")
            assert os.read(ends.complaints, 100) == printed
        assert stdout.errors == "strict"


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_stdio_read_waits_and_can_be_cancelled(ends: Ends) -> None:
    with ends.streams() as stream:
        await cancel_once_blocked(stream.receive_some)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, bytes(1_000_000))
            got = 0
            while got < 1_000_000:
                await trio.lowlevel.wait_readable(ends.answers)
                got += len(os.read(ends.answers, 65536))


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_stdio_closed_reader_is_a_broken_resource(ends: Ends) -> None:
    with ends.streams() as stream:
        os.close(ends.answers)
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"anyone?")
    with (
        ends.streams() as stream,
        pytest.raises(trio.BrokenResourceError),
    ):  # closed before we started
        await stream.send_all(b"anyone?")


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_stdio_stream_may_be_closed_early(ends: Ends) -> None:
    with ends.streams() as stream:
        await stream.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await stream.receive_some()
    os.write(ends.stdout, b"ours again")
    assert os.read(ends.answers, 100) == b"ours again"


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_stdio_stream_is_closed_with_its_context(ends: Ends) -> None:
    with ends.streams() as stream:
        pass
    with pytest.raises(trio.ClosedResourceError):
        await stream.send_all(b"late")
    with pytest.raises(trio.ClosedResourceError):
        await stream.receive_some()


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_stdio_restores_descriptors_after_an_exception(ends: Ends) -> None:
    with pytest.raises(ZeroDivisionError), ends.streams():
        raise ZeroDivisionError
    assert os.get_blocking(ends.stdin)
    os.write(ends.stdout, b"ours again")
    assert os.read(ends.answers, 100) == b"ours again"


@pytest.mark.skipif(
    not LINUX, reason="elsewhere /dev/fd gives no description of its own; the flag is put back"
)
async def test_stdio_shared_pipe_keeps_its_blocking_flag(ends: Ends) -> None:
    shells = os.dup(ends.stdin), os.dup(ends.stdout)
    with ends.streams():
        assert [os.get_blocking(fd) for fd in shells] == [True, True]
    for fd in shells:
        os.close(fd)


async def test_stdio_terminal_keeps_its_blocking_flag() -> None:
    master, slave = os.openpty()
    fds = [os.dup(slave) for _ in range(3)]
    with standard_streams(*fds) as stream:
        assert os.get_blocking(slave) == LINUX
        os.write(master, b"typed\n")
        assert await stream.receive_some() == b"typed\n"
        os.write(master, b"\x04")
        assert await rest(stream) == b""
    assert os.get_blocking(slave)
    for fd in (master, slave, *fds):
        os.close(fd)


async def test_stdio_one_socket_for_both_directions() -> None:
    """As under inetd, both descriptors share one socket and so one blocking mode."""
    ours, theirs = socket.socketpair()
    stdin, stdout = os.dup(theirs.fileno()), os.dup(theirs.fileno())
    os.set_blocking(stdin, True)
    with theirs, ours:
        with standard_streams(stdin, stdout) as stream:
            assert not theirs.getblocking() or not os.get_blocking(theirs.fileno())
            await stream.send_all(b"answer")
            assert ours.recv(100) == b"answer"
            await stream.send_eof()  # must not make the receiving half blocking
            await cancel_once_blocked(stream.receive_some)
            ours.sendall(b"request")
            assert await stream.receive_some() == b"request"
        assert os.get_blocking(theirs.fileno())
    os.close(stdin)
    os.close(stdout)


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_stdio_regular_files_keep_their_position(tmp_path: Path) -> None:
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"read by the shell\n" + b"request\n" * 20_000)
    sink.write_bytes(b"from the shell\n")
    with source.open("rb", buffering=0) as stdin, sink.open("ab", buffering=0) as stdout:
        stdin.readline()
        with standard_streams(stdin.fileno(), stdout.fileno()) as stream:
            assert await rest(stream) == b"request\n" * 20_000
            await stream.send_all(b"answer\n")
        assert os.get_blocking(stdin.fileno())
    assert sink.read_bytes() == b"from the shell\nanswer\n"


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_stdio_null_device_ends_at_once() -> None:
    stdin, stdout = os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY)
    with standard_streams(stdin, stdout) as stream:
        assert await rest(stream) == b""
        await stream.send_all(b"nobody")
    os.close(stdin)
    os.close(stdout)


async def test_stdio_closed_descriptor_raises_with_its_name(ends: Ends) -> None:
    os.close(ends.stdout)
    with (
        pytest.raises(ConnectFailed, match=rf"standard output \(fd {ends.stdout}\) is not open"),
        ends.streams(),
    ):
        raise AssertionError


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_stdio_descriptors_stay_inheritable(ends: Ends) -> None:
    """Programs that are started after the block use them as before."""
    os.set_inheritable(ends.stdin, True)
    os.set_inheritable(ends.stdout, True)
    with ends.streams():
        pass
    assert [os.get_inheritable(fd) for fd in (ends.stdin, ends.stdout)] == [True, True]
    os.set_inheritable(ends.stdout, False)
    with ends.streams():
        pass
    assert [os.get_inheritable(fd) for fd in (ends.stdin, ends.stdout)] == [True, False]


def test_standard_descriptor_that_was_closed_at_the_start_is_not_open(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number may be another file's by now."""
    assert is_open(2)
    monkeypatch.setattr(sys, "__stderr__", None)
    assert not is_open(2)
    assert is_open(ends.stdin)
    os.close(ends.stdin)
    assert not is_open(ends.stdin)


# --- the end of the client's reading -------------------------------------------------------------


async def test_pipe_of_stdout_reports_the_end_of_its_reader(ends: Ends) -> None:
    with ends.streams() as stream:
        pipe = pipe_of(stream)
        assert pipe is not None
        assert not has_no_reader(pipe)
        os.close(ends.answers)
        assert has_no_reader(pipe)


async def test_pipe_of_a_socket_is_known_unless_it_is_stdin_too(ends: Ends) -> None:
    """As one socket for both it may be closed in one direction, and still be read."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fd = os.dup(ours.fileno())
        with standard_streams(ends.stdin, fd) as stream:
            pipe = pipe_of(stream)
            assert pipe is not None
            assert not has_no_reader(pipe)
            theirs.close()
            assert has_no_reader(pipe)
        other = os.dup(fd)
        with standard_streams(fd, other) as stream:
            assert pipe_of(stream) is None
    os.close(fd)
    os.close(other)


async def test_pipe_of_files_and_other_streams_is_none(ends: Ends, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out, standard_streams(ends.stdin, out.fileno()) as stream:
        assert pipe_of(stream) is None
    with ends.streams() as stream:
        for memory in memory_pair():
            assert pipe_of(memory) is None
            assert pipe_of(trio.StapledStream(stream.send_stream, memory)) is None
            assert pipe_of(trio.StapledStream(memory, stream.receive_stream)) is None
            await memory.aclose()


# --- standard streams, in a separate process ----------------------------------------------------

SERVER = """
import os, subprocess, sys, trio
from mcp_trio.streams._stdio import standard_streams, stop_on_signals
from tests.harness.world.waiting import cancel_once_blocked

async def main():
    with standard_streams() as stream:
        await work(stream)
"""


def run(
    source: str, *, stdin: bytes = b"", shell: str = "", **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run a server program to its end; `shell` is a redirection for it, such as `<&-`."""
    words = [sys.executable, "-c", SERVER + textwrap.dedent(source)]
    if shell:
        words = ["sh", "-c", f'exec "$@" {shell}', "sh", *words]
    # An unbuffered print reaches stdout before it can be diverted.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    options = {"stderr": subprocess.PIPE, "env": env, **options}
    return subprocess.run(
        words, input=stdin, stdout=subprocess.PIPE, timeout=PATIENCE, check=False, **options
    )


@pytest.mark.process
@pytest.mark.requirement("STDIO-2")
def test_stdio_prints_of_any_kind_go_to_stderr() -> None:
    """C code and child processes bypass `sys.stdout`, so descriptor 1 itself is replaced."""
    done = run(
        """
        import ctypes
        print("at import")
        async def work(stream):
            print(end="|", file=sys.stderr, flush=True)
            print("handler")
            os.write(1, b"descriptor\\n")
            subprocess.run(["echo", "grandchild"])
            ctypes.CDLL(None).puts(b"C library")
            await stream.send_all(b"answer\\n")
            sys.stdout.write("unfinished")
        trio.run(main)
        assert not sys.stdout.line_buffering
        print("afterwards")
        """
    )
    assert done.stdout == b"answer\nafterwards\n"
    assert done.stderr == b"at import\n|handler\ndescriptor\ngrandchild\nunfinishedC library\n"
    assert done.returncode == 0


@pytest.mark.process
def test_stdio_handlers_and_children_cannot_read_requests() -> None:
    done = run(
        """
        async def work(stream):
            assert sys.stdin.read() == ""
            assert subprocess.run(["cat"], capture_output=True).stdout == b""
            async for chunk in stream:
                await stream.send_all(chunk)
        trio.run(main)
        """,
        stdin=b"request\n",
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"request\n", b"", 0)


@pytest.mark.process
@pytest.mark.parametrize(
    ("shell", "stdout", "stderr"),
    [
        ("<&-", b"", b"standard input (fd 0) is not open"),
        (">&-", b"", b"standard output (fd 1) is not open"),
        ("2>&-", b"answer\n", b""),
    ],
)
def test_stdio_started_with_a_closed_descriptor(shell: str, stdout: bytes, stderr: bytes) -> None:
    done = run(
        """
        async def work(stream):
            print("x")
            await stream.send_all(b"answer\\n")
        trio.run(main)
        """,
        shell=shell,
    )
    assert done.stdout == stdout
    assert stderr in done.stderr
    assert done.returncode == (1 if stderr else 0)


@pytest.mark.process
def test_stdio_output_rejected_by_stderr_is_dropped() -> None:
    """The client closed our stderr; a print fails then, but responses still arrive."""
    reader, writer = os.pipe()
    os.close(reader)
    done = run(
        """
        async def work(stream):
            try:
                print("to nobody")
            except BrokenPipeError:
                await stream.send_all(b"answer\\n")
        trio.run(main)
        """,
        stderr=writer,
    )
    os.close(writer)
    assert (done.stdout, done.returncode) == (b"answer\n", 0)


@pytest.mark.process
@pytest.mark.parametrize(
    "rebind",
    [
        "sys.stdout = io.StringIO()",
        "sys.stdout = None",
        "sys.stdout = codecs.getwriter('utf-8')(sys.stdout.detach())",
        "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'utf-8')",
    ],
)
def test_stdio_rebound_sys_stdout_works(rebind: str) -> None:
    done = run(
        f"""
        import codecs, io
        {rebind}
        async def work(stream):
            print("handler", flush=True)
            await stream.send_all(b"answer\\n")
        trio.run(main)
        """
    )
    assert (done.stdout, done.returncode) == (b"answer\n", 0)


# --- signals ------------------------------------------------------------------------------------

STOPPED = """
async def main():
    with (
        trio.CancelScope() as scope,
        stop_on_signals(scope.cancel) as stop,
        standard_streams() as stream,
    ):
        try:
            await work(stream)
        finally:
            print("cleaned up")
    raise SystemExit(stop.exit_code)

async def work(stream):
    await stream.send_all(b"ready\\n")
    await stream.receive_some()
"""


@contextmanager
def running(source: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A server program that has sent `ready`; killed at the end if it still runs."""
    words = [sys.executable, "-c", SERVER + STOPPED + textwrap.dedent(source)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, **options) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == b"ready\n"
            yield server
        finally:
            server.kill()


@pytest.mark.process
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stdio_first_signal_shuts_down_in_order(number: signal.Signals, code: int) -> None:
    with running("trio.run(main)") as server:
        server.send_signal(number)
        assert server.wait(PATIENCE) == code
        assert server.stderr is not None
        assert server.stderr.read() == b"cleaned up\n"


@pytest.mark.process
@pytest.mark.requirement("STDIO-11")
def test_stdio_end_of_stdin_ends_without_a_signal() -> None:
    with running("trio.run(main)") as server:
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(PATIENCE) == 0


@pytest.mark.process
@pytest.mark.parametrize(
    ("stuck", "first", "second"),
    [
        ("time.sleep(60)", "INT", "INT"),
        ("while True: pass", "TERM", "INT"),
        ("time.sleep(60)", "INT", "TERM"),
    ],
)
def test_stdio_second_signal_kills_a_blocked_server(stuck: str, first: str, second: str) -> None:
    """The code swallows every exception, so only the kernel's default action can end it."""
    source = f"""
        import time
        async def work(stream):
            await stream.send_all(b"ready\\n")
            while True:
                try:
                    {stuck}
                except BaseException:  # a call's boundary lets nothing through
                    pass
        trio.run(main)
        """
    with running(source) as server:
        assert not ends_by(server, signal.Signals["SIG" + first])
        wait_until(lambda: ends_by(server, signal.Signals["SIG" + second]))
        assert server.returncode == -signal.Signals["SIG" + second]


@pytest.mark.process
def test_stdio_ignored_signal_stays_ignored() -> None:
    source = """
        import signal
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        trio.run(main)
        """
    with running(source) as server:
        assert not ends_by(server, signal.SIGINT)
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 143


async def test_stdio_signal_handlers_are_restored() -> None:
    """The application may have its own handlers, which the block replaces only for a time."""

    def mine(number: int, frame: object) -> None:
        raise AssertionError

    former = signal.signal(signal.SIGTERM, mine)
    try:
        with trio.CancelScope() as scope, stop_on_signals(scope.cancel) as stop:
            assert (stop.caught, stop.exit_code) == (None, 0)
            os.kill(os.getpid(), signal.SIGTERM)
            with trio.fail_after(PATIENCE):
                await trio.sleep_forever()
        assert scope.cancelled_caught
        assert (stop.caught, stop.exit_code) == (signal.SIGTERM, 143)
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, former)


@pytest.mark.parametrize("patience", [0.0, 60.0])
async def test_stdio_first_signal_restores_the_default_unless_it_is_patient(
    patience: float,
) -> None:
    """So the second one works even while the event loop is stuck."""
    began: list[tuple[float, str, int]] = []

    class Deadline:
        def begin(self, *arguments: Any) -> None:
            began.append(arguments)

    deadline: Any = Deadline()
    acted = trio.Event()
    with stop_on_signals(acted.set, patience=patience, last_deadline=deadline, grace=3.0):
        ours = signal.getsignal(signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        with trio.fail_after(PATIENCE):
            await acted.wait()
        expected = ours if patience else signal.SIG_DFL
        for number in signal.SIGINT, signal.SIGTERM:
            assert signal.getsignal(number) == expected
    assert began == [(3.0 + LAST_GRACE, "SIGINT", 130)]


async def test_stdio_signal_within_the_patience_is_ignored() -> None:
    with trio.CancelScope() as scope, stop_on_signals(scope.cancel, patience=60.0) as stop:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
        with trio.fail_after(PATIENCE):
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert stop.exit_code == 143


@pytest.mark.process
def test_stdio_signal_after_the_patience_kills() -> None:
    source = """
        import signal, time
        from mcp_trio.streams._stdio import stop_on_signals
        async def stop():
            print("ready", flush=True)
            with stop_on_signals(lambda: None, patience=0.01):
                signal.raise_signal(signal.SIGTERM)
                time.sleep(0.02)
                signal.raise_signal(signal.SIGTERM)
        trio.run(stop)
        """
    with running(source) as server:
        assert server.wait(PATIENCE) == -signal.SIGTERM


async def test_stdio_other_threads_have_no_signal_handlers() -> None:
    before = signal.getsignal(signal.SIGTERM)

    async def elsewhere() -> None:
        with trio.CancelScope() as scope, stop_on_signals(scope.cancel):
            assert signal.getsignal(signal.SIGTERM) == before
            await trio.lowlevel.checkpoint()

    await trio.to_thread.run_sync(trio.run, elsewhere)
