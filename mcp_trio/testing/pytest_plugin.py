"""The pytest plugin with the fixture `no_leaks`, which fails a test that leaks resources.

Enable it in the topmost `conftest.py`, or with `-p mcp_trio.testing.pytest_plugin`; it isn't an
entry point, so it is never loaded unasked:

    pytest_plugins = ["mcp_trio.testing.pytest_plugin"]

Then request `no_leaks` in a test, or enable it for every test in `pyproject.toml`:

    [tool.pytest.ini_options]
    usefixtures = ["no_leaks"]

At the end of the test, after its other fixtures, there must be no new descriptor, child process,
thread, or system task of its trio run. Every `mcp_core.Connection` that was made while trio or
asyncio ran must be closed and empty. A test that has already failed isn't checked. The mark
`may_leave` allows a test one or more of these kinds: `@pytest.mark.may_leave("descriptor")`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from ._leaks import KINDS, LeakDetector

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = ["no_leaks"]

_call_passed = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"may_leave(*kinds): what `no_leaks` lets pass, of these: {', '.join(KINDS)}"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        item.stash[_call_passed] = report.passed
    return report


@pytest.fixture
def no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test if it leaves a task, a descriptor, a child, a thread or a connection behind.

    The kinds in a mark `may_leave` of the test may be left. Only passed tests are checked.
    """
    item = request.node
    allowed = {kind for mark in item.iter_markers("may_leave") for kind in mark.args}
    if unknown := allowed.difference(KINDS):
        pytest.fail(
            f"may_leave: there is no kind {sorted(unknown)}, only {', '.join(KINDS)}", pytrace=False
        )
    with LeakDetector() as watch:
        # The plugin that runs the test in trio reads `item.obj` after the fixtures.
        if inspect.iscoroutinefunction(getattr(item, "obj", None)):
            item.obj = watch.watched(item.obj)
        yield
    # Check passed tests only: the traceback of a failure keeps its objects alive.
    if item.stash.get(_call_passed, False) and (left := watch.leaks(allowed)):
        pytest.fail(
            "\n".join(["left behind:", *(f"  {kind} {what}" for kind, what in left)]), pytrace=False
        )
