"""The ASGI application on asyncio: the same bytes as on trio; lifespans, cancellation, loops."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from starlette.applications import Starlette
from starlette.routing import Mount

import mcp_trio
from mcp_asyncio_shim import AsgiApp, asgi
from mcp_core.http import Gate, HttpLimits, HttpOptions
from mcp_core.registry import Server
from tests.asgi import SCENARIOS, Call, Neutral, hosting, text_of, transcript
from tests.asyncio_shim.loop import run
from tests.core.http.site import GET, HOST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from tests.asgi import Make


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_asgi_messages_equal_those_of_trio(scenario: Callable[[Make], Awaitable[list[Call]]]) -> None:
    async def main() -> list[Call]:
        return await scenario(asgi)

    said = transcript(run(main()))
    assert said
    assert said == transcript(trio.run(scenario, mcp_trio.asgi))


class Lived:
    """A lifespan that records its steps, and fails on request."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.fails: dict[str, Exception] = {}

    @asynccontextmanager
    async def __call__(self, server: Server) -> AsyncIterator[str]:
        self.seen.append("in")
        await asyncio.sleep(0)
        if "in" in self.fails:
            raise self.fails["in"]
        try:
            yield "alive"
        finally:
            self.seen.append("out")
            if "out" in self.fails:
                raise self.fails["out"]


def test_asgi_lifespan_enters_server_lifespan() -> None:
    lived = Lived()
    app = asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with hosting(app) as host:
            assert lived.seen == ["in"]
            assert text_of(await host.calling(1, "value").end()) == "alive"
        assert lived.seen == ["in", "out"]
        lived.seen.clear()

    run(main())
    run(main())  # it may be served again


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
def test_asgi_lifespan_failing_is_reported(
    stage: str, said: list[dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    lived = Lived()
    lived.fails[stage] = OSError("no disk")

    async def main() -> None:
        call = Call({"type": "lifespan"})
        call.tell({"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
        await call.run(asgi(Neutral(lifespan=lived).server))
        assert call.failure is None
        assert call.said == said

    run(main())
    [record] = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "no disk"


def test_asgi_shutdown_cancels_handlers_and_ends_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_asyncio_shim._asgi._GRACE", 0.01)

    async def main() -> None:
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

    run(main())


def test_asgi_shutdown_waits_for_handlers() -> None:
    async def main() -> None:
        neutral = Neutral()
        async with hosting(asgi(neutral.server)) as host:
            call = host.calling(1, "wait")
            await neutral.started.wait()

            async def later() -> None:
                while (await host.calling(2, "echo").end()).status != 503:
                    pass
                neutral.go.set()

            host.group.start_soon(later)
        await call.end()
        assert text_of(call) == "went on"

    run(main())


def test_asgi_lifespan_cancelled_leaves_server_lifespan() -> None:
    async def main() -> None:
        lived = Lived()
        neutral = Neutral(lifespan=lived)
        app = asgi(neutral.server)
        living = Call({"type": "lifespan"})
        living.tell({"type": "lifespan.startup"})
        task = asyncio.create_task(living.run(app))
        await living.until(lambda: living.said)
        task.cancel()
        await asyncio.wait({task})
        assert lived.seen == ["in", "out"]
        assert len(living.said) == 1

    run(main())


# -- Without a lifespan ------------------------------------------------------------------------------------------------------------


def test_asgi_without_lifespan_starts_with_first_request() -> None:
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
        asyncio.run(main())
        assert lived.seen == ["in", "out"]
        lived.seen.clear()


def test_asgi_start_failed_is_retried(caplog: pytest.LogCaptureFixture) -> None:
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

    asyncio.run(main())
    assert lived.seen == ["in", "in", "out"]
    assert [record.getMessage() for record in caplog.records] == ["the lifespan failed"]


def test_asgi_request_cancelled_during_start_does_not_end_it() -> None:
    lived = Lived()
    app = asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with hosting(app, lifespan=False) as host:
            given_up = host.calling(1, "value")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            given_up.task.cancel()
            assert text_of(await host.calling(2, "value").end()) == "alive"
            assert given_up.said == []
        assert lived.seen == ["in"]

    asyncio.run(main())


# -- One request -------------------------------------------------------------------------------------------------------------------


def test_asgi_request_cancelled_cancels_handler() -> None:
    async def main() -> None:
        neutral = Neutral()
        async with hosting(asgi(neutral.server)) as host:
            call = host.calling(1, "wait")
            await neutral.started.wait()
            call.task.cancel()
            await call.end()
            await neutral.until(lambda: neutral.seen == ["cancelled"])
            assert call.said == []

    run(main())


@pytest.mark.parametrize("tool", ["echo", "count"])
def test_asgi_send_raising_oserror_is_disconnect(tool: str) -> None:
    async def main() -> None:
        async with hosting(asgi(Neutral().server)) as host:
            call = host.begin("POST", [HOST], None)
            call.refuses = OSError("gone")
            await call.end()
            call = host.calling(1, tool, arguments={"to": 3} if tool == "count" else {})
            call.refuses = OSError("gone")
            await call.end()
            assert call.said == []

    run(main())


def test_asgi_send_raising_other_error_propagates() -> None:
    async def main() -> None:
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

    run(main())


def test_asgi_keep_alive_comments_and_session_timeout() -> None:
    async def main() -> None:
        neutral = Neutral()
        options = HttpOptions(gate=Gate(None), comment=0.01, limits=HttpLimits(idle=0.05))
        async with hosting(AsgiApp(neutral.server, "/mcp", options)) as host:
            session = await host.session()
            call = session.calling(1, "wait")
            await call.until(lambda: call.raw.count(b":\n\n") >= 3)
            neutral.go.set()
            assert text_of(await call.end()) == "went on"
            stream = session.get()
            while (again := await session.calling(2, "echo").end()).status != 404:
                stream.disconnect()
                await asyncio.sleep(0.1)
            assert again.status == 404

    run(main())


def test_asgi_unknown_scope_raises() -> None:
    async def main() -> None:
        async with hosting(asgi(Neutral().server)) as host:
            with pytest.raises(ValueError, match="knows no 'telephone'"):
                await host.call(type="telephone").end()

    run(main())


def test_asgi_mounted_is_served_at_mount_path() -> None:
    async def main() -> None:
        app = Starlette(routes=[Mount("/v1", routes=[Mount("/tools", asgi(Neutral().server))])])
        async with hosting(app, root="/proxy") as host:
            called = await host.calling(1, "echo", arguments={"text": "hi"}, path="/v1/tools/").end()
            assert text_of(called) == "hi"
            stream = host.begin("GET", GET, path="/v1/tools/mcp")
            await stream.until(lambda: stream.raw)
            assert stream.events[0]["data"].startswith("/proxy/v1/tools/mcp?")
            stream.disconnect()
            await stream.end()

    asyncio.run(main())


@pytest.mark.parametrize(
    "options", [{"hosts": ["*.example.com"]}, {"origins": ["example.com"]}, {"hosts": "a"}]
)
def test_asgi_invalid_hosts_raise(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is not a host|is not an origin|is a list"):
        asgi(Server("x"), **options)
