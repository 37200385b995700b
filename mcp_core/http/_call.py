"""What a client of HTTP is told to do: the requests that it makes, and where they go.

Rules of this file:

1. A `HttpCall` is complete: all its headers are there except the one that says how long the body is (`content-length`), which the
   driver adds as it frames the body. It is given out when it is due, so that a driver has no times to keep.
2. A URL is read once. What is in it that no request can carry is an error then.

It refuses to know what is in a body, and how anything is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from mcp_core._caller_options import check_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ._messages import Head, RequestHead

__all__ = ["Access", "AccessAttempt", "HttpCall", "HttpClientOptions", "header"]


class AccessAttempt(Protocol):
    """The right to make one request, which may take several attempts (`mcp_core.auth.Attempt` is one)."""

    def headers(self, method: str, url: str) -> list[tuple[str, str]]:
        """What shows it, made anew each time."""

    def received(self, status: int, headers: Iterable[tuple[str, str]], url: str) -> bool:
        """A response came; whether something can be done about it, so that the request is worth while another time."""


class Access(Protocol):
    """Where the right to make requests comes from (`mcp_core.auth.Authorizer` is one)."""

    def attempt(self, operation: str = "") -> AccessAttempt:
        """For one request; `operation` is what it does, such as `tools/call add`."""


class HttpCall(Struct, gc=False):
    """A request to make. `key` names it and its response from now on.

    `idempotent`: it may be made again if nothing shows that it arrived (`Pool.may_retry`). `long`: its response is not expected to
    end, so that its connection is lost to others. `brief`: its response waits for nothing, while others may wait for it. `attempt`:
    what gives the right to make it (`HttpClient.sign`); None if nothing does.
    """

    key: int
    head: RequestHead
    body: bytes = b""
    idempotent: bool = True
    long: bool = False
    brief: bool = False
    attempt: AccessAttempt | None = None


class HttpClientOptions(Struct, frozen=True, kw_only=True):
    """What a client of HTTP can be told.

    `headers`: of each request, beside those that the protocol sets. `attempts`: how often in a row it is tried to come back to a
    stream that broke, before it is given up. `longest_wait`: seconds between them at most, also if the server wants more.
    `entropy`: random bytes, of which a delay that we choose ourselves gets up to a quarter longer, so that the clients of a server
    which was started again do not all come back at once. `heard`: called with each message of the server's; it must not fail.
    `access`: gives the right to make each request.

    Raises:
        ValueError: a header cannot be sent, or is not for us to choose.
    """

    headers: Mapping[str, str] = {}
    attempts: int = 5
    longest_wait: float = 30.0
    entropy: Callable[[int], bytes] | None = None
    heard: Callable[[bytes], object] | None = None
    access: Access | None = None

    def __post_init__(self) -> None:
        check_headers(self.headers)

    def __repr__(self) -> str:
        # There may be a token among the headers.
        return f"<HttpClientOptions, headers {', '.join(self.headers) or 'none'}, access by {self.access!r}>"

    __rich_repr__ = None  # type: ignore[assignment]


def header(head: Head, name: bytes) -> bytes | None:
    """The first header of this name."""
    for key, value in head.headers:
        if key == name:
            return bytes(value)
    return None
