"""Client-side subscriptions, alone and against the server side in every revision.

`SubscriptionPair` connects the two sides. Everything crosses it as JSON, and the test decides when.
"""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import (
    DIALECTS,
    ChangesMissed,
    ConnectionClosed,
    ConnectionLost,
    Fault,
    LocalProtocolError,
    McpTrioError,
    NotificationReceived,
    Peer,
    PeerError,
    PeerReady,
    ProgressReceived,
    RemoteProtocolError,
    Role,
)
from mcp_core import types as t
from mcp_core.drivers import PendingRequest
from mcp_core.protocol.subscriptions._client import ClientSubscription, ClientSubscriptions
from mcp_core.protocol.subscriptions._server import Change, ChangeNotification
from tests.core.protocol.subscriptions.test_server import (
    NOTHING,
    TASKS,
    filter_of,
    subscription_table,
)
from tests.harness.jsonrpc import (
    SERVER_CAPABILITIES,
    STATEFUL,
    VERSIONS,
    C,
    D,
    E,
    Message,
    single,
)
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from mcp_core import Dialect

TOOLS, PROMPTS, RESOURCES = Change("tools"), Change("prompts"), Change("resources")
ONE, TWO = Change(uri="x:1"), Change(uri="x:2")
LISTS: Final = (TOOLS, PROMPTS, RESOURCES)
ID: Final = "io.modelcontextprotocol/subscriptionId"
LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"

# -- One subscription -----------------------------------------------------------------------------


class Consumer:
    """A client with subscriptions of its own, whose server is played by the test."""

    def __init__(
        self, version: str, capabilities: t.ServerCapabilities = SERVER_CAPABILITIES
    ) -> None:
        self.dialect = DIALECTS[version]
        self.peer = Peer(self.dialect, capabilities)
        self.listenings = ClientSubscriptions()
        self.requests: list[tuple[str, Any, PendingRequest]] = []
        self._ids = 0

    def opens(self, *wanted: Change) -> ClientSubscription:
        subscription = self.listenings.open(self.peer, wanted)
        self.send_queued()
        return subscription

    def send_queued(self) -> list[tuple[str, Message]]:
        """Send all queued requests and return them."""
        new = []
        while (request := self.listenings.next_request()) is not None:
            method, params, token = request
            self._ids += 1
            token.id = self._ids
            self.requests.append((method, params, token))
            new.append((method, json.loads(self.dialect.encode(params))))
        return new

    def receives(self, method: str, params: Message | None = None, id: Any = None) -> None:
        row = self.dialect.receives[Role.CLIENT][method]
        params = {**(params or {}), **({"_meta": {ID: id}} if id is not None else {})}
        value = row.read_params(json.dumps(params).encode())
        self.listenings.handle_event(NotificationReceived(row, value, self.peer))

    def acknowledged(self, id: Any, *honoured: Change) -> None:
        self.receives(
            ACKNOWLEDGED,
            {"notifications": json.loads(self.dialect.encode(filter_of(*honoured)))},
            id,
        )

    def answered(self, result: Any = None, error: BaseException | None = None) -> None:
        """Answer the oldest request, then send what is queued."""
        _, _, token = self.requests.pop(0)
        token.end(result, error)

    def lost(self, error: McpTrioError | None = None) -> None:
        self.listenings.handle_event(ConnectionClosed([], error))


def take_changes(subscription: ClientSubscription) -> list[Change]:
    found = []
    while (change := subscription.next_change()) is not None:
        found.append(change)
    return found


def open_subscription(*wanted: Change, version: str = E) -> tuple[Consumer, ClientSubscription]:
    """Return an open subscription, by default in a revision with listen requests."""
    consumer = Consumer(version)
    subscription = consumer.opens(*wanted)
    if version == E:
        consumer.acknowledged(1, *wanted)
    subscription.require_open()
    return consumer, subscription


@pytest.mark.parametrize("version", VERSIONS)
def test_change_in_another_spelling_is_of_the_uri_that_was_requested(version: str) -> None:
    cafe = Change(uri="note://café")
    consumer = Consumer(version)
    subscription = consumer.opens(cafe, TWO)
    if version == E:
        consumer.acknowledged(1, Change(uri="note://caf%C3%A9"), TWO)
    else:
        consumer.answered()
        consumer.answered()
    assert set(subscription.honoured) == {cafe, TWO}
    id = 1 if version == E else None
    for uri in ("NOTE://caf%C3%A9/", "x:2", "x:3"):
        consumer.receives(UPDATED, {"uri": uri}, id)
    assert take_changes(subscription) == [cafe, TWO, Change(uri="x:3")]


