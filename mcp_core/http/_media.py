"""Media types: what a body says it is (`Content-Type`) and what the other side can read (`Accept`). RFC 9110 8.3 and 12.5.1.

Rules of this file:

1. **A body is JSON only if it says so exactly.** A browser posts `text/plain`, and types it does not understand, to any
   site without asking that site; `application/json` it does not. So what is nearly JSON is not JSON.
2. What a peer *accepts* is read with good will: parameters of a range are ignored, and so is a range that nobody can
   read. Serving somebody who may not like it harms nobody.
3. Verdicts are kept for exact values, in caches of a fixed size: a client says the same with each of its requests.

Several lines of `Accept` are joined by `, ` before they come here; several of `Content-Type` are refused before they
do. It does not know which methods need which types.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["EVENT_STREAM", "JSON", "accepts", "is_event_stream", "is_json", "media_type"]

JSON: Final = b"application/json"
EVENT_STREAM: Final = b"text/event-stream"

_VERDICTS: Final = 128  # of each question
_LONGEST: Final = 1024  # bytes of a value; browsers send 150. A longer one says nothing, and is not kept

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_TYPE: Final = re.compile(rb"[ \t]*+(" + _TOKEN + rb"/" + _TOKEN + rb")")
# A parameter may be empty: RFC 9110 5.6.6. Only matched as far as it is well-formed; the caller looks at where it stopped.
_PARAMETER: Final = re.compile(
    rb"[ \t]*+;[ \t]*+(?:("
    + _TOKEN
    + rb')=(?:"((?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\t -~\x80-\xff])*+)"|('
    + _TOKEN
    + rb")))?+"
)
_END: Final = re.compile(rb"[ \t]*+\Z")
_NEXT: Final = re.compile(rb'(?:[^,"]|"(?:[^"\\]|\\.)*+"?+)*+(?:,|\Z)', re.DOTALL)
_NOTHING: Final = re.compile(rb"0(?:\.0{0,3})?+")
_WEIGHT: Final = re.compile(rb"0(?:\.[0-9]{0,3})?+|1(?:\.0{0,3})?+")

Parameters = tuple[tuple[bytes, bytes], ...]


def is_json(content_type: bytes | None) -> bool:
    """Whether it is `application/json`, in UTF-8 if it names a charset. Other parameters do not matter."""
    return content_type is not None and len(content_type) <= _LONGEST and _is_json(content_type)


def is_event_stream(content_type: bytes | None) -> bool:
    """Whether it is `text/event-stream`. That one is always UTF-8, whatever its parameters claim (WHATWG HTML, 9.2.5)."""
    return media_type(content_type) == EVENT_STREAM


def media_type(content_type: bytes | None) -> bytes | None:
    """The type without its parameters, in lower case; None if there is none, or more than one, or none that can be read."""
    if content_type is None or len(content_type) > _LONGEST:
        return None
    read = _read(content_type)
    return read[0] if read else None


def accepts(accept: bytes | None, *types: bytes) -> bool:
    """Whether each of `types` (in lower case) may be sent to a peer that says so. Without `Accept` anything may be."""
    return accept is None or (len(accept) <= _LONGEST and _accepts(accept, types))


@lru_cache(_VERDICTS)
def _is_json(content_type: bytes) -> bool:
    read = _read(content_type)
    if read is None or read[0] != JSON:
        return False
    charsets = [value for name, value in read[1] if name == b"charset"]
    return not charsets or charsets == [b"utf-8"]


@lru_cache(_VERDICTS)
def _read(value: bytes) -> tuple[bytes, Parameters] | None:
    """A type and its parameters, in lower case; None if `value` is not just that."""
    value = value.lower()
    named = _TYPE.match(value)
    if named is None:
        return None
    parameters, position = _parameters(value, named.end())
    return (named[1], parameters) if _END.match(value, position) else None


def _parameters(value: bytes, position: int) -> tuple[Parameters, int]:
    """The parameters from there on, and where they end."""
    parameters: list[tuple[bytes, bytes]] = []
    while found := _PARAMETER.match(value, position):
        position = found.end()
        name, quoted, plain = found.groups()
        if name is not None:
            parameters.append((name, plain if quoted is None else re.sub(rb"\\(.)", rb"\1", quoted)))
    return tuple(parameters), position


@lru_cache(_VERDICTS)
def _accepts(accept: bytes, types: tuple[bytes, ...]) -> bool:
    ranges = _ranges(accept.lower())
    return all(_may_be_sent(type, ranges) for type in types)


def _may_be_sent(type: bytes, ranges: dict[bytes, bool]) -> bool:
    """The most specific range decides, however much a wider one likes the type."""
    for candidate in (type, type.partition(b"/")[0] + b"/*", b"*/*"):
        if candidate in ranges:
            return ranges[candidate]
    return False


def _ranges(accept: bytes) -> dict[bytes, bool]:
    """Each range and whether it is wanted at all; which is liked better makes no difference to us."""
    ranges: dict[bytes, bool] = {}
    position = 0
    while position < len(accept):
        following = _NEXT.match(accept, position)
        assert following  # it matches anything, nothing included
        item = accept[position : following.end()].removesuffix(b",")
        position = following.end()
        named = _TYPE.match(item)
        if named is None:
            continue
        parameters, end = _parameters(item, named.end())
        weight = next((value for name, value in parameters if name == b"q"), b"1")
        if _END.match(item, end) and _WEIGHT.fullmatch(weight):
            ranges[named[1]] = ranges.get(named[1], False) or not _NOTHING.fullmatch(weight)
    return ranges
