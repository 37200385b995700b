"""The digest of a launch sees each part of it, and its description shows each part."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_core.host import (
    LaunchInput,
    ServerConfig,
    ServerLaunch,
    describe_launch,
    digest_launch,
    find_excess,
    make_launch,
    read_config,
)
from mcp_core.host._launch import is_same_launch

PROGRAM = ServerLaunch(
    transport="stdio",
    command="/usr/bin/npx",
    args=("-y", "server notes", "--key=${KEY}"),
    directory="/home/me/project",
    env={"TOKEN": "${TOKEN:-}", "PATH": "./bin"},
    env_file="/home/me/project/.env",
)
REMOTE = ServerLaunch(
    transport="http",
    url="https://${HOST:-${FALLBACK}}.example/mcp?k=${input:api-key}",
    headers={"Authorization": "Bearer ${env:TOKEN}", "X-Plain": "$GEMINI costs $5"},
    other={"headersHelper": "./make-headers"},
)


@pytest.mark.parametrize(
    "change",
    [
        {"command": "/usr/bin/npx2"},
        {"args": ("-y", "server", "notes", "--key=${KEY}")},
        {"args": ("server notes", "-y", "--key=${KEY}")},
        {"directory": "/"},
        {"env": {**PROGRAM.env, "LD_PRELOAD": "x"}},
        {"env": {**PROGRAM.env, "TOKEN": "${OTHER}"}},
        {"env_file": ""},
        {"headers": {"a": "b"}},
        {"url": "https://x"},
        {"other": {"sandbox": False}},
        {"inputs": {"key": LaunchInput(type="promptString")}},
        {"templates": {"command": "${HOME}/npx"}},
        {"transport": "ws", "url": "https://x"},
    ],
)
def test_digest_sees_each_part(change: dict[str, Any]) -> None:
    changed = replace(PROGRAM, **change)
    assert digest_launch(changed) != digest_launch(PROGRAM)
    assert change == {"transport": "ws", "url": "https://x"} or list(
        describe_launch(changed)
    ) != list(describe_launch(PROGRAM))


def test_digest_ignores_the_order_of_variables() -> None:
    env = dict(reversed(PROGRAM.env.items()))
    assert digest_launch(replace(PROGRAM, env=env)) == digest_launch(PROGRAM)


def test_digest_stays_the_same_over_releases() -> None:
    # A user would be asked again about each server if it changed.
    assert digest_launch(ServerLaunch(transport="stdio", command="/bin/a")) == (
        "sha256:fee35e755d6fc0205d9d8cb1328ae511e45150db030a7bbf56edf9476a4cd833"
    )


def test_sent_variables_are_those_of_address_and_headers() -> None:
    assert REMOTE.sent_variables == ("FALLBACK", "GEMINI", "HOST", "TOKEN", "input:api-key")
    assert PROGRAM.sent_variables == ()


def test_description_of_program_shows_everything_and_marks() -> None:
    assert [tuple(line) for line in describe_launch(PROGRAM)] == [
        ("command", "/usr/bin/npx", ""),
        ("argument", '"-y"', ""),
        ("argument", '"server notes"', ""),
        ("argument", '"--key=${KEY}"', ""),
        ("directory", "/home/me/project", ""),
        ("variable", 'TOKEN="${TOKEN:-}"', ""),
        ("variable", 'PATH="./bin"', "it can make the program run other code"),
        (
            "variables of",
            "/home/me/project/.env",
            "its variables are not shown, and may change later",
        ),
    ]


def test_description_of_address_shows_what_is_sent() -> None:
    lines = list(describe_launch(REMOTE))
    assert [line.text for line in lines if line.label == "sends"] == list(REMOTE.sent_variables)
    assert lines[0].text == REMOTE.url
    assert ("other member", '"headersHelper": "./make-headers"', "") in lines


@pytest.mark.parametrize(("name", "is_marked"), [("GIT_ASKPASS", True), ("GITHUB_TOKEN", False)])
def test_variable_that_can_redirect_code_is_marked(name: str, is_marked: bool) -> None:
    launch = ServerLaunch(transport="stdio", command="/a", env={name: "x"})
    assert bool(list(describe_launch(launch))[-1].mark) is is_marked


@pytest.mark.parametrize("command", ["", "npx", "./npx", "bin/npx", "~/npx", "C:npx", "\n/a"])
def test_command_that_is_not_absolute_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match="not absolute"):
        ServerLaunch(transport="stdio", command=command)


@pytest.mark.parametrize("command", ["/a", "C:\\a.exe", "c:/a", "\\\\host\\share\\a"])
def test_command_that_is_absolute_is_accepted(command: str) -> None:
    assert ServerLaunch(transport="stdio", command=command).command == command


def test_server_without_program_and_address_is_refused() -> None:
    with pytest.raises(ValueError, match="address"):
        ServerLaunch(transport="http", command="/a")


@given(st.text(), st.text(), st.text())
def test_description_is_safe_for_a_terminal(first: str, second: str, third: str) -> None:
    """The launch comes from an untrusted project: escapes and bidi marks must not hide a part."""
    launch = ServerLaunch(
        transport="stdio",
        command="/" + first,
        args=(second,),
        directory=third,
        env={first: second},
        env_file=third,
        url=first,
        headers={second: third},
        inputs={first: LaunchInput(type=second, default=third, options=(first,))},
        other={third: [first]},
    )
    labels = {"command", "argument", "directory", "address", "variable", "variables of"}
    for line in describe_launch(launch):
        assert line.label in labels | {"header", "sends", "input", "other member"}
        assert not set("\x1b\n\r\u202e\u200b") & set("".join(line))


def server_of(text: str, file: str = ".mcp.json") -> ServerConfig:
    config = read_config(text, file=file)
    assert config.problems == ()
    (server,) = config.servers.values()
    return server


def test_launch_of_a_program_has_everything_unexpanded() -> None:
    """Arguments keep their `${...}`, and what had to be expanded is shown with its template."""
    server = server_of(
        """{"servers": {"a": {"command": "${userHome}/bin/run", "args": ["--key=${input:key}"],
        "cwd": "${workspaceFolder}/x", "env": {"TOKEN": "${env:TOKEN}"}, "envFile": "~/.env",
        "url2": "unknown", "dev": {"watch": "*"}}}, "inputs": [{"id": "key"}]}""",
        ".vscode/mcp.json",
    )
    launch = make_launch(
        server, program="/home/me/bin/run", directory="/project/x", env_file="/home/me/.env"
    )
    assert launch == ServerLaunch(
        transport="stdio",
        command="/home/me/bin/run",
        args=("--key=${input:key}",),
        directory="/project/x",
        env={"TOKEN": "${env:TOKEN}"},
        env_file="/home/me/.env",
        templates={
            "command": "${userHome}/bin/run",
            "directory": "${workspaceFolder}/x",
            "env_file": "~/.env",
        },
        other={"url2": "unknown", "dev": {"watch": "*"}},
    )
    lines = [tuple(line)[:2] for line in describe_launch(launch)]
    assert ("command from", '"${userHome}/bin/run"') in lines
    assert ("directory from", '"${workspaceFolder}/x"') in lines
    assert ("variables from", '"~/.env"') in lines


def test_launch_has_the_inputs_that_it_uses() -> None:
    """A changed default or option changes what runs and ends the approval; unused inputs don't."""
    text = """{"servers": {"a": {"command": "x", "args": ["${input:key}"]}}, "inputs": [
        {"id": "key", "type": "pickString", "default": "--safe", "options": ["--safe", "-x"],
        "description": "Which?", "password": true}, {"id": "other", "type": "promptString"}]}"""
    config = read_config(text, file=".vscode/mcp.json")

    def launch_of(text: str) -> ServerLaunch:
        config = read_config(text, file=".vscode/mcp.json")
        return make_launch(config.servers["a"], config.inputs, program="/x", directory="/")

    launch = launch_of(text)
    assert config.inputs.keys() == {"key", "other"}
    assert launch.inputs == {
        "key": LaunchInput(
            type="pickString",
            description="Which?",
            secret=True,
            default="--safe",
            options=("--safe", "-x"),
        )
    }
    shown = '"key": {"type":"pickString","description":"Which?","secret":true,"default":"--safe"'
    (line,) = [line for line in describe_launch(launch) if line.label == "input"]
    assert line.text.startswith(shown)
    for old, new in (("true", "false"), ('"-x"', '"-y"'), ("Which", "Who"), ("pick", "prompt")):
        assert digest_launch(launch_of(text.replace(old, new))) != digest_launch(launch)
    assert digest_launch(launch_of(text.replace('"other"', '"new"'))) == digest_launch(launch)


