"""Subscriptions of a client: what to request for them, what changed, and when they end.

Until 2025-11-25 a session gets changes of lists unasked, and of a resource after
`resources/subscribe`. Since 2026-07-28 one `subscriptions/listen` requests everything, and each
message has the id of that request. For the caller both are one `ClientSubscription`.

1. An update may name a part of a subscribed resource, and only the server knows what is part of
   what. So such updates are accepted; if there are too many, the whole resources count as changed.
2. A server ends a subscription with the listen request's result. A client accepts any sign of the
   end: result, `cancelled`, error, or a closed connection.
3. After a loss everything may have changed, so all changes of a reopened subscription are reported
   once. The same holds after notifications were missed.

A caller that doesn't read changes costs no more memory than what it subscribed to, and never
misses the last change.
Sources: server/tools, server/prompts and server/resources of all revisions;
basic/patterns/subscriptions of 2026-07-28.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from mcp_core import types as t
from mcp_core._errors import ConnectionLost, Fault, LocalProtocolError
from mcp_core.protocol.messages._events import (
    ChangesMissed,
    ConnectionClosed,
    NotificationReceived,
    PeerReady,
)
from mcp_core.protocol.messages._pending import PendingRequest

from ._server import (
    ACKNOWLEDGED,
    LISTEN,
    LISTS,
    TASK_CHANGED,
    UPDATED,
    Change,
    announced,
    capabilities_for,
    changes_in_filter,
    needs_listen,
    spellings_of,
    to_filter,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp_core.protocol.messages._events import Event, Peer, ProgressReceived
    from mcp_core.types import RequestId, SubscriptionFilter
    from mcp_core.urls._normal_uri import UriSpellings

__all__ = ["ClientSubscription", "ClientSubscriptions"]

# Unread updates of parts of what we subscribed to. Only the server knows how many parts there are.
_MAX_PARTS: Final = 256
# Characters of the URI of a part; as long as the longest target that HTTP servers accept.
_MAX_URI_LENGTH: Final = 8 * 1024


class ClientSubscription(PendingRequest):
    """One subscription of a client, from `ClientSubscriptions.open` to `ClientSubscriptions.close`.

    Set `wake` to a function that wakes the waiting task without calling back. Wait until `settled`
    is true and call `require_open`. Then, each time `wake` is called, call `next_change` until it
    returns None. No more changes come once `over` is true.

    `wanted` is what was requested. `honoured`, once settled, is the part of it that the server will
    announce. `id` is the listen request's id, None where there is no such request.

    Set `on_lost` to a function that gets the error when an open subscription is lost, and returns
    True if it will be reopened. Then it isn't over. `consecutive_losses` counts such losses.
    """

    def __init__(self, wanted: Iterable[Change]) -> None:
        self.wanted = tuple(dict.fromkeys(wanted))
        self.honoured: tuple[Change, ...] = ()
        self.id: RequestId | None = None
        self.settled = False
        self.over = False
        self.consecutive_losses = 0
        self.wake: Callable[[], object] = _nothing
        self.on_lost: Callable[[BaseException], bool] = _never_reopen
        self._was_open = False
        self.resources = [change for change in self.wanted if change.uri is not None]
        self._wanted = frozenset(self.wanted)
        self._changed: dict[Change, None] = {}
        self._spellings: UriSpellings | None = None  # of `resources`, once one is spelled otherwise
        self._unanswered: set[Change] = set()
        self._reopened = False
        self._error: BaseException | None = None
        self._rejection: BaseException | None = None

    def __repr__(self) -> str:
        state = "over" if self.over else "open" if self.settled else "being opened"
        return (
            f"<ClientSubscription to {len(self.honoured)} of {len(self.wanted)}, {state}, "
            f"{len(self._changed)} changed>"
        )

    def require_open(self) -> None:
        """Check, once `settled`, that the server announces anything.

        Raises:
            PeerError: the server refused.
            ConnectionLost: the connection ended.
            LocalProtocolError: the server announces no changes of what was requested.
        """
        if self._error is not None:
            raise self._error
        if not self.honoured and not self.over:
            raise self._rejection or _not_announced()

    @property
    def has_changes(self) -> bool:
        """True if `next_change` has a change to return, or the subscription is `over`."""
        return bool(self._changed) or self.over

    def next_change(self) -> Change | None:
        """Return the next change, or None: nothing changed yet, or never will if `over`.

        Several changes of the same list or resource are one. The URI may name a part of a
        resource that was requested.

        Raises:
            ConnectionLost: after the last change. The server did not end the subscription, so
                changes may have been missed: read everything again, or call `renew`, which reports
                all as changed.
            PeerError: likewise, with the server's reason.
        """
        if self._changed:
            change = next(iter(self._changed))
            del self._changed[change]
            return change
        if self._error is not None:
            raise self._error
        return None

    def end(self, result: Any, error: BaseException | None) -> None:
        """End the subscription by the listen request's result, or an error."""
        if self.over:
            return
        if self._was_open and error is not None and self.on_lost(error):
            self.consecutive_losses += 1
            self.id = None
            return
        self.over = True
        self.settled = True
        self._error = error
        self.wake()

    def on_progress(self, event: ProgressReceived) -> None:
        """Do nothing: no progress was requested."""

    # Called by `ClientSubscriptions`.

    def begin(self, honoured: Iterable[Change], unanswered: Iterable[Change]) -> None:
        """Start or restart. `honoured` is certain; `unanswered` waits for the server's response."""
        self._reopened = self.over or self._was_open
        self.id = None
        self._error = None
        self._rejection = None
        self.over = False
        self.settled = False
        self.honoured = tuple(honoured)
        self._unanswered = set(unanswered)
        self._settle()

    def reject(self, capabilities: Iterable[str]) -> None:
        """Settle a subscription that isn't requested: its server lacks these capabilities."""
        was_open = self._was_open
        self.begin((), ())
        self._rejection = _not_announced(capabilities)
        if was_open:
            self.end(None, self._rejection)

    def acknowledged(self, subscription_filter: SubscriptionFilter) -> None:
        """Take the server's acknowledgement. Only the first counts, and only what was requested."""
        if not self.settled:
            honoured = {self.as_wanted(each) for each in changes_in_filter(subscription_filter)}
            self.honoured = tuple(change for change in self.wanted if change in honoured)
            self._unanswered.clear()
            self.consecutive_losses = 0
            self._settle()
            if self._was_open and not self.honoured:
                self.end(None, _not_announced())

    def resource_answered(self, change: Change, error: BaseException | None) -> None:
        """Take the response for one resource. `error` is None if the server accepted."""
        if error is None:
            self.honoured += (change,)
        else:
            self._rejection = self._rejection or error
        self._unanswered.discard(change)
        self._settle()

    def _settle(self) -> None:
        if not self._unanswered:
            self.settled = True
            self._was_open = self._was_open or bool(self.honoured)
            if self._reopened:
                self._changed.update(dict.fromkeys(self.honoured))
            self.wake()

    def covers(self, change: Change) -> bool:
        """Return True if exactly this change was requested."""
        return change in self._wanted

    def as_wanted(self, change: Change) -> Change:
        """Return a server's change with the URI as it was requested.

        A URI that wasn't requested, or could mean two that were, stays as it is.
        """
        if change.uri is None or not self.resources or self.covers(change):
            return change
        if self._spellings is None:
            self._spellings = spellings_of(self.resources)
        uri = self._spellings.find(change.uri)
        return change if uri is None else Change(uri=uri)

    def record_change(self, change: Change) -> None:
        """Record a change until it is read. The number of unread changes is bounded."""
        if self.over or not (self.covers(change) or (change.uri is not None and self.resources)):
            return
        uri = change.uri or ""
        too_many = len(uri) > _MAX_URI_LENGTH or len(self._changed) >= len(self.wanted) + _MAX_PARTS
        if too_many and not self.covers(change):
            # Too many parts to keep them apart: report the resources themselves as changed.
            lists = (change for change in self._changed if change.uri is None)
            self._changed = dict.fromkeys([*lists, *self.resources])
        else:
            self._changed[change] = None
        self.wake()

    def mark_all_changed(self) -> None:
        """Count everything that the server announces as changed."""
        if self.settled and not self.over:
            self._changed.update(dict.fromkeys(self.honoured))
            self.wake()

    def mark_closed(self) -> None:
        """End the subscription, because its caller closed it."""
        self.over = True
        self.settled = True
        self._changed.clear()
        self.wake()


