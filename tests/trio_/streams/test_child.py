"""Child processes: starting, reading and stopping them. Real processes, real signals.

Programs are started with `python -c`; those that need no library run with `-S`, which is faster.
No test waits for the default grace periods: they are arguments.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from ast import literal_eval
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed
from mcp_core.processes._child_environment import INHERITED_VARIABLES, MARK_VARIABLE
from mcp_trio.streams import _child
from mcp_trio.streams._child import ChildProcess, Grace, spawn, with_cure
from tests.harness.world.pipes import (
    alive,
    line,
    python,
    rest,
    until,
)
from tests.harness.world.waiting import PATIENCE, cancel_once_blocked, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


QUICK = Grace(stdin=0.15, terminate=0.3)
PATIENT = Grace(stdin=2 * PATIENCE, terminate=2 * PATIENCE)  # no working test may need it
LINUX = sys.platform == "linux"


@pytest.fixture
def without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no process be found in `/proc`, as on systems that have none."""
    monkeypatch.setattr(_child, "_list_processes", list)


@pytest.mark.requirement("STDIO-5", "STDIO-13")
@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_conversation_over_its_pipes() -> None:
    with trio.fail_after(PATIENCE):
        async with spawn(
            python("for line in sys.stdin: say(line.upper())"), grace=PATIENT
        ) as child:
            assert repr(child) == f"<ChildProcess {child.pid} running, 0 bytes of stderr kept>"
            await child.stream.send_all(b"hello\n")
            assert await line(child.stream) == "HELLO"
            assert alive(child.pid)
    assert child.returncode == 0
    assert repr(child) == f"<ChildProcess {child.pid} exited 0, 0 bytes of stderr kept>"
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


async def test_child_gets_arguments_environment_and_directory(tmp_path: Path) -> None:
    program = python(
        "say(sys.argv[1:]); say(os.environ['OURS'] + os.environ['HOME']); say(os.getcwd())",
        "$(id);",
    )
    async with spawn(
        program, env={"OURS": "added:", "HOME": "/changed"}, cwd=tmp_path, grace=QUICK
    ) as child:
        assert await line(child.stream) == "['$(id);']"
        assert await line(child.stream) == "added:/changed"
        assert await line(child.stream) == str(tmp_path)


SHOW_ENVIRONMENT = "say(sorted(os.environ)); say(os.environ.get('PATH'))"


@pytest.mark.parametrize("env", [None, {}, {"OURS": "a"}, {"PATH": "/ours"}])
async def test_child_inherits_few_variables(
    env: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "() { echo a function; }")
    async with spawn(python(SHOW_ENVIRONMENT), env=env, grace=QUICK) as child:
        names = set(literal_eval(await line(child.stream)))
        assert await line(child.stream) == (env or {}).get("PATH", os.environ["PATH"])
    assert {"HOME", "PATH", "LC_ALL", *(env or {})} <= names | ({"HOME"} - os.environ.keys())
    assert names <= {*INHERITED_VARIABLES, MARK_VARIABLE, *(env or {})} - {"TERM"}


async def test_child_with_inherit_env_gets_all_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    async with spawn(
        python("say({**os.environ})"), env={"OURS": "a"}, inherit_env=True, grace=QUICK
    ) as child:
        environ = literal_eval(await line(child.stream))
    mark = environ.pop(MARK_VARIABLE)
    assert len(mark) == 16
    assert environ == {**os.environ, "OURS": "a"}


async def test_child_leads_its_own_session() -> None:
    async with spawn(python("say(f'{os.getsid(0)} {os.getpgrp()}')"), grace=QUICK) as child:
        assert await line(child.stream) == f"{child.pid} {child.pid}"


