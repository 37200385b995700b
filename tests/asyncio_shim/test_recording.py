"""`record=` on asyncio: complete traces of every transport, as on trio."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mcp_asyncio_shim
from mcp_asyncio_shim import Host, connect, serve_streams
from mcp_asyncio_shim._runtime import open_recorder
from mcp_core.adapters import CannotRecord, Recorder, Recording
from mcp_core.registry import Server
from mcp_core.trace import DamagedLine, TraceHeader, TraceLine, read_trace
from tests.asyncio_shim.loop import run, run_with_processes
from tests.asyncio_shim.test_http_transport import on_trio
from tests.core.helpers import E

if TYPE_CHECKING:
    from mcp_asyncio_shim import Client

SERVER_FILE = """
import sys
from mcp_asyncio_shim import run
from mcp_core.registry import Server
server = Server("s")
@server.tool(description="echo")
def echo(text: str) -> str:
    return text
run(server, **eval(sys.argv[1]))
"""


def make_server() -> Server:
    server = Server("recorded")

    @server.tool
    def echo(text: str) -> str:
        """Return the text."""
        return text

    return server


def read_file(path: Path) -> tuple[TraceHeader, list[TraceLine]]:
    """Return a trace, which must have no damaged line."""
    header, lines = read_trace([path.read_bytes()])
    found = [line for _, line in lines if not isinstance(line, DamagedLine)]
    assert len(found) == path.read_bytes().count(b"\n") - 1
    return header, found


def methods(lines: list[TraceLine]) -> list[tuple[str | None, str]]:
    """Return the sender of each message, and its method or `result`."""
    return [
        (line.sender, json.loads(line.raw).get("method", "result"))
        for line in lines
        if line.raw is not None
    ]


async def talk(client: Client) -> None:
    await client.call_tool("echo", {"text": "hi"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.mcp.jsonl"


CALLED = [("client", "tools/call"), ("server", "result")]


def test_connection_in_memory_is_recorded(path: Path) -> None:
    async def main() -> None:
        async with connect(make_server(), record=path) as client:
            await talk(client)

    run(main())
    header, lines = read_file(path)
    assert (header.observer, header.transport, header.target) == ("client", "memory", "")
    assert methods(lines)[-2:] == CALLED
    assert lines[-1].end == "closed"


@pytest.mark.process
def test_child_is_recorded_on_both_sides(path: Path, tmp_path: Path) -> None:
    file, theirs = tmp_path / "server.py", tmp_path / "theirs"
    file.write_text(SERVER_FILE, "utf-8")
    argv = [sys.executable, str(file), repr({"record": str(theirs)})]

    async def main() -> None:
        async with connect(argv, record=path, inherit_env=True) as client:
            await talk(client)

    run_with_processes(main())
    (header, sent), (their_header, received) = read_file(path), read_file(theirs)
    assert (header.transport, header.observer) == ("stdio", "client")
    assert (their_header.transport, their_header.observer) == ("stdio", "server")
    assert [line.kind for line in sent if line.kind is not None] == ["spawn", "exit"]
    assert sent[-1].status == 0
    assert methods(sent) == methods(received)
    assert {line.sender for line in received if line.end} == {"client", "server"}


def test_server_on_streams_is_recorded(path: Path) -> None:
    async def main() -> None:
        serving = asyncio.Event()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await serve_streams(make_server(), reader, writer, record=path)
            serving.set()

        listener = await asyncio.start_server(accept, "127.0.0.1", 0)
        async with listener:
            port = listener.sockets[0].getsockname()[1]
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"no json\n")
            writer.write_eof()
            await serving.wait()
            writer.close()
            await writer.wait_closed()

    run(main())
    header, lines = read_file(path)
    assert (header.observer, header.transport) == ("server", "stream")
    assert (lines[0].sender, lines[0].raw) == ("client", "no json")
    assert lines[-1].end == "closed"


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25", "2024-11-05"])
def test_client_at_a_url_records_what_the_server_records(
    tmp_path: Path, scheme: str, version: str
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"

    async def main() -> None:
        with on_trio(make_server(), record=theirs) as url:
            target = url.replace("http", scheme)
            async with connect(target, record=ours, versions=[version]) as client:
                await talk(client)

    run(main())
    (header, sent), (_, received) = read_file(ours), read_file(theirs)
    assert header.transport == {"http": "http", "ws": "websocket"}[scheme]
    assert sorted(line.raw or "" for line in sent if line.raw) == sorted(
        line.raw or "" for line in received if line.raw
    )
    assert CALLED[0] in methods(sent)


def test_host_writes_a_trace_for_each_server(tmp_path: Path) -> None:
    async def main() -> None:
        servers = {"a": make_server(), "b": make_server()}
        async with Host(servers, record=tmp_path / "traces") as host:
            await host.client("a").call_tool("echo", {"text": "hi"})

    run(main())
    found = {path.name: read_file(path)[1] for path in (tmp_path / "traces").iterdir()}
    assert sorted(found) == [f"{name}.mcp.jsonl" for name in "ab"]
    assert CALLED[0] in methods(found["a.mcp.jsonl"])
    assert CALLED[0] not in methods(found["b.mcp.jsonl"])


def test_secrets_are_hidden_from_the_trace_only(path: Path) -> None:
    async def main() -> None:
        with on_trio(make_server()) as url:
            recording = Recording(path=path, redact=("/params/arguments/text",))
            headers = {"authorization": "Bearer s3cret"}
            async with connect(url, headers=headers, record=recording, versions=[E]) as client:
                result = await client.call_tool("echo", {"text": "my-argument"})
                assert "my-argument" in str(result)

    run(main())
    data = path.read_text("utf-8")
    assert "s3cret" not in data
    assert '"arguments\\":{\\"text\\":\\"my-argument' not in data


def test_file_that_cannot_be_opened_raises_before_anything_starts(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(CannotRecord, match=r"cannot record in .*: no such file"):
            async with connect(["does-not-exist"], record=tmp_path / "no" / "dir"):
                pass

    run(main())


def test_invalid_option_leaves_an_old_trace(path: Path) -> None:
    path.write_text("old", "utf-8")

    async def main() -> None:
        with pytest.raises(ValueError, match="not a revision"):
            async with connect(["x"], record=path, versions=["x"]):
                pass

    run(main())
    assert path.read_text("utf-8") == "old"


def test_trace_of_a_cancelled_task_is_complete(path: Path) -> None:
    async def main() -> None:
        called = asyncio.Event()

        async def converse() -> None:
            async with connect(make_server(), record=path) as client:
                await talk(client)
                called.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(converse())
        await called.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    run(main())
    _, lines = read_file(path)
    assert lines[-1].end == "closed"


def test_recorder_is_closed_although_its_task_is_cancelled_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_close = threading.Event()
    closing = threading.Event()
    close = Recorder.close

    def slow_close(self: Recorder) -> None:
        closing.set()
        may_close.wait(20)
        close(self)

    monkeypatch.setattr(Recorder, "close", slow_close)

    async def main() -> None:
        async def record() -> None:
            async with open_recorder(path, "client", "stream") as recorder:
                assert recorder is not None
                recorder.note("a note")

        task = asyncio.create_task(record())
        await asyncio.to_thread(closing.wait, 20)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        may_close.set()
        await asyncio.wait({task})
        assert task.cancelled()

    run(main())
    assert [line.text for line in read_file(path)[1]] == ["a note"]


@pytest.mark.process
def test_recorder_is_loaded_on_first_use() -> None:
    program = "import sys, mcp_asyncio_shim; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert not {"mcp_core.adapters", "mcp_core.trace"} & set(loaded)
    assert mcp_asyncio_shim.Recording is Recording
