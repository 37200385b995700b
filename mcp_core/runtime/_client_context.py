"""The context managers that `connect` and its variants return.

Their errors say how to fix three mistakes: a missing `async with`, the package for another event
loop, and a client that is made in place of a connection.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar

from mcp_core.protocol.revisions._config import Config

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ClientContext", "client_context", "made_by_connect"]

P = ParamSpec("P")
C = TypeVar("C")
K = TypeVar("K", bound=type)


class ClientContext(AbstractAsyncContextManager[C], Generic[C]):
    """A connection that `async with` opens and closes.

    Args:
        manager: opens and closes it.
        function: the name of the function that returned this, for error texts.
        check: raises an exception if the event loop isn't the driver's.
    """

    __slots__ = ("_check", "_function", "_manager")

    def __init__(
        self,
        manager: AbstractAsyncContextManager[C],
        function: str,
        check: Callable[[], object],
    ) -> None:
        self._manager = manager
        self._function = function
        self._check = check

    def __repr__(self) -> str:
        return f"<{self._function}(...), for use with `async with`>"

    async def __aenter__(self) -> C:
        self._check()
        return await self._manager.__aenter__()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._manager.__aexit__(exc_type, exc, traceback)

    if not TYPE_CHECKING:  # a type checker reports these mistakes itself

        def __await__(self) -> NoReturn:
            raise TypeError(self._cure())

        def __enter__(self) -> NoReturn:
            raise TypeError(self._cure())

        def __exit__(self, *_: object) -> NoReturn:
            raise TypeError(self._cure())

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"no attribute {name!r}: {self._cure()}")

    def _cure(self) -> str:
        return f"write `async with {self._function}(...) as client:`"


def client_context(
    check: Callable[[], object],
) -> Callable[[Callable[P, AsyncIterator[C]]], Callable[P, ClientContext[C]]]:
    """Return a decorator that makes a context manager of an async generator, for one driver.

    `check` raises an exception if the event loop isn't the driver's. It is called when a block is
    entered.
    """

    def decorate(function: Callable[P, AsyncIterator[C]]) -> Callable[P, ClientContext[C]]:
        make = asynccontextmanager(function)
        package = function.__module__.partition(".")[0]

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> ClientContext[C]:
            return ClientContext(make(*args, **kwargs), f"{package}.{function.__name__}", check)

        return call

    return decorate


def made_by_connect(kind: K) -> K:
    """Let a client class say what to write if it is called with a server in place of a `Config`.

    A class decorator, for `kind`; `help()` still shows the class's own arguments.
    """
    signature = inspect.signature(kind)

    def new(cls: type, config: object = None, *_: object, **__: object) -> object:
        if isinstance(config, Config):
            return object.__new__(cls)
        raise TypeError(
            f"{cls.__name__} is made by `connect`: `async with connect(server) as client`, where "
            "`server` is a Server, a URL or a command; several servers are a Host"
        )

    kind.__new__ = new  # type: ignore[method-assign, assignment]
    kind.__signature__ = signature  # type: ignore[attr-defined]
    return kind
