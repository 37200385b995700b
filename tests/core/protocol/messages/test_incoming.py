"""From bytes to messages: one at a time, in order, without exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import astuple

from mcp_core import Limits
from mcp_core.protocol.jsonrpc._body import DecodedParams, parse_body
from mcp_core.protocol.jsonrpc._codec import BadMessage, Envelope, InvalidPayload
from mcp_core.protocol.messages._incoming import NO_CONTEXT, IncomingMessages, MessageContext
from mcp_core.protocol.revisions._methods import METHODS
from mcp_core.types import CallToolParams
from tests.harness.jsonrpc import (
    call,
    encoded,
    initialize,
    line,
    ping,
)


def summary(message: Envelope | BadMessage | None) -> Any:
    """Return the method of a request, or the text of a bad message, or None for none."""
    if isinstance(message, BadMessage):
        return message.message
    if message is None:
        return None
    assert message.method is not UNSET
    return message.method


def summaries(intake: IncomingMessages) -> list[Any]:
    found = []
    while (message := intake.next_message()) is not None:
        found.append(summary(message))
    return found


def test_incoming_lines_become_messages() -> None:
    intake = IncomingMessages(Limits())
    intake.feed(line(ping(1)) + b"\n \t\r\n" + line(call(2)) + b"{\n" + b'{"jso')
    assert intake.has_partial_line
    first, second, third = summaries(intake)
    assert (first, second) == ("ping", "tools/call")
    assert "not JSON" in third
    assert (len(intake), intake.has_partial_line) == (5, True)
    assert intake.received == len(line(ping(1)) + line(call(2))) + 12


def test_incoming_messages_keep_their_context() -> None:
    """The bytes of bodies that are parsed already count as received, too."""
    intake = IncomingMessages(Limits(message=200))
    intake.add(encoded(ping(1)), MessageContext(7))
    intake.add(b"x" * 201, MessageContext(8))
    intake.add(b"  ", MessageContext(9))
    intake.add(encoded(call(2)), None)
    parsed = parse_body(encoded(ping(3)), Limits())
    intake.add_parsed(parsed, MessageContext(10))
    assert len(intake) == intake.received
    seen = []
    while (message := intake.next_message()) is not None:
        seen.append((summary(message), intake.context.related))
    assert seen == [
        ("ping", 7),
        ("the message is longer than 200 bytes", 8),
        ("tools/call", None),
        ("ping", 10),
    ]
    assert len(intake) == 0


def test_incoming_input_of_each_kind_is_noted_until_it_is_read() -> None:
    """Drivers ask for messages while there is input, and never after it was discarded."""
    intake = IncomingMessages(Limits(message=10_000))
    assert (intake.has_input, intake.context, intake.unfinished) == (False, NO_CONTEXT, (b"", 0))
    adds: list[Callable[[], None]] = [
        lambda: intake.feed(line(ping(1))),
        lambda: intake.add(encoded(ping(1)), MessageContext(7)),
        lambda: intake.add_parsed(parse_body(encoded(ping(1)), Limits()), MessageContext(8)),
    ]
    for add in adds:
        add()
        assert bool(intake.has_input)
        assert summary(intake.next_message()) == "ping"
        assert bool(intake.has_input)
        assert intake.next_message() is None
        assert not bool(intake.has_input)
        assert intake.context is NO_CONTEXT
    intake.feed(b"x" * 2000)
    assert intake.next_message() is None
    assert intake.unfinished == (b"x" * 1024, 2000)
    intake.add(encoded(ping(1)), None)
    intake.clear()
    assert (intake.has_input, len(intake), intake.next_message()) == (False, 0, None)


@pytest.mark.parametrize("count", [1, 2])
def test_incoming_params_that_were_decoded_are_of_their_own_message(count: int) -> None:
    """Params that came decoded aren't read again, and none are left for the next message."""
    messages = [call(number) for number in range(count)]
    body = parse_body(encoded(messages if count > 1 else messages[0]), Limits())
    row = next(row for row in METHODS if row.name == "tools/call")
    decoded = [DecodedParams(row.read_params, f"of message {number}") for number in range(count)]
    body.decoded = [*decoded]
    intake = IncomingMessages(Limits())
    intake.batches = True
    intake.add_parsed(body, MessageContext())
    for number in range(count):
        message = intake.next_message()
        assert isinstance(message, Envelope)
        assert (message.id, intake.decoded) == (number, decoded[number])
        assert intake.read_params(row, message.params) == f"of message {number}"
    intake.feed(line(call(1)))
    message = intake.next_message()
    assert isinstance(message, Envelope)
    assert intake.decoded is None
    assert isinstance(intake.read_params(row, message.params), CallToolParams)
    with pytest.raises(InvalidPayload):
        intake.read_params(row, UNSET)


def test_incoming_batch_is_split_on_demand() -> None:
    intake = IncomingMessages(Limits(batch=2))
    intake.feed(line([ping(1), call(2)]))
    assert summaries(intake) == ["a message is a JSON object, not an array"]
    intake.batches = True
    intake.feed(line([ping(1), call(2)]) + line(ping(3)))
    assert summary(intake.next_message()) == "ping"
    assert len(intake) == len(encoded([ping(1), call(2)])) + len(line(ping(3)))  # all of it is held
    assert summaries(intake) == ["tools/call", "ping"]


def test_incoming_batch_invalid_is_bad_message() -> None:
    intake = IncomingMessages(Limits(batch=2))
    intake.batches = True
    intake.feed(b"[]\n" + line([ping(1)] * 3) + b"[1,\n" + line([initialize(), 5, ping(1)][:2]))
    empty, many, broken, opening, number = summaries(intake)
    assert empty.endswith("this one has 0")
    assert many.endswith("this one has 3")
    assert "not JSON" in broken
    assert opening == "initialize is never part of a batch"
    assert number


def test_incoming_clear_discards_everything() -> None:
    intake = IncomingMessages(Limits())
    intake.batches = True
    intake.feed(line([ping(1), ping(2)]) + b'{"half')
    intake.next_message()
    intake.add(encoded(ping(3)), None)
    intake.clear()
    assert (len(intake), intake.has_partial_line, intake.next_message()) == (0, False, None)
    assert repr(intake) == "<IncomingMessages of 0 bytes>"


@given(
    st.lists(
        st.binary(max_size=40) | st.sampled_from([line(ping(1)), b"\n", b"[", line([ping(2)])])
    )
)
def test_incoming_random_bytes_never_raise_or_accumulate(chunks: list[bytes]) -> None:
    intake = IncomingMessages(Limits(message=64))
    intake.batches = True
    for chunk in chunks:
        intake.feed(chunk)
        for found in summaries(intake):
            assert isinstance(found, str)
        assert len(intake) <= 64 + 1


def test_message_of_which_nothing_is_known_has_no_context() -> None:
    assert astuple(NO_CONTEXT) == (None, None, None, None, None)
    assert MessageContext() == NO_CONTEXT
