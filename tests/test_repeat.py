"""`tests.repeat`: which failures of a run are accidents."""

from __future__ import annotations

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


def test_known_flaky_tests_exist() -> None:
    lines = KNOWN.read_text("utf-8").splitlines()
    for line in lines:
        path, _, name = line.partition("::")
        assert line.startswith("#") or name.split(":")[0].split("[")[0] in (ROOT / path).read_text()


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
