"""The files of `--output`. `test_call.py` and `test_read.py` play the command."""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import RemoteProtocolError
from mcp_core import types as t
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli.use._output import (
    FileContent,
    bytes_of_contents,
    file_content,
    write_file,
    write_files,
)

if TYPE_CHECKING:
    from pathlib import Path

PNG = FileContent(b"a", "image/png")
SOUND = FileContent(b"bc", "audio/wav")
ODD = FileContent(b"", "no/such-type")


@pytest.mark.parametrize(
    ("output", "contents", "names"),
    [
        ("it.png", [PNG], ["it.png"]),
        ("it.png", [PNG, PNG], ["it-1.png", "it-2.png"]),
        ("it.png", [PNG, SOUND, ODD], ["it-1.png", "it-2.png", "it-3.png"]),
        ("it", [PNG, SOUND], ["it-1", "it-2"]),
        ("in", [PNG], ["in/a_tool.png"]),
        ("in", [PNG, SOUND], ["in/a_tool-1.png", "in/a_tool-2.wav"]),
        ("in", [ODD], ["in/a_tool.bin"]),
        ("in", [FileContent(b"", None)], ["in/a_tool.bin"]),
    ],
)
def test_each_content_gets_a_file_of_its_own(
    output: str, contents: list[FileContent], names: list[str], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    write_files(tmp_path / output, contents, "a/tool", Screen(None))
    found = {
        path.relative_to(tmp_path).as_posix(): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert found == dict(zip(names, [each.data for each in contents], strict=True))


@pytest.mark.parametrize(("stem", "name"), [(".profile", "_profile.png"), ("../x y", "_._x_y.png")])
def test_name_of_a_tool_names_no_hidden_file_or_other_directory(
    stem: str, name: str, tmp_path: Path
) -> None:
    write_files(tmp_path, [PNG], stem, Screen(None))
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("count", [1, 2])
def test_link_is_followed_only_if_the_user_named_it(count: int, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"kept")
    link = tmp_path / ("it.png" if count == 1 else "it-2.png")
    link.symlink_to(target)
    write_files(tmp_path / "it.png", [PNG] * count, "tool", Screen(None))
    assert link.is_symlink() is (count == 1)
    assert target.read_bytes() == (b"a" if count == 1 else b"kept")
    assert link.read_bytes() == b"a"


def test_link_is_followed_by_default(tmp_path: Path) -> None:
    target = tmp_path / "target"
    link = tmp_path / "link"
    target.touch()
    link.symlink_to(target)
    write_file(link, b"a")
    assert (link.is_symlink(), target.read_bytes()) == (True, b"a")


def test_file_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"before")
    path.chmod(0o640)
    write_file(path, b"after")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"after", 0o640)


def test_file_that_cannot_be_replaced_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"before")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", fail)
    with pytest.raises(CliError, match="cannot be written: No space left on device"):
        write_file(path, b"after")
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"before"]


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (t.TextContent(text="a"), None),
        (t.ImageContent(data="AAAA", mime_type="x/y"), FileContent(b"\0\0\0", "x/y")),
        (t.AudioContent(data="AA==", mime_type="x/y"), FileContent(b"\0", "x/y")),
        (
            t.EmbeddedResource(resource=t.ResourceContents(uri="a:b", text="é")),
            FileContent("é".encode(), "text/plain"),
        ),
        (
            t.EmbeddedResource(resource=t.ResourceContents(uri="a:b", text="", mime_type="x/y")),
            FileContent(b"", "x/y"),
        ),
        (
            t.EmbeddedResource(resource=t.ResourceContents(uri="a:b", blob="AAAA")),
            FileContent(b"\0\0\0", None),
        ),
    ],
)
def test_bytes_of_a_content_have_its_media_type(block: Any, content: FileContent | None) -> None:
    assert file_content(block) == content


@pytest.mark.parametrize(
    ("contents", "data"),
    [
        (t.ResourceContents(uri="a:b", text="a"), b"a"),
        (t.ResourceContents(uri="a:b", text=""), b""),
        (t.ResourceContents(uri="a:b", blob="AAAA"), b"\0\0\0"),
    ],
)
def test_bytes_of_a_resource_are_its_blob_or_text(contents: Any, data: bytes) -> None:
    assert bytes_of_contents(contents) == data


@pytest.mark.parametrize("base64", ["A", "AA?A", "AA\nAA"])
def test_bytes_that_are_not_base64_break_the_protocol(base64: str) -> None:
    with pytest.raises(RemoteProtocolError, match="the image is not base64"):
        file_content(t.ImageContent(data=base64, mime_type="x/y"))
    with pytest.raises(RemoteProtocolError, match="the blob of a:b is not base64"):
        bytes_of_contents(t.ResourceContents(uri="a:b", blob=base64))


def test_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write_file(path, b"data")
    reader.join()
    assert (found, stat.S_ISFIFO(path.stat().st_mode)) == ([b"data"], True)


def test_directory_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="cannot be written: Is a directory; give --output another"):
        write_file(tmp_path, b"data")


def test_file_in_a_directory_that_is_missing_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="cannot be written: No such file or directory"):
        write_file(tmp_path / "missing" / "it", b"data")
