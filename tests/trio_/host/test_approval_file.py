"""The file of approvals: changes at the same time, permissions, and content that is no use."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_core.host import Approvals, InvalidApprovals, ServerApproval, ToolRule
from mcp_trio.host import _approval_file
from mcp_trio.host._approval_file import ApprovalFile, UnsafeApprovals

if TYPE_CHECKING:
    from collections.abc import Callable

APPROVED = ServerApproval(launch="sha256:1", approved=1.5, rules=(ToolRule(tool="a"),))
HAS_OWNERS = hasattr(os, "geteuid")
needs_owners = pytest.mark.skipif(not HAS_OWNERS, reason="Windows has no permission bits")


def approve(server: str) -> Callable[[Approvals], Approvals]:
    return lambda approvals: approvals.with_server("/p/.mcp.json", server, APPROVED)


@pytest.fixture
def file(tmp_path: Path) -> ApprovalFile:
    return ApprovalFile(tmp_path / "state" / "mcp-trio" / "approvals.json")


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_approvals_without_a_file_are_empty(file: ApprovalFile) -> None:
    assert file.load() == Approvals()
    assert not file.path.parent.exists()


def test_approvals_are_kept(file: ApprovalFile) -> None:
    assert file.change(approve("one")).find("/p/.mcp.json", "one") == APPROVED
    stored = file.change(approve("two"))
    assert ApprovalFile(file.path).load() == stored
    assert set(stored.servers["/p/.mcp.json"]) == {"one", "two"}
    assert names_in(file.path.parent) == {"approvals.json", "approvals.json.lock"}


def test_rules_of_a_session_are_not_kept(file: ApprovalFile) -> None:
    approval = ServerApproval(rules=(ToolRule(tool="a", lifetime="session"), ToolRule(tool="b")))
    stored = file.change(lambda before: before.with_server("/f", "s", approval))
    found = stored.find("/f", "s")
    assert found is not None
    assert found.rules == (ToolRule(tool="b"),)
    assert file.load() == stored


@needs_owners
def test_file_and_directories_are_of_the_user_only(file: ApprovalFile) -> None:
    before = os.umask(0)
    try:
        file.change(approve("one"))
    finally:
        os.umask(before)
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (file.path, file.path.parent, file.path.parent.parent)
    }
    assert modes == {"approvals.json": 0o600, "mcp-trio": 0o700, "state": 0o700}


def test_change_to_the_same_writes_nothing(file: ApprovalFile) -> None:
    file.change(approve("one"))
    before = file.path.stat()
    file.change(approve("one"))
    assert os.path.samestat(before, file.path.stat())


def test_change_that_fails_leaves_the_file_unlocked_and_as_it_was(file: ApprovalFile) -> None:
    stored = file.change(approve("one"))
    with pytest.raises(ZeroDivisionError):
        file.change(lambda _: 1 // 0)  # type: ignore[arg-type,return-value]
    assert file.load() == stored
    file.change(approve("two"))


def test_write_that_fails_leaves_no_temporary_file(
    file: ApprovalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = file.change(approve("one"))

    def replace(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(OSError, match="No space left"):
        file.change(approve("two"))
    assert file.load() == stored
    assert names_in(file.path.parent) == {"approvals.json", "approvals.json.lock"}


def test_default_file_is_in_the_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert ApprovalFile().path == tmp_path / "mcp-trio" / "approvals.json"
    assert repr(ApprovalFile()) == f"ApprovalFile({str(ApprovalFile().path)!r})"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    expected = tmp_path / "home" / ".local" / "state" / "mcp-trio" / "approvals.json"
    assert ApprovalFile().path == expected


def test_state_directory_that_is_none_has_no_approvals() -> None:
    file = ApprovalFile(Path(os.devnull) / "mcp-trio" / "approvals.json")
    assert file.load() == Approvals()
    with pytest.raises(OSError, match="Not a directory"):
        file.change(approve("one"))


@needs_owners
@pytest.mark.parametrize("mode", [0o777, 0o702, 0o1777])
@pytest.mark.parametrize("load", [True, False])
def test_directory_that_others_may_write_to_is_refused(
    file: ApprovalFile, mode: int, load: bool
) -> None:
    file.change(approve("one"))
    file.path.parent.chmod(mode)
    with pytest.raises(UnsafeApprovals, match=r"may write to .*mcp-trio; run `chmod go-w"):
        file.load() if load else file.change(approve("two"))
    file.path.parent.chmod(0o755)
    assert file.load().find("/p/.mcp.json", "one") == APPROVED


@needs_owners
def test_parent_that_others_may_write_to_is_refused(file: ApprovalFile) -> None:
    file.change(approve("one"))
    file.path.parent.parent.chmod(0o777)
    with pytest.raises(UnsafeApprovals, match=r"may write to .*state; run") as raised:
        file.load()
    assert raised.value.path == file.path
    assert raised.value.cause.startswith("other users")
    assert raised.value.cure.startswith("run `chmod go-w")
    file.path.parent.parent.chmod(0o1777)
    assert file.load() != Approvals()


@needs_owners
@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
def test_file_that_others_may_write_is_refused(file: ApprovalFile, mode: int) -> None:
    file.change(approve("one"))
    file.path.chmod(mode)
    for use in (file.load, lambda: file.change(approve("two"))):
        with pytest.raises(UnsafeApprovals, match=r"may write to it; remove it .*chmod 600"):
            use()


@needs_owners
def test_file_of_another_user_is_refused(
    file: ApprovalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.change(approve("one"))
    monkeypatch.setattr(_approval_file, "find_unsafe_path", lambda path, owners: None)
    monkeypatch.setattr(os, "geteuid", lambda: file.path.stat().st_uid + 1)
    with pytest.raises(UnsafeApprovals, match="it belongs to another user"):
        file.load()


@needs_owners
def test_symbolic_link_is_refused(file: ApprovalFile, tmp_path: Path) -> None:
    file.change(approve("one"))
    target = tmp_path / "elsewhere.json"
    file.path.rename(target)
    file.path.symlink_to(target)
    with pytest.raises(UnsafeApprovals, match="it is a symbolic link; put the file itself there"):
        file.load()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no FIFOs")
def test_fifo_and_directory_are_refused_without_waiting(file: ApprovalFile) -> None:
    file.path.parent.mkdir(parents=True, mode=0o700)
    os.mkfifo(file.path, 0o600)
    with pytest.raises(InvalidApprovals, match="is no regular file"):
        file.load()
    file.path.unlink()
    file.path.mkdir()
    with pytest.raises(InvalidApprovals, match="cannot be read"):
        file.load()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"{", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"[]", "cannot be read"),
        (b'{"version": 99}', "have version 99"),
        (b'{"version": 1, "servers": {"f": {"s": {"launch": 1}}}}', "cannot be read"),
    ],
)
def test_file_without_approvals_is_an_error_and_stays(
    file: ApprovalFile, content: bytes, problem: str
) -> None:
    file.path.parent.mkdir(parents=True, mode=0o700)
    file.path.write_bytes(content)
    file.path.chmod(0o600)
    for use in (file.load, lambda: file.change(approve("one"))):
        with pytest.raises(InvalidApprovals, match=rf"{problem}.*remove it \(`rm ") as raised:
            use()
        assert str(file.path) in str(raised.value)
    assert file.path.read_bytes() == content


def test_approvals_above_the_limit_are_not_written(
    file: ApprovalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = file.change(approve("one"))
    monkeypatch.setattr(_approval_file, "_MAX_SIZE", file.path.stat().st_size)
    with pytest.raises(InvalidApprovals, match="larger than"):
        file.change(approve("two"))
    assert file.load() == stored
    monkeypatch.setattr(_approval_file, "_MAX_SIZE", 10)
    with pytest.raises(InvalidApprovals, match="larger than"):
        file.load()


def test_approvals_above_64_mib_are_not_written(file: ApprovalFile) -> None:
    with pytest.raises(InvalidApprovals, match="are larger than 64 MiB; remove"):
        file._write(bytes(64 * 1024 * 1024 + 1))
    assert not file.path.parent.exists()


def test_change_while_another_one_takes_too_long_raises(
    file: ApprovalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_approval_file, "_LOCK_TIMEOUT", 0.05)

    def change(approvals: Approvals) -> Approvals:
        with pytest.raises(TimeoutError, match=r"has locked it for 0\.05 seconds"):
            ApprovalFile(file.path).change(approve("two"))
        return approve("one")(approvals)

    assert set(file.change(change).servers["/p/.mcp.json"]) == {"one"}


def test_change_waits_ten_seconds_for_another_one(
    file: ApprovalFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inner change can't get the lock that the outer one holds, and gives up."""
    now = 0.0

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return now

        @staticmethod
        def sleep(seconds: float) -> None:
            nonlocal now
            assert 0 < seconds <= 0.1
            now += seconds

    monkeypatch.setattr(_approval_file, "time", Clock)

    def change(approvals: Approvals) -> Approvals:
        with pytest.raises(TimeoutError, match="has locked it for 10 seconds"):
            ApprovalFile(file.path).change(approve("two"))
        return approve("one")(approvals)

    file.change(change)
    assert now == pytest.approx(10, abs=0.2)


