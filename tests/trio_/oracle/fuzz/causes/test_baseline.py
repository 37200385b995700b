"""The faults that a run accepts: baselines of each version, damaged ones, and ignored rows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz.causes._baseline import (
    NO_BASELINE,
    Baseline,
    IgnoredRow,
    cause_document,
    parse_ignored_row,
    read_baseline,
    read_ignored_rows,
)
from mcp_trio.oracle.fuzz.causes._cause import Cause

CAUSE = {"family": "RPC-17", "shape": "request params:string", "scope": "*"}
OTHER = {"family": "crash", "shape": "exit status 1 after request", "scope": "search"}
REPORT: dict[str, Any] = {
    "version": 2,
    "server": "small 1",
    "seed": 7,
    "findings": [{"row": "RPC-17", "cause": CAUSE, "also_causes": [{**CAUSE, "scope": "ping"}]}],
    "known": [{**OTHER, "seen": 0}],
    "known_methods": [["RPC-7", "ping"]],
}


def read(**members: Any) -> Baseline:
    """Return the baseline of the report with other members; ... leaves one out."""
    document = {key: each for key, each in {**REPORT, **members}.items() if each is not ...}
    return read_baseline(json.dumps(document).encode())


def test_baseline_has_the_findings_and_what_the_baseline_of_its_run_held() -> None:
    found = read()
    assert (found.form, found.side, found.target) == (2, "server", "small 1")
    assert found.causes == {
        Cause("RPC-17", "request params:string", "*"),
        Cause("RPC-17", "request params:string", "ping"),
        Cause("crash", "exit status 1 after request", "search"),
    }
    assert found.methods == {("RPC-7", "ping")}


@pytest.mark.parametrize(
    ("family", "scope", "is_known"),
    [("RPC-17", "ping", True), ("RPC-17", "search", False), ("crash", "ping", False),
     ("hang", "ping", False)],
)  # fmt: skip
def test_baseline_holds_nothing_that_was_only_counted_for_a_tool_or_an_end(
    family: str, scope: str, is_known: bool
) -> None:
    other = {**CAUSE, "family": family, "scope": scope}
    found = read(findings=[{"row": "RPC-17", "cause": CAUSE, "also_causes": [other]}], known=[])
    assert (Cause(family, "request params:string", scope) in found.causes) is is_known


def test_baseline_holds_no_cause_of_a_case_that_was_not_made_small() -> None:
    unclear = {"row": "RPC-17", "cause": CAUSE, "cause_is_unclear": True}
    assert read(findings=[unclear], known=[]).causes == frozenset()


def test_baseline_without_a_version_is_of_version_1_with_its_old_meaning() -> None:
    findings = [{"row": "RPC-7", "method": "ping", "also": ["tools/list"]}, {"row": "crash"}]
    found = read(version=..., known=..., known_methods=..., findings=findings)
    assert found.form == 1
    assert found.methods == {("RPC-7", "ping"), ("RPC-7", "tools/list"), ("crash", "")}
    assert found.causes == frozenset()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it is cut off"),
        (json.dumps(REPORT).encode()[:80], "it is cut off"),
        (json.dumps(REPORT, indent=2).encode()[:150], "it is cut off: .* in line 10"),
        (b"<xml>", "it is not JSON"),
        (b'{"a": 1} x', "it is not JSON"),
        (b"\xff\xfe", "it is not UTF-8 text: byte 0"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "it is not a report of `mcp-trio fuzz`"),
        (b"null", "it is not a report of `mcp-trio fuzz`"),
        (b"{}", "it is not a report of `mcp-trio fuzz`"),
        (b'{"trace": "a", "seed": 1, "findings": []}', "it is not a report of `mcp-trio fuzz`"),
    ],
)
def test_baseline_that_is_no_report_says_what_it_is(data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_baseline(data)


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"version": 4}, "it is of version 4, and this mcp-trio reads up to 3: update"),
        ({"version": "2"}, 'its version is "2", not a number'),
        ({"version": True}, "its version is true"),
        ({"version": 0}, "its version is 0"),
        ({"findings": ...}, "it was edited: findings is not a list"),
        ({"findings": {}}, "it was edited: findings is not a list"),
        ({"findings": [1]}, r"it was edited: findings\[0\].cause has no text 'family'"),
        ({"findings": [{}]}, r"findings\[0\].cause has no text"),
        (
            {"version": 3, "findings": [{"cause": CAUSE, "steps": [["on", 1, "wait"]]}]},
            r"it was edited: findings\[0\].steps is no case: its step 0 is on client 1, which ",
        ),
        ({"findings": [{"cause": CAUSE, "steps": 1}]}, "a case is a list of steps"),
        ({"findings": [{"cause": {**CAUSE, "scope": 5}}]}, r"findings\[0\].cause has no text"),
        ({"findings": [{"cause": {**CAUSE, "shape": ""}}]}, "no text 'shape'"),
        ({"findings": [{"cause": {**CAUSE, "family": "RPC-999"}}]}, "cause.family is RPC-999"),
        (
            {"findings": [{"cause": {**CAUSE, "family": "\x1b[2J"}}]},
            r"cause.family is \\u001b\[2J, ",
        ),
        ({"findings": [{"cause": CAUSE, "also_causes": 1}]}, "also_causes is not a list"),
        ({"known": 1}, "it was edited: known is not a list"),
        ({"known": [[]]}, r"known\[0\] has no text"),
        ({"known_methods": [["RPC-7"]]}, r"known_methods\[0\] is not a row and a method"),
        ({"version": ..., "findings": [{}]}, r"findings\[0\] has no text 'row'"),
        ({"version": ..., "findings": [{"row": "a", "also": 1}]}, "also is not a list"),
        ({"version": ..., "findings": [1]}, r"findings\[0\] has no text"),
    ],
)
def test_baseline_that_was_edited_or_is_newer_says_where(members: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read(**members)


@pytest.mark.parametrize(
    ("side", "name", "says"),
    [
        ("server", "small 1", ""),
        ("server", "small 2.0.1", ""),
        ("server", "other 1", "it is of small 1, and this is other 1"),
        ("client", "small 1", "it is of a server, and this is a client"),
    ],
)
def test_baseline_of_another_target_is_told_by_the_name_without_its_version(
    side: str, name: str, says: str
) -> None:
    assert read().find_difference(side, name) == says


def test_baseline_of_a_client_has_its_findings_and_its_name() -> None:
    """Its cases are those for clients, and its name may be missing."""
    finding = {"row": "RPC-17", "cause": CAUSE, "steps": [["serve", ["2025-11-25"], []]]}
    found = read(server=..., client="small 1", findings=[finding], known=[])
    assert (found.side, found.target) == ("client", "small 1")
    assert found.causes == {Cause("RPC-17", "request params:string", "*")}
    with pytest.raises(ValueError, match=r"findings\[0\].steps is no case"):
        read(findings=[finding])
    found = read(server=..., findings=[])
    assert found.find_difference("server", "a 1") == (
        "it is of a target without a name, and this is a 1"
    )
    assert read(server="small").find_difference("server", "small 2") == ""


def test_baseline_holds_the_causes_of_further_tools() -> None:
    """Each was confirmed by a play, so a tool's is one of them."""
    finding = {"row": "RPC-17", "cause": CAUSE, "further_causes": [OTHER]}
    expected = {Cause(**CAUSE), Cause(**OTHER)}
    assert read(findings=[finding], known=[]).causes == expected
    assert read(findings=[{**finding, "cause_is_unclear": 1}], known=[]).causes == expected
    assert read(findings=[{**finding, "cause_is_unclear": True}], known=[]).causes == {
        Cause(**OTHER)
    }
    with pytest.raises(ValueError, match=r"findings\[0\].further_causes\[0\] has no text"):
        read(findings=[{"cause": CAUSE, "further_causes": [5]}])
    with pytest.raises(ValueError, match=r"findings\[0\].further_causes is not a list"):
        read(findings=[{"cause": CAUSE, "further_causes": 5}])


