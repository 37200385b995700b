"""The oracle: what has to hold in the world at any time, at rest, and at its end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core.tasks import FINAL_STATUSES

from .worker import BRIEF

if TYPE_CHECKING:
    from mcp_core.sharing import ChangesPublished
    from mcp_core.tasks import TaskKey, TaskQuota, TaskRecord

    from .client import SimClient, SimTask
    from .worker import SimWorker
    from .world import World

__all__ = ["Oracle"]

_TIME_TO_STOP: Final = 1.5  # seconds in which a worker stops what it has lost
_LATE: Final = 0.5  # seconds by which a response may be late


class Oracle:
    """The model of a world: each change, task, answer and quota."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._runs: dict[str, list[str]] = {}  # by task id: its handler's runs
        self._unwanted: dict[TaskKey, SimWorker] = {}
        self._taken: dict[str, float] = {}  # by task id: when another worker took it over
        self._renewed: dict[SimWorker, float] = {}  # when its lease was renewed last
        self._numbers: dict[SimWorker, int] = {}  # those that workers use on the bus
        self._changes: Counter[SimWorker] = Counter()
        self._published: Counter[SimWorker] = Counter()
        self._hooks: Counter[SimWorker] = Counter()

    # -- Tasks -------------------------------------------------------------------------------------

    def handler_began(self, worker: SimWorker, task_id: str) -> str:
        """Note a run of a task's handler, and return its name."""
        runs = self._runs.setdefault(task_id, [])
        runs.append(f"run{len(runs)}@{worker}")
        self._world.log(worker, "runs", task_id[:6], runs[-1])
        return runs[-1]

    def handler_ended(self, worker: SimWorker, task_id: str) -> None:
        """Check that a handler which has run to its end had its task."""
        now = trio.current_time()
        taken = self._taken.get(task_id, now)
        key = next((key for key in self._world.tasks._records if key.id == task_id), None)
        if key is None:
            return
        record = self._world.tasks._records[key]
        renewed = self._renewed.get(worker, 0.0)
        if record.worker != worker.lease and taken < renewed < now - _TIME_TO_STOP:
            self._world.fail(
                f"{worker} ran task {task_id[:6]} on, {now - renewed:.1f} s after it had renewed"
                " its lease and could have known that another worker has the task"
            )

    def lease_renewed(self, worker: SimWorker) -> None:
        """Take note that a worker's lease was renewed, and it knows."""
        self._renewed[worker] = trio.current_time()

    def record_created(self, record: TaskRecord, refused: str | None, limits: TaskQuota) -> None:
        """Check that a new task was refused if its user has too many, and only then."""
        self._check_sums()
        records = self._world.tasks._records.values()
        number = sum(each.quota_key == record.quota_key for each in records)
        if number > limits.per_key or (refused == "per_key" and number < limits.per_key):
            self._world.fail(f"a task was {refused or 'created'}, and its user has {number}")

    def creation_failed(self, worker: SimWorker, record: TaskRecord) -> None:
        """Take note that a worker doesn't know whether a record was stored: it removes it."""
        self._unwanted[record.key] = worker

    def record_changed(
        self, worker: SimWorker, before: TaskRecord | None, after: TaskRecord | None
    ) -> None:
        """Check that a task which has ended stays as it is, and who may change it."""
        self._check_sums()
        if before is None or after is None:
            return
        name = f"task {before.id[:6]}"
        if before.worker != after.worker:
            self._taken[before.id] = trio.current_time()
            self._world.log(worker, "takes", name)
        if after.status == "completed" and before.worker != worker.lease:
            self._world.fail(f"{worker} ended {name}, which another worker has")
        if before.status in FINAL_STATUSES:
            self._world.fail(f"{worker} changed {name}, which was {before.status}")

    def _check_sums(self) -> None:
        for problem in self._world.tasks.find_wrong_sums():
            self._world.fail(problem)

    def task_refused(self, client: SimClient, answer: dict[str, Any]) -> None:
        """Check that a task is refused for its number only, if nothing fails."""
        text = answer["error"]["message"]
        if self._world.plan.is_faultless and "which is the limit" not in text:
            self._world.fail(f"{client} may not begin a task: {text}")

    def task_unknown(self, client: SimClient, task: SimTask, answer: dict[str, Any]) -> None:
        """Check that a task which can't be read is over its time, or the store fails."""
        age = trio.current_time() - task.began
        if task.tool == "brief" and age > BRIEF - _LATE:
            task.is_gone = True
        elif self._world.plan.is_faultless:
            self._world.fail(f"{client}: task {task.id[:6]} cannot be read: {answer}")

    def task_ended(self, client: SimClient, task: SimTask, text: str) -> None:
        """Compare the end that a client sees with the runs of the handler."""
        status, *result = text.split()
        runs = self._runs.get(task.id, [])
        if status == "completed":
            if result[:1] and result[0] not in runs:
                self._world.fail(f"task {task.id[:6]} has a result of no run: {text}")
            if task.tool.startswith("asks") and result[1:] != [task.name]:
                self._world.fail(f"task {task.id[:6]} asked, and got another answer: {text}")
        elif status == "cancelled" and not task.cancelled:
            self._world.fail(f"task {task.id[:6]} was cancelled by nobody")
        elif status != "cancelled" and self._world.plan.is_faultless:
            self._world.fail(f"task {task.id[:6]} failed without a fault")

    # -- Changes -----------------------------------------------------------------------------------

    def joined(self, worker: SimWorker, number: int) -> None:
        """Check that no other worker uses the number."""
        for other, its in self._numbers.items():
            if its == number and other is not worker and other.is_alive:
                self._world.fail(f"{worker} was given the number {number} of {other}")
        self._numbers[worker] = number
        self._world.bus.members[number] = worker
        self._world.log(worker, "has number", number)

    def heartbeat(self, worker: SimWorker, number: int, *, kept: bool) -> None:
        """Check that a worker keeps its number as long as the store knows it, and no longer."""
        if kept != (self._world.bus.members.get(number) is worker):
            self._world.fail(f"{worker} {'kept' if kept else 'lost'} the number {number}")
        if not kept:
            self._numbers.pop(worker, None)

    def changed(self, worker: SimWorker) -> None:
        """Take note of a change."""
        self._changes[worker] += 1

    def published(self, worker: SimWorker, message: ChangesPublished) -> None:
        """Check that a worker publishes no more than it changes, if nothing fails."""
        self._published[worker] += 1
        self._world.log(
            worker, "publishes", ",".join(message.lists + message.uris + message.elicitations)
        )
        if self._world.plan.is_faultless and self._published[worker] > self._changes[worker]:
            self._world.fail(f"{worker} publishes what hasn't changed: {message}")

    def hook_began(self, worker: SimWorker) -> None:
        """Check that hooks run for others' changes only, if nothing fails."""
        self._hooks[worker] += 1
        # The first run is before the worker serves.
        others = 1 + self._published.total() - self._published[worker]
        if self._world.plan.is_faultless and self._hooks[worker] > others:
            self._world.fail(f"{worker} hears of its own change")

    # -- At rest -----------------------------------------------------------------------------------

    def find_unrest(self) -> list[str]:
        """Return what isn't as it will be, if nothing happens any more."""
        world = self._world
        problems = []
        for client in world.clients:
            if not client.is_listening:
                problems.append(f"{client} listens to nothing")
            else:
                problems += [
                    f"{client} knows version {client.known.get(what)} of {what}, it is {version}"
                    for what, version in world.truth.items()
                    if client.known.get(what) != version and what not in world.untold
                ]
            if client.pages and world.plan.is_faultless:
                problems.append(f"{client} did not hear of visits of {client.pages}")
            problems += [
                f"{client} waits for {method} since {at:.3f}"
                for at, method in client.pending.values()
            ]
            problems += [
                f"{client}: task {task.id[:6]} of {task.tool} has not ended"
                for task in client.tasks
                if task.outcome is None and not task.is_gone
            ]
            problems += [
                f"{client}: listens to task {task.id[:6]}, which is {task.outcome}"
                for task in client.tasks
                if task.is_watched and task.tool != "brief"
            ]
        problems += [
            f"{worker} has told its client that task {key.id[:6]} failed, and did not remove it"
            for key, worker in self._unwanted.items()
            if worker.is_alive and key in world.tasks._records
        ]
        problems += self._find_leases()
        problems += [
            f"{worker} still runs task {key.id[:6]}"
            for worker in world.workers
            if worker.tasks is not None
            for key in worker.tasks._running
            if not self._may_run(worker, key)
        ]
        for worker in world.workers:
            problems += _find_left(worker)
        return problems

    def _may_run(self, worker: SimWorker, key: TaskKey) -> bool:
        """Return True if a worker has the task of `key`, which hasn't ended."""
        record = self._world.tasks._records.get(key)
        return record is not None and not record.ended and record.worker == worker.lease

    def _find_leases(self) -> list[str]:
        world = self._world
        now = trio.current_time()
        names = {worker.lease for worker in world.workers}
        problems = [
            f"the lease of {name} is over"
            for name, until in world.tasks.lease_ends.items()
            if name in names and until <= now
        ]
        for name, keys in world.tasks._held.items():
            if name not in names:
                problems.append(f"{len(keys)} tasks are held by {name}, which is gone")
        return problems

    # -- At the end --------------------------------------------------------------------------------

    def check_nothing_left(self) -> None:
        """Check what the workers still have after all clients have left."""
        for worker in self._world.workers:
            driver = worker.app._driver
            sessions = worker.sessions_begun  # they live until they have been idle for long
            for problem in (
                f"{len(worker.exchanges)} exchanges" if worker.exchanges else "",
                f"{driver._jobs} jobs" if driver._jobs > worker.requests_abandoned else "",
                f"{services} conversations"
                if (services := len(driver._services)) > sessions
                else "",
                f"{listeners} listeners"
                if (listeners := len(worker.server._listeners)) > sessions
                else "",
            ):
                if problem:
                    self._world.fail(f"{worker} has {problem} left")
            if worker.tasks is None:
                continue
            records = worker.tasks.records
            # A handler may wait for input that no client can send: its call was lost.
            if {*records._watchers, *records._observers} - worker.tasks._running.keys():
                self._world.fail(f"{worker} still watches tasks: {records!r}")

    def check_end(self) -> None:
        """Check what is left when all workers have shut down."""
        for worker in self._world.workers:
            if not worker.ended.is_set():
                self._world.fail(f"{worker} doesn't shut down")
            # A renewal that was under way may arrive after the end, and is over some time later.
            kept = worker.lease in self._world.tasks.lease_ends
            if kept and not worker.link.has_ended_lease:
                self._world.fail(f"{worker} has shut down, and kept its lease")


def _find_left(worker: SimWorker) -> list[str]:
    """Return what a worker still has to do."""
    found = []
    for bus in worker.buses:
        if bus._changes.has_unpublished:
            found.append(f"{worker} has changes to publish")
        if bus._breaker.is_out:
            found.append(f"{worker}: the breaker is open")
        if not bus._changes.number:
            found.append(f"{worker} has no number")
    tasks = worker.tasks
    if tasks is not None:
        if tasks._unwanted:
            found.append(f"{worker} has {len(tasks._unwanted)} records to remove")
        held = tasks._held
        if held._calls.keys() - tasks._running.keys():
            found.append(f"{worker} counts calls that do not run: {held!r}")
        if held._size != sum(size for _, size in held._calls.values()):
            found.append(f"{worker} counts {held._size} bytes: {held!r}")
    return found
