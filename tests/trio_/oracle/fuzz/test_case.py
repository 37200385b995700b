"""Cases as literals: stored, read back, and made smaller."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import trio

from mcp_core import LATEST
from mcp_trio.oracle.fuzz._case import (
    Outcome,
    avoided_name,
    batch_members,
    check_case,
    client_of,
    decode_case,
    encode_case,
    on_client,
    own_step,
    shown_case,
    without_orphans,
)
from mcp_trio.oracle.fuzz._step_shapes import CaseError
from mcp_trio.oracle.fuzz.campaign._shrink import (
    ShrinkBudget,
    _simpler_steps,
    shrink,
    simpler_values,
)

CASE: list[tuple[Any, ...]] = [
    ("open", "2025-11-25", "whole", "all"),
    ("call", "add", {"a": 1, "b": [2, "x"]}, ("progress",)),
    ("damage", b'{"id":\xff}'),
    ("mutate", "{}"),
    ("wait",),
]
OPEN: tuple[Any, ...] = ("open", LATEST, "whole", "all")


def test_case_as_json_is_read_back() -> None:
    stored = json.loads(json.dumps(encode_case(CASE)))
    back = decode_case(stored)
    assert back == CASE


@pytest.mark.parametrize("value", [None, {}, [1], [[]], [[1, "a"]]])
def test_case_of_other_json_is_rejected(value: Any) -> None:
    with pytest.raises(CaseError, match=r"is a list|is not a list"):
        decode_case(value)


def test_outcome_of_a_case_that_was_not_played_has_nothing_in_it() -> None:
    """A case adds to each of them, and a run sums them up."""
    outcome, other = Outcome(), Outcome()
    for name in ("faults", "slow", "notes", "changers", "lines"):
        assert getattr(outcome, name) == [], name
        assert getattr(outcome, name) is not getattr(other, name), name
    for name in ("messages", "calls", "reconnects", "answered", "results"):
        assert getattr(outcome, name) == 0, name
    assert (outcome.is_owed, outcome.is_blocked) == (False, False)
    assert (outcome.steps, outcome.header) == (None, None)


@pytest.mark.parametrize(
    ("stored", "case"),
    [
        (["call", "add", {}, ["text"]], ("call", "add", {}, ("text",))),
        (["call", "add", {}], ("call", "add", {})),
        (["call", "add", ["a"]], ("call", "add", ["a"])),
        (["on", 1, "call", "add", {}, []], ("on", 1, "call", "add", {}, ())),
        (["damage", {"base64": "aGk="}], ("damage", b"hi")),
        (["on", 1, "damage", {"base64": "aGk="}], ("on", 1, "damage", b"hi")),
        (["batch", [["ping", {}, "int"]]], ("batch", [["ping", {}, "int"]])),
        (["request", "ping", ["a"], ["a"]], ("request", "ping", ["a"], ["a"])),
    ],
)
def test_stored_step_has_tuples_and_bytes_in_their_places_only(
    stored: list[Any], case: tuple[Any, ...]
) -> None:
    opened = [list(OPEN), ["on", 1, *OPEN]]
    found = decode_case([*opened, stored])
    assert repr(found[2]) == repr(case)
    assert encode_case(found)[2] == stored


@pytest.mark.parametrize(
    "data", [{"base64": "a"}, {"base64": "aGk=\n"}, {"base64": 5}, {"base64": None}]
)
def test_stored_bytes_that_are_no_base64_name_their_step(data: Any) -> None:
    with pytest.raises(CaseError, match=r"its step 1, damage, has no base64: "):
        decode_case([list(OPEN), ["damage", data]])


def test_client_and_step_are_told_apart() -> None:
    assert (client_of(("wait",)), client_of(("on", 1, "wait"))) == (0, 1)
    assert own_step(("on", 1, "call", "add")) == ("call", "add") == own_step(("call", "add"))


@pytest.mark.parametrize("step", [("wait", 1), ("ask",), ("on", 1, "wait", 1)])
def test_step_is_checked_at_its_place(step: tuple[Any, ...]) -> None:
    """A case of a client has no second client, and so no `on`."""
    opened = [OPEN, SECOND]
    with pytest.raises(CaseError, match="its step 2"):
        check_case([*opened, step])
    with pytest.raises(CaseError, match='its step 1 is unknown: there is no step "on"'):
        check_case([("serve", [LATEST], []), ("on",)], "client")


SECOND: tuple[Any, ...] = ("on", 1, "open", LATEST, "whole", "all")


@pytest.mark.parametrize(
    ("step", "cause"),
    [
        (("on",), "its step 1 is on client null: a case has two clients"),
        (("on", 2, "wait"), "its step 1 is on client 2: a case has two clients"),
        (("on", True, "open"), "its step 1 is on client true: "),
        (("on", "x" * 90, "open"), f'is on client "{"x" * 59}: a case'),
        (("on", 1), "its step 1 has no step after `on 1`"),
        (("on", 1, 5), "its step 1 has no step after `on 1`"),
        (("on", 1, "on", 1, "wait"), "its step 1 has no step after `on 1`"),
        (("on", 1, "wait"), "its step 1 is on client 1, which does not exist: no step before it"),
        ((), "its step 1 is not a step"),
        ((7,), "its step 1 is not a step"),
    ],
)
def test_step_of_a_client_that_does_not_exist_is_rejected(step: Any, cause: str) -> None:
    with pytest.raises(CaseError) as caught:
        check_case([OPEN, step])
    assert cause in str(caught.value)


def test_client_exists_from_its_opening_on() -> None:
    case = [OPEN, SECOND, ("on", 1, "wait"), ("wait",), ("on", 1, "wait")]
    check_case(case)
    assert decode_case(encode_case(case)) == case
    assert on_client(1, OPEN) == SECOND
    assert on_client(0, OPEN) == OPEN
    # Without its opening the steps of a client do nothing.
    assert without_orphans([case[0], *case[2:]]) == [OPEN, ("wait",)]
    assert without_orphans([case[2], *case[:2], case[4]]) == [*case[:2], case[4]]


@pytest.mark.parametrize(
    ("step", "members"),
    [
        (("batch", [["ping", {}, "int"], ["a", {}], 5, ["b", {}, None]]), ["ping", "b"]),
        (("batch", []), []),
        (("batch", 5), []),
        (("batch",), []),
    ],
)
def test_members_of_a_batch_that_are_whole_are_sent(step: Any, members: list[str]) -> None:
    assert [each[0] for each in batch_members(step)] == members


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (("call", "é", {"a": "é"}, ()), 'call é {"a": "é"}'),
        (("damage", b"\xff"), "damage b'\\xff'"),
        (("cancel", 0), "cancel 0"),
        (("request", "a" * 52), "request " + "a" * 52),
        (("request", "a" * 53), "request " + "a" * 49 + "..."),
    ],
)
def test_step_is_shown_by_its_words(step: Any, shown: str) -> None:
    assert shown_case([step]) == shown


def test_shown_case_is_one_line() -> None:
    assert "\n" not in shown_case(CASE)
    assert shown_case(CASE).startswith("open 2025-11-25 whole all, call add")


def shrunk(
    case: list[tuple[Any, ...]], fails: Any, budget: ShrinkBudget | None = None, plays: int = 500
) -> tuple[list[tuple[Any, ...]], int]:
    async def shows(smaller: list[tuple[Any, ...]]) -> list[tuple[Any, ...]] | None:
        await trio.lowlevel.checkpoint()
        found = fails(smaller)
        return smaller[:found] if type(found) is int else smaller if found else None

    async def run() -> tuple[list[tuple[Any, ...]], int]:
        smaller, count, _ = await shrink(
            case, shows, budget or ShrinkBudget(), newest=LATEST, max_plays=plays
        )
        return [case, *smaller][-1], count

    return trio.run(run)


async def same(case: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Show the fault in each case."""
    await trio.lowlevel.checkpoint()
    return case


