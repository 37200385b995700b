"""Steps that send a request: their params, with and without, and how many."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_trio.oracle.fuzz.play import _request_steps
from mcp_trio.oracle.fuzz.play._player import play_case
from mcp_trio.oracle.fuzz.play._request_steps import MAX_BURST
from mcp_trio.oracle.fuzz.play._stress_budget import MAX_CONNECTIONS
from tests.trio_.oracle.fuzz.memory_http import played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import OLD, MemoryTarget, answers

OPEN = ("open", OLD, "whole", "all")


@pytest.mark.parametrize(
    ("step", "params"),
    [
        (("request", "x/y"), None),
        (("request", "x/y", {}), None),
        (("request", "x/y", "absent"), None),
        (("request", "x/y", {"a": 1}), {"a": 1}),
        (("request", "x/y", [1]), [1]),
        (("request", "x/y", ""), ""),
        (("notify", "x/y"), None),
        (("notify", "x/y", {}), None),
        (("notify", "x/y", {"a": 1}), {"a": 1}),
        (("notify", "x/y", ""), ""),
        (("burst", 2, "x/y"), None),
        (("burst", 2, "x/y", {}), None),
        (("burst", 2, "x/y", {"a": 1}), {"a": 1}),
        (("burst", 2, "x/y", ""), ""),
        (("head", "accept", "x/y"), None),
        (("head", "accept", "x/y", {"a": 1}), {"a": 1}),
    ],
)
async def test_step_without_params_sends_none(
    step: tuple[Any, ...], params: Any, autojump_clock: Any
) -> None:
    """A finding's case is shortened word by word, so the last words may be missing."""
    _, received = await played_over_http(response_to, [OPEN, step])
    sent = [each for each in received if each.get("method") == "x/y"]
    assert len(sent) == (2 if step[0] == "burst" else 1)
    assert [each.get("params") for each in sent] == [params] * len(sent)
    assert all(("params" in each) is (params is not None) for each in sent)


async def test_burst_has_different_ids_and_a_limit(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case from a file may name any number. Over HTTP each request has a connection."""
    assert (MAX_BURST, MAX_CONNECTIONS) == (500, 200)
    monkeypatch.setattr(_request_steps, "MAX_BURST", 100)
    monkeypatch.setattr(_request_steps, "MAX_CONNECTIONS", 40)
    received: list[Any] = []

    def respond(message: Any, start: int) -> Any:
        received.append(message)
        return answers(message)

    case = [OPEN, ("burst", 10**9, "x/y", {})]
    await play_case(MemoryTarget(respond), case)
    ids = [each["id"] for each in received if each.get("method") == "x/y"]
    assert len(ids) == len(set(map(repr, ids))) == 100
    assert {type(each) for each in ids} == {int, str}
    _, received = await played_over_http(response_to, case)
    assert sum(each.get("method") == "x/y" for each in received) == 40
