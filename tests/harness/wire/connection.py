"""One `Connection`, the engine's state machine for one peer, driven by a test.

`receive` passes messages to it and returns its events; `take_sent` returns the messages that it has
sent. No test needs a clock: time is the attribute `now`.

    harness = server(D)
    (event,) = harness.receive(call(1))
    assert harness.conn.send_result(event.id, {"content": []})
    assert harness.take_sent()[0]["id"] == 1
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp_core import (
    DIALECTS,
    NEED_DATA,
    PAUSED,
    Config,
    Connection,
    Event,
    Limits,
    PeerReady,
    Role,
)
from tests.harness.jsonrpc import (
    INITIALIZED,
    SERVER_CAPABILITIES,
    D,
    Message,
    assert_rejected,
    client_config,
    initialize,
    line,
    result,
    server_config,
    single,
)

if TYPE_CHECKING:
    from mcp_core import State

__all__ = ["ConnectionHarness", "client", "opened", "server"]


class ConnectionHarness:
    """One connection that a test drives with messages.

    `paused`, `state` and `probing` are methods, so that the type checker does not narrow them.
    """

    def __init__(self, conn: Connection) -> None:
        self.conn = conn
        self.now = 0.0
        self._paused = False

    def paused(self) -> bool:
        """Return True if the connection was paused after the last events."""
        return self._paused

    def state(self) -> State:
        return self.conn.state

    def probing(self) -> bool:
        return self.conn.probing

    def receive(self, *messages: Message | list[Any] | str | bytes) -> list[Event]:
        """Receive messages, one per line, and return the events."""
        return self.receive_bytes(b"".join(map(line, messages)))

    def receive_bytes(self, data: bytes) -> list[Event]:
        """Receive bytes and return the events. `b""` is nothing here, not the end of file."""
        if data:
            self.conn.receive_data(data, self.now)
        return self.events()

    def receive_eof(self) -> list[Event]:
        """Receive the end of file and return the events."""
        self.conn.receive_data(b"", self.now)
        return self.events()

    def advance_time(self, seconds: float) -> list[Event]:
        """Advance the time, process timeouts and return the events."""
        self.now += seconds
        self.conn.handle_timeout(self.now)
        return self.events()

    def events(self) -> list[Event]:
        found: list[Event] = []
        while True:
            event = self.conn.next_event()
            if event is NEED_DATA or event is PAUSED:
                self._paused = event is PAUSED
                return found
            found.append(event)

    def take_sent(self) -> list[Message]:
        """Return the messages sent since the last call."""
        data = self.conn.data_to_send()
        assert data[-1:] in (b"", b"\n")
        return [json.loads(raw) for raw in data.split(b"\n")[:-1]]

    def response_to(self, message: Message | list[Any] | str | bytes) -> Message:
        """Receive a message that causes no event, and return the one response."""
        assert self.receive(message) == []
        return single(self.take_sent())

    def error_response_to(self, message: Message | list[Any] | str | bytes) -> Message:
        """Receive a message that is rejected, and return the one error response."""
        assert_rejected(self.receive(message))
        return single(self.take_sent())


def opened(role: Role, version: str, config: Config | None = None) -> ConnectionHarness:
    """Return an open connection of `version`, after a handshake if the version has one."""
    if role is Role.SERVER:
        harness = ConnectionHarness(Connection(role, config or server_config()))
        if DIALECTS[version].stateful:
            assert harness.response_to(initialize(version))["result"]["protocolVersion"] == version
            (ready,) = harness.receive(INITIALIZED)
            assert isinstance(ready, PeerReady)
        return harness
    harness = ConnectionHarness(Connection(role, config or client_config(version)))
    harness.conn.open(harness.now)
    received = single(harness.take_sent())
    offers = json.loads(DIALECTS[version].encode(SERVER_CAPABILITIES))
    if DIALECTS[version].stateful:
        answer = {
            "protocolVersion": version,
            "capabilities": offers,
            "serverInfo": {"name": "s", "version": "1"},
        }
    else:
        answer = {"resultType": "complete", "supportedVersions": [version], "capabilities": offers}
    (ready,) = harness.receive(result(received["id"], answer))
    assert isinstance(ready, PeerReady)
    harness.take_sent()
    return harness


def server(version: str = D, **limits: Any) -> ConnectionHarness:
    """Return a server that is connected to a client of this revision."""
    return opened(Role.SERVER, version, server_config(limits=Limits(**limits)))


def client(version: str = D) -> ConnectionHarness:
    """Return a client that is connected to a server of this revision."""
    return opened(Role.CLIENT, version)
