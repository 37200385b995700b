"""The audit log: whole lines, also with other writers, renamed files and full disks."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcp_core.host import AuditRecord, encode_audit_record
from mcp_trio.host._audit_file import AuditFile

if TYPE_CHECKING:
    from collections.abc import Iterator


def record(tool: str = "add", **members: Any) -> AuditRecord:
    return AuditRecord(time=1.5, server="s", tool=tool, outcome="ok", duration=0.1, **members)


def tools_in(path: Path) -> list[str]:
    return [msgspec.json.decode(line)["tool"] for line in path.read_bytes().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def log(path: Path) -> Iterator[AuditFile]:
    log = AuditFile(path)
    yield log
    log.close()


def test_records_are_lines_of_json(log: AuditFile, path: Path) -> None:
    log.write(record(arguments={"a": "\n"}))
    log.write(record("sub"))
    first, second = path.read_bytes().splitlines()
    assert msgspec.json.decode(first, type=AuditRecord) == record(arguments={"a": "\n"})
    assert msgspec.json.decode(second, type=AuditRecord) == record("sub")
    assert (log.failures, log.path) == (0, path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_new_file_is_of_the_user_only_and_an_old_one_stays(path: Path) -> None:
    before = os.umask(0)
    try:
        AuditFile(path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    AuditFile(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_records_are_appended_to_what_is_there(path: Path) -> None:
    for tool in ("one", "two"):
        log = AuditFile(path)
        log.write(record(tool))
        log.close()
    assert tools_in(path) == ["one", "two"]


def test_line_that_a_killed_program_left_is_ended_first(path: Path) -> None:
    path.write_bytes(b'{"time": 1')
    log = AuditFile(path)
    log.write(record("one"))
    log.write(record("two"))
    log.close()
    half, *lines = path.read_bytes().splitlines()
    assert half == b'{"time": 1'
    assert [msgspec.json.decode(line)["tool"] for line in lines] == ["one", "two"]


@pytest.mark.skipif(os.name == "nt", reason="Windows does not rename open files")
@pytest.mark.parametrize("creates", [False, True])
def test_file_that_was_renamed_is_opened_again(log: AuditFile, path: Path, creates: bool) -> None:
    log.write(record("one"))
    path.rename(path.with_suffix(".1"))
    if creates:  # as logrotate does
        path.touch(0o600)
    log.write(record("two"))
    assert tools_in(path.with_suffix(".1")) == ["one"]
    assert tools_in(path) == ["two"]
    assert log.failures == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no symbolic links and no FIFOs")
def test_path_that_is_no_regular_file_is_refused(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        AuditFile(path / "missing")
    path.symlink_to(path.with_suffix(".target"))
    with pytest.raises(OSError, match="symbolic links"):
        AuditFile(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="no regular file"):
        AuditFile(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        AuditFile(path)


@pytest.mark.skipif(os.name == "nt", reason="Windows does not remove open files")
def test_failures_are_counted_and_logged_once(
    log: AuditFile, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.unlink()
    path.mkdir()
    log.write(record("one"))
    log.write(record("two"))
    assert log.failures == 2
    (logged,) = caplog.records
    assert logged.getMessage().startswith(f"cannot write to the audit log {path} (")
    path.rmdir()
    log.write(record("three"))
    assert tools_in(path) == ["three"]
    assert "2 failures" in repr(log)


def test_line_that_was_cut_is_followed_by_a_whole_one(
    log: AuditFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    log.write(record("one"))
    monkeypatch.setattr(os, "write", lambda descriptor, data: 0)
    log.write(record("two"))
    monkeypatch.undo()
    log.write(record("three"))
    half, line = path.read_bytes().splitlines()
    assert (half, msgspec.json.decode(line)["tool"]) == (b'{"time"', "three")
    assert log.failures == 2


def test_record_after_close_is_a_failure(log: AuditFile, path: Path) -> None:
    log.close()
    log.close()
    log.write(record())
    assert log.failures == 1
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    "members",
    [
        {"arguments": ["x" * 70_000]},
        {"arguments": {"a": object()}},
        {"arguments": {"a": "\ud800"}},
        {"error": "\x00" * 70_000},
        {"error": "\ud800" * 70_000, "approved_by": "\U0001f600" * 70_000},
    ],
)
def test_record_that_fits_no_line_is_cut(
    log: AuditFile, path: Path, members: dict[str, Any]
) -> None:
    log.write(record("t" * 2000, **members))
    (line,) = path.read_bytes().splitlines()
    assert len(line) < 64 * 1024
    found = msgspec.json.decode(line)
    assert found["tool"] == "t" * 1000
    assert found.get("arguments") == ("(left out)" if "arguments" in members else None)
    assert log.failures == 0


def test_line_of_64_kib_is_kept_and_a_longer_one_loses_its_arguments(
    log: AuditFile, path: Path
) -> None:
    empty = len(encode_audit_record(record(arguments="")))
    log.write(record(arguments="x" * (64 * 1024 - empty)))
    log.write(record(arguments="x" * (64 * 1024 - empty + 1)))
    whole, cut = path.read_bytes().splitlines(keepends=True)
    assert len(whole) == 64 * 1024
    assert msgspec.json.decode(cut)["arguments"] == "(left out)"


def test_line_that_would_be_too_long_has_a_thousand_characters_of_each_text(
    log: AuditFile, path: Path
) -> None:
    long = dict.fromkeys(("approved_by", "definition", "arguments_digest", "error"), "x" * 70_000)
    log.write(record(**long))
    found = msgspec.json.decode(path.read_bytes())
    assert {name: found[name] for name in long} == dict.fromkeys(long, "x" * 1000)
    assert found["server"] == "s"


def test_file_stays_open_between_records(
    log: AuditFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.delattr(os, "open")
        log.write(record("one"))
        log.write(record("two"))
    assert (tools_in(path), log.failures) == (["one", "two"], 0)


def test_file_is_opened_by_a_system_without_flags_for_links(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_NOFOLLOW")
    monkeypatch.delattr(os, "O_NONBLOCK")
    log = AuditFile(path)
    log.write(record("one"))
    log.close()
    assert (tools_in(path), log.failures) == (["one"], 0)


def test_writers_side_by_side_write_whole_lines(path: Path) -> None:
    """Two processes may share the log: no line is torn or lost, and each writer's order is kept."""

    def run(name: str, log: AuditFile) -> None:
        for number in range(100):
            log.write(record(f"{name}{number}", arguments="x" * 5000))

    # Two objects, as two processes have, and two threads for each.
    logs = [AuditFile(path), AuditFile(path)]
    threads = [
        threading.Thread(target=run, args=(name, logs[number % 2]))
        for number, name in enumerate("wxyz")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        log.close()
        assert log.failures == 0
    found = tools_in(path)
    assert sorted(found) == sorted(f"{name}{n}" for name in "wxyz" for n in range(100))
    for name in "wxyz":
        assert [tool for tool in found if tool[0] == name] == [f"{name}{n}" for n in range(100)]
