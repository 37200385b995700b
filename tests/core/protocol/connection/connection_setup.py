"""Setup for the tests of `Connection`, which are in five files `test_connection*.py`."""

from __future__ import annotations

from typing import Any, Final

from mcp_core import Connection, Role
from mcp_core import types as t
from mcp_core.protocol.subscriptions._server import Change
from tests.harness.jsonrpc import (
    VERSIONS,
    D,
    E,
    Message,
    client_config,
    notification,
    result,
    server_config,
    single,
    stateless_request,
)
from tests.harness.wire.connection import ConnectionHarness, opened, server

SERVER: Final = Role.SERVER
CLIENT: Final = Role.CLIENT
EMPTY: Final = t.EmptyResult()
ERROR: Final = t.ErrorData(code=-32000, message="no")
# The code of a request that is rejected as busy.
BUSY_CODES: Final = {version: 429 if version == E else -32000 for version in VERSIONS}

INITIALIZE_RESULT: Final[Message] = {
    "protocolVersion": D,
    "capabilities": {},
    "serverInfo": {"name": "s", "version": "1"},
}
DISCOVER_RESULT: Final[Message] = {"supportedVersions": [E], "capabilities": {}}

TOOLS: Final = Change("tools")
PROMPTS: Final = Change("prompts")
RESOURCES: Final = Change("resources")
RESOURCE: Final = Change(uri="x:1")
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"


class NotJson:
    """A value that cannot be encoded as JSON."""


def opening_client(*versions: str, **options: Any) -> tuple[ConnectionHarness, Message]:
    """Return a client that opened its connection at time 100, and its first request."""
    harness = ConnectionHarness(Connection(CLIENT, client_config(*versions, **options)))
    harness.now = 100.0
    harness.conn.open(harness.now)
    return harness, single(harness.take_sent())


def initialize_response(harness: ConnectionHarness, version: str) -> Message:
    """Return the response to the `initialize` that the client has just sent."""
    request = single(harness.take_sent())
    assert request["method"] == "initialize"
    value = {
        "protocolVersion": version,
        "capabilities": {},
        "serverInfo": {"name": "s", "version": "2"},
    }
    return result(request["id"], value)


def keep_alive_connection(role: Role, version: str) -> ConnectionHarness:
    """Return an open connection that sends a ping after 10 seconds without input."""
    config = (
        server_config(keep_alive=10.0)
        if role is SERVER
        else client_config(version, keep_alive=10.0)
    )
    return opened(role, version, config)


def listen_request(id: Any, **changes: Any) -> Message:
    """Return a request to be notified of these changes."""
    return stateless_request(id, "subscriptions/listen", {"notifications": changes})


def subscribed_server(id: Any = 1, **limits: Any) -> ConnectionHarness:
    """Return a server whose client is subscribed to the list of tools and to one resource."""
    harness = server(E, **limits)
    answer = harness.response_to(
        listen_request(id, toolsListChanged=True, resourceSubscriptions=["x:1"])
    )
    accepted = {"toolsListChanged": True, "resourceSubscriptions": ["x:1"]}
    assert answer == notification(
        "notifications/subscriptions/acknowledged",
        {"notifications": accepted, "_meta": {SUBSCRIPTION_ID: id}},
    )
    return harness


def sent_changes(harness: ConnectionHarness) -> list[tuple[str, Any]]:
    """Return the method, and the URI or else `_meta`, of each notification that was sent."""
    return [
        (
            message["method"],
            message.get("params", {}).get("uri", message.get("params", {}).get("_meta")),
        )
        for message in harness.take_sent()
    ]


def sent_levels(harness: ConnectionHarness) -> list[Any]:
    """Return the levels of the log messages that were sent."""
    return [message["params"]["level"] for message in harness.take_sent()]


def log_at_all_levels(harness: ConnectionHarness, related: Any = None) -> list[Any]:
    """Send a log message at each level. Return the levels of those that were sent."""
    for level in t.LOGGING_LEVELS:
        harness.conn.send_log(level, "x", related=related)
    return sent_levels(harness)
