"""Valid messages of each revision: their methods, their `_meta`, and what is drawn for them."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import ALL, DIALECTS, LATEST, Role
from mcp_core import types as t
from mcp_trio.oracle.strategies._messages import (
    VERSIONS,
    messages,
    meta_of,
    methods,
    notifications,
    objects,
    requests,
    responses,
    result_of,
)
from mcp_trio.oracle.strategies._values import ids
from tests.trio_.oracle.strategies.played_draw import PlayedDraw
from tests.trio_.oracle.strategies.test_values import drawn

OLD, NEW = "2025-11-25", "2026-07-28"
NEW_META = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientCapabilities": {},
}
IDS = repr(ids())


def build_of(strategy: Any) -> Any:
    """Return the function that hypothesis has made a strategy of."""
    return strategy.wrapped_strategy.definition


def row_of(version: str, to: Role, name: str) -> Any:
    return DIALECTS[version].receives[to][name]


def test_revisions_are_those_of_the_core_the_oldest_first() -> None:
    assert tuple(reversed(ALL)) == VERSIONS


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("to", [Role.CLIENT, Role.SERVER])
def test_methods_are_requests_or_notifications(version: str, to: Role) -> None:
    rows = DIALECTS[version].receives[to]
    asked, told = (methods(version, to, requests=each) for each in (True, False))
    assert {*asked, *told} == {*rows.values()}
    assert all(each.result is not None for each in asked)
    assert all(each.result is None for each in told)


def test_request_without_a_handshake_has_its_meta() -> None:
    assert meta_of(NEW) == NEW_META
    assert meta_of(OLD) == {}


def test_result_has_the_type_of_its_revision() -> None:
    assert result_of(NEW, {"a": 1}) == {"resultType": "complete", "a": 1}
    assert result_of(NEW, {"resultType": "task"}) == {"resultType": "task"}
    assert result_of(OLD, {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("version", "to", "name", "choices", "message"),
    [
        (
            OLD,
            Role.SERVER,
            "tools/list",
            (False, {"cursor": "c"}, 5),
            {"id": 5, "method": "tools/list", "params": {"cursor": "c"}},
        ),
        (
            OLD,
            Role.SERVER,
            "tools/list",
            (True, "token", {}, 5),
            {"id": 5, "method": "tools/list", "params": {"_meta": {"progressToken": "token"}}},
        ),
        (OLD, Role.SERVER, "ping", (False, {}, 5), {"id": 5, "method": "ping"}),
        (
            NEW,
            Role.SERVER,
            "tools/list",
            (False, {"cursor": "c"}, 5),
            {"id": 5, "method": "tools/list", "params": {"cursor": "c", "_meta": NEW_META}},
        ),
        (OLD, Role.CLIENT, "ping", (False, {}, 5), {"id": 5, "method": "ping"}),
    ],
)
def test_request_has_drawn_params_and_the_meta_of_its_revision(
    version: str, to: Role, name: str, choices: tuple[Any, ...], message: Any
) -> None:
    draw = PlayedDraw(row_of(version, to, name), *choices)
    assert build_of(requests(version, to))(draw) == {"jsonrpc": "2.0", **message}
    assert draw.asked[1] == "booleans()"
    assert draw.asked[-1] == IDS


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        ("notifications/initialized", ({},), {"method": "notifications/initialized"}),
        (
            "notifications/cancelled",
            ({"reason": "x", "requestId": 1}, "id"),
            {
                "method": "notifications/cancelled",
                "params": {"reason": "x", "requestId": "id"},
            },
        ),
    ],
)
def test_notification_has_drawn_params(name: str, choices: tuple[Any, ...], message: Any) -> None:
    draw = PlayedDraw(row_of(OLD, Role.SERVER, name), *choices)
    assert build_of(notifications(OLD))(draw) == {"jsonrpc": "2.0", **message}


@pytest.mark.parametrize(
    ("version", "choices", "message"),
    [
        (OLD, (3, 0, -32000, "no"), {"error": {"code": -32000, "message": "no"}}),
        (OLD, (3, 1, t.ListToolsResult, {"tools": []}), {"result": {"tools": []}}),
        (
            NEW,
            (3, 3, t.ListToolsResult, {"tools": []}),
            {"result": {"resultType": "complete", "tools": []}},
        ),
        (OLD, (3, 2, None, -32700, "no"), {"error": {"code": -32700, "message": "no"}}),
    ],
)
def test_response_is_an_error_once_in_four(
    version: str, choices: tuple[Any, ...], message: Any
) -> None:
    draw = PlayedDraw(*choices)
    assert build_of(responses(version))(draw) == {"jsonrpc": "2.0", "id": 3, **message}
    assert draw.asked[:2] == ["1..5", "0..3"]
    if "error" in message:
        assert draw.asked[-2:] == ["-32800..-31999", "text"]


def test_objects_of_a_revision_are_fixed_ones_twice_in_three() -> None:
    """The fixed ones have the fewest members or all, without `_meta` and `resultType`."""
    draw = PlayedDraw(0, "x")
    build_of(objects(NEW, t.ListToolsResult))(draw)
    table, fixed = draw.asked
    assert table == "sampled_from([0, 0, 1])"
    few, full = eval(fixed, {"sampled_from": tuple})
    assert set(few) < set(full)
    assert "nextCursor" in full
    assert not {"_meta", "resultType"} & set(full)


def test_messages_are_all_that_a_side_may_receive() -> None:
    """Without a handshake a server sends no requests. By default it is the newest revision's."""
    assert not methods(NEW, Role.CLIENT, requests=True)
    assert repr(messages(NEW, Role.CLIENT)) == "one_of(build(), build())"
    assert repr(messages(OLD, Role.CLIENT)) == "one_of(build(), build(), build())"
    found = drawn(messages(), 30)
    asked = [each["params"]["_meta"] for each in found if {"method", "id"} <= each.keys()]
    assert {each["io.modelcontextprotocol/protocolVersion"] for each in asked} == {LATEST}
    assert any("method" not in each for each in found)
