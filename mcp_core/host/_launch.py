"""The command or address of a server of a project's file: for the user, and as a digest.

1. Everything is as the file has it, with `${NAME}` in place of values. Secrets behind names aren't
   shown, digested or stored.
2. The program, its directory and its file of variables are exceptions: they are absolute paths,
   with variables expanded. If `PATH` or a variable changes, so that another program is found, the
   user is asked again. The text before the expansion is shown too.
3. What a program file contains, and what an address leads to, isn't covered.

Sources of the members in `ServerLaunch.other`: as in `config/_read.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, time
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct, field

from mcp_core._text import escape_text

from ._canonical_json import digest_json, is_double
from ._variables_of_code import can_redirect_code
from .config._servers import ConfigInput, ServerConfig
from .config._variables import find_variables, has_variables
from .edit._clients import ServerTransport

__all__ = [
    "LaunchInput",
    "LaunchLine",
    "ServerLaunch",
    "describe_launch",
    "digest_launch",
    "find_excess",
    "is_same_launch",
    "make_launch",
]

# The digest's version. It changes when the digest covers more, so that users are asked again.
_DIGEST_VERSION: Final = 3
# Limits on what is shown: a user reads no more, and doesn't see the end of a long line.
_MAX_LINES: Final = 200
_MAX_LINE: Final = 4096  # characters
_ABSOLUTE: Final = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")
# ${NAME}, ${NAME:-default}, ${env:NAME}, ${input:NAME} and $NAME. A default may contain references,
# so the pattern doesn't include its end.
_REFERENCE: Final = re.compile(r"\$(?:\{\s*(?:env:)?((?:input:)?[A-Za-z_][\w.-]*)|([A-Za-z_]\w*))")
# Members that change neither what is run nor what is sent: descriptions, what clients do with the
# tools, and timeouts of other programs. Everything else counts, also a member that isn't known:
# a later version may act on it. So `headersHelper` of Claude Code (a command that makes headers),
# `auth` and `oauth` (where a login goes, and for which rights), `sandbox` and `dev` of VS Code,
# `authProviderType` of Gemini CLI (sends a token of Google) and `experimental_environment` of Codex
# (where the program runs) count.
_WITHOUT_EFFECT: Final = frozenset(
    """
    name title description version icon icons gallery
    tools enabled_tools disabled_tools includeTools excludeTools
    alwaysAllow autoApprove trust default_tools_approval_mode supports_parallel_tool_calls
    alwaysLoad required timeout startup_timeout_sec startup_timeout_ms tool_timeout_sec
    """.split()
)
# The labels for texts in `ServerLaunch.templates`.
_TEMPLATE_LABELS: Final[Mapping[str, str]] = {
    "command": "command from",
    "directory": "directory from",
    "env_file": "variables from",
}


class LaunchInput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value that the user enters before a server is started, as `ConfigInput` has it.

    Attributes:
        type: how it is entered, such as `promptString`.
        description: the question to the user.
        secret: True if what the user types isn't shown.
        default: the value that is suggested, or None.
        options: the values to choose from.
    """

    type: str
    description: str = ""
    secret: bool = False
    default: str | None = None
    options: tuple[str, ...] = ()


