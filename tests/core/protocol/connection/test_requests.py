"""The table of incoming requests: in flight, waiting, and when reading has to pause."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import DIALECTS, Limits, Peer, RequestReceived, Role
from mcp_core import types as t
from mcp_core.protocol.connection._requests import IncomingRequest, IncomingRequests
from mcp_core.protocol.connection._state import RequestPhase
from mcp_core.protocol.revisions._methods import METHODS
from tests.harness.jsonrpc import D, server_config

PEER = Peer(DIALECTS[D], t.ClientCapabilities())
TERMS = server_config().dialect_configs[Role.SERVER][PEER.dialect]
ROW = METHODS[0]


def requests_with(in_flight: int = 2, waiting: int = 2, pause: float = 5.0) -> IncomingRequests:
    return IncomingRequests(Limits(in_flight=in_flight, waiting=waiting, pause=pause))


def add(requests: IncomingRequests, *ids: Any) -> list[bool | None]:
    return [
        requests.add(RequestReceived(id, ROW, None, PEER, b"{}"), IncomingRequest(PEER, TERMS))
        for id in ids
    ]


def waiting_ids(requests: IncomingRequests) -> list[Any]:
    found = []
    while (event := requests.next_waiting()) is not None:
        found.append(event.id)
    return found


def test_incoming_requests_in_flight_then_waiting_then_rejected() -> None:
    requests = requests_with()
    assert add(requests, 1, 2, 3, 4, 5) == [True, True, False, False, None]
    assert (list(requests.table), requests.in_flight, len(requests.waiting)) == ([1, 2, 3, 4], 2, 2)
    assert requests.next_waiting() is None
    del requests.table[1]
    assert waiting_ids(requests) == [3]
    del requests.table[2]
    del requests.table[3]
    assert waiting_ids(requests) == [4]
    del requests.table[4]
    assert (requests.table, requests.in_flight, len(requests.waiting)) == ({}, 0, 0)


def test_incoming_requests_waiting_are_not_overtaken() -> None:
    requests = requests_with(in_flight=2)
    assert add(requests, 1, 2, 3) == [True, True, False]
    del requests.table[1]
    del requests.table[2]
    assert add(requests, 4) == [False]  # a place is free, but 3 has not taken it yet
    assert waiting_ids(requests) == [3, 4]


@pytest.mark.requirement("RPC-6")
def test_incoming_requests_distinguish_id_types() -> None:
    requests = requests_with()
    assert add(requests, 1, "1") == [True, True]
    assert requests.cancel("1") is True
    assert requests.table["1"].phase is RequestPhase.CANCELLED
    assert requests.table[1].phase is RequestPhase.OPEN


@pytest.mark.requirement("CXL-8")
def test_incoming_requests_cancel_by_phase() -> None:
    requests = requests_with()
    add(requests, 1, 2, 3, "3")
    assert requests.cancel(1) is True
    assert requests.cancel(1) is None  # twice
    assert requests.cancel(9) is None  # unknown
    assert (len(requests.table), requests.in_flight) == (4, 2)  # its handler still runs
    assert requests.cancel("3") is False  # it was still waiting, so it is removed at once
    assert list(requests.table) == [1, 2, 3]
    assert requests.cancel("3") is None
    del requests.table[1]
    assert requests.cancel(1) is None  # answered
    assert waiting_ids(requests) == [3]


def test_incoming_requests_cancel_all_returns_running() -> None:
    requests = requests_with(in_flight=3)
    add(requests, 1, 2, 3, 4)
    requests.cancel(2)
    assert requests.cancel_all() == [1, 3]
    assert (list(requests.table), list(requests.waiting)) == ([1, 2, 3], [])
    assert requests.cancel_all() == []


def test_incoming_requests_full_queue_pauses() -> None:
    requests = requests_with()
    add(requests, 1, 2, 3)
    assert not requests.must_pause(0.0, awaiting_response=False)
    assert requests.pause_deadline is None
    add(requests, 4)
    assert not requests.must_pause(
        1.0, awaiting_response=True
    )  # the response may be behind it in the input
    assert requests.pause_deadline is None
    assert requests.must_pause(2.0, awaiting_response=False)
    assert requests.must_pause(3.0, awaiting_response=False)
    assert requests.pause_deadline == 7.0


def test_incoming_requests_free_place_ends_pause() -> None:
    requests = requests_with()
    add(requests, 1, 2, 3, 4)
    assert requests.must_pause(2.0, awaiting_response=False)
    del requests.table[1]
    assert waiting_ids(requests) == [3]
    assert not requests.must_pause(4.0, awaiting_response=False)
    assert requests.pause_deadline is None
    add(requests, 5)
    assert requests.must_pause(6.0, awaiting_response=False)
    assert requests.pause_deadline == 11.0  # the timeout begins again


def test_incoming_requests_pause_times_out() -> None:
    """After 5 s reading goes on although the queue is full, and pauses again once it had room."""
    requests = requests_with()
    add(requests, 1, 2, 3, 4)
    requests.end_pause_if_due(100.0)
    assert requests.must_pause(2.0, awaiting_response=False)
    requests.end_pause_if_due(6.9)
    assert requests.must_pause(6.9, awaiting_response=False)
    requests.end_pause_if_due(7.0)
    assert requests.pause_deadline is None
    assert not requests.must_pause(7.0, awaiting_response=False)
    assert add(requests, 5) == [None]
    # Reading goes on until the queue has room.
    assert requests.cancel(4) is False
    assert not requests.must_pause(8.0, awaiting_response=False)
    assert add(requests, 6) == [False]
    assert requests.must_pause(9.0, awaiting_response=False)
    assert requests.pause_deadline == 14.0


@pytest.mark.parametrize("waiting", [1, 2])
def test_incoming_requests_each_pause_has_full_timeout(waiting: int) -> None:
    requests = requests_with(in_flight=1, waiting=waiting)
    add(requests, *range(1 + waiting))
    assert requests.must_pause(2.0, awaiting_response=False)
    requests.end_pause_if_due(7.0)
    for id in range(1 + waiting):  # the queue is emptied, and filled again much later
        del requests.table[id]
        requests.next_waiting()
    add(requests, *range(1 + waiting))
    assert requests.must_pause(100.0, awaiting_response=False)
    assert requests.pause_deadline == 105.0
    assert requests.cancel_all() == [0]
    assert requests.pause_deadline is None


@pytest.mark.parametrize("in_flight", [1, 3])
def test_incoming_requests_without_queue_never_wait(in_flight: int) -> None:
    requests = requests_with(in_flight=in_flight, waiting=0)
    assert add(requests, *range(in_flight), "x") == [True] * in_flight + [None]
    del requests.table[0]
    assert add(requests, "x") == [True]
