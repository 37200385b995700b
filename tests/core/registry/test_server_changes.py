"""Notifications of a server: changes of its declarations, and changes that its author reports."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

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
