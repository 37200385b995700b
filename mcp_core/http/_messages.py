"""The words in which HTTP is spoken of here: the head of a request, and a response as head, body and end.

They are what h11, h2 and ASGI have in common, so that a driver only spells them. Rule of this file: names of headers are in lower
case; no word says how a body is framed, for that is the driver's.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Action", "Body", "End", "Head", "Headers", "RequestHead"]

Headers = list[tuple[bytes, bytes]]


class RequestHead(Struct, gc=False):
    """What a request begins with. `target` is a path with its query, as it came."""

    method: bytes
    target: bytes
    headers: Headers


class Head(Struct, gc=False):
    """What a response begins with. Without `content-length` among the headers the body ends with `End`."""

    status: int
    headers: Headers


class Body(Struct, gc=False):
    """A piece of the body of a response."""

    data: bytes


class End(Struct, gc=False):
    """The response is complete."""


Action = Head | Body | End
