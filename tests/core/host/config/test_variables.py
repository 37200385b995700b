"""Variables of configured servers: their values, problems, and where the values go."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host import (
    ConfigFile,
    ConfigVariables,
    ExpandedServer,
    InvalidConfig,
    expand_server,
    find_variables,
    read_config,
)
from mcp_core.host.config._variables import has_variables
from tests.levels import fewer_examples

VARIABLES = ConfigVariables(
    environ={"A": "1", "EMPTY": "", "REF": "${A}", "URL": "https://example.com"},
    inputs={"key": "s3cret", "size": "l"},
    workspace_folder="/home/ada/p",
    home="/home/u",
)
INPUTS = [
    {"id": "key", "type": "promptString", "password": True},
    {"id": "size", "type": "pickString"},
    {"id": "later", "type": "promptString"},
]


def read(entry: dict[str, Any], file: str = ".vscode/mcp.json") -> ConfigFile:
    member = "servers" if "vscode" in file else "mcpServers"
    text = json.dumps({"inputs": INPUTS, member: {"x": entry}}, indent=1)
    found = read_config(text, file=file)
    assert found.problems == ()
    return found


def expand(
    entry: dict[str, Any], file: str = ".vscode/mcp.json", variables: ConfigVariables = VARIABLES
) -> ExpandedServer:
    found = read(entry, file)
    return expand_server(found.servers["x"], variables, found.inputs)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no variable, $A, ${unclosed", "no variable, $A, ${unclosed"),
        ("${A}", "1"),
        ("<${A}${A}>", "<11>"),
        ("${A:-2}", "1"),
        ("${UNSET:-2}", "2"),
        ("${UNSET:-}", ""),
        ("${UNSET:-a:-b\n$c}", "a:-b\n$c"),
        ("${EMPTY:-2}", ""),
        ("${env:A}", "1"),
        ("${REF}", "${A}"),
        ("${workspaceFolder}/x", "/home/ada/p/x"),
        ("${workspaceFolderBasename}", "p"),
        ("${userHome}${pathSeparator}${/}", "/home/u//"),
        ("${input:key}", "s3cret"),
    ],
)
def test_expand_server_replaces_each_variable_once(text: str, value: str) -> None:
    assert expand({"command": "x", "args": [text]}).args == (value,)


def test_expand_server_stdio_expands_all_its_texts() -> None:
    names = ("command", "cwd", "envFile")
    server = expand(dict.fromkeys(names, "${A}") | {"env": {"B": "${A}", "${A}": ""}})
    assert (server.command, server.cwd, server.env_file) == ("1", "1", "1")
    assert server.env == {"B": "1", "${A}": ""}
    assert (server.url, server.headers) == (None, {})


def test_expand_server_remote_ignores_texts_of_a_program() -> None:
    entry = {"url": "${URL}/m", "headers": {"H": "b ${A}"}, "env": {"B": "${UNSET}"}}
    server = expand({**entry, "args": ["${UNSET}"]})
    assert server.config.args == ("${UNSET}",)
    assert (server.url, server.headers) == ("https://example.com/m", {"H": "b 1"})
    assert (server.command, server.args, server.env) == (None, (), {})


def test_expand_server_syntax_follows_the_format() -> None:
    entry = {"command": "x", "args": ["$A ${A} $1 $$A"]}
    assert expand(entry, ".mcp.json").args == ("$A 1 $1 $$A",)
    assert expand(entry, ".gemini/settings.json").args == ("1 1 $1 $1",)
    assert expand(entry, "claude_desktop_config.json").args == ("$A ${A} $1 $$A",)


def test_expand_server_codex_takes_named_variables() -> None:
    """Codex expands no `${...}`; an unset variable is an error in a header, not in `env_vars`."""
    text = (
        '[mcp_servers.x]\nurl = "https://h/${A}"\nbearer_token_env_var = "TOKEN"\n'
        'http_headers = { K = "${A}" }\nenv_http_headers = { L = "A" }\n'
        '[mcp_servers.y]\ncommand = "c"\nenv = { A = "2" }\nenv_vars = ["A", "B", "UNSET"]\n'
    )
    servers = read_config(text, file="config.toml").servers
    variables = ConfigVariables(environ={"TOKEN": "s3cret", "A": "1", "B": "3"})
    x = expand_server(servers["x"], variables)
    assert x.url == "https://h/${A}"
    assert x.headers == {"K": "${A}", "L": "1", "Authorization": "Bearer s3cret"}
    assert x.secrets == {"s3cret", "Bearer s3cret", "1"}
    assert expand_server(servers["y"], variables).env == {"A": "2", "B": "3"}
    with pytest.raises(InvalidConfig) as caught:
        expand_server(servers["x"], ConfigVariables())
    assert [str(each).partition(": the")[0] for each in caught.value.problems] == [
        "config.toml:5:1: mcp_servers.x.env_http_headers.L",
        "config.toml:3:1: mcp_servers.x.bearer_token_env_var",
    ]


def test_expand_server_problems_name_place_and_variable() -> None:
    """All problems come at once, each with line and column, and none shows a value."""
    entry = {
        "command": "${UNSET}",
        "args": ["${A}", "${env:}", "${A:-${B}}", "${config:x}", "${input:later}"],
        "env": {"B": "${input:unknown}", "C": "${userHome}"},
    }
    with pytest.raises(InvalidConfig) as caught:
        expand(entry, variables=ConfigVariables(environ={"A": "s3cret"}))
    assert str(caught.value).replace(".vscode/mcp.json:", "") == (
        "19:4: servers.x.command: the variable UNSET is not set, and has no default\n"
        "22:5: servers.x.args[1]: ${env:} is not a variable of this format\n"
        "23:5: servers.x.args[2]: a variable inside another one is not expanded: write the default"
        " as plain text\n"
        "24:5: servers.x.args[3]: ${config:x} is not a variable of this format\n"
        "25:5: servers.x.args[4]: the input later has no value yet\n"
        "28:5: servers.x.env.B: the file has no input with the id unknown\n"
        "29:5: servers.x.env.C: ${userHome} is not known here"
    )
    assert {each.server for each in caught.value.problems} == {"x"}


@pytest.mark.parametrize(
    ("entry", "value", "problem"),
    [
        ({"command": "${V}"}, "", "command: is empty with the values of its variables"),
        ({"command": "x", "args": ["${V}"]}, "\0", "args[0]: has a NUL character"),
        ({"command": "x", "env": {"A=B": "${V}"}}, "", 'env."A=B": has a name that no variable'),
        ({"url": "https://h", "headers": {"A": "${V}"}}, "1\r\nB: 2", "headers.A: has a control"),
        ({"url": "https://h", "headers": {"A B": "${V}"}}, "", 'headers."A B": has a name that no'),
        ({"url": "${V}"}, "ftp://h/s3cret", "url: is not a URL of http or https with a host"),
        ({"url": "${V}"}, "https://u:s3cret@h", "url: is not a URL of http or https with a host"),
        ({"url": "${V}"}, "wss://h", "url: is not a URL of http or https"),
        ({"url": "${V}", "type": "ws"}, "https://h", "url: is not a URL of ws or wss"),
    ],
)
def test_expand_server_unusable_result_is_a_problem_without_its_value(
    entry: dict[str, Any], value: str, problem: str
) -> None:
    with pytest.raises(InvalidConfig) as caught:
        expand(entry, variables=ConfigVariables(environ={"V": value}))
    assert f"servers.x.{problem}" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_expand_server_websocket_url_is_accepted() -> None:
    assert expand({"type": "ws", "url": "wss://h/${A}"}).url == "wss://h/1"


def test_expand_server_bytes_of_the_environment_that_are_not_utf8_stay() -> None:
    variables = ConfigVariables(environ={"V": "/\udcff"})
    assert expand({"command": "${V}"}, variables=variables).command == "/\udcff"


def test_expand_server_secrets_are_known_and_not_shown() -> None:
    server = expand({"command": "x", "args": ["${input:key}"], "env": {"S": "${input:size}"}})
    assert server.secrets == {"s3cret"}
    assert "s3cret" not in repr(server)
    assert "s3cret" not in repr(VARIABLES)


def test_expand_server_value_of_a_variable_is_a_secret_everywhere() -> None:
    args, env = ["--as=${API_TOKEN}", "${LEVEL}"], {"S": "${PASSWORD}"}
    entry = {"command": "x", "args": args, "env": env}
    environ = {"API_TOKEN": "s3cret", "LEVEL": "top-secret level", "PASSWORD": "pa55"}
    variables = ConfigVariables(environ=environ)
    server = expand(entry, ".mcp.json", variables)
    assert server.args == ("--as=s3cret", "top-secret level")
    assert server.secrets == {"s3cret", "top-secret level", "pa55"}


def test_find_variables_says_what_leaves_the_machine() -> None:
    """A URL or header sends the value to the server; a local program's variables stay here."""
    entry = {"url": "https://${HOST}", "headers": {"A": "${input:key} ${B:-c} ${bad word}"}}
    found = read(entry)
    uses = find_variables(found.servers["x"], found.inputs)
    assert [(use.kind, use.name, use.has_default, use.secret) for use in uses] == [
        ("environment", "HOST", False, False),
        ("input", "key", False, True),
        ("environment", "B", True, False),
    ]
    assert all(use.leaves_machine for use in uses)
    assert str(uses[1].place) == ".vscode/mcp.json:21:5: servers.x.headers.A"
    local = read({"command": "${A}", "headers": {"A": "${B}"}}).servers["x"]
    assert [(use.name, use.leaves_machine) for use in find_variables(local)] == [("A", False)]
    toml = '[mcp_servers.x]\nurl = "u"\nbearer_token_env_var = "TOKEN"\n'
    codex = read_config(toml, file="config.toml").servers["x"]
    assert [(use.name, use.leaves_machine) for use in find_variables(codex)] == [("TOKEN", True)]


NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]*", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
PLAIN = VALUES.filter(lambda text: "$" not in text)


@fewer_examples(5)
@given(st.lists(st.tuples(PLAIN, NAMES, VALUES), max_size=4), PLAIN)
def test_expansion_is_the_text_with_each_value_in_place(
    parts: list[tuple[str, str, str]], end: str
) -> None:
    environ = {name: value for _, name, value in parts}
    text = "".join(f"{before}${{{name}}}" for before, name, _ in parts) + end
    meant = "".join(before + environ[name] for before, name, _ in parts) + end
    variables = ConfigVariables(environ=environ)
    assert expand({"command": "x", "args": [text]}, variables=variables).args == (meant,)


@given(st.text(alphabet="${}:-AB input\n"), st.sampled_from([".mcp.json", "settings.json"]))
def test_found_variables_are_those_that_expansion_needs(text: str, file: str) -> None:
    server = read({"command": "x", "args": [text]}, file).servers["x"]
    names = {use.name for use in find_variables(server) if use.kind == "environment"}
    inputs = {use.name: "1" for use in find_variables(server) if use.kind == "input"}
    variables = ConfigVariables(environ=dict.fromkeys(names, "1"), inputs=inputs)
    try:
        expand_server(server, variables)
    except InvalidConfig as exc:
        shown = {problem.problem for problem in exc.problems}
        assert all("not a variable" in each or "inside another" in each for each in shown)


