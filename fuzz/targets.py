"""What a target is, where targets and their recorded cases are found, and how a case is written down.

A case is `bytes`, kept as a file with just these, or any Python literal, kept as its text. Either way a file of the
corpus can be read and edited by hand. Recorded cases are of three kinds: those committed under `corpus/`, which every
test run replays; those beside them named `found-*`, which a run saw do something new and git ignores until somebody
thinks them worth a name; and `findings/`, where the smallest case of each failure goes.

This file does not know how cases are made or run, and imports nothing of the core: an engine that instruments the core
has to come first.
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
    "committed",
    "invariant_of",
    "load",
    "read_case",
    "target_names",
    "write_case",
]

HERE: Final = Path(__file__).parent
CORPUS: Final = HERE / "corpus"
FINDINGS: Final = HERE / "findings"
FOUND: Final = "found-"


class Target(NamedTuple):
    """An invariant, and the cases that try it.

    `cases` makes a strategy from recorded cases, which it may take as they are, damage or ignore. `check` raises if the
    invariant does not hold for a case, and otherwise names what the case brought about: one that brings about something
    new is worth keeping. `raw`: cases are `bytes`.
    """

    name: str
    cases: Callable[[Sequence[Any]], SearchStrategy[Any]]
    check: Callable[[Any], Iterable[str]]
    raw: bool = False

    @property
    def corpus(self) -> Path:
        return CORPUS / self.name


def target_names() -> list[str]:
    """Every target, by name."""
    return sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.py"))


def load(name: str) -> Target:
    """The target of that name.

    Raises:
        KeyError: there is none.
    """
    if name not in target_names():
        raise KeyError(name)
    target = importlib.import_module(f"fuzz.fuzz_{name}").TARGET
    assert isinstance(target, Target)
    assert target.name == name
    return target


def invariant_of(name: str) -> str:
    """The invariant of a target, as its file opens with it."""
    lines = (HERE / f"fuzz_{name}.py").read_text("utf-8").splitlines()
    opening = lines[: next(i for i, line in enumerate(lines) if not line.startswith("#"))]
    return " ".join(line.removeprefix("#").strip() for line in opening).removeprefix("Invariant: ")


# -- Cases and files ---------------------------------------------------------------------------------------------------


def committed(target: Target) -> dict[str, Any]:
    """The committed cases of a target, by file name."""
    return {
        path.name: read_case(target, path)
        for path in sorted(target.corpus.glob("*"))
        if not path.name.startswith((FOUND, "."))
    }


def read_case(target: Target, path: Path) -> Any:
    """The case in a file.

    Raises:
        OSError: it cannot be read.
        ValueError, SyntaxError: it is no Python literal.
    """
    return path.read_bytes() if target.raw else ast.literal_eval(path.read_text("utf-8"))


def write_case(target: Target, case: Any, folder: Path, prefix: str) -> Path:
    """Write a case to `folder`, under a name that follows from the case; gives the file."""
    data = case if target.raw else _literal(case).encode()
    path = folder / f"{prefix}{sha256(data).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def as_row(target: Target, case: Any) -> str:
    """The case as a row for the table in `tests/fuzz/test_targets.py`."""
    return textwrap.indent(_literal((target.name, case)).rstrip() + ",", "    ")


def _literal(case: Any) -> str:
    return pformat(case, width=110, sort_dicts=False) + "\n"
