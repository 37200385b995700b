"""`mcp-trio demo`: a client talks to a server, and every message is printed below the call.

1. Nothing is made up: each printed call is made with the printed arguments, and a message is
   printed when it is sent or received.
2. The demonstration takes less than three seconds, cancellation included.
3. Messages are shortened so that their shape can be seen. Members that every message repeats come
   last or are left out.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

import mcp_trio
from mcp_trio.cli._parser import new_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import ARROWS, Target, run_session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Literal

    from mcp_trio._client import Client
    from mcp_trio.cli._parser import Command

__all__ = ["demo", "parse"]

_MODULE: Final = "mcp_trio.examples.teahouse"
_TIMEOUT: Final = 20.0
_DEFAULT_WIDTH: Final = 110  # columns, if stdout isn't a terminal
_MAX_TEXT: Final = 44
_MAX_DEPTH: Final = 5
_REPEATED_MEMBERS: Final = {"_meta", "resultType", "ttlMs", "cacheScope"}
_PREFIX: Final = "io.modelcontextprotocol/"
# Members of `_meta` that are long and the same in each message.
_HIDDEN: Final = {f"{_PREFIX}{name}" for name in ("clientInfo", "clientCapabilities", "serverInfo")}
_CHAPTERS: Final = (
    (
        "2026-07-28",
        (
            "No handshake: each request names its revision, its client and the client's"
            " capabilities in _meta."
        ),
    ),
    (
        "2025-11-25",
        (
            "The older protocol: a handshake, in which both sides agree on a revision, then the"
            " same calls."
        ),
    ),
)
_INTRODUCTION: Final = f"""\
A client talks to a server over the Model Context Protocol. The lines with >>> are the client's
Python; below each are its messages, → from the client and ← from the server.

The server is a child process (python -m {_MODULE}). Its stdin and stdout carry one JSON message
a line. A request has an id, which its response repeats; a notification has none. The messages are
shortened: … marks an omission, and "jsonrpc":"2.0", which all of them have, is left out."""


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = new_parser(
        "demo",
        description="Starts a small server and talks to it in two revisions of MCP, showing every"
        " message.",
    )
    parser.parse_args(words)
    return demo


def demo() -> int:
    """Run the demonstration and return the exit status.

    Raises:
        CliError: the connection to the server failed.
    """
    screen = Screen(sys.stdout)
    for line in _INTRODUCTION.splitlines():
        screen.write_line(line)
    story = _Transcript(screen)
    for version, text in _CHAPTERS:
        story.chapter(version, text)
        target = Target(
            server=(sys.executable, "-m", _MODULE),
            # The directory from which this package was imported: `python -m` searches the current
            # directory first, which may have modules with the same names.
            cwd=Path(mcp_trio.__file__).parents[1],
            # The packages that this one needs may be installed elsewhere.
            env=tuple((name, os.environ[name]) for name in ("PYTHONPATH",) if name in os.environ),
            versions=(version,),
            timeout=_TIMEOUT,
            trace=story.message,
        )
        status = run_session(target, partial(_make_calls, story))
        if status:
            return status
    screen.write_line()
    screen.write_line(
        f"{story.counts['sent']} messages were sent to the server, {story.counts['received']}"
        " were received."
    )
    screen.write_line(
        "The server's source: ", str(Path(mcp_trio.__file__).parent / "examples" / "teahouse.py")
    )
    screen.write_line(
        "Inspect any server with: ",
        ("mcp-trio inspect URL", "bold"),
        " or ",
        ("mcp-trio inspect -- COMMAND ARG...", "bold"),
    )
    return 0


async def _make_calls(story: _Transcript, client: Client) -> int:
    # Let the writer send `notifications/initialized`, for which the client doesn't wait, before
    # the first call is printed.
    await trio.lowlevel.checkpoint()
    await story.call(client.list_tools)
    await story.call(client.call_tool, "price", {"tea": "sencha", "cups": 2})
    await story.call(client.read_resource, "tea://menu")
    await story.call(client.get_prompt, "recommend", {"mood": "sleepy"})
    story.remark(
        "A call with progress that is cancelled after 0.25 s, together with the function in"
        " the server."
    )
    story.code("with trio.move_on_after(0.25):")
    with trio.move_on_after(0.25):
        brew = {"tea": "assam", "minutes": 60}
        await story.call(client.call_tool, "brew", brew, nested=True, progress=_ignore_progress)
    return 0


def _ignore_progress(done: float, total: float | None, message: str | None) -> None:
    """Ignore progress. It is requested only so that its messages appear."""


class _Transcript:
    """The output of the demonstration.

    `counts` are the messages so far.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._width = screen.width(_DEFAULT_WIDTH)
        self.counts = {"sent": 0, "received": 0}

    def chapter(self, version: str, text: str) -> None:
        """Print a revision's heading, and the line of Python that connects."""
        self._screen.write_line()
        self._screen.write_line((f"Revision {version}", "bold underline"))
        self._screen.write_line((text, "italic"))
        self.code(f"async with mcp_trio.connect(command, versions=[{version!r}]) as client:")

    def remark(self, text: str) -> None:
        """Print an explanation."""
        self._screen.write_line()
        self._screen.write_line((text, "italic"))

    def code(self, line: str, *, nested: bool = False) -> None:
        """Print a line of Python as at a prompt; `nested` is inside a block."""
        self._screen.write_line(("...     " if nested else ">>> ", "dim"), (line, "bold"))

    async def call(
        self,
        method: Callable[..., Awaitable[object]],
        *arguments: Any,
        nested: bool = False,
        **keywords: Any,
    ) -> None:
        """Print a call of the client, and make it."""
        printed = [*map(repr, arguments), *(f"{name}=..." for name in keywords)]
        self.code(f"await client.{method.__name__}({', '.join(printed)})", nested=nested)
        await method(*arguments, **keywords)

    def message(self, direction: Literal["sent", "received"], line: bytes) -> None:
        """Print a message, shortened to one line."""
        self.counts[direction] += 1
        message = json.loads(line)
        message.pop("jsonrpc", None)
        text = _shorten(message)
        width = self._width - 5
        self._screen.write_line(
            "  ", ARROWS[direction], text if len(text) <= width else f"{text[: width - 1]}…"
        )


def _shorten(value: Any, depth: int = 0) -> str:
    """Return JSON with … in place of long, deeply nested and further items."""
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        return json.dumps(value[: _MAX_TEXT - 1] + "…", ensure_ascii=False)
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    if depth == _MAX_DEPTH:
        return "{…}" if isinstance(value, dict) else "[…]"
    if isinstance(value, list):
        more = ",…" if len(value) > 1 else ""
        return f"[{_shorten(value[0], depth + 1)}{more}]"
    ordered = sorted(value, key=lambda name: name in _REPEATED_MEMBERS)
    members = [
        f'"{name.replace(_PREFIX, "…/")}":{_shorten(value[name], depth + 1)}'
        for name in ordered
        if name not in _HIDDEN
    ]
    return "{" + ",".join(members + ["…"] * (len(members) < len(value))) + "}"
