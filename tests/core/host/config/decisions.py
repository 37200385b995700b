"""The readings of hosts and targets, and the decisions of each list on each server.

    python -m tests.core.host.config.decisions

writes `decisions.txt` again, which keeps them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_core.host import (
    ConfigVariables,
    InvalidConfig,
    expand_server,
    find_denial,
    read_config,
    read_policy,
)
from mcp_core.host.config._policy import matches_text
from mcp_core.host.config._url_readings import plain_host, read_host, read_target
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_core.host import ServerConfig

__all__ = ["decided", "decisions_to_make", "kept_decisions"]

_FILE: Final = Path(__file__).with_name("decisions.txt")

_HOSTS: Final = (
    "e.com", "E.COM.", "e.com..", "*.e.com", "*.1", "bücher.example", "Bu\u0308cher.example",
    "ｅ.com", "é*", f"{'é' * 70}.com", "127.0.0.1", "127.1", "127.0.1", "127.256", "127.65536",
    "127.16777215", "127.16777216", "2130706433", "4294967295", "4294967296", "0x7f000001",
    "0X7F.1", "0x", "0x.0x", "0177.0.0.1", "08.1", "1.256.1", "256.1", "1.2.3.4", "1.2.3.4.",
    "1.2.3.4.5", "1..2", "1.a", "0x1g", f"{'0' * 18}1", f"{'0' * 19}1", "[::1]", "::1",
    "[::FFFF:127.0.0.1]", "[2002:7f00:1::]", "[fe80::1%25eth0]", "fe80::1%eth0", "[::x]", "%65.com",
    "a\\b.com", "a@b", "a/b", "a?b", "a#b", "a\tb", "a%5Cb", "a%09b", "%31.2.3.4", "",
)  # fmt: skip

_TARGETS: Final = (
    "", "/", "/a", "/a/", "/a/.", "/a/./", "/a/..", "/a/b/..", "/a/b/../", "/a/../..", "/a/../../b",
    "/..", "/../a", "/.", "/./a", "/a/b/.", "/..a", "/a/..b", "/a/...", "a/..", "a/../b", "..", ".",
    "//a", "/a//b", "///", "/a\\b", "/a/..\\b", "/a;x/b", "/a;x=1/..;/b", "/a;", "/a%2fb",
    "/a%252fb", "/%2e%2e/a", "/a%3bx", "/a%u002eb", "/a%U002Fb", "/a%c0%aeb", "/a%C0%AFb",
    "/a%e0%80%aeb", "/a%e0%80%afb", "/a\tb", "/a%0ab", "/a%00b", "/\u2025/a", "/ａ", "/é", "/a?b",
    "/a?b%20c", "/a?b=%252e", "/a?..", "/a/..?x;y", "/%61?%61", "/a?", f"/{'a' * 4094}",
    f"/{'a' * 4095}", f"/{'a' * 4096}", *(f"/{'%2561' * n}" for n in (1, 2)),
    *(f"/{';a/b' * n}" for n in (1, 2)), "/" + "%u0061" * 40,
)  # fmt: skip

_PATTERNS: Final = (
    "*", "https://e.com", "https://e.com/", "https://e.com/*", "https://e.com:*/*",
    "https://e.com:443/*", "https://e.com:8443/a", "HTTP*://E.com./a*", "*://*.e.com/*",
    "ws*://e.com/*", "http://127.0.0.1:*/*", "http://127.1:80", "https://[::1]/*",
    "https://bücher.example/*", "https://e.com/a/*", "https://e.com/A", "https://e.com/a?k=*",
    "https://*/a", "https://e*m/*b",
)  # fmt: skip
_ADDRESSES: Final = (
    "https://e.com", "https://e.com/", "https://E.com.:443/a", "https://e.com:8443/a",
    "http://e.com/a", "http://e.com:8080", "https://a.e.com/", "https://a.b.e.com/x",
    "https://e.com.f.org/", "ws://e.com/", "wss://e.com/a", "http://127.0.0.1:80/",
    "http://127.0.0.1:81/a", "http://2130706433/", "http://[::ffff:127.0.0.1]/", "https://[::1]/",
    "https://[0:0::1]:443/a", "https://xn--bcher-kva.example/", "https://BÜCHER.example/a",
    "https://e.com/a/b", "https://e.com/a/../b", "https://e.com/b/..;/a/b", "https://e.com/%61/b",
    "https://e.com/a?k=1", "https://e.com/a?K=1", "https://e.com/A", "https://e.com/" + "a" * 5000,
    "https://u@e.com/", "not a URL", "https://f.com/a", "https://f.com/?b", "https://eXm/b",
)  # fmt: skip

# Servers by name: the entry of a file, for lists of names and commands.
_SERVERS: Final[dict[str, dict[str, Any]]] = {
    "plain": {"command": "npx", "args": ["-y", "x"]},
    "path": {"command": "/usr/bin/NPX.cmd. ", "args": ["-y", "x"]},
    "windows": {"command": "C:\\bin\\npx.exe\\", "args": ["-y", "x"]},
    "less": {"command": "npx", "args": ["-y"]},
    "suffix": {"command": "npx.sh.exe", "args": ["-y", "x"]},
    "alone": {"command": "/", "args": []},
    "path variable": {"command": "npx", "args": ["-y", "x"], "env": {"PATH": "/x"}},
    "harmless variable": {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "/x"}},
    "directory": {"command": "npx", "args": ["-y", "x"], "cwd": "/d"},
    "file": {"command": "npx", "args": ["-y", "x"], "envFile": "/f.env"},
    "variable": {"command": "${A:-npx}", "args": ["-y", "x"]},
    "remote": {"type": "http", "url": "https://e.com/a"},
    "remote variable": {"type": "http", "url": "https://${B:-e.com}/a"},
}
_POLICIES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"allowedMcpServers": []},
    {"deniedMcpServers": []},
    *(
        {name: [entry]}
        for name in ("allowedMcpServers", "deniedMcpServers")
        for entry in (
            {"serverName": "plain"},
            {"serverCommand": ["npx", "-y", "x"]},
            {"serverUrl": "https://e.com/a"},
            {"serverUrl": "*"},
        )
    ),
    {"deniedMcpServers": [{"serverCommand": ["/x/NPX.BAT", "-y", "x"]}, {"serverCommand": ["/"]}]},
    {"allowedMcpServers": [{"serverName": "remote"}, {"serverCommand": ["npx", "-y"]}]},
    {"allowedMcpServers": [{"serverName": "remote"}, {"serverUrl": "https://f.com"}]},
    {
        "allowedMcpServers": [{"serverUrl": "*"}, {"serverCommand": ["npx", "-y", "x"]}],
        "deniedMcpServers": [{"serverName": "path"}, {"serverUrl": "https://e.com/*"}],
    },
)
_RESTRICTIONS: Final = (
    ("allowedServers", "1"), ("denyList", "[1]"), ("deniedList", "0"), ("blocked", '"true"'),
    ("MCP_Servers", "{}"), ("mcp-server", "1"), ("excluded", '"a"'), ("disabledTools", "1"),
    ("policy", "1"), ("forbidden", "1"), ("Restricted", "1"), ("other", "1"),
)  # fmt: skip
_BROKEN: Final = (
    "", "null", "[]", "1", "{", '{"allowedMcpServers": {}}', '{"deniedMcpServers": null}',
    '{"allowedMcpServers": [1]}', '{"allowedMcpServers": [{}]}',
    '{"allowedMcpServers": [{"serverName": "a", "serverUrl": "*"}]}',
    '{"allowedMcpServers": [{"servername": "a"}]}', '{"allowedMcpServers": [{"serverName": 1}]}',
    '{"allowedMcpServers": [{"serverName": "a b"}]}',
    '{"deniedMcpServers": [{"serverName": "a b"}]}', '{"deniedMcpServers": [{"serverName": " a"}]}',
    '{"deniedMcpServers": [{"serverName": ""}]}', '{"allowedMcpServers": [{"serverCommand": []}]}',
    '{"allowedMcpServers": [{"serverCommand": "a"}]}',
    '{"allowedMcpServers": [{"serverCommand": ["${A}"]}]}',
    '{"deniedMcpServers": [{"serverUrl": "${A}"}]}', '{"deniedMcpServers": [{"serverUrl": ""}]}',
    '{"deniedMcpServers": [{"serverUrl": "e.com"}]}',
    '{"deniedMcpServers": [{"serverUrl": "https://e.com:123456"}]}',
    '{"deniedMcpServers": [{"serverUrl": "https://e/#a"}]}',
    '{"deniedMcpServers": [{"serverUrl": "https://u@e.com"}]}',
    '{"deniedMcpServers": [{"serverUrl": "https://[::1/"}]}',
    '{"deniedMcpServers": [], "deniedMcpServers": [], "x": 1, "x": 2}',
    '{"mcpServers": {"a": 1}, "x": 1}',
    *(f'{{"{name}": {value}}}' for name, value in _RESTRICTIONS),
    '\ufeff{"allowedMcpServers": [], } // c',
    '{"a": 1, "allowedMcpServers": [{"serverUrl": "https://*"}, 2], "deniedMcpServers": 3}',
)  # fmt: skip
_STARS: Final = (
    "", "*", "**", "a", "a*", "*a", "a*b", "*a*", "a**b", "a*b*a", "*ab", "ab*ab",
)  # fmt: skip


def decisions_to_make() -> dict[str, Iterator[str]]:
    """Return the lines of each kind of decision, which are made as they are read, by its name."""
    return {
        "hosts": _of_hosts(),
        "targets": _of_targets(),
        "addresses": _of_addresses(),
        "servers": _of_servers(),
        "policies": _of_policies(),
        "texts": _of_texts(),
    }


def decided(lines: Iterator[str]) -> str:
    """Return lines as one text, in ASCII."""
    return "\n".join(lines).encode("ascii", "backslashreplace").decode()


def _of_hosts() -> Iterator[str]:
    for host in _HOSTS:
        yield f"  {host!r}: {plain_host(host)!r} {sorted(read_host(host))}"


def _of_targets() -> Iterator[str]:
    for target in _TARGETS:
        found = read_target(target)
        shown = "too many" if found is None else f"{len(found)}: {sorted(found)}"
        yield f"  {target[:60]!r} {len(target)}: {shown[:600]}"


def _server(entry: dict[str, Any], name: str) -> ServerConfig:
    # Files of variables are VS Code's.
    file, member = ("mcp.json", "servers") if name == "file" else (".mcp.json", "mcpServers")
    return read_config(json.dumps({member: {name: entry}}), file=file).servers[name]


def _of_addresses() -> Iterator[str]:
    servers = {
        url[:40]: _server({"type": "ws" if url[0] == "w" else "http", "url": url}, "x")
        for url in _ADDRESSES
    }
    for pattern in _PATTERNS:
        entries = json.dumps([{"serverUrl": pattern}])
        for name in "allowed", "denied":
            policy = read_policy(f'{{"{name}McpServers": {entries}}}', file="m.json")
            found = [url for url, each in servers.items() if find_denial(policy, each) is None]
            yield f"  {name} {pattern}"
            yield f"    leaves {' '.join(found)}"


def _of_servers() -> Iterator[str]:
    servers = {name: _server(entry, name) for name, entry in _SERVERS.items()}
    variables = ConfigVariables(environ={})
    for policy_of_all in _POLICIES:
        policy = read_policy(json.dumps(policy_of_all), file="m.json")
        yield f"  {json.dumps(policy_of_all)}"
        for name, server in servers.items():
            expanded = expand_server(server, variables)
            found = [find_denial(policy, server), find_denial(policy, expanded)]
            if name == "file":
                found += [find_denial(policy, expanded, each) for each in ((), ("A", "LD_PRELOAD"))]
            alike = found[1:] == found[:-1]
            yield f"    {name}: {found[0] if alike else ' | '.join(map(str, found))}"


def _of_policies() -> Iterator[str]:
    for text in _BROKEN:
        yield f"  {text!r}"
        try:
            policy = read_policy(text, file="m.json")
        except InvalidConfig as error:
            yield from (f"    ! {problem}" for problem in error.problems)
        else:
            yield f"    allowed {policy.allowed} denied {policy.denied}"


def _of_texts() -> Iterator[str]:
    texts = ("", "a", "b", "ab", "aa", "aab", "aba", "abab", "ababa", "ba", "xaby", "abba")
    for pattern in _STARS:
        yield f"  {pattern!r}: {[text for text in texts if matches_text(pattern, text)]}"


def kept_decisions() -> dict[str, str]:
    """Return the lines in the file, by their names."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: decided(lines) for name, lines in decisions_to_make().items()})
