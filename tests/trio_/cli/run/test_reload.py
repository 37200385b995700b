"""`mcp-trio run --reload`: which files are watched, and the server's restart for its clients."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
import trio

from mcp_core import ConnectionLost, PeerError
from mcp_core.adapters import ServedSource
from mcp_trio import connect, connect_stdio
from mcp_trio.cli.run._reload import Watch
from mcp_trio.cli.run._reload_child import Report
from tests.harness.world.command import COMMAND, run
from tests.harness.world.stuck_files import fill

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trio.testing import MockClock

    from mcp_core import Change
    from mcp_trio import Client

SERVER = """
    import mcp_trio
    import helper

    server = mcp_trio.Server("live")

    @server.tool
    def word() -> str:
        "Say a word."
        return helper.WORD
""".replace("\n    ", "\n")


class Project:
    """A server file and a module that it imports."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "live.py"
        self.helper = directory / "helper.py"
        self.report = directory / "report.json"
        self.file.write_text(SERVER)
        self.source = ServedSource.from_file(str(self.file))
        self.say("one")
        for path in self.file, self.helper:  # changed long before
            os.utime(path, (1, 1))

    def say(self, word: str) -> None:
        self.helper.write_text(f"WORD = {word!r}")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_watch_reports_file_and_imported_modules_only(project: Project) -> None:
    """The server's process reports its imports; files known from an earlier process still count."""
    watch = Watch(project.source, project.report)
    watch.begin()
    project.say("two")
    assert watch.find_change() is None  # not known to be imported
    seen = project.helper.stat().st_mtime_ns
    project.report.write_text(json.dumps({str(project.helper): seen - 1}))
    assert watch.find_change() == project.helper
    watch.begin()
    assert not project.report.exists()
    assert watch.find_change() is None
    project.helper.unlink()
    assert watch.find_change() == project.helper  # is known from the process before
    watch.begin()
    os.utime(project.file, (2, 2))
    assert watch.find_change() == project.file


def test_watch_module_that_changed_after_the_start_counts_as_changed(project: Project) -> None:
    """The process may have imported it before the change and looked at its time after that."""
    watch = Watch(project.source, project.report)
    watch.begin()
    project.say("two")
    seen = project.helper.stat().st_mtime_ns
    project.report.write_text(json.dumps({str(project.helper): seen}))
    assert watch.find_change() == project.helper


def test_watch_after_a_failure_reports_neighbours(project: Project) -> None:
    watch = Watch(project.source, project.report)
    watch.begin()
    watch.include_neighbours()
    assert watch.find_change() is None
    project.say("two")
    assert watch.find_change() == project.helper
    watch.begin()
    watch.include_neighbours()
    (project.file.parent / "missing.py").write_text("")
    assert watch.find_change() == project.file.parent / "missing.py"


async def test_watch_waits_for_a_change(project: Project, autojump_clock: MockClock) -> None:
    watch = Watch(project.source, project.report)
    watch.begin()
    with trio.move_on_after(5) as waiting:
        await watch.changed()
    assert waiting.cancelled_caught
    os.utime(project.file, (2, 2))
    assert await watch.changed() == project.file


