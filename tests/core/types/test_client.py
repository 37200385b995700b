"""Requests to clients and their results, forms, and input requests inside results."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mcp_core import types as t
from tests.core.types.json_assertions import assert_json, decode_error

FORM: dict[str, Any] = {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (t.CreateMessageParams(messages=[], max_tokens=1), '{"messages":[],"maxTokens":1}'),
        (
            t.CreateMessageParams(
                messages=[t.SamplingMessage("user", t.TextContent("hi"))],
                max_tokens=9,
                model_preferences=t.ModelPreferences(
                    hints=[t.ModelHint("small")], cost_priority=0.5
                ),
                system_prompt="s",
                include_context="none",
                temperature=0.1,
                stop_sequences=["."],
                metadata={"k": None},
                tools=[],
                tool_choice=t.ToolChoice("none"),
                task=t.TaskMetadata(),
            ),
            (
                '{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9,'
                '"modelPreferences":{"hints":[{"name":"small"}],"costPriority":0.5},"systemPrompt":"s",'
                '"includeContext":"none","temperature":0.1,"stopSequences":["."],"metadata":{"k":null},"tools":[],'
                '"toolChoice":{"mode":"none"},"task":{}}'
            ),
        ),
        (
            t.CreateMessageResult(
                role="assistant", content=t.TextContent("hi"), model="m", stop_reason="own"
            ),
            '{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m","stopReason":"own"}',
        ),
        (
            t.ElicitParams(message="m", requested_schema=FORM),
            '{"message":"m","requestedSchema":{"type":"object","properties":{}}}',
        ),
        (
            t.ElicitParams(message="m", mode="url", url="https://example.org", elicitation_id="1"),
            '{"message":"m","mode":"url","url":"https://example.org","elicitationId":"1"}',
        ),
        (
            t.ElicitResult(
                action="accept", content={"a": 1, "b": 1.5, "c": True, "d": "x", "e": ["y"]}
            ),
            '{"action":"accept","content":{"a":1,"b":1.5,"c":true,"d":"x","e":["y"]}}',
        ),
        (t.ElicitationCompleteParams(elicitation_id="1"), '{"elicitationId":"1"}'),
        (t.Root("file:///a", "a", {"k": 1}), '{"uri":"file:///a","name":"a","_meta":{"k":1}}'),
        (t.ListRootsParams(), "{}"),
        (t.ListRootsResult(roots=[t.Root("file:///a")]), '{"roots":[{"uri":"file:///a"}]}'),
    ],
)
def test_client_types_round_trip(value: msgspec.Struct, text: str) -> None:
    assert_json(value, text)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ('"mode":"url"', "needs url"),
        ('"mode":"url","requestedSchema":{}', "needs url"),
        ('"mode":"form"', "needs requestedSchema"),
        ('"url":"https://example.org"', "needs requestedSchema"),
        ('"mode":null,"requestedSchema":null', "needs requestedSchema"),
        ('"mode":"voice","requestedSchema":{}', "voice"),
    ],
)
def test_elicit_params_mode_requires_its_member(members: str, reason: str) -> None:
    assert reason in decode_error(f'{{"message":"m",{members}}}', t.ElicitParams)


@pytest.mark.parametrize("value", ["null", "{}", "[1]", "[null]"])
def test_elicit_result_invalid_content_rejected(value: str) -> None:
    assert "content" in decode_error(
        f'{{"action":"accept","content":{{"a":{value}}}}}', t.ElicitResult
    )


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (
            t.StringSchema(min_length=1, max_length=2, format="date-time"),
            '{"type":"string","minLength":1,"maxLength":2,"format":"date-time"}',
        ),
        (
            t.StringSchema(enum=["a"], enum_names=["A"]),
            '{"type":"string","enum":["a"],"enumNames":["A"]}',
        ),
        (
            t.StringSchema(one_of=[t.EnumOption("a", "A")], default="a"),
            '{"type":"string","oneOf":[{"const":"a","title":"A"}],"default":"a"}',
        ),
        (t.NumberSchema(minimum=0, maximum=1.5), '{"type":"number","minimum":0,"maximum":1.5}'),
        (t.IntegerSchema(default=3), '{"type":"integer","default":3}'),
        (
            t.BooleanSchema(title="T", description="D", default=False),
            '{"type":"boolean","title":"T","description":"D","default":false}',
        ),
        (
            t.MultiSelectSchema(
                items=t.EnumItems(type="string", enum=["a"]), min_items=0, max_items=1, default=[]
            ),
            '{"type":"array","items":{"type":"string","enum":["a"]},"minItems":0,"maxItems":1,"default":[]}',
        ),
        (
            t.MultiSelectSchema(items=t.EnumItems(any_of=[t.EnumOption("a", "A")])),
            '{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}',
        ),
    ],
)
def test_form_fields_round_trip(field: t.PrimitiveSchema, text: str) -> None:
    assert_json(field, text, t.PrimitiveSchema)
    # A form is a dict, to and from which its fields can be converted.
    form = t.ElicitParams(
        message="m", requested_schema={"type": "object", "properties": {"f": field}}
    )
    sent = json.loads(msgspec.json.encode(form))["requestedSchema"]["properties"]
    assert sent == {"f": json.loads(text)}
    assert msgspec.convert(sent, dict[str, t.PrimitiveSchema]) == {"f": field}


REQUESTS = [
    (
        t.ElicitRequest(t.ElicitParams(message="m", requested_schema=FORM)),
        '{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}',
    ),
    (
        t.CreateMessageRequest(t.CreateMessageParams(messages=[], max_tokens=1)),
        '{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}',
    ),
    (t.ListRootsRequest(), '{"method":"roots/list"}'),
    (t.ListRootsRequest(t.ListRootsParams()), '{"method":"roots/list","params":{}}'),
]


@pytest.mark.parametrize(("request_", "text"), REQUESTS)
def test_input_requests_round_trip(request_: t.InputRequest, text: str) -> None:
    assert_json(request_, text, t.InputRequest)
    assert f'"method":"{request_.method}"' in text
    assert_json(
        t.InputRequiredResult(
            input_requests={"k": request_}, request_state="s", result_type="input_required"
        ),
        f'{{"resultType":"input_required","inputRequests":{{"k":{text}}},"requestState":"s"}}',
    )


def test_input_requests_other_method_rejected() -> None:
    assert "ping" in decode_error(
        '{"inputRequests":{"k":{"method":"ping"}}}', t.InputRequiredResult
    )


def test_url_elicitation_error_data_is_unchanged_by_round_trip() -> None:
    assert_json(
        t.URLElicitationRequiredData(
            [t.ElicitParams(message="m", mode="url", url="u:", elicitation_id="1")]
        ),
        '{"elicitations":[{"message":"m","mode":"url","url":"u:","elicitationId":"1"}]}',
    )


def test_sampling_result_blocks_and_text() -> None:
    hi = t.TextContent("hi")
    use = t.ToolUseContent("1", "n", {})
    one = t.CreateMessageResult(role="assistant", content=hi, model="m")
    assert (one.blocks, one.text) == ([hi], "hi")
    several = t.CreateMessageResult(
        role="assistant", content=[hi, use, t.TextContent("there")], model="m"
    )
    assert (several.blocks, several.text) == (several.content, "hi\nthere")
    assert t.CreateMessageResult(role="assistant", content=use, model="m").text == ""
