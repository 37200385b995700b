"""`Service`: events in, answers and jobs out, without a runtime."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pytest

from mcp_core import NEED_DATA, Connection, McpError, Role, ToolError
from mcp_core.registry import Context, Job, ResourceNotFound, Runtime, Server, Service
from mcp_core.types import CallToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import RequestReceived

T = TypeVar("T")

CALL = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}\n'
)
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n'


class Quiet(Runtime):
    """A runtime that keeps what it is told for the log, and starts no threads but calls."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, BaseException]] = []

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        self.reports.append((reference, exc))

    def reference(self) -> str:
        return "R1"

    async def in_thread(self, function: Callable[[], T]) -> T:
        return function()


def build() -> Server:
    server = Server("s")

    @server.tool
    def plain() -> str:
        """Give a text."""
        return "plain"

    @server.tool
    def who(context: Context) -> str:
        """Give the id of the request."""
        return f"{context.request_id} {context.lifespan}"

    @server.tool
    async def later(context: Context) -> str:
        """Give a text, in a task."""
        return f"later {context.request_id}"

    @server.tool(thread=True)
    def blocking() -> str:
        """Give a text, in a thread."""
        return "blocking"

    @server.tool
    def unspeakable() -> Any:
        """Give what JSON cannot say."""
        return {"what": object()}

    for error in (
        ValueError("secret"),
        SystemExit(1),
        KeyboardInterrupt(),
        RecursionError(),
        ToolError("told"),
        McpError(7, "mine"),
        McpError(7, "mine", object()),
        ResourceNotFound("gone"),
    ):

        def fail(error: BaseException = error) -> str:
            raise error

        name = f"{type(error).__name__}{'Data' if isinstance(error, McpError) and error.data is not msgspec.UNSET else ''}"
        server.add_tool(
            functools.partial(fail, error), name=name, description="Fail.", input_schema={"type": "object"}
        )
    return server


class Conversation:
    """A connection, its service, and what the service told the log."""

    def __init__(self, server: Server | None = None) -> None:
        self.server = server or build()
        self.conn = Connection(Role.SERVER, self.server.config())
        self.runtime = Quiet()
        self.reports = self.runtime.reports
        self.service = Service(self.server, self.conn, self.runtime, "the value")

    def feed(self, data: bytes) -> list[Job]:
        self.conn.receive_data(data, 0.0)
        jobs = []
        while (event := self.conn.next_event()) is not NEED_DATA:
            job = self.service.take(event)  # type: ignore[arg-type]
            if job is not None:
                jobs.append(job)
        return jobs

    def call(self, name: str, id: int = 1) -> list[Job]:
        return self.feed(CALL % (id, name.encode()))

    def said(self) -> list[Any]:
        return [msgspec.json.decode(line) for line in self.conn.data_to_send().splitlines()]

    def text(self) -> tuple[str, bool]:
        (message,) = self.said()
        result = message["result"]
        return result["content"][0]["text"], result.get("isError", False)


def run(awaitable: Any) -> Any:
    """The value of a coroutine that never waits."""
    try:
        next(awaitable.__await__())
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


def test_a_plain_function_is_answered_at_once() -> None:
    talk = Conversation()
    assert talk.call("plain") == []
    assert talk.text() == ("plain", False)


def test_a_context_is_made_for_who_wants_one() -> None:
    talk = Conversation()
    talk.call("who", 5)
    assert talk.text() == ("5 the value", False)


def test_an_async_function_is_a_job() -> None:
    talk = Conversation()
    (job,) = talk.call("later", 3)
    assert repr(job) == "<Job tools/call id=3>"
    assert repr(talk.service) == f"<Service of {talk.server!r}, 1 jobs>"
    job.done(run(job.start()))
    job.dropped()
    assert talk.service.idle
    assert talk.text() == ("later 3", False)


def test_a_thread_is_a_job() -> None:
    talk = Conversation()
    (job,) = talk.call("blocking")
    job.done(run(job.start()))
    assert talk.text() == ("blocking", False)


