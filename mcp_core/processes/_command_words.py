"""Explain a command that was written as one word, such as "npx -y server", and other targets."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Final

from mcp_core._launch_secrets import find_url_secrets, redact_words
from mcp_core._text import escape_text, shorten_text

__all__ = ["command_hint", "list_form", "member_form", "wrong_target"]

_MAX_SHOWN: Final = 500  # characters of a command in an error
_HIDDEN: Final = "..."


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
    words = list_form(target) if isinstance(target, str) else ""
    return TypeError(
        "connect to a URL, to a Server or to a command as a list of words, not to "
        f"{target!r}{words and ': '}{words}"
    )


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
