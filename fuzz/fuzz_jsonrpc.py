# Invariant: bytes are an Envelope or a BadMessage, never anything else. The standard library's JSON
# agrees which of the two. A decoded message that is encoded again decodes the same, on one line. An
# id keeps its type.
"""The bytes of one message, decoded and encoded by `mcp_core.protocol.jsonrpc`.

The oracle is `fuzz.reference_parser`. It is unsure only where JSON parsers may differ, and even
then nothing but a `BadMessage` may be raised.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import UNSET

from fuzz.reference_parser import Classification, classify, classify_batch
from fuzz.targets import Target
from mcp_core import Role
from mcp_core.protocol.jsonrpc._codec import (
    BadMessage,
    Envelope,
    MendedEnvelope,
    decode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    is_batch,
    split_batch,
    strip_white_space,
)
from mcp_core.protocol.jsonrpc._mending import mend
from mcp_trio.oracle.strategies._messages import VERSIONS, messages
from mcp_trio.oracle.strategies._mutations import damaged, malformed
from mcp_trio.oracle.strategies._values import encoded, json_values, weighted

ID_LIMIT: Final = 256
METHOD_LIMIT: Final = 256


def check(data: bytes) -> Iterable[str]:
    yield from _check_one(data)
    if is_batch(data):
        yield from _check_batch(data)


def _check_one(data: bytes) -> Iterable[str]:
    expected = classify(data, id_limit=ID_LIMIT, method_limit=METHOD_LIMIT)
    try:
        envelope = decode(data, id_limit=ID_LIMIT, method_limit=METHOD_LIMIT)
    except BadMessage as bad:
        assert expected.kind in ("bad", "unsure"), f"refused a {expected.kind}: {bad}"
        assert type(bad.id) in (int, str, type(None))
        # An id that occurs twice may be reported as either, or not at all.
        if bad.id is not None and expected.id is not None:
            assert (type(bad.id), bad.id) == (type(expected.id), expected.id), "the ids differ"
        bad.message.encode()
        yield f"{bad.fault.value}, {bad.apparent_kind}: {expected.why or 'unsure'}"[:60]
        return
    if isinstance(envelope, MendedEnvelope):
        # Only what is bad is mended, and it is the message without its fault.
        assert expected.kind in ("bad", "unsure"), f"mended a {expected.kind}: {envelope.problem}"
        found = mend(data)
        assert found is not None
        assert found[1] == envelope.problem
        assert mend(found[0]) is None, "what was mended is mended again"
        yield "mended"
        yield from _check_one(found[0])
        return
    assert expected.kind != "bad", f"accepted a bad message: {expected.why}"
    if expected.kind == "unsure":
        yield "accepted, unsure"
        return
    _check_agreement(envelope, expected)
    # Only objects are encoded as results. Other results are rejected by the reader of the method.
    if envelope.result is UNSET or bytes(envelope.result).startswith(b"{"):
        _check_round_trip(envelope)
    line = strip_white_space(data)
    assert b"\n" not in line
    assert json.loads(line) == json.loads(data)
    yield expected.kind
    yield f"members {sorted(expected.members)}"


def _check_agreement(envelope: Envelope, expected: Classification) -> None:
    for name in ("id", "method"):
        decoded, member = getattr(envelope, name), expected.members.get(name, UNSET)
        assert (type(decoded), decoded) == (type(member), member), (
            f"{name}: {decoded!r} and {member!r}"
        )
    for name in ("params", "result", "error"):
        raw = getattr(envelope, name)
        assert (raw is UNSET) is (name not in expected.members), f"only one parser finds {name}"
        if raw is not UNSET:
            value = json.loads(bytes(raw), object_pairs_hook=list)
            assert _are_same(value, expected.members[name]), f"{name} differs"


def _are_same(one: Any, other: Any) -> bool:
    """True if two values are the same JSON, at any depth. To Python, True equals 1."""
    waiting = [(one, other)]
    while waiting:
        left, right = waiting.pop()
        if (
            isinstance(left, list | tuple)
            and isinstance(right, list | tuple)
            and len(left) == len(right)
        ):
            waiting.extend(zip(left, right, strict=True))
        elif type(left) is not type(right) or left != right:
            return False
    return True


def _check_round_trip(envelope: Envelope) -> None:
    id = None if envelope.id is UNSET else envelope.id
    params = None if envelope.params is UNSET else bytes(envelope.params)
    if envelope.method is not UNSET:
        if id is None:
            again = encode_notification(envelope.method, params)
        else:
            again = encode_request(id, envelope.method, params)
    elif envelope.result is not UNSET:
        assert id is not None
        again = encode_result(id, bytes(envelope.result))
    else:
        assert envelope.error is not UNSET
        null_id = id is None and envelope.id is None
        again = encode_error(id, bytes(envelope.error), null_id=null_id)
    found = decode(again, id_limit=ID_LIMIT, method_limit=METHOD_LIMIT)
    for name in ("id", "method", "result", "error"):
        after, before = getattr(found, name), getattr(envelope, name)
        assert type(after) is type(before)
        assert after == before, f"{name} is {before!r}, and {after!r} after a round trip"
    if envelope.method is not UNSET:
        assert found.params == envelope.params


def _check_batch(data: bytes) -> Iterable[str]:
    expected_members = classify_batch(data)
    try:
        members = split_batch(data)
    except BadMessage as bad:
        assert expected_members is None or any(v.kind == "unsure" for v in expected_members), (
            f"refused a batch: {bad}"
        )
        yield "no batch"
        return
    if expected_members is not None:
        assert len(members) == len(expected_members), "the numbers of members differ"
        assert [classify(member).kind for member in members] == [
            expected.kind for expected in expected_members
        ]
    for member in members:
        _ = list(_check_one(member))
    yield f"batch of {min(len(members), 3)}"


def cases(seeds: Sequence[bytes]) -> SearchStrategy[bytes]:
    valid = st.one_of([messages(version, role) for version in VERSIONS for role in Role])
    written = valid.map(encoded)
    spaced = valid.map(lambda message: json.dumps(message, indent=1).encode())
    recorded = st.sampled_from(seeds) if seeds else written
    batch = st.lists(st.one_of(recorded, written, malformed(valid)), max_size=4).map(
        lambda members: b"[" + b",".join(members) + b"]"
    )
    return weighted(
        (4, malformed(valid)),
        (4, damaged(recorded)),
        (1, written),
        (1, spaced),
        (1, damaged(spaced)),
        (1, json_values().map(encoded)),
        (1, batch),
        (1, damaged(batch)),
        (1, st.binary(max_size=40)),
    )


TARGET: Final = Target("jsonrpc", cases, check, raw=True)
