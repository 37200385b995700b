"""The ASGI application on trio: scenarios shared with asyncio, lifespans and cancellation."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import trio
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from mcp_core.http import Gate, HttpLimits, HttpOptions
from mcp_core.registry import Server
from mcp_trio import AsgiApp, asgi
from tests.asgi import SCENARIOS, Call, Host, Neutral, hosting, text_of
from tests.core.http.site import GET, HOST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.asgi import App, Make


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
async def test_trio_asgi_conversation_works_as_on_asyncio(
    scenario: Callable[[Make], Awaitable[list[Call]]],
) -> None:
    assert await scenario(asgi)


class Lived:
    """A lifespan that records its calls, and can be made to fail."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.fails: dict[str, BaseException] = {}

    @asynccontextmanager
    async def __call__(self, server: Server) -> AsyncIterator[str]:
        self.seen.append("in")
        await trio.lowlevel.checkpoint()
        if "in" in self.fails:
            raise self.fails["in"]
        try:
            yield "alive"
        finally:
            self.seen.append("out")
            if "out" in self.fails:
                raise self.fails["out"]


# -- With a lifespan -----------------------------------------------------------------------------


async def test_trio_asgi_lifespan_runs_the_server_lifespan() -> None:
    lived = Lived()
    app = asgi(Neutral(lifespan=lived).server)
    for _ in range(2):  # it can be served again
        async with hosting(app) as host:
            assert lived.seen == ["in"]
            assert text_of(await host.calling(1, "value").end()) == "alive"
        assert lived.seen == ["in", "out"]
        lived.seen.clear()


