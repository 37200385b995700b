"""Several workers of one server in one event loop, each with a client at a wire, and their store.

`FaultySessionStore` does what a test sets: refuse, hang, be slow, return garbage, come back empty.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from mcp_core.registry import Context, Server
from mcp_core.runtime.sharing import MemoryStore, RemoteChange
from mcp_core.sharing import ChangesPublished, Position, SessionStoreError
from tests.harness import either
from tests.harness.jsonrpc import E
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from mcp_core.sharing import SessionStore

__all__ = ["FaultySessionStore", "StoreOfOneWorker", "Worker", "open_workers", "summary"]

ID: Final = "io.modelcontextprotocol/subscriptionId"
URI: Final = "x:1"


class FaultySessionStore(MemoryStore):
    """A store in memory with faults.

    Attributes:
        faults: by method, or by "" for all: an exception to raise, seconds to wait before the
            method, `hang` to wait without end, or any other value to return in place of its own.
        published: the message of each publish that has reached the store.
        calls: the names of all methods that were called.
    """

    hang = "hang"

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, Any] = {}
        self.published: list[ChangesPublished] = []
        self.calls: list[str] = []

    def empty(self) -> None:
        """Lose everything, as a server without persistence that was restarted."""
        self._epoch += 1
        self._count = 0
        self._messages.clear()
        self._size = 0
        self._heartbeats.clear()
        self._published.set()
        self._published = self._open_runtime().new_event()

    async def _act(self, name: str) -> Any:
        """Do as the fault of a method says, and return what to return, or None."""
        self.calls.append(name)
        fault = self.faults.get(name, self.faults.get(""))
        if isinstance(fault, BaseException):
            raise type(fault)(*fault.args)  # a new one: it gets a traceback
        if fault is self.hang:
            await either.sleep_forever()
        if isinstance(fault, float):
            await either.sleep(fault)
            return None
        return fault

    async def join(self, server: str, /) -> Any:
        return await self._act("join") or await super().join(server)

    async def heartbeat(self, worker: int, /) -> Any:
        return await self._act("heartbeat") or await super().heartbeat(worker)

    async def leave(self, worker: int, /) -> None:
        await self._act("leave")
        await super().leave(worker)

    async def publish(self, worker: int, message: ChangesPublished, /) -> Any:
        fault = await self._act("publish")
        self.published.append(message)
        return fault or await super().publish(worker, message)

    async def missed(self, server: str, since: Position, /) -> Any:
        return await self._act("missed") or await super().missed(server, since)

    async def read(self, position: Position, /) -> Any:
        fault = await self._act("read")
        batch = await super().read(position)
        if "" in self.faults:  # the outage has begun meanwhile
            await self._act("read")
        return fault or batch


class StoreOfOneWorker:
    """A view of a store for one worker. The methods in `hanging` hang for it alone."""

    needs_keys = False

    def __init__(self, store: MemoryStore) -> None:
        self.opened = store.opened
        self.hanging: set[str] = set()
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any) -> Any:
            if name in self.hanging:
                await either.sleep_forever()
            return await method(*args)

        return call


REFUSED: Final = SessionStoreError("the store refuses the connection")


class Worker:
    """One worker: its server, and a client of it at a wire.

    `hooked` has each `RemoteChange` that a hook got.
    """

    def __init__(self, index: int, version: str) -> None:
        self.index = index
        self.version = version
        self.hooked: list[RemoteChange[Any]] = []
        self.server = Server("shop")
        self.peer: Wire

        @self.server.tool
        def buy() -> str:
            """Buy."""
            return f"bought at {index}"

        @self.server.tool
        async def pay(context: Context) -> str:
            """Ask for a payment."""
            url = "https://example.com/pay"
            answer = await context.elicit_url("Please pay.", url, elicitation_id=f"p{index}")
            return answer.action

        @self.server.prompt
        def greet() -> str:
            """Greet."""
            return "Hello"

        @self.server.resource(URI)
        def one() -> str:
            """Return one."""
            return "1"

    def on_remote_change(self) -> None:
        """Declare a hook that keeps what it gets."""
        self.server.on_remote_change(self.hooked.append)

    async def listen(self) -> None:
        """Subscribe to all lists and one URI, as the revision does it."""
        if self.version != E:
            response = await self.peer.ask("sub", "resources/subscribe", {"uri": URI})
            assert response["result"] == {}
            return
        wanted = {
            **dict.fromkeys(
                ("toolsListChanged", "promptsListChanged", "resourcesListChanged"), True
            ),
            "resourceSubscriptions": [URI],
        }
        response = await self.peer.ask("listen", "subscriptions/listen", {"notifications": wanted})
        assert response["method"] == "notifications/subscriptions/acknowledged"

    async def hears(self, *wanted: str) -> None:
        """Check that the client is notified of exactly this, in any order."""
        heard = [summary(await self.peer.receive()) for _ in wanted]
        assert sorted(heard) == sorted(wanted)
        await self.is_silent()

    async def is_silent(self) -> None:
        await self.peer.expect_silence()

    async def drain(self) -> list[str]:
        """Return the methods of all notifications that have come, after a ping."""
        await self.peer.send(self.peer.calling("alive", "buy"))
        methods: list[str] = []
        while (message := await self.peer.receive()).get("id") != "alive":
            methods.append(message["method"])
        return methods

    async def tools(self) -> list[str]:
        response = await self.peer.ask("tools", "tools/list")
        return [tool["name"] for tool in response["result"]["tools"]]


def summary(message: Any) -> str:
    """Return a notification as its short name, with its URI or id."""
    params = message.get("params") or {}
    name = message["method"].removeprefix("notifications/")
    return " ".join([name, *(params[key] for key in ("uri", "elicitationId") if key in params)])


@asynccontextmanager
async def open_workers(
    versions: Sequence[str], store: SessionStore, prepare: Any = None
) -> AsyncIterator[list[Worker]]:
    """Serve one worker with a client of each version. `prepare` gets each before it is served."""
    async with AsyncExitStack() as opened:
        workers = []
        for index, version in enumerate(versions):
            worker = Worker(index, version)
            if prepare is not None:
                prepare(worker)
            await opened.enter_async_context(serve_worker(worker, store))
            workers.append(worker)
        yield workers


@asynccontextmanager
async def serve_worker(worker: Worker, store: SessionStore | None) -> AsyncIterator[Worker]:
    """Serve a worker, and connect its client, which listens."""
    async with either.open_server(worker.server, store) as served, either.open_quiet_nursery() as n:
        ours, theirs = either.memory_pair()
        worker.peer = Wire(ours, worker.version)
        n.start_soon(either.serve_conversation, served, theirs)
        await worker.peer.open_as_client(capabilities={"elicitation": {"url": {}}})
        await worker.listen()
        yield worker
        await ours.aclose()
        await either.wait_all_tasks_blocked()
