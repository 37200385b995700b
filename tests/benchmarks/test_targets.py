"""The table of what is compared, and the environments of the peers."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.peers import prepare
from benchmarks.targets import MODES, TARGETS, Programs

if TYPE_CHECKING:
    from pathlib import Path


def test_environment_that_was_made_completely_is_ready(tmp_path: Path) -> None:
    (tmp_path / "ts1").mkdir()
    assert not prepare.is_ready(tmp_path, "ts1")
    for text, ready in [
        ("{}", False),
        ("no JSON", False),
        ('{"zod": "1.0.0"}', False),
        (json.dumps(prepare.ENVIRONMENTS["ts1"].packages), True),
    ]:
        (tmp_path / "ts1" / "packages.json").write_text(text, "utf-8")
        assert prepare.is_ready(tmp_path, "ts1") is ready


def test_prepare_leaves_directory_of_others_alone(tmp_path: Path) -> None:
    kept = tmp_path / "mcp" / "thesis.txt"
    kept.parent.mkdir()
    kept.write_text("mine", "utf-8")
    with pytest.raises(SystemExit, match="isn't an environment of this script: remove it first"):
        prepare.prepare(tmp_path, "mcp")
    assert kept.read_text("utf-8") == "mine"


def test_prepare_unknown_name_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["prepare.py", str(tmp_path), "mpc"])
    with pytest.raises(SystemExit) as caught:
        prepare.main()
    assert caught.value.code == 2
    assert "mpc: not one of mcp, fastmcp, ts1, ts2" in capsys.readouterr().err


def test_every_environment_of_a_target_can_be_made() -> None:
    used = {target.environment for target in TARGETS.values()} - {""}
    assert used == prepare.ENVIRONMENTS.keys()
    assert all(set(target.modes) <= set(MODES) for target in TARGETS.values())


def test_without_peers_only_those_of_this_python_are_named() -> None:
    assert {"ours", "ours_async", "pipe", "inline", "task", "h11"} <= set(Programs(None).names())
    assert not {"fastmcp", "ts1", "ts2"} & set(Programs(None).names())
