"""Settings beside the servers of a file that restrict them: turn them off, or some of their tools.

What may restrict a server does. A rule that isn't understood leaves out the servers that it may
concern. Settings that loosen, such as lists of servers that need no question, are ignored: the host
asks its own questions. opencode's rules are in `_opencode`.

Sources: zed `docs/src/ai/tool-permissions.md`, `docs/src/ai/mcp.md`, `assets/settings/default.json`
(the profiles write, ask and minimal) and `crates/agent_settings/src/agent_profile.rs`; gemini-cli
`docs/reference/configuration.md` and `packages/core/src/policy/config.ts` (tools.exclude,
admin.mcp.enabled); VS Code, settings `chat.mcp.access` and, up to 1.103, `chat.mcp.enabled`; Claude
Code, `disabledMcpServers` in `~/.claude.json`, anthropics/claude-code issues 44845 and 78314.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from mcp_core.host._names import replace_unwritten

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
_MAX_ENTRY: Final = 300  # characters of a tool's name with its server's
_WRITTEN_START: Final = 28  # characters of a long name that Gemini CLI keeps at its beginning
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
_ZED_PROFILES: Final = ("write", "ask", "minimal")  # which Zed has without a file
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
    """Yield the lists by which `~/.claude.json` may turn off servers of the file in one project."""
    names = [*servers]
    projects = root.get("projects")
    for project, settings in projects.items() if isinstance(projects, dict) else ():
        for member in settings if isinstance(settings, dict) else ():
            if _DENYING_NAME.fullmatch(member) and any(_of_list(settings[member], (), names)):
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


def _setting(root: dict[str, Any], path: tuple[str, ...]) -> tuple[Any, MemberPath]:
    """Return the value at a path, None without one, and the path of what isn't an object, or ()."""
    value: Any = root
    for depth, member in enumerate(path):
        if value is None:
            break
        if not isinstance(value, dict):
            return None, path[:depth]
        value = value.get(member)
    return value, ()


def _of_gemini(root: dict[str, Any], names: list[str]) -> Iterator[Restriction]:
    path: tuple[str, ...] = ("admin", "mcp", "enabled")
    is_on, wrong = _setting(root, path)
    if is_on is False:
        yield from _for_all(names, "off", *path)
    elif wrong or not (is_on is None or is_on is True):
        yield from _for_all(names, "unclear", *(wrong or path))
    prefixes = {name: _gemini_prefixes(name) for name in names}
    for path in ("tools", "exclude"), ("excludeTools",):  # the second one up to version 0.3
        listed, wrong = _setting(root, path)
        if wrong or not (listed is None or isinstance(listed, list)):
            yield from _for_all(names, "unclear", *(wrong or path))
        elif listed is not None and len(listed) * len(names) > _MAX_COMPARED:
            yield from _for_all(names, "unclear", *path)
        else:
            for number, tool in enumerate(listed or ()):
                yield from _of_excluded(tool, prefixes, (*path, number))


def _gemini_prefixes(server: str) -> tuple[str, ...]:
    """Return what may be before the name of a server's tool in Gemini CLI's list.

    It is `mcp_SERVER_` there, in older versions `SERVER__`. The first three are as the file has the
    name, the others as the program writes it.
    """
    prefixes = (f"mcp_{server}_", f"mcp__{server}__", f"{server}__")
    return (*prefixes, *(replace_unwritten(prefix) for prefix in prefixes))


def _of_excluded(
    tool: Any, prefixes: Mapping[str, tuple[str, ...]], path: MemberPath
) -> Iterator[Restriction]:
    """Yield what an entry of Gemini CLI's list of tools does with the servers."""
    if isinstance(tool, str) and _SHELL.fullmatch(tool):
        return
    if not isinstance(tool, str) or len(tool) > _MAX_ENTRY:
        yield from _for_all(prefixes, "unclear", *path)
        return
    if tool in ("*", "mcp_*", "*__*"):
        yield from _for_all(prefixes, "off", *path)
        return
    head = _WILD.split(tool, maxsplit=1)[0]
    is_whole = bool(tool) and len(head) == len(tool)
    is_qualified = head.startswith("mcp_") or "__" in head  # else it may be a plain name
    for server, own in prefixes.items():
        if tool.endswith("*") and tool[:-1] in own:
            yield Restriction(server, "off", path)
        elif is_whole:
            inner = (tool[len(each) :] for each in own if tool.startswith(each))
            yield Restriction(server, "denies", path, (tool, *inner))
        elif not is_qualified or any(_may_begin(each, head) for each in own):
            yield Restriction(server, "unclear", path)


