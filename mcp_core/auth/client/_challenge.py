"""A parser for `WWW-Authenticate`, the challenges with which a server rejects a request.

1. Any input is read without an exception: several headers, several challenges in one header,
   token68, quoted strings with commas and escapes.
2. A value that should be quoted and isn't, such as a URL, cannot be read: it is empty. The
   parameters after it are read.
3. The work is linear in the length of the input, of which only the first `MAX_LENGTH` characters
   are read.

Sources: RFC 9110 section 11.6.1, RFC 6750 section 3, RFC 9728 section 5.1, RFC 9449 section 7.1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AuthChallenge", "Challenge", "parse_auth_challenge", "parse_challenges", "split_scopes"]

MAX_LENGTH: Final = 16_384  # characters of all headers together
MAX_SCOPES: Final = 100

_TCHAR: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
_SEPARATORS: Final = re.compile(r"[ \t,]*")
_PARAM: Final = re.compile(
    rf"({_TCHAR}+)[ \t]*=[ \t]*(?:\"((?:[^\"\\]|\\.)*)\"|({_TCHAR}+)(?![^\s,]))", re.DOTALL
)
# A parameter whose value would have to be quoted.
_UNQUOTED: Final = re.compile(rf"({_TCHAR}+)[ \t]*=[ \t]*[^\s,\"=][^\s,]*")
# A parameter whose quoted string doesn't end.
_UNTERMINATED: Final = re.compile(rf"{_TCHAR}+[ \t]*=[ \t]*\"")
_SCHEME: Final = re.compile(rf"{_TCHAR}+")
_TOKEN68: Final = re.compile(r"[ ]+([A-Za-z0-9\-._~+/]+=*)[ \t]*(?:,|$)")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
# RFC 6749 section 3.3. No scope longer than this was ever seen.
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}")


class Challenge(Struct, frozen=True):
    """One challenge: its scheme, and either its parameters or its token68.

    The scheme and the parameters' names are in lower case.
    """

    scheme: str
    parameters: dict[str, str]
    token68: str | None = None


class AuthChallenge(Struct, frozen=True):
    """The Bearer and DPoP challenges of one response, merged.

    `scheme` is "bearer" or "dpop", or "" if the response has neither. `dpop` is True if there is a
    DPoP challenge, alone or beside Bearer.
    """

    scheme: str = ""
    resource_metadata: str | None = None
    scopes: tuple[str, ...] = ()
    error: str | None = None
    dpop: bool = False


def parse_challenges(values: Iterable[str]) -> list[Challenge]:
    """Parse the `WWW-Authenticate` headers of a response. Return their challenges in order."""
    found: list[Challenge] = []
    remaining = MAX_LENGTH
    for value in values:
        _parse_header(value[:remaining], found)
        remaining = max(remaining - len(value), 0)
    return found


def parse_auth_challenge(values: Iterable[str]) -> AuthChallenge:
    """Parse the `WWW-Authenticate` headers of a response and merge its challenges.

    The first value of a parameter counts. The scheme is "dpop" only if there is no Bearer
    challenge.
    """
    found = [
        challenge
        for challenge in parse_challenges(values)
        if challenge.scheme in ("bearer", "dpop")
    ]
    if not found:
        return AuthChallenge()
    merged: dict[str, str] = {}
    for challenge in found:
        merged = challenge.parameters | merged  # earlier values win
    return AuthChallenge(
        scheme="bearer" if any(challenge.scheme == "bearer" for challenge in found) else "dpop",
        resource_metadata=merged.get("resource_metadata"),
        scopes=split_scopes(merged.get("scope", "")),
        error=merged.get("error"),
        dpop=any(challenge.scheme == "dpop" for challenge in found),
    )


def split_scopes(text: str) -> tuple[str, ...]:
    """Split a space-separated list of scopes. Return each valid scope once, in order.

    At most the first `MAX_SCOPES` scopes are returned.
    """
    scopes = dict.fromkeys(scope for scope in text.split(" ") if _SCOPE.fullmatch(scope))
    return tuple(scopes)[:MAX_SCOPES]


def _parse_header(text: str, found: list[Challenge]) -> None:
    """Append the challenges of one header to `found`. Skip what cannot be parsed."""
    at = 0
    current: Challenge | None = None
    while True:
        at = _match_end(_SEPARATORS, text, at)
        if at == len(text):
            return
        if match := _PARAM.match(text, at):
            name, quoted, token = match.groups()
            if current is not None:
                value = token if quoted is None else _ESCAPE.sub(r"\1", quoted)
                current.parameters.setdefault(name.lower(), value)  # the first value counts
            at = match.end()
        elif match := _UNQUOTED.match(text, at):
            if current is not None:
                current.parameters.setdefault(match.group(1).lower(), "")
            at = match.end()
        elif _UNTERMINATED.match(text, at):
            return  # the string may contain anything, so the rest of the header is lost
        elif match := _SCHEME.match(text, at):
            scheme = match.group().lower()
            at = match.end()
            token68 = _TOKEN68.match(text, at)
            if token68:
                at = token68.end()
            current = Challenge(scheme, {}, token68.group(1) if token68 else None)
            found.append(current)
        else:
            # Not a challenge: continue after the next comma.
            comma = text.find(",", at)
            if comma < 0:
                return
            at = comma


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the position after a match of `pattern` at `at`.

    The pattern must match the empty string.
    """
    match = pattern.match(text, at)
    assert match is not None
    return match.end()
