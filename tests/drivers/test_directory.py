"""`Server.add_directory`: files and lists, and what isn't served."""

from __future__ import annotations

import base64
import json
import ntpath
import os
import socket
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from mcp_core import PeerError
from mcp_core.adapters import _directory
from mcp_core.registry import DeclarationError, ResourceNotFound, Server
from tests.harness import either
from tests.harness.wire.lines import ERAS

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("each_driver")

SECRET = "outside"


@pytest.fixture(params=["descriptors", "paths"])
def _each_kind_of_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows opens no directories."""
    if request.param == "paths":
        monkeypatch.setattr(_directory, "_HAS_DESCRIPTORS", False)


@pytest.fixture
def manual(tmp_path: Path) -> Iterator[Path]:
    """A directory with one of everything, beside one that must stay secret."""
    root = tmp_path / "manual"
    (root / "guide").mkdir(parents=True)
    (root / "guide" / "intro.md").write_text("# Intro")
    (root / "guide" / "50 % off? #1.txt").write_text("odd")
    (root / "guide" / "é%41.txt").write_text("é")
    (root / "a.txt").write_text("a")
    (root / "b.bin").write_bytes(b"\0\1")
    (root / "latin.txt").write_bytes(b"\xe9")
    (root / "c.tar.gz").write_bytes(b"\x1f\x8b\xff")
    (root / ".env").write_text(SECRET)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(SECRET)
    (root / "line\nbreak").write_text(SECRET)
    (root / "C:x").write_text(SECRET)
    (root / os.fsdecode(b"\xff.txt")).write_text(SECRET)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text(SECRET)
    (tmp_path / "manual2").mkdir()
    (tmp_path / "manual2" / "x.txt").write_text(SECRET)
    for name, target in {
        "inside": "guide",
        "intro": "guide/intro.md",
        "absolute": str(root / "a.txt"),
        "up": "..",
        "out": "../secret",
        "key": "../secret/key.txt",
        "sibling": "../manual2",
        "dot": ".env",
        "loop": "loop",
        "nowhere": "nothing",
        ".hidden": "a.txt",
    }.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        os.chdir(root)  # the path of a socket is short
        try:
            listener.bind("socket")
        finally:
            os.chdir(before)
        yield root


def serving(path: Any, **options: Any) -> Server:
    server = Server("s")
    server.add_directory(path, "docs://manual", **options)
    return server


async def contents(client: Any, path: str) -> Any:
    (found,) = (await client.read_resource(f"docs://manual{path}")).contents
    assert found.uri == f"docs://manual{path}"
    return found


@pytest.mark.parametrize("version", ERAS)
async def test_directory_is_a_resource_and_a_template(manual: Path, version: str) -> None:
    """However many files it has."""
    server = serving(manual, title="The manual")
    async with either.connect(server, versions=[version]) as client:
        (resource,) = await client.list_resources()
        assert (resource.uri, resource.name, resource.title, resource.mime_type) == (
            "docs://manual",
            "manual",
            "The manual",
            "application/json",
        )
        (template,) = await client.list_resource_templates()
        assert (template.uri_template, template.name) == ("docs://manual/{+path}", "manual files")


@pytest.mark.usefixtures("_each_kind_of_system")
@pytest.mark.parametrize(
    ("path", "mime_type", "text", "blob"),
    [
        ("/a.txt", "text/plain", "a", None),
        ("/guide/intro.md", "text/markdown", "# Intro", None),
        ("/guide/50%20%25%20off%3F%20%231.txt", "text/plain", "odd", None),
        ("/guide/%C3%A9%2541.txt", "text/plain", "é", None),
        ("/b.bin", "application/octet-stream", None, "AAE="),
        ("/latin.txt", "text/plain", None, "6Q=="),
        ("/c.tar.gz", "application/octet-stream", None, "H4v/"),
        ("/inside/intro.md", "text/markdown", "# Intro", None),
        ("/intro", "text/markdown", "# Intro", None),
        ("/absolute", "text/plain", "a", None),
    ],
)
async def test_file_is_read(
    manual: Path, path: str, mime_type: str, text: str | None, blob: str | None
) -> None:
    async with either.connect(serving(manual)) as client:
        found = await contents(client, path)
    assert (found.mime_type, found.text, found.blob) == (mime_type, text, blob)


@pytest.mark.usefixtures("_each_kind_of_system")
async def test_lists_have_what_can_be_read_and_nothing_else(manual: Path) -> None:
    """Each URI of a list can be read."""
    async with either.connect(serving(manual)) as client:
        root = json.loads((await contents(client, "")).text)
        assert [entry["name"] for entry in root["entries"]] == [
            *("a.txt", "absolute", "b.bin", "c.tar.gz", "guide", "inside", "intro", "latin.txt")
        ]
        assert root["isComplete"]
        assert {"uri": "docs://manual/guide", "name": "guide", "mimeType": "inode/directory"} in (
            root["entries"]
        )
        assert root["entries"][0] == {
            "uri": "docs://manual/a.txt",
            "name": "a.txt",
            "mimeType": "text/plain",
            "size": 1,
        }
        guide = json.loads((await contents(client, "/guide")).text)["entries"]
        assert [entry["name"] for entry in guide] == ["50 % off? #1.txt", "intro.md", "é%41.txt"]
        for entry in guide:
            assert (await client.read_resource(entry["uri"])).contents[0].text


UNSERVED = """
    nothing a.txt/x guide/nothing .env .git .git/config .hidden dot out out/key.txt key up
    up/secret/key.txt sibling sibling/x.txt loop nowhere fifo socket ../secret/key.txt
    guide/../../secret/key.txt %2e%2e/secret/key.txt guide/%2E%2E/a.txt /etc/passwd //etc/passwd
    a.txt/ intro/ b.bin/ guide//intro.md guide// guide/./intro.md
    ..%2Fsecret%2Fkey.txt ..%5Csecret C:x line%0Abreak %00 a.txt%00 %FF.txt %ED%B3%BF.txt
