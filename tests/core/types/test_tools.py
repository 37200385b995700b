"""Tools as JSON, and absent or null members of a call and its result."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from mcp_core import ToolError
from mcp_core import types as t
from mcp_core.types import CallToolResult, ContentBlock, ImageContent, TextContent
from tests.core.types.json_assertions import assert_json, decode_error


@pytest.mark.requirement("TOOL-2", "TOOL-14")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            t.Tool(name="a", input_schema={"type": "object"}),
            '{"name":"a","inputSchema":{"type":"object"}}',
        ),
        (
            t.Tool(
                name="a",
                title="A",
                input_schema={"type": "object", "x-own": [None]},
                output_schema={},
                annotations=t.ToolAnnotations(read_only_hint=True, open_world_hint=False),
                execution=t.ToolExecution(task_support="required"),
            ),
            (
                '{"name":"a","title":"A","inputSchema":{"type":"object","x-own":[null]},"outputSchema":{},'
                '"annotations":{"readOnlyHint":true,"openWorldHint":false},"execution":{"taskSupport":"required"}}'
            ),
        ),
        (t.ListToolsResult(tools=[], next_cursor="2"), '{"tools":[],"nextCursor":"2"}'),
        (t.CallToolParams(name="a"), '{"name":"a"}'),
        (
            t.CallToolParams(name="a", arguments=Raw(b'{"b":[1.50]}')),
            '{"name":"a","arguments":{"b":[1.50]}}',
        ),
        (t.CallToolParams(name="a", task=t.TaskMetadata(ttl=5)), '{"name":"a","task":{"ttl":5}}'),
        (t.CallToolParams(name="a", request_state="s"), '{"requestState":"s","name":"a"}'),
    ],
)
def test_tool_types_round_trip(value: msgspec.Struct, text: str) -> None:
    assert_json(value, text)


def test_call_tool_params_absent_or_null_arguments() -> None:
    read = msgspec.json.decode('{"name":"a"}', type=t.CallToolParams)
    assert read.arguments is UNSET
    assert_json(read, '{"name":"a"}')


@pytest.mark.requirement("TOOL-9")
@pytest.mark.parametrize(
    ("members", "value"),
    [
        ("", UNSET),
        (',"structuredContent":null', None),
        (',"structuredContent":{"a":1}', {"a": 1}),
        (',"structuredContent":[]', []),
        (',"structuredContent":0', 0),
    ],
)
def test_call_tool_result_structured_content_absent_or_any(members: str, value: Any) -> None:
    result = t.CallToolResult(content=[], structured_content=value)
    assert_json(result, f'{{"content":[]{members}}}')


@pytest.mark.requirement("TOOL-13")
@pytest.mark.parametrize(
    ("members", "error"),
    [
        ("", False),
        (',"isError":null', False),
        (',"isError":false', False),
        (',"isError":true', True),
    ],
)
def test_call_tool_result_is_error_absent_null_or_boolean(members: str, error: bool) -> None:
    read = msgspec.json.decode(f'{{"content":[]{members}}}', type=t.CallToolResult)
    assert bool(read.is_error) is error
    assert_json(
        t.CallToolResult(content=[], is_error=error),
        '{"content":[],"isError":true}' if error else '{"content":[]}',
    )


@pytest.mark.requirement("TOOL-13")
def test_call_tool_result_requires_content() -> None:
    assert "content" in decode_error('{"structuredContent":{}}', t.CallToolResult)


@pytest.mark.requirement("TOOL-22")
@pytest.mark.parametrize(
    ("title", "annotated", "shown"),
    [("T", "A", "T"), (None, "A", "A"), (None, None, "name"), ("T", None, "T")],
)
def test_tool_display_name_prefers_title(
    title: str | None, annotated: str | None, shown: str
) -> None:
    annotations = t.ToolAnnotations(title=annotated) if annotated else None
    assert (
        t.Tool(name="name", input_schema={}, title=title, annotations=annotations).display_name
        == shown
    )
    assert (
        t.Tool(name="name", input_schema={}, annotations=t.ToolAnnotations()).display_name == "name"
    )


# -- Errors and texts of a result ------------------------------------------------------------------


def test_raise_for_error_success_returns_result() -> None:
    result = CallToolResult(content=[TextContent("fine")])
    assert result.raise_for_error() is result


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([TextContent("no such city")], "no such city"),
        ([TextContent("one"), ImageContent("aGk=", "image/png"), TextContent("two")], "one\ntwo"),
        ([ImageContent("aGk=", "image/png")], "the tool failed and did not say why"),
        ([], "the tool failed and did not say why"),
    ],
)
def test_raise_for_error_failure_raises_tool_error(
    content: list[TextContent | ImageContent], text: str
) -> None:
    with pytest.raises(ToolError) as caught:
        CallToolResult(content=[*content], is_error=True).raise_for_error()
    assert str(caught.value) == text


def test_call_tool_result_text_joins_text_blocks() -> None:
    blocks: list[ContentBlock] = [
        TextContent("one"),
        ImageContent("aGk=", "image/png"),
        TextContent("two"),
    ]
    assert CallToolResult(content=blocks).text == "one\ntwo"
    assert CallToolResult(content=[]).text == ""
