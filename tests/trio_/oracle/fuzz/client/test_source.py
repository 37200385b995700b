"""Cases for clients: repeatable, storable, and excuses for what the server does."""

from __future__ import annotations

import json

import pytest

from mcp_core import ALL
from mcp_trio.oracle.fuzz._case import Case, decode_case, encode_case
from mcp_trio.oracle.fuzz.client._client_target import ClientTarget, fill_server
from mcp_trio.oracle.fuzz.client._questions import RIGHT_QUESTIONS
from mcp_trio.oracle.fuzz.client._script_case import is_excused
from mcp_trio.oracle.fuzz.client._source import ClientOffers, ScriptChoices, ScriptSource

METHODS = ["initialize", "tools/list", "tools/call"]


def drawn(seed: int, count: int = 300, *, http: bool = False) -> list[Case]:
    offers = ClientOffers(
        servers={tuple(ALL): METHODS, (ALL[1],): METHODS}, refused=[(ALL[0],)], called=["add"]
    )
    return ScriptSource(ScriptChoices(offers, http=http), seed).draw(count)


def test_cases_of_one_seed_are_the_same() -> None:
    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_cases_can_be_stored_as_json() -> None:
    for case in drawn(3, http=True):
        assert decode_case(json.loads(json.dumps(encode_case(case))), "client") == case


def test_first_cases_are_correct_servers_and_single_steps() -> None:
    cases = drawn(4, 103)
    assert [case[0][1] for case in cases[:3]] == [list(ALL), [ALL[1]], [ALL[0]]]
    assert all(case[0] == ("serve", case[0][1], ["sum", "add"]) for case in cases)
    assert {len(case) for case in cases[:3]} == {1}
    assert {len(case) for case in cases[3:60]} == {2}


def test_http_steps_are_for_http() -> None:
    kinds = {step[0] for case in drawn(5) for step in case}
    assert kinds == {"serve", "answer", "always", "push"}
    assert "http" in {step[0] for case in drawn(5, http=True) for step in case}


def test_questions_come_after_the_opening_and_often() -> None:
    cases = [case for case in drawn(7, 1_000) if case[0][1] != [ALL[0]]]  # one is refused
    steps = [step for case in cases for step in case if step[0] == "push"]
    asked = [step for step in steps if step[1] in ("sampling", "elicitation", "roots")]
    assert len(asked) > len(steps) / 4
    assert all(step[2] > 0 for step in asked)


def test_first_cases_have_each_right_question_and_each_kind_without_end() -> None:
    steps = {step[:2] + step[3:] for case in drawn(8, 250) if len(case) == 2 for step in case[1:]}
    named = {"sampling": "sampling/createMessage", "elicitation": "elicitation/create"}
    for name, method in named.items():
        assert {("push", name, number) for number in range(RIGHT_QUESTIONS[method])} <= steps
    assert {("always", "cursor", 0), ("always", "page", 1), ("always", "input", 0)} <= steps
    assert {("answer", "revision", 0), ("answer", "output", 2)} <= steps


def test_first_cases_page_each_list() -> None:
    methods = ["server/discover", "tools/list", "resources/list", "tools/list", "tools/call"]
    choices = ScriptChoices(ClientOffers(servers={(ALL[0],): methods}), http=False)
    cases = ScriptSource(choices, 1).draw(150)
    pages = {case[1][2] for case in cases if len(case) == 2 and case[1][:2] == ("always", "page")}
    assert pages == {1, 2}


def test_pages_are_for_lists() -> None:
    places = [step[2] for case in drawn(6, 2_000) for step in case if step[1] == "page"]
    assert places.count(1) > len(places) / 2


@pytest.mark.parametrize(
    ("row", "level", "disturbed", "excused"),
    [
        ("RPC-7", "MUST", {"pairing"}, True),
        ("RPC-7", "MUST", {"pages"}, False),
        ("RPC-4", "MUST", {"pairing", "handshake"}, False),
        ("RPC-4", "MUST", {"session"}, True),
        ("TSK-13", "SHOULD", {"tasks"}, True),
        ("ROOT-2", "schema", {"pairing"}, False),
        ("ROOT-2", "schema", {"handshake"}, True),
        ("ROOT-2", "schema", {"revision"}, True),
        ("LIFE-5", "SHOULD", {"handshake"}, True),
        ("LIFE-5", "SHOULD", {"revision"}, False),
        ("ELIC-10", "SHOULD", {"questions"}, True),
        ("ELIC-10", "SHOULD", {"pairing"}, False),
        ("PAGE-1", "schema", {"pages"}, True),
    ],
)
def test_row_is_excused_by_what_it_needs(
    row: str, level: str, disturbed: set[str], excused: bool
) -> None:
    assert is_excused(row, level, disturbed) is excused


def test_server_in_a_command_becomes_words_or_text() -> None:
    relay = ["python", "a b.py"]
    assert fill_server(["client", "--", "{server}"], relay) == ["client", "--", *relay]
    assert fill_server(["client", "-s={server}"], relay) == ["client", "-s=python 'a b.py'"]


@pytest.mark.parametrize(
    ("word", "way", "transport"),
    [("{server}", "relay", "stdio"), ("{url}", "http", "http"), ("x", "pipes", "stdio")],
)
def test_command_says_how_the_client_is_reached(word: str, way: str, transport: str) -> None:
    target = ClientTarget(["client", word])
    assert target.way == way
    assert target.header().transport == transport
    assert target.header().observer == "server"
