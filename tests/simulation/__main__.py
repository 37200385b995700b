"""Play seeds:

    python -m tests.simulation --seed N            one seed: print its events and what is wrong
    python -m tests.simulation --seeds N           N seeds, from `--first`
    python -m tests.simulation --seconds S         as many seeds as there is time for

A seed that fails is shrunk, and the command that plays the rest of it is printed. `--planted NAME`
plants a fault first, to see how it is found. The status is 1 if a seed has failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext

from .plan import Plan, plan_of, shrunk
from .planted import PLANTED, planted
from .world import PlayOutcome, play

_REPORT: float = 5.0  # seconds between two lines about the progress


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, help="play this one seed")
    parser.add_argument("--steps", help="of it only these, as 0,3,5")
    parser.add_argument("--workers", type=int, help="so many workers")
    parser.add_argument("--clients", type=int, help="so many clients")
    parser.add_argument("--seeds", type=int, help="play so many seeds")
    parser.add_argument("--seconds", type=float, help="play seeds for so long")
    parser.add_argument("--first", type=int, default=0, help="the first of many seeds")
    parser.add_argument("--planted", choices=sorted(PLANTED), help="plant this fault first")
    found = parser.parse_args(arguments)
    with nullcontext() if found.planted is None else planted(found.planted):
        if found.seed is not None:
            return _play_one(_selected(found), shrinks=found.steps is None)
        return _play_many(found.first, found.seeds, found.seconds)


def _selected(found: argparse.Namespace) -> Plan:
    plan = plan_of(found.seed)
    if found.steps is not None:
        numbers = [int(number) for number in found.steps.split(",") if number]
        plan = plan._replace(steps=tuple(plan.steps[number] for number in numbers))
    if found.workers is not None:
        plan = plan._replace(workers=found.workers)
    if found.clients is not None:
        plan = plan._replace(clients=found.clients)
    return plan


def _play_one(plan: Plan, *, shrinks: bool) -> int:
    outcome = play(plan)
    if not outcome.faults:
        print(*outcome.events, f"{outcome.digest}: nothing is wrong", sep="\n")
        return 0
    if shrinks:
        plan = shrunk(plan, outcome.fails_alike)
        outcome = play(plan)
    _show(plan, outcome)
    return 1


def _show(plan: Plan, outcome: PlayOutcome) -> None:
    print(*outcome.events, "", *outcome.faults, "", sep="\n")
    print(command_for(plan), flush=True)


def command_for(plan: Plan) -> str:
    """Return the command that plays `plan`, which is a part of its seed's plan."""
    steps = plan_of(plan.seed).steps
    numbers = ",".join(str(steps.index(step)) for step in plan.steps)
    return (
        f"python -m tests.simulation --seed {plan.seed} --steps {numbers or ','}"
        f" --workers {plan.workers} --clients {plan.clients}"
    )


def _play_many(first: int, seeds: int | None, seconds: float | None) -> int:
    began = reported = time.monotonic()
    cpu = time.process_time()
    failed: list[int] = []
    played = 0
    while seeds is None or played < seeds:
        now = time.monotonic()
        if seconds is not None and now - began >= seconds:
            break
        plan = plan_of(first + played)
        outcome = play(plan)
        played += 1
        if outcome.faults:
            failed.append(plan.seed)
            print(f"seed {plan.seed}: {outcome.faults[0]}")
            if len(failed) == 1:
                _show(smaller := shrunk(plan, outcome.fails_alike), play(smaller))
        if now - reported >= _REPORT or played == seeds:
            reported = now
            each = 1000 * (time.process_time() - cpu) / played
            print(f"{played} seeds, {each:.0f} ms each, {len(failed)} failed", file=sys.stderr)
    print(f"{played} seeds from {first}, {len(failed)} failed {failed[:20] or ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
