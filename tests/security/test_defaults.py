"""Each default that protects someone, played by a caller that gives no options.

`ROWS` has a check for each public callable with such a default. `signatures.txt`, which the tests
of `tests/layering` compare with the code, says which callables these are: one that gets such an
option later fails here until it has a row.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
import trio
import trustme

import mcp_asyncio_shim
import mcp_trio
from mcp_core import Config, ConnectFailed, Connection, Role, escape_text
from mcp_core.adapters import Recording, SqliteTaskStore
from mcp_core.auth import AuthorizationFailed, ClientProfile, InvalidToken, JwtVerifier
from mcp_core.host import ApprovalRequired, ServerApproval, ToolRule, decide_call
from mcp_core.http import (
    HostOriginPolicy,
    HttpClient,
    HttpClientOptions,
    HttpLimits,
    HttpOptions,
    WebSocketUpgrade,
)
from mcp_core.http.server._quotas import UnfinishedBodies
from mcp_core.registry import CacheHint, Server, TaskOptions, Tasks
from mcp_core.runtime import LAST_GRACE, SHUTDOWN_GRACE
from mcp_core.runtime.host import CallAnswer
from mcp_core.tasks import TaskLimits
from mcp_core.tasks._record import quota_key
from mcp_core.types import ClientCapabilities, Implementation, ToolAnnotations
from mcp_core.urls import UriMatcher, UriTemplate, may_fetch
from mcp_trio.host import ApprovalFile, UnsafeApprovals
from mcp_trio.testing import find_client_faults, find_faults
from tests.core.auth.minting import ISSUER, JWKS, NOW, RESOURCE, run_without_steps, token
from tests.core.auth.test_providers import log_in, profile_of
from tests.fakes.providers import PROVIDERS, ProviderFake
from tests.harness.wire.asgi import serve_app
from tests.harness.wire.router import POST, D, initialize
from tests.layering.signatures import GOLDEN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mcp_core.host import AuditRecord

    Check = Callable[[pytest.MonkeyPatch, Path], None]

# Options by what their defaults keep from happening.
PROTECTIVE: Final = {
    "inherit_env": "a program gets the secrets of the environment",
    "allow_cleartext": "everyone on the way reads a token",
    "tls": "a server without a certificate is believed",
    "allow_private": "a server on the internet names addresses behind a firewall",
    "is_trusted": "a server says itself that its tool is harmless",
    "approve_all": "a call is made that nobody approved",
    "approve": "a call is made that nobody approved",
    "audit_arguments": "arguments are written to a file",
    "with_secrets": "tokens are written to a file",
    "hosts": "a name that an attacker has pointed at this machine reaches the server",
    "origins": "a web page calls the server",
    "host": "another machine calls the server",
    "trusted_proxies": "a client chooses its own address",
    "unchecked": "a client reads a file above the directory",
    "is_pattern": "a rule for one tool holds for many",
    "lifetime": "an answer holds for longer than the user meant",
    "scope": "a cache gives one user's result to another",
    "rerun": "a task with side effects runs twice",
    "joiners": "characters that cannot be seen are shown as they are",
    "per_principal": "one user takes all places of tasks",
    "client_share": "one address takes what all clients share",
    "stored_bytes": "arguments and results of tasks fill the memory",
    "file_bytes": "results of tasks fill the disk",
    "bodies": "unfinished request bodies fill the memory",
    "assume_pkce": "a stolen code is redeemed at a server without PKCE",
    "send_resource": "a token for one MCP server is valid at others",
    "metadata_issuer": "metadata of another issuer is believed",
    "client_ids": "a token without an audience is accepted",
}
# Of these the value alone does nothing, or another test plays it, which is named.
ELSEWHERE: Final = {
    "mcp_core.adapters.HttpRunOptions: hosts": "passed on to ServeOptions, which has a row",
    "mcp_core.adapters.HttpRunOptions: origins": "passed on to ServeOptions, which has a row",
    "mcp_core.host.ToolRule: lifetime": "test_approvals.py::test_rule_keeps_its_form_when_stored",
    "mcp_core.registry.Context.url_elicitation: lifetime": "seconds, another meaning",
    "mcp_core.registry.Server.answer: host": "what serves a request, another meaning",
    "mcp_core.registry.Server.as_declared: host": "what serves a request, another meaning",
    "mcp_trio.LoginConfig: tls": (
        "test_attacks_cleartext.py::test_untrusted_authorization_server_names_the_option"
    ),
    "mcp_trio.serve_http: tls": "a server's certificate, another meaning",
}
ROWS: Final[dict[str, Check]] = {}

TOKEN: Final = {"authorization": "Bearer canary"}
BODY: Final = json.dumps(initialize(D)).encode()


def row(label: str) -> Callable[[Check], Check]:
    """Add a check for an option of a public callable: `package.callable: option`."""

    def add(check: Check) -> Check:
        ROWS[label] = check
        return check

    return add


def protected() -> Iterator[str]:
    """Yield all options of `PROTECTIVE` that have a default, as `package.callable: option`."""
    label = ""
    for line in GOLDEN.read_text("utf-8").splitlines():
        option = re.match(r" +(\w+): .* = ", line)
        if not line.startswith(" "):
            label = line
        elif option is not None and option[1] in PROTECTIVE:
            yield f"{label}: {option[1]}"


def test_every_default_that_protects_has_a_row() -> None:
    assert sorted(protected()) == sorted([*ROWS, *ELSEWHERE])


@pytest.mark.parametrize("label", sorted(protected()))
def test_default_protects(label: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if label in ROWS:
        ROWS[label](monkeypatch, tmp_path)


# -- Programs --------------------------------------------------------------------------------------

_TELL: Final = "import os, sys; open(sys.argv[1], 'w').write(' '.join(os.environ))"


def _check_environment(
    start: Callable[[list[str]], Awaitable[object] | object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Start a program that writes the names of its variables to a file, and ends."""
    monkeypatch.setenv("CANARY_TOKEN", "secret")
    found = tmp_path / "variables"
    with pytest.raises(ConnectFailed):
        start([sys.executable, "-c", _TELL, str(found)])
    names = found.read_text().split()
    assert "PATH" in names
    assert "CANARY_TOKEN" not in names


