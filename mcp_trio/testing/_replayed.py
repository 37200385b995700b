"""Recorded conversations as servers of tests."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from mcp_core.trace import InvalidTrace, ReplayedServer, load_trace, read_trace

__all__ = ["replayed"]


def replayed(path: str | os.PathLike[str], *, ignore: Iterable[str] = ()) -> ReplayedServer:
    """Return a recorded conversation as a server for `connect`, of trio and of asyncio.

    Used as `async with connect(replayed("greet.mcp.jsonl")) as client: ...`. It answers as the
    recorded server did, with its notifications, progress and requests, without its waiting. A
    request that it cannot answer gets an error, and fails the test at the end of the block, with
    the most similar recorded request. It can be connected to several times.

    Args:
        path: the trace, as `record=` and `mcp-trio --record` write it, of any revision and
            transport. It is read now, as a whole.
        ignore: JSON pointers to values in the client's messages that don't count, such as
            `/params/arguments/now`. `*` stands for any member.

    Raises:
        EmptyTrace: there is no request of a client in it.
        InvalidTrace: the file isn't a trace, or is too large.
        OSError: it cannot be read.
        TypeError: `ignore` is one string.
        ValueError: one of `ignore` isn't a JSON pointer.
    """
    try:
        with Path(path).open("rb") as file:
            trace = load_trace(*read_trace(file))
    except FileNotFoundError as exc:
        raise FileNotFoundError(
            exc.errno,
            "there is no such trace: record one with connect(server, record=FILE), or with"
            " mcp-trio and --record FILE",
            os.fspath(path),
        ) from None
    except InvalidTrace as exc:
        raise type(exc)(f"{os.fspath(path)}: {exc}") from None
    return ReplayedServer(trace, path=os.fspath(path), ignore=ignore)
