"""The plugin from outside: a pytest run against servers that keep the rules, and that do not."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import ConnectFailed
from mcp_trio import Server
from mcp_trio.testing import NothingJudged
from mcp_trio.testing._fuzzing import fuzz_server
from tests.examples.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)  # it starts a pytest of its own

SETTINGS = """
[pytest]
trio_mode = true
filterwarnings = error
addopts = --strict-markers -p no:cacheprovider -p mcp_trio.testing.oracle
"""
# A server for any Python. With an argument it answers each ping twice.
SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "serverInfo": {"name": "echo", "version": "1"},
    }
    if "id" in request:
        if request["method"] == "ping":
            result = {}
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        times = 2 if sys.argv[1:] and request["method"] == "ping" else 1
        print("\\n".join([json.dumps(answer)] * times), flush=True)
"""
TESTS = """
import mcp_trio


async def test_judged(mcp_judged):
    async with mcp_judged(versions=["2025-11-25"]) as client:
        await client.ping()


async def test_judged_twice(mcp_judged):
    for _ in range(2):
        async with mcp_judged(versions=["2025-11-25"]) as client:
            await client.ping()


async def test_wire(mcp_wire):
    async with mcp_wire("2025-11-25") as peer:
        request = await peer.request("ping")
        assert await peer.expect_result(request) == {}
        await peer.expect_silence()


async def test_wire_without_handshake(mcp_wire):
    async with mcp_wire("2025-11-25", handshake=False) as peer:
        await peer.open_as_client()


async def test_record(mcp_record, mcp_target):
    async with mcp_trio.connect(mcp_target, record=mcp_record(with_secrets=True)) as client:
        await client.ping()
    raise ValueError("the trace is kept")
"""


def run(place: Path, *options: str, tests: str = TESTS) -> tuple[int, str]:
    (place / "pytest.ini").write_text(SETTINGS)
    (place / "test_it.py").write_text(tests)
    (place / "server.py").write_text(SERVER)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--tb=short", "-rA", *options],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return ran.returncode, ran.stdout + ran.stderr


def traces(place: Path) -> list[str]:
    return sorted(path.name for path in (place / "mcp-traces").glob("*"))


def test_plugin_good_server_passes_and_leaves_no_traces(tmp_path: Path) -> None:
    # In single quotes, which only POSIX takes away.
    target = f"--mcp-target={sys.executable} 'server.py'"
    status, shown = run(tmp_path, target, "-k", "not record")
    assert status == 0, shown
    assert "4 passed" in shown
    assert not (tmp_path / "mcp-traces").exists()


def test_plugin_bad_server_fails_with_rule_and_trace(tmp_path: Path) -> None:
    target = f"--mcp-target={sys.executable} server.py twice"
    status, shown = run(tmp_path, target, "-k", "not record")
    assert status == 1, shown
    assert "3 failed, 1 passed" in shown
    assert "MUST server RPC-7" in shown
    assert "- MCP traces -" in shown
    assert traces(tmp_path) == [
        "test_it.py-test_judged.mcp.jsonl",
        "test_it.py-test_judged_twice.mcp.jsonl",
        "test_it.py-test_wire.mcp.jsonl",
    ]
    assert str(tmp_path / "mcp-traces" / "test_it.py-test_wire.mcp.jsonl") in shown


def test_plugin_keeps_traces_of_any_failure_where_asked(tmp_path: Path) -> None:
    target = f"--mcp-target={sys.executable} server.py"
    status, shown = run(tmp_path, target, "--mcp-traces=kept", "-k", "record")
    assert status == 1, shown
    (kept,) = (tmp_path / "kept").iterdir()
    assert '"redacted":[]' in kept.read_text()


def test_plugin_without_target_fails_with_cure(tmp_path: Path) -> None:
    status, shown = run(tmp_path, "-k", "judged")
    assert status == 1
    assert "no server to test: give one with --mcp-target" in shown


