"""Conversations that go wrong: servers that do not do what they should, and people who have had enough."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.trio_.command.program import COMMAND, DEAD, SILENT, ServerFile, on_a_terminal, run

ENDED = "(exit status 1). Is that an MCP server that speaks over stdin and stdout?"
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
def test_no_conversation(words: tuple[str, ...], target: tuple[str, ...], complaint: str) -> None:
    result = run(*words, *target)
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
    """)
    for words in ("call", "die"), ("read", "a://die"), ("prompt", "die"):
        died = run(*words, *target)
        assert (died.returncode, died.stderr) == (
            3,
            "mcp-trio: the server closed the connection before it had answered; its stderr, if any, is above\n",
        )
    slow = run("call", "sleep", "--timeout", "0.9", *target)
    assert slow.returncode == 3
    assert "no answer to tools/call within 0.9 s" in slow.stderr
    assert slow.stderr.endswith("; --timeout gives the server longer\n")
    refused = run("call", "refuse", *target)
    assert refused.returncode == 1
    assert refused.stderr == "mcp-trio: the server answered with an error: not today (-5)\n"


PATIENT = """
    import trio

    app = mcp_trio.Server("patient")

    @app.resource("a://b")
    @app.prompt
    @app.tool
    async def wait() -> str:
        "Waits."
        print("waiting")
        try:
            await trio.sleep(60)
        finally:
            print("the server was told")
        return ""
"""


SIGNALS = [
    (("call", "wait"), signal.SIGINT, 130),
    (("call", "wait"), signal.SIGTERM, 143),
    (("read", "a://b"), signal.SIGINT, 130),
    (("prompt", "wait"), signal.SIGINT, 130),
]


@pytest.mark.parametrize(("words", "number", "status"), SIGNALS)
def test_a_signal_ends_it_quietly(
    server: ServerFile, words: tuple[str, ...], number: signal.Signals, status: int
) -> None:
    process = subprocess.Popen([*COMMAND, *words, *server(PATIENT)], stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(number)
        assert process.stderr.read() == "the server was told\n"
    assert process.returncode == status


# -- Log messages -----------------------------------------------------------------------------------------------------------

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
        return "said"
"""
DETAILS, WORDS, TROUBLE = "[debug] details", "[info db] a\u241b[2Jb", '[error] {"code":7}'
LEVELS = [
    ((), [WORDS, TROUBLE]),
    (("--log-level", "debug"), [DETAILS, WORDS, TROUBLE]),
    (("--log-level", "notice"), [TROUBLE]),
    (("--log-level", "alert"), []),
]


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize(("options", "lines"), LEVELS)
def test_log_messages_are_shown_on_stderr(
    server: ServerFile, options: tuple[str, ...], lines: list[str], version: str
) -> None:
    result = run("call", "say", *options, "--revision", version, *server(CHATTY))
    assert (result.returncode, result.stdout) == (0, "said\n")
    assert result.stderr.splitlines() == lines


@pytest.mark.parametrize("words", [("read", "a://b"), ("prompt", "say")])
def test_resources_and_prompts_log_too(server: ServerFile, words: tuple[str, ...]) -> None:
    assert run(*words, "--log-level", "error", *server(CHATTY)).stderr == f"{TROUBLE}\n"


def test_a_terminal_gets_log_messages_in_colour(server: ServerFile) -> None:
    shown = on_a_terminal("call", "say", *server(CHATTY))
    assert "^[2m[info db]^[0m a\u241b[2Jb\n" in shown
    assert '^[1;31m[error]^[0m {"code":7}\n' in shown


def test_a_server_that_does_not_log(server: ServerFile) -> None:
    target = server("""
        app = mcp_trio.Server("mute", logging=False)

        @app.tool
        def say() -> str:
            "Says nothing beside."
            return "said"
    """)
    assert run("call", "say", *target).stderr == ""
    asked = run("call", "say", "--log-level", "debug", *target)
    assert (asked.returncode, asked.stdout) == (0, "said\n")
    assert asked.stderr == "mcp-trio: the server does not say that it has log messages to send\n"