class ServerLaunch(Struct, frozen=True, kw_only=True):
    """The start of a server, or the connection to it, before anything is expanded.

    Attributes:
        transport: "stdio" for a program, "http" for Streamable HTTP, "sse" for HTTP+SSE, or "ws".
        command: the program's absolute path, "" for a URL.
        args: its arguments.
        directory: the absolute path of its working directory.
        env: its variables. One that it inherits by name has the value `${NAME}`.
        env_file: the absolute path of a file with more variables, "" without such a file.
        url: the address, "" for a program.
        headers: the HTTP header fields.
        templates: the texts that `command`, `directory` and `env_file` come from, if they have
            variables or begin with `~`; by the names of these fields.
        inputs: the inputs that it uses, by their id.
        other: other members of the entry that change what is run or sent, such as a command that
            makes headers.

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
    templates: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, LaunchInput] = field(default_factory=dict)
    other: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.transport != "stdio":
            if not self.url:
                raise ValueError("a server without a program needs the address `url`")
        elif not _ABSOLUTE.match(self.command):
            # The directory and PATH would decide which file is run, and others may write there.
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


def make_launch(
    server: ServerConfig,
    inputs: Mapping[str, ConfigInput] | None = None,
    *,
    program: str = "",
    directory: str = "",
    env_file: str = "",
) -> ServerLaunch:
    """Return the launch of a configured server.

    Variables that a server gets by name, and headers that are made from variables, have `${NAME}`
    as their value. Members that don't apply to the transport are left out.

    Args:
        server: the server, unexpanded.
        inputs: its file's inputs, by their id.
        program: for a stdio server the absolute path of its program, as it was found; "" for
            others.
        directory: for a stdio server the absolute path of its working directory; "" for others.
        env_file: the absolute path of the file with its variables, "" if it has none.

    Raises:
        ValueError: `program` is missing or not absolute for a stdio server.
    """
    other = {
        name: _json_value(value)
        for name, value in server.extra.items()
        if name not in _WITHOUT_EFFECT
    }
    used = _used_inputs(server, inputs or {})
    if server.transport != "stdio":
        headers = dict(server.headers)
        for header, variable in server.header_variables.items():
            headers[header] = f"${{{variable}}}"
        if server.bearer_variable is not None:
            headers["Authorization"] = f"Bearer ${{{server.bearer_variable}}}"
        return ServerLaunch(
            transport=server.transport,
            url=server.url or "",
            headers=headers,
            inputs=used,
            other=other,
        )
    texts = {"command": server.command, "directory": server.cwd, "env_file": server.env_file}
    return ServerLaunch(
        transport="stdio",
        command=program,
        args=server.args,
        directory=directory,
        env={**{name: f"${{{name}}}" for name in server.forwarded}, **server.env},
        env_file=env_file,
        templates={
            name: text
            for name, text in texts.items()
            if text is not None and (text.startswith("~") or has_variables(server, text))
        },
        inputs=used,
        other=other,
    )


def is_same_launch(
    first: ServerConfig,
    second: ServerConfig,
    first_inputs: Mapping[str, ConfigInput] | None = None,
    second_inputs: Mapping[str, ConfigInput] | None = None,
) -> bool:
    """Return True if two servers of different files certainly run, or connect to, the same.

    Programs of different scopes start in different directories, unless `cwd` says where. Relative
    paths count from there, and programs such as `npx` load code from there. So two programs are the
    same only if `cwd` and `env_file` are absolute.

    Args:
        first: one server, unexpanded.
        second: the other one.
        first_inputs: the inputs of the first one's file, by their id.
        second_inputs: the other file's inputs.
    """
    known = _launch_as_written(first, first_inputs)
    return (
        known is not None
        and known == _launch_as_written(second, second_inputs)
        and (first.command, first.variables) == (second.command, second.variables)
    )


def _launch_as_written(
    server: ServerConfig, inputs: Mapping[str, ConfigInput] | None
) -> ServerLaunch | None:
    """Return the launch before its program is found, or None if its file decides about it."""
    if server.transport != "stdio":
        return make_launch(server, inputs)
    directory, env_file = server.cwd or "", server.env_file or ""
    if not _ABSOLUTE.match(directory) or (env_file and not _ABSOLUTE.match(env_file)):
        return None
    return make_launch(server, inputs, program="/", directory=directory, env_file=env_file)


def _used_inputs(server: ServerConfig, inputs: Mapping[str, ConfigInput]) -> dict[str, LaunchInput]:
    names = {use.name for use in find_variables(server, inputs) if use.kind == "input"}
    return {
        _json_value(name): LaunchInput(
            type=_json_value(each.type),
            description=_json_value(each.description),
            secret=each.secret,
            default=_json_value(each.default),
            options=tuple(map(_json_value, each.options)),
        )
        for name, each in inputs.items()
        if name in names
    }


def _json_value(value: Any) -> Any:
    """Make a file's value fit for canonical JSON: TOML has dates and large numbers."""
    if isinstance(value, dict):
        return {_json_value(name): _json_value(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, str):
        # Half of a surrogate pair has no UTF-8.
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if is_double(value) else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    assert isinstance(value, date | time)
    return value.isoformat()


def digest_launch(launch: ServerLaunch) -> str:
    """Return the SHA-256 of everything that is approved with a `launch`, as "sha256:" and hex.

    Raises:
        ValueError: a text has half of a surrogate pair.
    """
    parts = msgspec.structs.asdict(launch)
    parts["inputs"] = {id: msgspec.structs.asdict(each) for id, each in launch.inputs.items()}
    return digest_json({"version": _DIGEST_VERSION, **parts})


def find_excess(launch: ServerLaunch) -> str | None:
    """Return why a `launch` is too large to be shown to a user, as a phrase, or None if it isn't.

    The bounds are 200 lines of 4,096 characters.
    """
    for count, line in enumerate(describe_launch(launch), 1):
        if count > _MAX_LINES:
            return f"it has more than {_MAX_LINES} lines to approve: move some of it to a script"
        if len(line.text) > _MAX_LINE:
            return (
                f"its {line.label} of {len(line.text)} characters is too long to approve: at most"
                f" {_MAX_LINE} are shown"
            )
    return None


class LaunchLine(NamedTuple):
    """One line of a launch's description. All of it is safe for a terminal.

    `label` is the line's kind, such as "argument"; `text` is the value, in quotes where spaces
    matter; `mark` says why to look at it twice, "" for no reason.
    """

    label: str
    text: str
    mark: str = ""


def describe_launch(launch: ServerLaunch) -> Iterator[LaunchLine]:
    """Yield the lines that a user has to see before a `launch` is approved."""
    if launch.command:
        yield LaunchLine("command", escape_text(launch.command))
        yield from _template("command", launch)
        for argument in launch.args:
            yield LaunchLine("argument", _quote(argument))
        yield LaunchLine("directory", escape_text(launch.directory))
        yield from _template("directory", launch)
    if launch.url:
        yield LaunchLine("address", escape_text(launch.url))
    yield from _pairs("variable", launch.env)
    if launch.env_file:
        mark = "its variables are not shown, and may change later"
        yield LaunchLine("variables of", escape_text(launch.env_file), mark)
        yield from _template("env_file", launch)
    yield from _pairs("header", launch.headers)
    for name in launch.sent_variables:
        yield LaunchLine("sends", escape_text(name), "its value leaves this machine")
    for name, each in launch.inputs.items():
        yield LaunchLine("input", f"{_quote(name)}: {_quote(each)}")
    for name, value in launch.other.items():
        # The name comes from the file: as a label it could imitate another line.
        yield LaunchLine("other member", f"{_quote(name)}: {_quote(value)}")


def _template(name: str, launch: ServerLaunch) -> Iterator[LaunchLine]:
    if name in launch.templates:
        yield LaunchLine(_TEMPLATE_LABELS[name], _quote(launch.templates[name]))


def _pairs(label: str, values: Mapping[str, str]) -> Iterator[LaunchLine]:
    for name, value in values.items():
        is_marked = label == "variable" and can_redirect_code(name)
        mark = "it can make the program run other code" if is_marked else ""
        yield LaunchLine(label, f"{escape_text(name)}={_quote(value)}", mark)


def _quote(value: Any) -> str:
    return escape_text(msgspec.json.encode(value).decode())
