"""`mcp-trio call`: arguments, results and errors of a tool."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest

from tests.harness.world.command import (
    GREETER,
    TEAHOUSE,
    Hosted,
    ServerFile,
    on_a_terminal,
    output_of,
    run,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_call_prints_only_text() -> None:
    assert output_of("call", "greet", "name=World", *GREETER) == "Hello, World!\n"


def test_call_json_prints_result_document() -> None:
    result = json.loads(output_of("call", "price", "--json", "tea=assam", "cups=3", *TEAHOUSE))
    assert result["content"] == [{"type": "text", "text": "12.0"}]
    assert result["structuredContent"] == 12.0


def test_call_json_is_utf_8_in_ascii_locale() -> None:
    result = run("call", "greet", "--json", "name=Zoë", *GREETER, env={"PYTHONIOENCODING": "ascii"})
    assert json.loads(result.stdout)["content"][0]["text"] == "Hello, Zoë!"


def test_call_tool_error_exits_with_1() -> None:
    result = run("call", "price", "tea=coffee", *TEAHOUSE)
    assert result.returncode == 1
    assert result.stdout == "no coffee today; on the menu: assam, rooibos, sencha\n"
    assert result.stderr == "mcp-trio: the tool price reported an error\n"


CALLS = [
    ("greet", ["name=1"], 0, "Hello, 1!"),
    ("greet", ['{"name": "World"}'], 0, "Hello, World!"),
    ("greet", ["name=you", '{"name": "World"}'], 0, "Hello, World!"),
    (
        "greet",
        ['{"name": 1}'],
        1,
        "Invalid argument `name`",
    ),  # unchecked: it is the server that complains
    (
        "gret",
        ["name=1"],
        2,
        "the server has no tool gret; its tools are greet. Did you mean greet?",
    ),
    (
        "greet",
        ["nam=1"],
        2,
        "the tool greet has no argument nam; it takes name. Did you mean name?",
    ),
    ("greet", [], 2, "the tool greet needs name: add name=..."),
    ("greet", ["World"], 2, "'World' is not an argument: write KEY=VALUE"),
]


@pytest.mark.parametrize(("tool", "arguments", "status", "text"), CALLS)
def test_call_arguments_are_checked_against_schema(
    greeter: tuple[str, ...], tool: str, arguments: list[str], status: int, text: str
) -> None:
    result = run("call", tool, *arguments, *greeter)
    assert result.returncode == status
    assert text in (result.stderr if status == 2 else result.stdout)


def test_call_prints_every_kind_of_content(server: ServerFile) -> None:
    """Binary data is described only, and structured content that repeats the text is omitted."""
    target = server("""
        from mcp_core.registry import Audio, File, Image
        from mcp_core.types import CallToolResult, ResourceLink, TextContent

        server = mcp_trio.Server("gallery")

        @server.tool
        def show() -> list:
            "Show things."
            return [
                "a text", Image(b"12345"), Audio(b"123456789"),
                File("inside", "a://b"), File(b"12", "c://d"),
                ResourceLink(uri="e://f", name="link"),
            ]

        @server.tool
        def both() -> CallToolResult:
            "Text and something else."
            return CallToolResult(content=[TextContent("a text")], structured_content={"a": [1]})

        @server.tool
        def wrapped() -> CallToolResult:
            "The same twice."
            content = [TextContent('{"result":1}')]
            return CallToolResult(content=content, structured_content={"result": 1})

        @server.tool
        def table() -> dict[str, list[int]]:
            "Data."
            return {"a": [1]}
    """)
    assert output_of("call", "show", *target).splitlines() == [
        "a text",
        "[image, image/png, 5 bytes; --output FILE saves them]",
        "[audio, audio/wav, 9 bytes; --output FILE saves them]",
        "inside",
        "[c://d, application/octet-stream, 2 bytes; --output FILE saves them]",
        "[e://f: link]",
    ]
    data = '{\n  "a": [\n    1\n  ]\n}\n'
    assert output_of("call", "both", *target) == "a text\nstructured content:\n" + data
    assert output_of("call", "table", *target) == data
    assert output_of("call", "wrapped", *target) == '{"result":1}\n'


@pytest.fixture(scope="module")
def gallery(hosted: Hosted) -> tuple[str, ...]:
    return hosted("""
        from mcp_core.registry import Audio, File, Image
        from mcp_core.types import CallToolResult, ImageContent, TextContent

        server = mcp_trio.Server("gallery")

        @server.tool
        def shot() -> list:
            "One image and a text."
            return ["a text", Image(b"\\0\\xff1")]

        @server.tool
        def show() -> list:
            "Several."
            return [Image(b"image"), Audio(b"audio"), File("inside", "a://b"), "a text"]

        @server.tool
        def words() -> CallToolResult:
            "Texts only."
            return CallToolResult(content=[TextContent("one"), TextContent("two")])

        @server.tool
        def fail() -> CallToolResult:
            "An error."
            return CallToolResult(content=[TextContent("no paper")], is_error=True)

        @server.tool
        def faulty() -> CallToolResult:
            "Not base64."
            return CallToolResult(content=[ImageContent("AP8K!", "image/png")])
    """)


SHOT = b"\0\xff1"


def test_call_output_writes_image_and_prints_the_rest(
    gallery: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "shot.png"
    file.write_bytes(b"what was there before")
    file.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(file)
    result = run("call", "shot", "--output", str(link), *gallery)
    assert (result.returncode, result.stdout, result.stderr) == (0, "a text\n", "")
    assert (file.read_bytes(), link.is_symlink()) == (SHOT, True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "shot.png"]


def test_call_output_several_contents_are_numbered(
    gallery: tuple[str, ...], tmp_path: Path
) -> None:
    result = run("call", "show", "--output", "it.bin", *gallery, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "a text\n")
    assert result.stderr.splitlines()[0] == "mcp-trio: it-1.bin has 5 bytes"
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert found == {"it-1.bin": b"image", "it-2.bin": b"audio", "it-3.bin": b"inside"}
    (tmp_path / "in").mkdir()
    run("call", "show", "--output", "in", *gallery, cwd=tmp_path)
    run("call", "shot", "--output", "in", *gallery, cwd=tmp_path)
    names = sorted(path.name for path in (tmp_path / "in").iterdir())
    assert names == ["shot.png", "show-1.png", "show-2.wav", "show-3.txt"]


def test_call_output_without_files_gets_what_would_be_printed(
    gallery: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "out"
    assert output_of("call", "words", "--output", str(file), *gallery) == ""
    assert file.read_text() == "one\ntwo\n"
    assert output_of("call", "words", "--output", "-", *gallery) == "one\ntwo\n"
    assert output_of("call", "shot", "--json", "--output", str(file), *gallery) == ""
    assert json.loads(file.read_bytes())["content"][0]["text"] == "a text"
    assert output_of("call", "words", "--output", "/dev/null", *gallery) == ""


def test_call_output_to_stdout_has_the_bytes_only(gallery: tuple[str, ...]) -> None:
    result = run("call", "show", "--output", "-", *gallery)
    assert (result.stdout, result.stderr) == ("imageaudioinside", "a text\n")
    shown = on_a_terminal("call", "shot", "--output", "-", *gallery)
    assert shown == "a text\n[image, image/png, 3 bytes; --output FILE saves them]\n"


def test_call_output_is_left_alone_after_an_error(gallery: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("before")
    result = run("call", "fail", "--output", str(file), *gallery)
    assert (result.returncode, result.stdout) == (1, "no paper\n")
    faulty = run("call", "faulty", "--output", str(file), *gallery)
    assert faulty.returncode == 3
    assert "the image is not base64" in faulty.stderr
    assert file.read_text() == "before"
    unwritable = run("call", "shot", "--output", str(tmp_path / "no" / "out"), *gallery)
    assert unwritable.returncode == 2
    assert "cannot be written: No such file or directory; give --output" in unwritable.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
