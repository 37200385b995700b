"""The command as its users meet it: processes with arguments, output, exit statuses; and how `KEY=VALUE` is read.

What talks to a server really starts one. The reading of arguments is a function and tested as one.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mcp_trio
from mcp_trio._command._arguments import arguments_from, describe
from mcp_trio._command._problem import Problem
from mcp_trio._command._screen import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
GREETER = ("--", sys.executable, str(ROOT / "examples" / "greeter.py"))
TEAHOUSE = ("--", sys.executable, "-m", "mcp_trio.examples.teahouse")
COMMAND = (sys.executable, "-m", "mcp_trio")

# Speaks none of MCP, with the standard library only, so that it starts at once.
DEAD = ("--", sys.executable, "-S", "-c", "import sys; sys.exit('the disk is full')")
SILENT = ("--", sys.executable, "-S", "-c", "import sys; sys.stdin.read()")


def run(
    *words: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def output_of(*words: str, status: int = 0) -> str:
    result = run(*words)
    assert result.returncode == status, result.stderr
    assert "\x1b" not in result.stdout + result.stderr
    return result.stdout


@pytest.fixture
def server(tmp_path: Path) -> ServerFile:
    return ServerFile(tmp_path / "server.py")


class ServerFile:
    """A server file that a test writes, and the words that make it a target."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, source: str) -> tuple[str, ...]:
        self.path.write_text("import mcp_trio\n" + textwrap.dedent(source))
        return ("--", *COMMAND, "run", str(self.path))


# -- Words ----------------------------------------------------------------------------------------------------------------


def test_version() -> None:
    assert output_of("--version") == f"mcp-trio {mcp_trio.__version__}\n"


@pytest.mark.parametrize("words", [(), ("demo",), ("run",), ("inspect",), ("call",)])
def test_help_shows_the_exit_statuses(words: tuple[str, ...]) -> None:
    text = output_of(*words, "--help")
    assert "exit status:" in text
    assert "130  Ctrl+C" in text


MISUSED = [
    ((), "usage: mcp-trio COMMAND"),
    (("destroy",), "invalid choice: 'destroy'"),
    (("demo", "me"), "unrecognized arguments: me"),
    (("run",), "required: FILE[:NAME]"),
    (("run", "a.py", "b.py"), "unrecognized arguments: b.py"),
    (("inspect",), "its command comes last, behind `--`, as in: mcp-trio inspect -- python server.py"),
    (("inspect", "--"), "mcp-trio inspect -- python server.py"),
    (("inspect", "python", "-m", "weather"), "behind `--`: mcp-trio inspect -- python -m weather"),
    (("inspect", "https://example.com/mcp"), "this release talks to servers that it starts itself"),
    (("inspect", "--", "https://example.com/mcp"), "https://example.com/mcp cannot be reached"),
    (("inspect", "me", *SILENT), "unrecognized arguments: me"),
    (("inspect", "--jsno", *SILENT), "unrecognized arguments: --jsno"),
    (("inspect", "--revision", "2024", *SILENT), "choose from '2026-07-28'"),
    (("inspect", "--timeout", "soon", *SILENT), "invalid number of seconds value: 'soon'"),
    (("inspect", "--timeout", "0", *SILENT), "0 is no time to wait"),
    (("call",), "required: TOOL"),
    (("call", "greet", "name=World"), "as in: mcp-trio call greet name=World -- python server.py"),
    (("call", "fetch", "uri=http://a/"), "no server"),
    (("call", "greet", "--deep", *SILENT), "unrecognized arguments: --deep"),
]


@pytest.mark.parametrize(("words", "complaint"), MISUSED)
def test_misuse_is_explained(words: tuple[str, ...], complaint: str) -> None:
    result = run(*words)
    assert result.returncode == 2
    assert result.stdout == ""
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


# -- inspect --------------------------------------------------------------------------------------------------------------


def test_inspect_shows_what_there_is() -> None:
    assert output_of("inspect", *GREETER) == textwrap.dedent("""\
        greeter 0, speaking revision 2026-07-28
          capabilities: tools

        Tools (1)
          greet
              Say hello to someone by name.
              name  string, required
        """)


