"""One file of tasks, without the store around it: its waits, its limits and its errors."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.adapters import _sqlite_file
from mcp_core.adapters._sqlite_file import TaskFile
from mcp_core.tasks import TaskStoreError
from tests.core.tasks.store_contract import MANY, NOW, new_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Iterator[TaskFile]:
    with closing(TaskFile(tmp_path / "tasks.db")) as file:
        yield file


@pytest.mark.parametrize(
    ("free", "pages", "wants"),
    [
        (255, 300, False),  # 1 MB of pages of 4 KiB
        (256, 300, True),
        (256, 1_023, True),
        (256, 1_024, False),  # a quarter
    ],
)
def test_vacuum_begins_at_256_free_pages_of_more_than_a_quarter(
    free: int, pages: int, wants: bool, file: TaskFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"PRAGMA freelist_count": free, "PRAGMA page_count": pages}
    monkeypatch.setattr(file, "_select", lambda query, values, wait: [(counts[query],)])
    assert file.wants_vacuum() is wants


@pytest.mark.parametrize(("renewed", "seconds"), [(None, 30.0), (5.0, 5.0), (0.0, 30.0)])
def test_worker_that_was_never_seen_has_the_lease_of_this_one(
    renewed: float | None, seconds: float, file: TaskFile
) -> None:
    """Such as one of before workers had leases; with 0 this one gives its own lease up."""
    operations = [file.create(new_record(), MANY["limits"])]
    if renewed is not None:
        operations.append(file.renew_lease("this", renewed))
    file.write(operations, durable=False)
    file.lost(0.0, 10)
    found = [file.lost(seconds * part, 10) for part in (0.5, 0.98, 1.0)]
    assert [[each.id for each in records] for records in found] == [[], [], ["a"]]


def test_removals_are_forgotten_when_tasks_expire(
    file: TaskFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sqlite_file, "_REMEMBERED", 3)
    for _ in range(5):
        file.write([file.create(new_record(ttl=1.0), MANY["limits"])], durable=False)
        file.write([file.remove_expired(NOW + 9, 10)], durable=False)
    last = file.sequence()
    file.write([file.forget_removed()], durable=False)
    rows = file._select("SELECT sequence FROM removed ORDER BY sequence", ())
    assert rows == [(last,)]  # this was the transaction after it, and 3 are remembered


@pytest.mark.parametrize(
    ("codes", "timeout", "attempts", "text"),
    [
        ([5, 5], 60.0, 3, ""),
        ([5], 0.0, 1, "another process has locked it for too long"),
        ([10], 60.0, 1, "the disk cannot be read or written"),
    ],
)
def test_write_ahead_log_waits_for_another_process_and_for_nothing_else(
    codes: list[int],
    timeout: float,
    attempts: int,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Processes that create a file at once all try to; what else fails would fail again."""
    one = TaskFile._one
    tried = 0

    def fail(self: TaskFile, connection: Any, query: str, values: Any = ()) -> Any:
        nonlocal tried
        if query == "PRAGMA journal_mode = WAL":
            tried += 1
            if tried <= len(codes):
                error = sqlite3.OperationalError()
                error.sqlite_errorcode = codes[tried - 1]
                raise error
        return one(self, connection, query, values)

    monkeypatch.setattr(TaskFile, "_one", fail)
    monkeypatch.setattr(_sqlite_file, "_BUSY_TIMEOUT", timeout)
    if text:
        with pytest.raises(TaskStoreError, match=text):
            TaskFile(tmp_path / "tasks.db")
    else:
        TaskFile(tmp_path / "tasks.db").close()
    assert tried == attempts


def test_text_that_is_not_utf_8_is_damage(file: TaskFile) -> None:
    error = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    assert "it is damaged, or no SQLite database" in str(file._explained(error))
