"""`examples/files.py`: what its tools read, with roots of every kind, on both drivers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from examples.files import make_server, narrow
from mcp_core.registry import RootsContext
from mcp_core.types import Root
from tests.harness import either

pytestmark = pytest.mark.usefixtures("each_driver", "waits_for_threads")
every_era = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A directory that the operator allows, `open`, beside a closed one."""
    for name in "open/a/deep", "open/b", "closed":
        (tmp_path / name).mkdir(parents=True)
    for name in "open/a/x.txt", "open/b/y.txt", "closed/z.txt":
        (tmp_path / name).write_text(name)
    (tmp_path / "open" / "a" / "link").symlink_to(tmp_path / "closed" / "z.txt")
    (tmp_path / "open" / "a" / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "open" / "a" / "pipe")
    (tmp_path / "open" / "a" / os.fsdecode(b"odd\xff")).touch()
    return tmp_path


async def read(client: Any, path: str) -> str | None:
    """Return the text of a file, or None if the server refuses it."""
    result = await client.call_tool("read_file", {"path": path})
    return None if result.is_error else result.text


@every_era
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("x.txt", "open/a/x.txt"),
        ("deep/../x.txt", "open/a/x.txt"),
        ("../a/x.txt", "open/a/x.txt"),
        ("../b/y.txt", None),
        ("../../closed/z.txt", None),
        ("link", None),
        ("loop", None),
        ("pipe", None),
        ("deep", None),
        ("missing", None),
        ("x\0.txt", None),
        ("x" * 5_000, None),
        ("/etc/hostname", None),
    ],
)
async def test_files_example_reads_inside_of_root_only(
    path: str, text: str | None, version: str, base: Path
) -> None:
    server = make_server([base / "open"])
    roots = [base / "open" / "a"]
    async with either.connect(server, on_roots=roots, versions=[version]) as client:
        assert await read(client, path) == text


@every_era
async def test_files_example_lists_names_that_can_be_sent(version: str, base: Path) -> None:
    server = make_server([base / "open"])
    async with either.connect(server, versions=[version]) as client:
        listed = await client.call_tool("list_directory", {"path": "a"}, returns=list[str])
        assert listed.data == ["deep/", "link", "loop", "pipe", "x.txt"]


@every_era
async def test_files_example_without_roots_allows_what_operator_does(
    version: str, base: Path
) -> None:
    server = make_server([base / "open"])
    async with either.connect(server, versions=[version]) as client:
        assert await read(client, "b/y.txt") == "open/b/y.txt"
        assert await read(client, "../closed/z.txt") is None


@every_era
async def test_files_example_follows_roots_that_change(version: str, base: Path) -> None:
    """A session keeps the roots until a notification; without sessions each call asks anew."""
    server = make_server([base / "open"])
    roots = [base / "open" / "a"]
    forgotten = either.Event()

    @server.on_roots_changed
    def forget_after_the_example(context: RootsContext) -> None:
        forgotten.set()

    async with either.connect(server, on_roots=lambda: roots, versions=[version]) as client:
        assert await read(client, "y.txt") is None
        roots[:] = [base / "open" / "b"]
        if version == "2025-11-25":
            assert await read(client, "y.txt") is None
            client.roots_changed()
            await forgotten.wait()
        assert await read(client, "y.txt") == "open/b/y.txt"


@pytest.mark.parametrize(
    ("roots", "allowed"),
    [
        ([], []),
        (["file:///srv/notes/a"], ["/srv/notes/a"]),
        (["file:///srv"], ["/srv/notes", "/srv/wiki"]),
        (["file:///srv/notes", "file:///srv"], ["/srv/notes", "/srv/wiki"]),
        (["file:///srv/notes/../../etc"], []),
        (["file:///srv/notes%2Fb%20c"], ["/srv/notes/b c"]),
        (["file:///srv/notesandmore"], []),
        (["file://localhost/srv/wiki"], ["/srv/wiki"]),
        (["file://elsewhere/srv/wiki"], []),
        (["https://example.com/srv/wiki"], []),
        (["file:///srv/wiki%00"], []),
    ],
)
def test_narrow_keeps_what_limit_and_roots_share(roots: list[str], allowed: list[str]) -> None:
    limit = [Path("/srv/notes"), Path("/srv/wiki")]
    assert narrow(limit, [Root(uri) for uri in roots]) == [Path(each) for each in allowed]
