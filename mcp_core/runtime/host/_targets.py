"""The servers that a program gives to a host: URLs, commands, `Server`s, and entries of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp_core.host.config._variables import ExpandedServer
from mcp_core.registry import Server
from mcp_core.urls import URL_TRANSPORTS, url_transport

from ._source import ServerSource

__all__ = ["EntrySource", "check_target", "target_secrets"]


def check_target(name: str, target: object) -> None:
    """Check that a server that isn't an entry is a URL, a command's words or a `Server`.

    Args:
        name: its name in the host.
        target: what the program gives.

    Raises:
        TypeError: it is something else. The text has the words of a command in one string.
    """
    if isinstance(target, str):
        is_valid = url_transport(target) is not None
    elif isinstance(target, Server):
        is_valid = True
    else:
        is_valid = isinstance(target, list | tuple) and bool(target)
    if is_valid:
        return
    from mcp_core.processes import target_text  # on first use

    schemes = ", ".join(f"{scheme}://" for scheme in URL_TRANSPORTS)
    raise TypeError(
        f"{name}: give a command as a list of words, a URL with {schemes}, a mapping with command"
        f" or url as in a configuration file, or a Server, not {target_text(target)}"
    )


def target_secrets(
    target: object, env: Mapping[str, str], inherited: Mapping[str, str] | None
) -> frozenset[str]:
    """Return what must not be shown of a server that isn't an entry, for `ServerSource.secrets`.

    Args:
        target: a URL, a command's words or a `Server`; None for the variables alone.
        env: variables that the host gives to each server that is started.
        inherited: variables that it inherits, or None.
    """
    if isinstance(target, Server):
        return frozenset()
    from mcp_core._launch_secrets import launch_secrets  # on first use

    if isinstance(target, str):
        return launch_secrets((target,))
    words = [str(word) for word in target] if isinstance(target, list | tuple) else []
    return launch_secrets(words, env=env, inherited=inherited)


class EntrySource(ServerSource):
    """A server that the program describes as an entry of `.mcp.json` does. Drivers connect to it.

    Args:
        name: its name in the host.
        entry: the entry, such as `{"command": "npx", "args": ["-y", "server"]}`.

    Attributes:
        transport: how its messages travel.

    Raises:
        ValueError: the entry is wrong.
    """

    def __init__(self, name: str, entry: Mapping[str, Any]) -> None:
        from mcp_core.host.config._read import read_entry  # on first use, with all formats

        self._config = config = read_entry(name, entry)
        self.name = name
        self.transport = config.transport
        self.is_disabled = config.disabled
        self.call_timeout = config.call_timeout

    def __repr__(self) -> str:
        return f"<server {self.name!r} of the program>"

    def find_tool_denial(self, tool: str) -> str | None:
        return self._config.find_tool_denial(tool)

    def expand(self, environ: Mapping[str, str], *, windows: bool = False) -> ExpandedServer:
        """Return the entry with its variables expanded, and set `secrets`.

        A `~` at the beginning of the command and the directory is the user's home directory.

        Args:
            environ: this process's environment, for the values of variables.
            windows: whether the variable with the home directory is `USERPROFILE`.

        Raises:
            InvalidConfig: a variable isn't set, or a text cannot be used with its value.
        """
        from mcp_core._launch_secrets import launch_secrets
        from mcp_core.host.config._variables import ConfigVariables, expand_server

        home = environ.get("USERPROFILE" if windows else "HOME")
        variables = ConfigVariables(environ=environ, home=home)
        expanded = expand_server(self._config, variables)
        if expanded.command is not None:
            expanded = replace(
                expanded,
                command=_with_home(expanded.command, home),
                cwd=None if expanded.cwd is None else _with_home(expanded.cwd, home),
            )
            known = launch_secrets((expanded.command or "", *expanded.args))
        else:
            known = launch_secrets((expanded.url or "",))
        self.secrets = expanded.secrets | known
        return expanded

    def same_as(self, other: Any) -> bool:
        return isinstance(other, type(self)) and other._config == self._config


def _with_home(path: str, home: str | None) -> str:
    is_below_home = path == "~" or path.startswith(("~/", "~\\"))
    return f"{home}{path[1:]}" if is_below_home and home else path
