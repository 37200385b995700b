# mypy: ignore-errors
"""`benchmarks/server.py` with FastMCP 4.

    python benchmarks/peers/fastmcp_server.py stdio [--tools N]
    python benchmarks/peers/fastmcp_server.py http --port P --mode MODE [--tools N]

As with our server, `add` returns structured output, and the other tools return text.
"""

from __future__ import annotations

import sys

from fastmcp import Context, FastMCP

server = FastMCP("benchmark", version="1.0.0")


@server.tool(output_schema=None)
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(output_schema=None)
async def progress(n: int, context: Context) -> str:
    """Report `n` steps of progress."""
    for step in range(1, n + 1):
        await context.report_progress(step, n)
    return "done"


def filler(query: str, limit: int = 10, exact: bool = False) -> str:
    """Look something up. There are many of these, so that a list is long."""
    return f"{query} {limit} {exact}"


def serve_http(port: int, mode: str) -> None:
    import uvicorn

    how, _, answers = mode.partition("-")
    app = server.http_app(stateless_http=how == "stateless", json_response=answers == "json")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


def main() -> None:
    arguments = sys.argv[1:]
    more = 0
    if arguments[-2:-1] == ["--tools"]:
        more = int(arguments[-1])
        del arguments[-2:]
    for number in range(more):
        server.tool(filler, name=f"filler_{number}", output_schema=None)
    match arguments:
        case ["stdio"]:
            server.run("stdio", show_banner=False, log_level="ERROR")
        case ["http", "--port", port, "--mode", mode]:
            serve_http(int(port), mode)
        case _:
            sys.exit("usage: fastmcp_server.py stdio|http [--port P --mode MODE] [--tools N]")


if __name__ == "__main__":
    main()
