"""Preparing a server: the program that the child would run, and values only after the approval."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.host import (
    InvalidConfig,
    MergedServers,
    ServerApproval,
    approval_state,
    digest_launch,
    read_policy,
)
from mcp_trio.host import _config_files, _prepared_launch
from mcp_trio.host._config_files import ConfigFiles
from mcp_trio.host._prepared_launch import ExpandedLaunch, PreparedLaunch, prepare_launch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.host import ServerScope

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the programs are files with a mode")


@pytest.fixture(autouse=True)
def no_managed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_config_files, "_MANAGED_FILE", tmp_path / "none")


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


class ProjectFiles:
    """A project, the home directory of the user, and a directory of programs."""

    def __init__(self, path: Path) -> None:
        self.project = path / "project"
        self.home = path / "home"
        self.bin = path / "bin"
        for directory in (self.project, self.home, self.bin):
            directory.mkdir()
        self.npx = program(self.bin / "npx")
        self.environ = {"HOME": str(self.home), "PATH": str(self.bin)}

    def files(self, entry: Mapping[str, Any], **more: Any) -> tuple[ConfigFiles, MergedServers]:
        scope: ServerScope = more.pop("scope", "project")
        name = more.pop("file", "mcp.json")
        path = self.project / name
        path.parent.mkdir(exist_ok=True)
        member = "servers" if more else "mcpServers"
        path.write_text(json.dumps({member: {"a": entry}, **more}))
        files = ConfigFiles(
            files=((scope, path),), directory=self.project, environ=self.environ, required=True
        )
        return files, files.read()

    def prepare(self, entry: Mapping[str, Any], **more: Any) -> PreparedLaunch:
        return prepare_launch(*self.files(entry, **more), "a")

    def error(self, entry: Mapping[str, Any], **more: Any) -> str:
        with pytest.raises(InvalidConfig) as raised:
            self.prepare(entry, **more)
        assert all(problem.server == "a" for problem in raised.value.problems)
        return str(raised.value)


@pytest.fixture
def world(tmp_path: Path) -> ProjectFiles:
    return ProjectFiles(tmp_path)


# What is shown


def test_program_on_path_is_found_absolutely(world: ProjectFiles) -> None:
    prepared = world.prepare({"command": "npx", "args": ["-y", "${X}"], "env": {"K": "${TOKEN}"}})
    launch = prepared.launch
    assert (launch.command, launch.directory) == (str(world.npx), str(world.project))
    assert (launch.args, launch.env) == (("-y", "${X}"), {"K": "${TOKEN}"})
    assert (prepared.name, prepared.file) == ("a", str(world.project / "mcp.json"))


def test_launch_that_is_too_large_to_show_is_refused_for_a_project(world: ProjectFiles) -> None:
    entry = {"command": "npx", "args": ["-v"] * 200}
    error = world.error(entry)
    assert "it has more than 200 lines to approve" in error
    files, servers = world.files(entry, scope="user")
    assert len(prepare_launch(files, servers, "a").launch.args) == 200  # it is not shown


def test_launch_is_digested_without_the_values(world: ProjectFiles) -> None:
    """Neither the variables nor the inputs have to be known before the approval."""
    world.environ["TOKEN"] = "hunter2"
    entry = {
        "command": "npx",
        "args": ["${input:key}", "${UNSET}"],
        "env": {"K": "${TOKEN}", "LATER": "${UNSET}"},
    }
    inputs = [{"id": "key", "type": "promptString", "password": True}]
    prepared = world.prepare(entry, inputs=inputs, file=".vscode/mcp.json")
    assert "hunter2" not in str(prepared.launch)
    before = digest_launch(prepared.launch)
    world.environ["TOKEN"] = "other"
    again = world.prepare(entry, inputs=inputs, file=".vscode/mcp.json")
    assert digest_launch(again.launch) == before
    assert approval_state(again.launch, ServerApproval(launch=before), ()) == "approved"


def test_program_that_path_finds_elsewhere_is_asked_about_again(world: ProjectFiles) -> None:
    prepared = world.prepare({"command": "npx"})
    approval = ServerApproval(launch=digest_launch(prepared.launch))
    world.environ["PATH"] = f"{program(world.project / 'evil' / 'npx').parent}:{world.bin}"
    assert approval_state(world.prepare({"command": "npx"}).launch, approval, ()) == "changed"


@pytest.mark.parametrize("scope", ["local", "project", "user", "managed"])
def test_directory_is_that_of_the_project_or_home(world: ProjectFiles, scope: ServerScope) -> None:
    entry = {"command": "npx"}
    path = world.project / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": entry}}))
    files = ConfigFiles(files=((scope, path),), directory=world.project, environ=world.environ)
    servers = ConfigFiles(
        files=(("project", path),), directory=world.project, environ=world.environ
    ).read()
    (scoped,) = servers.servers.values()
    merged = MergedServers(servers={"a": replace(scoped, scope=scope)})
    prepared = prepare_launch(files, merged, "a")
    is_of_project = scope in ("local", "project")
    assert prepared.launch.directory == str(world.project if is_of_project else world.home)
    assert prepared.needs_approval is is_of_project


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        ("sub", "{project}/sub"),
        ("./sub", "{project}/sub"),
        ("${workspaceFolder}/sub", "{project}/sub"),
        ("~/sub", "{home}/sub"),
        ("~", "{home}"),
        ("${userHome}", "{home}"),
        ("/", "/"),
    ],
)
def test_working_directory_is_absolute(world: ProjectFiles, cwd: str, expected: str) -> None:
    for parent in (world.project, world.home):
        (parent / "sub").mkdir()
    launch = world.prepare({"command": "npx", "cwd": cwd}).launch
    assert launch.directory == expected.format(project=world.project, home=world.home)
    assert launch.templates == ({"directory": cwd} if cwd[0] in "~$" else {})


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("./run", "{project}/sub/run"),
        ("../tool/run", "{project}/sub/../tool/run"),
        ("~/run", "{home}/run"),
        ("${HOME}/run", "{home}/run"),
        ("{home}/run", "{home}/run"),
    ],
)
def test_command_with_directory_counts_from_the_working_directory(
    world: ProjectFiles, command: str, expected: str
) -> None:
    for directory in (world.project / "sub", world.project / "tool", world.home):
        program(directory / "run")
    command = command.replace("{home}", str(world.home)).replace(f"${world.home}", "${HOME}")
    launch = world.prepare({"command": command, "cwd": "sub"}).launch
    assert launch.command == expected.format(project=world.project, home=world.home)
    assert launch.templates == ({"command": command} if command[0] in "~$" else {})


@pytest.mark.parametrize("path", ["sub", ".", "", "./sub:", "missing:sub"])
def test_relative_path_counts_from_the_working_directory(world: ProjectFiles, path: str) -> None:
    program(world.project / "dir" / "run")
    program(world.project / "dir" / "sub" / "run")
    entry = {"command": "run", "cwd": "dir", "env": {"PATH": path}}
    found = world.prepare(entry).launch.command
    expected = "dir/sub/run" if "sub" in path else "dir/run"
    assert found == str(world.project / expected)


def test_path_of_the_server_wins_over_that_of_the_file_and_ours(world: ProjectFiles) -> None:
    in_file = program(world.project / "in-file" / "npx")
    in_entry = program(world.project / "in-entry" / "npx")
    (world.project / ".env").write_text(f"PATH={in_file.parent}\nTOKEN=hunter2\n")
    entry: dict[str, Any] = {"command": "npx", "envFile": ".env"}
    options: dict[str, Any] = {"inputs": [], "file": ".vscode/mcp.json"}
    prepared = world.prepare(entry, **options)
    assert prepared.launch.command == str(in_file)
    assert prepared.launch.env_file == str(world.project / ".env")
    assert "hunter2" not in str(prepared.launch)
    entry["env"] = {"PATH": "${workspaceFolder}/in-entry"}
    assert world.prepare(entry, **options).launch.command == str(in_entry)


def test_file_that_is_not_executable_is_passed_over(world: ProjectFiles) -> None:
    first = world.project / "first"
    (first / "npx").mkdir(parents=True)
    second = world.project / "second"
    program(second / "npx").chmod(0o644)
    world.environ["PATH"] = f"{first}:{second}:{world.bin}"
    assert world.prepare({"command": "npx"}).launch.command == str(world.npx)


@pytest.mark.process
@pytest.mark.parametrize("path", ["one", "two:one", ":two", "missing:{bin}", "file:one"])
def test_program_is_the_one_that_a_child_runs(world: ProjectFiles, path: str) -> None:
    """As `subprocess` finds it, which the driver uses."""
    for directory in (world.project / "one", world.project, world.bin, world.project / "two"):
        program(directory / "run").write_text('#!/bin/sh\necho "$0"\n')
    (world.project / "two" / "run").chmod(0o644)
    (world.project / "file").touch()
    path = path.format(bin=world.bin)
    found = world.prepare({"command": "run", "env": {"PATH": path}}).launch.command
    ran = subprocess.run(
        ["run"],
        env={"PATH": path},
        cwd=world.project,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert (world.project / ran.stdout.strip()).samefile(found)


def test_remote_server_has_its_templates(world: ProjectFiles) -> None:
    prepared = world.prepare({"type": "http", "url": "https://${HOST}/", "headers": {"A": "${B}"}})
    assert (prepared.launch.url, prepared.launch.headers) == ("https://${HOST}/", {"A": "${B}"})
    assert (prepared.launch.command, prepared.launch.directory) == ("", "")


# Values


def test_launch_of_a_program_is_expanded_after_approval(world: ProjectFiles) -> None:
    """The program was found before the approval, and a `repr` never shows a secret."""
    (world.project / ".env").write_text("A=file\nB=file\n")
    entry = {
        "command": "npx",
        "args": ["--key=${input:key}"],
        "env": {"B": "${TOKEN}"},
        "envFile": "${workspaceFolder}/.env",
    }
    inputs = [{"id": "key", "type": "promptString", "password": True}]
    prepared = world.prepare(entry, inputs=inputs, file=".vscode/mcp.json")
    world.environ["TOKEN"] = "hunter2"
    world.environ["PATH"] = "/nowhere"  # what was found before is what runs
    expanded = prepared.expand({"key": "geheim"})
    assert expanded == ExpandedLaunch(
        transport="stdio",
        argv=(str(world.npx), "--key=geheim"),
        env={"A": "file", "B": "hunter2"},
        cwd=str(world.project),
        secrets=frozenset({"geheim", "hunter2"}),
    )
    for text in (repr(prepared), repr(expanded)):
        assert "hunter2" not in text
        assert "geheim" not in text
    with pytest.raises(InvalidConfig, match="the input key has no value yet"):
        prepared.expand()


def test_launch_of_an_address_is_expanded_after_approval(world: ProjectFiles) -> None:
    entry = {"type": "ws", "url": "wss://x.example/?k=${KEY}", "headers": {"A": "Bearer ${KEY}"}}
    prepared = world.prepare(entry)
    with pytest.raises(InvalidConfig, match="the variable KEY is not set"):
        prepared.expand()
    world.environ["KEY"] = "hunter2"
    expanded = prepared.expand()
    assert expanded == ExpandedLaunch(
        transport="ws",
        url="wss://x.example/?k=hunter2",
        headers={"A": "Bearer hunter2"},
        secrets=frozenset({"hunter2"}),
    )
    assert "hunter2" not in repr(expanded) + repr(prepared)


def test_variables_that_name_each_other_are_expanded_once(world: ProjectFiles) -> None:
    world.environ.update(A="${B}", B="${A}")
    prepared = world.prepare({"command": "npx", "args": ["${A}"], "env": {"A": "${B}"}})
    expanded = prepared.expand()
    assert (expanded.argv[1:], expanded.env) == (("${B}",), {"A": "${A}"})


def test_policy_is_asked_about_the_values(world: ProjectFiles) -> None:
    files, servers = world.files({"type": "http", "url": "https://${HOST}/mcp"})
    denied = b'{"deniedMcpServers": [{"serverUrl": "https://evil.example/*"}]}'
    policy = read_policy(denied, file="m")
    denying = MergedServers(servers=servers.servers, policy=policy)
    prepared = prepare_launch(files, denying, "a")
    world.environ["HOST"] = "evil.example"
    with pytest.raises(InvalidConfig, match="denied by m"):
        prepared.expand()


# Errors


def test_program_that_is_missing_names_command_and_path(world: ProjectFiles) -> None:
    text = world.error({"command": "missing\x1b"})
    assert f"no program missing\\u001b on PATH ({world.bin}): install it" in text
    assert world.error({"command": "./missing"}).endswith(
        f"there is no program {world.project}/missing"
    )
    world.environ["PATH"] = "x" * 100_000
    assert len(world.error({"command": "missing"})) < 2000


def test_command_with_its_arguments_in_one_text_says_what_to_write(world: ProjectFiles) -> None:
    """The words are shown without what looks like a secret."""
    text = world.error({"command": "missing -y --api-key CANARY server"})
    assert f"no program of this name with its spaces on PATH ({world.bin}): write" in text
    assert text.endswith('"command": "missing", "args": ["-y", "--api-key", "...", "server"]')
    text = world.error({"command": "./missing --x"})
    assert text.endswith(
        'of this name with its spaces: write "command": "./missing", "args": ["--x"]'
    )


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"cwd": "missing"}, "there is no directory {project}/missing"),
        ({"cwd": "${UNSET}"}, "the variable UNSET is not set"),
        ({"cwd": "${EMPTY}"}, "is empty with the values"),
        ({"command": "${UNSET}/x"}, "the variable UNSET is not set"),
        ({"command": "${input:none}"}, "the file has no input with the id none"),
        ({"command": "${input:key}"}, "the input key is entered after the approval"),
        ({"cwd": "${input:folder}"}, "the input folder is entered after the approval"),
        ({"envFile": "missing"}, "the file {project}/missing cannot be read (No such file"),
        ({"envFile": "."}, "cannot be read"),
        ({"envFile": "fifo"}, "is no regular file"),
        ({"envFile": "bad.env"}, "{project}/bad.env:1:1: is no variable"),
        ({"envFile": "large.env"}, "the file is larger than 1 MiB"),
        ({"env": {"PATH": "${UNSET}"}}, "the variable UNSET is not set"),
    ],
)
def test_server_that_cannot_be_prepared_is_an_error(
    world: ProjectFiles, entry: dict[str, Any], problem: str
) -> None:
    """The error says what is wrong where, but quotes nothing from an environment file."""
    os.mkfifo(world.project / "fifo")
    (world.project / "bad.env").write_text("hunter2")
    (world.project / "large.env").write_bytes(b"#" * (1 << 20) + b"\n")
    world.environ["EMPTY"] = ""
    text = world.error(
        {"command": "npx", **entry},
        inputs=[
            {"id": "key", "type": "promptString", "password": True},
            {"id": "folder", "type": "promptString"},
        ],
        file=".vscode/mcp.json",
    )
    assert problem.format(project=world.project) in text
    assert "hunter2" not in text


def test_home_that_is_not_known_is_an_error(
    world: ProjectFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    del world.environ["HOME"]
    assert "~ is not known: the user has no home directory" in world.error({"command": "~/x"})
    assert world.prepare({"command": "npx"}).launch.directory == str(world.project)


def test_path_that_is_not_utf8_is_an_error(world: ProjectFiles) -> None:
    world.environ["DIR"] = os.fsdecode(b"\xff")
    try:
        program(world.project / world.environ["DIR"] / "run")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    assert "is not UTF-8, so it cannot be approved" in world.error({"command": "./${DIR}/run"})


def test_server_that_does_not_exist_is_a_key_error(world: ProjectFiles) -> None:
    with pytest.raises(KeyError):
        prepare_launch(*world.files({"command": "npx"}), "b")


def test_program_on_windows_has_its_ending(
    world: ProjectFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script such as `npx.cmd` is found too; the rules of Windows are played on any system."""
    monkeypatch.setattr(_prepared_launch, "_WINDOWS", True)
    directory = "C:\\node"
    files = {f"{directory}\\npx.cmd", f"{directory}\\node.exe"}
    monkeypatch.setattr(_prepared_launch, "_is_file", lambda path: str(path) in files)
    environ = {"PATH": directory}
    find = _prepared_launch._find_on_windows
    assert find("npx", environ) == f"{directory}\\npx.cmd"
    assert find("node", environ) == f"{directory}\\node.exe"
    assert find("missing", environ) is None
    assert find(f"{directory}\\missing", environ) is None
    # The entry's `Path` replaces the variable `PATH`: case makes no difference.
    prepared = world.prepare({"command": "npx", "env": {"Path": directory}})
    assert prepared.launch.command.endswith(f"{directory}\\npx.cmd")


