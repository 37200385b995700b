"""Types for the requests of a server to a client: sampling, elicitation, roots.

Until 2025-11-25 these are JSON-RPC requests. In 2026-07-28 they are values without an id inside an
`input_required` result, and the client repeats its request with their results. Both use the same
params and results.
Pages: client/sampling, client/elicitation, client/roots; basic/patterns/mrtr (2026-07-28).
"""

from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import field

from ._base import NotificationParams, RequestParams, Result, Role, Shape
from ._content import SamplingContent, SamplingMessage, TextContent
from ._tools import TaskMetadata, Tool

# Sampling -----------------------------------------------------------------------------------------


class ModelHint(Shape, gc=False):
    """A model by name, or by a part of its name."""

    name: str | None = None


class ModelPreferences(Shape, kw_only=True):
    """The preferred model.

    Hints are tried in order and take precedence over priorities, which are 0 (unimportant) to 1.
    """

    hints: list[ModelHint] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class ToolChoice(Shape, gc=False):
    """Tool use by the model: "auto" (may, the default), "required" (must) or "none" (must not)."""

    mode: Literal["auto", "required", "none"] | None = None


class CreateMessageParams(RequestParams, kw_only=True):
    """A request to sample from the client's model.

    `messages` is the conversation so far, `max_tokens` the new message's limit. The client may
    ignore `include_context` and `metadata`. `tools` and `tool_choice` need the capability
    `sampling.tools`. `task` is 2025-11-25 only.
    """

    messages: list[SamplingMessage]
    max_tokens: int
    model_preferences: ModelPreferences | None = None
    system_prompt: str | None = None
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    temperature: float | None = None
    stop_sequences: list[str] | None = None
    metadata: dict[str, Any] | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    task: TaskMetadata | None = None


class CreateMessageResult(Result, kw_only=True):
    """The model's message.

    `stop_reason` is "endTurn", "stopSequence", "maxTokens", "toolUse" or a value of the provider.
    """

    role: Role
    content: SamplingContent | list[SamplingContent]
    model: str
    stop_reason: str | None = None

    @property
    def blocks(self) -> list[SamplingContent]:
        """Its content blocks, as a list even if there is one."""
        return self.content if isinstance(self.content, list) else [self.content]

    @property
    def text(self) -> str:
        """The text of its text blocks, joined by line breaks."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextContent))


# Elicitation --------------------------------------------------------------------------------------


class ElicitParams(RequestParams, kw_only=True):
    """A request for input from the user: a form (`mode` absent or "form") or a page ("url").

    A form has `requested_schema`, a flat object schema whose properties are each a
    `PrimitiveSchema`. A page to visit has `url`, and in 2025-11-25 also `elicitation_id`. `task` is
    2025-11-25 only.

    Raises:
        ValueError: the member that the mode requires is missing.
    """

    message: str
    mode: Literal["form", "url"] | None = None
    requested_schema: dict[str, Any] | None = None
    url: str | None = None
    elicitation_id: str | None = None
    task: TaskMetadata | None = None

    def __post_init__(self) -> None:
        if self.mode == "url":
            if self.url is None:
                raise ValueError("elicitation in url mode needs url")
        elif self.requested_schema is None:
            raise ValueError("elicitation in form mode needs requestedSchema")


# The value of one field of a form.
ElicitValue: TypeAlias = str | int | float | bool | list[str]


class ElicitResult(Result, kw_only=True):
    """The user's action. `content` has the form's values, with "accept" only."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, ElicitValue] | None = None


class ElicitationCompleteParams(NotificationParams, kw_only=True):
    """The user has finished with the page of an elicitation (2025-11-25 only)."""

    elicitation_id: str


class URLElicitationRequiredData(Shape):
    """The `data` of error -32042: pages to visit before trying again (2025-11-25 only)."""

    elicitations: list[ElicitParams]


