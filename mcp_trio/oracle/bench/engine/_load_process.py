"""The program of one load process, which `_processes` starts.

It reads one JSON document a line from stdin, and writes one for each to stdout: first how to
connect, then each turn. `{"cut":true}` has no answer, and ends the turn. It ends with stdin.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import trio

from mcp_core import ConnectFailed
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.oracle.bench._turn import Pace, TargetGone
from mcp_trio.oracle.bench.calls._call_documents import calls_of

from ._load import Address, open_load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_trio.oracle.bench._requests import Work
    from mcp_trio.oracle.bench._turn import TargetLoad

__all__ = ["CUT", "main"]

CUT: Final = b'{"cut":true}\n'  # ends the turn
ReadLine: TypeAlias = Callable[[], Awaitable[bytes]]


async def main(read_line: ReadLine, write: Callable[[bytes], object]) -> None:
    """Connect and call as the documents say that `read_line` returns, until it returns b""."""
    first = await read_line()
    if not first:
        return
    settings = msgspec.json.decode(first)
    try:
        async with open_load(
            Address(**settings["target"]), era=settings["era"], timeout=settings["timeout"]
        ) as load:
            about = {
                "revision": load.revision,
                "server": load.server,
                "capabilities": load.capabilities,
            }
            _write(write, {"ready": about})
            work = calls_of(settings["calls"]).work(load.revision)
            requests, waiting = trio.open_memory_channel[bytes](0)
            # The end of stdin cancels a turn.
            async with open_quiet_nursery() as nursery:
                nursery.start_soon(_read_lines, read_line, requests, load, nursery.cancel_scope)
                async for line in waiting:
                    _write(write, await _answer(load, work, msgspec.json.decode(line)))
    except ConnectFailed as exc:
        _write(write, {"failed": str(exc)})


async def _read_lines(
    read_line: ReadLine,
    requests: trio.MemorySendChannel[bytes],
    load: TargetLoad,
    scope: trio.CancelScope,
) -> None:
    while line := await read_line():
        if line == CUT:
            load.cut()
        else:
            await requests.send(line)
    scope.cancel()


async def _answer(load: TargetLoad, work: Work, request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        if "ask" in request:
            return {"answer": await load.ask(request["ask"], request["params"])}
        turn = await load.turn(work, Pace(**request["pace"]), request["seconds"])
    except TargetGone as exc:
        gone = {"reason": str(exc), "status": exc.status, "stderr": exc.stderr}
        return {"gone": gone, "turn": exc.turn and exc.turn.to_json()}
    except ConnectFailed as exc:
        return {"failed": str(exc)}
    return {"turn": turn.to_json()}


def _write(write: Callable[[bytes], object], document: object) -> None:
    write(msgspec.json.encode(document) + b"\n")


async def _read_stdin() -> bytes:
    return await trio.to_thread.run_sync(sys.stdin.buffer.readline, abandon_on_cancel=True)


def _write_stdout(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    trio.run(main, _read_stdin, _write_stdout)