@pytest.mark.requirement("LIFE-18", "STDIO-10")
@pytest.mark.parametrize(
    ("source", "grace", "returncode"),
    [
        ("say('up'); sys.stdin.read()", PATIENT, 0),
        ("say('up'); sys.stdin.read(); sys.exit(7)", PATIENT, 7),
        ("say('up'); time.sleep(60)", Grace(0.1, 20), -signal.SIGTERM),
        ("signal.signal(15, lambda *_: os._exit(3)); say('up'); time.sleep(60)", Grace(0.1, 20), 3),
        ("signal.signal(15, signal.SIG_IGN); say('up'); time.sleep(60)", QUICK, -signal.SIGKILL),
        ("say('up'); os.kill(os.getpid(), signal.SIGSTOP)", QUICK, -signal.SIGKILL),
    ],
)
async def test_child_is_stopped_by_stdin_then_sigterm_then_sigkill(
    source: str, grace: Grace, returncode: int
) -> None:
    async with spawn(python(source), grace=grace) as child:
        assert await line(child.stream) == "up"
        started = trio.current_time()
    assert child.returncode == returncode
    used_up = sum(seconds for seconds in grace if seconds < 20)
    assert trio.current_time() - started >= used_up


def test_child_gets_two_seconds_for_each_step_by_default() -> None:
    """The docstring says so, and a user waits as long at the end of the program."""
    assert Grace() == (2.0, 2.0)
    assert Grace(stdin=0.5).terminate == 2.0


@pytest.mark.parametrize("closed_before", [False, True])
@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_large_last_output_does_not_block_its_exit(closed_before: bool) -> None:
    flood = "say('up'); sys.stdin.read(); say('x' * 1_000_000); sys.exit(5)"
    async with spawn(python(flood), grace=PATIENT) as child:
        assert await line(child.stream) == "up"
        if closed_before:
            await child.stream.aclose()
    assert child.returncode == 5


@pytest.mark.requirement("LIFE-19")
@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_that_closes_stdout_keeps_running() -> None:
    async with spawn(
        python("say('bye'); os.close(1); sys.stdin.read(); os._exit(4)"), grace=PATIENT
    ) as child:
        assert await rest(child.stream) == b"bye\n"
        assert child.returncode is None
    assert child.returncode == 4


GRANDCHILD = """
import subprocess
def grandchild(source, **options):
    source = "import signal, sys, time\\n" + source
    other = subprocess.Popen([sys.executable, "-I", "-S", "-c", source], **options)
    say(other.pid)
    return other
"""
STUBBORN = "signal.signal(15, signal.SIG_IGN); print('stubborn', flush=True); time.sleep(60)"


@pytest.mark.process
@pytest.mark.parametrize(
    "parent",
    [
        "grandchild('time.sleep(60)'); say('up'); sys.stdin.read()",
        "grandchild('time.sleep(60)').wait()",
        f"grandchild({STUBBORN!r}); sys.stdin.read()",
        f"grandchild({STUBBORN!r}).wait()",
    ],
)
async def test_child_group_is_killed_with_it(parent: str) -> None:
    async with spawn(python(GRANDCHILD + parent), grace=QUICK) as child:
        pid = int(await line(child.stream))
        if "stubborn" in parent:
            assert await line(child.stream) == "stubborn"
        assert alive(pid)
    assert not alive(pid)
    assert child.returncode is not None


@pytest.mark.process
@pytest.mark.parametrize("source", ["time.sleep(60)", STUBBORN])
@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.usefixtures("without_proc")
@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_killed_ends_the_stream_and_its_group(source: str, escaped: bool) -> None:
    """A surviving process holds the pipe, but the reader gets an end of file quickly."""
    leader = GRANDCHILD + f"grandchild({source!r}, start_new_session={escaped}); time.sleep(60)"
    with trio.fail_after(PATIENCE):
        async with spawn(python(leader), grace=Grace(20, 1.0)) as child:
            pid = int(await line(child.stream))
            if source == STUBBORN:
                assert await line(child.stream) == "stubborn"
            os.kill(child.pid, signal.SIGKILL)
            started = trio.current_time()
            assert await rest(child.stream) == b""
            assert trio.current_time() - started < 0.9
            assert child.returncode == -signal.SIGKILL
            if not escaped:  # even if `aclose` is not called
                await until(lambda: not alive(pid))
        assert alive(pid) == escaped
    if escaped:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(not LINUX, reason="other systems forget the bytes at the exit")
