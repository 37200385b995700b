"""Questions about definitions: their warnings, and the part that is about one definition."""

from __future__ import annotations

from mcp_core.host import QualifiedName, ToolNames, compare_pins, define
from mcp_core.runtime.host import DefinitionsQuestion
from mcp_core.types import Prompt, Tool

OLD = define(Tool(name="read", description="Reads.", input_schema={}))
READ = define(Tool(name="read", description="Reads\u200b.", input_schema={}))
FIND = define(Tool(name="find", input_schema={}))
PROMPT = define(Prompt(name="find"))


def test_question_has_the_warnings_of_what_is_new_or_has_changed() -> None:
    comparison = compare_pins((OLD,), [READ, FIND])
    others = [QualifiedName("other", "find"), QualifiedName("demo", "read")]
    question = DefinitionsQuestion.about("demo", comparison, others)
    assert DefinitionsQuestion.about("demo", comparison, ToolNames(others)) == question
    assert question.definitions == (FIND, READ)
    assert {key: [each.kind for each in found] for key, found in question.warnings.items()} == {
        READ.key: ["hidden"],
        FIND.key: ["same name"],
    }


def test_question_has_the_lines_that_the_user_has_to_see() -> None:
    comparison = compare_pins((OLD,), [READ, FIND])
    question = DefinitionsQuestion.about("demo", comparison, [])
    assert list(question.lines()) == [
        ("=", "tool read (changed)"),
        ("!", question.warnings[READ.key][0].path + " " + question.warnings[READ.key][0].text),
        (" ", "description:"),
        ("-", '  "Reads."'),
        ("+", '  "Reads\\u200b."'),
        ("=", "tool find (new)"),
        (" ", "name:"),
        ("+", '  "find"'),
        (" ", "inputSchema:"),
        ("+", "  {}"),
    ]


def test_question_shows_long_definitions_completely_without_a_limit() -> None:
    long = define(Tool(name="t", description="x\n" * 1_000 + "end", input_schema={}))
    question = DefinitionsQuestion.about("demo", compare_pins(None, [long]), [])
    assert ("+", '  "end"') in question.lines()
    *shown, last = question.lines(10)
    assert len(shown) == 11
    assert last == ("!", "996 more lines are not shown")


def test_question_about_one_definition_leaves_the_others_out() -> None:
    comparison = compare_pins((OLD,), [READ, FIND, PROMPT])
    question = DefinitionsQuestion.about("demo", comparison, [])
    for kind, name, definition in (
        ("tool", "read", READ),
        ("tool", "find", FIND),
        ("prompt", "find", PROMPT),
    ):
        found = question.only(kind, name)  # type: ignore[arg-type]
        assert found is not None
        assert found.definitions == (definition,)
    assert question.only("prompt", "read") is None
    assert question.only("instructions", "") is None


def test_comparison_offers_all_definitions_of_now() -> None:
    comparison = compare_pins((OLD, FIND), [READ, FIND, PROMPT])
    assert {each.digest for each in comparison.offered} == {
        READ.digest,
        FIND.digest,
        PROMPT.digest,
    }
