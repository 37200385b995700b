"""Invocations: the facts a runtime needs, the call, and what exceptions become."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest

from mcp_core import McpError, ToolError
from mcp_core.registry import Context, Invocation, Server
from mcp_core.registry._invocation import refuse_coroutine
from mcp_core.types import ErrorData
from tests.core.registry.asking import E, context_of, prepared, request

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


def test_facts() -> None:
    plain = prepared(server, "tools/call", {"name": "add", "arguments": {"a": 1}})
    assert (plain.is_async, plain.thread, plain.wants_context) == (False, False, False)
    assert repr(plain) == "<ToolInvocation of function 'add'>"
    slow = prepared(server, "tools/call", {"name": "late", "arguments": {"a": 1}})
    assert (slow.is_async, slow.thread, slow.wants_context) == (True, False, True)
    threaded = prepared(server, "tools/call", {"name": "blocking"})
    assert (threaded.is_async, threaded.thread, threaded.wants_context) == (False, True, True)


def test_calls() -> None:
    assert prepared(server, "tools/call", {"name": "add", "arguments": {"a": 1}}).call() == 3
    context = context_of(request("tools/call", {"name": "late"}), server)
    slow = prepared(server, "tools/call", {"name": "late", "arguments": {"a": 1}})

    async def run() -> Any:
        return await slow.call(context)

    assert asyncio.run(run()) == "id-1:1"
    assert prepared(server, "tools/call", {"name": "blocking"}).call(context) == "id-1"


def test_a_call_may_be_made_again() -> None:
    """As the runtime does when the first outcome was a question to the user."""
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
def test_a_tools_own_failure_tells_nothing_but_a_reference(exc: BaseException) -> None:
    plan = prepared(server, "tools/call", {"name": "add", "arguments": {"a": 1}})
    answer = E.encode(plan.failure(exc, "7f3a")).decode()
    assert answer == (
        '{"content":[{"type":"text","text":"The tool failed with an internal error (reference 7f3a)."}],"isError":true}'
    )


@pytest.mark.requirement("PRM-4")
@pytest.mark.parametrize("exc", FAILURES, ids=lambda exc: type(exc).__name__)
def test_elsewhere_it_is_an_internal_error(exc: BaseException) -> None:
    plan = prepared(server, "prompts/get", {"name": "ask"})
    assert plan.failure(exc, "7f3a") == ErrorData(-32603, "Internal error (reference 7f3a)")


@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_an_error_meant_for_the_peer_is_sent_word_for_word(method: str, depth: int) -> None:
    name = {"tools/call": "add", "prompts/get": "ask"}[method]
    plan = prepared(server, method, {"name": name, "arguments": {"a": 1} if name == "add" else {}})
    for exc, expected in (
        (McpError(1234, "No", {"a": 1}), ErrorData(1234, "No", {"a": 1})),
        (McpError(1234, "No"), ErrorData(1234, "No")),
    ):
        group: BaseException = exc
        for _ in range(depth):
            group = BaseExceptionGroup("in a nursery", [group])
        assert plan.failure(group, "7f3a") == expected


@pytest.mark.requirement("TOOL-15")
def test_a_tool_error_is_for_the_model() -> None:
    plan = prepared(server, "tools/call", {"name": "add", "arguments": {"a": 1}})
    assert E.encode(plan.failure(ToolError("No such city"), "r")) == (
        b'{"content":[{"type":"text","text":"No such city"}],"isError":true}'
    )
    assert b"The tool failed." in E.encode(plan.failure(ToolError(), "r"))
    assert prepared(server, "prompts/get", {"name": "ask"}).failure(ToolError("No"), "r") == ErrorData(
        -32603, "No"
    )


def test_a_coroutine_nobody_would_await() -> None:
    refuse_coroutine(3, "f")

    def hide(function: Any) -> Any:
        @functools.wraps(function)
        def outer() -> Any:
            return function()

        return outer

    odd = Server("odd")

    @odd.tool
    @hide
    async def hidden() -> str:
        """Hidden."""
        return "x"

    plan = prepared(odd, "tools/call", {"name": "hidden"})
    assert not plan.is_async
    with pytest.raises(TypeError, match="a decorator may hide"):
        plan.result(plan.call())


def test_it_is_abstract() -> None:
    with pytest.raises(TypeError):
        Invocation(None, False, {}, E)  # type: ignore[abstract, arg-type]
