"""The events: plain values, and two words that are no events."""

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
from mcp_core import _events as events
from mcp_core import types as t
from tests.core.helpers import D


def test_the_words_say_what_they_are() -> None:
    assert repr(NEED_DATA) == "NEED_DATA"
    assert repr(PAUSED) == "PAUSED"
    assert (type(NEED_DATA), type(PAUSED)) == (events.NeedData, events.Paused)


def test_every_event_is_public() -> None:
    for kind in typing.get_args(Event):
        assert issubclass(kind, Struct)
        assert getattr(mcp_core, kind.__name__) is kind


def test_events_compare_by_value() -> None:
    problem = RemoteProtocolError("no")
    assert MessageRejected(problem) == MessageRejected(problem, None)
    assert MessageRejected(problem) != MessageRejected(problem, 1)
    assert ConnectionClosed([1]) == ConnectionClosed([1], None)
    assert repr(ConnectionClosed(["token"])) == "ConnectionClosed(lost=['token'], error=None)"


def test_a_peer_does_not_change() -> None:
    peer = Peer(DIALECTS[D], t.ClientCapabilities())
    with pytest.raises(AttributeError):
        peer.log_level = "debug"  # type: ignore[misc]
    assert repr(peer) == (
        "Peer(dialect=<Dialect 2025-11-25>, capabilities=ClientCapabilities(), info=None, log_level=None,"
        " instructions=None)"
    )
