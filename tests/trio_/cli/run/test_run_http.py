"""`mcp-trio run --http`: serving a file at a URL, and the access log."""

from __future__ import annotations

import http.client
import io
import json
import re
import secrets
import signal
import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import trio

import mcp_trio
from mcp_core.types import TextContent
from mcp_trio.cli._screen import Screen
from mcp_trio.cli.run._run import access_log_printer
from mcp_trio.http_server._connection import AccessLogEntry
from tests.harness.world.command import (
    ROOT,
    Terminal,
    run,
    served,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mcp_core.types import CallToolResult
    from tests.harness.world.command import ServerFile

GREETER = ROOT / "examples" / "greeter.py"
INITIALIZE = {
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
SLOW = """
    import sys

    import trio

    app = mcp_trio.Server("slow")

    @app.tool
    async def count(context: mcp_trio.Context) -> str:
        "Counts."
        await context.progress(1, 2)
        return "counted"

    @app.tool
    async def wait() -> str:
        "Waits."
        print("waiting", file=sys.stderr)
        await trio.sleep(0.3)
        return "waited"
"""


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


def ask(url: str, message: dict[str, Any], **headers: str) -> Answer:
    """POST a message and return the response."""
    parts = urlsplit(url)
    sent = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **headers,
    }
    with closing(http.client.HTTPConnection(parts.netloc, timeout=30)) as connection:
        connection.request(
            "POST",
            f"{parts.path}?{parts.query}",
            json.dumps({"jsonrpc": "2.0", "id": 1, **message}),
            sent,
        )
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.headers), answer.read())


def call_of(tool: str) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": tool, "_meta": {"progressToken": "here"}}}


@pytest.mark.requirement("HTTP-3")
def test_run_http_serves_file_and_logs_exchanges() -> None:
    """Only the loopback address listens, and the access log leaves out query strings."""
    with served(GREETER) as server:
        assert server.greeting == f"Serving greeter at {server.url} (Ctrl+C ends it)\n"
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/mcp", server.url)
        with pytest.raises(ConnectionRefusedError):  # another address of this machine
            ask(server.url.replace("127.0.0.1", "127.0.0.2"), INITIALIZE)
        answer = ask(server.url, INITIALIZE)
        assert json.loads(answer.body)["result"]["serverInfo"]["name"] == "greeter"
        session = answer.headers["mcp-session-id"]
        assert (
            ask(server.url + "?secret=1", {"method": "ping"}, **{"mcp-session-id": session}).status
            == 200
        )
        assert ask(server.url.replace("mcp", "nothing"), INITIALIZE).status == 404
        server.end()
    lines = [re.fullmatch(r"\d\d:\d\d:\d\d (.*) (<1|[\d.]+) ms", line) for line in server.log]
    assert [line and line[1] for line in lines] == [
        "POST /mcp initialize 200",
        "POST /mcp ping 200",
        "POST /nothing 404",
    ]
    assert server.process.returncode == 143


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_run_http_signal_lets_running_call_finish(
    server: ServerFile, number: signal.Signals
) -> None:
    """One Ctrl+C is orderly: the client gets its result before the process exits."""
    server(SLOW)
    with served(server.path) as site:
        async with mcp_trio.connect(site.url) as client, trio.open_nursery() as nursery:
            answers: list[CallToolResult] = []

            async def call() -> None:
                answers.append(await client.call_tool("wait"))

            nursery.start_soon(call)
            await trio.to_thread.run_sync(site.wait_for, "waiting")
            site.process.send_signal(number)
        assert answers[0].content == [TextContent("waited")]
        site.end(None)
    assert "Traceback" not in "".join(site.log)
    assert site.process.returncode == 128 + number


@pytest.mark.process
def test_run_http_options_disable_streams_and_sessions(server: ServerFile) -> None:
    server(SLOW)
    with served(server.path) as site:
        opened = ask(site.url, INITIALIZE)
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        answer = ask(site.url, call_of("count"), **session)
        assert answer.headers["content-type"] == "text/event-stream"
        assert b"notifications/progress" in answer.body
    with served(server.path, "--json-response", "--stateless") as site:
        assert "mcp-session-id" not in ask(site.url, INITIALIZE).headers
        answer = ask(site.url, call_of("count"))
        assert answer.headers["content-type"] == "application/json"
        assert json.loads(answer.body)["result"]["content"][0]["text"] == "counted"


