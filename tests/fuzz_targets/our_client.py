"""A client of this package with a short conversation, for the fuzzer of clients.

    python our_client.py trio|asyncio URL | COMMAND ARGUMENT ...

It declares everything, reads all pages of the lists, calls a tool twice, and ends.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcp_core import McpTrioError
from mcp_core import types as t

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TIMEOUT = 3.0  # seconds for each request


def sample(params: t.CreateMessageParams) -> t.CreateMessageResult:
    """Return the same message each time."""
    return t.CreateMessageResult(role="assistant", content=t.TextContent("yes"), model="none")


HANDLERS: dict[str, Any] = {
    "on_elicit": lambda question: t.ElicitResult(action="decline"),
    "on_roots": ["file:///srv/fuzz"],
    "on_sample": sample,
}


async def use(client: Any) -> None:
    """Have the conversation."""
    limit = {"timeout": TIMEOUT}
    requests: list[Callable[[], Awaitable[object]]] = [
        lambda: client.list_tools(**limit),
        lambda: client.call_tool("sum", {"a": 1}, progress=lambda *report: None, **limit),
        lambda: client.list_resources(**limit),
        lambda: client.read_resource("note:///one", **limit),
        lambda: client.list_prompts(**limit),
        lambda: client.call_tool("sum", {"a": 2}, **limit),
    ]
    for each in requests:
        with suppress(McpTrioError):
            await each()


async def on_trio(target: Any) -> None:
    """Have the conversation on trio."""
    import mcp_trio

    async with mcp_trio.connect(target, **HANDLERS) as client:
        await use(client)


async def on_asyncio(target: Any) -> None:
    """Have the conversation on asyncio."""
    import mcp_asyncio_shim

    async with mcp_asyncio_shim.connect(target, **HANDLERS) as client:
        await use(client)


def main() -> int:
    """Run the client and return its exit status."""
    loop, *words = sys.argv[1:]
    target: Any = words[0] if "://" in words[0] else words
    status = 0
    try:
        if loop == "trio":
            import trio

            trio.run(on_trio, target)
        else:
            asyncio.run(on_asyncio(target))
    except* McpTrioError as errors:
        print(errors.exceptions[0], file=sys.stderr)
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