def test_listen_one_request_covers_all_changes() -> None:
    """The list is without duplicates, and the server may honour less than was asked for."""
    consumer = Consumer(E)
    subscription = consumer.listenings.open(consumer.peer, (TOOLS, TWO, ONE, TWO))
    assert subscription.wanted == (TOOLS, TWO, ONE)
    assert repr(subscription) == "<ClientSubscription to 0 of 3, being opened, 0 changed>"
    assert repr(consumer.listenings) == "<ClientSubscriptions: 1, 0 watches, 1 to ask>"
    named = {"toolsListChanged": True, "resourceSubscriptions": ["x:2", "x:1"]}
    assert consumer.send_queued() == [(LISTEN, {"notifications": named})]
    wakes = []
    subscription.wake = lambda: wakes.append(subscription.settled)
    consumer.acknowledged(1, TOOLS, ONE)
    assert wakes == [True]
    assert subscription.honoured == (TOOLS, ONE)
    subscription.require_open()
    assert repr(subscription) == "<ClientSubscription to 2 of 3, open, 0 changed>"
    consumer.receives(UPDATED, {"uri": "x:1"}, 1)
    consumer.receives(TOOLS_CHANGED, id=1)
    assert wakes == [True] * 3
    assert repr(subscription) == "<ClientSubscription to 2 of 3, open, 2 changed>"
    assert take_changes(subscription) == [ONE, TOOLS]


@pytest.mark.requirement("SUB-6")
@pytest.mark.parametrize(
    ("acknowledged", "honoured"),
    [
        ((TOOLS, ONE), (TOOLS, ONE)),
        ((ONE, TOOLS, TWO, PROMPTS), (TOOLS, ONE)),  # more than requested
        ((ONE,), (ONE,)),
    ],
)
def test_acknowledgement_intersects_requested_changes(
    acknowledged: tuple[Change, ...], honoured: tuple[Change, ...]
) -> None:
    consumer = Consumer(E)
    subscription = consumer.opens(TOOLS, ONE)
    consumer.acknowledged(1, *acknowledged)
    assert subscription.honoured == honoured
    consumer.acknowledged(1)  # a second acknowledgement does not count
    assert subscription.honoured == honoured
    subscription.require_open()


def test_acknowledgement_of_nothing_raises() -> None:
    consumer = Consumer(E)
    subscription = consumer.opens(TOOLS)
    consumer.acknowledged(1)
    assert subscription.settled
    with pytest.raises(LocalProtocolError, match="announces no changes") as caught:
        subscription.require_open()
    assert caught.value.fault is Fault.MISSING_CAPABILITY
    assert consumer.listenings.close(subscription) == 1  # the request is still running


def test_notification_reaches_its_subscription() -> None:
    consumer = Consumer(E)
    first, second = consumer.opens(TOOLS, ONE), consumer.opens(TOOLS, TWO)
    for id in (2, 1):
        consumer.acknowledged(id, TOOLS)
    consumer.receives(TOOLS_CHANGED, id=2)
    consumer.receives(UPDATED, {"uri": "x:1"}, 1)
    assert (take_changes(first), take_changes(second)) == ([ONE], [TOOLS])


@pytest.mark.parametrize("id", [None, 2, "01", 1.0, True, [], {"a": 1}])
def test_notification_unknown_subscription_id_is_dropped(id: Any) -> None:
    consumer, subscription = open_subscription(TOOLS, ONE)
    consumer.receives(TOOLS_CHANGED, id=id)
    consumer.receives(UPDATED, {"uri": "x:1"}, id)
    assert take_changes(subscription) == []
    other = consumer.opens(TOOLS)
    consumer.acknowledged("02", TOOLS)
    assert not other.settled


def test_notification_with_the_subscription_id_as_text_is_read() -> None:
    consumer, subscription = open_subscription(TOOLS, ONE)
    consumer.receives(TOOLS_CHANGED, id="1")
    assert take_changes(subscription) == [TOOLS]


def test_client_subscriptions_ignore_other_events() -> None:
    consumer, subscription = open_subscription(TOOLS)
    row = DIALECTS[E].receives[Role.CLIENT]["notifications/message"]
    log = t.LoggingMessageParams(level="info", data="x", meta={ID: 1})
    consumer.listenings.handle_event(NotificationReceived(row, log, consumer.peer))
    consumer.listenings.handle_event(PeerReady(consumer.peer))
    progress = ProgressReceived(1, 0.5, None, None, subscription)
    subscription.on_progress(progress)
    assert (take_changes(subscription), subscription.over) == ([], False)


@pytest.mark.requirement("SUB-14")
@pytest.mark.parametrize(
    ("wanted", "uri", "reported"),
    [
        ((TOOLS, ONE), "x:1/part", True),
        ((TOOLS, ONE), "y:another", True),  # only the server knows what is part of what
        ((TOOLS,), "x:1", False),
    ],
)
def test_update_of_resource_part_is_accepted(
    wanted: tuple[Change, ...], uri: str, reported: bool
) -> None:
    consumer, subscription = open_subscription(*wanted)
    consumer.receives(UPDATED, {"uri": uri}, 1)
    consumer.receives("notifications/prompts/list_changed", id=1)  # not subscribed to
    assert take_changes(subscription) == ([Change(uri=uri)] if reported else [])


