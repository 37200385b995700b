"""Two checkouts of this project in turns: what a change costs.

    python benchmarks/bench_versions.py OLD [NEW] [--turns 20] [--only KIND ...]

    git worktree add /tmp/before HEAD~10
    python benchmarks/bench_versions.py /tmp/before

Each figure is measured in a fresh process, once with each checkout in a turn, and the order changes
with every turn. It is processor time or memory, which mind other work on the machine less than the
clock does. The ratio NEW / OLD has a 95 % interval over the turns: a cost is real if the interval
lies wholly above 1.02.

| kind | what is measured |
|---|---|
| `import` | a Python that only imports what a server needs: `from mcp_trio import Server, run` |
| `client_import` | the same for a client: `from mcp_trio import Client, connect` |
| `memory` | a `tools/call` between a client and a server in one process |
| `pipe` | a `tools/call` over stdio, both processes |
| `post` | a `tools/call` of 2026-07-28 over HTTP, the server with a load of raw bytes |
| `session` | memory of an open, idle session of 2025-11-25 over HTTP |
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any, Final

KINDS: Final = ("import", "client_import", "memory", "pipe", "post", "session")
_UNITS: Final = {
    "import": "ms",
    "client_import": "ms",
    "memory": "µs",
    "pipe": "µs",
    "post": "µs",
    "session": "bytes",
}
# Calls or sessions in a turn, of which the first tenth warms up and is not measured.
_COUNTS: Final = {"memory": 4_000, "pipe": 3_000, "post": 4_000, "session": 2_000}
_T_95: Final = 2.1  # Student's t for 20 turns; for more turns it is a little lower
_MODERN: Final = "2026-07-28"
_LEGACY: Final = "2025-11-25"


# -- One measurement, in a process of its own ------------------------------------------------------


def _server() -> Any:
    import mcp_trio

    server = mcp_trio.Server("measured")

    @server.tool
    def echo(text: str) -> str:
        """Give the text back."""
        return text

    return server


async def _measure_calls(client: Any, count: int) -> float:
    for _ in range(count // 10):
        await client.call_tool("echo", {"text": "a"})
    began = time.process_time()
    for _ in range(count):
        await client.call_tool("echo", {"text": "a"})
    return time.process_time() - began


async def _memory(count: int) -> float:
    import mcp_trio

    async with mcp_trio.connect(_server()) as client:
        return await _measure_calls(client, count) / count * 1e6


async def _pipe(count: int) -> float:
    import mcp_trio

    command = [sys.executable, __file__, "--serve"]
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    async with mcp_trio.connect_stdio(command, env=environment) as client:
        ours = await _measure_calls(client, count)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The server's start is in its time, the same for each checkout as far as `import` is.
    theirs = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    return (ours + theirs) / count * 1e6


def _request(method: str, version: str, params: dict[str, Any], id: int = 1) -> bytes:
    """Return a POST with one request."""
    headers = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    if version == _MODERN:
        meta = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {**params, "_meta": meta}
        headers |= {"MCP-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": "echo"}
    body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
    headers["Content-Length"] = str(len(body))
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body


async def _exchange(stream: Any, request: bytes) -> bytes:
    """Send a request, and return the response, which has a length or is one chunked stream."""
    await stream.send_all(request)
    data = b""
    while True:
        data += bytes(await stream.receive_some())
        head, found, body = data.partition(b"\r\n\r\n")
        if not found:
            continue
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if len(body) >= int(length) if length else body.endswith(b"0\r\n\r\n"):
            return data


async def _post(count: int) -> float:
    import trio

    import mcp_trio

    call = _request("tools/call", _MODERN, {"name": "echo", "arguments": {"text": "a"}})
    async with trio.open_nursery() as nursery:
        address = await nursery.start(mcp_trio.serve_http, _server())
        stream = await trio.open_tcp_stream(address.host, address.port)
        async with stream:
            response = await _exchange(stream, call)
            assert b'"text":"a"' in response, response
            for _ in range(count // 10):
                await _exchange(stream, call)
            began = time.process_time()
            for _ in range(count):
                await _exchange(stream, call)
            taken = time.process_time() - began
        nursery.cancel_scope.cancel()
    return taken / count * 1e6


async def _session(count: int) -> float:
    import gc

    import trio

    import mcp_trio

    params = {
        "protocolVersion": _LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "load", "version": "1"},
    }
    initialize = _request("initialize", _LEGACY, params)
    from mcp_core.http import HttpLimits

    # One client may have them all.
    limits = HttpLimits(sessions=2 * count, uninitialized=2 * count, client_share=1.0)
    async with trio.open_nursery() as nursery:
        address = await nursery.start(
            lambda task_status: mcp_trio.serve_http(
                _server(), limits=limits, task_status=task_status
            )
        )
        stream = await trio.open_tcp_stream(address.host, address.port)
        async with stream:
            for number in range(count + count // 10):
                if number == count // 10:
                    gc.collect()
                    tracemalloc.start()
                response = await _exchange(stream, initialize)
                assert response.startswith(b"HTTP/1.1 200"), response
            gc.collect()
            size, _ = tracemalloc.get_traced_memory()
        nursery.cancel_scope.cancel()
    return size / count


def _measure(kind: str) -> None:
    """Print one figure of the checkout on the path."""
    # What is measured, from outside. The names are imported on first use.
    if kind == "import":
        from mcp_trio import Server, run  # noqa: F401

        return
    if kind == "client_import":
        from mcp_trio import Client, connect  # noqa: F401

        return
    import trio

    measure = {"memory": _memory, "pipe": _pipe, "post": _post, "session": _session}[kind]
    print(trio.run(measure, _COUNTS[kind]))


# -- Turns -----------------------------------------------------------------------------------------


def measure(kind: str, checkout: Path) -> float:
    """Return one figure of one checkout."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": ""}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, __file__, "--measure", kind]
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if kind in ("import", "client_import"):
        return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return float(done.stdout)


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Return the geometric mean of ratios, and its 95 % interval."""
    logarithms = [math.log(each) for each in ratios]
    mean = statistics.mean(logarithms)
    reach = _T_95 * statistics.stdev(logarithms) / math.sqrt(len(logarithms))
    return math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)


def main() -> None:
    parser = argparse.ArgumentParser(description="Two checkouts in turns.")
    parser.add_argument("old", type=Path, nargs="?", help="a checkout of the version before")
    parser.add_argument("new", type=Path, nargs="?", default=Path(__file__).parents[1])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--only", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--measure", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        import mcp_trio

        mcp_trio.run(_server())
        return
    if options.measure:
        _measure(options.measure)
        return
    if options.old is None:
        parser.error("name the checkout of the version before")
    checkouts = (options.old.resolve(), options.new.resolve())
    figures: dict[str, float] = {}
    for kind in options.only:
        found: list[list[float]] = [[], []]
        for each in checkouts:
            measure(kind, each)  # writes bytecode, and fills the disk's cache
        for turn in range(options.turns):
            for which in (0, 1) if turn % 2 else (1, 0):
                found[which].append(measure(kind, checkouts[which]))
        mean, low, high = interval([new / old for old, new in zip(*found, strict=True)])
        old, new = map(statistics.median, found)
        named = {"old": old, "new": new, "ratio": mean, "low": low, "high": high}
        figures |= {f"{kind}_{name}": value for name, value in named.items()}
        print(
            f"{kind:13} {old:9.1f} {new:9.1f} {_UNITS[kind]:5} ratio {mean:.3f} ({low:.3f} to"
            f" {high:.3f}){'  more' if low > 1.02 else ''}",
            flush=True,
        )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
