"""Tests in forks: which changes of the code they meet, and how they end."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spec.forked_tests import ForkedTests, TestRun, changed_functions

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE = """
from functools import cache
LIMIT = 3
EARLY = [each for each in range(4) if each < 3]
def plain(a, limit=LIMIT):
    return a < 3
def outer(a):
    def inner(b):
        return b < 5
    class Local:
        size = 7
    return inner(a) and [each for each in (a, Local.size) if each < 9]
def maker():
    def made():
        return 11
    return made
INNER = maker()
ONCE = (lambda: 21)()
@cache
def kept():
    return 13
class Box:
    size = 15
    @property
    def area(self):
        return self.size + 17
"""


@pytest.mark.parametrize(
    ("old", "new", "functions"),
    [
        ("a < 3", "a <= 3", {"plain"}),
        ("b < 5", "b <= 5", {"outer", "outer.<locals>.inner"}),
        ("size = 7", "size = 8", {"outer"}),
        ("17", "18", {"Box.area"}),
        ("13", "14", {"kept"}),
        ("11", "12", {"maker", "maker.<locals>.made"}),
        ("return a < 3", "return (\n        True)", {"plain"}),  # the lines below move
        ("13", "13.0", {"kept"}),
        ("LIMIT = 3", "LIMIT = 4", None),
        ("limit=LIMIT", "limit=0", None),
        ("size = 15", "size = 16", None),
        ("@cache\n", "", None),
        ("a < 3", "a < 3 ", set()),
    ],
)
def test_changed_functions_are_found_unless_the_module_changes(
    old: str, new: str, functions: set[str] | None
) -> None:
    assert CODE.count(old) == 1
    found = changed_functions(CODE, CODE.replace(old, new), "a.py")
    assert (None if found is None else {name for _, name in found}) == functions


def test_functions_with_one_line_and_name_are_not_changed() -> None:
    code = "a, b = lambda: 1, lambda: 2\n"
    assert changed_functions(code, code.replace("2", "3"), "a.py") is None


TESTS = """
import os, subprocess, sys, time, pytest
from code_under_test import *
from code_under_test import kept as also_kept
assert kept() == 13
def test_plain(): assert not plain(3)
def test_inner(): assert not outer(5)
def test_made_earlier(): assert INNER() == 11
def test_cached(): assert also_kept() == 13
def test_box(): assert Box().area == 32
@pytest.mark.parametrize("a", [1, 3])
def test_many(a): assert plain(a) == (a < 3)
@pytest.mark.timeout(0.2)
def test_slow():
    while not plain(3): pass
    while True: pass
def test_stopped():
    if plain(3): os._exit(7)
def test_hung():
    if plain(3): time.sleep(1000)
def test_left():
    code = "import os, time; pid = os.fork(); print(pid) if pid else (os.setsid(), time.sleep(99))"
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    open("left", "wb").write(program.stdout.readline())
    program.wait()
def test_files(tmp_path):
    assert str(tmp_path).startswith(os.environ["HOME"])
    open(os.path.join(os.environ["HOME"], "left"), "w").close()
"""


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedTests]:
    root = tmp_path_factory.mktemp("copy")
    (root / "code_under_test.py").write_text(CODE)
    (root / "test_a.py").write_text(textwrap.dedent(TESTS))
    # As our own does, so that collections are short.
    freeze = "import gc\ndef pytest_collection_finish(session): gc.freeze()\n"
    (root / "conftest.py").write_text(freeze)
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (root / "tests").mkdir()
    (root / "tests/spec").symlink_to(Path(__file__).parent)  # the plugin
    with ForkedTests(root, ["-q", "-p", "no:cacheprovider", "test_a.py"], 5.0, 8 << 30) as tests:
        yield tests


def played(forked: ForkedTests, test: str, old: str, new: str, *ignored: str) -> TestRun | None:
    assert CODE.count(old) == 1
    tests = [f"test_a.py::{each}" for each in test.split()]
    changed = CODE.replace(old, new)
    return forked.run(tests, "code_under_test.py", CODE, changed, ignored)


@pytest.mark.process
@pytest.mark.parametrize(
    ("test", "old", "new"),
    [
        ("test_plain", "a < 3", "a <= 3"),
        ("test_inner", "b < 5", "b <= 5"),
        ("test_made_earlier", "11", "12"),
        ("test_cached", "13", "14"),
        ("test_box", "17", "18"),
    ],
)
def test_change_is_met_by_this_run_only(test: str, old: str, new: str, forked: ForkedTests) -> None:
    others = [each for each in ("test_plain", "test_box") if each != test]
    for _ in range(2):
        found = played(forked, " ".join([*others, test]), old, new)
        assert found == TestRun(True, f"test_a.py::{test}")
        assert forked.run(["test_a.py::" + test]) == TestRun(False)


@pytest.mark.process
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("each < 3", "each <= 3"),
        ("size = 15", "size = 16"),
        ("21", "22"),
    ],
)
def test_code_that_has_run_is_not_changed(old: str, new: str, forked: ForkedTests) -> None:
    assert played(forked, "test_plain", old, new) is None


@pytest.mark.process
def test_order_parameters_and_ignored_tests_are_kept(forked: ForkedTests) -> None:
    change = ("a < 3", "a <= 3")
    assert played(forked, "test_many test_plain", *change) == TestRun(
        True, "test_a.py::test_many[3]"
    )
    ignored = "test_a.py::test_many[3]"
    assert played(forked, "test_many test_plain", *change, ignored) == TestRun(
        True, "test_a.py::test_plain"
    )
    assert played(forked, "test_many", *change, ignored) == TestRun(False)
    assert forked.run(["test_a.py"]) != TestRun(False)  # a whole file, with its slow test


@pytest.mark.process
@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("test_stopped", TestRun(True, "pytest exits 7")),
        ("test_hung", TestRun(True, timed_out=True)),
        ("test_files", TestRun(False)),
    ],
)
def test_end_of_the_child_is_reported(test: str, found: TestRun, forked: ForkedTests) -> None:
    assert played(forked, test, "a < 3", "a <= 3") == found
    assert played(forked, "test_plain", "a < 3", "a < 3 ") == TestRun(False)


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such programs are found by nobody")
def test_programs_that_a_test_leaves_behind_are_ended(forked: ForkedTests) -> None:
    assert forked.run(["test_a.py::test_left"]) == TestRun(False)
    with pytest.raises(ProcessLookupError):
        os.kill(int((forked.root / "left").read_text()), 0)


@pytest.mark.process
def test_test_that_takes_too_long_is_a_timeout(forked: ForkedTests) -> None:
    found = forked.run(["test_a.py::test_slow"])
    assert found == TestRun(True, "test_a.py::test_slow", timed_out=True)


@pytest.mark.process
def test_tests_that_cannot_be_collected_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="pytest exits 4"), ForkedTests(tmp_path, ["x"], 1, 1):
        pass
