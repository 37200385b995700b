"""A revision that is added to the two tables of the engine, and to nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

from mcp_core.trace import ROWS

from .sixth_revision import NEW, NEWEST, ROOT, command

if TYPE_CHECKING:
    from pathlib import Path


def output(*arguments: str) -> str:
    """Run the program, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command(*arguments), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output(*arguments))
    return found


def test_new_revision_is_negotiated_recorded_and_judged(tmp_path: Path) -> None:
    found = printed("connect", str(tmp_path / "new.mcp.jsonl"))
    assert found["revision"] == NEW
    assert found["answer"] == 3
    assert found["findings"] == []
    assert len(found["judged"]) > 20


def test_new_revision_is_judged_as_the_newest_one() -> None:
    found = printed("judge")
    assert found["other"] == []
    assert found["conversations"] > 400
    assert found["judged"][NEW] == found["judged"][NEWEST]
    assert {row for row in found["judged"][NEW] if ROWS[row].until is not None} <= {
        "SSE-3",
        "SSE-4",
    }


def test_new_revision_is_fuzzed(tmp_path: Path) -> None:
    assert " 0 findings" in output("fuzz", str(tmp_path))
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert report["revisions"] == [NEW, NEWEST]
    assert report["messages"] > 50
