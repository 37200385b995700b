"""Read traces and the files of other programs in one way: as a trace's lines.

A file is one of these, which its beginning tells:

1. A trace, with its header.
2. JSON: messages one after the other, or in an array. The Inspector's export is an array of
   entries, each with a request and its response.
3. Lines: of JSON, or of a log with messages in them. Lines without a message are skipped.

Reading takes constant memory for files of any size. What another program's file lacks is guessed or
left out, and counted.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from mcp_core.protocol.jsonrpc._excerpt import Excerpt, show_bytes
from mcp_core.protocol.jsonrpc._framing import LineBuffer
from mcp_core.trace._format import (
    FORMAT_VERSION,
    MAX_TRACE_LINE,
    UNTIMED,
    DamagedLine,
    InvalidTrace,
    TraceHeader,
    TraceLine,
    TraceReader,
)

from ._entries import HALF, LoggedMessage, read_line_entry, read_value_entry
from ._sides import SideGuesser
from ._values import ValueSplitter

if TYPE_CHECKING:
    from ._sides import Side
    from ._values import JsonValue

__all__ = ["LogReader"]

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_HEADER: Final = b'"mcp-trace"'
_MAX_NAMES: Final = 1_000  # servers of one file; more are taken for one
_MAX_HELD: Final = 10_000  # responses that wait for their time
_LOGGERS: Final = 3  # messages among which another logger repeats one
_LONG_BEGIN: Final = 64 * 1024  # bytes of a first line; a header is shorter
_DECODER: Final = json.JSONDecoder()


class LogReader:
    """A reader of a trace or of another program's file, which arrives in chunks.

    Call `feed` with each chunk, and with `b""` at the end of the file. After each call, call
    `next_line` until it returns None, as with a `TraceReader`. `max_line` is the maximum size of a
    line or an object in bytes.

    Attributes:
        header: the trace's header, or one made for another file. None before the first line.
        line_number: the number of the line in the file that `next_line` returned last, from 1.
        kind: `trace`, `json` or `lines`; empty before it is known.
        guessed: the number of messages whose side only their method or id tells.
        unknown: the number of messages that could be of either side. They are left out.
        skipped: the number of lines or objects without a message.
    """

    def __init__(self, max_line: int = MAX_TRACE_LINE) -> None:
        self.header: TraceHeader | None = None
        self.line_number = 0
        self.kind = ""
        self.guessed = 0
        self.unknown = 0
        self.skipped = 0
        self._max_line = max_line
        self._begin = bytearray()  # what was read before the kind was known
        self._trace = TraceReader(max_line)
        self._lines = LineBuffer(max_line)
        self._splitter = ValueSplitter(max_line)
        self._values: deque[JsonValue] = deque()
        self._ready: deque[tuple[int, TraceLine | DamagedLine]] = deque()
        # Responses that come later than their entries, by time.
        self._held: list[tuple[float, int, int, LoggedMessage]] = []
        self._count = 0  # lines that were read
        self._conversations: dict[str, _Conversation] = {}
        self._numbers = 0  # of conversations
        self._sequence = count()  # of held responses
        self._first_time: float | None = None
        self._last_time = 0.0
        self._at_end = False

    def feed(self, data: bytes) -> None:
        """Add `data`, the file's next bytes, or `b""` at its end."""
        is_end = not data
        if not self.kind:
            self._begin += data
            self.kind = _kind_of(bytes(self._begin), is_end=is_end)
            if not self.kind:
                return
            data = bytes(self._begin)
            self._begin.clear()
            if self.kind != "trace":
                data = data.removeprefix(_BYTE_ORDER_MARK)
                self.header = TraceHeader(format_version=FORMAT_VERSION, observer="between")
        if self.kind == "trace":
            for each in (data, b"") if is_end and data else (data,):
                self._trace.feed(each)
        elif self.kind == "json":
            self._values.extend(self._splitter.feed(data))
        elif data:
            self._lines.feed(data)
        if is_end and self.kind == "json":
            self._values.extend(self._splitter.end())
        self._at_end = is_end

    def next_line(self) -> TraceLine | DamagedLine | None:
        """Return the next line, or None if more bytes are needed.

        Raises:
            InvalidTrace: the file is empty, is a trace of another version, or has no message.
        """
        if self.kind == "trace":
            line = self._trace.next_line()
            self.header, self.line_number = self._trace.header, self._trace.line_number
            return line
        while not self._ready and self._read_more():
            pass
        if not self._ready and self._at_end:
            self._release(None, None)
            self._at_end = False
            if not self._conversations and not self._ready:
                raise InvalidTrace(
                    "this is not a trace, and no message of JSON-RPC was found in it:"
                    " `mcp-trio ... --record FILE` writes traces"
                )
        if not self._ready:
            return None
        self.line_number, found = self._ready.popleft()
        return found

    def _read_more(self) -> bool:
        """Read the next line or value. Return False if there is none yet."""
        if self.kind == "json":
            if not self._values:
                return False
            value = self._values.popleft()
            if value.problem:
                self._add_damage(value.line, value.problem, value.text)
            else:
                self._add_value(value)
            return True
        line = self._lines.next_line()
        if line is None:
            if not self._at_end or not self._lines.unfinished:
                return False
            line = bytes(self._lines.unfinished)
            self._lines = LineBuffer(self._max_line)
        if isinstance(line, Excerpt):
            if not line.is_rest:
                self._count += 1
                self._add_damage(self._count, "it is too long", line.beginning)
            return True
        self._count += 1
        found = read_line_entry(line.decode("utf-8", "replace"))
        if found == HALF:
            self._add_damage(self._count, HALF, line)
        elif isinstance(found, LoggedMessage):
            self._add_entry(found, self._count)
        else:
            self.skipped += bool(line.strip())
        return True

    def _add_value(self, value: JsonValue) -> None:
        text = value.text.decode("utf-8", "replace")
        try:
            decoded: Any = _DECODER.decode(text)
        except (ValueError, RecursionError):
            self._add_damage(value.line, "it is not JSON", value.text)
            return
        found = read_value_entry(decoded, text)
        if found is None:
            self.skipped += 1
        else:
            self._add_entry(found, value.line)

    def _add_damage(self, number: int, reason: str, data: bytes) -> None:
        self._ready.append((number, DamagedLine(reason=reason, beginning=show_bytes(data))))

    # -- Messages ----------------------------------------------------------------------------------

    def _add_entry(self, entry: LoggedMessage, number: int) -> None:
        side = self._side_of(entry)
        if entry.time is not None:
            self._release(entry.time, side)
        self._add_message(entry, number, side)
        if entry.answer is None or side is None:
            return
        message, time = entry.answer
        answer = LoggedMessage(
            json.dumps(message, ensure_ascii=False),
            message,
            "server" if side == "client" else "client",
            time,
            entry.name,
        )
        if time is None or len(self._held) >= _MAX_HELD:
            self._add_message(answer, number, answer.side)
        else:
            heapq.heappush(self._held, (time, next(self._sequence), number, answer))

    def _release(self, time: float | None, side: Side | None) -> None:
        """Add the responses that were sent before a message of `side` at `time`; None for all.

        At the same time, a message of the same side is first: it can be about the request, such as
        its progress. A message of the other side may follow from the response.
        """
        while self._held and (
            time is None
            or self._held[0][0] < time
            or (self._held[0][0] == time and self._held[0][3].side != side)
        ):
            _, _, number, answer = heapq.heappop(self._held)
            self._add_message(answer, number, answer.side)

    def _side_of(self, entry: LoggedMessage) -> Side | None:
        """Return who has sent a message, by what the file says or by a guess."""
        if entry.side is not None:
            return entry.side
        guesser = self._conversation(entry.name).guesser
        guesses = (guesser.guess(each) for each in _parts(entry))
        side = next((each for each in guesses if each is not None), None)
        self.guessed += side is not None
        return side

    def _conversation(self, name: str) -> _Conversation:
        """Return the conversation of a server's name."""
        if name not in self._conversations and len(self._conversations) >= _MAX_NAMES:
            name = next(iter(self._conversations))
        known = self._conversations.get(name)
        if known is None:
            self._numbers += 1
            known = self._conversations[name] = _Conversation(self._numbers)
        return known

    def _add_message(self, entry: LoggedMessage, number: int, side: Side | None) -> None:
        known = self._conversation(entry.name)
        if entry.is_logged and known.is_repetition(entry):
            return
        if side == "client":
            self._add_requests(entry, number, known)
        if side is None or known.is_mixed:
            self.unknown += 1
            if side is None:
                self._add_damage(number, "its message could be of either side", entry.text.encode())
            return
        for each in _parts(entry):
            known.guesser.add(each, side)
        line = TraceLine(
            t=self._relative(entry.time), conversation=known.number, sender=side, raw=entry.text
        )
        self._ready.append((number, line))

    def _add_requests(self, entry: LoggedMessage, number: int, known: _Conversation) -> None:
        """Begin another conversation at `initialize`, or find that two are mixed."""
        for each in _parts(entry):
            if each.get("method") == "initialize":
                if known.has_begun:
                    # It may also run beside the first one, as that of a second client.
                    text = "another conversation begins, and the first one may go on"
                    self._add_damage(number, text, entry.text.encode())
                    known.is_mixed = known.guesser.has_open("client")
                    self._numbers += 1
                    known.number, known.is_repeated = self._numbers, True
                    known.guesser = SideGuesser()
                known.has_begun = True
            elif known.is_repeated and known.guesser.has_open("client", each.get("id")):
                known.is_mixed = True

    def _relative(self, time: float | None) -> float:
        """Return the seconds since the first message. Time never goes back."""
        if time is None:
            return UNTIMED
        if self._first_time is None:
            self._first_time = time
        self._last_time = max(self._last_time, round(time - self._first_time, 6))
        return self._last_time


