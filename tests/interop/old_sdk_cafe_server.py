# mypy: ignore-errors
# This SDK is not in the environment of the type checker.
"""A server of the official Python SDK of 2025 (`mcp` 1.20): `python old_sdk_cafe_server.py [PORT]`.

Over stdio, or with a port over Streamable HTTP. It needs `mcp` 1.20, and nothing of this
repository.
"""

import sys
from typing import Literal

from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel, Field

server = FastMCP("old", instructions="Order something.", host="127.0.0.1")


class Order(BaseModel):
    """A form whose optional fields pydantic writes with `anyOf` and null."""

    dish: str = Field(min_length=1)
    note: str | None = Field(default=None, description="For the kitchen")
    count: int | None = Field(default=None, ge=1, le=8)
    price: int | float = 1
    spicy: bool | None = None


class Place(BaseModel):
    """A form that the SDK itself refuses: with a choice, a date and a format of its own."""

    id: str = Field(json_schema_extra={"format": "uuid"})
    size: Literal["small", "large"] | None = None
    day: str | None = Field(default=None, json_schema_extra={"format": "date"})


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
async def order(context: Context) -> str:
    """Ask for an order."""
    answer = await context.elicit("What would you like?", Order)
    return answer.data.model_dump_json() if answer.action == "accept" else answer.action


@server.tool()
async def reserve(context: Context) -> str:
    """Ask for a place, by a schema that pydantic wrote."""
    answer = await context.session.elicit("Which place?", Place.model_json_schema())
    place = Place.model_validate(answer.content) if answer.action == "accept" else None
    return answer.action if place is None else place.model_dump_json()


@server.resource("note://café", mime_type="text/plain")
def coffee() -> str:
    """A note whose URI the SDK lists in another spelling."""
    return "Open until six."


@server.resource("note://{day}/list", mime_type="text/plain")
def notes(day: str) -> str:
    """The notes of a day."""
    return f"Notes of {day}."


@server.prompt()
def greet(name: str) -> str:
    """Greet someone."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.settings.port = int(sys.argv[1])
        server.run("streamable-http")
    else:
        server.run()
