"""`mcp-trio read` in memory: where contents go, and errors with a suggestion."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.trio_.cli.in_memory import AnsweringServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.trio_.cli.in_memory import MemoryCommand

TEXT = {"uri": "a:one", "text": "hi"}
BLOB = {"uri": "a:two", "blob": "AAAA", "mimeType": "x/y"}
BLOB_LINE = "[a:two, x/y, 3 bytes; --output FILE saves them]\n"
TWO = "mcp-trio: a:one has 2 contents: a:one, a:two\n"
LISTS = {
    "resources/list": {"resources": [{"uri": "a:one", "name": "n"}]},
    "resources/templates/list": {
        "resourceTemplates": [
            {"uriTemplate": "b:{", "name": "bad"},
            {"uriTemplate": "tea://menu/{tea}", "name": "t"},
        ]
    },
}


def server_of(*contents: Any, capabilities: Any = None) -> AnsweringServer:
    answers = {**LISTS, "resources/read": {"contents": [*contents]}}
    return AnsweringServer({"resources": {}} if capabilities is None else capabilities, answers)


@pytest.mark.parametrize(
    ("contents", "terminal", "out", "err"),
    [
        ([TEXT], False, "hi", ""),
        ([TEXT], True, "hi\n", ""),
        ([BLOB], False, "\0\0\0", ""),
        ([BLOB], True, BLOB_LINE, ""),
        ([TEXT, BLOB], False, "hi\0\0\0", TWO),
        ([TEXT, BLOB], True, "hi\n" + BLOB_LINE, TWO),
        ([], False, "", "mcp-trio: a:one has no contents\n"),
        ([], True, "", "mcp-trio: a:one has no contents\n"),
    ],
)
@pytest.mark.parametrize("words", [[], ["--output", "-"]])
def test_read_writes_bytes_to_a_pipe_and_text_to_a_terminal(
    contents: list[Any],
    terminal: bool,
    out: str,
    err: str,
    words: list[str],
    in_memory: MemoryCommand,
) -> None:
    in_memory.server = server_of(*contents)
    assert in_memory("read", "a:one", *words, terminal=terminal) == (0, out, err)
    method, params = in_memory.server.requests[-1]
    assert (method, params["uri"]) == ("resources/read", "a:one")


@pytest.mark.parametrize("terminal", [False, True])
def test_read_json_is_the_result_of_the_server(terminal: bool, in_memory: MemoryCommand) -> None:
    in_memory.server = server_of(TEXT, BLOB)
    found = in_memory("read", "a:one", "--json", terminal=terminal)
    assert (json.loads(found.out), found.err) == ({"contents": [TEXT, BLOB]}, TWO)


@pytest.mark.parametrize("terminal", [False, True])
def test_read_output_replaces_a_file(
    terminal: bool, in_memory: MemoryCommand, tmp_path: Path
) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"before")
    in_memory.server = server_of(TEXT, BLOB)
    words = ["read", "a:one", "--output", str(path)]
    assert in_memory(*words, terminal=terminal) == (0, "", TWO)
    assert path.read_bytes() == b"hi\0\0\0"
    assert in_memory(*words, "--json", terminal=terminal) == (0, "", TWO)
    assert json.loads(path.read_bytes()) == {"contents": [TEXT, BLOB]}


def test_read_blob_that_is_not_base64_breaks_the_protocol(in_memory: MemoryCommand) -> None:
    in_memory.server = server_of({"uri": "a:one", "blob": "A?=="})
    status, out, err = in_memory("read", "a:one")
    assert (status, out) == (3, "")
    assert err.startswith(
        "mcp-trio: the server broke the protocol: the blob of a:one is not base64"
    )


@pytest.mark.parametrize(
    ("uri", "complaint"),
    [
        (
            "one",
            (
                "'one' is not a URI: a URI begins with a scheme, as in tea://menu; `mcp-trio"
                " inspect` lists the resources"
            ),
        ),
        ("a:{b}/{c}", "a:{b}/{c} is a template: replace {b} by a value"),
    ],
)
def test_read_another_word_than_a_uri_starts_no_server(
    uri: str, complaint: str, in_memory: MemoryCommand
) -> None:
    assert in_memory("read", uri) == (2, "", f"mcp-trio: {complaint}\n")
    assert in_memory.launches == []


@pytest.mark.parametrize(
    ("uri", "suggested"),
    [
        ("a:one", ""),
        ("b:one", ". Did you mean a:one?"),
        ("tea://menu/x", ""),
        ("tea://menu/te", ""),
        ("tea://men/{tea", ". Did you mean tea://menu/{tea}?"),
        ("z:z", ""),
    ],
)
def test_read_error_suggests_what_the_server_lists(
    uri: str, suggested: str, in_memory: MemoryCommand
) -> None:
    """Nothing is suggested for a URI that the server lists, or that one of its templates has."""
    error = {"error": {"code": -32002, "message": "no"}}
    line = "mcp-trio: the server answered with an error: no (-32002)"
    in_memory.server = AnsweringServer({"resources": {}}, {**LISTS, "resources/read": error})
    assert in_memory("read", uri) == (1, "", f"{line}{suggested}\n")
    in_memory.server = AnsweringServer({"resources": {}}, {"resources/read": error})
    assert in_memory("read", uri) == (1, "", f"{line}\n")


@pytest.mark.parametrize(
    ("capabilities", "answer", "expected"),
    [
        ({}, {"contents": [TEXT]}, (0, "hi", "resources")),
        ({"tools": {}}, {"contents": [TEXT]}, (2, "", "the server has no resources, so it has no")),
        ({}, None, (2, "", "the server has no resources, so it has no")),
        ({"resources": {}}, None, (1, "", "the server answered with an error: unknown (-32601)")),
        (
            {},
            {"error": {"code": -32002, "message": "no"}},
            (1, "", "resources and error: no (-32002)"),
        ),
    ],
)
def test_read_asks_a_server_that_declares_nothing(
    capabilities: Any, answer: Any, expected: tuple[int, str, str], in_memory: MemoryCommand
) -> None:
    """One that declares anything is not asked for what it does not declare."""
    status, out, err = expected
    undeclared = (
        "mcp-trio: the server did not declare resources, and was asked for them all the same\n"
    )
    shown = {
        "resources": undeclared,
        "the server has no resources, so it has no": f"mcp-trio: {err} a:one\n",
        "resources and error: no (-32002)": (
            f"{undeclared}mcp-trio: the server answered with an error: no (-32002)\n"
        ),
    }.get(err, f"mcp-trio: {err}\n")
    answers = {**LISTS} if answer is None else {**LISTS, "resources/read": answer}
    in_memory.server = AnsweringServer(capabilities, answers)
    assert in_memory("read", "a:one") == (status, out, shown)
