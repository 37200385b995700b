"""Servers of configuration files: what was approved is what runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_trio
from mcp_core.host import ConfigPlace, ConfigProblem, InvalidConfig, MergedServers, read_policy
from mcp_trio.host import ConfigFiles, MemoryApprovals, ServerQuestion, single_config_file
from mcp_trio.host._configured import ConfiguredServer, kept_sources
from mcp_trio.host._sources import SourceOptions

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_core.host import ServerPolicy, ServerScope

pytestmark = pytest.mark.skipif("sys.platform == 'win32'", reason="the programs are scripts")


def write_program(directory: Path, mark: str) -> None:
    """Write a program that notes `mark`, and ends."""
    directory.mkdir(exist_ok=True)
    program = directory / "tool"
    program.write_text(f"#!/bin/sh\necho {mark} >> {directory.parent}/ran\n")
    program.chmod(0o755)


def write_config(tmp_path: Path) -> Path:
    """Write a file with one server, whose program may be in two directories of its PATH."""
    file = tmp_path / ".vscode" / "mcp.json"
    file.parent.mkdir()
    server = {
        "command": "tool",
        "args": ["${input:i}"],
        "env": {"PATH": f"{tmp_path}/a:{tmp_path}/b:/bin"},
    }
    inputs = [{"id": "i", "type": "promptString"}]
    file.write_text(json.dumps({"inputs": inputs, "servers": {"x": server}}))
    return file


async def test_program_that_is_found_after_the_approval_does_not_run(tmp_path: Path) -> None:
    """Another program appears earlier on the PATH, while the host asks for an input."""
    write_program(tmp_path / "b", "approved")
    file = write_config(tmp_path)

    async def on_input(_: object) -> str:
        await trio.to_thread.run_sync(write_program, tmp_path / "a", "other")
        question = await host.server_question("x")  # as a window that shows the servers does
        assert question.launch.command == f"{tmp_path}/a/tool"
        return "v"

    def approve(question: ServerQuestion) -> bool:
        return question.launch.command == f"{tmp_path}/b/tool"

    host = mcp_trio.Host(
        file,
        approvals=MemoryApprovals(),
        on_approve_server=approve,
        on_input=on_input,
        restart=False,
    )
    async with host:
        assert host.status()["x"].state == "failed"
    assert await trio.Path(tmp_path / "ran").read_text() == "approved\n"


async def test_inputs_of_other_servers_of_the_file_are_not_asked_for(tmp_path: Path) -> None:
    """They may be secrets, and these servers need not be approved, or not be used at all."""
    file = tmp_path / ".vscode" / "mcp.json"
    file.parent.mkdir()
    ids = ("mine", "theirs", "unused")
    inputs = [{"id": id, "type": "promptString", "password": True} for id in ids]
    servers = {
        "a": {"command": "true", "args": ["${input:mine}", "${input:mine}"]},
        "b": {"command": "true", "env": {"TOKEN": "${input:theirs}"}},
    }
    file.write_text(json.dumps({"inputs": inputs, "servers": servers}))
    asked: list[str] = []
    async with mcp_trio.Host(
        file,
        approvals=MemoryApprovals(),
        on_approve_server=lambda question: question.server == "a",
        on_input=lambda each: asked.append(each.id),
        restart=False,
    ) as host:
        assert {name: each.state for name, each in host.status().items()} == {
            "a": "failed",  # without its input
            "b": "unapproved",
        }
    assert asked == ["mine"]


async def test_connection_without_the_approved_launch_is_refused(tmp_path: Path) -> None:
    files = single_config_file(write_config(tmp_path))
    source = ConfiguredServer(files, files.read(), "x", SourceOptions(None, "discard"))
    with pytest.raises(ValueError, match="x needs the launch that was approved"):
        source.connect({}, {"i": "v"}, None)


POLICY = read_policy('{"deniedMcpServers": [{"serverUrl": "https://evil.example/*"}]}', file="m")


def remote_source(tmp_path: Path, policy: ServerPolicy | None, description: str = "") -> Any:
    """Return the source of a server whose address is known when its variable is expanded."""
    file = tmp_path / ".vscode" / "mcp.json"
    file.parent.mkdir(exist_ok=True)
    inputs = [{"id": "i", "type": "promptString", "description": description}]
    servers = {"x": {"type": "http", "url": "https://${input:i}/mcp"}}
    file.write_text(json.dumps({"inputs": inputs, "servers": servers}, indent=len(description)))
    files = single_config_file(file)
    merged = replace(files.read(), policy=policy)
    return ConfiguredServer(files, merged, "x", SourceOptions(None, "discard"))


async def test_kept_server_is_expanded_under_the_policy_of_now(tmp_path: Path) -> None:
    source = remote_source(tmp_path, None)
    problem = ConfigProblem(ConfigPlace(source.file, 1, 1), "half written")
    now = MergedServers(problems=(problem,), policy=POLICY)
    (kept,) = kept_sources([source], now, ())
    with pytest.raises(InvalidConfig, match="denied"):
        async with kept.connect({}, {"i": "evil.example"}, kept.prepare()):
            raise AssertionError
    assert kept_sources([source], replace(now, is_exclusive=True), ()) == []
    assert kept_sources([source], now, ["x"]) == []
    assert kept_sources([source], MergedServers(), ()) == []


def test_source_is_the_same_unless_its_inputs_or_the_policy_differ(tmp_path: Path) -> None:
    source = remote_source(tmp_path, POLICY, "a")
    assert source.same_as(remote_source(tmp_path, POLICY, "a"))
    assert not source.same_as(remote_source(tmp_path, POLICY, "b"))
    assert not source.same_as(remote_source(tmp_path, None, "a"))
    assert not source.same_as(object())


async def test_question_says_which_server_of_the_user_is_replaced(tmp_path: Path) -> None:
    project, user = tmp_path / "project.json", tmp_path / "user.json"
    for path in project, user:
        entry = {"type": "http", "url": f"https://{path.stem}/"}
        path.write_text(json.dumps({"mcpServers": {"x": entry}}))
    files = ConfigFiles(
        files=(("project", project), ("user", user)), directory=tmp_path, environ={}
    )
    async with mcp_trio.Host(files, approvals=MemoryApprovals()) as host:
        question = await host.server_question("x")
    assert question.replaces == (f"{user} (user)",)
    assert [tuple(line) for line in question.lines()][1:] == [
        ("in place of", f"{user} (user)", "the server of the same name there is not used")
    ]


@pytest.mark.parametrize(
    ("scope", "mode", "is_trusted"),
    [
        ("user", "auto", True),
        ("user", "prompt", False),
        ("managed", "prompt", False),
        ("project", "auto", False),
        ("project", "prompt", False),
    ],
)
def test_server_that_is_to_ask_before_each_call_has_no_trusted_annotations(
    tmp_path: Path, scope: ServerScope, mode: str, is_trusted: bool
) -> None:
    file = tmp_path / "config.toml"
    text = f'[mcp_servers.x]\nurl = "https://h/"\ndefault_tools_approval_mode = "{mode}"\n'
    file.write_text(text)
    files = ConfigFiles(files=(("user", file),), directory=tmp_path, environ={})
    merged = files.read()
    servers = {"x": replace(merged.servers["x"], scope=scope)}
    merged = replace(merged, servers=servers)
    source = ConfiguredServer(files, merged, "x", SourceOptions(None, "discard"))
    assert source.is_trusted is is_trusted
    assert source.needs_approval is (scope == "project")


def test_source_differs_if_its_lists_of_tools_differ(tmp_path: Path) -> None:
    def source(more: str, before: str = "") -> ConfiguredServer:
        file = tmp_path / ".mcp.json"
        file.write_text(f'{before}{{"mcpServers": {{"x": {{"url": "https://h/"{more}}}}}}}')
        files = single_config_file(file)
        return ConfiguredServer(files, files.read(), "x", SourceOptions(None, "discard"))

    one = source(', "type": "http", "deniedTools": ["a"]')
    assert one.same_as(source(', "type": "http", "deniedTools": ["a"]', "\n\n"))
    assert not one.same_as(source(', "type": "http"'))
    assert not one.same_as(source(', "type": "http", "deniedTools": ["a", "b"]'))
    # The same is run, so no new approval is needed.
    assert one.prepare() == source(', "type": "http"').prepare()
