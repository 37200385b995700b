"""Signed records: what was signed is read again, and nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from mcp_core.protocol.input_requests._request_state import KeyRing
from mcp_core.protocol.jsonrpc._codec import InvalidPayload
from mcp_core.tasks._signed_records import PURPOSE, LaterForm, RecordSigner
from tests.core.tasks.store_contract import completed, full_record, new_record, same

if TYPE_CHECKING:
    from mcp_core.tasks import TaskRecord

RING = KeyRing({"a": b"a" * 32})
SIGNER = RecordSigner(RING.signing_keys(PURPOSE), "lab")
KEY = "mcp:{lab}:task:0:a"
WORKING = new_record()
ENDED = completed(new_record())


@pytest.mark.parametrize("record", [WORKING, ENDED, full_record()])
def test_signed_record_is_read_again(record: TaskRecord) -> None:
    stored = SIGNER.encode(record, KEY)
    assert b"content" not in stored.data
    assert same(SIGNER.decode_whole(*stored, KEY), record)
    assert same(SIGNER.decode(stored.data, KEY), replace(record, result=UNSET))


def signed(body: bytes) -> bytes:
    """Return `body` as this server would sign it."""
    return SIGNER._signer.sign(body, KEY)


OF_OTHERS = {
    "other keys": RecordSigner(KeyRing({"a": b"b" * 32}).signing_keys(PURPOSE), "lab"),
    "another purpose": RecordSigner(RING.signing_keys("changes"), "lab"),
    "another deployment": RecordSigner(RING.signing_keys(PURPOSE), "la"),
}


@pytest.mark.parametrize("whose", OF_OTHERS)
def test_record_signed_by_others_is_refused(whose: str) -> None:
    with pytest.raises(InvalidPayload, match="state_keys"):
        SIGNER.decode(OF_OTHERS[whose].encode(WORKING, KEY).data, KEY)


def test_record_of_another_key_is_refused() -> None:
    data = SIGNER.encode(WORKING, KEY).data
    for key in (KEY + "a", KEY[:-1], ""):
        with pytest.raises(InvalidPayload, match="this place"):
            SIGNER.decode(data, key)


def test_key_that_has_moved_back_in_the_ring_still_verifies() -> None:
    ring = KeyRing({"b": b"b" * 32, "a": b"a" * 32})
    newer = RecordSigner(ring.signing_keys(PURPOSE), "lab")
    assert same(newer.decode(SIGNER.encode(WORKING, KEY).data, KEY), WORKING)
    with pytest.raises(InvalidPayload):
        SIGNER.decode(newer.encode(WORKING, KEY).data, KEY)


@pytest.mark.parametrize(
    ("record", "result"),
    [
        (ENDED, None),
        (ENDED, b'{"content":[1]}'),
        (ENDED, b""),
        (WORKING, b"{}"),
        (WORKING, b""),
    ],
)
def test_result_that_was_not_signed_is_refused(record: TaskRecord, result: bytes | None) -> None:
    data = SIGNER.encode(record, KEY).data
    with pytest.raises(InvalidPayload, match="result"):
        SIGNER.decode_whole(data, result, KEY)


def test_record_of_a_later_form_is_told_from_damage() -> None:
    with pytest.raises(LaterForm, match="form 2 of a later version"):
        SIGNER.decode(signed(b'{"form":2,"record":"sealed"}'), KEY)
    with pytest.raises(InvalidPayload) as caught:  # who cannot sign cannot claim it
        SIGNER.decode(bytes(32) + b'{"form":2,"record":"sealed"}', KEY)
    assert not isinstance(caught.value, LaterForm)


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"{}", b'{"form":1}', b'{"form":1,"record":{}}', b'{"form":"1","record":{}}'],
)
def test_signed_body_without_a_record_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidPayload):
        SIGNER.decode(signed(body), KEY)


def test_member_of_a_later_version_is_ignored() -> None:
    body = SIGNER.encode(WORKING, KEY).data[32:]
    assert same(SIGNER.decode(signed(body[:-1] + b',"new":[1]}'), KEY), WORKING)


WHOLE = SIGNER.encode(ENDED, KEY).data


@given(st.binary() | st.integers(0, len(WHOLE) - 1).map(lambda cut: WHOLE[:cut]))
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidPayload):
        SIGNER.decode(data, KEY)


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_any_altered_byte_is_refused(place: int, difference: int) -> None:
    data = bytearray(WHOLE)
    data[place] ^= difference
    with pytest.raises(InvalidPayload):
        SIGNER.decode(bytes(data), KEY)
