"""Lists of the servers that an administrator allows and denies.

1. A match in the denied list decides. Else a server must match the allowed list, if there is one.
2. A name is chosen by the user. So a name in the allowed list counts for a stdio server only if the
   list has no commands, and for a remote server only if it has no addresses.
3. Entries are literal: a variable in them would have the value that the user gives it. Claude Code
   expands them.
4. In doubt the stricter reading holds. Without a port, a denied address means all ports, and an
   allowed one the scheme's port. An address is denied if any reading of it is denied, and allowed
   if all readings are allowed. A path with `..` matches no allowed address.
5. An allowed command must run the code that its words name: it is refused with a working directory
   of its own, or with variables such as `PATH` and `NODE_OPTIONS`. A denied command is compared
   without the program's directory. But a program can be copied, or started by another one: a list
   of denied commands stops mistakes, not people who want to run it.

Source: code.claude.com/docs/en/managed-mcp, "How a server is evaluated".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from mcp_core.host._variables_of_code import redirects_code
from mcp_core.host.edit._json_edit import JsonSyntax
from mcp_core.urls import DEFAULT_PORTS, Url, http_url

from ._members import MemberReader
from ._problems import ConfigPlace, ConfigProblem, InvalidConfig, name_text
from ._servers import ServerConfig
from ._tree import MAX_CONFIG_SIZE, ConfigTree, parse_tree
from ._url_readings import plain_host, read_host, read_target
from ._variables import ExpandedServer, has_variables

__all__ = ["PolicyEntry", "ServerPolicy", "find_denial", "matches_text", "read_policy"]

_SYNTAX: Final = JsonSyntax(comments=True, trailing_commas=True, byte_order_mark=True)
_LISTS: Final = ("allowedMcpServers", "deniedMcpServers")
# A member beside them that an administrator relies on, such as one with a letter missing.
_RESTRICTING: Final = re.compile(
    r"mcp_?-?servers?|allow|den(?:y|ied)|block|exclude|forbid|disallow|restrict|disable|policy",
    re.IGNORECASE,
)
_KEYS: Final = ("serverName", "serverCommand", "serverUrl")
_ALLOWED_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_URL_PATTERN: Final = re.compile(
    r"(?P<scheme>[a-z*][a-z0-9+.*-]*)://(?P<host>\[[^\]/]*\]|[^/:?#@\[\]]+)(?::(?P<port>\*|[0-9]{1,5}))?"
    r"(?P<target>/[^#]*)?",
    re.IGNORECASE,
)
_DIRECTORY: Final = re.compile(r".*[/\\](?=.)", re.DOTALL)
_PROGRAM_SUFFIX: Final = re.compile(r"\.(?:exe|cmd|bat|com|ps1|sh)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntry:
    """One entry of a list of servers. Exactly one of the first three fields is set.

    Args:
        name: a server's name, compared as it is.
        command: the program and its arguments, all of them in order.
        url: an address, where `*` stands for any text.
        place: where the entry stands.
    """

    name: str | None = None
    command: tuple[str, ...] | None = None
    url: str | None = None
    place: ConfigPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPolicy:
    """The servers that an administrator allows and denies.

    Args:
        allowed: the allowed servers; None allows all, and an empty list none.
        denied: the denied servers.
    """

    allowed: tuple[PolicyEntry, ...] | None = None
    denied: tuple[PolicyEntry, ...] = ()


class _Address(NamedTuple):
    """A server's address; `url` is None if it cannot be connected to."""

    scheme: str
    url: Url | None


class _UrlPattern(NamedTuple):
    scheme: str
    host: str
    port: str | None
    target: str | None