OWN = """
import pytest, mcp_trio

@pytest.fixture
def mcp_target():
    server = mcp_trio.Server("mine")

    @server.tool
    def half(number: int) -> float:
        "Halve a number."
        return number / 2

    return server


async def test_judged(mcp_judged):
    async with mcp_judged() as client:
        assert (await client.call_tool("half", {"number": 3})).text == "1.5"


async def test_wire(mcp_wire):
    async with mcp_wire() as peer:
        await peer.result_of("tools/list")
"""


def test_plugin_target_can_be_a_server_in_memory(tmp_path: Path) -> None:
    status, shown = run(tmp_path, tests=OWN)
    assert status == 0, shown


def test_plugin_wire_to_url_is_an_error_with_cause(tmp_path: Path) -> None:
    status, shown = run(tmp_path, "--mcp-target=http://127.0.0.1:9/mcp", "-k", "test_wire")
    assert status == 1
    assert "mcp_wire needs a command or a Server" in shown


FUZZ = """
async def test_fuzz(mcp_fuzz):
    await mcp_fuzz(seconds=None, LIMITS)
"""
GOOD_SERVER = """
import mcp_trio, trio
trio.run(mcp_trio.serve_stdio, mcp_trio.Server("good"))
"""


def test_plugin_fuzz_bad_server_fails_with_rule_and_trace(tmp_path: Path) -> None:
    target = f"--mcp-target={sys.executable} server.py twice"
    status, shown = run(
        tmp_path, target, tests=FUZZ.replace("LIMITS", "cases=4, response_timeout=0.5")
    )
    assert status == 1, shown
    assert "RPC-7: the request with the id" in shown
    (place,) = (tmp_path / "mcp-traces").iterdir()
    assert place.name == "test_it.py-test_fuzz-fuzz"
    names = {path.name for path in place.iterdir()}
    assert "report.json" in names
    assert any(name.endswith("-RPC-7.mcp.jsonl") for name in names)
    # A later run of pytest does not collect what was written.
    assert not list(place.glob("*.py"))


def test_plugin_fuzz_leaves_out_what_the_user_has_accepted(tmp_path: Path) -> None:
    """The server has other faults, too: only the accepted row isn't among them."""
    known = tmp_path / "known.json"
    report = {"version": 2, "seed": 1, "server": "echo 2", "findings": []}
    known.write_text(json.dumps(report))
    limits = f"cases=4, response_timeout=0.5, ignore=['RPC-7'], baseline={str(known)!r}"
    target = f"--mcp-target={sys.executable} server.py twice"
    status, shown = run(tmp_path, target, tests=FUZZ.replace("LIMITS", limits))
    assert status == 1, shown
    assert "the fuzzer has found" in shown
    assert "RPC-7" not in shown.replace(limits, "")


def test_plugin_fuzz_good_server_passes(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD_SERVER)
    status, shown = run(
        tmp_path, f"--mcp-target={sys.executable} good.py", tests=FUZZ.replace("LIMITS", "cases=40")
    )
    assert status == 0, shown
    assert not (tmp_path / "mcp-traces").exists()