def test_no_baseline_fits_each_target() -> None:
    assert Baseline() == NO_BASELINE == Baseline(form=0, target="", side="server")
    assert (NO_BASELINE.causes, NO_BASELINE.methods) == (frozenset(), frozenset())
    assert Baseline().find_difference("client", "any 1") == ""


# -- Ignored rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("RPC-17", IgnoredRow(row="RPC-17")),
        ("RPC-17:tools/list", IgnoredRow(row="RPC-17", scope="tools/list")),
        ("crash:search", IgnoredRow(row="crash", scope="search")),
        ("hang", IgnoredRow(row="hang")),
        ("result-or-error", IgnoredRow(row="result-or-error")),
        (" RPC-17:a:b  for now ", IgnoredRow(row="RPC-17", scope="a:b", reason="for now")),
    ],
)
def test_ignored_row_is_a_row_and_a_method_or_tool(text: str, entry: IgnoredRow) -> None:
    assert parse_ignored_row(text) == entry


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not ROW"),
        (":ping", "is not ROW"),
        ("RPC-17:", "is not ROW"),
        ("RPC-999", "there is no row RPC-999; did you mean RPC-"),
        ("rpc-17", "there is no row rpc-17; did you mean RPC-17"),
        ("nonsense", "there is no row nonsense"),
    ],
)
def test_text_that_is_no_ignored_row_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_ignored_row(text)


