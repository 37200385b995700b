"""One response under way, from the client's end: what its body is, and what is in it.

Rules of this file:

1. A body is a stream of events, or it is kept until it ends. It is kept within a limit, which for a body that only explains an
   error is a small one; beyond that it explains nothing.
2. We ask for bodies as they are. One that is encoded all the same is refused instead of being unpacked, for a few bytes of it may
   be gigabytes.
3. What a status means for a call that gets no other answer is one table, with what to do about it.

It does not know what was asked, and looks into no message but for the words of an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from mcp_core._answers import error_of
from mcp_core._errors import AuthRequired, Fault, McpTrioError, PeerError, RemoteProtocolError
from mcp_core._jsonrpc import BadMessage, decode

from ._call import header
from ._media import JSON, is_event_stream, is_json, media_type
from ._sse import EventTooLong, SseDecoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._messages import Head
    from ._sse import SseEvent

__all__ = ["Response", "error_in", "refusal"]

_EXPLAINS: Final = 64 * 1024  # bytes of a body that comes with an error
_SHOWN: Final = 200  # characters of it in the text of ours
_UNSHOWABLE: Final = re.compile(r"[^\x20-\x7e\xa0-\U0010ffff]+")
_SCOPES: Final = re.compile(r'(?:^|[ ,])scope="([^"]*)"')


class Response:
    """A response that has begun with `head`. `most` is the limit of its body, or of each of its events; `last_id` the id after
    which a stream is resumed.

    `events` is what reads them, None if the body is something else; `good` whether the status says so.

    Raises:
        RemoteProtocolError: the body is encoded.
    """

    __slots__ = ("_body", "_most", "events", "good", "head", "status")

    def __init__(self, head: Head, most: int, last_id: str = "") -> None:
        self.head = head
        self.status = head.status
        self.good = 200 <= head.status < 300
        self.events: SseDecoder | None = None
        self._body: bytearray | None = bytearray()
        self._most = most
        coding = (header(head, b"content-encoding") or b"identity").strip().lower()
        if coding not in (b"identity", b""):
            if self.good:
                raise RemoteProtocolError(
                    f"the body is encoded ({coding.decode('latin-1')[:40]}), which was not asked for; is it a proxy that does that?"
                )
            self._body = None
        elif self.good and is_event_stream(header(head, b"content-type")):
            self.events = SseDecoder(last_id, most=most)

    def __repr__(self) -> str:
        kind = "events" if self.events is not None else f"{len(self._body or b'')} bytes"
        return f"<Response {self.status}, {kind}>"

    @property
    def is_json(self) -> bool:
        return is_json(header(self.head, b"content-type"))

    @property
    def body(self) -> bytes:
        """What was kept; `b""` if it was too much."""
        return bytes(self._body or b"")

    def feed(self, data: bytes) -> Iterator[SseEvent]:
        """Take in a piece of the body; gives the events that are complete with it.

        Raises:
            RemoteProtocolError: it is over the limit. Events before that have been given.
        """
        decoder = self.events
        if decoder is None:
            self._keep(data)
            return
        decoder.feed(data)
        try:
            while (event := decoder.next_event()) is not None:
                yield event
        except EventTooLong as exc:
            raise RemoteProtocolError(str(exc)) from None

    def _keep(self, data: bytes) -> None:
        body = self._body
        if body is None:
            return
        if len(body) + len(data) <= (self._most if self.good else _EXPLAINS):
            body += data
        elif self.good:
            raise RemoteProtocolError(f"the body of the answer is longer than {self._most} bytes")
        else:
            self._body = None


# -- What a status means ---------------------------------------------------------------------------------------------------

_MEANS: Final = {
    400: "Bad Request",
    401: "Unauthorized: the server wants an access token, in the header authorization: connect with auth=True, or log in with"
    " `mcp-trio login`",
    403: "Forbidden: the server does not let us in, or not under this name",
    404: "Not Found: is this the URL of an MCP server?",
    405: "Method Not Allowed: is this the URL of an MCP server?",
    406: "Not Acceptable: the server can answer neither by JSON nor by events. Is this the URL of an MCP server?",
    408: "Request Timeout",
    413: "Content Too Large: the server takes no message of this size",
    415: "Unsupported Media Type: the server does not take JSON",
    421: "Misdirected Request: the server does not answer under this name",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error: its log may say why",
    501: "Not Implemented",
    502: "Bad Gateway: the server behind it cannot be reached",
    503: "Service Unavailable",
    504: "Gateway Timeout: the server behind it does not answer",
}
# It may go well another time.
_BUSY: Final = frozenset({429, 502, 503, 504})
_DENIED: Final = (401, 403)


def refusal(prefix: str, response: Response) -> McpTrioError:
    """The error of a request for which the server has this response and no answer; `prefix` is what its text begins with. Of a
    `RemoteProtocolError` the `fault` is `BUSY` if it is worth a later try, and `data` has the `status`, and `retryAfter` as it was
    said."""
    head, status = response.head, response.status
    text = f"{prefix}HTTP status {status}"
    if status in _MEANS:
        text += f" {_MEANS[status]}"
    if 300 <= status < 400:
        location = header(head, b"location")
        where = "" if location is None else f": connect to {_shown(location.decode('latin-1'))} instead"
        return RemoteProtocolError(f"{text}, redirects are not followed{where}", data={"status": status})
    challenge = header(head, b"www-authenticate")
    if status == 401 or (status in _DENIED and challenge is not None):
        said = "" if challenge is None else challenge.decode("latin-1")
        found = _SCOPES.search(said)
        return AuthRequired(text, found[1].split() if found else (), challenge=said)
    data: dict[str, int | str] = {"status": status}
    after = header(head, b"retry-after")
    if after is not None and status in _BUSY:
        data["retryAfter"] = shown = _shown(after.decode("latin-1"))
        text += f"; try again after {shown}{' s' if shown.isdigit() else ''}"
    elif status in _BUSY:
        text += "; try again later"
    said = _explanation(response)
    if said:
        text += f" ({said})"
    return RemoteProtocolError(text, Fault.BUSY if status in _BUSY else Fault.INVALID_REQUEST, data)


def _explanation(response: Response) -> str:
    """What the server says in plain words. A page is none."""
    type = media_type(header(response.head, b"content-type"))
    if type not in (b"text/plain", JSON):
        return ""
    said = error_in(response.body) if type == JSON else None
    return _shown(response.body.decode("utf-8", "replace") if said is None else said.message)


def error_in(body: bytes) -> PeerError | None:
    """The JSON-RPC error that a body is, if it is one."""
    try:
        raw = decode(body).error
    except BadMessage:
        return None
    error = None if raw is UNSET else error_of(raw)
    return error if isinstance(error, PeerError) else None


def _shown(text: str) -> str:
    text = _UNSHOWABLE.sub(" ", text).strip()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
