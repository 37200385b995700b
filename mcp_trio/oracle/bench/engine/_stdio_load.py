"""The lean engine over the pipes of a program.

1. All callers share the pipe, and none has a task: the task that reads a response starts the
   caller's next call.
2. What the pipe doesn't take at once, another task writes: a target that writes before it reads
   must not block the load.
3. stdout is read between turns, too, and requests of the server are answered at any time.
"""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import trio

from mcp_core import ConnectFailed, escape_text
from mcp_trio.oracle.bench._process import GroupMeter, NoMeter
from mcp_trio.oracle.bench._schedule import OpenLoop
from mcp_trio.oracle.bench._tally import KnownResponses, Tally
from mcp_trio.oracle.bench._turn import BenchTurn, TargetGone
from mcp_trio.oracle.bench._verdicts import decode_json, find_cause

from ._handshake import negotiate
from ._templates import DIGITS, Templates, new_ids, response_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_core import Dialect
    from mcp_trio.oracle.bench._process import Meter
    from mcp_trio.oracle.bench._requests import PreparedCall, Work, Worker
    from mcp_trio.oracle.bench._tally import CallerCounts
    from mcp_trio.oracle.bench._turn import Pace
    from mcp_trio.streams._child import ChildProcess
    from mcp_trio.streams._stdio import Streams

__all__ = ["MAX_LINE", "StdioLoad"]

MAX_LINE: Final = 64 * 1024 * 1024  # bytes of one message
_LATE_IDS: Final = 10_000  # calls that have timed out and whose late responses are recognized
_MAX_UNSENT: Final = 10_000  # requests that wait for a target that doesn't read
_EXIT_TIMEOUT: Final = 1.0  # seconds for an exit after the end of stdout
_STDERR_LINES: Final = 5
_STDERR_LINE: Final = 300  # characters
_BEGIN: Final = b'{"jsonrpc":"2.0","id":'
_ID: Final = re.compile(rb'"id"\s*:\s*(\d{10})(?!\d)')
# An open call: who made it, and when it started or should have. A plain tuple costs least.
_OpenCall: TypeAlias = "tuple[_StdioCaller, PreparedCall, float]"
_ID_NEAR_END: Final = 64  # bytes in which an id stands that is the last member
_ID_AFTER_BEGIN: Final = slice(len(_BEGIN), len(_BEGIN) + DIGITS)


