"""Cancellation at every step of a scenario. Play it once and count the steps of all its tasks while
the part to cancel runs. Then play it again for each step, and cancel just before that step.

A scenario is a function of a `CancellationWorld`. The part to cancel is in `with world.cut():`,
once; the rest survives and observes. `play` plays it and then checks these invariants:

1. No exception but the cancellation, and nothing in the log. It takes no longer than a peer gets
   that does not read.
2. No task, descriptor, child or thread is left; every stream is closed; every handler has run its
   `finally`. Every `Connection` is closed and holds no request, call or event.
3. On the wire every message is complete, except the end of what was cut. No request was answered or
   cancelled twice. Each request that our client abandoned was cancelled, unless its stream was
   torn or the other end had closed. The same server then serves the next client as before.

Trio runs ready tasks in random order. The random generator is seeded, so that failures repeat.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
import trio.testing
from trio._core import _run

from mcp_core import Connection, State
from mcp_core.registry import Context, Server
from mcp_trio import _connect, connect, memory_pair
from mcp_trio.testing._leaks import LeakDetector

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.harness.jsonrpc import Message

__all__ = [
    "SEEDS_AND_STRIDES",
    "TOOLS",
    "CancellationWorld",
    "End",
    "Scenario",
    "inside",
    "lifespan",
    "made",
    "make",
    "play",
    "play_at_every_step",
    "roots",
]

_LAST_WORDS: Final = 0.2  # the time that a peer gets that does not read
_GIVEN_UP: Final = "notifications/cancelled"
# Requests that are not cancelled: as the first message, and later, when `server/discover` is a
# ping.
_OPENINGS: Final = {True: ("initialize", "server/discover"), False: ("initialize",)}


class _Counting(trio.abc.Instrument):
    """A counter of all steps while `scope` is set; it cancels that before step `at`."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.steps = 0
        self.time: float | None = None
        self.scope: trio.CancelScope | None = None
        self.tasks: set[trio.lowlevel.Task] = set()

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self.tasks.add(task)

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self.tasks.discard(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self.scope is not None:
            self.steps += 1
            if self.steps == self.at:
                self.time = trio.current_time()
                self.scope.cancel()


class _Complaints(logging.Handler):
    """The errors that our drivers log. A cancellation must not cause any."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        # A machine that stalls for 0.1 s makes a handler look slow.
        if "blocked all clients" not in text:
            self.texts.append(text)


class End(trio.abc.HalfCloseableStream):
    """One end of a memory pair, which records what is sent at it.

    `torn`: the last write is incomplete, so that half a message may be out. `left_first`: it was
    closed before the other end. `is_ours`: our client is here, and must cancel what it abandons.
    """

    other: End

    def __init__(self, stream: trio.abc.HalfCloseableStream) -> None:
        self.stream = stream
        self.sent = b""
        self.is_ours = self.torn = self.closed = self.left_first = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.torn, "something follows what may be half a message"
        self.sent += data
        try:
            await self.stream.send_all(data)
        except BaseException:
            self.torn = True
            raise

    async def wait_send_all_might_not_block(self) -> None:
        await self.stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self.stream.send_eof()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self.stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        if not self.closed:
            self.closed, self.left_first = True, not self.other.closed
        await self.stream.aclose()

    def check(self) -> None:
        """Check that no request sent here was answered twice, and abandoned ones cancelled."""
        request = {
            message["id"]: message["method"]
            for message in self._messages()
            if "method" in message and "id" in message
        }
        answered = [message["id"] for message in self.other._messages() if "method" not in message]
        given_up = [
            message["params"]["requestId"]
            for message in self._messages()
            if message.get("method") == _GIVEN_UP
        ]
        assert len(answered) == len(set(answered))
        assert len(given_up) == len(set(given_up))
        assert set(request) >= {*answered, *given_up} - {None}
        opening = {
            id for n, (id, method) in enumerate(request.items()) if method in _OPENINGS[n == 0]
        }
        if self.is_ours:
            assert not opening.intersection(given_up)
            if self.left_first and not self.torn:
                assert set(request) == {*opening, *answered, *given_up}

    def _messages(self) -> list[Message]:
        """Return the messages sent here, in order, including an incomplete one."""
        assert self.sent[-1:] in (b"", b"\n")
        return [
            message for line in self.sent.splitlines() if isinstance(message := _read(line), dict)
        ]


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None  # a scenario may send invalid JSON; our drivers are tested for it elsewhere


# -- Servers -------------------------------------------------------------------------------------


class _Inside:
    """A count of what has been entered and not left."""

    count = 0


@contextmanager
def inside() -> Iterator[None]:
    """Count a block that must be left again."""
    _Inside.count += 1
    try:
        yield
    finally:
        _Inside.count -= 1


def hello() -> str:
    """Greet."""
    return "hello"


async def wait() -> None:
    """Wait forever."""
    with inside():
        await trio.sleep_forever()


async def steps(context: Context, size: int = 0) -> str:
    """Report progress."""
    with inside():
        for step in range(5):
            await context.progress(step, message="x" * size)
    return "there"


async def nested(context: Context) -> str:
    """Do several things at once."""
    with inside():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 0.001)
            nursery.start_soon(context.progress, 1)
            with trio.move_on_after(0.001):
                await trio.sleep_forever()
            nursery.cancel_scope.cancel()
    return "there"


async def log_messages(context: Context) -> str:
    """Send log messages."""
    with inside():
        for step in range(3):
            await context.log("error", {"step": step}, logger="world")
            context.log_nowait("debug", "for nobody")
    return "logged"


async def ask(context: Context) -> int:
    """Request the roots of the client."""
    with inside():
        return len(await context.roots())


def change(context: Context) -> str:
    """Announce that the tools have changed."""
    context.server.changed(tools=True)
    return "changed"


TOOLS: Final = (hello, wait, steps, nested, log_messages, ask, change)


def make(**options: Any) -> Server:
    """Return a server with all of `TOOLS`, for a scenario that adds to it."""
    server = Server("world", **options)
    for tool in TOOLS:
        server.add_tool(tool)
    return server


made: Final = cache(make)  # not to be changed: making one takes longer than playing most scenarios


@asynccontextmanager
async def lifespan(server: Server) -> AsyncIterator[str]:
    """A lifespan that takes time, and has a task of its own."""
    with inside():
        await trio.lowlevel.checkpoint()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                yield "alive"
            finally:
                nursery.cancel_scope.cancel()
                with trio.CancelScope(shield=True):
                    await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()


async def roots() -> list[str]:
    """Return the roots of the client."""
    with inside():
        await trio.lowlevel.checkpoint()
    return ["file:///a", "file:///b"]


# -- Worlds --------------------------------------------------------------------------------------


class CancellationWorld:
    """The surroundings of a scenario, and what is left when it is over.

    `server` serves the next client at the end; a scenario may put another one there.
    """

    def __init__(self, counting: _Counting, alone: bool) -> None:
        self._counting = counting
        self._alone = alone
        self.connections: list[Connection] = []
        self.pairs: list[tuple[End, End]] = []
        self.server = made()
        _Inside.count = 0

    # -- What is cancelled -----------------------------------------------------------------------

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Mark the part to cancel. It may take the time for its last messages, and no more."""
        counting = self._counting
        with trio.CancelScope() as counting.scope:
            try:
                yield
            finally:
                counting.scope = None
        if self._alone and counting.time is not None:
            assert trio.current_time() - counting.time <= _LAST_WORDS

    @property
    def was_cut(self) -> bool:
        """True if it was cancelled before its end."""
        return self._counting.time is not None

    @contextmanager
    def excused(self) -> Iterator[None]:
        """Allow the exceptions of code that talks to the cancelled part. No others are allowed."""
        try:
            yield
        except (AssertionError, EOFError, LookupError, trio.BrokenResourceError):
            if not self.was_cut:
                raise

    # -- Wires -----------------------------------------------------------------------------------

    def pair(self) -> tuple[End, End]:
        """Return a memory pair whose messages are checked at the end."""
        one, other = memory_pair()
        ends = End(one), End(other)
        ends[0].other, ends[1].other = ends[1], ends[0]
        self.pairs.append(ends)
        return ends

    def pair_for_a_client(self) -> tuple[End, End]:
        """Return such a pair for our client, which uses the first end."""
        ends = self.pair()
        ends[0].is_ours = True
        return ends

    # -- What is left ----------------------------------------------------------------------------

    async def come_to_rest(self) -> None:
        """Wait until nothing happens any more.

        Then no open connection has requests, and no handler runs.
        """
        await trio.testing.wait_all_tasks_blocked()
        for conn in self.connections:
            stats = conn.stats()
            assert stats.in_flight == stats.waiting == stats.calls == stats.events == 0
            assert stats.queued == 0 or conn.state is State.CLOSED
        assert _Inside.count == 0

    def look_around(self) -> None:
        """Check at the end that everything has ended."""
        assert _Inside.count == 0
        assert self.server._listeners == {}
        for conn in self.connections:
            stats = conn.stats()
            assert conn.state is State.CLOSED
            assert stats.in_flight == stats.waiting == stats.calls == stats.events == 0
        for pair in self.pairs:
            for end in pair:
                assert end.closed
                end.check()


Scenario = Callable[[CancellationWorld], Awaitable[object]]


def play(scenario: Scenario, at: int | None, seed: int, *, alone: bool = True) -> int:
    """Play the scenario, cancel before step `at`, check the rest, and return the number of steps.

    With `alone`, only tasks take part, no threads or processes, so that no time needs to pass.
    """
    counting = _Counting(at)
    make_connection = Connection.__init__

    def noted(conn: Connection, *args: Any, **named: Any) -> None:
        make_connection(conn, *args, **named)
        world.connections.append(conn)

    complaints = _Complaints()

    async def main() -> None:
        before = set(counting.tasks)
        await scenario(world)
        assert counting.scope is None, "the scenario cuts nothing"
        assert counting.tasks == before
        world.look_around()
        async with connect(world.server) as client:
            assert (await client.call_tool("hello")).text == "hello"

    world = CancellationWorld(counting, alone)
    _run._r.seed(seed)
    with LeakDetector() as watch, pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.getLogger("mcp_trio"), "handlers", [complaints])
        patch.setattr(Connection, "__init__", noted)
        patch.setattr(_connect, "memory_pair", world.pair_for_a_client)
        trio.run(
            watch.watched(main),
            clock=trio.testing.MockClock(autojump_threshold=0) if alone else None,
            instruments=[counting],
        )
        assert watch.leaks() == []
    assert complaints.texts == []
    return counting.steps


# The default run cancels at every tenth step, `-m long` at every third, `-m slow` at each of them.
SEEDS_AND_STRIDES: Final = [
    (0, 10),
    pytest.param(0, 3, marks=pytest.mark.long),
    *(pytest.param(n, 1, marks=pytest.mark.slow) for n in (0, 1)),
]


def play_at_every_step(
    scenario: Scenario, seed: int, *, stride: int = 1, alone: bool = True
) -> None:
    """Play it to its end, and then once for each step, or for each `stride`-th one."""
    assert play(scenario, None, seed, alone=alone) > 1
    at = 1
    # Threads and processes do not always take the same number of steps.
    while play(scenario, at, seed, alone=alone) >= at:
        at += stride