@pytest.mark.process
def test_run_http_sse_path_is_printed_and_begins_http_sse() -> None:
    with served(GREETER, "--sse-path", "/sse") as server:
        sse_url = server.url.replace("/mcp", "/sse")
        server.wait_for(f"Clients of HTTP+SSE connect to {sse_url}")
        with closing(http.client.HTTPConnection(urlsplit(sse_url).netloc, timeout=30)) as stream:
            stream.request("GET", "/sse", headers={"accept": "text/event-stream"})
            answer = stream.getresponse()
            assert answer.headers["content-type"] == "text/event-stream"
            assert answer.readline() == b"event: endpoint\n"
            post_to = answer.readline().decode().removeprefix("data: ").strip()
            assert post_to.startswith("/sse?")
            assert ask(sse_url.replace("/sse", post_to), INITIALIZE).status == 202
            lines = iter(answer.readline, b"")
            message = next(line for line in lines if line.startswith(b'data: {"jsonrpc"'))
            assert b"greeter" in message


def test_run_http_unusable_address_is_explained() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("run", str(GREETER), "--http", str(port))
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == (
        f"mcp-trio: cannot listen on 127.0.0.1, port {port}: address already in use; choose"
        " another port, or 0 for any free port\n"
    )
    nowhere = run("run", str(GREETER), "--http", "192.0.2.1:0")
    assert nowhere.returncode == 3
    assert nowhere.stderr.endswith("this machine has no such address\n")
    unknown = run("run", str(GREETER), "--http", "no-such-host.invalid:0")
    assert unknown.returncode == 3
    assert "no host is called no-such-host.invalid" in unknown.stderr


@pytest.mark.parametrize("raised", ["OSError(98, 'taken', 'a file')", "OSError(5, 'broken')"])
def test_run_http_lifespan_error_shows_traceback(server: ServerFile, raised: str) -> None:
    server(f"""
        import contextlib

        @contextlib.asynccontextmanager
        async def life(server):
            raise {raised}
            yield

        app = mcp_trio.Server("still-born", lifespan=life)
    """)
    result = run("run", str(server.path), "--http", "0")
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    assert "cannot listen" not in result.stderr


LINES = [
    (
        AccessLogEntry("POST", "/mcp", 200, 0.0004, 10, "tools/call"),
        "POST /mcp tools/call 200 <1 ms",
    ),
    (AccessLogEntry("POST", "/mcp", 202, 0.0123, 0), "POST /mcp 202 12.3 ms"),
    (AccessLogEntry("GET", "/mcp?a=b", 200, 75.0, 10), "GET /mcp 200 1 min"),
    (
        AccessLogEntry("POST", "/mcp", 0, 1.25, 0, "tools/call"),
        "POST /mcp tools/call disconnected 1.2 s",
    ),
    (AccessLogEntry("GET", "/\x1b[2J", 404, 0.9999, 10), "GET /\\u001b[2J 404 1.0 s"),
    (AccessLogEntry("POST", "/mcp", 503, 0.01, 10, "tools/call"), "POST /mcp tools/call 503 10 ms"),
]


@pytest.mark.parametrize(("done", "line"), LINES)
def test_access_log_line_has_path_method_status_and_duration(
    done: AccessLogEntry, line: str
) -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    access_log_printer(Screen(file))(done)
    file.seek(0)
    time, _, rest = file.read().partition(" ")
    assert re.fullmatch(r"\d\d:\d\d:\d\d", time)
    assert rest == line + "\n"


@pytest.mark.process
def test_run_http_terminal_log_is_coloured() -> None:
    with Terminal("run", str(GREETER), "--http", "0", COLUMNS="120") as terminal:
        shown = terminal.type("", behind="(Ctrl+C ends it)")
        url = re.search(r"http://[\d.:]+/mcp", shown)
        assert url is not None
        ask(url[0], INITIALIZE)
        terminal.type("", behind="ms^[0m")
        terminal.process.send_signal(signal.SIGINT)
        terminal.rest()
    assert terminal.status == 130


ASKS = """
import mcp_trio

app = mcp_trio.Server("asks")

@app.tool
async def greet(context: mcp_trio.Context) -> str:
    "Greets."
    answer = await context.elicit("Who?", {"type": "object", "properties": {}})
    return answer.action
"""
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


