"""The time of one `tools/call` in the core alone: from request bytes to response bytes.

There is no I/O, no task and no handler. Timed are framing, decoding, admission, the event, the
result and its encoding, as a driver calls them. The same run times the lower bound: msgspec decodes
the same request and encodes the same response, and nothing else.

1. Both are timed in short turns, one after the other, and the medians are compared. A busy moment
   of the machine slows down both or neither.
2. Both do the same work on the same bytes: the responses are compared before the first turn.

    python benchmarks/bench_core.py [--rounds 200] [--calls 500]

The last line is one JSON object. `calls_per_s`, `floor_per_s` and `ratio` (the first divided by the
second) are for revision 2026-07-28; with the prefix `legacy_` they are for a call after a
handshake.
"""

from __future__ import annotations

import argparse
import json
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_core import NEED_DATA, Config, Connection, Limits, Role
from mcp_core.types import (
    CallToolResult,
    Implementation,
    ServerCapabilities,
    TextContent,
    ToolsCapability,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MODERN = (
    b'{"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{"_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"benchmark","title":"A'
    b' benchmark","version":"1.0.0"},'
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
    """Return a server's connection that has received `opening`."""
    limits = Limits(tool_calls=None)  # `now` is constant here, so a rate limit would be reached
    capabilities = ServerCapabilities(tools=ToolsCapability())
    config = Config(Implementation("benchmark", "1.0.0"), capabilities, limits=limits)
    conn = Connection(Role.SERVER, config)
    if opening:  # empty bytes would mean end of input
        conn.receive_data(opening, 0.0)
    while conn.next_event() is not NEED_DATA:
        pass
    conn.data_to_send()
    return conn


def call(conn: Connection, request: bytes) -> bytes:
    """Make the calls of a driver for one request whose handler returns at once."""
    conn.receive_data(request, 0.0)
    event: Any = conn.next_event()  # a RequestReceived
    conn.send_result(event.id, CallToolResult(content=[TextContent("The quick brown fox")]))
    conn.next_event()  # NEED_DATA
    return conn.data_to_send()


def core(conn: Connection, request: bytes, calls: int) -> float:
    """Return the seconds for `calls` calls."""
    start = perf_counter()
    for _ in range(calls):
        # The same as `call`, without the cost of calling it.
        conn.receive_data(request, 0.0)
        event: Any = conn.next_event()
        conn.send_result(event.id, CallToolResult(content=[TextContent("The quick brown fox")]))
        conn.next_event()
        conn.data_to_send()
    return perf_counter() - start


def floor(request: bytes, answer: bytes, calls: int) -> float:
    """Return the seconds for decoding the request and encoding the response `calls` times."""
    decode: Callable[[bytes], object] = msgspec.json.Decoder().decode
    encode = msgspec.json.Encoder().encode
    result = decode(answer)
    start = perf_counter()
    for _ in range(calls):
        decode(request)
        encode(result)
    return perf_counter() - start


def compare(request: bytes, opening: bytes, rounds: int, calls: int) -> tuple[float, float]:
    """Return calls a second through the core, and through msgspec alone, as medians of `rounds`."""
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
            f"{prefix or 'modern_'}call, {len(request)} bytes: {1e6 / reached:.2f} us; bare"
            f" {1e6 / possible:.2f} us"
        )
        figures |= {
            f"{prefix}calls_per_s": round(reached),
            f"{prefix}floor_per_s": round(possible),
            f"{prefix}ratio": round(reached / possible, 3),
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
