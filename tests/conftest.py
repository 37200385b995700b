"""The setup for all tests: child processes run the working tree, node peers are found or skipped,
and no test leaves anything behind for the next.

Fixtures of one area live with that area.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_core.processes._child_environment import _USUAL_VARIABLES
from mcp_trio.testing._leaks import children
from tests.harness.world import thread_clock
from tests.harness.world.children import OF_MANY_TESTS, inherit_python_path
from tests.levels import STEPS, TESTS, marks_named_in

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

pytest_plugins = [
    "mcp_trio.testing.pytest_plugin",
    "tests.canaries",
    "tests.harness.each_driver",
]

ROOT = Path(__file__).parents[1]
INTEROP = ROOT / "tests" / "interop"
CONFORMANCE = ROOT / "tests" / "conformance"
# Nearly every test of these files starts programs, which takes up to a second, or waits for sockets
# in real time. The default run has `mcp-trio inspect`, and all that needs no process.
STARTS_PROGRAMS = [
    ROOT / "tests" / f"{name}.py"
    for name in """
        asyncio_shim/test_interop
        asyncio_shim/test_neutral
        asyncio_shim/test_stdio
        benchmarks/test_benchmarks
        benchmarks/test_peers
        examples/test_examples
        examples/test_fastapi_guard
        examples/test_host
        examples/test_login_proxy
        examples/test_howto
        examples/test_readme
        examples/test_selectors_loop
        examples/test_shop
        examples/test_tutorial
        fuzz_targets/test_broken_client
        fuzz_targets/test_broken_server
        fuzz_targets/test_peer_clients
        packaging/test_wheel
        ported/test_git
        security/test_attacks_http_client
        security/test_attacks_names
        security/test_attacks_secrets_in_files
        security/test_attacks_stored_cases
        test_conftest
        test_last_deadline
        test_other_system
        test_held_bodies
        test_sixth_revision
        test_task_flood
        testing/hostile/test_child_attacks
        testing/test_find_faults
        testing/test_oracle_plugin
        testing/test_pytest_plugin
        tests
        trio_/cli/configured/test_configured
        trio_/cli/oracle/test_bench_programs
        trio_/cli/oracle/test_bench_protected
        trio_/cli/oracle/test_check
        trio_/cli/oracle/test_configured_target
        trio_/cli/oracle/test_proxy
        trio_/cli/oracle/test_replay
        trio_/cli/oracle/test_show
        trio_/cli/test_completion
        trio_/cli/run/test_install
        trio_/cli/run/test_reload
        trio_/cli/run/test_run
        trio_/cli/servers/test_add
        trio_/cli/servers/test_approve
        trio_/cli/servers/test_change
        trio_/cli/servers/test_get
        trio_/cli/servers/test_import
        trio_/cli/servers/test_list
        trio_/cli/state/test_handshakes
        trio_/cli/test_hostile_server
        trio_/cli/test_progress
        trio_/cli/test_recording
        trio_/cli/test_screen
        trio_/cli/test_session
        trio_/cli/test_target
        trio_/cli/test_elicitation_answers
        trio_/cli/use/test_call
        trio_/cli/use/test_complete
        trio_/cli/use/test_contract
        trio_/cli/use/test_demo
        trio_/cli/use/test_doctor
        trio_/cli/use/test_following
        trio_/cli/use/test_listen
        trio_/cli/use/test_login
        trio_/cli/use/test_prompt
        trio_/cli/use/test_read
        trio_/cli/use/test_task_line
        trio_/cli/use/test_tasks
        trio_/cli/use/test_undeclared
        trio_/oracle/bench/engine/test_programs
        trio_/oracle/fuzz/test_bad_targets
        trio_/oracle/fuzz/test_faults
        trio_/host/test_host_http
        trio_/oracle/proxy/test_stdio
        trio_/streams/test_child_tree
        trio_/test_main
        simulation/test_processes
        trio_/test_processes
    """.split()
]

# Servers that tests start must run the code under test, not an installed package.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
inherit_python_path()
# A mock clock waits for threads.
thread_clock.install()
# The error of a server that could not be started names those that are set.
for variable in _USUAL_VARIABLES:
    for name in variable, variable.lower():
        os.environ.pop(name, None)
# The command remembers servers and tasks in files there. A test must not depend on an earlier one,
# nor write to the files of the user, so this is no directory.
os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = os.devnull

# A shared machine stalls now and then, so an example has no deadline. A failure prints how to
# repeat it. `.ci/long` asks for `--hypothesis-profile=thorough`.
settings.register_profile("mcp-trio", deadline=None, print_blob=True, max_examples=50)
settings.register_profile("thorough", parent=settings.get_profile("mcp-trio"), max_examples=500)
settings.load_profile("mcp-trio")

# What the default run leaves out (`addopts` in pyproject.toml), and how to run it.
LEFT_OUT = (
    "not long and not slow and not perf and not process"
    " and not interop and not conformance and not node"
)
THE_REST = [
    "pytest -m long",
    "pytest -m slow",
    "pytest -m perf",
    'pytest -m "process or interop or node"',
    "pytest -m conformance",
]

# A job that a shell starts in the background inherits `SIG_IGN` for SIGINT. Python then installs no
# handler, and every program that a test starts ignores SIGINT too, so tests that interrupt a
# program would wait forever. A signal with a handler is back at its default action in a child after
# exec.
if (
    threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same for SIGHUP, which `nohup` ignores.
if threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


# Seconds for one test; by default it is `timeout` in pyproject.toml.
LONGEST = {"conformance": 600, "slow": 300, "perf": 120, "interop": 120, "node": 120}

_TIMED_OUT = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by `-m`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests below tests/interop `interop`, the official suite's `conformance`, and the
    ones in `STARTS_PROGRAMS` `process`.

    They wait for programs that take long to start, and the suite plays all scenarios in one run.
    """
    for item in items:
        by_file = marks_of_file(item.path)
        for name in by_file:
            if name != "conformance" or "suite" in getattr(item, "fixturenames", ()):
                item.add_marker(name)
        names = {mark.name for mark in item.iter_markers()}
        _check_found(item, names)
        seconds = next((LONGEST[name] for name in LONGEST if name in names), None)
        if seconds is not None and "timeout" not in names:
            item.add_marker(pytest.mark.timeout(seconds))


