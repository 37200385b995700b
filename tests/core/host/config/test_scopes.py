"""Servers of several files: precedence, exclusive control, and what is left out and why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.host import (
    ConfigFile,
    ConfigVariables,
    InvalidConfig,
    MergedServers,
    ServerScope,
    merge_servers,
    read_config,
    read_policy,
)


def file(name: str, **servers: Any) -> ConfigFile:
    return read_config(json.dumps({"mcpServers": servers}), file=name)


def entry(command: str) -> dict[str, Any]:
    return {"command": command}


def commands(merged: MergedServers) -> dict[str, str | None]:
    return {name: each.server.command for name, each in merged.servers.items()}


USER = file("u", a=entry("user"), b=entry("user"), c=entry("user"))
PROJECT = file("p", a=entry("project"), b=entry("project"))
LOCAL = file("l", a=entry("local"))
ALL: list[tuple[ServerScope, ConfigFile]] = [("user", USER), ("local", LOCAL), ("project", PROJECT)]


def test_merge_servers_highest_scope_counts_for_each_name() -> None:
    merged = merge_servers(ALL)
    assert commands(merged) == {"a": "local", "b": "project", "c": "user"}
    assert {name: each.scope for name, each in merged.servers.items()} == {
        "a": "local", "b": "project", "c": "user",
    }  # fmt: skip
    assert [(each.scope, each.reason, each.explanation) for each in merged.omitted] == [
        ("project", "shadowed", "shadowed by l:1:17: mcpServers.a (local)"),
        ("user", "shadowed", "shadowed by l:1:17: mcpServers.a (local)"),
        ("user", "shadowed", "shadowed by p:1:46: mcpServers.b (project)"),
    ]


def test_merge_servers_first_file_of_a_scope_counts() -> None:
    merged = merge_servers([("user", file("1", a=entry("1"))), ("user", file("2", a=entry("2")))])
    assert commands(merged) == {"a": "1"}


@pytest.mark.parametrize("servers", [{}, {"a": entry("managed")}])
def test_merge_servers_managed_file_with_servers_has_exclusive_control(
    servers: dict[str, Any],
) -> None:
    merged = merge_servers([*ALL, ("managed", file("m\n", **servers))])
    assert commands(merged) == dict.fromkeys(servers, "managed")
    assert {each.reason for each in merged.omitted} == {"exclusive"}
    assert {each.explanation for each in merged.omitted} == {"m\\n has all servers"}


def test_merge_servers_managed_file_without_servers_leaves_the_others() -> None:
    managed = read_config('{"deniedMcpServers": []}', file="m")
    assert commands(merge_servers([*ALL, ("managed", managed)])).keys() == {"a", "b", "c"}


@pytest.mark.parametrize("text", ["[]", '{"mcpServers": []}', '{"servers": {}, "mcp": {}}'])
def test_merge_servers_broken_managed_file_is_refused(text: str) -> None:
    managed = read_config(text, file="/etc/.mcp.json")
    with pytest.raises(InvalidConfig, match=r"^/etc/\.mcp\.json:1:"):
        merge_servers([*ALL, ("managed", managed)])
    assert merge_servers([("user", managed)]).problems == managed.problems


def test_merge_servers_broken_server_shadows_lower_scopes() -> None:
    merged = merge_servers([("user", USER), ("local", file("l", a={"command": 1}))])
    assert commands(merged) == {"b": "user", "c": "user"}
    assert merged.omitted[0].explanation == "shadowed by a server with a problem in l (local)"
    assert [str(each) for each in merged.problems] == [
        "l:1:23: mcpServers.a.command: must be a string, not a number: write it in quotes"
    ]


def test_merge_servers_denied_server_is_not_replaced_by_a_lower_scope() -> None:
    policy = read_policy('{"deniedMcpServers": [{"serverCommand": ["local"]}]}', file="m")
    merged = merge_servers(ALL, policy)
    assert commands(merged) == {"b": "project", "c": "user"}
    assert [(each.scope, each.reason) for each in merged.omitted[:2]] == [
        ("local", "denied"), ("project", "shadowed"),
    ]  # fmt: skip
    assert merged.omitted[0].explanation == "denied by m:1:23: deniedMcpServers[0]"


def test_merge_servers_policy_applies_to_managed_servers() -> None:
    policy = read_policy('{"allowedMcpServers": []}', file="m")
    merged = merge_servers([("managed", LOCAL)], policy)
    assert (commands(merged), merged.omitted[0].reason) == ({}, "denied")


def test_merged_servers_expand_asks_the_policy_again() -> None:
    policy = read_policy('{"deniedMcpServers": [{"serverUrl": "https://evil.org/*"}]}', file="m")
    server = {"url": "https://${HOST}/x", "headers": {"A": "${HOST}"}}
    merged = merge_servers([("user", file("u", a=server))], policy)
    expanded = merged.expand("a", ConfigVariables(environ={"HOST": "h"}))
    assert expanded.url == "https://h/x"
    with pytest.raises(InvalidConfig) as caught:
        merged.expand("a", ConfigVariables(environ={"HOST": "evil.org"}))
    assert str(caught.value) == "u:1:17: mcpServers.a: denied by m:1:23: deniedMcpServers[0]"
    with pytest.raises(KeyError):
        merged.expand("b", ConfigVariables())


def test_merged_servers_expand_with_a_file_of_variables_needs_their_names() -> None:
    text = '{"servers": {"a": {"command": "x", "envFile": "/f"}}}'
    policy = read_policy('{"allowedMcpServers": [{"serverCommand": ["x"]}]}', file="m")
    merged = merge_servers([("user", read_config(text, file="mcp.json"))], policy)
    with pytest.raises(InvalidConfig, match=r"the variables of its file .* are not known yet"):
        merged.expand("a", ConfigVariables())
    assert merged.expand("a", ConfigVariables(), ["TOKEN"]).command == "x"
    with pytest.raises(InvalidConfig, match="LD_PRELOAD"):
        merged.expand("a", ConfigVariables(), ["LD_PRELOAD"])


def test_merged_servers_expand_uses_the_inputs_of_the_file() -> None:
    text = (
        '{"inputs": [{"id": "k", "password": true}],'
        ' "servers": {"a": {"command": "x", "args": ["${input:k}"]}}}'
    )
    merged = merge_servers([("project", read_config(text, file=".vscode/mcp.json"))])
    expanded = merged.expand("a", ConfigVariables(inputs={"k": "s3cret"}))
    assert expanded.args == ("s3cret",)
    assert expanded.secrets == {"s3cret"}


# -- Servers that take another one's place ---------------------------------------------------------

WEB = {"type": "http", "url": "https://a/", "headers": {"A": "${B}"}}
PLACED = {"command": "npx", "args": ["a"], "cwd": "/srv"}


@pytest.mark.parametrize(
    ("of_user", "of_project", "replaces"),
    [
        (WEB, WEB, False),
        (WEB, {**WEB, "timeout": 5, "disabled": True}, False),
        (WEB, {**WEB, "url": "https://b/"}, True),
        (WEB, {**WEB, "headers": {"A": "${C}"}}, True),
        (WEB, {**WEB, "headersHelper": "./run"}, True),
        (WEB, {"command": "a"}, True),
        (PLACED, PLACED, False),
        (PLACED, {**PLACED, "args": ["b"]}, True),
        (PLACED, {**PLACED, "command": "./npx"}, True),
        (PLACED, {**PLACED, "env": {"A": "b"}}, True),
        (PLACED, {**PLACED, "cwd": "/tmp"}, True),
        # The same program, and fewer restrictions.
        ({**WEB, "deniedTools": ["a"]}, {**WEB, "deniedTools": ["a"]}, False),
        ({**WEB, "deniedTools": ["a"]}, WEB, True),
        (WEB, {**WEB, "allowedTools": []}, True),
        ({**PLACED, "allowedTools": ["a"]}, {**PLACED, "allowedTools": ["a", "b"]}, True),
        # What the directory of the file decides: `npx` loads code from there.
        (entry("npx"), entry("npx"), True),
        ({**PLACED, "cwd": "srv"}, {**PLACED, "cwd": "srv"}, True),
        # Not to be compared.
        ({"command": 1}, WEB, True),
    ],
)
def test_project_server_replaces_users_server_unless_launch_is_the_same(
    of_user: dict[str, Any], of_project: dict[str, Any], replaces: bool
) -> None:
    files: list[tuple[ServerScope, ConfigFile]]
    for scope in "project", "local":
        files = [(scope, file("p", a=of_project)), ("user", file("u\n", a=of_user))]
        counting = merge_servers(files).servers["a"]
        assert counting.replaces == (("u\\n (user)",) if replaces else ())


def test_server_of_a_more_trusted_scope_replaces_none() -> None:
    assert merge_servers(ALL).servers["a"].replaces == ("u (user)",)  # local, before project
    assert merge_servers([ALL[1], ALL[2]]).servers["a"].replaces == ()
    managed: tuple[ServerScope, ConfigFile] = ("managed", file("m", a=entry("managed")))
    assert merge_servers([*ALL, managed]).servers["a"].replaces == ()
    assert merge_servers(ALL).servers["c"].replaces == ()


def test_managed_file_with_one_broken_server_keeps_the_others() -> None:
    merged = merge_servers([("managed", file("m", a=entry("x"), b=1))])
    assert commands(merged) == {"a": "x"}
    assert merged.is_exclusive
    assert not merge_servers([("user", file("m", a=entry("x")))]).is_exclusive


def test_merged_servers_by_themselves_have_no_policy() -> None:
    merged = MergedServers(servers={}, omitted=(), problems=())
    assert (merged.policy, merged.is_exclusive) == (None, False)
