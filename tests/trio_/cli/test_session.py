"""Sessions: failing servers, signals, log messages and URLs."""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

import pytest
import trio
from msgspec import UNSET

from mcp_core import ConnectFailed, RemoteProtocolError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import Target, _slow_notice, guess_endpoint
from tests.harness.world.command import (
    COMMAND,
    DEAD,
    ROOT,
    SILENT,
    Hosted,
    ServerFile,
    on_a_terminal,
    run,
    served,
)
from tests.harness.world.threaded_http import threaded_http_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDED = "(exit status 1). Is that an MCP server on stdin and stdout?"
NO_CONVERSATION = [
    (
        ("inspect",),
        ("--", "no-such-program"),
        "cannot start no-such-program: no program of that name on PATH",
    ),
    (("inspect",), DEAD, ENDED),
    (("call", "a"), DEAD, ENDED),
    (("read", "a://b"), DEAD, ENDED),
    (("prompt", "a"), DEAD, ENDED),
    (("complete", "a", "b", "c"), DEAD, ENDED),
    (("read", "a://b", "--timeout", "0.3"), SILENT, "did not answer within 0.3 s"),
]


@pytest.mark.parametrize(("words", "target", "complaint"), NO_CONVERSATION)
def test_command_without_connection_exits_with_3(
    words: tuple[str, ...], target: tuple[str, ...], complaint: str
) -> None:
    result = run(*words, *target)
    assert result.returncode == 3
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("target", ["file", "command"])
def test_server_that_crashes_at_its_start_is_started_once(
    server: ServerFile, tmp_path: Path, target: str
) -> None:
    command = server(f"""
        print("started", file=open({str(tmp_path / "starts")!r}, "a"))
        raise RuntimeError("no disk")
    """)
    result = run("inspect", *(command if target == "command" else [str(server.path)]))
    assert (tmp_path / "starts").read_text() == "started\n"
    assert result.returncode == 3
    assert result.stderr.count("Traceback") == 1
    assert result.stderr.splitlines()[-1].count("(exit status 1)") == 1


def test_stderr_of_server_is_shown_once() -> None:
    result = run("inspect", "--revision", "2025-11-25", *DEAD)
    output, complaint, *_ = result.stderr.splitlines()
    assert output == "the disk is full"
    assert complaint.startswith("mcp-trio: ")


def test_variables_that_a_server_did_not_get_are_named_after_its_own_words() -> None:
    """They are a guess, and it may have said what is wrong."""
    env = {"SSH_AUTH_SOCK": "/tmp/agent"}
    result = run("inspect", "--revision", "2025-11-25", *DEAD, env=env)
    output, complaint, withheld = result.stderr.splitlines()
    assert output == "the disk is full"
    assert ENDED in complaint
    assert withheld.startswith("  | set here, and not passed on to it: ")
    assert "SSH_AUTH_SOCK" in withheld


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), ["", ""]),
        (("--env", "API_TOKEN"), ["secret", ""]),
        (("--env", "API_TOKEN=a=b", "--env", "OTHER="), ["a=b", ""]),
        (("--inherit-env",), ["secret", "x"]),
        (("--inherit-env", "--env", "OTHER=y"), ["secret", "y"]),
    ],
)
def test_environment_of_server_has_what_is_given(
    options: tuple[str, ...], expected: list[str], server: ServerFile, tmp_path: Path
) -> None:
    """By default the server sees none of the user's secrets; each option lets some through."""
    target = server("""
        import os

        app = mcp_trio.Server("facts")

        @app.tool
        def facts() -> list[str]:
            "Facts."
            return [os.environ.get(name, "") for name in ("API_TOKEN", "OTHER")] + [os.getcwd()]
    """)
    env = {"API_TOKEN": "secret", "OTHER": "x"}
    words = ("call", "facts", "--json", *options, "--cwd", str(tmp_path), *target)
    result = run(*words, env=env)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["structuredContent"] == [*expected, str(tmp_path)]


FRAIL = """
    import os
    import trio

    app = mcp_trio.Server("frail")

    @app.resource("a://die")
    @app.prompt
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
"""


def test_server_death_during_call_is_explained(server: ServerFile) -> None:
    """Status 3 means that the server failed."""
    target = server(FRAIL)
    for words in ("call", "die"), ("read", "a://die"), ("prompt", "die"):
        died = run(*words, *target)
        assert (died.returncode, died.stderr) == (
            3,
            (
                "mcp-trio: the server closed the connection (exit status 7) before it answered; its"
                " stderr, if any, is above\n"
            ),
        )


