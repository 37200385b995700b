"""Read how opencode writes variables, and how it restricts servers by the names of their tools.

A tool is `SERVER_TOOL` there, and patterns with `*` and `?` turn tools off, in `tools` and in
`permission`, for all agents or for one. What may restrict a server does: a rule that allows tools
again is not followed.

Sources: opencode.ai/v1/docs/mcp-servers and opencode.ai/v2/docs/mcp-servers, "Glob patterns";
opencode.ai/docs/tools and opencode.ai/docs/permissions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ._policy import matches_text
from ._tree import ConfigTree, MemberPath

__all__ = ["ToolRestriction", "find_restrictions", "translate_entry"]

# What the rules of a file do with a server: turn it off, ask about each of its tools, or turn off
# some tools, which isn't understood.
ToolEffect: TypeAlias = Literal["off", "asks", "partly"]

_VARIABLE: Final = re.compile(r"\{env:([^{}]*)\}")
# What would be a variable after the translation, and what opencode replaces by a file's content.
_FOREIGN: Final = re.compile(r"\$\{|\{file:")
# What opencode replaces by "_" in the name of a server.
_REPLACED: Final = re.compile(r"[^a-zA-Z0-9_-]")
# Versions and systems differ in "-" and in upper case.
_DIFFERING: Final = re.compile(r"[^a-z0-9?]")
# From one of these on, a pattern may match anything: some versions have more than "*" and "?".
_WILD: Final = re.compile(r"[*\[{(!\\]")
_TABLES: Final = ("tools", "permission", "permissions")
_AGENTS: Final = ("agent", "agents", "mode", "modes")
# Characters of patterns, times servers, that are compared: a fraction of a second.
_MAX_COMPARED: Final = 10_000_000


def translate_entry(entry: Any) -> tuple[Any, list[tuple[MemberPath, str]]]:
    """Return an entry with `${env:NAME}` in place of `{env:NAME}`, and what has no translation.

    That is the path of each text that has it, and what is in the text.
    """
    foreign: list[tuple[MemberPath, str]] = []

    def translate(value: Any, *path: str | int) -> Any:
        if isinstance(value, dict):
            return {name: translate(each, *path, name) for name, each in value.items()}
        if isinstance(value, list):
            return [translate(each, *path, n) for n, each in enumerate(value)]
        if not isinstance(value, str):
            return value
        found = _FOREIGN.search(value)
        if found is not None:
            foreign.append((path, found[0]))
        return _VARIABLE.sub(r"${env:\1}", value)

    return translate(entry), foreign


class ToolRestriction(NamedTuple):
    """How the rules of a file restrict a server, and the path of the rule that does."""

    effect: ToolEffect
    path: MemberPath


class _Rule(NamedTuple):
    pattern: str
    effect: ToolEffect
    path: MemberPath


def find_restrictions(tree: ConfigTree, servers: Iterable[str]) -> dict[str, ToolRestriction]:
    """Return the servers that the file restricts by the names of their tools.

    Args:
        tree: the file.
        servers: the names of its servers.
    """
    names = [*servers]
    rules = [*_find_rules(tree, (), tree.value)]
    if sum(len(rule.pattern) + 1 for rule in rules) * len(names) > _MAX_COMPARED:
        rules = [_Rule("*", "partly", rules[0].path)]
    heads = [_head(rule.pattern) for rule in rules]
    found: dict[str, ToolRestriction] = {}
    for name in names:
        restriction = _restriction(name, rules, heads)
        if restriction is not None:
            found[name] = restriction
    return found


def _restriction(
    server: str, rules: list[_Rule], heads: list[tuple[str, bool]]
) -> ToolRestriction | None:
    """Return the strongest of what the rules do with a server: off, partly off, asks."""
    known = {server, _REPLACED.sub("_", server)}
    folded = _fold(f"{server}_")
    partly: ToolRestriction | None = None
    asks: ToolRestriction | None = None
    for (pattern, effect, path), (head, is_open) in zip(rules, heads, strict=True):
        is_all = pattern in known or (
            pattern.endswith("*") and any(matches_text(pattern, f"{name}_") for name in known)
        )
        if is_all and effect == "off":
            return ToolRestriction("off", path)
        if is_all and effect == "asks":
            asks = asks or ToolRestriction("asks", path)
        elif is_all or _may_match(head, is_open, folded):
            partly = partly or ToolRestriction("partly", path)
    return partly or asks


def _find_rules(tree: ConfigTree, path: MemberPath, value: Any) -> Iterator[_Rule]:
    """Yield the rules in the object at a path, which is the file itself or an agent."""
    if not isinstance(value, dict):
        return
    for name, _ in tree.repeated(path):
        if name in _TABLES or (not path and name in _AGENTS):
            yield _Rule("*", "partly", (*path, name))  # the other one isn't known
    for name in _TABLES:
        table, at = value.get(name), (*path, name)
        if isinstance(table, dict):
            yield from (_Rule("*", "partly", (*at, each)) for each, _ in tree.repeated(at))
            rules = [(pattern, each, (*at, pattern)) for pattern, each in table.items()]
        elif isinstance(table, list):
            rules = [(*_listed(each), (*at, n)) for n, each in enumerate(table)]
        else:
            rules = [("*", "allow" if table is None else table, at)]
        for pattern, each, rule_path in rules:
            effect = _effect(each)
            if effect == "off" and path:
                effect = "partly"  # another agent may have the tools
            if effect is not None:
                yield _Rule(pattern, effect, rule_path)
    for name in () if path else _AGENTS:
        agents = value.get(name)
        if isinstance(agents, dict):
            yield from (_Rule("*", "partly", (name, each)) for each, _ in tree.repeated((name,)))
            for agent, each in agents.items():
                yield from _find_rules(tree, (name, agent), each)


def _listed(rule: Any) -> tuple[str, Any]:
    """Return the pattern and the value of a rule in an array."""
    if not isinstance(rule, dict):
        return "*", {"": rule}
    pattern, value = rule.get("action"), rule.get("effect")
    is_all = rule.get("resource", "*") == "*"
    return pattern if isinstance(pattern, str) else "*", value if is_all else {"": value}


def _effect(value: Any) -> ToolEffect | None:
    """Return what a value does with all tools that its pattern matches; None if it allows them."""
    if value is True or value == "allow":
        return None
    if value is False or value == "deny":
        return "off"
    if value == "ask":
        return "asks"
    if isinstance(value, dict) and all(each == "allow" for each in value.values()):
        return None
    return "partly"


def _fold(text: str) -> str:
    return _DIFFERING.sub("_", text.lower())


def _head(pattern: str) -> tuple[str, bool]:
    """Return a pattern up to the first "*", folded, and whether it has one."""
    wild = _WILD.search(pattern)
    return _fold(pattern[: wild.start()] if wild else pattern), wild is not None


def _may_match(head: str, is_open: bool, prefix: str) -> bool:
    """Return True if a pattern matches any text that begins with `prefix`."""
    if len(head) < len(prefix) and not is_open:
        return False
    if "?" not in head:
        return prefix.startswith(head) or head.startswith(prefix)
    return all(one in ("?", other) for one, other in zip(head, prefix, strict=False))
