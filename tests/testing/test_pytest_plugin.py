"""The plugin from outside: a pytest run whose tests each leak something, and its report.

It is another process, so its leaks do not affect this one. Warnings are errors there too.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)  # it starts a pytest of its own

CONFTEST = """
pytest_plugins = ["mcp_trio.testing.pytest_plugin"]

def pytest_configure():
    from mcp_trio.testing import _leaks
    _leaks._TIMEOUT = 0.02  # what is left behind here is there to stay
"""

SETTINGS = """
[pytest]
trio_mode = true
usefixtures = no_leaks
filterwarnings = error
addopts = --strict-markers -p no:cacheprovider
"""

TESTS = """
import asyncio, os, subprocess, threading

import pytest, trio
from hypothesis import given, strategies as st

import mcp_asyncio_shim, mcp_core, mcp_trio
from mcp_trio.testing import ScriptedPeer, memory_pair, play_client
from tests.harness.jsonrpc import client_config

kept = []


def keep(thing):
    kept.append(thing)
    return thing


def greet():
    "Greet."


@pytest.fixture
def file(tmp_path):
    with (tmp_path / "x").open("w") as file:
        yield file


@pytest.fixture
async def served():
    async with play_client(mcp_trio.Server("s")) as peer:
        yield peer


# -- Those that leave nothing

def test_nothing(file):
    assert file.write("x") == 1

async def test_nothing_in_trio(file, served, nursery, autojump_clock):
    assert await served.result_of("server/discover")
    nursery.start_soon(trio.sleep_forever)
    await trio.sleep(1000)

@given(st.integers())
async def test_nothing_in_hypothesis(number):
    async with mcp_trio.connect(mcp_trio.Server("s")) as client:
        await client.ping()

def test_nothing_in_asyncio():
    async def main():
        async with mcp_asyncio_shim.connect(mcp_trio.Server("s")) as client:
            await client.ping()
    asyncio.run(main())

def test_forgets_a_pure_connection():
    keep(mcp_core.Connection(mcp_core.Role.CLIENT, client_config())).open(0.0)

def test_fails_and_leaves(file):
    keep(os.dup(file.fileno()))
    assert False

def test_is_skipped_and_leaves():
    keep(os.open("/dev/null", os.O_RDONLY))
    pytest.skip("not today")

# -- Those that leave something

def test_leaves_a_descriptor():
    keep(os.open("/dev/null", os.O_RDONLY))

async def test_leaves_a_descriptor_in_trio():
    keep(os.open("/dev/null", os.O_RDONLY))

@given(st.integers())
async def test_leaves_a_descriptor_in_hypothesis(number):
    keep(os.open("/dev/null", os.O_RDONLY))

class TestOfAClass:
    async def test_leaves_a_descriptor(self):
        keep(os.open("/dev/null", os.O_RDONLY))

    async def test_leaves_a_task(self):
        trio.lowlevel.spawn_system_task(trio.sleep_forever, name="heartbeat")

async def test_leaves_a_child():
    keep(await trio.lowlevel.open_process(["sleep", "1000"]))

def test_leaves_a_dead_child():
    keep(subprocess.Popen(["true"]))

def test_leaves_a_thread():
    thread = threading.Thread(target=threading.Event().wait, name="of the test", daemon=True)
    thread.start()

async def test_leaves_a_task():
    trio.lowlevel.spawn_system_task(trio.sleep_forever, name="heartbeat")

async def test_leaves_a_connection_open():
    keep(mcp_core.Connection(mcp_core.Role.CLIENT, client_config())).open(0.0)

async def test_leaves_requests_and_events():
    server = mcp_trio.Server("s")
    server.add_tool(greet)
    ours, theirs = memory_pair()
    await ScriptedPeer(ours).request("tools/call", {"name": "greet"})
    conn = mcp_core.Connection(mcp_core.Role.SERVER, server.config())
    conn.receive_data(await theirs.receive_some(), 0.0)
    assert isinstance(conn.next_event(), mcp_core.RequestReceived)
    conn.close()

def test_leaves_a_connection_in_asyncio():
    async def main():
        keep(mcp_core.Connection(mcp_core.Role.CLIENT, client_config())).open(0.0)
    asyncio.run(main())

def test_leaves_two_things():
    keep(os.pipe())

# -- Those that may

@pytest.mark.may_leave("descriptor", "child")
def test_may_leave():
    keep(os.pipe())

@pytest.mark.may_leave("child")
def test_may_leave_something_else():
    keep(os.open("/dev/null", os.O_RDONLY))

@pytest.mark.may_leave("fd")
def test_may_leave_what_there_is_not():
    pass
"""

TESTS_BY_REQUEST = """
import os

def test_unwatched():
    os.pipe()

def test_watched(no_leaks):
    os.pipe()

