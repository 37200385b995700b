"""Prompts: their list, and calls with text arguments."""

from __future__ import annotations

import enum
from typing import Annotated, Any

import pytest

from mcp_core import Dialect
from mcp_core.registry import Context, DeclarationError, File, Image, Server
from mcp_core.types import GetPromptResult, Icon, PromptMessage, TextContent
from tests.core.registry.lookup_helpers import EVERY_DIALECT, A, C, E, answered


class Tone(enum.Enum):
    KIND = "kind"
    STERN = "stern"


def make() -> Server:
    server = Server("s")

    @server.prompt(title="Review", icons=[Icon("https://example.com/i")], meta={"a": 1})
    def review(
        code: str, context: Context, lines: Annotated[int, "How many"] = 10, tone: Tone = Tone.KIND
    ) -> str:
        """Review code.

        Args:
            code: The code.
        """
        return f"{code}/{lines!r}/{tone!r}"

    @server.prompt
    async def plain() -> list[Any]:
        file = File("t", "x://y", "text/csv")
        return ["a", PromptMessage("assistant", TextContent("b")), Image(b"hi"), file]

    return server


@pytest.mark.requirement("PRM-2", "META-19")
def test_prompts_list_in_each_revision() -> None:
    arguments = [
        {"name": "code", "description": "The code.", "required": True},
        {"name": "lines", "description": "How many", "required": False},
        {"name": "tone", "required": False},
    ]
    oldest = {"name": "review", "description": "Review code.", "arguments": arguments}
    in_c = {**oldest, "title": "Review", "_meta": {"a": 1}}
    in_e = {**in_c, "icons": [{"src": "https://example.com/i"}]}
    for dialect, expected in ((A, oldest), (C, in_c), (E, in_e)):
        assert answered(make(), "prompts/list", {}, dialect)["prompts"] == [
            expected,
            {"name": "plain"},
        ]


def get(server: Server, name: str, arguments: Any = None, dialect: Dialect = E) -> Any:
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return answered(server, "prompts/get", params, dialect)


@pytest.mark.requirement("PRM-2", "PRM-3")
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_prompts_get_converts_arguments(dialect: Dialect) -> None:
    assert get(make(), "review", {"code": "x", "lines": "3", "tone": "stern"}, dialect) == {
        "description": "Review code.",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "x/3/<Tone.STERN: 'stern'>"}}
        ],
    }
    text = get(make(), "review", {"code": "3", "lines": ""}, dialect)["messages"][0]["content"][
        "text"
    ]
    assert text == "3/10/<Tone.KIND: 'kind'>"


@pytest.mark.requirement("PRM-3", "CONT-2", "CONT-8")
def test_prompts_get_makes_a_message_of_each_value() -> None:
    assert get(make(), "plain")["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "a"}},
        {"role": "assistant", "content": {"type": "text", "text": "b"}},
        {"role": "user", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
        {
            "role": "user",
            "content": {
                "type": "resource",
                "resource": {"uri": "x://y", "mimeType": "text/csv", "text": "t"},
            },
        },
    ]


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("none", {}, "Unknown prompt: none"),
        ("review", {}, "Missing argument `code`"),
        ("review", None, "Missing argument `code`"),
        (
            "review",
            {"code": "x", "line": "1"},
            "Unknown argument `line`; the arguments are: code, lines, tone",
        ),
        (
            "review",
            {"code": "x", "lines": "many"},
            "Invalid argument `lines`: expected `int`, got `str`",
        ),
        (
            "review",
            {"code": "x", "tone": "odd"},
            'Invalid argument `tone`: "odd" is not one of "kind", "stern"',
        ),
    ],
)
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_prompts_get_invalid_arguments_are_invalid_params(
    name: str, arguments: Any, message: str, dialect: Dialect
) -> None:
    assert get(make(), name, arguments, dialect) == {"code": -32602, "message": message}


@pytest.mark.parametrize(
    "value",
    [3, None, {"role": "user"}, [["nested"]], b"x"],
    ids=["number", "none", "dict", "list", "bytes"],
)
def test_prompts_get_value_other_than_a_message_is_an_internal_error(value: Any) -> None:
    server = Server("s")
    server.add_prompt(lambda: value, name="odd")
    assert get(server, "odd") == {"code": -32603, "message": "Internal error (reference ref)"}


def test_prompts_get_result_of_the_function_is_sent_unchanged() -> None:
    server = Server("s")
    mine = GetPromptResult(messages=[], description="mine")
    server.add_prompt(lambda: mine, name="mine", description="other")
    assert get(server, "mine") == {"messages": [], "description": "mine"}
    server.add_prompt(lambda: Image(b"hi"), name="picture", description="given")
    assert get(server, "picture")["description"] == "given"


def test_prompt_invalid_declaration_raises() -> None:
    server = make()
    with pytest.raises(DeclarationError, match="there is a prompt 'plain' already"):
        server.add_prompt(lambda: "x", name="plain")
    with pytest.raises(DeclarationError, match="cannot be described"):
        server.add_prompt(_odd, name="odd")
    with pytest.raises(DeclarationError, match="no name of its own"):
        server.add_prompt(Nameless())
    with pytest.raises(DeclarationError, match="thread=True is for a plain def"):
        server.add_prompt(_slow, thread=True)
    assert repr(server._prompts["plain"]).startswith("<prompt 'plain': function ")


def _odd(x: complex) -> str:
    return ""


async def _slow() -> str:
    return ""


class Nameless:
    def __call__(self) -> str:
        return ""
