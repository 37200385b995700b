"""`mcp-trio doctor`: each step played failing, and servers of each kind."""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import trio
import trustme

from mcp_trio.cli.use._doctor import STEPS
from tests.harness.world.command import DEAD, ROOT, SILENT, answering, run, served
from tests.harness.world.oauth import oauth_world
from tests.harness.world.threaded_http import fixed_response, threaded_http_server

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from tests.harness.world.oauth import OAuthWorld
    from tests.trio_.cli.configured.configured import ConfiguredServers

NAMES = [each.name for each in STEPS]
PARTLY_USABLE = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}, {"name": 5}]}
REFUSED = {"error": {"code": -32603, "message": "no database\nat line 1"}}


def states(output: str) -> dict[str, str]:
    """Return each step's state, in the order of the output."""
    lines = [line for line in output.splitlines() if not line.startswith(" ")]
    return {line[11:].split()[0]: line[:11].strip() for line in lines}


@contextmanager
def http(handler: type[BaseHTTPRequestHandler], url: str = "{}/mcp") -> Iterator[tuple[str, ...]]:
    with threaded_http_server(handler) as root:
        yield (url.format(root),)


@contextmanager
def untrusted() -> Iterator[tuple[str, ...]]:
    """A server whose certificate is of an unknown authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with tls_server(context) as url:
        yield (url,)


@contextmanager
def plain() -> Iterator[tuple[str, ...]]:
    """A server without TLS, at an https URL."""
    with threaded_http_server(fixed_response(400, {})) as root:
        yield (f"{root.replace('http', 'https')}/mcp",)


class _TlsServer(ThreadingHTTPServer):
    context: ssl.SSLContext

    def finish_request(self, request: Any, client_address: Any) -> None:
        with suppress(OSError), self.context.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)


@contextmanager
def tls_server(
    context: ssl.SSLContext, handler: type[BaseHTTPRequestHandler] | None = None
) -> Iterator[str]:
    with _TlsServer(("127.0.0.1", 0), handler or fixed_response(404, {})) as server:
        server.context = context
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def words(*given: str) -> Iterator[tuple[str, ...]]:
    yield given


class Failing(NamedTuple):
    """A server whose first failing step is `step`. `text` is in its line."""

    step: str
    server: Callable[[], Any]
    text: str
    status: int = 3


FAILING = [
    Failing("name", partial(words, "--", "no-such-program"),
        "there is no program no-such-program on PATH; is it installed?"),
    Failing("name", partial(words, "--", "/no/such"), "/no/such is not a program; is the path"),
    Failing("name", partial(words, f"http://{'x' * 64}.test/mcp"), "is not a host name"),
    Failing("connection", partial(words, "http://127.0.0.1:1/mcp"),
        "connection refused; is the server running, and on this port?"),
    Failing("connection", partial(words, "wss://127.0.0.1:1/mcp"), "connection refused; is"),
    Failing("TLS", untrusted, "is not trusted: unable to get local issuer certificate; if"),
    Failing("TLS", plain, "does not speak TLS; is its address http:// instead?"),
    Failing("authorization", partial(http, fixed_response(401, {})),
        "does not publish where to get one. If it is an API key, send it with --header"),
    Failing("negotiation", partial(words, *DEAD), "(exit status 1)"),
    Failing("negotiation", partial(words, "--timeout", "0.3", *SILENT), "did not answer within"),
    Failing("negotiation", partial(words, *answering({}, initialize=REFUSED)), "no database"),
    Failing("negotiation", partial(http, fixed_response(404, {})), "HTTP status 404"),
    Failing("lists", partial(words, *answering({"tools": {}}, tools_list=REFUSED)),
        "the server answered with an error: no database (-32603)", 1),
    Failing("lists", partial(words, *answering({"tools": {}, "prompts": {}}, tools_list=REFUSED,
        prompts_list={"prompts": []})), "tools: the server answered with an error: no database", 1),
    Failing("lists", partial(words, *answering({"tools": {}}, tools_list=PARTLY_USABLE)),
        "tools: ", 1),
]  # fmt: skip


@pytest.mark.parametrize("row", FAILING, ids=lambda row: f"{row.step}-{row.text[:20]}")
def test_doctor_failing_step_says_what_failed(row: Failing) -> None:
    """The steps that need it aren't tried, and the status says whether there is a connection."""
    with row.server() as server:
        result = run("doctor", "--json", *server)
    steps = json.loads(result.stdout)["steps"]
    found = {each["step"]: each["state"] for each in steps}
    assert list(found) == NAMES
    first = next(each for each in steps if each["state"] == "failed")
    assert (first["step"], result.returncode) == (row.step, row.status)
    assert row.text in first["text"]
    if row.step != "authorization":
        assert set(NAMES[NAMES.index(row.step) + 1 :]) == {
            name for name, state in found.items() if state == "not tried"
        }


