"""A worker: a real server in a process that can be killed, and its handlers.

The network between a client and a worker is an `Exchange`: a request to the ASGI application, whose
messages arrive after a delay and in order.
"""

from __future__ import annotations

from collections import deque
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import Limits
from mcp_core.auth import ApiKeys
from mcp_core.http import HttpOptions
from mcp_core.registry import Context, Server, TaskOptions, Tasks, UrlElicitationRequired
from mcp_core.runtime import Sources
from mcp_core.tasks import TaskLimits
from mcp_trio.http_server._asgi import AsgiApp
from tests.task_play.lab import Name

from .stores import LinkedBus, LinkedTaskStore, StoreLink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from mcp_core.runtime.sharing import RemoteChange, WorkerBus
    from mcp_core.runtime.tasks import TaskService

    from .world import World

__all__ = ["BRIEF", "KEYS", "LIMITS", "Exchange", "Reset", "SimWorker", "scope_of"]

# A lease that is over well before the world has to be at rest, and quotas that are reached.
LIMITS: Final = TaskLimits(lease=6.0, per_principal=6, message_interval=0.2)
KEYS: Final = {f"user{number}": f"{number}" * 32 for number in range(3)}
BRIEF: Final = 9.0  # seconds that a task of the tool "brief" is kept
_STATE_KEY: Final = {"shared": b"k" * 43}


class SimWorker:
    """A process in a `place`, the `life`-th one there.

    Attributes:
        link: its connection to the stores.
        clock_offset: what its wall clock is ahead.
        is_alive: False once it was killed or has ended.
        is_listening: True while it accepts connections.
        sessions_begun: how many sessions clients have begun here.
        requests_abandoned: how many requests may wait in sessions that clients have left.
    """

    def __init__(self, world: World, place: int, life: int) -> None:
        self.world = world
        self.place = place
        self.life = life
        self.link = StoreLink(world, self)
        self.clock_offset = 0.0
        self.is_alive = True
        self.is_listening = False
        self.sessions_begun = 0
        self.requests_abandoned = 0
        self.ended = trio.Event()
        self.tasks: TaskService | None = None  # once it listens
        self.shown: dict[str, int] = {}  # the version of what it has declared
        self.exchanges: dict[Exchange, None] = {}
        self.server = self._make_server()
        self._chance = world.chance(f"worker {self}")
        self._scope = trio.CancelScope()
        self._stop = trio.Event()
        self._nursery: trio.Nursery
        sources = Sources(self._chance.randbytes, self.wall_time)
        self.app: AsgiApp = AsgiApp(
            self.server,
            "/mcp",
            HttpOptions.of(),
            ApiKeys(KEYS),
            store=LinkedBus(self.link),
            sources=sources,
        )

    def __repr__(self) -> str:
        return f"w{self.place}.{self.life}"

    def wall_time(self) -> float:
        return self.world.wall_time() + self.clock_offset

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `stop` or `kill`."""
        try:
            with self._scope:
                async with trio.open_nursery() as self._nursery, self.app.lifespan():
                    self.tasks = self.app._driver.router.endpoints[0].state.token.tasks
                    self.is_listening = True
                    self.world.log(self, "listens")
                    task_status.started()
                    await self._stop.wait()
        finally:
            self.is_alive = self.is_listening = False
            self.world.log(self, "ended")
            self.ended.set()

    @property
    def has_untold_changes(self) -> bool:
        """True if the other workers don't know of all that has changed here."""
        return any(bus._changes.has_unpublished or bus._unsent for bus in self.buses)

    @property
    def lease(self) -> str:
        """Its name in the leases of tasks, "" before it listens."""
        return "" if self.tasks is None else self.tasks.worker

    @property
    def buses(self) -> list[WorkerBus]:
        """Its bus, while it is open."""
        return list(self.server._notified.buses)  # type: ignore[arg-type]

    def kill(self) -> None:
        """End the process: first all that it can reach is gone, then it is cancelled."""
        self.world.log(self, "killed")
        self.is_alive = self.is_listening = False
        self.link.cut()
        for exchange in list(self.exchanges):
            exchange.reset()
        self._scope.cancel()

    def stop(self) -> None:
        """Shut down in order."""
        self.is_listening = False
        self._stop.set()

    def accept(self, exchange: Exchange) -> None:
        """Serve a request."""
        self.exchanges[exchange] = None
        self._nursery.start_soon(exchange.serve)

    # -- What it serves ----------------------------------------------------------------------------

    def _make_server(self) -> Server:
        world = self.world
        tasks = Tasks(store=LinkedTaskStore(self.link), limits=LIMITS)
        server = Server(
            "simulated",
            limits=Limits(message=100_000),
            tasks=tasks,
            state_keys=_STATE_KEY,
            lifespan=self._lifespan,
        )

        @server.tool
        def echo(text: str) -> str:
            """Return the text."""
            return text

        @server.tool
        async def ask(context: Context) -> str:
            """Ask for a name."""
            answer = await context.elicit("Your name?", Name)
            return answer.data.name if answer.action == "accept" else answer.action

        @server.tool
        def visit(id: str) -> str:
            """Want the user to visit a page first."""
            raise UrlElicitationRequired("Sign in.", f"https://example.com/{id}", elicitation_id=id)

        async def work(context: Context, seconds: float) -> str:
            id = context.task.id if context.task else ""
            run = world.oracle.handler_began(self, id)
            await trio.sleep(seconds)
            world.oracle.handler_ended(self, id)
            return run

        async def wait(context: Context, seconds: float) -> None:
            world.oracle.handler_began(self, context.task.id if context.task else "")
            await trio.sleep_forever()

        async def interview(context: Context, seconds: float) -> str:
            id = context.task.id if context.task else ""
            run = world.oracle.handler_began(self, id)
            answer = await context.elicit("Your name?", Name)
            await trio.sleep(seconds)
            world.oracle.handler_ended(self, id)
            return f"{run} {answer.data.name if answer.action == 'accept' else answer.action}"

        for name, function, options in (
            ("once", work, TaskOptions()),
            ("again", work, TaskOptions(rerun=True)),
            ("asks_once", interview, TaskOptions()),
            ("asks_again", interview, TaskOptions(rerun=True)),
            ("endless", wait, TaskOptions(rerun=True)),
            ("brief", work, TaskOptions(rerun=True, ttl=BRIEF)),
        ):
            server.add_tool(function, name=name, description="Work.", task=options)
        server.on_remote_change(self._hear)
        server.add_resource("note://0", partial(self._read, "note://0"), name="note")
        return server

    def _read(self, uri: str) -> str:
        return str(self.world.truth[uri])

    async def _hear(self, change: RemoteChange[None]) -> None:
        self.world.log(self, "hears of", change)
        self.world.oracle.hook_began(self)
        await trio.sleep(self._chance.uniform(0.0, 0.01))
        if change.tools:
            self._declare("tools")

    @asynccontextmanager
    async def _lifespan(self, server: Server) -> AsyncIterator[None]:
        await trio.sleep(self._chance.uniform(0.0, 0.2))
        self._declare("tools")
        await trio.sleep(self._chance.uniform(0.0, 0.2))
        yield

    def change(self, what: str) -> None:
        """Tell of a change here. The others hear of it by the bus."""
        self.world.log(self, "changes", what, self.world.truth[what])
        self.world.oracle.changed(self)
        if what == "tools":
            self._declare(what)
        else:
            self.server.changed(resource=what)

    def visited(self, page: str) -> None:
        """Tell the client that its user has visited a page. It may be at another worker."""
        self.world.log(self, "knows of the visit of", page)
        self.world.oracle.changed(self)
        self.server.elicitation_complete(page)

    def _declare(self, what: str) -> None:
        """Declare what is true: a tool that is named after the version."""
        before, version = self.shown.get(what), self.world.truth[what]
        if before == version:
            return
        if before is not None:
            self.server.remove_tool(f"version{before}")
        self.shown[what] = version
        self.server.add_tool(lambda: "", name=f"version{version}", description="A version.")


