"""Each rule of the judge, with three conversations: it fails, it passes, it had no opportunity."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_core.trace.judge._revisions import REVISIONS
from mcp_core.trace.judge.rows import ROWS
from mcp_core.trace.judge.rules import JUDGED_ROWS, RULES, Rule, rules_for, rules_for_message
from mcp_core.trace.judge.rules._registry import rule
from mcp_core.trace.judge.rules._shapes import META_ROWS, SHAPE_ROWS
from tests.core.trace.judge.conversations import META, C, S, Start, at, error, judge, result
from tests.core.trace.judge.rules import (
    clients,
    eras,
    errors,
    features,
    headers,
    http,
    lists,
    messages,
    rounds,
    streams,
    tasks,
    utilities,
)
from tests.core.trace.judge.rules.case import Case
from tests.core.trace.judge.rules.test_odd_values import assert_no_python_in_sentences
from tests.core.trace.judge.rules.verdicts import kept_verdicts, names_of, verdict_on

CASES: list[Case] = [
    *messages.CASES,
    *eras.CASES,
    *utilities.CASES,
    *features.CASES,
    *errors.CASES,
    *rounds.CASES,
    *http.CASES,
    *headers.CASES,
    *streams.CASES,
    *lists.CASES,
    *tasks.CASES,
    *clients.CASES,
]


def names(cases: list[Case]) -> list[str]:
    return [f"{each.row}-{each.revision}" for each in cases]


@pytest.mark.parametrize("each", CASES, ids=names(CASES))
def test_rule_judges_its_three_conversations(each: Case) -> None:
    assert_fault_is_found_and_no_other(each)
    assert_right_passes(each)
    assert_nothing_is_judged_without_opportunity(each)


KEPT = kept_verdicts()


@pytest.mark.parametrize(
    ("name", "each"), [*zip(names_of(CASES), CASES, strict=True)], ids=names_of(CASES)
)
def test_rules_give_the_verdicts_that_are_kept(name: str, each: Case) -> None:
    """`python -m tests.core.trace.judge.rules.verdicts` writes them again."""
    assert verdict_on(each) == KEPT[name]


def test_kept_verdicts_are_those_of_all_conversations() -> None:
    assert list(KEPT) == names_of(CASES)


def test_client_that_falls_back_after_an_error_about_headers_on_a_pipe_is_not_accused() -> None:
    """A pipe has no headers, so -32020 says nothing about the era there."""
    refusal = S(error("d", -32020))
    found, _ = judge(None, [eras.DISCOVER, refusal, at(5, eras.INITIALIZE)], "2026-07-28")
    assert [(finding.row, finding.side) for finding in found] == [("ERR-7", "server")]


def test_other_error_for_an_unknown_log_level_says_nothing_about_it() -> None:
    asked = utilities.call(1, **{META + "logLevel": "loud"})
    found, judged = judge(Start("2026-07-28"), [C(asked), S(error(1, -32603))])
    assert {finding.row for finding in found} == {"META-1"}
    assert judged.opportunities["LOG-10"] == 0


def test_preflight_without_a_token_is_not_accused() -> None:
    """Browsers send none with it."""
    request = http.sent(2, None, {"origin": "http://a.test"}, "OPTIONS")
    _, judged = judge(None, [*streams.ALLOWED, request], "2026-07-28")
    _, before = judge(None, streams.ALLOWED, "2026-07-28")
    assert judged.opportunities["AT-1"] == before.opportunities["AT-1"] == 1


@pytest.mark.parametrize(
    ("row", "declared", "asked", "given", "verdicts"),
    [
        ("ELIC-3", "elicitation", features.BY_URL, result(1, action="accept"), [True]),
        ("ELIC-3", "elicitation", features.BY_URL, result(1, action="decline"), [False]),
        ("ELIC-3", "elicitation", features.BY_URL, error(1, -32602), []),
        ("SAMP-5", "sampling", features.SAMPLE_TOOLS, messages.SAMPLED, [True]),
        ("SAMP-5", "sampling", features.SAMPLE_TOOLS, error(1, -32602), []),
    ],
)
def test_client_that_answers_what_it_did_not_declare_is_at_fault_too(
    row: str, declared: str, asked: Any, given: Any, verdicts: list[bool]
) -> None:
    """The server's question breaks the same row."""
    start = Start("2025-11-25", {declared: {}}, {})
    found, _ = judge(start, [S(asked), C(given)])
    mine = [each for each in found if each.side == "client"]
    assert {each.row for each in mine} <= {row}
    assert [each.is_certain for each in mine] == verdicts
    assert [each.row for each in found if each.side == "server"] == [row]


