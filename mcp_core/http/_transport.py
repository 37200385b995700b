"""What the two transports over HTTP have in common, from the client's end: a message goes out by a request of its own, and
what comes of that request is told to the connection.

Rules of this file:

1. Each message travels by itself, and the second might be there first. Where the order means something the later ones are held
   until the server has spoken to the first: all of them behind `initialized`, and requests behind `logging/setLevel`, which says how
   they are to be answered. But not for ever.
2. A call of ours always gets an end: its answer, or an error that says what HTTP did instead.
3. A message that is no request of ours has nobody who waits for it. If the server does not take it, or not in time, that is
   reported and no more.
4. What is safe to say twice is a property of the method.

It does not know sessions, streams and when to use which of them.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from mcp_core._errors import ConnectionLost, RemoteProtocolError
from mcp_core._jsonrpc import BadMessage, decode, encode_error
from mcp_core._methods import METHODS, Step
from mcp_core._outbox import Kind
from mcp_core._state import State

from ._response import refusal

if TYPE_CHECKING:
    from mcp_core._errors import McpTrioError
    from mcp_core._outbox import Outgoing
    from mcp_core.types import RequestId

    from ._client import HttpClient
    from ._messages import Head, Headers
    from ._response import Response

__all__ = ["Sent", "Transport", "Trip", "may_repeat", "operation_of", "own_headers", "step_of"]

_STEPS: Final = {row.name: row.step for row in METHODS}
_REPEATABLE: Final = frozenset(row.name for row in METHODS if not row.acts)
_SET_LEVEL: Final = "logging/setLevel"
_DENIED: Final = (401, 403)
# Seconds that others wait for what comes first. A server that takes longer to take it is at fault already.
_PATIENCE: Final = 10.0
# Seconds to say what becomes of a message that nobody waits for; of a request its caller decides.
_LONGEST: Final = 30.0


def may_repeat(out: Outgoing) -> bool:
    """Whether a message may be sent again if it is not known whether it arrived. What others have defined may do anything."""
    return out.kind is Kind.ANSWER or out.method in _REPEATABLE


def own_headers(out: Outgoing) -> Headers:
    """The headers that the caller wants."""
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in (out.headers or {}).items()]


def operation_of(out: Outgoing) -> str:
    """What a message does, in a few words: its method, and which tool, prompt or resource."""
    return f"{out.method} {_named_by(out.params)}".rstrip()


def _named_by(params: object) -> str:
    for name in ("name", "uri"):
        value = params.get(name) if isinstance(params, dict) else getattr(params, name, None)
        if isinstance(value, str):
            return value
    return ""


def step_of(out: Outgoing) -> Step | None:
    """What a message means to the handshake."""
    return _STEPS.get(out.method)


class Trip(abc.ABC):
    """A request of HTTP, and what its response is for. It is told of that by `HttpClient`, unless it is dropped.

    `key` is that of its call while that is under way, else 0; `id` that of the request of ours whose answer it brings, if it is for
    one; `response` what has come of the last call, None before its head.
    """

    key = 0
    id: RequestId | None = None
    response: Response | None = None

    @abc.abstractmethod
    def started(self, head: Head, now: float) -> None:
        """The response has begun."""

    @abc.abstractmethod
    def data(self, data: bytes, now: float) -> None:
        """A piece of its body."""

    @abc.abstractmethod
    def ended(self, error: str | None, now: float) -> None:
        """It is complete; or, with an `error`, there will be no more of it."""

    @abc.abstractmethod
    def denied(self, error: McpTrioError, now: float) -> None:
        """It could not be made, for there is no right to it."""

    def resumed(self, now: float) -> None:  # noqa: B027 - most have no times of their own
        """It was held for lack of the right to it, and is made again."""

    def due(self, now: float) -> None:
        """The time has come that it asked for."""
        raise AssertionError("it asked for none")  # pragma: no cover


class Transport(abc.ABC):
    """How messages go to the server of `client`, and come from it."""

    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self._held: list[Outgoing] = []
        self._gate: Trip | None = None  # what others wait for

    @abc.abstractmethod
    def _make(self, out: Outgoing, now: float) -> Sent | None:
        """Make the call that sends a message; None if there can be none."""

    @abc.abstractmethod
    def cancel(self, out: Outgoing, now: float) -> None:
        """Send the word that a request is given up, or what stands for it."""

    def close(self, now: float) -> None:
        """The conversation is over: let go of everything, and tell the server what it has to know."""
        self._held.clear()
        self._wait_for(None, now)

    @property
    def queued(self) -> int:
        """Bytes of messages that are held."""
        return sum(len(out.data) for out in self._held)

    def send(self, out: Outgoing, now: float) -> None:
        """Send a message, or hold it until it may be sent."""
        step = step_of(out)
        if out.kind is Kind.CANCEL:
            for held in self._held:
                if held.id == out.id and held.kind is Kind.REQUEST:
                    self._held.remove(held)
                    return
            self.cancel(out, now)
        elif step is Step.INITIALIZE:
            self.post(out, now)
        elif step is Step.INITIALIZED:
            self._wait_for(self.post(out, now), now)
        elif self._must_wait(out):
            self._held.append(out)
        else:
            trip = self.post(out, now)
            if out.method == _SET_LEVEL:
                self._wait_for(trip, now)

    def post(self, out: Outgoing, now: float) -> Sent | None:
        """Send a message now."""
        sent = self._make(out, now)
        if sent is not None:
            sent.resumed(now)
        return sent

    def look(self, now: float) -> None:
        """See whether what others wait for has been heard of."""
        gate = self._gate
        if gate is None:
            return
        # To a request the head of its response says nothing: many servers begin a stream before they have read the message.
        heard = (gate.response or not gate.key) if gate.id is None else not self.client.conn.awaits(gate.id)
        if heard:
            self._go_on(now)

    def due(self, now: float) -> None:
        """That took too long."""
        self._go_on(now)

    def _must_wait(self, out: Outgoing) -> bool:
        # Answers are not for a request to wait for: the server may need one before it can go on.
        return self._gate is not None and (self._gate.id is None or out.kind is Kind.REQUEST)

    def _wait_for(self, trip: Trip | None, now: float, seconds: float = _PATIENCE) -> None:
        self._gate = trip
        self.client.at(self, None if trip is None else now + seconds)

    def _go_on(self, now: float) -> None:
        """What was held goes out, as far as nothing of that is to be waited for."""
        self._wait_for(None, now)
        held, self._held = self._held, []
        for out in held:
            self.send(out, now)


class Sent(Trip):
    """A message that was POSTed."""

    def __init__(self, client: HttpClient, out: Outgoing) -> None:
        self.client = client
        self.out = out
        self.id = out.id if out.kind is Kind.REQUEST else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.out.method or 'an answer'}, {self.response or 'no response'}>"

    @property
    def prefix(self) -> str:
        """What the text of an error begins with: which message it is about. But who connects has sent none that he knows of."""
        return "" if self._opens else f"{self.out.method or 'an answer'}: "

    @property
    def _opens(self) -> bool:
        opening = step_of(self.out) is Step.INITIALIZE or self.client.conn.state is State.OPENING
        return opening and self.id is not None

    def doubt(self, problem: str) -> RemoteProtocolError:
        """The error of a response that makes no sense. At first that is mostly since there is something else at this URL."""
        question = "; is this the URL of an MCP server?" if self._opens else ""
        return RemoteProtocolError(f"{self.prefix}{problem}{question}")

    def resumed(self, now: float) -> None:
        if self.id is None:
            self.client.at(self, now + _LONGEST)

    def due(self, now: float) -> None:
        """Its response takes too long, or does not end."""
        if self.id is None:
            self.lost(f"no response within {_LONGEST:g} s", now)
        else:
            self.client.drop(self)

    def fail(self, error: McpTrioError, now: float, status: int = 0) -> None:
        """Whatever still comes is not wanted."""
        self.client.drop(self)
        self.client.failed(self.out, error, now, status)

    def denied(self, error: McpTrioError, now: float) -> None:
        self.fail(error, now, _DENIED[0])

    def lost(self, error: str | None, now: float) -> None:
        self.fail(ConnectionLost(f"{self.prefix}{error or 'the connection was closed'}"), now)

    def refused(self, response: Response, now: float) -> None:
        """The response is complete, and its status is that of an error. What a JSON-RPC error in its body says is more."""
        status = response.status
        answer = None if self.id is None or status in _DENIED else answer_in(response.body, self.id)
        if answer is not None:
            self.client.receive(answer, now, self.id, status)
        else:
            self.fail(refusal(self.prefix, response), now, status)


def answer_in(body: bytes, id: RequestId) -> bytes | None:
    """The answer to our request in the body of a response with a status of an error. There was one request, so an error is for that
    one, whatever id it carries: those who refuse before they have read the body do not know it."""
    try:
        envelope = decode(body)
    except BadMessage:
        return None
    if envelope.method is not UNSET:
        return None
    if envelope.id == id and type(envelope.id) is type(id):
        return body
    return None if envelope.error is UNSET else encode_error(id, bytes(envelope.error))