def test_change_before_acknowledgement_is_kept() -> None:
    consumer = Consumer(E)
    subscription = consumer.opens(TOOLS)
    consumer.receives(TOOLS_CHANGED, id=1)
    assert not subscription.settled
    consumer.acknowledged(1, TOOLS)
    assert take_changes(subscription) == [TOOLS]


def test_client_subscription_coalesces_changes() -> None:
    consumer, subscription = open_subscription(TOOLS, ONE)
    for _ in range(1000):
        consumer.receives(UPDATED, {"uri": "x:1"}, 1)
        consumer.receives(TOOLS_CHANGED, id=1)
    assert take_changes(subscription) == [ONE, TOOLS]
    consumer.receives(TOOLS_CHANGED, id=1)
    assert take_changes(subscription) == [TOOLS]


def with_many_parts() -> tuple[Consumer, ClientSubscription]:
    """Return a subscription with the maximum number of changed parts, and a changed list."""
    consumer, subscription = open_subscription(TOOLS, PROMPTS, ONE, TWO)
    consumer.receives(TOOLS_CHANGED, id=1)
    for part in range(4 + 256 - 1):
        consumer.receives(UPDATED, {"uri": f"x:1/{part}"}, 1)
    assert repr(subscription) == "<ClientSubscription to 4 of 4, open, 260 changed>"
    return consumer, subscription


def test_too_many_parts_become_whole_resources() -> None:
    consumer, subscription = with_many_parts()
    consumer.receives(UPDATED, {"uri": "x:1/more"}, 1)
    assert take_changes(subscription) == [TOOLS, ONE, TWO]


def test_requested_changes_do_not_count_as_parts() -> None:
    consumer, subscription = with_many_parts()
    consumer.receives(UPDATED, {"uri": "x:2"}, 1)
    consumer.receives("notifications/prompts/list_changed", id=1)
    found = take_changes(subscription)
    assert (len(found), found[-2:]) == (262, [TWO, PROMPTS])


@pytest.mark.parametrize("length", [8192, 8193])
def test_part_with_long_uri_becomes_whole_resource(length: int) -> None:
    consumer, subscription = open_subscription(ONE, TOOLS)
    uri = "x:".ljust(length, "1")
    consumer.receives(UPDATED, {"uri": uri}, 1)
    assert take_changes(subscription) == ([Change(uri=uri)] if length == 8192 else [ONE])


# -- The end of a subscription -------------------------------------------------------------------


def test_listen_result_ends_subscription_without_error() -> None:
    consumer, subscription = open_subscription(TOOLS, ONE)
    consumer.receives(TOOLS_CHANGED, id=1)
    wakes = []
    subscription.wake = lambda: wakes.append(subscription.over)
    consumer.answered(t.ListenResult(meta={ID: 1}))
    assert wakes == [True]
    consumer.receives(UPDATED, {"uri": "x:1"}, 1)  # late
    assert take_changes(subscription) == [TOOLS]
    assert repr(subscription) == "<ClientSubscription to 2 of 2, over, 0 changed>"
    assert consumer.listenings.close(subscription) is None


def test_listen_result_before_acknowledgement_ends_subscription() -> None:
    consumer = Consumer(E)
    subscription = consumer.opens(TOOLS)
    consumer.answered(t.ListenResult())
    assert (subscription.settled, subscription.over, subscription.honoured) == (True, True, ())
    subscription.require_open()
    assert subscription.next_change() is None


@pytest.mark.parametrize(
    "error", [PeerError(-32000, "no"), RemoteProtocolError("?"), ConnectionLost("gone")]
)
def test_listen_rejected_raises_in_require_open(error: McpTrioError) -> None:
    consumer = Consumer(E)
    subscription = consumer.opens(TOOLS)
    consumer.answered(error=error)
    assert subscription.settled
    with pytest.raises(type(error)) as caught:
        subscription.require_open()
    assert caught.value is error
    assert consumer.listenings.close(subscription) is None


@pytest.mark.parametrize("error", [PeerError(-32000, "no"), ConnectionLost("gone")])
def test_subscription_lost_raises_after_last_change(error: McpTrioError) -> None:
    consumer, subscription = open_subscription(TOOLS)
    consumer.receives(TOOLS_CHANGED, id=1)
    consumer.answered(error=error)
    consumer.lost(ConnectionLost("only the first word counts"))
    assert subscription.next_change() == TOOLS
    for _ in range(2):
        with pytest.raises(type(error)) as caught:
            subscription.next_change()
        assert caught.value is error


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(
    ("error", "says"),
    [(None, "the client was closed"), (ConnectionLost("the pipe broke"), "the pipe broke")],
)
def test_connection_closed_ends_all_subscriptions(
    version: str, error: McpTrioError | None, says: str
) -> None:
    consumer = Consumer(version)
    first, second = consumer.opens(TOOLS), consumer.opens(TOOLS, ONE)
    if version == E:
        consumer.acknowledged(1, TOOLS)
    consumer.lost(error)
    assert (first.over, second.over, second.settled) == (True, True, True)
    for act in (first.next_change, second.next_change, second.require_open):
        with pytest.raises(ConnectionLost, match=says):
            act()
    assert repr(consumer.listenings) == "<ClientSubscriptions: 0, 0 watches, 0 to ask>"
    assert consumer.listenings.close(first) is None


