"""Server-side subscriptions: what they cover, and which notifications are sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from mcp_core import (
    DIALECTS,
    Fault,
    Limits,
    LocalProtocolError,
    MessageKind,
    Outgoing,
    Peer,
    RequestReceived,
    Role,
)
from mcp_core import types as t
from mcp_core.protocol.messages._outbox import Outbox
from mcp_core.protocol.messages._rejection import RequestRejected
from mcp_core.protocol.revisions._capabilities import with_tasks
from mcp_core.protocol.revisions._methods import METHODS
from mcp_core.protocol.subscriptions._server import (
    Change,
    ChangeNotification,
    SubscriptionPublisher,
    SubscriptionTable,
    announced,
    capabilities_for,
    changes,
)
from tests.harness.jsonrpc import (
    SERVER_CAPABILITIES,
    STATEFUL,
    STATELESS,
    D,
    E,
    Message,
    server_config,
    single,
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
# Tools do not change; resources can be subscribed to, but their list does not change.
SOME: Final = t.ServerCapabilities(
    tools=t.ToolsCapability(), resources=t.ResourcesCapability(subscribe=True), logging={}
)


def subscription_table(
    version: str = D, capabilities: t.ServerCapabilities = SERVER_CAPABILITIES, **limits: Any
) -> SubscriptionTable:
    """Return the subscriptions of a peer that has just completed the handshake."""
    found = SubscriptionTable(
        server_config(version, capabilities=capabilities, limits=Limits(**limits))
    )
    found.start_session(DIALECTS[version])
    return found


MINE, YOURS = Change(task="mine"), Change(task="yours")
TASKS: Final = with_tasks(SERVER_CAPABILITIES, may_list=True)


def status(task_id: str, state: Any = "working") -> t.TaskStatusParams:
    return t.TaskStatusParams(
        task_id=task_id, status=state, created_at="1", last_updated_at="2", ttl=5, ttl_ms=5
    )


def filter_of(*wanted: Change) -> t.SubscriptionFilter:
    return t.SubscriptionFilter(
        tools_list_changed=TOOLS in wanted or None,
        prompts_list_changed=PROMPTS in wanted or None,
        resources_list_changed=RESOURCES in wanted or None,
        resource_subscriptions=[change.uri for change in wanted if change.uri is not None] or None,
        task_ids=[change.task for change in wanted if change.task is not None] or None,
    )


def listen(table: SubscriptionTable, id: RequestId, *wanted: Change) -> Message:
    return as_sent(table.listen(id, DIALECTS[E], filter_of(*wanted)))


def as_sent(notice: ChangeNotification) -> Message:
    """Return a notification as sent, and the listen request to which it belongs."""
    params = json.loads(notice.dialect.encode(notice.params))
    return {"on": notice.related, "method": notice.method, "params": params}


def take_all(table: SubscriptionTable) -> list[tuple[RequestId | None, Change]]:
    """Take all notifications. Return the listen request and the change of each."""
    found = []
    while (notice := table.next_notification()) is not None:
        found.append((notice.related, change_of(notice)))
    return found


def change_of(notice: ChangeNotification) -> Change:
    if isinstance(notice.params, t.ResourceUpdatedParams):
        return Change(uri=notice.params.uri)
    return next(change for change in LISTS if change.method == notice.method)


# -- Changes -------------------------------------------------------------------------------------


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
def test_change_has_notification_in_every_revision(change: Change, method: str) -> None:
    assert change.method == method
    assert all(method in dialect.receives[Role.CLIENT] for dialect in DIALECTS.values())


def test_change_is_compared_by_value_and_shows_it() -> None:
    assert [repr(TOOLS), repr(ONE)] == ["Change(list='tools')", "Change(uri='x:1')"]
    assert (Change(uri="x:1") == ONE, hash(Change(uri="x:1")) == hash(ONE)) == (True, True)


@pytest.mark.parametrize(
    "members", [{}, {"list": "tools", "uri": "x:1"}, {"task": "t", "uri": ""}, {"task": None}]
)
def test_change_without_exactly_one_member_raises(members: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either a list, a resource or a task"):
        Change(**members)


def test_changes_keywords_build_ordered_tuple() -> None:
    """A wrong URI is refused at once, since later it would fail in another task."""
    assert changes(tools=True) == (TOOLS,)
    assert changes(prompts=True, resources=True, uris=["x:2", "x:1", "x:2"]) == (
        PROMPTS,
        RESOURCES,
        TWO,
        ONE,
    )
    with pytest.raises(ValueError, match="name a list or a resource"):
        changes()
    with pytest.raises(TypeError, match=r"a URI is a string, not \w*Path: pass path\.as_uri\(\)$"):
        changes(uris=[Path("/a")])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"a URI is a string, not int$"):
        changes(uris=["a:b", 1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="not one string"):
        changes(uris="x:1")


# -- The session ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", STATEFUL)
def test_session_gets_all_lists_and_subscribed_resources(version: str) -> None:
    table = subscription_table(version)
    table.subscribe(DIALECTS[version], "x:1")
    published = [table.publish(change) for change in (TOOLS, TWO, PROMPTS, RESOURCES, ONE)]
    assert published == [True, False, True, True, True]
    assert take_all(table) == [(None, TOOLS), (None, PROMPTS), (None, RESOURCES), (None, ONE)]
    assert take_all(table) == []


def test_session_notification_has_no_subscription_id() -> None:
    table = subscription_table()
    table.subscribe(DIALECTS[D], "x:1")
    table.publish(TOOLS)
    table.publish(ONE)
    first, second = table.next_notification(), table.next_notification()
    assert first is not None
    assert second is not None
    assert as_sent(first) == {"on": None, "method": TOOLS_CHANGED, "params": {}}
    assert as_sent(second) == {"on": None, "method": UPDATED, "params": {"uri": "x:1"}}


@pytest.mark.parametrize("version", STATELESS)
def test_session_in_listen_revision_gets_nothing_unasked(version: str) -> None:
    table = subscription_table(version)
    assert not table.publish(TOOLS)
    assert repr(table) == "<SubscriptionTable of 0 streams, 0 URIs, 0 waiting>"


def test_session_not_started_gets_nothing() -> None:
    table = SubscriptionTable(server_config())
    assert not any(table.publish(change) for change in (*LISTS, ONE))
    assert table.next_notification() is None
    table.unsubscribe("x:1")


def test_session_gets_declared_changes_only() -> None:
    table = subscription_table(D, SOME)
    table.subscribe(DIALECTS[D], "x:1")
    assert [table.publish(change) for change in (*LISTS, ONE)] == [False, False, False, True]


def test_subscribe_twice_counts_once() -> None:
    table = subscription_table()
    for _ in range(2):
        table.subscribe(DIALECTS[D], "x:1")
    assert repr(table) == "<SubscriptionTable of a session and 0 streams, 1 URIs, 0 waiting>"
    table.publish(ONE)
    assert take_all(table) == [(None, ONE)]
    table.unsubscribe("x:1")
    assert not table.publish(ONE)


def test_unsubscribe_drops_pending_change() -> None:
    table = subscription_table()
    for change in (ONE, TWO):
        table.subscribe(DIALECTS[D], change.uri or "")
        table.publish(change)
    table.unsubscribe("x:1")
    table.unsubscribe("x:1")
    assert take_all(table) == [(None, TWO)]
    table.publish(TWO)
    table.unsubscribe("x:2")
    table.unsubscribe("x:3")
    assert take_all(table) == []
    assert repr(table) == "<SubscriptionTable of a session and 0 streams, 0 URIs, 0 waiting>"


def test_start_session_twice_keeps_pending_changes() -> None:
    table = subscription_table()
    table.subscribe(DIALECTS[D], "x:1")
    table.publish(ONE)
    table.start_session(DIALECTS[D])  # as setting the log level does
    assert take_all(table) == [(None, ONE)]


@pytest.mark.parametrize(
    ("subscribed", "published", "sent"),
    [
        ("file:///a", "file:///a", True),
        ("file:///a", "file:///a/b", False),
        ("file:///a/", "file:///a/b", False),
        ("file:///a", "FILE:///a", True),
        ("note://café", "note://caf%C3%A9", True),
        ("note://caf%C3%A9/", "note://café", True),
        ("file:///a/..", "FILE:///a/..", False),
        ("file:///a", "file:///a#b", False),
        ("", "", True),
    ],
)
def test_subscribe_uri_matches_by_its_normal_form(
    subscribed: str, published: str, sent: bool
) -> None:
    table = subscription_table()
    table.subscribe(DIALECTS[D], subscribed)
    assert table.publish(Change(uri=published)) is sent
    # The client gets the URI as it wrote it.
    assert take_all(table) == [(None, Change(uri=subscribed))] * sent


def test_subscription_with_the_exact_uri_wins_over_another_spelling() -> None:
    table = subscription_table()
    for uri in ("note://café", "note://caf%C3%A9"):
        table.subscribe(DIALECTS[D], uri)
    table.publish(Change(uri="note://café"))
    assert take_all(table) == [(None, Change(uri="note://café"))]
    table.publish(Change(uri="NOTE://café"))  # this may be either
    assert len(take_all(table)) == 2
    table.unsubscribe("NOTE://café")  # and this is neither
    table.unsubscribe("note://café")
    table.publish(Change(uri="note://café"))
    assert take_all(table) == [(None, Change(uri="note://caf%C3%A9"))]
    table.unsubscribe("NOTE://café")
    assert not table.publish(Change(uri="note://caf%C3%A9"))


# -- Listen requests -----------------------------------------------------------------------------


@pytest.mark.parametrize("id", [1, "1", 0, "", 2**53 - 1])
def test_listen_messages_carry_subscription_id(id: RequestId) -> None:
    """The id may be 0, empty or a string of digits, and the last change precedes the result."""
    table = subscription_table(E)
    meta = {ID: id}
    assert listen(table, id, TOOLS, ONE) == {
        "on": id,
        "method": ACKNOWLEDGED,
        "params": {
            "_meta": meta,
            "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["x:1"]},
        },
    }
    table.publish(ONE)
    table.publish(TOOLS)
    first, second = table.next_notification(), table.next_notification()
    assert first is not None
    assert second is not None
    assert as_sent(first) == {"on": id, "method": UPDATED, "params": {"_meta": meta, "uri": "x:1"}}
    assert as_sent(second) == {"on": id, "method": TOOLS_CHANGED, "params": {"_meta": meta}}
    table.publish(TOOLS)
    ended_request = single(table.end_all())
    assert (ended_request.id, ended_request.dialect) == (id, DIALECTS[E])
    assert [as_sent(notice) for notice in ended_request.remaining] == [
        {"on": id, "method": TOOLS_CHANGED, "params": {"_meta": meta}}
    ]
    assert json.loads(DIALECTS[E].encode(ended_request.result)) == {"_meta": meta}


@pytest.mark.requirement("SUB-3")
@pytest.mark.parametrize("capabilities", [SERVER_CAPABILITIES, SOME, NOTHING])
@pytest.mark.parametrize(
    "wanted",
    [(), (TOOLS,), (PROMPTS, RESOURCES), (*LISTS, TWO, ONE)],
    ids=["none", "one", "two", "all"],
)
def test_listen_acknowledges_declared_changes_only(
    capabilities: t.ServerCapabilities, wanted: tuple[Change, ...]
) -> None:
    table = subscription_table(E, capabilities)
    offered = {
        id(SERVER_CAPABILITIES): {*LISTS, ONE, TWO},
        id(SOME): {ONE, TWO},
        id(NOTHING): set(),
    }
    honoured = [change for change in wanted if change in offered[id(capabilities)]]
    acknowledged = listen(table, 1, *wanted)["params"]["notifications"]
    assert acknowledged == json.loads(DIALECTS[E].encode(filter_of(*honoured)))
    for change in (*LISTS, ONE, TWO):
        assert table.publish(change) is (change in honoured)
    assert {change for _, change in take_all(table)} == set(honoured)


def test_listen_duplicate_uri_counts_once() -> None:
    table = subscription_table(E, uris=2)
    assert listen(table, 1, ONE, TWO, ONE)["params"]["notifications"] == {
        "resourceSubscriptions": ["x:1", "x:2"]
    }


@pytest.mark.requirement("SUB-16")
@pytest.mark.parametrize(
    "named", ["{}", '{"toolsListChanged":false,"resourceSubscriptions":[]}', '{"taskIds":["t"]}']
)
def test_listen_filter_without_known_change_is_accepted(named: str) -> None:
    row = DIALECTS[E].receives[Role.SERVER][LISTEN]
    params = row.read_params(b'{"notifications":%b}' % named.encode())
    table = subscription_table(E)
    assert (
        as_sent(table.listen(1, DIALECTS[E], params.notifications))["params"]["notifications"] == {}
    )
    assert not table.publish(TOOLS)
    assert 1 in table


@pytest.mark.requirement("TX-20")
def test_listen_task_has_its_last_state_on_each_subscription() -> None:
    """Only the newest unsent state counts, and each subscription gets it under its own id."""
    table = subscription_table(E, TASKS)
    assert listen(table, 1, TOOLS, MINE, YOURS)["params"]["notifications"] == {
        "toolsListChanged": True,
        "taskIds": ["mine", "yours"],
    }
    listen(table, 2, MINE)
    assert table.publish(MINE, status("mine"))
    assert table.publish(MINE, status("mine", "failed"))
    assert not table.publish(Change(task="other"), status("other"))
    found = []
    while (notice := table.next_notification()) is not None:
        found.append(as_sent(notice))
    state = {"taskId": "mine", "status": "failed", "createdAt": "1", "lastUpdatedAt": "2"}
    method, params = "notifications/tasks", state | {"ttlMs": 5}
    assert found == [
        {"on": id, "method": method, "params": params | {"_meta": {ID: id}}} for id in (1, 2)
    ]


def test_session_that_reads_no_states_of_tasks_keeps_the_last_ones() -> None:
    """Its client may never open the stream for them. Changes of lists and resources stay."""
    table = subscription_table(D, task_ids=3)
    table.subscribe(DIALECTS[D], "x:1")
    table.publish(TOOLS)
    table.publish(ONE)
    for number in range(10):
        status = t.TaskStatusParams(
            task_id=str(number), status="working", created_at="", last_updated_at=""
        )
        assert table.publish(Change(task=str(number)), status)
    sent = []
    while (notice := table.next_notification()) is not None:
        sent.append(getattr(notice.params, "task_id", notice.method))
    assert sent == [TOOLS_CHANGED, UPDATED, "7", "8", "9"]


def test_session_keeps_as_many_states_of_tasks_as_its_limit() -> None:
    table = subscription_table(D, task_ids=3)
    for number in "012":
        table.publish(Change(task=number), status(number))
    sent = []
    while (notice := table.next_notification()) is not None:
        sent.append(getattr(notice.params, "task_id", None))
    assert sent == ["0", "1", "2"]


def test_listen_tasks_count_apart_from_uris() -> None:
    table = subscription_table(E, TASKS, uris=1, task_ids=2)
    listen(table, 1, ONE, MINE, YOURS, MINE)
    with pytest.raises(LocalProtocolError, match="at most 2 tasks") as caught:
        listen(table, 2, Change(task="third"))
    assert caught.value.fault is Fault.BUSY
    table.cancel(1)
    listen(table, 3, MINE)
    table.end_all()
    listen(table, 4, MINE, YOURS)


@pytest.mark.parametrize("version", STATEFUL)
def test_session_of_2025_11_25_alone_gets_every_state(version: str) -> None:
    table = subscription_table(version, TASKS)
    assert table.publish(MINE, status("mine")) is (version == D)
    assert not table.covers_task("mine")
    notice = table.next_notification()
    if version == D:
        assert notice is not None
        assert (notice.related, notice.method) == (None, "notifications/tasks/status")
        assert notice.params.meta is None
        table.publish(MINE, status("mine"))
        table.publish(MINE, status("mine"))
        assert table.next_notification() is not None
    assert table.next_notification() is None
    assert announced(DIALECTS[version], TASKS, [MINE]) == {}
    assert capabilities_for(DIALECTS[version], [MINE, TOOLS]) == ["tools.listChanged"]


def test_listen_requests_get_changes_separately() -> None:
    table = subscription_table(E)
    listen(table, 1, TOOLS, ONE)
    listen(table, "1", TOOLS)
    listen(table, 2, PROMPTS)
    assert (1 in table, "1" in table, "2" in table, table.listen_count) == (True, True, False, 3)
    table.publish(TOOLS)
    table.publish(ONE)
    assert take_all(table) == [(1, TOOLS), ("1", TOOLS), (1, ONE)]


def test_session_and_listen_request_are_served_on_one_connection() -> None:
    table = subscription_table(D)
    listen(table, 7, TOOLS)
    assert repr(table) == "<SubscriptionTable of a session and 1 streams, 0 URIs, 0 waiting>"
    table.publish(TOOLS)
    notices = [table.next_notification(), table.next_notification()]
    spoken = [(notice.related, notice.dialect) for notice in notices if notice is not None]
    assert spoken == [(None, DIALECTS[D]), (7, DIALECTS[E])]


def test_listen_cancelled_gets_nothing_more() -> None:
    table = subscription_table(E)
    listen(table, 1, TOOLS, ONE)
    listen(table, 2, TOOLS)
    table.publish(TOOLS)
    assert (table.cancel(1), table.cancel(1), table.cancel("2")) == (True, False, False)
    assert take_all(table) == [(2, TOOLS)]
    assert not table.publish(ONE)
    assert repr(table) == "<SubscriptionTable of 1 streams, 0 URIs, 0 waiting>"
    listen(table, 1, PROMPTS)  # an id is free again when its request has ended
    table.publish(TOOLS)
    assert take_all(table) == [(2, TOOLS)]


def test_end_returns_remaining_notifications() -> None:
    """A change published twice is sent once; the session's own updates end without a result."""
    table = subscription_table(D)
    table.subscribe(DIALECTS[D], "x:1")
    listen(table, 1, TOOLS, ONE)
    listen(table, 2, PROMPTS)
    for change in (ONE, TOOLS, ONE):
        table.publish(change)
    ended = table.end_all()
    assert [
        (ended_request.id, [change_of(notice) for notice in ended_request.remaining])
        for ended_request in ended
    ] == [
        (1, [ONE, TOOLS]),
        (2, []),
    ]
    assert table.next_notification() is None
    assert not table.publish(TOOLS)
    assert (table.end_all(), table.cancel(1), 1 in table) == ([], False, False)
    assert repr(table) == "<SubscriptionTable of 0 streams, 0 URIs, 0 waiting>"


