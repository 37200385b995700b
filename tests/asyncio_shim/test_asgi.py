"""The ASGI application on asyncio; `tests/test_asgi.py` has the scenarios of both drivers."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from mcp_asyncio_shim import asgi
from tests.asgi import Call, Host, Lived, Neutral
from tests.asyncio_shim.loop import run


def test_asgi_lifespan_cancelled_leaves_server_lifespan() -> None:
    async def main() -> None:
        lived = Lived()
        neutral = Neutral(lifespan=lived)
        app = asgi(neutral.server)
        living = Call({"type": "lifespan"})
        living.deliver({"type": "lifespan.startup"})
        task = asyncio.create_task(living.run(app))
        await living.until(lambda: living.sent)
        task.cancel()
        await asyncio.wait({task})
        assert lived.seen == ["in", "out"]
        assert len(living.sent) == 1

    run(main())


@pytest.mark.parametrize("cancellations", [1, 2, 3])
def test_asgi_lifespan_cancelled_again_still_ends_everything(
    cancellations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An impatient host cancels again and again: no handler, session or timer may be left."""
    monkeypatch.setattr("mcp_asyncio_shim._asgi.SHUTDOWN_GRACE", 0.2)

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
            living.deliver({"type": "lifespan.startup"})
            task = asyncio.create_task(living.run(app))
            await living.until(lambda: living.sent)
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
