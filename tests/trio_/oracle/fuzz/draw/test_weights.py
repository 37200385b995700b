"""How often each phrase is drawn, and each of its forms: they share the time of a run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.draw import _calls, _http, _requests, _second_client, _stress
from mcp_trio.oracle.fuzz.draw._cases import CaseSource, _is_avoided, _opening
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.draw._phrases import _damaging_phrases, _phrases
from mcp_trio.oracle.fuzz.draw._second_client import second_client
from tests.harness.jsonrpc import D, E
from tests.trio_.oracle.fuzz.draw.every_draw import NEARLY_VALID, EachDraw, every_draw

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1024 * 1024


def all_offers(**members: Any) -> CaseChoices:
    """Return the choices of a server with one tool `t`, and with all that phrases need."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    offers = Offers(
        revisions=[E, D],
        tools=[{"name": "t", "inputSchema": schema}],
        prompts=[{"name": "p", "arguments": [{"name": "a"}]}],
        resources=[{"uri": "n:///1"}],
        capabilities={each: {"completions": {}, "tasks": {}} for each in (D, E)},
    )
    found = CaseChoices(offers, ("t",))
    found.arguments = [("valid", NEARLY_VALID)]  # type: ignore[list-item]
    found.task_tools, found.mirrored_tools, found.http = [0], [0], True
    for name, value in members.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    ("phrase", "old", "new", "first"),
    [
        (_requests.plain, (432, 120), (288, 84), 2),
        (_requests.wrong, (38, 31), (34, 29), 0),
        (_requests.odd_params, (113, 113), (91, 91), 0),
        (_requests.strange_meta, (108, 60), (72, 42), 1),
        (_requests.burst, (324, 180), (216, 126), 1),
        (_requests.pages, (20, 16), (20, 16), 1),
        (_requests.unknown_prompt, (4, 3), (4, 3), 2),
        (_requests.unknown_resource, (1, 1), (1, 1), 3),
        (_requests.strange_notification, (8, 8), (8, 8), 1),
        (_requests.odd_notification, (8, 8), (8, 8), 1),
        (_calls.plain, (42, 15), (42, 15), 2),
        (_calls.nearly_valid, (1, 1), (1, 1), 1),
        (_calls.unknown_tool, (6, 6), (6, 6), 1),
        (_calls.without_required, (1, 1), (1, 1), 2),
        (_calls.cancelled, (2, 2), (2, 2), 3),
        (_calls.cancelled_twin, (2, 2), (2, 2), 5),
        (_calls.cancelled_among_others, (60, 60), (60, 60), 5),
        (_calls.responses, (3, 3), (3, 3), 3),
        (_calls.stray_response, (2, 2), (2, 2), 2),
        (_calls.input_rounds, (6, 4), (6, 4), 5),
        (_calls.subscription, (192, 192), (192, 192), 4),
        (_calls.followed_tasks, (84, 3), (84, 3), 3),
        (_http.wrong_head, (14, 12), (14, 9), 1),
        (_http.wrong_argument_head, (3, 3), (3, 3), 2),
        (_http.half_bodies, (8, 8), (8, 8), 1),
        (_http.standalone_stream, (3, 3), (3, 3), 1),
        (_http.ended_session, (3, 2), (3, 2), 3),
        (_stress.stressed, (100, 100), (97, 97), 1),
        (_stress.heavy, (11, 11), (11, 11), 1),
        (_second_client._cursors_of_the_other, (6, 6), (6, 6), 4),
        (_second_client._tasks_of_the_other, (48, 12), (48, 12), 12),
        (_second_client._states_of_the_other, (7, 3), (7, 3), 8),
        (_second_client._cancelled_beside, (9, 9), (9, 9), 6),
        (_second_client._marked_calls, (1, 1), (1, 1), 10),
        (_second_client._marked_prompts, (1, 1), (1, 1), 8),
        (_second_client._subscribed_beside, (12, 4), (12, 4), 9),
        (_second_client._ended_beside, (1, 1), (1, 1), 8),
        (_second_client._without_session, (1, 1), (1, 1), 4),
        (_second_client._unknown_session, (1, 1), (1, 1), 6),
        (_second_client._resumed_beside, (1, 1), (1, 1), 16),
        (_second_client._levels_beside, (2, 2), (2, 2), 12),
    ],
)
def test_phrase_has_so_many_forms(
    phrase: Callable[..., list[Any]], old: tuple[int, int], new: tuple[int, int], first: int
) -> None:
    """So many rows of numbers can be drawn in each revision, and give so many different forms.

    The form of the numbers that are all 0 has `first` steps.
    """
    for revision, expected in ((D, old), (E, new)):
        rows = every_draw(phrase, all_offers(), revision)
        assert (len(rows), len({repr(row) for row in rows})) == expected
    assert len(every_draw(phrase, all_offers(), D)[0]) == first


def shares(phrase: Callable[..., list[Any]], of: Callable[[list[Any]], Any], revision: str) -> Any:
    """Return how many of a phrase's rows have each property."""
    return dict(Counter(of(row) for row in every_draw(phrase, all_offers(), revision)))


