"""The requests that a proxy in front of one server passes on, with or without its own headers.

The server cannot judge by itself who sends a request: it sees the `Host` that the proxy writes, and
the headers that the proxy adds, which may be credentials.

1. A request with a foreign `Host` is refused (DNS rebinding), and so is one of another site's page
   that has no `Origin` (`_fetch_metadata`). `Origin` passes, and the server judges it. Only the
   proxy's own `Origin` becomes the server's, as `Host` does.
2. **A proxy that adds headers lends out rights.** It refuses foreign origins itself, and lends the
   rights to a single place: the very path and query of the server's URL. They are compared byte by
   byte, so no spelling leads elsewhere. Beside it there are the target for messages that an open
   event stream of HTTP+SSE has announced, for POST, and the public metadata of the authorization,
   which is requested without the headers.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec import Struct

from mcp_core._text import escape_text
from mcp_core.urls._url import Url

from ._fetch_metadata import sent_by_foreign_page
from ._forwarded import end_to_end
from ._host_origin import HostOriginPolicy
from ._media_types import is_event_stream
from ._messages import Head, Headers, RequestHead, header
from ._sse import EventTooLong, SseDecoder

__all__ = [
    "EndpointWatch",
    "PassedRequest",
    "ProxyPolicy",
    "ProxyRefusal",
    "proxied_request_headers",
]

_FOREIGN_HOST: Final = (
    "The name in Host is not that of this proxy: use the URL that it has printed."
)
# The server would see the proxy's credentials, and take them for the page's.
_FOREIGN_ORIGIN: Final = "This proxy adds credentials, so it refuses requests of foreign pages."
_FOREIGN_PAGE: Final = (
    "A web page of another site has caused this request (Sec-Fetch-Site): send it from a program,"
    " or enter the URL yourself."
)
_OTHER_TARGET: Final = (
    "This proxy adds credentials, so it passes requests for its own URL only, path and query"
    " included: use the URL that it has printed. For another path of the server, connect to the"
    " server itself."
)
_WEBSOCKET: Final = "This proxy passes no WebSockets: connect to the server itself."

# RFC 8414, RFC 9728 and OpenID Connect Discovery: documents that a client needs before it has a
# token, at the root and for the URL's path.
_METADATA: Final = (
    b"/.well-known/oauth-protected-resource",
    b"/.well-known/oauth-authorization-server",
    b"/.well-known/openid-configuration",
)
_READS: Final = (b"GET", b"HEAD", b"OPTIONS")
# Some frameworks take the path of a request from these, and a credential would follow it.
_OTHER_PATHS: Final = frozenset((b"x-original-url", b"x-rewrite-url"))
_MAX_EVENT: Final = 16 * 1024  # bytes of the event that announces a target


class PassedRequest(Struct, frozen=True):
    """A request that the proxy passes on.

    Attributes:
        is_of_own_page: it comes from a server page, which was loaded through the proxy.
        gets_headers: the proxy adds its headers.
    """

    is_of_own_page: bool
    gets_headers: bool


class ProxyRefusal(Struct, frozen=True):
    """The response to a request that the proxy refuses: its `status`, and the `reason` as body.

    `note` says the same to who reads a trace, with the value in question.
    """

    status: int
    reason: str
    note: str = ""


class ProxyPolicy:
    """Decides what one proxy passes on.

    Args:
        own: decides which names and pages are the proxy's.
        url: the server's URL.
        adds_headers: whether the proxy adds headers to what it passes on.
    """

    def __init__(self, own: HostOriginPolicy, url: Url, *, adds_headers: bool) -> None:
        self._own = own
        self._url = url
        self._adds_headers = adds_headers
        path = url.target.partition(b"?")[0]
        places = (*_METADATA, *(place + path for place in _METADATA), path + _METADATA[-1])
        self._metadata = frozenset(places)
        self._announced: Counter[bytes] = Counter()

    def __repr__(self) -> str:
        return f"<ProxyPolicy for {self._url}, {self._announced.total()} targets announced>"

    def check(self, head: RequestHead) -> PassedRequest | ProxyRefusal:
        """Decide about a request, whose `head` has a single reading."""
        host = _value(head, b"host")
        if host is None or not self._own.allows_host(host):
            note = f"a request with a foreign Host was refused: {_shown(host or b'')}"
            return ProxyRefusal(421, _FOREIGN_HOST, note)
        if any(b"websocket" in value.lower() for name, value in head.headers if name == b"upgrade"):
            return ProxyRefusal(501, _WEBSOCKET)
        origin = _value(head, b"origin")
        is_of_own_page = origin is not None and self._own.allows_origin(origin, host)
        if origin is not None and not is_of_own_page and self._adds_headers:
            note = f"a request with a foreign Origin was refused: {_shown(origin)}"
            return ProxyRefusal(403, _FOREIGN_ORIGIN, note)
        if sent_by_foreign_page(head.headers):
            return ProxyRefusal(
                403, _FOREIGN_PAGE, "a request of another site's page was refused, without Origin"
            )
        if not self._adds_headers:
            return PassedRequest(is_of_own_page, gets_headers=False)
        if head.target == self._url.target or (
            head.method == b"POST" and head.target in self._announced
        ):
            return PassedRequest(is_of_own_page, gets_headers=True)
        if head.method in _READS and head.target in self._metadata:
            return PassedRequest(is_of_own_page, gets_headers=False)
        path = _shown(head.target.partition(b"?")[0])
        return ProxyRefusal(404, _OTHER_TARGET, f"a request for another target was refused: {path}")

    def passed_headers(self, headers: Headers) -> Headers:
        """Return a request's `headers` without fields that name another path on the server."""
        if not self._adds_headers:
            return headers
        return [field for field in headers if field[0].lower() not in _OTHER_PATHS]

    def watch(self, head: RequestHead) -> EndpointWatch | None:
        """Return what learns the target for messages from the response to `head`.

        None if no response to this request can announce one.
        """
        if self._adds_headers and head.method == b"GET" and head.target == self._url.target:
            return EndpointWatch(self._url, self._announced)
        return None


