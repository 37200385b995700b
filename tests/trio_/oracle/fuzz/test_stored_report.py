"""The last report in a folder: what a run plays of it first, and what it keeps."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.oracle.fuzz._case import encode_case
from mcp_trio.oracle.fuzz._stored_report import read_stored
from mcp_trio.oracle.fuzz.causes._baseline import read_baseline
from tests.trio_.cli.oracle.fuzz import test_fuzz

from .memory_target import NEW, OLD, MemoryTarget, answers_ping_twice, same_each_time

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_trio.oracle.fuzz._case import Case

pytest.importorskip("hypothesis")

fuzz = test_fuzz.fuzz  # the fixture
OPEN: list[Any] = ["open", OLD, "whole", "all"]
PING: list[Any] = [OPEN, ["request", "ping", {}, "int"]]
PLAYED: Case = [tuple(step) for step in PING]
BYTES: Case = [("open", OLD, "whole", "all"), ("damage", b'{"id":\xff}\x00')]
# Findings that can't be played, with the cause that the note names.
UNPLAYABLE: list[tuple[Any, str]] = [
    ({"row": "RPC-7", "steps": [OPEN, ["ask", "ping"]]}, "its step 1 is unknown: there is no step"),
    ({"row": "RPC-7", "steps": [OPEN, ["call"]]}, "its step 1, call, has no tool: it needs a text"),
    (
        {"row": "RPC-7", "steps": [OPEN, ["on", 1, "request", "ping"]]},
        "its step 1 is on client 1, ",
    ),
    ({"row": "RPC-7", "steps": [["open"]]}, "its step 0, open, has no revision"),
    ({"row": "RPC-7", "steps": [["open", NEW, "whole", "all"]]}, f"does not speak {NEW}"),
    (
        {"row": "RPC-7", "steps": [OPEN, ["call", "wipe", {}, []]]},
        "its steps may call tools that are not allowed",
    ),
    ({"row": "RPC-7", "steps": [OPEN, ["damage", {"base64": "a"}]]}, "its step 1, damage, has no"),
    ({"row": "RPC-7", "steps": [["serve", [OLD], []]]}, 'there is no step "serve" for a server'),
    ({"row": "RPC-7", "steps": 5, "sentence": "a"}, "a case is a list of steps"),
    ({"row": 5}, "a case is a list of steps"),
    ({"version": 4, "steps": PING}, "it is of version 4, and this mcp-trio reads up to 3: update"),
    (7, "it is not an object"),
]


def store(folder: Path, document: Any) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    (folder / "report.json").write_text(text)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_cases_of_each_version_are_played_and_those_that_were_not_come_last(
    tmp_path: Path, version: int
) -> None:
    document = {
        "version": version,
        "findings": [{"row": "RPC-7", "steps": PING}],
        "kept": [{"steps": encode_case(BYTES)}],
        "unplayed": [PING],
    }
    store(tmp_path, document)
    stored = read_stored(tmp_path)
    assert stored.cases == [PLAYED, BYTES, PLAYED]
    assert (stored.kept, stored.notes) == ([], [])


def test_folder_without_a_report_has_no_cases(tmp_path: Path) -> None:
    stored = read_stored(tmp_path)
    assert (stored.cases, stored.kept, stored.notes) == ([], [], [])


@pytest.mark.parametrize(("entry", "says"), UNPLAYABLE)
def test_finding_that_cannot_be_played_stays_unchanged_and_is_named(
    fuzz: test_fuzz.Fuzz, entry: Any, says: str
) -> None:
    """It isn't counted as repaired. The run plays the others, and the next one says it again."""
    store(fuzz.folder / "found", {"version": 3, "findings": [{"steps": PING}, entry]})
    for name in ("findings[1]", "kept[0]"):
        run = fuzz("--cases", "2")
        assert run.status == 0
        assert f"note: {name}" in run.err
        assert "of the last report cannot be played, and stays in this one: " in run.err
        assert says in run.err
        assert fuzz.report["kept"] == [entry]
        assert fuzz.report["repaired"] == (1 if name == "findings[1]" else 0)
        assert fuzz.report["unplayed"] == []


