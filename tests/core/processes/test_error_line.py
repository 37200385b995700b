"""The line that names the error, in what programs write to stderr when they end."""

from __future__ import annotations

import pytest

from mcp_core.processes import find_error_line

GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "server.py", line 9, in main
  |     async with anyio.create_task_group() as tg:
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "server.py", line 4, in serve
    |     params["name"]
    | KeyError: 'name'
    +------------------------------------
"""
NODE = """\
/srv/server.js:3
  throw new TypeError("bad");
  ^

TypeError: bad
    at Object.<anonymous> (/srv/server.js:3:9)

Node.js v22.1.0
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (GROUP, "KeyError: 'name'"),
        (NODE, "TypeError: bad"),
        ("Traceback:\nanyio.BrokenResourceError", "anyio.BrokenResourceError"),
        ("trio.ClosedResource: x\n", "trio.ClosedResource: x"),
        ("panic: out of range\n\ngoroutine 1 [running]:", "panic: out of range"),
        ("thread 'main' panicked at main.rs:2\nbad", "thread 'main' panicked at main.rs:2"),
        (
            "Unhandled exception. System.Exception: no\n   at Program.Main()",
            "Unhandled exception. System.Exception: no",
        ),
        ("ValueError: old\nKeyError: new\n", "KeyError: new"),
        ("Errors: 0\nerror handling is on\nusage: server", ""),
        ("ExceptionGroup: 2 errors\n+-----", ""),
        ("", ""),
    ],
)
def test_error_line_is_the_last_that_names_an_error(text: str, line: str) -> None:
    assert find_error_line(text.splitlines()) == line
