"""`mcp-trio call` in memory: how results are printed and written, and what sessions report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.trio_.cli.in_memory import AnsweringServer

if TYPE_CHECKING:
    from tests.trio_.cli.in_memory import MemoryCommand, Output

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TOOLS = {"tools/list": {"tools": [{"name": "look", "inputSchema": SCHEMA}]}}
TEXT = {"type": "text", "text": "hi"}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
IMAGE_LINE = "[image, image/png, 3 bytes; --output FILE saves them]\n"
LOGGING: dict[str, Any] = {"tools": {}, "logging": {}}


def text(of: str) -> dict[str, str]:
    return {"type": "text", "text": of}


def result_of(*content: Any, **more: Any) -> dict[str, Any]:
    return {**TOOLS, "logging/setLevel": {}, "tools/call": {"content": content, **more}}


def call(command: MemoryCommand, answers: dict[str, Any], *words: str, **options: Any) -> Output:
    """Call the tool with `a=1` and other words."""
    command.server = AnsweringServer(options.pop("capabilities", LOGGING), answers, **options)
    return command("call", "look", "a=1", *words)


@pytest.mark.parametrize(
    ("content", "structured", "printed"),
    [
        ([TEXT], None, "hi\n"),
        ([], None, ""),
        ([IMAGE, TEXT], None, IMAGE_LINE + "hi\n"),
        ([text('{"b": 1}')], {"b": 1}, '{\n  "b": 1\n}\n'),
        ([text("5")], {"result": 5}, "5\n"),
        ([TEXT], {"result": "hi"}, "hi\n"),
        ([text("[5]")], {"result": [5]}, '{\n  "result": [\n    5\n  ]\n}\n'),
        ([text('{"result": 5}')], {"result": 5}, '{"result": 5}\n'),
        (
            [text("[5]"), TEXT],
            {"result": [5]},
            'hi\nstructured content:\n{\n  "result": [\n    5\n  ]\n}\n',
        ),
        ([TEXT], {"result": 5}, 'hi\nstructured content:\n{\n  "result": 5\n}\n'),
        ([TEXT], {"c": 5}, 'hi\nstructured content:\n{\n  "c": 5\n}\n'),
        (
            [text("[" * 100_000)],
            {"c": 5},
            "[" * 100_000 + '\nstructured content:\n{\n  "c": 5\n}\n',
        ),
        ([], {"c": 5}, '{\n  "c": 5\n}\n'),
    ],
    ids=range(13),
)
def test_call_prints_structured_content_unless_a_text_is_the_same(
    content: list[Any], structured: Any, printed: str, in_memory: MemoryCommand
) -> None:
    more = {} if structured is None else {"structuredContent": structured}
    assert call(in_memory, result_of(*content, **more)) == (0, printed, "")
    assert isinstance(in_memory.server, AnsweringServer)
    method, params = in_memory.server.requests[-1]
    assert (method, params["name"], params["arguments"]) == ("tools/call", "look", {"a": 1})


def test_call_heading_of_structured_content_is_dim_on_a_terminal(in_memory: MemoryCommand) -> None:
    in_memory.server = AnsweringServer(LOGGING, result_of(TEXT, structuredContent={"c": 5}))
    out = in_memory("call", "look", "a=1", terminal=True).out
    assert out == 'hi\n^[2mstructured content:^[0m\n{\n  "c": 5\n}\n'


def test_call_error_of_the_tool_is_printed_and_has_status_1(
    in_memory: MemoryCommand, tmp_path: Path
) -> None:
    error = result_of(TEXT, IMAGE, isError=True)
    reported = "mcp-trio: the tool look reported an error\n"
    assert call(in_memory, error) == (1, "hi\n" + IMAGE_LINE, reported)
    path = tmp_path / "it"
    assert call(in_memory, error, "--output", str(path)) == (1, "hi\n" + IMAGE_LINE, reported)
    assert not path.exists()
    found = call(in_memory, error, "--json", "--output", str(path))
    assert (json.loads(found.out)["isError"], found.status) == (True, 1)
    assert not path.exists()


@pytest.mark.parametrize(
    ("words", "content", "out", "err", "files"),
    [
        (["it"], [IMAGE, TEXT], "hi\n", "", {"it": b"\0\0\0"}),
        (["it"], [TEXT], "", "", {"it": b"hi\n"}),
        (["it", "--json"], [TEXT], "", "", {"it": json.dumps({"content": [TEXT]}, indent=2)}),
        (["it", "--json"], [IMAGE], "", "", {"it": json.dumps({"content": [IMAGE]}, indent=2)}),
        (
            ["."],
            [IMAGE, TEXT, IMAGE],
            "hi\n",
            "mcp-trio: look-1.png has 3 bytes\nmcp-trio: look-2.png has 3 bytes\n",
            {"look-1.png": b"\0\0\0", "look-2.png": b"\0\0\0"},
        ),
        (["-"], [IMAGE, TEXT, IMAGE], "\0\0\0\0\0\0", "hi\n", {}),
        (["-"], [TEXT], "hi\n", "", {}),
        (["-", "--json"], [TEXT], json.dumps({"content": [TEXT]}, indent=2) + "\n", "", {}),
    ],
)
def test_call_output_has_the_files_and_stdout_the_rest(
    words: list[str],
    content: list[Any],
    out: str,
    err: str,
    files: dict[str, Any],
    in_memory: MemoryCommand,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With --json, or without images, the file has the whole result."""
    monkeypatch.chdir(tmp_path)
    assert call(in_memory, result_of(*content), "--output", *words) == (0, out, err)
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert found == {
        name: data if isinstance(data, bytes) else f"{data}\n".encode()
        for name, data in files.items()
    }


