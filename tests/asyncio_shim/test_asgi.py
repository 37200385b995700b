"""The ASGI application on asyncio; `tests/test_asgi.py` has the scenarios of both drivers."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import anyio
import pytest

from mcp_asyncio_shim import asgi
from mcp_core.auth import (
    ApiKeys,
    IntrospectionVerifier,
    JwtVerifier,
    OAuthResourceServer,
    TokenVerifier,
)
from tests.core.auth.minting import JWKS
from tests.harness.jsonrpc import cancelled
from tests.harness.wire.asgi import (
    Call,
    Host,
    Lived,
    Neutral,
    serve_app,
)
from tests.harness.wire.router import POST
from tests.harness.world.loop import run


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


def test_asgi_application_has_no_timer_after_its_lifespan() -> None:
    """A request whose body doesn't come still has a deadline then."""

    async def main() -> None:
        app = asgi(Neutral().server)
        async with anyio.create_task_group() as group:
            host = Host(app, group)
            living = host.call(type="lifespan", state={})
            living.deliver({"type": "lifespan.startup"})
            await living.until(lambda: living.sent)
            driver = app._driver
            host.begin("POST", POST, None)
            await asyncio.sleep(0.1)
            living.deliver({"type": "lifespan.shutdown"})
            await living.end()
            assert driver.router.next_deadline() is not None
            assert driver._timer.cancelled()
            group.cancel_scope.cancel()

    run(main())


def test_asgi_application_shuts_down_before_its_lifespan_ends() -> None:
    """A call that runs gets 5 s and then an error, streams end, and new requests are refused."""

    async def main() -> None:
        lived = Lived()
        neutral = Neutral(lifespan=lived)

        @neutral.server.tool
        async def slow() -> str:
            """Take a minute."""
            neutral.started.set()
            try:
                await asyncio.sleep(60)
            finally:
                neutral.log.append("cancelled")
            return "never"

        app = asgi(neutral.server)
        await app._shut_down()  # it hasn't begun
        async with serve_app(app) as host:
            session = await host.session()
            stream = session.get()
            await stream.until(lambda: stream.raw)
            call = session.calling(1, "slow")
            await neutral.started.wait()
            loop = asyncio.get_running_loop()
            began = loop.time()
            await app._shut_down()
            assert loop.time() - began == pytest.approx(5)
            await call.end()
            await stream.end()
            assert call.answer["error"]["message"] == "the server is being shut down"
            late = session.calling(2, "slow")
            await late.end()
            assert late.status in (404, 503)
            assert lived.seen == ["in"]
        assert lived.seen == ["in", "out"]
        assert neutral.log == ["cancelled"]

    run(main())


def test_asgi_shutdown_does_not_interrupt_the_cleanup_of_a_cancelled_handler() -> None:
    """asyncio has no shield: a second cancellation would interrupt its `finally` block."""
    seen: list[str] = []

    async def main() -> None:
        neutral = Neutral()

        @neutral.server.tool
        async def tidy() -> None:
            """Wait, and take eight seconds to clean up."""
            neutral.started.set()
            try:
                await asyncio.sleep(60)
            finally:
                seen.append("cancelled")
                await asyncio.sleep(8)
                seen.append("clean")

        app = asgi(neutral.server)
        async with serve_app(app) as host:
            session = await host.session()
            session.calling(1, "tidy")
            await neutral.started.wait()
            await session.post(cancelled(1)).end()
            assert seen == ["cancelled"]
            began = asyncio.get_running_loop().time()
            await app._shut_down()  # cancels what runs after 5 s, and waits for a second
            assert asyncio.get_running_loop().time() - began == pytest.approx(6)
            assert seen == ["cancelled"]
        assert seen == ["cancelled", "clean"]

    run(main())


def test_service_of_an_ended_session_is_forgotten_with_its_last_handler() -> None:
    """The 5 s timer that would drop the service is cancelled once the handler's cleanup ends."""

    async def main() -> None:
        neutral = Neutral()

        @neutral.server.tool
        async def tidy() -> str:
            """Take a second to clean up."""
            neutral.started.set()
            try:
                await neutral.go.wait()
            finally:
                await asyncio.sleep(1)
            return ""

        app = asgi(neutral.server)
        async with serve_app(app) as host:
            session = await host.session()
            session.calling(1, "tidy")
            await neutral.started.wait()
            await (await host.session()).delete()  # nothing of it runs
            await session.delete()
            ending = app._driver._ending
            (timer,) = ending.values()
            assert timer.when() - asyncio.get_running_loop().time() == pytest.approx(5)
            await asyncio.sleep(0.9)
            assert len(ending) == 1
            await asyncio.sleep(0.2)
            assert ending == {}
            assert timer.cancelled()

    run(main())


@pytest.mark.parametrize("before", [False, True], ids=["at the end", "before"])
def test_asgi_lifespan_waits_for_a_handler_that_ignores_its_cancellation(before: bool) -> None:
    """It may use what the lifespan closes. The log names it after ten seconds.

    A shutdown before the lifespan's end isn't repeated.
    """
    warnings: list[tuple[float, str]] = []

    class Clocked(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warnings.append((asyncio.get_running_loop().time(), record.getMessage()))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        lived = Lived()
        neutral = Neutral(lifespan=lived)

        @neutral.server.tool
        async def stubborn() -> str:
            """Take a minute."""
            neutral.started.set()
            end = loop.time() + 60
            while (left := end - loop.time()) > 0:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(left)
            neutral.log += lived.seen
            return ""

        app = asgi(neutral.server)
        async with serve_app(app) as host:
            session = await host.session()
            session.calling(1, "stubborn")
            await neutral.started.wait()
            began = loop.time()
            if before:
                await app._shut_down()
        assert loop.time() == began + 60
        assert neutral.log == ["in"]
        assert lived.seen == ["in", "out"]
        [(time, text)] = warnings
        assert time == pytest.approx(began + 10)
        assert "stubborn" in text

    handler = Clocked(logging.WARNING)
    log = logging.getLogger("mcp_asyncio_shim")
    log.addHandler(handler)
    try:
        run(main())
    finally:
        log.removeHandler(handler)


URL, ISSUER = "https://mcp.example.com/mcp", "https://as.example.com"
FETCHING = [
    JwtVerifier(ISSUER, URL),
    JwtVerifier(ISSUER, URL, jwks_uri=f"{ISSUER}/keys"),
    IntrospectionVerifier(
        ISSUER, URL, endpoint=f"{ISSUER}/introspect", client_id="us", client_secret="a secret"
    ),
]


@pytest.mark.parametrize("verifier", FETCHING, ids=["issuer", "jwks_uri", "introspection"])
def test_asgi_verifier_that_fetches_raises_at_once(verifier: TokenVerifier) -> None:
    """Each request would be refused: this driver has no HTTP client for authorization."""
    auth = OAuthResourceServer(URL, [ISSUER], verifier)
    with pytest.raises(ValueError, match=r"JwtVerifier\(\.\.\., jwks=KEYS\).* a function"):
        asgi(Neutral().server, auth=auth)


def test_asgi_verifier_that_fetches_nothing_is_accepted() -> None:
    for verifier in (
        JwtVerifier(ISSUER, URL, secret=b"x" * 32),
        JwtVerifier(ISSUER, URL, jwks=JWKS),
    ):
        asgi(Neutral().server, auth=OAuthResourceServer(URL, [ISSUER], verifier))
    asgi(Neutral().server, auth=OAuthResourceServer(URL, [ISSUER], lambda token: None))
    asgi(Neutral().server, auth=ApiKeys({"ann": "ann-0123456789abcdef"}))
