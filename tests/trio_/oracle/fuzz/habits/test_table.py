"""Exchanges of the table of habits: what a step sends, and what belongs to a message in a trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz.habits._table import (
    HABITS,
    ListedNames,
    MessageExchange,
    decoded,
    read_exchange,
    sent_by,
)

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Step

REQUESTED: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "a"}


@pytest.mark.parametrize(
    ("step", "sent"),
    [
        (("request", "a"), REQUESTED),
        (("request", "a", {"b": 1}, "text", "whole"), {**REQUESTED, "params": {"b": 1}}),
        (("request", "a", None, "int"), {**REQUESTED, "params": None}),
        (("request", "a", "absent"), REQUESTED),
        (("notify", "a"), {"jsonrpc": "2.0", "method": "a"}),
        (("notify", "a", [5]), {"jsonrpc": "2.0", "method": "a", "params": [5]}),
        (
            ("call", "t"),
            {**REQUESTED, "method": "tools/call", "params": {"name": "t", "arguments": {}}},
        ),
        (
            ("call", "t", {"b": 1}, ("text",)),
            {**REQUESTED, "method": "tools/call", "params": {"name": "t", "arguments": {"b": 1}}},
        ),
        (
            ("batch", [["a", {"b": 1}, "text"], ["n", {"b": 1}, None]]),
            [{**REQUESTED, "params": {"b": 1}}, {"jsonrpc": "2.0", "method": "n"}],
        ),
        (("reply", 7, {"result": {}, "id": 5}), {"jsonrpc": "2.0", "id": 7, "result": {}}),
        (("reply", 7, [5]), {"jsonrpc": "2.0", "id": 7}),
        (("respond", 0), {"jsonrpc": "2.0", "id": 1, "result": {}}),
        (("deep", "array", 9), None),
        (("mutate", '{"a":1}'), {"a": 1}),
        (("damage", b'{"a":1'), None),
    ],
)
def test_step_sends_one_message(step: Step, sent: Any) -> None:
    assert sent_by(step) == MessageExchange(sent)


@pytest.mark.parametrize(
    "step", [("open", "2025-11-25", "whole", "late"), ("open",), ("wait",), ("page", "a", "all")]
)
def test_other_step_sends_nothing_that_a_habit_is_about(step: Step) -> None:
    assert sent_by(step) is None


def test_late_opening_sends_a_list_before_initialize() -> None:
    listed = {**REQUESTED, "method": "tools/list"}
    assert sent_by(("open", "2025-11-25", "late", "all")) == MessageExchange(listed, is_early=True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a":[1]}', {"a": [1]}),
        (b"5", 5),
        ("NaN", None),
        ("[Infinity]", None),
        ("{", None),
        (b"\xff", None),
        ("[" * 100_000, None),
        (7, None),
        (None, None),
    ],
)
def test_text_that_is_not_json_is_decoded_as_nothing(text: Any, found: Any) -> None:
    assert decoded(text) == found


LATER, ANSWER = {"id": 9, "method": "ping"}, {"id": 9, "result": {}}
LOGGED = {"method": "notifications/message", "params": {"data": "x"}}
FIRST = {**REQUESTED, "id": 4}


def line_of(sender: Any, message: Any, *, end: str = "") -> TraceLine:
    return TraceLine(t=0.0, sender=sender, raw=json.dumps(message) + end)


@pytest.mark.parametrize(
    ("lines", "received", "is_split"),
    [
        ([line_of("client", FIRST), line_of("server", LOGGED)], [LOGGED], False),
        # Before the message, nothing is a reaction to it; nor is an event of the transport sent.
        ([line_of("server", LOGGED), line_of("client", FIRST)], [], False),
        ([line_of(None, FIRST), line_of("client", FIRST)], [], False),
        ([TraceLine(t=0.0, sender="client"), line_of("client", FIRST)], [], False),
        ([TraceLine(t=0.0, sender="client", data=json.dumps(FIRST).encode())], [], False),
        # A carriage return at the end of a message is part of its line's end.
        ([line_of("client", FIRST, end="\r")], [], False),
        ([TraceLine(t=0.0, sender="client", raw='{"a":\r1}')], [], True),
        ([TraceLine(t=0.0, sender="client", data=b'\xff\r"')], [], True),
        # A response to the message itself is a reaction, the result of `initialize` isn't.
        (
            [
                line_of("client", FIRST),
                line_of("server", {"id": 4, "result": {}}),
                line_of("server", {"id": 1, "result": {"protocolVersion": "2025-11-25"}}),
            ],
            [{"id": 4, "result": {}}],
            False,
        ),
    ],
)
def test_exchange_has_what_the_server_has_sent_since_the_message(
    lines: list[TraceLine], received: list[Any], is_split: bool
) -> None:
    """The next request has a carriage return of its own here, and does not belong to it."""
    rest = [
        TraceLine(t=0.0, sender="client", raw=json.dumps(LATER).replace(" ", "\r")),
        line_of("server", ANSWER),
    ]
    found = read_exchange([*lines, *rest])
    assert found is not None
    assert (found.received, found.is_split, found.is_early) == (received, is_split, False)


@pytest.mark.parametrize(
    "answers",
    [
        [],
        [ANSWER, ANSWER],
        [{"id": 9, "error": {"code": 1}}],
        [{"id": 8, "result": {}}],
        [5],
    ],
)
def test_exchange_needs_one_result_of_the_next_request(answers: list[Any]) -> None:
    sent = [line_of("client", FIRST), line_of("client", LATER)]
    assert read_exchange([*sent, *(line_of("server", each) for each in answers)]) is None
    assert read_exchange([line_of("client", FIRST), line_of("client", 5)]) is None


# -- Predicates ------------------------------------------------------------------------------------

PROMPTS = ListedNames(prompts={"p": frozenset({"x", "y"})}, uris=frozenset({"n:1"}))


def held(name: str, sent: Any, listed: ListedNames = PROMPTS, **members: Any) -> bool:
    [habit] = [each for each in HABITS if each.name == name]
    return habit.holds(MessageExchange(sent, listed=listed, **members))


def prompt_of(name: str, **params: Any) -> dict[str, Any]:
    return {**REQUESTED, "method": "prompts/get", "params": {"name": name, **params}}


def uri_of(uri: Any) -> dict[str, Any]:
    return {**REQUESTED, "method": "resources/read", "params": {"uri": uri}}


@pytest.mark.parametrize(
    ("name", "sent", "holds"),
    [
        ("prompt-code", prompt_of("none"), True),
        ("prompt-code", prompt_of("p"), True),
        ("prompt-code", prompt_of("p", arguments={"x": "1"}), True),
        ("prompt-code", prompt_of("p", arguments={"x": "1", "y": "2"}), False),
        ("prompt-code", prompt_of("p", arguments=[]), False),
        ("prompt-code", {**prompt_of("none"), "id": None}, False),
        ("prompt-code", {**prompt_of("none"), "id": True}, False),
        ("prompt-code", {**prompt_of("none"), "method": "tools/call"}, False),
        ("resource-code", uri_of("n:2"), True),
        ("resource-code", uri_of("n:1"), False),
        ("resource-code", uri_of(5), False),
        ("drops-batches", [REQUESTED], True),
        ("drops-batches", [5, REQUESTED], True),
        ("drops-batches", [{**REQUESTED, "method": "tools/call"}], False),
        ("drops-batches", [{"jsonrpc": "2.0", "method": "a"}], False),
        ("drops-batches", [], False),
        ("drops-batches", REQUESTED, False),
    ],
)
def test_predicate_holds_for_what_the_author_has_no_code_for(
    name: str, sent: Any, holds: bool
) -> None:
    assert held(name, sent) is holds


def test_resource_can_be_of_a_template() -> None:
    listed = ListedNames(has_templates=True)
    assert not held("resource-code", uri_of("n:2"), listed)


def test_list_is_served_early_only_before_initialize() -> None:
    listed = {**REQUESTED, "method": "prompts/list"}
    assert held("serves-early", listed, is_early=True)
    assert not held("serves-early", listed)
    assert not held("serves-early", {**listed, "method": "ping"}, is_early=True)
    assert not held("serves-early", {"jsonrpc": "2.0", "method": "a/list"}, is_early=True)
