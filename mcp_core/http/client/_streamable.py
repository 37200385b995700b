"""Streamable HTTP: one POST per message, a response as JSON or as an event stream, sessions.

1. Once `initialized` has been accepted, the standalone stream is opened, and other messages wait
   for it: many servers drop what they send on it before. They wait a second only, because other
   servers send no response headers before the first event. Without such a stream (405) the
   conversation goes on.
2. If the server has lost the session (404), the connection negotiates a new one
   (`Connection.reinitialize`). Rejected messages were not processed and are sent again, once; calls
   with an open stream are lost. If a server loses the new session before it has accepted anything
   in it, the connection is closed.
   A 400 to a request, without an id, may say the same, or that the request is bad. It counts as a
   lost session only if its text says so, and nothing shows that the server still has it, and never
   twice in a row.
3. A stateless server learns of a cancellation by the disconnect. A stateful one gets a message
   (2026-07-28 and 2025-11-25, basic/utilities/cancellation); its stream is read on for some
   seconds, because it cancels its own requests for that call there.

Single requests are in `_requests.py`. Sources: basic/transports of 2025-03-26 to 2025-11-25;
basic/transports/streamable-http of 2026-07-28.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from mcp_core._errors import ConnectionLost, LocalProtocolError, RemoteProtocolError
from mcp_core.http.wire._mcp_headers import (
    LAST_EVENT_ID,
    PROTOCOL_VERSION,
    SESSION_ID,
    request_headers,
)
from mcp_core.http.wire._media_types import CONTENT_TYPE_JSON, EVENT_STREAM, JSON
from mcp_core.http.wire._messages import header
from mcp_core.http.wire._sse import last_event_id
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.jsonrpc._codec import BadMessage, decode
from mcp_core.protocol.messages._events import ChangesMissed, InputProblem
from mcp_core.protocol.messages._outbox import MessageKind
from mcp_core.protocol.revisions._methods import Method, Step
from mcp_core.protocol.schema._param_headers import param_headers
from mcp_core.types import CallToolParams, Params

from ._operation import (
    ACCEPT_EVENT_STREAM,
    GATE_TIMEOUT,
    LONG_LIVED,
    REPEATABLE,
    STEPS,
    Accepted,
    Failed,
    LegacyServer,
    Messages,
    PlainOutcome,
    ResponseBody,
    SessionRejected,
    Wait,
    handshake_step,
)
from ._reconnect import Reconnection
from ._requests import EventStreamGet, SessionDelete, StreamablePost, with_prefix
from ._sse_transport import HttpSseTransport
from ._transport import Transport

if TYPE_CHECKING:
    from mcp_core._errors import McpTrioError
    from mcp_core.http.wire._messages import Head, Headers
    from mcp_core.protocol.messages._outbox import Outgoing
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.protocol.schema._param_headers import ParamHeaders
    from mcp_core.types import ListToolsResult, RequestId

    from ._operation import HttpOperation, Outcomes
    from ._transport import ClientState

__all__ = ["StreamableHttpTransport", "ToolHeaders"]

_ACCEPT: Final = (b"accept", JSON + b", " + EVENT_STREAM)
# The specification allows visible ASCII; the length is our limit.
_SESSION_ID: Final = re.compile(rb"[!-~]{1,1024}")
_CALL_TOOL: Final = "tools/call"
_CANCEL_TASK: Final = "tasks/cancel"
# Seconds that a server has to respond to the GET of the standalone stream.
_STREAM_OPEN_TIMEOUT: Final = 1.0
# Tools with mirrored arguments that are remembered. Above it the tools listed first are forgotten,
# and a call of one of them costs one more `tools/list`.
_MAX_TOOLS: Final = 4096
# Characters in such a tool's name. The specification recommends at most 128.
_MAX_TOOL_NAME: Final = 1024


class StreamableHttpTransport(Transport):
    """The transport of every revision but 2024-11-05.

    `session` is the session id that the server has assigned; None without a session. `is_unproven`
    is True while nothing was accepted in a session that replaces a lost one. `reading` has, by the
    id of our request, the operation on which its response is expected.
    """

    def __init__(self, state: ClientState, tools: ToolHeaders) -> None:
        super().__init__(state)
        self._tools = tools
        self.session: bytes | None = None
        self._renewing = False  # a new session is being negotiated
        self.is_unproven = False
        # Our requests that were rejected with their session, and are sent again.
        self._repeated: set[RequestId] = set()
        # Methods to which the server has answered 400 in a new session too: it isn't the session.
        self._always_rejected: set[str] = set()
        self._told_of_status = False
        self.reading: dict[RequestId, StreamablePost | EventStreamGet] = {}
        self._standalone_stream: EventStreamGet | None = None

    def __repr__(self) -> str:
        session = "no session" if self.session is None else "a session"
        return (
            f"<StreamableHttpTransport, {session}, {len(self.reading)} calls, {len(self._held)} "
            "messages held>"
        )

    def close(self, now: float) -> None:
        super().close(now)
        for operation in self.reading.values():
            if isinstance(operation, StreamablePost) and operation.out.method == _CANCEL_TASK:
                # Sent for a call that was given up, perhaps by the end of its client.
                self.state.forget(operation)
            else:
                self.state.drop(operation)
        self.reading.clear()
        if self._standalone_stream is not None:
            self.state.drop(self._standalone_stream)
        if self.session is not None:
            self.state.make(
                SessionDelete(), b"DELETE", self.state.url.target, self.headers(), brief=True
            )

    def request_answered(self, id: RequestId, now: float) -> None:
        operation = self.reading.get(id)
        if operation is not None and operation.key:
            # Its own response may never come, if this one arrived on another stream.
            self.state.linger(operation, now)

    # -- Sending -----------------------------------------------------------------------------------

    def post(self, out: Outgoing, now: float) -> StreamablePost | None:
        try:
            headers = self._message_headers(out)
        except ValueError as exc:
            problem = f"{out.method} cannot be sent over HTTP: {exc}"
            self.state.message_failed(out, LocalProtocolError(problem), now, 0)
            return None
        post = StreamablePost(self.state.conn, self.state.options, out, self.session)
        method = out.method
        kind = out.kind
        self.state.make(
            post,
            b"POST",
            self.state.url.target,
            [_ACCEPT, CONTENT_TYPE_JSON, *headers],
            out,
            idempotent=method in REPEATABLE or kind is MessageKind.RESPONSE,
            long_lived=method in LONG_LIVED,
            brief=kind is not MessageKind.REQUEST,
        )
        if post.id is None:
            self.act(post, post.restart_timeout(now), now)
        else:
            self.reading[post.id] = post
        return post

    def _message_headers(self, out: Outgoing) -> Headers:
        """Return the headers that the revision requires for a message.

        Raises:
            ValueError: an argument in the message has no spelling as a header.
        """
        dialect = out.dialect
        if dialect is None or not dialect.http.mirrored_headers:
            return [] if handshake_step(out) is Step.INITIALIZE else self.headers(dialect)
        conn = self.state.conn
        row = conn.config.dialect_configs[conn.role][dialect].sends.get(out.method) or Method(
            out.method, None, Params
        )
        mirrored: ParamHeaders | None = None
        if out.method == _CALL_TOOL:
            params = out.params
            mirrored = self._tools.by_tool.get(
                params.name if isinstance(params, CallToolParams) else params["name"]
            )
        return request_headers(row, out.params, dialect.version, mirrored)

    def headers(self, dialect: Dialect | None = None) -> Headers:
        """Return version and session id as headers of a stateful revision, as far as known."""
        peer = self.state.conn.peer
        if dialect is None and peer is not None:
            dialect = peer.dialect
        headers = []
        if dialect is not None and dialect.http.version_header:
            headers.append((PROTOCOL_VERSION, dialect.version.encode()))
        if self.session is not None:
            headers.append((SESSION_ID, self.session))
        return headers

    def cancel(self, out: Outgoing, now: float) -> None:
        assert out.id is not None
        assert out.dialect is not None
        operation = self.reading.pop(out.id, None)
        # Only a request that was sent can be cancelled (basic/utilities/cancellation, Behavior
        # Requirements).
        if operation is None or self.state.drop_unsent(out.id):
            return  # answered in the meantime, or not sent yet
        if out.dialect.http.disconnect_cancels or operation.session != self.session:
            self.state.drop(operation)
            return
        if operation.key:
            # Still read, because the server may cancel its own requests on this stream (rule 3).
            self.reading[out.id] = operation
            self.state.linger(operation, now)
        else:
            self.state.drop(operation)
        self.post(out, now)

    def _connect(self, stream: EventStreamGet) -> None:
        """Queue the GET of an event stream, with the last event's id if there was one."""
        dialect = None if stream.out is None else stream.out.dialect
        headers = [ACCEPT_EVENT_STREAM, *self.headers(dialect)]
        last_id = last_event_id(stream.reconnection.last_id)
        if last_id:
            headers.append((LAST_EVENT_ID, last_id))
        self.state.make(stream, b"GET", self.state.url.target, headers, long_lived=True)

    # -- What responses say ------------------------------------------------------------------------

    def act(self, operation: HttpOperation, outcomes: Outcomes, now: float) -> None:
        assert isinstance(operation, StreamablePost | EventStreamGet)
        for outcome in outcomes:
            if isinstance(outcome, ResponseBody):
                assert isinstance(operation, StreamablePost)
                if operation.id is not None:
                    self.reading.pop(operation.id, None)
                self._receive_body(operation, outcome, now)
            elif isinstance(outcome, Messages):
                self._receive_messages(operation, outcome.messages, now)
            elif isinstance(outcome, Failed):
                self._fail(operation, outcome.error, now, outcome.status)
            elif isinstance(outcome, Wait):
                self.state.set_deadline(operation, outcome.until)
            elif isinstance(outcome, Accepted):
                assert isinstance(operation, StreamablePost)
                try:
                    self._accepted(operation, outcome.head)
                except RemoteProtocolError as exc:
                    error = with_prefix(operation.error_prefix, exc)
                    self._fail(operation, error, now, outcome.head.status)
                    break
            elif isinstance(outcome, SessionRejected):
                self._session_rejected(operation, outcome.otherwise, now)
            elif isinstance(outcome, LegacyServer):
                assert isinstance(operation, StreamablePost)
                HttpSseTransport(self.state, operation, outcome.response, self).begin(now)
            else:
                assert isinstance(outcome, PlainOutcome)
                self._act_on_plain(operation, outcome, now)

    def _act_on_plain(
        self, operation: StreamablePost | EventStreamGet, plain: PlainOutcome, now: float
    ) -> None:
        if plain is PlainOutcome.ANSWERED:
            self._forget(operation)
        elif plain is PlainOutcome.ABANDON:
            self._forget(operation)
            self.state.drop(operation)
        elif plain is PlainOutcome.SESSION_LOST:
            self._session_lost(operation, now)
        elif plain is PlainOutcome.MISSED_CHANGES:
            self.state.events.append(ChangesMissed())
        elif plain is PlainOutcome.NO_STREAM:
            self._standalone_stream = None
        elif isinstance(operation, EventStreamGet):
            assert plain is PlainOutcome.RECONNECT
            self._connect(operation)
        else:
            assert plain is PlainOutcome.RESUME
            self._resume(operation, now)

    def _receive_messages(
        self, operation: StreamablePost | EventStreamGet, messages: list[bytes], now: float
    ) -> None:
        """Pass messages of an event stream to the connection. Let a stream end after its result."""
        id = operation.id
        response = operation.response
        assert response is not None
        if operation.session not in (None, self.session) and any(map(_is_request, messages)):
            # Our response would go to the new session, where it may answer another request.
            self._fail(operation, _session_lost_error(operation), now)
            return
        for data in messages:
            for answered in self.state.receive(data, now, id, response.status):
                if answered != id:
                    self.request_answered(answered, now)
        if id is not None and not self.state.conn.has_outgoing(id):
            self.state.linger(operation, now)

    def _fail(
        self,
        operation: StreamablePost | EventStreamGet,
        error: McpTrioError,
        now: float,
        status: int = 0,
    ) -> None:
        """End an operation with an error. What still arrives is ignored."""
        self._forget(operation)
        self.state.drop(operation)
        if operation.out is None:
            self._standalone_stream = None
            self.state.report_error(error)
        else:
            self.state.message_failed(operation.out, error, now, status)

    def _accepted(self, post: StreamablePost, head: Head) -> None:
        """Take the session id from the response to the handshake, or note that the session works.

        Raises:
            RemoteProtocolError: the session id isn't visible ASCII, or too long.
        """
        step = STEPS.get(post.out.method)
        if step is Step.INITIALIZE:
            session = header(head, SESSION_ID)
            if session is not None and not _SESSION_ID.fullmatch(session):
                raise RemoteProtocolError(
                    "the session id of the server is not visible ASCII, or longer than 1024 "
                    "characters"
                )
            self.session = session
        elif step is not Step.INITIALIZED and post.session == self.session:
            self.is_unproven = False

    def _resume(self, post: StreamablePost, now: float) -> None:
        """Resume the stream that was the response to a message."""
        assert post.id is not None
        assert post.reconnection is not None
        if post.session not in (None, self.session):
            # Event ids are unique in one session only.
            self._fail(post, _session_lost_error(post), now)
            return
        stream = EventStreamGet(self.state.conn, post.reconnection, self.session, post.out)
        self.reading[post.id] = stream
        self.act(stream, stream.retry("the stream ended", now), now)

    def _session_rejected(
        self, operation: StreamablePost | EventStreamGet, otherwise: Outcomes, now: float
    ) -> None:
        """Negotiate a new session, if the server may have lost it; else act on `otherwise`."""
        out = operation.out
        method = "" if out is None else out.method
        is_repeated = operation.id is not None and operation.id in self._repeated
        is_current = operation.session == self.session
        if is_repeated and is_current:
            self._always_rejected.add(method)
        if (
            is_repeated
            or method in self._always_rejected
            or self.state.conn.state is not State.READY
            or (is_current and (self.is_unproven or self._is_in_use()))
        ):
            self.act(operation, otherwise, now)
            return
        if out is None:
            # The standalone stream has no message that shows whether the new session is better.
            self._always_rejected.add(method)
        if not self._told_of_status:
            self._told_of_status = True
            problem = (
                "the server answered HTTP status 400 to its session id, which counts as 404: a new "
                "session is negotiated"
            )
            self.state.events.append(InputProblem(problem))
        self._session_lost(operation, now)

    def _is_in_use(self) -> bool:
        """Return True if the server is at work in the session, which it can't have lost then.

        It sends on the stream of a call, or waits for our response to a request of its own.
        """
        conn = self.state.conn
        return conn.in_flight > 0 or any(
            operation.is_streaming and conn.has_outgoing(id)
            for id, operation in self.reading.items()
            if operation.session == self.session
        )

    def _session_lost(self, operation: StreamablePost | EventStreamGet, now: float) -> None:
        """Negotiate a new session: the server doesn't know the one that `operation` named."""
        state = self.state
        # Requests that were in flight in the old session are rejected too, after the first one.
        first = operation.session == self.session
        state.forget(operation)
        if state.conn.state is not State.READY:
            return
        if first and self.is_unproven:
            state.conn.close(
                ConnectionLost("the server lost a new session before it accepted a message in it")
            )
            return
        if first:
            self.session = None
            self._renewing = True
            self.is_unproven = True
            self._set_gate(None, now)
            self.responses.clear()  # the requests that they answer ended with the session
            self._fail_streams(operation, now)
            self._repeated = set(filter(state.conn.has_outgoing, self._repeated))
            state.conn.reinitialize(now)
        if isinstance(operation, StreamablePost):
            out = operation.out
            self._forget(operation)
            # Responses aren't repeated: the requests that they answer ended with the session.
            again = (
                out.kind is MessageKind.NOTIFICATION
                if operation.id is None
                else state.conn.has_outgoing(operation.id)
            )
            if again and operation.id in self._repeated:
                state.message_failed(out, _session_lost_error(operation), now, 0)
            elif again and handshake_step(out) is not Step.INITIALIZED:
                if operation.id is not None:
                    self._repeated.add(operation.id)
                self.send(out, now)
        elif operation.id is not None:
            self._fail(operation, _session_lost_error(operation), now)

    def _fail_streams(self, excluded: StreamablePost | EventStreamGet, now: float) -> None:
        """Fail the requests with an open stream, but `excluded`: a lost session sends nothing.

        Requests without a response are left alone: the server will reject each of them by itself.
        """
        if self._standalone_stream is not None:
            self.state.drop(self._standalone_stream)
            self._standalone_stream = None
        for operation in list(self.reading.values()):
            if operation is not excluded and operation.is_streaming:
                self._fail(operation, _session_lost_error(operation), now)

    def _forget(self, operation: StreamablePost | EventStreamGet) -> None:
        """Forget an operation: its request has been answered, or has failed."""
        if operation.id is not None and self.reading.get(operation.id) is operation:
            del self.reading[operation.id]

    # -- Order of messages -------------------------------------------------------------------------

    def _set_gate(
        self, operation: HttpOperation | None, now: float, seconds: float = GATE_TIMEOUT
    ) -> None:
        super()._set_gate(operation, now, seconds)
        self.holds = self.holds or self._renewing

    def _must_hold(self, out: Outgoing) -> bool:
        if self._renewing and (out.dialect is None or out.dialect.stateful):
            return True  # the probe, which is stateless, is itself a part of the negotiation
        return super()._must_hold(out)

    def send_waiting(self, now: float) -> None:
        if self._renewing:
            peer = self.state.conn.peer
            if peer is not None and not peer.dialect.stateful:
                # The server was upgraded: there is no `initialized` that messages wait for.
                self._end_renewal(now)
                super()._send_held(now)
        super().send_waiting(now)

    def _send_held(self, now: float) -> None:
        gate = self._gate
        if (
            isinstance(gate, StreamablePost)
            and handshake_step(gate.out) is Step.INITIALIZED
            and gate.accepted
        ):
            reconnection = Reconnection(self.state.options, endless=True)
            stream = EventStreamGet(self.state.conn, reconnection, self.session)
            self._standalone_stream = stream
            self._connect(stream)
            self._set_gate(stream, now, _STREAM_OPEN_TIMEOUT)
            return
        if gate is not None and gate.id is None:
            # The handshake is complete: `initialized` was answered, and the stream is open or will
            # not be.
            self._end_renewal(now)
        super()._send_held(now)

    def _end_renewal(self, now: float) -> None:
        """Allow messages again, except those that the new peer could not read."""
        self._renewing = False
        self.holds = self._gate is not None
        self._drop_answered()
        self._fail_other_revisions(now)

    def _drop_answered(self) -> None:
        """Drop operations of requests that have ended, such as a version probe that timed out."""
        for id, operation in list(self.reading.items()):
            if not self.state.conn.has_outgoing(id):
                self._forget(operation)
                self.state.drop(operation)

    def _fail_other_revisions(self, now: float) -> None:
        """Fail held messages that were encoded for a revision other than the session's."""
        peer = self.state.conn.peer
        assert peer is not None
        for out in list(self._held):
            if out.dialect not in (None, peer.dialect):
                self._held.remove(out)
                problem = (
                    f"{out.method}: the server has lost the session, and negotiated another "
                    "revision for the new one"
                )
                self.state.message_failed(out, ConnectionLost(problem), now, 0)


