"""The meaning of each change of a contract, and the table of the page about them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mcp_core.contract import (
    RULES,
    Contract,
    ContractChange,
    ServerOffers,
    _compare,
    compare_contracts,
    encode_contract,
    offers_of_lists,
    read_contract,
    worst_verdict,
)
from tests.core.contract.test_schemas import bomb
from tests.examples.pages import read

NEW, OLD = "2026-07-28", "2025-06-18"
PAGE = "docs/howto/contracts.md"


def contract(**lists: Any) -> Contract:
    capabilities = lists.pop("capabilities", None)
    return Contract(offers={NEW: offers_of_lists(lists, capabilities=capabilities)})


def tools(**more: Any) -> Contract:
    return contract(tools=[{"name": "t", "inputSchema": {"type": "object"}, **more}])


def prompts(*arguments: Any) -> Contract:
    return contract(prompts=[{"name": "p", "arguments": list(arguments)}])


def hints(**more: bool) -> Contract:
    return tools(annotations=more)


def task(support: str) -> Contract:
    return tools(execution={"taskSupport": support})


def resource(mime_type: str) -> Contract:
    return contract(resources=[{"name": "r", "uri": "a:b", "mimeType": mime_type}])


def schema(value: Any) -> Contract:
    return tools(inputSchema={"type": "object", "properties": {"a": value}})


NONE = contract(tools=[])
SAFE = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}
SAFE["openWorldHint"] = False

# By rule: a contract before and one after, and what has changed.
ROWS: dict[str, tuple[Contract, Contract, str]] = {
    "the server no longer speaks it": (
        Contract(offers={NEW: NONE.offers[NEW], OLD: NONE.offers[NEW]}),
        NONE,
        f"revision {OLD}",
    ),
    "is new": (NONE, tools(), "tool t"),
    "is gone": (tools(), NONE, "tool t"),
    "is in the list twice": (
        tools(),
        contract(tools=[*tools().offers[NEW].lists["tools"], {"name": "t"}]),
        "tool t",
    ),
    "promises an output": (tools(), tools(outputSchema={}), "tool t"),
    "no longer says what its output is": (tools(outputSchema={}), tools(), "tool t"),
    "is no longer read-only": (hints(readOnlyHint=True), hints(**SAFE), "tool t, annotations"),
    "can be destructive now": (
        hints(**SAFE),
        hints(**{**SAFE, "destructiveHint": True}),
        "tool t, annotations",
    ),
    "is no longer idempotent": (
        hints(**SAFE),
        hints(**{**SAFE, "idempotentHint": False}),
        "tool t, annotations",
    ),
    "can reach the outside now": (
        hints(**SAFE),
        hints(**{**SAFE, "openWorldHint": True}),
        "tool t, annotations",
    ),
    "is less dangerous": (tools(), hints(readOnlyHint=True), "tool t, annotations"),
    "no longer runs as a task": (task("optional"), tools(), "tool t, execution"),
    "has to run as a task": (task("optional"), task("required"), "tool t, execution"),
    "can run as a task, too": (tools(), task("optional"), "tool t, execution"),
    "no longer has to run as a task": (
        task("required"),
        task("optional"),
        "tool t, execution",
    ),
    "the argument is required now": (
        prompts({"name": "a"}),
        prompts({"name": "a", "required": True}),
        "prompt p, argument a",
    ),
    "a new argument is required": (
        prompts(),
        prompts({"name": "a", "required": True}),
        "prompt p, argument a",
    ),
    "the argument is optional now": (
        prompts({"name": "a", "required": True}),
        prompts({"name": "a"}),
        "prompt p, argument a",
    ),
    "a new argument is optional": (prompts(), prompts({"name": "a"}), "prompt p, argument a"),
    "the argument is gone": (prompts({"name": "a"}), prompts(), "prompt p, argument a"),
    "has another MIME type": (resource("text/plain"), resource("text/html"), "resource r:b"),
    "has another default": (schema({"default": 1}), schema({"default": 2}), "tool t, input a"),
    "has another default, and was required": (
        tools(inputSchema={"properties": {"a": {}}, "required": ["a"]}),
        schema({"default": 1}),
        "tool t, input a",
    ),
    "a scope is gone": (Contract(scopes=("b",)), Contract(scopes=()), "scope b"),
    "a scope is new": (Contract(scopes=("a",)), Contract(scopes=("a", "b")), "scope b"),
    "names its default": (schema({}), schema({"default": 1}), "tool t, input a"),
    "no longer names its default": (schema({"default": 1}), schema({}), "tool t, input a"),
    "accepts more": (schema({"enum": [1]}), schema({"enum": [1, 2]}), "tool t, input a"),
    "is a new member": (
        tools(inputSchema={"properties": {"a": {}}}),
        tools(inputSchema={"properties": {"a": {}, "b": {"properties": {"c": {}}}}}),
        "tool t, input b",
    ),
    "is written differently": (
        schema({"type": "string"}),
        schema({"allOf": [{"type": "string"}]}),
        "tool t, input",
    ),
    "promises more": (
        tools(outputSchema={"type": "object"}),
        tools(outputSchema={"type": "object", "required": ["a"]}),
        "tool t, output",
    ),
    "has another text": (tools(title="a"), tools(title="b"), "tool t, title"),
}


@pytest.mark.parametrize("sentence", RULES)
def test_rule_has_its_verdict(sentence: str) -> None:
    old, new, what = ROWS[sentence]
    found = compare_contracts(old, new)
    [change] = [each for each in found if each.sentence == sentence]
    shown = f"{change.what}, {change.place}" if change.place else change.what
    assert shown.replace("resource a:b", "resource r:b") == what
    assert change.verdict == RULES[sentence]
    assert compare_contracts(old, old) == []


def test_table_of_page_is_the_table_of_rules() -> None:
    """The page may say several rules in one row, but each with its verdict."""
    rows = re.findall(r"^\| (.+?) \| (\w+) \|$", read(PAGE), re.MULTILINE)
    found = {
        sentence: verdict for text, verdict in rows for sentence in re.findall(r"`([^`]+)`", text)
    }
    assert {key: value for key, value in found.items() if key in RULES} == RULES


def test_schema_finding_is_breaking_with_example() -> None:
    [change] = compare_contracts(schema({"enum": [1, 2]}), schema({"enum": [1]}))
    assert change == ContractChange(
        verdict="breaking",
        what="tool t",
        place="input a",
        sentence="no longer accepts 2",
        revision=NEW,
        example='{"a":2}',
    )
    plain = ContractChange(verdict="compatible", what="tool t", sentence="is new", revision=NEW)
    assert (plain.place, plain.example, plain.old, plain.new) == ("", "", None, None)


def test_description_never_breaks_and_has_both_texts() -> None:
    old, new = schema({"description": "old"}), schema({"description": "new"})
    [change] = compare_contracts(old, new)
    assert (change.verdict, change.place) == ("compatible", "description")
    assert (change.what, change.old, change.new) == ("tool t, input a", "old", "new")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (contract(tools=[]), contract(prompts=[{"name": "p"}])),
        (contract(tools=[], resources=[{"uri": "a:b"}]), contract(tools=[])),
        (contract(tools=[], capabilities={"tools": {}}), contract(tools=[])),
    ],
)
def test_list_that_one_contract_does_not_have_is_not_compared(old: Contract, new: Contract) -> None:
    assert compare_contracts(old, new) == []


def test_worst_verdict_counts() -> None:
    changes = compare_contracts(tools(title="a"), tools(title="b"))
    assert worst_verdict([]) == worst_verdict(changes) == "compatible"
    changes += compare_contracts(prompts({"name": "a"}), prompts())
    assert worst_verdict(changes) == "unclear"
    assert worst_verdict([*changes, *compare_contracts(tools(), NONE)]) == "breaking"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"default": 1}, {}, [("unclear", "no longer names its default")]),
        ({}, {"default": 1}, [("unclear", "names its default")]),
        ({"default": None}, {"default": 1}, [("unclear", "names its default")]),
        ({}, {"default": None}, []),
        ({"items": {}}, {"items": {"default": 1}}, [("unclear", "names its default")]),
    ],
)
def test_default_of_an_input_is_unclear_however_it_changes(
    old: Any, new: Any, found: list[tuple[str, str]]
) -> None:
    """A call without the argument may do something else. In an output it is a text."""
    verdicts = [
        (each.verdict, each.sentence) for each in compare_contracts(schema(old), schema(new))
    ]
    assert [each for each in verdicts if each[1] != "is written differently"] == found
    outputs = (tools(outputSchema={"properties": {"a": each}}) for each in (old, new))
    assert worst_verdict(compare_contracts(*outputs)) == "compatible"


def test_default_of_a_required_input_changes_no_earlier_call() -> None:
    """Also in an alternative of it. The members of its value are others."""

    def required(*defaults: Any, inner: Any = ()) -> Contract:
        described = {
            "anyOf": [{"type": "integer", **dict.fromkeys(("default",) * len(defaults), 1)}, {}],
            "properties": {"b": dict(inner)},
        }
        return tools(inputSchema={"properties": {"a": described}, "required": ["a"]})

    [change] = compare_contracts(required(), required(1))
    assert (change.verdict, change.place) == ("compatible", "input a")
    [change] = compare_contracts(required(), required(inner={"default": 1}))
    assert (change.verdict, change.place) == ("unclear", "input a.b")


def test_lost_capability_is_breaking() -> None:
    old = contract(capabilities={"tools": {"listChanged": True}, "logging": {}})
    new = contract(capabilities={"tools": {"listChanged": False}, "completions": {}})
    found = {each.what: each.verdict for each in compare_contracts(old, new)}
    assert found == {
        "capability completions": "compatible",
        "capability logging": "breaking",
        "capability tools.listChanged": "breaking",
    }


def test_many_bombs_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of one contract are counted together, so that a thousand bombs take no hour."""
    monkeypatch.setattr(_compare, "_MAX_TOTAL_STEPS", 10_000)

    def of(leaf: str) -> Contract:
        schema = bomb({"type": leaf})
        return contract(tools=[{"name": f"t{n}", "inputSchema": schema} for n in range(50)])

    found = compare_contracts(of("string"), of("integer"))
    assert len(found) >= 50
    assert {each.verdict for each in found} <= {"unclear", "compatible"}


