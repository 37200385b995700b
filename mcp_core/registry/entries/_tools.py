"""Tools: a function, the decoding of its arguments and the encoding of its result.

1. Everything possible is prepared at the declaration. A call is one decode, the function, and one
   result object.
2. In revisions that have it, invalid arguments give a result with `isError`, so that the model can
   try again. In older ones they give the error -32602 (server/tools, Error Handling).
3. The function of a tool with a declared input schema gets the validated arguments as one dict, or
   as `**arguments`, because a schema can describe what a signature cannot.
"""

from __future__ import annotations

import collections.abc
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypedDict

from msgspec import Raw, UnsetType
from msgspec.structs import replace

from mcp_core._errors import Fault, McpError, ToolError
from mcp_core._keywords import check_keywords
from mcp_core._limits import Rate
from mcp_core.protocol.jsonrpc._unencodable import whole_text
from mcp_core.protocol.revisions._dialects import Dialect
from mcp_core.protocol.schema._param_headers import param_headers
from mcp_core.registry._errors import DeclarationError
from mcp_core.registry._validation import (
    check_entry,
    check_icons,
    check_meta,
    check_tool_name,
    plain_name,
    warn_author,
)
from mcp_core.registry._visibility import Caller, visibility_of
from mcp_core.registry.functions._function import (
    MISSING,
    Function,
    inspect_function,
    runs_in_thread,
    strip_annotated,
)
from mcp_core.registry.functions._output import Output, list_items
from mcp_core.registry.functions._schema import DeclaredSchema
from mcp_core.registry.functions._signature import (
    ArgumentReader,
    ArgumentsNotAnObject,
    InvalidArguments,
    read_object,
)
from mcp_core.registry.tasks._options import TaskOptions, TaskSupport, read_task_options
from mcp_core.types import (
    CallToolResult,
    ErrorData,
    Icon,
    Result,
    TextContent,
    Tool,
    ToolAnnotations,
    ToolExecution,
)

from ._invocation import Invocation

if TYPE_CHECKING:
    from ._call_limits import CallLimits

__all__ = ["ToolEntry", "ToolOptions", "failed_internally"]

_MAPPINGS: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping, Any, MISSING)


class ToolOptions(TypedDict, total=False):
    """The options of a declared tool.

    Keys:
        name: the name for programs; the function's name by default.
        title: the name for people.
        description: what the tool does, for the model; the docstring by default.
        annotations: hints for clients.
        icons: icons with `https:` or `data:` URIs.
        meta: the entry's `_meta` in the list.
        input_schema: replaces the signature's schema, and is sent as it is. The function then takes
            one dict, or `**arguments`. JSON Schema 2020-12, unless its `$schema` names 2019-09,
            draft-07, draft-06, draft-04 or draft-03.
        output_schema: replaces the return annotation's schema, and is sent as it is.
        thread: True to run a plain `def` in a worker thread, because it blocks. By default the
            server's `threads` decides.
        visible: called with the `Caller` of each request; only those for whom it returns True see
            the tool. For all others it doesn't exist, and neither do the tasks of its calls. A
            plain function that doesn't block. If it raises, the tool is hidden, and the log has the
            exception once a minute. Not for tools with `x-mcp-header`.
        task: "optional" if a client may have the call run as a task, "required" if it has to,
            "forbidden" (the default) if it cannot; or `TaskOptions`. The function is an `async
            def`, or a plain `def` with `thread=True`.
        timeout: seconds that a call may take. Then it is cancelled, and the model gets a result
            with `isError` that says so. The time in which the handler waits for its client, as in
            `Context.elicit`, doesn't count; in 2026-07-28 each run has the whole time. For an
            `async def`, or a plain `def` with `thread=True`: its thread goes on until the function
            returns, and the log says so once. By default there is no limit.
        rate: how many calls each client may make, over all of its connections: the principal, or
            without authorization the network that it connects from. Above it a call is an error,
            before the function is called. Of clients that nothing tells apart, all count as one. In
            2026-07-28 a call that is repeated with the user's answer counts again. A use by the
            client's model counts too (`Context.sample_with_tools`). A worker counts for itself: N
            workers allow N times as many. By default only `Limits.tool_calls` applies.
    """

    name: str | None
    title: str | None
    description: str | None
    annotations: ToolAnnotations | None
    icons: Sequence[Icon] | None
    meta: Mapping[str, Any] | None
    input_schema: Mapping[str, Any] | None
    output_schema: Mapping[str, Any] | None
    thread: bool
    visible: Callable[[Caller], bool] | None
    task: TaskSupport | TaskOptions
    timeout: float | None
    rate: Rate | None


