"""The definition of a target, and the files that hold its recorded cases.

A case is `bytes`, stored as a file with exactly these bytes, or any Python literal, stored as text.
A file of the corpus can therefore be read and edited by hand. There are three kinds of recorded
cases:

- committed ones in `corpus/`, replayed by every test run;
- `found-*` beside them, written when a run sees a new outcome. git ignores them until they are
  renamed;
- `findings/`, the smallest case of each failure.

This file imports nothing of the core, because atheris has to instrument the core before its import.
"""

from __future__ import annotations

import ast
import importlib
import textwrap
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from pprint import pformat
from typing import Any, Final, NamedTuple

from hypothesis.strategies import SearchStrategy

__all__ = [
    "CORPUS",
    "FINDINGS",
    "Target",
    "as_row",
    "committed_cases",
    "invariant_of",
    "load",
    "read_case",
    "target_names",
    "write_case",
]

HERE: Final = Path(__file__).parent
CORPUS: Final = HERE / "corpus"
FINDINGS: Final = HERE / "findings"
FOUND_PREFIX: Final = "found-"


class Target(NamedTuple):
    """An invariant, and the cases that test it.

    `cases` takes recorded cases and returns a strategy, which may use them unchanged, damage them
    or ignore them. `check` raises if a case breaks the invariant. Otherwise it yields the outcomes
    of the case, as short texts: a case with a new outcome is kept. With `raw`, cases are `bytes`.
    """

    name: str
    cases: Callable[[Sequence[Any]], SearchStrategy[Any]]
    check: Callable[[Any], Iterable[str]]
    raw: bool = False

    @property
    def corpus(self) -> Path:
        return CORPUS / self.name


def target_names() -> list[str]:
    """Return the names of all targets, sorted."""
    return sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.py"))


def load(name: str) -> Target:
    """Import the target called `name`.

    Raises:
        KeyError: no target has this name.
    """
    if name not in target_names():
        raise KeyError(name)
    target = importlib.import_module(f"fuzz.fuzz_{name}").TARGET
    assert isinstance(target, Target)
    assert target.name == name
    return target


def invariant_of(name: str) -> str:
    """Return the invariant of a target: the comment at the top of its file."""
    lines = (HERE / f"fuzz_{name}.py").read_text("utf-8").splitlines()
    opening = lines[: next(i for i, line in enumerate(lines) if not line.startswith("#"))]
    return " ".join(line.removeprefix("#").strip() for line in opening).removeprefix("Invariant: ")


# -- Cases and files -------------------------------------------------------------------------------


def committed_cases(target: Target) -> dict[str, Any]:
    """Return the committed cases of a target by file name."""
    return {
        path.name: read_case(target, path)
        for path in sorted(target.corpus.glob("*"))
        if not path.name.startswith((FOUND_PREFIX, "."))
    }


def read_case(target: Target, path: Path) -> Any:
    """Read the case in a file.

    Raises:
        OSError: the file cannot be read.
        ValueError, SyntaxError: the content is not a Python literal.
    """
    return path.read_bytes() if target.raw else ast.literal_eval(path.read_text("utf-8"))


def write_case(target: Target, case: Any, folder: Path, prefix: str) -> Path:
    """Write `case` to a file in `folder` and return its path. The name is a hash of the case."""
    data = case if target.raw else _literal(case).encode()
    path = folder / f"{prefix}{sha256(data).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def as_row(target: Target, case: Any) -> str:
    """Return the case as a row for the table in `tests/fuzz/test_targets.py`."""
    return textwrap.indent(_literal((target.name, case)).rstrip() + ",", "    ")


def _literal(case: Any) -> str:
    return pformat(case, width=110, sort_dicts=False) + "\n"
