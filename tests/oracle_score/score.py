"""The score: which mutants are found at fixed seeds, and what of it was held out."""

from __future__ import annotations

import json
import math
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from tests.oracle_score.campaign import CampaignResult, run_campaign
from tests.oracle_score.operators import all_places, operators
from tests.oracle_score.servers import SERVERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "BASELINE",
    "CASES",
    "MAX_LOST",
    "SEED",
    "HeldOut",
    "MutantResult",
    "Score",
    "hold_out",
    "read_baseline",
    "run_score",
    "seed_of_today",
]

BASELINE: Final = Path(__file__).with_name("baseline.json")
# What the committed score is made with.
CASES: Final = 3_000  # for each mutant, at most
SEED: Final = 37  # of the cases
MAX_LOST: Final = 2  # faults that may be lost without a failure
CLEAN: Final = "clean/"  # before the name of an unbroken server
LIVE_CASES: Final = 200  # against a program, whose clock is the real one


class MutantResult(Struct, kw_only=True):
    """A mutant and its campaign.

    Attributes:
        id: the mutant's name: the operator and the place.
        row: what it breaks.
        level: MUST or SHOULD.
        result: what became of its campaign.
    """

    id: str
    row: str
    level: str
    result: CampaignResult

    @property
    def is_found(self) -> bool:
        """True if the fuzzer has found what is broken in it."""
        return bool(self.result.found)


class HeldOut(Struct, kw_only=True, frozen=True):
    """The part that is reported apart: whole operators, and places of the others.

    Attributes:
        operators: a third of the operators.
        places: a third of the mutants of the other operators, as far as these have several.
    """

    operators: frozenset[str]
    places: frozenset[str]


class Score(Struct, kw_only=True):
    """The campaigns of a run.

    Attributes:
        cases: how many each mutant gets at most.
        seed: of the cases.
        mutants: the mutants, in the order of the table.
        clean: the campaigns against unbroken servers, by name.
    """

    cases: int
    seed: int
    mutants: list[MutantResult] = field(default_factory=list)
    clean: dict[str, CampaignResult] = field(default_factory=dict)

    def found(self, level: str = "") -> list[MutantResult]:
        """Return the found mutants of a level, or all."""
        return [each for each in self.of(level) if each.is_found]

    def unfound(self, level: str = "") -> list[MutantResult]:
        """Return the mutants of a level that weren't found, or all."""
        return [each for each in self.of(level) if not each.is_found]

    def noticed(self, level: str = "") -> list[MutantResult]:
        """Return the mutants that weren't found, and in which the fuzzer found something else."""
        return [each for each in self.unfound(level) if each.result.other]

    def advised(self, level: str = "") -> list[MutantResult]:
        """Return the mutants that weren't found, and whose breach was reported as advice."""
        return [each for each in self.unfound(level) if each.result.advice]

    def of(self, level: str) -> list[MutantResult]:
        """Return the mutants of a level, or all."""
        return [each for each in self.mutants if level in ("", each.level)]

    def split(self) -> tuple[Score, Score]:
        """Return the score of servers in memory, which is the same everywhere, and the others'."""
        places = all_places()
        parts = []
        for is_live in (False, True):
            mutants = [
                each
                for each in self.mutants
                if bool(SERVERS[places[each.id].server].needs) is is_live
            ]
            clean = {
                name: each
                for name, each in self.clean.items()
                if bool(SERVERS[name].needs) is is_live
            }
            parts.append(Score(cases=self.cases, seed=self.seed, mutants=mutants, clean=clean))
        return parts[0], parts[1]

    @property
    def false_findings(self) -> list[str]:
        """The findings in unbroken servers, as texts."""
        return [
            f"{name}: {each.found} {each.sentence}"
            for name, each in self.clean.items()
            if each.found
        ]

    @property
    def failures(self) -> list[str]:
        """The mutants whose campaign an exception has ended, and the exceptions."""
        results = {each.id: each.result for each in self.mutants} | self.clean
        return [f"{name}: {each.failure}" for name, each in results.items() if each.failure]

    def lost(self, baseline: Score) -> list[str]:
        """Return the mutants that a baseline has found and this score hasn't."""
        known = {each.id for each in baseline.found()}
        return [each.id for each in self.unfound() if each.id in known]


def seed_of_today() -> str:
    """Return the date, which decides what is held out today."""
    return datetime.now(UTC).date().isoformat()


def hold_out(seed: str) -> HeldOut:
    """Return what a seed holds out."""
    random = Random(seed)
    names = sorted(operators())
    held = frozenset(random.sample(names, math.ceil(len(names) / 3)))
    places: set[str] = set()
    for name in names:
        own = sorted(each.id for each in operators()[name].places.values())
        if name not in held and len(own) > 1:
            places.update(random.sample(own, max(1, round(len(own) / 3))))
    return HeldOut(operators=held, places=frozenset(places))


def run_one(name: str, cases: int, seed: int) -> tuple[str, CampaignResult]:
    """Run the campaign against a mutant, or an unbroken server. It is for a process of its own."""
    if name.startswith(CLEAN):
        server, place = SERVERS[name.removeprefix(CLEAN)], None
    else:
        place = all_places()[name]
        server = SERVERS[place.server]
    cases = min(cases, LIVE_CASES) if server.needs else cases
    return name, run_campaign(server, place, cases=cases, seed=seed)


def run_score(
    names: Iterable[str],
    clean: Iterable[str],
    *,
    cases: int,
    seed: int = SEED,
    jobs: int = 1,
    on_result: Callable[[str, CampaignResult], object] = lambda name, result: None,
) -> Score:
    """Run the campaigns against mutants and unbroken servers, and return their score.

    Args:
        names: the mutants' names.
        clean: the names of the unbroken servers.
        cases: how many each gets at most.
        seed: of the cases.
        jobs: how many processes share the work; 1 for none.
        on_result: called after each campaign.
    """
    places = all_places()
    mutants = list(names)
    wanted = [*mutants, *(CLEAN + each for each in clean)]
    results: dict[str, CampaignResult] = {}

    def take(name: str, result: CampaignResult) -> None:
        results[name] = result
        on_result(name, result)

    if jobs == 1:
        for name in wanted:
            take(*run_one(name, cases, seed))
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            for done in as_completed([pool.submit(run_one, each, cases, seed) for each in wanted]):
                take(*done.result())
    return Score(
        cases=cases,
        seed=seed,
        mutants=[
            MutantResult(
                id=each, row=places[each].row, level=places[each].level, result=results[each]
            )
            for each in mutants
        ],
        clean={each: results[CLEAN + each] for each in clean},
    )


def read_baseline(path: Path = BASELINE) -> Score:
    """Return the committed score."""
    return msgspec.json.decode(path.read_bytes(), type=Score)


def write_baseline(score: Score, path: Path = BASELINE) -> None:
    """Write a score to be committed, without what differs from machine to machine."""
    found: Any = msgspec.to_builtins(score)
    for result in (*(each["result"] for each in found["mutants"]), *found["clean"].values()):
        for name in ("seconds", "notes", "failure"):
            result.pop(name, None)
    path.write_text(json.dumps(found, indent=1) + "\n")


def default_jobs() -> int:
    """Return how many processors there are."""
    return os.cpu_count() or 1