def modern_call(url: str, **params: Any) -> dict[str, Any]:
    """Call `greet` in 2026-07-28, and return the response."""
    params = {"name": "greet", "_meta": MODERN_META, **params}
    headers = {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "greet",
    }
    answer = ask(url, {"method": "tools/call", "params": params}, **headers)
    found: dict[str, Any] = json.loads(answer.body)
    return found


@pytest.mark.process
def test_question_is_retried_at_another_process_with_the_keys_of_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys are being rotated: one process signs with the new key, both know both."""
    file = tmp_path / "asks.py"
    file.write_text(ASKS)
    new, old = (f"{name}={secrets.token_urlsafe(32)}" for name in ("2027", "2026"))
    monkeypatch.setenv("KEYS_A", f"{new},{old}")
    monkeypatch.setenv("KEYS_B", f"{old},{new}")
    with (
        served(file, "--state-keys-env", "KEYS_A") as a,
        served(file, "--state-keys-env", "KEYS_B", "--stateless") as b,
        served(file) as other,
    ):
        for first, second in ((a.url, b.url), (b.url, a.url)):
            asked = modern_call(first)["result"]
            [key] = asked["inputRequests"]
            retry = {
                "requestState": asked["requestState"],
                "inputResponses": {key: {"action": "decline"}},
            }
            answered = modern_call(second, **retry)["result"]
            assert answered["content"][0]["text"] == "decline"
            assert modern_call(other.url, **retry)["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("value", "declared", "complaint"),
    [
        (None, "", "--state-keys-env SHOP_KEYS: the variable isn't set"),
        ("", "", "--state-keys-env SHOP_KEYS: there is no key; make one: python -c"),
        ("too-short", "", "--state-keys-env SHOP_KEYS: key 1 isn't base64url; make one"),
        ("a" * 43, "state_keys={'1': b'x' * 32}", "'s' is declared with state_keys= already"),
    ],
)
@pytest.mark.parametrize("transport", [(), ("--http", "0")], ids=["stdio", "http"])
def test_run_without_keys_in_its_variable_is_explained(
    tmp_path: Path, value: str | None, declared: str, complaint: str, transport: tuple[str, ...]
) -> None:
    (tmp_path / "s.py").write_text(f"import mcp_trio\ns = mcp_trio.Server('s', {declared})\n")
    env = {} if value is None else {"SHOP_KEYS": value}
    words = ("run", "s.py", "--state-keys-env", "SHOP_KEYS", *transport)
    result = run(*words, cwd=tmp_path, env=env)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("mcp-trio: ")
    assert complaint in result.stderr.replace("\n", " ")
    assert value is None or len(value) < 9 or value not in result.stderr


@pytest.mark.parametrize("given", ["a" * 43, "2026=" + "a" * 43, "", "a-b"])
def test_run_shows_nothing_that_is_no_name_of_a_variable(tmp_path: Path, given: str) -> None:
    """`--state-keys-env $SHOP_KEYS` passes the secret itself."""
    (tmp_path / "s.py").write_text("import mcp_trio\ns = mcp_trio.Server('s')\n")
    result = run("run", "s.py", f"--state-keys-env={given}", cwd=tmp_path, env={})
    assert (result.returncode, result.stdout) == (2, "")
    assert "pass NOTES_KEYS, for example, and not $NOTES_KEYS" in result.stderr.replace("\n", " ")
    assert not given or given not in result.stderr


@pytest.mark.process
@pytest.mark.parametrize("reload", [(), ("--reload",)], ids=["plain", "reload"])
def test_run_over_stdio_takes_the_keys_too(server: ServerFile, reload: tuple[str, ...]) -> None:
    separator, *words = server("""
        app = mcp_trio.Server("keyed")

        @app.tool
        def keyed() -> bool:
            "Say whether it has keys."
            return app.shared_keys is not None
    """)
    words += ["--state-keys-env", "SHOP_KEYS", *reload]
    env = {"SHOP_KEYS": secrets.token_urlsafe(32)}
    result = run("call", "keyed", "--env", "SHOP_KEYS", separator, *words, env=env)
    assert (result.returncode, result.stdout) == (0, "true\n"), result.stderr
