"""A server of the official Python SDK over HTTP: `python sdk_http_server.py FILE MODE PORT`.

FILE is the name of the server's file here, without `.py`. MODE is `sessions`, `stateless` or `json`
(with sessions), at /mcp; or `sse` for HTTP+SSE of 2024-11-05, at /sse.
"""

from __future__ import annotations

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


def main() -> None:
    file, mode, port = sys.argv[1:]
    server = runpy.run_path(str(HERE / f"{file}.py"))["server"]
    uvicorn.run(app(server, mode), port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