async def test_child_unread_input_is_counted_at_its_exit() -> None:
    """A client closes its stream first, and asks then whether the server has read a request."""
    words = "import select\nselect.select([0], [], [])\nos._exit(1)"
    async with spawn(python(words), grace=QUICK) as child:
        await child.stream.send_all(b"hello\n")
        await until(lambda: child.returncode is not None)
        await child.stream.aclose()
        assert child.unread == 6


@pytest.mark.usefixtures("without_proc")
@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_output_is_read_after_its_exit() -> None:
    """A daemon keeps the pipe open, so the output has no end of its own after the exit."""
    words = (
        GRANDCHILD
        + "grandchild('time.sleep(60)', start_new_session=True); say('x' * 50_000); os._exit(9)"
    )
    async with spawn(python(words), grace=QUICK) as child:
        pid = int(await line(child.stream))
        await until(lambda: child.returncode is not None)
        got = await rest(child.stream)
        assert got == b"x" * 50_000 + b"\n"
        await child.stream.send_all(b"anyone?\n")  # the daemon holds the other end
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not alive(pid))
        with pytest.raises(trio.BrokenResourceError):
            await child.stream.send_all(b"anyone?\n")
    assert child.returncode == 9


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_stream_closed_after_its_exit_is_at_its_end() -> None:
    """A read later is no misuse: the reader can't know that the connection was closed."""
    async with spawn(["echo", "unread"], grace=PATIENT) as child:
        await until(lambda: child.returncode is not None)
        await child.aclose()
        assert await child.stream.receive_some() == b""


async def test_child_group_gets_sigterm_once() -> None:
    """A server such as ours would exit at once at a second SIGTERM."""
    source = """
        count = 0
        def on_signal(*_):
            global count
            count += 1
        signal.signal(15, on_signal)
        print("hears", flush=True)
        while not count: time.sleep(0.01)
        time.sleep(0.3)
        print(count, file=sys.stderr, flush=True)
    """
    leader = GRANDCHILD + f"grandchild({textwrap.dedent(source)!r}); time.sleep(60)"
    async with spawn(python(leader), grace=Grace(0.05, 20), stderr="discard") as child:
        await line(child.stream)
        assert await line(child.stream) == "hears"
    assert child.stderr_tail == b"1\n"


@pytest.mark.usefixtures("each_kind_of_pipe")
def test_child_process_of_another_user_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It cannot be signalled: waiting for its end would take the whole grace."""

    def kill(pid: int, number: int) -> None:
        raise PermissionError

    child = unstarted_child(returncode=0, _tree=SimpleNamespace(find=lambda **_: [5001]))
    monkeypatch.setattr(os, "kill", kill)
    assert [child._signal_tree(signal.SIGTERM) for _ in range(2)] == [False, False]


def unstarted_child(**attributes: Any) -> ChildProcess:
    """Return an object without a process, whose signals a test takes."""
    child = ChildProcess.__new__(ChildProcess)
    child.pid, child.returncode = 5000, None
    child._sigterm_sent, child._tree_signals = False, {}
    for name, value in attributes.items():
        setattr(child, name, value)
    return child


def test_child_gets_no_second_sigterm_and_no_signal_after_its_exit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether we send it or the user does: our own server exits at once at the second."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda *signalled: sent.append(signalled))
    child = unstarted_child()
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGTERM)
    child.send_signal(signal.SIGINT)
    child._terminate()
    assert sent == [(5000, signal.SIGINT), (5000, signal.SIGTERM), (5000, signal.SIGINT)]
    child = unstarted_child()
    child._terminate()
    child._terminate()
    assert sent[3:] == [(5000, signal.SIGTERM)]
    child.returncode = 0
    child.send_signal(signal.SIGKILL)
    assert len(sent) == 4


def test_child_without_groups_is_terminated_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows, where a process that has exited meanwhile is an error of the system."""
    monkeypatch.setattr(_child, "_HAS_GROUPS", False)
    calls: list[str] = []

    def terminate() -> None:
        calls.append("terminate")
        raise PermissionError

    child = unstarted_child(_process=SimpleNamespace(terminate=terminate))
    assert child._signal(0) is False
    assert calls == []
    assert child._signal(signal.SIGTERM) is False
    assert calls == ["terminate"]


