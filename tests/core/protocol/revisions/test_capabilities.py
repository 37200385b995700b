"""Capability paths: what is declared, which methods they allow, and their form in errors."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mcp_core import DIALECTS, Role
from mcp_core import types as t
from mcp_core.protocol.revisions._capabilities import (
    capability_object,
    is_declared,
    supported_methods,
    with_tasks,
)
from tests.harness.jsonrpc import STATEFUL, D, E

CLIENT = t.ClientCapabilities
SERVER = t.ServerCapabilities


@pytest.mark.requirement("CAP-9")
@pytest.mark.parametrize(
    ("declared", "path", "holds"),
    [
        ("{}", "", True),
        ("{}", "tools", False),
        ('{"tools":{}}', "tools", True),
        ('{"tools":null}', "tools", False),
        ('{"tools":{}}', "tools.list_changed", False),
        ('{"tools":{"listChanged":false}}', "tools.list_changed", False),
        ('{"tools":{"listChanged":true}}', "tools.list_changed", True),
        ('{"resources":{"listChanged":true}}', "resources.subscribe", False),
        ('{"logging":{}}', "logging", True),
        ('{"logging":{"of":"the future"}}', "logging", True),
        ('{"tools":{"unknown":1},"unheardOf":{}}', "tools", True),
        ('{"tasks":{"list":{}}}', "tasks.list", True),
        ('{"tasks":{"list":{}}}', "tasks.cancel", False),
        ('{"extensions":{"io.modelcontextprotocol/tasks":{}}}', "extensions.io/x", False),
        ('{"experimental":{"x":{"y":{"z":0}}}}', "experimental.x.y.z", True),
        ('{"experimental":{"x":{"y":{"z":0}}}}', "experimental.x.y.a", False),
        ('{"experimental":{"x":1}}', "experimental.x.y", False),
    ],
)
def test_capability_path_declared_if_present_and_not_false(
    declared: str, path: str, holds: bool
) -> None:
    capabilities = msgspec.json.decode(declared, type=SERVER)
    assert is_declared(capabilities, [name for name in path.split(".") if name]) is holds


def test_capability_of_unknown_peer_not_declared() -> None:
    assert is_declared(None, ())
    assert not is_declared(None, ("tools",))


def test_capability_extension_found_by_identifier() -> None:
    path = ("extensions", "io.modelcontextprotocol/tasks")
    assert is_declared(CLIENT(extensions={path[1]: {}}), path)
    assert not is_declared(CLIENT(extensions={}), path)


@pytest.mark.parametrize(
    ("version", "declared", "there", "missing"),
    [
        (
            D,
            SERVER(),
            {"ping", "initialize", "notifications/cancelled"},
            {"tools/call", "logging/setLevel"},
        ),
        (
            D,
            SERVER(tools=t.ToolsCapability()),
            {"tools/call", "tools/list"},
            {"prompts/get", "tasks/get"},
        ),
        (D, SERVER(resources=t.ResourcesCapability()), {"resources/read"}, {"resources/subscribe"}),
        (E, SERVER(), {"server/discover", "subscriptions/listen"}, {"tools/call", "tasks/get"}),
        (
            E,
            SERVER(extensions={"io.modelcontextprotocol/tasks": {}}),
            {"tasks/get", "tasks/update"},
            set(),
        ),
    ],
)
def test_undeclared_capability_removes_its_requests(
    version: str, declared: t.ServerCapabilities, there: set[str], missing: set[str]
) -> None:
    rows = DIALECTS[version].receives[Role.SERVER]
    found = supported_methods(rows, declared).keys()
    assert there <= found
    assert not missing & found
    # Notifications are received with any capabilities.
    assert {name for name, row in rows.items() if row.result is None} <= found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), {}),
        (("sampling",), {"sampling": {}}),
        (("resources", "subscribe"), {"resources": {"subscribe": {}}}),
        (("tools", "list_changed"), {"tools": {"listChanged": {}}}),
        (("extensions", "com.a/my_own"), {"extensions": {"com.a/my_own": {}}}),
    ],
)
def test_missing_capability_becomes_json_object(
    path: tuple[str, ...], value: dict[str, Any]
) -> None:
    assert capability_object(path) == value


# -- Tasks -----------------------------------------------------------------------------------------

EXTENSION = "io.modelcontextprotocol/tasks"


@pytest.mark.requirement("TX-1", "TX-22", "CAP-8")
@pytest.mark.parametrize("may_list", [True, False])
def test_with_tasks_each_revision_declares_its_own_form(may_list: bool) -> None:
    """2025-11-25 has a capability, 2026-07-28 an extension, and the earlier ones have no tasks."""
    others = {"com.example/x": {"a": 1}}
    capabilities = SERVER(tools=t.ToolsCapability(), extensions=others, experimental=others)
    found = with_tasks(capabilities, may_list=may_list)
    sent = {
        version: json.loads(dialect.encode(found)) | {"tools": {}}
        for version, dialect in DIALECTS.items()
    }
    plain: Any = {"tools": {}, "experimental": others}
    tasks: Any = {"cancel": {}, "requests": {"tools": {"call": {}}}} | (
        {"list": {}} if may_list else {}
    )
    assert sent.pop(E) == plain | {"extensions": others | {EXTENSION: {}}}
    assert sent.pop(D) == plain | {"tasks": tasks}
    assert all(value == plain for value in sent.values())
    assert capabilities.extensions == others  # the server's own dict is not changed


@pytest.mark.requirement("TX-1")
@pytest.mark.parametrize("version", STATEFUL)
def test_extension_for_tasks_enables_nothing_with_a_handshake(version: str) -> None:
    rows = DIALECTS[version].receives[Role.SERVER]
    capabilities = SERVER(extensions={EXTENSION: {}}, experimental={EXTENSION: {}})
    assert not [name for name in supported_methods(rows, capabilities) if name[:6] == "tasks/"]
