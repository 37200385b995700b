"""The ASGI application on trio: what it does not share with the one on asyncio
(`tests/test_asgi.py`).
"""

from __future__ import annotations

import asyncio
import re

import anyio
import pytest
import trio

from mcp_core.http import HostOriginPolicy, HttpLimits, HttpOptions
from mcp_trio import AsgiApp, asgi
from tests.asgi import Call, Host, Lived, Neutral, serve_app, text_of


async def test_trio_asgi_lifespan_cancelled_cancels_handlers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lived = Lived()
    neutral = Neutral(lifespan=lived)
    app = asgi(neutral.server)
    async with anyio.create_task_group() as group:
        host = Host(app, group)
        living = host.call(type="lifespan")
        living.tell({"type": "lifespan.startup"})
        await living.until(lambda: living.said)
        call = host.call_tool(1, "wait")
        await neutral.started.wait()
        living.task.cancel()
        await call.end()
    assert lived.seen == ["in", "out"]
    assert neutral.log == ["cancelled"]
    assert len(living.said) == 1
    assert not caplog.records


@pytest.mark.parametrize(
    "error", [OSError("no disk"), BaseExceptionGroup("", [SystemExit(3), OSError("no disk")])]
)
def test_trio_asgi_lifespan_failure_at_the_end_is_logged(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    lived = Lived()
    app = asgi(Neutral(lifespan=lived).server)

    async def main() -> None:
        async with serve_app(app, lifespan=False) as host:
            assert text_of(await host.call_tool(1, "value").end()) == "alive"
        lived.fails["out"] = error

    trio.run(main)
    [record] = caplog.records
    assert record.getMessage() == "the lifespan failed"
    assert record.exc_info is not None
    assert record.exc_info[1] is error


async def test_trio_asgi_silent_stream_gets_comments_and_idle_session_expires(
    autojump_clock: None,
) -> None:
    neutral = Neutral()
    options = HttpOptions(
        host_origin_policy=HostOriginPolicy(None), comment_interval=15, limits=HttpLimits(idle=60)
    )
    async with serve_app(AsgiApp(neutral.server, "/mcp", options), patience=1000) as host:
        session = await host.session()
        call = session.calling(1, "wait")
        await trio.sleep(50)
        assert call.raw.count(b":\n\n") == 3
        neutral.go.set()
        assert text_of(await call.end()) == "went on"
        await trio.sleep(61)
        assert (await session.calling(2, "echo").end()).status == 404


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


async def test_trio_asgi_repr() -> None:
    app = asgi(Neutral().server)
    assert re.fullmatch(r"<AsgiApp of <Server .*>, None>", repr(app))
    async with serve_app(app):
        assert repr(app).endswith("<HttpServerDriver, 0 conversations, 0 jobs>>")
