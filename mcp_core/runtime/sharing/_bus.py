"""The bus of one worker: it shares the changes of a served `Server` by means of a store.

1. Local clients never wait for the store. Without it they hear of all that happens here, and what
   was to be published stays, merged, until the store responds.
2. What came from the store is delivered to services, and never published again. So is what a hook
   on remote changes declares, once the hooks have run: each worker runs its own.
3. Each part has one loop: reading, publishing, the worker's number, and delivery, which may have to
   wait for hooks. `SharedChanges` decides what each of them does.
4. No failure of a store ends a loop before the bus ends. Nothing that swallows its cancellation,
   a store or a hook, keeps the bus from ending.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from inspect import isawaitable
from typing import Any, Final, TypeAlias, TypeVar

from mcp_core.protocol.subscriptions._server import Change
from mcp_core.registry._lifespans import lifespan_value
from mcp_core.registry._server import Server
from mcp_core.runtime._job import Job
from mcp_core.runtime.tasks._opening import open_store
from mcp_core.runtime.tasks._reports import StoreReports
from mcp_core.runtime.tasks._runtime import TaskRuntime
from mcp_core.runtime.tasks._wakeup import Wakeup
from mcp_core.sharing import (
    ChangesPublished,
    InvalidWorkerMessage,
    SessionStore,
    SessionStoreError,
    SharedChanges,
    StoreBreaker,
    merged,
)

from ._remote_change import RemoteChange

__all__ = ["WorkerBus", "check_sharing"]

T = TypeVar("T")
_HookKey: TypeAlias = tuple[Server, int]

_HEARTBEAT: Final = 3.0  # seconds; a worker counts as alive for 10 s
# Seconds after which a command is cancelled. A store has a deadline of its own, which is shorter.
_COMMAND_TIME: Final = 15.0
# The same before the server begins to serve. If there is no response it serves without the others.
_START_TIME: Final = 5.0
# Seconds for a last publish, and to give the number back, at the end.
_END_TIME: Final = 1.0
_HOOK_TIME: Final = 10.0  # seconds for one hook
_BUS: Final = "the bus between the workers"  # in the log
_HOOK: Final = "a hook on remote changes"  # in the log
_LOOP_PAUSE: Final = 1.0  # seconds after which a loop that has failed is started again
# A read that brings nothing waits for some seconds. One that returns within so many seconds is
# tried again after as many: a store may be broken.
_READ_PAUSE: Final = 0.1

# The hook in whose context something is called, also after that hook has ended.
_calling_hook: ContextVar[_HookJob | None] = ContextVar("calling_hook", default=None)


def check_sharing(servers: Iterable[Server], store: SessionStore) -> None:
    """Check that `servers`, which are served at several paths, can share `store`.

    Raises:
        ValueError: two have one name, or one has no `state_keys` although the store needs them.
    """
    seen: dict[str, Server] = {}
    for server in servers:
        name = server.info.name
        if seen.setdefault(name, server) is not server:
            raise ValueError(
                f"two servers have the name {name!r}: their workers could not tell their changes"
                " apart in the store. Give each server a name of its own, or each a store"
            )
        if store.needs_keys and server.shared_keys is None:
            raise ValueError(
                f"server {name!r} needs state_keys=, the same in each process, since others can"
                ' write to its store. Make a key: python -c "import secrets;'
                ' print(secrets.token_urlsafe(32))", keep it in an environment variable, and pass'
                " state_keys=read_state_keys(os.environ[NAME]) to the Server. The command"
                " does so with --state-keys-env NAME"
            )


class WorkerBus:
    """Shares the changes of `server` with the other workers that have the same `store`.

    Enter `opened` while the server is served. It is a `ChangeBus`: the server passes local changes
    to it.

    Args:
        server: the served server.
        store: what the workers share.
        runtime: the runtime of the server's tasks.
        lifespan: the server lifespan's value, for hooks.
    """

    def __init__(
        self, server: Server, store: SessionStore, runtime: TaskRuntime, lifespan: Any = None
    ) -> None:
        self._server = server
        self._name = server.info.name
        self._store = store
        self._runtime = runtime
        self._lifespan = lifespan
        self._changes = SharedChanges(self._name)
        self._breaker = StoreBreaker()
        self._reports = StoreReports(runtime, SessionStoreError)
        # Changes that were made here and aren't in `_changes` yet. Any thread may add some.
        self._unsent: dict[Change, None] = {}
        self._elicitations: dict[str, None] = {}
        # Changes that hooks have made, and this worker's clients aren't notified of yet.
        self._from_hooks: dict[Change, None] = {}
        # By server and index of the hook: its last run, and the changes that its next run gets.
        self._hook_runs: dict[_HookKey, _HookJob] = {}
        self._hooks_due: dict[_HookKey, ChangesPublished] = {}
        self._never = runtime.new_event()
        self._may_read = Wakeup(runtime)
        self._may_publish = Wakeup(runtime)
        self._may_deliver = Wakeup(runtime)
        self._jobs: list[_BusJob] = []
        self._logged_outage = False  # to the log
        self._was_first: bool  # the server's first bus notifies all its clients
        self._has_joined = False
        self._is_closing = False

    @property
    def store(self) -> SessionStore:
        """The store that the workers share."""
        return self._store

    @property
    def has_joined(self) -> bool:
        """True once it has a place among the workers, and hears of their changes."""
        return self._has_joined

    def __repr__(self) -> str:
        return f"<WorkerBus of {self._server!r}, {self._changes!r}>"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[WorkerBus]:
        """Open the store, join the other workers, and share changes while this is entered.

        A store that doesn't respond doesn't keep the server from being served.

        Raises:
            ValueError: the server is served with another store already.
            TimeoutError: the store was not open after 15 s.
            BaseException: any exception that the store raises while it is opened.
        """
        # Before it joins, which takes time: a task of the lifespan may change something meanwhile.
        self._server.attach_bus(self)
        self._was_first = self._server.is_first_bus(self)
        try:
            async with open_store(self._store, self._runtime):
                try:
                    await self._join_before_serving()
                    for loop in (self._keep_number, self._read, self._publish, self._deliver):
                        job = _BusJob(partial(self._keep_running, loop), self._runtime)
                        self._jobs.append(job)
                        self._runtime.start_job(job)
                    yield self
                finally:
                    self._is_closing = True
                    self._server.detach_bus(self)
                    await self._runtime.shielded(self._close)
        finally:
            self._server.detach_bus(self)

    async def _close(self) -> None:
        """End the loops, publish what is left, and give the number back, within some seconds."""
        self._collect()
        jobs = [*self._jobs, *self._hook_runs.values()]
        for job in jobs:
            job.stop()
        end = self._runtime.monotonic() + _END_TIME
        for job in jobs:
            if not await self._runtime.wait(job.ended, max(0.0, end - self._runtime.monotonic())):
                job.stop()  # it may have swallowed its cancellation
        if not self._changes.number:
            return
        # If these fail, the others hear nothing, or forget the number later.
        for step in self._publish_once, partial(self._store.leave, self._changes.number):
            with suppress(Exception):
                await self._runtime.within(_END_TIME, step)

    # -- Local changes. Any thread may call these ------------------------------------------------

    def changed(self, changes: Iterable[Change], /) -> bool:
        """Publish `changes` soon. Return False.

        But if a hook on remote changes has made them, notify this worker's clients of them, once
        all hooks have run, and return True.
        """
        if self._is_in_hook():
            for change in changes:
                self._from_hooks[change] = None
            self._runtime.call_soon(self._may_deliver.set)
            return True
        for change in changes:
            self._unsent[change] = None
        self._runtime.call_soon(self._collect)
        return False

    def elicitation_completed(self, elicitation_id: str, /) -> None:
        """Publish soon that a user has completed `elicitation_id`."""
        if not self._is_in_hook():
            self._elicitations[elicitation_id] = None
            self._runtime.call_soon(self._collect)

    def _is_in_hook(self) -> bool:
        hook = _calling_hook.get()
        # A task that a hook has started has a copy of its context, and may run for long. So may a
        # thread of a hook that was stopped: each worker has one, and would hear of the others'. A
        # hook of one server may also change another one.
        return (
            hook is not None
            and (hook.was_stopped or not hook.has_ended)
            and hook.server is self._server
        )

    def _collect(self) -> None:
        # Other threads may add changes meanwhile, so each step here has to be atomic.
        lists: dict[Any, None] = {}
        uris: dict[str, None] = {}
        elicitations: dict[str, None] = {}
        while self._unsent:
            change, _ = self._unsent.popitem()
            if change.list is not None:
                lists[change.list] = None
            elif change.uri is not None:
                uris[change.uri] = None
        while self._elicitations:
            elicitations[self._elicitations.popitem()[0]] = None  # the newest first
        self._changes.add(
            ChangesPublished(
                self._name, tuple(lists), tuple(uris), False, tuple(elicitations)[::-1]
            )
        )
        self._may_publish.set()

    # -- The loops -------------------------------------------------------------------------------

    async def _keep_running(self, loop: Callable[[], Awaitable[None]]) -> None:
        while not self._is_closing:
            try:
                await loop()
            except Exception as exc:  # noqa: BLE001 - of a service, or of a store's garbage
                self._reports.failed(_BUS, exc)
                await self._runtime.wait(self._never, _LOOP_PAUSE)

    async def _join_before_serving(self) -> None:
        """Join, and let hooks read what has changed during the lifespan."""
        try:
            await self._runtime.within(_START_TIME, self._join)
        except Exception as exc:  # noqa: BLE001 - it is tried again while the server is served
            self._failed("join", exc, 0)
            return
        heard = self._changes.take_heard()
        if heard is not None:
            await self._run_hooks(heard)
            # The server may be served at another address already.
            self._server.deliver_changes(self._take_from_hooks())

    async def _keep_number(self) -> None:
        """Join, if that isn't done or the number is lost, and keep the number."""
        while not self._is_closing:
            if not self._changes.number:
                await self._command("join", self._join)
                self._may_read.set()
                self._may_publish.set()
                self._may_deliver.set()
            await self._runtime.wait(self._never, _HEARTBEAT)
            await self._command("heartbeat", self._send_heartbeat)

    async def _join(self) -> None:
        sent_at = self._changes.position
        self._changes.join(await self._store.join(self._name), sent_at)
        if not self._has_joined and not self._is_closing:
            self._has_joined = True
            self._server.attach_bus(self)

    async def _send_heartbeat(self) -> None:
        sent_at = self._changes.position
        last = await self._store.heartbeat(self._changes.number)
        if last is not None:
            self._changes.receive_heartbeat(last, sent_at)
            self._may_deliver.set()
        else:
            self._changes.lose_number()
            self._reports.warn(
                "this worker had not reached the store of sessions for long, and its number is"
                " another worker's now: it joins again"
            )

    async def _read(self) -> None:
        while not self._is_closing:
            if not self._changes.number:
                await self._may_read.wait()
            elif self._changes.missed_since is not None:
                await self._command("missed", self._read_missed)
            else:
                began = self._runtime.monotonic()
                if not await self._command("read", self._read_once) and (
                    self._runtime.monotonic() - began < _READ_PAUSE
                ):
                    await self._runtime.wait(self._never, _READ_PAUSE)
            self._may_deliver.set()

    async def _read_once(self) -> bool:
        asked = self._changes.position
        return self._changes.receive(await self._store.read(asked), asked)

    async def _read_missed(self) -> None:
        since = self._changes.missed_since
        if since is not None:
            self._changes.receive_missed(await self._store.missed(self._name, since))

    async def _publish(self) -> None:
        while not self._is_closing:
            await self._may_publish.wait()
            while self._changes.number and self._changes.has_unpublished and not self._is_closing:
                await self._command("publish", self._publish_once)

    async def _publish_once(self) -> None:
        message = self._changes.start_publishing()
        if message is None:
            return
        try:
            await self._store.publish(self._changes.number, message)
        except InvalidWorkerMessage as exc:  # no outage: it would be refused each time
            self._changes.publishing_refused()
            self._reports.warn(f"a message to other workers is left out: {exc}")
            return
        except BaseException:
            self._changes.publishing_failed()
            raise
        self._changes.published()

    async def _deliver(self) -> None:
        while not self._is_closing:
            is_first = self._server.is_first_bus(self)
            if is_first and not self._was_first:
                # The bus that was the first one may have ended before it notified clients.
                self._changes.miss_all()
            self._was_first = is_first
            heard = self._changes.take_heard()
            if heard is None and not self._from_hooks and not self._is_hook_due():
                await self._may_deliver.wait()
                continue
            changed: list[Change] = []
            all_resources = False
            if heard is not None and is_first:
                # Nothing that a hook could declare anew delays these.
                self._server.deliver_changes((), elicitation_ids=heard.elicitations)
                changed = [*map(Change, heard.lists), *(Change(uri=uri) for uri in heard.uris)]
                all_resources = heard.all_uris
            await self._run_hooks(heard if changed or all_resources else None)
            changed += self._take_from_hooks()
            self._server.deliver_changes(changed, all_resources=all_resources)

    def _take_from_hooks(self) -> list[Change]:
        changed = []
        while self._from_hooks:
            changed.append(self._from_hooks.popitem()[0])
        return changed

    def _is_hook_due(self) -> bool:
        return any(self._hook_runs[key].has_ended for key in self._hooks_due)

    async def _run_hooks(self, heard: ChangesPublished | None) -> None:
        """Run the hooks, one after the other. Stop one that takes too long, and go on without it.

        It isn't waited for: it may be in a thread, which can't be stopped. Until it has ended it
        doesn't run again, and then once for all that was heard meanwhile.
        """
        for key, hook in self._hooks():
            if heard is not None:
                due = self._hooks_due.get(key, heard)
                self._hooks_due[key] = merged((due, heard), self._name)
            last = self._hook_runs.get(key)
            if last is not None and not last.has_ended:
                if heard is not None:
                    self._reports.warn(
                        f"{_HOOK} was cancelled and still runs: clients are notified without it"
                    )
            elif key in self._hooks_due:
                await self._run_hook(key, hook, self._hooks_due.pop(key))

    def _hooks(self) -> list[tuple[_HookKey, Callable[[Any], Any]]]:
        servers = [self._server, *self._server.mounted_servers()]
        return [
            ((server, index), hook)
            for server in servers
            for index, hook in enumerate(server.remote_change_hooks)
        ]

    async def _run_hook(
        self, key: _HookKey, hook: Callable[[Any], Any], due: ChangesPublished
    ) -> None:
        server = key[0]
        mounted = server is not self._server
        lifespan = lifespan_value(self._lifespan, server, mounted=mounted)
        change = RemoteChange(server, lifespan, due)
        job = _HookJob(partial(hook, change), self._runtime, self._server, self._may_deliver.set)
        self._hook_runs[key] = job
        self._runtime.start_job(job)
        if not await self._runtime.wait(job.ended, _HOOK_TIME):
            job.was_stopped = True
            job.stop()
            self._reports.warn(
                f"{_HOOK} took more than {_HOOK_TIME:g} s and is cancelled: clients are"
                " notified without it"
            )

    # -- Commands --------------------------------------------------------------------------------

    async def _command(self, name: str, function: Callable[[], Awaitable[T]]) -> T | None:
        """Await `function()`, which uses the store, again and again until it has not failed.

        Return None if the bus ends meanwhile.
        """
        while not self._is_closing:
            while pause := self._breaker.pause(name, self._runtime.monotonic()):
                await self._runtime.wait(self._never, pause)
            began = self._breaker.failures
            try:
                result = await self._runtime.within(_COMMAND_TIME, function)
            except Exception as exc:  # noqa: BLE001 - a store may raise anything
                self._failed(name, exc, began)
            else:
                self._breaker.succeeded(name)
                if self._logged_outage and not self._breaker.is_out:
                    self._logged_outage = False
                    self._runtime.warn("the store of sessions responds again")
                return result
        return None

    def _failed(self, name: str, exc: Exception, began: int) -> None:
        self._reports.failed(f"{name} of the store of sessions", exc)
        if self._breaker.failed(name, self._runtime.monotonic(), began):
            self._logged_outage |= self._reports.warn(
                "the store of sessions is out: clients of this worker go on, and hear of changes"
                " at other workers when it responds again"
            )


