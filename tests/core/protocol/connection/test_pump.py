"""`Pump`: the order of events in nested calls, and back-pressure in both directions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import Connection, Event, Limits, PeerReady, Pump, RequestReceived, Role
from tests.harness.jsonrpc import (
    INITIALIZED,
    D,
    initialize,
    line,
    ping,
    request,
    server_config,
    type_names,
)

if TYPE_CHECKING:
    from collections.abc import Callable

CALL = {"name": "t"}


class PumpedConnection:
    """A server connection, its pump, and the delivered events. `acts` is called with each."""

    def __init__(self, acts: Callable[[Event], object] = lambda event: None, **limits: Any) -> None:
        self.conn = Connection(Role.SERVER, server_config(limits=Limits(**limits)))
        self.acts = acts
        self.taken: list[Event] = []
        self.pump = Pump(self.conn, self._take)

    def _take(self, event: Event) -> None:
        self.taken.append(event)
        self.acts(event)

    def receive(self, *messages: object) -> None:
        self.conn.receive_data(b"".join(map(line, messages)), 0.0)  # type: ignore[arg-type]
        self.pump.run()


def opened(acts: Callable[[Event], object] = lambda event: None, **limits: Any) -> PumpedConnection:
    pumped = PumpedConnection(acts, **limits)
    pumped.receive(initialize(D), INITIALIZED)
    assert type_names(pumped.taken) == ["PeerReady"]
    pumped.conn.data_to_send()
    pumped.taken.clear()
    return pumped


def call(id: int) -> object:
    return request(id, "tools/call", CALL)


def test_pump_run_delivers_all_events() -> None:
    pumped = opened()
    pumped.receive(call(1), call(2), ping())
    assert [event.id for event in pumped.taken if isinstance(event, RequestReceived)] == [1, 2]
    assert not pumped.pump.paused
    assert repr(pumped.pump) == f"<Pump of {pumped.conn!r}>"


def test_pump_nested_run_keeps_event_order() -> None:
    order: list[str] = []

    def acts(event: Event) -> None:
        if isinstance(event, RequestReceived):
            order.append(f"begin {event.id}")
            if event.id == 1:
                pumped.receive(call(3))  # as a handler does that sends its result at once
            order.append(f"end {event.id}")

    pumped = opened()
    pumped.acts = acts
    pumped.receive(call(1), call(2))
    assert order == ["begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"]


def test_pump_usable_after_callback_raised() -> None:
    def acts(event: Event) -> None:
        raise ZeroDivisionError

    pumped = PumpedConnection(acts)
    with pytest.raises(ZeroDivisionError):
        pumped.receive(initialize(D), INITIALIZED)
    pumped.acts = lambda event: None
    pumped.receive(call(1))
    assert [type(event) for event in pumped.taken] == [PeerReady, RequestReceived]


def test_pump_paused_follows_connection() -> None:
    pumped = opened(in_flight=1, waiting=1)
    paused = []
    for acts in (
        lambda: pumped.receive(call(1)),
        lambda: pumped.receive(call(2), call(3)),
        lambda: pumped.conn.send_result(1, {}),  # the second one starts, and the third one waits
        lambda: pumped.conn.send_result(2, {}),
    ):
        acts()
        pumped.pump.run()
        paused.append(pumped.pump.paused)
        assert repr(pumped.pump).endswith(", paused>") is pumped.pump.paused
    assert paused == [False, True, True, False]
    assert len(pumped.taken) == 3


def test_pump_write_blocked_above_high_water() -> None:
    pumped = opened()
    pumped.receive(call(1))
    pumped.conn.send_result(1, {"x": "x" * (64 * 1024 - 400 - pumped.conn.queued())})
    assert pumped.conn.queued() < 64 * 1024
    while pumped.conn.queued() < 64 * 1024:
        assert not pumped.pump.write_blocked
        pumped.receive(ping(1))
    pumped.receive(ping(1))
    assert pumped.pump.write_blocked
    assert repr(pumped.pump).endswith(", write blocked>")
    pumped.conn.data_to_send()
    assert not pumped.pump.write_blocked


@pytest.mark.parametrize(("queued", "is_blocked"), [(65_536, False), (65_537, True)])
def test_pump_is_write_blocked_above_64_kib(queued: int, is_blocked: bool) -> None:
    source: Any = SimpleNamespace(queued=lambda: queued)
    assert Pump(source, lambda event: None).write_blocked is is_blocked