def _is_request(data: bytes) -> bool:
    try:
        envelope = decode(data)
    except BadMessage:
        return False
    return envelope.method is not UNSET and envelope.id is not UNSET


def _session_lost_error(operation: StreamablePost | EventStreamGet) -> ConnectionLost:
    return ConnectionLost(
        f"{operation.error_prefix}the server has lost the session before it answered"
    )


class ToolHeaders:
    """The arguments that a client mirrors into headers, for each tool of a server.

    The last `tools/list` counts. If the server has changed a tool since, it rejects the call, and
    the list is requested again (`AbstractClient.call_tool`).

    `by_tool` has the mirrored arguments of each tool that has any.
    """

    __slots__ = ("by_tool",)

    def __init__(self) -> None:
        self.by_tool: dict[str, ParamHeaders] = {}

    def __repr__(self) -> str:
        return f"<ToolHeaders of {len(self.by_tool)} tools>"

    def learn(self, page: ListToolsResult) -> list[RemoteProtocolError]:
        """Learn from a page of `tools/list`, and remove the tools from it that cannot be called.

        Those are the tools with invalid `x-mcp-header` annotations; the others stay (2026-07-28,
        basic/transports/streamable-http, Custom Headers from Tool Parameters).

        Returns:
            An error for each tool that was removed.
        """
        usable = []
        problems = []
        for tool in page.tools:
            self.by_tool.pop(tool.name, None)
            try:
                mirrored = param_headers(tool.input_schema)
                if mirrored and len(tool.name) > _MAX_TOOL_NAME:
                    raise ValueError(f"its name is longer than {_MAX_TOOL_NAME} characters")
            except ValueError as exc:
                name = repr(tool.name[:_MAX_TOOL_NAME])
                problems.append(RemoteProtocolError(f"tool {name} is left out: {exc}"))
                continue
            usable.append(tool)
            if mirrored:
                self.by_tool[tool.name] = mirrored
                if len(self.by_tool) > _MAX_TOOLS:
                    del self.by_tool[next(iter(self.by_tool))]
        if problems:
            page.tools = usable
        return problems