def test_inspect_shows_everything() -> None:
    text = output_of("inspect", *TEAHOUSE)
    for line in (
        "teahouse 1.0, speaking revision 2026-07-28",
        "  The tea house",
        "    Look at the menu before you order.",
        "      cups  integer, default 1  how many.",
        "  tea://menu  (menu, text/plain)",
        "  tea://menu/{tea}  (card, text/plain)",
        "  recommend",
        "      mood  required",
    ):
        assert line in text.splitlines()


@pytest.mark.parametrize("version", ["2026-07-28", "2024-11-05"])
def test_inspect_as_json(version: str) -> None:
    found = json.loads(output_of("inspect", "--json", "--revision", version, *TEAHOUSE))
    assert list(found) == ["server", "tools", "resources", "resourceTemplates", "prompts"]
    assert found["server"]["name"] == "teahouse"
    assert found["server"]["protocolVersion"] == version
    assert set(found["server"]["capabilities"]) == {"tools", "resources", "prompts"}
    assert found["server"]["instructions"].startswith("Look at the menu")
    assert [tool["inputSchema"]["required"] for tool in found["tools"]] == [["tea"], ["tea", "minutes"]]
    assert [template["uriTemplate"] for template in found["resourceTemplates"]] == ["tea://menu/{tea}"]


def test_inspect_does_not_ask_for_what_is_not_declared() -> None:
    result = run("inspect", "--json", "--trace", *GREETER)
    assert json.loads(result.stdout)["prompts"] == []
    assert "prompts/list" not in result.stderr


def test_a_description_cannot_steer_the_terminal() -> None:
    assert clean("a\x1b[2Jb\r\nc\td\x9be\u202ef") == "a\u241b[2Jb\nc\td\ufffde\ufffdf"


# -- call -----------------------------------------------------------------------------------------------------------------


def test_call_shows_the_text_alone() -> None:
    assert output_of("call", "greet", "name=World", *GREETER) == "Hello, World!\n"


def test_call_as_json() -> None:
    result = json.loads(output_of("call", "price", "--json", "tea=assam", "cups=3", *TEAHOUSE))
    assert result["content"] == [{"type": "text", "text": "12.0"}]
    assert result["structuredContent"] == 12.0


def test_json_is_utf_8_in_any_locale() -> None:
    result = run("call", "greet", "--json", "name=Zoë", *GREETER, env={"PYTHONIOENCODING": "ascii"})
    assert json.loads(result.stdout)["content"][0]["text"] == "Hello, Zoë!"


def test_call_says_when_the_tool_failed() -> None:
    result = run("call", "price", "tea=coffee", *TEAHOUSE)
    assert result.returncode == 1
    assert result.stdout == "no coffee today; on the menu: assam, rooibos, sencha\n"
    assert result.stderr == "mcp-trio: the tool price says that this is an error\n"


CALLS = [
    ("greet", ["name=1"], 0, "Hello, 1!"),
    ("greet", ['{"name": "World"}'], 0, "Hello, World!"),
    ("greet", ["name=you", '{"name": "World"}'], 0, "Hello, World!"),
    ("greet", ['{"name": 1}'], 1, "Invalid argument `name`"),  # unchecked: it is the server that complains
    ("gret", ["name=1"], 2, "the server has no tool gret; its tools are greet. Did you mean greet?"),
    ("greet", ["nam=1"], 2, "the tool greet has no argument nam; it takes name. Did you mean name?"),
    ("greet", [], 2, "the tool greet needs name: add name=..."),
    ("greet", ["World"], 2, "'World' is no argument: write KEY=VALUE"),
]


@pytest.mark.parametrize(("tool", "arguments", "status", "text"), CALLS)
def test_call_takes_arguments(tool: str, arguments: list[str], status: int, text: str) -> None:
    result = run("call", tool, *arguments, *GREETER)
    assert result.returncode == status
    assert text in (result.stderr if status == 2 else result.stdout)


