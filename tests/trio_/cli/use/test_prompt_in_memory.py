"""`mcp-trio prompt` and `mcp-trio complete` in memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.trio_.cli.in_memory import AnsweringServer

if TYPE_CHECKING:
    from tests.trio_.cli.in_memory import MemoryCommand

PACK = {"name": "pack", "arguments": [{"name": "city", "required": True}, {"name": "days"}]}
MESSAGES = [
    {"role": "user", "content": {"type": "text", "text": "a\nb "}},
    {"role": "assistant", "content": {"type": "text", "text": "c"}},
]
ANSWERS: dict[str, Any] = {
    "prompts/list": {"prompts": [PACK, {"name": "bare"}]},
    "prompts/get": {"messages": MESSAGES},
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": "a:{b}", "name": "card"}],
    },
}
CAPABILITIES: dict[str, Any] = {"prompts": {}, "resources": {}, "completions": {}}


def test_prompt_prints_each_message_below_its_role(in_memory: MemoryCommand) -> None:
    server = in_memory.server = AnsweringServer(CAPABILITIES, ANSWERS)
    shown = "user:\n  a\n  b\n\nassistant:\n  c\n"
    assert in_memory("prompt", "pack", "city=5") == (0, shown, "")
    method, params = server.requests[-1]
    assert (method, params["name"]) == ("prompts/get", "pack")
    assert params["arguments"] == {"city": "5"}
    assert in_memory("prompt", "bare").out == shown
    assert server.requests[-1][1]["arguments"] == {}
    on_terminal = in_memory("prompt", "pack", "city=5", terminal=True).out
    assert on_terminal == "^[1;36muser:^[0m\n  a\n  b\n\n^[1;36massistant:^[0m\n  c\n"
    assert json.loads(in_memory("prompt", "bare", "--json").out) == {"messages": MESSAGES}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["pack"], "the prompt pack needs city: add city=..."),
        (["pack", "city=1", "x=2"], "the prompt pack has no argument x; it takes city, days."),
        (["bare", "x=2"], "the prompt bare has no argument x; it takes none."),
        (
            ["pak"],
            "the server has no prompt pak; its prompts are pack, bare. Did you mean pack?",
        ),
    ],
)
def test_prompt_that_is_not_there_is_not_requested(
    words: list[str], complaint: str, in_memory: MemoryCommand
) -> None:
    server = in_memory.server = AnsweringServer(CAPABILITIES, ANSWERS)
    assert in_memory("prompt", *words) == (2, "", f"mcp-trio: {complaint}\n")
    assert server.requests[-1][0] == "prompts/list"


def completing(*values: str, version: str = "2025-06-18", **more: Any) -> AnsweringServer:
    answer = {"completion": {"values": [*values], **more}}
    return AnsweringServer(
        CAPABILITIES, {**ANSWERS, "completion/complete": answer}, version=version
    )


@pytest.mark.parametrize(
    ("values", "more", "out", "err"),
    [
        (["Lima\n", "Lyon"], {}, "Lima\\n\nLyon\n", ""),
        (["Lima"], {"total": 1}, "Lima\n", ""),
        (["Lima"], {"total": 0}, "Lima\n", ""),
        (["Lima"], {"total": 2}, "Lima\n", "these are 1 of 2 values"),
        (["Lima"], {"total": 2, "hasMore": True}, "Lima\n", "these are 1 of 2 values"),
        (["Lima"], {"total": 1, "hasMore": True}, "Lima\n", "the server has more values"),
        (["Lima"], {"hasMore": True}, "Lima\n", "the server has more values"),
        ([], {"total": 3, "hasMore": True}, "", "the server suggests no values"),
    ],
)
def test_complete_says_whether_there_are_more_values(
    values: list[str], more: dict[str, Any], out: str, err: str, in_memory: MemoryCommand
) -> None:
    in_memory.server = completing(*values, **more)
    line = f"mcp-trio: {err}\n" if err else ""
    assert in_memory("complete", "pack", "city", "L") == (0, out, line)
    found = in_memory("complete", "pack", "city", "L", "--json")
    assert (json.loads(found.out), found.err) == ({"values": values, **more}, "")


@pytest.mark.parametrize(
    ("words", "params"),
    [
        (
            ["pack", "city", "L"],
            {
                "ref": {"type": "ref/prompt", "name": "pack"},
                "argument": {"name": "city", "value": "L"},
            },
        ),
        (
            ["pack", "city", "", "days=5"],
            {
                "ref": {"type": "ref/prompt", "name": "pack"},
                "argument": {"name": "city", "value": ""},
                "context": {"arguments": {"days": "5"}},
            },
        ),
        (
            ["a:{b}", "b", "L"],
            {
                "ref": {"type": "ref/resource", "uri": "a:{b}"},
                "argument": {"name": "b", "value": "L"},
            },
        ),
    ],
)
def test_complete_requests_the_values_of_an_argument(
    words: list[str], params: Any, in_memory: MemoryCommand
) -> None:
    server = in_memory.server = completing("x")
    assert in_memory("complete", *words) == (0, "x\n", "")
    assert server.requests[-1] == ("completion/complete", params)


def test_complete_says_which_arguments_an_old_server_does_not_get(
    in_memory: MemoryCommand,
) -> None:
    server = in_memory.server = completing("x", version="2024-11-05")
    assert in_memory("complete", "pack", "city", "L", "days=5", "city=6") == (
        0,
        "x\n",
        "mcp-trio: revision 2024-11-05 cannot send other arguments: days and city\n",
    )
    assert "context" not in server.requests[-1][1]
    assert in_memory("complete", "pack", "city", "L").err == ""


@pytest.mark.parametrize(
    ("words", "complaint", "last"),
    [
        (
            ["pack", "cit", "L"],
            "the prompt pack has no argument cit; it takes city, days. Did you mean city?",
            "prompts/list",
        ),
        (["bare", "cit", "L"], "the prompt bare has no argument cit; it takes none.", ""),
        (
            ["pack", "city", "L", "x=1"],
            "the prompt pack has no argument x; it takes city, days.",
            "",
        ),
        (
            ["a:{c}", "c", "L"],
            (
                "the server has no resource template a:{c}; its resource templates are a:{b}. Did"
                " you mean a:{b}?"
            ),
            "resources/templates/list",
        ),
        (
            ["a://b", "b", "L"],
            (
                "the server has no resource template a://b; its resource templates are a:{b}. Did"
                " you mean a:{b}?"
            ),
            "resources/templates/list",
        ),
        (["a:{b}", "c", "L"], "the template a:{b} has no argument c; it takes b.", ""),
    ],
)
def test_complete_of_what_is_not_there_is_not_requested(
    words: list[str], complaint: str, last: str, in_memory: MemoryCommand
) -> None:
    server = in_memory.server = completing("x")
    assert in_memory("complete", *words) == (2, "", f"mcp-trio: {complaint}\n")
    assert not last or server.requests[-1][0] == last


def test_complete_template_needs_resources_and_a_valid_form(in_memory: MemoryCommand) -> None:
    """A server without resources is not asked for templates."""
    in_memory.server = AnsweringServer({"completions": {}, "prompts": {}}, ANSWERS)
    assert in_memory("complete", "a:{b}", "b", "L") == (
        2,
        "",
        "mcp-trio: the server has no resource template a:{b}; it has none.\n",
    )
    launches = len(in_memory.launches)
    assert in_memory("complete", "a:{", "b", "L") == (
        2,
        "",
        (
            "mcp-trio: URI template 'a:{': the '{' at 2 is never closed; `mcp-trio inspect` lists"
            " the server's templates\n"
        ),
    )
    assert len(in_memory.launches) == launches
