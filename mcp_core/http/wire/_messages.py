"""HTTP requests and responses, in the terms that h11, h2 and ASGI share.

Names of headers are in lower case. How a body is framed is left to the driver. No `repr` shows the
value of a header or a query: it may contain a token.

The calls that an `HttpClient` gives to its driver, its options, its view of authorization.

1. An `HttpCall` has all its headers but `content-length`, which the driver adds when it frames the
   body.
2. A call is given out when it is due, so a driver keeps no timers for calls.

The checks of a request's head, in their order, and the error responses.

1. The order is a tuple for each verb (`CHECKS`): who may send requests at all, then what is
   requested, then in which shape and revision. The first failed check is the response, and the body
   is not read.
2. A header that may occur once and occurs twice is rejected, whatever its values: one reader takes
   the first, and another the last. Headers that repeat what the body says are checked with the body
   (`_mirror.py`).

Sources: 2026-07-28, basic/transports/streamable-http; RFC 9110.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    # emptied

    # emptied
    pass

__all__ = [
    "Action",
    "Body",
    "End",
    "ErrorResponse",
    "Head",
    "Headers",
    "RequestHead",
    "header",
]

Headers = list[tuple[bytes, bytes]]


class RequestHead(Struct, gc=False):
    """The head of a request. `target` is the path with its query, as received."""

    method: bytes
    target: bytes
    headers: Headers

    def __repr__(self) -> str:
        return f"<RequestHead {_text(self.method)} {_text(self.target.partition(b'?')[0])} {_names(self.headers)}>"

    # msgspec has rich show every member. Without it rich uses the repr, which hides the values.
    __rich_repr__ = None  # type: ignore[assignment]


class Head(Struct, gc=False):
    """The head of a response. Without a `content-length` the body ends with `End`."""

    status: int
    headers: Headers

    def __repr__(self) -> str:
        return f"<Head {self.status} {_names(self.headers)}>"

    __rich_repr__ = None  # type: ignore[assignment]


class Body(Struct, gc=False):
    """A part of the body of a response."""

    data: bytes


class End(Struct, gc=False):
    """The end of a response."""


Action = Head | Body | End


def _text(data: bytes) -> str:
    return ascii(data.decode("latin-1"))[1:-1]


def _names(headers: Headers) -> str:
    return f"headers=[{', '.join(_text(name) for name, _ in headers)}]"


def header(head: Head, name: bytes) -> bytes | None:
    """Return the value of the first header of this name, in lower case; None if there is none."""
    for key, value in head.headers:
        if key == name:
            return bytes(value)
    return None


class ErrorResponse(Struct, frozen=True):
    """An error response. `message` names the cause and the cure.

    `close_after`: close the connection after it, without reading what may follow.
    """

    status: int
    message: str
    headers: Headers = []
    close_after: bool = False
