"""A tool that asks the user before it books: a form, from a type to an object of that type.

It is written once. How the question travels depends on who asks: until 2025-11-25 it is a request to the client, which the tool
waits for. In 2026-07-28 nobody waits: the client gets the question as an answer and calls again, and the tool is *run again from
its beginning*. So what changes something stands behind the last question. `python booking.py 2025-11-25` shows that nothing else
differs; other clients are served by `mcp-trio run booking.py`.
"""

import sys
from typing import Annotated, Literal

import msgspec
import trio

import mcp_trio
from mcp_core import ALL, FormSchema

server = mcp_trio.Server("booking")
free = {"KL 1234": 5, "SK 903": 0}


class Seats(msgspec.Struct):
    """What the user is asked for."""

    count: Annotated[int, msgspec.Meta(ge=1, le=8, description="How many?")]
    where: Annotated[Literal["aisle", "window"], "On which side?"] = "aisle"


@server.tool
async def book(flight: str, context: mcp_trio.Context) -> str:
    """Book seats on a flight. The user says how many and where."""
    if not free.get(flight):
        raise mcp_trio.ToolError(f"there are no seats on {flight}")
    answer = await context.elicit(f"Seats on flight {flight}", Seats)
    if answer.action != "accept":
        return "Nothing was booked."
    seats = answer.data
    if seats.count > free[flight]:
        raise mcp_trio.ToolError(f"only {free[flight]} seats left on {flight}")
    free[flight] -= seats.count
    return f"{seats.count} seats by the {seats.where} on {flight}; {free[flight]} left"


def fill(message: str, form: FormSchema) -> dict[str, int]:
    """Instead of a person: shows the form, and fills in what has no default."""
    print(message)
    for name, field in form.properties.items():
        print(f"  {name}: {field.description}")
    return {"count": 2}


async def main() -> None:
    versions = sys.argv[1:] or ALL
    async with mcp_trio.connect(server, versions=versions, on_elicit=mcp_trio.answer_form(fill)) as client:
        print((await client.call_tool("book", {"flight": "KL 1234"})).text)


if __name__ == "__main__":
    trio.run(main)
