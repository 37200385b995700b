"""Members of a server's entry that restrict it: lists of tools, and unknown members.

1. Members that loosen, such as `autoApprove` and `trust`, are for other programs. They are ignored.
2. An unknown member that restricts is recognized by the words of its name, at any depth. Its author
   relies on it, so the server isn't used without it.
3. Lists have names of tools as the server has them, compared exactly. A pattern, a merged name or
   arguments after a name would match no tool, and a list that denies would be silently empty.

Sources: codex `codex-rs/config/src/mcp_types.rs`; gemini-cli `docs/tools/mcp-server.md` and
`packages/core/src/tools/mcp-client.ts`; the settings of GitHub Copilot (`tools`), Goose
(`available_tools`), Roo Code, Windsurf and Kiro (`disabledTools`), VS Code (`sandbox`) and the
Responses API (`allowed_tools`, `require_approval`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_core.host._names import merged_prefix

from ._members import MemberReader

__all__ = ["OWN_TOOL_LISTS", "asks_always", "check_restrictions", "read_tool_list"]

# The members that list allowed and denied tools, in formats whose own program has no such members.
OWN_TOOL_LISTS: Final = ("allowedTools", "deniedTools")

# `readOnlyTools`, `read_only_tools` and `read-only-tools` have the same words.
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Words in the name of a member that denies something, and of one that lists all that is allowed.
_DENYING: Final = frozenset(
    """
    deny denied denies denylist disable disabled disables disallow disallowed exclude excluded
    excludes block blocked blocks blocklist blacklist forbid forbidden prohibit prohibited readonly
    restrict restricted restriction restrictions sandbox sandboxed sandboxing confine confined
    isolate isolated isolation
    """.split()
)
_ALLOWING: Final = frozenset(
    """
    allow allowed allows allowlist whitelist enable enabled enables include included includes
    permit permitted permission permissions policy policies active activated
    """.split()
)
# The same, if the member is about tools.
_DENYING_TOOLS: Final = frozenset(
    """
    except hide hidden ignore ignored omit omitted reject rejected remove removed skip skipped
    without
    """.split()
)
_ALLOWING_TOOLS: Final = frozenset(
    "available expose exposed filter filters filtered limit limited only select selected".split()
)
_ASKING: Final = frozenset("approval approvals confirm confirmation consent ask asks".split())
# With one of these words, a member saves the user a question: `alwaysAllow`, `autoApprove`.
_LOOSENING: Final = frozenset("always auto automatic automatically trust trusted".split())
# Members with one of these words don't limit what the server can do: `disableTelemetry`,
# `readOnlyHint`.
_HARMLESS: Final = frozenset(
    """
    analytics cache caching color colors debug hint log logging logs progress reconnect restart
    retries retry start telemetry timeout tracking update updates watch
    """.split()
)
_TOOLS: Final = frozenset("tool tools toolset toolsets".split())
_FILLING: Final = frozenset("default is list lists mode name names".split())
_VERBS: Final = _DENYING | _ALLOWING | _DENYING_TOOLS | _ALLOWING_TOOLS | _TOOLS | _FILLING
# Values of a member about questions that require no more questions than a host asks by itself.
_UNASKED: Final = ("never", "none", "auto", "approve", "approved", "allow", "default")
_MAX_DEPTH: Final = 100  # deeper ones are a problem of their own
# A text that looks like more than one tool, or has a variable, which isn't replaced in lists.
_NO_PLAIN_NAME: Final = re.compile(r"[*?()\[\]{}|^$]")


def read_tool_list(reader: MemberReader, member: str, server: str) -> tuple[str, ...] | None:
    """Return a list of names of tools, or None without the member.

    Args:
        reader: the entry.
        member: the list.
        server: the server's name.
    """
    if reader.rest.get(member) is None:
        reader.rest.pop(member, None)
        return None
    names = reader.texts(member, restricts=True)
    reader.keep_place(member)
    for n, name in enumerate(names):
        if not name or name != name.strip():
            problem = "is empty, or has white space around it"
        elif _NO_PLAIN_NAME.search(name):
            problem = (
                "is a pattern, a variable, or a name with arguments, which are not understood:"
                " write the name of each tool alone"
            )
        elif name.startswith(merged_prefix(server)):
            problem = "is a merged name: write the name that the server gives to it"
        else:
            continue
        reader.add(problem, member, n, restricts=True)
    return names


def asks_always(extra: Mapping[str, Any]) -> bool:
    """Return True if Codex is to ask before each call of a tool of a server.

    Codex can limit this to some tools. Here it applies to all tools, so that no question is lost.

    Args:
        extra: the members of the entry that `ServerConfig` has no field for.
    """
    tools = extra.get("tools")
    settings = tools.values() if isinstance(tools, dict) else ()
    modes = [each.get("approval_mode") for each in settings if isinstance(each, dict)]
    return any(
        mode is not None and mode not in _UNASKED
        for mode in (extra.get("default_tools_approval_mode"), *modes)
    )


def check_restrictions(reader: MemberReader, lists: tuple[str, str], *, asks: bool) -> None:
    """Add a problem for each member that wasn't read and restricts the server.

    Args:
        reader: the entry, without what was read.
        lists: the members with the lists of tools that the format has.
        asks: whether `asks_always` reads what the entry says about questions.
    """
    allowed, denied = lists
    for path, is_of_tools in _find_restricting(reader.rest, asks=asks):
        cure = (
            f"name tools in {allowed} or {denied}"
            if is_of_tools
            else f"remove it, or restrict tools with {allowed} and {denied}"
        )
        reader.add(
            "restricts the server in a way that is not understood, so the server is not used:"
            f" {cure}; `disabled` turns a whole server off",
            *path,
            restricts=True,
        )


def _find_restricting(
    members: Mapping[str, Any], *, asks: bool
) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the path of each member that restricts, and whether it is about tools."""
    level: list[tuple[tuple[str, ...], Any]] = [((name,), each) for name, each in members.items()]
    for _ in range(_MAX_DEPTH):
        inner: list[tuple[tuple[str, ...], Any]] = []
        for path, value in level:
            words = _words(path[-1])
            about_tools = bool(_TOOLS & words) or any(_TOOLS & _words(name) for name in path[:-1])
            if _restricts(words, value, path, about_tools=about_tools, asks=asks):
                yield path, about_tools
            elif isinstance(value, dict):
                inner += [((*path, name), each) for name, each in value.items()]
        level = inner


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def _restricts(
    words: set[str], value: Any, path: tuple[str, ...], *, about_tools: bool, asks: bool
) -> bool:
    """Return True if a member restricts. An empty list denies nothing, and allows nothing."""
    is_bare = words <= _VERBS
    if words & _HARMLESS:
        return False
    if len(path) > 1 and _words(path[-2]) <= _TOOLS and not is_bare:
        return value is False  # a tool's name, with its settings
    is_something = value not in (None, False, "", 0, [], {})
    if words & _DENYING or {"read", "only"} <= words or (about_tools and words & _DENYING_TOOLS):
        return is_something
    if words & _LOOSENING:
        return False
    if words & _ASKING:
        return not asks and is_something and value not in _UNASKED
    is_list = isinstance(value, list) and "*" not in value
    if words & _ALLOWING or (about_tools and words & _ALLOWING_TOOLS):
        if is_bare and (len(path) == 1 or about_tools):
            return is_list or value is False or (isinstance(value, str | dict) and is_something)
        return is_list
    if words and words <= _TOOLS:  # a list of tables describes tools
        return value is False or (is_list and (not value or isinstance(value[0], str)))
    return False
