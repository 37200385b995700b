"""Where the command writes: lines with a little colour on a terminal, plain lines elsewhere.

Rules of this file:

1. Into a pipe or file goes plain text, not folded and not padded to any width. rich is imported for terminals only, where
   it also honours NO_COLOR and TERM.
2. Texts of a server are strangers' texts. Control characters in them are shown as pictures, so that a description can
   neither move the cursor nor pretend to be something else.

It does not know what is written.
"""

from __future__ import annotations

import os
from functools import cached_property
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final, TextIO

import msgspec

from ._problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    Part = str | tuple[str, str]

__all__ = ["Screen", "as_document", "clean"]

_PICTURES: Final = str.maketrans(
    {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
    | {0x7F: "\u2421"}
    | dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd")
)


def clean(text: str) -> str:
    """The text with its control characters as pictures, and reordering marks as question marks."""
    return text.replace("\r\n", "\n").translate(_PICTURES)


def as_document(value: Any) -> bytes:
    """One JSON document as people read it: folded, and UTF-8, as JSON always is, whatever the locale."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


class Screen:
    """stdout or stderr. `terminal` tells whether a person looks at it directly."""

    def __init__(self, file: TextIO | None) -> None:
        # None if it was closed when Python started.
        self._file = file if isinstance(file, TextIOWrapper) else None
        self.terminal = self._file is not None and self._file.isatty()
        self.gone = False  # whoever read what is written here
        self.bar: Progress | None = None  # set by who moves it, and moves it not while somebody is `typing`
        self._prompt: Text | None = None
        if self._file is not None:
            self._file.reconfigure(errors="replace")  # an old encoding is no reason to fail at an arrow

    @cached_property
    def console(self) -> Console:
        """For terminals only."""
        from rich.console import Console

        return Console(file=self._file, highlight=False, markup=False, emoji=False)

    @property
    def typing(self) -> bool:
        """Whether a person is about to type something."""
        return self._prompt is not None

    def width(self, default: int) -> int:
        """The columns of the terminal; `default` for what has none."""
        return self.console.width if self.terminal else default

    def say(self, *parts: Part) -> None:
        """Write one line made of texts and of pairs of text and style."""
        if not self.terminal:
            self._write("".join(clean(part if isinstance(part, str) else part[0]) for part in parts) + "\n")
            return
        if self._prompt is not None:
            self._print("")
        self._print(_styled(parts))
        if self._prompt is not None:
            self._print(self._prompt, end="")

    def prompt(self, *parts: Part) -> None:
        """Write what a person will type behind; for terminals only. Until `typed` no bar moves, and the prompt comes again
        after each other line, so that nobody types behind what a server said."""
        if self.bar is not None:
            self.bar.stop()
        self._prompt = _styled(parts)
        self._print(self._prompt, end="")

    def typed(self, *, ended: bool) -> None:
        """Nobody types any more; whether the line was `ended`."""
        self._prompt = None
        if not ended:
            self._print("")

    def show(self, text: str) -> None:
        """Write someone else's text: as it is for programs to read, harmless for people."""
        if self.terminal:
            self.say(text.removesuffix("\n"))
        else:
            self._write(text if text.endswith("\n") else text + "\n")

    def write(self, data: bytes) -> None:
        """Write bytes as they are. They may be a stranger's: not for terminals.

        Raises:
            Problem: the disk is full, or the like.
        """
        if self._file is None:
            return
        try:
            self._file.flush()
            self._file.buffer.write(data)
            self._file.buffer.flush()
        except OSError as exc:
            self._lose(self._file)
            # Whoever reads may have read enough, as `head` does: what runs is finished, unheard.
            if not isinstance(exc, BrokenPipeError):
                raise Problem(f"{self._file.name.strip('<>')} cannot be written: {exc.strerror}") from exc

    def write_json(self, document: Any) -> None:
        """Write one JSON document."""
        self.write(as_document(document))

    def _write(self, text: str) -> None:
        if self._file is not None:
            self.write(text.encode(self._file.encoding, "replace"))

    def _print(self, text: str | Text, *, end: str = "\n") -> None:
        assert self._file is not None
        try:
            self.console.print(text, soft_wrap=True, end=end)
        except OSError:  # it was hung up
            self._lose(self._file)

    def _lose(self, file: TextIO) -> None:
        self.gone = True
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, file.fileno())  # Python's last flush shall not fail once more
        os.close(null)


def _styled(parts: Iterable[Part]) -> Text:
    from rich.text import Text

    return Text.assemble(
        *((clean(part), "") if isinstance(part, str) else (clean(part[0]), part[1]) for part in parts)
    )
