"""`mcp-trio show FILE`: print a trace as `--trace` prints a conversation.

1. An arrow to the right is a message of the client, and one to the left a message of the server.
2. Other events are lines without an arrow: the start and the exit of a server, its stderr, errors
   of HTTP, close codes, and what is missing in the trace.
3. The file is read piece by piece, so that its size doesn't matter.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from mcp_core import escape_text
from mcp_core.trace import DamagedLine, InvalidTrace, TraceReader
from mcp_trio.cli._errors import MISUSE, CliError
from mcp_trio.cli._parser import EXIT_STATUSES, new_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import ARROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_core.trace import TraceLine
    from mcp_trio.cli._parser import Command

__all__ = ["parse", "show"]

_CHUNK: Final = 64 * 1024  # bytes
_ARROW_OF: Final = {"client": ARROWS["sent"], "server": ARROWS["received"]}
_USUAL_ENDS: Final = ("complete", "closed")


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = new_parser(
        "show",
        description="Prints the messages of a conversation that --record has recorded, as --trace"
        " does: → is\n"
        "from the client, ← from the server. Of several conversations in FILE, all but the first"
        " have\n"
        "their number before the arrow.",
        epilog=f"example:\n  mcp-trio inspect --record a.mcp.jsonl greeter.py\n"
        f"  mcp-trio show a.mcp.jsonl\n\n{EXIT_STATUSES}",
    )
    parser.add_argument("file", metavar="FILE", help="the trace, such as a.mcp.jsonl")
    parser.add_argument(
        "--json", action="store_true", help="print the lines of the trace, without damaged ones"
    )
    found = parser.parse_args(words)
    return partial(show, found.file, as_json=found.json)


def show(path: str, *, as_json: bool) -> int:
    """Print the trace in the file `path`, and return the exit status.

    Args:
        path: the file.
        as_json: write the lines of the trace as they are, without damaged ones.

    Raises:
        CliError: the file cannot be read, or isn't a trace.
    """
    stdout, stderr = Screen(sys.stdout), Screen(sys.stderr)
    try:
        with Path(path).open("rb") as file:
            for number, line, data in _read_lines(file):
                if stdout.reader_gone:
                    break
                if isinstance(line, DamagedLine):
                    stderr.write_line(
                        f"mcp-trio: line {number} is damaged: {line.reason}: {line.beginning}"
                    )
                elif as_json:
                    if stdout.terminal:  # the value stays, and nothing in it is invisible
                        data = escape_text(data.decode(errors="replace")).encode()
                    stdout.write_bytes(data + b"\n")
                elif line is not None:
                    _show_line(stdout, line)
    except OSError as exc:
        raise CliError(f"{path}: {exc.strerror}", MISUSE) from exc
    except InvalidTrace as exc:
        raise CliError(f"{path}: {exc}", MISUSE) from exc
    return 0


def _read_lines(file: BinaryIO) -> Iterator[tuple[int, TraceLine | DamagedLine | None, bytes]]:
    """Yield the number of each line, the line, and its bytes. The header is None."""
    reader = TraceReader()
    had_header = False
    while True:
        data = file.read(_CHUNK)
        reader.feed(data)
        while True:
            line = reader.next_line()
            if reader.header is not None and not had_header:
                had_header = True
                yield 1, None, reader.header_data
            if line is None:
                break
            yield reader.line_number, line, reader.line_data
        if not data:
            return


def _show_line(screen: Screen, line: TraceLine) -> None:
    where = f"{line.conversation}: " if line.conversation > 1 else ""
    if line.http is not None and line.http.status >= 400:
        screen.write_line(where, (f"HTTP status {line.http.status}", "red"))
    message = line.message
    if message is not None:
        arrow = _ARROW_OF.get(line.sender or "", ("", ""))
        rest = "" if line.truncated is None else f"… (the first of {line.truncated.size} bytes)"
        if line.sse is None or not line.sse.event:
            screen.write_line(where, arrow, message.decode(errors="replace"), (rest, "dim"))
    if line.websocket is not None:
        close = f"{line.websocket.code} {line.websocket.reason}".rstrip()
        screen.write_line(where, (f"the {line.sender} closes the WebSocket: {close}", "dim"))
    if line.end is not None and line.end not in _USUAL_ENDS:
        screen.write_line(where, (f"the {line.sender} ends the exchange: {line.end}", "yellow"))
    match line.kind:
        case "spawn":
            screen.write_line(where, (f"starts {line.text}", "dim"))
        case "exit":
            screen.write_line(where, (f"exit status {line.status}", "dim"))
        case "stderr":
            screen.write_quoted(line.text or "", indent=where, style="dim")
        case "lost":
            screen.write_line((f"{line.count} lines were not recorded", "yellow"))
        case "note":
            screen.write_message(line.text or "")