def test_doctor_each_step_is_played_failing() -> None:
    assert list(dict.fromkeys(row.step for row in FAILING)) == NAMES


# -- Servers of each kind --------------------------------------------------------------------------


def test_doctor_file_prints_a_line_for_each_step() -> None:
    result = run("doctor", "examples/greeter.py")
    assert result.returncode == 0
    assert result.stdout == (
        "ok         name           examples/greeter.py is a server of Python\n"
        "skipped    connection     a program is started for the negotiation\n"
        "skipped    TLS            a program on stdin and stdout has none\n"
        "skipped    authorization  a program on stdin and stdout needs no token\n"
        "ok         negotiation    greeter 0, revision 2026-07-28\n"
        "ok         lists          1 tools\n"
    )


def test_doctor_url_without_path_examines_the_endpoint(greeter: tuple[str, ...]) -> None:
    root = greeter[0].removesuffix("/mcp")
    result = run("doctor", "--trace", root)
    assert result.returncode == 0, result.stdout
    assert f"{root} is no MCP endpoint (HTTP status 404); trying {root}/mcp\n" in result.stderr
    assert result.stderr.count("trying") == 1
    assert "tools/call" not in result.stderr
    assert states(result.stdout) == dict.fromkeys(NAMES, "ok") | {"TLS": "skipped"}
    assert "authorization  no token is needed to connect\n" in result.stdout


@pytest.mark.parametrize(
    ("url", "revision", "authorization"),
    [
        ("http{}/mcp", "2025-11-25", "ok"),
        ("http{}/sse", "2024-11-05", "ok"),
        ("ws{}/mcp", "2025-06-18", "skipped"),
    ],
)
def test_doctor_url_of_each_transport_passes(url: str, revision: str, authorization: str) -> None:
    with served(ROOT / "examples" / "greeter.py", "--sse-path", "/sse") as server:
        place = server.url.removeprefix("http").removesuffix("/mcp")
        result = run("doctor", "--revision", revision, url.format(place))
    passed = dict.fromkeys(NAMES, "ok") | {"TLS": "skipped", "authorization": authorization}
    assert (states(result.stdout), result.returncode) == (passed, 0)
    assert f"greeter 0, revision {revision}\n" in result.stdout


def test_doctor_both_urls_are_no_endpoint_keeps_first_error() -> None:
    with threaded_http_server(fixed_response(404, {})) as root:
        result = run("doctor", root)
    assert result.returncode == 3
    assert f"failed     negotiation    {root}: " in result.stdout


def test_doctor_further_lines_of_a_server_are_quoted() -> None:
    """A server must not imitate the line of a step."""
    reply = {"error": {"code": 1, "message": "no\nok         lists          9 tools\x1b[2J"}}
    result = run("doctor", *answering({"tools": {}}, tools_list=reply))
    assert "\n  | ok         lists          9 tools\\u001b[2J\n" in result.stdout


@pytest.fixture
async def world() -> AsyncIterator[OAuthWorld]:
    async with oauth_world() as world:
        yield world


async def doctor_of(
    world: OAuthWorld, home: Path, *options: str, **env: str
) -> subprocess.CompletedProcess[str]:
    words = "doctor", "--revision", "2025-11-25", *options, world.url
    environment = {"XDG_DATA_HOME": str(home), "BROWSER": "false %s", **env}
    return await trio.to_thread.run_sync(partial(run, *words, env=environment))


async def test_doctor_protected_server_says_where_to_log_in(
    world: OAuthWorld, tmp_path: Path
) -> None:
    """The client isn't registered, and no token is requested."""
    world.supported = ["add", "read"]
    result = await doctor_of(world, tmp_path)
    assert result.returncode == 3
    assert (
        f"ok         authorization  a token is required; {world.root} gives it with the scopes"
        " add read\n"
    ) in result.stdout
    assert f"`mcp-trio login {world.url}` gets a token" in result.stdout
    assert {path for path, _ in world.requests} <= {
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
    }


