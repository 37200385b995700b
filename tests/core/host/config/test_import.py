"""Servers of other clients in the format of `.mcp.json`: variables, secrets, and what is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_core.host import (
    CLIENT_FORMATS,
    ConfigFile,
    ConfigVariables,
    ImportedServer,
    InvalidConfig,
    expand_server,
    import_servers,
    read_config,
)

CODEX = """\
[mcp_servers.local]
command = "npx"
args = ["-y", "x"]
env_vars = ["TOKEN", { name = "HOME" }]
cwd = "/d"
startup_timeout_sec = 5
tool_timeout_sec = 2.5
enabled = false
enabled_tools = ["a"]

[mcp_servers.local.env]
MODE = "fast"

[mcp_servers.remote]
url = "https://h/mcp"
bearer_token_env_var = "BEARER"
env_http_headers = { X-Key = "KEY" }
http_headers = { X-Plain = "1" }
"""


def read(client: str, servers: dict[str, Any], **others: Any) -> ConfigFile:
    text = json.dumps({CLIENT_FORMATS[client].servers[0]: servers, **others})
    return read_config(text, file="f", format=client)


def import_one(client: str, entry: dict[str, Any], **others: Any) -> ImportedServer:
    (server,) = import_servers(read(client, {"s": entry}, **others), ["s"])
    return server


def test_import_of_codex_gives_references_for_variables() -> None:
    """Codex passes variables on by name; the import writes references and never the values."""
    config = read_config(CODEX, file="config.toml")
    local, remote = import_servers(config, ["local", "remote"])
    assert local.members == {
        "type": "stdio",
        "command": "npx",
        "args": ["-y", "x"],
        "cwd": "/d",
        "env": {"MODE": "fast", "TOKEN": "${TOKEN}", "HOME": "${HOME}"},
        "timeout": 2500,
        "disabled": True,
        "allowedTools": ["a"],
    }
    assert local.notes == ("the time that it may take to start is left out",)
    assert remote.members == {
        "type": "http",
        "url": "https://h/mcp",
        "headers": {
            "X-Plain": "1",
            "X-Key": "${KEY}",
            "Authorization": "Bearer ${BEARER}",
        },
    }
    assert (local.secrets, remote.secrets) == ((), ())


# format, text of an argument, the same in .mcp.json
TEXTS = [
    ("cursor", "${env:A}/${B}", "${A}/${B}"),
    ("cursor", "$A ${workspaceFolder} ${A:-x}", "$A ${workspaceFolder} ${A:-x}"),
    ("vscode", "${env:A(86)}", "${env:A(86)}"),
    ("gemini", "$A/$A-${B} $5", "${A}/${A}-${B} $5"),
    ("claude-code", "${A:-}", "${A:-}"),
    ("claude-desktop", "$A", "$A"),
]


@pytest.mark.parametrize(("client", "text", "expected"), TEXTS)
def test_import_translates_the_syntax_of_variables(client: str, text: str, expected: str) -> None:
    server = import_one(client, {"command": "x", "args": [text]})
    assert server.members["args"] == [expected]
    assert server.notes == ()


def test_import_of_literal_braces_says_that_they_are_replaced() -> None:
    server = import_one("claude-desktop", {"command": "x", "args": ["${A}"]})
    assert server.notes == ("args[0] has a ${...}, which is replaced from now on",)


def test_import_of_inputs_gives_variables() -> None:
    """A password's default is a secret and is dropped; a plain default goes into the reference."""
    inputs = [
        {"id": "api-key", "type": "promptString", "password": True, "default": "CANARY"},
        {"id": "region", "type": "pickString", "options": ["a", "b"], "default": "a"},
        {"id": "1", "type": "promptString"},
    ]
    entry = {
        "command": "x",
        "args": ["${input:region}", "${input:1}"],
        "env": {"KEY": "${input:api-key}"},
    }
    server = import_one("vscode", entry, inputs=inputs)
    assert server.members["args"] == ["${REGION:-a}", "${VALUE_1}"]
    assert server.members["env"] == {"KEY": "${API_KEY}"}
    assert server.notes == (
        "the input region is now the variable REGION",
        "the input 1 is now the variable VALUE_1",
        "the input api-key is now the variable API_KEY",
    )


SECRETS = {
    "env": {"GITHUB_TOKEN": "abc", "MODE": "x", "PASSWORD": "", "API_KEY": "${K}", "PLAIN": ""},
}


def test_import_finds_literal_secrets_of_env() -> None:
    server = import_one("cursor", {"command": "x", **SECRETS})
    assert [(each.member, each.name, each.reference) for each in server.secrets] == [
        ("env", "GITHUB_TOKEN", "${GITHUB_TOKEN}")
    ]
    replaced = server.replace_secrets(server.secrets)
    assert replaced.members["env"] == {**SECRETS["env"], "GITHUB_TOKEN": "${GITHUB_TOKEN}"}
    assert replaced.secrets == ()
    assert server.members["env"] == SECRETS["env"]  # not changed
    assert "abc" not in repr(server)


