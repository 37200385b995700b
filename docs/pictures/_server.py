"""The server of the recorded conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

import mcp_trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["forecast_server", "main"]


class Seats(msgspec.Struct):
    """The form that `book` shows."""

    count: int


def forecast_server(on_run: Callable[[], object] = lambda: None) -> mcp_trio.Server:
    """Return a server with two tools: one reports progress, one requests input.

    `on_run` is called each time that the handler of `book` begins.
    """
    server = mcp_trio.Server("forecast")

    @server.tool
    async def forecast(city: str, context: mcp_trio.Context) -> str:
        """Return the weather of tomorrow."""
        await context.progress(1, 2)
        return f"Sun in {city}."

    @server.tool
    async def book(context: mcp_trio.Context) -> str:
        """Book seats."""
        on_run()
        answer = await context.elicit("How many seats?", Seats)
        return f"{answer.data.count} seats" if answer.action == "accept" else "No seats."

    return server


def main() -> None:
    """Serve the client that started this process."""
    mcp_trio.run(forecast_server())
