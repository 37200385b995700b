"""The HTTP side of a scripted server: Streamable HTTP over HTTP/1.1, on a port of 127.0.0.1.

A response is a JSON body if it is one message and its request has an even number, else an event
stream. Requests for other paths than the endpoint get 404, and aren't in the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_core.http import Body, End, Head
from mcp_core.trace import HttpHead, SseFields, TraceLine
from mcp_trio._listeners import serve_connections
from mcp_trio._simple_http import SimpleHttpConnection, SimpleHttpLimits, UnreadableRequest
from mcp_trio.oracle.fuzz._revisions import dialect_of

from ._client_session import LINE_LIMIT
from ._wrong_http import STATUSES, TYPES, raw_response

if TYPE_CHECKING:
    from mcp_core.http import RequestHead

    from ._client_session import ClientSession
    from ._script import Reaction
    from ._wrong_answers import Action

__all__ = ["HttpServerLink"]

PATH: Final = b"/mcp"
MAX_CONNECTIONS: Final = 500  # of one case
MAX_EXCHANGES: Final = 1_000  # of one case
LIMITS: Final = SimpleHttpLimits(
    body=8 * 1024 * 1024, head_seconds=30, body_seconds=30, write_seconds=10
)
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"


class HttpServerLink:
    """The HTTP server of one session, on a port of its own.

    Args:
        session: the client's session.
        timeout: seconds for the response to a ping.
    """

    def __init__(self, session: ClientSession, timeout: float) -> None:
        self.session = session
        self.timeout = timeout
        self.session_id = ""
        self.lost: set[str] = set()  # ids of sessions that have ended
        self.resumable: dict[str, list[Action]] = {}
        self.active = 0
        self.exchanges = 0
        self._sessions = 0
        self._scope = trio.CancelScope()
        session.begin_conversation()

    @property
    def has_ended(self) -> bool:
        """True if no connection is open."""
        return self.active == 0

    async def serve(self, task_status: trio.TaskStatus[int]) -> None:
        """Accept connections until `close`. The task status is the port."""
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        with self._scope:
            task_status.started(listeners[0].socket.getsockname()[1])
            await serve_connections(self._serve, listeners, MAX_CONNECTIONS)

    async def close(self) -> None:
        """End all connections, and accept no more."""
        self._scope.cancel()

    def new_session_id(self) -> str:
        """Return the id of a new session."""
        self._sessions += 1
        self.session_id = f"session-{self._sessions}"
        return self.session_id

    async def _serve(self, stream: trio.SocketStream) -> None:
        self.active += 1
        try:
            async with stream:
                await _ScriptedConnection(self, stream).run()
        finally:
            self.active -= 1
            self.session.notify()


class _ScriptedConnection:
    """A TCP connection. Its requests are answered one after the other."""

    def __init__(self, server: HttpServerLink, stream: trio.SocketStream) -> None:
        self._server = server
        self._session = server.session
        self._stream = stream
        self._http = SimpleHttpConnection(stream, LIMITS)
        self._exchange = 0

    async def run(self) -> None:
        """Serve requests until the connection ends."""
        http = self._http
        try:
            while (head := await http.next_head()) is not None:
                body = await http.read_body()
                if self._session.is_closed:
                    return
                await self._handle(head, body)
        except UnreadableRequest as exc:
            if exc.status not in (408, 413):  # only slow, or too large
                self._session.note(f"the client sends a request that is not HTTP: {exc}")

    # -- Requests ----------------------------------------------------------------------------------

    async def _handle(self, head: RequestHead, body: bytes) -> None:
        server, session = self._server, self._session
        if head.target.split(b"?")[0] != PATH:
            await self._respond(404, {}, b"", record=False)
            return
        server.exchanges += 1
        self._exchange = server.exchanges
        if self._exchange > MAX_EXCHANGES:
            return
        text: str | None = None
        data: bytes | None = None
        try:
            text = body.decode() if body else None
        except UnicodeDecodeError:
            data = body
        line = TraceLine(
            t=session.time(),
            exchange=self._exchange,
            sender="client",
            raw=text,
            data=data,
            http=HttpHead(
                version=self._http.http_version,
                method=head.method.decode(),
                target=head.target.decode("latin-1"),
                headers=tuple(
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in head.headers
                ),
            ),
        )
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        given = headers.get("mcp-session-id", "")
        match head.method:
            case b"POST":
                reactions = session.receive(line)
                session.acting += 1
                try:
                    if given and given in server.lost:
                        await self._respond(404, {}, b"")
                    else:
                        await self._post(reactions)
                finally:
                    session.acting -= 1
                    session.notify()
            case b"GET":
                session.receive(line)
                await self._get(headers)
            case b"DELETE":
                session.receive(line)
                server.lost.add(given)
                await self._respond(
                    200 if dialect_of(session.server.revision).http.sessions else 405, {}, b""
                )
            case _:
                session.receive(line)
                await self._respond(405, {}, b"")

    async def _get(self, headers: dict[str, str]) -> None:
        server = self._server
        has_streams = dialect_of(self._session.server.revision).http.sessions
        if not has_streams or _EVENTS not in headers.get("accept", ""):
            await self._respond(405, {}, b"")
            return
        actions = server.resumable.pop(headers.get("last-event-id", ""), None)
        await self._begin_events({})
        if actions is None:
            await trio.sleep_forever()
        for action in actions or ():
            await self._do(action)
        await self._end_events()

    async def _post(self, reactions: list[Reaction]) -> None:
        if not reactions:
            await self._respond(202, {}, b"")
            return
        reaction = reactions[0]
        actions = [action for each in reactions for action in each.actions]
        headers: dict[str, str] = {}
        if reaction.opens:
            headers["mcp-session-id"] = self._server.new_session_id()
        if reaction.http:
            await self._send_wrong(reaction, actions, headers)
            return
        sends = sum(action.kind == "send" for action in actions)
        if sends == 1 and len(actions) <= 2 and not reaction.lasts and reaction.place % 2 == 0:
            await self._post_json(actions, headers)
            return
        if not actions:
            await self._stay_open()
        await self._begin_events(headers)
        for action in actions:
            if not await self._do(action):
                return
        if reaction.lasts or not any(action.kind == "send" for action in actions):
            await self._stay_open()
        await self._end_events()

    async def _stay_open(self) -> None:
        """Wait until the connection ends."""
        self._session.acting -= 1
        try:
            await trio.sleep_forever()
        finally:
            self._session.acting += 1

    async def _post_json(self, actions: list[Action], headers: dict[str, str]) -> None:
        for action in actions:
            if action.kind == "pause":
                await trio.sleep(action.seconds)
            elif action.kind == "send":
                await self._respond(200, {"content-type": _JSON, **headers}, action.data)

    async def _send_wrong(
        self, reaction: Reaction, actions: list[Action], headers: dict[str, str]
    ) -> None:
        number, server = reaction.number, self._server
        body = next((action.data for action in reversed(actions) if action.kind == "send"), b"{}")
        match reaction.http:
            case "status":
                status = STATUSES[number % len(STATUSES)]
                more = {"location": "/mcp" if status % 2 else "/elsewhere", "retry-after": "0"}
                more["www-authenticate"] = 'Bearer realm="none"'
                has_body = status not in (204, 304) and number // len(STATUSES) % 2
                await self._respond(
                    status, {"content-type": _JSON, **more, **headers}, body if has_body else b""
                )
            case "type":
                kind = TYPES[number % len(TYPES)]
                types = {} if kind is None else {"content-type": kind}
                await self._respond(200, {**types, **headers}, body)
            case "resume":
                id = f"place-{reaction.place}"
                server.resumable[id] = actions
                await self._begin_events(headers)
                await self._event(b"", SseFields(id=id, retry=10))
                await self._end_events()
            case "session":
                wrong = ("session-other", "", "a b", "\u00e4", "x" * 4_000)
                if number % 6 == 5:
                    server.lost.add(server.session_id)
                    await self._respond(404, {}, b"")
                else:
                    headers["mcp-session-id"] = wrong[number % 6]
                    await self._respond(200, {"content-type": _JSON, **headers}, body)
            case _:
                await self._raw(raw_response(reaction.http, number, body), body)

    async def _raw(self, data: bytes, body: bytes) -> None:
        """Send bytes in place of a response, and end the connection."""
        self._record_head(200, {"content-type": _JSON}, body, end="reset")
        await self._http.send_bytes(data)

    # -- Responses ---------------------------------------------------------------------------------

    async def _do(self, action: Action) -> bool:
        """Carry out an action on an event stream. Return False if it ended the connection."""
        match action.kind:
            case "pause":
                await trio.sleep(action.seconds)
            case "await":
                await self._session.wait_for_response(action, self._server.timeout, self._server)
            case "send":
                await self._event(action.data, SseFields())
            case "raw":
                await self._http.send(Body(b"data: " + action.data))
            case _:
                self._record(end="reset")
                await self._stream.aclose()
                return False
        return True

    async def _event(self, data: bytes, fields: SseFields) -> None:
        text = b""
        if fields.id:
            text += b"id: " + fields.id.encode() + b"\n"
        if fields.retry is not None:
            text += b"retry: %d\n" % fields.retry
        if data or fields.id is None:
            self._record(raw=data.decode("utf-8", "replace"), sse=fields)
        else:
            self._record(sse=fields)
        self._session.note_sent(data)
        text += b"data: " + data + b"\n\n"
        await self._http.send(Body(text))

    async def _begin_events(self, headers: dict[str, str]) -> None:
        more = {"content-type": _EVENTS, "cache-control": "no-cache", "x-accel-buffering": "no"}
        self._record_head(200, {**more, **headers})
        await self._http.send(_head(200, {**more, **headers}))

    async def _end_events(self) -> None:
        self._record(end="complete")
        await self._http.send(End())

    async def _respond(
        self, status: int, headers: dict[str, str], body: bytes, *, record: bool = True
    ) -> None:
        if record:
            self._record_head(status, headers, body, end="complete")
            self._session.note_sent(body)
        if status in (204, 304):
            body = b""
        else:
            headers = {**headers, "content-length": str(len(body))}
        await self._http.send(_head(status, headers), Body(body), End())

    def _record_head(
        self, status: int, headers: dict[str, str], body: bytes = b"", end: str | None = None
    ) -> None:
        head = HttpHead(status=status, headers=tuple(headers.items()))
        text = body.decode("utf-8", "replace") if 0 < len(body) < LINE_LIMIT else None
        self._record(http=head, raw=text, end=end)

    def _record(
        self,
        http: HttpHead | None = None,
        raw: str | None = None,
        sse: SseFields | None = None,
        end: str | None = None,
    ) -> None:
        session = self._session
        session.record(
            TraceLine(
                t=session.time(),
                exchange=self._exchange,
                sender="server",
                http=http,
                raw=raw,
                sse=sse,
                end=end,
            )
        )


def _head(status: int, headers: dict[str, str]) -> Head:
    return Head(
        status, [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    )
