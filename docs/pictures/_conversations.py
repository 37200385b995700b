"""Conversations of the library with itself, recorded for the sequence diagrams.

Each scenario runs a real server and a real client.
"""

from __future__ import annotations

from typing import Final

import trio

import mcp_trio

from ._recorder import CLIENT, SERVER, Recorder, Step
from ._server import forecast_server

__all__ = ["SCENARIOS", "USER", "record"]

USER: Final = "User"
_LEGACY: Final = ["2025-11-25"]
_STATELESS: Final = ["2026-07-28"]


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
    "asking-in-call": _asking_in_call,
    "asking-by-retry": _asking_by_retry,
}


def record(name: str) -> list[Step]:
    """Run a scenario, and return what was recorded."""
    recorder = Recorder()
    trio.run(SCENARIOS[name], recorder)
    return recorder.steps