""".split()


@pytest.mark.usefixtures("_each_kind_of_system")
@pytest.mark.parametrize("path", [*UNSERVED, "x" * 300, "x/" * 3000])
async def test_path_outside_or_to_no_file_does_not_exist(manual: Path, path: str) -> None:
    async with either.connect(serving(manual)) as client:
        with pytest.raises(PeerError, match="Resource not found") as refused:
            await client.read_resource(f"docs://manual/{path}")
        assert SECRET not in str(refused.value)


async def test_link_that_appears_after_the_check_is_not_followed(
    manual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the path and the file itself are swapped between check and opening."""
    real = os.path.realpath

    def swap(path: str, **options: Any) -> str:
        found = real(path, **options)
        if found.endswith("intro.md") and not (manual / "guide").is_symlink():
            (manual / "guide").rename(manual / "moved")
            (manual / "guide").symlink_to("../secret")
            (manual.parent / "secret" / "intro.md").write_text(SECRET)
        if found.endswith("a.txt") and not (manual / "a.txt").is_symlink():
            (manual / "a.txt").unlink()
            (manual / "a.txt").symlink_to("../secret/key.txt")
        return found

    async with either.connect(serving(manual)) as client:
        monkeypatch.setattr(os.path, "realpath", swap)
        for path in "guide/intro.md", "a.txt":
            with pytest.raises(PeerError, match="Resource not found"):
                await client.read_resource(f"docs://manual/{path}")
    assert (manual / "guide").is_symlink()
    assert (manual / "a.txt").is_symlink()


async def test_large_file_is_an_error_that_says_so(manual: Path) -> None:
    async with either.connect(serving(manual, max_size=6)) as client:
        with pytest.raises(PeerError, match="the file is too large: it has more than 6 bytes"):
            await client.read_resource("docs://manual/guide/intro.md")
        assert (await contents(client, "/a.txt")).text == "a"


async def test_directory_with_a_slash_at_its_end_is_listed(manual: Path) -> None:
    """As completions write it."""
    async with either.connect(serving(manual)) as client:
        with_slash, plain = await contents(client, "/guide/"), await contents(client, "/guide")
    assert with_slash.text == plain.text


