"""`read_state_keys`: the text of an environment variable, and the error for each mistake."""

from __future__ import annotations

import base64
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.registry import Server
from mcp_core.sharing import read_state_keys

ONE, TWO = bytes(range(32)), bytes(range(224, 256)) + b"more"
A, B = (base64.urlsafe_b64encode(each).decode() for each in (ONE, TWO))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (A, {"key": ONE}),
        (A.rstrip("="), {"key": ONE}),
        (f" {A}\n", {"key": ONE}),
        (base64.b64encode(TWO).decode(), {"key": TWO}),
        (f"2026={A}", {"2026": ONE}),
        (f"2027={B},2026={A}", {"2027": TWO, "2026": ONE}),
        (f"2027 = {B}, 2026 = {A.rstrip('=')}", {"2027": TWO, "2026": ONE}),
        (f"key={A}", {"key": ONE}),
    ],
)
def test_text_has_keys_in_order(text: str, keys: dict[str, bytes]) -> None:
    found = read_state_keys(text)
    assert list(found.items()) == list(keys.items())
    Server("s", state_keys=found)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "there is no key; make one: python -c"),
        ("  ", "there is no key"),
        ("=", "key 1 isn't base64url"),
        (f"{A},{B}", "key 1 has no valid name: write NAME=SECRET"),
        (f"2026={A},", "key 2 has no valid name"),
        (f"2026={A},{B}", "key 2 has no valid name"),
        (f"={A}", "key 1 has no valid name"),
        (f"a b={A}", "key 1 has no valid name"),
        (f"{A}{B}", "key 1"),  # two without a comma
        (f"2026={A},2026={B}", "key 2 has the name of an earlier one"),
        ("2026=", "key 1 has 3 bytes"),
        (f"2026={A}!", "key 1 isn't base64url"),
        (f"2026=Ä{A}", "key 1 isn't base64url"),
        ("x" * 41, "key 1 isn't base64url"),
        ("correct-horse-battery-staple", "key 1 has 21 bytes, and 32 random ones are the least"),
    ],
)
def test_mistake_is_reported_with_its_cure_and_without_the_secret(text: str, error: str) -> None:
    with pytest.raises(ValueError, match="^" + error.replace("(", r"\(")) as caught:
        read_state_keys(text)
    for secret in (A.rstrip("="), B.rstrip("="), "correct-horse"):
        assert secret not in str(caught.value)


def test_own_recipe_makes_a_key() -> None:
    assert len(read_state_keys(secrets.token_urlsafe(32))["key"]) == 32


@given(st.text())
def test_any_text_gives_keys_or_a_value_error(text: str) -> None:
    try:
        keys = read_state_keys(text)
    except ValueError:
        return
    assert keys
    assert all(len(key) >= 32 for key in keys.values())


def test_keys_are_given_to_a_declared_server_once() -> None:
    server = Server("s")
    server.use_state_keys({"1": ONE})
    assert server.shared_keys is server.key_ring(secrets.token_bytes)
    for declared in (server, Server("s", state_keys={"1": ONE})):
        with pytest.raises(ValueError, match="'s' is declared with state_keys= already"):
            declared.use_state_keys({"1": TWO})
    with pytest.raises(ValueError, match="32 are the least"):
        Server("s").use_state_keys({"1": b"short"})


async def test_keys_of_a_served_server_stay() -> None:
    """It may have signed something with a key of its own."""
    async with (served := Server("s")).lifespan():
        pass
    with pytest.raises(ValueError, match="'s' is served already"):
        served.use_state_keys({"1": ONE})


@pytest.mark.parametrize("length", range(43, 56))
def test_secret_of_a_length_that_no_base64url_has_is_refused(length: int) -> None:
    """RFC 4648, section 4: the last group has 2, 3 or 4 characters."""
    secret = "A" * length
    if length % 4 == 1:
        with pytest.raises(ValueError, match="key 1 isn't base64url"):
            read_state_keys(secret)
    else:
        assert len(read_state_keys(secret)["key"]) == length * 3 // 4
