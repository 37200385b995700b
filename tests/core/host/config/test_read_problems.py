"""Problems of the servers of a configuration file, and their places."""

from __future__ import annotations

import pytest

from mcp_core.host import read_config

# file, text, problems
PROBLEMS = [
    (".mcp.json", "[]", ["1:1: the file must be an object"]),
    (".mcp.json", '{"mcpServers": []}', ["1:2: mcpServers: must be an object with the servers"]),
    (".mcp.json", '{"servers": {}}', ["1:2: servers: Claude Code reads servers from mcpServers"]),
    (
        ".mcp.json",
        '{"mcpServers": {},\n "mcpServers": {"a": {"command": "x"}}}',
        ["2:2: mcpServers: is there a second time"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"command": "x"},\n "a": {"command": "y"}}}',
        ["2:2: mcpServers.a: is there a second time: rename one"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"command": "x",\n "command": "y"}}}',
        ["2:2: mcpServers.a.command: is there a second time"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"command": "x", "env": {"A": "1",\n "A": "2"}}}}',
        ["2:2: mcpServers.a.env.A: is there a second time"],
    ),
    (".mcp.json", '{"mcpServers": {"a": 1}}', ["1:17: mcpServers.a: must be an object"]),
    (".mcp.json", '{"mcpServers": {"": {"command": "x"}}}', ['1:17: mcpServers."": the name']),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"command": "x",\n "url": "u"}}}',
        ["2:2: mcpServers.a.url: has both command and url: remove one"],
    ),
    (
        ".gemini/settings.json",
        '{"mcpServers": {"a": {"url": "x", "httpUrl": "u"}}}',
        ["1:23: mcpServers.a.url: has both httpUrl and url: remove one"],
    ),
    (".mcp.json", '{"mcpServers": {"a": {}}}', ["1:17: mcpServers.a: needs command or url"]),
    (
        ".gemini/settings.json",
        '{"mcpServers": {"a": {"type": "sse"}}}',
        ["1:17: mcpServers.a: needs httpUrl or url"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"type": "stdio", "cmd": "x"}}}',
        ["1:17: mcpServers.a: needs command"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"type": "grpc", "url": "u"}}}',
        ["1:23: mcpServers.a.type: is not one of stdio, http, streamable-http, sse, ws"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"type": "stdio", "url": "u"}}}',
        ["1:23: mcpServers.a.type: is stdio, which needs command in place of url"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"type": "http", "command": "x"}}}',
        ["1:23: mcpServers.a.type: is http, which needs url in place of command"],
    ),
    (".mcp.json", '{"mcpServers": {"a": {"url": ""}}}', ["1:23: mcpServers.a.url: is empty"]),
    (
        ".mcp.json",
        (
            '{"mcpServers": {"a": {"command": ["x"],\n"args": "y", "env": ["z"],\n'
            '"cwd": 1, "disabled": "no", "timeout": true}}}'
        ),
        [
            "1:23: mcpServers.a.command: must be a string, not an array",
            "2:1: mcpServers.a.args: must be an array of strings, not a string",
            "2:14: mcpServers.a.env: must be an object of strings, not an array",
            "3:1: mcpServers.a.cwd: must be a string, not a number",
            "3:11: mcpServers.a.disabled: must be true or false, not a string",
            "3:29: mcpServers.a.timeout: must be a number above 0",
        ],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"command": "x", "args": ["y", 1, null],\n "env": {"A": 2}}}}',
        [
            "1:53: mcpServers.a.args[1]: must be a string, not a number",
            "1:56: mcpServers.a.args[2]: must be a string, not null",
            "2:10: mcpServers.a.env.A: must be a string, not a number",
        ],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"command": "x\\u0000"}, "b": {"command": "\\ud800"}}}',
        [
            "1:23: mcpServers.a.command: has a NUL character or half of a surrogate pair",
            "1:52: mcpServers.b.command: has a NUL character or half of a surrogate pair",
        ],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"url": "u", "headers": {"A": "1", "a": "2", "": "3"}}}}',
        [
            "1:57: mcpServers.a.headers.a: is there a second time in other letters",
            '1:67: mcpServers.a.headers."": has a name that no variable or header can have',
        ],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"command": "x", "y": ' + "[" * 101 + "1" + "]" * 101 + "}}}",
        ["1:39: mcpServers.a.y: is nested deeper than 100 levels"],
    ),
    (
        "config.toml",
        (
            '[mcp_servers.a]\ncommand = "x"\nenv_vars = [1, {name = "B", source = "remote"}]\n'
            '[mcp_servers.b]\nurl = 1979-05-27\ntool_timeout_sec = nan\n'
        ),
        [
            "3:1: mcp_servers.a.env_vars[0]: must be the name of a variable",
            "3:1: mcp_servers.a.env_vars[1]: has a source other than local, which only Codex has",
            "5:1: mcp_servers.b.url: must be a string, not a date or time",
            "6:1: mcp_servers.b.tool_timeout_sec: must be a number above 0",
        ],
    ),
    ("config.toml", "mcp_servers = 1", ["1:1: mcp_servers: must be an object with the servers"]),
    (
        ".vscode/mcp.json",
        '{"inputs": [1, {}, {"id": "a"},\n {"id": "a"}, {"id": "b", "password": 1}]}',
        [
            "1:13: inputs[0]: must be an object",
            "1:16: inputs[1]: needs an id",
            "2:3: inputs[3].id: the id a is there a second time",
            "2:27: inputs[4].password: must be true or false, not a number",
        ],
    ),
    (".vscode/mcp.json", '{"inputs": {}}', ["1:2: inputs: must be an array"]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "text", "problems"), PROBLEMS)
def test_read_config_wrong_member_is_a_problem_with_its_place(
    file: str, text: str, problems: list[str]
) -> None:
    found = read_config(text, file=file)
    texts = [str(problem).removeprefix(f"{file}:") for problem in found.problems]
    assert len(texts) == len(problems), texts
    for shown, start in zip(texts, problems, strict=True):
        assert shown.startswith(start)
    assert found.servers == {}
    assert found.broken == {problem.server for problem in found.problems} - {None}
