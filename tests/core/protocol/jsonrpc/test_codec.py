"""The codec: valid and invalid messages, and the encoding of messages."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mcp_core import Fault
from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import (
    BadMessage,
    Envelope,
    InvalidPayload,
    MendedEnvelope,
    decode,
    encode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    has_duplicates,
    is_batch,
    reader,
    split_batch,
    strip_white_space,
)
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from random import Random

MAX = 2**53 - 1

# message, its members (params, result and error as JSON)
GOOD: list[Any] = [
    pytest.param('{"jsonrpc":"2.0","id":1,"method":"m"}', {"id": 1, "method": "m"}, id="request"),
    pytest.param(
        '{"jsonrpc":"2.0","id":"1","method":"m"}', {"id": "1", "method": "m"}, id="request, text id"
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":"","method":""}', {"id": "", "method": ""}, id="empty texts"
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":-0,"method":"m"}', {"id": 0, "method": "m"}, id="minus nothing"
    ),
    pytest.param(
        f'{{"jsonrpc":"2.0","id":{MAX},"method":"m"}}', {"id": MAX, "method": "m"}, id="largest id"
    ),
    pytest.param(
        f'{{"jsonrpc":"2.0","id":-{MAX},"method":"m"}}',
        {"id": -MAX, "method": "m"},
        id="smallest id",
    ),
    pytest.param('{"jsonrpc":"2.0","method":"m"}', {"method": "m"}, id="notification"),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a": "\\"b\\""}}',
        {"id": 1, "method": "m", "params": '{"a": "\\"b\\""}'},
        id="params stay as they are",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","method":"m","params":[1]}',
        {"method": "m", "params": "[1]"},
        id="params of any kind",
    ),
    pytest.param('{"jsonrpc":"2.0","id":1,"result":{}}', {"id": 1, "result": "{}"}, id="result"),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"result":null}', {"id": 1, "result": "null"}, id="null result"
    ),
    pytest.param('{"jsonrpc":"2.0","id":1,"error":{}}', {"id": 1, "error": "{}"}, id="error"),
    pytest.param(
        '{"jsonrpc":"2.0","id":null,"error":{}}', {"id": None, "error": "{}"}, id="error, null id"
    ),
    pytest.param('{"jsonrpc":"2.0","error":{}}', {"error": "{}"}, id="error, no id"),
    pytest.param(
        ' {\t"method" : "m",\r\n "jsonrpc": "2.0" } ',
        {"method": "m"},
        id="white space, a line break included",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"m","more":{"id":2},"and":"\\"more\\""}',
        {"id": 1, "method": "m"},
        id="unknown members",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"m","\\"":0,"\\u0001":0}',
        {"id": 1, "method": "m"},
        id="unknown member, quotation mark",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","\\u0069d":1,"method":"m"}', {"id": 1, "method": "m"}, id="escaped key"
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":"\\"","method":"\\u0022"}',
        {"id": '"', "method": '"'},
        id="quotes inside",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":"ü","method":"µ"}', {"id": "ü", "method": "µ"}, id="beyond ASCII"
    ),
    pytest.param('{"jsonrpc":"2.\\u0030","method":"m"}', {"method": "m"}, id="escaped version"),
]


@pytest.mark.requirement("RPC-1", "RPC-2", "RPC-19")
@pytest.mark.parametrize(("sent", "members"), GOOD)
def test_decode_valid_message_gives_envelope(sent: str, members: dict[str, Any]) -> None:
    envelope = decode(sent.encode())
    for name in ("id", "method", "params", "result", "error"):
        found = getattr(envelope, name)
        assert (bytes(found).decode() if isinstance(found, Raw) else found) == members.get(
            name, UNSET
        )
    assert type(envelope.id) is type(members.get("id", UNSET))


PARSE, INVALID = Fault.PARSE, Fault.INVALID_REQUEST
NO_ID = None

# message, fault, id, apparent kind, part of the text
BAD: list[Any] = [
    # Not JSON
    pytest.param("", PARSE, NO_ID, "request", "ends too early", id="nothing"),
    pytest.param("nope", PARSE, NO_ID, "request", "not JSON", id="no JSON"),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"m"', PARSE, NO_ID, "request", "too early", id="cut off"
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"m"}x',
        PARSE,
        NO_ID,
        "request",
        "trailing",
        id="more behind",
    ),
    pytest.param("{'id':1}", PARSE, NO_ID, "request", "not JSON", id="wrong quotes"),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"m","params":NaN}', PARSE, NO_ID, "request", "", id="NaN"
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":-Infinity}}',
        PARSE,
        NO_ID,
        "request",
        "",
        id="Infinity",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
        PARSE,
        NO_ID,
        "request",
        "surrogate",
        id="half a surrogate pair",
    ),
    pytest.param(
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        PARSE,
        NO_ID,
        "request",
        "not UTF-8 at byte 34",
        id="no UTF-8",
    ),
    pytest.param(
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\xff"}}',
        PARSE,
        NO_ID,
        "request",
        "not UTF-8 at byte 52",
        id="no UTF-8 inside params",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"m","params":' + "[" * 100_000,
        PARSE,
        NO_ID,
        "request",
        "nested too deeply",
        id="too deep",
    ),
    # Not an object
    pytest.param("[]", INVALID, NO_ID, "request", "is a JSON object", id="array"),
    pytest.param("null", INVALID, NO_ID, "request", "is a JSON object", id="null"),
    pytest.param("1", INVALID, NO_ID, "request", "is a JSON object", id="number"),
    # Not JSON-RPC 2.0
    pytest.param("{}", INVALID, NO_ID, "neither", "jsonrpc", id="empty object"),
    pytest.param('{"id":1,"method":"m"}', INVALID, 1, "request", "jsonrpc", id="no jsonrpc"),
    pytest.param(
        '{"jsonrpc":"1.0","id":1,"method":"m"}',
        INVALID,
        1,
        "request",
        "jsonrpc",
        id="other jsonrpc",
    ),
    pytest.param(
        '{"jsonrpc":2.0,"id":"x","method":"m"}',
        INVALID,
        "x",
        "request",
        "jsonrpc",
        id="number jsonrpc",
    ),
    pytest.param(
        '{"jsonrpc":"1.0","method":"m"}',
        INVALID,
        NO_ID,
        "notification",
        "",
        id="other, notification",
    ),
    pytest.param(
        '{"jsonrpc":"1.0","id":1,"result":{}}',
        INVALID,
        1,
        "response",
        "jsonrpc",
        id="other, response",
    ),
    pytest.param(
        '{"jsonrpc":"1.0","error":{}}', INVALID, NO_ID, "response", "jsonrpc", id="other, error"
    ),
    pytest.param('{"jsonrpc":"1.0","id":1}', INVALID, 1, "neither", "jsonrpc", id="other, neither"),
    # Ids
    pytest.param(
        '{"jsonrpc":"2.0","id":null,"method":"m"}', INVALID, NO_ID, "request", "null", id="id null"
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":null}',
        INVALID,
        NO_ID,
        "neither",
        "neither a method",
        id="id null and nothing",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":null,"result":{}}',
        INVALID,
        NO_ID,
        "response",
        "without an id",
        id="id null, result",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1.0,"method":"m"}',
        INVALID,
        NO_ID,
        "request",
        "neither a str",
        id="id 1.0",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1.5,"method":"m"}',
        INVALID,
        NO_ID,
        "request",
        "neither a str",
        id="id 1.5",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1e2,"method":"m"}',
        INVALID,
        NO_ID,
        "request",
        "neither a str",
        id="id 1e2",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":true,"method":"m"}',
        INVALID,
        NO_ID,
        "request",
        "neither",
        id="id true",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":{},"method":"m"}',
        INVALID,
        NO_ID,
        "request",
        "neither",
        id="id object",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":[1],"result":{}}',
        INVALID,
        NO_ID,
        "response",
        "neither",
        id="id array",
    ),
    pytest.param(
        f'{{"jsonrpc":"2.0","id":{MAX + 1},"method":"m"}}',
        INVALID,
        NO_ID,
        "request",
        "2^53",
        id="id 2^53",
    ),
    pytest.param(
        f'{{"jsonrpc":"2.0","id":-{MAX + 1},"method":"m"}}',
        INVALID,
        NO_ID,
        "request",
        "",
        id="id -2^53",
    ),
    pytest.param(
        f'{{"jsonrpc":"2.0","id":{MAX + 1},"error":{{}}}}',
        INVALID,
        NO_ID,
        "response",
        "",
        id="error 2^53",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":"' + "x" * 17 + '","method":"m"}',
        INVALID,
        NO_ID,
        "request",
        "16 bytes",
        id="long id",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":"' + "ü" * 9 + '","method":"m"}',
        INVALID,
        NO_ID,
        "request",
        "16 bytes",
        id="bytes count",
    ),
    pytest.param(
        '{"jsonrpc":"1.0","id":"' + "x" * 17 + '","method":"m"}',
        INVALID,
        NO_ID,
        "request",
        "",
        id="long id, other",
    ),
    # Methods
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":7}', INVALID, 1, "request", "str", id="method no text"
    ),
    pytest.param(
        '{"jsonrpc":"2.0","method":7}', INVALID, NO_ID, "neither", "str", id="no id, method no text"
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"' + "m" * 33 + '"}',
        INVALID,
        1,
        "request",
        "32 bytes",
        id="long method",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","method":"' + "m" * 33 + '"}',
        INVALID,
        NO_ID,
        "notification",
        "",
        id="long, notification",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"' + "µ" * 17 + '"}',
        INVALID,
        1,
        "request",
        "32 bytes",
        id="method bytes",
    ),
    # Request or response
    pytest.param(
        '{"jsonrpc":"2.0"}',
        INVALID,
        NO_ID,
        "neither",
        "neither a method",
        id="no method and no result",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1}', INVALID, 1, "neither", "neither a method", id="an id alone"
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"m","result":{}}',
        INVALID,
        1,
        "request",
        "not both",
        id="both",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
        INVALID,
        1,
        "response",
        "not both",
        id="r and e",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","result":{}}',
        INVALID,
        NO_ID,
        "response",
        "without an id",
        id="result, no id",
    ),
    # Duplicate members
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}',
        INVALID,
        2,
        "request",
        "duplicate",
        id="two ids",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}',
        INVALID,
        1,
        "request",
        "duplicate",
        id="the same id",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}',
        INVALID,
        1,
        "request",
        "duplicate",
        id="jsonrpc",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"a","method":"m"}',
        INVALID,
        1,
        "request",
        "duplicate",
        id="methods",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{"a":"b"}}',
        INVALID,
        1,
        "request",
        "",
        id="params",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","method":"a","method":"m"}',
        INVALID,
        NO_ID,
        "notification",
        "",
        id="notification",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"result":{},"result":{}}',
        INVALID,
        1,
        "response",
        "duplicate",
        id="results",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"m"}',
        INVALID,
        2,
        "request",
        "duplicate",
        id="escaped",
    ),
    pytest.param(
        ' { "jsonrpc" : "2.0" , "id" : 1 , "id" : 2 , "method" : "m" } ',
        INVALID,
        2,
        "request",
        "duplicate",
        id="spaced",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"method":"m","x":1,"x":2}',
        INVALID,
        1,
        "request",
        "duplicate",
        id="unknown",
    ),
    pytest.param(
        # Four quotation marks without a byte would make up for the four of the dropped method.
        '{"jsonrpc":"2.0","id":1,"\\u0022\\u0022\\u0022\\u0022":0,"method":"a","method":"m"}',
        INVALID,
        1,
        "request",
        "duplicate",
        id="hidden behind quotes that are escaped",
    ),
    pytest.param(
        '{"jsonrpc":"2.0","id":1,"\\"":0,"\\u0022":0,"method":"m"}',
        INVALID,
        1,
        "request",
        "duplicate",
        id="quotation marks",
    ),
]


@pytest.mark.parametrize("member", ["id", "method"])
def test_decode_takes_an_id_and_a_method_of_256_characters_by_default(member: str) -> None:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "m"}
    message[member] = "x" * 256
    assert getattr(decode(json.dumps(message).encode()), member) == "x" * 256
    message[member] += "x"
    with pytest.raises(BadMessage, match="256"):
        decode(json.dumps(message).encode())


@pytest.mark.requirement("RPC-3", "RPC-9", "RPC-10", "RPC-17", "RPC-26")
@pytest.mark.parametrize(("sent", "fault", "id", "looks", "words"), BAD)
def test_decode_invalid_message_raises_bad_message(
    sent: str | bytes, fault: Fault, id: Any, looks: str, words: str
) -> None:
    data = sent if isinstance(sent, bytes) else sent.encode()
    with pytest.raises(BadMessage) as caught:
        decode(data, method_limit=32, id_limit=16)
    bad = caught.value
    assert words in bad.message
    assert (bad.fault, bad.id, bad.apparent_kind) == (fault, id, looks)
    assert type(bad.id) is type(id)
    assert bad.message == str(bad)
    assert bad.__cause__ is None


def test_decode_near_recursion_limit_raises_bad_message() -> None:
    """At some depth, which depends on the stack, only the first of two decodings succeeds."""
    outcomes: set[Any] = set()
    for depth in range(700, 1000):
        data = b'{"jsonrpc":"2.0","id":1,"method":"m","x":%b1%b}' % (b"[" * depth, b"]" * depth)
        try:
            outcomes.add(decode(data).method)
        except BadMessage as bad:
            outcomes.add(bad.fault)
    assert outcomes <= {"m", PARSE}


@pytest.mark.parametrize(
    ("data", "members"),
    [
        (b"[]", []),
        (b' [1, {"a": "b"} ,"x"]\r', [b"1", b'{"a": "b"}', b'"x"']),
        ('["ü"]'.encode(), ['"ü"'.encode()]),
    ],
)
def test_split_batch_returns_members(data: bytes, members: list[bytes]) -> None:
    assert is_batch(data)
    assert split_batch(data) == members


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[1", "too early"),
        (b"[1,]", "not JSON"),
        (b'["\xff"]', "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_split_batch_not_json_raises(data: bytes, words: str) -> None:
    with pytest.raises(BadMessage, match=words) as caught:
        split_batch(data)
    assert (caught.value.fault, caught.value.id, caught.value.apparent_kind) == (
        PARSE,
        None,
        "request",
    )


@pytest.mark.parametrize("data", [b"{}", b"", b" ", b'"["', b"1"])
def test_is_batch_false_for_objects_and_text(data: bytes) -> None:
    assert not is_batch(data)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (encode_request(1, "m", None), '{"jsonrpc":"2.0","id":1,"method":"m"}'),
        (
            encode_request("1", "m", b'{"a":1}'),
            '{"jsonrpc":"2.0","id":"1","method":"m","params":{"a":1}}',
        ),
        (encode_notification("m", None), '{"jsonrpc":"2.0","method":"m"}'),
        (encode_notification('"', b"{}"), '{"jsonrpc":"2.0","method":"\\"","params":{}}'),
        (encode_result(1, b"{}"), '{"jsonrpc":"2.0","id":1,"result":{}}'),
        (encode_result(1, b'{"a":1}'), '{"jsonrpc":"2.0","id":1,"result":{"a":1}}'),
        (encode_result(1, b"{}", b'"b":2,'), '{"jsonrpc":"2.0","id":1,"result":{"b":2}}'),
        (
            encode_result(1, b'{"a":1}', b'"b":2,"c":3,'),
            '{"jsonrpc":"2.0","id":1,"result":{"b":2,"c":3,"a":1}}',
        ),
        (encode_error(1, b"{}"), '{"jsonrpc":"2.0","id":1,"error":{}}'),
        (encode_error(1, b"{}", null_id=True), '{"jsonrpc":"2.0","id":1,"error":{}}'),
        (encode_error("", b"{}"), '{"jsonrpc":"2.0","id":"","error":{}}'),
        (encode_error(None, b"{}"), '{"jsonrpc":"2.0","error":{}}'),
        (encode_error(None, b"{}", null_id=True), '{"jsonrpc":"2.0","id":null,"error":{}}'),
    ],
)
@pytest.mark.requirement("RPC-7", "RPC-8", "RPC-13")
def test_encoded_message_equals_json_and_is_decoded(written: bytes, expected: str) -> None:
    assert written.decode() == expected
    decode(written)


@pytest.mark.requirement("RPC-11")
def test_encode_error_object_omits_absent_data() -> None:
    assert encode(t.ErrorData(code=1, message="m")) == b'{"code":1,"message":"m"}'
    assert (
        encode(t.ErrorData(code=1, message="m", data=None))
        == b'{"code":1,"message":"m","data":null}'
    )


@pytest.mark.requirement("STDIO-1")
def test_one_line_removes_white_space() -> None:
    pretty = b'{\r\n  "a": [1,\n 2],\n  "b": "c d\\n"\n}\n'
    assert strip_white_space(pretty) == b'{"a":[1,2],"b":"c d\\n"}'


@pytest.mark.parametrize("size", [1, 1024, 1025, 5000])
def test_bad_message_keeps_both_ends_of_a_message_without_id(size: int) -> None:
    """Not all of it: it may be long, and the error may be kept."""
    data = b"{" + bytes(number % 251 for number in range(size - 1))
    bad = BadMessage(Fault.PARSE, "bad").about(data)
    assert bad.excerpt is not None
    assert (bad.excerpt.beginning, bad.excerpt.end) == (data[:1024], data[max(size - 1024, 0) :])
    assert (bad.excerpt.size, bad.excerpt.too_long, bad.excerpt.is_rest) == (size, False, False)
    assert BadMessage(Fault.PARSE, "bad", 1).about(data).excerpt is None


def test_reader_decodes_its_type() -> None:
    read = reader(t.CancelledParams)
    assert read(b'{"requestId":1}') == t.CancelledParams(request_id=1)
    assert read(Raw(b'{"requestId":"1"}')) == t.CancelledParams(request_id="1")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "too early"),
        (b"{", "too early"),
        (b'{"requestId":1.5}', r"got `float` - at `\$.requestId`"),
        (b'{"reason":"\xff"}', "not UTF-8"),
        (b'{"_meta":{"a":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_reader_invalid_payload_has_reason(data: bytes, words: str) -> None:
    with pytest.raises(InvalidPayload, match=words):
        reader(t.CancelledParams)(data)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
IDS = st.integers(-MAX, MAX) | st.text(max_size=50)


@fewer_examples(5)
@given(
    IDS,
    st.text(max_size=60),
    st.dictionaries(st.text(), JSON, max_size=2),
    st.booleans(),
    st.integers(0, 4),
)
def test_decode_accepts_output_of_other_encoders(
    id: Any, method: str, params: Any, escape: bool, indent: int
) -> None:
    """The standard library writes white space and escapes that ours does not."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    for data in (
        json.dumps(message, ensure_ascii=escape, indent=indent or None).encode(),
        encode_request(id, method, encode(params)),
    ):
        envelope = decode(data)
        assert (envelope.id, type(envelope.id), envelope.method) == (id, type(id), method)
        assert isinstance(envelope.params, Raw)
        assert json.loads(bytes(envelope.params)) == json.loads(json.dumps(params))


