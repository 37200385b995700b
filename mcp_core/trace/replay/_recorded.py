"""A trace's messages, kept as bytes, with the data that is needed to pair them.

1. A message is decoded twice: once to classify it, and again when it is used. In between, it is
   kept as bytes.
2. A trace has all clients' sessions side by side. A handshake begins a session. All requests
   without a handshake are together one session, because each is complete in itself.
3. One limit counts the bytes of everything that is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Literal, NoReturn

from msgspec import Struct

from mcp_core._nesting import depth_exceeds
from mcp_core.protocol.revisions._methods import METHODS
from mcp_core.trace._format import DamagedLine, InvalidTrace, TraceHeader, TraceLine
from mcp_core.trace._ids import id_key
from mcp_core.trace._json_redaction import decode_string, values_of
from mcp_core.trace._messages import Sender

__all__ = [
    "MAX_TRACE_BYTES",
    "RecordedMessage",
    "RecordedSession",
    "RecordedTrace",
    "TraceTooLarge",
    "decode_message",
    "describe_request",
    "encode_message",
    "load_trace",
    "request_name",
]

# Bytes of all kept messages of a trace: the size that a recorder writes by default.
MAX_TRACE_BYTES: Final = 256 * 1024 * 1024
_MESSAGE_SIZE: Final = 200  # bytes that a message takes beside its data
_MAX_NOTED: Final = 10  # line numbers in a warning
_MAX_DESCRIPTION: Final = 80  # characters of a name or URI in a description

# All messages of a method share one string.
_METHOD_NAMES: Final = {row.name: row.name for row in METHODS}

Kind = Literal["request", "notification", "response", "junk"]


class TraceTooLarge(InvalidTrace):
    """A trace with more messages than are kept in memory."""


# A large trace has a million messages. `gc=False` keeps the garbage collector from visiting them.
class RecordedMessage(Struct, gc=False, eq=False):
    """One message of a trace; of a batch, one of its members.

    Attributes:
        line: the number of its line in the file.
        t: its line's time in seconds.
        sender: the side that sent it.
        kind: request, notification, response, or "junk" for anything else.
        id: the key of its id, or None.
        method: its method, "" if it has none.
        data: its bytes.
        exchange: the HTTP exchange that carried it, 0 if none.
        status: the response's HTTP status if this is its body, 0 for other messages.
        redacted: JSON pointers of the values that the recorder replaced.
        is_truncated: `data` is only the beginning.
        batch: its line number if it is a member of a batch, else 0.
    """

    line: int
    t: float
    sender: Sender
    data: bytes
    exchange: int = 0
    status: int = 0
    redacted: tuple[str, ...] = ()
    is_truncated: bool = False
    kind: Kind = "junk"
    id: int | str | None = None
    method: str = ""
    batch: int = 0

    def __repr__(self) -> str:
        return f"<RecordedMessage {self.sender} {self.kind} {self.method} line {self.line}>"

    def decode(self) -> dict[str, Any]:
        """Return its members, {} for junk."""
        members = decode_message(self.data)
        return members if isinstance(members, dict) else {}


class RecordedSession:
    """The messages of one session, in their order.

    Attributes:
        messages: its messages.
        has_handshake: whether it has an `initialize` request.
        is_initialized: whether that request has a result.
        has_id: whether the server gave it an id over HTTP.
        has_stream: whether the client opened a stream for server messages (GET).
    """

    def __init__(self) -> None:
        self.messages: list[RecordedMessage] = []
        self.has_handshake = False
        self.is_initialized = False
        self.has_id = False
        self.has_stream = False
        self._handshakes: set[int | str | None] = set()

    def __repr__(self) -> str:
        return f"<RecordedSession, {len(self.messages)} messages>"

    def add(self, message: RecordedMessage) -> None:
        """Add `message`, the session's next one."""
        self.messages.append(message)
        if message.kind == "request" and message.method == "initialize":
            self.has_handshake = True
            self._handshakes.add(message.id)
        elif message.kind == "response" and message.id in self._handshakes:
            self._handshakes.discard(message.id)
            self.is_initialized |= message.sender == "server" and b'"result"' in message.data

    def forget_redirected(self, exchange: int) -> None:
        """Forget the client's messages in `exchange`, of HTTP: it sends them again elsewhere."""
        messages = self.messages
        for place in range(len(messages) - 1, -1, -1):
            if messages[place].sender == "client" and messages[place].exchange <= exchange:
                if messages[place].exchange < exchange:
                    break  # the numbers of exchanges rise
                del messages[place]


