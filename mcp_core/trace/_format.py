"""A trace's format: one header, and then one line of JSON for each event.

1. A reader ignores unknown members and unknown values of `kind`. Later versions add both.
2. One bad line doesn't end a trace: a reader yields a `DamagedLine` and reads the next line.
3. Reading takes constant memory, for files and lines of any size.

Documentation for other programs: docs/reference/trace-format.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from mcp_core._errors import McpTrioError
from mcp_core._text import escape_text, shorten_text
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader
from mcp_core.protocol.jsonrpc._excerpt import Excerpt, show_bytes
from mcp_core.protocol.jsonrpc._framing import LineBuffer

__all__ = [
    "FORMAT_VERSION",
    "MAX_TRACE_LINE",
    "UNTIMED",
    "DamagedLine",
    "EmptyTrace",
    "HttpHead",
    "InvalidTrace",
    "RecordedFinding",
    "SseFields",
    "TraceHeader",
    "TraceLine",
    "TraceReader",
    "TruncatedMessage",
    "WebSocketClose",
    "encode_header",
    "encode_line",
    "encode_lines",
    "read_header",
    "read_line",
    "read_trace",
]

# The format's version, the member `mcp-trace` of a header.
FORMAT_VERSION: Final = 1
# Bytes. A recorded message has at most 1 MiB, and JSON inside JSON is at most six times as long.
MAX_TRACE_LINE: Final = 16 * 1024 * 1024
# The time of a line that has no member `t`, as in files of other programs.
UNTIMED: Final = -1.0
_MAX_REASON: Final = 300  # characters
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class InvalidTrace(McpTrioError, ValueError):
    """A file that isn't a trace, or a line that isn't a line of a trace."""


class EmptyTrace(InvalidTrace):
    """An empty file. A recorder leaves one if it is stopped before its first line."""


class RecordedFinding(Struct, frozen=True, kw_only=True):
    """A fuzzer's finding about the conversation of a trace.

    It broke rules on purpose, so a reader judges its messages no more than what follows from them.

    Attributes:
        row: the row's id, such as `RPC-35`; `crash` for a process that has ended.
        side: the side at fault. The fuzzer is the other one.
        sentence: the fault, in one sentence.
        verdict: `fail`; or `inconclusive` for advice, and for what can have another cause.
    """

    row: str
    side: Literal["client", "server"]
    sentence: str = ""
    verdict: Literal["fail", "inconclusive"] = "fail"


class TraceHeader(Struct, frozen=True, kw_only=True):
    """The first line of a trace.

    Attributes:
        format_version: the format's version, the member `mcp-trace`.
        at: when `t` was 0, in UTC, as in RFC 3339: `2026-11-22T14:26:18.900000Z`.
        by: the program that recorded the trace.
        observer: the side that recorded the trace; `between` for a proxy.
        transport: `stdio`, `stream`, `memory`, `http` or `websocket`; others are possible.
        target: the server's command or URL, without secrets. Empty if not known.
        redacted: what was hidden, as `header:authorization` or `pointer:/params/arguments/x`.
            Empty if the trace has everything, secrets included.
        server_versions: revisions that the server is known to speak, even if the trace doesn't show
            it. Left out if there are none.
        finding: what a fuzzer has found in this conversation. Left out of other traces.
        fuzzer: the side that breaks rules on purpose, in a recording of a fuzzer's whole run. Left
            out of other traces.
    """

    format_version: int = field(name="mcp-trace")
    at: str = ""
    by: str = ""
    observer: Literal["client", "server", "between"] = "client"
    transport: str = ""
    target: str = ""
    redacted: tuple[str, ...] = ()
    server_versions: tuple[str, ...] | UnsetType = UNSET
    finding: RecordedFinding | UnsetType = UNSET
    fuzzer: Literal["client", "server"] | UnsetType = UNSET


class HttpHead(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The head of an HTTP request or response.

    Attributes:
        version: `1.1` or `2`; empty if not known.
        method: a request's method.
        target: a request's path and query.
        status: a response's status; 0 for a request.
        headers: names and values in their order, names in lower case.
    """

    version: str = field(name="v", default="")
    method: str = ""
    target: str = ""
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()


