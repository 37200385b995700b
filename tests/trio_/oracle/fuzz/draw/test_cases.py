"""Drawn cases: repeatable, storable, and nothing that the user has not allowed."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest

from mcp_core import ALL, LATEST
from mcp_trio.oracle.fuzz._case import (
    CLIENT_MARKS,
    Case,
    check_case,
    client_of,
    encode_case,
    own_step,
)
from mcp_trio.oracle.fuzz._damage import has_damage
from mcp_trio.oracle.fuzz._probe import Offers, may_call_by_hint
from mcp_trio.oracle.fuzz.draw import _cases
from mcp_trio.oracle.fuzz.draw._cases import OPENINGS, CaseSource
from mcp_trio.oracle.fuzz.draw._choices import TASKS, CaseChoices, _text_arguments
from mcp_trio.oracle.fuzz.draw._damaging import _is_doubtful
from mcp_trio.oracle.fuzz.draw._drawing import Drawing
from mcp_trio.oracle.fuzz.draw._requests import _completion
from tests.levels import long
from tests.trio_.oracle.fuzz.draw.every_draw import EachDraw

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def choices(*, http: bool = False) -> CaseChoices:
    offers = Offers(
        revisions=list(ALL),
        capabilities={each: {"tasks": {}} for each in ALL},
        tools=[{"name": name, "inputSchema": SCHEMA} for name in ("add", "remove", "drop")],
        prompts=[{"name": "greet", "arguments": [{"name": "who"}]}],
        resources=[{"uri": "note:///one"}],
    )
    return CaseChoices(offers, ["add"], http=http)


def drawn(seed: int, count: int = 150, *, http: bool = False) -> list[Case]:
    return CaseSource(choices(http=http), seed).draw(count)


@pytest.fixture(scope="module")
def stdio_cases() -> list[Case]:
    """The first 400 cases of a seed, for a server over stdio."""
    return drawn(8, 400)


@pytest.fixture(scope="module")
def http_cases() -> list[Case]:
    """The first 400 cases of a seed, for a server over HTTP."""
    return drawn(9, 400, http=True)


def test_cases_of_one_seed_are_the_same() -> None:
    assert drawn(1, 20) == drawn(1, 20)
    assert drawn(1, 20) != drawn(2, 20)


def test_cases_can_be_stored_as_json(stdio_cases: list[Case]) -> None:
    for case in stdio_cases[:150]:
        json.dumps(encode_case(case), allow_nan=False)


def test_cases_open_every_revision(stdio_cases: list[Case]) -> None:
    found = stdio_cases[:150]
    assert {case[0][1] for case in found} == set(ALL)
    assert {case[0][0] for case in found} == {"open"}


def test_cases_call_allowed_tools_only(http_cases: list[Case]) -> None:
    for case in http_cases:
        for step in map(own_step, case):
            if step[0] == "call":
                assert step[1] == "add"
            if step[0] in ("request", "burst", "head") and "tools/call" in step:
                params = step[3] if step[0] in ("burst", "head") else step[2]
                name = params.get("name") if isinstance(params, dict) else None
                assert name not in ("remove", "drop")
            if step[0] in ("mutate", "damage"):
                assert "tools/call" not in str(step[1])


@pytest.mark.long
def test_name_that_does_not_exist_is_requested_after_its_whole_list() -> None:
    """The judge knows from the list that it doesn't exist, or what is required."""
    names = ("tools", "prompts", "resources", "completions", "logging")
    offers = Offers(
        revisions=["2025-11-25"],
        tools=[{"name": "add", "inputSchema": SCHEMA}],
        prompts=[{"name": "greet", "arguments": [{"name": "name", "required": True}]}],
        templates=[{"uriTemplate": "note:///{name}{?page,size*,part:3}"}, {"uriTemplate": 5}, {}],
        capabilities={"2025-11-25": {each: {} for each in names}},
    )
    choices = CaseChoices(offers, ("add",))
    assert [name for _, name in choices.completed] == ["name", "name", "page", "size", "part"]
    cases = CaseSource(choices, 9).draw(400)
    pairs = [
        (before[1], step)
        for case in cases
        for before, step in itertools.pairwise(case)
        if before[0] == "page" and before[2] == "all"
    ]
    asked = {(listed, step[1], str(step[2])) for listed, step in pairs if step[0] == "request"}
    unknown = ("mcp-trio-fuzz-none", "mcp-trio-fuzz://none")
    found = {method for _, method, params in asked if any(each in params for each in unknown)}
    assert found >= {"tools/call", "prompts/get", "completion/complete", "resources/read"}
    assert ("prompts/list", "prompts/get", "{'name': 'greet', 'arguments': {}}") in asked
    assert ("tools/list", ("call", "add", {}, ())) in pairs
    completed = {
        step[2]["argument"]["name"]
        for case in cases
        for step in case
        if step[1:2] == ("completion/complete",) and isinstance(step[2], dict) and "ref" in step[2]
    }
    assert {"name", "page"} <= completed
    levels = [step[2] for case in cases for step in case if step[1:2] == ("logging/setLevel",)]
    assert {"level": "mcp-trio-fuzz-none"} in levels


