"""Mutants drawn at random: what share of small faults does a test notice?

    python -m tests.spec.random_mutants [--count N] [--area NAME] [--seed N] [--jobs N]

Every place of the code that an operator can change is as likely as another one of its area. A
mutant meets the tests that mirror its module first, then those that import it, then the others of
its area; the first failure ends it. A survivor is a test to write, or an entry of `EQUIVALENTS`.

For many mutants, all tests run once to find which code each of them runs (`hit_map.py`). Then a
mutant meets only tests that run its code, the fastest first, in a fork of a process that has
collected all of them (`forked_tests.py`); if its code runs before the tests do, in a new process.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import json
import os
import random
import re
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import deque
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.spec.code_match import SourceFile
from tests.spec.equivalent_mutants import EQUIVALENTS
from tests.spec.forked_tests import ForkedTests, TestRun
from tests.spec.hit_map import HitMap, make_map
from tests.spec.mutation_operators import RandomMutant, find_places, make_mutant
from tests.spec.mutation_runner import ROOT, changed_file, opened, run_in_copies

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

__all__ = [
    "AREAS",
    "Area",
    "RandomOutcome",
    "Rate",
    "draw",
    "rates",
    "run_mutant",
    "stages",
    "stages_of",
]

FEWEST: Final = 60  # mutants of an area, below which its rate says little
COUNT: Final = 360  # gives each area `FEWEST`
# Seconds for the tests of a stage. Each test has a limit of its own, so this is for what hangs
# outside of tests; a slow machine must not turn it into a verdict.
STAGE_TIMEOUT: Final = 1800.0
_MEMORY: Final = 8 << 30  # bytes of address space for a test run
# Seconds of tests beyond the mirrored ones that a mutant meets with a map, the fastest first. Some
# code is run by nearly all tests, and what none of so many notices needs a test of its own.
_ENOUGH: Final = 20.0
_MODULE_NAME: Final = re.compile(r"\Amcp_\w+(?:\.\w+)*\._\w+\Z")
_WAITED: Final = 1.0  # seconds for which a test that starts programs waits, about
# Other implementations are slow, and what they notice our own tests should notice too.
_LEFT_OUT: Final = frozenset({"conformance", "interop", "node", "perf", "slow"})
# Tables that are generated, texts of the manifest, programs to read.
_NO_CODE: Final = (
    "mcp_core/trace/judge/_shape_table.py",
    "mcp_core/trace/judge/rows/",
    "mcp_core/_version.py",
    "mcp_trio/examples/",
)
_OPTIONS: Final = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov")
# They compare the code with a copy of itself, and would notice changes that mean nothing.
_NO_TESTS: Final = ("tests/layering/", "tests/spec/test_mutations.py", "tests/interop/")
# They look at the definitions of all modules, without running what these define.
_OF_DEFINITIONS: Final = frozenset(
    f"tests/core/test_{name}.py" for name in ("limit_values", "public_values", "shown_keywords")
)


@dataclass(frozen=True)
class Area:
    """A part of the code whose rate is counted by itself.

    Attributes:
        folders: of its code; a file belongs to the area with the longest that fits.
        tests: the folders, or beginnings of file names, of all tests that a mutant meets.
        weight: its share of the mutants drawn.
        floor: the lowest rate that passes.
        goal: the rate to reach.
    """

    name: str
    folders: tuple[str, ...]
    tests: tuple[str, ...]
    weight: int = 1
    floor: float = 0.80
    goal: float = 0.90

    def __str__(self) -> str:
        return self.name


_WHOLE = ("tests/drivers/", "tests/spec/", "tests/security/", "tests/test_", "tests/core/test_")
AREAS: Final = (
    Area(
        "core",
        ("mcp_core/",),
        ("tests/core/", *_WHOLE, "tests/trio_/http", "tests/trio_/host/", "tests/trio_/test_"),
        weight=2,
        floor=0.88,
        goal=0.95,
    ),
    Area(
        "runtime",
        ("mcp_core/runtime/", "mcp_core/adapters/"),
        (
            *(
                "tests/core/runtime/",
                "tests/core/adapters/",
                "tests/trio_/test_",
                "tests/trio_/host/",
            ),
            *("tests/trio_/http", "tests/asyncio_shim/", *_WHOLE),
        ),
    ),
    Area(
        "trio",
        ("mcp_trio/",),
        (
            *("tests/trio_/test_", "tests/trio_/auth/", "tests/trio_/host/", "tests/trio_/http"),
            *("tests/trio_/recording/", "tests/trio_/streams/", "tests/testing/", *_WHOLE),
        ),
    ),
    Area(
        "tools",
        ("mcp_trio/cli/", "mcp_trio/oracle/"),
        (
            *("tests/trio_/cli/", "tests/trio_/oracle/", "tests/testing/"),
            *("tests/fuzz_targets/", "tests/security/"),
        ),
    ),
    Area("shim", ("mcp_asyncio_shim/",), ("tests/asyncio_shim/", *_WHOLE)),
)
_PACKAGES: Final = ("mcp_core", "mcp_trio", "mcp_asyncio_shim")


# -- Drawing ---------------------------------------------------------------------------------------


def files_of(area: Area, root: Path = ROOT) -> list[str]:
    """Return the Python files of an area."""
    found = [
        path.relative_to(root).as_posix()
        for package in _PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    ]
    return [name for name in found if not name.startswith(_NO_CODE) and area_of(name) is area]


def area_of(file: str) -> Area:
    """Return the area of a file."""
    fitting = [
        (len(folder), area) for area in AREAS for folder in area.folders if file.startswith(folder)
    ]
    return max(fitting, key=lambda each: each[0])[1]


def counts(areas: Sequence[Area], count: int) -> dict[Area, int]:
    """Return how many of `count` mutants are drawn from each area."""
    total = sum(area.weight for area in areas)
    return {area: round(count * area.weight / total) for area in areas}


def draw(
    sources: Mapping[str, SourceFile],
    count: int,
    chooser: random.Random,
    equivalents: Collection[tuple[str, str, str]] = (),
) -> list[RandomMutant]:
    """Return different mutants of the files, without those that are equivalent.

    Fewer than `count` are returned if there are no more.
    """
    places = [(file, place) for file, source in sources.items() for place in find_places(source)]
    choices = [
        (file, place, chooser.randrange(len(place.choices)))
        for file, place in chooser.sample(places, len(places))
    ]
    found: dict[tuple[str, str, str], RandomMutant] = {}
    for file, place, choice in choices:
        if len(found) == count:
            break
        mutant = make_mutant(sources[file], file, place, choice)
        if mutant.key in equivalents or mutant.key in found or mutant.old == mutant.new:
            continue
        with contextlib.suppress(SyntaxError):
            compile(mutant.replacement.apply(sources[file].text), file, "exec")
            found[mutant.key] = mutant
    return list(found.values())


# -- Tests of a mutant -----------------------------------------------------------------------------


@cache
def _imports(path: Path, root: Path) -> frozenset[str]:
    """Return the files of the repository that a file imports, with the packages above them.

    A text that names a module counts too: a table of tests gives it to `import_module`.
    """
    names: set[str] = set()
    package = path.relative_to(root).parent.parts
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*start, *filter(None, [node.module])])
            names.update([module, *(f"{module}.{each.name}" for each in node.names)])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update(_MODULE_NAME.findall(node.value))
    found = set()
    for name in names:
        base = root.joinpath(*name.split("."))
        for each in (base.with_suffix(".py"), base / "__init__.py"):
            if each.is_file():
                found.add(each.relative_to(root).as_posix())
    return frozenset(found)


@cache
def _distances(file: str, root: Path) -> dict[str, int]:
    """Return over how many imports each test file reaches the code of `file`."""
    importers: dict[str, list[str]] = {}
    for folder in (*_PACKAGES, "tests"):
        for path in sorted((root / folder).rglob("*.py")):
            for each in _imports(path, root):
                importers.setdefault(each, []).append(path.relative_to(root).as_posix())
    found = {file: 0}
    pending = deque([file])
    while pending:
        each = pending.popleft()
        for name in importers.get(each, ()):
            if name not in found:
                found[name] = found[each] + 1
                pending.append(name)
    return found


def mirrored(file: str, root: Path = ROOT) -> list[str]:
    """Return the test files that mirror a module: by its name first, then by its folder."""
    package, *folders, name = file.split("/")
    tests = {"mcp_core": "core", "mcp_trio": "trio_", "mcp_asyncio_shim": "asyncio_shim"}[package]
    # The first folder of the tests that exists, from the module's own upwards.
    while not (folder := root.joinpath("tests", tests, *folders)).is_dir():
        folders.pop()
    names = _test_files(folder, root)
    stem = name.removesuffix(".py").strip("_")
    # What runs on both drivers is not sorted by package.
    shared = [] if package == "mcp_core" else _test_files(root / "tests" / "drivers", root)
    of_name = [each for each in [*names, *shared] if f"_{stem}" in each.rpartition("/")[2]]
    # Without folders all tests of the driver stand there.
    others = [each for each in names if each not in of_name] if folders else []
    return [*of_name, *others]


def _test_files(folder: Path, root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in sorted(folder.glob("test_*.py"))]


def stages(file: str, root: Path = ROOT) -> list[list[str]]:
    """Return the test files for a mutant of `file`: mirrored, near by imports, all others."""
    area = area_of(file)
    distances = _distances(file, root)
    first = mirrored(file, root)
    wide = [
        name
        for name in sorted(distances, key=lambda each: (distances[each], each))
        if name.startswith(area.tests)
        and not name.startswith(_NO_TESTS)
        and name.rpartition("/")[2].startswith("test_")
        and name not in first
    ]
    near = [name for name in wide if distances[name] <= 2]
    far = [name for name in wide if distances[name] > 2]
    return [stage for stage in (first, near, far) if stage]


def stages_of(mutant: RandomMutant, root: Path, hit_map: HitMap | None) -> list[list[str]]:
    """Return the stages with the names of test functions, or of files without a map.

    With a map they have only the tests that run the changed code, and a last stage has those of
    other areas. If it runs before the tests do, such as a function that makes a table, each test of
    the module may depend on it, and one that reads a constant or a signature runs nothing: the
    mirrored tests come first, as a whole, and then those that import the module themselves or look
    at all definitions.
    """
    whole = stages(mutant.file, root)
    place = mutant.replacement
    found = None if hit_map is None else hit_map.tests_of(mutant.file, place.start, place.end)
    if not found:  # no function, or one that runs when its module is imported, or never
        return whole
    first = mirrored(mutant.file, root)
    known = {name for stage in whole for name in stage}
    # Tests of other areas, such as a command's, come last.
    others = [test.file for test in found if test.file not in known]
    seconds = 0.0
    chosen = []
    if hit_map is not None and hit_map.runs_first(mutant.file, place.start, place.end):
        distances = _distances(mutant.file, root)
        rest = sorted(known.difference(first))
        direct = [each for each in rest if distances[each] == 1 or each in _OF_DEFINITIONS]
        chosen += [first, direct]
        whole = [[name for name in stage if name not in {*first, *direct}] for stage in whole]
    for stage in (*whole, others):
        if stage is others:
            seconds = 0.0
        names = []
        for test in found:
            if test.file in stage and (test.file in first or seconds <= _ENOUGH):
                names.append(test.name)
                seconds += 0.0 if test.file in first else test.seconds + _WAITED * test.process
        chosen.append(names)
    return [names for names in chosen if names]


def map_tests(
    areas: Sequence[Area], sources: Mapping[str, SourceFile], directory: Path, jobs: int
) -> HitMap:
    """Return the map of the tests of some areas, from `directory`, or made and written there."""
    files = _files_of_tests(areas)
    digest = sha256(repr([(name, each.text) for name, each in sources.items()]).encode())
    for name in files:
        digest.update((ROOT / name).read_bytes())
    stem = digest.hexdigest()[:16]
    directory.mkdir(parents=True, exist_ok=True)  # now: the tests below take minutes
    # A test file takes longer than others of its folder, so they are dealt out one by one.
    jobs = min(jobs, len(files))
    parts = [files[index::jobs] for index in range(jobs)]
    reports = [directory / f"{stem}-{index}-of-{jobs}.gz" for index in range(jobs)]

    def make(root: Path, index: int) -> None:
        options = ["-q", "--tb=no", *_OPTIONS, "-m", _marks(root)]
        make_map(root, sources, [*options, *parts[index]], reports[index])

    missing = [index for index, report in enumerate(reports) if not report.exists()]
    for _ in run_in_copies(missing, opened(make), jobs):
        pass
    return HitMap.load(sources, reports)


def _files_of_tests(areas: Sequence[Area]) -> list[str]:
    folders = tuple(folder for area in areas for folder in area.tests)
    names = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    return sorted(
        name for name in names if name.startswith(folders) and not name.startswith(_NO_TESTS)
    )


# -- Running ---------------------------------------------------------------------------------------

Verdict: TypeAlias = Literal["killed", "timeout", "survived"]


@dataclass(frozen=True)
class RandomOutcome:
    """The result of one mutant: the test that noticed it, if one did.

    Attributes:
        ignored: tests that failed, but fail on the unchanged code too.
    """

    mutant: RandomMutant
    verdict: Verdict
    test: str
    seconds: float
    ignored: tuple[str, ...] = ()


def _marks(root: Path) -> str:
    """Return what `-m` selects. pytest refuses names of markers that the project does not have."""
    options = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]
    known = {each.partition(":")[0] for each in options["ini_options"].get("markers", ())}
    return " and ".join(f"not {name}" for name in sorted(known & _LEFT_OUT))


def run_tests(root: Path, tests: Sequence[str], ignored: Sequence[str] = ()) -> TestRun:
    """Run tests below `root`, without those that are ignored, until one fails.

    The tests are files, or the names of test functions for `hit_map.py`, or a single test.

    Raises:
        RuntimeError: pytest could not be called like this.
    """
    selected = root / "selected-tests"
    functions = [each for each in tests if "::" in each and len(tests) > 1]
    if functions:
        selected.write_text(json.dumps(tests))
        tests = list(dict.fromkeys(each.partition("::")[0] for each in tests))
    command = [
        *(sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no", "-rfE"),
        *(*_OPTIONS, "-m", _marks(root)),
        *("-x", *(f"--deselect={each}" for each in ignored)),
        *(("-p", "tests.spec.hit_map") if functions else ()),
        *tests,
    ]
    hidden = ("PYTEST_ADDOPTS", "CI", "MUTATION_ROWS", "MUTATION_REPORT", "HITS", "SELECTED")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    if functions:
        environment["SELECTED"] = str(selected)
    # A mutant may write anywhere.
    with tempfile.TemporaryDirectory(dir=root, prefix="home") as home:
        environment |= {"PYTHONPATH": str(root), "HOME": home, "TMPDIR": home}
        with subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            if hasattr(resource, "prlimit"):
                with contextlib.suppress(ProcessLookupError):
                    resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            try:
                output, _ = process.communicate(timeout=STAGE_TIMEOUT)
            except subprocess.TimeoutExpired:
                return TestRun(True, timed_out=True)
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
    if process.returncode in (0, 5):  # 5: all are deselected
        return TestRun(False)
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - (.*))?$", output, re.MULTILINE)
    # A single test is not found if its file can't be imported.
    if process.returncode == 4 and not found and "while loading conftest" not in output:
        raise RuntimeError(f"pytest cannot run: {output[-2000:]}")
    if not found:
        return TestRun(True, f"pytest exits {process.returncode}")
    return TestRun(True, found[1], "Timeout" in (found[2] or ""))


@contextlib.contextmanager
def runs_mutants(
    root: Path, areas: Sequence[Area], hit_map: HitMap | None
) -> Iterator[Callable[[RandomMutant], RandomOutcome]]:
    """Give what runs mutants below `root`: with a map, in forks of a process that is ended here."""
    if hit_map is None:
        yield partial(run_mutant, root)
        return
    options = [*_OPTIONS, "-q", "-m", _marks(root), *_files_of_tests(areas)]
    with ForkedTests(root, options, STAGE_TIMEOUT, _MEMORY) as forked:
        yield partial(run_mutant, root, hit_map=hit_map, forked=forked)


def run_mutant(
    root: Path,
    mutant: RandomMutant,
    hit_map: HitMap | None = None,
    forked: ForkedTests | None = None,
) -> RandomOutcome:
    """Apply a mutant below `root`, run its tests in stages, and restore the file.

    A test that fails on the unchanged code too, such as on a slow machine, is ignored. If it has
    passed there for the map, and starts no programs, it is not tried again.
    """
    start = time.monotonic()
    ignored: list[str] = []
    path = root / mutant.file
    old = path.read_text("utf-8")
    new = mutant.replacement.apply(old)

    def run(tests: Sequence[str], *, changed: bool = True) -> TestRun:
        before = ignored if changed else ()
        if forked is not None and not is_early:
            change = (mutant.file, old, new) if changed else ("", "", "")
            if (found := forked.run(tests, *change, before)) is not None:
                return found
        return run_tests(root, tests, before)

    place = (mutant.file, mutant.replacement.start, mutant.replacement.end)
    is_early = hit_map is None or hit_map.runs_first(*place)
    todo = stages_of(mutant, root, hit_map)
    if hit_map is not None and not is_early and hit_map.tests_of(*place) == []:
        todo = []  # no test runs it
    for stage in todo:
        while True:
            with changed_file(path):
                path.write_text(new, "utf-8")
                found = run(stage)
            if not found.failed:
                break
            known = hit_map.tests.get(found.test.partition("[")[0]) if hit_map is not None else None
            is_sure = known is not None and not known.process and not found.timed_out
            if (
                is_sure
                or not found.test.startswith("tests/")
                or not run([found.test], changed=False).failed
            ):
                verdict: Verdict = "timeout" if found.timed_out else "killed"
                seconds = time.monotonic() - start
                return RandomOutcome(mutant, verdict, found.test, seconds, tuple(ignored))
            ignored.append(found.test)
    return RandomOutcome(mutant, "survived", "", time.monotonic() - start, tuple(ignored))


# -- Rates -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rate:
    """How many of an area's mutants a test noticed."""

    area: Area
    killed: int
    total: int

    @property
    def share(self) -> float:
        return self.killed / self.total

    @property
    def is_too_low(self) -> bool:
        """True if the mutants are enough to judge the area, and its rate is below the floor."""
        return self.total >= FEWEST and self.share < self.area.floor

    def __str__(self) -> str:
        text = f"{self.area.name:8} {self.killed:4} of {self.total:4} {self.share:6.1%}"
        if self.total < FEWEST:
            return f"{text}  too few to judge: {FEWEST} are needed"
        verdict = "too low" if self.is_too_low else "passes"
        return (
            f"{text}  {verdict}: at least {self.area.floor:.0%}, the goal is {self.area.goal:.0%}"
        )


