"""`mcp-trio inspect`: what a server offers."""

from __future__ import annotations

import json
import textwrap

import pytest

from tests.trio_.command.program import GREETER, TEAHOUSE, output_of, run


def test_inspect_shows_what_there_is() -> None:
    assert output_of("inspect", *GREETER) == textwrap.dedent("""\
        greeter 0, speaking revision 2026-07-28
          capabilities: tools, tools.listChanged, logging

        Tools (1)
          greet
              Say hello to someone by name.
              name  string, required
        """)


def test_inspect_shows_everything() -> None:
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
def test_inspect_as_json(version: str) -> None:
    found = json.loads(output_of("inspect", "--json", "--revision", version, *TEAHOUSE))
    assert list(found) == ["server", "tools", "resources", "resourceTemplates", "prompts"]
    assert found["server"]["name"] == "teahouse"
    assert found["server"]["protocolVersion"] == version
    assert set(found["server"]["capabilities"]) == {"tools", "resources", "prompts", "logging"}
    assert found["server"]["instructions"].startswith("Look at the menu")
    assert [tool["inputSchema"]["required"] for tool in found["tools"]] == [["tea"], ["tea", "minutes"]]
    assert [template["uriTemplate"] for template in found["resourceTemplates"]] == ["tea://menu/{tea}"]


def test_inspect_does_not_ask_for_what_is_not_declared() -> None:
    result = run("inspect", "--json", "--trace", *GREETER)
    assert json.loads(result.stdout)["prompts"] == []
    assert "prompts/list" not in result.stderr
