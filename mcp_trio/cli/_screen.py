"""Output of the command: styled lines on a terminal, plain lines elsewhere.

1. A pipe or file gets plain text, neither wrapped nor padded. On a terminal rich writes, which
   honours NO_COLOR and TERM.
2. A server's texts are untrusted. A line is one line: line feeds, control characters and invisible
   characters in it are shown as escapes such as `\\n`. A text of several lines is quoted, with `|`
   before each. On a terminal a long line is folded with a hanging indent, so that a server never
   decides what stands in the first column.
3. A result isn't quoted, so that it can be copied, and a pipe or file gets it unchanged.
4. A content block becomes text. An image or a sound becomes one line that describes it.
"""

from __future__ import annotations

import os
import re
import unicodedata
from contextlib import contextmanager
from functools import cached_property
from io import TextIOWrapper
from typing import TYPE_CHECKING, Final, TextIO

import msgspec

from mcp_core import escape_text
from mcp_core import types as t

from ._errors import CliError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    from mcp_core.types import ContentBlock

    LinePart = str | tuple[str, str]

__all__ = [
    "QUOTE",
    "Screen",
    "content_text",
    "counted",
    "describe_blob",
    "encode_document",
    "encode_json_line",
    "split_lines",
]

QUOTE: Final = "| "  # before each line of a quoted text
# The name that begins the command's own messages, and text that looks like it.
_OWN_NAME: Final = re.compile("mcp.trio", re.IGNORECASE)
_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 tool` or `2 tools`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def split_lines(text: str) -> list[str]:
    """Return the lines of a server's text. Their other hidden characters aren't yet escaped."""
    return [line.expandtabs() for line in text.replace("\r\n", "\n").split("\n")]


def encode_document(value: Any) -> bytes:
    """Encode one indented JSON document, in UTF-8 for every locale (RFC 8259).

    Controls and invisible characters are written as escapes: the document may be shown on a
    terminal, and a reader of JSON gets the same value.
    """
    encoded = msgspec.json.encode(value, enc_hook=_as_received)
    return _encode_visible(msgspec.json.format(encoded, indent=2))


def encode_json_line(value: Any) -> bytes:
    """Encode one JSON document as `encode_document` does, on one line that ends in a line feed."""
    return _encode_visible(msgspec.json.encode(value))


def _as_received(value: Any) -> Any:
    """Return a content block of an unknown type as the server has sent it."""
    if isinstance(value, t.UnknownContent):
        return {"type": value.type, **value.data}
    raise TypeError(f"{type(value).__name__} is not JSON")


def _encode_visible(document: bytes) -> bytes:
    return escape_text(document.decode(errors="replace"), "\n").encode() + b"\n"


class Screen:
    """stdout or stderr. `terminal` is True if it is a terminal, so that a user sees it directly."""

    def __init__(self, file: TextIO | None) -> None:
        # `sys.stdout` and `sys.stderr` are None if they were closed when Python started.
        self._file = file if isinstance(file, TextIOWrapper) else None
        self.terminal = self._file is not None and self._file.isatty()
        self.reader_gone = False  # the reader closed its end; further output is discarded
        self._progress_bar: Progress | None = None
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
            texts = (part if isinstance(part, str) else part[0] for part in parts)
            self._write("".join(map(one_line, texts)) + "\n")
            return
        if self._prompt is not None:
            self._print("")
        self._print(self._folded(parts))
        if self._prompt is not None:
            self._print(self._prompt, end="")

    def write_quoted(self, text: str, indent: str = "  ", style: str = "") -> None:
        """Write a server's text of several lines, with `indent` and `|` before each."""
        for line in split_lines(text):
            self.write_line(indent + QUOTE, (line, style))

    def write_message(self, text: str, tag: LinePart = "") -> None:
        """Write a message that may contain a server's text: further lines of it are quoted.

        `tag` is written before the first line.
        """
        first, *others = split_lines(text)
        self.write_line(tag, first)
        if others:
            self.write_quoted("\n".join(others))

    @contextmanager
    def progress_bar(self, bar: Progress) -> Iterator[None]:
        """Hide `bar` when a prompt begins, and remove it at the end of the block.

        The owner of `bar` starts it when there is something to show, but not while `prompting`.
        """
        self._progress_bar = bar
        try:
            yield
        finally:
            self._progress_bar = None
            bar.stop()

    def begin_prompt(self, *parts: LinePart) -> None:
        """Write a prompt, for terminals only. Call `end_prompt` when the input has ended.

        Until then no progress bar is shown, and the prompt is repeated after each line of other
        output, so that the user never types after a text of the server.
        """
        if self._progress_bar is not None:
            self._progress_bar.stop()
        self._prompt = self._folded(parts)
        self._print(self._prompt, end="")

    def end_prompt(self, *, ended: bool) -> None:
        """End the prompt. `ended` is True if the user's input ended in a newline."""
        self._prompt = None
        if not ended:
            self._print("")

    def write_text(self, text: str) -> None:
        """Write a result: unchanged to a file, with escapes for hidden characters on a terminal.

        A terminal wraps its lines, so that they can be copied. A text that names this command could
        imitate its messages, and is quoted.
        """
        if not self.terminal:
            self._write(text if text.endswith("\n") else text + "\n")
        elif _OWN_NAME.search(text):
            self.write_quoted(text.removesuffix("\n"), indent="")
        else:
            if self._prompt is not None:
                self._print("")
            for line in split_lines(text.removesuffix("\n")):
                self._print(_to_rich_text([line]))
            if self._prompt is not None:
                self._print(self._prompt, end="")

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
            # A closed pipe isn't an error: the reader may have enough, as `head` does. The command
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

    def _folded(self, parts: Iterable[LinePart]) -> Text:
        from ._folding import fold

        return fold(_to_rich_text(parts), self.console.width)

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

    pairs = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((_isolate(one_line(text)), style) for text, style in pairs))


def _isolate(text: str) -> str:
    """Isolate text with letters that are written from right to left (UAX 9).

    Otherwise a terminal may move the numbers and words around it, such as a prompt's.
    """
    if text.isascii() or not any(unicodedata.bidirectional(c) in ("R", "AL") for c in text):
        return text
    return f"{_FIRST_STRONG_ISOLATE}{text}{_POP_ISOLATE}"


def content_text(block: ContentBlock, cure: str = "--json shows them") -> str:
    """Return the text of a content block, or a line that describes it.

    `cure` says how to get the bytes of an image, a sound or an embedded resource.
    """
    if isinstance(block, t.TextContent):
        return block.text
    if isinstance(block, t.ResourceLink):
        return f"[{one_line(block.uri)}: {one_line(block.title or block.name)}]"
    if isinstance(block, t.EmbeddedResource):
        resource = block.resource
        return (
            resource.text
            if resource.text is not None
            else describe_blob(resource.uri, resource.mime_type, resource.blob or "", cure)
        )
    if isinstance(block, t.UnknownContent):
        return f"[content of the unknown type {one_line(block.type)}; --json shows it]"
    return describe_blob(block.type, block.mime_type, block.data, cure)


def describe_blob(name: str, mime_type: str | None, base64: str, cure: str) -> str:
    """Return a line in place of bytes. `cure` says how to get the bytes."""
    size = len(base64.rstrip("=")) * 3 // 4
    kind = f", {one_line(mime_type)}" if mime_type else ""
    return f"[{one_line(name)}{kind}, {size} bytes; {cure}]"
