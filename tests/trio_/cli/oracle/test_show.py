"""`mcp-trio show`: traces as `--trace` prints them, and files that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.trace import (
    HttpHead,
    SseFields,
    TraceHeader,
    TraceLine,
    TruncatedMessage,
    WebSocketClose,
    encode_header,
    encode_line,
)
from tests.harness.world.command import on_a_terminal, run

if TYPE_CHECKING:
    from pathlib import Path

HEADER = encode_header(TraceHeader(format_version=1, by="x"))
LINES = [
    TraceLine(t=0, kind="spawn", text="node s.js"),
    TraceLine(t=1, sender="client", raw='{"id":1}'),
    TraceLine(t=2, kind="stderr", text="boom"),
    TraceLine(t=3, sender="server", http=HttpHead(status=404), raw="no"),
    TraceLine(t=3, sender="server", http=HttpHead(status=200), raw="{}", end="complete"),
    TraceLine(t=3, sender="server", http=HttpHead(status=399)),
    TraceLine(t=3, sender="server", http=HttpHead(status=400)),
    TraceLine(t=4, sender="server", sse=SseFields(event="endpoint"), raw="/post"),
    TraceLine(t=5, conversation=2, sender="server", data=b"\xff\n"),
    TraceLine(t=6, sender="client", raw="{", truncated=TruncatedMessage(size=9)),
    TraceLine(t=7, sender="server", websocket=WebSocketClose(code=1001, reason="bye")),
    TraceLine(t=8, sender="server", end="reset"),
    TraceLine(t=9, kind="lost", count=3),
    TraceLine(t=9, kind="note", text="a note"),
    TraceLine(t=9, kind="weather"),
    TraceLine(t=9, kind="exit", status=-9),
]
SHOWN = [
    "starts node s.js",
    '→ {"id":1}',
    "| boom",
    "HTTP status 404",
    "← no",
    "← {}",
    "HTTP status 400",
    "2: ← \ufffd\\n",
    "→ {… (the first of 9 bytes)",
    "the server closes the WebSocket: 1001 bye",
    "the server ends the exchange: reset",
    "3 lines were not recorded",
    "a note",
    "exit status -9",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.mcp.jsonl"
    path.write_bytes(HEADER + b"".join(map(encode_line, LINES)))
    return path


def test_trace_is_shown_with_arrows(path: Path) -> None:
    done = run("show", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == SHOWN


def test_json_passes_lines_on_unchanged(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"t":10,"new":[1]}\ngarbage\n{"t":11')
    done = run("show", "--json", str(path))
    assert done.returncode == 0
    expected = path.read_bytes().removesuffix(b'garbage\n{"t":11')
    assert done.stdout.encode() == expected
    assert "line 19 is damaged" in done.stderr
    assert "line 20 is damaged: the trace ends in this line" in done.stderr


def test_trace_with_a_header_only_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(HEADER)
    assert run("show", str(path)).stdout == ""
    assert run("show", "--json", str(path)).stdout.encode() == HEADER


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "this is not a trace: it is empty"),
        (b'{"log":{}}\n', 'has no member "mcp-trace"'),
        (b'{"mcp-trace":9}\n', "version 9 of the format"),
        (b"\x7fELF\x02\n", "is not a JSON object"),
    ],
)
def test_file_of_another_kind_is_refused(tmp_path: Path, data: bytes, error: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    done = run("show", str(path))
    assert done.returncode == 2
    assert error in done.stderr


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    done = run("show", str(tmp_path / "none"))
    assert done.returncode == 2
    assert "none: No such file or directory" in done.stderr
    assert run("show", str(tmp_path)).returncode == 2


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_hostile_trace_moves_nothing_on_a_terminal(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """A trace may come from anyone, so every text in it is escaped before it is shown."""
    path = tmp_path / "x"
    evil = "\x1b[2Jmcp-trio: fine\u202e\n\u0085"
    lines = [
        TraceLine(t=0, sender="client", raw=evil),
        TraceLine(t=0, kind="stderr", text=evil),
        TraceLine(t=0, kind="note", text=evil),
        TraceLine(t=0, sender="server", websocket=WebSocketClose(code=1, reason=evil)),
        TraceLine(t=0, sender="server", end=evil),
    ]
    path.write_bytes(HEADER + b"".join(map(encode_line, lines)) + evil.encode())
    shown = on_a_terminal("show", *options, str(path))
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
    assert not any(line.startswith("mcp-trio: fine") for line in shown.splitlines())


def test_long_trace_is_shown_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x"
    line = encode_line(TraceLine(t=0, sender="client", raw="x" * 1000))
    path.write_bytes(HEADER + line * 5000)
    assert run("show", str(path)).stdout.count("\n") == 5000
