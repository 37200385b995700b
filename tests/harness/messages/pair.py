"""A client's `Connection` and a server's, back to back.

The methods send on one side, and assert that the other side receives the same. No test needs a
clock: time is the attribute `now`.

    pair = ConnectionPair(D).open()
    received = pair.request("tools/call", {"name": "t"})
    pair.result(received, {"content": []})
    assert pair.is_idle()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from mcp_core import (
    Connection,
    ErrorReceived,
    MessageRejected,
    NotificationReceived,
    PeerReady,
    ProgressReceived,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
    Role,
    State,
)
from mcp_core import types as t
from tests.harness.jsonrpc import client_config, only_event, server_config, type_names
from tests.harness.wire.connection import ConnectionHarness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core import Config, Event
    from tests.harness.jsonrpc import Message

__all__ = ["ConnectionPair", "assert_same_params"]


class ConnectionPair:
    """A client and a server, connected without loss.

    A method is named after the action of one side, `by`, and asserts that the other side receives
    exactly that. The methods deliver messages at once. A test in which messages cross uses the
    connections themselves, with `move` and `deliver`.
    """

    def __init__(
        self, *versions: str, client: Config | None = None, server: Config | None = None
    ) -> None:
        self.client = Connection(Role.CLIENT, client or client_config(*versions))
        self.server = Connection(Role.SERVER, server or server_config(*versions))
        self.now = 0.0
        self.transcript: list[tuple[Role, Message]] = []  # the transcript
        self._harnesses = {
            Role.CLIENT: ConnectionHarness(self.client),
            Role.SERVER: ConnectionHarness(self.server),
        }

    def __getitem__(self, role: Role) -> Connection:
        return self._harnesses[role].conn

    @property
    def versions(self) -> tuple[str | None, str | None]:
        """The revision of the peer, as known to each side."""
        client, server = (
            conn.peer.dialect.version if conn.peer is not None else None
            for conn in (self.client, self.server)
        )
        return client, server

    # -- The wire

    def take(self, by: Role) -> list[Message]:
        """Take the queued messages of `by` without delivering them."""
        messages = self._harnesses[by].take_sent()
        self.transcript += [(by, message) for message in messages]
        return messages

    def deliver(self, messages: list[Message], *, by: Role) -> list[Event]:
        """Deliver messages of `by` to the other side, and return its events."""
        harness = self._harnesses[by.other]
        harness.now = self.now
        return harness.receive(*messages)

    def move(self, by: Role) -> list[Event]:
        """Deliver the queued messages of `by`, and return the events of the other side."""
        return self.deliver(self.take(by), by=by)

    def deliver_all(self) -> dict[Role, list[Event]]:
        """Deliver messages in both directions until neither side has any."""
        found: dict[Role, list[Event]] = {role: self._harnesses[role].events() for role in Role}
        while any(self[role].queued() for role in Role):
            for role in Role:
                found[role.other] += self.move(role)
        return found

    # -- What the sides do

    def open(self, **options: Any) -> ConnectionPair:
        self.client.open(self.now, **options)
        found = self.deliver_all()
        peer = self.client.peer
        assert peer is not None
        assert found[Role.CLIENT] == [PeerReady(peer)]
        # A server may not know the probe, and a stateless one has no PeerReady.
        ready = [event for event in found[Role.SERVER] if not isinstance(event, MessageRejected)]
        assert type_names(ready) == (["PeerReady"] if peer.dialect.stateful else [])
        assert self.client.state is State.READY
        return self

    def request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        *,
        by: Role = Role.CLIENT,
        token: object = None,
        **options: Any,
    ) -> RequestReceived:
        """Send a request, and assert that it arrives with its params."""
        id = self[by].send_request(method, params, token=token, **options)
        event = only_event(self.move(by), RequestReceived)
        assert (event.id, event.method.name) == (id, method)
        assert type(event.id) is type(id)
        assert_same_params(params, event.params)
        return event

    def result(
        self,
        received: RequestReceived,
        value: Struct | Mapping[str, Any],
        *,
        by: Role = Role.SERVER,
    ) -> Any:
        """Send a result, and return it as it arrives."""
        assert self[by].send_result(received.id, value)
        event = only_event(self.move(by), ResultReceived)
        assert event.id == received.id
        return event.result

    def error(
        self, received: RequestReceived, code: int, text: str, *, by: Role = Role.SERVER
    ) -> ErrorReceived:
        """Send an error response, and assert that it arrives."""
        assert self[by].send_error(received.id, t.ErrorData(code=code, message=text))
        event = only_event(self.move(by), ErrorReceived)
        assert event.id == received.id
        assert str(event.error) == f"{text} ({code})"
        return event

    def progress(
        self, received: RequestReceived, *values: Any, by: Role = Role.SERVER
    ) -> ProgressReceived:
        """Send progress, and assert that it arrives."""
        assert self[by].send_progress(received.id, *values)
        event = only_event(self.move(by), ProgressReceived)
        assert (event.id, event.progress) == (received.id, values[0])
        return event

    def cancel(
        self, received: RequestReceived, reason: str | None = None, *, by: Role = Role.CLIENT
    ) -> None:
        """Cancel the request, and assert that the handler is cancelled."""
        self[by].send_cancel(received.id, reason)
        assert self.move(by) == [RequestCancelled(received.id, reason)]

    def notify(
        self, method: str, params: Struct | None = None, *, by: Role = Role.SERVER, **options: Any
    ) -> NotificationReceived:
        self[by].send_notification(method, params, **options)
        event = only_event(self.move(by), NotificationReceived)
        assert event.method.name == method
        assert_same_params(params, event.params)
        return event

    def is_idle(self) -> bool:
        """Return True if neither side has queued messages."""
        return not (self.client.queued() or self.server.queued())


def assert_same_params(sent: Struct | Mapping[str, Any] | None, got: Any) -> None:
    """Assert that the params are equal, except `_meta`, to which the sender adds members."""
    if isinstance(sent, Struct):
        assert type(got) is type(sent)
        assert asdict(got) | {"meta": None} == asdict(sent) | {"meta": None}
