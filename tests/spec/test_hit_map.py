"""Which tests run which code: blocks, the map that a run makes, and the tests that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spec import hit_map, random_mutants
from tests.spec.code_match import Replacement, SourceFile
from tests.spec.hit_map import HitMap, MappedTest, blocks_of, make_map, with_hits
from tests.spec.mutation_operators import RandomMutant
from tests.spec.mutation_runner import ROOT
from tests.spec.random_mutants import AREAS, files_of, run_mutant, stages_of
from tests.spec.test_random_mutants import make_project

if TYPE_CHECKING:
    from pathlib import Path

CODE = '''\
"""A module."""

from __future__ import annotations

from functools import cache

LIMIT = 3
OTHER = LIMIT + 1


def f(x: int, most: int = 4) -> bool:
    """Return whether x is small."""
    if x < most:
        return True
    elif x > 100: return False
    else:
        for each in range(x):
            if each == 7:
                break
    return x == LIMIT


class Kind:
    size = 5

    @property
    def large(self) -> bool:
        return self.size > OTHER


@cache
def table() -> list[int]:
    return [LIMIT]


def g() -> list[int]:
    return table()
'''


def block_texts(code: str) -> list[str]:
    return [code[each.start : each.end].splitlines()[0] for each in blocks_of(SourceFile(code))]


def test_blocks_are_function_bodies_and_their_branches() -> None:
    assert block_texts(CODE) == [
        "def f(x: int, most: int = 4) -> bool:",
        "return True",
        "return False",
        "for each in range(x):",
        "if each == 7:",
        "break",
        "@property",
        "@cache",
        "def g() -> list[int]:",
    ]


def test_code_with_hits_does_the_same_and_notes_each_block_that_ran() -> None:
    source = SourceFile(CODE)
    text = with_hits(source, blocks_of(source), 10)
    hits = bytearray(30)
    text = text.replace("from mcp_core._hits import hits as __hits__\n", "")
    names: dict[str, object] = {"__hits__": hits}
    exec(compile(text, "m", "exec"), names)
    f = names["f"]
    assert callable(f)
    assert [f(2), f(200), f(9)] == [True, False, False]
    assert f.__doc__ == "Return whether x is small."
    assert [index for index, hit in enumerate(hits) if hit] == [10, 11, 12, 13, 14, 15]


@pytest.mark.parametrize("area", AREAS, ids=str)
def test_code_of_the_repository_with_hits_compiles(area: random_mutants.Area) -> None:
    for file in files_of(area)[::40]:
        source = SourceFile((ROOT / file).read_text("utf-8"))
        compile(with_hits(source, blocks_of(source), 0), file, "exec")


# -- Which tests -----------------------------------------------------------------------------------


def mapped(name: str, *hits: int, seconds: float = 1.0, passed: bool = True) -> MappedTest:
    return MappedTest(name, sum(1 << hit for hit in hits), seconds, passed, process=False)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("return True", ["quick", "slow"]),  # the fastest first
        ("each == 7", ["loop"]),
        ("most: int = 4", ["quick", "loop", "slow"]),
        ("x > 100", ["quick", "loop", "slow"]),  # a condition runs with the block around it
        (
            "LIMIT = 3",
            ["quick", "loop", "kind", "g", "again", "slow"],
        ),  # also by OTHER, and the cache
        ("size = 5", ["kind"]),
        ("[LIMIT]", ["g", "again"]),  # who calls the cached function, the first time or later
        ("A module", None),
    ],
)
def test_tests_of_a_place_are_those_that_ran_its_block(text: str, names: list[str] | None) -> None:
    tests = [
        mapped("slow", 0, 1, seconds=9),
        mapped("failed", 0, 1, 2, 3, 4, 5, 6, 7, 8, passed=False),
        mapped("quick", 0, 1, seconds=1),
        mapped("loop", 0, 3, 4, seconds=2),
        mapped("kind", 6, seconds=3),
        mapped("g", 7, 8, seconds=4),
        mapped("again", 8, seconds=5),
    ]
    start = CODE.index(text)
    found = HitMap({"m.py": SourceFile(CODE)}, tests).tests_of("m.py", start, start + len(text))
    assert (None if found is None else [each.name for each in found]) == names


def test_names_are_followed_until_one_is_too_common(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each constant is made of the one before it. Which code uses a common name says nothing."""
    code = "A = 1\nB = A\nC = B\ndef f(): return C\ndef g(): return A\n"
    tests = [mapped("f", 0), mapped("g", 1)]
    found = []
    for most in (50, 2):
        monkeypatch.setattr(hit_map, "_MOST_NAMES", most)
        names = HitMap({"m.py": SourceFile(code)}, tests).tests_of("m.py", 0, 5)
        assert names is not None
        found.append([each.name for each in names])
    assert found == [["f", "g"], ["g"]]


