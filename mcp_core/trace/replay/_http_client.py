"""The client of a trace over HTTP: messages become requests, and responses become messages.

1. A message is one POST, with the headers that its revision requires. The trace's headers aren't
   used, because they belong to another session.
2. If an event stream ends before the response, it is resumed from its last event id.
3. A response that isn't an MCP message fails its request, with the HTTP status as the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from mcp_core._limits import CLIENT_LIMITS
from mcp_core._version import __version__
from mcp_core.http.wire._mcp_headers import (
    LAST_EVENT_ID,
    PROTOCOL_VERSION,
    SESSION_ID,
    message_headers,
)
from mcp_core.http.wire._media_types import is_event_stream
from mcp_core.http.wire._messages import Action, Body, Head, Headers, RequestHead, header
from mcp_core.http.wire._sse import EventTooLong, SseDecoder, last_event_id
from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.protocol.schema._param_headers import param_headers
from mcp_core.trace._ids import id_key
from mcp_core.trace._members import META, lookup
from mcp_core.urls._url import Url

from ._recorded import decode_message, encode_message

__all__ = ["ReplayHttpClient", "ReplayRequest"]

_MAX_BODY: Final = CLIENT_LIMITS.message
_MAX_RESUMED: Final = 10  # how often one stream is resumed
_MAX_TOOLS: Final = 10_000
# An HTTP+SSE server rejects `initialize` with one of these statuses (2025-11-25, basic/transports,
# Backwards Compatibility).
_NO_STREAMABLE_HTTP: Final = frozenset({400, 404, 405})
_OTHER_TRANSPORT: Final = (
    ". Replay speaks stdio and Streamable HTTP: if this is a server of HTTP+SSE, or the URL of a"
    " WebSocket, give its URL for Streamable HTTP, or its command after --"
)
_MAX_NAME: Final = 80  # characters
_RETRY: Final = 1.0  # seconds before a stream is resumed, unless the server sends `retry`


class ReplayHttpClient:
    """The HTTP side of a replayed client, for one session.

    Send the requests of `post`, one after another, and pass the actions of each response to
    `ReplayRequest.receive`. When the server has accepted the handshake, send `open_stream`.

    Args:
        url: the endpoint.
        headers: further headers for each request.

    Attributes:
        session_id: the session's id, or None.
    """

    def __init__(self, url: Url, headers: Mapping[str, str] | None = None) -> None:
        self._url = url
        self._headers: Headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in (headers or {}).items()
        ]
        self.session_id: bytes | None = None
        self._version = b""
        self._param_headers: dict[str, dict[tuple[str, ...], str]] = {}

    def __repr__(self) -> str:
        return f"<ReplayHttpClient {'in' if self.session_id else 'without'} a session>"

    def post(self, data: bytes) -> ReplayRequest:
        """Return the request that carries `data`, a message or a batch."""
        decoded = decode_message(data)
        members = [each for each in _members(decoded) if isinstance(each, dict)]
        headers = [
            *self._common_headers(),
            (b"accept", b"application/json, text/event-stream"),
            (b"content-type", b"application/json"),
        ]
        if len(members) == 1:
            headers += self._mirrored(members[0])
        elif self._version:
            headers.append((PROTOCOL_VERSION, self._version))
        head = RequestHead(b"POST", self._url.target, headers)
        return ReplayRequest(self, head, data, members)

    def open_stream(self) -> ReplayRequest | None:
        """Return the request for the session's stream, or None if there is no session."""
        return None if self.session_id is None else self._get(b"")

    def end_session(self) -> ReplayRequest | None:
        """Return the request that ends the session, or None without a session."""
        if self.session_id is None:
            return None
        head = RequestHead(b"DELETE", self._url.target, self._session_headers())
        return ReplayRequest(self, head, b"", [])

    def _get(self, last_id: bytes) -> ReplayRequest:
        headers = [*self._session_headers(), (b"accept", b"text/event-stream")]
        if last_id:
            headers.append((LAST_EVENT_ID, last_id))
        return ReplayRequest(self, RequestHead(b"GET", self._url.target, headers), b"", [])

    def _common_headers(self) -> Headers:
        found: Headers = [
            (b"host", self._url.authority),
            (b"user-agent", f"mcp-trio/{__version__}".encode()),
            (b"accept-encoding", b"identity"),
            *self._headers,
        ]
        if self.session_id is not None:
            found.append((SESSION_ID, self.session_id))
        return found

    def _session_headers(self) -> Headers:
        return [*self._common_headers(), (PROTOCOL_VERSION, self._version)]

    def _mirrored(self, members: dict[str, Any]) -> Headers:
        """Return the headers that repeat a message's members."""
        params = members.get("params")
        version = lookup(params, "_meta", META + "protocolVersion")
        if not isinstance(version, str):
            return [(PROTOCOL_VERSION, self._version)] if self._version else []
        tool = lookup(params, "name") if members.get("method") == "tools/call" else None
        mirrored = self._param_headers.get(tool) if isinstance(tool, str) else None
        return [
            (PROTOCOL_VERSION, version.encode("ascii", "replace")),
            *message_headers(members, mirrored),
        ]

    # -- Used by requests --------------------------------------------------------------------------

    def note_head(self, head: Head) -> None:
        """Take the session id from `head`, a response's head."""
        session_id = header(head, SESSION_ID)
        if session_id is not None:
            self.session_id = bytes(session_id)

    def note_message(self, members: dict[str, Any]) -> None:
        """Take the negotiated version, and the headers that tools require, from `members`."""
        negotiated = lookup(members, "result", "protocolVersion")
        if isinstance(negotiated, str) and DIALECTS.get(negotiated) is not None:
            self._version = negotiated.encode()
        tools = lookup(members, "result", "tools")
        for tool in tools if isinstance(tools, list) else ():
            name, schema = lookup(tool, "name"), lookup(tool, "inputSchema")
            if not (isinstance(name, str) and isinstance(schema, dict)):
                continue
            # A tool with an invalid annotation cannot be called in this revision.
            with suppress(ValueError):
                if len(self._param_headers) < _MAX_TOOLS:
                    self._param_headers[name] = param_headers(schema)

    def resume(self, last_id: str) -> ReplayRequest:
        """Return the request that resumes an event stream after the event `last_id`."""
        return self._get(last_event_id(last_id))


