"""The start-up time of a server: from the start of its process to the response to `initialize`.

A host waits for this time at each start, once for each server. Three programs are started in turn:
our server, the same one on the official SDK (`peers/sdk_lowlevel.py`), and, as the lower bound, a
Python that reads a line and writes a constant. Then the import of each library is timed alone.

1. The programs take turns, and medians are compared, so that a busy machine affects all of them.
2. The first round is not counted: it fills the file system's cache and writes byte code.

    python benchmarks/bench_startup.py [--rounds 20]

The last line is one JSON object: medians in milliseconds, and `ratio`, how many times sooner our
server responds than the SDK's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

HERE = Path(__file__).parent
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")])),
    # Write byte code: an installed library has it, a working tree may not.
    "PYTHONDONTWRITEBYTECODE": "",
}
CONSTANT = "import sys; sys.stdin.buffer.readline(); sys.stdout.write('{}\\n')"
SERVERS = {
    "ours": [sys.executable, str(HERE / "server.py"), "stdio"],
    "sdk": [sys.executable, str(HERE / "peers" / "sdk_lowlevel.py"), "stdio"],
    "bare_python": [sys.executable, "-c", CONSTANT],
}
IMPORTS = {
    "import_mcp_core": "import mcp_core",
    "import_mcp_trio": "import mcp_trio",
    # `mcp_trio` imports its names on first use: these are what a server, and a client, need.
    "import_server_half": "from mcp_trio import Server, run",
    "import_client_half": "from mcp_trio import Client, connect",
    "import_libraries": "import trio, msgspec",  # the lower bound of both halves
    "import_sdk": "import mcp.server.lowlevel",
}
TIMED = "from time import perf_counter as now; start = now(); {}; print(now() - start)"
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"benchmark","version":"1.0.0"}}}\n'
)


def first_answer(argv: list[str]) -> float:
    """Start a server, return the seconds until its response to `initialize`, and end it."""
    start = perf_counter()
    with subprocess.Popen(
        argv, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE)
        process.stdin.flush()
        answer = process.stdout.readline()
        took = perf_counter() - start
        process.stdin.close()
        process.stdout.read()
    if b"error" in answer or not answer.startswith(b"{"):
        raise SystemExit(f"{argv} answered {answer!r}")
    return took


def import_time(statement: str) -> float:
    """Return the seconds for a statement that imports, in a fresh interpreter."""
    argv = [sys.executable, "-c", TIMED.format(statement)]
    return float(subprocess.run(argv, env=ENVIRONMENT, check=True, capture_output=True).stdout)


def main() -> None:
    options = argparse.ArgumentParser(description="From the start of a server to its first answer.")
    options.add_argument("--rounds", type=int, default=20, help="starts of each (20)")
    rounds = options.parse_args().rounds
    times: dict[str, list[float]] = {name: [] for name in (*SERVERS, *IMPORTS)}
    for _ in range(rounds + 1):
        for name, argv in SERVERS.items():
            times[name].append(first_answer(argv))
        for name, statement in IMPORTS.items():
            times[name].append(import_time(statement))
    figures = {f"{name}_ms": round(1000 * median(taken[1:]), 1) for name, taken in times.items()}
    for name, milliseconds in figures.items():
        print(f"{name:21} {milliseconds:7.1f}")
    print(json.dumps({**figures, "ratio": round(figures["sdk_ms"] / figures["ours_ms"], 2)}))


if __name__ == "__main__":
    main()
