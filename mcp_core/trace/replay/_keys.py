"""Comparable forms of messages, without the parts that belong to one conversation.

1. A redacted value equals every other value at its place. Its member's name stays.
2. Members of `_meta` that belong to one exchange, such as a progress token, don't count.
3. Numbers are compared as JSON has them: 1 and 1.0 are equal.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._recorded import RecordedMessage

__all__ = [
    "ANY",
    "HIDDEN_TEXT",
    "Pointer",
    "call_form",
    "digest",
    "exact_form",
    "format_pointer",
    "hidden_pointers",
    "hide",
    "matches_any",
    "parse_pointer",
    "wild_form",
    "without",
]

# The names and indices that lead to a value.
Pointer = tuple[str, ...]

# Stands for a value that equals every other one. No JSON text has it.
ANY: Final = "\x00any"
# The text of a redacted value.
HIDDEN_TEXT: Final = re.compile(r"‹redacted \d+›")
_META: Final = "io.modelcontextprotocol/"
# Members that belong to one exchange, to one client or to a tracing system.
_VOLATILE_META: Final = frozenset(
    (
        *("progressToken", "traceparent", "tracestate", "baggage"),
        *(_META + name for name in ("clientInfo", "clientCapabilities", "protocolVersion")),
        *(_META + name for name in ("logLevel", "serverInfo", "subscriptionId")),
    )
)
# Methods whose params describe the client, not its request.
_WITHOUT_PARAMS: Final = ("initialize", "server/discover", "ping")
# Members that a call has only in a later round.
_ROUND_MEMBERS: Final = ("requestState", "inputResponses")
_PSEUDONYMS: Final = ("taskId", "requestState")
_MAX_DEPTH: Final = 100


def exact_form(method: str, params: Any) -> Any:
    """Return params without the members that differ in each exchange."""
    if method in _WITHOUT_PARAMS:
        return {}
    if not isinstance(params, dict):
        return {} if params is None else params
    found = dict(params)
    meta = found.pop("_meta", None)
    if isinstance(meta, dict):
        kept = {key: value for key, value in meta.items() if key not in _VOLATILE_META}
        if kept:
            found["_meta"] = kept
    return found


def call_form(method: str, params: Any) -> Any:
    """Return params without `_meta` and one round's members: the name and the arguments."""
    if method in _WITHOUT_PARAMS:
        return {}
    if not isinstance(params, dict):
        return {} if params is None else params
    return {
        key: value for key, value in params.items() if key != "_meta" and key not in _ROUND_MEMBERS
    }


def wild_form(form: Any) -> Any:
    """Return `form` with `ANY` for each value that a trace replaces by a pseudonym."""
    return _with_wild_names(form, 0)


def _with_wild_names(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, dict):
        return {
            key: ANY if key in _PSEUDONYMS else _with_wild_names(each, depth + 1)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_with_wild_names(each, depth + 1) for each in value]
    return value


def hidden_pointers(message: RecordedMessage, members: Any) -> frozenset[Pointer]:
    """Return the pointers to a message's values that the recorder replaced."""
    found = {parse_pointer(each) for each in message.redacted}
    if b"redacted" in message.data:
        found.update(_hidden_texts(members, (), 0))
    return frozenset(found)


def _hidden_texts(value: Any, path: Pointer, depth: int) -> Iterable[Pointer]:
    if isinstance(value, str):
        if HIDDEN_TEXT.search(value):
            yield path
    elif depth > _MAX_DEPTH:
        return
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _hidden_texts(each, (*path, key), depth + 1)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _hidden_texts(each, (*path, str(index)), depth + 1)


def hide(value: Any, pointers: Iterable[Pointer]) -> Any:
    """Return `value` with `ANY` at `pointers`."""
    for pointer in pointers:
        value = _hide_one(value, pointer)
    return value


def _hide_one(value: Any, pointer: Pointer) -> Any:
    if not pointer:
        return ANY
    first, rest = pointer[0], pointer[1:]
    if isinstance(value, dict) and first in value:
        return {**value, first: _hide_one(value[first], rest)}
    if isinstance(value, list) and first.isdigit() and int(first) < len(value):
        found = list(value)
        found[int(first)] = _hide_one(value[int(first)], rest)
        return found
    return value


def matches_any(pointer: Pointer, patterns: Iterable[Pointer]) -> bool:
    """Return True if a pointer matches one of `patterns`, where `*` matches any member."""
    return any(
        len(pattern) == len(pointer)
        and all(name in ("*", other) for name, other in zip(pattern, pointer, strict=True))
        for pattern in patterns
    )


def without(value: Any, patterns: Iterable[Pointer]) -> Any:
    """Return `value` without the members and entries that `patterns` match.

    Patterns are as in `matches_any`. An empty one matches nothing here.
    """
    rest: dict[str, list[Pointer]] = {}
    for pattern in patterns:
        if pattern:
            rest.setdefault(pattern[0], []).append(pattern[1:])
    if not rest or not isinstance(value, dict | list):
        return value

    def inner(name: str) -> list[Pointer]:
        return [*rest.get(name, ()), *(rest.get("*", ()) if name != "*" else ())]

    if isinstance(value, dict):
        return {
            name: without(each, found)
            for name, each in value.items()
            if () not in (found := inner(name))
        }
    return [
        without(each, found)
        for index, each in enumerate(value)
        if () not in (found := inner(str(index)))
    ]


def digest(value: Any) -> bytes:
    """Return a digest of a JSON value: equal values have equal digests."""
    text = json.dumps(_plain(value, 0), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, dict):
        return {key: _plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, depth + 1) for each in value]
    return value


def parse_pointer(text: str) -> Pointer:
    """Read a JSON pointer (RFC 6901).

    Raises:
        ValueError: it isn't one.
    """
    if text and not text.startswith("/"):
        raise ValueError(f"{text!r} is not a JSON pointer: write it as /result/content/0/text")
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in text.split("/")[1:])


def format_pointer(pointer: Iterable[str]) -> str:
    """Return the text of a JSON pointer (RFC 6901)."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in pointer)
