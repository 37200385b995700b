"""Members that restrict a server: lists of tools, what turns it off, and what is not understood."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.host import CLIENT_FORMATS, ConfigFile, read_config
from mcp_core.host.config import _restrictions

# A file of each format by its path, and one without a name that says anything.
FILES = {
    "claude-code": ".mcp.json",
    "claude-desktop": "claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "codex": "config.toml",
    "gemini": "settings.json",
}
OWN = ("allowedTools", "deniedTools")
LISTS = {
    "codex": ("enabled_tools", "disabled_tools"),
    "gemini": ("includeTools", "excludeTools"),
}


def file_of(format: str, more: dict[str, Any]) -> ConfigFile:
    """Read a file of a format with one server x that has these members."""
    if format == "codex":
        lines = [f"{json.dumps(name)} = {_toml(value)}" for name, value in more.items()]
        text = "\n".join(["[mcp_servers.x]", 'command = "c"', *lines])
    else:
        servers = CLIENT_FORMATS[format].servers[0]
        text = json.dumps({servers: {"x": {"command": "c", **more}}}, indent=1)
    return read_config(text, file=FILES[format])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(name)} = {_toml(each)}" for name, each in value.items())
        return f"{{{inner}}}"
    return json.dumps(value)


# -- Lists of tools --------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize(
    ("allowed", "denied", "usable"),
    [
        (None, None, {"read", "write", "other"}),
        (["read", "write"], None, {"read", "write"}),
        (None, ["write"], {"read", "other"}),
        (["read", "write"], ["write"], {"read"}),
        ([], None, set()),
        (None, [], {"read", "write", "other"}),
        (["Read"], None, set()),
    ],
)
def test_tool_lists_of_each_format_hold_and_denied_wins(
    format: str, allowed: list[str] | None, denied: list[str] | None, usable: set[str]
) -> None:
    names = LISTS.get(format, OWN)
    lists = dict(zip(names, (allowed, denied), strict=True))
    found = file_of(format, {name: each for name, each in lists.items() if each is not None})
    assert found.problems == ()
    server = found.servers["x"]
    assert server.allowed_tools == (None if allowed is None else tuple(allowed))
    assert server.denied_tools == tuple(denied or ())
    assert not server.extra
    tools = ("read", "write", "other")
    assert {tool for tool in tools if server.find_tool_denial(tool) is None} == usable


def test_tool_denial_names_file_line_and_member() -> None:
    found = file_of("claude-code", {"allowedTools": ["read"], "deniedTools": ["write"]})
    server = found.servers["x"]
    assert server.find_tool_denial("write") == (
        "its file denies it (.mcp.json:8:4: mcpServers.x.deniedTools)"
    )
    assert server.find_tool_denial("other") == (
        "its file allows other tools only (.mcp.json:5:4: mcpServers.x.allowedTools)"
    )
    assert str(server.tool_lists_place).startswith(".mcp.json:5:4")
    found = file_of("codex", {"disabled_tools": ["write"]})
    assert found.servers["x"].find_tool_denial("write") == (
        "its file denies it (config.toml:3:1: mcp_servers.x.disabled_tools)"
    )


@pytest.mark.parametrize("member", OWN)
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("write", "must be an array of strings, not a string"),
        ({"write": True}, "must be an array of strings, not an object"),
        ([1], "must be a string, not a number"),
        (["write_*"], "is a pattern, a variable, or a name with arguments"),
        (["write(all)"], "is a pattern, a variable, or a name with arguments"),
        (["${TOOLS}"], "is a pattern, a variable, or a name with arguments"),
        (["mcp__x__write"], "is a merged name: write the name that the server gives to it"),
        ([" write"], "is empty, or has white space around it"),
        ([""], "is empty, or has white space around it"),
        (["a\0"], "has a NUL character or half of a surrogate pair"),
    ],
)
def test_tool_list_that_would_match_nothing_is_a_problem(
    member: str, value: Any, problem: str
) -> None:
    found = file_of("claude-code", {member: value})
    assert not found.servers
    assert found.broken == {"x"}
    (text,) = found.problems
    assert text.problem.startswith(problem)
    assert text.restricts
    assert text.place.member.startswith(f"mcpServers.x.{member}")


def test_tool_list_twice_or_beside_the_servers_leaves_the_server_out() -> None:
    text = '{"mcpServers": {"x": {"command": "c", "deniedTools": ["a"], "deniedTools": []}}}'
    assert read_config(text, file=".mcp.json").broken == {"x"}
    text = '{"deniedTools": ["a"], "mcpServers": {"x": {"command": "c"}}}'
    found = read_config(text, file=".mcp.json")
    assert not found.servers
    assert found.broken == {"x"}
    assert str(found.problems[0]) == (
        ".mcp.json:1:2: deniedTools: is for one server: move it into the server's entry"
    )
    # Claude Code has members of its own there.
    text = text.replace("deniedTools", "allowedTools")
    assert list(read_config(text, file="/home/u/.claude.json").servers) == ["x"]


@pytest.mark.parametrize(
    ("more", "asks"),
    [
        ({}, False),
        ({"default_tools_approval_mode": "auto"}, False),
        ({"default_tools_approval_mode": "approve"}, False),
        ({"default_tools_approval_mode": "prompt"}, True),
        ({"default_tools_approval_mode": 1}, True),
        ({"tools": {"open": {"approval_mode": "prompt"}}}, True),
        ({"tools": {"open": {"approval_mode": "approve"}}}, False),
    ],
)
def test_approval_mode_of_codex_asks_always(more: dict[str, Any], asks: bool) -> None:
    found = file_of("codex", more)
    assert found.problems == ()
    assert found.servers["x"].asks_always is asks


# -- What is not understood ------------------------------------------------------------------------

RESTRICTING: list[dict[str, Any]] = [
    {"includeTools": ["read"]},
    {"excludeTools": ["write"]},
    {"enabled_tools": ["read"]},
    {"disabled_tools": ["write"]},
    {"disabledTools": ["write"]},  # Roo Code, Windsurf, Kiro
    {"enabledTools": []},
    {"available_tools": ["read"]},  # Goose
    {"tools": ["read"]},  # GitHub Copilot
    {"tools": []},
    {"tools": {"write": False}},
    {"tools": {"write": {"enabled": False}}},
    {"tools": {"deny": ["write"]}},
    {"_extensions": {"tools": {"deny": ["write"]}}},  # mcp-proxy
    {"allowed_tools": ["read"]},  # Responses API
    {"require_approval": "always"},
    {"allowed-tools": ["read"]},
    {"AllowedTools": ["read"]},
    {"toolAllowlist": ["read"]},
    {"tool_filter": {"only": ["read"]}},
    {"excludedTools": "write"},
    {"hiddenTools": ["write"]},
    {"blockedCommands": ["rm"]},
    {"allowedDirectories": ["/tmp"]},
    {"permissions": {"deny": ["Write"]}},
    {"readOnly": True},
    {"read_only": True},
    {"readonly": True},
    {"sandbox": {"network": {"allowedDomains": []}}},
    {"sandboxEnabled": True},
    {"isolation": "container"},
    {"default_tools_enabled": False},
    {"enable": False},
    {"isActive": False},  # Cherry Studio
    {"disable": True},
    {"Disabled": True},
    {"policy": "strict"},
]


@pytest.mark.parametrize("more", RESTRICTING, ids=json.dumps)
def test_restriction_that_is_not_understood_leaves_the_server_out(more: dict[str, Any]) -> None:
    found = file_of("claude-code", more)
    assert not found.servers
    assert found.broken == {"x"}
    (problem,) = found.problems
    (member,) = more
    assert problem.place.line >= 5
    assert member in problem.place.member
    assert problem.server == "x"
    assert problem.restricts
    assert problem.problem.startswith(
        "restricts the server in a way that is not understood, so the server is not used: "
    )
    assert "allowedTools" in problem.problem


@pytest.mark.parametrize(
    ("format", "more"),
    [
        ("codex", {"includeTools": ["read"]}),
        ("codex", {"allowedTools": ["read"]}),
        ("codex", {"tools": {"write": {"enabled": False}}}),
        ("gemini", {"enabled_tools": ["read"]}),
        ("gemini", {"deniedTools": ["write"]}),
        ("cursor", {"excludeTools": ["write"]}),
        ("vscode", {"sandboxEnabled": True}),
    ],
)
def test_restriction_of_another_format_leaves_the_server_out(
    format: str, more: dict[str, Any]
) -> None:
    found = file_of(format, more)
    assert not found.servers
    assert found.broken == {"x"}
    names = LISTS.get(format, OWN)
    assert all(name in str(found.problems[0]) for name in names)


@pytest.mark.parametrize(
    "more",
    [
        # What loosens is ignored.
        {"alwaysAllow": ["write"]},
        {"autoApprove": ["*"]},
        {"autoApproveTools": ["write"]},
        {"alwaysAllowTools": ["write"]},
        {"trust": True},
        {"require_approval": "never"},
        # Nothing is restricted.
        {"tools": ["*"]},
        {"tools": [{"name": "read", "description": "Reads."}]},
        {
            "tools": {
                "open": {"approval_mode": "approve"},
                "delete_block": {"approval_mode": "auto"},
            }
        },
        {"disabledTools": []},
        {"excludeTools": None},
        {"sandbox": False},
        {"sandbox": {}},
        {"readOnly": False},
        {"enabledTools": ["*"]},
        # Other things.
        {"description": "Only reads."},
        {"gallery": True, "version": "1", "icons": []},
        {"auth": {"CLIENT_ID": "x", "scopes": ["read", "write"]}},
        {"oauth": {"clientId": "x", "scopes": ["read"]}},
        {"dev": {"watch": "**/*.ts", "debug": {"type": "node"}}},
        {"logging": {"enabled": False}},
        {"disableTelemetry": True},
        {"headersHelper": "./make-headers"},
        {"supports_parallel_tool_calls": False},
        {"required": False, "scopes": ["read"]},
        {"rateLimit": 5, "alwaysLoad": True, "autoStart": False},
        {"metadata": {"tags": ["a"], "category": "tools"}},
        {"not known yet": 1, "": 2},
    ],
    ids=json.dumps,
)
def test_member_that_restricts_nothing_is_left_alone(more: dict[str, Any]) -> None:
    found = file_of("claude-code", more)
    assert found.problems == ()
    server = found.servers["x"]
    assert server.extra == more
    assert server.find_tool_denial("write") is None
    assert not server.asks_always


# -- Servers that are turned off -------------------------------------------------------------------


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize(
    ("more", "disabled"),
    [
        ({"enabled": False}, True),
        ({"enabled": True}, False),
        ({"disabled": True}, True),
        ({"disabled": False}, False),
        ({"enabled": True, "disabled": True}, True),
        ({"enabled": False, "disabled": False}, True),
    ],
)
def test_server_is_disabled_in_every_format(
    format: str, more: dict[str, Any], disabled: bool
) -> None:
    found = file_of(format, more)
    assert found.problems == ()
    assert found.servers["x"].disabled is disabled
    assert not found.servers["x"].extra


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("member", ["enabled", "disabled"])
@pytest.mark.parametrize("value", ["false", 0, []])
def test_server_with_unclear_disabling_is_left_out(format: str, member: str, value: Any) -> None:
    found = file_of(format, {member: value})
    assert not found.servers
    assert found.broken == {"x"}
    (problem,) = found.problems
    assert problem.problem.startswith("must be true or false, not ")
    assert problem.restricts


@pytest.mark.parametrize(
    ("lists", "usable"),
    [
        ({"allowMCPServers": ["a"]}, ["a"]),
        ({"excludeMCPServers": ["a"]}, ["b"]),
        ({"excludeMCPServers": ["A "]}, ["b"]),
        ({"mcp": {"excluded": ["b"]}, "excludeMCPServers": ["a"]}, []),
        ({"mcp": {"allowed": ["b", "a"]}, "allowMCPServers": ["a"]}, ["a"]),
        ({"allowMCPServers": []}, []),
        ({"excludeMCPServers": "a"}, []),
        ({"mcp": [], "excludeMCPServers": ["a"]}, []),
    ],
)
def test_older_lists_of_gemini_turn_servers_off(lists: dict[str, Any], usable: list[str]) -> None:
    text = json.dumps({**lists, "mcpServers": {"a": {"command": "c"}, "b": {"command": "c"}}})
    found = read_config(text, file="settings.json")
    assert [name for name, each in found.servers.items() if not each.disabled] == usable


@pytest.mark.parametrize(
    ("beside", "problems", "is_disabled"),
    [
        ('"theme": 1, "theme": 2', [], False),
        ('"mcp": {"x": 1, "x": 2}', [], False),
        ('"mcp": {}, "mcp": {}', ["mcp"], True),
        ('"mcp": {"excluded": [], "excluded": []}', ["mcp.excluded"], True),
        ('"allowMCPServers": ["a"], "allowMCPServers": ["a"]', ["allowMCPServers"], True),
    ],
)
def test_only_lists_of_gemini_that_are_there_twice_turn_servers_off(
    beside: str, problems: list[str], is_disabled: bool
) -> None:
    """Other settings that are there twice say nothing about servers."""
    text = f'{{"mcpServers": {{"a": {{"command": "c"}}}}, {beside}}}'
    found = read_config(text, file="settings.json")
    assert [each.place.member for each in found.problems] == problems
    assert found.servers["a"].disabled is is_disabled


@pytest.mark.parametrize(
    ("file", "servers", "entry", "usable"),
    [
        (".copilot/mcp-config.json", "mcpServers", {"tools": ["*"]}, {"read", "write"}),
        (".copilot/mcp-config.json", "mcpServers", {"tools": ["read"]}, {"read"}),
        ("goose/config.yaml", "extensions", {"available_tools": []}, {"read", "write"}),
        ("goose/config.yaml", "extensions", {"available_tools": ["read"]}, {"read"}),
    ],
)
def test_list_that_stands_for_all_tools_restricts_nothing(
    file: str, servers: str, entry: dict[str, Any], usable: set[str]
) -> None:
    command = "cmd" if servers == "extensions" else "command"
    text = json.dumps({servers: {"x": {command: "c", **entry}}})
    found = read_config(text, file=file)
    assert found.problems == ()
    tools = {
        each for each in ("read", "write") if found.servers["x"].find_tool_denial(each) is None
    }
    assert tools == usable


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"deny": 0}, []),
        ({"deny": ""}, []),
        ({"deny": []}, []),
        ({"deny": {}}, []),
        ({"deny": False}, []),
        ({"deny": 1}, [(("deny",), False)]),
        ({"tools": False}, [(("tools",), True)]),
        ({"tools": True}, []),
        ({"tools": []}, [(("tools",), True)]),
        ({"tools": ["a", {}]}, [(("tools",), True)]),
        ({"tools": [{}, "a"]}, []),
        ({"except": ["a"]}, []),
        ({"toolsets": {"except": ["a"]}}, [(("toolsets", "except"), True)]),
        ({"tools": {"a": {"except": ["a"]}}}, [(("tools", "a", "except"), True)]),
        ({"tools": {"other": False}}, [(("tools", "other"), True)]),
        ({"tools": {"other": True}}, []),
        ({"a": {"b": {"readOnly": True}}}, [(("a", "b", "readOnly"), False)]),
    ],
)
def test_member_that_restricts_is_found_with_whether_it_is_about_tools(
    members: dict[str, Any], found: list[Any]
) -> None:
    assert list(_restrictions._find_restricting(members, asks=False)) == found


@pytest.mark.parametrize(
    ("more", "cure"),
    [
        ({"readOnly": True}, "remove it, or restrict tools with allowedTools and deniedTools"),
        ({"tools": {"deny": ["a"]}}, "name tools in allowedTools or deniedTools"),
    ],
)
def test_member_that_restricts_has_a_cure(more: dict[str, Any], cure: str) -> None:
    (problem,) = file_of("claude-code", more).problems
    assert problem.problem == (
        "restricts the server in a way that is not understood, so the server is not used:"
        f" {cure}; `disabled` turns a whole server off"
    )


def test_list_of_tools_that_is_null_is_read() -> None:
    server = file_of("claude-code", {"allowedTools": None, "deniedTools": None}).servers["x"]
    assert (server.allowed_tools, server.denied_tools, server.extra) == (None, (), {})


def test_each_name_of_a_list_of_tools_is_checked() -> None:
    found = file_of("claude-code", {"allowedTools": ["a", "b*", "c", " d"]})
    members = [each.place.member for each in found.problems]
    assert members == ["mcpServers.x.allowedTools[1]", "mcpServers.x.allowedTools[3]"]


@pytest.mark.parametrize(
    ("extra", "asks"),
    [
        ({}, False),
        ({"tools": {"a": 1, "b": {}}}, False),
        ({"tools": {"a": 1, "b": {"approval_mode": "prompt"}}}, True),
        ({"tools": {"b": {"approval_mode": "approve"}}}, False),
        ({"tools": [], "default_tools_approval_mode": "prompt"}, True),
    ],
)
def test_asks_always_one_tool_that_is_to_be_approved_is_enough(
    extra: dict[str, Any], asks: bool
) -> None:
    assert _restrictions.asks_always(extra) is asks
