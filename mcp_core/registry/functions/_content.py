"""`Image`, `Audio` and `File`, and the conversion of a handler's values to content blocks.

1. Nothing is read from disk. The handler reads files itself, in the way that its runtime needs.
2. Bare bytes aren't content, because they have no MIME type. `Image`, `Audio` and `File` have.
3. A list is content if it holds at least one content block, `Image`, `Audio` or `File`. Its strings
   are then text blocks, and its other values JSON. A list without any of these is data.
"""

from __future__ import annotations

from binascii import b2a_base64
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from mcp_core._patterns import compile_on_first_use
from mcp_core._text import shorten_text
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.protocol.jsonrpc._unencodable import check_numbers
from mcp_core.registry._validation import find_annotations_error
from mcp_core.types import (
    Annotations,
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    ReadResourceResult,
    ResourceContents,
    ResourceLink,
    TextContent,
    UnknownContent,
)

from ._types import encode_value

__all__ = [
    "BLOCKS",
    "MEDIA",
    "Audio",
    "File",
    "Image",
    "base64_of",
    "block_of",
    "blocks_of",
    "check_result",
    "json_text",
]

# RFC 6838, section 4.2
_MIME_TYPE = compile_on_first_use(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:\s*;.*)?")
# File formats whose MIME subtype has another name.
_SUBTYPES: Final = {"jpg": "jpeg", "svg": "svg+xml", "mp3": "mpeg", "m4a": "mp4", "ico": "x-icon"}


def base64_of(data: bytes | bytearray | memoryview) -> str:
    """Encode bytes as base64 text: standard alphabet, with padding (RFC 4648, section 4)."""
    return b2a_base64(data, newline=False).decode("ascii")


def json_text(value: Any) -> str:
    """Encode a value as JSON text. A string is returned unchanged.

    Raises:
        TypeError, UnencodableValue: JSON cannot represent the value.
    """
    return value if isinstance(value, str) else encode_value(value).decode()


def _check_mime_type(mime_type: str) -> None:
    if not _MIME_TYPE.fullmatch(mime_type):
        raise ValueError(f"{mime_type!r} is no MIME type")


def _complete_media(media: Image | Audio, kind: str) -> None:
    """Check the data, and set the MIME type. Its first part is `kind` if none was given.

    Raises:
        TypeError: the data aren't bytes.
        ValueError: the MIME type is invalid.
    """
    data: Any = media.data
    if not isinstance(data, bytes | bytearray | memoryview):
        name = type(media).__name__
        raise TypeError(
            f"{name} takes the bytes of a file, not {shorten_text(repr(data), 60)}: "
            f"read the file first, as in {name}(Path(path).read_bytes())"
        )
    mime_type = media.mime_type or f"{kind}/{_SUBTYPES.get(media.format, media.format)}"
    _check_mime_type(mime_type)
    msgspec.structs.force_setattr(media, "mime_type", mime_type)


class Image(Struct, frozen=True):
    """An image to return from a tool or a prompt: `Image(data)` or `Image(data, format="jpeg")`.

    Attributes:
        data: the image file's bytes.
        format: the format, such as "png" or "jpeg", from which the MIME type is made.
        mime_type: the MIME type; default `image/` and the format.
        annotations: audience and priority, for the client.

    Raises:
        ValueError: the MIME type is invalid.
        TypeError: the data aren't bytes, but a path for example.
    """

    data: bytes
    format: str = "png"
    mime_type: str = ""
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        _complete_media(self, "image")

    def block(self) -> ImageContent:
        """Return the content block."""
        return ImageContent(base64_of(self.data), self.mime_type, annotations=self.annotations)


