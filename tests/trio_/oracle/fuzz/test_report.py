"""The files of a run: reports, traces, tests for pytest, and what a later run reads of them."""

from __future__ import annotations

import ast
import json
import os
import stat
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from mcp_core.trace import ROWS, Redactor
from mcp_trio.cli import main
from mcp_trio.oracle._junit import row_name
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz._report import (
    FromEnvironment,
    junit_report,
    report_document,
    write_findings,
)
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
from mcp_trio.oracle.fuzz.campaign._findings import FuzzFinding
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from tests.testing.hostile.threads import in_thread

from .memory_target import (
    NEW,
    OLD,
    MemoryTarget,
    answers,
    answers_ping_twice,
    played,
    same_each_time,
)

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_trio.oracle.fuzz._case import Case

PING: Case = [("open", OLD, "whole", "all"), ("request", "ping", {}, "int", "whole")]
BYTES: Case = [("open", OLD, "whole", "all"), ("damage", b'{"id":\xff}\x00')]
OFFERS = Offers(name="small 1", revisions=[NEW, OLD])
HOSTILE = 'a "quote" \\ back\\slash \x00 \x1b[31m \ud800 \u202e ]]> <b> & \n"""; import os #'

SOLID = TargetFault(kind="row", row="RPC-7", method="ping", sentence="two responses", link="l")
CRASH = TargetFault(
    kind="crash", row="crash", method="bytes", detail="-6", sentence="signal 6 after bytes"
)
ADVICE = TargetFault(kind="row", row="LIFE-10", method="ping", sentence="early", level="reading")
ODD = TargetFault(kind="row", row="RPC-35", method=HOSTILE, sentence=HOSTILE)


def found(fault: TargetFault, case: Case = PING, hits: int = 3, **members: Any) -> FuzzFinding:
    return FuzzFinding(fault=fault, case=case, hits=hits, plays=3, **members)


def run_with(*findings: FuzzFinding) -> Campaign:
    """Return a run that has found something. The rows RPC-7 and RPC-1 had opportunities."""
    campaign = Campaign(
        MemoryTarget(same_each_time(answers)), None, CaseChoices(OFFERS, []), CampaignOptions()
    )
    campaign.findings.extend(findings)
    campaign.opportunities.update({"RPC-7": 4, "RPC-1": 2, "RPC-2": 0})
    return campaign


def written(folder: Path, *findings: FuzzFinding, target: Any = None, **options: Any) -> list[str]:
    campaign = run_with(*findings)
    campaign.target = target or campaign.target
    return write_findings(folder, campaign, report_document(campaign, OFFERS, 7), **options)


# -- report.json -----------------------------------------------------------------------------------


def test_report_has_run_findings_and_opportunities() -> None:
    """Other programs read this document, so each of its members is fixed here."""
    campaign = run_with(found(SOLID, methods=["tools/list"], seen=2), found(ADVICE))
    campaign.cases, campaign.messages = 9, 40
    campaign.unconfirmed["RPC-7 ping"] = 2
    campaign.missing["RPC-7 ping"] = "its time"
    campaign.notes.append("memory grows")
    campaign.slow["tools/call nap"] = 3
    document = json.loads(json.dumps(report_document(campaign, OFFERS, 7)))
    solid, advice = document.pop("findings")
    unseen = {each["row"]: each for each in document.pop("no_opportunity")}
    assert unseen.keys().isdisjoint({"RPC-7", "RPC-1"})
    assert unseen["TOOL-3"] == {
        "row": "TOOL-3",
        "level": "MUST",
        "sentence": ROWS["TOOL-3"].title,
        "reason": "capability",
        "why": "the server doesn't declare tools",
    }
    assert document == {
        "version": 3,
        "target": "memory --fast",
        "server": "small 1",
        "revisions": [NEW, OLD],
        "seed": 7,
        "cases": 9,
        "starts": 0,
        "seconds": 0.0,
        "drawing_seconds": 0.0,
        "interrupted": "",
        "messages": 40,
        "unconfirmed": {"RPC-7 ping": 2},
        "missing": {"RPC-7 ping": "its time"},
        "notes": ["memory grows"],
        "slow": {"tools/call nap": 3},
        "opportunities": {"RPC-1": 2, "RPC-2": 0, "RPC-7": 4},
        "habits": [],
        "known": [],
        "known_methods": [],
        "ignored": [],
        "repaired": 0,
        "unplayed": [],
    }
    assert solid == {
        "row": "RPC-7",
        "kind": "row",
        "verdict": "fail",
        "level": "MUST",
        "side": "server",
        "method": "ping",
        "cause": {"family": "RPC-7", "shape": "request", "scope": "ping"},
        "cause_is_unclear": False,
        "also": ["tools/list"],
        "also_causes": [],
        "further_causes": [],
        "detail": "",
        "sentence": "two responses",
        "link": "l",
        "hits": 3,
        "plays": 3,
        "seen": 2,
        "messages": 0,
        "steps": [["open", OLD, "whole", "all"], ["request", "ping", {}, "int", "whole"]],
    }
    assert (advice["verdict"], advice["level"]) == ("inconclusive", "reading")


