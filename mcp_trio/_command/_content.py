"""Blocks of content as text: what is text comes out as it is, pictures and sounds are told of in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core import types as t

if TYPE_CHECKING:
    from mcp_core.types import ContentBlock

__all__ = ["summary", "text_of"]


def text_of(block: ContentBlock) -> str:
    if isinstance(block, t.TextContent):
        return block.text
    if isinstance(block, t.ResourceLink):
        return f"[{block.uri}: {block.title or block.name}]"
    if isinstance(block, t.EmbeddedResource):
        found = block.resource
        return found.text if found.text is not None else summary(found.uri, found.mime_type, found.blob or "")
    return summary(block.type, block.mime_type, block.data)


def summary(what: str, mime_type: str | None, base64: str, cure: str = "--json shows them") -> str:
    """A line in place of bytes; `cure` is how to get at them."""
    size = len(base64.rstrip("=")) * 3 // 4
    return f"[{what}{f', {mime_type}' if mime_type else ''}, {size} bytes; {cure}]"
