"""The speed of the judge of traces, and its memory over a long one.

- `messages_per_second`: lines of a trace that are judged in a second, already read;
- `checked_per_second`: the same with reading the file, as `mcp-trio check` does;
- `peak_mib`: the most memory, in MiB, that the process has used after judging a file of `--mib`
  MiB, and `first_tenth_mib`, the same after the first tenth of the file.

The conversation is a client of 2025-11-25 that calls a tool again and again with a progress token:
a request, a progress notification and a result each time, of some 150 bytes.

    python benchmarks/bench_judge.py [--messages 60000] [--mib 100] [--rounds 3]

The last line is one JSON object with all figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from mcp_core.trace import (  # noqa: E402
    Judge,
    TraceHeader,
    TraceLine,
    TraceReader,
    encode_header,
    encode_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

GOAL: Final = 20_000  # messages a second
_CHUNK: Final = 64 * 1024  # bytes
_HEADER: Final = TraceHeader(format_version=1, observer="client", transport="stdio")
_INFO: Final = {"name": "bench", "version": "1"}
_OPENING: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    (
        "client",
        {
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": _INFO,
            },
        },
    ),
    (
        "server",
        {
            "id": 0,
            "result": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": _INFO,
            },
        },
    ),
    ("client", {"method": "notifications/initialized"}),
)


def trace_lines() -> Iterator[TraceLine]:
    """Yield the lines of a conversation without end."""
    for sender, message in _OPENING:
        yield _line(sender, message)
    number = 0
    while True:
        number += 1
        params = {
            "name": "echo",
            "arguments": {"text": "hello"},
            "_meta": {"progressToken": number},
        }
        yield _line("client", {"id": number, "method": "tools/call", "params": params})
        progress = {"progressToken": number, "progress": 1, "total": 2}
        yield _line("server", {"method": "notifications/progress", "params": progress})
        text = {"type": "text", "text": "hello " * 10}
        yield _line("server", {"id": number, "result": {"content": [text]}})


def _line(sender: Any, message: dict[str, Any]) -> TraceLine:
    return TraceLine(t=0.0, sender=sender, raw=json.dumps({"jsonrpc": "2.0", **message}))


def judge_lines(lines: list[TraceLine]) -> float:
    """Judge `lines`, which must be clean, and return how many of them it took in a second."""
    judge = Judge(_HEADER, from_start=True)
    begin = perf_counter()
    found = [finding for line in lines for finding in judge.receive(line)] + judge.close()
    seconds = perf_counter() - begin
    assert not found, found[:3]
    return len(lines) / seconds


def peak_mib() -> float:
    """Return the most memory that this process has used so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def check_file(path: Path) -> tuple[float, float]:
    """Read and judge a file, and return messages a second and the memory after a tenth of it."""
    reader, size = TraceReader(), path.stat().st_size
    judge = Judge(_HEADER, from_start=True)
    first_peak, read = 0.0, 0
    begin = perf_counter()
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            read += len(data)
            reader.feed(data)
            while (line := reader.next_line()) is not None:
                assert not judge.receive(line, reader.line_number)
            if not first_peak and read > size // 10:
                first_peak = peak_mib()
    seconds = perf_counter() - begin
    return judge.messages / seconds, first_peak or peak_mib()


def write_file(path: Path, size: int) -> None:
    """Write a trace of `size` bytes."""
    with path.open("wb") as file:
        file.write(encode_header(_HEADER))
        for line in trace_lines():
            file.write(encode_line(line))
            if file.tell() >= size:
                return


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=60_000)
    parser.add_argument("--mib", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.mcp.jsonl"
        write_file(path, int(options.mib * 1024 * 1024))
        checked, first_tenth = check_file(path)
        peak = peak_mib()
    lines = [line for line, _ in zip(trace_lines(), range(options.messages), strict=False)]
    judged = median(judge_lines(lines) for _ in range(options.rounds))
    figures = {
        "messages_per_second": round(judged),
        "checked_per_second": round(checked),
        "peak_mib": round(peak, 1),
        "first_tenth_mib": round(first_tenth, 1),
        "goal": GOAL,
    }
    for name, value in figures.items():
        print(f"{name:<22} {value:>10}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
