"""The places of configuration files, and reading them: precedence, broken and managed files."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.host import InvalidConfig
from mcp_trio._files import read_snapshot, replace_file
from mcp_trio.host import _config_files
from mcp_trio.host._config_files import ConfigFiles, find_config_files, single_config_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def servers(*names: str, command: str = "x") -> dict[str, Any]:
    return {"mcpServers": {name: {"command": command} for name in names}}


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository in the home directory of the user."""
    root = tmp_path / "home" / "repository"
    (root / ".git").mkdir(parents=True)
    return root


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    return {"HOME": str(tmp_path / "home"), "USERPROFILE": str(tmp_path / "home")}


@pytest.fixture
def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "etc" / "mcp-trio" / "managed-mcp.json"
    monkeypatch.setattr(_config_files, "_MANAGED_FILE", path)
    administrators = {0, getattr(os, "geteuid", int)()}
    monkeypatch.setattr(_config_files, "_ADMINISTRATORS", administrators)
    path.parent.mkdir(parents=True)
    for directory in (path.parent, path.parent.parent):
        directory.chmod(0o755)
    return path


def write_managed(path: Path, value: Any) -> None:
    write(path, value)
    path.chmod(0o644)


# Places


def test_places_are_in_order_of_precedence(root: Path, environ: Mapping[str, str]) -> None:
    below = root / "a" / "b"
    below.mkdir(parents=True)
    files = find_config_files(below, environ)
    config = Path(environ["HOME"]) / ".config" / "mcp-trio" / "mcp.json"
    assert files.files == (
        ("managed", Path("/etc/mcp-trio/managed-mcp.json")),
        ("local", root / ".mcp.local.json"),
        ("project", root / ".mcp.json"),
        ("user", config),
    )
    assert files.directory == root


def test_project_file_of_the_nearest_directory_counts(
    root: Path, environ: Mapping[str, str]
) -> None:
    below = root / "a" / "b"
    below.mkdir(parents=True)
    write(root / ".mcp.json", {})
    assert find_config_files(below, environ).directory == root
    write(root / "a" / ".mcp.json", {})
    files = find_config_files(below, environ)
    assert files.directory == root / "a"
    assert [path for scope, path in files.files if scope == "local"] == [
        root / "a" / ".mcp.local.json"
    ]


def test_file_above_the_root_of_the_repository_does_not_count(
    root: Path, environ: Mapping[str, str]
) -> None:
    write(root.parent / ".mcp.json", {})
    assert find_config_files(root, environ).directory == root


