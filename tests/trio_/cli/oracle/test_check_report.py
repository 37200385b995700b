"""The report of `mcp-trio check`, of findings that are made up: verdicts, totals and texts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import UNSET

from mcp_core.trace import JUDGED_ROWS, ROWS, DamagedLine, Finding
from mcp_trio.cli._errors import CliError
from mcp_trio.cli.oracle import _check, _check_options, _diff
from mcp_trio.cli.oracle._check import CheckReport

if TYPE_CHECKING:
    from mcp_trio.cli.oracle._check import CheckLevel, CheckSide

REST = f"{len(ROWS) - len(JUDGED_ROWS)} of {len(ROWS)} rows are not judged from a trace"
NO_MESSAGE = "a.mcp.jsonl has no message"
ALONE = ", or judge the other side alone with --side"
AGAIN = "record a conversation in which both sides speak"
BOTH = {"client": 1, "server": 1}


def finding(row: str = "RPC-7", **members: Any) -> Finding:
    usual: dict[str, Any] = {
        "level": "MUST",
        "side": "server",
        "lines": (7,),
        "conversation": 1,
        "sentence": "it is wrong",
        "link": "https://example.com/a",
    }
    return Finding(row=row, **{**usual, **members})


def report_of(
    *findings: Finding,
    side: CheckSide = "both",
    level: CheckLevel = "should",
    known: frozenset[tuple[str, str, str]] = frozenset(),
    judged: bool = True,
    **members: Any,
) -> CheckReport:
    """Return a report with these findings; `members` are what the judge says at the end."""
    report = CheckReport("a.mcp.jsonl", known, side, level)
    report.add(list(findings))
    usual: dict[str, Any] = {
        "messages": 5,
        "messages_from": BOTH,
        "unjudged": None,
        "left_out": frozenset(),
        "opportunities": Counter({"RPC-7": 2, "RPC-1": 1}),
    }
    if judged:
        report.finish(SimpleNamespace(**{**usual, **members}))  # type: ignore[arg-type]
    return report


class _PrintedLines:
    """A screen that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write_line(self, *parts: str | tuple[str, str]) -> None:
        self.lines.append("".join(each if isinstance(each, str) else each[0] for each in parts))

    write_message = write_line


def printed(report: CheckReport, *, rows: bool = False) -> list[str]:
    screen: Any = _PrintedLines()
    report.show(screen, every_row=rows)
    lines: list[str] = screen.lines
    return lines


def test_finding_is_printed_with_its_lines_and_its_link() -> None:
    unsure = finding("RPC-1", is_certain=False, lines=(9, 5, 6), level="SHOULD", link="")
    assert printed(report_of(finding(), unsure, finding(lines=(8, 3)))) == [
        "fail         MUST       server line 7  RPC-7  it is wrong",
        "             https://example.com/a",
        "inconclusive SHOULD     server line 9  RPC-1  it is wrong (see lines 5, 6)",
        "fail         MUST       server line 8  RPC-7  it is wrong (see line 3)",
        "             https://example.com/a",
        f"5 messages: 2 failed, 1 inconclusive. 0 rows passed; {REST}",
    ]


@pytest.mark.parametrize(
    ("members", "damaged", "text"),
    [
        ({}, 0, f"5 messages: 0 failed, 0 inconclusive. 2 rows passed; {REST}"),
        (
            {"messages": 1, "opportunities": Counter({"RPC-1": 1, "RPC-7": 0})},
            1,
            f"1 message: 0 failed, 0 inconclusive. 1 line is damaged. 1 row passed; {REST}",
        ),
        (
            {"left_out": frozenset({"RPC-1"})},
            2,
            (
                "5 messages: 0 failed, 0 inconclusive. 2 lines are damaged. 1 row passed, 1 broken"
                f" only after a breach of the fuzzer; {REST}"
            ),
        ),
    ],
)
def test_summary_has_singular_and_plural(members: Any, damaged: int, text: str) -> None:
    report = report_of(**members)
    for number in range(damaged):
        report.add_damage(number + 3, DamagedLine(reason=f"r{number}", beginning=""))
    assert report.summary == text


def test_findings_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _check._MAX_FINDINGS == 10_000
    monkeypatch.setattr(_check, "_MAX_FINDINGS", 2)
    report = report_of()
    assert report.add([finding(lines=(1,))]) == [finding(lines=(1,))]
    kept = report.add([finding(lines=(number,)) for number in (2, 3, 4)])
    assert kept == [finding(lines=(2,))]
    assert (report.failed, len(report.findings)) == (4, 2)
    assert printed(report)[-2:][0] == "... and 2 more"


