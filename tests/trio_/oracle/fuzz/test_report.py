"""The files of a run: reports, traces, tests for pytest, and what a later run reads of them."""

from __future__ import annotations

import ast
import errno
import json
import os
import stat
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from mcp_core.trace import ROWS, Redactor, TraceLine
from mcp_trio.cli import main
from mcp_trio.oracle._junit import row_name
from mcp_trio.oracle.fuzz._case import shown_case
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz._report import (
    FromEnvironment,
    _end_lines,
    check_folder,
    failed_junit_report,
    hidden_header,
    hidden_variable,
    junit_report,
    report_document,
    write_findings,
)
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
from mcp_trio.oracle.fuzz.campaign._findings import FuzzFinding
from mcp_trio.oracle.fuzz.causes._cause import Cause
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.habits._table import HABITS
from mcp_trio.oracle.fuzz.habits._watch import ShownHabit
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


SECRET_WORD = "abcdefgh-12345678"


@pytest.mark.parametrize("has_secrets", [False, True])
def test_report_hides_the_secrets_of_its_target_in_each_text(has_secrets: bool) -> None:
    """In names of members, lists and tuples, too. Without secrets it's left as it is."""
    fault = TargetFault(kind="row", row="RPC-7", sentence=f"it is {SECRET_WORD}")
    campaign = run_with(found(fault, [("request", "ping", {SECRET_WORD: (SECRET_WORD, 5)})]))
    campaign.notes.append(SECRET_WORD)
    target: Any = MemoryTarget(same_each_time(answers))
    target.secrets = {SECRET_WORD} if has_secrets else set()
    campaign.target = target
    document = report_document(campaign, OFFERS, 7)
    (finding,) = document["findings"]
    ((_, _, params),) = finding["steps"]
    word = document["notes"][0]
    assert (word == SECRET_WORD) is not has_secrets
    assert (SECRET_WORD in str(document)) is not has_secrets
    assert finding["sentence"] == f"it is {word}"
    assert {key: list(value) for key, value in params.items()} == {word: [word, 5]}
    assert document["seed"] == 7


def test_report_has_causes_habits_and_what_is_kept() -> None:
    """A later run reads them as its baseline."""
    habit = next(each for each in HABITS if len(each.sdks) > 1)
    name, (versions, link) = max(habit.sdks.items())
    shown = ShownHabit(
        habit=habit, sdk=name, marks=["m"], case=PING, level="MUST", methods=["ping"], seen=4
    )
    one, two, three = (Cause("RPC-7", each, "ping") for each in ("request", "a", "b"))
    campaign = run_with(found(SOLID, cause=one, also=[two], further=[three], is_unclear=True))
    campaign.habits.append(shown)
    campaign.found.known[two] = 3
    campaign.found.known_methods["RPC-7", "ping"] = 1
    campaign.kept = [{"row": "a"}]
    campaign.unplayed = [PING]
    document = report_document(campaign, OFFERS, 7)
    (finding,) = document["findings"]
    causes = [{"family": "RPC-7", "shape": each, "scope": "ping"} for each in ("request", "a", "b")]
    assert finding["cause"] == causes[0]
    assert finding["cause_is_unclear"] is True
    assert (finding["also_causes"], finding["further_causes"]) == (causes[1:2], causes[2:])
    steps = [["open", OLD, "whole", "all"], ["request", "ping", {}, "int", "whole"]]
    assert document["habits"] == [
        {
            "habit": habit.name,
            "row": habit.row,
            "level": "MUST",
            "sentence": habit.sentence,
            "sdk": name,
            "versions": versions,
            "link": link,
            "marks": ["m"],
            "methods": ["ping"],
            "seen": 4,
            "steps": steps,
        }
    ]
    assert document["known"] == [{**causes[1], "seen": 3}]
    assert document["known_methods"] == [["RPC-7", "ping"]]
    assert (document["kept"], document["unplayed"]) == ([{"row": "a"}], [steps])


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


def line(number: int, **members: Any) -> TraceLine:
    return TraceLine(t=float(number), conversation=number, **members)


