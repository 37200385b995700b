"""Damaged messages: what they are made of, and when none is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_trio.oracle.fuzz.draw import _damaging
from mcp_trio.oracle.fuzz.draw._requests import rows_of
from tests.harness.jsonrpc import D
from tests.trio_.oracle.fuzz.draw.every_draw import EachDraw

NO_CHOICES: Any = None


class DrawnData(EachDraw):
    """A drawing whose values are all the same."""

    def __init__(self, data: Any, numbers: Any = ()) -> None:
        super().__init__(numbers)
        self._data = data

    def value(self, strategy: Any) -> Any:
        return self._data


@pytest.mark.parametrize(
    ("data", "steps"),
    [
        (b'{"id":1}', [("mutate", '{"id":1}')]),
        (b"\xed\xa0\x80", [("mutate", "\ud800")]),  # half of a character pair
        (b'{"id":1,"id":2}', []),
        (b'{"method":"tools/call"}', []),
        (b'x\n{"a":[{"b":1,"b":1}]}\n', []),
    ],
)
def test_message_that_may_call_a_tool_or_has_a_member_twice_is_left_out(
    data: bytes, steps: list[Any]
) -> None:
    draw: Any = DrawnData(data)
    assert _damaging.mutated(draw, NO_CHOICES, D) == steps


@pytest.mark.parametrize(
    ("damaged", "steps"),
    [(b"x", [("damage", b"x")]), (b'{"a":1,"a":1}', []), (b"tools/call", [])],
)
def test_damaged_bytes_are_sent_unless_they_are_doubtful(
    damaged: bytes, steps: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are made of a ping, or of the first method of the revision with any arguments."""
    whole: list[bytes] = []

    def damage(value: Any, data: bytes) -> bytes:
        whole.append(data)
        return damaged

    monkeypatch.setattr(_damaging, "damage", damage)
    [first, *_] = rows_of(D)
    for number, method in ((0, "ping"), (1, first.name)):
        draw: Any = DrawnData(2**30, [0, number])
        assert _damaging.damaged(draw, NO_CHOICES, D) == steps
        message = json.loads(whole.pop())
        meta = message["params"].pop("_meta")
        assert isinstance(meta, dict)
        assert message == {
            "jsonrpc": "2.0",
            "id": 2**30,
            "method": method,
            "params": {"a": 2**30},
        }
        assert draw.counts[1:] == [2]


@pytest.mark.parametrize(
    ("line", "doubtful"),
    [
        (b'{"a":1,"b":1}', False),
        (b'{"a":1,"a":1}\n{"b":1}', True),
        (b'{"b":1}\n{"a":1,"a":1}', True),
        (b'[{"a":1,"a":1},{"b":2}]', True),
        (b"[" * 100_000, False),
        (b"\xff", False),
        (b'{"method":"tools/list"}', False),
    ],
)
def test_each_line_and_each_object_is_examined(line: bytes, doubtful: bool) -> None:
    assert _damaging._is_doubtful(line) is doubtful
