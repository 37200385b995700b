"""The world that a plan is played in: its clock, its chances, its log, and who lives in it."""

from __future__ import annotations

import logging
import re
import traceback
from contextlib import contextmanager
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import trio
from trio._core import _run as trio_run
from trio.testing import MockClock

from mcp_trio._runtime import TrioRuntime

from .client import ModernClient, StickyClient
from .oracle import Oracle
from .stores import BusStore, TaskStoreServer
from .worker import SimWorker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .client import SimClient
    from .plan import Plan, Step

__all__ = ["PlayOutcome", "World", "play"]

START: Final = 1_800_000_000.0  # of all wall clocks
REST: Final = 30.0  # virtual seconds after the last fault until everything is well
_LOOK: Final = 1.0  # seconds between two looks whether it is
_WHAT_CHANGES: Final = ("tools", "note://0")


class PlayOutcome:
    """How a plan ended: its `events`, their `digest`, and `faults`, empty if all is well."""

    def __init__(self, events: list[str], faults: list[str]) -> None:
        self.events = events
        self.faults = faults

    @property
    def digest(self) -> str:
        return blake2b("\n".join(self.events).encode(), digest_size=8).hexdigest()

    def fails_alike(self, plan: Plan) -> bool:
        """Return True if `plan` has a fault of the same kind as the first one here."""
        kind = _kind_of(self.faults[0])
        return any(_kind_of(fault) == kind for fault in play(plan).faults)


def _kind_of(fault: str) -> str:
    """Return the text of a fault without the names and numbers in it."""
    return re.sub(r"\b\w*\d[\w.]*", "N", fault)


class World:
    """The clients and workers of a plan, and what they share.

    Attributes:
        truth: what the servers tell about: by kind, how often it was changed.
        untold: what has changed at a worker that was killed before it could tell the others.
        faults: what is wrong.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.events: list[str] = []
        self.faults: list[str] = []
        self.truth: dict[str, int] = dict.fromkeys(_WHAT_CHANGES, 0)
        self.untold: set[str] = set()
        self.bus = BusStore()
        self.tasks = TaskStoreServer(self)
        self.oracle = Oracle(self)
        self.workers: list[SimWorker] = []  # those of a place succeed one another in it
        self.clients: list[SimClient] = []
        self.faults_until = 0.0  # virtual time
        self.nursery: trio.Nursery

    def chance(self, name: str) -> Random:
        """Return a source of chances of its own: what others draw doesn't change what it gives."""
        return Random(self.plan.seed << 32 | crc32(name.encode()))

    def wall_time(self) -> float:
        """Return the time of a correct wall clock."""
        return START + trio.current_time()

    def log(self, who: object, *what: object) -> None:
        """Add to the events."""
        self.events.append(f"{trio.current_time():8.4f} {who} {' '.join(map(str, what))}")

    def fail(self, text: str) -> None:
        """Note that something is wrong."""
        self.log("FAULT", text)
        self.faults.append(text)

    def outage(self, seconds: float) -> float:
        """Note a fault that lasts for `seconds`, and return when it is over."""
        until = trio.current_time() + seconds
        self.faults_until = max(self.faults_until, until)
        return until

    @property
    def living(self) -> list[SimWorker]:
        """The workers that accept connections."""
        return [worker for worker in self.workers if worker.is_listening]

    async def run(self) -> None:
        """Play the plan, wait for rest, and end everything."""
        async with trio.open_nursery() as self.nursery:
            for number in range(self.plan.workers):
                self.workers.append(SimWorker(self, number, 0))
                await self.nursery.start(self.workers[number].run)
            for number in range(self.plan.clients):
                make = StickyClient if number < self.plan.sessions else ModernClient
                client: SimClient = make(self, number)
                self.clients.append(client)
                self.nursery.start_soon(client.run)
            begun = trio.current_time()
            for step in self.plan.steps:
                await trio.sleep_until(begun + step.at)
                self._take(step)
            await trio.sleep_until(max(begun + 0.5, self.faults_until))
            await self._rest()
            for client in self.clients:
                client.leave()
            await trio.sleep(2.0)
            self.oracle.check_nothing_left()
            for worker in self.workers:
                worker.stop()
            with trio.move_on_after(60.0):
                for worker in self.workers:
                    await worker.ended.wait()
            self.oracle.check_end()
            self.nursery.cancel_scope.cancel()

    async def _rest(self) -> None:
        deadline = trio.current_time() + REST
        while True:
            await trio.sleep(_LOOK)
            problems = self.oracle.find_unrest()
            if not problems:
                self.log("world", "rests")
                return
            if trio.current_time() >= deadline:
                for problem in problems:
                    self.fail(problem)
                return

    def _take(self, step: Step) -> None:
        self.log("step", step)
        getattr(self, f"_{step.what}")(step)

    def _client(self, step: Step) -> SimClient:
        return self.clients[step.who % len(self.clients)]

    def _worker(self, step: Step) -> SimWorker:
        return self.workers[step.who % len(self.workers)]

    # -- Steps of clients --------------------------------------------------------------------------

    def _use(self, step: Step) -> None:
        client = self._client(step)
        self.nursery.start_soon(client.act, step.what, int(step.value))

    _call = _ask = _task = _watch = _cancel = _visit = _use

    def _change(self, step: Step) -> None:
        what = _WHAT_CHANGES[int(step.value) % len(_WHAT_CHANGES)]
        worker = self._worker(step)
        if worker.is_listening:
            self.truth[what] += 1
            self.untold.discard(what)
            worker.change(what)

    # -- Faults ------------------------------------------------------------------------------------

    def _cut(self, step: Step) -> None:
        self.outage(0.0)
        self._client(step).cut()

    def _kill(self, step: Step) -> None:
        worker = self._worker(step)
        if worker.is_alive:
            self.outage(step.value)
            if worker.has_untold_changes:
                self.untold.update(_WHAT_CHANGES)
            worker.kill()
            self.nursery.start_soon(self._start_again, worker, step.value)

    async def _start_again(self, killed: SimWorker, seconds: float) -> None:
        await trio.sleep(seconds)
        place = killed.place
        self.workers[place] = SimWorker(self, place, killed.life + 1)
        self.nursery.start_soon(self.workers[place].run)

    def _disturb(self, step: Step) -> None:
        self._worker(step).link.disturb(step.what, self.outage(step.value))

    _refuse = _hang = _deaf = _slow = _twice = _disturb

    def _miss(self, step: Step) -> None:
        self.outage(0.0)
        self._worker(step).link.break_watch()

    def _jump(self, step: Step) -> None:
        worker = self._worker(step)
        worker.clock_offset += (step.value - 6.0) * 10
        self.outage(0.0)

    def _empty(self, step: Step) -> None:
        self.outage(0.0)
        self.bus.empty()


