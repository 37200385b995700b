"""Change notifications of a server: accept subscriptions, and queue notifications of changes.

A change is a level, not an event: it means "read again", so one notification is worth as much as a
hundred. A subscription is a set of `Change`s, and what is still to be sent is a subset of it. A
client that doesn't read costs no more than what it subscribed to, and never misses the last
change. A task's notification has its state, of which only the last one is kept. The client
side is `ClientSubscriptions`.

1. Until 2025-11-25 a session gets changes of all lists unasked, and of a resource after
   `resources/subscribe`. Since 2026-07-28 it gets what a `subscriptions/listen` requested, with the
   id of that request on each message. The table stores the former under the id None.
2. Nothing is sent on a subscription before its acknowledgement (for a session, before it is open)
   or after its end. A server ends one with the listen request's result alone; two pages of
   2026-07-28 contradict each other here.
3. A change becomes a message only while little else is queued. What a client doesn't read stays a
   set of changes, each sent once, and doesn't become a queue.
4. Which tasks a client may see isn't known here. A `subscriptions/listen` that names tasks becomes
   an event, and is accepted when its handler has looked them up.
5. Whether a client may see a resource is asked at each change, not at its subscription: the answer
   may differ later, and the resource may be declared later. So a subscription to one that it
   doesn't see is like one to a resource that doesn't exist, also in what it counts.

Sources: server/tools, server/prompts and server/resources of all revisions;
basic/patterns/subscriptions of 2026-07-28; the extension `io.modelcontextprotocol/tasks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._errors import Fault, LocalProtocolError
from mcp_core.protocol.jsonrpc._codec import encode_notification, encode_result
from mcp_core.protocol.messages._outbox import MessageKind, Outgoing
from mcp_core.protocol.messages._rejection import (
    RequestRejected,
    error_response,
    missing_capability,
)
from mcp_core.protocol.revisions._capabilities import capability_name, is_declared
from mcp_core.protocol.revisions._encoding import encode_result_parts
from mcp_core.protocol.revisions._methods import TASKS, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from mcp_core.protocol.messages._events import RequestReceived
    from mcp_core.protocol.messages._outbox import Outbox
    from mcp_core.protocol.revisions._config import Config, DialectConfig
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.types import RequestId, SubscriptionFilter
    from mcp_core.urls._normal_uri import UriSpellings

    # Of a URI and a request: whether its sender doesn't see that resource.
    Hides: TypeAlias = Callable[[str, RequestReceived], bool]

__all__ = [
    "ACKNOWLEDGED",
    "CHANGES_HIGH_WATER",
    "LISTEN",
    "LISTS",
    "SUBSCRIPTION_METHODS",
    "TASK_CHANGED",
    "UPDATED",
    "Change",
    "ChangeNotification",
    "SubscriptionEnd",
    "SubscriptionPublisher",
    "SubscriptionTable",
    "announced",
    "capabilities_for",
    "changes",
    "changes_in_filter",
    "needs_listen",
    "spellings_of",
    "to_filter",
]

LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"
TASK_CHANGED: Final = "notifications/tasks"
_TASK_STATUS: Final = "notifications/tasks/status"  # the same in a session
SUBSCRIPTION_METHODS: Final = frozenset({"resources/subscribe", "resources/unsubscribe", LISTEN})

# Bytes queued on a connection or stream above which change notifications wait.
CHANGES_HIGH_WATER: Final = 16 * 1024

# Looking up a member of an enum costs more than most comparisons with it.
_NOTIFICATION: Final = MessageKind.NOTIFICATION
_RESPONSE: Final = MessageKind.RESPONSE
_SERVER: Final = Role.SERVER


class Change(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """A change of something that a server offers: of a list, of the resource `uri`, or of a task.

    What was read of it before may be out of date. Exactly one of the three is given.

    Attributes:
        list: the list that has changed.
        uri: the resource whose contents have changed.
        task: the id of the task whose state has changed.

    Raises:
        ValueError: none is given, or several.
    """

    list: Literal["tools", "prompts", "resources"] | None = None
    uri: str | None = None
    task: str | None = None

    def __post_init__(self) -> None:
        if (self.list, self.uri, self.task).count(None) != 2:
            raise ValueError("what changes is either a list, a resource or a task")

    @property
    def method(self) -> str:
        """The notification method for this change, in every revision that has one."""
        if self.list is not None:
            return f"notifications/{self.list}/list_changed"
        return UPDATED if self.task is None else TASK_CHANGED


_TOOLS: Final = Change("tools")

_PROMPTS: Final = Change("prompts")

_RESOURCES: Final = Change("resources")

LISTS: Final = {change.method: change for change in (_TOOLS, _PROMPTS, _RESOURCES)}


def changes(
    *, tools: bool = False, prompts: bool = False, resources: bool = False, uris: Iterable[str] = ()
) -> tuple[Change, ...]:
    """Return the changes of these lists and of the resources with these URIs, each once.

    Raises:
        ValueError: no list and no URI is given.
        TypeError: `uris` is one string, or has something else than strings.
    """
    if isinstance(uris, str):
        raise TypeError("uris is several URIs, not one string")
    given: tuple[Any, ...] = tuple(uris)
    for uri in given:
        if not isinstance(uri, str):
            # Later it would fail in another task.
            cure = ": pass path.as_uri()" if hasattr(uri, "as_uri") else ""
            raise TypeError(f"a URI is a string, not {type(uri).__name__}{cure}")
    flags = ((_TOOLS, tools), (_PROMPTS, prompts), (_RESOURCES, resources))
    found = dict.fromkeys(change for change, requested in flags if requested)
    found.update((Change(uri=uri), None) for uri in given)
    if not found:
        raise ValueError("name a list or a resource")
    return tuple(found)


def spellings_of(changes: Iterable[Change]) -> UriSpellings:
    """Return the URIs of these changes by normal form."""
    # On first use: only a change of a resource that isn't watched as it is spelled needs it.
    from mcp_core.urls._normal_uri import UriSpellings

    return UriSpellings(change.uri for change in changes if change.uri is not None)


def changes_in_filter(subscription_filter: SubscriptionFilter) -> dict[Change, None]:
    """Return the changes that a filter names, each once."""
    flags = (
        subscription_filter.tools_list_changed,
        subscription_filter.prompts_list_changed,
        subscription_filter.resources_list_changed,
    )
    found = {change: None for change, flag in zip(LISTS.values(), flags, strict=True) if flag}
    found.update(
        (Change(uri=uri), None) for uri in subscription_filter.resource_subscriptions or ()
    )
    found.update((Change(task=id), None) for id in subscription_filter.task_ids or ())
    return found


def to_filter(wanted: Iterable[Change]) -> SubscriptionFilter:
    """Return the filter that names these changes."""
    wanted = tuple(wanted)
    return t.SubscriptionFilter(
        tools_list_changed=_TOOLS in wanted or None,
        prompts_list_changed=_PROMPTS in wanted or None,
        resources_list_changed=_RESOURCES in wanted or None,
        resource_subscriptions=[change.uri for change in wanted if change.uri is not None] or None,
        task_ids=[change.task for change in wanted if change.task is not None] or None,
    )


def announced(dialect: Dialect, capabilities: Any, wanted: Iterable[Change]) -> dict[Change, None]:
    """Return what a server with these capabilities announces of `wanted`."""
    rows = dialect.receives[Role.CLIENT]
    return {
        change: None
        for change in wanted
        if change.method in rows and is_declared(capabilities, rows[change.method].needs)
    }


def capabilities_for(dialect: Dialect, wanted: Iterable[Change]) -> list[str]:
    """Return the names of the capabilities with which a server announces `wanted`, each once."""
    rows = dialect.receives[Role.CLIENT]
    needed = [rows[change.method].needs for change in wanted if change.method in rows]
    return list(dict.fromkeys(map(capability_name, needed)))


def needs_listen(dialect: Dialect) -> bool:
    """Return True if this revision sends changes only after a `subscriptions/listen` request."""
    return LISTEN in dialect.receives[Role.SERVER]


# -- The server side -----------------------------------------------------------------------------


class ChangeNotification(Struct):
    """A notification to send in `dialect`.

    `related` is the id of its listen request, None for a session.
    """

    dialect: Dialect
    related: RequestId | None
    method: str
    params: t.NotificationParams


class SubscriptionEnd(Struct):
    """The end of the listen request `id`: send the notifications in `remaining`, then `result`."""

    dialect: Dialect
    id: RequestId
    remaining: list[ChangeNotification]
    result: t.ListenResult


class _Subscription(Struct):
    """The changes that one listen request or the session covers, and those not yet sent.

    `pending` is ordered: the change that was published first is sent first. A task's value is
    its state. `spellings` are of the URIs in `wanted`, once a change was of none of them. `sender`
    is its listen request, or the session's last `resources/subscribe`, without the params; None
    if it has none.
    """

    dialect: Dialect
    wanted: dict[Change, None]
    sender: RequestReceived | None = None
    pending: dict[Change, t.TaskStatusParams | None] = {}
    spellings: UriSpellings | None = None

    def covered(self, change: Change) -> list[Change]:
        """Return the wanted changes that `change` is one of, with URIs as the client wrote them."""
        if change in self.wanted:
            return [change]
        if change.uri is None:
            return []
        if self.spellings is None:
            self.spellings = spellings_of(self.wanted)
        uris = self.spellings.find_all(change.uri) if self.spellings else ()
        return [Change(uri=uri) for uri in uris]

    def shown(self, changes: list[Change], hides: Hides | None) -> list[Change]:
        """Return those of `changes` that the subscription's client may see."""
        sender = self.sender
        if hides is None or sender is None:
            return changes
        return [each for each in changes if each.uri is None or not hides(each.uri, sender)]


