"""Expand the variables of a configured server.

1. A text is expanded once: what a variable stands for isn't expanded again. So there are no
   cycles, and an environment value cannot name further variables.
2. A variable that isn't set and has no default is a problem. Claude Code would send the text
   `${NAME}` to the server instead, and Gemini CLI an empty one.
3. No value appears in a problem or a `repr`.

Sources: code.claude.com/docs/en/mcp, "Environment variable expansion"; VS Code, "Variables
reference"; cursor.com/docs/mcp, "Config interpolation".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from mcp_core._launch_secrets import is_known_variable
from mcp_core._secret_patterns import is_secret_name
from mcp_core._text import escape_text, shorten_text
from mcp_core.urls import Url, http_url, url_transport

from ._problems import ConfigPlace, ConfigProblem, InvalidConfig
from ._servers import ConfigInput, ServerConfig, VariableSyntax, no_members

__all__ = [
    "ConfigVariables",
    "ExpandedServer",
    "VariableKind",
    "VariableReference",
    "VariableUse",
    "expand_server",
    "find_variables",
    "has_variables",
    "parse_variable",
    "variable_pattern",
]

# What a variable stands for: an environment variable, a user's answer, or a fact such as the
# project's directory.
VariableKind: TypeAlias = Literal["environment", "input", "predefined"]

_NOTHING: Final = re.compile(r"(?!)")
_BRACES: Final = re.compile(r"\$\{(?P<braces>[^}]*)\}")
_BRACES_OR_DOLLAR: Final = re.compile(
    r"\$(?:\{(?P<braces>[^}]*)\}|(?P<dollar>[A-Za-z_]\w*))", re.ASCII
)
_ENVIRONMENT: Final = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?::-(?P<default>.*))?", re.ASCII | re.DOTALL
)
_PREDEFINED: Final = (
    "workspaceFolder",
    "workspaceFolderBasename",
    "userHome",
    "pathSeparator",
    "/",
)
_PREFIXES: Final[Mapping[str, VariableKind]] = {"env:": "environment", "input:": "input"}
# The parts that are sent to another machine.
_SENT: Final = frozenset({"url", "headers", "header_variables", "bearer_variable"})
_MAX_NAME: Final = 100  # characters of a variable's name in a problem
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110: token
# RFC 9110 5.5: line ends in a value would begin another header.
_FORBIDDEN_IN_HEADER: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigVariables:
    """The values that variables of a configuration stand for.

    Args:
        environ: the environment.
        inputs: the user's answers, by the input's id.
        workspace_folder: the project's directory, or None.
        home: the user's home directory; None if it isn't known.
        path_separator: the separator of paths on this system.
    """

    environ: Mapping[str, str] = field(default_factory=no_members, repr=False)
    inputs: Mapping[str, str] = field(default_factory=no_members, repr=False)
    workspace_folder: str | None = None
    home: str | None = None
    path_separator: str = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableUse:
    """A variable in a text of a configured server.

    Args:
        kind: what it stands for.
        name: its name, or the input's id.
        place: where the text stands.
        has_default: whether the text has a default for it.
        leaves_machine: whether its value is sent to another machine: it is in the address or a
            header of a remote server.
        secret: whether it is an input that must not be shown.
    """

    kind: VariableKind
    name: str
    place: ConfigPlace
    has_default: bool = False
    leaves_machine: bool = False
    secret: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedServer:
    """A configured server whose variables have their values: what is started or connected to.

    Members that don't apply to the transport are empty.

    Args:
        config: the server as the file has it.
        command: the program of a stdio server, else None.
        args: its arguments.
        env: its variables, those that it gets from our environment included.
        env_file: a file with further variables, or None.
        cwd: its directory; None for ours.
        url: the address of a remote server, else None.
        headers: headers of each HTTP request.
        secrets: values that must not be shown: secret inputs; variables in the address and the
            headers; other variables, unless they are common words, paths and the like; and values
            of variables, headers and options whose names suggest a secret.
    """

    config: ServerConfig
    command: str | None = field(default=None, repr=False)
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=no_members, repr=False)
    env_file: str | None = field(default=None, repr=False)
    cwd: str | None = field(default=None, repr=False)
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=no_members, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


class VariableReference(NamedTuple):
    """A variable in a text: what it stands for, its name, and the default that the text has."""

    kind: VariableKind
    name: str
    default: str | None = None


def find_variables(
    server: ServerConfig, inputs: Mapping[str, ConfigInput] | None = None
) -> tuple[VariableUse, ...]:
    """Return the variables of a server that `expand_server` would expand, in order.

    Args:
        server: the server.
        inputs: its file's inputs, which say what is secret.
    """
    return tuple(_find_uses(server, inputs or {}))


def has_variables(server: ServerConfig, text: str) -> bool:
    """Return True if a `text` of a server has variables, in the way that its file writes them."""
    return variable_pattern(server.variables).search(text) is not None


def _find_uses(server: ServerConfig, inputs: Mapping[str, ConfigInput]) -> Iterator[VariableUse]:
    is_remote = server.transport != "stdio"
    for path, text in _texts(server):
        for match in variable_pattern(server.variables).finditer(text):
            reference = parse_variable(match)
            if isinstance(reference, VariableReference):
                known = inputs.get(reference.name) if reference.kind == "input" else None
                yield VariableUse(
                    kind=reference.kind,
                    name=reference.name,
                    place=server.place_of(*path),
                    has_default=reference.default is not None,
                    leaves_machine=is_remote,
                    secret=known is not None and known.secret,
                )
    for path, name in _named_variables(server):
        place = server.place_of(*path)
        yield VariableUse(kind="environment", name=name, place=place, leaves_machine=True)


def _texts(server: ServerConfig) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the texts that apply to the transport, with field and index or name."""
    if server.transport == "stdio":
        single = {"command": server.command, "env_file": server.env_file, "cwd": server.cwd}
        yield from (((name,), text) for name, text in single.items() if text is not None)
        yield from ((("args", n), text) for n, text in enumerate(server.args))
        yield from ((("env", name), text) for name, text in server.env.items())
        return
    yield ("url",), server.url or ""
    yield from ((("headers", name), text) for name, text in server.headers.items())


