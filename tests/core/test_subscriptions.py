"""Changes: what a server's peer wants to hear of, and what is still to be told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import (
    DIALECTS,
    Fault,
    Limits,
    LocalProtocolError,
    Role,
)
from mcp_core import types as t
from mcp_core._subscriptions import Change, Interests, Notice, changes
from tests.core.helpers import (
    SERVER_OFFERS,
    STATEFUL,
    STATELESS,
    D,
    E,
    Message,
    only,
    server_config,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_core.types import RequestId

TOOLS, PROMPTS, RESOURCES = Change("tools"), Change("prompts"), Change("resources")
ONE, TWO = Change(uri="x:1"), Change(uri="x:2")
LISTS: Final = (TOOLS, PROMPTS, RESOURCES)
ID: Final = "io.modelcontextprotocol/subscriptionId"
LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"

NOTHING: Final = t.ServerCapabilities()
# Tools that do not change, resources that change one by one only.
SOME: Final = t.ServerCapabilities(
    tools=t.ToolsCapability(), resources=t.ResourcesCapability(subscribe=True), logging={}
)


def interests(
    version: str = D, capabilities: t.ServerCapabilities = SERVER_OFFERS, **limits: Any
) -> Interests:
    """Those of a peer that has just opened a conversation."""
    found = Interests(server_config(version, capabilities=capabilities, limits=Limits(**limits)))
    found.remember(DIALECTS[version])
    return found


def wish(*wanted: Change) -> t.SubscriptionFilter:
    return t.SubscriptionFilter(
        tools_list_changed=TOOLS in wanted or None,
        prompts_list_changed=PROMPTS in wanted or None,
        resources_list_changed=RESOURCES in wanted or None,
        resource_subscriptions=[change.uri for change in wanted if change.uri is not None] or None,
    )


def listen(of: Interests, id: RequestId, *wanted: Change) -> Message:
    return said(of.listen(id, DIALECTS[E], wish(*wanted)))


def said(notice: Notice) -> Message:
    """What stands on the wire of a notice, and whose stream it is on."""
    params = json.loads(notice.dialect.encode(notice.params))
    return {"on": notice.related, "method": notice.method, "params": params}


def told(of: Interests) -> list[tuple[RequestId | None, Change]]:
    """Everything that there is to tell, as long as there is room."""
    found = []
    while (notice := of.next_notice()) is not None:
        found.append((notice.related, change_of(notice)))
    return found


def change_of(notice: Notice) -> Change:
    if isinstance(notice.params, t.ResourceUpdatedParams):
        return Change(uri=notice.params.uri)
    return next(change for change in LISTS if change.method == notice.method)


# -- Changes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "method"),
    [
        (TOOLS, TOOLS_CHANGED),
        (PROMPTS, "notifications/prompts/list_changed"),
        (RESOURCES, "notifications/resources/list_changed"),
        (ONE, UPDATED),
        (Change(uri=""), UPDATED),
    ],
)
def test_every_revision_has_a_notification_for_a_change(change: Change, method: str) -> None:
    assert change.method == method
    assert all(method in dialect.receives[Role.CLIENT] for dialect in DIALECTS.values())


def test_what_a_change_says() -> None:
    assert [repr(TOOLS), repr(ONE)] == ["Change(list='tools')", "Change(uri='x:1')"]
    assert (Change(uri="x:1") == ONE, hash(Change(uri="x:1")) == hash(ONE)) == (True, True)


@pytest.mark.parametrize("members", [{}, {"list": "tools", "uri": "x:1"}])
def test_a_change_is_of_one_thing(members: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either a list or a resource"):
        Change(**members)


def test_changes_by_keyword() -> None:
    assert changes(tools=True) == (TOOLS,)
    assert changes(prompts=True, resources=True, uris=["x:2", "x:1", "x:2"]) == (PROMPTS, RESOURCES, TWO, ONE)
    with pytest.raises(ValueError, match="name a list or a resource"):
        changes()
    with pytest.raises(TypeError, match="not one string"):
        changes(uris="x:1")


# -- A server's session --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", STATEFUL)
def test_a_session_hears_of_every_list_and_of_what_it_subscribed_to(version: str) -> None:
    of = interests(version)
    of.subscribe(DIALECTS[version], "x:1")
    published = [of.publish(change) for change in (TOOLS, TWO, PROMPTS, RESOURCES, ONE)]
    assert published == [True, False, True, True, True]
    assert told(of) == [(None, TOOLS), (None, PROMPTS), (None, RESOURCES), (None, ONE)]
    assert told(of) == []


def test_what_a_session_reads() -> None:
    of = interests()
    of.subscribe(DIALECTS[D], "x:1")
    of.publish(TOOLS)
    of.publish(ONE)
    first, second = of.next_notice(), of.next_notice()
    assert first is not None
    assert second is not None
    assert said(first) == {"on": None, "method": TOOLS_CHANGED, "params": {}}
    assert said(second) == {"on": None, "method": UPDATED, "params": {"uri": "x:1"}}


@pytest.mark.parametrize("version", STATELESS)
def test_where_one_has_to_ask_nothing_is_told_by_itself(version: str) -> None:
    of = interests(version)
    assert not of.publish(TOOLS)
    assert repr(of) == "<Interests of 0 streams, 0 URIs, 0 waiting>"


def test_who_never_opened_a_conversation_hears_nothing() -> None:
    of = Interests(server_config())
    assert not any(of.publish(change) for change in (*LISTS, ONE))
    assert of.next_notice() is None
    of.unsubscribe("x:1")


def test_only_what_is_declared_is_told() -> None:
    of = interests(D, SOME)
    of.subscribe(DIALECTS[D], "x:1")
    assert [of.publish(change) for change in (*LISTS, ONE)] == [False, False, False, True]


def test_subscribing_twice_is_once() -> None:
    of = interests()
    for _ in range(2):
        of.subscribe(DIALECTS[D], "x:1")
    assert repr(of) == "<Interests of a session and 0 streams, 1 URIs, 0 waiting>"
    of.publish(ONE)
    assert told(of) == [(None, ONE)]
    of.unsubscribe("x:1")
    assert not of.publish(ONE)


def test_nothing_is_told_after_an_unsubscribe() -> None:
    of = interests()
    for change in (ONE, TWO):
        of.subscribe(DIALECTS[D], change.uri or "")
        of.publish(change)
    of.unsubscribe("x:1")
    of.unsubscribe("x:1")
    assert told(of) == [(None, TWO)]
    of.publish(TWO)
    of.unsubscribe("x:2")
    of.unsubscribe("x:3")
    assert told(of) == []
    assert repr(of) == "<Interests of a session and 0 streams, 0 URIs, 0 waiting>"


def test_a_handshake_counts_once() -> None:
    of = interests()
    of.subscribe(DIALECTS[D], "x:1")
    of.publish(ONE)
    of.remember(DIALECTS[D])  # as when the peer sets its log level
    assert told(of) == [(None, ONE)]


@pytest.mark.parametrize(
    ("subscribed", "published", "is_told"),
    [
        ("file:///a", "file:///a", True),
        ("file:///a", "file:///a/b", False),
        ("file:///a/", "file:///a/b", False),
        ("file:///a", "FILE:///a", False),
        ("file:///a", "file:///a#b", False),
        ("", "", True),
    ],
)
def test_a_uri_means_that_resource(subscribed: str, published: str, is_told: bool) -> None:
    of = interests()
    of.subscribe(DIALECTS[D], subscribed)
    assert of.publish(Change(uri=published)) is is_told


# -- A server's listen requests ------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [1, "1", 0, "", 2**53 - 1])
def test_the_acknowledgement_and_all_that_follows_name_the_subscription(id: RequestId) -> None:
    of = interests(E)
    meta = {ID: id}
    assert listen(of, id, TOOLS, ONE) == {
        "on": id,
        "method": ACKNOWLEDGED,
        "params": {
            "_meta": meta,
            "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["x:1"]},
        },
    }
    of.publish(ONE)
    of.publish(TOOLS)
    first, second = of.next_notice(), of.next_notice()
    assert first is not None
    assert second is not None
    assert said(first) == {"on": id, "method": UPDATED, "params": {"_meta": meta, "uri": "x:1"}}
    assert said(second) == {"on": id, "method": TOOLS_CHANGED, "params": {"_meta": meta}}
    of.publish(TOOLS)
    farewell = only(of.end())
    assert (farewell.id, farewell.dialect) == (id, DIALECTS[E])
    assert [said(notice) for notice in farewell.rest] == [
        {"on": id, "method": TOOLS_CHANGED, "params": {"_meta": meta}}
    ]
    assert json.loads(DIALECTS[E].encode(farewell.result)) == {"_meta": meta}


@pytest.mark.parametrize("capabilities", [SERVER_OFFERS, SOME, NOTHING])
@pytest.mark.parametrize(
    "wanted", [(), (TOOLS,), (PROMPTS, RESOURCES), (*LISTS, TWO, ONE)], ids=["none", "one", "two", "all"]
)
def test_what_is_honoured(capabilities: t.ServerCapabilities, wanted: tuple[Change, ...]) -> None:
    of = interests(E, capabilities)
    offered = {id(SERVER_OFFERS): {*LISTS, ONE, TWO}, id(SOME): {ONE, TWO}, id(NOTHING): set()}
    honoured = [change for change in wanted if change in offered[id(capabilities)]]
    acknowledged = listen(of, 1, *wanted)["params"]["notifications"]
    assert acknowledged == json.loads(DIALECTS[E].encode(wish(*honoured)))
    for change in (*LISTS, ONE, TWO):
        assert of.publish(change) is (change in honoured)
    assert {change for _, change in told(of)} == set(honoured)


def test_a_uri_named_twice_is_honoured_once() -> None:
    of = interests(E, uris=2)
    assert listen(of, 1, ONE, TWO, ONE)["params"]["notifications"] == {
        "resourceSubscriptions": ["x:1", "x:2"]
    }


@pytest.mark.requirement("SUB-16")
@pytest.mark.parametrize(
    "named", ["{}", '{"toolsListChanged":false,"resourceSubscriptions":[]}', '{"taskIds":["t"]}']
)
def test_a_wish_for_nothing_that_is_told_here(named: str) -> None:
    row = DIALECTS[E].receives[Role.SERVER][LISTEN]
    params = row.read_params(b'{"notifications":%b}' % named.encode())
    of = interests(E)
    assert said(of.listen(1, DIALECTS[E], params.notifications))["params"]["notifications"] == {}
    assert not of.publish(TOOLS)
    assert 1 in of


def test_subscriptions_are_apart() -> None:
    of = interests(E)
    listen(of, 1, TOOLS, ONE)
    listen(of, "1", TOOLS)
    listen(of, 2, PROMPTS)
    assert (1 in of, "1" in of, "2" in of, of.streams) == (True, True, False, 3)
    of.publish(TOOLS)
    of.publish(ONE)
    assert told(of) == [(1, TOOLS), ("1", TOOLS), (1, ONE)]


def test_a_session_and_listen_requests_on_one_connection() -> None:
    of = interests(D)
    listen(of, 7, TOOLS)
    assert repr(of) == "<Interests of a session and 1 streams, 0 URIs, 0 waiting>"
    of.publish(TOOLS)
    notices = [of.next_notice(), of.next_notice()]
    spoken = [(notice.related, notice.dialect) for notice in notices if notice is not None]
    assert spoken == [(None, DIALECTS[D]), (7, DIALECTS[E])]


def test_a_cancelled_subscription_hears_nothing_more() -> None:
    of = interests(E)
    listen(of, 1, TOOLS, ONE)
    listen(of, 2, TOOLS)
    of.publish(TOOLS)
    assert (of.cancel(1), of.cancel(1), of.cancel("2")) == (True, False, False)
    assert told(of) == [(2, TOOLS)]
    assert not of.publish(ONE)
    assert repr(of) == "<Interests of 1 streams, 0 URIs, 0 waiting>"
    listen(of, 1, PROMPTS)  # an id is free again when its request has ended
    of.publish(TOOLS)
    assert told(of) == [(2, TOOLS)]


def test_the_end_by_the_server() -> None:
    of = interests(D)
    of.subscribe(DIALECTS[D], "x:1")
    listen(of, 1, TOOLS, ONE)
    listen(of, 2, PROMPTS)
    for change in (ONE, TOOLS, ONE):
        of.publish(change)
    ended = of.end()
    assert [(farewell.id, [change_of(notice) for notice in farewell.rest]) for farewell in ended] == [
        (1, [ONE, TOOLS]),
        (2, []),
    ]
    assert of.next_notice() is None
    assert not of.publish(TOOLS)
    assert (of.end(), of.cancel(1), 1 in of) == ([], False, False)
    assert repr(of) == "<Interests of 0 streams, 0 URIs, 0 waiting>"


# -- Limits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [7, 8, 9])
def test_the_length_of_a_uri(length: int) -> None:
    of = interests(D, uri=8)
    uri = "x:".ljust(length, "1")
    acts = (
        lambda: of.subscribe(DIALECTS[D], uri),
        lambda: listen(of, 1, Change(uri=uri)),
    )
    for act in acts:
        if length <= 8:
            act()
        else:
            with pytest.raises(LocalProtocolError, match="at most 8 characters") as caught:
                act()
            assert caught.value.fault is Fault.INVALID_PARAMS
    assert of.publish(Change(uri=uri)) is (length <= 8)


def test_the_number_of_uris() -> None:
    of = interests(D, uris=3)
    of.subscribe(DIALECTS[D], "x:1")
    listen(of, 1, TOOLS, ONE, TWO)
    for act in (lambda: of.subscribe(DIALECTS[D], "x:2"), lambda: listen(of, 2, ONE)):
        with pytest.raises(LocalProtocolError, match="at most 3 URIs") as caught:
            act()
        assert caught.value.fault is Fault.BUSY
    assert 2 not in of
    of.subscribe(DIALECTS[D], "x:1")  # which is none more
    listen(of, 2, TOOLS)
    of.cancel(1)
    with pytest.raises(LocalProtocolError):
        listen(of, 1, ONE, TWO, Change(uri="x:3"))
    listen(of, 1, ONE, TWO)
    of.unsubscribe("x:1")
    of.subscribe(DIALECTS[D], "x:4")
    assert repr(of) == "<Interests of a session and 2 streams, 3 URIs, 0 waiting>"


def test_uris_that_are_not_honoured_cost_nothing() -> None:
    of = interests(E, NOTHING, uris=0, uri=0)
    listen(of, 1, ONE, TWO)


def test_the_number_of_subscriptions() -> None:
    of = interests(D, listens=2)
    listen(of, 1)
    listen(of, 2)
    with pytest.raises(LocalProtocolError, match="at most 2 subscriptions") as caught:
        listen(of, 3)
    assert (caught.value.fault, 3 in of) == (Fault.BUSY, False)
    of.cancel(1)
    listen(of, 3)


def test_the_limits_unless_others_are_given() -> None:
    of = interests(E)
    listen(of, 0, *(Change(uri=f"x:{n}".ljust(8192, "x")) for n in range(1024)))
    for id in range(1, 64):
        listen(of, id, *LISTS)
    for act in (
        lambda: listen(of, 64),
        lambda: of.subscribe(DIALECTS[D], "x:"),
        lambda: of.subscribe(DIALECTS[D], "x" * 8193),
    ):
        with pytest.raises(LocalProtocolError):
            act()


# -- Slow listeners ------------------------------------------------------------------------------------------


def test_changes_are_coalesced() -> None:
    of = interests(E)
    listen(of, 1, *LISTS, ONE, TWO)
    for _ in range(1000):
        for change in (TWO, TOOLS, ONE, PROMPTS):
            of.publish(change)
    assert told(of) == [(1, change) for change in (TWO, TOOLS, ONE, PROMPTS)]


def test_a_change_after_it_was_told_is_told_again() -> None:
    of = interests(E)
    listen(of, 1, TOOLS, ONE)
    of.publish(TOOLS)
    of.publish(ONE)
    assert of.next_notice() is not None
    of.publish(TOOLS)
    assert told(of) == [(1, ONE), (1, TOOLS)]


def test_everybody_has_a_turn() -> None:
    of = interests(D)
    listen(of, 1, *LISTS, ONE)
    listen(of, 2, TOOLS)
    for change in (TOOLS, PROMPTS, ONE):
        of.publish(change)
    assert told(of) == [
        (None, TOOLS),
        (1, TOOLS),
        (2, TOOLS),
        (None, PROMPTS),
        (1, PROMPTS),
        (1, ONE),
    ]


def test_who_has_no_room_keeps_nobody_waiting() -> None:
    of = interests(E)
    listen(of, 1, *LISTS)
    listen(of, 2, *LISTS)
    for change in LISTS:
        of.publish(change)
    seen = []
    while (notice := of.next_notice(lambda id: id != 1)) is not None:
        seen.append((notice.related, change_of(notice)))
    assert seen == [(2, change) for change in LISTS]
    of.publish(TOOLS)
    assert of.next_notice(lambda id: False) is None
    assert told(of) == [(1, TOOLS), (2, TOOLS), (1, PROMPTS), (1, RESOURCES)]


IDS: Final = (None, 1, "1", 2)
CHANGES: Final = (TOOLS, PROMPTS, ONE, TWO, Change(uri="x:3"))
some_changes = st.lists(st.sampled_from(CHANGES), unique=True)
acts = st.one_of(
    st.tuples(st.just("subscribe"), st.sampled_from(CHANGES[2:])),
    st.tuples(st.just("unsubscribe"), st.sampled_from(CHANGES[2:])),
    st.tuples(st.just("listen"), st.sampled_from(IDS[1:]), some_changes),
    st.tuples(st.just("cancel"), st.sampled_from(IDS[1:])),
    st.tuples(st.just("publish"), st.sampled_from(CHANGES)),
    st.tuples(st.just("tell"), st.sets(st.sampled_from(IDS))),
    st.tuples(st.just("end")),
)


@given(st.lists(acts, max_size=60))
def test_whatever_happens_each_change_is_told_after_it_happened(script: list[tuple[Any, ...]]) -> None:
    of = interests(D, uris=5, listens=2)
    wanted: dict[RequestId | None, set[Change]] = {None: {*LISTS}}
    owed: set[tuple[RequestId | None, Change]] = set()  # published while wanted, and not told since

    def forget(id: RequestId | None, gone: Iterable[Change]) -> None:
        owed.difference_update({(id, change) for change in gone})

    for act, *details in script:
        if act == "subscribe":
            try:
                of.subscribe(DIALECTS[D], details[0].uri)
            except LocalProtocolError:
                assert sum(change.uri is not None for those in wanted.values() for change in those) == 5
            else:
                wanted.setdefault(None, {*LISTS}).add(details[0])
        elif act == "unsubscribe":
            of.unsubscribe(details[0].uri)
            wanted.get(None, set()).discard(details[0])
            forget(None, [details[0]])
        elif act == "listen" and details[0] not in wanted:
            try:
                listen(of, details[0], *details[1])
            except LocalProtocolError:
                assert details[0] not in of
            else:
                wanted[details[0]] = set(details[1])
        elif act == "cancel":
            assert of.cancel(details[0]) is (details[0] in wanted)
            forget(details[0], wanted.pop(details[0], ()))
        elif act == "publish":
            interested = {(id, details[0]) for id, those in wanted.items() if details[0] in those}
            assert of.publish(details[0]) is bool(interested)
            owed |= interested
        elif act == "tell":
            notice = of.next_notice(details[0].__contains__)
            if notice is None:
                assert not any(id in details[0] for id, _ in owed)
            else:
                assert notice.related in details[0]
                owed.remove((notice.related, change_of(notice)))  # nothing is told that did not happen
        elif act == "end":
            rests = {(farewell.id, change_of(notice)) for farewell in of.end() for notice in farewell.rest}
            assert rests == {(id, change) for id, change in owed if id is not None}
            wanted.clear()
            owed.clear()
    assert {id for id in IDS[1:] if id in of} == wanted.keys() - {None}
    assert sorted(map(repr, told(of))) == sorted(map(repr, owed))