# -- Traces ----------------------------------------------------------------------------------------


def test_each_finding_has_a_trace_that_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = played(MemoryTarget(same_each_time(answers_ping_twice)), PING, shrinks=False)
    names = write_findings(tmp_path, run, report_document(run, OFFERS, 7))
    assert names == ["1-RPC-7.mcp.jsonl", "test_findings.py", "report.json"]
    assert main(["check", "--json", str(tmp_path / names[0])]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["row"] == "RPC-7"


def test_header_of_a_trace_names_what_is_redacted(tmp_path: Path) -> None:
    run = played(MemoryTarget(same_each_time(answers_ping_twice)), PING, shrinks=False)
    name, *_ = write_findings(tmp_path, run, report_document(run, OFFERS, 7))
    header = json.loads((tmp_path / name).read_text().splitlines()[0])
    assert header["redacted"] == list(Redactor(b"").redacted)


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    umask = os.umask(0)
    try:
        names = written(folder, found(SOLID))
    finally:
        os.umask(umask)
    assert names == ["test_findings.py", "report.json"]
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in names} == {0o600}


def test_files_of_an_earlier_run_are_replaced(tmp_path: Path) -> None:
    run = played(MemoryTarget(same_each_time(answers_ping_twice)), PING)
    write_findings(tmp_path, run, report_document(run, OFFERS, 7))
    (tmp_path / "12-crash.mcp.jsonl").touch()
    (tmp_path / "mine.mcp.jsonl").touch()
    (tmp_path / "notes.txt").touch()
    assert written(tmp_path) == ["report.json"]
    assert {each.name for each in tmp_path.iterdir()} == {
        "mine.mcp.jsonl",
        "notes.txt",
        "report.json",
    }


# -- Tests -----------------------------------------------------------------------------------------


def run_tests(folder: Path, faults: dict[str, str]) -> tuple[dict[str, str], list[Any]]:
    """Run the written tests with a `find_faults` that finds `faults`.

    Returns:
        the result of each test, and the arguments of each call of `find_faults`.
    """
    calls: list[Any] = []

    def find_faults(*arguments: Any, **options: Any) -> dict[str, str]:
        calls.append((*arguments, options))
        return faults

    source = (folder / "test_findings.py").read_text("utf-8")
    ast.parse(source)
    names: dict[str, Any] = {}
    exec(source.replace("from mcp_trio.testing import find_faults\n", ""), names)
    names["find_faults"] = find_faults
    results = {}
    for name, function in names.items():
        if name.startswith("test_"):
            try:
                function()
                results[name] = "passed"
            except AssertionError as exc:
                results[name] = str(exc)
    return results, calls


def test_written_test_fails_until_its_fault_is_repaired(tmp_path: Path) -> None:
    written(tmp_path, found(SOLID), found(CRASH, BYTES))
    both = {"RPC-7": "two responses", "crash": "signal 6"}
    results, calls = run_tests(tmp_path, both)
    assert results == {"test_1_rpc_7_ping": "two responses", "test_2_crash_bytes": "signal 6"}
    assert calls == [(["memory", "--fast"], PING, {}), (["memory", "--fast"], BYTES, {})]
    other, _ = run_tests(tmp_path, {"crash": "signal 6", "RPC-1": "another fault"})
    assert list(other.values()) == ["passed", "signal 6"]
    assert set(run_tests(tmp_path, {})[0].values()) == {"passed"}


