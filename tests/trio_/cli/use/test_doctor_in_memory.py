"""`mcp-trio doctor` in memory: the steps of a program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import Target
from mcp_trio.cli.use import _doctor

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_doctor_program_of_the_current_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`./it` isn't looked for on PATH, where it would be missing."""
    program = tmp_path / "it"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    target = Target(server=("./it",), stderr=Screen(None))
    assert _doctor._find_program(target) == "./it is a program"
    assert _doctor._find_program(replace(target, cwd=tmp_path)) == f"{program} is a program"
