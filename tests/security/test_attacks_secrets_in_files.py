"""Servers that answer with the secrets that they were given, in files that others may get.

A secret goes in by each way: a variable, a file of variables, an argument, a header, a URL. The
server says it in each spelling and in each place: results, errors, log messages, names, headers and
stderr. No file that a recorder, a report or an audit writes may have it.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import textwrap
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core import McpTrioError
from mcp_core.trace import Judge, diff_traces, load_trace, read_trace
from mcp_trio.host import AuditFile, Host, MemoryApprovals
from tests.harness.world.threaded_http import threaded_http_server
from tests.trio_.cli.configured.configured import ConfiguredServers

# Each way in has a secret of its own. One has what JSON and URLs escape.
VARIABLE = 'k3y-variable/"qu0ted" + é'
FORWARDED = "forw4rded-7f3a91c2d4"
IN_FILE = "envf1le-value-90b1e7"
ARGUMENT = "arg5-ument-55aa66bb77"
INPUT = "1nput-by-the-user-3e4d"
HEADER = "h3ader-value-b7c8d9e0"
PATH = "9f8e7d6c5b4a39281706"
QUERY = "qu3ry-value-1a2b3c4d5e"
WORDS = "correct horse battery staple"

SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda secret: secret,
    lambda secret: json.dumps(secret)[1:-1],
    lambda secret: json.dumps(json.dumps(secret)[1:-1])[1:-1],
    lambda secret: quote(secret, safe=""),
    lambda secret: re.sub("%..", lambda match: match[0].lower(), quote(secret, safe="")),
    quote_plus,
    lambda secret: b64encode(secret.encode()).decode(),
    lambda secret: b64encode(f"u:{secret}".encode()).decode(),
    lambda secret: b64encode(f"me:{secret}!".encode()).decode(),
    lambda secret: urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    lambda secret: f"{secret[:16]}...",
    lambda secret: f"***{secret[-16:]}",
)
# Its secrets are the values of its variables with an `X_`, and its last words. They are said in
# each spelling, which the test has written into a file as a function of Python.
SPY = """
    import json, os, re, sys
    from base64 import b64encode, urlsafe_b64encode
    from urllib.parse import quote, quote_plus

    secrets = [value for name, value in os.environ.items() if name.startswith("X_")]
    secrets += sys.argv[1:]

    def spellings(secret):
        escaped = json.dumps(secret)[1:-1]
        percent = quote(secret, safe="")
        yield from (secret, escaped, json.dumps(escaped)[1:-1], percent, quote_plus(secret))
        yield re.sub("%..", lambda match: match[0].lower(), percent)
        for text in (secret, "u:" + secret, "me:" + secret + "!"):
            yield b64encode(text.encode()).decode()
        yield urlsafe_b64encode(secret.encode()).decode().rstrip("=")
        yield secret[:16] + "..."
        yield "***" + secret[-16:]

    said = [text for secret in secrets for text in spellings(secret)]
    for text in said:
        print("started with", text, file=sys.stderr, flush=True)

    def send(**members):
        print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)

    for line in sys.stdin:
        message = json.loads(line)
        method, id = message.get("method"), message.get("id")
        if id is None:
            continue
        if method == "initialize":
            offers = {"tools": {}, "logging": {}, "prompts": {}, "resources": {}}
            offers["resources"] = {"subscribe": True}
            send(id=id, result={"protocolVersion": "2025-11-25", "capabilities": offers,
                 "serverInfo": {"name": "spy", "version": "1"}, "instructions": " ".join(said)})
        elif method == "tools/list":
            send(id=id, result={"tools": [{"name": "leak", "description": " ".join(said),
                 "inputSchema": {"type": "object"}}]})
        elif method == "prompts/list":
            send(id=id, result={"prompts": [{"name": "leak"}]})
        elif method == "resources/list":
            send(id=id, result={"resources": [{"name": "leak", "uri": "x://leak"}]})
        elif method == "prompts/get":
            messages = [{"role": "user", "content": {"type": "text", "text": " ".join(said)}}]
            send(id=id, result={"messages": messages})
        elif method == "resources/read":
            send(id=id, result={"contents": [{"uri": "x://leak", "text": " ".join(said)}]})
        elif method == "tools/call":
            for text in said:
                send(method="notifications/message", params={"level": "error", "data": text})
            members = {text: text for text in said}
            content = [{"type": "text", "text": text} for text in said]
            send(id=id, result={"content": content, "structuredContent": members, "isError": True})
        else:
            send(id=id, error={"code": -32601, "message": " ".join(said), "data": said})
