"""Phrases of requests and notifications: right, wrong, cancelled, and about what doesn't exist."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from mcp_core import Method, Role
from mcp_trio.oracle.fuzz._call_guard import INVENTED_METHODS, UNKNOWN_PROMPT, UNKNOWN_URI
from mcp_trio.oracle.strategies._messages import methods, notifications, objects
from mcp_trio.oracle.strategies._values import json_objects, texts

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Step

    from ._choices import CaseChoices
    from ._drawing import Drawing

__all__ = [
    "WITH_EFFECT",
    "burst",
    "cancelled",
    "notification",
    "odd_notification",
    "odd_params",
    "pages",
    "plain",
    "rows_of",
    "strange_meta",
    "strange_notification",
    "unknown_prompt",
    "unknown_resource",
    "wrong",
]

IDS: Final = ("int", "digits", "text")
UNKNOWN_METHODS: Final = (
    INVENTED_METHODS[0],
    "tools/List",
    "tools",
    "rpc.discover",
    INVENTED_METHODS[1],
    "tools/get",
)
UNKNOWN_LEVEL: Final = "mcp-trio-fuzz-none"  # of log messages
SCALARS: Final[tuple[Any, ...]] = (82, "x", True, None, [], [1, 2], 1.5)
_NOT_DRAWN: Final = frozenset({"initialize", "tools/call", "subscriptions/listen", "ping"})
# Methods that call, read or begin something. Their params are always chosen, never random.
WITH_EFFECT: Final = frozenset(
    {
        "tools/call",
        "initialize",
        "subscriptions/listen",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
    }
)
_STRANGE_NOTIFICATIONS: Final = (
    "notifications/acme",
    "ping",
    "tools/list",
    "notifications/initialized",
)


@functools.cache
def rows_of(revision: str) -> tuple[Method, ...]:
    """Return the methods whose requests are drawn in a revision."""
    rows = methods(revision, Role.SERVER, requests=True)
    return tuple(row for row in rows if row.name not in _NOT_DRAWN)


def _params_of(draw: Drawing, choices: CaseChoices, revision: str, row: Method) -> Any:
    """Return params for a method, from what the target offers."""
    name = row.name
    if name.endswith("/list"):
        return {}
    if name == "prompts/get" and choices.prompts:
        prompt = draw.pick(choices.prompts)
        arguments = prompt.get("arguments")
        names = [
            str(each.get("name"))
            for each in (arguments if isinstance(arguments, list) else ())
            if isinstance(each, dict)
        ]
        chosen = draw.below(4)
        values = {each: draw.value(texts()) for each in (names if chosen else names[:-1])}
        return {"name": prompt["name"], "arguments": values}
    if name in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
        is_listed = draw.below(4) > 0
        if choices.uris and is_listed:
            return {"uri": draw.pick(choices.uris)}
        return {"uri": UNKNOWN_URI}
    if name == "completion/complete" and (choices.completed or choices.prompts):
        return _completion(draw, choices)
    if name == "logging/setLevel" and draw.below(4) == 0:
        return {"level": UNKNOWN_LEVEL}
    return dict(draw.value(objects(revision, row.params)))


def _completion(draw: Drawing, choices: CaseChoices) -> dict[str, Any]:
    """Draw params of a completion, mostly of an argument that the server lists."""
    if choices.completed and (draw.below(4) or not choices.prompts):
        ref, name = draw.pick(choices.completed)
    else:
        ref, name = {"type": "ref/prompt", "name": draw.pick(choices.prompts)["name"]}, "a"
    # Any value begins with an empty one.
    value = draw.value(texts()) if draw.below(2) else ""
    return {"ref": ref, "argument": {"name": name, "value": value}}


def plain(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a valid request."""
    rows = rows_of(revision)
    row = draw.pick(rows)
    id = IDS[draw.below(3)]
    steps: list[Step] = [("request", row.name, _params_of(draw, choices, revision, row), id)]
    return [*steps, ("wait",)] if draw.below(4) == 0 else steps


def wrong(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a request whose params have wrong members, or whose method doesn't exist."""
    if draw.below(2):
        # Of the others a lenient server can think that it knows them.
        method = draw.pick(UNKNOWN_METHODS) if draw.below(2) else INVENTED_METHODS[0]
        return [("request", method, draw.value(json_objects()), IDS[draw.below(3)])]
    row = draw.pick(methods(revision, Role.SERVER, requests=True))
    if row.name in WITH_EFFECT:
        return []
    return [("request", row.name, draw.value(json_objects()), "int")]


def odd_params(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a request whose params aren't an object."""
    row = draw.pick(methods(revision, Role.SERVER, requests=True))
    if row.name == "initialize":
        return []
    return [("request", row.name, draw.pick(SCALARS), "int")]


def strange_meta(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a request whose `_meta` is absent, old or bare."""
    how = ("absent", "old", "bare")[draw.below(3)]
    rows = rows_of(revision)
    row = draw.pick(rows)
    return [("request", row.name, _params_of(draw, choices, revision, row), "int", how)]


def cancelled(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a request, and a cancellation."""
    steps = plain(draw, choices, revision)[:1]
    return [*steps, ("cancel", draw.below(3) - 1)]


def burst(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw several equal requests at once."""
    rows = rows_of(revision)
    row = draw.pick(rows)
    count = 2 + draw.below(9)
    return [("burst", count, row.name, _params_of(draw, choices, revision, row))]


def pages(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a walk through the pages of a list."""
    method = ("tools/list", "resources/list", "prompts/list", "resources/templates/list")[
        draw.below(4)
    ]
    return [("page", method, ("all", "all", "stale", "invented", "first")[draw.below(5)])]


def unknown_prompt(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw the list of prompts, from which the judge learns, and a request for no prompt of it.

    Or it is for one without a required argument.
    """
    listed: Step = ("page", "prompts/list", "all")
    kind = draw.below(4)
    if kind == 0 and choices.declares(revision, "completions"):
        ref = {"type": "ref/prompt", "name": UNKNOWN_PROMPT}
        params: dict[str, Any] = {"ref": ref, "argument": {"name": "a", "value": ""}}
        return [listed, ("request", "completion/complete", params, "int")]
    params = {"name": UNKNOWN_PROMPT}
    if kind == 1 and choices.prompts:
        params = {"name": draw.pick(choices.prompts)["name"], "arguments": {}}
    return [listed, ("request", "prompts/get", params, "int")]


def unknown_resource(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw the lists of resources, from which the judge learns, and a request for none of them."""
    return [
        ("page", "resources/list", "all"),
        ("page", "resources/templates/list", "all"),
        ("request", "resources/read", {"uri": UNKNOWN_URI}, "int"),
    ]


def notification(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a valid notification."""
    message = draw.value(notifications(revision))
    return [("notify", message["method"], message.get("params", "absent"))]


def strange_notification(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a notification that a server doesn't know, or gets at a wrong time."""
    return [("notify", draw.pick(_STRANGE_NOTIFICATIONS), draw.pick(("absent", {"a": 1})))]


def odd_notification(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a notification whose params aren't an object."""
    return [("notify", draw.pick(_STRANGE_NOTIFICATIONS), draw.pick((82, [])))]
