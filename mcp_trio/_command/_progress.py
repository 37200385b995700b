"""Progress on a screen: a bar for people, which goes away when all is done, or while they type; lines elsewhere."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._screen import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._screen import Screen

    Step = Callable[[float, float | None, str | None], object]

__all__ = ["progress_on"]


@contextmanager
def progress_on(screen: Screen, name: str) -> Iterator[Step]:
    """What to call with each progress message. `name` stands for a message without a text of its own."""

    def line(done: float, total: float | None, message: str | None) -> None:
        of = f" of {total:g}" if total is not None else ""
        screen.say(f"{done:g}{of}", f"  {message}" if message else "")

    if screen.terminal:
        with _bar(screen, name) as bar:
            yield bar
    else:
        yield line


@contextmanager
def _bar(screen: Screen, name: str) -> Iterator[Step]:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    # It shows nothing until a task is added: most requests have no progress.
    shown = Progress(
        *columns, console=screen.console, transient=True, redirect_stdout=False, redirect_stderr=False
    )
    tasks: list[Any] = []

    def move(done: float, total: float | None, message: str | None) -> None:
        if not tasks:
            tasks.append(shown.add_task(name, total=None))
        shown.update(tasks[0], completed=done, total=total, description=clean(message or name))
        if not screen.typing:
            shown.start()

    screen.bar = shown
    try:
        yield move
    finally:
        screen.bar = None
        shown.stop()