class Audio(Struct, frozen=True):
    """Audio to return from a tool or a prompt: `Audio(data)` or `Audio(data, format="mp3")`.

    A client of revision 2024-11-05, which has no audio, gets a text in its place.

    Attributes:
        data: the audio file's bytes.
        format: the format, such as "wav" or "mp3", from which the MIME type is made.
        mime_type: the MIME type; default `audio/` and the format.
        annotations: audience and priority, for the client.

    Raises:
        ValueError: the MIME type is invalid.
        TypeError: the data aren't bytes, but a path for example.
    """

    data: bytes
    format: str = "wav"
    mime_type: str = ""
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        _complete_media(self, "audio")

    def block(self) -> AudioContent:
        """Return the content block."""
        return AudioContent(base64_of(self.data), self.mime_type, annotations=self.annotations)


class File(Struct, frozen=True):
    """Text or bytes of any other kind to return, with a URI. It becomes an embedded resource.

    Attributes:
        data: the contents.
        uri: the resource's URI. The client need not be able to read it.
        mime_type: the MIME type. Bytes without one are sent as `application/octet-stream`.
        annotations: audience and priority, for the client.

    Raises:
        ValueError: the MIME type is invalid.
    """

    data: bytes | str
    uri: str
    mime_type: str | None = None
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        if self.mime_type is not None:
            _check_mime_type(self.mime_type)

    def contents(self) -> ResourceContents:
        """Return the contents, as in the result of `resources/read`."""
        if isinstance(self.data, str):
            return ResourceContents(uri=self.uri, mime_type=self.mime_type, text=self.data)
        mime_type = self.mime_type or "application/octet-stream"
        return ResourceContents(uri=self.uri, mime_type=mime_type, blob=base64_of(self.data))

    def block(self) -> EmbeddedResource:
        """Return the content block."""
        return EmbeddedResource(self.contents(), annotations=self.annotations)


BLOCKS: Final = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)
MEDIA: Final = (Image, Audio, File)


def block_of(value: Any) -> ContentBlock | None:
    """Return the content block for a string, block, `Image`, `Audio` or `File`; None for data.

    Raises:
        TypeError: it is a block of an unknown type, which came from another server.
    """
    if isinstance(value, str):
        return TextContent(value)
    if isinstance(value, BLOCKS):
        return value
    if isinstance(value, MEDIA):
        return value.block()
    if isinstance(value, UnknownContent):
        raise TypeError(
            f"no revision of MCP has content of the type {value.type!r}: replace the block before"
            " it is sent, for example by a TextContent"
        )
    return None


def blocks_of(value: Any) -> list[ContentBlock] | None:
    """Return the content blocks of a value: an empty list for None, and None for data.

    Raises:
        TypeError: the value is or holds bare bytes or a block of an unknown type, or JSON cannot
            represent a member of it.
    """
    if value is None:
        return []
    if isinstance(value, list | tuple) and any(
        isinstance(item, (*BLOCKS, *MEDIA)) for item in value
    ):
        return [
            block for item in value for block in blocks_of(item) or [TextContent(json_text(item))]
        ]
    if isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("bytes have no MIME type: return Image, Audio or File")
    block = block_of(value)
    return None if block is None else [block]


def check_result(result: Any) -> None:
    """Check what an author may have put into a result: annotations, `_meta` and data.

    Only results with content are checked. Others are when they are encoded.

    Raises:
        ValueError: annotations aren't valid, or there is a number that JSON lacks.
    """
    data: Any = UNSET
    if isinstance(result, CallToolResult):
        items: Any = result.content
        data = result.structured_content
    elif isinstance(result, GetPromptResult):
        items = [message.content for message in result.messages]
    elif isinstance(result, ReadResourceResult):
        items = result.contents
    else:
        return
    parts = [] if data is UNSET or isinstance(data, Raw) else [data]
    parts.append(result.meta)
    for item in items:
        annotations = getattr(item, "annotations", None)
        if isinstance(annotations, Annotations):  # a dict is sent as it is
            problem = find_annotations_error(annotations)
            if problem:
                raise ValueError(problem)
        parts.append(getattr(item, "meta", None))
        if isinstance(item, EmbeddedResource):
            parts.append(item.resource.meta)
    found = [part for part in parts if part is not None]
    if found and b"null" in encode(found):
        check_numbers(result)