class _Conversation:
    """One server's messages.

    Attributes:
        number: the conversation's number in the trace.
        guesser: tells its sides.
        has_begun: it has had `initialize`.
        is_repeated: it has had it twice.
        is_mixed: it is two conversations that run at the same time. Their messages can't be told
            apart, so they aren't judged.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.guesser = SideGuesser()
        self.has_begun = False
        self.is_repeated = False
        self.is_mixed = False
        self._last: deque[dict[str, Any] | list[Any]] = deque(maxlen=_LOGGERS)

    def is_repetition(self, entry: LoggedMessage) -> bool:
        """Return True if another logger has just written the same message."""
        if entry.message in self._last:
            return True
        self._last.append(entry.message)
        return False


def _parts(entry: LoggedMessage) -> list[dict[str, Any]]:
    """Return the messages of a batch, or the one message."""
    return entry.message if isinstance(entry.message, list) else [entry.message]


def _kind_of(data: bytes, *, is_end: bool) -> str:
    """Return the kind of a file that begins with `data`, or "" if more of it is needed."""
    text = data.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if not text:
        return "trace" if is_end else ""  # empty, which a `TraceReader` reports
    if text[:1] == b"[":
        following = text[1:].lstrip()[:1]
        return ("json" if following in (b"{", b"[", b"]") else "lines") if following else ""
    if text[:1] != b"{":
        return "lines"
    line, end, _ = text.partition(b"\n")
    if not end and not is_end and len(line) < _LONG_BEGIN:
        return ""
    if _HEADER in line:
        return "trace"
    # A printer of JSON begins an object of several lines with the brace alone.
    return "json" if line.strip() == b"{" else "lines"
