"""One MCP endpoint over HTTP: routes requests to conversations, and ends the conversations.

1. A request is routed by its verb, its revision and whether it names a session (`ROUTES`). Anything
   else is rejected. The revision is in the version header, or else in the body: one without
   handshakes makes each request a conversation, the others make each session one.
2. A session belongs to the principal that began it. For any other the response is, to the letter,
   the same as for a session that doesn't exist.
3. A head and its body are two calls. What was checked for the head may have changed since, such as
   the session, and is checked again for the body.

Drivers learn what to write from `ready`. Sources: basic/transports of all revisions.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_core import types as t
from mcp_core._limits import Bucket, Buckets
from mcp_core.http.wire._mcp_headers import (
    LAST_EVENT_ID,
    METHOD,
    PROTOCOL_VERSION,
    SESSION_ID,
    RequestHeaderValidator,
)
from mcp_core.http.wire._media_types import CONTENT_TYPE_JSON
from mcp_core.http.wire._messages import Action, ErrorResponse, Headers, RequestHead
from mcp_core.http.wire._sse import encode_event
from mcp_core.http.wire._websocket_upgrade import find_upgrade_error
from mcp_core.protocol.connection._connection import Connection
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.jsonrpc._body import parse_body
from mcp_core.protocol.jsonrpc._codec import encode, encode_error
from mcp_core.protocol.messages._events import ConnectionClosed, Event, GrantLike, Peer, PeerReady
from mcp_core.protocol.messages._incoming import MessageContext
from mcp_core.protocol.revisions._config import Config
from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.protocol.revisions._methods import Role
from mcp_core.protocol.schema._param_headers import ParamHeaders

from . import _checks
from ._auth import AUTHORIZED_VERBS, AuthCheck, EndpointAuth
from ._exchange import Exchange, ResponseMode
from ._incoming_request import IncomingHttpRequest, withheld_headers
from ._options import HttpOptions
from ._quotas import client_key
from ._session import (
    Conversation,
    EndpointState,
    Session,
    Sessions,
    cancelled_ids,
    session_in_target,
    target_with_session,
)
from ._stream import EventLog, EventStream
from ._timeouts import TimeoutQueue
from ._websocket_session import WebSocketSessions, begin_websocket

if TYPE_CHECKING:
    from mcp_core.protocol.jsonrpc._body import ParsedBody
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.types import RequestId

    from ._checks import ParsedHead

__all__ = ["ROUTES", "Endpoint"]

_SERVER, _READY = Role.SERVER, State.READY
_UNDECIDED, _STREAM = ResponseMode.UNDECIDED, ResponseMode.STREAM
_VERSION_IN_META: Final = b'"io.modelcontextprotocol/protocolVersion"'
# The revision of a request without a version header (2025-06-18), until the handshake names one.
_DEFAULT_DIALECT: Final = DIALECTS["2025-03-26"]


class Endpoint:
    """One MCP URL.

    A `Router` has the same methods for all of its endpoints, and is what drivers use. Their `now`
    is a monotonic time in seconds, on one clock for all calls.

    Args:
        configure: returns the configuration as it is now.
        options: how the endpoint is served.
        entropy: returns that many random bytes, for session ids that cannot be guessed.
        param_headers: returns which arguments of a tool are mirrored in headers.
        token: belongs to the driver, such as the server that this endpoint serves.
        auth: the authorization of requests; None serves every client.
    """

    def __init__(
        self,
        configure: Callable[[], Config],
        options: HttpOptions,
        *,
        entropy: Callable[[int], bytes],
        param_headers: Callable[[str], ParamHeaders | None],
        token: Any = None,
        auth: EndpointAuth | None = None,
    ) -> None:
        limits = options.limits
        self.options = options
        self.auth = auth
        self._withheld = withheld_headers(auth)
        self.state = EndpointState(limits, token, auth, WebSocketSessions())
        self.events = self.state.events
        self.dirty = self.state.dirty
        self.ready = self.state.ready
        self.log = self.state.log
        self.sessions = Sessions(limits)
        self.one_shots = self.state.one_shots
        self._buckets: Buckets | None = None  # of principals, each for all of its connections
        self.websockets = self.state.websockets
        self._retry = round(options.retry * 1000)
        self._configure = configure
        self._entropy = entropy
        self._param_headers = param_headers
        self._config: Config | None = None
        self._closing = False
        # Exchanges without a complete response: when to send a comment, unless there is output.
        self._awaiting_output: TimeoutQueue[Exchange] = TimeoutQueue(options.comment_interval)
        self._reading: OrderedDict[Exchange, float] = OrderedDict()  # deadlines of their bodies

    def __repr__(self) -> str:
        return (
            f"<Endpoint with {len(self.sessions)} sessions, {len(self._awaiting_output)} exchanges "
            "under way>"
        )

    @property
    def idle(self) -> bool:
        """True if no response is under way."""
        return not self._awaiting_output and not self.ready

    # -- The head of a request ---------------------------------------------------------------------

    def begin(
        self,
        head: RequestHead,
        now: float,
        *,
        token: object = None,
        principal: str = "",
        address: str = "",
        switches: bool = False,
    ) -> Exchange:
        """Return the exchange of a request whose `head` has arrived, as `Router.begin` does.

        `switches`: the request asks for a WebSocket.
        """
        self.state.now = now
        if self._configure() is not self._config:
            self._refresh()
        verb = head.method
        exchange = Exchange(self, token, retry=self._retry)
        parsed = _checks.parse_head(head.headers)
        headers = exchange.headers = parsed.headers
        exchange.fields = head.headers
        exchange.is_head = verb == b"HEAD"
        exchange.principal = principal
        proxies = self.options.trusted_proxies
        exchange.address = (
            address if proxies is None else proxies.client_address(address, head.headers)
        )
        exchange.wants_websocket = switches
        origin = headers.get(b"origin")
        if origin is not None and self.options.host_origin_policy.is_listed_origin(origin):
            exchange.extra_headers = _checks.cors_headers(origin, with_auth=self.auth is not None)
        if self.auth is None or verb not in AUTHORIZED_VERBS:
            self._handle_head(exchange, head, parsed)
            return exchange
        # Before authorization: a web page of another site must not learn whether its token is good.
        rejection = _checks.check_host_and_origin(parsed, self.options)
        if rejection is not None:
            self.auth.log_line(
                f"{verb.decode('ascii')} refused with {rejection.status}: {rejection.message}"
            )
            self._reject(exchange, rejection)
            return exchange
        check = exchange.auth_check = AuthCheck(
            self.auth,
            head,
            on_granted=partial(self._granted, exchange, head, parsed),
            on_denied=partial(self._denied, exchange),
        )
        check.begin(now)
        return exchange

    def _granted(
        self,
        exchange: Exchange,
        head: RequestHead,
        parsed: ParsedHead,
        grant: GrantLike,
        now: float,
    ) -> None:
        if exchange.auth_check is None:
            return  # the client has disconnected meanwhile
        self.state.now = now
        exchange.grant = grant
        exchange.principal = grant.principal
        self._handle_head(exchange, head, parsed)
        # Last: if an exception is raised above, the request can still be denied.
        exchange.auth_check = None

    def _denied(self, exchange: Exchange, rejection: ErrorResponse, now: float) -> None:
        if exchange.auth_check is None:
            return  # as above
        exchange.auth_check = None
        self.state.now = now
        self._reject(exchange, rejection)

    def _handle_head(self, exchange: Exchange, head: RequestHead, parsed: ParsedHead) -> None:
        verb, headers = head.method, parsed.headers
        if exchange.wants_websocket:
            self._switch_to_websocket(exchange, head, parsed)
            return
        rejection = _checks.check_head(verb, parsed, self.options, self._session_config)
        if rejection is not None:
            self._reject(exchange, rejection)
            return
        if verb == b"OPTIONS":
            allow = [(b"allow", _checks.ALLOWED)]
            if exchange.extra_headers:
                allow = _checks.preflight_headers(headers)
            self._respond(exchange, 204, allow)
            return
        exchange.mirrored_headers = parsed.mirrored
        exchange.reply_format = parsed.accepted or self.options.reply
        version = headers.get(PROTOCOL_VERSION)
        dialect = self._by_version.get(version) if version is not None else None
        # The header names a version, and not one that has sessions.
        stateless = version is not None and (dialect is None or not dialect.stateful)
        modern = exchange.is_stateless = stateless and self._stateless_config is not None
        id = None if modern else headers.get(SESSION_ID) or session_in_target(head.target)
        if stateless and (not modern or (dialect is None and verb != b"POST")):
            # The body of a POST has the version again, and the error for that one is more precise.
            served = ", ".join(self._session_config.versions)
            text = f"that protocol version is not served; served are {served}"
            self._reject(exchange, ErrorResponse(400, text))
            return
        route = ROUTES.get((verb, modern, id is not None))
        if route is None:
            sessions = self.options.sessions and self._session_config.stateful and not modern
            allow = [(b"allow", _checks.ALLOWED)] if sessions else _checks.ONLY_POST
            self._reject(
                exchange, ErrorResponse(405, "this revision does not use that HTTP method", allow)
            )
            return
        if id is not None:
            rejection = self._find_session(exchange, id, dialect)
            if rejection is not None:
                self._reject(exchange, rejection)
                return
        route(self, exchange, head)

    def _find_session(
        self, exchange: Exchange, id: bytes, dialect: Dialect | None
    ) -> ErrorResponse | None:
        """Find the session that a request names. `dialect` is the version header's."""
        session = self.sessions.get(id)
        is_sse = SESSION_ID not in exchange.headers
        if (
            session is None
            or session.principal != exchange.principal
            or session.legacy_sse is not is_sse
        ):
            if session is not None and self.auth is not None:
                self.auth.log_line("refused with 404: the session belongs to another principal")
            return _checks.NO_SESSION
        peer = session.conn.peer
        if peer is not None and dialect is not None and dialect is not peer.dialect:
            version = peer.dialect.version
            text = f"this session speaks {version}: send it in MCP-Protocol-Version"
            return ErrorResponse(400, text)
        exchange.session = exchange.conversation = session
        self.sessions.mark_activity(session, self.state.now)
        return None

    def _switch_to_websocket(
        self, exchange: Exchange, head: RequestHead, parsed: ParsedHead
    ) -> None:
        assert self._config is not None
        client = client_key(exchange.principal, exchange.address)
        rejection = (
            _checks.check_head(_checks.WEBSOCKET_UPGRADE, parsed, self.options, self._config)
            or (_checks.ENDING if self._closing else self.one_shots.find_capacity_error(client))
            or find_upgrade_error(head, self.options.subprotocols)
        )
        if rejection is not None:
            self._reject(exchange, rejection)
            return
        bucket = self.bucket(exchange.principal)
        http = IncomingHttpRequest.of_upgrade(head.headers, exchange.address, self._withheld)
        begin_websocket(
            exchange,
            head,
            http,
            self.state,
            self._config,
            bucket,
            client,
            self.options.subprotocols,
        )
        self.ready[exchange] = None

    # -- Routes ------------------------------------------------------------------------------------

    def _read_body(self, exchange: Exchange, head: RequestHead) -> None:
        """POST."""
        if self._closing and exchange.session is None:
            self._reject(exchange, _checks.ENDING)
            return
        exchange.reading = True
        exchange.body_limit = self._session_config.limits.message
        self._reading[exchange] = self.state.now + self.options.limits.body_time

    def _open_stream(self, exchange: Exchange, head: RequestHead) -> None:
        """GET: the standalone stream of a session, or a stream that is resumed."""
        session = exchange.session
        assert isinstance(session, Session)
        if session.legacy_sse:
            self._reject(exchange, _checks.POST_HERE)
            return
        found = session.find_stream(exchange.headers.get(LAST_EVENT_ID))
        if isinstance(found, ErrorResponse):
            self._reject(exchange, found)
            return
        stream, cursor = found
        if stream is session.standalone_stream and not self.options.get_stream:
            self._reject(exchange, _checks.NO_GET_STREAM)
            return
        if exchange.grant is not None and stream.needed_scopes:
            assert self.auth is not None
            rejection = self.auth.authorize_resume(exchange.grant, stream.needed_scopes)
            if rejection is not None:
                self._reject(exchange, rejection)
                return
        session.attach(exchange, stream, cursor)
        if stream.long_lived:
            exchange.expires_at = self._grant_expiry(exchange)
        exchange.begin_stream()
        session.mark_dirty()  # changes that were held back for the stream may be sent now
        self._await_output(exchange)

    def _open_legacy_sse(self, exchange: Exchange, head: RequestHead) -> None:
        """GET without a session: how a client of 2024-11-05 begins one."""
        if (
            not self.options.sessions
            or not self.options.get_stream
            or not self._session_config.stateful
            or PROTOCOL_VERSION in exchange.headers
        ):
            self._reject(exchange, _checks.NO_STREAM)
            return
        session = self._new_session(exchange, is_sse=True)
        if session is None:
            return
        self.sessions.add(session, self.state.now)
        exchange.stream = session.standalone_stream
        session.standalone_stream.exchange = exchange
        exchange.expires_at = self._grant_expiry(exchange)
        exchange.begin_stream()
        post_to = target_with_session(head.target, session.id)
        exchange.send_raw(encode_event(post_to, event=b"endpoint"))
        self._await_output(exchange)

    def _delete_session(self, exchange: Exchange, head: RequestHead) -> None:
        """DELETE."""
        assert isinstance(exchange.session, Session)
        self.sessions.end(exchange.session)
        self._respond(exchange, 204)

    # -- Bodies ------------------------------------------------------------------------------------

    def receive_data(
        self, exchange: Exchange, data: bytes, now: float, *, end: bool = False
    ) -> None:
        """Receive `data` of the body of `exchange`. `b""`, or a piece with `end`, is the last."""
        self.state.now = now
        body = exchange.receive_data(data, end=end)
        if body is not None:
            del self._reading[exchange]
            if exchange.client is not None:
                self.state.bodies.release(exchange)
            self._handle_body(exchange, body)
        elif exchange.too_long and exchange.reading:
            self._reject(exchange, _checks.body_too_long(self._session_config))
        elif exchange.reading:
            exchange.client = client_key(exchange.principal, exchange.address)
            self.state.bodies.hold(exchange, exchange.buffered, self.options.limits)

    def refuse_body(self, exchange: Exchange, rejection: ErrorResponse) -> None:
        """Answer the unfinished body of `exchange`, which is in excess, with `rejection`."""
        self._reject(exchange, rejection)

    def _handle_body(self, exchange: Exchange, data: bytes) -> None:
        session = exchange.session
        config = session.conn.config if session is not None else self._session_config
        body = parse_body(data, config.limits)
        if exchange.grant is not None and self._is_denied(exchange, body, exchange.grant, config):
            return
        if not body.messages:
            self._reject(exchange, _checks.EMPTY_BODY)
        elif isinstance(session, Session):
            if self.sessions.get(session.id) is not session:
                self._reject(exchange, _checks.NO_SESSION)
            else:
                self._post_in_session(exchange, session, body)
        elif self._closing:
            self._reject(exchange, _checks.ENDING)
        elif self._stateless_config is not None and (
            exchange.is_stateless
            or not self._session_config.stateful
            or (PROTOCOL_VERSION not in exchange.headers and _VERSION_IN_META in data)
        ):
            config = self._stateless_config
            exchange.mcp_method = exchange.headers.get(METHOD, b"").decode("ascii", "replace")
            if body.is_array:
                body = body.as_message()
            self._post_one_shot(exchange, body, config, config.stateless[0])
        else:
            self._post_without_session(exchange, body)

    def _is_denied(
        self, exchange: Exchange, body: ParsedBody, grant: GrantLike, config: Config
    ) -> bool:
        """Authorize each message in a body. Return True if one is denied; then it is answered."""
        assert self.auth is not None
        verdict = self.auth.authorize_body(grant, body, config)
        if not isinstance(verdict, ErrorResponse):
            exchange.needed_scopes = verdict
            return False
        message = body.as_message()
        exchange.mcp_method = message.method
        ids = message.request_ids
        self._reject(exchange, verdict, ids[0] if ids else None)
        return True

    def _post_in_session(self, exchange: Exchange, session: Session, body: ParsedBody) -> None:
        conn = session.conn
        if not session.batches:
            body = body.as_message()
        ids = body.request_ids
        exchange.mcp_method = body.method
        if session.legacy_sse:
            carrier = session.standalone_stream.exchange
            assert carrier is not None  # the session ends with it
            # The stream cannot be resumed, and the client has shown a newer token.
            carrier.expires_at = max(carrier.expires_at, self._grant_expiry(exchange))
            self._feed(session, exchange, body)
            self._respond(exchange, 202)
        elif len(set(ids)) < len(ids) or any(id in session.stream_by_request for id in ids):
            self._reject(exchange, _checks.ID_IN_USE, ids[0] if len(ids) == 1 else None)
        elif ids and not session.make_room_for_stream(self.options.limits.streams):
            self._reject(exchange, _checks.TOO_MANY_STREAMS)
        else:
            self._post(exchange, session, body, ids)
        for id in cancelled_ids(body):
            if not conn.has_incoming(id):
                session.drop_request(id)  # it waited for a handler, and is gone without an event
        if conn.state is _READY:
            self.sessions.initialized(session, self.state.now)

    def _post_without_session(self, exchange: Exchange, body: ParsedBody) -> None:
        """Process a body without a session, in a revision that has sessions."""
        sessions = self.options.sessions
        version = exchange.headers.get(PROTOCOL_VERSION)
        dialect = _DEFAULT_DIALECT
        if version is not None:
            dialect = self._by_version.get(version, _DEFAULT_DIALECT)
        if sessions or not dialect.batches:
            body = body.as_message()
        ids = body.request_ids
        exchange.mcp_method = body.method
        is_initialize = body.method == "initialize"
        if sessions and is_initialize and ids:
            self._begin_session(exchange, body, ids)
        elif not sessions and not is_initialize:
            peer = Peer(dialect, t.ClientCapabilities())
            self._post_one_shot(exchange, body, self._one_shot_config, dialect, peer)
        elif sessions and body.is_message:
            self._reject(exchange, _checks.NOT_INITIALIZED)
        else:
            config = self._one_shot_config
            self._post_one_shot(exchange, body, config, config.stateful[0])

    def _begin_session(self, exchange: Exchange, body: ParsedBody, ids: list[RequestId]) -> None:
        session = self._new_session(exchange, ids[0])
        if session is None:
            return
        self._post(exchange, session, body, ids)
        if session.conn.peer is not None:
            self.sessions.add(session, self.state.now)
            exchange.begins_session = True
        else:
            session.close()

    def _post_one_shot(
        self,
        exchange: Exchange,
        body: ParsedBody,
        config: Config,
        dialect: Dialect,
        peer: Peer | None = None,
    ) -> None:
        """Process a body that is a conversation by itself, in `dialect`."""
        principal = exchange.principal
        client = client_key(principal, exchange.address)
        if len(self.one_shots) >= self.one_shots.quota:
            rejection = self.one_shots.find_capacity_error(client)
            if rejection is not None:
                self._reject(exchange, rejection, next(iter(body.request_ids), None))
                return
        bucket = self.bucket(principal) if principal else None
        conn = Connection(_SERVER, config, peer=peer, bucket=bucket)
        conversation = Conversation(self.state, conn, principal, dialect.http, client)
        exchange.conversation = conversation
        self.one_shots.add(conversation)
        long_lived = exchange.headers.get(METHOD) in _checks.LONG_LIVED
        if long_lived:
            conn.has_capacity = conversation.has_capacity
            exchange.expires_at = self._grant_expiry(exchange)
        self._post(exchange, conversation, body, body.request_ids, long_lived=long_lived)
        if long_lived and exchange.mode is _UNDECIDED:
            # The connection answers this request by itself, so there is no event of it. Without an
            # event the driver would not know about the conversation, and could publish no changes.
            ready = PeerReady(Peer(dialect, t.ClientCapabilities()))
            self.events.append((conversation, ready))

    def _post(
        self,
        exchange: Exchange,
        conversation: Conversation,
        body: ParsedBody,
        ids: list[RequestId],
        *,
        long_lived: bool = False,
    ) -> None:
        """Feed a body to its connection. The responses to the requests `ids` go to `exchange`."""
        if ids and isinstance(conversation, Session):
            stream = conversation.add_stream(ids, batch=body.is_batch)
        else:
            stream = EventStream(b"", ids, batch=body.is_batch)
        if long_lived and exchange.reply_format == "json":
            exchange.reply_format = "auto"  # changes can be sent on a stream only
        stream.needed_scopes = exchange.needed_scopes
        exchange.stream = stream
        stream.exchange = exchange
        conversation.current_stream = stream
        self._feed(conversation, exchange, body)
        is_session = isinstance(conversation, Session)
        # On a connection of its own a single request is answered by now, or has a handler.
        if stream.pending and (is_session or body.is_batch):
            for id in ids:
                if not conversation.conn.has_incoming(id):
                    conversation.drop_request(id)  # it looked like a request, and gets no response
        if is_session:
            conversation.current_stream = None
        if stream.messages or stream.pending:
            exchange.mode = _UNDECIDED
            self._await_output(exchange)
        else:
            self._respond(exchange, 400 if conversation.rejected else 202)
            self._detach(exchange, conversation)

    def _feed(self, conversation: Conversation, exchange: Exchange, body: ParsedBody) -> None:
        conversation.rejected = False
        validator = RequestHeaderValidator(exchange.mirrored_headers, self._param_headers)
        http = IncomingHttpRequest(exchange.fields, exchange.address, self._withheld)
        via = MessageContext(header_validator=validator, grant=exchange.grant, http=http)
        conversation.conn.receive_parsed(body, self.state.now, via)
        conversation.process_events()
        if conversation.finished:
            self._end(conversation)

    # -- The rest of an exchange -------------------------------------------------------------------

    def disconnected(self, exchange: Exchange, now: float) -> None:
        """Report that the client of `exchange` is gone, or no longer reads."""
        self.state.now = now
        conversation = exchange.conversation
        if exchange.socket is not None:
            assert conversation is not None
            exchange.socket.receive_eof(now)
            conversation.mark_dirty()
        elif exchange.disconnected():
            self._awaiting_output.discard(exchange)
            self.ready.pop(exchange, None)
            self._stop_reading(exchange)
            if conversation is not None:
                self._detach(exchange, conversation)

    def actions_to_send(self, exchange: Exchange) -> list[Action]:
        """Return what to write of `exchange` now."""
        actions = exchange.actions_to_send()
        if not actions:
            return actions
        conversation = exchange.conversation
        if exchange.mode is _STREAM:
            self._awaiting_output.add(exchange, self.state.now)
            assert conversation is not None
            if not self._close_if_expired(exchange):
                conversation.mark_dirty()  # there may be capacity for more now
            return actions
        self._awaiting_output.discard(exchange)
        if conversation is not None:
            conversation.detach(exchange)
            if conversation.finished:
                if conversation in self.one_shots and conversation.retire():
                    self.one_shots.discard(conversation)
                else:
                    self._end(conversation)
        return actions

    def _detach(self, exchange: Exchange, conversation: Conversation) -> None:
        conversation.detach(exchange)
        if conversation.finished:
            self._end(conversation)

    def _end(self, conversation: Conversation) -> None:
        conversation.finished = False
        if isinstance(conversation, Session):
            self.sessions.end(conversation)
        else:
            self.one_shots.discard(conversation)
            conversation.close()

    def _grant_expiry(self, exchange: Exchange) -> float:
        """Return when the grant of `exchange` expires, by this endpoint's clock."""
        if exchange.grant is None or self.auth is None:
            return math.inf
        return self.auth.expiry(exchange.grant, self.state.now)

    def _close_if_expired(self, exchange: Exchange) -> bool:
        """Close a long-lived stream if its access token has expired. Return True if it was closed.

        This is checked on every write and every keep-alive tick. The client reconnects with a new
        token. Running calls may finish.
        """
        conversation = exchange.conversation
        if self.state.now < exchange.expires_at or conversation is None:
            return False
        if conversation.legacy_sse and conversation.conn.in_flight:
            return False  # the responses are sent on this stream, too
        conversation.abort(exchange)
        if conversation.finished:
            self._end(conversation)
        return True

    def _await_output(self, exchange: Exchange) -> None:
        # It may live long and doesn't need them.
        exchange.fields, exchange.headers, exchange.mirrored_headers = [], {}, []
        self._awaiting_output.add(exchange, self.state.now)
        self.ready[exchange] = None

    def _respond(self, exchange: Exchange, status: int, headers: Headers | None = None) -> None:
        exchange.respond(status, headers=headers)
        self.ready[exchange] = None

    def _stop_reading(self, exchange: Exchange) -> None:
        if self._reading.pop(exchange, None) is not None and exchange.client is not None:
            self.state.bodies.release(exchange)

    def _reject(
        self, exchange: Exchange, rejection: ErrorResponse, id: RequestId | None = None
    ) -> None:
        """Answer with an error, which has the `id` of the request if that is known."""
        self._stop_reading(exchange)
        legacy = not exchange.is_stateless and bool(self._session_config.stateful)
        assert self._config is not None
        dialect = _DEFAULT_DIALECT if legacy else self._config.dialects[0]
        code = dialect.codes[rejection.fault]
        error = encode(t.ErrorData(code=code, message=rejection.message))
        # Behind a rejected upgrade there may be WebSocket frames, which aren't HTTP.
        exchange.close_after = rejection.close_after or exchange.wants_websocket
        body = encode_error(id, error, null_id=legacy and id is None)
        exchange.respond(rejection.status, body, [CONTENT_TYPE_JSON, *rejection.headers])
        self.ready[exchange] = None

    # -- Sessions ----------------------------------------------------------------------------------

    def _new_session(
        self, exchange: Exchange, id: RequestId | None = None, *, is_sse: bool = False
    ) -> Session | None:
        """Make a session for `exchange`. Without capacity, reject it and return None."""
        principal = exchange.principal
        client = client_key(principal, exchange.address)
        rejection = _checks.ENDING if self._closing else self.sessions.find_capacity_error(client)
        if rejection is not None:
            self._reject(exchange, rejection, id)
            return None
        conn = Connection(_SERVER, self._session_config, bucket=self.bucket(principal))
        name = self._entropy(16).hex().encode()
        rules = _DEFAULT_DIALECT.http
        session = Session(self.state, conn, principal, rules, name, client, is_sse=is_sse)
        exchange.session = exchange.conversation = session
        return session

    def bucket(self, principal: str) -> Bucket | None:
        """Return what counts the tool calls of `principal`, over all of its connections.

        None for a client without a name: its connections are counted one by one.
        """
        rate = self._session_config.limits.tool_calls
        if not principal or rate is None:
            return None
        if self._buckets is None:
            self._buckets = Buckets(rate)
        return self._buckets.get(principal)

    # -- What to do now ----------------------------------------------------------------------------

    def next_event(self) -> tuple[Conversation, Event] | None:
        """Return the next event and its conversation; None if there is nothing left to process."""
        events, dirty = self.events, self.dirty
        while True:
            if events:
                found = events.popleft()
                if not isinstance(found[1], ConnectionClosed):
                    dirty[found[0]] = None  # the event's handler may send something
                return found
            if not dirty:
                return None
            conversation, _ = dirty.popitem()
            conversation.process_events()
            if conversation.finished:
                self._end(conversation)

    def next_deadline(self) -> float | None:
        """Return when to call `handle_timeout`, None for never."""
        first = self._awaiting_output.next_deadline()
        if self._reading:
            until = next(iter(self._reading.values()))
            first = until if first is None else min(first, until)
        tables: list[Sessions | EventLog | WebSocketSessions] = []
        if self.sessions:
            tables += (self.sessions, self.log)  # the streams in the log are the sessions'
        if self.websockets.checks:
            tables.append(self.websockets)
        for table in tables:
            due = table.next_deadline()
            if due is not None and (first is None or due < first):
                first = due
        return first

    def handle_timeout(self, now: float) -> None:
        """Send comments on silent streams, and end what has expired at `now`."""
        self.state.now = now
        for exchange in self._awaiting_output.pop_expired(now):
            self._awaiting_output.add(exchange, now)
            if self._close_if_expired(exchange):
                continue
            if exchange.mode is _STREAM or exchange.reply_format != "json":
                exchange.send_comment()
                self.ready[exchange] = None
        while self._reading and next(iter(self._reading.values())) <= now:
            exchange = next(iter(self._reading))
            self._reject(exchange, _checks.body_too_slow(self.options.limits.body_time))
        self.sessions.handle_timeout(now)
        self.log.expire(now)
        self.websockets.handle_timeout(now)

    def shutdown(self) -> None:
        """Reject new requests; running ones go on until `close`."""
        self._closing = True
        for conversation in (*self.sessions.values(), *self.one_shots):
            conversation.conn.shutdown()
            conversation.mark_dirty()

    def close(self) -> None:
        """End all conversations and streams."""
        self._closing = True
        for session in tuple(self.sessions.values()):
            self.sessions.end(session)
        for conversation in tuple(self.one_shots):
            self._end(conversation)

    def _refresh(self) -> None:
        """Take over a configuration that has changed, such as by a new tool."""
        config = self._config = self._configure()
        self._by_version: dict[bytes, Dialect] = {
            each.version.encode(): each for each in config.dialects
        }
        self._session_config = config.for_http(long_lived=self.options.get_stream)
        self._one_shot_config = config.for_http(long_lived=False)
        self._stateless_config = (
            config.for_http(handshake=False, long_lived=self.options.listen)
            if config.stateless
            else None
        )


# By verb, whether the revision has no handshake, and whether the request names a session.
ROUTES: Final[
    Mapping[tuple[bytes, bool, bool], Callable[[Endpoint, Exchange, RequestHead], None]]
] = {
    (b"POST", True, False): Endpoint._read_body,
    (b"POST", False, False): Endpoint._read_body,
    (b"POST", False, True): Endpoint._read_body,
    (b"GET", False, True): Endpoint._open_stream,
    (b"GET", False, False): Endpoint._open_legacy_sse,
    (b"DELETE", False, True): Endpoint._delete_session,
}
