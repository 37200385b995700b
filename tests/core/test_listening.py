"""A client's listenings, and the two ends back to back in every revision.

Between the two there is a wire of the test's own, `Wire`: everything crosses as JSON, and when it crosses is up to the test.
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
from mcp_core._listening import Listening, Listenings
from mcp_core._subscriptions import Change, Notice
from mcp_core.runtime import Pending
from tests.core.helpers import (
    SERVER_OFFERS,
    STATEFUL,
    VERSIONS,
    C,
    D,
    E,
    Message,
    only,
)
from tests.core.test_subscriptions import NOTHING, interests, wish

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

# -- A client's listenings -----------------------------------------------------------------------------------


class Consumer:
    """Listens with its own `Listenings`; a test plays the server by hand."""

    def __init__(self, version: str, capabilities: t.ServerCapabilities = SERVER_OFFERS) -> None:
        self.dialect = DIALECTS[version]
        self.peer = Peer(self.dialect, capabilities)
        self.listenings = Listenings()
        self.asked: list[tuple[str, Any, Pending]] = []
        self._ids = 0

    def opens(self, *wanted: Change) -> Listening:
        listening = self.listenings.open(self.peer, wanted)
        self.asks()
        return listening

    def asks(self) -> list[tuple[str, Message]]:
        """Send what there is to send; gives that."""
        new = []
        while (request := self.listenings.next_request()) is not None:
            method, params, token = request
            self._ids += 1
            token.id = self._ids
            self.asked.append((method, params, token))
            new.append((method, json.loads(self.dialect.encode(params))))
        return new

    def hears(self, method: str, params: Message | None = None, id: Any = None) -> None:
        row = self.dialect.receives[Role.CLIENT][method]
        params = {**(params or {}), **({"_meta": {ID: id}} if id is not None else {})}
        told = row.read_params(json.dumps(params).encode())
        self.listenings.take(NotificationReceived(row, told, self.peer))

    def acknowledged(self, id: Any, *honoured: Change) -> None:
        self.hears(ACKNOWLEDGED, {"notifications": json.loads(self.dialect.encode(wish(*honoured)))}, id)

    def answered(self, result: Any = None, error: BaseException | None = None) -> None:
        """The oldest request has its answer; then ask on."""
        _, _, token = self.asked.pop(0)
        token.end(result, error)

    def lost(self, error: McpTrioError | None = None) -> None:
        self.listenings.take(ConnectionClosed([], error))


def drained(listening: Listening) -> list[Change]:
    found = []
    while (change := listening.next_change()) is not None:
        found.append(change)
    return found


def listening_to(*wanted: Change) -> tuple[Consumer, Listening]:
    """One that is open, where one has to ask."""
    consumer = Consumer(E)
    listening = consumer.opens(*wanted)
    consumer.acknowledged(1, *wanted)
    listening.require_open()
    return consumer, listening


def test_one_request_where_one_has_to_ask() -> None:
    consumer = Consumer(E, NOTHING)  # what it declares is not asked for: the acknowledgement will tell
    listening = consumer.listenings.open(consumer.peer, (TOOLS, TWO, ONE, TWO))
    assert listening.wanted == (TOOLS, TWO, ONE)
    assert repr(listening) == "<Listening to 0 of 3, being opened, 0 changed>"
    assert repr(consumer.listenings) == "<Listenings: 1, 0 watches, 1 to ask>"
    named = {"toolsListChanged": True, "resourceSubscriptions": ["x:2", "x:1"]}
    assert consumer.asks() == [(LISTEN, {"notifications": named})]
    wakes = []
    listening.wake = lambda: wakes.append(listening.settled)
    consumer.acknowledged(1, TOOLS, ONE)
    assert wakes == [True]
    assert listening.honoured == (TOOLS, ONE)
    listening.require_open()
    assert repr(listening) == "<Listening to 2 of 3, open, 0 changed>"
    consumer.hears(UPDATED, {"uri": "x:1"}, 1)
    consumer.hears(TOOLS_CHANGED, id=1)
    assert wakes == [True] * 3
    assert repr(listening) == "<Listening to 2 of 3, open, 2 changed>"
    assert drained(listening) == [ONE, TOOLS]


@pytest.mark.parametrize(
    ("acknowledged", "honoured"),
    [
        ((TOOLS, ONE), (TOOLS, ONE)),
        ((ONE, TOOLS, TWO, PROMPTS), (TOOLS, ONE)),  # more than was asked for
        ((ONE,), (ONE,)),
    ],
)
def test_what_the_server_says_it_will_tell(
    acknowledged: tuple[Change, ...], honoured: tuple[Change, ...]
) -> None:
    consumer = Consumer(E)
    listening = consumer.opens(TOOLS, ONE)
    consumer.acknowledged(1, *acknowledged)
    assert listening.honoured == honoured
    consumer.acknowledged(1)  # a second word does not count
    assert listening.honoured == honoured
    listening.require_open()


def test_a_server_that_will_tell_nothing() -> None:
    consumer = Consumer(E)
    listening = consumer.opens(TOOLS)
    consumer.acknowledged(1)
    assert listening.settled
    with pytest.raises(LocalProtocolError, match="announces no changes") as caught:
        listening.require_open()
    assert caught.value.fault is Fault.MISSING_CAPABILITY
    assert consumer.listenings.close(listening) == 1  # it runs, though it is of no use


def test_messages_find_their_listening() -> None:
    consumer = Consumer(E)
    first, second = consumer.opens(TOOLS, ONE), consumer.opens(TOOLS, TWO)
    for id in (2, 1):
        consumer.acknowledged(id, TOOLS)
    consumer.hears(TOOLS_CHANGED, id=2)
    consumer.hears(UPDATED, {"uri": "x:1"}, 1)
    assert (drained(first), drained(second)) == ([ONE], [TOOLS])


@pytest.mark.parametrize("id", [None, 2, "1", 1.0, True, [], {"a": 1}])
def test_messages_of_no_subscription_are_dropped(id: Any) -> None:
    consumer, listening = listening_to(TOOLS, ONE)
    consumer.hears(TOOLS_CHANGED, id=id)
    consumer.hears(UPDATED, {"uri": "x:1"}, id)
    assert drained(listening) == []
    other = consumer.opens(TOOLS)
    consumer.acknowledged("2", TOOLS)
    assert not other.settled


def test_other_events_mean_nothing() -> None:
    consumer, listening = listening_to(TOOLS)
    row = DIALECTS[E].receives[Role.CLIENT]["notifications/message"]
    log = t.LoggingMessageParams(level="info", data="x", meta={ID: 1})
    consumer.listenings.take(NotificationReceived(row, log, consumer.peer))
    consumer.listenings.take(PeerReady(consumer.peer))
    progress = ProgressReceived(1, 0.5, None, None, listening)
    listening.progressed(progress)
    assert (drained(listening), listening.over) == ([], False)


@pytest.mark.requirement("SUB-14")
@pytest.mark.parametrize(
    ("wanted", "uri", "is_told"),
    [
        ((TOOLS, ONE), "x:1/part", True),
        ((TOOLS, ONE), "y:another", True),  # what is a part of what only the server knows
        ((TOOLS,), "x:1", False),
    ],
)
def test_an_update_of_a_part(wanted: tuple[Change, ...], uri: str, is_told: bool) -> None:
    consumer, listening = listening_to(*wanted)
    consumer.hears(UPDATED, {"uri": uri}, 1)
    consumer.hears("notifications/prompts/list_changed", id=1)  # which nobody wants
    assert drained(listening) == ([Change(uri=uri)] if is_told else [])


def test_a_change_before_the_acknowledgement_is_kept() -> None:
    consumer = Consumer(E)
    listening = consumer.opens(TOOLS)
    consumer.hears(TOOLS_CHANGED, id=1)
    assert not listening.settled
    consumer.acknowledged(1, TOOLS)
    assert drained(listening) == [TOOLS]


def test_changes_are_coalesced_at_the_client_too() -> None:
    consumer, listening = listening_to(TOOLS, ONE)
    for _ in range(1000):
        consumer.hears(UPDATED, {"uri": "x:1"}, 1)
        consumer.hears(TOOLS_CHANGED, id=1)
    assert drained(listening) == [ONE, TOOLS]
    consumer.hears(TOOLS_CHANGED, id=1)
    assert drained(listening) == [TOOLS]


def crowded() -> tuple[Consumer, Listening]:
    """As many parts as are kept apart have changed, and one list."""
    consumer, listening = listening_to(TOOLS, PROMPTS, ONE, TWO)
    consumer.hears(TOOLS_CHANGED, id=1)
    for part in range(4 + 256 - 1):
        consumer.hears(UPDATED, {"uri": f"x:1/{part}"}, 1)
    assert repr(listening) == "<Listening to 4 of 4, open, 260 changed>"
    return consumer, listening


def test_too_many_parts_are_the_whole() -> None:
    consumer, listening = crowded()
    consumer.hears(UPDATED, {"uri": "x:1/more"}, 1)
    assert drained(listening) == [TOOLS, ONE, TWO]


def test_what_was_asked_for_has_its_place_beside_the_parts() -> None:
    consumer, listening = crowded()
    consumer.hears(UPDATED, {"uri": "x:2"}, 1)
    consumer.hears("notifications/prompts/list_changed", id=1)
    found = drained(listening)
    assert (len(found), found[-2:]) == (262, [TWO, PROMPTS])


@pytest.mark.parametrize("length", [8192, 8193])
def test_a_part_with_a_long_name_is_the_whole(length: int) -> None:
    consumer, listening = listening_to(ONE, TOOLS)
    uri = "x:".ljust(length, "1")
    consumer.hears(UPDATED, {"uri": uri}, 1)
    assert drained(listening) == ([Change(uri=uri)] if length == 8192 else [ONE])


# -- Ends ----------------------------------------------------------------------------------------------------


def test_the_result_is_a_graceful_end() -> None:
    consumer, listening = listening_to(TOOLS, ONE)
    consumer.hears(TOOLS_CHANGED, id=1)
    wakes = []
    listening.wake = lambda: wakes.append(listening.over)
    consumer.answered(t.ListenResult(meta={ID: 1}))
    assert wakes == [True]
    consumer.hears(UPDATED, {"uri": "x:1"}, 1)  # late
    assert drained(listening) == [TOOLS]
    assert repr(listening) == "<Listening to 2 of 2, over, 0 changed>"
    assert consumer.listenings.close(listening) is None


def test_a_result_before_the_acknowledgement() -> None:
    consumer = Consumer(E)
    listening = consumer.opens(TOOLS)
    consumer.answered(t.ListenResult())
    assert (listening.settled, listening.over, listening.honoured) == (True, True, ())
    listening.require_open()
    assert listening.next_change() is None


@pytest.mark.parametrize("error", [PeerError(-32000, "no"), RemoteProtocolError("?"), ConnectionLost("gone")])
def test_a_subscription_that_does_not_come_about(error: McpTrioError) -> None:
    consumer = Consumer(E)
    listening = consumer.opens(TOOLS)
    consumer.answered(error=error)
    assert listening.settled
    with pytest.raises(type(error)) as caught:
        listening.require_open()
    assert caught.value is error
    assert consumer.listenings.close(listening) is None


@pytest.mark.parametrize("error", [PeerError(-32000, "no"), ConnectionLost("gone")])
def test_a_subscription_that_is_lost(error: McpTrioError) -> None:
    consumer, listening = listening_to(TOOLS)
    consumer.hears(TOOLS_CHANGED, id=1)
    consumer.answered(error=error)
    consumer.lost(ConnectionLost("only the first word counts"))
    assert listening.next_change() == TOOLS
    for _ in range(2):
        with pytest.raises(type(error)) as caught:
            listening.next_change()
        assert caught.value is error


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(
    ("error", "says"), [(None, "the client was closed"), (ConnectionLost("the pipe broke"), "the pipe broke")]
)
def test_the_connection_ends(version: str, error: McpTrioError | None, says: str) -> None:
    consumer = Consumer(version)
    first, second = consumer.opens(TOOLS), consumer.opens(TOOLS, ONE)
    if version == E:
        consumer.acknowledged(1, TOOLS)
    consumer.lost(error)
    assert (first.over, second.over, second.settled) == (True, True, True)
    for act in (first.next_change, second.next_change, second.require_open):
        with pytest.raises(ConnectionLost, match=says):
            act()
    assert repr(consumer.listenings) == "<Listenings: 0, 0 watches, 0 to ask>"
    assert consumer.listenings.close(first) is None


def test_the_end_by_the_client() -> None:
    consumer, listening = listening_to(TOOLS)
    other = consumer.opens(TOOLS)
    consumer.hears(TOOLS_CHANGED, id=1)
    assert consumer.listenings.close(listening) == 1
    assert consumer.listenings.close(listening) is None
    consumer.hears(TOOLS_CHANGED, id=1)
    assert (listening.over, drained(listening)) == (True, [])
    assert consumer.asks() == []
    assert not other.over


def test_the_end_before_anything_was_sent() -> None:
    consumer = Consumer(E)
    listening, other = (consumer.listenings.open(consumer.peer, (change,)) for change in (TOOLS, PROMPTS))
    assert consumer.listenings.close(listening) is None
    assert consumer.asks() == [(LISTEN, {"notifications": {"promptsListChanged": True}})]
    assert other.id == 1


# -- After a loss --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [C, D, E])
def test_what_is_renewed_counts_as_changed(again: str) -> None:
    consumer, listening = listening_to(TOOLS, PROMPTS, ONE)
    consumer.hears(UPDATED, {"uri": "x:1"}, 1)
    consumer.lost()
    # The server may have been replaced meanwhile, by one of another revision that does not tell as much.
    anew = Consumer(again, t.ServerCapabilities(tools=SERVER_OFFERS.tools, resources=SERVER_OFFERS.resources))
    anew.listenings.renew(listening, anew.peer)
    assert (listening.settled, listening.over) == (False, False)
    anew.asks()
    if again == E:
        anew.acknowledged(1, TOOLS, ONE)
    else:
        anew.answered()
    listening.require_open()
    assert listening.honoured == (TOOLS, ONE)
    assert drained(listening) == [ONE, TOOLS]
    anew.hears(TOOLS_CHANGED, id=1 if again == E else None)
    assert drained(listening) == [TOOLS]


def test_renewing_on_the_same_connection() -> None:
    consumer, listening = listening_to(TOOLS)
    consumer.answered(error=ConnectionLost("the stream was cut off"))
    with pytest.raises(ConnectionLost):
        listening.next_change()
    consumer.listenings.renew(listening, consumer.peer)
    assert listening.next_change() is None
    assert consumer.asks() == [(LISTEN, {"notifications": {"toolsListChanged": True}})]
    consumer.hears(TOOLS_CHANGED, id=1)  # of the one that was lost
    assert drained(listening) == []
    consumer.answered(error=PeerError(-32000, "not yet"))
    with pytest.raises(PeerError):
        listening.next_change()
    consumer.listenings.renew(listening, consumer.peer)
    consumer.asks()
    consumer.acknowledged(3, TOOLS)
    assert drained(listening) == [TOOLS]
    assert consumer.listenings.close(listening) == 3
    assert repr(consumer.listenings) == "<Listenings: 0, 0 watches, 0 to ask>"


def test_what_was_refused_before_is_forgotten() -> None:
    consumer = Consumer(D)
    listening = consumer.opens(ONE)
    consumer.answered(error=PeerError(-32603, "sorry"))
    consumer.lost()
    consumer.listenings.renew(listening, Peer(DIALECTS[D], NOTHING))
    with pytest.raises(LocalProtocolError, match="announces no changes"):
        listening.require_open()


def test_only_what_is_over_is_renewed() -> None:
    consumer, listening = listening_to(TOOLS)
    with pytest.raises(LocalProtocolError, match="is over"):
        consumer.listenings.renew(listening, consumer.peer)


# -- Where resources are subscribed to one by one ------------------------------------------------------------


def subscribes(*uris: str) -> list[tuple[str, Message]]:
    return [("resources/subscribe", {"uri": uri}) for uri in uris]


def unsubscribes(*uris: str) -> list[tuple[str, Message]]:
    return [("resources/unsubscribe", {"uri": uri}) for uri in uris]


@pytest.mark.parametrize("version", STATEFUL)
def test_lists_need_no_request(version: str) -> None:
    consumer = Consumer(version)
    listening = consumer.listenings.open(consumer.peer, (TOOLS, RESOURCES))
    assert consumer.asks() == []
    assert (listening.settled, listening.honoured) == (True, (TOOLS, RESOURCES))
    listening.require_open()
    consumer.hears(TOOLS_CHANGED)
    consumer.hears("notifications/prompts/list_changed")
    assert drained(listening) == [TOOLS]
    assert consumer.listenings.close(listening) is None
    assert consumer.asks() == []


@pytest.mark.parametrize("version", STATEFUL)
def test_a_request_for_each_resource(version: str) -> None:
    consumer = Consumer(version)
    listening = consumer.listenings.open(consumer.peer, (ONE, TOOLS, TWO))
    assert consumer.asks() == subscribes("x:1", "x:2")
    assert (listening.settled, listening.honoured) == (False, (TOOLS,))
    consumer.hears(UPDATED, {"uri": "x:1"})  # it may come sooner than the answer
    consumer.answered()
    assert not listening.settled
    consumer.answered()
    assert (listening.settled, listening.honoured) == (True, (TOOLS, ONE, TWO))
    assert consumer.asks() == []
    consumer.hears(UPDATED, {"uri": "x:2"})
    assert drained(listening) == [ONE, TWO]
    assert consumer.listenings.close(listening) is None
    assert consumer.asks() == unsubscribes("x:1", "x:2")
    consumer.answered()
    consumer.answered()
    assert repr(consumer.listenings) == "<Listenings: 0, 0 watches, 0 to ask>"


def test_what_was_missed_counts_as_changed() -> None:
    consumer = Consumer(D)
    some, others = consumer.opens(TOOLS, ONE), consumer.opens(PROMPTS)
    consumer.listenings.take(ChangesMissed())
    assert (drained(some), drained(others)) == ([], [PROMPTS])  # the one does not listen yet
    consumer.answered()
    consumer.listenings.take(ChangesMissed())
    assert consumer.asks() == []
    assert (drained(some), drained(others)) == ([TOOLS, ONE], [PROMPTS])
    consumer.lost(ConnectionLost("gone"))
    consumer.listenings.take(ChangesMissed())
    with pytest.raises(ConnectionLost):
        drained(others)


def test_what_the_server_does_not_declare_is_not_asked_for() -> None:
    consumer = Consumer(D, t.ServerCapabilities(resources=t.ResourcesCapability(list_changed=True)))
    listening = consumer.listenings.open(consumer.peer, (TOOLS, RESOURCES, ONE))
    assert consumer.asks() == []
    assert listening.honoured == (RESOURCES,)
    useless = consumer.opens(TOOLS, ONE)
    assert useless.settled
    with pytest.raises(LocalProtocolError, match="announces no changes"):
        useless.require_open()
    consumer.listenings.close(useless)
    assert consumer.asks() == []


def test_a_resource_that_the_server_refuses() -> None:
    consumer = Consumer(D)
    listening = consumer.opens(ONE, TWO)
    consumer.answered(error=PeerError(-32002, "no such resource"))
    assert not listening.settled
    consumer.answered()
    listening.require_open()
    assert listening.honoured == (TWO,)
    consumer.listenings.close(listening)
    assert consumer.asks() == unsubscribes("x:2")


def test_all_resources_refused() -> None:
    consumer = Consumer(D)
    listening, other = consumer.opens(ONE, TWO), consumer.opens(TWO)
    first = PeerError(-32002, "no such resource")
    consumer.answered(error=first)
    consumer.answered(error=PeerError(-32603, "sorry"))
    with pytest.raises(PeerError) as caught:
        listening.require_open()
    assert caught.value is first
    with pytest.raises(PeerError, match="sorry"):
        other.require_open()
    assert repr(consumer.listenings) == "<Listenings: 2, 0 watches, 0 to ask>"
    consumer.listenings.close(listening)
    assert consumer.asks() == []
    third = consumer.opens(ONE)  # it may be there by now
    consumer.answered()
    assert third.honoured == (ONE,)


def test_who_listens_to_the_same_resource() -> None:
    consumer = Consumer(D)
    first = consumer.opens(ONE)
    second = consumer.opens(ONE, TWO)
    assert [method for method, _, _ in consumer.asked] == ["resources/subscribe"] * 2
    consumer.answered()
    consumer.answered()
    third = consumer.opens(ONE)
    assert (consumer.asked, first.honoured, third.honoured) == ([], (ONE,), (ONE,))
    assert (second.settled, third.settled) == (True, True)
    for listening, leaves in ((first, []), (second, unsubscribes("x:2")), (third, unsubscribes("x:1"))):
        consumer.listenings.close(listening)
        assert consumer.asks() == leaves


def test_one_request_about_a_resource_at_a_time() -> None:
    consumer = Consumer(D)
    first = consumer.opens(ONE)
    consumer.listenings.close(first)
    assert consumer.asks() == []
    consumer.answered()
    assert consumer.asks() == unsubscribes("x:1")
    second = consumer.opens(ONE)
    assert not second.settled
    assert len(consumer.asked) == 1
    consumer.answered(error=PeerError(-32603, "sorry"))
    assert consumer.asks() == subscribes("x:1")
    consumer.answered()
    assert second.honoured == (ONE,)


def test_updates_go_to_who_wants_them() -> None:
    consumer = Consumer(D)
    first, second, lists = consumer.opens(ONE), consumer.opens(TWO, TOOLS), consumer.opens(TOOLS)
    for _ in range(2):
        consumer.answered()
    consumer.hears(UPDATED, {"uri": "x:1"})
    assert [drained(each) for each in (first, second, lists)] == [[ONE], [], []]
    consumer.hears(UPDATED, {"uri": "x:1/part"})
    part = Change(uri="x:1/part")
    assert [drained(each) for each in (first, second, lists)] == [[part], [part], []]
    consumer.hears(TOOLS_CHANGED)
    assert [drained(each) for each in (first, second, lists)] == [[], [TOOLS], [TOOLS]]


def test_progress_of_a_subscription_means_nothing() -> None:
    consumer = Consumer(D)
    listening = consumer.opens(ONE)
    _, _, token = only(consumer.asked)
    token.progressed(ProgressReceived(1, 0.5, None, None, token))
    assert not listening.settled


# -- Back to back --------------------------------------------------------------------------------------------


class Wire:
    """A client and a server that know changes and nothing else. All crosses as JSON, and no sooner than it is moved."""

    def __init__(self, dialect: Dialect, *, capabilities: t.ServerCapabilities = SERVER_OFFERS) -> None:
        self.dialect = dialect
        self.interests = interests(dialect.version, capabilities)
        self.listenings = Listenings()
        self.peer = Peer(dialect, capabilities)
        self.to_server: deque[tuple[int, str, bytes, Pending | None]] = deque()
        self.to_client: deque[tuple[Pending | None, Any, str, bytes]] = deque()
        self._ids = 0

    def opens(self, *wanted: Change) -> Listening:
        listening = self.listenings.open(self.peer, wanted)
        self.asks()
        return listening

    def closes(self, listening: Listening) -> None:
        cancelled = self.listenings.close(listening)
        if cancelled is not None:
            assert isinstance(cancelled, int)
            self.to_server.append((cancelled, "notifications/cancelled", b"{}", None))
        self.asks()

    def asks(self) -> None:
        while (request := self.listenings.next_request()) is not None:
            method, params, token = request
            self._ids += 1
            token.id = self._ids
            self.to_server.append((self._ids, method, self.dialect.encode(params), token))

    def serves(self, place: int = 0) -> None:
        """The server takes one message, not always that which was sent first."""
        id, method, data, token = self.to_server[place]
        del self.to_server[place]
        if method == "notifications/cancelled":
            self.interests.cancel(id)
            return
        params = self.dialect.receives[Role.SERVER][method].read_params(data)
        try:
            if method == LISTEN:
                self.tells(self.interests.listen(id, self.dialect, params.notifications))
                return
            if method == "resources/subscribe":
                self.interests.subscribe(self.dialect, params.uri)
            else:
                self.interests.unsubscribe(params.uri)
        except LocalProtocolError as exc:
            error = PeerError(self.dialect.codes[exc.fault], str(exc))
            self.to_client.append((token, error, "", b""))
        else:
            self.to_client.append((token, None, "", b""))

    def tells(self, notice: Notice) -> None:
        data = notice.dialect.encode(notice.params)
        self.to_client.append((None, None, notice.method, data))

    def hears(self) -> None:
        """The client takes one message."""
        token, error, method, data = self.to_client.popleft()
        if token is not None:
            token.end(None if error else t.EmptyResult(), error)
        else:
            row = self.dialect.receives[Role.CLIENT][method]
            event = NotificationReceived(row, row.read_params(data), self.peer)
            self.listenings.take(event)
        self.asks()

    def settle(self) -> None:
        """Everything crosses."""
        while True:
            if self.to_server:
                self.serves()
            elif self.to_client:
                self.hears()
            elif (notice := self.interests.next_notice()) is not None:
                self.tells(notice)
            else:
                return


@pytest.fixture(params=VERSIONS)
def wire(request: pytest.FixtureRequest) -> Wire:
    return Wire(DIALECTS[request.param])


def test_a_change_reaches_who_listens(wire: Wire) -> None:
    first, second = wire.opens(TOOLS, ONE), wire.opens(PROMPTS, ONE, TWO)
    wire.settle()
    for listening in (first, second):
        listening.require_open()
        assert set(listening.honoured) == set(listening.wanted)
    for change in (TOOLS, PROMPTS, RESOURCES, ONE, TWO):
        wire.interests.publish(change)
    wire.settle()
    assert (drained(first), drained(second)) == ([TOOLS, ONE], [PROMPTS, ONE, TWO])
    wire.closes(first)
    wire.settle()
    wire.interests.publish(ONE)
    wire.settle()
    assert (drained(first), drained(second)) == ([], [ONE])
    wire.closes(second)
    wire.settle()
    assert not wire.interests.publish(ONE)
    assert wire.interests.streams == 0


def test_a_change_right_after_the_acknowledgement(wire: Wire) -> None:
    listening = wire.opens(TOOLS, ONE)
    while wire.to_server:
        wire.serves()
    wire.interests.publish(ONE)
    assert not listening.settled
    wire.settle()
    assert (listening.settled, drained(listening)) == (True, [ONE])


def test_a_server_that_offers_nothing(wire: Wire) -> None:
    poor = Wire(wire.dialect, capabilities=NOTHING)
    listening = poor.opens(TOOLS, ONE)
    poor.settle()
    assert listening.settled
    with pytest.raises(LocalProtocolError):
        listening.require_open()
    poor.closes(listening)
    poor.settle()
    assert poor.interests.streams == 0


def test_too_much_is_refused(wire: Wire) -> None:
    listening = wire.opens(Change(uri="x" * 8193))
    wire.settle()
    with pytest.raises(PeerError, match="at most 8192 characters") as caught:
        listening.require_open()
    assert caught.value.code == -32602


WISHES: Final = ((TOOLS,), (ONE,), (TOOLS, ONE), (ONE, TWO))
moves = st.one_of(
    st.tuples(st.just("open"), st.sampled_from(WISHES)),
    st.tuples(st.just("close"), st.integers(0, 3)),
    st.tuples(st.just("publish"), st.sampled_from((TOOLS, ONE, TWO))),
    st.tuples(st.just("serve"), st.integers(0, 3)),
    st.tuples(st.just("tell"), st.none()),
    st.tuples(st.just("hear"), st.none()),
    st.tuples(st.just("look"), st.integers(0, 3)),
)


class Play:
    """One wire, those who listen over it, and what each of them has still to see: what changed since it was settled."""

    def __init__(self, version: str) -> None:
        self.wire = Wire(DIALECTS[version])
        # A listen request and its cancellation go the same way. Where each request goes its own, the last may be the first.
        self.overtaking = DIALECTS[version].stateful
        self.owed: dict[Listening, set[Change]] = {}

    def open(self, wanted: tuple[Change, ...]) -> None:
        self.owed[self.wire.opens(*wanted)] = set()

    def close(self, place: int) -> None:
        for listening in [*self.owed][place : place + 1]:
            self.wire.closes(listening)
            del self.owed[listening]

    def publish(self, change: Change) -> None:
        self.wire.interests.publish(change)
        for listening, owed in self.owed.items():
            if listening.settled and change in listening.wanted:
                owed.add(change)

    def serve(self, place: int) -> None:
        if self.wire.to_server:
            self.wire.serves(place % len(self.wire.to_server) if self.overtaking else 0)

    def tell(self, _: None) -> None:
        if (notice := self.wire.interests.next_notice()) is not None:
            self.wire.tells(notice)

    def hear(self, _: None) -> None:
        if self.wire.to_client:
            self.wire.hears()

    def look(self, place: int) -> None:
        for listening in [*self.owed][place : place + 1]:
            seen = drained(listening)
            assert len(set(seen)) == len(seen)
            assert set(seen) <= set(listening.wanted)
            self.owed[listening].difference_update(seen)


@given(st.sampled_from((D, E)), st.lists(moves, max_size=60))
def test_whatever_crosses_whatever_nothing_is_missed(version: str, script: list[tuple[str, Any]]) -> None:
    play = Play(version)
    wire = play.wire
    for move, detail in script:
        getattr(play, move)(detail)
    wire.settle()
    for place, listening in enumerate([*play.owed]):
        listening.require_open()
        assert set(listening.honoured) == set(listening.wanted)
        play.look(place)
    assert not any(play.owed.values())
    # In the end the server knows what is listened to and no more, whatever came first.
    for change in (ONE, TWO):
        assert wire.interests.publish(change) is any(change in listening.wanted for listening in play.owed)
    while play.owed:
        play.close(0)
    wire.settle()
    assert not any(wire.interests.publish(change) for change in (ONE, TWO))
    assert wire.interests.streams == 0
    assert repr(wire.listenings) == "<Listenings: 0, 0 watches, 0 to ask>"