def _without_params(request: RequestReceived | None) -> RequestReceived | None:
    """Return what is to be kept of a request: its params may be as long as a message."""
    return None if request is None else replace(request, params=None, raw=b"")


class SubscriptionTable:
    """The subscriptions of one connection's peer: its session's, and its listen requests'.

    Call `publish` for each change, then send what `next_notification` returns while there is
    capacity.

    Args:
        config: what this server declares, and its limits. Changes that it doesn't declare are
            never sent.
    """

    __slots__ = ("_config", "_limits", "_ready", "_subscriptions", "_task_count", "_uri_count")

    def __init__(self, config: Config) -> None:
        self._config = config
        self._limits = config.limits
        # By the listen request's id; None for the session.
        self._subscriptions: dict[RequestId | None, _Subscription] = {}
        # Ids of subscriptions with changes to send, in the order in which they are served.
        self._ready: dict[RequestId | None, None] = {}
        self._uri_count = 0
        self._task_count = 0

    def __repr__(self) -> str:
        session = "a session and " if None in self._subscriptions else ""
        return (
            f"<SubscriptionTable of {session}{self.listen_count} streams, {self._uri_count} URIs,"
            f" {len(self._ready)} waiting>"
        )

    def __contains__(self, id: RequestId) -> bool:
        """Return True if `id` is a listen request that hasn't ended."""
        return id in self._subscriptions

    @property
    def listen_count(self) -> int:
        """The number of listen requests that have not ended."""
        return len(self._subscriptions) - (None in self._subscriptions)

    # -- Subscribe and unsubscribe ----------------------------------------------------------------

    def start_session(self, dialect: Dialect) -> None:
        """Subscribe the session to all lists, after a handshake.

        Do nothing in revisions where the client has to send a listen request for that.
        """
        if not needs_listen(dialect) and None not in self._subscriptions:
            self._subscriptions[None] = _Subscription(
                dialect, announced(dialect, self._config.capabilities, LISTS.values())
            )

    def subscribe(self, dialect: Dialect, uri: str, sender: RequestReceived | None = None) -> None:
        """Subscribe the session to a resource, whether or not it exists. Idempotent.

        `sender` is the request, for the `hides` of `publish`.

        Raises:
            LocalProtocolError: the URI is too long, or one too many; `fault` says which.
        """
        self.start_session(dialect)
        session = self._subscriptions[None]
        wanted = session.wanted
        # A URI means that resource and no other. The specification allows updates for a part of a
        # subscribed resource, but only the server's author knows the parts, and publishes both.
        change = Change(uri=uri)
        if change not in wanted:
            self._reserve([change])
            wanted[change] = None
            session.spellings = None
        session.sender = _without_params(sender)

    def unsubscribe(self, uri: str) -> None:
        """Unsubscribe the session from a resource. Do nothing if it wasn't subscribed."""
        session = self._subscriptions.get(None)
        found = [] if session is None else session.covered(Change(uri=uri))
        if session is None or len(found) != 1:
            return
        [change] = found
        del session.wanted[change]
        session.spellings = None
        self._uri_count -= 1
        session.pending.pop(change, None)
        if not session.pending:
            self._ready.pop(None, None)

    def listen(
        self,
        id: RequestId,
        dialect: Dialect,
        subscription_filter: SubscriptionFilter,
        sender: RequestReceived | None = None,
    ) -> ChangeNotification:
        """Add a listen request and return its acknowledgement.

        Send the acknowledgement before calling any other method: it names the changes that will be
        sent, and covers every change from now on. `sender` is as for `subscribe`.

        Raises:
            LocalProtocolError: as `check_listen`.
        """
        assert id not in self._subscriptions, "an id is in use until its request has ended"
        wanted = self.check_listen(dialect, subscription_filter)
        self._reserve(wanted)
        self._subscriptions[id] = _Subscription(dialect, wanted, _without_params(sender))
        params = t.AcknowledgedParams(meta=_subscription_meta(id), notifications=to_filter(wanted))
        return ChangeNotification(dialect, id, ACKNOWLEDGED, params)

    def check_listen(
        self, dialect: Dialect, subscription_filter: SubscriptionFilter
    ) -> dict[Change, None]:
        """Return the changes that a listen request with this filter would get.

        Raises:
            LocalProtocolError: there are too many listen requests, URIs or tasks, or a URI is too
                long; `fault` says which.
        """
        limit = self._limits.listens
        if self.listen_count >= limit:
            raise LocalProtocolError(
                f"at most {limit} subscriptions at once; end one first", Fault.BUSY
            )
        wanted = announced(
            dialect, self._config.capabilities, changes_in_filter(subscription_filter)
        )
        self._check_limits(wanted)
        return wanted

    def cancel(self, id: RequestId) -> bool:
        """End a listen request that its client cancelled, and send nothing more for it.

        Return False if there is no such request.
        """
        subscription = self._subscriptions.pop(id, None)
        if subscription is None:
            return False
        self._uri_count -= sum(change.uri is not None for change in subscription.wanted)
        self._task_count -= sum(change.task is not None for change in subscription.wanted)
        self._ready.pop(id, None)
        return True

    def end_all(self) -> list[SubscriptionEnd]:
        """End all subscriptions from our side. Return how to end each listen request.

        The session needs no message: it just gets no more notifications.
        """
        ended = [
            SubscriptionEnd(
                subscription.dialect,
                id,
                [
                    _build_notification(id, subscription.dialect, change, status)
                    for change, status in subscription.pending.items()
                ],
                t.ListenResult(meta=_subscription_meta(id)),
            )
            for id, subscription in self._subscriptions.items()
            if id is not None
        ]
        self._subscriptions.clear()
        self._ready.clear()
        self._uri_count = 0
        self._task_count = 0
        return ended

    def _reserve(self, wanted: Collection[Change]) -> None:
        """Check the limits, and count the URIs and tasks."""
        self._uri_count, self._task_count = self._check_limits(wanted)

    def _check_limits(self, wanted: Collection[Change]) -> tuple[int, int]:
        """Return the numbers of URIs and tasks with these changes."""
        limits = self._limits
        uris = [change.uri for change in wanted if change.uri is not None]
        if any(len(uri) > limits.uri for uri in uris):
            raise LocalProtocolError(
                f"a URI has at most {limits.uri} characters here", Fault.INVALID_PARAMS
            )
        uri_count = self._uri_count + len(uris)
        if uri_count > limits.uris:
            text = f"at most {limits.uris} URIs can be watched at once"
            raise LocalProtocolError(text, Fault.BUSY)
        task_count = self._task_count + sum(change.task is not None for change in wanted)
        if task_count > limits.task_ids:
            text = f"at most {limits.task_ids} tasks can be watched at once"
            raise LocalProtocolError(text, Fault.BUSY)
        return uri_count, task_count

    # -- Changes to send --------------------------------------------------------------------------

    def publish(
        self,
        change: Change,
        status: t.TaskStatusParams | None = None,
        hides: Hides | None = None,
    ) -> bool:
        """Record a change. Return True if this peer is to be notified of it.

        A task's change has its `status`. A session of 2025-11-25 gets the changes of all tasks
        that are published: it has no subscriptions to tasks. `hides` returns True if a resource is
        hidden from the sender of a request; by default none is.
        """
        covered = False
        for id, subscription in self._subscriptions.items():
            found = subscription.shown(subscription.covered(change), hides)
            if status is not None and id is None and subscription.dialect.tasks == "requested":
                found = [change]
            if found:
                subscription.pending.update(dict.fromkeys(found, status))
                self._ready[id] = None
                covered = True
                if id is None and len(subscription.pending) > self._limits.task_ids:
                    self._drop_unread_task(subscription)
        return covered

    def _drop_unread_task(self, session: _Subscription) -> None:
        """Drop the oldest state of a task that waits, if there are too many.

        A session's client may never open the stream for them. It can poll: these notifications are
        optional (2025-11-25, basic/utilities/tasks).
        """
        tasks = [change for change in session.pending if change.task is not None]
        if len(tasks) > self._limits.task_ids:
            del session.pending[tasks[0]]

    def publish_all_resources(self, hides: Hides | None = None) -> bool:
        """Record a change of every resource. Return True if the peer has subscribed to one.

        `hides` is as for `publish`.
        """
        covered = False
        for id, subscription in self._subscriptions.items():
            found = [change for change in subscription.wanted if change.uri is not None]
            found = subscription.shown(found, hides)
            if found:
                subscription.pending.update(dict.fromkeys(found))
                self._ready[id] = None
                covered = True
        return covered

    def covers_task(self, task_id: str) -> bool:
        """Return True if a listen request covers a task."""
        change = Change(task=task_id)
        return any(change in subscription.wanted for subscription in self._subscriptions.values())

    def end_unread(self) -> dict[RequestId, Dialect]:
        """End the listen requests whose client leaves too many results of tasks unread.

        Return their ids, and their revisions. Their client has to read its tasks' states.
        """
        unread = {
            id: subscription.dialect
            for id, subscription in self._subscriptions.items()
            if id is not None and _unread_results(subscription) > self._limits.message
        }
        for id in unread:
            self.cancel(id)
        return unread

    def next_notification(
        self, has_capacity: Callable[[RequestId | None], bool] | None = None
    ) -> ChangeNotification | None:
        """Return the next notification to send, which counts as sent, or None.

        Subscriptions are served in turn. `has_capacity` returns True if more can be sent now for a
        listen request, or for the session (None). Without it all have capacity.
        """
        for id in self._ready:
            if has_capacity is None or has_capacity(id):
                break
        else:
            return None
        subscription = self._subscriptions[id]
        change = next(iter(subscription.pending))
        status = subscription.pending.pop(change)
        del self._ready[id]
        if subscription.pending:
            self._ready[id] = None  # at the end of the turn order
        return _build_notification(id, subscription.dialect, change, status)


