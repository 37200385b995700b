"""Calls through our `Client`, for what the lean engine can't do: it answers the server's questions,
follows tasks, logs in, and speaks HTTP/2.

1. A program is one client, which all callers share. At a URL each caller has one of its own.
2. `tools/call` is `Client.call_tool`, so its latency ends with the final result: it includes all
   questions, and the task if the server runs it as one. Other methods are one request.
3. Nothing is taken from the client's cache.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from mcp_core import ConnectFailed, McpTrioError, PeerError, escape_text
from mcp_trio._connect import connect_stream
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.oracle.bench._process import GroupMeter, ListenerMeter, NoMeter
from mcp_trio.oracle.bench._turn import TargetGone

from ._callers import CallFailed, CoroutineLoad

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from mcp_trio._client import Client
    from mcp_trio._connect import ClientOptions
    from mcp_trio.oracle.bench._process import Meter
    from mcp_trio.oracle.bench._requests import PreparedCall
    from mcp_trio.oracle.bench._turn import TargetLoad
    from mcp_trio.oracle.bench.engine._load import Program
    from mcp_trio.streams._child import ChildProcess

    Connect = Callable[[], AbstractAsyncContextManager[Client]]

__all__ = ["open_client_at", "open_client_of", "start_client"]

_STDERR_LINES: Final = 5
_MAX_LINE: Final = 500  # characters
_CONNECTING: Final = 16  # clients that connect at a time
_TOOL_MEMBERS: Final = frozenset({"name", "arguments", "_meta", "task"})


class _ClientLoad(CoroutineLoad):
    """Calls through clients.

    Args:
        client: the first client.
        nursery: has the clients' and the subscriptions' tasks.
        meter: measures the target's processes.
        timeout: seconds for each call.

    Attributes:
        revision: the revision that the target speaks.
        server: its name and version, "" if it doesn't say.
        protocol: the protocol below MCP.
        capabilities: what it declares.
    """

    def __init__(self, client: Client, nursery: trio.Nursery, meter: Meter, timeout: float) -> None:
        super().__init__(meter, timeout)
        self.nursery = nursery
        self._watches: dict[tuple[Client, str], _Watch] = {}
        peer = client.peer
        self.revision = peer.dialect.version
        self.server = "" if peer.info is None else f"{peer.info.name} {peer.info.version}".strip()
        self.protocol = client.protocol
        self.capabilities: Mapping[str, Any] = msgspec.to_builtins(peer.capabilities)
        self._first = client

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send one request outside a turn, and return the response, maybe an error.

        Raises:
            TargetGone: the target ended.
            ConnectFailed: there is no response that is JSON, or none in time.
        """
        client = await self.client_of(0)
        try:
            result = await client.request(method, params, timeout=self.timeout)
        except PeerError as exc:
            return {"error": {"code": exc.code, "message": exc.message}}
        except McpTrioError as exc:
            self.require_alive(client, exc)
            raise ConnectFailed(f"no response to {method}: {exc}") from exc
        return {"result": _builtins(result)}

    async def call(self, number: int, call: PreparedCall, *, wants_result: bool) -> Any:
        """Make a call of caller `number`, and return the result as JSON values.

        Raises:
            TargetGone: the target ended, or can no longer be reached.
            CallFailed, McpTrioError: the call failed.
        """
        client = await self.client_of(number)
        try:
            watch = await self._watch(client, call.notified) if call.notified else None
            notified = None if watch is None else watch.notified
            result = await _send(client, call)
            if watch is not None and notified is not None:
                await watch.wait(notified)
        except McpTrioError as exc:
            self.require_alive(client, exc)
            raise
        return _builtins(result) if wants_result else None

    async def _watch(self, client: Client, uri: str) -> _Watch:
        """Return a client's subscription to a resource. It begins with the first call."""
        watch = self._watches.get((client, uri))
        if watch is None or watch.is_over:
            self._watches = {key: each for key, each in self._watches.items() if not each.is_over}
            watch = self._watches[client, uri] = _Watch(client, uri)
            await self.nursery.start(watch.run)
        return watch

    @abstractmethod
    async def client_of(self, number: int) -> Client:
        """Return the client of caller `number`.

        Raises:
            TargetGone: it can't be connected again.
        """

    @abstractmethod
    def require_alive(self, client: Client, error: McpTrioError) -> None:
        """Check after `error` that the target can still be called.

        Raises:
            TargetGone: it can't.
        """


class _ProgramLoad(_ClientLoad):
    """Calls to a program through one client."""

    def __init__(
        self,
        child: ChildProcess,
        client: Client,
        nursery: trio.Nursery,
        stderr: deque[str],
        timeout: float,
    ) -> None:
        super().__init__(client, nursery, GroupMeter(child.pid), timeout)
        self._child = child
        self._stderr = stderr

    async def open_callers(self, count: int) -> None:
        """All callers share the client."""

    async def client_of(self, number: int) -> Client:
        """Return the only client."""
        return self._first

    def require_alive(self, client: Client, error: McpTrioError) -> None:
        """Check that the program still runs and speaks.

        Raises:
            TargetGone: it has ended, or closed its stdout.
        """
        if client.is_closed:
            status = self._child.returncode
            lines = tuple(escape_text(line) for line in self._stderr)
            raise TargetGone(_first_line(error), status=status, stderr=lines) from error


