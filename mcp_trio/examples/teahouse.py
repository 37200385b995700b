"""A tea house: tools, resources and a prompt in one small file.

Try it::

    mcp-trio inspect -- python -m mcp_trio.examples.teahouse
    mcp-trio call price tea=sencha cups=2 -- python -m mcp_trio.examples.teahouse
    mcp-trio call brew tea=assam minutes=30 -- python -m mcp_trio.examples.teahouse
"""

from __future__ import annotations

import trio

import mcp_trio
from mcp_core.registry import ResourceNotFound

server = mcp_trio.Server(
    "teahouse", "1.0", title="The tea house", instructions="Look at the menu before you order."
)

MENU = {"assam": 4.0, "rooibos": 3.5, "sencha": 4.5}


@server.tool
def price(tea: str, cups: int = 1) -> float:
    """Return the price of some cups of a tea, in euros.

    Args:
        tea: its name on the menu.
        cups: how many.
    """
    if tea not in MENU:
        # The model reads this text and can try again.
        raise mcp_trio.ToolError(f"no {tea} today; on the menu: {', '.join(MENU)}")
    return MENU[tea] * cups


@server.tool
async def brew(tea: str, minutes: int, context: mcp_trio.Context) -> str:
    """Brew a pot of tea. A minute takes a tenth of a second here.

    Args:
        tea: what to brew.
        minutes: how long it steeps.
    """
    for minute in range(minutes):
        await context.progress(minute, minutes, f"the {tea} steeps")
        await trio.sleep(0.1)
    return f"A pot of {tea}, steeped for {minutes} minutes."


@server.resource("tea://menu", mime_type="text/plain")
def menu() -> str:
    """Return all teas with their prices."""
    return "\n".join(f"{tea}: {price:.2f}" for tea, price in MENU.items())


@server.resource("tea://menu/{tea}", mime_type="text/plain")
def card(tea: str) -> str:
    """Return the card of one tea."""
    if tea not in MENU:
        raise ResourceNotFound
    return f"{tea.title()}: {MENU[tea]:.2f} euros a cup"


@server.prompt
def recommend(mood: str) -> str:
    """Ask for a tea that suits a mood."""
    return f"I feel {mood}. Which tea of your menu suits that, and why?"


if __name__ == "__main__":
    mcp_trio.run(server)
