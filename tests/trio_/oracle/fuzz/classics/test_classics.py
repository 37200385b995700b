"""The classic cases: of kinds with a source, for what a target offers, and nothing denied."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import ALL, DIALECTS
from mcp_trio.oracle.fuzz._call_guard import UNKNOWN_TOOLS, CallGuard
from mcp_trio.oracle.fuzz._case import check_case, decode_case, encode_case
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.classics import CLASSIC_KINDS, classic_cases
from mcp_trio.oracle.fuzz.classics._facts import TargetFacts
from mcp_trio.oracle.fuzz.classics._values import IDS, LINES, uris_like
from mcp_trio.oracle.fuzz.draw._cases import CaseSource
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Case

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer", "maximum": 9}},
    "required": ["text"],
}
CHANGE = {"type": "object", "properties": {"what": {"enum": ["tools", "notes"]}}}
TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "inputSchema": SCHEMA, "execution": {"taskSupport": "optional"}},
    {"name": "change", "inputSchema": CHANGE},
    {"name": "wipe", "inputSchema": SCHEMA},
]
SOURCE = re.compile(
    r"JSON-RPC 2\.0, section [\d.]+|RFC \d+, section [\d.]+|UAX #\d+|CWE-\d+|CVE-\d+-\d+"
    r"|specification/\d{4}-\d\d-\d\d/[\w/-]+(?:#[\w-]+)?|[\w.-]+/[\w.-]+#\d+"
)
DECLARED = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}, "completions": {}}
OLD_ONE, NEW_ONE = "2025-11-25", "2026-07-28"


def everything(*, http: bool = False, revisions: tuple[str, ...] = ALL) -> CaseChoices:
    """Return the choices for a target with all features, of which `wipe` may not be called."""
    offers = Offers(
        revisions=list(revisions),
        capabilities={each: {**DECLARED, "logging": {}, "tasks": {}} for each in revisions},
        tools=TOOLS,
        prompts=[{"name": "greet", "arguments": [{"name": "who", "required": True}]}],
        resources=[{"uri": "note:///one"}, {"uri": "note:///two"}],
        templates=[{"uriTemplate": "note:///{name}"}],
    )
    return CaseChoices(offers, ["echo", "change"], http=http)


def nothing(revision: str) -> CaseChoices:
    """Return the choices for a target without features."""
    return CaseChoices(Offers(revisions=[revision], capabilities={revision: {}}), [])


def called(case: Case) -> set[str]:
    """Return the names of the tools that a case calls."""
    found = set()
    for step in case:
        if step[0] == "call":
            found.add(str(step[1]))
        if "tools/call" in step:
            params = step[step.index("tools/call") + 1]
            found |= {params["name"]} if isinstance(params, dict) and "name" in params else set()
    return found


@pytest.mark.parametrize("kind", CLASSIC_KINDS, ids=lambda kind: kind.name)
def test_kind_has_sources_and_cases_of_known_steps(kind: Any) -> None:
    assert kind.sources
    assert [each for each in kind.sources if not SOURCE.fullmatch(each)] == []
    cases = list(kind.make(TargetFacts(everything(http=True))))
    assert cases
    for case in cases:
        check_case(case)
    assert all(case[0][0] == "open" for case in cases)


def test_kinds_have_different_names() -> None:
    assert max(Counter(each.name for each in CLASSIC_KINDS).values()) == 1


def test_long_lists_are_read_twice_in_one_case_of_each_main_revision() -> None:
    whole = ("page", "tools/list", "whole")
    found = [case[0][1] for case in classic_cases(everything()) for step in case if step == whole]
    assert sorted(found) == [OLD_ONE, OLD_ONE, NEW_ONE, NEW_ONE]


@pytest.mark.parametrize("http", [False, True])
def test_cases_are_the_same_each_time_and_can_be_stored(http: bool) -> None:
    cases = classic_cases(everything(http=http))
    assert cases == classic_cases(everything(http=http))
    stored = json.loads(json.dumps([encode_case(each) for each in cases], allow_nan=False))
    assert [decode_case(each) for each in stored] == cases


def test_cases_call_no_denied_tool_and_pass_the_guard_when_stored() -> None:
    choices = everything(http=True)
    guard = CallGuard(
        {"echo", "change"}, lambda: {"echo", "change", "wipe"}, ["note:///one", "note:///two"]
    )
    cases = classic_cases(choices)
    assert [step for case in cases for step in case if not guard.allows_step(step)] == []
    names = set().union(*map(called, cases))
    assert {"echo", "change"} <= names
    assert "wipe" not in names


def test_first_cases_are_one_of_each_kind() -> None:
    choices = everything(http=True)
    facts = TargetFacts(choices)
    first = [next(each.make(facts)) for each in CLASSIC_KINDS]
    assert classic_cases(choices)[: len(first)] == first


@pytest.mark.parametrize("revision", [NEW_ONE, OLD_ONE])
def test_target_without_features_has_cases_about_messages_only(revision: str) -> None:
    cases = classic_cases(nothing(revision))
    assert 20 < len(cases) < len(classic_cases(everything())) / 2
    assert all(called(case) <= {"", *UNKNOWN_TOOLS} for case in cases)
    assert {case[0][1] for case in cases} <= {*ALL} if DIALECTS[revision].stateful else {revision}


def test_target_without_batches_gets_none() -> None:
    steps = [step for case in classic_cases(everything(revisions=(NEW_ONE,))) for step in case]
    assert {step[0] for step in steps}.isdisjoint({"batch", "reply"})


def test_ids_of_the_table_are_sent_once_in_a_session() -> None:
    """The cases share sessions, and an id must not come again in one."""
    sent: Counter[tuple[str, type, int | str]] = Counter()
    ids = next(each for each in CLASSIC_KINDS if each.name == "ids")
    for case in ids.make(TargetFacts(everything())):
        for step in case:
            if step[0] == "request" and isinstance(step[3], list):
                sent[case[0][1], type(step[3][0]), step[3][0]] += 1
    assert len(sent) == len(IDS)
    assert max(sent.values()) == 1


def test_damaged_line_is_followed_by_a_request_that_must_be_answered() -> None:
    damage = next(each for each in CLASSIC_KINDS if each.name == "damaged lines")
    lines = []
    for case in damage.make(TargetFacts(everything())):
        for step, following in itertools.pairwise(case):
            if step[0] == "damage":
                lines.append(step[1])
                assert following == ("request", "tools/list", {}, "int")
    assert sorted(lines) == sorted(LINES)
    assert not any(b"\n" in each for each in lines if b"Content-Length" not in each)


def test_lone_uris_lead_to_what_is_listed_or_nowhere() -> None:
    guard = CallGuard(set(), set, ["note:///one", "file:///a/b?c=d"])
    for uri in ("note:///one", "file:///a/b?c=d"):
        assert len(set(uris_like(uri))) == len(uris_like(uri))
        for each in uris_like(uri):
            assert guard.allows_step(("request", "resources/read", {"uri": each}))
    assert not guard.allows_step(("request", "resources/read", {"uri": "note:///../one"}))
    assert not guard.allows_step(("request", "resources/read", {"uri": "note:///a/../../one"}))


def test_source_gives_classic_cases_first_and_drawn_ones_without_what_they_have() -> None:
    """The special beginnings and ends, each of which takes a process."""
    classic = classic_cases(nothing(NEW_ONE))[:5]
    source = CaseSource(nothing(NEW_ONE), 3, classic)
    assert source.draw(3) + source.draw(2) == classic
    drawn = source.draw(40)
    assert drawn == CaseSource(nothing(NEW_ONE), 3, classic[:1]).draw(41)[1:]
    ends = [case for case in drawn if ("disconnect",) in case]
    assert len(ends) < len(
        [each for each in CaseSource(nothing(NEW_ONE), 3).draw(40) if ("disconnect",) in each]
    )


def test_subscriptions_leave_changes_out_of_which_nothing_must_be_told() -> None:
    """A case with the changes of everything shows nothing: each leaves some of them out."""
    kind = next(each for each in CLASSIC_KINDS if each.name == "subscriptions")
    cases = [case for case in kind.make(TargetFacts(everything())) if case[0][1] == NEW_ONE]
    filters = [step[1] for case in cases for step in case if step[0] == "listen"]
    subscribed = [tuple(each.get("resourceSubscriptions", ())) for each in filters if each != 7]
    assert max(map(len, subscribed)) == 1
    assert {("note:///one",), ("note:///two",), ("mcp-trio-fuzz://none",), ("",)} <= {*subscribed}
    names = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
    alone = [[name for name in names if each == {name: True}] for each in filters if each != 7]
    assert sorted(filter(None, alone)) == sorted([[name] for name in names])
    assert {} in filters


def test_resources_of_the_handshake_are_subscribed_twice_and_left_twice() -> None:
    kind = next(each for each in CLASSIC_KINDS if each.name == "subscriptions")
    cases = [case for case in kind.make(TargetFacts(everything())) if case[0][1] == OLD_ONE]
    sent = [
        [
            (step[1].rpartition("/")[2], step[2]["uri"])
            for step in case
            if step[0] == "request" and "subscribe" in step[1]
        ]
        for case in cases
    ]
    for uri in ("note:///one", "note:///two", "mcp-trio-fuzz://none"):
        assert [("subscribe", uri)] * 2 + [("unsubscribe", uri)] * 2 in sent


@pytest.mark.parametrize(
    "is_wanted", [lambda text: len(text) > 10_000, lambda text: text > "\u3000"]
)
def test_each_text_of_each_tool_is_long_and_beyond_latin_within_the_first_hundreds(
    is_wanted: Any,
) -> None:
    """The same tool has been called with a short text before, which shows that it is quick."""
    texts = {"type": "string"}
    schema = {"type": "object", "properties": {"a": texts, "b": texts, "n": {"type": "integer"}}}
    names = [f"tool-{number}" for number in range(9)]
    tools = [{"name": name, "inputSchema": schema} for name in names]
    offers = Offers(revisions=[OLD_ONE, NEW_ONE], capabilities={}, tools=tools)
    cases = classic_cases(CaseChoices(offers, names))[:300]
    found = {
        (step[1], member)
        for case in cases
        for place, step in enumerate(case)
        for member, text in (step[2].items() if step[0] == "call" else ())
        if is_wanted(str(text)) and ("call", step[1], {member: "a"}, ()) in case[:place]
    }
    assert found == {(name, member) for name in names for member in "ab"}
