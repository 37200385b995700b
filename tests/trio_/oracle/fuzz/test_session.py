"""Which bytes are a request that every server has to answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._interoperable_json import read_plain_request
from tests.trio_.oracle.fuzz.memory_target import MemoryTarget, answers, same_each_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trio.testing import MockClock


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', True),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":82}', True),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","extra":{}}', True),
        (b'{"jsonrpc":"2.0",\r"id":1,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}', False),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":""}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"\\ud800"}', False),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 90 + b"]" * 90 + b"}",
            False,
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', False),
        (b'{"jsonrpc":"2.0","method":"ping"}', False),
        (b"[]", False),
        (b"", False),
    ],
)
def test_request_that_each_server_reads_is_plain(line: bytes, plain: bool) -> None:
    assert (read_plain_request(line) is not None) is plain


def test_faults_of_one_cause_can_have_two_rows() -> None:
    one = TargetFault(kind="row", row="RPC-8", method="a")
    other = TargetFault(kind="row", row="RPC-14", method="b")
    assert one.cause == other.cause
    assert one.key != other.key


def test_reading_of_the_text_is_advice() -> None:
    assert TargetFault(kind="row", row="LIFE-10", level="reading").is_advice
    assert TargetFault(kind="row", row="MRTR-13", is_certain=False).is_advice
    assert not TargetFault(kind="row", row="RPC-7").is_advice


async def test_further_session_continues_the_trace_with_the_next_number() -> None:
    """The requests of the case and the times of the server's tools go with it."""
    first = await MemoryTarget(lambda message, start: answers(message)).open(keep=True)
    first.drops, first.messages, first.is_second = bool, 3, True
    second = await first.successor()
    third = await second.successor()
    assert [each.number for each in (first, second, third)] == [1, 2, 3]
    for name in ("judge", "lines", "began_at", "recording", "requests", "drops", "call_times"):
        assert getattr(third, name) is getattr(first, name), name
    assert (third.messages, third.is_second) == (3, True)


def served_calls(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}


async def test_quickest_success_of_a_tool_is_kept(autojump_clock: MockClock) -> None:
    """It is sent again after a slow call: see `serves_calls_again`."""
    target = MemoryTarget(same_each_time(served_calls))
    session = await target.open()
    for id, seconds in enumerate((2.0, 1.0, 3.0)):
        target.times = {"tools/call": seconds}
        params = {"name": "nap", "_meta": None}
        await session.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        await session.wait_changed(math.inf)
    (kept,) = session.quickest.values()
    assert (kept.request.id, kept.request.name, kept.request.answer) == (1, "tools/call nap", None)
    assert kept.seconds == pytest.approx(1.0)
    await session.aclose()