# -- Limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [7, 8, 9])
def test_subscribe_uri_over_length_limit_raises(length: int) -> None:
    table = subscription_table(D, uri=8)
    uri = "x:".ljust(length, "1")
    acts = (
        lambda: table.subscribe(DIALECTS[D], uri),
        lambda: listen(table, 1, Change(uri=uri)),
    )
    for act in acts:
        if length <= 8:
            act()
        else:
            with pytest.raises(LocalProtocolError, match="at most 8 characters") as caught:
                act()
            assert caught.value.fault is Fault.INVALID_PARAMS
    assert table.publish(Change(uri=uri)) is (length <= 8)


def test_subscribe_over_uri_limit_raises() -> None:
    """URIs count over session and streams together, and a refused call changes nothing."""
    table = subscription_table(D, uris=3)
    table.subscribe(DIALECTS[D], "x:1")
    listen(table, 1, TOOLS, ONE, TWO)
    for act in (lambda: table.subscribe(DIALECTS[D], "x:2"), lambda: listen(table, 2, ONE)):
        with pytest.raises(LocalProtocolError, match="at most 3 URIs") as caught:
            act()
        assert caught.value.fault is Fault.BUSY
    assert 2 not in table
    table.subscribe(DIALECTS[D], "x:1")  # again, so not another one
    listen(table, 2, TOOLS)
    table.cancel(1)
    with pytest.raises(LocalProtocolError):
        listen(table, 1, ONE, TWO, Change(uri="x:3"))
    listen(table, 1, ONE, TWO)
    table.unsubscribe("x:1")
    table.subscribe(DIALECTS[D], "x:4")
    assert repr(table) == "<SubscriptionTable of a session and 2 streams, 3 URIs, 0 waiting>"