def test_child_tree_is_signalled_once_by_each_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ends meanwhile counts as found, because it may have started another one."""
    pids = [5001, 5002]
    sent: list[tuple[int, int]] = []

    def kill(pid: int, number: int) -> None:
        sent.append((pid, number))
        if pid == 5002:
            raise ProcessLookupError

    monkeypatch.setattr(os, "kill", kill)
    child = unstarted_child(_tree=SimpleNamespace(find=lambda **_: list(pids)))
    assert child._signal_tree(signal.SIGTERM)
    pids.pop()
    assert child._signal_tree(signal.SIGTERM)
    assert child._signal_tree(signal.SIGKILL)
    pids[:] = [5002]
    sent.append((0, 0))
    assert child._signal_tree(signal.SIGKILL)
    pids.clear()
    assert not child._signal_tree(signal.SIGKILL)
    assert sent == [
        (5001, signal.SIGTERM),
        (5002, signal.SIGTERM),
        (5001, signal.SIGKILL),
        (0, 0),
        (5002, signal.SIGKILL),
    ]


def test_child_stop_takes_its_grace_and_one_and_a_fifth_seconds_at_most() -> None:
    """The docstring of `spawn` says so."""
    assert pytest.approx(1.2) == _child._KILL_TIMEOUT + _child._STDERR_TIMEOUT


@pytest.mark.process
@pytest.mark.skipif(not LINUX, reason="other systems don't say which processes are zombies")
def test_child_group_of_zombies_is_recognized() -> None:
    """Nothing that can be signalled or waited for is left in it."""
    words = ["sh", "-c", "sleep 60 & exec true"]
    with subprocess.Popen(words, start_new_session=True) as leader:
        os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
        assert not _child._only_zombies(leader.pid)  # `sleep` runs
        os.killpg(leader.pid, signal.SIGKILL)
        wait_until(lambda: _child._only_zombies(leader.pid))
    assert not _child._only_zombies(-leader.pid)  # there is no such group


async def test_child_aclose_from_another_task_ends_it() -> None:
    """A read in progress sees the end of the stream, and a cancelled close can be repeated."""
    ended = []
    async with spawn(python("time.sleep(60)"), grace=QUICK) as child:

        async def read() -> None:
            ended.append(await child.stream.receive_some())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            await cancel_once_blocked(child.aclose)  # cancels only this wait
            nursery.start_soon(child.aclose)
            nursery.start_soon(child.aclose)
        assert ended == [b""]
        assert child.returncode == -signal.SIGTERM
        assert await child.stream.receive_some() == b""
        with pytest.raises(trio.ClosedResourceError):
            await child.stream.send_all(b"x")


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_stream_closed_by_the_user_stays_closed() -> None:
    async with spawn(python("sys.stdin.read()"), grace=PATIENT) as child:
        await child.stream.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await child.stream.receive_some()


async def test_child_processes_can_be_closed_in_any_order() -> None:
    async with spawn(["cat"], grace=PATIENT) as first, spawn(["cat"], grace=PATIENT) as second:
        await first.aclose()
        await second.stream.send_all(b"still here\n")
        assert await line(second.stream) == "still here"
    assert (first.returncode, second.returncode) == (0, 0)


DEAF = python(GRANDCHILD + f"signal.signal(15, signal.SIG_IGN); grandchild({STUBBORN!r}).wait()")


async def test_child_group_is_killed_on_cancellation() -> None:
    pid = 0
    with trio.CancelScope() as scope:
        async with spawn(DEAF, grace=QUICK) as child:
            pid = int(await line(child.stream))
            assert await line(child.stream) == "stubborn"
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert child.returncode == -signal.SIGKILL
    assert not alive(pid)


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_cancelled_while_starting_or_stopping_exits() -> None:
    for delay in (0.0, 0.0005, 0.002, 0.01, 0.05, 0.2):
        started: list[ChildProcess] = []
        with trio.move_on_after(delay):
            async with spawn(["cat"], grace=PATIENT) as child:
                started.append(child)
                await child.stream.send_all(b"x")
        assert all(child.returncode == 0 for child in started)


async def test_child_block_exception_is_not_wrapped() -> None:
    with pytest.raises(ZeroDivisionError):
        async with spawn(["cat"], grace=PATIENT) as child:
            raise ZeroDivisionError
    assert child.returncode == 0


@pytest.mark.process
@pytest.mark.parametrize("times", [1, 2])
def test_child_group_is_killed_on_ctrl_c(times: int) -> None:
    """The signal of the terminal reaches us, not the child.

    A second Ctrl+C does not leave the tree alive.
    """
    source = """
        import sys, trio
        from mcp_trio.streams._child import Grace, spawn
        async def main():
            async with spawn(sys.argv[1:], grace=Grace(0.5, 0.5)) as child:
                while chunk := await child.stream.receive_some():
                    sys.stdout.buffer.write(chunk)
                    sys.stdout.flush()
        try:
            trio.run(main)
        except KeyboardInterrupt:
            print("interrupted", child if False else "", flush=True)
        """
    words = [sys.executable, "-c", textwrap.dedent(source), *DEAF]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as client:
        assert client.stdout is not None
        pid = int(client.stdout.readline())
        assert client.stdout.readline() == b"stubborn\n"
        for _ in range(times):
            os.killpg(client.pid, signal.SIGINT)
            time.sleep(0.1)
        assert client.stdout.read() == b"interrupted \n"
    assert client.returncode == 0
    assert not alive(pid)


ADOPT = (
    "import ctypes; assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0\n"  # PR_SET_CHILD_SUBREAPER
)
ORPHANING_CLIENT = """
import os, sys, trio
from mcp_trio.streams._child import Grace, spawn
from tests.harness.world.waiting import cancel_once_blocked
async def main():
    async with spawn(sys.argv[1:], grace=Grace(20, 20)) as child:
        while await child.stream.receive_some(): pass
        started = trio.current_time()
    assert trio.current_time() - started < 5
