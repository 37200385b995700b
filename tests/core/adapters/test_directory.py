"""`DirectoryReader` by itself: its bounds, names and kinds of files.

`tests/drivers/test_directory.py` reads through servers, and has what must stay secret.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcp_core import McpError
from mcp_core._errors import Fault
from mcp_core.adapters import _directory
from mcp_core.adapters._directory import DirectoryReader
from mcp_core.registry import ResourceNotFound

_DIALECT = SimpleNamespace(codes={Fault.INTERNAL: -32603})
CONTEXT: Any = SimpleNamespace(
    params=SimpleNamespace(uri="docs://x/y"), peer=SimpleNamespace(dialect=_DIALECT)
)


@pytest.mark.parametrize(
    ("given", "uri", "template"),
    [
        ("docs://x", "docs://x", "docs://x/{+path}"),
        ("docs://x/", "docs://x", "docs://x/{+path}"),
        ("docs://x//", "docs://x", "docs://x/{+path}"),
        ("docs://", "docs://", "docs://{+path}"),
    ],
)
def test_uri_has_one_slash_before_the_path(
    tmp_path: Path, given: str, uri: str, template: str
) -> None:
    reader = DirectoryReader(tmp_path, given, 9)
    assert (reader.uri, reader.template) == (uri, template)
    assert repr(reader) == f"DirectoryReader({str(tmp_path)!r}, {uri!r})"


def test_name_is_the_last_part_of_the_path_and_the_root_is_called_files(tmp_path: Path) -> None:
    assert DirectoryReader(tmp_path, "docs://x", 9).name == tmp_path.name
    root = DirectoryReader("/", "docs://x", 9)
    assert root.name == "files"
    assert root._parts("/", "/etc/hosts") == ["etc", "hosts"]


@pytest.mark.parametrize(("size", "is_read"), [(999, True), (1000, True), (1001, False)])
def test_file_is_read_up_to_the_limit(tmp_path: Path, size: int, is_read: bool) -> None:
    (tmp_path / "a").write_bytes(b"a" * size)
    reader = DirectoryReader(tmp_path, "docs://x", 1000)
    if is_read:
        assert reader.read("a", CONTEXT).text == "a" * size
        return
    with pytest.raises(McpError) as caught:
        reader.read("a", CONTEXT)
    assert caught.value.code == -32603
    assert "it has more than 1,000 bytes" in str(caught.value)


@pytest.mark.parametrize(("added", "is_read"), [(3, True), (4, False)])
def test_file_that_has_grown_since_it_was_opened_keeps_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, added: int, is_read: bool
) -> None:
    """Its size is known from before the read, which looks for one byte more."""
    path = tmp_path / "a"
    path.write_bytes(b"aaa")
    reader = DirectoryReader(tmp_path, "docs://x", 6)
    read_file = reader._read_file

    def read_grown(*args: Any) -> bytes:
        path.write_bytes(b"a" * (3 + added))
        return read_file(*args)

    monkeypatch.setattr(reader, "_read_file", read_grown)
    if is_read:
        assert reader.read("a", CONTEXT).text == "a" * 6
    else:
        with pytest.raises(McpError, match="too large"):
            reader.read("a", CONTEXT)


@pytest.mark.parametrize(
    ("max_size", "data", "is_text"),
    [
        # The largest blob of 9 bytes has 12, so 60 counts, with the quotes around the text.
        (9, b"a" * 58, True),
        (9, b"a" * 59, False),
        (9, b'"' * 29, True),
        (9, b'"' * 30, False),
        (9, b"\x01" * 9, True),
        (9, b"\x01" * 11, False),
        (90, b"a" * 118, True),
        (90, b"a" * 119, False),
        (9, b"a\0", False),
        (9, b"\xe9", False),
    ],
)
def test_text_is_no_longer_as_json_than_the_largest_blob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_size: int, data: bytes, is_text: bool
) -> None:
    monkeypatch.setattr(_directory, "_MAX_TEXT", 60)
    found = DirectoryReader(tmp_path, "docs://x", max_size)._text_of(data)
    assert found == (data.decode() if is_text else None)


def listing(reader: DirectoryReader, path: str = "") -> Any:
    text = reader.read(path, CONTEXT).text
    assert text is not None
    return json.loads(text)


@pytest.mark.parametrize(
    ("listed", "scanned", "names", "is_complete"),
    [
        (6, 6, 6, True),
        (5, 6, 5, False),
        (6, 5, 5, False),
        (1_000, 100_000, 6, True),
    ],
)
def test_listing_says_whether_it_is_complete(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    listed: int,
    scanned: int,
    names: int,
    is_complete: bool,
) -> None:
    for number in range(6):
        (tmp_path / str(number)).touch()
    monkeypatch.setattr(_directory, "_MAX_LISTED", listed)
    monkeypatch.setattr(_directory, "_MAX_SCANNED", scanned)
    found = listing(DirectoryReader(tmp_path, "docs://x", 9))
    assert len(found["entries"]) == names
    assert found["isComplete"] is is_complete


def test_listing_has_a_thousand_entries_at_most(tmp_path: Path) -> None:
    for number in range(1_001):
        (tmp_path / str(number)).touch()
    found = listing(DirectoryReader(tmp_path, "docs://x", 9))
    assert (len(found["entries"]), found["isComplete"]) == (1_000, False)


def test_listing_below_the_root_has_whole_uris_and_only_known_types(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "c.unknown").write_text("12")
    (tmp_path / "a" / "d.tar.gz").write_text("1")
    for path in "a", "a/":
        assert listing(DirectoryReader(tmp_path, "docs://x", 9), path)["entries"] == [
            {"uri": "docs://x/a/b", "name": "b", "mimeType": "inode/directory"},
            {"uri": "docs://x/a/c.unknown", "name": "c.unknown", "size": 2},
            {"uri": "docs://x/a/d.tar.gz", "name": "d.tar.gz", "size": 1},
        ]


def test_completion_has_the_first_hundred_paths(tmp_path: Path) -> None:
    """More than that a client doesn't take (server/utilities/completion)."""
    for number in range(102):
        (tmp_path / f"{number:03}").touch()
    found = DirectoryReader(tmp_path, "docs://x", 9).complete("")
    assert found == [f"{number:03}" for number in range(100)]