def test_hidden_resource_counts_and_is_not_sent_while_it_is_hidden() -> None:
    """Each subscription's request decides, in a session the last one, and is kept short."""
    table = subscription_table(D, uris=3)
    senders = [
        RequestReceived(id, METHODS[0], None, Peer(DIALECTS[D], t.ClientCapabilities()), b"{}")
        for id in range(3)
    ]
    table.subscribe(DIALECTS[D], "x:1", senders[0])
    table.subscribe(DIALECTS[D], "x:2", senders[1])
    table.listen(7, DIALECTS[E], filter_of(Change(uri="x:1")), senders[2])
    hidden = {("x:1", 0), ("x:2", 1), ("x:1", 2)}

    def hides(uri: str, sender: RequestReceived) -> bool:
        assert not sender.raw
        return (uri, sender.id) in hidden

    with pytest.raises(LocalProtocolError, match="at most 3 URIs"):
        table.subscribe(DIALECTS[D], "x:3", senders[0])
    for uri in ("x:1", "x:2", "X:2"):
        table.publish(Change(uri=uri), hides=hides)
    assert take_all(table) == [(None, Change(uri="x:1"))]
    table.publish_all_resources(hides)
    assert take_all(table) == [(None, Change(uri="x:1"))]
    hidden.clear()
    table.publish_all_resources(hides)
    assert len(take_all(table)) == 3
    table.unsubscribe("x:2")
    table.subscribe(DIALECTS[D], "x:3", senders[0])


