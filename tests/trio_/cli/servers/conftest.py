"""A home directory and a project for the tests of `mcp-trio servers`."""

from __future__ import annotations

import json
import os
from contextlib import chdir
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.cli import main
from tests.harness.world.command import run

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

_CLIENT_VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME")


class HostFiles:
    """A home and a project without configuration files. Calling it runs `mcp-trio servers`."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = path
        self.project = path / "project"
        (self.project / ".git").mkdir(parents=True)
        self.env = {"HOME": str(path), **dict.fromkeys(_CLIENT_VARIABLES, "")}
        self.user_file = path / ".config" / "mcp-trio" / "mcp.json"
        self.project_file = self.project / ".mcp.json"
        self.local_file = self.project / ".mcp.local.json"
        self._monkeypatch = monkeypatch

    def __call__(
        self, *words: str, status: int = 0, **env: str
    ) -> subprocess.CompletedProcess[str]:
        result = run("servers", *words, cwd=self.project, env={**self.env, **env})
        assert result.returncode == status, result.stderr
        assert "CANARY" not in result.stdout + result.stderr
        assert "Traceback" not in result.stderr
        return result

    def run_here(self, *words: str, **env: str) -> int:
        """Run the command in this process, so that a test can replace parts of it."""
        for name, value in {**self.env, **env}.items():
            self._monkeypatch.setenv(name, value)
        with chdir(self.project):
            return main(["servers", *words])

    def write(self, path: Path, value: Any) -> Path:
        """Write a file: a text as it is, anything else as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = value if isinstance(value, str) else json.dumps(value)
        path.write_bytes(text.encode())
        return path

    def read(self, path: Path, member: str = "mcpServers") -> Any:
        return json.loads(path.read_text())[member]

    @property
    def written(self) -> list[str]:
        """The files that are there."""
        files = (path for path in self.home.rglob("*") if path.is_file())
        return sorted(os.path.relpath(path, self.home) for path in files)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostFiles:
    return HostFiles(tmp_path, monkeypatch)
