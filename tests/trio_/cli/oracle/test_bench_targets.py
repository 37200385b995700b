"""The targets of `mcp-trio bench`: how a name and its text are read, and what options apply to."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.cli import main
from mcp_trio.cli._errors import CliError
from mcp_trio.cli.oracle import _bench
from mcp_trio.cli.oracle._bench_targets import BenchTarget
from mcp_trio.oracle.bench.engine._load import Address, Program

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.trio_.cli.configured.configured import ConfiguredServers

URL = "http://127.0.0.1:1/mcp"


def targets_of(*words: str) -> list[BenchTarget]:
    """Return the targets of a command line, which isn't run."""
    run: Any = _bench.parse(words)
    found: Sequence[BenchTarget] = run.args[0]
    return list(found)


def named(text: str, *more: str) -> BenchTarget:
    """Return the target of `--target a=TEXT`."""
    return targets_of("--target", f"a={text}", *more)[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a file `server.py`."""
    (tmp_path / "server.py").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_text_is_read_as_url_then_file_then_command(folder: Path) -> None:
    """A command line that names a file stays a command line."""
    found = targets_of(
        *("--target", f"url={URL}"),
        *("--target", "file=server.py"),
        *("--target", "variable=server.py:mcp"),
        *("--target", "command=python server.py --name 'a b'"),
    )
    assert [each.name for each in found] == ["url", "file", "variable", "command"]
    url, file, variable, command = (each.address() for each in found)
    assert url == Address(URL)
    assert isinstance(file, Program)
    assert isinstance(variable, Program)
    assert isinstance(command, Program)
    run = (sys.executable, "-P", "-m", "mcp_trio", "run")
    assert tuple(file.argv) == (*run, "server.py")
    assert tuple(variable.argv) == (*run, "server.py:mcp")
    assert tuple(command.argv) == ("python", "server.py", "--name", "a b")


def test_name_of_a_target_has_forty_characters_at_most(folder: Path) -> None:
    longest = "a" * 40
    assert [each.name for each in targets_of("--target", f"{longest}={URL}")] == [longest]
    with pytest.raises(CliError, match="has no name"):
        targets_of("--target", f"{longest}a={URL}")


def test_command_is_split_as_the_platform_does(monkeypatch: pytest.MonkeyPatch) -> None:
    words = r'C:\python.exe "my server.py"'
    monkeypatch.setattr(os, "name", "nt")
    address = named(words).address()
    monkeypatch.undo()
    assert isinstance(address, Program)
    assert tuple(address.argv) == (r"C:\python.exe", "my server.py")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--target", "python a.py"], "--target python a.py has no name: write NAME=TARGET"),
        (["--target", f"{URL}?key=1"], f"--target {URL} has no name"),
        (["--target", f"{'a' * 41}={URL}"], "has no name"),
        (["--target", "a="], "has no name"),
        (["--target", "a= "], "--target a has no command"),
        (["--target", "a=gone.py"], "--target a: there is no file gone.py"),
        (["--target", "a=python 'b"], "--target a: the command line is wrong: a quote has no end"),
        (["--target", "a=server:"], "server: needs a name"),
        (["--target", "a=server:none"], "none"),
        (["--target", "a=ftp://host/"], "ftp://host/ is not supported: give a URL that begins"),
        (["--target", "a=ws://127.0.0.1:1/mcp"], "and not WebSockets"),
        (["--target", f"a={URL}", URL], f"there are two kinds of targets: {URL}, and --target"),
        (["--target", f"a={URL}", "--", "python"], "there is a command after --, and --target"),
        (["--target", f"a={URL}", "-m", "b"], "there are two kinds of targets: b, and --target"),
        (["--target", f"a={URL}", "--server", "b"], "there are two kinds of targets"),
        (["--target", f"a={URL}", "--asyncio"], "--asyncio is for one target"),
        (["--target", f"a={URL}", "--target", "a=python"], "two targets have the name a"),
        (["--target", f"a={URL}", "--env", "A=1"], "--env: no target is a command"),
        (["--target", "a=python", "--header", "A: 1"], "--header: no target is at a URL"),
        (["--target", f"a={URL}", "--approve-server", "x"], "--approve-server is for a server of"),
        ([f"--target=n{n}={URL}" for n in range(17)], "there are 17 targets; at most 16"),
    ],
)
def test_target_that_is_wrong_names_the_cure(
    words: list[str], problem: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: Any = main(["bench", *words])
    except SystemExit as exc:
        status = exc.code
    assert (status, problem in (err := capsys.readouterr().err)) == (2, True), err


def test_options_apply_to_the_targets_that_can_have_them(folder: Path) -> None:
    words = ("--header", "X-Mode: fast", "--env", "MODE=fast", "--cwd", str(folder))
    first, second = targets_of("--target", f"a={URL}", "--target", "b=python a.py", *words)
    assert first.address() == Address(URL, {"x-mode": "fast"})
    assert second.address() == Program(("python", "a.py"), {"MODE": "fast"}, cwd=folder)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("http://127.0.0.1:1/mcp?key=1",), "http://127.0.0.1:1/mcp"),
        (("server.py",), "server.py"),
        (("--", "/usr/bin/node", "server.js", "--api-key", "x"), "node"),
    ],
)
def test_only_target_has_a_name_without_secrets(
    words: tuple[str, ...], name: str, folder: Path
) -> None:
    assert [each.name for each in targets_of(*words)] == [name]


@pytest.mark.parametrize("words", [("--server", "demo"), ("--target", "a=server:demo")])
def test_configured_server_that_is_not_approved_is_not_started(
    words: tuple[str, ...],
    servers: ConfiguredServers,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    servers.add()
    for name, value in servers.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(servers.project)
    assert main(["bench", *words]) == 3
    assert "the server demo is not approved, so it was not started" in capsys.readouterr().err
    assert servers.starts() == 0


def test_configured_server_that_is_approved_is_started_as_its_entry_says(
    servers: ConfiguredServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--env` and `--header` of the command line are for the other targets."""
    servers.add(env={"MODE": "fast"})
    for name, value in servers.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(servers.project)
    found = targets_of(
        *("--target", "a=server:demo", "--approve-server", "demo", "--target", "b=python b.py"),
        *("--env", "MODE=slow"),
    )
    address, other = (each.approved().address() for each in found)
    assert isinstance(address, Program)
    assert isinstance(other, Program)
    command, arguments = servers.command()
    assert list(address.argv) == [command, *arguments]
    assert address.env is not None
    assert address.env["MODE"] == "fast"
    assert other.env == {"MODE": "slow"}


def test_tool_that_a_configured_entry_denies_is_not_called(
    servers: ConfiguredServers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    servers.add(deniedTools=["greet"])
    for name, value in servers.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(servers.project)
    words = ["--target", "a=server:demo", "--approve-server", "demo", "--tool"]
    assert main(["bench", *words, "greet"]) == 3
    assert "a, tool greet: " in capsys.readouterr().err
    [target] = targets_of(*words, "other")
    target.approved().require_allowed(["other"])
    with pytest.raises(CliError, match="a, tool greet"):
        target.approved().require_allowed(["other", "greet"])
