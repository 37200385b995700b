"""`record=` of both drivers: complete traces, and no effect on the conversation."""

from __future__ import annotations

import logging
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from mcp_core import ConnectFailed, __version__
from mcp_core.adapters import Recorder, Recording, _recorder
from mcp_core.types import TextContent
from tests.harness import either
from tests.harness.traces import content, make_server, methods, read_file, talk
from tests.harness.wire.http1_server import PlayedHttpServer, Request, connect_to, playing
from tests.harness.world.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("each_driver")


def old_file(path: Path) -> None:
    """Make a file that others can read."""
    path.write_text("old", "utf-8")
    path.chmod(0o644)


def size_and_mode(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, stat.S_IMODE(status.st_mode)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.mcp.jsonl"


# -- Conversations ---------------------------------------------------------------------------------


async def test_connection_in_memory_is_recorded(path: Path) -> None:
    """Without a transport's bytes there are still all messages, in order, and the end."""
    async with either.connect(make_server(), record=path, versions=["2025-11-25"]) as client:
        await talk(client)
    header, lines = read_file(path)
    assert (header.observer, header.transport, header.target) == ("client", "memory", "")
    assert header.by == f"mcp-trio {__version__}"
    assert methods(lines) == [
        ("client", "initialize"),
        ("server", "result"),
        ("client", "notifications/initialized"),
        ("client", "tools/call"),
        ("server", "result"),
        ("client", "tools/call"),
        *[("server", "notifications/progress")] * 3,
        ("server", "result"),
    ]
    assert lines[-1].end == "closed"


async def test_server_on_a_stream_is_recorded(path: Path) -> None:
    ours, theirs = either.memory_pair()
    async with either.open_nursery() as nursery:

        async def serve() -> None:
            await either.serve_stream(make_server(), theirs, record=path)

        nursery.start_soon(serve)
        async with either.connect_stream(ours) as client:
            await talk(client)
    header, lines = read_file(path)
    assert (header.observer, header.transport) == ("server", "stream")
    assert ("client", "tools/call") in methods(lines)
    assert {line.sender for line in lines if line.end} == {"client", "server"}


@pytest.mark.parametrize(
    ("begins", "end"),
    [(False, ("server", "reset")), (True, ("client", "closed"))],
    ids=["no response", "half a response"],
)
async def test_http_request_that_fails_is_recorded(
    begins: bool, end: tuple[str, str], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server hangs up: the trace shows why connecting failed."""

    async def hang_up(request: Request) -> None:
        if begins:
            await request.connection.stream.send_all(
                b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"
            )

    server = PlayedHttpServer()
    server.play = hang_up  # type: ignore[method-assign]
    async with playing(server, monkeypatch):
        with pytest.raises(ConnectFailed):
            async with connect_to(server, record=path):
                pass
    _, lines = read_file(path)
    assert lines[0].http is not None
    assert (lines[-1].sender, lines[-1].end) == end
    assert [line.raw for line in lines[1:-1]] == ["{"] * begins


async def test_trace_that_is_cancelled_is_complete(path: Path) -> None:
    with either.CancelScope() as scope:
        async with either.connect(make_server(), record=path) as client:
            await talk(client)
            scope.cancel()
            await either.sleep_forever()
    _, lines = read_file(path)
    assert lines[-1].end == "closed"


# -- The file --------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
async def test_file_is_for_its_owner_only(path: Path) -> None:
    old_file(path)
    async with either.connect(make_server(), record=str(path)):
        pass
    assert size_and_mode(path)[1] == 0o600
    assert not content(path).startswith("old")


async def test_file_that_cannot_be_opened_raises_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"cannot record in .*: no such file"):
        async with either.connect(["does-not-exist"], record=tmp_path / "no" / "dir"):
            pass


async def test_invalid_option_leaves_an_old_trace(path: Path) -> None:
    old_file(path)
    with pytest.raises(ValueError, match="not a revision"):
        async with either.connect(["x"], record=path, versions=["x"]):
            pass
    assert content(path) == "old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_disk_that_is_full_does_not_end_the_conversation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with either.connect(make_server(), record="/dev/full") as client:
        await either.until(lambda: caplog.records)
        await talk(client)
        await talk(client)
    errors = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert [each.getMessage() for each in errors] == [
        "the trace /dev/full is not written any more: No space left on device"
    ]


async def test_slow_disk_loses_lines_and_never_waits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread is held up for as long as the test likes; the queue stays small."""
    gate = threading.Event()
    write = os.write
    waited: set[bool] = set()

    def slow_write(fd: int, data: Any) -> int:
        waited.add(gate.wait(PATIENCE))
        return write(fd, data)

    monkeypatch.setattr(_recorder, "_MAX_QUEUED", 20_000)
    monkeypatch.setattr("os.write", slow_write)
    async with either.open_recorder(path, "client", "stream") as recorder:
        assert recorder is not None
        record = recorder.stream()
        for number in range(1_000):
            record.sent(b'{"sent":%d}\n' % number)
        record.received(b'{"half":')  # lost, too: the rest of it must be no message
        gate.set()
        await either.until(lambda: not recorder._queue)  # a thread empties it
        assert waited == {True}  # until the gate was opened, not until it gave up
        record.received(b'1}\n{"whole":1}\n')
    _, lines = read_file(path)
    sent = [line for line in lines if line.sender == "client"]
    [lost] = [line for line in lines if line.kind == "lost"]
    assert lost.count == 1_001 - len(sent)
    assert len(sent) < 200
    assert lines[-1].raw == '{"whole":1}'


async def test_lines_lost_at_the_end_are_counted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_recorder, "_MAX_QUEUED", 300)
    async with either.open_recorder(path, "client", "stream") as recorder:
        assert recorder is not None
        record = recorder.stream()
        for _ in range(10):
            record.sent(b"a\nb\n")
    _, lines = read_file(path)
    assert lines[-1].kind == "lost"
    assert sum(line.count or 1 for line in lines) == 20


async def test_file_at_its_limit_is_complete(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recording = Recording(path=path, file_limit=5_000)
    async with either.connect(make_server(), record=recording) as client:
        for _ in range(20):
            await client.call_tool("echo", {"text": "x" * 300})
    _, lines = read_file(path)
    assert size_and_mode(path)[0] <= 5_000
    assert lines[-1].kind == "lost"
    assert lines[-1].count is not None
    assert lines[-1].count > 20
    assert "has reached 5000 bytes" in caplog.text


async def test_long_message_is_truncated_in_the_trace_only(path: Path) -> None:
    recording = Recording(path=path, message_limit=2_000)
    async with either.connect(make_server(), record=recording) as client:
        result = await client.call_tool("echo", {"text": "x" * 9_000})
    [block] = result.content
    assert isinstance(block, TextContent)
    assert block.text == "x" * 9_000
    _, lines = read_file(path)
    truncated = [line.truncated.size for line in lines if line.truncated is not None]
    assert len(truncated) == 2
    assert min(truncated) > 9_000


async def test_internal_error_of_the_thread_is_logged_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(t: float, what: object) -> Any:
        raise ZeroDivisionError

    async with either.open_recorder(path, "client", "stream") as recorder:
        assert recorder is not None
        recorder.put(fail, None, 0)
        await either.until(lambda: caplog.text)
        recorder.note("later")
    assert "is not written any more: internal error" in caplog.text


async def test_notes_are_written(path: Path) -> None:
    async with either.open_recorder(path, "client", "stream", ["https://a.b/c?d=e"]) as recorder:
        assert isinstance(recorder, Recorder)
        recorder.note("a note")
        assert "Recorder of" in repr(recorder)
    header, lines = read_file(path)
    assert header.target.startswith("https://a.b/c?d=")
    assert [(line.kind, line.text) for line in lines] == [("note", "a note")]


async def test_recorder_is_closed_although_its_task_is_cancelled_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch, nursery: either.Nursery
) -> None:
    """The last lines are written by a thread, which a cancellation must not leave behind."""
    may_close, closing = threading.Event(), threading.Event()
    scope, ended = either.CancelScope(), either.Event()
    close = Recorder.close

    def slow_close(self: Recorder) -> None:
        closing.set()
        may_close.wait(PATIENCE)
        close(self)

    async def record() -> None:
        with scope:
            async with either.open_recorder(path, "client", "stream") as recorder:
                assert recorder is not None
                recorder.note("a note")
        ended.set()

    monkeypatch.setattr(Recorder, "close", slow_close)
    nursery.start_soon(record)
    await either.in_thread(closing.wait, PATIENCE)
    scope.cancel()
    await either.wait_all_tasks_blocked()
    assert not ended.is_set()
    may_close.set()
    await ended.wait()
    assert [line.text for line in read_file(path)[1]] == ["a note"]
