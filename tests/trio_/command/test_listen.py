"""`mcp-trio listen`: a line for each change, to the end."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.trio_.command.program import COMMAND, GREETER, ServerFile, run

if TYPE_CHECKING:
    from pathlib import Path

# Does one thing after the other, each as soon as a file with its number is there.
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


class Listener:
    """The command, listening; its server does what it does when it is told to."""

    def __init__(self, server: ServerFile, *words: str) -> None:
        self._here: Path = server.path.parent
        self.process = subprocess.Popen(
            [*COMMAND, "listen", *words, *server(SEASONAL)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline()  # so that the server is listened to

    def line_after(self, number: int) -> str:
        """Let the server do the thing with this number; gives the line that is printed then."""
        assert self.process.stdout is not None
        (self._here / str(number)).touch()
        return self.process.stdout.readline()

    def end(self, number: int | None = None) -> str:
        """The rest of stderr; with a number, let the server do that first."""
        if number is not None:
            (self._here / str(number)).touch()
        with self.process as process:
            assert process.stderr is not None
            return process.stderr.read()


GONE = "mcp-trio: the server closed the connection; its stderr, if any, is above\n"
ENDS = [
    ("2026-07-28", 0, "mcp-trio: the server has ended this\n"),
    ("2025-11-25", 3, GONE),  # where there is no listening to end, changes may have been missed
    ("2024-11-05", 3, GONE),
]


@pytest.mark.parametrize(("version", "status", "last_words"), ENDS)
def test_a_line_for_each_change(server: ServerFile, version: str, status: int, last_words: str) -> None:
    listener = Listener(server, "--tools", "--prompts", "tea://menu", "tea://menu", "--revision", version)
    assert listener.said == "mcp-trio: listening to tools, tea://menu\n"
    assert listener.line_after(0) == "tools\n"
    assert listener.line_after(1) == "tea://menu\n"
    assert listener.end(2) == f"mcp-trio: the server does not tell of changes of prompts\n{last_words}"
    assert listener.process.returncode == status


def test_json_has_the_names_of_the_protocol(server: ServerFile) -> None:
    listener = Listener(server, "--json", "--tools", "tea://menu")
    assert json.loads(listener.line_after(0)) == {"method": "notifications/tools/list_changed"}
    assert json.loads(listener.line_after(1)) == {
        "method": "notifications/resources/updated",
        "params": {"uri": "tea://menu"},
    }
    listener.end(2)


def test_all_lists_if_nothing_is_named(server: ServerFile) -> None:
    listener = Listener(server)
    assert listener.said == "mcp-trio: listening to tools, resources\n"
    assert listener.line_after(0) == "tools\n"
    listener.process.send_signal(signal.SIGINT)
    assert listener.end() == "mcp-trio: the server does not tell of changes of prompts\n"
    assert listener.process.returncode == 130


def test_it_ends_when_nobody_reads_any_more(server: ServerFile) -> None:
    listener = Listener(server, "--tools", "tea://menu")
    assert listener.line_after(0) == "tools\n"
    assert listener.process.stdout is not None
    listener.process.stdout.close()
    assert listener.end(1) == ""
    assert listener.process.returncode == 0


DEAF = [
    (("tea://menu",), "the server does not tell of changes of tea://menu\n"),
    (("--prompts", "tea://menu"), "the server does not tell of changes of prompts or tea://menu\n"),
]


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize(("words", "complaint"), DEAF)
def test_a_server_that_tells_nothing_of_it(words: tuple[str, ...], complaint: str, version: str) -> None:
    result = run("listen", *words, "--revision", version, *GREETER)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"mcp-trio: {complaint}"
