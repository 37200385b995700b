"""The ASGI application on asyncio; `tests/test_asgi.py` has the scenarios of both drivers."""

from __future__ import annotations

import asyncio

from mcp_asyncio_shim import asgi
from tests.asgi import Call, Lived, Neutral
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
