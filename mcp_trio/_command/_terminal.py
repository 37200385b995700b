"""A person at the terminal: one dialogue after the other, each line as the kernel hands it over.

Rules of this file:

1. The descriptor is read when it has something, by the loop and not by a thread: a thread inside `read()` could not be cancelled,
   and would take the next line from whoever comes after us.
2. What was typed before a question was shown is no answer to it.
3. Editing the line, and ending it, is left to the terminal's own line discipline.

It refuses to know what is asked.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TextIO

import trio

if TYPE_CHECKING:
    from mcp_core.types import ElicitResult

    from ._question import Dialogue, Prompt, Say
    from ._screen import Screen

__all__ = ["Terminal"]

_LINE: Final = 4096  # as long as a line can be, says Linux
_CONTROLS: Final = frozenset(map(chr, [*range(0x20), *range(0x7F, 0xA0)])) - {"\t"}


class Terminal:
    """Someone who sees `screen`, a terminal, and types at the terminal `keyboard`."""

    def __init__(self, screen: Screen, keyboard: TextIO) -> None:
        self._screen = screen
        self._fd, self._encoding = keyboard.fileno(), keyboard.encoding
        self._turn = trio.Lock()

    async def hold(self, begin: Callable[[Say], Dialogue]) -> ElicitResult:
        """Have a dialogue, after those that are waiting already; gives its answer."""
        async with self._turn:
            with suppress(termios.error):  # nobody is there any more, which shows in a moment
                termios.tcflush(self._fd, termios.TCIFLUSH)
            dialogue = begin(self._screen.say)
            try:
                prompt = next(dialogue)
                while True:
                    prompt = dialogue.send(await self._line(prompt))
            except StopIteration as end:
                answer: ElicitResult = end.value
                return answer

    async def _line(self, prompt: Prompt) -> str | None:
        """What is typed behind the prompt; None for Ctrl+D, or if nobody is there any more."""
        while True:
            data = await self._bytes(prompt)
            if data is None:
                return None
            try:
                text = data.rstrip(b"\r\n").decode(self._encoding)
            except UnicodeDecodeError:
                self._screen.say((f"  That is not {self._encoding}", "yellow"))
                continue
            if _CONTROLS.isdisjoint(text):
                return text
            self._screen.say(("  A key was pressed there that writes no text: ", "yellow"), text)

    async def _bytes(self, prompt: Prompt) -> bytes | None:
        self._screen.prompt(*prompt)
        data = b""
        try:
            while not data.endswith(b"\n"):
                await trio.lowlevel.wait_readable(self._fd)
                more = os.read(self._fd, _LINE)
                if not more:
                    return None
                data += more
        except OSError:  # it was hung up
            return None
        finally:
            self._screen.typed(ended=data.endswith(b"\n"))
        return data
