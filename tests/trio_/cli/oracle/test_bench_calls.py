"""`mcp-trio bench` with scripts, recordings, its client, sessions and progress."""

from __future__ import annotations

import json
import os
import signal
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

import mcp_trio
from mcp_core import ConnectFailed
from mcp_trio.cli import main
from mcp_trio.cli.oracle import _bench, _bench_calls, _bench_once
from mcp_trio.oracle.bench._process import ListenerMeter, NoMeter
from mcp_trio.oracle.fuzz._echo import Echo
from tests.trio_.oracle.bench.fake_load import FakeLoad

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp_trio.cli._session import Target
    from mcp_trio.oracle.bench._requests import Work

URL = "http://127.0.0.1:1/mcp"
REMOTE = "http://192.0.2.1/mcp"
WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--script", "a.toml", "--load", "b.jsonl", URL), "not allowed with argument"),
    (("--connect", "--ping", URL), "not allowed with argument"),
    (("--script", "missing.toml", URL), "missing.toml: No such file or directory"),
    (("--load", "missing.jsonl", URL), "missing.jsonl: No such file or directory"),
    (("--progress", "9", URL), "--progress calls a tool that reports progress: add --tool NAME"),
    (("--progress", "0", "--tool", "t", URL), "0 is not a number of notifications from 1 to"),
    (("--sessions", "many", URL), "many is not a number of sessions from 1 to 100,000"),
    (("--sessions", "9", "--rate", "5", URL), "--rate is for calls in turns, and --sessions"),
    (("--sessions", "9", "--threshold", "p99<1s", URL), "--threshold is for calls in turns"),
    (("--tool", "t", "--progress", "9", "--sweep", URL), "--sweep is for calls in turns, and"),
    (("--connect", "--processes", "2", URL), "--processes is for requests, and not for --connect"),
    (("--through", "client", "--processes", "2", URL), "--processes is for prepared requests"),
    (("--answer", "a=1", URL), "--answer is for --through client"),
    (("--through", "proxy", URL), "invalid choice: 'proxy'"),
    (("--sessions", "51", REMOTE), "is on another machine: open 50 sessions or fewer, or add"),
    (("--connect", REMOTE), "is on another machine: give a --rate of 50 or less, or"),
]


@dataclass
class Size:
    """A form's field."""

    size: int


