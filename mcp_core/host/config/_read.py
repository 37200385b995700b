"""Read the servers of a configuration file, in the formats of `CLIENT_FORMATS`.

1. A file that cannot be parsed is an error. A server that is wrong is a problem of its own: the
   other servers of the file can be used.
2. Nothing is expanded here: what was read is what a user is asked to approve.

Sources: code.claude.com/docs/en/mcp; modelcontextprotocol.io, connect-local-servers;
cursor.com/docs/mcp; vscode-docs `agents/reference/mcp-configuration.md`; codex
`codex-rs/config/src/mcp_types.rs`; gemini-cli `docs/tools/mcp-server.md`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mcp_core.host._variables_of_code import redirects_code
from mcp_core.host.edit._clients import CLIENT_FORMATS, ClientFormat, ServerTransport
from mcp_core.host.edit._json_edit import JsonSyntax

from ._members import MemberReader
from ._problems import ConfigProblem, name_text
from ._restrictions import OWN_TOOL_LISTS, asks_always, check_restrictions, read_tool_list
from ._servers import ConfigFile, ConfigInput, ServerConfig, VariableSyntax
from ._tree import MAX_CONFIG_SIZE, ConfigTree, MemberPath, parse_tree

__all__ = ["find_config_format", "format_to_edit", "read_config"]

_TRANSPORTS: Final[Mapping[str, ServerTransport]] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "sse": "sse",
    "ws": "ws",
}
# The member that holds the servers, in all formats: for a hint where it is another format's.
_SERVER_MEMBERS: Final = tuple(dict.fromkeys(each.servers for each in CLIENT_FORMATS.values()))


class _Dialect(NamedTuple):
    """How one format names a server's members, where formats differ.

    `urls` maps each member that has an address to its transport. The timeouts map each member to
    the number of its units in a second.
    """

    variables: VariableSyntax
    urls: Mapping[str, ServerTransport] = {"url": "http"}
    env_file: str | None = None
    connect_timeouts: Mapping[str, float] = {}
    call_timeouts: Mapping[str, float] = {}
    # Claude Code ignores a timeout below a second.
    shortest_call: float = 0.0


_DIALECTS: Final[Mapping[str, _Dialect]] = {
    "claude-code": _Dialect("braces", call_timeouts={"timeout": 1000.0}, shortest_call=1.0),
    "claude-desktop": _Dialect("none"),
    "cursor": _Dialect("braces", env_file="envFile"),
    "vscode": _Dialect("braces", env_file="envFile"),
    "codex": _Dialect(
        "none",
        connect_timeouts={"startup_timeout_sec": 1.0, "startup_timeout_ms": 1000.0},
        call_timeouts={"tool_timeout_sec": 1.0},
    ),
    "gemini": _Dialect(
        "braces or dollar",
        urls={"httpUrl": "http", "url": "sse"},
        call_timeouts={"timeout": 1000.0},
    ),
}

# The fields of `ServerConfig` that have other names in a file.
_FIELDS: Final[Mapping[str | int, str]] = {
    "allowedTools": "allowed_tools",
    "deniedTools": "denied_tools",
    "disabled_tools": "denied_tools",
    "enabled_tools": "allowed_tools",
    "excludeTools": "denied_tools",
    "includeTools": "allowed_tools",
    "bearer_token_env_var": "bearer_variable",
    "env_vars": "forwarded",
    "env_http_headers": "header_variables",
    "envFile": "env_file",
    "http_headers": "headers",
    "httpUrl": "url",
}

_FORMAT_OF_FILE: Final = (
    (re.compile(r"\.toml$"), "codex"),
    (re.compile(r"(^|[/\\])claude_desktop_config\.json$"), "claude-desktop"),
    (re.compile(r"(^|[/\\])\.cursor[/\\][^/\\]*$"), "cursor"),
    (re.compile(r"(^|[/\\])\.vscode[/\\][^/\\]*$"), "vscode"),
    (re.compile(r"(^|[/\\])settings\.json$"), "gemini"),
    (re.compile(r"(^|[/\\])\.mcp(\.local)?\.json$|(^|[/\\])\.claude\.json$"), "claude-code"),
)
_CLAUDE_FILE: Final = re.compile(r"(^|[/\\])\.claude\.json$")
# For a file whose path names no format: the syntax that at least one program reads.
_ANY_SYNTAX: Final = JsonSyntax(comments=True, trailing_commas=True, byte_order_mark=True)


def find_config_format(file: str) -> str | None:
    """Return the name of the format that a file's path implies, or None if it implies none.

    Args:
        file: a path, with the separators of any system.
    """
    for pattern, name in _FORMAT_OF_FILE:
        if pattern.search(file):
            return name
    return None


def read_config(
    data: bytes | str, *, file: str, format: str | None = None, max_size: int = MAX_CONFIG_SIZE
) -> ConfigFile:
    """Return the servers and inputs of a configuration file, and what is wrong with it.

    Args:
        data: the file's content. An empty file has no servers.
        file: its path, for places and to find the format.
        format: the name of its format in `CLIENT_FORMATS`. Without it the path decides, or else
            the content: JSON with `servers` is VS Code's, other JSON is Claude Code's.
        max_size: the largest size, in bytes; 4 MiB by default. A MiB takes a second or more.

    Raises:
        InvalidConfig: the file is too large, isn't UTF-8, or isn't JSON or TOML as the program
            that owns it reads them.
        ValueError: there is no such format.
    """
    known = format or find_config_format(file)
    if known is not None and known not in CLIENT_FORMATS:
        raise ValueError(f"unknown format {known!r}; one of {', '.join(CLIENT_FORMATS)} is needed")
    syntax = _ANY_SYNTAX if known is None else CLIENT_FORMATS[known].syntax
    tree = parse_tree(data, file=file, syntax=syntax, max_size=max_size)
    value = tree.value
    if known is None:
        is_vscode = isinstance(value, dict) and "servers" in value and "mcpServers" not in value
        known = "vscode" if is_vscode else "claude-code"
    return _FileReader(tree, CLIENT_FORMATS[known]).read(file)


def format_to_edit(config: ConfigFile) -> ClientFormat:
    """Return the format in which the text of a file that was read can be changed.

    Its syntax is the one that `read_config` accepts in a file of that path.

    Args:
        config: the file, as `read_config` returned it.
    """
    client = CLIENT_FORMATS[config.format]
    if find_config_format(config.file) is None and client.syntax is not None:
        return replace(client, syntax=_ANY_SYNTAX)
    return client


class _FileReader:
    def __init__(self, tree: ConfigTree, client: ClientFormat) -> None:
        self._tree = tree
        self._client = client
        self._dialect = _DIALECTS[client.name]
        self._problems: list[ConfigProblem] = []

    def read(self, file: str) -> ConfigFile:
        self._file = file
        root = self._tree.value
        if root is not None and not isinstance(root, dict):
            self._add((), "the file must be an object")
        root = root if isinstance(root, dict) else {}
        member = self._client.servers
        repeated = dict(self._tree.repeated(()))
        for name in (member, "inputs", "mcp"):
            if name in repeated:
                self._problems.append(ConfigProblem(repeated[name], "is there a second time"))
        entries = root.get(member, {})
        if not isinstance(entries, dict) or member in repeated:
            if member not in repeated:
                self._add((member,), "must be an object with the servers by name")
            entries = {}
        if member not in root:
            self._hint_at_other_format(root)
        inputs = self._read_inputs(root.get("inputs")) if self._client.name == "vscode" else {}
        servers, broken = self._read_servers(entries)
        for name in self._find_misplaced(root):
            for server in servers:
                problem = "is for one server: move it into the server's entry"
                place = self._tree.place((name,))
                self._problems.append(ConfigProblem(place, problem, server, restricts=True))
            broken |= dict.fromkeys(servers)
            servers = {}
        for name in self._find_excluded(root, servers):
            servers[name] = replace(servers[name], disabled=True)
        self._problems.sort(key=lambda each: (each.place.line, each.place.column))
        return ConfigFile(
            file=file,
            format=self._client.name,
            servers=MappingProxyType(servers),
            inputs=MappingProxyType(inputs),
            broken=frozenset(broken),
            problems=tuple(self._problems),
            has_servers=member in root,
        )

    def _add(self, path: MemberPath, problem: str, server: str | None = None) -> None:
        self._problems.append(ConfigProblem(self._tree.place(path), problem, server))

    def _find_misplaced(self, root: dict[str, Any]) -> list[str]:
        """Return the lists of tools that stand beside the servers.

        Claude Code and Gemini CLI have other things of such names in their own files.
        """
        if self._client.name == "gemini" or _CLAUDE_FILE.search(self._file):
            return []
        lists = self._client.tool_lists or OWN_TOOL_LISTS
        return [name for name in lists if root.get(name) is not None]

    def _hint_at_other_format(self, root: dict[str, Any]) -> None:
        for member in _SERVER_MEMBERS:
            if isinstance(root.get(member), dict):
                title = self._client.title
                self._add((member,), f"{title} reads servers from {self._client.servers}")

    def _read_servers(
        self, entries: dict[str, Any]
    ) -> tuple[dict[str, ServerConfig], dict[str, None]]:
        member = self._client.servers
        servers: dict[str, ServerConfig] = {}
        broken: dict[str, None] = {}
        for name, place in self._tree.repeated((member,)):
            problem = "is there a second time: rename one of the two servers"
            self._problems.append(ConfigProblem(place, problem, name))
            broken[name] = None
        for name, entry in entries.items():
            path = (member, name)
            before = len(self._problems)
            if not isinstance(entry, dict):
                self._add(path, "must be an object", name)
            elif not name or re.search("[\ud800-\udfff]", name):
                self._add(path, "the name of a server must be a text that is not empty", name)
            else:
                reader = MemberReader(self._tree, path, entry, self._problems, name)
                server = self._read_server(reader, name, path)
                if len(self._problems) == before and server is not None and name not in broken:
                    servers[name] = server
            if len(self._problems) > before:
                broken[name] = None
        return servers, broken

    def _read_server(
        self, reader: MemberReader, name: str, path: MemberPath
    ) -> ServerConfig | None:
        dialect = self._dialect
        command = reader.text("command")
        addresses = {
            member: url for member in dialect.urls if (url := reader.text(member)) is not None
        }
        transport = self._read_transport(reader, command, addresses)
        is_codex = self._client.name == "codex"
        codex = self._read_codex(reader) if is_codex else {}
        server_disabled = reader.flag("disabled")
        server_enabled = reader.flag("enabled")
        call_timeout = _read_timeouts(reader, dialect.call_timeouts)
        if call_timeout is not None and call_timeout < dialect.shortest_call:
            call_timeout = None
        env = reader.text_map("env")
        for variable in filter(redirects_code, env):
            reader.keep_place("env", variable)  # a policy names it
        for member in ("cwd", dialect.env_file or ""):
            if member in reader.rest:
                reader.keep_place(member)
        allowed, denied = tool_lists = self._client.tool_lists or OWN_TOOL_LISTS
        fields: dict[str, Any] = {
            "args": reader.texts("args"),
            "env": env,
            "env_file": reader.text(dialect.env_file) if dialect.env_file else None,
            "cwd": reader.text("cwd"),
            "headers": self._read_headers(reader),
            "connect_timeout": _read_timeouts(reader, dialect.connect_timeouts),
            "call_timeout": call_timeout,
            "disabled": bool(server_disabled) or server_enabled is False,
            "allowed_tools": read_tool_list(reader, allowed, name),
            "denied_tools": read_tool_list(reader, denied, name) or (),
            "asks_always": is_codex and asks_always(reader.rest),
            **codex,
            "extra": reader.others(),
            "places": MappingProxyType(
                {
                    (_FIELDS.get(member, member), *inner): place
                    for (member, *inner), place in reader.places.items()
                }
            ),
        }
        check_restrictions(reader, tool_lists, asks=is_codex)
        if transport is None:
            return None
        return ServerConfig(
            name=name,
            transport=transport,
            place=self._tree.place(path),
            variables=dialect.variables,
            command=command,
            url=next(iter(addresses.values()), None),
            **fields,
        )

    def _read_transport(
        self, reader: MemberReader, command: str | None, addresses: Mapping[str, str]
    ) -> ServerTransport | None:
        """Return a server's transport, or None after adding why it has none."""
        urls = self._dialect.urls
        kind = reader.text("type") if self._client.syntax is not None else None
        members = [*(["command"] if command is not None else []), *addresses]
        if len(members) > 1:
            reader.add(f"has both {members[0]} and {members[1]}: remove one", members[1])
            return None
        if kind is not None and kind not in _TRANSPORTS:
            reader.add(f"is not one of {', '.join(_TRANSPORTS)}", "type")
            return None
        wanted = None if kind is None else _TRANSPORTS[kind]
        if not members:
            remote = [] if wanted == "stdio" else [*urls]
            needed = [*(["command"] if wanted in (None, "stdio") else []), *remote]
            if reader.wrong.isdisjoint(("command", *urls)):
                reader.add(f"needs {' or '.join(needed)}")
            return None
        if members == ["command"]:
            if wanted in (None, "stdio"):
                return "stdio"
            reader.add(f"is {kind}, which needs {' or '.join(urls)} in place of command", "type")
            return None
        if wanted == "stdio":
            reader.add(f"is stdio, which needs command in place of {members[0]}", "type")
            return None
        return wanted or urls[members[0]]

    def _read_headers(self, reader: MemberReader) -> Mapping[str, str]:
        member = self._client.headers
        headers = reader.text_map(member)
        seen: set[str] = set()
        for name in headers:
            if name.lower() in seen:  # RFC 9110: names of headers are case-insensitive
                reader.add("is there a second time in other letters", member, name)
            seen.add(name.lower())
        return headers

    def _read_codex(self, reader: MemberReader) -> dict[str, Any]:
        """Read the members of Codex that name environment variables."""
        header_variables = reader.text_map("env_http_headers")
        for name in header_variables:
            reader.keep_place("env_http_headers", name)
        bearer_variable = reader.text("bearer_token_env_var")
        if bearer_variable is not None:
            reader.keep_place("bearer_token_env_var")
        return {
            "forwarded": self._read_forwarded(reader),
            "header_variables": header_variables,
            "bearer_variable": bearer_variable,
        }

    def _read_forwarded(self, reader: MemberReader) -> tuple[str, ...]:
        """Read `env_vars`: names, or tables with a name and the source `local`."""
        values = reader.rest.get("env_vars")
        reader.keep_place("env_vars")
        if not isinstance(values, list):
            return reader.texts("env_vars")
        del reader.rest["env_vars"]
        names = []
        for n, value in enumerate(values):
            name = value.get("name") if isinstance(value, dict) else value
            if not isinstance(name, str) or not name or "\x00" in name:
                reader.add("must be the name of a variable", "env_vars", n)
            elif isinstance(value, dict) and value.get("source", "local") != "local":
                reader.add("has a source other than local, which only Codex has", "env_vars", n)
            else:
                names.append(name)
        return tuple(names)

    def _read_inputs(self, values: Any) -> dict[str, ConfigInput]:
        inputs: dict[str, ConfigInput] = {}
        if values is None:
            return inputs
        if not isinstance(values, list):
            self._add(("inputs",), "must be an array")
            return inputs
        for n, value in enumerate(values):
            path = ("inputs", n)
            if not isinstance(value, dict):
                self._add(path, "must be an object")
                continue
            before = len(self._problems)
            reader = MemberReader(self._tree, path, value, self._problems)
            id, type = reader.text("id"), reader.text("type")
            default = reader.rest.get("default")
            found = ConfigInput(
                id=id or "",
                type=type or "promptString",
                place=self._tree.place(path),
                description=reader.text("description") or "",
                secret=bool(reader.flag("password")),
                default=default if isinstance(default, str) else None,
                options=_read_options(reader),
            )
            if id is None and len(self._problems) == before:
                reader.add("needs an id")
            elif id in inputs:
                reader.add(f"the id {name_text(id)} is there a second time", "id")
            if len(self._problems) == before:
                inputs[found.id] = found
        return inputs

    def _find_excluded(self, root: dict[str, Any], servers: dict[str, ServerConfig]) -> list[str]:
        """Return the servers that Gemini CLI turns off by lists beside the servers."""
        if self._client.name != "gemini":
            return []
        before = len(self._problems)
        lists = root.get("mcp")
        if lists is not None and not isinstance(lists, dict):
            self._add(("mcp",), "must be an object")
        excluded: set[str] = set()
        allowed: set[str] | None = None
        for path, members, (only, without) in (
            (("mcp",), lists, ("allowed", "excluded")),
            ((), root, ("allowMCPServers", "excludeMCPServers")),  # up to version 0.3
        ):
            if isinstance(members, dict):
                given = {name: members[name] for name in (only, without) if name in members}
                reader = MemberReader(self._tree, path, given, self._problems)
                excluded.update(name.strip().lower() for name in reader.texts(without))
                if given.get(only) is not None:
                    names = set(reader.texts(only))
                    allowed = names if allowed is None else allowed & names
        if len(self._problems) > before:
            return list(servers)  # a list that cannot be read must not turn a server on
        return [
            name
            for name in servers
            if name.strip().lower() in excluded or (allowed is not None and name not in allowed)
        ]


def _read_timeouts(reader: MemberReader, units: Mapping[str, float]) -> float | None:
    """Read all members that hold a timeout, and return the first one in seconds."""
    found = [
        number / unit
        for member, unit in units.items()
        if (number := reader.positive(member)) is not None
    ]
    return found[0] if found else None


def _read_options(reader: MemberReader) -> tuple[str, ...]:
    """Read the values to choose from: texts, or objects with a label and a value."""
    values = reader.rest.get("options")
    if isinstance(values, list):
        reader.rest["options"] = [
            value.get("value") if isinstance(value, dict) else value for value in values
        ]
    return reader.texts("options")
