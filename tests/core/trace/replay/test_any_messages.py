"""Replay and comparison of any JSON: nothing raises, and everything comes to its end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace import RecordedTrace, diff_traces
from tests.core.trace.judge.conversations import Sent
from tests.core.trace.judge.test_judge import MEMBERS, VALUES
from tests.core.trace.replay.traces import HANDSHAKE, live_client, live_server, recorded
from tests.levels import fewer_examples

FEW = fewer_examples(12)  # drawing them takes most of the time
MESSAGES = MEMBERS | VALUES | st.lists(MEMBERS, max_size=3)
TEXTS = st.lists(st.tuples(st.sampled_from(["client", "server"]), MESSAGES), max_size=10)
LIVE = st.tuples(TEXTS, st.lists(MESSAGES, max_size=6), st.booleans())
PAIRS = st.tuples(TEXTS, TEXTS, st.booleans())


def trace_of(texts: list[Any], *, has_handshake: bool) -> RecordedTrace:
    said = [Sent(sender, value) for sender, value in texts]
    return recorded([*(HANDSHAKE if has_handshake else []), *said], "message:taskId")


@given(LIVE)
@FEW
def test_server_takes_any_trace_and_any_message(drawn: Any) -> None:
    check_server(*drawn)


@pytest.mark.long
@given(LIVE)
def test_server_takes_any_trace_and_any_message_long(drawn: Any) -> None:
    check_server(*drawn)


def check_server(texts: list[Any], live: list[Any], has_handshake: bool) -> None:
    client = live_client(trace_of(texts, has_handshake=has_handshake), pace=0.5)
    for now, message in enumerate(live):
        client.session.receive(json.dumps(message).encode(), float(now), "stream")
        client.session.advance(now + 100.0)
        client.session.outputs_to_send()


@given(LIVE)
@FEW
def test_client_takes_any_trace_and_comes_to_its_end(drawn: Any) -> None:
    check_client(*drawn)


@pytest.mark.long
@given(LIVE)
def test_client_takes_any_trace_and_comes_to_its_end_long(drawn: Any) -> None:
    check_client(*drawn)


def check_client(texts: list[Any], live: list[Any], has_handshake: bool) -> None:
    """Any JSON was recorded and any is received; after 50 deadlines at most, it is over."""
    trace = trace_of(texts, has_handshake=has_handshake)
    if not trace.sessions:
        return
    server = live_server(trace)
    now = 0.0
    for message in live:
        server.client.receive(json.dumps(message).encode(), now)
    for _ in range(50):
        if server.client.is_over:
            break
        now = max(now, server.client.next_deadline)
        server.client.advance(now)
        server.client.messages_to_send()
    assert server.client.is_over


@given(PAIRS)
@FEW
def test_comparison_takes_any_traces(drawn: Any) -> None:
    check_comparison(*drawn)


@pytest.mark.long
@given(PAIRS)
def test_comparison_takes_any_traces_long(drawn: Any) -> None:
    check_comparison(*drawn)


def check_comparison(old: list[Any], new: list[Any], has_handshake: bool) -> None:
    first, second = (trace_of(each, has_handshake=has_handshake) for each in (old, new))
    diff_traces(first, second, with_meta=True)
    found = diff_traces(first, first)
    assert found.differences == []
    json.dumps([each.what for each in found.differences])
