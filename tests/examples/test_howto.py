"""The blocks of the how-to pages that are not programs: commands, and files of other programs.

`test_docs.py` runs the Python blocks, and `test_coming_from.py` those for other libraries.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.examples.pages import QUICK_START, ROOT, WITH_COMMANDS, code, read
from tests.examples.walkthrough import FIGURE, Output, play
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

# What differs from run to run on a page: figures, and with those of a bench its pictures and marks.
# A time that every page leaves out is a dash by then.
BENCH = re.compile(
    r"(?: +[ ▁▂▃▄▅▆▇█]*[▁▂▃▄▅▆▇█](?:  [a-z, -]+)?$)"
    r"| *(?:\b\d[\d,.]*(?:us|ms|s|/s|MB)?|-)(?!\w)| +",
    re.MULTILINE,
)
BENCHED = "docs/howto/bench.md"  # with files that its commands need
# The page's files are played too. The time for examining is left out if there was less than 0.5 s.
INVARIANTS = "docs/howto/invariants.md"
VARIABLE = {
    "docs/howto/fuzz-and-measure.md": FIGURE,
    BENCHED: BENCH,
    # The time of a run, and that of examining findings, which is shown if it is long enough.
    INVARIANTS: re.compile(rf"{FIGURE.pattern} s(?: \(and [^)]*\))?|{FIGURE.pattern}"),
}
TESTING = "docs/howto/testing.md"
# A program that registers a server as Claude Code does.
CLAUDE = """\
#!/bin/sh
for last; do :; done
printf '{"mcpServers": {"greeter": %s}}' "$last" > "$HOME/.claude.json"
"""
LEAKS = """\
import os

def test_leaves_descriptor():
    os.dup(2)
"""
# From a clone to a tool that an agent calls. pip takes most of it, and depends on the network.
MAX_SECONDS = 300


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what the commands of the pages need of a copy of the repository."""
    folder = tmp_path / "library"
    for name in "benchmarks", "examples", "fuzz":
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def claude(tmp_path: Path) -> None:
    path = tmp_path / ".local" / "bin" / "claude"
    path.parent.mkdir(parents=True)
    path.write_text(CLAUDE)
    path.chmod(0o755)


def test_output_with_notice_of_slow_target_is_as_shown() -> None:
    notice = "mcp-trio: waiting for mcp-trio proxy -- python server.py (for at most 60 s)\n"
    Output("page.md:1", "Hello\n", f"{notice}Hello\n").check()
    with pytest.raises(AssertionError, match="Bye"):
        Output("page.md:1", "Hello\n", f"{notice}Bye\n").check()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_of_page_print_what_it_shows(page: str, folder: Path, claude: None) -> None:
    if "$ curl " in read(page) and shutil.which("curl") is None:
        pytest.skip("needs curl")
    outputs = list(play(page, folder, None if page in (BENCHED, INVARIANTS) else ["console"]))
    for output in outputs:
        output.check(VARIABLE.get(page))
    assert len(outputs) > 3


def test_settings_of_testing_page_find_leak(tmp_path: Path) -> None:
    """The page's settings go into a new project, whose only test leaks a descriptor."""
    [settings] = code(TESTING, "toml")
    plugins = 'pytest_plugins = ["mcp_trio.testing.pytest_plugin"]'
    assert f"`{plugins}`" in read(TESTING)
    (tmp_path / "pyproject.toml").write_text(settings)
    (tmp_path / "conftest.py").write_text(plugins)
    (tmp_path / "test_it.py").write_text(LEAKS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert "descriptor" in done.stdout
    assert done.returncode == 1


def clone(copy: Path) -> None:
    """Clone the repository, and copy the working tree's files over the clone's."""
    subprocess.run(["git", "clone", "--quiet", ROOT, copy], check=True)
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)


@pytest.mark.timeout(2 * MAX_SECONDS)
def test_quick_start_from_clone_to_agent_is_quick(tmp_path: Path) -> None:
    """The commands print what the page shows. `pytest -rP` prints their times."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs git, and a repository to clone")
    copy = tmp_path / "mcp-trio"
    begin = time.monotonic()
    clone(copy)
    done = time.monotonic()
    print(f"{done - begin:5.1f} s  git clone")
    for output in play(QUICK_START, copy, installed=True):
        output.check()
        before, done = done, time.monotonic()
        print(f"{done - before:5.1f} s  {output.place.rstrip()}")
    print(f"{done - begin:5.1f} s  all")
    assert done - begin < MAX_SECONDS