"""


@pytest.fixture
def spy(tmp_path: Path) -> list[str]:
    """Return the command of a server that says its secrets."""
    script = tmp_path / "spy.py"
    script.write_text(textwrap.dedent(SPY))
    return [sys.executable, "-S", str(script)]


def assert_hidden(folder: Path, *secrets: str, least: int = 1) -> None:
    """Check that the files of a folder have no spelling of a secret, and that there are some."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= least
    assert any("‹redacted " in path.read_text() for path in files), "the server has said nothing"
    for path in files:
        data = path.read_bytes().decode()
        assert data
        for secret in secrets:
            for spell in SPELLINGS:
                spelled = spell(secret).strip(".*=")
                for form in {spelled, json.dumps(spelled)[1:-1]}:
                    assert form not in data, f"{path.name} has {form}"


# -- Clients and hosts -----------------------------------------------------------------------------


async def talk(client: Any) -> None:
    """Make a server say its secrets everywhere."""
    with suppress(McpTrioError):
        await client.call_tool("leak", {})
    for fetch in (client.list_tools, client.list_prompts, client.ping):
        with suppress(McpTrioError):
            await fetch()
    with suppress(McpTrioError):
        await client.read_resource("x://leak")


async def trio_client(command: Sequence[str], record: Path, env: Mapping[str, str]) -> None:
    async with mcp_trio.connect_stdio(command, env=env, record=record, stderr="discard") as client:
        await talk(client)


async def asyncio_client(command: Sequence[str], record: Path, env: Mapping[str, str]) -> None:
    async with mcp_asyncio_shim.connect(command, env=env, record=record) as client:
        await talk(client)


@pytest.mark.parametrize("driver", ["trio", "asyncio"])
def test_variables_and_arguments_of_a_client_are_in_no_trace(
    driver: str, spy: list[str], tmp_path: Path
) -> None:
    command = [*spy, "--api-key", ARGUMENT]
    record = tmp_path / "out" / "x.mcp.jsonl"
    record.parent.mkdir()
    env = {"X_VARIABLE": VARIABLE, "X_PASSPHRASE": WORDS}
    if driver == "trio":
        trio.run(trio_client, command, record, env)
    else:
        asyncio.run(asyncio_client(command, record, env))
    assert_hidden(record.parent, VARIABLE, WORDS, ARGUMENT)
    assert "‹redacted " in record.read_text()


