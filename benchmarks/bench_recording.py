"""The cost of recording a conversation, in microseconds a message.

Two figures for each kind of message, with and without redaction:

- `caller`: the time that the conversation spends in the recorder, which delays the message;
- `total`: the processor time of the whole process for it: the caller, and the thread that splits,
  redacts, encodes and writes. This is what is left of the machine for others.
- `lines`: the part of it that splits, redacts and encodes, alone in one thread and without pauses,
  the best of the rounds. It does not change with what else the machine does.

Kinds: `call`, a `tools/call` of 2026-07-28 with its `_meta` (some 300 bytes); `ten_kb`, a result
of 10,000 bytes; `task`, a message with a task id, which is scanned; `http`, a POST and its response
with heads, which count as two messages.

And with the client and server of this library in two processes over stdio, one call at a time:

- `p50_plain`, `p50_recorded`: the median time of a call in microseconds, without and with `record=`
  at the client. A call is two messages.

Messages come in bursts of 100 with a pause after each, so that the queue stays short, as in a real
conversation. Medians of the rounds are shown, and of `total` the best round as well: what else runs
on the machine takes caches and half of a core, and doubles the processor time of the same work.
Turns with and without recording alternate.

    python benchmarks/bench_recording.py [--rounds 5] [--messages 20000] [--calls 2000]

The last line is one JSON object with all figures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, Final

import trio

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from mcp_core.http import Body, End, Head, RequestHead  # noqa: E402
from mcp_core.trace import (  # noqa: E402
    ConversationNumbers,
    HttpChannel,
    Redactor,
    StreamChannel,
    TraceEncoder,
    TraceHeader,
)
from mcp_trio import Recording, connect_stdio  # noqa: E402
from mcp_trio.recording._open import open_recorder  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.adapters import Recorder
    from mcp_core.trace import TraceLine

_BURST: Final = 100
_PAUSE: Final = 0.005  # seconds
_LIMIT: Final = 1024 * 1024  # bytes of a message
_CHUNK: Final = 64 * 1024  # bytes that the recorder encodes at once
GOAL: Final = 6.0  # microseconds a message

_META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 17, **message}).encode() + b"\n"


CALL: Final = _line(
    {
        "method": "tools/call",
        "params": {"_meta": _META, "name": "echo", "arguments": {"text": "x" * 60}},
    }
)
TEN_KB: Final = _line({"result": {"content": [{"type": "text", "text": "x" * 10_000}]}})
TASK: Final = _line({"method": "tasks/get", "params": {"_meta": _META, "taskId": "0f5e2c1a3b7d"}})
_SESSION: Final = (b"mcp-session-id", b"0f5e2c1a-3b7d-4c1e-9a55-0123456789ab")
_POST: Final = RequestHead(
    b"POST",
    b"/mcp",
    [
        (b"host", b"127.0.0.1:8000"),
        (b"accept", b"application/json, text/event-stream"),
        (b"content-type", b"application/json"),
        (b"mcp-protocol-version", b"2025-11-25"),
        (b"authorization", b"Bearer 0123456789abcdef"),
        _SESSION,
    ],
)
_HEAD: Final = Head(200, [(b"content-type", b"application/json"), _SESSION])


def on_stream(message: bytes) -> Callable[[Recorder], Callable[[], object]]:
    def start(recorder: Recorder) -> Callable[[], object]:
        record = recorder.stream()
        return lambda: record.received(message)

    return start


def on_http(recorder: Recorder) -> Callable[[], object]:
    def exchange() -> None:
        record = recorder.begin(_POST, CALL, "1.1")
        record.response([_HEAD, Body(CALL), End()])

    return exchange


# What records once, and the messages of it.
KINDS: Final[dict[str, tuple[Callable[[Recorder], Callable[[], object]], int]]] = {
    "call": (on_stream(CALL), 1),
    "ten_kb": (on_stream(TEN_KB), 1),
    "task": (on_stream(TASK), 1),
    "http": (on_http, 2),
}


async def measure(
    start: Callable[[Recorder], Callable[[], object]], count: int, path: str, *, redacts: bool
) -> tuple[float, float]:
    """Record `count` times. Return the microseconds each, of the caller and in all."""
    began = process_time()
    spent = 0.0
    recording = Recording(path=path, with_secrets=not redacts)
    async with open_recorder(recording, "client", "stream") as recorder:
        assert recorder is not None
        record = start(recorder)
        for _ in range(count // _BURST):
            before = perf_counter()
            for _ in range(_BURST):
                record()
            spent += perf_counter() - before
            await trio.sleep(_PAUSE)
    total = process_time() - began
    # The bursts and pauses themselves, and the start of the thread.
    return spent / count * 1e6, (total - await _idle(count)) / count * 1e6


async def _idle(count: int) -> float:
    began = process_time()
    for _ in range(count // _BURST):
        await trio.sleep(_PAUSE)
    return process_time() - began


def line_times(rounds: int, *, redacts: bool) -> dict[str, float]:
    """Return the microseconds for the lines of a message, by kind, of the best round."""
    conversations = ConversationNumbers(single=True)
    redactor = Redactor(bytes(32)) if redacts else None
    encoder = TraceEncoder(TraceHeader(format_version=1), redactor, sys.maxsize)
    stream = StreamChannel(1, _LIMIT)

    def exchange() -> list[TraceLine]:
        channel = HttpChannel(1, conversations, _LIMIT)
        lines = channel.request(0.0, (_POST, CALL, "1.1"))
        return lines + channel.response(0.0, [_HEAD, Body(CALL), End()])

    makers: dict[str, Callable[[], list[TraceLine]]] = {
        "call": lambda: stream.server_data(0.0, CALL),
        "ten_kb": lambda: stream.server_data(0.0, TEN_KB),
        "task": lambda: stream.server_data(0.0, TASK),
        "http": exchange,
    }
    found = {}
    for name, make in makers.items():
        count = _CHUNK // sum(len(line.raw or "") for line in make())
        times = []
        for _ in range(rounds * 20 * _BURST // count):
            began = perf_counter()
            lines: list[TraceLine] = []
            for _ in range(count):
                lines += make()
            encoder.encode(lines)
            times.append(perf_counter() - began)
        found[name] = min(times) / count / KINDS[name][1] * 1e6
    return found


async def call_times(calls: int, path: str | None) -> float:
    """Return the median of the microseconds of a call."""
    argv = [sys.executable, str(HERE / "server.py"), "stdio"]
    times = []
    async with connect_stdio(argv, inherit_env=True, record=path) as client:
        for number in range(calls + 200):
            before = perf_counter()
            await client.call_tool("echo", {"text": "x" * 60})
            if number >= 200:
                times.append(perf_counter() - before)
    return median(times) * 1e6


async def main(rounds: int, messages: int, calls: int) -> dict[str, float]:
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "x.mcp.jsonl")  # noqa: PTH118
        for _ in range(rounds):
            for name, (start, size) in KINDS.items():
                for redacts in (True, False):
                    suffix = "" if redacts else "_unredacted"
                    caller, total = await measure(start, messages, path, redacts=redacts)
                    figures.setdefault(f"{name}_caller{suffix}", []).append(caller / size)
                    figures.setdefault(f"{name}_total{suffix}", []).append(total / size)
            if calls:
                figures.setdefault("p50_plain", []).append(await call_times(calls, None))
                figures.setdefault("p50_recorded", []).append(await call_times(calls, path))
    for redacts in (True, False):
        suffix = "" if redacts else "_unredacted"
        for name, value in line_times(rounds, redacts=redacts).items():
            figures[f"{name}_lines{suffix}"] = [value]
    found = {name: median(values) for name, values in figures.items()}
    found |= {f"{name}_best": min(figures[name]) for name in figures if "_total" in name}
    return {name: round(value, 2) for name, value in found.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The cost of recording a conversation.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--calls", type=int, default=2_000, help="0 leaves out the calls")
    found = parser.parse_args()
    result = trio.run(main, found.rounds, found.messages, found.calls)
    for figure, value in result.items():
        print(f"{figure:26} {value:8.2f} us")
    print(f"the goal is {GOAL:g} us a message")
    print(json.dumps(result))
