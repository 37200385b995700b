"""Read the servers of a configuration file, in the formats of `CLIENT_FORMATS`.

1. A file that cannot be parsed is an error. A server that is wrong is a problem of its own: the
   file's other servers can be used.
2. Nothing is expanded here: what was read is what a user is asked to approve.
3. People copy entries from one program's file to another's. So the spellings of all programs are
   understood in every file, as long as they have one meaning. Where servers are expected and none
   are found, and where a file has two programs' servers, that is a problem: never silence.

Sources: code.claude.com/docs/en/mcp; modelcontextprotocol.io, connect-local-servers;
cursor.com/docs/mcp; vscode-docs `agents/reference/mcp-configuration.md`; codex
`codex-rs/config/src/mcp_types.rs`; gemini-cli `docs/tools/mcp-server.md`; cline
`src/services/mcp/schemas.ts`; and the pages beside the formats that are only read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mcp_core._inherited_variables import INHERITED_VARIABLES, WINDOWS_VARIABLES
from mcp_core.host._errors import ConfigFileError
from mcp_core.host._variables_of_code import redirects_code
from mcp_core.host.edit._clients import CLIENT_FORMATS, ClientFormat, ServerTransport
from mcp_core.host.edit._json_edit import JsonSyntax

from ._beside import Restriction, find_other_projects, find_restrictions_beside
from ._members import MemberReader
from ._opencode import find_restrictions, translate_entry
from ._problems import ConfigProblem, kind_text, member_text, name_text
from ._restrictions import OWN_TOOL_LISTS, asks_always, check_restrictions, read_tool_list
from ._servers import ConfigFile, ConfigInput, ServerConfig, VariableSyntax
from ._shapes import (
    SETTINGS_FILE,
    SHAPES,
    TARGETS,
    find_config_format,
    find_shape,
    is_bare,
    is_open,
    is_own_name,
    looks_like_servers,
    member_at,
)
from ._tree import MAX_CONFIG_SIZE, ConfigTree, MemberPath, ValueTree, is_yaml, parse_tree

__all__ = ["find_config_format", "format_to_edit", "read_config", "read_entry"]

# The spellings of `type`, in small letters and without hyphens and underscores.
_TRANSPORTS: Final[Mapping[str, ServerTransport]] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamablehttp": "http",
    "remote": "http",
    "sse": "sse",
    "ws": "ws",
    "websocket": "ws",
}
# The members that name the transport, in any program's file.
_KIND_MEMBERS: Final = ("type", "transport", "transportType")
# The members that have an address, in any program's file.
_URLS: Final[Mapping[str, ServerTransport]] = {
    "httpUrl": "http",
    "url": "http",
    "serverUrl": "http",
}
# Members beside the servers that may be in a file of any program without servers.
_BESIDE: Final = frozenset({"$schema", "inputs", "allowedMcpServers", "deniedMcpServers"})
# What is often written in place of another member.
_MISTAKEN: Final = {"cmd": "command", "uri": "url", "endpoint": "url", "baseUrl": "url"}
# The members of an entry that a program gives, and what is often written in place of them.
_ENTRY_MEMBERS: Final = (
    *("command", "args", "env", "cwd", "url", "headers", "type", "timeout"),
    *("disabled", "enabled", *OWN_TOOL_LISTS),
)
_MISTAKEN_IN_ENTRY: Final = {
    "arguments": "args",
    "argv": "args",
    "dir": "cwd",
    "directory": "cwd",
    "environ": "env",
    "variables": "env",
    "workdir": "cwd",
    "workingdirectory": "cwd",
}
# Those that entries of known programs have, and that say nothing about what runs: they describe, or
# are about the program's questions, login or patience.
_HARMLESS_IN_ENTRY: Final = frozenset(
    """
    alwaysAllow autoApprove connectionTimeout description dev gallery icon icons initTimeout
    name oauth startup_timeout_ms startup_timeout_sec title tool_timeout_sec trust version
    """.split()
)
_MAX_NAMED: Final = 5  # members that a problem names
_MAX_COMPARED: Final = 50  # characters of a name that is compared with others
_INHERITED: Final = frozenset((*INHERITED_VARIABLES, *WINDOWS_VARIABLES))
_GEMINI_CURE: Final = "name servers in `mcp.excluded`, and single tools here"


class _Dialect(NamedTuple):
    """How one format names a server's members, where formats differ.

    `urls` maps each member that has an address to its transport; `_URLS` has the other members'
    transports. The timeouts map each member to the number of its units in a second.
    """

    variables: VariableSyntax
    command: str = "command"
    env: tuple[str, ...] = ("env", "environment")
    urls: Mapping[str, ServerTransport] = {"url": "http"}
    env_file: str | None = None
    connect_timeouts: Mapping[str, float] = {}
    call_timeouts: Mapping[str, float] = {}


_DIALECTS: Final[Mapping[str, _Dialect]] = {
    "claude-code": _Dialect("braces", call_timeouts={"timeout": 1000.0}),
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
    "copilot-cli": _Dialect("braces", call_timeouts={"timeout": 1000.0}),
    "windsurf": _Dialect("braces", urls={"serverUrl": "http"}),
    # Without a type, an address is one of HTTP+SSE.
    "cline": _Dialect("braces", urls={"url": "sse"}, call_timeouts={"timeout": 1.0}),
    "lm-studio": _Dialect("braces"),
    "zed": _Dialect("none", call_timeouts={"timeout": 1.0}),
    "opencode": _Dialect("braces"),  # after `translate_entry`
    "vscode-settings": _Dialect("braces", env_file="envFile"),
    "goose": _Dialect(
        "braces",
        command="cmd",
        env=("envs",),
        urls={"uri": "http"},
        call_timeouts={"timeout": 1.0},
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
    "available_tools": "allowed_tools",
    "cmd": "command",
    "disabledTools": "denied_tools",
    "env_keys": "forwarded",
    "env_vars": "forwarded",
    "environment": "env",
    "envs": "env",
    "env_http_headers": "header_variables",
    "envFile": "env_file",
    "http_headers": "headers",
    "httpUrl": "url",
    "serverUrl": "url",
    "tools": "allowed_tools",
    "uri": "url",
}

_CLAUDE_FILE: Final = re.compile(r"(^|[/\\])\.claude\.json$")
# For a file whose path names no format: the syntax that at least one program reads.
_ANY_SYNTAX: Final = JsonSyntax(comments=True, trailing_commas=True, byte_order_mark=True)


def read_config(
    data: bytes | str, *, file: str, format: str | None = None, max_size: int = MAX_CONFIG_SIZE
) -> ConfigFile:
    """Return the servers and inputs of a configuration file, and what is wrong with it.

    Args:
        data: the file's content. An empty file has no servers.
        file: its path, for places and to find the format.
        format: the name of its format in `CLIENT_FORMATS`. Without it the path decides, or else
            the content, such as `servers` for VS Code and `context_servers` for Zed. JSON that
            shows no format is Claude Code's.
        max_size: the largest size, in bytes; 4 MiB by default. A MiB takes a second or more.

    Raises:
        InvalidConfig: the file is too large, isn't UTF-8, or isn't JSON, YAML or TOML as the
            program that owns it reads them. Or it is YAML, and PyYAML isn't installed.
        ValueError: there is no such format.
    """
    known = format or find_config_format(file)
    if known is not None and known not in CLIENT_FORMATS:
        raise ValueError(f"unknown format {known!r}; one of {', '.join(CLIENT_FORMATS)} is needed")
    is_shown = format is None and is_open(file)  # by the content
    syntax = _ANY_SYNTAX if known is None or is_shown else CLIENT_FORMATS[known].syntax
    tree = parse_tree(data, file=file, syntax=syntax, max_size=max_size)
    shape = find_shape(tree.value) if isinstance(tree.value, dict) else None
    if shape is not None and (known is None or (is_shown and shape != "claude-code")):
        known = shape
    return _FileReader(tree, known or "claude-code", file).read()


def read_entry(name: str, entry: Mapping[str, Any]) -> ServerConfig:
    """Return the server of an entry that a program gives, with the members of `.mcp.json`.

    Args:
        name: the server's name.
        entry: the entry. Its texts may be paths, and its arrays tuples.

    Raises:
        ValueError: the entry is wrong, or has a member that is unknown here and in the files of
            known programs. The text has a line for each problem, and no values.
    """
    entries = {name: _plain_value(entry)}
    reader = _FileReader(ValueTree(entries), "claude-code", "")
    if is_own_name((name,)) and looks_like_servers(entries[name]):
        raise ValueError(f"{name_text(name)}: give the mapping of servers that is inside")
    config = reader.read_entries(entries)
    if config.problems:
        raise ValueError("\n".join(str(problem) for problem in config.problems))
    server = config.servers[name]
    unknown = [member for member in server.extra if not _is_harmless(member)]
    if unknown:
        raise ValueError(
            "\n".join(
                f"{member_text((name, member))}: is not a member of an entry: {_cure_of(member)}"
                for member in unknown[:_MAX_NAMED]
            )
        )
    return server


def _is_harmless(member: str) -> bool:
    return member in _HARMLESS_IN_ENTRY or member.startswith(("_", "$"))  # comments and schemas


def _cure_of(member: str) -> str:
    """Return what to write in place of an unknown member."""
    import difflib  # for errors only

    plain = re.sub("[-_]", "", member[:_MAX_COMPARED].lower())
    cure = {**_MISTAKEN, **_MISTAKEN_IN_ENTRY}.get(plain)
    if cure is None:
        known = {"environment": "env", **{each.lower(): each for each in _ENTRY_MEMBERS}}
        near = difflib.get_close_matches(plain, known, 1)
        cure = known[near[0]] if near else None
    if cure is not None:
        return f"write {cure} in place of it"
    return f"remove it; there are {', '.join(_ENTRY_MEMBERS)}"


def _plain_value(value: Any) -> Any:
    """Return a program's value with the types that a file would have."""
    if isinstance(value, Mapping):
        return {str(name): _plain_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_value(each) for each in value]
    # A path, without `os`.
    return value.__fspath__() if hasattr(value, "__fspath__") else value


