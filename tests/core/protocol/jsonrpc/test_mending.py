"""Messages with a fault that has one meaning, and what becomes of them."""

from __future__ import annotations

import pytest

from mcp_core.protocol.jsonrpc import _mending
from mcp_core.protocol.jsonrpc._mending import mend

BOM = b"\xef\xbb\xbf"
HALF = "half of a surrogate pair was read as U+FFFD"
MARK = "a byte order mark was left out"


@pytest.mark.parametrize(
    ("data", "mended", "problem"),
    [
        (BOM + b'{ "id": 1}', b'{ "id": 1}', MARK),
        (b'{ "a": "\\ud800"}', b'{ "a": "\\ufffd"}', HALF),
        (b'{ "a": "\\uD800x\\uDFFF"}', b'{ "a": "\\ufffdx\\ufffd"}', HALF),
        (BOM + b'{"a": "\\ud800"}', b'{"a": "\\ufffd"}', f"{MARK}; {HALF}"),
        (b'{ "id": 3.0, "a": [1 ]}', b'{"id":3,"a":[1 ]}', "an id such as 3.0 was read as 3"),
        (b'{ "id": -3.00}', b'{"id":-3}', "an id such as 3.0 was read as 3"),
        (b'{ "id": 3.0, "method": null}', b'{"id":3}',
         "an id such as 3.0 was read as 3; null was read as an absent member: method"),
        (b'{ "id": 1, "params": null, "method": "m"}', b'{"id":1,"method":"m"}',
         "null was read as an absent member: params"),
        (b'{ "result": null, "error": {}}', b'{"error":{}}',
         "null was read as an absent member: result"),
        (b'{ "result": {}, "error": null, "params": null}', b'{"result":{}}',
         "null was read as an absent member: params, error"),
        (b'{ "result": null, "error": null}', b"{}",
         "null was read as an absent member: result, error"),
    ],
)  # fmt: skip
def test_fault_with_one_meaning_is_mended_and_named(
    data: bytes, mended: bytes, problem: str
) -> None:
    assert mend(data) == (mended, problem)


@pytest.mark.parametrize(
    "data",
    [
        b'{ "id": 1}',
        b'{ "id": 3.0, "method": "m"}',  # the peer gets back its own id as it is
        b'{ "id": 3.5}',
        b'{ "id": 12345678901234567.0}',
        b'{ "id": 1, "result": null}',
        b'{ "id": null}',
        b'{ "a": "\\ud83d\\ude00"}',
        b'{ "a": "\\\\ud800"}',
        b'{ "\\ud800": 1}',
        b'{ "name": "\\ud800"}',
        b'{ "a": {"uri": ["\\ud800"]}}',
        b'[ "\\ud800"',
        b'{ "a": "\\ud800"',
        b"[1]",
        b"{",
    ],
)
def test_message_without_such_a_fault_is_not_changed(data: bytes) -> None:
    assert mend(data) is None


@pytest.mark.parametrize(
    ("data", "mended"),
    [
        # A value of a user's may have such a text below any name.
        (b'{"arguments": {"name": "\\ud800"}}', b'{"arguments": {"name": "\\ufffd"}}'),
        (b'{"structuredContent": {"a": [{"uri": "\\ud800"}]}}',
         b'{"structuredContent": {"a": [{"uri": "\\ufffd"}]}}'),
        # Pairs stay, and each half beside one is a half.
        (b'"\\ud83d\\ud83d\\ude00\\ude00"', b'"\\ufffd\\ud83d\\ude00\\ufffd"'),
        (b'"\\ud83dx\\ude00"', b'"\\ufffdx\\ufffd"'),
        (b'"\\ude00\\ud83d"', b'"\\ufffd\\ufffd"'),
        (b'"\\u0041\\ud83d\\\\\\ude00"', b'"\\u0041\\ufffd\\\\\\ufffd"'),
        (b'"\\uDBFF\\uDC00 \\uDBFF"', b'"\\uDBFF\\uDC00 \\ufffd"'),
        # All first digits of halves, and those beside them.
        (b'"\\ud700 \\ud800 \\ud900 \\uda00 \\udb00"', b'"\\ud700%b"' % (b" \\ufffd" * 4)),
        (b'"\\ue000 \\udc00 \\udd00 \\ude00 \\udf00"', b'"\\ue000%b"' % (b" \\ufffd" * 4)),
    ],
)  # fmt: skip
def test_half_of_a_pair_becomes_one_character(data: bytes, mended: bytes) -> None:
    whole = data if data.startswith(b"{") else b'{"a": %b}' % data
    expected = mended if mended.startswith(b"{") else b'{"a": %b}' % mended
    assert mend(whole) == (expected, HALF)


@pytest.mark.parametrize(("limit", "is_mended"), [(4, True), (3, False)])
def test_message_with_many_escapes_is_not_mended(
    limit: int, monkeypatch: pytest.MonkeyPatch, *, is_mended: bool
) -> None:
    """An escape of a character counts, and so does an escaped backslash."""
    monkeypatch.setattr(_mending, "_MOST_ESCAPES", limit)
    data = b'{"a": "\\ud800\\u0041\\\\\\\\"}'
    assert (mend(data) is not None) is is_mended


@pytest.mark.parametrize(
    ("text", "is_mended"),
    [
        ("\ufdd0", True),  # another mark is left
        ("\\ufdd0", True),
        ("\\uFDD0", True),
        ("\ufdd0\ufdd1", False),
        ("\ufdd0\\ufdd1", False),
        ("\\ufdd0\\uFDD1", False),
    ],
)
def test_message_with_all_marks_is_not_mended(
    text: str, monkeypatch: pytest.MonkeyPatch, *, is_mended: bool
) -> None:
    """A mark stands for a half while its place is looked for, so the message must not have it."""
    monkeypatch.setattr(_mending, "_MARKS", ("\ufdd0", "\ufdd1"))
    data = f'{{"name": "{text}", "a": "\\ud800"}}'.encode()
    assert (mend(data) is not None) is is_mended
