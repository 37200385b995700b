"""Prompts: functions that get text arguments and return messages.

Arguments are converted to the annotated types. An argument that cannot be converted, is missing or
is unknown is the error -32602 (server/prompts, Error Handling).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from msgspec import Struct

from mcp_core._errors import Fault, McpError
from mcp_core._keywords import check_keywords
from mcp_core.protocol.revisions._dialects import Dialect
from mcp_core.registry._errors import DeclarationError
from mcp_core.registry._validation import check_entry, check_icons, check_meta, plain_name
from mcp_core.registry._visibility import Caller, visibility_of
from mcp_core.registry.functions._content import block_of, check_result, json_text
from mcp_core.registry.functions._function import inspect_function, runs_in_thread
from mcp_core.registry.functions._pydantic import is_model
from mcp_core.registry.functions._signature import InvalidArguments, TextReader
from mcp_core.types import (
    GetPromptResult,
    Icon,
    Prompt,
    PromptArgument,
    PromptMessage,
    Result,
    TextContent,
)

from ._completion import Completers
from ._invocation import Invocation

__all__ = ["PromptEntry", "PromptOptions"]


class PromptOptions(TypedDict, total=False):
    """The options of a declared prompt.

    Keys:
        name: the name for programs; the function's name by default.
        title: the name for people.
        description: the purpose; the docstring by default.
        icons: icons with `https:` or `data:` URIs.
        meta: the entry's `_meta` in the list.
        visible: as for tools: called with the `Caller` of each request; only those for whom it
            returns True see the prompt and its completions.
        thread: True to run a plain `def` in a worker thread, because it blocks. By default the
            server's `threads` decides.
    """

    name: str | None
    title: str | None
    description: str | None
    icons: Sequence[Icon] | None
    meta: Mapping[str, Any] | None
    visible: Callable[[Caller], bool] | None
    thread: bool


class PromptEntry:
    """A declared prompt.

    Raises:
        DeclarationError: the prompt cannot be served.
    """

    __slots__ = (
        "_prompt",
        "_read",
        "completers",
        "function",
        "name",
        "number",
        "thread",
        "visibility",
    )
    number: int  # the number of the declaration on its server
    present_time = None

    def __init__(self, function: Callable[..., Any], options: PromptOptions, threads: bool) -> None:
        check_keywords(options, PromptOptions, "@server.prompt")
        self.function = found = inspect_function(function, returns=False)
        self.name = plain_name(options.get("name") or found.name)
        if not self.name:
            raise DeclarationError(f"{found.label} has no name of its own; give one with name=")
        self.thread = runs_in_thread(found, options.get("thread"), threads)
        self.visibility = visibility_of(options.get("visible"), f"prompt {self.name!r}")
        self._read = TextReader(found).read
        self.completers = Completers(found)
        arguments = [
            PromptArgument(name=p.wire_name, description=p.description or None, required=p.required)
            for p in found.parameters
        ]
        self._prompt = Prompt(
            name=self.name,
            title=options.get("title"),
            description=options.get("description") or found.description or None,
            arguments=arguments or None,
            icons=check_icons(options.get("icons"), found.label),
            meta=check_meta(options.get("meta"), found.label),
        )
        check_entry(self._prompt, found.label)

    def __repr__(self) -> str:
        return f"<prompt {self.name!r}: {self.function.label}>"

    @property
    def description(self) -> str | None:
        return self._prompt.description

    def list_entry(self, dialect: Dialect) -> Prompt:
        """Return the entry of `prompts/list`."""
        return self._prompt

    def prepare(self, arguments: Mapping[str, str] | None, dialect: Dialect) -> Invocation:
        """Return the call to make.

        Raises:
            McpError: the arguments are invalid.
        """
        try:
            return PromptInvocation(self, self._read(arguments or {}), dialect)
        except InvalidArguments as exc:
            raise McpError(dialect.codes[Fault.INVALID_PARAMS], str(exc)) from None


class PromptInvocation(Invocation):
    """One call of a prompt."""

    __slots__ = ("_description",)

    def __init__(self, entry: PromptEntry, arguments: dict[str, Any], dialect: Dialect) -> None:
        super().__init__(entry.function, entry.thread, arguments, dialect)
        self._description = entry.description

    def result(self, value: Any) -> Result:
        if isinstance(value, Result):
            result = value
        else:
            values = value if isinstance(value, list | tuple) else [value]
            result = GetPromptResult(
                messages=[_as_message(item) for item in values], description=self._description
            )
        check_result(result)
        return result


def _as_message(value: Any) -> PromptMessage:
    if isinstance(value, PromptMessage):
        return value
    block = block_of(value)
    if block is None:
        kind = type(value)
        is_record = is_model(kind) or hasattr(kind, "__dataclass_fields__")
        if not (is_record or isinstance(value, Struct)):
            raise TypeError(
                "a prompt returns text, content or PromptMessage(role, content), "
                f"not {kind.__name__}"
            )
        block = TextContent(json_text(value))
    return PromptMessage("user", block)