def test_listen_undeclared_uris_do_not_count() -> None:
    table = subscription_table(E, NOTHING, uris=0, uri=0)
    listen(table, 1, ONE, TWO)


def test_listen_over_request_limit_raises() -> None:
    table = subscription_table(D, listens=2)
    listen(table, 1)
    listen(table, 2)
    with pytest.raises(LocalProtocolError, match="at most 2 subscriptions") as caught:
        listen(table, 3)
    assert (caught.value.fault, 3 in table) == (Fault.BUSY, False)
    table.cancel(1)
    listen(table, 3)


def test_subscriptions_default_limits() -> None:
    table = subscription_table(E)
    listen(table, 0, *(Change(uri=f"x:{n}".ljust(8192, "x")) for n in range(1024)))
    for id in range(1, 64):
        listen(table, id, *LISTS)
    for act in (
        lambda: listen(table, 64),
        lambda: table.subscribe(DIALECTS[D], "x:"),
        lambda: table.subscribe(DIALECTS[D], "x" * 8193),
    ):
        with pytest.raises(LocalProtocolError):
            act()


# -- Clients that do not read --------------------------------------------------------------------


def test_publish_repeated_changes_are_coalesced() -> None:
    table = subscription_table(E)
    listen(table, 1, *LISTS, ONE, TWO)
    for _ in range(1000):
        for change in (TWO, TOOLS, ONE, PROMPTS):
            table.publish(change)
    assert take_all(table) == [(1, change) for change in (TWO, TOOLS, ONE, PROMPTS)]