def test_call_output_to_a_terminal_describes_files(in_memory: MemoryCommand) -> None:
    in_memory.server = AnsweringServer(LOGGING, result_of(IMAGE, TEXT))
    found = in_memory("call", "look", "a=1", "--output", "-", terminal=True)
    assert found == (0, IMAGE_LINE + "hi\n", "")


def test_call_detach_refuses_output_and_what_has_no_tasks(in_memory: MemoryCommand) -> None:
    found = call(in_memory, result_of(TEXT), "--detach", "--output", "x")
    assert (found.status, in_memory.launches) == (2, [])
    assert found.err.endswith(
        "call: error: --detach prints no result for --output: leave one of them out\n"
    )
    assert call(in_memory, result_of(TEXT), "--detach") == (
        2,
        "",
        (
            "mcp-trio: revision 2025-06-18 has no tasks; `mcp-trio inspect` shows what the server"
            " can do\n"
        ),
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["look"], "the tool look needs a: add a=..."),
        (["lok", "a=1"], "the server has no tool lok; its tools are look. Did you mean look?"),
        (
            ["look", "a=1", "b=2"],
            "the tool look has no argument b; it takes a.",
        ),
    ],
)
def test_call_of_what_is_not_there_is_not_sent(
    words: list[str], complaint: str, in_memory: MemoryCommand
) -> None:
    schema = {**SCHEMA, "additionalProperties": False}
    tools = {"tools/list": {"tools": [{"name": "look", "inputSchema": schema}]}}
    server = in_memory.server = AnsweringServer(LOGGING, {**result_of(TEXT), **tools})
    assert in_memory("call", *words) == (2, "", f"mcp-trio: {complaint}\n")
    assert server.requests[-1][0] == "tools/list"


# -- Sessions --------------------------------------------------------------------------------------

LOG = {"level": "warning", "logger": "x", "data": {"a": "b\x1b"}}
NOTES = {
    "tools/call": [
        {"jsonrpc": "2.0", "method": "notifications/message", "params": LOG},
        {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "debug", "data": "two\nlines"},
        },
        {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progress": 1, "total": 3, "message": "m"},
        },
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1.5}},
    ]
}


def test_session_shows_log_messages_and_progress(in_memory: MemoryCommand) -> None:
    shown = '[warning x] {"a":"b\\u001b"}\n[debug] two\n  | lines\n1 of 3  m\n1.5\n'
    assert call(in_memory, result_of(TEXT), notes=NOTES) == (0, "hi\n", shown)


@pytest.mark.parametrize(
    ("level", "style"),
    [
        ("debug", "^[2m[debug]^[0m"),
        ("info", "^[2m[info]^[0m"),
        ("notice", "[notice]"),
        ("warning", "^[33m[warning]^[0m"),
        ("error", "^[1;31m[error]^[0m"),
        ("emergency", "^[1;31m[emergency]^[0m"),
    ],
)
def test_session_styles_log_messages_by_level(
    level: str, style: str, in_memory: MemoryCommand
) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/message"}
    notes = {"tools/call": [{**note, "params": {"level": level, "data": "t"}}]}
    in_memory.server = AnsweringServer(LOGGING, result_of(TEXT), notes=notes)
    assert in_memory("call", "look", "a=1", terminal=True).err == f"{style} t\n"


