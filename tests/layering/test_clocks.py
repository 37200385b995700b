"""Time in tests: no short wait for a real clock, one patience for all, measuring apart.

The second half proves with small modules that every rule can fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.layering.clocks import TestModule

if TYPE_CHECKING:
    from tests.layering.sources import Findings

# Reasons for a short time after which a test expects the end: a slow machine changes nothing.
_SILENT: Final = "nothing else ends the wait: the other side never responds"
_LOCKED: Final = "nothing else ends the wait: the test holds the lock"
# Complaints that are right and stay, by file and a part of the line, with the reason.
ALLOWED: Final = {
    ("tests/conformance/everything_client.py", "urlopen"): "a program of the suite",
    (
        "tests/conformance/test_official_suite.py",
        "[*suite, *words]",
    ): "tests that have the fixture `suite` take longer",
    (
        "tests/security/internet.py",
        "trio.sleep",
    ): "drips bytes; the client has the timeout",
    ("tests/oracle_score/servers.py", "trio.sleep"): "all who serve it have a mock clock",
    ("tests/simulation/stores.py", "trio.sleep"): "the clock of a world is a mock clock",
    ("tests/simulation/world.py", "trio.sleep"): "the same",
    ("tests/spec/mutation_runner.py", "TIMEOUT"): "a program, which starts runs of pytest",
    ("tests/task_play/kills.py", "STEP"): "a server that is killed at a random time",
    ("tests/task_play/kills.py", "trio.sleep"): "the pause between two looks at all tasks",
    ("tests/task_play/kills.py", "fail_after(60)"): "a program; its tests are slow",
    (
        "tests/asyncio_shim/test_unreadable_server.py",
        "_DOUBT",
    ): "only one row has a doubt, which nothing ends",
    ("tests/asyncio_shim/test_unreadable_server.py", "_GRACE"): "the child is killed after any",
    ("tests/trio_/test_unreadable_server.py", "_DOUBT"): "as in tests/asyncio_shim",
    ("tests/core/adapters/test_recorder.py", "_CLOSE_TIMEOUT"): _SILENT,
    ("tests/core/adapters/test_redis_client.py", "runtime.within(0.01"): _SILENT,
    (
        "tests/core/adapters/test_redis_client.py",
        "Event().wait(0.15)",
    ): "a response that comes later shows the same",
    ("tests/core/adapters/test_sqlite.py", "_BUSY_TIMEOUT"): _LOCKED,
    ("tests/testing/hostile/test_client_attacks.py", "'_PROBE_TIMEOUT', 0.1"): _SILENT,
    ("tests/testing/test_leaks.py", "_leaks, '_TIMEOUT', 0.02"): "what they leak never ends",
    ("tests/testing/test_peer.py", "_peer._TIMEOUT"): _SILENT,
    ("tests/trio_/auth/test_authorization.py", "_LOCK_TIMEOUT"): _LOCKED,
    ("tests/trio_/auth/test_authorization.py", "_LOGIN_TIMEOUT"): _SILENT,
    ("tests/trio_/auth/test_fetch.py", "_TIMEOUT"): _SILENT,
    ("tests/trio_/auth/test_loopback.py", "'_REQUEST_TIMEOUT', 0.05"): _SILENT,
    ("tests/trio_/cli/oracle/test_live_judge.py", "_STALL_TIMEOUT"): _SILENT,
    ("tests/trio_/host/test_approval_file.py", "_LOCK_TIMEOUT"): _LOCKED,
    ("tests/trio_/cancelling.py", "move_on_after"): "all who use it have a mock clock",
    ("tests/trio_/cli/oracle/test_bench_calls.py", "trio.sleep"): "the command has a mock clock",
    (
        "tests/trio_/oracle/fuzz/targets.py",
        "subprocess.run",
    ): "for tests with a timeout of their own",
}


def test_tests_keep_the_rules_about_time(sources: list[Findings]) -> None:
    found, used = [], set()
    for each in sources:
        name = each.file.path
        for line, what in each.waits:
            reasons = {key for key in ALLOWED if key[0] == name and key[1] in what}
            used |= reasons
            if not reasons:
                found.append(f"{name}:{line}: {what}")
    assert not found, "\n" + "\n".join(found)
    assert ALLOWED.keys() == used, "some entries of ALLOWED are needed no more"


def complaints(text: str, *, left_out: bool = False, takes_longer: bool = False) -> list[str]:
    module = TestModule(f"import trio, time\n{text}", left_out=left_out, takes_longer=takes_longer)
    return [what for _, what in module.complaints()]


SHORT_WAITS = [
    "async def test_it():\n    await either.sleep(0.1)",
    "async def test_it():\n    await trio.sleep(0.1)",
    "async def test_it():\n    with trio.move_on_after(4.9):\n        pass",
    "async def test_it():\n    async with asyncio.timeout(1):\n        pass",
    "async def test_it():\n    await asyncio.wait_for(main(), 1)",
    "async def test_it(client):\n    await client.call_tool('t', timeout=0.1)",
    "QUICK = 0.1\nasync def test_it():\n    await trio.sleep(QUICK)",
    "QUICK: Final = 0.1\nasync def test_it():\n    await trio.sleep(QUICK)",
    "async def test_it(late):\n    await trio.sleep(0.1 if late else 0)",
    "async def helper():\n    await trio.sleep(0.1)",
    "async def test_it(runtime):\n    await pause(0.1)",
    "async def test_it(runtime):\n    await pause(runtime, 0.1)",
    "async def test_it(runtime):\n    await runtime.within(0.1, call)",
    "def test_it():\n    threading.Event().wait(0.1)",
    "def test_it(monkeypatch):\n    monkeypatch.setattr(module, '_TIMEOUT', 0.1)",
    "def test_it(monkeypatch):\n    monkeypatch.setattr('package.module._STOP_GRACE', 4.9)",
    "def test_it(monkeypatch, name):\n    monkeypatch.setattr(f'{name}.PING_INTERVAL', 0.1)",
    "QUICK = 0.1\ndef test_it(monkeypatch):\n    monkeypatch.setattr(x, '_DEADLINE', QUICK)",
    # pytest-trio takes a clock from the arguments of a test only.
    (
        "pytestmark = pytest.mark.usefixtures('autojump_clock')\n"
        "async def test_it():\n    await trio.sleep(0.1)"
    ),
    "@pytest.mark.usefixtures('autojump_clock')\nasync def test_it():\n    await trio.sleep(0.1)",
    # A mock clock moves neither threads nor the run of another test.
    "def test_it(autojump_clock):\n    time.sleep(0.1)",
    (
        "async def one():\n    await trio.sleep(0.1)\n"
        "async def test_one(autojump_clock):\n    await one()\n"
        "async def test_two():\n    await one()"
    ),
    (
        "from tests.harness.world.virtual_time import run\nasync def main():\n"
        "    await trio.sleep(0.1)\ndef test_it():\n    run(main())\n    trio.run(main)"
    ),
]
NO_SHORT_WAITS = [
    "async def test_it(runtime):\n    await pause(runtime)",
    "async def test_it(event):\n    event.wait(0.1)",
    "def test_it(monkeypatch):\n    monkeypatch.setattr(module, '_TIMEOUT', PATIENCE)",
    "def test_it(monkeypatch):\n    monkeypatch.setattr(module, '_TIMEOUT', 0)",
    "def test_it(monkeypatch):\n    monkeypatch.setattr(module, '_MAX_TASKS', 2)",
    (
        "async def test_it(monkeypatch, autojump_clock):\n"
        "    monkeypatch.setattr(module, '_TIMEOUT', 0.1)"
    ),
    (
        "@pytest.mark.process\ndef test_it(monkeypatch):\n"
        "    monkeypatch.setattr(module, '_TIMEOUT', 0.1)"
    ),
    "async def test_it():\n    await trio.sleep(0)",
    "async def test_it():\n    with trio.fail_after(PATIENCE):\n        pass",
    "async def test_it():\n    while not ready():\n        await trio.sleep(0.01)",
    "async def test_it(autojump_clock):\n    await trio.sleep(0.1)",
    "async def test_it(mock_clock):\n    await trio.sleep(0.1)",
    "@pytest.mark.process\nasync def test_it():\n    await trio.sleep(0.1)",
    "pytestmark = pytest.mark.slow\nasync def test_it():\n    await trio.sleep(0.1)",
    (
        "async def one():\n    await trio.sleep(0.1)\nasync def two():\n    await one()\n"
        "async def test_it(autojump_clock):\n    await two()"
    ),
    (
        "async def one():\n    await trio.sleep(0.1)\nROWS = [one]\n"
        "@pytest.mark.parametrize('row', ROWS)\n"
        "async def test_it(row, autojump_clock):\n    await row()"
    ),
    (
        "async def main():\n    await trio.sleep(0.1)\n"
        "def test_it():\n    trio.run(main, clock=MockClock(autojump_threshold=0))"
    ),
    (
        "from tests.harness.world.loop import run as run_it\nasync def main():\n"
        "    await asyncio.sleep(0.1)\ndef test_it():\n    run_it(main())"
    ),
    (
        "pytestmark = pytest.mark.usefixtures('each_driver')\n"
        "async def test_it():\n    await either.sleep(0.1)"
    ),
    (
        "from tests.harness.world import loop\nasync def main():\n"
        "    await asyncio.sleep(0.1)\ndef test_it():\n    loop.run(main())"
    ),
]


@pytest.mark.parametrize("text", SHORT_WAITS)
def test_short_wait_for_a_real_clock_is_refused(text: str) -> None:
    [found] = complaints(text)
    assert found.startswith("waits for a real clock: ")


@pytest.mark.parametrize("text", NO_SHORT_WAITS)
def test_wait_without_a_real_clock_is_accepted(text: str) -> None:
    assert complaints(text) == []


def test_short_wait_of_a_file_that_is_left_out_is_accepted() -> None:
    assert complaints(SHORT_WAITS[0], left_out=True) == []


@pytest.mark.parametrize(
    "wait",
    [
        "trio.fail_after(5)",
        "trio.fail_after(30)",
        "process.communicate(timeout=60)",
        "asyncio.wait_for(main(), 100)",
        "asyncio.timeout(20)",
        "urlopen(url, timeout=10)",
    ],
)
def test_wait_with_a_patience_of_its_own_is_refused(wait: str) -> None:
    text = f"async def test_it():\n    {wait}"
    [found] = complaints(text, left_out=True)
    assert found.startswith("has a patience of its own: ")
    assert complaints(text.replace("_it()", "_it(autojump_clock)")) == []
    assert complaints(f"@pytest.mark.timeout(90)\n{text}") == []
    assert complaints(text, takes_longer=True) == []


def test_patience_of_a_helper_is_refused_if_any_of_its_tests_has_the_usual_timeout() -> None:
    helper = "async def helper():\n    with trio.fail_after(6):\n        pass\n"
    slow = "@pytest.mark.slow\nasync def test_slow():\n    await helper()\n"
    quick = "async def test_quick():\n    await helper()\n"
    assert complaints(helper + slow) == []
    [found] = complaints(helper + slow + quick)
    assert found.startswith("has a patience of its own: ")


@pytest.mark.parametrize(
    "clock", ["time.perf_counter()", "time.process_time()", "tracemalloc.start()"]
)
def test_measuring_without_its_mark_is_refused(clock: str) -> None:
    text = f"def test_it():\n    began = {clock}"
    [found] = complaints(text)
    assert found.endswith("without the mark perf")
    assert complaints(f"@pytest.mark.perf\n{text}") == []
