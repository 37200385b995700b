"""`mcp-trio fuzz` against a server in memory: exit statuses, output, files, and Ctrl+C."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest
import trio
from trio.testing import MockClock

from mcp_core import ConnectFailed
from mcp_trio.cli import main
from mcp_trio.cli.oracle.fuzz import _fuzz
from mcp_trio.cli.oracle.fuzz._display import _progress_text
from mcp_trio.cli.oracle.fuzz._options import FuzzOptions
from mcp_trio.cli.oracle.fuzz._run import begin_junit, status_of
from mcp_trio.oracle.fuzz import _probe
from mcp_trio.oracle.fuzz._echo import Echo
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.campaign import _campaign
from mcp_trio.oracle.fuzz.client import _source
from mcp_trio.oracle.fuzz.draw._cases import CaseSource
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from tests.trio_.oracle.fuzz.memory_target import (
    OLD,
    MemoryTarget,
    answers,
    answers_ping_twice,
    broken_in,
    played,
    same_each_time,
)
from tests.trio_.oracle.fuzz.sdk_servers import ReadingTarget, typescript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Answers = Callable[[Mapping[str, Any], int], Iterator[dict[str, Any]]]

pytest.importorskip("hypothesis")

PING: list[list[Any]] = [["open", OLD, "whole", "all"], ["request", "ping", {}, "int", "whole"]]
NOISE = ["request", "tools/list", {}, "int", "whole"]
TWICE = same_each_time(answers_ping_twice)
CORRECT = same_each_time(answers)


class Run(NamedTuple):
    """A run of the command: its exit status, and what it has printed."""

    status: int
    out: str
    err: str


class Fuzz:
    """Runs the command in `folder` against a server in memory."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.target = MemoryTarget(CORRECT)
        self._capsys = capsys

    def store(self, *cases: Any) -> None:
        """Write a report of an earlier run, whose cases are played first."""
        (self.folder / "found").mkdir(exist_ok=True)
        findings = [{"steps": case} for case in cases]
        (self.folder / "found" / "report.json").write_text(json.dumps({"findings": findings}))

    def __call__(self, *words: str, server: tuple[str, ...] = ("--", "memory")) -> Run:
        """Play the stored cases only, unless `words` say more."""
        limits = ["--cases", "1", "--seed", "7", "--output", str(self.folder / "found")]
        status = main(["fuzz", "--era", "legacy", *limits, *words, *server])
        return Run(status, *self._capsys.readouterr())

    @property
    def tests(self) -> str:
        """The tests that were written."""
        return (self.folder / "found" / "test_findings.py").read_text()

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "found" / "report.json").read_text())
        return found

    @property
    def rows(self) -> list[str]:
        """The rows that the last report names."""
        return [each["row"] for each in self.report["findings"]]


