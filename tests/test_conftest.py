"""The promises of `tests/conftest.py` for every run.

Interrupts arrive, a test that hangs fails by name, and tests that were left out are listed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LEFT_OUT, ROOT

pytestmark = pytest.mark.timeout(120)  # they start a pytest of their own
SETTINGS = f"""
[pytest]
addopts =
    -p tests.conftest
    -p no:cacheprovider
    -m "{LEFT_OUT}"
trio_mode = true
markers =
    requirement
    long
    slow
    perf
    node
"""


def run_in_background(place: Path, tests: str, **environment: str) -> str:
    """Run `tests` as a job that a shell starts in the background: SIGINT is ignored.

    Return the output of pytest.
    """
    (place / "pytest.ini").write_text(SETTINGS)
    (place / "test_it.py").write_text(tests)
    words = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(place), str(place)]
    done = subprocess.run(
        ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", *words],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.stdout + done.stderr


SIGNALS = """
import signal, subprocess, sys

CHILD = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"

def test_in_the_run():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

def test_in_a_program():
    child = subprocess.run([sys.executable, "-c", CHILD], capture_output=True)
    assert child.stdout.split() == [b"True"]
"""


def test_sigint_ignored_by_the_shell_is_handled_in_tests_and_programs(tmp_path: Path) -> None:
    output = run_in_background(tmp_path, SIGNALS)
    assert "2 passed" in output, output


HANGS = """
import subprocess, threading
import pytest, trio
from tests.harness.world.children import OF_MANY_TESTS

pytestmark = pytest.mark.timeout(1)
shared = []

def test_waits_for_a_program():
    shared.append(subprocess.Popen(["sleep", "1000"]))
    OF_MANY_TESTS.add(shared[0].pid)
    with subprocess.Popen(["sleep", "1000"]):
        pass

def test_waits_for_a_thread():
    threading.Event().wait()

async def test_waits_in_trio():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        await trio.sleep_forever()

@pytest.mark.parametrize("after", [1])
async def test_nothing_hangs(after):
    with shared[0] as program:
        assert program.poll() is None  # the tests that hang did not kill it
        program.kill()

@pytest.mark.slow
def test_takes_minutes():
    pass

@pytest.mark.long
def test_takes_seconds():
    pass
"""


def test_a_test_that_hangs_fails_by_name_and_the_run_goes_on(tmp_path: Path) -> None:
    output = run_in_background(tmp_path, HANGS)
    for name in "test_waits_for_a_program", "test_waits_for_a_thread", "test_waits_in_trio":
        # pytest cuts the line to the width of a terminal, but not in CI, where the error follows.
        assert re.search(rf"FAILED .*test_it\.py::{name}( - .*)?$", output, re.MULTILINE), output
    assert "3 failed, 1 passed, 2 deselected" in output
    assert (
        "Tests were left out. To run them too: "
        'pytest -m long, pytest -m slow, pytest -m perf, pytest -m "process or interop or node"'
        in output
    )


NEEDS = """
import pytest

@pytest.fixture
def tool():
    pytest.skip("needs a tool")

def test_needs_a_tool(tool):
    pass

@pytest.mark.skipif(True, reason="reads /proc")
def test_of_another_system():
    pass
"""


@pytest.mark.parametrize(("ci", "outcome"), [("true", "1 skipped, 1 error"), ("", "2 skipped")])
def test_missing_tool_in_ci_is_an_error(ci: str, outcome: str, tmp_path: Path) -> None:
    output = run_in_background(tmp_path, NEEDS, CI=ci)
    assert outcome in output, output
