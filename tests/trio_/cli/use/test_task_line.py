"""The line about a followed task, at a terminal and elsewhere."""

from __future__ import annotations

import re

from tests.harness.world.command import ServerFile, on_a_terminal, run

FRAME = re.compile(r"\^\[[\d;?]*[A-Za-z]|\r")


def shown(text: str) -> str:
    """Return the output at a terminal without its escapes."""
    return FRAME.sub("", text)


def test_task_line_shows_status_and_message_at_terminal(lab: tuple[str, ...]) -> None:
    text = on_a_terminal("call", "research", "topic=owls", "seconds=0.8", *lab)
    assert re.search(r"task [0-9a-f]{8} working 0:00:\d\d Reading archive 1 of 2", shown(text))
    # The line is erased before the result is printed.
    assert text.endswith("^[2KAll about owls\n")


def test_task_line_is_not_shown_elsewhere(lab: tuple[str, ...]) -> None:
    result = run("call", "research", "topic=owls", "seconds=0.8", *lab)
    assert result.stdout == "All about owls\n"
    assert result.stderr == ""


def test_task_line_with_long_message_stays_one_line_without_escapes(server: ServerFile) -> None:
    """The line is redrawn in place, so a server's line feed or escape would leave debris."""
    target = server("""
        import trio
        server = mcp_trio.Server("long")

        @server.tool(task="optional")
        async def work(context: mcp_trio.Context) -> str:
            "Work."
            await context.progress(1, 2, "[b]{x}\\x1b[31m\\n" + "very " * 100)
            await trio.sleep(0.8)
            return "done"
    """)
    text = on_a_terminal("call", "work", *target)
    assert "^[31m" not in text
    frames = [frame for frame in re.split(r"\r\^\[2K", text) if "{x}" in frame]
    assert frames
    assert all(re.search(r"working 0:00:\d\d \[b\]{x}\\", shown(frame)) for frame in frames)
    assert all(len(shown(frame).rstrip("\n")) <= 60 for frame in frames)


def test_task_line_takes_the_place_of_progress(lab: tuple[str, ...]) -> None:
    """In 2025-11-25 a server may report progress of a call until its task has ended."""
    words = "call", "survey", "--revision", "2025-11-25", *lab
    text = on_a_terminal(*words)
    assert "task" in text
    assert text.endswith("surveyed\n")
    after = text[text.index("working") :]
    assert "━" not in after
    result = run(*words)
    assert result.stdout == "surveyed\n"
    # Progress before the task was known belongs to the call.
    assert result.stderr in ("", "0 of 10  Step 0\n")


def test_ordinary_call_shows_no_task_line(lab: tuple[str, ...]) -> None:
    assert shown(on_a_terminal("call", "plain", *lab)) == "plain\n"
