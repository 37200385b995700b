"""The differences between two traces, by request.

1. Sessions are compared in their order. In each session, the client's requests are aligned by
   method, name, arguments and occurrence, and the server's by method and occurrence.
2. For change notifications, only their presence is compared, not their number. Progress and log
   messages are left out, because they depend on time.
3. Of the requests for one task's state, only the last is compared. Their number depends on time.
4. A text that one side sent and the other one sent back is an id, if it has an id's form. Ids may
   differ, as long as they are sent back in the same places.
5. Order is compared only where it is certain: a client's messages on one stream, and a server's
   requests during one request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate, zip_longest
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct

from ._differences import MISSING, Difference, find_differences
from ._keys import (
    ANY,
    Pointer,
    call_form,
    digest,
    format_pointer,
    hidden_pointers,
    hide,
    matches_any,
    parse_pointer,
)
from ._recorded import RecordedTrace, describe_request, request_name
from ._turns import Turn, turns_of
from ._volatile import EqualIds, RecordingTime, may_be_id

if TYPE_CHECKING:
    from ._recorded import RecordedMessage, RecordedSession

__all__ = ["ChangedValue", "DifferenceKind", "TraceDiff", "TraceDifference", "diff_traces"]

DifferenceKind: TypeAlias = Literal[
    "missing", "added", "result changed", "error code changed", "request changed", "order changed"
]

_MAX_DIFFERENCES: Final = 10_000  # kept differences; further ones are only counted
_MAX_VALUES: Final = 100  # kept values of one difference; further ones are only counted
_MAX_CANDIDATES: Final = 100_000
_NOT_COMPARED: Final = frozenset(
    ("notifications/progress", "notifications/message", "notifications/cancelled", "ping")
)
# Params with values that a server made up and its client sends back.
_MADE_UP: Final = ("cursor", "taskId", "requestState")


class ChangedValue(Struct, frozen=True, kw_only=True):
    """A value of a message that changed.

    Attributes:
        pointer: its JSON pointer into the message, such as `/result/content/0/text`.
        old: the value in the first trace; None also if it is missing there.
        new: the value in the second trace; None also if it is missing there.
        is_missing: the value is missing in the first trace.
        is_removed: the value is missing in the second trace.
    """

    pointer: str
    old: Any
    new: Any
    is_missing: bool = False
    is_removed: bool = False


class TraceDifference(Struct, frozen=True, kw_only=True):
    """A difference between two traces.

    Attributes:
        kind: `missing` for a message only in the first trace, `added` for one only in the second.
        what: the message's method and the tool or other object that it names, for a user.
        part: `request`, `notification` or `response`.
        sender: the side that sent it.
        session: the session's number in its trace, from 1.
        old_line: its line in the first trace, 0 if it isn't there.
        new_line: its line in the second trace, 0 if it isn't there.
        old_code: the response's error code in the first trace, or None.
        new_code: the response's error code in the second trace, or None.
        values: the changed values, the first 100.
        value_count: how many changed values there are.
    """

    kind: DifferenceKind
    what: str
    part: Literal["request", "notification", "response"]
    sender: Literal["client", "server"]
    session: int
    old_line: int = 0
    new_line: int = 0
    old_code: int | None = None
    new_code: int | None = None
    values: tuple[ChangedValue, ...] = ()
    value_count: int = 0


class TraceDiff:
    """The comparison of two traces.

    Attributes:
        differences: the differences, the first 10,000.
        count: how many differences there are.
        compared: the number of requests that are in both traces.
        responses: the number of responses that are complete in both traces, and were compared.
        not_compared: the number of responses that a trace has only in part.
    """

    def __init__(self) -> None:
        self.differences: list[TraceDifference] = []
        self.count = 0
        self.compared = 0
        self.responses = 0
        self.not_compared = 0

    def __repr__(self) -> str:
        return f"<TraceDiff of {self.compared} requests, {self.count} differences>"

    def add(self, difference: TraceDifference) -> None:
        """Add `difference`."""
        self.count += 1
        if len(self.differences) < _MAX_DIFFERENCES:
            self.differences.append(difference)


def diff_traces(
    old: RecordedTrace, new: RecordedTrace, *, ignore: Iterable[str] = (), with_meta: bool = False
) -> TraceDiff:
    """Compare two traces.

    Ids, tokens, cursors, redacted values and times near the recording are left out.

    Args:
        old: the first trace.
        new: the second trace.
        ignore: JSON pointers to values in messages that are left out with everything in them, such
            as `/result/content/0/text`. `*` stands for any member.
        with_meta: whether to compare `_meta`.

    Raises:
        ValueError: one of `ignore` isn't a JSON pointer.
    """
    return _Comparison(old, new, [parse_pointer(each) for each in ignore], with_meta).run()


class _ComparedMessage:
    """A request or notification, with its place in its session's order.

    `stream` is the stream in which its order is compared, or None.
    """

    __slots__ = ("message", "place", "response", "stream")
    place: int

    def __init__(
        self, message: RecordedMessage, response: RecordedMessage | None, stream: Any
    ) -> None:
        self.message = message
        self.response = response
        self.stream = stream


_Pair: TypeAlias = tuple[_ComparedMessage, _ComparedMessage]


class _Side:
    """The compared messages of one session in one trace."""

    def __init__(self, session: RecordedSession | None) -> None:
        self.entries: list[_ComparedMessage] = []
        self._notified: set[tuple[str, str, str]] = set()
        self._polled: dict[str, _ComparedMessage] = {}  # the last request for each task
        if session is None:
            return
        for turn in turns_of(session):
            self._add_turn(turn)
        self.entries.sort(key=lambda entry: entry.message.line)
        for place, entry in enumerate(self.entries):
            entry.place = place

    def _add_turn(self, turn: Turn) -> None:
        message = turn.message
        if message is not None:
            self._add(message, turn.response, None if message.exchange else "client")
        for item in turn.items:
            if item.message.kind == "request":
                self._add(item.message, item.answer, turn)
            elif item.message.kind == "notification":
                self._add(item.message, None, None)

    def _add(self, message: RecordedMessage, response: RecordedMessage | None, stream: Any) -> None:
        if message.method in _NOT_COMPARED:
            return
        if message.kind == "notification":
            uri = _uri_of(message)
            key = (message.sender, message.method, uri)
            if key in self._notified:
                return
            self._notified.add(key)
        entry = _ComparedMessage(message, response, stream)
        if message.method == "tasks/get":
            task = request_name(message.method, message.decode().get("params"))
            earlier = self._polled.get(task)
            if earlier is not None:
                earlier.message, earlier.response = message, response
                return
            self._polled[task] = entry
        self.entries.append(entry)


class _Comparison:
    """The state of a comparison."""

    def __init__(
        self, old: RecordedTrace, new: RecordedTrace, ignore: list[Pointer], with_meta: bool
    ) -> None:
        self._old = old
        self._new = new
        self._ignore = ignore
        self._with_meta = with_meta
        self._ids = EqualIds(_time_of(old), _time_of(new))
        self._diff = TraceDiff()
        self._candidates: set[tuple[str, str]] = set()  # texts in results that may be ids
        self._unsearched: list[_Pair] = []  # requests in whose results none were looked for yet

    def run(self) -> TraceDiff:
        pairs = [
            pair
            for has_handshake in (False, True)
            for pair in zip_longest(
                *(
                    [each for each in trace.sessions if each.has_handshake is has_handshake]
                    for trace in (self._old, self._new)
                )
            )
        ]
        for number, (old, new) in enumerate(pairs, 1):
            self._compare_sessions(number, _Side(old), _Side(new))
        return self._diff

    def _compare_sessions(self, number: int, old: _Side, new: _Side) -> None:
        pairs, missing, added = self._align(old, new)
        found: list[tuple[float, TraceDifference]] = []
        for entry, other in pairs:
            found += [(entry.place, each) for each in self._compare(number, entry, other)]
        for place, each in self._order(number, pairs):
            found.append((place, each))
        for entry in missing:
            found.append((entry.place, _one_sided("missing", number, entry)))
        places = _Places(pairs)
        for entry in added:
            found.append((places.before(entry), _one_sided("added", number, entry)))
        found.sort(key=lambda pair: pair[0])
        for _, each in found:
            self._diff.add(each)

    # -- Alignment ---------------------------------------------------------------------------------

    def _align(
        self, old: _Side, new: _Side
    ) -> tuple[list[_Pair], list[_ComparedMessage], list[_ComparedMessage]]:
        # Entries with equal keys are in reverse order, so `pop` takes the first one.
        waiting: dict[Any, list[_ComparedMessage]] = {}
        for entry in reversed(new.entries):
            waiting.setdefault(_alignment_key(entry), []).append(entry)
        pairs: list[_Pair] = []
        missing = []
        for entry in old.entries:
            found = waiting.get(_alignment_key(entry))
            if found:
                pairs.append((entry, found.pop()))
            else:
                missing.append(entry)
        added = [entry for entries in waiting.values() for entry in entries]
        added.sort(key=lambda entry: entry.place)
        self._unsearched += pairs
        missing, added = self._align_rest(missing, added, pairs)
        pairs.sort(key=lambda pair: pair[0].place)
        return pairs, missing, added

    def _align_rest(
        self,
        missing: list[_ComparedMessage],
        added: list[_ComparedMessage],
        pairs: list[_Pair],
    ) -> tuple[list[_ComparedMessage], list[_ComparedMessage]]:
        """Align requests whose arguments differ only in ids, times and redacted values."""
        left: dict[Any, list[_ComparedMessage]] = {}
        aligned: set[_ComparedMessage] = set()
        for entry in added:
            left.setdefault(_name_key(entry), []).append(entry)
        still_missing = []
        for entry in missing:
            candidates = left.get(_name_key(entry), [])
            form = _params_form(entry.message)
            for other in candidates[:_MAX_VALUES]:
                sent_back = self._ids_sent_back(form, _params_form(other.message))
                if sent_back is not None:
                    for old_id, new_id in sent_back:
                        self._ids.pair(old_id, new_id)
                    pairs.append((entry, other))
                    self._unsearched.append((entry, other))
                    candidates.remove(other)
                    aligned.add(other)
                    break
            else:
                still_missing.append(entry)
        return still_missing, [entry for entry in added if entry not in aligned]

    def _find_candidates(self) -> None:
        """Collect the texts that differ in aligned results and may be ids."""
        pairs, self._unsearched = self._unsearched, []
        for old, new in pairs:
            if old.response is None or new.response is None:
                continue
            if len(self._candidates) >= _MAX_CANDIDATES:
                return
            results = old.response.decode().get("result"), new.response.decode().get("result")
            for each in find_differences(*results):
                if may_be_id(each.old) and may_be_id(each.new):
                    self._candidates.add((each.old, each.new))

    def _ids_sent_back(self, old: Any, new: Any) -> list[tuple[str, str]] | None:
        """Return the ids in which params differ, or None if they differ in anything else."""
        found = []
        self._find_candidates()
        for each in find_differences(old, new, (), self._ids.is_equal):
            texts = isinstance(each.old, str) and isinstance(each.new, str)
            if not texts or (each.old, each.new) not in self._candidates:
                return None
            found.append((each.old, each.new))
        return found

    # -- Comparison of one pair --------------------------------------------------------------------

    def _compare(
        self, number: int, old: _ComparedMessage, new: _ComparedMessage
    ) -> Iterator[TraceDifference]:
        if old.message.kind == "notification":
            return
        self._diff.compared += 1
        common: dict[str, Any] = {
            "what": _describe(old.message),
            "session": number,
        }
        if old.message.sender == "server" or self._with_meta:
            values = self._changed(
                {"params": old.message.decode().get("params")},
                {"params": new.message.decode().get("params")},
            )
            if values:
                yield TraceDifference(
                    kind="request changed",
                    part="request",
                    sender=old.message.sender,
                    old_line=old.message.line,
                    new_line=new.message.line,
                    values=_as_values(values),
                    value_count=len(values),
                    **common,
                )
        yield from self._compare_responses(old, new, common)

    def _compare_responses(
        self, old: _ComparedMessage, new: _ComparedMessage, common: dict[str, Any]
    ) -> Iterator[TraceDifference]:
        first, second = old.response, new.response
        if first is None and second is None:
            return
        sender: Literal["client", "server"] = (
            "client" if old.message.sender == "server" else "server"
        )
        common = {
            **common,
            "part": "response",
            "sender": sender,
            "old_line": old.message.line if first is None else first.line,
            "new_line": new.message.line if second is None else second.line,
        }
        if first is None or second is None:
            yield TraceDifference(kind="added" if first is None else "missing", **common)
            return
        if first.is_truncated or second.is_truncated:
            self._diff.not_compared += 1
            return
        self._diff.responses += 1
        old_members, new_members = first.decode(), second.decode()
        old_code, new_code = _code(old_members), _code(new_members)
        if old_code != new_code:
            yield TraceDifference(
                kind="error code changed", old_code=old_code, new_code=new_code, **common
            )
            return
        values = self._changed(_outcome(old_members), _outcome(new_members))
        if values:
            yield TraceDifference(
                kind="result changed",
                old_code=old_code,
                new_code=new_code,
                values=_as_values(values),
                value_count=len(values),
                **common,
            )

    def _changed(self, old: Any, new: Any) -> list[Difference]:
        return list(find_differences(old, new, (), self._is_equal))

    def _is_equal(self, pointer: Pointer, old: Any, new: Any) -> bool:
        if pointer and pointer[-1] == "_meta" and not self._with_meta:
            return True
        if matches_any(pointer, self._ignore):
            return True
        return self._ids.is_equal(pointer, old, new)

    # -- Order -------------------------------------------------------------------------------------

    def _order(self, number: int, pairs: list[_Pair]) -> Iterator[tuple[int, TraceDifference]]:
        """Yield the fewest entries that explain the change of order in each stream."""
        streams: dict[Any, list[_Pair]] = {}
        for old, new in pairs:
            if old.stream is not None and new.stream is not None:
                streams.setdefault((old.stream, new.stream), []).append((old, new))
        for entries in streams.values():
            kept = _longest_increasing([new.place for _, new in entries])
            for index, (old, new) in enumerate(entries):
                if index not in kept:
                    yield (
                        old.place,
                        TraceDifference(
                            kind="order changed",
                            what=_describe(old.message),
                            part="request" if old.message.kind == "request" else "notification",
                            sender=old.message.sender,
                            session=number,
                            old_line=old.message.line,
                            new_line=new.message.line,
                        ),
                    )


def _time_of(trace: RecordedTrace) -> RecordingTime:
    last = max((each.messages[-1].t for each in trace.sessions), default=0.0)
    return RecordingTime(trace.header.at, last)


def _alignment_key(entry: _ComparedMessage) -> Any:
    message = entry.message
    if message.kind == "notification":
        return message.sender, message.method, "notification", _uri_of(message)
    if message.sender == "server":
        return message.sender, message.method
    return message.sender, message.method, digest(_params_form(message))


def _name_key(entry: _ComparedMessage) -> Any:
    message = entry.message
    params = message.decode().get("params")
    return message.sender, message.kind, message.method, request_name(message.method, params)


def _params_form(message: RecordedMessage) -> Any:
    members = message.decode()
    params = members.get("params")
    pointers = [each[1:] for each in hidden_pointers(message, members) if each[:1] == ("params",)]
    form = call_form(message.method, hide(params, pointers))
    if isinstance(form, dict):
        return {key: ANY if key in _MADE_UP else value for key, value in form.items()}
    return form


def _uri_of(message: RecordedMessage) -> str:
    params = message.decode().get("params")
    uri = params.get("uri") if isinstance(params, dict) else None
    return uri if isinstance(uri, str) else ""


def _describe(message: RecordedMessage) -> str:
    return describe_request(message.method, message.decode().get("params"))


def _one_sided(
    kind: Literal["missing", "added"], number: int, entry: _ComparedMessage
) -> TraceDifference:
    return TraceDifference(
        kind=kind,
        what=_describe(entry.message),
        part="request" if entry.message.kind == "request" else "notification",
        sender=entry.message.sender,
        session=number,
        old_line=entry.message.line if kind == "missing" else 0,
        new_line=entry.message.line if kind == "added" else 0,
    )


class _Places:
    """Where entries that exist only in the second trace would stand in the first."""

    def __init__(self, pairs: list[_Pair]) -> None:
        ordered = sorted((new.place, old.place) for old, new in pairs)
        self._new = [new for new, _ in ordered]
        self._old = list(accumulate((old for _, old in ordered), max, initial=-inf))

    def before(self, entry: _ComparedMessage) -> float:
        """Return the place in the first trace of the entry before `entry`, -inf without one."""
        return self._old[bisect_left(self._new, entry.place)]


def _code(members: dict[str, Any]) -> int | None:
    error = members.get("error")
    if error is None:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else 0


def _outcome(members: dict[str, Any]) -> dict[str, Any]:
    return {key: members[key] for key in ("result", "error") if key in members}


def _as_values(differences: list[Difference]) -> tuple[ChangedValue, ...]:
    return tuple(
        ChangedValue(
            pointer=format_pointer(each.pointer),
            old=None if each.old is MISSING else each.old,
            new=None if each.new is MISSING else each.new,
            is_missing=each.old is MISSING,
            is_removed=each.new is MISSING,
        )
        for each in differences[:_MAX_VALUES]
    )


def _longest_increasing(values: list[int]) -> set[int]:
    """Return the indices of a longest increasing subsequence of `values`, which has a value."""
    ends: list[int] = []  # by length: the smallest last value of a subsequence
    last: list[int] = []  # the indices of these values
    previous: list[int | None] = []
    for index, value in enumerate(values):
        length = bisect_left(ends, value)
        if length == len(ends):
            ends.append(value)
            last.append(index)
        else:
            ends[length] = value
            last[length] = index
        previous.append(last[length - 1] if length else None)
    found: set[int] = set()
    place: int | None = last[-1]
    while place is not None:
        found.add(place)
        place = previous[place]
    return found