@pytest.mark.parametrize(
    ("target", "options", "error", "text"),
    [
        ("https://a.example/mcp", {}, ValueError, "on another machine"),
        (Server("a"), {}, TypeError, "a command or a URL, not Server"),
        (
            [sys.executable, "-c", GOOD_SERVER],
            {"allow": ["nope"]},
            ValueError,
            "no tool named nope",
        ),
        ([sys.executable, "-c", "print(1)"], {}, ConnectFailed, "no conversation"),
        ("http://127.0.0.1:1", {"baseline": "none.json"}, FileNotFoundError, "none.json"),
        ("http://127.0.0.1:1", {"baseline": __file__}, ValueError, "plugin.py: it is not JSON"),
        ("http://127.0.0.1:1", {"ignore": ["RPC-999"]}, ValueError, "there is no row RPC-999"),
        ("http://127.0.0.1:1", {"ignore": "RPC-7"}, TypeError, "a list of rows"),
    ],
)
async def test_fuzz_server_of_wrong_arguments_raises(
    tmp_path: Path, target: Any, options: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        await fuzz_server(target, tmp_path / "a", cases=1, **options)


UNUSED = """
import pytest


async def test_judged_is_not_used(mcp_judged):
    mcp_judged()


async def test_fuzz_is_not_used(mcp_fuzz):
    pass


async def test_skipped(mcp_judged, mcp_fuzz):
    pytest.skip("today")


async def test_failed(mcp_judged):
    raise ValueError("its own")
"""


def test_plugin_test_that_judges_nothing_fails(tmp_path: Path) -> None:
    status, shown = run(tmp_path, f"--mcp-target={sys.executable} server.py", tests=UNUSED)
    assert status == 1, shown
    assert "1 failed, 2 passed, 1 skipped, 2 errors" in shown
    assert "nothing was judged: the test requests mcp_judged, and does not use it" in shown
    assert "nothing was judged: the test requests mcp_fuzz, and does not use it" in shown


NO_SERVER = """
async def test_judged(mcp_judged):
    async with mcp_judged() as client:
        await client.list_tools()


async def test_fuzz(mcp_fuzz):
    await mcp_fuzz(seconds=None, cases=1)


async def test_wire(mcp_wire):
    async with mcp_wire() as peer:
        await peer.result_of("tools/list")
"""


@pytest.mark.parametrize(
    "target",
    [
        "no-such-program",
        f"{sys.executable} no-such-server.py",
        f"{sys.executable} -c pass",
        "http://127.0.0.1:1/mcp",
    ],
)
def test_plugin_without_a_server_passes_nothing(tmp_path: Path, target: str) -> None:
    status, shown = run(tmp_path, f"--mcp-target={target}", tests=NO_SERVER)
    assert status == 1, shown
    assert "3 failed" in shown


async def test_fuzz_server_that_plays_nothing_raises(tmp_path: Path) -> None:
    command = [sys.executable, "-c", GOOD_SERVER]
    with pytest.raises(NothingJudged, match="no case was played"):
        await fuzz_server(command, tmp_path / "a", seconds=1e-9)


PAGE = ROOT / "docs/howto/testing.md"
# A right server of one revision. Its argument says what it does about junk: that is its own choice.
OF_THE_PAGE = """
import json, sys
JUNK = {
    "error": {"id": None, "error": {"code": -32700, "message": "no JSON"}},
    "log": {"method": "notifications/message", "params": {"level": "error", "data": "junk"}},
}
for line in sys.stdin:
    try:
        request = json.loads(line)
    except ValueError:
        if sys.argv[1] == "exit":
            break
        answer = JUNK.get(sys.argv[1])
    else:
        result = {} if request["method"] == "ping" else {
            "protocolVersion": "2025-06-18",
            "capabilities": {"logging": {}},
            "serverInfo": {"name": "right", "version": "1"},
        }
        answer = {"id": request["id"], "result": result} if "id" in request else None
        if "id" in request and request["method"] not in ("initialize", "ping"):
            answer = {"id": request["id"], "error": {"code": -32601, "message": "unknown"}}
    if answer is not None:
        print(json.dumps({"jsonrpc": "2.0", **answer}), flush=True)
"""


def example_of_the_page() -> str:
    """Return the tests that the page shows for the plugin."""
    begin = "    async def test_conversation_keeps_the_rules"
    code = PAGE.read_text("utf-8").partition(begin)
    return textwrap.dedent(begin + code[2].partition("    $ pytest")[0])


@pytest.mark.parametrize("junk", ["error", "log", "silent"])
def test_plugin_example_of_the_page_passes_with_right_servers(tmp_path: Path, junk: str) -> None:
    (tmp_path / "right.py").write_text(OF_THE_PAGE)
    status, shown = run(
        tmp_path, f"--mcp-target={sys.executable} right.py {junk}", tests=example_of_the_page()
    )
    assert status == 0, shown
    assert "2 passed" in shown


def test_plugin_example_of_the_page_passes_with_a_server_of_both_eras(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD_SERVER)
    target = f"--mcp-target={sys.executable} good.py"
    status, shown = run(tmp_path, target, tests=example_of_the_page())
    assert status == 0, shown


@pytest.mark.parametrize(
    ("target", "failed"),
    [("right.py exit", "test_junk_is_survived"), ("server.py twice", "test_conversation_keeps")],
)
def test_plugin_example_of_the_page_fails_with_wrong_servers(
    tmp_path: Path, target: str, failed: str
) -> None:
    (tmp_path / "right.py").write_text(OF_THE_PAGE)
    status, shown = run(
        tmp_path, f"--mcp-target={sys.executable} {target}", tests=example_of_the_page()
    )
    assert status == 1
    assert f"FAILED test_it.py::{failed}" in shown


CONTRACT = """
async def test_contract(mcp_contract):
    await mcp_contract("kept.json")
"""


def test_plugin_contract_is_written_then_kept_or_broken(tmp_path: Path) -> None:
    """The file is relative to the test; without it, the failure says how to write it."""
    target = f"--mcp-target={sys.executable} server.py"
    status, shown = run(tmp_path, target, tests=CONTRACT)
    assert (status, "pytest --mcp-update writes it" in shown) == (1, True), shown
    assert run(tmp_path, target, "--mcp-update", tests=CONTRACT)[0] == 0
    assert run(tmp_path, target, tests=CONTRACT)[0] == 0
    kept = (tmp_path / "kept.json").read_text()
    (tmp_path / "kept.json").write_text(kept.replace('"tools": []', '"tools": [{"name": "a"}]'))
    status, shown = run(tmp_path, target, tests=CONTRACT)
    assert status == 1
    assert "breaking tool a: is gone" in shown


def test_plugin_contract_that_is_not_compared_fails(tmp_path: Path) -> None:
    status, shown = run(tmp_path, "--mcp-target=x", tests="def test_it(mcp_contract): pass")
    assert status == 1
    assert "write `await mcp_contract(FILE)`" in shown


REPLAY = """
import asyncio

import mcp_asyncio_shim
import mcp_trio
import pytest
from mcp_core import PeerError
from mcp_trio.testing import NotRecorded


async def test_known(mcp_replay):
    async with mcp_trio.connect(mcp_replay("a.mcp.jsonl")) as client:
        assert (await client.call_tool("half", {"number": 3})).text == "1.5"


def test_known_on_asyncio(mcp_replay):
    async def main():
        async with mcp_asyncio_shim.connect(mcp_replay("a.mcp.jsonl")) as client:
            assert (await client.call_tool("half", {"number": 3})).text == "1.5"

    asyncio.run(main())


async def test_ignored(mcp_replay):
    server = mcp_replay("a.mcp.jsonl", ignore=["/params/arguments/number"])
    async with mcp_trio.connect(server) as client:
        assert (await client.call_tool("half", {"number": 4})).text == "1.5"


async def test_swallowed(mcp_replay):
    with pytest.raises(NotRecorded):
        async with mcp_trio.connect(mcp_replay("a.mcp.jsonl")) as client:
            await client.call_tool("half", {"number": 4})


async def test_unused(mcp_replay):
    mcp_replay("a.mcp.jsonl")


async def test_missing(mcp_replay):
    mcp_replay("b.mcp.jsonl")
"""
RECORD = """
async def test_it(mcp_judged):
    async with mcp_judged(record="a.mcp.jsonl") as client:
        await client.call_tool("half", {"number": 3})
"""


def test_plugin_replays_and_fails_for_what_is_not_recorded(tmp_path: Path) -> None:
    """A test that catches the failure fails at its end; a file that isn't used is one, too."""
    status, shown = run(tmp_path, tests=OWN.partition("async def")[0] + RECORD)
    assert status == 0, shown
    status, shown = run(tmp_path, tests=REPLAY)
    assert status == 1, shown
    assert "1 failed, 5 passed, 2 errors" in shown
    assert "ERROR test_it.py::test_swallowed - " in shown
    assert "the nearest is tools/call half in line 4" in shown
    assert "nothing was judged: the test requests mcp_replay, and does not use it" in shown
    assert "FAILED test_it.py::test_missing - FileNotFoundError" in shown
    assert "record one with connect(server, record=FILE)" in shown
