"""`--approve-server`: which servers a command line lets start, for its run only.

1. NAME is enough for a server that replaces no other one. For a server that does, NAME@FILE has to
   name its file: the user may have meant their own server, and so learns of this one.
2. FILE is compared like the paths of approvals, with the links in its directory resolved. A
   project's link to the user's file is another file: its servers start in the project's directory.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_core.drivers import shorten_text
from mcp_core.urls import redacted_url
from mcp_trio.host._config_files import real_config_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_core.host import ServerLaunch
    from mcp_trio.host import ServerQuestion

__all__ = ["approving_option", "is_approved_by", "shown_start"]

_MAX_START: Final = 400  # characters of a command or an address in a line


def is_approved_by(words: Iterable[str], question: ServerQuestion) -> bool:
    """Return True if one of the words approves a question's server.

    Args:
        words: the values of `--approve-server`.
        question: the question. It isn't asked if it is approved here.
    """
    for word in words:
        if word == question.server and not question.replaces:
            return True
        file = word.removeprefix(f"{question.server}@")
        if file not in ("", word) and real_config_path(file) == Path(question.file):
            return True
    return False


def approving_option(question: ServerQuestion) -> str:
    """Return the option that approves a question's server, quoted for a shell."""
    word = f"{question.server}@{question.file}" if question.replaces else question.server
    return shlex.join(
        [f"--approve-server={word}"] if word.startswith("-") else ["--approve-server", word]
    )


def shown_start(launch: ServerLaunch) -> str:
    """Return what a launch runs or connects to, in a phrase with a verb."""
    if launch.command:
        return f"start {shorten_text(shlex.join([launch.command, *launch.args]), _MAX_START)}"
    return f"connect to {shorten_text(redacted_url(launch.url)[1:-1], _MAX_START)}"
