"""An ASGI application without a runtime: what it serves, and the dialogue in which its server tells it how long it lives.

Rules of this file:

1. An application is one endpoint: at its own root, and at its path beneath. What it serves is made anew for each run.
2. What fails is told to the server, which knows what to do without the application, and to the log.
3. A cancellation passes through, as whatever else is no `Exception`.

It refuses to know how requests are answered: `_asgi.py` spells them, and a driver waits. Source: asgi.readthedocs.io, Lifespan Protocol,
version 2.0.
"""

from __future__ import annotations

import abc
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ._endpoint import Endpoint
from ._guarding import Door
from ._site import Site

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping
    from contextlib import AbstractAsyncContextManager

    from ._bell import Bell
    from ._guarding import Guard
    from ._options import HttpOptions

    Receive = Callable[[], Awaitable[Mapping[str, Any]]]
    Send = Callable[[Any], Awaitable[None]]

__all__ = ["Application"]

_ERROR: Final = 40  # as in `logging`


class Application(abc.ABC):
    """An application that serves `server`, a `mcp_core.registry.Server`, at `path`; `auth` says who may ask.

    A driver adds `__call__`, which awaits `_live` for a scope of type `lifespan`, and `_begun` for others.
    """

    def __init__(self, server: Any, path: str, options: HttpOptions, auth: Guard | None = None) -> None:
        self._server, self._path, self._options, self._auth = server, path, options, auth
        self._reception: Any = None
        self._beginning: _Beginning | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._server!r}, {self._reception!r}>"

    # -- What the driver adds ----------------------------------------------------------------------------------------------

    # What is raised in a task that is cancelled; and the method of that name of a `logging.Logger`.
    _cancelled: type[BaseException]
    _log: Callable[..., object]

    @abc.abstractmethod
    def _open(self) -> AbstractAsyncContextManager[Any]:
        """What is entered when the application begins to live, and left at its end. It gives what answers requests."""

    @abc.abstractmethod
    def _spawn(self, living: Awaitable[None]) -> None:
        """Await it in a task that is cancelled at the end of the run."""

    @abc.abstractmethod
    def _bell(self) -> Bell:
        """Something to wait for."""

    # -- What it has of this -----------------------------------------------------------------------------------------------

    def _site(
        self, entropy: Callable[[int], bytes], wall_time: Callable[[], float], token: Any = None
    ) -> Site:
        """What is served in this run. `token` is the endpoint's."""
        endpoint = Endpoint(
            self._server.config,
            self._options,
            entropy=entropy,
            param_headers=self._server.param_headers,
            token=token,
            door=None if self._auth is None else Door(self._auth, wall_time, self._log),
        )
        return Site({"/": endpoint, self._path: endpoint})

    def _live(self, receive: Receive, send: Send) -> Awaitable[None]:
        """Awaited, it answers a call with a scope of type `lifespan`."""
        return _Living(self._dialogue, receive, send)

    def _begun(self) -> Awaitable[Any]:
        """What `_open` gives in this run. Where nobody has told of a lifespan one begins with the first request, and ends with the run."""
        return _Living(self._wait)

    # -- Awaited -----------------------------------------------------------------------------------------------------------

    def _dialogue(self, receive: Receive, send: Send) -> Generator[Any, Any, None]:
        stage = "startup"

        def told() -> Generator[Any, Any, None]:
            nonlocal stage
            yield from send({"type": "lifespan.startup.complete"}).__await__()
            stage = "shutdown"
            yield from receive().__await__()

        yield from receive().__await__()
        try:
            yield from self._within(told)
        except Exception as exc:  # noqa: BLE001 - rule 2
            self._log(_ERROR, "the %s failed", stage, exc_info=exc)
            what = f"{type(exc).__name__}: {exc}"
            yield from send({"type": f"lifespan.{stage}.failed", "message": what}).__await__()
        else:
            yield from send({"type": "lifespan.shutdown.complete"}).__await__()

    def _within(self, run: Callable[[], Generator[Any, Any, None]]) -> Generator[Any, Any, None]:
        """Run it while the application lives."""
        opened = self._open()
        self._reception = yield from opened.__aenter__().__await__()
        try:
            yield from run()
        except BaseException as exc:
            if not (yield from opened.__aexit__(type(exc), exc, exc.__traceback__).__await__()):
                raise
        else:
            yield from opened.__aexit__(None, None, None).__await__()
        finally:
            self._reception = None

    def _wait(self) -> Generator[Any, Any, Any]:
        while self._reception is None:
            beginning = self._beginning
            if beginning is None:
                beginning = self._beginning = _Beginning(self._bell())
                self._spawn(_Living(self._unasked, beginning))
            yield from beginning.over.wait().__await__()
            if beginning.failure is not None:
                raise beginning.failure
        return self._reception

    def _unasked(self, beginning: _Beginning) -> Generator[Any, Any, None]:
        def for_ever() -> Generator[Any, Any, None]:
            self._beginning = None
            beginning.over.set()
            yield from self._bell().wait().__await__()

        try:
            yield from self._within(for_ever)
        except self._cancelled:
            raise
        except BaseException as exc:  # noqa: BLE001 - nobody else hears of it, and a run may end by what its tasks raise
            self._log(_ERROR, "the lifespan failed", exc_info=exc)
            beginning.failure = exc
        finally:
            self._beginning = None
            beginning.over.set()


class _Beginning:
    """A lifespan that begins with a request."""

    __slots__ = ("failure", "over")

    def __init__(self, over: Bell) -> None:
        self.over = over
        self.failure: BaseException | None = None


class _Living:
    """Something to await, once."""

    __slots__ = ("_run",)

    def __init__(self, run: Callable[..., Generator[Any, Any, Any]], *told: Any) -> None:
        self._run = partial(run, *told)

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._run()
