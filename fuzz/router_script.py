"""Play a script to a `Router`, as several clients, their connections and the handlers.

Everything that a handler sends for a call carries the mark of that call, which names its client.
`fuzz.exchange_checker` can therefore check from any message alone where it belongs.

Rule of this file: a step that is impossible at its time does nothing. Any list of steps is
therefore a script. A place is an index, modulo the number of items.

Steps, each a tuple that begins with its name:

    initialize client                   a client begins a session
    call client id                      it calls a tool
    batch client ids                    it makes several calls at once
    ping client id
    post client data                    it POSTs these bytes
    begin_post client                   it sends a head and half a body
    finish_post place                   it sends the rest of such a body
    cancel client id
    respond client number               it answers a request, which may not exist
    get client                          it opens the standalone stream of its session
    resume client exchange event        it resumes after an event of one of its exchanges
    resume_unknown client id            it resumes with an arbitrary event id
    use_foreign_session client other    it uses the session of another client
    delete client
    disconnect place                    a client disconnects
    stop_reading place                  a client stops reading; `resume_reading` undoes it
    resume_reading place
    progress place times                a running handler reports progress so many times
    request place                       it sends a request
    log place                           it sends a log message
    release place times                 it reports progress and then releases its client
    finish place how                    it returns
    change                              a list has changed
    wait seconds
    shutdown, close
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Raw

from fuzz.connection_script import config_of
from fuzz.exchange_checker import (
    CLIENTS,
    MARK,
    ExchangeChecker,
    FuzzClient,
    ObservedExchange,
    ToolCall,
)
from mcp_core import (
    NEED_DATA,
    ConnectionClosed,
    Limits,
    LocalProtocolError,
    RequestCancelled,
    RequestReceived,
    Role,
)
from mcp_core import types as t
from mcp_core.http import (
    Conversation,
    Endpoint,
    HostOriginPolicy,
    HttpLimits,
    HttpOptions,
    RequestHead,
    Router,
)
from mcp_core.http.server._session import Session
from mcp_core.protocol.subscriptions._server import LISTS
from mcp_core.types import RequestId
from mcp_trio.oracle.strategies._messages import VERSIONS, meta_of
from mcp_trio.oracle.strategies._values import encoded

__all__ = ["CLIENTS", "LIMITS", "Case", "RouterScript", "Step"]

Step: TypeAlias = tuple[Any, ...]
# response mode; whether there are sessions; a name of `LIMITS`; the script
Case: TypeAlias = tuple[str, bool, str, list[Step]]

# Limits that no script reaches, and limits that scripts do reach.
LIMITS: Final = {
    "roomy": (HttpLimits(), Limits(message=2_000, batch=4)),
    "narrow": (
        HttpLimits(
            client_share=0.75,
            sessions=4,
            uninitialized=2,
            bodies=1_000,
            body_time=40.0,
            streams=4,
            events=3,
            event_age=20.0,
            idle=60.0,
            session_bytes=3_000,
            all_bytes=5_000,
            queued=400,
        ),
        Limits(message=2_000, batch=3, in_flight=2, waiting=1, queued=1_000),
    ),
}
_HOST: Final = (b"host", b"localhost")
_BOTH: Final = (b"accept", b"application/json, text/event-stream")
_JSON: Final = (b"content-type", b"application/json")


class RunningRequest:
    """A request that a handler is running."""

    def __init__(self, conversation: Conversation, id: RequestId, call: ToolCall | None) -> None:
        self.conversation = conversation
        self.id = id
        self.call = call
        self.cancelled = False
        self.progress_count = 0


class RouterScript:
    """One run of a script."""

    def __init__(self, case: Case) -> None:
        self._reply, self._sessions, limits, self._steps = case
        self._retains_all = limits == "roomy"
        http, limit = LIMITS[limits]
        config = config_of(Role.SERVER, VERSIONS, limit)
        names = itertools.count(1)
        self.endpoint = Endpoint(
            lambda: config,
            HttpOptions(
                host_origin_policy=HostOriginPolicy("localhost"),
                limits=http,
                reply=self._reply,  # type: ignore[arg-type]
                sessions=self._sessions,
            ),
            entropy=lambda size: next(names).to_bytes(size, "big"),
            param_headers=lambda name: None,
        )
        self.router = Router({"/mcp": self.endpoint})
        self._checker = ExchangeChecker(self.endpoint, self._reply)
        self._limits = http
        self._now = 0.0
        self._clients = [FuzzClient(number) for number in range(len(CLIENTS))]
        self._partial_posts: list[tuple[ObservedExchange, bytes, list[ToolCall]]] = []
        self._calls: list[ToolCall] = []
        self._running: list[RunningRequest] = []
        self._closed_by_conversation: dict[Conversation, bool] = {}  # True if it is closed
        self._closed = False
        self._numbers = itertools.count()

    @property
    def outcomes(self) -> set[str]:
        """The names of what happened."""
        return self._checker.outcomes

    def run(self) -> None:
        """Run the script.

        Raises:
            AssertionError: a client received, or the router holds, something wrong.
            Exception: the router raised.
        """
        for step in self._steps:
            _STEPS[step[0]](self, *step[1:])
            self._process_events()
        self._finish()

    # -- Clients -----------------------------------------------------------------------------------

    def _request(
        self,
        client: FuzzClient,
        verb: bytes,
        headers: list[tuple[bytes, bytes]],
        body: bytes | None = None,
        last_event_id: bytes | None = None,
    ) -> ObservedExchange:
        exchange = self.router.begin(
            RequestHead(verb, client.target, [_HOST, *headers]),
            self._now,
            principal=client.principal,
        )
        observed = ObservedExchange(exchange, client, last_event_id)
        self._checker.add(observed)
        if body is not None:
            self.router.receive_data(exchange, body, self._now)
            self.router.receive_data(exchange, b"", self._now)
        return observed

    def _post(
        self,
        client: FuzzClient,
        body: bytes,
        *more: tuple[bytes, bytes],
        calls: list[ToolCall] | None = None,
    ) -> ObservedExchange:
        observed = self._request(client, b"POST", [_BOTH, _JSON, *client.headers, *more], body)
        self._assign_streams(observed, calls or [])
        self._process_events()
        return observed

    def _assign_streams(self, observed: ObservedExchange, calls: list[ToolCall]) -> None:
        for call in calls:
            call.observed = observed
            conversation = observed.exchange.conversation
            is_sse = isinstance(conversation, Session) and conversation.legacy_sse
            call.stream = conversation.standalone_stream if is_sse else observed.exchange.stream  # type: ignore[union-attr]

    def _initialize(self, client_number: int) -> None:
        client = self._clients[client_number]
        if client.is_stateless or not self._sessions:
            if not client.is_stateless:
                client.headers = [(b"mcp-protocol-version", b"2025-11-25")]
            return
        client.headers, client.target, client.session = [], b"/mcp", None
        info = {"name": "fuzz", "version": "0"}
        version = "2024-11-05" if client.version == "sse" else client.version
        params = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": info}
        initialize = encoded({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        initialized = encoded({"jsonrpc": "2.0", "method": "notifications/initialized"})
        if client.version == "sse":
            observed = self._request(client, b"GET", [(b"accept", b"text/event-stream")])
            self._process_events()
            if not observed.is_stream:
                return
            client.target = observed.body.partition(b"data: ")[2].partition(b"\n")[0]
            self._post(client, initialize)
        else:
            observed = self._post(client, initialize)
            assert observed.head is not None
            id = dict(observed.head.headers).get(b"mcp-session-id")
            if id is None:
                assert observed.head.status in (429, 503)
                self._checker.outcomes.add("full" if observed.head.status == 503 else "quota")
                return
            client.headers = [(b"mcp-session-id", id)]
            if version >= "2025-06-18":
                client.headers.append((b"mcp-protocol-version", version.encode()))
        session = observed.exchange.session
        assert isinstance(session, Session)
        client.session = session
        self._post(client, initialized)

    def _message(self, client: FuzzClient, id: RequestId) -> tuple[ToolCall, dict[str, Any]]:
        call = ToolCall(client, next(self._numbers))
        self._calls.append(call)
        self._checker.by_mark[call.mark] = call
        params: dict[str, Any] = {"name": "t", "arguments": {"mark": call.mark}}
        params["_meta"] = {
            **(meta_of(client.version) if client.is_stateless else {}),
            "progressToken": call.mark,
        }
        return call, {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}

    def _mirrored_headers(self, client: FuzzClient, method: str) -> list[tuple[bytes, bytes]]:
        if not client.is_stateless:
            return []
        named = [(b"mcp-name", b"t")] if method == "tools/call" else []
        return [
            (b"mcp-protocol-version", client.version.encode()),
            (b"mcp-method", method.encode()),
            *named,
        ]

    def _call(self, client_number: int, id: RequestId) -> None:
        client = self._clients[client_number]
        call, message = self._message(client, id)
        observed = self._post(
            client, encoded(message), *self._mirrored_headers(client, "tools/call"), calls=[call]
        )
        self._check_response_to_call(observed)

    def _check_response_to_call(self, observed: ObservedExchange) -> None:
        session = observed.exchange.session
        if observed.head is None or not isinstance(session, Session) or session.legacy_sse:
            return
        assert observed.head.status != 202, "a request got 202, the status for notifications"
        if observed.head.status == 429 and b"too many streams" in observed.body:
            assert not any(each.abandoned for each in session.streams.values()), (
                "429 although an abandoned stream could be dropped"
            )
            self._checker.outcomes.add("too many streams")

    def _batch(self, client_number: int, ids: list[RequestId]) -> None:
        client = self._clients[client_number]
        calls, messages = [], []
        for id in ids:
            call, message = self._message(client, id)
            calls.append(call)
            messages.append(message)
        self._post(
            client, encoded(messages), *self._mirrored_headers(client, "tools/call"), calls=calls
        )

    def _ping(self, client_number: int, id: RequestId) -> None:
        client = self._clients[client_number]
        method = "server/discover" if client.is_stateless else "ping"
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
        if client.is_stateless:
            message["params"] = {"_meta": meta_of(client.version)}
        self._post(client, encoded(message), *self._mirrored_headers(client, method))

    def _post_bytes(self, client_number: int, data: bytes) -> None:
        client = self._clients[client_number]
        self._post(client, data, *self._mirrored_headers(client, "x"))

    def _begin_post(self, client_number: int) -> None:
        client = self._clients[client_number]
        call, message = self._message(client, f"half {len(self._partial_posts)}")
        body = encoded(message)
        observed = self._request(
            client,
            b"POST",
            [_BOTH, _JSON, *client.headers, *self._mirrored_headers(client, "tools/call")],
        )
        self.router.receive_data(observed.exchange, body[:20], self._now)
        self._partial_posts.append((observed, body[20:], [call]))

    def _finish_post(self, place: int) -> None:
        if not self._partial_posts:
            return
        observed, rest, calls = self._partial_posts.pop(place % len(self._partial_posts))
        for start in range(0, len(rest), 50):
            self.router.receive_data(observed.exchange, rest[start : start + 50], self._now)
        self.router.receive_data(observed.exchange, b"", self._now)
        self._assign_streams(observed, calls)
        self._process_events()
        self._check_response_to_call(observed)

    def _cancel(self, client_number: int, id: Any) -> None:
        client = self._clients[client_number]
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
        observed = self._post(
            client, encoded(note), *self._mirrored_headers(client, "notifications/cancelled")
        )
        session = observed.exchange.session
        if (
            isinstance(session, Session)
            and observed.head is not None
            and observed.head.status == 202
        ):
            left = [
                each for each in session.stream_by_request if (each, type(each)) == (id, type(id))
            ]
            assert not left, "a cancelled request is still pending"

    def _respond(self, client_number: int, number: int) -> None:
        client = self._clients[client_number]
        id = (
            client.server_requests[number % len(client.server_requests)]
            if client.server_requests
            else number
        )
        self._post(client, encoded({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}))

    def _get(
        self, client_number: int, last_event_id: bytes | None = None, *, must: bool | None = None
    ) -> ObservedExchange:
        client = self._clients[client_number]
        more = [] if last_event_id is None else [(b"last-event-id", last_event_id)]
        observed = self._request(
            client,
            b"GET",
            [(b"accept", b"text/event-stream"), *client.headers, *more],
            None,
            last_event_id,
        )
        self._process_events()
        assert observed.head is not None
        if must is not None:
            assert (observed.head.status == 200) is must, (
                f"{last_event_id!r} was answered with {observed.head.status}"
            )
        if last_event_id is not None:
            self._checker.outcomes.add(f"resume {observed.head.status}")
        return observed

    def _get_standalone(self, client_number: int) -> None:
        if not self._clients[client_number].is_stateless:
            self._get(client_number)

    def _resume(self, client_number: int, place: int, event: int) -> None:
        client = self._clients[client_number]
        session = client.session
        exchanges = [
            observed
            for observed in self._checker.exchanges
            if observed.client is client
            and observed.event_ids
            and observed.exchange.session is session
        ]
        if not exchanges or session is None or session.legacy_sse:
            return
        ids = exchanges[place % len(exchanges)].event_ids
        id = ids[event % len(ids)]
        name, _, number = id.rpartition(b"-")
        stream = session.streams.get(name)
        alive = self.endpoint.sessions.get(session.id) is session
        # A client that has every event of a stream which is over is refused, so that it stops.
        must = (
            alive
            and stream is not None
            and stream.reaches(int(number))
            and not (stream.over and int(number) == stream.last)
        )
        self._get(client_number, id, must=must)

    def _resume_unknown(self, client_number: int, id: bytes) -> None:
        client = self._clients[client_number]
        if client.session is not None and not client.session.legacy_sse:
            self._get(client_number, id)

    def _use_foreign_session(self, client_number: int, other: int) -> None:
        client, owner = self._clients[client_number], self._clients[other]
        if client.principal == owner.principal or owner.session is None:
            return
        before = self._state(owner.session)
        for id in (owner.session.id, b"f" * 32):
            named = (b"mcp-session-id", id)
            stranger = FuzzClient(client_number)
            if owner.session.legacy_sse:
                stranger.target = b"/mcp?session_id=" + id
                headers = []
            else:
                headers = [named]
            ping = encoded({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            for verb, more, body in (
                (b"POST", [_BOTH, _JSON], ping),
                (b"GET", [(b"accept", b"text/event-stream")], None),
                (b"GET", [(b"accept", b"text/event-stream"), (b"last-event-id", b"0-0")], None),
                (b"DELETE", [], None),
            ):
                observed = self._request(stranger, verb, [*headers, *more], body)
                self._process_events()
                assert observed.head is not None
                assert observed.head.status == 404
                assert observed.ended
        bodies = [observed.body for observed in self._checker.exchanges[-8:]]
        assert bodies[:4] == bodies[4:], "a foreign session differs from an unknown one"
        assert self._state(owner.session) == before

    def _state(self, session: Session) -> tuple[Any, ...]:
        return (
            self.endpoint.sessions.get(session.id),
            {
                name: (each.exchange, each.last, each.last_evicted)
                for name, each in session.streams.items()
            },
            dict(session.stream_by_request),
        )

    def _delete(self, client_number: int) -> None:
        client = self._clients[client_number]
        if client.session is not None:
            self._request(client, b"DELETE", client.headers)
            self._checker.outcomes.add("deleted")

    # -- Connections -------------------------------------------------------------------------------

    def _disconnect_at(self, place: int) -> None:
        if self._checker.unfinished:
            observed = self._checker.unfinished[place % len(self._checker.unfinished)]
            self._disconnect(observed)

    def _disconnect(self, observed: ObservedExchange) -> None:
        observed.disconnected = True
        self._checker.outcomes.add(f"disconnected while {observed.exchange.mode.name}")
        self.router.disconnected(observed.exchange, self._now)
        self.router.disconnected(observed.exchange, self._now)
        assert self.router.actions_to_send(observed.exchange) == []

    def _stop_reading(self, place: int) -> None:
        if self._checker.unfinished:
            self._checker.unfinished[place % len(self._checker.unfinished)].paused = True

    def _resume_reading(self, place: int) -> None:
        paused = [observed for observed in self._checker.unfinished if observed.paused]
        if paused:
            observed = paused[place % len(paused)]
            observed.paused = False
            self._checker.read(observed)

    # -- Handlers ----------------------------------------------------------------------------------

    def _running_at(self, place: int) -> RunningRequest | None:
        return self._running[place % len(self._running)] if self._running else None

    def _act(self, place: int, action: Callable[[RunningRequest, str], object]) -> None:
        running = self._running_at(place)
        if running is None:
            return
        try:
            action(running, running.call.mark if running.call is not None else "")
        except LocalProtocolError:
            self._checker.outcomes.add("send refused")
        running.conversation.mark_dirty()

    def _progress(self, place: int, times: int) -> None:
        def action(running: RunningRequest, mark: str) -> None:
            for _ in range(times):
                running.progress_count += 1
                running.conversation.conn.send_progress(
                    running.id, running.progress_count, message=f"{mark} {'x' * 40}"
                )

        self._act(place, action)

    def _request_roots(self, place: int) -> None:
        self._act(
            place,
            lambda it, mark: it.conversation.conn.send_request(
                "roots/list", related=it.id, meta={"m": mark}
            ),
        )

    def _log(self, place: int) -> None:
        self._act(place, lambda it, mark: it.conversation.conn.send_log("error", mark))

    def _release(self, place: int, notes: int) -> None:
        self._progress(place, notes)
        running = self._running_at(place)
        if running is not None and running.conversation.release(running.id, 0.5):
            self._checker.outcomes.add("released")

    def _finish_request(self, place: int, how: str) -> None:
        running = self._running_at(place)
        if running is None:
            return
        self._running.remove(running)
        conversation, call = running.conversation, running.call
        mark = call.mark if call is not None else ""
        if how == "error":
            sent = conversation.conn.send_error(running.id, t.ErrorData(code=-32602, message=mark))
        else:
            size = 600 if how == "large" else 1
            result = {"content": [{"type": "text", "text": mark + "x" * size}]}
            sent = conversation.conn.send_result(running.id, Raw(encoded(result)))
        assert sent is not running.cancelled
        conversation.mark_dirty()
        self._process_events()
        if sent and call is not None:
            self._check_delivered(call)

    def _check_delivered(self, call: ToolCall) -> None:
        """Check that a response was received, or is retained for a client that does not read it
        yet.
        """
        stream = call.stream
        assert stream is not None
        observed = (
            self._checker.by_exchange[stream.exchange] if stream.exchange is not None else None
        )
        if call.answered_at or (observed is not None and observed.paused):
            return
        assert observed is None or (stream.batch and stream.pending), "a response was not sent"
        if any(call.mark.encode() in data for _, data, _ in stream.messages):
            return
        knew = any(
            each.event_ids and each.exchange.stream is stream for each in self._checker.exchanges
        )
        assert not (self._retains_all and knew and stream.owner is not None), "a response was lost"
        self._checker.outcomes.add("client is gone")

    def _change(self) -> None:
        for conversation, closed in self._closed_by_conversation.items():
            if not closed:
                conversation.conn.send_change(next(iter(LISTS.values())))
                conversation.mark_dirty()

    # -- Time and the end --------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        self._now += seconds
        if self._now >= self._limits.event_age:
            self._retains_all = False  # retained events may have expired
        self.router.handle_timeout(self._now)
        self._process_events()
        due = self.router.next_deadline()
        assert due is None or due > self._now, "the next deadline has already passed"

    def _shutdown(self) -> None:
        self.router.shutdown()
        self._checker.outcomes.add("shut down")

    def _close(self) -> None:
        self.router.close()
        self._closed = True

    def _finish(self) -> None:
        self._check_resumable()
        self._close()
        self._process_events()
        while self._partial_posts:
            self._finish_post(0)
        for observed in self._checker.unfinished:
            if observed.paused:
                self._disconnect(observed)
        self._process_events()
        assert not self._checker.unfinished, "a response does not end"
        while self._running:
            running = self._running[0]
            assert running.cancelled, "a handler was not cancelled"
            self._finish_request(0, "result")
        self._process_events()
        endpoint = self.endpoint
        held = (
            *(
                endpoint.sessions,
                endpoint.one_shots,
                endpoint.dirty,
                endpoint.events,
                endpoint.ready,
            ),
            *(
                list(endpoint._awaiting_output),
                list(endpoint.sessions.uninitialized),
                list(endpoint.sessions.idle),
            ),
            *(endpoint.log.bytes, list(endpoint.log._expiry), endpoint.log._retained),
            *(endpoint._reading, endpoint.state.bodies.total, endpoint.one_shots._by_client),
            *(endpoint.sessions._by_client, endpoint.sessions._uninitialized_by_client),
        )
        assert not any(held), f"something is left: {held}"
        assert self.router.next_deadline() is None
        assert self.router.idle
        assert all(
            closed or each.retired for each, closed in self._closed_by_conversation.items()
        ), "a conversation does not end"

    def _check_resumable(self) -> None:
        """Resume every interrupted stream, and check that the rest arrives."""
        if not self._retains_all or self._closed:
            return
        for client in self._clients:
            session = client.session
            if (
                session is None
                or session.legacy_sse
                or self.endpoint.sessions.get(session.id) is not session
            ):
                continue
            for name, stream in list(session.streams.items()):
                received = client.received.get((session, name))
                if stream.exchange is not None or stream.long_lived or not received:
                    continue
                last = max(received)
                done = stream.over and stream.last == last
                observed = self._get(client.number, b"%b-%d" % (name, last), must=not done)
                if done:
                    continue
                assert max(client.received[session, name]) == stream.last
                assert observed.ended is stream.over
                self._checker.outcomes.add("resumed at the end")

    # -- After each step ---------------------------------------------------------------------------

    def _process_events(self) -> None:
        while True:
            while (found := self.router.next_event()) is not NEED_DATA:
                self._handle_event(*found)
            ready = self.router.ready()
            if not ready:
                break
            for exchange in ready:
                observed = self._checker.by_exchange[exchange]
                assert not observed.disconnected, "a disconnected exchange is ready"
                if not observed.paused:
                    self._checker.read(observed)
        for observed in self._checker.unfinished:
            if not observed.paused:
                assert self.router.actions_to_send(observed.exchange) == [], (
                    "an exchange has output but is not ready"
                )
        self._checker.check(self._closed_by_conversation)

    def _handle_event(self, conversation: Conversation, event: Any) -> None:
        assert not self._closed_by_conversation.get(conversation), "an event after ConnectionClosed"
        self._closed_by_conversation[conversation] = isinstance(event, ConnectionClosed)
        if isinstance(event, RequestReceived):
            marks = MARK.search(bytes(event.raw))
            call = self._checker.by_mark[marks.group().decode()] if marks is not None else None
            self._running.append(RunningRequest(conversation, event.id, call))
        elif isinstance(event, RequestCancelled):
            (running,) = [
                each
                for each in self._running
                if each.conversation is conversation
                and (each.id, type(each.id)) == (event.id, type(event.id))
            ]
            running.cancelled = True
            self._checker.outcomes.add("cancelled")


_STEPS: Final[dict[str, Callable[..., object]]] = {
    "initialize": RouterScript._initialize,
    "call": RouterScript._call,
    "batch": RouterScript._batch,
    "ping": RouterScript._ping,
    "post": RouterScript._post_bytes,
    "begin_post": RouterScript._begin_post,
    "finish_post": RouterScript._finish_post,
    "cancel": RouterScript._cancel,
    "respond": RouterScript._respond,
    "get": RouterScript._get_standalone,
    "resume": RouterScript._resume,
    "resume_unknown": RouterScript._resume_unknown,
    "use_foreign_session": RouterScript._use_foreign_session,
    "delete": RouterScript._delete,
    "disconnect": RouterScript._disconnect_at,
    "stop_reading": RouterScript._stop_reading,
    "resume_reading": RouterScript._resume_reading,
    "progress": RouterScript._progress,
    "request": RouterScript._request_roots,
    "log": RouterScript._log,
    "release": RouterScript._release,
    "finish": RouterScript._finish_request,
    "change": RouterScript._change,
    "wait": RouterScript._wait,
    "shutdown": RouterScript._shutdown,
    "close": RouterScript._close,
}