def test_repository_whose_git_is_a_file_has_a_root(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    (tmp_path / "worktree" / "a").mkdir(parents=True)
    (tmp_path / "worktree" / ".git").write_text("gitdir: elsewhere")
    assert find_config_files(tmp_path / "worktree" / "a", environ).directory.name == "worktree"


def test_file_above_a_directory_without_repository_does_not_count(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    write(tmp_path / ".mcp.json", {})
    (tmp_path / "below").mkdir()
    assert find_config_files(tmp_path / "below", environ).directory == tmp_path / "below"


def test_directory_behind_a_link_is_the_real_one(
    root: Path, tmp_path: Path, environ: Mapping[str, str]
) -> None:
    """Approvals are kept by the path of the file."""
    link = tmp_path / "link"
    link.symlink_to(root)
    write(root / ".mcp.json", {})
    assert find_config_files(link, environ) == find_config_files(root, environ)
    assert single_config_file(link / ".mcp.json", environ).files[-1][1] == root / ".mcp.json"


def test_directory_in_a_loop_of_links_has_places(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    merged = find_config_files(tmp_path / "a", environ).read()
    assert {"cannot be read" in str(problem) for problem in merged.problems} == {True}


@pytest.mark.parametrize(
    ("config", "expected"),
    [("/xdg", "/xdg"), ("relative", "{home}/.config"), ("", "{home}/.config")],
)
def test_user_file_is_in_the_configuration_directory(
    root: Path, environ: Mapping[str, str], config: str, expected: str
) -> None:
    files = find_config_files(root, {**environ, "XDG_CONFIG_HOME": config})
    directory = Path(expected.format(home=environ["HOME"]))
    assert files.files[-1] == ("user", directory / "mcp-trio" / "mcp.json")


def test_user_without_home_has_no_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    files = find_config_files(root, {})
    assert [scope for scope, _ in files.files] == ["managed", "local", "project"]
    assert files.home is None
    assert files.variables().home is None


@pytest.mark.parametrize(
    ("file", "directory"),
    [
        ("p/x.json", "p"),
        ("p/.mcp.json", "p"),
        ("p/.vscode/mcp.json", "p"),
        ("p/.cursor/mcp.json", "p"),
        ("p/.gemini/settings.json", "p"),
        ("p/.codex/config.toml", "p"),
    ],
)
def test_single_file_is_that_of_a_project(tmp_path: Path, file: str, directory: str) -> None:
    files = single_config_file(tmp_path / file)
    assert files.files[1:] == (("project", tmp_path / file),)
    assert files.directory == tmp_path / directory


def test_relative_single_file_counts_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert single_config_file("x.json").files[-1] == ("project", tmp_path / "x.json")


def test_variables_are_those_of_the_files(root: Path, environ: Mapping[str, str]) -> None:
    variables = find_config_files(root, {**environ, "A": "1"}).variables({"key": "secret"})
    assert variables.environ["A"] == "1"
    assert variables.inputs == {"key": "secret"}
    assert (variables.workspace_folder, variables.home) == (str(root), environ["HOME"])
    assert "secret" not in repr(variables)
    assert "'1'" not in repr(find_config_files(root, {**environ, "A": "1"}))


# Reading


def test_servers_of_all_files_are_merged(
    root: Path, environ: Mapping[str, str], managed: Path
) -> None:
    """The narrower scope wins: local before project before user."""
    files = find_config_files(root, environ)
    assert files.read().servers == {}
    write(files.files[1][1], servers("a"))
    write(files.files[2][1], servers("a", "b"))
    write(files.files[3][1], servers("a", "b", "c"))
    merged = files.read()
    assert {name: each.scope for name, each in merged.servers.items()} == {
        "a": "local",
        "b": "project",
        "c": "user",
    }
    assert merged.problems == ()
    assert merged.servers["b"].server.place.file == str(root / ".mcp.json")


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.write_bytes(b"{"), ":1:1: "),
        (lambda path: path.write_bytes(b'{"mcpServers": {"a": {"comm'), ":1:"),
        (lambda path: path.write_bytes(b"\xff"), "not UTF-8"),
        (lambda path: path.write_bytes(b"[]"), "must be an object"),
        (lambda path: path.write_bytes(b" " * (5 << 20)), "larger than 4 MiB"),
        (lambda path: path.mkdir(), "cannot be read"),
        (make_fifo, "is no regular file"),
        (make_loop, "links"),
    ],
)
def test_broken_file_leaves_the_servers_of_others(
    root: Path, environ: Mapping[str, str], make: Callable[[Path], object], problem: str
) -> None:
    files = find_config_files(root, environ)
    make(root / ".mcp.json")
    write(files.files[1][1], servers("local"))
    write(files.files[3][1], servers("user"))
    merged = files.read()
    assert set(merged.servers) == {"local", "user"}
    (found,) = merged.problems
    assert found.server is None
    assert problem in str(found)
    assert found.place.file == str(root / ".mcp.json")