trio.run(main)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("none left")
"""
IDLE_PARENT = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', *sys.argv[1:]])"


@pytest.mark.process
@pytest.mark.skipif(not LINUX, reason="stands in for process 1 of a container with a Linux call")
@pytest.mark.parametrize(
    "words", [[ADOPT + ORPHANING_CLIENT], [ADOPT + IDLE_PARENT, ORPHANING_CLIENT]]
)
def test_child_orphans_are_reaped_without_an_init_process(words: list[str]) -> None:
    """Either we are process 1 and must reap them, or another process is that does not reap them."""
    leader = python(GRANDCHILD + "grandchild('time.sleep(60)'); say('bye')")
    done = subprocess.run(
        [sys.executable, "-c", *words, *leader], capture_output=True, timeout=PATIENCE, check=False
    )
    assert (done.stdout, done.stderr) == (b"none left\n", b"")


@pytest.mark.parametrize(
    ("argv", "cwd", "text"),
    [
        (
            ["no-such-program-anywhere"],
            None,
            "cannot start no-such-program-anywhere: no program of that name on PATH",
        ),
        (["./nowhere"], None, "there is no such file"),
        (["{dir}/nowhere"], None, "there is no such file"),
        (["{dir}/plain"], None, "it may not be executed; allow it"),
        (["{dir}/orphan"], None, "the interpreter named in its first line is not"),
        (["orphan"], None, "the interpreter named in its first line is not"),
        (["./orphan"], "{dir}", "the interpreter named in its first line is not"),
        (["{dir}/text"], None, "a script needs a first line such as"),
        (["cat"], "{dir}/nowhere", "its working directory .*nowhere cannot be entered"),
        (["cat"], "{dir}/plain", "its working directory .*plain cannot be entered"),
    ],
)
async def test_child_start_failure_names_the_cause(
    argv: list[str], cwd: str | None, text: str, tmp_path: Path
) -> None:
    """The same ENOENT has several causes, and the user needs to know which one to fix."""
    for name, content, mode in (
        ("plain", "#!/bin/sh\n", 0o644),
        ("orphan", "#!/no/such/interpreter\n", 0o755),
        ("text", "just text\n", 0o755),
    ):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(mode)
    argv = [word.format(dir=tmp_path) for word in argv]
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    with pytest.raises(ConnectFailed, match=text) as failure:
        async with spawn(argv, cwd=cwd and Path(cwd.format(dir=tmp_path)), env={"PATH": path}):
            raise AssertionError
    assert isinstance(failure.value.__cause__, OSError)


@pytest.mark.parametrize("argv", ["python server.py", b"cat", []])
async def test_child_argv_must_be_a_sequence(argv: Any) -> None:
    with pytest.raises(TypeError, match="sequence of words"):
        async with spawn(argv):
            raise AssertionError


# --- stderr -------------------------------------------------------------------------------------


@pytest.mark.requirement("STDIO-4")
@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_stderr_of_ten_megabytes_does_not_block() -> None:
    source = (
        "sys.stderr.write(('x' * 99 + '\\n') * 100_000 + 'the end'); sys.stderr.flush(); say('up')"
    )
    async with spawn(python(source), stderr="discard", grace=PATIENT) as child:
        assert await line(child.stream) == "up"
    assert len(child.stderr_tail) == 64 * 1024
    assert child.stderr_tail.endswith(b"x\nthe end")


@pytest.mark.requirement("STDIO-4")
@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_stderr_callback_gets_lines() -> None:
    source = r"""
        for part in (
            b"one\ntw", b"o\r\n\nh\xc3", b"\xa9\nbad \xff\n", b"y" * 70_000 + b"\n",
            b"\x1b[31mred", b" end",
        ):
            os.write(2, part)
            time.sleep(0.05)
        """
    lines: list[str] = []
    async with spawn(python(source), stderr=lines.append, grace=PATIENT):
        pass
    assert lines[:5] == ["one", "two", "", "hé", "bad \ufffd"]
    assert "".join(lines[5:-1]) == "y" * 70_000
    assert lines[-1] == "\x1b[31mred end"


async def test_stderr_lines_have_a_largest_size_and_no_line_breaks() -> None:
    lines: list[str] = []
    splitter = _child._StderrLines(lines.append)
    for piece in (b"one\r\n\xc3", b"\xa9\n\n", b"x" * 65_535):
        await splitter.write(piece)
    assert lines == ["one", "\u00e9", ""]
    await splitter.write(b"y")
    assert lines[3:] == ["x" * 65_535 + "y"]
    splitter.close()  # nothing is left
    await splitter.write(b"z\nunfinished")
    splitter.close()
    assert lines[4:] == ["z", "unfinished"]


async def test_stderr_lines_without_a_callback_are_dropped() -> None:
    splitter = _child._StderrLines(None)
    await splitter.write(b"one\ntwo")
    splitter.close()


async def test_child_stderr_callback_failure_stops_its_calls(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A bug in the callback must not end the server, and the tail keeps every line."""
    lines = []

    def fail(text: str) -> None:
        lines.append(text)
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR, "mcp_trio"):
        async with spawn(
            python("os.write(2, b'one\\ntwo\\n')"), stderr=fail, grace=PATIENT
        ) as child:
            pass
    assert lines == ["one"]
    assert child.stderr_tail == b"one\ntwo\n"
    assert "not called again" in caplog.text


