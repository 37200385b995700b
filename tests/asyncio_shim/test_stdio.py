"""Real pipes and processes: stdin and stdout of a server, and the children of a client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim import _driver, _stdio, connect
from mcp_core import ConnectFailed, ConnectionLost
from mcp_core.types import TextContent
from tests.conformance import everything_server
from tests.harness.jsonrpc import (
    INITIALIZED,
    VERSIONS,
    D,
    Message,
    initialize,
    line,
    ping,
    request,
)
from tests.harness.world.children import ends_by
from tests.harness.world.loop import run_with_processes as run
from tests.harness.world.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]

SERVER = '''
import asyncio, os, subprocess, sys, time
import mcp_asyncio_shim
from mcp_core.registry import Server

server = Server("s")

@server.tool
async def wait() -> str:
    """Never come back by itself."""
    print("waiting", file=sys.stderr, flush=True)
    try:
        await asyncio.sleep(1000)
    finally:
        print("cleaned up", file=sys.stderr, flush=True)

@server.tool
async def brief() -> str:
    """Come back soon."""
    print("waiting", file=sys.stderr, flush=True)
    await asyncio.sleep(0.5)
    return "done"

@server.tool
def hang() -> str:
    """Never come back at all."""
    print("waiting", file=sys.stderr, flush=True)
    while True:
        time.sleep(1000)

@server.tool
def noise() -> str:
    """Print in all ways there are."""
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "echoed"], check=True)
    assert sys.stdin.read() == ""
    return "done"

'''
RUN = SERVER + "mcp_asyncio_shim.run(server)\n"
RUN_BRIEFLY = SERVER + "mcp_asyncio_shim.run(server, grace=0.1)\n"


class Started:
    """Our server as a child process, and the test as its client."""

    process: subprocess.Popen[bytes]

    def __init__(self, program: str = RUN, **options: Any) -> None:
        words = [sys.executable, "-W", "error", "-c", program]
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        environment = {
            name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"
        }
        self.process = subprocess.Popen(words, env=environment, **(pipes | options))

    def send(self, *messages: Message) -> None:
        assert self.process.stdin
        self.process.stdin.write(b"".join(map(line, messages)))
        self.process.stdin.flush()

    def receive(self) -> Message:
        assert self.process.stdout
        message: Message = json.loads(self.process.stdout.readline())
        return message

    def open(self) -> Started:
        self.send(initialize(D))
        self.receive()
        self.send(INITIALIZED)
        return self

    def call(self, name: str) -> None:
        self.send(request(name, "tools/call", {"name": name}))

    def stderr_line(self) -> bytes:
        assert self.process.stderr
        return self.process.stderr.readline()

    def end(self) -> tuple[str, str]:
        """Return the rest of its stdout and stderr, once it has ended."""
        stdout, stderr = self.process.communicate(timeout=PATIENCE)
        return (stdout or b"").decode(), (stderr or b"").decode()


# -- Our own stdin and stdout ----------------------------------------------------------------------


def test_print_goes_to_stderr() -> None:
    server = Started(
        SERVER + "print('early')\nmcp_asyncio_shim.run(server)\nprint('late')\n"
    ).open()
    server.call("noise")
    assert server.receive()["result"]["content"][0]["text"] == "done"
    stdout, stderr = server.end()
    assert stdout == "late\n"
    assert sorted(stderr.split()) == ["early", "echoed", "printed", "written"]


def test_print_that_stderr_does_not_take_is_lost() -> None:
    """It stays in a buffer, which must not reach the client at the exit."""
    tool = '''
@server.tool
def report() -> str:
    """Print a word, and flush nothing."""
    print("printed")
    return "done"

mcp_asyncio_shim.run(server)
'''
    reader, stderr = os.pipe()
    os.close(reader)
    server = Started(SERVER + tool, stderr=stderr).open()
    os.close(stderr)
    server.call("report")
    assert server.receive()["result"]["content"][0]["text"] == "done"
    assert server.end()[0] == ""


def test_client_closing_stdout_ends_server() -> None:
    server = Started().open()
    server.call("wait")
    assert server.stderr_line() == b"waiting\n"
    assert server.process.stdout
    server.process.stdout.close()
    server.send(ping())
    assert server.process.stderr
    assert server.process.stderr.read() == b"cleaned up\n"
    assert server.process.wait(PATIENCE) == 0
    assert server.process.stdin
    server.process.stdin.close()
    server.process.stderr.close()


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ({"stdin": "/dev/null"}, "fd 0 is no pipe, socket or terminal"),
        ({"stdin": __file__}, "fd 0 is no pipe, socket or terminal"),
        ({"stdout": "/dev/null"}, "fd 1 is no pipe, socket or terminal"),
    ],
)
def test_regular_file_as_stdio_is_refused(ends: dict[str, str], text: str) -> None:
    with ExitStack() as files:
        opened: dict[str, Any] = {
            name: files.enter_context(Path(path).open("r+b")) for name, path in ends.items()
        }
        server = Started(**opened)
        assert text in server.end()[1]
    assert server.process.returncode == 1


def test_closed_stdin_is_refused() -> None:
    words = ["sh", "-c", 'exec "$0" -c "$1" <&-', sys.executable, RUN]
    ended = subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False)
    assert b"fd 0 is no pipe" in ended.stderr


def test_one_socket_for_stdio_is_refused() -> None:
    (ours, its), (theirs, its_stdout) = socket.socketpair(), socket.socketpair()
    with ours, its, theirs, its_stdout:
        assert "one socket" in Started(stdin=its, stdout=its).end()[1]
        server = Started(stdin=its, stdout=its_stdout)
        ours.sendall(line(ping()))
        assert json.loads(theirs.recv(1000))["id"] == "ping"
        ours.shutdown(socket.SHUT_WR)
        assert server.end() == ("", "")
        assert server.process.returncode == 0
        assert its.getblocking()
        assert os.get_blocking(its.fileno())


def test_stdout_that_cannot_be_written_ends_server_with_status_and_reason() -> None:
    master, slave = os.openpty()
    server = Started(stdout=slave)
    os.close(slave)
    server.send(ping())
    assert os.read(master, 1000)
    os.close(master)  # the terminal is gone: writing to it fails with EIO
    server.send(ping())
    assert server.end()[1] == "s: cannot write to standard output: Input/output error\n"
    assert server.process.returncode == 1


def test_flags_of_shared_pipe_are_restored() -> None:
    (its_stdin, ours), (theirs, its_stdout) = os.pipe(), os.pipe()
    server = Started(stdin=its_stdin, stdout=its_stdout)
    os.write(ours, line(ping()))
    assert os.read(theirs, 1000)
    assert os.get_blocking(its_stdin)
    assert os.get_blocking(its_stdout)
    os.close(ours)
    server.end()
    for fd in (its_stdin, its_stdout, theirs):
        os.close(fd)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_cancels_handlers_after_the_grace(number: signal.Signals) -> None:
    server = Started(RUN_BRIEFLY).open()
    server.call("wait")
    assert server.stderr_line() == b"waiting\n"
    server.process.send_signal(number)
    error = {"code": -32000, "message": "the server is being shut down"}
    assert server.receive() == {"jsonrpc": "2.0", "id": "wait", "error": error}
    assert server.end() == ("", "cleaned up\n")
    assert server.process.returncode == 128 + number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_lets_a_call_finish_and_refuses_others(number: signal.Signals) -> None:
    server = Started().open()
    server.call("brief")
    assert server.stderr_line() == b"waiting\n"
    server.process.send_signal(number)
    response = server.receive()
    assert (response["id"], response["result"]["content"][0]["text"]) == ("brief", "done")
    assert server.end() == ("", "")
    assert server.process.returncode == 128 + number


def test_ignored_signal_stays_ignored() -> None:
    """As with `nohup`, or of a shell in the background."""
    server = Started("import signal\nsignal.signal(2, signal.SIG_IGN)\n" + RUN).open()
    server.process.send_signal(signal.SIGINT)
    server.send(ping())
    assert server.receive()["id"] == "ping"
    server.process.send_signal(signal.SIGTERM)
    assert server.end() == ("", "")
    assert server.process.returncode == 128 + signal.SIGTERM


def test_second_signal_ends_hanging_server() -> None:
    server = Started().open()
    server.call("hang")
    assert server.stderr_line() == b"waiting\n"
    assert not ends_by(server.process, signal.SIGTERM)
    wait_until(lambda: ends_by(server.process, signal.SIGTERM))
    server.end()
    assert server.process.returncode == -signal.SIGTERM


def memory(pid: int) -> int:
    """Return the peak memory of a process, in KiB."""
    (peak,) = [
        row
        for row in Path(f"/proc/{pid}/status").read_text().splitlines()
        if row.startswith("VmHWM")
    ]
    return int(peak.split()[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is looked up in /proc")
def test_unread_responses_are_bounded() -> None:
    """The server's memory stays flat while 200,000 pings wait, and none loses its response."""
    server = Started().open()
    before = memory(server.process.pid)
    written = 0

    def write() -> None:
        nonlocal written
        for number in range(0, 200_000, 1000):
            server.send(*map(ping, range(number, number + 1000)))
            written += 1000

    writer = threading.Thread(target=write)
    writer.start()
    seen = -1
    while seen < written or not written:
        seen = written
        time.sleep(0.3)
    assert written < 100_000, "the writer was to be blocked"
    assert memory(server.process.pid) - before < 32 * 1024
    assert server.process.stdout
    for number in range(200_000):
        assert (
            server.process.stdout.readline() == b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % number
        )
    writer.join()
    assert memory(server.process.pid) - before < 32 * 1024
    assert server.end() == ("", "")


