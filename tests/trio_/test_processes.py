"""stdio with real processes: our servers and a foreign client, our client and foreign servers.

`REAL` is a server file as users write one. `PLAYED` is a server of the standard library only, which
starts fast and behaves at each step as the test says.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import trio
import trio.testing

from mcp_core import CallTimeout, ConnectFailed, ConnectionLost
from mcp_trio import Grace, connect, connect_stdio
from tests.harness.jsonrpc import D, E, cancelled, text_of
from tests.harness.wire.client import CallTask
from tests.harness.wire.lines import Wire
from tests.harness.world.pipes import alive, until
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

QUICK = Grace(stdin=0.2, terminate=0.2)
LINUX = sys.platform == "linux"
MIB = 1024 * 1024

REAL = """
import logging, os, subprocess, sys, threading, time, warnings
from pathlib import Path
from typing import Any

import trio
import mcp_trio

server = mcp_trio.Server("real")


@server.tool
def shout() -> str:
    "Write to stdout in all ways there are."
    print("print")
    sys.stdout.write("write, without a newline")
    sys.stdout.buffer.write(b"buffer")
    sys.__stdout__.write("the other name")
    os.write(1, b"descriptor")
    os.system("echo shell")
    subprocess.run(["echo", "child"], check=True)
    print("x" * 100_000, flush=True)
    return "done"


@server.tool
async def read_stdin() -> str:
    "Read from stdin in all ways there are."
    child = subprocess.run(["cat"], capture_output=True)
    return repr((sys.stdin.read(), os.read(0, 100), child.stdout))


@server.tool
def facts() -> dict[str, Any]:
    "Look around."
    return {
        "threads": [thread.name for thread in threading.enumerate()],
        "root handlers": [repr(handler) for handler in logging.getLogger().handlers],
        "root level": logging.getLogger().level,
        "handlers": [repr(handler) for handler in logging.getLogger("mcp_trio").handlers],
    }


@server.tool
async def wait(mark: str, progress: bool = False, context: mcp_trio.Context | None = None) -> None:
    "Wait, and leave a mark at the end."
    Path(mark).write_text("started")
    try:
        step = 0
        while progress:
            step += 1
            await context.progress(step, message="x" * 10_000)
            await trio.sleep(0.001)
        await trio.sleep_forever()
    finally:
        Path(mark).write_text("finally")


@server.tool
def block(mark: str) -> None:
    "Block everything."
    Path(mark).write_text("started")
    time.sleep(60)


@server.tool
async def spin(mark: str, seconds: float) -> str:
    "Never let anyone else run."
    Path(mark).write_text(str(os.getpid()))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "spun"


@server.tool
def much() -> str:
    "Say much."
    return "x" * 3_000_000


@server.tool(thread=True)
def block_a_thread(mark: str) -> None:
    "Block a thread."
    Path(mark).write_text("started")
    time.sleep(60)


@server.tool
async def late(mark: str) -> str:
    "Take half a second."
    Path(mark).write_text("started")
    await trio.sleep(0.5)
    return "in time"


if __name__ == "__main__":
    mcp_trio.run(server, grace=float(*(sys.argv[1:] or [0.5])))
    print("after run", file=sys.stderr)
