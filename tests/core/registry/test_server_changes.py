"""Notifications of a server: changes of its declarations, and changes that its author reports."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from mcp_core.protocol.subscriptions._server import changes
from mcp_core.registry import Server
from tests.core.runtime.test_service import Conversation

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def build() -> Server:
    server = Server("s")
    server.add_tool(lambda: "x", name="t", description="Do.", input_schema={"type": "object"})
    server.add_prompt(lambda: "x", name="p")
    server.add_resource("x:1", lambda: "x", name="r")
    return server


def listening(server: Server, **wanted: Any) -> Conversation:
    """Return a connection that is subscribed to `wanted`, to everything by default."""
    harness = Conversation(server)
    wish = wanted or {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["x:1", "x:2"],
    }
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "subscriptions/listen",
        "params": {"notifications": wish, "_meta": META},
    }
    harness.feed(json.dumps(message).encode() + b"\n")
    (acknowledged,) = harness.sent()
    assert acknowledged["params"]["notifications"] == wish
    return harness


def notified(harness: Conversation) -> list[Any]:
    return [message["params"].get("uri", message["method"]) for message in harness.sent()]


@pytest.mark.parametrize("what", ["tools", "prompts", "resources"])
def test_changed_list_notifies_subscribed_clients(what: str) -> None:
    harness = listening(server := build())
    server.changed(tools=what == "tools", prompts=what == "prompts", resources=what == "resources")
    assert notified(harness) == [f"notifications/{what}/list_changed"]


def test_changed_resource_notifies_its_subscribers() -> None:
    harness = listening(server := build())
    server.changed(resource="x:1")
    assert notified(harness) == ["x:1"]
    server.changed(resource=["x:2", "x:3"], tools=True)
    assert sorted(notified(harness)) == ["notifications/tools/list_changed", "x:2"]


@pytest.mark.requirement("TOOL-23", "RES-14", "PRM-5")
def test_declaration_while_serving_notifies_clients() -> None:
    harness = listening(server := build())
    server.add_tool(lambda: "x", name="t2", description="Do.", input_schema={"type": "object"})
    assert notified(harness) == ["notifications/tools/list_changed"]
    server.remove_tool("t2")
    assert notified(harness) == ["notifications/tools/list_changed"]
    server.add_resource("x:{n}", lambda n: n, name="r2")
    assert notified(harness) == ["notifications/resources/list_changed"]
    server.remove_resource("x:1")
    assert notified(harness) == ["notifications/resources/list_changed"]
    server.remove_prompt("p")
    assert notified(harness) == ["notifications/prompts/list_changed"]
    server.method("acme/x")(lambda: None)
    assert notified(harness) == []


def test_changed_notifies_only_attached_subscribers() -> None:
    server = build()
    tools, prompts = (
        listening(server, toolsListChanged=True),
        listening(server, promptsListChanged=True),
    )
    server.changed(tools=True, prompts=True)
    assert (notified(tools), notified(prompts)) == (
        ["notifications/tools/list_changed"],
        ["notifications/prompts/list_changed"],
    )
    tools.service.close()
    tools.service.close()
    server.changed(tools=True)
    assert notified(tools) == []


def test_changed_without_a_change_raises() -> None:
    with pytest.raises(ValueError, match="name a list or a resource"):
        build().changed()


@pytest.mark.parametrize("resource", [Path("/a"), [Path("/a")], ["x:1", Path("/a")], 5, [None]])
def test_changed_with_a_resource_that_is_no_string_raises_at_the_caller(resource: Any) -> None:
    """And not in the task that notifies. A list in which one is wrong changes nothing."""
    server = build()
    harness = listening(server)
    with pytest.raises(TypeError, match=r"^a URI is a string, not (\w*Path: pass path|int|None)"):
        server.changed(resource=resource)
    assert notified(harness) == []


def test_changed_from_many_threads_loses_no_change() -> None:
    """800 calls from four threads become one notification for each list and resource."""
    server = build()
    harness = listening(server)
    soon: list[Any] = []
    harness.runtime.call_soon = soon.append  # type: ignore[assignment,method-assign]

    def change() -> None:
        for _ in range(200):
            server.changed(resource=["x:1", "x:2"], tools=True)

    threads = [threading.Thread(target=change) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for function in soon:
        function()
    assert sorted(notified(harness)) == ["notifications/tools/list_changed", "x:1", "x:2"]


class RecordingListener:
    """A client that records what it is notified of."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def changed(self, changes: Any, /, *, all_resources: bool = False) -> None:
        self.seen.append([*changes, all_resources])

    def elicitation_completed(self, elicitation_id: str, /) -> None:
        self.seen.append(elicitation_id)


