"""`mcp-trio fuzz --invariants FILE`: exit statuses, output, files, and stored findings."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from mcp_trio.oracle.fuzz.draw._cases import CaseSource
from mcp_trio.testing import find_faults
from tests.trio_.cli.oracle.fuzz import test_fuzz
from tests.trio_.oracle.fuzz.memory_target import OLD, MemoryTarget
from tests.trio_.oracle.fuzz.notes_server import (
    CAN_BE_READ,
    CREATED,
    NotesServer,
    write_invariants,
)

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("hypothesis")

fuzz = test_fuzz.fuzz  # the fixture
NAME = "created_note_can_be_read"
CASE: list[list[Any]] = [
    ["open", OLD, "whole", "all"],
    ["call", "create_note", {"text": "bad"}, []],
    ["wait"],
    ["hand", "read_note", "id", "note_id", 0],
    ["call", "read_note", {"id": "none"}, []],
]
EVERY = "@invariant()\ndef every_result(call, result):\n    {}\n"


@pytest.fixture(autouse=True)
def import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def broken(fuzz: test_fuzz.Fuzz, monkeypatch: pytest.MonkeyPatch) -> test_fuzz.Fuzz:
    """Return the command with a server that forgets a note, for which `CASE` is drawn."""
    fuzz.target = MemoryTarget(NotesServer(forgets=("bad",)))
    case = [tuple(step) for step in CASE]
    monkeypatch.setattr(CaseSource, "draw", lambda self, count: [case] * count)
    fuzz.store()
    return fuzz


def given(folder: Path, *parts: str) -> tuple[str, str]:
    return ("--invariants", str(write_invariants(folder, *parts)))


def test_failed_invariant_ends_with_status_1_and_is_in_all_files(broken: test_fuzz.Fuzz) -> None:
    """On the terminal, in the report, the trace, the JUnit file and the written test."""
    junit = broken.folder / "junit.xml"
    words = given(broken.folder, CREATED, CAN_BE_READ)
    run = broken(*words, "--junit", str(junit))
    assert run.status == 1
    assert f' 1  invariant {NAME}  read_note {{"id": "note-' in run.out
    assert ": no such note  solid 3/3, 5 steps -> 4\n" in run.out
    (finding,) = broken.report["findings"]
    assert (finding["kind"], finding["row"], finding["level"]) == ("invariant", NAME, "invariant")
    assert finding["cause"] == {"family": NAME, "shape": "result", "scope": "read_note"}
    assert broken.report["invariants"]["checks"][NAME] > 0
    assert (broken.folder / "found" / f"1-{NAME}.mcp.jsonl").exists()
    cases = {each.get("name"): each for each in ET.parse(junit).iter("testcase")}
    assert cases[f"An invariant holds [{NAME}]"].find("failure") is not None
    assert f"def test_1_{NAME}_tools_call():" in broken.tests
    assert f"    assert '{NAME}' not in faults" in broken.tests
    assert "invariants=" in broken.tests
    assert "checks.py" in broken.tests


def test_invariants_that_hold_end_with_status_0_and_pass_in_junit(fuzz: test_fuzz.Fuzz) -> None:
    junit = fuzz.folder / "junit.xml"
    fuzz.target = MemoryTarget(NotesServer())
    fuzz.store(CASE)
    run = fuzz(*given(fuzz.folder, CREATED, CAN_BE_READ), "--junit", str(junit))
    assert run.status == 0
    assert run.err.count("note: ") == 0
    cases = {each.get("name"): each for each in ET.parse(junit).iter("testcase")}
    assert list(cases[f"An invariant holds [{NAME}]"]) == []


def test_broken_invariant_is_reported_once_and_ends_with_status_2(fuzz: test_fuzz.Fuzz) -> None:
    """It judges nothing, so the run must not look clean. A finding comes first."""
    junit = fuzz.folder / "junit.xml"
    fuzz.target = MemoryTarget(NotesServer())
    fuzz.store(CASE, CASE)
    words = given(fuzz.folder, CREATED, EVERY.format("print('x'); return result.hits"))
    run = fuzz(*words, "--junit", str(junit), "--cases", "2", "--json")
    assert run.status == 2
    assert run.err.count("the invariant every_result is broken: AttributeError: ") == 1
    assert "(checks.py, line 10: print('x'); return result.hits)" in run.err
    assert json.loads(run.out)["invariants"]["broken"].keys() == {"every_result"}
    assert [each.tag for each in ET.parse(junit).iter("error")] == ["error"]


def test_broken_invariant_hides_no_finding(broken: test_fuzz.Fuzz) -> None:
    words = given(broken.folder, CREATED, CAN_BE_READ, EVERY.format("return result.hits"))
    run = broken(*words)
    assert run.status == 1
    assert "the invariant every_result is broken" in run.err
    assert broken.rows == [NAME]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "--invariants: there is no file"),
        ("x = 1 / 0\n", "ZeroDivisionError: division by zero (checks.py, line 2)"),
        ("@invariant('find')\ndef f(c, r): pass\n", "line 2: the server has no tool find"),
    ],
)
def test_file_that_is_wrong_is_misuse(fuzz: test_fuzz.Fuzz, text: str | None, says: str) -> None:
    fuzz.target = MemoryTarget(NotesServer())
    path = fuzz.folder / "checks.py"
    if text is not None:
        write_invariants(fuzz.folder, text)
    run = fuzz("--invariants", str(path))
    assert run.status == 2
    assert says in run.err


def test_invariant_of_a_tool_that_is_not_allowed_is_reported_and_judges_nothing(
    fuzz: test_fuzz.Fuzz,
) -> None:
    fuzz.target = MemoryTarget(NotesServer())
    fuzz.store(CASE)
    words = given(fuzz.folder, CREATED, CAN_BE_READ)
    run = fuzz(*words, "--deny", "read_note")
    assert run.status == 4
    assert f"the tool read_note is not called, so nothing runs of: {NAME}, uses of" in run.err
    assert "nothing was judged: no invariant was checked" in run.err


def test_stored_finding_stays_without_its_file(broken: test_fuzz.Fuzz) -> None:
    """Without the file a play of its case would show nothing, and the fault would look repaired."""
    assert broken(*given(broken.folder, CREATED, CAN_BE_READ)).status == 1
    run = broken("--cases", "1")
    assert "cannot be played, and stays in this one: --invariants FILE is needed" in run.err
    assert [each["row"] for each in broken.report["kept"]] == [NAME]


@pytest.mark.long
def test_stored_finding_needs_its_file_until_it_is_repaired(broken: test_fuzz.Fuzz) -> None:
    """It stays over several runs without the file; with it, it is played, and then gone."""
    words = given(broken.folder, CREATED, CAN_BE_READ)
    assert broken(*words).status == 1
    for _ in range(2):
        run = broken("--cases", "1")
        assert run.status == 0
        assert (
            f"({NAME}) of the last report cannot be played, and stays in this one: --invariants"
            f" FILE is needed, with {NAME}, note_id" in run.err
        )
        assert "show no fault any more" not in run.out
        (kept,) = broken.report["kept"]
        assert (kept["row"], kept["kind"], kept["plays"]) == (NAME, "invariant", 3)
    run = broken(*words)
    assert run.status == 1
    assert broken.rows == [NAME]
    assert "kept" not in broken.report
    broken.target = MemoryTarget(NotesServer())
    assert "cases of the last run that show no fault any more: 1\n" in broken(*words).out


@pytest.mark.parametrize("scope", ["", ":read_note"])
def test_invariant_can_be_ignored_by_its_name(broken: test_fuzz.Fuzz, scope: str) -> None:
    words = given(broken.folder, CREATED, CAN_BE_READ)
    run = broken(*words, "--ignore-row", NAME + scope)
    assert run.status == 0
    assert ", 1 ignored" in run.out
    assert broken("--ignore-row", NAME).status == 2  # without the file there is no such row


def test_case_that_hands_values_needs_the_file_in_a_test(tmp_path: Path) -> None:
    steps = [tuple(step) for step in CASE]
    with pytest.raises(ValueError, match="hands note_id from one call to the next: give the file"):
        find_faults(["no-such-program"], steps)
    path = write_invariants(tmp_path, EVERY.format("pass"))
    with pytest.raises(ValueError, match=r"no @after_call in .*checks\.py provides it"):
        find_faults(["no-such-program"], steps, invariants=path)
