"""Worker messages: bytes that are signed for one place, and what many of them say together."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.protocol.input_requests._request_state import KeyRing, SigningKeys
from mcp_core.sharing import (
    ChangesPublished,
    InvalidWorkerMessage,
    MessageCodec,
    TaskChanged,
    WorkerMessage,
    merged,
)

RING = KeyRing({"new": b"n" * 32, "old": b"o" * 32})
KEYS = RING.signing_keys("workers")
CODEC = MessageCodec(KEYS, "tea")
CHANGES = ChangesPublished("shop", lists=("tools",), uris=("tea://menu",), elicitations=("e1",))

names = st.text(max_size=8)
messages: st.SearchStrategy[WorkerMessage] = st.one_of(
    st.builds(TaskChanged, owner=names, id=names),
    st.builds(
        ChangesPublished,
        server=names,
        lists=st.lists(st.sampled_from(("tools", "prompts", "resources")), max_size=3).map(tuple),
        uris=st.lists(names, max_size=3).map(tuple),
        all_uris=st.booleans(),
        elicitations=st.lists(names, max_size=3).map(tuple),
    ),
)


@given(messages, st.integers(0, 2**21 - 1), names)
def test_message_decodes_to_what_was_encoded_at_its_place_only(
    message: WorkerMessage, worker: int, receiver: str
) -> None:
    data = CODEC.encode(message, worker, receiver)
    assert CODEC.decode(data, receiver) == (worker, message)
    with pytest.raises(InvalidWorkerMessage, match="isn't signed"):
        CODEC.decode(data, receiver + "2")


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_message_with_one_changed_byte_is_refused(place: int, change: int) -> None:
    data = bytearray(CODEC.encode(CHANGES, 7, "bus"))
    data[place % len(data)] ^= change
    with pytest.raises(InvalidWorkerMessage, match="isn't signed"):
        CODEC.decode(bytes(data), "bus")


@given(st.binary(max_size=200))
def test_garbage_is_refused_whether_signed_or_not(data: bytes) -> None:
    with pytest.raises(InvalidWorkerMessage, match="isn't signed"):
        CODEC.decode(data, "bus")
    with pytest.raises(InvalidWorkerMessage, match="isn't a message"):
        CODEC.decode(_signed(data), "bus")


@pytest.mark.parametrize(
    ("keys", "deployment"),
    [
        pytest.param(KEYS, "te", id="other-deployment"),
        pytest.param(RING.signing_keys("records"), "tea", id="other-purpose"),
        pytest.param(KeyRing({"new": b"x" * 32}).signing_keys("workers"), "tea", id="other-key"),
    ],
)
def test_message_of_another_sender_is_refused(keys: SigningKeys, deployment: str) -> None:
    data = MessageCodec(keys, deployment).encode(CHANGES, 7, "bus")
    with pytest.raises(InvalidWorkerMessage, match="isn't signed"):
        CODEC.decode(data, "bus")


def test_parts_of_the_place_cannot_move_into_each_other() -> None:
    data = MessageCodec(KEYS, "tea1").encode(CHANGES, 7, "bus")
    with pytest.raises(InvalidWorkerMessage, match="isn't signed"):
        CODEC.decode(data, "1bus")


def test_message_signed_with_any_key_of_the_ring_is_accepted() -> None:
    """While keys are rotated, some workers still sign with the old one."""
    old = MessageCodec(KeyRing({"old": b"o" * 32}).signing_keys("workers"), "tea")
    assert CODEC.decode(old.encode(CHANGES, 7, "bus"), "bus") == (7, CHANGES)
    with pytest.raises(InvalidWorkerMessage):  # the first key signs, which they don't have
        old.decode(CODEC.encode(CHANGES, 7, "bus"), "bus")


def test_message_of_later_form_is_refused_by_its_form() -> None:
    body = json.dumps({"form": 2, "worker": "seven", "message": []}).encode()
    with pytest.raises(InvalidWorkerMessage, match="form 2 of a later version"):
        CODEC.decode(_signed(body), "bus")


def test_member_of_a_later_version_is_ignored() -> None:
    message = {"kind": "task", "owner": "o", "id": "t", "added": 1}
    body = json.dumps({"form": 1, "worker": 7, "message": message, "more": {}}).encode()
    assert CODEC.decode(_signed(body), "bus") == (7, TaskChanged("o", "t"))


def test_message_above_its_size_is_refused_before_its_signature() -> None:
    with pytest.raises(InvalidWorkerMessage, match="more than 1048576"):
        CODEC.decode(b"x" * (1024 * 1024 + 1), "bus")


@pytest.mark.parametrize("uri", ["u" * 1024 * 1024, "file:///\udcff"])
def test_message_that_no_receiver_would_read_is_refused_before_it_is_sent(uri: str) -> None:
    with pytest.raises(InvalidWorkerMessage):
        CODEC.encode(ChangesPublished("shop", uris=(uri,)), 7, "bus")


@given(st.lists(st.text(max_size=5_000)), st.lists(st.text(max_size=5_000)))
def test_merged_message_fits_with_any_texts(uris: list[str], ids: list[str]) -> None:
    longest = [10 * text for text in uris], [10 * text for text in ids]
    message = merged(
        [ChangesPublished("s", uris=tuple(longest[0]), elicitations=tuple(longest[1]))], "s"
    )
    assert CODEC.decode(CODEC.encode(message, 7, "bus"), "bus") == (7, message)


def test_merged_message_of_the_longest_texts_fits() -> None:
    """A control character has six bytes in JSON."""
    texts = tuple("\0" * 64 + chr(1 + n) for n in range(1_000))
    message = merged([ChangesPublished("s", uris=texts, elicitations=texts)], "s")
    assert len(message.uris) == len(message.elicitations) == 1_000
    assert len(CODEC.encode(message, 7, "bus")) < 1024 * 1024


@pytest.mark.parametrize(
    ("given_messages", "expected"),
    [
        pytest.param([], ChangesPublished("b"), id="none"),
        pytest.param(
            [
                ChangesPublished("a", lists=("tools",), uris=("u:1", "u:2")),
                ChangesPublished(
                    "a", lists=("prompts", "tools"), uris=("u:2",), elicitations=("e",)
                ),
            ],
            ChangesPublished(
                "b", lists=("tools", "prompts"), uris=("u:1", "u:2"), elicitations=("e",)
            ),
            id="each-once-in-order",
        ),
        pytest.param(
            [ChangesPublished("a", all_uris=True), ChangesPublished("a", uris=("u:1",))],
            ChangesPublished("b", all_uris=True),
            id="all-has-each",
        ),
        pytest.param(
            [ChangesPublished("a", uris=tuple(f"u:{n}" for n in range(1_000)))],
            ChangesPublished("b", uris=tuple(f"u:{n}" for n in range(1_000))),
            id="as-many-as-fit",
        ),
        pytest.param(
            [ChangesPublished("a", uris=(f"u:{n}",)) for n in range(1_001)],
            ChangesPublished("b", all_uris=True),
            id="too-many",
        ),
        pytest.param(
            [ChangesPublished("a", elicitations=tuple(f"{n}" for n in range(1_001)))],
            ChangesPublished("b", elicitations=tuple(f"{n}" for n in range(1, 1_001))),
            id="last-elicitations",
        ),
        pytest.param(
            [ChangesPublished("a", uris=("u:1", "file:///\udcff"), elicitations=("e", "\ud800"))],
            ChangesPublished("b", uris=("u:1",), elicitations=("e",)),
            id="surrogates",
        ),
        pytest.param(
            [ChangesPublished("a", uris=("u:1", 5), elicitations=(None, "e"))],  # type: ignore[arg-type]
            ChangesPublished("b", uris=("u:1",), elicitations=("e",)),
            id="no-texts",
        ),
        pytest.param(
            [
                ChangesPublished("a", uris=("u" * 40_000,)),
                ChangesPublished("a", uris=(40_000 * "v",)),
            ],
            ChangesPublished("b", all_uris=True),
            id="too-long-uris",
        ),
        pytest.param(
            [ChangesPublished("a", elicitations=("e" * 40_000, "f" * 40_000, "g"))],
            ChangesPublished("b", elicitations=("f" * 40_000, "g")),
            id="last-elicitations-that-fit",
        ),
    ],
)
def test_merged_message_says_what_all_say(
    given_messages: list[ChangesPublished], expected: ChangesPublished
) -> None:
    assert merged(given_messages, "b") == expected


def test_signing_keys_show_nothing() -> None:
    assert repr(KEYS) == "<SigningKeys, 2>"
    assert repr(CODEC) == "MessageCodec(<DeploymentSigner of 'tea'>)"


def _signed(body: bytes) -> bytes:
    place = b"3 tea3 bus"
    return KEYS.sign(place + body) + body
