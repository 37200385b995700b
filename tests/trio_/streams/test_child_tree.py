"""Processes that a child has started are stopped with it. Real processes, on Linux only."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from mcp_trio.streams._child import Grace, spawn
from tests.harness.world.pipes import alive, line, python
from tests.harness.world.waiting import PATIENCE

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="processes are found in /proc"
)

QUICK = Grace(stdin=0.15, terminate=0.3)
PATIENT = Grace(stdin=2 * PATIENCE, terminate=2 * PATIENCE)  # no working test may need it

PRELUDE = """
import subprocess
def start(source, **options):
    source = "import os, signal, subprocess, sys, time\\n" + source
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", source], stdout=1, stdin=subprocess.DEVNULL,
        start_new_session=True, **options
    )
def daemon(source, **options):
    "Start a process in a session of its own, whose parent exits."
    if os.fork() == 0:
        start(source, **options)
        os._exit(0)
    os.wait()
"""
SLEEP = "print(os.getpid(), flush=True); time.sleep(60)"
STUBBORN = "signal.signal(15, signal.SIG_IGN); " + SLEEP
NESTED = (
    "subprocess.Popen([sys.executable, '-I', '-S', '-c', 'import os, time; ' + "
    f"{SLEEP!r}]); os._exit(0)"
)


@pytest.mark.parametrize(
    "source",
    [
        f"start({SLEEP!r}); sys.stdin.read()",
        f"start({STUBBORN!r}); sys.stdin.read()",
        f"start({SLEEP!r}); time.sleep(60)",
        "say(start('time.sleep(60)').pid); os._exit(0)",
        f"daemon({SLEEP!r}); sys.stdin.read()",
        f"daemon({STUBBORN!r}); time.sleep(60)",
        f"start({NESTED!r}); sys.stdin.read()",
        f"start({SLEEP!r}, env={{}}); sys.stdin.read()",
        f"start({SLEEP!r}, env={{}}); time.sleep(60)",
    ],
    ids=[
        "session",
        "deaf session",
        "session of a child that has to be killed",
        "session of a child that exits by itself",
        "orphan",
        "deaf orphan",
        "orphan of a session",
        "cleared environment",
        "cleared environment of a child that has to be killed",
    ],
)
async def test_child_process_that_left_the_group_is_stopped(source: str) -> None:
    with trio.fail_after(PATIENCE):
        async with spawn(python(PRELUDE + source), grace=QUICK) as child:
            pid = int(await line(child.stream))
    assert not alive(pid)


async def test_child_process_that_left_the_group_may_end_in_order() -> None:
    """It gets SIGTERM once, and the rest of the grace."""
    source = textwrap.dedent("""
        heard = []
        signal.signal(15, lambda *_: heard.append(1))
        print(os.getpid(), flush=True)
        while not heard: time.sleep(0.01)
        time.sleep(0.3)
        print(len(heard), file=sys.stderr, flush=True)
    """)
    leader = PRELUDE + f"start({source!r}); sys.stdin.read()"
    async with spawn(python(leader), stderr="discard", grace=PATIENT) as child:
        pid = int(await line(child.stream))
    assert not alive(pid)
    assert child.stderr_tail == b"1\n"


async def test_child_that_waits_for_a_process_outside_the_group_may_end_in_order() -> None:
    """Such as a launcher that ignores SIGTERM: what it waits for gets it at the same time."""
    leader = PRELUDE + textwrap.dedent(f"""
        import signal
        signal.signal(15, lambda *_: None)  # what it starts has the usual reaction
        sys.exit(7 if start({SLEEP!r}).wait() == -15 else 1)
    """)
    with trio.fail_after(PATIENCE):
        grace = PATIENT._replace(stdin=0.15)
        async with spawn(python(leader), grace=grace) as child:
            await line(child.stream)
    assert child.returncode == 7


async def test_child_processes_that_keep_forking_are_stopped() -> None:
    """A process that appears while the others are being killed is killed as well."""
    source = textwrap.dedent("""
        signal.signal(15, signal.SIG_IGN)
        print(os.getpid(), flush=True)
        end = time.monotonic() + 8
        while time.monotonic() < end:
            if os.fork():
                os._exit(0)
            os.setsid()
            time.sleep(0.01)
    """)
    with trio.fail_after(PATIENCE):
        async with spawn(
            python(PRELUDE + f"start({source!r}); sys.stdin.read()"), grace=QUICK
        ) as child:
            await line(child.stream)
            mark = child._tree._mark
    for _ in range(20):
        assert not processes_with(mark)
        await trio.sleep(0.005)


def processes_with(mark: bytes) -> list[Path]:
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in each.read_bytes():
                found.append(each)
    return found


async def test_child_daemon_without_the_mark_is_left_alone() -> None:
    """The documented way to start what is meant to outlive the server."""
    leader = PRELUDE + f"daemon({SLEEP!r}, env={{}}); sys.stdin.read()"
    async with spawn(python(leader), grace=PATIENT) as child:
        pid = int(await line(child.stream))
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


async def test_child_processes_of_others_are_left_alone() -> None:
    async with spawn(["cat"], grace=PATIENT) as other:
        async with spawn(["cat"], grace=PATIENT):
            pass
        await other.stream.send_all(b"still here\n")
        assert await line(other.stream) == "still here"


async def test_child_tree_has_that_of_a_nested_client() -> None:
    """A client that is itself a child marks its children for both."""
    nested = """
        import sys, trio
        from mcp_trio.streams._child import spawn
        async def main():
            async with spawn(sys.argv[1:]) as child:
                print(await child.stream.receive_some(), flush=True)
                await trio.sleep(60)
        trio.run(main)
    """
    inner = python(PRELUDE + f"daemon({SLEEP!r}); time.sleep(60)")
    words = [sys.executable, "-c", textwrap.dedent(nested), *inner]
    async with spawn(words, grace=Grace(0.1, 0.3)) as child:
        pid = int((await line(child.stream)).strip("b'\\n"))
        os.kill(child.pid, signal.SIGKILL)  # it cannot stop its own child
    assert not alive(pid)
