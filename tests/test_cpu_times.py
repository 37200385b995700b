"""`tests.cpu_times`: which tests are listed, and which fail the run."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.cpu_times import REPEATS, run, slowdown
from tests.harness.pytest_runs import Runs

if TYPE_CHECKING:
    from pathlib import Path

Outcome = tuple[int, dict[str, float]]


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ([(0, {"a": 0.01})], 0),
        ([(0, {"a": 0.5, "b": 0.2})], 0),
        ([(1, {"a": 9.0})], 1),  # a failure is reported first
        ([(0, {"a": 1.2}), (0, {"a": 0.4})], 0),
        ([(0, {"a": 1.2}), (0, {"a": 1.2}), (0, {"a": 0.4})], 0),
        ([(0, {"a": 1.2, "b": 1.4}), (0, {"a": 1.2, "b": 0.1}), (0, {"a": 0.1, "b": 1.4})], 0),
        ([(0, {"a": 1.2}), *[(0, {"a": 1.2})] * REPEATS], 1),
    ],
)
def test_run_fails_for_a_test_that_is_expensive_each_time(
    outcomes: list[Outcome], status: int
) -> None:
    runs = Runs(*outcomes)
    assert run(["-x"], runs, lambda: 1.0) == status
    assert runs.all_made
    expensive = list(outcomes[0][1])
    for arguments, (_, seconds) in zip(runs.arguments[1:], outcomes, strict=False):
        expensive = [id for id in expensive if seconds[id] > 0.5]
        assert arguments == ["-q", "-m", "", *expensive]


def test_test_has_more_time_on_a_slow_machine() -> None:
    assert run([], Runs((0, {"a": 1.2}), (0, {"a": 1.9})), lambda: 2.0) == 0
    assert run([], Runs(*[(0, {"a": 2.1})] * (1 + REPEATS)), lambda: 2.0) == 1
    assert slowdown() >= 1.0


def test_list_has_the_most_expensive_test_first(capsys: pytest.CaptureFixture[str]) -> None:
    run([], Runs((0, {"cheap": 0.1, "b": 0.2, "a": 0.3})))
    assert capsys.readouterr().out.splitlines() == [
        "CPU time of 3 tests: 1 s",
        "  0.30 s  a",
        "  0.20 s  b",
    ]


TESTS = """
import subprocess, sys, time
import pytest

def burn():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass

@pytest.fixture(scope="module")
def shared():
    burn()
    yield
    burn()

@pytest.fixture
def own():
    yield
    burn()

def test_in_its_call():
    burn()

def test_in_its_fixture(own):
    pass

def test_in_a_child():
    subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.3: pass"])

def test_with_shared_fixture(shared):
    pass
"""


@pytest.mark.process
@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_cpu_time_of_a_test_excludes_shared_fixtures(workers: list[str], tmp_path: Path) -> None:
    """CPU in calls, own fixtures and child processes counts; a module's fixture burdens no test."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(TESTS)
    options = ["-c", str(tmp_path / "pytest.ini"), "--rootdir", str(tmp_path), *workers]
    program = (
        "import json, tests.cpu_times as plugin\n"
        "plugin.__doc__ = 'PYTEST_DONT_REWRITE'\n"
        f"print(json.dumps(plugin.run_pytest({[*options, str(tmp_path)]!r})))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    status, seconds = json.loads(done.stdout.splitlines()[-1])
    assert status == 0, done.stdout
    times = {id.partition("::")[2]: time for id, time in seconds.items()}
    assert times.pop("test_with_shared_fixture") < 0.25
    assert len(times) == 3
    assert min(times.values()) > 0.28
