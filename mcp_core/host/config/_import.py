"""Translate the servers of another client's file to the format of `.mcp.json`.

1. Variables get the syntax of that format: `${env:X}` and `$X` become `${X}`. An input becomes a
   variable of its own, because the format has no inputs.
2. A literal value that looks like a secret is copied, or replaced by a variable: the user decides.
3. What cannot be translated is refused, or named in a note if the server works without it.

Sources: as for `read_config`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any, Final, Literal

from mcp_core._secret_patterns import is_secret_name
from mcp_core._text import escape_text
from mcp_core.host._audit import has_secret_form
from mcp_core.host.edit._clients import CLIENT_FORMATS, ServerEntry, entry_members

from ._problems import ConfigProblem, InvalidConfig, member_text, name_text
from ._servers import ConfigFile, ConfigInput, ServerConfig
from ._variables import VariableReference, parse_variable, variable_pattern

__all__ = ["ImportedServer", "LiteralSecret", "import_servers"]

_TARGET: Final = CLIENT_FORMATS["claude-code"]
_TARGET_VARIABLE: Final = variable_pattern("braces")
_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_UNFITTING: Final = re.compile(r"\W+", re.ASCII)
_SCHEME: Final = re.compile(r"(?i:bearer|basic|token) +(?=\S)")
_QUERY_NAME: Final = re.compile(r"[?&]([^=&#]+)=[^&#]")
_SHORTEST_TIMEOUT: Final = 1.0  # seconds; the format ignores a shorter one


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralSecret:
    """A value of an entry that looks like a secret.

    Args:
        member: where it is.
        name: the variable's or header's name.
        variable: an environment variable that can take its place.
        reference: the text that refers to the variable in place of the value.
    """

    member: Literal["env", "headers"]
    name: str
    variable: str
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedServer:
    """A server of another client, in the format of `.mcp.json`. `import_servers` makes them.

    Args:
        name: its name.
        members: its entry, with the secrets as they are. Do not change it.
        secrets: the values that look like secrets.
        notes: what differs from the other client, and what may have to be done.
    """

    name: str
    members: Mapping[str, Any] = field(repr=False)
    secrets: tuple[LiteralSecret, ...] = ()
    notes: tuple[str, ...] = ()

    def replace_secrets(self, secrets: Sequence[LiteralSecret]) -> ImportedServer:
        """Return the server with references to variables in place of secrets.

        Args:
            secrets: some of its `secrets`.
        """
        members = {**self.members}
        for secret in secrets:
            members[secret.member] = {**members[secret.member], secret.name: secret.reference}
        left = tuple(each for each in self.secrets if each not in secrets)
        return replace(self, members=members, secrets=left)


def import_servers(config: ConfigFile, names: Sequence[str]) -> list[ImportedServer]:
    """Return servers of a file in the format of `.mcp.json`.

    Args:
        config: the file.
        names: the names of sound servers in it.

    Raises:
        InvalidConfig: a server has something that the format cannot express. All such problems are
            in it.
        KeyError: there is no such server.
    """
    variables = _VariableNames()
    problems: list[ConfigProblem] = []
    found = [
        _Translation(config.servers[name], config.inputs, variables, problems).run()
        for name in names
    ]
    if problems:
        raise InvalidConfig(problems)
    return found


class _VariableNames:
    """Names for variables: a value has the same name in all servers of an import."""

    def __init__(self) -> None:
        self._values: dict[str, Hashable] = {}

    def take(self, value: Hashable, *wanted: str) -> str:
        """Return the first wanted name that is free, or the last one with a number appended."""
        numbered = (f"{wanted[-1]}_{number}" for number in count(2))
        names = chain(wanted, numbered)
        return next(name for name in names if self._values.setdefault(name, value) == value)


def _make_variable_name(*parts: str) -> str:
    """Return a name for a variable, in capital letters, made from texts."""
    text = _UNFITTING.sub("_", "_".join(parts)).strip("_").upper()
    return text if _VARIABLE_NAME.fullmatch(text) else f"VALUE_{text}".rstrip("_")


class _Translation:
    """The translation of one server."""

    def __init__(
        self,
        server: ServerConfig,
        inputs: Mapping[str, ConfigInput],
        variables: _VariableNames,
        problems: list[ConfigProblem],
    ) -> None:
        self._server = server
        self._inputs = inputs
        self._variables = variables
        self._problems = problems
        self._notes: dict[str, None] = {}
        self._secrets: list[LiteralSecret] = []

    def run(self) -> ImportedServer:
        server = self._server
        entry = self._remote_entry() if server.command is None else self._stdio_entry()
        members = entry_members(_TARGET, entry)
        if server.call_timeout is not None:
            if server.call_timeout < _SHORTEST_TIMEOUT:
                self._note(f"its timeout of {server.call_timeout:g} s is too short, and left out")
            else:
                members["timeout"] = round(server.call_timeout * 1000)
        if server.connect_timeout is not None:
            self._note("the time that it may take to start is left out")
        if server.disabled:
            members["disabled"] = True
        if server.asks_always:
            self._refuse(
                "asks before each call, which this format cannot say: remove"
                " default_tools_approval_mode and approval_mode, or the permission, and deny tools"
                " in their place"
            )
        if server.extra:  # none of them restricts: `read_config` has refused those
            names = ", ".join(name_text(name) for name in server.extra)
            self._note(f"left out, as mcp-trio has no such setting: {names}")
        return ImportedServer(
            name=server.name,
            members=members,
            secrets=tuple(self._secrets),
            notes=tuple(self._notes),
        )

    def _note(self, text: str) -> None:
        self._notes[text] = None

    def _refuse(self, problem: str, *path: str | int) -> None:
        place = self._server.place_of(*path)
        self._problems.append(ConfigProblem(place, problem, self._server.name))

    def _stdio_entry(self) -> ServerEntry:
        server = self._server
        if server.env_file is not None:
            self._refuse("has a file of variables, which this format has not: write them into env")
        args = tuple(self._text(text, "args", n) for n, text in enumerate(server.args))
        if any(map(has_secret_form, args)):
            self._note("its arguments seem to have a secret, which is copied")
        env = {name: self._text(text, "env", name) for name, text in server.env.items()}
        for name, text in env.items():
            if self._is_literal_secret(name, text):
                wanted = [name] if _VARIABLE_NAME.fullmatch(name) else []
                self._add_secret("env", name, text, *wanted, _make_variable_name(server.name, name))
        return ServerEntry(
            name=server.name,
            command=self._text(server.command or "", "command"),
            args=args,
            env=env,
            forwarded=tuple(name for name in server.forwarded if name not in env),
            cwd=None if server.cwd is None else self._text(server.cwd, "cwd"),
            allowed_tools=server.allowed_tools,
            denied_tools=server.denied_tools,
        )

    def _remote_entry(self) -> ServerEntry:
        server = self._server
        url = self._text(server.url or "", "url")
        query_names = (found[1] for found in _QUERY_NAME.finditer(url))
        if has_secret_form(url) or any(map(is_secret_name, query_names)):
            self._note("its address seems to have a secret, which is copied")
        headers = {name: self._text(text, "headers", name) for name, text in server.headers.items()}
        for name, text in headers.items():
            if self._is_literal_secret(name, text):
                self._add_secret("headers", name, text, _make_variable_name(server.name, name))
        headers |= {name: f"${{{each}}}" for name, each in server.header_variables.items()}
        if server.bearer_variable is not None:
            headers["Authorization"] = f"Bearer ${{{server.bearer_variable}}}"
        return ServerEntry(
            name=server.name,
            transport=server.transport,
            url=url,
            headers=headers,
            allowed_tools=server.allowed_tools,
            denied_tools=server.denied_tools,
        )

    def _is_literal_secret(self, name: str, text: str) -> bool:
        if not text or _TARGET_VARIABLE.search(text):
            return False
        return is_secret_name(name) or has_secret_form(text)

    def _add_secret(
        self, member: Literal["env", "headers"], name: str, text: str, *wanted: str
    ) -> None:
        scheme = _SCHEME.match(text) if member == "headers" else None
        prefix = scheme[0] if scheme else ""
        variable = self._variables.take(("literal", text.removeprefix(prefix)), *wanted)
        reference = f"{prefix}${{{variable}}}"
        self._secrets.append(
            LiteralSecret(member=member, name=name, variable=variable, reference=reference)
        )

    def _text(self, text: str, *path: str | int) -> str:
        """Return a text with its variables in the target's syntax."""
        if self._server.variables == "none":
            if _TARGET_VARIABLE.search(text):
                where = member_text(path)
                self._note(f"{where} has a ${{...}}, which is replaced from now on")
            return text

        translated = ""
        starts: list[int] = []  # of the variables in the translated text
        end = 0
        for match in variable_pattern(self._server.variables).finditer(text):
            translated += text[end : match.start()]
            end = match.end()
            reference = parse_variable(match)
            if isinstance(reference, VariableReference):
                starts.append(len(translated))
                translated += self._translate(match[0], reference)
            else:
                self._refuse(reference, *path)
        translated += text[end:]
        found = [match.start() for match in variable_pattern("braces").finditer(translated)]
        if found != starts:
            self._refuse("has a ${ that is no variable, and would become one: remove it", *path)
        return translated

    def _translate(self, text: str, reference: VariableReference) -> str:
        kind, name, default = reference
        if kind == "environment" and _VARIABLE_NAME.fullmatch(name):
            return f"${{{name}}}" if default is None else f"${{{name}:-{default}}}"
        if kind != "input":
            return text
        variable = self._variables.take(("input", name), _make_variable_name(name))
        self._note(f"the input {escape_text(name)} is now the variable {variable}")
        known = self._inputs.get(name)
        default = known.default if known is not None and not known.secret else None
        if not default or "}" in default or "${" in default:
            return f"${{{variable}}}"
        return f"${{{variable}:-{default}}}"