# -- Children --------------------------------------------------------------------------------------


def python(program: str) -> Sequence[str]:
    return [sys.executable, "-c", program]


def test_greeter_example_on_trio_answers_asyncio_client() -> None:
    async def main() -> None:
        async with connect([sys.executable, ROOT / "examples" / "greeter.py"]) as client:
            assert (await client.call_tool("greet", {"name": "World"})).content == [
                TextContent("Hello, World!")
            ]

    run(main())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.usefixtures("each_kind_of_pipe")
def test_trio_server_on_stdio_answers_asyncio_client(version: str) -> None:
    """A call that times out leaves the child usable: the ping afterwards is answered."""
    argv = [sys.executable, everything_server.__file__, "--stdio"]

    async def main() -> None:
        async with connect(argv, versions=[version]) as client:
            assert client.peer.dialect.version == version
            received: list[float] = []
            counted = await client.call_tool(
                "count", {"to": 3}, progress=lambda step, *_: received.append(step)
            )
            assert counted.content == [TextContent("3")]
            assert received == [1, 2, 3]
            with pytest.raises(TimeoutError):  # its progress restarts `timeout`
                await client.call_tool("count", {"to": 100_000}, max_timeout=0.05)
            await client.ping()

    run(main())


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["/nothing/there"], "cannot start /nothing/there: there is no such file; check the path"),
        (
            ["no-such"],
            "no-such: no program of that name on PATH; install it, or give its full path",
        ),
        (["/"], "cannot start /: it may not be executed; allow it"),
        # Our first message may meet a closed pipe before the end is read.
        (python("pass"), "ended|the connection broke"),
    ],
)
def test_child_that_cannot_start_raises(argv: Sequence[str], text: str) -> None:
    async def main() -> None:
        with pytest.raises(ConnectFailed, match=text):
            async with connect(argv):
                pass

    run(main())


