"""Runs the tests of a mutation's rows against a copy of the code in which it is applied.

`python -m tests.spec.mutations` runs it. This module is also a pytest plugin, for the runs in the
copy: `MUTATION_ROWS` selects the tests that are marked with one of these rows, and
`MUTATION_REPORT` names the file for the rows of which a test failed.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

import pytest

from tests.spec.code_match import replace_code, replace_text
from tests.spec.test_manifest import ids_of_the_default_run, marked_files, marks_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import TypeAlias

T = TypeVar("T")
R = TypeVar("R")
if TYPE_CHECKING:
    Open: TypeAlias = Callable[[Path], AbstractContextManager[Callable[[T], R]]]
ROOT = Path(__file__).parents[2]
COPIED = (
    "mcp_core",
    "mcp_trio",
    "mcp_asyncio_shim",
    "tests",
    "examples",
    "fuzz",
    "docs",
    "pyproject.toml",
    "README.md",
)
TIMEOUT = 240.0  # seconds for the tests of one mutation
_ROWS = os.environ.get("MUTATION_ROWS")
_REPORT = os.environ.get("MUTATION_REPORT")


@dataclass(frozen=True)
class Mutation:
    """A small change to the code, after which a test of each of `rows` has to fail.

    Attributes:
        rows: ids of the manifest.
        where: `file::qualified.name`: a path below the repository's root, and the definition or
            assignment in which the change is. A file alone means anywhere in it.
        old: code that occurs exactly once there; `tests/spec/code_match.py` says how it is found.
        new: the code that replaces it.
    """

    rows: tuple[str, ...]
    where: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{' '.join(self.rows)} {self.where} {self.old.strip().splitlines()[0].strip()!r}"

    @property
    def file(self) -> str:
        return self.where.partition("::")[0]

    def change(self, text: str) -> str:
        """Return the file's text with the change.

        Raises:
            ValueError: `old` does not occur exactly once.
        """
        file, _, scope = self.where.partition("::")
        try:
            if file.endswith(".py"):
                return replace_code(text, scope, self.old, self.new)
            return replace_text(text, self.old, self.new)
        except ValueError as exc:
            raise ValueError(f"{self}: {exc}") from None

    def apply(self, root: Path) -> None:
        """Change the file below `root`.

        Raises:
            ValueError: `old` does not occur exactly once.
        """
        path = root / self.file
        path.write_text(self.change(path.read_text("utf-8")), "utf-8")


def find_stale(mutations: Iterable[Mutation], root: Path = ROOT) -> list[str]:
    """Return a line for each mutation whose code is no longer in the repository, or not once."""
    stale = []
    for each in mutations:
        try:
            each.change((root / each.file).read_text("utf-8"))
        except (OSError, ValueError) as exc:
            stale.append(str(exc))
    return stale


def find_broken(mutations: Iterable[Mutation], root: Path = ROOT) -> list[str]:
    """Return a line for each mutation that is stale, or that leaves a file with a syntax error."""
    broken = []
    for each in mutations:
        try:
            text = each.change((root / each.file).read_text("utf-8"))
            if each.file.endswith(".py"):
                compile(text, each.file, "exec")
        except (OSError, ValueError) as exc:
            broken.append(str(exc))
        except SyntaxError as exc:
            broken.append(f"{each}: `new` does not fit there: {exc}")
    return broken


@dataclass(frozen=True)
class Outcome:
    """The result of one mutation: the rows that survived, an error if its tests did not run."""

    mutation: Mutation
    survived: tuple[str, ...]
    error: str
    seconds: float

    @property
    def killed(self) -> bool:
        return not self.survived and not self.error


def files_of(rows: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the test files of the default run that name one of the rows, in two stages.

    The first has a small file of tests/core for each row, which usually is enough. The second has
    the others.
    """
    wanted = set(rows)
    found: dict[str, set[str]] = {}
    for path, source in sorted(marked_files(), key=_cost):
        if not any(row in source for row in rows):
            continue  # most files, which then aren't parsed
        named = wanted & marks_in(source)[0] & ids_of_the_default_run(source)
        if named and not path.is_relative_to(ROOT / "tests" / "interop"):
            found[path.relative_to(ROOT).as_posix()] = named
    first = []
    for name, named in found.items():
        if not wanted.isdisjoint(named):
            first.append(name)
            wanted -= named
    return first, [name for name in found if name not in first]


def _cost(marked: tuple[Path, str]) -> tuple[bool, int]:
    path, source = marked
    return not path.is_relative_to(ROOT / "tests" / "core"), len(source)


@contextmanager
def copied() -> Iterator[Path]:
    """Copy the code and the tests to a temporary directory, with their bytecode, which fits."""
    with tempfile.TemporaryDirectory(prefix="mutation") as name:
        for each in COPIED:
            source = ROOT / each
            if source.is_dir():
                shutil.copytree(
                    source,
                    Path(name, each),
                    ignore=shutil.ignore_patterns("node_modules"),
                )
            else:
                shutil.copy2(source, name)
        yield Path(name)


def run_tests(root: Path, rows: Sequence[str]) -> tuple[set[str], str]:
    """Run the tests of `rows` below `root`, until one has failed for each row.

    Return the rows of which a test failed, and an error if the run itself failed.
    """
    failed: set[str] = set()
    for files in files_of(rows):
        rest = [row for row in rows if row not in failed]
        if files and rest:
            found, error = _run_files(root, files, rest)
            failed |= found
            if error:
                return failed, error
    return failed, ""