def test_change_of_all_resources_names_each_that_is_watched() -> None:
    """The session and each listen request get their own URIs, each once."""
    table = subscription_table(D)
    assert not table.publish_all_resources()
    table.subscribe(DIALECTS[D], "x:1")
    listen(table, 1, TOOLS, ONE, TWO)
    listen(table, 2, TOOLS)
    table.publish(TWO)
    assert table.publish_all_resources()
    assert sorted(take_all(table), key=str) == sorted([(None, ONE), (1, TWO), (1, ONE)], key=str)


def test_publish_after_notification_notifies_again() -> None:
    table = subscription_table(E)
    listen(table, 1, TOOLS, ONE)
    table.publish(TOOLS)
    table.publish(ONE)
    assert table.next_notification() is not None
    table.publish(TOOLS)
    assert take_all(table) == [(1, ONE), (1, TOOLS)]


def test_next_notification_serves_subscriptions_in_turn() -> None:
    table = subscription_table(D)
    listen(table, 1, *LISTS, ONE)
    listen(table, 2, TOOLS)
    for change in (TOOLS, PROMPTS, ONE):
        table.publish(change)
    assert take_all(table) == [
        (None, TOOLS),
        (1, TOOLS),
        (2, TOOLS),
        (None, PROMPTS),
        (1, PROMPTS),
        (1, ONE),
    ]


