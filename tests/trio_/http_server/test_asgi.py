"""The ASGI application on trio: what it does not share with the one on asyncio
(`tests/test_asgi.py`).
"""

from __future__ import annotations

import asyncio
import re

import anyio
import pytest

from mcp_trio import asgi
from tests.harness.wire.asgi import (
    Call,
    Host,
    Lived,
    Neutral,
    serve_app,
)


async def test_trio_asgi_lifespan_cancelled_cancels_handlers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A host may cancel its lifespan task without a shutdown event, and cleanup still runs."""
    lived = Lived()
    neutral = Neutral(lifespan=lived)
    app = asgi(neutral.server)
    async with anyio.create_task_group() as group:
        host = Host(app, group)
        living = host.call(type="lifespan")
        living.deliver({"type": "lifespan.startup"})
        await living.until(lambda: living.sent)
        call = host.call_tool(1, "wait")
        await neutral.started.wait()
        living.task.cancel()
        await call.end()
    assert lived.seen == ["in", "out"]
    assert neutral.log == ["cancelled"]
    assert len(living.sent) == 1
    assert not caplog.records


def test_trio_asgi_on_asyncio_names_the_asyncio_application() -> None:
    async def main() -> None:
        app = asgi(Neutral().server)
        for scope in ({"type": "lifespan"}, {"type": "http"}):
            call = Call(scope)
            call.deliver({"type": "lifespan.startup"})
            await call.run(app)
            text = call.sent[0]["message"] if call.sent else str(call.failure)
            assert "there is mcp_asyncio_shim.asgi" in text
        with pytest.raises(RuntimeError, match="this application runs on trio"):
            await app.lifespan().__aenter__()

    asyncio.run(main())


async def test_trio_asgi_repr_shows_the_running_driver() -> None:
    app = asgi(Neutral().server)
    assert re.fullmatch(r"<AsgiApp of <Server .*>, None>", repr(app))
    async with serve_app(app):
        assert repr(app).endswith("<HttpServerDriver, 0 conversations, 0 jobs>>")
