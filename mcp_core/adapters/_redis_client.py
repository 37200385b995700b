"""The client of Redis and Valkey of one deployment: connections, deadlines, scripts and errors.

1. coredis connects, authenticates and speaks the protocol. Its pool isn't used: a pool of coredis
   6.9 loses a place for ever with each connection that ends during a blocking command, or is
   cancelled in one, and waits without end when none of its 64 is left.
2. Commands of all tasks share one connection, since none of them waits for anything. A read that
   waits for messages has a connection for itself meanwhile.
3. Every command has a deadline: a server that hangs, or a network that drops everything, looks like
   one that is slow. After it the connection is given up, because its responses may never come.
4. No command is sent twice. Who gets an error doesn't know whether the command had its effect.
5. After three failures in a row commands fail at once, but for one each second. What fails
   together, such as all that was under way on one connection, is one failure.
6. A connection runs in a task of one runtime. When that leaves, others may still use it: new
   commands get another one, and it is closed when those under way have ended. That is no failure.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, suppress
from functools import lru_cache, partial
from hashlib import sha1
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from mcp_core.runtime.tasks._opening import check_event_loop
from mcp_core.runtime.tasks._reports import StoreReports
from mcp_core.sharing import StoreBreaker

from ._redis_errors import ACL_CURE, Explanation, RedisFailure, explained
from ._redis_url import RedisUrl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
    from ssl import SSLContext

    from anyio.abc import ByteStream
    from coredis import Redis
    from coredis.connection import BaseConnection

    from mcp_core._redis_calls import RedisCall
    from mcp_core.runtime.tasks._runtime import TaskRuntime

    AnyRedis: TypeAlias = Redis[Any]

__all__ = ["NOT_OPEN", "RedisClient", "StreamRead"]

Argument: TypeAlias = str | bytes | int

_DEADLINE: Final = 2.0  # seconds for a command, with the connection and the log-in if need be
_RATE: Final = 1_000_000  # bytes a second that the network carries: a large result gets more time
_END_TIME: Final = 2.0  # seconds that others' commands may still take on a connection to be closed
_SHUT_RDWR: Final = 2  # of the module `socket`
_COMMAND: Final = "command"  # all commands are one to the breaker
NOT_OPEN: Final = (
    "the store in Redis is not open in this process; pass it to a server, which opens it while it"
    " is served, or use it inside `async with store.opened(runtime)`"
)
_CLOSED: Final = "the store in Redis was closed meanwhile"
_SHARED_CLOSED: Final = (
    "the connection to Redis was closed meanwhile, since the server that had made it has ended, or"
    " Redis is a replica now"
)


class StreamRead(NamedTuple):
    """The outcome of a read of a stream.

    Attributes:
        before: the digest of the entry after which was read, None if it isn't there.
        last: the digest of the last of `entries`, or `before` without any.
        entries: the id and the message of each.
    """

    before: bytes | None = None
    last: bytes | None = None
    entries: Sequence[tuple[bytes, bytes]] = ()


class RedisClient:
    """One server of Redis or Valkey, for the stores of one deployment.

    It has connections while it is entered, and may be entered several times in one event loop. It
    may be made before the process forks, and entered in each child. What was entered before a fork
    isn't open in the child.

    Args:
        url_or_client: a URL, or a `coredis.Redis` that the caller made. The client's settings are
            used, and never its connections: it need not be entered, unless it finds its server by
            Sentinel.
        name: the deployment's name, for texts.

    Raises:
        ValueError: the URL isn't one of Redis. The text has no credentials.
        TypeError: it is neither a URL nor such a client, or a client of a cluster.
    """

    def __init__(self, url_or_client: str | AnyRedis, name: str) -> None:
        self._url = RedisUrl.parse(url_or_client) if isinstance(url_or_client, str) else None
        self._pool: Any = None if self._url else _pool_of(url_or_client)
        self._name = name
        self._runtimes: list[TaskRuntime] = []
        self._process = 0  # that has entered it
        self._commands: _RedisConnection | None = None
        self._idle_readers: list[_RedisConnection] = []
        self._connections: set[_RedisConnection] = set()  # all that have not ended
        self._tls: SSLContext | None = None
        self._breaker = StoreBreaker()
        self._cause = ""  # of the last failure
        self._checked = False  # for risks, since it was opened
        self._logged_outage = False  # to the log
        self._reports: StoreReports  # of the first runtime that has opened it

    def __repr__(self) -> str:
        return f"RedisClient({self.address!r}, name={self._name!r})"

    @property
    def address(self) -> str:
        """Where the server is, without credentials."""
        if self._url is not None:
            return self._url.shown
        service = getattr(self._pool, "service_name", None)  # of Sentinel
        return str(service or self._pool.location or "a client's address")

    @property
    def is_open(self) -> bool:
        """Whether it is entered in this process."""
        return bool(self._runtimes) and self._process == os.getpid()

    @property
    def runtime(self) -> TaskRuntime:
        """The runtime that entered it first, and still has.

        Raises:
            RuntimeError: it isn't open in this process.
        """
        if not self.is_open:
            raise RuntimeError(NOT_OPEN)
        return self._runtimes[0]

    @asynccontextmanager
    async def opened(self, runtime: TaskRuntime, /) -> AsyncIterator[RedisClient]:
        """Return the context in which the client may be used. Nothing is connected by it.

        Raises:
            ImportError: coredis isn't installed.
            RuntimeError: it is entered in another event loop of this process.
        """
        _check_coredis()
        process = os.getpid()
        if self._process != process:
            # After a fork these are the connections of the parent, which still uses them.
            self._process = process
            self._runtimes = []
            self._forget_connections()
        check_event_loop(runtime, self._runtimes, self)
        if not self._runtimes:
            self._checked = self._logged_outage = False
            self._breaker = StoreBreaker()
            self._reports = StoreReports(runtime)
        self._runtimes.append(runtime)
        try:
            yield self
        finally:
            if self._process == process == os.getpid():
                self._runtimes.remove(runtime)
                if runtime not in self._runtimes:
                    await self._end_connections(runtime)

    async def check_server(
        self, probe: RedisCall, commands: Sequence[Sequence[Argument]] = ()
    ) -> None:
        """Find out at the start what would fail later. What loses data gets a warning.

        Args:
            probe: a script that returns the names of commands that are forbidden.
            commands: harmless ones, outside of scripts.

        Raises:
            RedisFailure: the server refuses what is needed, and waiting won't help. An outage is
                logged instead.
        """
        try:
            forbidden = await self.run(probe)
            await self.pipeline(commands)
        except RedisFailure as exc:
            if exc.is_final:
                raise
            self.runtime.warn(f"{exc}. The server starts without it")
            return
        if forbidden:
            names = ", ".join(name.decode(errors="replace") for name in forbidden)
            raise RedisFailure(
                f"Redis at {self.address}: the ACL of its user forbids what workers need: {names}."
                f" {ACL_CURE}",
                is_final=True,
            )
        if not self._checked:
            self._checked = True
            for problem in await self._find_risks():
                self.runtime.warn(f"Redis at {self.address} {problem}")

    async def _find_risks(self) -> list[str]:
        try:
            text = await self.execute("INFO")
        except RedisFailure:
            return []  # its ACL may forbid that
        settings = dict(
            line.split(":", 1)
            for line in bytes(text).decode(errors="replace").split("\r\n")
            if ":" in line
        )
        policy = settings.get("maxmemory_policy", "noeviction")
        problems = []
        if policy != "noeviction" and settings.get("maxmemory", "0") != "0":
            problems.append(
                f"removes keys when its memory is full (maxmemory-policy {policy}): tasks and"
                " changes may be lost. Set maxmemory-policy noeviction, or use a server of its own"
            )
        if settings.get("aof_enabled", "1") == "0":
            problems.append(
                "keeps nothing on disk at once (appendonly no): a restart loses tasks and changes"
                " since its last save. Set appendonly yes if they matter"
            )
        return problems

    async def run(self, call: RedisCall, /) -> Any:
        """Run a script, and return its response. The server keeps scripts by their digests.

        Raises:
            RedisFailure: it failed, or has had no response within 2 s, and a second more for each
                megabyte that it sends.
            RuntimeError: the client isn't open.
        """
        size = sum(map(len, call.arguments))
        return await self._guarded(partial(self._run_script, call), size)

    async def execute(self, name: str, *arguments: Argument) -> Any:
        """Send one command that doesn't block, and return its response, with texts as bytes.

        It raises what `run` does.
        """
        return (await self.pipeline([(name, *arguments)]))[0]

    async def pipeline(self, commands: Sequence[Sequence[Argument]], /) -> list[Any]:
        """Send commands at once, and return their responses in order. No transaction is made of it.

        It raises what `run` does, for the first command that failed.
        """
        replies: list[Any] = await self._guarded(partial(self._send, commands))
        return replies

    async def read(self, stream: str, after: str, *, seconds: float, size: int = 100) -> StreamRead:
        """Return up to `size` entries of `stream` after the id `after`.

        Wait up to `seconds` for the first one; then there are none.

        It raises what `run` does, where the deadline is 2 s after `seconds`.
        """
        import anyio

        began = self._check_breaker()
        connection = self._take_reader()
        done = False
        wait = round(seconds * 1000)
        # By one connection, since another one may lead to another server.
        commands: list[Sequence[Argument]] = [
            ("XRANGE", stream, after, after),
            ("XREAD", "COUNT", size, "BLOCK", wait, "STREAMS", stream, after),
        ]
        try:
            with anyio.move_on_after(seconds + _DEADLINE):
                link = await connection.usable_link()
                present, reply = await self._send(commands, link)
                done = True
        except Exception as exc:  # noqa: BLE001 - coredis and what is below it raise anything
            if connection.is_retired and self.is_open:
                return StreamRead()  # another connection goes on
            raise self._failed(exc, connection, began) from None
        finally:
            if done and not connection.is_retired:
                self._idle_readers.append(connection)
            else:
                connection.close()
        if not done:
            raise self._note(_hangs(_DEADLINE), began)
        self._succeeded()
        return _stream_read(present, reply, stream)

    # -- Commands --------------------------------------------------------------------------------

    async def _guarded(
        self, send: Callable[[BaseConnection], Awaitable[Any]], size: int = 0
    ) -> Any:
        """Await `send` with the connection of commands. It sends about `size` bytes."""
        import anyio

        began = self._check_breaker()
        connection = self._commands
        if connection is None or connection.is_over:
            connection = self._commands = self._new_connection()
        connection.start_use(size)
        # What others send there comes first.
        seconds = _DEADLINE + connection.sending / _RATE
        try:
            with anyio.move_on_after(seconds):
                result = await send(await connection.usable_link())
                self._succeeded()
                return result
        except Exception as exc:  # noqa: BLE001 - as above
            raise self._failed(exc, connection, began) from None
        finally:
            connection.end_use(size)
        connection.hangs = True
        connection.close()
        if not self.is_open:
            raise RedisFailure(_CLOSED)
        raise self._note(_hangs(seconds), began)

    async def _run_script(self, call: RedisCall, link: BaseConnection) -> Any:
        keys: list[Argument] = [len(call.keys), *call.keys, *call.arguments]
        try:
            return (await self._send([("EVALSHA", _digest(call.script), *keys)], link))[0]
        except Exception as exc:
            if type(exc).__name__ != "NoScriptError":
                raise
        return (await self._send([("EVAL", call.script, *keys)], link))[0]

    async def _send(
        self, commands: Sequence[Sequence[Argument]], link: BaseConnection
    ) -> list[Any]:
        requests = [
            link.create_request(str(name).encode(), *rest, decode=False) for name, *rest in commands
        ]
        return [await request for request in requests]

    def _check_breaker(self) -> int:
        """Return the number of failures before the command that begins now."""
        if not self.is_open:
            raise RuntimeError(NOT_OPEN)
        if self._breaker.is_out and self._breaker.pause(_COMMAND, self.runtime.monotonic()):
            raise RedisFailure(self._cause)
        return self._breaker.failures

    def _succeeded(self) -> None:
        self._breaker.succeeded(_COMMAND)
        if self._logged_outage and self.is_open:
            self._logged_outage = False
            self.runtime.warn(f"Redis at {self.address} responds again")

    def _failed(self, exc: Exception, connection: _RedisConnection, began: int) -> Exception:
        """Return what to raise for `exc`, which a command by `connection` raised."""
        if not self.is_open:
            return RedisFailure(_CLOSED)
        # Another command has waited for longer than this one.
        explanation = _hangs(_DEADLINE) if connection.hangs else explained(exc)
        if connection.is_retired and connection.is_over:
            return RedisFailure(_SHARED_CLOSED)
        if explanation.reconnects:
            for each in list(self._connections):
                self._retire(each)
        return self._note(explanation, began)

    def _note(self, explanation: Explanation, began: int) -> RedisFailure:
        text = self._without_secrets(f"Redis at {self.address}: {explanation.text}")
        if not explanation.is_outage:
            self._succeeded()
        else:
            self._cause = text
            if self._breaker.failed(_COMMAND, self.runtime.monotonic(), began):
                line = f"{text}. It is tried again once a second"
                self._logged_outage |= self._reports.warn(line)
        return RedisFailure(text, is_final=explanation.is_final)

    def _without_secrets(self, text: str) -> str:
        password = self._url.password if self._url else self._pool.connection_kwargs.get("password")
        return text.replace(password, "...") if password else text

    # -- Connections -----------------------------------------------------------------------------

    def _new_connection(self, *, is_reader: bool = False) -> _RedisConnection:
        connection = _RedisConnection(self.runtime, is_reader=is_reader)
        self._connections.add(connection)
        self.runtime.start_soon(partial(self._run_connection, connection))
        return connection

    async def _run_connection(self, connection: _RedisConnection) -> None:
        try:
            await connection.run(self._make_link)
        finally:
            self._connections.discard(connection)

    def _take_reader(self) -> _RedisConnection:
        connection = None
        while self._idle_readers and (connection is None or connection.is_over):
            connection = self._idle_readers.pop()
        if connection is None or connection.is_over:
            connection = self._new_connection(is_reader=True)
        return connection

    def _retire(self, connection: _RedisConnection) -> None:
        """Let no new command use it. It is closed when those under way have ended.

        A read isn't waited for: it goes on with another connection.
        """
        if connection is self._commands:
            self._commands = None
        if connection in self._idle_readers:
            self._idle_readers.remove(connection)
        connection.retire()

    async def _end_connections(self, runtime: TaskRuntime) -> None:
        """Close those that run in tasks of `runtime`, within some seconds."""
        mine = [each for each in self._connections if each.runtime is runtime]
        for each in mine:
            self._retire(each)
        if mine:
            await runtime.shielded(partial(_wait_for, mine, runtime))
        for each in mine:
            each.close()

    def _forget_connections(self) -> None:
        self._commands = None
        self._idle_readers = []
        self._connections = set()

    async def _make_link(self) -> BaseConnection:
        if self._url is not None:
            if self._url.tls and self._tls is None:
                self._tls = _tls_context(self._url)  # it reads all certificates of the system
            return _link_of_url(self._url, self._tls)
        pool = self._pool
        arguments: tuple[Any, ...]
        if hasattr(pool, "service_name"):
            location = await pool.get_primary_location()
            arguments = (location, pool.service_name, pool.is_primary)
        else:
            arguments = (pool.location,)
        # Times after which coredis would give up a read that waits.
        settings = pool.connection_kwargs | {"stream_timeout": None, "max_idle_time": None}
        link: BaseConnection = pool.connection_class(*arguments, **settings)
        return link


class _RedisConnection:
    """A connection, and the background task that it runs in. It is used once.

    Attributes:
        runtime: has the task.
        hangs: whether it was closed because a command had no response.
        is_retired: whether no new command may use it, because it is to be closed.
        uses: how many commands are under way.
        sending: their bytes.
        ended: set when its task has ended.
    """

    def __init__(self, runtime: TaskRuntime, *, is_reader: bool = False) -> None:
        import anyio

        self.runtime = runtime
        self.hangs = self.is_retired = False
        self.uses = self.sending = 0
        self.ended = runtime.new_event()
        self._is_reader = is_reader
        # A server that is cancelled still publishes and gives its number back. `opened` ends this.
        self._scope = anyio.CancelScope(shield=True)
        self._ready = runtime.new_event()
        self._link: BaseConnection | None = None
        self._error: Exception | None = None
        self._started = False
        self._is_closed = False

    @property
    def is_over(self) -> bool:
        """Whether it is lost, closed, or could not be made."""
        # A connection that its peer has closed ends a little later.
        lost = self._started and self._link is not None and not self._link.usable
        return lost or self._is_closed

    async def run(self, make: Callable[[], Awaitable[BaseConnection]]) -> None:
        """Connect, and stay until the connection is lost or `close` is called."""
        try:
            with self._scope:
                self._link = await make()
                # It calls `started`, as a task that a task group starts.
                await self._link.run(task_status=self)
        except Exception as exc:  # noqa: BLE001 - each task that waits for it raises it
            self._error = exc
        finally:
            self._is_closed = True
            self._ready.set()
            _close_buffers(self._link)
            self.ended.set()

    def started(self, value: object = None) -> None:
        self._started = True
        self._ready.set()

    async def usable_link(self) -> BaseConnection:
        """Wait until the connection is made, and return it."""
        await self._ready.wait()
        if self._error is not None:
            raise self._error
        if self._link is None or self.is_over:
            raise ConnectionError("the connection was closed")
        return self._link

    def start_use(self, size: int) -> None:
        """Take note of a command of about `size` bytes. Call `end_use` with the same."""
        self.uses += 1
        self.sending += size

    def end_use(self, size: int) -> None:
        self.uses -= 1
        self.sending -= size
        self._close_if_unused()

    def retire(self) -> None:
        """Close it when no command is under way. A read doesn't count: it takes long."""
        self.is_retired = True
        if self._is_reader:
            self.close()
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        if self.is_retired and not self.uses:
            self.close()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        stream = None if self._link is None else self._link.stream
        if stream is None or self._started:
            self._scope.cancel()
        else:
            # During the log-in coredis would log a cancellation as an error, with a traceback.
            _shut_down(stream)


