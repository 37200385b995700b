"""An endpoint's options and limits, beside the limits of every connection (`mcp_core.Limits`).

Everything that clients can make grow has a limit, and every default has its reason next to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypedDict, Unpack

from msgspec import Struct

from mcp_core._keywords import check_keywords
from mcp_core.http.wire._forwarded import TrustedProxies
from mcp_core.http.wire._host_origin import HostOriginPolicy
from mcp_core.http.wire._websocket_upgrade import SUBPROTOCOLS, checked_subprotocols

__all__ = ["HttpLimits", "HttpOptions", "ServeOptions"]


class ServeOptions(TypedDict, total=False):
    """How a server is served over HTTP, under any of the HTTP servers.

    Keys:
        hosts: names of this server, beside `localhost` and addresses: `"mcp.example.com"`, with a
            port if only that one is meant. Requests for other names get 421, because a web page may
            have sent them by DNS rebinding.
        origins: web pages of other origins that may send requests, as browsers write them:
            `"https://app.example.com"`.
        reply: `"auto"`, the default, answers with JSON unless something is sent before the result;
            `"sse"` always with a stream, `"json"` never with one.
        sessions: True, the default, gives sessions to the revisions that have a handshake. Without
            them no state outlives a request.
        limits: upper bounds of what clients can use.
        trusted_proxies: addresses or networks of reverse proxies, such as `"127.0.0.1"`, or
            `"unix"` for one that connects over a Unix socket. A request's client is then
            the one that they name in `X-Forwarded-For`. By default it is the connection's peer, so
            all clients of a proxy share the limits of one client.
        sse_path: a second path, such as `"/sse"`, at which GET begins HTTP+SSE (2024-11-05), for
            clients that are set up for that transport. They need sessions. The server's own path
            serves them too.
        subprotocols: names of WebSocket subprotocols, of which a client has to offer one;
            `["mcp"]` by default. With none, any client is accepted, and none is selected.
        listen: False to refuse `subscriptions/listen` (2026-07-28), whose response is open as long
            as its client listens, and to declare no changes in that revision. For platforms that
            count the seconds of open streams. True by default.
        get_stream: False to offer no GET stream in a session (until 2025-11-25), which clients keep
            open for messages that belong to no request: changes, and questions of a hook. They
            aren't declared then, and HTTP+SSE isn't served. A stream that broke can be resumed all
            the same. True by default.
    """

    hosts: Iterable[str]
    origins: Iterable[str]
    reply: Literal["auto", "json", "sse"]
    sessions: bool
    limits: HttpLimits
    trusted_proxies: Iterable[str]
    sse_path: str | None
    subprotocols: Iterable[str]
    listen: bool
    get_stream: bool


class HttpLimits(Struct, frozen=True, kw_only=True):
    """Upper bounds of one endpoint. Sizes are in bytes, times in seconds.

    The bounds of a message and a connection are in `mcp_core.Limits`.

    Raises:
        ValueError: `client_share` isn't above 0 and at most 1.
    """

    # The part of `sessions`, `uninitialized` and `bodies` that one client may use: one principal,
    # or without authorization one IP address (IPv6: one /64 network). A quarter leaves room for
    # others, and is enough for all clients of a proxy that isn't in `trusted_proxies`, which count
    # as one. 1 for no quotas.
    client_share: float = 0.25
    # A session costs some KiB: these are some tens of MiB. As many one-shot requests may be in
    # progress. Before 2026-07-28 disconnected clients' requests count too, since a disconnect does
    # not cancel them.
    sessions: int = 10_000
    # Sessions whose handshake isn't complete. Any client can begin one, so they are few.
    uninitialized: int = 1_000
    # How long a handshake may take. A client completes it at once.
    initialize: float = 30.0
    # How long an unused session is kept. Half an hour is also a usual timeout of an unused login.
    idle: float = 30 * 60.0
    # Streams that one session may have open at once. Each is a connection of the client. Streams
    # that are only retained make room.
    streams: int = 256
    # Events that are retained of a stream so that its client can resume it. A client that is alive
    # reconnects within seconds.
    events: int = 256
    # How long they are retained.
    event_age: float = 5 * 60.0
    # Their memory, for all streams of a session.
    session_bytes: int = 4 * 1024 * 1024
    # Their memory, for all sessions.
    all_bytes: int = 256 * 1024 * 1024
    # Bytes of request bodies that have begun and aren't complete, of all clients. A server takes
    # up to twice as much for them, 128 MiB: there are holes in the heap. Beneath `asgi`, the HTTP
    # server has buffers of its own for each connection. A body that arrives in one piece doesn't
    # count.
    bodies: int = 64 * 1024 * 1024
    # How long one body may take. Node.js allows as much for a whole request: a body of 4 MiB needs
    # 14 KiB a second.
    body_time: float = 5 * 60.0
    # Bytes that wait on one stream for a client that doesn't read. When there are more, and
    # another message comes, the stream is closed.
    queued: int = 1024 * 1024
    # Bytes of responses that the client of one HTTP/2 connection hasn't read, but for the longest
    # response. Above it the connection's further requests wait, and after 30 s get 503. Responses
    # of handlers that run by then can still add to it: above four times as much, a client that
    # reads less than 128 KiB a second gets errors in their place. 100 concurrent requests reach it
    # with responses of 160 KiB each, none of which is read; most are a hundredth of that.
    unread: int = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        if not 0 < self.client_share <= 1:
            raise ValueError(f"client_share is above 0 and at most 1, not {self.client_share!r}")

    def quota(self, total: int) -> int:
        """Return how much of the limit `total` one client may use."""
        return min(total, max(1, int(total * self.client_share)))


class HttpOptions(Struct, frozen=True, kw_only=True):
    """How an endpoint is served.

    Args:
        host_origin_policy: which values of `Host` and `Origin` are accepted.
        reply: `"auto"` answers with JSON unless something is sent before the result, `"sse"` always
            with a stream, `"json"` never with one: then progress and logs before a result are
            dropped, and requests to the client go to the standalone stream of its session. A client
            whose `Accept` has only one of the two types gets that, and with `"json"` one that lacks
            JSON gets 406.
        sessions: True if revisions with a handshake get a session. Without one no state outlives a
            request.
        retry: seconds after which a client should reconnect when its stream breaks.
        comment_interval: seconds of silence after which a comment is sent on a stream, so that
            proxies don't close it.
        limits: upper bounds.
        trusted_proxies: the proxies that name their requests' clients; None for none.
        sse_path: a second path for the endpoint, at which each GET without a session begins
            HTTP+SSE (2024-11-05); None for none.
        subprotocols: the WebSocket subprotocols of which a client has to offer one; empty for none.
        listen: True if `subscriptions/listen` is accepted, except over a WebSocket, which always
            has it.
        get_stream: True if a session has a standalone stream, which a GET opens.
    """

    host_origin_policy: HostOriginPolicy
    reply: Literal["auto", "json", "sse"] = "auto"
    sessions: bool = True
    retry: float = 1.0
    comment_interval: float = 15.0
    limits: HttpLimits = HttpLimits()
    trusted_proxies: TrustedProxies | None = None
    sse_path: str | None = None
    subprotocols: tuple[str, ...] = SUBPROTOCOLS
    listen: bool = True
    get_stream: bool = True

    @staticmethod
    def of(
        bind: str | None = None,
        *,
        scheme: Literal["http", "https"] | None = None,
        **options: Unpack[ServeOptions],
    ) -> HttpOptions:
        """Return a server's options.

        Args:
            bind: the address that it listens on, if that is known.
            scheme: its URLs' scheme, if that is known.
            options: the user's choices, see `ServeOptions`.

        Raises:
            TypeError: an option is unknown.
            ValueError: one of `hosts`, `origins`, `trusted_proxies` or `subprotocols` is malformed;
                there are no sessions, or no GET streams, at `sse_path`; or a session has no stream
                for questions to its client.
        """
        check_keywords(options, ServeOptions, "the server")
        proxies = options.get("trusted_proxies", ())
        sse_path = options.get("sse_path")
        if sse_path is not None:
            if not sse_path.startswith("/"):
                raise ValueError(f"sse_path has to begin with a slash: write {'/' + sse_path!r}")
            if not options.get("sessions", True):
                raise ValueError("sse_path needs sessions: HTTP+SSE has no requests without one")
            if not options.get("get_stream", True):
                raise ValueError("sse_path needs get_stream: a GET begins HTTP+SSE")
        if (
            not options.get("get_stream", True)
            and options.get("reply", "auto") == "json"
            and options.get("sessions", True)
        ):
            raise ValueError(
                'with reply="json" and get_stream=False there is no stream for questions to a'
                ' client: write sessions=False, or reply="auto"'
            )
        policy = HostOriginPolicy(
            bind, options.get("hosts", ()), options.get("origins", ()), scheme=scheme
        )
        return HttpOptions(
            host_origin_policy=policy,
            reply=options.get("reply", "auto"),
            sessions=options.get("sessions", True),
            limits=options.get("limits", HttpLimits()),
            trusted_proxies=TrustedProxies(proxies) if proxies else None,
            sse_path=sse_path,
            subprotocols=checked_subprotocols(options.get("subprotocols", SUBPROTOCOLS)),
            listen=options.get("listen", True),
            get_stream=options.get("get_stream", True),
        )