@pytest.mark.parametrize(
    ("stage", "said"),
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
async def test_trio_asgi_lifespan_failure_is_reported_and_logged(
    stage: str, said: list[dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    lived = Lived()
    lived.fails[stage] = OSError("no disk")
    app = asgi(Neutral(lifespan=lived).server)
    async with trio.open_nursery() as nursery:
        call = Call({"type": "lifespan"})
        nursery.start_soon(call.run, app)
        call.tell({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
        await call.end()
    assert call.said == said
    [record] = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "no disk"


async def test_trio_asgi_shutdown_cancels_handlers_and_answers_clients(autojump_clock: None) -> None:
    neutral = Neutral()
    async with hosting(asgi(neutral.server)) as host:
        session = await host.session()
        call, stream = session.calling(1, "wait"), session.get()
        await stream.until(lambda: stream.said)
        await neutral.started.wait()
    assert neutral.seen == ["cancelled"]
    await call.end()
    await stream.end()
    assert call.answer["error"]["message"] == "the server is being shut down"
    assert stream.complete


async def test_trio_asgi_shutdown_lets_handlers_finish_first(autojump_clock: None) -> None:
    neutral = Neutral()
    async with trio.open_nursery() as nursery:
        async with hosting(asgi(neutral.server)) as host:
            call = host.calling(1, "wait")
            await neutral.started.wait()

            async def later() -> None:
                await trio.sleep(4)
                refused = await host.calling(2, "echo").end()
                assert refused.status == 503
                neutral.go.set()

            nursery.start_soon(later)
        await call.end()
    assert text_of(call) == "went on"


async def test_trio_asgi_lifespan_cancelled_cancels_handlers(caplog: pytest.LogCaptureFixture) -> None:
    lived = Lived()
    neutral = Neutral(lifespan=lived)
    app = asgi(neutral.server)
    async with anyio.create_task_group() as group:
        host = Host(app, group)
        living = host.call(type="lifespan")
        living.tell({"type": "lifespan.startup"})
        await living.until(lambda: living.said)
        call = host.calling(1, "wait")
        await neutral.started.wait()
        living.task.cancel()
        await call.end()
    assert lived.seen == ["in", "out"]
    assert neutral.seen == ["cancelled"]
    assert len(living.said) == 1
    assert not caplog.records


# -- Without a lifespan: the run ends the application, so each test has a run of its own ---------


def test_trio_asgi_without_lifespan_starts_at_the_first_request() -> None:
    lived = Lived()
    app = asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with hosting(app, lifespan=False) as host:
            calls = [host.calling(1, "value") for _ in range(3)]
            for call in calls:
                assert text_of(await call.end()) == "alive"
            session = await host.session()
            assert text_of(await session.calling(1, "value").end()) == "alive"
        assert lived.seen == ["in"]

    for _ in range(2):
        trio.run(main)
        assert lived.seen == ["in", "out"]
        lived.seen.clear()


def test_trio_asgi_start_failure_is_retried() -> None:
    lived = Lived()
    lived.fails["in"] = OSError("no disk")
    app = asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with hosting(app, lifespan=False) as host:
            calls = [host.calling(1, "value") for _ in range(2)]
            for call in calls:
                with pytest.raises(OSError, match="no disk"):
                    await call.end()
            assert lived.seen == ["in"]
            lived.fails.clear()
            assert text_of(await host.calling(1, "value").end()) == "alive"

    trio.run(main)
    assert lived.seen == ["in", "in", "out"]


def test_trio_asgi_start_survives_a_cancelled_request() -> None:
    lived = Lived()
    app = asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with hosting(app, lifespan=False) as host:
            given_up = host.calling(1, "value")
            while not lived.seen:
                await trio.lowlevel.checkpoint()
            given_up.task.cancel()
            assert text_of(await host.calling(2, "value").end()) == "alive"
            assert given_up.said == []
        assert lived.seen == ["in"]

    trio.run(main)


@pytest.mark.parametrize(
    "error", [OSError("no disk"), BaseExceptionGroup("", [SystemExit(3), OSError("no disk")])]
)
def test_trio_asgi_lifespan_failure_at_the_end_is_logged(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    lived = Lived()
    app = asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with hosting(app, lifespan=False) as host:
            assert text_of(await host.calling(1, "value").end()) == "alive"
        lived.fails["out"] = error

    trio.run(main)
    [record] = caplog.records
    assert record.getMessage() == "the lifespan failed"
    assert record.exc_info is not None
    assert record.exc_info[1] is error


# -- One request ---------------------------------------------------------------------------------


async def test_trio_asgi_request_task_cancelled_cancels_the_handler() -> None:
    neutral = Neutral()
    async with hosting(asgi(neutral.server)) as host:
        call = host.calling(1, "wait")
        await neutral.started.wait()
        call.task.cancel()
        await call.end()
        await neutral.until(lambda: neutral.seen == ["cancelled"])
        assert call.said == []


@pytest.mark.parametrize("tool", ["echo", "count"])
async def test_trio_asgi_send_oserror_ends_the_request(tool: str) -> None:
    async with hosting(asgi(Neutral().server)) as host:
        call = host.begin("POST", [HOST], None)
        call.refuses = OSError("gone")
        await call.end()
        call = host.calling(1, tool, arguments={"to": 3} if tool == "count" else {})
        call.refuses = OSError("gone")
        await call.end()
        assert call.said == []


async def test_trio_asgi_errors_of_the_server_propagate() -> None:
    neutral = Neutral()
    async with hosting(asgi(neutral.server)) as host:
        early = host.begin("POST", host.calling(1, "echo").scope["headers"], None)
        early.tell(ZeroDivisionError("in receive"))
        late = host.calling(2, "wait")
        await neutral.started.wait()
        late.tell(ZeroDivisionError("in receive"))
        for call in (early, late):
            with pytest.raises(ZeroDivisionError, match="in receive"):
                await call.end()
        refusing = host.calling(3, "echo")
        refusing.refuses = ZeroDivisionError("in send")
        with pytest.raises(ZeroDivisionError, match="in send"):
            await refusing.end()
        await neutral.until(lambda: neutral.seen == ["cancelled"])


async def test_trio_asgi_disconnect_during_a_blocked_send_ends_the_request() -> None:
    neutral = Neutral()
    async with hosting(asgi(neutral.server)) as host:
        call = host.calling(1, "flood", arguments={"number": 1000})
        call.taking = trio.Event()  # type: ignore[assignment]
        await neutral.started.wait()
        call.disconnect()
        await call.end()
        assert call.said == []


async def test_trio_asgi_silent_stream_gets_comments_and_idle_session_expires(autojump_clock: None) -> None:
    neutral = Neutral()
    options = HttpOptions(gate=Gate(None), comment=15, limits=HttpLimits(idle=60))
    async with hosting(AsgiApp(neutral.server, "/mcp", options), patience=1000) as host:
        session = await host.session()
        call = session.calling(1, "wait")
        await trio.sleep(50)
        assert call.raw.count(b":\n\n") == 3
        neutral.go.set()
        assert text_of(await call.end()) == "went on"
        await trio.sleep(61)
        assert (await session.calling(2, "echo").end()).status == 404


async def test_trio_asgi_unknown_scope_type_raises() -> None:
    async with hosting(asgi(Neutral().server)) as host:
        with pytest.raises(ValueError, match="knows no 'telephone'"):
            await host.call(type="telephone").end()


# -- In frameworks -------------------------------------------------------------------------------


def mounted(app: App, where: str) -> Any:
    if where == "fastapi":
        outer = FastAPI()
        outer.mount("/tools", app)
        return outer
    if where == "route":
        return Starlette(routes=[Route("/mcp", app)])
    if where == "root":
        return Starlette(routes=[Mount("/", app)])
    inner = Mount("/tools", app) if where == "mount" else Mount("/v1", routes=[Mount("/tools", app)])

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
        ("fastapi", "/tools/"),
        ("fastapi", "/tools/mcp"),
    ],
)
@pytest.mark.parametrize("root", ["", "/behind/a/proxy"])
def test_trio_asgi_mounted_in_a_framework_works(where: str, path: str, root: str) -> None:
    async def main() -> None:
        app = mounted(asgi(Neutral().server), where)
        # The server tells the framework of the lifespan, which does not pass it on to our
        # application.
        async with hosting(app, root=root) as host:
            called = await host.calling(1, "echo", arguments={"text": "hi"}, path=path).end()
            assert text_of(called) == "hi"
            stream = host.begin("GET", GET, path=path)
            await stream.until(lambda: stream.raw)
            assert stream.events[0]["data"].startswith(f"{root}{path}?")
            stream.disconnect()
            await stream.end()
            assert (await host.ask("GET", GET, path=f"{path.rstrip('/')}/more")).status == 404

    trio.run(main)


def test_trio_asgi_framework_can_run_the_lifespan() -> None:
    """As in the README: the application lives as long as the one in which it is mounted."""
    lived = Lived()
    app = asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with hosting(Starlette(routes=[Mount("/tools", app)])) as host:
            assert lived.seen == []
            assert text_of(await host.calling(1, "value", path="/tools/").end()) == "alive"
        assert lived.seen == ["in"]

    trio.run(main)
    assert lived.seen == ["in", "out"]


# -- Mistakes ------------------------------------------------------------------------------------


def test_trio_asgi_on_asyncio_names_the_asyncio_application() -> None:
    async def main() -> None:
        app = asgi(Neutral().server)
        for scope in ({"type": "lifespan"}, {"type": "http"}):
            call = Call(scope)
            call.tell({"type": "lifespan.startup"})
            await call.run(app)
            told = call.said[0]["message"] if call.said else str(call.failure)
            assert "there is mcp_asyncio_shim.asgi" in told

    asyncio.run(main())


@pytest.mark.parametrize(
    "options", [{"hosts": ["*.example.com"]}, {"origins": ["example.com"]}, {"hosts": "a"}]
)
def test_trio_asgi_invalid_host_or_origin_raises_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is not a host|is not an origin|is a list"):
        asgi(Server("x"), **options)


async def test_trio_asgi_repr() -> None:
    app = asgi(Neutral().server)
    assert re.fullmatch(r"<AsgiApp of <Server .*>, None>", repr(app))
    async with hosting(app):
        assert repr(app).endswith("<Reception, 0 conversations, 0 jobs>>")
