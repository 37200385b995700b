"""A server in memory as a target of the fuzzer, for tests without programs."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import MockClock

from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz._session import TargetSession
from mcp_trio.oracle.fuzz._shared_trace import new_header
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.play._player import Player

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mcp_core.trace import TraceHeader
    from mcp_trio.oracle.fuzz._case import Case

OLD, NEW = "2025-11-25", "2026-07-28"
BATCHED = "2025-03-26"
INFO = {"name": "small", "version": "1"}
META = "io.modelcontextprotocol/"


def answers(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a correct server without features sends for a message."""
    if "id" not in message or "method" not in message:
        return
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    match message["method"]:
        case "initialize":
            result: dict[str, Any] = {
                "protocolVersion": OLD,
                "capabilities": {},
                "serverInfo": INFO,
            }
            yield {**reply, "result": result}
        case "ping":
            yield {**reply, "result": {}}
        case "server/discover":
            result = {
                "resultType": "complete",
                "supportedVersions": [NEW],
                "capabilities": {},
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {META + "serverInfo": INFO},
            }
            yield {**reply, "result": result}
        case _:
            yield {**reply, "error": {"code": -32601, "message": "method not found"}}


def answers_ping_twice(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a server sends that responds to each ping twice (RPC-7)."""
    yield from answers(message)
    if message.get("method") == "ping":
        yield from answers(message)


def answers_batches(message: Any) -> Iterator[dict[str, Any]]:
    """Yield the responses to a message or a batch, in a revision that has batches."""
    for each in message if isinstance(message, list) else [message]:
        for response in answers(each):
            if "protocolVersion" in response.get("result", {}):
                response["result"]["protocolVersion"] = BATCHED
            yield response


class MemorySession(TargetSession):
    """A conversation with a server in memory."""

    transport = "stdio"

    def __init__(self, target: MemoryTarget, number: int, *, keep: bool) -> None:
        super().__init__(target.header(), keep=keep)
        self._target = target
        self._place = number
        self._ready_at = trio.current_time() + target.start_time
        self._inbox: list[Mapping[str, Any]] = []

    async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
        """Take a message. The server answers once it has started."""
        self.record(TraceLine(t=self.time(), sender="client", raw=text))
        self._inbox.append(message)
        if len(self._inbox) == 1:
            self._begin_first()
        await trio.lowlevel.checkpoint()
        self._answer()

    async def send_data(self, data: bytes) -> None:
        """Take bytes that are no message, and ignore them."""
        await trio.lowlevel.checkpoint()

    async def send_parts(self, body: bytes, message: Mapping[str, Any], how: str, cut: int) -> None:
        """Take a message as a whole."""
        await self.send_text(body.decode(), message)

    async def wait_changed(self, deadline: float) -> bool:
        """Wait for a message."""
        if self._inbox and deadline >= self._ready_at:
            await trio.sleep_until(self._ready_at)
            self._answer()
            return True
        return await super().wait_changed(deadline)

    def _begin_first(self) -> None:
        """Begin the first message that waits: the server handles one after the other."""
        first = self._inbox[0]
        method = str(first.get("method")) if isinstance(first, dict) else "batch"
        end = trio.current_time() + self._target.times.get(method, 0.0)
        self._ready_at = max(self._ready_at, end)

    def _answer(self) -> None:
        while self._inbox and trio.current_time() >= self._ready_at:
            for each in self._target.answers(self._inbox.pop(0), self._place):
                self.receive(TraceLine(t=self.time(), sender="server", raw=json.dumps(each)))
            if self._inbox:
                self._begin_first()

    async def disconnect(self) -> None:
        """End the conversation."""
        self.spent = True
        await self.aclose()

    async def successor(self) -> TargetSession:
        """Return the session of another start, in the same trace."""
        session = await self._target.open(keep=self.lines is not None)
        session.follow(self)
        return session

    async def fresh(self) -> TargetSession:
        """Return the session of another start."""
        return await self._target.open()

    async def aclose(self) -> None:
        """End the conversation."""
        self.end("it is closed")
        self._target.open_sessions.discard(self)
        await trio.lowlevel.checkpoint()


class MemoryTarget:
    """A server in memory.

    Args:
        answers: yields what the server sends for a message; the second argument is the number of
            its start, from 0.
        start_time: seconds until it reads its first message.
        times: seconds that it needs for messages of some methods.

    Attributes:
        starts: how many sessions were opened.
        open_sessions: those that were not closed.
        scope: of the run that `played` makes.
    """

    kind = "stdio"
    name = "memory"
    command = ("memory", "--fast")
    session_class = MemorySession

    def __init__(
        self,
        answers: Callable[[Mapping[str, Any], int], Iterator[dict[str, Any]]],
        start_time: float = 0.0,
        times: Mapping[str, float] | None = None,
    ) -> None:
        self.answers = answers
        self.times = times or {}
        self.start_time = start_time
        self.starts = 0
        self.open_sessions: set[MemorySession] = set()
        self.scope = trio.CancelScope()

    def header(self) -> TraceHeader:
        """Return the header of a trace."""
        return new_header("client", "stdio", self.name)

    def learn_tools(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Do nothing: only HTTP repeats arguments in headers."""

    async def open(self, *, keep: bool = False) -> MemorySession:
        """Return the session of another start."""
        await trio.lowlevel.checkpoint()
        session = self.session_class(self, self.starts, keep=keep)
        self.starts += 1
        self.open_sessions.add(session)
        return session


class BatchTarget(MemoryTarget):
    """A server in memory that gets batches as lists."""

    async def open(self, *, keep: bool = False) -> MemorySession:
        """Return the session of another start."""
        session = await super().open(keep=keep)
        send = session.send_text

        async def send_text(text: str, message: Mapping[str, Any]) -> None:
            await send(text, json.loads(text))

        session.send_text = send_text  # type: ignore[method-assign]
        return session


class NotingSession(MemorySession):
    """A session that keeps what its client sends, as messages or as parts with their cut."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.said: list[Any] = []
        self.parts: list[tuple[bytes, str, int]] = []

    async def send_text(self, text: str, message: Any) -> None:
        """Take a message."""
        self.said.append(json.loads(text))
        await super().send_text(text, message)

    async def send_parts(self, body: bytes, message: Any, how: str, cut: int) -> None:
        """Take a message with its cut."""
        self.parts.append((body, how, cut))
        await super().send_parts(body, message, how, cut)


async def conversation(*steps: Any, revision: str = OLD, respond: Any = answers) -> Any:
    """Play steps after an opening, and return the session. `found` has its faults."""
    target = MemoryTarget(same_each_time(respond))
    target.session_class = NotingSession
    session: Any = await target.open(keep=True)
    async with aclosing(session):
        outcome = await Player().play([("open", revision, "whole", "all"), *steps], session)
        session.found = outcome.faults
    return session


def sent_with(session: Any, method: str) -> list[Any]:
    """Return the messages with a method that a client has sent."""
    return [each for each in session.said if each.get("method") == method]


def same_each_time(
    one: Callable[[Mapping[str, Any]], Iterator[dict[str, Any]]],
) -> Callable[[Mapping[str, Any], int], Iterator[dict[str, Any]]]:
    """Return the answers of a server that does the same after each start."""
    return lambda message, start: one(message)


def broken_in(
    starts: set[int],
) -> Callable[[Mapping[str, Any], int], Iterator[dict[str, Any]]]:
    """Return the answers of a server that responds to pings twice after these starts."""
    return lambda message, start: (answers_ping_twice if start in starts else answers)(message)


def played(
    target: MemoryTarget,
    *cases: Case,
    tools: tuple[str, ...] = (),
    capabilities: tuple[str, ...] = (),
    hints: Mapping[str, bool] | None = None,
    **options: Any,
) -> Campaign:
    """Play cases against a server in a run that draws none, and return the run.

    It has no time limit, and ends when `target.scope` is cancelled. The server has `tools`, which
    may be called and have `hints`, and declares `capabilities`.
    """
    entry = {"inputSchema": {"type": "object"}, "annotations": hints or {}}
    listed = [{"name": name, **entry} for name in tools]
    declared: dict[str, dict[str, Any]] = {
        each: {name: {} for name in capabilities} for each in (NEW, OLD, BATCHED)
    }
    offers = Offers(revisions=[NEW, OLD], tools=listed, capabilities=declared)
    choices = CaseChoices(offers, tools)
    campaign = Campaign(target, None, choices, CampaignOptions(**{"seconds": None, **options}))

    async def run() -> None:
        with target.scope:
            await campaign.run(cases)

    trio.run(run, clock=MockClock(autojump_threshold=0))
    return campaign
