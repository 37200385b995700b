"""The events, and the constants `NEED_DATA` and `PAUSED`."""

from __future__ import annotations

import typing

import pytest
from msgspec import Struct

import mcp_core
from mcp_core import (
    DIALECTS,
    NEED_DATA,
    PAUSED,
    ConnectionClosed,
    Event,
    MessageRejected,
    Peer,
    RemoteProtocolError,
)
from mcp_core import types as t
from mcp_core.protocol.messages import _events as events
from tests.harness.jsonrpc import D


def test_need_data_and_paused_have_plain_repr() -> None:
    assert repr(NEED_DATA) == "NEED_DATA"
    assert repr(PAUSED) == "PAUSED"
    assert (type(NEED_DATA), type(PAUSED)) == (events.NeedData, events.Paused)


def test_events_are_exported_by_mcp_core() -> None:
    for kind in typing.get_args(Event):
        assert issubclass(kind, Struct)
        assert getattr(mcp_core, kind.__name__) is kind


def test_events_compare_by_value() -> None:
    problem = RemoteProtocolError("no")
    assert MessageRejected(problem) == MessageRejected(problem, None)
    assert MessageRejected(problem) != MessageRejected(problem, 1)
    assert ConnectionClosed([1]) == ConnectionClosed([1], None)
    assert repr(ConnectionClosed(["token"])) == "ConnectionClosed(lost=['token'], error=None)"


def test_peer_is_immutable() -> None:
    peer = Peer(DIALECTS[D], t.ClientCapabilities())
    with pytest.raises(AttributeError):
        peer.log_level = "debug"  # type: ignore[misc]
    assert repr(peer) == (
        "Peer(dialect=<Dialect 2025-11-25>, capabilities=ClientCapabilities(), info=None,"
        " log_level=None, instructions=None)"
    )
