"""Diagrams of the state machines, from their tables.

1. The tables give the states, the transitions and their names. This file gives places only.
2. A state or a transition without a place is an error, and so is a place without one in the table.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from mcp_core.host import SERVER_TRANSITIONS, ServerEvent, ServerState
from mcp_core.protocol.connection._state import LIFECYCLE, REQUEST, RequestPhase, State
from mcp_core.tasks import TRANSITIONS
from mcp_core.types import TaskStatus

from ._svg import BLUE, INK, LINE, MUTED, PANEL, TINT, Canvas, Point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["draw_lifecycle", "draw_request", "draw_server", "draw_task"]

# The status of a task is a text, and its actions are classes. The state of a server is a text too.
_S = TypeVar("_S", State, RequestPhase, TaskStatus, ServerState)

_BOX: Final = (120.0, 36.0)
_LINE_HEIGHT: Final = 16


class Route(NamedTuple):
    """The place of a transition.

    Attributes:
        points: the points of its line; the last one is the arrow's tip.
        label: where the names of its steps begin, one below the other.
        anchor: `start` or `end`.
        remark: what the table does not say.
        call: a method of this end in place of a message: a dashed line.
    """

    points: Sequence[Point]
    label: Point
    anchor: Literal["start", "end"] = "start"
    remark: str = ""
    call: str = ""


# -- The connection -------------------------------------------------------------------------------

_COLUMN: Final = 200.0
_BUS: Final = 380.0  # closing, from all states
_STATES: Final[Mapping[State, Point]] = {
    State.NEW: (_COLUMN, 50),
    State.OPENING: (_COLUMN, 145),
    State.READY: (_COLUMN, 240),
    State.CLOSING: (_COLUMN, 335),
    State.CLOSED: (_COLUMN, 420),
}


def _down(source: State, target: State) -> Sequence[Point]:
    (x, top), (_, bottom) = _STATES[source], _STATES[target]
    return [(x, top + _BOX[1] / 2), (x, bottom - _BOX[1] / 2)]


def _close(source: State) -> Route:
    x, y = _STATES[source]
    edge, end = x + _BOX[0] / 2, _STATES[State.CLOSED][1]
    return Route([(edge, y), (_BUS, y), (_BUS, end), (edge, end)], (edge + 14, y - 7))


def _stay(state: State) -> Route:
    x, y = _STATES[state]
    edge = x - _BOX[0] / 2
    loop = [(edge, y - 9), (edge - 26, y - 9), (edge - 26, y + 9), (edge, y + 9)]
    return Route(loop, (edge - 34, y), "end")


_LIFECYCLE_ROUTES: Final[Mapping[tuple[State, State], Route]] = {
    (State.NEW, State.OPENING): Route(_down(State.NEW, State.OPENING), (_COLUMN + 10, 102)),
    (State.OPENING, State.READY): Route(_down(State.OPENING, State.READY), (_COLUMN + 10, 197)),
    **{(state, state): _stay(state) for state in State if state is not State.CLOSED},
    **{(state, State.CLOSED): _close(state) for state in State if state is not State.CLOSED},
}
_SHUTDOWN: Final = Route(
    _down(State.READY, State.CLOSING), (_COLUMN + 10, 292), call="shutdown() of a server"
)


def draw_lifecycle() -> str:
    """Return the picture of the life of a connection."""
    canvas = Canvas("The states of a connection", 450)
    _draw(canvas, LIFECYCLE, _STATES, _LIFECYCLE_ROUTES)
    _draw_route(canvas, _SHUTDOWN, [_SHUTDOWN.call])
    return canvas.svg()


# -- The request ----------------------------------------------------------------------------------

_PHASES: Final[Mapping[RequestPhase, Point]] = {
    RequestPhase.OPEN: (140, 60),
    RequestPhase.STREAMING: (140, 170),
    RequestPhase.CANCELLED: (368, 170),
    RequestPhase.DONE: (140, 300),
}
_REQUEST_ROUTES: Final[Mapping[tuple[RequestPhase, RequestPhase], Route]] = {
    (RequestPhase.OPEN, RequestPhase.OPEN): Route(
        [(120, 42), (120, 20), (160, 20), (160, 42)], (170, 26)
    ),
    (RequestPhase.OPEN, RequestPhase.STREAMING): Route([(140, 78), (140, 152)], (150, 119)),
    (RequestPhase.OPEN, RequestPhase.DONE): Route(
        [(80, 60), (18, 60), (18, 300), (80, 300)], (28, 266)
    ),
    (RequestPhase.OPEN, RequestPhase.CANCELLED): Route(
        [(200, 60), (368, 60), (368, 152)], (214, 53)
    ),
    (RequestPhase.STREAMING, RequestPhase.STREAMING): Route(
        [(92, 188), (92, 210), (118, 210), (118, 188)], (80, 228)
    ),
    (RequestPhase.STREAMING, RequestPhase.DONE): Route([(140, 188), (140, 282)], (150, 240)),
    (RequestPhase.STREAMING, RequestPhase.CANCELLED): Route([(200, 170), (308, 170)], (206, 163)),
    (RequestPhase.CANCELLED, RequestPhase.CANCELLED): Route(
        [(348, 188), (348, 212), (388, 212), (388, 188)], (308, 232), remark="(dropped)"
    ),
}


def draw_request() -> str:
    """Return the picture of the life of a request."""
    canvas = Canvas("The phases of a request", 335)
    _draw(canvas, REQUEST, _PHASES, _REQUEST_ROUTES)
    return canvas.svg()


# -- The task -------------------------------------------------------------------------------------

_STATUSES: Final[Mapping[TaskStatus, Point]] = {
    "working": (220, 50),
    "input_required": (220, 150),
    "completed": (76, 300),
    "failed": (220, 300),
    "cancelled": (364, 300),
}
_ENDS: Final = 225.0  # the line from which the three ends branch off


def _stay_in(status: TaskStatus) -> Route:
    x, y = _STATUSES[status]
    edge = x - _BOX[0] / 2
    loop = [(edge, y - 9), (edge - 26, y - 9), (edge - 26, y + 9), (edge, y + 9)]
    return Route(loop, (edge - 34, y), "end")


def _end_of_work(status: TaskStatus, label: float) -> Route:
    x, y = _STATUSES[status]
    tip = (x, y - _BOX[1] / 2)
    return Route([(280, 50), (428, 50), (428, _ENDS), (x, _ENDS), tip], (420, label), "end")


def _end_of_waiting(status: TaskStatus) -> Route:
    x, y = _STATUSES[status]
    tip = (x, y - _BOX[1] / 2)
    turns = [] if x == 220 else [(220.0, _ENDS), (x, _ENDS)]
    return Route([(220, 168), *turns, tip], (x + 10, 260))


_TASK_ROUTES: Final[Mapping[tuple[TaskStatus, TaskStatus], Route]] = {
    ("working", "working"): _stay_in("working"),
    ("working", "input_required"): Route([(200, 68), (200, 132)], (190, 100), "end"),
    ("working", "completed"): _end_of_work("completed", 128),
    ("working", "failed"): _end_of_work("failed", 144),
    ("working", "cancelled"): _end_of_work("cancelled", 160),
    ("input_required", "input_required"): _stay_in("input_required"),
    ("input_required", "working"): Route([(240, 132), (240, 68)], (250, 104)),
    ("input_required", "completed"): _end_of_waiting("completed"),
    ("input_required", "failed"): _end_of_waiting("failed"),
    ("input_required", "cancelled"): _end_of_waiting("cancelled"),
}


def draw_task() -> str:
    """Return the picture of the life of a task."""
    canvas = Canvas("The statuses of a task", 335)
    _draw(canvas, TRANSITIONS, _STATUSES, _TASK_ROUTES)
    return canvas.svg()


# -- The server of a host -------------------------------------------------------------------------

_SERVER_STATES: Final[Mapping[ServerState, Point]] = {
    "disabled": (130, 50),
    "unapproved": (340, 50),
    "connecting": (230, 185),
    "ready": (230, 290),
    "failed": (110, 400),
    "needs login": (340, 400),
}
# These have a frame. What leads from each of them to one state is an arrow from the frame.
_WANTED: Final[Sequence[ServerState]] = ("connecting", "ready", "failed", "needs login")
_FRAME: Final = ((16.0, 130.0), (404.0, 325.0))  # its corner, and its size
_SERVER_ROUTES: Final[Mapping[tuple[ServerState, ServerState], Route]] = {
    ("disabled", "connecting"): Route([(180, 68), (180, 167)], (188, 98)),
    ("unapproved", "connecting"): Route([(285, 68), (285, 167)], (277, 120), "end"),
    ("unapproved", "disabled"): Route([(280, 50), (190, 50)], (202, 43)),
    ("unapproved", "failed"): Route(
        [(400, 50), (430, 50), (430, 480), (110, 480), (110, 418)], (240, 473)
    ),
    ("connecting", "ready"): Route([(230, 203), (230, 272)], (238, 260)),
    ("connecting", "failed"): Route([(170, 198), (118, 198), (118, 382)], (126, 228)),
    ("connecting", "needs login"): Route([(290, 196), (370, 196), (370, 382)], (362, 224), "end"),
    ("ready", "failed"): Route([(200, 308), (200, 394), (170, 394)], (192, 340), "end"),
    ("ready", "needs login"): Route([(290, 290), (330, 290), (330, 382)], (322, 352), "end"),
    ("failed", "connecting"): Route([(50, 400), (30, 400), (30, 187), (170, 187)], (38, 290)),
    ("needs login", "connecting"): Route(
        [(400, 400), (412, 400), (412, 178), (290, 178)], (325, 171)
    ),
    ("needs login", "failed"): Route([(280, 406), (170, 406)], (195, 424)),
}
_FRAME_ROUTES: Final[Mapping[ServerState, Route]] = {
    "disabled": Route([(100, 130), (100, 68)], (92, 100), "end"),
    "unapproved": Route([(320, 130), (320, 68)], (328, 104)),
    "connecting": Route([(16, 176), (170, 176)], (40, 169)),
}


def draw_server() -> str:
    """Return the picture of the states of a server of a host."""
    canvas = Canvas("The states of a server of a host", 500)
    corner, size = _FRAME
    canvas.box(corner, size, fill=PANEL, stroke=LINE)
    table, of_frame = _split_common(SERVER_TRANSITIONS, _WANTED)
    if of_frame.keys() != _FRAME_ROUTES.keys():
        raise ValueError(f"other targets than in {Path(__file__).name}: {[*of_frame]}")
    for target, route in _FRAME_ROUTES.items():
        _draw_route(canvas, route, of_frame[target])
    _draw(canvas, table, _SERVER_STATES, _SERVER_ROUTES)
    return canvas.svg()


def _split_common(
    table: Mapping[ServerState, Mapping[ServerEvent, ServerState]], states: Sequence[ServerState]
) -> tuple[Mapping[ServerState, Mapping[ServerEvent, ServerState]], dict[ServerState, list[str]]]:
    """Return the table without what all of the states have, and the events of that by target."""
    rows = [table[state].items() for state in states]
    common = {cell for cell in rows[0] if all(cell in row for row in rows)}
    rest = {
        state: {event: target for event, target in row.items() if (event, target) not in common}
        if state in states
        else row
        for state, row in table.items()
    }
    events: dict[ServerState, list[str]] = defaultdict(list)
    for event, target in rows[0]:
        if (event, target) in common:
            events[target].append(event.value)
    return rest, events


# -- All ------------------------------------------------------------------------------------------


def _draw(
    canvas: Canvas,
    table: Mapping[_S, Mapping[Any, _S]],
    places: Mapping[_S, Point],
    routes: Mapping[tuple[_S, _S], Route],
) -> None:
    steps: dict[tuple[_S, _S], list[str]] = defaultdict(list)
    for source, row in table.items():
        for step, target in row.items():
            steps[source, target].append(_name_of_step(step))
    differing = [*(set(places) ^ set(table)), *(set(routes) ^ set(steps))]
    if differing:
        raise ValueError(f"in the table or in {Path(__file__).name}, but not in both: {differing}")
    for transition, route in routes.items():
        _draw_route(canvas, route, steps[transition])
    for state, (x, y) in places.items():
        corner = (x - _BOX[0] / 2, y - _BOX[1] / 2)
        canvas.box(corner, _BOX, fill=TINT, stroke=BLUE, radius=18)
        canvas.text((x, y + 5), _name_of_state(state), bold=True)


def _name_of_state(state: Any) -> str:
    return state if isinstance(state, str) else str(state.name)


def _name_of_step(step: Any) -> str:
    return step.__name__ if isinstance(step, type) else str(step.value)


def _draw_route(canvas: Canvas, route: Route, names: Sequence[str]) -> None:
    is_call = bool(route.call)
    canvas.line(route.points, color=MUTED if is_call else INK, dashed=is_call)
    x, y = route.label
    lines = [*names, route.remark] if route.remark else names
    if route.anchor == "end":  # beside the middle of a loop
        y += 4 - (len(lines) - 1) * _LINE_HEIGHT / 2
    for number, line in enumerate(lines):
        canvas.text((x, y + number * _LINE_HEIGHT), line, anchor=route.anchor, color=MUTED)