@pytest.mark.parametrize(
    ("prompts", "templates", "drawn"),
    [
        ([{"name": "p"}], [], {("p", "a")}),
        ([{"name": "p", "arguments": [{"name": "x"}]}], [], {("p", "x"), ("p", "a")}),
        ([], [{"uriTemplate": "n:///{x}"}], {("n:///{x}", "x")}),
    ],
)
def test_completion_is_of_a_listed_argument_or_of_another_one_of_a_prompt(
    prompts: Any, templates: Any, drawn: set[tuple[str, str]]
) -> None:
    choices = CaseChoices(Offers(revisions=[LATEST], prompts=prompts, templates=templates), ())
    seven: Any = lambda strategy: 7  # noqa: E731
    draw = Drawing(seven)
    found = [_completion(draw, choices) for _ in range(50)]
    pairs = {
        (each["ref"].get("name", each["ref"].get("uri")), each["argument"]["name"])
        for each in found
    }
    assert pairs == drawn
    assert {each["argument"]["value"] for each in found} == {"", 7}  # any value begins with ""


def test_cases_read_listed_resources_only(stdio_cases: list[Case]) -> None:
    allowed = {"note:///one", "mcp-trio-fuzz://none"}
    for case in stdio_cases:
        for step in case:
            if step[0] == "request" and str(step[1]).startswith("resources/"):
                params = step[2]
                if isinstance(params, dict) and "uri" in params:
                    assert params["uri"] in allowed
            if step[0] == "mutate":
                assert "resources/read" not in step[1]


def test_subscriptions_are_drawn_with_calls_of_tools_that_change_something() -> None:
    offers = Offers(
        revisions=["2026-07-28"],
        tools=[{"name": name, "inputSchema": SCHEMA} for name in ("add", "change", "list")],
        capabilities={"2026-07-28": {"tools": {"listChanged": True}}},
    )
    found = CaseChoices(offers, ["add", "change", "list"])
    found.changers = ["change"]
    calls: Counter[str] = Counter()
    for case in CaseSource(found, 10).draw(150):
        for before, step in itertools.pairwise(case):
            if before[0] == "listen" and step[0] == "call":
                calls[step[1]] += 1
    assert calls["change"] > calls["add"] + calls["list"]


def _special(case: Case) -> str:
    """Return how a case begins or ends in a special way, "" if it doesn't."""
    names = {step[0] for step in case}
    if "reconnect" in names:
        return "versions"
    return "disconnect" if "disconnect" in names else "" if case[0][2] == "whole" else case[0][2]


@pytest.mark.parametrize("seed", [0, long(1), long(2)])
def test_special_beginnings_and_ends_are_drawn_soon_and_then_seldom(seed: int) -> None:
    found = [_special(case) for case in drawn(seed, 200)]
    assert {each for each in found[:100] if each} == {*OPENINGS, "disconnect"}
    assert sum(map(bool, found[:100])) <= 14
    assert sum(map(bool, found[100:])) <= 4


def test_revision_that_a_server_may_not_hold_is_asked_for_after_another() -> None:
    """It was selected for another one, and asked for, it wasn't. The first number decides."""
    answers = {"2025-06-18": "2025-03-26", "2025-03-26": "2024-11-05", "2024-11-05": "2024-11-05"}
    choices = CaseChoices(Offers(revisions=["2025-06-18"], answers=answers), [])
    with patch.object(_cases, "Drawing", lambda draw: EachDraw([])):
        [case] = CaseSource(choices, 3).draw(1)
    assert case == [
        ("open", "2025-06-18", "whole", "all"),
        ("reconnect",),
        ("open", "2025-03-26", "whole", "all"),
    ]


def test_damage_is_in_few_cases_and_there_in_many_steps(stdio_cases: list[Case]) -> None:
    damaged = [case for case in stdio_cases if has_damage(case)]
    assert 30 < len(damaged) < 80
    assert sum(has_damage([step]) for case in damaged for step in case) > 2 * len(damaged)
    others = [step for case in damaged for step in case if not has_damage([step])]
    assert {"request", "call"} <= {step[0] for step in others}


