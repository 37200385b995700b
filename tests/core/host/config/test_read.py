"""Servers of configuration files: what each format means."""

from __future__ import annotations

import dataclasses
import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host import (
    ConfigFile,
    InvalidConfig,
    ServerConfig,
    find_config_format,
    find_entry_line,
    format_to_edit,
    plan_disabling,
    plan_removal,
    read_config,
)
from tests.levels import fewer_examples


def read(text: str, file: str = ".mcp.json") -> ConfigFile:
    return read_config(text, file=file)


def read_one(entry: dict[str, Any], file: str = ".mcp.json") -> ServerConfig:
    member = "servers" if ".vscode" in file else "mcpServers"
    found = read(json.dumps({member: {"x": entry}}), file)
    assert found.problems == ()
    return found.servers["x"]


def test_server_config_place_is_that_of_its_name() -> None:
    found = read('{\n  "mcpServers": {"a": {"command": "x"},\n    "b.c": {"command": "x"}}}')
    assert str(found.servers["a"].place) == ".mcp.json:2:18: mcpServers.a"
    assert str(found.servers["b.c"].place) == '.mcp.json:3:5: mcpServers."b.c"'
    toml = read('[mcp_servers.a]\ncommand = "x"\n[mcp_servers."b.c"]\ncommand = "x"', "c.toml")
    assert str(toml.servers["b.c"].place) == 'c.toml:3:1: mcp_servers."b.c"'


def test_server_config_place_of_text_with_variable_is_its_own() -> None:
    text = '{"mcpServers": {"a": {"command": "x",\n "args": ["y",\n "$z"]}}}'
    server = read(text).servers["a"]
    assert str(server.place_of("args", 1)) == ".mcp.json:3:2: mcpServers.a.args[1]"
    assert server.place_of("args", 0) == server.place
    codex = '[mcp_servers.a]\nurl = "u"\nhttp_headers = {A = "$"}\nbearer_token_env_var = "T"\n'
    server = read(codex, "config.toml").servers["a"]
    assert server.place_of("headers", "A").line == 3
    assert server.place_of("bearer_variable").line == 4


def test_server_config_repr_shows_no_secrets() -> None:
    secret = "s3cret"
    server = read_one(
        {"command": "x", "args": [secret], "env": {"A": secret}, "headers": {"B": secret},
         "auth": secret}
    )  # fmt: skip
    assert secret not in repr(server)
    assert secret not in repr(read_one({"url": f"https://x/{secret}"}))


def test_server_config_cannot_change() -> None:
    server = read_one({"command": "x", "env": {"A": "1"}})
    with pytest.raises(dataclasses.FrozenInstanceError):
        server.command = "y"  # type: ignore[misc]
    with pytest.raises(TypeError):
        server.env["A"] = "2"  # type: ignore[index]


@pytest.mark.parametrize(
    ("file", "entry", "transport"),
    [
        (".mcp.json", {"command": "x"}, "stdio"),
        (".mcp.json", {"type": "stdio", "command": "x"}, "stdio"),
        (".mcp.json", {"url": "u"}, "http"),
        (".mcp.json", {"type": "http", "url": "u"}, "http"),
        (".mcp.json", {"type": "streamable-http", "url": "u"}, "http"),
        (".mcp.json", {"type": "sse", "url": "u"}, "sse"),
        (".mcp.json", {"type": "ws", "url": "u"}, "ws"),
        (".mcp.json", {"type": None, "command": "x", "url": None}, "stdio"),
        (".gemini/settings.json", {"url": "u"}, "sse"),
        (".gemini/settings.json", {"type": "http", "url": "u"}, "http"),
        (".gemini/settings.json", {"httpUrl": "u"}, "http"),
        (".gemini/settings.json", {"serverUrl": "u"}, "http"),
        (".mcp.json", {"httpUrl": "u"}, "http"),
        (".mcp.json", {"serverUrl": "u"}, "http"),
        (".mcp.json", {"type": "local", "command": "x"}, "stdio"),
        (".mcp.json", {"type": "streamableHttp", "url": "u"}, "http"),
        (".mcp.json", {"type": "streamable_http", "url": "u"}, "http"),
        (".mcp.json", {"type": "HTTP", "url": "u"}, "http"),
        (".mcp.json", {"type": "remote", "url": "u"}, "http"),
        (".mcp.json", {"type": "websocket", "url": "u"}, "ws"),
        (".mcp.json", {"transport": "sse", "url": "u"}, "sse"),
        (".mcp.json", {"transportType": "http", "url": "u"}, "http"),
        (".mcp.json", {"type": "http", "transport": "streamable-http", "url": "u"}, "http"),
        (".mcp.json", {"transport": {"type": "sse"}, "url": "u"}, "http"),  # not a spelling of type
        ("cline_mcp_settings.json", {"url": "u"}, "sse"),
        ("cline_mcp_settings.json", {"type": "streamableHttp", "url": "u"}, "http"),
        ("windsurf/mcp_config.json", {"serverUrl": "u"}, "http"),
        ("windsurf/mcp_config.json", {"url": "u"}, "http"),
    ],
)
def test_transport_is_the_type_or_follows_from_the_members(
    file: str, entry: dict[str, Any], transport: str
) -> None:
    assert read_one(entry, file).transport == transport


