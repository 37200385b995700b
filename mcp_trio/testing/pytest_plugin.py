"""The pytest plugin: the fixture `no_leaks` fails a test that leaves something behind.

Switch it on in the topmost `conftest.py`, or with `-p mcp_trio.testing.pytest_plugin`:

    pytest_plugins = ["mcp_trio.testing.pytest_plugin"]

Then a test asks for `no_leaks`, or every test is told to, by two lines of `pyproject.toml`:

    [tool.pytest.ini_options]
    usefixtures = ["no_leaks"]

At the end of the test, when all its other fixtures are over, nothing may be left that was not there before: no descriptor, no
child process, no thread, and no system task of its run in trio. Every `mcp_core.Connection` that was made while trio or asyncio
ran has to be closed and empty. A test that has failed anyway is not blamed for more. The mark `may_leave` allows a test
one of these kinds or several: `@pytest.mark.may_leave("descriptor")`.

Nobody gets this unasked: the plugin is no entry point. It is the only module here that imports pytest; what it looks at, and how, is
in `_leaks.py`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from ._leaks import KINDS, Watch

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = ["no_leaks"]

_passed = pytest.StashKey[bool]()


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
        item.stash[_passed] = report.passed
    return report


@pytest.fixture
def no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails the test if it leaves a task, a descriptor, a child, a thread or a connection behind."""
    item = request.node
    allowed = {kind for mark in item.iter_markers("may_leave") for kind in mark.args}
    if unknown := allowed.difference(KINDS):
        pytest.fail(f"may_leave: there is no kind {sorted(unknown)}, only {', '.join(KINDS)}", pytrace=False)
    with Watch() as watch:
        # Before whoever runs it in trio looks at it.
        if inspect.iscoroutinefunction(getattr(item, "obj", None)):
            item.obj = watch.joined(item.obj)
        yield
    # The traceback of a failure keeps alive what it has to do with.
    if item.stash.get(_passed, False) and (left := watch.left(allowed)):
        pytest.fail("\n".join(["left behind:", *(f"  {kind} {what}" for kind, what in left)]), pytrace=False)