def _run_files(root: Path, files: Sequence[str], rows: Sequence[str]) -> tuple[set[str], str]:
    report = root / "failed-rows"
    report.write_text("")
    command = [
        sys.executable,
        *("-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"),
        *(
            "-p",
            "no:xdist",
            "-p",
            "no:cov",
            "-p",
            "tests.spec.mutation_runner",
            "-o",
            "timeout=20",
            "-m",
            "not slow and not conformance and not node",
            "--tb=line",
            "-rN",
        ),
        *files,
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "MUTATION_ROWS": " ".join(rows),
        "MUTATION_REPORT": str(report),
    }
    environment.pop("PYTEST_ADDOPTS", None)
    with subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            return set(report.read_text().split()), f"no end after {TIMEOUT:g} s\n{output[-2000:]}"
    failed = set(report.read_text().split())
    # 0: all passed, 1: a test failed, 2: the plugin stopped the run, or the tests did not import,
    # 5: the rows stand only on parameters that are not run.
    finished = process.returncode in (0, 1, 5) or (process.returncode == 2 and failed >= set(rows))
    return failed, "" if finished else f"pytest exits {process.returncode}\n{output[-2000:]}"


@contextmanager
def changed_file(path: Path) -> Iterator[None]:
    """Restore the file in the end, after a change that the block makes."""
    original = path.read_bytes()
    status = path.stat()
    try:
        yield
    finally:
        path.write_bytes(original)
        # The bytecode of the mutated file has another time, and is not used for this one.
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def run_mutation(root: Path, mutation: Mutation) -> Outcome:
    """Apply a mutation below `root`, run the tests of its rows, and restore the file."""
    start = time.monotonic()
    with changed_file(root / mutation.file):
        try:
            mutation.apply(root)
            failed, error = run_tests(root, mutation.rows)
        except ValueError as exc:
            failed = set()
            error = str(exc)
    survived = tuple(row for row in mutation.rows if row not in failed)
    return Outcome(mutation, survived, error, time.monotonic() - start)


def run_mutations(mutations: Sequence[Mutation], jobs: int = 1) -> Iterator[Outcome]:
    """Run mutations, each job in its own copy, and yield the outcomes as they come."""
    return run_in_copies(mutations, opened(run_mutation), jobs)


def opened(run: Callable[[Path, T], R]) -> Open[T, R]:
    """Return what `run_in_copies` opens for a function that needs nothing but the copy."""
    return lambda root: nullcontext(partial(run, root))


def run_in_copies(mutations: Sequence[T], open_in: Open[T, R], jobs: int = 1) -> Iterator[R]:
    """Call a function with each mutation, and yield the results as they come.

    Args:
        mutations: the mutations.
        open_in: called with each copy of the code and the tests. What the context manager gives is
            called with mutations, one after the other.
        jobs: the number of copies.
    """
    todo: SimpleQueue[T] = SimpleQueue()
    done: SimpleQueue[_Result[R] | BaseException] = SimpleQueue()
    stopped = threading.Event()
    for each in mutations:
        todo.put(each)

    def work() -> None:
        try:
            with copied() as root, open_in(root) as run:
                while not stopped.is_set():
                    try:
                        mutation = todo.get_nowait()
                    except Empty:
                        return
                    done.put(_Result(run(mutation)))
        except BaseException as exc:  # noqa: BLE001 - passed on to the caller
            done.put(exc)

    threads = [threading.Thread(target=work) for _ in range(min(jobs, len(mutations)))]
    for thread in threads:
        thread.start()
    try:
        for _ in mutations:
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            yield result.value
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


@dataclass(frozen=True)
class _Result(Generic[R]):
    value: R


def chosen(
    mutations: Sequence[Mutation], rows: Sequence[str], sample: int | None, seed: int
) -> list[Mutation]:
    """Return the mutations of `rows` (all without any), a sample of them if `sample` is given.

    A row may be a whole group: `RPC`.
    """
    wanted = set(rows)
    found = [
        each
        for each in mutations
        if not wanted or any(row in wanted or row.rpartition("-")[0] in wanted for row in each.rows)
    ]
    if sample is not None and sample < len(found):
        found = random.Random(seed).sample(found, sample)
    return found


# -- The plugin: in the copy -----------------------------------------------------------------------


def _rows_of(item: pytest.Item) -> set[str]:
    return {id for mark in item.iter_markers("requirement") for id in mark.args}


if _ROWS is not None and _REPORT is not None:
    outstanding = set(_ROWS.split())
    report_file = Path(_REPORT)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests that are marked with one of the rows."""
        kept = [item for item in items if not outstanding.isdisjoint(_rows_of(item))]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(item: pytest.Item) -> None:
        """Skip a test whose rows have all failed."""
        if outstanding.isdisjoint(_rows_of(item)):
            pytest.skip("its rows have failed")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
        """Record the rows of a test that failed, and stop when all rows have failed."""
        made: pytest.TestReport = yield  # type: ignore[assignment]
        if made.failed:
            failed = outstanding & _rows_of(item)
            outstanding.difference_update(failed)
            with report_file.open("a") as file:
                file.write("".join(f"{row}\n" for row in failed))
            if not outstanding:
                item.session.shouldstop = "every row has a test that failed"
        return made  # type: ignore[return-value]
