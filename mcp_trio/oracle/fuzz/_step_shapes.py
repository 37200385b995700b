"""The steps of cases by name, with the shapes of their words.

Stored reports, baselines and written tests come from outside: another version has written them, or
they were edited. `check_steps` compares a case with these tables before it is played, so a
player can trust the words of a step. A step that isn't in its table would be played as nothing, and
its case would look as if its fault were repaired.

`_case` says what the steps mean, and `client._script_case` those for clients.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from mcp_core import ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

__all__ = [
    "CLIENT_STEPS",
    "MAX_LEVELS",
    "ON",
    "SERVER_STEPS",
    "CaseError",
    "Side",
    "StepShape",
    "Word",
    "check_step",
    "is_json",
]

Side = Literal["client", "server"]

ON: Final = "on"  # the name of a step that another client plays
MAX_LEVELS: Final = 200  # of a JSON value; deeper ones are sent as texts and bytes
_SHOWN: Final = 60  # characters of a word in an error


class CaseError(ValueError):
    """An error for a value that isn't a case. The message names step and cause, as a clause."""


class Word(Struct, frozen=True):
    """A word of a step.

    Attributes:
        name: its name.
        wanted: what it has to be, as a noun.
        fits: returns True for a right one.
        is_optional: it can be left out, with all words after it.
    """

    name: str
    wanted: str
    fits: Callable[[Any], bool]
    is_optional: bool = False


StepShape = tuple[Word, ...]


def is_json(value: Any, levels: int = MAX_LEVELS) -> bool:
    """Return True for a JSON value of at most `levels` levels. Tuples count as arrays."""
    waiting = [(value, 0)]
    while waiting:
        each, level = waiting.pop()
        if each is None or isinstance(each, str | int | float):
            continue
        if level >= levels:
            return False
        if isinstance(each, dict):
            if not all(isinstance(key, str) for key in each):
                return False
            waiting += [(member, level + 1) for member in each.values()]
        elif isinstance(each, list | tuple):
            waiting += [(member, level + 1) for member in each]
        else:
            return False
    return True


# -- Words -----------------------------------------------------------------------------------------

_ID_KINDS: Final = ("int", "digits", "text")
_BATCH_MEMBER: Final = 3  # words of a member of the step `batch`


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_id(value: Any) -> bool:
    return _is_text(value) or _is_integer(value)


def _is_id_word(value: Any) -> bool:
    """Return True for a kind of ids, and for a list with the id itself."""
    if isinstance(value, list | tuple):
        return len(value) == 1 and _is_id(value[0])
    return _is_text(value) and value in _ID_KINDS


def _is_member(value: Any) -> bool:
    """Return True for a member of a batch: its method, params and id."""
    if not isinstance(value, list | tuple) or len(value) != _BATCH_MEMBER:
        return False
    method, params, id = value
    return _is_text(method) and is_json(params) and (id is None or _is_id_word(id))


def _is_filter(value: Any) -> bool:
    """Return True for a subscription's filter. Odd ones are drawn, too."""
    uris = value.get("resourceSubscriptions", []) if isinstance(value, dict) else []
    return is_json(value) and isinstance(uris, list)


def _text(name: str, *, is_optional: bool = False) -> Word:
    return Word(name, "a text", _is_text, is_optional)


def _integer(name: str) -> Word:
    return Word(name, "an integer", _is_integer)


def _value(name: str, *, is_optional: bool = False) -> Word:
    return Word(name, f"JSON with at most {MAX_LEVELS} levels", is_json, is_optional)


def _one_of(name: str, *words: str, is_optional: bool = False) -> Word:
    return Word(
        name,
        f"one of {', '.join(words)}",
        lambda value: isinstance(value, str) and value in words,
        is_optional,
    )


def _list_of(
    name: str, what: str, fits: Callable[[Any], bool], *, is_optional: bool = False
) -> Word:
    return Word(
        name,
        f"a list of {what}",
        lambda value: isinstance(value, list | tuple) and all(map(fits, value)),
        is_optional,
    )


_METHOD: Final = _text("method")
_PARAMS: Final = _value("params", is_optional=True)
_PLACE: Final = _integer("place")
# Earlier versions have shortened it in their findings: what isn't known is played as the usual way.
_HOW: Final = _text("how")

