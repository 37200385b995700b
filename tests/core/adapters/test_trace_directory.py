"""The traces of the servers of a host: a file for each, under any name of a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_core.adapters import CannotRecord, Recording, TraceDirectory


def path_of(directory: TraceDirectory, server: str) -> Path:
    return Path(directory.recording(server).path)


@pytest.mark.parametrize(
    ("server", "name"),
    [
        ("git", "git.mcp.jsonl"),
        ("My notes", "My%20notes.mcp.jsonl"),
        ("../../etc/passwd", "..%2F..%2Fetc%2Fpasswd.mcp.jsonl"),
        ("..", "...mcp.jsonl"),
        ("", ".mcp.jsonl"),
        ("a\\b\0", "a%5Cb%00.mcp.jsonl"),
        ("\ud800", "%ED%A0%80.mcp.jsonl"),
    ],
)
def test_file_of_a_server_is_in_the_directory(tmp_path: Path, server: str, name: str) -> None:
    path = path_of(TraceDirectory(tmp_path / "traces"), server)
    assert path == tmp_path / "traces" / name
    path.write_text("x", "utf-8")  # the system takes the name


def test_long_names_have_files_of_their_own(tmp_path: Path) -> None:
    directory = TraceDirectory(tmp_path)
    paths = {path_of(directory, "x" * 5_000 + end) for end in "ab"}
    assert len(paths) == 2
    for path in paths:
        path.write_text("x", "utf-8")


def test_trace_of_the_last_connection_is_kept(tmp_path: Path) -> None:
    directory = TraceDirectory(str(tmp_path))
    for number in range(3):
        path_of(directory, "git").write_text(f"{number}", "utf-8")
    files = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert files == {"git.mcp.jsonl": "2", "git.mcp.jsonl.previous": "1"}


def test_options_hold_for_each_file(tmp_path: Path) -> None:
    recording = Recording(path=tmp_path, redact=("/params/x",), file_limit=5)
    found = TraceDirectory(recording).recording("git")
    assert (found.redact, found.file_limit) == (("/params/x",), 5)


def test_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    for place, reason in [("file", "file exists"), ("no/such", "no such file or directory")]:
        with pytest.raises(CannotRecord, match=f"cannot record in .*{place}: {reason}"):
            TraceDirectory(tmp_path / place).recording("git")
