"""`mcp-trio bench` against targets that are formulas: options, output, files, exit statuses."""

from __future__ import annotations

import json
import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest
import trio
from trio.testing import MockClock

from mcp_core import ConnectFailed
from mcp_trio.cli import main
from mcp_trio.cli.oracle import _bench, _bench_table
from mcp_trio.oracle.bench.report import _ratios
from mcp_trio.oracle.fuzz._echo import Echo
from tests.harness.world.command import ROOT
from tests.trio_.oracle.bench.fake_load import FakeLoad

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp_trio.cli.oracle._bench import BenchOptions
    from mcp_trio.cli.oracle._bench_targets import BenchTarget

URL = "http://127.0.0.1:1/mcp"
REMOTE = "http://192.0.2.1/mcp"
PAIR = ("--target", "ours=python a.py", "--target", f"sdk={URL}")
GREETER = str(ROOT / "examples" / "greeter.py")
# A command line that is wrong, and the error about it.
WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--rate", "fast", URL), "fast is not a rate from 0 to 500,000"),
    (("--rate", "0", URL), "0 is not a rate from"),
    (("--rate", "1e9", URL), "1e9 is not a rate from"),
    (("--rate", ",".join("1" * 30), URL), "there are 30 numbers, at most 20"),
    (("--concurrency", "0", URL), "0 is not a number of callers from 1 to 1,024"),
    (("--concurrency", "1,2.5", URL), "2.5 is not a number of callers"),
    (("--concurrency", "1,32", "--rate", "10", URL), "--concurrency has one number beside --rate"),
    (("--seconds", "0", URL), "0 is not a number of seconds from 0.1 to 3,600"),
    (("--seconds", "nan", URL), "nan is not a number of seconds"),
    (("--even", URL), "--even is for --rate and --sweep"),
    (("--limit", "50ms", URL), "--limit is for --sweep; to fail above a latency: --threshold"),
    (("--sweep", "--limit", "50", URL), "50 is not a time above 0 with a unit, such as 50ms"),
    (("--sweep", "--rate", "1,2", URL), "--sweep tries its own rates"),
    (("--threshold", "p99", URL), "p99 has no limit. A shell takes < and > for files"),
    (("--threshold", "p99<50", URL), "p99 has no unit here: write 'p99<50ms'"),
    (("--args", "{}", URL), "--args has the arguments of a tool: add --tool NAME"),
    (("--tool", "t", "--args", "x=1", URL), "--args x=1 is not a JSON object such as"),
    (("--tool", "t", "--args", "{", URL), "is not JSON"),
    (("--tool", "t", "--vary", URL), "--vary lengthens a text of --args, and there is none"),
    (("--tool", "t", "--ping", URL), "not allowed with argument"),
    (("--read", "menu", URL), "'menu' is not a URI"),
    (("--list", "toys", URL), "invalid choice: 'toys'"),
    (("--json", "--markdown", URL), "not allowed with argument"),
    (("--processes", "0", URL), "0 is not a number of processes from 1 to 64"),
    (("--processes", "2", "--", "python", "a.py"), "--processes is for a server at a URL"),
    (
        ("--processes", "4", "--concurrency", "8,2", URL),
        (
            "--concurrency 2 is not enough for --processes 4, since each process has a caller: give"
            " --concurrency 4 or more, or leave it out"
        ),
    ),
    (("--processes", "4", "--concurrency", "1", "--rate", "9", URL), "is not enough for"),
    (("--yes", URL), "there is no --yes here: --allow-remote sends to another machine"),
    ((), "no server: give its URL or its Python file"),
    (("ws://127.0.0.1:1/mcp",), "bench speaks stdio and Streamable HTTP, and not WebSockets"),
    ((REMOTE,), "192.0.2.1/mcp is on another machine: give a --rate of 50 or less"),
    (("--rate", "10,51", REMOTE), "is on another machine"),
    (("--rate", "10", "--sweep", REMOTE), "is on another machine"),
    (("--target", f"a={REMOTE}", "--target", f"b={URL}"), "a is on another machine"),
]


class BenchOutput(NamedTuple):
    """A run of the command: its exit status, and what it has printed."""

    status: int
    out: str
    err: str


