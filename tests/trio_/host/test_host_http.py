"""A host of servers at URLs: each transport, logins, and servers that come and go.

Real sockets and the real clock.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_trio
from mcp_core import AuthRequired, ConnectionLost, McpTrioError
from mcp_core.host import ServerUnavailable
from mcp_core.types import ElicitParams, ElicitValue
from mcp_trio import LoginConfig, MemoryStorage, connect_http, serve_http
from mcp_trio.host._host import Host
from tests.drivers.played_host import reached, usable
from tests.harness.jsonrpc import D, E
from tests.harness.world.oauth import oauth_world
from tests.harness.world.waiting import PATIENCE
from tests.trio_.auth.test_authorization import headless
from tests.trio_.host.test_host import make_server, text_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_trio.host._sources import Target
    from mcp_trio.http_server._serve import HttpAddress


@pytest.fixture(autouse=True)
def _no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pin after a moment, and try again after a moment. Exact delays are tested elsewhere."""
    monkeypatch.setattr("mcp_core.runtime.host._server._QUIET", 0.05)
    monkeypatch.setattr("mcp_core.host._supervision._FIRST_DELAY", 0.1)


@asynccontextmanager
async def serving(server: mcp_trio.Server, **options: Any) -> AsyncIterator[HttpAddress]:
    """Serve `server` over HTTP and WebSockets for the time of the block."""
    async with trio.open_nursery() as nursery:
        yield await nursery.start(partial(serve_http, server, **options))
        nursery.cancel_scope.cancel()


def url_for(transport: str, address: HttpAddress) -> str:
    if transport == "sse":
        return address.url.removesuffix("/mcp") + "/sse"
    return address.url.replace("http://", "ws://") if transport == "ws" else address.url


# -- Transports ----------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["http", "sse", "ws"])
async def test_server_at_a_url_is_used_like_any_other(transport: str) -> None:
    """The caller can't tell it from a local server, except for SSE, which lacks elicitation."""
    asked: list[str] = []

    def on_elicit(server: str, _: ElicitParams) -> dict[str, ElicitValue]:
        asked.append(server)
        return {"count": 3}

    async with serving(make_server("far"), sse_path="/sse") as address:
        config: dict[str, Target] = {
            "far": url_for(transport, address),
            "near": make_server("near"),
        }
        async with Host(config, approve="all", on_elicit=on_elicit) as host:
            assert {each.state for each in host.status().values()} == {"ready"}
            assert (await host.call("mcp__far__look")).text == "far looks at nothing"
            assert text_of(await host.read("@far:notes://shared")) == "shared of far"
            assert text_of(await host.read("notes://far")) == "own of far"
            prompt = await host.get_prompt("mcp__far__review", {"code": "x"})
            assert prompt.messages[0].content == mcp_trio.types.TextContent("far reviews x")
            assert len(host.tools()) == 14
            if transport != "sse":  # a revision without elicitation
                assert (await host.call("mcp__far__ask")).text == "3"
                assert asked == ["far"]


@pytest.mark.parametrize("transport", ["http", "ws"])
async def test_tool_that_a_far_server_adds_is_asked_about(transport: str) -> None:
    """The change notification crosses a real connection; approving the tool makes it callable."""
    server = make_server("far")
    async with (
        serving(server) as address,
        Host({"far": url_for(transport, address)}, approve="all") as host,
        host.changes() as changes,
    ):

        @server.tool
        def more() -> str:
            """Do more."""
            return "more"

        with trio.fail_after(PATIENCE):
            while not await host.pending():
                await anext(changes)
        assert len(host.tools()) == 7
        await host.approve_definitions((await host.pending())["far"])
        assert (await host.call("mcp__far__more")).text == "more"


async def test_all_transports_side_by_side() -> None:
    async with serving(make_server("far"), sse_path="/sse") as address:
        config = {name: url_for(name, address) for name in ("http", "sse", "ws")}
        async with Host(config) as host:
            assert len(host.tools()) == 3 * 7
            for name in config:
                assert (await host.call(f"mcp__{name}__look")).text == "far looks at nothing"


