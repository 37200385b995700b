"""The line on stderr that shows a task's state while the command follows it.

It is overwritten, and disappears at the end and while the user types. Only a terminal gets it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from mcp_core.drivers import shorten_text
from mcp_trio.cli._errors import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_core.runtime import TaskState
    from mcp_trio.cli._screen import Screen

__all__ = ["short_id", "show_task"]

_ID_LENGTH: Final = 8  # characters, like git's short ids; enough to tell a user's tasks apart
_MAX_MESSAGE: Final = 200  # characters; the terminal shows as many as fit on the line


def short_id(task_id: str) -> str:
    """Return the beginning of a task id, with escapes: a server may send any text as an id."""
    return one_line(task_id[:_ID_LENGTH])


@contextmanager
def show_task(screen: Screen, task_id: str) -> Iterator[Callable[[TaskState], object]]:
    """Yield the function to call with each state of the task."""
    if not screen.terminal:
        yield lambda state: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    bar = Progress(
        SpinnerColumn(),
        TextColumn("task {task.fields[id]}", markup=False, table_column=Column(no_wrap=True)),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        TimeElapsedColumn(),
        # With a ratio it is the only column that is cut to the width of the terminal.
        TextColumn(
            "{task.fields[message]}", markup=False, table_column=Column(no_wrap=True, ratio=1)
        ),
        console=screen.console,
        transient=True,
        expand=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    line = bar.add_task("", total=None, id=short_id(task_id), message="")

    def update(state: TaskState) -> None:
        message = one_line(shorten_text(state.message or "", _MAX_MESSAGE))
        bar.update(line, description=one_line(state.status), message=message)
        if not screen.prompting:
            bar.start()

    with screen.progress_bar(bar):
        yield update