def test_file_of_ignored_rows_has_a_reason_for_each() -> None:
    text = "# SDK\n\n RPC-17:ping  dropped, see #41\nRPC-14 until 2.0\n"
    assert read_ignored_rows(text) == [
        IgnoredRow(row="RPC-17", scope="ping", reason="dropped, see #41"),
        IgnoredRow(row="RPC-14", reason="until 2.0"),
    ]
    with pytest.raises(ValueError, match="line 2: RPC-14 has no reason: write one after it"):
        read_ignored_rows("# a\nRPC-14\n")
    with pytest.raises(ValueError, match="line 1: there is no row RPC-999"):
        read_ignored_rows("RPC-999 because")


def test_name_of_an_invariant_is_a_row_where_it_is_known() -> None:
    for read_row in (parse_ignored_row, lambda *words: read_ignored_rows(*words)[0]):
        found = read_row("total_is_right:add for now", ["total_is_right"])
        assert found == IgnoredRow(row="total_is_right", scope="add", reason="for now")
        assert str(found) == "total_is_right:add"
        with pytest.raises(ValueError, match="there is no row total_is_right"):
            read_row("total_is_right because", [])
    with pytest.raises(ValueError, match="did you mean total_is_right"):
        parse_ignored_row("total_is_wright", ["total_is_right"])
    assert str(IgnoredRow(row="hang")) == "hang"


def test_document_of_a_cause_is_read_back() -> None:
    found = Cause("RPC-7", "request", "ping")
    document = cause_document(found)
    assert document == {"family": "RPC-7", "shape": "request", "scope": "ping"}
    assert read(known=[document], findings=[]).causes == {found}
    own = {"family": "total_is_right", "shape": "result", "scope": "add"}
    assert read(known=[own], findings=[]).causes == {Cause(**own)}


@pytest.mark.parametrize(
    ("entry", "row", "method", "scopes", "expected"),
    [
        ("RPC-7", "RPC-7", "ping", {"ping"}, True),
        ("RPC-7", "RPC-35", "ping", {"ping"}, False),
        ("RPC-9", "RPC-10", "ping", {"ping"}, True),
        ("result-or-error", "RPC-10", "ping", {"ping"}, True),
        ("RPC-7:ping", "RPC-7", "ping", {"ping"}, True),
        ("RPC-7:ping", "RPC-7", "tools/list", {"*"}, False),
        ("RPC-7:search", "RPC-7", "tools/call", {"search"}, True),
        ("RPC-7:search", "RPC-7", "tools/call", {"search", "weather"}, False),
        ("RPC-7:tools/call", "RPC-7", "tools/call", {"search", "weather"}, True),
        ("RPC-7:*", "RPC-7", "ping", {"*"}, True),
    ],
)
def test_entry_ignores_its_family_and_its_scope_only(
    entry: str, row: str, method: str, scopes: set[str], expected: bool
) -> None:
    """A case that calls two tools can show the other one's fault, which isn't accepted."""
    fault = TargetFault(kind="row", row=row, method=method)
    assert parse_ignored_row(entry).matches(fault, scopes) is expected


def test_hang_and_crash_are_ignored_by_their_own_words() -> None:
    """A hang has the row of a request without a response; that row doesn't cover it."""
    hang = TargetFault(kind="hang", row="RPC-35", detail="hang", method="ping")
    crash = TargetFault(kind="crash", row="crash", detail="1", method="ping")
    assert [parse_ignored_row("hang").matches(each, {"ping"}) for each in (hang, crash)] == [
        True,
        False,
    ]
    assert not parse_ignored_row("RPC-35").matches(hang, {"ping"})
    assert parse_ignored_row("crash:ping").matches(crash, {"ping"})
