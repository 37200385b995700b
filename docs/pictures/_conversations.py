"""Conversations of the library with itself, recorded for the sequence diagrams.

Each scenario runs a real server and a real client, over the transport that it shows.
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

import mcp_trio

from ._proxy import HttpProxy
from ._recorder import CLIENT, SERVER, STREAM_ENDS, Recorder, Step
from ._server import forecast_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["SCENARIOS", "USER", "record"]

USER: Final = "User"
_ROOT: Final = Path(__file__).parents[2]
_LEGACY: Final = ["2025-11-25"]
_STATELESS: Final = ["2026-07-28"]
_OLDEST: Final = ["2024-11-05"]


async def _show(progress: float, total: float | None, message: str | None) -> None:
    """Take the progress of a call."""


@asynccontextmanager
async def _served(
    recorder: Recorder, server: mcp_trio.Server, rejected: str = ""
) -> AsyncIterator[str]:
    """Serve over HTTP behind an `HttpProxy`, and yield the address without its scheme."""
    async with trio.open_nursery() as nursery:
        address = await nursery.start(mcp_trio.serve_http, server)
        port = await nursery.start(HttpProxy(recorder, address.port, rejected).serve)
        yield f"127.0.0.1:{port}/mcp"
        nursery.cancel_scope.cancel()


async def _over_stdio(recorder: Recorder) -> None:
    words = [sys.executable, "-c", "from docs.pictures._server import main; main()"]
    recorder.note(SERVER, "process starts")
    async with mcp_trio.connect_stdio(
        words, cwd=_ROOT, versions=_LEGACY, trace=recorder.trace
    ) as client:
        await client.call_tool("forecast", {"city": "Oslo"}, progress=_show)
        recorder.note(CLIENT, "closes stdin")
    recorder.note(SERVER, "process ends")


async def _in_session(recorder: Recorder) -> None:
    server = forecast_server()
    async with (
        _served(recorder, server) as address,
        mcp_trio.connect(f"http://{address}", versions=_LEGACY) as client,
    ):
        await recorder.until("200 OK, event stream")
        await client.call_tool("forecast", {"city": "Oslo"}, progress=_show)
        await recorder.until(STREAM_ENDS, 1)
        server.changed(tools=True)
        await recorder.until("notifications/tools/list_changed")
        await client.list_tools()
        recorder.leave()


async def _stateless(recorder: Recorder) -> None:
    server = forecast_server()
    async with (
        _served(recorder, server) as address,
        mcp_trio.connect(f"http://{address}", versions=_STATELESS) as client,
    ):
        await client.list_tools()
        await client.call_tool("forecast", {"city": "Oslo"}, progress=_show)
        await recorder.until(STREAM_ENDS, 1)
        async with client.listen(tools=True) as changes:
            server.changed(tools=True)
            await anext(aiter(changes))
            await recorder.until("notifications/tools/list_changed")
        await recorder.until(STREAM_ENDS, 2)


async def _over_http_sse(recorder: Recorder) -> None:
    async with (
        _served(recorder, forecast_server(), rejected="/mcp") as address,
        mcp_trio.connect(f"http://{address}", versions=_OLDEST) as client,
    ):
        await client.call_tool("forecast", {"city": "Oslo"}, progress=_show)
        recorder.leave()


async def _over_websocket(recorder: Recorder) -> None:
    async with _served(recorder, forecast_server()) as address:
        async with mcp_trio.connect(f"ws://{address}", versions=_LEGACY) as client:
            await client.call_tool("forecast", {"city": "Oslo"}, progress=_show)
        await recorder.until("Close 1000", 2)


async def _asking(recorder: Recorder, versions: list[str]) -> None:
    def fill_in(message: str, form: object) -> dict[str, int]:
        recorder.add(
            Step("request", CLIENT, USER, "shows form"),
            Step("response", USER, CLIENT, "fills it in"),
        )
        return {"count": 2}

    server = forecast_server(on_run=lambda: recorder.note(SERVER, "handler runs"))
    async with mcp_trio.connect(
        server, versions=versions, on_elicit=mcp_trio.answer_form(fill_in), trace=recorder.trace
    ) as client:
        await client.call_tool("book")
    # The picture begins with the call.
    called = [step.text for step in recorder.steps].index("tools/call")
    del recorder.steps[:called]


async def _asking_in_call(recorder: Recorder) -> None:
    await _asking(recorder, _LEGACY)


async def _asking_by_retry(recorder: Recorder) -> None:
    await _asking(recorder, _STATELESS)


SCENARIOS: Final = {
    "stdio": _over_stdio,
    "streamable-http": _in_session,
    "stateless-http": _stateless,
    "http-sse": _over_http_sse,
    "websocket": _over_websocket,
    "asking-in-call": _asking_in_call,
    "asking-by-retry": _asking_by_retry,
}


def record(name: str) -> list[Step]:
    """Run a scenario, and return what was recorded."""
    recorder = Recorder()
    trio.run(SCENARIOS[name], recorder)
    return recorder.steps
