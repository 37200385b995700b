"""Everything that is served at one address: endpoints by path, and plain routes beside them.

1. Paths are compared literally, but for one slash at the end. An unknown path gets 404 and no more.
2. A plain route is a function that returns a whole response at once. Requests for it pass the same
   checks of `Host` and `Origin` as those for an endpoint: a web page must not read it either.
3. The metadata of protected resources is public, so any page may read it (RFC 9728).
4. The `sse_path` of an endpoint is a second path of it, for clients of HTTP+SSE (2024-11-05).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcp_core.http.wire._mcp_headers import PROTOCOL_VERSION
from mcp_core.http.wire._messages import Action, Headers, RequestHead
from mcp_core.http.wire._websocket_upgrade import is_upgrade
from mcp_core.protocol.messages._events import NEED_DATA, Event, NeedData

from ._checks import TOO_MUCH_UNREAD, check_plain_route, parse_head
from ._endpoint import Endpoint
from ._exchange import Exchange
from ._options import HttpOptions
from ._session import Conversation

if TYPE_CHECKING:
    from mcp_core.http.wire._recorder import HttpRecorderLike

    from ._auth import EndpointAuth

__all__ = ["PlainResponse", "Router", "serve_metadata"]


class PlainResponse(Struct, frozen=True):
    """The whole response of a plain route.

    Attributes:
        status: the HTTP status.
        body: the content.
        content_type: the value of `Content-Type`; not sent without a body.
        headers: further headers. Their names are in lower case.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: Headers = []


