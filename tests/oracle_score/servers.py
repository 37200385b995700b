"""The right servers and clients that are broken by script.

No tool waits for anything but trio's clock, but for those of a server in another language.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypedDict

import trio
from msgspec import Meta, Struct

import mcp_trio
from mcp_core import ToolError
from mcp_core.registry import Context, Server, Tasks
from mcp_core.types import ToolAnnotations
from mcp_trio.examples import teahouse
from mcp_trio.streams._child import Grace, spawn
from tests.oracle_score.wrapper import LineReader, MutantTarget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.oracle_score.operators import MutantPlace

__all__ = ["SERVERS", "RightServer", "workshop"]

SAFE: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
PAGE_SIZE: Final = 4
NODE_MODULES: Final = "MCP_TRIO_NODE_MODULES"


class RightServer(NamedTuple):
    """A server without known faults, or a client.

    Attributes:
        serve: serves one conversation on a stream, until its client closes it; None over HTTP. Of a
            client it has the conversation with its server.
        tools: those that a fuzzer may call.
        is_client: it is a client.
        needs: the environment variable without which it can't run. Such a server is a program, and
            its clock the real one, so its score depends on the machine.
    """

    serve: Callable[[trio.abc.Stream], Awaitable[None]] | None
    tools: tuple[str, ...]
    is_client: bool = False
    needs: str = ""

    @property
    def is_available(self) -> bool:
        """True if it can run here."""
        return not self.needs or bool(os.environ.get(self.needs) and shutil.which("node"))

    def target(self, place: MutantPlace | None, nursery: trio.Nursery) -> Any:
        """Return the server, broken at a place or right, as a target of the fuzzer."""
        if self.is_client:
            from tests.oracle_score.clients import ClientMutantTarget

            assert self.serve is not None
            return ClientMutantTarget(self.serve, place)
        if self.serve is None:
            from tests.oracle_score.http_wrapper import HttpMutantTarget

            return HttpMutantTarget(workshop(http=True), place, nursery)
        return MutantTarget(self.serve, place, nursery)


class Weather(TypedDict):
    """The result of `weather`."""

    city: str
    celsius: float


class Visitor(Struct):
    """The form of `ask`."""

    name: str


def workshop(*, http: bool = False) -> Server:
    """Return a server that has a little of everything, in pages of four entries."""
    server = Server("workshop", "1.0", page_size=PAGE_SIZE, tasks=Tasks())
    _add_plain_tools(server, http=http)
    _add_lively_tools(server)
    _add_entries(server)
    return server


def _add_plain_tools(server: Server, *, http: bool) -> None:
    @server.tool(annotations=SAFE)
    def echo(text: str) -> str:
        """Return the text."""
        return text

    @server.tool(annotations=SAFE)
    def weather(city: str) -> Weather:
        """Return the weather of a city, as data."""
        return {"city": city, "celsius": 21.5}

    @server.tool(annotations=SAFE)
    def add(a: int, b: int) -> int:
        """Return the sum of two numbers."""
        return a + b

    @server.tool(annotations=SAFE)
    def fail() -> str:
        """Fail, with a text for the model."""
        raise ToolError("the disk is full")

    if http:

        @server.tool(annotations=SAFE)
        def locate(
            region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})],
        ) -> str:
            """Return the region, which a header repeats."""
            return region

        @server.tool(annotations=SAFE)
        async def confirm(text: str, context: Context) -> str:
            """Return the text, once the user has confirmed it."""
            answer = await context.elicit("Is it right?", Visitor)
            return text if answer.action == "accept" else "not confirmed"


def _add_lively_tools(server: Server) -> None:
    @server.tool(annotations=SAFE)
    async def count(to: Annotated[int, Meta(ge=0, le=10)], context: Context) -> int:
        """Count, and report each step."""
        for step in range(1, to + 1):
            await context.progress(step, to)
            await context.log("info", f"step {step}")
            await trio.sleep(0.01)
        return to

    @server.tool(annotations=SAFE)
    async def steep(minutes: Annotated[int, Meta(ge=0, le=20)], context: Context) -> str:
        """Steep a tea. A minute takes a hundredth of a second."""
        for minute in range(minutes):
            await context.progress(minute + 1, minutes)
            await trio.sleep(0.01)
        return "ready"

    @server.tool(annotations=SAFE)
    async def ask(context: Context) -> str:
        """Ask the user for a name."""
        answer = await context.elicit("Who are you?", Visitor)
        return answer.data.name if answer.action == "accept" else "nobody"

    @server.tool(annotations=SAFE)
    def change(what: Literal["tools", "prompts", "resources", "note"]) -> None:
        """Announce a change."""
        if what == "note":
            server.changed(resource="note:///one")
        else:
            server.changed(**{what: True})  # type: ignore[arg-type]

    @server.tool(annotations=SAFE, task="optional")
    async def work(minutes: Annotated[int, Meta(ge=0, le=20)] = 5) -> str:
        """Work for a while. It can run as a task."""
        await trio.sleep(minutes / 10)
        return "done"


def _add_entries(server: Server) -> None:
    for name in ("one", "two", "three", "four", "five", "six"):
        _add_note(server, name)
    for name in ("plain", "short", "long", "formal", "kind"):
        _add_prompt(server, name)

    @server.prompt
    def greet(name: str, tone: str = "kind") -> str:
        """Greet a guest."""
        return f"Greet {name}, be {tone}."

    @server.completion("greet", "tone")
    def tones(typed: str) -> list[str]:
        return [each for each in ("frank", "friendly", "kind") if each.startswith(typed)]


def _add_note(server: Server, name: str) -> None:
    @server.resource(f"note:///{name}", name=name, mime_type="text/plain")
    def note() -> str:
        """Return a note."""
        return f"The note {name}."


def _add_prompt(server: Server, name: str) -> None:
    @server.prompt(name=name)
    def prompt() -> str:
        """Say something."""
        return f"Say something {name}."


async def serve_workshop(stream: trio.abc.Stream) -> None:
    """Serve a new workshop."""
    await mcp_trio.serve_stream(workshop(), stream, grace=0.1)


async def serve_teahouse(stream: trio.abc.Stream) -> None:
    """Serve the example."""
    await mcp_trio.serve_stream(teahouse.server, stream, grace=0.1)


async def serve_sdk(stream: trio.abc.Stream) -> None:
    """Serve a server of the official SDK, on trio."""
    from mcp.server.stdio import stdio_server

    from tests.oracle_score.sdk_server import new_server

    server = new_server()._lowlevel_server
    lines = _TextLines(stream)
    async with stdio_server(lines, lines) as (reading, writing):  # type: ignore[arg-type]
        await server.run(reading, writing, server.create_initialization_options())


async def serve_typescript(stream: trio.abc.Stream) -> None:
    """Serve a server of the TypeScript SDK, which is a process."""
    modules = os.environ[NODE_MODULES]
    script = str(Path(__file__).with_name("ts_server.mjs"))
    async with (
        spawn(["node", script, modules], stderr="discard", grace=Grace(0.0, 0.0)) as child,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(_feed, stream, child.stream.send_stream)
        await _copy(child.stream, stream)
        nursery.cancel_scope.cancel()


async def _feed(source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
    """Copy bytes until the source ends, and close the sink."""
    await _copy(source, sink)
    await sink.aclose()


async def _copy(source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
    """Copy bytes until the source ends."""
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while data := bytes(await source.receive_some()):
            await sink.send_all(data)


async def visit_ours(stream: trio.abc.Stream) -> None:
    """Have the conversation of our client."""
    from tests.oracle_score.clients import visit_server

    await visit_server(stream)


async def visit_sdk(stream: trio.abc.Stream) -> None:
    """Have the conversation of the official SDK's client."""
    from tests.oracle_score.sdk_client import visit_as_sdk

    await visit_as_sdk(stream)