@fewer_examples(2)
@given(st.dictionaries(st.text(), JSON, max_size=4), st.text(), JSON)
def test_decode_duplicate_member_raises(members: dict[str, Any], key: str, value: Any) -> None:
    message = {**members, key: value, "jsonrpc": "2.0", "method": "m"}
    once = encode(message)
    # The duplicate comes first, so the decoder keeps the valid member.
    twice = b"{%b:%b,%b" % (encode(key), encode(0), once[1:])
    message.pop("id", None)  # of the wrong type
    assert msgspec.json.decode(twice) is not None
    with pytest.raises(BadMessage):
        decode(twice)


@given(st.binary() | st.text().map(str.encode) | JSON.map(encode))
def test_decode_random_bytes_give_envelope_or_bad_message(data: bytes) -> None:
    with suppress(BadMessage):
        decode(data)


# -- Duplicate members -----------------------------------------------------------------------------

# Few of them, so that names often stand twice. One character of each kind of escape.
KEYS = st.text(st.sampled_from(['"', "\\", "\n", "\x01", "a", "é", "😀"]), max_size=3) | st.text()
SCALARS = KEYS | st.none() | st.integers(-9, 9)


class Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, in which a name may stand twice."""

    def has_duplicates(self, inner: str | None = None) -> bool:
        names = [name for name, _ in self]
        if len(set(names)) < len(names):
            return True
        value = dict(self).get(inner) if inner is not None else None
        return isinstance(value, Pairs) and value.has_duplicates()


OBJECTS = st.recursive(
    st.lists(st.tuples(KEYS, SCALARS), max_size=5).map(Pairs),
    lambda inner: st.lists(
        st.tuples(KEYS, inner | SCALARS | st.lists(inner, max_size=2)), max_size=4
    ).map(Pairs),
    max_leaves=4,
)


def spell_text(text: str, random: Random) -> str:
    """Spell each character as one of its escapes, or as itself where JSON permits that."""
    parts = []
    for char in text:
        units = char.encode("utf-16-be").hex()
        spellings = [
            json.dumps(char)[1:-1],
            "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)),
        ]
        if char >= " " and char not in '"\\':
            spellings.append(char)
        parts.append(random.choice(spellings))
    return '"{}"'.format("".join(parts))


def spell(value: Any, random: Random) -> str:
    """Return JSON of `value` with white space and escapes at random places."""

    def space() -> str:
        return random.choice(["", "", " ", "\n     "])

    if isinstance(value, Pairs):
        members = [
            f"{space()}{spell_text(name, random)}{space()}:{space()}{spell(item, random)}"
            for name, item in value
        ]
        return "{" + ",".join(members) + space() + "}"
    if isinstance(value, list):
        return "[" + ",".join(spell(item, random) for item in value) + space() + "]"
    return spell_text(value, random) if isinstance(value, str) else json.dumps(value)


@fewer_examples(2)
@given(OBJECTS, st.randoms(use_true_random=False))
def test_duplicates_of_any_object_are_found_exactly(pairs: Pairs, random: Random) -> None:
    """The oracle knows the members, since it spelled them."""
    data = spell(pairs, random).encode()
    assert has_duplicates(data) is pairs.has_duplicates()
    for name in {name for name, _ in pairs}:
        assert has_duplicates(data, name) is pairs.has_duplicates(name)
    assert not has_duplicates(b'{"in":%b,"other":0}' % data)


@pytest.mark.parametrize(
    ("data", "twice"),
    [
        (rb'{"\"":1,"\u0001":2}', False),
        (rb'{"\"":      1}', False),
        (rb'{"\u0022":0,"\\":"\\\""}', False),
        (rb'{"\"":1,"\u0022":2}', True),
        # The escaped name has no quotation mark as a byte, the dropped one has two.
        (rb'{"\u0022":0,"a":1,"a":2}', True),
        (rb'{"\\\"\\":0,"\\":1,"\u005c":2}', True),
    ],
)
def test_duplicates_beside_names_with_quotation_marks(data: bytes, twice: bool) -> None:
    assert has_duplicates(data) is twice


@pytest.mark.parametrize("data", [b"[]", b'"a"', b"null", b"{", b"", b'{"a":\xff}'])
def test_duplicates_of_other_json_are_none(data: bytes) -> None:
    assert not has_duplicates(data)


BOM = "\ufeff"
MARK = "a byte order mark was left out"
HALF = "half of a surrogate pair was read as U+FFFD"
INTEGRAL = "an id such as 3.0 was read as 3"
ABSENT = "null was read as an absent member: "


def message_with(members: str) -> bytes:
    """Return a message with these members, as JSON. A byte order mark stays in front."""
    mark = BOM if members.startswith(BOM) else ""
    return f'{mark}{{"jsonrpc":"2.0",{members.removeprefix(BOM)}}}'.encode()


def text_result(text: str) -> str:
    return f'"id":3,"result":{{"text":"{text}"}}'


# Members of messages, the attributes for them, and what errors say about them.
MENDED = [
    (BOM + '"id":1,"method":"m"', '"id":1,"method":"m"', MARK),
    ('"id":3.0,"result":{}', '"id":3,"result":{}', INTEGRAL),
    ('"id":-30.00,"error":{"code":1}', '"id":-30,"error":{"code":1}', INTEGRAL),
    (
        '"id":3,"method":null,"params":null,"result":{}',
        '"id":3,"result":{}',
        f"{ABSENT}method, params",
    ),
    (
        '"id":3,"method":null,"result":null,"error":{"code":1}',
        '"id":3,"error":{"code":1}',
        f"{ABSENT}method, result",
    ),
    (text_result(r"a\ud800b"), text_result(r"a\ufffdb"), HALF),
    (text_result(r"a\uD800b"), text_result(r"a\ufffdb"), HALF),
    (text_result(r"\udfff\uD83D\ude00\uDBFF"), text_result(r"\ufffd\uD83D\ude00\ufffd"), HALF),
    (
        text_result(r"\\ud800 \ud800 \\\ud800 \ufdd0"),
        text_result(r"\\ud800 \ufffd \\\ufffd \ufdd0"),
        HALF,
    ),
    (
        r'"id":3,"method":"m","params":{"name":"t","arguments":{"name":"\ud800","uri":["\udc00"]}}',
        r'"id":3,"method":"m","params":{"name":"t","arguments":{"name":"\ufffd","uri":["\ufffd"]}}',
        HALF,
    ),
    (
        BOM + r'"id":3.0,"method":null,"result":{"text":"\ud800"}',
        r'"id":3,"result":{"text":"\ufffd"}',
        f"{MARK}; {HALF}; {INTEGRAL}; {ABSENT}method",
    ),
]


@pytest.mark.parametrize(("members", "meant", "problem"), MENDED)
def test_fault_with_one_meaning_is_mended_and_named(members: str, meant: str, problem: str) -> None:
    found = decode(message_with(members))
    assert isinstance(found, MendedEnvelope)
    assert found.problem == problem
    expected = decode(message_with(meant))
    assert type(expected) is Envelope
    for name in Envelope.__struct_fields__:
        one, other = getattr(found, name), getattr(expected, name)
        assert (bytes(one) == bytes(other)) if isinstance(one, Raw) else one == other


@pytest.mark.parametrize(
    "members",
    [
        # In what is compared or looked up.
        *(
            rf'"id":3,"result":{{"{name}":"\ud800"}}'
            for name in ("name", "uri", "uriTemplate", "nextCursor", "requestState", "taskId")
        ),
        *(
            rf'"id":3,"method":"m","params":{{"{name}":"\udc00"}}'
            for name in ("name", "uri", "cursor", "requestState", "requestId", "progressToken")
        ),
        r'"id":"\ud800","result":{}',
        r'"method":"m","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"\ud800"}}',
        r'"id":3,"method":"\ud800"',
        r'"id":3,"result":{"content":[{"type":"resource_link","uri":"\ud800"}]}',
        r'"id":3,"result":{"structuredContent":{"\ud800":1}}',
        pytest.param(text_result(r"\ud800" * 20_001), id="more halves than are looked at"),
        # Ambiguous, or of a request.
        '"id":3.0,"method":"m"',
        '"id":3.5,"result":{}',
        '"id":3e0,"result":{}',
        '"id":9007199254740992.0,"result":{}',
        '"id":3.0,"id":4.0,"result":{}',
        '"id":3,"method":null,"result":{},"result":{}',
        '"id":3,"method":null',
        '"id":null,"method":null,"result":{}',
        '"id":3,"result":{},"error":{}',
    ],
)
def test_fault_that_could_mean_several_things_is_refused(members: str) -> None:
    with pytest.raises(BadMessage):
        decode(message_with(members))


@given(st.binary(max_size=100), st.text(max_size=50))
def test_any_bytes_are_an_envelope_or_a_bad_message(data: bytes, text: str) -> None:
    escaped = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": text}}).encode()
    for each in (data, escaped[:-3] + data + escaped[-3:], escaped.replace(b"\\u", b"\\ud8")):
        try:
            found = decode(each)
        except BadMessage:
            continue
        assert isinstance(found, Envelope)


@given(st.text())
def test_half_of_a_pair_in_any_text_becomes_the_replacement_character(text: str) -> None:
    halves = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": f"{text}\ud800"}})
    result = decode(halves.encode()).result
    assert isinstance(result, Raw)
    assert json.loads(bytes(result)) == {"text": f"{text}\ufffd"}


HALVES = st.sampled_from(
    ["\ud800", "\udbff", "\udc00", "\udfff", "\U0001f600", "a", "\\", '"', "é"]
)


@given(st.text(HALVES, max_size=12))
def test_halves_are_those_that_the_standard_library_finds(text: str) -> None:
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": text}}).encode()
    result = decode(data).result
    assert isinstance(result, Raw)
    found = json.loads(data)["result"]["text"]
    whole = "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in found)
    assert json.loads(bytes(result)) == {"text": whole}


class BrokenCheck(msgspec.Struct):
    """A type whose check has a fault of its own."""

    def __post_init__(self) -> None:
        raise RuntimeError("of the type")


def test_fault_of_a_type_is_not_taken_for_a_wrong_payload() -> None:
    with pytest.raises(RuntimeError, match="of the type"):
        reader(BrokenCheck)(b"{}")
    with pytest.raises(InvalidPayload):
        reader(BrokenCheck)(b"[]")