class RecordingBus(RecordingListener):
    """A bus to other workers. `takes`: it notifies the clients of this worker itself."""

    def __init__(self, store: object, *, has_joined: bool = False, takes: bool = False) -> None:
        super().__init__()
        self.store = store
        self.has_joined = has_joined
        self.takes = takes

    def changed(self, changes: Any, /, *, all_resources: bool = False) -> Any:
        super().changed(changes, all_resources=all_resources)
        return self.takes


@pytest.mark.parametrize("takes", [False, True])
def test_bus_gets_changes_before_clients_do(takes: bool) -> None:
    """Only the first bus gets them; it may take over to notify the clients of this worker."""
    server, outer = build(), Server("o")
    client, outer_client = RecordingListener(), RecordingListener()
    outer.mount(server, "m")
    store = object()
    buses = [RecordingBus(store, takes=takes), RecordingBus(store)]
    server.attach(client)
    outer.attach(outer_client)
    for bus in buses:
        server.attach_bus(bus)
    server.changed(tools=True)
    server.elicitation_complete("e")
    changed = [changes(tools=True)[0], False]
    assert buses[0].seen == [changed, "e"]
    assert buses[1].seen == []
    assert client.seen == (["e"] if takes else [changed, "e"])
    assert outer_client.seen == [changed, "e"]
    for listener, attached in (client, server), (outer_client, outer):
        attached.detach(listener)
        attached.detach(listener)  # which does nothing
    server.detach_bus(buses[0])
    server.detach_bus(buses[0])
    server.elicitation_complete("f")
    assert (buses[0].seen[-1], buses[1].seen, client.seen[-1]) == ("e", ["f"], "e")


def test_bus_that_has_joined_is_first_and_has_the_same_store() -> None:
    server, store = build(), object()
    early, joined, again = (RecordingBus(store, has_joined=each) for each in (False, True, True))
    assert not server.is_first_bus(early)
    for bus in early, joined, again:
        server.attach_bus(bus)
    assert [server.is_first_bus(bus) for bus in (early, joined, again)] == [False, True, False]
    server.attach_bus(joined)  # again: it is the last one then
    assert [server.is_first_bus(bus) for bus in (early, joined, again)] == [False, False, True]
    with pytest.raises(ValueError, match="server 's' is served with another store already"):
        server.attach_bus(RecordingBus(object()))
    for bus in early, joined, again:
        server.detach_bus(bus)
    server.attach_bus(RecordingBus(object()))


def test_changes_of_another_worker_are_delivered_to_clients_only() -> None:
    """Clients of an outer server hear of them too, and the bus doesn't: they came from it."""
    server, outer = build(), Server("o")
    outer.mount(server, "m")
    clients = RecordingListener(), RecordingListener()
    bus = RecordingBus(object())
    server.attach(clients[0])
    outer.attach(clients[1])
    server.attach_bus(bus)
    tools = changes(tools=True)
    server.deliver_changes(tools)
    server.deliver_changes((), all_resources=True)
    server.deliver_changes((), elicitation_ids=["e", "f"])
    server.deliver_changes(())
    for client in clients:
        assert client.seen == [[*tools, False], [True], "e", "f"]
    assert bus.seen == []
