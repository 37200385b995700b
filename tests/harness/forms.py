"""The form that tests ask a user to fill in, and its JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

__all__ = ["SEATS_SCHEMA", "Seats"]


class Seats(Struct):
    """A form with a bounded number, and a choice with a default."""

    count: Annotated[int, Meta(ge=1, le=8, description="How many?")]
    where: Literal["aisle", "window"] = "aisle"


SEATS_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "description": "How many?", "minimum": 1, "maximum": 8},
        "where": {"type": "string", "enum": ["aisle", "window"], "default": "aisle"},
    },
    "required": ["count"],
}