def test_next_notification_skips_subscription_without_capacity() -> None:
    table = subscription_table(E)
    listen(table, 1, *LISTS)
    listen(table, 2, *LISTS)
    for change in LISTS:
        table.publish(change)
    seen = []
    while (notice := table.next_notification(lambda id: id != 1)) is not None:
        seen.append((notice.related, change_of(notice)))
    assert seen == [(2, change) for change in LISTS]
    table.publish(TOOLS)
    assert table.next_notification(lambda id: False) is None
    assert take_all(table) == [(1, TOOLS), (2, TOOLS), (1, PROMPTS), (1, RESOURCES)]


IDS: Final = (None, 1, "1", 2)
CHANGES: Final = (TOOLS, PROMPTS, ONE, TWO, Change(uri="x:3"))
some_changes = st.lists(st.sampled_from(CHANGES), unique=True)
acts = st.one_of(
    st.tuples(st.just("subscribe"), st.sampled_from(CHANGES[2:])),
    st.tuples(st.just("unsubscribe"), st.sampled_from(CHANGES[2:])),
    st.tuples(st.just("listen"), st.sampled_from(IDS[1:]), some_changes),
    st.tuples(st.just("cancel"), st.sampled_from(IDS[1:])),
    st.tuples(st.just("publish"), st.sampled_from(CHANGES)),
    st.tuples(st.just("notify"), st.sets(st.sampled_from(IDS))),
    st.tuples(st.just("end")),
)