def test_a_cancelled_job_is_stopped_and_says_nothing() -> None:
    talk = Conversation()
    (job,) = talk.call("later", 3)
    stopped: list[str] = []
    job.stop = lambda: stopped.append("stopped")
    assert talk.feed(CANCEL % 3) == []
    assert stopped == ["stopped"]
    job.dropped()
    assert talk.said() == []
    assert talk.service.idle


def test_a_cancellation_finds_no_job() -> None:
    talk = Conversation()
    (job,) = talk.call("later", 3)
    assert talk.feed(CANCEL % 3) == []  # nobody runs it yet: stopping it does nothing
    job.done(CallToolResult(content=[]))
    assert talk.said() == []
    assert talk.feed(CANCEL % 3) == []


def test_a_job_that_we_stop_is_answered() -> None:
    talk = Conversation()
    (job,) = talk.call("later")
    job.dropped()
    (message,) = talk.said()
    assert message["error"] == {"code": -32603, "message": "the request was cancelled"}


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("ValueError", "The tool failed with an internal error (reference R1)."),
        ("SystemExit", "The tool failed with an internal error (reference R1)."),
        ("KeyboardInterrupt", "The tool failed with an internal error (reference R1)."),
        ("RecursionError", "The tool failed with an internal error (reference R1)."),
        ("unspeakable", "The tool failed with an internal error (reference R1)."),
    ],
)
def test_a_fault_is_told_to_the_log_only(tool: str, text: str) -> None:
    talk = Conversation()
    talk.call(tool)
    assert talk.text() == (text, True)
    assert [reference for reference, _ in talk.reports] == ["R1"]
    talk.call("plain", 2)
    assert talk.text() == ("plain", False)


def test_what_was_raised_for_the_peer_is_no_fault() -> None:
    talk = Conversation()
    talk.call("ToolError")
    assert talk.text() == ("told", True)
    talk.call("McpError", 2)
    (message,) = talk.said()
    assert message["error"] == {"code": 7, "message": "mine"}
    assert talk.reports == []


def test_error_data_that_cannot_be_said() -> None:
    talk = Conversation()
    talk.call("McpErrorData")
    (message,) = talk.said()
    assert message["error"] == {"code": -32603, "message": "Internal error (reference R1)"}
    assert len(talk.reports) == 1


def test_a_job_that_fails() -> None:
    talk = Conversation()
    (job,) = talk.call("later")
    job.failed(ZeroDivisionError())
    assert talk.text() == ("The tool failed with an internal error (reference R1).", True)


def test_a_job_that_we_stop_because_the_server_ends() -> None:
    talk = Conversation()
    (job,) = talk.call("later")
    talk.conn.wind_down()
    job.dropped()
    (message,) = talk.said()
    assert message["error"] == {"code": 429, "message": "the server is being shut down"}


def test_a_job_whose_answer_cannot_be_sent() -> None:
    talk = Conversation()
    (job,) = talk.call("later")
    job.done(object())
    (message,) = talk.said()
    assert message["error"] == {"code": -32603, "message": "Internal error (reference R1)"}
    assert [type(exc) for _, exc in talk.reports] == [TypeError]


def test_an_unknown_tool() -> None:
    talk = Conversation()
    talk.call("nobody")
    (message,) = talk.said()
    assert message["error"] == {"code": -32602, "message": "Unknown tool: nobody"}


def test_a_fault_of_the_registry_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Conversation()

    def broken(request: RequestReceived) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(talk.server, "answer", broken)
    talk.call("plain")
    (message,) = talk.said()
    assert message["error"] == {"code": -32603, "message": "Internal error (reference R1)"}


def test_a_runtime_that_only_keeps_a_log_numbers_its_faults() -> None:
    class Bare(Runtime):
        def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
            talk.reports.append((reference, exc))

    talk = Conversation()
    talk.service = Service(talk.server, talk.conn, Bare())
    talk.call("ValueError")
    assert talk.text() == ("The tool failed with an internal error (reference 1).", True)
    (job,) = talk.call("blocking", 2)
    with pytest.raises(TypeError, match="does not start threads") as caught:
        run(job.start())
    job.failed(caught.value)
    assert talk.text() == ("The tool failed with an internal error (reference 2).", True)
    assert [type(exc) for _, exc in talk.reports] == [ValueError, TypeError]
