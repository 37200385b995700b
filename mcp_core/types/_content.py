"""Content blocks: what tools, prompts and models say, told apart by `type` on the wire.

Rules: the first field of a block may be given by position, as in `TextContent("hi")`. Images and sounds are
base64 text. A block that an older revision lacks is a row in `_revisions.py`; turning it into one that the
peer knows is not done here.
Pages: server/tools, server/prompts, client/sampling.
"""

from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, field

from ._base import Annotations, Role, Shape
from ._resources import Resource, ResourceContents


class Block(Shape, tag_field="type", kw_only=True):
    """The common fields of content blocks."""

    annotations: Annotations | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class TextContent(Block, tag="text"):
    """Text."""

    type: ClassVar[Literal["text"]] = "text"
    text: str


class ImageContent(Block, tag="image"):
    """An image: `data` is base64."""

    type: ClassVar[Literal["image"]] = "image"
    data: str
    mime_type: str


class AudioContent(Block, tag="audio"):
    """Sound: `data` is base64."""

    type: ClassVar[Literal["audio"]] = "audio"
    data: str
    mime_type: str


class EmbeddedResource(Block, tag="resource"):
    """A resource with its contents."""

    type: ClassVar[Literal["resource"]] = "resource"
    resource: ResourceContents


class ResourceLink(Resource, tag_field="type", tag="resource_link", kw_only=True):
    """A resource that can be read later. It need not be in any list."""

    type: ClassVar[Literal["resource_link"]] = "resource_link"


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class ToolUseContent(Shape, tag_field="type", tag="tool_use"):
    """A model wants a tool to be called. `id` ties the answer to it. Page: client/sampling."""

    type: ClassVar[Literal["tool_use"]] = "tool_use"
    id: str
    name: str
    input: dict[str, Any]
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ToolResultContent(Shape, tag_field="type", tag="tool_result"):
    """What the tool gave, for the model that asked.

    `structured_content` is `UNSET` when absent. Page: client/sampling.
    """

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    tool_use_id: str
    content: list[ContentBlock]
    structured_content: Any = UNSET
    is_error: bool | None = False
    meta: dict[str, Any] | None = field(name="_meta", default=None)

    def __post_init__(self) -> None:
        # Null, as some peers send it, is no; so None is never seen.
        if self.is_error is None:
            self.is_error = False


SamplingContent: TypeAlias = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent


class PromptMessage(Shape):
    """One message of a prompt. Page: server/prompts."""

    role: Role
    content: ContentBlock


class SamplingMessage(Shape):
    """One message to or from a model: one block, or since 2025-11-25 a list of them.

    Page: client/sampling.
    """

    role: Role
    content: SamplingContent | list[SamplingContent]
    meta: dict[str, Any] | None = field(name="_meta", default=None)