@given(st.lists(acts, max_size=60))
def test_subscriptions_any_order_send_each_change_after_it_happened(
    script: list[tuple[Any, ...]],
) -> None:
    """A model of what is owed: each change once per subscription, none without a change."""
    table = subscription_table(D, uris=5, listens=2)
    wanted: dict[RequestId | None, set[Change]] = {None: {*LISTS}}
    owed: set[tuple[RequestId | None, Change]] = set()  # published while subscribed, not sent since

    def forget(id: RequestId | None, gone: Iterable[Change]) -> None:
        owed.difference_update({(id, change) for change in gone})

    for act, *details in script:
        if act == "subscribe":
            try:
                table.subscribe(DIALECTS[D], details[0].uri)
            except LocalProtocolError:
                assert (
                    sum(change.uri is not None for those in wanted.values() for change in those)
                    == 5
                )
            else:
                wanted.setdefault(None, {*LISTS}).add(details[0])
        elif act == "unsubscribe":
            table.unsubscribe(details[0].uri)
            wanted.get(None, set()).discard(details[0])
            forget(None, [details[0]])
        elif act == "listen" and details[0] not in wanted:
            try:
                listen(table, details[0], *details[1])
            except LocalProtocolError:
                assert details[0] not in table
            else:
                wanted[details[0]] = set(details[1])
        elif act == "cancel":
            assert table.cancel(details[0]) is (details[0] in wanted)
            forget(details[0], wanted.pop(details[0], ()))
        elif act == "publish":
            interested = {(id, details[0]) for id, those in wanted.items() if details[0] in those}
            assert table.publish(details[0]) is bool(interested)
            owed |= interested
        elif act == "notify":
            notice = table.next_notification(details[0].__contains__)
            if notice is None:
                assert not any(id in details[0] for id, _ in owed)
            else:
                assert notice.related in details[0]
                owed.remove((notice.related, change_of(notice)))  # no notification without a change
        elif act == "end":
            rests = {
                (ended_request.id, change_of(notice))
                for ended_request in table.end_all()
                for notice in ended_request.remaining
            }
            assert rests == {(id, change) for id, change in owed if id is not None}
            wanted.clear()
            owed.clear()
    assert {id for id in IDS[1:] if id in table} == wanted.keys() - {None}
    assert sorted(map(repr, take_all(table))) == sorted(map(repr, owed))


# -- The publisher ---------------------------------------------------------------------------------


def asked_to_listen(id: RequestId, *wanted: Change) -> RequestReceived:
    row = next(each for each in METHODS if each.name == LISTEN)
    peer = Peer(DIALECTS[E], t.ClientCapabilities(extensions={"io.modelcontextprotocol/tasks": {}}))
    params = t.ListenParams(notifications=filter_of(*wanted))
    return RequestReceived(id, row, params, peer, b"{}")


def publisher_of(has_capacity: Any = None, **limits: Any) -> tuple[SubscriptionPublisher, Outbox]:
    outbox = Outbox()
    config = server_config(E, capabilities=TASKS, limits=Limits(**limits))
    return SubscriptionPublisher(config, outbox, has_capacity), outbox


def taken_of(outbox: Outbox) -> list[Message]:
    return [json.loads(each.data) for each in outbox.take_messages()]