class ToolEntry:
    """A declared tool.

    Raises:
        DeclarationError: the tool cannot be served.
    """

    __slots__ = (
        "_read",
        "_tool",
        "function",
        "limits",
        "name",
        "number",
        "output",
        "param_headers",
        "task",
        "thread",
        "visibility",
    )
    number: int  # the number of the declaration on its server
    present_time = None

    def __init__(self, function: Callable[..., Any], options: ToolOptions, threads: bool) -> None:
        check_keywords(options, ToolOptions, "@server.tool")
        output_schema = options.get("output_schema")
        declared = options.get("input_schema")
        self.function = found = inspect_function(
            function, returns=output_schema is None, has_schema=declared is not None
        )
        self.name = plain_name(options.get("name") or found.name)
        if not self.name:
            raise DeclarationError(f"{found.label} has no name of its own; give one with name=")
        check_tool_name(self.name)
        self.thread = runs_in_thread(found, options.get("thread"), threads)
        self.task = read_task_options(options.get("task"), found, self.thread)
        timeout, rate = options.get("timeout"), options.get("rate")
        self.limits: CallLimits | None = None
        if timeout is not None or rate is not None:
            from ._call_limits import read_call_limits  # on first use: most tools have none

            self.limits = read_call_limits(timeout, rate, found, self.thread)
        description = options.get("description") or found.description
        if not description:
            warn_author(
                f"tool {self.name!r} has no description: "
                "without one a model cannot know when to use it"
            )
        self._read: Callable[[Raw | bytes | UnsetType], dict[str, Any]]
        if declared is None:
            reader = ArgumentReader(found)
            self._read = reader.read
            schema = reader.schema
        else:
            self._read, schema = _use_input_schema(found, declared)
        try:
            self.param_headers = param_headers(schema)
        except ValueError as exc:
            raise DeclarationError(f"{found.label}: {exc}") from None
        self.visibility = visibility_of(options.get("visible"), f"tool {self.name!r}")
        if self.visibility is not None and self.param_headers:
            raise DeclarationError(
                f"{found.label}: a tool with visible= has no x-mcp-header, since the errors about"
                " missing headers would show that it exists"
            )
        self.output = Output(found.returns, output_schema, found.label)
        if self.output.is_iterable and not found.is_async:
            # Its items are the function's work: made where it runs, perhaps in a thread.
            self.function = replace(found, call=_listing(found.call))
        self._tool = Tool(
            name=self.name,
            title=options.get("title"),
            description=description or None,
            input_schema=schema,
            annotations=options.get("annotations"),
            icons=check_icons(options.get("icons"), found.label),
            meta=check_meta(options.get("meta"), found.label),
            execution=None if self.task is None else ToolExecution(task_support=self.task.support),
        )
        check_entry(self._tool, found.label)

    def __repr__(self) -> str:
        return f"<tool {self.name!r}: {self.function.label}>"

    def list_entry(self, dialect: Dialect) -> Tool:
        """Return the entry of `tools/list`."""
        return replace(self._tool, output_schema=self.output.schema(dialect))

    def prepare(
        self, arguments: Raw | UnsetType, dialect: Dialect, task: TaskOptions | None = None
    ) -> Invocation | Result:
        """Return the call to make, or the error result for invalid arguments.

        `task` has the options of the task as which the call runs, None for an ordinary call.

        Raises:
            McpError: the arguments aren't an object, or they are invalid and there is no error
                result for that: the revision has none, or the client waits for a task.
        """
        try:
            return ToolInvocation(self, self._read(arguments), dialect, task)
        except InvalidArguments as exc:
            is_result = dialect.tool_argument_errors_are_results and (
                task is None or dialect.tasks == "extension"
            )
            if is_result and not isinstance(exc, ArgumentsNotAnObject):
                return _error_result(str(exc))
            raise McpError(dialect.codes[Fault.INVALID_PARAMS], str(exc)) from None


