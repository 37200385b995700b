"""Print the score, and compare it with the committed one.

    python -m tests.oracle_score [--cases N] [--operators NAME ...] [--seed-of-day D] [--jobs N]

A mutant is found by a finding of the row that is broken, or of one that is the same breach: see
`same_breach`. It fails if a campaign ends with an exception, if more than two faults of the
baseline aren't found, or if anything is found in a server that isn't broken. `--write` writes the
baseline, and the list in the docs page. Both are always of all mutants, with the same cases.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tests.oracle_score.docs_page import write_page
from tests.oracle_score.operators import all_places, operators
from tests.oracle_score.score import (
    CASES,
    LIVE_CASES,
    MAX_LOST,
    SEED,
    default_jobs,
    hold_out,
    read_baseline,
    run_score,
    seed_of_today,
    write_baseline,
)
from tests.oracle_score.servers import SERVERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.oracle_score.campaign import CampaignResult
    from tests.oracle_score.score import HeldOut, MutantResult, Score


def main(args: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle_score")
    parser.add_argument("--cases", type=int, default=CASES, help="for each mutant, at most")
    parser.add_argument("--operators", nargs="+", metavar="NAME", help="only these, or mutants")
    parser.add_argument("--seed", type=int, default=SEED, help="of the cases")
    parser.add_argument("--seed-of-day", default=seed_of_today(), help="decides what is held out")
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="processes")
    parser.add_argument("--write", action="store_true", help="write the baseline and the docs page")
    given = parser.parse_args(args)
    if given.write and (given.operators or (given.cases, given.seed) != (CASES, SEED)):
        parser.error(f"--write needs all mutants, --cases {CASES} and --seed {SEED}")
    chosen = {
        each: place
        for each, place in all_places().items()
        if not given.operators or place.operator.name in given.operators or each in given.operators
    }
    names = [each for each, place in chosen.items() if SERVERS[place.server].is_available]
    clean = [name for name, each in SERVERS.items() if each.is_available and not given.operators]
    score = run_score(
        names,
        clean,
        cases=given.cases,
        seed=given.seed,
        jobs=given.jobs,
        on_result=_show_result,
    )
    score, live = score.split()
    _show(score, hold_out(given.seed_of_day), given.seed_of_day)
    _show_live(live, len(chosen) - len(names))
    failures = score.failures + live.failures
    for each in failures:
        print(f"FAILED: {each}")
    for each in live.false_findings:
        print(f"FALSE: {each}")
    if failures or live.false_findings:
        return 1
    if given.write:
        write_baseline(score)
        write_page(score)
        return 0
    return _compare(score)


def _show_result(name: str, result: CampaignResult) -> None:
    shown = f"{result.found} after {result.cases} cases" if result.found else "-"
    shown += f", {result.advice} as advice" if result.advice and not result.found else ""
    shown += f", {result.other} is another fault" if result.other else ""
    print(f"{name}: {shown} ({result.seconds:.1f} s)", file=sys.stderr, flush=True)


def _show(score: Score, held: HeldOut, seed: str) -> None:
    by_operator = [each for each in score.mutants if each.id.partition("/")[0] in held.operators]
    by_place = [each for each in score.mutants if each.id in held.places]
    for level in ("MUST", "SHOULD"):
        name = "MUST, crash or hang" if level == "MUST" else level
        print(f"{name}: {_part(score.of(level))}")
        print(f"  not found, but reported as advice: {len(score.advised(level))}")
        print(f"  not found, but another fault was: {len(score.noticed(level))}")
        print(f"  held-out operators ({seed}): {_part(_of_level(by_operator, level))}")
        print(f"  held-out places: {_part(_of_level(by_place, level))}")
    print(f"operators: {_part_of_operators(score)}")
    cases = sum(each.result.cases for each in score.mutants)
    starts = sum(each.result.starts for each in score.mutants)
    seconds = sum(each.result.seconds for each in score.mutants)
    if cases:
        print(
            f"{cases:,} cases, {100 * starts / cases:.1f} starts per 100 cases,"
            f" {cases / max(seconds, 1e-9):.0f} cases a second and process"
        )
    for name, result in score.clean.items():
        cost = f"{100 * result.starts / max(1, result.cases):.1f} starts per 100 cases"
        print(f"unbroken {name}: {result.cases:,} cases, {cost}, {result.found or 'nothing found'}")
    print("held out today: " + ", ".join(sorted(held.operators)))
    print("not found:")
    for each in score.unfound():
        other = f" ({each.result.other})" if each.result.other else ""
        print(f"  {each.level:6} {each.row:8} {each.id}{other}")


def _show_live(live: Score, left_out: int) -> None:
    """Show the score of programs: it depends on the machine, so no baseline has it."""
    if left_out:
        print(f"{left_out} mutants of programs were left out, which aren't installed here")
    if live.mutants or live.clean:
        print(f"programs, within {LIVE_CASES} cases: {_part(live.mutants)}")
    for name, result in live.clean.items():
        print(f"unbroken {name}: {result.cases:,} cases, {result.found or 'nothing found'}")
    for each in live.unfound():
        print(f"  not found: {each.level:6} {each.row:8} {each.id}")


def _of_level(mutants: list[MutantResult], level: str) -> list[MutantResult]:
    return [each for each in mutants if each.level == level]


def _part(mutants: list[MutantResult]) -> str:
    found = sum(each.is_found for each in mutants)
    return f"{found} of {len(mutants)}" + (f" ({found / len(mutants):.0%})" if mutants else "")


def _part_of_operators(score: Score) -> str:
    parts = []
    for name in operators():
        own = [each for each in score.mutants if each.id.partition("/")[0] == name]
        if own:
            parts.append(f"{name} {sum(each.is_found for each in own)}/{len(own)}")
    return ", ".join(parts)


def _compare(score: Score) -> int:
    """Print what is worse than the baseline, and return the exit status."""
    for each in score.false_findings:
        print(f"FALSE: {each}")
    baseline = read_baseline()
    if (baseline.cases, baseline.seed) != (score.cases, score.seed):
        print(f"not compared: the baseline has {baseline.cases} cases and the seed {baseline.seed}")
        return int(bool(score.false_findings))
    lost = score.lost(baseline)
    for name in lost:
        print(f"LOST: {name}")
    return int(bool(score.false_findings) or len(lost) > MAX_LOST)


if __name__ == "__main__":
    sys.exit(main())
