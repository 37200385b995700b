"""Merge the files of all scopes into the servers that count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from mcp_core._text import escape_text
from mcp_core.host._launch import is_same_launch

from ._policy import ServerPolicy, find_denial
from ._problems import ConfigProblem, InvalidConfig
from ._servers import ConfigFile, ConfigInput, ServerConfig, no_members
from ._variables import ConfigVariables, ExpandedServer, expand_server

__all__ = ["MergedServers", "OmittedServer", "ScopedServer", "ServerScope", "merge_servers"]

# Who a file belongs to: the administrator, the user in one project, the project, or the user in all
# projects.
ServerScope: TypeAlias = Literal["managed", "local", "project", "user"]
_PRECEDENCE: Final[tuple[ServerScope, ...]] = ("managed", "local", "project", "user")
# From the most trusted. A project's files may have come with it; the local one seldom has.
_TRUST: Final[tuple[ServerScope, ...]] = ("managed", "user", "local", "project")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedServer:
    """A configured server that counts.

    Args:
        server: the server.
        scope: its file's scope.
        inputs: its file's inputs.
        replaces: the files of a more trusted scope, such as the user's own, that have another
            server of this name, with their scopes. A command that names it may mean that one. It is
            another one if its launch differs, or if it has a problem and so cannot be compared.
    """

    server: ServerConfig
    scope: ServerScope
    inputs: Mapping[str, ConfigInput] = field(default_factory=no_members)
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedServer:
    """A configured server that doesn't count.

    Args:
        server: the server.
        scope: its file's scope.
        reason: "shadowed" by another of its name, "exclusive" if a managed file allows only its
            own servers, or "denied" by the policy.
        explanation: the same for people, with the place that decides.
    """

    server: ServerConfig
    scope: ServerScope
    reason: Literal["shadowed", "exclusive", "denied"]
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedServers:
    """The servers of all files. `merge_servers` returns them.

    Args:
        servers: those that count, by name.
        omitted: the others, with the reason.
        problems: what is wrong with the files, in the order of precedence.
        policy: the administrator's lists, or None.
        is_exclusive: True if only the servers of the administrator's file count.
    """

    servers: Mapping[str, ScopedServer] = field(default_factory=no_members)
    omitted: tuple[OmittedServer, ...] = ()
    problems: tuple[ConfigProblem, ...] = ()
    policy: ServerPolicy | None = None
    is_exclusive: bool = False

    def expand(
        self,
        name: str,
        variables: ConfigVariables,
        file_variables: Iterable[str] | None = None,
    ) -> ExpandedServer:
        """Return a server with its variables expanded, if the policy allows it.

        Args:
            name: the name of a server that counts.
            variables: the values.
            file_variables: the names of the variables in its `env_file`, as for `find_denial`.

        Raises:
            InvalidConfig: a variable isn't set, a text cannot be used, or the policy denies the
                server with these values.
            KeyError: there is no such server.
        """
        scoped = self.servers[name]
        expanded = expand_server(scoped.server, variables, scoped.inputs)
        if self.policy is not None:
            denial = find_denial(self.policy, expanded, file_variables)
            if denial is not None:
                raise InvalidConfig([ConfigProblem(scoped.server.place, denial, name)])
        return expanded


def merge_servers(
    files: Iterable[tuple[ServerScope, ConfigFile]], policy: ServerPolicy | None = None
) -> MergedServers:
    """Return the servers that count: for each name the highest scope's server, if it is allowed.

    The scopes are, from the highest: managed, local, project, user. In one scope the first file
    counts. If a managed file has the member for servers, even an empty one, only its servers count.

    Args:
        files: the files with their scopes.
        policy: the administrator's lists. They apply to managed servers too. A denied server
            isn't replaced by one of the same name in a lower scope.

    Raises:
        InvalidConfig: a managed file has a problem that isn't limited to one server. Without the
            file, servers would count that it means to exclude.
    """
    ordered = sorted(files, key=lambda each: _PRECEDENCE.index(each[0]))
    managed = [file for scope, file in ordered if scope == "managed"]
    broken = [
        each
        for file in managed
        for each in file.problems
        if each.server is None and not each.ignored
    ]
    if broken:
        raise InvalidConfig(broken)
    exclusive = next((escape_text(file.file) for file in managed if file.has_servers), None)
    servers: dict[str, ScopedServer] = {}
    omitted: list[OmittedServer] = []
    taken: dict[str, str] = {}
    for scope, file in ordered:
        for name, server in file.servers.items():
            scoped = ScopedServer(server=server, scope=scope, inputs=file.inputs)
            if exclusive is not None and scope != "managed":
                omitted.append(_omit(scoped, "exclusive", f"{exclusive} has all servers"))
            elif name in taken:
                omitted.append(_omit(scoped, "shadowed", f"shadowed by {taken[name]}"))
            else:
                taken[name] = f"{server.place} ({scope})"
                denial = find_denial(policy, server) if policy is not None else None
                if denial is None:
                    servers[name] = scoped
                else:
                    omitted.append(_omit(scoped, "denied", denial))
        for name in file.broken:
            taken.setdefault(name, f"a server with a problem in {escape_text(file.file)} ({scope})")
    for name, scoped in servers.items():
        servers[name] = replace(scoped, replaces=_find_replaced(scoped, ordered))
    return MergedServers(
        servers=MappingProxyType(servers),
        omitted=tuple(omitted),
        problems=tuple(problem for _, file in ordered for problem in file.problems),
        policy=policy,
        is_exclusive=exclusive is not None,
    )


def _find_replaced(
    counting: ScopedServer, files: Iterable[tuple[ServerScope, ConfigFile]]
) -> tuple[str, ...]:
    """Return the files of more trusted scopes with another server of this name."""
    name = counting.server.name
    found: list[str] = []
    for scope, file in files:
        if _TRUST.index(scope) >= _TRUST.index(counting.scope):
            continue
        other = file.servers.get(name)
        if name in file.broken or (
            other is not None
            and not (
                is_same_launch(counting.server, other, counting.inputs, file.inputs)
                and _has_same_restrictions(counting.server, other)
            )
        ):
            found.append(f"{escape_text(file.file)} ({scope})")
    return tuple(found)


def _has_same_restrictions(first: ServerConfig, second: ServerConfig) -> bool:
    """Return True if two servers offer the same tools, and ask about the same calls.

    A copy of the user's entry in a checkout could otherwise leave out what the user has denied.
    """
    return (first.allowed_tools, first.denied_tools, first.asks_always) == (
        second.allowed_tools,
        second.denied_tools,
        second.asks_always,
    )


def _omit(
    scoped: ScopedServer, reason: Literal["shadowed", "exclusive", "denied"], explanation: str
) -> OmittedServer:
    return OmittedServer(
        server=scoped.server, scope=scoped.scope, reason=reason, explanation=explanation
    )
