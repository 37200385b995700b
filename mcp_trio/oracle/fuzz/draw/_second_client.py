"""Phrases of two clients at once, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core import DIALECTS
from mcp_trio.oracle.fuzz._case import CLIENT_MARKS, on_client

from ._calls import LISTED, changing_calls, one_call, task_call
from ._phrases import some_phrases

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_trio.oracle.fuzz._case import Step

    from ._choices import CaseChoices
    from ._drawing import Drawing

__all__ = ["second_client"]

_LIST: Final[Step] = ("request", "tools/list", {}, "int")
_LOGGING_CALLS: Final = 3  # different tools: few of them write to the log
_RESUMED_CALLS: Final = 3  # and few report progress
_SUBSCRIBED: Final = 10  # resources
_WAIT: Final[Step] = ("wait",)
_LEARN: Final[Step] = ("page", "tools/list", "all")
_RETRY: Final[Step] = ("retry", 0, "right")


def second_client(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw what a second client does beside the first one."""
    modern = not DIALECTS[revision].stateful
    offers = ("all", "all", "none")[draw.below(3)]
    how = "late" if not modern and draw.below(8) == 0 else "whole"
    opening = _second(("open", revision, how, offers))
    meetings = _meetings(choices, revision)
    meeting = meetings[choices.meetings[modern] % len(meetings)]
    choices.meetings[modern] += 1
    return opening + meeting(draw, choices, revision)


def _second(*steps: Step) -> list[Step]:
    """Return the second client's steps."""
    return [on_client(1, step) for step in steps]


def _meetings(choices: CaseChoices, revision: str) -> list[Callable[..., list[Step]]]:
    """Return what two clients do. It is drawn in turn: some faults need one of them."""
    modern = not DIALECTS[revision].stateful
    found: list[Callable[..., list[Step]]] = []
    if not modern:
        found += [_without_session, _ended_beside, _unknown_session]
    if choices.text_tools:
        found.append(_marked_calls)
    if not modern and choices.tools:
        found.append(_levels_beside)
    found += [_steps_in_turn, _cancelled_beside]
    if choices.tools and (choices.uris or modern):
        found.append(_subscribed_beside)
    if choices.tools and choices.has_tasks(revision):
        found.append(_tasks_of_the_other)
    if choices.text_tools:
        found.append(_marked_calls)
    if not modern and choices.tools:
        found.append(_levels_beside)
    if _with_texts(choices.prompts) and choices.declares(revision, "prompts"):
        found.append(_marked_prompts)
    found += [_cursors_of_the_other, _steps_in_turn]
    if modern and choices.tools:
        found.append(_states_of_the_other)
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


