"""Listening to changes, from the client's end: what to ask for, what was heard of it, and when it is over.

Revisions say the same in two ways (`_subscriptions.py`): until 2025-11-25 lists are heard of by themselves and resources after
`resources/subscribe`; since 2026-07-28 one `subscriptions/listen` asks for all, and each message has the id of that request. To a
client it is one listening, begun in another way.

Rules of this file:

1. The specification lets an update name a part of what was asked for, and only the server knows what is a part of what. So
   such updates are taken, and if there are too many of them the wholes count as changed.
2. A server ends a listening by the result of the listen request; a client takes it from whatever says it: result, `cancelled`,
   error, or the end of the connection.
3. After a loss everything may have changed: what is begun again (`Listenings.renew`) counts as changed, all of it; and so does what
   goes on after something was missed.
4. Who does not look at what was heard costs no more than what it asked for, and never misses the last change.

It refuses to know connections, and how anyone waits.
Sources: server/tools, server/prompts and server/resources of all revisions; basic/patterns/subscriptions of 2026-07-28.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from . import types as t
from ._calls import Pending
from ._errors import ConnectionLost, Fault, LocalProtocolError
from ._events import ChangesMissed, ConnectionClosed, NotificationReceived, PeerReady
from ._subscriptions import ACKNOWLEDGED, LISTEN, LISTS, UPDATED, Change, as_filter, by_asking, named, offered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ._events import Event, Peer, ProgressReceived
    from .types import RequestId, SubscriptionFilter

__all__ = ["Listening", "Listenings"]

# Updates of parts of what we asked for that may wait to be looked at. Only the server knows how many parts there are.
_PARTS: Final = 256
# Characters of their URIs; as long as the longest that HTTP servers take.
_URI_LENGTH: Final = 8 * 1024


class Listening(Pending):
    """One wish of a client to be told of changes, from `Listenings.open` to `Listenings.close`.

    Set `wake` to what wakes the one who waits, without calling back from within. First that is for `settled`: then call
    `require_open`. After that it is for changes: call `next_change` until it gives None. `over` says that no more will come.

    `wanted` is what was asked for, `honoured`, once settled, what of it the server will tell; `id` that of the request which
    lasts as long as the listening, None where there is no such request.

    Set `lost` to what is asked, with the error, whether one that was open will be begun anew; then it is not over. `losses` is how
    often in a row that was so.
    """

    def __init__(self, wanted: Iterable[Change]) -> None:
        self.wanted = tuple(dict.fromkeys(wanted))
        self.honoured: tuple[Change, ...] = ()
        self.id: RequestId | None = None
        self.settled = False
        self.over = False
        self.losses = 0
        self.wake: Callable[[], object] = _nothing
        self.lost: Callable[[BaseException], bool] = _for_good
        self._was_open = False
        self.resources = [change for change in self.wanted if change.uri is not None]
        self._wanted = frozenset(self.wanted)
        self._changed: dict[Change, None] = {}
        self._unanswered: set[Change] = set()
        self._renewed = False
        self._error: BaseException | None = None
        self._refusal: BaseException | None = None

    def __repr__(self) -> str:
        stands = "over" if self.over else "open" if self.settled else "being opened"
        return f"<Listening to {len(self.honoured)} of {len(self.wanted)}, {stands}, {len(self._changed)} changed>"

    def require_open(self) -> None:
        """Once `settled`: see whether there is anything to hear.

        Raises:
            PeerError: the server refused.
            ConnectionLost: the connection ended.
            LocalProtocolError: the server tells nothing of what is wanted.
        """
        if self._error is not None:
            raise self._error
        if not self.honoured and not self.over:
            raise self._refusal or _unannounced()

    @property
    def has_news(self) -> bool:
        """Whether `next_change` has something to say, or it is `over`."""
        return bool(self._changed) or self.over

    def next_change(self) -> Change | None:
        """The next thing that changed; None if there is nothing now, or `over` and nothing ever. Several changes of the same
        thing are one. The URI may be that of a part of a resource that is wanted.

        Raises:
            ConnectionLost: after the last change: the server did not end this, so that changes may have been missed. What
                is of interest is to be listed and read anew; `renew` sees to that.
            PeerError: likewise, and the server said why.
        """
        if self._changed:
            change = next(iter(self._changed))
            del self._changed[change]
            return change
        if self._error is not None:
            raise self._error
        return None

    def end(self, result: Any, error: BaseException | None) -> None:
        """The server ended it, by the result of the listen request or another word for that; or it was lost."""
        if self.over:
            return
        if self._was_open and error is not None and self.lost(error):
            self.losses += 1
            self.id = None
            return
        self.over = self.settled = True
        self._error = error
        self.wake()

    def progressed(self, event: ProgressReceived) -> None:
        """Nobody asked for it."""

    # What `Listenings` tells it.

    def begin(self, honoured: Iterable[Change], unanswered: Iterable[Change]) -> None:
        """`honoured` is certain already; whether `unanswered` is will turn out."""
        self._renewed = self.over or self._was_open
        self._error = self._refusal = self.id = None
        self.over = self.settled = False
        self.honoured = tuple(honoured)
        self._unanswered = set(unanswered)
        self._settle()

    def acknowledged(self, wish: SubscriptionFilter) -> None:
        """What the server will tell. Only its first word counts, and of that only what was wanted."""
        if not self.settled:
            honoured = named(wish)
            self.honoured = tuple(change for change in self.wanted if change in honoured)
            self._unanswered.clear()
            self.losses = 0
            self._settle()
            if self._was_open and not self.honoured:
                self.end(None, _unannounced())

    def answered(self, change: Change, refusal: BaseException | None) -> None:
        """The answer for one resource."""
        if refusal is None:
            self.honoured += (change,)
        else:
            self._refusal = self._refusal or refusal
        self._unanswered.discard(change)
        self._settle()

    def _settle(self) -> None:
        if not self._unanswered:
            self.settled = True
            self._was_open = self._was_open or bool(self.honoured)
            if self._renewed:
                self._changed.update(dict.fromkeys(self.honoured))
            self.wake()

    def wants(self, change: Change) -> bool:
        return change in self._wanted

    def changed(self, change: Change) -> None:
        """Something has changed. What nobody looks at is kept, within bounds."""
        if self.over or not (self.wants(change) or (change.uri is not None and self.resources)):
            return
        uri = change.uri or ""
        crowded = len(uri) > _URI_LENGTH or len(self._changed) >= len(self.wanted) + _PARTS
        if crowded and not self.wants(change):
            # Too many parts to keep them apart: then the resources themselves have changed.
            lists = (change for change in self._changed if change.uri is None)
            self._changed = dict.fromkeys([*lists, *self.resources])
        else:
            self._changed[change] = None
        self.wake()

    def missed(self) -> None:
        """Anything that is told of may have changed."""
        if self.settled and not self.over:
            self._changed.update(dict.fromkeys(self.honoured))
            self.wake()

    def closed(self) -> None:
        self.over = self.settled = True
        self._changed.clear()
        self.wake()


class _Watch(Pending):
    """A resource, which listenings want it, and whether the server was told so. Of the two requests that tell it one at most is
    under way, for where each travels by itself the second might arrive first."""

    def __init__(self, change: Change, answered: Callable[[_Watch, BaseException | None], None]) -> None:
        self.change = change
        self.listenings: list[Listening] = []
        self.subscribed = False
        self.asking = False
        self.id: RequestId | None = None
        self._answered = answered

    def end(self, result: Any, error: BaseException | None) -> None:
        self._answered(self, error)

    def progressed(self, event: ProgressReceived) -> None:
        """Nobody asked for it."""


class Listenings:
    """All listenings of a client over one connection: what to ask for them, and which of them an event concerns.

    After `open`, `renew`, `close` and each event of the connection, send what `next_request` gives until it gives None.
    """

    __slots__ = ("_listenings", "_requests", "_watches")

    def __init__(self) -> None:
        self._listenings: list[Listening] = []
        self._watches: dict[Change, _Watch] = {}  # where resources are subscribed to one by one
        self._requests: deque[tuple[str, t.RequestParams, Listening | _Watch]] = deque()

    def __repr__(self) -> str:
        return f"<Listenings: {len(self._listenings)}, {len(self._watches)} watches, {len(self._requests)} to ask>"

    def open(self, peer: Peer, wanted: Iterable[Change]) -> Listening:
        """Begin to listen to `peer`. To be closed in any case, also when it did not come about."""
        listening = Listening(wanted)
        self._begin(listening, peer)
        return listening

    def renew(self, listening: Listening, peer: Peer) -> None:
        """Begin anew what is over, with the same server or one that was started again. As soon as it is settled everything
        honoured counts as changed, for nobody knows what was missed.

        Raises:
            LocalProtocolError: it is not over.
        """
        if not listening.over:
            raise LocalProtocolError("only a listening that is over can be renewed")
        self._begin(listening, peer)

    def take_up(self, listening: Listening, peer: Peer) -> None:
        """Begin anew what was lost and is not over, unless it was closed meanwhile."""
        if listening in self._listenings:
            self._begin(listening, peer)

    def close(self, listening: Listening) -> RequestId | None:
        """End a listening from our side; what comes late is dropped. Gives the request to cancel, if there is one. Closing twice
        does nothing, nor does closing one that has ended with its connection."""
        if listening not in self._listenings:
            return None
        self._listenings.remove(listening)
        self._requests = deque(request for request in self._requests if request[2] is not listening)
        cancel = None if listening.over else listening.id
        listening.closed()
        for change in listening.resources:
            watch = self._watches.get(change)
            if watch is not None and listening in watch.listenings:
                watch.listenings.remove(listening)
                self._reconsider(watch)
        return cancel

    def next_request(self) -> tuple[str, t.RequestParams, Listening | _Watch] | None:
        """The next request to send: its method, its params, and its token, whose `id` is to be set to the request's."""
        return self._requests.popleft() if self._requests else None

    def wants(self, change: Change) -> bool:
        """Whether any of them wants to hear of just this."""
        return any(listening.wants(change) for listening in self._listenings)

    def take(self, event: Event) -> None:
        """Act on one event, if it is a change, the end or a new beginning. Answers go to the tokens instead."""
        if isinstance(event, NotificationReceived):
            method, params = event.method.name, event.params
            if method == ACKNOWLEDGED:
                for listening in self._addressed(params):
                    listening.acknowledged(params.notifications)
            elif method == UPDATED:
                self._changed(Change(uri=params.uri), params)
            elif method in LISTS:
                self._changed(LISTS[method], params)
        elif isinstance(event, PeerReady):
            # For the second time: it is another session, which knows nothing of what was asked for in the first.
            self._watches.clear()
            self._requests.clear()
            for listening in self._listenings:
                self._begin(listening, event.peer)
        elif isinstance(event, ChangesMissed):
            for listening in self._listenings:
                listening.missed()
        elif isinstance(event, ConnectionClosed):
            why = "the client was closed" if event.error is None else str(event.error)
            for listening in self._listenings:
                listening.end(None, ConnectionLost(why))
            self._listenings.clear()
            self._watches.clear()
            self._requests.clear()

    def _begin(self, listening: Listening, peer: Peer) -> None:
        if listening not in self._listenings:
            self._listenings.append(listening)
        if by_asking(peer.dialect):
            listening.begin((), listening.wanted)
            params = t.ListenParams(notifications=as_filter(listening.wanted))
            self._requests.append((LISTEN, params, listening))
            return
        told = offered(peer.dialect, peer.capabilities, listening.wanted)
        resources = [change for change in told if change.uri is not None]
        listening.begin([change for change in told if change.uri is None], resources)
        for change in resources:
            watch = self._watches.setdefault(change, _Watch(change, self._answered))
            watch.listenings.append(listening)
            if watch.subscribed and not watch.asking:
                listening.answered(change, None)
            self._reconsider(watch)

    def _changed(self, change: Change, params: t.NotificationParams) -> None:
        # An update without an id is for those who want just that URI. If nobody does it is of a part of something, and only
        # the server knows of what.
        watched = change in self._watches
        for listening in self._addressed(params):
            if not watched or listening.wants(change):
                listening.changed(change)

    def _addressed(self, params: t.NotificationParams) -> list[Listening]:
        """The listenings that a message is for: the one with its subscription id or, if it has none, those without one."""
        id = (params.meta or {}).get(t.META_SUBSCRIPTION_ID)
        return [each for each in self._listenings if type(each.id) is type(id) and each.id == id]

    # Where resources are subscribed to one by one.

    def _reconsider(self, watch: _Watch) -> None:
        """See whether there is something to tell the server about a resource."""
        uri = watch.change.uri
        assert uri is not None
        if watch.asking:
            return
        if watch.listenings and not watch.subscribed:
            self._requests.append(("resources/subscribe", t.SubscribeParams(uri=uri), watch))
            watch.asking = True
        elif watch.subscribed and not watch.listenings:
            self._requests.append(("resources/unsubscribe", t.UnsubscribeParams(uri=uri), watch))
            watch.asking = True
        elif not watch.listenings:
            del self._watches[watch.change]

    def _answered(self, watch: _Watch, error: BaseException | None) -> None:
        watch.asking = False
        if watch.subscribed:
            watch.subscribed = False  # also if the server would not: nothing relies on it any more
        elif error is None:
            watch.subscribed = True
            for listening in watch.listenings:
                listening.answered(watch.change, None)
        else:
            refused, watch.listenings = watch.listenings, []
            for listening in refused:
                listening.answered(watch.change, error)
        self._reconsider(watch)


def _unannounced() -> LocalProtocolError:
    return LocalProtocolError(
        "the server announces no changes of what is to be listened to", Fault.MISSING_CAPABILITY
    )


def _for_good(error: BaseException) -> bool:
    """What is lost stays lost."""
    return False


def _nothing() -> None:
    """What wakes nobody."""