def test_file_that_may_not_be_read_is_a_problem(
    root: Path, environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(_config_files, "read_snapshot", read)
    (problem, *_) = ConfigFiles(files=(("user", root / "x"),), directory=root).read().problems
    assert str(problem) == f"{root / 'x'}:1:1: the file cannot be read (Permission denied)"


def test_directory_that_is_none_has_no_file(root: Path) -> None:
    files = find_config_files(root, {"HOME": os.devnull, "USERPROFILE": os.devnull})
    assert files.read().problems == ()


def test_link_that_leads_nowhere_is_no_file(root: Path, environ: Mapping[str, str]) -> None:
    (root / ".mcp.json").symlink_to("missing")
    assert find_config_files(root, environ).read().problems == ()


def test_name_that_is_there_twice_is_no_server(root: Path, environ: Mapping[str, str]) -> None:
    text = '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}, "b": {"command": "z"}}}'
    (root / ".mcp.json").write_text(text)
    write(find_config_files(root, environ).files[3][1], servers("a"))
    merged = find_config_files(root, environ).read()
    assert set(merged.servers) == {"b"}  # not the one in the user's file either
    assert "is there a second time" in str(merged.problems[0])


def test_single_file_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    (problem,) = single_config_file(tmp_path / "typo.json").read().problems
    assert str(problem) == f"{tmp_path / 'typo.json'}:1:1: there is no such file"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".vscode/mcp.json", '{"servers": {"a": {"command": "x"}}}'),
        (".codex/config.toml", '[mcp_servers.a]\ncommand = "x"'),
        ("any.json", '{"servers": {"a": {"command": "x"}}, /* c */}'),
    ],
)
def test_single_file_of_any_format_is_read(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    merged = single_config_file(path).read()
    assert [(name, each.scope) for name, each in merged.servers.items()] == [("a", "project")]


# Managed files


def test_managed_file_with_servers_is_the_only_one(
    root: Path, environ: Mapping[str, str], managed: Path
) -> None:
    write(root / ".mcp.json", servers("a"))
    write_managed(managed, servers("m"))
    for files in (find_config_files(root, environ), single_config_file(root / ".mcp.json")):
        merged = files.read()
        assert set(merged.servers) == {"m"}
        assert [each.reason for each in merged.omitted] == ["exclusive"]


def test_managed_file_with_lists_is_a_policy(
    root: Path, environ: Mapping[str, str], managed: Path
) -> None:
    write(root / ".mcp.json", servers("a", "b", "c"))
    write_managed(
        managed,
        {
            "allowedMcpServers": [{"serverName": "a"}, {"serverName": "b"}],
            "deniedMcpServers": [{"serverName": "b"}],
        },
    )
    merged = find_config_files(root, environ).read()
    assert set(merged.servers) == {"a"}
    assert merged.policy is not None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b"\n", "the file is empty"),
        (b"{", ":1:1: this object"),
        (b"\xff", "not UTF-8"),
        (b"[]", "must be an object"),
        (b'{"mcpServers": 1}', "must be an object"),
        (b'{"deniedMcpServers": [{}]}', "must be an object with one of"),
    ],
)
def test_managed_file_that_cannot_be_read_stops_everything(
    root: Path, environ: Mapping[str, str], managed: Path, content: bytes, problem: str
) -> None:
    write(root / ".mcp.json", servers("a"))
    managed.write_bytes(content)
    managed.chmod(0o644)
    with pytest.raises(InvalidConfig, match=problem):
        find_config_files(root, environ).read()


def test_managed_file_that_is_a_directory_stops_everything(
    root: Path, environ: Mapping[str, str], managed: Path
) -> None:
    managed.mkdir()
    with pytest.raises(InvalidConfig, match="cannot be read"):
        find_config_files(root, environ).read()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
