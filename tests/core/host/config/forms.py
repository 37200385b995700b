"""The reading of each form of an entry in the file of each program, in `forms.txt`.

    python -m tests.core.host.config.forms

writes the file again. A member that one program has and another one hasn't shows in both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import tomlkit

from mcp_core.host import (
    CLIENT_FORMATS,
    InvalidConfig,
    import_servers,
    parse_env_file,
    read_config,
)
from tests.core.host.config.readings import text_of_reading
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_core.host import ClientFormat

__all__ = ["form_read", "forms_to_read", "kept_forms"]

_FILE: Final = Path(__file__).with_name("forms.txt")

# Lines of a reading that say nothing here.
_COMMON: Final = ("    place:", "    variables:", "    command: 'x'", "    transport: 'stdio'")

# Members of an entry beside the program or the address that it needs in the file of each program.
_STDIO_FORMS: Final[tuple[dict[str, Any], ...]] = (
    {"args": ["a", 1, 1.5]},
    {"args": ["a", True, None, ""]},
    {"env": {"A": "1", "B": None, "N": 1, "": "x"}, "cwd": "/d"},
    {"env": {"PATH": None, "path": None, "NODE_OPTIONS": "x"}},
    {"env": {"A": "1"}, "environment": {"B": "2"}, "envs": {"C": "3"}},
    {"environment": {"PYTHONPATH": "/x"}, "envs": {"PYTHONPATH": "/x"}},
    {"env_keys": ["A"], "env_vars": ["A", {"name": "B"}, {"name": "C", "source": "local"}]},
    {"env_vars": [{"name": "C", "source": "remote"}, {"name": ""}, "", "\x00", 1]},
    {"env_vars": "A", "envFile": "/f.env"},
    {"envFile": "", "cwd": ""},
    {"type": "stdio"},
    {"type": "Local", "transport": "STDIO"},
    {"type": "http"},
    {"type": "stdio", "transportType": "sse"},
    {"type": "builtin", "transport": 1},
    {"disabled": True},
    {"disabled": False, "enabled": True},
    {"enabled": False},
    {"disabled": "yes", "enabled": 0},
    {"allowedTools": ["a"], "includeTools": ["b"], "enabled_tools": ["c"], "tools": ["d"]},
    {"deniedTools": ["a"], "excludeTools": ["b"], "disabled_tools": ["c"], "disabledTools": ["d"]},
    {"tools": ["*"], "available_tools": []},
    {"tools": [], "available_tools": ["x"], "allowedTools": [], "deniedTools": []},
    {"alwaysAllow": ["a"], "trust": True, "default_tools_approval_mode": "prompt"},
    *(
        {name: number}
        for name in ("timeout", "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec")
        for number in (-1, 0, 0.5, 1, 999, 1000, 1001)
    ),
    {"startup_timeout_sec": 2, "startup_timeout_ms": 5000, "timeout": True},
    {"timeout": "5"},
    {"url": "https://h/"},
    {"httpUrl": "https://h/", "serverUrl": "https://g/"},
)  # fmt: skip
_REMOTE_FORMS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"type": "http"},
    {"type": "sse"},
    {"type": "streamable-http"},
    {"type": "streamable_http", "transport": "http"},
    {"type": "ws"},
    {"type": "WebSocket"},
    {"type": "remote"},
    {"type": "stdio"},
    {"type": "x"},
    {"type": 1},
    {"headers": {"A": "1", "a": "2"}, "http_headers": {"B": "1", "b": "2"}},
    {"headers": {"A": 1}, "http_headers": ["B"]},
    {"env_http_headers": {"X": "Y"}, "bearer_token_env_var": "T"},
    {"args": ["a"], "env": {"A": "1"}},
)
# Whole entries.
_ENTRIES: Final[tuple[Any, ...]] = (
    {}, {"cmd": "x"}, {"endpoint": "x", "baseUrl": "x"}, {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5},
    {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}, {"type": "stdio"}, {"type": "sse"},
    {"httpUrl": "https://h/"}, {"command": ["x", "y"]}, {"command": ["x"], "args": ["z"]},
    {"command": []}, {"command": ""}, {"command": 1}, {"url": ""}, {"command": None, "url": None},
    5, [], "x",
)  # fmt: skip

# Other members of a whole file, by the name of its program.
_LISTS_OF_GEMINI: Final[tuple[dict[str, Any], ...]] = (
    {"mcp": {"allowed": ["a", "b"], "excluded": ["B "]}},
    {"mcp": {"allowed": ["a", "b"]}, "allowMCPServers": ["b", "c"]},
    {"mcp": {"allowed": ["a"]}, "allowMCPServers": None, "excludeMCPServers": ["A"]},
    {"mcp": {"allowed": None}, "allowMCPServers": ["b"]},
    {"mcp": {"allowed": "a"}},
    {"mcp": {"excluded": [1]}},
    {"mcp": []},
    {"mcp": {}},
    {"allowedTools": ["x"]},
)
_INPUTS: Final[tuple[Any, ...]] = (
    {},
    [5, {}, {"id": "a"}, {"id": "a", "type": "x"}, {"id": ""}],
    [
        {
            "id": "b",
            "type": "pickString",
            "description": "d",
            "password": True,
            "default": "x",
            "options": ["x", {"label": "y", "value": "z"}, 1],
        }
    ],
    [{"id": "c", "default": 1, "password": "yes", "options": "x", "description": 1}],
)
_MISPLACED: Final = {"allowedTools": ["x"], "includeTools": ["x"], "enabled_tools": [], "x": {}}
_BESIDE: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    *(("gemini", lists) for lists in _LISTS_OF_GEMINI),
    *(
        (name, {"inputs": inputs})
        for name in ("vscode", "vscode-settings", "cursor")
        for inputs in _INPUTS
    ),
    *((name, _MISPLACED) for name in CLIENT_FORMATS),
)

# Texts of whole files, with the name of the file; %s is an entry.
_TEXTS: Final = (
    ("f.json", '\ufeff{"mcpServers": {}}'),
    ("f.json", '{"mcpServers": {}, } // c'),
    (".cursor/mcp.json", '\ufeff{"mcpServers": {}}'),
    (".gemini/settings.json", '{"mcp": {}, "mcp": {"excluded": []}, "mcpServers": {"a": %s}}'),
    (".gemini/settings.json", '{"mcp": {"x": 1, "x": 2}, "mcpServers": {"a": %s}}'),
    (".vscode/mcp.json", '{"inputs": [], "servers": {"a": %s}, "inputs": []}'),
    (
        ".vscode/settings.json",
        ('{"mcp": {"inputs": [{"id": "a"}], "servers": {"a": %s}}, '
        '"mcp": {}}'),
    ),
    (".vscode/mcp.json", '{"mcp": {"servers": {"a": %s}, "inputs": [{"id": "a"}]}}'),
    (
        "x/.claude.json",
        ('{"mcpServers": {"a": %s}, '
        '"projects": {"/p": {"disabledMcpServers": ["a"]}}}'),
    ),
    (
        "x.claude.json",
        ('{"mcpServers": {"a": %s}, '
        '"projects": {"/p": {"disabledMcpServers": ["a"]}}}'),
    ),
    (".claude.json", '{"mcpServers": {"a": %s}, "allowedTools": ["x"]}'),
    ("f.json", '{"a": %s, "$schema": "y"}'),
    ("f.json", '{"mcpServers": {"a": %s, "a": %s, "": {}, "\\ud800": {}}}'),
    ("f.json", '{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}'),
    ("f.json", '{"mcp.servers": {}, "mcp": 5}'),
    (
        "opencode.json",
        ('{"mcp": {"servers": {"a": {"type": "local", "command": ["x"]}}, '
        '"b": {"command": ["x"]}}}'),
    ),
)  # fmt: skip

# Files of variables, as they are and with each kind of quote in place of q.
_ENV_FILES: Final = (
    "", "\ufeffA=1", "A=1\r\nB=2\rC=3\n", "# c\n\n  A = 1 # c\nexport B: 2\nexport\tC=3", "A",
    "=1", "A B=1", "é=1",
    "a.b-c_1=x", "A=\nA=2", "A=x\x00y", "A=1#2", "A= #", "A=a q#b q c # d", "A=a q# b", "A=qbq",
    "A=qbq # c", "A=qbq c",
    "A=qb\\qcq", "A=qC:\\dq", "A=qC:\\d\\q", "A=qb\\nc\\rd\\teq", "A=q", "A=q\nbq\nB=1",
    "A=qb\n\nc\\q\nq # x\nB=1",
    "A=qb\ncq d", "A=qb\nc", "A=qq", "A=q q", "A=qbqcq", "\n\nA", "A=1\n\n2B=2",
)  # fmt: skip

# Servers to be imported, with the program whose file has them and the inputs beside them.
_INPUTS_TO_IMPORT: Final = [
    {"id": "k", "type": "promptString", "default": "d"},
    {"id": "b", "type": "promptString", "default": "x}y"},
    {"id": "v", "type": "promptString", "default": "x${y"},
    {"id": "p", "type": "promptString", "default": "d", "password": True},
    {"id": "n", "type": "promptString"},
]
_IMPORTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("codex", {"command": "x", "env": {"A": "1", "b-c": "2"}, "env_vars": ["A", "B"]}),
    ("codex", {"command": "x", "args": ["${A}", "--token=abc"], "env": {"API_KEY": "s"}}),
    ("codex", {"url": "https://h/", "bearer_token_env_var": "T", "env_http_headers": {"X": "Y"}}),
    ("codex", {"command": "x", "tool_timeout_sec": 0.5, "startup_timeout_sec": 1}),
    ("codex", {"command": "x", "tool_timeout_sec": 1, "enabled": False}),
    ("codex", {"command": "x", "tool_timeout_sec": 2.5, "other": 1, "more": {}}),
    ("vscode", {"command": "${input:k}", "args": ["${input:b}${input:v}", "${input:p}"]}),
    ("vscode", {"command": "x", "env": {"A": "${input:n}", "B": "${env:A}", "C": "${input:z}"}}),
    ("vscode", {"command": "x", "cwd": "${workspaceFolder}/a", "envFile": "/f"}),
    (
        "vscode",
        {"command": "x", "env": {"TOKEN": "s", "my token": "s", "KEY": "${env:K}", "E": ""}},
    ),
    ("vscode", {"url": "https://h/?key=s", "headers": {"Authorization": "Bearer s", "X": "y"}}),
    ("vscode", {"url": "https://h/?a=s", "headers": {"X-Api-Key": "s", "Y": "${env:A}"}}),
    ("cursor", {"command": "x", "args": ["${env:A}", "${A}", "${env:A B}", "$A", "${A:-b}"]}),
    ("gemini", {"command": "x", "args": ["$A", "${A}", "$A-b", "$1"], "env": {"GITHUB_PAT": "s"}}),
    ("gemini", {"command": "x", "includeTools": ["a"], "excludeTools": [], "timeout": 1000}),
    ("claude-code", {"command": "x", "args": ["${A:-b}", "${A", "$${A}"], "timeout": 2500}),
    ("claude-code", {"type": "ws", "url": "wss://h/", "deniedTools": ["a"], "disabled": True}),
    ("claude-desktop", {"command": "x", "args": ["${A}"], "env": {"SECRET": "${A}"}}),
)


def forms_to_read() -> dict[str, Iterator[str]]:
    """Return the lines of each file, which are made as they are read, by its name."""
    return {
        **{f"entries of {name}": _entries(client) for name, client in CLIENT_FORMATS.items()},
        "members beside": _beside(),
        "texts": _texts(),
        "imports": _imports(),
        "files of variables": _env_files(),
    }


def form_read(lines: Iterator[str]) -> str:
    """Return lines as one text, in ASCII."""
    return "\n".join(lines).encode("ascii", "backslashreplace").decode()


def _entries(client: ClientFormat) -> Iterator[str]:
    needed = {
        "goose": ("cmd", "uri"),
        "windsurf": ("command", "serverUrl"),
        "zed": ("command", "url"),
    }.get(client.name, ("command", "url"))
    entries = [
        *(
            {needed[0]: ["x"] if client.name == "opencode" else "x", **each}
            for each in _STDIO_FORMS
        ),
        *({needed[1]: "https://h/", **each} for each in _REMOTE_FORMS),
        *_ENTRIES,
    ]
    for first in range(0, len(entries), 30):
        named = {f"s{first + n}": each for n, each in enumerate(entries[first : first + 30])}
        yield _reading(client, {}, named)


def _beside() -> Iterator[str]:
    for name, beside in _BESIDE:
        yield f"  {json.dumps(beside)}"
        client = CLIENT_FORMATS[name]
        command = "cmd" if name == "goose" else "command"
        entry = {command: ["x"] if name == "opencode" else "x"}
        if name == "vscode-settings":
            yield _reading(client, {}, {"a": entry}, beside)
        else:
            yield _reading(client, beside, {"a": entry, "b": entry})


def _reading(
    client: ClientFormat,
    beside: dict[str, Any],
    entries: dict[str, Any],
    inner: dict[str, Any] | None = None,
) -> str:
    """Return the reading of a file with `inner` beside the servers, and `beside` outermost."""
    *outer, last = client.servers
    value: dict[str, Any] = {**(inner or {}), last: entries}
    for name in reversed(outer):
        value = {name: value}
    value = {**beside, **value}
    text = json.dumps(value) if client.syntax is not None else tomlkit.dumps(_without_nulls(value))
    found = read_config(text, file="f", format=client.name)
    lines = text_of_reading(found).split("\n")
    # Each server on one line, without what the others have too.
    return "\n".join(line for line in lines if not line.startswith(_COMMON)).replace("\n    ", ";")


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value if each is not None]
    return value


def _texts() -> Iterator[str]:
    for file, text in _TEXTS:
        yield f"  {file} {text!r}"
        try:
            yield text_of_reading(read_config(text.replace("%s", '{"command": "x"}'), file=file))
        except InvalidConfig as error:
            yield from (f"    ! {problem}" for problem in error.problems)


def _imports() -> Iterator[str]:
    for name, entry in _IMPORTS:
        yield f"  {name} {json.dumps(entry)}"
        client = CLIENT_FORMATS[name]
        value: dict[str, Any] = {client.servers[0]: {"s": entry, "t": entry}}
        if name == "vscode":
            value["inputs"] = _INPUTS_TO_IMPORT
        text = json.dumps(value) if client.syntax is not None else tomlkit.dumps(value)
        try:
            found = import_servers(read_config(text, file="f", format=name), ["s", "t"])
        except InvalidConfig as error:
            yield from (f"    ! {problem}" for problem in error.problems)
            continue
        for each in found:
            yield f"    {each.members}"
            yield from (f"      secret {secret}" for secret in each.secrets)
            yield from (f"      {note}" for note in each.notes)


def _env_files() -> Iterator[str]:
    for text in _ENV_FILES:
        for quote in "\"'`" if "q" in text else "":
            yield _variables(text.replace("q", quote))
        if "q" not in text:
            yield _variables(text)


def _variables(text: str) -> str:
    try:
        return f"  {text!r}: {parse_env_file(text.encode(), file='.env')}"
    except InvalidConfig as error:
        return f"  {text!r}: ! {error}"


def kept_forms() -> dict[str, str]:
    """Return the lines in the file, by their names."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: form_read(lines) for name, lines in forms_to_read().items()})
