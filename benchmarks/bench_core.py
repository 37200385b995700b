"""How fast the core is by itself: one `tools/call` from its bytes to the bytes of its answer, through `Connection`.

No IO, no tasks, no handler: what is timed is framing, decoding, admission, the event, the result and its encoding, as a
driver would ask for them. Beside it, in the same run, stands what nobody gets below: msgspec decoding the same request and
encoding the same answer, and nothing else.

Rules of this file:

1. Both are timed in short turns, one after the other, and the medians are compared. So a machine that is busy for a moment
   slows down both or neither.
2. The two do the same work on the same bytes: the answers are checked to be equal before the first turn.

    python benchmarks/bench_core.py [--rounds 200] [--calls 500]

The last line is one JSON object. `calls_per_s`, `floor_per_s` and `ratio` (the first by the second) are those of revision
2026-07-28, the ones with `legacy_` in front those of a call after a handshake.
"""

from __future__ import annotations

import argparse
import json
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_core import NEED_DATA, Config, Connection, Limits, Role
from mcp_core.types import CallToolResult, Implementation, ServerCapabilities, TextContent, ToolsCapability

if TYPE_CHECKING:
    from collections.abc import Callable

MODERN = (
    b'{"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{"_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"benchmark","title":"A benchmark","version":"1.0.0"},'
    b'"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"progressToken":4711},'
    b'"name":"echo","arguments":{"text":"The quick brown fox jumps over the lazy dog"}}}\n'
)
LEGACY = (
    b'{"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{"_meta":{"progressToken":4711},'
    b'"name":"echo","arguments":{"text":"The quick brown fox jumps over the lazy dog"}}}\n'
)
HANDSHAKE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"benchmark","version":"1.0.0"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)


def connection(opening: bytes) -> Connection:
    """A server's connection that has taken in `opening`."""
    limits = Limits(tool_calls=None)  # time stands still here, so that a limit on it would be reached
    capabilities = ServerCapabilities(tools=ToolsCapability())
    config = Config(Implementation("benchmark", "1.0.0"), capabilities, limits=limits)
    conn = Connection(Role.SERVER, config)
    if opening:  # empty would be the end of the input
        conn.receive_data(opening, 0.0)
    while conn.next_event() is not NEED_DATA:
        pass
    conn.data_to_send()
    return conn


def call(conn: Connection, request: bytes) -> bytes:
    """What a driver does for one request whose handler answers at once."""
    conn.receive_data(request, 0.0)
    event: Any = conn.next_event()  # a RequestReceived
    conn.send_result(event.id, CallToolResult(content=[TextContent("The quick brown fox")]))
    conn.next_event()  # NEED_DATA
    return conn.data_to_send()


def core(conn: Connection, request: bytes, calls: int) -> float:
    """Seconds for so many calls."""
    start = perf_counter()
    for _ in range(calls):
        # As in `call`, without its cost.
        conn.receive_data(request, 0.0)
        event: Any = conn.next_event()
        conn.send_result(event.id, CallToolResult(content=[TextContent("The quick brown fox")]))
        conn.next_event()
        conn.data_to_send()
    return perf_counter() - start


def floor(request: bytes, answer: bytes, calls: int) -> float:
    """Seconds for so many times nothing but reading the request and writing the answer."""
    decode: Callable[[bytes], object] = msgspec.json.Decoder().decode
    encode = msgspec.json.Encoder().encode
    result = decode(answer)
    start = perf_counter()
    for _ in range(calls):
        decode(request)
        encode(result)
    return perf_counter() - start


def compare(request: bytes, opening: bytes, rounds: int, calls: int) -> tuple[float, float]:
    """Calls in a second through the core, and through msgspec alone: medians of `rounds` turns of `calls` each."""
    conn = connection(opening)
    answer = call(conn, request)
    assert msgspec.json.encode(msgspec.json.decode(answer)) + b"\n" == answer
    turns = [(core(conn, request, calls), floor(request, answer, calls)) for _ in range(rounds)]
    return calls / median(turn[0] for turn in turns), calls / median(turn[1] for turn in turns)


def main() -> None:
    options = argparse.ArgumentParser(description="The core by itself, beside bare msgspec.")
    options.add_argument("--rounds", type=int, default=200, help="turns of each (200)")
    options.add_argument("--calls", type=int, default=500, help="calls in a turn (500)")
    chosen = options.parse_args()
    figures: dict[str, float] = {}
    for prefix, request, opening in ("", MODERN, b""), ("legacy_", LEGACY, HANDSHAKE):
        reached, possible = compare(request, opening, chosen.rounds, chosen.calls)
        print(
            f"{prefix or 'modern_'}call, {len(request)} bytes: {1e6 / reached:.2f} us; bare {1e6 / possible:.2f} us"
        )
        figures |= {
            f"{prefix}calls_per_s": round(reached),
            f"{prefix}floor_per_s": round(possible),
            f"{prefix}ratio": round(reached / possible, 3),
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