def assert_fault_is_found_and_no_other(each: Case) -> None:
    found, judged = judge(None, list(each.fails), each.revision)
    report = [(finding.row, finding.sentence) for finding in found]
    assert_no_python_in_sentences(found)
    assert each.row in {finding.row for finding in found}, report
    assert {finding.row for finding in found} <= {each.row, *each.allowed}, report
    # A rule can be certain only once it has seen a fault again.
    mine = [finding for finding in found if finding.row == each.row]
    finding = next((finding for finding in mine if finding.is_certain), mine[0])
    assert finding.side == each.side, finding
    assert finding.is_certain is each.is_certain, finding
    assert finding.link.startswith("https://modelcontextprotocol.io/")
    assert judged.opportunities[each.row] >= 1


def assert_right_passes(each: Case) -> None:
    found, judged = judge(None, list(each.passes), each.revision)
    assert each.row not in each.pass_allowed
    assert [finding for finding in found if finding.row not in each.pass_allowed] == []
    assert each.is_part or judged.opportunities[each.row] >= 1


def assert_nothing_is_judged_without_opportunity(each: Case) -> None:
    found, judged = judge(None, list(each.none), each.revision)
    assert found == []
    assert judged.opportunities[each.row] == 0


def test_rules_have_three_conversations_for_each_row() -> None:
    assert sorted(JUDGED_ROWS - {each.row for each in CASES}) == []
    assert len(JUDGED_ROWS) >= 250
    assert ROWS.keys() >= JUDGED_ROWS


def test_rules_are_each_judged_by_a_conversation_of_their_row() -> None:
    """A row can have several rules, of which the others pass or fail.

    A row's conversations aren't played once all of its rules have judged.
    """
    judged: set[int] = set()
    rules = list(RULES)
    of_row: dict[str, set[int]] = {each.row: set() for each in CASES}
    for number, known in enumerate(rules):
        for row in known.rows:
            of_row[row].add(number)

    def observed(number: int, each: Rule) -> Rule:
        def judge(*arguments: Any) -> Any:
            outcome = each.judge(*arguments)
            if outcome is not None:
                judged.add(number)
            return outcome

        return replace(each, judge=judge)

    def forget() -> None:
        rules_for_message.cache_clear()
        rules_for.cache_clear()

    try:
        RULES[:] = itertools.starmap(observed, enumerate(rules))
        forget()
        for each in CASES:
            for said in each.fails, each.passes:
                if not of_row[each.row] <= judged:
                    judge(None, list(said), each.revision)
    finally:
        RULES[:] = rules
        forget()
    assert [each for number, each in enumerate(rules) if number not in judged] == []


def test_rows_that_are_a_part_are_those_of_shapes() -> None:
    shapes = {row for patterns in SHAPE_ROWS.values() for _, rows in patterns for row in rows}
    shapes |= {row for _, rows in META_ROWS for row in rows}
    assert sorted({each.row for each in CASES if each.is_part} - shapes) == []


def test_rules_have_one_row_in_each_revision() -> None:
    for each in RULES:
        if each.any_revision:
            assert len(each.rows) == 1
            continue
        for revision in REVISIONS:
            rows = [row for row in each.rows if revision in ROWS[row].revisions]
            assert rows[:1] == ([each.row_for((revision,))] if rows else [])


def test_rule_stacked_on_one_function_adds_a_rule_each_in_order() -> None:
    """The rules are added from the top down, as they are read, each with its own `args`."""
    before = list(RULES)
    try:

        @rule("RPC-1", on="close", args=("a", "b"))
        @rule("RPC-2", on="close")
        @rule("RPC-3", on="close", args=("c",))
        def named(state: str, *words: str) -> str:
            return " ".join((state, *words))

        added = RULES[len(before) :]
        assert RULES[: len(before)] == before
    finally:
        RULES[:] = before
    assert [each.rows for each in added] == [("RPC-1",), ("RPC-2",), ("RPC-3",)]
    assert [each.judge("x") for each in added] == ["x a b", "x", "x c"]
    # A rule is certain, and judges each message of its revisions, unless it says otherwise.
    assert added[1] == Rule(
        check=named,
        judge=named,
        rows=("RPC-2",),
        on="close",
        methods=(),
        sender=None,
        needs_history=False,
        needs_time=False,
        in_doubt=False,
        any_revision=False,
    )
    with pytest.raises(AttributeError):  # all conversations share it
        added[1].in_doubt = True  # type: ignore[misc]


def test_rules_judge_no_reading_and_no_decision() -> None:
    levels = {ROWS[row].level for each in RULES for row in each.rows}
    assert levels.isdisjoint({"reading", "decision", "MAY"})
