"""The digest of a launch sees each part of it, and its description shows each part."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_core.host import ServerLaunch, describe_launch, digest_launch

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
        "sha256:a6f850397e9e44aaad42caf51fb169cd402e4b4bb723c2c5b571d5f017d473f2"
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
    assert ("headersHelper", '"./make-headers"', "") in lines


@pytest.mark.parametrize(
    ("name", "is_marked"),
    [
        *((name, True) for name in ("PATH", "Path", "LD_PRELOAD", "DYLD_X", "PYTHONPATH")),
        *((name, True) for name in ("PYTHONSTARTUP", "NODE_OPTIONS", "LD_\n")),
        *((name, False) for name in ("PATHS", "MY_PATH", "NODE_ENV", "OLD_X")),
    ],
)
def test_variable_that_loads_code_is_marked(name: str, is_marked: bool) -> None:
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
    launch = ServerLaunch(
        transport="stdio",
        command="/" + first,
        args=(second,),
        directory=third,
        env={first: second},
        env_file=third,
        url=first,
        headers={second: third},
        other={third: [first]},
    )
    for line in describe_launch(launch):
        assert not set("\x1b\n\r\u202e\u200b") & set("".join(line))