def test_numbers_and_null_in_env_are_understood() -> None:
    server = read_one(
        {"command": "x", "args": ["--port", 8080, 1.5], "env": {"PORT": 8080, "F": 1.5, "N": None}}
    )
    assert server.args == ("--port", "8080", "1.5")
    assert server.env == {"PORT": "8080", "F": "1.5"}
    assert read_one({"url": "u", "headers": {"X-Version": 1}}).headers == {"X-Version": "1"}


def test_command_with_its_words_in_an_array_is_understood() -> None:
    server = read_one({"command": ["npx", "-y", "x"], "args": ["z"], "environment": {"A": "1"}})
    assert (server.command, server.args) == ("npx", ("-y", "x", "z"))
    assert server.env == {"A": "1"}


# What the content of a file of any name shows: the format, and where its servers are.
SHAPES = [
    ('{"mcpServers": {"a": {"command": "x"}}}', "claude-code", ("mcpServers",)),
    ('{"servers": {"a": {"command": "x"}}}', "vscode", ("servers",)),
    ('{"context_servers": {"a": {"command": "x"}}}', "zed", ("context_servers",)),
    ('{"mcp": {"servers": {"a": {"command": "x"}}}}', "vscode-settings", ("mcp", "servers")),
    (
        '{"$schema": "https://opencode.ai/x.json", "mcp": {"servers": {"a": {"command": "x"}}}}',
        "opencode",
        ("mcp", "servers"),
    ),
    ('{"mcp": {"a": {"command": ["x"]}}}', "opencode", ("mcp",)),
    ('{"extensions": {"a": {"cmd": "x"}}}', "goose", ("extensions",)),
    ('{"a": {"command": "x"}}', "claude-code", ()),
    ('{"$schema": "s", "a": {"command": "x"}}', "claude-code", ()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "format", "path"), SHAPES)
@pytest.mark.parametrize("file", ["any.json", "settings.json"])
def test_read_config_shape_of_a_known_program_is_recognized_by_its_content(
    text: str, format: str, path: tuple[str, ...], file: str
) -> None:
    if file == "settings.json" and not path:
        return  # any of its settings may have a command
    found = read(text, file)
    expected = "gemini" if (file, format) == ("settings.json", "claude-code") else format
    assert (found.format, found.servers_path, found.problems) == (expected, path, ())
    assert found.servers["a"].command == "x"
    assert found.has_servers
    client = format_to_edit(found)
    assert find_entry_line(client, "a", text) == 1
    assert plan_removal(client, "a", text)[0].apply(text) == text.replace(
        text[text.index('"a": {') : text.index("}", text.index('"a": {')) + 1], ""
    ).replace(", }", "}")


