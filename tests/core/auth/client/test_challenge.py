"""`WWW-Authenticate` as a table of header values and their parsed form."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.auth.client._challenge import (
    MAX_LENGTH,
    AuthChallenge,
    Challenge,
    parse_auth_challenge,
    parse_challenges,
    split_scopes,
)
from tests.levels import fewer_examples

READ: list[tuple[str, list[str], list[Challenge]]] = [
    ("none", [], []),
    ("empty", ["", " , ,\t,"], []),
    ("a scheme alone", ["Bearer"], [Challenge("bearer", {})]),
    ("a scheme with space", ["  Bearer  "], [Challenge("bearer", {})]),
    ("one parameter", ['Bearer realm="x"'], [Challenge("bearer", {"realm": "x"})]),
    ("a token", ["Bearer error=invalid_token"], [Challenge("bearer", {"error": "invalid_token"})]),
    ("names ignore case", ['BEARER Realm="X"'], [Challenge("bearer", {"realm": "X"})]),
    ("space around the sign", ['Bearer a = "1" ,b\t=\t2'],
        [Challenge("bearer", {"a": "1", "b": "2"})]),
    ("commas in quotes", ['Bearer a="1, b=2", c=3'],
        [Challenge("bearer", {"a": "1, b=2", "c": "3"})]),
    ("escapes", [r'Bearer a="say \"no\", \\ \x"'], [Challenge("bearer", {"a": 'say "no", \\ x'})]),
    ("empty string", ['Bearer a="", b=1'], [Challenge("bearer", {"a": "", "b": "1"})]),
    ("empty elements", ["Bearer a=1,, ,b=2"], [Challenge("bearer", {"a": "1", "b": "2"})]),
    ("token68", ["Basic abc+/=="], [Challenge("basic", {}, "abc+/==")]),
    (
        "token68, then another",
        ["Negotiate YII=, Bearer a=1"],
        [Challenge("negotiate", {}, "YII="), Challenge("bearer", {"a": "1"})],
    ),
    (
        "two in one header",
        ['Newauth realm="apps", type=1, title="Login to \\"apps\\"", Basic realm="simple"'],
        [
            Challenge("newauth", {"realm": "apps", "type": "1", "title": 'Login to "apps"'}),
            Challenge("basic", {"realm": "simple"}),
        ],
    ),
    ("two headers", ["Basic", "Bearer a=1"],
        [Challenge("basic", {}), Challenge("bearer", {"a": "1"})]),
    ("a parameter twice: the first", ["Bearer a=1, A=2"], [Challenge("bearer", {"a": "1"})]),
    ("a parameter of nobody", ["a=1, Bearer b=2"], [Challenge("bearer", {"b": "2"})]),
    ("an open string ends its header", ['Bearer a=1, b="2, c=3', "Basic"], [
        Challenge("bearer", {"a": "1"}), Challenge("basic", {}),
    ]),
    ("rubbish up to the comma", ["Bearer a=1, (@), b=2"],
        [Challenge("bearer", {"a": "1", "b": "2"})]),
    ("rubbish to the end", ["Bearer a=1, (@) b=2"], [Challenge("bearer", {"a": "1"})]),
    ("control characters", ["Bearer a=1\r\nX: y"], [Challenge("bearer", {"a": "1"})]),
    ("no value", ["Bearer a=, b=2"], [Challenge("bearer", {"b": "2"}, "a=")]),
    ("a URL without quotes is empty", ["Bearer a=https://e.com/x, b=2"],
        [Challenge("bearer", {"a": "", "b": "2"})]),
    ("a path without quotes is empty", ["Bearer a=/x?y=1, b=2"],
        [Challenge("bearer", {"a": "", "b": "2"})]),
    ("a half-quoted value is empty", ['Bearer a=x"y", b=2'],
        [Challenge("bearer", {"a": "", "b": "2"})]),
    ("a value without quotes, of nobody", ["a=/x, Bearer b=2"], [Challenge("bearer", {"b": "2"})]),
    ("bytes of no encoding", ['Bearer a="\xff\x00", b=1'],
        [Challenge("bearer", {"a": "\xff\x00", "b": "1"})]),
]  # fmt: skip


@pytest.mark.requirement("AC-4")
@pytest.mark.parametrize(
    ("values", "found"), [row[1:] for row in READ], ids=[row[0] for row in READ]
)
def test_parse_challenges_table(values: list[str], found: list[Challenge]) -> None:
    assert parse_challenges(values) == found


PRM = "https://e.com/prm"
DEMANDS: list[tuple[list[str], AuthChallenge]] = [
    ([], AuthChallenge()),
    (['Basic realm="x"'], AuthChallenge()),
    (["Bearer"], AuthChallenge("bearer")),
    (
        [f'Basic a=1, Bearer scope="a b  a", resource_metadata="{PRM}"'],
        AuthChallenge("bearer", PRM, ("a", "b")),
    ),
    (
        ['Bearer error="insufficient_scope", scope="x"'],
        AuthChallenge("bearer", None, ("x",), "insufficient_scope"),
    ),
    (['DPoP error="use_dpop_nonce"'], AuthChallenge("dpop", None, (), "use_dpop_nonce", dpop=True)),
    # offered both, a client may keep what it has
    (
        [f'DPoP algs="ES256", Bearer resource_metadata="{PRM}"'],
        AuthChallenge("bearer", PRM, dpop=True),
    ),
    (["Bearer scope=a", 'Bearer scope="b"'], AuthChallenge("bearer", None, ("a",))),
    # never half a scope
    (
        ["Bearer scope=api://e/x, error=invalid_token"],
        AuthChallenge("bearer", None, (), "invalid_token"),
    ),
    (
        ['Bearer resource_metadata=https://e.com/prm, scope="a"'],
        AuthChallenge("bearer", "", ("a",)),
    ),
    (['Bearer resource_metadata=/prm, scope="a"'], AuthChallenge("bearer", "", ("a",))),
]


@pytest.mark.parametrize(("values", "demand"), DEMANDS)
def test_parse_auth_challenge_returns_challenges_of_table(
    values: list[str], demand: AuthChallenge
) -> None:
    assert parse_auth_challenge(values) == demand


@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        ("", ()),
        (" a  b a ", ("a", "b")),
        ('a" b\\ c', ("c",)),
        ("a\nb c", ("c",)),
        ("é x", ("x",)),
        ("x" * 257 + " y", ("y",)),
        (" ".join(map(str, range(200))), tuple(map(str, range(100)))),
    ],
)
def test_split_scopes_table(text: str, scopes: tuple[str, ...]) -> None:
    assert split_scopes(text) == scopes


def test_parse_challenges_over_limit_is_cut() -> None:
    filler = "x" * (MAX_LENGTH - 8)
    assert [c.scheme for c in parse_challenges([f"{filler}, Bearer"])][1:] == ["bearer"]
    assert [c.scheme for c in parse_challenges([f"{filler}, Bearers"])][1:] == ["bearer"]  # cut
    assert len(parse_challenges([filler, "a" * 20, "Bearer"])) == 2


@given(st.lists(st.binary().map(lambda raw: raw.decode("latin-1")), max_size=4))
def test_parse_challenges_any_bytes_raise_nothing(values: list[str]) -> None:
    parse_auth_challenge(values)


@given(st.text(alphabet=' ,="\\aB1-\t(', max_size=60))
def test_parse_challenges_any_grammar_raises_nothing(value: str) -> None:
    for challenge in parse_challenges([value]):
        assert challenge.scheme == challenge.scheme.lower() != ""


TOKENS = st.text(
    alphabet=string.ascii_letters + string.digits + "-_.~!#$%&'*+^`|", min_size=1, max_size=8
)
PARAMETERS = st.dictionaries(TOKENS.map(str.lower), st.text(max_size=12), max_size=4)


@fewer_examples(5)
@given(st.lists(st.tuples(TOKENS, PARAMETERS), max_size=4), st.randoms(use_true_random=False))
def test_parse_challenges_round_trip(
    challenges: list[tuple[str, dict[str, str]]], random: Any
) -> None:
    text = ", ".join(
        f"{scheme} "
        + ", ".join(f'{name}="{_quoted(value, random)}"' for name, value in parameters.items())
        for scheme, parameters in challenges
    )
    assert parse_challenges([text]) == [
        Challenge(scheme.lower(), parameters) for scheme, parameters in challenges
    ]


def _quoted(text: str, random: Any) -> str:
    return "".join(f"\\{c}" if c in '"\\' or random.random() < 0.2 else c for c in text)
