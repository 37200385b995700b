"""The pytest plugin for tests of any MCP server: its conversations are recorded and judged.

Enable it in the topmost `conftest.py`, or with `-p mcp_trio.testing.oracle`; it isn't an entry
point, so it is never loaded unasked:

    pytest_plugins = ["mcp_trio.testing.oracle"]

The server under test is named on the command line, `pytest --mcp-target "node server.js"` or
`--mcp-target http://127.0.0.1:8000/mcp`, or by a fixture `mcp_target` of your own:

    @pytest.fixture
    def mcp_target():
        return [sys.executable, "server.py"]

The fixtures:

- `mcp_target`: the command's words, or the URL.
- `mcp_judged`: a function that connects to it. The test fails if the conversation breaks a rule of
  the specification: `async with mcp_judged() as client: await client.list_tools()`.
- `mcp_wire`: a function that gives a `ScriptedPeer`, which sends and expects single messages, valid
  or not: `async with mcp_wire() as peer: await peer.send("junk")`.
- `mcp_fuzz`: a function that plays drawn conversations with it, as `mcp-trio fuzz` does, and raises
  `FuzzFindings` if it breaks a rule: `await mcp_fuzz(seconds=10, allow=["search"])`. Checks of your
  own are in a file, `invariants="checks.py"`. It needs the extra `mcp-trio[fuzz]`.
- `mcp_contract`: a function that compares what the server offers with a saved contract, and raises
  `ContractBroken`: `await mcp_contract("server.contract.json")`. `pytest --mcp-update` writes the
  contract anew.
- `mcp_replay`: a function that gives a recorded conversation as the server of a test of your client
  or agent: `async with connect(mcp_replay("search.mcp.jsonl")) as client: ...`. The test fails if a
  request wasn't recorded, also if the client handles the error. It needs no `mcp_target`.
- `mcp_record`: a function that gives a `Recording` for the option `record=` of `mcp_trio.connect`
  and `serve_*`.

A test that requests `mcp_judged`, `mcp_fuzz`, `mcp_contract` or `mcp_replay` and doesn't use it
fails: nothing was judged.

The traces of a test that fails are kept in the directory `--mcp-traces`, `mcp-traces` by default,
and named in its report. Other tests' traces are deleted. `mcp_contract`, `mcp_fuzz`, `mcp_judged`
and `mcp_wire` need a run of trio, as pytest-trio gives it to a test that is an `async def`.
"""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import LATEST
from mcp_core.adapters import Recording
from mcp_core.processes import split_command_line
from mcp_core.registry import Server
from mcp_core.trace import NotRecorded
from mcp_core.urls import url_transport
from mcp_trio.recording._open import open_recorder
from mcp_trio.recording._stream import RecordedStream
from mcp_trio.streams._child import spawn

from ._fuzzing import fuzz_server
from ._judging import connect_judged
from ._peer import ScriptedPeer
from ._play import play_client
from ._replayed import replayed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager
    from typing import TypeAlias

    from mcp_core.trace import ReplayedServer
    from mcp_trio._client import Client

    McpTarget: TypeAlias = str | Server | Sequence[str | os.PathLike[str]]

__all__ = [
    "mcp_contract",
    "mcp_fuzz",
    "mcp_judged",
    "mcp_record",
    "mcp_replay",
    "mcp_target",
    "mcp_wire",
]

_MAX_NAME = 100  # characters of the name of a trace file, without its number and suffixes