def test_expand_server_text_of_a_variable_with_the_name_of_a_secret_is_one() -> None:
    entry = {"command": "c", "env": {"API_TOKEN": "abc", "MODE": "def"}}
    assert expand(entry).secrets == {"abc"}
    remote = {"type": "http", "url": "https://h/", "headers": {"X-Api-Key": "abc", "X-Mode": "def"}}
    assert expand(remote).secrets == {"abc"}
    bearer = {**remote, "headers": {"Authorization": "Bearer abc"}}
    assert expand(bearer).secrets == {"Bearer abc", "abc"}


def test_expand_server_header_named_as_a_part_of_the_entry_is_a_header() -> None:
    text = (
        '[mcp_servers.x]\nurl = "https://h/"\nbearer_token_env_var = "A"\n'
        'env_http_headers = {"bearer_variable" = "A"}\n'
    )
    server = read_config(text, file="config.toml").servers["x"]
    assert dict(expand_server(server, VARIABLES).headers) == {
        "bearer_variable": "1",
        "Authorization": "Bearer 1",
    }


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"command": "c", "env": {"headers": "${NUL}"}}, "has a NUL character"),
        ({"command": "c", "args": ["${NUL}"]}, "has a NUL character"),
        ({"command": "c", "envFile": "${EMPTY}"}, "is empty with the values of its variables"),
        ({"command": "c", "cwd": "${EMPTY}"}, "is empty with the values of its variables"),
        ({"command": "${EMPTY}"}, "is empty with the values of its variables"),
        ({"command": "c", "args": ["${EMPTY}"], "env": {"cwd": "${EMPTY}"}}, ""),
        ({"type": "http", "url": "https://h/", "headers": {"A": "a${NUL}"}}, "has a control chara"),
    ],
)
def test_expand_server_text_that_a_value_makes_unusable_is_a_problem(
    entry: dict[str, Any], problem: str
) -> None:
    variables = ConfigVariables(environ={"NUL": "a\0", "EMPTY": ""})
    if not problem:
        assert expand(entry, ".cursor/mcp.json", variables).args == ("",)
        return
    with pytest.raises(InvalidConfig) as refused:
        expand(entry, ".cursor/mcp.json", variables)
    (found,) = refused.value.problems
    assert found.problem.startswith(problem)


def test_long_name_of_a_variable_is_cut_in_its_problem() -> None:
    for text in f"${{{'A' * 101}}}", f"${{{'A' * 101} }}":
        with pytest.raises(InvalidConfig) as refused:
            expand({"command": text})
        assert "A" * 90 in str(refused.value)
        assert "A" * 101 not in str(refused.value)
    with pytest.raises(InvalidConfig, match="A" * 100):
        expand({"command": f"${{{'A' * 100}}}"})


@pytest.mark.parametrize("text", ["", "a", "$", "${}", "${A", "${A}", "a ${A}", "$A"])
@pytest.mark.parametrize("file", [".vscode/mcp.json", "claude_desktop_config.json"])
def test_text_has_variables_as_its_file_writes_them(text: str, file: str) -> None:
    server = read({"command": "c"}, file).servers["x"]
    with_text = read({"command": "c", "args": [text]}, file).servers["x"]
    has_some = "${A}" in text or text == "${}"
    assert has_variables(server, text) is (has_some and "vscode" in file)
    assert bool(find_variables(with_text)) is ("${A}" in text and "vscode" in file)


def test_values_of_variables_are_not_shown() -> None:
    assert "s3cret" not in repr(VARIABLES)
    assert "example.com" not in repr(VARIABLES)
    (use,) = find_variables(read({"command": "${A}"}).servers["x"])
    assert (use.has_default, use.leaves_machine, use.secret) == (False, False, False)
