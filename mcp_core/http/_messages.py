"""The words in which HTTP is spoken of here: the head of a request, and a response as head, body and end.

They are what h11, h2 and ASGI have in common, so that a driver only spells them. Rules of this file: names of headers are in lower
case; no word says how a body is framed, for that is the driver's; none prints the value of a header, or a query: there may be a
token in it.
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

    def __repr__(self) -> str:
        return f"<RequestHead {_text(self.method)} {_text(self.target.partition(b'?')[0])} {_names(self.headers)}>"

    # msgspec shows rich every member; without this rich takes the repr
    __rich_repr__ = None  # type: ignore[assignment]


class Head(Struct, gc=False):
    """What a response begins with. Without `content-length` among the headers the body ends with `End`."""

    status: int
    headers: Headers

    def __repr__(self) -> str:
        return f"<Head {self.status} {_names(self.headers)}>"

    __rich_repr__ = None  # type: ignore[assignment]


class Body(Struct, gc=False):
    """A piece of the body of a response."""

    data: bytes


class End(Struct, gc=False):
    """The response is complete."""


Action = Head | Body | End


def _text(data: bytes) -> str:
    return ascii(data.decode("latin-1"))[1:-1]


def _names(headers: Headers) -> str:
    return f"headers=[{', '.join(_text(name) for name, _ in headers)}]"