@pytest.mark.parametrize(
    ("side", "level", "kept"),
    [
        ("both", "should", ["a", "b", "d"]),
        ("client", "should", ["b"]),
        ("server", "must", ["a", "d"]),
        ("both", "all", ["a", "b", "c", "d"]),
    ],
)
def test_side_and_level_select(side: Any, level: Any, kept: list[str]) -> None:
    """A fuzzer's own finding, a reading of the specification, is never left out by its level."""
    found = report_of(
        finding(sentence="a"),
        finding(sentence="b", side="client", level="SHOULD"),
        finding(sentence="c", level="MAY"),
        finding(sentence="d", level="reading", is_certain=False),
        side=side,
        level=level,
    )
    assert [each.sentence for each in found.findings] == kept


def test_known_finding_is_left_out_and_its_row_has_not_passed() -> None:
    report = report_of(finding(), known=frozenset({("RPC-7", "server", "it is wrong")}))
    assert (report.failed, report.known, report.findings) == (0, 1, [])
    assert report.passed == ["RPC-1"]
    assert "0 inconclusive, 1 known. 1 row passed" in report.summary


def test_row_has_the_worst_verdict_of_its_findings() -> None:
    sure, unsure = finding(), finding(is_certain=False)
    for findings in ([sure, unsure], [unsure, sure]):
        lines = printed(report_of(*findings), rows=True)
        assert [line[:15].strip() for line in lines if "[RPC-7]" in line] == ["fail"]
    client = finding(side="client")
    lines = printed(report_of(unsure, client, side="server"), rows=True)
    assert [line[:15].strip() for line in lines if "[RPC-7]" in line] == ["inconclusive"]


def test_rows_have_their_opportunities() -> None:
    lines = [each for each in printed(report_of(), rows=True) if "[RPC-7]" in each]
    assert [line[:24] for line in lines] == ["pass                  2  "[:24]]


@pytest.mark.parametrize(
    ("members", "side", "text"),
    [
        ({}, "both", ""),
        (
            {"messages_from": {"client": 3}},
            "both",
            f"{NO_MESSAGE} of the server; {AGAIN}{ALONE} client",
        ),
        (
            {"messages_from": {"server": 3}},
            "both",
            f"{NO_MESSAGE} of the client; {AGAIN}{ALONE} server",
        ),
        ({"messages_from": {"server": 3}}, "server", ""),
        (
            {"messages_from": {}, "messages": 0},
            "both",
            f"{NO_MESSAGE}; {AGAIN}",
        ),
        (
            {"unjudged": "client", "messages_from": {"server": 1}},
            "client",
            (
                "the client is a fuzzer, and is not judged; after its first breach in a"
                " conversation the server is not judged either;"
                " judge the other side with --side server"
            ),
        ),
        (
            {"unjudged": "server", "opportunities": Counter()},
            "client",
            (
                "the server is a fuzzer, and is not judged; after its first breach in a"
                " conversation the client is not judged either;"
                " nothing that can be judged came before it"
            ),
        ),
        ({"unjudged": "server"}, "client", ""),
    ],
)
def test_unjudged_says_what_was_not_judged(members: Any, side: Any, text: str) -> None:
    assert report_of(side=side, **members).unjudged == text


def test_unjudged_trace_names_the_first_damage() -> None:
    report = report_of(messages=0, messages_from={})
    for number in (4, 5):
        report.add_damage(number, DamagedLine(reason=f"reason {number}", beginning=""))
    assert report.unjudged == (
        "a.mcp.jsonl has no message; the first line that cannot be read is line 4: reason 4;"
        " record a conversation in which both sides speak"
    )
    report.unread = "unread"
    assert report.unjudged == "unread"
    live = CheckReport("", frozenset(), "both", "should")
    assert live.unjudged.startswith("the conversation has no message; ")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (None, ""),
        (("trace", 1, 1, 1), ""),
        (("json", 0, 0, 0), "read as JSON of another program"),
        (("lines", 2, 0, 0), "was guessed by its id or method for 2 of them"),
        (("lines", 0, 1, 0), "1 message left out, which could be of either side"),
        (("lines", 0, 2, 0), "2 messages left out, which could be of either side"),
        (("json", 0, 0, 1), "1 object without a message skipped"),
        (("lines", 0, 0, 2), "2 lines without a message skipped"),
    ],
)
def test_source_is_said_if_it_is_no_trace(source: Any, text: str) -> None:
    report = report_of()
    if source is not None:
        kind, guessed, unknown, skipped = source
        report.source = SimpleNamespace(  # type: ignore[assignment]
            kind=kind, guessed=guessed, unknown=unknown, skipped=skipped, header=None
        )
    found = report.source_text
    assert (text in found) if text else found == ""
    assert found.count(";") == (text != "" and any(source[1:]))
    document = report.document()["source"]
    assert document == ({} if source is None else dict(zip(NAMES, source, strict=True)))
    assert printed(report)[:-1] == ([found] if found else [])


