"""A client of HTTP, and a test that plays the server.

`asked` gives the calls that the client has made since, `call` the only one; `answer` gives a response to one in the words of HTTP, and
`events` what the client makes of it. Time is the attribute `now`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mcp_core import NEED_DATA, Connection, PeerReady, Role
from mcp_core import types as t
from mcp_core.http import Head
from mcp_core.http._call import HttpCall, HttpClientOptions
from mcp_core.http._client import HttpClient
from tests.core.helpers import A, B, C, D, E, Message, client_config, encoded, only, result

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

__all__ = ["EVENTS", "JSON", "OFFERS", "SESSION", "URL", "A", "B", "C", "D", "E", "Net", "event", "opened"]


def event(message: Message | str | None = None, id: str | None = None, **fields: Any) -> bytes:
    """An event as a server writes it; without a message its data are empty."""
    lines = [f"{name}: {value}" for name, value in fields.items()]
    if id is not None:
        lines.append(f"id: {id}")
    data = "" if message is None else message if isinstance(message, str) else encoded(message).decode()
    lines.append(f"data: {data}")
    return "\n".join(lines).encode() + b"\n\n"


class Net:
    def __init__(
        self, *versions: str, url: str = URL, options: HttpClientOptions | None = None, **config: Any
    ) -> None:
        self.conn = Connection(Role.CLIENT, client_config(*versions, **config))
        self.http = HttpClient(self.conn, url, options)
        self.now = 0.0
        self.seen: list[Event] = []
        self.dropped: list[int] = []
        self._asked: list[HttpCall] = []

    def pump(self) -> None:
        while True:
            calls = self.http.calls_to_make(self.now)
            self._asked += calls
            self.dropped += self.http.calls_to_drop()
            before = len(self.seen)
            while (found := self.http.next_event()) is not NEED_DATA:
                self.seen.append(found)  # type: ignore[arg-type]
            if not calls and len(self.seen) == before:
                return

    def open(self, **options: Any) -> None:
        self.conn.open(self.now, **options)
        self.pump()

    def asked(self) -> list[HttpCall]:
        self.pump()
        calls, self._asked = self._asked, []
        return calls

    def call(self) -> HttpCall:
        return only(self.asked())

    def events(self) -> list[Any]:
        self.pump()
        seen, self.seen = self.seen, []
        return seen

    def event(self) -> Any:
        return only(self.events())

    def at(self, now: float) -> None:
        self.now = now
        self.http.handle_timeout(now)
        self.pump()

    # The server's part.

    def starts(self, call: HttpCall, status: int = 200, type: str | None = EVENTS, **headers: str) -> None:
        all_headers = [] if type is None else [(b"content-type", type.encode())]
        all_headers += [
            (name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()
        ]
        self.http.response_started(call.key, Head(status, all_headers), self.now)
        self.pump()

    def gives(self, call: HttpCall, *pieces: bytes) -> None:
        for piece in pieces:
            self.http.response_data(call.key, piece, self.now)
            self.pump()

    def ends(self, call: HttpCall, error: str | None = None) -> None:
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
        """A whole response. Without a message and a status it is 202."""
        if message is None:
            type = None
        self.starts(call, status or (202 if message is None else 200), type, **headers)
        if message is not None:
            self.gives(call, encoded(message))
        self.ends(call)

    def streams(self, call: HttpCall, *messages: Message) -> None:
        self.starts(call)
        self.gives(call, *map(event, messages))
        self.ends(call)


def said(call: HttpCall) -> Message:
    """The message that was posted."""
    found: Message = json.loads(call.body)
    return found


def header(call: HttpCall, name: str) -> str | None:
    values = [value.decode("latin-1") for key, value in call.head.headers if key == name.encode()]
    assert len(values) <= 1, values
    return values[0] if values else None


def initialized_by(version: str, offers: Message = OFFERS) -> Message:
    return {"protocolVersion": version, "capabilities": offers, "serverInfo": {"name": "s", "version": "1"}}


def discovered(offers: Message = OFFERS) -> Message:
    return {
        "resultType": "complete",
        "supportedVersions": [E],
        "capabilities": offers,
        "ttlMs": 0,
        "cacheScope": "private",
    }


def opened(
    version: str = D,
    *,
    session: str | None = SESSION,
    stream: bool = False,
    offers: Message = OFFERS,
    **config: Any,
) -> Net:
    """A client whose conversation is open; with `stream` the one of the session is open too, as call 3."""
    net = Net(version, **config)
    net.open()
    first = net.call()
    if version == E:
        net.answer(first, result(said(first)["id"], discovered(offers)))
    else:
        headers: dict[str, Any] = {} if session is None else {"mcp_session_id": session}
        net.answer(first, result(said(first)["id"], initialized_by(version, offers)), **headers)
        net.answer(net.call())
        get = net.call()
        assert get.head.method == b"GET"
        if stream:
            net.starts(get)
        else:
            net.answer(get, status=405)
    assert isinstance(only(net.events()), PeerReady)
    return net


def asks(net: Net, method: str = "tools/call", params: Any = None, **options: Any) -> tuple[int, HttpCall]:
    """A request of the client's, and the call that carries it."""
    if method == "tools/call" and params is None:
        params = t.CallToolParams(name="t")
    id = net.conn.send_request(method, params, token="T", **options)
    assert isinstance(id, int)
    return id, net.call()


def kinds(events: Iterable[Any]) -> list[str]:
    return [type(each).__name__ for each in events]
