"""A note for exceptions of code that awaits another event loop than the one that it runs on."""

from __future__ import annotations

import re
from typing import Final, Literal

__all__ = ["note_other_loop"]

_NOTES: Final = {
    "trio": "This runs on trio, and the code awaits asyncio. To run the server on asyncio:"
    " `mcp-trio run --asyncio FILE`, or mcp_asyncio_shim.run(server)",
    "asyncio": "This runs on asyncio, and the code awaits trio. To run the server on trio:"
    " `mcp-trio run FILE` without --asyncio, or mcp_trio.run(server)",
}
# What asyncio says without a loop, and what each loop says to what it cannot wait for.
_TEXTS: Final = {
    "trio": re.compile(
        "no running event loop|There is no current event loop|trio.run received unrecognized yield"
    ),
    "asyncio": re.compile(
        "must be called from async context|Task got bad yield|'RunContext' object has no attribute"
    ),
}
_TYPES: Final = (AttributeError, RuntimeError, TypeError)


def note_other_loop(exc: BaseException, loop: Literal["trio", "asyncio"]) -> None:
    """Add a note with the cure to an exception that the other event loop has caused.

    Args:
        exc: any exception; others stay as they are. Of a group, each exception gets a note.
        loop: the event loop that runs.
    """
    if isinstance(exc, BaseExceptionGroup):
        for each in exc.exceptions:
            note_other_loop(each, loop)
    elif isinstance(exc, _TYPES) and _TEXTS[loop].match(str(exc)):
        note = _NOTES[loop]
        if note not in getattr(exc, "__notes__", ()):
            exc.add_note(note)