@pytest.mark.parametrize(
    ("program", "cwd", "cause"),
    [
        ("orphan", None, "the interpreter named in its first line is not"),
        ("./orphan", "{dir}", "the interpreter named in its first line is not"),
        ("{dir}/orphan", None, "the interpreter named in its first line is not"),
        ("./orphan", None, "there is no such file"),
        ("nowhere", None, "no program of that name on PATH"),
        ("cat", "{dir}/nowhere", "its working directory .*nowhere cannot be entered"),
    ],
)
def test_child_start_failure_names_the_cause(
    program: str, cwd: str | None, cause: str, tmp_path: Path
) -> None:
    """The same ENOENT has several causes, as `tests/trio_/streams/test_child.py` says."""
    orphan = tmp_path / "orphan"
    orphan.write_text("#!/no/such/interpreter\n")
    orphan.chmod(0o755)
    place = None if cwd is None else cwd.format(dir=tmp_path)
    error = FileNotFoundError(2, "No such file", place or program)
    if place == str(tmp_path):
        error.filename = program
    found = _stdio._cannot_start(
        program.format(dir=tmp_path), error, place, {"PATH": str(tmp_path)}
    )
    assert re.search(cause, str(found))


PROUD = """
import json, sys

for raw in sys.stdin:
    message = json.loads(raw)
    if message["method"] == "server/discover":
        sys.exit("what is that?")
    opened = {"protocolVersion": "2025-06-18", "capabilities": {},
        "serverInfo": {"name": "proud", "version": "1"}}
    if "id" in message:
        result = opened if message["method"] == "initialize" else {}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_server_exiting_at_probe_is_restarted_without_probe(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def main() -> None:
        async with connect(python(PROUD)) as client:
            assert client.peer.dialect.version == "2025-06-18"
            assert client.needs_handshake
            await client.ping()

    run(main())
    assert capfd.readouterr().err == "what is that?\n"  # a child's stderr is ours


def test_server_exiting_before_probe_is_not_restarted(capfd: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        with pytest.raises(ConnectFailed):
            async with connect(python("import sys, time; time.sleep(0.1); sys.exit('no disk')")):
                raise AssertionError("it came about")

    run(main())
    assert capfd.readouterr().err == "no disk\n"


@pytest.mark.usefixtures("each_kind_of_pipe")
def test_child_exiting_ends_pending_calls() -> None:
    """The child kills itself with SIGKILL in one call, which fails the other two as well."""
    program = SERVER + (
        "@server.tool\ndef die() -> str:\n    'Die.'\n    os.kill(os.getpid(), "
        "9)\nmcp_asyncio_shim.run(server)\n"
    )

    async def main() -> None:
        async with connect(python(program)) as client:
            calls = [
                asyncio.create_task(client.call_tool(name)) for name in ("wait", "wait", "die")
            ]
            async with asyncio.timeout(PATIENCE):
                for ended in await asyncio.gather(*calls, return_exceptions=True):
                    assert isinstance(ended, ConnectionLost)
            with pytest.raises(ConnectionLost):
                await client.ping()

    run(main())


# A server that outlives the end of its input, or more; it says which processes there are.
STUBBORN = (
    SERVER
    + """
