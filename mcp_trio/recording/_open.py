"""Open a recorder for a conversation, and close it in a thread."""

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
    fuzzer: Literal["client", "server"] | None = None,
) -> AsyncIterator[Recorder | None]:
    """Open a recorder for a conversation. Yield None if `record` is None.

    `Recorder` describes the arguments. When the block ends, or is cancelled, the file is closed
    within two seconds.

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
        fuzzer=fuzzer,
    )
    try:
        yield recorder
    finally:
        # With a limiter of its own: handlers may use all threads of the shared one.
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(recorder.close, limiter=trio.CapacityLimiter(1))