def read_policy(data: bytes | str, *, file: str, max_size: int = MAX_CONFIG_SIZE) -> ServerPolicy:
    """Return the lists `allowedMcpServers` and `deniedMcpServers` of a managed file.

    Args:
        data: the file's content.
        file: its path, for places.
        max_size: the largest size, in bytes; 4 MiB by default.

    Raises:
        InvalidConfig: the file cannot be read, an entry is wrong, or a member beside the lists
            seems to restrict servers. Without it the lists would allow or deny other servers than
            their author meant.
    """
    tree = parse_tree(data, file=file, syntax=_SYNTAX, max_size=max_size)
    root = {} if tree.value is None else tree.value
    problems: list[ConfigProblem] = []
    if not isinstance(root, dict):
        problems.append(ConfigProblem(tree.place(), "the file must be an object"))
        raise InvalidConfig(problems)
    for name, place in tree.repeated(()):
        if name in _LISTS:
            problems.append(ConfigProblem(place, "is there a second time"))
    for name, value in root.items():
        if name not in ("mcpServers", *_LISTS) and _RESTRICTING.search(name) and value:
            problem = f"restricts servers, and is not understood: the lists are {', '.join(_LISTS)}"
            problems.append(ConfigProblem(tree.place((name,)), problem))
    allowed = _read_list(tree, "allowedMcpServers", root, problems)
    denied = _read_list(tree, "deniedMcpServers", root, problems)
    if problems:
        raise InvalidConfig(problems)
    return ServerPolicy(allowed=allowed, denied=denied or ())


def _read_list(
    tree: ConfigTree, member: str, root: dict[str, Any], problems: list[ConfigProblem]
) -> tuple[PolicyEntry, ...] | None:
    if member not in root:
        return None
    values = root[member]
    if not isinstance(values, list):
        problems.append(ConfigProblem(tree.place((member,)), "must be an array"))
        return None
    entries = []
    for n, value in enumerate(values):
        place = tree.place((member, n))
        if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in _KEYS:
            problem = f"must be an object with one of {', '.join(_KEYS)}"
            problems.append(ConfigProblem(place, problem))
            continue
        reader = MemberReader(tree, (member, n), value, problems)
        entry = PolicyEntry(
            name=reader.text("serverName"),
            command=reader.texts("serverCommand") or None,
            url=reader.text("serverUrl"),
            place=place,
        )
        if not reader.wrong:
            _check_entry(entry, reader, is_allowed=member.startswith("allowed"))
        entries.append(entry)
    return tuple(entries)


def _check_entry(entry: PolicyEntry, reader: MemberReader, *, is_allowed: bool) -> None:
    texts = [entry.url or "", *(entry.command or ())]
    if any("${" in text for text in texts):
        reader.add("has a variable, which the user would set: write its value")
    elif entry.url is not None:
        if entry.url != "*" and _parse_pattern(entry.url) is None:
            reader.add("is not an address such as https://*.example.com/*", "serverUrl")
    elif entry.name is not None:
        if is_allowed and not _ALLOWED_NAME.fullmatch(entry.name):
            problem = "may have letters, digits, - and _ only: allow it by command or address"
            reader.add(problem, "serverName")
        elif entry.name != entry.name.strip():
            reader.add("begins or ends with white space", "serverName")
    elif entry.command is None:
        reader.add("needs a program and its arguments")


def find_denial(
    policy: ServerPolicy,
    server: ServerConfig | ExpandedServer,
    file_variables: Iterable[str] | None = None,
) -> str | None:
    """Return why a server must not be used, as a phrase for people, or None if it may be used.

    A `ServerConfig` with variables is denied only if their values don't matter. Ask again with the
    `ExpandedServer` before it is started or connected to.

    Args:
        policy: the lists.
        server: the server.
        file_variables: the names of the variables in its `env_file`, None before that is read. An
            `ExpandedServer` with such a file isn't allowed by its command then.
    """
    expanded = server if isinstance(server, ExpandedServer) else None
    config = server.config if isinstance(server, ExpandedServer) else server
    source = expanded or config
    # The texts, or None while they have variables.
    address = command = None
    texts = (source.command or "", *source.args) if _is_stdio(config) else (source.url or "",)
    if expanded is not None or not any(has_variables(config, text) for text in texts):
        if _is_stdio(config):
            command = texts
        else:
            address = _parse_address(texts[0])
    for entry in policy.denied:
        if _matches(entry, config.name, command, address, denied=True):
            return f"denied by {entry.place}"
    if policy.allowed is None:
        return None
    kind = "command" if _is_stdio(config) else "url"
    strict = [entry for entry in policy.allowed if getattr(entry, kind) is not None]
    entries = strict or [entry for entry in policy.allowed if entry.name is not None]
    if strict and _is_stdio(config):
        known = file_variables
        if known is None and expanded is not None and config.env_file is not None:
            return f"the variables of its file ({config.place_of('env_file')}) are not known yet"
        redirection = _find_redirection(config, known or ())
        if redirection is not None:
            return redirection
    if strict and command is None and address is None:
        return None  # to be decided with the values of its variables
    if any(_matches(entry, config.name, command, address, denied=False) for entry in entries):
        return None
    if strict:
        return f"its {'command' if kind == 'command' else 'address'} is not in allowedMcpServers"
    return "it is not in allowedMcpServers"