import signal
if "ignores-sigterm" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
options = {"stdin": subprocess.DEVNULL, "start_new_session": "session" in sys.argv}
if "holds" not in sys.argv:
    options["stdout"] = 2
if "cleared" in sys.argv:
    options["env"] = {}
if "orphan" in sys.argv:
    words = ["sh", "-c", "setsid sleep 1000 >&2 & echo $!"]
    child = int(subprocess.run(words, stdout=subprocess.PIPE).stdout)
else:
    child = subprocess.Popen(["sleep", "1000"], **options).pid

@server.tool
def pids() -> list[int]:
    "Say which processes there are."
    return [os.getpid(), child]

asyncio.run(mcp_asyncio_shim.serve_stdio(server))
if "chatty" in sys.argv:
    print("x" * 1_000_000)
if "leaves" not in sys.argv:
    time.sleep(1000)
"""
)


def shorten_graces(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let a child have hardly any time for the first `count` of its graces, and much for others."""
    short, move_on_after = [0.1] * count, _driver.move_on_after

    def wait(seconds: float | None) -> _driver.TimeLimit:
        is_grace = seconds == _stdio._GRACE
        return move_on_after((short.pop() if short else PATIENCE) if is_grace else seconds)

    monkeypatch.setattr(_stdio, "move_on_after", wait)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    ("words", "graces"),
    [
        (["term"], 1),
        (["ignores-sigterm"], 2),
        (["ignores-sigterm", "chatty", "holds"], 2),
        (["leaves", "chatty"], 0),
        (["leaves", "holds", "chatty"], 0),
        (["leaves", "session"], 0),
        (["leaves", "orphan"], 0),
        (["term", "orphan"], 1),
        (["term", "session", "cleared"], 1),
    ],
)
def test_child_is_ended_with_all_that_it_started(
    words: list[str],
    graces: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Grandchildren in sessions of their own are found too, and SIGKILL comes only if needed."""
    end = _stdio.StartedProcess.end
    ended: list[tuple[int, bool]] = []  # the signals, and whether the child had left by itself

    async def note(child: _stdio.StartedProcess, number: int) -> None:
        ended.append((number, child.status is not None))
        await end(child, number)

    async def main() -> list[int]:
        async with connect([*python(STUBBORN), *words]) as client:
            pids = (await client.call_tool("pids")).structured_content
            assert isinstance(pids, list)
            shorten_graces(monkeypatch, graces)  # the child outlives them, however fast it is
            monkeypatch.setattr(_stdio.StartedProcess, "end", note)
        monkeypatch.undo()
        numbers = [signal.SIGTERM] if graces < 2 else [signal.SIGTERM, signal.SIGKILL]
        assert ended == [(number, graces == 0) for number in numbers]
        return pids

    for pid in run(main()):
        assert not is_alive(pid)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.usefixtures("each_kind_of_pipe")
def test_child_group_gets_each_signal_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A server such as ours would exit at once at a second SIGTERM."""
    shorten_graces(monkeypatch, 1)  # the program outlives the end of its input
    member = dedent("""
        import signal, sys, time
        heard = []
        signal.signal(15, lambda *_: heard.append(1))
        print("up", file=sys.stderr, flush=True)
        while not heard: time.sleep(0.01)
        time.sleep(0.3)
        print(len(heard), file=sys.stderr)
    """)
    program = SERVER + (
        f"subprocess.Popen([sys.executable, '-c', {member!r}])\n"
        "asyncio.run(mcp_asyncio_shim.serve_stdio(server))\ntime.sleep(1000)\n"
    )
    stderr = ""

    async def main() -> None:
        nonlocal stderr
        async with connect(python(program)):
            while "up" not in stderr:
                await asyncio.sleep(0.01)
                stderr += capfd.readouterr().err

    run(main())
    assert (stderr + capfd.readouterr().err).split() == ["up", "1"]


@pytest.mark.parametrize("inherit_env", [False, True])
def test_child_environment_is_short_unless_inherited(
    inherit_env: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A secret in our environment reaches the child only with `inherit_env=True`."""
    monkeypatch.setenv("API_TOKEN", "secret")
    program = SERVER + (
        "@server.tool\ndef facts() -> list[str]:\n    'Facts.'\n"
        "    return [os.environ.get('API_TOKEN', ''), os.environ['OURS'], os.getcwd()]\n"
        "mcp_asyncio_shim.run(server)\n"
    )

    async def main() -> None:
        async with connect(
            python(program), env={"OURS": "a"}, inherit_env=inherit_env, cwd=tmp_path
        ) as client:
            facts = (await client.call_tool("facts")).structured_content
            assert facts == ["secret" if inherit_env else "", "a", str(tmp_path)]

    run(main())


@pytest.mark.usefixtures("each_kind_of_pipe")
def test_connect_cancelled_ends_silent_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stdio, "_GRACE", 0.1)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2), connect(["sleep", "1000"]):
                pass

    run(main())


CLIENT_AT_TERMINAL = r"""
import asyncio, sys
from mcp_asyncio_shim import connect

SERVER = r"import os, mcp_trio; os.write(2, b'\x1b[2J\xe2\x80'); os.write(2, b'\xae\x9b\nend\n');"
SERVER += "mcp_trio.run(mcp_trio.Server('loud'))"

async def main():
    async with connect([sys.executable, "-c", SERVER]):
        pass

asyncio.run(main())
"""


def test_child_stderr_on_terminal_is_escaped() -> None:
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", 0):
        with os.fdopen(theirs, "wb", 0) as terminal:
            words = [sys.executable, "-c", CLIENT_AT_TERMINAL]
            done = subprocess.run(words, stderr=terminal, timeout=PATIENCE, check=False)
        shown = os.read(ours, 10_000)
    assert done.returncode == 0, shown
    assert shown == b"\\u001b[2J\\u202e\xef\xbf\xbd\r\nend\r\n"


CLIENT_AT_STOPPED_TERMINAL = """
import asyncio, sys
from mcp_asyncio_shim import connect

SERVER = '''
import sys
import mcp_asyncio_shim
from mcp_core.registry import Server
sys.stderr.write("x" * 1_000_000)
sys.stderr.flush()
mcp_asyncio_shim.run(Server("loud"))
'''

async def main():
    async with connect([sys.executable, "-c", SERVER]) as client:
        print(client.peer.info.name, flush=True)

asyncio.run(main())
"""


def test_child_stderr_is_lost_if_the_terminal_is_stopped() -> None:
    """The user has stopped the output, which must not stop the program."""
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", 0), os.fdopen(theirs, "wb", 0) as terminal:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT_AT_STOPPED_TERMINAL],
            stdout=subprocess.PIPE,
            stderr=terminal,
            timeout=PATIENCE,
            check=False,
        )
    assert (done.stdout, done.returncode) == (b"loud\n", 0)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["{dir}/it.cmd", "100%"], "cannot start .*it.cmd: .* is a batch file"),
        (["cat"], "cannot start cat: no program of that name on PATH"),
    ],
)
def test_child_that_cannot_start_on_windows_raises(
    argv: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stdio, "_WINDOWS", True)
    monkeypatch.setattr(_stdio, "_HAS_POLLABLE_PIPES", False)
    (tmp_path / "it.cmd").touch()

    async def main() -> None:
        words = [word.format(dir=tmp_path) for word in argv]
        async with connect(words, env={"Path": "C:\\none"}):
            raise AssertionError

    with pytest.raises(ConnectFailed, match=text):
        run(main())
