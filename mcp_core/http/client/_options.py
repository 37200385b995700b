"""The calls that an `HttpClient` gives to its driver, its options, its view of authorization.

1. An `HttpCall` has all its headers but `content-length`, which the driver adds when it frames the
   body.
2. A call is given out when it is due, so a driver keeps no timers for calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from mcp_core.http.wire._mcp_headers import check_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcp_core.http.wire._messages import RequestHead

__all__ = [
    "AuthAttemptLike",
    "AuthorizerLike",
    "HttpCall",
    "HttpClientOptions",
]


class AuthAttemptLike(Protocol):
    """The authorization of one call, which may be sent several times.

    See `mcp_core.auth.AuthAttempt`.
    """

    def headers(self, method: str, url: str) -> list[tuple[str, str]]:
        """Return the headers that authorize a request. Call it anew for each request.

        A DPoP proof, for example, may be sent once only.
        """

    def received(self, status: int, headers: Iterable[tuple[str, str]], url: str) -> bool:
        """Process the head of a response. Return True if a retry may succeed.

        Before the retry the driver runs the authorization flow of this attempt.
        """


class AuthorizerLike(Protocol):
    """The authorization of a client's calls. See `mcp_core.auth.Authorizer`."""

    def attempt(self, operation: str = "") -> AuthAttemptLike:
        """Begin the authorization of one call.

        `operation` names it in errors, such as `tools/call add`.
        """


class HttpCall(Struct, gc=False):
    """One HTTP request for the driver to make.

    Attributes:
        key: identifies the call and its response from now on.
        head: method, target and headers, without `content-length`.
        body: the complete body.
        idempotent: whether it may be sent again if no response came (`Pool.may_retry`).
        long_lived: whether its response may never end, so that its connection is not counted as in
            use.
        brief: whether the server responds to it without waiting for anything, while other calls may
            wait for it. It never waits for a place in the pool.
        attempt: its authorization, for `HttpClient.sign`; None without an authorizer.
    """

    key: int
    head: RequestHead
    body: bytes = b""
    idempotent: bool = True
    long_lived: bool = False
    brief: bool = False
    attempt: AuthAttemptLike | None = None


class HttpClientOptions(Struct, frozen=True, kw_only=True):
    """The options of an `HttpClient`.

    Attributes:
        headers: sent with each request, in addition to those of the protocol.
        reconnect_attempts: how often in a row a reconnect to a stream is tried before it fails.
        max_reconnect_delay: seconds between two attempts at most, even if the server asks for more.
        entropy: returns that many random bytes. They lengthen our own delays by up to a quarter, so
            that the clients of a restarted server do not reconnect all at once. None for no jitter.
        on_message: called with each message of the server; it must not raise.
        authorizer: authorizes each call; None for no authorization.

    Raises:
        ValueError: a header cannot be sent, or is set by the protocol.
    """

    headers: Mapping[str, str] = {}
    reconnect_attempts: int = 5
    max_reconnect_delay: float = 30.0
    entropy: Callable[[int], bytes] | None = None
    on_message: Callable[[bytes], object] | None = None
    authorizer: AuthorizerLike | None = None

    def __post_init__(self) -> None:
        check_headers(self.headers)

    def __repr__(self) -> str:
        # Names only: a value may be a token.
        return (
            f"<HttpClientOptions, headers {', '.join(self.headers) or 'none'}, access by "
            f"{self.authorizer!r}>"
        )

    __rich_repr__ = None  # type: ignore[assignment]
