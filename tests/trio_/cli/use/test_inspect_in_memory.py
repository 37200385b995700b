"""`mcp-trio inspect` in memory: each line of what it prints, and lists that fail."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.trio_.cli.in_memory import AnsweringServer

if TYPE_CHECKING:
    from tests.trio_.cli.in_memory import MemoryCommand

WIDE = "a" * 30
WIDE2 = "b" * 30
PROSE = "Words that are " + "long " * 16 + "enough."
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": " At "},
        "days": {"type": "integer", "default": 3, "description": "a\nb"},
        "a_name_that_is_longer_than_all_of_the_columns": {"type": "boolean"},
        "wide": {"enum": [WIDE, WIDE2], "description": 5},
        "odd": True,
    },
    "required": ["city", "odd"],
}
TOOLS = [
    {"name": "look", "title": "Look", "description": f"One.\n\n{PROSE}\n", "inputSchema": SCHEMA},
    {"name": "plain", "inputSchema": {"type": "object"}},
]
RESOURCES = [
    {"uri": "a:1", "name": "one", "size": 0, "mimeType": "text/plain"},
    {"uri": "a:2", "name": "two", "title": "Two"},
]
TEMPLATES = [{"uriTemplate": "a:{b}", "name": "card", "title": "Card", "mimeType": "x/y"}]
PROMPTS = [
    {
        "name": "pack",
        "description": "Pack.",
        "arguments": [{"name": "mood", "required": True, "description": "m"}, {"name": "b"}],
    },
    {"name": "bare"},
]
ALL_LISTS = {
    "tools/list": {"tools": TOOLS},
    "resources/list": {"resources": RESOURCES},
    "resources/templates/list": {"resourceTemplates": TEMPLATES},
    "prompts/list": {"prompts": PROMPTS},
}
ALL_CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": False},
    "prompts": {},
}

INFO = {
    "name": "n",
    "version": "2",
    "title": "T",
    "description": PROSE,
    "websiteUrl": "https://x.test",
}
REFUSED = {"error": {"code": -32000, "message": "a"}}


def server_of_everything() -> AnsweringServer:
    more = {"serverInfo": INFO, "instructions": " Do.\nIt. "}
    return AnsweringServer(ALL_CAPABILITIES, ALL_LISTS, version="2025-11-25", initialized=more)


def test_inspect_prints_each_fact_on_its_line(in_memory: MemoryCommand) -> None:
    """A long name or type widens no other line."""
    in_memory.server = server_of_everything()
    assert in_memory("inspect") == (
        0,
        textwrap.dedent(f"""\
        n 2, speaking revision 2025-11-25
          T
            {PROSE}
          https://x.test
          capabilities: tools, tools.listChanged, resources, prompts
          instructions:
            Do.
            It.

        Tools (2)
          look  (Look)
              One.

              {PROSE}
              city                                      string, required                          At
              days                                      integer, default 3
                                                          a
                                                          b
              a_name_that_is_longer_than_all_of_the_columns  boolean, optional
              wide                                      "{WIDE}" or "{WIDE2}", optional
              odd                                       anything, required
          plain

        Resources (2)
          a:1  (one, text/plain, 0 bytes)
          a:2  (Two)

        Resource templates (1)
          a:{{b}}  (Card, x/y)

        Prompts (2)
          pack
              Pack.
              mood  required  m
              b     optional
          bare
        """),
        "",
    )


def test_inspect_wraps_prose_on_a_terminal_and_styles_names(in_memory: MemoryCommand) -> None:
    """The same facts, with prose below an argument if it has no room beside it."""
    in_memory.server = server_of_everything()
    assert in_memory("inspect", terminal=True).out == textwrap.dedent("""\
        ^[1mn 2^[0m, speaking revision 2025-11-25
          T
            Words that are long long long long long long long long
            long long long long long long long long enough.
          https://x.test
          capabilities: tools, tools.listChanged, resources, prompts
          instructions:
            Do.
            It.

        ^[1;4mTools (2)^[0m
          ^[1;36mlook^[0m^[2m  (Look)^[0m
              One.

              Words that are long long long long long long long long
              long long long long long long long long enough.
              ^[32mcity                                    ^[0m  ^[2mstring,^[0m
                ^[2mrequired^[0m
                                                          At
              ^[32mdays                                    ^[0m  ^[2minteger,^[0m
                ^[2mdefault 3^[0m
                                                          a
                                                          b
              ^[32ma_name_that_is_longer_than_all_of_the_columns^[0m
                ^[2mboolean, optional^[0m
              ^[32mwide^[0m
                ^[2m"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" or^[0m
                ^[2m"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", optional^[0m
              ^[32modd                                     ^[0m  ^[2manything,^[0m
                ^[2mrequired^[0m
          ^[1;36mplain^[0m

        ^[1;4mResources (2)^[0m
          ^[1;36ma:1^[0m^[2m  (one, text/plain, 0 bytes)^[0m
          ^[1;36ma:2^[0m^[2m  (Two)^[0m

        ^[1;4mResource templates (1)^[0m
          ^[1;36ma:{b}^[0m^[2m  (Card, x/y)^[0m

        ^[1;4mPrompts (2)^[0m
          ^[1;36mpack^[0m
              Pack.
              ^[32mmood^[0m  ^[2mrequired  ^[0mm
              ^[32mb   ^[0m  ^[2moptional^[0m
          ^[1;36mbare^[0m
        """)


@pytest.mark.parametrize(
    ("columns", "longest", "beside"), [("50", 50, False), ("79", 79, True), ("150", 100, True)]
)
def test_inspect_fits_into_the_terminal_and_no_line_of_prose_is_longer_than_100(
    columns: str,
    longest: int,
    beside: bool,
    in_memory: MemoryCommand,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A description stands beside its argument if there is room, else below it."""
    monkeypatch.setenv("COLUMNS", columns)
    words = "a " * (longest * 2)
    schema = {"properties": {"a": {"type": "string", "description": "d" * 45}}}
    tool = {"name": "look", "description": words, "inputSchema": schema}
    in_memory.server = AnsweringServer({"tools": {}}, {"tools/list": {"tools": [tool]}})
    lines = in_memory("inspect", terminal=True).out.splitlines()
    prose = [line for line in lines if line.startswith("      a a")]
    assert max(map(len, prose)) in (longest, longest - 1)
    assert ("      ^[32ma^[0m  ^[2mstring, optional  ^[0m" + "d" * 45 in lines) is beside
    assert (" " * 11 + "d" * 39 in lines) is not beside or columns == "50"


def test_inspect_json_has_what_the_server_sent(in_memory: MemoryCommand) -> None:
    """Members that a server leaves out are left out."""
    in_memory.server = server_of_everything()
    assert json.loads(in_memory("inspect", "--json").out) == {
        "server": {
            **INFO,
            "protocolVersion": "2025-11-25",
            "capabilities": ALL_CAPABILITIES,
            "instructions": " Do.\nIt. ",
        },
        "tools": TOOLS,
        "resources": RESOURCES,
        "resourceTemplates": TEMPLATES,
        "prompts": PROMPTS,
    }
    in_memory.server = AnsweringServer({}, {})
    assert list(json.loads(in_memory("inspect", "--json").out)["server"]) == [
        *("name", "version", "protocolVersion", "capabilities")
    ]


@pytest.mark.parametrize(
    ("answers", "printed", "asked"),
    [
        (
            {
                "tools/list": {"error": {"code": -32602, "message": "a"}},
                "resources/list": REFUSED,
                "prompts/list": "silent",
            },
            "\nResources\n  the server answered with an error: a (-32000)\n",
            "resources",
        ),
        (
            {"tools/list": {"tools": TOOLS[1:]}, "prompts/list": {"prompts": PROMPTS[1:]}},
            "\nTools (1)\n  plain\n\nPrompts (1)\n  bare\n",
            "tools or prompts",
        ),
        ({"tools/list": {"tools": []}}, "", "tools"),
        ({}, "", None),
    ],
)
def test_inspect_asks_a_server_that_declares_nothing_for_everything(
    answers: dict[str, Any], printed: str, asked: str | None, in_memory: MemoryCommand
) -> None:
    in_memory.server = AnsweringServer({}, answers)
    head = "played 1, speaking revision 2025-06-18\n  capabilities: none\n"
    asked_line = (
        f"mcp-trio: the server did not declare {asked}, and was asked for them all the same\n"
    )
    assert in_memory("inspect") == (0, head + printed, asked_line if asked else "")


def test_inspect_list_that_is_not_answered_in_time_is_an_error(in_memory: MemoryCommand) -> None:
    in_memory.server = AnsweringServer({"tools": {}}, {"tools/list": "silent"})
    assert in_memory("inspect", "--timeout", "7") == (
        3,
        "",
        (
            "mcp-trio: no answer to tools/list within 7 s (timeout: pass a longer one); a larger"
            " --timeout allows more time\n"
        ),
    )


def test_inspect_templates_that_a_server_does_not_know_are_none(in_memory: MemoryCommand) -> None:
    """Any other error about templates is shown, and doesn't hide the resources."""
    resources: dict[str, Any] = {"resources/list": {"resources": []}}
    head = "played 1, speaking revision 2025-06-18\n  capabilities: resources\n"
    in_memory.server = AnsweringServer({"resources": {}}, resources)
    assert in_memory("inspect") == (0, head, "")
    in_memory.server = AnsweringServer(
        {"resources": {}}, {**resources, "resources/templates/list": REFUSED}
    )
    error = "the server answered with an error: a (-32000)"
    assert in_memory("inspect") == (1, f"{head}\nResource templates\n  {error}\n", "")
    found = json.loads(in_memory("inspect", "--json").out)
    assert found["errors"] == {"resourceTemplates": error}
    assert "problems" not in found


def test_inspect_entry_that_cannot_be_read_is_a_problem_of_its_list(
    in_memory: MemoryCommand,
) -> None:
    """The other entries are shown."""
    in_memory.server = AnsweringServer(
        {"resources": {}, "tools": {}},
        {
            "tools/list": {"tools": [{"name": 5}, TOOLS[1]]},
            "resources/list": {"resources": [{"uri": "a:a"}, {"uri": "a:b", "name": "n"}]},
        },
    )
    found = json.loads(in_memory("inspect", "--json").out)
    assert list(found["problems"]) == ["tools", "resources"]
    (problem,) = found["problems"]["resources"]
    assert problem.startswith("resources[0] 'a:a' was left out: ")
    assert "errors" not in found
    out = in_memory("inspect").out
    assert f"Tools (1)\n  plain\n  problem: {found['problems']['tools'][0]}\n" in out
    assert f"Resources (1)\n  a:b  (n)\n  problem: {problem}\n" in out
