"""A recorded conversation as the server of a test: which blocks fail, and with what text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.trace import (
    DamagedLine,
    EmptyTrace,
    NotRecorded,
    ReplayedServer,
    TraceHeader,
    load_trace,
)
from tests.core.trace.judge.conversations import S, notify
from tests.core.trace.replay.traces import CALL, HANDSHAKE, call, lines_of, recorded

NEAREST = (
    "  tools/call echo; the nearest is tools/call echo in line 2, which differs at"
    " /params/arguments/x"
)
CURE = (
    "if they are meant: record the conversation anew, or name values that may differ in"
    ' replayed(..., ignore=["/params/arguments/..."])'
)


def send(server: ReplayedServer, message: Any) -> None:
    server.replay.open().receive(json.dumps(message).encode(), 0.0)


def test_block_with_recorded_requests_passes() -> None:
    server = ReplayedServer(recorded(CALL))
    with server.checked():
        send(server, call(1, x="a"))
    server.check()


def test_unknown_request_fails_the_block_with_the_nearest_one() -> None:
    server = ReplayedServer(recorded(CALL), path="a.mcp.jsonl")
    with pytest.raises(NotRecorded) as caught, server.checked():
        send(server, call(1, x="b"))
    assert str(caught.value).splitlines() == [
        "a.mcp.jsonl: 1 request cannot be answered from it:",
        NEAREST,
        CURE,
    ]
    assert caught.value.missing == [NEAREST.strip()]
    assert caught.value.__cause__ is None


def test_exception_that_follows_from_unknown_request_is_the_cause() -> None:
    server = ReplayedServer(recorded(CALL))
    send(server, call(1, x="b"))
    with pytest.raises(NotRecorded) as caught, server.checked():
        raise KeyError("answer")
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("raised", [KeyError, KeyboardInterrupt])
def test_other_exception_passes_unchanged(raised: type[BaseException]) -> None:
    """So does one that isn't an `Exception`, such as a cancellation, after any request."""
    server = ReplayedServer(recorded(CALL))
    send(server, call(1, x="a" if raised is KeyError else "b"))
    with pytest.raises(raised), server.checked():
        raise raised


def test_text_of_failure_is_bounded_escaped_and_names_gaps() -> None:
    """Thirty requests with control characters in long names, and a trace with a damaged line."""
    header = TraceHeader(format_version=1)
    trace = load_trace(header, [*lines_of(CALL), (9, DamagedLine(reason="no JSON", beginning="{"))])
    server = ReplayedServer(trace)
    for number in range(30):
        send(server, call(1, f"\x1b[2J{number}" + "x" * 2_000))
    with pytest.raises(NotRecorded) as caught:
        server.check()
    lines = str(caught.value).splitlines()
    assert lines[0] == "the trace: 30 requests cannot be answered from it:"
    assert "\x1b" not in str(caught.value)
    assert lines[21:23] == [
        "  and 10 more",
        "  the recording has gaps: lines that cannot be read were left out: 9",
    ]
    assert max(map(len, lines)) < 600


@pytest.mark.parametrize("said", [[], [S(notify("x"))], [HANDSHAKE[1]]])
def test_trace_without_requests_is_an_error_with_cure(said: list[Any]) -> None:
    with pytest.raises(EmptyTrace, match=r"a\.jsonl has no request .*record=FILE"):
        ReplayedServer(recorded(said), path="a.jsonl")


def test_one_string_to_ignore_is_an_error_that_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"write ignore=\['/params/x'\]"):
        ReplayedServer(recorded(CALL), ignore="/params/x")
