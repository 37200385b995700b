"""`mcp-trio proxy`: command lines, exit statuses, both transports, and clients that go away."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_core.trace import DamagedLine, TraceHeader, TraceLine, read_trace
from mcp_trio.cli import main
from tests.harness.world.command import COMMAND, GREETER, run
from tests.harness.world.pipes import alive
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON = (sys.executable, "-I", "-S", "-c")
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


def read_file(path: Path) -> tuple[TraceHeader, list[TraceLine]]:
    header, lines = read_trace([path.read_bytes()])
    found = [line for _, line in lines]
    assert not any(isinstance(line, DamagedLine) for line in found)
    return header, [line for line in found if isinstance(line, TraceLine)]


@contextmanager
def proxy(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command. At the end it is killed if it still runs."""
    pipe = subprocess.PIPE
    command = [*COMMAND, "proxy", *words]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


# -- Command lines ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        ((), 2, "no server: give after `--` the command that starts it"),
        (("--",), 2, "no server"),
        (("http://127.0.0.1:1/mcp",), 2, "a proxy keeps the transport: add --http 9000"),
        (("--", "http://127.0.0.1:1/mcp"), 2, "a proxy keeps the transport: add --http 9000"),
        (("--http", "0", "--", "cat"), 2, "a command talks over stdio: leave --http out"),
        (("--http", "0", "server.py"), 2, "is not a URL; a command comes after `--`: mcp-trio"),
        (("--http", "0", "ws://a/b"), 2, "a proxy passes no WebSockets"),
        (("--http", "0", "http://u:p@a/"), 2, "must not contain a user name or password"),
        (("--http", "0", "http://a/", "--", "cat"), 2, "give a URL or a command, and not both"),
        (("--http", "x", "http://a/"), 2, "x is not an address"),
        (("--", "ftp://a/b"), 2, "is not a command"),
        (("--record-secrets", "--", "cat"), 2, "--record-secrets needs a file"),
        (("--record", "/no/such/place/a", "--", "cat"), 2, "cannot record in /no/such/place/a"),
        (("--", "no-such-program"), 3, "no program of that name on PATH"),
        (("--http", "192.0.2.1:0", "http://127.0.0.1:1/"), 3, "this machine has no such address"),
    ],
)
def test_proxy_misuse_names_the_cure(words: tuple[str, ...], status: int, text: str) -> None:
    result = run("proxy", *words)
    assert (result.returncode, result.stdout) == (status, "")
    assert text in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_proxy_help_shows_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["proxy", "--help"])
    out = capsys.readouterr().out
    assert "mcp-trio proxy [options] -- COMMAND ARG..." in out
    assert "mcp-trio proxy [options] --http [HOST:]PORT URL" in out


# -- stdio -----------------------------------------------------------------------------------------


