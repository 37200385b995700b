"""The whole text after each edit of each file in the tables of this folder, in `edits.txt`.

    python -m tests.core.host.edit.edits

writes the file again. It also has what each client's format makes of an entry, and the plans for
files with servers that are on, off, broken or missing.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_core.host import (
    CLIENT_FORMATS,
    ConfigFileError,
    JsonSyntax,
    ServerEntry,
    config_path,
    describe_change,
    entry_members,
    find_entry_line,
    find_replaced,
    plan_disabling,
    plan_enabling,
    plan_entry,
    plan_registration,
    plan_removal,
)
from mcp_core.host.edit._entries import read_entries
from mcp_core.host.edit._json_edit import find_edits, parse_json, set_member
from mcp_core.host.edit._registration import replaces_another
from mcp_core.host.edit._removal import remove_json_member, remove_toml_member
from mcp_core.host.edit._toml_edit import read_toml, set_toml_flag, set_toml_members
from mcp_core.host.edit._toml_places import find_toml_places, find_toml_statements
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_core.host import ClientFormat
    from mcp_core.host.edit._changes import MemberChange
    from mcp_core.host.edit._json_edit import JsonNode

__all__ = ["edited", "edits_to_make", "kept_edits"]

_FILE: Final = Path(__file__).with_name("edits.txt")
_STRICT: Final = JsonSyntax()
_ALL: Final = JsonSyntax(comments=True, trailing_commas=True, byte_order_mark=True)

# JSON whose member s.a is edited, beside what the other tables have
_JSON: Final = (
    "{}\n",
    "\ufeff",
    "\ufeff\n",
    "\n{\n}\n",
    '{"s":{}}',
    '{\n\t"s": { }\n}',
    '{\n  "s":\n  {\n  }\n}',
    '{"x": 1,}',
    '{"x":1,"y":2,}',
    '{"x" :1, "y": 2}',
    '{\n  "x": 1,\n}',
    '{\n  "x": 1, // c\n  /* d */}',
    '{"x": 1,\n "s": {"b": 2}}',
    '{ "s": { "b": [1,\n2] } }',
    '  {\n    "s": {\n      "b": {"c": 1}, "d": 2\n    }\n  }',
    '{\n"s": {\n"a": {\n"command": "/p"\n}\n}\n}',
    '{\n  "s": {\n    "a": 5,\n    "b": [\n      1\n    ],\n  },\n}\n',
    '{\n  "s": {\n    "z": 0\n    , "a": 1\n    , "b": 2\n  }\n}\n',
    '{"s": {"z": 0 /* z, */, /* a */ "a": 1 /* b */ , "b": 2}}',
    '{\r\n  "s": {\r\n    "a": [],\r\n    "b": 2\r\n  }\r\n}\r\n',
    '{"s": {"a": {"command": "/q", "x": {"y": 1}}, "a b": 1}}',
    '{"s": {"a": true, "b": 1}}',
    '{"s": {"a": 1}, "s2": {}} // end',
    '{"s": {"x": [[], {}, [{"a": [0]}]], "a": ""}}',
    '{"s": {"a": 1 /* , */, "b": 2, }}',
    '{"s": {"b":2 ,"a":1}}',
    '{"s": {"b": 2,// c\n"a": 1}}',
    '{"s": {"x": "a" // ,\n, "a": 1}}',
    '{"s": {"a": 1',
    '{"s": {"a": 1}]',
    '{"s": [1, 2',
    '{"s": [1 2]}',
    '{"s": [1,]}',
    '{"s" "a"}',
    '{"s": {"a": 1,,}}',
    '{"s": tru}',
    '{"s": 1.5.2}',
    '{"s": -0.5e+3, "t": 10, "u": 1E5}',
    '{"s": {"a": "\\u00e9\\n", "é": "\\""}}',
    "{]",
    "[}",
    "1",
    '"s"',
    ":",
    "{} {}",
    "{}, ",
    '{"a": }',
    '{"a": :}',
)

# TOML whose table m.a is edited, beside what the other tables have
_TOML: Final = (
    "\n",
    "m = {}\n",
    "[m]\n",
    "[m]\n\n[n]\n",
    "[m.a]\n",
    "[m.a]\n\n\n[m.b]\n\n\n",
    "[m.b]\nc = 1\n\n\n",
    "  [m.a]\n  c = 1\n  [m.a.e]\n  K = 1\n[n]\n",
    '[m.a]\ncommand = "/p" # c\nargs = ["a"] # a\n\n[m.a.env]\nA = "1" # A\n',
    '[m.a]\ncommand = "/p"\nz = 1\n[m.a.env]\nA = "0"\nB = "1"\n[m.b]\n',
    '[m.a]\nenv.A = "1"\ncommand = 1\n[[n]]\n[[n]]\nz = 1\n',
    '[m."a"]\nc = """x"""\nd = """\n"""\ne = """a""""\nf = """\\""""\n[n]\n',
    "[m.'a']\nc = '''x''' # [\nd = [ [1], {b = 1}, ']' ] # ]\n[n]\n",
    "m.a.c = 1\nm.b = 2\n\n[n]\n",
    '"m".a."c" = 1\n[n]\n',
    'm.a = {c = 1, "d" = {e = 2}}\n[n]\n',
    "[ m . a ]\nc = 1\n",
    "[m]\na = 5\nb = 1 # b\n",
    "[m]\n[m.b]\n[m.a.x]\ny = 1\n[m.c]\n",
    "[[m.a]]\nc = 1\n[[m.a]]\nc = 2\n[n]\n",
    "[n]\nd = 1979-05-27\n[m.a]\nd = 1979-05-27T07:32:00Z\nf = 1.5\nt = true\n",
    "# first\n[m.a] # a\n# in\nc = 1\n# after\n\n# next\n[n]\n",
    "[m.a]\r\nc = 1\r\n\r\n# next\r\n[n]\r\n",
    "[m.a]\nc = 1",
    "x = 1\n[m.a]",
    'x = 1\n"\\u006d" = 5\n',
    "[n]\nz = 1\n[m.a]\nc = 1\n# about p\n\n[p]\n",
    "[m.a]\nc = [\n[1],\n2]\n_d = {}\n",
    "[m.a]\nc = [\n",
    "[m.a]\nc = 'x\n",
    "m",
    "[m",
    "a = 1 2\n",
    "m = [1]\n",
    "m = [{b = 1}]\n",
)

_ENTRY: Final = {"command": "/p", "args": ["a"], "env": {"A": "1"}}

_SERVERS: Final = {
    "plain": ServerEntry(name="us", command="/p"),
    "all of stdio": ServerEntry(
        name="us", command="/p", args=("-m", "x"), env={"A": "1"}, forwarded=("B", "C")
    ),
    "directory": ServerEntry(name="us", command="/p", cwd="/d ${X}"),
    "equals": ServerEntry(name="us", command="/p", args=("$A", "${B}"), env={"A": "1=2"}),
    "allowed": ServerEntry(name="us", command="/p", allowed_tools=("t", "u")),
    "none allowed": ServerEntry(name="us", command="/p", allowed_tools=()),
    "denied": ServerEntry(name="us", command="/p", denied_tools=("t",)),
    "http": ServerEntry(name="us", transport="http", url="https://h/"),
    "sse": ServerEntry(name="us", transport="sse", url="https://h/", headers={"X": "1"}),
    "ws": ServerEntry(name="us", transport="ws", url="wss://h/", denied_tools=("t",)),
    "headers": ServerEntry(
        name="us",
        transport="http",
        url="https://h/",
        headers={"X": "${A_1}", "y": "b ${1}", "AUTHORIZATION": "bearer ${T}"},
    ),
    "header with a variable": ServerEntry(
        name="us", transport="http", url="https://h/", headers={"X\n": "Bearer ${T}"}
    ),
}

_ENVIRONMENTS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"HOME": "/h", "USERPROFILE": "C:\\u"},
    {"HOME": "/h", "XDG_CONFIG_HOME": "/x", "APPDATA": "D:\\a", "USERPROFILE": "C:\\u"},
    {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/c", "GEMINI_CLI_HOME": "/c", "COPILOT_HOME": "/c"},
)

# Entries of the server `us`, for each client's file.
_ENTRIES: Final[tuple[Any, ...]] = (
    {},
    {"command": "/old", "args": ["-m", "x"], "env": {"A": "0", "K": "$x"}, "trust": True},
    {"command": "/old", "args": ["y"], "env": {"A": "0", "R": "${K}", "S": "Bearer {env:K}"}},
    {"command": "/old", "args": ["-m", "x"], "env_vars": ["C", "D"], "http_headers": {"X": "1"}},
    {"disabled": True, "enabled": True},
    {"disabled": False, "enabled": False},
    {"url": "https://h/", "headers": {"X": "1"}, "environment": {"A": "1"}, "envs": {"A": "1"}},
    {"command": "/p", "args": "x", "env": "A=1", "headers": ["X"], "deep": {"a": {"b": 1}}},
    5,
    [],
)

# Members beside the servers that turn servers of Gemini CLI on or off.
_LISTS: Final[tuple[dict[str, Any], ...]] = (
    {"mcp": {}},
    {"mcp": {"excluded": ["us"]}},
    {"mcp": {"excluded": [" US ", "x", 1], "allowed": ["x"]}},
    {"mcp": {"excluded": ["x"], "allowed": ["us"]}},
    {"mcp": {"excluded": None, "allowed": None}},
    {"mcp": {"excluded": "us"}},
    {"mcp": {"allowed": {}}},
    {"mcp": []},
    {"allowMCPServers": ["us"], "excludeMCPServers": ["x"]},
    {"allowMCPServers": ["x"]},
    {"excludeMCPServers": [" US "]},
    {"excludeMCPServers": "us", "allowMCPServers": None},
)


def edits_to_make() -> dict[str, Iterator[str]]:
    """Return the lines of each text, which are made as they are read, by its name."""
    from tests.core.host.edit import test_json_edit, test_removal, test_toml_edit

    json_texts = [
        *((each[1], test_json_edit.PATH) for each in test_json_edit.CASES),
        *((each, ("s", "a")) for each, _ in test_removal.JSON_CASES),
        *((each, ("s", "a")) for each in _JSON),
    ]
    toml_texts = [
        *((each[1], test_toml_edit.PATH) for each in test_toml_edit.CASES),
        *((each, ("m", "a")) for each, _ in test_removal.TOML_CASES),
        *((each, ("m", "a")) for each in _TOML),
    ]
    planned = ("claude-code", "codex")
    return {
        **{f"JSON {n}": _edits_of_json(*each) for n, each in enumerate(json_texts)},
        **{f"TOML {n}": _edits_of_toml(*each) for n, each in enumerate(toml_texts)},
        **{f"client {name}": _entries_of(client) for name, client in CLIENT_FORMATS.items()},
        **{f"new file of {name}": _plans(CLIENT_FORMATS[name], "") for name in planned},
        **{
            f"plans of {name} {n}": _plans_of(CLIENT_FORMATS[name], entry)
            for name in planned
            for n, entry in enumerate(_ENTRIES)
        },
        "plans of lists": _plans_of_lists(),
    }


def edited(lines: Iterator[str]) -> str:
    """Return lines as one text, in ASCII."""
    return "\n".join(lines).encode("ascii", "backslashreplace").decode()


def _edits_of_json(text: str, path: tuple[str, str]) -> Iterator[str]:
    outer, _ = path
    yield f"  {text!r}"
    for name, syntax in ("strict", _STRICT), ("extended", _ALL):
        yield _line(name, lambda syntax: _positions(parse_json(text, syntax)), syntax)
    values: tuple[tuple[tuple[str, ...], Any], ...] = (
        (path, _ENTRY),
        ((*path, "x", "y"), 1),
        ((outer,), True),
    )
    for place, value in values:
        yield _change(f"set {'.'.join(place)}", text, set_member, place, value, _ALL)
    yield _line("edits", lambda: [tuple(each) for each in find_edits(text, ("é",), [{}], _ALL)])
    for place in (outer,), path, (*path, "command"), (outer, "b"):
        yield _change(f"remove {'.'.join(place)}", text, remove_json_member, place, _ALL)


def _edits_of_toml(text: str, path: tuple[str, str]) -> Iterator[str]:
    yield f"  {text!r}"
    yield _line("value", read_toml, text)
    try:
        value: Any = read_toml(text)
    except ConfigFileError:
        return
    yield _line("statements", lambda: [tuple(each) for each in find_toml_statements(text)])
    yield _line("places", find_toml_places, text)
    for members in {"command": "/p"}, _ENTRY:
        yield _change(f"set {', '.join(members)}", text, set_toml_members, path, members)
    for depth in 1, 2:
        value = value.get(path[depth - 1]) if isinstance(value, dict) else None
        if isinstance(value, dict):
            place = (*path[:depth], "off")
            yield _change(f"flag {'.'.join(place)}", text, set_toml_flag, place, False)
    for place in path, (path[0], "b"), (*path, "c"), (*path, "env"):
        yield _change(f"remove {'.'.join(place)}", text, remove_toml_member, place)


def _positions(node: JsonNode | None) -> str:
    """Return a value with the positions of all that is in it."""
    if node is None:
        return "nothing"
    inner = [f"{start}={name!r}:{_positions(each)}" for name, (start, each) in node.members.items()]
    inner += map(_positions, node.items)
    marks = [
        *([f" repeated {node.repeated}"] if node.repeated else ()),
        *([] if node.trailing_comma is None else [f" comma {node.trailing_comma}"]),
    ]
    shown = f"[{', '.join(inner)}]" if isinstance(node.value, dict | list) else repr(node.value)
    return f"{node.start}-{node.end} {shown}{''.join(marks)}"


def _entries_of(client: ClientFormat) -> Iterator[str]:
    systems = "linux", "darwin", "win32", "plan9"
    for system, environ in product(systems, _ENVIRONMENTS):
        path = partial(config_path, client, system=system, environ=environ, directory="/p")
        yield _line(f"user {system} {','.join(environ) or '-'}", path, "user")
        if not environ:
            yield _line(f"project {system}", path, "project")
    for name, server in _SERVERS.items() if client.is_written else (("plain", _SERVERS["plain"]),):
        yield _line(name, entry_members, client, server)
        if client.add_command is not None and server.transport == "stdio":
            yield _line("  user", client.add_command, server, "user")
            yield _line("  project", client.add_command, server, "project")
        if found := find_replaced(client, server):
            yield f"      replaced: {found}"


def _plans_of(client: ClientFormat, entry: Any) -> Iterator[str]:
    yield from _plans(client, _document(client, entry))


def _plans_of_lists() -> Iterator[str]:
    client = CLIENT_FORMATS["gemini"]
    for lists in _LISTS:
        text = json.dumps({"mcpServers": {"us": {"command": "x"}}, **lists})
        yield f"  {text}"
        for name, plan in ("disable", plan_disabling), ("enable", plan_enabling):
            yield _change(name, text, _planned, plan, client)


def _document(client: ClientFormat, entry: Any) -> str:
    """Return a file of the client with the entry, and another one before it."""
    value: Any = {"x": {"command": "x"}, "us": entry}
    if client.syntax is not None:
        for name in reversed(client.servers):
            value = {name: value}
        return json.dumps(value, indent=2) + "\n"
    text = set_toml_members("", (*client.servers, "x"), {"command": "x"})
    if isinstance(entry, dict):
        return set_toml_members(text, (*client.servers, "us"), entry)
    return f"mcp_servers.us = {json.dumps(entry)}\n"


def _plans(client: ClientFormat, text: str) -> Iterator[str]:
    yield f"  {text!r}"
    yield _line("entries", read_entries, client, text)
    yield _line("line", find_entry_line, client, "us", text)
    for name in "plain", "all of stdio":
        yield _line(f"register {name}", _registered, client, _SERVERS[name], text)
    for name in "all of stdio", "http":
        yield _line(f"replace by {name}", _replaced, client, _SERVERS[name], text)
    yield _change("remove", text, _planned, plan_removal, client)
    if text:
        yield _change("disable", text, _planned, plan_disabling, client)
        yield _change("enable", text, _planned, plan_enabling, client)


def _registered(client: ClientFormat, server: ServerEntry, text: str) -> str:
    change = plan_registration(client, server, text)
    return "another, " * replaces_another(change) + _described(change, text)


def _replaced(client: ClientFormat, server: ServerEntry, text: str) -> str:
    return _described(plan_entry(client, "us", entry_members(client, server), text), text)


def _described(change: MemberChange, text: str) -> str:
    lines = "".join(f"\n      {mark}{line}" for mark, line in describe_change(change))
    return f"{'' if change.is_needed else 'not '}needed: {change.apply(text)!r}{lines}"


def _planned(
    text: str,
    plan: Callable[[ClientFormat, str, str], list[MemberChange]],
    client: ClientFormat,
) -> str:
    for change in plan(client, "us", text):
        text = change.apply(text)
    return text


def _change(name: str, text: str, edit: Callable[..., str], *args: Any) -> str:
    """Return the line of an edit of a text: = if it leaves the text as it is."""

    def shown() -> str:
        new = edit(text, *args)
        return "=" if new == text else repr(new)

    return _line(name, shown)


def _line(name: str, function: Callable[..., Any], *args: Any) -> str:
    """Return the line of a function's value, or of its error."""
    try:
        value = function(*args)
    except ConfigFileError as error:
        return f"    {name}: ! {error.line}:{error.column} {error.problem}"
    except ValueError as error:
        return f"    {name}: ! {error}"
    return f"    {name}: {value}"


def kept_edits() -> dict[str, str]:
    """Return the lines in the file, by the names of their texts."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: edited(lines) for name, lines in edits_to_make().items()})