@pytest.mark.parametrize(("length", "is_cut"), [(10_000, False), (10_001, True)])
def test_session_shortens_a_long_log_message(
    length: int, is_cut: bool, in_memory: MemoryCommand
) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/message"}
    params = {"level": "info", "logger": "l" * (length // 50), "data": "t" * length}
    found = call(in_memory, result_of(TEXT), notes={"tools/call": [{**note, "params": params}]})
    assert (f"[info {'l' * 200}] {'t' * 10_000}\n" in found.err) is not is_cut
    assert len(found.err) < 10_300


@pytest.mark.parametrize(
    ("level", "capabilities", "warned"),
    [
        (None, {"tools": {}}, False),
        ("info", {"tools": {}}, False),
        ("error", {"tools": {}}, True),
        ("error", LOGGING, False),
    ],
)
def test_session_says_that_a_chosen_level_has_no_effect(
    level: str | None, capabilities: Any, warned: bool, in_memory: MemoryCommand
) -> None:
    words = [] if level is None else ["--log-level", level]
    found = call(in_memory, result_of(TEXT), *words, capabilities=capabilities)
    line = "mcp-trio: the server did not declare that it sends log messages\n"
    assert found == (0, "hi\n", line if warned else "")


@pytest.mark.parametrize(
    ("capabilities", "answers", "expected"),
    [
        (
            {},
            result_of(TEXT),
            (
                0,
                "hi\n",
                (
                    "mcp-trio: the server did not declare tools, and was asked for them all the"
                    " same\n"
                ),
            ),
        ),
        ({"prompts": {}}, result_of(TEXT), (2, "", "the server has no tool look; it has none.")),
        ({}, {}, (2, "", "the server has no tool look; it has none.")),
        (
            {},
            {"tools/list": {"error": {"code": -32602, "message": "m"}}},
            (2, "", "the server has no tool look; it has none."),
        ),
        (
            {},
            {"tools/list": {"error": {"code": -32600, "message": "m"}}},
            (2, "", "the server has no tool look; it has none."),
        ),
        ({}, {"tools/list": "silent"}, (2, "", "the server has no tool look; it has none.")),
        (
            {},
            {"tools/list": {"error": {"code": -32000, "message": "m"}}},
            (
                1,
                "",
                (
                    "the server did not declare tools, and was asked for them all the same\n"
                    "mcp-trio: the server answered with an error: m (-32000)"
                ),
            ),
        ),
    ],
)
def test_session_asks_a_server_that_declares_nothing_for_its_tools(
    capabilities: Any, answers: Any, expected: tuple[int, str, str], in_memory: MemoryCommand
) -> None:
    status, out, err = expected
    err = err if err.endswith("\n") else f"mcp-trio: {err}\n"
    assert call(in_memory, answers, capabilities=capabilities) == (status, out, err)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ({"message": "no"}, "no (-32000)"),
        ({"message": "first. \nsecond"}, "first. (-32000)\n  | second"),
        ({"message": "no", "data": {"requiredCapabilities": {"roots": {}}}}, "add --root PATH"),
        (
            {"message": "no", "data": {"requiredCapabilities": {"elicitation": {"url": {}}}}},
            "no (-32000); it wants to send you to a page: run this command in a terminal",
        ),
        (
            {"message": "no", "data": {"requiredCapabilities": {"elicitation": {}}}},
            "run this command in a terminal, or add --answer KEY=VALUE",
        ),
        (
            {"message": "no", "data": {"requiredCapabilities": {"sampling": {}}}},
            "it asks for a language model, which this command does not have",
        ),
        ({"message": "no", "data": {"requiredCapabilities": ["roots"]}}, "no (-32000)"),
        ({"message": "no", "data": []}, "no (-32000)"),
        (
            {"message": "no", "data": {"elicitations": [{"url": "https://a.test/b"}, 5]}},
            "no (-32000); open https://a.test/b in a browser if you trust it, and try again",
        ),
        (
            {"message": "no", "data": {"elicitations": [{"url": "javascript:1"}]}},
            "no (-32000); it names a page that cannot be trusted: its URL ",
        ),
        ({"message": "no", "data": {"elicitations": {"url": "https://a.test/b"}}}, "no (-32000)"),
    ],
)
def test_session_error_of_the_server_has_a_cure(
    error: dict[str, Any], shown: str, in_memory: MemoryCommand
) -> None:
    answers = {**result_of(TEXT), "tools/call": {"error": {"code": -32000, **error}}}
    found = call(in_memory, answers)
    assert (found.status, found.out) == (1, "")
    assert found.err.startswith("mcp-trio: the server answered with an error: ")
    if shown.endswith(" "):
        assert shown in found.err
    else:
        assert found.err.endswith(f"{shown}\n")