def _check_found(item: pytest.Item, names: set[str]) -> None:
    """Check that `.ci/run` finds the file of a test: it collects only what `tests.levels` finds."""
    if not item.path.is_relative_to(TESTS):
        return
    found = marks_named_in(item.path).union(marks_of_file(item.path))
    for step in STEPS:
        if not step.isdisjoint(names) and step.isdisjoint(found):
            raise pytest.UsageError(
                f"{item.nodeid} has one of the marks {sorted(step)}, which neither its file nor a"
                " module of tests that this imports from names: `.ci/run` would not find it"
            )


@functools.cache
def marks_of_file(path: Path) -> list[str]:
    """Return the marks that the place of a file gives; `conformance` is for some tests only."""
    marks = {
        "interop": path.is_relative_to(INTEROP),
        "process": path in STARTS_PROGRAMS,
        "conformance": path.is_relative_to(CONFORMANCE),
    }
    return [name for name, has in marks.items() if has]


def pytest_collection() -> None:
    """Collect garbage less often, also while tests are collected: nearly all that is made stays.

    Most collections of a run find nothing; the tests that look for leaks collect by themselves. The
    second generation is small, or the test in which it is full takes a tenth of a second longer.
    """
    gc.set_threshold(20_000, 3, 130)


def pytest_collection_finish() -> None:
    """Take the tests and their modules out of garbage collection."""
    gc.collect()
    gc.freeze()


_FILLED = pytest.StashKey[int]()  # how many modules there were when `_fill_tables` was called


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Let hypothesis read its tables before a property; again after many imports."""
    filled = item.config.stash.get(_FILLED, 0)
    if item.get_closest_marker("hypothesis") and len(sys.modules) > filled + 10:
        _fill_tables()
        item.config.stash[_FILLED] = len(sys.modules)


@settings(max_examples=3, database=None)
@given(st.text(), st.lists(st.integers(), min_size=200, max_size=200))
def _fill_tables(_text: str, _numbers: list[int]) -> None:
    """Draw once what needs the tables that hypothesis has for all tests of a process.

    They are the kinds of Unicode characters, and the constants in all modules, which it draws now
    and then. In a fresh clone it makes them, which takes seconds, and saves them in `.hypothesis`.
    Otherwise the first property of each process would take much longer than it does alone.
    """


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(
    item: pytest.Item, settings: Any
) -> Generator[None, Literal[True] | None, Literal[True] | None]:
    """Kill the programs that the test started at its timeout, and cancel the run of trio.

    Leaving `with Popen(...)` would wait for the program. An exception that is raised inside trio's
    own loop leaves the run unfinished, and no later test could call `trio.run`.
    """
    made = yield
    fail = signal.getsignal(signal.SIGALRM)
    if callable(fail):
        before = children()

        def handler(number: int, frame: FrameType | None) -> None:
            for pid in children().keys() - before.keys() - OF_MANY_TESTS:
                os.kill(pid, signal.SIGKILL)
            if (
                trio.lowlevel.in_trio_run()
                and not trio.lowlevel.in_trio_task()
                and _TIMED_OUT not in item.stash
            ):
                item.stash[_TIMED_OUT] = settings.timeout
                trio.lowlevel.current_trio_token().run_sync_soon(_cancel_main_task)
                signal.setitimer(signal.ITIMER_REAL, 5)  # for what is shielded from cancellation
            else:
                fail(number, frame)

        signal.signal(signal.SIGALRM, handler)
    return made


def _cancel_main_task() -> None:
    root = trio.lowlevel.current_root_task()
    assert root is not None
    # The root's nurseries: of the entry queue, of the system tasks, and of the main task alone.
    root.child_nurseries[-1].cancel_scope.cancel()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    seconds = item.stash.get(_TIMED_OUT, None)
    if seconds is not None and report.when == "call":
        report.outcome = "failed"
        report.longrepr = (
            f"{report.longreprtext}\nTimeout (>{seconds}s): the run of trio was cancelled."
        )
    # In CI a peer that silently stays away would look like a peer that agrees.
    if (
        report.skipped
        and os.environ.get("CI") == "true"
        and "Skipped: needs " in report.longreprtext
    ):
        report.outcome = "failed"
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print how to run what the default run has left out."""
    # With -n it is the workers that deselect, and they do not say how many.
    deselected = terminalreporter.stats.get("deselected") or config.pluginmanager.hasplugin(
        "dsession"
    )
    if deselected and config.option.markexpr == LEFT_OUT:
        terminalreporter.write_line(f"Tests were left out. To run them too: {', '.join(THE_REST)}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("node"):
        _node_modules()


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(no_leaks: None) -> None:
    """Check for leaks last: this fixture is set up before all others of a test."""


@pytest.fixture
def node_modules() -> Path:
    """Return the directory with the npm packages of the peers.

    Tests that use it are marked `node`.
    """
    return _node_modules()


def _node_modules() -> Path:
    place = os.environ.get("MCP_TRIO_NODE_MODULES")
    if place and shutil.which("node"):
        return Path(place)
    pytest.skip("needs node, and MCP_TRIO_NODE_MODULES naming the directory of the npm packages")
