"""The command or address of a server of a project's file: for the user, and as a digest.

1. Everything is as the file has it, with `${NAME}` in place of values. Secrets behind names are not
   shown, digested or stored.
2. What a program file contains, and what an address leads to, is not covered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct, field

from mcp_core._text import escape_text

from ._canonical_json import digest_json
from .edit._clients import ServerTransport

__all__ = ["LaunchLine", "ServerLaunch", "describe_launch", "digest_launch"]

# The way a digest is made. It changes when more is covered, so that users are asked again.
_DIGEST_VERSION: Final = 1
_ABSOLUTE: Final = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")
# ${NAME}, ${NAME:-default}, ${env:NAME}, ${input:NAME} and $NAME. Defaults may hold references too,
# so the end is not looked for.
_REFERENCE: Final = re.compile(r"\$(?:\{\s*(?:env:)?((?:input:)?[A-Za-z_][\w.-]*)|([A-Za-z_]\w*))")
# Variables that make a program load code from elsewhere.
_MARKED: Final = re.compile(r"PATH|NODE_OPTIONS|(?:LD_|DYLD_|PYTHON).*", re.DOTALL)


class ServerLaunch(Struct, frozen=True, kw_only=True):
    """The start of a server, or the connection to it, before anything is expanded.

    Attributes:
        transport: "stdio" for a program, "http" for Streamable HTTP, "sse" for HTTP+SSE, or "ws".
        command: the absolute path of the program, "" if there is none.
        args: its arguments.
        directory: the absolute path of its working directory.
        env: its variables, those that it inherits by name included, as `${NAME}`.
        env_file: the absolute path of a file with more variables, "" if there is none.
        url: the address, "" for a program.
        headers: the HTTP header fields.
        other: more of the entry that changes what is run or sent, such as a command that makes
            headers.

    Raises:
        ValueError: `command` is missing or not absolute for "stdio", or `url` for the others.
    """

    transport: ServerTransport
    command: str = ""
    args: tuple[str, ...] = ()
    directory: str = ""
    env: dict[str, str] = field(default_factory=dict)
    env_file: str = ""
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    other: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.transport != "stdio":
            if not self.url:
                raise ValueError("a server without a program needs the address `url`")
        elif not _ABSOLUTE.match(self.command):
            # The directory and PATH, which others may write, would decide which file is run.
            raise ValueError(
                f"the command {escape_text(self.command)!r} is not absolute: find it first"
            )

    @property
    def sent_variables(self) -> tuple[str, ...]:
        """The names of variables whose values leave this machine in the address or the headers."""
        sent = (self.url, *self.headers, *self.headers.values())
        return tuple(sorted({first or second for each in sent for first, second in _names(each)}))


def _names(template: str) -> list[tuple[str, str]]:
    return _REFERENCE.findall(template)


def digest_launch(launch: ServerLaunch) -> str:
    """Return the SHA-256 of everything that is approved with a `launch`, as "sha256:" and hex.

    Raises:
        ValueError: a text has half of a surrogate pair.
    """
    return digest_json({"version": _DIGEST_VERSION, **msgspec.structs.asdict(launch)})


class LaunchLine(NamedTuple):
    """One line of the description of a launch. All of it is safe for a terminal.

    `label` is the kind of the line, such as "argument"; `text` is the value, in quotes where spaces
    matter; `mark` says why to look at it twice, "" for no reason.
    """

    label: str
    text: str
    mark: str = ""


def describe_launch(launch: ServerLaunch) -> Iterator[LaunchLine]:
    """Yield the lines that a user has to see before a `launch` is approved."""
    if launch.command:
        yield LaunchLine("command", escape_text(launch.command))
        for argument in launch.args:
            yield LaunchLine("argument", _quote(argument))
        yield LaunchLine("directory", escape_text(launch.directory))
    if launch.url:
        yield LaunchLine("address", escape_text(launch.url))
    yield from _pairs("variable", launch.env)
    if launch.env_file:
        mark = "its variables are not shown, and may change later"
        yield LaunchLine("variables of", escape_text(launch.env_file), mark)
    yield from _pairs("header", launch.headers)
    for name in launch.sent_variables:
        yield LaunchLine("sends", escape_text(name), "its value leaves this machine")
    for name, value in launch.other.items():
        yield LaunchLine(escape_text(name), _quote(value))


def _pairs(label: str, values: Mapping[str, str]) -> Iterator[LaunchLine]:
    for name, value in values.items():
        is_marked = label == "variable" and _MARKED.fullmatch(name.upper())  # Windows ignores case
        mark = "it can make the program run other code" if is_marked else ""
        yield LaunchLine(label, f"{escape_text(name)}={_quote(value)}", mark)


def _quote(value: Any) -> str:
    return escape_text(msgspec.json.encode(value).decode())
