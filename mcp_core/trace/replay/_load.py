"""A trace's requests, to send them to a live server one after another, and many times at once.

1. A conversation's requests come in the order in which the client sent them. Each waits for the
   response to the one before.
2. What can't be sent again is left out and counted, request by request, with its reason.
3. The values that the recorded server made up are replaced by the live server's (`ValueMapping`).
   Which requests have such values, and which responses give them, is found once for all copies:
   most requests are always sent alike, and most responses needn't be decoded.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.trace._members import META, lookup

from ._keys import exact_form, hidden_pointers
from ._mapping import ValueMapping
from ._recorded import RecordedTrace, describe_request
from ._turns import Turn, may_be_early, seconds_to_repeat, turns_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._recorded import RecordedMessage, RecordedSession

__all__ = ["CallCopy", "LeftOut", "RecordedCall", "RecordedLoad", "recorded_load"]

_IGNORED: Final = frozenset({"initialize", "notifications/initialized", "notifications/cancelled"})
_ABOUT_TASKS: Final = frozenset({"tasks/get", "tasks/result", "tasks/update", "tasks/cancel"})
_ROUND_MEMBERS: Final = ("inputResponses", "requestState")
_INPUT_REQUESTS: Final = "inputRequests"
_MAX_BYTES: Final = 64 * 1024 * 1024
_MAX_LINES: Final = 5
_MAX_REPEATS: Final = 1_000  # requests about one task
# Stands for a live value while sources are looked for. It has the form of an id.
_MARK: Final = "~live~"
_DIGITS: Final = 9


class LeftOut(Struct):
    """Messages that are left out for one reason.

    Attributes:
        what: which messages, as a noun in the plural.
        count: how many.
        lines: the numbers of their lines, the first five.
    """

    what: str
    count: int = 0
    lines: list[int] = field(default_factory=list)


class RecordedCall(Struct, eq=False):
    """One request of a recorded conversation.

    Attributes:
        method: its method.
        params: its recorded params, or None without any.
        name: its method, and the tool, prompt, URI or task that it names.
        line: the number of its line in the file.
        revision: the revision in which it was sent, "" if the trace doesn't show it.
        turn: the recorded request with its response.
        is_fixed: it has no value that the server made up, so each copy sends the same params.
        is_source: its response has values for a later request, or says whether a task is over.
        failed: the recorded response is an error.
    """

    method: str
    params: dict[str, Any] | None
    name: str
    line: int
    revision: str
    turn: Turn
    is_fixed: bool = True
    is_source: bool = False
    failed: bool = False

    def __repr__(self) -> str:
        return f"<RecordedCall {self.name} line {self.line}>"


class RecordedLoad(Struct):
    """A trace's requests, as `recorded_load` returns them.

    Attributes:
        conversations: each conversation's requests, in their order. None is empty.
        left_out: what isn't sent.
        hidden: the numbers of lines with values that the recorder replaced, the first five. They
            are sent as they are.
    """

    conversations: list[tuple[RecordedCall, ...]] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    hidden: list[int] = field(default_factory=list)

    @property
    def revisions(self) -> Counter[str]:
        """The number of requests of each revision that the trace shows."""
        calls = (call for calls in self.conversations for call in calls)
        return Counter(call.revision for call in calls if call.revision)


class CallCopy:
    """One live copy of a recorded conversation, with the values that its server has given so far.

    Call `params` before each request, and `receive` with the response to one that `is_source`.
    """

    def __init__(self) -> None:
        self._mapping = ValueMapping()
        self._repeats = 0

    def __repr__(self) -> str:
        return f"<CallCopy with {self._mapping!r}>"

    def params(self, call: RecordedCall) -> dict[str, Any] | None:
        """Return a request's params, with the live server's values.

        Args:
            call: the request.
        """
        if call.is_fixed:
            return call.params
        found: dict[str, Any] = self._mapping.apply(call.params)
        return found if _can_encode(found) else call.params

    def receive(self, call: RecordedCall, response: Any) -> float | None:
        """Take a live response.

        Args:
            call: the request.
            response: the response to it, decoded.

        Returns:
            None; or the seconds after which to send the request again, because the task that it
            asks for isn't over yet, and was over in the recording.
        """
        seconds = seconds_to_repeat(call.turn, response)
        if seconds is not None and self._repeats < _MAX_REPEATS:
            self._repeats += 1
            return seconds
        self._repeats = 0
        self._mapping.learn_result(call.method, _result(call.turn), lookup(response, "result"))
        return None


def recorded_load(
    trace: RecordedTrace, *, revision: str | None = None, answers_itself: bool = False
) -> RecordedLoad:
    """Return a trace's requests as conversations to play, and what is left out of them.

    Handshakes aren't among them, and aren't counted: each connection has its own.

    Args:
        trace: the recorded conversations.
        revision: the live server's revision. Requests of others are left out, unless both begin
            with a handshake. None keeps all.
        answers_itself: whether the sender is a client, which answers the server's questions,
            follows tasks, and describes itself in each request. Then the requests that only carry
            answers or ask for a task are left out, and params have no member that a client writes
            by itself. Otherwise the calls are left out during which the server sent the client a
            request.
    """
    return _LoadReader(revision, answers_itself=answers_itself).run(trace)


class _LoadReader:
    """Chooses the requests of a trace that can be sent again."""

    def __init__(self, revision: str | None, *, answers_itself: bool) -> None:
        self._revision = revision
        self._answers_itself = answers_itself
        self._room = _MAX_BYTES
        self._found = RecordedLoad()
        self._left_out: dict[str, LeftOut] = {}

    def run(self, trace: RecordedTrace) -> RecordedLoad:
        for session in trace.sessions:
            calls = self._read_session(session)
            if calls:
                self._found.conversations.append(calls)
        if trace.damaged_count:
            lines = trace.damaged[:_MAX_LINES]
            damaged = LeftOut("lines that cannot be read", trace.damaged_count, lines)
            self._left_out[damaged.what] = damaged
        self._found.left_out = list(self._left_out.values())
        return self._found

    def _leave_out(self, what: str, message: RecordedMessage | None = None) -> None:
        entry = self._left_out.setdefault(what, LeftOut(what))
        entry.count += 1
        if message is not None and len(entry.lines) < _MAX_LINES:
            entry.lines.append(message.line)

    def _read_session(self, session: RecordedSession) -> tuple[RecordedCall, ...]:
        if session.has_stream:
            self._leave_out("streams for server messages (GET)")  # without a message, so a line
        for each in session.messages:
            if each.sender == "client" and each.kind == "junk":
                self._leave_out("lines that are not messages", each)
        turns = turns_of(session)
        negotiated = _negotiated(turns)
        sources = _sources(turns)
        calls: dict[Turn, RecordedCall] = {}
        for turn in turns:
            message = turn.message
            if message is None or message.method in _IGNORED:
                continue
            call = _call_of(turn, message, negotiated)
            needed = sources.get(turn, frozenset())
            what = self._left_out_as(call, turn, message)
            if not what and not all(source in calls for source in needed):
                what = "requests that need the response to one that is left out"
            if what:
                self._leave_out(what, message)
                continue
            self._room -= len(message.data)
            if hidden_pointers(message, message.decode()) and len(self._found.hidden) < _MAX_LINES:
                self._found.hidden.append(message.line)
            for source in needed:
                calls[source].is_source = True
            call.is_fixed = not needed
            if self._answers_itself and call.params is not None:
                call.params = exact_form(call.method, call.params)
            calls[turn] = call
        return tuple(calls.values())

    def _fits(self, revision: str) -> bool:
        """Return True if requests of a revision can be sent in the live server's.

        Requests of a revision without a handshake name it, others don't.
        """
        live, recorded = DIALECTS.get(self._revision or revision), DIALECTS.get(revision)
        if live is None or recorded is None:
            return self._revision in (None, revision)
        return live is recorded or (live.stateful and recorded.stateful)

    def _left_out_as(self, call: RecordedCall, turn: Turn, message: RecordedMessage) -> str | None:
        """Return as what a message is left out, or None if it is kept."""
        if message.is_truncated:
            return "messages that were recorded in part"
        if message.kind == "notification":
            return "notifications"
        if message.id is None or not isinstance(call.params, dict | None):
            return "requests that no server can answer"
        if not _can_encode(call.params):
            return "requests with text that is not Unicode"
        if turn.is_long_lived:
            return "subscriptions, which stay open"
        if turn.was_cancelled:
            return "cancelled calls"
        if turn.response is None:
            return "requests without a recorded response"
        if call.revision and not self._fits(call.revision):
            return f"requests of {call.revision}, while the target speaks {self._revision}"
        if self._answers_itself:
            if call.params is not None and any(name in call.params for name in _ROUND_MEMBERS):
                return "requests that carry answers, which the client sends itself"
            if message.method in _ABOUT_TASKS:
                return "requests about a task, which the client sends itself"
        elif any(
            item.message.kind == "request" and item.message.method != "ping" for item in turn.items
        ):
            return "calls during which the server asked the client"
        if len(message.data) > self._room:
            return f"requests beyond the first {_MAX_BYTES // 2**20} MiB"
        return None


def _can_encode(params: Any) -> bool:
    """Return True if params can be encoded: half of a surrogate pair can't."""
    try:
        msgspec.json.encode(params)
    except ValueError:
        return False
    return True


