"""Progress on a screen: a bar on a terminal, one line for each message elsewhere.

The bar disappears at the end, and while the user types.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._screen import replace_controls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._screen import Screen

    OnProgress = Callable[[float, float | None, str | None], object]

__all__ = ["show_progress"]


@contextmanager
def show_progress(screen: Screen, name: str) -> Iterator[OnProgress]:
    """Yield the function to call with each progress message.

    `name` is displayed for progress without a message.
    """

    def print_line(done: float, total: float | None, message: str | None) -> None:
        total_text = f" of {total:g}" if total is not None else ""
        screen.write_line(f"{done:g}{total_text}", f"  {message}" if message else "")

    if screen.terminal:
        with _progress_bar(screen, name) as update:
            yield update
    else:
        yield print_line


@contextmanager
def _progress_bar(screen: Screen, name: str) -> Iterator[OnProgress]:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    # The bar is invisible until a task is added: most requests report no progress.
    bar = Progress(
        *columns,
        console=screen.console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    tasks: list[Any] = []

    def update(done: float, total: float | None, message: str | None) -> None:
        if not tasks:
            tasks.append(bar.add_task(name, total=None))
        bar.update(
            tasks[0], completed=done, total=total, description=replace_controls(message or name)
        )
        if not screen.prompting:
            bar.start()

    screen.progress_bar = bar
    try:
        yield update
    finally:
        screen.progress_bar = None
        bar.stop()