class RecordedTrace:
    """A trace as sessions of messages. `load_trace` makes one from a file's lines.

    Args:
        header: the trace's header.
        limit: how many bytes of messages are kept.

    Attributes:
        header: the trace's header.
        damaged: the numbers of the first damaged lines.
        damaged_count: how many damaged lines there are.
        lost: how many lines the recorder didn't write.
        truncated: the numbers of the first lines that have only a message's beginning.
        hides_pseudonyms: the trace has pseudonyms for task ids and `requestState`.
    """

    def __init__(self, header: TraceHeader, limit: int = MAX_TRACE_BYTES) -> None:
        self.header = header
        self.damaged: list[int] = []
        self.damaged_count = 0
        self.lost = 0
        self.truncated: list[int] = []
        self.hides_pseudonyms = "message:taskId" in header.redacted
        self._limit = limit
        self._left = limit
        self._begun: list[RecordedSession] = []
        # The current session by conversation, and the session by open exchange.
        self._current: dict[int, RecordedSession] = {}
        self._of_exchange: dict[int, RecordedSession] = {}

    def __repr__(self) -> str:
        return f"<RecordedTrace of {len(self._begun)} sessions>"

    @cached_property
    def sessions(self) -> list[RecordedSession]:
        """The sessions, first the one without a handshake. Read it after the last `add`."""
        rest = RecordedSession()
        found = []
        for each in self._begun:
            if each.has_handshake:
                found.append(each)
            else:
                rest.messages += each.messages
                rest.has_id |= each.has_id
                rest.has_stream |= each.has_stream
        rest.messages.sort(key=attrgetter("line"))
        return [rest, *found] if rest.messages else found

    @property
    def has_requests(self) -> bool:
        """True if a client sent a request."""
        return any(
            each.sender == "client" and each.kind == "request"
            for session in self.sessions
            for each in session.messages
        )

    @property
    def warnings(self) -> list[str]:
        """The trace's missing parts, as sentences."""
        found = []
        if self.damaged_count:
            more = " and more" if self.damaged_count > len(self.damaged) else ""
            lines = ", ".join(map(str, self.damaged))
            found.append(f"lines that cannot be read were left out: {lines}{more}")
        if self.lost:
            found.append(f"{self.lost} lines were not recorded: responses may be missing")
        if self.truncated:
            lines = ", ".join(map(str, self.truncated))
            found.append(f"messages were recorded in part, and cannot be replayed: line {lines}")
        return found

    def add(self, line: TraceLine | DamagedLine, number: int) -> None:
        """Add `line`, and its `number` in the file.

        Raises:
            TraceTooLarge: the messages are larger than the limit.
        """
        if isinstance(line, DamagedLine):
            self.damaged_count += 1
            if len(self.damaged) < _MAX_NOTED:
                self.damaged.append(number)
            return
        if line.kind == "lost":
            self.lost += line.count or 1
        if line.sender is None:
            return
        self._note_head(line)
        data = line.message
        if data is None or not _is_message(line, data):
            self._note_end(line)
            return
        self._left -= len(data) + _MESSAGE_SIZE
        if self._left < 0:
            raise TraceTooLarge(
                f"the trace has more than {self._limit // 2**20} MiB of messages, which is more"
                " than is kept in memory: record less of it (--record-limit)"
            )
        if line.truncated is not None and len(self.truncated) < _MAX_NOTED:
            self.truncated.append(number)
        for message in _messages(line, number, line.sender, data):
            self._add_message(message, line.conversation)
        self._note_end(line)

    def _add_message(self, message: RecordedMessage, conversation: int) -> None:
        session = self._session(conversation)
        if message.sender == "server" and message.exchange:
            session = self._of_exchange.get(message.exchange, session)
        elif message.method == "initialize" and session.is_initialized:
            session = self._begin(conversation)  # another session of the same client
        if message.sender == "client" and message.exchange:
            self._of_exchange[message.exchange] = session
        session.add(message)

    def _session(self, conversation: int) -> RecordedSession:
        return self._current.get(conversation) or self._begin(conversation)

    def _begin(self, conversation: int) -> RecordedSession:
        session = self._current[conversation] = RecordedSession()
        self._begun.append(session)
        return session

    def _note_head(self, line: TraceLine) -> None:
        if line.http is None:
            return
        session = self._of_exchange.get(line.exchange)
        if line.http.status:
            names = [name for name, _ in line.http.headers]
            if session is not None and "mcp-session-id" in names:
                session.has_id = True
            if session is not None and 300 <= line.http.status < 400:
                session.forget_redirected(line.exchange)
        elif line.http.method == "GET":
            session = self._session(line.conversation)
            session.has_stream = True
            self._of_exchange[line.exchange] = session

    def _note_end(self, line: TraceLine) -> None:
        if line.end is not None and line.exchange:
            self._of_exchange.pop(line.exchange, None)


