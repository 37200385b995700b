"""Tools: functions of a server that a model may call.

Rules: schemas are plain dicts and go over the wire as they were given. A call's arguments stay undecoded, for
only the tool knows their type. This file does not know how a tool is run.
Pages: server/tools of every revision.
"""

from typing import Any, Literal, Self

from msgspec import UNSET, Raw, UnsetType

from mcp_core._errors import ToolError

from ._base import CacheableResult, Cursor, Listed, Result, Shape
from ._content import ContentBlock, TextContent
from ._resources import InputResponseParams


class ToolAnnotations(Shape, gc=False, kw_only=True):
    """What a tool says of itself. Hints, not to be trusted unless the server is.

    Absent means: not read-only, destructive, not idempotent, open world. `destructive_hint` and
    `idempotent_hint` mean something only for tools that are not read-only.
    """

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolExecution(Shape, gc=False, kw_only=True):
    """Whether a tool may or must be called as a task (2025-11-25 only). Absent means forbidden."""

    task_support: Literal["forbidden", "optional", "required"] | None = None


class Tool(Listed, kw_only=True):
    """A tool in a list.

    `input_schema` describes the arguments, an object. `output_schema` describes `structured_content` of the
    result: an object until 2025-11-25, any JSON value since 2026-07-28.
    """

    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations | None = None
    execution: ToolExecution | None = None

    @property
    def display_name(self) -> str:
        """What to call it before people (schema, BaseMetadata): the title, or that of its annotations, or the name."""
        return self.title or (self.annotations and self.annotations.title) or self.name


class ListToolsResult(CacheableResult, kw_only=True):
    """One page of tools. `next_cursor` is there if more follow."""

    tools: list[Tool]
    next_cursor: Cursor | None = None


class TaskMetadata(Shape, gc=False, kw_only=True):
    """Asks for a request to be run as a task (2025-11-25 only).

    `ttl`: how long to keep it, in milliseconds.
    """

    ttl: int | None = None


class CallToolParams(InputResponseParams, kw_only=True):
    """Calls a tool. `arguments` is an undecoded JSON object, `UNSET` when absent (some peers send null instead)."""

    name: str
    arguments: Raw | UnsetType = UNSET
    task: TaskMetadata | None = None


class CallToolResult(Result, kw_only=True):
    """What a tool gave.

    `content` is for the model to read. `structured_content` is for programs: `UNSET` when absent, and since
    2026-07-28 any JSON value, null included. `is_error` says that the tool failed in a way that the model
    should know of; some peers send null for no, so it may be None.
    """

    content: list[ContentBlock]
    structured_content: Any = UNSET
    is_error: bool | None = False

    @property
    def text(self) -> str:
        """Its text blocks, with a line break between them."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    def raise_for_error(self) -> Self:
        """The result itself, unless the tool failed.

        Raises:
            ToolError: it did; the text is what the tool has to say about it.
        """
        if self.is_error:
            raise ToolError(self.text or "the tool failed and did not say why")
        return self