NAMES = ("kind", "guessed", "unknown", "skipped")


@pytest.mark.parametrize(
    ("fuzzer", "header", "text"),
    [
        (None, (UNSET, UNSET), ""),
        (None, ("client", UNSET), "the header speaks of a fuzzer that is not the observer"),
        (None, (UNSET, 1), "the header speaks of a fuzzer that is not the observer"),
        ("client", ("client", UNSET), "after its first breach in a conversation the server is"),
        ("server", ("server", 1), "the client is judged only by the row of this finding"),
    ],
)
def test_fuzzer_is_named(fuzzer: Any, header: Any, text: str) -> None:
    report = report_of(unjudged=fuzzer)
    head = SimpleNamespace(fuzzer=header[0], finding=header[1])
    report.source = SimpleNamespace(kind="trace", header=head)  # type: ignore[assignment]
    found = report.fuzzer_text
    assert (text in found) if text else found == ""
    assert printed(report)[:-1] == ([found] if found else [])


def test_document_has_each_finding() -> None:
    """It is a baseline later: row, side and sentence must stay what they are."""
    report = report_of(
        finding(is_certain=False, lines=(9, 5), conversation=3),
        left_out=frozenset({"RPC-8", "RPC-1"}),
        opportunities=Counter({"RPC-7": 2, "RPC-1": 1}),
    )
    document = report.document()
    assert document["findings"] == [
        {
            "row": "RPC-7",
            "verdict": "inconclusive",
            "level": "MUST",
            "side": "server",
            "conversation": 3,
            "lines": [9, 5],
            "sentence": "it is wrong",
            "link": "https://example.com/a",
        }
    ]
    assert document["after_breach"] == ["RPC-1", "RPC-8"]
    assert list(document["opportunities"].items()) == [("RPC-1", 1), ("RPC-7", 2)]
    totals = ("trace", "messages", "failed", "inconclusive", "known", "damaged", "unjudged")
    assert [document[each] for each in totals] == ["a.mcp.jsonl", 5, 0, 1, 0, 0, ""]


def test_junit_has_a_case_for_each_row_and_each_fault() -> None:
    """A row that is uncertain, or was not judged, is skipped, and has not passed."""
    report = report_of(
        finding(lines=(9, 5)),
        finding(is_certain=False),
        finding("RPC-3", is_certain=False),
        left_out=frozenset({"RPC-8"}),
        unjudged="client",
    )
    text = report.junit()
    assert 'name="mcp-trio check a.mcp.jsonl" tests="5" failures="1" errors="0"' in text
    assert text.count("<testcase") == 5
    assert "<failure message=" in text
    assert "server, lines 9, 5: it is wrong https://example.com/a" in text
    assert text.count("<skipped message=") == 4
    assert "it was broken after a breach of the fuzzer" in text
    assert "the client was judged" in text


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ('{"findings": []}', set()),
        (
            '{"findings": [{"row": "a", "side": "b", "sentence": 7, "more": 1}]}',
            {("a", "b", "7")},
        ),
        ('{"findings": [{"row": "a", "side": "b"}]}', None),
        ('{"findings": 7}', None),
        ('{"other": 7}', None),
        ("[" * 100_000, None),
    ],
    ids=["empty", "one", "half", "number", "other", "deep"],
)
def test_baseline_is_a_report(tmp_path: Path, text: str, known: Any) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    if known is not None:
        assert _check._read_baseline(str(path)) == known
        return
    with pytest.raises(CliError, match=r"is not a report of `mcp-trio check`") as caught:
        _check._read_baseline(str(path))
    assert caught.value.status == 2
    with pytest.raises(CliError, match="No such file"):
        _check._read_baseline(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ((), {}),
        (("--side", "client"), {"side": "client"}),
        (("--level", "all"), {"level": "all"}),
        (("--json",), {"as_json": True}),
        (("--junit", "r"), {"junit": "r"}),
        (("--baseline", "b"), {"baseline": "b"}),
        (("--rows",), {"rows": True}),
    ],
)
def test_check_option_changes_only_what_it_is_for(words: tuple[str, ...], changes: Any) -> None:
    run: Any = _check_options.parse([*words, "a"])
    usual = {"side": "both", "level": "should", "as_json": False, "rows": False}
    assert run.args == ("a",)
    assert run.keywords == {**usual, "junit": None, "baseline": None, **changes}