class Router:
    """Endpoints and plain routes by path, for a driver.

    For each request call `begin`, run the steps of its `auth_check` if there is one, then
    `receive_data` as long as the exchange is `reading`. After every call, call `pump`: it delivers
    the events, and calls `wake` on the token of each exchange with output, for which the driver
    then calls `actions_to_send`. If a client goes away before its exchange is `over`, call
    `disconnected`. Set one timer to `next_deadline`.

    When an exchange's output was sent, or never will be, look at its conversation: if that is
    `retired`, there is no event of its end, and its `service` must be closed.

    Without `pump`: take `next_event` until it returns `NEED_DATA`, then serve `ready`.

    A plain route is called with a request's head, without its body, and must not block. Its
    exceptions pass through `begin`. A request for it needs a `Host`, and an `Origin` if it has one,
    that one of the endpoints accepts; without endpoints, `HttpOptions.of()` decides.

    The `now` of its methods is a monotonic time in seconds, on one clock for all calls.

    Args:
        endpoints: the endpoints by path, such as "/mcp".
        routes: the plain routes by path, None for none.

    Attributes:
        unread_limit: bytes of unread responses above which a connection should take no further
            requests, the highest `HttpLimits.unread` of the endpoints.
        recorder: records exchanges with endpoints; None, as at first, for no recording.

    Raises:
        ValueError: two endpoints have the same path, or the `sse_path` of one is another path that
            is served; or two resource servers publish different metadata at the same path.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        routes: Mapping[str, Callable[[RequestHead], PlainResponse]] | None = None,
    ) -> None:
        self.endpoints = tuple(dict.fromkeys(endpoints.values()))  # one may be at several paths
        self._by_path: dict[bytes, Endpoint] = {}
        for path, endpoint in endpoints.items():
            if self._by_path.setdefault(_canonical(path.encode()), endpoint) is not endpoint:
                raise ValueError(
                    f"two servers have the path {path!r}: a trailing slash makes no difference"
                )
        self._routes = {_canonical(path.encode()): route for path, route in (routes or {}).items()}
        self._by_sse_path: dict[bytes, Endpoint] = {}
        for endpoint in self.endpoints:
            self._add_sse_path(endpoint)
        # Different endpoints of one address usually have the same options.
        self._options: list[HttpOptions] = []
        for endpoint in self.endpoints:
            if endpoint.options not in self._options:
                self._options.append(endpoint.options)
        if not self._options:
            self._options.append(HttpOptions.of())
        auths = [endpoint.auth for endpoint in self.endpoints if endpoint.auth is not None]
        self._metadata = {
            path: document
            for path, document in _published_metadata(auths).items()
            if path not in self._routes
        }
        # Unfinished bodies use the process's memory, so all endpoints count together.
        for endpoint in self.endpoints[1:]:
            endpoint.state.bodies = self.endpoints[0].state.bodies
        # Bytes of unread responses above which a connection takes no further requests.
        self.unread_limit = max(
            (endpoint.options.limits.unread for endpoint in self.endpoints), default=0
        )
        self._plain: list[Exchange] = []  # exchanges of plain routes with something to write
        self._pumping = False
        self.recorder: HttpRecorderLike | None = None

    def __repr__(self) -> str:
        plain = len(self._routes) + len(self._metadata)
        return f"<Router of {len(self.endpoints)} endpoints and {plain} plain routes>"

    def _add_sse_path(self, endpoint: Endpoint) -> None:
        sse_path = endpoint.options.sse_path
        if sse_path is None:
            return
        path = _canonical(sse_path.encode())
        if path in self._by_path or path in self._routes:
            raise ValueError(
                f"sse_path is {sse_path!r}, which is the path of a server or route: choose another"
            )
        if path in self._by_sse_path:
            raise ValueError(f"several servers have the sse_path {sse_path!r}: serve one with it")
        self._by_sse_path[path] = endpoint

    @property
    def idle(self) -> bool:
        """True if no response is under way."""
        return not self._plain and all(endpoint.idle for endpoint in self.endpoints)

    # -- One exchange ------------------------------------------------------------------------------

    def begin(
        self,
        head: RequestHead,
        now: float,
        *,
        path: bytes | None = None,
        token: object = None,
        principal: str = "",
        address: str = "",
        may_upgrade: bool = False,
        http_version: str = "",
    ) -> Exchange:
        """Return the exchange of a request whose head has arrived.

        Args:
            head: the request's head.
            now: the time, in seconds, of any monotonic clock.
            path: the path within this router, if that isn't the path in the request's target.
            token: belongs to the driver; see `Exchange`.
            principal: the authenticated client, if the endpoint has no authorization.
            address: the connection peer's IP address, "" if that is unknown.
            may_upgrade: the connection can become a WebSocket.
            http_version: the request's HTTP version, such as "1.1", for the `recorder`.
        """
        path = (head.target.partition(b"?")[0] if path is None else path).removesuffix(b"/")
        endpoint = self._by_path.get(path)
        switches = may_upgrade and head.method == b"GET" and is_upgrade(head)
        if endpoint is not None:
            exchange = endpoint.begin(
                head, now, token=token, principal=principal, address=address, switches=switches
            )
            if self.recorder is not None:
                exchange.record = self.recorder.begin(head, None, http_version)
            return exchange
        endpoint = self._by_sse_path.get(path)
        if endpoint is not None:
            exchange = endpoint.begin(
                _without_version(head),
                now,
                token=token,
                principal=principal,
                address=address,
                switches=switches,
            )
            if self.recorder is not None:
                exchange.record = self.recorder.begin(head, None, http_version)
            return exchange
        exchange = Exchange(None, token)
        exchange.close_after = switches
        answer = self._plain_response(path, head)
        headers = [*answer.headers]
        if answer.body:
            headers.append((b"content-type", answer.content_type.encode("ascii")))
        exchange.is_head = head.method == b"HEAD"
        exchange.respond(answer.status, answer.body, headers)
        self._plain.append(exchange)
        return exchange

    def _plain_response(self, path: bytes, head: RequestHead) -> PlainResponse:
        """Return the response to a request for a path without an endpoint."""
        document = self._metadata.get(path)
        if document is not None:
            return serve_metadata(document, head)
        route = self._routes.get(path)
        if route is None:
            return _NOT_FOUND
        parsed = parse_head(head.headers)
        rejections = [check_plain_route(head.method, parsed, each) for each in self._options]
        first = rejections[0]
        if first is None or None in rejections:
            return route(head)
        return PlainResponse(first.status, f"{first.message}\n".encode())

    def receive_data(
        self, exchange: Exchange, data: bytes, now: float, *, end: bool = False
    ) -> None:
        """Receive `data`, a piece of the body of `exchange`. `b""`, or one with `end`, is the last.

        Without an endpoint the body is ignored.
        """
        if exchange.record is not None:
            exchange.record.request_data(data, end=end)
        if exchange.endpoint is not None:
            exchange.endpoint.receive_data(exchange, data, now, end=end)

    def disconnected(self, exchange: Exchange, now: float) -> None:
        """Report that the client of `exchange` is gone or no longer reads.

        Harmless once all was taken.
        """
        if exchange.record is not None and exchange.socket is None:
            exchange.record.ended("client", "closed")
        if exchange.endpoint is not None:
            exchange.endpoint.disconnected(exchange, now)
        else:
            exchange.disconnected()

    def actions_to_send(self, exchange: Exchange) -> list[Action]:
        """Return what to write of `exchange` now, in order; empty if there is nothing at present.

        What it returns counts as sent.
        """
        if exchange.endpoint is None:
            return exchange.actions_to_send()
        actions = exchange.endpoint.actions_to_send(exchange)
        if exchange.record is not None and actions:
            exchange.record.response(actions)
            if exchange.socket is not None:
                exchange.socket.recorder = exchange.record.websocket()
        return actions

    def refuse_unread(self, exchange: Exchange) -> None:
        """Answer `exchange`, which has waited: its connection has too much of unread responses."""
        assert exchange.endpoint is not None
        exchange.endpoint.refuse_body(exchange, TOO_MUCH_UNREAD)

    def drop_responses(self, exchange: Exchange) -> None:
        """Replace long responses of `exchange` by errors: its connection has far too much unread.

        They are responses that `actions_to_send` hasn't returned. Their requests have run.
        """
        exchange.drop_responses()

    # -- What to do now ----------------------------------------------------------------------------

    def next_event(self) -> tuple[Conversation, Event] | NeedData:
        """Return the next event and the conversation that it belongs to."""
        for endpoint in self.endpoints:
            found = endpoint.next_event()
            if found is not None:
                return found
        return NEED_DATA

    def ready(self) -> list[Exchange]:
        """Return the exchanges that have something to write since the last call."""
        found, self._plain = self._plain, []
        for endpoint in self.endpoints:
            if endpoint.ready:
                found += endpoint.ready
                endpoint.ready.clear()
        return found

    def pump(self, on_event: Callable[[Conversation, Event], object]) -> None:
        """Pass each event to `on_event`, and wake the tokens of exchanges that have output.

        Neither may wait. Both may call `pump` again, which does nothing: the call that is under way
        continues with what they brought about.
        """
        if self._pumping:
            return
        self._pumping = True
        try:
            while True:
                for endpoint in self.endpoints:
                    while endpoint.events or endpoint.dirty:
                        found = endpoint.next_event()
                        if found is not None:
                            on_event(*found)
                exchanges, self._plain = self._plain, []
                for endpoint in self.endpoints:
                    exchanges += endpoint.ready
                    endpoint.ready.clear()
                if not exchanges:
                    return
                for exchange in exchanges:
                    exchange.token.wake()
        finally:
            self._pumping = False

    def next_deadline(self) -> float | None:
        """Return when to call `handle_timeout`, None for never."""
        first: float | None = None
        for endpoint in self.endpoints:
            due = endpoint.next_deadline()
            if due is not None and (first is None or due < first):
                first = due
        return first

    def handle_timeout(self, now: float) -> None:
        """Keep streams alive, and end what has expired at `now`. An early call does nothing."""
        for endpoint in self.endpoints:
            endpoint.handle_timeout(now)

    def shutdown(self) -> None:
        """Reject new requests; running ones go on until `close`."""
        for endpoint in self.endpoints:
            endpoint.shutdown()

    def close(self) -> None:
        """End all conversations and streams."""
        for endpoint in self.endpoints:
            endpoint.close()


def _without_version(head: RequestHead) -> RequestHead:
    """Return the head of a request for an `sse_path` so that a GET begins HTTP+SSE.

    A client of that transport may send a version anyway, at which a GET would mean another stream.
    """
    if head.method != b"GET":
        return head
    kept = [field for field in head.headers if field[0] != PROTOCOL_VERSION]
    return RequestHead(head.method, head.target, kept)


_READ: Final = b"GET, HEAD, OPTIONS"
_ANY_ORIGIN: Final[Headers] = [(b"access-control-allow-origin", b"*")]
_PREFLIGHT: Final[Headers] = [
    (b"access-control-allow-methods", _READ),
    (b"access-control-allow-headers", b"*"),
    (b"access-control-max-age", b"600"),
]


def _published_metadata(auths: Iterable[EndpointAuth]) -> dict[bytes, bytes]:
    """Return the metadata documents of endpoints with authorization, by path.

    Each is at its resource's own path. The path of the whole host, where clients look next, serves
    the metadata only if there is a single resource: with several, the one it names would get the
    tokens of all.

    Raises:
        ValueError: two resource servers publish different metadata at the same path.
    """
    own: dict[bytes, bytes] = {}
    shared: dict[bytes, set[bytes]] = {}
    for auth in auths:
        document = auth.resource_server.metadata()
        if not auth.resource_server.metadata_paths:
            continue
        path, *others = auth.resource_server.metadata_paths
        if own.setdefault(_canonical(path.encode()), document) != document:
            raise ValueError(
                f"two resource servers have their metadata at {path!r}: "
                "give each resource its own path"
            )
        for other in others:
            shared.setdefault(_canonical(other.encode()), set()).add(document)
    single = {path: documents.pop() for path, documents in shared.items() if len(documents) == 1}
    return single | own


def serve_metadata(document: bytes, head: RequestHead) -> PlainResponse:
    """Serve the metadata of a protected resource (RFC 9728), to pages of any origin too.

    An empty document stands for none.
    """
    if not document:
        return _NOT_FOUND
    if head.method in (b"GET", b"HEAD"):
        return PlainResponse(200, document, "application/json", _ANY_ORIGIN)
    if head.method == b"OPTIONS":
        return PlainResponse(204, headers=[*_ANY_ORIGIN, *_PREFLIGHT])
    return PlainResponse(405, headers=[(b"allow", _READ)])


_NOT_FOUND = PlainResponse(404, b"There is nothing at this path.\n")


def _canonical(path: bytes) -> bytes:
    return path.removesuffix(b"/")
