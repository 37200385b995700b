"""Ids and results of one server's clients, to tell which of them a client has got of another one.

Only HTTP counts: over stdio each conversation has a process of its own. Each trace is of one
server, and each of its conversations is of one client.
"""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp_core.trace._ids import text_key

from ._bounds import put
from ._http import SESSION

if TYPE_CHECKING:
    from mcp_core.trace.judge._message import SeenMessage, SeenRequest

    from ._http import SeenExchange

__all__ = ["MARKED_METHODS", "AcrossClients", "Given", "MixedResult"]

MAX_GIVEN: Final = 10_000  # session ids, task ids and events
MAX_NAMES: Final = 100  # tools and prompts whose last requests are remembered
MAX_REQUESTS: Final = 8  # for one tool or prompt, and for all resources
MAX_REQUEST_BYTES: Final = 4_096  # of a request, and of its result
# Characters. A result that repeats so long a text shows its request; shorter ones come by chance.
MIN_MARK: Final = 16
# Methods whose results can repeat texts of their requests.
MARKED_METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
_CREDENTIALS: Final = ("authorization", "cookie", "x-api-key")


class Given(NamedTuple):
    """Where an id was given out.

    Attributes:
        conversation, line: the conversation, and the line of the response.
        has_credentials: the request had credentials, by which the server can know its sender.
    """

    conversation: int
    line: int
    has_credentials: bool


class MarkedRequest(NamedTuple):
    """A request with texts that its result may repeat: in arguments, or as a resource's URI.

    Attributes:
        conversation, line: the conversation, and the line of the response.
        arguments: the arguments or the URI as JSON.
        marks: their long texts.
        result: the result as JSON, without its `_meta`.
    """

    conversation: int
    line: int
    arguments: str
    marks: tuple[str, ...]
    result: str

    @property
    def is_right(self) -> bool:
        """True if the result has all the request's own marks."""
        return all(each in self.result for each in self.marks)

    @property
    def is_foreign(self) -> bool:
        """True if the result has none of them."""
        return not any(each in self.result for each in self.marks)


class MixedResult(NamedTuple):
    """A result that belongs to another client's request.

    Attributes:
        line: its line.
        other: the line of the same result, which the other client has got.
    """

    line: int
    other: int


class AcrossClients:
    """The ids and results that the clients of one server have got, over HTTP.

    Attributes:
        last_end: the conversation and the line at which a client last ended its session, or None.
    """

    def __init__(self) -> None:
        self.last_end: tuple[int, int] | None = None
        self._sessions: OrderedDict[str, Given] = OrderedDict()
        self._tasks: OrderedDict[str, Given] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._events: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._marked: OrderedDict[tuple[str, str], deque[MarkedRequest]] = OrderedDict()

    # -- Sessions ----------------------------------------------------------------------------------

    def find_session(self, id: str) -> Given | None:
        """Return where a session's id was given out, or None if that is unknown."""
        return self._sessions.get(text_key(id))

    def has_ended(self, id: str) -> bool:
        """Return True if a client has ended the session."""
        return text_key(id) in self._ended

    def receive_response(self, exchange: SeenExchange, conversation: int) -> None:
        """Record the session that a response gives out or ends."""
        request, line = exchange.request, exchange.response_line
        given = exchange.response_headers.get(SESSION)
        is_handshake = request is not None and request.method == "initialize"
        if given is not None and is_handshake and text_key(given) not in self._sessions:
            found = Given(conversation, line, has_credentials(exchange))
            put(self._sessions, text_key(given), found, MAX_GIVEN)
        sent = exchange.headers.get(SESSION)
        if sent is not None and exchange.method == "DELETE" and exchange.status < 300:
            self.last_end = conversation, line
            put(self._ended, text_key(sent), None, MAX_GIVEN)

    # -- Tasks and events --------------------------------------------------------------------------

    def find_task(self, id: str) -> Given | None:
        """Return where a task's id was first given out, or None if that is unknown."""
        return self._tasks.get(text_key(id))

    def add_task(self, id: str, given: Given) -> None:
        """Record where a task's id was given out."""
        if text_key(id) not in self._tasks:
            put(self._tasks, text_key(id), given, MAX_GIVEN)

    def find_event(self, id: str, text: str | bytes) -> int | None:
        """Return the conversation that had an event with an id and a message, or None."""
        return self._events.get((text_key(id), hash(text)))

    def add_event(self, id: str, text: str | bytes, conversation: int) -> None:
        """Record an event with an id and a message."""
        key = text_key(id), hash(text)
        if key not in self._events:
            put(self._events, key, conversation, MAX_GIVEN)

    # -- Results -----------------------------------------------------------------------------------

    def find_mixed_result(self, message: SeenMessage, conversation: int) -> MixedResult | bool:
        """Return the result that belongs to another client, as far as this one shows it.

        It may be this result or an earlier one of the client. False is returned if the result
        shows nothing, True if it is right and another client has sent such a request.

        A request is known to have another one's result if the same request of the same client has
        its own result at another time, and if the other client's result is exactly this one.
        """
        request = message.request
        marked = None if request is None else _marked_request(message, request, conversation)
        if marked is None or request is None:
            return False
        known = self._marked.get(_target(request), ())
        others = [each for each in known if each.conversation != conversation and each.is_right]
        if not others:
            return False
        for each in known:
            is_same = each.conversation == conversation and each.arguments == marked.arguments
            if is_same and each.is_right is not marked.is_right:
                wrong = marked if each.is_right else each
                if wrong.is_foreign:
                    for other in others:
                        if other.result == wrong.result and other.line < wrong.line:
                            return MixedResult(wrong.line, other.line)
        return marked.is_right

    def add_result(self, message: SeenMessage, request: SeenRequest, conversation: int) -> None:
        """Record the result of a request with one of the `MARKED_METHODS`."""
        marked = _marked_request(message, request, conversation)
        if marked is None:
            return
        target = _target(request)
        if target not in self._marked:
            put(self._marked, target, deque(maxlen=MAX_REQUESTS), MAX_NAMES)
        self._marked[target].append(marked)


def has_credentials(exchange: SeenExchange | None) -> bool:
    """Return True if a request has credentials, by which the server can know its sender."""
    return exchange is not None and any(name in exchange.headers for name in _CREDENTIALS)


def _target(request: SeenRequest) -> tuple[str, str]:
    """Return what a request is compared by: its method, and the tool's or the prompt's name."""
    name = request.params.get("name")
    return request.method, text_key(name) if isinstance(name, str) else ""


def _marked_request(
    message: SeenMessage, request: SeenRequest, conversation: int
) -> MarkedRequest | None:
    """Return a request with long texts; None if it has none, or is too large."""
    arguments = request.params.get("arguments")
    if request.method == "resources/read":
        arguments = {"uri": request.params.get("uri")}
    is_small = request.size <= MAX_REQUEST_BYTES and message.size <= MAX_REQUEST_BYTES
    if not message.exchange or not isinstance(arguments, dict) or not is_small:
        return None
    if request.is_redacted or message.redacted or message.result is None:
        return None
    marks = tuple(each for each in arguments.values() if _is_mark(each))
    if not marks:
        return None
    result = {key: value for key, value in message.result.items() if key != "_meta"}
    return MarkedRequest(conversation, message.line, _as_json(arguments), marks, _as_json(result))


def _is_mark(value: Any) -> bool:
    """Return True if a text is long enough, and the same in JSON."""
    return (
        isinstance(value, str)
        and len(value) >= MIN_MARK
        and value.isascii()
        and value.isprintable()
        and '"' not in value
        and "\\" not in value
    )


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
