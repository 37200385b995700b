"""Files that earlier versions have stored are opened by this one.

`tests/stored/` has files as the version of 2026-11-28 (before approvals knew what they replace)
wrote them: a task that was completed, tasks with leases of their own, an approval with a rule, a
login, a trace, a contract, and reports of `check` and `fuzz`. A change of a form comes with a file
of the form before it.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import pytest
import trio
from trio.testing import MockClock

import mcp_trio
from mcp_core.auth.client._tokens import decode_tokens
from mcp_core.host import ServerLaunch, approval_state, decode_approvals, make_launch, read_config
from mcp_core.registry import Server, TaskOptions, Tasks
from mcp_trio import SqliteTaskStore
from mcp_trio._tasks import TrioTaskRuntime
from mcp_trio.cli import main
from mcp_trio.testing._contract import check_contract

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

STORED: Final = Path(__file__).parent / "stored"
FILE: Final = "/project/.mcp.json"
ENTRY: Final = (
    b'{"mcpServers": {"notes": {"type": "http", "url": "https://notes.example/mcp",'
    b' "headers": {"X-A": "b"}}}}'
)


def test_task_of_a_stored_file_has_its_result(tmp_path: Path) -> None:
    """The handler raises, so the result can only come from the file."""
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as database:
        database.executescript((STORED / "tasks.sql").read_text("utf-8"))
    (tmp_path / "tasks.db").chmod(0o600)
    server = Server("library", tasks=Tasks(store=SqliteTaskStore(tmp_path / "tasks.db")))

    @server.tool(task="optional")
    async def copy(name: str) -> str:
        """Copy a book."""
        raise AssertionError("the task was completed")

    async def main() -> str:
        reference = (STORED / "task.txt").read_text("utf-8").strip()
        async with mcp_trio.connect(server, tasks=True) as client:
            return (await (await client.task(reference)).result()).text

    assert trio.run(main) == "A copy of Emma"


def test_task_of_a_stored_file_whose_lease_was_its_own_runs_again(tmp_path: Path) -> None:
    """Its worker is believed to be alive for as long as a lease lasts, and is lost then."""
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as database:
        database.executescript((STORED / "tasks_of_workers.sql").read_text("utf-8"))
    (tmp_path / "tasks.db").chmod(0o600)
    store = SqliteTaskStore(tmp_path / "tasks.db")
    server = Server("library", tasks=Tasks(store=store))
    copies: list[float] = []
    done = trio.Event()

    @server.tool(task=TaskOptions(rerun=True))
    async def copy(name: str) -> str:
        """Copy a book."""
        copies.append(trio.current_time())
        if len(copies) == 2:
            done.set()
        return f"A copy of {name}"

    async def main() -> None:
        start = trio.current_time()
        async with mcp_trio.connect(server):
            await done.wait()
        at_once, later = (seconds - start for seconds in copies)
        assert at_once < 1.0  # it was given back
        assert 29.0 < later < 41.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrioTaskRuntime, "in_store_thread", run_here)
        trio.run(main, clock=MockClock(autojump_threshold=0))


async def run_here(self: object, function: Callable[[], T]) -> T:
    """Run a function of a store in the thread of the event loop: the mock clock waits for it."""
    return function()


def launch() -> ServerLaunch:
    """Return the launch that was approved."""
    return make_launch(read_config(ENTRY, file=FILE).servers["notes"])


def test_stored_approval_holds_for_the_same_launch() -> None:
    approval = decode_approvals((STORED / "approvals.json").read_bytes()).find(FILE, "notes")
    assert approval is not None
    assert approval_state(launch(), approval, replaces=()) == "approved"
    assert [(rule.tool, rule.is_allowed) for rule in approval.rules] == [("write", False)]


def test_stored_approval_holds_for_no_server_that_takes_a_place() -> None:
    approval = decode_approvals((STORED / "approvals.json").read_bytes()).find(FILE, "notes")
    state = approval_state(launch(), approval, replaces=["/home/ann/mcp.json (user)"])
    assert state == "new"


def test_stored_login_has_its_tokens() -> None:
    tokens = decode_tokens((STORED / "login.json").read_bytes())
    assert tokens is not None
    assert (tokens.client_id, tokens.issuer) == ("c", "https://as.example")
    assert tokens.access.reveal() == "t1"
    assert tokens.refresh is not None
    assert tokens.refresh.reveal() == "r1"


def test_stored_report_of_check_is_a_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(STORED / "a.mcp.jsonl")
    assert main(["check", trace]) == 1
    assert main(["check", "--baseline", str(STORED / "check.json"), trace]) == 0
    assert "1 known" in capsys.readouterr().out


def test_stored_contract_is_kept_by_the_same_server() -> None:
    """It has five revisions. A version that leaves more out, or less, needs another form."""
    server = Server("greeter")

    @server.tool
    def greet(name: str) -> str:
        """Say hello to someone by name."""
        return f"Hello, {name}!"

    trio.run(check_contract, server, STORED / "server.contract.json")


def test_stored_report_of_fuzz_is_a_baseline_and_has_cases(tmp_path: Path) -> None:
    pytest.importorskip("hypothesis")
    from mcp_trio.oracle.fuzz._stored_report import read_stored
    from mcp_trio.oracle.fuzz.causes._baseline import read_baseline

    first = read_baseline((STORED / "fuzz.json").read_bytes())
    assert first.form == 1
    assert first.methods
    second = read_baseline((STORED / "fuzz_causes.json").read_bytes())
    assert second.form == 2
    assert {cause.family for cause in second.causes} == {"RPC-7"}
    shutil.copy(STORED / "fuzz.json", tmp_path / "report.json")
    stored = read_stored(tmp_path)
    assert [case[0][0] for case in stored.cases] == ["open", "open", "open"]
    assert stored.kept == []
