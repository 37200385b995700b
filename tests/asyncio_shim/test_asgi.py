"""The ASGI application on asyncio; `tests/test_asgi.py` has the scenarios of both drivers."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from mcp_asyncio_shim import AsgiApp, asgi
from mcp_core.http import HostOriginPolicy, HttpLimits, HttpOptions
from tests.asgi import Call, Host, Lived, Neutral, serve_app, text_of
from tests.asyncio_shim.loop import run


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


@pytest.mark.parametrize("cancellations", [1, 2, 3])
def test_asgi_lifespan_cancelled_again_still_ends_everything(cancellations: int) -> None:
    """An impatient host cancels again and again: no handler, session or timer may be left."""

    async def main() -> None:
        lived = Lived()
        neutral = Neutral(lifespan=lived)

        @neutral.server.tool
        async def stubborn() -> str:
            """Take its time, even when cancelled."""
            try:
                await asyncio.sleep(60)
            finally:
                neutral.log.append("cancelled")
                await asyncio.sleep(0.05)
            return "never"

        app = asgi(neutral.server)
        async with anyio.create_task_group() as group:
            host = Host(app, group)
            living = Call({"type": "lifespan"})
            living.tell({"type": "lifespan.startup"})
            task = asyncio.create_task(living.run(app))
            await living.until(lambda: living.said)
            driver = app._driver
            session = await host.session()
            call = session.calling(1, "stubborn")
            stream = session.get()
            await stream.until(lambda: stream.raw)
            for _ in range(cancellations):
                task.cancel()
                await asyncio.sleep(0.01)
            await asyncio.wait({task})
            assert lived.seen == ["in", "out"]
            await call.end()
            await stream.end()
            assert "error" in call.answer
            await neutral.until(lambda: not driver.tasks)
            assert neutral.log == ["cancelled"]
            assert driver.router.next_deadline() is None

    run(main())


def test_asgi_keep_alive_comments_and_session_timeout() -> None:
    async def main() -> None:
        neutral = Neutral()
        options = HttpOptions(
            host_origin_policy=HostOriginPolicy(None),
            comment_interval=0.01,
            limits=HttpLimits(idle=0.05),
        )
        async with serve_app(AsgiApp(neutral.server, "/mcp", options)) as host:
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
