"""Cases for clients: repeatable, storable, and excuses for what the server does."""

from __future__ import annotations

import json

import pytest

from mcp_core import ALL
from mcp_trio.oracle.fuzz._case import Case, decode_case, encode_case
from mcp_trio.oracle.fuzz.client._client_target import ClientTarget, fill_server
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
        assert decode_case(json.loads(json.dumps(encode_case(case)))) == case


def test_first_cases_are_correct_servers_and_single_steps() -> None:
    cases = drawn(4, 103)
    assert [case[0][1] for case in cases[:3]] == [list(ALL), [ALL[1]], [ALL[0]]]
    assert all(case[0] == ("serve", case[0][1], ["sum", "add"]) for case in cases)
    assert {len(case) for case in cases[:3]} == {1}
    assert {len(case) for case in cases[3:60]} == {2}


def test_http_steps_are_for_http() -> None:
    kinds = {step[0] for case in drawn(5) for step in case}
    assert kinds == {"serve", "answer", "push"}
    assert "http" in {step[0] for case in drawn(5, http=True) for step in case}


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
