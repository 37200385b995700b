"""What a server asks for when it refuses a request: `WWW-Authenticate`, parsed.

Rules of this file:

1. Any list of header values is read, whatever its bytes, without an exception: several headers, several challenges in one,
   token68, quoted strings with commas and escapes. What cannot be read is skipped up to the next comma; a quoted string that
   does not end takes the rest of its header with it.
2. Of a parameter that stands twice the first counts.
3. The work is linear in the length of the input, which is cut at `MAX_LENGTH`.

Sources: RFC 9110 section 11.6.1, RFC 6750 section 3, RFC 9728 section 5.1, RFC 9449 section 7.1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Challenge", "Demand", "challenges_in", "demand_in", "split_scopes"]

MAX_LENGTH: Final = 16_384
MAX_SCOPES: Final = 100

_TCHAR: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
_SEPARATORS: Final = re.compile(r"[ \t,]*")
_PARAM: Final = re.compile(rf"({_TCHAR}+)[ \t]*=[ \t]*(?:\"((?:[^\"\\]|\\.)*)\"|({_TCHAR}+))", re.DOTALL)
_BROKEN: Final = re.compile(rf"{_TCHAR}+[ \t]*=[ \t]*\"")
_SCHEME: Final = re.compile(rf"{_TCHAR}+")
_TOKEN68: Final = re.compile(r"[ ]+([A-Za-z0-9\-._~+/]+=*)[ \t]*(?:,|$)")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
# RFC 6749 section 3.3; longer ones than this were never seen
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}")


class Challenge(Struct, frozen=True):
    """One challenge: its scheme in lower case, its parameters (names in lower case) or its token68."""

    scheme: str
    parameters: dict[str, str]
    token68: str | None = None


class Demand(Struct, frozen=True):
    """What the Bearer and DPoP challenges of one response ask for. `scheme` is "" if there was none of them; `dpop`: there was one of
    DPoP, beside Bearer or alone."""

    scheme: str = ""
    resource_metadata: str | None = None
    scopes: tuple[str, ...] = ()
    error: str | None = None
    dpop: bool = False


def challenges_in(values: Iterable[str]) -> list[Challenge]:
    """The challenges of the `WWW-Authenticate` headers of a response, in their order."""
    found: list[Challenge] = []
    rest = MAX_LENGTH
    for value in values:
        _read(value[:rest], found)
        rest -= len(value)
        if rest <= 0:
            break
    return found


def demand_in(values: Iterable[str]) -> Demand:
    """What a response asks for, all its challenges together; of a parameter the first. The scheme is DPoP if Bearer is not offered."""
    found = [challenge for challenge in challenges_in(values) if challenge.scheme in ("bearer", "dpop")]
    if not found:
        return Demand()
    merged: dict[str, str] = {}
    for challenge in found:
        merged = challenge.parameters | merged
    return Demand(
        scheme="bearer" if any(challenge.scheme == "bearer" for challenge in found) else "dpop",
        resource_metadata=merged.get("resource_metadata"),
        scopes=split_scopes(merged.get("scope", "")),
        error=merged.get("error"),
        dpop=any(challenge.scheme == "dpop" for challenge in found),
    )


def split_scopes(text: str) -> tuple[str, ...]:
    """The scopes of a list with spaces, each once, in their order; what is no scope is left out."""
    scopes = dict.fromkeys(scope for scope in text.split(" ") if _SCOPE.fullmatch(scope))
    return tuple(scopes)[:MAX_SCOPES]


def _read(text: str, found: list[Challenge]) -> None:
    at = 0
    current: Challenge | None = None
    while True:
        at = _end(_SEPARATORS, text, at)
        if at == len(text):
            return
        if match := _PARAM.match(text, at):
            name, quoted, token = match.groups()
            if current is not None:
                value = token if quoted is None else _ESCAPE.sub(r"\1", quoted)
                current.parameters.setdefault(name.lower(), value)
            at = match.end()
        elif _BROKEN.match(text, at):
            return
        elif match := _SCHEME.match(text, at):
            scheme, at = match.group().lower(), match.end()
            alone = _TOKEN68.match(text, at)
            if alone:
                at = alone.end()
            current = Challenge(scheme, {}, alone.group(1) if alone else None)
            found.append(current)
        else:
            comma = text.find(",", at)
            if comma < 0:
                return
            at = comma


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    assert match is not None  # the pattern takes the empty string too
    return match.end()