class StdioLoad:
    """A program that speaks over its stdin and stdout, started and warm.

    Args:
        stream: its pipes.
        timeout: seconds for each response.
        nursery: runs the tasks that read and write.
        child: the program; None in a test without one.

    Attributes:
        revision, server, capabilities: as `TargetLoad`.
    """

    def __init__(
        self,
        stream: Streams,
        timeout: float,
        nursery: trio.Nursery,
        child: ChildProcess | None = None,
    ) -> None:
        self.revision = ""
        self.server = ""
        self.protocol = ""
        self.capabilities: Mapping[str, Any] = {}
        self._stream = stream
        self._timeout = timeout
        self._nursery = nursery
        self._child = child
        self._meter: Meter = NoMeter() if child is None else GroupMeter(child.pid)
        self._known = KnownResponses()
        self._new_id = new_ids().__next__
        self._templates: Templates
        # Many loads make one call only. `_only_call` is it, as long as a turn has made no other.
        self._only_call: PreparedCall | None = None
        self._last_call: PreparedCall | None = None
        self._last_request = b"", b""  # before and after its id
        self._dialect: Dialect | None = None
        self._open: dict[bytes, _OpenCall] = {}  # in the order of their starts
        self._take = self._open.pop
        self._id_at = _ID_AFTER_BEGIN  # where the last response had it
        self._asked: dict[bytes, _Question] = {}
        self._late: dict[bytes, None] = {}
        self._turn: _StdioTurn | None = None
        self._out: list[bytes] = []  # requests that aren't written yet
        self._put = self._out.append
        self._may_write = trio.Event()
        self._is_writing = False
        self._gone: TargetGone | None = None
        # Only pipes of POSIX can be written without a task. -1 once it is closed.
        self._stdin: Callable[[], int] | None = getattr(stream.send_stream, "fileno", None)

    def __repr__(self) -> str:
        return f"<StdioLoad with {len(self._open)} open calls>"

    async def open(self, era: str | None) -> None:
        """Read from now on, and negotiate a revision.

        Raises:
            ConnectFailed: that isn't possible; the message names the cause and the cure.
        """
        self._nursery.start_soon(self._read)
        self._nursery.start_soon(self._write)

        async def ask(dialect: Dialect, method: str, params: dict[str, Any]) -> Any:
            self._templates = Templates(dialect)
            return await self._ask(method, params)

        try:
            found = await negotiate(ask, era, self._timeout, beside=True)
        except TargetGone as exc:
            raise ConnectFailed("the program ended during the handshake") from exc
        self._dialect = found.dialect
        self._templates = Templates(found.dialect)
        self.revision, self.server = found.dialect.version, found.server
        self.capabilities = found.capabilities
        if found.dialect.stateful:
            self._send({"method": "notifications/initialized"})

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send one request outside a turn, and return the decoded response, maybe an error.

        Raises:
            TargetGone: the program has ended.
            ConnectFailed: there is no response in time.
        """
        with trio.move_on_after(self._timeout):
            found: dict[str, Any] = await self._ask(method, params)
            return found
        raise ConnectFailed(f"no response to {method} within {self._timeout:g} s")

    async def _ask(self, method: str, params: dict[str, Any] | None) -> Any:
        if self._gone is not None:
            raise self._gone
        template = self._templates.encode(method, params)
        digits = self._new_id()
        question = self._asked[digits] = _Question()
        self._out.append(b"%b%b%b" % (template.head, digits, template.tail))
        self.flush()
        try:
            await question.answered.wait()
        finally:
            del self._asked[digits]
        if question.failure is not None:
            raise question.failure
        return question.answer

    # -- Turns -------------------------------------------------------------------------------------

    async def turn(self, work: Work, pace: Pace, seconds: float) -> BenchTurn:
        """Call for `seconds`, wait for the last responses, and return what was measured.

        Raises:
            TargetGone: the program has ended.
        """
        if self._gone is not None:
            raise self._gone
        tally = Tally(seconds, self._known, self._meter)
        loop = None if pace.rate is None else OpenLoop(pace, tally, seconds, self._timeout)
        async with trio.open_nursery() as nursery:
            turn = _StdioTurn(
                tally, loop, nursery, pace.concurrency, reads_answers=work.reads_answers
            )
            self._turn = turn
            self._last_call = None
            try:
                for number in range(pace.concurrency):
                    caller = _StdioCaller(self, turn, work.worker(number, pace.seed))
                    caller.next(trio.current_time())
                self.flush()
                if loop is not None:
                    nursery.start_soon(loop.run)
                nursery.start_soon(self._watch)
                await turn.over.wait()
            finally:
                self._turn = None
                if tally.is_cut:
                    tally.leave_out(len(self._open), due=0 if loop is None else loop.due)
                for digits in self._open:
                    self._expire(digits)
                self._open.clear()
            nursery.cancel_scope.cancel()
        found = tally.finish(trio.current_time())
        if self._gone is not None:
            raise TargetGone(
                str(self._gone), status=self._gone.status, stderr=self._gone.stderr, turn=found
            )
        return found

    def cut(self) -> bool:
        """End the turn now. Return False if none is being measured."""
        if self._turn is None:
            return False
        self._turn.tally.is_cut = True
        self._turn.over.set()
        return True

    def start(self, caller: _StdioCaller, call: PreparedCall, start: float) -> None:
        """Put a call's request with those that `flush` writes."""
        if call is not self._last_call:
            self._prepare(call)
        digits = self._new_id()
        self._open[digits] = caller, call, start
        self._put(digits.join(self._last_request))

    def _prepare(self, call: PreparedCall) -> tuple[bytes, bytes]:
        """Return what a call's request has before and after its id."""
        self._only_call = call if self._last_call is None else None
        head, tail = self._templates.of(call)
        self._last_call, self._last_request = call, (head, tail)
        return self._last_request

    async def _watch(self) -> None:
        """Give calls up that have no response in time."""
        while True:
            now = oldest = trio.current_time()
            while self._open:
                digits = next(iter(self._open))
                caller, _, start = self._open[digits]
                if start + self._timeout > now:
                    oldest = start
                    break
                del self._open[digits]
                self._expire(digits)
                self._cancel(digits)
                caller.fail(now)
            self.flush()
            await trio.sleep_until(oldest + self._timeout)

    def _expire(self, digits: bytes) -> None:
        """Remember that a response with this id may come, and counts nowhere."""
        if len(self._late) >= _LATE_IDS:
            del self._late[next(iter(self._late))]
        self._late[digits] = None

    def _cancel(self, digits: bytes) -> None:
        params = {"requestId": int(digits), "reason": "no response in time"}
        self._send({"method": "notifications/cancelled", "params": params})

    # -- Writing -----------------------------------------------------------------------------------

    def _send(self, message: dict[str, Any]) -> None:
        """Send a notification or a response."""
        self._out.append(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")
        self.flush()

    def flush(self) -> None:
        """Write what the pipe takes at once, and leave the rest to the writer."""
        if self._is_writing:
            # More than the target reads for a long time. These calls time out.
            del self._out[_MAX_UNSENT:]
            return
        if not self._out:
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        if self._stdin is not None:
            try:
                written = os.write(self._stdin(), data)
            except BlockingIOError:
                written = 0
            except OSError:
                return  # its stdin is closed: the reader sees its end
            if written == len(data):
                return
            data = data[written:]
        self._out.append(data)
        self._is_writing = True
        self._may_write.set()

    async def _write(self) -> None:
        """Write what the pipe didn't take."""
        while True:
            await self._may_write.wait()
            self._may_write = trio.Event()
            while self._out:
                data = b"".join(self._out)
                self._out.clear()
                try:
                    await self._stream.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    return
            self._is_writing = False

    # -- Reading -----------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Read stdout until its end."""
        rest: list[bytes] = []  # pieces of a line that isn't complete
        size = 0
        is_skipping = False  # in a line that is too long
        receive_some = self._stream.receive_some
        while True:
            try:
                data = bytes(await receive_some(65_536))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                break
            if not data:
                break
            now = trio.current_time()
            if b"\n" not in data:
                size += len(data)
                if size > MAX_LINE and not is_skipping:
                    is_skipping = True
                    rest.clear()
                    self._fail_oldest("too large", now)
                if not is_skipping:
                    rest.append(data)
                continue
            turn = self._turn
            is_plain = turn is not None and not turn.reads_answers
            if is_plain and not rest and not is_skipping and (taken := self._take_equal(data)):
                answered, lines = taken
            else:
                *lines, last = data.split(b"\n")
                if is_skipping:
                    del lines[0]
                    is_skipping = False
                elif rest:
                    lines[0] = b"".join([*rest, lines[0]])
                rest = [last] if last else []
                size = len(last)
                answered = []
                if is_plain:
                    answered, lines = self._take_known(lines)
            if turn is not None and answered:
                self._go_on(turn, answered, now)
            for line in lines:
                self._receive(line, now)
            self.flush()
        await self._end()

    def _take_equal(self, data: bytes) -> tuple[list[_OpenCall], list[bytes]] | None:
        """Take the open calls that a read answers, if all its lines are equal but for their ids.

        They then have the bytes of the known result of the only call that the turn makes. To split
        them, which looks at each byte, would take longer than all that follows. The second list has
        lines with ids of no open call. Return None for other lines.
        """
        around_id = self._known.around_id.get(id(self._only_call))
        if around_id is None:
            return None
        before, after = around_id
        step = len(before) + DIGITS + len(after) + 1
        if len(data) % step:
            return None
        ids = [data[at : at + DIGITS] for at in range(len(before), len(data), step)]
        if data != b"%b%b%b\n" % (before, (after + b"\n" + before).join(ids), after):
            return None
        answered: list[_OpenCall] = []
        others: list[bytes] = []
        take = self._take
        for digits in ids:
            open_call = take(digits, None)
            if open_call is None:
                others.append(digits.join(around_id))
            else:
                answered.append(open_call)
        return answered, others

    def _take_known(self, lines: list[bytes]) -> tuple[list[_OpenCall], list[bytes]]:
        """Take the open calls whose lines have the bytes of a known result, and the other lines."""
        open_calls, id_at = self._open, self._id_at
        find_call, find_around = open_calls.get, self._known.around_id.get
        answered: list[_OpenCall] = []
        others: list[bytes] = []
        last_call: PreparedCall | None = None
        around_id: tuple[bytes, ...] = ()
        for line in lines:
            digits = line[id_at]
            open_call = find_call(digits)
            if open_call is None:
                others.append(line)
                continue
            if open_call[1] is not last_call:
                last_call = open_call[1]
                around_id = find_around(id(last_call), ())
            if line == digits.join(around_id):
                del open_calls[digits]
                answered.append(open_call)
            else:
                others.append(line)
        return answered, others

    def _go_on(self, turn: _StdioTurn, answered: list[_OpenCall], now: float) -> None:
        """Count calls that have known results, and start their callers' next calls.

        With a fast target nearly each call ends here and the next one begins here. So for each one
        little is called, and what is equal for all is looked up before.
        """
        open_calls, new_id, put = self._open, self._new_id, self._put
        is_over = turn.loop is not None or now >= turn.tally.deadline
        calls = [call for _, call, _ in answered]
        starts = [start for _, _, start in answered]
        new_call, request = self._last_call, self._last_request
        begun = 0
        for caller, call, _ in answered:
            counts = caller.counts
            counts.answered += 1
            counts.last = now
            if is_over or call.think:
                caller.go_on(call, now)
                continue
            begun += 1
            call = caller.next_call(None)
            if call is not new_call:
                new_call, request = call, self._prepare(call)
            digits = new_id()
            open_calls[digits] = caller, call, now
            put(digits.join(request))
        turn.tally.sent += begun
        turn.tally.answer_known(calls, starts, now)

    def _receive(self, line: bytes, now: float) -> None:
        """Take one line."""
        # Most servers write these members in this order. Others end with the id.
        if line.startswith(_BEGIN):
            digits = line[_ID_AFTER_BEGIN]
            call = self._take(digits, None)
            if call is not None:
                self._id_at = _ID_AFTER_BEGIN
                call[0].answer(call, digits, line, now)
                return
        found = _ID.search(line, max(len(line) - _ID_NEAR_END, 0)) or _ID.search(line)
        while found:
            digits = found[1]
            is_known = digits in self._open or digits in self._asked or digits in self._late
            if is_known and self._deliver(line, digits, now):
                first, last = found.span(1)
                from_end = len(line) if first > _ID_NEAR_END else 0
                self._id_at = slice(first - from_end, last - from_end)
                return
            found = _ID.search(line, found.end())
        self._receive_other(line, now)

    def _deliver(self, line: bytes, digits: bytes, now: float) -> bool:
        """Deliver a line that has a known id in it. Return False if it isn't the response."""
        if b'"method"' in line:
            message = decode_json(line)
            if isinstance(message, dict) and "method" in message:
                return False
        if question := self._asked.get(digits):
            question.answer = decode_json(line)
            question.answered.set()
        elif call := self._open.pop(digits, None):
            call[0].answer(call, digits, line, now)
        else:
            del self._late[digits]
        return True

    def _receive_other(self, line: bytes, now: float) -> None:
        """Take a line that is the response to no call."""
        if not line.strip() or (b'"method"' in line and b'"id"' not in line):
            return  # a notification
        message = decode_json(line)
        if isinstance(message, dict) and isinstance(message.get("method"), str):
            if "id" in message:
                self._send(response_to(message))
        elif isinstance(message, dict) and _is_response(message):
            self._fail_oldest(find_cause(message, b"0"), now)
        elif self._turn is not None and not isinstance(message, list):  # a list is a batch
            self._turn.tally.stray_lines += 1

    def _fail_oldest(self, cause: str, now: float) -> None:
        """Fail the call that a response without its id is most likely to belong to."""
        if self._turn is not None and self._open:
            digits = next(iter(self._open))
            caller = self._open.pop(digits)[0]
            self._expire(digits)
            caller.fail(now, cause)

    async def _end(self) -> None:
        """End the turn and all requests: the program has ended."""
        child = self._child
        with trio.CancelScope(shield=True), trio.move_on_after(_EXIT_TIMEOUT):
            while child is not None and child.returncode is None:  # noqa: ASYNC110  it has no event
                await trio.sleep(0.005)
        status = child.returncode if child is not None else None
        self._gone = TargetGone(_describe_end(status), status=status, stderr=self._stderr())
        for question in self._asked.values():
            question.failure = self._gone
            question.answered.set()
        if self._turn is not None:
            for _ in self._open:
                self._turn.tally.error("closed")
            self._open.clear()
            self._turn.over.set()

    def _stderr(self) -> tuple[str, ...]:
        if self._child is None:
            return ()
        lines = self._child.stderr_tail.decode(errors="replace").splitlines()
        shown = [line for line in lines if line.strip()][-_STDERR_LINES:]
        return tuple(escape_text(line[:_STDERR_LINE], joiners=True) for line in shown)


def _is_response(message: Mapping[str, Any]) -> bool:
    """Return True for a response, also without an id, and False for a line of a log in JSON."""
    has_end = "result" in message or "error" in message
    return has_end and ("id" in message or "jsonrpc" in message)


def _describe_end(status: int | None) -> str:
    if status is None:
        return "it closed its stdout"
    if status >= 0:
        return f"it ended with exit status {status}"
    name = ""
    with suppress(ValueError):
        name = f" ({signal.Signals(-status).name})"
    return f"it was killed by signal {-status}{name}"


class _Question:
    """A request outside a turn, and its response."""

    def __init__(self) -> None:
        self.answered = trio.Event()
        self.answer: Any = None
        self.failure: TargetGone | None = None


class _StdioTurn:
    """The state of a turn.

    Attributes:
        over: set once no caller runs any more, or the program has ended.
        running: callers that may make another call.
    """

    def __init__(
        self,
        tally: Tally,
        loop: OpenLoop | None,
        nursery: trio.Nursery,
        running: int,
        *,
        reads_answers: bool,
    ) -> None:
        self.tally = tally
        self.loop = loop
        self.nursery = nursery
        self.reads_answers = reads_answers
        self.over = trio.Event()
        self.running = running

    def finish_caller(self) -> None:
        """Note that a caller makes no further call."""
        self.running -= 1
        if not self.running:
            self.over.set()


class _StdioCaller:
    """One caller of a turn. It has at most one open call.

    Attributes:
        counts: its counts in the turn.
        next_call: draws its next call.
    """

    __slots__ = (
        "_answer",
        "_count",
        "_deadline",
        "_load",
        "_loop",
        "_reads_answers",
        "_start",
        "_tally",
        "_turn",
        "counts",
        "next_call",
    )

    def __init__(self, load: StdioLoad, turn: _StdioTurn, worker: Worker) -> None:
        self._load = load
        self._start = load.start
        self._deadline = turn.tally.deadline
        self._turn = turn
        self._tally = turn.tally
        self._loop = turn.loop
        self._count = turn.tally.answer
        self._reads_answers = turn.reads_answers
        self.next_call = worker.next_call
        self.counts: CallerCounts = turn.tally.caller()
        self._answer: Any = None

    def next(self, now: float) -> None:
        """Make the next call, if there is one."""
        if self._loop is not None:
            self._loop.take(self._resume)
        elif now < self._deadline:
            self._begin(now)
        else:
            self._turn.finish_caller()

    def _resume(self, start: float | None) -> None:
        """Make a call of an open loop."""
        if start is None:
            self._turn.finish_caller()
        else:
            self._begin(start)
            self._load.flush()

    def _begin(self, start: float) -> None:
        self._tally.sent += 1
        self._start(self, self.next_call(self._answer), start)

    def answer(self, open_call: _OpenCall, digits: bytes, line: bytes, now: float) -> None:
        """Count a response, and go on."""
        _, call, start = open_call
        if self._reads_answers:
            message = decode_json(line)
            self._tally.decoded(self.counts, call, digits, start, now, message)
            self._answer = message if isinstance(message, dict) else None
        else:
            self._count(self.counts, call, digits, start, now, line)
        self.go_on(call, now)

    def go_on(self, call: PreparedCall, now: float) -> None:
        """Make the next call after a call's response."""
        if call.think:
            self._turn.nursery.start_soon(self._think, call.think, now)
        else:
            self.next(now)

    def fail(self, now: float, cause: str = "") -> None:
        """Count a call that has failed, or that timed out without a cause, and go on."""
        self._answer = None
        self.counts.last = now
        if cause:
            self._tally.error(cause)
        else:
            self._tally.timeout()
        self.next(now)

    async def _think(self, seconds: float, now: float) -> None:
        await trio.sleep_until(min(now + seconds, self._tally.deadline))
        self.next(trio.current_time())
        self._load.flush()
