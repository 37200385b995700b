"""Progress on a screen: a bar on a terminal, one line for each message elsewhere.

The bar disappears at the end, and while the user types.
"""

from __future__ import annotations

import math
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from mcp_core.drivers import shorten_text

from ._errors import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._screen import Screen

    OnProgress = Callable[[float, float | None, str | None], object]

__all__ = ["show_progress"]

_MAX_MESSAGE: Final = 200  # characters: two lines of most terminals
_MAX_NUMBER: Final = 1e15  # up to here a float counts one by one


@contextmanager
def show_progress(screen: Screen, name: str) -> Iterator[OnProgress]:
    """Yield the function to call with each progress message.

    `name` is displayed for progress without a message. After the block the function does nothing.
    """

    def print_line(done: float, total: float | None, message: str | None) -> None:
        total_text = f" of {_as_float(total):g}" if total is not None else ""
        text = f"  {_shorten(message)}" if message else ""
        screen.write_line(f"{_as_float(done):g}{total_text}", text)

    ended = False

    def update_until_end(done: float, total: float | None, message: str | None) -> None:
        # A call that became a task may report progress until the task has ended.
        if not ended:
            update(done, total, message)

    with _progress_bar(screen, name) if screen.terminal else nullcontext(print_line) as update:
        try:
            yield update_until_end
        finally:
            ended = True


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
        description = one_line(_shorten(message or name))
        # The bar computes with what it gets: an infinite number would be an error.
        completed = min(max(_as_float(done), 0.0), _MAX_NUMBER)
        end = None if total is None or total <= 0 else min(_as_float(total), _MAX_NUMBER)
        bar.update(tasks[0], completed=completed, total=end, description=description)
        if not screen.prompting:
            bar.start()

    with screen.progress_bar(bar):
        yield update


def _as_float(number: float) -> float:
    """Return a number of the server as a float; one that no float can hold is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _shorten(message: str) -> str:
    return shorten_text(message, _MAX_MESSAGE)
