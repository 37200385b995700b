"""Several processes that call one address, for a target that one Python process cannot fill.

Each process (`_load_process`) has connections of its own, and its share of the callers or of the
rate. It gets one JSON document a line, and answers each with one.
"""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from mcp_core import ConnectFailed
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.oracle.bench._turn import BenchTurn, TargetGone
from mcp_trio.oracle.bench._verdicts import decode_json
from mcp_trio.streams._child import Grace, spawn

from ._load_process import CUT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from mcp_trio.oracle.bench._requests import Work
    from mcp_trio.oracle.bench._turn import Pace, TargetLoad
    from mcp_trio.oracle.bench.calls._calls import Calls
    from mcp_trio.streams._child import ChildProcess

    from ._load import Address

__all__ = ["ManyLoads", "open_loads", "share_pace"]

_PROGRAM: Final = (sys.executable, "-P", "-m", "mcp_trio.oracle.bench.engine._load_process")
_GRACE: Final = Grace(stdin=5.0)  # for the end of the sessions
_CHUNK: Final = 65_536
_MAX_LINE: Final = 16 * 1024 * 1024  # bytes; a turn has some KiB
_SLACK: Final = 30.0  # seconds for what a process does before and after its calls


@asynccontextmanager
async def open_loads(
    target: Address, count: int, calls: Calls, *, era: str | None, timeout: float
) -> AsyncIterator[TargetLoad]:
    """Start `count` processes that connect to a target, and yield them as one load.

    At the end of the block the processes close their connections and end.

    Args:
        target: the address.
        count: the number of processes.
        calls: what they call.
        era: the revision to speak; None for the newest that both speak.
        timeout: seconds for connecting, and for the response to each call.

    Raises:
        ConnectFailed: a process got no connection.
    """
    async with AsyncExitStack() as stack:
        processes = [
            _LoadProcess(
                await stack.enter_async_context(spawn(_PROGRAM, inherit_env=True, grace=_GRACE))
            )
            for _ in range(count)
        ]
        settings = {
            "target": {"url": target.url, "headers": dict(target.headers)},
            "calls": calls.to_json(),
            "era": era,
            "timeout": timeout,
        }
        ready = [await process.ask(settings, timeout + _SLACK) for process in processes]
        for each in ready:
            _require(each)
        yield ManyLoads(processes, ready[0]["ready"], timeout)


class ManyLoads:
    """Several processes as one load."""

    def __init__(
        self, processes: list[_LoadProcess], about: Mapping[str, Any], timeout: float
    ) -> None:
        self._processes = processes
        self._timeout = timeout
        self._measuring: trio.Nursery | None = None
        self.revision = str(about["revision"])
        self.server = str(about["server"])
        self.protocol = "HTTP/1.1"
        self.capabilities: Mapping[str, Any] = about["capabilities"]

    async def turn(self, work: Work, pace: Pace, seconds: float) -> BenchTurn:
        """Call for `seconds` in all processes, and return what they have measured together.

        Args:
            work: not used: each process has made its own from the same `BenchCalls`.
            pace: the pace of all processes together.
            seconds: how long.

        Raises:
            TargetGone: one of the processes has found so, got no further session, or has ended,
                and others have measured calls.
            ConnectFailed: likewise, and none has measured calls.
        """
        answers: dict[int, Mapping[str, Any]] = {}

        async def ask(place: int, share: Pace) -> None:
            request = {"pace": asdict(share), "seconds": seconds}
            # Connections are opened a few at a time.
            limit = seconds + self._timeout * (1 + share.concurrency) + _SLACK
            try:
                answers[place] = await self._processes[place].ask(request, limit)
            except ConnectFailed as exc:  # what the others measure isn't lost
                answers[place] = {"failed": str(exc)}

        try:
            async with open_quiet_nursery(wait=True) as nursery:
                self._measuring = nursery
                for place, share in enumerate(share_pace(pace, len(self._processes))):
                    nursery.start_soon(ask, place, share)
        finally:
            self._measuring = None
        turns = [
            BenchTurn.from_json(each["turn"])
            for each in answers.values()
            if each.get("turn") is not None
        ]
        for each in answers.values():
            _require(each, reduce(BenchTurn.beside, turns) if turns else None)
        return reduce(BenchTurn.beside, turns)

    def cut(self) -> bool:
        """Tell all processes to end the turn now. Return False if none is being measured."""
        if self._measuring is None:
            return False
        for process in self._processes:
            self._measuring.start_soon(process.cut)
        return True

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send one request outside a turn, from the first process, and return the response.

        Raises:
            TargetGone, ConnectFailed: as `turn`.
        """
        request = {"ask": method, "params": params}
        answer = await self._processes[0].ask(request, self._timeout + _SLACK)
        _require(answer)
        found: dict[str, Any] = answer["answer"]
        return found


def share_pace(pace: Pace, count: int) -> list[Pace]:
    """Return the pace of each of `count` processes, which is fewer if there are fewer callers."""
    count = min(count, pace.concurrency)
    more = pace.concurrency % count
    return [
        replace(
            pace,
            rate=None if pace.rate is None else pace.rate / count,
            concurrency=pace.concurrency // count + (place < more),
            seed=pace.seed * 1009 + place,
        )
        for place in range(count)
    ]


def _require(answer: Mapping[str, Any], turn: BenchTurn | None = None) -> None:
    """Raise the error that a process has answered with."""
    if "failed" in answer:
        if turn is not None:
            raise TargetGone(answer["failed"], turn=turn)
        raise ConnectFailed(answer["failed"])
    if "gone" in answer:
        gone = answer["gone"]
        raise TargetGone(
            gone["reason"], status=gone["status"], stderr=tuple(gone["stderr"]), turn=turn
        )


class _LoadProcess:
    """A process that calls."""

    def __init__(self, process: ChildProcess) -> None:
        self._process = process
        self._received = bytearray()

    async def ask(self, request: Mapping[str, Any], limit: float) -> Mapping[str, Any]:
        """Send a document, and return the one that answers it, within `limit` seconds.

        After an error the process can't be asked again.

        Raises:
            ConnectFailed: the process has ended, takes longer, or answers with something else.
        """
        with trio.move_on_after(limit):
            found = decode_json(await self._exchange(msgspec.json.encode(request) + b"\n"))
            if isinstance(found, dict):
                return found
            raise ConnectFailed("a process of the load has answered with a line that isn't JSON")
        raise ConnectFailed(
            f"a process of the load has not answered within {limit:g} s; fewer --processes may help"
        )

    async def cut(self) -> None:
        """Tell the process to end its turn. It answers the request for that."""
        with suppress(trio.BrokenResourceError):
            await self._process.stream.send_all(CUT)

    async def _exchange(self, data: bytes) -> bytes:
        """Send a line, and return the line that answers it."""
        stream = self._process.stream
        try:
            await stream.send_all(data)
            while b"\n" not in self._received:
                if len(self._received) > _MAX_LINE:
                    raise ConnectFailed(
                        f"a process of the load has answered with over {_MAX_LINE >> 20} MiB"
                    )
                chunk = await stream.receive_some(_CHUNK)
                if not chunk:
                    raise trio.BrokenResourceError
                self._received += chunk
        except trio.BrokenResourceError:
            status = self._process.returncode
            raise ConnectFailed(
                f"a process of the load has ended with status {status}; fewer --processes may help"
            ) from None
        line, _, rest = bytes(self._received).partition(b"\n")
        self._received[:] = rest
        return line