class FakeBench:
    """Runs the command against `loads` by name; a target without one can't be reached."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.loads: dict[str, FakeLoad] = {}
        self.options: BenchOptions | None = None
        self._capsys = capsys

    @asynccontextmanager
    async def open(self, target: BenchTarget, options: BenchOptions) -> AsyncIterator[FakeLoad]:
        self.options = options
        if target.name not in self.loads:
            raise ConnectFailed(f"{target.name}: connection refused")
        yield self.loads[target.name]

    def __call__(self, *words: str) -> BenchOutput:
        """Run the command for five turns of one second, unless `words` say more."""
        status = main(["bench", "--seconds", "5", *words])
        return BenchOutput(status, *self._capsys.readouterr())


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> FakeBench:
    found = FakeBench(capsys)

    async def measure(self: Echo) -> float:
        return 0.0

    run = trio.run

    def run_without_waiting(function: Any, *arguments: Any) -> Any:
        return run(function, *arguments, clock=MockClock(autojump_threshold=0))

    monkeypatch.setattr(trio, "run", run_without_waiting)
    monkeypatch.setattr(_bench, "_open", found.open)
    monkeypatch.setattr(Echo, "_measure", measure)
    monkeypatch.setattr(_ratios, "_DRAWS", 20)
    return found


@pytest.fixture
def pair(bench: FakeBench) -> FakeBench:
    bench.loads |= {"ours": FakeLoad(0.001), "sdk": FakeLoad(0.003)}
    return bench


@pytest.mark.parametrize(("words", "problem"), WRONG)
def test_wrong_command_line_names_the_cure(
    words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: Any = main(["bench", *words])
    except SystemExit as exc:
        status = exc.code
    assert (status, problem in (err := capsys.readouterr().err)) == (2, True), err


def test_one_target_is_pinged_by_one_caller(bench: FakeBench) -> None:
    """The default calls no tool, and prints the row without the target's name."""
    bench.loads["python"] = FakeLoad()
    found = bench("--", "python", "server.py")
    assert found.status == 0
    titles, row, load = found.out.splitlines()
    assert titles.split()[0] == "pace"
    assert row.startswith("1 caller")
    assert load.startswith("the load alone: ")
    assert bench.options is not None
    assert bench.options.calls.text == "ping"


def test_each_of_several_processes_has_a_caller(bench: FakeBench) -> None:
    """Processes without a caller would be idle, and hide that the others are the slower part."""
    bench.loads[URL] = FakeLoad(0.05, cpu=3.8)
    [row] = json.loads(bench("--json", "--processes", "4", URL).out)["rows"]
    assert (row["pace"]["concurrency"], row["processes"]) == (4, 4)
    assert any(each.startswith("client-bound") for each in row["remarks"])


def test_several_targets_are_compared_at_each_rate(pair: FakeBench) -> None:
    found = pair("--rate", "100,1000", *PAIR)
    assert found.status == 0
    lines = found.out.splitlines()
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["ours", "100/s"],
        ["sdk", "100/s"],
        ["ours", "1,000/s"],
        ["sdk", "1,000/s"],
    ]
    assert lines[5].startswith("100/s: ours is 3.0")
    assert lines[6].startswith("1,000/s: ours is ")
    assert " faster than sdk at p50" in lines[6]


def test_two_runs_with_other_seeds_agree_within_a_tenth(pair: FakeBench) -> None:
    ratios = []
    for seed in "12":
        found = json.loads(pair("--json", "--rate", "100", "--seed", seed, *PAIR).out)
        ratios += [each["times"] for each in found["ratios"]]
    assert ratios[0] == pytest.approx(ratios[1], rel=0.1)
    assert ratios[0] != ratios[1]


def test_json_is_one_document_with_all_that_was_asked_for(pair: FakeBench) -> None:
    found = pair("--json", "--rate", "200", "--tool", "echo", "--args", '{"text": "x"}', *PAIR)
    document = json.loads(found.out)
    assert document["calls"] == "tools/call echo"
    assert [each["words"] for each in document["targets"]] == [["python", "a.py"], [URL]]
    assert [each["measured"]["sent"] for each in document["rows"]] == [1000, 1000]
    assert all(each["measured"]["histogram"]["buckets"] for each in document["rows"])


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ((), {"calls": "ping", "connect": False, "through": None, "era": None, "processes": 1}),
        (("--connect",), {"calls": None, "connect": True}),
        (("--through", "client", "--era", "legacy"), {"through": "client", "era": "2025-11-25"}),
    ],
)
def test_document_says_how_the_run_was_made(
    words: tuple[str, ...], settings: dict[str, Any], pair: FakeBench
) -> None:
    document = json.loads(pair("--json", "--rate", "10", *words, *PAIR).out)
    assert {name: document[name] for name in settings} == settings


