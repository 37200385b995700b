"""Phrases of two clients at once, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core import DIALECTS
from mcp_trio.oracle.fuzz._case import on_client

from ._calls import one_call, task_call
from ._phrases import some_phrases

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_trio.oracle.fuzz._case import Step

    from ._choices import CaseChoices
    from ._drawing import Drawing

__all__ = ["MARKS", "second_client"]

# Texts in the arguments of each client's calls: a result with the other client's text has leaked.
MARKS: Final = ("mcp-trio-fuzz first client", "mcp-trio-fuzz second client")
_LIST: Final[Step] = ("request", "tools/list", {}, "int")
_LOGGING_CALLS: Final = 3  # different tools: few of them write to the log
_WAIT: Final[Step] = ("wait",)


def second_client(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw what a second client does beside the first one."""
    modern = not DIALECTS[revision].stateful
    offers = ("all", "all", "none")[draw.below(3)]
    how = "late" if not modern and draw.below(8) == 0 else "whole"
    opening = _second(("open", revision, how, offers))
    meetings = _meetings(choices, modern=modern)
    meeting = meetings[choices.meetings[modern] % len(meetings)]
    choices.meetings[modern] += 1
    return opening + meeting(draw, choices, revision)


def _second(*steps: Step) -> list[Step]:
    """Return the second client's steps."""
    return [on_client(1, step) for step in steps]


def _meetings(choices: CaseChoices, *, modern: bool) -> list[Callable[..., list[Step]]]:
    """Return what two clients do. It is drawn in turn: some faults need one of them."""
    found: list[Callable[..., list[Step]]] = []
    if not modern:
        found += [_without_session, _ended_beside, _unknown_session]
    if choices.text_tools:
        found.append(_marked_calls)
    if not modern and choices.tools:
        found.append(_levels_beside)
    found += [_steps_in_turn, _cancelled_beside]
    if choices.uris and choices.tools:
        found.append(_subscribed_beside)
    if choices.text_tools:
        found.append(_marked_calls)
    if not modern and choices.tools:
        found.append(_levels_beside)
    found += [_values_of_the_other, _steps_in_turn]
    return found if modern else [*found, _resumed_beside]


def _steps_in_turn(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw phrases of both clients, whose steps meet each other."""
    mine = some_phrases(draw, choices, revision, 2)
    theirs = _second(*some_phrases(draw, choices, revision, 2))
    steps: list[Step] = []
    while mine or theirs:
        source = theirs if not mine or (theirs and draw.below(2)) else mine
        steps.append(source.pop(0))
    return steps


def _values_of_the_other(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw requests with a cursor, a task or a state that the other client got."""
    kind = draw.below(3)
    if kind == 0 or not choices.tools:
        method = ("tools/list", "resources/list", "prompts/list")[draw.below(3)]
        return [("page", method, "first"), *_second(("page", method, "other"))]
    if kind == 1:
        call = task_call(draw, choices)
        return [call, _WAIT, *_second(("task", 0, "other"), _WAIT), ("task", 0, "get")]
    call = one_call(draw, choices, ())
    return [call, _WAIT, *_second(call, _WAIT, ("retry", 0, "other"), _WAIT)]


def _cancelled_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a request of each client, whose ids can be equal, and cancel one."""
    step = one_call(draw, choices, ()) if choices.tools else _LIST
    calls = [step] * (1 + draw.below(3))
    return [*calls, *_second(step, step), ("cancel", draw.below(3)), *_second(_WAIT), _WAIT]


def _marked_calls(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw calls of one tool with a text of each client's. They are read-only if a list says so."""
    place, names = draw.pick(choices.text_tools)
    drawn = draw.value(choices.arguments[place][0])
    others = drawn if isinstance(drawn, dict) else {}
    mine, theirs = (
        ("call", choices.names[place], {**others, **dict.fromkeys(names, mark)}, ())
        for mark in MARKS
    )
    return [
        *_second(("page", "tools/list", "all")),
        *(mine, _WAIT, mine, _WAIT),
        *_second(theirs, _WAIT, theirs, _WAIT),
    ]


def _subscribed_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a subscription of one client, and what may change the resource."""
    listen = ("listen", {"resourceSubscriptions": [draw.pick(choices.uris)]})
    streams: list[Step] = [("get", "stream"), *_second(("get", "stream"))]
    calls = [one_call(draw, choices, ()) for _ in range(1 + draw.below(3))]
    return [*streams, listen, *_second(("listen", {})), *calls, _WAIT, *_second(_LIST, _WAIT)]


def _ended_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw the end of the second client's session, and requests of both."""
    return [_LIST, _WAIT, *_second(_WAIT, ("delete", "own"), _LIST, _WAIT), _LIST, _WAIT]


def _without_session(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw one request without a session twice: once there is another client, once there isn't."""
    head: Step = ("head", "no-session", "tools/list", {})
    return [head, *_second(_WAIT, ("delete", "own")), head]


def _unknown_session(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw one request with an unknown session twice: without another client, and with one."""
    head: Step = ("head", "session", "tools/list", {})
    again = _second(("reconnect",), ("open", revision, "whole", "all"))
    return [*_second(_WAIT, ("delete", "own")), head, *again, head]


def _resumed_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call with events, and a stream of the other client that resumes after one."""
    call = [one_call(draw, choices, ("progress",)), _WAIT] if choices.tools else []
    return [("get", "stream"), *call, *_second(("get", "other"), _LIST, _WAIT)]


def _levels_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw another level of the log for each client, and calls of both."""
    levels = ("emergency", "debug") if draw.below(2) else ("debug", "emergency")
    mine, theirs = (("request", "logging/setLevel", {"level": level}, "int") for level in levels)
    calls = [one_call(draw, choices, ()) for _ in range(_LOGGING_CALLS)]
    both = [step for call in calls for step in (call, *_second(call))]
    return [*_second(theirs, _WAIT), mine, _WAIT, *both, *_second(_WAIT), _WAIT]
