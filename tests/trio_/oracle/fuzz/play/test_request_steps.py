"""Steps that send a request: what it has, how many there are, and where it is cut."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest

from mcp_trio.oracle.fuzz.play import _request_steps
from mcp_trio.oracle.fuzz.play._play import Play
from mcp_trio.oracle.fuzz.play._player import play_case
from mcp_trio.oracle.fuzz.play._request_steps import MAX_BURST, REQUEST_STEPS
from mcp_trio.oracle.fuzz.play._stress_budget import MAX_CONNECTIONS
from tests.trio_.oracle.fuzz.memory_http import played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import (
    NEW,
    OLD,
    MemoryTarget,
    NotingSession,
    answers,
    conversation,
    same_each_time,
    sent_with,
)

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


# -- What each step sends --------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(7))
async def test_request_is_cut_within_a_character_an_escape_or_the_json(
    place: int, autojump_clock: Any
) -> None:
    """Each place cuts where a reader of bytes, of characters or of JSON could fail."""
    session = await conversation(("parts", "body", place))
    [(body, how, cut)] = session.parts
    assert how == "body"
    assert json.loads(body)["method"] == "tools/list"
    first, rest = body[:cut], body[cut:]
    match place % 6:
        case 0 | 1:  # within a character of two bytes, and one of four
            size = (2, 4)[place % 6]
            with pytest.raises(UnicodeDecodeError) as excinfo:
                first.decode()
            assert len(body[excinfo.value.start :].decode()[0].encode()) == size
        case 2:
            assert first.endswith(b"\\u0")
        case 3:
            assert first == b"{"
        case 4:
            assert rest == b"}"
        case _:
            assert abs(len(first) - len(rest)) <= 1


@pytest.mark.parametrize(
    ("extra", "revision", "members"),
    [
        ((), OLD, {"name", "arguments"}),
        (("task",), OLD, {"name", "arguments", "task"}),
        (("task",), NEW, {"name", "arguments", "_meta"}),
        (("progress",), OLD, {"name", "arguments", "_meta"}),
        (("text",), OLD, {"name", "arguments"}),
    ],
)
async def test_call_has_what_it_is_to_have(
    extra: tuple[str, ...], revision: str, members: set[str], autojump_clock: Any
) -> None:
    session = await conversation(("call", "add", {"a": 1}, extra), revision=revision)
    [message] = sent_with(session, "tools/call")
    assert message["params"].keys() == members
    assert (message["params"]["name"], message["params"]["arguments"]) == ("add", {"a": 1})
    assert isinstance(message["id"], str) is ("text" in extra)
    token = message["params"].get("_meta", {}).get("progressToken")
    assert isinstance(token, int) is ("progress" in extra)
    assert message["params"].get("task") == ({"ttl": 60_000} if "task" in members else None)


LIST = ("request", "tools/list")
SILENT = ("tools/list", "tools/call")


def drops_lists(message: Any) -> Any:
    return iter(()) if message.get("method") in SILENT else answers(message)


@pytest.mark.parametrize(
    ("steps", "cancelled"),
    [
        ([LIST, ("cancel", 0)], [0]),
        ([LIST, LIST, ("cancel", 1)], [1]),
        ([LIST, LIST, ("cancel", 2)], [0]),
        ([LIST, LIST, ("cancel", 0), ("cancel", 0)], [0, 1]),
        ([LIST, ("cancel", 0), ("cancel", 0)], [0]),
        ([("cancel", 0)], []),
        ([LIST, ("cancel", -1)], [None]),  # of no request
    ],
)
async def test_cancel_is_for_an_open_request(
    steps: list[Any], cancelled: list[int | None], autojump_clock: Any
) -> None:
    session = await conversation(*steps, respond=drops_lists)
    ids = [each["id"] for each in sent_with(session, "tools/list")]
    found = [each["params"]["requestId"] for each in sent_with(session, "notifications/cancelled")]
    assert [ids.index(each) if each in ids else None for each in found] == cancelled


async def test_initialize_is_never_cancelled(autojump_clock: Any) -> None:
    target = MemoryTarget(same_each_time(lambda message: iter(())))
    target.session_class = NotingSession
    session: Any = await target.open()
    async with aclosing(session):
        await session.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        play = Play(session, 2.0)
        await REQUEST_STEPS["cancel"](play, 0)
    assert [each["method"] for each in session.said] == ["initialize"]
    assert play.before_cancel == 0


@pytest.mark.parametrize(("revision", "count"), [(OLD, 1), (NEW, 0)])
async def test_response_to_nothing_is_sent_where_clients_respond(
    revision: str, count: int, autojump_clock: Any
) -> None:
    session = await conversation(("reply", "none", {"result": {}, "id": 5}), revision=revision)
    found = [each for each in session.said if "result" in each]
    assert found == [{"result": {}, "id": "none", "jsonrpc": "2.0"}] * count


async def test_third_id_of_a_burst_is_made_of_digits(autojump_clock: Any) -> None:
    session = await conversation(("burst", 5, "x/y"))
    ids = [each["id"] for each in sent_with(session, "x/y")]
    assert [type(each) for each in ids] == [str, int, int, str, int]
    assert ids[0].isdigit()
