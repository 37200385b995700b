"""The server that a command line names: a file, which the command serves itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.world.command import ROOT, ServerFile, run

TEAHOUSE = "mcp_trio/examples/teahouse.py"
USES = [
    (("inspect",), TEAHOUSE, "teahouse 1.0, speaking revision 2026-07-28\n"),
    (("inspect", "--revision", "2024-11-05"), TEAHOUSE, "teahouse 1.0, speaking revision 2024"),
    (("call", "price", "tea=sencha", "cups=2"), TEAHOUSE, "9.0\n"),
    (("call", "greet", "name=server.py"), "examples/greeter.py:server", "Hello, server.py!\n"),
    (("read", "tea://menu"), f"{TEAHOUSE}:server", "assam: 4.00\n"),
    (("prompt", "recommend", "mood=calm"), TEAHOUSE, "calm"),
    (("complete", "pack", "city", "O"), "examples/weather.py", "Oslo\n"),
]


@pytest.mark.parametrize(("words", "file", "shown"), USES)
def test_file_is_served_by_the_command(words: tuple[str, ...], file: str, shown: str) -> None:
    result = run(*words, file)
    assert (result.returncode, result.stderr) == (0, "")
    assert shown in result.stdout


def test_listen_file_with_name_serves_that_server(server: ServerFile) -> None:
    server("app, other = mcp_trio.Server('app'), mcp_trio.Server('other')")
    result = run("listen", "a://b", f"{server.path}:other", "--tools")
    assert result.returncode == 2
    assert "the server announces no changes of what was requested" in result.stderr


FACTS = """
    import os

    app = mcp_trio.Server("facts")

    @app.tool
    def facts() -> list[str]:
        "Facts."
        names = ("API_TOKEN", "PYTHONPATH", "PYTHONUNBUFFERED")
        return [os.environ.get(name, "") for name in names] + [os.getcwd()]
"""


def test_file_gets_settings_of_python_only(server: ServerFile, tmp_path: Path) -> None:
    server(FACTS)
    env = {"API_TOKEN": "secret", "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}
    (tmp_path / "elsewhere").mkdir()
    words = ("call", "facts", "--json", "--cwd", "elsewhere", server.path.name)
    result = run(*words, cwd=tmp_path, env=env)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)["structuredContent"]
    assert found == ["", str(ROOT), "1", str(tmp_path / "elsewhere")]


def test_directory_is_no_target(tmp_path: Path) -> None:
    result = run("inspect", str(tmp_path))
    assert (result.returncode, result.stdout) == (2, "")
    assert "is neither a URL nor a Python file" in result.stderr
