"""The command run as a process, with arguments, output and exit status, and servers for it."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import textwrap
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Self

from tests.harness.world.children import OF_MANY_TESTS
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


ROOT = Path(__file__).parents[3]
GREETER = ("--", sys.executable, str(ROOT / "examples" / "greeter.py"))
TEAHOUSE = ("--", sys.executable, "-m", "mcp_trio.examples.teahouse")
COMMAND = (sys.executable, "-m", "mcp_trio")
DEAD = ("--", sys.executable, "-S", "-c", "import sys; sys.exit('the disk is full')")
SILENT = ("--", sys.executable, "-S", "-c", "import sys; sys.stdin.read()")

# A server of 2025-06-18 that answers each method as the JSON object in its argument says: with a
# result, an error, or not at all ("silent"). It knows no other methods.
ANSWERS = """
import json, sys
answers = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    answer = answers.get(message["method"], {"error": {"code": -32601, "message": "unknown"}})
    if "id" in message and answer != "silent":
        answer = answer if "error" in answer else {"result": answer}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def answering(capabilities: object, **answers: object) -> tuple[str, ...]:
    """Return the words for a server with `answers` by method, such as `tools_list`."""
    initialized = {
        "protocolVersion": "2025-06-18",
        "capabilities": capabilities,
        "serverInfo": {"name": "played", "version": "1"},
    }
    methods = {name.replace("_", "/"): answer for name, answer in answers.items()}
    document = json.dumps({"initialize": initialized, **methods})
    return ("--", sys.executable, "-S", "-c", ANSWERS, document)


# A server that runs tools as tasks.
LAB = """
    import trio
    from mcp_core import McpError, ToolError
    from mcp_core.registry import Image

    # A single owner: over HTTP, the end of a session of 2025-11-25 would cancel its tasks.
    tasks = mcp_trio.Tasks(owner=lambda request, default: "all")
    server = mcp_trio.Server("lab", tasks=tasks)
    FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

    @server.tool(task="optional")
    async def research(topic: str, context: mcp_trio.Context, seconds: float = 0) -> str:
        "Read about a topic."
        await context.progress(1, 2, "Reading archive 1 of 2")
        await trio.sleep(seconds)
        return f"All about {topic}"

    @server.tool(task="required")
    async def survey(context: mcp_trio.Context) -> str:
        "Report progress for a second."
        for step in range(10):
            await context.progress(step, 10, f"Step {step}")
            await trio.sleep(0.1)
        return "surveyed"

    @server.tool(task="required")
    async def publish(context: mcp_trio.Context) -> str:
        "Publish under a name."
        answer = await context.elicit("As whom?", FORM)
        return f"{answer.action} {getattr(answer, 'data', None)}"

    @server.tool(task="optional")
    async def fail(how: str) -> str:
        "Fail."
        if how == "tool":
            raise ToolError("The oven is cold.")
        raise McpError(-32050, "broken")

    @server.tool(task="optional")
    async def draw() -> Image:
        "Draw."
        return Image(b"12345")

    @server.tool
    def plain() -> str:
        "Return at once."
        return "plain"
"""


