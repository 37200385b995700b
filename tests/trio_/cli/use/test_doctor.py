"""`mcp-trio doctor`: each step played failing, and servers of each kind."""

from __future__ import annotations

import json
import re
import socket
import ssl
import sys
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import trio
import trustme

from mcp_trio.cli._errors import CliError
from mcp_trio.cli.use._doctor import STEPS, look_up
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
PAGE = b"<html><title>Sign in</title><form action=/login></form></html>"
LISTENS = "import sys; print('Listening on port 3000', flush=True); sys.stdin.read()"
KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
AUTHORITY = trustme.CA()
PARTLY_USABLE = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}, {"name": 5}]}
REFUSED = {"error": {"code": -32603, "message": "no database\nat line 1"}}


def states(output: str) -> dict[str, str]:
    """Return each step's state, in the order of the output."""
    lines = [line for line in output.splitlines() if not line.startswith(" ")]
    return {line[11:].split()[0]: line[:11].strip() for line in lines}


@contextmanager
def http(
    handler: type[BaseHTTPRequestHandler], url: str = "http{}/mcp"
) -> Iterator[tuple[str, ...]]:
    with threaded_http_server(handler) as root:
        yield (url.format(root.removeprefix("http")),)


def answered(status: int, body: bytes = b"", **headers: str) -> Callable[[], Any]:
    """Return what `http` does for a server, proxy or gateway with one response to everything."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return partial(http, fixed_response(status, named, body))


@contextmanager
def certified(
    name: str = "127.0.0.1",
    *,
    days: tuple[int, int] = (-9, 9),
    is_trusted: bool = True,
    configure: Callable[[ssl.SSLContext], object] = bool,
) -> Iterator[tuple[str, ...]]:
    """A server with a certificate for a name, valid from and until so many days from now."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    first, last = (datetime.now(UTC) + timedelta(days=each) for each in days)
    authority = AUTHORITY if is_trusted else trustme.CA()
    authority.issue_cert(name, not_before=first, not_after=last).configure_cert(context)
    configure(context)
    with tls_server(context) as url:
        yield (url,)


def require_client_certificate(context: ssl.SSLContext) -> None:
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # with 1.3 it comes after the handshake
    context.verify_mode = ssl.CERT_REQUIRED


@contextmanager
def tls_without_tls(scheme: str) -> Iterator[tuple[str, ...]]:
    """A server with TLS, at a URL that says nothing about it."""
    with certified() as (url,):
        yield (url.replace("https", scheme),)


def program(code: str, *options: str) -> Callable[[], Any]:
    return partial(words, *options, "--", sys.executable, "-S", "-c", code)


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
    Failing("TLS", partial(certified, is_trusted=False),
        "is not trusted: unable to get local issuer certificate; if it should be, name"),
    Failing("TLS", partial(certified, days=(-9, -1)),
        "is not trusted: certificate has expired; the server has to renew it, unless the clock"),
    Failing("TLS", partial(certified, days=(1, 9)), "not yet valid; the server has to renew it"),
    Failing("TLS", partial(certified, "example.test"), "; is this the right name?"),
    Failing("TLS", partial(certified, configure=require_client_certificate),
        "SSLV3_ALERT_HANDSHAKE_FAILURE: it may require a client certificate"),
    Failing("TLS", plain, "does not speak TLS; is its address http:// instead?"),
    Failing("authorization", partial(http, fixed_response(401, {})),
        "does not publish where to get one. If it is an API key, send it with --header"),
    Failing("authorization", answered(401, PAGE, content_type="text/html"), "does not publish"),
    Failing("authorization", answered(401, www_authenticate='Basic realm="x"'), "does not publish"),
    Failing("negotiation", answered(200, PAGE, content_type="text/html"),
        "'text/html' instead of JSON or an event stream, perhaps a login page; is"),
    Failing("negotiation", answered(200, b"{}", content_type="text/plain"),
        "is of type 'text/plain' instead of JSON or an event stream; is this the URL of an MCP"),
    Failing("negotiation", answered(200, b"{}"), "has no content type; JSON or an event stream"),
    Failing("negotiation", answered(200, b"{}", content_type="application/json"),
        "the response is invalid: not a JSON-RPC message"),
    Failing("negotiation", answered(200, content_type="application/json"),
        "accepted the request (status 200) but sent no response to it"),
    Failing("negotiation", answered(302, location="https://login.test/?next=x"),
        "to https://login.test/ instead. If it is a login page, a proxy in front of the server"),
    Failing("negotiation", answered(302, location="/login"), "/login instead. If it is a login"),
    Failing("negotiation", answered(301, location="https://127.0.0.1:9/mcp"),
        "a redirect to another origin, which is not followed: connect to https://127.0.0.1:9/mcp"),
    Failing("negotiation", answered(400, b"Invalid Host header", content_type="text/plain"),
        "HTTP status 400 Bad Request (Invalid Host header)"),
    Failing("negotiation", answered(403), "the server denies access, or does not accept this host"),
    Failing("negotiation", answered(405), "Method Not Allowed: is this the URL of an MCP server?"),
    Failing("negotiation", answered(406), "the server can send neither JSON nor an event stream"),
    Failing("negotiation", answered(407), "407 Proxy Authentication Required: a proxy in between"),
    Failing("negotiation", answered(421), "the server is not responsible for this host name"),
    Failing("negotiation", answered(426), "does the server want https:// or ws://?"),
    Failing("negotiation", answered(429, retry_after="30"), "try again after 30 s"),
    Failing("negotiation", answered(502, PAGE, content_type="text/html"),
        "502 Bad Gateway: the server behind it cannot be reached; try again later"),
    Failing("negotiation", answered(511), "log in to this network in a browser first"),
    Failing("negotiation", partial(tls_without_tls, "http"), "with TLS or without as the"),
    Failing("negotiation", partial(tls_without_tls, "ws"), "closed the connection without an answ"),
    Failing("negotiation", partial(http, fixed_response(200, {}), "ws{}/mcp"),
        "no WebSocket, perhaps there is only http://: HTTP status 200"),
    Failing("negotiation", partial(words, *DEAD), "(exit status 1)"),
    Failing("negotiation", program("print('Usage: x')"),
        "it wrote a line that is not an MCP message: b'Usage: x' (exit status 0)"),
    Failing("negotiation", program(KILLED), "(exit status -9, signal 9)"),
    Failing("negotiation", program(LISTENS, "--timeout", "0.5"),
        "It wrote 'Listening on port 3000' to stdout, which is for messages only"),
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
def test_doctor_failing_step_says_what_failed(row: Failing, tmp_path: Path) -> None:
    """The steps that need it aren't tried, and the status says whether there is a connection."""
    AUTHORITY.cert_pem.write_to_path(tmp_path / "ca.pem")
    with row.server() as server:
        result = run("doctor", "--json", *server, env={"SSL_CERT_FILE": str(tmp_path / "ca.pem")})
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