def test_server_that_is_slow_or_refuses_is_explained(server: ServerFile) -> None:
    """Status 3 means that the server failed, 1 that it refused; a timeout names its option."""
    server(FRAIL)
    # Over stdio the time would be the start's, too.
    with served(server.path) as site:
        slow = run("call", "sleep", "--timeout", "2", site.url)
        refused = run("call", "refuse", site.url)
    assert slow.returncode == 3
    assert "no answer to tools/call within 2 s" in slow.stderr
    assert slow.stderr.endswith("; a larger --timeout allows more time\n")
    assert refused.returncode == 1
    assert refused.stderr == "mcp-trio: the server answered with an error: not today (-5)\n"


PATIENT = """
    import sys

    import trio

    app = mcp_trio.Server("patient")

    @app.resource("a://b")
    @app.prompt
    @app.tool
    async def wait() -> str:
        "Waits."
        print("waiting", file=sys.stderr)
        try:
            await trio.sleep(60)
        finally:
            print("the call was cancelled", file=sys.stderr)
        return ""
"""


SIGNALS = [
    (("call", "wait"), signal.SIGINT, 130),
    (("call", "wait"), signal.SIGTERM, 143),
    (("read", "a://b"), signal.SIGINT, 130),
    (("prompt", "wait"), signal.SIGINT, 130),
]


