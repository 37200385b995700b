"""Explain a command that was written as one word, such as "npx -y server", and other targets.

No text shows a secret: what cannot be read as a command or a URL may be one with a mistake in it.
"""

from __future__ import annotations

import errno
import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from mcp_core._launch_secrets import find_url_secrets, redact_words
from mcp_core._text import escape_text, shorten_text

__all__ = [
    "command_hint",
    "list_form",
    "member_form",
    "program_text",
    "start_problem",
    "target_text",
    "wrong_target",
]

_MAX_SHOWN: Final = 500  # characters of a command in an error
_HIDDEN: Final = "..."
# What may be user info or a query, also in a URL with a mistake such as `https//u:p@host?a=b`.
_USER_INFO: Final = re.compile(r"(?:(?<=:)|(?<=//))[^/?#@:\s]+@")
_QUERY: Final = re.compile(r"[?#].+", re.DOTALL)


def _split_command(command: str) -> list[str] | None:
    """Return the words of a command in one text, as a shell reads them; None for a single word."""
    try:
        # A backslash is a separator on Windows, and has another meaning in a shell.
        words = command.split() if "\\" in command else shlex.split(command)
    except ValueError:  # a quote has no end
        words = command.split()
    return words if len(words) > 1 else None


def command_hint(command: str) -> str:
    """Return how to write a command in one text, to append to the error that there is no such file.

    Args:
        command: the text. A single word gives "".
    """
    words = list_form(command)
    return f"; for a command with arguments give a list of its words: {words}" if words else ""


def list_form(command: str) -> str:
    """Return a command as a list of its words, such as `["npx", "-y", "server"]`.

    Secrets in it are hidden.

    Args:
        command: the text. A single word gives "".
    """
    words = _split_command(command)
    return "" if words is None else _quoted(_redacted(words))


def wrong_target(target: object) -> TypeError:
    """Return the error for a `target` to which `connect` cannot connect."""
    if isinstance(target, Mapping):
        return TypeError(
            "connect to one server: a URL, a Server or a command as a list of words; several, as "
            "in a configuration file, are a Host"
        )
    return TypeError(
        "connect to a URL, to a Server or to a command as a list of words, not to "
        + target_text(target)
    )


def target_text(target: object) -> str:
    """Return what stands for a wrong target in an error, such as `one string: write ["npx", "x"]`.

    Args:
        target: anything. A text is shown without secrets, of another value only its type.
    """
    if isinstance(target, str):
        words = list_form(target)
        return f"one string: write {words}" if words else _quoted(program_text(target))
    if isinstance(target, list | tuple) and not target:
        return "an empty list"
    return f"a value of type {type(target).__name__}"


def program_text(program: str) -> str:
    """Return the name of a program for an error, or a word that has another meaning.

    Secrets are hidden, if it is a whole command or a URL.

    Args:
        program: the command's first word, or any text in place of one.
    """
    words = _split_command(program)
    if words is None:
        shown = _USER_INFO.sub(f"{_HIDDEN}@", _redacted([program])[0])
        shown = _QUERY.sub(lambda found: f"{found[0][0]}{_HIDDEN}", shown)
    else:
        shown = " ".join(_redacted(words))
    return shorten_text(escape_text(shown), _MAX_SHOWN)


def start_problem(
    program: str,
    error: OSError,
    *,
    cwd: object,
    is_there: Callable[[str], bool],
    windows: bool,
) -> str:
    """Return the error of a program that the system doesn't start, with the cause and the cure.

    Args:
        program: the command's first word.
        error: the system's error.
        cwd: the directory that the program would have, or None.
        is_there: returns True if a path is there, seen from `cwd`, or a name without a separator
            is on the `PATH` of the program's variables.
        windows: whether the system is Windows.
    """
    cause = _start_cause(program, error, cwd, is_there, windows)
    return f"cannot start {program_text(program)}: {cause}"


def _start_cause(
    program: str, error: OSError, cwd: object, is_there: Callable[[str], bool], windows: bool
) -> str:
    if cwd is not None and error.filename == cwd:
        return f"its working directory {cwd!s} cannot be entered ({error.strerror})"
    if isinstance(error, PermissionError):
        return "it may not be executed; allow it (chmod +x), or start it through its interpreter"
    if error.errno == errno.ENOEXEC:
        if windows:
            return f"{error.strerror} (a script is started through its interpreter, such as python)"
        return f"{error.strerror} (a script needs a first line such as #!/usr/bin/env python3)"
    if not isinstance(error, FileNotFoundError):
        return f"{error.strerror}"
    in_directory = "/" in program or (windows and "\\" in program)
    if in_directory and not is_there(program):
        return (
            "there is no such file; check the path (a relative one counts from the working"
            f" directory){command_hint(program)}"
        )
    if not in_directory and (windows or not is_there(program)):
        cure = command_hint(program) or "; install it, or give its full path"
        return f"no program of that name on PATH{cure}"
    return "the file is there, but the interpreter named in its first line is not"


def member_form(command: str) -> str:
    """Return a command as the members `command` and `args` of a configuration, without secrets.

    Args:
        command: the text. A single word gives "".
    """
    words = _split_command(command)
    if words is None:
        return ""
    program, *args = _redacted(words)
    return f'"command": {_quoted(program)}, "args": {_quoted(args)}'


def _redacted(words: list[str]) -> list[str]:
    return redact_words(words, lambda value: _HIDDEN, _without_secrets)


def _without_secrets(word: str) -> str:
    for secret in find_url_secrets(word) - {""}:
        word = word.replace(secret, _HIDDEN)
    return word


def _quoted(value: str | list[str]) -> str:
    return shorten_text(escape_text(json.dumps(value, ensure_ascii=False)), _MAX_SHOWN)