def test_member_that_imitates_another_line_is_shown_as_a_member() -> None:
    launch = replace(PROGRAM, other={"command         /usr/bin/git": 1, "argument": "-v"})
    assert [tuple(line)[:2] for line in describe_launch(launch)][-2:] == [
        ("other member", '"command         /usr/bin/git": 1'),
        ("other member", '"argument": "-v"'),
    ]


@pytest.mark.parametrize(
    ("change", "excess"),
    [
        ({}, None),
        ({"args": ("-v",) * 195}, None),  # with the five other lines
        ({"args": ("-v",) * 196}, "more than 200 lines"),
        ({"args": ("x" * 4094,)}, None),
        ({"args": ("x" * 4095,)}, "its argument of 4097 characters"),
        ({"other": {"x" * 4096: 1}}, "its other member of 4101 characters"),
    ],
)
def test_launch_that_is_too_large_to_show_is_found(
    change: dict[str, Any], excess: str | None
) -> None:
    found = find_excess(replace(PROGRAM, **change))
    assert found == excess or (excess is not None and excess in str(found))


def test_launch_of_a_plain_command_has_no_templates() -> None:
    server = server_of('{"mcpServers": {"a": {"command": "npx", "cwd": "x", "args": ["$5"]}}}')
    launch = make_launch(server, program="/usr/bin/npx", directory="/project/x")
    assert (launch.templates, launch.args) == ({}, ("$5",))


