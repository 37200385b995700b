"""`mcp-trio inspect`: what a server offers, as text and as JSON."""

from __future__ import annotations

import json
import textwrap

import pytest

from tests.harness.world.command import (
    GREETER,
    TEAHOUSE,
    answering,
    output_of,
    run,
)


def test_inspect_prints_declared_parts_only() -> None:
    assert output_of("inspect", *GREETER) == textwrap.dedent("""\
        greeter 0, speaking revision 2026-07-28
          capabilities: tools, tools.listChanged, logging

        Tools (1)
          greet
              Say hello to someone by name.
              name  string, required
        """)


def test_inspect_prints_all_parts() -> None:
    text = output_of("inspect", *TEAHOUSE)
    for line in (
        "teahouse 1.0, speaking revision 2026-07-28",
        "  The tea house",
        "    Look at the menu before you order.",
        "      cups  integer, default 1  how many.",
        "  tea://menu  (menu, text/plain)",
        "  tea://menu/{tea}  (card, text/plain)",
        "  recommend",
        "      mood  required",
    ):
        assert line in text.splitlines()


@pytest.mark.parametrize("version", ["2026-07-28", "2024-11-05"])
def test_inspect_json_prints_document(version: str) -> None:
    found = json.loads(output_of("inspect", "--json", "--revision", version, *TEAHOUSE))
    assert list(found) == ["server", "tools", "resources", "resourceTemplates", "prompts"]
    assert found["server"]["name"] == "teahouse"
    assert found["server"]["protocolVersion"] == version
    assert set(found["server"]["capabilities"]) == {"tools", "resources", "prompts", "logging"}
    assert found["server"]["instructions"].startswith("Look at the menu")
    assert [tool["inputSchema"]["required"] for tool in found["tools"]] == [
        ["tea"],
        ["tea", "minutes"],
    ]
    assert [template["uriTemplate"] for template in found["resourceTemplates"]] == [
        "tea://menu/{tea}"
    ]


def test_inspect_undeclared_capability_is_not_requested() -> None:
    result = run("inspect", "--json", "--trace", *GREETER)
    assert json.loads(result.stdout)["prompts"] == []
    assert "prompts/list" not in result.stderr


TOOLS = {"tools": [{"name": "query", "inputSchema": {"type": "object"}}]}
REFUSED = {"error": {"code": -32603, "message": "connect ECONNREFUSED 127.0.0.1:5432\nno \x1b[2J"}}
ERROR = "the server answered with an error: connect ECONNREFUSED 127.0.0.1:5432 (-32603)"


def test_inspect_failed_list_does_not_hide_the_others() -> None:
    """As `server-postgres` without a database answers: its tools are known without one."""
    server = answering({"tools": {}, "resources": {}}, tools_list=TOOLS, resources_list=REFUSED)
    assert output_of("inspect", *server, status=1) == textwrap.dedent(f"""\
        played 1, speaking revision 2025-06-18
          capabilities: tools, resources

        Tools (1)
          query

        Resources
          {ERROR}
          no \\u001b[2J
        """)
    found = json.loads(output_of("inspect", "--json", *server, status=1))
    assert list(found)[-1] == "errors"
    assert found["errors"] == {"resources": f"{ERROR}\nno \x1b[2J"}
    assert (found["tools"][0]["name"], found["resources"]) == ("query", [])


def test_inspect_all_lists_failed_prints_nothing() -> None:
    result = run("inspect", *answering({"tools": {}}, tools_list=REFUSED))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"mcp-trio: {ERROR}\n")
