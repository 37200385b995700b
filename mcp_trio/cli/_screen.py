"""Output of the command: styled lines on a terminal, plain lines elsewhere.

1. A pipe or file gets plain text, neither wrapped nor padded. On a terminal rich writes, which
   honours NO_COLOR and TERM.
2. A server's texts are untrusted. Control characters in them are replaced by visible symbols, so
   that a description cannot move the cursor or imitate other output.
3. A content block becomes text. An image or a sound becomes one line that describes it.
"""

from __future__ import annotations

import os
from functools import cached_property
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final, TextIO

import msgspec

from mcp_core import types as t

from ._errors import CliError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    from mcp_core.types import ContentBlock

    LinePart = str | tuple[str, str]

__all__ = [
    "Screen",
    "content_text",
    "describe_blob",
    "encode_document",
    "replace_controls",
]

_CONTROL_PICTURES: Final = str.maketrans(
    {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
    | {0x7F: "\u2421"}
    | dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd")
)


def replace_controls(text: str) -> str:
    """Replace control characters by symbols, and bidirectional marks by U+FFFD."""
    return text.replace("\r\n", "\n").translate(_CONTROL_PICTURES)


def encode_document(value: Any) -> bytes:
    """Encode one indented JSON document, in UTF-8 for every locale (RFC 8259)."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


class Screen:
    """stdout or stderr. `terminal` is True if it is a terminal, so that a user sees it directly."""

    def __init__(self, file: TextIO | None) -> None:
        # `sys.stdout` and `sys.stderr` are None if they were closed when Python started.
        self._file = file if isinstance(file, TextIOWrapper) else None
        self.terminal = self._file is not None and self._file.isatty()
        self.reader_gone = False  # the reader closed its end; further output is discarded
        # The progress bar that is shown. Its owner sets it, and must not redraw it at a prompt.
        self.progress_bar: Progress | None = None
        self._prompt: Text | None = None
        if self._file is not None:
            self._file.reconfigure(errors="replace")  # an ASCII locale must not fail at an arrow

    @cached_property
    def console(self) -> Console:
        """The rich console, for terminals only. rich is imported here: it is slow to import."""
        from rich.console import Console

        return Console(file=self._file, highlight=False, markup=False, emoji=False)

    @property
    def prompting(self) -> bool:
        """True while a prompt waits for input."""
        return self._prompt is not None

    def width(self, default: int) -> int:
        """Return the columns of the terminal, or `default` without a terminal."""
        return self.console.width if self.terminal else default

    def write_line(self, *parts: LinePart) -> None:
        """Write one line. Each part is a text, or a pair of text and style."""
        if not self.terminal:
            self._write(
                "".join(
                    replace_controls(part if isinstance(part, str) else part[0]) for part in parts
                )
                + "\n"
            )
            return
        if self._prompt is not None:
            self._print("")
        self._print(_to_rich_text(parts))
        if self._prompt is not None:
            self._print(self._prompt, end="")

    def begin_prompt(self, *parts: LinePart) -> None:
        """Write a prompt, for terminals only. Call `end_prompt` when the input has ended.

        Until then no progress bar is shown, and the prompt is repeated after each line of other
        output, so that the user never types after a text of the server.
        """
        if self.progress_bar is not None:
            self.progress_bar.stop()
        self._prompt = _to_rich_text(parts)
        self._print(self._prompt, end="")

    def end_prompt(self, *, ended: bool) -> None:
        """End the prompt. `ended` is True if the user's input ended in a newline."""
        self._prompt = None
        if not ended:
            self._print("")

    def write_text(self, text: str) -> None:
        """Write a server's text: unchanged to a file, with controls replaced on a terminal."""
        if self.terminal:
            self.write_line(text.removesuffix("\n"))
        else:
            self._write(text if text.endswith("\n") else text + "\n")

    def write_bytes(self, data: bytes) -> None:
        """Write bytes unchanged. A terminal must not get a server's bytes: use `write_text`.

        Raises:
            CliError: the file cannot be written, for example because the disk is full.
        """
        if self._file is None:
            return
        try:
            self._file.flush()
            self._file.buffer.write(data)
            self._file.buffer.flush()
        except OSError as exc:
            self._discard_output(self._file)
            # A closed pipe is no error: the reader may have enough, as `head` does. The command
            # runs to its end without output.
            if not isinstance(exc, BrokenPipeError):
                raise CliError(
                    f"{self._file.name.strip('<>')} cannot be written: {exc.strerror}"
                ) from exc

    def write_json(self, document: Any) -> None:
        """Write one JSON document."""
        self.write_bytes(encode_document(document))

    def _write(self, text: str) -> None:
        if self._file is not None:
            self.write_bytes(text.encode(self._file.encoding, "replace"))

    def _print(self, text: str | Text, *, end: str = "\n") -> None:
        assert self._file is not None
        try:
            self.console.print(text, soft_wrap=True, end=end)
        except OSError:  # the terminal is closed
            self._discard_output(self._file)

    def _discard_output(self, file: TextIO) -> None:
        self.reader_gone = True
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, file.fileno())  # else the flush at exit fails again
        os.close(null)


def _to_rich_text(parts: Iterable[LinePart]) -> Text:
    from rich.text import Text

    return Text.assemble(
        *(
            (replace_controls(part), "")
            if isinstance(part, str)
            else (replace_controls(part[0]), part[1])
            for part in parts
        )
    )


def content_text(block: ContentBlock) -> str:
    """Return the text of a content block, or a line that describes it."""
    if isinstance(block, t.TextContent):
        return block.text
    if isinstance(block, t.ResourceLink):
        return f"[{block.uri}: {block.title or block.name}]"
    if isinstance(block, t.EmbeddedResource):
        resource = block.resource
        return (
            resource.text
            if resource.text is not None
            else describe_blob(resource.uri, resource.mime_type, resource.blob or "")
        )
    return describe_blob(block.type, block.mime_type, block.data)


def describe_blob(
    name: str, mime_type: str | None, base64: str, cure: str = "--json shows them"
) -> str:
    """Return a line in place of bytes. `cure` says how to get the bytes."""
    size = len(base64.rstrip("=")) * 3 // 4
    return f"[{name}{f', {mime_type}' if mime_type else ''}, {size} bytes; {cure}]"
