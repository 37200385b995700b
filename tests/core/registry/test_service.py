"""`Service`: events in, answers and jobs out, without a runtime."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcp_core import NEED_DATA, Connection, McpError, Role, ToolError
from mcp_core.registry import Context, Job, ResourceNotFound, Server, Service

if TYPE_CHECKING:
    from mcp_core import RequestReceived

CALL = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}\n'
)
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n'


class SilentContext(Context):
    """A context that says nothing."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        raise AssertionError

    def progress_nowait(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        raise AssertionError


def build() -> Server:
    server = Server("s")

    @server.tool
    def plain() -> str:
        """Give a text."""
        return "plain"

    @server.tool
    def who(context: Context) -> str:
        """Give the id of the request."""
        return f"{context.request_id} {type(context).__name__}"

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
        self.reports: list[tuple[str, BaseException]] = []
        self.service = Service(
            self.server,
            self.conn,
            context=lambda request, thread: SilentContext(request, self.server),
            reference=lambda: "R1",
            report=lambda request, reference, exc: self.reports.append((reference, exc)),
        )

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
        awaitable.send(None)
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
    assert talk.text() == ("5 SilentContext", False)


def test_an_async_function_is_a_job() -> None:
    talk = Conversation()
    (job,) = talk.call("later", 3)
    assert repr(job) == "<Job tools/call id=3>"
    assert repr(talk.service) == f"<Service of {talk.server!r}, 1 jobs>"
    job.done(run(job.start()))
    job.dropped()
    assert talk.service.idle
    assert talk.text() == ("later 3", False)


def test_a_thread_is_a_job_that_gives_its_value() -> None:
    talk = Conversation()
    (job,) = talk.call("blocking")
    assert job.thread
    job.done(job.start())
    assert talk.text() == ("blocking", False)


def test_a_cancelled_job_is_stopped_and_says_nothing() -> None:
    talk = Conversation()
    (job,) = talk.call("later", 3)
    job.start().close()
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
    job.start().close()
    assert talk.feed(CANCEL % 3) == []  # nobody runs it yet: stopping it does nothing
    job.done("too late")
    assert talk.said() == []
    assert talk.feed(CANCEL % 3) == []


def test_a_job_that_we_stop_is_answered() -> None:
    talk = Conversation()
    (job,) = talk.call("later")
    job.start().close()
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
    job.start().close()
    job.failed(ZeroDivisionError())
    assert talk.text() == ("The tool failed with an internal error (reference R1).", True)


def test_a_job_whose_value_cannot_be_sent() -> None:
    talk = Conversation()
    (job,) = talk.call("later")
    job.start().close()
    job.done(object())
    assert talk.text() == ("The tool failed with an internal error (reference R1).", True)


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


def test_a_runtime_without_contexts_numbers_its_faults() -> None:
    talk = Conversation()
    talk.service = Service(
        talk.server, talk.conn, report=lambda request, reference, exc: talk.reports.append((reference, exc))
    )
    for number in (1, 2):
        talk.call("who")
        assert talk.text() == (f"The tool failed with an internal error (reference {number}).", True)
    assert [type(exc) for _, exc in talk.reports] == [TypeError, TypeError]
