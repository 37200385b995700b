"""References of tasks."""

from __future__ import annotations

import pytest

from mcp_core.runtime import InvalidTaskReference, TaskReference

REFERENCE = TaskReference("secret", "research", "2026-07-28", "2026-11-23T02:53:02.446Z", 60_000)


def test_reference_of_task_is_read_as_it_was_written() -> None:
    text = str(REFERENCE)
    assert text.startswith("mcp-task:1:")
    assert text.isascii()
    assert TaskReference.parse(text) == REFERENCE


@pytest.mark.parametrize("end", range(1, 12))
def test_reference_of_task_that_was_cut_is_refused(end: int) -> None:
    with pytest.raises(InvalidTaskReference, match="cut or altered"):
        TaskReference.parse(str(REFERENCE)[:-end])


@pytest.mark.parametrize("text", ["", "mcp-task:1:", "mcp-task:2:e30", "e30", "mcp-task:1:é"])
def test_text_that_is_no_reference_of_task_is_refused(text: str) -> None:
    with pytest.raises(InvalidTaskReference, match="begins with mcp-task:1:"):
        TaskReference.parse(text)


@pytest.mark.parametrize("content", ["e30", "bnVsbA", "A", "_____w"])
def test_reference_of_task_with_other_content_is_refused(content: str) -> None:
    with pytest.raises(InvalidTaskReference, match="cut or altered"):
        TaskReference.parse(f"mcp-task:1:{content}")


def test_reference_of_task_hides_its_id_in_its_repr() -> None:
    assert repr(REFERENCE) == "<TaskReference of 'research'>"
