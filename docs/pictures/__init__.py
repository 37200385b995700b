"""The pictures of the documentation, drawn from tables, figures and recorded conversations.

`python -m docs.pictures` writes them to `docs/images/`. A test compares the files with what is
drawn.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ._chart import draw_benchmarks
from ._conversations import USER, record
from ._recorder import CLIENT, SERVER
from ._sequence import draw_sequence
from ._states import draw_lifecycle, draw_request, draw_server, draw_task

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PICTURES"]

_SEQUENCES: Final = {
    "stdio": "stdio, 2025-11-25",
    "streamable-http": "Streamable HTTP, 2025-11-25",
    "stateless-http": "Streamable HTTP, 2026-07-28",
    "http-sse": "HTTP+SSE, 2024-11-05",
    "websocket": "WebSocket, 2025-11-25",
    "asking-in-call": "Elicitation in 2025-11-25",
    "asking-by-retry": "Elicitation in 2026-07-28",
}


def _draw_conversation(name: str, title: str) -> str:
    steps = record(name)
    ends = {step.source for step in steps}
    lanes = [lane for lane in (USER, CLIENT, SERVER) if lane in ends]
    return draw_sequence(title, lanes, steps)


# The name of each file in `docs/images/`, and the function that returns its text.
PICTURES: Final[dict[str, Callable[[], str]]] = {
    "connection-states.svg": draw_lifecycle,
    "request-phases.svg": draw_request,
    "task-statuses.svg": draw_task,
    "server-states.svg": draw_server,
    "benchmarks.svg": draw_benchmarks,
    **{
        f"{name}.svg": partial(_draw_conversation, name, title)
        for name, title in _SEQUENCES.items()
    },
}
