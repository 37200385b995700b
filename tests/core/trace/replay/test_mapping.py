"""The live values that take the place of recorded ones in later requests."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace.replay import _mapping
from mcp_core.trace.replay._mapping import ValueMapping

OLD, NEW = "order-1234", "order-9876"


def learnt(method: str, recorded: Any, live: Any) -> ValueMapping:
    mapping = ValueMapping()
    mapping.learn_result(method, recorded, live)
    return mapping


def nested(depth: int, value: Any) -> Any:
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    ("recorded", "live", "value", "expected"),
    [
        # Ids of the server's own, in texts that have the form of one
        ({"a": OLD}, {"a": NEW}, {"b": [OLD]}, {"b": [NEW]}),
        ([1, {"a": [OLD]}], [1, {"a": [NEW]}], OLD, NEW),
        ([OLD, "x"], [NEW], OLD, NEW),
        ({"b": 1, "a": OLD}, {"a": NEW}, OLD, NEW),
        ({"a": OLD}, {"b": NEW}, OLD, OLD),
        ({"a": OLD}, {"a": [NEW]}, OLD, OLD),
        ({"a": "word"}, {"a": NEW}, "word", "word"),
        ({"a": OLD}, {"a": "word"}, OLD, OLD),
        ({"a": OLD}, {"a": NEW}, {"name": OLD}, {"name": OLD}),
        # Members that the protocol defines, of any form, under their own name
        ({"taskId": "x"}, {"taskId": "y"}, {"taskId": "x", "a": "x"}, {"taskId": "y", "a": "x"}),
        ({"nextCursor": "x"}, {"nextCursor": "y"}, {"cursor": "x"}, {"cursor": "y"}),
        ({"nextCursor": "x"}, {"nextCursor": "y"}, {"nextCursor": "x"}, {"nextCursor": "x"}),
        ({"requestState": 1}, {"requestState": 2}, {"requestState": 1}, {"requestState": 1}),
    ],
)
def test_value_of_a_result_takes_the_place_of_the_recorded_one(
    recorded: Any, live: Any, value: Any, expected: Any
) -> None:
    assert learnt("tools/call", recorded, live).apply(value) == expected


def test_entries_of_a_list_teach_only_what_the_protocol_defines() -> None:
    """They may come in another order."""
    mapping = learnt("tasks/list", {"a": OLD, "nextCursor": "x"}, {"a": NEW, "nextCursor": "y"})
    assert mapping.apply({"a": OLD, "cursor": "x"}) == {"a": OLD, "cursor": "y"}


def test_input_requests_are_matched_by_method_in_their_order() -> None:
    """A key that both have stands for itself, and each live one is taken once."""
    form, roots = {"method": "elicitation/create"}, {"method": "roots/list"}
    recorded = {
        "same": {**form, "a": OLD},
        "f1": form,
        "r": roots,
        "f2": form,
        "odd": 1,
        "f3": form,
    }
    live = {"n1": roots, "n0": 2, "n2": form, "same": {**form, "a": NEW}, "n3": form}
    mapping = learnt("tools/call", {"inputRequests": recorded}, {"inputRequests": live})
    answers = {name: {"v": OLD} for name in recorded}
    assert mapping.apply({"inputResponses": answers}) == {
        "inputResponses": {name: {"v": NEW} for name in ("same", "n2", "n1", "n3", "odd", "f3")}
    }


@pytest.mark.parametrize("recorded", [[], {"k": {"method": "roots/list"}}])
@pytest.mark.parametrize("live", [None, [], "x"])
def test_input_requests_of_a_wrong_form_teach_nothing(recorded: Any, live: Any) -> None:
    mapping = learnt("tools/call", {"inputRequests": recorded}, {"inputRequests": live})
    assert mapping.apply({"inputResponses": {"k": 1}}) == {"inputResponses": {"k": 1}}


@pytest.mark.parametrize(("depth", "is_learnt"), [(100, True), (101, False)])
def test_value_is_learnt_and_replaced_down_to_a_depth(depth: int, is_learnt: bool) -> None:
    """No message may exhaust Python's stack."""
    deep = learnt("tools/call", nested(depth, OLD), nested(depth, NEW))
    assert deep.apply(OLD) == (NEW if is_learnt else OLD)
    flat = learnt("tools/call", OLD, NEW)
    assert flat.apply(nested(depth, OLD)) == nested(depth, NEW if is_learnt else OLD)


def test_values_are_learnt_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_mapping, "_MAX_VALUES", 2)
    mapping = learnt("tools/call", {"taskId": "x", "a": OLD}, {"taskId": "y", "a": NEW})
    mapping.learn("order-5", "order-6")
    mapping.learn("order-7", "order-8")
    assert mapping.apply([OLD, "order-5", "order-7"]) == [NEW, "order-6", "order-7"]


@pytest.mark.parametrize("names", [("inputResponses", "key"), ("x",)])
@pytest.mark.parametrize(("depth", "is_applied"), [(99, True), (100, True), (101, False)])
def test_values_are_replaced_up_to_100_levels_deep(
    names: tuple[str, ...], depth: int, is_applied: bool
) -> None:
    """A response to an input request, with its key, is one level."""
    mapping = ValueMapping()
    mapping.learn({"a": "order-1"}, {"a": "order-2"})
    value: Any = "order-1"
    for _ in range(depth):
        for name in reversed(names):
            value = {name: value}
    found = mapping.apply(value)
    for name in names * depth:
        found = found[name]
    assert found == ("order-2" if is_applied else "order-1")


@pytest.mark.parametrize(("depth", "is_learned"), [(49, True), (50, False)])
def test_values_in_input_requests_of_other_keys_are_learned_as_deep(
    depth: int, is_learned: bool
) -> None:
    """Each of them is two levels."""
    mapping = ValueMapping()
    recorded: Any = {"a": "order-1"}
    live: Any = {"a": "order-2"}
    for _ in range(depth):
        recorded = {"inputRequests": {"old": {"method": "m", "params": recorded}}}
        live = {"inputRequests": {"new": {"method": "m", "params": live}}}
    mapping.learn(recorded, live)
    assert mapping.apply("order-1") == ("order-2" if is_learned else "order-1")


@pytest.mark.parametrize(("depth", "is_learned"), [(100, True), (101, False)])
@pytest.mark.parametrize("is_list", [True, False])
def test_values_are_learned_up_to_100_levels_deep(
    depth: int, is_learned: bool, is_list: bool
) -> None:
    mapping = ValueMapping()
    recorded: Any = "order-1"
    live: Any = "order-2"
    for _ in range(depth):
        recorded, live = ([recorded], [live]) if is_list else ({"x": recorded}, {"x": live})
    mapping.learn(recorded, live)
    assert mapping.apply("order-1") == ("order-2" if is_learned else "order-1")