@pytest.mark.parametrize(("fill", "is_text"), [(b"\x01", False), (b'"', False), (b"a", True)])
async def test_text_that_json_writes_longer_than_a_blob_is_a_blob(
    manual: Path, monkeypatch: pytest.MonkeyPatch, fill: bytes, is_text: bool
) -> None:
    """So that no file takes more than the largest one. Small ones stay text."""
    monkeypatch.setattr(_directory, "_MAX_TEXT", 60)
    (manual / "most.txt").write_bytes(fill * 90)
    (manual / "few.txt").write_bytes(fill * 9)
    async with either.connect(serving(manual, max_size=90)) as client:
        most = await contents(client, "/most.txt")
        assert (most.text is not None) is is_text
        assert is_text or base64.b64decode(most.blob) == fill * 90
        assert (await contents(client, "/few.txt")).text == fill.decode() * 9


# By the part of a URI: names that Windows takes for another place, stream or device, or another
# spelling of the same name.
FOREIGN = r"""
    \\evil\share\f \\?\UNC\evil\s \Windows C:\Windows C: C:x a.txt:stream a.txt::$DATA a.txt.
    a.txt... a\b CON nul.txt Com1 lpt9.tar.gz com¹ conout$ AUX.
""".split()


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Force the rules of Windows. Return the paths that its system would be asked for."""
    asked: list[str] = []

    def realpath(path: str, **options: Any) -> str:
        asked.append(path)
        return os.path.realpath(path.replace("\\", "/"), **options)

    module, paths = ModuleType("os"), ModuleType("path")
    vars(paths).update(vars(os.path), join=ntpath.join, realpath=realpath)
    vars(module).update(vars(os), path=paths)
    monkeypatch.setattr(_directory, "os", module)
    monkeypatch.setattr(_directory, "_WINDOWS", True)
    monkeypatch.setattr(_directory, "_HAS_DESCRIPTORS", False)
    return asked


@pytest.mark.parametrize("form", ["{}", "guide/{}", "{}/x", "guide/{}/x"])
async def test_foreign_name_never_reaches_windows(
    manual: Path, windows: list[str], form: str
) -> None:
    """Resolving a UNC path would log in to the host that it names."""
    reader = _directory.DirectoryReader(manual, "docs://manual", 9)
    async with either.connect(serving(manual)) as client:
        for name in (*FOREIGN, "a.txt ", "nul .txt"):
            place = form.format(name)
            with pytest.raises(PeerError, match="Resource not found"):
                await client.read_resource(f"docs://manual/{quote(place)}")
            with pytest.raises(ResourceNotFound), reader._opened(place):
                raise AssertionError(place)
            found = await client.complete("docs://manual/{+path}", "path", place)
            assert found.values == []
    asked = {path.rstrip("\\") for path in windows}
    assert asked <= {str(manual), ntpath.join(manual, "guide")}


async def test_name_that_only_looks_foreign_is_read_on_windows(
    manual: Path, windows: list[str]
) -> None:
    async with either.connect(serving(manual)) as client:
        for name in ("console.txt", "common", "com10", "a.nul", "lpt", "a b", "a..b"):
            (manual / "guide" / name).write_text(name)
            assert (await contents(client, f"/guide/{quote(name)}")).text == name
    assert windows


@pytest.mark.usefixtures("_each_kind_of_system")
async def test_large_directory_is_listed_in_part(
    manual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first names in order; and of very many, those that were looked at."""
    monkeypatch.setattr(_directory, "_MAX_LISTED", 10)
    many = manual / "many"
    many.mkdir()
    for number in reversed(range(30)):
        (many / f"{number:02}").touch()
    async with either.connect(serving(manual)) as client:
        found = json.loads((await contents(client, "/many")).text)
        assert [entry["name"] for entry in found["entries"]] == [f"{n:02}" for n in range(10)]
        assert not found["isComplete"]
        monkeypatch.setattr(_directory, "_MAX_SCANNED", 5)
        found = json.loads((await contents(client, "/many")).text)
        assert len(found["entries"]) == 5
        assert not found["isComplete"]


