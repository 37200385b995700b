"""The calls of the workers' bus in Redis: their keys and arguments."""

from __future__ import annotations

import pytest

from mcp_core._redis_calls import probe
from mcp_core.sharing import Position
from mcp_core.sharing import _layout as scripts
from mcp_core.sharing._layout import BusLayout

NUMBER = ("mcp:{d}:number:3", "mcp:{d}:alive:3")
STREAM = "mcp:{d}:bus"


def test_calls_have_the_keys_of_their_deployment() -> None:
    layout = BusLayout("d")
    assert layout.stream == STREAM
    assert layout.join(3, "o") == (scripts._JOIN, (*NUMBER, STREAM), ("o",))
    assert layout.heartbeat(3, "o", "s") == (
        scripts._HEARTBEAT,
        (*NUMBER, STREAM, "mcp:{d}:servers"),
        ("o", "s"),
    )
    assert layout.leave(3, "o") == (scripts._LEAVE, NUMBER, ("o",))
    assert layout.publish(b"m") == (scripts._PUBLISH, (STREAM,), (b"m",))
    assert layout.alive_keys([3, 4]) == ["mcp:{d}:alive:3", "mcp:{d}:alive:4"]


def test_stream_is_overtaken_from_a_position() -> None:
    layout = BusLayout("d")
    expected = (scripts._OVERTAKE, (STREAM,), ("5", "6", ""))
    assert layout.overtake(Position(5, 6)) == expected
    assert layout.overtake(Position(5, 6), lost=True) == (*expected[:2], ("5", "6", "lost"))


def test_probe_is_of_a_key_of_its_own() -> None:
    call, commands = BusLayout("d").probes()
    key = "mcp:{d}:probe"
    assert call == probe(key, scripts._PROBED)
    assert call.keys == (key,)
    assert commands == [
        ("MGET", key),
        ("XRANGE", key, "-", "-"),
        ("XREVRANGE", key, "+", "+"),
        ("XREAD", "COUNT", "1", "STREAMS", key, "0-0"),
    ]


@pytest.mark.parametrize("name", ["", "a{", "a}"])
def test_name_that_ends_the_hash_tag_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        BusLayout(name)
