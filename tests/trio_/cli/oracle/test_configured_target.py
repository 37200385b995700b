"""`mcp-trio fuzz`, `proxy` and `replay` with servers of configuration files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from msgspec.structs import replace

from mcp_core.host import ToolRule
from mcp_trio.cli import main
from mcp_trio.host import _config_files
from tests.harness.world.command import COMMAND, run
from tests.harness.world.waiting import PATIENCE
from tests.trio_.cli.oracle.test_proxy import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.trio_.cli.configured.configured import ConfiguredServers

pytest.importorskip("hypothesis")

# Values of variables. The first has the name of a secret, the second is one of a header.
TOKEN = "rhubarb-crumble"
TENANT = "damson-tart"
PLAIN = "quince-jelly"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    },
}
# It notes how it was started, repeats its secret in errors, and breaks a rule: ping has an error.
SPY = """
    import json, os, sys

    with open(sys.argv[1], "a") as log:
        started = {"env": dict(os.environ), "cwd": os.getcwd(), "words": sys.argv[2:]}
        log.write(json.dumps(started) + "\\n")

    def respond(id, **members):
        print(json.dumps({"jsonrpc": "2.0", "id": id, **members}), flush=True)

    for line in sys.stdin:
        try:
            message = json.loads(line)
            id, method = message["id"], message["method"]
        except (ValueError, KeyError, TypeError):
            continue
        if method == "initialize":
            info = {"name": "s", "version": "1"}
            lists = {"tools": {}}
            version = "2025-11-25"
            respond(id, result={
                "protocolVersion": version, "capabilities": lists, "serverInfo": info
            })
        elif method == "tools/list":
            names = os.environ.get("TOOLS", "").split()
            schema = {"type": "object"}
            respond(id, result={"tools": [{"name": n, "inputSchema": schema} for n in names]})
        elif method == "tools/call":
            with open(sys.argv[1] + ".called", "a") as log:
                log.write(str(message["params"].get("name")) + "\\n")
            respond(id, result={"content": []})
        else:
            respond(id, error={"code": -32601, "message": "no " + os.environ["API_TOKEN"]})
"""
# The same over HTTP. It prints its port, and a line for each request.
HTTP_SPY = """
    import json
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Spy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            headers = {
                name.lower(): ", ".join(self.headers.get_all(name)) for name in self.headers
            }
            print(json.dumps({"path": self.path, "headers": headers}), flush=True)
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            id, method = message.get("id"), message.get("method")
            if method == "initialize":
                info = {"name": "s", "version": "1"}
                version = "2025-11-25"
                result = {"protocolVersion": version, "capabilities": {}, "serverInfo": info}
                answer = {"result": result}
            else:
                text = "no " + headers.get("x-tenant", "")
                answer = {"error": {"code": -32601, "message": text}}
            data = json.dumps({"jsonrpc": "2.0", "id": id, **answer}).encode()
            self.send_response(202 if id is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "0" if id is None else str(len(data)))
            self.end_headers()
            if id is not None:
                self.wfile.write(data)

        def do_GET(self):
            self.send_response(405)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Spy)
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""
AT_SPY = ("--server", "spy", "--approve-server", "spy")
AT_WEB = ("--server", "web", "--approve-server", "web")
FUZZ = ["fuzz", "--cases", "5", "--seed", "7", "--era", "legacy", "--no-shrink"]