def test_written_test_starts_the_target_as_the_run_did(tmp_path: Path) -> None:
    written(tmp_path, found(SOLID), env={"A": "1"}, inherit_env=False, cwd="/srv")
    _, calls = run_tests(tmp_path, {})
    assert calls == [(["memory", "--fast"], PING, {"env": {"A": "1"}, "cwd": "/srv"})]


def target_of(*command: str, url: str = "") -> Any:
    """Return the target of a command or a URL."""
    target: Any = MemoryTarget(same_each_time(answers))
    target.name, target.command = (url, None) if url else (" ".join(command), command)
    return target


SECRET = "sk-live-0123456789abcdef"


def test_written_test_reads_secrets_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file can be committed, and says which variables a run needs."""
    env = {"A": "1", "API_KEY": FromEnvironment("API_KEY")}
    headers = {"authorization": FromEnvironment("TOKEN", "Bearer ")}
    written(tmp_path, found(SOLID), env=env, headers=headers)
    text = (tmp_path / "test_findings.py").read_text()
    compile(text, "test_findings.py", "exec")
    assert "# Secrets are not in this file. Set these environment variables: 'API_KEY'," in text
    monkeypatch.setenv("API_KEY", SECRET)
    monkeypatch.setenv("TOKEN", "abc")
    _, ((target, _, options),) = run_tests(tmp_path, {})
    assert target == ["memory", "--fast"]
    assert options == {
        "env": {"A": "1", "API_KEY": SECRET},
        "headers": {"authorization": "Bearer abc"},
    }


@pytest.mark.parametrize(
    ("target", "variable", "value", "shown"),
    [
        (
            target_of("./server", "--api-key", SECRET),
            "MCP_FUZZ_ARGUMENT_2",
            SECRET,
            "./server --api-key ",
        ),
        (
            target_of(url=f"https://me:{SECRET}@a.example/mcp"),
            "MCP_FUZZ_URL",
            f"https://me:{SECRET}@a.example/mcp",
            "https://redacted@a.example/mcp",
        ),
    ],
    ids=["command", "url"],
)
def test_secret_of_the_target_is_in_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: Any,
    variable: str,
    value: str,
    shown: str,
) -> None:
    """The secret is part of the command line or the URL itself; a variable replaces it."""
    names = written(tmp_path, found(SOLID), target=target)
    campaign = run_with()
    campaign.target = target
    junit = junit_report(campaign)
    for text in (junit, *((tmp_path / name).read_text() for name in names)):
        assert SECRET not in text
    assert json.loads((tmp_path / "report.json").read_text())["target"].startswith(shown)
    assert ET.fromstring(junit)[0].attrib["name"].startswith(f"mcp-trio fuzz {shown}")
    monkeypatch.setenv(variable, value)
    _, ((played_target, *_),) = run_tests(tmp_path, {})
    assert played_target == (list(target.command) if target.command else target.name)


def test_secret_that_xml_escapes_is_not_in_junit() -> None:
    campaign = run_with(found(SOLID, [("notify", "a", {"key": "a&b<c>d&e"})]))
    target: Any = MemoryTarget(same_each_time(answers))
    target.secrets = ["a&b<c>d&e"]
    campaign.target = target
    ((_, message),) = cases_of(junit_report(campaign))["RPC-7"]
    assert "a&b" not in message
    assert "redacted" in message


def test_written_test_of_an_odd_variable_is_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = "A\nimport os #'\"\\"
    written(tmp_path, found(SOLID), env={odd: FromEnvironment(odd)}, cwd=HOSTILE)
    monkeypatch.setenv(odd, "1")
    _, ((_, _, options),) = run_tests(tmp_path, {})
    assert options == {"env": {odd: "1"}, "cwd": HOSTILE}


def test_written_test_for_a_url_sends_its_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "abc")
    headers = {"authorization": FromEnvironment("TOKEN", "Bearer "), "x-tenant": "a"}
    with in_thread("closes") as server:
        written(tmp_path, found(SOLID), target=target_of(url=server.url), headers=headers)
        names: dict[str, Any] = {}
        exec((tmp_path / "test_findings.py").read_text(), names)
        names["test_1_rpc_7_ping"]()
    assert server.heads
    for head in server.heads:
        assert b"authorization: Bearer abc\r\n" in head
        assert b"x-tenant: a\r\n" in head


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("length", range(295, 301))
def test_written_test_of_a_long_sentence_has_no_half_escape(tmp_path: Path, length: int) -> None:
    sentence = "x" * length + "\\" * 10
    written(tmp_path, found(TargetFault(kind="row", row="RPC-7", method="a", sentence=sentence)))
    run_tests(tmp_path, {})


def test_written_test_of_words_of_the_server_is_python(tmp_path: Path) -> None:
    odd: Case = [("mutate", HOSTILE), ("request", HOSTILE, {HOSTILE: [HOSTILE]}, "int", "whole")]
    written(tmp_path, found(ODD, odd))
    results, calls = run_tests(tmp_path, {})
    assert list(results.values()) == ["passed"]
    assert calls[0][1] == odd


def test_written_test_of_a_flaky_finding_says_so(tmp_path: Path) -> None:
    written(tmp_path, found(SOLID, hits=2), found(CRASH))
    text = (tmp_path / "test_findings.py").read_text()
    assert text.count(" plays.") == 1
    assert "two responses. Seen in 2 of 3 plays." in text


# -- JUnit -----------------------------------------------------------------------------------------


def row_of(name: str) -> str:
    """Return the row of a test case, whose name ends with it."""
    return name.rpartition("[")[2].rstrip("]")


def cases_of(report: str) -> dict[str, list[tuple[str, str]]]:
    """Return the children of each test case, with their messages."""
    suite = ET.fromstring(report)[0]
    cases = {
        row_of(each.attrib["name"]): [(one.tag, one.attrib["message"]) for one in each]
        for each in suite
    }
    assert int(suite.attrib["tests"]) == len(cases)
    failed = sum(any(tag == "failure" for tag, _ in each) for each in cases.values())
    assert int(suite.attrib["failures"]) == failed
    return cases


def test_junit_has_a_test_for_each_row() -> None:
    cases = cases_of(junit_report(run_with(found(CRASH, BYTES), found(ADVICE))))
    assert cases.keys() == {"crash", "LIFE-10", "RPC-7", "RPC-1"}
    ((tag, message),) = cases["crash"]
    assert (tag, message.partition(":")[0]) == ("failure", "signal 6 after bytes")
    assert "open 2025-11-25 whole all, damage" in message
    assert cases["RPC-7"] == cases["RPC-1"] == []


def test_junit_skips_a_row_that_is_unconfirmed() -> None:
    """A case has shown that it is broken, so it has not passed."""
    campaign = run_with()
    campaign.unconfirmed["RPC-7 ping"] = 2
    campaign.missing["RPC-7 ping"] = "its time"
    assert cases_of(junit_report(campaign))["RPC-7"] == [
        ("skipped", "RPC-7 ping: seen 2 times, and in no further play: its time")
    ]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("RPC-3", "A request `id` is never `null` [RPC-3]"),
        ("crash", "The process keeps running [crash]"),
        ("hang", "The process ends when its connection has ended [hang]"),
        ("NEW-1", "[NEW-1]"),
        ("total_is_right", "An invariant holds [total_is_right]"),
    ],
)
def test_row_is_named_by_words(row: str, name: str) -> None:
    assert row_name(row) == name


@pytest.mark.parametrize(
    ("finding", "strict", "tag"),
    [
        (found(SOLID), False, "failure"),
        (found(SOLID, hits=2), False, "skipped"),
        (found(SOLID, hits=2), True, "failure"),
        (found(ADVICE), False, "skipped"),
        (found(ADVICE), True, "failure"),
    ],
)
def test_junit_fails_as_the_exit_status_does(finding: FuzzFinding, strict: bool, tag: str) -> None:
    ((_, children), *_) = cases_of(junit_report(run_with(finding), strict=strict)).items()
    assert [found for found, _ in children] == [tag]


def test_junit_of_words_of_the_server_is_xml() -> None:
    cases = cases_of(junit_report(run_with(found(ODD, [("mutate", HOSTILE)]))))
    ((_, message),) = cases["RPC-35"]
    assert "<b> &" in message
    assert "\\u001b[31m" in message
