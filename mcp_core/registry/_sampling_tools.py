"""Sampling with tools: the client's model uses tools, which run here, until it has a final message.

1. `ToolSampling` decides, and awaits nothing: a runtime asks the client, and runs the tools, one
   after another in the order of the model (client/sampling, Multi-turn Tool Loop).
2. In 2026-07-28 the handler is run again in each round. What a tool returned is kept with the
   request, so a tool use isn't repeated, and each run asks the same.
3. A tool's exception is a result with `isError` for the model. Only what concerns the request
   itself leaves the loop: input that the tool requests, a page to visit, a lost connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._errors import Fault, McpError, ToolError, single
from mcp_core.protocol.input_requests._kinds import find_error
from mcp_core.protocol.input_requests._rounds import MAX_ROUNDS
from mcp_core.protocol.jsonrpc._codec import encode, reader
from mcp_core.registry.entries._invocation import Invocation, MountedCall
from mcp_core.registry.entries._tools import ToolEntry, ToolInvocation

from ._errors import DeclarationError, UrlElicitationRequired

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from mcp_core.types import CreateMessageParams, CreateMessageResult

    from ._context import Context
    from ._input_requests import InputCollector

__all__ = ["SAMPLING_ROUNDS", "SampledConversation", "ToolSampling", "ToolUse", "tools_for"]

# Two less than the rounds of a call in 2026-07-28, which remain for what the handler itself asks.
SAMPLING_ROUNDS: Final = MAX_ROUNDS - 2
_MAX_SHOWN: Final = 128  # characters of an unknown name that a message repeats

_read_result: Final = reader(t.ToolResultContent)


class SampledConversation(Struct, frozen=True):
    """The conversation that sampling with tools has led to.

    Attributes:
        result: the model's last message, which uses no tool.
        messages: the whole conversation: the messages that were given, then each model message and
            the results of its tool uses. To go on, append a message and sample again.
    """

    result: t.CreateMessageResult
    messages: list[t.SamplingMessage]

    @property
    def text(self) -> str:
        """The last message's text."""
        return self.result.text


class ToolUse:
    """One tool use by the model, which has no result yet.

    Call `prepare`, run what it returns, and pass the outcome to `done` or to `failed`.
    """

    def __init__(self, owner: ToolSampling, content: t.ToolUseContent, key: str) -> None:
        self._owner = owner
        self._content = content
        self._key = key
        self._invocation: Invocation | None = None

    def __repr__(self) -> str:
        return f"<ToolUse of {self._content.name!r}, id={self._content.id!r}>"

    def prepare(self) -> Invocation | t.Result:
        """Return the call to make, or its result if the tool or the arguments don't exist.

        Raises:
            McpError: the arguments are invalid, and the revision has no result for that.
        """
        name = self._content.name
        entry = self._owner.tools.get(name)
        if entry is None:
            names = ", ".join(self._owner.tools)
            return _error_result(f"Unknown tool: {name[:_MAX_SHOWN]}. The tools are: {names}")
        prepared: Any = entry.prepare(Raw(encode(self._content.input)), self._owner.dialect)
        if isinstance(prepared, MountedCall):
            prepared = prepared.prepare_alone()
        if isinstance(prepared, ToolInvocation):
            self._invocation = prepared
        result: Invocation | t.Result = prepared
        return result

    def done(self, result: Any) -> None:
        """Store the tool's result.

        Raises:
            TypeError: the tool returned a request for input. Pass the exception to `failed`.
        """
        if not isinstance(result, t.CallToolResult):
            raise TypeError(
                f"the tool {self._content.name!r} returned {type(result).__name__}: for input"
                " during sampling it has to await, as `context.elicit` does"
            )
        content = t.ToolResultContent(
            self._content.id, result.content, result.structured_content, result.is_error
        )
        self._owner.store(self._key, content)

    def failed(self, exc: Exception, reference: Callable[[], str]) -> str | None:
        """Store the result for an exception. Return the reference under which to log it, or None.

        Raises:
            Exception: `exc` itself, if it ends the request and not only this tool use.
        """
        error = single(exc)
        if isinstance(error, UrlElicitationRequired) or self._owner.ends_request(error):
            raise exc
        if isinstance(error, McpError):
            self.done(_error_result(error.message))
            return None
        name = reference()
        result: Any = None
        if self._invocation is not None:
            result = self._invocation.exception_response(exc, name)
        self.done(result or _error_result(f"The tool failed (reference {name})."))
        return name if self._owner.is_fault(error) else None