class Spies:
    """A project with servers that note how they are used."""

    def __init__(self, servers: ConfiguredServers) -> None:
        self.servers = servers
        self.log = servers.home / "log"
        self.trace = servers.home / "played.mcp.jsonl"
        servers.env |= {"API_TOKEN": TOKEN, "TENANT": TENANT, "PLAIN": PLAIN}
        script = servers.home / "spy.py"
        script.write_text(textwrap.dedent(SPY))
        place = servers.home / "place"
        place.mkdir()
        self.entry: dict[str, Any] = {
            "command": sys.executable,
            "args": ["-S", str(script), str(self.log), "--as", "${PLAIN}"],
            "env": {"API_TOKEN": "${API_TOKEN}", "MODE": "fast"},
            "cwd": str(place),
        }
        servers.add_entry("spy", self.entry)
        self._write_trace()

    def _write_trace(self) -> None:
        """Write the trace that `replay` plays."""
        header = {
            "mcp-trace": 1,
            "at": "2026-01-01T00:00:00Z",
            "by": "test",
            "observer": "between",
            "transport": "stdio",
            "target": "",
            "redacted": [],
        }
        lines = [
            {"t": 0.0, "from": "client", "raw": json.dumps(INITIALIZE)},
            {"t": 0.1, "from": "server", "raw": '{"jsonrpc":"2.0","id":0,"result":{}}'},
            {"t": 0.2, "from": "client", "raw": json.dumps(PING)},
            {"t": 0.3, "from": "server", "raw": '{"jsonrpc":"2.0","id":1,"result":{}}'},
        ]
        self.trace.write_text("".join(json.dumps(each) + "\n" for each in [header, *lines]))

    def words(self, command: str) -> list[str]:
        return {"fuzz": FUZZ, "proxy": ["proxy"], "replay": ["replay", str(self.trace)]}[command]

    def run(
        self, *words: str, status: int | None = None, sends: str = ""
    ) -> subprocess.CompletedProcess[str]:
        if not sends:
            result = run(*words, cwd=self.servers.project, env=self.servers.env)
        else:
            result = subprocess.run(
                [*COMMAND, *words],
                cwd=self.servers.project,
                env={**os.environ, **self.servers.env},
                input=sends,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        assert "Traceback" not in result.stderr, result.stderr
        if status is not None:
            assert result.returncode == status, result.stdout + result.stderr
        return result

    @property
    def starts(self) -> list[dict[str, Any]]:
        """How the server over stdio was started."""
        return [*map(json.loads, self.log.read_text().splitlines())] if self.log.exists() else []

    def assert_no_secrets(self, *texts: str) -> None:
        """Check the texts, and all files that the command has written."""
        found = [*self.servers.project.rglob("*"), *self.servers.home.glob("*.jsonl")]
        texts += tuple(each.read_text(errors="replace") for each in found if each.is_file())
        for text in texts:
            assert TOKEN not in text
            assert TENANT not in text


@pytest.fixture
def spies(servers: ConfiguredServers) -> Spies:
    return Spies(servers)


@pytest.fixture
def http_spy(spies: Spies) -> Iterator[subprocess.Popen[str]]:
    """A server over HTTP, which is in the file of the project as `web`."""
    command = [sys.executable, "-c", textwrap.dedent(HTTP_SPY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        headers = {"X-Tenant": "${TENANT}", "Authorization": "Bearer ${API_TOKEN}", "X-Mode": "a"}
        spies.servers.add_entry("web", {"url": f"http://127.0.0.1:{port}/mcp", "headers": headers})
        try:
            yield process
        finally:
            process.kill()


def requests_of(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Return the requests that the server over HTTP got, once it is ended."""
    process.kill()
    assert process.stdout is not None
    return [*map(json.loads, process.stdout.read().splitlines())]


COMMANDS = ["fuzz", "proxy", "replay"]


# -- Which server ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_unapproved_server_is_not_started(spies: Spies, command: str) -> None:
    words = [*spies.words(command), "--server", "spy"]
    result = spies.run(*words, status=3)
    assert result.stderr.startswith(
        "mcp-trio: the server spy is not approved, so it was not started; to see what it runs,"
        " and to approve it: mcp-trio servers approve spy. Or, to start "
    )
    assert result.stderr.endswith(" in this run only, add --approve-server spy\n")
    assert (spies.starts, result.stdout) == ([], "")


@pytest.mark.parametrize("command", COMMANDS)
def test_unapproved_server_of_one_file_is_not_started(spies: Spies, command: str) -> None:
    result = spies.run(*spies.words(command), "--config", ".mcp.json", status=3)
    assert "mcp-trio servers approve --config .mcp.json spy" in result.stderr
    assert spies.starts == []


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["--server", "spi"], 2, "there is no server spi; the servers are spy. Did you mean spy?"),
        (["--server", "spy", "--", "cat"], 2, "--server and --config"),
        (["mcp__spy__ping"], 2, "mcp__spy__ping"),
        (["--config", "none.json", "--server", "spy"], 2, "none.json"),
    ],
)
def test_server_that_is_not_clear_is_refused(
    spies: Spies, command: str, words: list[str], status: int, text: str
) -> None:
    result = spies.run(*spies.words(command), *words, status=status)
    assert text in " ".join(result.stderr.split())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"disabled": True}, "the server spy is disabled: mcp-trio servers enable spy"),
        ({"command": "no-such-program"}, "no program no-such-program on PATH"),
        ({"env": {"A": "${NOT_SET}"}}, "the variable NOT_SET is not set"),
    ],
)
def test_server_that_cannot_be_used_is_not_started(
    spies: Spies, command: str, entry: dict[str, Any], text: str
) -> None:
    spies.servers.add_entry("spy", {**spies.entry, **entry})
    result = spies.run(*spies.words(command), *AT_SPY, status=3)
    assert text in result.stderr
    assert spies.starts == []


@pytest.mark.parametrize("command", COMMANDS)
def test_server_that_the_policy_denies_is_not_started(
    spies: Spies, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    denied = {"deniedMcpServers": [{"serverName": "spy"}]}
    managed = spies.servers.write(spies.servers.home / "managed.json", denied)
    monkeypatch.setattr(_config_files, "_MANAGED_FILE", managed)
    monkeypatch.setattr(_config_files, "find_unsafe_path", lambda *_, **__: None)
    for name, value in spies.servers.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(spies.servers.project)
    assert main([*spies.words(command), *AT_SPY]) == 3
    assert "the server spy cannot be used: " in capsys.readouterr().err
    assert spies.starts == []


@pytest.mark.parametrize("command", ["fuzz", "replay"])
@pytest.mark.parametrize(
    "option", [["--header", "A: b"], ["--env", "A=b"], ["--inherit-env"], ["--cwd", "/"]]
)
def test_option_that_the_entry_has_is_refused(
    spies: Spies, command: str, option: list[str]
) -> None:
    result = spies.run(*spies.words(command), *AT_SPY, *option, status=2)
    text = f"{option[0]} is not for a server of the configuration files: write it there"
    assert text in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("entry", "words", "text"),
    [
        ({"type": "ws", "url": "ws://127.0.0.1:9/"}, ["fuzz"], "speaks WebSockets, and `mcp-trio"),
        ({"type": "ws", "url": "ws://127.0.0.1:9/"}, ["proxy", "--http", "0"], "WebSockets"),
        ({"type": "ws", "url": "ws://127.0.0.1:9/"}, ["replay"], "speaks WebSockets"),
        ({"type": "sse", "url": "http://127.0.0.1:9/"}, ["fuzz"], "speaks HTTP+SSE"),
        ({"type": "sse", "url": "http://127.0.0.1:9/"}, ["replay"], "speaks HTTP+SSE"),
        ({"url": "http://127.0.0.1:9/"}, ["proxy"], "keeps the transport: add --http 9000"),
        ({"command": "cat"}, ["proxy", "--http", "0"], "leave --http out"),
        (
            {"url": "http://127.0.0.1:9/", "headers": {"A": "${TENANT}"}},
            ["proxy", "--http", "0.0.0.0:0"],
            "other machines would use the server other with the headers of its entry",
        ),
        (
            {"url": "http://127.0.0.1:9/${TENANT}"},
            ["proxy", "--http", "0"],
            "move it to a header of the entry",
        ),
    ],
)
def test_transport_that_the_command_does_not_speak_is_refused(
    spies: Spies, entry: dict[str, Any], words: list[str], text: str
) -> None:
    spies.servers.add_entry("other", entry)
    words = [*spies.words(words[0]), *words[1:], "--server", "other", "--approve-server", "other"]
    result = spies.run(*words, status=2)
    assert text in result.stderr
    spies.assert_no_secrets(result.stderr)


@pytest.mark.parametrize("command", ["fuzz", "replay"])
def test_remote_server_of_the_user_needs_allow_remote(spies: Spies, command: str) -> None:
    spies.servers.add_entry("far", {"url": "https://far.example/mcp"}, user=True)
    result = spies.run(*spies.words(command), "--server", "far", status=2)
    assert "add --allow-remote" in result.stderr


@pytest.mark.parametrize("words", [["fuzz"], ["proxy", "--http", "0"], ["replay"]])
def test_token_for_another_machine_is_not_sent_unencrypted(spies: Spies, words: list[str]) -> None:
    headers = {"Authorization": "Bearer ${API_TOKEN}"}
    spies.servers.add_entry("far", {"url": "http://far.example/mcp", "headers": headers})
    words = [*spies.words(words[0]), *words[1:], "--server", "far", "--approve-server", "far"]
    result = spies.run(*words, status=3)
    assert "would be sent unencrypted to far.example" in result.stderr
    spies.assert_no_secrets(result.stderr)


@pytest.mark.parametrize("command", ["fuzz", "replay"])
def test_server_with_a_stored_login_is_refused(spies: Spies, command: str) -> None:
    url = "http://127.0.0.1:9/mcp"
    spies.servers.add_entry("web", {"url": url})
    store = (
        "from mcp_trio.auth._storage import FileStorage\n"
        f"FileStorage().save('tokens:{url}', b'x')\n"
    )
    env = {**os.environ, **spies.servers.env}
    subprocess.run([sys.executable, "-c", store], env=env, check=True)
    result = spies.run(*spies.words(command), *AT_WEB, status=3)
    assert "does not use that login: write a header Authorization" in result.stderr


# -- Over stdio ------------------------------------------------------------------------------------


def assert_started_as_configured(spies: Spies) -> None:
    assert spies.starts
    for start in spies.starts:
        assert start["words"] == ["--as", PLAIN]
        assert start["cwd"] == spies.entry["cwd"]
        assert (start["env"]["API_TOKEN"], start["env"]["MODE"]) == (TOKEN, "fast")
        assert "TENANT" not in start["env"]


def test_fuzz_starts_server_as_configured_and_writes_no_secrets(spies: Spies) -> None:
    """The generated tests read each secret from a variable, so they can be committed."""
    result = spies.run(*FUZZ, *AT_SPY, "--record", "r.mcp.jsonl", status=1)
    assert result.stderr.startswith("mcp-trio: --approve-server lets spy of ")
    assert_started_as_configured(spies)
    assert not spies.servers.state.exists()
    spies.assert_no_secrets(result.stdout, result.stderr)
    folder = spies.servers.project / "mcp-fuzz"
    tests = (folder / "test_findings.py").read_text()
    assert PLAIN not in tests
    assert "{'API_TOKEN': os.environ['API_TOKEN'], 'MODE': 'fast'}" in tests
    assert "os.environ['MCP_FUZZ_ARGUMENT_5']" in tests
    assert f"cwd={spies.entry['cwd']!r}" in tests
    assert json.loads((folder / "report.json").read_text())["target"].endswith("--as '${PLAIN}'")
    header, _ = read_file(spies.servers.project / "r.mcp.jsonl")
    assert header.target.endswith("--as '${PLAIN}'")
    assert "secret" in header.redacted


def written_tests(spies: Spies) -> list[str]:
    """Return the names of the tests that the fuzzer has written."""
    text = (spies.servers.project / "mcp-fuzz/test_findings.py").read_text("utf-8")
    return re.findall(r"^def (test_\w+)", text, re.MULTILINE)


def test_test_of_fuzz_fails_as_long_as_the_fault_is_there(spies: Spies) -> None:
    spies.run(*FUZZ, *AT_SPY, status=1)
    [test] = [each for each in written_tests(spies) if each.endswith("_ping_2_ping")]
    played = subprocess.run(
        [sys.executable, "-c", f"import test_findings as t; t.{test}()"],
        cwd=spies.servers.project / "mcp-fuzz",
        env={**os.environ, "API_TOKEN": TOKEN, "MCP_FUZZ_ARGUMENT_5": PLAIN},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "AssertionError: ping has an error" in played.stderr
    assert_started_as_configured(spies)


def test_proxy_starts_server_as_configured_and_records_no_secrets(spies: Spies) -> None:
    sends = "".join(json.dumps(each) + "\n" for each in (INITIALIZE, PING))
    words = [*AT_SPY, "--record", "r.mcp.jsonl", "--check"]
    result = spies.run("proxy", *words, sends=sends, status=0)
    assert f"no {TOKEN}" in result.stdout  # the client gets it
    assert_started_as_configured(spies)
    spies.assert_no_secrets(result.stderr)
    header, lines = read_file(spies.servers.project / "r.mcp.jsonl")
    assert header.target.endswith("--as '${PLAIN}'")
    assert PLAIN not in "".join(line.text or "" for line in lines)


def test_replay_starts_server_as_configured_and_records_no_secrets(spies: Spies) -> None:
    words = [*AT_SPY, "--record", "r.mcp.jsonl"]
    result = spies.run("replay", str(spies.trace), *words, status=1)
    assert "2 messages sent, 2 requests answered" in result.stdout
    assert_started_as_configured(spies)
    spies.assert_no_secrets(result.stdout, result.stderr)
    header, _ = read_file(spies.servers.project / "r.mcp.jsonl")
    assert header.target.endswith("--as '${PLAIN}'")


def test_proxy_for_a_server_of_the_user_needs_no_approval(spies: Spies) -> None:
    spies.servers.add_entry("mine", spies.entry, user=True)
    result = spies.run("proxy", "--server", "mine", sends=json.dumps(INITIALIZE) + "\n", status=0)
    assert '"serverInfo"' in result.stdout
    assert result.stderr == ""


def test_proxy_for_itself_ends(spies: Spies) -> None:
    for name, other in ("a", "b"), ("b", "a"):
        words = [*COMMAND[1:], "proxy", "--approve-server", other, "--server", other]
        spies.servers.add_entry(name, {"command": COMMAND[0], "args": words})
    result = spies.run("proxy", "--approve-server", "a", "--server", "a", status=3)
    assert result.stderr.count("--approve-server lets ") == 3
    assert "the command of the server a is a proxy for a" in result.stderr


# -- Over HTTP -------------------------------------------------------------------------------------


def assert_headers_arrived(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    requests = requests_of(process)
    assert requests
    for each in requests:
        headers = each["headers"]
        assert headers["x-tenant"] == TENANT
        assert headers["authorization"] == f"Bearer {TOKEN}"
        assert headers["x-mode"] == "a"
    return requests


def test_fuzz_sends_configured_headers_and_writes_no_secrets(
    spies: Spies, http_spy: subprocess.Popen[str]
) -> None:
    """Even malformed requests carry the headers, and the generated tests have no secret values."""
    words = [
        "--server",
        "web",
        "--approve-server",
        "web",
        "--record",
        "r.mcp.jsonl",
        "--junit",
        "junit.xml",
    ]
    result = spies.run(*FUZZ, *words, status=1)
    tests = (spies.servers.project / "mcp-fuzz" / "test_findings.py").read_text()
    assert "'x-tenant': os.environ['MCP_FUZZ_X_TENANT']" in tests
    assert "'x-mode': 'a'" in tests
    spies.assert_no_secrets(result.stdout, result.stderr)
    process = http_spy
    for each in requests_of(process):
        assert each["headers"].get("x-tenant", TENANT) == TENANT
        assert each["path"] == "/mcp"


def test_replay_sends_configured_headers_and_records_no_secrets(
    spies: Spies, http_spy: subprocess.Popen[str]
) -> None:
    words = [*AT_WEB, "--record", "r.mcp.jsonl"]
    result = spies.run("replay", str(spies.trace), *words, status=1)
    spies.assert_no_secrets(result.stdout, result.stderr)
    assert_headers_arrived(http_spy)


@contextmanager
def http_proxy(spies: Spies, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a proxy, and give its URL."""
    with subprocess.Popen(
        [*COMMAND, "proxy", "--http", "0", *words],
        cwd=spies.servers.project,
        env={**os.environ, **spies.servers.env},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        if "--approve-server" in words:
            line = process.stderr.readline()
        try:
            assert "on to the server web" in line
            yield process, line.split()[1]
        finally:
            process.send_signal(signal.SIGTERM)


def test_proxy_sends_configured_headers_and_records_no_secrets(
    spies: Spies, http_spy: subprocess.Popen[str]
) -> None:
    """The entry's header replaces the client's, and a foreign web page can't use it."""
    with http_proxy(spies, *AT_WEB, "--record", "r.mcp.jsonl") as (process, url):
        headers = {"content-type": "application/json", "X-TENANT": "of the client"}
        request = Request(url, json.dumps(INITIALIZE).encode(), headers)
        with urlopen(request, timeout=PATIENCE) as response:
            assert b"serverInfo" in response.read()
        request = Request(url, json.dumps(PING).encode(), headers)
        with urlopen(request, timeout=PATIENCE) as response:
            assert TENANT.encode() in response.read()
        foreign = {**headers, "Origin": "https://page.example"}
        with pytest.raises(HTTPError, match="403"):
            urlopen(Request(url, json.dumps(PING).encode(), foreign), timeout=PATIENCE)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 143
        assert process.stderr is not None
        rest = process.stderr.read()
    spies.assert_no_secrets(rest)
    requests = assert_headers_arrived(http_spy)
    assert len(requests) == 2
    header, _ = read_file(Path(spies.servers.project / "r.mcp.jsonl"))
    assert header.observer == "between"


# -- At a terminal ---------------------------------------------------------------------------------


def test_question_that_is_answered_approves_and_starts(spies: Spies) -> None:
    words = ("replay", str(spies.trace), "--server", "spy")
    with spies.servers.terminal(*words) as terminal:
        terminal.type("yes\n", behind="decline (Ctrl")
        assert "2 messages sent" in terminal.rest()
    assert spies.servers.approval("spy") is not None
    assert_started_as_configured(spies)
    spies.run(*FUZZ, "--server", "spy", status=1)


def test_question_that_is_interrupted_starts_nothing(spies: Spies) -> None:
    with spies.servers.terminal("proxy", "--server", "spy") as terminal:
        terminal.type("ye", behind="decline (Ctrl")
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.rest()
    assert (terminal.status, spies.starts) == (130, [])


# -- Tools that the entry denies -------------------------------------------------------------------


@pytest.mark.parametrize("command", ["proxy", "replay"])
@pytest.mark.parametrize("lists", [{"deniedTools": ["write"]}, {"allowedTools": []}])
def test_command_that_passes_on_all_calls_refuses_a_restricted_server(
    spies: Spies, command: str, lists: dict[str, Any]
) -> None:
    spies.servers.add_entry("spy", {**spies.entry, **lists})
    result = spies.run(*spies.words(command), *AT_SPY, status=3)
    (member,) = lists
    assert "the entry of the server spy restricts its tools (" in result.stderr
    assert f"mcpServers.spy.{member}), and `mcp-trio {command}` passes on all" in result.stderr
    assert spies.starts == []


def deny(spies: Spies, rule: ToolRule) -> None:
    """Store a rule for the server of the project's file."""
    spies.servers.approvals.change(
        lambda approvals: approvals.with_change(
            str(spies.servers.project_file), "spy", lambda old: replace(old, rules=(rule,))
        )
    )


@pytest.mark.parametrize("command", ["proxy", "replay"])
def test_command_that_passes_on_all_calls_refuses_a_server_with_a_denying_rule(
    spies: Spies, command: str
) -> None:
    deny(spies, ToolRule(tool="write", is_allowed=False))
    result = spies.run(*spies.words(command), *AT_SPY, status=3)
    assert "stored rules deny tools of the server spy (write), and" in result.stderr
    assert spies.starts == []


def test_fuzz_does_not_call_a_tool_that_a_stored_rule_denies(spies: Spies) -> None:
    env = {**spies.entry["env"], "TOOLS": "read write"}
    spies.servers.add_entry("spy", {**spies.entry, "env": env})
    deny(spies, ToolRule(tool="wr*", is_pattern=True, is_allowed=False))
    refused = spies.run(*FUZZ, *AT_SPY, "--allow-tool", "write", status=3)
    assert "--allow-tool write: a stored rule denies it" in refused.stderr
    spies.run(*FUZZ, *AT_SPY, "--allow-all", "--cases", "40")
    called = Path(f"{spies.log}.called").read_text().split()
    assert "read" in called
    assert "write" not in called