def test_case_that_a_run_had_no_time_for_and_that_cannot_be_played_is_kept(tmp_path: Path) -> None:
    store(tmp_path, {"findings": [], "unplayed": [PING, [["ask"]], 5]})
    stored = read_stored(tmp_path)
    assert stored.cases == [PLAYED]
    assert stored.kept == [{"steps": [["ask"]]}, {"steps": 5}]
    assert [note.partition(" of ")[0] for note in stored.notes] == ["unplayed[1]", "unplayed[2]"]


def test_report_of_a_newer_version_is_not_played_and_its_findings_stay(
    fuzz: test_fuzz.Fuzz,
) -> None:
    """An older mcp-trio may run in between: what it can't read must be left for the newer one."""
    finding = {"row": "RPC-7", "steps": PING, "further": {"a": 1}}
    store(fuzz.folder / "found", {"version": 4, "findings": [finding, finding]})
    fuzz.target = MemoryTarget(same_each_time(answers_ping_twice))
    for _ in range(2):
        run = fuzz("--cases", "1")
        assert "it is of version 4, and this mcp-trio reads up to 3: update mcp-trio, or" in run.err
        assert "show no fault any more" not in run.out
        assert fuzz.report["kept"] == [{**finding, "version": 4}] * 2
        assert fuzz.report["version"] == 3
        assert read_baseline(json.dumps(fuzz.report).encode()).form == 3


def test_case_that_needs_a_name_of_the_author_is_kept_without_it(tmp_path: Path) -> None:
    """A case that this run can't play as a whole is kept, and a part of it is played."""
    handed = [OPEN, ["hand", "add", "a", "total", 0]]
    broken = {"row": "total_is_right", "kind": "invariant", "steps": PING}
    entries: list[Any] = [{"row": "RPC-7", "kind": "row", "steps": handed}, broken]
    store(tmp_path, {"findings": [*entries, {"row": "RPC-7", "kind": "row", "steps": PING}]})
    stored = read_stored(tmp_path, lacks=lambda case: f"it has {len(case)} steps")
    assert stored.cases == [PLAYED]
    assert stored.kept == [*entries, {"row": "RPC-7", "kind": "row", "steps": PING}]
    assert [note.partition(": ")[2] for note in stored.notes] == [
        "--invariants FILE is needed, with total",
        "--invariants FILE is needed, with total_is_right",
        "it has 2 steps",
    ]
    stored = read_stored(tmp_path, known=["total", "total_is_right"])
    assert (len(stored.cases), stored.kept, stored.notes) == (3, [], [])


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (1, "findings[0] of the last report cannot be played, and stays in this one: "),
        (2, "findings[0], findings[1] of the last report cannot be played, and stay in this one"),
        (3, "findings[0], findings[1], findings[2] of the last report cannot be played"),
        (4, "findings[0], findings[1], findings[2] and 1 more of the last report"),
    ],
)
def test_note_names_three_findings_that_cannot_be_played(
    tmp_path: Path, count: int, shown: str
) -> None:
    store(tmp_path, {"findings": [{"steps": 5}] * count})
    [note] = read_stored(tmp_path).notes
    assert note.startswith(shown)
    assert note.endswith("a case is a list of steps")


@pytest.mark.parametrize(("count", "notes"), [(20, 20), (21, 21), (22, 21)])
def test_twenty_reasons_have_notes_of_their_own(tmp_path: Path, count: int, notes: int) -> None:
    store(tmp_path, {"findings": [{"steps": [[f"s{each}"]]} for each in range(count)]})
    found = read_stored(tmp_path).notes
    assert len(found) == notes
    assert [each for each in found if "more findings" in each] == [
        f"{each} more findings of the last report stay in this one" for each in (1, 2)
    ][count - 21 : count - 20]


