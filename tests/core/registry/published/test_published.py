"""150 tools of published servers have a schema as good as the peers', or better."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core.registry.published import peers, read_signatures
from tests.core.registry.published.compare import (
    DIFFERENCES,
    differences,
    kinds_of,
    list_differences,
    plain,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of pydantic, about the servers' models
TOOLS = read_signatures()


def test_corpus_has_150_tools_of_several_servers() -> None:
    assert len(TOOLS) == 150
    assert len({tool["server"] for tool in TOOLS}) >= 8


@pytest.mark.parametrize("tool", TOOLS[::15], ids=lambda tool: tool["name"])
def test_schema_of_a_published_tool_differs_in_known_ways_only(tool: dict[str, Any]) -> None:
    kinds = kinds_of(tool)
    listed = DIFFERENCES.read_text("utf-8")
    for peer, found in kinds.items():
        for kind in found:
            assert f"{peer}, {kind.verdict}, " in listed
            assert kind.text in listed


@pytest.mark.long
def test_each_difference_is_listed_with_its_verdict() -> None:
    """After a change: python -m tests.core.registry.published.compare, and read what is new."""
    assert DIFFERENCES.read_text("utf-8") == list_differences()


@pytest.mark.interop
@pytest.mark.parametrize("tool", TOOLS[::10], ids=lambda tool: tool["name"])
def test_stored_schemas_are_those_of_mcp(tool: dict[str, Any]) -> None:
    assert peers.schemas_of("mcp", tool) == tool["mcp"]


@pytest.mark.parametrize(
    ("theirs", "ours", "found"),
    [
        ({"type": "integer", "title": "X"}, {"type": "integer"}, []),
        ({"const": "a"}, {"enum": ["a"]}, []),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "null"}}}, {"type": "null"}, []),
        ({"type": "object", "additionalProperties": True}, {"type": "object"}, []),
        (
            {"anyOf": [{"type": "null"}, {"type": "string"}]},
            {"type": "string"},
            ["/anyOf", "/type"],
        ),
        ({"type": "integer", "default": 1}, {"type": "integer", "default": True}, ["/default"]),
        ({"minimum": 1}, {"minimum": 2}, ["/minimum"]),
    ],
)
def test_schemas_are_compared_by_what_they_mean(theirs: Any, ours: Any, found: list[str]) -> None:
    """A comparison that finds nothing would list nothing."""
    whole = json.loads(json.dumps([theirs, ours]))
    assert [place for place, *_ in differences(*map(plain, whole))] == found
