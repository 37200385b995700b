"""The README: its code runs, its files exist, and what it quotes is what stands there."""

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


def test_the_server_is_the_example() -> None:
    example = (ROOT / "examples/greeter.py").read_text("utf-8")
    assert without_blank_lines(SERVER) == without_blank_lines(example.partition('"""\n')[2])


def test_the_protected_server_is_the_example() -> None:
    example = (ROOT / "examples/protected.py").read_text("utf-8")
    assert "\n".join(without_blank_lines(example)).endswith("\n".join(without_blank_lines(GUARDED)))


def test_the_client_talks_to_the_server() -> None:
    client = CLIENT.replace('"python"', repr(sys.executable))
    assert client != CLIENT
    done = subprocess.run(
        [sys.executable, "-c", client], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("Hello, Ada!\n", 0), done.stderr


def test_the_tools_of_the_tour_can_be_declared() -> None:
    import trio

    import mcp_trio

    server = mcp_trio.Server("tour")
    exec(compile(MORE, "README.md", "exec"), {"server": server, "mcp_trio": mcp_trio, "trio": trio})
    assert repr(server) == "<Server 'tour' with 1 tools, 1 resources, 1 prompts>"


def asking() -> dict[str, Any]:
    """The names of the tools that ask, and what they need."""
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
def test_its_tools_ask(version: str) -> None:
    import trio

    import mcp_trio

    names = asking()
    fill = mcp_trio.answer_form(lambda message, form: {"count": 2})

    async def main() -> None:
        async with mcp_trio.connect(names["server"], versions=[version], on_elicit=fill) as client:
            for tool, text in (("book", "2 at the aisle on KL 1234"), ("rebook", "2 on KL 1234")):
                assert (await client.call_tool(tool, {"flight": "KL 1234"})).text == text

    trio.run(main)


def test_its_client_answers_and_listens(capsys: pytest.CaptureFixture[str]) -> None:
    import trio

    names = asking()
    exec(compile(ANSWERING, "README.md", "exec", dont_inherit=True), names)
    trio.run(names["main"])
    said = "How many seats? count where\n2 at the aisle on KL 1234\nChange(list='tools')\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(("words", "shown"), TRANSCRIPT)
def test_the_command_answers_what_it_shows(words: str, shown: str) -> None:
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
    """Each command of a transcript, which may have several lines, and what it prints."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:], ""))
            continue
        words, shown = found.pop()
        found.append((words + line, "") if goes_on(words) else (words, shown + line))
    return found


def goes_on(words: str) -> bool:
    """Whether the command has another line: this one ends with a backslash, or inside of quotes."""
    if words.endswith("\\\n"):
        return True
    try:
        shlex.split(words)
    except ValueError:
        return True
    return False


# What is another one each time: the port, a date, and the id of a session, which later commands repeat.
PORT = "8000"
DATE = re.compile(r"^date: .*$", re.MULTILINE)
SESSION = re.compile(r"^mcp-session-id: (.*)$", re.MULTILINE)


@pytest.fixture
def server_over_http() -> Iterator[tuple[str, str]]:
    """The server that the README starts: its port, and what it prints."""
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


def test_curl_gets_the_answers_that_it_shows(curl: None, server_over_http: tuple[str, str]) -> None:
    port, line = server_over_http
    serving, *transcripts = OVER_HTTP
    assert [shown for _, shown in commands(serving)] == [line.replace(port, PORT)]
    played = [command for block in transcripts for command in commands(block)]
    assert len(played) > 5
    ours = {PORT: port}
    for words, shown in played:
        assert words.startswith("curl ")
        for theirs, here in ours.items():
            words = words.replace(theirs, here)
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
        ours.update(zip(SESSION.findall(shown), SESSION.findall(printed), strict=True))
        for theirs, here in ours.items():
            printed = printed.replace(here, theirs)
        # A body has no end of line of its own.
        assert DATE.sub("", printed).rstrip("\n") == DATE.sub("", shown).rstrip("\n")


def test_the_stream_carries_a_conversation(capsys: pytest.CaptureFixture[str]) -> None:
    import trio

    names: dict[str, Any] = {"__name__": "greeter", "trio": trio}
    exec(compile(SERVER + STREAM, "README.md", "exec"), names)
    trio.run(names["main"])
    assert capsys.readouterr().out == "Hello, Ada!\n"


def test_a_client_at_a_url(capsys: pytest.CaptureFixture[str]) -> None:
    import trio

    names: dict[str, Any] = {"__name__": "greeter", "trio": trio}
    exec(compile(SERVER + HTTP, "README.md", "exec"), names)
    trio.run(names["main"])
    assert capsys.readouterr().out == "Hello, Ada!\n"


@pytest.mark.requirement("CUST-2")
def test_a_client_at_a_websocket(capsys: pytest.CaptureFixture[str]) -> None:
    """It runs, and the transport is documented: connection, framing, cancellation, and each code that is sent."""
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


def test_the_apps() -> None:
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


def test_its_tests_pass() -> None:
    import trio
    from trio.testing import MockClock

    names: dict[str, Any] = {"__name__": "greeter"}
    exec(compile(SERVER + TESTS, "README.md", "exec"), names)
    trio.run(names["test_a_server"])
    clock = MockClock(autojump_threshold=0)
    trio.run(names["test_a_client"], clock, clock=clock)


def test_the_loop_is_the_example() -> None:
    example = (ROOT / "examples/blocking_loop.py").read_text("utf-8")
    serve = textwrap.dedent(example.partition("def serve() -> None:\n")[2].partition("\n\n\n")[0])
    assert LOOP.strip() == serve.strip()


@pytest.mark.parametrize("command", ["pip install . && mcp-trio demo", "pip install '.[test]' && pytest"])
def test_the_set_up_is_two_lines(command: str) -> None:
    assert f"$ {command}\n" in SET_UP


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"[(`]((?:mcp_\w+|tests|examples|benchmarks)/[\w/.]+\.\w+)[)`]", README)))
)
def test_the_files_it_names_exist(path: str) -> None:
    assert (ROOT / path).is_file()
