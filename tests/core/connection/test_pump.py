"""`Pump`: the order of events in nested calls, and back-pressure in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import Connection, Event, Limits, PeerReady, Pump, RequestReceived, Role
from tests.core.helpers import (
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


class Carrier:
    """A server connection, its pump, and the delivered events. `acts` is called with each."""

    def __init__(self, acts: Callable[[Event], object] = lambda event: None, **limits: Any) -> None:
        self.conn = Connection(Role.SERVER, server_config(limits=Limits(**limits)))
        self.acts = acts
        self.taken: list[Event] = []
        self.pump = Pump(self.conn, self._take)

    def _take(self, event: Event) -> None:
        self.taken.append(event)
        self.acts(event)

    def hears(self, *messages: object) -> None:
        self.conn.receive_data(b"".join(map(line, messages)), 0.0)  # type: ignore[arg-type]
        self.pump.run()


def opened(acts: Callable[[Event], object] = lambda event: None, **limits: Any) -> Carrier:
    carrier = Carrier(acts, **limits)
    carrier.hears(initialize(D), INITIALIZED)
    assert type_names(carrier.taken) == ["PeerReady"]
    carrier.conn.data_to_send()
    carrier.taken.clear()
    return carrier


def call(id: int) -> object:
    return request(id, "tools/call", CALL)


def test_pump_run_delivers_all_events() -> None:
    carrier = opened()
    carrier.hears(call(1), call(2), ping())
    assert [event.id for event in carrier.taken if isinstance(event, RequestReceived)] == [1, 2]
    assert not carrier.pump.paused
    assert repr(carrier.pump) == f"<Pump of {carrier.conn!r}>"


def test_pump_nested_run_keeps_event_order() -> None:
    order: list[str] = []

    def acts(event: Event) -> None:
        if isinstance(event, RequestReceived):
            order.append(f"begin {event.id}")
            if event.id == 1:
                carrier.hears(call(3))  # as a handler does that sends its result at once
            order.append(f"end {event.id}")

    carrier = opened()
    carrier.acts = acts
    carrier.hears(call(1), call(2))
    assert order == ["begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"]


def test_pump_usable_after_callback_raised() -> None:
    def acts(event: Event) -> None:
        raise ZeroDivisionError

    carrier = Carrier(acts)
    with pytest.raises(ZeroDivisionError):
        carrier.hears(initialize(D), INITIALIZED)
    carrier.acts = lambda event: None
    carrier.hears(call(1))
    assert [type(event) for event in carrier.taken] == [PeerReady, RequestReceived]


def test_pump_paused_follows_connection() -> None:
    carrier = opened(in_flight=1, waiting=1)
    paused = []
    for acts in (
        lambda: carrier.hears(call(1)),
        lambda: carrier.hears(call(2), call(3)),
        lambda: carrier.conn.send_result(1, {}),  # the second one starts, and the third one waits
        lambda: carrier.conn.send_result(2, {}),
    ):
        acts()
        carrier.pump.run()
        paused.append(carrier.pump.paused)
        assert repr(carrier.pump).endswith(", paused>") is carrier.pump.paused
    assert paused == [False, True, True, False]
    assert len(carrier.taken) == 3


def test_pump_write_blocked_above_high_water() -> None:
    carrier = opened()
    carrier.hears(call(1))
    carrier.conn.send_result(1, {"x": "x" * (64 * 1024 - 40 - carrier.conn.queued())})
    while carrier.conn.queued() < 64 * 1024:
        assert not carrier.pump.write_blocked
        carrier.hears(ping(1))
    carrier.hears(ping(1))
    assert carrier.pump.write_blocked
    assert repr(carrier.pump).endswith(", full>")
    carrier.conn.data_to_send()
    assert not carrier.pump.write_blocked