class _AddressLoad(_ClientLoad):
    """Calls to a URL, through a client for each caller."""

    def __init__(
        self,
        connect: Connect,
        first: Client,
        nursery: trio.Nursery,
        meter: Meter,
        timeout: float,
    ) -> None:
        super().__init__(first, nursery, meter, timeout)
        self._connect = connect
        self._clients = {0: first}

    async def open_callers(self, count: int) -> None:
        """Connect a client for each caller that has none.

        Raises:
            ConnectFailed: one can't be connected.
        """
        limit = trio.CapacityLimiter(_CONNECTING)
        failures: list[ConnectFailed] = []

        async def add(number: int) -> None:
            async with limit:
                if not failures:
                    try:
                        self._clients[number] = await self._open()
                    except ConnectFailed as exc:
                        failures.append(exc)

        async with open_quiet_nursery(wait=True) as nursery:
            for number in range(count):
                if number not in self._clients:
                    nursery.start_soon(add, number)
        if failures:
            opened = f"{len(self._clients)} of {count} connections are open"
            raise ConnectFailed(f"{_first_line(failures[0])}; {opened}") from failures[0]

    async def _open(self) -> Client:
        return await start_client(self.nursery, self._connect, self.timeout)

    async def client_of(self, number: int) -> Client:
        """Return the client of a caller, a new one if the last has lost its connection.

        Raises:
            TargetGone: it can't be connected again.
        """
        client = self._clients[number]
        if client.is_closed:
            try:
                client = self._clients[number] = await self._open()
            except ConnectFailed as exc:
                raise TargetGone(_first_line(exc)) from exc
        return client

    def require_alive(self, client: Client, error: McpTrioError) -> None:
        """Check nothing: `client_of` connects again."""


class _Watch:
    """A client's subscription to one resource.

    Attributes:
        notified: set by the next notification, or by the subscription's end.
        is_over: whether the subscription has ended.
    """

    def __init__(self, client: Client, uri: str) -> None:
        self._client = client
        self._uri = uri
        self._failure: McpTrioError | None = None
        self.notified = trio.Event()
        self.is_over = False

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Subscribe, and take notifications until the subscription ends.

        Raises:
            CallFailed, McpTrioError: the server accepts no subscription.
        """
        is_subscribed = False
        try:
            async with self._client.listen(uris=[self._uri]) as changes:
                if not changes.honoured:
                    raise CallFailed("no subscription")
                is_subscribed = True
                task_status.started()
                async for _ in changes:
                    self.notified.set()
                    self.notified = trio.Event()
        except McpTrioError as exc:
            if not is_subscribed:
                raise
            self._failure = exc
        finally:
            self.is_over = True
            self.notified.set()

    async def wait(self, notified: trio.Event) -> None:
        """Wait for the notification that sets `notified`.

        Raises:
            CallFailed, McpTrioError: the subscription has ended before.
        """
        await notified.wait()
        if self.is_over and notified is self.notified:
            raise self._failure or CallFailed("subscription ended")


@asynccontextmanager
async def open_client_of(
    program: Program, options: ClientOptions, *, timeout: float
) -> AsyncIterator[TargetLoad]:
    """Start a program, connect a client to it, and yield its load.

    Args:
        program: the program.
        options: the client's options.
        timeout: seconds for the start, and for each call.

    Raises:
        ConnectFailed: it can't be started, or doesn't speak the protocol.
    """
    stderr: deque[str] = deque(maxlen=_STDERR_LINES)
    async with (
        program.spawn(lambda line: stderr.append(line[:_MAX_LINE])) as child,
        open_quiet_nursery() as nursery,
    ):
        connect = partial(connect_stream, child.stream, **options)
        try:
            client = await start_client(nursery, connect, timeout)
        except ConnectFailed as exc:
            await child.aclose()  # only now are the exit status and all of stderr known
            raise ConnectFailed(f"{exc}{child.describe_start()}") from exc
        yield _ProgramLoad(child, client, nursery, stderr, timeout)


@asynccontextmanager
async def open_client_at(
    connect: Connect, *, port: int | None, timeout: float
) -> AsyncIterator[TargetLoad]:
    """Connect a client to a server at a URL, and yield its load.

    Args:
        connect: connects a client. It is called again for each further caller.
        port: the server's port on this machine, None for one on another machine.
        timeout: seconds for each connection, and for each call.

    Raises:
        ConnectFailed: there is no connection.
    """
    meter: Meter = NoMeter() if port is None else ListenerMeter(port)
    async with open_quiet_nursery() as nursery:
        first = await start_client(nursery, connect, timeout)
        yield _AddressLoad(connect, first, nursery, meter, timeout)


async def start_client(nursery: trio.Nursery, connect: Connect, timeout: float) -> Client:
    """Connect a client that lives in a task of `nursery`, until that is cancelled.

    Raises:
        ConnectFailed: there is no connection, or none in time.
    """
    with trio.move_on_after(timeout):
        client: Client = await nursery.start(_keep, connect)
        return client
    raise ConnectFailed(f"no answer to the first requests within {timeout:g} s")


async def _keep(connect: Connect, task_status: trio.TaskStatus[Client]) -> None:
    async with connect() as client:
        task_status.started(client)
        await trio.sleep_forever()


async def _send(client: Client, call: PreparedCall) -> Any:
    """Make a call, and return its result.

    Raises:
        CallFailed: the tool failed.
        McpTrioError: there is no result.
    """
    params = call.params or {}
    if call.method != "tools/call" or not _TOOL_MEMBERS.issuperset(params):
        return await client.request(call.method, call.params, timeout=None)
    result = await client.call_tool(
        params["name"], params.get("arguments"), timeout=None, check_output="off"
    )
    if result.is_error:
        raise CallFailed("isError")
    return result


def _builtins(result: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(result))


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
