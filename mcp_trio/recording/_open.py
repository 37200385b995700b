"""Open a conversation's recorder, and close it in a thread."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from secrets import token_bytes
from typing import TYPE_CHECKING, Literal

import trio

from mcp_core.adapters import Recorder

if TYPE_CHECKING:
    import os

    from mcp_core.adapters import Recording
    from mcp_core.trace import TraceLine

__all__ = ["open_recorder"]

_log = logging.getLogger("mcp_trio")


@asynccontextmanager
async def open_recorder(
    record: str | os.PathLike[str] | Recording | None,
    observer: Literal["client", "server", "between"],
    transport: str,
    target: Sequence[str | os.PathLike[str]] = (),
    on_line: Callable[[TraceLine], object] | None = None,
    secrets: Iterable[str] = (),
) -> AsyncIterator[Recorder | None]:
    """Open a conversation's recorder, or give None if `record` is None.

    The arguments are those of `Recorder`. At the end, the file is closed within two seconds, also
    if the block is cancelled.

    Raises:
        CannotRecord: the file cannot be opened.
    """
    if record is None:
        yield None
        return
    recorder = Recorder(
        record,
        observer,
        transport,
        target,
        entropy=token_bytes,
        log=_log.log,
        on_line=on_line,
        secrets=secrets,
    )
    try:
        yield recorder
    finally:
        # A limiter of its own: handlers may occupy all threads that others share.
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(recorder.close, limiter=trio.CapacityLimiter(1))
