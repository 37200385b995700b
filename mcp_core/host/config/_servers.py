"""The servers of a configuration file as immutable values, with variables unexpanded.

Members that may hold secrets are left out of every `repr`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from mcp_core.host._names import written_names
from mcp_core.host.edit._clients import ServerTransport

from ._problems import ConfigPlace, ConfigProblem

__all__ = [
    "ConfigFile",
    "ConfigInput",
    "ServerConfig",
    "VariableSyntax",
    "no_members",
]

# How a format writes variables: not at all, as ${NAME}, or also as $NAME.
VariableSyntax: TypeAlias = Literal["none", "braces", "braces or dollar"]


def no_members() -> Mapping[str, Any]:
    """Return an empty mapping that cannot change."""
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """One server of a configuration file, as the file has it. `read_config` makes them.

    Variables aren't expanded: `expand_server` does that. Members that don't apply to the
    transport, such as headers of a stdio server, stay as they are.

    Args:
        name: the server's name in the file.
        transport: how its messages travel.
        place: where it stands in the file.
        variables: how its texts write variables.
        command: the program of a stdio server, else None.
        args: the program's arguments.
        env: the program's variables, with their values.
        forwarded: names of variables that the program gets from our environment, if they are set.
        env_file: a file with further variables for the program, or None.
        cwd: the program's directory; None for ours.
        url: the address of a remote server, else None.
        headers: headers of each HTTP request.
        header_variables: names of environment variables with headers' values, by header name.
        bearer_variable: the environment variable with a bearer token, by name; or None.
        connect_timeout: seconds that the server may take until it is connected; None if not set.
        call_timeout: seconds of a call without a response or progress; None if not set. A call's
            `max_timeout` bounds it in all.
        disabled: whether the file says that the server is not to be used.
        allowed_tools: the tools that may be used; None for all, and an empty list for none.
        denied_tools: the tools that may not be used, allowed ones included.
        asks_always: whether the file says that the user is asked about each call, regardless of the
            server's hints about its tool.
        extra: the members that aren't listed here, as they were read. Do not change them.
        places: where texts with `$`, and names of variables, stand in the file: by field, and by
            index or name in it.
    """

    name: str
    transport: ServerTransport
    place: ConfigPlace
    variables: VariableSyntax
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=no_members, repr=False)
    forwarded: tuple[str, ...] = ()
    env_file: str | None = None
    cwd: str | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=no_members, repr=False)
    header_variables: Mapping[str, str] = field(default_factory=no_members)
    bearer_variable: str | None = None
    connect_timeout: float | None = None
    call_timeout: float | None = None
    disabled: bool = False
    allowed_tools: tuple[str, ...] | None = None
    denied_tools: tuple[str, ...] = ()
    asks_always: bool = False
    extra: Mapping[str, Any] = field(default_factory=no_members, repr=False)
    places: Mapping[tuple[str | int, ...], ConfigPlace] = field(
        default_factory=dict, repr=False, compare=False
    )

    def place_of(self, *path: str | int) -> ConfigPlace:
        """Return the place of a text, or the server's place if that isn't known.

        Args:
            path: the field, and the index or name in it.
        """
        return self.places.get(path, self.place)

    @property
    def restricts_tools(self) -> bool:
        """True if the file says which tools may be used, or may not."""
        return self.allowed_tools is not None or bool(self.denied_tools)

    @property
    def tool_lists_place(self) -> ConfigPlace:
        """The place of the list of allowed tools, or else of the denied ones."""
        return self.place_of("denied_tools" if self.allowed_tools is None else "allowed_tools")

    def find_tool_denial(self, tool: str) -> str | None:
        """Return why the file doesn't let a tool be used, as a phrase for people, or None.

        Args:
            tool: the tool's name at the server.
        """
        denied = self.denied_tools
        # A list may have a name as a program writes it, which is for a tool of any such name.
        if tool in denied or (denied and not written_names(self.name, tool).isdisjoint(denied)):
            return f"its file denies it ({self.place_of('denied_tools')})"
        if self.allowed_tools is not None and tool not in self.allowed_tools:
            return f"its file allows other tools only ({self.place_of('allowed_tools')})"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigInput:
    """A value that the user enters once, and that `${input:ID}` stands for.

    Source: VS Code, "Input variables for sensitive data".

    Args:
        id: the input's name.
        type: `promptString`, `pickString` or another type of VS Code.
        place: where it stands in the file.
        description: the question to the user; empty if the file has no description.
        secret: whether what the user types must not be shown.
        default: the value that is suggested, or None.
        options: the values to choose from.
    """

    id: str
    type: str
    place: ConfigPlace
    description: str = ""
    secret: bool = False
    default: str | None = field(default=None, repr=False)
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """A configuration file as read: its sound servers, and what is wrong with the others.

    Args:
        file: the file's path, as the caller gave it.
        format: the name of its format in `CLIENT_FORMATS`.
        servers: the servers that can be used, by name.
        inputs: the inputs, by id.
        broken: the names of servers that have a problem. They shadow servers of other files like
            any other, so that a typing error doesn't start a different server.
        problems: what is wrong, in the file's order.
        has_servers: whether the file has the member for servers at all, even an empty one.
        servers_path: the path of that member, from the outermost object; empty if the file is the
            mapping of servers itself.
    """

    file: str
    format: str
    servers: Mapping[str, ServerConfig] = field(default_factory=no_members)
    inputs: Mapping[str, ConfigInput] = field(default_factory=no_members)
    broken: frozenset[str] = frozenset()
    problems: tuple[ConfigProblem, ...] = ()
    has_servers: bool = False
    servers_path: tuple[str, ...] = ("mcpServers",)