@pytest.fixture
def fuzz(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Fuzz:
    found = Fuzz(tmp_path, capsys)

    async def measure(self: Echo) -> float:
        return 0.0

    def draw(self: CaseSource, count: int) -> list[Any]:
        return [[tuple(step) for step in PING]] * count

    run = trio.run

    def run_without_waiting(function: Any, *arguments: Any) -> Any:
        return run(function, *arguments, clock=MockClock(autojump_threshold=0))

    monkeypatch.setattr(trio, "run", run_without_waiting)
    monkeypatch.setattr(CaseSource, "draw", draw)  # which takes a while
    monkeypatch.setattr(_fuzz, "_fuzz_target", lambda *_: found.target)
    monkeypatch.setattr(Echo, "_measure", measure)
    found.store(PING)
    return found


# Probing starts the server once for each of the four revisions with a handshake.
PROBES = 4


def later(starts: set[int]) -> Answers:
    """Return the answers of a server that is broken in these starts after probing."""
    return broken_in({PROBES + each for each in starts})


def test_fuzz_of_correct_server_ends_with_status_0(fuzz: Fuzz) -> None:
    run = fuzz()
    assert run.status == 0
    assert "small 1, 2025-11-25; seed 7" in run.err
    assert "1 cases in" in run.out
    assert "0 findings, 0 to look at" in run.out
    assert sorted(each.name for each in (fuzz.folder / "found").iterdir()) == ["report.json"]


def test_fuzz_of_broken_server_ends_with_status_1(fuzz: Fuzz) -> None:
    fuzz.target = MemoryTarget(TWICE)
    run = fuzz()
    assert run.status == 1
    assert " 1  MUST RPC-7  " in run.out
    assert "  solid 3/3\n" in run.out
    assert "https://modelcontextprotocol.io/specification/2025-11-25/basic\n" in run.out
    assert "1 findings, 0 to look at" in run.out
    assert "1-RPC-7.mcp.jsonl, test_findings.py, report.json" in run.out


@pytest.mark.parametrize(("starts", "hits"), [({0, 2}, 1), ({0, 1, 3}, 2)])
@pytest.mark.parametrize(("words", "status"), [((), 0), (("--strict",), 1)])
def test_flaky_finding_is_named_and_counts_with_strict_only(
    fuzz: Fuzz, starts: set[int], hits: int, words: tuple[str, ...], status: int
) -> None:
    fuzz.target = MemoryTarget(later(starts))
    run = fuzz("--no-shrink", "--junit", str(fuzz.folder / "junit.xml"), *words)
    assert run.status == status
    assert f"  flaky {hits}/3\n" in run.out
    assert "0 findings, 1 to look at" in run.out
    assert [(each["row"], each["hits"], each["plays"]) for each in fuzz.report["findings"]] == [
        ("RPC-7", hits, 3)
    ]
    suite = ET.parse(fuzz.folder / "junit.xml").getroot()[0]
    assert suite.attrib["failures"] == str(status)


def test_fault_that_no_further_play_shows_is_said_and_no_failure(fuzz: Fuzz) -> None:
    fuzz.target = MemoryTarget(later({0}))
    run = fuzz()
    assert run.status == 0
    assert (
        "unconfirmed: RPC-7 ping: seen in a case, and in no further play of it: it may need its"
        " time, or what is outside of the process, such as a file\n"
    ) in run.err
    assert "0 findings, 0 to look at, 1 unconfirmed;" in run.out
    assert fuzz.rows == []


def test_habits_of_the_sdk_are_printed_apart_and_fail_with_strict_only(fuzz: Fuzz) -> None:
    """They are no findings: neither in the summary nor in the files."""
    case = [["open", OLD, "whole", "all"], ["request", "tools/list", [1], "int", "whole"]]
    for words, status in (((), 0), (("--strict",), 1)):
        fuzz.store(case)
        fuzz.target = ReadingTarget(typescript)
        run = fuzz("--junit", str(fuzz.folder / "junit.xml"), *words)
        assert run.status == status
        habit, total, counts = run.out.splitlines()
        assert "habit RPC-17  a request gets no response if its params are neither" in habit
        assert ": 0 findings, 0 to look at; " in total
        assert counts == "1 of the SDK, 0 of yours; only --strict fails for the SDK's"
        assert [each["habit"] for each in fuzz.report["habits"]] == ["drops-params"]
        found = (fuzz.folder / "junit.xml").read_text()
        assert ("<failure " in found) == bool(status)
        assert ("<skipped " in found) != bool(status)


def test_fuzz_makes_the_case_small_unless_told_otherwise(fuzz: Fuzz) -> None:
    fuzz.target = MemoryTarget(TWICE)
    fuzz.store([PING[0], NOISE, NOISE, PING[1], NOISE])
    assert "solid 3/3, 5 steps -> 2\n" in fuzz().out
    assert fuzz.report["findings"][0]["steps"] == PING
    fuzz.store([PING[0], NOISE, NOISE, PING[1]])
    assert "solid 3/3\n" in fuzz("--no-shrink").out
    assert len(fuzz.report["findings"][0]["steps"]) == 4


def test_fuzz_json_is_the_report_and_nothing_else(fuzz: Fuzz) -> None:
    fuzz.target = MemoryTarget(TWICE)
    run = fuzz("--json")
    assert run.status == 1
    assert json.loads(run.out) == fuzz.report
    assert fuzz.report["seed"] == 7


def test_repaired_finding_is_played_first_and_gone(fuzz: Fuzz) -> None:
    fuzz.target = MemoryTarget(TWICE)
    assert fuzz().status == 1
    fuzz.target = MemoryTarget(CORRECT)
    run = fuzz()
    assert run.status == 0
    assert fuzz.rows == []
    assert not (fuzz.folder / "found" / "test_findings.py").exists()
    assert not list((fuzz.folder / "found").glob("*.mcp.jsonl"))


@pytest.mark.parametrize(("server", "repaired"), [(CORRECT, 1), (TWICE, 0)])
def test_stored_case_that_shows_no_fault_any_more_is_counted(
    fuzz: Fuzz, server: Any, repaired: int
) -> None:
    fuzz.target = MemoryTarget(server)
    fuzz.store(PING)
    run = fuzz()
    assert ("cases of the last run that show no fault any more: 1\n" in run.out) is bool(repaired)
    assert fuzz.report["repaired"] == repaired


def test_stored_case_of_a_revision_that_is_not_spoken_is_not_played(fuzz: Fuzz) -> None:
    fuzz.store([("open", "2026-07-28", "whole", "all"), PING[1]])
    assert fuzz("--cases", "1").status == 0
    assert fuzz.rows == []


def test_baseline_leaves_out_the_findings_of_a_report(fuzz: Fuzz) -> None:
    fuzz.target = MemoryTarget(TWICE)
    assert fuzz().status == 1
    known = (fuzz.folder / "found" / "report.json").rename(fuzz.folder / "known.json")
    fuzz.store(PING)
    assert fuzz("--baseline", str(known)).status == 0
    assert fuzz.rows == []
    other = json.loads(known.read_text())
    other["findings"][0]["cause"]["family"] = "RPC-8"
    known.write_text(json.dumps(other))
    fuzz.store(PING)
    assert fuzz("--baseline", str(known)).status == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No such file"),
        ("<xml>", "it is not JSON"),
        ('{"version": 2, "seed": 1, "find', "it is cut off"),
        ('{"version": 9, "seed": 1}', "it is of version 9"),
        ("[]", "it is not a report of `mcp-trio fuzz`"),
    ],
)
def test_baseline_that_cannot_be_read_is_misuse(fuzz: Fuzz, text: str | None, says: str) -> None:
    file = fuzz.folder / "known.json"
    if text is not None:
        file.write_text(text)
    run = fuzz("--baseline", str(file))
    assert run.status == 2
    assert f"{file}: " in run.err
    assert says in run.err
    assert fuzz.target.starts == 0


