"""`mcp-trio inspect`: what a server offers, as text and as JSON."""

from __future__ import annotations

import json
import textwrap

import pytest

from tests.harness.world.command import (
    GREETER,
    TEAHOUSE,
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
