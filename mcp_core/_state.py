"""What may happen when: the life of a connection and the life of one request, as two tables.

Two rules hold here:

1. Everything that decides whether a message is legal *now* is in this file. What is legal at all in a revision is a row
   of `_methods.py`; whether it was negotiated is `_capabilities.py`.
2. This file does not know which role we play, which transport carries the messages or which revision is spoken. Both
   tables read the same from either end.

**The connection.** In the stateful revisions a connection is opened by a handshake (`initialize`, then the notification
`initialized`), works, and is closed. In 2026-07-28 there is no handshake: each request brings along what the others would
have negotiated. That whole era is one column, `STATELESS`: legal while the connection is open, and it moves nothing.
Because of this one connection can serve a handshake and stateless requests side by side, as the specification allows.

Three cells are readings of ours. `WORK` while `OPENING` is allowed: the text only asks the client to wait for the answer
to `initialize`, and over HTTP the notification that ends the opening can be overtaken. `PING` is legal before anything
else, as the text says outright. `CLOSING` still answers pings, so that a peer does not take a slow end for a dead one.

**The request.** It is `OPEN` from the moment it is admitted (or sent) until its one answer. `subscriptions/listen`
becomes `STREAMING` with its acknowledgement. A cancelled request stays in the table until its handler has come back:
then its answer is dropped, which is the race that the specification asks both sides to live with, and only then may its
id be used again. `input_required` adds no state: it is an answer like any other, and the retry is another request.

A missing key is a violation. Read the tables as `TABLE[state][what happens] -> next state`.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from ._errors import LocalProtocolError
from ._methods import Step

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LIFECYCLE", "REQUEST", "Act", "Life", "State", "after", "next_state"]


class State(enum.Enum):
    """Where a connection is."""

    __hash__ = object.__hash__

    NEW = 1
    OPENING = 2
    READY = 3
    CLOSING = 4
    CLOSED = 5


class Life(enum.Enum):
    """Where one request is, in either direction."""

    __hash__ = object.__hash__

    OPEN = 1
    STREAMING = 2
    CANCELLED = 3
    DONE = 4


class Act(enum.Enum):
    """What can happen to a request: something is said on its behalf, it is acknowledged, it ends."""

    __hash__ = object.__hash__

    NOTE = "progress or log"
    ACKNOWLEDGE = "acknowledgement"
    CHANGE = "change"
    ANSWER = "result or error"
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

REQUEST: Final[Mapping[Life, Mapping[Act, Life]]] = {
    Life.OPEN: {
        Act.NOTE: Life.OPEN,
        Act.ACKNOWLEDGE: Life.STREAMING,
        Act.ANSWER: Life.DONE,
        Act.CANCEL: Life.CANCELLED,
    },
    Life.STREAMING: {Act.CHANGE: Life.STREAMING, Act.ANSWER: Life.DONE, Act.CANCEL: Life.CANCELLED},
    Life.CANCELLED: {Act.ANSWER: Life.CANCELLED},
    Life.DONE: {},
}


def next_state(state: State, step: Step) -> State:
    """The state after `step`.

    Raises:
        LocalProtocolError: the step is not legal now. The caller turns it round if the step was the peer's.
    """
    try:
        return LIFECYCLE[state][step]
    except KeyError:
        raise LocalProtocolError(
            _EXPLANATIONS.get((state, step), f"{step.value} is not possible when {state.name}")
        ) from None


def after(life: Life, act: Act) -> Life | None:
    """The life of a request after `act`, or None if the act is not legal."""
    return REQUEST[life].get(act)


_EXPLANATIONS: Final = {
    (NEW, Step.WORK): "the conversation has not been initialized: send initialize first",
    (NEW, Step.INITIALIZED): "initialized before initialize",
    (OPENING, Step.INITIALIZE): "initialize was already sent",
    (READY, Step.INITIALIZE): "the conversation is already initialized",
    (READY, Step.INITIALIZED): "the conversation is already initialized",
    (CLOSED, Step.WORK): "the connection is closed",
}
