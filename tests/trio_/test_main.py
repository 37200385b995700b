"""`python -m mcp_trio`: where the command and a server file look for modules.

The installed script `mcp-trio` and `python FILE` are the models: the directory of the file comes
first, and the current directory is not searched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import wave
from typing import TYPE_CHECKING, Final

import pytest

from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

# The script that pip installs for the entry point.
SCRIPT: Final = "import sys\nfrom mcp_trio.cli import main\nsys.exit(main())\n"
# It prints where each module was found.
SERVER: Final = """
import importlib.util, json, sys
import mcp_trio

found = {name: importlib.util.find_spec(name) for name in ("beside", "current", "colorsys", "wave")}
origins = {name: spec and spec.origin for name, spec in found.items()}
print(json.dumps(origins), file=sys.stderr)
server = mcp_trio.Server("finder")
if __name__ == "__main__":
    mcp_trio.run(server)
"""
STARTS: Final = {
    "python FILE": ("servers/server.py",),
    "python -m": ("-m", "mcp_trio", "run", "servers/server.py"),
    "script": ("bin/mcp-trio", "run", "servers/server.py"),
    "inspect": ("bin/mcp-trio", "inspect", "servers/server.py"),
    "reload": ("bin/mcp-trio", "run", "--reload", "servers/server.py"),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a server in `servers`, and modules there and in the directory itself.

    Both have a name of the standard library.
    """
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mcp-trio").write_text(SCRIPT)
    (tmp_path / "servers").mkdir()
    (tmp_path / "servers" / "server.py").write_text(SERVER)
    for name in "servers/beside.py", "servers/colorsys.py", "current.py", "wave.py":
        (tmp_path / name).touch()
    return tmp_path


def run(words: tuple[str, ...], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("start", STARTS)
def test_server_file_finds_same_modules_however_started(place: Path, start: str) -> None:
    result = run(STARTS[start], place)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stderr.splitlines()[0]) == {
        "beside": str(place / "servers" / "beside.py"),
        "colorsys": str(place / "servers" / "colorsys.py"),  # as Python does: the file's own
        "current": None,
        "wave": wave.__file__,
    }


@pytest.mark.parametrize("start", ["script", "inspect", "reload"])
def test_command_imports_nothing_from_current_directory(place: Path, start: str) -> None:
    """A module there could have the name of one that the command needs."""
    (place / "msgspec.py").write_text("raise SystemExit('from the current directory')")
    result = run(STARTS[start], place)
    assert result.returncode == 0, result.stderr
    assert "from the current directory" not in result.stderr


def test_command_with_path_of_current_directory_keeps_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the entry that `python -m` adds is removed, not the same one of PYTHONPATH."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(place), os.environ["PYTHONPATH"]]))
    result = run(STARTS["python -m"], place)
    assert json.loads(result.stderr.splitlines()[0])["current"] == str(place / "current.py")