class SseFields(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The fields of a server-sent event beside its data.

    Attributes:
        id: the event id; None if the event has none, which differs from an empty one.
        event: its type; empty for `message`.
        retry: the reconnection time in milliseconds.
    """

    id: str | None = None
    event: str = ""
    retry: int | None = None


class WebSocketClose(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The close frame of a WebSocket (RFC 6455 7.1.5).

    `code` is 1005 if the frame had none. `reason` is its text.
    """

    code: int
    reason: str = ""


class TruncatedMessage(Struct, frozen=True, kw_only=True, gc=False):
    """The size and digest of a message whose line has only the beginning.

    Attributes:
        size: the whole message's size in bytes.
        sha256: the whole message's digest, in hexadecimal; empty if the message was redacted.
    """

    size: int
    sha256: str = ""


class TraceLine(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One line of a trace after its header: something that was sent, or another event.

    Attributes:
        t: seconds since the header, by a monotonic clock, with 6 decimal places; -1.0 if the file
            doesn't have it.
        conversation: the conversation's number, from 1.
        exchange: the number of the HTTP exchange in the trace, from 1; 0 for other transports.
        sender: the side that sent it: the member `from`. None if it wasn't sent.
        raw: a message exactly as it crossed, without its line break. A batch is one message.
        data: a message that isn't UTF-8, in place of `raw`: the member `b64`.
        truncated: set if `raw` or `data` is only the message's beginning, because of the
            recording's limit, or because the body of an HTTP message was cut off.
        http: the head of a request or a response.
        sse: the fields of the event that carried the message, or an event without one.
        websocket: a close frame: the member `ws`.
        end: how a stream, or the body of an exchange, ended: `complete`, `reset`, `timeout` or
            `closed`; others are possible.
        kind: the kind of an event that wasn't sent: `spawn`, `exit`, `stderr`, `lost`, `note`;
            others are possible.
        status: for `exit`, the exit status, negative for a signal.
        text: for `stderr` and `note`, the text; for `spawn`, the command.
        count: for `lost`, the number of lines that were not written.
        redacted: JSON pointers (RFC 6901) to the values in the message that another text replaces.
            Values replaced by pseudonyms aren't listed: equal values have equal pseudonyms.
    """

    t: float = UNTIMED
    conversation: int = 1
    exchange: int = 0
    sender: Literal["client", "server"] | None = field(name="from", default=None)
    raw: str | None = None
    data: bytes | None = field(name="b64", default=None)
    truncated: TruncatedMessage | None = None
    http: HttpHead | None = None
    sse: SseFields | None = None
    websocket: WebSocketClose | None = field(name="ws", default=None)
    end: str | None = None
    kind: str | None = None
    status: int | None = None
    text: str | None = None
    count: int | None = None
    redacted: tuple[str, ...] = ()

    @property
    def message(self) -> bytes | None:
        """The message's bytes, or None if the line has none."""
        return self.data if self.raw is None else self.raw.encode()


class DamagedLine(Struct, frozen=True, kw_only=True):
    """A line that cannot be read: `reason` says why, `beginning` is its first bytes, escaped."""

    reason: str
    beginning: str


_encode_lines: Final = msgspec.json.Encoder().encode_lines
_decode_header: Final = reader(TraceHeader)
_decode_line: Final = reader(TraceLine)
_has_version: Final = reader(dict[str, msgspec.Raw])


def encode_header(header: TraceHeader) -> bytes:
    """Return `header` as one line of JSON, with its line feed."""
    return encode(header) + b"\n"


def encode_line(line: TraceLine) -> bytes:
    """Return `line` as one line of JSON, with its line feed."""
    return encode(line) + b"\n"


def encode_lines(lines: Sequence[TraceLine]) -> bytes:
    """Return `lines` as `encode_line` does, one after the other. This is faster."""
    return _encode_lines(lines)


def read_header(data: bytes) -> TraceHeader:
    """Decode `data`, the first line of a trace, with or without its line feed.

    Raises:
        InvalidTrace: it isn't a trace's header, or has a later format version.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK).rstrip()
    if not data:
        raise EmptyTrace("this is not a trace: it is empty")
    try:
        members = _has_version(data)
    except InvalidPayload:
        raise InvalidTrace(
            f"this is not a trace: its first line is not a JSON object: {show_bytes(data)}"
        ) from None
    if "mcp-trace" not in members:
        raise InvalidTrace(
            'this is not a trace: its first line has no member "mcp-trace". '
            "`mcp-trio ... --record FILE` writes traces"
        )
    try:
        header = _decode_header(data)
    except InvalidPayload as exc:
        raise InvalidTrace(f"the header of the trace is invalid: {_reason(exc)}") from None
    if header.format_version != FORMAT_VERSION:
        raise InvalidTrace(
            f"the trace has version {header.format_version} of the format, and this program reads "
            f"version {FORMAT_VERSION}: use the program that wrote it ({escape_text(header.by)})"
        )
    return header


def read_line(data: bytes) -> TraceLine:
    """Decode `data`, a line after the header, with or without its line feed.

    Raises:
        InvalidTrace: it isn't a trace's line.
    """
    try:
        return _decode_any_line(data)
    except InvalidPayload as exc:
        raise InvalidTrace(_reason(exc)) from None


def _reason(exc: InvalidPayload) -> str:
    """Return an error's text, which may quote a value of the file."""
    return escape_text(shorten_text(str(exc), _MAX_REASON))


def _decode_any_line(data: bytes) -> TraceLine:
    """Decode a line. One without `t` has to say what it is about.

    Raises:
        InvalidPayload: it isn't a trace's line.
    """
    line = _decode_line(data)
    if line.t == UNTIMED and line.sender is None and line.kind is None:
        raise InvalidPayload("Object has none of the members `t`, `from` and `kind`")
    return line


class TraceReader:
    """A reader of a trace that arrives in chunks.

    Call `feed` with each chunk, and with `b""` at the end of the file. After each call, call
    `next_line` until it returns None. A line over `max_line` bytes is a `DamagedLine`. Empty lines
    are skipped, but line numbers count them.

    Attributes:
        header: the header, or None before it has arrived.
        header_data: the header's bytes, without its line break.
        line_number: the number of the line that `next_line` returned last, from 1.
        line_data: that line's bytes, without its line break; only the beginning if it is too long.
    """

    def __init__(self, max_line: int = MAX_TRACE_LINE) -> None:
        self.header: TraceHeader | None = None
        self.header_data = b""
        self.line_number = 0
        self.line_data = b""
        self._lines = LineBuffer(max_line)
        self._at_end = False

    def feed(self, data: bytes) -> None:
        """Add `data`, the file's next bytes, or `b""` at its end."""
        if data:
            self._lines.feed(data)
        else:
            self._at_end = True

    def next_line(self) -> TraceLine | DamagedLine | None:
        """Return the next line after the header, or None if more bytes are needed.

        Raises:
            InvalidTrace: the first line isn't a trace's header, or the file is empty.
        """
        while (line := self._lines.next_line()) is not None:
            if isinstance(line, Excerpt):
                if line.is_rest:
                    continue
                self.line_number += 1
                self.line_data = line.beginning
                return self._damaged(line.beginning, "it is too long")
            self.line_number += 1
            if self.header is None:
                self._read_header(line)
            elif line:
                return self._read(line)
        return self._read_unfinished() if self._at_end else None

    def _read_header(self, line: bytes) -> None:
        self.header = read_header(line)
        self.header_data = line.removeprefix(_BYTE_ORDER_MARK)

    def _read(self, line: bytes) -> TraceLine | DamagedLine:
        self.line_data = line
        try:
            return _decode_any_line(line)
        except InvalidPayload as exc:
            return self._damaged(line, _reason(exc))

    def _damaged(self, line: bytes, reason: str) -> DamagedLine:
        if self.header is None:
            self._read_header(line)  # raises
        return DamagedLine(reason=reason, beginning=show_bytes(line))

    def _read_unfinished(self) -> TraceLine | DamagedLine | None:
        """Return the last line of a file that doesn't end with a line feed."""
        self._at_end = False
        rest = bytes(self._lines.unfinished)
        if self.header is None:
            self._read_header(rest)
            return None
        if not rest:
            return None
        self.line_number += 1
        line = self._read(rest)
        if isinstance(line, DamagedLine):
            return DamagedLine(reason="the trace ends in this line", beginning=line.beginning)
        return line


def read_trace(
    chunks: Iterable[bytes],
) -> tuple[TraceHeader, Iterator[tuple[int, TraceLine | DamagedLine]]]:
    """Return a trace's header, and an iterator over the lines after it with their numbers.

    Args:
        chunks: the file's bytes, in any pieces: an open binary file is fine.

    Raises:
        InvalidTrace: it isn't a trace.
    """
    trace = TraceReader()
    lines = _read_lines(trace, iter(chunks))
    first = next(lines, None)  # raises without a header
    assert trace.header is not None
    return trace.header, _with_first(first, lines)


def _read_lines(
    trace: TraceReader, chunks: Iterator[bytes]
) -> Iterator[tuple[int, TraceLine | DamagedLine]]:
    more = True
    while more:
        chunk = next((each for each in chunks if each), b"")
        more = bool(chunk)
        trace.feed(chunk)
        while (line := trace.next_line()) is not None:
            yield trace.line_number, line


def _with_first(
    first: tuple[int, TraceLine | DamagedLine] | None,
    rest: Iterator[tuple[int, TraceLine | DamagedLine]],
) -> Iterator[tuple[int, TraceLine | DamagedLine]]:
    if first is not None:
        yield first
        yield from rest