SERVER_STEPS: Final[Mapping[str, StepShape]] = {
    "open": (
        Word("revision", "a revision that this version knows", lambda value: value in ALL),
        _one_of(
            *("how", "whole", "half", "late", "twice", "unknown", "none"),
            is_optional=True,
        ),
        _one_of("offers", "all", "none", is_optional=True),
    ),
    "request": (
        _METHOD,
        _PARAMS,
        Word("id", "int, digits, text, or a list with an id", _is_id_word, is_optional=True),
        _one_of("meta", "whole", "absent", "old", "bare", is_optional=True),
    ),
    "call": (
        _text("tool"),
        _value("arguments"),
        _list_of(
            "extra",
            "progress, task, text and unsupported task",
            lambda each: each in ("progress", "task", "text", "unsupported task"),
            is_optional=True,
        ),
    ),
    "hand": (_text("tool"), _text("argument"), _text("value"), _PLACE),
    "notify": (_METHOD, _PARAMS),
    "burst": (_integer("count"), _METHOD, _PARAMS),
    "batch": (_list_of("members", "lists of method, params and id", _is_member),),
    "parts": (_one_of("how", "body", "head", "chunks"), _PLACE),
    "wait": (),
    "cancel": (_PLACE,),
    "progress": (_PLACE,),
    "respond": (_PLACE, _HOW),
    "reply": (
        Word("id", "an integer or a text", _is_id),
        Word("members", "a JSON object", lambda value: isinstance(value, dict) and is_json(value)),
    ),
    "page": (
        _METHOD,
        _one_of("how", "all", "whole", "first", "stale", "invented", "other", "rest"),
    ),
    "retry": (_PLACE, _HOW),
    "listen": (Word("filter", "JSON whose resourceSubscriptions are a list", _is_filter),),
    "task": (_PLACE, _text("act")),
    "mutate": (_text("text"),),
    "damage": (Word("data", "bytes", lambda value: isinstance(value, bytes)),),
    "disconnect": (),
    "reconnect": (),
    # Over HTTP.
    "head": (
        _one_of(
            *("what", "origin", "null-origin", "near-origin", "host", "accept", "type", "version"),
            *("method", "name", "session", "no-session", "none"),
            *("argument", "no-argument", "bad-argument"),
        ),
        _METHOD,
        _PARAMS,
    ),
    "get": (_HOW,),
    "delete": (_HOW,),
    "half": (
        _one_of(
            *("place", "start", "head", "end", "body", "chunk-size", "chunk"),
            is_optional=True,
        ),
    ),
    "release": (),
    # Of `--stress`.
    "large": (
        _one_of("what", "message", "header", "headers", "target", "announced"),
        _integer("size"),
    ),
    "deep": (_one_of("how", "array", "object"), _integer("depth")),
    "slow": (),
    "heads": (_integer("count"),),
    "unread": (_integer("count"),),
    "streams": (_one_of("what", "listen", "get", "session"), _integer("count")),
}
"""The steps for a server. With `on` and a client before it, a step is the other client's."""

_NUMBER: Final = _integer("number")
_ANSWERS: Final = (
    *("right", "never", "close", "late", "twice", "id-type", "id-other", "without", "version"),
    *("error", "odd-error", "both", "odd-result", "shape", "result-type", "cursor", "page"),
    *("revision", "unsupported", "output", "unknown-members", "spaced", "batch", "huge", "deep"),
    *("half", "progress-after", "input", "task", "acknowledged"),
)
_PUSHES: Final = (
    *("ping", "sampling", "elicitation", "roots", "unknown-request", "cancelled-request"),
    *("list-changed", "progress", "log", "notification", "response", "junk", "empty-line"),
    "batch",
)

CLIENT_STEPS: Final[Mapping[str, StepShape]] = {
    "serve": (
        _list_of("revisions", "revisions that this version knows", lambda each: each in ALL),
        _list_of("tools", "texts", _is_text),
    ),
    "answer": (_one_of("how", *_ANSWERS), _PLACE, _NUMBER),
    "always": (_one_of("how", *_ANSWERS), _PLACE, _NUMBER),
    "push": (_one_of("what", *_PUSHES), _PLACE, _NUMBER),
    "http": (
        _one_of(
            *("how", "status", "type", "resume", "session", "cut", "head", "body", "events"),
        ),
        _PLACE,
        _NUMBER,
    ),
}
"""The steps for a client."""

_STEPS: Final[Mapping[Side, Mapping[str, StepShape]]] = {
    "server": SERVER_STEPS,
    "client": CLIENT_STEPS,
}


def check_step(step: Sequence[Any], place: int, side: Side) -> None:
    """Check a step without `on` and its client.

    Args:
        step: the step, which begins with its name.
        place: its place in the case, for the error.
        side: whom the case is for.

    Raises:
        CaseError: the step doesn't exist, or one of its words has another shape.
    """
    name, *words = step
    shape = _STEPS[side].get(name)
    if shape is None:
        raise CaseError(
            f"its step {place} is unknown: there is no step {_shown(name)} for a {side}; play the"
            " case with the version of mcp-trio that wrote it; this one has"
            f" {', '.join(_names(side))}"
        )
    if len(words) > len(shape):
        count = {0: "none", 1: "1"}.get(len(shape), f"at most {len(shape)}")
        raise CaseError(f"its step {place}, {name}, has {len(words)} words, and takes {count}")
    for at, word in enumerate(shape):
        if at >= len(words):
            if not word.is_optional:
                raise CaseError(
                    f"its step {place}, {name}, has no {word.name}: it needs {word.wanted}"
                )
            break
        if not word.fits(words[at]):
            raise CaseError(
                f"its step {place}, {name}, has the {word.name} {_shown(words[at])}: it needs"
                f" {word.wanted}"
            )


def _names(side: Side) -> Collection[str]:
    """Return the names of all steps, for an error."""
    return sorted({*_STEPS[side], *((ON,) if side == "server" else ())})


def _shown(word: Any) -> str:
    """Return a word for an error, as ASCII."""
    return json.dumps(word)[:_SHOWN] if is_json(word) else f"({type(word).__name__})"