def _cursors_of_the_other(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw pages at a cursor that the other client got, or between two pages of the other one."""
    method = ("tools/list", "resources/list", "prompts/list")[draw.below(3)]
    if draw.below(2):
        return [("page", method, "first"), *_second(("page", method, "other"))]
    first: Step = ("request", method, {}, "int")
    return [first, _WAIT, *_second(("page", method, "all")), ("page", method, "rest")]


def _tasks_of_the_other(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw equal tasks of both clients, which ask for their own and for the other one's."""
    call = task_call(draw, choices)
    start = [call] * (1 + draw.below(3))
    act = ("get", "result", "cancel", "list")[draw.below(4)]
    ask: list[Step] = [("task", 0, "other"), _WAIT, ("task", 0, act), _WAIT]
    return [*start, _WAIT, *_second(*start, _WAIT, *ask), *ask]


def _states_of_the_other(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw calls of one tool, whose retries have their own state or the other client's."""
    if choices.text_tools and draw.below(3):
        mine, theirs = _marked_pair(draw, choices)
    else:
        mine = theirs = one_call(draw, choices, ())
    if mine == theirs or draw.below(3) == 0:
        return [mine, _WAIT, *_second(theirs, _WAIT, ("retry", 0, "other"), _WAIT), _RETRY, _WAIT]
    learn = [_LEARN, *_second(_LEARN)]
    before = [mine, _WAIT, _RETRY, _WAIT, *_second(theirs, _WAIT, _RETRY, _WAIT)]
    begun = [mine, _WAIT, *_second(theirs, _WAIT)]
    return [*learn, *before, *begun, _RETRY, _WAIT, *_second(_RETRY, _WAIT)]


def _cancelled_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a request of each client, whose ids can be equal, and cancel one."""
    step = one_call(draw, choices, ()) if choices.tools else _LIST
    calls = [step] * (1 + draw.below(3))
    return [*calls, *_second(step, step), ("cancel", draw.below(3)), *_second(_WAIT), _WAIT]


def _marked_calls(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw calls of one tool with a text of each client's. They are read-only if a list says so."""
    mine, theirs = _marked_pair(draw, choices)
    return [_LEARN, *_second(_LEARN), *_twice_each(mine, theirs)]


def _marked_pair(draw: Drawing, choices: CaseChoices) -> tuple[Step, Step]:
    """Draw a call of one tool for each client, each with a text of its own."""
    place, names = draw.pick(choices.text_tools)
    drawn = draw.value(choices.arguments[place][0])
    others = drawn if isinstance(drawn, dict) else {}
    mine, theirs = (
        ("call", choices.names[place], {**others, **dict.fromkeys(names, mark)}, ())
        for mark in CLIENT_MARKS
    )
    return mine, theirs


def _marked_prompts(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw requests for one prompt with a text of each client's."""
    name, arguments = draw.pick(_with_texts(choices.prompts))
    mine, theirs = (
        ("request", "prompts/get", {"name": name, "arguments": dict.fromkeys(arguments, mark)})
        for mark in CLIENT_MARKS
    )
    return _twice_each((*mine, "int"), (*theirs, "int"))


def _with_texts(prompts: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return the names of prompts that have arguments, and these arguments' names."""
    found = []
    for prompt in prompts:
        arguments = prompt.get("arguments")
        entries = arguments if isinstance(arguments, list) else []
        names = [str(each["name"]) for each in entries if isinstance(each, dict) and "name" in each]
        if names:
            found.append((str(prompt["name"]), names))
    return found


def _twice_each(mine: Step, theirs: Step) -> list[Step]:
    """Return a step of each client twice: the first result can be the other client's."""
    return [mine, _WAIT, mine, _WAIT, *_second(theirs, _WAIT, theirs, _WAIT)]


def _subscribed_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a subscription of one client, and what may change the resource or a list."""
    wanted: dict[str, Any] = dict.fromkeys(LISTED, True)
    if choices.uris:
        some = choices.uris[:_SUBSCRIBED]
        wanted["resourceSubscriptions"] = [draw.pick(some)] if draw.below(3) == 0 else some
    streams: list[Step] = [("get", "stream"), *_second(("get", "stream"))]
    calls = changing_calls(draw, choices)
    listens = [("listen", wanted), *_second(("listen", {})), _WAIT]
    return [*streams, *listens, *calls, _WAIT, *_second(_LIST, _WAIT)]


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
    """Draw calls with events, and streams of the other client that resume after them."""
    resumed = _second(("get", "other"), _LIST, _WAIT)
    steps: list[Step] = [("get", "stream")]
    for _ in range(_RESUMED_CALLS if choices.tools else 0):
        steps += [one_call(draw, choices, ("progress",)), _WAIT, *resumed]
    return steps if choices.tools else [*steps, *resumed]


def _levels_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw another level of the log for each client, and calls of both."""
    levels = ("emergency", "debug") if draw.below(2) else ("debug", "emergency")
    mine, theirs = (("request", "logging/setLevel", {"level": level}, "int") for level in levels)
    calls = [one_call(draw, choices, ()) for _ in range(_LOGGING_CALLS)]
    both = [step for call in calls for step in (call, *_second(call))]
    return [*_second(theirs, _WAIT), mine, _WAIT, *both, *_second(_WAIT), _WAIT]