class _TextLines:
    """A stream as the text files that the SDK reads and writes."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._reader = LineReader(stream)

    def __aiter__(self) -> _TextLines:
        return self

    async def __anext__(self) -> str:
        line = await self._reader.next()
        if line is None:
            raise StopAsyncIteration
        return line.decode(errors="replace") + "\n"

    async def write(self, text: str) -> None:
        """Write text, each character once."""
        await self._stream.send_all(text.encode())

    async def flush(self) -> None:
        """Do nothing: what was written was sent."""


SERVERS: Final[dict[str, RightServer]] = {
    "workshop": RightServer(
        serve_workshop,
        ("echo", "weather", "add", "fail", "count", "steep", "ask", "change", "work"),
    ),
    "http": RightServer(
        None,
        (
            "echo",
            "weather",
            "add",
            "fail",
            "count",
            "steep",
            "ask",
            "change",
            "work",
            "locate",
            "confirm",
        ),
    ),
    "teahouse": RightServer(serve_teahouse, ("price", "brew")),
    "client": RightServer(visit_ours, (), is_client=True),
    "sdk": RightServer(serve_sdk, ("echo", "weather", "count", "steep")),
    "sdk client": RightServer(visit_sdk, (), is_client=True),
    "typescript": RightServer(serve_typescript, ("echo", "weather", "count"), needs=NODE_MODULES),
}
