"""The ASGI application on asyncio; `tests/test_asgi.py` has the scenarios of both drivers."""

from __future__ import annotations

import asyncio

from mcp_asyncio_shim import AsgiApp, asgi
from mcp_core.http import HostOriginPolicy, HttpLimits, HttpOptions
from tests.asgi import Call, Lived, Neutral, serve_app, text_of
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