@pytest.mark.parametrize("cases", ["stdio_cases", "http_cases"])
def test_damage_is_drawn_in_old_revisions_too(cases: str, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue(cases)
    revisions = {case[0][1] for case in found if has_damage(case)}
    assert revisions > {"2026-07-28", "2025-11-25"}


def test_cases_over_http_have_steps_of_http(
    stdio_cases: list[Case], http_cases: list[Case]
) -> None:
    of_http = {"head", "get", "delete", "half"}
    assert of_http <= {step[0] for case in http_cases for step in case}
    assert of_http.isdisjoint(step[0] for case in stdio_cases for step in case)


def test_cases_over_http_have_a_second_client_now_and_then(
    stdio_cases: list[Case], http_cases: list[Case]
) -> None:
    second = [case for case in http_cases if any(map(client_of, case))]
    assert 0.1 < len(second) / len(http_cases) < 0.4
    for case in second:
        check_case(case)
    assert {case[0][1] for case in second} == set(ALL)
    assert not any(client_of(step) for case in stdio_cases for step in case)


def test_each_meeting_of_two_clients_is_drawn_in_turn(http_cases: list[Case]) -> None:
    found = [step for case in http_cases[:300] for step in case]
    heads = [step for step in found if step[:2] == ("head", "no-session")]
    assert len(heads) >= 4


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_both_clients_call_a_tool_with_texts_of_their_own(revision: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    offers = Offers(revisions=[revision], tools=[{"name": "echo", "inputSchema": schema}])
    found = CaseSource(CaseChoices(offers, ["echo"], http=True), 10).draw(200)
    calls = [step for case in found for step in case if own_step(step)[0] == "call"]
    texts = {
        (client_of(step), arguments["a"])
        for step in calls
        if isinstance(arguments := own_step(step)[2], dict) and arguments.get("a") in CLIENT_MARKS
    }
    assert texts == set(enumerate(CLIENT_MARKS))
    assert CLIENT_MARKS[0] not in CLIENT_MARKS[1]


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}, ["a"]),
        ({"properties": {"a": {"type": "string", "enum": ["x"]}}}, []),
        ({"properties": {"a": {"type": "string", "maxLength": 3}}}, []),
        ({"properties": {"a": {"type": "string", "title": "A", "default": ""}}}, ["a"]),
        ({"properties": {"a": True}}, []),
        ({"properties": 1}, []),
        (True, []),
        (None, []),
    ],
)
def test_arguments_of_any_text_are_known_by_their_schema(schema: Any, names: list[str]) -> None:
    assert _text_arguments({"name": "t", "inputSchema": schema}) == names


def test_tool_with_repeated_argument_is_called_with_wrong_headers() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    offers = Offers(
        revisions=list(ALL),
        tools=[
            {"name": "plain", "inputSchema": SCHEMA},
            {"name": "mirrored", "inputSchema": schema},
            {"name": "invalid", "inputSchema": {"x-mcp-header": "B"}},
        ],
    )
    names = ["plain", "mirrored", "invalid"]
    found = CaseSource(CaseChoices(offers, names, http=True), 8).draw(200)
    steps = [(case[0][1], each) for case in found for each in case if each[1:2] == ("argument",)]
    assert {revision for revision, _ in steps} == {"2026-07-28"}
    assert {step[3]["name"] for _, step in steps} == {"mirrored"}


@pytest.mark.parametrize(
    ("data", "doubtful"),
    [
        (b'{"id":1,"method":"ping"}', False),
        (b'{"id":1,"id":2,"method":"ping"}', True),
        (b'{"method":"tools/call"}', True),
        (b"[[[", False),
        (b'{"a":{"b":1,"b":2}}', True),
    ],
)
def test_doubtful_bytes_are_known(data: bytes, doubtful: bool) -> None:
    assert _is_doubtful(data) is doubtful


@pytest.mark.parametrize(
    ("hints", "may"),
    [
        (None, False),
        ({}, False),
        ({"readOnlyHint": True}, False),
        ({"readOnlyHint": True, "openWorldHint": True}, False),
        ({"readOnlyHint": True, "openWorldHint": False}, True),
        ({"readOnlyHint": "true", "openWorldHint": False}, False),
        ({"destructiveHint": False, "openWorldHint": False}, False),
    ],
)
def test_tool_is_called_by_both_hints_only(hints: Any, may: bool) -> None:
    assert may_call_by_hint({"name": "x", "annotations": hints}) is may


def test_both_clients_have_tasks_and_ask_for_the_other_ones() -> None:
    """Ids that two clients get are compared only if both have tasks."""
    schema = {"type": "object", "properties": {}}
    tool = {"name": "work", "inputSchema": schema, "execution": {"taskSupport": "optional"}}
    offers = Offers(
        revisions=["2026-07-28", "2025-11-25"],
        tools=[tool],
        capabilities={"2026-07-28": {"extensions": {TASKS: {}}}, "2025-11-25": {"tasks": {}}},
    )
    found = CaseSource(CaseChoices(offers, ["work"], http=True), 12).draw(160)
    asked = [
        (case[0][1], client_of(step))
        for case in found
        for step in case
        if own_step(step) == ("task", 0, "other")
        and {client_of(each) for each in case if own_step(each)[0] == "call"} == {0, 1}
    ]
    assert min(Counter(asked).values()) >= 2
    assert len(set(asked)) == 4


def test_one_client_subscribes_and_the_other_one_listens_without() -> None:
    wanted = [
        (case[0][1], client_of(step), bool(own_step(step)[1]))
        for case in drawn(13, 200, http=True)
        if any(map(client_of, case))
        for step in case
        if own_step(step)[0] == "listen"
    ]
    assert {(LATEST, 0, True), (LATEST, 1, False)} <= set(wanted)