def test_report_is_the_baseline_of_the_next_run_and_keeps_what_its_own_held(fuzz: Fuzz) -> None:
    """To commit the newest report loses nothing that an older one held."""
    fuzz.target = MemoryTarget(TWICE)
    assert fuzz().status == 1
    first, second = fuzz.folder / "first.json", fuzz.folder / "second.json"
    first.write_text(json.dumps({**fuzz.report, "server": "other 1"}))
    fuzz.store(PING)
    run = fuzz("--baseline", str(first))
    assert run.status == 0
    assert "warning: the baseline: it is of other 1, and this is small 1" in run.err
    assert "0 findings, 0 to look at, 1 known" in run.out
    cause = {"family": "RPC-7", "shape": "request", "scope": "ping"}
    assert fuzz.report["known"] == [{**cause, "seen": 1}]
    (fuzz.folder / "found" / "report.json").rename(second)
    fuzz.store(PING)
    run = fuzz("--baseline", str(second))
    assert run.status == 0
    assert "warning" not in run.err


def test_baseline_of_version_1_is_said_and_kept(fuzz: Fuzz) -> None:
    fuzz.target = MemoryTarget(TWICE)
    old = {"seed": 1, "server": "small 0.9", "findings": [{"row": "RPC-7", "method": "ping"}]}
    known = fuzz.folder / "known.json"
    known.write_text(json.dumps(old))
    fuzz.store(PING)
    run = fuzz("--baseline", str(known))
    assert run.status == 0
    assert "note: the baseline is of version 1" in run.err
    assert "warning" not in run.err
    assert fuzz.report["known_methods"] == [["RPC-7", "ping"]]


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (("--ignore-row", "RPC-7"), None),
        (("--ignore-row", "RPC-7:ping"), None),
        (("--ignore-file", "ignored.txt"), "# the SDK\nRPC-7:ping  answered twice, see #4\n"),
    ],
)
def test_ignored_row_does_not_fail_the_run_and_is_named_in_the_reports(
    fuzz: Fuzz, words: tuple[str, ...], lines: str | None
) -> None:
    """Its row is a skipped test of the JUnit report, not a passed one."""
    fuzz.target = MemoryTarget(TWICE)
    if lines is not None:
        words = (words[0], str(fuzz.folder / words[1]))
        (fuzz.folder / "ignored.txt").write_text(lines)
    fuzz.store(PING)
    junit = fuzz.folder / "fuzz.xml"
    run = fuzz(*words, "--junit", str(junit))
    assert run.status == 0
    assert "0 findings, 0 to look at, 1 ignored" in run.out
    assert "no finding is ignored" not in run.err
    (entry,) = fuzz.report["ignored"]
    assert (entry["row"], entry["seen"]) == ("RPC-7", 1)
    (case,) = [
        each for each in ET.parse(junit).iter("testcase") if "[RPC-7]" in each.attrib["name"]
    ]
    skipped = case.find("skipped")
    assert skipped is not None
    assert ("see #4" in skipped.attrib["message"]) is (lines is not None)


