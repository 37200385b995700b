"""The text that an error has about a program that has ended."""

from __future__ import annotations

import pytest

from mcp_core.processes import exit_text, with_exit_text

NODE = """
node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/srv/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2
"""
PYTHON = """
OSError: an earlier one, which was handled
Traceback (most recent call last):
  File "server.py", line 2, in <module>
    import absent
    ^^^^^^^^^^^^^

ModuleNotFoundError: No module named 'absent'
"""


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (
            NODE,
            [
                "Error: Cannot find module '/srv/index.js'",
                "  code: 'MODULE_NOT_FOUND',",
                "  requireStack: []",
                "}",
                "Node.js v20.20.2",
            ],
        ),
        (
            PYTHON,
            [
                "Traceback (most recent call last):",
                '  File "server.py", line 2, in <module>',
                "    import absent",
                "    ^^^^^^^^^^^^^",
                "ModuleNotFoundError: No module named 'absent'",
            ],
        ),
        ("ValueError: old" + "\nline" * 30, ["line"] * 5),
        ("ValueError: new" + "\nline" * 29, ["ValueError: new", *["line"] * 4]),
        ("Errors: 0" + "\nline" * 5, ["line"] * 5),
        ("usage: server", ["usage: server"]),
        ("", []),
    ],
    ids=["Node", "Python", "old", "new", "no error", "short", "nothing"],
)
def test_exit_text_has_the_line_of_the_error(written: str, shown: list[str]) -> None:
    lines = exit_text(1, written.encode()).splitlines()
    assert lines[0] == " (exit status 1)"
    assert [each.removeprefix("  its stderr: ") for each in lines[1:]] == shown


@pytest.mark.parametrize(
    ("status", "stderr", "text"),
    [
        (None, b"", ""),
        (0, b"", " (exit status 0)"),
        (-9, b"", " (exit status -9, signal 9)"),
        (None, b"\xff\x1b[2J\n\n", "\n  its stderr: \ufffd\\u001b[2J"),
        (3, b"x" * 1000, " (exit status 3)\n  its stderr: " + "x" * 300),
    ],
)
def test_exit_text_is_short_and_safe_to_print(status: int | None, stderr: bytes, text: str) -> None:
    assert exit_text(status, stderr) == text


@pytest.mark.parametrize(
    "earlier", ["", " (exit status 1)", "\n  its stderr: a", " (exit status 1)\n  its stderr: a"]
)
def test_later_exit_text_takes_the_place_of_an_earlier_one(earlier: str) -> None:
    assert with_exit_text(f"it ended{earlier}", " (exit status 2)") == "it ended (exit status 2)"
