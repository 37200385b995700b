"""Content blocks as text. An image or a sound becomes one line that describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core import types as t

if TYPE_CHECKING:
    from mcp_core.types import ContentBlock

__all__ = ["summary", "text_of"]


def text_of(block: ContentBlock) -> str:
    """Return the text of a content block, or a line that describes it."""
    if isinstance(block, t.TextContent):
        return block.text
    if isinstance(block, t.ResourceLink):
        return f"[{block.uri}: {block.title or block.name}]"
    if isinstance(block, t.EmbeddedResource):
        resource = block.resource
        return (
            resource.text
            if resource.text is not None
            else summary(resource.uri, resource.mime_type, resource.blob or "")
        )
    return summary(block.type, block.mime_type, block.data)


def summary(name: str, mime_type: str | None, base64: str, cure: str = "--json shows them") -> str:
    """Return a line in place of bytes. `cure` says how to get the bytes."""
    size = len(base64.rstrip("=")) * 3 // 4
    return f"[{name}{f', {mime_type}' if mime_type else ''}, {size} bytes; {cure}]"
