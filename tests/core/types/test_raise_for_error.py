"""`CallToolResult.raise_for_error`: the tool's own words as an exception."""

from __future__ import annotations

import pytest

from mcp_core import ToolError
from mcp_core.types import CallToolResult, ContentBlock, ImageContent, TextContent


def test_a_good_result_is_given_back() -> None:
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
def test_a_failed_one_is_raised(content: list[TextContent | ImageContent], says: str) -> None:
    with pytest.raises(ToolError) as caught:
        CallToolResult(content=[*content], is_error=True).raise_for_error()
    assert str(caught.value) == says


def test_text() -> None:
    blocks: list[ContentBlock] = [TextContent("one"), ImageContent("aGk=", "image/png"), TextContent("two")]
    assert CallToolResult(content=blocks).text == "one\ntwo"
    assert CallToolResult(content=[]).text == ""
