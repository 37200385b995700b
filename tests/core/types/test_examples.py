"""Examples of every revision: decoded and encoded again without loss.

`tests/spec/examples/<revision>.jsonl` has one `{"type", "name", "value"}` per line; `type` is the
name in the schema. The values for 2026-07-28 follow the examples that the specification publishes
with its schema; the others are our own.
"""

from __future__ import annotations

import functools
import json
import operator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import fields

from mcp_core import types as t
from mcp_core.types._revisions import R_2026_07_28, REVISIONS
from tests.core.types.spec_names import admits, structs_for

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER: Final = Path(__file__).parents[2] / "spec" / "examples"
ANSWERS: Final = {
    "action": t.ElicitResult,
    "role": t.CreateMessageResult,
    "roots": t.ListRootsResult,
}


def examples(revision: str) -> list[Any]:
    lines = (FOLDER / f"{revision}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        pytest.param(
            revision, row["type"], row["value"], id=f"{revision}-{row['type']}-{row['name']}"
        )
        for row in rows
    ]


def decodable_parts(revision: str, name: str, value: Any) -> list[tuple[Any, Any]]:
    """Return the parts of an example that have a Struct: the type and the value."""
    if name == "InputRequests":
        return [(dict[str, t.InputRequest], value)]
    if name == "InputResponses":
        return [
            (next(ANSWERS[key] for key in ANSWERS if key in answer), answer)
            for answer in value.values()
        ]
    if name.endswith("ResultResponse"):
        return decodable_parts(revision, name.removesuffix("Response"), value["result"])
    if name.endswith("Error") and "error" in value:
        data = [(struct, value["error"]["data"]) for struct in structs_for(f"{name}.error.data")]
        return [(t.ErrorData, value["error"]), *data]
    if name.endswith(("Request", "Notification")):
        if revision == R_2026_07_28 and structs_for(name):
            return [
                (
                    structs_for(name)[0],
                    {key: value[key] for key in ("method", "params") if key in value},
                )
            ]
        return decodable_parts(revision, f"{name}Params", value.get("params", {}))
    return [(functools.reduce(operator.or_, structs_for(name)), value)]


def without_defaults(value: Any) -> Any:
    """Return `value` without members that have their default value."""
    if isinstance(value, dict):
        return {
            k: without_defaults(v) for k, v in value.items() if not (k == "isError" and v is False)
        }
    if isinstance(value, list):
        return [without_defaults(item) for item in value]
    return value


ROWS: Final = [row for revision in REVISIONS for row in examples(revision)]


@pytest.mark.parametrize(("revision", "name", "value"), ROWS)
def test_example_is_read_as_the_revision_says(revision: str, name: str, value: Any) -> None:
    for type, part in decodable_parts(revision, name, value):
        ours = msgspec.json.decode(json.dumps(part), type=type)
        assert json.loads(msgspec.json.encode(ours)) == without_defaults(part), "a round trip"
        assert_null_is_absent_and_unknown_ignored(ours, type, part)
        assert_only_admitted_fields(ours, revision)


def assert_null_is_absent_and_unknown_ignored(ours: Any, type: Any, part: Any) -> None:
    if not isinstance(ours, Struct):
        return
    nulls = {
        field.encode_name: None
        for field in fields(ours)
        if field.default is None and field.encode_name not in part
    }
    fuller = {**nulls, **part, "org.example/unknown": {"deep": [None, 1]}}
    assert msgspec.json.decode(json.dumps(fuller), type=type) == ours


def assert_only_admitted_fields(ours: Any, revision: str) -> None:
    for struct in structs_in(ours):
        assert admits(struct.__class__, None, revision), struct
        for field in fields(struct):
            if getattr(struct, field.name) != field.default:
                assert admits(struct.__class__, field.name, revision), f"{field.name} of {struct}"


def structs_in(value: Any) -> Iterator[Struct]:
    if isinstance(value, Struct):
        yield value
        for name in value.__struct_fields__:
            yield from structs_in(getattr(value, name))
    elif isinstance(value, dict):
        for item in value.values():
            yield from structs_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from structs_in(item)


@pytest.mark.parametrize("revision", REVISIONS)
def test_examples_cover_every_revision(revision: str) -> None:
    assert len({row.values[1] for row in examples(revision)}) >= 50