def test_close_drops_pending_and_later_changes() -> None:
    consumer, subscription = open_subscription(TOOLS)
    other = consumer.opens(TOOLS)
    consumer.receives(TOOLS_CHANGED, id=1)
    assert consumer.listenings.close(subscription) == 1
    assert consumer.listenings.close(subscription) is None
    consumer.receives(TOOLS_CHANGED, id=1)
    assert (subscription.over, take_changes(subscription)) == (True, [])
    assert consumer.send_queued() == []
    assert not other.over


def test_close_before_request_sent_removes_it() -> None:
    consumer = Consumer(E)
    subscription, other = (
        consumer.listenings.open(consumer.peer, (change,)) for change in (TOOLS, PROMPTS)
    )
    assert consumer.listenings.close(subscription) is None
    assert consumer.send_queued() == [(LISTEN, {"notifications": {"promptsListChanged": True}})]
    assert other.id == 1


# -- After a loss --------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [C, D, E])
def test_renew_reports_everything_as_changed(again: str) -> None:
    """Changes may have been missed in between; what the new server lacks is no longer honoured."""
    consumer, subscription = open_subscription(TOOLS, PROMPTS, ONE)
    consumer.receives(UPDATED, {"uri": "x:1"}, 1)
    consumer.lost()
    # The server may have been replaced by one of another revision, with fewer capabilities.
    renewed = Consumer(
        again,
        t.ServerCapabilities(
            tools=SERVER_CAPABILITIES.tools, resources=SERVER_CAPABILITIES.resources
        ),
    )
    renewed.listenings.renew(subscription, renewed.peer)
    assert (subscription.settled, subscription.over) == (False, False)
    renewed.send_queued()
    if again == E:
        renewed.acknowledged(1, TOOLS, ONE)
    else:
        renewed.answered()
    subscription.require_open()
    assert subscription.honoured == (TOOLS, ONE)
    assert take_changes(subscription) == [ONE, TOOLS]
    renewed.receives(TOOLS_CHANGED, id=1 if again == E else None)
    assert take_changes(subscription) == [TOOLS]


def test_renew_on_same_connection_sends_new_request() -> None:
    """Late notifications carry the lost subscription's id and mustn't reach the new one."""
    consumer, subscription = open_subscription(TOOLS)
    consumer.answered(error=ConnectionLost("the stream was cut off"))
    with pytest.raises(ConnectionLost):
        subscription.next_change()
    consumer.listenings.renew(subscription, consumer.peer)
    assert subscription.next_change() is None
    assert consumer.send_queued() == [(LISTEN, {"notifications": {"toolsListChanged": True}})]
    consumer.receives(TOOLS_CHANGED, id=1)  # for the lost subscription
    assert take_changes(subscription) == []
    consumer.answered(error=PeerError(-32000, "not yet"))
    with pytest.raises(PeerError):
        subscription.next_change()
    consumer.listenings.renew(subscription, consumer.peer)
    consumer.send_queued()
    consumer.acknowledged(3, TOOLS)
    assert take_changes(subscription) == [TOOLS]
    assert consumer.listenings.close(subscription) == 3
    assert repr(consumer.listenings) == "<ClientSubscriptions: 0, 0 watches, 0 to ask>"


def test_renew_forgets_earlier_rejection() -> None:
    consumer = Consumer(D)
    subscription = consumer.opens(ONE)
    consumer.answered(error=PeerError(-32603, "sorry"))
    consumer.lost()
    consumer.listenings.renew(subscription, Peer(DIALECTS[D], NOTHING))
    with pytest.raises(LocalProtocolError, match="announces no changes"):
        subscription.require_open()


def test_renew_open_subscription_raises() -> None:
    consumer, subscription = open_subscription(TOOLS)
    with pytest.raises(LocalProtocolError, match="has ended"):
        consumer.listenings.renew(subscription, consumer.peer)


# -- Resources subscribed to one by one ----------------------------------------------------------


def subscribes(*uris: str) -> list[tuple[str, Message]]:
    return [("resources/subscribe", {"uri": uri}) for uri in uris]


def unsubscribes(*uris: str) -> list[tuple[str, Message]]:
    return [("resources/unsubscribe", {"uri": uri}) for uri in uris]


