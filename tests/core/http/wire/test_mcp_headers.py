"""Values of MCP headers: the examples of the specification, strict decoding, round trips."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_core.http.wire import _mcp_headers
from mcp_core.http.wire._mcp_headers import decode_value, encode_value, message_headers

# text, encoded value
TEXTS: list[Any] = [
    # The examples of the specification.
    ("us-west1", b"us-west1"),
    ("Hello, 世界", b"=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", b"=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", b"=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", b"=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    # Plain text.
    ("", b""),
    ("a b  c", b"a b  c"),
    ("file:///path/to/file%20name.txt", b"file:///path/to/file%20name.txt"),
    ("SGVsbG8=", b"SGVsbG8="),
    ("=?base64?SGVsbG8=", b"=?base64?SGVsbG8="),
    ("SGVsbG8=?=", b"SGVsbG8=?="),
    ("=?BASE64?SGVsbG8=?=", b"=?BASE64?SGVsbG8=?="),
    ("x=?base64?SGVsbG8=?=", b"x=?base64?SGVsbG8=?="),
    ("~!", b"~!"),
    # Text that needs base64.
    (" ", b"=?base64?IA==?="),
    ("a ", b"=?base64?YSA=?="),
    ("\ta", b"=?base64?CWE=?="),
    ("a\tb", b"=?base64?YQli?="),
    ("a\r\nx-evil: 1", b"=?base64?YQ0KeC1ldmlsOiAx?="),
    ("\x7f", b"=?base64?fw==?="),
    ("\0", b"=?base64?AA==?="),
    ("é", b"=?base64?w6k=?="),
    ("\N{NO-BREAK SPACE}", b"=?base64?wqA=?="),
    ("=?base64??=", b"=?base64?PT9iYXNlNjQ/Pz0=?="),
]


@pytest.mark.requirement("HDR-5", "HDR-6")
@pytest.mark.parametrize(("text", "value"), TEXTS)
def test_header_value_encodes_examples(text: str, value: bytes) -> None:
    assert encode_value(text) == value
    assert decode_value(value) == text


@pytest.mark.requirement("HDR-5", "HDR-6")
@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("=?base64?=")
def test_header_value_round_trips(text: str) -> None:
    value = encode_value(text)
    assert decode_value(value) == text
    assert value.isascii()
    assert value == value.strip()
    assert not set(value) & set(b"\r\n\t\0\x7f")


def test_encode_value_lone_surrogate_raises() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        encode_value("\ud800")


# values of other encoders, text
READ: list[Any] = [
    (b"  add \t", "add"),
    (b" =?base64?SGVsbG8=?= ", "Hello"),
    (b"=?base64?SGVsbG8=?=", "Hello"),  # base64 was not necessary, but is valid
    (b"=?base64??=", ""),
    (b"=?base64?=", "=?base64?="),  # there is room for one of the markers only
    (b"a\tb", "a\tb"),
]


@pytest.mark.parametrize(("value", "text"), READ)
def test_decode_value_accepts_other_encoders(value: bytes, text: str) -> None:
    assert decode_value(value) == text


NONE = "it is marked as base64 but is not valid base64"
WRONG: list[Any] = [
    pytest.param(b"=?base64?SGVsbG8?=", NONE, id="no padding"),
    pytest.param(b"=?base64?SGVs!!!bG8=?=", NONE, id="not of the alphabet"),
    pytest.param(b"=?base64?SGVsbG8==?=", NONE, id="too much padding"),
    pytest.param(b"=?base64?SGVsbG8=SGVsbG8=?=", NONE, id="padding inside"),
    pytest.param(b"=?base64?SGVsbG9=?=", NONE, id="bits left over"),
    pytest.param(b"=?base64? SGVsbG8=?=", NONE, id="a space"),
    pytest.param(b"=?base64?SGVs bG8=?=", NONE, id="a space inside"),
    pytest.param(b"=?base64?_-__?=", NONE, id="another alphabet"),
    pytest.param(b"=?base64?A?=", NONE, id="too little"),
    pytest.param(b"=?base64?=?=", NONE, id="padding alone"),
    pytest.param(b"=?base64?/w==?=", "its base64 is not UTF-8 text", id="no UTF-8"),
    pytest.param(b"=?base64?7aCA?=", "its base64 is not UTF-8 text", id="half of a surrogate pair"),
    pytest.param(b"caf\xc3\xa9", "characters that no header may have", id="UTF-8 as it is"),
    pytest.param(b"caf\xe9", "characters that no header may have", id="Latin-1"),
    pytest.param(b"a\x7f", "characters that no header may have", id="DEL"),
    pytest.param(b"a\0b", "characters that no header may have", id="NUL"),
    pytest.param(b"a\r\nb", "characters that no header may have", id="a line break"),
]


@pytest.mark.parametrize(("value", "problem"), WRONG)
def test_decode_value_malformed_raises(value: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decode_value(value)


@given(st.binary(max_size=12), st.booleans())
def test_decode_value_accepts_canonical_base64_only(data: bytes, marked: bool) -> None:
    value = b"=?base64?%b?=" % data if marked else data
    try:
        text = decode_value(value)
    except ValueError:
        return
    assert value.strip(b" \t") in (text.encode(), b"=?base64?%b?=" % b64encode(text.encode()))


def test_mcp_header_names_are_lower_case() -> None:
    names = [
        value for value in vars(_mcp_headers).values() if isinstance(value, bytes) and b"-" in value
    ]
    assert len(names) == 6
    assert all(name == name.lower() for name in names)


MIRRORED = {("region",): "Region", ("deep", "count"): "Count"}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


@pytest.mark.parametrize(
    ("message", "headers"),
    [
        ({"method": "tools/list"}, {"mcp-method": "tools/list"}),
        ({"method": "tools/list", "params": {"name": "x"}}, {"mcp-method": "tools/list"}),
        (
            {"method": "resources/read", "params": {"uri": "a:é"}},
            {"mcp-method": "resources/read", "mcp-name": "=?base64?YTrDqQ==?="},
        ),
        (
            {"method": "tasks/get", "params": {"taskId": "7"}},
            {"mcp-method": "tasks/get", "mcp-name": "7"},
        ),
        (
            {**CALL, "params": {"name": "t", "arguments": {"region": "eu", "deep": {"count": 3}}}},
            {
                "mcp-method": "tools/call",
                "mcp-name": "t",
                "mcp-param-region": "eu",
                "mcp-param-count": "3",
            },
        ),
        # The rest has no header: each of it is an error that the server has to find.
        (
            {**CALL, "params": {"name": "t", "arguments": {"region": "\ud800", "deep": [1]}}},
            {"mcp-method": "tools/call", "mcp-name": "t"},
        ),
        (
            {
                **CALL,
                "params": {"name": "t", "arguments": {"deep": {"count": 2**60}, "region": ""}},
            },
            {"mcp-method": "tools/call", "mcp-name": "t", "mcp-param-region": ""},
        ),
        ({**CALL, "params": {"name": 7, "arguments": 82}}, {"mcp-method": "tools/call"}),
        ({**CALL, "params": {"name": "\ud800"}}, {"mcp-method": "tools/call"}),
        ({**CALL, "params": []}, {"mcp-method": "tools/call"}),
        ({"method": "é"}, {"mcp-method": "?"}),
        ({"method": 7}, {}),
        ({"id": 1, "result": {}}, {}),
    ],
)
def test_message_headers_repeat_what_headers_can_carry(
    message: dict[str, Any], headers: dict[str, str]
) -> None:
    found = message_headers(message, MIRRORED)
    assert {name.decode(): value.decode() for name, value in found} == headers
    assert len(found) == len(headers)