class EnumOption(Shape, gc=False):
    """One option: the value `const`, displayed as `title`."""

    const: str
    title: str


class EnumItems(Shape, kw_only=True):
    """The options of a list: plain values in `enum`, or values with titles in `any_of`."""

    type: Literal["string"] | None = None
    enum: list[str] | None = None
    any_of: list[EnumOption] | None = None


class StringSchema(Shape, tag_field="type", tag="string", kw_only=True):
    """A text field of a form, or with `enum` or `one_of` a selection of one option.

    `enum_names` are titles for `enum`, as in 2025-06-18. `min_length` and `max_length` count
    characters.
    """

    type: ClassVar[Literal["string"]] = "string"
    title: str | None = None
    description: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    format: Literal["email", "uri", "date", "date-time"] | None = None
    enum: list[str] | None = None
    enum_names: list[str] | None = None
    one_of: list[EnumOption] | None = None
    default: str | None = None


class NumberSchema(Shape, tag_field="type", tag="number", gc=False, kw_only=True):
    """A number field of a form."""

    type: ClassVar[Literal["number"]] = "number"
    title: str | None = None
    description: str | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    default: int | float | None = None


class IntegerSchema(Shape, tag_field="type", tag="integer", gc=False, kw_only=True):
    """An integer field of a form: the specification's NumberSchema with the type "integer"."""

    type: ClassVar[Literal["integer"]] = "integer"
    title: str | None = None
    description: str | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    default: int | float | None = None


class BooleanSchema(Shape, tag_field="type", tag="boolean", gc=False, kw_only=True):
    """A boolean field of a form."""

    type: ClassVar[Literal["boolean"]] = "boolean"
    title: str | None = None
    description: str | None = None
    default: bool | None = None


class MultiSelectSchema(Shape, tag_field="type", tag="array", kw_only=True):
    """A multiple selection in a form: the specification's two MultiSelectEnumSchemas."""

    type: ClassVar[Literal["array"]] = "array"
    items: EnumItems
    title: str | None = None
    description: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    default: list[str] | None = None


# The schema of one field of a form: forms have no nested values.
PrimitiveSchema: TypeAlias = (
    StringSchema | NumberSchema | IntegerSchema | BooleanSchema | MultiSelectSchema
)

# Roots --------------------------------------------------------------------------------------------


class Root(Shape):
    """A directory or file that the server may use. `uri` starts with `file://`."""

    uri: str
    name: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ListRootsParams(RequestParams, kw_only=True):
    """A request for the client's roots."""


class ListRootsResult(Result, kw_only=True):
    """The client's roots."""

    roots: list[Root]


# Input requests inside a result -------------------------------------------------------------------


class ElicitRequest(Shape, tag_field="method", tag="elicitation/create"):
    """An elicitation, inside a result."""

    method: ClassVar[Literal["elicitation/create"]] = "elicitation/create"
    params: ElicitParams


class CreateMessageRequest(Shape, tag_field="method", tag="sampling/createMessage"):
    """A sampling request, inside a result."""

    method: ClassVar[Literal["sampling/createMessage"]] = "sampling/createMessage"
    params: CreateMessageParams


class ListRootsRequest(Shape, tag_field="method", tag="roots/list"):
    """A request for roots, inside a result."""

    method: ClassVar[Literal["roots/list"]] = "roots/list"
    params: ListRootsParams | None = None


# What a server can request from a client (2026-07-28, basic/patterns/mrtr).
InputRequest: TypeAlias = ElicitRequest | CreateMessageRequest | ListRootsRequest


class InputRequiredResult(Result, kw_only=True):
    """The server needs input; the client repeats the request with it (2026-07-28).

    `input_requests` are the requests, by keys that the server chooses. The client returns
    `request_state` unchanged. If there is only `request_state`, the client repeats the request
    without input. Page: basic/patterns/mrtr.
    """

    input_requests: dict[str, InputRequest] | None = None
    request_state: str | None = None