@pytest.mark.parametrize(("levels", "is_read"), [(210, True), (211, False)])
def test_report_is_read_if_it_is_ten_levels_deeper_than_a_case(
    tmp_path: Path, levels: int, is_read: bool
) -> None:
    value: Any = 5
    for _ in range(levels - 1):
        value = [value]
    store(tmp_path, {"findings": [], "further": value})
    if is_read:
        assert read_stored(tmp_path).cases == []
        return
    with pytest.raises(ValueError, match="it is nested too deeply"):
        read_stored(tmp_path)


@pytest.mark.parametrize("version", ["3", True, 0, 2.0, None, [3]])
def test_report_without_a_right_version_is_not_played(tmp_path: Path, version: Any) -> None:
    store(tmp_path, {"version": version, "findings": [{"steps": PING}]})
    stored = read_stored(tmp_path)
    assert stored.cases == []
    assert stored.kept == [{"steps": PING, "version": version}]
    assert "its version is " in stored.notes[0]


def test_finding_of_the_other_side_stays_until_that_side_is_fuzzed(tmp_path: Path) -> None:
    entries = [{"steps": PING}, {"steps": [["serve", [OLD], []]]}]
    store(tmp_path, {"findings": entries})
    assert read_stored(tmp_path).kept == entries[1:]
    assert read_stored(tmp_path, "client").kept == entries[:1]


def test_part_of_a_case_is_played_without_what_is_not_allowed(fuzz: test_fuzz.Fuzz) -> None:
    """A fault of that part is found; a play without one shows nothing about the finding."""
    steps = [*PING, ["call", "wipe", {}, []]]
    store(fuzz.folder / "found", {"findings": [{"row": "RPC-7", "steps": steps}]})
    fuzz.target = MemoryTarget(same_each_time(answers_ping_twice))
    assert fuzz("--cases", "1", "--no-shrink").status == 1
    assert fuzz.report["kept"] == [{"row": "RPC-7", "steps": steps}]
    assert "wipe" not in fuzz.tests


def test_notes_about_findings_that_cannot_be_played_have_a_limit(tmp_path: Path) -> None:
    same = [{"row": "x" * 5_000, "steps": 5}] * 1_000
    store(tmp_path, {"findings": [*same, *({"steps": [[str(each)]]} for each in range(100))]})
    stored = read_stored(tmp_path)
    assert len(stored.kept) == 1_100
    assert re.match(
        r"findings\[0\] \(x{60}\), findings\[1\] .* and 997 more of the", stored.notes[0]
    )
    assert stored.notes[-1] == "81 more findings of the last report stay in this one"
    assert sum(map(len, stored.notes)) < 20_000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is cut off: "),
        ("[", "it is cut off: "),
        ("a: 1", "it is not JSON: "),
        ("[]", "it is not a report of `mcp-trio fuzz`"),
        ("{}", "it is not a report of `mcp-trio fuzz`"),
        ('{"findings": 1}', "it is not a report of `mcp-trio fuzz`"),
        ('{"findings": [], "unplayed": 1}', "it was edited: unplayed is not a list"),
        ('{"findings": [], "kept": {}}', "it was edited: kept is not a list"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"findings": [' + "[" * 500 + "]" * 500 + "]}", "it is nested too deeply"),
    ],
)
def test_file_that_is_not_a_report_is_not_replaced(
    fuzz: test_fuzz.Fuzz, text: str, says: str
) -> None:
    """Its findings would be lost; and it can be the file of another program."""
    store(fuzz.folder / "found", text)
    run = fuzz()
    assert run.status == 2
    assert f"report.json: {says}" in run.err
    assert "; repair or remove it, or give another folder with --output" in run.err
    assert (fuzz.folder / "found" / "report.json").read_text() == text


def test_report_that_cannot_be_opened_is_not_replaced(fuzz: test_fuzz.Fuzz) -> None:
    path = fuzz.folder / "found" / "report.json"
    path.unlink()
    path.mkdir()
    run = fuzz()
    assert run.status == 2
    assert f"{path}: is no regular file" in run.err