def test_script_that_waits_for_notifications_needs_the_client(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.toml"
    path.write_text('[[call]]\ntool = "t"\nnotified = "a:b"\n')
    with pytest.raises(SystemExit):
        main(["bench", "--script", str(path), URL])
    assert "notified is for --through client, which can subscribe" in capsys.readouterr().err


def make_server() -> mcp_trio.Server:
    server = mcp_trio.Server("shop")

    @server.tool
    def echo(text: str) -> str:
        """Return the text."""
        return text

    @server.tool
    async def order(context: mcp_trio.Context) -> str:
        """Ask for a size."""
        answer = await context.elicit("Which size?", Size)
        if answer.action != "accept":
            raise mcp_trio.ToolError("no size")
        return f"size {answer.data.size}"

    @server.tool
    async def report(steps: int, context: mcp_trio.Context) -> str:
        """Report steps, ten a second."""
        for step in range(steps):
            await trio.sleep(0.1)
            await context.progress(step, steps)
        return "done"

    return server


class _WorkLoad(FakeLoad):
    """A load that keeps its work, and lists one tool."""

    revision = "2025-11-25"

    def __init__(self) -> None:
        super().__init__()
        self.work: Work | None = None

    async def turn(self, work: Work, *arguments: Any) -> Any:
        self.work = work
        return await super().turn(work, *arguments)

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        return {"result": {"tools": [{"name": "order"}]}}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trio.run

    async def measure(self: Echo) -> float:
        return 0.0

    def run_without_waiting(function: Any, *arguments: Any) -> Any:
        return run(function, *arguments, clock=MockClock(autojump_threshold=0))

    monkeypatch.setattr(trio, "run", run_without_waiting)
    monkeypatch.setattr(Echo, "_measure", measure)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> _WorkLoad:
    """A lean load, in place of the one to `URL`."""
    found = _WorkLoad()

    @asynccontextmanager
    async def opened(*_: object, **options: Any) -> AsyncIterator[_WorkLoad]:
        await trio.lowlevel.checkpoint()
        found.revision = options.get("era") or found.revision
        yield found

    monkeypatch.setattr(_bench, "open_load", opened)
    return found


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> mcp_trio.Server:
    """A server in this process, in place of the one at `URL`."""
    found = make_server()

    def connected(target: Target) -> Any:
        return mcp_trio.connect(found, **target.client_options)

    monkeypatch.setattr(_bench_calls, "_connected", connected)
    # It would look through all processes of this machine for one that listens.
    monkeypatch.setattr(ListenerMeter, "cpu", NoMeter.cpu)
    monkeypatch.setattr(ListenerMeter, "memory", NoMeter.memory)
    return found


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A recorded conversation of three calls, one of them with a question."""
    path = tmp_path / "shop.mcp.jsonl"

    async def record() -> None:
        options: Any = {"versions": ["2025-11-25"], "record": path, "on_elicit": lambda _: None}
        async with mcp_trio.connect(make_server(), **options) as client:
            await client.call_tool("echo", {"text": "a"})
            await client.call_tool("order")
            await client.call_tool("echo", {"text": "b"})

    trio.run(record)
    return str(path)


@pytest.mark.parametrize(("words", "problem"), WRONG)
def test_wrong_command_line_names_the_cure(
    words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: Any = main(["bench", *words])
    except SystemExit as exc:
        status = exc.code
    assert (status, problem in (err := capsys.readouterr().err)) == (2, True), err


@pytest.mark.parametrize(
    ("name", "content", "status", "problem"),
    [
        ("a.toml", "[[call]]\ntol = 1", 2, "a.toml: call 1 (line 1): tol isn't known here: did"),
        ("a.toml", "[[call]]\n[", 2, "a.toml: it isn't TOML"),
        ("a.jsonl", "", 4, "a.jsonl is empty: nothing was recorded"),
        ("a.jsonl", "{}", 2, "a.jsonl: "),
    ],
)
def test_wrong_file_is_refused_before_a_target_is_started(
    name: str,
    content: str,
    status: int,
    problem: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    option = "--script" if name.endswith("toml") else "--load"
    assert main(["bench", option, str(path), "--", "no-such-program"]) == status
    assert problem in capsys.readouterr().err


def test_script_says_what_is_called_and_in_which_revision(
    load: _WorkLoad, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "load.toml"
    script.write_text('era = "2025-06-18"\n[[call]]\nping = true\n[[call]]\ntool = "a"', "utf-8")
    assert main(["bench", "--script", str(script), "--seconds", "5", "--json", URL]) == 0
    assert json.loads(capsys.readouterr().out)["calls"] == "2 calls, in order"
    assert load.revision == "2025-06-18"
    assert load.work is not None
    assert load.work.worker(0, 0).next_call(None).method == "ping"


def test_recording_is_played_and_its_missing_parts_are_named(
    load: _WorkLoad, trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the run: the user may stop it. The revision is the recorded one."""
    assert main(["bench", "--load", trace, "--seconds", "5", URL]) == 0
    err = capsys.readouterr().err
    assert "left out 1: calls during which the server asked the client (line " in err
    assert "2 of 2 requests name tools that the target doesn't list: echo (2)" in err
    assert load.work is not None
    worker = load.work.worker(0, 0)
    texts = [(worker.next_call(None).params or {})["arguments"]["text"] for _ in range(3)]
    assert texts == ["a", "b", "a"]


def test_recording_is_sent_to_another_machine_only_with_consent(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """At any rate: it repeats all that the recorded client did."""
    assert main(["bench", "--load", trace, "--rate", "1", REMOTE]) == 2
    assert "add --allow-remote to send it there" in capsys.readouterr().err


def test_recording_that_fits_no_target_has_no_run(
    load: _WorkLoad, trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--load", trace, "--era", "modern", "--seconds", "5", URL]) == 3
    assert "nothing in it can be sent to this target" in capsys.readouterr().err


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_client_answers_the_questions_of_each_call(
    era: str, server: mcp_trio.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--through", "client", "--answer", "size=4", "--era", era, "--rate", "5", "--even"]
    status = main(["bench", "--tool", "order", *words, "--seconds", "1", "--json", URL])
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (status, row["measured"]["sent"], row["measured"]["errors"]) == (0, 5, {})


def test_wrong_answer_fails_the_calls_and_is_shown_once(
    server: mcp_trio.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--through", "client", "--answer", "size=big", "--rate", "5", "--even"]
    assert main(["bench", "--tool", "order", *words, "--seconds", "1", URL]) == 1
    assert capsys.readouterr().err.count("--answer size=big") == 1


def test_conversations_are_calls(
    server: mcp_trio.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--connect", "--through", "client", "--rate", "5", "--even", "--seconds", "1"]
    assert main(["bench", *words, "--json", URL]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["measured"]["sent"], row["measured"]["errors"]) == (5, {})


# -- Once ------------------------------------------------------------------------------------------


class _Memory:
    """A meter of a target that needs a mebibyte, and a kibibyte for each open session."""

    def __init__(self) -> None:
        self.open = 0
        self.most = 10**6

    def memory(self) -> int:
        return 2**20 + 2**10 * self.open

    @asynccontextmanager
    async def session(self, *_: object, **options: Any) -> AsyncIterator[FakeLoad]:
        await trio.sleep(0.1)
        if self.open >= self.most:
            raise ConnectFailed("HTTP 503")
        self.open += 1
        yield FakeLoad()
        self.open -= 1


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> _Memory:
    found = _Memory()
    monkeypatch.setattr(_bench_once, "open_one", found.session)
    monkeypatch.setattr(_bench_once, "meter_of", lambda _: found)
    return found


def test_memory_of_idle_sessions_is_printed(
    memory: _Memory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "sessions.json"
    assert main(["bench", "--sessions", "64", "--output", str(output), URL]) == 0
    line = "64 idle sessions (2026-07-28) in 400ms: 1.0 KiB each, 1.0 MiB before and 1.1 MiB with"
    assert line in capsys.readouterr().out
    document = json.loads(output.read_text("utf-8"))
    assert (document["form"], document["sessions"], document["calls"]) == (1, 64, None)
    assert document["machine"]["processors"]
    (target,) = document["targets"]
    assert (target["name"], target["opened"], target["each"]) == (URL, 64, 1024.0)


@pytest.mark.parametrize(("most", "status", "problem"), [(9, 1, "session 10 of 64 "), (0, 3, "")])
def test_sessions_that_do_not_open_decide_the_status(
    most: int, status: int, problem: str, memory: _Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.most = most
    assert main(["bench", "--sessions", "64", "--json", URL]) == status
    out, err = capsys.readouterr()
    assert problem in err
    assert "HTTP 503" in err
    assert len(json.loads(out)["targets"]) == (most > 0)


def interrupt_after(seconds: float) -> None:
    """Send Ctrl+C to this process after some virtual time."""

    async def interrupt() -> None:
        await trio.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)

    trio.lowlevel.spawn_system_task(interrupt)


def test_sessions_that_are_interrupted_are_measured_so_far(
    memory: _Memory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The memory is read with those that are open, although others still open."""

    class Stalling(_Memory):
        is_interrupted = False

        @asynccontextmanager
        async def session(self, *arguments: object, **options: Any) -> AsyncIterator[FakeLoad]:
            if self.open == 16:
                if not self.is_interrupted:
                    interrupt_after(0.5)
                self.is_interrupted = True
                await trio.sleep_forever()
            async with super().session(*arguments, **options) as load:
                yield load

    monkeypatch.setattr(_bench_once, "open_one", Stalling().session)
    assert main(["bench", "--sessions", "64", URL]) == 130
    out, err = capsys.readouterr()
    assert "16 idle sessions (2026-07-28) in " in out
    assert "interrupted with 16 of 64 sessions" in err


def test_progress_that_is_interrupted_is_printed_so_far(
    server: mcp_trio.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """The call is cancelled, and its notifications until then have a rate."""

    @server.tool
    async def endless(context: mcp_trio.Context) -> str:
        """Report ten steps a second, and one Ctrl+C after three seconds."""
        interrupt_after(3.05)
        for step in range(10**6):
            await trio.sleep(0.1)
            await context.progress(step)
        return "done"

    assert main(["bench", "--tool", "endless", "--progress", "99", "--json", URL]) == 130
    out, err = capsys.readouterr()
    [found] = json.loads(out)["targets"]
    assert (found["events"], found["rate"]) == (30, pytest.approx(10))
    assert "the call was interrupted" in err


@pytest.mark.parametrize(
    ("wanted", "status", "problem"),
    [("30", 0, ""), ("31", 1, "30 of 31 progress notifications came: give --args with which ")],
)
def test_progress_of_one_call_is_printed(
    wanted: str,
    status: int,
    problem: str,
    server: mcp_trio.Server,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--tool", "report", "--args", '{"steps": 30}', "--progress", wanted]
    assert main(["bench", *words, URL]) == status
    out, err = capsys.readouterr()
    line = "30 progress notifications, 10 a second, the first after 100ms, the call took 3.00s"
    assert line in out
    assert problem in err
