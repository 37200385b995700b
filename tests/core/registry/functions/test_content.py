"""`Image`, `Audio` and `File`, and the distinction between content and data."""

from __future__ import annotations

import base64
import math
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from mcp_core.registry import Audio, File, Image
from mcp_core.registry.functions._content import (
    base64_of,
    block_of,
    blocks_of,
    check_result,
    json_text,
)
from mcp_core.types import (
    Annotations,
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    ListToolsResult,
    PromptMessage,
    ReadResourceResult,
    ResourceContents,
    ResourceLink,
    TextContent,
)

DATA = bytes(range(256))
ENCODED = base64.b64encode(DATA).decode()
LINK = ResourceLink(uri="x://y", name="y")


@pytest.mark.requirement("CONT-4")
@pytest.mark.parametrize("data", [DATA, bytearray(DATA), memoryview(DATA), b"", b"a", b"ab"])
def test_base64_of_round_trips(data: bytes) -> None:
    assert base64.b64decode(base64_of(data), validate=True) == bytes(data)


@pytest.mark.requirement("CONT-1", "CONT-4")
def test_media_convert_to_content_blocks() -> None:
    """`format` is a short form of the MIME type; text in a `File` stays text."""
    notes = Annotations(priority=0.5)
    assert Image(DATA).block() == ImageContent(ENCODED, "image/png")
    assert Image(DATA, format="jpg").block() == ImageContent(ENCODED, "image/jpeg")
    assert Image(DATA, format="svg").mime_type == "image/svg+xml"
    assert Image(DATA, mime_type="image/x-own", annotations=notes).block() == ImageContent(
        ENCODED, "image/x-own", annotations=notes
    )
    assert Audio(DATA).block() == AudioContent(ENCODED, "audio/wav")
    assert Audio(DATA, format="mp3", annotations=notes).block() == AudioContent(
        ENCODED, "audio/mpeg", annotations=notes
    )
    assert File(DATA, "x://y").block() == EmbeddedResource(
        ResourceContents(uri="x://y", mime_type="application/octet-stream", blob=ENCODED)
    )
    assert File("hi", "x://y", "text/plain", notes).block() == EmbeddedResource(
        ResourceContents(uri="x://y", mime_type="text/plain", text="hi"), annotations=notes
    )


@pytest.mark.requirement("CONT-4")
@pytest.mark.parametrize("bad", ["png", "image/", "/png", "image/p ng", "image/png\nx", "a/b/c"])
def test_media_invalid_mime_type_raises(bad: str) -> None:
    for make in (
        lambda: Image(b"", mime_type=bad),
        lambda: Audio(b"", mime_type=bad),
        lambda: File(b"", "x:", bad),
    ):
        with pytest.raises(ValueError, match="no MIME type"):
            make()
    assert (
        Image(b"", mime_type="image/svg+xml; charset=utf-8").mime_type
        == "image/svg+xml; charset=utf-8"
    )


@pytest.mark.parametrize(
    ("value", "blocks"),
    [
        (None, []),
        ("hi", [TextContent("hi")]),
        (TextContent("hi"), [TextContent("hi")]),
        (LINK, [LINK]),
        (Image(DATA), [ImageContent(ENCODED, "image/png")]),
        (["see", Image(DATA), {"a": 1}, None, LINK], [
            TextContent("see"), ImageContent(ENCODED, "image/png"), TextContent('{"a":1}'),
            TextContent("null"),
            LINK,
        ]),
        ((Image(DATA), [LINK, "x"]), [ImageContent(ENCODED, "image/png"), LINK, TextContent("x")]),
        (["a", "b"], None),
        ([], None),
        (3, None),
        ({"a": Image(DATA)}, None),
    ],
)  # fmt: skip
def test_blocks_of_tells_content_from_data(value: Any, blocks: Any) -> None:
    assert blocks_of(value) == blocks


@pytest.mark.parametrize("value", [b"x", bytearray(b"x"), memoryview(b"x"), [LINK, b"x"]])
def test_blocks_of_bare_bytes_raises(value: Any) -> None:
    with pytest.raises(TypeError, match="bytes have no MIME type"):
        blocks_of(value)


def test_block_of_and_json_text_single_values() -> None:
    assert block_of(3) is None
    assert block_of("x") == TextContent("x")
    assert json_text("x") == "x"
    assert json_text([1, "x"]) == '[1,"x"]'
    with pytest.raises(TypeError):
        json_text(object())


@pytest.mark.parametrize("kind", [Image, Audio])
@pytest.mark.parametrize("data", ["chart.png", Path("chart.png"), None])
def test_media_of_anything_but_bytes_say_how_to_read_the_file(kind: Any, data: Any) -> None:
    with pytest.raises(TypeError) as caught:
        kind(data)
    name = kind.__name__
    assert str(caught.value) == (
        f"{name} takes the bytes of a file, not {data!r}: "
        f"read the file first, as in {name}(Path(path).read_bytes())"
    )


NAN = {"a": math.nan}
IN_RESOURCE = ResourceContents(uri="x:", text="", meta=NAN)


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (GetPromptResult(messages=[], meta=NAN), "_meta.a is NaN"),
        (
            GetPromptResult(messages=[PromptMessage("user", TextContent("x", meta=NAN))]),
            "messages[0].content._meta.a is NaN",
        ),
        (ReadResourceResult(contents=[IN_RESOURCE]), "contents[0]._meta.a is NaN"),
        (CallToolResult(content=[TextContent("x", meta=NAN)]), "content[0]._meta.a is NaN"),
        (
            CallToolResult(content=[EmbeddedResource(IN_RESOURCE)]),
            "content[0].resource._meta.a is NaN",
        ),
        (CallToolResult(content=[], structured_content=NAN), "structuredContent.a is NaN"),
        (
            CallToolResult(content=[TextContent("x", annotations=Annotations(priority=2))]),
            "the priority 2 is not from 0 (optional) to 1 (needed)",
        ),
        # Nothing is wrong with these, or they are checked later.
        (CallToolResult(content=[TextContent("x", annotations=Annotations(priority=1))]), ""),
        (CallToolResult(content=[TextContent("x", meta={"a": None})], meta={"b": None}), ""),
        (CallToolResult(content=[], structured_content=Raw(b'{"a":null}')), ""),
        (ListToolsResult(tools=[], meta=NAN), ""),
    ],
)
def test_result_with_what_json_lacks_is_refused(result: Any, problem: str) -> None:
    if not problem:
        check_result(result)
        return
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}"):
        check_result(result)
