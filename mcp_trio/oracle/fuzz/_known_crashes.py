"""Known crashes of SDKs, which their later versions don't have.

Such a crash stays a failure: `find_known_crash` names the version to use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["find_known_crash"]

_PYTHON_1: Final = "the official Python SDK 1.x"


class _KnownCrash(NamedTuple):
    """A crash of an SDK that a later version doesn't have.

    Attributes:
        stderr: parts of its traceback, in this order, with `/` in paths.
        sdk: the SDK.
        mended: the first version without it.
        link: where it is explained.
        needs_cancellation: a request was cancelled before.
    """

    stderr: Sequence[bytes]
    sdk: str
    mended: str
    link: str
    needs_cancellation: bool = False


_KNOWN_CRASHES: Final = (
    _KnownCrash(
        (b"mcp/server/stdio.py", b"UnicodeDecodeError: 'utf-8'"),
        _PYTHON_1,
        "mcp 1.27.0",
        "https://github.com/modelcontextprotocol/python-sdk/pull/2302",
    ),
    _KnownCrash(
        (b"mcp/server/stdio.py", b" in stdin_reader", b"BrokenResource"),
        _PYTHON_1,
        "mcp 2.0.0",
        "https://github.com/modelcontextprotocol/python-sdk/pull/2149",
        needs_cancellation=True,
    ),
    _KnownCrash(
        (b"mcp/shared/session.py", b": Request already responded to"),
        _PYTHON_1,
        "mcp 2.0.0",
        "https://github.com/modelcontextprotocol/python-sdk/issues/2416",
        needs_cancellation=True,
    ),
)


def find_known_crash(stderr: bytes, *, has_cancelled: bool) -> str:
    """Return what is known of the crash that stderr shows, as a clause, or "".

    `has_cancelled` is True if the conversation has cancelled a request.
    """
    text = stderr.replace(b"\\", b"/")
    for each in _KNOWN_CRASHES:
        is_possible = has_cancelled or not each.needs_cancellation
        if is_possible and _has_in_order(text, each.stderr):
            return f"known of {each.sdk}, and mended in {each.mended}: {each.link}"
    return ""


def _has_in_order(text: bytes, parts: Sequence[bytes]) -> bool:
    # A regular expression for it takes minutes for a text of many tracebacks.
    place = 0
    for part in parts:
        place = text.find(part, place) + len(part)
        if place < len(part):
            return False
    return True
