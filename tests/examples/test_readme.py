"""The README: its code runs, its files exist, and what it quotes is what stands there."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = [
    textwrap.dedent(block)
    for block in re.findall(r"^ *```python\n(.*?)^ *```$", README, re.DOTALL | re.MULTILINE)
]
SERVER, CLIENT, MORE, LOOP = BLOCKS


def without_blank_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def test_the_server_is_the_example() -> None:
    example = (ROOT / "examples/greeter.py").read_text("utf-8")
    assert without_blank_lines(SERVER) == without_blank_lines(example.partition('"""\n')[2])


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


def test_the_loop_is_the_example() -> None:
    example = (ROOT / "examples/blocking_loop.py").read_text("utf-8")
    serve = textwrap.dedent(example.partition("def serve() -> None:\n")[2].partition("\n\n\n")[0])
    assert LOOP.strip() == serve.strip()


@pytest.mark.parametrize("command", ["pip install . && mcp-trio demo", "pip install '.[test]' && pytest"])
def test_the_set_up_is_two_lines(command: str) -> None:
    assert f"$ {command}\n" in README


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"[(`]((?:mcp_\w+|tests|examples|benchmarks)/[\w/.]+\.\w+)[)`]", README)))
)
def test_the_files_it_names_exist(path: str) -> None:
    assert (ROOT / path).is_file()
