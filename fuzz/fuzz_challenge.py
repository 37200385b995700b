# Invariant: any WWW-Authenticate value is parsed, and parses the same again when serialized.
# Challenges in any spelling that RFC 9110 allows are parsed as intended. For any arguments, our own
# resource server writes one header per scheme, in printable ASCII, in which our client finds what
# was intended.
"""`WWW-Authenticate`, as `mcp_core.auth` parses and writes it. Nothing may be raised.

The oracle is the writer of the challenges: one spelling of a list of schemes with their parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from fuzz.targets import Target
from mcp_core.auth import OAuthResourceServer
from mcp_core.auth.client._challenge import (
    MAX_LENGTH,
    Challenge,
    parse_auth_challenge,
    parse_challenges,
)
from mcp_trio.oracle.strategies._values import weighted

# a scheme; its token68, if it has one; or else its parameters
Intended: TypeAlias = tuple[str, str | None, list[tuple[str, str]]]
# "received" and headers; or "spelled", challenges and the seed of their spelling; or "generated"
# and the arguments of `OAuthResourceServer.challenge`
Case: TypeAlias = tuple[Any, ...]

RESOURCE: Final = "https://mcp.example.com/mcp"
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PRINTABLE: Final = re.compile(rb"[\x20-\x7e]+")
_RESOURCE_SERVERS: Final = [
    OAuthResourceServer(
        RESOURCE, ["https://as.example.com"], lambda token: None, scopes=["base"], dpop=dpop
    )
    for dpop in (False, True)
]


def check(case: Case) -> Iterable[str]:
    if case[0] == "received":
        return _check_received(case[1])
    if case[0] == "spelled":
        return _check_spelled(case[1], case[2])
    return _check_generated(*case[1:])


def _check_received(headers: list[str]) -> Iterable[str]:
    found = parse_challenges(headers)
    for challenge in found:
        assert challenge.scheme == challenge.scheme.lower()
        assert _TOKEN.fullmatch(challenge.scheme)
        assert all(name == name.lower() and _TOKEN.fullmatch(name) for name in challenge.parameters)
    again = [_serialize(challenge) for challenge in found]
    if sum(map(len, again)) <= MAX_LENGTH:
        assert parse_challenges(again) == found, f"serialized as {again!r} they differ"
    demand = parse_auth_challenge(headers)
    schemes = {challenge.scheme for challenge in found}
    assert demand.dpop is ("dpop" in schemes)
    assert bool(demand.scheme) is bool(schemes & {"bearer", "dpop"})
    yield f"{min(len(found), 3)} received"
    yield (
        f"for {demand.scheme or 'no scheme'}, {len(demand.scopes)} scopes,"
        f" {demand.error is not None}"
    )


def _check_spelled(intended: list[Intended], seed: int) -> Iterable[str]:
    expected = []
    for scheme, token68, parameters in intended:
        first: dict[str, str] = {}
        for name, value in parameters:
            first.setdefault(name.lower(), value)
        expected.append(Challenge(scheme.lower(), first, token68))
    headers = _spell(intended, Random(seed))  # noqa: S311 - not a secret
    assert parse_challenges(headers) == expected, f"spelled {headers!r}"
    yield f"{len(intended)} intended, in {len(headers)} headers"
    yield f"{sum(token68 is not None for _, token68, _ in intended)} with token68"


def _check_generated(
    dpop: bool, error: str | None, description: str | None, scopes: list[str] | None
) -> Iterable[str]:
    headers = [value for _, value in _RESOURCE_SERVERS[dpop].challenge(error, description, scopes)]
    assert all(_PRINTABLE.fullmatch(value) for value in headers)
    found = parse_challenges([value.decode() for value in headers])
    assert [challenge.scheme for challenge in found] == ["bearer", "dpop"][: 1 + dpop]
    for challenge in found:
        parameters = challenge.parameters
        assert parameters.keys() <= {
            "error",
            "error_description",
            "scope",
            "resource_metadata",
            "algs",
        }
        assert (
            parameters["resource_metadata"]
            == "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
        )
        assert set(parameters.get("scope", "").split()) <= set(
            ["base"] if scopes is None else scopes
        )
    written_description = found[0].parameters.get("error_description", "")
    assert len(written_description) == len(description or "")
    assert all(
        written in (intended, "?")
        for written, intended in zip(written_description, description or "", strict=True)
    )
    yield (
        f"description {'unchanged' if written_description == (description or '') else 'sanitized'}"
    )
    yield f"{dpop} {error is not None} {len(found[0].parameters)}"


def _serialize(challenge: Challenge) -> str:
    """Write a challenge in the plainest form."""
    quoted = [
        '{}="{}"'.format(name, value.replace("\\", "\\\\").replace('"', '\\"'))
        for name, value in challenge.parameters.items()
    ]
    if challenge.token68 is not None:
        return ", ".join([f"{challenge.scheme} {challenge.token68}", *quoted])
    return f"{challenge.scheme} {', '.join(quoted)}".strip()


def _spell(intended: list[Intended], rng: Random) -> list[str]:
    """Write challenges in a random valid form, as the values of one or more headers."""
    headers = [""]
    for scheme, token68, parameters in intended:
        spelled = _random_case(scheme, rng)
        if token68 is not None:
            spelled += f" {token68}"
        for place, (name, value) in enumerate(parameters):
            between = _comma(rng) if place else " "
            spelled += (
                f"{between}{_random_case(name, rng)}{_space(rng)}={_space(rng)}{_value(value, rng)}"
            )
        if not headers[-1]:
            headers[-1] = spelled
        elif rng.random() < 0.5:
            headers[-1] += _comma(rng) + spelled
        else:
            headers.append(spelled)
    return headers


def _random_case(word: str, rng: Random) -> str:
    return rng.choice((word, word.upper(), word.lower()))


def _space(rng: Random) -> str:
    return rng.choice(("", "", "", " ", "\t"))


def _comma(rng: Random) -> str:
    return rng.choice((", ", ",", " ,", ", ,", "\t,\t"))


def _value(value: str, rng: Random) -> str:
    if _TOKEN.fullmatch(value) and rng.random() < 0.5:
        return value
    return '"{}"'.format(
        "".join(f"\\{each}" if each in '"\\' or rng.random() < 0.1 else each for each in value)
    )


# -- Cases -----------------------------------------------------------------------------------------

_PIECES: Final = (
    *(
        "Bearer",
        "DPoP",
        "Basic",
        " ",
        ",",
        "=",
        '"',
        "\\",
        "realm",
        'scope="a b"',
        "error=x",
        "abc==",
        "a",
    ),
    *(
        "\t",
        "\r\n",
        "\0",
        "é",
        "\u2028",
        'resource_metadata="https://e.com/x"',
        "Bearer ",
        '="',
        '",',
        ", ",
    ),
    "x" * 300,
)
_SCHEMES: Final = st.sampled_from(("Bearer", "DPoP", "Basic", "Negotiate", "X!y"))
_NAMES: Final = st.sampled_from(
    ("realm", "scope", "error", "resource_metadata", "algs", "a", "charset*")
)
_TEXTS: Final = st.one_of(
    st.sampled_from(("", "a", "a b", 'say "x", y=z', "\\", "https://e.com/mcp", "é", "Bearer a=b")),
    st.text(max_size=8),
)
_INTENDED: Final[SearchStrategy[Intended]] = st.one_of(
    st.tuples(_SCHEMES, st.none(), st.lists(st.tuples(_NAMES, _TEXTS), max_size=4)),
    st.tuples(_SCHEMES, st.sampled_from(("abc", "YWJj", "a/b+c==", "~._-")), st.builds(list)),
)
_CASES: Final = weighted(
    (
        4,
        st.tuples(
            st.just("received"),
            st.lists(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join), max_size=3),
        ),
    ),
    (
        4,
        st.tuples(
            st.just("spelled"), st.lists(_INTENDED, min_size=1, max_size=4), st.integers(0, 2**16)
        ),
    ),
    (
        2,
        st.tuples(
            st.just("generated"),
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
