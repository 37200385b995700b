"""How a store is opened: in time, and in one event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol

from ._runtime import TaskRuntime

__all__ = ["check_event_loop", "open_store"]

# Seconds. A store of Redis needs some if nothing responds.
_OPENING_TIME: Final = 15.0


class _Store(Protocol):
    def opened(self, runtime: Any, /) -> AbstractAsyncContextManager[object]: ...


@asynccontextmanager
async def open_store(store: _Store, runtime: TaskRuntime) -> AsyncIterator[None]:
    """Enter `store.opened(runtime)`, which may take 15 s.

    Raises:
        TimeoutError: it took longer.
    """
    # The limit is around all of it: a store may open a nursery, which can't outlive a limit that
    # was set in it.
    is_open = False
    with runtime.time_limit(_OPENING_TIME) as lift:
        async with store.opened(runtime):
            is_open = lift()
            if is_open:
                yield
    if not is_open:
        raise TimeoutError(
            f"{store!r} was not open after {_OPENING_TIME:g} s. Its method `opened` must return"
            " although nothing responds, and its other methods may fail then"
        )


def check_event_loop(runtime: TaskRuntime, others: Sequence[TaskRuntime], store: object) -> None:
    """Check that `runtime` is in the event loop of `others`, for which `store` is open.

    Raises:
        RuntimeError: it is in another one.
    """
    if any(other.event_loop is not runtime.event_loop for other in others):
        raise RuntimeError(
            f"{store!r} is open in another event loop, such as another thread's. Make a store in"
            " each event loop; only stores of Redis, with one name, then share changes"
        )