def test_common_forms_of_a_phrase_are_drawn_more_often() -> None:
    """A form has more numbers if it finds more, or if others cost more."""

    def listened(row: list[Any]) -> tuple[bool, bool]:
        return bool(row[0][1]), "resourceSubscriptions" in row[0][1]

    # The bits 1, 2 and 4 are lists, and 8 is a resource: half of these are listed ones.
    assert shares(_calls.subscription, listened, D) == {
        (False, False): 8,
        (True, False): 56,
        (True, True): 128,
    }
    assert shares(_calls.unknown_tool, len, D) == {1: 3, 2: 3}
    assert shares(_requests.unknown_prompt, lambda row: row[-1][1], D) == {
        "completion/complete": 1,
        "prompts/get": 3,
    }
    assert shares(_http.half_bodies, lambda row: row[-1][0], D) == {"half": 4, "release": 4}
    heads = shares(_http.wrong_head, lambda row: row[0][1], E)
    assert heads.pop("name") == 6
    assert heads.pop("origin") == 2
    assert set(heads.values()) == {1}
    found = every_draw(_second_client._subscribed_beside, all_offers(uris=["a", "b"]), E)
    wanted = Counter(len(row[2][1]["resourceSubscriptions"]) for row in found)
    assert wanted == {1: 8, 2: 8}, "one of three draws one of them"
    assert found[0][2][1]["resourceSubscriptions"] == ["a"]


def test_states_of_two_clients_are_mixed_in_one_of_three_draws() -> None:
    """The first number decides whether the calls have a text of each client's."""
    found = every_draw(_second_client._states_of_the_other, all_offers(), E)
    mixed = [("on", 1, "retry", 0, "other") in row for row in found]
    assert mixed == [True, True, False, False, True, False, False]


@pytest.mark.parametrize(("place", "offers"), [(0, "all"), (1, "all"), (2, "none")])
def test_second_client_offers_nothing_in_one_of_three_cases(place: int, offers: str) -> None:
    draw = EachDraw([place])
    steps = second_client(draw, all_offers(), E)  # type: ignore[arg-type]
    assert steps[0] == ("on", 1, "open", E, "whole", offers)
    assert draw.counts[0] == 3


def test_sizes_of_stress_are_on_both_sides_of_common_limits() -> None:
    """Headers, targets, bodies that are only announced, and messages have such sizes."""
    rows = every_draw(_stress.stressed, all_offers(), D)
    large = Counter((row[0][1], row[0][2]) for row in rows if row[0][0] == "large")
    sizes: dict[str, list[int]] = {}
    for what, size in large:
        sizes.setdefault(what, []).append(size)
    assert sizes == {
        "header": [8_192, 16_384, 65_536, MIB],
        "headers": [200, 2_000, 20_000],
        "target": [8_192, 16_384, 65_536, MIB],
        "announced": [8 * MIB, 2**40],
    }
    assert [row[0] for row in rows if row[0][0] == "slow"] == [("slow",)]
    unread = [row[0][1] for row in rows if row[0][0] == "unread"]
    assert unread[:2] == [50, 200]
    found = [row[0] for row in every_draw(_stress.heavy, all_offers(), D)]
    assert [step[2] for step in found if step[0] == "large"] == [
        65_536,
        MIB,
        4 * MIB - 4_096,
        4 * MIB + 1,
        8 * MIB,
    ]
    deep = [step[1:] for step in found if step[0] == "deep"]
    assert deep[:2] == [("array", 1_000), ("array", 20_000)]
    assert len(deep) == 6


def names_of(phrases: list[Any]) -> dict[str, int]:
    """Return how often each phrase is among these, by module and name."""
    names = (f"{each.__module__.rpartition('._')[2]} {each.__name__}" for each in phrases)
    return dict(Counter(names))


ALWAYS = {
    "requests plain": 5,
    "requests wrong": 1,
    "requests notification": 2,
    "requests strange_notification": 1,
    "requests cancelled": 1,
    "requests pages": 1,
    "requests burst": 1,
    "calls unknown_tool": 1,
    "calls subscription": 1,
    "calls responses": 1,
    "calls input_rounds": 1,
    "calls tasks": 1,
}
OF_TOOLS = {
    "calls plain": 6,
    "calls nearly_valid": 1,
    "calls cancelled": 1,
    "calls cancelled_twin": 2,
    "calls cancelled_among_others": 1,
}
MODERN = {"requests strange_meta": 2}
OF_HTTP = {"http wrong_head": 5, "http half_bodies": 1}


def few_offers(
    *tools: str, declared: Any = None, schema: Any = None, **members: Any
) -> CaseChoices:
    listed = [{"name": name, "inputSchema": schema or {}} for name in tools]
    capabilities = {each: declared or {} for each in (D, E)}
    offers = Offers(revisions=[E, D], tools=listed, capabilities=capabilities)
    return CaseChoices(offers, tools, **members)


