"""Known crashes of SDKs: which traceback is one, and which version to use."""

from __future__ import annotations

import pytest

from mcp_trio.oracle.fuzz._known_crashes import find_known_crash

SDK = "https://github.com/modelcontextprotocol/python-sdk"
DECODING = (
    "File \"/lib/mcp/server/stdio.py\", line 5\nUnicodeDecodeError: 'utf-8' codec",
    f"mcp 1.27.0: {SDK}/pull/2302",
)
READING = (
    'File "/lib/mcp/server/stdio.py", line 5, in stdin_reader\nanyio.BrokenResourceError',
    f"mcp 2.0.0: {SDK}/pull/2149",
)
ANSWERING = (
    'File "/lib/mcp/shared/session.py", line 9\nAssertionError: Request already responded to',
    f"mcp 2.0.0: {SDK}/issues/2416",
)


@pytest.mark.parametrize(
    ("crash", "needs_cancellation"), [(DECODING, False), (READING, True), (ANSWERING, True)]
)
def test_crash_is_known_by_its_traceback(crash: tuple[str, str], needs_cancellation: bool) -> None:
    """Some crashes only come after a cancellation. Windows has other separators in paths."""
    text, mended = crash
    stderr = f"before\n{text}\nafter".encode()
    known = f"known of the official Python SDK 1.x, and mended in {mended}"
    for each in (stderr, stderr.replace(b"/", b"\\"), stderr * 2):
        assert find_known_crash(each, has_cancelled=True) == known
        alone = find_known_crash(each, has_cancelled=False)
        assert alone == ("" if needs_cancellation else known)


@pytest.mark.parametrize("crash", [DECODING, READING, ANSWERING])
def test_crash_with_other_parts_or_another_order_is_not_known(crash: tuple[str, str]) -> None:
    first, _, last = crash[0].partition("\n")
    for text in (first, last, f"{last}\n{first}", ""):
        assert find_known_crash(text.encode(), has_cancelled=True) == ""
    assert find_known_crash(crash[0].encode(), has_cancelled=True)


def test_first_of_two_known_crashes_is_named() -> None:
    both = f"{ANSWERING[0]}\n{DECODING[0]}".encode()
    assert DECODING[1] in find_known_crash(both, has_cancelled=True)
