"""A client over HTTP, and a test that plays its server.

`new_calls` returns the calls that the client has made since the last time, `call` the only one.
`answer` sends a complete response, and `events` returns what the client made of it. `now` is the
time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mcp_core import NEED_DATA, Connection, PeerReady, Role
from mcp_core import types as t
from mcp_core.http import Head
from mcp_core.http.client._http_client import HttpClient
from mcp_core.http.client._options import HttpCall, HttpClientOptions
from tests.harness.jsonrpc import (
    A,
    B,
    C,
    D,
    E,
    Message,
    client_config,
    encoded,
    result,
    single,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_core import Event

URL: Final = "http://server.example/mcp"
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
OFFERS: Final[Message] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
}
SESSION: Final = "one"

__all__ = [
    "EVENTS",
    "JSON",
    "OFFERS",
    "SESSION",
    "URL",
    "A",
    "B",
    "C",
    "D",
    "E",
    "Net",
    "event",
    "open_client",
]


def event(message: Message | str | None = None, id: str | None = None, **fields: Any) -> bytes:
    """Encode an event as a server does; without a message its data is empty."""
    lines = [f"{name}: {value}" for name, value in fields.items()]
    if id is not None:
        lines.append(f"id: {id}")
    data = (
        ""
        if message is None
        else message
        if isinstance(message, str)
        else encoded(message).decode()
    )
    lines.append(f"data: {data}")
    return "\n".join(lines).encode() + b"\n\n"


class Net:
    def __init__(
        self,
        *versions: str,
        url: str = URL,
        options: HttpClientOptions | None = None,
        **config: Any,
    ) -> None:
        self.conn = Connection(Role.CLIENT, client_config(*versions, **config))
        self.http = HttpClient(self.conn, url, options)
        self.now = 0.0
        self.seen: list[Event] = []
        self.dropped: list[int] = []
        self._new_calls: list[HttpCall] = []
        self.delays_calls = False  # calls that were made wait for a connection

    def pump(self) -> None:
        while True:
            calls = self.http.calls_to_make(self.now)
            self._new_calls += calls
            if not self.delays_calls:
                for call in calls:
                    self.http.request_started(call.key)
            self.dropped += self.http.calls_to_drop()
            before = len(self.seen)
            while (found := self.http.next_event()) is not NEED_DATA:
                self.seen.append(found)  # type: ignore[arg-type]
            if not calls and len(self.seen) == before:
                return

    def open(self, **options: Any) -> None:
        self.conn.open(self.now, **options)
        self.pump()

    def new_calls(self) -> list[HttpCall]:
        self.pump()
        calls, self._new_calls = self._new_calls, []
        return calls

    def call(self) -> HttpCall:
        return single(self.new_calls())

    def events(self) -> list[Any]:
        self.pump()
        seen, self.seen = self.seen, []
        return seen

    def event(self) -> Any:
        return single(self.events())

    def at(self, now: float) -> None:
        self.now = now
        self.http.handle_timeout(now)
        self.pump()

    # What the server sends.

    def start_response(
        self, call: HttpCall, status: int = 200, type: str | None = EVENTS, **headers: str
    ) -> None:
        all_headers = [] if type is None else [(b"content-type", type.encode())]
        all_headers += [
            (name.replace("_", "-").encode(), value.encode("latin-1"))
            for name, value in headers.items()
        ]
        self.http.response_started(call.key, Head(status, all_headers), self.now)
        self.pump()

    def send_body(self, call: HttpCall, *pieces: bytes) -> None:
        for piece in pieces:
            self.http.response_data(call.key, piece, self.now)
            self.pump()

    def end_response(self, call: HttpCall, error: str | None = None) -> None:
        self.http.response_ended(call.key, self.now, error=error)
        self.pump()

    def answer(
        self,
        call: HttpCall,
        message: Message | list[Any] | str | bytes | None = None,
        status: int | None = None,
        type: str | None = JSON,
        **headers: str,
    ) -> None:
        """Send a complete response. Without a message and a status it is 202."""
        if message is None:
            type = None
        self.start_response(call, status or (202 if message is None else 200), type, **headers)
        if message is not None:
            self.send_body(call, encoded(message))
        self.end_response(call)

    def stream_response(self, call: HttpCall, *messages: Message) -> None:
        self.start_response(call)
        self.send_body(call, *map(event, messages))
        self.end_response(call)


def posted_message(call: HttpCall) -> Message:
    """Return the message in the body of a call."""
    found: Message = json.loads(call.body)
    return found


def header(call: HttpCall, name: str) -> str | None:
    values = [value.decode("latin-1") for key, value in call.head.headers if key == name.encode()]
    assert len(values) <= 1, values
    return values[0] if values else None


def initialize_result(version: str, offers: Message = OFFERS) -> Message:
    return {
        "protocolVersion": version,
        "capabilities": offers,
        "serverInfo": {"name": "s", "version": "1"},
    }


def discover_result(offers: Message = OFFERS) -> Message:
    return {
        "resultType": "complete",
        "supportedVersions": [E],
        "capabilities": offers,
        "ttlMs": 0,
        "cacheScope": "private",
    }


def open_client(
    version: str = D,
    *,
    session: str | None = SESSION,
    stream: bool = False,
    offers: Message = OFFERS,
    **config: Any,
) -> Net:
    """Return a connected client. With `stream` its standalone stream is open too, as call 3."""
    net = Net(version, **config)
    net.open()
    first = net.call()
    if version == E:
        net.answer(first, result(posted_message(first)["id"], discover_result(offers)))
    else:
        headers: dict[str, Any] = {} if session is None else {"mcp_session_id": session}
        net.answer(
            first,
            result(posted_message(first)["id"], initialize_result(version, offers)),
            **headers,
        )
        net.answer(net.call())
        get = net.call()
        assert get.head.method == b"GET"
        if stream:
            net.start_response(get)
        else:
            net.answer(get, status=405)
    assert isinstance(single(net.events()), PeerReady)
    return net


def send_call(
    net: Net, method: str = "tools/call", params: Any = None, **options: Any
) -> tuple[int, HttpCall]:
    """Send a request, and return its id and the call that carries it."""
    if method == "tools/call" and params is None:
        params = t.CallToolParams(name="t")
    id = net.conn.send_request(method, params, token="T", **options)
    assert isinstance(id, int)
    return id, net.call()


def type_names(events: Iterable[Any]) -> list[str]:
    return [type(each).__name__ for each in events]
