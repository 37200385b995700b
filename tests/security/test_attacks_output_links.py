"""Symbolic links in the places of files that commands write: their targets stay as they are."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_core.adapters import CannotRecord, TraceDirectory
from mcp_core.adapters._recorder import _open
from mcp_core.trace import TraceLine
from mcp_trio import _files
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli.oracle._check import check
from mcp_trio.cli.oracle.fuzz._run import run_shown
from mcp_trio.cli.use._output import FileContent, write_files
from mcp_trio.oracle.fuzz._shared_trace import new_header
from tests.trio_.oracle.fuzz.test_report import SOLID, found, written

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file of the user, which nothing may change."""
    path = tmp_path / "home" / ".bashrc"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    return path


@pytest.fixture(params=["link", "dangling link", "hard link"])
def planted(request: pytest.FixtureRequest, target: Path) -> Callable[[Path], None]:
    """Return a function that plants a link to the file."""

    def plant(path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        if request.param == "hard link":
            path.hardlink_to(target)
        elif request.param == "link":
            path.symlink_to(target)
        else:
            path.symlink_to(target.with_name("new"))

    return plant


def is_untouched(target: Path) -> bool:
    names = [each.name for each in target.parent.iterdir()]
    return target.read_bytes() == b"mine" and names == [target.name]


@pytest.mark.parametrize("name", ["report.json", "test_findings.py", "1-RPC-7.mcp.jsonl"])
def test_fuzzer_replaces_a_link_in_its_folder(
    tmp_path: Path, target: Path, planted: Callable[[Path], None], name: str
) -> None:
    folder = tmp_path / "mcp-fuzz"
    planted(folder / name)
    header = new_header("client", "stdio", "x")
    finding = found(SOLID, header=header, lines=[TraceLine(t=0.0, kind="note", text="x")])
    assert name in written(folder, finding)
    path = folder / name
    assert not path.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() != b"mine"
    assert is_untouched(target)


def test_fuzzer_without_findings_removes_a_link_in_its_folder_only(
    tmp_path: Path, target: Path, planted: Callable[[Path], None]
) -> None:
    folder = tmp_path / "mcp-fuzz"
    planted(folder / "test_findings.py")
    planted(folder / "1-old.mcp.jsonl")
    written(folder)
    assert [path.name for path in folder.iterdir()] == ["report.json"]
    assert is_untouched(target)


async def test_fuzzer_writes_into_no_folder_that_is_a_link(tmp_path: Path, target: Path) -> None:
    """Its user hears that before the run, too."""
    folder = tmp_path / "mcp-fuzz"
    folder.symlink_to(target.parent)
    with pytest.raises(OSError, match="is a symbolic link: remove it"):
        written(folder)
    with pytest.raises(CliError, match="mcp-fuzz: is a symbolic link: remove it"):
        await run_shown(None, None, folder)  # type: ignore[arg-type]
    assert is_untouched(target)


def test_named_output_is_not_written_through_a_link(
    tmp_path: Path, target: Path, planted: Callable[[Path], None]
) -> None:
    """As by `fuzz --junit` and `check --junit`."""
    path = tmp_path / "out" / "fuzz.xml"
    planted(path)
    if path.is_symlink():
        with pytest.raises(OSError, match="is a symbolic link: remove it, or name the file"):
            _files.write_output(path, b"report")
    else:
        _files.write_output(path, b"report")
        assert path.read_bytes() == b"report"
    assert is_untouched(target)


def test_named_output_keeps_its_mode_and_reaches_pipes(tmp_path: Path) -> None:
    path = tmp_path / "fuzz.xml"
    path.touch()
    path.chmod(0o640)
    _files.write_output(path, b"report")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"report", 0o640)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        _files.write_output(tmp_path / "link", b"report")
        assert os.read(reader, 100) == b"report"
    finally:
        os.close(reader)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fuzz.xml", "link", "pipe"]


def test_check_writes_its_junit_report_through_no_link(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_trio.cli.oracle._check.fill_report", lambda path, report: None)
    (tmp_path / "out.xml").symlink_to(target)
    with pytest.raises(CliError, match="is a symbolic link"):
        check(str(tmp_path / "trace"), junit=str(tmp_path / "out.xml"))
    assert is_untouched(target)


@pytest.mark.parametrize("name", ["link", "dangling"])
def test_trace_is_recorded_through_no_link(tmp_path: Path, target: Path, name: str) -> None:
    """As by `--record FILE` and by `Host(record=)`, whose names come from configuration files."""
    path = tmp_path / "traces" / "git.mcp.jsonl"
    path.parent.mkdir()
    path.symlink_to(target if name == "link" else target.with_name("new"))
    with pytest.raises(CannotRecord, match="it is a symbolic link: remove it, or name the file"):
        _open(path)
    recording = TraceDirectory(path.parent).recording("git")
    try:
        os.close(_open(recording.path))  # the link to a file was renamed
    except CannotRecord:
        assert name == "dangling"
    assert is_untouched(target)


def test_trace_reaches_a_pipe_through_a_link(tmp_path: Path) -> None:
    """Such as /dev/stderr."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.close(_open(tmp_path / "link"))
    finally:
        os.close(reader)


@pytest.mark.parametrize("count", [1, 2])
def test_output_of_a_call_replaces_a_link_whose_name_the_user_did_not_choose(
    tmp_path: Path,
    target: Path,
    planted: Callable[[Path], None],
    count: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "out"
    path = folder / ("shot.png" if count == 1 else "shot-1.png")
    planted(path)
    contents = [FileContent(b"server", "image/png")] * count
    write_files(folder, contents, "shot", Screen(sys.stderr))
    assert path.read_bytes() == b"server"
    assert not path.is_symlink()
    assert is_untouched(target)


def test_failed_write_leaves_the_old_file_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mcp-fuzz"
    written(folder, found(SOLID))
    before = (folder / "report.json").read_bytes()

    def fail(*_: object) -> Path:
        raise OSError(28, "No space left on device", "temporary")

    monkeypatch.setattr(_files, "write_beside", fail)
    with pytest.raises(OSError, match="No space left") as raised:
        _files.replace_output(folder / "report.json", b"")
    assert raised.value.filename == str(folder / "report.json")
    assert (folder / "report.json").read_bytes() == before
