"""`mcp-trio listen`: one line for each change, and its end."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.harness.world.command import COMMAND, ServerFile, run

if TYPE_CHECKING:
    from pathlib import Path

# Runs one action after the other, each as soon as a file named by its number exists.
SEASONAL = """
    import contextlib
    import os
    import pathlib
    import signal

    import trio

    HERE = pathlib.Path(__file__).parent

    @contextlib.asynccontextmanager
    async def seasons(server):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(change)
            yield
            nursery.cancel_scope.cancel()

    async def change():
        for number, act in enumerate(ACTS):
            while not (HERE / str(number)).exists():
                await trio.sleep(0.01)
            act()

    app = mcp_trio.Server("seasonal", lifespan=seasons)
    ACTS = [
        lambda: app.changed(tools=True),
        lambda: app.changed(resource="tea://menu"),
        lambda: os.kill(os.getpid(), signal.SIGTERM),
    ]

    @app.tool
    def pick() -> str:
        "Picks."
        return ""

    @app.resource("tea://menu")
    def menu() -> str:
        return ""
"""


class ListenProcess:
    """`mcp-trio listen` as a process. Its server acts when the test creates a file."""

    def __init__(self, server: ServerFile, *words: str) -> None:
        self._here: Path = server.path.parent
        self.process = subprocess.Popen(
            [*COMMAND, "listen", *words, *server(SEASONAL)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.greeting = self.process.stderr.readline()  # printed when the subscription is active

    def line_after(self, number: int) -> str:
        """Let the server run action `number`, and return the next line of stdout."""
        assert self.process.stdout is not None
        (self._here / str(number)).touch()
        return self.process.stdout.readline()

    def end(self, number: int | None = None) -> str:
        """Let the server run action `number`, if given, and return the rest of stderr."""
        if number is not None:
            (self._here / str(number)).touch()
        with self.process as process:
            assert process.stderr is not None
            return process.stderr.read()


GONE = "mcp-trio: the server closed the connection; its stderr, if any, is above\n"
ENDS = [
    ("2026-07-28", 0, "mcp-trio: the server has ended the subscription\n"),
    ("2025-11-25", 3, GONE),  # without a subscription to end, changes may have been missed
    ("2024-11-05", 3, GONE),
]


@pytest.mark.parametrize(("version", "status", "ending"), ENDS)
def test_listen_prints_one_line_a_change(
    server: ServerFile, version: str, status: int, ending: str
) -> None:
    listener = ListenProcess(
        server, "--tools", "--prompts", "tea://menu", "tea://menu", "--revision", version
    )
    assert listener.greeting == "mcp-trio: listening to tools, tea://menu\n"
    assert listener.line_after(0) == "tools\n"
    assert listener.line_after(1) == "tea://menu\n"
    rest = listener.end(2).replace(" (exit status 143)", "")  # if it exits soon enough
    assert rest == f"mcp-trio: the server sends no notifications about prompts\n{ending}"
    assert listener.process.returncode == status


def test_listen_json_prints_notifications(server: ServerFile) -> None:
    listener = ListenProcess(server, "--json", "--tools", "tea://menu")
    assert json.loads(listener.line_after(0)) == {"method": "notifications/tools/list_changed"}
    assert json.loads(listener.line_after(1)) == {
        "method": "notifications/resources/updated",
        "params": {"uri": "tea://menu"},
    }
    listener.end(2)


def test_listen_without_names_subscribes_to_all_lists(server: ServerFile) -> None:
    listener = ListenProcess(server)
    assert listener.greeting == "mcp-trio: listening to tools, resources\n"
    assert listener.line_after(0) == "tools\n"
    listener.process.send_signal(signal.SIGINT)
    assert listener.end() == "mcp-trio: the server sends no notifications about prompts\n"
    assert listener.process.returncode == 130


def test_listen_closed_stdout_exits_with_0(server: ServerFile) -> None:
    listener = ListenProcess(server, "--tools", "tea://menu")
    assert listener.line_after(0) == "tools\n"
    assert listener.process.stdout is not None
    listener.process.stdout.close()
    assert listener.end(1) == ""
    assert listener.process.returncode == 0


UNSUPPORTED = [
    (("tea://menu",), "resources.subscribe"),
    (("--prompts", "tea://menu"), "prompts.listChanged or resources.subscribe"),
]


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize(("words", "missing"), UNSUPPORTED)
def test_listen_unsupported_subscription_is_rejected(
    greeter: tuple[str, ...], words: tuple[str, ...], missing: str, version: str
) -> None:
    result = run("listen", *words, "--revision", version, *greeter)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "mcp-trio: the server announces no changes of what was requested: it did not declare"
        f" {missing}; `mcp-trio inspect` shows what the server can do\n"
    )