def with_result(task_id: str, size: int) -> t.TaskStatusParams:
    """Return a state with a result of so many bytes."""
    return replace(status(task_id, "completed"), result=Raw(b'"%b"' % (b"x" * (size - 2))))


@pytest.mark.parametrize(
    ("sizes", "ended"),
    [
        ((2_000_000,), False),
        ((500_000, 500_000), False),
        ((500_000, 500_001), True),
        ((999_996, 2, 2), False),
        ((1_000_000, 2), True),
    ],
)
def test_listen_request_whose_results_are_not_read_is_ended(
    sizes: tuple[int, ...], ended: bool
) -> None:
    """One result may have any size, several have the limit of a message together."""
    publisher, outbox = publisher_of(message=1_000_000)
    tasks = [Change(task=str(number)) for number in range(len(sizes))]
    publisher.listen(asked_to_listen(7, *tasks), filter_of(*tasks), ending=False)
    taken_of(outbox)
    for task, size in zip(tasks, sizes, strict=True):
        assert publisher.publish(task, with_result(str(task.task), size))
    text = "the client does not read the states of its tasks; get them, then listen again"
    error = {"jsonrpc": "2.0", "id": 7, "error": {"code": 429, "message": text}}
    assert taken_of(outbox) == [error] * ended
    assert (7 in publisher.table) is not ended


def test_publisher_accepts_a_listen_request_with_its_filter() -> None:
    publisher, outbox = publisher_of()
    publisher.listen(asked_to_listen(7, TOOLS, MINE), filter_of(TOOLS, MINE), ending=False)
    notifications = {"toolsListChanged": True, "taskIds": ["mine"]}
    params = {"notifications": notifications, "_meta": {ID: 7}}
    assert taken_of(outbox) == [{"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params}]
    assert publisher.table.covers_task("mine")


@pytest.mark.parametrize(
    ("ending", "limits", "fault", "text"),
    [
        (True, {}, Fault.BUSY, "the server is being shut down"),
        (False, {"listens": 0}, Fault.BUSY, "at most 0 subscriptions at once; end one first"),
        (False, {"task_ids": 0}, Fault.BUSY, "at most 0 tasks can be watched at once"),
        (False, {"uri": 2}, Fault.INVALID_PARAMS, "a URI has at most 2 characters here"),
    ],
)
def test_publisher_rejects_a_listen_request_over_a_limit(
    ending: bool, limits: dict[str, Any], fault: Fault, text: str
) -> None:
    publisher, outbox = publisher_of(**limits)
    with pytest.raises(RequestRejected) as caught:
        publisher.listen(asked_to_listen(7), filter_of(ONE, MINE), ending=ending)
    assert (caught.value.fault, caught.value.message) == (fault, text)
    assert caught.value.dialect is DIALECTS[E]
    assert taken_of(outbox) == []
    assert 7 not in publisher.table


@pytest.mark.parametrize(("size", "is_sent"), [(16 * 1024 - 1, True), (16 * 1024, False)])
def test_changes_wait_while_16_kib_are_queued(size: int, is_sent: bool) -> None:
    publisher, outbox = publisher_of()
    publisher.listen(asked_to_listen(7, TOOLS), filter_of(TOOLS), ending=False)
    taken_of(outbox)
    publisher.publish(TOOLS)
    outbox.put(Outgoing(b"x" * (size - outbox.queued), MessageKind.NOTIFICATION))
    publisher.queue_notifications(ready=False)
    assert len(outbox.take_messages()) == 1 + is_sent
    publisher.queue_notifications(ready=False)
    assert len(outbox.take_messages()) == 1 - is_sent


def test_changes_wait_for_the_capacity_of_their_stream() -> None:
    full: set[RequestId | None] = {1}
    publisher, outbox = publisher_of(lambda id: id not in full)
    for id in (1, 2):
        publisher.listen(asked_to_listen(id, TOOLS), filter_of(TOOLS), ending=False)
    taken_of(outbox)
    publisher.publish(TOOLS)
    publisher.queue_notifications(ready=False)
    assert [each["params"]["_meta"][ID] for each in taken_of(outbox)] == [2]
    full.clear()
    publisher.queue_notifications(ready=False)
    assert [each["params"]["_meta"][ID] for each in taken_of(outbox)] == [1]
