"""Settings beside the servers of a file that restrict them: turn them off, or some of their tools.

What may restrict a server does. A rule that isn't understood leaves out the servers that it may
concern. Settings that loosen, such as lists of servers that need no question, are ignored: the host
asks its own questions. opencode's rules are in `_opencode`.

Sources: zed `docs/src/ai/tool-permissions.md` and `docs/src/ai/mcp.md`; gemini-cli
`docs/reference/configuration.md` and `packages/core/src/policy/config.ts` (tools.exclude,
admin.mcp.enabled); VS Code, settings `chat.mcp.access` and, up to 1.103, `chat.mcp.enabled`; Claude
Code, `disabledMcpServers` in `~/.claude.json`, anthropics/claude-code issues 44845 and 78314.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ._shapes import member_at
from ._tree import ConfigTree, MemberPath

__all__ = ["BesideEffect", "Restriction", "find_other_projects", "find_restrictions_beside"]

# The effects of a setting on a server: turn it off, deny some of its tools, allow only some, ask
# about each call, or something that isn't understood.
BesideEffect: TypeAlias = Literal["off", "denies", "allows", "asks", "unclear"]

_DENYING_NAME: Final = re.compile(
    r"(?:disabled?|blocked|excluded?)_?mcp_?(?:json)?_?servers", re.IGNORECASE
)
# A tool of Gemini CLI, and the only one that takes arguments in a list.
_SHELL: Final = re.compile(r"(?:run_shell_command|ShellTool)\(.*\)", re.DOTALL)
_WILD: Final = re.compile(r"[*?(){}\[\]|^$\s]")
_MAX_COMPARED: Final = 30_000  # entries, times servers: a fraction of a second
# The settings of each format, for what is there twice.
_SETTINGS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "gemini": (("tools", "exclude"), ("excludeTools",), ("admin", "mcp")),
    "vscode-settings": (("chat.mcp.access",), ("chat.mcp.enabled",)),
    "zed": (
        ("agent", "tool_permissions"),
        ("agent", "profiles"),
        ("agent", "default_profile"),
    ),
}
_ZED_MODES: Final = ("allow", "confirm", "deny", None)


class Restriction(NamedTuple):
    """The effect that the setting at a path has on a server. `tools` are denied or allowed ones."""

    server: str
    effect: BesideEffect
    path: MemberPath
    tools: tuple[str, ...] = ()


def find_restrictions_beside(
    format: str, tree: ConfigTree, servers: Iterable[str]
) -> Iterator[Restriction]:
    """Yield what the settings of a file do with its servers, in no order.

    Args:
        format: the file's format.
        tree: the file.
        servers: the names of its servers.
    """
    root, names = tree.value, [*servers]
    if not isinstance(root, dict) or not names:
        return
    if format == "gemini":
        yield from _of_gemini(root, names)
    else:
        for member in filter(_DENYING_NAME.fullmatch, root):
            yield from _of_list(root[member], (member,), names)
    if format == "zed":
        yield from _of_zed(root, names)
    elif format == "vscode-settings":
        yield from _of_vscode(root, names)
    for path in _find_repeated(tree, _SETTINGS.get(format, ())):
        yield from _for_all(names, "unclear", *path)


def _find_repeated(tree: ConfigTree, settings: Iterable[tuple[str, ...]]) -> Iterator[MemberPath]:
    """Yield the paths that are there twice, in the settings and on the way to them.

    One of the two may restrict, and programs read either.
    """
    for name, _ in tree.repeated(()):
        if _DENYING_NAME.fullmatch(name):
            yield (name,)
    for setting in settings:
        for depth, member in enumerate(setting):
            if any(name == member for name, _ in tree.repeated(setting[:depth])):
                yield setting[: depth + 1]
        inside: list[tuple[MemberPath, Any]] = [(setting, member_at(tree.value, setting))]
        for path, value in inside:  # which grows
            if isinstance(value, dict):
                yield from ((*path, name) for name, _ in tree.repeated(path))
                inside += (((*path, name), each) for name, each in value.items())


def find_other_projects(root: Mapping[str, Any], servers: Iterable[str]) -> Iterator[MemberPath]:
    """Yield the lists by which `~/.claude.json` turns off servers of the file in one project."""
    names = frozenset(servers)
    projects = root.get("projects")
    for project, settings in projects.items() if isinstance(projects, dict) else ():
        for member in settings if isinstance(settings, dict) else ():
            listed = settings[member]
            if (
                _DENYING_NAME.fullmatch(member)
                and isinstance(listed, list)
                and names.intersection(each for each in listed if isinstance(each, str))
            ):
                yield ("projects", project, member)


def _for_all(names: Iterable[str], effect: BesideEffect, *path: str | int) -> Iterator[Restriction]:
    return (Restriction(name, effect, path) for name in names)


def _of_list(listed: Any, path: MemberPath, names: list[str]) -> Iterator[Restriction]:
    """Yield what a list of servers that are turned off does."""
    if listed is None:
        return
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        yield from _for_all(names, "unclear", *path)
        return
    yield from _for_all(set(listed).intersection(names), "off", *path)


def _of_gemini(root: dict[str, Any], names: list[str]) -> Iterator[Restriction]:
    if member_at(root, ("admin", "mcp", "enabled")) is False:
        yield from _for_all(names, "off", "admin", "mcp", "enabled")
    for path in ("tools", "exclude"), ("excludeTools",):  # the second one up to version 0.3
        listed = member_at(root, path)
        if listed is None:
            continue
        if not isinstance(listed, list) or len(listed) * len(names) > _MAX_COMPARED:
            yield from _for_all(names, "unclear", *path)
            continue
        for number, tool in enumerate(listed):
            for name in names:
                yield from _of_excluded(tool, name, (*path, number))


def _of_excluded(tool: Any, server: str, path: MemberPath) -> Iterator[Restriction]:
    """Yield what an entry of Gemini CLI's list of tools does with a server.

    A server's tool is `mcp_SERVER_TOOL` there, in older versions `SERVER__TOOL`, or plain.
    """
    if not isinstance(tool, str):
        yield Restriction(server, "unclear", path)
        return
    if _SHELL.fullmatch(tool):
        return
    prefixes = (f"mcp_{server}_", f"mcp__{server}__", f"{server}__")
    if tool in ("*", "mcp_*", "*__*", *(f"{prefix}*" for prefix in prefixes)):
        yield Restriction(server, "off", path)
    elif tool and not _WILD.search(tool):
        inner = [tool.removeprefix(each) for each in prefixes if tool.startswith(each)]
        yield Restriction(server, "denies", path, (tool, *inner))
    else:
        head = _WILD.split(tool, maxsplit=1)[0]
        is_qualified = head.startswith("mcp_") or "__" in head  # else it may be a plain name
        if not is_qualified or any(
            prefix.startswith(head) or head.startswith(prefix) for prefix in prefixes
        ):
            yield Restriction(server, "unclear", path)


def _of_vscode(root: Mapping[str, Any], names: list[str]) -> Iterator[Restriction]:
    for member in "chat.mcp.access", "chat.mcp.enabled":
        access = root.get(member)
        if access in ("none", False):
            yield from _for_all(names, "off", member)
        elif access not in (None, "all", True):  # "registry": only servers of a registry
            yield from _for_all(names, "unclear", member)


def _of_zed(root: Mapping[str, Any], names: list[str]) -> Iterator[Restriction]:
    agent = root.get("agent")
    if isinstance(agent, dict):
        yield from _of_zed_permissions(agent.get("tool_permissions"), names)
        yield from _of_zed_profile(agent, names)


def _of_zed_permissions(permissions: Any, names: list[str]) -> Iterator[Restriction]:
    """Yield what Zed's permissions do, where a tool is `mcp:SERVER:TOOL`."""
    path = ("agent", "tool_permissions")
    if permissions is None:
        return
    rules = permissions.get("tools", {}) if isinstance(permissions, dict) else None
    if (
        not isinstance(rules, dict)
        or permissions.get("default") not in _ZED_MODES
        or len(rules) * len(names) > _MAX_COMPARED
    ):
        yield from _for_all(names, "unclear", *path)
        return
    default = permissions.get("default")
    for name in names:
        prefix = f"mcp:{name}:"
        own = {tool: rule for tool, rule in rules.items() if tool.startswith(prefix)}
        if default == "confirm":
            yield Restriction(name, "asks", (*path, "default"))
        if default == "deny":
            allowed = (
                tool.removeprefix(prefix)
                for tool, rule in own.items()
                if isinstance(rule, dict) and rule.get("default") in ("allow", "confirm")
            )
            yield Restriction(name, "allows", (*path, "default"), tuple(allowed))
        for tool, rule in own.items():
            effect = "unclear" if _WILD.search(tool) else _zed_effect(rule)
            if effect is not None:
                denied = (tool.removeprefix(prefix),) if effect == "denies" else ()
                yield Restriction(name, effect, (*path, "tools", tool), denied)