@pytest.mark.parametrize("windows", [False, True])
def test_input_may_not_decide_which_program_runs(
    windows: bool, world: ProjectFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows `Path` is `PATH`, elsewhere a variable as any other."""
    monkeypatch.setattr(_prepared_launch, "_WINDOWS", windows)
    monkeypatch.setattr(_prepared_launch, "_find_on_windows", lambda name, environ: str(world.npx))
    inputs = [{"id": "key", "type": "promptString"}]
    options: dict[str, Any] = {"inputs": inputs, "file": ".vscode/mcp.json"}
    for name, is_refused in (("PATH", True), ("Path", windows), ("PATHS", False)):
        entry = {"command": "npx", "env": {name: "${input:key}"}}
        if is_refused:
            assert "the input key is entered after the approval" in world.error(entry, **options)
        else:
            assert world.prepare(entry, **options).launch.command == str(world.npx)


def test_secrets_are_values_of_variables_and_of_what_names_them(world: ProjectFiles) -> None:
    world.environ |= {"GH": "from environ", "PLAIN": "plain value", "MODE": "production"}
    (world.project / ".env").write_text("API_KEY=from file\nLEVEL=debug level\nDIR=/srv/data\n")
    entry = {
        "command": "npx",
        "args": ["${PLAIN}", "${MODE}", "${HOME}", "--api-key", "in the args"],
        "env": {"GH_TOKEN": "${GH}", "PASSWORD": "literal", "LEVEL": "${PLAIN}"},
        "envFile": ".env",
    }
    expanded = world.prepare(entry, file=".vscode/mcp.json", inputs=[]).expand()
    assert expanded.secrets == {
        *("from environ", "literal", "from file", "plain value", "debug level", "in the args")
    }


def test_secrets_are_all_variables_of_address_and_headers(world: ProjectFiles) -> None:
    world.environ |= {"K": "in-the-url", "H": "in a header", "T": "a-token"}
    entry = {
        "type": "http",
        "url": "https://h/?k=${K}&v=${V:-default-text}",
        "headers": {"X-Plain": "${H}", "Authorization": "Bearer ${T}", "X-Api-Key": "literal"},
    }
    expanded = world.prepare(entry).expand()
    assert expanded.secrets == {
        *("in-the-url", "in a header", "a-token", "Bearer a-token", "literal")
    }