def test_same_name_twice_before_and_after_is_no_change() -> None:
    """Also if both are equal, and from a file. Another text of one of them is unclear."""
    for second in {"title": "x"}, {}:
        twice = contract(tools=[{"name": "t"}, {"name": "t", **second}])
        kept = read_contract(encode_contract(twice))
        assert compare_contracts(kept, twice) == compare_contracts(twice, kept) == []
    before, after = (
        contract(tools=[{"name": "t"}, {"name": "t", "title": title}]) for title in "xy"
    )
    assert compare_contracts(before, after)[0].sentence == "is in the list twice"


def test_compatible_change_names_its_places() -> None:
    """Each place that accepts more has a line, and so has each new member."""
    old = {"type": "object", "properties": {"a": {"enum": [1]}, "b": {"type": "string"}}}
    new = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "a": {"enum": [1, 2]},
            "b": {"type": ["string", "null"]},
            "c": {"type": "string"},
        },
    }
    found = compare_contracts(tools(inputSchema=old), tools(inputSchema=new))
    assert [(each.verdict, each.place, each.sentence) for each in found] == [
        ("compatible", "input c", "is a new member"),
        ("compatible", "input a", "accepts more"),
        ("compatible", "input b", "accepts more"),
    ]
    spelled = {**old, "$schema": new["$schema"]}
    [change] = compare_contracts(tools(inputSchema=old), tools(inputSchema=spelled))
    assert change.sentence == "is written differently"


