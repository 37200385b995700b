"""The programs in which servers are registered, as data: their files, members and commands.

The files and commands of Claude Code 2.1, Codex 0.169 and Gemini CLI 0.61 were tried in November
2026. The others' are as documented: vscode-docs `agent-customization/mcp-servers.md`,
cursor.com/docs/context/mcp, and the quick start of modelcontextprotocol.io for Claude Desktop.
Programs whose files are only read have the page in `_READ_ONLY`, read on 2026-11-29.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from mcp_core._text import escape_text

from ._json_edit import JsonSyntax

__all__ = [
    "CLIENT_FORMATS",
    "ClientFormat",
    "ConfigScope",
    "ServerEntry",
    "ServerTransport",
    "config_path",
    "entry_members",
    "find_replaced",
]

# How messages travel: "http" is Streamable HTTP, "sse" is HTTP+SSE, "ws" is WebSocket.
ServerTransport: TypeAlias = Literal["stdio", "http", "sse", "ws"]

# Who gets an entry: the user in every project, or all users of one project.
ConfigScope: TypeAlias = Literal["user", "project"]
_Place: TypeAlias = tuple[Literal["home", "config", "support", "appdata"], tuple[str, ...]]


# The member of a remote server that has its address, and constant members beside it.
_Remote: TypeAlias = tuple[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """A server that a client starts or connects to, in the terms of no particular client.

    Args:
        name: the name under which the client lists it.
        transport: how its messages travel.
        command: the program of a stdio server, for most clients its absolute path; else empty.
        args: its arguments.
        env: variables that the server gets, with their values.
        forwarded: variables whose values the client takes from its own environment.
        cwd: the program's directory; None for the client's.
        url: the address of a remote server, else empty.
        headers: headers of each HTTP request. `${NAME}` in a value stands for a variable of the
            client's environment.
        allowed_tools: the tools that may be used; None for all.
        denied_tools: the tools that may not be used.
    """

    name: str
    transport: ServerTransport = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    forwarded: tuple[str, ...] = ()
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    allowed_tools: tuple[str, ...] | None = None
    denied_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFormat:
    """How one client keeps its servers.

    Args:
        name: the client's name on our command line.
        title: its name for people.
        servers: the path of the member that holds the servers, from the outermost object; empty if
            the file is the mapping of servers itself.
        syntax: the JSON that the client can read; None for TOML.
        user: where its file for all projects is, by `sys.platform`.
        user_variable: an environment variable that names another directory for that file, and the
            file's path in this directory.
        project: the path of its file in a project's directory; None if it has none.
        members: constant members of an entry with a command.
        remote: the members of an entry with an address, by transport. Others aren't supported.
        headers: the member with the headers of requests.
        has_cwd: whether an entry can have a directory.
        tool_lists: the members of an entry that list allowed and denied tools; None if the client
            has no such members.
        disabling: what turns a server off: a member `disabled` or `enabled` of its entry, or the
            list `mcp.excluded` of the file; None if it isn't in the file.
        reference: a value that the client replaces by the variable `NAME`; None if it has none.
        forwarded: the member that lists variables to pass on, in place of references.
        replaces: what the client replaces in a value, as a regular expression; None for nothing.
        program: the client's own command; None if it has none.
        add_command: its arguments that register a server; None if they cannot express the entry.
        needs_restart: whether a running client doesn't notice that its file has changed.
        is_written: whether servers are registered in its file; if not, they are only read there.
    """

    name: str
    title: str
    servers: tuple[str, ...]
    syntax: JsonSyntax | None
    user: Mapping[str, _Place]
    user_variable: tuple[str, tuple[str, ...]] | None = None
    project: tuple[str, ...] | None
    members: Mapping[str, str]
    remote: Mapping[ServerTransport, _Remote] = field(default_factory=dict)
    headers: str = "headers"
    has_cwd: bool = True
    tool_lists: tuple[str, str] | None = None
    disabling: Literal["disabled", "enabled", "mcp.excluded"] | None = None
    reference: str | None = None
    forwarded: str | None = None
    replaces: re.Pattern[str] | None = None
    program: str | None = None
    add_command: Callable[[ServerEntry, ConfigScope], list[str] | None] | None = None
    needs_restart: bool = False
    is_written: bool = True


def _everywhere(*parts: str) -> dict[str, _Place]:
    return dict.fromkeys(("linux", "darwin", "win32"), ("home", parts))


def _application(*parts: str) -> dict[str, _Place]:
    """Return where an Electron application has its data on each system."""
    return {
        "linux": ("config", parts),
        "darwin": ("support", parts),
        "win32": ("appdata", parts),
    }


def _add_to_claude(server: ServerEntry, scope: ConfigScope) -> list[str]:
    entry = json.dumps(entry_members(CLIENT_FORMATS["claude-code"], server), ensure_ascii=False)
    return ["mcp", "add-json", "--scope", scope, server.name, entry]


def _add_to_vscode(server: ServerEntry, scope: ConfigScope) -> list[str] | None:
    if scope != "user":
        return None
    members = entry_members(CLIENT_FORMATS["vscode"], server)
    return ["--add-mcp", json.dumps({"name": server.name, **members}, ensure_ascii=False)]


def _add_to_codex(server: ServerEntry, scope: ConfigScope) -> list[str] | None:
    is_restricted = server.allowed_tools is not None or server.denied_tools
    if scope != "user" or server.forwarded or is_restricted:
        return None
    variables = [word for pair in server.env.items() for word in ("--env", "=".join(pair))]
    return ["mcp", "add", server.name, *variables, "--", server.command, *server.args]


def _add_to_gemini(server: ServerEntry, scope: ConfigScope) -> list[str] | None:
    env = {**server.env, **{name: f"${{{name}}}" for name in server.forwarded}}
    if server.allowed_tools is not None or server.denied_tools:
        return None
    if any("=" in value for value in env.values()):
        return None  # Gemini CLI 0.61 cuts a value at its first =
    variables = [word for pair in env.items() for word in ("-e", "=".join(pair))]
    place = ["mcp", "add", "--scope", scope, server.name]
    return [*place, *variables, server.command, "--", *server.args]


# How `ServerEntry.headers` refer to variables.
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)
_BEARER: Final = re.compile(r"Bearer \$\{([A-Za-z_]\w*)\}", re.ASCII | re.IGNORECASE)
_BRACED: Final = re.compile(r"\$\{[^}]+\}")
_BRACED_OR_PLAIN: Final = re.compile(r"\$(?:\w+|\{[^}]+\})", re.ASCII)

# Claude Code calls WebSocket ws. VS Code detects HTTP+SSE, and accepts the type `sse` too.
_TYPED: Final[dict[ServerTransport, _Remote]] = {
    "http": ("url", {"type": "http"}),
    "sse": ("url", {"type": "sse"}),
}

_EDITOR_JSON: Final = JsonSyntax(comments=True, trailing_commas=True, byte_order_mark=True)


def _read_only(
    name: str,
    title: str,
    servers: tuple[str, ...],
    user: Mapping[str, _Place],
    *,
    headers: str = "headers",
    tool_lists: tuple[str, str] | None = None,
    disabling: Literal["disabled", "enabled"] | None = "disabled",
    user_variable: tuple[str, tuple[str, ...]] | None = None,
    project: tuple[str, ...] | None = None,
) -> ClientFormat:
    return ClientFormat(
        name=name,
        title=title,
        servers=servers,
        syntax=_EDITOR_JSON,
        user=user,
        user_variable=user_variable,
        project=project,
        members={},
        headers=headers,
        tool_lists=tool_lists,
        disabling=disabling,
        is_written=False,
    )


# Programs whose files are read and imported, and not written, with the page that describes them.
_READ_ONLY: Final = (
    # docs.github.com/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers
    _read_only(
        "copilot-cli",
        "GitHub Copilot CLI",
        ("mcpServers",),
        _everywhere(".copilot", "mcp-config.json"),
        user_variable=("COPILOT_HOME", ("mcp-config.json",)),
        tool_lists=("tools", "deniedTools"),
        project=(".github", "mcp.json"),
    ),
    # docs.windsurf.com/windsurf/cascade/mcp
    _read_only(
        "windsurf",
        "Windsurf",
        ("mcpServers",),
        _everywhere(".codeium", "windsurf", "mcp_config.json"),
        tool_lists=("allowedTools", "disabledTools"),
    ),
    # docs.cline.bot/mcp/adding-and-configuring-servers, for its command-line program
    _read_only(
        "cline",
        "Cline",
        ("mcpServers",),
        _everywhere(".cline", "data", "settings", "cline_mcp_settings.json"),
    ),
    # lmstudio.ai/docs/app/mcp
    _read_only("lm-studio", "LM Studio", ("mcpServers",), _everywhere(".lmstudio", "mcp.json")),
    # zed.dev/docs/ai/mcp
    _read_only(
        "zed",
        "Zed",
        ("context_servers",),
        {
            "linux": ("config", ("zed", "settings.json")),
            "darwin": ("home", (".config", "zed", "settings.json")),
            "win32": ("appdata", ("Zed", "settings.json")),
        },
        disabling="enabled",
        project=(".zed", "settings.json"),
    ),
    # opencode.ai/docs/mcp-servers; version 2 has the servers in a member `servers` of `mcp`
    _read_only(
        "opencode",
        "opencode",
        ("mcp",),
        {
            "linux": ("config", ("opencode", "opencode.json")),
            "darwin": ("home", (".config", "opencode", "opencode.json")),
            "win32": ("home", (".config", "opencode", "opencode.json")),
        },
        disabling="enabled",
        project=("opencode.json",),
    ),
    # code.visualstudio.com/docs/copilot/chat/mcp-servers, of May 2025
    _read_only(
        "vscode-settings",
        "VS Code (settings.json)",
        ("mcp", "servers"),
        _application("Code", "User", "settings.json"),
        project=(".vscode", "settings.json"),
    ),
    # goose-docs.ai/docs/guides/config-files: YAML
    _read_only(
        "goose",
        "goose",
        ("extensions",),
        {
            "linux": ("config", ("goose", "config.yaml")),
            "darwin": ("home", (".config", "goose", "config.yaml")),
            "win32": ("appdata", ("Block", "goose", "config", "config.yaml")),
        },
        tool_lists=("available_tools", "deniedTools"),
        disabling="enabled",
    ),
)

# The programs whose configuration can be read, by the name that the command takes.
CLIENT_FORMATS: Final[Mapping[str, ClientFormat]] = {
    client.name: client
    for client in (
        ClientFormat(
            name="claude-code",
            title="Claude Code",
            servers=("mcpServers",),
            syntax=JsonSyntax(byte_order_mark=True),
            user=_everywhere(".claude.json"),
            user_variable=("CLAUDE_CONFIG_DIR", (".claude.json",)),
            project=(".mcp.json",),
            members={"type": "stdio"},
            remote={**_TYPED, "ws": ("url", {"type": "ws"})},
            tool_lists=("allowedTools", "deniedTools"),  # of mcp-trio, which shares the format
            disabling="disabled",
            reference="${NAME}",
            replaces=_BRACED,
            program="claude",
            add_command=_add_to_claude,
        ),
        ClientFormat(
            name="claude-desktop",
            title="Claude Desktop",
            servers=("mcpServers",),
            syntax=JsonSyntax(byte_order_mark=True),
            user=_application("Claude", "claude_desktop_config.json"),
            project=None,
            members={},
            has_cwd=False,
            needs_restart=True,
        ),
        ClientFormat(
            name="cursor",
            title="Cursor",
            servers=("mcpServers",),
            syntax=JsonSyntax(comments=True, trailing_commas=True, byte_order_mark=True),
            user=_everywhere(".cursor", "mcp.json"),
            project=(".cursor", "mcp.json"),
            members={},
            remote={"http": ("url", {}), "sse": ("url", {"type": "sse"})},
            has_cwd=False,
            reference="${env:NAME}",
            replaces=_BRACED,
        ),
        ClientFormat(
            name="vscode",
            title="VS Code",
            servers=("servers",),
            syntax=JsonSyntax(comments=True, trailing_commas=True, byte_order_mark=True),
            user=_application("Code", "User", "mcp.json"),
            project=(".vscode", "mcp.json"),
            members={"type": "stdio"},
            remote=_TYPED,
            reference="${env:NAME}",
            replaces=_BRACED,
            program="code",
            add_command=_add_to_vscode,
        ),
        ClientFormat(
            name="codex",
            title="Codex",
            servers=("mcp_servers",),
            syntax=None,
            user=_everywhere(".codex", "config.toml"),
            user_variable=("CODEX_HOME", ("config.toml",)),
            project=(".codex", "config.toml"),  # read in projects that the user trusts
            members={},
            remote={"http": ("url", {})},
            headers="http_headers",
            tool_lists=("enabled_tools", "disabled_tools"),
            disabling="enabled",
            forwarded="env_vars",
            program="codex",
            add_command=_add_to_codex,
        ),
        ClientFormat(
            name="gemini",
            title="Gemini CLI",
            servers=("mcpServers",),
            syntax=JsonSyntax(comments=True),
            user=_everywhere(".gemini", "settings.json"),
            user_variable=("GEMINI_CLI_HOME", (".gemini", "settings.json")),
            project=(".gemini", "settings.json"),
            members={},
            remote={"http": ("httpUrl", {}), "sse": ("url", {})},
            tool_lists=("includeTools", "excludeTools"),
            disabling="mcp.excluded",
            reference="${NAME}",
            replaces=_BRACED_OR_PLAIN,
            program="gemini",
            add_command=_add_to_gemini,
        ),
        *_READ_ONLY,
    )
}


def config_path(
    client: ClientFormat,
    scope: ConfigScope,
    *,
    system: str,
    environ: Mapping[str, str],
    directory: str,
) -> str:
    """Return the absolute path of a client's configuration file.

    Args:
        client: the client.
        scope: the file for all projects of the user, or the one of a project.
        system: as `sys.platform`; an unknown one is taken for Linux.
        environ: the user's environment.
        directory: the project directory's absolute path.

    Raises:
        ValueError: the client has no file of that scope, or the environment doesn't say where
            the user's files are.
    """
    slash = "\\" if system == "win32" else "/"
    if scope == "project":
        if client.project is None:
            raise ValueError(f"{client.title} has no configuration for a project")
        return slash.join((directory, *client.project))
    if client.user_variable is not None:
        variable, parts = client.user_variable
        if environ.get(variable):
            return slash.join((environ[variable], *parts))
    base, parts = client.user.get(system) or client.user["linux"]
    return slash.join((_base_directory(base, system, environ), *parts))


def _base_directory(base: str, system: str, environ: Mapping[str, str]) -> str:
    home_variable = "USERPROFILE" if system == "win32" else "HOME"
    if base == "appdata" and environ.get("APPDATA"):
        return environ["APPDATA"]
    if base == "config":
        config = environ.get("XDG_CONFIG_HOME", "")
        if config.startswith("/"):  # XDG: a relative path is invalid and must be ignored
            return config
    home = environ.get(home_variable)
    if not home:
        raise ValueError(f"the environment variable {home_variable} is not set")
    return (
        home
        + {
            "home": "",
            "config": "/.config",
            "support": "/Library/Application Support",
            "appdata": "\\AppData\\Roaming",
        }[base]
    )


def entry_members(client: ClientFormat, server: ServerEntry) -> dict[str, Any]:
    """Return the members in the entry of `server` in the file of `client`, by name.

    Raises:
        ValueError: the client cannot have such an entry, or its file is only read.
    """
    if not client.is_written:
        raise ValueError(
            f"mcp-trio reads the file of {client.title}, and writes no entries into it: add the"
            f" server there by hand"
        )
    if server.transport != "stdio":
        return {**_remote_members(client, server), **_tool_members(client, server)}
    env = dict(server.env)
    members: dict[str, Any] = {
        **client.members,
        "command": server.command,
        "args": list(server.args),
    }
    if server.cwd is not None:
        if not client.has_cwd:
            raise ValueError(f"{client.title} cannot start a server in another directory")
        members["cwd"] = server.cwd
    if client.forwarded is not None and server.forwarded:
        members[client.forwarded] = list(server.forwarded)
    else:
        env |= {name: _reference(client, name) for name in server.forwarded}
    if env:
        members["env"] = env
    return {**members, **_tool_members(client, server)}


def _tool_members(client: ClientFormat, server: ServerEntry) -> dict[str, Any]:
    """Return the members that restrict a server's tools.

    Raises:
        ValueError: the client has no such members: it would offer all tools.
    """
    restricted = server.allowed_tools is not None or bool(server.denied_tools)
    if not restricted:
        return {}
    if client.tool_lists is None:
        raise ValueError(
            f"{client.title} cannot restrict the tools of a server in this file, and would offer"
            " all of them"
        )
    allowed, denied = client.tool_lists
    members: dict[str, Any] = {}
    if server.allowed_tools is not None:
        members[allowed] = list(server.allowed_tools)
    if server.denied_tools:
        members[denied] = list(server.denied_tools)
    return members


def _remote_members(client: ClientFormat, server: ServerEntry) -> dict[str, Any]:
    if server.transport not in client.remote:
        kinds = ", ".join(("stdio", *client.remote))
        raise ValueError(
            f"{client.title} has no servers over {server.transport} in this file, only {kinds}"
        )
    member, constants = client.remote[server.transport]
    members: dict[str, Any] = {**constants, member: server.url}
    headers: dict[str, str] = {}
    for name, value in server.headers.items():
        if client.name != "codex" or _VARIABLE.search(value) is None:
            headers[name] = _VARIABLE.sub(lambda found: _reference(client, found[1]), value)
        elif whole := _VARIABLE.fullmatch(value):
            members.setdefault("env_http_headers", {})[name] = whole[1]
        elif (bearer := _BEARER.fullmatch(value)) and name.lower() == "authorization":
            members["bearer_token_env_var"] = bearer[1]
        else:
            raise ValueError(
                f"Codex cannot have a variable inside the header {escape_text(name)}: put the"
                " whole value into the variable"
            )
    return {**members, client.headers: headers} if headers else members


def _reference(client: ClientFormat, name: str) -> str:
    if client.reference is None:
        raise ValueError(
            f"{client.title} has no references to variables such as {escape_text(name)}: give the"
            " value"
        )
    return client.reference.replace("NAME", name)


def find_replaced(client: ClientFormat, server: ServerEntry) -> list[str]:
    """Return the texts of `server` in which `client` replaces what looks like a variable.

    They are meant as they stand, but the formats have no escape. Values of variables are named and
    not shown: they may be secrets.
    """
    if client.replaces is None:
        return []
    texts = [(text, text) for text in (server.command, *server.args, server.cwd or "")]
    texts += [(value, f"the value of {name}") for name, value in server.env.items()]
    return [shown for text, shown in texts if client.replaces.search(text)]
