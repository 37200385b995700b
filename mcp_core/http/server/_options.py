"""The options and limits of an endpoint, beside those of every connection (`mcp_core.Limits`).

Everything that clients can make grow has a limit, and every default has its reason next to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypedDict, Unpack

from msgspec import Struct

from mcp_core._keywords import check_keywords
from mcp_core.http.wire._host_origin import HostOriginPolicy

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
    """

    hosts: Iterable[str]
    origins: Iterable[str]
    reply: Literal["auto", "json", "sse"]
    sessions: bool


class HttpLimits(Struct, frozen=True, kw_only=True):
    """Upper bounds of one endpoint. Sizes are in bytes, times in seconds.

    Those of a message and of a connection are in `mcp_core.Limits`.
    """

    # A session costs some KiB: these are some tens of MiB. As many one-shot requests may be in
    # progress. Before 2026-07-28 those of disconnected clients count too, since a disconnect does
    # not cancel them.
    sessions: int = 10_000
    # Sessions whose handshake is not complete. Any client can begin one, so they are few and expire
    # soon.
    uninitialized: int = 1_000
    initialize: float = 30.0
    # How long an unused session is kept. Half an hour is also a usual timeout of an unused login.
    idle: float = 30 * 60.0
    # Streams that one session may have open at once. Each is a connection of the client. Streams
    # that are only retained make room.
    streams: int = 256
    # What is retained of a stream so that its client can resume it: events, their age, and the
    # memory for all streams of a session and of all sessions. A client that is alive reconnects
    # within seconds.
    events: int = 256
    event_age: float = 5 * 60.0
    session_bytes: int = 4 * 1024 * 1024
    all_bytes: int = 256 * 1024 * 1024
    # Bytes that wait on one stream for a client that does not read. When there are more, and
    # another message comes, the stream is closed.
    queued: int = 1024 * 1024


class HttpOptions(Struct, frozen=True, kw_only=True):
    """How an endpoint is served.

    Args:
        host_origin_policy: which values of `Host` and `Origin` are accepted.
        reply: `"auto"` answers with JSON unless something is sent before the result, `"sse"` always
            with a stream, `"json"` never with one: then messages before a result are dropped, or go
            to the standalone stream of the session.
        sessions: True if revisions with a handshake get a session. Without one no state outlives a
            request.
        retry: seconds after which a client should reconnect when its stream breaks.
        comment_interval: seconds of silence after which a comment is sent on a stream, so that
            proxies do not close it.
        limits: upper bounds.
    """

    host_origin_policy: HostOriginPolicy
    reply: Literal["auto", "json", "sse"] = "auto"
    sessions: bool = True
    retry: float = 1.0
    comment_interval: float = 15.0
    limits: HttpLimits = HttpLimits()

    @staticmethod
    def of(
        bind: str | None = None,
        *,
        scheme: Literal["http", "https"] | None = None,
        **options: Unpack[ServeOptions],
    ) -> HttpOptions:
        """Make the options of a server.

        Args:
            bind: the address that it listens on, if that is known.
            scheme: the scheme of its URLs, if that is known.
            options: the choices of the user.

        Raises:
            TypeError: an option is unknown.
            ValueError: one of `hosts` or `origins` is malformed.
        """
        check_keywords(options, ServeOptions, "the server")
        policy = HostOriginPolicy(
            bind, options.get("hosts", ()), options.get("origins", ()), scheme=scheme
        )
        return HttpOptions(
            host_origin_policy=policy,
            reply=options.get("reply", "auto"),
            sessions=options.get("sessions", True),
        )
