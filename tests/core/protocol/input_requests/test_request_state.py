"""Signed `requestState`: only an unmodified, unexpired state of the same request is accepted."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_core import Fault, LocalProtocolError, RemoteProtocolError
from mcp_core.protocol.input_requests._request_state import (
    DeploymentSigner,
    InvalidRequestState,
    KeyRing,
    StateBinding,
)
from tests.levels import fewer_examples

OLD, NEW = b"o" * 32, b"n" * 32
RING = KeyRing({"k": NEW})
MINE = StateBinding("alice", "tools/call", "digest")
NOW = 1_000_000.5
CONTENT = b'{"a":[1,"\xc3\xa9"]}'
STATE = RING.seal(CONTENT, MINE, NOW)


def refusal(ring: KeyRing, state: str, binding: StateBinding = MINE, now: float = NOW) -> str:
    with pytest.raises(InvalidRequestState) as caught:
        ring.open(state, binding, now)
    return str(caught.value)


def test_seal_open_returns_content() -> None:
    assert RING.open(STATE, MINE, NOW) == CONTENT
    assert STATE.isascii()
    assert STATE.startswith("1.k.")
    assert set(STATE) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


@fewer_examples(2)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])), st.integers() | st.text("a\n")
    )
)
def test_seal_open_any_content_round_trips(value: dict[str, Any]) -> None:
    content = json.dumps(value).encode()
    assert RING.open(RING.seal(content, MINE, NOW), MINE, NOW) == content


@pytest.mark.requirement("MRTR-13")
def test_open_modified_state_is_rejected() -> None:
    """Every character is replaced, dropped, doubled and cut off, and text is added at both ends."""
    for place, character in enumerate(STATE):
        for other in {
            "A",
            "B",
            "-",
            "_",
            ".",
            "=",
            " ",
            "\n",
            "\x00",
            "é",
            character.swapcase(),
        } - {character}:
            refusal(RING, STATE[:place] + other + STATE[place + 1 :])
        refusal(RING, STATE[:place] + STATE[place + 1 :])
        refusal(RING, STATE[:place])
        refusal(RING, STATE[:place] + character + STATE[place:])
    assert "not issued by this server" in refusal(RING, "2" + STATE[1:])
    for more in ("-TAMPERED", "=", ".", "\n", " ", "A"):
        refusal(RING, STATE + more)
        refusal(RING, more + STATE)


@pytest.mark.requirement("MRTR-13")
@given(
    st.one_of(
        st.text(),
        st.text(st.sampled_from("1k.=-_Aa \n\x00\ud800é")),
        st.binary().map(lambda b: b.decode("latin-1")),
    )
)
@example("")
@example("1.k..")
@example("1.k." + "." * 1000)
@example("\ud800")
def test_open_any_text_raises_invalid_state_only(state: str) -> None:
    assert refusal(RING, state).startswith("requestState refused: ")


@pytest.mark.requirement("MRTR-13")
@given(st.data())
def test_open_mixed_states_is_rejected(data: st.DataObject) -> None:
    other = RING.seal(b'{"a":2}', MINE, NOW + 1)
    parts = [
        data.draw(st.sampled_from(pair))
        for pair in zip(STATE.split("."), other.split("."), strict=True)
    ]
    mixed = ".".join(parts)
    if mixed not in (STATE, other):
        assert "altered" in refusal(RING, mixed)


@pytest.mark.requirement("MRTR-14")
@pytest.mark.parametrize(
    ("seconds", "good"),
    [(0, True), (599, True), (599.4, True), (600, False), (601, False), (1e9, False)],
)
def test_open_after_lifetime_is_rejected(seconds: float, good: bool) -> None:
    if good:
        assert RING.open(STATE, MINE, int(NOW) + seconds) == CONTENT
    else:
        assert "expired" in refusal(RING, STATE, now=int(NOW) + seconds)


def test_seal_lifetime_is_that_of_signing_ring() -> None:
    ring = KeyRing({"k": NEW}, lifetime=10)
    state = ring.seal(CONTENT, MINE, 100)
    assert ring.open(state, MINE, 109) == CONTENT
    assert refusal(ring, state, now=112) == "requestState refused: it expired 2 s ago"
    # The state has the expiry, so another instance may have a different lifetime.
    assert RING.open(state, MINE, 109) == CONTENT


@pytest.mark.requirement("MRTR-14")
@pytest.mark.parametrize(
    ("binding", "words"),
    [
        (StateBinding("bob", "tools/call", "digest"), "given to another principal"),
        (StateBinding("", "tools/call", "digest"), "given to another principal"),
        (StateBinding("alice\ud800", "tools/call", "digest"), "given to another principal"),
        (StateBinding("alice", "prompts/get", "digest"), "given for tools/call, not prompts/get"),
        (
            StateBinding("alice", "tools/call", "other"),
            "for a request of tools/call with other params",
        ),
    ],
)
def test_open_other_binding_is_rejected(binding: StateBinding, words: str) -> None:
    assert words in refusal(RING, STATE, binding)
    assert RING.open(RING.seal(CONTENT, binding, NOW), binding, NOW) == CONTENT


def test_seal_body_is_readable_but_hides_principal() -> None:
    body = urlsafe_b64decode(STATE.split(".")[2] + "==")
    assert CONTENT in body
    assert b"alice" not in body
    again = KeyRing({"k": OLD}).seal(CONTENT, MINE, NOW)
    assert json.loads(body)[1] != json.loads(urlsafe_b64decode(again.split(".")[2] + "=="))[1]


def test_key_ring_rotation_keeps_states_valid() -> None:
    before = KeyRing({"old": OLD})
    learned = KeyRing({"old": OLD, "new": NEW})
    changed = KeyRing({"new": NEW, "old": OLD})
    after = KeyRing({"new": NEW})
    rings = [before, learned, changed, after]
    for older, newer in pairwise(rings):
        for ring, other in ((older, newer), (newer, older)):
            assert other.open(ring.seal(CONTENT, MINE, NOW), MINE, NOW) == CONTENT
    assert "key that is not in the ring, 'old'" in refusal(after, learned.seal(CONTENT, MINE, NOW))
    assert changed.seal(CONTENT, MINE, NOW) == after.seal(CONTENT, MINE, NOW)


@pytest.mark.parametrize(
    ("ring", "words"),
    [
        (KeyRing({"x": NEW}), "key that is not in the ring, 'k'"),
        (KeyRing({"k": OLD}), "another key of this name"),
    ],
)
def test_open_with_other_ring_is_rejected(ring: KeyRing, words: str) -> None:
    assert words in refusal(ring, STATE)


@pytest.mark.parametrize("body", ["", "A", "eA", urlsafe_b64encode(b"[1,2]").decode()])
def test_open_foreign_signature_with_same_key_is_rejected(body: str) -> None:
    def signed(key: bytes) -> str:
        text = f"1.k.{body}"
        signature = (
            urlsafe_b64encode(hmac.digest(key, text.encode(), "sha256")).rstrip(b"=").decode()
        )
        return f"{text}.{signature}"

    assert "altered" in refusal(RING, signed(NEW))  # other uses of the key make no state
    assert "not by this code" in refusal(
        RING, signed(hmac.digest(NEW, b"mcp requestState", "sha256"))
    )


@pytest.mark.parametrize("difference", [-1, 0, 1])
def test_seal_over_maximum_length_raises(difference: int) -> None:
    tight = KeyRing({"k": NEW}, max_length=len(STATE) + difference)
    if difference < 0:
        with pytest.raises(LocalProtocolError, match="too long to be kept") as caught:
            tight.seal(CONTENT, MINE, NOW)
        assert caught.value.fault is Fault.INVALID_PARAMS
        assert f"it has {len(STATE)} characters, more than {len(STATE) - 1}" in refusal(
            tight, STATE
        )
    else:
        assert tight.open(tight.seal(CONTENT, MINE, NOW), MINE, NOW) == CONTENT


def test_state_has_a_mebibyte_at_most_by_default() -> None:
    too_long = "x" * 2**20
    assert "not issued by this server" in refusal(RING, too_long)
    assert "1048577 characters, more than 1048576" in refusal(RING, f"{too_long}x")


@pytest.mark.requirement("MRTR-13")
def test_invalid_state_public_message_hides_reason() -> None:
    bad = InvalidRequestState("a reason")
    assert isinstance(bad, RemoteProtocolError)
    assert bad.fault is Fault.INVALID_PARAMS
    assert "a reason" in str(bad)
    assert bad.reason == "a reason"
    assert "reason" not in bad.PUBLIC_MESSAGE


# -- What else the keys sign -----------------------------------------------------------------------


def test_signing_keys_verify_what_any_of_them_signed() -> None:
    """During a rotation the first key signs, and the others still verify."""
    old, both, new = (KeyRing(keys) for keys in ({"o": OLD}, {"n": NEW, "o": OLD}, {"n": NEW}))
    signature = old.signing_keys("tasks").sign(b"data")
    assert len(signature) == 32
    assert both.signing_keys("tasks").verify(b"data", signature)
    assert not new.signing_keys("tasks").verify(b"data", signature)
    assert both.signing_keys("tasks").sign(b"data") == new.signing_keys("tasks").sign(b"data")
    for purpose, data in (("others", b"data"), ("tasks", b"date")):
        assert not old.signing_keys(purpose).verify(data, signature)
    assert not old.signing_keys("tasks").verify(b"data", signature[:-1])
    assert repr(both.signing_keys("tasks")) == "<SigningKeys, 2>"


def test_deployment_signer_binds_data_to_its_deployment_and_place() -> None:
    keys = RING.signing_keys("sharing")
    signer = DeploymentSigner(keys, "shop")
    signed = signer.sign(b"body", "stream")
    assert signed[32:] == b"body"
    assert signer.verified(signed, "stream") == b"body"
    assert signer.verified(signer.sign(b"", "stream"), "stream") == b""
    assert repr(signer) == "<DeploymentSigner of 'shop'>"
    for data in (signed + b"!", signed[1:], signed[:-1], signed[:32], b""):
        assert signer.verified(data, "stream") is None
    assert signer.verified(signed, "other") is None
    assert DeploymentSigner(keys, "other").verified(signed, "stream") is None
    # No two pairs of deployment, place and body have the same signed bytes.
    assert DeploymentSigner(keys, "sho").verified(signed, "pstream") is None
    assert signer.verified(signed[:32] + b"mbody", "strea") is None


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "at least one key"),
        ({"k": b"x" * 31}, "'k' has 31 bytes; 32 are the least"),
        ({"good": NEW, "": NEW}, "not ''"),
        ({"a.b": NEW}, "not 'a.b'"),
        ({"k\n": NEW}, "letters"),
        ({"x" * 33: NEW}, "up to 32"),
    ],
)
def test_key_ring_invalid_keys_raise(keys: dict[str, bytes], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        KeyRing(keys)


def test_key_ring_repr_hides_keys() -> None:
    assert repr(KeyRing({"new": NEW, "old": OLD})) == "<KeyRing of new, old>"