@pytest.mark.parametrize(
    ("lines", "fault", "ends"),
    [
        ([], SOLID, []),
        ([line(1, sender="client")], SOLID, [(1, "client", "closed")]),
        ([line(1, sender="server"), line(2, sender="client")], SOLID,
         [(1, "client", "closed"), (2, "client", "closed")]),
        ([line(1, sender="client")], TargetFault(kind="hang", row="RPC-35"),
         [(1, "client", "timeout")]),
        # A process that has exited has ended it itself.
        ([line(1, sender="client"), line(1, kind="exit", status=1)],
         TargetFault(kind="hang", row="RPC-35"), [(1, "server", "closed")]),
        # An end that the lines have, and the end of one exchange.
        ([line(1, sender="client"), line(1, sender="client", end="closed")], SOLID, []),
        ([line(1, sender="client"), line(1, sender="server", exchange=3, end="complete")], SOLID,
         [(1, "client", "closed")]),
        ([line(1, kind="spawn")], SOLID, []),
    ],
)  # fmt: skip
def test_trace_has_the_end_of_each_conversation(
    lines: list[TraceLine], fault: TargetFault, ends: list[tuple[int, str, str]]
) -> None:
    """It's at the time of the last line. For a client the two sides are the other way round."""
    finding = found(fault, lines=[*lines])
    other = {"client": "server", "server": "client"}
    for side in ("server", "client"):
        made = list(_end_lines(finding, side))
        expected = [(at, who if side == "server" else other[who], end) for at, who, end in ends]
        assert [(each.conversation, each.sender, each.end) for each in made] == expected
        assert {each.t for each in made} <= {lines[-1].t if lines else None}


@pytest.mark.parametrize(("level", "verdict"), [("MUST", "fail"), ("reading", "inconclusive")])
def test_header_of_a_trace_has_its_finding(tmp_path: Path, level: str, verdict: str) -> None:
    run = played(MemoryTarget(same_each_time(answers_ping_twice)), PING, shrinks=False)
    (finding,) = run.findings
    finding.fault = TargetFault(kind="row", row="RPC-7", sentence="two", level=level)
    name, *_ = write_findings(tmp_path, run, report_document(run, OFFERS, 7))
    header = json.loads((tmp_path / name).read_text().splitlines()[0])
    assert header["finding"] == {
        "row": "RPC-7",
        "side": "server",
        "sentence": "two",
        "verdict": verdict,
    }


def test_folder_that_is_a_link_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    check_folder(tmp_path / "real")
    check_folder(tmp_path / "missing")
    with pytest.raises(OSError, match="is a symbolic link: remove it") as caught:
        written(tmp_path / "link", found(SOLID))
    assert (caught.value.errno, caught.value.filename) == (errno.ELOOP, str(tmp_path / "link"))
    assert list((tmp_path / "real").iterdir()) == []


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
PLAIN_URL = "http://a.example/mcp"


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


@pytest.mark.parametrize(
    ("command", "unexpanded", "shown"),
    [
        (("server", "--a", "b"), (), ["server", "--a", "b"]),
        (("server", "--a", "b"), ("server", "--a", "b"), ["server", "--a", "b"]),
        (("server", "--a", "b"), ("server", "${A}", "b"), ["server", 1, "b"]),
        (("server", "--a", "b"), ("server", "--a", "${B}"), ["server", "--a", 2]),
        # The program's name is no secret.
        (("/home/server", "b"), ("${HOME}/server", "b"), ["/home/server", "b"]),
        (("server", "--token", "b"), ("server", "--token", "b"), ["server", "--token", 2]),
    ],
)
def test_words_with_variables_of_a_file_are_read_from_the_environment(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    unexpanded: tuple[str, ...],
    shown: list[Any],
) -> None:
    target = target_of(*command)
    target.unexpanded = unexpanded
    written(tmp_path, found(SOLID), target=target)
    for place in range(3):
        monkeypatch.setenv(f"MCP_FUZZ_ARGUMENT_{place}", f"variable {place}")
    _, ((found_target, *_),) = run_tests(tmp_path, {})
    words = [each if isinstance(each, str) else f"variable {each}" for each in shown]
    assert found_target == words


@pytest.mark.parametrize(
    ("unexpanded", "is_hidden"), [((), False), ((PLAIN_URL,), False), (("${URL}",), True)]
)
def test_url_with_a_variable_of_a_file_is_read_from_the_environment(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unexpanded: tuple[str, ...],
    is_hidden: bool,
) -> None:
    target = target_of(url=PLAIN_URL)
    target.unexpanded = unexpanded
    written(tmp_path, found(SOLID), target=target)
    monkeypatch.setenv("MCP_FUZZ_URL", "http://other/")
    _, ((found_target, *_),) = run_tests(tmp_path, {})
    assert found_target == ("http://other/" if is_hidden else PLAIN_URL)