@row("mcp_trio.connect_stdio: inherit_env")
def _stdio(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def start(command: list[str]) -> None:
        async with mcp_trio.connect_stdio(command, stderr="discard"):
            raise AssertionError("it does not speak MCP")

    _check_environment(lambda command: trio.run(start, command), monkeypatch, tmp_path)


@row("mcp_asyncio_shim.connect: inherit_env")
def _asyncio_stdio(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def start(command: list[str]) -> None:
        async with mcp_asyncio_shim.connect(command):
            raise AssertionError("it does not speak MCP")

    _check_environment(lambda command: asyncio.run(start(command)), monkeypatch, tmp_path)


@row("mcp_trio.Host: inherit_env")
def _host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def start(command: list[str]) -> None:
        async with mcp_trio.Host({"a": command}, stderr="discard", restart=False) as host:
            raise ConnectFailed(host.status()["a"].reason)

    _check_environment(lambda command: trio.run(start, command), monkeypatch, tmp_path)


@row("mcp_asyncio_shim.Host: inherit_env")
def _asyncio_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def start(command: list[str]) -> None:
        async with mcp_asyncio_shim.Host({"a": {"command": command}}, restart=False) as host:
            raise ConnectFailed(host.status()["a"].reason)

    _check_environment(lambda command: asyncio.run(start(command)), monkeypatch, tmp_path)


@row("mcp_trio.testing.find_faults: inherit_env")
def _faults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    steps = [("open", "2025-11-25"), ("request", "ping")]
    _check_environment(lambda command: find_faults(command, steps), monkeypatch, tmp_path)


@row("mcp_trio.testing.find_client_faults: inherit_env")
def _client_faults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def start(command: list[str]) -> object:
        code = f"{_TELL}; sys.exit(1)"
        return find_client_faults([*command[:2], code, *command[3:], "{server}"], [])

    _check_environment(start, monkeypatch, tmp_path)


# -- Clients ---------------------------------------------------------------------------------------


class _NoAddresses(trio.abc.HostnameResolver):
    async def getaddrinfo(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("no name is resolved, because nothing may be sent")

    getnameinfo = getaddrinfo


def _connect(connect: Any, url: str, **options: Any) -> None:
    """Connect with a client of trio or asyncio."""

    async def main() -> None:
        async with connect(url, **options):
            raise AssertionError("it must not connect")

    if connect is mcp_asyncio_shim.connect:
        asyncio.run(main())
        return

    async def without_names() -> None:
        trio.socket.set_custom_hostname_resolver(_NoAddresses())
        await main()

    trio.run(without_names)


@row("mcp_trio.connect_http: allow_cleartext")
def _http_token(*_: object) -> None:
    with pytest.raises(ValueError, match="would be sent unencrypted"):
        _connect(mcp_trio.connect_http, "http://mcp.example/mcp", headers=TOKEN)


@row("mcp_trio.connect_websocket: allow_cleartext")
def _websocket_token(*_: object) -> None:
    with pytest.raises(ValueError, match="would be sent unencrypted"):
        _connect(mcp_trio.connect_websocket, "ws://mcp.example/mcp", headers=TOKEN)


@row("mcp_asyncio_shim.connect: allow_cleartext")
def _asyncio_token(*_: object) -> None:
    for scheme in "http", "ws":
        with pytest.raises(ValueError, match="would be sent unencrypted"):
            _connect(mcp_asyncio_shim.connect, f"{scheme}://mcp.example/mcp", headers=TOKEN)


@row("mcp_core.http.HttpClientOptions: allow_cleartext")
def _options_token(*_: object) -> None:
    connection = Connection(Role.CLIENT, Config(Implementation("c", "1"), ClientCapabilities()))
    with pytest.raises(ValueError, match="would be sent unencrypted"):
        HttpClient(connection, "http://mcp.example/mcp", HttpClientOptions(headers=TOKEN))


@row("mcp_core.http.WebSocketUpgrade: allow_cleartext")
def _upgrade_token(*_: object) -> None:
    with pytest.raises(ValueError, match="would be sent unencrypted"):
        WebSocketUpgrade("ws://mcp.example/mcp", headers=TOKEN, key=b"0" * 16)


def _check_certificate(connect: Any, scheme: str) -> None:
    """Connect to a server whose certificate no authority of this machine has issued."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    received = b""

    async def main() -> None:
        async def serve(stream: trio.SocketStream) -> None:
            nonlocal received
            encrypted = trio.SSLStream(stream, context, server_side=True)
            with pytest.raises((trio.BrokenResourceError, trio.ClosedResourceError)):
                received += await encrypted.receive_some()

        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
            port = listeners[0].socket.getsockname()[1]
            url = f"{scheme}://127.0.0.1:{port}/mcp"
            with pytest.raises(ConnectFailed, match="certificate"):
                await trio.to_thread.run_sync(lambda: _connect(connect, url, headers=TOKEN))
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert received == b""


@row("mcp_trio.connect_http: tls")
def _http_certificate(*_: object) -> None:
    _check_certificate(mcp_trio.connect_http, "https")


@row("mcp_trio.connect_websocket: tls")
def _websocket_certificate(*_: object) -> None:
    _check_certificate(mcp_trio.connect_websocket, "wss")


@row("mcp_asyncio_shim.connect: tls")
def _asyncio_certificate(*_: object) -> None:
    _check_certificate(mcp_asyncio_shim.connect, "https")


@row("mcp_core.urls.may_fetch: allow_private")
def _private_address(*_: object) -> None:
    assert not may_fetch("10.0.0.1", allow_loopback=True)
    assert may_fetch("10.0.0.1", allow_loopback=True, allow_private=True)


# -- Hosts -----------------------------------------------------------------------------------------


def _notes() -> Server:
    server = Server("notes")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def search(word: str) -> str:
        """Search the notes."""
        return f"nothing about {word}"

    @server.tool
    def write(text: str) -> str:
        """Write a note."""
        return f"wrote {text}"

    return server


async def _call_without_consent(kind: Any) -> None:
    async with kind({"notes": _notes()}) as host:
        with pytest.raises(ApprovalRequired):
            await host.call_tool("notes", "write", {"text": "a"})


async def _call_with_audit(kind: Any) -> None:
    records: list[AuditRecord] = []
    async with kind({"notes": _notes()}, audit=records.append) as host:
        await host.call_tool("notes", "search", {"word": "canary"})
    [record] = records
    assert record.arguments_digest
    assert "canary" not in repr(record)


@row("mcp_trio.Host: approve")
def _host_approves(*_: object) -> None:
    trio.run(_call_without_consent, mcp_trio.Host)


@row("mcp_asyncio_shim.Host: approve")
def _asyncio_host_approves(*_: object) -> None:
    asyncio.run(_call_without_consent(mcp_asyncio_shim.Host))


@row("mcp_trio.Host: audit_arguments")
def _host_audits(*_: object) -> None:
    trio.run(_call_with_audit, mcp_trio.Host)


@row("mcp_asyncio_shim.Host: audit_arguments")
def _asyncio_host_audits(*_: object) -> None:
    asyncio.run(_call_with_audit(mcp_asyncio_shim.Host))


@row("mcp_core.auth.ClientProfile: assume_pkce")
def _pkce(*_: object) -> None:
    with pytest.raises(AuthorizationFailed, match="PKCE"):
        _log_in_at("Cognito", assume_pkce=False)


@row("mcp_core.auth.ClientProfile: send_resource")
def _resource_is_sent(*_: object) -> None:
    with pytest.raises(AuthorizationFailed, match="AADSTS9010010"):
        _log_in_at("Entra", send_resource=True)


@row("mcp_core.auth.ClientProfile: metadata_issuer")
def _metadata_issuer(*_: object) -> None:
    with pytest.raises(AuthorizationFailed, match="metadata_issuer"):
        _log_in_at("Entra, any tenant", metadata_issuer=None)


def _log_in_at(name: str, **default: Any) -> None:
    """Log in at a provider with one setting of its page at its default."""
    [(setting, value)] = default.items()
    assert getattr(ClientProfile(), setting) == value
    log_in(ProviderFake(PROVIDERS[name]), profile_of(name, **default))


@row("mcp_core.auth.JwtVerifier: client_ids")
def _audience(*_: object) -> None:
    verifier = JwtVerifier(ISSUER, RESOURCE, jwks=JWKS)
    with pytest.raises(InvalidToken, match="aud"):
        run_without_steps(verifier.verify(token(without="aud", token_use="access"), NOW))


@row("mcp_core.host.decide_call: is_trusted")
def _hints(*_: object) -> None:
    hints = ToolAnnotations(read_only_hint=True)
    found = decide_call("t", "pinned", is_server_approved=True, annotations=hints)
    assert found.verdict == "ask"


@row("mcp_core.host.decide_call: approve_all")
def _pinned(*_: object) -> None:
    assert decide_call("t", "pinned", is_server_approved=True).verdict == "ask"


@row("mcp_core.host.ToolRule: is_pattern")
def _rule(*_: object) -> None:
    assert not ToolRule(tool="w*").matches("write", None)


@row("mcp_core.runtime.host.CallAnswer: lifetime")
def _answer(*_: object) -> None:
    async def main() -> None:
        asked = []

        def ask(question: Any) -> CallAnswer:
            asked.append(question)
            return CallAnswer(is_allowed=True)

        async with mcp_trio.Host({"notes": _notes()}, on_approve_call=ask) as host:
            for _ in range(2):
                await host.call_tool("notes", "write", {"text": "a"})
        assert len(asked) == 2

    trio.run(main)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_approvals_behind_a_link_are_refused(tmp_path: Path) -> None:
    """A program that can write into the directory could otherwise choose the approvals."""
    real = ApprovalFile(tmp_path / "real.json")
    real.change(lambda stored: stored.with_server("/project/.mcp.json", "a", ServerApproval()))
    (tmp_path / "approvals.json").symlink_to(real.path)
    with pytest.raises(UnsafeApprovals, match="symbolic link"):
        ApprovalFile(tmp_path / "approvals.json").load()


# -- Servers ---------------------------------------------------------------------------------------

_HOST: Final = (b"host", b"localhost")


def _asgi(make: Any, backend: str, *headers: tuple[bytes, bytes], **options: Any) -> list[int]:
    """Send an `initialize` for each header to an ASGI application, and return the statuses."""

    async def main() -> list[int]:
        async with serve_app(make(_notes(), **options)) as host:
            calls = [
                await host.request("POST", [*POST[1:], *given], BODY, client=("127.0.0.1", 1))
                for given in [[_HOST, each] if each[0] != b"host" else [each] for each in headers]
            ]
        return [call.status for call in calls]

    return anyio.run(main, backend=backend)


def _http(*headers: tuple[bytes, bytes], **options: Any) -> list[int]:
    """Do as `_asgi` does, over a socket to `serve_http`."""

    async def main() -> list[int]:
        async with trio.open_nursery() as nursery:
            address = await nursery.start(partial(mcp_trio.serve_http, _notes(), **options))
            found = [await _ask(address, each) for each in headers]
            nursery.cancel_scope.cancel()
        return found

    return trio.run(main)


async def _ask(address: mcp_trio.HttpAddress, header: tuple[bytes, bytes]) -> int:
    given = [header] if header[0] == b"host" else [_HOST, header]
    more = (b"content-length", b"%d" % len(BODY)), (b"connection", b"close")
    lines = [b"%b: %b" % each for each in (*given, *POST[1:], *more)]
    stream = await trio.open_tcp_stream(address.host, address.port)
    async with stream:
        await stream.send_all(b"\r\n".join([b"POST /mcp HTTP/1.1", *lines, b"", BODY]))
        data = b"".join([bytes(each) async for each in stream])
    return int(data.split()[1])


_SERVERS: Final[dict[str, Callable[..., list[int]]]] = {
    "mcp_trio.serve_http": _http,
    "mcp_trio.asgi": partial(_asgi, mcp_trio.asgi, "trio"),
    "mcp_asyncio_shim.asgi": partial(_asgi, mcp_asyncio_shim.asgi, "asyncio"),
}


def _check_host(send: Callable[..., list[int]], *_: object) -> None:
    assert send((b"host", b"rebound.example"), (b"host", b"localhost")) == [421, 200]


def _check_origin(send: Callable[..., list[int]], *_: object) -> None:
    origins = b"https://page.example", b"null", b"http://localhost"
    assert send(*((b"origin", each) for each in origins)) == [403, 403, 200]


def _check_forwarded(send: Callable[..., list[int]], *_: object) -> None:
    """With a quarter of four sessions each, the second session of one address is refused."""
    addresses = [(b"x-forwarded-for", b"203.0.113.%d" % each) for each in (1, 2)]
    limits = HttpLimits(sessions=4)
    assert send(*addresses, limits=limits) == [200, 429]
    assert send(*addresses, limits=limits, trusted_proxies=["127.0.0.1"]) == [200, 200]


for _name, _send in _SERVERS.items():
    row(f"{_name}: hosts")(partial(_check_host, _send))
    row(f"{_name}: origins")(partial(_check_origin, _send))
    row(f"{_name}: trusted_proxies")(partial(_check_forwarded, _send))


@row("mcp_trio.serve_http: host")
def _address(*_: object) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            address = await nursery.start(mcp_trio.serve_http, _notes())
            assert ip_address(address.host).is_loopback
            nursery.cancel_scope.cancel()

    trio.run(main)


@row("mcp_trio.run_http: host")
@row("mcp_trio.run_http: hosts")
def _program(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    """`run_http` is `serve_http` with signals, so its defaults are what it hands on."""
    given: list[Any] = []

    async def serve(
        server: Server, host: str, port: int, *, task_status: Any, **options: Any
    ) -> None:
        given.extend([host, *options["hosts"]])
        task_status.started(mcp_trio.HttpAddress(host, port, "/mcp"))

    monkeypatch.setattr("mcp_trio.http_server._serve.serve_http", serve)
    mcp_trio.run_http(_notes(), port=0)
    assert given == ["127.0.0.1"]


@row("mcp_core.http.HostOriginPolicy: hosts")
def _policy_hosts(*_: object) -> None:
    assert not HostOriginPolicy("127.0.0.1").allows_host(b"rebound.example")


@row("mcp_core.http.HostOriginPolicy: origins")
def _policy_origins(*_: object) -> None:
    assert not HostOriginPolicy("127.0.0.1").allows_origin(b"https://page.example", b"localhost")


@row("mcp_core.http.HttpOptions: trusted_proxies")
def _options_proxies(*_: object) -> None:
    policy = HostOriginPolicy("127.0.0.1")
    assert HttpOptions(host_origin_policy=policy).trusted_proxies is None


def _template(declare: Callable[[Server, str, Callable[..., str]], object]) -> None:
    server = Server("files")
    declare(server, "file:///notes/{name}", lambda name: f"read {name}")

    async def main() -> None:
        async with mcp_trio.connect(server) as client:
            assert (await client.read_resource("file:///notes/a")).contents
            with pytest.raises(mcp_trio.PeerError):
                await client.read_resource("file:///notes/..%2Fsecret")

    trio.run(main)


@row("mcp_core.registry.Server.add_resource: unchecked")
def _added_resource(*_: object) -> None:
    _template(lambda server, uri, function: server.add_resource(uri, function, name="notes"))


@row("mcp_core.registry.Server.resource: unchecked")
def _resource(*_: object) -> None:
    _template(lambda server, uri, function: server.resource(uri, name="notes")(function))


@row("mcp_core.urls.UriMatcher: unchecked")
def _matcher(*_: object) -> None:
    template = UriTemplate("file:///notes/{name}")
    assert UriMatcher(template).match("file:///notes/..%2Fsecret") is None
    assert UriMatcher(template, ["name"]).match("file:///notes/..%2Fsecret") is not None


@row("mcp_core.registry.CacheHint: scope")
def _cache(*_: object) -> None:
    assert CacheHint(60).scope == "private"


@row("mcp_core.registry.TaskOptions: rerun")
def _task(_: object, tmp_path: Path) -> None:
    runs: list[str] = []

    def make(store: SqliteTaskStore) -> Server:
        server = Server("library", tasks=Tasks(store=store))

        @server.tool(task=TaskOptions())
        async def order(name: str) -> None:
            """Order a book."""
            runs.append(name)
            await trio.sleep_forever()

        return server

    async def main() -> None:
        path = tmp_path / "tasks.db"
        async with mcp_trio.connect(make(SqliteTaskStore(path)), tasks=True) as client:
            reference = (await client.start_tool("order", {"name": "Emma"})).reference
        async with mcp_trio.connect(make(SqliteTaskStore(path)), tasks=True) as client:
            with pytest.raises(mcp_trio.McpTrioError):
                await (await client.task(reference)).result()

    trio.run(main)
    assert runs == ["Emma"]


# -- Limits of what one client takes from others ---------------------------------------------------

MEBIBYTE: Final = 1024 * 1024
ANN, ADDRESS = quota_key("ann", None), quota_key("", "203.0.113.1")


@row("mcp_core.tasks.TaskLimits: per_principal")
def _places(*_: object) -> None:
    """The 101st task of the one user of a connection is refused before its handler runs."""
    server, runs = Server("library", tasks=Tasks()), 0

    @server.tool(task=TaskOptions())
    async def order() -> None:
        """Order a book."""
        nonlocal runs
        runs += 1

    async def main() -> None:
        async with mcp_trio.connect(server, tasks=True) as client:
            for _ in range(100):
                await client.start_tool("order")
            with pytest.raises(mcp_trio.PeerError, match="you have 100 tasks already"):
                await client.start_tool("order")

    trio.run(main)
    assert runs == 100
    assert TaskLimits().quota(ANN, durable=True).per_key == 100


@row("mcp_core.tasks.TaskLimits: client_share")
def _share_of_tasks(*_: object) -> None:
    for durable in False, True:
        quota = TaskLimits().quota(ADDRESS, durable=durable)
        assert quota.per_key <= quota.total / 4 <= 2_500
        for key in ADDRESS, ANN:
            quota = TaskLimits().quota(key, durable=durable)
            assert quota.key_bytes <= quota.total_bytes / 4


@row("mcp_core.tasks.TaskLimits: stored_bytes")
def _bytes_in_memory(*_: object) -> None:
    assert TaskLimits().quota(ADDRESS, durable=False).total_bytes <= 64 * MEBIBYTE


@row("mcp_core.tasks.TaskLimits: file_bytes")
def _bytes_in_a_file(*_: object) -> None:
    assert TaskLimits().quota(ADDRESS, durable=True).total_bytes <= 256 * MEBIBYTE


@row("mcp_core.http.HttpLimits: client_share")
def _share_of_a_server(*_: object) -> None:
    assert HttpLimits().quota(10_000) <= 2_500


@row("mcp_core.http.HttpLimits: bodies")
def _bodies(*_: object) -> None:
    """One address may hold 16 MiB in unfinished bodies, and all together 64 MiB."""
    bodies, limits, refused = UnfinishedBodies(), HttpLimits(), 0

    class Body:
        def __init__(self, number: int) -> None:
            self.client = f"address {number}"
            self.endpoint = self

        def refuse_body(self, *_: object) -> None:
            nonlocal refused
            refused += 1

    def hold(address: int, count: int) -> int:
        """Hold bodies of 4 MiB. Return how many are refused."""
        nonlocal refused
        refused = 0
        for _ in range(count):
            bodies.hold(Body(address), 4 * MEBIBYTE, limits)
        return refused

    assert hold(1, 5) == 1
    for address in 2, 3, 4:
        assert hold(address, 4) == 0
    assert hold(5, 4) == 4


class InLastDeadline(Exception):
    """Raised where a program begins to run under a last deadline."""


@pytest.mark.parametrize(
    "run", [mcp_trio.run, mcp_trio.run_http, mcp_asyncio_shim.run], ids=["run", "run_http", "shim"]
)
def test_program_has_a_last_deadline(
    run: Callable[[Server], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tests/test_last_deadline.py` plays what it does."""

    class Deadline:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            raise InLastDeadline(self.name)

        def __exit__(self, *_: object) -> None:
            """Do nothing."""

    monkeypatch.setattr("mcp_core.adapters.LastDeadline", Deadline)
    with pytest.raises(InLastDeadline, match="notes"):
        run(_notes())
    assert LAST_GRACE <= 5
    assert SHUTDOWN_GRACE <= 5


# -- Files and texts -------------------------------------------------------------------------------


@row("mcp_core.adapters.Recording: with_secrets")
def _recording(_: object, tmp_path: Path) -> None:
    path = tmp_path / "a.mcp.jsonl"

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            address = await nursery.start(mcp_trio.serve_http, _notes())
            recording = Recording(path=path)
            async with mcp_trio.connect_http(address.url, headers=TOKEN, record=recording):
                pass
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert "authorization" in path.read_text("utf-8").lower()
    assert "canary" not in path.read_text("utf-8")


@row("mcp_core.escape_text: joiners")
def _joiners(*_: object) -> None:
    word = "\u0645\u06cc\u200c\u062e"  # Persian, with a joiner that belongs there
    assert escape_text(word) == word.replace("\u200c", "\\u200c")
    assert escape_text(word, joiners=True) == word
