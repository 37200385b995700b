"""A server whose tools run as tasks, for any runtime: its handlers wait through anyio only.

They wait for the client rather than for a time: each call of the tool `go` lets one of them go on.

`python -m tests.task_play.lab trio` serves it on stdin and stdout, `asyncio` too.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import anyio
from msgspec import Struct

from mcp_core import McpError, ToolError
from mcp_core.registry import Context, Server, TaskOptions, Tasks, UrlElicitationRequired
from mcp_core.runtime.tasks import MemoryTaskStore
from mcp_core.tasks import TaskLimits
from mcp_core.types import ElicitParams, ElicitRequest, ElicitResult, InputRequiredResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["LIMITS", "make_lab"]

# Small, so that a test reaches them.
LIMITS: Final = TaskLimits(
    per_principal=40, total=160, result=20_000, requests=4, message_interval=0.001
)
CALLER: Final = ContextVar("CALLER", default="nobody")


class Name(Struct):
    """The form of most questions."""

    name: str


class Gate:
    """Lets one handler pass for each call of `open_once`, whichever comes first."""

    def __init__(self) -> None:
        self._passes = 0
        self._waiting: list[anyio.Event] = []

    async def wait(self) -> None:
        if self._passes:
            self._passes -= 1
            return
        opened = anyio.Event()
        self._waiting.append(opened)
        await opened.wait()

    def open_once(self) -> None:
        if self._waiting:
            self._waiting.pop(0).set()
        else:
            self._passes += 1


def make_lab(tasks: Tasks | None = None) -> Server:
    """Return the server. Its tool `journal` returns what happened since it was last called."""
    server = Server("lab", tasks=tasks or Tasks(store=MemoryTaskStore(), limits=LIMITS))
    journal: list[str] = []
    gate = Gate()

    @server.middleware
    async def around(context: Context, proceed: Callable[[], Awaitable[Any]]) -> Any:
        name = getattr(context.params, "name", "")
        CALLER.set(name)
        context.state["from middleware"] = name
        try:
            return await proceed()
        finally:
            if name not in ("journal", "go"):
                journal.append(f"after {name}")

    @server.tool(name="journal")
    def read_journal() -> str:
        """Return the journal, and begin a new one."""
        text = ", ".join(journal)
        journal.clear()
        return text

    @server.tool
    def go() -> None:
        """Let one handler go on."""
        gate.open_once()

    @server.tool(task="optional")
    async def work(context: Context, held: bool = False) -> str:
        """Report, and wait for `go` if held."""
        journal.append("work")
        await context.progress(1, 2, "half")
        if held:
            await gate.wait()
        assert context.state["from middleware"] == "work"
        return f"called by {CALLER.get()}"

    @server.tool(task="optional")
    async def wait() -> str:
        """Wait until cancelled."""
        try:
            await anyio.sleep_forever()
        finally:
            journal.append("cancelled")
        return ""

    add_questions(server, journal, gate)
    add_others(server)
    return server


def add_questions(server: Server, journal: list[str], gate: Gate) -> None:
    """Add the tools that ask their client."""

    @server.tool(task="optional")
    async def ask(context: Context, times: int = 1) -> str:
        """Ask for names."""
        names = []
        for _ in range(times):
            answer = await context.elicit("Who?", Name)
            names.append(answer.data.name if answer.action == "accept" else answer.action)
        return " and ".join(names)

    @server.tool(task="optional")
    async def impatient(context: Context) -> str:
        """Ask, withdraw the question at the first `go`, and ask another at the second."""
        async with anyio.create_task_group() as group:

            async def withdraw() -> None:
                await gate.wait()
                group.cancel_scope.cancel()

            group.start_soon(withdraw)
            await context.elicit("In time?", Name)
            raise AssertionError("answered")
        await gate.wait()
        answer = await context.elicit("At all?", Name)
        return f"{answer.action} the second"

    @server.tool(task="optional")
    async def model(context: Context) -> str:
        """Let the client's model use a tool."""

        def add(a: int, b: int) -> int:
            """Add."""
            return a + b

        found = await context.sample_with_tools("1 + 2?", [add], max_tokens=10)
        return found.text

    @server.tool(task="optional")
    async def places(context: Context) -> str:
        """Ask for the roots."""
        return ", ".join(str(root.uri) for root in await context.roots())

    @server.tool(task="optional")
    async def returned(context: Context) -> Any:
        """Return the question instead of awaiting it."""
        journal.append("returned")
        answer = context.input_response("who", ElicitResult)
        if answer is None:
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            request = ElicitRequest(ElicitParams(message="Who?", requested_schema=schema))
            return InputRequiredResult(input_requests={"who": request}, request_state="kept")
        return f"{context.request_state}: {answer.action}"

    @server.tool(task="optional")
    async def visit() -> str:
        """Want the user to visit a page first."""
        raise UrlElicitationRequired("Sign in.", "https://example.com/login")


def add_others(server: Server) -> None:
    """Add the tools that need nothing of each other."""

    @server.tool(task=TaskOptions(detach=None))
    async def twins(context: Context) -> str:
        """Become a task twice at once."""
        detached = []

        async def detach() -> None:
            detached.append(await context.detach())

        async with anyio.create_task_group() as group:
            group.start_soon(detach)
            group.start_soon(detach)
        detached.append(await context.detach())
        return f"{detached} {context.task is not None}"

    @server.tool(task="optional", thread=True)
    def threaded(context: Context) -> str:
        """Report from a thread."""
        context.progress_nowait(1, 2, "in a thread")
        assert context.task is not None
        return f"{CALLER.get()} {context.task.cancelled}"

    @server.tool(task="optional")
    async def large(size: int) -> str:
        """Return a long text."""
        return "x" * size

    @server.tool(task="optional")
    async def fail(how: str) -> str:
        """Fail."""
        if how == "tool":
            raise ToolError("The oven is cold.")
        if how == "bug":
            raise ZeroDivisionError
        raise McpError(-32050, "broken", {"part": "door"})


def main() -> None:
    if sys.argv[1] == "trio":
        from mcp_trio import run

        run(make_lab())
    else:
        from mcp_asyncio_shim import run as run_on_asyncio

        run_on_asyncio(make_lab())


if __name__ == "__main__":
    main()