async def _wait_for(connections: Iterable[_RedisConnection], runtime: TaskRuntime) -> None:
    """Wait until all have ended, for some seconds at most."""
    end = runtime.monotonic() + _END_TIME
    for each in connections:
        await runtime.wait(each.ended, max(0.0, end - runtime.monotonic()))


def _shut_down(stream: ByteStream) -> None:
    """Let both directions of a stream end."""
    from anyio.abc import SocketAttribute

    raw: Any = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - not Django's
    with suppress(OSError):
        raw.shutdown(_SHUT_RDWR)


def _close_buffers(link: BaseConnection | None) -> None:
    """Close what coredis leaves open if it cannot connect: Python would warn of it."""
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    for each in vars(link).values() if link is not None else ():
        if isinstance(each, MemoryObjectReceiveStream | MemoryObjectSendStream):
            each.close()


def _stream_read(present: Any, reply: Any, stream: str) -> StreamRead:
    """Return what the replies to XRANGE and XREAD say. XREAD's is None if it waited in vain.

    An entry of others, without our field, has an empty message.
    """
    before = _mark(present[-1][1]) if present else None
    if not reply:
        return StreamRead(before, before)
    found = []
    for id, fields in reply[stream.encode()]:
        pairs = dict(zip(fields[::2], fields[1::2], strict=False))
        found.append((id, pairs.get(b"m", b"")))
    return StreamRead(before, _mark(fields), found)