def test_progress_line_of_a_row_without_answers_has_no_latencies(
    bench: FakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_bench_table, "_LINE_INTERVAL", 0.0)
    bench.loads["python"] = FakeLoad(error="isError")
    found = bench("--rate", "10", "--", "python", "a.py")
    assert "python, 10/s: 1 of 5 s, p50 -, p99 -, 10 failed" in found.err


def test_markdown_is_printed_in_place_of_the_table(pair: FakeBench) -> None:
    assert pair("--markdown", "--rate", "100", *PAIR).out.startswith("| target | pace |")


def test_output_has_the_document_beside_the_table(pair: FakeBench, tmp_path: Path) -> None:
    found = pair("--output", str(tmp_path / "a.json"), "--rate", "100", *PAIR)
    assert found.out.startswith("target")
    assert len(json.loads((tmp_path / "a.json").read_text())["rows"]) == 2


@pytest.mark.parametrize("option", ["--output", "--junit"])
def test_file_that_cannot_be_written_is_a_usage_error(
    option: str, pair: FakeBench, tmp_path: Path
) -> None:
    found = pair(option, str(tmp_path / "no" / "a.json"), *PAIR)
    assert (found.status, "No such file or directory" in found.err) == (2, True)


@pytest.mark.parametrize(
    ("threshold", "status"), [("p99<2ms", 1), ("p99<50ms", 0), ("errors<0.1%", 0), ("rate>1000", 1)]
)
def test_threshold_decides_the_status(threshold: str, status: int, pair: FakeBench) -> None:
    found = pair("--rate", "100", "--threshold", threshold, *PAIR)
    assert found.status == status
    assert (f"{threshold} is missed" in found.err) == bool(status)


