"""How one endpoint is served over HTTP: what it answers with, whom it lets in, and its limits beside those of every conversation.

Rule of this file: everything that clients can make grow has a limit, and every default has its reason next to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypedDict, Unpack

from msgspec import Struct

from ._authority import Gate

__all__ = ["HttpLimits", "HttpOptions", "ServedOptions"]


class ServedOptions(TypedDict, total=False):
    """How a server is served over HTTP, whatever speaks that.

    Keys:
        hosts: names under which it is reached, beside `localhost` and addresses: `"mcp.example.com"`, with a port if only that one is
            meant. Requests for other names are refused (421), for they may be a web page's that plays tricks with names.
        origins: web pages that may ask from elsewhere, as browsers write it: `"https://app.example.com"`.
        reply: `"auto"`, which is the default, answers with JSON unless something is to be said before the answer, `"sse"` always with
            a stream, `"json"` never with one.
        sessions: whether the revisions that have a handshake get sessions, as they do by default. Without them nothing lasts longer
            than a request.
    """

    hosts: Iterable[str]
    origins: Iterable[str]
    reply: Literal["auto", "json", "sse"]
    sessions: bool


class HttpLimits(Struct, frozen=True, kw_only=True):
    """Upper bounds of one endpoint. Sizes are in bytes, times in seconds. What a message and a conversation may have is in
    `mcp_core.Limits`."""

    # A session costs some KiB: these are some tens of MiB, and a table that is still quick to look through. As many requests that
    # belong to no session may be worked on; without sessions those count whose clients are gone, for nobody withdraws them.
    sessions: int = 10_000
    # Sessions whose handshake is not complete. Anybody can begin one: so they are few, and soon over.
    uninitialized: int = 1_000
    initialize: float = 30.0
    # How long a session is kept that nobody uses. Half an hour is what people expect of a login that nobody uses, too.
    idle: float = 30 * 60.0
    # Streams that one session may have open at once. Each is a connection of the client's. What is kept of others makes room.
    streams: int = 256
    # What is kept of a stream for a client that lost it: so many events, for so long, and so much memory for all streams of a
    # session and of all sessions. A client that lives comes back within seconds.
    events: int = 256
    event_age: float = 5 * 60.0
    session_bytes: int = 4 * 1024 * 1024
    all_bytes: int = 256 * 1024 * 1024
    # Bytes that wait on one stream for a client who does not read. When there is more, and more comes, the stream is closed.
    queued: int = 1024 * 1024


class HttpOptions(Struct, frozen=True, kw_only=True):
    """How an endpoint is served.

    `gate` says whose `Host` and `Origin` are let in. `reply`: `"auto"` answers with JSON unless something is to be said before the
    answer, `"sse"` always with a stream, `"json"` never with one: then what is said before an answer is lost, or told on the
    session's own stream. `sessions`: whether revisions with a handshake get a session; without one nothing lasts from one request
    to the next. `retry`: seconds after which a client whose stream broke should come back. `comment`: seconds of silence after
    which a comment is sent on a stream, so that nobody in between takes it for dead.
    """

    gate: Gate
    reply: Literal["auto", "json", "sse"] = "auto"
    sessions: bool = True
    retry: float = 1.0
    comment: float = 15.0
    limits: HttpLimits = HttpLimits()

    @staticmethod
    def of(
        listens: str | None = None,
        *,
        scheme: Literal["http", "https"] | None = None,
        **told: Unpack[ServedOptions],
    ) -> HttpOptions:
        """What was `told` of a server that `listens` at an address, if that is known; and by which `scheme`.

        Raises:
            ValueError: one of `hosts` or `origins` is not written as it has to be.
        """
        gate = Gate(listens, told.get("hosts", ()), told.get("origins", ()), scheme=scheme)
        return HttpOptions(gate=gate, reply=told.get("reply", "auto"), sessions=told.get("sessions", True))