async def test_watched_in_trio(no_leaks):
    os.pipe()
"""

Outcomes = dict[str, tuple[str, str]]


def run(place: Path, tests: str, settings: str) -> Outcomes:
    """Run the tests; return the outcome of each by name, and the text of its failure."""
    (place / "conftest.py").write_text(CONFTEST)
    (place / "pytest.ini").write_text(settings)
    (place / "test_it.py").write_text(tests)
    report = place / "report.xml"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", str(place / "test_it.py")],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    found: Outcomes = {}
    for case in ET.parse(report).iter("testcase"):
        name = case.get("name")
        assert name is not None
        if case.get("classname", "").endswith("TestOfAClass"):
            name += " of a class"
        verdicts = [(each.tag, f"{each.get('message')}\n{each.text}") for each in case]
        found[name] = verdicts[-1] if verdicts else ("passed", "")
    return found


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return run(tmp_path_factory.mktemp("leaks"), TESTS, SETTINGS)


@pytest.mark.parametrize(
    ("test", "outcome"),
    [
        ("test_nothing", "passed"),
        ("test_nothing_in_trio", "passed"),
        ("test_nothing_in_hypothesis", "passed"),
        ("test_nothing_in_asyncio", "passed"),
        ("test_forgets_a_pure_connection", "passed"),
        ("test_fails_and_leaves", "failure"),
        ("test_is_skipped_and_leaves", "skipped"),
        ("test_may_leave", "passed"),
    ],
)
def test_plugin_passes_tests_without_leaks(test: str, outcome: str, outcomes: Outcomes) -> None:
    tag, text = outcomes[test]
    assert tag == outcome, text
    assert "left behind" not in text


@pytest.mark.parametrize(
    ("test", "texts"),
    [
        ("test_leaves_a_descriptor", ["descriptor ", ": /dev/null"]),
        ("test_leaves_a_descriptor of a class", ["descriptor ", ": /dev/null"]),
        ("test_leaves_a_descriptor_in_trio", ["descriptor ", ": /dev/null"]),
        ("test_leaves_a_descriptor_in_hypothesis", ["descriptor ", ": /dev/null"]),
        ("test_leaves_a_child", ["child ", ": sleep 1000"]),
        ("test_leaves_a_dead_child", ["child ", "dead and not reaped"]),
        ("test_leaves_a_thread", ["thread of the test"]),
        ("test_leaves_a_task", ["task heartbeat"]),
        ("test_leaves_a_task of a class", ["task heartbeat"]),
        (
            "test_leaves_a_connection_open",
            ["<Connection client OPENING", "it was not closed", "1 calls"],
        ),
        (
            "test_leaves_requests_and_events",
            ["1 requests whose handlers have", "2 events that were not read"],
        ),
        (
            "test_leaves_a_connection_in_asyncio",
            ["it was not closed", "1 calls that were not ended"],
        ),
        ("test_leaves_two_things", ["descriptor "]),
        ("test_may_leave_something_else", ["descriptor "]),
    ],
)
def test_plugin_fails_tests_with_leaks_and_names_them(
    test: str, texts: list[str], outcomes: Outcomes
) -> None:
    tag, report = outcomes[test]
    assert tag == "error"
    assert "left behind:" in report
    for text in texts:
        assert text in report


def test_plugin_reports_all_leaks_at_once(outcomes: Outcomes) -> None:
    assert outcomes["test_leaves_two_things"][1].count("  descriptor ") >= 2


def test_plugin_rejects_an_unknown_kind(outcomes: Outcomes) -> None:
    tag, report = outcomes["test_may_leave_what_there_is_not"]
    assert tag == "error"
    assert "there is no kind ['fd'], only task, descriptor, child, thread, connection" in report


def test_plugin_runs_every_inner_test(outcomes: Outcomes) -> None:
    assert len(outcomes) == TESTS.count("def test_") == 8 + 14 + 1


def test_plugin_fixture_can_be_requested_by_a_test(tmp_path: Path) -> None:
    outcomes = run(tmp_path, TESTS_BY_REQUEST, SETTINGS.replace("usefixtures", "# usefixtures"))
    assert {name: tag for name, (tag, _) in outcomes.items()} == {
        "test_unwatched": "passed",
        "test_watched": "error",
        "test_watched_in_trio": "error",
    }


@pytest.mark.parametrize(
    "program",
    [
        "import sys, mcp_trio; assert 'mcp_trio.testing' not in sys.modules",
        # trio.testing looks for pytest too, and works without it.
        (
            "import sys; sys.modules['pytest'] = sys.modules['_pytest'] = None; import"
            " mcp_trio.testing"
        ),
    ],
)
def test_plugin_is_not_loaded_unasked_and_alone_needs_pytest(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)