@pytest.mark.usefixtures("_each_kind_of_system")
@pytest.mark.parametrize(
    ("typed", "values"),
    [
        ("", ["a.txt", "absolute", "b.bin", "c.tar.gz", "guide/", "inside/", "intro", "latin.txt"]),
        ("gu", ["guide/"]),
        ("guide/i", ["guide/intro.md"]),
        ("guide/5", ["guide/50 % off? #1.txt"]),
        ("out/", []),
        ("..", []),
        ("../", []),
        (".", []),
        ("a.txt/", []),
        ("/", []),
        ("/gu", []),
        ("guide//i", []),
        ("nothing/x", []),
        ("\0", []),
        ("\0/x", []),
    ],
)
async def test_completion_has_the_paths_that_begin_so(
    manual: Path, typed: str, values: list[str]
) -> None:
    async with either.connect(serving(manual)) as client:
        found = await client.complete("docs://manual/{+path}", "path", typed)
        assert found.values == values


async def test_root_may_be_a_link_that_changes(manual: Path, tmp_path: Path) -> None:
    """As a deployment switches from one release to the next."""
    current = tmp_path / "current"
    current.symlink_to("manual")
    async with either.connect(serving(current)) as client:
        assert (await contents(client, "/a.txt")).text == "a"
        current.unlink()
        current.symlink_to("manual2")
        assert (await contents(client, "/x.txt")).text == SECRET
        current.unlink()
        for path in "", "/x.txt":
            with pytest.raises(PeerError, match="Resource not found"):
                await client.read_resource(f"docs://manual{path}")


async def test_directory_of_a_mounted_server_is_read_through_the_outer_one(manual: Path) -> None:
    """By its own URI, with its completions and its refusals."""
    outer = Server("outer")
    outer.mount(serving(manual), "inner")
    async with either.connect(outer) as client:
        assert (await contents(client, "/guide/intro.md")).text == "# Intro"
        found = await client.complete("docs://manual/{+path}", "path", "gu")
        assert found.values == ["guide/"]
        with pytest.raises(PeerError, match="Resource not found"):
            await client.read_resource("docs://manual/key")


async def test_error_of_the_server_is_not_a_missing_file(
    manual: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with either.connect(serving(manual)) as client:
        monkeypatch.setattr(os, "open", _fail)
        with pytest.raises(PeerError, match="Internal error"):
            await client.read_resource("docs://manual/a.txt")
    assert "Too many open files" in caplog.text
    caplog.clear()


def _fail(*args: Any, **options: Any) -> int:
    raise OSError(24, "Too many open files")


@pytest.mark.parametrize(
    ("path", "uri", "text"),
    [
        ("nothing", "docs://x", "nothing' is not a directory"),
        ("a.txt", "docs://x", "a.txt' is not a directory"),
        ("guide", "docs://{x}", "no expression, query or fragment"),
        ("guide", "docs://x?y", "no expression, query or fragment"),
        ("guide", "no uri", "no uri"),
    ],
)
def test_wrong_directory_is_refused_where_it_is_declared(
    manual: Path, path: str, uri: str, text: str
) -> None:
    """Nothing is declared then. One that was removed may be declared again."""
    server = Server("s")
    with pytest.raises(DeclarationError, match=text):
        server.add_directory(manual / path, uri)
    with pytest.raises(DeclarationError, match="a string or a Path, not b'"):
        server.add_directory(os.fsencode(manual), "docs://x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="recursive"):
        server.add_directory(manual, "docs://x", recursive=True)  # type: ignore[call-arg]
    server.add_resource("docs://x/{+path}", lambda path: path, name="taken")
    with pytest.raises(DeclarationError, match="already"):
        server.add_directory(manual, "docs://x")
    server.add_directory(manual, "docs://y/")
    server.remove_resource("docs://y")
    server.remove_resource("docs://y/{+path}")
    server.add_directory(manual, "docs://y")