@pytest.mark.parametrize("kind", ["fifo", "swapped"])
def test_fifo_in_place_of_what_was_checked_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The root itself becomes one, or a file does between its check and its opening."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "a").write_text("a")
    (tmp_path / "current").symlink_to("release")
    reader = DirectoryReader(tmp_path / "current", "docs://x", 9)
    path = "a" if kind == "swapped" else ""
    if kind == "fifo":
        (tmp_path / "current").unlink()
        (tmp_path / "current").symlink_to("fifo")
    else:
        real_open = os.open

        def open_fifo(name: Any, flags: int, **options: Any) -> int:
            if name == "a":
                return real_open(tmp_path / "fifo", flags)
            return real_open(name, flags, **options)

        monkeypatch.setattr(os, "open", open_fifo)
    with pytest.raises(ResourceNotFound):
        reader.read(path, CONTEXT)


def open_below(directory: Path) -> list[str]:
    """Return the files and directories below `directory` of which a descriptor is open."""
    found = []
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor of the listing itself
            found.append(str(path.readlink()))
    return [each for each in found if each.startswith(str(directory))]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="it lists open descriptors")
def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    """Neither after success nor after a refusal at any part of the path."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_text("c")
    os.mkfifo(tmp_path / "a" / "fifo")
    reader = DirectoryReader(tmp_path, "docs://x", 9)
    with (tmp_path / "a" / "b" / "c").open():
        assert open_below(tmp_path) == [str(tmp_path / "a" / "b" / "c")]
    assert reader.read("a/b/c", CONTEXT).text == "c"
    assert listing(reader, "a/b")["isComplete"]
    assert reader.complete("a/") == ["a/b/"]
    for path in "a/b/c/", "a/fifo", "a/nothing", "a/b/c/d":
        with pytest.raises(ResourceNotFound):
            reader.read(path, CONTEXT)
    assert open_below(tmp_path) == []
