"""`mcp-trio diff`: text, JSON, options, exit statuses, and files that are no trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_core.trace import TraceHeader, encode_header, encode_line
from mcp_core.trace.replay._diff import ChangedValue
from mcp_trio.cli import main
from mcp_trio.cli.oracle import _diff
from tests.core.trace.judge.conversations import C, S, Sent, ask, error, result
from tests.core.trace.replay.traces import AT, CALL, call, lines_of, text

if TYPE_CHECKING:
    from collections.abc import Sequence

OTHER = [CALL[0], S(text(1, "other"))]


def written(path: Path, name: str, said: Sequence[Sent]) -> str:
    file = path / name
    header = TraceHeader(format_version=1, at=AT, transport="stdio")
    file.write_bytes(
        encode_header(header) + b"".join(encode_line(line) for _, line in lines_of(said))
    )
    return str(file)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    return written(tmp_path, "a.mcp.jsonl", CALL), written(tmp_path, "b.mcp.jsonl", OTHER)


def test_diff_of_equal_traces_ends_with_status_0(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", files[0], files[0]]) == 0
    assert capsys.readouterr().out == "1 requests in both, 0 differences\n"


def test_diff_shows_both_values_with_status_1(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *files]) == 1
    assert capsys.readouterr().out == (
        "result changed: tools/call echo, line 3 of A, line 3 of B\n"
        '    /result/content/0/text: "A" → "other"\n'
        "1 requests in both, 1 differences\n"
    )


def test_diff_as_json_is_one_document(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", "--json", *files]) == 1
    document = json.loads(capsys.readouterr().out)
    (found,) = document["differences"]
    assert document["count"] == 1
    assert found["values"] == [{"pointer": "/result/content/0/text", "old": "A", "new": "other"}]
    assert (found["kind"], found["oldLine"], found["from"]) == ("result changed", 3, "server")


def test_diff_ignores_pointers(files: tuple[str, str]) -> None:
    assert main(["diff", "--ignore", "/result/content/*/text", *files]) == 0


def test_diff_shows_each_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = [*CALL, C(call(2)), S(text(2, "A")), C(ask(3, "tools/list")), S(result(3, tools=[]))]
    new = [CALL[0], S(error(1, -32000)), C(call(2)), S(result(2)), C(ask(4, "prompts/list"))]
    files = written(tmp_path, "a", old), written(tmp_path, "b", new)
    assert main(["diff", *files]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown == [
        "error code changed: tools/call echo, line 3 of A, line 3 of B",
        "    a result → error -32000",
        "result changed: tools/call echo, line 5 of A, line 5 of B",
        '    /result/content: removed [{"type": "text", "text": "A"}]',
        "added the request: prompts/list, line 6 of B",
        "missing the request: tools/list, line 6 of A",
        "2 requests in both, 4 differences",
    ]


def test_diff_shows_long_values_from_the_difference_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = ([CALL[0], S(text(1, "x" * 5_000 + end))] for end in ("left", "right"))
    main(["diff", written(tmp_path, "a", old), written(tmp_path, "b", new)])
    assert 'xxleft" → …' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (None, "No such file"),
        (b"hello\n", "not a JSON object"),
        (b'{"mcp-trace": 2}\n', "version 2"),
    ],
)
def test_diff_of_another_file_ends_with_status_2(
    content: bytes | None, cause: str, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    other = Path(files[1])
    other.unlink() if content is None else other.write_bytes(content)
    assert main(["diff", *files]) == 2
    assert cause in capsys.readouterr().err


def test_diff_warns_of_missing_lines(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(files[1])
    path.write_bytes(path.read_bytes() + b'damaged\n{"t": 9, "kind": "lost", "count": 4}\n{"t')
    main(["diff", *files])
    err = capsys.readouterr().err
    assert "lines that cannot be read were left out: 4, 6" in err
    assert "4 lines were not recorded" in err


def test_diff_of_wrong_pointer_ends_with_status_2(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", "--ignore", "result", *files]) == 2
    assert "not a JSON pointer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ChangedValue(pointer="", old=None, new=[1], is_missing=True), "added [1]"),
        (ChangedValue(pointer="", old={"a": 1}, new=None, is_removed=True), 'removed {"a": 1}'),
        (ChangedValue(pointer="", old="a", new=None), '"a" \u2192 null'),
    ],
)
def test_change_of_a_value_is_shown_in_a_line(value: ChangedValue, text: str) -> None:
    assert _diff._change(value) == text