def load_trace(
    header: TraceHeader,
    lines: Iterable[tuple[int, TraceLine | DamagedLine]],
    *,
    limit: int = MAX_TRACE_BYTES,
) -> RecordedTrace:
    """Return a trace's messages.

    Args:
        header: the trace's header.
        lines: the trace's lines with their numbers, as `read_trace` yields them.
        limit: how many bytes of messages are kept.

    Raises:
        TraceTooLarge: the messages are larger than `limit`.
        InvalidTrace: it isn't a trace.
    """
    trace = RecordedTrace(header, limit)
    for number, line in lines:
        trace.add(line, number)
    return trace


def decode_message(data: bytes | str) -> Any:
    """Decode strict JSON that is nested at most 200 deep, or return None."""
    try:
        decoded = _DECODER.decode(data if isinstance(data, str) else str(data, "utf-8"))
    except (ValueError, RecursionError):
        return None
    return None if depth_exceeds(decoded) else decoded


def request_name(method: str, params: Any) -> str:
    """Return the name in a request, of a tool or prompt, a URI or a task id; "" without one."""
    if not isinstance(params, dict):
        return ""
    for key in ("name", "uri", "taskId"):
        if isinstance(params.get(key), str):
            return str(params[key])
    reference = params.get("ref")
    if isinstance(reference, dict):
        return str(reference.get("name", reference.get("uri", "")))
    return ""


def describe_request(method: str, params: Any) -> str:
    """Return a method and the name in its params, for a user."""
    name = request_name(method, params)
    if len(name) > _MAX_DESCRIPTION:
        name = name[:_MAX_DESCRIPTION] + "…"
    return f"{method[:_MAX_DESCRIPTION]} {name}".rstrip()


def _messages(
    line: TraceLine, number: int, sender: Sender, data: bytes
) -> Iterable[RecordedMessage]:
    """Return a line's message, or the messages in its batch."""
    message = _message_of(line, number, sender, data)
    if line.truncated is not None:
        _classify_beginning(message)
        return [message]
    decoded = decode_message(data)
    if isinstance(decoded, list) and decoded:
        found = []
        for index, each in enumerate(decoded):
            member = _message_of(line, number, sender, encode_message(each))
            member.batch = number
            prefix = f"/{index}"
            member.redacted = tuple(
                each.removeprefix(prefix) for each in line.redacted if each.startswith(prefix + "/")
            )
            _classify(member, each)
            found.append(member)
        return found
    _classify(message, decoded)
    return [message]


def _message_of(line: TraceLine, number: int, sender: Sender, data: bytes) -> RecordedMessage:
    return RecordedMessage(
        line=number,
        t=line.t,
        sender=sender,
        data=data,
        exchange=line.exchange,
        status=0 if line.http is None else line.http.status,
        redacted=line.redacted,
        is_truncated=line.truncated is not None,
    )


def _classify(message: RecordedMessage, members: Any) -> None:
    if not isinstance(members, dict):
        return
    method = members.get("method")
    message.id = id_key(members.get("id"))
    if isinstance(method, str):
        message.method = _METHOD_NAMES.get(method, method)
        message.kind = "request" if "id" in members else "notification"
    elif "result" in members or "error" in members:
        message.kind = "response"


def _classify_beginning(message: RecordedMessage) -> None:
    """Find the id and method in a message's beginning."""
    text = message.data.decode("utf-8", "replace")
    has_id = False
    for value in values_of(text):
        token = text[value.start : value.end]
        if value.path == ("id",):
            decoded = decode_message(token)
            message.id = id_key(decoded)
            has_id = True
        elif value.path == ("method",):
            message.method = decode_string(token)
        elif value.path in (("result",), ("error",)):
            message.kind = "response"
    if message.method:
        message.kind = "request" if has_id else "notification"


def _is_message(line: TraceLine, data: bytes) -> bool:
    """Return True if a line's data can be an MCP message.

    An HTTP error's body can come from a proxy, and other events have other contents.
    """
    if line.sse is not None:
        return line.sse.event in ("", "message")
    if "" in line.redacted:
        return False  # a login's body, which was replaced as a whole
    if line.http is None or not line.exchange:
        return bool(data.strip())
    return b'"jsonrpc"' in data or not line.http.status


def encode_message(value: Any) -> bytes:
    """Encode a JSON value as one line of UTF-8."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, separators=(",", ":")).encode()


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_reject_constant)