def test_names_in_another_normal_form_are_other_names() -> None:
    """To the server they are: a call with the old name fails."""
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    old, new = (contract(tools=[{"name": name}]) for name in (composed, decomposed))
    found = {(each.what, each.sentence) for each in compare_contracts(old, new)}
    assert found == {(f"tool {composed}", "is gone"), (f"tool {decomposed}", "is new")}
    assert read_contract(encode_contract(old)) == old


def test_another_server_is_named() -> None:
    """The wrong file is the usual cause of many changes."""
    [change] = compare_contracts(Contract(server="tea"), Contract(server="git"))
    assert (change.what, change.place, change.old, change.new) == ("server", "name", "tea", "git")
    assert compare_contracts(Contract(), Contract(server="git")) == []


def test_unknown_scopes_are_not_compared_and_none_are() -> None:
    known, none = Contract(scopes=("a", "b")), Contract(scopes=())
    assert compare_contracts(known, Contract()) == compare_contracts(Contract(), known) == []
    found = compare_contracts(known, none)
    assert [(each.verdict, each.what) for each in found] == [
        ("breaking", "scope a"),
        ("breaking", "scope b"),
    ]


def test_many_tools_are_compared_in_time_of_their_number() -> None:
    """A list's names are looked up, not searched for: each pair would be 36 million."""
    reads = 0

    class Counted(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            nonlocal reads
            reads += 1
            return super().__getitem__(key)

    entries: list[dict[str, Any]] = [Counted(name=f"t{n}") for n in range(100)]
    offers = ServerOffers(lists={"tools": entries})
    assert compare_contracts(Contract(offers={NEW: offers}), Contract(offers={NEW: offers})) == []
    assert reads <= 4 * 100


# -- What each change has --------------------------------------------------------------------------


def shown(old: Contract, new: Contract) -> list[tuple[str, str, str, str | None, str | None]]:
    """Return the changes, without verdicts."""
    return [
        (each.what, each.place, each.sentence, each.old, each.new)
        for each in compare_contracts(old, new)
    ]


TEXT = "has another text"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (resource("a"), resource("b"), ("resource a:b", "", "has another MIME type", "a", "b")),
        (
            tools(annotations={"title": "a"}),
            tools(annotations={"title": "b"}),
            ("tool t", "annotations.title", TEXT, "a", "b"),
        ),
        (
            tools(),
            hints(readOnlyHint=True),
            ("tool t", "annotations", "is less dangerous", None, '{"readOnlyHint":true}'),
        ),
        (
            hints(destructiveHint=True),
            hints(destructiveHint=False),
            (
                "tool t",
                "annotations",
                "is less dangerous",
                '{"destructiveHint":true}',
                '{"destructiveHint":false}',
            ),
        ),
        (tools(), tools(title="b"), ("tool t", "title", TEXT, None, "b")),
        (
            contract(resources=[{"name": "r", "uri": "a:b", "mimeType": "c"}]),
            contract(resources=[{"name": "s", "uri": "a:b", "mimeType": "c"}]),
            ("resource a:b", "name", TEXT, "r", "s"),
        ),
        (tools(title="a"), tools(), ("tool t", "title", TEXT, "a", None)),
        (
            prompts({"name": "a", "description": "x"}),
            prompts({"name": "a", "description": "y"}),
            ("prompt p, argument a", "description", TEXT, "x", "y"),
        ),
        (
            prompts({"name": "a", "title": "x"}),
            prompts({"name": "a"}),
            ("prompt p, argument a", "title", TEXT, "x", None),
        ),
        (
            tools(outputSchema={"items": {"description": "x"}}),
            tools(outputSchema={"items": {"description": "y"}}),
            ("tool t, output []", "description", TEXT, "x", "y"),
        ),
    ],
)
def test_change_has_its_place_and_both_texts(old: Contract, new: Contract, found: Any) -> None:
    assert shown(old, new) == [found]


