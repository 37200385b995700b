"""Pictures, sounds and files as handlers hold them: bytes. And which values are content rather than data.

Rules of this file:

1. Nothing is read from disk. Whoever has a path reads it, in the way the runtime at hand wants that done.
2. Bare bytes are no content: they do not say what they are. `Image`, `Audio` and `File` do.
3. A list is content when it holds at least one block, picture, sound or file; its strings are then text
   blocks and its other values JSON. A list of nothing but strings and numbers is data.

It does not know results or revisions.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from typing import Any, Final

import msgspec
from msgspec import Struct

from mcp_core.types import (
    Annotations,
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)

__all__ = ["BLOCKS", "MEDIA", "Audio", "File", "Image", "base64_of", "block_of", "blocks_of", "json_text"]

_MIME_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:\s*;.*)?")  # RFC 6838, section 4.2
# Formats that are called otherwise in MIME types.
_SUBTYPES: Final = {"jpg": "jpeg", "svg": "svg+xml", "mp3": "mpeg", "m4a": "mp4", "ico": "x-icon"}


def base64_of(data: bytes | bytearray | memoryview) -> str:
    """Bytes as base64 text, standard alphabet, with padding (RFC 4648, section 4)."""
    return b2a_base64(data, newline=False).decode("ascii")


def json_text(value: Any) -> str:
    """A value as JSON text; a string stays as it is.

    Raises:
        TypeError: JSON cannot say it.
    """
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _checked(mime_type: str) -> str:
    if not _MIME_TYPE.fullmatch(mime_type):
        raise ValueError(f"{mime_type!r} is no MIME type")
    return mime_type


class Image(Struct, frozen=True):
    """A picture to return from a tool or a prompt: `Image(png_bytes)` or `Image(data, format="jpeg")`.

    `mime_type` says what it is when `image/` and the format do not.

    Raises:
        ValueError: the result is no MIME type.
    """

    data: bytes
    format: str = "png"
    mime_type: str = ""
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(
            self, "mime_type", _checked(self.mime_type or f"image/{_SUBTYPES.get(self.format, self.format)}")
        )

    def block(self) -> ImageContent:
        """The content block."""
        return ImageContent(base64_of(self.data), self.mime_type, annotations=self.annotations)


class Audio(Struct, frozen=True):
    """A sound to return from a tool or a prompt: `Audio(wav_bytes)` or `Audio(data, format="mp3")`.

    `mime_type` says what it is when `audio/` and the format do not. A peer of revision 2024-11-05, which has
    no audio, gets a note in its place.

    Raises:
        ValueError: the result is no MIME type.
    """

    data: bytes
    format: str = "wav"
    mime_type: str = ""
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(
            self, "mime_type", _checked(self.mime_type or f"audio/{_SUBTYPES.get(self.format, self.format)}")
        )

    def block(self) -> AudioContent:
        """The content block."""
        return AudioContent(base64_of(self.data), self.mime_type, annotations=self.annotations)


class File(Struct, frozen=True):
    """Anything else to return, text or bytes, with the URI it goes by: it becomes an embedded resource.

    Raises:
        ValueError: `mime_type` is none.
    """

    data: bytes | str
    uri: str
    mime_type: str | None = None
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        if self.mime_type is not None:
            _checked(self.mime_type)

    def contents(self) -> ResourceContents:
        """What a read of the resource would give."""
        if isinstance(self.data, str):
            return ResourceContents(uri=self.uri, mime_type=self.mime_type, text=self.data)
        mime_type = self.mime_type or "application/octet-stream"
        return ResourceContents(uri=self.uri, mime_type=mime_type, blob=base64_of(self.data))

    def block(self) -> EmbeddedResource:
        """The content block."""
        return EmbeddedResource(self.contents(), annotations=self.annotations)


BLOCKS: Final = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)
MEDIA: Final = (Image, Audio, File)


def block_of(value: Any) -> ContentBlock | None:
    """The content block that `value` is or stands for; None for data."""
    if isinstance(value, str):
        return TextContent(value)
    if isinstance(value, BLOCKS):
        return value
    if isinstance(value, MEDIA):
        return value.block()
    return None


def blocks_of(value: Any) -> list[ContentBlock] | None:
    """All content blocks of `value`, none for None; None for data.

    Raises:
        TypeError: `value` is or holds bare bytes, or something that JSON cannot say.
    """
    if value is None:
        return []
    if isinstance(value, list | tuple) and any(isinstance(item, (*BLOCKS, *MEDIA)) for item in value):
        return [block for item in value for block in blocks_of(item) or [TextContent(json_text(item))]]
    if isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("bytes do not say what they are: return Image, Audio or File")
    block = block_of(value)
    return None if block is None else [block]