class ToolSampling:
    """The rounds of one `Context.sample_with_tools`.

    Await `ask`, and pass its result to `receive`. Run the tool uses that it returns, and repeat,
    until `conversation` isn't None.
    """

    def __init__(
        self,
        context: Context,
        collector: InputCollector,
        params: CreateMessageParams,
        tools: dict[str, ToolEntry],
        max_rounds: int,
        key: str | None,
    ) -> None:
        self.context = context
        self.request = collector.request
        self.tools = tools
        self.conversation: SampledConversation | None = None
        self._collector = collector
        self._max_rounds = max_rounds
        self._key = key
        self._round = 0
        self._round_key = ""
        self._results: dict[str, t.ToolResultContent] = {}
        self.dialect = self.request.peer.dialect
        listed = [entry.list_entry(self.dialect) for entry in tools.values()]
        self._params = replace(params, tools=listed)

    def __repr__(self) -> str:
        return f"<ToolSampling with {', '.join(self.tools)}, {self._round} rounds so far>"

    def ask(self) -> Coroutine[Any, Any, CreateMessageResult]:
        """Request the model's next message."""
        if self._results:
            results: list[t.SamplingContent] = list(self._results.values())
            self._append(t.SamplingMessage("user", results))
            self._results = {}
        self._round += 1
        if self._round == self._max_rounds:
            self._params = replace(self._params, tool_choice=t.ToolChoice("none"))
        elif self._round > 1:
            self._params = replace(self._params, tool_choice=t.ToolChoice("auto"))
        request = t.CreateMessageRequest(self._params)
        if self._key is None:
            self._round_key = self._collector.round_trips.new_key(request)
        else:
            self._round_key = f"{self._key}.{self._round}"
        return self._collector.ask(request, self._round_key, find_error, _unchanged)

    def receive(self, result: CreateMessageResult) -> list[ToolUse]:
        """Return the tool uses that have no result yet.

        Raises:
            McpError: the model uses tools in the last round, in which it must not.
        """
        self._append(t.SamplingMessage("assistant", result.content))
        uses = [block for block in result.blocks if isinstance(block, t.ToolUseContent)]
        # A message that was cut off may hold half of a tool use.
        if not uses or result.stop_reason == "maxTokens":
            self.conversation = SampledConversation(result, self._params.messages)
            return []
        if self._round == self._max_rounds:
            raise McpError(
                self.dialect.codes[Fault.INTERNAL],
                f"the client's model uses tools in round {self._round}, with toolChoice none",
            )
        missing = []
        for index, use in enumerate(uses):
            key = f"tool {self._round_key}.{index}"
            stored = self._collector.round_trips.computed(key)
            self._results[key] = t.ToolResultContent(use.id, [])  # keeps the order of the model
            if stored is None:
                missing.append(ToolUse(self, use, key))
            else:
                self._results[key] = _read_result(stored)
        return missing

    def store(self, key: str, content: t.ToolResultContent) -> None:
        """Store the result of a tool use for the next round, and for further handler runs.

        It is used as it will be read again, so that each run asks the same.
        """
        stored = self._collector.round_trips.store_computed(key, encode(content))
        self._results[key] = _read_result(stored)

    def ends_request(self, error: BaseException) -> bool:
        """Return True if `error` means that the client can answer nothing any more."""
        return error is self._collector.no_response_error

    def is_fault(self, error: BaseException) -> bool:
        """Return True if `error` wasn't raised for the model, and has to be logged."""
        return not isinstance(error, ToolError)

    def _append(self, message: t.SamplingMessage) -> None:
        self._params = replace(self._params, messages=[*self._params.messages, message])


def tools_for(
    tools: Sequence[Callable[..., Any] | str], declared: Callable[[Any], ToolEntry | None]
) -> dict[str, ToolEntry]:
    """Return the tools by name. `declared` finds the server's.

    Raises:
        DeclarationError: there are none, the server has no tool of a name, a function cannot be a
            tool, or two have the same name.
    """
    found: dict[str, ToolEntry] = {}
    for tool in tools:
        entry = declared(tool)
        if entry is None:
            if isinstance(tool, str):
                raise DeclarationError(f"this server has no tool {tool!r}; give it the function")
            entry = ToolEntry(tool, {}, threads=False)
        if entry.name in found:
            raise DeclarationError(f"two tools of the model are named {entry.name!r}")
        found[entry.name] = entry
    if not found:
        raise DeclarationError("without tools, call context.sample")
    return found


def _error_result(text: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(text)], is_error=True)


def _unchanged(result: CreateMessageResult) -> CreateMessageResult:
    return result