class Fork:
    """A run of the command as a fork, with the methods of `Popen` that tests use."""

    def __init__(self, words: Sequence[str], report: socket.socket) -> None:
        self._words, self._report = words, report
        self.returncode: int | None = None
        report.settimeout(PATIENCE)
        self.pid = int(report.recv(100))

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._report.settimeout(timeout)
            try:
                self.returncode = int(self._report.recv(100))
            except TimeoutError:
                raise subprocess.TimeoutExpired(self._words, timeout or 0) from None
            self._report.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it has ended, which `Popen` looks at first
                os.kill(self.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()


class Forks:
    """Runs of the command as forks of a process that has imported it (`fork_server.py`)."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            words = [
                sys.executable,
                str(Path(__file__).with_name("fork_server.py")),
                str(theirs.fileno()),
            ]
            # A Ctrl+C at the terminal is for the tests.
            self._process = subprocess.Popen(
                words, pass_fds=[theirs.fileno()], start_new_session=True
            )
            OF_MANY_TESTS.add(self._process.pid)

    def start(
        self, words: Sequence[str], cwd: Path, env: Mapping[str, str], files: Sequence[int]
    ) -> Fork:
        """Start the command. `files` are the descriptors for stdin, stdout and stderr."""
        report, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            request = json.dumps([words, str(cwd), dict(env)]).encode()
            socket.send_fds(self._control, [request], [*files, theirs.fileno()])
        try:
            return Fork(words, report)
        except BaseException:
            report.close()
            raise

    def close(self) -> None:
        self._control.close()
        self._process.wait()
        OF_MANY_TESTS.remove(self._process.pid)


forks: Forks | None = None  # `conftest.py` has them started and closed


def start(
    words: Sequence[str],
    env: Mapping[str, str],
    files: Sequence[int],
    cwd: Path | None = None,
) -> Fork | subprocess.Popen[bytes]:
    """Start the command with descriptors for stdin, stdout and stderr, in a fork if possible.

    A variable that an interpreter reads at its start (`PYTHON*`) needs a new interpreter.
    """
    environment = {**os.environ, **env}
    if forks is not None and not any(name.startswith("PYTHON") for name in env):
        return forks.start(words, cwd or Path.cwd(), environment, files)
    stdin, stdout, stderr = files
    return subprocess.Popen(
        [*COMMAND, *words], cwd=cwd, env=environment, stdin=stdin, stdout=stdout, stderr=stderr
    )


def run(
    *words: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    with (
        Path(os.devnull).open("rb") as stdin,
        TemporaryFile() as stdout,
        TemporaryFile() as stderr,
    ):
        files = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
        with start(words, env or {}, files, cwd) as process:
            try:
                status = process.wait(PATIENCE)
            except BaseException:
                process.send_signal(signal.SIGKILL)
                raise
        output = []
        for file in stdout, stderr:
            file.seek(0)
            output.append(file.read().decode())
    return subprocess.CompletedProcess(words, status, *output)


def output_of(*words: str, status: int = 0) -> str:
    result = run(*words)
    assert result.returncode == status, result.stderr
    assert "\x1b" not in result.stdout + result.stderr
    return result.stdout


def on_a_terminal(*words: str, **env: str) -> str:
    """Return the whole output at a terminal, with ESC written as ^."""
    with Terminal(*words, **env) as terminal:
        return terminal.rest()


class Terminal:
    """The command at a pseudo-terminal, whose other end the test reads and types at.

    `status` is the exit status, available after `rest`.
    """

    status: int

    def __init__(self, *words: str, **env: str) -> None:
        self._our_end, their_end = pty.openpty()
        env = {"TERM": "xterm-256color", "COLUMNS": "60", **env}
        self.process = start(words, env, [their_end] * 3)
        os.close(their_end)
        self._shown = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._our_end)
        with self.process:  # the closed terminal ends the command
            pass

    def type(self, text: str, *, behind: str) -> str:
        """Wait until `behind` is shown, type `text`, and return the output so far."""
        while behind not in self._text:
            assert self._read(), f"{behind!r} is not in: {self._text}"
        seen, self._shown = self._text, b""
        os.write(self._our_end, text.encode())
        return seen

    def rest(self) -> str:
        """Return the output until the command ends."""
        while self._read():
            pass
        self.status = self.process.wait()
        return self._text

    @property
    def _text(self) -> str:
        return self._shown.decode(errors="replace").replace("\x1b", "^").replace("\r\n", "\n")

    def _read(self) -> bool:
        ready, _, _ = select.select([self._our_end], [], [], 30)
        assert ready, f"nothing more in 30 s after: {self._text}"
        try:
            chunk = os.read(self._our_end, 65_536)
        except OSError:  # on Linux: the other end is closed
            chunk = b""
        self._shown += chunk
        return bool(chunk)


class HttpServerProcess:
    """`mcp-trio run FILE --http 0`.

    `url` is the printed URL. `log` has the lines after it, available after `end`.
    """

    log: list[str]

    def __init__(self, file: Path, *options: str) -> None:
        words = ["run", str(file), "--http", "0", *options]
        ours, theirs = os.pipe()
        self._stderr = os.fdopen(ours, encoding="utf-8")
        with Path(os.devnull).open("r+b") as null:
            self.process = start(words, {}, [null.fileno(), null.fileno(), theirs])
        os.close(theirs)
        self.greeting = self._stderr.readline()
        self.url = next((word for word in self.greeting.split() if word.startswith("http://")), "")

    def wait_for(self, line: str) -> None:
        """Wait until the server prints `line` on stderr."""
        assert line + "\n" in iter(self._stderr.readline, "")

    def end(self, number: signal.Signals | None = signal.SIGTERM) -> None:
        """Send a signal, unless `number` is None, and wait until the server ends."""
        if number is not None:
            self.process.send_signal(number)
        with self._stderr, self.process:
            self.log = self._stderr.read().splitlines()


@contextmanager
def served(file: Path, *options: str) -> Iterator[HttpServerProcess]:
    """Serve a file over HTTP, at a free port, for the duration of the block."""
    server = HttpServerProcess(file, *options)
    try:
        assert server.url, server.greeting
        yield server
    finally:
        if server.process.returncode is None:
            server.end()


class Hosted:
    """Servers over HTTP that many tests share. Methods return a target."""

    def __init__(self, place: Path, servers: ExitStack) -> None:
        self._place, self._servers = place, servers
        self._files: dict[tuple[str, ...], Path] = {}

    def __call__(self, source: str | Path) -> tuple[str, ...]:
        """Serve a file, or one with that source."""
        if isinstance(source, str):
            path = self._place / f"server_{len(self._files)}.py"
            path.write_text("import mcp_trio\n" + textwrap.dedent(source))
        else:
            path = source
        target = (self._servers.enter_context(served(path)).url,)
        self._files[target] = path
        return target

    def as_child(self, target: tuple[str, ...]) -> tuple[str, ...]:
        """The target by which the command starts that server."""
        return ("--", *COMMAND, "run", str(self._files[target]))


class ServerFile:
    """A server file that a test writes. Calling it returns the words that start the server."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, source: str) -> tuple[str, ...]:
        self.path.write_text("import mcp_trio\n" + textwrap.dedent(source))
        return ("--", *COMMAND, "run", str(self.path))
