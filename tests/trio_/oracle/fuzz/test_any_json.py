"""A peer whose messages have members of any JSON type: no part of the fuzzer fails at it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

from mcp_core import ConnectFailed
from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._probe import Offers, probe
from mcp_trio.oracle.fuzz._shared_trace import new_header
from mcp_trio.oracle.fuzz.client._client_session import ClientSession
from mcp_trio.oracle.fuzz.client._script import PUSHES
from mcp_trio.oracle.fuzz.draw._cases import CaseSource
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.play._player import Player, play_case
from tests.core.trace.judge.test_any_json import METHODS, PARAMS, RESULTS, VALUES, with_members

from .memory_target import NEW, OLD, MemoryTarget, answers, broken_in, played

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STEPS: list[Any] = [
    ("request", "tools/list", {}),
    ("call", "a", {}, ("progress", "task")),
    ("wait",),
    ("page", "tools/list", "all"),
    ("page", "tools/list", "stale"),
    ("retry", 0, "right"),
    ("retry", 0, "altered"),
    ("task", 0, "follow"),
    ("task", 0, "cancel"),
    ("respond", 0, "right"),
    ("respond", 0, "id"),
    ("progress", 0),
    ("listen", {"resourceSubscriptions": ["a"]}),
    ("reconnect",),
    ("mutate", '{"jsonrpc":"2.0","id":[1],"method":"tools/call","params":{"name":["a"]}}'),
    ("damage", b'[{"id":{},"method":["tools/call"],"params":{"name":{}}}]'),
]


def run(function: Any, *arguments: Any) -> Any:
    return trio.run(function, *arguments, clock=MockClock(autojump_threshold=0))


def odd_server(value: Any) -> MemoryTarget:
    """Return a server that answers with the value everywhere, but for its handshake."""

    def odd(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if "id" not in message or "method" not in message:
            return
        items = [with_members([*PARAMS, *RESULTS], value), {"name": value, "inputSchema": value}]
        lists = dict.fromkeys(("tools", "prompts", "resources", "resourceTemplates"), items)
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        yield {"jsonrpc": "2.0", "id": value, "method": "roots/list", "params": value}
        yield {"jsonrpc": "2.0", "id": value, "result": value}
        yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": items[0]}
        if message["method"] in ("initialize", "server/discover"):
            for each in answers(message):
                more: Any = {"capabilities": {key: {} for key in ("tools", "prompts", "resources")}}
                yield {**each, "result": {**each["result"], **more, "_meta": value}}
        elif message["method"] == "tools/call":
            yield {**reply, "result": {**items[0], "resultType": "input_required"}}
        else:
            yield {**reply, "result": {**items[0], **lists, "nextCursor": "a"}}

    return MemoryTarget(odd)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_probe_and_draw_of_odd_server_raise_nothing(value: Any) -> None:
    try:
        offers: Offers = run(probe, odd_server(value), (NEW, OLD), 5.0)
    except ConnectFailed:
        return
    tools = [str(each["name"]) for each in offers.tools if isinstance(each.get("name"), str)]
    assert CaseSource(CaseChoices(offers, tools), 1).draw(2)


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_play_against_odd_server_raises_nothing(value: Any, revision: str) -> None:
    case = [("open", revision, "whole", "all"), *STEPS]
    run(play_case, odd_server(value), case, Player(0.5))


def test_tools_whose_names_are_lists_are_listed() -> None:
    offers: Offers = run(probe, odd_server([1]), (NEW, OLD), 5.0)
    assert [1] in [each.get("name") for each in offers.tools]


@pytest.mark.parametrize(
    ("value", "push"),
    [
        pytest.param(value, push, marks=[pytest.mark.long] * bool((at + place) % len(VALUES)))
        for at, value in enumerate(VALUES)
        for place, push in enumerate(PUSHES)
    ],
)
def test_server_of_odd_client_raises_nothing(value: Any, push: str) -> None:
    """The client under test may send anything, and only its own faults may count."""

    async def play() -> None:
        session = ClientSession(new_header("server", "stdio", "odd"), keep=True)
        steps = [("push", push, place, number) for place in range(4) for number in range(3)]
        session.begin_case([("serve", [OLD, NEW], ["a"]), *steps])
        session.begin_conversation()
        said = [
            {"id": id, "method": method, "params": params}
            for method in METHODS
            for id in (1, value)
            for params in (value, with_members(PARAMS, value))
        ]
        said += [{"id": value, "result": value}, {"id": 5_001, "error": value}, {"method": value}]
        for message in (*said, value, [value]):
            whole = {"jsonrpc": "2.0"} | message if isinstance(message, dict) else message
            line = TraceLine(t=0.0, sender="client", raw=json.dumps(whole))
            for reaction in session.receive(line):
                for action in reaction.actions:
                    session.note_sent(action.data or b"")
        session.close_judge()
        session.describe()

    run(play)


@pytest.mark.parametrize("first", [("request", "ping", {}), ("serve", [OLD], ["sum"])], ids=repr)
def test_smaller_cases_of_a_cancellation_need_no_hash(first: Any) -> None:
    """A case can begin with a step that has lists or objects in it."""
    campaign = played(MemoryTarget(broken_in(set())), tools=("a",))
    fault = TargetFault(kind="row", row="CXL-7", method="tools/call")
    call: Any = ("call", "a", {}, ())
    few = campaign._examiner._few_steps(fault, [first, call, ("cancel", 0)])
    assert [first, call] in [each[:2] for each in few]
