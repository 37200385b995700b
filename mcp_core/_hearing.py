"""How a server's connection tells of changes: what it answers to who wants to hear of them, and when they go out.

Rules of this file:

1. Who listens has no place among the requests in flight: it needs no handler, and it lasts. Its id is in use all the same.
2. Changes are turned into messages only as long as little else is queued. So what nobody reads stays a set of changes, each told
   once, and does not become a queue.
3. A session is told nothing before it is open; a listen request nothing before its acknowledgement.

What is wanted and what is still to be told is `Interests`'. It refuses to know who publishes.
Sources: server/resources until 2025-11-25; basic/patterns/subscriptions of 2026-07-28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from . import types as t
from ._admission import Refusal
from ._errors import LocalProtocolError
from ._jsonrpc import encode_notification, encode_result
from ._methods import Role
from ._outbox import Kind, Outgoing
from ._stamps import stamped_result
from ._subscriptions import LISTEN, Interests

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._config import Config, Terms
    from ._outbox import Outbox
    from ._subscriptions import Notice
    from .types import RequestId

__all__ = ["HEARD", "Hearing"]

HEARD: Final = frozenset({"resources/subscribe", "resources/unsubscribe", LISTEN})
_ROOM: Final = 16 * 1024  # bytes queued above which no change is made into a message
_NOTIFICATION, _ANSWER, _SERVER = Kind.NOTIFICATION, Kind.ANSWER, Role.SERVER


class Hearing:
    """What the peer of one connection wants to hear of, and `out`, through which it is told. `has_room` tells whether more can be
    sent now for a listen request, or for the session (None); without it only what is queued counts."""

    __slots__ = ("_config", "_has_room", "_out", "interests")

    def __init__(
        self, config: Config, out: Outbox, has_room: Callable[[RequestId | None], bool] | None = None
    ) -> None:
        self._config = config
        self._out = out
        self._has_room = has_room
        self.interests = Interests(config)

    def take(self, id: RequestId, method: str, params: Any, terms: Terms) -> None:
        """Answer one of the requests in `HEARD`; the answer of a listen request is its end.

        Raises:
            Refusal: it is one too many, or a URI is too long.
        """
        dialect = terms.dialect
        try:
            if method == LISTEN:
                self._tell(self.interests.listen(id, dialect, params.notifications))
                return
            if method == "resources/subscribe":
                self.interests.subscribe(dialect, params.uri)
            else:
                self.interests.unsubscribe(params.uri)
        except LocalProtocolError as exc:
            raise Refusal(exc.fault, str(exc), dialect=dialect) from None
        self._answer(id, t.EmptyResult(), terms)

    def fill(self, *, ready: bool) -> None:
        """Make messages of what has changed, as far as there is room for them; for the session only if it is `ready`."""
        has_room = self._has_room
        while self._out.queued < _ROOM:
            notice = self.interests.next_notice(
                lambda id: (ready or id is not None) and (has_room is None or has_room(id))
            )
            if notice is None:
                return
            self._tell(notice)

    def end(self, *, tell: bool) -> None:
        """Nobody listens any more. If it is to be told, each listen request gets what is still missing, and its result."""
        for farewell in self.interests.end():
            if tell:
                for notice in farewell.rest:
                    self._tell(notice)
                self._answer(farewell.id, farewell.result, self._config.terms[_SERVER][farewell.dialect])

    def _tell(self, notice: Notice) -> None:
        data = encode_notification(notice.method, notice.dialect.encode(notice.params))
        self._out.put(Outgoing(data, _NOTIFICATION, None, notice.related, notice.method))

    def _answer(self, id: RequestId, result: t.Result, terms: Terms) -> None:
        self._out.put(Outgoing(encode_result(id, *stamped_result(terms, result)), _ANSWER, id))