_traces = pytest.StashKey[list[Path]]()
_failed = pytest.StashKey[bool]()
_passed = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mcp", "tests of MCP servers (mcp_trio.testing.oracle)")
    group.addoption(
        "--mcp-target",
        metavar="TARGET",
        help="the server under test: a command such as 'node server.js', or a URL",
    )
    group.addoption(
        "--mcp-traces",
        metavar="DIR",
        default="mcp-traces",
        help="the directory for the traces of failed tests (default: mcp-traces)",
    )
    group.addoption(
        "--mcp-update",
        action="store_true",
        help="write the contracts of tests with mcp_contract anew, and compare nothing",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[_passed] = report.passed
    if report.failed:
        item.stash[_failed] = True
        kept = [str(path) for path in item.stash.get(_traces, []) if path.exists()]
        if kept and report.when == "call":
            report.sections.append(("MCP traces", "\n".join(kept)))
    return report


@pytest.fixture
def mcp_target(request: pytest.FixtureRequest) -> McpTarget:
    """Return the server under test, of `--mcp-target`: a command's words, or a URL."""
    target = request.config.getoption("--mcp-target")
    if not target:
        pytest.fail(
            "no server to test: give one with --mcp-target 'COMMAND ...' or --mcp-target URL, or"
            " define a fixture mcp_target",
            pytrace=False,
        )
    if url_transport(target) is not None:
        return str(target)
    return split_command_line(target, windows=os.name == "nt")


@pytest.fixture
def mcp_record(request: pytest.FixtureRequest) -> Iterator[Callable[..., Recording]]:
    """Return a function that gives a `Recording` of a new trace file, with the options given to it.

    The files are kept if the test fails.
    """
    traces: list[Path] = []
    request.node.stash[_traces] = traces
    directory, name = _place_of_traces(request)

    def record(**options: Any) -> Recording:
        directory.mkdir(parents=True, exist_ok=True)
        number = f"-{len(traces) + 1}" if traces else ""
        traces.append(directory / f"{name}{number}.mcp.jsonl")
        return Recording(path=traces[-1], **options)

    yield record
    if not request.node.stash.get(_failed, False):
        for path in traces:
            path.unlink(missing_ok=True)
        if traces and not any(directory.iterdir()):
            directory.rmdir()


def _place_of_traces(request: pytest.FixtureRequest) -> tuple[Path, str]:
    """Return the directory of traces, and the name of this test in it."""
    directory = Path(request.config.getoption("--mcp-traces")).absolute()
    return directory, re.sub(r"[^\w.-]+", "-", request.node.nodeid).strip("-")[-_MAX_NAME:]


@pytest.fixture
def mcp_contract(
    request: pytest.FixtureRequest, mcp_target: McpTarget
) -> Iterator[Callable[..., Awaitable[None]]]:
    """Return an asynchronous function that compares the server under test with a contract's file.

    Its argument is the file, relative to the test's directory, and its options are
    `check_contract`'s, all by keyword. A test that doesn't await it fails.
    """
    is_used = False

    async def contract(path: str | os.PathLike[str], **options: Any) -> None:
        from ._contract import check_contract

        nonlocal is_used
        is_used = True
        update = request.config.getoption("--mcp-update")
        await check_contract(mcp_target, request.path.parent / path, update=update, **options)

    yield contract
    if not is_used:
        _fail_unused(request, "mcp_contract", "await mcp_contract(FILE)")


@pytest.fixture
def mcp_fuzz(
    request: pytest.FixtureRequest, mcp_target: McpTarget
) -> Iterator[Callable[..., Awaitable[None]]]:
    """Return an asynchronous function that fuzzes the server under test.

    Its options are `fuzz_server`'s, all by keyword; a file of invariants is relative to the test's
    directory. What it finds is kept in the test's own
    directory, in the traces' directory. A test that doesn't await it fails.
    """
    directory, name = _place_of_traces(request)
    is_used = False

    async def fuzz(**options: Any) -> None:
        nonlocal is_used
        is_used = True
        if isinstance(options.get("invariants"), str | os.PathLike):
            options["invariants"] = request.path.parent / options["invariants"]
        await fuzz_server(mcp_target, directory / f"{name}-fuzz", **options)

    yield fuzz
    if not is_used:
        _fail_unused(request, "mcp_fuzz", "await mcp_fuzz()")


@pytest.fixture
def mcp_judged(
    request: pytest.FixtureRequest,
    mcp_target: McpTarget,
    mcp_record: Callable[..., Recording],
) -> Iterator[Callable[..., AbstractAsyncContextManager[Client]]]:
    """Return a function that connects to the server under test and judges the conversation.

    Its options are `connect_judged`'s, all by keyword. A test that doesn't connect fails.
    """
    is_used = False

    @asynccontextmanager
    async def judged(**options: Any) -> AsyncIterator[Client]:
        nonlocal is_used
        is_used = True
        options.setdefault("record", mcp_record())
        async with connect_judged(mcp_target, **options) as client:
            yield client

    yield judged
    if not is_used:
        _fail_unused(request, "mcp_judged", "async with mcp_judged() as client: ...")


@pytest.fixture
def mcp_replay(request: pytest.FixtureRequest) -> Iterator[Callable[..., ReplayedServer]]:
    """Return a function that gives a recorded conversation as a server for `connect`.

    Its arguments are `replayed`'s; the file is relative to the test's directory. A test fails if a
    request could not be answered, or if none was answered.
    """
    servers: list[ReplayedServer] = []

    def replay(path: str | os.PathLike[str], **options: Any) -> ReplayedServer:
        servers.append(replayed(request.path.parent / path, **options))
        return servers[-1]

    yield replay
    if not request.node.stash.get(_passed, False):
        return
    for server in servers:
        try:
            server.check()
        except NotRecorded as exc:
            pytest.fail(str(exc), pytrace=False)
    if not any(each.replay.found_count for each in servers):
        _fail_unused(request, "mcp_replay", "async with connect(mcp_replay(FILE)) as client: ...")


def _fail_unused(request: pytest.FixtureRequest, fixture: str, use: str) -> None:
    """Fail a test that has passed without the check that it asks for."""
    if request.node.stash.get(_passed, False):
        pytest.fail(
            f"nothing was judged: the test requests {fixture}, and does not use it; write `{use}`,"
            " or leave the fixture out",
            pytrace=False,
        )


@pytest.fixture
def mcp_wire(
    mcp_target: McpTarget, mcp_record: Callable[..., Recording]
) -> Callable[..., AbstractAsyncContextManager[ScriptedPeer]]:
    """Return a function that gives a `ScriptedPeer` as the client of the server under test.

    Its arguments are the revision, `mcp_core.LATEST` by default, and `handshake`, whether to
    initialize first, True by default. The target has to be a command or a `Server`, which runs in
    memory and isn't recorded.
    """
    return partial(_open_wire, mcp_target, mcp_record)


@asynccontextmanager
async def _open_wire(
    target: McpTarget,
    make_recording: Callable[..., Recording],
    version: str = LATEST,
    *,
    handshake: bool = True,
) -> AsyncIterator[ScriptedPeer]:
    if isinstance(target, str):
        raise TypeError(f"mcp_wire needs a command or a Server: {target} has no byte stream")
    if isinstance(target, Server):
        async with play_client(target, version, handshake=handshake) as peer:
            yield peer
        return
    async with open_recorder(make_recording(), "client", "stdio", target) as recorder:
        assert recorder is not None
        record = recorder.child([os.fspath(word) for word in target])
        async with spawn(target, recorder=record) as child:
            stream = RecordedStream(child.stream, recorder.stream())
            peer = ScriptedPeer(stream, version)
            if handshake:
                await peer.open_as_client()
            yield peer
