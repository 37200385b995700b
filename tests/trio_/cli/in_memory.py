"""The command in this process, with a server in memory: a millisecond where a program takes 500."""

from __future__ import annotations

import io
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import mcp_trio
from mcp_trio._connect import connect_stream
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.cli import _session, main
from mcp_trio.streams._memory import memory_pair

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import pytest

LAUNCH_OPTIONS = ("env", "inherit_env", "cwd", "stderr")


class Output(NamedTuple):
    """A run's exit status and output."""

    status: int
    out: str
    err: str


class AnsweringServer:
    """A server that answers each method as it is told: with a result, an error, or "silent".

    A list has the answers of one request after the other; the last is repeated. `initialized` has
    more members of the handshake's result, and `notes` the notifications that come before the
    answer of their method, those of progress with the request's token. After the method `last` the
    server ends. `requests` has what was requested.
    """

    def __init__(
        self,
        capabilities: object,
        answers: Mapping[str, Any],
        *,
        version: str = "2025-06-18",
        notes: Mapping[str, list[dict[str, Any]]] | None = None,
        initialized: Mapping[str, Any] | None = None,
        last: str = "",
    ) -> None:
        self.requests: list[tuple[str, Any]] = []
        self._last = last
        self._notes = notes or {}
        info = {"name": "played", "version": "1"}
        result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
        self._answers = {"initialize": {**result, **(initialized or {})}, **answers}

    async def serve(self, stream: trio.abc.Stream) -> None:
        buffer = b""
        async for data in stream:
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                for answer in self._answer(message):
                    await stream.send_all(json.dumps(answer).encode() + b"\n")
                if message["method"] == self._last:
                    await wait_all_tasks_blocked()  # until all that was sent is read
                    await stream.aclose()
                    return
        await stream.aclose()

    def _answer(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        method = message["method"]
        self.requests.append((method, message.get("params")))
        if "id" not in message:
            return []
        unknown = {"error": {"code": -32601, "message": "unknown"}}
        answer = self._answers.get(method, unknown)
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if answer == "silent":
            return []
        answer = answer if "error" in answer else {"result": answer}
        notes = self._notes.get(method, [])
        for note in notes:
            if "progress" in note["params"]:
                note["params"]["progressToken"] = message["params"]["_meta"]["progressToken"]
        return [*notes, {"jsonrpc": "2.0", "id": message["id"], **answer}]


class TerminalFile(io.TextIOWrapper):
    """stdout or stderr of the command that is a terminal."""

    def isatty(self) -> bool:
        return True


class MemoryCommand:
    """Runs the command. Each server that it starts is `server`. `launches` has how it did so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server: mcp_trio.Server | AnsweringServer = AnsweringServer({}, {})
        self.launches: list[tuple[tuple[str, ...], dict[str, Any]]] = []
        self._patch = monkeypatch
        monkeypatch.setattr(_session, "connect_stdio", self._connect)
        self._trio_run = trio.run

    def __call__(self, *words: str, terminal: bool = False, target: str | None = "-- it") -> Output:
        """Run the command with a server as its target."""
        kind = TerminalFile if terminal else io.TextIOWrapper
        files = [kind(io.BytesIO(), "utf-8") for _ in range(2)]
        with self._patch.context() as patch:
            patch.setattr(sys, "stdout", files[0])
            patch.setattr(sys, "stderr", files[1])
            patch.setattr(trio, "run", self.run_with_jumping_clock)
            try:
                status = main([*words, *(target or "").split()])
            except SystemExit as exc:
                status = exc.code if isinstance(exc.code, int) else 1
        for file in files:
            file.flush()
        out, err = (file.buffer.getvalue().decode() for file in files)  # type: ignore[attr-defined]
        return Output(status, out.replace("\x1b", "^"), err.replace("\x1b", "^"))

    def run_with_jumping_clock(self, *arguments: Any, **options: Any) -> Any:
        # A clock that jumps while all wait.
        return self._trio_run(*arguments, **{"clock": MockClock(autojump_threshold=0), **options})

    @asynccontextmanager
    async def _connect(self, argv: tuple[str, ...], **options: Any) -> AsyncIterator[Any]:
        self.launches.append((argv, dict(options)))
        for name in LAUNCH_OPTIONS:
            del options[name]
        server = self.server
        if isinstance(server, mcp_trio.Server):
            async with mcp_trio.connect(server, **options) as client:
                yield client
            return
        ours, theirs = memory_pair()
        async with open_quiet_nursery() as nursery:
            nursery.start_soon(server.serve, theirs)
            async with connect_stream(ours, **options) as client:
                yield client
            await theirs.aclose()
            nursery.cancel_scope.cancel()
