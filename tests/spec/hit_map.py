"""Which tests run which code: a map for mutants, which then meet these tests only.

`make_map` runs tests in a copy of the code whose blocks note in shared memory that they were run.
So a block that runs in a child process counts for the test that started the process.

This module is also a pytest plugin. `HITS` names the file for the run that makes the map;
`SELECTED` names a file with the tests to run, in that order: the others are not even collected.
"""

from __future__ import annotations

import ast
import functools
import gzip
import json
import operator
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.spec.code_match import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Block", "HitMap", "MappedTest", "blocks_of", "make_map", "with_hits"]

_REPORT: Final = os.environ.get("HITS")
_SELECTED: Final = os.environ.get("SELECTED")
# In the copy, the module of the shared memory, and its file.
_MODULE: Final = "mcp_core/_hits.py"
_MEMORY: Final = "hits"
_CACHE: Final = re.compile(r"@(?:functools\.)?(?:lru_)?cache")
_WORD: Final = re.compile(r"\w+")
# Names that are followed from code outside of functions. With more, one of them is so common, as
# `name`, that it doesn't tell what uses the code.
_MOST_NAMES: Final = 50
_Function = ast.FunctionDef | ast.AsyncFunctionDef


# -- Blocks ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """Statements of a function that run one after the other.

    Attributes:
        start: the offset where they begin; for a function's body its definition's, with
            decorators and defaults.
        end: the offset after them. A block may contain others.
        first: the offset of the first statement.
    """

    start: int
    end: int
    first: int


def blocks_of(source: SourceFile) -> list[Block]:
    """Return the blocks of a file. The code of modules and classes is in none."""
    return list(_blocks(source, source.tree, False))


def _blocks(source: SourceFile, node: ast.AST, within: bool) -> Iterator[Block]:
    is_function = isinstance(node, _Function)
    within = is_function or (within and not isinstance(node, ast.ClassDef))
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if not within or not isinstance(body, list) or not body:
            continue
        first = body[0]
        if is_function and ast.get_docstring(node, clean=False) is not None:  # type: ignore[arg-type]
            first = body[min(1, len(body) - 1)]
        offset = source.start(first)
        if source.text.startswith("elif", offset):
            continue  # its own body is a block
        yield Block(source.start(node) if is_function else offset, source.end(body[-1]), offset)
    for each in ast.iter_child_nodes(node):
        yield from _blocks(source, each, within)


def with_hits(source: SourceFile, blocks: Sequence[Block], start: int) -> str:
    """Return the code of a file whose blocks set the bytes from index `start` on when they run."""
    text = source.text
    numbered = sorted(enumerate(blocks, start), key=lambda each: each[1].first, reverse=True)
    for index, block in numbered:
        line = text.rindex("\n", 0, block.first) + 1
        before = text[line : block.first]
        separator = "; " if before.strip() else f"\n{before}"
        hit = f"__hits__[{index}] = 1{separator}"
        text = text[: block.first] + hit + text[block.first :]
    place = 0
    for node in source.tree.body:
        if not isinstance(node, ast.Expr) and getattr(node, "module", "") != "__future__":
            place = source.start(node)
            break
    module = _MODULE.removesuffix(".py").replace("/", ".")
    return f"{text[:place]}from {module} import hits as __hits__\n{text[place:]}"


# -- The map ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MappedTest:
    """A test function, for all its parameters.

    Attributes:
        name: `file::name`, as pytest writes it. "" stands for what runs before the first test.
        hits: has a bit for each block that it ran.
        seconds: the time that it took.
        passed: True if it passed.
        process: True if it starts programs, so that the machine may decide whether it passes.
    """

    name: str
    hits: int
    seconds: float
    passed: bool
    process: bool

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


class HitMap:
    """The tests that run each block.

    Args:
        sources: the files of the code, in the order in which their blocks are numbered.
        tests: the tests.
        imported: has a bit for each block that runs before the first test.
    """

    def __init__(
        self, sources: Mapping[str, SourceFile], tests: Iterable[MappedTest], imported: int = 0
    ) -> None:
        self._imported = imported
        self.tests = {each.name: each for each in tests}
        self._sources = sources
        self._blocks: dict[str, list[tuple[int, Block]]] = {}
        start = 0
        for file, source in sources.items():
            blocks = blocks_of(source)
            self._blocks[file] = list(enumerate(blocks, start))
            start += len(blocks)

    @classmethod
    def load(cls, sources: Mapping[str, SourceFile], paths: Iterable[Path]) -> HitMap:
        """Read the parts of a map that `make_map` has written for the same sources."""
        lines: list[dict[str, Any]] = []
        for path in paths:
            with gzip.open(path, "rt", encoding="ascii") as file:
                lines += [json.loads(line) for line in file]
        tests = [MappedTest(**{**line, "hits": int(line["hits"], 16)}) for line in lines]
        imported = functools.reduce(operator.or_, (each.hits for each in tests if not each.name), 0)
        return cls(sources, (each for each in tests if each.name), imported)

    def tests_of(self, file: str, start: int, end: int) -> list[MappedTest] | None:
        """Return the tests that run the code between two offsets, the fastest first.

        Those that start programs come last: most of their time is spent waiting.

        For code outside of functions they are those that run a block with the name that it defines.
        So it is for a function with a cache: only the first test that calls it has run it. None if
        there is no such block.
        """
        mask = self._mask(file, start, end)
        if not mask:
            return None
        found = [each for each in self.tests.values() if each.passed and each.hits & mask]
        return sorted(found, key=lambda each: (each.process, each.seconds))

    def runs_first(self, file: str, start: int, end: int) -> bool:
        """True if the code between two offsets may run before the first test.

        Such code is in no function, in a function's definition before its body, or in one that is
        called while modules are imported and tests collected.
        """
        around = [
            (block.end - block.start, index, block.first)
            for index, block in self._blocks[file]
            if block.start <= start and end <= block.end
        ]
        if not around:
            return True
        _, index, first = min(around)
        return end <= first or bool(self._imported >> index & 1)

    def _mask(self, file: str, start: int, end: int) -> int:
        mask, name = self._block_at(file, start, end)
        # The definitions with this name, what is made of it, and so on.
        names = [name] if name else []
        for name in names:  # which grows
            if len(names) > _MOST_NAMES:
                break
            for other, place in self._places.get(name, ()):
                found, more = self._block_at(other, place, place + len(name))
                mask |= found
                if more and more not in names:
                    names.append(more)
        return mask

    def _block_at(self, file: str, start: int, end: int) -> tuple[int, str]:
        """Return the bit of the smallest block around a place, and the name that it defines.

        The bit is 0 outside of functions; the name is "" in one without a cache.
        """
        around = [
            (block.end - block.start, index, block.start, block.first)
            for index, block in self._blocks[file]
            if block.start <= start and end <= block.end
        ]
        mask = 1 << min(around)[1] if around else 0
        source = self._sources[file]
        if around and not _CACHE.search(source.text, max(around)[2], max(around)[3]):
            return mask, ""
        return mask, source.scope_at(start, end).rpartition(".")[2]

    @functools.cached_property
    def _places(self) -> dict[str, list[tuple[str, int]]]:
        """The files and the offsets of each word of the code."""
        places: dict[str, list[tuple[str, int]]] = {}
        for file, source in self._sources.items():
            for found in _WORD.finditer(source.text):
                places.setdefault(found[0], []).append((file, found.start()))
        return places


def make_map(
    root: Path, sources: Mapping[str, SourceFile], arguments: Sequence[str], report: Path
) -> None:
    """Run tests below `root`, a copy of the code, and write the map to `report`.

    Args:
        root: the copy, whose files are changed.
        sources: the files of the code.
        arguments: pytest's, with the tests.
        report: the file for the map.

    Raises:
        RuntimeError: pytest could not be called like this.
    """
    start = 0
    for file, source in sources.items():
        blocks = blocks_of(source)
        root.joinpath(file).write_text(with_hits(source, blocks, start), "utf-8")
        start += len(blocks)
    memory = root / _MEMORY
    memory.write_bytes(bytes(start))
    root.joinpath(_MODULE).write_text(
        "import mmap\n"
        f"with open({str(memory)!r}, 'r+b') as file:\n"
        "    hits = mmap.mmap(file.fileno(), 0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(root), "HITS": str(report)}
    command = [sys.executable, "-m", "pytest", "-p", "tests.spec.hit_map", *arguments]
    run = subprocess.run(
        command,
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if run.returncode not in (0, 1) or not report.exists():
        raise RuntimeError(f"pytest exits {run.returncode}: {run.stdout[-2000:]}{run.stderr}")


# -- The plugin ------------------------------------------------------------------------------------

_BITS: Final = bytes.maketrans(b"\0\1", b"01")
_NEW: Final[dict[str, Any]] = {"hits": 0, "seconds": 0.0, "passed": True, "process": False}


def _function_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _seconds() -> float:
    return sum(os.times()[:4])  # with child processes' times


class _Recorder:
    """Writes the map at the end of the run."""

    def __init__(self, report: Path) -> None:
        self._report = report
        self._found: dict[str, dict[str, Any]] = {}

    @cached_property
    def _hits(self) -> Any:
        from mcp_core._hits import hits  # type: ignore[import-not-found]

        return hits

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if not self._found:
            self._found[""] = {**_NEW, "hits": self._taken()}
        self._taken()
        before = _seconds()
        result = yield
        entry = self._entry(item)
        entry["hits"] |= self._taken()
        entry["seconds"] += _seconds() - before
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        report: pytest.TestReport = yield  # type: ignore[assignment]
        if report.failed:
            self._entry(item)["passed"] = False
        return report  # type: ignore[return-value]

    def _entry(self, item: pytest.Item) -> dict[str, Any]:
        process = item.get_closest_marker("process") is not None
        return self._found.setdefault(_function_of(item), {**_NEW, "process": process})

    def _taken(self) -> int:
        """Return the blocks that ran since the last call."""
        hits = self._hits
        # The bit of block 0 is the lowest one.
        found = int(hits[:].translate(_BITS)[::-1], 2)
        hits[:] = bytes(len(hits))
        return found

    def pytest_sessionfinish(self) -> None:
        with gzip.open(self._report, "wt", 1, encoding="ascii") as file:
            for name, entry in self._found.items():
                line = {"name": name, **entry, "hits": f"{entry['hits']:x}"}
                file.write(json.dumps(line) + "\n")


class _Selector:
    """Runs the selected tests, in their order."""

    def __init__(self, names: Sequence[str]) -> None:
        self._order = {name: index for index, name in enumerate(names)}

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(
        self, collector: pytest.Collector, name: str, obj: object
    ) -> list[pytest.Item] | None:
        """Collect nothing of a function that is not selected: its parameters cost time."""
        is_function = name.startswith("test") and not isinstance(obj, type)
        return [] if is_function and f"{collector.nodeid}::{name}" not in self._order else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = self._order
        items[:] = sorted(
            (item for item in items if _function_of(item) in order),
            key=lambda item: order[_function_of(item)],
        )


@cache
def _plugin() -> object | None:
    if _REPORT is not None:
        return _Recorder(Path(_REPORT))
    if _SELECTED is not None:
        return _Selector(json.loads(Path(_SELECTED).read_text("utf-8")))
    return None


def pytest_configure(config: pytest.Config) -> None:
    """Add the plugin that the environment asks for."""
    plugin = _plugin()
    if plugin is not None:
        config.pluginmanager.register(plugin)
