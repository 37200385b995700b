"""The everything client behind a proxy that records what it says to the official suite's server.

The suite starts `python proxied_client.py URL` in place of `everything_client.py`. The environment
variable `MCP_TRIO_TRACES` names the directory of the traces.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conformance import everything_client

if TYPE_CHECKING:
    from collections.abc import Iterator

    Proxy = subprocess.Popen[bytes]

__all__ = ["main", "proxy_of"]


@contextmanager
def proxy_of(target: str, trace: Path, *options: str) -> Iterator[tuple[Proxy, str]]:
    """Start a proxy of the server at `target` that records in `trace`, and end it after the block.

    Yield it and its URL. Its stderr goes to a file beside the trace.
    """
    words = ["proxy", *options, "--record", str(trace), "--record-secrets", "--http", "0", target]
    log = trace.with_suffix(".txt")
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "mcp_trio", *words], stdin=subprocess.DEVNULL, stderr=stderr
        )
    with process:
        try:
            deadline = time.monotonic() + 30
            while "Ctrl+C ends it" not in log.read_text():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline
                time.sleep(0.02)
            urls = re.findall(r"Passing (http://\S+)", log.read_text())
            yield process, urls[0]
        finally:
            process.send_signal(signal.SIGTERM)


def main(target: str) -> int:
    """Run the everything client against `target` through a proxy, and return its exit status."""
    name = os.environ["MCP_CONFORMANCE_SCENARIO"].replace("/", "-")
    trace = Path(os.environ["MCP_TRIO_TRACES"]) / f"{name}-{os.getpid()}.mcp.jsonl"
    with proxy_of(target, trace) as (_, url):
        command = [sys.executable, everything_client.__file__, url]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