def test_proxy_before_a_server_is_not_noticed_and_records(tmp_path: Path) -> None:
    path = tmp_path / "a.mcp.jsonl"
    words = shlex.split(shlex.join([*COMMAND, "proxy", "--check", "--record", str(path)]))
    result = run("call", "greet", "name=Ada", "--inherit-env", "--", *words, *GREETER)
    assert result.returncode == 0, result.stderr
    assert "Ada" in result.stdout
    header, lines = read_file(path)
    assert (header.observer, header.transport) == ("between", "stdio")
    assert header.target.endswith("greeter.py")
    assert [line.kind for line in lines if line.kind] == ["spawn", "exit"]
    sides = [line.sender for line in lines if line.raw]
    assert sides[:2] == ["client", "server"]
    assert oct(path.stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize(
    ("source", "status"),
    [("import sys; sys.exit(7)", 7), ("pass", 0), ("import os; os.kill(os.getpid(), 9)", 137)],
)
def test_proxy_exit_status_is_that_of_the_server(source: str, status: int) -> None:
    with proxy("--", *PYTHON, source) as process:
        out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (status, b"")


def test_proxy_passes_stderr_and_junk(tmp_path: Path) -> None:
    path = tmp_path / "a.mcp.jsonl"
    source = "import os; os.write(2, b'to the log\\n'); os.write(1, b'\\xff\\0junk'); os.read(0, 9)"
    with proxy("--record", str(path), "--", *PYTHON, source) as process:
        out, err = process.communicate(PING, timeout=PATIENCE)
    assert out == b"\xff\0junk"
    assert err == b"to the log\n"
    _, lines = read_file(path)
    assert [line.text for line in lines if line.kind == "stderr"] == ["to the log"]
    assert [line.data for line in lines if line.sender == "server"] == [b"\xff\0junk"]


# Answers a request twice.
TWICE = """
import sys
for line in sys.stdin:
    for _ in range(2):
        print('{"jsonrpc":"2.0","id":1,"result":{}}', flush=True)
"""


@pytest.mark.parametrize("records", [True, False])
def test_proxy_check_prints_findings_at_once_and_ends_with_status_1(
    records: bool, tmp_path: Path
) -> None:
    """The server answers a ping twice, and the finding appears while the client still talks."""
    options = ["--record", str(tmp_path / "a.mcp.jsonl")] if records else []
    with proxy("--check", *options, "--", *PYTHON, TWICE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(PING)
        process.stdin.flush()
        # The conversation still goes on.
        found = process.stderr.readline().decode() + process.stderr.readline().decode()
        while "RPC-7" not in found:
            line = process.stderr.readline().decode()
            assert line, found
            found += line
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert out.count(b"\n") == 2
    assert "1 failed" in err.decode()
    assert len(list(tmp_path.iterdir())) == records


def test_proxy_check_of_a_clean_conversation_has_the_status_of_the_server() -> None:
    source = "import sys; sys.stdin.read(); sys.exit(5)"
    with proxy("--check", "--", *PYTHON, source) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 5
    assert err.decode().startswith("mcp-trio: 0 messages: 0 failed, 0 inconclusive.")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_proxy_signal_ends_the_server_and_the_trace_is_complete(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    """The proxy passes each signal on to the server, and records its exit and its output."""
    path = tmp_path / "a.mcp.jsonl"
    source = (
        "import os, signal, time; signal.signal(2, signal.SIG_DFL);"
        "os.write(1, b'%d\\n' % os.getpid()); time.sleep(60)"
    )
    with proxy("--record", str(path), "--", *PYTHON, source) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == status
    assert not alive(pid)
    _, lines = read_file(path)
    assert [line.status for line in lines if line.kind == "exit"] == [-number]
    assert [line.raw for line in lines if line.raw] == [str(pid)]


def test_proxy_client_that_is_killed_ends_the_server(tmp_path: Path) -> None:
    """A client killed by SIGKILL can't clean up, so the proxy must notice the end of stdin."""
    pid_file = tmp_path / "pid"
    server = (
        "import os, time;"
        f"open({str(pid_file)!r}, 'w').write(str(os.getpid()));"
        "os.write(1, b'up\\n'); time.sleep(60)"
    )
    client = (
        "import subprocess, sys, os; p = subprocess.Popen(sys.argv[1:], stdin=-1, stdout=-1);"
        "p.stdout.readline(); print(p.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    words = [sys.executable, "-c", client, *COMMAND, "proxy", "--", *PYTHON, server]
    done = subprocess.run(words, stdout=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert done.returncode == -9
    wait_until_gone(int(done.stdout))
    assert not alive(int(pid_file.read_text()))


def wait_until_gone(pid: int) -> None:
    """Wait for the end of an orphan, which its new parent reaps."""
    done = subprocess.run(
        ["tail", f"--pid={pid}", "-f", "/dev/null"], timeout=PATIENCE, check=False
    )
    assert done.returncode == 0


# -- HTTP ------------------------------------------------------------------------------------------


def url_printed_by(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    line = process.stderr.readline().decode()
    assert line.startswith("Passing http://127.0.0.1:"), line
    return line.split()[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_proxy_of_a_url_records_and_ends_at_a_signal(
    greeter: tuple[str, ...], number: signal.Signals, tmp_path: Path
) -> None:
    """The trace of a whole call over HTTP is without findings, and `show` can read it."""
    path = tmp_path / "a.mcp.jsonl"
    words = ["--check", "--record", str(path), "--http", "0", *greeter]
    with proxy(*words) as process:
        url = url_printed_by(process)
        result = run("call", "greet", "name=Ada", url)
        assert result.returncode == 0, result.stderr
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (128 + number, b"")
    assert "POST /mcp" in err.decode()
    assert "0 failed" in err.decode().splitlines()[-1]
    header, lines = read_file(path)
    assert (header.observer, header.transport, header.target) == ("between", "http", greeter[0])
    methods = [json.loads(line.raw).get("method") for line in lines if line.raw]
    assert "tools/call" in methods
    assert run("check", str(path)).returncode == 0
    assert run("show", str(path)).returncode == 0


def test_proxy_of_a_url_without_a_server_shows_the_cause() -> None:
    with proxy("--http", "0", "http://127.0.0.1:1/mcp") as process:
        result = run("inspect", url_printed_by(process))
        assert result.returncode == 3
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
    assert "502: cannot connect to 127.0.0.1:1: connection refused" in err.decode()
