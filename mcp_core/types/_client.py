"""What a server asks of a client: a model's words, a user's answer, the roots; and the asking itself.

Rules: until 2025-11-25 these are JSON-RPC requests. In 2026-07-28 they are values without an id inside an
`input_required` result, and the results come back bare when the request is repeated. Both ways use the same
params and results. This file does not know which way is taken.
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
    """Which model to take.

    Hints are tried in order and outrank priorities, which are 0 (does not matter) to 1.
    """

    hints: list[ModelHint] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class ToolChoice(Shape, gc=False):
    """Whether the model may ("auto", the default), must ("required") or must not ("none") use tools."""

    mode: Literal["auto", "required", "none"] | None = None


class CreateMessageParams(RequestParams, kw_only=True):
    """Asks the client's model to go on with `messages`.

    `max_tokens` bounds the answer. `include_context` and `metadata` are wishes. `tools` and `tool_choice`
    need the capability `sampling.tools`; `task` is 2025-11-25 only.
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
    """What the model said.

    `stop_reason` is "endTurn", "stopSequence", "maxTokens", "toolUse" or a provider's own word.
    """

    role: Role
    content: SamplingContent | list[SamplingContent]
    model: str
    stop_reason: str | None = None

    @property
    def blocks(self) -> list[SamplingContent]:
        """Its content as a list, also if it is one block."""
        return self.content if isinstance(self.content, list) else [self.content]

    @property
    def text(self) -> str:
        """Its text blocks, with a line break between them."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextContent))


# Elicitation --------------------------------------------------------------------------------------


class ElicitParams(RequestParams, kw_only=True):
    """Asks the user: to fill in a form (`mode` absent or "form") or to visit a page (`mode` "url").

    A form has `requested_schema`, a flat object schema whose properties are of the kinds in
    `PrimitiveSchema`. A page has `url`, and `elicitation_id` in 2025-11-25. `task` is 2025-11-25 only.

    Raises:
        ValueError: the member that the mode needs is missing.
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


ElicitValue: TypeAlias = str | int | float | bool | list[str]


class ElicitResult(Result, kw_only=True):
    """What the user did. `content` is the form as it was filled in, with "accept" only."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, ElicitValue] | None = None


class ElicitationCompleteParams(NotificationParams, kw_only=True):
    """The user is done with a page that an elicitation led to (2025-11-25 only)."""

    elicitation_id: str


class URLElicitationRequiredData(Shape):
    """The `data` of error -32042: visit these pages, then try again (2025-11-25 only)."""

    elicitations: list[ElicitParams]


class EnumOption(Shape, gc=False):
    """One choice: the value `const`, shown as `title`."""

    const: str
    title: str


class EnumItems(Shape, kw_only=True):
    """The choices of a list: plain values in `enum`, or values with titles in `any_of`."""

    type: Literal["string"] | None = None
    enum: list[str] | None = None
    any_of: list[EnumOption] | None = None


class StringSchema(Shape, tag_field="type", tag="string", kw_only=True):
    """A text field of a form, or with `enum` or `one_of` a choice of one.

    `enum_names` are titles for `enum`, as 2025-06-18 has them. `min_length` and `max_length` count
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
    """A field of a form for a number."""

    type: ClassVar[Literal["number"]] = "number"
    title: str | None = None
    description: str | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    default: int | float | None = None


class IntegerSchema(Shape, tag_field="type", tag="integer", gc=False, kw_only=True):
    """A field of a form for an integer. The spec's NumberSchema with the type "integer"."""

    type: ClassVar[Literal["integer"]] = "integer"
    title: str | None = None
    description: str | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    default: int | float | None = None


class BooleanSchema(Shape, tag_field="type", tag="boolean", gc=False, kw_only=True):
    """A field of a form for yes or no."""

    type: ClassVar[Literal["boolean"]] = "boolean"
    title: str | None = None
    description: str | None = None
    default: bool | None = None


class MultiSelectSchema(Shape, tag_field="type", tag="array", kw_only=True):
    """A field of a form for a choice of several. The spec's two MultiSelectEnumSchemas in one."""

    type: ClassVar[Literal["array"]] = "array"
    items: EnumItems
    title: str | None = None
    description: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    default: list[str] | None = None


PrimitiveSchema: TypeAlias = StringSchema | NumberSchema | IntegerSchema | BooleanSchema | MultiSelectSchema

# Roots --------------------------------------------------------------------------------------------


class Root(Shape):
    """A place that the server may work in. `uri` starts with `file://`."""

    uri: str
    name: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ListRootsParams(RequestParams, kw_only=True):
    """Asks for the client's roots."""


class ListRootsResult(Result, kw_only=True):
    """The client's roots."""

    roots: list[Root]


# Asking inside a result ---------------------------------------------------------------------------


class ElicitRequest(Shape, tag_field="method", tag="elicitation/create"):
    """A question to the user, inside a result."""

    method: ClassVar[Literal["elicitation/create"]] = "elicitation/create"
    params: ElicitParams


class CreateMessageRequest(Shape, tag_field="method", tag="sampling/createMessage"):
    """A question to the model, inside a result."""

    method: ClassVar[Literal["sampling/createMessage"]] = "sampling/createMessage"
    params: CreateMessageParams


class ListRootsRequest(Shape, tag_field="method", tag="roots/list"):
    """A question for the roots, inside a result."""

    method: ClassVar[Literal["roots/list"]] = "roots/list"
    params: ListRootsParams | None = None


InputRequest: TypeAlias = ElicitRequest | CreateMessageRequest | ListRootsRequest


class InputRequiredResult(Result, kw_only=True):
    """The server needs answers before it can go on; the client repeats the request with them (2026-07-28).

    Page: basic/patterns/mrtr. `input_requests` are the questions, by keys of the server's choice.
    `request_state` comes back unchanged. With `request_state` alone the client repeats the request as it is.
    """

    input_requests: dict[str, InputRequest] | None = None
    request_state: str | None = None
