"""The life cycle of a connection and of one request, as two tables.

1. These tables decide whether a message is legal *now*. Whether a revision has it at all is a row
   of `_methods.py`; whether it was negotiated is in `_capabilities.py`.
2. Role, transport and revision play no part here. Both tables read the same from either end.

**The connection.** In the stateful revisions a connection is opened by a handshake (`initialize`,
then the notification `initialized`), works, and is closed. In 2026-07-28 there is no handshake:
each request carries what the others would have negotiated. All its requests are one column,
`STATELESS`: legal while the connection is open, without effect on its state. Therefore one
connection can serve a handshake and stateless requests side by side, as the specification allows.

Three cells are our reading of the specification. `WORK` while `OPENING` is allowed: the text only
asks the client to wait for the response to `initialize`, and over HTTP the notification that ends
the opening can be overtaken. `PING` is legal before anything else, as the text says. `CLOSING`
still answers pings, so that a peer doesn't take a slow shutdown for a dead connection.

**The request.** It is `OPEN` from the moment it is admitted (or sent) until its one response.
`subscriptions/listen` becomes `STREAMING` with its acknowledgement. A cancelled request stays in
the table until its handler has returned. Then its response is dropped, which is the race that the
specification describes, and only then may its id be used again. `input_required` adds no state: it
is a response like any other, and the retry is another request.

A missing key is a violation. Read the tables as `TABLE[state][step] -> next state`.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcp_core._errors import LocalProtocolError
from mcp_core.protocol.revisions._methods import Step

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ENDING_STATES",
    "LIFECYCLE",
    "REQUEST",
    "RequestAction",
    "RequestPhase",
    "State",
    "Stats",
    "next_phase",
    "next_state",
]


class State(enum.Enum):
    """A connection's states."""

    __hash__ = object.__hash__

    NEW = 1
    OPENING = 2
    READY = 3
    CLOSING = 4
    CLOSED = 5


ENDING_STATES: Final = (State.CLOSING, State.CLOSED)


class RequestPhase(enum.Enum):
    """The phases of one request, in either direction."""

    __hash__ = object.__hash__

    OPEN = 1
    STREAMING = 2
    CANCELLED = 3
    DONE = 4


class RequestAction(enum.Enum):
    """The messages that concern a request, and so can change its phase."""

    __hash__ = object.__hash__

    REPORT = "progress or log"
    ACKNOWLEDGE = "acknowledgement"
    CHANGE = "change"
    RESPONSE = "result or error"
    CANCEL = "cancellation"


NEW, OPENING, READY, CLOSING, CLOSED = State

LIFECYCLE: Final[Mapping[State, Mapping[Step, State]]] = {
    NEW: {Step.INITIALIZE: OPENING, Step.PING: NEW, Step.STATELESS: NEW, Step.CLOSE: CLOSED},
    OPENING: {
        Step.INITIALIZED: READY,
        Step.PING: OPENING,
        Step.WORK: OPENING,
        Step.STATELESS: OPENING,
        Step.CLOSE: CLOSED,
    },
    READY: {Step.PING: READY, Step.WORK: READY, Step.STATELESS: READY, Step.CLOSE: CLOSED},
    CLOSING: {Step.PING: CLOSING, Step.CLOSE: CLOSED},
    CLOSED: {},
}

REQUEST: Final[Mapping[RequestPhase, Mapping[RequestAction, RequestPhase]]] = {
    RequestPhase.OPEN: {
        RequestAction.REPORT: RequestPhase.OPEN,
        RequestAction.ACKNOWLEDGE: RequestPhase.STREAMING,
        RequestAction.RESPONSE: RequestPhase.DONE,
        RequestAction.CANCEL: RequestPhase.CANCELLED,
    },
    RequestPhase.STREAMING: {
        RequestAction.CHANGE: RequestPhase.STREAMING,
        RequestAction.RESPONSE: RequestPhase.DONE,
        RequestAction.CANCEL: RequestPhase.CANCELLED,
    },
    RequestPhase.CANCELLED: {RequestAction.RESPONSE: RequestPhase.CANCELLED},
    RequestPhase.DONE: {},
}


def next_state(state: State, step: Step) -> State:
    """Return the state after `step`.

    Raises:
        LocalProtocolError: the step isn't legal now. If it was the peer's, the caller converts the
            error.
    """
    try:
        return LIFECYCLE[state][step]
    except KeyError:
        raise LocalProtocolError(
            _EXPLANATIONS.get((state, step), f"{step.value} is not possible when {state.name}")
        ) from None


def next_phase(phase: RequestPhase, action: RequestAction) -> RequestPhase | None:
    """Return a request's phase after `action`, or None if that isn't legal."""
    return REQUEST[phase].get(action)


_EXPLANATIONS: Final = {
    (NEW, Step.WORK): "the conversation has not been initialized: send initialize first",
    (NEW, Step.INITIALIZED): "initialized before initialize",
    (OPENING, Step.INITIALIZE): "initialize was already sent",
    (READY, Step.INITIALIZE): "the conversation is already initialized",
    (READY, Step.INITIALIZED): "the conversation is already initialized",
    (CLOSED, Step.WORK): "the connection is closed",
}


class Stats(Struct, frozen=True, kw_only=True):
    """The current contents of a connection, and totals since it began. Sizes are in bytes.

    Reading them has no effect and costs a few additions.
    """

    in_flight: int  # requests of the peer that have an event and no response yet
    waiting: int  # requests of the peer that wait because of `Limits.in_flight`
    calls: int  # our requests without a response
    events: int  # events that `next_event` hasn't returned yet
    buffered: int  # bytes received and not processed
    queued: int  # bytes to send
    received: int  # total bytes received
    sent: int  # total bytes taken to be sent
    rejected: int  # total invalid or rejected messages of the peer
