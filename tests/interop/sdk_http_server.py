"""Servers of the official Python SDK over HTTP: `python sdk_http_server.py FILE MODE PORT ...`.

FILE is the name of a server's file here, without `.py`. MODE is `sessions`, `stateless` or `json`
(with sessions), at /mcp; or `sse` for HTTP+SSE of 2024-11-05, at /sse. Each three words are a
server of its own. One process has them all, since the SDK takes two seconds to import.
"""

from __future__ import annotations

import asyncio
import runpy
import sys
from pathlib import Path
from typing import Any

import uvicorn

HERE = Path(__file__).parent


def app(server: Any, mode: str) -> Any:
    if mode == "sse":
        return server.sse_app()
    return server.streamable_http_app(
        stateless_http=mode == "stateless", json_response=mode == "json"
    )


async def main() -> None:
    words = sys.argv[1:]
    async with asyncio.TaskGroup() as tasks:
        for file, mode, port in zip(words[::3], words[1::3], words[2::3], strict=True):
            server = runpy.run_path(str(HERE / f"{file}.py"))["server"]
            config = uvicorn.Config(app(server, mode), port=int(port), log_level="warning")
            tasks.create_task(uvicorn.Server(config).serve())


if __name__ == "__main__":
    asyncio.run(main())
