"""`HandlerCall` and `run_middleware`: middleware around every kind of declaration."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from mcp_core import McpError, Rate, ToolError
from mcp_core.registry import Context, DeclarationError, Proceed, Server
from mcp_core.types import CallToolResult, RequestParams, TextContent
from tests.core.runtime.test_service import Conversation, run

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def build() -> Server:
    server = Server("s")

    @server.tool
    def plain(word: str = "plain") -> str:
        """Give a text."""
        return word

    @server.tool
    async def later(context: Context) -> str:
        """Give what middleware left."""
        return str(context.state.get("left"))

    @server.tool(thread=True)
    def blocking() -> str:
        """Give a text, in a thread."""
        return "blocking"

    @server.tool
    def failing() -> str:
        """Fail for the model."""
        raise ToolError("for the model")

    @server.tool
    def broken() -> str:
        """Fail."""
        raise ZeroDivisionError("secret")

    @server.resource("fixed:x")
    def fixed() -> str:
        return "contents"

    @server.prompt
    def ask() -> str:
        """Ask."""
        return "question"

    @server.method("acme/own")
    def own() -> dict[str, Any]:
        return {"own": True}

    return server


class AnsweringConversation(Conversation):
    """A conversation whose jobs run one after the other."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.jobs = 0

    def ask(self, method: str, **params: Any) -> Any:
        """Return the result, or the error object, of one request."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        for job in self.feed(json.dumps(message).encode() + b"\n"):
            self.jobs += 1
            try:
                job.done(run(job.run()))
            except BaseException as exc:  # noqa: BLE001 - as a runtime does
                job.failed(exc)
            job.dropped()
        (answer,) = self.sent()
        return answer.get("result", answer.get("error"))


EVERYTHING: list[tuple[str, dict[str, Any], str]] = [
    ("tools/call", {"name": "plain"}, "content"),
    ("tools/call", {"name": "later"}, "content"),
    ("tools/call", {"name": "blocking"}, "content"),
    ("tools/list", {}, "tools"),
    ("resources/read", {"uri": "fixed:x"}, "contents"),
    ("resources/list", {}, "resources"),
    ("resources/templates/list", {}, "resourceTemplates"),
    ("prompts/get", {"name": "ask"}, "messages"),
    ("prompts/list", {}, "prompts"),
    ("acme/own", {}, "own"),
]


@pytest.mark.parametrize(("method", "params", "member"), EVERYTHING)
def test_middleware_sees_every_kind_of_request(
    method: str, params: dict[str, Any], member: str
) -> None:
    """The response is the same as without it, and middleware gets typed params."""
    server = build()
    without = AnsweringConversation(server).ask(method, **params)
    seen: list[Any] = []

    @server.middleware
    async def watch(context: Context, proceed: Proceed) -> object:
        seen.append((context.method, type(context.params)))
        result = await proceed()
        seen.append(result)
        return result

    harness = AnsweringConversation(server)
    assert harness.ask(method, **params) == without
    assert member in without
    assert harness.jobs == 1
    (called, kind), result = seen
    assert called == method
    assert issubclass(kind, RequestParams)
    assert result is not None


def test_middleware_declared_first_is_outermost() -> None:
    """A log that is declared first must also see what later middleware refuses or replaces."""
    server = build()
    order: list[str] = []

    def layer(name: str) -> None:
        @server.middleware
        async def around(context: Context, proceed: Proceed) -> object:
            order.append(f"{name} in")
            result = await proceed()
            order.append(f"{name} out")
            return result

    layer("outer")
    layer("inner")
    AnsweringConversation(server).ask("tools/call", name="plain")
    assert order == ["outer in", "inner in", "inner out", "outer out"]


def test_middleware_state_reaches_handler() -> None:
    server = build()

    @server.middleware
    async def leave(context: Context, proceed: Proceed) -> object:
        context.state["left"] = "a note"
        return await proceed()

    assert (
        AnsweringConversation(server).ask("tools/call", name="later")["content"][0]["text"]
        == "a note"
    )


def test_request_rejected_by_middleware_learns_nothing() -> None:
    server = build()

    @server.middleware
    async def refuse(context: Context, proceed: Proceed) -> object:
        raise McpError(7, "not for you")

    harness = AnsweringConversation(server)
    for name in ("plain", "nobody"):
        assert harness.ask("tools/call", name=name) == {"code": 7, "message": "not for you"}
    assert harness.reports == []


def test_middleware_may_replace_exception_of_handler() -> None:
    """Tool errors and unknown tools pass through it as exceptions too; nothing is reported."""
    server = build()
    seen: list[type[BaseException]] = []

    @server.middleware
    async def soothe(context: Context, proceed: Proceed) -> object:
        try:
            return await proceed()
        except Exception as exc:
            seen.append(type(exc))
            if isinstance(exc, ZeroDivisionError):
                return CallToolResult(content=[TextContent("soothed")])
            raise

    harness = AnsweringConversation(server)
    assert harness.ask("tools/call", name="broken")["content"][0]["text"] == "soothed"
    assert harness.ask("tools/call", name="failing")["content"][0]["text"] == "for the model"
    assert harness.ask("tools/call", name="nobody") == {
        "code": -32602,
        "message": "Unknown tool: nobody",
    }
    assert seen == [ZeroDivisionError, ToolError, McpError]
    assert harness.reports == []


def test_middleware_may_replace_result_or_retry() -> None:
    """`proceed` may be called twice: the tool fails once and then succeeds."""
    server = build()
    tries: list[int] = []

    @server.tool
    async def flaky() -> str:
        """Work the second time."""
        tries.append(len(tries))
        if len(tries) < 2:
            raise ConnectionError
        return "at last"

    @server.middleware
    async def retry(context: Context, proceed: Proceed) -> object:
        try:
            return await proceed()
        except ConnectionError:
            return await proceed()

    assert (
        AnsweringConversation(server).ask("tools/call", name="flaky")["content"][0]["text"]
        == "at last"
    )
    assert tries == [0, 1]


def test_middleware_raising_is_internal_error() -> None:
    server = build()

    @server.middleware
    async def broken(context: Context, proceed: Proceed) -> object:
        raise ZeroDivisionError("secret")

    harness = AnsweringConversation(server)
    assert harness.ask("tools/call", name="plain") == {
        "code": -32603,
        "message": "Internal error (reference R1)",
    }
    assert [type(exc) for _, exc in harness.reports] == [ZeroDivisionError]


def test_middleware_raising_after_handler_is_error_of_tool() -> None:
    server = build()

    @server.middleware
    async def broken(context: Context, proceed: Proceed) -> object:
        await proceed()
        raise ToolError("changed my mind")

    result = AnsweringConversation(server).ask("tools/call", name="plain")
    assert (result["isError"], result["content"][0]["text"]) == (True, "changed my mind")


def test_middleware_returning_none_is_internal_error() -> None:
    server = build()

    @server.middleware
    async def forgetful(context: Context, proceed: Proceed) -> None:
        await proceed()

    harness = AnsweringConversation(server)
    assert harness.ask("tools/call", name="plain")["code"] == -32603
    assert [type(exc) for _, exc in harness.reports] == [TypeError]


class Instance:
    async def __call__(self, context: Context, proceed: Proceed) -> object:
        return await proceed()


def test_middleware_must_be_async() -> None:
    server = Server("s")
    assert server.middleware(instance := Instance()) is instance

    def plain(context: Context, proceed: Proceed) -> object:
        raise AssertionError

    with pytest.raises(DeclarationError, match="an `async def` of a context and `proceed`"):
        server.middleware(plain)  # type: ignore[type-var]
    with pytest.raises(DeclarationError, match="an `async def`"):
        server.middleware(functools.partial(plain))  # type: ignore[type-var]
    assert server.middlewares == [instance]


def test_thread_raising_stop_iteration_is_runtime_error() -> None:
    """Futures refuse a `StopIteration`, and iterators take it for their end."""
    server = Server("s")

    @server.tool(thread=True)
    def stop() -> str:
        """Raise it."""
        raise StopIteration("a secret")

    harness = AnsweringConversation(server)
    assert harness.ask("tools/call", name="stop", arguments={})["isError"] is True
    ((_, error),) = harness.reports
    assert isinstance(error, RuntimeError)
    assert isinstance(error.__cause__, StopIteration)


def test_middleware_sees_the_uri_as_it_is_declared() -> None:
    server = build()
    seen: list[str] = []

    @server.middleware
    async def watch(context: Context, proceed: Proceed) -> object:
        seen.append(context.params.uri)
        return await proceed()

    for uri in ("fixed:x", "FIXED:%78", "fixed:unknown"):
        AnsweringConversation(server).ask("resources/read", uri=uri)
    assert seen == ["fixed:x", "fixed:x", "fixed:unknown"]


def test_call_that_middleware_makes_again_is_counted_once() -> None:
    """A call is counted inside of the middleware, and the next one is above the rate."""
    server = Server("s")
    ran: list[str] = []

    @server.tool(rate=Rate(per_second=0.25, burst=1))
    def work() -> str:
        """Work."""
        ran.append("work")
        return "done"

    @server.middleware
    async def twice(context: Context, proceed: Proceed) -> object:
        await proceed()
        return await proceed()

    harness = AnsweringConversation(server)
    assert harness.ask("tools/call", name="work")["content"][0]["text"] == "done"
    assert ran == ["work"] * 2
    refused = harness.ask("tools/call", name="work")
    assert (refused["code"], refused["data"]) == (429, {"retryAfter": 4.0})
    assert ran == ["work"] * 2


def test_call_without_middleware_is_counted_before_it_is_started() -> None:
    server = Server("s")

    @server.tool(rate=Rate(per_second=0.25, burst=1))
    async def work() -> str:
        """Work."""
        return "done"

    harness = AnsweringConversation(server)
    assert harness.ask("tools/call", name="work")["content"][0]["text"] == "done"
    assert harness.ask("tools/call", name="work")["code"] == 429
    assert harness.jobs == 1
