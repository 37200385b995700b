"""`AbstractClient.listen`, step by step: the test is the server, and resumes each wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import (
    Change,
    ConnectionLost,
    Fault,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
)
from tests.core.runtime.test_client import LONG, PlayedClient, opened, params, run_call, value
from tests.harness.jsonrpc import (
    VERSIONS,
    D,
    E,
    Message,
    error,
    notification,
    result,
    single,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core import McpTrioError
    from mcp_core.runtime import Changes

ID = "io.modelcontextprotocol/subscriptionId"
ALL_OFFERS: Message = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
TOOLS, ONE, TWO = Change("tools"), Change(uri="x:1"), Change(uri="x:2")


def acknowledged(id: Any, **honoured: Any) -> Message:
    return notification(
        "notifications/subscriptions/acknowledged", {"notifications": honoured, "_meta": {ID: id}}
    )


def tools_changed(id: Any = None) -> Message:
    return notification("notifications/tools/list_changed", {"_meta": {ID: id}} if id else {})


def updated(uri: str, id: Any = None) -> Message:
    return notification(
        "notifications/resources/updated", {"uri": uri} | ({"_meta": {ID: id}} if id else {})
    )


class Waits:
    """The task of an awaitable. `wakes` resumes it."""

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self._steps = awaitable.__await__() if hasattr(awaitable, "__await__") else awaitable
        self.value: Any = None
        self.done = False
        self.wakes()

    def wakes(self) -> Any:
        try:
            self._steps.send(None)  # type: ignore[union-attr]
        except StopIteration as end:
            self.done, self.value = True, end.value
        return self.value

    def is_cancelled(self) -> None:
        with pytest.raises(InterruptedError):
            self._steps.throw(InterruptedError())  # type: ignore[union-attr]


def listening(version: str = E, **wishes: Any) -> tuple[PlayedClient, Any, Changes]:
    """Return a client, its open subscription, and the changes."""
    client = opened(version, ALL_OFFERS)
    block = client.listen(**(wishes or {"tools": True, "uris": ["x:1"]}))
    entering = Waits(block.__aenter__())
    for sent in client.harness.take_sent():
        if version == E:
            assert sent["method"] == "subscriptions/listen"
            client.receive_messages(acknowledged(sent["id"], **sent["params"]["notifications"]))
        else:
            client.receive_messages(result(sent["id"]))
    return client, block, entering.value if entering.done else entering.wakes()


@pytest.mark.parametrize("version", [D, E])
def test_subscription_gives_changes_until_block_ends(version: str) -> None:
    """Leaving the block tells the server so; a change that still arrives is ignored."""
    client, block, changes = listening(version)
    assert changes.honoured == (TOOLS, ONE)
    id = 2 if version == E else None
    client.receive_messages(tools_changed(id))
    assert Waits(changes.__anext__()).value == TOOLS
    waits = Waits(changes.__anext__())
    assert not waits.done
    client.receive_messages(updated("x:1", id))
    assert waits.wakes() == ONE
    assert Waits(block.__aexit__(None, None, None)).done
    sent = single(client.harness.take_sent())
    if version == E:
        assert (sent["method"], sent["params"]["requestId"]) == ("notifications/cancelled", id)
    else:
        assert (sent["method"], sent["params"]) == ("resources/unsubscribe", {"uri": "x:1"})
        client.receive_messages(result(sent["id"]))
    client.receive_messages(tools_changed(id))
    with pytest.raises(StopAsyncIteration):
        Waits(changes.__anext__())


@pytest.mark.parametrize(
    ("wishes", "request_sent"),
    [
        ({"tools": True}, {"toolsListChanged": True}),
        (
            {"prompts": True, "resources": True},
            {"promptsListChanged": True, "resourcesListChanged": True},
        ),
        ({"resources": ["x:1"]}, {"resourceSubscriptions": ["x:1"]}),
        (
            {"resources": ("x:1",), "uris": iter(["x:2", "x:1"])},
            {"resourceSubscriptions": ["x:1", "x:2"]},
        ),
        (
            {"resources": True, "uris": ["x:1"]},
            {"resourcesListChanged": True, "resourceSubscriptions": ["x:1"]},
        ),
    ],
)
def test_listen_arguments_become_filter(wishes: Any, request_sent: Message) -> None:
    client = opened(E, ALL_OFFERS)
    entering = Waits(client.listen(**wishes).__aenter__())
    sent = single(client.harness.take_sent())
    assert (sent["method"], params(sent)) == (
        "subscriptions/listen",
        {"notifications": request_sent},
    )
    entering.is_cancelled()


@pytest.mark.parametrize(
    ("wishes", "raised", "words"),
    [
        ({}, ValueError, "name a list"),
        ({"resources": []}, ValueError, "name a list"),
        ({"resources": "x:1"}, TypeError, "as a list"),
        ({"uris": "x:1"}, TypeError, "as a list"),
    ],
)
def test_listen_arguments_invalid_raise(wishes: Any, raised: type[Exception], words: str) -> None:
    client = opened(E, ALL_OFFERS)
    with pytest.raises(raised, match=words):
        client.listen(**wishes)


@pytest.mark.parametrize("version", [D, E])
def test_subscription_refused_raises(version: str) -> None:
    client = opened(version, ALL_OFFERS)
    entering = Waits(client.listen(uris=["x:1"]).__aenter__())
    client.receive_messages(
        error(single(client.harness.take_sent())["id"], -32602, "no such thing")
    )
    with pytest.raises(PeerError, match="no such thing"):
        entering.wakes()
    assert client.harness.take_sent() == []


def test_subscription_honouring_nothing_raises() -> None:
    client = opened(E, ALL_OFFERS)
    entering = Waits(client.listen(tools=True).__aenter__())
    client.receive_messages(acknowledged(single(client.harness.take_sent())["id"]))
    with pytest.raises(LocalProtocolError, match=r"announces no changes .* accepted none"):
        entering.wakes()
    assert single(client.harness.take_sent())["method"] == "notifications/cancelled"


@pytest.mark.parametrize("version", VERSIONS)
def test_subscription_to_undeclared_changes_raises_without_request(version: str) -> None:
    client = opened(version, {"tools": {}})
    with pytest.raises(LocalProtocolError, match=r"it did not declare tools\.listChanged$"):
        Waits(client.listen(tools=True).__aenter__())
    assert client.harness.take_sent() == []


@pytest.mark.parametrize("version", [D, E])
def test_subscription_cancelled_during_opening_is_closed(version: str) -> None:
    client = opened(version, ALL_OFFERS)
    entering = Waits(client.listen(tools=True, uris=["x:1"]).__aenter__())
    assert not entering.done
    sent = single(client.harness.take_sent())
    entering.is_cancelled()
    if version == E:
        assert single(client.harness.take_sent())["params"]["requestId"] == sent["id"]
    else:
        client.receive_messages(result(sent["id"]))
        undone = single(client.harness.take_sent())
        assert undone["method"] == "resources/unsubscribe"
        client.receive_messages(result(undone["id"]))
    assert "0 watches" in repr(client._subscriptions)


def test_change_before_acknowledgement_does_not_open_subscription() -> None:
    client = opened(E, ALL_OFFERS)
    entering = Waits(client.listen(tools=True).__aenter__())
    sent = single(client.harness.take_sent())
    client.receive_messages(tools_changed(sent["id"]))
    entering.wakes()
    assert not entering.done
    client.receive_messages(acknowledged(sent["id"], toolsListChanged=True))
    assert Waits(entering.wakes().__anext__()).value == TOOLS


def test_listen_uri_not_encodable_raises() -> None:
    client = opened(D, ALL_OFFERS)
    with pytest.raises(LocalProtocolError, match="surrogate pair"):
        Waits(client.listen(uris=["x:\ud800"]).__aenter__())
    with pytest.raises(LocalProtocolError, match="surrogate pair"):
        value(client, client.read_resource("x:\ud800"))
    modern = opened(E, ALL_OFFERS)
    with pytest.raises(LocalProtocolError, match="surrogate pair"):
        value(modern, modern.read_resource("x:\ud800"))
    assert (client.harness.take_sent(), modern.harness.take_sent()) == ([], [])


def test_subscription_entered_twice_raises() -> None:
    client = opened(E, ALL_OFFERS)
    block = client.listen(tools=True)
    assert repr(block) == "<Subscription not entered>"
    entering = Waits(block.__aenter__())
    assert repr(block) == "<Subscription <ClientSubscription to 0 of 1, being opened, 0 changed>>"
    with pytest.raises(RuntimeError, match="for one block"):
        Waits(block.__aenter__())
    entering.is_cancelled()


def test_next_change_cancelled_loses_no_change() -> None:
    client, _, changes = listening()
    waits = Waits(changes.__anext__())
    client.receive_messages(tools_changed(2))  # it is woken, and before it runs
    waits.is_cancelled()
    assert Waits(changes.__anext__()).value == TOOLS
    waits = Waits(changes.__anext__())
    waits.is_cancelled()
    client.receive_messages(updated("x:1", 2))
    assert Waits(changes.__anext__()).value == ONE
    assert repr(changes) == "<Changes of <ClientSubscription to 2 of 2, open, 0 changed>>"


def test_waits_for_changes_leave_nothing_behind() -> None:
    """A loop waits thousands of times in one block."""
    client, _, changes = listening()
    for _ in range(3):
        waits = Waits(changes.__anext__())
        client.receive_messages(tools_changed(2))
        assert waits.wakes() == TOOLS
    assert not changes._waiting


def test_two_loops_share_changes() -> None:
    client, _, changes = listening()
    assert aiter(changes) is changes
    first, second = Waits(changes.__anext__()), Waits(changes.__anext__())
    client.receive_messages(tools_changed(2))
    assert (first.wakes(), second.wakes()) == (TOOLS, None)
    assert not second.done
    client.receive_messages(updated("x:1", 2))
    assert second.wakes() == ONE


def test_several_subscriptions_at_once() -> None:
    client, _, first = listening(tools=True)
    entering = Waits(client.listen(uris=["x:1"]).__aenter__())
    sent = single(client.harness.take_sent())
    client.receive_messages(acknowledged(sent["id"], resourceSubscriptions=["x:1"]))
    second = entering.wakes()
    client.receive_messages(updated("x:1", sent["id"]), tools_changed(2))
    assert Waits(first.__anext__()).value == TOOLS
    assert Waits(second.__anext__()).value == ONE


@pytest.mark.requirement("SUB-8")
def test_server_ending_subscription_ends_loop() -> None:
    client, block, changes = listening()
    waits = Waits(changes.__anext__())
    client.receive_messages(result(2, {"resultType": "complete", "_meta": {ID: 2}}))
    with pytest.raises(StopAsyncIteration):
        waits.wakes()
    Waits(block.__aexit__(None, None, None))
    assert client.harness.take_sent() == []


@pytest.mark.requirement("SUB-13")
@pytest.mark.parametrize("version", [D, E])
def test_connection_closed_raises_in_loop(version: str) -> None:
    client, block, changes = listening(version)
    waits = Waits(changes.__anext__())
    client.receive_messages(tools_changed(2 if version == E else None))
    client._conn.close(ConnectionLost("the connection broke"))
    client.receive_messages()
    assert waits.wakes() == TOOLS
    with pytest.raises(ConnectionLost, match="the connection broke"):
        Waits(changes.__anext__())
    Waits(block.__aexit__(None, None, None))
    with pytest.raises(ConnectionLost):
        Waits(client.listen(tools=True).__aenter__())


def test_server_ending_subscription_with_error_raises_in_loop() -> None:
    client, _, changes = listening()
    waits = Waits(changes.__anext__())
    client.receive_messages(error(2, -32000, "too much to do"))
    with pytest.raises(PeerError, match="too much to do"):
        waits.wakes()


@pytest.mark.requirement("CACHE-10")
def test_listed_changes_invalidate_cache() -> None:
    """An update of an unlisted URI may concern part of any resource, so all contents go."""
    client, _, _ = listening(tools=True, uris=["x:1"])
    contents: Message = {"contents": [], "ttlMs": LONG}
    tools: Message = {"tools": [], "ttlMs": LONG}

    def read_all(**sent: int) -> None:
        for name, call, answer in (
            ("one", client.read_resource("x:1"), contents),
            ("two", client.read_resource("x:2"), contents),
            ("tools", client.list_tools(), tools),
        ):
            assert len(run_call(client, call, *[answer] * sent.get(name, 0))[1]) == sent.get(
                name, 0
            )

    read_all(one=1, two=1, tools=1)
    read_all()
    client.receive_messages(updated("x:1", 2))
    read_all(one=1)
    client.receive_messages(updated("x:1/part", 2))  # which may be a part of any
    read_all(one=1, two=1)
    client.receive_messages(tools_changed(2))
    read_all(tools=1)


@pytest.mark.requirement("LIFE-22")
def test_subscription_opening_has_timeout() -> None:
    client = opened(E, ALL_OFFERS)
    begun: list[Any] = []
    original = client._call

    def call(steps: Any, options: Any) -> Any:
        begun.append(options)
        return original(steps, options)

    client._call = call  # type: ignore[method-assign]
    for timeout in 60.0, None:
        block = client.listen(tools=True) if timeout else client.listen(tools=True, timeout=None)
        Waits(block.__aenter__()).is_cancelled()
    assert begun == [{"timeout": 60.0}, {"timeout": None}]


# -- Lost subscriptions on an open connection ------------------------------------------------------


def loses(client: PlayedClient, error: McpTrioError) -> None:
    """End the request of the subscription without a response of the server."""
    (id,) = client._conn._outgoing.table
    client._conn.receive_failure(id, error, client.now)
    client.receive_messages()


def busy() -> RemoteProtocolError:
    return RemoteProtocolError("HTTP status 503", Fault.BUSY)


@pytest.mark.parametrize("make", [lambda: ConnectionLost("the stream broke"), busy])
def test_lost_subscription_is_reopened(make: Callable[[], McpTrioError]) -> None:
    """Changes may have been missed meanwhile, so the new stream begins with one of each kind."""
    client, block, changes = listening()
    waits = Waits(changes.__anext__())
    loses(client, make())
    assert waits.wakes() is None
    assert client.harness.take_sent() == []
    assert client.works() == [1.0]
    sent = single(client.harness.take_sent())
    assert sent["method"] == "subscriptions/listen"
    client.receive_messages(tools_changed(2))  # of the stream that was lost
    assert waits.wakes() is None
    client.receive_messages(acknowledged(sent["id"], **sent["params"]["notifications"]))
    # Any change may have been missed.
    assert (waits.wakes(), Waits(changes.__anext__()).value) == (TOOLS, ONE)
    client.receive_messages(tools_changed(sent["id"]))
    assert Waits(changes.__anext__()).value == TOOLS
    Waits(block.__aexit__(None, None, None))
    assert single(client.harness.take_sent())["params"]["requestId"] == sent["id"]


def test_lost_subscription_after_max_attempts_raises() -> None:
    client, _, changes = listening()
    waits = Waits(changes.__anext__())
    slept = []
    for _ in range(5):
        loses(client, ConnectionLost("no way"))
        slept += client.works()
        assert single(client.harness.take_sent())["method"] == "subscriptions/listen"
    assert slept == [1, 2, 4, 8, 16]
    loses(client, ConnectionLost("no way"))
    assert client.works() == []
    with pytest.raises(ConnectionLost, match="no way"):
        waits.wakes()


def test_reopened_subscription_resets_attempts() -> None:
    client, _, _ = listening()
    for _ in range(12):
        loses(client, ConnectionLost("now and then"))
        assert client.works() == [1]
        sent = single(client.harness.take_sent())
        client.receive_messages(acknowledged(sent["id"], **sent["params"]["notifications"]))


@pytest.mark.parametrize("error", [PeerError(-1, "no"), RemoteProtocolError("no")])
def test_subscription_ending_with_other_error_is_not_reopened(error: McpTrioError) -> None:
    client, _, changes = listening()
    loses(client, error)
    assert client.works() == []
    with pytest.raises(type(error), match="no"):
        Waits(changes.__anext__())


def test_subscription_lost_before_open_is_not_reopened() -> None:
    client = opened(E, ALL_OFFERS)
    entering = Waits(client.listen(tools=True).__aenter__())
    client.harness.take_sent()
    loses(client, ConnectionLost("the stream broke"))
    with pytest.raises(ConnectionLost, match="the stream broke"):
        entering.wakes()
    assert client.works() == []


def test_subscription_closed_before_reopening_stays_closed() -> None:
    client, block, _ = listening()
    loses(client, ConnectionLost("the stream broke"))
    Waits(block.__aexit__(None, None, None))
    assert client.works() == [1.0]
    assert client.harness.take_sent() == []


def test_connection_closed_before_reopening_raises() -> None:
    client, _, changes = listening()
    loses(client, ConnectionLost("the stream broke"))
    client._conn.close(ConnectionLost("all is over"))
    client.receive_messages()
    assert client.works() == [1.0]
    with pytest.raises(ConnectionLost, match="all is over"):
        Waits(changes.__anext__())


def test_reopened_subscription_not_honoured_raises() -> None:
    client, _, changes = listening()
    loses(client, ConnectionLost("the stream broke"))
    client.works()
    client.receive_messages(acknowledged(single(client.harness.take_sent())["id"]))
    with pytest.raises(LocalProtocolError, match="announces no changes"):
        Waits(changes.__anext__())


def test_new_session_reopens_subscriptions() -> None:
    """The new session knows no subscriptions, and changes may have been missed in between."""
    client, block, changes = listening(D)
    client._conn.reinitialize(client.now)
    handshake = single(client.harness.take_sent())
    assert handshake["method"] == "initialize"
    offers = {
        "protocolVersion": D,
        "capabilities": ALL_OFFERS,
        "serverInfo": {"name": "s", "version": "2"},
    }
    client.receive_messages(result(handshake["id"], offers))
    initialized, subscribe = client.harness.take_sent()
    assert initialized["method"] == "notifications/initialized"
    assert (subscribe["method"], subscribe["params"]) == ("resources/subscribe", {"uri": "x:1"})
    client.receive_messages(result(subscribe["id"]))
    assert changes.honoured == (TOOLS, ONE)
    assert (Waits(changes.__anext__()).value, Waits(changes.__anext__()).value) == (TOOLS, ONE)
    client.receive_messages(tools_changed())
    assert Waits(changes.__anext__()).value == TOOLS
    Waits(block.__aexit__(None, None, None))
    assert single(client.harness.take_sent())["method"] == "resources/unsubscribe"