@pytest.mark.parametrize(("words", "number", "status"), SIGNALS)
def test_signal_cancels_call_without_output(
    server: ServerFile, words: tuple[str, ...], number: signal.Signals, status: int
) -> None:
    process = subprocess.Popen(
        [*COMMAND, *words, *server(PATIENT)], stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(number)
        assert process.stderr.read() == "the call was cancelled\n"
    assert process.returncode == status


# -- Log messages ------------------------------------------------------------------------------

CHATTY = """
    app = mcp_trio.Server("chatty")

    @app.resource("a://b")
    @app.prompt
    @app.tool
    async def say(context: mcp_trio.Context) -> str:
        "Says it."
        await context.log("debug", "details")
        await context.log("info", "a\\x1b[2Jb", logger="db")
        await context.log("error", {"code": 7})
        return "logged"
"""
DETAILS, WORDS, TROUBLE = "[debug] details", "[info db] a\\u001b[2Jb", '[error] {"code":7}'
LEVELS = [
    ((), [WORDS, TROUBLE]),
    (("--log-level", "debug"), [DETAILS, WORDS, TROUBLE]),
    (("--log-level", "notice"), [TROUBLE]),
    (("--log-level", "alert"), []),
]


@pytest.fixture(scope="module")
def chatty(hosted: Hosted) -> tuple[str, ...]:
    return hosted(CHATTY)


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize(("options", "lines"), LEVELS)
def test_call_log_messages_are_printed_to_stderr(
    chatty: tuple[str, ...], options: tuple[str, ...], lines: list[str], version: str
) -> None:
    result = run("call", "say", *options, "--revision", version, *chatty)
    assert (result.returncode, result.stdout) == (0, "logged\n")
    assert result.stderr.splitlines() == lines


@pytest.mark.parametrize("words", [("read", "a://b"), ("prompt", "say")])
def test_read_and_prompt_log_messages_are_printed(
    server: ServerFile, words: tuple[str, ...]
) -> None:
    assert run(*words, "--log-level", "error", *server(CHATTY)).stderr == f"{TROUBLE}\n"


def test_call_terminal_log_messages_are_coloured(server: ServerFile) -> None:
    shown = on_a_terminal("call", "say", *server(CHATTY))
    assert "^[2m[info db]^[0m a\\u001b[2Jb\n" in shown
    assert '^[1;31m[error]^[0m {"code":7}\n' in shown


def test_log_level_for_server_without_logging_warns(server: ServerFile) -> None:
    target = server("""
        app = mcp_trio.Server("mute", logging=False)

        @app.tool
        def say() -> str:
            "Says nothing beside."
            return "logged"
    """)
    assert run("call", "say", *target).stderr == ""
    result = run("call", "say", "--log-level", "debug", *target)
    assert (result.returncode, result.stdout) == (0, "logged\n")
    assert result.stderr == "mcp-trio: the server did not declare that it sends log messages\n"


# -- Servers at a URL --------------------------------------------------------------------------

TEAHOUSE = ROOT / "mcp_trio" / "examples" / "teahouse.py"
USES = [
    (("inspect",), "teahouse 1.0, speaking revision "),
    (("call", "price", "tea=sencha", "cups=2"), "9.0\n"),
    (("read", "tea://menu"), "assam: 4.00\n"),
    (("prompt", "recommend", "mood=calm"), "calm"),
]


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_commands_work_with_url(version: str) -> None:
    with served(TEAHOUSE) as site:
        for words, shown in USES:
            result = run(*words, "--revision", version, site.url)
            assert (result.returncode, result.stderr) == (0, ""), words
            assert shown in result.stdout
        assert run("inspect", "--", site.url).returncode == 0


def test_commands_work_with_websocket_url() -> None:
    with served(TEAHOUSE) as site:
        url = site.url.replace("http", "ws", 1)
        result = run("call", "brew", "tea=assam", "minutes=2", "--trace", url)
        refused = run("inspect", url + "x")
    assert result.returncode == 0, result.stderr
    assert "mcp-trio: connected over WebSocket" in result.stderr
    assert '"notifications/progress"' in result.stderr
    assert refused.returncode != 0
    assert "no WebSocket: HTTP status 404" in refused.stderr


def test_trace_of_url_prints_messages() -> None:
    with served(TEAHOUSE) as site:
        traced = run(
            "call", "brew", "tea=assam", "minutes=2", "--trace", site.url
        ).stderr.splitlines()
    assert "mcp-trio: connected over HTTP/1.1" in traced
    arrows = [line[0] for line in traced if line[0] in "→←"]
    assert arrows[:3] == ["→", "←", "→"]
    assert any('"notifications/progress"' in line for line in traced)


def test_complete_and_listen_accept_url(server: ServerFile) -> None:
    """Both subcommands reach a server over HTTP, and `listen` ends when the server does."""
    server("""
        app = mcp_trio.Server("changing")

        @app.tool
        def change() -> str:
            "Changes."
            app.changed(tools=True)
            return ""

        @app.prompt
        def ask(mood: str) -> str:
            "Asks."
            return mood

        @app.completion("ask", "mood")
        def moods(typed: str) -> list[str]:
            return ["calm", "cold"]
    """)
    with served(server.path) as site:
        assert run("complete", "ask", "mood", "c", site.url).stdout == "calm\ncold\n"
        listening = subprocess.Popen(
            [*COMMAND, "listen", "--tools", site.url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with listening:
            assert listening.stdout is not None
            assert listening.stderr is not None
            assert listening.stderr.readline() == "mcp-trio: listening to tools\n"
            assert run("call", "change", site.url).returncode == 0
            assert listening.stdout.readline() == "tools\n"
            site.end()
            assert listening.wait() in (0, 3)
            assert "stderr, if any" not in listening.stderr.read()


def test_url_connection_refused_is_explained() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    result = run("inspect", f"http://127.0.0.1:{port}/mcp")
    assert (result.returncode, result.stdout) == (3, "")
    assert f"cannot connect to 127.0.0.1:{port}: connection refused" in result.stderr
    assert result.stderr.endswith("is the server running, and on this port?\n")


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_url_answering_404_is_explained_once(version: str) -> None:
    with served(TEAHOUSE) as site:
        result = run("inspect", "--revision", version, site.url.replace("/mcp", "/other"))
    assert result.returncode == 3
    assert "404" in result.stderr
    assert result.stderr.count("the URL of an MCP server?") == 1


@pytest.mark.parametrize("scheme", ["http", "ws"])
def test_url_without_path_tries_mcp_and_reports_it(scheme: str) -> None:
    with served(TEAHOUSE) as site:
        url = site.url.removesuffix("/mcp").replace("http", scheme, 1)
        words = ("call", "price", "tea=sencha", "cups=2", "--header", "x-key: k")
        results = [run(*words, url), run(*words, f"{url}/")]
    for result, slash in zip(results, ("", "/"), strict=True):
        assert (result.returncode, result.stdout) == (0, "9.0\n")
        assert result.stderr == (
            f"mcp-trio: {url}{slash} is no MCP endpoint (HTTP status 404); trying {url}/mcp\n"
        )


@contextmanager
def _answering(*statuses: int) -> Iterator[tuple[str, list[str]]]:
    """Answer each path with the next status. Yield the URL, and the request lines so far."""
    asked: list[str] = []
    answers = dict(zip(("/", "/mcp"), statuses, strict=True))

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(f"{self.command} {self.path} {self.headers['authorization']}")
            self.rfile.read(int(self.headers.get("content-length", "0")))
            self.send_response(answers[self.path])
            self.send_header("location", "/docs")
            self.send_header("content-length", "0")
            self.end_headers()

        def do_GET(self) -> None:  # of the older transport
            self.do_POST()

        def log_message(self, *_: object) -> None:
            pass

    with threaded_http_server(Answer) as url:
        yield url, asked


@pytest.mark.parametrize(
    ("statuses", "paths", "complaint"),
    [
        ((404, 404), ["/", "/mcp"], ": HTTP status 404 Not Found"),
        ((303, 405), ["/", "/mcp"], "/docs instead"),
        ((404, 401), ["/", "/mcp"], "`mcp-trio login http://"),
        ((404, 503), ["/", "/mcp"], "/mcp: HTTP status 503"),
        ((401, 200), ["/"], "HTTP status 401"),
        ((403, 200), ["/"], "HTTP status 403"),
        ((500, 200), ["/"], "HTTP status 500"),
    ],
)
def test_url_without_path_and_endpoint_shows_the_error_that_matters(
    statuses: tuple[int, ...], paths: list[str], complaint: str
) -> None:
    with _answering(*statuses) as (url, asked):
        result = run("inspect", "--token-env", "TOKEN", url, env={"TOKEN": "t"})
    assert result.returncode == 3
    assert list(dict.fromkeys(line.split()[1] for line in asked)) == paths
    assert {line.split(maxsplit=2)[2] for line in asked} == {"Bearer t"}
    *notice, error = result.stderr.splitlines()
    assert complaint in error
    assert len(notice) == len(paths) - 1


@pytest.mark.parametrize(
    ("server", "data", "guess"),
    [
        ("http://a:1", {"status": 404}, "http://a:1/mcp"),
        ("HTTPS://A/", {"status": 405}, "https://A/mcp"),
        ("wss://a", {"status": 200}, "wss://a/mcp"),
        ("http://a", {"status": 399}, "http://a/mcp"),
        ("http://a", {"status": 199}, None),
        ("http://a", UNSET, "http://a/mcp"),
        ("http://a/other", {"status": 404}, None),
        ("http://a/?key=1", {"status": 404}, None),
        ("http://a", {"status": 400}, None),
        ("http://a", {"status": 429}, None),
        (("python", "server.py"), {"status": 404}, None),
    ],
)
def test_guess_endpoint_has_the_same_origin(
    server: str | tuple[str, ...], data: object, guess: str | None
) -> None:
    error = ConnectFailed("no")
    error.__cause__ = RemoteProtocolError("no", data=data)
    found = guess_endpoint(server, error)
    assert (None if found is None else found[0]) == guess
    assert guess_endpoint(server, ConnectFailed("cannot connect")) is None
    assert guess_endpoint(server, None) is None


async def test_slow_connection_gives_notice(autojump_clock: object) -> None:
    errors = io.BytesIO()
    target = Target(server="http://x/mcp", timeout=60, stderr=Screen(io.TextIOWrapper(errors)))
    async with _slow_notice(target) as connected:
        await trio.sleep(2.9)
        connected()
        await trio.sleep(5)
    assert errors.getvalue() == b""
    async with _slow_notice(target):
        await trio.sleep(3.1)
    assert errors.getvalue() == b"mcp-trio: waiting for http://x/mcp (for at most 60 s)\n"


def test_url_without_response_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
        result = run("inspect", "--timeout", "0.5", url)
    assert result.returncode == 3
    assert f"{url} did not answer within 0.5 s. Is that the URL of an MCP server?" in result.stderr


def test_url_server_exiting_during_call_is_explained(server: ServerFile) -> None:
    """A URL has no child process, so the message doesn't point to its stderr."""
    server("""
        import os

        app = mcp_trio.Server("frail")

        @app.tool
        def die() -> str:
            "Dies."
            os._exit(7)
    """)
    with served(server.path) as site:
        died = run("call", "die", site.url)
    assert died.returncode == 3
    assert "tools/call" in died.stderr
    assert "its stderr" not in died.stderr


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_signal_sends_cancellation_to_url(server: ServerFile, version: str) -> None:
    server(PATIENT)
    with served(server.path) as site:
        calling = subprocess.Popen(
            [*COMMAND, "call", "wait", "--revision", version, site.url], stderr=subprocess.PIPE
        )
        with calling:
            site.wait_for("waiting")
            calling.send_signal(signal.SIGINT)
            assert calling.stderr is not None
            assert calling.stderr.read() == b""
        assert calling.returncode == 130
        site.wait_for("the call was cancelled")
