"""Problems of the servers of a configuration file, and their places."""

from __future__ import annotations

import sys
from contextlib import suppress

import pytest

from mcp_core.host import InvalidConfig, merge_servers, read_config

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
        ".vscode/settings.json",
        '{"mcp": {"servers": {},\n "servers": {"a": {"command": "x"}}}}',
        ["2:2: mcp.servers: is there a second time"],
    ),
    (
        ".vscode/mcp.json",
        '{"servers": {}, "inputs": [],\n "inputs": []}',
        ["2:2: inputs: is there a second time"],
    ),
    (
        ".gemini/settings.json",
        '{"mcpServers": {}, "mcp": {},\n "mcp": {"allowed": []}}',
        ["2:2: mcp: is there a second time"],
    ),
    (".vscode/settings.json", '{"mcp": []}', ["1:2: mcp: must be an object with members"]),
    ("any.json", '{"a": {"command": "x"},\n"a": {"url": "u"}}', ["2:1: a: is there a second time"]),
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
        ['1:23: mcpServers.a.type: is "grpc", which is no transport that is understood: write'],
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
            '{"mcpServers": {"a": {"command": {"path": "x"},\n"args": "y", "env": ["z"],\n'
            '"cwd": 1, "disabled": "no", "timeout": true}}}'
        ),
        [
            "1:23: mcpServers.a.command: must be a string, not an object",
            "2:1: mcpServers.a.args: must be an array of strings, not a string",
            "2:14: mcpServers.a.env: must be an object of strings, not an array",
            "3:1: mcpServers.a.cwd: must be a string, not a number",
            "3:11: mcpServers.a.disabled: must be true or false, not a string",
            "3:29: mcpServers.a.timeout: must be a number above 0",
        ],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"command": "x", "args": ["y", true, null],\n "env": {"A": false}}}}',
        [
            "1:53: mcpServers.a.args[1]: must be a string, not true or false: write it in quotes",
            "1:59: mcpServers.a.args[2]: must be a string, not null",
            "2:10: mcpServers.a.env.A: must be a string, not true or false: write it in quotes",
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
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"type": "http", "transport": "sse", "url": "u"}}}',
        ['1:39: mcpServers.a.transport: is "sse", but type is "http"'],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"type": "ghp_Zn1sF0q7Lx5Vd2Tt8Kw3Yb6Rm9Pa4Hc", "url": "u"}}}',
        ["1:23: mcpServers.a.type: is a text, which is no transport that is understood: write"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"url": "u", "serverUrl": "v"}}}',
        ["1:35: mcpServers.a.serverUrl: has both url and serverUrl: remove one"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"command": "x", "env": {}, "environment": {}}}}',
        ["1:50: mcpServers.a.environment: has both env and environment: remove one"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"command": "x", "env": {"PATH": null}}}}',
        ['1:47: mcpServers.a.env.PATH: is null, but each server gets this variable: write ""'],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"command": []}, "b": {"command": ["", "x"]}}}',
        ["1:23: mcpServers.a.command: is empty", "1:45: mcpServers.b.command: is empty"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"type": "stdio", "cmd": "x"}}}',
        ["1:17: mcpServers.a: needs command: write command in place of cmd"],
    ),
    (
        ".mcp.json",
        '{"mcpServers": {"a": {"source": "extension", "settings": {}}}}',
        ["1:17: mcpServers.a: needs command or url, and has source, settings"],
    ),
    (
        "opencode.json",
        '{"mcp": {"a": {"type": "local", "command": ["x", "${A}", "{file:~/key}"]}}}',
        [
            "1:50: mcp.a.command[1]: has ${, which is not understood here: write {env:NAME}",
            "1:58: mcp.a.command[2]: has {file:, which is not understood here: write {env:NAME}",
        ],
    ),
    (
        ".vscode/settings.json",
        '{"editor.tabSize": 4, "mcp.servers": {"a": {"command": "x"}}}',
        ['1:23: "mcp.servers": is not read: write mcp with servers inside'],
    ),
    (
        "any.json",
        '{"mcp.servers": {"a": {"command": "x"}}}',
        ['1:2: "mcp.servers": is not read: write mcp with servers inside'],
    ),
    (
        ".zed/settings.json",
        '{"context_servers": {"a": {"command": {"path": "x", "args": []}, "settings": {}}}}',
        [
            ("1:28: context_servers.a.command: must be a string, not an object: write its path as"
            " a string, and its args and env beside it")
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


# file, text, problems: none of a file that may have no servers
UNKNOWN = [
    (".mcp.json", '{"server": {}}', ["1:1: the file has no servers that are understood, but ser"]),
    ("any.json", '{"a": 1, "b": []}', ["1:1: the file has no servers that are understood, but a,"]),
    ("any.json", '{"tools": {"x": {}}}', ["1:1: the file has no servers that are understood, but"]),
    (".vscode/mcp.json", '{"a": 1}', ["1:1: the file has no servers that are understood, but a"]),
    ("any.toml", "a = 1", ["1:1: the file has no servers that are understood, but a: write them"]),
    (".mcp.json", '{"context_servers": {}}', ["1:2: context_servers: Claude Code reads servers"]),
    (".mcp.json", "{}", []),
    (".mcp.json", '{"$schema": "x"}', []),
    ("managed-mcp.json", '{"deniedMcpServers": [{"serverName": "x"}]}', []),
    ("/home/u/.claude.json", '{"projects": {}}', []),
    (".vscode/settings.json", '{"editor.fontSize": 12, "extensions": {"a": 1}}', []),
    ("/home/u/.config/zed/settings.json", '{"theme": "One"}', []),
    ("opencode.json", '{"model": "x"}', []),
    (".codex/config.toml", 'model = "x"', []),
    (".vscode/settings.json", '{"some.tool": {"command": "x"}}', []),
]  # fmt: skip


@pytest.mark.parametrize(("file", "text", "problems"), UNKNOWN)
def test_file_without_servers_is_a_problem_unless_it_has_other_settings(
    file: str, text: str, problems: list[str]
) -> None:
    found = read_config(text, file=file)
    texts = [str(problem).removeprefix(f"{file}:") for problem in found.problems]
    assert [shown[: len(start)] for shown, start in zip(texts, problems, strict=True)] == problems
    assert [problem.server for problem in found.problems] == [None] * len(problems)
    assert not found.has_servers


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        (
            "any.json",
            '{"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"command": "y"}}}',
            "1:41: servers: Claude Code reads servers from mcpServers: move them there",
        ),
        (
            ".vscode/mcp.json",
            '{"servers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "y"}}}',
            "1:38: mcpServers: VS Code reads servers from servers: move them there",
        ),
        (
            "zed/settings.json",
            '{"context_servers": {"a": {"command": "x"}}, "mcp": {"servers": {"b": {"url": "y"}}}}',
            "1:54: mcp.servers: Zed reads servers from context_servers: move them there",
        ),
        (
            "opencode.json",
            '{"mcp": {"servers": {"a": {"command": ["x"]}}, "b": {"command": ["y"]}}}',
            "1:48: mcp.b: opencode reads servers from mcp.servers: move it there",
        ),
    ],
)
def test_file_of_two_programs_is_read_as_one_and_says_so(
    file: str, text: str, problem: str
) -> None:
    found = read_config(text, file=file)
    assert list(found.servers) == ["a"]
    assert [str(each) for each in found.problems] == [f"{file}:{problem}"]


