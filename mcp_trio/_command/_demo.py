"""`mcp-trio demo`: a client and a server talk, and every message is shown below the line of Python that caused it.

Rules of this file:

1. What is shown has happened: the call that is printed is made from the very arguments that are printed, and a message is
   shown when it crosses.
2. Everything is over in three seconds, cancelling included.
3. Messages are shortened until a newcomer sees their shape: what each message repeats comes last or is left out.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

import mcp_trio

from ._screen import Screen
from ._talk import ARROWS, Target, talk

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Literal

    from mcp_trio import Client

__all__ = ["demo"]

_MODULE: Final = "mcp_trio.examples.teahouse"
_TIMEOUT: Final = 20.0
_WIDTH: Final = 110  # where no terminal says otherwise
_LONGEST_TEXT: Final = 44
_DEEPEST: Final = 5
_REPEATED: Final = {"_meta", "resultType", "ttlMs", "cacheScope"}
_PREFIX: Final = "io.modelcontextprotocol/"
_WHO: Final = {f"{_PREFIX}{name}" for name in ("clientInfo", "clientCapabilities", "serverInfo")}
_CHAPTERS: Final = (
    (
        "2026-07-28",
        "No handshake: each request says in its _meta which revision it is in, who asks, and what that client can do.",
    ),
    (
        "2025-11-25",
        "The older way: first a handshake, in which both sides agree on a revision; then the same calls.",
    ),
)
_INTRODUCTION: Final = f"""\
A client talks to a server over the Model Context Protocol. The lines with >>> are the client's Python; below each are
the messages that it causes, → from the client and ← from the server.

The server is a child process (python -m {_MODULE}). Its stdin and stdout carry one JSON message
a line. A request has an id, which its answer repeats; a notification has none. The messages are shortened: … stands
for what is left out, and "jsonrpc":"2.0" stands in all of them."""


def demo() -> int:
    """Run the demonstration; returns the exit status.

    Raises:
        Problem: the conversation went wrong.
    """
    screen = Screen(sys.stdout)
    screen.say(_INTRODUCTION)
    story = _Story(screen)
    for version, text in _CHAPTERS:
        story.chapter(version, text)
        target = Target(
            server=(sys.executable, "-m", _MODULE),
            # Where this package was imported from: `python -m` begins its search there, whatever the user's directory has.
            cwd=Path(mcp_trio.__file__).parents[1],
            versions=(version,),
            timeout=_TIMEOUT,
            trace=story.message,
        )
        status = talk(target, partial(_tour, story))
        if status:
            return status
    screen.say()
    screen.say(f"{story.counts['sent']} messages went to the server, {story.counts['received']} came back.")
    screen.say("The server's source: ", str(Path(mcp_trio.__file__).parent / "examples" / "teahouse.py"))
    screen.say(
        "Look into any server with: ",
        ("mcp-trio inspect URL", "bold"),
        " or ",
        ("mcp-trio inspect -- COMMAND ARG...", "bold"),
    )
    return 0


async def _tour(story: _Story, client: Client) -> int:
    # The last message of a handshake, which nobody waits for, is written meanwhile.
    await trio.lowlevel.checkpoint()
    await story.call(client.list_tools)
    await story.call(client.call_tool, "price", {"tea": "sencha", "cups": 2})
    await story.call(client.read_resource, "tea://menu")
    await story.call(client.get_prompt, "recommend", {"mood": "sleepy"})
    story.remark(
        "A call with progress, given up after a while; the function in the server is cancelled, too."
    )
    story.code("with trio.move_on_after(0.25):")
    with trio.move_on_after(0.25):
        brew = {"tea": "assam", "minutes": 60}
        await story.call(client.call_tool, "brew", brew, nested=True, progress=_unheard)
    with trio.move_on_after(1):
        await story.cancelled.wait()
    return 0


def _unheard(done: float, total: float | None, message: str | None) -> None:
    """Progress is asked for to be seen crossing."""


class _Story:
    """What is told on the screen. `cancelled` is set when a cancellation has crossed; `counts` has the messages."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._width = screen.width(_WIDTH)
        self.counts = {"sent": 0, "received": 0}
        self.cancelled = trio.Event()

    def chapter(self, version: str, text: str) -> None:
        self.cancelled = trio.Event()
        self._screen.say()
        self._screen.say((f"Revision {version}", "bold underline"))
        self._screen.say((text, "italic"))
        self.code(f"async with mcp_trio.connect(command, versions=[{version!r}]) as client:")

    def remark(self, text: str) -> None:
        self._screen.say()
        self._screen.say((text, "italic"))

    def code(self, line: str, *, nested: bool = False) -> None:
        self._screen.say(("...     " if nested else ">>> ", "dim"), (line, "bold"))

    async def call(
        self, method: Callable[..., Awaitable[object]], *arguments: Any, nested: bool = False, **keywords: Any
    ) -> None:
        """Show a call of the client, and make it."""
        shown = [*map(repr, arguments), *(f"{name}=..." for name in keywords)]
        self.code(f"await client.{method.__name__}({', '.join(shown)})", nested=nested)
        await method(*arguments, **keywords)

    def message(self, direction: Literal["sent", "received"], line: bytes) -> None:
        """Show a message that crosses."""
        self.counts[direction] += 1
        found = json.loads(line)
        if found.get("method") == "notifications/cancelled":
            self.cancelled.set()
        found.pop("jsonrpc", None)
        text = _shortened(found)
        room = self._width - 5
        self._screen.say("  ", ARROWS[direction], text if len(text) <= room else f"{text[: room - 1]}…")


def _shortened(value: Any, depth: int = 0) -> str:
    """JSON, with … for what is long, deep or further down a list; what all messages repeat comes last."""
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return json.dumps(value[: _LONGEST_TEXT - 1] + "…", ensure_ascii=False)
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    if depth == _DEEPEST:
        return "{…}" if isinstance(value, dict) else "[…]"
    if isinstance(value, list):
        more = ",…" if len(value) > 1 else ""
        return f"[{_shortened(value[0], depth + 1)}{more}]"
    ordered = sorted(value, key=lambda name: name in _REPEATED)
    members = [
        f'"{name.replace(_PREFIX, "…/")}":{_shortened(value[name], depth + 1)}'
        for name in ordered
        if name not in _WHO
    ]
    return "{" + ",".join(members + ["…"] * (len(members) < len(value))) + "}"
