"""A tool that asks the user before it books: a form made from a type, answered by an object of it.

The tool is written once for all revisions. Until 2025-11-25 the question is a request to the
client, for which the tool waits. In 2026-07-28 the server returns the question as the result; the
client calls again with the answer, and the tool is *run again from its beginning*. Code with side
effects therefore stands after the last question. Try `python booking.py 2025-11-25` and compare.
Serve other clients with `mcp-trio run booking.py`.
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
    """The fields of the form."""

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
    """Print the form and fill in the fields without a default, in place of a user."""
    print(message)
    for name, field in form.properties.items():
        print(f"  {name}: {field.description}")
    return {"count": 2}


async def main() -> None:
    versions = sys.argv[1:] or ALL
    async with mcp_trio.connect(
        server, versions=versions, on_elicit=mcp_trio.answer_form(fill)
    ) as client:
        print((await client.call_tool("book", {"flight": "KL 1234"})).text)


if __name__ == "__main__":
    trio.run(main)