def _unread_results(subscription: _Subscription) -> int:
    """Return the bytes of all results that wait, or 0 if it is one, which may have any size."""
    results = [status.result for status in subscription.pending.values() if status is not None]
    sizes = [memoryview(result).nbytes for result in results if isinstance(result, Raw)]
    return sum(sizes) if len(sizes) > 1 else 0


def _build_notification(
    id: RequestId | None, dialect: Dialect, change: Change, status: t.TaskStatusParams | None
) -> ChangeNotification:
    meta = _subscription_meta(id) if id is not None else None
    params: t.NotificationParams
    if status is not None:
        params = replace(status, meta=meta)
        if id is None:
            return ChangeNotification(dialect, id, _TASK_STATUS, params)
    elif change.uri is None:
        params = t.ListChangedParams(meta=meta)
    else:
        params = t.ResourceUpdatedParams(uri=change.uri, meta=meta)
    return ChangeNotification(dialect, id, change.method, params)


def _subscription_meta(id: RequestId) -> dict[str, Any]:
    return {t.META_SUBSCRIPTION_ID: id}


class SubscriptionPublisher:
    """Sends the peer of one connection what it subscribed to.

    A subscription isn't among the requests in flight: it needs no handler, and it is long-lived.
    The id of its listen request is in use all the same.

    Args:
        config: what this server declares, and its limits.
        out: gets the messages.
        has_capacity: returns True if more can be sent now for a listen request, or for the session
            (None). Without it only the outbox's length counts.
    """

    __slots__ = ("_config", "_has_capacity", "_out", "table")

    def __init__(
        self,
        config: Config,
        out: Outbox,
        has_capacity: Callable[[RequestId | None], bool] | None = None,
    ) -> None:
        self._config = config
        self._out = out
        self._has_capacity = has_capacity
        self.table = SubscriptionTable(config)

    def handle_request(self, request: RequestReceived, dialect_config: DialectConfig) -> bool:
        """Handle one of the requests in `SUBSCRIPTION_METHODS`.

        The response is queued, except to a listen request: its response is the end of the
        subscription. Return False if the request names tasks: call `listen` when it is known
        which of them the peer may see.

        Raises:
            RequestRejected: it is one subscription too many, a URI is too long, or the peer did not
                declare that it knows tasks.
        """
        dialect = dialect_config.dialect
        params = request.params
        try:
            if request.method.name == LISTEN:
                wanted = params.notifications
                if wanted.task_ids and self._config.declares_tasks:
                    if not is_declared(request.peer.capabilities, TASKS):
                        raise missing_capability(f"{LISTEN} with taskIds", TASKS, dialect)
                    self.table.check_listen(dialect, wanted)
                    return False
                self._send_notification(self.table.listen(request.id, dialect, wanted, request))
                return True
            if request.method.name == "resources/subscribe":
                self.table.subscribe(dialect, params.uri, request)
            else:
                self.table.unsubscribe(params.uri)
        except LocalProtocolError as exc:
            raise RequestRejected(exc.fault, str(exc), dialect=dialect) from None
        self._send_result(request.id, t.EmptyResult(), dialect_config)
        return True

    def listen(
        self, request: RequestReceived, honoured: SubscriptionFilter, *, ending: bool
    ) -> None:
        """Accept the listen request `request` with `honoured`, unless the connection is `ending`.

        Raises:
            RequestRejected: it is over a limit, or the connection is ending.
        """
        dialect = request.peer.dialect
        if ending:
            raise RequestRejected(Fault.BUSY, "the server is being shut down", dialect=dialect)
        try:
            self._send_notification(self.table.listen(request.id, dialect, honoured, request))
        except LocalProtocolError as exc:
            raise RequestRejected(exc.fault, str(exc), dialect=dialect) from None

    def publish(
        self,
        change: Change,
        status: t.TaskStatusParams | None = None,
        hides: Hides | None = None,
    ) -> bool:
        """Record a change. Return True if the peer is to be notified of it.

        `status` and `hides` are as for `SubscriptionTable.publish`.
        """
        subscribed = self.table.publish(change, status, hides)
        if status is None:
            return subscribed
        for id, dialect in self.table.end_unread().items():
            text = "the client does not read the states of its tasks; get them, then listen again"
            self._out.put(error_response(id, t.ErrorData(dialect.codes[Fault.BUSY], text)))
        return subscribed

    def queue_notifications(self, *, ready: bool) -> None:
        """Queue notifications while there is capacity; for the session only if `ready`."""
        has_capacity = self._has_capacity
        while self._out.queued < CHANGES_HIGH_WATER:
            notice = self.table.next_notification(
                lambda id: (ready or id is not None) and (has_capacity is None or has_capacity(id))
            )
            if notice is None:
                return
            self._send_notification(notice)

    def end_all(self, *, notify: bool) -> None:
        """End all subscriptions.

        With `notify`, each listen request gets its remaining notifications and its result.
        """
        for ended in self.table.end_all():
            if notify:
                for notice in ended.remaining:
                    self._send_notification(notice)
                self._send_result(
                    ended.id, ended.result, self._config.dialect_configs[_SERVER][ended.dialect]
                )

    def _send_notification(self, notice: ChangeNotification) -> None:
        data = encode_notification(notice.method, notice.dialect.encode(notice.params))
        self._out.put(Outgoing(data, _NOTIFICATION, None, notice.related, notice.method))

    def _send_result(self, id: RequestId, result: t.Result, dialect_config: DialectConfig) -> None:
        self._out.put(
            Outgoing(encode_result(id, *encode_result_parts(dialect_config, result)), _RESPONSE, id)
        )