class EndpointWatch:
    """Learns the target for messages that an event stream of HTTP+SSE announces (2024-11-05).

    Pass on the response with `receive_head` and `receive_data`, each before the client gets it. At
    its end, call `close`: the target no longer counts.

    Args:
        url: the server's URL, which the target is relative to.
        announced: how many open streams have announced each target.
    """

    def __init__(self, url: Url, announced: Counter[bytes]) -> None:
        self._url = url
        self._announced = announced
        self._decoder: SseDecoder | None = None
        self._target: bytes | None = None

    def __repr__(self) -> str:
        return f"<EndpointWatch of {self._url}>"

    def receive_head(self, head: Head) -> None:
        """Take the response's `head`."""
        is_plain = header(head, b"content-encoding") is None
        if head.status == 200 and is_plain and is_event_stream(header(head, b"content-type")):
            self._decoder = SseDecoder(limit=_MAX_EVENT)

    def receive_data(self, data: bytes) -> None:
        """Take `data`, a piece of the body. Only the stream's first event counts."""
        if self._decoder is None:
            return
        self._decoder.feed(data)
        try:
            event = self._decoder.next_event()
        except EventTooLong:
            self._decoder = None
            return
        if event is None:
            return
        self._decoder = None
        if event.type != "endpoint":
            return
        try:
            url = self._url.join(event.data.decode())
        except ValueError:
            return
        if url.origin == self._url.origin:
            self._target = url.target
            self._announced[url.target] += 1

    def close(self) -> None:
        """Forget the target. Further calls do nothing."""
        target, self._target = self._target, None
        self._decoder = None
        if target is not None:
            self._announced[target] -= 1
            if not self._announced[target]:
                del self._announced[target]


def proxied_request_headers(
    headers: Headers, url: Url, request: PassedRequest, added: Headers, *, is_chunked: bool
) -> Headers:
    """Return the headers of a request as the proxy sends them to the server.

    Args:
        headers: the client's headers, as it has written them.
        url: the server's URL. A server page gets the server's own origin.
        request: what `ProxyPolicy.check` has decided.
        added: the proxy's headers, in place of the client's of the same names.
        is_chunked: whether the body is sent in chunks.
    """
    own = {b"host": url.authority}
    if request.is_of_own_page:
        own[b"origin"] = b"%b://%b" % (url.scheme.encode(), url.authority)
    passed = [(name, own.get(name.lower(), value)) for name, value in end_to_end(headers)]
    if request.gets_headers:
        replaced = {name.lower() for name, _ in added}
        passed = [field for field in passed if field[0].lower() not in replaced]
        passed += added
    if is_chunked:
        passed.append((b"Transfer-Encoding", b"chunked"))
    return passed


def _value(head: RequestHead, name: bytes) -> bytes | None:
    return next((value for each, value in head.headers if each == name), None)


def _shown(text: bytes) -> str:
    return escape_text(text.decode("latin-1"))