class _ResourceSubscription(PendingRequest):
    """A resource, the subscriptions that need it, and whether the server knows.

    At most one of the two requests is in flight: where each travels on an HTTP request of its own,
    the second could arrive first.
    """

    def __init__(
        self,
        change: Change,
        answered: Callable[[_ResourceSubscription, BaseException | None], None],
    ) -> None:
        self.change = change
        self.subscriptions: list[ClientSubscription] = []
        self.subscribed = False
        self.in_flight = False
        self.id: RequestId | None = None
        self._answered = answered

    def end(self, result: Any, error: BaseException | None) -> None:
        self._answered(self, error)

    def on_progress(self, event: ProgressReceived) -> None:
        """Do nothing: no progress was requested."""


class ClientSubscriptions:
    """All subscriptions of a client on one connection.

    They decide what to request for them, and which of them an event concerns. After `open`,
    `renew`, `close` and each connection event, send what `next_request` returns until it returns
    None.
    """

    __slots__ = ("_requests", "_resources", "_subscriptions")

    def __init__(self) -> None:
        self._subscriptions: list[ClientSubscription] = []
        # Only where resources are subscribed to one by one.
        self._resources: dict[Change, _ResourceSubscription] = {}
        self._requests: deque[
            tuple[str, t.RequestParams, ClientSubscription | _ResourceSubscription]
        ] = deque()

    def __repr__(self) -> str:
        return (
            f"<ClientSubscriptions: {len(self._subscriptions)}, {len(self._resources)} watches, "
            f"{len(self._requests)} to ask>"
        )

    def open(self, peer: Peer, wanted: Iterable[Change]) -> ClientSubscription:
        """Open a subscription to `peer`. Close it in any case, even if it never opened."""
        subscription = ClientSubscription(wanted)
        self._begin(subscription, peer)
        return subscription

    def renew(self, subscription: ClientSubscription, peer: Peer) -> None:
        """Reopen a subscription that is over, with the same server or one that was restarted.

        As soon as it is settled everything honoured counts as changed, because changes may have
        been missed.

        Raises:
            LocalProtocolError: it isn't over.
        """
        if not subscription.over:
            raise LocalProtocolError("only a subscription that has ended can be renewed")
        self._begin(subscription, peer)

    def reopen(self, subscription: ClientSubscription, peer: Peer) -> None:
        """Reopen a lost subscription that isn't over, unless it was closed in between."""
        if subscription in self._subscriptions:
            self._begin(subscription, peer)

    def close(self, subscription: ClientSubscription) -> RequestId | None:
        """Close a subscription from our side. Return the id of the request to cancel, or None.

        Later messages for it are dropped. Do nothing if it is closed already, or ended with its
        connection.
        """
        if subscription not in self._subscriptions:
            return None
        self._subscriptions.remove(subscription)
        self._requests = deque(
            request for request in self._requests if request[2] is not subscription
        )
        cancel = None if subscription.over else subscription.id
        subscription.mark_closed()
        for change in subscription.resources:
            resource = self._resources.get(change)
            if resource is not None and subscription in resource.subscriptions:
                resource.subscriptions.remove(subscription)
                self._update_server(resource)
        return cancel

    def next_request(
        self,
    ) -> tuple[str, t.RequestParams, ClientSubscription | _ResourceSubscription] | None:
        """Return the next request to send, or None: its method, its params, and its token.

        Set the token's `id` to the request's id.
        """
        return self._requests.popleft() if self._requests else None

    def covers(self, change: Change) -> bool:
        """Return True if any subscription covers exactly this change."""
        return any(subscription.covers(change) for subscription in self._subscriptions)

    def handle_event(self, event: Event) -> None:
        """Handle an event: a change, the end, or a new session. Responses go to the tokens."""
        if isinstance(event, NotificationReceived):
            method = event.method.name
            params = event.params
            if method == ACKNOWLEDGED:
                for subscription in self._recipients(params):
                    subscription.acknowledged(params.notifications)
            elif method == UPDATED:
                self._changed(Change(uri=params.uri), params)
            elif method == TASK_CHANGED:
                self._changed(Change(task=params.task_id), params)
            elif method in LISTS:
                self._changed(LISTS[method], params)
        elif isinstance(event, PeerReady):
            # A second PeerReady means a new session, which has no subscriptions yet.
            self._resources.clear()
            self._requests.clear()
            for subscription in self._subscriptions:
                self._begin(subscription, event.peer)
        elif isinstance(event, ChangesMissed):
            for subscription in self._subscriptions:
                subscription.mark_all_changed()
        elif isinstance(event, ConnectionClosed):
            reason = "the client was closed" if event.error is None else str(event.error)
            for subscription in self._subscriptions:
                subscription.end(None, ConnectionLost(reason))
            self._subscriptions.clear()
            self._resources.clear()
            self._requests.clear()

    def _begin(self, subscription: ClientSubscription, peer: Peer) -> None:
        if subscription not in self._subscriptions:
            self._subscriptions.append(subscription)
        changes = announced(peer.dialect, peer.capabilities, subscription.wanted)
        if not changes:
            subscription.reject(capabilities_for(peer.dialect, subscription.wanted))
            return
        if needs_listen(peer.dialect):
            subscription.begin((), subscription.wanted)
            params = t.ListenParams(notifications=to_filter(subscription.wanted))
            self._requests.append((LISTEN, params, subscription))
            return
        resources = [change for change in changes if change.uri is not None]
        subscription.begin([change for change in changes if change.uri is None], resources)
        for change in resources:
            resource = self._resources.setdefault(
                change, _ResourceSubscription(change, self._answered)
            )
            resource.subscriptions.append(subscription)
            if resource.subscribed and not resource.in_flight:
                subscription.resource_answered(change, None)
            self._update_server(resource)

    def _changed(self, change: Change, params: t.NotificationParams) -> None:
        # An update without an id is for the subscriptions to exactly that URI. If there are none,
        # it is of a part of something, and only the server knows of what.
        found = [(each, each.as_wanted(change)) for each in self._recipients(params)]
        watched = any(wanted in self._resources for _, wanted in found)
        for subscription, wanted in found:
            if not watched or subscription.covers(wanted):
                subscription.record_change(wanted)

    def _recipients(self, params: t.NotificationParams) -> list[ClientSubscription]:
        """Return the subscriptions that a message is for.

        That is the one with the message's subscription id. A message without an id is for all
        subscriptions that have none.
        """
        id = (params.meta or {}).get(t.META_SUBSCRIPTION_ID)
        found = [
            each for each in self._subscriptions if type(each.id) is type(id) and each.id == id
        ]
        if found or type(id) is not str:
            return found
        return [each for each in self._subscriptions if type(each.id) is int and str(each.id) == id]

    # Where resources are subscribed to one by one.

    def _update_server(self, resource: _ResourceSubscription) -> None:
        """Queue a request if the server has to start or stop sending updates."""
        uri = resource.change.uri
        assert uri is not None
        if resource.in_flight:
            return
        if resource.subscriptions and not resource.subscribed:
            self._requests.append(("resources/subscribe", t.SubscribeParams(uri=uri), resource))
            resource.in_flight = True
        elif resource.subscribed and not resource.subscriptions:
            self._requests.append(("resources/unsubscribe", t.UnsubscribeParams(uri=uri), resource))
            resource.in_flight = True
        elif not resource.subscriptions:
            del self._resources[resource.change]

    def _answered(self, resource: _ResourceSubscription, error: BaseException | None) -> None:
        resource.in_flight = False
        if resource.subscribed:
            resource.subscribed = False  # even if the server refused: it no longer matters
        elif error is None:
            resource.subscribed = True
            for subscription in resource.subscriptions:
                subscription.resource_answered(resource.change, None)
        else:
            refused = resource.subscriptions
            resource.subscriptions = []
            for subscription in refused:
                subscription.resource_answered(resource.change, error)
        self._update_server(resource)


def _not_announced(capabilities: Iterable[str] = ()) -> LocalProtocolError:
    """Build the error about a server that lacks these capabilities, or has accepted nothing."""
    missing = " or ".join(capabilities)
    why = f"it did not declare {missing}" if missing else "it has accepted none of them"
    return LocalProtocolError(
        f"the server announces no changes of what was requested: {why}", Fault.MISSING_CAPABILITY
    )


def _never_reopen(error: BaseException) -> bool:
    """Return False: a lost subscription isn't reopened."""
    return False


def _nothing() -> None:
    """Do nothing: no task waits."""
