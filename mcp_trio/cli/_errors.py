"""The error of the command with its exit statuses, and the errors for names, URIs and files.

An error about an unknown name of a tool, a prompt or an argument suggests a similar one.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from mcp_core import escape_text
from mcp_core.drivers import shorten_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.adapters import ServedSource, ServedSourceError

__all__ = [
    "INTERNAL_ERROR",
    "INTERRUPTED",
    "MISUSE",
    "NOTHING_JUDGED",
    "NO_CONNECTION",
    "SERVER_ERROR",
    "CliError",
    "check_uri",
    "file_source",
    "is_uri",
    "join_names",
    "one_line",
    "source_error",
    "suggestion",
    "unknown_argument",
    "unknown_name",
]

# Exit statuses. 0 is success.
SERVER_ERROR: Final = 1
MISUSE: Final = 2  # the status that argparse uses
NO_CONNECTION: Final = 3
NOTHING_JUDGED: Final = 4  # a check that found nothing to judge: neither passed nor failed
INTERNAL_ERROR: Final = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells count

_MAX_NAMES: Final = 30  # names in an error; a server may have thousands
_MAX_NAME: Final = 200  # characters of one name

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_VARIABLE: Final = re.compile(r"\{.*?\}")


class CliError(Exception):
    """An error that is shown to the user: the cause, then the cure."""

    def __init__(self, text: str, status: int = MISUSE) -> None:
        super().__init__(text)
        self.status = status


def unknown_name(kind: str, name: str, known: Sequence[str]) -> CliError:
    """Build the error for a tool, a prompt or a template that the server doesn't have."""
    has = f"its {kind}s are {join_names(known)}" if known else "it has none"
    return CliError(f"the server has no {kind} {name}; {has}.{suggestion(name, known)}")


def unknown_argument(owner: str, name: str, known: Sequence[str]) -> CliError:
    """Build the error for an unknown argument. `owner` takes it, such as "the tool price"."""
    takes = f"it takes {join_names(known)}" if known else "it takes none"
    return CliError(f"{owner} has no argument {name}; {takes}.{suggestion(name, known)}")


def suggestion(name: str, known: Sequence[str]) -> str:
    """Return a question to append to an error about `name`; empty if no known name is similar."""
    close = get_close_matches(name, known, 1)
    return f" Did you mean {join_names(close)}?" if close else ""


def join_names(names: Sequence[str], separator: str = ", ") -> str:
    """Return a server's names, each as one line, for an error. Names beyond a limit are counted."""
    shown = [one_line(shorten_text(name, _MAX_NAME)) for name in names[:_MAX_NAMES]]
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return separator.join(shown) + more


def one_line(text: str) -> str:
    """Return a server's text as one line, with escapes for hidden characters."""
    return escape_text(text, joiners=True)


def is_uri(word: str) -> bool:
    """Return True if `word` begins with a URI scheme (RFC 3986)."""
    return _SCHEME.match(word) is not None


def check_uri(uri: str) -> None:
    """Check that `uri` can be the URI of a resource.

    Raises:
        CliError: `uri` has no scheme, or is a URI template.
    """
    if not is_uri(uri):
        raise CliError(
            f"{uri!r} is not a URI: a URI begins with a scheme, as in tea://menu;"
            " `mcp-trio inspect` lists the resources"
        )
    if variable := _VARIABLE.search(uri):
        raise CliError(f"{uri} is a template: replace {variable[0]} by a value")


def source_error(exc: ServedSourceError) -> CliError:
    """Return the error of the command for a server that cannot be taken from its source."""
    return CliError(str(exc), SERVER_ERROR if exc.import_failed else MISUSE)


def file_source(target: str) -> ServedSource:
    """Return the source `FILE[:NAME]`.

    Raises:
        CliError: there is no such file.
    """
    from mcp_core.adapters import ServedSource, ServedSourceError

    try:
        return ServedSource.from_file(target)
    except ServedSourceError as exc:
        raise source_error(exc) from None
