"""All mutants of one file: which of its code has no test among those that are named?

    python -m tests.spec.file_mutants FILE TEST ... [--scope NAME] [--count N] [--seed N]

It is for writing tests. The tests are collected once and run in forks (`forked_tests.py`), so that
a mutant costs little more than its tests take. What survives may still be noticed by other tests,
which `random_mutants.py` runs too.
"""

from __future__ import annotations

import argparse
import random
import sys
from typing import TYPE_CHECKING, Final

from rich.console import Console

from tests.spec.code_match import SourceFile
from tests.spec.equivalent_mutants import EQUIVALENTS
from tests.spec.forked_tests import ForkedTests
from tests.spec.mutation_operators import find_places, make_mutant
from tests.spec.mutation_runner import ROOT, changed_file, copied
from tests.spec.random_mutants import diff, run_tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.spec.mutation_operators import RandomMutant

__all__ = ["mutants_of", "survivors"]

_TIMEOUT: Final = 60.0  # seconds for the tests of one mutant
_MEMORY: Final = 8 << 30  # bytes of address space for them
# A test that a mutant stops is noticed sooner than by the suite's own limit.
_OPTIONS: Final = ("-q", "-o", "timeout=10", "-m", "", "-p", "no:cacheprovider", "-p", "no:xdist")


def mutants_of(file: str, text: str, scope: str = "") -> list[RandomMutant]:
    """Return all mutants of a file, without those that are equivalent.

    Args:
        file: its path below the repository's root.
        text: its code.
        scope: how the qualified names begin in which the changes are.
    """
    source = SourceFile(text)
    known = {each.key for each in EQUIVALENTS}
    found: dict[tuple[str, str, str], RandomMutant] = {}
    for place in find_places(source):
        for choice in range(len(place.choices)):
            mutant = make_mutant(source, file, place, choice)
            if mutant.key in known or mutant.old == mutant.new:
                continue
            if mutant.scope.startswith(scope) and _compiles(mutant.replacement.apply(text)):
                found.setdefault(mutant.key, mutant)
    return list(found.values())


def _compiles(text: str) -> bool:
    try:
        compile(text, "", "exec")
    except SyntaxError:
        return False
    return True


def survivors(
    root: Path, mutants: Sequence[RandomMutant], tests: Sequence[str]
) -> Iterator[RandomMutant]:
    """Yield the mutants that no test notices.

    Args:
        root: a copy of the code and the tests, which is changed and restored.
        mutants: of one file or several.
        tests: files of tests.

    Raises:
        ValueError: a test fails on the unchanged code.
    """
    with ForkedTests(root, [*_OPTIONS, *tests], _TIMEOUT, _MEMORY) as forked:
        found = forked.run(tests)
        if found is None or found.failed:
            raise ValueError(f"a test fails on the unchanged code: {found}")
        for mutant in mutants:
            path = root / mutant.file
            old = path.read_text("utf-8")
            new = mutant.replacement.apply(old)
            with changed_file(path):
                path.write_text(new, "utf-8")
                # What runs when its module is imported needs a new process.
                found = forked.run(tests, mutant.file, old, new) or run_tests(root, tests)
            if not found.failed:
                yield mutant


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants of a file, and print those that survive. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.spec.file_mutants")
    parser.add_argument("file", metavar="FILE", help="such as mcp_trio/_client.py")
    parser.add_argument("tests", metavar="TEST", nargs="+", help="files of tests")
    parser.add_argument("--scope", default="", metavar="NAME", help="only within this definition")
    parser.add_argument("--count", type=int, metavar="N", help="this many, drawn at random")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="default: 1")
    options = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True, markup=False)
    text = (ROOT / options.file).read_text("utf-8")
    mutants = mutants_of(options.file, text, options.scope)
    if options.count is not None and options.count < len(mutants):
        mutants = random.Random(options.seed).sample(mutants, options.count)
    count = 0
    with copied() as root:
        for mutant in survivors(root, mutants, options.tests):
            count += 1
            console.print("", *diff(mutant, text), sep="\n")
            console.print(f"equivalent? {mutant.key}")
    console.print(f"\n{len(mutants) - count} of {len(mutants)} noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
