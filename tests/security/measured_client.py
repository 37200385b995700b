"""A client in a process of its own that measures itself: `python measured_client.py URL ACTION`.

It prints a JSON object: the largest number of descriptors and of bytes in memory, the seconds until
the result or the error, and that error. ACTION is `call_tool` or a method that lists.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

import trio

from mcp_core import McpTrioError
from mcp_trio import connect

peak = {"descriptors": 0, "memory": 0}
over = threading.Event()


def watch() -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    while not over.wait(0.01):
        with open("/proc/self/statm") as file:  # noqa: PTH123 - in a hurry
            pages = int(file.read().split()[1])
        descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        peak["memory"] = max(peak["memory"], pages * page)
        peak["descriptors"] = max(peak["descriptors"], descriptors)


async def main(url: str, action: str) -> dict[str, Any]:
    async with connect(url) as client:
        start = trio.current_time()
        error = None
        try:
            if action == "call_tool":
                await client.call_tool("t")
            else:
                await getattr(client, action)()
        except McpTrioError as exc:
            error = f"{type(exc).__name__}: {exc}"
        return {"seconds": trio.current_time() - start, "error": error}


if __name__ == "__main__":
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        outcome = trio.run(main, sys.argv[1], sys.argv[2])
    finally:
        over.set()
        watcher.join()
    print(json.dumps({**outcome, **peak}))
