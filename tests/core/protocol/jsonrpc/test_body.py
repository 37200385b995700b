"""The messages of a body: each is decoded or found invalid, and nothing is raised."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from mcp_core import CLIENT_LIMITS, Limits
from mcp_core.protocol.jsonrpc import _body
from mcp_core.protocol.jsonrpc._body import DecodedParams, ParsedBody, parse_body
from mcp_core.protocol.jsonrpc._codec import BadMessage, InvalidPayload
from mcp_trio.oracle.strategies._messages import VERSIONS, messages
from mcp_trio.oracle.strategies._mutations import damaged, malformed
from mcp_trio.oracle.strategies._values import encoded
from tests.levels import fewer_examples, long

LIMITS = Limits(id=8, method=40, batch=3, message=400)
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NOTE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
RESPONSE = {"jsonrpc": "2.0", "id": 1, "result": {}}
# A body, the ids of the requests in it, and the method of a single message.
BODIES: list[tuple[Any, list[int | str], str]] = [
    (PING, [1], "ping"),
    ({**PING, "id": "a"}, ["a"], "ping"),
    (NOTE, [], "notifications/initialized"),
    (RESPONSE, [], ""),
    ({"jsonrpc": "2.0", "id": 1, "error": {}}, [], ""),
    # A request that is invalid gets its error response under its id, if it has one.
    ({**PING, "jsonrpc": "1.0"}, [1], ""),
    ({"jsonrpc": "2.0", "id": 1}, [1], ""),
    ({**PING, "method": "m" * 41}, [1], ""),
    ({**PING, "method": "m" * 40}, [1], "m" * 40),
    ({**PING, "id": "i" * 9}, [], ""),
    ({**PING, "id": "i" * 8}, ["i" * 8], "ping"),
    ({**PING, "id": None}, [], ""),
    ({**PING, "id": True}, [], ""),
    ({**RESPONSE, "error": {}}, [], ""),
    (5, [], ""),
    (b"", [], ""),
    (b" \r\n", [], ""),
    (b"{", [], ""),
    (b"\xff", [], ""),
    (b" " * 401, [], ""),
]
BATCHES: list[tuple[Any, list[int | str], str]] = [
    ([PING], [1], "ping"),
    ([PING, NOTE, {**PING, "id": "1"}], [1, "1"], ""),
    ([PING, PING], [1, 1], ""),
    ([RESPONSE, 5], [], ""),
    ([PING] * 3, [1, 1, 1], ""),
]
NO_BATCHES: list[tuple[Any, str]] = [
    ([PING] * 4, "a batch has between 1 and 3 messages, this one has 4"),
    ([], "a batch has between 1 and 3 messages, this one has 0"),
    (b"[", "not JSON"),
    (b"[\xff]", "not UTF-8"),
]


def parsed(body: Any) -> ParsedBody:
    data = body if isinstance(body, bytes) else json.encode(body)
    found = parse_body(data, LIMITS)
    assert found.size == len(data)
    return found


@pytest.mark.parametrize(("body", "ids", "method"), BODIES)
def test_body_of_one_message_has_its_ids_and_method(
    body: Any, ids: list[int | str], method: str
) -> None:
    found = parsed(body)
    assert (found.request_ids, found.method) == (ids, method)
    assert (found.is_array, found.is_batch) == (False, False)
    assert found.as_message() is found


@pytest.mark.parametrize(
    ("body", "valid"),
    [
        *((message, True) for message in (PING, NOTE, RESPONSE)),
        *((message, False) for message in ({**PING, "method": ""}, 5, b"", [PING, NOTE])),
    ],
)
def test_body_is_message_if_it_is_one_valid_message(body: Any, valid: bool) -> None:
    assert parsed(body).is_message is valid


@pytest.mark.parametrize(("body", "ids", "method"), BATCHES)
def test_batch_has_the_ids_of_all_members(body: Any, ids: list[int | str], method: str) -> None:
    found = parsed(body)
    assert (found.request_ids, found.method, len(found.messages)) == (ids, method, len(body))
    assert (found.is_array, found.is_batch) == (True, True)


@pytest.mark.parametrize(("body", "problem"), NO_BATCHES)
def test_batch_that_is_invalid_is_one_bad_message(body: Any, problem: str) -> None:
    found = parsed(body)
    (bad,) = found.messages
    assert isinstance(bad, BadMessage)
    assert problem in bad.message
    assert (found.is_array, found.is_batch, found.request_ids) == (True, False, [])


@pytest.mark.parametrize("body", [body for body, *_ in [*BATCHES, *NO_BATCHES]])
def test_array_as_message_is_one_bad_message(body: Any) -> None:
    found = parsed(body).as_message()
    (bad,) = found.messages
    assert isinstance(bad, BadMessage)
    assert bad.message == "a message is a JSON object, not an array"
    assert (found.is_array, found.is_batch, found.request_ids, found.method) == (
        False,
        False,
        [],
        "",
    )


def read_number(data: bytes | Raw) -> Any:
    found = json.decode(data)
    if "n" in found and not isinstance(found["n"], int):
        raise InvalidPayload("n is a number")
    return found


def find_reader(method: str) -> Any:
    return read_number if method == "ping" else None


def test_decoded_params_are_those_of_each_message() -> None:
    batch = [{**PING, "params": {"n": 1}}, NOTE, {**PING, "params": {"n": "x"}}]
    assert parsed(batch).decoded is None
    found = parsed(batch)
    first, note, third = found.decode_params(find_reader)
    assert found.decoded == [first, note, third]
    assert note is None
    assert first == DecodedParams(read_number, {"n": 1})
    assert third == DecodedParams(read_number, None, "n is a number")
    assert parsed(PING).decode_params(find_reader) == [DecodedParams(read_number, {})]
    assert parsed(RESPONSE).decode_params(find_reader) == [None]
    assert parsed(b"{").decode_params(find_reader) == [None]
    assert parsed(b" ").decode_params(find_reader) == []


def test_decoded_params_are_decoded_again_for_another_type() -> None:
    raw = b'{"n": "x"}'
    good, bad = DecodedParams(read_number, 7), DecodedParams(read_number, None, "no")
    assert good.get(read_number, raw) == 7
    assert good.get(json.decode, raw) == bad.get(json.decode, raw) == {"n": "x"}
    with pytest.raises(InvalidPayload, match="no"):
        bad.get(read_number, raw)


def test_bad_messages_keep_no_frames_alive() -> None:
    for body in (b"{", b"[", [5, 5]):
        for message in parsed(body).messages:
            assert isinstance(message, BadMessage)
            assert message.__traceback__ is None


@given(
    st.one_of(
        st.binary(max_size=30),
        malformed(messages(VERSIONS[1])),
        damaged(messages(VERSIONS[3]).map(encoded)),
    )
)
def test_parsing_never_raises(body: bytes) -> None:
    found = parse_body(body, LIMITS)
    assert all(type(id) in (int, str) for id in found.request_ids)


# -- How many values -------------------------------------------------------------------------------

MIB = 1024 * 1024


def response(items: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":7,"result":{"a":[' + items + b"]}}"


def items(item: bytes, size: int) -> bytes:
    return (item * (size // len(item)))[:-1]


TINY = [b"[],", b"{},", b"[[]],", b'{"":0},', b'"a",', b'{"a":1,"b":[2]},']


@pytest.mark.parametrize(
    ("item", "limits"), [*[(item, Limits()) for item in TINY], long(TINY[0], CLIENT_LIMITS)]
)
def test_body_of_tiny_values_is_too_much_to_decode(item: bytes, limits: Limits) -> None:
    body = parse_body(response(items(item, limits.message - 100)), limits)
    (bad,) = body.messages
    assert isinstance(bad, BadMessage)
    problem, _, limit = bad.message.rpartition(" bytes of memory, more than ")
    assert problem.startswith("the message has too many values: decoded, they take about ")
    assert int(problem.rpartition(" ")[2]) > int(limit) == limits.decoded
    assert (bad.id, bad.apparent_kind) == (7, "response")
    assert bad.cure == " (the option limits=Limits(decoded=...) allows more)"


def test_batch_of_tiny_values_is_not_split() -> None:
    body = parse_body(b"[" + items(b"[],", 3 * MIB) + b"]", Limits())
    assert "too many values" in str(body.messages[0])
    assert (body.is_array, body.is_batch, len(body.messages)) == (False, False, 1)


ROW = b'{"id":12345,"name":"Some name or other","price":1.5,"tags":["a","b"]},'
HONEST: dict[str, Any] = {
    "a million numbers": (b"[" + items(b"123,", 4_000_000) + b"]", Limits()),
    "a million strings": (b"[" + items(b'"1234567",', 10_000_000) + b"]", CLIENT_LIMITS),
    "base64": (b'"' + b"QUJD" * (15 * MIB // 4) + b'"', CLIENT_LIMITS),
    "much base64": long(b'"' + b"QUJD" * (30 * MIB // 4) + b'"', CLIENT_LIMITS),
    "records": (b"[" + items(ROW, 4 * MIB - 200) + b"]", Limits()),
    "many records": long(b"[" + items(ROW, 28 * MIB) + b"]", CLIENT_LIMITS),
    "records as text": (json.encode(items(ROW, 3 * MIB).decode()), Limits()),
    "commas as text": (b'"' + b"1," * (2 * MIB - 200) + b'"', Limits()),
    "backslashes as text": (json.encode("\\" * (2 * MIB - 200)), Limits()),
}


@pytest.mark.parametrize(("value", "limits"), HONEST.values(), ids=HONEST)
def test_body_of_an_honest_peer_is_not_too_much(value: bytes, limits: Limits) -> None:
    body = parse_body(b'{"jsonrpc":"2.0","id":7,"result":{"a":%b}}' % value, limits)
    assert body.is_message, body.messages


def test_values_in_a_message_have_a_sharp_limit() -> None:
    data = response(b"[[],0,1,[]]")
    weight = 6 * 80 + 9 * 32 + 10 * 16
    assert _body._weigh_values(data) == weight
    assert parse_body(data, Limits(decoded=weight)).is_message
    assert not parse_body(data, Limits(decoded=weight - 1)).is_message


@fewer_examples(5)
@given(
    st.recursive(
        st.integers() | st.none() | st.text(alphabet='",:[{\\a\u00e9'),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='",:[{\\a'), inner),
    ),
    st.integers(1, 20),
)
def test_values_are_weighed_outside_of_strings(value: Any, size: int) -> None:
    """The weight is what the decoded value takes, however the data is cut into pieces."""

    def weigh(value: Any) -> int:
        if isinstance(value, str):
            return 32
        if isinstance(value, list):
            return 80 + 32 * max(0, len(value) - 1) + sum(map(weigh, value))
        if isinstance(value, dict):
            return 48 + sum(96 + weigh(each) for each in value.values()) + 32 * (not value)
        return 0

    data = json.encode(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_body, "_PIECE", size)
        weight = _body._weigh_values(data)
    assert weight == weigh(value)
    assert weight <= 40 * len(data)


def test_fault_while_a_batch_is_read_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(*arguments: Any) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(_body, "decode", decode)
    with pytest.raises(RuntimeError, match="ours"):
        parse_body(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', Limits())