def _mark(fields: Sequence[bytes]) -> bytes:
    return sha1(b"\0".join(fields), usedforsecurity=False).digest()


@lru_cache(64)
def _digest(script: str) -> str:
    return sha1(script.encode(), usedforsecurity=False).hexdigest()  # what EVALSHA names it by


def _hangs(seconds: float) -> Explanation:
    return Explanation(
        f"it didn't respond within {seconds:.2g} s: it hangs, or the network to it is down",
        is_outage=True,
    )


def _tls_context(url: RedisUrl) -> SSLContext:
    import ssl

    # coredis itself would not compare the name in the certificate.
    context = ssl.create_default_context(cafile=url.ca_file)
    if url.certificate is not None:
        context.load_cert_chain(url.certificate, url.key)
    return context


def _link_of_url(url: RedisUrl, context: SSLContext | None) -> BaseConnection:
    from coredis.connection import (
        TCPConnection,
        TCPLocation,
        UnixDomainSocketConnection,
        UnixDomainSocketLocation,
    )

    settings: dict[str, Any] = {
        "db": url.database,
        "username": url.user,
        "password": url.password,
        "connect_timeout": _DEADLINE,
    }
    if url.path:
        return UnixDomainSocketConnection(UnixDomainSocketLocation(url.path), **settings)
    if context is not None:
        settings["ssl_context"] = context
    return TCPConnection(TCPLocation(url.host, url.port), **settings)


def _pool_of(client: object) -> Any:
    pool: Any = getattr(client, "connection_pool", None)
    if not hasattr(pool, "connection_kwargs") or not hasattr(pool, "connection_class"):
        raise TypeError(f"a URL or a coredis.Redis is needed, not {type(client).__name__}")
    if "Cluster" in type(pool).__name__:
        raise TypeError(
            "a client of a cluster cannot be used: one node has all keys of a deployment. Pass a"
            " coredis.Redis, or the URL, of that node"
        )
    if pool.connection_kwargs.get("noreply"):
        raise TypeError("a coredis.Redis with noreply=True cannot be used: it hears no response")
    return pool


def _check_coredis() -> None:
    try:
        import coredis  # noqa: F401 - loaded here, where its absence has a cure
    except ImportError as exc:
        problem = "a store in Redis or Valkey needs coredis: pip install 'mcp-trio[redis]'"
        raise ImportError(problem, name="coredis") from exc
