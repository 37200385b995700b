"""Servers of a host that a test plays in memory: their lists, their faults, and their attempts.

On a clock that jumps, as that of `each_driver`, the delays of the host pass at once, and their
lengths are exact.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from mcp_core.runtime.host import ServerSource
from tests.harness import either
from tests.harness.jsonrpc import D, E
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from mcp_core.drivers import ClientConfigOptions
    from mcp_core.host import ServerLaunch, ServerState, ServerStatus
    from mcp_core.runtime import AbstractClient
    from mcp_core.runtime.host import AbstractHost, ClientConnection, HostChange, HostChanges

    Message = dict[str, Any]
    Answer = Callable[[Message], Awaitable[None]]

__all__ = ["Host", "PlayedServer", "PlayedSource", "reached", "states_of", "tool", "usable"]

_ID = "io.modelcontextprotocol/subscriptionId"
_LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
_METHOD_NOT_FOUND = -32601


def Host(servers: Any, **options: Any) -> Any:  # noqa: N802  the drivers' name
    """Create a host of the running driver."""
    return either.package().Host(servers, **options)


def tool(name: str, description: str = "Does it.", **more: Any) -> Message:
    """Return the definition of a tool that only reads."""
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        **more,
    }


class _Peer(Wire):
    """A peer that several tasks may send with."""

    def __init__(self, stream: Any, version: str) -> None:
        super().__init__(stream, version)
        self._lock = trio.Lock() if either.on_trio() else asyncio.Lock()

    async def send(self, *messages: Message | list[Any] | str | bytes) -> None:
        async with self._lock:
            await super().send(*messages)


class PlayedServer:
    """A server in the revision `version` that offers `lists`, and answers as the test says.

    Attributes:
        capabilities: as in the handshake. Every list announces its changes at first.
        lists: the entries, by the member of the result: `tools`, `prompts`, `resources`,
            `resourceTemplates`.
        answers: functions that answer a method in place of this class. Each gets the request.
        received: how often each method has arrived.
        peer: the conversation, once there is one.
    """

    def __init__(self, *tools: Message, version: str = D, **lists: list[Message]) -> None:
        self.version = version
        self.lists: dict[str, list[Message]] = {"tools": [*tools], **lists}
        self.capabilities: Message = {"tools": {"listChanged": True}}
        for name in "prompts", "resources":
            if name in lists:
                self.capabilities[name] = {"listChanged": True}
        self.instructions = ""
        self.answers: dict[str, Answer] = {}
        self.received: Counter[str] = Counter()
        self.peer: Wire
        self._subscriptions: list[Any] = []

    async def serve(self, stream: Any) -> None:
        """Serve one conversation, until its stream ends."""
        self.peer = _Peer(stream, self.version)
        self._subscriptions = []
        try:
            async with either.open_nursery() as nursery:
                await self._open()
                async for message in self.peer:
                    self.received[message.get("method", "")] += 1
                    nursery.start_soon(self._answer, message)
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError, ConnectionError):
            pass

    async def _open(self) -> None:
        await self.peer.open_as_server(self.capabilities)

    async def _answer(self, message: Message) -> None:
        method = message.get("method", "")
        if method in self.answers:
            await self.answers[method](message)
        elif method in _LISTS:
            member = _LISTS[method]
            more = {"ttlMs": 0, "cacheScope": "private"} if self.version == E else {}
            await self.peer.answer(message, {member: self.lists.get(member, []), **more})
        elif method == "tools/call":
            await self.peer.answer(message, {"content": [{"type": "text", "text": "done"}]})
        elif method == "subscriptions/listen":
            await self.acknowledge(message)
        elif "id" in message and "method" in message:
            await self.peer.send_error(message, _METHOD_NOT_FOUND, "unknown")

    async def acknowledge(self, request: Message) -> None:
        """Begin a subscription of 2026-07-28."""
        self._subscriptions.append(request["id"])
        wanted = request["params"]["notifications"]
        await self._notify(request["id"], "subscriptions/acknowledged", notifications=wanted)

    async def announce(self, what: str = "tools") -> None:
        """Notify the client that the list `what` has changed."""
        for id in self._subscriptions if self.version == E else [None]:
            await self._notify(id, f"{what}/list_changed")

    async def _notify(self, id: Any, what: str, **params: Any) -> None:
        meta = {} if id is None else {"_meta": {_ID: id}}
        await self.peer.notify(f"notifications/{what}", params | meta)

    async def change(self, *tools: Message) -> None:
        """Replace the tools, and announce it."""
        self.lists["tools"] = [*tools]
        await self.announce()

    async def end_subscriptions(self) -> None:
        """End each subscription in an orderly way, as a server does that is about to exit."""
        for id in self._subscriptions:
            await self.peer.answer({"id": id}, {"_meta": {_ID: id}})
        self._subscriptions.clear()

    async def die(self) -> None:
        """End the conversation, as the end of a process does."""
        await self.peer.aclose()


class PlayedSource(ServerSource):
    """A source of `server`. Attempt number n fails with entry n of `failures`, unless it is None.

    Attributes:
        attempts: when each attempt began.
        closed: when each attempt ended completely.
        closing_takes: seconds that a closed connection takes to be gone.
    """

    def __init__(
        self,
        name: str = "played",
        server: PlayedServer | None = None,
        *,
        failures: list[BaseException | None] | None = None,
    ) -> None:
        self.name = name
        self.server = server or PlayedServer(tool("look"))
        self.failures = failures or []
        self.attempts: list[float] = []
        self.closed: list[float] = []
        self.closing_takes = 0.0
        self.connecting_takes = 0.0

    @property
    def delays(self) -> list[float]:
        """The seconds from the end of each attempt to the begin of the next one."""
        return [
            round(begun - ended, 3)
            for ended, begun in zip(self.closed, self.attempts[1:], strict=False)
        ]

    def connect(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> ClientConnection:
        return self._connect(options)

    @asynccontextmanager
    async def _connect(self, options: ClientConfigOptions) -> AsyncIterator[AbstractClient]:
        number = len(self.attempts)
        self.attempts.append(either.current_time())
        try:
            await either.sleep(self.connecting_takes)
            failure = self.failures[number] if number < len(self.failures) else None
            if failure is not None:
                raise failure
            ours, theirs = either.memory_pair()
            async with either.open_quiet_nursery() as nursery:
                nursery.start_soon(self.server.serve, theirs)
                options["versions"] = [self.server.version]
                async with either.connect_stream(ours, **options) as client:
                    yield client
        finally:
            await either.shielded(either.sleep(self.closing_takes))
            self.closed.append(either.current_time())

    def same_as(self, other: Any) -> bool:
        return isinstance(other, PlayedSource) and other.server is self.server


async def reached(host: AbstractHost, state: ServerState, server: str = "played") -> ServerStatus:
    """Wait until `server` of `host` is in `state`, and return its status."""
    async with host.changes() as changes:
        while host.status()[server].state != state:
            await anext(changes)
    return host.status()[server]


async def usable(host: AbstractHost, server: str = "played") -> None:
    """Wait until the tools of `server` of `host` can be called."""
    async with host.changes() as changes:
        while not host._servers.find(server).is_usable:
            await anext(changes)


def states_of(changes: HostChanges) -> list[tuple[str, str]]:
    """Return the server and the state of each transition that was not read yet."""
    found: list[HostChange] = list(changes._unread)
    changes._unread.clear()
    return [(each.server, each.status.state) for each in found if each.kind == "status"]
