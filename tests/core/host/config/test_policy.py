"""Lists of allowed and denied servers, by name, command and address."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host import (
    ConfigVariables,
    InvalidConfig,
    ServerConfig,
    ServerPolicy,
    expand_server,
    find_denial,
    read_config,
    read_policy,
)
from mcp_core.host.config._policy import _matches_text


def policy_of(allowed: list[Any] | None = None, denied: list[Any] | None = None) -> ServerPolicy:
    members = {"allowedMcpServers": allowed, "deniedMcpServers": denied}
    found = {name: entries for name, entries in members.items() if entries is not None}
    return read_policy(json.dumps(found), file="managed.json")


def server(entry: dict[str, Any], name: str = "x") -> ServerConfig:
    return read_config(json.dumps({"mcpServers": {name: entry}}), file=".mcp.json").servers[name]


def remote(url: str, name: str = "x", type: str = "http") -> ServerConfig:
    return server({"type": type, "url": url}, name)


NPX = server({"command": "npx", "args": ["-y", "server"]})

# The tables of code.claude.com/docs/en/managed-mcp, and what they leave open.
URLS = [
    ("https://mcp.example.com/*", "https://mcp.example.com/api", True),
    ("https://mcp.example.com/*", "https://mcp.example.com/", True),
    ("https://mcp.example.com/*", "https://mcp.example.com", True),
    ("https://mcp.example.com/*", "https://MCP.Example.com./api", True),
    ("https://Mcp.Example.com./*", "https://mcp.example.com/api", True),
    ("https://mcp.example.com/*", "https://mcp.example.com.evil.org/", False),
    ("https://mcp.example.com/*", "https://evil.org/mcp.example.com/", False),
    ("https://mcp.example.com/*", "https://mcp.example.com:8443/", False),
    ("https://mcp.example.com/*", "https://mcp.example.com:443/", True),
    ("https://mcp.example.com/*", "http://mcp.example.com/", False),
    ("https://mcp.example.com/*", "https://mcp.example.com@evil.org/", False),
    ("https://mcp.example.com", "https://mcp.example.com/any/path?q", True),
    ("https://*.example.com/*", "https://a.b.example.com/x", True),
    ("https://*.example.com/*", "https://example.com/x", False),
    ("https://*.example.com/*", "https://evil.org/.example.com/x", False),
    ("https://*.example.com/*", "https://evil.org?.example.com/x", False),
    ("http://localhost:*/*", "http://localhost:3000/mcp", True),
    ("http://localhost:*/*", "http://localhost/mcp", True),
    ("http://localhost:3000", "http://localhost:3001/mcp", False),
    ("http://localhost:3000", "http://localhost:3000/mcp", True),
    ("*://mcp.example.com/*", "http://mcp.example.com/", True),
    ("https://h/Api/*", "https://h/api/x", False),
    ("https://h/api", "https://h/api/x", False),
    ("https://h/api", "https://h/api?key=1", True),
    ("https://h/api?key=*", "https://h/api?key=1", True),
    ("https://h/api?key=*", "https://h/api", False),
    ("https://h/api/*", "https://h/api/../other", False),
    ("https://h/api/*", "https://h/api/%2e%2E/other", False),
    ("https://[::1]:*/*", "https://[::1]:8443/mcp", True),
    ("https://bücher.example/*", "https://xn--bcher-kva.example/", True),
    ("*", "https://anything.example/", True),
    ("*", "not a URL", False),
]


@pytest.mark.parametrize(("pattern", "url", "matches"), URLS)
def test_allowed_url_matches_part_by_part(pattern: str, url: str, matches: bool) -> None:
    denial = find_denial(policy_of(allowed=[{"serverUrl": pattern}]), remote(url))
    assert denial == (None if matches else "its address is not in allowedMcpServers")


@pytest.mark.parametrize(
    ("pattern", "url", "matches"),
    [
        ("https://*.evil.org/*", "https://a.evil.org/x", True),
        ("https://*.evil.org/*", "https://a.evil.org:8443/x", True),
        ("https://evil.org:443/*", "https://evil.org:8443/x", False),
        ("https://evil.org/a/*", "https://evil.org/b/../a/x", True),
        ("https://evil.org/admin/*", "https://evil.org/%61dmin/x", True),
        ("https://evil.org/admin/*", "https://evil.org/other", False),
        ("https://evil.org/*", "https://good.org/evil.org/", False),
        ("https://evil.org/*", "https://u:p@evil.org/", True),
    ],
)
def test_denied_url_is_read_strictly(pattern: str, url: str, matches: bool) -> None:
    denial = find_denial(policy_of(denied=[{"serverUrl": pattern}]), remote(url))
    assert denial == ("denied by managed.json:1:23: deniedMcpServers[0]" if matches else None)


def test_websocket_url_has_its_own_scheme() -> None:
    policy = policy_of(allowed=[{"serverUrl": "wss://h/*"}])
    assert find_denial(policy, remote("wss://h/x", type="ws")) is None
    assert find_denial(policy, remote("https://h/x")) is not None


NAME, COMMAND = {"serverName": "x"}, {"serverCommand": ["npx", "-y", "server"]}
URL = {"serverUrl": "https://h/*"}


@pytest.mark.parametrize(
    ("allowed", "stdio", "http"),
    [
        (None, True, True),
        ([], False, False),
        ([NAME], True, True),
        ([{"serverName": "X"}], False, False),
        ([COMMAND], True, False),
        ([URL], False, True),
        ([NAME, {"serverCommand": ["node"]}], False, True),
        ([NAME, {"serverUrl": "https://other/*"}], True, False),
        ([{"serverCommand": ["npx", "server"]}], False, False),
        ([{"serverCommand": ["npx", "-y", "server", "--flag"]}], False, False),
        ([COMMAND, URL], True, True),
    ],
)
def test_allowed_name_counts_without_stricter_entries_of_the_kind(
    allowed: list[Any] | None, stdio: bool, http: bool
) -> None:
    policy = policy_of(allowed)
    assert (find_denial(policy, NPX) is None) == stdio
    assert (find_denial(policy, remote("https://h/x")) is None) == http


@pytest.mark.parametrize("entry", [NAME, COMMAND])
def test_denied_entry_wins_over_allowed_ones(entry: dict[str, Any]) -> None:
    policy = policy_of(allowed=[NAME, COMMAND], denied=[{"serverName": "y"}, entry])
    denial = find_denial(policy, NPX)
    assert denial is not None
    assert denial.endswith("deniedMcpServers[1]")
    assert find_denial(policy_of(denied=[]), NPX) is None


def test_server_with_variables_is_decided_with_their_values() -> None:
    config = remote("https://${HOST}/x")
    allowed, denied = policy_of(allowed=[URL]), policy_of(denied=[URL])
    assert find_denial(allowed, config) is None
    assert find_denial(denied, config) is None
    good = expand_server(config, ConfigVariables(environ={"HOST": "h"}))
    other = expand_server(config, ConfigVariables(environ={"HOST": "other"}))
    assert find_denial(allowed, good) is None
    assert find_denial(allowed, other) is not None
    assert find_denial(denied, good) is not None
    assert find_denial(denied, other) is None
    # Their values do not matter here.
    assert find_denial(policy_of(allowed=[]), config) is not None
    assert find_denial(policy_of(denied=[NAME]), config) is not None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "1:1: the file must be an object"),
        ('{"allowedMcpServers": {}}', "1:2: allowedMcpServers: must be an array"),
        ('{"deniedMcpServers": [],\n"deniedMcpServers": []}', "2:1: deniedMcpServers: is there"),
        ('{"deniedMcpServers": ["x"]}', "1:23: deniedMcpServers[0]: must be an object with one"),
        ('{"deniedMcpServers": [{}]}', "1:23: deniedMcpServers[0]: must be an object with one"),
        ('{"deniedMcpServers": [{"name": "x"}]}', "1:23: deniedMcpServers[0]: must be an obj"),
        (
            '{"deniedMcpServers": [{"serverName": "x", "serverUrl": "*"}]}',
            "1:23: deniedMcpServers[0]: must be an object with one",
        ),
        (
            '{"deniedMcpServers": [{"serverName": 1}]}',
            "1:24: deniedMcpServers[0].serverName: must be a string, not a number",
        ),
        ('{"deniedMcpServers": [{"serverName": " x"}]}', "1:24: deniedMcpServers[0].serverName:"),
        ('{"allowedMcpServers": [{"serverName": "a.b"}]}', "1:25: allowedMcpServers[0].serverN"),
        ('{"deniedMcpServers": [{"serverCommand": []}]}', "1:23: deniedMcpServers[0]: needs a"),
        ('{"deniedMcpServers": [{"serverCommand": "x"}]}', "1:24: deniedMcpServers[0].serverCo"),
        ('{"deniedMcpServers": [{"serverUrl": "h/*"}]}', "1:24: deniedMcpServers[0].serverUrl: "),
        ('{"deniedMcpServers": [{"serverUrl": "https://${H}"}]}', "1:23: deniedMcpServers[0]: has"),
    ],
)
def test_read_policy_wrong_entry_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        read_policy(text, file="f")
    assert str(caught.value).startswith(f"f:{problem}")
    assert len(caught.value.problems) == 1


def test_read_policy_empty_file_allows_all() -> None:
    assert read_policy(b"", file="f") == ServerPolicy(allowed=None, denied=())
    assert policy_of([]).allowed == ()


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [("a", "a", True), ("a", "ab", False), ("*", "", True), ("a*a", "a", False),
     ("a*a", "aa", True), ("a*b*c", "axxbxc", True), ("a*b*b", "ab", False), ("**", "x", True)],
)  # fmt: skip
def test_star_stands_for_any_text(pattern: str, text: str, matches: bool) -> None:
    assert _matches_text(pattern, text) == matches


def test_many_stars_take_linear_time() -> None:
    start = time.process_time()
    assert not _matches_text("*a" * 5_000 + "b*c", "a" * 100_000 + "c")
    assert time.process_time() - start < 1


@given(st.text(), st.text(alphabet="ab*/:.?"))
def test_find_denial_any_pattern_and_address_is_decided(url: str, pattern: str) -> None:
    config = remote("https://h/" + url.replace("\0", "").encode("utf-8", "replace").decode())
    try:
        policy = policy_of(allowed=[{"serverUrl": f"https://h/{pattern}"}])
    except InvalidConfig:
        return
    assert find_denial(policy, config) in (None, "its address is not in allowedMcpServers")