def _named_variables(server: ServerConfig) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the variables that Codex names outside of texts; only headers are made from them."""
    if server.transport != "stdio":
        for header, name in server.header_variables.items():
            yield ("header_variables", header), name
        if server.bearer_variable is not None:
            yield ("bearer_variable",), server.bearer_variable


def variable_pattern(syntax: VariableSyntax) -> re.Pattern[str]:
    """Return the pattern that finds variables in a text. `parse_variable` reads its matches."""
    if syntax == "none":
        return _NOTHING
    return _BRACES if syntax == "braces" else _BRACES_OR_DOLLAR


def parse_variable(match: re.Match[str]) -> VariableReference | str:
    """Return what a match refers to, or why it refers to nothing."""
    groups = match.groupdict()
    if groups.get("dollar"):
        return VariableReference("environment", groups["dollar"])
    body = groups["braces"]
    if "${" in body:
        return "a variable inside another one is not expanded: write the default as plain text"
    for prefix, kind in _PREFIXES.items():
        if body.startswith(prefix) and len(body) > len(prefix):
            return VariableReference(kind, body.removeprefix(prefix))
    if body in _PREDEFINED:
        return VariableReference("predefined", body)
    found = _ENVIRONMENT.fullmatch(body)
    if found is None:
        shown = escape_text(shorten_text(body, _MAX_NAME))
        return f"${{{shown}}} is not a variable of this format"
    return VariableReference("environment", found["name"], found["default"])


def expand_server(
    server: ServerConfig,
    variables: ConfigVariables,
    inputs: Mapping[str, ConfigInput] | None = None,
) -> ExpandedServer:
    """Return a server with its variables expanded. No policy is asked about it.

    Args:
        server: the server.
        variables: the values.
        inputs: its file's inputs. An input without an answer is a problem.

    Raises:
        InvalidConfig: a variable isn't set and has no default, or a text cannot be used with the
            values that it got, such as an address that isn't a URL. All problems are in it.
    """
    return _Expansion(server, variables, inputs or {}).run()


class _Expansion:
    """The expansion of one server."""

    def __init__(
        self,
        server: ServerConfig,
        variables: ConfigVariables,
        inputs: Mapping[str, ConfigInput],
    ) -> None:
        self._server = server
        self._variables = variables
        self._inputs = inputs
        self._problems: list[ConfigProblem] = []
        self._secrets: set[str] = set()
        self._lookups: Mapping[VariableKind, Callable[[str], str | None]] = {
            "environment": variables.environ.get,
            "input": variables.inputs.get,
            "predefined": _predefined(variables).get,
        }

    def run(self) -> ExpandedServer:
        server, environ = self._server, self._variables.environ
        texts = {path: self._expand(path, text) for path, text in _texts(server)}
        headers = {str(path[1]): text for path, text in texts.items() if path[0] == "headers"}
        for path, name in _named_variables(server):
            value = self._look_up(path, VariableReference("environment", name))
            if path[0] == "bearer_variable":
                headers["Authorization"] = f"Bearer {value}"
            else:
                headers[path[1]] = value
        env = {name: environ[name] for name in server.forwarded if name in environ}
        env |= {str(path[1]): text for path, text in texts.items() if path[0] == "env"}
        if not self._problems:
            self._check(texts, env, headers)
        if self._problems:
            raise InvalidConfig(self._problems)
        if server.transport == "stdio":
            self._secrets.update(value for name, value in env.items() if is_secret_name(name))
        for name, value in headers.items():
            if is_secret_name(name):
                # An error may have a token without the "Bearer" before it.
                self._secrets.update((value, value.partition(" ")[2]))
        return ExpandedServer(
            config=server,
            command=texts.get(("command",)),
            args=tuple(texts["args", n] for n in range(len(server.args)) if ("args", n) in texts),
            env=MappingProxyType(env if server.transport == "stdio" else {}),
            env_file=texts.get(("env_file",)),
            cwd=texts.get(("cwd",)),
            url=texts.get(("url",)),
            headers=MappingProxyType(headers),
            secrets=frozenset(self._secrets - {""}),
        )

    def _add(self, path: tuple[str | int, ...], problem: str) -> None:
        place = self._server.place_of(*path)
        self._problems.append(ConfigProblem(place, problem, self._server.name))

    def _expand(self, path: tuple[str | int, ...], text: str) -> str:
        def value_of(match: re.Match[str]) -> str:
            reference = parse_variable(match)
            if isinstance(reference, str):
                self._add(path, reference)
                return ""
            return self._look_up(path, reference)

        return variable_pattern(self._server.variables).sub(value_of, text)

    def _look_up(self, path: tuple[str | int, ...], reference: VariableReference) -> str:
        kind, name, default = reference
        value = self._lookups[kind](name)
        if value is None:
            value = default  # the file has it, so it isn't a secret
        elif kind != "predefined" and (path[0] in _SENT or is_known_variable(name, value)):
            self._secrets.add(value)  # also in arguments, such as --as=${API_TOKEN}
        if value is None:
            shown = escape_text(shorten_text(name, _MAX_NAME))
            if kind == "environment":
                self._add(path, f"the variable {shown} is not set, and has no default")
            elif kind == "predefined":
                self._add(path, f"${{{shown}}} is not known here")
            elif name in self._inputs:
                self._add(path, f"the input {shown} has no value yet")
            else:
                self._add(path, f"the file has no input with the id {shown}")
            return ""
        if kind == "input" and name in self._inputs and self._inputs[name].secret:
            self._secrets.add(value)
        return value

    def _check(
        self,
        texts: Mapping[tuple[str | int, ...], str],
        env: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> None:
        """Add what is wrong with the texts now that they are complete."""
        for path, text in texts.items():
            # Halves of surrogate pairs stay in commands: Python decodes bytes of the environment
            # that aren't UTF-8 to them.
            if "\x00" in text and path[0] != "headers":
                self._add(path, "has a NUL character")
            elif not text and path[0] in ("command", "cwd", "env_file"):
                self._add(path, "is empty with the values of its variables")
        for name in env:
            if "=" in name:
                self._add(("env", name), "has a name that no variable can have")
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name):
                self._add(("headers", name), "has a name that no header can have")
            elif _FORBIDDEN_IN_HEADER.search(value):
                self._add(("headers", name), "has a control character, such as a line end")
        url = texts.get(("url",))
        if url is not None:
            self._check_url(url)

    def _check_url(self, url: str) -> None:
        is_websocket = self._server.transport == "ws"
        schemes = "ws or wss" if is_websocket else "http or https"
        row = url_transport(url)
        try:
            if is_websocket != (row is not None and row.is_websocket):
                raise ValueError
            Url.parse(http_url(url))
        except ValueError:  # its text may have a secret
            problem = f"is not a URL of {schemes} with a host, and without a user and password"
            self._add(("url",), problem)


def _predefined(variables: ConfigVariables) -> dict[str, str | None]:
    folder, separator = variables.workspace_folder, variables.path_separator
    return {
        "workspaceFolder": folder,
        "workspaceFolderBasename": (
            None if folder is None else folder.rstrip(separator).rpartition(separator)[2]
        ),
        "userHome": variables.home,
        "pathSeparator": separator,
        "/": separator,
    }
