"""Publish changes from a server's connection: accept subscriptions, and queue notifications.

1. A subscription is not among the requests in flight: it needs no handler, and it is long-lived.
   The id of its listen request is in use all the same.
2. A change becomes a message only while little else is queued. What a client does not read stays a
   set of changes, each sent once, and does not become a queue.
3. A session gets no notification before it is open, a listen request none before its
   acknowledgement.

Sources: server/resources until 2025-11-25; basic/patterns/subscriptions of 2026-07-28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core import types as t
from mcp_core.jsonrpc._codec import encode_notification, encode_result
from mcp_core.messages._outbox import MessageKind, Outgoing
from mcp_core.messages._rejection import RequestRejected
from mcp_core.revisions._encoding import stamped_result
from mcp_core.revisions._methods import Role

from ._errors import LocalProtocolError
from ._subscriptions import LISTEN, Interests

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.messages._outbox import Outbox
    from mcp_core.revisions._config import Config, DialectConfig

    from ._subscriptions import Notice
    from .types import RequestId

__all__ = ["HEARD", "Hearing"]

HEARD: Final = frozenset({"resources/subscribe", "resources/unsubscribe", LISTEN})
_MAX_QUEUED: Final = 16 * 1024  # bytes in the outbox above which changes wait
_NOTIFICATION: Final = MessageKind.NOTIFICATION
_RESPONSE: Final = MessageKind.ANSWER
_SERVER: Final = Role.SERVER


class Hearing:
    """Sends the peer of one connection what it subscribed to.

    Args:
        config: what this server declares, and its limits.
        out: gets the messages.
        has_room: returns True if more can be sent now for a listen request, or for the session
            (None). Without it only the length of the outbox counts.
    """

    __slots__ = ("_config", "_has_room", "_out", "interests")

    def __init__(
        self,
        config: Config,
        out: Outbox,
        has_room: Callable[[RequestId | None], bool] | None = None,
    ) -> None:
        self._config = config
        self._out = out
        self._has_room = has_room
        self.interests = Interests(config)

    def take(self, id: RequestId, method: str, params: Any, terms: DialectConfig) -> None:
        """Handle one of the requests in `HEARD`.

        The response is queued, except to a listen request: its response is the end of the
        subscription.

        Raises:
            RequestRejected: it is one subscription too many, or a URI is too long.
        """
        dialect = terms.dialect
        try:
            if method == LISTEN:
                self._send_notification(self.interests.listen(id, dialect, params.notifications))
                return
            if method == "resources/subscribe":
                self.interests.subscribe(dialect, params.uri)
            else:
                self.interests.unsubscribe(params.uri)
        except LocalProtocolError as exc:
            raise RequestRejected(exc.fault, str(exc), dialect=dialect) from None
        self._send_result(id, t.EmptyResult(), terms)

    def fill(self, *, ready: bool) -> None:
        """Queue notifications while there is capacity; for the session only if `ready`."""
        has_room = self._has_room
        while self._out.queued < _MAX_QUEUED:
            notice = self.interests.next_notice(
                lambda id: (ready or id is not None) and (has_room is None or has_room(id))
            )
            if notice is None:
                return
            self._send_notification(notice)

    def end(self, *, tell: bool) -> None:
        """End all subscriptions.

        With `tell`, each listen request gets its remaining notifications and its result.
        """
        for ended in self.interests.end():
            if tell:
                for notice in ended.rest:
                    self._send_notification(notice)
                self._send_result(
                    ended.id, ended.result, self._config.terms[_SERVER][ended.dialect]
                )

    def _send_notification(self, notice: Notice) -> None:
        data = encode_notification(notice.method, notice.dialect.encode(notice.params))
        self._out.put(Outgoing(data, _NOTIFICATION, None, notice.related, notice.method))

    def _send_result(self, id: RequestId, result: t.Result, terms: DialectConfig) -> None:
        self._out.put(Outgoing(encode_result(id, *stamped_result(terms, result)), _RESPONSE, id))
