"""Prompts: messages that a server has ready; and completion, for prompts and resource templates.

Rule: the arguments of a prompt are strings. Pages: server/prompts, server/utilities/completion.
"""

from typing import ClassVar, Literal

from ._base import BaseMetadata, CacheableResult, Cursor, Listed, RequestParams, Result, Shape
from ._content import PromptMessage
from ._resources import InputResponseParams


class PromptArgument(BaseMetadata, gc=False, kw_only=True):
    """One argument that a prompt takes."""

    description: str | None = None
    required: bool | None = None


class Prompt(Listed, kw_only=True):
    """A prompt in a list."""

    arguments: list[PromptArgument] | None = None


class ListPromptsResult(CacheableResult, kw_only=True):
    """One page of prompts. `next_cursor` is there if more follow."""

    prompts: list[Prompt]
    next_cursor: Cursor | None = None


class GetPromptParams(InputResponseParams, kw_only=True):
    """Asks for the messages of a prompt."""

    name: str
    arguments: dict[str, str] | None = None


class GetPromptResult(Result, kw_only=True):
    """The messages of a prompt."""

    messages: list[PromptMessage]
    description: str | None = None


class PromptReference(Shape, tag_field="type", tag="ref/prompt", gc=False):
    """Names the prompt whose argument is to be completed."""

    type: ClassVar[Literal["ref/prompt"]] = "ref/prompt"
    name: str
    title: str | None = None


class ResourceTemplateReference(Shape, tag_field="type", tag="ref/resource", gc=False):
    """Names the resource template whose variable is to be completed. `uri` is the template, or a URI."""

    type: ClassVar[Literal["ref/resource"]] = "ref/resource"
    uri: str


class CompletionArgument(Shape, gc=False):
    """The argument that is being typed, and what there is of it so far."""

    name: str
    value: str


class CompletionContext(Shape, kw_only=True):
    """The arguments that are settled already."""

    arguments: dict[str, str] | None = None


class CompleteParams(RequestParams, kw_only=True):
    """Asks how an argument may go on."""

    ref: PromptReference | ResourceTemplateReference
    argument: CompletionArgument
    context: CompletionContext | None = None


class Completion(Shape):
    """Up to 100 `values`, best first.

    `total` may be more than are given here; `has_more` says so without a number.
    """

    values: list[str]
    total: int | None = None
    has_more: bool | None = None


class CompleteResult(Result, kw_only=True):
    """How an argument may go on."""

    completion: Completion
