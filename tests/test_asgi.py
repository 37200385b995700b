"""The ASGI applications of both drivers: what holds for either, under the runtime that it is for.

Conversations are in `asgi.py`, and byte for byte the same. What only one driver promises is in
`trio_/http_server/test_asgi.py` and `asyncio_shim/test_asgi.py`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
import anyio.lowlevel
import pytest
import trio
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from trio.testing import MockClock

import mcp_asyncio_shim
import mcp_trio
from mcp_core.auth import ApiKeys, OAuthResourceServer
from mcp_core.http import HostOriginPolicy, HttpLimits, HttpOptions
from mcp_core.registry import Server
from mcp_core.trace import TraceHeader, TraceLine, read_trace
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.core.http.server.test_asgi import scope
from tests.core.http.server.test_auth import guard
from tests.harness.jsonrpc import stateless_request
from tests.harness.wire.asgi import (
    ACCEPT,
    SCENARIOS,
    Call,
    Lived,
    Neutral,
    frames_of,
    serve_app,
    text_frame,
    text_of,
    transcript,
)
from tests.harness.wire.router import (
    GET,
    HOST,
    POST,
    D,
    initialize,
    request,
)
from tests.harness.world import loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    from tests.harness.wire.asgi import App, Make

    Main = Callable[[], Coroutine[Any, Any, None]]
T = TypeVar("T")


class Driver(NamedTuple):
    """How to make an application, and to run a function in its runtime.

    `package` has the modules of the driver. `run_to_the_end` also runs tasks that the function
    leaves behind: an application without a lifespan scope ends with the run.
    """

    package: str
    asgi: Make
    run: Callable[[Main], None]
    run_to_the_end: Callable[[Main], None]


def run_trio(main: Main) -> None:
    trio.run(main, clock=MockClock(autojump_threshold=0))


TRIO = Driver("mcp_trio", mcp_trio.asgi, run_trio, trio.run)
ASYNCIO = Driver(
    "mcp_asyncio_shim",
    mcp_asyncio_shim.asgi,
    lambda main: loop.run(main()),
    lambda main: asyncio.run(main()),
)


@pytest.fixture(params=[TRIO, ASYNCIO], ids=["trio", "asyncio"])
def driver(request: pytest.FixtureRequest) -> Driver:
    found: Driver = request.param
    return found


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_asgi_conversation_has_the_same_bytes_with_both_drivers(
    scenario: Callable[[Make], Awaitable[list[Call]]],
) -> None:
    async def main() -> list[Call]:
        return await scenario(mcp_asyncio_shim.asgi)

    output = transcript(loop.run(main()))
    assert output
    assert output == transcript(trio.run(scenario, mcp_trio.asgi))


def test_request_that_is_over_frees_what_the_server_has_buffered(driver: Driver) -> None:
    """A server has the rest of a refused body behind `receive`, until that is freed."""

    class Receive:
        async def __call__(self) -> dict[str, Any]:
            return {"type": "http.request", "body": b"x", "more_body": True}

    options = HttpOptions(host_origin_policy=HostOriginPolicy(None), limits=HttpLimits(bodies=1000))
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def main() -> None:
        app = import_module(driver.package).AsgiApp(Neutral().server, "/mcp", options)
        async with serve_app(app):
            receive = Receive()
            is_alive = weakref.ref(receive)
            await app(scope(headers=POST), receive, send)
            assert sent[0]["status"] == 503
            del receive
            assert is_alive() is None

    gc.disable()
    try:
        driver.run(main)
    finally:
        gc.enable()


def test_request_that_is_over_hears_of_no_more_changes(driver: Driver) -> None:
    """A request without a session has a conversation of its own, which ends with its response."""

    async def main() -> None:
        neutral = Neutral()
        async with serve_app(driver.asgi(neutral.server)) as host:
            for number in range(3):
                await host.call_tool(number, "echo", arguments={"text": "hi"}).end()
            assert not neutral.server._listeners

    driver.run(main)


# -- Recording -------------------------------------------------------------------------------------


def test_asgi_conversations_are_recorded(driver: Driver, tmp_path: Path) -> None:
    """Stream, WebSocket and HTTP+SSE conversations go to one file, which the next run replaces."""
    path = tmp_path / "x.mcp.jsonl"
    app = driver.asgi(Neutral().server, sse_path="/sse", record=path)

    async def main() -> None:
        async with serve_app(app) as host:
            session = await host.session()
            await session.calling(1, "echo").end()
            await host.call_tool(2, "count", arguments={"to": 2}).end()
            socket = host.websocket()
            await socket.until(lambda: socket.sent)
            socket.deliver(text_frame(initialize(D)))
            await socket.until(lambda: frames_of(socket))
            socket.deliver({"type": "websocket.disconnect", "code": 1000})
            await socket.end()
            stream = host.begin("GET", GET, path="/sse")
            await stream.until(lambda: len(stream.sent) > 1 and stream.raw)
            target = stream.events[0]["data"].partition("?")
            post = {"path": target[0], "query": target[2].encode()}
            await host.post(initialize("2024-11-05"), **post).end()
            await stream.wait_for_messages()
            stream.disconnect()
            await stream.end()

    driver.run(main)
    header, lines = read_lines(path)
    assert (header.observer, header.transport) == ("server", "http")
    sent = [json.loads(line.raw or "") for line in lines if line.raw and line.sender == "client"]
    assert [message.get("method") for message in sent] == [
        *("initialize", "notifications/initialized", "tools/call", "tools/call"),
        *("initialize", "initialize"),
    ]
    assert {line.http.version for line in lines if line.http and line.http.method} == {"1.1", ""}
    of_http_sse = [line for line in lines if line.conversation == lines[-1].conversation]
    assert {line.sse.event for line in of_http_sse if line.sse} == {"endpoint", ""}
    assert len({line.exchange for line in of_http_sse}) == 2
    before = path.read_bytes()
    driver.run(main)  # it may be served again: the file is replaced
    assert read_lines(path)[0] != header
    assert abs(len(path.read_bytes()) - len(before)) < len(before) / 10


def test_asgi_trace_that_cannot_be_opened_fails_the_startup(
    driver: Driver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = driver.asgi(Neutral().server, record=tmp_path / "no" / "dir")

    async def main() -> None:
        living = Call({"type": "lifespan"})
        living.deliver({"type": "lifespan.startup"})
        await living.run(app)
        [failed] = living.sent
        assert failed["type"] == "lifespan.startup.failed"
        assert "no such file" in failed["message"]

    driver.run(main)


def read_lines(path: Path) -> tuple[TraceHeader, list[TraceLine]]:
    header, lines = read_trace([path.read_bytes()])
    return header, [line for _, line in lines if isinstance(line, TraceLine)]


# -- With a lifespan -------------------------------------------------------------------------------


def test_asgi_lifespan_runs_the_server_lifespan(driver: Driver) -> None:
    lived = Lived()
    app = driver.asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with serve_app(app) as host:
            assert lived.seen == ["in"]
            assert text_of(await host.call_tool(1, "value").end()) == "alive"
        assert lived.seen == ["in", "out"]
        lived.seen.clear()

    driver.run(main)
    driver.run(main)  # it may be served again


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("in", [{"type": "lifespan.startup.failed", "message": "OSError: no disk"}]),
        (
            "out",
            [
                {"type": "lifespan.startup.complete"},
                {"type": "lifespan.shutdown.failed", "message": "OSError: no disk"},
            ],
        ),
    ],
)
def test_asgi_lifespan_failure_is_reported_and_logged(
    driver: Driver, stage: str, expected: list[dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    """The web server gets `failed` with the error's text, and the log has the traceback."""
    lived = Lived()
    lived.fails[stage] = OSError("no disk")

    async def main() -> None:
        call = Call({"type": "lifespan"})
        call.deliver({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
        await call.run(driver.asgi(Neutral(lifespan=lived).server))
        assert call.failure is None
        assert call.sent == expected

    driver.run(main)
    [record] = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "no disk"


def test_asgi_shutdown_cancels_handlers_and_answers_clients(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the grace time, both the call and the GET stream still get a complete response."""
    module = {"mcp_trio": "mcp_trio.http_server._asgi"}.get(
        driver.package, f"{driver.package}._asgi"
    )
    monkeypatch.setattr(f"{module}.SHUTDOWN_GRACE", 0.01)

    async def main() -> None:
        neutral = Neutral()
        async with serve_app(driver.asgi(neutral.server)) as host:
            session = await host.session()
            call, stream = session.calling(1, "wait"), session.get()
            await stream.until(lambda: stream.sent)
            await neutral.started.wait()
        assert neutral.log == ["cancelled"]
        await call.end()
        await stream.end()
        assert call.answer["error"]["message"] == "the server is being shut down"
        assert stream.complete

    driver.run(main)


def test_asgi_shutdown_lets_handlers_finish_first(driver: Driver) -> None:
    """New requests get a 503 while the running call goes on to its result."""

    async def main() -> None:
        neutral = Neutral()
        async with serve_app(driver.asgi(neutral.server)) as host:
            call = host.call_tool(1, "wait")
            await neutral.started.wait()

            async def later() -> None:
                while (await host.call_tool(2, "echo").end()).status != 503:
                    pass
                neutral.go.set()

            host.group.start_soon(later)
        await call.end()
        assert text_of(call) == "went on"

    driver.run(main)


# -- Without one: for these it is the run that ends it ---------------------------------------------


def test_asgi_without_lifespan_starts_at_the_first_request(driver: Driver) -> None:
    """Calls that arrive together enter the lifespan once, and the end of the loop leaves it."""
    lived = Lived()
    app = driver.asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with serve_app(app, lifespan=False) as host:
            calls = [host.call_tool(1, "value") for _ in range(3)]
            for call in calls:
                assert text_of(await call.end()) == "alive"
            session = await host.session()
            assert text_of(await session.calling(1, "value").end()) == "alive"
        assert lived.seen == ["in"]

    for _ in range(2):
        driver.run_to_the_end(main)
        assert lived.seen == ["in", "out"]
        lived.seen.clear()


def test_asgi_start_failure_is_retried(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    """Calls that waited for the same start share its error; the next call starts it again."""
    lived = Lived()
    lived.fails["in"] = OSError("no disk")
    app = driver.asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with serve_app(app, lifespan=False) as host:
            calls = [host.call_tool(1, "value") for _ in range(2)]
            for call in calls:
                with pytest.raises(OSError, match="no disk"):
                    await call.end()
            assert lived.seen == ["in"]
            lived.fails.clear()
            assert text_of(await host.call_tool(1, "value").end()) == "alive"

    driver.run_to_the_end(main)
    assert lived.seen == ["in", "in", "out"]
    assert [record.getMessage() for record in caplog.records] == ["the lifespan failed"]


@pytest.mark.parametrize(
    "error", [OSError("no disk"), BaseExceptionGroup("", [SystemExit(3), OSError("no disk")])]
)
def test_asgi_lifespan_failure_at_the_end_is_logged(
    driver: Driver, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """With no lifespan scope, no caller is left to raise to: only the log has the error."""
    lived = Lived()
    app = driver.asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with serve_app(app, lifespan=False) as host:
            assert text_of(await host.call_tool(1, "value").end()) == "alive"
        lived.fails["out"] = error

    driver.run_to_the_end(main)
    [record] = caplog.records
    assert record.getMessage() == "the lifespan failed"
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_asgi_start_survives_a_cancelled_request(driver: Driver) -> None:
    lived = Lived()
    app = driver.asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with serve_app(app, lifespan=False) as host:
            given_up = host.call_tool(1, "value")
            while not lived.seen:
                await anyio.lowlevel.checkpoint()
            given_up.task.cancel()
            assert text_of(await host.call_tool(2, "value").end()) == "alive"
            assert given_up.sent == []
        assert lived.seen == ["in"]

    driver.run_to_the_end(main)


@pytest.mark.parametrize("path", ["/tools/", "/tools/mcp"])
def test_asgi_mounted_behind_a_proxy_that_strips_a_prefix_works(driver: Driver, path: str) -> None:
    """hypercorn passes its `root_path` on, and leaves the path as the proxy has sent it."""

    async def main() -> None:
        async with serve_app(mounted(driver.asgi(Neutral().server), "mount")) as host:
            where: Any = {"path": path, "root_path": "/api"}
            called = await host.call_tool(1, "echo", arguments={"text": "hi"}, **where).end()
            assert text_of(called) == "hi"
            stream = host.begin("GET", GET, **where)
            await stream.until(lambda: stream.raw)
            assert stream.events[0]["data"].startswith(f"/api{path}?")
            stream.disconnect()
            await stream.end()

    driver.run_to_the_end(main)


# -- One request -----------------------------------------------------------------------------------


def test_asgi_request_task_cancelled_cancels_the_handler(driver: Driver) -> None:
    async def main() -> None:
        neutral = Neutral()
        async with serve_app(driver.asgi(neutral.server)) as host:
            call = host.call_tool(1, "wait")
            await neutral.started.wait()
            call.task.cancel()
            await call.end()
            await neutral.until(lambda: neutral.log == ["cancelled"])
            assert call.sent == []

    driver.run(main)


@pytest.mark.parametrize("tool", ["echo", "count"])
def test_asgi_send_oserror_ends_the_request(driver: Driver, tool: str) -> None:
    async def main() -> None:
        async with serve_app(driver.asgi(Neutral().server)) as host:
            call = host.begin("POST", [HOST], None)
            call.send_error = OSError("gone")
            await call.end()
            call = host.call_tool(1, tool, arguments={"to": 3} if tool == "count" else {})
            call.send_error = OSError("gone")
            await call.end()
            assert call.sent == []

    driver.run(main)


def test_asgi_silent_stream_gets_comments_and_idle_session_expires(driver: Driver) -> None:
    """Comments keep a silent response open; once the stream has ended, the idle time runs."""
    options = HttpOptions(
        host_origin_policy=HostOriginPolicy(None),
        comment_interval=0.01,
        limits=HttpLimits(idle=0.05),
    )

    async def main() -> None:
        neutral = Neutral()
        app = import_module(driver.package).AsgiApp(neutral.server, "/mcp", options)
        async with serve_app(app) as host:
            session = await host.session()
            call = session.calling(1, "wait")
            await call.until(lambda: call.raw.count(b":\n\n") >= 3)
            neutral.go.set()
            assert text_of(await call.end()) == "went on"
            stream = session.get()
            # Each call restarts the timeout.
            while (again := await session.calling(2, "echo").end()).status != 404:
                stream.disconnect()
                await anyio.sleep(0.1)
            assert again.status == 404

    driver.run(main)


def test_asgi_errors_of_the_server_propagate(driver: Driver) -> None:
    """An exception from the web server's own `receive` or `send` is its to handle, not ours."""

    async def main() -> None:
        neutral = Neutral()
        async with serve_app(driver.asgi(neutral.server)) as host:
            early = host.begin("POST", host.call_tool(1, "echo").scope["headers"], None)
            early.deliver(ZeroDivisionError("in receive"))
            late = host.call_tool(2, "wait")
            await neutral.started.wait()
            late.deliver(ZeroDivisionError("in receive"))
            for call in (early, late):
                with pytest.raises(ZeroDivisionError, match="in receive"):
                    await call.end()
            refusing = host.call_tool(3, "echo")
            refusing.send_error = ZeroDivisionError("in send")
            with pytest.raises(ZeroDivisionError, match="in send"):
                await refusing.end()
            await neutral.until(lambda: neutral.log == ["cancelled"])

    driver.run(main)


def test_asgi_unknown_scope_type_raises(driver: Driver) -> None:
    async def main() -> None:
        async with serve_app(driver.asgi(Neutral().server)) as host:
            with pytest.raises(ValueError, match="knows no 'telephone'"):
                await host.call(type="telephone").end()

    driver.run(main)


# -- WebSockets ------------------------------------------------------------------------------------


def test_asgi_websocket_carries_a_connection_until_a_binary_message(driver: Driver) -> None:
    async def main() -> None:
        async with serve_app(driver.asgi(Neutral().server)) as host:
            call = host.websocket()
            call.deliver(text_frame(initialize(D)))
            await call.until(lambda: len(call.sent) == 2)
            accepted, answer = frames_of(call)
            assert accepted == ACCEPT
            assert answer["result"]["protocolVersion"] == D
            call.deliver({"type": "websocket.receive", "bytes": b"{}"})
            await call.end()
            assert frames_of(call)[2]["code"] == 1003

    driver.run(main)


def test_asgi_websocket_with_bad_origin_is_rejected(driver: Driver) -> None:
    async def main() -> None:
        async with serve_app(driver.asgi(Neutral().server)) as host:
            refused = await host.websocket((b"origin", b"http://evil.example")).end()
            assert refused.sent == [{"type": "websocket.close"}]

    driver.run(main)


def test_asgi_websocket_authorizes_before_accepting(driver: Driver) -> None:
    async def main() -> None:
        async with serve_app(driver.asgi(Neutral().server, auth=guard())) as host:
            refused = await host.websocket(extensions={"websocket.http.response": {}}).end()
            assert refused.sent[0]["status"] == 401
            call = host.websocket((b"authorization", b"Bearer ann"))
            await call.until(lambda: call.sent)
            assert call.sent == [ACCEPT]
            call.deliver({"type": "websocket.disconnect"})
            await call.end()

    driver.run(main)


def test_asgi_websocket_disconnect_ends_the_call(driver: Driver) -> None:
    async def main() -> None:
        async with serve_app(driver.asgi(Neutral().server)) as host:
            call = host.websocket()
            await call.until(lambda: call.sent)
            call.deliver({"type": "websocket.disconnect", "code": 1001})
            await call.end()
            assert call.sent == [ACCEPT]

    driver.run(main)


def test_asgi_websocket_closes_at_shutdown(driver: Driver) -> None:
    async def main() -> None:
        async with serve_app(driver.asgi(Neutral().server)) as host:
            call = host.websocket()
            await call.until(lambda: call.sent)
        assert call.sent == [ACCEPT, {"type": "websocket.close", "code": 1001, "reason": ""}]

    driver.run(main)


def test_asgi_websocket_with_unread_output_pauses_receiving(driver: Driver) -> None:
    """A server that writes into a full socket must stop reading, or its memory grows."""
    server = Server("loud")

    @server.tool
    def shout() -> str:
        """Return a long text."""
        return "x" * 100_000

    async def main() -> None:
        async with serve_app(driver.asgi(server)) as host:
            call = host.websocket()
            await call.until(lambda: call.sent)
            call.accepting = anyio.Event()
            params = {"name": "shout", "arguments": {}}
            for id in range(40):
                call.deliver(text_frame(stateless_request(id, "tools/call", params)))
            await anyio.sleep(0.05)
            assert len(call._incoming) > 10
            call.accepting.set()
            await call.until(lambda: len(call.sent) == 41)
            assert {answer["id"] for answer in frames_of(call)[1:]} == set(range(40))
            call.deliver(text_frame(request(99, "ping")), {"type": "websocket.disconnect"})
            await call.end()

    driver.run(main)


def test_asgi_websocket_after_disconnect_sends_nothing(driver: Driver) -> None:
    """Some servers raise an exception then, and log it."""

    async def main() -> None:
        async with serve_app(driver.asgi(Neutral().server)) as host:
            call = host.websocket()
            await call.until(lambda: call.sent)
            call.accepting = anyio.Event()
            call.deliver(*(text_frame(request(id, "ping")) for id in range(3)))
            await anyio.sleep(0.01)
            call.deliver({"type": "websocket.disconnect"})
            await anyio.sleep(0.01)
            call.accepting.set()
            await call.end()
            assert len(call.sent) == 1, "the send that was blocked is cancelled"

    driver.run(main)


# -- In frameworks ---------------------------------------------------------------------------------


def mounted(app: App, where: str) -> Any:
    if where == "fastapi":
        outer = FastAPI()
        outer.mount("/tools", app)
        return outer
    if where == "route":
        return Starlette(routes=[Route("/mcp", app)])
    if where == "root":
        return Starlette(routes=[Mount("/", app)])
    inner = (
        Mount("/tools", app) if where == "mount" else Mount("/v1", routes=[Mount("/tools", app)])
    )

    async def home(request: object) -> PlainTextResponse:
        return PlainTextResponse("home")

    return Starlette(routes=[inner, Route("/", home)])


@pytest.mark.parametrize(
    ("where", "path"),
    [
        ("mount", "/tools/"),
        ("mount", "/tools/mcp"),
        ("deep", "/v1/tools/"),
        ("deep", "/v1/tools/mcp"),
        ("route", "/mcp"),
        ("root", "/mcp"),
        ("root", "/"),
        ("fastapi", "/tools/"),
        ("fastapi", "/tools/mcp"),
    ],
)
@pytest.mark.parametrize("root", ["", "/behind/a/proxy"])
def test_asgi_mounted_in_a_framework_works(
    driver: Driver, where: str, path: str, root: str
) -> None:
    """The path in the endpoint event includes the mount and the proxy's `root_path`."""

    async def main() -> None:
        app = mounted(driver.asgi(Neutral().server), where)
        # The framework gets the lifespan scope, and does not pass it on to our application.
        async with serve_app(app, root=root) as host:
            called = await host.call_tool(1, "echo", arguments={"text": "hi"}, path=path).end()
            assert text_of(called) == "hi"
            stream = host.begin("GET", GET, path=path)
            await stream.until(lambda: stream.raw)
            assert stream.events[0]["data"].startswith(f"{root}{path}?")
            stream.disconnect()
            await stream.end()
            assert (await host.request("GET", GET, path=f"{path.rstrip('/')}/more")).status == 404

    driver.run_to_the_end(main)


def test_asgi_mounted_without_lifespan_starts_at_the_first_request(driver: Driver) -> None:
    lived = Lived()
    app = driver.asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with serve_app(Starlette(routes=[Mount("/tools", app)])) as host:
            assert lived.seen == []
            assert text_of(await host.call_tool(1, "value", path="/tools/").end()) == "alive"
        assert lived.seen == ["in"]

    driver.run_to_the_end(main)
    assert lived.seen == ["in", "out"]


@pytest.mark.parametrize("framework", [FastAPI, Starlette])
def test_asgi_lifespan_given_to_the_framework_runs_with_it(
    driver: Driver, framework: Callable[..., Any]
) -> None:
    """Frameworks don't start the lifespan of a mounted application, so theirs calls ours."""
    lived = Lived()
    app: Any = driver.asgi(Neutral(lifespan=lived).server)
    outer = framework(lifespan=app.lifespan)
    outer.mount("/tools", app)

    async def main() -> None:
        async with serve_app(outer) as host:
            assert lived.seen == ["in"]
            assert text_of(await host.call_tool(1, "value", path="/tools/").end()) == "alive"
        assert lived.seen == ["in", "out"]
        lived.seen.clear()

    driver.run(main)
    driver.run(main)  # it may be served again


def test_asgi_lifespans_of_several_applications_can_be_combined(driver: Driver) -> None:
    """`lifespan` works with the framework's application as argument and without one."""
    lived = Lived(), Lived()
    apps: list[Any] = [driver.asgi(Neutral(lifespan=each).server) for each in lived]

    @asynccontextmanager
    async def lifespan(outer: Starlette) -> AsyncIterator[None]:
        async with apps[0].lifespan(outer), apps[1].lifespan():
            yield

    routes = [Mount(f"/{n}", app) for n, app in enumerate(apps)]

    async def main() -> None:
        async with serve_app(Starlette(routes=routes, lifespan=lifespan)) as host:
            assert [each.seen for each in lived] == [["in"], ["in"]]
            for n in range(2):
                assert text_of(await host.call_tool(1, "value", path=f"/{n}/").end()) == "alive"
        assert [each.seen for each in lived] == [["in", "out"]] * 2

    driver.run(main)


def test_asgi_lifespan_given_to_the_framework_fails_its_startup(driver: Driver) -> None:
    lived = Lived()
    lived.fails["in"] = OSError("no disk")
    app: Any = driver.asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        call = Call({"type": "lifespan"})
        call.deliver({"type": "lifespan.startup"})
        await call.run(Starlette(lifespan=app.lifespan))
        [failed] = call.sent
        assert failed["type"] == "lifespan.startup.failed"
        assert "OSError: no disk" in failed["message"]

    driver.run(main)


def test_asgi_lifespan_of_a_running_application_raises(driver: Driver) -> None:
    """Neither a second entry nor one after the first request disturbs the running server."""
    lived = Lived()
    app: Any = driver.asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with app.lifespan():
            with pytest.raises(RuntimeError, match="runs already"):
                async with app.lifespan():
                    raise AssertionError
            assert lived.seen == ["in"]
            async with serve_app(app, lifespan=False) as host:
                assert text_of(await host.call_tool(1, "value").end()) == "alive"
        async with serve_app(app, lifespan=False) as host:  # which starts it
            assert text_of(await host.call_tool(1, "value").end()) == "alive"
            with pytest.raises(RuntimeError, match="before the first request"):
                await app.lifespan().__aenter__()
            assert text_of(await host.call_tool(1, "value").end()) == "alive"

    driver.run_to_the_end(main)
    assert lived.seen == ["in", "out", "in", "out"]


@pytest.mark.requirement("AR-2")
def test_asgi_metadata_is_served_by_the_framework(driver: Driver) -> None:
    """The path that the challenge names is at the root, outside of the mounted application."""
    resource = "https://mcp.example.com/tools/mcp"
    auth = OAuthResourceServer(resource, ["https://as.example.com"], lambda token: None)
    app: Any = driver.asgi(Neutral().server, auth=auth)
    well_known = "/.well-known/oauth-protected-resource"
    assert app.metadata_paths == (f"{well_known}/tools/mcp", well_known)
    outer = FastAPI()
    outer.mount("/tools", app)
    for path in app.metadata_paths:
        outer.router.routes.append(Route(path, app.metadata))

    async def main() -> None:
        async with serve_app(outer) as host:
            refused = await host.call_tool(1, "echo", path="/tools/mcp").end()
            assert (refused.status, refused.headers[b"www-authenticate"]) == (
                401,
                f'Bearer resource_metadata="https://mcp.example.com{well_known}/tools/mcp"'.encode(),
            )
            for path in app.metadata_paths:
                found = await host.request("GET", [HOST], path=path)
                assert (found.status, found.answer["resource"]) == (200, resource)
                assert found.headers[b"access-control-allow-origin"] == b"*"
                assert found.headers[b"content-length"] == str(len(found.raw)).encode()
                head = await host.request("HEAD", [HOST], path=path)
                assert (head.status, head.headers, head.raw) == (200, found.headers, b"")
                assert (await host.request("OPTIONS", [HOST], path=path)).status == 204
                assert (await host.request("POST", [HOST], path=path)).status == 405
        async with serve_app(app.metadata, lifespan=False) as host:
            assert (await host.websocket().end()).sent == [{"type": "websocket.close"}]
            with pytest.raises(ValueError, match="no 'lifespan'"):
                await host.call(type="lifespan").end()
        open_app: Any = driver.asgi(Neutral().server)
        assert open_app.metadata_paths == ()
        async with serve_app(open_app.metadata, lifespan=False) as host:
            assert (await host.request("GET", [HOST])).status == 404

    driver.run_to_the_end(main)


# -- Mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"auth": {"tool_scopes": {"ecko": ["use"]}}}, "did you mean 'echo'"),
        ({"path": "/mcp", "sse_path": "/mcp/"}, "sse_path is '/mcp/', which is the path"),
    ],
)
def test_asgi_mistake_in_options_fails_the_startup(
    driver: Driver, options: dict[str, Any], problem: str
) -> None:
    """These mistakes need the finished server to be found, and must not wait for a request."""
    if "auth" in options:
        options = {"auth": ApiKeys({"ann": "ann-0123456789abcdef"}, **options["auth"])}

    async def main() -> None:
        call = Call({"type": "lifespan"})
        call.deliver({"type": "lifespan.startup"})
        await call.run(driver.asgi(Neutral().server, **options))
        [failed] = call.sent
        assert failed["type"] == "lifespan.startup.failed"
        assert failed["message"].startswith("ValueError: ")
        assert problem in failed["message"]

    driver.run(main)


@pytest.mark.parametrize(
    "options", [{"hosts": ["*.example.com"]}, {"origins": ["example.com"]}, {"hosts": "a"}]
)
def test_asgi_invalid_host_or_origin_raises_at_once(
    driver: Driver, options: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"is not a host|is not an origin|is a list"):
        driver.asgi(Server("x"), **options)
