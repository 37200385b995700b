"""Types for prompts, and for completion of arguments of prompts and resource templates.

A prompt's arguments are strings. Pages: server/prompts, server/utilities/completion.
"""

from typing import ClassVar, Literal

from ._base import BaseMetadata, CacheableResult, Cursor, Listed, RequestParams, Result, Shape
from ._content import PromptMessage
from ._resources import InputResponseParams


class PromptArgument(BaseMetadata, gc=False, kw_only=True):
    """One argument of a prompt."""

    description: str | None = None
    required: bool | None = None


class Prompt(Listed, kw_only=True):
    """A prompt in a list."""

    arguments: list[PromptArgument] | None = None


class ListPromptsResult(CacheableResult, kw_only=True):
    """One page of prompts. `next_cursor` is set if there are more."""

    prompts: list[Prompt]
    next_cursor: Cursor | None = None


class GetPromptParams(InputResponseParams, kw_only=True):
    """A request for a prompt's messages."""

    name: str
    arguments: dict[str, str] | None = None


class GetPromptResult(Result, kw_only=True):
    """A prompt's messages."""

    messages: list[PromptMessage]
    description: str | None = None


class PromptReference(Shape, tag_field="type", tag="ref/prompt", gc=False):
    """The prompt whose argument is to be completed."""

    type: ClassVar[Literal["ref/prompt"]] = "ref/prompt"
    name: str
    title: str | None = None


class ResourceTemplateReference(Shape, tag_field="type", tag="ref/resource", gc=False):
    """The resource template whose variable is to be completed. `uri` is a template or a URI."""

    type: ClassVar[Literal["ref/resource"]] = "ref/resource"
    uri: str


class CompletionArgument(Shape, gc=False):
    """The argument to complete, with the value typed so far."""

    name: str
    value: str


class CompletionContext(Shape, kw_only=True):
    """The values of arguments that are already known."""

    arguments: dict[str, str] | None = None


class CompleteParams(RequestParams, kw_only=True):
    """A request for completions of an argument."""

    ref: PromptReference | ResourceTemplateReference
    argument: CompletionArgument
    context: CompletionContext | None = None


class Completion(Shape):
    """At most 100 `values`, best first.

    `total` is the number of all completions, which may be higher. `has_more` is True if it is.
    """

    values: list[str]
    total: int | None = None
    has_more: bool | None = None


class CompleteResult(Result, kw_only=True):
    """An argument's completions."""

    completion: Completion
