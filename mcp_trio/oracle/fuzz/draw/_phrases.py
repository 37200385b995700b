"""The phrases of a case: how often each kind is drawn, by what the target offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core import DIALECTS
from mcp_trio.oracle.fuzz.invariants._handing import with_handed_values

from . import _calls, _damaging, _http, _requests, _stress

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Step

    from ._choices import CaseChoices
    from ._drawing import Drawing, Phrase

__all__ = ["some_phrases"]


def some_phrases(
    draw: Drawing,
    choices: CaseChoices,
    revision: str,
    most: int,
    *,
    is_damaged: bool = False,
) -> list[Step]:
    """Draw the steps of 1 to `most` phrases."""
    phrases = (_damaging_phrases if is_damaged else _phrases)(choices, revision)
    steps: list[Step] = []
    for _ in range(1 + draw.below(most)):
        phrase = draw.pick(phrases)
        drawn = phrase(draw, choices, revision)
        # A call that is wrong on purpose gets no value: it says nothing about the value.
        if choices.handings and phrase is not _calls.nearly_valid:
            drawn = with_handed_values(draw, drawn, choices.handings)
        steps += drawn
    return steps


def _phrases(choices: CaseChoices, revision: str) -> list[Phrase]:
    """Return a revision's phrases, the common ones several times."""
    modern = not DIALECTS[revision].stateful
    found: list[Phrase] = [
        *[_requests.plain] * 5,
        _requests.wrong,
        *[_requests.notification] * 2,
        _requests.strange_notification,
        _requests.cancelled,
        _requests.pages,
        _requests.burst,
        _calls.unknown_tool,
        *[_calls.subscription] * (4 if choices.tools and choices.has_changes(revision) else 1),
        _calls.responses,
        _calls.input_rounds,
        _calls.tasks,
    ]
    if choices.tools:
        found += [*[_calls.plain] * 6, _calls.nearly_valid]
        if choices.required:
            found += [_calls.without_required] * 2
        found += [_calls.cancelled, *[_calls.cancelled_twin] * 2, _calls.cancelled_among_others]
        if choices.has_tasks(revision):
            found += [_calls.followed_tasks] * 3
    if choices.declares(revision, "prompts"):
        found.append(_requests.unknown_prompt)
    if choices.declares(revision, "resources"):
        found.append(_requests.unknown_resource)
    if choices.handings:
        found += [_calls.handed] * 8
    if modern:
        found += [_requests.strange_meta, _requests.strange_meta]
    if choices.http:
        found += [*[_http.wrong_head] * 5, _http.half_bodies]
        if not modern:
            found += [_http.standalone_stream, _http.ended_session]
        elif choices.mirrored_tools:
            found += [_http.wrong_argument_head] * 2
    if choices.stress:
        found += [_stress.stressed] * (len(found) // 2)
    return found


def _damaging_phrases(choices: CaseChoices, revision: str) -> list[Phrase]:
    """Return the phrases of a case with damage. Others among them show what it does to them."""
    found: list[Phrase] = [
        *[_damaging.mutated] * 4,
        *[_damaging.damaged] * 2,
        *[_requests.odd_params] * 2,
        _requests.odd_notification,
        _requests.plain,
    ]
    if choices.tools:
        found += [_calls.plain, _calls.stray_response]
    if choices.stress:
        found += [_stress.heavy] * (len(found) // 2)
    return found