class ToolInvocation(Invocation):
    """One call of a tool."""

    __slots__ = ("_output", "limits", "task")

    def __init__(
        self,
        entry: ToolEntry,
        arguments: dict[str, Any],
        dialect: Dialect,
        task: TaskOptions | None = None,
    ) -> None:
        super().__init__(entry.function, entry.thread, arguments, dialect)
        self._output = entry.output
        self.limits = entry.limits
        self.task = task

    def result(self, value: Any) -> Result:
        return self._output.result(value, self.dialect)

    def _exception_response(self, exc: BaseException, reference: str) -> Result | ErrorData:
        if isinstance(exc, ToolError):
            return _error_result(str(exc) or "The tool failed.")
        return failed_internally(reference)


def _listing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with lists in place of the iterators that it returns."""
    return lambda **arguments: list_items(function(**arguments))


def failed_internally(reference: str) -> CallToolResult:
    """Return the result for an exception that the log has under `reference`."""
    return _error_result(f"The tool failed with an internal error (reference {reference}).")


def _error_result(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(whole_text(text))], is_error=True)


def _use_input_schema(
    function: Function, declared: Mapping[str, Any]
) -> tuple[Callable[[Raw | bytes | UnsetType], dict[str, Any]], dict[str, Any]]:
    """Return the arguments' reader, and the schema to list.

    Raises:
        DeclarationError: the schema cannot be used, or the function doesn't take one dict.
    """
    schema = DeclaredSchema(declared, f"{function.label}: input_schema")
    if not schema.describes_object:
        raise DeclarationError(
            f'{function.label}: the root of input_schema has to say "type": "object"'
        )
    if function.reserved is not None:
        return _use_keywords(function, function.reserved, schema), schema.schema
    parameters = function.parameters
    kinds = [
        typing.get_origin(strip_annotated(p.annotation)) or strip_annotated(p.annotation)
        for p in parameters
    ]
    if len(parameters) > 1 or any(kind not in _MAPPINGS for kind in kinds):
        raise DeclarationError(
            f"{function.label}: with input_schema= it takes one parameter, a dict of the arguments,"
            " or `**arguments`"
        )
    name = parameters[0].name if parameters else ""

    def read(arguments: Raw | bytes | UnsetType) -> dict[str, Any]:
        values = _read_by_schema(arguments, schema)
        return {name: values} if name else {}

    return read, schema.schema


def _use_keywords(
    function: Function, reserved: frozenset[str], schema: DeclaredSchema
) -> Callable[[Raw | bytes | UnsetType], dict[str, Any]]:
    """Return the arguments' reader for a function that takes them as `**arguments`.

    Raises:
        DeclarationError: the function has other parameters that a peer would have to fill in, or
            the schema has a property with the name of a parameter.
    """
    if function.parameters:
        raise DeclarationError(
            f"{function.label}: with input_schema= and `**arguments` it takes no other parameter"
            f" than the context, and {function.parameters[0].name!r} is one; take all of them from"
            " `**arguments`"
        )
    for name in sorted(reserved & schema.schema.get("properties", {}).keys()):
        raise DeclarationError(
            f"{function.label}: {name!r} is a property in input_schema, and also a parameter of the"
            " function: rename the parameter, or take the arguments as one dict"
        )

    def read(arguments: Raw | bytes | UnsetType) -> dict[str, Any]:
        values = _read_by_schema(arguments, schema)
        for name in reserved & values.keys():  # the schema allows further properties
            raise InvalidArguments(f"Unknown argument `{name}`")
        return values

    return read


def _read_by_schema(arguments: Raw | bytes | UnsetType, schema: DeclaredSchema) -> dict[str, Any]:
    """Return the arguments as an object that `schema` allows.

    Raises:
        InvalidArguments: they aren't.
    """
    values = read_object(arguments)
    violation = schema.find_error(values)
    if violation is not None:
        path, reason = violation
        raise InvalidArguments(
            f"Invalid argument `{path}`: {reason}" if path else f"Invalid arguments: {reason}"
        )
    return values
