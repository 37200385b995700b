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
    "pages": "46 7aad40dfd759",
    "calls": "19 f0f420b5c204",
    "no arguments": "14 59b3b6cc4bf8",
    "wrong arguments": "27 d8e50ca66d25",
    "unknown names": "56 a76b2be2d397",
    "prompts": "33 ad9994eb3076",
    "URIs": "22 d1828f7506f6",
    "completions": "19 e7c7c642bd1f",
    "log levels": "38 baaaf51c7935",
    "subscriptions": "88 96fee028a94e",
    "cancellations": "54 272133e6429f",
    "what the server asks": "134 450027fed533",
    "no capabilities": "20 c93280431d56",
    "tasks": "17 2237d1c69c4c",
    "beginnings": "67 179a79b3b11e",
    "params of initialize": "26 77afdbdc7106",
    "revisions in turn": "23 8f3b47d8d722",
    "ends": "40 dfa2f5fe482d",
    "batches": "18 b562c2fe2c90",
    "damaged lines": "135 5440c39f80ba",
    "ids": "135 58edd74b1bb2",
    "an id again": "20 484796b084a9",
    "names of methods": "86 b1193a62710b",
    "notifications": "60 b26071c47713",
    "params of another type": "40 d7334c5105c1",
    "texts": "45 46a99fd3c14c",
    "texts of every tool": "13 cc99a6bdf4fb",
    "numbers": "25 410f51a5de96",
    "deep values": "20 0c8845a54c3a",
    "members of _meta": "47 5c33adac8182",
    "_meta of a request": "35 efbbdac46f36",
    "many at once": "47 23ad528829f4",
    "heads": "47 4284df79e529",
    "sessions over HTTP": "40 2bed3387698f",
    "requests in parts": "46 3089b3ba3ca2",
    "broken requests": "39 f56a456d0941",
    "subscriptions of two clients": "14 48a27a5c527d",
    "streams of two clients": "9 30dedfffc4c2",
    "tasks of two clients": "2 de0e5ded81b2",
    "lists of two clients": "13 1fd74eb4705b",
    "texts of two clients": "22 f276b6b812c6",
}


def crowded() -> CaseChoices:
    """Return the choices for a server at a URL with more of everything than the cases use."""
    texts = {"type": "string"}
    schemas: list[Any] = [
        {"type": "object", "properties": {"a": texts, "b": texts}, "required": ["b"]},
        {"type": "object", "properties": {"on": {"type": "boolean"}, "n": {"type": "integer"}}},
        {"type": "object", "properties": {"n": {"type": "number", "maximum": 5}}},
        {"type": "object", "properties": {"pick": {"enum": [*"abcdefg"]}}},
        {"type": "object", "properties": dict.fromkeys("abcdefgh", texts)},
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
        *({"uriTemplate": f"n:/{n}/{{x}}"} for n in range(14)),
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


def bare() -> CaseChoices:
    """Return the choices for a server at a URL that lists what it doesn't declare."""
    tools = [{"name": "t", "inputSchema": {"properties": {"a": {"type": "string"}}}}]
    prompts = [{"name": "p", "arguments": [{"name": "who"}]}]
    capabilities: dict[str, Any] = {each: {"tools": {}} for each in (NEW_ONE, OLD_ONE)}
    offers = Offers(
        revisions=[NEW_ONE, OLD_ONE], capabilities=capabilities, tools=tools, prompts=prompts
    )
    return CaseChoices(offers, ["t"], http=True)


def lists_alone() -> CaseChoices:
    """Return the choices for a server at a URL with tools that may not be called."""
    capabilities: dict[str, Any] = {each: {"tools": {}, "tasks": {}} for each in ALL}
    tools = [{"name": "t", "inputSchema": {"type": "object"}}]
    offers = Offers(revisions=list(ALL), capabilities=capabilities, tools=tools)
    return CaseChoices(offers, [], http=True)


@pytest.fixture(scope="module")
def targets() -> list[TargetFacts]:
    choices = [
        everything(),
        everything(http=True),
        *(everything(http=True, revisions=(each,)) for each in ALL),
        *(nothing(each) for each in ALL),
        crowded(),
        bare(),
        lists_alone(),
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
        (crowded(), (12, 10, 10, 10)),
    ],
)
def test_facts_are_bounded(facts: CaseChoices, counts: tuple[int, ...]) -> None:
    """A server of thousands of tools must not make a run of thousands of cases."""
    found = TargetFacts(facts)
    lists: tuple[Any, ...] = (found.tools, found.prompts, found.uris, found.templates)
    assert tuple(map(len, lists)) == counts
