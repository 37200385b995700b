"""The fixture `each_driver`: its tests run on trio and on asyncio, in virtual time on both.

A module or a test asks for it with `pytest.mark.usefixtures("each_driver")`. Its tests are
`async def`, and may take the fixture `nursery`, which is cancelled at the end of the test. Fixtures
of their own are not `async`: they cannot know where they run. `either.py` has what such a test
needs.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from tests.harness import either
from tests.harness.world import virtual_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["each_driver", "waits_for_threads"]


@pytest.fixture(params=["trio", "asyncio"])
def each_driver(request: pytest.FixtureRequest) -> str:
    """The name of the driver on which the test runs."""
    name: str = request.param
    return name


@pytest.fixture
def waits_for_threads() -> None:
    """Let time go on as usual on trio, for a test whose events come from threads."""


def _driver_of(item: Any) -> str | None:
    found: str | None = getattr(item, "callspec", None) and item.callspec.params.get("each_driver")
    return found


@pytest.hookimpl(trylast=True)  # after pytest-trio has marked all that is `async`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take the tests of `each_driver` from pytest-trio."""
    for item in items:
        if _driver_of(item):
            item.own_markers = [mark for mark in item.own_markers if mark.name != "trio"]


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: Any) -> object:
    """Put a placeholder for the nursery, which is opened with the test."""
    if fixturedef.argname == "nursery" and _driver_of(request.node):
        fixturedef.cached_result = (_NURSERY, fixturedef.cache_key(request), None)
        return _NURSERY
    return None


_NURSERY = object()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    name = _driver_of(pyfuncitem)
    if name is None or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {each: pyfuncitem.funcargs[each] for each in pyfuncitem._fixtureinfo.argnames}
    if name == "trio":
        # trio's clock would jump while a thread works; asyncio's knows about threads.
        real = "waits_for_threads" in pyfuncitem.fixturenames
        clock = None if real else trio.testing.MockClock(autojump_threshold=0)
        trio.run(_run_test, pyfuncitem.obj, arguments, clock=clock)
    else:
        virtual_time.run(_run_test(pyfuncitem.obj, arguments))
    return True


async def _run_test(test: Callable[..., Awaitable[object]], arguments: dict[str, Any]) -> None:
    if _NURSERY not in arguments.values():
        await test(**arguments)
        return
    async with either.open_quiet_nursery() as nursery:
        given = {name: nursery if value is _NURSERY else value for name, value in arguments.items()}
        await test(**given)
