"""The files of `NotedTasks`."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_core.runtime import TaskReference
from mcp_trio.cli._session import Target
from mcp_trio.cli.state._noted_tasks import NotedTasks

if TYPE_CHECKING:
    from collections.abc import Callable

URL = "https://user:hunter2@lab.example/mcp"
NOW = 1_800_000_000.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "mcp-trio" / "tasks"


@pytest.fixture
def set_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    def set_time(now: float) -> None:
        monkeypatch.setattr(time, "time", lambda: now)

    set_time(NOW)
    return set_time


def tasks_of(server: str | tuple[str, ...], cwd: Path | None = None) -> NotedTasks:
    return NotedTasks(Target(server=server, cwd=cwd))


def reference(number: int = 0, ttl: float | None = 60_000) -> TaskReference:
    return TaskReference(f"id {number}", "research", "2026-07-28", "2026-11-23T02:53:02Z", ttl)


def test_noted_tasks_of_server_are_found_again_in_order(
    folder: Path, set_time: Callable[[float], None]
) -> None:
    for later, number in enumerate([2, 0, 1]):
        set_time(NOW + later)
        tasks_of(URL).add(reference(number))
    assert tasks_of(URL).load() == [reference(2), reference(0), reference(1)]


def test_noted_tasks_of_other_server_are_not_found(folder: Path) -> None:
    tasks_of(URL).add(reference())
    assert tasks_of("https://other.example/mcp").load() == []
    assert tasks_of(("python", "lab.py")).load() == []


def test_noted_tasks_of_url_without_path_are_those_at_usual_path(folder: Path) -> None:
    tasks_of("http://lab.example").add(reference(1))
    tasks_of("http://lab.example/").add(reference(2))
    assert len(tasks_of("http://lab.example/mcp").load()) == 2
    assert tasks_of("http://lab.example/?a=b").load() == []


def test_noted_tasks_of_command_depend_on_its_directory(folder: Path, tmp_path: Path) -> None:
    tasks_of(("python", "lab.py"), tmp_path).add(reference())
    assert tasks_of(("python", "lab.py"), tmp_path).load() == [reference()]
    assert tasks_of(("python", "lab.py"), tmp_path / "other").load() == []


def test_same_task_id_of_two_servers_is_noted_for_both(folder: Path) -> None:
    tasks_of(URL).add(reference())
    tasks_of("https://other.example/mcp").add(reference())
    tasks_of(URL).discard(reference())
    assert tasks_of(URL).load() == []
    assert tasks_of("https://other.example/mcp").load() == [reference()]


@pytest.mark.parametrize(
    ("ttl", "lifetime"), [(60_000, 60), (None, 30 * 86_400), (1e300, 30 * 86_400), (-1, 0)]
)
def test_noted_task_over_its_time_to_live_is_removed(
    folder: Path, set_time: Callable[[float], None], ttl: float | None, lifetime: float
) -> None:
    tasks_of(URL).add(reference(ttl=ttl))
    set_time(NOW + lifetime / 2)
    assert len(tasks_of(URL).load()) == (lifetime > 0)
    set_time(NOW + lifetime)
    assert tasks_of(URL).load() == []
    assert list(folder.iterdir()) == []


def test_noted_tasks_above_the_limit_replace_the_oldest(
    folder: Path, set_time: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_trio.cli.state._noted_tasks._MAX_TASKS", 3)
    for number in range(5):
        set_time(NOW + number)
        tasks_of(URL).add(reference(number))
    assert tasks_of(URL).load() == [reference(number) for number in (2, 3, 4)]


def test_noted_task_is_readable_by_its_user_only(folder: Path) -> None:
    tasks_of(URL).add(reference())
    [path] = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "lab.example" not in path.read_text()
    assert "hunter2" not in path.read_text()


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\xff", b'{"server": 1}', b"[" * 100_000, b'{"noted": 1e999}']
)
def test_damaged_note_of_task_is_removed(folder: Path, content: bytes) -> None:
    tasks_of(URL).add(reference())
    (folder / "bad.json").write_bytes(content)
    assert tasks_of(URL).load() == [reference()]
    assert len(list(folder.iterdir())) == 1


def test_note_with_damaged_reference_is_removed(folder: Path) -> None:
    tasks_of(URL).add(reference())
    [path] = folder.iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), "reference": "mcp-task:1:x"}))
    assert tasks_of(URL).load() == []


def test_named_pipe_among_notes_does_not_block(folder: Path) -> None:
    tasks_of(URL).add(reference())
    os.mkfifo(folder / "pipe.json")
    assert tasks_of(URL).load() == [reference()]


def test_noted_tasks_without_directory_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", os.devnull)
    assert tasks_of(URL).load() == []
    tasks_of(URL).discard(reference())
    with pytest.raises(OSError, match="Not a directory"):
        tasks_of(URL).add(reference())


def test_noted_tasks_of_user_without_home_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(Path, "home", home)
    assert tasks_of(URL).load() == []
    with pytest.raises(RuntimeError):
        tasks_of(URL).add(reference())