def test_shrink_cuts_steps_that_do_not_matter() -> None:
    noise: list[tuple[Any, ...]] = [("request", "ping", {}, "int")] * 20
    case = [CASE[0], *noise, ("notify", "a", {}), *noise, ("cancel", 0), *noise]
    found, _ = shrunk(case, lambda each: {"notify", "cancel"} <= {step[0] for step in each})
    assert found == [OPEN, ("notify", "a", {}), ("cancel", 0)]


def test_shrink_leaves_out_steps_that_were_not_played() -> None:
    case = [OPEN, ("wait",), ("notify", "a", {}), *[("request", "ping", {}, "int")] * 400]

    def play(each: list[tuple[Any, ...]]) -> int | None:
        return next((place + 1 for place, step in enumerate(each) if step[0] == "notify"), None)

    found, plays = shrunk(case, play)
    assert found == [OPEN, ("notify", "a", {})]
    assert plays < 10


def test_shrink_makes_values_simpler() -> None:
    case = [CASE[0], ("call", "add", {"a": 400, "b": "x" * 50, "c": [1, 2, 3]}, ("text",))]
    found, _ = shrunk(case, lambda each: len(each) == 2 and each[1][2].get("a", 0) > 10)
    assert found == [OPEN, ("call", "add", {"a": 11}, ())]


def test_shrink_drops_the_progress_of_a_call_before_its_arguments_are_simpler() -> None:
    case = [OPEN, ("call", "add", {"a": 400}, ("progress",))]
    found, _ = shrunk(case, lambda each: len(each) == 2, plays=2)  # the first cuts the call
    assert found == [OPEN, ("call", "add", {"a": 400}, ())]


