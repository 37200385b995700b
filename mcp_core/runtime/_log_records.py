"""Escape control characters from a peer in log records: the filter of each driver's logger.

1. A record is one line. Its arguments, such as names, header values and error messages of a peer,
   cannot begin a second one: that would look like a record of its own (CWE-117).
2. A traceback keeps its lines, but none of them begins in the first column, so that a message with
   line feeds cannot imitate a record.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Protocol

from mcp_core._text import escape_text, shorten_text

__all__ = ["LogEscaper"]

# Characters of one argument. A record is read in full up to here; a peer cannot fill the log with a
# message of many megabytes.
_MAX_ARGUMENT: Final = 2_000
_INDENT: Final = "  "

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


class _LogRecordLike(Protocol):
    """The members of `logging.LogRecord` that are read or replaced."""

    args: Any
    exc_info: Any
    exc_text: str | None


class _EscapedArgument:
    """An argument of a log call whose text is escaped when it is formatted."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return escape_text(shorten_text(str(self._value), _MAX_ARGUMENT))

    def __repr__(self) -> str:
        return escape_text(shorten_text(repr(self._value), _MAX_ARGUMENT))


class LogEscaper:
    """A filter for a `logging.Logger`, which escapes arguments and tracebacks of each record.

    Args:
        format_exception: `logging.Formatter.formatException`.

    It is installed on the logger, so that all handlers of the user get escaped records. A record's
    template isn't changed, and numbers stay numbers.
    """

    def __init__(self, format_exception: Callable[[_ExcInfo], str]) -> None:
        self._format_exception = format_exception

    def filter(self, record: _LogRecordLike) -> bool:
        """Escape `record`, and return True, so that it passes."""
        if isinstance(record.args, tuple):
            record.args = tuple(map(_escape_argument, record.args))
        if record.exc_info and record.exc_info[0] is not None and not record.exc_text:
            # Formatters use this text if it is there.
            text = escape_text(self._format_exception(record.exc_info), "\n\t")
            record.exc_text = _INDENT + text.replace("\n", "\n" + _INDENT)
        return True


def _escape_argument(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else _EscapedArgument(value)
