"""The calls that an `HttpClient` gives to its driver, its options, its view of authorization.

1. An `HttpCall` has all its headers but `content-length`, which the driver adds when it frames the
   body.
2. A call is given out when it is due, so a driver keeps no timers for calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from mcp_core._secret_patterns import is_secret_name
from mcp_core.http.wire._mcp_headers import check_headers
from mcp_core.http.wire._messages import RequestHead
from mcp_core.urls._addresses import is_local_host
from mcp_core.urls._url import Url

__all__ = [
    "AuthAttemptLike",
    "AuthorizerLike",
    "HttpCall",
    "HttpClientOptions",
    "check_cleartext",
    "find_cleartext_error",
]


def find_cleartext_error(
    url: Url, headers: Iterable[str], *, websocket: bool = False
) -> str | None:
    """Return why headers of these names may not be sent to `url`, or None if they may.

    They may not if one has a credential, by its name, such as `authorization`, `cookie` and
    `x-functions-key`, and the connection to another machine isn't encrypted. OAuth forbids that
    for tokens (RFC 6750, 5.3). The message names the cure.

    Args:
        url: the server's URL.
        headers: the headers' names, in any case.
        websocket: the text names the schemes `ws` and `wss`.
    """
    if url.scheme == "https" or is_local_host(url.host):
        return None
    name = next((name for name in headers if is_secret_name(name)), None)
    if name is None:
        return None
    scheme, secure = ("ws", "wss") if websocket else ("http", "https")
    return (
        f"the header {name} would be sent unencrypted to {url.host}: use {secure}:// instead of "
        f"{scheme}://"
    )


def check_cleartext(
    url: Url, headers: Iterable[str], *, allow: bool, websocket: bool = False
) -> None:
    """Check that headers of these names may be sent to `url`.

    `allow` is True to allow all of them; the others are as for `find_cleartext_error`.

    Raises:
        ValueError: they may not (`find_cleartext_error`), and it isn't allowed explicitly.
    """
    problem = None if allow else find_cleartext_error(url, headers, websocket=websocket)
    if problem is not None:
        raise ValueError(
            f"{problem}, or connect with allow_cleartext=True in a network that you trust"
        )


class AuthAttemptLike(Protocol):
    """The authorization of one call, which may be sent several times.

    See `mcp_core.auth.AuthAttempt`.
    """

    def headers(self, method: str, url: str) -> list[tuple[str, str]]:
        """Return the headers that authorize a request of `method` for the absolute `url`.

        Call it anew for each request: a DPoP proof, for example, may be sent once only.
        """

    def received(self, status: int, headers: Iterable[tuple[str, str]], url: str) -> bool:
        """Process a response's head. Return True if a retry may succeed.

        Before the retry the driver runs the authorization flow of this attempt. `status` is the
        response's status, `headers` are its headers, names in lower case, and `url` is the
        request's URL.
        """

    def covers(self, url: str) -> bool:
        """Return True if the token is valid for the absolute `url`, so that it may be sent there.

        Called if a redirect leads outside of the server URL's path.
        """


class AuthorizerLike(Protocol):
    """The authorization of a client's calls. See `mcp_core.auth.Authorizer`."""

    def attempt(self, operation: str = "") -> AuthAttemptLike:
        """Begin the authorization of one call, and return it.

        `operation` names it in errors, such as `tools/call add`.
        """


class HttpCall(Struct, gc=False):
    """One HTTP request for the driver to make.

    Attributes:
        key: identifies the call and its response from now on.
        head: method, target and headers, without `content-length`.
        body: the complete body.
        idempotent: whether it may be sent again if no response came (`Pool.may_retry`).
        long_lived: whether its response may never end, so that its connection isn't counted as in
            use.
        brief: whether the server responds to it without waiting for anything, while other calls may
            wait for it. It never waits for a place in the pool.
        attempt: its authorization, for `HttpClient.sign`; None without an authorizer.
        redirected: the URLs that have redirected it, oldest first.
    """

    key: int
    head: RequestHead
    body: bytes = b""
    idempotent: bool = True
    long_lived: bool = False
    brief: bool = False
    attempt: AuthAttemptLike | None = None
    redirected: tuple[Url, ...] = ()


class HttpClientOptions(Struct, frozen=True, kw_only=True):
    """The options of an `HttpClient`.

    Attributes:
        headers: sent with each request, in addition to the protocol's headers.
        reconnect_attempts: how often in a row a reconnect to a stream is tried before it fails.
        max_reconnect_delay: seconds between two attempts at most, even if the server asks for more.
        entropy: returns that many random bytes. They lengthen our own delays by up to a quarter, so
            that the clients of a restarted server don't reconnect all at once. None for no jitter.
        on_message: called with each server message; it must not raise.
        authorizer: authorizes each call; None for no authorization.
        allow_cleartext: whether `headers`, and calls' headers, may have credentials although the
            connection to another machine isn't encrypted. Only for a network in which everyone may
            see them, such as between containers of one machine.

    Raises:
        ValueError: a header cannot be sent, or is set by the protocol.
    """

    headers: Mapping[str, str] = {}
    reconnect_attempts: int = 5
    max_reconnect_delay: float = 30.0
    entropy: Callable[[int], bytes] | None = None
    on_message: Callable[[bytes], object] | None = None
    authorizer: AuthorizerLike | None = None
    allow_cleartext: bool = False

    def __post_init__(self) -> None:
        check_headers(self.headers)

    def __repr__(self) -> str:
        # Names only: a value may be a token.
        return (
            f"<HttpClientOptions, headers {', '.join(self.headers) or 'none'}, access by "
            f"{self.authorizer!r}>"
        )

    __rich_repr__ = None  # type: ignore[assignment]