def test_call_shows_progress_and_messages_on_stderr() -> None:
    result = run("call", "brew", "tea=assam", "minutes=2", "--trace", "--revision", "2025-06-18", *TEAHOUSE)
    assert result.stdout == "A pot of assam, steeped for 2 minutes.\n"
    lines = result.stderr.splitlines()
    assert "1 of 2  the assam steeps" in lines
    crossed = [line for line in lines if line.startswith(("→ ", "← "))]
    assert len(crossed) == len(lines) - 2
    messages = [json.loads(line[2:]) for line in crossed]
    assert [line[0] for line in crossed[:3]] == ["→", "←", "→"]
    assert messages[0]["params"]["protocolVersion"] == "2025-06-18"
    assert messages[-1]["result"]["content"][0]["text"] in result.stdout


def test_call_shows_all_kinds_of_content(server: ServerFile) -> None:
    target = server("""
        from mcp_core.registry import Audio, File, Image
        from mcp_core.types import CallToolResult, ResourceLink, TextContent

        server = mcp_trio.Server("gallery")

        @server.tool
        def show() -> list:
            "Show things."
            return [
                "a text", Image(b"12345"), Audio(b"123456789"), File("inside", "a://b"), File(b"12", "c://d"),
                ResourceLink(uri="e://f", name="link"),
            ]

        @server.tool
        def both() -> CallToolResult:
            "Text and something else."
            return CallToolResult(content=[TextContent("a text")], structured_content={"a": [1]})

        @server.tool
        def wrapped() -> CallToolResult:
            "The same twice."
            return CallToolResult(content=[TextContent('{"result":1}')], structured_content={"result": 1})

        @server.tool
        def table() -> dict[str, list[int]]:
            "Data."
            return {"a": [1]}
    """)
    assert output_of("call", "show", *target).splitlines() == [
        "a text",
        "[image, image/png, 5 bytes; --json shows them]",
        "[audio, audio/wav, 9 bytes; --json shows them]",
        "inside",
        "[c://d, application/octet-stream, 2 bytes; --json shows them]",
        "[e://f: link]",
    ]
    data = '{\n  "a": [\n    1\n  ]\n}\n'
    assert output_of("call", "both", *target) == "a text\nstructured content:\n" + data
    assert output_of("call", "table", *target) == data
    assert output_of("call", "wrapped", *target) == '{"result":1}\n'


# -- Servers that do not do what they should --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        (("--", "no-such-program"), "cannot start no-such-program: no program of that name on PATH"),
        (DEAD, "(exit status 1). Is that an MCP server that speaks over stdin and stdout?"),
        (("--timeout", "0.3", *SILENT), "did not answer within 0.3 s"),
    ],
)
def test_no_conversation(target: tuple[str, ...], complaint: str) -> None:
    result = run("inspect", *target)
    assert result.returncode == 3
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


def test_the_last_words_of_a_server_are_shown_once() -> None:
    result = run("inspect", "--revision", "2025-11-25", *DEAD)
    said, complaint = result.stderr.splitlines()
    assert said == "the disk is full"
    assert complaint.startswith("mcp-trio: ")


