"""The two tables of the life cycle, cell by cell."""

from __future__ import annotations

import pytest

from mcp_core import LocalProtocolError, State
from mcp_core.protocol.connection._state import (
    LIFECYCLE,
    REQUEST,
    RequestAction,
    RequestPhase,
    next_phase,
    next_state,
)
from mcp_core.protocol.revisions._methods import Step

# Rows are states; columns are INITIALIZE INITIALIZED PING WORK STATELESS CLOSE; a dash is a
# violation.
CONNECTION = """
NEW      OPENING -      NEW     -       NEW     CLOSED
OPENING  -       READY  OPENING OPENING OPENING CLOSED
READY    -       -      READY   READY   READY   CLOSED
CLOSING  -       -      CLOSING -       -       CLOSED
CLOSED   -       -      -       -       -       -
"""
CELLS = [
    (State[state], step, None if cell == "-" else State[cell])
    for state, *cells in map(str.split, CONNECTION.strip().splitlines())
    for step, cell in zip(Step, cells, strict=True)
]


@pytest.mark.parametrize(("state", "step", "then"), CELLS)
def test_life_cycle_cells_match_table(state: State, step: Step, then: State | None) -> None:
    if then is None:
        with pytest.raises(LocalProtocolError):
            next_state(state, step)
    else:
        assert next_state(state, step) is then


def test_life_cycle_has_no_other_cells() -> None:
    assert len(CELLS) == len(State) * len(Step)
    assert set(LIFECYCLE) == set(State)


@pytest.mark.requirement("LIFE-10", "LIFE-12")
@pytest.mark.parametrize(
    ("state", "step", "words"),
    [
        (State.NEW, Step.WORK, "send initialize first"),
        (State.NEW, Step.INITIALIZED, "initialized before initialize"),
        (State.OPENING, Step.INITIALIZE, "initialize was already sent"),
        (State.READY, Step.INITIALIZE, "already initialized"),
        (State.READY, Step.INITIALIZED, "already initialized"),
        (State.CLOSED, Step.WORK, "the connection is closed"),
        (State.CLOSED, Step.PING, "ping is not possible when CLOSED"),
    ],
)
def test_life_cycle_violation_has_explanation(state: State, step: Step, words: str) -> None:
    with pytest.raises(LocalProtocolError, match=words):
        next_state(state, step)


@pytest.mark.parametrize(
    "state", [state for state in State if state not in (State.CLOSING, State.CLOSED)]
)
def test_life_cycle_stateless_request_keeps_state(state: State) -> None:
    assert next_state(state, Step.STATELESS) is state


# Rows are phases; columns are NOTE ACKNOWLEDGE CHANGE ANSWER CANCEL.
REQUESTS = """
OPEN       OPEN STREAMING -         DONE      CANCELLED
STREAMING  -    -         STREAMING DONE      CANCELLED
CANCELLED  -    -         -         CANCELLED -
DONE       -    -         -         -         -
"""
REQUEST_CELLS = [
    (RequestPhase[life], act, None if cell == "-" else RequestPhase[cell])
    for life, *cells in map(str.split, REQUESTS.strip().splitlines())
    for act, cell in zip(RequestAction, cells, strict=True)
]


@pytest.mark.parametrize(("life", "act", "then"), REQUEST_CELLS)
def test_request_phase_cells_match_table(
    life: RequestPhase, act: RequestAction, then: RequestPhase | None
) -> None:
    assert next_phase(life, act) is then


def test_request_phase_has_no_other_cells() -> None:
    assert len(REQUEST_CELLS) == len(RequestPhase) * len(RequestAction)
    assert set(REQUEST) == set(RequestPhase)


@pytest.mark.requirement("PROG-5")
@pytest.mark.parametrize("life", [RequestPhase.CANCELLED, RequestPhase.DONE])
def test_request_phase_done_allows_nothing(life: RequestPhase) -> None:
    assert (
        next_phase(life, RequestAction.REPORT)
        is next_phase(life, RequestAction.CHANGE)
        is next_phase(life, RequestAction.CANCEL)
        is None
    )