class ReplayRequest:
    """One HTTP request and its response. `client` made it, and `members` are its messages.

    Attributes:
        name: its messages' methods, for error texts.
        head: the head to send.
        body: the body to send.
        failure: why the response isn't an MCP message, or "".
        retry: seconds to wait before sending the request that `resumed` returns.
        is_notice: the response is only a status. The next message waits for it.
    """

    def __init__(
        self, client: ReplayHttpClient, head: RequestHead, body: bytes, members: list[Any]
    ) -> None:
        self._client = client
        self.name = ", ".join(str(each.get("method", "a response")) for each in members)[:_MAX_NAME]
        self.head = head
        self.body = body
        self.failure = ""
        self.retry = _RETRY
        self._ids = {
            key
            for each in members
            if "method" in each and (key := id_key(each.get("id"))) is not None
        }
        self._opens = any(each.get("method") == "initialize" for each in members)
        self.is_notice = head.method == b"POST" and not self._ids
        self._events: SseDecoder | None = None
        self._data = bytearray()
        self._resumed = 0

    def __repr__(self) -> str:
        return f"<ReplayRequest {self.head.method.decode()} {self.name}>"

    @property
    def unanswered(self) -> list[int | str]:
        """The ids of requests without a response."""
        return list(self._ids)

    def receive(self, actions: Iterable[Action]) -> list[bytes]:
        """Return the messages in `actions`, which are a part of the response."""
        found: list[bytes] = []
        for action in actions:
            if type(action) is Head:
                self._begin(action)
            elif type(action) is Body:
                found += self._receive_data(bytes(action.data))
            elif self._events is None and self._data.strip():
                found += self._read_body()
        return found

    def resumed(self) -> ReplayRequest | None:
        """Return the request that resumes the event stream, or None if none can or need be sent.

        Call it when the response has ended.
        """
        events = self._events
        is_stream = self.head.method == b"GET"
        if events is None or not (self._ids or is_stream) or self._resumed >= _MAX_RESUMED:
            return None
        if not events.last_id:
            return None
        request = self._client.resume(events.last_id)
        request._ids = self._ids
        request._resumed = self._resumed + 1
        request.retry = self.retry
        return request

    def _begin(self, head: Head) -> None:
        if 200 <= head.status < 300:
            self._client.note_head(head)
        else:
            self.failure = f"HTTP status {head.status}"
            if self._opens and head.status in _NO_STREAMABLE_HTTP:
                self.failure += _OTHER_TRANSPORT
        if is_event_stream(header(head, b"content-type")):
            self._events = SseDecoder(limit=_MAX_BODY)

    def _receive_data(self, data: bytes) -> list[bytes]:
        if self._events is None:
            self._data += data[: _MAX_BODY - len(self._data)]
            return []
        found = []
        self._events.feed(data)
        try:
            while (event := self._events.next_event()) is not None:
                if event.is_message:
                    found.append(self._take(bytes(event.data)))
        except EventTooLong as exc:
            self.failure = str(exc)
        if self._events.retry is not None:
            self.retry = self._events.retry / 1000
        return found

    def _read_body(self) -> list[bytes]:
        data = bytes(self._data)
        members = _members(decode_message(data))
        if not any(isinstance(each, dict) and "jsonrpc" in each for each in members):
            self.failure = self.failure or "the response is not a message of MCP"
            return []
        return [self._take(data)]

    def _take(self, data: bytes) -> bytes:
        for each in _members(decode_message(data)):
            if isinstance(each, dict):
                self._client.note_message(each)
                if "method" in each:
                    continue
                if each.get("id") is None and len(self._ids) == 1:
                    # The server rejected the request before it read the id.
                    each["id"] = self._ids.pop()
                    return encode_message(each)
                key = id_key(each.get("id"))
                if key is not None:
                    self._ids.discard(key)
        return data


def _members(decoded: Any) -> list[Any]:
    return decoded if isinstance(decoded, list) else [decoded]
