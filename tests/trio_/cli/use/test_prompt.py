"""`mcp-trio prompt`: arguments, and messages with their roles."""

from __future__ import annotations

import json

import pytest

from tests.harness.world.command import (
    GREETER,
    TEAHOUSE,
    ServerFile,
    on_a_terminal,
    output_of,
    run,
)

CALM = "user:\n  I feel calm. Which tea of your menu suits that, and why?\n"
NULL = "user:\n  I feel null. Which tea of your menu suits that, and why?\n"


@pytest.mark.parametrize("version", ["2026-07-28", "2024-11-05"])
def test_prompt_messages_are_printed_below_roles(server: ServerFile, version: str) -> None:
    """The indentation keeps a text from looking like another role, and escapes are printed."""
    target = server("""
        from mcp_core.types import ImageContent, PromptMessage, TextContent

        app = mcp_trio.Server("dialogue")

        @app.prompt
        def dialogue(evil: str = "") -> list[PromptMessage]:
            return [
                PromptMessage(role="user", content=TextContent(f"Hello,\\nyou{evil}.")),
                PromptMessage(
                    role="assistant", content=ImageContent(data="AAAA", mime_type="image/png")
                ),
            ]
    """)
    assert output_of("prompt", "dialogue", "--revision", version, *target) == (
        "user:\n  Hello,\n  you.\n\nassistant:\n  [image, image/png, 3 bytes; --json shows them]\n"
    )
    shown = on_a_terminal("prompt", "dialogue", "evil=\x1b[2J", "--revision", version, *target)
    assert "^[1;36muser:^[0m\n  Hello,\n  you\\u001b[2J.\n" in shown


def test_prompt_json_prints_result_document() -> None:
    result = json.loads(output_of("prompt", "recommend", "mood=calm", "--json", *TEAHOUSE))
    assert [message["role"] for message in result["messages"]] == ["user"]
    assert result["messages"][0]["content"]["type"] == "text"


PROMPTS = [
    ("recommend", ["mood=calm"], 0, CALM),
    ("recommend", ["mood=null"], 0, NULL),
    ("recommend", ['{"mood": "calm"}'], 0, CALM),
    (
        "recommend",
        ['{"mood": 1}'],
        1,
        "the server answered with an error",
    ),  # unchecked: it is the server that complains
    ("recommend", [], 2, "the prompt recommend needs mood: add mood=..."),
    ("recommend", ["calm"], 2, "'calm' is not an argument: write KEY=VALUE"),
    ("recommend", ["=calm"], 2, "'=calm' is not an argument"),
    (
        "recommend",
        ["mod=calm"],
        2,
        "the prompt recommend has no argument mod; it takes mood. Did you mean mood?",
    ),
    ("recomend", [], 2, "no prompt recomend; its prompts are recommend. Did you mean recommend?"),
]


@pytest.mark.parametrize(("name", "words", "status", "text"), PROMPTS)
def test_prompt_arguments_are_checked_against_list(
    teahouse: tuple[str, ...], name: str, words: list[str], status: int, text: str
) -> None:
    result = run("prompt", name, *words, *teahouse)
    assert result.returncode == status
    assert text in (result.stderr if status else result.stdout)


def test_prompt_of_server_without_prompts_is_rejected() -> None:
    result = run("prompt", "recommend", *GREETER)
    assert (result.returncode, result.stderr) == (
        2,
        "mcp-trio: the server has no prompt recommend; it has none.\n",
    )