class _BusJob(Job):
    """A part of a bus in a task of its own. `ended` is set when the task has ended."""

    __slots__ = ("_runtime", "ended", "function", "has_ended")

    name = _BUS
    stops_again = True

    def __init__(self, function: Callable[[], Any], runtime: TaskRuntime) -> None:
        super().__init__()
        self.function = function
        self._runtime = runtime
        self.ended = runtime.new_event()
        self.has_ended = False

    async def run(self) -> None:
        outcome = self.function()
        if isawaitable(outcome):
            await outcome

    def done(self, result: Any) -> None:
        """Do nothing: nothing waits for a result."""

    def failed(self, exc: BaseException) -> None:
        if isinstance(exc, KeyboardInterrupt):
            raise exc  # it is meant for more than this task
        self._runtime.report_hook(self.name, exc)

    def dropped(self) -> None:
        self.has_ended = True
        self.ended.set()


class _HookJob(_BusJob):
    """One run of a hook of `server`. Its own changes of that server aren't published.

    `on_end` is called when it has ended. `was_stopped` is True if it took too long.
    """

    __slots__ = ("_on_end", "server", "was_stopped")

    name = _HOOK

    def __init__(
        self,
        function: Callable[[], Any],
        runtime: TaskRuntime,
        server: Server,
        on_end: Callable[[], object],
    ) -> None:
        super().__init__(function, runtime)
        self.server = server
        self.was_stopped = False
        self._on_end = on_end

    async def run(self) -> None:
        _calling_hook.set(self)  # this task's context ends with it
        await super().run()

    def dropped(self) -> None:
        super().dropped()
        self._on_end()