def test_servers_that_fail_during_a_call(server: ServerFile) -> None:
    target = server("""
        import os
        import trio

        app = mcp_trio.Server("frail")

        @app.tool
        def die() -> str:
            "Dies."
            os._exit(7)

        @app.tool
        async def sleep() -> str:
            "Sleeps."
            await trio.sleep(60)
            return ""

        @app.tool
        def refuse() -> str:
            "Refuses."
            raise mcp_trio.McpError(-5, "not today")
    """)
    died = run("call", "die", *target)
    assert (died.returncode, died.stderr) == (
        3,
        "mcp-trio: the server closed the connection before it had answered; its stderr, if any, is above\n",
    )
    slow = run("call", "sleep", "--timeout", "0.9", *target)
    assert slow.returncode == 3
    assert (
        slow.stderr == "mcp-trio: no answer to tools/call within 0.9 s; --timeout gives the server longer\n"
    )
    refused = run("call", "refuse", *target)
    assert refused.returncode == 1
    assert refused.stderr == "mcp-trio: the server answered with an error: not today (-5)\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_call_quietly(server: ServerFile, number: signal.Signals, status: int) -> None:
    target = server("""
        import sys
        import trio

        app = mcp_trio.Server("patient")

        @app.tool
        async def wait() -> str:
            "Waits."
            print("waiting")
            try:
                await trio.sleep(60)
            finally:
                print("the server was told")
            return ""
    """)
    process = subprocess.Popen([*COMMAND, "call", "wait", *target], stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(number)
        assert process.stderr.read() == "the server was told\n"
    assert process.returncode == status


# -- demo -----------------------------------------------------------------------------------------------------------------


def test_demo(tmp_path: Path) -> None:
    (tmp_path / "trio.py").write_text("raise SystemExit('not the real one')")
    began = time.monotonic()
    # Not `-m`, which would look for trio in that directory itself.
    program = "import sys; sys.path.remove(''); from mcp_trio._command import main; sys.exit(main(['demo']))"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    text = result.stdout
    for part in (
        '→ {"id":1,"method":"server/discover"',
        '→ {"id":1,"method":"initialize"',
        '→ {"method":"notifications/initialized"}\n>>> await client.list_tools()',
        ">>> await client.call_tool('price', {'tea': 'sencha', 'cups': 2})\n  → {\"id\":3,\"method\":\"tools/call\"",
        '"method":"resources/read"',
        '"method":"prompts/get"',
        '← {"method":"notifications/progress"',
    ):
        assert part in text
    assert text.count('→ {"method":"notifications/cancelled"') == 2
    assert max(map(len, text.splitlines())) <= 120
    # Three seconds are promised to people; a machine under test may be busy.
    assert time.monotonic() - began < 20


def test_a_reader_that_leaves_early_is_no_error() -> None:
    with subprocess.Popen(
        [*COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


# -- run ------------------------------------------------------------------------------------------------------------------


FILES = [
    ("one.py", "anything = mcp_trio.Server('found')", ""),
    ("alias.py", "server = mcp = mcp_trio.Server('found')", ""),
    ("usual.py", "old = mcp_trio.Server('old'); mcp = mcp_trio.Server('found')", ""),
    ("named.py", "server = mcp_trio.Server('old'); new = mcp_trio.Server('found')", ":new"),
    ("main.py", "x = mcp_trio.Server('found')\nif __name__ == '__main__': mcp_trio.run(x)", ""),
    ("beside.py", "from other import x", ""),
]


@pytest.mark.parametrize(("name", "source", "which"), FILES)
def test_run_finds_the_server(tmp_path: Path, name: str, source: str, which: str) -> None:
    (tmp_path / "other.py").write_text("import mcp_trio\nx = mcp_trio.Server('found')")
    (tmp_path / name).write_text("import mcp_trio\nprint('importing', flush=True)\n" + source)
    result = run("inspect", "--json", "--", *COMMAND, "run", f"{tmp_path / name}{which}")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["server"]["name"] == "found"
    assert result.stderr == "importing\n"


BROKEN = [
    ("none.py", "x = 1", 2, "none.py has no server. Make one: "),
    (
        "two.py",
        "a, b = mcp_trio.Server('a'), mcp_trio.Server('b')",
        2,
        "Say which one: mcp-trio run two.py:a",
    ),
    ("two.py:c", "a, b = mcp_trio.Server('a'), mcp_trio.Server('b')", 2, "called c; its servers are: a, b"),
    ("none.py:c", "c = 1", 2, "called c; it has none"),
    ("syntax.py", "def f(:", 1, "syntax.py could not be imported: SyntaxError"),
    ("missing.py", "import no_such_module", 1, f"install it for {sys.executable}"),
    ("raises.py", "def f(): raise KeyError\nf()", 1, "raises.py could not be imported: KeyError\n"),
    ("text.txt", "", 2, "text.txt is no Python file"),
    ("directory", None, 2, "directory is a directory"),
    ("absent.py", None, 2, "there is no file absent.py"),
]


@pytest.mark.parametrize(("name", "source", "status", "complaint"), BROKEN)
def test_run_explains_what_is_wrong(
    tmp_path: Path, name: str, source: str | None, status: int, complaint: str
) -> None:
    (tmp_path / "directory").mkdir()
    if source is not None:
        (tmp_path / name.partition(":")[0]).write_text(f"import mcp_trio\n{source}\n")
    result = run("run", name, cwd=tmp_path)
    assert result.returncode == status
    assert result.stdout == ""
    assert complaint in result.stderr.splitlines(keepends=True)[-1]
    assert ("Traceback" in result.stderr) is (status == 1 and name != "syntax.py")
    assert "_command" not in result.stderr
    assert "importlib" not in result.stderr


def test_a_faulty_declaration_is_shown_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "import mcp_trio\ns = mcp_trio.Server('s')\n@s.tool\ndef f(*a): 'Bad.'\n"
    )
    result = run("run", "bad.py", cwd=tmp_path)
    assert result.stderr.count("  File ") == 1
    assert "line 3" in result.stderr


def test_run_logs_to_stderr_and_touches_nothing_else(server: ServerFile) -> None:
    target = server("""
        import logging
        import sys

        app = mcp_trio.Server("curious")

        @app.tool
        def look() -> list[str]:
            "Look around."
            return [str(len(logging.getLogger().handlers)), *sorted({"argparse", "rich"} & set(sys.modules))]

        @app.tool
        def fail() -> str:
            "Fail."
            raise KeyError("secret")
    """)
    assert json.loads(output_of("call", "look", "--json", *target))["content"][0]["text"] == '["0"]'
    result = run("call", "fail", *target)
    assert result.returncode == 1
    assert "secret" not in result.stdout
    assert " ERROR " in result.stderr
    assert "KeyError: 'secret'" in result.stderr


def test_run_leaves_the_logging_of_the_file_alone(server: ServerFile) -> None:
    target = server("""
        import logging

        logging.basicConfig(format="mine: %(message)s")
        app = mcp_trio.Server("own")

        @app.tool
        def fail() -> str:
            "Fail."
            raise KeyError("secret")
    """)
    result = run("call", "fail", *target)
    assert result.stderr.startswith("mine: ")
    assert result.stderr.count("Traceback") == 1


# -- A person at a terminal -------------------------------------------------------------------------------------------------


def on_a_terminal(*words: str, **env: str) -> str:
    """All that is shown, with ESC written as ^."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "60", **env},
    ):
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65_536):
                shown += chunk
        except OSError:  # the last one has closed it, as Linux says it
            pass
    os.close(ours)
    return shown.decode().replace("\x1b", "^").replace("\r\n", "\n")


def test_a_terminal_gets_colour_and_folded_text(server: ServerFile) -> None:
    target = server("""
        app = mcp_trio.Server("wide", instructions="word " * 30)

        @app.tool
        def evil(a: int) -> str:
            "Is \\x1b[2J bad."
            return "\\x1b[2J"
    """)
    text = on_a_terminal("inspect", *target)
    assert "^[1mwide 0^[0m" in text
    assert "Is \u241b[2J bad." in text
    assert max(len(line) for line in text.splitlines() if "word" in line) <= 60
    assert "\u241b[2J" in on_a_terminal("call", "evil", "a=1", *target)
    assert "^[3" not in on_a_terminal("inspect", *target, NO_COLOR="1")


def test_a_terminal_gets_a_bar() -> None:
    text = on_a_terminal("call", "brew", "tea=assam", "minutes=4", "--trace", *TEAHOUSE)
    assert "the assam steeps" in text
    assert "━" in text
    assert "^[36m→ ^[0m" in text
    assert "A pot of assam, steeped for 4 minutes." in text


def test_someone_who_starts_a_server_by_hand_is_told_what_it_waits_for() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "run", GREETER[-1]], stdin=theirs, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert "greeter is waiting for a client on stdin" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == ""
    assert process.returncode == 130
    os.close(ours)
    os.close(theirs)


# -- KEY=VALUE --------------------------------------------------------------------------------------------------------------

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "days": {"type": "integer"},
        "size": {"type": "number"},
        "wet": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "where": {"type": "object"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "name": {"type": ["string", "null"]},
        "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        "unit": {"enum": ["C", "F", 1]},
        "fixed": {"const": 2.5},
        "any": {},
        "point": {"$ref": "#/$defs/a~1b"},
        "both": {"allOf": [{"type": ["integer", "string"]}, {"type": ["integer", "null"]}]},
        "round": {"$ref": "#/$defs/round"},
        "lost": {"$ref": "#/nowhere"},
        "odd": True,
    },
    "$defs": {"a/b": {"type": "object"}, "round": {"$ref": "#/$defs/round"}},
}

READ = [
    ("text=007", "007"),
    ("text=", ""),
    ("text=a=b", "a=b"),
    ("text=null", "null"),
    ('text={"a": 1}', '{"a": 1}'),
    ("days=-3", -3),
    ("days=3.0", 3),
    ("size=3", 3),
    ("size=3.0", 3.0),
    ("size=1e3", 1000.0),
    ("wet=true", True),
    ('tags=["a"]', ["a"]),
    ('where={"a": null}', {"a": None}),
    ("maybe=null", None),
    ("maybe=4", 4),
    ("name=null", None),
    ("name=3", "3"),
    ("either=3", 3),
    ("either=three", "three"),
    ("unit=C", "C"),
    ("unit=1", 1),
    ("fixed=2.5", 2.5),
    ("any=3", 3),
    ("any=three", "three"),
    ("point={}", {}),
    ("both=3", 3),
    ("round=x", "x"),
    ("lost=[1]", [1]),
    ("odd=1", 1),
]


@pytest.mark.parametrize(("word", "value"), READ)
def test_values_are_read_as_the_schema_says(word: str, value: object) -> None:
    found = arguments_from([word], SCHEMA, "tool")[word.partition("=")[0]]
    assert found == value
    assert type(found) is type(value)


MISFITS = [
    ("days=three", "days must be integer, not 'three'. Write for example days=3"),
    ("days=3.5", "days must be integer"),
    ("days=", "days must be integer, not ''"),
    ("days=true", "days must be integer"),
    ("size=NaN", "size must be number, not 'NaN'. Write for example size=3 or size=1.5"),
    ("size=1e999", "size must be number"),
    ("wet=yes", "wet must be boolean, not 'yes'. Write for example wet=true"),
    ("tags=a,b", "tags must be array of string, not 'a,b'. Write for example tags='[1, 2]'"),
    ("tags=" + "[" * 100_000, "tags must be array"),
    ("where=[]", "where must be object"),
    ("maybe=x", "maybe must be integer or null, not 'x'. Write for example maybe=3 or maybe=null"),
    ("unit=K", 'unit must be "C" or "F" or 1, not \'K\'. Write for example unit=C or unit=F or unit=1'),
    ("fixed=2", "fixed must be 2.5, not '2'"),
    ("tex=a", "the tool tool has no argument tex; it takes text, days,"),
    ("tex=a", "Did you mean text?"),
    ("=a", "'=a' is no argument"),
    ("a", "'a' is no argument"),
    ("{a}", "'{a}' is not JSON"),
    ("text=\udcff", "is not UTF-8"),
]


@pytest.mark.parametrize(("word", "complaint"), MISFITS)
def test_what_does_not_fit_is_refused_with_a_cure(word: str, complaint: str) -> None:
    with pytest.raises(Problem) as caught:
        arguments_from([word], SCHEMA, "tool")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "words", "arguments"),
    [
        ({"type": "object"}, ["a=1", "b=x"], {"a": 1, "b": "x"}),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}, ["b=1"], {"b": 1}),
        ({"properties": {"a": {}}, "required": ["a"]}, ["{}"], {}),
        ({"properties": {"a": {}}}, ["a=1", '{"b": 2}', '{"a": 3}'], {"a": 3, "b": 2}),
        ({"properties": ["nonsense"], "required": 3}, ["a=1"], {"a": 1}),
    ],
)
def test_objects_and_open_schemas(
    schema: dict[str, Any], words: list[str], arguments: dict[str, Any]
) -> None:
    assert arguments_from(words, schema, "tool") == arguments


def test_a_tool_without_arguments_takes_none() -> None:
    with pytest.raises(Problem, match="has no argument a; it takes none"):
        arguments_from(["a=1"], {"additionalProperties": False}, "tool")


def test_types_in_words() -> None:
    words = {name: describe(schema, SCHEMA) for name, schema in SCHEMA["properties"].items()}
    assert words["tags"] == "array of string"
    assert words["name"] == "string or null"
    assert words["size"] == "number"
    assert words["any"] == words["odd"] == "anything"
    assert words["unit"] == '"C" or "F" or 1'