@pytest.mark.parametrize("version", STATEFUL)
def test_legacy_lists_need_no_request(version: str) -> None:
    consumer = Consumer(version)
    subscription = consumer.listenings.open(consumer.peer, (TOOLS, RESOURCES))
    assert consumer.send_queued() == []
    assert (subscription.settled, subscription.honoured) == (True, (TOOLS, RESOURCES))
    subscription.require_open()
    consumer.receives(TOOLS_CHANGED)
    consumer.receives("notifications/prompts/list_changed")
    assert take_changes(subscription) == [TOOLS]
    assert consumer.listenings.close(subscription) is None
    assert consumer.send_queued() == []


@pytest.mark.parametrize("version", STATEFUL)
def test_legacy_resources_are_subscribed_one_by_one(version: str) -> None:
    """List changes need no request there, and an update may overtake the response."""
    consumer = Consumer(version)
    subscription = consumer.listenings.open(consumer.peer, (ONE, TOOLS, TWO))
    assert consumer.send_queued() == subscribes("x:1", "x:2")
    assert (subscription.settled, subscription.honoured) == (False, (TOOLS,))
    consumer.receives(UPDATED, {"uri": "x:1"})  # it may arrive before the response
    consumer.answered()
    assert not subscription.settled
    consumer.answered()
    assert (subscription.settled, subscription.honoured) == (True, (TOOLS, ONE, TWO))
    assert consumer.send_queued() == []
    consumer.receives(UPDATED, {"uri": "x:2"})
    assert take_changes(subscription) == [ONE, TWO]
    assert consumer.listenings.close(subscription) is None
    assert consumer.send_queued() == unsubscribes("x:1", "x:2")
    consumer.answered()
    consumer.answered()
    assert repr(consumer.listenings) == "<ClientSubscriptions: 0, 0 watches, 0 to ask>"


def test_changes_missed_reports_everything_as_changed() -> None:
    consumer = Consumer(D)
    some, others = consumer.opens(TOOLS, ONE), consumer.opens(PROMPTS)
    consumer.listenings.handle_event(ChangesMissed())
    # The first is not open yet.
    assert (take_changes(some), take_changes(others)) == ([], [PROMPTS])
    consumer.answered()
    consumer.listenings.handle_event(ChangesMissed())
    assert consumer.send_queued() == []
    assert (take_changes(some), take_changes(others)) == ([TOOLS, ONE], [PROMPTS])
    consumer.lost(ConnectionLost("gone"))
    consumer.listenings.handle_event(ChangesMissed())
    with pytest.raises(ConnectionLost):
        take_changes(others)


def test_undeclared_changes_are_not_requested() -> None:
    consumer = Consumer(D, t.ServerCapabilities(resources=t.ResourcesCapability(list_changed=True)))
    subscription = consumer.listenings.open(consumer.peer, (TOOLS, RESOURCES, ONE))
    assert consumer.send_queued() == []
    assert subscription.honoured == (RESOURCES,)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("wanted", "missing"),
    [
        ([TOOLS], "tools.listChanged"),
        ([TOOLS, PROMPTS], "tools.listChanged or prompts.listChanged"),
        ([ONE, TWO, TOOLS], "resources.subscribe or tools.listChanged"),
    ],
)
def test_subscription_without_declared_changes_names_missing_capabilities(
    version: str, wanted: list[Change], missing: str
) -> None:
    offered = t.ResourcesCapability(list_changed=True)
    consumer = Consumer(version, t.ServerCapabilities(tools=t.ToolsCapability(), resources=offered))
    subscription = consumer.listenings.open(consumer.peer, wanted)
    assert subscription.settled
    with pytest.raises(LocalProtocolError, match=f"it did not declare {missing}$") as caught:
        subscription.require_open()
    assert caught.value.fault is Fault.MISSING_CAPABILITY
    consumer.listenings.close(subscription)
    assert consumer.send_queued() == []


@pytest.mark.parametrize("version", [D, E])
def test_subscription_in_new_session_without_capability_ends(version: str) -> None:
    consumer, subscription = open_subscription(TOOLS, version=version)
    consumer.listenings.handle_event(PeerReady(Peer(DIALECTS[version], NOTHING)))
    assert subscription.over
    with pytest.raises(LocalProtocolError, match=r"did not declare tools\.listChanged"):
        subscription.next_change()
    assert consumer.send_queued() == []


def test_resource_rejected_leaves_others_open() -> None:
    consumer = Consumer(D)
    subscription = consumer.opens(ONE, TWO)
    consumer.answered(error=PeerError(-32002, "no such resource"))
    assert not subscription.settled
    consumer.answered()
    subscription.require_open()
    assert subscription.honoured == (TWO,)
    consumer.listenings.close(subscription)
    assert consumer.send_queued() == unsubscribes("x:2")