def test_report_has_modules_of_the_directory_only(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Report(project.report, project.file.parent)
    report.update()
    assert json.loads(project.report.read_bytes()) == {}
    module = ModuleType("helper_of_test")
    module.__file__ = str(project.helper)
    monkeypatch.setitem(sys.modules, "helper_of_test", module)
    report.update()
    assert json.loads(project.report.read_bytes()) == {str(project.helper): 1_000_000_000}


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
async def test_reload_over_stdio_keeps_the_client_connected(project: Project, version: str) -> None:
    """Even a syntax error fails only the calls until the next change of the file."""
    lines: list[str] = []
    words = [*COMMAND, "run", "--reload", str(project.file)]
    async with (
        connect_stdio(words, versions=[version], stderr=lines.append, inherit_env=True) as client,
        client.listen(tools=True) as changes,
    ):
        assert (await client.call_tool("word")).text == "one"
        project.say("three")
        assert [change.list async for change in _first(changes)] == ["tools"]
        assert (await client.call_tool("word")).text == "three"
        project.helper.write_text("WORD = ")
        with pytest.raises(PeerError, match=r"has ended \(exit status 1\), see its stderr; the"):
            await _call_until(client, "never")
        project.say("five!")
        assert [change.list async for change in _first(changes)] == ["tools"]
        assert (await client.call_tool("word")).text == "five!"
    assert not (project.file.parent / "__pycache__").exists()  # could be out of date
    assert lines.count("mcp-trio: helper.py has changed, starting again") == 3
    assert any(line.startswith("SyntaxError") for line in lines)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe that a shell opens by its name")
async def test_reload_goes_on_while_nothing_reads_its_stderr(
    project: Project, tmp_path: Path
) -> None:
    """Such as a host that doesn't read the log of a server, or a stopped terminal."""
    pipe = tmp_path / "stderr"
    os.mkfifo(pipe)
    fd = os.open(pipe, os.O_RDWR)
    try:
        fill(fd, fd)
        script = f'exec "$@" 2>{shlex.quote(str(pipe))}'
        words = ["sh", "-c", script, "sh", *COMMAND, "run", "--reload", str(project.file)]
        async with (
            connect_stdio(words, inherit_env=True) as client,
            client.listen(tools=True) as changes,
        ):
            project.say("three")
            assert [change.list async for change in _first(changes)] == ["tools"]
            assert (await client.call_tool("word")).text == "three"
    finally:
        os.close(fd)


async def test_reload_of_a_module_watches_its_package(tmp_path: Path) -> None:
    """Also a module that was never imported, in another folder of the package than the server's."""
    package = tmp_path / "app"
    (package / "sub").mkdir(parents=True)
    for name, text in {
        "__init__.py": "",
        "words.py": "WORD = 'one'",
        "sub/__init__.py": "",
        "sub/live.py": SERVER.replace("import helper", "from .. import words as helper"),
    }.items():
        (package / name).write_text(text)
        os.utime(package / name, (1, 1))
    words = [*COMMAND, "run", "--reload", "-m", "app.sub.live"]
    lines: list[str] = []
    async with connect_stdio(words, stderr=lines.append, inherit_env=True, cwd=tmp_path) as client:
        assert (await client.call_tool("word")).text == "one"
        (package / "late.py").write_text("WORD = ")
        (package / "words.py").write_text("from .late import WORD")
        with pytest.raises(PeerError, match=r"has ended \(exit status 1\), see its stderr; the"):
            await _call_until(client, "never")
        (package / "late.py").write_text("WORD = 'mended'")
        while True:
            with suppress(PeerError):
                if (await client.call_tool("word")).text == "mended":
                    break
            await trio.sleep(0.05)
    assert "mcp-trio: late.py has changed, starting again" in lines


async def _call_until(client: Client, word: str) -> None:
    while True:
        try:
            if (await client.call_tool("word")).text == word:
                return
        except PeerError as exc:  # of a call that was in flight, or came while the old server ended
            if "the server was reloaded" not in str(exc) and "is being shut down" not in str(exc):
                raise
        except ConnectionLost as exc:  # sent as the old server closed an idle connection
            if "closed the connection without an answer" not in str(exc):
                raise
        await trio.sleep(0.02)


async def _first(changes: AsyncIterator[Change]) -> AsyncIterator[Change]:
    async for change in changes:
        yield change
        return


def test_reload_of_file_that_fails_answers_and_ends_with_its_client(project: Project) -> None:
    """The file fails at the first start, and the client gets an error instead of silence."""
    project.file.write_text("raise RuntimeError('no disk')")
    process = subprocess.Popen(
        [*COMMAND, "run", "--reload", str(project.file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert "exit status 1" in answer["error"]["message"]
        out, err = process.communicate()
    assert (process.returncode, out) == (0, "")
    assert err.count("RuntimeError: no disk") == 2  # the traceback and the error of the command
    assert err.endswith("mcp-trio: the server has ended (exit status 1); waiting for a change\n")


async def test_reload_over_http_refuses_no_connection(project: Project) -> None:
    """The socket stays open between two processes, so a request during the restart waits for it."""
    process = await trio.lowlevel.open_process(
        [*COMMAND, "run", "--reload", str(project.file), "--http", "0", "--json-response"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        shown = b""
        while b"\n" not in shown:
            shown += await process.stderr.receive_some()
        url = shown.split()[3].decode()
        async with connect(url) as client:
            assert (await client.call_tool("word")).text == "one"
            project.say("three")
            await _call_until(client, "three")
    finally:
        process.send_signal(signal.SIGTERM)
        while chunk := await process.stderr.receive_some():
            shown += chunk
        await process.wait()
        await process.stderr.aclose()
    assert process.returncode == 143
    assert shown.count(f"Serving live at {url}".encode()) == 2
    assert b"mcp-trio: helper.py has changed, starting again\n" in shown
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(url.split(":")[2].split("/")[0]))).close()


def test_reload_that_cannot_begin_is_explained(project: Project) -> None:
    assert "there is no file no.py" in run("run", "no.py", "--reload").stderr
    assert "needs --http" in run("run", str(project.file), "--reload", "--stateless").stderr
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = str(used.getsockname()[1])
        result = run("run", str(project.file), "--reload", "--http", port)
    assert result.returncode == 3
    assert result.stderr.startswith(f"mcp-trio: cannot listen on 127.0.0.1:{port}: Address alr")
