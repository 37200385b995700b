"""`mcp-trio run`: finding the server in a file, and explaining what is wrong with the file."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.harness.world.command import (
    COMMAND,
    GREETER,
    ServerFile,
    output_of,
    run,
)

if TYPE_CHECKING:
    from pathlib import Path


FILES = [
    ("one.py", "anything = mcp_trio.Server('found')", ""),
    ("alias.py", "server = mcp = mcp_trio.Server('found')", ""),
    ("usual.py", "old = mcp_trio.Server('old'); mcp = mcp_trio.Server('found')", ""),
    ("named.py", "server = mcp_trio.Server('old'); new = mcp_trio.Server('found')", ":new"),
    ("main.py", "x = mcp_trio.Server('found')\nif __name__ == '__main__': mcp_trio.run(x)", ""),
    ("beside.py", "from other import x", ""),
]


@pytest.mark.parametrize(("name", "source", "which"), FILES)
def test_run_finds_server_in_file(tmp_path: Path, name: str, source: str, which: str) -> None:
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
        "Name one: mcp-trio run two.py:a",
    ),
    (
        "two.py:c",
        "a, b = mcp_trio.Server('a'), mcp_trio.Server('b')",
        2,
        "called c; its servers are: a, b",
    ),
    ("none.py:c", "c = 1", 2, "called c; it has none"),
    ("syntax.py", "def f(:", 1, "syntax.py could not be imported: SyntaxError"),
    ("missing.py", "import no_such_module", 1, f"install it for {sys.executable}"),
    ("raises.py", "def f(): raise KeyError\nf()", 1, "raises.py could not be imported: KeyError\n"),
    ("text.txt", "", 2, "text.txt is not a Python file"),
    ("directory", None, 2, "directory is a directory"),
    ("absent.py", None, 2, "there is no file absent.py"),
]


@pytest.mark.parametrize(("name", "source", "status", "complaint"), BROKEN)
def test_run_invalid_file_is_explained(
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


def test_run_invalid_declaration_shows_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "import mcp_trio\ns = mcp_trio.Server('s')\n@s.tool\ndef f(*a): 'Bad.'\n"
    )
    result = run("run", "bad.py", cwd=tmp_path)
    assert result.stderr.count("  File ") == 1
    assert "line 3" in result.stderr


def test_run_logs_to_stderr_without_root_handlers(server: ServerFile) -> None:
    """The traceback is for the operator; the caller must not see the exception's text."""
    target = server("""
        import logging
        import sys

        app = mcp_trio.Server("curious")

        @app.tool
        def look() -> list[str]:
            "Look around."
            loaded = sorted({"argparse", "rich"} & set(sys.modules))
            return [str(len(logging.getLogger().handlers)), *loaded]

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


def test_run_keeps_logging_configured_by_file(server: ServerFile) -> None:
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


@pytest.mark.parametrize(("options", "name"), [((), "greeter"), (("--reload",), "greeter.py")])
def test_run_at_terminal_explains_wait_for_client(options: tuple[str, ...], name: str) -> None:
    our_end, their_end = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "run", GREETER[-1], *options], stdin=their_end, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert f"{name} is waiting for a client on stdin" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == ""
    assert process.returncode == 130
    os.close(our_end)
    os.close(their_end)


def test_run_error_of_the_file_is_status_1_and_no_internal_error(server: ServerFile) -> None:
    """The user's own lifespan fails, so the command must not ask for a bug report."""
    *_, path = server("""
        import contextlib

        @contextlib.asynccontextmanager
        async def lifespan(server):
            raise RuntimeError("the disk is full")
            yield

        app = mcp_trio.Server("fails", lifespan=lifespan)
    """)
    result = subprocess.run(
        [*COMMAND, "run", path],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "RuntimeError: the disk is full" in result.stderr
    assert "internal error" not in result.stderr