def test_all_resources_rejected_raises_first_error() -> None:
    """Each subscription gets the first error of its own URIs; a later one asks again."""
    consumer = Consumer(D)
    subscription, other = consumer.opens(ONE, TWO), consumer.opens(TWO)
    first = PeerError(-32002, "no such resource")
    consumer.answered(error=first)
    consumer.answered(error=PeerError(-32603, "sorry"))
    with pytest.raises(PeerError) as caught:
        subscription.require_open()
    assert caught.value is first
    with pytest.raises(PeerError, match="sorry"):
        other.require_open()
    assert repr(consumer.listenings) == "<ClientSubscriptions: 2, 0 watches, 0 to ask>"
    consumer.listenings.close(subscription)
    assert consumer.send_queued() == []
    third = consumer.opens(ONE)  # it may be there by now
    consumer.answered()
    assert third.honoured == (ONE,)


def test_shared_resource_is_subscribed_once() -> None:
    """The server keeps one subscription per URI, so the last consumer's end unsubscribes."""
    consumer = Consumer(D)
    first = consumer.opens(ONE)
    second = consumer.opens(ONE, TWO)
    assert [method for method, _, _ in consumer.requests] == ["resources/subscribe"] * 2
    consumer.answered()
    consumer.answered()
    third = consumer.opens(ONE)
    assert (consumer.requests, first.honoured, third.honoured) == ([], (ONE,), (ONE,))
    assert (second.settled, third.settled) == (True, True)
    for subscription, leaves in (
        (first, []),
        (second, unsubscribes("x:2")),
        (third, unsubscribes("x:1")),
    ):
        consumer.listenings.close(subscription)
        assert consumer.send_queued() == leaves


def test_resource_has_one_request_in_flight() -> None:
    consumer = Consumer(D)
    first = consumer.opens(ONE)
    consumer.listenings.close(first)
    assert consumer.send_queued() == []
    consumer.answered()
    assert consumer.send_queued() == unsubscribes("x:1")
    second = consumer.opens(ONE)
    assert not second.settled
    assert len(consumer.requests) == 1
    consumer.answered(error=PeerError(-32603, "sorry"))
    assert consumer.send_queued() == subscribes("x:1")
    consumer.answered()
    assert second.honoured == (ONE,)


def test_update_reaches_matching_subscriptions_only() -> None:
    consumer = Consumer(D)
    first, second, lists = consumer.opens(ONE), consumer.opens(TWO, TOOLS), consumer.opens(TOOLS)
    for _ in range(2):
        consumer.answered()
    consumer.receives(UPDATED, {"uri": "x:1"})
    assert [take_changes(each) for each in (first, second, lists)] == [[ONE], [], []]
    consumer.receives(UPDATED, {"uri": "x:1/part"})
    part = Change(uri="x:1/part")
    assert [take_changes(each) for each in (first, second, lists)] == [[part], [part], []]
    consumer.receives(TOOLS_CHANGED)
    assert [take_changes(each) for each in (first, second, lists)] == [[], [TOOLS], [TOOLS]]


def test_progress_of_subscribe_request_is_ignored() -> None:
    consumer = Consumer(D)
    subscription = consumer.opens(ONE)
    _, _, token = single(consumer.requests)
    token.on_progress(ProgressReceived(1, 0.5, None, None, token))
    assert not subscription.settled


# -- Tasks ----------------------------------------------------------------------------------------

MINE, YOURS = Change(task="mine"), Change(task="yours")
STATE: Final[Message] = {"status": "working", "createdAt": "1", "lastUpdatedAt": "2"}


@pytest.mark.requirement("TX-20")
def test_listen_to_tasks_sends_their_ids_and_reports_their_changes() -> None:
    consumer = Consumer(E, TASKS)
    subscription = consumer.opens(TOOLS, MINE, YOURS)
    ((method, params, _),) = consumer.requests
    assert (method, params.notifications) == (LISTEN, filter_of(TOOLS, MINE, YOURS))
    consumer.acknowledged(1, TOOLS, MINE)  # the other is unknown to the server, or not ours
    assert subscription.honoured == (TOOLS, MINE)
    for task_id in ("mine", "mine", "theirs"):
        consumer.receives("notifications/tasks", STATE | {"taskId": task_id}, 1)
    assert take_changes(subscription) == [MINE]


@pytest.mark.parametrize("version", STATEFUL)
def test_listen_to_tasks_of_earlier_revision_is_not_announced(version: str) -> None:
    subscription = Consumer(version, TASKS).opens(MINE)
    with pytest.raises(LocalProtocolError, match="it has accepted none of them"):
        subscription.require_open()


def test_listen_to_tasks_of_server_without_them_names_the_extension() -> None:
    subscription = Consumer(E).opens(MINE)
    with pytest.raises(LocalProtocolError, match=r"did not declare extensions\.io\.modelcontext"):
        subscription.require_open()


# -- Against the server side ---------------------------------------------------------------------


