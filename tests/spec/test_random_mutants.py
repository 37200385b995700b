"""Mutants drawn at random: drawing, the tests for each, the verdicts and the rates."""

from __future__ import annotations

import gzip
import io
import random
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from tests.spec import mutations, random_mutants
from tests.spec.code_match import Replacement, SourceFile
from tests.spec.equivalent_mutants import EQUIVALENTS, Equivalent, find_stale_equivalents
from tests.spec.hit_map import HitMap, MappedTest, make_map
from tests.spec.mutation_operators import RandomMutant, find_places, make_mutant
from tests.spec.random_mutants import (
    AREAS,
    FEWEST,
    Area,
    RandomOutcome,
    Rate,
    area_of,
    counts,
    diff,
    draw,
    files_of,
    mirrored,
    rates,
    report,
    run_mutant,
    runs_mutants,
    stages,
    stages_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
CODE = "def f(a: int) -> bool:\n    if a < 3:\n        return True\n    return a == 5\n"
BY_NAME = {area.name: area for area in AREAS}


def file_of(each: Equivalent) -> str:
    return each.where.partition("::")[0]


def mutant_of(file: str, operator: str = "compare", code: str = CODE) -> RandomMutant:
    source = SourceFile(code)
    return next(
        make_mutant(source, file, place, index)
        for place in find_places(source)
        for index, (name, _) in enumerate(place.choices)
        if name == operator
    )


# -- Drawing ---------------------------------------------------------------------------------------


def test_draw_depends_on_the_seed_only_and_repeats_nothing() -> None:
    sources = {"a.py": SourceFile(CODE), "b.py": SourceFile(CODE)}
    first = draw(sources, 6, random.Random(1))
    assert first == draw(sources, 6, random.Random(1))
    assert first != draw(sources, 6, random.Random(2))
    assert len({each.key for each in first}) == 6


def test_draw_of_more_than_there_are_returns_one_for_each_place() -> None:
    source = SourceFile(CODE)
    assert len(draw({"a.py": source}, 1000, random.Random(1))) == len(find_places(source))


def test_draw_leaves_out_equivalents() -> None:
    source = {"a.py": SourceFile("x = a < b\n")}
    [mutant] = draw(source, 1, random.Random(1))
    assert mutant.key == ("a.py::x", "x = a < b", "x = a <= b")
    assert draw(source, 1, random.Random(1), {mutant.key}) == []
    assert draw({"b.py": source["a.py"]}, 1, random.Random(1), {mutant.key}) != []


def test_default_count_gives_each_area_enough_to_judge_it() -> None:
    shares = counts(AREAS, random_mutants.COUNT)
    assert min(shares.values()) >= FEWEST
    assert shares[BY_NAME["core"]] == 2 * shares[BY_NAME["shim"]]


@pytest.mark.parametrize("file", sorted({file_of(each) for each in EQUIVALENTS}))
def test_equivalents_are_mutants_of_todays_code(file: str) -> None:
    """A stale entry is a line in the summary, as one of the written mutants is. `.ci/run` fails."""
    stale = find_stale_equivalents(each for each in EQUIVALENTS if file_of(each) == file)
    if stale:
        pytest.xfail(f"{len(stale)} equivalent mutants no longer match: {'; '.join(stale)}")


def test_equivalents_have_reasons() -> None:
    assert [each for each in EQUIVALENTS if not each.why] == []


CODEC = "mcp_core/protocol/jsonrpc/_codec.py::decode"


@pytest.mark.parametrize(
    ("where", "new", "stale"),
    [(CODEC, "id is not None", 0), (CODEC, "id", 1), ("mcp_core/a.py::f", "id is not None", 1)],
)
def test_equivalent_that_no_operator_makes_is_stale(
    where: str, new: str, stale: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = Equivalent(where, "if id is None:\n    ...", f"if {new}:\n    ...", "an example")
    # The step of `.ci/run`.
    monkeypatch.setattr(mutations, "MUTATIONS", ())
    monkeypatch.setattr(mutations, "EQUIVALENTS", (each,))
    assert mutations.main(["--check"]) == stale


# -- Areas and their tests -------------------------------------------------------------------------

AREA_OF = {
    "mcp_core/http/wire/_http1.py": "core",
    "mcp_core/host/_pins.py": "core",
    "mcp_core/runtime/_service.py": "runtime",
    "mcp_core/adapters/_recorder.py": "runtime",
    "mcp_trio/_client.py": "trio",
    "mcp_trio/http_server/_auth.py": "trio",
    "mcp_trio/cli/_elicitation_answers.py": "tools",
    "mcp_trio/oracle/fuzz/play/_player.py": "tools",
    "mcp_asyncio_shim/_client.py": "shim",
}


@pytest.mark.parametrize("file", AREA_OF)
def test_file_belongs_to_the_area_of_its_longest_folder(file: str) -> None:
    assert area_of(file).name == AREA_OF[file]


def test_each_area_has_files_and_no_table_or_example() -> None:
    for area in AREAS:
        files = files_of(area)
        assert files
        assert all((ROOT / folder).is_dir() for folder in area.folders)
        assert not [name for name in files if "/rows/" in name or "/examples/" in name]


def test_mirrored_tests_begin_with_the_name_of_the_module() -> None:
    found = mirrored("mcp_core/protocol/jsonrpc/_codec.py")
    assert found[0] == "tests/core/protocol/jsonrpc/test_codec.py"
    assert all(name.startswith("tests/core/protocol/jsonrpc/test_") for name in found)
    assert len(found) > 1
    # The folder of a driver has the tests of all modules that stand in no folder.
    assert mirrored("mcp_trio/_nursery.py") == ["tests/trio_/test_nursery.py"]
    for package in ("mcp_trio", "mcp_asyncio_shim"):
        assert "tests/drivers/test_client.py" in mirrored(f"{package}/_client.py")


def make_project(root: Path, code: str, tests: dict[str, str]) -> None:
    """Write a repository with one module of the core, and tests."""
    files = {"mcp_core/__init__.py": "", "mcp_core/a/__init__.py": "", "mcp_core/a/_f.py": code}
    files |= {"pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['-m', 'nothing']\n"}
    for name, text in {**files, **tests}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    for package in ("mcp_trio", "mcp_asyncio_shim", "tests/asyncio_shim"):
        (root / package).mkdir(parents=True, exist_ok=True)


def test_stages_go_from_the_mirror_to_the_rest_of_the_area(tmp_path: Path) -> None:
    """A test that cannot load the module, or belongs to another area, is left out."""
    make_project(
        tmp_path,
        CODE,
        {
            "mcp_core/b.py": "from mcp_core.a import _f",
            "mcp_core/c.py": "import mcp_core.b",
            "tests/core/a/test_other.py": "",
            "tests/core/a/test_f.py": "",
            "tests/core/helper.py": "from mcp_core.a._f import f",
            "tests/core/test_far.py": "from mcp_core.c import x",
            "tests/core/test_near.py": "from tests.core.helper import f",
            "tests/core/test_table.py": "import_module('mcp_core.a._f')",
            "tests/core/test_text.py": "'of mcp_core.a._f'",
            "tests/core/test_nothing.py": "import json",
            "tests/trio_/cli/test_cli.py": "from mcp_core.a import _f",
        },
    )
    assert stages("mcp_core/a/_f.py", tmp_path) == [
        ["tests/core/a/test_f.py", "tests/core/a/test_other.py"],
        ["tests/core/test_table.py", "tests/core/test_near.py"],
        ["tests/core/test_far.py"],
    ]


@pytest.mark.parametrize("operator", ["number", "default", "compare"])
def test_code_that_runs_at_import_meets_tests_that_only_look_at_its_module(
    operator: str, tmp_path: Path
) -> None:
    """A constant may be read, and a signature looked at, by a test that runs nothing of it.

    The tests that look at all definitions import it over packages.
    """
    file = "mcp_core/a/_f.py"
    code = "LIMIT = 3\n\ndef f(a: bool = True) -> bool:\n    return LIMIT < 5\n"
    make_project(
        tmp_path,
        code,
        {
            "tests/core/a/test_f.py": "from mcp_core.a._f import LIMIT",
            "tests/core/test_table.py": "LIMITS = {'mcp_core.a._f': {'LIMIT': 3}}",
            "tests/core/test_far.py": "import tests.core.test_table",
            "tests/core/test_other.py": "import tests.core.test_table",
            "tests/core/test_public_values.py": "import tests.core.test_table",
            "tests/trio_/cli/test_cli.py": "from mcp_core.a._f import LIMIT",
        },
    )
    runs = {"test_far": 1, "test_other": 0, "test_table": 0}
    hit_map = HitMap(
        {file: SourceFile(code)},
        [MappedTest(f"tests/core/{each}.py::f", runs[each], 0.1, True, False) for each in runs],
    )
    early = [
        ["tests/core/a/test_f.py"],
        ["tests/core/test_public_values.py", "tests/core/test_table.py"],
    ]
    assert stages_of(mutant_of(file, operator, code), tmp_path, hit_map) == [
        *(early if operator != "compare" else ()),
        ["tests/core/test_far.py::f"],
    ]


@pytest.mark.parametrize("area", AREAS, ids=str)
def test_folders_of_tests_exist(area: Area) -> None:
    for start in area.tests:
        folder, _, name = start.rpartition("/")
        assert list((ROOT / folder).glob(f"{name}*")), start


# -- Verdicts --------------------------------------------------------------------------------------


def run_in_project(tmp_path: Path, mutant: RandomMutant, first: str, second: str) -> RandomOutcome:
    make_project(
        tmp_path,
        CODE,
        {
            "tests/core/a/test_f.py": f"from mcp_core.a._f import f\n{textwrap.dedent(first)}",
            "tests/core/test_g.py": f"from mcp_core.a._f import f\n{textwrap.dedent(second)}",
        },
    )
    outcome = run_mutant(tmp_path, mutant)
    assert (tmp_path / "mcp_core/a/_f.py").read_text() == CODE
    return outcome


GOOD = "def test_f() -> None: assert f(2) and f(5) and not f(3)"
WEAK = "def test_g() -> None: assert f(1)"


@pytest.mark.process
@pytest.mark.parametrize(
    ("first", "second", "verdict", "test"),
    [
        (GOOD, WEAK, "killed", "tests/core/a/test_f.py::test_f"),
        (WEAK, GOOD, "killed", "tests/core/test_g.py::test_f"),
        (WEAK, WEAK, "survived", ""),
        ("assert not f(3)", WEAK, "killed", "tests/core/a/test_f.py"),
        (
            "def test_f() -> None:\n  if f(3):\n    while True: pass",
            "",
            "timeout",
            "test_f.py::test_f",
        ),
    ],
)
def test_mutant_ends_at_the_first_test_that_fails(
    first: str, second: str, verdict: str, test: str, tmp_path: Path
) -> None:
    if verdict == "timeout":
        first = f"import pytest\npytestmark = pytest.mark.timeout(3)\n{first}"
    outcome = run_in_project(tmp_path, mutant_of("mcp_core/a/_f.py"), first, second)
    assert outcome.verdict == verdict
    assert outcome.test.endswith(test)


@pytest.mark.process
@pytest.mark.timeout(120)  # seconds; it starts pytest five times
def test_failure_on_the_unchanged_code_is_ignored(tmp_path: Path) -> None:
    first = "def test_bad() -> None: assert f(3)\ndef test_also_bad() -> None: assert 0"
    outcome = run_in_project(tmp_path, mutant_of("mcp_core/a/_f.py"), first, GOOD)
    assert (outcome.verdict, outcome.test) == ("killed", "tests/core/test_g.py::test_f")
    assert outcome.ignored == ("tests/core/a/test_f.py::test_also_bad",)


@pytest.mark.process
def test_mutant_that_ends_the_interpreter_is_killed(tmp_path: Path) -> None:
    first = "import os\ndef test_f() -> None:\n  if f(3): os._exit(7)"
    outcome = run_in_project(tmp_path, mutant_of("mcp_core/a/_f.py"), first, WEAK)
    assert (outcome.verdict, outcome.test) == ("killed", "pytest exits 7")


@pytest.mark.process
def test_mutant_without_which_no_conftest_loads_is_killed(tmp_path: Path) -> None:
    conftest = tmp_path / "tests" / "conftest.py"
    conftest.parent.mkdir()
    conftest.write_text("from mcp_core.a._f import f\nassert not f(3)\n")
    outcome = run_in_project(tmp_path, mutant_of("mcp_core/a/_f.py"), WEAK, WEAK)
    assert (outcome.verdict, outcome.test) == ("killed", "pytest exits 4")


EARLY = "from functools import cache\n\n@cache\n" + CODE + "\nassert not f(3)\n"


@pytest.mark.process
@pytest.mark.timeout(120)  # seconds; it starts pytest up to four times
@pytest.mark.parametrize(
    ("code", "operator", "verdict", "test"),
    [
        (CODE, "compare", "killed", "tests/core/a/test_f.py::test_f"),
        (CODE, "boolean", "killed", "tests/core/a/test_f.py::test_f"),
        (f"{CODE}\n\ndef g() -> bool:\n    return True\n", "unused", "survived", ""),
        # These run when the module is imported, and meet a new process.
        (EARLY, "compare", "killed", "tests/core/a/test_f.py"),
        (EARLY, "decorator", "survived", ""),
    ],
)
def test_mutant_with_a_map_meets_tests_in_forks(
    code: str,
    operator: str,
    verdict: str,
    test: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The forks find what a new process would, which only code that runs at import needs."""
    make_project(
        tmp_path,
        code,
        {"tests/core/a/test_f.py": f"from mcp_core.a._f import f\n{GOOD}"},
    )
    (tmp_path / "tests/spec").symlink_to(Path(__file__).parent)  # the plugins
    file = "mcp_core/a/_f.py"
    mutant = mutant_of(file, "boolean" if operator == "unused" else operator, code)
    if operator == "unused":
        start = code.rindex("True")
        mutant = replace(mutant, replacement=Replacement(start, start + 4, "False"))
    sources = {file: SourceFile(code)}
    options = [*random_mutants._OPTIONS, "-q", "-m", "", "tests/core/a/test_f.py"]
    make_map(tmp_path, sources, options, tmp_path / "map.gz")
    (tmp_path / file).write_text(code)
    hit_map = HitMap.load(sources, [tmp_path / "map.gz"])
    monkeypatch.setattr(random_mutants, "_files_of_tests", lambda areas: options[-1:])
    with runs_mutants(tmp_path, AREAS, hit_map) as run:
        outcome = run(mutant)
    assert (outcome.verdict, outcome.test) == (verdict, test)
    assert (tmp_path / file).read_text() == code


# -- Rates -----------------------------------------------------------------------------------------


def outcomes(file: str, killed: int, timeouts: int, survived: int) -> list[RandomOutcome]:
    mutant = mutant_of(file)
    return [
        *[RandomOutcome(mutant, "killed", "tests/a", 1.0)] * killed,
        *[RandomOutcome(mutant, "timeout", "tests/b", 1.0)] * timeouts,
        *[RandomOutcome(mutant, "survived", "", 1.0)] * survived,
    ]


@pytest.mark.parametrize(
    ("area", "killed", "total", "is_too_low"),
    [
        ("core", 88, 100, False),
        ("core", 87, 100, True),
        ("core", 0, FEWEST - 1, False),
        ("core", 0, FEWEST, True),
        *[(name, 80, 100, False) for name in ("runtime", "trio", "tools", "shim")],
        *[(name, 79, 100, True) for name in ("runtime", "trio", "tools", "shim")],
    ],
)
def test_rate_below_the_floor_of_its_area_is_too_low(
    area: str, killed: int, total: int, is_too_low: bool
) -> None:
    rate = Rate(BY_NAME[area], killed, total)
    assert rate.is_too_low is is_too_low
    assert ("too few to judge" in str(rate)) == (total < FEWEST)
    assert ("too low" in str(rate)) == is_too_low


def test_goals_are_those_of_the_whole_run() -> None:
    assert {area.name: area.goal for area in AREAS} == {
        **dict.fromkeys(("runtime", "trio", "tools", "shim"), 0.9),
        "core": 0.95,
    }


def test_rates_count_timeouts_as_killed() -> None:
    found = rates(
        [
            *outcomes("mcp_asyncio_shim/_link.py", 2, 1, 1),
            *outcomes("mcp_core/http/_x.py", 1, 0, 0),
        ]
    )
    assert [(rate.area.name, rate.killed, rate.total) for rate in found] == [
        ("core", 1, 1),
        ("shim", 3, 4),
    ]


def reported(found: Sequence[RandomOutcome]) -> tuple[int, str]:
    output = io.StringIO()
    return report(found, 7, Console(file=output, soft_wrap=True)), output.getvalue()


def test_report_shows_each_survivor_with_its_diff_and_key() -> None:
    file = "mcp_core/protocol/jsonrpc/_codec.py"
    text = (ROOT / file).read_text("utf-8")
    mutant = mutant_of(file, "compare", text)
    status, output = reported([RandomOutcome(mutant, "survived", "", 1.0)])
    assert status == 0
    assert "\n".join(diff(mutant, text)) in output
    assert f"equivalent? {mutant.key}" in output
    assert "seed 7" in output


def test_report_fails_below_a_floor() -> None:
    enough = outcomes("mcp_asyncio_shim/_link.py", FEWEST, 0, 0)
    assert reported(enough)[0] == 0
    few = [
        replace(each, mutant=replace(each.mutant, replacement=Replacement(0, 0, "")))
        for each in outcomes("mcp_asyncio_shim/_link.py", FEWEST // 2, 0, FEWEST // 2)
    ]
    status, output = reported(few)
    assert status == 1
    assert "50.0%  too low: at least 80%, the goal is 90%" in output


def test_report_names_the_tests_that_were_ignored() -> None:
    [outcome] = outcomes("mcp_asyncio_shim/_link.py", 1, 0, 0)
    status, output = reported([replace(outcome, ignored=("tests/b.py::test",))])
    assert status == 0
    assert "they fail on the unchanged code too:\ntests/b.py::test\n" in output


def test_command_runs_as_many_mutants_as_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`.ci/long` runs it. The tests of the mutants are left out here."""

    def run(mutants: Sequence[RandomMutant], call: Any, jobs: int) -> Sequence[RandomOutcome]:
        assert call.func is runs_mutants
        assert call.keywords["hit_map"] is None  # too few to find out which test runs what
        assert jobs == 2
        return [RandomOutcome(each, "killed", "", 1.0) for each in mutants]

    monkeypatch.setattr(random_mutants, "run_in_copies", run)
    monkeypatch.setattr(random_mutants, "files_of", lambda area: files_of(area)[:3])
    arguments = ["--area", "shim", "--count", "5", "--seed", "3", "--jobs", "2"]
    assert random_mutants.main(arguments) == 0
    output = capsys.readouterr().out
    assert output.startswith("5 mutants, seed 3\n")
    assert "shim        5 of    5 100.0%  too few to judge: 60 are needed" in output


def test_map_is_made_once_in_a_directory_that_need_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Making one takes minutes, after which a missing directory would lose it."""
    made: list[str] = []

    def make(root: Path, sources: object, options: object, report: Path) -> None:
        made.append(report.name)
        gzip.open(report, "wt").close()

    def run(parts: list[int], opened: Any, jobs: int) -> list[None]:
        with opened(ROOT) as run_part:
            return [run_part(part) for part in parts]

    monkeypatch.setattr(random_mutants, "make_map", make)
    monkeypatch.setattr(random_mutants, "run_in_copies", run)
    for _ in range(2):
        random_mutants.map_tests(random_mutants.AREAS[-1:], {}, tmp_path / "new" / "map", 2)
    assert [name.partition("-")[2] for name in made] == ["0-of-2.gz", "1-of-2.gz"]
