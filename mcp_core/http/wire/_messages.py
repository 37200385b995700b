"""HTTP requests and responses, in the terms that h11, h2 and ASGI share.

Names of headers are in lower case. How a body is framed is left to the driver. No `repr` shows the
value of a header or a query: it may contain a token.
"""

from __future__ import annotations

from msgspec import Struct

from mcp_core._errors import Fault

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

# Header fields in order: names in lower case, and values.
Headers = list[tuple[bytes, bytes]]


class RequestHead(Struct, gc=False):
    """A request's head.

    Attributes:
        method: the method, such as `b"POST"`.
        target: the path with its query, as received.
        headers: pairs of name and value. The names are in lower case.
    """

    method: bytes
    target: bytes
    headers: Headers

    def __repr__(self) -> str:
        return (
            f"<RequestHead {_text(self.method)} {_text(self.target.partition(b'?')[0])} "
            f"{_names(self.headers)}>"
        )

    # msgspec has rich show every member. Without it rich uses the repr, which hides the values.
    __rich_repr__ = None  # type: ignore[assignment]


class Head(Struct, gc=False):
    """A response's head. Without a `content-length` the body ends with `End`.

    `status` is the status code. `headers` are pairs of name and value, the names in lower case.
    """

    status: int
    headers: Headers

    def __repr__(self) -> str:
        return f"<Head {self.status} {_names(self.headers)}>"

    __rich_repr__ = None  # type: ignore[assignment]


class Body(Struct, gc=False):
    """A part of a response's body, `data`."""

    data: bytes


class End(Struct, gc=False):
    """The end of a response."""


# What a driver has to send of a response, in order.
Action = Head | Body | End


def _text(data: bytes) -> str:
    return ascii(data.decode("latin-1"))[1:-1]


def _names(headers: Headers) -> str:
    return f"headers=[{', '.join(_text(name) for name, _ in headers)}]"


def header(head: Head, name: bytes) -> bytes | None:
    """Return the value of the first header with this name, in lower case, None without one."""
    for key, value in head.headers:
        if key == name:
            return bytes(value)
    return None


class ErrorResponse(Struct, frozen=True):
    """An error response. `message` names the cause and the cure.

    `close_after`: close the connection after it, without reading what may follow. `fault` decides
    the JSON-RPC error code in its body.
    """

    status: int
    message: str
    headers: Headers = []
    close_after: bool = False
    fault: Fault = Fault.INVALID_REQUEST