@pytest.mark.parametrize(
    ("choices", "revision", "more"),
    [
        (few_offers(), D, {}),
        (few_offers(), E, MODERN),
        (few_offers("t"), D, OF_TOOLS),
        (
            few_offers("t", schema={"required": ["a"], "properties": {"a": {}}}),
            D,
            {**OF_TOOLS, "calls without_required": 2},
        ),
        (few_offers("t", declared={"tasks": {}}), D, {**OF_TOOLS, "calls followed_tasks": 3}),
        (few_offers(declared={"tasks": {}}), D, {}),
        (
            few_offers("t", declared={"tools": {"listChanged": True}}),
            E,
            {**OF_TOOLS, **MODERN, "calls subscription": 4},
        ),
        (few_offers(declared={"tools": {"listChanged": True}}), D, {}),
        (few_offers(declared={"prompts": {}}), D, {"requests unknown_prompt": 1}),
        (few_offers(declared={"resources": {}}), D, {"requests unknown_resource": 1}),
        (
            few_offers(http=True),
            D,
            {**OF_HTTP, "http standalone_stream": 1, "http ended_session": 1},
        ),
        (few_offers(http=True), E, {**OF_HTTP, **MODERN}),
        (few_offers(stress=True), D, {"stress stressed": 8}),
        (few_offers(stress=True), E, {**MODERN, "stress stressed": 9}),
    ],
)
def test_phrases_are_drawn_by_what_a_server_offers(
    choices: CaseChoices, revision: str, more: dict[str, int]
) -> None:
    assert names_of(_phrases(choices, revision)) == {**ALWAYS, **more}


def test_phrases_of_headers_and_of_handed_values_need_a_tool_for_them() -> None:
    choices = few_offers("t", http=True)
    choices.mirrored_tools = [0]
    choices.handings = [object()]  # type: ignore[list-item]
    assert names_of(_phrases(choices, E))["http wrong_argument_head"] == 2
    assert names_of(_phrases(choices, E))["calls handed"] == 8
    assert "http wrong_argument_head" not in names_of(_phrases(choices, D))


def test_phrases_of_damage_have_others_among_them() -> None:
    found = {
        "damaging mutated": 4,
        "damaging damaged": 2,
        "requests odd_params": 2,
        "requests odd_notification": 1,
        "requests plain": 1,
    }
    assert names_of(_damaging_phrases(few_offers(), D)) == found
    of_tools = {"calls plain": 1, "calls stray_response": 1}
    assert names_of(_damaging_phrases(few_offers("t"), D)) == {**found, **of_tools}
    heavy = {"stress heavy": 5}
    assert names_of(_damaging_phrases(few_offers(stress=True), D)) == {**found, **heavy}


# -- Beginnings and ends ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("special", "revision", "numbers", "http", "how", "counts"),
    [
        (["half", "disconnect"], D, [0, 1], False, "disconnect", [4, 2]),
        (["half", "disconnect"], D, [0, 0], False, "half", [4, 2]),
        (["half", "disconnect"], E, [0, 0], False, "disconnect", [4, 1]),
        (["half"], E, [1], False, "whole", [800]),
        (["half"], D, [1, 0, 1], False, "late", [4, 200, 8]),
        (["half"], D, [1, 1, 1], False, "whole", [4, 200, 800]),
        ([], D, [0, 0], False, "half", [200, 8]),
        ([], D, [1, 1], False, "whole", [200, 800]),
        ([], D, [1, 0], True, "disconnect", [200, 300]),
        ([], E, [1], True, "whole", [300]),
        ([], E, [0], False, "disconnect", [800]),
    ],
)
def test_case_opens_as_its_numbers_say(
    special: list[str], revision: str, numbers: list[int], http: bool, how: str, counts: list[int]
) -> None:
    """The end of a session is drawn more often over HTTP, where it costs no process."""
    choices = few_offers(http=http)
    choices.special = list(special)
    draw = EachDraw(numbers)
    assert _opening(draw, choices, revision) == how  # type: ignore[arg-type]
    assert draw.counts == counts
    is_taken = counts[0] == 4 and numbers[0] == 0
    assert choices.special == [each for each in special if each != how or not is_taken]


def test_step_is_avoided_by_its_name() -> None:
    choices = few_offers()
    step: Any = ("request", "tools/list", {}, "int")
    assert not _is_avoided(step, choices)
    choices.avoided = {("request", "tools/list")}
    assert _is_avoided(step, choices)
    assert not _is_avoided(("request", "ping", {}, "int"), choices)


def test_first_cases_come_before_the_drawn_ones() -> None:
    """They have what needs a process of its own, so that such cases are seldom from the start."""
    first: list[list[Any]] = [[("open", D, "half", "all")], [("open", D, "late", "all")]]
    choices = few_offers()
    source = CaseSource(choices, 5, first)
    assert (source.fixed, choices.special) == (2, [])
    assert source.draw(1) == first[:1]
    assert source.fixed == 1
    found = source.draw(3)
    assert (found[0], len(found), source.fixed) == (first[1], 3, 0)
    assert source.draw(0) == []
    assert "disconnect" in few_special()
    assert len(few_special()) == 8


def few_special() -> list[str]:
    choices = few_offers()
    CaseSource(choices, 5)
    return choices.special
