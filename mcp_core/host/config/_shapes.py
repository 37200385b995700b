"""Which program's file a configuration is: by its path, or by what its content shows.

Sources: the pages beside the rows of `CLIENT_FORMATS`.
"""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = [
    "SETTINGS_FILE",
    "SHAPES",
    "TARGETS",
    "find_config_format",
    "find_shape",
    "is_bare",
    "is_open",
    "is_own_name",
    "looks_like_servers",
    "member_at",
]

# Where servers are in files: the format, and the member's path. For a file whose path names no
# format, the first one counts.
SHAPES: Final = (
    ("claude-code", ("mcpServers",)),
    ("vscode", ("servers",)),
    ("codex", ("mcp_servers",)),
    ("zed", ("context_servers",)),
    ("vscode-settings", ("mcp", "servers")),
    ("opencode", ("mcp",)),
    ("goose", ("extensions",)),
)
# Members of an entry that say what it runs or connects to.
TARGETS: Final = frozenset({"command", "cmd", "url", "httpUrl", "serverUrl", "uri"})
_FORMAT_OF_FILE: Final = tuple(
    (re.compile(rf"(^|[/\\])(?:{pattern})$"), name)
    for pattern, name in (
        (r"[^/\\]*\.toml", "codex"),
        (r"claude_desktop_config\.json", "claude-desktop"),
        (r"\.cursor[/\\][^/\\]*", "cursor"),
        (r"\.vscode[/\\]settings\.json", "vscode-settings"),
        (r"(?:Code(?: - Insiders)?|VSCodium)[/\\]User[/\\]settings\.json", "vscode-settings"),
        (r"\.vscode[/\\][^/\\]*", "vscode"),
        (r"\.?[zZ]ed[/\\]settings\.json", "zed"),
        (r"opencode\.jsonc?", "opencode"),
        (r"\.copilot[/\\]mcp-config\.json|\.github[/\\]mcp\.json", "copilot-cli"),
        (r"(?:windsurf|\.codeium)[/\\]mcp_config\.json", "windsurf"),
        (r"cline_mcp_settings\.json", "cline"),
        (r"\.lmstudio[/\\]mcp\.json", "lm-studio"),
        (r"goose[/\\](?:config[/\\])?config\.(?:ya?ml|json)", "goose"),
        (r"settings\.json", "gemini"),
        (r"\.mcp(?:\.local)?\.json|\.claude\.json", "claude-code"),
    )
)
# A name that other programs use too: here the content decides, if it shows another format.
_SHARED_NAME: Final = re.compile(r"(^|[/\\])(?<!\.gemini[/\\])settings\.json$")
# Files with all settings of a program, which need not have servers.
SETTINGS_FILE: Final = re.compile(
    r"(^|[/\\])(?:(?:\.claude|settings|claude_desktop_config|opencode)\.jsonc?|config\.toml)$"
)


def find_config_format(file: str) -> str | None:
    """Return the name of the format that a file's path implies, or None if it implies none.

    Args:
        file: a path, with the separators of any system.
    """
    for pattern, name in _FORMAT_OF_FILE:
        if pattern.search(file):
            return name
    return None


def is_open(file: str) -> bool:
    """Return True if a file's path leaves its format to its content."""
    return find_config_format(file) is None or _SHARED_NAME.search(file) is not None


def looks_like_servers(value: Any) -> bool:
    """Return True if a value is an object that has an entry with a command or an address."""
    return isinstance(value, dict) and any(
        isinstance(entry, dict) and not TARGETS.isdisjoint(entry) for entry in value.values()
    )


def is_own_name(path: tuple[str, ...]) -> bool:
    """Return True if a member of this name has servers, even if it is empty."""
    return len(path) == 1 and path[0].lower().endswith("servers")


def member_at(root: dict[str, Any], path: tuple[str, ...]) -> Any:
    """Return the member at a path, or None if there is none."""
    value: Any = root
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def is_bare(root: dict[str, Any]) -> bool:
    """Return True if a file is a mapping of servers, without a member around them."""
    entries = [value for name, value in root.items() if name != "$schema"]
    return looks_like_servers(root) and all(isinstance(entry, dict) for entry in entries)


def find_shape(root: dict[str, Any]) -> str | None:
    """Return the format that a file's content shows, or None if it shows none."""
    for name, path in SHAPES:
        value = member_at(root, path)
        if looks_like_servers(value) or (is_own_name(path) and isinstance(value, dict)):
            schema = root.get("$schema")
            if path[0] == "mcp" and isinstance(schema, str) and "opencode" in schema:
                return "opencode"
            return name
    return None