class FailingResolver(trio.abc.HostnameResolver):
    """The system's lookup of names, which fails with an error number."""

    def __init__(self, number: int) -> None:
        self.number = number

    async def getaddrinfo(self, *_: object, **__: object) -> Any:
        await trio.lowlevel.checkpoint()
        raise socket.gaierror(self.number, "as the system says it")

    async def getnameinfo(self, *_: object) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (socket.EAI_NONAME, "there is no host tea.example (as the system says it); is the name"),
        (socket.EAI_AGAIN, "tea.example cannot be looked up now (as the system says it); is there"),
    ],
)
async def test_doctor_name_that_is_not_found_says_why(number: int, text: str) -> None:
    """Without a network, no name is known: the name may be right."""
    trio.socket.set_custom_hostname_resolver(FailingResolver(number))
    with pytest.raises(CliError, match=re.escape(text)):
        await look_up("tea.example", 443)


@contextmanager
def only_at(path: str) -> Iterator[str]:
    """The greeter with Streamable HTTP or HTTP+SSE, and nothing at other paths."""
    paths = ("--path", "/other", "--sse-path", path) if path == "/sse" else ("--path", path)
    with served(ROOT / "examples" / "greeter.py", *paths) as server:
        yield server.url.removesuffix(paths[1])


@pytest.mark.parametrize(
    ("path", "given"),
    [("/tea/mcp", "/tea"), ("/tea/mcp", "/tea/v1"), ("/sse", "/wrong")],
)
def test_doctor_wrong_path_names_the_url_that_answers(path: str, given: str) -> None:
    """A server behind a path, or with HTTP+SSE only: its URL is shown and not used."""
    with only_at(path) as root:
        result = run("doctor", "--revision", "2025-03-26", f"{root}{given}")
    assert result.returncode == 3
    assert f"An MCP server answers at {root}{path}: use that URL\n" in result.stdout


@pytest.mark.parametrize(
    ("challenge", "text"),
    [
        (
            'Basic realm="wiki"',
            "Something that requires a login answers at {}/mcp: is it the server?",
        ),
        (
            'Bearer resource_metadata="http://127.0.0.1:1/m"',
            "An MCP server that requires a login answers at {}/mcp: use that URL",
        ),
    ],
)
def test_doctor_login_at_the_usual_path_is_a_server_if_it_names_metadata(
    challenge: str, text: str
) -> None:
    login: Any = fixed_response(401, {"www-authenticate": challenge})

    class AtPath(login):  # type: ignore[misc]
        def send_response(self, code: int, message: str | None = None) -> None:
            super().send_response(code if self.path == "/mcp" else 404, message)

    with threaded_http_server(AtPath) as root:
        result = run("doctor", f"{root}/wrong")
    assert text.format(root) in result.stdout


def test_doctor_query_and_tokens_are_not_printed() -> None:
    with threaded_http_server(fixed_response(404, {})) as root:
        url = run("doctor", f"{root}/mcp?key=SECRETQUERY")
    stray = run(
        "doctor", "--", sys.executable, "-c", "print('use sk-ant-api03-SECRETTOKENSECRETTOKEN')"
    )
    for each in (url, stray):
        assert each.returncode == 3
        assert "SECRET" not in each.stdout + each.stderr
    assert "/mcp: HTTP status 404" in url.stdout
    assert "‹redacted" in stray.stdout


def test_doctor_each_step_is_played_failing() -> None:
    assert list(dict.fromkeys(row.step for row in FAILING)) == NAMES


# -- Servers of each kind --------------------------------------------------------------------------


def test_doctor_file_prints_a_line_for_each_step() -> None:
    result = run("doctor", "examples/greeter.py")
    assert result.returncode == 0
    assert result.stdout == (
        "ok         name           examples/greeter.py is a Python file\n"
        "skipped    connection     the negotiation starts the program\n"
        "skipped    TLS            stdin and stdout do not use it\n"
        "skipped    authorization  stdin and stdout need no token\n"
        "ok         negotiation    greeter 0, revision 2026-07-28\n"
        "ok         lists          1 tool\n"
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
    assert "ok         lists          1 tool, 1 resource, 0 resource templates, 1 prompt\n" in (
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
