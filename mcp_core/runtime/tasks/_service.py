"""The tasks of one served `Server`: their creation, upkeep and end.

1. A worker has one lease for all its tasks. It renews the lease before it looks for lost tasks of
   other workers. A lost task is run again if its tool wants that, and fails otherwise.
2. A worker never counts a task that it runs itself as lost, even if the store fails or a clock is
   wrong.
3. Nothing here decides what a task may do next: `mcp_core.tasks` does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from mcp_core._errors import Fault, McpError
from mcp_core.protocol.messages._events import Peer
from mcp_core.registry._input_requests import InputCollector
from mcp_core.registry._server import Server
from mcp_core.registry.entries._invocation import Invocation, MountedCall
from mcp_core.runtime._runtime import LAST_GRACE
from mcp_core.runtime._service import Service, ignored_cancellation, name_of_request
from mcp_core.tasks._record import TaskCall, TaskKey, TaskLimits, TaskRecord
from mcp_core.tasks._states import INTERNAL_ERROR, Fail, TaskExpired, transition
from mcp_core.tasks._store import TaskStoreError
from mcp_core.types import ErrorData

from ._held import HeldCalls
from ._memory_store import MemoryTaskStore
from ._records import STORE, TaskRecords, run_now
from ._requests import TaskQuestion, TaskRequestJob
from ._running import RunningTask, TaskCallJob, TaskJob
from ._runtime import TaskRuntime

if TYPE_CHECKING:
    from mcp_core.tasks._store import TaskLimitName


__all__ = ["TaskService"]

# Seconds between two searches for expired tasks. A record that is over its time to live is never
# shown, so this is about memory only.
_UPKEEP_INTERVAL: Final = 10.0
# Seconds before a change that has to be stored is tried again: the first delay, and the longest.
_FIRST_RETRY: Final = 0.5
_LAST_RETRY: Final = 30.0
# Seconds before a failed lease renewal is tried again: other workers measure the silence.
_RETRY_INTERVAL: Final = 1.0
_WORKER_SIZE: Final = 8  # bytes of a worker's name: many start in the life of one task
_REMOVED_AT_ONCE: Final = 100  # records of an owner
_REMOVE_AGAIN: Final = 10.0  # seconds, after a store has failed
# How many pages of an owner's tasks may fail in a row, because others changed all of their records.
_MOST_IN_VAIN: Final = 10
# Records that one step of the upkeep touches at most. A step takes some milliseconds, and calls run
# between the steps.
_AT_ONCE: Final = 100
# How many records to remove are remembered while the store fails. Others stay until they expire.
_MAX_UNWANTED: Final = 1_000


class TaskService:
    """The tasks of `server`, for all its connections. Enter `opened` around them.

    Args:
        server: declares the tools that run as tasks.
        runtime: what the driver adds.
        lifespan: the server lifespan's value.

    `worker` is the name of this process in leases. `closing` is set when the server shuts down.
    """

    def __init__(self, server: Server, runtime: TaskRuntime, lifespan: Any = None) -> None:
        tasks = server.tasks
        self.server = server
        self.runtime = runtime
        self.lifespan = lifespan
        self._store = tasks.store if tasks.store is not None else MemoryTaskStore()
        self.records = TaskRecords(self._store, tasks.limits or TaskLimits(), runtime)
        runtime.keys = server.shared_keys
        self.worker = runtime.entropy(_WORKER_SIZE).hex()
        self._held = HeldCalls(self.records.limits)
        self._running: dict[TaskKey, RunningTask] = {}
        # The questions that a client is being asked, by task and key.
        self._questions: dict[tuple[TaskKey, str], TaskQuestion] = {}
        # Owners that don't exist any more, and whose tasks are being removed.
        self._ended_owners: dict[str, None] = {}
        self.closing = runtime.new_event()
        self._closed = False
        self._has_ended = False  # and with it the lease
        self._is_shut_down = False  # the store may be closed
        self._interval = min(_UPKEEP_INTERVAL, self.records.limits.lease / 3)
        self._keeps_up = False
        # When the lease was renewed last, by the monotonic clock; None if it wasn't yet.
        self._renewed_at: float | None = None
        # True until the running tasks are compared with their records.
        self._lease_was_over = False
        # Records that the store may have although their creation failed, until they are removed.
        self._unwanted: dict[TaskKey, TaskRecord] = {}
        self._on_idle: Callable[[], object] | None = None
        self._warns = True
        # Jobs that were cancelled and still run, with the time of that.
        self._stopping: dict[TaskJob, float] = {}
        self._stopping_ended = runtime.new_event()  # set when there are none

    def __repr__(self) -> str:
        return f"<TaskService of {self.server!r}, {len(self._running)} running>"

    @asynccontextmanager
    async def opened(self, grace: float = 0.0, *, warns: bool = True) -> AsyncIterator[TaskService]:
        """Open the store, and close it at the end.

        Handlers that ignore their cancellation for `LAST_GRACE` seconds get a line in the log. Pass
        `warns=False` if a last deadline names them.

        At the end, tasks in a durable store get `grace` seconds to end. Other tasks get none, since
        no client can reach them any more. After an exception or a cancellation there is no grace.
        Then the handlers are cancelled. A task that is to be run again is left to another worker;
        any other task fails.
        """
        self._warns = warns
        opened = self._store.opened
        if not self._store.immediate:
            from ._opening import open_store  # on first use: most servers have a store in memory

            opened = partial(open_store, self._store)
        async with self._watched(), opened(self.runtime):
            if self._store.durable:
                self.runtime.start_soon(self.records.watch_store)
                self._start_upkeep()
            try:
                yield self
            except BaseException:
                grace = 0.0
                raise
            finally:
                self._closed = True
                self.closing.set()
                await self.runtime.shielded(partial(self._shut_down, grace))

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """At the end, wait for handlers that were cancelled, `LAST_GRACE` seconds at most."""
        try:
            yield
        finally:
            if self._stopping:
                await self.runtime.shielded(self._watch_stopping)

    async def _shut_down(self, grace: float) -> None:
        for owner in list(self._ended_owners):
            # No client could find them any more, nor remove them before their time to live.
            await self._try(partial(self._remove_all, owner))
        if self._store.durable and self._running:
            await self._wait_until_idle(grace)
        self._has_ended = True
        failed = Fail(ErrorData(INTERNAL_ERROR, "the server was shut down"))
        for task in list(self._running.values()):
            if not (task.runs_again and self._store.durable):
                await self._try(partial(self.records.apply, task.key, failed))
            task.stop()
        if self._renewed_at is not None:
            # What is left may be run again by another worker at once.
            await self._try(partial(self._store.renew_lease, self.worker, 0.0))
        self.records.stop_observers()
        self._is_shut_down = True

    async def _wait_until_idle(self, grace: float) -> None:
        """Wait until no task runs, for `grace` seconds at most. Keep the lease meanwhile."""
        ended = self.runtime.new_event()
        self._on_idle = ended.set
        deadline = self.runtime.monotonic() + grace
        while grace > 0:
            if await self.runtime.wait(ended, min(grace, self._interval)):
                return
            await self._try(self._renew_lease)
            grace = deadline - self.runtime.monotonic()

    async def _try(self, function: Callable[[], Awaitable[object]]) -> bool:
        """Await `function()`, which uses the store. Return False if it failed, and log that."""
        try:
            await function()
        except Exception as exc:  # noqa: BLE001 - a store may raise anything; go on with the others
            if not self._is_shut_down:  # since this began
                self.records.reports.failed(STORE, exc)
            return False
        return True

    # -- Requests ----------------------------------------------------------------------------------

    def request_job(self, service: Service, collector: InputCollector) -> TaskRequestJob | None:
        """Return the job for a request about tasks, None if it has its response already.

        `service` is where it arrived, and `collector` is its own.
        """
        job = TaskRequestJob(service, self, collector)
        if not self._store.immediate or job.waits:
            return job
        try:
            job.done(run_now(job.run()))
        except Exception as exc:  # noqa: BLE001 - the job decides what the client gets
            job.failed(exc)
        return None

    def call_job(
        self, service: Service, collector: InputCollector, given: Invocation | MountedCall | None
    ) -> TaskCallJob | None:
        """Return the job for a call that may become a task, None if it is one already.

        `service` is where its request arrived, and `collector` is its own. `given` is the call to
        make, or None to look it up inside of the middleware.
        """
        job = TaskJob(service, self, collector, given)
        if not self._store.immediate or not job.detaches_at_once:
            return TaskCallJob(job, self)
        try:
            run_now(job.detach())
        except Exception as exc:  # noqa: BLE001 - the job decides what the client gets
            job.failed(exc)
            job.release()
        else:
            self.runtime.start_job(job)
        return None

    def claim_question(self, question: TaskQuestion) -> bool:
        """Return True if the caller is to ask `question`: no reachable request is asking it."""
        place = question.task, question.key
        asked = self._questions.get(place)
        if asked is not None and asked.reachable:
            return False
        self._questions[place] = question
        if asked is not None:
            asked.withdraw()
        return True

    def release_question(self, question: TaskQuestion) -> None:
        """Let another request ask what `question` asks, if there was no response."""
        place = question.task, question.key
        if self._questions.get(place) is question:
            del self._questions[place]
            self.records.changed(question.task)

    # -- Running tasks -----------------------------------------------------------------------------

    async def create(self, record: TaskRecord, peer: Peer) -> None:
        """Store the `record` of a new task. Errors have the codes of the revision of `peer`.

        Raises:
            McpError: there are too many tasks, the server is shutting down, or the store failed.
        """
        codes = peer.dialect.codes
        if self._closed:
            raise McpError(codes[Fault.BUSY], "the server is being shut down")
        limit = self._held.find_excess(record)
        if limit is None:
            self._held.hold(record)  # before the store is asked: others may be created meanwhile
            try:
                await self._hold_lease()
                while True:
                    limit = await self.records.create(record)
                    # Expired records don't count, however long ago the last upkeep was.
                    if limit is None or not await self.remove_expired():
                        break
            except BaseException as exc:
                # The caller was cancelled, or the store failed. The store may have the record
                # nevertheless.
                self.discard_record(record)
                if not isinstance(exc, TaskStoreError):
                    raise
                self.records.reports.failed(STORE, exc)
                raise McpError(codes[Fault.INTERNAL], "the task cannot be stored now") from None
            if limit is not None:
                self._held.release(record.key)
        if limit is not None:
            raise McpError(codes[Fault.BUSY], self._refusal(record, limit))
        self._start_upkeep()

    def _refusal(self, record: TaskRecord, limit: TaskLimitName) -> str:
        """Return why a new task is refused, and what to do."""
        number = getattr(self.records.quota(record.quota_key), limit)
        if limit in ("per_key", "total"):
            whose = "you have" if limit == "per_key" else "the server has"
            return f"{whose} {number} tasks already, which is the limit"
        whose = "your tasks" if limit == "key_bytes" else "the tasks of the server"
        # In this process there may be less room than in the store.
        held = getattr(self.records.limits.quota(record.quota_key, durable=False), limit)
        return (
            f"the call takes {record.size} bytes, and {whose} may take {min(number, held)}"
            " together: try again when others have ended, or send less"
        )

    def with_worker(self, record: TaskRecord, call: TaskCall | None) -> TaskRecord:
        """Return a new `record` with this worker's lease, and with `call` to run again."""
        if not self._store.durable:
            call = None  # the record is lost together with this worker
        return replace(record, worker=self.worker, call=call)

    def discard_record(self, record: TaskRecord) -> None:
        """Remove a `record` whose task its client doesn't know. Retry if the store fails.

        `create` may have stored it, and its handler doesn't run.
        """
        self._held.release(record.key)
        if len(self._unwanted) < _MAX_UNWANTED:
            self._unwanted[record.key] = record
        self.records.start_soon(partial(self._discard_record, record))

    async def _discard_record(self, record: TaskRecord) -> None:
        found: TaskRecord | None = record
        # Another worker may have taken it over while the store failed: no client knows it there
        # either, and its handler might wait for input until the end of its time to live.
        while found is not None and not await self.records.remove(found):
            found = await self._store.get(record.key)
        self._unwanted.pop(record.key, None)

    def add(self, task: RunningTask) -> None:
        """Remember `task`, whose handler runs here."""
        self._running[task.key] = task

    def hold(self, record: TaskRecord) -> None:
        """Count the call of a task that another worker has left, as `create` does."""
        self._held.hold(record)

    def discard(self, task: RunningTask) -> None:
        """Forget `task`, whose handler has ended."""
        task.stop_observing()
        self._held.release(task.key)
        if self._running.get(task.key) is task:
            del self._running[task.key]
        if not self._running and self._on_idle is not None:
            self._on_idle()

    def job_stopped(self, job: TaskJob) -> None:
        """Take note that `job`, which runs, was cancelled."""
        if not self._warns:
            return
        if not self._stopping:
            self._stopping_ended = self.runtime.new_event()
            self._stopping[job] = self.runtime.monotonic()
            self.runtime.start_soon(self._watch_stopping)
        else:
            self._stopping.setdefault(job, self.runtime.monotonic())

    def job_ended(self, job: TaskJob) -> None:
        """Take note that `job` doesn't run any more."""
        if self._stopping.pop(job, None) is not None and not self._stopping:
            self._stopping_ended.set()

    async def _watch_stopping(self) -> None:
        """Log the names of handlers that ignore their cancellation, once each."""
        while self._stopping:
            now = self.runtime.monotonic()
            seconds = next(iter(self._stopping.values())) + LAST_GRACE - now
            if seconds > 0:
                await self.runtime.wait(self._stopping_ended, seconds)
                continue
            late = [job for job, since in self._stopping.items() if since + LAST_GRACE <= now]
            for job in late:
                del self._stopping[job]
            self.runtime.warn(ignored_cancellation(name_of_request(job.request) for job in late))

    async def store(self, apply: Callable[[], Awaitable[object]]) -> None:
        """Await `apply()`, which changes a record. Again if the store fails, until shutdown."""
        seconds = _FIRST_RETRY
        while True:
            try:
                await apply()
            except TaskStoreError as exc:
                self.records.reports.failed(STORE, exc)
            else:
                return
            if await self.runtime.wait(self.closing, seconds):
                return
            seconds = min(seconds * 2, _LAST_RETRY)

    def store_soon(self, apply: Callable[[], Awaitable[object]]) -> None:
        """Do as `store` does, in a background task."""
        self.runtime.start_soon(partial(self.store, apply))

    def running(self, key: TaskKey) -> RunningTask | None:
        """Return the task of `key`, if its handler runs here."""
        return self._running.get(key)

    def stop(self, key: TaskKey) -> None:
        """Cancel the task `key`'s handler, if it runs here."""
        task = self._running.get(key)
        if task is not None:
            task.stop()

    def remove_owner(self, owner: str) -> None:
        """Remove the tasks of `owner`, which doesn't exist any more, and cancel those that run."""
        for task in [task for key, task in self._running.items() if key.owner == owner]:
            task.stop()
        self._ended_owners[owner] = None
        self.runtime.start_soon(partial(self._remove_until_done, owner))

    async def _remove_until_done(self, owner: str) -> None:
        """Remove the tasks of `owner`. A store that fails is tried again."""
        while owner in self._ended_owners:
            removed = await self._try(partial(self._remove_all, owner))
            if not removed and await self.runtime.wait(self.closing, _REMOVE_AGAIN):
                return

    async def _remove_all(self, owner: str) -> None:
        in_vain = 0
        # At shutdown two tasks may do this: the one that is done first ends the other.
        while owner in self._ended_owners:
            page = await self._store.page(owner, "", _REMOVED_AT_ONCE)
            if not page:
                self._ended_owners.pop(owner, None)
                return
            removed = False
            for record in page:
                if owner in self._ended_owners:
                    removed |= await self.records.remove(record)
            in_vain = 0 if removed else in_vain + 1
            if in_vain > _MOST_IN_VAIN:
                raise TaskStoreError("the tasks of a session that has ended cannot be removed")
            await self.runtime.checkpoint()

    # -- Upkeep ------------------------------------------------------------------------------------

    def _start_upkeep(self) -> None:
        if not self._keeps_up:
            self._keeps_up = True
            self.runtime.start_soon(self._keep_up)

    async def _keep_up(self) -> None:
        while not self._closed:
            # Also at the start: tasks that the last process left at its shutdown need not wait.
            renewed = await self._try(self._renew_lease)
            steps: list[Callable[[], Awaitable[object]]]
            steps = [self._remove_unwanted, self.remove_expired]
            if renewed and self._store.durable:
                # Only after a renewal: while the store fails, all workers seem to be silent.
                steps.append(self._recover_lost)
            for step in steps:
                if self._is_shut_down:
                    return
                await self._try(step)
            seconds = self._interval if renewed else min(self._interval, _RETRY_INTERVAL)
            if await self.runtime.wait(self.closing, seconds):
                return

    async def _hold_lease(self) -> None:
        """Renew the lease before a task is created or taken over, unless that was done lately."""
        if self._renewed_at is not None:
            if not self._store.durable:
                return  # it holds as long as this worker
            elapsed = self.runtime.monotonic() - self._renewed_at
            if elapsed < self.records.limits.lease / 2:
                return
        await self._renew_lease()

    async def _renew_lease(self) -> None:
        if self._has_ended:
            return
        now = self.runtime.monotonic()
        before = self._renewed_at
        lease = self.records.limits.lease
        # A record that isn't durable is lost together with this worker, and never before.
        await self._store.renew_lease(self.worker, lease if self._store.durable else inf)
        self._renewed_at = now
        if before is not None and self._store.durable and now - before > lease:
            self._lease_was_over = True
        if self._lease_was_over:
            # Another worker may have run them again meanwhile.
            await self._check_running()
            self._lease_was_over = False

    async def _check_running(self) -> None:
        """Stop the handlers of tasks that run elsewhere, or have ended."""
        for number, task in enumerate(list(self._running.values()), 1):
            task.on_record(await self.records.get(task.key))
            if number % _AT_ONCE == 0:
                await self.runtime.checkpoint()

    async def _remove_unwanted(self) -> None:
        for record in list(self._unwanted.values()):
            await self._discard_record(record)

    async def remove_expired(self) -> bool:
        """Remove all records that are over their time to live. Return True if there were any.

        Other tasks run in between, unless the store is immediate.
        """
        removed = False
        while True:
            keys = await self._store.remove_expired(self.runtime.wall_time(), _AT_ONCE)
            for key in keys:
                removed = True
                self.stop(key)
                self.records.changed(key)
            if len(keys) < _AT_ONCE:
                return removed
            if not self._store.immediate:
                await self.runtime.checkpoint()

    async def _recover_lost(self) -> None:
        """Run tasks again whose worker was lost, or let them fail, until none is left."""
        while not self._closed:
            records = await self._store.lost(_AT_ONCE)
            if not records or not await self._recover_all(records):
                return
            await self.runtime.checkpoint()
            # It takes a while if there are many.
            await self._hold_lease()

    async def _recover_all(self, records: Sequence[TaskRecord]) -> bool:
        """Recover tasks side by side: a store may write them at once. Return True if any were."""
        recovered = 0
        left = len(records)
        ended = self.runtime.new_event()

        async def recover(record: TaskRecord) -> None:
            nonlocal recovered, left
            try:
                recovered += await self._recover(record)
            except Exception as exc:  # noqa: BLE001 - one record must not stop the others
                if not self._is_shut_down:
                    self.records.reports.failed(STORE, exc)
            finally:
                left -= 1
                if not left:
                    ended.set()

        for record in records:
            self.runtime.start_soon(partial(recover, record))
        await self.runtime.wait(ended)
        return recovered > 0

    async def _recover(self, record: TaskRecord) -> bool:
        """Run one task again, or let it fail. Return False if it wasn't lost any more."""
        key = record.key
        if key in self._running:
            return False
        if record.call is None:
            text = "the process that ran this task is gone"
            error = Fail(ErrorData(INTERNAL_ERROR, text))
            # Change only this version of the record: a slow worker may have written a later one.
            try:
                failed = transition(record, error, self.runtime.wall_time(), self.records.limits)
            except TaskExpired:
                return False
            changed = await self._store.change(key, record.serial, failed)
            if changed:
                self.records.changed(key)
            return changed
        taken = replace(record, serial=record.serial + 1, worker=self.worker)
        try:
            if not await self._store.change(key, record.serial, taken):
                return False
        except TaskStoreError:
            # It may be stored nevertheless. Then no other worker ever finds it.
            self.store_soon(partial(self._run_if_taken, key))
            raise
        self._run_again(taken)
        return True

    async def _run_if_taken(self, key: TaskKey) -> None:
        record = await self._store.get(key)
        if record is not None and record.worker == self.worker and not record.ended:
            self._run_again(record)

    def _run_again(self, taken: TaskRecord) -> None:
        """Run a task that this worker has taken over, or let it fail."""
        # At shutdown, the next worker finds it, because this one has ended its lease.
        if self._closed or taken.key in self._running:
            return
        job = TaskJob.for_lost(self, taken)
        if job is None:
            text = "this server cannot run the task again: the tool or its arguments changed"
            failed = Fail(ErrorData(INTERNAL_ERROR, text))
            self.store_soon(partial(self.records.apply, taken.key, failed))
        else:
            self.runtime.start_job(job)