def test_shrink_leaves_the_words_of_a_call_whole() -> None:
    tried: list[Any] = []
    case = [OPEN, ("call", "add", {}, ("progress", "text"))]

    def play(each: list[tuple[Any, ...]]) -> bool:
        tried.extend(step[3] for step in each if step[0] == "call")
        return False

    shrunk(case, play)
    assert tried == [("text",), ("progress",)]


def test_shrink_without_cuts_makes_values_simpler_only() -> None:
    case = [OPEN, ("call", "add", {"a": 1}, ()), ("cancel", 0)]
    smaller, *_ = trio.run(partial(shrink, case, same, ShrinkBudget(), cuts=False))
    assert smaller[-1] == [OPEN, ("call", "add", {}, ()), ("cancel", 0)]


def test_shrink_of_request_with_a_wrong_head_keeps_its_method() -> None:
    case = [CASE[0], ("head", "origin", "ping", {"a": 1})]
    found, _ = shrunk(case, lambda each: len(each) == 2)
    assert found == [OPEN, ("head", "origin", "ping", {})]


def test_shrink_of_bytes_keeps_the_one_that_matters() -> None:
    case = [CASE[0], ("damage", b"abc\xff" + b"d" * 100)]
    found, _ = shrunk(case, lambda each: len(each) == 2 and b"\xff" in each[1][1])
    assert found == [OPEN, ("damage", b"\xff")]


def test_shrink_keeps_revision_that_shows_fault() -> None:
    case = [CASE[0], ("wait",), ("notify", "a", {"b": 1})]
    found, _ = shrunk(case, lambda each: each[0] == CASE[0] and each[-1][0] == "notify")
    assert found == [CASE[0], ("notify", "a", {})]


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (
            '{"jsonrpc":"2.0","id":7,"method":"a","params":{"b":1},"x":2}',
            ("request", "a", {}, "int"),
        ),
        ('{"jsonrpc":"2.0","method":"a","x":2}', ("notify", "a", {})),
    ],
)
def test_shrink_of_message_as_text_makes_it_a_step(text: str, step: tuple[Any, ...]) -> None:
    found, _ = shrunk([OPEN, ("mutate", text)], lambda each: len(each) == 2 and "a" in each[1])
    assert found == [OPEN, step]


def test_shrink_of_message_as_text_drops_members() -> None:
    text = '{"jsonrpc":"2.0","id":7,"method":"a","params":{"b":1},"x":2}'
    found, _ = shrunk([OPEN, ("mutate", text)], lambda each: '"x":' in str(each[-1][1]))
    assert found == [OPEN, ("mutate", '{"x":2}')]


def test_shrink_of_long_text_takes_few_plays() -> None:
    case = [OPEN, ("mutate", "x" * 5_000)]
    found, plays = shrunk(case, lambda each: len(each) == 2 and "x" in each[1][1])
    assert found == [OPEN, ("mutate", "x")]
    assert plays < 40
    kept, plays = shrunk(case, lambda each: each == case)
    assert kept == case
    assert plays < 40


def test_shrink_ends_with_its_plays_and_its_seconds() -> None:
    case = [CASE[0], *[("wait",)] * 200]
    assert shrunk(case, lambda each: len(each) > 150, plays=3)[1] == 3
    assert shrunk(case, lambda each: True, ShrinkBudget(0.0)) == (case, 0)


@pytest.mark.parametrize("value", [0, 1, "", b"", {}, [], None, False, 0.0])
def test_simplest_value_has_no_simpler_one(value: Any) -> None:
    assert list(simpler_values(value)) == []


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (OPEN, None),
        (("wait",), None),
        (("cancel", 0), None),
        (("damage", b"x"), None),
        (("mutate", "x" * 100), None),
        (("request", "tools/list", {}, "int"), ("request", "tools/list")),
        (("request", "tools/list", 82, "int"), ("request", "with other params")),
        (("request", "ping", [], "int"), ("request", "with other params")),
        (("call", "add", {}, ()), ("call", "add")),
        (("notify", "a"), ("notify", "a")),
        (("request", "ping"), ("request", "ping")),
        (("request", "a" * 99, {}), ("request", "a" * 99)),
        (("request", "a" * 100, {}), None),
        (("hand", "add", "a", "total", 0), None),
        (("notify", "ping", 82), ("notify", "ping")),
        (("on", 1, "call", "add", {}, ()), ("call", "add")),
        (("on", 1, "open", LATEST), None),
        (("on", 1, "wait"), None),
    ],
)
def test_avoided_name_of_step_is_its_method_or_the_kind_of_its_params(
    step: tuple[Any, ...], name: tuple[str, str] | None
) -> None:
    assert avoided_name(step) == name


def test_burst_is_made_smaller_without_another_method() -> None:
    """A method that is cut to pieces would be another cause."""
    simpler = list(_simpler_steps(("burst", 3, "tools/list", {"a": 1}), ""))
    assert {step[2] for step in simpler} == {"tools/list"}
    assert {step[1] for step in simpler} == {1, 2, 3}