def test_threshold_that_is_missed_is_a_failure_in_junit(pair: FakeBench, tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    pair("--rate", "100", "--threshold", "p99<2ms", "--junit", str(path), *PAIR)
    suite = ET.parse(path).getroot()[0]
    failed = [case.get("name") for case in suite if len(case)]
    assert failed == ["sdk 100/s: p99<2ms"]


def test_calls_that_all_fail_are_a_failure(bench: FakeBench) -> None:
    bench.loads["python"] = FakeLoad(error="-32602")
    found = bench("--tool", "nosuch", "--", "python", "a.py")
    assert found.status == 1
    assert "no call was answered without an error: 5,000 times -32602" in found.out


def test_target_that_ends_is_shown_and_decides_the_status(pair: FakeBench) -> None:
    pair.loads["sdk"] = FakeLoad(ends_after=2)
    found = pair("--rate", "100,200", "--threshold", "p99<1ms", *PAIR)
    assert found.status == 3
    lines = found.out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["ours", "sdk", "ours"]
    assert lines[2].endswith("ended")
    place = lines.index("sdk 100/s: the server has ended (exit status 1)")
    assert lines[place + 1] == "  | boom"


def test_target_without_connection_leaves_the_others_measured(
    pair: FakeBench, tmp_path: Path
) -> None:
    del pair.loads["sdk"]
    path = tmp_path / "report.xml"
    found = pair("--rate", "100", "--junit", str(path), *PAIR)
    assert found.status == 3
    assert "sdk was not measured: sdk: connection refused" in found.err
    assert "1,000/s" not in found.out
    assert ET.parse(path).getroot()[0].get("failures") == "1"


def test_no_connection_at_all_is_an_error(bench: FakeBench, tmp_path: Path) -> None:
    """A report of an earlier run is replaced, so that no job takes it for this one's."""
    path = tmp_path / "report.xml"
    path.write_text("old")
    found = bench("--junit", str(path), *PAIR)
    assert (found.status, found.out) == (3, "")
    assert "ours: connection refused; sdk: sdk: connection refused" in found.err
    assert ET.parse(path).getroot()[0].get("errors") == "1"


def test_rate_that_cannot_be_kept_is_shown(bench: FakeBench) -> None:
    bench.loads["python"] = FakeLoad(capacity=2790)
    found = bench("--rate", "5000", "--seconds", "0.2", "--", "python", "a.py")
    assert "cannot keep 5,000/s: sustained 2,790/s" in found.out


def test_sweep_prints_the_highest_rate_of_each_target(bench: FakeBench) -> None:
    bench.loads |= {"ours": FakeLoad(capacity=279), "sdk": FakeLoad(capacity=93)}
    found = bench("--sweep", "--rate", "50", "--limit", "20ms", "--seconds", "1", *PAIR)
    assert found.status == 0
    assert "with p99 below 20.0ms" in found.out
    [ratio] = [line for line in found.out.splitlines() if "the rate of sdk" in line]
    assert 2.8 < float(ratio.split()[2]) < 3.2


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_prints_what_was_measured(
    number: signal.Signals, status: int, bench: FakeBench, tmp_path: Path
) -> None:
    """The turn that is interrupted counts up to then, and is marked. The files are written."""

    class Interrupting(FakeLoad):
        async def turn(self, *arguments: Any) -> Any:
            async with trio.open_nursery() as nursery:
                if len(self.paces) == 4:
                    nursery.start_soon(self.interrupt)
                return await super().turn(*arguments)

        async def interrupt(self) -> None:
            await trio.sleep(0.25)
            os.kill(os.getpid(), number)

    bench.loads["python"] = Interrupting()
    path = tmp_path / "a.json"
    found = bench("--rate", "100", "--output", str(path), "--", "python", "a.py")
    assert found.status == status
    row = found.out.splitlines()[1]
    assert row.split()[:2] == ["100/s", "325"]
    assert row.endswith("  cut")
    remark = "the last turn was cut after 250ms, and 3 calls without a response are not counted"
    assert remark in found.out
    document = json.loads(path.read_text())
    assert document["problem"] == "the run was interrupted"
    assert document["rows"][0]["remarks"] == [remark]
    assert document["rows"][0]["measured"]["is_cut"]


def test_signal_before_anything_was_measured_says_so(bench: FakeBench) -> None:
    class Hanging(FakeLoad):
        async def turn(self, *arguments: Any) -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            await trio.sleep_forever()

    bench.loads["python"] = Hanging()
    found = bench("--", "python", "a.py")
    assert found.status == 130
    assert "mcp-trio: nothing was measured" in found.err


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_before_the_connection_is_an_orderly_stop(
    number: signal.Signals, status: int, bench: FakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def connect(target: BenchTarget, options: BenchOptions) -> AsyncIterator[FakeLoad]:
        os.kill(os.getpid(), number)
        await trio.Event().wait()
        yield FakeLoad()

    monkeypatch.setattr(_bench, "_open", connect)
    found = bench("--", "python", "a.py")
    assert (found.status, found.out) == (status, "")
    assert "Traceback" not in found.err


@pytest.mark.parametrize(("load", "is_noted"), [(1000.0, True), (0.0, False)])
def test_machine_that_is_busy_before_the_run_is_noted(
    load: float, is_noted: bool, bench: FakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    bench.loads["python"] = FakeLoad(0.05)
    found = bench("--", "python", "a.py")
    assert ("note: this machine is busy (load average 1000, " in found.err) == is_noted


def test_remote_target_is_called_slowly_or_with_consent(bench: FakeBench) -> None:
    bench.loads["http://192.0.2.1/mcp"] = FakeLoad()
    assert bench("--rate", "50", REMOTE).status == 0
    assert bench("--allow-remote", REMOTE).status == 0


def test_secret_of_the_command_line_is_not_printed(bench: FakeBench) -> None:
    """The server repeats its token in stderr as it ends."""

    class Telling(FakeLoad):
        async def turn(self, *arguments: Any) -> Any:
            from mcp_trio.oracle.bench._turn import TargetGone

            await trio.lowlevel.checkpoint()
            raise TargetGone("gone with rhubarb-crumble", stderr=("token rhubarb-crumble",))

    bench.loads["python"] = Telling()
    for form in ("--json", "--markdown"):
        found = bench(form, "--", "python", "a.py", "--api-token", "rhubarb-crumble")
        assert "rhubarb" not in found.out + found.err
        assert "gone with ..." in found.out


def test_help_names_the_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    found = capsys.readouterr().out
    assert "1    a threshold is missed, or all calls of a row failed" in found
    assert "99 % of the calls" in found
