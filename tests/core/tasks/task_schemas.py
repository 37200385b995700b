"""The official JSON Schemas of what a peer is sent about tasks.

`tests/spec/task_schemas.json` has the definitions of 2025-11-25 under its date, from
`schema/2025-11-25/schema.json` of modelcontextprotocol/modelcontextprotocol, and the
extension's under 2026-07-28, from `schema/draft/schema.json` of modelcontextprotocol/ext-tasks at
e4345978 (2026-08-21). Only definitions that a task needs are kept, without their descriptions.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

__all__ = ["assert_valid"]

_FILE = Path(__file__).parents[2] / "spec" / "task_schemas.json"


@cache
def _validator(version: str, name: str) -> Draft202012Validator:
    definitions = json.loads(_FILE.read_text("utf-8"))[version]["$defs"]
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})


def assert_valid(version: str, name: str, value: Any) -> None:
    """Assert that `value` is a `name` of the revision."""
    errors = [error.message for error in _validator(version, name).iter_errors(value)]
    assert not errors, (name, value, errors)
