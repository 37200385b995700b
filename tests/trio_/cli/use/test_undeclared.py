"""Servers that declare nothing and have tools, resources or prompts: the command asks once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.world.command import answering, run

TOOLS = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
TEXT = {"type": "text", "text": "found"}
OFFERS: dict[str, Any] = {
    "tools_list": TOOLS,
    "tools_call": {"content": [TEXT]},
    "resources_list": {"resources": [{"uri": "x://y", "name": "y"}]},
    "resources_read": {"contents": [{"uri": "x://y", "text": "found"}]},
    "prompts_list": {"prompts": [{"name": "ask"}]},
    "prompts_get": {"messages": [{"role": "user", "content": TEXT}]},
}
REFUSED = {"error": {"code": -32603, "message": "the disk is full"}}
ALL = "tools or resources or prompts"
USES = [
    (("inspect",), ALL),
    (("call", "add"), "tools"),
    (("read", "x://y"), "resources"),
    (("prompt", "ask"), "prompts"),
]


def line_about(names: str) -> str:
    return f"mcp-trio: the server did not declare {names}, and was asked for them all the same\n"


@pytest.mark.parametrize(("words", "names"), USES)
def test_undeclared_capability_is_tried_with_a_line(words: tuple[str, ...], names: str) -> None:
    result = run(*words, *answering({}, **OFFERS))
    assert (result.returncode, result.stderr) == (0, line_about(names))
    for found in ("add", "x://y", "ask") if words == ("inspect",) else ("found",):
        assert found in result.stdout


# As the official Python SDK 1.x answers an unknown method.
INVALID = {"error": {"code": -32602, "message": "Invalid request parameters"}}
INVALID_LISTS = dict.fromkeys(
    ("tools_list", "resources_list", "resources_templates_list", "prompts_list"), INVALID
)


@pytest.mark.parametrize("lists", [{}, INVALID_LISTS], ids=["-32601", "-32602"])
@pytest.mark.parametrize("words", [words for words, _ in USES])
def test_undeclared_capability_that_is_unknown_is_absent(
    words: tuple[str, ...], lists: dict[str, Any]
) -> None:
    """Each method is requested once, and the error is the same as for a server that has nothing."""
    result = run(*words, "--trace", *answering({}, **lists))
    assert "did not declare" not in result.stderr
    sent = [line for line in result.stderr.splitlines() if line.startswith("\u2192 ")]
    methods = [json.loads(line[2:])["method"] for line in sent]
    assert len(methods) == len(set(methods))
    if words == ("inspect",):
        assert result.returncode == 0
        assert result.stdout == "played 1, speaking revision 2025-06-18\n  capabilities: none\n"
    else:
        assert result.returncode == 2
        assert "the server has no " in result.stderr


def test_undeclared_capability_error_is_printed_in_its_place() -> None:
    result = run("inspect", "--json", *answering({}, tools_list=TOOLS, prompts_list=REFUSED))
    assert result.stderr == line_about("tools or prompts")
    found = json.loads(result.stdout)
    assert (result.returncode, found["tools"][0]["name"]) == (0, "add")
    assert found["server"]["capabilities"] == {}
    assert found["errors"] == {
        "prompts": "the server answered with an error: the disk is full (-32603)"
    }


@pytest.mark.parametrize(("words", "names"), [USES[1], USES[3]])
def test_undeclared_list_that_is_refused_is_an_error_with_a_line(
    words: tuple[str, ...], names: str
) -> None:
    result = run(*words, *answering({}, **{f"{names}_list": REFUSED}))
    assert result.stderr.startswith(line_about(names)), result.stderr
    assert "the disk is full" in result.stderr
    assert result.returncode != 0


def test_undeclared_list_that_is_never_answered_is_absent() -> None:
    server = answering({}, tools_list=TOOLS, resources_list="silent")
    result = run("inspect", "--timeout", "3", *server)
    assert (result.returncode, result.stderr) == (0, line_about("tools"))
    assert result.stdout.endswith("Tools (1)\n  add\n")


@pytest.mark.parametrize("words", [words for words, _ in USES if words[0] in ("call", "prompt")])
def test_undeclared_list_that_is_never_answered_ends_a_call_soon(words: tuple[str, ...]) -> None:
    """The list has five seconds, the call a minute."""
    result = run(*words, *answering({}, tools_list="silent", prompts_list="silent"))
    assert result.returncode == 2
    assert "the server has no " in result.stderr


@pytest.mark.parametrize("declared", ["tools", "resources", "prompts"])
def test_server_that_declares_anything_is_taken_at_its_word(declared: str) -> None:
    """A server that knows how to declare has nothing else, as its other methods may be anything."""
    server = answering({declared: {}}, **OFFERS)
    page = run("inspect", *server)
    assert (page.returncode, page.stderr) == (0, "")
    assert [name for name in ("Tools", "Resources", "Prompts") if name in page.stdout] == [
        declared.title()
    ]
    for words, name in USES[1:]:
        result = run(*words, *server)
        assert "did not declare" not in result.stderr
        assert result.returncode == (0 if name == declared else 2)
        assert ("the server has no " in result.stderr) is (name != declared)