def test_session_error_names_five_pages_at_most(in_memory: MemoryCommand) -> None:
    pages = [{"url": f"https://a.test/{number}"} for number in range(6)]
    error = {"code": -32000, "message": "no", "data": {"elicitations": pages}}
    found = call(in_memory, {**TOOLS, "tools/call": {"error": error}})
    assert found.err.count("in a browser if you trust it") == 5
    assert "https://a.test/4 in" in found.err


@pytest.mark.parametrize(("length", "is_cut"), [(4000, False), (4001, True)])
def test_session_error_is_shortened(length: int, is_cut: bool, in_memory: MemoryCommand) -> None:
    error = {"code": -32000, "message": "m" * length}
    found = call(in_memory, {**TOOLS, "tools/call": {"error": error}})
    assert (f": {'m' * 4000} (-32000)\n" in found.err) is not is_cut
    assert len(found.err) < 4100


HINT = "Is that an MCP server on stdin and stdout? --trace shows the messages, a larger --timeout"


@pytest.mark.parametrize(
    ("words", "seconds", "noticed"),
    [([], 60, True), (["--timeout", "2.5"], 2.5, False), (["--timeout", "3.5"], 3.5, True)],
)
def test_session_that_does_not_begin_ends_after_the_timeout(
    words: list[str], seconds: float, noticed: bool, in_memory: MemoryCommand
) -> None:
    """After three seconds a line says what is waited for."""
    silent = {"initialize": "silent", "server/discover": "silent"}
    notice = f"mcp-trio: waiting for it (for at most {seconds:g} s)\n" if noticed else ""
    error = f"mcp-trio: it did not answer within {seconds:g} s. {HINT} allows more time\n"
    assert call(in_memory, silent, *words) == (3, "", notice + error)


def test_session_call_that_is_not_answered_is_cancelled(in_memory: MemoryCommand) -> None:
    found = call(in_memory, {**TOOLS, "tools/call": "silent"}, "--timeout", "5")
    assert (found.status, found.out) == (3, "")
    assert found.err.startswith("mcp-trio: no answer to tools/call within 5 s ")
    assert found.err.endswith("; a larger --timeout allows more time\n")
    assert isinstance(in_memory.server, AnsweringServer)
    assert in_memory.server.requests[-1][0] == "notifications/cancelled"


def test_session_answer_that_breaks_the_protocol_is_shown(in_memory: MemoryCommand) -> None:
    found = call(in_memory, {**TOOLS, "tools/call": {"content": 5}})
    assert (found.status, found.out) == (3, "")
    assert found.err.startswith("mcp-trio: the server broke the protocol: ")
    assert found.err.endswith(". --trace shows the messages\n")


def test_session_starts_the_server_as_the_options_say(
    in_memory: MemoryCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default no variables, the current directory, every revision, and no callbacks."""
    monkeypatch.setenv("OTHER", "x")
    call(in_memory, result_of(TEXT))
    argv, options = in_memory.launches[-1]
    assert argv == ("it",)
    assert options.pop("on_log") is not None
    assert options == {
        "env": {},
        "inherit_env": False,
        "cwd": None,
        "stderr": "forward",
        "versions": ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"),
        "known_peer": None,
        "trace": None,
        "record": None,
        "log_level": "info",
    }
    words = ["--env", "A=b=c", "--env", "OTHER", "--cwd", str(tmp_path), "--inherit-env"]
    more = ["--revision", "2025-06-18", "--log-level", "error", "--root", str(tmp_path), "--trace"]
    call(in_memory, result_of(TEXT), *words, *more)
    _, options = in_memory.launches[-1]
    assert options.pop("trace") is not None
    assert (options["env"], options["inherit_env"]) == ({"A": "b=c", "OTHER": "x"}, True)
    assert (options["cwd"], options["versions"]) == (tmp_path, ("2025-06-18",))
    assert (options["log_level"], options["on_roots"]) == ("error", (tmp_path.resolve(),))


def test_session_on_a_terminal_quotes_the_stderr_of_a_server(in_memory: MemoryCommand) -> None:
    in_memory.server = AnsweringServer(LOGGING, result_of(TEXT))
    in_memory("call", "look", "a=1", terminal=True)
    write = in_memory.launches[-1][1]["stderr"]
    assert write.__name__ == "_print_stderr_line"


def test_session_trace_shows_each_message(in_memory: MemoryCommand) -> None:
    found = call(in_memory, result_of(TEXT), "--trace", "--revision", "2025-06-18")
    lines = found.err.splitlines()
    assert sorted(line[:2] for line in lines) == ["← "] * 4 + ["→ "] * 5
    assert json.loads(lines[-1][2:])["result"] == {"content": [TEXT]}
