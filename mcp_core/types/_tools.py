"""Types for tools, the functions of a server that a model may call.

Schemas are dicts, which are sent unchanged. The arguments of a call stay undecoded, because their
types depend on the tool.
Pages: server/tools of every revision.
"""

from typing import Annotated, Any, Literal, Self, TypeAlias

from msgspec import UNSET, Meta, Raw, UnsetType

from mcp_core._errors import ToolError

from ._base import CacheableResult, Cursor, Listed, Result, Shape
from ._content import ContentBlock, TextContent
from ._resources import InputResponseParams


class ToolAnnotations(Shape, gc=False, kw_only=True):
    """Hints of a server about a tool. Do not trust them unless you trust the server.

    Absent means: not read-only, destructive, not idempotent, open world. `destructive_hint` and
    `idempotent_hint` apply only to tools that aren't read-only.
    """

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolExecution(Shape, gc=False, kw_only=True):
    """The support of a tool for tasks (2025-11-25 only). Absent means "forbidden"."""

    task_support: Literal["forbidden", "optional", "required"] | None = None


class Tool(Listed, kw_only=True):
    """A tool in a list.

    `input_schema` describes the arguments, an object. `output_schema` describes
    `structured_content` of the result: an object until 2025-11-25, any JSON value since 2026-07-28.
    """

    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations | None = None
    execution: ToolExecution | None = None

    @property
    def display_name(self) -> str:
        """The name for display: the title, else the annotations' title, else the name.

        Source: schema, BaseMetadata.
        """
        return self.title or (self.annotations and self.annotations.title) or self.name


class ListToolsResult(CacheableResult, kw_only=True):
    """One page of tools. `next_cursor` is set if there are more."""

    tools: list[Tool]
    next_cursor: Cursor | None = None


# JSON has one type of number. A union keeps integers integers.
_Milliseconds: TypeAlias = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]


class TaskMetadata(Shape, gc=False, kw_only=True):
    """A request to run the call as a task (2025-11-25 only).

    `ttl` is how long to retain the task, in milliseconds: None for as long as possible, UNSET for
    the receiver's default.
    """

    ttl: _Milliseconds | UnsetType | None = UNSET


class CallToolParams(InputResponseParams, kw_only=True):
    """A call of a tool.

    `arguments` is an undecoded JSON object, `UNSET` when absent. Some peers send null instead.
    """

    name: str
    arguments: Raw | UnsetType = UNSET
    task: TaskMetadata | None = None


class CallToolResult(Result, kw_only=True):
    """A tool's result.

    `content` is for the model. `structured_content` is for programs: `UNSET` when absent, an object
    until 2025-11-25, any JSON value including null since 2026-07-28. `is_error` is True if the tool
    failed and the model should know. It may be None, because some peers send null for false.
    """

    content: list[ContentBlock]
    structured_content: Any = UNSET
    is_error: bool | None = False

    @property
    def text(self) -> str:
        """The text of its text blocks, joined by line breaks."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    def raise_for_error(self) -> Self:
        """Return the result itself if the tool succeeded.

        Raises:
            ToolError: the tool failed. The text is the result's.
        """
        if self.is_error:
            raise ToolError(self.text or "the tool failed and did not say why")
        return self
