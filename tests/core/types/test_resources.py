"""Resources as JSON, with contents that are either text or base64."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from mcp_core import types as t
from tests.core.types.json_assertions import assert_json, decode_error


@pytest.mark.requirement("RES-2", "RES-3")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            t.Resource(uri="x:y", name="y", mime_type="text/plain", size=3),
            '{"name":"y","uri":"x:y","mimeType":"text/plain","size":3}',
        ),
        (t.ResourceTemplate(uri_template="x:{y}", name="y"), '{"name":"y","uriTemplate":"x:{y}"}'),
        (
            t.Resource(
                uri="x:y",
                name="y",
                title="Y",
                description="why",
                icons=[],
                meta={"k": 1},
                annotations=t.Annotations(),
            ),
            '{"name":"y","title":"Y","description":"why","icons":[],"_meta":{"k":1},"uri":"x:y","annotations":{}}',
        ),
        (t.ListResourcesResult(resources=[], next_cursor="2"), '{"resources":[],"nextCursor":"2"}'),
        (
            t.ListResourceTemplatesResult(resource_templates=[], ttl_ms=5),
            '{"ttlMs":5,"resourceTemplates":[]}',
        ),
        (t.ReadResourceParams(uri="x:y"), '{"uri":"x:y"}'),
        (
            t.ReadResourceParams(
                uri="x:y", input_responses={"k": Raw(b'{"roots":[]}')}, request_state="s"
            ),
            '{"inputResponses":{"k":{"roots":[]}},"requestState":"s","uri":"x:y"}',
        ),
        (
            t.ReadResourceResult(
                contents=[t.ResourceContents(uri="x:y", blob="AA==", mime_type="a/b", meta={})]
            ),
            '{"contents":[{"uri":"x:y","mimeType":"a/b","blob":"AA==","_meta":{}}]}',
        ),
        (t.SubscribeParams(uri="x:y"), '{"uri":"x:y"}'),
        (t.UnsubscribeParams(uri="x:y"), '{"uri":"x:y"}'),
        (t.ResourceUpdatedParams(uri="x:y", meta={"k": 1}), '{"_meta":{"k":1},"uri":"x:y"}'),
    ],
)
def test_resource_types_round_trip(value: msgspec.Struct, text: str) -> None:
    assert_json(value, text)


@pytest.mark.requirement("CONT-6")
@pytest.mark.parametrize(
    ("members", "good"),
    [
        ('"text":""', True),
        ('"blob":""', True),
        ('"text":"a","blob":null', True),
        ('"text":null,"blob":"AA=="', True),
        ('"text":"a","blob":"AA=="', False),
        ('"text":null', False),
        ('"mimeType":"a/b"', False),
    ],
)
def test_resource_contents_decode_requires_text_or_blob(members: str, good: bool) -> None:
    text = f'{{"uri":"x:y",{members}}}'
    if good:
        assert msgspec.json.decode(text, type=t.ResourceContents).uri == "x:y"
    else:
        assert "either text or blob" in decode_error(text, t.ResourceContents)


def test_resource_contents_init_requires_text_or_blob() -> None:
    with pytest.raises(ValueError, match="either text or blob"):
        t.ResourceContents(uri="x:y")
    with pytest.raises(ValueError, match="either text or blob"):
        t.ResourceContents(uri="x:y", text="a", blob="AA==")
