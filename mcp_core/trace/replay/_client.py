"""A trace's client: it sends a live server the recorded client's messages, in their order.

1. The replay walks through the recorded session from its beginning. It sends each client message,
   and waits for each server message until that has come or a timeout has passed. So each message is
   sent after everything that the recorded client had seen before it.
2. The wait for a change notification is short. The notification may have been the reason for the
   next message, but it may also depend on time, and not come.
3. If a task was over when the recorded client asked for it, the replay asks until it is over.
4. Values that the recorded server made up are replaced by the live server's (`ValueMapping`).
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable
from itertools import count, groupby
from operator import itemgetter
from typing import Any, Final

from mcp_core.trace._ids import id_key
from mcp_core.trace._members import lookup

from ._keys import hidden_pointers
from ._mapping import ValueMapping
from ._recorded import (
    RecordedMessage,
    RecordedSession,
    decode_message,
    describe_request,
    encode_message,
)
from ._turns import LONG_LIVED, Turn, seconds_to_repeat, turns_of

__all__ = ["RESPONSE_TIMEOUT", "ReplayClient"]

RESPONSE_TIMEOUT: Final = 10.0  # seconds
_SLOWER: Final = 3.0  # a live response may take so many times the recorded time
_GRACE: Final = 1.0  # seconds; the shortest wait for a change notification
_MAX_UNANSWERED: Final = 3  # requests in a row; then the replay stops
_MAX_PROBLEMS: Final = 1_000
_CHANGES: Final = frozenset(
    """
    notifications/tools/list_changed notifications/prompts/list_changed
    notifications/resources/list_changed notifications/resources/updated notifications/tasks/status
    notifications/tasks notifications/elicitation/complete notifications/subscriptions/acknowledged
    """.split()
)
_METHOD_NOT_FOUND: Final = -32601
_MAX_HIDDEN: Final = 10


class ReplayClient:
    """The client of one recorded session, for a live server.

    Call `begin`, then `receive` with each message from the server, and `advance` at
    `next_deadline`. After each call, send `messages_to_send`. Stop once `is_over` is True. The
    `now` of its methods is a monotonic time in seconds.

    Args:
        session: the recorded session.
        response_timeout: seconds for each response. By default 10, or three times the recorded
            time if that is more.

    Attributes:
        response_timeout: seconds for a response without a recorded time.
        is_over: everything was sent, and each response has come or its timeout has passed.
        problems: texts about differences from the recording, the first 1,000.
        hidden: the line numbers of the client's messages with redacted values, the first ten. They
            are sent as they are.
        unanswered: requests that the server did not answer in time.
        answered: requests that it answered.
        sent: messages that were sent.
    """

    def __init__(self, session: RecordedSession, *, response_timeout: float | None = None) -> None:
        self._messages = session.messages
        self.response_timeout = RESPONSE_TIMEOUT if response_timeout is None else response_timeout
        self._is_extended = response_timeout is None  # the user's own timeout stays as it is
        self.is_over = False
        self.problems: list[str] = []
        self.hidden = _lines_with_hidden(session.messages)
        self.unanswered = 0
        self.answered = 0
        self.sent = 0
        self._place = 0
        self._repeats: list[tuple[float, Turn]] = []  # requests about running tasks
        self._waits_until = math.inf
        self._silent = 0  # requests in a row that were not answered in time
        self._mapping = ValueMapping()
        self._ids = count(1)
        self._sent_at: dict[RecordedMessage, float] = {}
        self._live_id: dict[int | str, int | str] = {}  # the client's request ids, by recorded id
        self._used: set[int | str] = set()
        self._pending: dict[int | str, Turn] = {}  # live requests without a response
        self._done: set[Turn] = set()
        self._turn_of: dict[RecordedMessage, Turn] = {}  # of requests and of responses
        self._asked: dict[RecordedMessage, Turn] = {}  # of the server's requests
        self._by_method: dict[str, deque[RecordedMessage]] = {}
        self._their_ids: dict[RecordedMessage, int | str] = {}
        self._answers: dict[RecordedMessage, RecordedMessage] = {}  # to the server's request
        self._changes: Counter[tuple[str, str]] = Counter()
        self._given_up: set[tuple[str, str]] = set()
        self._outputs: list[tuple[bytes, int]] = []  # with the number of their batch, or 0
        for turn in turns_of(session):
            self._add_turn(turn)

    def __repr__(self) -> str:
        return f"<ReplayClient at {self._place} of {len(self._messages)} messages>"

    def _add_turn(self, turn: Turn) -> None:
        self._turn_of |= dict.fromkeys(filter(None, (turn.message, turn.response)), turn)
        for item in turn.items:
            if item.message.kind == "request":
                self._asked[item.message] = turn
                self._by_method.setdefault(item.message.method, deque()).append(item.message)
                if item.answer is not None:
                    self._answers[item.answer] = item.message

    # -- The driver's side -------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """Send what comes before the first response."""
        self._walk(now)

    def receive(self, data: bytes, now: float) -> None:
        """Take `data`, a message from the server or a batch."""
        decoded = decode_message(data)
        for each in decoded if isinstance(decoded, list) else [decoded]:
            if isinstance(each, dict):
                self._receive_one(each, now)
            else:
                self._note(f"the server sent something that is not a message: {data[:80]!r}")
        self._walk(now)

    def advance(self, now: float) -> None:
        """Repeat the requests that are due, and pass over a message that is overdue at `now`."""
        self._repeat(now)
        if now >= self._waits_until:
            self._give_up(now)
            self._walk(now)

    def postpone(self, seconds: float) -> None:
        """Wait `seconds` longer for the next message, because sending was blocked for so long."""
        self._waits_until += seconds

    def request_failed(self, ids: Iterable[int | str], reason: str, now: float) -> None:
        """Record that the requests with `ids` get no response, for `reason`."""
        for id in ids:
            turn = self._pending.pop(id, None)
            if turn is not None:
                self.unanswered += 1
                self._done.add(turn)
                message = _request_of(turn)
                self._note(f"no response to {_describe(message)}: {reason} (line {message.line})")
        self._walk(now)

    def note(self, text: str) -> None:
        """Keep `text`, about a difference from the recording."""
        self._note(text)

    def disconnected(self) -> None:
        """Stop the replay: the server has disconnected."""
        if not self.is_over:
            self.is_over = True
            waiting = [_request_of(turn) for turn in self._pending.values()]
            self.unanswered += sum(each.method not in LONG_LIVED for each in waiting)
            left = sum(each.sender == "client" for each in self._messages[self._place :])
            if left or any(each.method not in LONG_LIVED for each in waiting):
                self._note(
                    f"the server ended the conversation before line"
                    f" {self._messages[self._place].line}:"
                    f" {left} messages were not sent"
                )

    @property
    def next_deadline(self) -> float:
        """The time at which to call `advance`, or infinity."""
        if self.is_over:
            return math.inf
        return min(self._waits_until, min((time for time, _ in self._repeats), default=math.inf))

    def is_waiting_for(self, ids: Iterable[int | str]) -> bool:
        """Return True if the replay waits for a response to one of the live requests `ids`."""
        turns = [self._pending[id] for id in ids if id in self._pending]
        is_awaited = any(turn not in self._done and not turn.is_long_lived for turn in turns)
        return is_awaited and not self.is_over

    def messages_to_send(self) -> list[bytes]:
        """Return the messages to send, in their order, without line feeds."""
        found: list[bytes] = []
        for batch, outputs in groupby(self._outputs, key=itemgetter(1)):
            messages = [data for data, _ in outputs]
            found += [b"[" + b",".join(messages) + b"]"] if batch else messages
        self._outputs.clear()
        return found

    # -- What the server sends ---------------------------------------------------------------------

    def _receive_one(self, message: dict[str, Any], now: float) -> None:
        method = message.get("method")
        if isinstance(method, str) and "id" in message:
            self._receive_request(method, message)
        elif isinstance(method, str):
            self._changes[_change_key(method, message.get("params"))] += 1
        else:
            self._receive_response(message, now)

    def _receive_request(self, method: str, message: dict[str, Any]) -> None:
        key = id_key(message["id"])
        waiting = self._by_method.get(method)
        if key is not None and waiting:
            recorded = waiting.popleft()
            self._their_ids[recorded] = message["id"]
            self._mapping.learn(recorded.decode().get("params"), message.get("params"))
            return
        if method == "ping":
            answer: dict[str, Any] = {"result": {}}
        else:
            self._note(f"the server sent a request that is not in the trace: {method[:80]}")
            error = {"code": _METHOD_NOT_FOUND, "message": f"not in the trace: {method[:80]}"}
            answer = {"error": error}
        self._outputs.append((encode_message({"jsonrpc": "2.0", "id": message["id"], **answer}), 0))

    def _receive_response(self, message: dict[str, Any], now: float) -> None:
        key = id_key(message.get("id"))
        turn = None if key is None else self._pending.pop(key, None)
        if turn is None:
            self._note("the server sent a response to no request")
            return
        self.answered += 1
        self._silent = 0
        seconds = seconds_to_repeat(turn, message)
        if seconds is not None:
            self._repeats.append((now + seconds, turn))
            return
        self._done.add(turn)
        if turn.response is not None and "result" in message:
            recorded = turn.response.decode().get("result")
            self._mapping.learn_result(_request_of(turn).method, recorded, message["result"])

    def _repeat(self, now: float) -> None:
        """Send again the requests about tasks that are due."""
        due = [turn for time, turn in self._repeats if time <= now]
        self._repeats = [each for each in self._repeats if each[0] > now]
        for turn in due:
            if turn not in self._done:
                request = _request_of(turn)
                members = request.decode()
                members["params"] = self._mapping.apply(members.get("params"))
                members["id"] = self._request_id(request, members.get("id"))
                self._output(encode_message(members), request)

    # -- The walk ----------------------------------------------------------------------------------

    def _walk(self, now: float) -> None:
        """Walk through the messages until the replay has to wait for one."""
        while not self.is_over and self._place < len(self._messages):
            message = self._messages[self._place]
            if message.sender == "client":
                self._send(message, now)
            elif not self._has_come(message):
                self._waits_until = min(self._waits_until, self._deadline(message, now))
                return
            self._waits_until = math.inf
            self._place += 1
        self.is_over = True

    def _has_come(self, message: RecordedMessage) -> bool:
        """Return True if the live server has sent the message that the recorded one sent here."""
        if message.kind == "response":
            turn = self._turn_of.get(message)
            return turn is None or turn in self._done or turn.is_long_lived
        if message.kind == "request":
            return message in self._their_ids
        if message.method not in _CHANGES:
            return True
        key = _change_key(message.method, message.decode().get("params"))
        if key in self._given_up:
            return True
        if self._changes[key] > 0:
            self._changes[key] -= 1
            return True
        return False

    def _deadline(self, message: RecordedMessage, now: float) -> float:
        """Return the time until which to wait for a server message."""
        if message.kind == "notification":
            gap = message.t - self._messages[self._place - 1].t  # negative for the first one
            return now + min(max(_GRACE, _SLOWER * gap), self.response_timeout)
        if message.kind == "request":
            asked = self._asked[message]
            if asked in self._done:
                return now + _GRACE  # the request may have had another cause
        else:
            asked = self._turn_of[message]
        if asked.message is None:
            return now + self.response_timeout
        seconds = self.response_timeout
        if self._is_extended:
            seconds = max(seconds, _SLOWER * (message.t - asked.message.t))
        return now + seconds

    def _give_up(self, now: float) -> None:
        """Pass over the message that didn't come in time."""
        self._waits_until = math.inf
        message = self._messages[self._place]
        self._place += 1
        if message.kind == "notification":
            key = _change_key(message.method, message.decode().get("params"))
            self._given_up.add(key)
            return
        if message.kind == "request":
            self._note(f"the server did not send {message.method}, as in line {message.line}")
            self._by_method[message.method].remove(message)
            return
        turn = self._turn_of[message]
        self.unanswered += 1
        self._silent += 1
        self._done.add(turn)
        request = _request_of(turn)
        waited = f"{now - self._sent_at[request]:.0f} s"
        self._note(f"no response to {_describe(request)} within {waited} (line {request.line})")
        if self._silent >= _MAX_UNANSWERED:
            self._note(f"the server did not answer {self._silent} requests in a row: stopped")
            self.is_over = True

    # -- What is sent ------------------------------------------------------------------------------

    def _send(self, message: RecordedMessage, now: float) -> None:
        self._sent_at[message] = now
        if message.kind == "junk":
            self._output(message.data, message)
            return
        members = message.decode()
        if message.kind == "response":
            if not self._adapt_response(message, members):
                return
        else:
            if "params" in members:
                members["params"] = self._mapping.apply(members["params"])
            if message.kind == "request":
                members["id"] = self._request_id(message, members.get("id"))
            elif message.method == "notifications/cancelled":
                self._adapt_cancelled(members)
        self._output(encode_message(members), message)

    def _output(self, data: bytes, message: RecordedMessage) -> None:
        self.sent += 1
        self._outputs.append((data, message.batch))

    def _adapt_response(self, message: RecordedMessage, members: dict[str, Any]) -> bool:
        """Put the live id into a response. Return False if the live server sent no request."""
        request = self._answers.get(message)
        if request is None:
            return True  # the recorded response answered no request either
        if request not in self._their_ids:
            self._note(
                f"the server did not send {request.method}, as in line {request.line}: there is"
                " nothing to answer"
            )
            return False
        members["id"] = self._their_ids[request]
        if "result" in members:
            members["result"] = self._mapping.apply(members["result"])
        return True

    def _adapt_cancelled(self, members: dict[str, Any]) -> None:
        key = id_key(lookup(members, "params", "requestId"))
        if key is not None and key in self._live_id:
            members["params"]["requestId"] = self._live_id[key]

    def _request_id(self, message: RecordedMessage, recorded: Any) -> Any:
        """Return the id for a request: the recorded one unless this session has used it."""
        key = message.id
        if key is None:
            return recorded  # not an id, so there is no response to it
        live = key
        while live in self._used:
            live = f"replay-{next(self._ids)}"
        self._used.add(live)
        self._live_id[key] = live
        self._pending[live] = self._turn_of[message]
        return live

    def _note(self, text: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(text)


def _request_of(turn: Turn) -> RecordedMessage:
    """Return the request of a turn that has one."""
    assert turn.message is not None
    return turn.message


def _describe(request: RecordedMessage) -> str:
    return describe_request(request.method, request.decode().get("params"))


def _lines_with_hidden(messages: list[RecordedMessage]) -> list[int]:
    found: list[int] = []
    for message in messages:
        has_hidden = message.redacted or b"redacted" in message.data
        if message.sender != "client" or not has_hidden or len(found) >= _MAX_HIDDEN:
            continue
        if hidden_pointers(message, message.decode()):
            found.append(message.line)
    return found


def _change_key(method: str, params: Any) -> tuple[str, str]:
    uri = lookup(params, "uri")
    return method, uri if isinstance(uri, str) else ""
