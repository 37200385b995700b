"""Dialogues with the user at a terminal, one after the other.

1. The event loop waits until the terminal is readable. A thread inside `read()` could not be
   cancelled, and would take the next line from the program that reads the terminal after us.
2. Editing a line and ending it is left to the terminal's line discipline.

The module doesn't know what is asked.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final, TextIO, TypeVar

import trio

if TYPE_CHECKING:
    from ._forms import DialogueSteps, PrintLine, PromptParts
    from ._screen import Screen

__all__ = ["Terminal"]

T = TypeVar("T")

_MAX_LINE: Final = 4096  # the longest line that a Linux terminal delivers
_LOCAL_FLAGS: Final = 3  # the index of `c_lflag` in what `tcgetattr` returns
_CONTROLS: Final = frozenset(map(chr, [*range(0x20), *range(0x7F, 0xA0)])) - {"\t"}


class Terminal:
    """A user who sees `screen`, a terminal, and types at the terminal `keyboard`."""

    def __init__(self, screen: Screen, keyboard: TextIO) -> None:
        self._screen = screen
        self._fd = keyboard.fileno()
        self._encoding = keyboard.encoding
        self._dialogue_lock = trio.Lock()
        self._is_hidden = False  # what is typed isn't shown

    async def run_dialogue(
        self, begin: Callable[[PrintLine], DialogueSteps[T]], *, echo: bool = True
    ) -> T:
        """Run a dialogue, after those that already wait, and return its result.

        Args:
            begin: begins the dialogue; it gets the function that prints a line.
            echo: whether the terminal shows what is typed.
        """
        async with self._dialogue_lock:
            with nullcontext() if echo else self._hidden_input():
                return await self._run(begin)

    async def _run(self, begin: Callable[[PrintLine], DialogueSteps[T]]) -> T:
        # Discard what was typed before the question was shown: it isn't an answer to it. The
        # first read reports a closed terminal.
        with suppress(termios.error):
            termios.tcflush(self._fd, termios.TCIFLUSH)
        dialogue = begin(self._screen.write_line)
        try:
            prompt = next(dialogue)
            while True:
                prompt = dialogue.send(await self._read_line(prompt))
        except StopIteration as end:
            result: T = end.value
            return result

    @contextmanager
    def _hidden_input(self) -> Iterator[None]:
        """Switch the echo of the terminal off for the block."""
        try:
            before = termios.tcgetattr(self._fd)
        except termios.error:  # the terminal is closed, which the first read reports
            yield
            return
        after = termios.tcgetattr(self._fd)
        after[_LOCAL_FLAGS] = after[_LOCAL_FLAGS] & ~termios.ECHO | termios.ECHONL
        termios.tcsetattr(self._fd, termios.TCSADRAIN, after)
        self._is_hidden = True
        try:
            yield
        finally:
            self._is_hidden = False
            with suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSADRAIN, before)

    async def _read_line(self, prompt: PromptParts) -> str | None:
        """Return the line typed after the prompt; None for Ctrl+D or if the terminal is closed."""
        while True:
            data = await self._read_bytes(prompt)
            if data is None:
                return None
            try:
                text = data.rstrip(b"\r\n").decode(self._encoding)
            except UnicodeDecodeError:
                self._screen.write_line((f"  That is not {self._encoding}", "yellow"))
                continue
            if _CONTROLS.isdisjoint(text):
                return text
            shown = "" if self._is_hidden else f": {text}"
            self._screen.write_line(
                ("  That contains a control character, as of an arrow key", "yellow"), shown
            )

    async def _read_bytes(self, prompt: PromptParts) -> bytes | None:
        self._screen.begin_prompt(*prompt)
        data = b""
        try:
            while not data.endswith(b"\n"):
                await trio.lowlevel.wait_readable(self._fd)
                chunk = os.read(self._fd, _MAX_LINE)
                if not chunk:
                    return None
                data += chunk
        except OSError:  # the terminal is closed
            return None
        finally:
            self._screen.end_prompt(ended=data.endswith(b"\n"))
        return data