# -- diff ------------------------------------------------------------------------------------------


def difference(**members: Any) -> Any:
    usual: dict[str, Any] = {
        "kind": "result changed",
        "part": "request",
        "what": "tools/call a",
        "sender": "server",
        "session": 1,
        "old_line": 3,
        "new_line": 4,
        "old_code": None,
        "new_code": None,
        "values": (),
        "value_count": 0,
    }
    return SimpleNamespace(**{**usual, **members})


def value(pointer: str = "/a", **members: Any) -> Any:
    usual = {"old": 1, "new": 2, "is_missing": False, "is_removed": False}
    return SimpleNamespace(pointer=pointer, **{**usual, **members})


@pytest.mark.parametrize(
    ("members", "lines"),
    [
        ({}, ["result changed: tools/call a, line 3 of A, line 4 of B"]),
        ({"session": 2}, ["result changed: tools/call a, line 3 of A, line 4 of B (session 2)"]),
        ({"kind": "added", "old_line": 0}, ["added the request: tools/call a, line 4 of B"]),
        ({"kind": "missing", "new_line": 0}, ["missing the request: tools/call a, line 3 of A"]),
        (
            {"kind": "error code changed", "old_code": -1},
            [
                "error code changed: tools/call a, line 3 of A, line 4 of B",
                "    error -1 → a result",
            ],
        ),
    ],
)
def test_difference_is_printed(members: Any, lines: list[str]) -> None:
    screen: Any = _PrintedLines()
    found: Any = SimpleNamespace(differences=[difference(**members)], count=1)
    _diff.show_diff(screen, found)
    assert screen.lines == lines


def test_differences_beyond_the_limits_are_counted() -> None:
    screen: Any = _PrintedLines()
    count = _diff._MAX_LINES
    values = [value(f"/{number}") for number in range(count + 1)]
    most = difference(values=values[:count], value_count=count)
    more = difference(values=values, value_count=count + 3)
    found: Any = SimpleNamespace(differences=[most, more], count=5)
    _diff.show_diff(screen, found)
    shown = [f"    /{number}: 1 → 2" for number in range(count)]
    head = "result changed: tools/call a, line 3 of A, line 4 of B"
    assert screen.lines == [head, *shown, head, *shown, "    and 3 more", "... and 3 more"]


def test_differences_as_json_have_what_there_is() -> None:
    """A value that is missing on one side has no member for it, because null is a value, too."""
    found: Any = SimpleNamespace(
        compared=4,
        not_compared=1,
        count=2,
        differences=[
            difference(
                kind="error code changed",
                new_line=0,
                old_code=-1,
                values=[value(), value(is_missing=True), value(is_removed=True)],
                value_count=9,
            ),
            difference(old_line=0, session=2),
        ],
    )
    document = json.loads(json.dumps(_diff.diff_document(found)))
    first, second = document.pop("differences")
    assert document == {"compared": 4, "notCompared": 1, "count": 2}
    assert (first["oldLine"], first["newLine"], first["oldCode"], first["newCode"]) == (
        *(3, None),
        *(-1, None),
    )
    assert first["valueCount"] == 9
    assert first["values"] == [
        {"pointer": "/a", "old": 1, "new": 2},
        {"pointer": "/a", "new": 2},
        {"pointer": "/a", "old": 1},
    ]
    assert second == {
        "kind": "result changed",
        "part": "request",
        "what": "tools/call a",
        "from": "server",
        "session": 2,
        "oldLine": None,
        "newLine": 4,
    }
    assert _diff._summary(found) == (
        "4 requests in both, 2 differences, 1 responses recorded in part"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--breaking", "--ignore", "/a"), "leave --ignore and --meta out"),
        (("--breaking", "--meta"), "leave --ignore and --meta out"),
        (("--allow-unclear",), "--allow-unclear is for --breaking"),
    ],
)
def test_diff_options_that_do_not_fit_are_refused(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        _diff.parse(["a", "b", *words])
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "keywords"),
    [
        ((), {"ignore": [], "with_meta": False, "as_json": False}),
        (("--ignore", "/a", "--meta"), {"ignore": ["/a"], "with_meta": True, "as_json": False}),
        (("--json",), {"ignore": [], "with_meta": False, "as_json": True}),
        (("--breaking",), {"allow_unclear": False, "as_json": False}),
        (("--breaking", "--allow-unclear", "--json"), {"allow_unclear": True, "as_json": True}),
    ],
)
def test_diff_option_changes_only_what_it_is_for(words: tuple[str, ...], keywords: Any) -> None:
    run: Any = _diff.parse(["a", *words, "b"])
    assert (run.args, run.keywords) == (("a", "b"), keywords)
