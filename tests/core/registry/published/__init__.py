"""The types of 150 tools of published servers, with the schemas that two peers make of them.

`signatures.jsonl` has a tool a line. `collect.py` has taken them from the servers' repositories,
and `peers.py` has added the peers' schemas, each run by hand:

    python -m tests.core.registry.published.collect FOLDER  # of git directories, see there
    python -m tests.core.registry.published.peers  # needs mcp, and MCP_TRIO_FASTMCP_PYTHON

Only types are here: no code, and no text of a description.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import pathlib
import typing
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

__all__ = ["SIGNATURES", "function_of", "read_signatures"]

SIGNATURES: Final = Path(__file__).with_name("signatures.jsonl")


def read_signatures() -> list[dict[str, Any]]:
    """Return the tools of the file, in its order."""
    return [json.loads(line) for line in SIGNATURES.read_text("utf-8").splitlines()]


def function_of(tool: dict[str, Any]) -> Callable[..., Any]:
    """Return a function with the types of a tool, which does nothing."""
    import pydantic

    names: dict[str, Any] = {
        **vars(typing),
        **{name: getattr(pydantic, name) for name in pydantic.__all__ if name != "dataclasses"},
        **{name: getattr(enum, name) for name in ("Enum", "IntEnum", "StrEnum")},
        **{name: getattr(dt, name) for name in ("date", "datetime", "time", "timedelta")},
        "dataclass": dataclasses.dataclass,
        "Decimal": decimal.Decimal,
        "Path": pathlib.Path,
        "UUID": uuid.UUID,
        "__name__": __name__,
    }
    for name in ("List", "Dict", "Set", "Tuple", "Type"):
        names[name] = getattr(typing, name)
    text = f"{tool['types']}\ndef {tool['name']}{tool['signature']}: ..."
    # Without this module's future statement, as most servers have none.
    exec(compile(text, tool["file"], "exec", dont_inherit=True), names)
    made: Callable[..., Any] = names[tool["name"]]
    made.__doc__ = "A tool."
    return made