def test_import_finds_literal_secrets_of_headers() -> None:
    headers = {"Authorization": "Bearer abc", "X-Api-Key": "abc", "X-Other": "ghp_" + "a" * 20}
    server = import_one("vscode", {"url": "https://h/", "headers": headers, "type": "http"})
    assert {each.name: each.reference for each in server.secrets} == {
        "Authorization": "Bearer ${S_AUTHORIZATION}",
        "X-Api-Key": "${S_X_API_KEY}",
        "X-Other": "${S_X_OTHER}",
    }


def test_import_with_some_secrets_replaced_keeps_the_others() -> None:
    headers = {"Authorization": "Bearer abc", "X-Api-Key": "abc"}
    server = import_one("vscode", {"url": "https://h/", "headers": headers, "type": "http"})
    login, key = server.secrets
    replaced = server.replace_secrets([login])
    assert replaced.secrets == (key,)
    assert replaced.members["headers"] == {**headers, "Authorization": login.reference}
    assert replaced.replace_secrets([key]).secrets == ()


def test_import_of_different_secrets_of_one_name_gives_different_variables() -> None:
    """Otherwise one server would get the secret of another."""
    names = {"a": "1", "b": "1", "c-c": "2", "c.c": "3", "c_c": "4"}
    entries = {name: {"command": "x", "env": {"TOKEN": value}} for name, value in names.items()}
    config = read("cursor", entries)
    servers = import_servers(config, list(names))
    variables = [each.variable for server in servers for each in server.secrets]
    assert variables == ["TOKEN", "TOKEN", "C_C_TOKEN", "C_C_TOKEN_2", "C_C_TOKEN_3"]


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        (
            {"command": "x", "args": ["--key", "ghp_" + "a" * 20]},
            "its arguments seem to have a secret, which is copied",
        ),
        (
            {"url": "https://h/mcp?api_key=abc"},
            "its address seems to have a secret, which is copied",
        ),
    ],
)
def test_import_of_secrets_elsewhere_is_noted(entry: dict[str, Any], note: str) -> None:
    assert import_one("cursor", entry).notes == (note,)


def test_import_of_what_cannot_be_expressed_is_refused_with_all_problems() -> None:
    entries = {
        "a": {"command": "x", "envFile": "/f"},
        "b": {"command": "${command:pick}"},
        "c": {"command": "x"},
    }
    config = read("vscode", entries)
    with pytest.raises(InvalidConfig) as caught:
        import_servers(config, ["a", "b", "c"])
    assert [each.server for each in caught.value.problems] == ["a", "b"]
    assert "a file of variables" in str(caught.value)
    assert [server.name for server in import_servers(config, ["c"])] == ["c"]


def test_import_of_settings_without_a_counterpart_is_noted() -> None:
    server = import_one("cline", {"command": "x", "colour": "red", "odd name": 1})
    assert server.notes == ('left out, as mcp-trio has no such setting: colour, "odd name"',)


def test_import_of_short_timeout_is_noted() -> None:
    server = import_one("cline", {"command": "x", "timeout": 0.5})
    assert "timeout" not in server.members
    assert server.notes == ("its timeout of 0.5 s is too short, and left out",)


@example("${$A", "gemini")
@given(st.text(st.sampled_from("${}AB:-x _"), max_size=12), st.sampled_from(["gemini", "cursor"]))
def test_imported_texts_mean_the_same(text: str, client: str) -> None:
    config = read(client, {"s": {"command": "x", "args": [text]}})
    variables = ConfigVariables(environ={"A": "1", "B": "2", "x": "3", "_": "4"})
    try:
        before = expand_server(config.servers["s"], variables)
        (imported,) = import_servers(config, ["s"])
    except InvalidConfig:
        return
    again = read("claude-code", {"s": dict(imported.members)}).servers["s"]
    assert expand_server(again, variables).args == before.args


@pytest.mark.parametrize(
    ("client", "members"),
    [
        ("gemini", {"includeTools": ["read"], "excludeTools": ["write"]}),
        ("cursor", {"allowedTools": ["read"], "deniedTools": ["write"]}),
        ("claude-code", {"allowedTools": ["read"], "deniedTools": ["write"]}),
    ],
)
def test_import_keeps_the_lists_of_tools(client: str, members: dict[str, Any]) -> None:
    for place in ({"command": "x"}, {CLIENT_FORMATS[client].remote["http"][0]: "https://h/"}):
        server = import_one(client, {**place, **members})
        lists = {name: server.members[name] for name in ("allowedTools", "deniedTools")}
        assert lists == {"allowedTools": ["read"], "deniedTools": ["write"]}
        assert server.notes == ()


def test_import_refuses_questions_that_the_format_cannot_say() -> None:
    text = '[mcp_servers.x]\ncommand = "c"\ndefault_tools_approval_mode = "prompt"\n'
    with pytest.raises(InvalidConfig, match="asks before each call, which this format cannot say"):
        import_servers(read_config(text, file="config.toml"), ["x"])