@pytest.mark.parametrize(("old", "new"), [("", "b"), ("a", ""), ("a", "b")])
def test_instructions_that_change_are_shown(old: str, new: str) -> None:
    contracts = [
        Contract(offers={NEW: offers_of_lists({}, instructions=text)}) for text in (old, new)
    ]
    assert shown(*contracts) == [("server", "instructions", TEXT, old or None, new or None)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (tools(title=""), tools()),
        (tools(), task("forbidden")),
        (task("sometimes"), task("required")),
        (task("optional"), task("sometimes")),
        # What isn't a list of arguments with names can't be compared.
        (prompts(), contract(prompts=[{"name": "p"}])),
        (contract(prompts=[{"name": "p", "arguments": {"a": 1}}]), prompts()),
        (prompts(1, {"name": 5}, {}), prompts()),
        # The members of values are no texts.
        (
            schema({"enum": [{"description": "a"}, {"description": "b"}]}),
            schema({"enum": [{"description": "b"}, {"description": "a"}]}),
        ),
    ],
)
def test_difference_without_a_meaning_is_no_change(old: Contract, new: Contract) -> None:
    changes = compare_contracts(old, new)
    assert [each for each in changes if each.sentence != "is written differently"] == []


@pytest.mark.parametrize("member", ["const", "enum"])
def test_value_with_the_name_of_a_text_is_no_text(member: str) -> None:
    a, b = {"title": "a"}, {"title": "b"}
    old, new = (a, b) if member == "const" else ([a], [b])
    [change] = compare_contracts(schema({member: old}), schema({member: new}))
    assert change.verdict == "breaking"
    [change] = compare_contracts(schema({"enum": [a]}), schema({"enum": [a, b]}))
    assert (change.place, change.sentence) == ("input a", "accepts more")


def test_changes_of_the_whole_server_have_no_revision() -> None:
    offers = tools().offers
    old = Contract(server="a", offers=offers, scopes=("s",))
    new = Contract(server="b", offers=tools(title="x").offers, scopes=())
    found = {each.what: each.revision for each in compare_contracts(old, new)}
    assert found == {"tool t": NEW, "server": "", "scope s": ""}


def test_changes_above_ten_thousand_are_left_out() -> None:
    many = contract(prompts=[{"name": str(number)} for number in range(10_001)])
    assert len(compare_contracts(many, contract(prompts=[]))) == 10_000


def test_each_argument_is_compared() -> None:
    old = prompts({"name": "a"}, {"name": "b"}, {"name": "d", "required": True})
    new = prompts({"name": "b", "required": True}, {"name": "c"}, {"name": "d"})
    assert [(place, sentence) for _, place, sentence, _, _ in shown(old, new)] == [
        ("argument a", "the argument is gone"),
        ("argument b", "the argument is required now"),
        ("argument c", "a new argument is optional"),
        ("argument d", "the argument is optional now"),
    ]


