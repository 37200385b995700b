"""One HTTP request and its response: the body in, and what is answered as head, body and end.

Rules of this file:

1. How a request is answered is decided by what is said first. An answer by itself is JSON and has the status that its revision
   gives it; anything before the answer, or a long silence, begins a stream, whose status is 200 whatever comes.
2. A response that streams is a cursor in a `Stream`. It ends with that, or when the stream goes on in another response.
3. What a driver takes from here counts as sent. Nothing is handed out twice.

It refuses to know which requests there are and whom they reach (`_endpoint.py`), and how bytes travel.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any, Final

from ._messages import Body, End, Head
from ._sse import COMMENT, encode_event

if TYPE_CHECKING:
    from mcp_core._dialects import HttpRules
    from mcp_core._events import Granted

    from ._checks import Asked, Refused
    from ._conversation import Conversation
    from ._endpoint import Endpoint
    from ._guarding import Admission
    from ._messages import Action, Headers, RequestHead
    from ._stream import Stream
    from ._websocket import WebSocket

__all__ = ["Exchange", "Mode"]


class Mode(enum.Enum):
    """How far a response is."""

    __hash__ = object.__hash__

    NONE = "the request is not complete"
    UNDECIDED = "nothing was said"
    STREAM = "a stream"
    DONE = "all was said"
    GONE = "nobody is there"


NONE, UNDECIDED, STREAM, DONE, GONE = Mode

_JSON: Final = (b"content-type", b"application/json")
_EVENTS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_SESSION_ID: Final = b"mcp-session-id"
_NOTHING: Final[Headers] = [(b"content-length", b"0")]


class Exchange:
    """One request and its response.

    `token` is the driver's own. Give it the body by `receive_data` as long as it is `reading`; write what `actions_to_send` gives
    whenever `Site.ready` names it; say that it was `disconnected` if the client goes before `over`. `hang_up`: the connection is to
    be closed behind this response. `queued` are the bytes that wait to be taken. `needs_grant`: its guard wants something done first;
    until then nothing is read. `ends_at`: when it is ended, if it would stand for ever. `socket`: when its head was taken, the
    connection is this WebSocket.
    """

    __slots__ = (
        "_actions",
        "_began",
        "_body",
        "_endpoint",
        "body_limit",
        "conversation",
        "cursor",
        "ends_at",
        "extra",
        "grant",
        "hang_up",
        "headers",
        "is_head",
        "is_modern",
        "is_new",
        "method",
        "mirrored",
        "mode",
        "needs_grant",
        "over",
        "principal",
        "reading",
        "reply",
        "session",
        "socket",
        "stream",
        "switches",
        "token",
    )

    def __init__(self, endpoint: Endpoint | None, token: Any) -> None:
        self._endpoint = endpoint
        self.token = token
        self.mode = NONE
        self.reading = False
        self.over = False
        self._began = False  # a part of a stream was taken
        self.hang_up = False
        self.body_limit = 0
        self.extra: Headers = []  # what every head of this exchange has
        self._actions: list[Action] = []
        self._body: bytes | bytearray = b""
        # What its endpoint found out about it.
        self.headers: dict[bytes, bytes] = {}
        self.mirrored: Headers = []
        self.principal = ""
        self.needs_grant: Admission | None = None  # its guard has not judged
        self.grant: Granted | None = None
        self.reply = "auto"
        self.session: Conversation | None = None
        self.switches = False  # it is to become a WebSocket
        self.socket: WebSocket | None = None
        self.is_new = False  # the session begins with it
        self.is_modern = False
        self.is_head = False  # nothing but the head of the response is wanted
        self.method = ""  # of MCP, if it is a request of MCP
        self.conversation: Conversation | None = None
        self.stream: Stream | None = None
        self.cursor = 0
        self.ends_at = math.inf

    def __repr__(self) -> str:
        stream = f" of {self.stream!r} at {self.cursor}" if self.stream is not None else ""
        return f"<Exchange {self.mode.name}{stream}>"

    # -- Who asks --------------------------------------------------------------------------------------------------------

    def granted(self, grant: Granted, head: RequestHead, asked: Asked, now: float) -> None:
        """Its guard knows who asks: it goes on."""
        if self.needs_grant is not None:
            assert self._endpoint is not None
            self.grant, self.principal = grant, grant.principal
            self._endpoint.admitted(self, head, asked, now)
            self.needs_grant = None  # only now, so that it can still be refused if something of ours fails

    def refused(self, refused: Refused, now: float) -> None:
        """Its guard does not let it in."""
        if self.needs_grant is not None:
            assert self._endpoint is not None
            self.needs_grant = None
            self._endpoint.turn_away(self, refused, now)

    # -- What arrives ----------------------------------------------------------------------------------------------------

    def receive_data(self, data: bytes, now: float) -> None:
        """A piece of the body; `b""` is its end. What is not wanted is dropped."""
        if not self.reading:
            return
        assert self._endpoint is not None
        body = self._body
        if not data:
            self.reading, self._body = False, b""
            self._endpoint.receive_body(self, bytes(body), now)
        elif len(body) + len(data) > self.body_limit:
            self._endpoint.refuse_body(self)
        elif not body:
            self._body = data
        else:
            # One buffer, since a list of short pieces would take many times their bytes.
            if type(body) is not bytearray:
                self._body = body = bytearray(body)
            body += data

    def disconnected(self, now: float) -> None:
        """The client is gone, or no longer reads. Harmless when all was taken."""
        if self.socket is not None:
            assert self.conversation is not None
            self.socket.lost(now)
            self.conversation.touch()
            return
        if self.over or self.mode is GONE:
            return
        self.mode, self.reading, self.needs_grant = GONE, False, None
        self._actions.clear()
        self._body = b""
        if self._endpoint is not None:
            self._endpoint.lost(self, now)

    # -- What is answered ------------------------------------------------------------------------------------------------

    @property
    def queued(self) -> int:
        """Bytes that wait to be taken."""
        stream = self.stream
        return stream.unsent if stream is not None and stream.exchange is self else 0

    def respond(self, status: int, body: bytes = b"", headers: Headers | None = None) -> None:
        """The whole response. The body is JSON unless `headers` say what it is."""
        told = list(headers) if headers is not None else [_JSON] if body else []
        if body:
            told.append((b"content-length", b"%d" % len(body)))
        elif status != 204:
            told += _NOTHING
        self._actions.append(Head(status, told + self.extra))
        if body and not self.is_head:
            self._actions.append(Body(body))
        self._actions.append(End())
        self.mode, self.reading = DONE, False
        self._body = b""

    def switch(self, headers: Headers) -> None:
        """The connection is a WebSocket from here on."""
        self._actions.append(Head(101, headers))
        self.mode = DONE
        self.headers, self.mirrored = {}, []  # it may last, and they are of no use any more

    def begin_stream(self) -> None:
        """Answer with a stream from here on."""
        assert self._endpoint is not None
        self.mode = STREAM
        headers = [*_EVENTS, *self.extra]
        if self.is_new and self.session is not None:
            headers.append((_SESSION_ID, self.session.id))
        self._actions.append(Head(200, headers))
        stream, rules = self.stream, self.rules
        if stream is not None and rules.primed and rules.resumable and self.session is not None:
            id = b"%b-%d" % (stream.name, self.cursor)
            self._actions.append(Body(encode_event(b"", id=id, retry=self._endpoint.retry)))

    def send_raw(self, data: bytes) -> None:
        """Bytes of the stream that are no message."""
        self._actions.append(Body(data))

    def comment(self) -> None:
        """A sign of life, after a silence of ours. If it is the client who is silent, one has not been taken yet, and is enough."""
        begins = self.mode is UNDECIDED
        if begins:
            self.begin_stream()
        if begins or (self.mode is STREAM and not self._actions):
            self._actions.append(Body(COMMENT))

    def hand_over(self, retry: int | None) -> None:
        """The stream goes on in another response, in `retry` milliseconds: end this one with what there is."""
        if self.mode is UNDECIDED:
            self.begin_stream()
        self._take_messages()
        if retry is not None:
            self._actions.append(Body(b"retry: %d\n\n" % retry))
        self._finish()
        self._began = True

    def break_off(self) -> None:
        """End this response now; what was not taken is not for it any more."""
        if self.mode is UNDECIDED:
            self.begin_stream()
        self._finish()
        self._began = True

    def actions_to_send(self) -> list[Action]:
        """What is to be written now, in this order; nothing if all that there is was taken."""
        mode = self.mode
        if mode is UNDECIDED:
            self._decide()
            mode = self.mode
        if mode is STREAM:
            self._began = True
            self._take_messages()
            if self.stream is not None and self.stream.over:
                self._finish()
        actions = self._actions
        if not actions:
            return []
        self._actions = []
        self.over = self.mode is DONE
        if self._endpoint is not None:
            self._endpoint.taken(self)
        return actions

    @property
    def may_be_resumed(self) -> bool:
        """Whether its client has got an event with which it can come back."""
        return self._began and self.session is not None and (self.rules.primed or self.cursor > 0)

    @property
    def rules(self) -> HttpRules:
        """What the revision wants that is spoken here."""
        assert self.conversation is not None
        return self.conversation.rules

    def _decide(self) -> None:
        stream = self.stream
        assert stream is not None
        if stream.noted:
            self.begin_stream()
        elif stream.over:
            statuses = self.rules.statuses
            status = 200
            if len(stream.log) == 1 and not stream.batch:
                status = statuses.get(stream.log[0][2], 200)
            if stream.log and (status != 200 or self.reply != "sse"):
                self._answer(stream, status)
            elif stream.log or self.reply != "json":
                self.begin_stream()  # an empty one, if the request was cancelled
            else:
                self.respond(202)

    def _answer(self, stream: Stream, status: int) -> None:
        if stream.batch:
            body = b"[%b]" % b",".join([data for _, data, _ in stream.log])
        else:
            body = stream.log[0][1]
        headers = [_JSON]
        if self.is_new and self.session is not None:
            headers.append((_SESSION_ID, self.session.id))
        self.cursor = stream.taken = stream.last
        stream.unsent = 0
        self.respond(status, body, headers)

    def _take_messages(self) -> None:
        stream = self.stream
        if stream is None or self.cursor == stream.last:
            return
        session = self.session
        kept = session is not None and not session.is_sse and self.rules.resumable
        if kept:
            name = stream.name
            for number, data, _ in stream.after(self.cursor):
                self._actions.append(Body(encode_event(data, id=b"%b-%d" % (name, number))))
        else:
            event = b"message" if session is not None else None
            self._actions += [
                Body(encode_event(data, event=event)) for _, data, _ in stream.after(self.cursor)
            ]
        self.cursor = stream.taken = stream.last
        stream.unsent = 0
        if not kept:
            stream.clear()

    def _finish(self) -> None:
        self._actions.append(End())
        self.mode = DONE
