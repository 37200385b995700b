"""One MCP endpoint over HTTP: which request is part of which conversation, and what becomes of the conversations.

Rules of this file:

1. What a request is, `ROUTES` says, by its verb, its era and whether it names a session; what is missing there is refused.
2. The era of a request is in its header, or else in its body, and nowhere else: a revision without handshakes makes a conversation
   of each request, the others one of each session.
3. A session belongs to who began it. To anybody else it does not exist, and the answer is the same to the letter.
4. Whoever hangs up has withdrawn the request where the revision says so. Elsewhere work goes on, and what comes of it is kept for
   a while, if the client knows how to come back for it.
5. A head and its body are two calls, and much may happen in between: what was true of the one is asked again at the other.
6. What stands open for whatever may come ends with the grant by which it was asked for, and its client comes back with another. That
   is looked at whenever something is said there, or nothing was for a while. A call that runs comes to its end.

It refuses to know sockets, tasks and time; drivers are told what to write by `ready`. Sources: basic/transports of all revisions.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final

from mcp_core import types as t
from mcp_core._connection import Connection
from mcp_core._dialects import DIALECTS
from mcp_core._events import ConnectionClosed, Peer, PeerReady
from mcp_core._intake import Via
from mcp_core._jsonrpc import encode, encode_error
from mcp_core._methods import METHODS, Role
from mcp_core._rate import Bucket
from mcp_core._state import State

from ._checks import ALLOWED, UPGRADE, Refused, first_fault, scan, too_long, who_fault
from ._conversation import Conversation, Session
from ._cors import preflight, shared
from ._exchange import Exchange, Mode
from ._glance import Glance, look_into
from ._guarding import GUARDED, Admission
from ._handshake import upgrade_fault
from ._headers import LAST_EVENT_ID, METHOD, PROTOCOL_VERSION, SESSION_ID
from ._mirror import Mirror
from ._sessions import Sessions
from ._socket import Sockets, begin_socket
from ._sse import encode_event
from ._stream import EventLog, Stream
from ._waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_core._config import Config
    from mcp_core._dialects import Dialect
    from mcp_core._events import Event, Granted
    from mcp_core._param_headers import ParamHeaders
    from mcp_core.types import RequestId

    from ._checks import Asked
    from ._guarding import Door
    from ._messages import Headers, RequestHead
    from ._options import HttpOptions

__all__ = ["ROUTES", "Endpoint"]

_SERVER, _READY = Role.SERVER, State.READY
_UNDECIDED, _STREAM = Mode.UNDECIDED, Mode.STREAM
_LASTING: Final = frozenset(row.name.encode() for row in METHODS if row.lasting)
_CARRIED: Final = b'"io.modelcontextprotocol/protocolVersion"'
# What a revision wants that nobody has named yet, and which one a request without a version header is taken for (2025-06-18).
_UNSAID: Final = DIALECTS["2025-03-26"]
_SESSION_QUERY: Final = b"session_id="
# Principals whose calls are counted; of those who have asked longest ago nothing is remembered.
_MOST_BUCKETS: Final = 10_000
_JSON: Final = (b"content-type", b"application/json")
_RETRY_AFTER: Final[Headers] = [(b"retry-after", b"5")]
_ONLY_POST: Final[Headers] = [(b"allow", b"POST, OPTIONS")]

_ENDING: Final = Refused(503, "the server is being shut down", _RETRY_AFTER)
_TOO_MANY: Final = Refused(503, "there are too many sessions; try again later", _RETRY_AFTER)
_TOO_BUSY: Final = Refused(503, "there are too many requests at once; try again later", _RETRY_AFTER)
_TOO_MANY_STREAMS: Final = Refused(429, "too many streams of this session are open", _RETRY_AFTER)
_NO_SESSION: Final = Refused(404, "there is no such session: begin a new one with initialize")
_NOT_BEGUN: Final = Refused(
    400, "a session has to be begun with initialize, and its Mcp-Session-Id to be sent"
)
_IN_USE: Final = Refused(400, "a request id of this body is still in use")
_EVENTS_GONE: Final = Refused(400, "what came after that event is not kept any more: send the request again")
_OPEN_ALREADY: Final = Refused(409, "this session's stream is open already")
_NO_STREAM: Final = Refused(405, "there is no stream without a session", _ONLY_POST)
_POSTED_HERE: Final = Refused(405, "messages are posted here", [(b"allow", b"POST")])


class Endpoint:
    """One MCP URL. `token` is the driver's own: which server this is, say.

    Args:
        configure: what the server is, as of now.
        options: how it is served.
        entropy: random bytes, for names that nobody can guess.
        param_headers: which arguments of a tool are mirrored in headers.
        token: for the driver.
        door: who may enter; without one everybody.

    A `Site` has the same methods for all of its endpoints.
    """

    def __init__(
        self,
        configure: Callable[[], Config],
        options: HttpOptions,
        *,
        entropy: Callable[[int], bytes],
        param_headers: Callable[[str], ParamHeaders | None],
        token: Any = None,
        door: Door | None = None,
    ) -> None:
        limits = options.limits
        self.options = options
        self.token = token
        self.door = door
        self.retry = round(options.retry * 1000)
        self.now = 0.0
        self.log = EventLog(limits)
        self.sessions = Sessions(limits)
        self.alone: dict[Conversation, None] = {}  # conversations that are no sessions
        self.sockets = Sockets()
        # What is to be looked after: conversations, what has happened in them, and exchanges with something to write.
        self.dirty: dict[Conversation, None] = {}
        self.events: deque[tuple[Conversation, Event]] = deque()
        self.ready: dict[Exchange, None] = {}
        self._configure = configure
        self._entropy = entropy
        self._param_headers = param_headers
        self._config: Config | None = None
        self._closing = False
        self._quiet: Waiting[Exchange] = Waiting(options.comment)
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Endpoint with {len(self.sessions)} sessions, {len(self._quiet)} exchanges under way>"

    @property
    def idle(self) -> bool:
        """Whether no answer is under way."""
        return not self._quiet and not self.ready

    # -- A request ---------------------------------------------------------------------------------------------------------

    def begin(
        self,
        head: RequestHead,
        now: float,
        *,
        token: object = None,
        principal: str = "",
        switches: bool = False,
    ) -> Exchange:
        """A request begins. `principal` is who asks, as authenticated, where no guard finds that out. `switches`: it is to become a
        WebSocket."""
        self.now = now
        if self._configure() is not self._config:
            self._refresh()
        verb = head.method
        exchange = Exchange(self, token)
        asked = scan(head.headers)
        headers = exchange.headers = asked.headers
        exchange.is_head = verb == b"HEAD"
        exchange.principal = principal
        exchange.switches = switches
        origin = headers.get(b"origin")
        if origin is not None and self.options.gate.cross_origin(origin):
            exchange.extra = shared(origin, guarded=self.door is not None)
        if self.door is None or verb not in GUARDED:
            return self._begun(exchange, head, asked)
        refused = who_fault(asked, self.options, self._sessions)
        if refused is not None:
            self.door.tell(f"{verb.decode('ascii')} refused with {refused.status}: {refused.message}")
            return self._refuse(exchange, refused)
        exchange.needs_grant = admission = Admission(self.door, exchange, head, asked)
        admission.begin(now)
        return exchange

    def admitted(self, exchange: Exchange, head: RequestHead, asked: Asked, now: float) -> None:
        """The guard knows who asks by `exchange`."""
        self.now = now
        self._begun(exchange, head, asked)

    def turn_away(self, exchange: Exchange, refused: Refused, now: float) -> None:
        """The guard does not let `exchange` in."""
        self.now = now
        self._refuse(exchange, refused)

    def _begun(self, exchange: Exchange, head: RequestHead, asked: Asked) -> Exchange:
        verb, headers = head.method, asked.headers
        if exchange.switches:
            return self._switch(exchange, head, asked)
        refused = first_fault(verb, asked, self.options, self._sessions)
        if refused is not None:
            return self._refuse(exchange, refused)
        if verb == b"OPTIONS":
            exchange.respond(204, headers=preflight(headers) if exchange.extra else [(b"allow", ALLOWED)])
            return self._mark(exchange)
        exchange.mirrored = asked.mirrored
        version = headers.get(PROTOCOL_VERSION)
        dialect = self._by_version.get(version) if version is not None else None
        # A version is named, and none that has sessions.
        stateless = version is not None and (dialect is None or not dialect.stateful)
        modern = exchange.is_modern = stateless and self._exchanges is not None
        id = None if modern else headers.get(SESSION_ID) or _queried(head.target)
        if stateless and (not modern or (dialect is None and verb != b"POST")):
            # What is posted has the version in it again, and the answer to that is the better one.
            served = ", ".join(self._sessions.versions)
            return self._refuse(
                exchange, Refused(400, f"that protocol version is not served; served are {served}")
            )
        route = ROUTES.get((verb, modern, id is not None))
        if route is None:
            sessions = self.options.sessions and self._sessions.stateful and not modern
            allow = [(b"allow", ALLOWED)] if sessions else _ONLY_POST
            return self._refuse(exchange, Refused(405, "this revision has no use for that verb", allow))
        if id is not None:
            refused = self._find(exchange, id, dialect)
            if refused is not None:
                return self._refuse(exchange, refused)
        return route(self, exchange, head)

    def _find(self, exchange: Exchange, id: bytes, dialect: Dialect | None) -> Refused | None:
        """Find the session that a request names. `dialect` is what it says it speaks."""
        session = self.sessions.get(id)
        is_sse = SESSION_ID not in exchange.headers
        if session is None or session.principal != exchange.principal or session.is_sse is not is_sse:
            if session is not None and self.door is not None:
                self.door.tell("refused with 404: the session that is named is not one of who asks")
            return _NO_SESSION
        peer = session.conn.peer
        if peer is not None and dialect is not None and dialect is not peer.dialect:
            return Refused(
                400, f"this session speaks {peer.dialect.version}: MCP-Protocol-Version has to say so"
            )
        exchange.session = exchange.conversation = session
        self.sessions.heard(session, self.now)
        return None

    def _switch(self, exchange: Exchange, head: RequestHead, asked: Asked) -> Exchange:
        assert self._config is not None
        refused = first_fault(UPGRADE, asked, self.options, self._config)
        if refused is None and self._closing:
            refused = _ENDING
        if refused is None and len(self.alone) >= self.options.limits.sessions:
            refused = _TOO_BUSY
        refused = refused or upgrade_fault(head)
        if refused is not None:
            return self._refuse(exchange, refused)
        begin_socket(exchange, head, self, self._config)
        return self._mark(exchange)

    # -- Routes ------------------------------------------------------------------------------------------------------------

    def _read_body(self, exchange: Exchange, head: RequestHead) -> Exchange:
        if self._closing and exchange.session is None:
            return self._refuse(exchange, _ENDING)
        exchange.reading = True
        exchange.body_limit = self._sessions.limits.message
        return exchange

    def _listen(self, exchange: Exchange, head: RequestHead) -> Exchange:
        """GET: a session's own stream, or one that is taken up again."""
        session = exchange.session
        assert isinstance(session, Session)
        last = exchange.headers.get(LAST_EVENT_ID)
        if session.is_sse:
            return self._refuse(exchange, _POSTED_HERE)
        if last is None:
            stream = session.own
            # What came while nobody was there, as far as it is still kept: it was promised to nobody.
            cursor = max(stream.taken, stream.evicted)
            if stream.exchange is not None:
                return self._refuse(exchange, _OPEN_ALREADY)
        else:
            name, _, number = last.rpartition(b"-")
            found = session.streams.get(name)
            cursor = int(number) if number.isdigit() and len(number) < 19 else -1
            before = found.exchange if found is not None else None
            if (
                found is None
                or not found.reaches(cursor)
                or (before is not None and before.mode is _UNDECIDED)
            ):
                return self._refuse(exchange, _EVENTS_GONE)
            stream = found
            if before is not None:
                # Its client has lost it, and we have not noticed.
                self.break_off(before, superseded=True)
        exchange.stream, exchange.cursor, stream.exchange = stream, cursor, exchange
        if stream.lasting:
            exchange.ends_at = self._granted_until(exchange)
        stream.unsent = sum(len(data) for _, data, _ in stream.after(cursor))
        exchange.begin_stream()
        session.touch()  # what waited for the stream may be told now
        return self._wait(exchange)

    def _listen_without_session(self, exchange: Exchange, head: RequestHead) -> Exchange:
        """GET of a client that has no session: one of 2024-11-05 begins with it."""
        if not self.options.sessions or not self._sessions.stateful or PROTOCOL_VERSION in exchange.headers:
            return self._refuse(exchange, _NO_STREAM)
        refused = self._no_room()
        if refused is not None:
            return self._refuse(exchange, refused)
        session = self._new_session(exchange, is_sse=True)
        self.sessions.enter(session, self.now)
        exchange.stream = session.own
        session.own.exchange = exchange
        exchange.ends_at = self._granted_until(exchange)
        exchange.begin_stream()
        path = head.target.partition(b"?")[0]
        where = b"%b?%b%b" % (path, _SESSION_QUERY, session.id)
        exchange.send_raw(encode_event(where, event=b"endpoint"))
        return self._wait(exchange)

    def _end_session(self, exchange: Exchange, head: RequestHead) -> Exchange:
        """DELETE."""
        assert isinstance(exchange.session, Session)
        self.sessions.end(exchange.session)
        exchange.respond(204)
        return self._mark(exchange)

    # -- Bodies ------------------------------------------------------------------------------------------------------------

    def receive_body(self, exchange: Exchange, body: bytes, now: float) -> None:
        """The body of `exchange` is complete."""
        self.now = now
        session = exchange.session
        if exchange.grant is not None and self._is_forbidden(exchange, body, exchange.grant):
            return
        if isinstance(session, Session):
            if self.sessions.get(session.id) is not session:
                self._refuse(exchange, _NO_SESSION)
            else:
                self._posted_in_session(exchange, session, body)
        elif self._closing:
            self._refuse(exchange, _ENDING)
        elif self._exchanges is not None and (
            exchange.is_modern
            or not self._sessions.stateful
            or (PROTOCOL_VERSION not in exchange.headers and _CARRIED in body)
        ):
            exchange.method = exchange.headers.get(METHOD, b"").decode("ascii", "replace")
            self._posted_alone(exchange, body, self._exchanges, self._exchanges.stateless[0])
        else:
            self._posted_first(exchange, body)

    def _is_forbidden(self, exchange: Exchange, body: bytes, grant: Granted) -> bool:
        """Whether something in a body is not allowed to who asks; then it is answered."""
        assert self.door is not None
        assert self._config is not None
        refused = self.door.judge(grant, body, self._config)
        if refused is None:
            return False
        glance = look_into(body, self._config.limits)
        exchange.method = glance.method
        self._refuse(exchange, refused, glance.ids[0] if glance.ids else None)
        return True

    def _posted_in_session(self, exchange: Exchange, session: Session, body: bytes) -> None:
        conn = session.conn
        glance = look_into(body, conn.config.limits, batches=session.batches)
        ids = glance.ids
        exchange.method = glance.method
        if session.is_sse:
            standing = session.own.exchange
            assert standing is not None  # the session ends with it
            # It cannot be taken up again, and who posts has shown a newer token.
            standing.ends_at = max(standing.ends_at, self._granted_until(exchange))
            self._feed(session, exchange, body)
            exchange.respond(202)
            self._mark(exchange)
        elif glance.repeats or any(id in session.by_id for id in ids):
            self._refuse(exchange, _IN_USE, ids[0] if len(ids) == 1 else None)
        elif ids and len(session.streams) > self.options.limits.streams and not session.make_room():
            self._refuse(exchange, _TOO_MANY_STREAMS)
        else:
            self._post(exchange, session, body, glance)
        for id in glance.cancelled:
            if not conn.owes(id):
                session.drop(id)  # also if it only waited, and nobody is told
        if conn.state is _READY:
            self.sessions.begun(session, self.now)

    def _posted_first(self, exchange: Exchange, body: bytes) -> None:
        """A body without a session, in a revision that has them."""
        sessions = self.options.sessions
        version = exchange.headers.get(PROTOCOL_VERSION)
        dialect = self._by_version.get(version, _UNSAID) if version is not None else _UNSAID
        glance = look_into(body, self._sessions.limits, batches=not sessions and dialect.batches)
        exchange.method = glance.method
        begins = glance.method == "initialize"
        if sessions and begins and glance.ids:
            self._begin_session(exchange, body, glance)
        elif not sessions and not begins:
            peer = Peer(dialect, t.ClientCapabilities())
            self._posted_alone(exchange, body, self._lone, dialect, peer, glance)
        elif sessions and (glance.method or glance.is_response):
            self._refuse(exchange, _NOT_BEGUN)
        else:
            self._posted_alone(exchange, body, self._lone, self._lone.stateful[0], None, glance)

    def _begin_session(self, exchange: Exchange, body: bytes, glance: Glance) -> None:
        refused = self._no_room()
        if refused is not None:
            self._refuse(exchange, refused)
            return
        session = self._new_session(exchange)
        self._post(exchange, session, body, glance)
        if session.conn.peer is not None:
            self.sessions.enter(session, self.now)
            exchange.is_new = True
        else:
            session.close()

    def _posted_alone(
        self,
        exchange: Exchange,
        body: bytes,
        config: Config,
        dialect: Dialect,
        peer: Peer | None = None,
        glance: Glance | None = None,
    ) -> None:
        """A body that is a conversation by itself, in `dialect`."""
        if len(self.alone) >= self.options.limits.sessions:
            self._refuse(exchange, _TOO_BUSY)
            return
        principal = exchange.principal
        conn = Connection(_SERVER, config, peer=peer, bucket=self.bucket(principal))
        conversation = exchange.conversation = Conversation(self, conn, principal, dialect.http)
        self.alone[conversation] = None
        lasting = exchange.headers.get(METHOD) in _LASTING
        if lasting:
            conn.has_room = conversation.has_room
            exchange.ends_at = self._granted_until(exchange)
        self._post(exchange, conversation, body, glance or look_into(body, config.limits), lasting=lasting)
        if lasting and exchange.mode is _UNDECIDED:
            # It asks nothing of anybody, and yet somebody has to attend to it.
            self.events.append((conversation, PeerReady(Peer(dialect, t.ClientCapabilities()))))

    def _post(
        self,
        exchange: Exchange,
        conversation: Conversation,
        body: bytes,
        glance: Glance,
        *,
        lasting: bool = False,
    ) -> None:
        """Have a body acted on, and answer it by this response."""
        if glance.ids and isinstance(conversation, Session):
            stream = conversation.add_stream(glance.ids, batch=glance.batch)
        else:
            stream = Stream(b"", glance.ids, batch=glance.batch)
        reply = self.options.reply
        # There is no other way to be told of changes.
        exchange.reply = "auto" if lasting and reply == "json" else reply
        exchange.stream, stream.exchange = stream, exchange
        conversation.current = stream
        self._feed(conversation, exchange, body)
        if stream.pending:
            for id in glance.ids:
                if not conversation.conn.owes(id):
                    conversation.drop(id)  # it looked like a request, and was none that is answered
        if isinstance(conversation, Session):
            conversation.current = None
        if stream.log or stream.pending:
            exchange.mode = _UNDECIDED
            self._wait(exchange)
        else:
            exchange.respond(400 if conversation.rejected else 202)
            self._mark(exchange)
            self._let_go(exchange)

    def _feed(self, conversation: Conversation, exchange: Exchange, body: bytes) -> None:
        conversation.rejected = False
        mirror = Mirror(exchange.mirrored, self._param_headers)
        conversation.conn.receive_message(body, self.now, Via(mirror=mirror, grant=exchange.grant))
        conversation.settle()

    # -- How exchanges go on -----------------------------------------------------------------------------------------------

    def refuse_body(self, exchange: Exchange) -> None:
        """The body of `exchange` is too long."""
        self._refuse(exchange, too_long(self._sessions))

    def lost(self, exchange: Exchange, now: float) -> None:
        """The client of `exchange` is gone."""
        self.now = now
        self._quiet.discard(exchange)
        self.ready.pop(exchange, None)
        self._let_go(exchange)

    def taken(self, exchange: Exchange) -> None:
        """Something of `exchange` goes out."""
        if exchange.mode is _STREAM:
            self._quiet.add(exchange, self.now)
            assert exchange.conversation is not None
            if not self._has_outlived(exchange):
                exchange.conversation.touch()  # there may be room for more
        else:
            self._quiet.discard(exchange)
            self._let_go(exchange)

    def break_off(self, exchange: Exchange, *, superseded: bool = False) -> None:
        """End a response in the middle: its client does not read, or (`superseded`) has come back elsewhere."""
        exchange.break_off()
        self._mark(exchange)
        if not superseded:
            self._let_go(exchange)

    def _granted_until(self, exchange: Exchange) -> float:
        """When the grant of `exchange` ends, by the clock of this endpoint."""
        until = exchange.grant.good_until if exchange.grant is not None else None
        if until is None:
            return math.inf
        assert self.door is not None
        return self.now + until - self.door.wall_time()

    def _has_outlived(self, exchange: Exchange) -> bool:
        """Whether a response has stood until the end of its grant; then it is ended."""
        conversation = exchange.conversation
        if self.now < exchange.ends_at or conversation is None:
            return False
        if conversation.is_sse and conversation.conn.stats().in_flight:
            return False  # the answers come on it, too
        self.break_off(exchange)
        return True

    def release(self, conversation: Conversation, id: RequestId, *, retry: float | None = None) -> bool:
        """End the response of the running request `id`; its client comes back for the rest, in `retry` seconds if that is told.
        False if it could not: then nothing happens (2025-11-25, basic/transports)."""
        if not isinstance(conversation, Session) or conversation.is_sse or not conversation.rules.primed:
            return False
        conversation.settle()  # what was said before is told before
        stream = conversation.stream_for(id)
        exchange = stream.exchange if stream is not None else None
        if exchange is None or exchange.reply == "json":
            return False
        exchange.hand_over(None if retry is None else round(retry * 1000))
        self._mark(exchange)
        self._let_go(exchange)
        return True

    def _let_go(self, exchange: Exchange) -> None:
        """It carries its stream no more, if it did until now."""
        stream, conversation = exchange.stream, exchange.conversation
        if stream is not None and stream.exchange is exchange and conversation is not None:
            stream.exchange = None
            stream.unsent = 0
            conversation.let_go(stream, resumable=exchange.may_be_resumed)

    def _wait(self, exchange: Exchange) -> Exchange:
        exchange.headers, exchange.mirrored = {}, []  # it may last, and they are of no use any more
        self._quiet.add(exchange, self.now)
        return self._mark(exchange)

    def _mark(self, exchange: Exchange) -> Exchange:
        self.ready[exchange] = None
        return exchange

    def _refuse(self, exchange: Exchange, refused: Refused, id: RequestId | None = None) -> Exchange:
        legacy = not exchange.is_modern and bool(self._sessions.stateful)
        error = encode(t.ErrorData(code=-32600, message=refused.message))
        exchange.hang_up = refused.hang_up or exchange.switches
        body = encode_error(id, error, null_id=legacy and id is None)
        exchange.respond(refused.status, body, [_JSON, *refused.headers])
        return self._mark(exchange)

    # -- Sessions ----------------------------------------------------------------------------------------------------------

    def _no_room(self) -> Refused | None:
        if self._closing:
            return _ENDING
        return _TOO_MANY if self.sessions.full else None

    def _new_session(self, exchange: Exchange, *, is_sse: bool = False) -> Session:
        principal = exchange.principal
        conn = Connection(_SERVER, self._sessions, bucket=self.bucket(principal))
        id = self._entropy(16).hex().encode()
        session = Session(self, conn, principal, _UNSAID.http, id, is_sse=is_sse)
        exchange.session = exchange.conversation = session
        return session

    def bucket(self, principal: str) -> Bucket | None:
        """What the calls of somebody are counted by who has a name. Who has none has nothing that could be counted by."""
        rate = self._sessions.limits.tool_calls
        if not principal or rate is None:
            return None
        bucket = self._buckets.get(principal)
        if bucket is None:
            bucket = self._buckets[principal] = Bucket(rate)
            if len(self._buckets) > _MOST_BUCKETS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(principal)
        return bucket

    # -- What to do now ----------------------------------------------------------------------------------------------------

    def next_event(self) -> tuple[Conversation, Event] | None:
        """The next fact and the conversation in which it happened, None when all is settled."""
        events, dirty = self.events, self.dirty
        while True:
            if events:
                found = events.popleft()
                if not isinstance(found[1], ConnectionClosed):
                    dirty[found[0]] = None  # who is told of it may say something
                return found
            if not dirty:
                return None
            conversation, _ = dirty.popitem()
            conversation.settle()

    def next_deadline(self) -> float | None:
        """When to call `handle_timeout`."""
        first: float | None = None
        for waiting in (self._quiet, self.sessions, self.log, self.sockets):
            due = waiting.next_deadline()
            if due is not None and (first is None or due < first):
                first = due
        return first

    def handle_timeout(self, now: float) -> None:
        """The time is `now`."""
        self.now = now
        for exchange in self._quiet.pop_expired(now):
            self._quiet.add(exchange, now)
            if self._has_outlived(exchange):
                continue
            if exchange.mode is _STREAM or exchange.reply != "json":
                exchange.comment()
                self._mark(exchange)
        self.sessions.handle_timeout(now)
        self.log.expire(now)
        self.sockets.handle_timeout(now)

    def wind_down(self) -> None:
        """Take no more requests; what runs goes on until `close`."""
        self._closing = True
        for conversation in (*self.sessions.values(), *self.alone):
            conversation.conn.wind_down()
            conversation.touch()

    def close(self) -> None:
        """End all conversations and streams."""
        self._closing = True
        for session in tuple(self.sessions.values()):
            self.sessions.end(session)
        for conversation in tuple(self.alone):
            conversation.close()

    # -- What the server is ------------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        config = self._config = self._configure()
        self._by_version: dict[bytes, Dialect] = {each.version.encode(): each for each in config.dialects}
        self._sessions = config.over_http()
        self._lone = config.over_http(lasting=False)
        self._exchanges = config.over_http(handshake=False) if config.stateless else None


# What a request is by its verb, whether its revision is one without handshakes, and whether it names a session.
ROUTES: Final[Mapping[tuple[bytes, bool, bool], Callable[[Endpoint, Exchange, RequestHead], Exchange]]] = {
    (b"POST", True, False): Endpoint._read_body,
    (b"POST", False, False): Endpoint._read_body,
    (b"POST", False, True): Endpoint._read_body,
    (b"GET", False, True): Endpoint._listen,
    (b"GET", False, False): Endpoint._listen_without_session,
    (b"DELETE", False, True): Endpoint._end_session,
}


def _queried(target: bytes) -> bytes | None:
    """The session that a URL names: how one is named in 2024-11-05."""
    _, _, query = target.partition(b"?")
    for part in query.split(b"&") if query else ():
        if part.startswith(_SESSION_QUERY):
            return part[len(_SESSION_QUERY) :]
    return None