@pytest.mark.parametrize("driver", ["trio", "asyncio"])
def test_inherited_variables_with_names_of_secrets_are_in_no_trace(
    driver: str, spy: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program passes on its whole environment: only the name says that it's a secret."""
    monkeypatch.setenv("X_KEY", VARIABLE)
    record = tmp_path / "out" / "x.mcp.jsonl"
    record.parent.mkdir()

    async def with_trio() -> None:
        opened = mcp_trio.connect_stdio(spy, inherit_env=True, record=record, stderr="discard")
        async with opened as client:
            await talk(client)

    async def with_asyncio() -> None:
        async with mcp_asyncio_shim.connect(spy, inherit_env=True, record=record) as client:
            await talk(client)

    if driver == "trio":
        trio.run(with_trio)
    else:
        asyncio.run(with_asyncio())
    assert_hidden(record.parent, VARIABLE)


def test_arguments_of_a_server_of_an_asyncio_host_are_in_no_trace(
    spy: list[str], tmp_path: Path
) -> None:
    record = tmp_path / "out"

    async def main() -> None:
        servers = {"spy": [*spy, "--api-key", ARGUMENT]}
        async with mcp_asyncio_shim.Host(servers, record=record, wait=None) as host:
            await talk(host.client("spy"))

    asyncio.run(main())
    assert_hidden(record, ARGUMENT)


def test_values_of_a_configured_server_are_in_no_trace_and_no_audit_record(
    spy: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server repeats a variable, an input, a file's value and an argument; all are hidden."""
    monkeypatch.setenv("X_ONE", VARIABLE)
    project = tmp_path / "project"
    project.mkdir()
    (project / "vars").write_text(f"X_FILE={IN_FILE}\n")
    entry = {
        "command": spy[0],
        "args": [*spy[1:], "--api-key", ARGUMENT, "${X_ONE}", "${input:what}"],
        "env": {"X_TWO": "${X_ONE}", "X_THREE": "${input:what}"},
        "envFile": str(project / "vars"),
    }
    inputs = [{"id": "what", "type": "promptString", "description": "What?"}]
    file = project / ".vscode" / "mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"servers": {"spy": entry}, "inputs": inputs}))
    out = tmp_path / "out"
    said = [VARIABLE, INPUT, IN_FILE, ARGUMENT]

    async def main() -> None:
        with closing(AuditFile(out / "audit.jsonl")) as audit:
            async with Host(
                file,
                record=out,
                stderr="discard",
                wait=None,
                approvals=MemoryApprovals(),
                on_approve_server=lambda question: True,
                on_approve_definitions=lambda question: True,
                on_input=lambda given: INPUT,
                on_call=lambda server, tool, arguments: "allow",
                audit=audit.write,
                audit_arguments="redacted",
            ) as host:
                await talk(host.client("spy"))
                with suppress(McpTrioError):
                    await host.call_tool("spy", "leak", {"texts": said, said[0]: 1})

    out.mkdir()
    trio.run(main)
    assert_hidden(out, VARIABLE, IN_FILE, INPUT, ARGUMENT, least=2)


# -- Over HTTP -------------------------------------------------------------------------------------


class _Echo(BaseHTTPRequestHandler):
    """A server that answers each request with an error that has its target and headers."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        message = json.loads(self.rfile.read(size))
        secrets = [HEADER, PATH, QUERY]
        said = [spell(secret) for secret in secrets for spell in SPELLINGS]
        error = {"code": -32000, "message": self.path + str(self.headers), "data": said}
        answer = {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
        body = json.dumps(answer).encode()
        self.send_response(200)
        for name, value in (
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("server", f"echo/{HEADER}"),
            ("location", f"/s/{PATH}/next?again={QUERY}"),
            ("www-authenticate", f'Bearer resource_metadata="http://127.0.0.1/.well-known/{PATH}"'),
            ("x-said", quote(HEADER)),
            (f"x-{HEADER}", "1"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_DELETE = do_POST  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def echo() -> Iterator[str]:
    """Return the URL of a server that echoes, with secrets in its path and query."""
    with threaded_http_server(_Echo) as url:
        yield f"{url}/s/{PATH}/mcp?as={QUERY}"


@pytest.mark.parametrize("driver", ["trio", "asyncio"])
@pytest.mark.parametrize("name", ["authorization", "x-functions-key", "x-tenant", "cookie"])
def test_headers_and_url_of_a_client_are_in_no_trace(
    driver: str, name: str, echo: str, tmp_path: Path
) -> None:
    """The server echoes them; equal values keep equal pseudonyms, so a reader can compare."""
    out = tmp_path / "out"
    out.mkdir()
    value = {"authorization": f"Bearer {HEADER}", "cookie": f"session={HEADER}; a=b"}
    headers = {name: value.get(name, HEADER)}
    options: dict[str, Any] = {"headers": headers, "record": out / "x.mcp.jsonl"}
    options["versions"] = ["2025-11-25"]

    async def main(connect: Any) -> None:
        with suppress(McpTrioError):
            async with connect(echo, **options) as client:
                await client.ping()

    if driver == "trio":
        trio.run(main, mcp_trio.connect_http)
    else:
        asyncio.run(main(mcp_asyncio_shim.connect))
    assert_hidden(out, HEADER, PATH, QUERY)
    # Equal parts have equal pseudonyms, so that requests can be told apart.
    text = (out / "x.mcp.jsonl").read_text()
    parts = set(re.findall(r"/s/([^/]+)/mcp", text))
    assert len(parts) == 1
    assert len(parts.pop()) == len(PATH)


# -- The command -----------------------------------------------------------------------------------


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spy: list[str]) -> ConfiguredServers:
    """Return a user whose file has the server, with its secrets by all ways."""
    servers = ConfiguredServers(tmp_path, monkeypatch)
    variables = tmp_path / "vars"
    variables.write_text(f"X_FILE={IN_FILE}\n")
    servers.env |= {"X_ONE": VARIABLE, "X_FORWARDED": FORWARDED, "SAID": ARGUMENT}
    entry = {
        "command": spy[0],
        "args": [*spy[1:], "${SAID}"],
        "env": {"X_ONE": "${X_ONE}", "X_FORWARDED": "${X_FORWARDED}"},
        "envFile": str(variables),
    }
    servers.add_entry("spy", entry, user=True)
    return servers


COMMANDS = {
    "call": ("call", "leak"),
    "read": ("read", "x://leak"),
    "prompt": ("prompt", "leak"),
    "inspect": ("inspect",),
    "listen": ("listen", "x://leak"),  # an error, because nothing can be subscribed to
    "fuzz": ("fuzz", "--cases", "1", "--seed", "1", "--output", "out/fuzz", "--junit", "out/j.xml"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_values_of_a_configured_server_are_in_no_file_of_a_command(
    command: str, servers: ConfiguredServers
) -> None:
    pytest.importorskip("hypothesis")
    out = servers.project / "out"
    out.mkdir()
    words = [*COMMANDS[command], "--record", "out/x.mcp.jsonl", "--server", "spy"]
    _run(servers, *words, *(() if command in ("inspect", "fuzz") else ("--yes",)))
    assert_hidden(out, VARIABLE, FORWARDED, IN_FILE, ARGUMENT, least=2 if command == "fuzz" else 1)


@pytest.mark.parametrize("command", COMMANDS)
def test_variables_of_a_command_line_are_in_no_file_of_a_command(
    command: str, servers: ConfiguredServers, spy: list[str]
) -> None:
    pytest.importorskip("hypothesis")
    out = servers.project / "out"
    out.mkdir()
    words = [*COMMANDS[command], "--record", "out/x.mcp.jsonl"]
    env = ["--env", "X_ONE", "--env", f"X_TWO={FORWARDED}"]
    _run(servers, *words, *env, "--", *spy, "--token", ARGUMENT)
    assert_hidden(out, VARIABLE, FORWARDED, ARGUMENT, least=2 if command == "fuzz" else 1)


def _run(servers: ConfiguredServers, *words: str) -> None:
    """Run the command, which may fail: what the server says is an error."""
    from tests.harness.world.command import run

    result = run(*words, cwd=servers.project, env=servers.env)
    assert "Traceback" not in result.stderr


def test_trace_with_a_random_path_is_judged_and_compared_as_before(tmp_path: Path) -> None:
    """A pseudonym in the path of the endpoint stands for it in all heads of a file."""
    server = mcp_trio.Server("s")

    @server.tool(description="Add.")
    def add(a: int, b: int) -> int:
        return a + b

    async def record(name: str, *, with_secrets: bool) -> None:
        async with trio.open_nursery() as nursery:
            serve: Any = partial(mcp_trio.serve_http, server, path=f"/s/{PATH}/mcp")
            address = await nursery.start(serve)
            url = f"http://127.0.0.1:{address.port}/s/{PATH}/mcp"
            recording = mcp_trio.Recording(path=tmp_path / name, with_secrets=with_secrets)
            async with mcp_trio.connect_http(url, record=recording) as client:
                await client.call_tool("add", {"a": 1, "b": 2})
            nursery.cancel_scope.cancel()

    trio.run(partial(record, "hidden", with_secrets=False))
    trio.run(partial(record, "plain", with_secrets=True))
    found, traces = [], []
    for name in ("hidden", "plain"):
        with (tmp_path / name).open("rb") as file:
            header, lines = read_trace(file)
            judge = Judge(header)
            found.append([each.row for _, line in lines for each in judge.receive(line)])
        with (tmp_path / name).open("rb") as file:
            traces.append(load_trace(*read_trace(file)))
    assert PATH not in (tmp_path / "hidden").read_text()
    assert PATH in (tmp_path / "plain").read_text()
    assert found[0] == found[1]
    assert not diff_traces(*traces).differences
    from tests.harness.world.command import run

    for words in ("check", "hidden"), ("diff", "hidden", "plain"):
        result = run(*words, cwd=tmp_path)
        assert result.returncode == 0, result.stdout + result.stderr
