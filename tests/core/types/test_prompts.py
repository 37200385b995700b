"""Prompts and completion as JSON."""

from __future__ import annotations

import msgspec
import pytest

from mcp_core import types as t
from tests.core.types.json_assertions import assert_json, decode_error


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            t.Prompt(
                name="a", arguments=[t.PromptArgument(name="b", required=False, description="B")]
            ),
            '{"name":"a","arguments":[{"name":"b","description":"B","required":false}]}',
        ),
        (t.ListPromptsResult(prompts=[]), '{"prompts":[]}'),
        (t.GetPromptParams(name="a", arguments={"b": "1"}), '{"name":"a","arguments":{"b":"1"}}'),
        (t.GetPromptResult(messages=[], description="d"), '{"messages":[],"description":"d"}'),
        (
            t.CompleteParams(
                ref=t.PromptReference("a", "A"), argument=t.CompletionArgument("b", "")
            ),
            '{"ref":{"type":"ref/prompt","name":"a","title":"A"},"argument":{"name":"b","value":""}}',
        ),
        (
            t.CompleteParams(
                ref=t.ResourceTemplateReference("x:{y}"),
                argument=t.CompletionArgument("y", "z"),
                context=t.CompletionContext(arguments={"b": "1"}),
            ),
            (
                '{"ref":{"type":"ref/resource","uri":"x:{y}"},"argument":{"name":"y","value":"z"},'
                '"context":{"arguments":{"b":"1"}}}'
            ),
        ),
        (
            t.CompleteResult(completion=t.Completion(["a"], 0, False)),
            '{"completion":{"values":["a"],"total":0,"hasMore":false}}',
        ),
    ],
)
def test_prompt_types_round_trip(value: msgspec.Struct, text: str) -> None:
    assert_json(value, text)


@pytest.mark.requirement("PRM-2")
@pytest.mark.parametrize("value", ["1", "true", "null", '["1"]', "{}"])
def test_prompt_arguments_must_be_strings(value: str) -> None:
    assert "arguments" in decode_error(
        f'{{"name":"a","arguments":{{"b":{value}}}}}', t.GetPromptParams
    )


def test_completion_reference_has_type() -> None:
    assert t.PromptReference("a").type == "ref/prompt"
    assert t.ResourceTemplateReference("x:y").type == "ref/resource"
    assert "ref/tool" in decode_error(
        '{"ref":{"type":"ref/tool"},"argument":{"name":"","value":""}}', t.CompleteParams
    )
