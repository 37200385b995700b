"""Invocations: attributes, the call, and the responses for exceptions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcp_core import McpError, ToolError
from mcp_core.registry import Context, Invocation, Server
from mcp_core.types import ErrorData
from tests.core.registry.lookup_helpers import E, context_of, prepared, request

server = Server("s")


@server.tool
def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


@server.tool
async def late(context: Context, a: int) -> str:
    """Wait."""
    return f"{context.request_id}:{a}"


@server.tool(thread=True)
def blocking(*, where: Context) -> str:
    """Block."""
    return str(where.request_id)


@server.prompt
def ask() -> str:
    return "?"


def test_invocation_describes_its_function() -> None:
    plain = prepared(server, "tools/call", {"name": "add", "arguments": {"a": 1}})
    assert (plain.is_async, plain.thread, plain.wants_context) == (False, False, False)
    assert repr(plain) == "<ToolInvocation of function 'add'>"
    slow = prepared(server, "tools/call", {"name": "late", "arguments": {"a": 1}})
    assert (slow.is_async, slow.thread, slow.wants_context) == (True, False, True)
    threaded = prepared(server, "tools/call", {"name": "blocking"})
    assert (threaded.is_async, threaded.thread, threaded.wants_context) == (False, True, True)


def test_invocation_call_passes_arguments_and_context() -> None:
    assert prepared(server, "tools/call", {"name": "add", "arguments": {"a": 1}}).call() == 3
    context = context_of(request("tools/call", {"name": "late"}), server)
    slow = prepared(server, "tools/call", {"name": "late", "arguments": {"a": 1}})

    async def run() -> Any:
        return await slow.call(context)

    assert asyncio.run(run()) == "id-1:1"
    assert prepared(server, "tools/call", {"name": "blocking"}).call(context) == "id-1"


def test_invocation_call_can_be_repeated() -> None:
    """A runtime calls the function again after a request for input."""
    context = context_of(request("tools/call", {"name": "late"}), server)
    plan = prepared(server, "tools/call", {"name": "blocking"})
    assert [plan.call(context), plan.call(context)] == ["id-1", "id-1"]


class Oddity(BaseException):
    pass


FAILURES = [
    RuntimeError("secret"),
    SystemExit("secret"),
    KeyboardInterrupt("secret"),
    RecursionError("secret"),
    MemoryError("secret"),
    GeneratorExit("secret"),
    Oddity("secret"),
    ExceptionGroup("secret", [ValueError("secret"), ToolError("secret")]),
    BaseExceptionGroup("secret", [Oddity("secret")]),
]


@pytest.mark.requirement("TOOL-15")
@pytest.mark.parametrize("exc", FAILURES, ids=lambda exc: type(exc).__name__)
def test_invocation_exception_of_a_tool_shows_the_reference_only(exc: BaseException) -> None:
    plan = prepared(server, "tools/call", {"name": "add", "arguments": {"a": 1}})
    answer = E.encode(plan.exception_response(exc, "7f3a")).decode()
    assert answer == (
        '{"content":[{"type":"text","text":"The tool failed with an internal error (reference'
        ' 7f3a)."}],"isError":true}'
    )


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize("exc", FAILURES, ids=lambda exc: type(exc).__name__)
def test_invocation_exception_of_a_prompt_is_an_internal_error(exc: BaseException) -> None:
    plan = prepared(server, "prompts/get", {"name": "ask"})
    assert plan.exception_response(exc, "7f3a") == ErrorData(
        -32603, "Internal error (reference 7f3a)"
    )


@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_invocation_mcp_error_is_sent_unchanged(method: str, depth: int) -> None:
    name = {"tools/call": "add", "prompts/get": "ask"}[method]
    plan = prepared(server, method, {"name": name, "arguments": {"a": 1} if name == "add" else {}})
    for exc, expected in (
        (McpError(1234, "No", {"a": 1}), ErrorData(1234, "No", {"a": 1})),
        (McpError(1234, "No"), ErrorData(1234, "No")),
    ):
        group: BaseException = exc
        for _ in range(depth):
            group = BaseExceptionGroup("in a nursery", [group])
        assert plan.exception_response(group, "7f3a") == expected


@pytest.mark.requirement("TOOL-15")
def test_invocation_tool_error_shows_its_text() -> None:
    plan = prepared(server, "tools/call", {"name": "add", "arguments": {"a": 1}})
    assert E.encode(plan.exception_response(ToolError("No such city"), "r")) == (
        b'{"content":[{"type":"text","text":"No such city"}],"isError":true}'
    )
    assert b"The tool failed." in E.encode(plan.exception_response(ToolError(), "r"))
    assert prepared(server, "prompts/get", {"name": "ask"}).exception_response(
        ToolError("No"), "r"
    ) == ErrorData(-32603, "No")


def test_invocation_is_abstract() -> None:
    with pytest.raises(TypeError):
        Invocation(None, False, {}, E)  # type: ignore[abstract, arg-type]


def test_invocation_of_a_plain_def_marks_the_context_while_it_runs() -> None:
    """In a worker thread it isn't marked: middleware may use the context meanwhile."""
    found: list[bool] = []

    def look(context: Context) -> str:
        found.append(context.in_plain_def)
        return "x"

    for thread in (False, True):
        own = Server("s")
        own.add_tool(look, name="look", description="Look.", thread=thread)
        context = context_of(request("tools/call", {"name": "look"}), own)
        assert prepared(own, "tools/call", {"name": "look"}).call(context) == "x"
        assert not context.in_plain_def
    assert found == [True, False]


def test_invocation_that_is_deferred_awaits_what_the_function_returned() -> None:
    plan = prepared(server, "tools/call", {"name": "add", "arguments": {"a": 1}})

    async def later() -> int:
        return 7

    plan.defer(later())
    assert (plan.is_async, plan.wants_context) == (True, False)

    async def run() -> Any:
        return await plan.call()

    assert asyncio.run(run()) == 7
