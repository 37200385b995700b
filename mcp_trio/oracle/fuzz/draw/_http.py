"""Phrases for HTTP alone: wrong heads, bodies without an end, streams and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core import DIALECTS

from ._calls import one_call

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Step

    from ._choices import CaseChoices
    from ._drawing import Drawing

__all__ = ["ended_session", "half_bodies", "standalone_stream", "wrong_argument_head", "wrong_head"]

_HEADS: Final = ("origin", "origin", "host", "accept", "type", "version")
_STATEFUL_HEADS: Final = (*_HEADS, "session")
_STATELESS_HEADS: Final = (*_HEADS, "method", "none", *["name"] * 3)


def wrong_head(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a request with one wrong header."""
    stateful = DIALECTS[revision].stateful
    what = draw.pick(_STATEFUL_HEADS if stateful else _STATELESS_HEADS)
    if what == "name":
        is_call = draw.below(2) > 0
        if choices.tools and is_call:
            _, name, arguments, _ = one_call(draw, choices, ())
            return [("head", what, "tools/call", {"name": name, "arguments": arguments})]
        if choices.prompts:
            prompt = draw.pick(choices.prompts)
            return [("head", what, "prompts/get", {"name": prompt["name"]})]
        if choices.uris:
            uri = draw.pick(choices.uris)
            return [("head", what, "resources/read", {"uri": uri})]
    method = "ping" if stateful and draw.below(2) else "tools/list"
    return [("head", what, method, {})]


def wrong_argument_head(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a `tools/list`, from which the judge learns the header, and a call with a wrong one."""
    place = draw.pick(choices.mirrored_tools)
    arguments = draw.value(choices.arguments[place][0])
    what = draw.pick(("argument", "no-argument", "bad-argument"))
    call = {"name": choices.names[place], "arguments": arguments}
    return [("page", "tools/list", "all"), ("head", what, "tools/call", call)]


def half_bodies(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw requests whose bodies don't end."""
    steps: list[Step] = [("half",)] * (1 + draw.below(4))
    return [*steps, ("release",)] if draw.below(2) else steps


def standalone_stream(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a standalone stream."""
    return [("get", ("stream", "resume", "unknown")[draw.below(3)])]


def ended_session(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw the end of the session, and a request after it."""
    how = ("own", "own", "unknown")[draw.below(3)]
    # Without the wait, other requests race with the end of the session.
    return [("wait",), ("delete", how), ("request", "tools/list", {}, "int")]