def test_changes_in_several_threads_lose_nothing(file: ApprovalFile) -> None:
    def change(name: str) -> None:
        for number in range(10):
            file.change(approve(f"{name}{number}"))

    threads = [threading.Thread(target=change, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(file.load().servers["/p/.mcp.json"]) == 30


WORKER = """
import sys
from mcp_core.host import ServerApproval
from mcp_trio.host._approval_file import ApprovalFile
path, name, count = sys.argv[1:]
file = ApprovalFile(path)
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(count)):
    approval = ServerApproval(launch="x" * 1000)
    file.change(lambda before: before.with_server("/f", f"{name}{number}", approval))
    file.load()
"""


@pytest.mark.process
def test_changes_of_several_processes_lose_nothing(file: ApprovalFile) -> None:
    """Three processes change one file 150 times; without the lock, some changes would be lost."""
    count = 50
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(file.path), name, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "xyz"
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0
    expected = {f"{name}{number}" for name in "xyz" for number in range(count)}
    assert set(file.load().servers["/f"]) == expected
    assert names_in(file.path.parent) == {"approvals.json", "approvals.json.lock"}


@pytest.mark.process
def test_process_that_is_killed_in_a_change_leaves_no_lock(file: ApprovalFile) -> None:
    """The kernel releases a dead process's lock, so the next host needn't wait."""
    script = WORKER.replace("lambda before: before.", "lambda before: (print('in', flush=True),")
    script = script.replace('with_server("/f", f"{name}{number}", approval)', "sys.stdin.read())")
    worker = subprocess.Popen(
        [sys.executable, "-c", script, str(file.path), "x", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    assert [worker.stdout.readline() for _ in "12"] == ["ready\n", "in\n"]
    worker.kill()
    worker.communicate()
    assert file.change(approve("one")).find("/p/.mcp.json", "one") == APPROVED
