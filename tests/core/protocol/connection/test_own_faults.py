"""Faults of our own: none of them is taken for a fault of the peer's message.

Each row breaks one function that reads a part of a message. What it raises has to reach the caller,
and is no response, rejection or other reading of the message.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Raw

from mcp_core import Connection, Limits, Role
from mcp_core import types as t
from mcp_core.protocol.input_requests._kinds import check_input_request
from mcp_core.protocol.jsonrpc._body import parse_body
from mcp_core.protocol.jsonrpc._codec import decode
from mcp_core.protocol.jsonrpc._mending import mend
from mcp_core.protocol.messages._lenient_results import LenientReader
from mcp_core.protocol.messages._responses import decode_error
from mcp_core.protocol.schema._output_schemas import OutputSchemas
from mcp_core.protocol.schema._param_headers import mirrored_values
from mcp_core.protocol.subscriptions._server import SubscriptionPublisher
from tests.core.server_requests import NAME
from tests.harness.jsonrpc import (
    D,
    E,
    Message,
    call,
    client_config,
    notification,
    request,
    result,
    server_config,
    stateless_request,
)
from tests.harness.wire.connection import ConnectionHarness, client, opened, server

if TYPE_CHECKING:
    from collections.abc import Callable

_WITH_FORM = t.ClientCapabilities(elicitation=t.ElicitationCapability())
_ROOTS_CHANGED = "notifications/roots/list_changed"


def received(message: Message, version: str = D) -> Callable[[], object]:
    """Return what receives a message at an open server."""
    return lambda: server(version).receive(message)


def at_new_server(message: Message) -> Callable[[], object]:
    return lambda: ConnectionHarness(Connection(Role.SERVER, server_config())).receive(message)


def answered(method: str, value: Any, version: str = D) -> Callable[[], object]:
    """Return what receives the result of a request at a client."""

    def do() -> None:
        harness = client(version)
        id = harness.conn.send_request(method)
        harness.receive(result(id, value))

    return do


def opening(version: str, value: Any) -> Callable[[], object]:
    """Return what receives the result of a client's first request."""

    def do() -> None:
        harness = ConnectionHarness(Connection(Role.CLIENT, client_config(version)))
        harness.conn.open(0.0)
        harness.receive(result(1, value))

    return do


def lenient(document: bytes) -> Callable[[], object]:
    return lambda: LenientReader(keeps_unknown=True).read(t.ListToolsResult, document)


def checked_output() -> None:
    schemas = OutputSchemas("error", lambda text, options: None)
    schemas.replace_all([t.Tool(name="t", input_schema={}, output_schema={})])
    schemas.check("t", t.CallToolResult(content=[], structured_content={}), {})


_DISCOVERED = {"resultType": "complete", "supportedVersions": [E], "capabilities": {}}
_OPENED = {"protocolVersion": D, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}


@pytest.mark.parametrize(
    ("module", "name", "do"),
    [
        ("connection._admission", "_read_params_meta", received(request(1, "odd"))),
        (
            "connection._admission",
            "_read_members",
            received(request(1, "tools/call", {"name": "t", "task": 5})),
        ),
        ("connection._admission", "_read_peer_meta", received(request(1, "tools/call", {}))),
        ("connection._admission", "next_state", at_new_server(call(1))),
        ("connection._connection", "admit", received(call(1))),
        ("connection._negotiation", "_read_initialization", opening(D, _OPENED)),
        ("connection._negotiation", "read_leniently", opening(D, {})),
        ("connection._negotiation", "_read", opening(D, _OPENED)),
        ("connection._negotiation", "_read_discovery", opening(E, _DISCOVERED)),
        ("connection._negotiation", "_read", opening(E, _DISCOVERED)),
        (
            "input_requests._kinds",
            "_read_form",
            lambda: check_input_request(NAME, _WITH_FORM),
        ),
        ("jsonrpc._body", "decode", lambda: parse_body(b"{}", Limits())),
        ("jsonrpc._body", "split_batch", lambda: parse_body(b"[1]", Limits())),
        (
            "jsonrpc._codec",
            "_read_members",
            lambda: decode(b'{"jsonrpc":"2.0","id":1,"x":"y","method":"m"}'),
        ),
        ("jsonrpc._codec", "_read_members", lambda: decode(b'{"jsonrpc":"1.0"}')),
        ("jsonrpc._codec", "_read_id", lambda: decode(b'{"jsonrpc":"1.0","id":1}')),
        ("jsonrpc._mending", "_read_members", lambda: mend(b"{}")),
        ("jsonrpc._mending", "_read_any", lambda: mend(b'{"a":"\\ud800"}')),
        ("messages._lenient_results", "_exact_reader", lenient(b"{}")),
        ("messages._lenient_results", "_read_items", lenient(b'{"tools":[5]}')),
        ("messages._lenient_results", "_read_members", lenient(b"{}")),
        ("messages._responses", "_read_error", lambda: decode_error(Raw(b"{}"))),
        ("messages._responses", "_read_object", answered("acme/odd", {})),
        ("messages._responses", "_read_object", answered("acme/odd", {}, E)),
        ("messages._responses", "read_leniently", answered("tools/list", {})),
        ("schema._param_headers", "_read_members", lambda: mirrored_values({("a",): "A"}, b"{}")),
        ("schema._output_schemas", "UntrustedSchema", checked_output),
    ],
)
def test_fault_of_a_function_is_raised(
    module: str, name: str, do: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, import_module(f"mcp_core.protocol.{module}"), name)
    with pytest.raises(RuntimeError, match="of our own"):
        do()


def broken(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Put a function that raises in place of another one."""

    def fail(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("of our own")

    monkeypatch.setattr(owner, name, fail)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("handle_request", request(1, "resources/subscribe", {"uri": "x:1"})),
        ("handle_request", stateless_request(1, "subscriptions/listen", {"notifications": {}})),
    ],
)
def test_fault_of_a_publisher_is_raised(
    name: str, message: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, SubscriptionPublisher, name)
    with pytest.raises(RuntimeError, match="of our own"):
        server(D).receive(message)


def test_fault_while_a_listen_request_is_accepted_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = server(E)
    (event,) = harness.receive(call(1, E))
    broken(monkeypatch, SubscriptionPublisher, "listen")
    with pytest.raises(RuntimeError, match="of our own"):
        harness.conn.send_acknowledgement(event, t.SubscriptionFilter())  # type: ignore[arg-type]


def test_fault_while_params_are_read_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = opened(Role.SERVER, D)
    broken(monkeypatch, type(harness.conn._input), "read_params")
    with pytest.raises(RuntimeError, match="of our own"):
        harness.receive(notification(_ROOTS_CHANGED))

    def fail(*arguments: Any) -> None:
        raise RuntimeError("of our own")

    body = parse_body(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Limits())
    with pytest.raises(RuntimeError, match="of our own"):
        body.decode_params(lambda method: fail)
