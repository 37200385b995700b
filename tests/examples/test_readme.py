"""The README: its code runs, its files exist, and its output is the real one."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```$", README, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


SERVER, CLIENT, MORE, ASKING, ANSWERING, HTTP, ASGI, GUARDED, SOCKET, STREAM, TESTS, LOOP = blocks("python")
SET_UP, COMMANDS, *OVER_HTTP = blocks("console")
TRANSCRIPT = re.findall(r"^\$ mcp-trio (.*)\n((?:(?!\$ ).*\n)*)", COMMANDS, re.MULTILINE)


def without_blank_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def test_readme_server_equals_greeter_example() -> None:
    example = (ROOT / "examples/greeter.py").read_text("utf-8")
    assert without_blank_lines(SERVER) == without_blank_lines(example.partition('"""\n')[2])


def test_readme_protected_server_equals_example() -> None:
    example = (ROOT / "examples/protected.py").read_text("utf-8")
    assert "\n".join(without_blank_lines(example)).endswith("\n".join(without_blank_lines(GUARDED)))


def test_readme_client_calls_server() -> None:
    client = CLIENT.replace('"python"', repr(sys.executable))
    assert client != CLIENT
    done = subprocess.run(
        [sys.executable, "-c", client], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("Hello, Ada!\n", 0), done.stderr


def test_readme_tour_declarations_are_valid() -> None:
    import trio

    import mcp_trio

    server = mcp_trio.Server("tour")
    exec(compile(MORE, "README.md", "exec"), {"server": server, "mcp_trio": mcp_trio, "trio": trio})
    assert repr(server) == "<Server 'tour' with 1 tools, 1 resources, 1 prompts>"


def asking() -> dict[str, Any]:
    """Run the README's tools that ask, and return the module's names."""
    import msgspec

    import mcp_trio
    from mcp_core.types import InputRequiredResult

    names: dict[str, Any] = {
        "server": mcp_trio.Server("asking"),
        "mcp_trio": mcp_trio,
        "msgspec": msgspec,
        "Annotated": Annotated,
        "Literal": Literal,
        "InputRequiredResult": InputRequiredResult,
    }
    exec(compile(ASKING, "README.md", "exec", dont_inherit=True), names)
    return names


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_readme_asking_tools_get_answers(version: str) -> None:
    import trio

    import mcp_trio

    names = asking()
    fill = mcp_trio.answer_form(lambda message, form: {"count": 2})

    async def main() -> None:
        async with mcp_trio.connect(names["server"], versions=[version], on_elicit=fill) as client:
            for tool, text in (("book", "2 at the aisle on KL 1234"), ("rebook", "2 on KL 1234")):
                assert (await client.call_tool(tool, {"flight": "KL 1234"})).text == text

    trio.run(main)


def test_readme_client_answers_and_listens(capsys: pytest.CaptureFixture[str]) -> None:
    import trio

    names = asking()
    exec(compile(ANSWERING, "README.md", "exec", dont_inherit=True), names)
    trio.run(names["main"])
    expected = "How many seats? count where\n2 at the aisle on KL 1234\nChange(list='tools')\n"
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(("words", "shown"), TRANSCRIPT)
def test_readme_command_prints_shown_output(words: str, shown: str) -> None:
    argv = [sys.executable if word == "python" else word for word in shlex.split(words)]
    done = subprocess.run(
        [sys.executable, "-m", "mcp_trio", *argv],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.splitlines() == shown.splitlines()


def commands(block: str) -> list[tuple[str, str]]:
    """Return each command of a transcript, which may have several lines, and its output."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:], ""))
            continue
        words, shown = found.pop()
        found.append((words + line, "") if continues(words) else (words, shown + line))
    return found


def continues(words: str) -> bool:
    """Return True if the command continues: a line ends with a backslash, or inside quotes."""
    if words.endswith("\\\n"):
        return True
    try:
        shlex.split(words)
    except ValueError:
        return True
    return False


# These differ in each run: the port, a date, and a session id, which later commands repeat.
PORT = "8000"
DATE = re.compile(r"^date: .*$", re.MULTILINE)
SESSION = re.compile(r"^mcp-session-id: (.*)$", re.MULTILINE)


@pytest.fixture
def server_over_http() -> Iterator[tuple[str, str]]:
    """Run the server that the README starts. Yield its port and the line that it prints."""
    assert OVER_HTTP, "the README shows nothing over HTTP"
    [(words, _)] = commands(OVER_HTTP[0])
    program, *argv = shlex.split(words)
    assert (program, argv[-1]) == ("mcp-trio", PORT)
    argv = [sys.executable, "-m", "mcp_trio", *argv[:-1], "0"]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            line = server.stderr.readline()
            [port] = re.findall(r":(\d+)/", line)
            yield port, line
        finally:
            server.terminate()
            server.communicate(timeout=60)


@pytest.fixture
def curl() -> None:
    if shutil.which("curl") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("needs curl")
        pytest.skip("needs curl")


def test_readme_curl_gets_shown_responses(curl: None, server_over_http: tuple[str, str]) -> None:
    port, line = server_over_http
    serving, *transcripts = OVER_HTTP
    assert [shown for _, shown in commands(serving)] == [line.replace(port, PORT)]
    played = [command for block in transcripts for command in commands(block)]
    assert len(played) > 5
    values = {PORT: port}
    for words, shown in played:
        assert words.startswith("curl ")
        for shown_value, value in values.items():
            words = words.replace(shown_value, value)
        done = subprocess.run(
            ["sh", "-c", words],
            env={**os.environ, "no_proxy": "*"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.stderr, done.returncode) == ("", 0)
        printed = done.stdout
        values.update(zip(SESSION.findall(shown), SESSION.findall(printed), strict=True))
        for shown_value, value in values.items():
            printed = printed.replace(value, shown_value)
        # curl adds no newline after a body.
        assert DATE.sub("", printed).rstrip("\n") == DATE.sub("", shown).rstrip("\n")


def test_readme_stream_example_connects(capsys: pytest.CaptureFixture[str]) -> None:
    import trio

    names: dict[str, Any] = {"__name__": "greeter", "trio": trio}
    exec(compile(SERVER + STREAM, "README.md", "exec"), names)
    trio.run(names["main"])
    assert capsys.readouterr().out == "Hello, Ada!\n"


def test_readme_http_example_connects(capsys: pytest.CaptureFixture[str]) -> None:
    import trio

    names: dict[str, Any] = {"__name__": "greeter", "trio": trio}
    exec(compile(SERVER + HTTP, "README.md", "exec"), names)
    trio.run(names["main"])
    assert capsys.readouterr().out == "Hello, Ada!\n"


@pytest.mark.requirement("CUST-2")
def test_readme_websocket_example_connects_and_documents_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """The example runs, and the README documents the transport and every close code."""
    import trio

    from mcp_core.http._websocket import CODES

    names: dict[str, Any] = {"__name__": "greeter", "trio": trio}
    exec(compile(SERVER + SOCKET, "README.md", "exec"), names)
    trio.run(names["main"])
    assert capsys.readouterr().out == "Hello, Ada!\n"
    section = README.partition("## Over a WebSocket\n")[2].partition("\n## ")[0]
    subjects = re.findall(r"^- \*(\w+)\.\* (?s:(.*?))(?=^- \*|^$)", section, re.MULTILINE)
    assert [name for name, _ in subjects] == ["Connection", "Framing", "Cancellation", "Closing"]
    assert {int(code) for code in re.findall(r"\b1\d{3}\b", dict(subjects)["Closing"])} == set(CODES.values())


def test_readme_asgi_apps_respond() -> None:
    import trio

    names: dict[str, Any] = {"__name__": "greeter"}
    exec(compile(SERVER + ASGI, "README.md", "exec"), names)
    sent: list[Any] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "OPTIONS",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
    }

    async def receive() -> dict[str, Any]:
        if sent:
            await trio.sleep_forever()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    trio.run(names["app"], scope, receive, send)
    assert sent[0]["status"] == 204
    assert names["outer"].routes[0].app is names["inner"]


def test_readme_test_examples_pass() -> None:
    import trio
    from trio.testing import MockClock

    names: dict[str, Any] = {"__name__": "greeter"}
    exec(compile(SERVER + TESTS, "README.md", "exec"), names)
    trio.run(names["test_a_server"])
    clock = MockClock(autojump_threshold=0)
    trio.run(names["test_a_client"], clock, clock=clock)


def test_readme_loop_equals_blocking_loop_example() -> None:
    example = (ROOT / "examples/blocking_loop.py").read_text("utf-8")
    serve = textwrap.dedent(example.partition("def serve() -> None:\n")[2].partition("\n\n\n")[0])
    assert LOOP.strip() == serve.strip()


@pytest.mark.parametrize("command", ["pip install . && mcp-trio demo", "pip install '.[test]' && pytest"])
def test_readme_set_up_has_two_commands(command: str) -> None:
    assert f"$ {command}\n" in SET_UP


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"[(`]((?:mcp_\w+|tests|examples|benchmarks)/[\w/.]+\.\w+)[)`]", README)))
)
def test_readme_named_file_exists(path: str) -> None:
    assert (ROOT / path).is_file()
