"""`mcp-trio demo`: its messages, and its duration."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.harness.world.command import COMMAND
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path


def test_demo_prints_every_kind_of_message(tmp_path: Path) -> None:
    """It runs in any directory, even beside a file named `trio.py`, and its lines fit a screen."""
    (tmp_path / "trio.py").write_text("raise SystemExit('not the real one')")
    # Not `-m`: it would put that directory, with its `trio.py`, on the path.
    program = (
        "import sys; sys.path.remove(''); from mcp_trio.cli import main; sys.exit(main(['demo']))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    text = result.stdout
    for part in (
        '→ {"id":1,"method":"server/discover"',
        '→ {"id":1,"method":"initialize"',
        '→ {"method":"notifications/initialized"}\n>>> await client.list_tools()',
        (
            ">>> await client.call_tool('price', {'tea': 'sencha', 'cups': 2})\n  →"
            ' {"id":3,"method":"tools/call"'
        ),
        '"method":"resources/read"',
        '"method":"prompts/get"',
        '← {"method":"notifications/progress"',
    ):
        assert part in text
    assert text.count('→ {"method":"notifications/cancelled"') == 2
    assert max(map(len, text.splitlines())) <= 120


def test_demo_closed_stdout_exits_with_0() -> None:
    with subprocess.Popen(
        [*COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