def format_to_edit(config: ConfigFile) -> ClientFormat:
    """Return the format in which the text of a file that was read can be changed.

    Its syntax is the one that `read_config` accepts in a file of that path.

    Args:
        config: the file, as `read_config` returned it.

    Raises:
        ConfigFileError: it has the name of a YAML file, which is only read.
    """
    if is_yaml(config.file):
        raise ConfigFileError(1, "a YAML file is read, and not changed: change it by hand")
    client = replace(CLIENT_FORMATS[config.format], servers=config.servers_path)
    if config.servers_path == ("mcp", "servers") and config.format == "opencode":
        client = replace(client, disabling="disabled")  # version 2 has no `enabled`
    if is_open(config.file) and client.syntax is not None:
        return replace(client, syntax=_ANY_SYNTAX)
    return client


class _FileReader:
    def __init__(self, tree: ConfigTree, format: str, file: str) -> None:
        self._tree = tree
        self._file = file
        self._problems: list[ConfigProblem] = []
        self._ignored: list[ConfigProblem] = []  # those that keep no server from being used
        root = tree.value
        self._root: dict[str, Any] = root if isinstance(root, dict) else {}
        self._client = CLIENT_FORMATS[format]
        self._dialect = _DIALECTS[format]
        self._path = self._client.servers
        inner = member_at(self._root, ("mcp", "servers"))
        if format == "opencode" and isinstance(inner, dict) and TARGETS.isdisjoint(inner):
            self._path = ("mcp", "servers")  # version 2
        elif self._path[0] not in self._root and is_bare(self._root):
            # Another setting of a program may have a command or an address.
            self._path = self._path if SETTINGS_FILE.search(file) else ()

    def read(self) -> ConfigFile:
        root, path = self._root, self._path
        if self._tree.value is not None and not isinstance(self._tree.value, dict):
            self._add((), "the file must be an object")
        for name, place in self._tree.repeated(()):
            if name in ("inputs", "mcp") and name not in path[:1]:
                self._problems.append(ConfigProblem(place, "is there a second time"))
        entries = self._find_entries()
        self._find_other_shapes()
        beside = root if self._client.name == "vscode" else member_at(root, path[:-1])
        inputs = {}
        if self._client.name in ("vscode", "vscode-settings") and isinstance(beside, dict):
            inputs = self._read_inputs(beside.get("inputs"), path[:-1])
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
        if self._client.name == "opencode":
            self._restrict_by_tools(servers, broken)
        self._restrict_beside(servers, broken)
        problems = [*self._problems, *self._ignored]
        problems.sort(key=lambda each: (each.place.line, each.place.column))
        return ConfigFile(
            file=self._file,
            format=self._client.name,
            servers=MappingProxyType(servers),
            inputs=MappingProxyType(inputs),
            broken=frozenset(broken),
            problems=tuple(problems),
            has_servers=not path or path[0] in root,
            servers_path=path,
        )

    def read_entries(self, entries: dict[str, Any]) -> ConfigFile:
        """Return the servers of these entries, which have no file around them."""
        self._path = ()
        servers, broken = self._read_servers(entries)
        return ConfigFile(
            file=self._file,
            format=self._client.name,
            servers=MappingProxyType(servers),
            broken=frozenset(broken),
            problems=(*self._problems, *self._ignored),
        )

    def _find_entries(self) -> dict[str, Any]:
        """Return the entries of servers by name, after adding what keeps them from being read."""
        entries: Any = self._root
        if not self._path:
            return {name: entry for name, entry in entries.items() if name != "$schema"}
        for depth, name in enumerate(self._path):
            repeated = dict(self._tree.repeated(self._path[:depth]))
            if name in repeated:
                self._problems.append(ConfigProblem(repeated[name], "is there a second time"))
                return {}
            entries = entries.get(name, {})
            if not isinstance(entries, dict):
                is_last = depth == len(self._path) - 1
                what = "the servers by name" if is_last else "members"
                self._add(self._path[: depth + 1], f"must be an object with {what}")
                return {}
        found: dict[str, Any] = entries
        return found

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

    def _find_other_shapes(self) -> None:
        """Add a problem for servers that aren't read, and for a file in which none are found."""
        root, own = self._root, self._path
        title, where = self._client.title, member_text(own) or "the file itself"
        has_own = not own or own[0] in root
        is_hinted = False
        for name, path in SHAPES:
            if path[0] in own[:1] or (own and name == self._client.name):
                continue
            value = member_at(root, path)
            is_empty = not has_own and is_own_name(path) and isinstance(value, dict)
            if not (is_empty or looks_like_servers(value)):
                continue
            is_hinted = True
            self._add(path, f"{title} reads servers from {where}: move them there")
        for _, path in SHAPES:
            dotted = ".".join(path)
            if len(path) > 1 and isinstance(root.get(dotted), dict):  # as other settings of VS Code
                is_hinted = True
                self._add((dotted,), f"is not read: write {path[0]} with {path[1]} inside")
        if self._client.name == "opencode" and len(own) > 1:  # version 2
            for name, value in member_at(root, own[:1]).items():
                if name != own[1] and looks_like_servers({name: value}):
                    self._add(
                        (*own[:1], name), f"{title} reads servers from {where}: move it there"
                    )
        unknown = [name for name in root if name not in _BESIDE]
        if has_own or is_hinted or not unknown or SETTINGS_FILE.search(self._file):
            return
        names = ", ".join(map(name_text, unknown[:_MAX_NAMED]))
        self._add(
            (),
            f"the file has no servers that are understood, but {names}: write them into {where},"
            ' as {"NAME": {"command": "...", "args": []}}',
        )

    def _read_servers(
        self, entries: dict[str, Any]
    ) -> tuple[dict[str, ServerConfig], dict[str, None]]:
        servers: dict[str, ServerConfig] = {}
        broken: dict[str, None] = {}
        for name, place in self._tree.repeated(self._path):
            problem = "is there a second time: rename one of the two servers"
            self._problems.append(ConfigProblem(place, problem, name))
            broken[name] = None
        for name, entry in entries.items():
            path = (*self._path, name)
            before = len(self._problems)
            if not isinstance(entry, dict):
                self._add(path, "must be an object with command or url", name)
            elif not name or re.search("[\ud800-\udfff]", name):
                self._add(path, "the name of a server must be a text that is not empty", name)
            else:
                if self._client.name == "opencode":
                    entry, foreign = translate_entry(entry)
                    for inner, text in foreign:
                        problem = f"has {text}, which is not understood here: write {{env:NAME}}"
                        self._add((*path, *inner), problem, name)
                reader = MemberReader(self._tree, path, entry, self._problems, name)
                server = self._read_server(reader, name, path)
                is_sound = len(self._problems) == before and name not in broken
                if server is not None and is_sound:
                    servers[name] = server
            if len(self._problems) > before:
                broken[name] = None
        return servers, broken

    def _read_server(
        self, reader: MemberReader, name: str, path: MemberPath
    ) -> ServerConfig | None:
        dialect = self._dialect
        given = list(reader.rest)
        kinds = self._read_kinds(reader)
        command, *words = reader.words(dialect.command) or (None,)
        urls = dialect.urls if self._client.syntax is None else {**_URLS, **dialect.urls}
        addresses = {member: url for member in urls if (url := reader.text(member)) is not None}
        transport = self._read_transport(reader, command, addresses, urls, kinds, given)
        is_codex = self._client.name == "codex"
        codex = self._read_codex(reader) if is_codex else {}
        if self._client.name == "goose":
            codex = {"forwarded": reader.texts("env_keys")}
            reader.keep_place("env_keys")
        server_disabled = reader.flag("disabled")
        server_enabled = reader.flag("enabled")
        call_timeout = self._read_timeouts(reader, dialect.call_timeouts)
        env_member = _only(reader, dialect.env)
        env = self._read_env(reader, env_member)
        for variable in filter(redirects_code, env):
            reader.keep_place(env_member, variable)  # a policy names it
        for member in ("cwd", dialect.env_file or ""):
            if member in reader.rest:
                reader.keep_place(member)
        allowed, denied = tool_lists = self._client.tool_lists or OWN_TOOL_LISTS
        self._drop_list_of_all_tools(reader)
        fields: dict[str, Any] = {
            "args": (*words, *reader.texts("args", has_numbers=True)),
            "env": env,
            "env_file": reader.text(dialect.env_file) if dialect.env_file else None,
            "cwd": reader.text("cwd"),
            "headers": self._read_headers(reader),
            "connect_timeout": self._read_timeouts(reader, dialect.connect_timeouts),
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

    def _read_env(self, reader: MemberReader, member: str) -> Mapping[str, str]:
        """Read the variables. null stands for one that isn't there, as in VS Code."""
        values = reader.rest.get(member)
        for variable, value in values.items() if isinstance(values, dict) else ():
            if value is None and variable.upper() in _INHERITED:
                problem = 'is null, but each server gets this variable: write "" for an empty one'
                reader.add(problem, member, variable)
        return reader.text_map(member, has_nulls=True)

    def _drop_list_of_all_tools(self, reader: MemberReader) -> None:
        """Remove a list of tools that stands for all of them."""
        if self._client.name == "copilot-cli" and reader.rest.get("tools") == ["*"]:
            del reader.rest["tools"]
        elif self._client.name == "goose" and reader.rest.get("available_tools") == []:
            del reader.rest["available_tools"]

    def _read_kinds(self, reader: MemberReader) -> dict[str, str]:
        """Read the members that name a transport."""
        if self._client.syntax is None:
            return {}
        return {
            member: kind
            for member in _KIND_MEMBERS
            # Of the others, what isn't a text has another meaning.
            if (member == "type" or isinstance(reader.rest.get(member), str))
            and (kind := reader.text(member)) is not None
        }

    def _read_transport(
        self,
        reader: MemberReader,
        command: str | None,
        addresses: Mapping[str, str],
        urls: Mapping[str, ServerTransport],
        kinds: Mapping[str, str],
        given: list[str],
    ) -> ServerTransport | None:
        """Return a server's transport, or None after adding why it has none.

        Args:
            reader: the entry.
            command: its program.
            addresses: its addresses, by member.
            urls: the members that can have an address, with the transport that each means.
            kinds: the words that name its transport, by member.
            given: the names of all its members.
        """
        wanted: ServerTransport | None = None
        kind_member = kind = ""
        for member, word in kinds.items():
            found = _TRANSPORTS.get(re.sub("[-_]", "", word.lower()))
            if found is None:
                problem = f"is {kind_text(word)}, which is no transport that is understood: write"
                reader.add(f"{problem} stdio, http, sse or ws", member)
                return None
            if wanted not in (None, found):
                reader.add(f"is {kind_text(word)}, but {kind_member} is {kind_text(kind)}", member)
                return None
            wanted, kind_member, kind = found, member, word
        own = self._dialect
        members = [*([own.command] if command is not None else []), *addresses]
        if len(members) > 1:
            reader.add(f"has both {members[0]} and {members[1]}: remove one", members[1])
            return None
        if not members:
            remote = [] if wanted == "stdio" else [*own.urls]
            needed = [*([own.command] if wanted in (None, "stdio") else []), *remote]
            if reader.wrong.isdisjoint((own.command, *urls)):
                reader.add(f"needs {' or '.join(needed)}{_mistaken_text(given)}")
            return None
        if members == [own.command]:
            if wanted in (None, "stdio"):
                return "stdio"
            problem = f"is {kind}, which needs {' or '.join(own.urls)} in place of {own.command}"
            reader.add(problem, kind_member)
            return None
        if wanted == "stdio":
            problem = f"is {kind}, which needs {own.command} in place of {members[0]}"
            reader.add(problem, kind_member)
            return None
        return wanted or urls[members[0]]

    def _read_timeouts(self, reader: MemberReader, units: Mapping[str, float]) -> float | None:
        """Read all members that hold a timeout, and return the first one in seconds.

        One of less than a second is ignored where it is in milliseconds, as Claude Code does: its
        author meant seconds, and each call would fail. But not if the member's name has the unit.
        """
        found = []
        for member, unit in units.items():
            number = reader.positive(member)
            if number is None:
                continue
            if unit > 1 and number < unit and not member.endswith("_ms"):
                problem = "is in milliseconds, and ignored below 1000: write 30000 for 30 seconds"
                place = reader.place(member)
                self._ignored.append(ConfigProblem(place, problem, ignored=True))
            else:
                found.append(number / unit)
        return found[0] if found else None

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

    def _read_inputs(self, values: Any, around: tuple[str, ...]) -> dict[str, ConfigInput]:
        """Read the inputs in the object at the path `around`."""
        inputs: dict[str, ConfigInput] = {}
        if values is None:
            return inputs
        if not isinstance(values, list):
            self._add((*around, "inputs"), "must be an array")
            return inputs
        for n, value in enumerate(values):
            path: MemberPath = (*around, "inputs", n)
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

    def _restrict_by_tools(self, servers: dict[str, ServerConfig], broken: dict[str, None]) -> None:
        """Apply what opencode says beside the servers about their tools."""
        enabled = [name for name, server in servers.items() if not server.disabled]
        for name, (effect, path) in find_restrictions(self._tree, enabled).items():
            if effect == "off":
                servers[name] = replace(servers[name], disabled=True)
            elif effect == "asks":
                servers[name] = replace(servers[name], asks_always=True)
            else:
                problem = "restricts tools of this server, which is not understood: remove it"
                place = self._tree.place(path)
                self._problems.append(ConfigProblem(place, problem, name, restricts=True))
                del servers[name]
                broken[name] = None

    def _restrict_beside(self, servers: dict[str, ServerConfig], broken: dict[str, None]) -> None:
        """Apply what other settings of the file say about the servers and their tools."""
        found: dict[str, list[Restriction]] = {}
        for restriction in find_restrictions_beside(self._client.name, self._tree, servers):
            found.setdefault(restriction.server, []).append(restriction)
        for name, restrictions in found.items():
            unclear = [each.path for each in restrictions if each.effect == "unclear"]
            for path in unclear[:1]:
                # Removed, an entry would no longer restrict the servers that it is meant for.
                is_entry = self._client.name == "gemini" and isinstance(path[-1], int)
                cure = _GEMINI_CURE if is_entry else "remove it"
                problem = f"restricts this server in a way that is not understood: {cure}"
                place = self._tree.place(path)
                self._problems.append(ConfigProblem(place, problem, name, restricts=True))
                del servers[name]
                broken[name] = None
            if not unclear:
                servers[name] = self._restricted(servers[name], restrictions)
        if _CLAUDE_FILE.search(self._file):
            for path in find_other_projects(self._root, servers):
                problem = (
                    "turns servers off in one project, which is ignored here: "
                    "`disabled` in a server's entry turns it off"
                )
                self._problems.append(ConfigProblem(self._tree.place(path), problem, ignored=True))

    def _restricted(self, server: ServerConfig, restrictions: list[Restriction]) -> ServerConfig:
        """Return a server with what other settings say about it."""
        denied = dict.fromkeys(server.denied_tools)
        allowed = server.allowed_tools
        places = dict(server.places)
        for _, effect, path, tools in restrictions:
            if effect == "denies":
                denied.update(dict.fromkeys(tools))
                places.setdefault(("denied_tools",), self._tree.place(path))
            elif effect == "allows":
                allowed = tuple(tool for tool in tools if allowed is None or tool in allowed)
                places.setdefault(("allowed_tools",), self._tree.place(path))
        effects = {each.effect for each in restrictions}
        return replace(
            server,
            disabled=server.disabled or "off" in effects,
            asks_always=server.asks_always or "asks" in effects,
            denied_tools=tuple(denied),
            allowed_tools=allowed,
            places=MappingProxyType(places),
        )

    def _find_excluded(self, root: dict[str, Any], servers: dict[str, ServerConfig]) -> list[str]:
        """Return the servers that Gemini CLI turns off beside the servers."""
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
        if len(self._problems) > before or "mcp" in dict(self._tree.repeated(())):
            return list(servers)  # a list that cannot be read must not turn a server on
        return [
            name
            for name in servers
            if name.strip().lower() in excluded or (allowed is not None and name not in allowed)
        ]


def _only(reader: MemberReader, members: tuple[str, ...]) -> str:
    """Return the one of several spellings that an entry has, or the first one."""
    given = [member for member in members if reader.rest.get(member) is not None]
    for member in given[1:]:
        reader.add(f"has both {given[0]} and {member}: remove one", member)
    return (given or members)[0]


def _mistaken_text(given: list[str]) -> str:
    """Return what an entry has in place of what it needs, to append to that problem."""
    for name in given:
        if name in _MISTAKEN:
            return f": write {_MISTAKEN[name]} in place of {name}"
    if not given:
        return ""
    more = ", ..." if len(given) > _MAX_NAMED else ""
    return f", and has {', '.join(map(name_text, given[:_MAX_NAMED]))}{more}"


def _read_options(reader: MemberReader) -> tuple[str, ...]:
    """Read the values to choose from: texts, or objects with a label and a value."""
    values = reader.rest.get("options")
    if isinstance(values, list):
        reader.rest["options"] = [
            value.get("value") if isinstance(value, dict) else value for value in values
        ]
    return reader.texts("options")