@pytest.mark.parametrize("part", ["file", "directory"])
@pytest.mark.parametrize("bits", [0o002, 0o020])
def test_managed_file_that_users_may_write_is_refused(
    root: Path,
    environ: Mapping[str, str],
    managed: Path,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
    bits: int,
) -> None:
    """Otherwise any user could change the administrator's rules for all others."""
    write_managed(managed, servers("m"))
    changed = managed if part == "file" else managed.parent
    changed.chmod(changed.stat().st_mode | bits)
    monkeypatch.setattr("mcp_trio.host._owners._is_private_group", lambda *_: False)
    with pytest.raises(InvalidConfig) as raised:
        find_config_files(root, environ).read()
    assert f"the file is refused: other users may write to {changed}; run `chmod go-w" in str(
        raised.value
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_managed_file_of_another_user_is_refused(
    root: Path, environ: Mapping[str, str], managed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_managed(managed, servers("m"))
    monkeypatch.setattr(_config_files, "_ADMINISTRATORS", {managed.stat().st_uid + 1})
    with pytest.raises(InvalidConfig, match="belongs to another user"):
        find_config_files(root, environ).read()


def test_managed_file_is_not_that_of_the_environment() -> None:
    assert _config_files._MANAGED_FILE.is_absolute()


# Size, and other programs


@pytest.mark.perf
def test_ten_thousand_servers_are_read_in_seconds(root: Path, environ: Mapping[str, str]) -> None:
    names = [f"server-{number}" for number in range(10_000)]
    value = {
        "mcpServers": {
            name: {"command": "npx", "args": ["-y", name], "env": {"TOKEN": "${TOKEN:-}"}}
            for name in names
        }
    }
    write(root / ".mcp.json", value)
    began = time.process_time()
    merged = find_config_files(root, environ).read()
    took = time.process_time() - began
    assert len(merged.servers) == 10_000
    assert merged.problems == ()
    assert took < 15


def test_file_that_is_replaced_meanwhile_is_read_whole(
    root: Path, environ: Mapping[str, str]
) -> None:
    """A rename is atomic, so each read sees one of the two contents and never a problem."""
    path = write(root / ".mcp.json", servers("a", command="x" * 100_000))
    contents = [path.read_bytes(), json.dumps(servers("b", "c", command="y")).encode()]
    stop = threading.Event()

    def replace() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            replace_file(read_snapshot(path), contents[number % 2], private=True)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(50):
            merged = find_config_files(root, environ).read()
            assert set(merged.servers) in ({"a"}, {"b", "c"})
            assert merged.problems == ()
    finally:
        stop.set()
        writer.join()


def test_file_that_is_written_in_place_is_read_or_a_problem(
    root: Path, environ: Mapping[str, str]
) -> None:
    """An editor may write in steps: half a file must not look like a valid, shorter one."""
    path = write(root / ".mcp.json", servers("a"))
    content = json.dumps(servers("a", command="x" * 100_000)).encode()
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            with path.open("wb", buffering=0) as file:
                for start in range(0, len(content), 10_000):
                    file.write(content[start : start + 10_000])

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(50):
            merged = find_config_files(root, environ).read()
            is_whole = set(merged.servers) == {"a"}
            # An empty file has no servers, and so has one whose writer has just begun.
            assert is_whole or not merged.servers
            assert not (is_whole and merged.problems)
    finally:
        stop.set()
        writer.join()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no permission bits")
def test_named_file_that_others_may_write_is_read_unless_only_safe_ones_are_wanted(
    root: Path, environ: Mapping[str, str]
) -> None:
    file = write(root / ".mcp.json", servers("one"))
    file.chmod(0o666)
    files = ConfigFiles(files=(("project", file),), directory=root, environ=environ)
    assert set(files.read().servers) == {"one"}
    found = replace(files, only_safe=True).read()
    assert found.servers == {}
    assert "the file is refused: other users may write to" in found.problems[0].problem


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no permission bits")
def test_directory_that_others_may_write_to_is_no_problem_without_a_file(
    root: Path, environ: Mapping[str, str]
) -> None:
    root.chmod(0o777)
    found = find_config_files(root, environ).read()
    assert (found.servers, found.problems) == ({}, ())
    write(root / ".mcp.json", servers("one"))
    assert "the file is refused" in find_config_files(root, environ).read().problems[0].problem
