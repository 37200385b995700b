"""The pages for users of other libraries: their side runs too, where the library is installed.

Blocks in `py` are for the other library, those in `python` for this one, which `test_docs.py` runs.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.metadata import version
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.examples.pages import blocks, read

if TYPE_CHECKING:
    from pathlib import Path

PAGES = {
    "mcp": "docs/howto/coming-from-the-official-sdk.md",
    "fastmcp": "docs/howto/coming-from-fastmcp.md",
}


@pytest.mark.interop
@pytest.mark.parametrize("package", PAGES)
def test_other_side_of_page_runs(package: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    found = blocks(PAGES[package])
    program = "\n".join(block.text for block in found if block.language == "py")
    shown = "".join(
        after.text
        for block, after in pairwise(found)
        if (block.language, after.language) == ("py", "text")
    )
    assert shown
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == shown, done.stderr


@pytest.mark.parametrize("package", PAGES)
def test_page_has_both_sides_of_each_part(package: str) -> None:
    kinds = [block.language for block in blocks(PAGES[package]) if block.language != "text"]
    assert kinds == ["py", "python"] * 4


def test_page_names_installed_version_of_sdk() -> None:
    assert f"(checked with {version('mcp').rpartition('.')[0]})" in read(PAGES["mcp"])
