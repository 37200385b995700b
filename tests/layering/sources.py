"""All files of the project, each read and parsed once for the rules, the words and the clocks.

The trees of all files would take half a gigabyte, so what is kept are the findings.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.conftest import INTEROP, STARTS_PROGRAMS
from tests.layering.clocks import TestModule
from tests.layering.rules import MAY_IMPORT, ProjectFile, complaints
from tests.layering.stages import TestFile
from tests.layering.words import prose_of_markdown, prose_of_module

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.layering.words import Prose

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = (
    *("mcp_core", "mcp_trio", "mcp_asyncio_shim", "fuzz", "benchmarks", "examples", "tests"),
)
MARKDOWN: Final = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
    *("benchmarks/README.md", "fuzz/README.md", "tests/README.md"),
    ".github/**/*.md",
    "docs/**/*.md",
)


@dataclass(frozen=True)
class Words:
    """The words of a file: how many, and those that are banned or counted with their places."""

    count: int
    banned: list[str]
    counted: list[str]


@dataclass(frozen=True)
class Findings:
    """The findings of all rules in one file, whose tree is forgotten.

    `folder` is the first one of the path, or `docs` for Markdown. `complaints` come from the rules
    for one file, and `waits` from the rules about time in tests, as line and text. `tests` is what
    the rules about helpers know of a file below `tests`.
    """

    file: ProjectFile
    folder: str
    words: Words
    complaints: list[str]
    waits: list[tuple[int, str]]
    tests: TestFile | None = None


@functools.cache
def project() -> list[Findings]:
    """Return the findings of all files."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    texts = sorted(path for pattern in MARKDOWN for path in ROOT.glob(pattern))
    return [*map(_of_python, paths), *map(_of_markdown, texts)]


def _of_python(path: Path) -> Findings:
    file = ProjectFile(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
    waits: list[tuple[int, str]] = []
    if file.package == "tests":
        interop = path.is_relative_to(INTEROP)
        left_out = interop or path in STARTS_PROGRAMS
        module = TestModule(file.text, tree=file.tree, left_out=left_out, takes_longer=interop)
        waits += module.complaints()
    found = Findings(
        file,
        file.package,
        _words(file.path, prose_of_module(file.text, file.tree)),
        complaints(file) if file.package in MAY_IMPORT else [],
        waits,
        TestFile.of(file.tree) if file.package == "tests" else None,
    )
    if file.package in MAY_IMPORT:
        assert file.classes is not None  # before the tree is gone, for the rules of the project
    file.forget_tree()
    return found


def _of_markdown(path: Path) -> Findings:
    file = ProjectFile(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
    return Findings(file, "docs", _words(file.path, prose_of_markdown(file.text)), [], [])


def _words(path: str, texts: Iterable[Prose]) -> Words:
    words = Words(0, [], [])
    count = 0
    for prose in texts:
        count += prose.words
        words.banned.extend(f"{path}:{prose.line}: {word}" for word in prose.banned)
        words.counted.extend(f"{path}:{prose.line}: {word}" for word in prose.counted)
    return Words(count, words.banned, words.counted)
