"""`CallToolResult.raise_for_error` and `text`."""

from __future__ import annotations

import pytest

from mcp_core import ToolError
from mcp_core.types import CallToolResult, ContentBlock, ImageContent, TextContent


def test_raise_for_error_success_returns_result() -> None:
    result = CallToolResult(content=[TextContent("fine")])
    assert result.raise_for_error() is result


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([TextContent("no such city")], "no such city"),
        ([TextContent("one"), ImageContent("aGk=", "image/png"), TextContent("two")], "one\ntwo"),
        ([ImageContent("aGk=", "image/png")], "the tool failed and did not say why"),
        ([], "the tool failed and did not say why"),
    ],
)
def test_raise_for_error_failure_raises_tool_error(
    content: list[TextContent | ImageContent], says: str
) -> None:
    with pytest.raises(ToolError) as caught:
        CallToolResult(content=[*content], is_error=True).raise_for_error()
    assert str(caught.value) == says


def test_call_tool_result_text_joins_text_blocks() -> None:
    blocks: list[ContentBlock] = [
        TextContent("one"),
        ImageContent("aGk=", "image/png"),
        TextContent("two"),
    ]
    assert CallToolResult(content=blocks).text == "one\ntwo"
    assert CallToolResult(content=[]).text == ""