def _call_of(turn: Turn, message: RecordedMessage, negotiated: str) -> RecordedCall:
    params = message.decode().get("params")
    own = lookup(params, "_meta", f"{META}protocolVersion")
    return RecordedCall(
        method=message.method,
        params=params,
        name=describe_request(message.method, params),
        line=message.line,
        revision=own if isinstance(own, str) else negotiated,
        turn=turn,
        is_source=may_be_early(turn),
        failed=turn.response is not None and "error" in turn.response.decode(),
    )


def _negotiated(turns: Sequence[Turn]) -> str:
    """Return the revision of a session's handshake, "" without one."""
    for turn in turns:
        if turn.message is not None and turn.message.method == "initialize":
            version = lookup(_result(turn), "protocolVersion")
            if isinstance(version, str):
                return version
    return ""


def _result(turn: Turn) -> Any:
    """Return the result in a turn's recorded response, None without any."""
    if turn.response is None or turn.response.is_truncated:
        return None
    return turn.response.decode().get("result")


# -- Where values come from ------------------------------------------------------------------------


def _sources(turns: Sequence[Turn]) -> dict[Turn, frozenset[Turn]]:
    """Return for each turn the earlier ones whose responses have values that its request sends.

    The session is played once, by a server whose values are all marks of the turn they are from.
    """
    mapping = ValueMapping()
    found = {}
    for number, turn in enumerate(turns):
        message = turn.message
        if message is None or message.kind != "request" or message.is_truncated:
            continue
        params = message.decode().get("params")
        live = mapping.apply(params)
        if live != params:
            numbers = frozenset(_marks(live))
            found[turn] = frozenset(turns[each] for each in numbers if each < number)
        result = _result(turn)
        mapping.learn_result(message.method, result, _marked(result, f"{_MARK}{number:0{_DIGITS}}"))
    return found


def _marked(value: Any, mark: str) -> Any:
    """Return `value` with `mark` for each text, and for each name of an input request."""
    if isinstance(value, str):
        return mark
    if isinstance(value, list):
        return [_marked(each, mark) for each in value]
    if isinstance(value, dict):
        marked = {}
        for key, each in value.items():
            if key == _INPUT_REQUESTS and isinstance(each, dict):
                marked[key] = {
                    f"{mark}~{index}": {
                        "method": lookup(request, "method"),
                        "params": _marked(lookup(request, "params"), mark),
                    }
                    for index, request in enumerate(each.values())
                }
            else:
                marked[key] = _marked(each, mark)
        return marked
    return value


def _marks(value: Any) -> Iterator[int]:
    """Yield the numbers of the turns whose marks are in `value`."""
    if isinstance(value, str):
        number = value.removeprefix(_MARK)[:_DIGITS]
        if value.startswith(_MARK) and number.isascii() and number.isdigit():
            yield int(number)
    elif isinstance(value, list):
        for each in value:
            yield from _marks(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _marks(key)
            yield from _marks(each)