@contextmanager
def _repeatable(seed: int) -> Iterator[list[logging.LogRecord]]:
    """Make trio repeat itself, and catch the log."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign, assignment]
    log = logging.getLogger("mcp_trio")
    before: tuple[Any, ...] = (
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING,
        log.propagate,
        TrioRuntime.checkpoint_interval,
        TrioRuntime.monotonic,
    )
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    trio_run._r.seed(seed)
    log.propagate = False
    log.addHandler(handler)
    # How long handlers really block isn't a part of the world.
    TrioRuntime.checkpoint_interval = 0.0
    TrioRuntime.monotonic = staticmethod(trio.current_time)
    try:
        yield records
    finally:
        log.removeHandler(handler)
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = before[0]  # type: ignore[misc]
        log.propagate = before[1]
        TrioRuntime.checkpoint_interval = before[2]
        TrioRuntime.monotonic = staticmethod(before[3])


def play(plan: Plan) -> PlayOutcome:
    """Play a plan from its beginning to its end."""
    with _repeatable(plan.seed) as records:
        world: World | None = None

        async def main() -> None:
            nonlocal world
            world = World(plan)
            await world.run()

        failure = ""
        try:
            trio.run(main, clock=MockClock(autojump_threshold=0))
        except Exception as exc:  # noqa: BLE001 - the plan has found something
            failure = "".join(traceback.format_exception(exc))
        assert world is not None
        for record in records:
            if record.levelno >= logging.ERROR:
                text = record.getMessage()
                cause = record.exc_info[1] if record.exc_info else None
                world.faults.append(f"the log has an error: {text}: {cause!r}")
        if failure:
            world.faults.append(failure)
        return PlayOutcome(world.events, world.faults)