def _zed_effect(rule: Any) -> BesideEffect | None:
    if not isinstance(rule, dict) or rule.get("default") not in _ZED_MODES:
        return "unclear"
    if rule.get("default") == "deny" or rule.get("always_deny"):
        return "denies"  # also if only some arguments are denied
    return "asks" if rule.get("default") == "confirm" or rule.get("always_confirm") else None


def _of_zed_profile(agent: dict[str, Any], names: list[str]) -> Iterator[Restriction]:
    """Yield what the profile does that Zed begins with, if the file has it."""
    profile_name = agent.get("default_profile", "write")
    if not isinstance(profile_name, str):
        yield from _for_all(names, "unclear", "agent", "default_profile")
        return
    profile = member_at(agent, ("profiles", profile_name))
    if not isinstance(profile, dict):
        return
    path = ("agent", "profiles", profile_name)
    is_closed = profile.get("enable_all_context_servers") is False
    for name in names:
        tools = member_at(profile, ("context_servers", name, "tools"))
        listed = tools if isinstance(tools, dict) else {}
        if is_closed:
            allowed = tuple(tool for tool, is_on in listed.items() if is_on is True)
            yield Restriction(name, "allows", (*path, "enable_all_context_servers"), allowed)
        denied = tuple(tool for tool, is_on in listed.items() if is_on is not True)
        if denied:
            at = (*path, "context_servers", name, "tools")
            yield Restriction(name, "denies", at, denied)