@contextmanager
def our_stderr(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Replace `sys.stderr` by a pipe, and yield its reading end."""
    reader, writer = os.pipe()
    with (
        os.fdopen(reader, "rb") as ours,
        os.fdopen(writer, "w") as theirs,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stderr", theirs)
        os.set_blocking(reader, False)
        yield ours.fileno()


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_stderr_is_forwarded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with our_stderr(monkeypatch) as seen:
        async with spawn(
            python("os.write(2, b'no newline'); sys.stdin.read()"), grace=PATIENT
        ) as child:
            with trio.fail_after(PATIENCE):
                await trio.lowlevel.wait_readable(seen)
            assert os.read(seen, 100) == b"no newline"
    assert child.stderr_tail == b"no newline"


@pytest.mark.process
@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_stderr_is_forwarded_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    got = 0
    with our_stderr(monkeypatch) as seen:
        source = (
            "sys.stderr.write('x' * 3_000_000); sys.stderr.flush(); say('up'); sys.stdin.read()"
        )
        async with spawn(python(source), grace=PATIENT) as child:
            with trio.fail_after(PATIENCE):
                while got < 3_000_000:
                    await trio.lowlevel.wait_readable(seen)
                    got += len(os.read(seen, 65536))
            assert await line(child.stream) == "up"
    assert got == 3_000_000


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_stderr_forwarded_to_terminal_is_escaped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server could otherwise retitle or clear the terminal; pieces of a character are joined."""
    ours, theirs = os.openpty()
    source = r"""
        for part in (b"\x1b]0;title\x07\x1b[2J\xe2\x80", b"\xae\r", b"\n\tb\xc2\x9bc\rd\n"):
            os.write(2, part)
            time.sleep(0.05)
        """
    with os.fdopen(ours, "rb"), os.fdopen(theirs, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        async with spawn(python(source), grace=PATIENT) as child:
            assert await rest(child.stream) == b""
        shown = os.read(ours, 1000)
    assert shown == b"\\u001b]0;title\\u0007\\u001b[2J\\u202e\r\n\tb\\u009bc\\rd\r\n"
    assert child.stderr_tail.startswith(b"\x1b]0;title")


@pytest.mark.process
@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_stderr_forwarding_drops_if_ours_is_blocked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The user's pager stops reading, which must not stop the server: lines are dropped instead."""
    got = bytearray()
    with our_stderr(monkeypatch) as seen:

        async def read_again() -> None:
            while not got.endswith(b"end"):
                with suppress(BlockingIOError):
                    got.extend(os.read(seen, 65536))
                await trio.sleep(0.01)

        source = (
            "sys.stderr.write('x' * 1_000_000); sys.stderr.flush(); say('up'); sys.stdin.read();"
            " time.sleep(1); os.write(2, b'end')"
        )
        async with (
            trio.open_nursery() as nursery,
            spawn(python(source), grace=PATIENT) as child,
        ):
            assert await line(child.stream) == "up"
            assert len(child.stderr_tail) == 64 * 1024
            assert os.get_blocking(sys.stderr.fileno())
            nursery.start_soon(read_again)
    assert len(got) < 500_000


@pytest.mark.process
async def test_child_stderr_is_lost_if_the_terminal_is_stopped() -> None:
    """The user has stopped the output, which must not stop the program."""
    ours, theirs = os.openpty()
    source = "sys.stderr.write('x' * 1_000_000); sys.stderr.flush(); say('up'); sys.stdin.read()"
    with (
        os.fdopen(ours, "rb", 0),
        os.fdopen(theirs, "wb", 0) as terminal,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stderr", terminal)
        async with spawn(python(source), grace=PATIENT) as child:
            assert await line(child.stream) == "up"
    assert len(child.stderr_tail) == 64 * 1024


async def test_stderr_that_takes_nothing_is_waited_for_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A server must not lose a second at each line, until our stderr takes bytes again."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    forwarder = _child._StderrForwarder(writer)

    async def seconds() -> float:
        start = trio.current_time()
        await forwarder.write(b"x" * 1_000_000)
        return trio.current_time() - start

    waited = pytest.approx(1.0, abs=0.1)
    try:
        assert [await seconds(), await seconds(), await seconds()] == [waited, 0.0, 0.0]
        with suppress(BlockingIOError):
            while os.read(reader, 65536):
                pass
        await forwarder.write(b"taken")
        assert [await seconds(), await seconds(), await seconds()] == [waited, 0.0, 0.0]
    finally:
        forwarder.close()
        os.close(reader)


@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_stderr_forwarding_survives_a_broken_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with our_stderr(monkeypatch) as seen:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, seen)
        os.close(null)
        source = "sys.stderr.write('x' * 1_000_000); sys.stderr.flush(); say('up')"
        async with spawn(python(source), grace=PATIENT) as child:
            assert await line(child.stream) == "up"
    assert len(child.stderr_tail) == 64 * 1024


async def test_child_description_has_the_exit_status_and_stderr() -> None:
    program = "sys.stderr.write('no disk\\n'); sys.exit(1)"
    async with spawn(python(program), stderr="discard") as child:
        assert await rest(child.stream) == b""
    assert child.describe() == " (exit status 1)\n  its stderr: no disk"


def test_cure_stands_before_a_program_s_own_words() -> None:
    assert with_cure("it ended.\n  its stderr: no disk", "Is it a server?") == (
        "it ended. Is it a server?\n  its stderr: no disk"
    )
    assert with_cure("it is mute", "Is it a server?") == "it is mute. Is it a server?"


@pytest.mark.process
@pytest.mark.parametrize("state", ["None", "io.StringIO()"])
def test_child_stderr_forwarding_works_without_sys_stderr(state: str) -> None:
    """A GUI program or a test runner has none, so lines go to descriptor 2, if that is open."""
    source = f"""
        import io, sys, trio
        from mcp_trio.streams._child import spawn
        async def main():
            async with spawn(["sh", "-c", "echo complaint >&2"]) as child:
                async for _ in child.stream: pass
            assert child.stderr_tail == b"complaint\\n"
        sys.stderr = {state}
        trio.run(main)
        """
    words = [sys.executable, "-c", textwrap.dedent(source)]
    done = subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, b"complaint\n")
    closed = ["sh", "-c", 'exec "$@" 2>&-', "sh", *words]
    assert subprocess.run(closed, timeout=PATIENCE, check=False).returncode == 0


@pytest.mark.process
@pytest.mark.usefixtures("without_proc")
@pytest.mark.usefixtures("each_kind_of_pipe")
async def test_child_stderr_held_by_a_daemon_does_not_block() -> None:
    leader = GRANDCHILD + (
        "grandchild('time.sleep(60)', start_new_session=True); os.write(2, b'bye');"
        " sys.stdin.read()"
    )
    with trio.fail_after(PATIENCE):
        async with spawn(python(leader), stderr="discard", grace=PATIENT) as child:
            pid = int(await line(child.stream))
    os.kill(pid, signal.SIGKILL)
    assert child.returncode == 0
    assert child.stderr_tail == b"bye"


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["{dir}/it.cmd", "100%"], "cannot start .*it.cmd: .* is a batch file"),
        (["cat"], "no program of that name on PATH"),
        (["{dir}/nowhere"], "there is no such file"),
    ],
)
async def test_child_start_failure_on_windows_names_the_cause(
    argv: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_child, "_WINDOWS", True)
    (tmp_path / "it.cmd").touch()
    with pytest.raises(ConnectFailed, match=text):
        async with spawn([word.format(dir=tmp_path) for word in argv], env={"Path": "C:\\none"}):
            raise AssertionError
