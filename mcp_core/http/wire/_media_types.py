"""Media types: `Content-Type` and `Accept` (RFC 9110, 8.3 and 12.5.1).

1. **A body is JSON only if its type is exactly `application/json`.** A browser posts `text/plain`,
   and types it doesn't know, to any site without asking that site first. It doesn't do so with
   `application/json`. So what is nearly JSON isn't JSON.
2. `Accept` is read leniently: parameters of a range are ignored, and so is a range that cannot be
   parsed. Sending a response that the peer may not like does no harm.
3. Results are cached for exact values, in caches of a fixed size: a client sends the same value
   with each request.

Several lines of `Accept` must be joined by `, ` before they are passed in. Several lines of
`Content-Type` are rejected earlier, with the head.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = [
    "CONTENT_TYPE_JSON",
    "EVENT_STREAM",
    "JSON",
    "accepts",
    "is_event_stream",
    "is_json",
    "media_type",
]

JSON: Final = b"application/json"
EVENT_STREAM: Final = b"text/event-stream"
CONTENT_TYPE_JSON: Final = (b"content-type", JSON)

_CACHE_SIZE: Final = 128  # values per function
# Bytes of a value; browsers send 150. A longer value matches nothing, and isn't cached.
_MAX_VALUE: Final = 1024

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_TYPE: Final = re.compile(rb"[ \t]*+(" + _TOKEN + rb"/" + _TOKEN + rb")")
# A parameter may be empty (RFC 9110, 5.6.6). This matches as far as the text is well-formed; the
# caller checks where it stopped.
_PARAMETER: Final = re.compile(
    rb"[ \t]*+;[ \t]*+(?:("
    + _TOKEN
    + rb')=(?:"((?:[^"\\\x00-\x08\x0a-\x1f\x7f]++|\\[\t -~\x80-\xff])*)"|('
    + _TOKEN
    + rb")))?"
)
_END: Final = re.compile(rb"[ \t]*+\Z")
_LIST_ITEM: Final = re.compile(rb'(?:[^,"]++|"(?:[^"\\]++|\\.)*"?+)*(?:,|\Z)', re.DOTALL)
_ZERO_WEIGHT: Final = re.compile(rb"0(?:\.0{0,3})?")
_WEIGHT: Final = re.compile(rb"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")

Parameters = tuple[tuple[bytes, bytes], ...]


def is_json(content_type: bytes | None) -> bool:
    """Return True for `application/json`, in UTF-8 if it names a charset, with any parameters."""
    return content_type is not None and len(content_type) <= _MAX_VALUE and _is_json(content_type)


def is_event_stream(content_type: bytes | None) -> bool:
    """Return True for `text/event-stream`, with any parameters.

    An event stream is always UTF-8, even if its parameters name a charset (WHATWG HTML, 9.2.5).
    """
    return media_type(content_type) == EVENT_STREAM


def media_type(content_type: bytes | None) -> bytes | None:
    """Return the type in lower case, without parameters; None if it is missing or malformed."""
    if content_type is None or len(content_type) > _MAX_VALUE:
        return None
    parsed = _parse_type(content_type)
    return parsed[0] if parsed else None


def accepts(accept: bytes | None, *types: bytes) -> bool:
    """Return True if the peer accepts each of `types` (in lower case).

    Without an `Accept` header it accepts everything.
    """
    return accept is None or (len(accept) <= _MAX_VALUE and _accepts(accept, types))


@lru_cache(_CACHE_SIZE)
def _is_json(content_type: bytes) -> bool:
    parsed = _parse_type(content_type)
    if parsed is None or parsed[0] != JSON:
        return False
    charsets = [value for name, value in parsed[1] if name == b"charset"]
    return not charsets or charsets == [b"utf-8"]


@lru_cache(_CACHE_SIZE)
def _parse_type(value: bytes) -> tuple[bytes, Parameters] | None:
    """Return a type and its parameters, in lower case; None if `value` is malformed."""
    value = value.lower()
    type_match = _TYPE.match(value)
    if type_match is None:
        return None
    parameters, position = _parse_parameters(value, type_match.end())
    return (type_match[1], parameters) if _END.match(value, position) else None


def _parse_parameters(value: bytes, position: int) -> tuple[Parameters, int]:
    """Return the parameters from `position` on, and where they end."""
    parameters: list[tuple[bytes, bytes]] = []
    while found := _PARAMETER.match(value, position):
        position = found.end()
        name, quoted, plain = found.groups()
        if name is not None:
            parameters.append(
                (name, plain if quoted is None else re.sub(rb"\\(.)", rb"\1", quoted))
            )
    return tuple(parameters), position


@lru_cache(_CACHE_SIZE)
def _accepts(accept: bytes, types: tuple[bytes, ...]) -> bool:
    ranges = _parse_ranges(accept.lower())
    return all(_is_acceptable(type, ranges) for type in types)


def _is_acceptable(type: bytes, ranges: dict[bytes, bool]) -> bool:
    """Return True if the most specific range that matches allows the type."""
    for candidate in (type, type.partition(b"/")[0] + b"/*", b"*/*"):
        if candidate in ranges:
            return ranges[candidate]
    return False


def _parse_ranges(accept: bytes) -> dict[bytes, bool]:
    """Return each range, and whether its weight is above 0. Higher weights make no difference."""
    ranges: dict[bytes, bool] = {}
    position = 0
    while position < len(accept):
        following = _LIST_ITEM.match(accept, position)
        assert following  # the pattern matches even the empty string
        item = accept[position : following.end()].removesuffix(b",")
        position = following.end()
        type_match = _TYPE.match(item)
        if type_match is None:
            continue
        parameters, end = _parse_parameters(item, type_match.end())
        weight = next((value for name, value in parameters if name == b"q"), b"1")
        if _END.match(item, end) and _WEIGHT.fullmatch(weight):
            ranges[type_match[1]] = ranges.get(type_match[1], False) or not _ZERO_WEIGHT.fullmatch(
                weight
            )
    return ranges
