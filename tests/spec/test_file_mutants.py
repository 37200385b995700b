"""All mutants of one file, against tests that are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec import file_mutants
from tests.spec.equivalent_mutants import Equivalent
from tests.spec.file_mutants import mutants_of, survivors
from tests.spec.test_random_mutants import make_project

FILE = "mcp_core/a/_f.py"
CODE = "def f(a):\n    return a < 3\n\n\ndef g(a, b=5):\n    return a + b\n"
TESTS = """
    from mcp_core.a._f import f, g
    def test_f():
        assert f(2) and not f(3)
    def test_g():
        assert g(1) == 6
"""


def changes(scope: str = "") -> set[str]:
    return {each.new for each in mutants_of(FILE, CODE, scope)}


def test_mutants_of_a_file_are_all_choices_of_all_places() -> None:
    of_f = {"return a <= 3", "return a < 4", "return a < 2"}
    defaults = {f"def g(a, b={each}):\n    ..." for each in (0, 10, 5000)}
    of_g = {"return a - b", "return None"}
    assert changes() == {*of_f, *of_g, *defaults}
    assert changes("g") == {*of_g, *defaults}


def test_mutants_of_a_file_lack_those_that_are_equivalent(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Equivalent(f"{FILE}::f", "return a < 3", "return a <= 3", "for the test")
    monkeypatch.setattr(file_mutants, "EQUIVALENTS", (known,))
    assert "return a <= 3" not in changes()


@pytest.mark.process
def test_survivors_are_those_that_no_named_test_notices(tmp_path: Path) -> None:
    """A default is found out in a new process; the file is as before in the end."""
    without_bound = TESTS.replace(" and not f(3)", "")
    make_project(tmp_path, CODE, {"tests/test_f.py": without_bound})
    (tmp_path / "tests/spec").symlink_to(Path(__file__).parent)  # the plugin
    mutants = [
        each
        for each in mutants_of(FILE, CODE)
        if each.new in ("return a <= 3", "return a < 2", "def g(a, b=10):\n    ...")
    ]
    found = list(survivors(tmp_path, mutants, ["tests/test_f.py"]))
    assert len(mutants) == 3
    assert [each.new for each in found] == ["return a <= 3"]
    assert (tmp_path / FILE).read_text() == CODE


@pytest.mark.process
def test_survivors_of_tests_that_fail_anyway_are_refused(tmp_path: Path) -> None:
    make_project(tmp_path, CODE, {"tests/test_f.py": "def test_f():\n    assert False\n"})
    (tmp_path / "tests/spec").symlink_to(Path(__file__).parent)
    with pytest.raises(ValueError, match="test_f"):
        next(survivors(tmp_path, mutants_of(FILE, CODE), ["tests/test_f.py"]))
