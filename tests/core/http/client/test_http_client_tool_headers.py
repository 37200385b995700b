"""Which arguments a client mirrors into headers, as learned from `tools/list`."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import types as t
from mcp_core.http.client._streamable import ToolHeaders


def tool(name: str, **properties: Any) -> t.Tool:
    return t.Tool(name=name, input_schema={"type": "object", "properties": properties})


def region(header: str = "Region") -> dict[str, str]:
    return {"type": "string", "x-mcp-header": header}


@pytest.mark.requirement("HDR-13")
def test_tool_headers_invalid_annotation_removes_tool() -> None:
    known = ToolHeaders()
    page = t.ListToolsResult(
        tools=[tool("plain"), tool("bad", a=region("a b")), tool("good", r=region())]
    )
    assert [str(each) for each in known.learn(page)] == [
        "tool 'bad' is left out: x-mcp-header 'a b' of 'a' cannot be part of a header's name"
    ]
    assert [each.name for each in page.tools] == ["plain", "good"]
    assert known.by_tool.get("good") == {("r",): "Region"}
    assert known.by_tool.get("plain") is known.by_tool.get("bad") is None
    assert known.learn(page) == []
    assert repr(known) == "<ToolHeaders of 1 tools>"


def test_tool_headers_last_list_wins() -> None:
    known = ToolHeaders()
    known.learn(t.ListToolsResult(tools=[tool("a", r=region()), tool("b", r=region())]))
    known.learn(t.ListToolsResult(tools=[tool("a", r=region("Other"))]))
    known.learn(t.ListToolsResult(tools=[tool("b")]))
    assert (known.by_tool.get("a"), known.by_tool.get("b")) == ({("r",): "Other"}, None)


def test_tool_headers_long_names_are_left_out() -> None:
    """They would be kept. A tool without mirrored arguments may have any name."""
    known = ToolHeaders()
    page = t.ListToolsResult(
        tools=[
            tool("a" * 1024, r=region()),
            tool("b" * 1025, r=region()),
            tool("c" * 1025),
            tool("d", **{"p" * 1025: region()}),
        ]
    )
    errors = [str(each) for each in known.learn(page)]
    assert errors[0].endswith("is left out: its name is longer than 1024 characters")
    assert errors[1].endswith("is longer than 1024 characters")
    assert max(map(len, errors)) < 1200
    assert [each.name[0] for each in page.tools] == ["a", "c"]


def test_tool_headers_above_limit_forgets_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_core.http.client._streamable._MAX_TOOLS", 2)
    known = ToolHeaders()
    known.learn(t.ListToolsResult(tools=[tool(name, r=region()) for name in "abc"]))
    assert [known.by_tool.get(name) is not None for name in "abc"] == [False, True, True]