# what a file of opencode has beside its server, and what becomes of it: the rule that leaves it out
RULES: list[tuple[str, dict[str, Any], str]] = [
    ("my-mcp", {"tools": {"my-mcp": False}}, "off"),
    ("my-mcp", {"tools": {"my-*": False}}, "off"),
    ("my-mcp", {"tools": {"my-mcp_*": False}}, "off"),
    ("my-mcp", {"tools": {"*mcp*": False}}, "off"),
    ("my-mcp", {"tools": {"my-mcp*": True, "other_read": False, "m": False}}, "on"),
    ("my-mcp", {"tools": {"my-mcp_read": False}}, "tools.my-mcp_read"),
    ("my-mcp", {"tools": {"my-mc?_*": False}}, 'tools."my-mc?_*"'),
    ("my-mcp", {"tools": {"*_delete": False}}, 'tools."*_delete"'),
    ("my-mcp", {"tools": {"*delete*": False}}, 'tools."*delete*"'),
    ("my-mcp", {"tools": {"*_": False}}, 'tools."*_"'),
    ("my-mcp", {"tools": {"m*_x": False}}, 'tools."m*_x"'),
    ("my-mcp", {"tools": {"My_MCP_x": False}}, "tools.My_MCP_x"),
    ("my-mcp", {"tools": {"{my,your}*": False}}, 'tools."{my,your}*"'),
    ("my-mcp", {"tools": {"?": False, "o*": False, "my-mcp": "allow"}}, "on"),
    ("my-mcp", {"tools": {"my-mcp_*": "false"}}, 'tools."my-mcp_*"'),
    ("my-mcp", {"tools": {"my-mcp_*": 0}}, 'tools."my-mcp_*"'),
    ("my-mcp", {"tools": {"my-mcp_*": None}}, 'tools."my-mcp_*"'),
    ("my-mcp", {"tools": ["read"]}, "tools[0]"),
    ("a b.c", {"tools": {"a_b_c_*": False}}, "off"),
    ("a b.c", {"tools": {"a_b_c_x": False}}, "tools.a_b_c_x"),
    ("a b.c", {"tools": {"a b.c_x": False}}, 'tools."a b.c_x"'),
    ("srv", {"permission": {"srv_*": "deny"}}, "off"),
    ("srv", {"permission": {"srv_*": "ask"}}, "asks"),
    ("srv", {"permission": {"srv_*": "ask", "srv_x": "deny"}}, "permission.srv_x"),
    ("srv", {"permission": {"*_x": "ask"}}, 'permission."*_x"'),
    ("srv", {"permission": {"srv_*": {"*": "ask"}}}, 'permission."srv_*"'),
    ("srv", {"permission": {"srv_*": {"*": "allow"}, "bash": {"rm *": "deny"}}}, "on"),
    ("srv", {"permission": {"edit": "deny", "bash": "ask", "webfetch": "deny"}}, "on"),
    ("srv", {"permission": "allow", "tools": {}}, "on"),
    ("srv", {"permission": "deny"}, "off"),
    ("srv", {"permission": "ask"}, "asks"),
    ("srv", {"permissions": [{"action": "srv_*", "resource": "*", "effect": "deny"}]}, "off"),
    ("srv", {"permissions": [{"action": "bash", "resource": "*", "effect": "deny"}]}, "on"),
    ("srv", {"permissions": [{"action": "srv_x", "effect": "ask"}]}, "permissions[0]"),
    ("srv", {"permissions": [{"action": "*", "resource": "", "effect": "deny"}]}, "permissions[0]"),
    ("srv", {"agent": {"plan": {"tools": {"srv_*": False}}}}, 'agent.plan.tools."srv_*"'),
    ("srv", {"mode": {"plan": {"tools": {"srv_x": False}}}}, "mode.plan.tools.srv_x"),
    ("srv", {"agent": {"a": {"permission": {"srv*": "deny"}}}}, 'agent.a.permission."srv*"'),
    ("srv", {"agent": {"a": {"permission": {"srv*": "ask"}}}}, "asks"),
    ("srv", {"agent": {"a": {"tools": {"write": False}}, "b": 1}, "mode": []}, "on"),
]  # fmt: skip


