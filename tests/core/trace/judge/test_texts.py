"""A trace's texts as the judge reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace import HttpHead, TraceLine
from mcp_core.trace._format import SseFields
from mcp_core.trace.judge import _texts
from mcp_core.trace.judge._texts import NotJson, add_piece, decode, has_http_message, is_cut

if TYPE_CHECKING:
    from collections.abc import Iterable


def test_text_is_decoded_up_to_two_hundred_levels() -> None:
    assert decode('{"a": 1.5}') == {"a": 1.5}
    assert decode("[" * 200 + "1" + "]" * 200)
    with pytest.raises(ValueError, match=r"^nested too deeply$"):
        decode("[" * 201 + "1" + "]" * 201)
    with pytest.raises(RecursionError):
        decode("[" * 100_000)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity", "{", ""])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        decode(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, True),
        ('{"a": 1', True),
        ("\n [1", True),
        ("[NaN]", True),
        ('{"a": 1}', False),
        ("log: 5", False),
        ("", False),
        ("[" * 100_000, False),  # too deep for this decoder, and perhaps whole
        ("[" + "1" * 5_000 + "]", False),  # Python decodes no integer of so many digits
    ],
)
def test_text_is_cut_if_it_begins_as_json_and_is_none(text: str | None, *, expected: bool) -> None:
    data = b"\xff" if text is None else None
    assert is_cut(TraceLine(t=0.0, sender="client", raw=text, data=data)) is expected


MESSAGE = '{"jsonrpc":"2.0"}'


def head(status: int, *types: str) -> HttpHead:
    headers = tuple(("content-type", each) for each in types)
    return HttpHead(status=status, headers=(("a", "json"), *headers))


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, False),
        ({"raw": ""}, True),
        ({"data": b"\xff"}, True),
        ({"sse": SseFields()}, False),
        ({"sse": SseFields(), "raw": ""}, True),
        ({"sse": SseFields(event="message"), "raw": ""}, True),
        ({"sse": SseFields(event="endpoint"), "raw": MESSAGE}, False),
        ({"http": head(0, "text/plain"), "raw": MESSAGE}, True),
        ({"http": head(0), "raw": "{}"}, False),
        ({"http": head(0), "data": b'\xff"jsonrpc"'}, False),
        ({"http": head(200, "application/JSON; x"), "raw": MESSAGE}, True),
        ({"http": head(200, "application/json", "text/html"), "raw": MESSAGE}, True),
        ({"http": head(200, "text/html", "application/json"), "raw": MESSAGE}, False),
        ({"http": head(404), "raw": MESSAGE}, False),
        ({"http": head(200, "application/json"), "raw": "{}"}, False),
    ],
)
def test_line_of_an_exchange_should_have_a_message(
    members: dict[str, Any], *, expected: bool
) -> None:
    assert has_http_message(TraceLine(t=0.0, sender="client", **members)) is expected


@pytest.mark.parametrize(
    ("lines", "expected", "left"),
    [
        (["{", "}"], [False, True], []),
        ([" [", '{"a": 1}', "]"], [False, False, False], ['{"a": 1}', "]"]),
        (['{"a":', "1", "}"], [False, False, True], []),
        (["a", "b"], [False, False], []),
        (["{", "a", "{", "}"], [False, False, False, True], []),
        (["{}"], [False], ["{}"]),
        (["[", "1]"], [False, False], ["[", "1]"]),
        (['{"a": NaN', "}"], [False, False], ['{"a": NaN', "}"]),
        (["{", "}", "}"], [False, True, False], []),
    ],
)
def test_lines_may_together_be_one_message(
    lines: Iterable[str], expected: list[bool], left: list[str]
) -> None:
    pieces: list[str] = []
    assert [add_piece(line, pieces) for line in lines] == expected
    assert pieces == left


@pytest.mark.parametrize(("limit", "is_message"), [(3, True), (2, False)])
def test_lines_of_one_message_are_few(
    limit: int, monkeypatch: pytest.MonkeyPatch, *, is_message: bool
) -> None:
    monkeypatch.setattr(_texts, "_MAX_PIECES", limit)
    pieces: list[str] = []
    found = [add_piece(line, pieces) for line in ("{", "", "}")]
    assert found == [False, False, is_message]


@pytest.mark.parametrize(("limit", "is_message"), [(5, True), (4, False)])
def test_lines_of_one_message_are_short(
    limit: int, monkeypatch: pytest.MonkeyPatch, *, is_message: bool
) -> None:
    monkeypatch.setattr(_texts, "_MAX_PIECES_SIZE", limit)
    pieces: list[str] = []
    assert [add_piece(line, pieces) for line in ("{", "   ", "}")] == [False, False, is_message]
    assert pieces == []
