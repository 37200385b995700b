"""`mcp-trio bench` against real servers, and at a terminal."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from tests.harness.world.command import GREETER, ROOT, on_a_terminal, output_of, run

if TYPE_CHECKING:
    from pathlib import Path

BENCH = ("bench", "--seconds", "0.5")
GREET = ("--tool", "greet", "--args", '{"name": "Ada"}')
# A server of 2025-11-25 that ends at its fiftieth ping.
MORTAL = """
import json, sys
pings = 0
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "ping":
        pings += 1
        if pings == 50:
            sys.exit("the disk is full")
        result = {}
    elif message["method"] == "initialize":
        info = {"name": "mortal", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
    else:
        result = None
    if "id" in message:
        unknown = {"error": {"code": -32601, "message": "no such method"}}
        answer = unknown if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def rows_of(*words: str, status: int = 0) -> list[dict[str, Any]]:
    """Run the command, and return the rows of its document."""
    found: list[dict[str, Any]] = json.loads(output_of(*BENCH, "--json", *words, status=status))[
        "rows"
    ]
    return found


def test_tool_of_a_program_is_measured() -> None:
    [row] = rows_of(*GREET, "--rate", "50", *GREETER)
    assert row["measured"]["errors"] == {}
    assert row["measured"]["answered"] == row["measured"]["sent"] > 0
    assert 0 < row["percentiles"]["50"] <= row["percentiles"]["99"] <= row["percentiles"]["100"]


def test_rate_is_shared_among_processes(greeter: tuple[str, ...]) -> None:
    [row] = rows_of(*GREET, "--rate", "50", "--processes", "2", *greeter)
    assert row["processes"] == 2
    assert row["measured"]["answered"] == row["measured"]["sent"] > 0


def test_target_that_ends_is_named_and_the_other_goes_on(tmp_path: Path) -> None:
    """The row has what was measured until then, the exit status and the last line of stderr."""
    (tmp_path / "mortal.py").write_text(MORTAL)
    mortal = f"{sys.executable} -S {tmp_path / 'mortal.py'}"
    words = ("--rate", "100", "--seconds", "2", "--target", f"mortal={mortal}")
    rows = rows_of(*words, "--target", f"greeter={ROOT / 'examples' / 'greeter.py'}", status=3)
    ended, other = rows
    assert (ended["end"]["status"], ended["turns"] < 5) == (1, True)
    assert "the disk is full" in ended["end"]["reason"] + "".join(ended["end"]["stderr"])
    assert (other["end"], other["turns"]) == (None, 5)


def test_table_at_a_terminal_is_shown_meanwhile_and_at_the_end() -> None:
    """The table fits into the terminal, and the histogram is gone at the end."""
    shown = on_a_terminal(*BENCH, *GREET, "--rate", "50", *GREETER, COLUMNS="100")
    assert "█" in shown
    assert " of 0.5 s, p50 " in shown
    last = shown.rpartition("^[2K")[2]
    assert "\n50/s" in last
    assert "the load alone: " in last


def test_program_that_is_no_server_is_no_connection() -> None:
    done = run(*BENCH, "--", sys.executable, "-S", "-c", "import sys; sys.exit('the disk is full')")
    assert (done.returncode, done.stdout) == (3, "")
    assert "the disk is full" in done.stderr