@pytest.mark.parametrize(("server", "rules", "result"), RULES)
def test_rules_of_opencode_restrict_the_servers_that_they_may_concern(
    server: str, rules: dict[str, Any], result: str
) -> None:
    text = json.dumps({"mcp": {server: {"command": ["x"]}}, **rules})
    found = read(text, "opencode.json")
    if result in ("on", "off", "asks"):
        assert found.problems == ()
        each = found.servers[server]
        assert (each.disabled, each.asks_always) == (result == "off", result == "asks")
        return
    assert not found.servers
    assert found.broken == {server}
    (problem,) = found.problems
    assert str(problem).partition(" ")[2].startswith(f"{result}: restricts tools of this server")
    assert (problem.restricts, problem.server) == (True, server)


@pytest.mark.parametrize(
    "rules",
    [
        '"tools": {"a_*": false}, "tools": {}',
        '"permission": {"a_x": "deny", "a_x": "allow"}',
        '"agent": {"b": {"tools": {"a": false}, "tools": {}}}',
        '"agent": {"b": {"tools": {"a": false}}, "b": {}}',
    ],
)
def test_rules_of_opencode_that_are_there_twice_restrict(rules: str) -> None:
    found = read(f'{{"mcp": {{"a": {{"command": ["x"]}}}}, {rules}}}', "opencode.json")
    assert not found.servers
    assert any(each.restricts and each.server == "a" for each in found.problems)


def test_many_rules_of_opencode_give_a_problem_for_each_server() -> None:
    """More than can be compared restrict all servers that are not off by themselves."""
    servers = {f"s{n}": {"command": ["x"], "enabled": n > 0} for n in range(40)}
    rules = {f"s{n % 40}_{'x' * 5000}{n}": False for n in range(60)}
    text = json.dumps({"mcp": servers, "tools": rules})
    found = read(text, "opencode.json")
    assert list(found.servers) == ["s0"]
    assert [each.server for each in found.problems] == [*servers][1:]


@pytest.mark.parametrize(
    ("text", "disabled"),
    [
        ('{"mcp": {"a": {"command": ["x"]}}}', '"command": ["x"], "enabled": false'),
        ('{"mcp": {"servers": {"a": {"command": ["x"]}}}}', '"command": ["x"], "disabled": true'),
    ],
)
def test_server_of_opencode_is_turned_off_as_its_version_does(text: str, disabled: str) -> None:
    client = format_to_edit(read(text, "opencode.json"))
    (change,) = plan_disabling(client, "a", text)
    assert change.apply(text) == text.replace('"command": ["x"]', disabled)


def test_opencode_with_a_server_named_servers_is_version_1() -> None:
    found = read('{"mcp": {"servers": {"type": "local", "command": ["x"]}}}', "opencode.json")
    assert list(found.servers) == ["servers"]


def test_inputs_of_vscode_settings_are_beside_the_servers() -> None:
    text = """{"mcp": {"inputs": [{"id": "key", "type": "promptString", "password": true}],
    "servers": {"a": {"command": "x", "env": {"K": "${input:key}"}}}}}"""
    found = read(text, ".vscode/settings.json")
    assert found.inputs["key"].secret
    assert str(found.inputs["key"].place) == ".vscode/settings.json:1:21: mcp.inputs[0]"


def test_tool_lists_of_copilot_goose_and_windsurf_hold() -> None:
    copilot = read_one({"command": "x", "tools": ["a"]}, ".copilot/mcp-config.json")
    assert (copilot.allowed_tools, copilot.find_tool_denial("a")) == (("a",), None)
    none = read_one({"command": "x", "tools": []}, ".copilot/mcp-config.json")
    assert none.allowed_tools == ()
    windsurf = read_one({"command": "x", "disabledTools": ["a"]}, "windsurf/mcp_config.json")
    assert "its file denies it" in str(windsurf.find_tool_denial("a"))
    for tools, expected in ([], None), (["a"], ("a",)):
        text = json.dumps({"extensions": {"x": {"cmd": "c", "available_tools": tools}}})
        assert read(text, "g.json").servers["x"].allowed_tools == expected