class Reset(Exception):
    """The connection of an exchange is gone."""


class Exchange:
    """One HTTP exchange between a client and a worker.

    Args:
        world: where it is.
        worker: the one that the request goes to.
        chance: draws the delays.
        scope: the ASGI scope, without what is always the same.
        body: the request's.
    """

    def __init__(
        self, world: World, worker: SimWorker, chance: Any, scope: dict[str, Any], body: bytes
    ) -> None:
        self._world = world
        self.worker = worker
        self._chance = chance
        self._scope = scope
        self._incoming: deque[dict[str, Any]] = deque(
            ({"type": "http.request", "body": body, "more_body": False},)
        )
        self._gone = trio.Event()  # the client, for the worker
        self._is_cut = False
        self._sent: deque[tuple[float, dict[str, Any] | None]] = deque()
        self._arrived = trio.Event()
        self._last = 0.0

    # -- The worker's side -------------------------------------------------------------------------

    async def serve(self) -> None:
        try:
            await trio.sleep(self._delay())
            await self.worker.app(self._scope, self._receive, self._send)
        finally:
            self.worker.exchanges.pop(self, None)
            self._put(None)

    async def _receive(self) -> dict[str, Any]:
        if self._incoming:
            return self._incoming.popleft()
        await self._gone.wait()
        if not self.worker.is_alive:
            await trio.sleep_forever()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        if not self.worker.is_alive:
            await trio.sleep_forever()
        if self._gone.is_set():
            raise OSError("the client is gone")
        self._put(message)

    def _put(self, message: dict[str, Any] | None) -> None:
        self._last = max(self._last, trio.current_time() + self._delay())
        self._sent.append((self._last, message))
        self._arrived.set()

    def _delay(self) -> float:
        seconds: float = self._chance.uniform(0.0005, 0.02)
        return seconds

    # -- The client's side -------------------------------------------------------------------------

    async def next(self) -> dict[str, Any] | None:
        """Return the next message, or None at the end.

        Raises:
            Reset: the connection is gone.
        """
        while not self._sent:
            if self._is_cut:
                raise Reset
            self._arrived = trio.Event()
            await self._arrived.wait()
        at, message = self._sent[0]
        if at > trio.current_time():
            await trio.sleep_until(at)
        if self._is_cut:
            raise Reset
        self._sent.popleft()
        return message

    def reset(self) -> None:
        """Break the connection: both sides notice it, the worker some time later."""
        self._is_cut = True
        self._arrived.set()
        self.leave()

    def leave(self) -> None:
        """Disconnect as a client does that wants no more."""
        if self.worker.is_alive:
            self._world.nursery.start_soon(self._notice)

    async def _notice(self) -> None:
        await trio.sleep(self._delay())
        self._gone.set()


def scope_of(method: str, headers: Iterable[tuple[str, str]], address: str) -> dict[str, Any]:
    """Return the ASGI scope of a request."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.5"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "client": (address, 50_000),
    }