"""


class Child(NamedTuple):
    """Our server, at the other end of pipes that the test holds."""

    process: trio.Process
    wire: Wire
    stderr: bytearray

    async def ended(self) -> int:
        with trio.fail_after(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def started(tmp_path: Path, version: str = D, *, grace: float = 0.5) -> AsyncIterator[Child]:
    """`REAL` as a child process, after the handshake and with its stderr read."""
    file = tmp_path / "server.py"
    file.write_text(REAL)
    pipe = -1
    process = await trio.lowlevel.open_process(
        [sys.executable, str(file), str(grace)],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    )
    assert process.stdio is not None
    assert process.stderr is not None
    stderr = bytearray()

    async def read_stderr() -> None:
        assert process.stderr is not None
        async for data in process.stderr:
            stderr.extend(data)

    wire = Wire(process.stdio, version)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read_stderr)
            await wire.shake_hands()
            yield Child(process, wire, stderr)
            with trio.fail_after(PATIENCE):
                await process.stdio.aclose()
                await process.wait()
    finally:
        with trio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
                await process.wait()
            await process.stdio.aclose()
            await process.stderr.aclose()


async def started_in(mark: Path, word: str = "started") -> None:
    await until(lambda: mark.exists() and mark.read_text() == word)


# --- our server ---------------------------------------------------------------------------------


@pytest.mark.requirement("STDIO-2", "STDIO-1")
@pytest.mark.parametrize("version", [D, E])
async def test_process_output_of_handlers_goes_to_stderr(version: str, tmp_path: Path) -> None:
    """Print, raw descriptors and child processes can't break the protocol on stdout."""
    async with started(tmp_path, version) as child:
        for id in range(2):
            assert text_of(await child.wire.call(id, "shout")) == "done"
        assert await child.wire.is_alive()
        await child.process.stdin.aclose()  # type: ignore[union-attr]
        assert await child.wire.receive_all() == []
        assert await child.ended() == 0
    words = (
        "print",
        "without a newline",
        "buffer",
        "the other name",
        "descriptor",
        "shell",
        "child",
        "x" * 100_000,
    )
    for word in words:
        assert child.stderr.count(word.encode()) >= 2, word


async def test_process_stdin_of_handlers_is_empty(tmp_path: Path) -> None:
    async with started(tmp_path) as child:
        await child.wire.send(child.wire.calling(1, "read_stdin"), child.wire.asking(2, "ping"))
        responses = {
            message["id"]: message
            for message in (await child.wire.receive(), await child.wire.receive())
        }
        assert text_of(responses[1]) == "('', b'', b'')"
        assert responses[2]["result"] == {}


async def test_process_server_has_no_threads_and_no_logger(tmp_path: Path) -> None:
    async with started(tmp_path) as child:
        answer = await child.wire.call(1, "facts")
        assert answer["result"]["structuredContent"] == {
            "threads": ["MainThread"],
            "root handlers": [],
            "root level": 30,
            "handlers": [],
        }


STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.mark.parametrize("number", STATUS, ids=lambda number: number.name)
@pytest.mark.parametrize("tool", [None, "wait", "block_a_thread"])
async def test_process_first_signal_stops_the_server(
    tool: str | None, number: signal.Signals, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    async with started(tmp_path) as child:
        if tool is not None:
            await child.wire.send(child.wire.calling(1, tool, {"mark": str(mark)}))
            await started_in(mark)
        child.process.send_signal(number)
        assert await child.ended() == STATUS[number]
    assert b"Traceback" not in child.stderr
    if tool == "wait":
        assert mark.read_text() == "finally"


async def test_process_second_signal_stops_a_blocked_server(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with started(tmp_path) as child:
        await child.wire.send(child.wire.calling(1, "block", {"mark": str(mark)}))
        await started_in(mark)
        with trio.fail_after(PATIENCE):
            while child.process.returncode is None:  # the second is lost if it comes too early
                child.process.send_signal(signal.SIGINT)
                with trio.move_on_after(0.2):
                    await child.process.wait()
        assert await child.ended() == -signal.SIGINT


async def test_process_handler_that_never_yields_blocks_but_loses_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with started(tmp_path) as child:
        wire = child.wire
        await wire.send(wire.calling(11, "spin", {"mark": str(mark), "seconds": 0.3}))
        await started_in(mark, str(child.process.pid))
        # It ends before it can be cancelled.
        await wire.send(cancelled(11), wire.calling(12, "facts"), wire.asking(13, "ping"))
        assert text_of(await wire.receive()) == "spun"
        assert {(await wire.receive())["id"], (await wire.receive())["id"]} == {12, 13}
        assert await wire.is_alive()


@pytest.mark.requirement("STDIO-11", "LIFE-19")
async def test_process_end_of_stdin_stops_the_server(tmp_path: Path) -> None:
    async with started(tmp_path) as child:
        await child.process.stdin.aclose()  # type: ignore[union-attr]
        assert await child.ended() == 0
        assert await child.wire.receive_all() == []
    assert b"Traceback" not in child.stderr


async def test_process_end_of_stdin_lets_handlers_answer(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with started(tmp_path, grace=PATIENCE) as child:
        await child.wire.send(child.wire.calling(1, "late", {"mark": str(mark)}))
        await started_in(mark)
        await child.process.stdin.aclose()  # type: ignore[union-attr]
        [answer] = await child.wire.receive_all()
        assert text_of(answer) == "in time"
        assert await child.ended() == 0


async def test_process_signal_after_the_end_of_stdin_stops_at_once(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with started(tmp_path) as child:
        await child.wire.send(child.wire.calling(1, "wait", {"mark": str(mark)}))
        await started_in(mark)
        await child.process.stdin.aclose()  # type: ignore[union-attr]
        await trio.sleep(0.1)
        child.process.terminate()
        assert await child.ended() == 143
    assert mark.read_text() == "finally"


async def test_process_client_that_stops_reading_ends_the_server(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with started(tmp_path) as child:
        await child.process.stdout.aclose()  # type: ignore[union-attr]
        await child.wire.send(
            child.wire.calling(1, "wait", {"mark": str(mark), "progress": True}, progressToken=1)
        )
        assert await child.ended() == 0  # with stdin still open
    assert mark.read_text() == "finally"
    assert b"Traceback" not in child.stderr


async def test_process_disconnect_within_a_response_ends_the_server(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with started(tmp_path) as child:
        wire = child.wire
        await wire.send(wire.calling(11, "wait", {"mark": str(mark)}))
        await started_in(mark)
        await wire.send(wire.calling(12, "much"))
        assert await wire.stream.receive_some(1000)
        await child.process.stdout.aclose()  # type: ignore[union-attr]
        assert await child.ended() == 0  # with stdin still open
    assert mark.read_text() == "finally"
    assert b"Traceback" not in child.stderr


@pytest.mark.skipif(not LINUX, reason="reads /proc")
async def test_process_200_000_unread_ping_responses_use_bounded_memory(tmp_path: Path) -> None:
    """The server reads no more while the client doesn't read, yet every ping is answered later."""
    number, at_once, sent = 200_000, 1000, 0

    async with started(tmp_path) as child:

        def resident() -> int:
            pages = Path(f"/proc/{child.process.pid}/statm").read_text().split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")

        async def send_all() -> None:
            nonlocal sent
            for first in range(0, number, at_once):
                await child.wire.send(
                    *(child.wire.asking(n, "ping") for n in range(first, first + at_once))
                )
                sent += at_once

        before = resident()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_all)
            seen = -1
            while seen < sent:  # until the sender has to wait
                seen = sent
                await trio.sleep(0.3)
            assert sent < number
            assert resident() - before < 32 * MIB
            answered = 0
            with trio.fail_after(PATIENCE):
                while answered < number:
                    answered += (await child.wire.stream.receive_some(MIB)).count(b"\n")
            assert resident() - before < 32 * MIB
        assert await child.wire.is_alive()


@pytest.mark.skipif(not LINUX, reason="reads /proc")
async def test_process_300_mib_without_newline_use_bounded_memory(tmp_path: Path) -> None:
    async with started(tmp_path) as child:

        def resident() -> int:
            pages = Path(f"/proc/{child.process.pid}/statm").read_text().split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")

        before = resident()
        for _ in range(300):
            await child.wire.stream.send_all(b"x" * MIB)
        assert resident() - before < 32 * MIB
        await child.wire.send("")
        assert (await child.wire.receive())["error"]["code"] == -32700
        assert await child.wire.is_alive()


# --- our client ---------------------------------------------------------------------------------

PLAYED = textwrap.dedent("""
    import json, os, signal, sys, time

    versions, plan = sys.argv[1].split(","), sys.argv[2]

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def at(step):
        if step == plan:
            die()

    def send(message, step):
        data = json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\\n"
        at("before " + step)
        if plan == "within " + step:
            os.write(1, data[: len(data) // 2])
            die()
        os.write(1, data)
        at("after " + step)

    def answer(id, result, step):
        send({"id": id, "result": {"resultType": "complete"} | result}, step)

    if plan.startswith("stderr"):
        for _ in range(160):
            os.write(2, b"x" * 65_535 + b"\\n")
    if plan == "exits":
        sys.stderr.write("what is wrong\\nand what to do\\n")
        sys.exit(3)
    if plan == "stays":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if plan == "idle":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    if plan == "mute":
        os.close(1)
    at("start")
    for line in sys.stdin:
        request = json.loads(line)
        method, id = request["method"], request.get("id")
        at("hearing " + method)
        if plan == "dies when probed" and method == "server/discover":
            sys.exit(1)
        if method == "server/discover" and versions[0] >= "2026":
            found = {
                "supportedVersions": versions, "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private",
            }
            answer(id, found, "discovery")
        elif method == "initialize":
            opened = {
                "protocolVersion": versions[-1], "capabilities": {"tools": {}},
                "serverInfo": {"name": "p", "version": "1"},
            }
            answer(id, opened, "opening")
        elif method == "tools/call" and request["params"]["name"] == "steps":
            token = request["params"]["_meta"]["progressToken"]
            params = {"progressToken": token, "progress": 1}
            send({"method": "notifications/progress", "params": params}, "progress")
            answer(id, {"content": [{"type": "text", "text": str(os.getpid())}]}, "answer")
        elif method == "tools/call" and request["params"]["name"] == "die":
            if plan == "idle":
                signal.setitimer(signal.ITIMER_REAL, 0.1)
            elif plan == "closes stdout":
                os.close(1)
            elif plan == "closes stdin":
                os.close(0)
                time.sleep(60)
        elif method == "tools/call":
            pass  # never answered
        elif id is not None:
            say({"id": id, "error": {"code": -32601, "message": "unknown"}}, "refusal")
    while plan == "stays":
        time.sleep(60)
""")


def played(plan: str = "", version: str = E) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", PLAYED, version, plan]


OPENING = "during the opening"
JUST_OPEN = "so early that it is chance whether the client ever sees it open"
CALLING = "during the calls"
STEPS = [
    (E, "start", OPENING),
    (E, "hearing server/discover", OPENING),
    (E, "before discovery", OPENING),
    (E, "within discovery", OPENING),
    (E, "after discovery", JUST_OPEN),
    (E, "hearing tools/call", CALLING),
    (E, "before progress", CALLING),
    (E, "within progress", CALLING),
    (E, "after progress", CALLING),
    (E, "before answer", CALLING),
    (E, "within answer", CALLING),
    (E, "after answer", CALLING),
    (E, "hearing notifications/cancelled", CALLING),
    (E, "idle", CALLING),
    (D, "start", OPENING),
    (D, "hearing initialize", OPENING),
    (D, "before opening", OPENING),
    (D, "within opening", OPENING),
    (D, "after opening", JUST_OPEN),
    (D, "hearing notifications/initialized", JUST_OPEN),
    (D, "within answer", CALLING),
]


@pytest.mark.requirement("LIFE-17", "ERR-10")
@pytest.mark.parametrize(("version", "step", "when"), STEPS)
async def test_process_killed_server_fails_every_call_at_once(
    version: str, step: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls have no timeout: only the death of the server ends them."""
    failures: list[BaseException] = []
    pids: list[int] = []
    really: Any = trio.lowlevel.open_process

    async def open_process(*args: Any, **options: Any) -> trio.Process:
        process: trio.Process = await really(*args, **options)
        pids.append(process.pid)
        return process

    monkeypatch.setattr(trio.lowlevel, "open_process", open_process)

    async def call(client: Any, *args: Any, **options: Any) -> None:
        try:
            await client.call_tool(*args, timeout=None, **options)
        except Exception as exc:  # noqa: BLE001 - the test examines it
            failures.append(exc)

    async def use() -> None:
        async with (
            connect_stdio(
                played(step, version), versions=[version], stderr="discard", grace=QUICK
            ) as client,
            trio.open_nursery() as nursery,
        ):
            for _ in range(3):
                nursery.start_soon(call, client, "never")
            await call(client, "steps", progress=lambda *_: None)
            with trio.move_on_after(0.01):
                await call(client, "never")
            await call(client, "die")

    with trio.fail_after(PATIENCE):
        refused = ""
        try:
            await use()
        except ConnectFailed as exc:
            refused = str(exc)
    if refused:
        assert when != CALLING
        assert refused.endswith("(exit status -9, signal 9)")
    else:
        assert when != OPENING
        assert len(failures) >= 4
        assert {type(failure) for failure in failures} == {ConnectionLost}
    [pid] = pids
    assert not alive(pid)


@pytest.mark.requirement("LIFE-17", "ERR-10")
@pytest.mark.parametrize("plan", ["closes stdout", "closes stdin"])
async def test_process_server_that_closes_its_pipes_fails_every_call(plan: str) -> None:
    """The process lives on, so its exit can't tell the client; leaving the block kills it."""
    failures: list[BaseException] = []

    async def call(name: str, text: str = "") -> None:
        with pytest.raises(ConnectionLost) as caught:
            await client.call_tool(name, {"text": text}, timeout=None)
        failures.append(caught.value)

    with trio.fail_after(PATIENCE):
        async with connect_stdio(
            played(plan), versions=[E], stderr="discard", grace=QUICK
        ) as client:
            result = await client.call_tool("steps", progress=lambda *_: None)
            pid = int(result.text)
            async with trio.open_nursery() as nursery:
                for name in "never", "never", "die":
                    nursery.start_soon(call, name)
                await trio.testing.wait_all_tasks_blocked()
                if (
                    plan == "closes stdin"
                ):  # it is noticed at the next write, which may be interrupted
                    await call("never", "x" * MIB)
            assert len(failures) == 3 + (plan == "closes stdin")
            assert alive(pid)
    assert not alive(pid)


async def test_process_server_that_closes_before_answering_fails_to_connect() -> None:
    with (
        trio.fail_after(PATIENCE),
        pytest.raises(ConnectFailed, match="ended the connection before it was open"),
    ):
        await connect_stdio(
            played("mute"), versions=[E], stderr="discard", grace=QUICK
        ).__aenter__()


async def test_process_blocked_server_times_out_and_is_killed(tmp_path: Path) -> None:
    """A handler that never yields blocks all other calls, and only a kill ends its process."""
    file, mark = tmp_path / "server.py", tmp_path / "mark"
    file.write_text(REAL)

    async def call(*args: Any) -> None:
        with pytest.raises(CallTimeout):
            await client.call_tool(*args, timeout=0.5)

    with trio.fail_after(PATIENCE):
        async with connect_stdio(
            [sys.executable, str(file)], stderr="discard", grace=QUICK
        ) as client:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call, "spin", {"mark": str(mark), "seconds": 60})
                await until(lambda: mark.exists() and mark.read_text() != "")
                pid = int(mark.read_text())
                nursery.start_soon(call, "facts")
            assert alive(pid)
    assert not alive(pid)


@pytest.mark.parametrize("plan", ["stderr", "stderr and all revisions"])
@pytest.mark.parametrize("stderr", ["discard", "lines"])
async def test_process_stderr_of_ten_megabytes_does_not_block(plan: str, stderr: str) -> None:
    lines: list[str] = []
    handling: Any = lines.append if stderr == "lines" else "discard"
    versions = [E] if plan == "stderr" else [E, D]
    with trio.fail_after(PATIENCE):
        async with connect_stdio(
            played("stderr"), versions=versions, stderr=handling, grace=QUICK
        ) as client:
            await client.call_tool("steps", progress=lambda *_: None)
    if stderr == "lines":
        assert len(lines) == 160


@pytest.mark.requirement("PROBE-2")
async def test_process_server_that_exits_at_the_probe_is_restarted() -> None:
    with trio.fail_after(PATIENCE):
        async with connect_stdio(
            played("dies when probed", f"{E},{D}"), stderr="discard", grace=QUICK
        ) as client:
            assert client.peer.dialect.version == D
        with pytest.raises(ConnectFailed, match="exit status 1"):
            await connect_stdio(
                played("dies when probed"), versions=[E], stderr="discard"
            ).__aenter__()


async def test_process_server_that_cannot_start_shows_its_stderr() -> None:
    with pytest.raises(ConnectFailed) as caught:
        await connect(played("exits")).__aenter__()
    assert str(caught.value).splitlines()[1:] == [
        "  its stderr: what is wrong",
        "  its stderr: and what to do",
    ]
    assert "(exit status 3)" in str(caught.value)


@pytest.mark.parametrize("command", ["true", "false"])
async def test_process_program_that_is_not_a_server_fails_to_connect(command: str) -> None:
    for _ in range(10):  # they exit before or after our first message, at random
        with trio.fail_after(PATIENCE), pytest.raises(ConnectFailed):
            await connect_stdio([command], grace=QUICK, stderr="discard").__aenter__()


@pytest.mark.requirement("LIFE-18", "STDIO-10")
async def test_process_server_that_does_not_exit_is_killed() -> None:
    pid = 0
    with trio.fail_after(PATIENCE):
        async with connect_stdio(
            played("stays"), versions=[E], stderr="discard", grace=QUICK
        ) as client:
            result = await client.call_tool("steps", progress=lambda *_: None)
            pid = int(result.content[0].text)  # type: ignore[union-attr]
            assert alive(pid)
    assert not alive(pid)


async def test_process_block_exception_is_not_wrapped() -> None:
    async def use() -> None:
        async with connect_stdio(played(), versions=[E], stderr="discard", grace=QUICK):
            raise KeyError("of the block")

    with pytest.raises(KeyError, match="of the block"):
        await use()


async def test_process_clients_are_closed_in_any_order() -> None:
    options: dict[str, Any] = {"versions": [E], "stderr": "discard", "grace": QUICK}
    with trio.fail_after(PATIENCE):
        async with (
            connect_stdio(played(), **options) as one,
            connect_stdio(played(), **options) as two,
        ):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(one.aclose)
                nursery.start_soon(one.aclose)
            await two.ping()
            with pytest.raises(ConnectionLost, match="the client was closed"):
                await one.ping()
            await two.aclose()
            await one.aclose()


async def test_process_one_killed_server_fails_its_own_call() -> None:
    """Eight servers run side by side, and the seven others answer as if nothing happened."""
    outcomes: dict[int, Any] = {}

    async def use(n: int) -> None:
        try:
            plan = "before answer" if n == 3 else ""
            async with connect_stdio(
                played(plan), versions=[E], stderr="discard", grace=QUICK
            ) as client:
                outcomes[n] = await client.call_tool("steps", progress=lambda *_: None)
        except ConnectionLost as exc:
            outcomes[n] = exc

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for n in range(8):
                nursery.start_soon(use, n)
    assert [n for n, outcome in outcomes.items() if isinstance(outcome, ConnectionLost)] == [3]


async def test_process_our_client_is_answered_by_our_server(tmp_path: Path) -> None:
    """The newest revision is chosen, and a cancelled call runs the handler's `finally` block."""
    file, mark = tmp_path / "server.py", tmp_path / "mark"
    file.write_text(REAL)
    received: list[float] = []
    async with connect([sys.executable, str(file)]) as client:
        assert client.peer.dialect.version == E
        assert (await client.call_tool("shout")).content
        with trio.CancelScope() as scope:

            def step(progress: float, *_: object) -> None:
                received.append(progress)
                if progress == 3:
                    scope.cancel()

            await client.call_tool("wait", {"mark": str(mark), "progress": True}, progress=step)
        assert received[:3] == [1, 2, 3]  # all that arrives with the third is reported as well
        await until(lambda: mark.read_text() == "finally")
        await client.ping()


CLIENT = """
import sys
import trio
import mcp_trio

async def main():
    async with mcp_trio.connect_stdio(sys.argv[1:], stderr="discard") as client:
        result = await client.call_tool("steps", progress=lambda *_: None)
        print(result.content[0].text, flush=True)
        await client.call_tool("never", timeout=None)

try:
    trio.run(main)
except BaseException as exc:
    print(repr(exc), flush=True)
"""


async def test_process_ctrl_c_raises_keyboard_interrupt_and_leaves_no_child() -> None:
    """The user's program can handle the interrupt, since trio raises it after the cleanup."""
    # In one process group, as at a terminal. Only the client gets the signal, since the child has
    # its own session.
    command, pipe = [sys.executable, "-c", CLIENT, *played()], -1
    process = await trio.lowlevel.open_process(
        command, stdin=pipe, stdout=pipe, start_new_session=True
    )
    assert process.stdio is not None
    try:
        async with process.stdio:
            wire = Wire(process.stdio)
            pid = int(await wire.next_line())
            assert alive(pid)
            os.killpg(process.pid, signal.SIGINT)
            assert await wire.next_line() == b"KeyboardInterrupt()"
    finally:
        with trio.move_on_after(PATIENCE, shield=True):
            assert await process.wait() == 0
    assert not alive(pid)


@pytest.mark.requirement("STDIO-1", "STDIO-3", "STDIO-5", "STDIO-9")
@pytest.mark.parametrize("version", [D, E])
async def test_process_client_sends_nothing_but_messages(version: str, tmp_path: Path) -> None:
    """`tee` records stdin: line breaks in arguments are escaped, and no printed line gets in."""
    record = tmp_path / "stdin"
    command = ["sh", "-c", 'tee "$0" | "$@"', str(record), *played("", version)]
    with trio.fail_after(PATIENCE):
        async with connect_stdio(
            command, versions=[version], stderr="discard", grace=QUICK
        ) as client:
            print("for nobody but the tester", flush=True)
            await client.call_tool("steps", {"text": "a\nb\r\u2028"}, progress=lambda *_: None)
            with trio.move_on_after(0.01):
                await client.call_tool("never")
    messages = [json.loads(line) for line in record.read_bytes().decode().split("\n")[:-1]]
    assert {message["jsonrpc"] for message in messages} == {"2.0"}
    assert [message["method"] for message in messages[-3:]] == [
        "tools/call",
        "tools/call",
        "notifications/cancelled",
    ]


async def test_process_connecting_can_be_cancelled_at_any_moment() -> None:
    """The steps differ in each run, since the system takes part. So many moments are tried."""
    for n in range(30):
        with trio.move_on_after(0.003 * n), trio.fail_after(PATIENCE):
            async with connect_stdio(
                played("", f"{E},{D}"), stderr="discard", grace=QUICK
            ) as client:
                await client.call_tool("steps", progress=lambda *_: None)
                await client.call_tool("never")


CHILD = """
import mcp_trio, trio
server = mcp_trio.Server("child")
@server.tool
async def wait() -> None:
    "Wait."
    await trio.sleep_forever()
mcp_trio.run(server)
"""


async def test_clients_of_child_processes_close_independently(nursery: trio.Nursery) -> None:
    command = [sys.executable, "-c", CHILD]
    with trio.fail_after(PATIENCE):
        async with connect(command) as one, connect(command) as two:
            calls = [CallTask(nursery, partial(each.call_tool, "wait")) for each in (one, two)]
            await one.ping()
            await one.aclose()
            await two.ping()
            nursery.start_soon(two.aclose)
            for call in calls:
                await call.ended.wait()
                assert isinstance(call.error, ConnectionLost)
