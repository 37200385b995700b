"""Content blocks: their `type`, and where each is allowed."""

from __future__ import annotations

import msgspec
import pytest

from mcp_core import types as t
from tests.core.types.json_assertions import assert_json, decode_error

BLOCKS = [
    (t.TextContent("hi"), '{"type":"text","text":"hi"}'),
    (t.ImageContent("AA==", "image/png"), '{"type":"image","data":"AA==","mimeType":"image/png"}'),
    (t.AudioContent("AA==", "audio/wav"), '{"type":"audio","data":"AA==","mimeType":"audio/wav"}'),
    (t.ResourceLink(uri="x:y", name="y"), '{"type":"resource_link","name":"y","uri":"x:y"}'),
    (
        t.EmbeddedResource(t.ResourceContents(uri="x:y", text="")),
        '{"type":"resource","resource":{"uri":"x:y","text":""}}',
    ),
]
FOR_MODELS = [
    *BLOCKS[:3],
    (
        t.ToolUseContent("1", "add", {"a": 1}),
        '{"type":"tool_use","id":"1","name":"add","input":{"a":1}}',
    ),
    (
        t.ToolResultContent("1", [t.TextContent("2")]),
        '{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"2"}]}',
    ),
    (
        t.ToolResultContent("1", [], None, True, {"k": 1}),
        '{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":null,"isError":true,"_meta":{"k":1}}',
    ),
]


@pytest.mark.requirement("CONT-1")
@pytest.mark.parametrize(("block", "text"), BLOCKS)
def test_content_blocks_round_trip(block: t.ContentBlock, text: str) -> None:
    assert_json(block, text, t.ContentBlock)
    assert f'"type":"{block.type}"' in text


@pytest.mark.requirement("CONT-2", "PRM-3")
@pytest.mark.parametrize(("block", "text"), BLOCKS)
def test_content_blocks_in_prompts_and_results(block: t.ContentBlock, text: str) -> None:
    assert_json(t.PromptMessage("user", block), f'{{"role":"user","content":{text}}}')
    assert_json(t.CallToolResult(content=[block, block]), f'{{"content":[{text},{text}]}}')
    assert "array" in decode_error(f'{{"role":"user","content":[{text}]}}', t.PromptMessage)


@pytest.mark.requirement("CONT-3")
@pytest.mark.parametrize(("block", "text"), FOR_MODELS)
def test_content_blocks_in_sampling(block: t.SamplingContent, text: str) -> None:
    assert_json(t.SamplingMessage("user", block), f'{{"role":"user","content":{text}}}')
    assert_json(t.SamplingMessage("user", [block]), f'{{"role":"user","content":[{text}]}}')
    assert_json(
        t.CreateMessageResult(role="assistant", content=[block], model="m"),
        f'{{"role":"assistant","content":[{text}],"model":"m"}}',
    )


@pytest.mark.requirement("CONT-3")
@pytest.mark.parametrize("block", [text for _, text in BLOCKS[3:]])
def test_sampling_content_resource_rejected(block: str) -> None:
    assert "type" in decode_error(f'{{"role":"user","content":{block}}}', t.SamplingMessage)


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"video","text":"hi"}',
        '{"text":"hi"}',
        '{"type":"tool_use","id":"1","name":"a","input":{}}',
    ],
)
def test_content_block_of_sampling_rejected_in_results(text: str) -> None:
    assert "type" in decode_error(text, t.ContentBlock)


def test_content_blocks_have_annotations_and_meta() -> None:
    assert_json(
        t.TextContent("hi", annotations=t.Annotations(priority=1.0), meta={"k": 1}),
        '{"type":"text","text":"hi","annotations":{"priority":1.0},"_meta":{"k":1}}',
    )


def test_resource_link_is_a_resource() -> None:
    assert isinstance(t.ResourceLink(uri="x:y", name="y"), t.Resource)


def test_content_block_type_is_constant() -> None:
    with pytest.raises(AttributeError, match="read-only"):
        setattr(t.TextContent("hi"), "type", "image")  # noqa: B010


@pytest.mark.parametrize("text", ['"isError":null', '"isError":false', ""])
def test_tool_result_content_null_is_error_is_false(text: str) -> None:
    members = ",".join(filter(None, ['"type":"tool_result","toolUseId":"1","content":[]', text]))
    read = msgspec.json.decode(f"{{{members}}}", type=t.ToolResultContent)
    assert read.is_error is False
    assert read.structured_content is msgspec.UNSET
