"""The record of a task in a store, and the limits on tasks."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw
from msgspec.structs import replace

from fuzz.task_model import CREATED, new_record
from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import InvalidPayload
from mcp_core.tasks import (
    TaskCall,
    TaskKey,
    TaskLimits,
    TaskRecord,
    decode_record,
    encode_record,
)
from mcp_core.tasks._record import join_record, new_task_id, quota_key, split_record
from mcp_trio.oracle.strategies._values import encoded, example, json_objects, structs, texts
from tests.core.tasks.store_contract import completed, same
from tests.core.tasks.store_contract import new_record as working_record
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

_KINDS: tuple[type[msgspec.Struct], ...] = (
    t.ElicitRequest,
    t.CreateMessageRequest,
    t.ListRootsRequest,
)
_TIMES = st.floats(0, 253_402_300_799, allow_nan=False)


@st.composite
def records(draw: DrawFn) -> TaskRecord:
    """Return any record that a task can have."""
    raws = json_objects().map(lambda value: Raw(encoded(value)))
    status = draw(st.sampled_from(("working", "input_required", "completed", "failed")))
    members: dict[str, Any] = {"status": status}
    if status == "input_required":
        requests = st.one_of([structs(kind) for kind in _KINDS])
        members["open_requests"] = draw(st.dictionaries(texts(), requests, min_size=1, max_size=3))
    if status == "completed":
        members |= {"result": draw(raws), "is_error": draw(st.booleans())}
    if status == "failed":
        members["error"] = draw(structs(t.ErrorData))
    responses = draw(st.dictionaries(texts(), raws, max_size=3))
    for key in members.get("open_requests", ()):
        responses.pop(key, None)
    call = st.builds(
        TaskCall,
        params=raws,
        capabilities=structs(t.ClientCapabilities),
        client=st.none() | structs(t.Implementation),
        principal=texts(),
    )
    return TaskRecord(
        id=draw(texts()),
        owner=draw(texts()),
        serial=draw(st.integers(1, 2**53)),
        message=draw(st.none() | texts()),
        created=draw(_TIMES),
        updated=draw(_TIMES),
        ttl=draw(st.floats(0.001, 1e9)),
        tool=draw(texts()),
        revision=draw(texts()),
        responses=responses,
        worker=draw(texts()),
        call=draw(st.none() | call),
        **members,
    )


# -- Encoding --------------------------------------------------------------------------------------


@fewer_examples(5)
@given(records())
def test_record_round_trips(record: TaskRecord) -> None:
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("full", [False, True])
def test_record_with_input_request_of_each_kind_round_trips(
    kind: type[msgspec.Struct], full: bool
) -> None:
    request = example(kind, full=full)
    record = new_record(status="input_required", open_requests={"k": request})
    data = encode_record(record)
    assert decode_record(data) == record
    method = json.loads(data)["open_requests"]["k"]["method"]
    assert method in {"elicitation/create", "sampling/createMessage", "roots/list"}


def test_record_with_huge_values_round_trips() -> None:
    text = "\U0001f600é\0\u2028" * 250_000
    result = Raw(encoded({"text": text, "number": 10**400, "nested": [[[]]]}))
    record = new_record(status="completed", result=result, message=text, owner=text)
    assert decode_record(encode_record(record)) == record


def test_record_keeps_bytes_of_result() -> None:
    result = Raw(b'{ "big": 123456789012345678901234567890, "a": 1.0, "a": 1e3, "\\u00e9": "\\/" }')
    record = decode_record(encode_record(new_record(status="completed", result=result)))
    assert bytes(record.result) == bytes(result)  # type: ignore[arg-type]


def test_record_with_defaults_is_short() -> None:
    assert json.loads(encode_record(new_record())).keys() == {
        "id",
        "created",
        "updated",
        "ttl",
        "tool",
        "revision",
    }


def test_record_with_lone_surrogate_is_not_encoded() -> None:
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        encode_record(new_record(message="\ud800"))


def test_record_of_newer_version_is_decoded() -> None:
    request = {"method": "roots/list", "new": 1}
    members = json.loads(encode_record(new_record(status="working")))
    members |= {"new": {"a": [1]}, "status": "input_required", "open_requests": {"k": request}}
    record = decode_record(encoded(members))
    assert record == new_record(status="input_required", open_requests={"k": t.ListRootsRequest()})


def test_record_of_older_version_gets_defaults() -> None:
    record = decode_record(
        b'{"id":"1","created":5,"updated":5,"ttl":60,"tool":"a","revision":"2025-11-25"}'
    )
    assert record == TaskRecord(
        id="1", created=5.0, updated=5.0, ttl=60.0, tool="a", revision="2025-11-25"
    )
    assert (record.owner, record.serial, record.status) == ("", 1, "working")
    assert (record.result, record.error, record.call) == (UNSET, None, None)


_VALID = new_record(
    status="completed",
    result=Raw(b'{"a":"xyz"}'),
    responses={"k": Raw(b'{"action":"accept"}')},
    call=TaskCall(params=Raw(b'{"a":1}'), capabilities=t.ClientCapabilities()),
)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"id":', b'"name":', "missing required field `id`"),
        (b'"completed"', b'"done"', "Invalid enum value 'done'"),
        (b'"created":1800000000.0', b'"created":"now"', "Expected `float`, got `str`"),
        (b'"ttl":100.0', b'"ttl":1e400', "out of range"),
        (b'"ttl":100.0', b'"ttl":null', "Expected `float`, got `null`"),
        (b'"tool"', b'"serial":0,"tool"', "serial number is not positive"),
        (b'"tool"', b'"size":-1,"tool"', "size is negative"),
        # The decoder skips members that stay encoded, so that nothing looks at their text.
        (b"xyz", b"x\xffz", "not UTF-8 at byte"),
        (b"accept", b"\xed\xa0\x80", "not UTF-8 at byte"),
        (b"accept", b"\\ud800", "unexpected end of hex escape"),
        (b'{"a":1}', b'{"\xc0":1}', "not UTF-8 at byte"),
        (b'"result":{"a":"xyz"}', b'"result": [{}]', "the result is no object"),
        (b'"completed"', b'"working"', "a task that is working has a result"),
        (b'"completed"', b'"failed"', "a task that is failed has a result"),
        (b'"completed"', b'"input_required"', "input_required has 0 open requests"),
        (b'"result":{"a":"xyz"}', b'"error":{"code":1,"message":""}', "completed has an error"),
        (
            b'"completed","',
            b'"completed","open_requests":{"q":{"method":"roots/list"}},"',
            "a task that is completed has 1 open requests",
        ),
    ],
)
def test_record_damaged_is_refused(old: bytes, new: bytes, reason: str) -> None:
    data = encode_record(_VALID)
    assert decode_record(data) == _VALID
    assert data.count(old) == 1
    with pytest.raises(InvalidPayload, match=reason):
        decode_record(data.replace(old, new))


def test_record_with_tool_error_that_has_not_ended_is_refused() -> None:
    """2025-11-25 would show it as failed, and the extension as working."""
    data = encode_record(new_record(is_error=True))
    with pytest.raises(InvalidPayload, match="a task that is working has a result"):
        decode_record(data)


def test_record_failed_without_error_is_refused() -> None:
    data = encode_record(new_record()).replace(b"{", b'{"status":"failed",', 1)
    with pytest.raises(InvalidPayload, match="a task that is failed has no error"):
        decode_record(data)


def test_record_with_open_request_that_has_a_response_is_refused() -> None:
    data = encode_record(
        new_record(
            status="input_required",
            open_requests={"k": t.ListRootsRequest()},
            responses={"k": Raw(b"{}")},
        )
    )
    with pytest.raises(InvalidPayload, match="an open request has a response"):
        decode_record(data)


def test_record_completed_without_result_is_decoded() -> None:
    """A store may keep the result beside the record."""
    record = new_record(status="completed", is_error=True)
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"{}", b"{", b"\xff", b"[" * 100_000])
def test_record_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidPayload):
        decode_record(data)


# -- What a record shows ---------------------------------------------------------------------------


def test_record_and_key_hide_id_and_user_data() -> None:
    record = new_record(
        id="the-id",
        owner="someone",
        status="completed",
        message="secret-message",
        result=Raw(b'"secret-result"'),
        responses={"k": Raw(b'"secret-response"')},
    )
    assert repr(record) == "<TaskRecord of 'publish' completed serial 1>"
    assert repr(record.key) == "<TaskKey of 'someone'>"
    assert record.key == TaskKey("someone", "the-id") == ("someone", "the-id")


def test_record_expires_after_ttl() -> None:
    assert new_record(ttl=60.0).expires == CREATED + 60
    assert [
        new_record(status=status).ended
        for status in ("working", "input_required", "completed", "failed", "cancelled")
    ] == [False, False, True, True, True]


def test_records_share_no_default() -> None:
    assert new_record().open_requests is not new_record().open_requests


def test_new_task_id_is_128_bits_of_entropy() -> None:
    sizes: list[int] = []

    def entropy(size: int) -> bytes:
        sizes.append(size)
        return bytes(range(size))

    assert new_task_id(entropy) == "000102030405060708090a0b0c0d0e0f"
    assert sizes == [16]


# -- Limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TaskLimits.__struct_fields__)
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_limit_not_positive_or_infinite_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"TaskLimits.{name} has to be positive and finite"):
        TaskLimits(**{name: value})


def test_limit_above_its_maximum_is_refused() -> None:
    assert TaskLimits(ttl=60.0, max_ttl=60.0).ttl == 60
    with pytest.raises(ValueError, match=r"TaskLimits\.ttl has to be at most max_ttl"):
        TaskLimits(ttl=60.1, max_ttl=60.0)
    with pytest.raises(ValueError, match="poll_interval has to be at most max_poll_interval"):
        TaskLimits(poll_interval=5.1)


@pytest.mark.parametrize(
    ("wish", "seconds"),
    [
        (UNSET, 3600),
        (None, 86_400),
        (60_000, 60),
        (60_001, 60.001),
        (499, 0.5),
        (0, 0.5),
        (-1, 0.5),
        (-(10**400), 0.5),
        (500, 0.5),
        (501, 0.501),
        (86_399_999, 86_399.999),
        (86_400_000, 86_400),
        (86_400_001, 86_400),
        (2**63, 86_400),
        (10**400, 86_400),
    ],
    ids=lambda value: str(value)[:8],
)
def test_ttl_that_client_wishes_is_limited(wish: Any, seconds: float) -> None:
    assert TaskLimits().kept_for(wish) == seconds


def test_ttl_below_first_poll_is_at_most_max_ttl() -> None:
    limits = TaskLimits(ttl=1.0, max_ttl=1.0, poll_interval=2.0)
    assert limits.kept_for(1) == 1.0
    limits = TaskLimits(poll_interval=0.0001)
    assert [limits.kept_for(wish) for wish in (-1, 0, 1)] == [0.0001, 0.0001, 0.001]


def test_record_type_has_no_member_for_secrets() -> None:
    names = {field.name for field in msgspec.structs.fields(TaskRecord)}
    names |= {field.name for field in msgspec.structs.fields(TaskCall)}
    assert names.isdisjoint({"token", "headers", "session", "grant", "authorization"})
    assert replace(new_record(), owner="x").key.owner == "x"


def test_client_share_above_one_is_refused() -> None:
    assert TaskLimits(client_share=1.0).client_share == 1
    with pytest.raises(ValueError, match=r"TaskLimits\.client_share has to be at most 1"):
        TaskLimits(client_share=1.1)


MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("key", "tasks", "memory", "file"),
    [
        (quota_key("", None), 100, 64, 256),  # the one user of a pipe
        (quota_key("ada", None), 100, 16, 64),
        (quota_key("ada", "address 203.0.113.5"), 100, 16, 64),
        (quota_key("", "address 203.0.113.5"), 2_500, 16, 64),
        (quota_key("", ""), 10_000, 64, 256),  # nothing tells it from others
    ],
)
def test_quota_of_a_key(key: str, tasks: int, memory: int, file: int) -> None:
    for durable, size in ((False, memory), (True, file)):
        quota = TaskLimits().quota(key, durable=durable)
        assert (quota.per_key, quota.total) == (tasks, 10_000)
        assert quota.key_bytes == size * MIB
        assert quota.total_bytes == (256 if durable else 64) * MIB


def test_quota_keys_differ_and_have_no_names() -> None:
    clients = [("ada", None), ("bob", None), ("", "ada"), ("", "bob"), ("", ""), ("", None)]
    keys = [quota_key(*client) for client in clients]
    assert len(set(keys)) == 6
    assert not any("ada" in key or "bob" in key for key in keys)
    assert quota_key("ada", "address 203.0.113.5") == quota_key("ada", None)


def test_quota_key_is_a_short_digest_of_user_or_address() -> None:
    kinds = [quota_key(user, place).partition(":") for user, place in (("ada", None), ("", "ada"))]
    digest = sha256(b"ada").hexdigest()[:32]
    assert kinds == [("user", ":", digest), ("address", ":", digest)]
    assert (quota_key("", None), quota_key("", "")) == ("", "address:")


def test_quota_without_shares_is_everything() -> None:
    quota = TaskLimits(client_share=1.0).quota(quota_key("", "there"), durable=False)
    assert (quota.per_key, quota.key_bytes) == (10_000, 64 * MIB)
    smallest = TaskLimits(total=1).quota(quota_key("", "there"), durable=False)
    assert smallest.per_key == 1


@pytest.mark.parametrize("record", [working_record(), completed(working_record())])
def test_record_is_split_and_joined(record: TaskRecord) -> None:
    data, result = split_record(record)
    assert (result is None) == (record.status == "working")
    assert b"content" not in data
    assert same(join_record(data, result), record)


@pytest.mark.parametrize(
    ("status", "result", "reason"),
    [
        ("completed", b'{"a":"\xff"}', "the result is"),
        ("completed", b"[]", "the result is"),
        ("completed", b'{"a":', "the result is"),
        ("working", b"{}", "a task that is working has a result"),
        ("failed", b"{}", "a task that is failed has a result"),
    ],
)
def test_record_is_not_joined_with_another_value(status: Any, result: bytes, reason: str) -> None:
    error = t.ErrorData(1, "x") if status == "failed" else None
    record = new_record(status=status, error=error)
    with pytest.raises(InvalidPayload, match=reason):
        join_record(encode_record(record), result)
    assert join_record(encode_record(record), None) == record


def test_call_with_defaults_is_short() -> None:
    call = TaskCall(params=Raw(b"{}"), capabilities=t.ClientCapabilities())
    assert (call.client, call.principal) == (None, "")
    stored = json.loads(encode_record(new_record(call=call)))["call"]
    assert stored == {"params": {}, "capabilities": {}}
    with pytest.raises(TypeError):
        TaskCall(Raw(b"{}"), t.ClientCapabilities())  # type: ignore[call-arg]


def test_record_may_have_size_0_and_serial_1() -> None:
    record = new_record(size=0, serial=1)
    assert decode_record(encode_record(record)) == record