class SubscriptionPair:
    """A client and a server that handle changes only. Messages cross when the test moves them."""

    def __init__(
        self, dialect: Dialect, *, capabilities: t.ServerCapabilities = SERVER_CAPABILITIES
    ) -> None:
        self.dialect = dialect
        self.server_table = subscription_table(dialect.version, capabilities)
        self.listenings = ClientSubscriptions()
        self.peer = Peer(dialect, capabilities)
        self.to_server: deque[tuple[int, str, bytes, PendingRequest | None]] = deque()
        self.to_client: deque[tuple[PendingRequest | None, Any, str, bytes]] = deque()
        self._ids = 0

    def opens(self, *wanted: Change) -> ClientSubscription:
        subscription = self.listenings.open(self.peer, wanted)
        self.send_queued()
        return subscription

    def closes(self, subscription: ClientSubscription) -> None:
        cancelled = self.listenings.close(subscription)
        if cancelled is not None:
            assert isinstance(cancelled, int)
            self.to_server.append((cancelled, "notifications/cancelled", b"{}", None))
        self.send_queued()

    def send_queued(self) -> None:
        while (request := self.listenings.next_request()) is not None:
            method, params, token = request
            self._ids += 1
            token.id = self._ids
            self.to_server.append((self._ids, method, self.dialect.encode(params), token))

    def serves(self, place: int = 0) -> None:
        """Let the server take one message, not always the oldest."""
        id, method, data, token = self.to_server[place]
        del self.to_server[place]
        if method == "notifications/cancelled":
            self.server_table.cancel(id)
            return
        params = self.dialect.receives[Role.SERVER][method].read_params(data)
        try:
            if method == LISTEN:
                self.send_to_client(
                    self.server_table.listen(id, self.dialect, params.notifications)
                )
                return
            if method == "resources/subscribe":
                self.server_table.subscribe(self.dialect, params.uri)
            else:
                self.server_table.unsubscribe(params.uri)
        except LocalProtocolError as exc:
            error = PeerError(self.dialect.codes[exc.fault], str(exc))
            self.to_client.append((token, error, "", b""))
        else:
            self.to_client.append((token, None, "", b""))

    def send_to_client(self, notice: ChangeNotification) -> None:
        data = notice.dialect.encode(notice.params)
        self.to_client.append((None, None, notice.method, data))

    def receives(self) -> None:
        """Let the client take one message."""
        token, error, method, data = self.to_client.popleft()
        if token is not None:
            token.end(None if error else t.EmptyResult(), error)
        else:
            row = self.dialect.receives[Role.CLIENT][method]
            event = NotificationReceived(row, row.read_params(data), self.peer)
            self.listenings.handle_event(event)
        self.send_queued()

    def settle(self) -> None:
        """Let all messages cross."""
        while True:
            if self.to_server:
                self.serves()
            elif self.to_client:
                self.receives()
            elif (notice := self.server_table.next_notification()) is not None:
                self.send_to_client(notice)
            else:
                return


@pytest.fixture(params=VERSIONS)
def wire(request: pytest.FixtureRequest) -> SubscriptionPair:
    return SubscriptionPair(DIALECTS[request.param])


def test_wire_change_reaches_its_subscriptions(wire: SubscriptionPair) -> None:
    """Two subscriptions overlap in one resource; closing one leaves the other complete."""
    first, second = wire.opens(TOOLS, ONE), wire.opens(PROMPTS, ONE, TWO)
    wire.settle()
    for subscription in (first, second):
        subscription.require_open()
        assert set(subscription.honoured) == set(subscription.wanted)
    for change in (TOOLS, PROMPTS, RESOURCES, ONE, TWO):
        wire.server_table.publish(change)
    wire.settle()
    assert (take_changes(first), take_changes(second)) == ([TOOLS, ONE], [PROMPTS, ONE, TWO])
    wire.closes(first)
    wire.settle()
    wire.server_table.publish(ONE)
    wire.settle()
    assert (take_changes(first), take_changes(second)) == ([], [ONE])
    wire.closes(second)
    wire.settle()
    assert not wire.server_table.publish(ONE)
    assert wire.server_table.listen_count == 0


def test_wire_change_right_after_acknowledgement_arrives(wire: SubscriptionPair) -> None:
    subscription = wire.opens(TOOLS, ONE)
    while wire.to_server:
        wire.serves()
    wire.server_table.publish(ONE)
    assert not subscription.settled
    wire.settle()
    assert (subscription.settled, take_changes(subscription)) == (True, [ONE])


def test_wire_server_without_capabilities_announces_nothing(wire: SubscriptionPair) -> None:
    poor = SubscriptionPair(wire.dialect, capabilities=NOTHING)
    subscription = poor.opens(TOOLS, ONE)
    poor.settle()
    assert subscription.settled
    with pytest.raises(LocalProtocolError):
        subscription.require_open()
    poor.closes(subscription)
    poor.settle()
    assert poor.server_table.listen_count == 0


