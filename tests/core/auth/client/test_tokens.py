"""Tokens: when they are renewed, their stored form, and invalid stored data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.auth import Secret
from mcp_core.auth._metadata import TokenResponse
from mcp_core.auth.client._tokens import (
    Tokens,
    decode_tokens,
    encode_tokens,
    tokens_from_response,
    tokens_key,
)

FULL = Tokens(
    access=Secret("a"),
    issuer="https://a.com",
    resource="https://e.com/mcp",
    client_id="c",
    refresh=Secret("r"),
    scopes=("x",),
    requested_scopes=("x", "y"),
    expires_at=10.5,
    renew_at=9.0,
    metadata_url="https://e.com/prm",
    dpop_seed=Secret("s"),
    client_method="client_secret_post",
    client_secret=Secret("p"),
    redirect_uri="http://127.0.0.1:4711/callback",
    assume_pkce=True,
    send_resource=False,
    metadata_issuer="https://b.com",
)
LEAST = Tokens(access=Secret("a"), issuer="i", resource="r", client_id="c")


@pytest.mark.parametrize("tokens", [FULL, LEAST])
def test_tokens_round_trip(tokens: Tokens) -> None:
    assert decode_tokens(encode_tokens(tokens)) == tokens


def test_tokens_of_a_login_without_settings_are_stored_as_five_members() -> None:
    stored = {"layout": 1, "access": "a", "issuer": "i", "resource": "r", "client_id": "c"}
    assert json.loads(encode_tokens(LEAST)) == stored
    assert decode_tokens(json.dumps(stored).encode()) == LEAST
    assert LEAST.renew_at is None


def test_tokens_repr_shows_no_secret() -> None:
    shown = repr(FULL)
    assert shown.count("<secret>") == 4
    assert "client_id='c'" in shown


KEPT = json.loads(encode_tokens(FULL))
CHANGES: list[dict[str, Any]] = [
    {"layout": 2}, {"layout": "1"}, {"access": ""}, {"access": "a\r\nx: y"}, {"access": 5},
    {"refresh": []},
    {"scopes": "x"}, {"asked": None}, {"expires_at": "soon"}, {"dpop_seed": 1}, {"client_id": None},
]  # fmt: skip
BROKEN = [
    b"", b"\x00" * 100, b"null", b"[]", b"{}", b"{", encode_tokens(FULL)[:-5],
    encode_tokens(FULL) + b"x", b"\xff" * 10,
    *(json.dumps({name: value for name, value in KEPT.items() if name != gone}).encode()
      for gone in ("layout", "access", "issuer", "resource", "client_id")),
    *(json.dumps(KEPT | change).encode() for change in CHANGES),
]  # fmt: skip


@pytest.mark.parametrize("data", BROKEN)
def test_decode_tokens_invalid_data_returns_none(data: bytes) -> None:
    assert decode_tokens(data) is None


def test_decode_tokens_of_an_earlier_version_have_the_settings_of_the_specification() -> None:
    settings = {"assume_pkce", "send_resource", "metadata_issuer"}
    old = {name: value for name, value in KEPT.items() if name not in settings}
    tokens = decode_tokens(json.dumps(old).encode())
    assert tokens is not None
    found = (tokens.assume_pkce, tokens.send_resource, tokens.metadata_issuer)
    assert found == (False, True, None)


@given(st.binary())
def test_decode_tokens_any_bytes_raise_nothing(data: bytes) -> None:
    assert decode_tokens(data) is None


def made(**more: object) -> Tokens:
    reply = TokenResponse("a", **more)  # type: ignore[arg-type]
    return tokens_from_response(
        reply, now=1000.0, issuer="i", resource="r", client_id="c", refresh=Secret("old")
    )


@pytest.mark.parametrize(
    ("expires_in", "expires_at", "renew_at"),
    [(3600, 4600.0, 4540.0), (100, 1100.0, 1090.0), (0, 1000.0, 1000.0), (None, None, None)],
)
def test_tokens_renew_time_table(
    expires_in: int | None, expires_at: float | None, renew_at: float | None
) -> None:
    tokens = made(expires_in=expires_in)
    assert (tokens.expires_at, tokens.renew_at) == (expires_at, renew_at)


def test_tokens_old_refresh_token_stays_without_new_one() -> None:
    assert made().refresh == Secret("old")
    assert made(refresh_token="new").refresh == Secret("new")
    assert made(refresh_token="").refresh == Secret("old")


@pytest.mark.parametrize(("scope", "scopes"), [(None, None), ("", ()), ("b a b", ("b", "a"))])
def test_tokens_scopes_are_those_granted(scope: str | None, scopes: tuple[str, ...] | None) -> None:
    assert made(scope=scope).scopes == scopes


def test_tokens_key_contains_resource() -> None:
    assert tokens_key("https://e.com/mcp") == "tokens:https://e.com/mcp"