def _may_begin(prefix: str, head: str) -> bool:
    """Return True if a name with this prefix may match a pattern with this beginning.

    A long name is shortened behind its first characters.
    """
    head = head[:_WRITTEN_START]
    return prefix.startswith(head) or head.startswith(prefix)


def _of_vscode(root: Mapping[str, Any], names: list[str]) -> Iterator[Restriction]:
    for member in "chat.mcp.access", "chat.mcp.enabled":
        access = root.get(member)
        if access == "none" or access is False:
            yield from _for_all(names, "off", member)
        # "registry": only servers of a registry
        elif access is not True and access not in (None, "all"):
            yield from _for_all(names, "unclear", member)


def _of_zed(root: Mapping[str, Any], names: list[str]) -> Iterator[Restriction]:
    agent = root.get("agent")
    if isinstance(agent, dict):
        yield from _of_zed_permissions(agent.get("tool_permissions"), names)
        yield from _of_zed_profile(agent, names)
    elif agent is not None:
        yield from _for_all(names, "unclear", "agent")


def _of_zed_permissions(permissions: Any, names: list[str]) -> Iterator[Restriction]:
    """Yield what Zed's permissions do, where a tool is `mcp:SERVER:TOOL`."""
    path = ("agent", "tool_permissions")
    if permissions is None:
        return
    rules = _object(permissions.get("tools")) if isinstance(permissions, dict) else None
    if (
        rules is None
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


def _object(value: Any) -> dict[str, Any] | None:
    """Return an object of the file, {} in the place of null, and None for anything else."""
    return {} if value is None else value if isinstance(value, dict) else None


def _of_zed_profile(agent: dict[str, Any], names: list[str]) -> Iterator[Restriction]:
    """Yield what the profile does that Zed begins with.

    A server's tools are on by `enable_all_context_servers`, which only the profile `write` of Zed's
    own has, or by their names.
    """
    at: tuple[str, ...] = ("agent", "default_profile")
    profile_name = agent.get("default_profile")
    profile_name = "write" if profile_name is None else profile_name
    profiles = _object(agent.get("profiles"))
    if not isinstance(profile_name, str) or profiles is None:
        at = at if profiles is not None else ("agent", "profiles")
        yield from _for_all(names, "unclear", *at)
        return
    if profiles.get(profile_name) is not None:
        at = ("agent", "profiles", profile_name)
    elif profile_name not in _ZED_PROFILES:  # of another file, or none
        yield from _for_all(names, "unclear", *at)
        return
    profile = _object(profiles.get(profile_name))
    servers = _object(profile.get("context_servers")) if profile is not None else None
    if profile is None or servers is None:
        yield from _for_all(names, "unclear", *at, *(("context_servers",) if profile else ()))
        return
    is_open = profile.get("enable_all_context_servers")
    if is_open is not None:
        flag_at: tuple[str, ...] = (*at, "enable_all_context_servers")
    else:
        flag_at, is_open = at, profile_name == "write"
    if not isinstance(is_open, bool) and profile_name in ("write", "ask"):
        yield from _for_all(names, "unclear", *flag_at)
        return
    for name in names:
        preset = _object(servers.get(name))
        listed = _object(preset.get("tools")) if preset is not None else None
        if preset is None or listed is None:
            tools = ("tools",) if preset else ()
            yield Restriction(name, "unclear", (*at, "context_servers", name, *tools))
            continue
        if is_open is not True:
            allowed = tuple(tool for tool, is_on in listed.items() if is_on is True)
            yield Restriction(name, "allows", flag_at, allowed)
        denied = tuple(tool for tool, is_on in listed.items() if is_on is not True)
        if denied:
            yield Restriction(name, "denies", (*at, "context_servers", name, "tools"), denied)
