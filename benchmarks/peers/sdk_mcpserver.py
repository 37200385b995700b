"""`benchmarks/server.py` with the official Python SDK (`mcp` 2.3): decorators and derived schemas.

    python benchmarks/peers/sdk_mcpserver.py stdio [--tools N]
    python benchmarks/peers/sdk_mcpserver.py http --port P --mode MODE [--tools N]

Of the SDK's two ways this one corresponds to ours, and is the slower one. As with our server, `add`
returns structured output, and the other tools return text.
"""

from __future__ import annotations

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("benchmark", version="1.0.0", log_level="ERROR")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(structured_output=False)
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
    app = server.streamable_http_app(
        stateless_http=how == "stateless", json_response=answers == "json"
    )
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


def main() -> None:
    arguments = sys.argv[1:]
    more = 0
    if arguments[-2:-1] == ["--tools"]:
        more = int(arguments[-1])
        del arguments[-2:]
    for number in range(more):
        server.add_tool(filler, name=f"filler_{number}", structured_output=False)
    match arguments:
        case ["stdio"]:
            server.run("stdio")
        case ["http", "--port", port, "--mode", mode]:
            serve_http(int(port), mode)
        case _:
            sys.exit("usage: sdk_mcpserver.py stdio|http [--port P --mode MODE] [--tools N]")


if __name__ == "__main__":
    main()
