"""Phrases of calls: with values, cancellations, subscriptions, tasks and the server's requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_trio.oracle.fuzz._call_guard import UNKNOWN_TOOLS, UNKNOWN_URI
from mcp_trio.oracle.fuzz._case import AFTER_CANCEL, UNSUPPORTED_TASK

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Step

    from ._choices import CaseChoices
    from ._drawing import Drawing

__all__ = [
    "LISTED",
    "cancelled",
    "cancelled_among_others",
    "cancelled_twin",
    "changing_calls",
    "followed_tasks",
    "handed",
    "input_rounds",
    "nearly_valid",
    "one_call",
    "plain",
    "responses",
    "stray_response",
    "subscription",
    "task_call",
    "tasks",
    "unknown_tool",
    "without_required",
]

_EXTRAS: Final = (
    (),
    (),
    ("progress",),
    ("progress",),
    ("text",),
    ("task",),
    ("progress", "task"),
)
LISTED: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
_TASK_ACTS: Final = ("get", "get", "cancel", "result", "list", "update", "unknown")


def one_call(
    draw: Drawing,
    choices: CaseChoices,
    extra: tuple[str, ...],
    *,
    nearly: bool = False,
    place: int | None = None,
) -> Step:
    """Draw a call of a tool, or of the one at `place`."""
    place = draw.below(len(choices.tools)) if place is None else place
    arguments = draw.value(choices.arguments[place][1 if nearly else 0])
    if place not in choices.task_tools:
        extra = tuple(UNSUPPORTED_TASK if each == "task" else each for each in extra)
    return ("call", choices.names[place], arguments, extra)


def plain(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a valid call."""
    extra = draw.pick(_EXTRAS)
    step = one_call(draw, choices, extra)
    after = draw.below(6)
    if after == 0:
        # The judge compares the call with its tool, once it knows the whole list.
        return [("page", "tools/list", "all"), step]
    return [step, ("wait",)] if after == 1 else [step]


def handed(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call that provides a value, and calls that can use it."""
    handing = draw.pick(choices.handings)
    steps: list[Step] = []
    for _ in range(1 + draw.below(2)):
        steps += [one_call(draw, choices, (), place=draw.pick(handing.providers)), ("wait",)]
    for _ in range(1 + draw.below(3)):
        steps += [one_call(draw, choices, (), place=handing.tool), ("wait",)]
    return steps


def nearly_valid(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call whose arguments nearly fit the tool's schema."""
    return [one_call(draw, choices, (), nearly=True)]


def unknown_tool(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call of a tool that doesn't exist."""
    name = UNKNOWN_TOOLS[draw.below(3)]
    steps: list[Step] = [("request", "tools/call", {"name": name, "arguments": {}}, "int")]
    return [("page", "tools/list", "all"), *steps] if draw.below(2) else steps


def without_required(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw the list of tools, from which the judge learns, and a call without an argument."""
    place, names = draw.pick(choices.required)
    arguments = draw.value(choices.arguments[place][0])
    if isinstance(arguments, dict):
        arguments = dict(arguments)
        arguments.pop(draw.pick(names), None)
    return [("page", "tools/list", "all"), ("call", choices.names[place], arguments, ())]


def cancelled(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call, and its cancellation."""
    step = one_call(draw, choices, ("progress",))
    return [step, ("cancel", draw.below(2)), AFTER_CANCEL]


def cancelled_twin(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw two equal calls, which take the same time, and cancel one."""
    step = one_call(draw, choices, ())
    return [step, step, ("cancel", draw.below(2)), AFTER_CANCEL, ("wait",)]


def cancelled_among_others(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw several calls at once, and cancel some."""
    calls = [one_call(draw, choices, ()) for _ in range(2 + draw.below(3))]
    cancels = [("cancel", draw.below(4) - 1) for _ in range(1 + draw.below(2))]
    return [*calls, *cancels, AFTER_CANCEL, ("wait",)]


def responses(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call, and responses to what the server requests meanwhile."""
    how = ("right", "error", "wrong")[draw.below(3)]
    steps = [one_call(draw, choices, ())] if choices.tools else []
    return [*steps, ("respond", 0, how), ("progress", 0)]


def stray_response(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call and responses. One of them answers no request of the server."""
    return [one_call(draw, choices, ()), ("respond", 0, draw.pick(("id", "twice")))]


def input_rounds(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call, and its retry with the input that it requires."""
    how = ("right", "right", "altered", "altered", "foreign", "empty")[draw.below(6)]
    steps = [one_call(draw, choices, ())] if choices.tools else []
    return [*steps, ("wait",), ("retry", 0, how), ("wait",), ("retry", 0, "right")]


# -- Subscriptions ---------------------------------------------------------------------------------


def subscription(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a subscription, calls of a tool that may change something, and its cancellation."""
    bits = draw.below(16)
    chosen: dict[str, Any] = {name: True for index, name in enumerate(LISTED) if bits >> index & 1}
    if bits & 8:
        # Every update is wrong for a subscription to what doesn't exist.
        is_listed = choices.uris and draw.below(2)
        chosen["resourceSubscriptions"] = [draw.pick(choices.uris) if is_listed else UNKNOWN_URI]
    calls = changing_calls(draw, choices)
    steps: list[Step] = [("listen", chosen), *calls, ("wait",), ("cancel", 0)]
    if calls and draw.below(2):
        steps += [AFTER_CANCEL, ("wait",), *calls, ("wait",)]
    return steps


def changing_calls(draw: Drawing, choices: CaseChoices) -> list[Step]:
    """Draw calls of one tool with several arguments, mostly of one that changes something."""
    if not choices.tools:
        return []
    known = [choices.names.index(each) for each in choices.changers if each in choices.names]
    place = draw.pick(known) if known and draw.below(4) else draw.below(len(choices.tools))
    return [one_call(draw, choices, (), place=place) for _ in range(1 + draw.below(4))]


# -- Tasks -----------------------------------------------------------------------------------------


def task_call(draw: Drawing, choices: CaseChoices) -> Step:
    """Draw a call as a task, mostly of a tool that allows it."""
    if not choices.task_tools or not draw.below(4):
        return one_call(draw, choices, ("task",))
    place = draw.pick(choices.task_tools)
    return ("call", choices.names[place], draw.value(choices.arguments[place][0]), ("task",))


def followed_tasks(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw calls as tasks, which are polled to their end."""
    count = 1 + draw.below(3)
    calls = [task_call(draw, choices) for _ in range(count)]
    return [*calls, ("wait",), *(("task", place, "follow") for place in range(count))]


def tasks(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call as a task, and requests about tasks."""
    steps: list[Step] = []
    if choices.tools:
        steps = [task_call(draw, choices), ("wait",)]
    for _ in range(1 + draw.below(4)):
        act = draw.pick(_TASK_ACTS)
        steps.append(("task", draw.below(2), act))
        if draw.below(2):
            steps.append(("wait",))
    return steps
