"""The pages for users of other libraries: the code for these libraries runs too.

Blocks in `py` are for the other library, those in `python` for this one, which `test_docs.py` runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.examples.pages import Block, blocks, read

if TYPE_CHECKING:
    from pathlib import Path

PAGES = {
    "mcp": "docs/howto/coming-from-the-official-sdk.md",
    "fastmcp": "docs/howto/coming-from-fastmcp.md",
}

# The official SDK is in the extra `test`. FastMCP's requirements may exclude the tests',
# so it is in an environment of its own, and this variable names the interpreter there.
FASTMCP_PYTHON = "MCP_TRIO_FASTMCP_PYTHON"
VERSION_OF = "from importlib.metadata import version; print(version({package!r}))"


def other_side(page: str) -> list[Block]:
    """Return the blocks for the other library, and what they print."""
    found = blocks(page)
    outputs = [after for block, after in pairwise(found) if block.language == "py"]
    return [
        block
        for block in found
        if block.language == "py" or (block.language == "text" and block in outputs)
    ]


def python_with(package: str) -> str:
    """Return an interpreter that can import a package, or skip the test."""
    if package == "mcp":
        return sys.executable
    found = os.environ.get(FASTMCP_PYTHON)
    if not found:
        pytest.skip(f"needs {FASTMCP_PYTHON}, naming the Python of an environment with fastmcp")
    return found


def output_of(*command: str, folder: Path) -> str:
    """Run a command, without the modules of the working tree, and return what it prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.interop
@pytest.mark.parametrize("package", PAGES)
def test_other_side_of_page_runs(package: str, tmp_path: Path) -> None:
    python = python_with(package)
    found = other_side(PAGES[package])
    program = "\n".join(block.text for block in found if block.language == "py")
    shown = "".join(block.text for block in found if block.language == "text")
    assert shown
    (tmp_path / "program.py").write_text(program)
    assert output_of(python, "-W", "ignore", "program.py", folder=tmp_path) == shown


@pytest.mark.parametrize("package", PAGES)
def test_page_has_both_sides_of_each_part(package: str) -> None:
    kinds = [block.language for block in blocks(PAGES[package]) if block.language != "text"]
    assert kinds == ["py", "python"] * {"mcp": 4, "fastmcp": 5}[package]


@pytest.mark.interop
@pytest.mark.parametrize("package", PAGES)
def test_page_names_version_that_was_run(package: str, tmp_path: Path) -> None:
    """`.ci/setup` installs the version of FastMCP that the page names."""
    program = VERSION_OF.format(package=package)
    version = output_of(python_with(package), "-c", program, folder=tmp_path).strip()
    [named] = re.findall(r"\(checked with ([\d.]+)\)", read(PAGES[package]))
    assert version == named or version.startswith(f"{named}.")


def test_python_with_fastmcp_without_variable_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`tests/conftest.py` makes a failure of it in CI, because of the first word."""
    monkeypatch.delenv(FASTMCP_PYTHON, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^needs "):
        python_with("fastmcp")