@pytest.mark.parametrize(
    ("file", "format"),
    [
        ("/p/.mcp.json", "claude-code"),
        ("/p/.mcp.local.json", "claude-code"),
        ("/home/u/.claude.json", "claude-code"),
        ("C:\\Users\\u\\.cursor\\mcp.json", "cursor"),
        (".vscode/mcp.json", "vscode"),
        ("/home/u/.gemini/settings.json", "gemini"),
        ("/home/u/.codex/config.toml", "codex"),
        ("C:\\x\\claude_desktop_config.json", "claude-desktop"),
        ("/p/.vscode/settings.json", "vscode-settings"),
        ("C:\\Users\\u\\AppData\\Roaming\\Code\\User\\settings.json", "vscode-settings"),
        ("/home/u/.config/zed/settings.json", "zed"),
        ("/p/opencode.jsonc", "opencode"),
        ("/home/u/.copilot/mcp-config.json", "copilot-cli"),
        ("/p/.github/mcp.json", "copilot-cli"),
        ("/home/u/.codeium/windsurf/mcp_config.json", "windsurf"),
        ("/s/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "cline"),
        ("/home/u/.lmstudio/mcp.json", "lm-studio"),
        ("/home/u/.config/goose/config.yaml", "goose"),
        ("/etc/mcp-trio/managed-mcp.json", None),
        ("mcp.json", None),
    ],
)
def test_find_config_format_follows_the_path(file: str, format: str | None) -> None:
    assert find_config_format(file) == format


def test_read_config_unknown_path_is_read_by_its_content() -> None:
    vscode = read('{"servers": {"a": {"command": "x"},}, /* */ }', "any.json")
    assert (vscode.format, list(vscode.servers)) == ("vscode", ["a"])
    claude = read('// mine\n{"servers": {}, "mcpServers": {}}', "any.json")
    assert claude.format == "claude-code"
    with pytest.raises(ValueError, match="unknown format 'word'; one of claude-code"):
        read_config("", file="x", format="word")


def test_disabled_and_timeouts_follow_the_format() -> None:
    assert read_one({"command": "x", "disabled": True}).disabled
    assert read_one({"command": "x", "timeout": 2500}).call_timeout == 2.5
    assert read_one({"command": "x", "timeout": 9}, ".cursor/mcp.json").extra == {"timeout": 9}
    text = '[mcp_servers.x]\ncommand = "x"\nenabled = false\nstartup_timeout_ms = 1500\n'
    codex = read(text, "config.toml").servers["x"]
    assert (codex.disabled, codex.connect_timeout) == (True, 1.5)
    codex = read(text.replace("1500", "500"), "config.toml").servers["x"]
    assert codex.connect_timeout == 0.5  # its name has the unit


def test_env_file_is_read_where_the_format_has_it() -> None:
    entry = {"command": "x", "envFile": "${workspaceFolder}/.env"}
    assert read_one(entry, ".vscode/mcp.json").env_file == "${workspaceFolder}/.env"
    assert read_one(entry, ".cursor/mcp.json").env_file == "${workspaceFolder}/.env"
    assert read_one(entry).extra == {"envFile": "${workspaceFolder}/.env"}


def test_codex_variables_are_kept_apart_from_texts() -> None:
    text = (
        '[mcp_servers.x]\nurl = "u"\nenv_http_headers = { A = "TOKEN" }\n'
        '[mcp_servers.y]\ncommand = "x"\nenv_vars = ["A", { name = "B", source = "local" }]\n'
    )
    servers = read(text, "config.toml").servers
    assert servers["x"].header_variables == {"A": "TOKEN"}
    assert servers["y"].forwarded == ("A", "B")
    assert servers["y"].variables == "none"


def test_inputs_are_read_with_their_secrecy() -> None:
    text = json.dumps({
        "inputs": [
            {"id": "key", "type": "promptString", "description": "Key", "password": True},
            {"id": "size", "type": "pickString", "options": ["s", {"label": "L", "value": "l"}],
             "default": ""},
        ],
    })  # fmt: skip
    found = read(text, ".vscode/mcp.json")
    assert found.problems == ()
    key, size = found.inputs.values()
    assert (key.id, key.secret, key.description, key.default) == ("key", True, "Key", None)
    assert (size.secret, size.options, size.default) == (False, ("s", "l"), "")
    assert str(size.place) == ".vscode/mcp.json:1:92: inputs[1]"
    assert not found.has_servers


@pytest.mark.parametrize(
    ("lists", "disabled"),
    [
        ({}, []),
        ({"excluded": ["a"]}, ["a"]),
        ({"allowed": ["a"]}, ["b"]),
        ({"allowed": []}, ["a", "b"]),
        ({"excluded": "a"}, ["a", "b"]),
        ([], ["a", "b"]),
    ],
)
def test_gemini_lists_disable_servers(lists: Any, disabled: list[str]) -> None:
    text = json.dumps({"mcp": lists, "mcpServers": {n: {"command": "x"} for n in "ab"}})
    found = read(text, ".gemini/settings.json")
    assert [name for name, server in found.servers.items() if server.disabled] == disabled
    assert bool(found.problems) == (
        lists not in ({}, {"excluded": ["a"]}) and "allowed" not in lists
    )


def test_read_config_broken_server_leaves_the_others() -> None:
    found = read('{"mcpServers": {"a": {"command": 1}, "b": {"command": "x"}}}')
    assert list(found.servers) == ["b"]
    assert found.broken == {"a"}


def test_read_config_above_the_limit_is_refused_unread() -> None:
    data = b" " * (4 << 20)
    assert read_config(data, file=".mcp.json").servers == {}
    with pytest.raises(InvalidConfig, match="the file is larger than 4 MiB"):
        read_config(data + b" ", file=".mcp.json")
    assert read_config(data + b" ", file=".mcp.json", max_size=5 << 20).servers == {}


@pytest.mark.perf
def test_read_config_ten_thousand_servers_take_linear_time() -> None:
    def seconds(count: int, *, wrong: bool) -> float:
        entry = {"command": 1 if wrong else "npx", "args": ["-y", "x"], "env": {"A": "b"}}
        text = json.dumps({"mcpServers": {f"s{n}": entry for n in range(count)}}, indent=1)
        start = time.process_time()
        found = read(text)
        assert len(found.problems if wrong else found.servers) == count
        return time.process_time() - start

    for wrong in (False, True):
        # Ten times as many take ten times as long, not a hundred times.
        assert seconds(10_000, wrong=wrong) < 30 * seconds(1_000, wrong=wrong) + 1


FILES = st.sampled_from([
    ".mcp.json", ".vscode/mcp.json", ".gemini/settings.json", "config.toml", "any",
])  # fmt: skip
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.sampled_from([
    "command", "args", "env", "url", "httpUrl", "headers", "type", "timeout", "disabled", "cwd",
])  # fmt: skip


@given(st.text() | st.binary(), FILES)
def test_read_config_any_content_is_read_or_refused(data: str | bytes, file: str) -> None:
    with suppress(InvalidConfig):
        assert read_config(data, file=file).file == file


@fewer_examples(10)
@given(st.dictionaries(st.text(), JSON_VALUES | st.dictionaries(MEMBERS, JSON_VALUES)), FILES)
def test_read_config_each_entry_becomes_a_server_or_a_problem(
    entries: dict[str, Any], file: str
) -> None:
    member = "servers" if "vscode" in file else "mcpServers"
    text = json.dumps({member: entries, "inputs": [], "mcp": {}})
    try:
        found = read_config(text, file=file)
    except InvalidConfig:
        return  # JSON has no NaN, and is no TOML
    assert found.servers.keys() | found.broken == entries.keys()
    assert not found.servers.keys() & found.broken
    # A value that is ignored breaks no server.
    assert {each.server for each in found.problems if not each.ignored} == found.broken


@pytest.mark.parametrize(
    ("file", "text", "name", "comments"),
    [
        (".mcp.json", "{}", "claude-code", False),
        ("mcp.json", '{"mcpServers": {}} // c', "claude-code", True),
        ("mcp.json", '{"servers": {}} // c', "vscode", True),
        (".gemini/settings.json", "{}", "gemini", True),
    ],
)
def test_format_to_edit_has_the_syntax_that_was_read(
    file: str, text: str, name: str, comments: bool
) -> None:
    client = format_to_edit(read_config(text, file=file))
    assert client.name == name
    assert client.syntax is not None
    assert client.syntax.comments is comments


def test_format_to_edit_of_toml_is_toml() -> None:
    assert format_to_edit(read_config("", file="any.toml")).syntax is None