async def test_doctor_with_token_is_connected(world: OAuthWorld, tmp_path: Path) -> None:
    world.good.add("CANARY-own")
    result = await doctor_of(world, tmp_path, "--token-env", "OWN", OWN="CANARY-own")
    assert result.returncode == 0, result.stdout
    assert "ok         authorization  a token is required; " in result.stdout
    assert "CANARY" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("code_challenge_methods_supported", None, "does not say that it supports PKCE with S256"),
        ("issuer", "https://as.example", "https://as.example"),
        ("authorization_endpoint", None, "has no authorization endpoint"),
    ],
)
async def test_doctor_metadata_without_which_no_login_works_fails(
    world: OAuthWorld, tmp_path: Path, name: str, value: str | None, text: str
) -> None:
    """With a token of the user's own it is the only failing step, and the exit status is 1."""
    world.deviations = {name: value}
    world.good.add("CANARY-own")
    result = await doctor_of(world, tmp_path, "--token-env", "OWN", OWN="CANARY-own")
    assert result.returncode == 1, result.stdout
    [line] = [line for line in result.stdout.splitlines() if line.startswith("failed")]
    assert line[11:].startswith("authorization ")
    assert text in line


async def test_doctor_without_registration_names_the_option(
    world: OAuthWorld, tmp_path: Path
) -> None:
    world.deviations = {"registration_endpoint": None}
    assert "--client-id" in (await doctor_of(world, tmp_path)).stdout


def test_doctor_trusted_certificate_prints_its_end(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with tls_server(context) as url:
        result = run("doctor", url, env={"SSL_CERT_FILE": str(tmp_path / "ca.pem")})
    assert "ok         TLS            TLSv1.3; the certificate is trusted, until " in result.stdout
    assert "failed     negotiation" in result.stdout


# -- Configured servers ----------------------------------------------------------------------------


def test_doctor_unapproved_server_is_not_started(servers: ConfiguredServers) -> None:
    servers.add()
    result = servers.run("doctor", "server:demo", status=3)
    assert states(result.stdout) == {"name": "failed"} | dict.fromkeys(NAMES[1:], "not tried")
    assert "to approve it: mcp-trio servers approve demo. Or" in result.stdout
    assert servers.starts() == 0


@pytest.mark.parametrize("words", [["server:demo"], ["--server", "demo"]])
def test_doctor_approved_server_is_started(servers: ConfiguredServers, words: list[str]) -> None:
    servers.add()
    result = servers.run("doctor", "--approve-server", "demo", *words)
    assert "ok         name           demo of " in result.stdout
    assert "ok         lists          1 tools, 1 resources, 0 resource templates, 1 prompts\n" in (
        result.stdout
    )
    assert result.stderr.count("--approve-server lets demo") == 1


@pytest.mark.parametrize("row", [("ws", "ws://127.0.0.1:1/mcp"), ("sse", "http://127.0.0.1:1/s")])
def test_doctor_configured_url_of_each_transport_is_examined(
    servers: ConfiguredServers, row: tuple[str, str]
) -> None:
    servers.add_entry("demo", {"type": row[0], "url": row[1]}, user=True)
    result = servers.run("doctor", "server:demo", status=3)
    assert "failed     connection     cannot connect to 127.0.0.1:1" in result.stdout


def test_doctor_input_is_asked_for_once(servers: ConfiguredServers) -> None:
    """The examination and the session both need it."""
    servers.add("elsewhere")
    command, arguments = servers.command("elsewhere")
    entry = {"command": command, "args": arguments, "env": {"KEY": "${input:key}"}}
    asked = {"id": "key", "type": "promptString", "description": "The key", "password": True}
    file = servers.write(
        servers.project / "other.json", {"servers": {"demo": entry}, "inputs": [asked]}
    )
    words = ["doctor", "--config", str(file), "--approve-server", "demo", "server:demo"]
    with servers.terminal(*words) as terminal:
        terminal.type("CANARY-entered\n", behind="The key")
        shown = terminal.rest()
    assert terminal.status == 0, shown
    assert "The key" not in shown
    assert "CANARY" not in shown


def test_doctor_values_of_variables_are_not_printed(servers: ConfiguredServers) -> None:
    with threaded_http_server(fixed_response(404, {})) as root:
        entry = {"type": "http", "url": f"{root}/${{PLACE}}/mcp", "headers": {"x-a": "${PLACE}"}}
        servers.add_entry("demo", entry, user=True)
        servers.env["PLACE"] = "CANARY-place-of-mine"
        result = servers.run("doctor", "server:demo", status=3)
    assert "failed     negotiation" in result.stdout
    assert "CANARY" not in result.stdout + result.stderr


def test_doctor_unknown_server_is_misuse(servers: ConfiguredServers) -> None:
    assert "there is no server nowhere" in servers.run("doctor", "server:nowhere", status=2).stderr
