"""The trace of a drawn conversation has the messages that crossed, in each direction in order."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import PeerError
from mcp_core.trace import TraceLine, read_trace
from mcp_core.types import ElicitResult
from mcp_trio import Context, Recording, Server, ToolError, connect, serve_http
from tests.harness import either
from tests.harness.jsonrpc import VERSIONS
from tests.harness.world import virtual_time
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from mcp_core.runtime import AbstractClient

Direction = Literal["sent", "received"]
Step = tuple[str, Any]

TEXT = st.text(max_size=200)
# One after another: what runs at the same time has no order that both sides agree on.
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(st.just("echo"), TEXT),
        st.tuples(st.just("count"), st.integers(0, 5)),
        st.tuples(st.just("ask"), TEXT),
        st.tuples(st.just("fail"), TEXT),
        st.tuples(st.just("read"), TEXT),
        st.tuples(st.just("ping"), st.none()),
    ),
    max_size=5,
)

EACH_STEP: list[Step] = [
    ("echo", 'a\r\n"\\\0\u2028\U0001f600'),
    ("count", 3),
    ("ask", ""),
    ("ask", "é" * 200),
    ("fail", "\x7f"),
    ("read", ""),
    ("ping", None),
]


def make_server() -> Server:
    server = Server("drawn")

    @server.tool
    def echo(value: str) -> str:
        """Return the text."""
        return value

    @server.tool
    async def count(value: int, context: Context) -> str:
        """Report steps."""
        for step in range(value):
            await context.progress(step, value)
        return "done"

    @server.tool
    async def ask(value: str, context: Context) -> str:
        """Ask the user, whose answer is a secret."""
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        return str(await context.elicit(value or "Name?", schema))

    @server.tool
    def fail(value: str) -> str:
        """Fail."""
        raise ToolError(value)

    @server.resource("x://y")
    def page() -> str:
        """Return a text."""
        return "a page"

    return server


def answer(params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Grace"})


async def play(client: AbstractClient, steps: list[Step]) -> None:
    for what, value in steps:
        if what == "ping":
            await client.ping()
        elif what == "read":
            await client.read_resource("x://y")
        else:
            with suppress(PeerError):  # revisions before 2025-06-18 have no elicitation
                await client.call_tool(what, {"value": value}, progress=lambda *_: None)


stages = pytest.mark.parametrize(
    ("driver", "scheme"),
    [("trio", "memory"), ("asyncio", "memory"), ("trio", "http"), ("trio", "ws")],
)


@stages
@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
def test_trace_has_the_messages_that_crossed(driver: str, scheme: str, version: str) -> None:
    check_recordings(driver, scheme, EACH_STEP, version)


@pytest.mark.long
@stages
@fewer_examples(5)
@given(steps=STEPS, version=st.sampled_from(VERSIONS))
def test_trace_of_any_steps_has_the_messages_that_crossed(
    driver: str, scheme: str, steps: list[Step], version: str
) -> None:
    check_recordings(driver, scheme, steps, version)


def check_recordings(driver: str, scheme: str, steps: list[Step], version: str) -> None:
    """The `trace=` callback tells what really crossed; the files of both ends must agree."""
    crossed: dict[Direction, list[bytes]] = {"sent": [], "received": []}

    def trace(direction: Direction, message: bytes) -> None:
        crossed[direction].append(message)

    async def main(directory: Path) -> tuple[list[TraceLine], list[TraceLine]]:
        ours, theirs = directory / "ours", directory / "theirs"
        options: dict[str, Any] = {
            "versions": [version],
            "trace": trace,
            "on_elicit": answer,
            "record": Recording(path=ours, with_secrets=True),
        }
        server = make_server()
        if scheme == "memory":
            async with either.connect(server, **options) as client:
                await play(client, steps)
            return lines_of(ours), []
        async with trio.open_nursery() as nursery:

            async def serve(task_status: Any) -> None:
                record = Recording(path=theirs, with_secrets=True)
                await serve_http(server, record=record, task_status=task_status)

            address = await nursery.start(serve)
            async with connect(address.url.replace("http", scheme), **options) as client:
                await play(client, steps)
            nursery.cancel_scope.cancel()
        return lines_of(ours), lines_of(theirs)

    with tempfile.TemporaryDirectory() as directory:
        if driver == "trio":
            ours, theirs = trio.run(main, Path(directory))
        else:
            ours, theirs = virtual_time.run(main(Path(directory)))
    assert messages(ours, "client") == crossed["sent"]
    assert messages(ours, "server") == crossed["received"]
    if scheme != "memory":
        assert sorted(messages(theirs, "client")) == sorted(crossed["sent"])
        assert sorted(messages(theirs, "server")) == sorted(crossed["received"])


def lines_of(path: Path) -> list[TraceLine]:
    _, lines = read_trace([path.read_bytes()])
    return [line for _, line in lines if isinstance(line, TraceLine)]


def messages(lines: list[TraceLine], sender: str) -> list[bytes]:
    # An event `endpoint` of HTTP+SSE has no message, and neither has a response without a body.
    return [
        line.message
        for line in lines
        if line.sender == sender
        and line.message
        and not (line.sse is not None and line.sse.event == "endpoint")
    ]