def test_tools_with_one_name_are_compared_by_the_last_one() -> None:
    def named(*titles: str) -> Contract:
        return contract(tools=[{"name": "t", "title": title} for title in titles])

    def change(old: str, new: str) -> Any:
        return ("tool t", "title", TEXT, old, new)

    twice = ("tool t", "", "is in the list twice", None, None)
    assert shown(named("a", "b"), named("a", "c")) == [twice, change("b", "c")]
    assert shown(named("a"), named("b", "c")) == [twice, change("a", "c")]
    assert shown(named("a", "b"), named("c")) == [change("b", "c")]
    assert shown(named("a", "b"), named("b")) == []
    assert shown(named("a", "b", "b"), named("a", "b")) == []


CONTAINERS = ["properties", "$defs", "definitions", "patternProperties"]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", ["x", "title", "description", "items", "properties"])
def test_text_within_a_named_schema_is_found_at_its_name(container: str, name: str) -> None:
    """A name may be that of a keyword."""
    old, new = (
        tools(inputSchema={container: {name: {"description": text}}}) for text in ("a", "b")
    )
    assert shown(old, new) == [(f"tool t, input {name}", "description", TEXT, "a", "b")]


@pytest.mark.parametrize("container", CONTAINERS)
def test_schema_with_the_name_of_a_text_is_no_text(container: str) -> None:
    old, new = (
        tools(inputSchema={container: {"title": {"maximum": maximum}}}) for maximum in (3, 4)
    )
    [change] = shown(old, new)
    assert change[2] in ("accepts more", "is written differently", "has another patternProperties")


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"maximum": 3}, {"maximum": 4}, [("input a", "accepts more")]),
        ({"enum": [1]}, {"enum": [1, 2]}, [("input a", "accepts more")]),
        (
            {"properties": {"b": {}}},
            {"properties": {"b": {}, "c": {}}},
            [("input a.c", "is a new member")],
        ),
        (
            {"anyOf": [{"type": "string", "description": "a"}]},
            {"anyOf": [{"type": "string", "description": "b"}, {"type": "null"}]},
            [("description", TEXT), ("input a", "accepts more")],
        ),
    ],
)
def test_wider_input_has_one_change_for_each_place(
    old: Any, new: Any, found: list[tuple[str, str]]
) -> None:
    changes = compare_contracts(schema(old), schema(new))
    assert [(each.place, each.sentence) for each in changes] == found


def test_default_within_a_required_input_may_change_calls() -> None:
    """Callers name the array, and not each of its items' members."""
    old, new = (
        tools(inputSchema={"properties": {"a": {"items": items}}, "required": ["a"]})
        for items in ({}, {"default": 1})
    )
    [change] = [each for each in compare_contracts(old, new) if "default" in each.sentence]
    assert (change.verdict, change.place) == ("unclear", "input a[]")


def test_schemas_that_are_nested_too_deeply_are_unclear() -> None:
    def nested(text: str) -> Contract:
        deep: Any = {"description": text, "type": text}
        for _ in range(300):
            deep = {"items": deep}
        lists = {"tools": [{"name": "t", "inputSchema": deep}]}
        return Contract(offers={NEW: ServerOffers(lists=lists)})

    found = compare_contracts(nested("string"), nested("integer"))
    assert [each.verdict for each in found] == ["unclear"]


def test_steps_of_all_schemas_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal schemas cost none."""
    given = []

    def compare(old: Any, new: Any, direction: Any, *, steps: int) -> Any:
        given.append(steps)
        return [], steps - 100

    def find_members(old: Any, new: Any, *, steps: int) -> Any:
        given.append(steps)
        return [], steps - 10

    monkeypatch.setattr(_compare, "_MAX_TOTAL_STEPS", 1_000)
    monkeypatch.setattr(_compare, "compare_schemas", compare)
    monkeypatch.setattr(_compare, "new_members", find_members)

    def of(number: int) -> Contract:
        return tools(
            title=str(number), inputSchema={"maximum": number}, outputSchema={"minimum": number}
        )

    compare_contracts(of(1), of(2))
    assert given == [1_000, 900, 800, 790, 690, 590]
    given.clear()
    compare_contracts(tools(title="a"), tools(title="b"))
    assert given == []


def test_change_without_more_has_no_place_example_or_texts() -> None:
    change = ContractChange(verdict="unclear", what="tool t", sentence="is new", revision=NEW)
    assert (change.place, change.example, change.old, change.new) == ("", "", None, None)