# -- Servers that are not there ------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_server_that_is_not_there_is_tried_again(scheme: str) -> None:
    async with serving(make_server("far")) as address:
        port = address.port
    async with Host({"far": f"{scheme}://127.0.0.1:{port}/mcp"}) as host:
        status = host.status()["far"]
        assert (status.state, status.attempt) == ("failed", 2)
        assert status.retry_at is not None
        assert "127.0.0.1" in status.reason
        with pytest.raises(ServerUnavailable):
            await host.call_tool("far", "look")
        async with serving(make_server("far"), port=port):
            with trio.fail_after(PATIENCE):
                await usable(host, "far")
            assert (await host.call("mcp__far__look")).text == "far looks at nothing"


async def test_url_that_is_no_endpoint_fails() -> None:
    async with (
        serving(make_server("far")) as address,
        Host({"far": address.url + "/nothing"}) as host,
    ):
        status = host.status()["far"]
        assert status.state == "failed"
        assert "404" in status.reason


async def test_websocket_that_is_closed_is_connected_to_again() -> None:
    """The server restarts at the same port, and calls fail only in between."""
    async with trio.open_nursery() as nursery:
        stop = trio.Event()
        server = make_server("far")
        address = await nursery.start(partial(serve_http, server, stop=stop, grace=0.1))
        async with Host({"far": url_for("ws", address)}) as host:
            stop.set()
            with trio.fail_after(PATIENCE):
                await reached(host, "failed", "far")
            with pytest.raises(McpTrioError):
                await host.call("mcp__far__look")
            await nursery.start(partial(serve_http, server, port=address.port))
            with trio.fail_after(PATIENCE):
                await usable(host, "far")
            assert (await host.call("mcp__far__look")).text
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("transport", ["http", "ws"])
async def test_server_that_answers_no_ping_is_connected_to_again(transport: str) -> None:
    """No call meets the stopped server, yet the host notices it and connects again."""
    async with trio.open_nursery() as nursery:
        stop = trio.Event()
        server = make_server("far")
        address = await nursery.start(partial(serve_http, server, stop=stop, grace=0.1))
        async with Host({"far": url_for(transport, address)}, keep_alive=0.3) as host:
            await trio.sleep(1)
            assert host.status()["far"].attempt == 1
            stop.set()
            with trio.fail_after(PATIENCE):
                await reached(host, "failed", "far")
            await nursery.start(partial(serve_http, server, port=address.port))
            with trio.fail_after(PATIENCE):
                await usable(host, "far")
            assert (await host.call("mcp__far__look")).text
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("version", [D, E])
async def test_server_that_is_gone_is_noticed_by_the_first_call(version: str) -> None:
    """The call fails, and the host then tries to connect until the server is back."""
    stop, ended = trio.Event(), trio.Event()
    server = make_server("far", versions=[version])

    async def serve_until_stopped(task_status: trio.TaskStatus[HttpAddress]) -> None:
        await serve_http(server, stop=stop, grace=0.1, task_status=task_status)
        ended.set()

    async with trio.open_nursery() as nursery:
        address = await nursery.start(serve_until_stopped)
        async with Host({"far": address.url}) as host:
            stop.set()
            await ended.wait()
            with pytest.raises(ConnectionLost):
                await host.call("mcp__far__look")
            with trio.fail_after(PATIENCE):
                await reached(host, "failed", "far")
            assert "connection refused" in host.status()["far"].reason
            await nursery.start(partial(serve_http, server, port=address.port))
            with trio.fail_after(PATIENCE):
                await usable(host, "far")
            assert (await host.call("mcp__far__look")).text
        nursery.cancel_scope.cancel()


