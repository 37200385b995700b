"""`mcp-trio call`: arguments, results and errors of a tool."""

from __future__ import annotations

import json

import pytest

from tests.trio_.cli.program import GREETER, TEAHOUSE, ServerFile, output_of, run


def test_call_prints_only_text() -> None:
    assert output_of("call", "greet", "name=World", *GREETER) == "Hello, World!\n"


def test_call_json_prints_result_document() -> None:
    result = json.loads(output_of("call", "price", "--json", "tea=assam", "cups=3", *TEAHOUSE))
    assert result["content"] == [{"type": "text", "text": "12.0"}]
    assert result["structuredContent"] == 12.0


def test_call_json_is_utf_8_in_ascii_locale() -> None:
    result = run("call", "greet", "--json", "name=Zoë", *GREETER, env={"PYTHONIOENCODING": "ascii"})
    assert json.loads(result.stdout)["content"][0]["text"] == "Hello, Zoë!"


def test_call_tool_error_exits_with_1() -> None:
    result = run("call", "price", "tea=coffee", *TEAHOUSE)
    assert result.returncode == 1
    assert result.stdout == "no coffee today; on the menu: assam, rooibos, sencha\n"
    assert result.stderr == "mcp-trio: the tool price reported an error\n"


CALLS = [
    ("greet", ["name=1"], 0, "Hello, 1!"),
    ("greet", ['{"name": "World"}'], 0, "Hello, World!"),
    ("greet", ["name=you", '{"name": "World"}'], 0, "Hello, World!"),
    (
        "greet",
        ['{"name": 1}'],
        1,
        "Invalid argument `name`",
    ),  # unchecked: it is the server that complains
    (
        "gret",
        ["name=1"],
        2,
        "the server has no tool gret; its tools are greet. Did you mean greet?",
    ),
    (
        "greet",
        ["nam=1"],
        2,
        "the tool greet has no argument nam; it takes name. Did you mean name?",
    ),
    ("greet", [], 2, "the tool greet needs name: add name=..."),
    ("greet", ["World"], 2, "'World' is not an argument: write KEY=VALUE"),
]


@pytest.mark.parametrize(("tool", "arguments", "status", "text"), CALLS)
def test_call_arguments_are_checked_against_schema(
    greeter: tuple[str, ...], tool: str, arguments: list[str], status: int, text: str
) -> None:
    result = run("call", tool, *arguments, *greeter)
    assert result.returncode == status
    assert text in (result.stderr if status == 2 else result.stdout)


def test_call_prints_every_kind_of_content(server: ServerFile) -> None:
    target = server("""
        from mcp_core.registry import Audio, File, Image
        from mcp_core.types import CallToolResult, ResourceLink, TextContent

        server = mcp_trio.Server("gallery")

        @server.tool
        def show() -> list:
            "Show things."
            return [
                "a text", Image(b"12345"), Audio(b"123456789"),
                File("inside", "a://b"), File(b"12", "c://d"),
                ResourceLink(uri="e://f", name="link"),
            ]

        @server.tool
        def both() -> CallToolResult:
            "Text and something else."
            return CallToolResult(content=[TextContent("a text")], structured_content={"a": [1]})

        @server.tool
        def wrapped() -> CallToolResult:
            "The same twice."
            content = [TextContent('{"result":1}')]
            return CallToolResult(content=content, structured_content={"result": 1})

        @server.tool
        def table() -> dict[str, list[int]]:
            "Data."
            return {"a": [1]}
    """)
    assert output_of("call", "show", *target).splitlines() == [
        "a text",
        "[image, image/png, 5 bytes; --json shows them]",
        "[audio, audio/wav, 9 bytes; --json shows them]",
        "inside",
        "[c://d, application/octet-stream, 2 bytes; --json shows them]",
        "[e://f: link]",
    ]
    data = '{\n  "a": [\n    1\n  ]\n}\n'
    assert output_of("call", "both", *target) == "a text\nstructured content:\n" + data
    assert output_of("call", "table", *target) == data
    assert output_of("call", "wrapped", *target) == '{"result":1}\n'