def test_ignored_row_that_was_not_found_is_said(fuzz: Fuzz) -> None:
    fuzz.target = MemoryTarget(TWICE)
    fuzz.store(PING)
    run = fuzz("--ignore-row", "RPC-7:tools/list", "--ignore-row", "crash")
    assert run.status == 1
    assert "note: no finding is ignored by RPC-7:tools/list" in run.err
    assert "note: no finding is ignored by crash" in run.err


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--ignore-row", "RPC-999", "--ignore-row: there is no row RPC-999"),
        ("--ignore-file", "RPC-7\n", "line 1: RPC-7 has no reason"),
        ("--ignore-file", None, "No such file"),
        ("--ignore-file", "\udcff", "--ignore-file "),
    ],
)
def test_ignored_row_that_is_wrong_is_misuse(
    fuzz: Fuzz, option: str, value: str | None, says: str
) -> None:
    file = fuzz.folder / "ignored.txt"
    if option == "--ignore-file":
        if value is not None:
            file.write_text(value, errors="surrogateescape")
        value = str(file)
    run = fuzz(option, value or "")
    assert run.status == 2
    assert says in run.err
    assert fuzz.target.starts == 0


def test_finding_of_any_method_says_so(fuzz: Fuzz) -> None:
    def silent(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        return iter(()) if message.get("params") == 82 else answers(message)

    fuzz.target = MemoryTarget(same_each_time(silent))
    fuzz.store([PING[0], ["request", "tools/list", 82, "int", "whole"]])
    run = fuzz()
    assert "RPC-17" in run.out
    assert ", with any method" in run.out


def test_fuzz_without_hypothesis_names_the_extra(
    fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    run = fuzz()
    assert run.status == 2
    assert "pip install 'mcp-trio[fuzz]'" in run.err


def test_written_test_has_the_response_timeout_and_the_environment(fuzz: Fuzz) -> None:
    fuzz.target = MemoryTarget(TWICE)
    text = fuzz.folder / "found" / "test_findings.py"
    assert fuzz().status == 1
    assert f"find_faults(TARGET, steps, cwd={str(Path.cwd())!r})" in text.read_text()
    assert fuzz("--response-timeout", "9", "--env", "A=b", "--cwd", str(fuzz.folder)).status == 1
    found = text.read_text()
    assert "response_timeout=9.0" in found
    assert "env={'A': 'b'}" in found
    assert f"cwd={str(fuzz.folder)!r}" in found


@pytest.mark.parametrize("option", ["--output", "--junit"])
def test_file_that_cannot_be_written_is_misuse(fuzz: Fuzz, option: str) -> None:
    (fuzz.folder / "file").touch()
    run = fuzz(option, str(fuzz.folder / "file" / "x"))
    assert run.status == 2
    assert "Not a directory" in run.err


@pytest.mark.parametrize(
    ("words", "is_internal"),
    [
        ((), True),
        (("--allow-tool", "none"), False),
        (("--baseline", "none.json"), False),
        (("--record", "none/a"), False),
    ],
)
def test_junit_report_of_a_run_that_does_not_begin_replaces_an_earlier_one(
    fuzz: Fuzz, words: tuple[str, ...], is_internal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The green report of an earlier run must not be published for it."""
    report = fuzz.folder / "fuzz.xml"
    assert fuzz("--junit", str(report)).status == 0
    assert not ET.parse(report).findall(".//error")

    async def fail(*_: Any) -> None:
        raise KeyError("a mistake")

    if is_internal:
        monkeypatch.setattr("mcp_trio.oracle.fuzz._probe.probe", fail)
    assert fuzz("--junit", str(report), *words).status == (70 if is_internal else 2)
    (error,) = ET.parse(report).findall(".//error")
    assert error.attrib["message"] == "the run has not ended: its output says why"


def test_junit_report_to_a_pipe_is_not_begun(tmp_path: Path) -> None:
    """It would get two documents."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    options = FuzzOptions(output=tmp_path, seconds=1, cases=1, seed=1, era="both", junit=pipe)
    begin_junit(options, ("server",), ())
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_record_begins_a_trace_of_the_run_without_secrets(fuzz: Fuzz) -> None:
    path = fuzz.folder / "all.mcp.jsonl"
    run = fuzz("--record", str(path), server=("--", "memory", "--api-key", "s3cret"))
    assert run.status == 0
    header = json.loads(path.read_text().splitlines()[0])
    assert header["target"] == "memory --api-key '‹redacted 6›'"
    assert header["fuzzer"] == "client"


def test_record_in_a_place_that_is_missing_is_misuse(fuzz: Fuzz) -> None:
    run = fuzz("--record", str(fuzz.folder / "none" / "a"))
    assert run.status == 2
    assert "cannot record in" in run.err


@pytest.mark.parametrize(("lanes", "most"), [("1", 1), ("4", 16)])
def test_no_keep_going_ends_at_the_first_finding(fuzz: Fuzz, lanes: str, most: int) -> None:
    fuzz.target = MemoryTarget(TWICE)
    assert fuzz("--cases", "500", "--no-keep-going", "--lanes", lanes).status == 1
    assert fuzz.report["cases"] <= most


def test_target_that_no_longer_starts_ends_with_status_3_and_its_findings(fuzz: Fuzz) -> None:
    class Dying(MemoryTarget):
        async def open(self, *, keep: bool = False) -> Any:
            if self.starts >= PROBES + 6:
                raise ConnectFailed("the disk is full")
            return await super().open(keep=keep)

    fuzz.target = Dying(TWICE)
    fuzz.store([PING[0], NOISE, NOISE, PING[1], NOISE])
    run = fuzz()
    assert run.status == 3
    assert "the disk is full" in run.err
    assert fuzz.rows == ["RPC-7"]


def test_target_that_no_longer_starts_for_a_drawn_case_ends_with_status_3_and_its_findings(
    fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure of the machine isn't a finding, and must not lose the findings made before."""

    class Dying(MemoryTarget):
        async def open(self, *, keep: bool = False) -> Any:
            if self.starts >= PROBES + 20:
                raise ConnectFailed("the disk is full")
            return await super().open(keep=keep)

    def draw(self: CaseSource, count: int) -> list[Any]:
        # A case with half a handshake is the last one of its session.
        return [[tuple(step) for step in PING], *[[("open", OLD, "half", "all")]] * (count - 1)]

    monkeypatch.setattr(CaseSource, "draw", draw)
    fuzz.target = Dying(TWICE)
    fuzz.store()
    run = fuzz("--cases", "100")
    assert run.status == 3
    assert "the disk is full" in run.err
    assert fuzz.rows == ["RPC-7"]


@pytest.mark.parametrize("lanes", ["0", "-1", "65", "1.5", "four", ""])
def test_number_of_lanes_that_makes_no_sense_is_misuse(fuzz: Fuzz, lanes: str) -> None:
    with pytest.raises(SystemExit) as raised:
        fuzz("--lanes", lanes)
    assert raised.value.code == 2


@pytest.mark.parametrize(
    ("words", "is_command", "expected"),
    [((), True, 4), ((), False, 1), (("--stress",), True, 1), (("--lanes", "3"), False, 3)],
)
def test_lanes_by_default_are_few_for_a_shared_server(
    fuzz: Fuzz,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    is_command: bool,
    expected: int,
) -> None:
    """All conversations with a URL are with the same server, and stress needs it alone."""
    found = []
    init = _campaign.Campaign.__init__

    def keep(run: Any, target: Any, source: Any, choices: Any, options: Any, **more: Any) -> None:
        found.append(options.lanes)
        init(run, target, source, choices, options, **more)

    monkeypatch.setattr(_campaign.Campaign, "__init__", keep)
    fuzz(*words, server=("--", "memory") if is_command else ("http://127.0.0.1:1/mcp",))
    assert found == [expected]


def test_progress_shows_drawing_and_examining_apart() -> None:
    """Between them is the time that is left, and what is under way."""
    shown: list[str] = []

    class Watched(MemoryTarget):
        async def open(self, *, keep: bool = False) -> Any:
            shown.append(_progress_text(campaign))
            return await super().open(keep=keep)

    choices = CaseChoices(Offers(revisions=[OLD]), ())
    limits = _campaign.CampaignOptions(seconds=3)
    campaign = _campaign.Campaign(Watched(TWICE, 2.0), None, choices, limits)
    cases: Any = [[tuple(step) for step in PING]] * 4
    trio.run(campaign.run, cases, clock=MockClock(autojump_threshold=0))
    assert any("findings  confirming RPC-7" in each for each in shown)
    assert any("drawing is over, at most" in each and "shrinking RPC-7" in each for each in shown)


def test_progress_with_escapes_of_the_peer_is_escaped() -> None:
    campaign = played(MemoryTarget(CORRECT))
    campaign._activities.append("confirming RPC-1 \x1b]0;title\x07\x1b[2J")
    text = _progress_text(campaign)
    assert "confirming RPC-1" in text
    assert text.isprintable()


# -- Tools -----------------------------------------------------------------------------------------

TOOLS: list[dict[str, Any]] = [
    {"name": "look", "annotations": {"readOnlyHint": True, "openWorldHint": False}},
    {"name": "web", "annotations": {"readOnlyHint": True, "openWorldHint": True}},
    {"name": "wipe"},
]


def with_tools(tools: list[dict[str, Any]], call: Callable[[str], object]) -> Answers:
    """Return the answers of a server with tools. `call` gets the name of each that is called."""

    def answer(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        match message:
            case {"method": "initialize"}:
                (reply,) = answers(message)
                reply["result"]["capabilities"] = {"tools": {}}
                yield reply
            case {"method": "tools/list", "id": id}:
                listed = [{"inputSchema": {"type": "object"}, **each} for each in tools]
                yield {"jsonrpc": "2.0", "id": id, "result": {"tools": listed}}
            case {"method": "tools/call", "id": id, "params": {"name": name}}:
                call(name)
                yield {"jsonrpc": "2.0", "id": id, "result": {"content": []}}
            case _:
                yield from answers(message)

    return answer


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ["look"]),
        (("--allow-tool", "wipe"), ["look", "wipe"]),
        (("--allow-tool", "wipe", "--allow-tool", "web"), ["look", "web", "wipe"]),
        (("--allow-all",), ["look", "web", "wipe"]),
        (("--allow-all", "--deny", "wipe", "--deny", "look"), ["web"]),
        (("--deny", "look"), []),
    ],
)
def test_tools_are_called_by_hints_and_options_only(
    fuzz: Fuzz, words: tuple[str, ...], expected: list[str]
) -> None:
    """A stored case that calls a tool is no permission to call it."""
    called: set[str] = set()
    fuzz.target = MemoryTarget(with_tools(TOOLS, called.add))
    calls = [["call", each["name"], {}, []] for each in TOOLS]
    requests = [["request", "tools/call", {"name": each["name"]}, "int"] for each in TOOLS]
    fuzz.store([PING[0], *calls], [PING[0], *requests])
    run = fuzz(*words)
    assert run.status == 0
    assert sorted(called) == expected
    if expected:
        assert f"tools that are called: {', '.join(expected)}\n" in run.err
        left = len(TOOLS) - len(expected)
        assert (f"{left} of 3 tools are not called: --allow-tool NAME" in run.err) == bool(left)
    else:
        assert "0 of 3 tools were allowed: --allow-tool NAME or --allow-all\n" in run.err


@pytest.mark.parametrize("option", ["--allow-tool", "--deny"])
def test_option_for_a_tool_that_is_not_listed_is_misuse(fuzz: Fuzz, option: str) -> None:
    run = fuzz(option, "wipe")
    assert run.status == 2
    assert "the server has no tool wipe" in run.err


# -- Ctrl+C ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", range(PROBES + 7))
def test_interrupt_at_any_start_writes_what_was_found(fuzz: Fuzz, start: int) -> None:
    """Probing, the case, its ping alone, its confirmation and its shrinking are interrupted."""

    def interrupts(message: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
        if number == start and message.get("method") in ("initialize", "ping"):
            signal.raise_signal(signal.SIGINT)
        yield from answers_ping_twice(message)

    fuzz.target = MemoryTarget(interrupts)
    case = [PING[0], NOISE, NOISE, PING[1], NOISE]
    fuzz.store(case)
    run = fuzz("--junit", str(fuzz.folder / "junit.xml"))
    assert run.status == 130
    junit = ET.parse(fuzz.folder / "junit.xml").getroot()
    assert [each.get("errors") for each in junit.iter("testsuite")] == ["1"]
    if start >= PROBES:
        (error,) = junit.iter("error")
        assert "it was interrupted after 0" in str(error.get("message"))
        assert fuzz.report["interrupted"] in str(error.get("message"))
    assert fuzz.target.open_sessions == set()
    assert "Traceback" not in run.err
    rows = [each["row"] for each in fuzz.report["findings"] if "row" in each]
    if start > PROBES + 4:
        assert rows == ["RPC-7"]
    assert len(rows) == len(list((fuzz.folder / "found").glob("*.mcp.jsonl")))
    assert ("RPC-7" in run.out) == bool(rows)
    # What was found in an earlier run is played in the next one.
    fuzz.target = MemoryTarget(TWICE)
    assert fuzz().status == 1
    assert fuzz.rows == ["RPC-7"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("options", [(), ("--client",)], ids=["server", "client"])
def test_signal_before_the_first_case_is_the_exit_status(
    options: tuple[str, ...],
    number: signal.Signals,
    status: int,
    fuzz: Fuzz,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The target is still probed: there is nothing to write or to print."""

    async def wait(*_: Any) -> None:
        signal.raise_signal(number)
        await trio.sleep_forever()

    monkeypatch.setattr(_source, "probe_client", wait)
    monkeypatch.setattr(_probe, "probe", wait)
    words = (*options, "--output", str(fuzz.folder / "found"), "--", "program", "{server}")
    assert main(["fuzz", *words]) == status
    found = capsys.readouterr()
    assert (found.out, "Traceback" in found.err) == ("", False)


# -- Secrets ---------------------------------------------------------------------------------------


def test_tests_of_a_command_read_the_variables_without_a_value(
    fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "the-secret")
    monkeypatch.setenv("REGION", "the-region")
    fuzz.target = MemoryTarget(TWICE)
    variables = ("API_KEY", "REGION", "LEVEL=debug", "DB_PASSWORD=hunter2")
    assert fuzz(*(word for each in variables for word in ("--env", each))).status == 1
    compile(fuzz.tests, "test_findings.py", "exec")
    assert (
        "env={'API_KEY': os.environ['API_KEY'], 'REGION': os.environ['REGION'], 'LEVEL': 'debug',"
        " 'DB_PASSWORD': os.environ['DB_PASSWORD']}"
    ) in fuzz.tests
    for secret in "the-secret", "the-region", "hunter2":
        assert secret not in fuzz.tests


def test_tests_of_a_file_have_the_variables_of_the_command_line_only(
    fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "the-secret")
    fuzz.target = MemoryTarget(TWICE)
    (fuzz.folder / "server.py").touch()
    fuzz("--env", "API_KEY", server=(str(fuzz.folder / "server.py"),))
    assert "env={'API_KEY': os.environ['API_KEY']}, cwd=" in fuzz.tests


def test_tests_of_a_url_send_its_headers(fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "the-secret")
    fuzz.target = MemoryTarget(TWICE)
    fuzz(
        *("--token-env", "MY_TOKEN", "--header", "X-Api-Key: hunter2", "--header", "X-Tenant: a"),
        server=("http://127.0.0.1:9/mcp",),
    )
    compile(fuzz.tests, "test_findings.py", "exec")
    assert (
        "headers={'x-api-key': os.environ['MCP_FUZZ_X_API_KEY'], 'x-tenant': 'a',"
        " 'authorization': 'Bearer ' + os.environ['MY_TOKEN']}"
    ) in fuzz.tests
    assert "the-secret" not in fuzz.tests
    assert "hunter2" not in fuzz.tests


# -- Nothing was judged ----------------------------------------------------------------------------


def junit_errors(path: Path) -> list[str]:
    return [str(each.get("message")) for each in ET.parse(path).iter("error")]


def test_fuzz_that_plays_no_case_ends_with_status_4(
    fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_campaign.Campaign, "_is_time_over", lambda run: True)
    fuzz.store()
    junit = fuzz.folder / "junit.xml"
    run = fuzz("--seconds", "0.000000001", "--junit", str(junit))
    assert run.status == 4
    assert "mcp-trio: nothing was judged: no case was played; allow more time" in run.err
    assert fuzz.report["cases"] == 0
    assert len(junit_errors(junit)) == 1


def test_fuzz_of_server_that_falls_silent_is_not_clean(fuzz: Fuzz) -> None:
    """It answers while it is probed, and says nothing in any case."""

    def silent(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if start < PROBES:
            yield from answers(message)

    fuzz.target = MemoryTarget(silent)
    fuzz.store([["open", OLD, "none", "all"]])
    run = fuzz("--seconds", "0.000000001")
    assert run.status == 4
    assert "the server has sent no message in any case" in run.err


def test_fuzz_of_server_that_is_gone_leaves_no_clean_report(fuzz: Fuzz) -> None:
    """Neither the report of an earlier run, nor rows that passed before the end."""
    junit = fuzz.folder / "junit.xml"
    junit.write_text("<testsuites/>")

    class Gone(MemoryTarget):
        async def open(self, *, keep: bool = False) -> Any:
            if self.starts >= self.last:
                raise ConnectFailed("the disk is full")
            return await super().open(keep=keep)

        last = 0

    fuzz.target = Gone(CORRECT)
    assert fuzz("--junit", str(junit)).status == 3
    assert ["the disk is full" in each for each in junit_errors(junit)] == [True]
    junit.unlink()
    fuzz.target.last = PROBES + 1
    fuzz.store([*PING, ["disconnect"]], PING)
    assert fuzz("--lanes", "1", "--junit", str(junit)).status == 3
    assert ["the disk is full" in each for each in junit_errors(junit)] == [True]


@pytest.mark.parametrize(("server", "status"), [(TWICE, 1), (CORRECT, 3)])
def test_fuzz_of_url_that_does_not_answer_any_more_is_not_clean(
    tmp_path: Path, server: Any, status: int
) -> None:
    options = FuzzOptions(output=tmp_path, seconds=None, cases=1, seed=1, era="both")
    campaign = played(MemoryTarget(server), [tuple(step) for step in PING], shrinks=False)
    campaign.is_away = True
    assert status_of(campaign, options) == status
    assert campaign.incomplete


@pytest.mark.parametrize(
    ("tools", "words", "text"),
    [
        (TOOLS, (), "1 tool was allowed, and no call was answered; allow more time"),
        (TOOLS, ("--allow-all",), "3 tools were allowed, and no call was answered"),
        (TOOLS[1:], ("--require-tools",), "0 of 2 tools were allowed: --allow-tool NAME or"),
        ([], ("--require-tools",), "the server has no tools"),
    ],
)
def test_fuzz_that_judges_no_tool_ends_with_status_4(
    fuzz: Fuzz, tools: list[dict[str, Any]], words: tuple[str, ...], text: str
) -> None:
    junit = fuzz.folder / "junit.xml"
    junit.write_text("<testsuites/>")
    fuzz.target = MemoryTarget(with_tools(tools, lambda _: None))
    run = fuzz("--junit", str(junit), *words)
    assert run.status == 4
    assert f"mcp-trio: nothing was judged: {text}" in run.err
    assert [text in each for each in junit_errors(junit)] == [True]


@pytest.mark.parametrize("words", [(), ("--require-tools", "--allow-all")])
def test_fuzz_of_tools_that_are_judged_ends_with_status_0(
    fuzz: Fuzz, words: tuple[str, ...]
) -> None:
    fuzz.target = MemoryTarget(with_tools(TOOLS, lambda _: None))
    fuzz.store([PING[0], ["call", "look", {}, []]])
    assert fuzz(*words).status == 0


def test_tools_that_no_option_allows_are_no_failure_by_themselves(fuzz: Fuzz) -> None:
    fuzz.target = MemoryTarget(with_tools(TOOLS[1:], lambda _: None))
    run = fuzz()
    assert run.status == 0
    assert "0 of 2 tools were allowed: --allow-tool NAME or --allow-all\n" in run.err


def test_advice_makes_no_run_complete_that_judges_no_tool(fuzz: Fuzz) -> None:
    """Most servers have the habit of their SDK, which is advice."""
    call = with_tools(TOOLS, lambda _: None)

    def drops(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if isinstance(message.get("params", {}), dict):
            yield from call(message, start)

    fuzz.target = MemoryTarget(drops)
    fuzz.store([PING[0], ["request", "tools/list", 82, "int", "absent"]])
    run = fuzz()
    assert fuzz.rows == ["RPC-17"]
    assert run.status == 4


def test_internal_error_ends_with_status_70_and_what_was_found_is_written(
    fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch
) -> None:
    junit = fuzz.folder / "junit.xml"

    def draw(self: CaseSource, count: int) -> list[Any]:
        raise RuntimeError("a fault of the fuzzer")

    monkeypatch.setattr(CaseSource, "draw", draw)
    fuzz.target = MemoryTarget(TWICE)
    run = fuzz("--cases", "3", "--lanes", "1", "--junit", str(junit))
    assert run.status == 70
    assert "this is an internal error of mcp-trio" in run.err
    assert fuzz.rows == ["RPC-7"]
    assert junit_errors(junit) == ["an internal error of the fuzzer: RuntimeError"]
