"""`mcp-trio read`: exact bytes for pipes and files, text only for terminals."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.harness.world.command import (
    COMMAND,
    GREETER,
    TEAHOUSE,
    Hosted,
    on_a_terminal,
    output_of,
    run,
)
from tests.harness.world.waiting import PATIENCE

MENU = "assam: 4.00\nrooibos: 3.50\nsencha: 4.50"


@pytest.fixture(scope="module")
def library(hosted: Hosted) -> tuple[str, ...]:
    return hosted("""
        from mcp_core.types import ReadResourceResult, ResourceContents

        app = mcp_trio.Server("library")

        def contents(*found):
            contents = [
                ResourceContents(uri=f"b://{at}", **each) for at, each in enumerate(found)
            ]
            return ReadResourceResult(contents=contents)

        TEXT, BLOB = {"text": "Zoë\\r\\n\\x1b[2J"}, {"blob": "AP8KDQ==", "mime_type": "image/x"}

        @app.resource("b://text")
        def text() -> ReadResourceResult:
            return contents(TEXT)

        @app.resource("b://blob")
        def blob() -> ReadResourceResult:
            return contents(BLOB)

        @app.resource("b://both")
        def both() -> ReadResourceResult:
            return contents(TEXT, BLOB)

        @app.resource("b://none")
        def none() -> ReadResourceResult:
            return contents()

        @app.resource("b://faulty")
        def faulty() -> ReadResourceResult:
            return contents({"blob": "AP8K!"})

        @app.resource("b://slow")
        async def slow(context: mcp_trio.Context) -> ReadResourceResult:
            await context.progress(1, 2, "turning pages")
            return contents(TEXT)
    """)


TEXT, BLOB = "Zoë\r\n\x1b[2J".encode(), b"\0\xff\n\r"
READ = [
    ("b://text", TEXT, ""),
    ("b://blob", BLOB, ""),
    ("b://both", TEXT + BLOB, "mcp-trio: b://both has 2 contents: b://0, b://1\n"),
    ("b://none", b"", "mcp-trio: b://none has no contents\n"),
    ("b://slow", TEXT, "1 of 2  turning pages\n"),
]


@pytest.mark.parametrize(("uri", "data", "aside"), READ)
def test_read_pipe_or_file_gets_exact_bytes(
    library: tuple[str, ...], tmp_path: Path, uri: str, data: bytes, aside: str
) -> None:
    """An ASCII locale changes nothing, and a longer old file is replaced completely."""
    piped = subprocess.run(
        [*COMMAND, "read", uri, *library],
        env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (piped.returncode, piped.stdout) == (0, data)
    assert piped.stderr.decode() == aside
    file = tmp_path / "found"
    file.write_bytes(b"what was there before is longer than what comes")
    saved = run("read", uri, "--output", str(file), *library)
    assert (saved.returncode, saved.stdout, saved.stderr) == (0, "", aside)
    assert file.read_bytes() == data


def test_read_terminal_gets_text_only(library: tuple[str, ...]) -> None:
    assert on_a_terminal("read", "b://text", *library) == "Zoë\n\\u001b[2J\n"
    both = on_a_terminal("read", "b://both", *library)
    assert "Zoë\n\\u001b[2J\n[b://1, image/x, 4 bytes; --output FILE saves them]\n" in both


def test_read_json_prints_result_document(library: tuple[str, ...], tmp_path: Path) -> None:
    shown = json.loads(output_of("read", "--json", "b://blob", *library))
    assert shown["contents"] == [{"uri": "b://0", "mimeType": "image/x", "blob": "AP8KDQ=="}]
    output_of("read", "--json", "b://blob", "--output", str(tmp_path / "found"), *library)
    assert json.loads((tmp_path / "found").read_bytes()) == shown


PROBLEMS = [
    (
        "b://tex",
        1,
        "the server answered with an error: Resource not found (-32602). Did you mean b://text?\n",
    ),
    ("urn:nothing", 1, "the server answered with an error: Resource not found (-32602)\n"),
    ("b://faulty", 3, "the server broke the protocol: the blob of b://0 is not base64"),
]


@pytest.mark.parametrize(("uri", "status", "complaint"), PROBLEMS)
def test_read_error_is_explained_and_writes_no_file(
    library: tuple[str, ...], tmp_path: Path, uri: str, status: int, complaint: str
) -> None:
    result = run("read", uri, "--output", str(tmp_path / "found"), *library)
    assert (result.returncode, result.stdout) == (status, "")
    assert complaint in result.stderr
    assert not (tmp_path / "found").exists()


def test_read_uri_matching_template_gets_no_suggestion() -> None:
    result = run("read", "tea://menu/coffee", *TEAHOUSE)
    assert (
        result.stderr
        == "mcp-trio: the server answered with an error: Resource not found (-32602)\n"
    )
    assert run("read", "tea://menus/tea", *TEAHOUSE).stderr.endswith(
        "Did you mean tea://menu/{tea}?\n"
    )


def test_read_from_server_without_resources_is_rejected() -> None:
    result = run("read", "a://b", *GREETER)
    assert (result.returncode, result.stderr) == (
        2,
        "mcp-trio: the server has no resources, so it has no a://b\n",
    )


@pytest.mark.parametrize("place", ["", "nowhere/found"])
def test_read_unwritable_output_file_is_reported(tmp_path: Path, place: str) -> None:
    result = run("read", "tea://menu", "--output", str(tmp_path / place), *TEAHOUSE)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"mcp-trio: {tmp_path / place} cannot be written: ")


def test_read_full_disk_is_reported_once() -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [*COMMAND, "read", "tea://menu", *TEAHOUSE],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    assert result.returncode == 2
    assert result.stderr == b"mcp-trio: stdout cannot be written: No space left on device\n"


@pytest.mark.parametrize("version", ["2026-07-28", "2024-11-05"])
def test_read_works_in_oldest_and_newest_revision(version: str) -> None:
    assert output_of("read", "tea://menu", "--revision", version, *TEAHOUSE) == MENU