def rates(outcomes: Iterable[RandomOutcome]) -> list[Rate]:
    """Return the rates of the areas that have outcomes."""
    by_area: dict[Area, list[RandomOutcome]] = {}
    for each in outcomes:
        by_area.setdefault(area_of(each.mutant.file), []).append(each)
    return [
        Rate(area, sum(each.verdict != "survived" for each in by_area[area]), len(by_area[area]))
        for area in AREAS
        if area in by_area
    ]


def diff(mutant: RandomMutant, text: str) -> Iterator[str]:
    """Yield the lines of a mutant's diff."""
    return difflib.unified_diff(
        text.splitlines(),
        mutant.replacement.apply(text).splitlines(),
        *(mutant.file, f"{mutant.scope or '<module>'} {mutant.operator}"),
        lineterm="",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw and run mutants. Return the exit code: 1 if an area's rate is too low."""
    parser = argparse.ArgumentParser(prog="python -m tests.spec.random_mutants")
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help=f"default: {COUNT}")
    parser.add_argument("--area", choices=[*map(str, AREAS)], help="draw from this area only")
    parser.add_argument("--seed", type=int, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="copies to work in")
    parser.add_argument(
        "--map",
        type=Path,
        metavar="DIRECTORY",
        help=f"where to keep which test runs which code; found out for {FEWEST} mutants or more",
    )
    options = parser.parse_args(arguments)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    areas = [area for area in AREAS if options.area in (None, area.name)]
    console = Console(highlight=False, soft_wrap=True, markup=False)
    mutants: list[RandomMutant] = []
    for area, count in counts(areas, options.count).items():
        sources = {name: SourceFile((ROOT / name).read_text("utf-8")) for name in files_of(area)}
        # By the area's name, so that `--area` draws the same ones.
        chooser = random.Random(f"{seed} {area.name}")
        mutants += draw(sources, count, chooser, {each.key for each in EQUIVALENTS})
    random.Random(seed).shuffle(mutants)
    console.print(f"{len(mutants)} mutants, seed {seed}")
    hit_map = None
    if options.map is not None or len(mutants) >= FEWEST:
        all_sources = {
            name: SourceFile((ROOT / name).read_text("utf-8"))
            for area in AREAS
            for name in files_of(area)
        }
        with tempfile.TemporaryDirectory() as temporary:
            hit_map = map_tests(areas, all_sources, options.map or Path(temporary), options.jobs)
    outcomes: list[RandomOutcome] = []
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("mutants", total=len(mutants))
        runner = partial(runs_mutants, areas=areas, hit_map=hit_map)
        for outcome in run_in_copies(mutants, runner, options.jobs):
            outcomes.append(outcome)
            text = f"{outcome.verdict:8} {outcome.seconds:6.1f} s {outcome.mutant} {outcome.test}"
            console.print(text.rstrip())
            progress.advance(task)
    return report(outcomes, seed, console)


def report(outcomes: Sequence[RandomOutcome], seed: int, console: Console) -> int:
    """Print every survivor and the rates. Return the exit code."""
    for each in outcomes:
        if each.verdict == "survived":
            console.print("", *diff(each.mutant, (ROOT / each.mutant.file).read_text()), sep="\n")
            console.print(f"equivalent? {each.mutant.key}")
    console.print(f"\nseed {seed}")
    found = rates(outcomes)
    for rate in found:
        console.print(str(rate))
    ignored = sorted({test for each in outcomes for test in each.ignored})
    if ignored:
        console.print("ignored, since they fail on the unchanged code too:", *ignored, sep="\n")
    return 1 if any(rate.is_too_low for rate in found) else 0


if __name__ == "__main__":
    sys.exit(main())