def test_managed_file_of_two_programs_stops_everything() -> None:
    text = '{"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"command": "y"}}}'
    config = read_config(text, file="managed-mcp.json")
    with pytest.raises(InvalidConfig, match="move them there"):
        merge_servers([("managed", config)])


def test_yaml_without_pyyaml_is_refused_with_two_cures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra, or JSON, which is also read from a file of that name."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    text = "extensions:\n  a:\n    type: stdio\n    cmd: npx\n"
    for file in "goose/config.yaml", "servers.yml":
        problem = r":1:1: .*'mcp-trio\[config\]'.* \(`yq -o json \. FILE"
        with pytest.raises(InvalidConfig, match=problem):
            read_config(text, file=file)
    # JSON is YAML.
    found = read_config('{"extensions": {"a": {"cmd": "npx"}}}', file="goose/config.yaml")
    assert found.servers["a"].command == "npx"


def test_file_of_10_megabytes_is_refused_before_it_is_parsed() -> None:
    text = bytes(10_000_000)  # which isn't JSON
    for file in ".mcp.json", "config.yaml":
        with pytest.raises(InvalidConfig) as refused:
            read_config(text, file=file)
        assert str(refused.value) == f"{file}:1:1: the file is larger than 4 MiB"


def test_each_part_of_a_file_that_is_being_written_is_a_problem_or_has_fewer_servers() -> None:
    """A part of a file is refused, or is a whole file itself."""
    text = '{"mcpServers": {"a": {"command": "x", "env": {"A": "1"}}, "b": {"url": "u"}}}'
    for end in range(1, len(text)):
        with pytest.raises(InvalidConfig):
            read_config(text[:end], file=".mcp.json")
    toml = '[mcp_servers.a]\ncommand = "x"\n[mcp_servers.b]\nurl = "u"\n'
    whole = {"a": "x", "b": None}
    for end in range(len(toml)):
        with suppress(InvalidConfig):
            found = read_config(toml[:end], file="config.toml")
            assert {name: each.command for name, each in found.servers.items()}.items() <= (
                whole.items()
            )
