"""The listing of all classic cases: nothing in them changes without being seen.

A stored report has a run's seed, and a run plays the classic cases first: with other cases the same
seed plays another run. If a change is meant, take the value that the failure shows.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

import pytest

from mcp_core import ALL
from mcp_trio.oracle.fuzz._case import encode_case
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.classics import CLASSIC_KINDS
from mcp_trio.oracle.fuzz.classics._facts import TargetFacts
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from tests.trio_.oracle.fuzz.classics.test_classics import NEW_ONE, OLD_ONE, everything, nothing

# The number of cases of each kind for all targets below, and the start of their digest.
LISTING: Final[dict[str, str]] = {
    "pages": "38 6faeb69f0c1b",
    "calls": "17 08bc4500828a",
    "no arguments": "13 60d04fc9f1db",
    "wrong arguments": "26 a276abf25e31",
    "unknown names": "46 fdbe78a5cabf",
    "prompts": "33 63629e4d19c8",
    "URIs": "22 1dd5e5b3d3e0",
    "completions": "19 710919bce7de",
    "log levels": "35 7c58f6aca30e",
    "subscriptions": "72 24b5301fc2f7",
    "cancellations": "45 2d00df9fdc58",
    "what the server asks": "106 106335d17d70",
    "no capabilities": "16 fc55b7d94fd6",
    "tasks": "15 0374efb033fc",
    "beginnings": "57 9c60c76ea9b6",
    "params of initialize": "22 c6b00f2ed9ac",
    "revisions in turn": "18 f036adb391b8",
    "ends": "32 7f0e0c8de578",
    "batches": "15 f7b57d3ee9f9",
    "damaged lines": "117 593c331a1e61",
    "ids": "117 f143a94b6b2d",
    "an id again": "16 63c84b39cc8a",
    "names of methods": "66 1c99576a2253",
    "notifications": "48 77100716589c",
    "params of another type": "32 669d8512e162",
    "texts": "40 8cd25951e58f",
    "texts of every tool": "10 072a90bab09a",
    "numbers": "25 a001f1e05555",
    "deep values": "16 5f2032e65669",
    "members of _meta": "40 f132e277bf92",
    "_meta of a request": "25 8780d7851c52",
    "many at once": "42 7a1a81746a5d",
    "heads": "33 36fbbf1d2d4f",
    "sessions over HTTP": "30 f0f5639d6ab1",
    "requests in parts": "34 be9ed2b4b079",
    "broken requests": "27 b5d5581856bd",
    "subscriptions of two clients": "13 ececaf528677",
    "streams of two clients": "8 15e9b4626dd0",
    "tasks of two clients": "2 e62831df9132",
    "lists of two clients": "9 05ed152afb82",
    "texts of two clients": "18 36cdb07a6177",
}


def crowded() -> CaseChoices:
    """Return the choices for a server at a URL with more of everything than the cases use."""
    texts = {"type": "string"}
    schemas: list[Any] = [
        {"type": "object", "properties": {"a": texts, "b": texts}, "required": ["b"]},
        {"type": "object", "properties": {"on": {"type": "boolean"}, "n": {"type": "integer"}}},
        {"type": "object", "properties": {"n": {"type": "number", "maximum": 5}}},
        {"type": "object", "properties": {"pick": {"enum": [*"abcdefg"]}}},
        {"type": "array"},
    ]
    tools = [
        {"name": f"t{number}", "inputSchema": schemas[number % len(schemas)]}
        for number in range(30)
    ]
    arguments: list[Any] = [[{"name": "a"}, {"name": "b", "required": True}, 7], None, [{}], []]
    prompts = [{"name": f"p{number}", "arguments": arguments[number % 4]} for number in range(15)]
    uris = ["file:///a/b?c=d", "plain", "note:///", "note:///é", *(f"n:/{n}" for n in range(11))]
    templates: list[Any] = [
        {"uriTemplate": 7},
        {},
        *({"uriTemplate": f"n:/{{{n}}}"} for n in "abc"),
    ]
    declared = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}, "logging": False}
    offers = Offers(
        revisions=[NEW_ONE, OLD_ONE, "2025-03-26"],
        capabilities={
            NEW_ONE: {**declared, "tasks": {}},
            OLD_ONE: declared,
            "2025-03-26": {"resources": 7},
        },
        tools=tools,
        prompts=prompts,
        resources=[{"uri": each} for each in uris],
        templates=templates,
    )
    return CaseChoices(offers, [each["name"] for each in tools], http=True)


@pytest.fixture(scope="module")
def targets() -> list[TargetFacts]:
    choices = [
        everything(),
        everything(http=True),
        *(everything(http=True, revisions=(each,)) for each in ALL),
        *(nothing(each) for each in ALL),
        crowded(),
    ]
    return list(map(TargetFacts, choices))


@pytest.mark.parametrize("kind", CLASSIC_KINDS, ids=lambda kind: kind.name)
def test_cases_of_a_kind_are_those_of_the_listing(kind: Any, targets: list[TargetFacts]) -> None:
    cases = [[encode_case(case) for case in kind.make(facts)] for facts in targets]
    digest = sha256(json.dumps(cases).encode()).hexdigest()
    assert LISTING[kind.name] == f"{sum(map(len, cases))} {digest[:12]}"


def test_listing_has_each_kind_in_its_order() -> None:
    assert list(LISTING) == [each.name for each in CLASSIC_KINDS]


@pytest.mark.parametrize(
    ("facts", "counts"),
    [
        (everything(http=True), (2, 1, 2, 1)),
        (crowded(), (12, 10, 10, 3)),
    ],
)
def test_facts_are_bounded(facts: CaseChoices, counts: tuple[int, ...]) -> None:
    """A server of thousands of tools must not make a run of thousands of cases."""
    found = TargetFacts(facts)
    lists: tuple[Any, ...] = (found.tools, found.prompts, found.uris, found.templates)
    assert tuple(map(len, lists)) == counts
