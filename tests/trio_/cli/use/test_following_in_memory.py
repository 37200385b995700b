"""A task that its command has started, when the command fails or is interrupted."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import McpTrioError, PeerError
from mcp_core.runtime import TaskReference
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import Target
from mcp_trio.cli.state._noted_tasks import NotedTasks
from mcp_trio.cli.use._following import follow_own_task, leave_task, task_document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

REFERENCE = TaskReference("0123456789", "look", "2025-11-25", "2026-11-23T02:53:02Z", 60_000)
CLIENT: Any = SimpleNamespace(
    peer=SimpleNamespace(dialect=SimpleNamespace(tasks="requested", version="2025-11-25"))
)
NEWER: Any = SimpleNamespace(peer=SimpleNamespace(dialect=SimpleNamespace(tasks="extension")))
CANNOT = f"mcp-trio: task 01234567 could not be cancelled; its reference:\n{REFERENCE}\n"


class FollowedTask:
    """A task that raises `error` while it is followed, or waits; `how` is how it is cancelled."""

    id = REFERENCE.id
    reference = str(REFERENCE)
    status = "working"

    def __init__(self, error: BaseException | None, how: str, *, ended: bool = False) -> None:
        self._error, self._how = error, how
        self.ended = ended
        self.cancelled = 0

    async def states(self) -> AsyncIterator[object]:
        if self._error is not None:
            raise self._error
        await trio.Event().wait()
        yield None

    async def cancel(self) -> None:
        self.cancelled += 1
        if self._how == "silent":
            await trio.sleep_forever()
        if self._how == "refused":
            raise McpTrioError("no")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> io.BytesIO:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return io.BytesIO()


def target_of(shown: io.BytesIO, server: Any = ("it",), **options: Any) -> Target:
    return Target(server=server, stderr=Screen(io.TextIOWrapper(shown, "utf-8")), **options)


@pytest.mark.parametrize(
    ("error", "how", "ended", "count", "text"),
    [
        (McpTrioError("x"), "", False, 1, "mcp-trio: task 01234567 is cancelled\n"),
        (PeerError(-32602, "unknown"), "", False, 0, ""),
        (PeerError(-32603, "x"), "", False, 1, "mcp-trio: task 01234567 is cancelled\n"),
        (PeerError(-32603, "failed"), "", True, 0, ""),
        (McpTrioError("x"), "refused", False, 1, CANNOT),
        (McpTrioError("x"), "silent", False, 1, CANNOT),
    ],
)
async def test_task_of_a_failed_command_is_cancelled_unless_it_has_ended(
    error: Exception,
    how: str,
    ended: bool,
    count: int,
    text: str,
    shown: io.BytesIO,
    autojump_clock: object,
) -> None:
    """A user waits two seconds at most, and keeps the reference if it could not be cancelled."""
    task: Any = FollowedTask(error, how, ended=ended)
    begun = trio.current_time()
    with pytest.raises(type(error)):
        await follow_own_task(task, CLIENT, target_of(shown), keep=False)
    assert (task.cancelled, shown.getvalue().decode()) == (count, text)
    assert trio.current_time() - begun == (2 if how == "silent" else 0)


@pytest.mark.parametrize("keep", [False, True])
async def test_task_of_an_interrupted_command_is_cancelled_or_kept(
    keep: bool, shown: io.BytesIO, autojump_clock: object
) -> None:
    task: Any = FollowedTask(None, "")
    with trio.move_on_after(5) as scope:
        await follow_own_task(task, CLIENT, target_of(shown), keep=keep)
    assert scope.cancelled_caught
    text = shown.getvalue().decode()
    assert task.cancelled == (0 if keep else 1)
    if keep:
        assert text.startswith(f"mcp-trio: the task goes on; its reference:\n{REFERENCE}\n")
    assert NotedTasks(target_of(io.BytesIO())).load() == ([REFERENCE] if keep else [])


ENDS = (
    "mcp-trio: the server ends with this command, and the task with it, unless the server stores"
    " its tasks\n"
)
MAY_END = (
    "mcp-trio: a server that requires no login may cancel the task at the end of this session"
    " (2025-11-25)\n"
)


@pytest.mark.parametrize(
    ("client", "server", "headers", "text"),
    [
        (CLIENT, ("it",), (), ENDS),
        (NEWER, ("it",), (), ENDS),
        (CLIENT, "http://x", (), MAY_END),
        (CLIENT, "http://x", (("x-a", "b"),), MAY_END),
        (CLIENT, "http://x", (("x-a", "b"), ("authorization", "t")), ""),
        (NEWER, "http://x", (), ""),
    ],
)
def test_task_that_is_left_may_end_with_its_server(
    client: Any, server: Any, headers: Any, text: str, shown: io.BytesIO
) -> None:
    task: Any = FollowedTask(None, "")
    target = target_of(shown, server, headers=headers)
    leave_task(task, client, target)
    assert shown.getvalue().decode() == text
    assert NotedTasks(target).load() == [REFERENCE]


def test_document_of_a_task_has_a_message_if_there_is_one() -> None:
    assert "statusMessage" not in task_document(REFERENCE, "working", None)
    assert task_document(REFERENCE, "working", "")["statusMessage"] == ""