def test_launch_has_forwarded_variables_by_name() -> None:
    server = server_of(
        '[mcp_servers.a]\ncommand = "x"\nenv_vars = ["ONE", "TWO"]\nenv = {TWO = "2"}', "x.toml"
    )
    launch = make_launch(server, program="/x", directory="/")
    assert launch.env == {"ONE": "${ONE}", "TWO": "2"}


def test_launch_of_an_address_has_headers_from_variables() -> None:
    """Codex names variables instead of values: the approval shows which ones leave the machine."""
    server = server_of(
        """
        [mcp_servers.a]
        url = "https://x.example/mcp"
        http_headers = {"X-Plain" = "1"}
        env_http_headers = {"X-Key" = "KEY"}
        bearer_token_env_var = "TOKEN"
        startup_timeout_sec = 5
        enabled_tools = ["a"]
        scopes = ["read"]
        oauth_resource = 2026-11-01
        """,
        "config.toml",
    )
    launch = make_launch(server)
    assert launch == ServerLaunch(
        transport="http",
        url="https://x.example/mcp",
        headers={"X-Plain": "1", "X-Key": "${KEY}", "Authorization": "Bearer ${TOKEN}"},
        other={"scopes": ["read"], "oauth_resource": "2026-11-01"},
    )
    assert launch.sent_variables == ("KEY", "TOKEN")


@pytest.mark.parametrize(
    "members",
    [
        '"headersHelper": "./make-headers"',
        '"oauth": {"clientId": "x"}',
        '"auth": {"CLIENT_ID": "x"}',
        '"authProviderType": "google_credentials"',
        '"sandbox": {}',
        '"not known yet": 1',
    ],
)
def test_member_that_may_change_what_is_sent_changes_the_digest(members: str) -> None:
    plain = server_of('{"mcpServers": {"a": {"type": "http", "url": "https://x"}}}')
    more = server_of(
        f'{{"mcpServers": {{"a": {{"type": "http", "url": "https://x", {members}}}}}}}'
    )
    assert digest_launch(make_launch(plain)) != digest_launch(make_launch(more))


def test_member_that_describes_leaves_the_digest() -> None:
    plain = server_of('{"mcpServers": {"a": {"command": "x"}}}')
    more = server_of(
        """{"mcpServers": {"a": {"command": "x", "description": "d", "trust": true,
        "autoApprove": ["*"], "timeout": 5000, "headers": {"A": "not for a program"}}}}"""
    )
    digests = {digest_launch(make_launch(each, program="/x")) for each in (plain, more)}
    assert len(digests) == 1


@pytest.mark.parametrize(
    "value", ["1e999", "9" * 400, '"\\ud800"', '{"\\udfff": [null, true, 0.5]}']
)
def test_member_that_canonical_json_cannot_have_is_digested(value: str) -> None:
    server = server_of(f'{{"mcpServers": {{"a": {{"url": "https://x", "more": {value}}}}}}}')
    assert digest_launch(make_launch(server)).startswith("sha256:")


@pytest.mark.parametrize("value", ["inf", "nan", "07:32:00", "1979-05-27T07:32:00Z"])
def test_member_that_only_toml_has_is_digested(value: str) -> None:
    server = server_of(f'[mcp_servers.a]\nurl = "https://x"\nmore = {value}', "x.toml")
    assert digest_launch(make_launch(server)).startswith("sha256:")


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ("", True),
        ('"args": ["${input:key}"], "envFile": "/srv/.env", ', True),
        ('"args": ["${input:other}"], ', False),
        ('"envFile": ".env", ', False),
        ('"envFile": "${workspaceFolder}/.env", ', False),
    ],
)
def test_same_launch_has_absolute_paths_and_the_same_inputs(changed: str, same: bool) -> None:
    text = """{"servers": {"a": {"command": "x", CHANGED "cwd": "/srv"}}, "inputs": [
        {"id": "key", "type": "promptString"}, {"id": "other", "description": "Which?"}]}"""
    text = text.replace("CHANGED", changed)
    one = read_config(text, file=".vscode/mcp.json")
    two = read_config(text.replace("Which", "Who"), file=".vscode/mcp.json")
    servers = one.servers["a"], two.servers["a"]
    assert is_same_launch(*servers, one.inputs, two.inputs) is same