async def test_call_that_loses_its_connection_leaves_a_server_that_answers() -> None:
    """A relay drops one connection; a ping shows that the server lives, so it isn't restarted."""
    server = make_server("far")
    lost: list[int] = []

    async def pass_on(stream: trio.SocketStream) -> None:
        """Pass a connection on, and close it at the first call."""

        async def copy(source: trio.SocketStream, sink: trio.SocketStream) -> None:
            async for data in source:
                if b"tools/call" in data and not lost:
                    lost.append(1)
                    break
                await sink.send_all(data)
            both.cancel_scope.cancel()

        async with (
            stream,
            await trio.open_tcp_stream("127.0.0.1", address.port) as onward,
            trio.open_nursery() as both,
        ):
            both.start_soon(copy, stream, onward)
            both.start_soon(copy, onward, stream)

    async with serving(server) as address, trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, pass_on, 0, host="127.0.0.1"))
        port = listener.socket.getsockname()[1]
        async with Host({"far": f"http://127.0.0.1:{port}/mcp"}) as host:
            with pytest.raises(ConnectionLost):
                await host.call("mcp__far__look")
            assert (await host.call("mcp__far__look")).text
            await trio.sleep(0.2)  # for the ping
            assert (host.status()["far"].state, host.status()["far"].attempt) == ("ready", 1)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("version", [D, E])
async def test_session_that_the_server_has_forgotten_is_begun_anew(version: str) -> None:
    """The restarted server knows no session, yet the next call succeeds on the same attempt."""
    async with trio.open_nursery() as nursery:
        scope, ended = trio.CancelScope(), trio.Event()
        server = make_server("far", versions=[version])

        async def serve(port: int, task_status: Any) -> None:
            with scope:
                await serve_http(server, port=port, task_status=task_status)
            ended.set()

        address = await nursery.start(lambda task_status: serve(0, task_status))
        async with Host({"far": address.url}) as host:
            assert (await host.call("mcp__far__look")).text
            scope.cancel()
            with trio.fail_after(PATIENCE):
                await ended.wait()
            scope = trio.CancelScope()
            await nursery.start(lambda task_status: serve(address.port, task_status))
            with trio.fail_after(PATIENCE):
                assert (await host.call("mcp__far__look")).text
            assert host.client("far").peer.dialect.version == version
            assert host.status()["far"].attempt == 1
        nursery.cancel_scope.cancel()


# -- Logins --------------------------------------------------------------------------------------


async def test_guarded_server_needs_a_login() -> None:
    """The host opens no browser; `logged_in` helps once another program has stored a token."""
    storage = MemoryStorage()
    async with oauth_world() as world:
        auth = LoginConfig(storage=storage, browse=None)
        config: dict[str, Target] = {"far": world.url, "near": make_server("near")}
        async with Host(config, auth=auth, approve="all") as host:
            status = host.status()["far"]
            assert (status.state, status.attempt, status.retry_at) == ("needs login", 1, None)
            assert "log in" in status.reason
            assert (await host.call("mcp__near__look")).text
            with pytest.raises(ServerUnavailable, match="needs login"):
                await host.call_tool("far", "add")
            host.logged_in("far")  # too early
            await host.wait_settled()
            assert host.status()["far"].state == "needs login"
            async with connect_http(world.url, auth=headless(storage=storage)):
                pass
            host.logged_in("far")
            await host.wait_settled()
            assert host.status()["far"].state == "ready"
            await host.call("mcp__far__add")


async def test_token_that_expires_later_needs_a_login() -> None:
    """The tools disappear until the new login, since calls can't succeed."""
    storage = MemoryStorage()
    async with oauth_world() as world:
        world.refresh = False
        async with connect_http(world.url, auth=headless(storage=storage)):
            pass
        auth = LoginConfig(storage=storage, browse=None)
        async with Host({"far": world.url}, auth=auth, approve="all") as host:
            await host.call("mcp__far__add")
            world.good.clear()
            with pytest.raises(AuthRequired):
                await host.call("mcp__far__add")
            assert host.status()["far"].state == "needs login"
            assert host.tools() == ()
            async with connect_http(world.url, auth=headless(storage=storage)):
                pass
            host.logged_in("far")
            await host.wait_settled()
            await host.call("mcp__far__add")


async def test_refused_login_is_a_verdict() -> None:
    async with oauth_world() as world:
        world.token_error = "access_denied"
        async with Host({"far": world.url}, auth=headless()) as host:
            status = host.status()["far"]
            assert (status.state, status.retry_at) == ("failed", None)
            assert world.count("/token") == 1


async def test_host_without_auth_opens_no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    async with oauth_world() as world, Host({"far": world.url}) as host:
        assert host.status()["far"].state == "needs login"
    assert opened == []
