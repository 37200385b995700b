"""Questions about definitions: their warnings, and the part that is about one definition."""

from __future__ import annotations

from mcp_core.host import QualifiedName, ServerLaunch, ToolNames, compare_pins, define
from mcp_core.runtime.host import DefinitionsQuestion, ServerQuestion
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


def test_question_of_many_definitions_is_made_in_steps_of_twenty() -> None:
    """Other tasks run between the steps. Only the last question has all warnings."""
    for count, steps in ((0, 1), (20, 2), (21, 3), (41, 4)):
        new = [define(Tool(name=f"t\u200b{n}", input_schema={})) for n in range(count)]
        comparison = compare_pins((), new)
        *some, last = DefinitionsQuestion.in_steps("demo", comparison, [])
        assert len(some) + 1 == steps
        assert len(last.warnings) == count
        assert last == DefinitionsQuestion.about("demo", comparison, [])
        assert all(each.comparison == comparison for each in some)


def test_question_about_a_server_says_which_ones_it_replaces() -> None:
    """After the launch itself, a line for each file, which is safe for a terminal."""
    launch = ServerLaunch(transport="stdio", command="/bin/x", directory="/d")
    question = ServerQuestion(
        server="x",
        file="/p/.mcp.json",
        launch=launch,
        state="new",
        replaces=("/home/a.json (user)", "/b\x07.json"),
    )
    assert list(question.lines()) == [
        ("command", "/bin/x", ""),
        ("directory", "/d", ""),
        (
            "in place of",
            "/home/a.json (user)",
            "the server of the same name there is not used",
        ),
        ("in place of", "/b\\u0007.json", "the server of the same name there is not used"),
    ]
