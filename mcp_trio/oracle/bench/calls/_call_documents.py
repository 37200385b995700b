"""Calls as JSON values, for another process: `to_json` of each kind, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._calls import BenchCalls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._calls import Calls

__all__ = ["calls_of"]


def calls_of(document: Mapping[str, Any]) -> Calls:
    """Return the calls whose `to_json` returned `document`. A recording is read again."""
    if "script" in document:
        from ._script import parse_script

        return parse_script(document["script"].encode())
    if "load" in document:
        from mcp_core.trace import load_trace, read_trace

        from ._recorded import Recorded

        with Path(document["load"]).open("rb") as file:
            trace = load_trace(*read_trace(file))
        return Recorded(trace, path=document["load"], answers_itself=document["answers_itself"])
    return BenchCalls(**document)