def test_mutant_meets_mirrored_tests_first_and_only_some_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests of other folders are taken, the fastest first, for `_ENOUGH` seconds.

    Those of other areas come last, for as long.
    """
    monkeypatch.setattr(random_mutants, "_ENOUGH", 5.0)
    uses = "from mcp_core.a._f import f"
    files = {f"tests/core/{name}.py": uses for name in ("a/test_f", "test_g", "test_h", "test_i")}
    make_project(tmp_path, CODE, files)
    tests = [
        mapped("tests/core/test_i.py::test_i", 0, seconds=7),
        mapped("tests/core/test_h.py::test_h", 0, seconds=6),
        mapped("tests/core/test_g.py::test_g", 0, seconds=1),
        mapped("tests/core/test_g.py::test_other", 6),
        mapped("tests/core/a/test_f.py::test_f", 0, seconds=100),
        mapped("tests/trio_/cli/test_run.py::test_run", 0, seconds=3),
        mapped("tests/trio_/cli/test_run.py::test_slow", 0, seconds=4),
        mapped("tests/trio_/cli/test_run.py::test_slowest", 0, seconds=5),
    ]
    file = "mcp_core/a/_f.py"
    start = CODE.index("x < most")
    mutant = RandomMutant(file, "f", "compare", 12, "", "", Replacement(start, start + 8, "x"))
    assert stages_of(mutant, tmp_path, HitMap({file: SourceFile(CODE)}, tests)) == [
        ["tests/core/a/test_f.py::test_f"],
        ["tests/core/test_g.py::test_g", "tests/core/test_h.py::test_h"],
        ["tests/trio_/cli/test_run.py::test_run", "tests/trio_/cli/test_run.py::test_slow"],
    ]


def test_mutant_whose_code_runs_before_the_tests_meets_all_that_mirror_its_module(
    tmp_path: Path,
) -> None:
    """Any of them may use the result of the import, without running the code again."""
    uses = "from mcp_core.a._f import f"
    files = {f"tests/core/{name}.py": uses for name in ("a/test_f", "helper")}
    make_project(tmp_path, CODE, {**files, "tests/core/test_g.py": "import tests.core.helper"})
    file = "mcp_core/a/_f.py"
    start = CODE.index("x < most")
    mutant = RandomMutant(file, "f", "compare", 12, "", "", Replacement(start, start + 8, "x"))
    tests = [mapped("tests/core/test_g.py::test_g", 0), mapped("tests/core/test_g.py::test_h", 6)]
    assert stages_of(mutant, tmp_path, HitMap({file: SourceFile(CODE)}, tests, imported=1)) == [
        ["tests/core/a/test_f.py"],
        ["tests/core/test_g.py::test_g"],
    ]


def test_mutant_whose_code_no_test_runs_meets_all_tests(tmp_path: Path) -> None:
    """It may run when its module is imported, as what a decorator calls does."""
    make_project(tmp_path, CODE, {"tests/core/a/test_f.py": "from mcp_core.a._f import f"})
    file = "mcp_core/a/_f.py"
    start = CODE.index("x < most")
    mutant = RandomMutant(file, "f", "compare", 12, "", "", Replacement(start, start + 8, "x"))
    tests = [mapped("tests/core/a/test_f.py::test_f", 6)]
    assert stages_of(mutant, tmp_path, HitMap({file: SourceFile(CODE)}, tests)) == [
        ["tests/core/a/test_f.py"]
    ]


# -- Runs of pytest --------------------------------------------------------------------------------

TESTS = """\
import subprocess, sys
import pytest
from mcp_core.a._f import Kind, f

@pytest.mark.parametrize("x", [1, 2, 5])
def test_f(x): assert f(x) is (x < 4)

def test_kind(): assert Kind().large

def test_bad(): assert not f(1)

@pytest.mark.process
def test_child():
    code = "from mcp_core.a._f import f; f(200)"
    subprocess.run([sys.executable, "-c", code], check=True)
"""


@pytest.mark.process
@pytest.mark.timeout(120)  # seconds; it starts pytest five times
def test_map_has_what_each_test_ran_also_in_child_processes(tmp_path: Path) -> None:
    """A mutant in a block that no test runs survives without a run of pytest."""
    root = tmp_path / "copy"
    make_project(root, CODE, {"tests/core/a/test_f.py": TESTS})
    for name in ("__init__", "spec/__init__"):
        (root / f"tests/{name}.py").parent.mkdir(exist_ok=True)
        (root / f"tests/{name}.py").touch()
    for name in ("hit_map", "code_match"):
        (root / f"tests/spec/{name}.py").write_text((ROOT / f"tests/spec/{name}.py").read_text())
    sources = {"mcp_core/a/_f.py": SourceFile(CODE)}
    report = tmp_path / "map.gz"
    options = ["-o", "addopts=", "-o", "markers=process", "-p", "no:cacheprovider", "tests"]
    make_map(root, sources, options, report)
    found = HitMap.load(sources, [report]).tests
    assert {name.rpartition("::")[2]: each.hits for name, each in found.items()} == {
        "test_f": 0b11011,
        "test_kind": 0b1000000,
        "test_bad": 0b11,
        "test_child": 0b101,
    }
    failed = [each.name for each in found.values() if not each.passed]
    assert failed == ["tests/core/a/test_f.py::test_bad"]
    assert [each.name for each in found.values() if each.process] == [
        "tests/core/a/test_f.py::test_child"
    ]
    (root / "mcp_core/a/_f.py").write_text(CODE)
    place = CODE.index("x < most")
    replacement = Replacement(place, place + 8, "x <= most")
    mutant = RandomMutant("mcp_core/a/_f.py", "f", "compare", 12, "", "", replacement)
    outcome = run_mutant(root, mutant, HitMap.load(sources, [report]))
    assert outcome.verdict == "survived"  # no test has 4
    replacement = Replacement(place, place + 8, "x > most")
    mutant = RandomMutant("mcp_core/a/_f.py", "f", "compare", 12, "", "", replacement)
    outcome = run_mutant(root, mutant, HitMap.load(sources, [report]))
    assert (outcome.verdict, outcome.test) == ("killed", "tests/core/a/test_f.py::test_f[1]")
