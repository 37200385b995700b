"""Content blocks of tools, prompts and models, distinguished by `type` in JSON.

The first field of a block may be given by position, as in `TextContent("hi")`. Images and audio are
base64 text. `_dialects.py` replaces blocks that a revision lacks. No type of this package can be
decoded to `UnknownContent`: only a client makes it, once a result doesn't have its exact type.
Pages: server/tools, server/prompts, client/sampling.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

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
    """Audio: `data` is base64."""

    type: ClassVar[Literal["audio"]] = "audio"
    data: str
    mime_type: str


class EmbeddedResource(Block, tag="resource"):
    """A resource with its contents."""

    type: ClassVar[Literal["resource"]] = "resource"
    resource: ResourceContents


class ResourceLink(Resource, tag_field="type", tag="resource_link", kw_only=True):
    """A link to a resource, which need not be in any list."""

    type: ClassVar[Literal["resource_link"]] = "resource_link"


# No Struct, because it is not to be encoded: a server and a client send what MCP defines.
class UnknownContent:
    """A content block of a type that this library doesn't know, in a result that a client got.

    `{"type": block.type, **block.data}` is the block as the server has sent it. A server cannot
    send it: replace it, for example by a `TextContent` with its JSON.

    Args:
        type: the type.
        data: the other members, as JSON values.

    Attributes:
        annotations: always None, as `meta` is: the block's annotations, if any, are in `data`.
        meta: always None.
    """

    __slots__ = ("data", "type")
    __match_args__ = ("type", "data")
    annotations: ClassVar[None] = None
    meta: ClassVar[None] = None
    __hash__ = None  # type: ignore[assignment] # `data` is a dict

    def __init__(self, type: str, data: dict[str, Any]) -> None:
        self.type = type
        self.data = data

    def __repr__(self) -> str:
        return f"UnknownContent({self.type!r}, {self.data!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnknownContent):
            return NotImplemented
        return self.type == other.type and self.data == other.data


if TYPE_CHECKING:
    # The content of tool results and prompt messages.
    ContentBlock: TypeAlias = (
        TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | UnknownContent
    )
else:  # what the exact readers know
    ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class ToolUseContent(Shape, tag_field="type", tag="tool_use"):
    """A tool call of a model. `id` identifies it in the tool's result. Page: client/sampling."""

    type: ClassVar[Literal["tool_use"]] = "tool_use"
    id: str
    name: str
    input: dict[str, Any]
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ToolResultContent(Shape, tag_field="type", tag="tool_result"):
    """The result of a tool call of a model.

    `structured_content` is `UNSET` when absent. Page: client/sampling.
    """

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    tool_use_id: str
    content: list[ContentBlock]
    structured_content: Any = UNSET
    is_error: bool | None = False
    meta: dict[str, Any] | None = field(name="_meta", default=None)

    def __post_init__(self) -> None:
        # Some peers send null for false. Readers never get None.
        if self.is_error is None:
            self.is_error = False


# The content of a message to or from the model.
SamplingContent: TypeAlias = (
    TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent
)


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