def _is_stdio(config: ServerConfig) -> bool:
    return config.transport == "stdio"


def _find_redirection(config: ServerConfig, file_variables: Iterable[str]) -> str | None:
    """Return why a server's command can run other code than its words say, or None.

    Variables that the child inherits without being named don't count: the user sets them anyway.
    """
    found = [(name, config.place_of("env", name)) for name in config.env]
    found += [(name, config.place_of("forwarded")) for name in config.forwarded]
    found += [(name, config.place_of("env_file")) for name in file_variables]
    for name, place in found:
        if redirects_code(name):
            return (
                f"allowedMcpServers allows commands, and the variable {name_text(name)} ({place})"
                " can make a command run other code: remove it, or start a script that sets it and"
                " that the administrator allows"
            )
    if config.cwd is not None:
        return (
            f"allowedMcpServers allows commands, and a directory ({config.place_of('cwd')}) can"
            " make a command run other code: remove it, or start a script that enters it and that"
            " the administrator allows"
        )
    return None


def _matches(
    entry: PolicyEntry,
    name: str,
    command: Sequence[str] | None,
    address: _Address | None,
    *,
    denied: bool,
) -> bool:
    if entry.name is not None:
        return entry.name == name
    if entry.command is not None:
        if command is None:
            return False
        if denied:
            return _plain_command(entry.command) == _plain_command(command)
        return entry.command == tuple(command)
    return address is not None and _matches_url(entry.url or "", address, denied=denied)


def _plain_command(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command with the name of its program alone: `/usr/bin/npx` and `NPX.CMD` are npx."""
    program, *args = command
    name = _DIRECTORY.sub("", program.strip()).rstrip("/\\. ").lower()
    return (_PROGRAM_SUFFIX.sub("", name), *args)


def _parse_address(text: str) -> _Address:
    try:
        url = Url.parse(http_url(text))
    except ValueError:
        url = None
    return _Address(text.partition(":")[0].lower(), url)


@lru_cache(maxsize=1024)  # a list is compared with each server
def _parse_pattern(pattern: str) -> _UrlPattern | None:
    match = _URL_PATTERN.fullmatch(pattern)
    if match is None:
        return None
    return _UrlPattern(
        match["scheme"].lower(), plain_host(match["host"]), match["port"], match["target"]
    )


def _matches_url(pattern: str, address: _Address, *, denied: bool) -> bool:
    """Return True if an address matches a pattern, part by part.

    `*` in a host ends at the host: `https://*.example.com/*` doesn't match an address that has
    such a text in its path.
    """
    url, wanted = address.url, _parse_pattern(pattern)
    if url is None:
        return denied  # it cannot be compared, nor connected to
    if pattern == "*" or wanted is None:
        return pattern == "*" or denied
    if not matches_text(wanted.scheme, address.scheme):
        return False
    # `read` is True if one reading matches a list that denies, or all match one that allows.
    read = any if denied else all
    if not read(matches_text(wanted.host, host) for host in read_host(url.host)):
        return False
    if wanted.port is None:
        if not denied and url.port != DEFAULT_PORTS[url.scheme]:
            return False
    elif wanted.port != "*" and int(wanted.port) != url.port:
        return False
    if wanted.target is None:
        return True
    readings = read_target(url.target.decode())
    if readings is None:
        return denied
    paths = {reading.partition("?")[0] for reading in readings}
    if any(part in (".", "..") for path in paths for part in path.split("/")):
        return denied
    if "?" not in wanted.target:
        readings = frozenset(paths)
    # A denied path stays denied if its letters are encoded, or in other case.
    patterns = {wanted.target, unquote(wanted.target)}
    if denied:
        patterns = {each.lower() for each in patterns}
        readings = frozenset(each.lower() for each in readings)
    return read(any(matches_text(pattern, reading) for pattern in patterns) for reading in readings)


def matches_text(pattern: str, text: str) -> bool:
    """Return True if `text` is `pattern`, where `*` stands for any text. It takes linear time."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    if len(text) < len(first) + len(last) or not text.startswith(first):
        return False
    if not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True
