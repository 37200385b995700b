"""Damage: what the fuzzer sends and a receiver needn't take for a message.

After it less is certain about the target: its parser may have read what the judge's couldn't, such
as another id or another progress token. So cases with damage have conversations of their own, and
are judged by what is left: the target's answers, and that it lives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ._case import own_step

if TYPE_CHECKING:
    from ._case import Case, Step

__all__ = ["DAMAGING_STEPS", "has_damage"]

DAMAGING_STEPS: Final = frozenset({"mutate", "damage", "deep", "batch", "reply"})
# Where the steps that send a message have its method and its params.
_PLACES: Final = {"request": (1, 2), "notify": (1, 2), "burst": (2, 3), "head": (2, 3)}
ID_PLACE: Final = 3
META_PLACE: Final = 4
_NO_REVISION: Final = frozenset({"absent", "old"})
# Steps that are damage with one of these words.
_WORDS: Final = {
    "respond": (2, ("id", "twice")),  # a response for none of the server's requests
    "large": (1, ("message",)),
}


def has_damage(case: Case) -> bool:
    """Return True if a step of a case can send what a receiver needn't take for a message."""
    return any(_is_damage(own_step(step)) for step in case)


def _is_damage(step: Step) -> bool:
    name = step[0]
    if name in _WORDS:
        place, words = _WORDS[name]
        if _part(step, place) in words:
            return True
    places = _PLACES.get(name)
    if places is None:
        return name in DAMAGING_STEPS
    method, params = (_part(step, place) for place in places)
    if not isinstance(method, str) or not method:
        return True
    if name == "request" and isinstance(_part(step, ID_PLACE), list):
        return True  # an id that some read as another one, or that comes again
    if name == "request" and _part(step, META_PLACE) in _NO_REVISION and len(step) > META_PLACE:
        return True  # a server of both eras can take its process for one of the other era
    return params != "absent" and not isinstance(params, dict)


def _part(step: Step, place: int) -> Any:
    return step[place] if place < len(step) else "absent"