def test_wire_uri_over_limit_is_rejected(wire: SubscriptionPair) -> None:
    subscription = wire.opens(Change(uri="x" * 8193))
    wire.settle()
    with pytest.raises(PeerError, match="at most 8192 characters") as caught:
        subscription.require_open()
    assert caught.value.code == -32602


WISHES: Final = ((TOOLS,), (ONE,), (TOOLS, ONE), (ONE, TWO))
moves = st.one_of(
    st.tuples(st.just("open"), st.sampled_from(WISHES)),
    st.tuples(st.just("close"), st.integers(0, 3)),
    st.tuples(st.just("publish"), st.sampled_from((TOOLS, ONE, TWO))),
    st.tuples(st.just("serve"), st.integers(0, 3)),
    st.tuples(st.just("publish_next"), st.none()),
    st.tuples(st.just("deliver_next"), st.none()),
    st.tuples(st.just("look"), st.integers(0, 3)),
)


class CrossingMessages:
    """A wire, its subscriptions, and for each the changes since it was settled and not seen."""

    def __init__(self, version: str) -> None:
        self.wire = SubscriptionPair(DIALECTS[version])
        # A listen request and its cancellation keep their order. Requests that travel separately
        # may overtake each other.
        self.overtaking = DIALECTS[version].stateful
        self.owed: dict[ClientSubscription, set[Change]] = {}

    def open(self, wanted: tuple[Change, ...]) -> None:
        self.owed[self.wire.opens(*wanted)] = set()

    def close(self, place: int) -> None:
        for subscription in [*self.owed][place : place + 1]:
            self.wire.closes(subscription)
            del self.owed[subscription]

    def publish(self, change: Change) -> None:
        self.wire.server_table.publish(change)
        for subscription, owed in self.owed.items():
            if subscription.settled and change in subscription.wanted:
                owed.add(change)

    def serve(self, place: int) -> None:
        if self.wire.to_server:
            self.wire.serves(place % len(self.wire.to_server) if self.overtaking else 0)

    def publish_next(self, _: None) -> None:
        if (notice := self.wire.server_table.next_notification()) is not None:
            self.wire.send_to_client(notice)

    def deliver_next(self, _: None) -> None:
        if self.wire.to_client:
            self.wire.receives()

    def look(self, place: int) -> None:
        for subscription in [*self.owed][place : place + 1]:
            seen = take_changes(subscription)
            assert len(set(seen)) == len(seen)
            assert set(seen) <= set(subscription.wanted)
            self.owed[subscription].difference_update(seen)


@fewer_examples(2)
@given(st.sampled_from((D, E)), st.lists(moves, max_size=60))
def test_wire_any_message_order_misses_no_change(
    version: str, script: list[tuple[str, Any]]
) -> None:
    """Opening, closing and publishing cross on the wire; no open subscription misses a change."""
    play = CrossingMessages(version)
    wire = play.wire
    for move, detail in script:
        getattr(play, move)(detail)
    wire.settle()
    for place, subscription in enumerate([*play.owed]):
        subscription.require_open()
        assert set(subscription.honoured) == set(subscription.wanted)
        play.look(place)
    assert not any(play.owed.values())
    # In the end the server has exactly the open subscriptions, in any order of messages.
    for change in (ONE, TWO):
        assert wire.server_table.publish(change) is any(
            change in subscription.wanted for subscription in play.owed
        )
    while play.owed:
        play.close(0)
    wire.settle()
    assert not any(wire.server_table.publish(change) for change in (ONE, TWO))
    assert wire.server_table.listen_count == 0
    assert repr(wire.listenings) == "<ClientSubscriptions: 0, 0 watches, 0 to ask>"


def test_lost_subscription_that_is_reopened_counts_its_losses() -> None:
    """Only one that was open is reopened, and being open again begins the count anew."""
    consumer = Consumer(E)
    subscription = consumer.opens(TOOLS)
    asked: list[BaseException] = []

    def reopens(error: BaseException) -> bool:
        asked.append(error)
        return True

    subscription.on_lost = reopens
    consumer.acknowledged(1, TOOLS)
    before = subscription.has_changes
    for losses in (1, 2):
        subscription.end(None, ConnectionLost("gone"))
        assert (subscription.consecutive_losses, subscription.over, subscription.id) == (
            losses,
            False,
            None,
        )
    assert len(asked) == 2
    consumer.listenings.reopen(subscription, consumer.peer)
    consumer.send_queued()
    consumer.acknowledged(2, TOOLS)
    assert (subscription.consecutive_losses, subscription.over) == (0, False)
    # Something may have changed meanwhile.
    assert (before, subscription.has_changes) == (False, True)
    subscription.end(t.ListenResult(), None)
    assert (subscription.over, len(asked)) == (True, 2)


def test_subscription_that_never_opened_is_not_reopened() -> None:
    subscription = Consumer(E).opens(TOOLS)
    subscription.on_lost = lambda error: True
    subscription.end(None, ConnectionLost("gone"))
    assert (subscription.over, subscription.consecutive_losses) == (True, 0)
