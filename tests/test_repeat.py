"""`tests.repeat`: which failures of a run are accidents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.harness.pytest_runs import Runs
from tests.repeat import KNOWN, ROOT, Failure, describe, read_flaky, reason_to_fail, run, run_pytest

if TYPE_CHECKING:
    from pathlib import Path

A, B = Failure("tests/a.py::test_a", "x\nE   boom\n"), Failure("tests/b.py::test_b", "late")
SECURE = Failure("tests/security/c.py::test_c", "open")

Outcome = tuple[int, list[Failure]]


@pytest.mark.parametrize(
    ("outcomes", "status", "flaky"),
    [
        ([(0, [])], 0, []),
        ([(1, [A]), (0, []), (0, [])], 0, [A]),
        ([(1, [A, B]), (0, []), (0, [])], 0, [A, B]),
        ([(1, [A]), (1, [A])], 1, []),
        ([(1, [A]), (0, []), (1, [A])], 1, []),
        ([(1, [A]), (5, [])], 1, []),  # the test is not found when it is repeated
        ([(1, [SECURE])], 1, []),
        ([(1, [A, SECURE])], 1, []),
        ([(1, [A, B, *(Failure(f"tests/{n}.py", "") for n in "cd")])], 1, []),
        ([(1, [])], 1, []),  # an error while collecting
        ([(2, [A])], 2, []),  # interrupted
        ([(5, [])], 5, []),  # no test
    ],
)
def test_run_fails_for_faults_only(
    outcomes: list[Outcome], status: int, flaky: list[Failure], tmp_path: Path
) -> None:
    runs = Runs(*outcomes)
    assert run(["-q"], tmp_path / "flaky", runs) == status
    assert read_flaky(tmp_path / "flaky") == flaky
    assert runs.all_made
    assert runs.arguments[0] == ["-q"]
    failed = [each.id for each in outcomes[0][1]]
    assert all(each == ["-m", "", *failed] for each in runs.arguments[1:])


def test_flaky_tests_of_all_steps_count_together(tmp_path: Path) -> None:
    file = tmp_path / "flaky"
    for each in A, B:
        assert run([], file, Runs((1, [each]), (0, []), (0, []))) == 0
    assert reason_to_fail([A], file) == ""
    assert reason_to_fail([A, B], file) == "4 tests failed, more than 3"


def test_description_names_tests_that_are_not_known() -> None:
    text = describe([A, B], f"{B.id}: late\n")
    assert text.count(A.id) == 2
    assert text.count(B.id) == 1
    assert f"{A.id}: boom" in text
    assert describe([], "") == ""


def test_entry_of_a_longer_name_does_not_make_a_test_known() -> None:
    for known in (f"{A.id}_longer: boom\n", f"tests/{A.id}: boom\n", f"tests/c.py: {A.id}: boom"):
        assert "New." in describe([A], known)


def absent(known: str) -> list[str]:
    """Return the entries of tests that there are no more."""
    found = []
    for line in known.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        path, _, rest = line.partition("::")
        name = re.split(r"[\[:]", rest)[0]
        file = ROOT / path
        text = file.read_text("utf-8") if file.is_file() else ""
        if not re.search(rf"^ *(async def|def|class) {re.escape(name)}\b", text, re.MULTILINE):
            found.append(line)
    return found


def test_known_flaky_tests_exist() -> None:
    assert absent(KNOWN.read_text("utf-8")) == []


@pytest.mark.parametrize(("entry", "exists"), [
    ("# a comment", True),
    ("", True),
    ("tests/test_repeat.py::test_run_fails_for_faults_only[outcomes0-0-flaky0]: boom", True),
    ("tests/test_repeat.py::test_run_fails_for_faults_only: boom: twice", True),
    ("tests/test_repeat.py::test_run_fails: boom", False),
    ("tests/none.py::test_run_fails_for_faults_only: boom", False),
    ("nonsense", False),
])  # fmt: skip
def test_entry_of_a_test_that_is_gone_is_found(entry: str, exists: bool) -> None:
    assert absent(f"\n{entry}\n") == ([] if exists else [entry])


@pytest.mark.process
@pytest.mark.timeout(120)
def test_failures_of_a_real_run_are_noted_once_with_their_output(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef left():\n    yield\n    assert 0, 'left'\n\n"
        "def test_bad(left):\n    print('seen')\n    assert 1 == 2\n\ndef test_good(): pass\n"
    )
    options = ["-q", "-c", str(tmp_path / "pytest.ini"), "--rootdir", str(tmp_path)]
    for more in [], ["-n", "2"]:
        status, failures = run_pytest([*options, *more, str(tmp_path)])
        assert status == 1
        [failure] = failures
        assert failure.id == "test_it.py::test_bad"
        assert failure.first_line == "assert 1 == 2"
        assert "seen" in failure.text
