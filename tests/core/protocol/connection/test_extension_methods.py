"""Which methods of extensions may be sent, and which have callbacks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mcp_core import DIALECTS, LocalProtocolError, McpError, Role
from mcp_core import types as t
from mcp_core.protocol.connection._extension_methods import (
    check_extension_method,
    check_extension_request,
    client_methods,
)
from tests.harness.jsonrpc import D, E, server_config

OWN: dict[str, Any] = {"com.a/x": {}}
TASKS: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}}


def config(**capabilities: Any) -> Any:
    return server_config(capabilities=t.ServerCapabilities(**capabilities))


def peer(version: str = D, **capabilities: Any) -> Any:
    declared = t.ClientCapabilities(**capabilities)
    return SimpleNamespace(dialect=DIALECTS[version], capabilities=declared)


@pytest.mark.parametrize("capabilities", [{"extensions": OWN}, {"experimental": OWN}])
def test_method_of_a_declared_extension_may_be_sent(capabilities: Any) -> None:
    check_extension_method("a/b", config(**capabilities))
    check_extension_request("a/b", peer(**capabilities), config(extensions=OWN))


@pytest.mark.parametrize(
    ("method", "capabilities", "words"),
    [
        ("tools/call", {"extensions": OWN}, "tools/call is a method of MCP, which has a function"),
        ("a/b", {}, "a/b isn't a method of MCP: declare the extension that has it"),
        ("a/b", {"extensions": TASKS}, "a/b isn't a method of MCP: declare the extension"),
    ],
)
def test_other_method_may_not_be_sent(method: str, capabilities: Any, words: str) -> None:
    with pytest.raises(LocalProtocolError, match=words):
        check_extension_method(method, config(**capabilities))
    with pytest.raises(LocalProtocolError, match=words):
        check_extension_request(method, peer(extensions=OWN), config(**capabilities))


def test_server_sends_no_request_in_a_revision_without_requests_of_servers() -> None:
    with pytest.raises(LocalProtocolError, match=f"sends no requests in revision {E}, so a/b"):
        check_extension_request("a/b", peer(E, extensions=OWN), config(extensions=OWN))


@pytest.mark.parametrize("extensions", [None, {"com.a/y": {}}, TASKS])
def test_server_sends_no_request_to_a_client_without_its_extension(extensions: Any) -> None:
    both = {**OWN, **TASKS, "com.a/w": {}}
    with pytest.raises(McpError, match=r"a/b needs a client that declares com\.a/w or com\.a/x"):
        check_extension_request("a/b", peer(extensions=extensions), config(extensions=both))


def test_methods_with_callbacks_are_those_of_a_client() -> None:
    """A request has a result, and a notification has none."""
    rows = client_methods(["a/b"], ["a/c", "a/d"], ["com.a/x"])
    assert [(row.name, row.to, row.result) for row in rows] == [
        ("a/b", Role.CLIENT, t.Result),
        ("a/c", Role.CLIENT, None),
        ("a/d", Role.CLIENT, None),
    ]
    assert client_methods([], [], []) == []


@pytest.mark.parametrize(
    ("requests", "notifications", "extensions", "words"),
    [
        ([""], [], ["com.a/x"], "have no method with an empty name"),
        ([], ["ping"], ["com.a/x"], "ping is a method of MCP: on_request and on_notification"),
        (["a/b"], ["a/b"], ["com.a/x"], "a/b has a callback in on_request and one in"),
        (["a/b"], [], [], "a/b isn't a method of MCP: declare the extension"),
    ],
)
def test_methods_without_a_place_are_refused(
    requests: list[str], notifications: list[str], extensions: list[str], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        client_methods(requests, notifications, extensions)
