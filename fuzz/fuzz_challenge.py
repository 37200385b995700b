# Invariant: whatever a server writes into WWW-Authenticate is read, and what was read is read again when it is written
# anew; challenges that are spelled in any way that RFC 9110 allows are read as they were meant; and whatever our own guard is
# told of a refusal, it writes one header for each scheme, in printable ASCII, in which our client finds just what was meant.
"""`WWW-Authenticate`, as `mcp_core.auth` reads and writes it. Nothing may be raised.

The judge is who wrote the challenges: a spelling of a list of schemes with their parameters, made here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcp_core.auth import Guard
from mcp_core.auth._challenge import MAX_LENGTH, Challenge, challenges_in, demand_in

from .targets import Target
from .values import weighted

# a scheme; its token68, if it has one; or else its parameters
Meant: TypeAlias = tuple[str, str | None, list[tuple[str, str]]]
# "heard" and the headers; or "meant", the challenges and the seed of a spelling; or "told" and what a guard is told
Case: TypeAlias = tuple[Any, ...]

RESOURCE: Final = "https://mcp.example.com/mcp"
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PRINTABLE: Final = re.compile(rb"[\x20-\x7e]+")
_GUARDS: Final = [
    Guard(RESOURCE, ["https://as.example.com"], lambda token: None, scopes=["base"], dpop=dpop)
    for dpop in (False, True)
]


def check(case: Case) -> Iterable[str]:
    if case[0] == "heard":
        return _check_heard(case[1])
    if case[0] == "meant":
        return _check_meant(case[1], case[2])
    return _check_told(*case[1:])


def _check_heard(headers: list[str]) -> Iterable[str]:
    found = challenges_in(headers)
    for challenge in found:
        assert challenge.scheme == challenge.scheme.lower()
        assert _TOKEN.fullmatch(challenge.scheme)
        assert all(name == name.lower() and _TOKEN.fullmatch(name) for name in challenge.parameters)
    anew = [_written(challenge) for challenge in found]
    if sum(map(len, anew)) <= MAX_LENGTH:
        assert challenges_in(anew) == found, f"written anew as {anew!r} it reads otherwise"
    demand = demand_in(headers)
    schemes = {challenge.scheme for challenge in found}
    assert demand.dpop is ("dpop" in schemes)
    assert bool(demand.scheme) is bool(schemes & {"bearer", "dpop"})
    yield f"{min(len(found), 3)} heard"
    yield f"for {demand.scheme or 'nobody'}, {len(demand.scopes)} scopes, {demand.error is not None}"


def _check_meant(meant: list[Meant], seed: int) -> Iterable[str]:
    wanted = []
    for scheme, alone, parameters in meant:
        first: dict[str, str] = {}
        for name, value in parameters:
            first.setdefault(name.lower(), value)
        wanted.append(Challenge(scheme.lower(), first, alone))
    headers = _spelled(meant, Random(seed))  # noqa: S311 - nobody has to be unable to guess it
    assert challenges_in(headers) == wanted, f"spelled {headers!r}"
    yield f"{len(meant)} meant, in {len(headers)} headers"
    yield f"{sum(alone is not None for _, alone, _ in meant)} with token68"


def _check_told(
    dpop: bool, error: str | None, description: str | None, scopes: list[str] | None
) -> Iterable[str]:
    headers = [value for _, value in _GUARDS[dpop].challenge(error, description, scopes)]
    assert all(_PRINTABLE.fullmatch(value) for value in headers)
    found = challenges_in([value.decode() for value in headers])
    assert [challenge.scheme for challenge in found] == ["bearer", "dpop"][: 1 + dpop]
    for challenge in found:
        told = challenge.parameters
        assert told.keys() <= {"error", "error_description", "scope", "resource_metadata", "algs"}
        assert told["resource_metadata"] == "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
        assert set(told.get("scope", "").split()) <= set(["base"] if scopes is None else scopes)
    said = found[0].parameters.get("error_description", "")
    assert len(said) == len(description or "")
    assert all(mine in (theirs, "?") for mine, theirs in zip(said, description or "", strict=True))
    yield f"told {'as it is' if said == (description or '') else 'with something left out'}"
    yield f"{dpop} {error is not None} {len(found[0].parameters)}"


def _written(challenge: Challenge) -> str:
    """A challenge in the plainest way."""
    quoted = [
        '{}="{}"'.format(name, value.replace("\\", "\\\\").replace('"', '\\"'))
        for name, value in challenge.parameters.items()
    ]
    if challenge.token68 is not None:
        return ", ".join([f"{challenge.scheme} {challenge.token68}", *quoted])
    return f"{challenge.scheme} {', '.join(quoted)}".strip()


def _spelled(meant: list[Meant], by: Random) -> list[str]:
    """Challenges in one of the many ways, as the values of one or several headers."""
    headers = [""]
    for scheme, alone, parameters in meant:
        spelled = _cased(scheme, by)
        if alone is not None:
            spelled += f" {alone}"
        for place, (name, value) in enumerate(parameters):
            between = _comma(by) if place else " "
            spelled += f"{between}{_cased(name, by)}{_space(by)}={_space(by)}{_value(value, by)}"
        if not headers[-1]:
            headers[-1] = spelled
        elif by.random() < 0.5:
            headers[-1] += _comma(by) + spelled
        else:
            headers.append(spelled)
    return headers


def _cased(word: str, by: Random) -> str:
    return by.choice((word, word.upper(), word.lower()))


def _space(by: Random) -> str:
    return by.choice(("", "", "", " ", "\t"))


def _comma(by: Random) -> str:
    return by.choice((", ", ",", " ,", ", ,", "\t,\t"))


def _value(value: str, by: Random) -> str:
    if _TOKEN.fullmatch(value) and by.random() < 0.5:
        return value
    return '"{}"'.format(
        "".join(f"\\{each}" if each in '"\\' or by.random() < 0.1 else each for each in value)
    )


# -- Cases -------------------------------------------------------------------------------------------------------------

_PIECES: Final = (
    *("Bearer", "DPoP", "Basic", " ", ",", "=", '"', "\\", "realm", 'scope="a b"', "error=x", "abc==", "a"),
    *("\t", "\r\n", "\0", "é", "\u2028", 'resource_metadata="https://e.com/x"', "Bearer ", '="', '",', ", "),
    "x" * 300,
)
_SCHEMES: Final = st.sampled_from(("Bearer", "DPoP", "Basic", "Negotiate", "X!y"))
_NAMES: Final = st.sampled_from(("realm", "scope", "error", "resource_metadata", "algs", "a", "charset*"))
_TEXTS: Final = st.one_of(
    st.sampled_from(("", "a", "a b", 'say "x", y=z', "\\", "https://e.com/mcp", "é", "Bearer a=b")),
    st.text(max_size=8),
)
_MEANT: Final[SearchStrategy[Meant]] = st.one_of(
    st.tuples(_SCHEMES, st.none(), st.lists(st.tuples(_NAMES, _TEXTS), max_size=4)),
    st.tuples(_SCHEMES, st.sampled_from(("abc", "YWJj", "a/b+c==", "~._-")), st.builds(list)),
)
_CASES: Final = weighted(
    (
        4,
        st.tuples(
            st.just("heard"),
            st.lists(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join), max_size=3),
        ),
    ),
    (4, st.tuples(st.just("meant"), st.lists(_MEANT, min_size=1, max_size=4), st.integers(0, 2**16))),
    (
        2,
        st.tuples(
            st.just("told"),
            st.booleans(),
            st.sampled_from((None, "invalid_token")),
            st.none() | _TEXTS,
            st.none() | st.lists(_TEXTS, max_size=3),
        ),
    ),
)


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    return weighted((9, _CASES), (1, st.sampled_from(seeds))) if seeds else _CASES


TARGET: Final = Target("challenge", cases, check)