@pytest.mark.parametrize(
    ("name", "value", "is_secret", "is_hidden"),
    [
        ("LANG", "C", False, False),
        ("LANG", "C", True, True),
        ("API_KEY", SECRET, False, True),
        ("DATABASE", "http://me:secret-word@host/", False, True),
    ],
)
def test_variable_is_hidden_if_it_is_a_secret_or_looks_like_one(
    name: str, value: str, is_secret: bool, is_hidden: bool
) -> None:
    hidden = FromEnvironment(name)
    assert hidden_variable(name, value, is_secret=is_secret) == (hidden if is_hidden else value)
    assert hidden_variable("LANG", "C") == "C"


@pytest.mark.parametrize(
    ("name", "value", "is_secret", "is_hidden"),
    [
        ("x-tenant", "a", False, False),
        ("x-tenant", "a", True, True),
        ("authorization", "Bearer abc", False, True),
    ],
)
def test_header_is_hidden_if_it_is_a_secret_or_looks_like_one(
    name: str, value: str, is_secret: bool, is_hidden: bool
) -> None:
    hidden = FromEnvironment("MCP_FUZZ_" + name.replace("-", "_").upper())
    assert hidden_header(name, value, is_secret=is_secret) == (hidden if is_hidden else value)
    assert hidden_header("x-tenant", "a") == "a"


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
    text = (tmp_path / "test_findings.py").read_text()
    shown = "x" * length + "\\\\" * (300 - length)
    assert f'"""MUST RPC-7: {shown}."""' in text


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


def test_junit_skips_rows_that_the_user_accepts_and_fails_habits_if_it_is_strict() -> None:
    """A finding of a row counts more than either."""
    habit = next(each for each in HABITS if each.row not in ("RPC-7", "RPC-1", "crash"))
    campaign = run_with(found(CRASH, BYTES), found(CRASH, PING))
    campaign.found.left_out.update({"RPC-1": "in the baseline", "crash": "ignored"})
    campaign.unconfirmed.update({"RPC-7 a": 1, "RPC-7 b": 2, "crash c": 3})
    for case in PING, BYTES:
        campaign.habits.append(
            ShownHabit(habit=habit, sdk=min(habit.sdks), marks=[], case=case, level="MUST")
        )
    for strict, tag in (False, "skipped"), (True, "failure"):
        cases = cases_of(junit_report(campaign, strict=strict))
        assert [each for each, _ in cases["crash"]] == ["failure"] * 2
        assert cases["RPC-1"] == [("skipped", "in the baseline")]
        assert cases["RPC-7"] == [("skipped", "RPC-7 a: seen 1 times, and in no further play: ")]
        assert [each for each, _ in cases[habit.row]] == [tag] * 2
        assert cases[habit.row][0][1] == f"{campaign.habits[0].sentence}: {shown_case(PING)}"
    assert junit_report(campaign) == junit_report(campaign, strict=False)


class PassedChecks:
    """The invariants of a run, two of which hold."""

    passed = ("total_is_right", "RPC-7")
    failure = ""
    unjudged = ""


def test_junit_has_the_invariants_that_hold_and_why_a_run_is_incomplete() -> None:
    """The last one is a test with an error, which isn't a failure."""
    campaign = run_with(found(SOLID))
    campaign.checks = PassedChecks()  # type: ignore[assignment]
    report = junit_report(campaign)
    assert cases_of(report).keys() == {"RPC-7", "RPC-1", "total_is_right"}
    assert ET.fromstring(report)[0].attrib["errors"] == "0"
    for text in junit_report(campaign), failed_junit_report(campaign.target, "no start <"):
        assert ET.fromstring(text)[0].attrib["name"] == "mcp-trio fuzz memory --fast"
    suite = ET.fromstring(failed_junit_report(campaign.target, "no start <"))[0]
    assert [suite.attrib[each] for each in ("tests", "failures", "errors")] == ["1", "0", "1"]
    assert suite[0].attrib["name"] == "the run is complete"
    assert suite[0][0].attrib == {"message": "no start <"}
    campaign.interrupted = "the user has ended it"
    suite = ET.fromstring(junit_report(campaign))[0]
    assert suite.attrib["errors"] == "1"
    assert suite[-1][0].attrib == {"message": "the user has ended it"}


def test_junit_of_words_of_the_server_is_xml() -> None:
    cases = cases_of(junit_report(run_with(found(ODD, [("mutate", HOSTILE)]))))
    ((_, message),) = cases["RPC-35"]
    assert "<b> &" in message
    assert "\\u001b[31m" in message
