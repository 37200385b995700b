"""Plans: what clients do and what goes wrong, as data; and how a plan that fails shrinks.

Steps, each with its time and its arguments. A number that is too large counts modulo what there is,
so that any list of steps is a plan.

    call client                 it calls a tool
    ask client                  it calls a tool that asks, and responds at another worker
    task client tool            it begins a task
    watch client number         it listens to one of its tasks
    cancel client number        it cancels one of its tasks
    visit client                its user visits a page, which any worker notices
    change worker what          a worker changes the tools, or a resource

    cut client                  the client's connections break
    kill worker seconds         the process ends at once; another one starts after so many seconds
    refuse worker seconds       its commands to the stores fail at once
    hang worker seconds         they have no response, and may have an effect
    deaf worker seconds         they have their effect, and the response is lost
    slow worker seconds         they take some tenths of a second
    twice worker seconds        what it reads from the bus comes again
    miss worker                 its watch of tasks ends, and what changed meanwhile is lost
    jump worker seconds         its wall clock is set
    empty                       the store of the bus has lost everything
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FAULTS", "Plan", "Step", "plan_of", "shrunk"]

WORKERS: Final = 3
CLIENTS: Final = 3
DURATION: Final = 8.0  # virtual seconds in which steps are

# What clients and servers do, with weights.
_USE: Final = {
    "call": 5,
    "ask": 3,
    "task": 5,
    "watch": 3,
    "cancel": 1,
    "visit": 2,
    "change": 6,
}
# What goes wrong, with weights, and whether it has an end.
FAULTS: Final = {
    "cut": 3,
    "kill": 3,
    "refuse": 3,
    "hang": 3,
    "deaf": 2,
    "slow": 2,
    "twice": 2,
    "miss": 2,
    "jump": 1,
    "empty": 2,
}
_TOOLS: Final = 6  # kinds of tasks


class Step(NamedTuple):
    """One step of a plan: `what` happens at the virtual time `at`."""

    at: float
    what: str
    who: int = 0
    value: float = 0.0

    def __repr__(self) -> str:
        return f"{self.at:7.3f} {self.what} {self.who} {self.value:g}"


class Plan(NamedTuple):
    """The steps to play. `seed` also decides the delays, and which of several tasks runs first."""

    seed: int
    workers: int
    clients: int
    steps: tuple[Step, ...]
    sessions: int = 0  # so many clients speak 2025-11-25

    @property
    def is_faultless(self) -> bool:
        """True if nothing goes wrong but delays."""
        return not any(step.what in FAULTS for step in self.steps)

    def has(self, what: str) -> bool:
        """True if there is a step of this kind."""
        return any(step.what == what for step in self.steps)


def plan_of(seed: int) -> Plan:
    """Return the plan of a seed. One in four has no faults: it is judged more strictly."""
    chance = Random(seed)
    steps = []
    for _ in range(chance.randint(6, 14)):
        (what,) = chance.choices(list(_USE), list(_USE.values()))
        steps.append(Step(_time(chance), what, chance.randrange(8), chance.randrange(_TOOLS)))
    if chance.random() < 0.75:
        # Of some kinds only, so that the others meet each other.
        kinds = chance.sample(list(FAULTS), chance.randint(1, 4))
        for _ in range(chance.randint(1, 6)):
            (what,) = chance.choices(kinds, [FAULTS[kind] for kind in kinds])
            seconds = round(chance.choice((0.5, 2.0, 5.0, 9.0)) * chance.uniform(0.5, 1.5), 3)
            steps.append(Step(_time(chance), what, chance.randrange(8), seconds))
    steps.sort()
    workers = chance.choice((2, 2, WORKERS))
    clients = chance.choice((2, 2, CLIENTS))
    return Plan(seed, workers, clients, tuple(steps), sessions=chance.choice((0, 1)))


def _time(chance: Random) -> float:
    return round(chance.uniform(0.0, DURATION), 3)


def shrunk(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """Return a plan with as few steps as possible that still fails.

    First whole parts are left out, each half as long as the parts before, then clients and workers.
    """
    size = max(len(plan.steps) // 2, 1)
    while True:
        start = 0
        smaller = False
        while start < len(plan.steps):
            steps = plan.steps[:start] + plan.steps[start + size :]
            if fails(plan._replace(steps=steps)):
                plan = plan._replace(steps=steps)
                smaller = True
            else:
                start += size
        if size > 1:
            size //= 2
        elif not smaller:
            break
    for name in ("workers", "clients"):
        for number in range(1, getattr(plan, name)):
            changed: dict[str, Any] = {name: number}
            fewer = plan._replace(**changed)
            if fails(fewer):
                plan = fewer
                break
    return plan
