"""Our types against the official schemas, by property and by revision.

`tests/spec/shapes.json` has the properties: revision -> path of an object type -> its properties,
with a `?` behind optional ones. It was generated from the five schema.json files and the schema of
the tasks extension. Types that are unions, scalars or open maps have no properties and are not in
it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import pytest
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from mcp_core import types as t
from mcp_core.types._revisions import GATES, R_2025_11_25, R_2026_07_28, REVISIONS
from tests.core.types.spec_names import admits, one_name, structs_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EXTENSION: Final = "io.modelcontextprotocol/tasks"

# Official types without a Struct: pattern of the path, reason.
NOT_STRUCTS: Final = (
    (
        r"JSONRPC\w+|\w+ResultResponse|ClientNotification|\w+Error",
        "envelopes are the business of mcp_core.protocol.jsonrpc._codec",
    ),
    (r"\w*(Request|Notification)", "envelopes; what they carry is looked at by itself"),
    (
        r"Annotated|Icons|PaginatedResult",
        "bases that a Struct cannot have beside another one; their heirs have the fields",
    ),
    (
        r"ResourceRequestParams|TaskAugmentedRequestParams",
        "bases that a Struct cannot have beside another one",
    ),
    (
        r"(Result|Notification|SubscriptionsListenResult)MetaObject",
        "the _meta of results and notifications stays a dict",
    ),
    (r".+\.(inputSchema|outputSchema|requestedSchema)", "JSON Schemas stay dicts"),
)

# Fields that are required in some revision, but optional in our Struct: class, field, reason.
LENIENT: Final[tuple[tuple[type[Struct], str, str], ...]] = (
    (
        t.RequestParams,
        "meta",
        "required by 2026-07-28; who reads it gives its absence a precise error",
    ),
    (t.RequestMeta, "protocol_version", "as meta"),
    (t.RequestMeta, "client_capabilities", "as meta"),
    (t.Result, "result_type", "stamped by the dialect; an older peer has none"),
    (t.CacheableResult, "ttl_ms", "filled in by the dialect; an older peer has none"),
    (t.CacheableResult, "cache_scope", "filled in by the dialect; an older peer has none"),
    (t.ListenResult, "meta", "set by the engine, which knows the subscription"),
    (t.CancelledParams, "request_id", "optional in 2025-11-25"),
    (t.ErrorData, "data", "required by a few errors, absent from most"),
    (t.ResourceContents, "text", "either text or blob, checked by the Struct"),
    (t.ResourceContents, "blob", "either text or blob, checked by the Struct"),
    (t.ElicitParams, "mode", "optional for forms"),
    (t.ElicitParams, "requested_schema", "of forms; checked by the Struct"),
    (t.ElicitParams, "url", "of pages; checked by the Struct"),
    (t.ElicitParams, "elicitation_id", "of pages in 2025-11-25 only"),
    (t.StringSchema, "enum", "a text field has none"),
    (t.StringSchema, "one_of", "a text field has none"),
    (t.EnumItems, "type", "of items without titles"),
    (t.EnumItems, "enum", "of items without titles"),
    (t.EnumItems, "any_of", "of items with titles"),
    (t.CreateTaskResult, "task", "of 2025-11-25 only"),
    (t.CreateTaskResult, "task_id", "of the extension only"),
    (t.CreateTaskResult, "status", "of the extension only"),
    (t.CreateTaskResult, "created_at", "of the extension only"),
    (t.CreateTaskResult, "last_updated_at", "of the extension only"),
    (t.CancelTaskResult, "task_id", "of 2025-11-25 only"),
    (t.CancelTaskResult, "status", "of 2025-11-25 only"),
    (t.CancelTaskResult, "created_at", "of 2025-11-25 only"),
    (t.CancelTaskResult, "last_updated_at", "of 2025-11-25 only"),
    (t.CreateTaskResult, "ttl_ms", "of the extension only"),
    (t.CancelTaskResult, "ttl", "of 2025-11-25 only"),
    *(
        (task, field, "each kind of task has one of the two; None would mean for ever")
        for task in (t.Task, t.GetTaskResult, t.TaskStatusParams)
        for field in ("ttl", "ttl_ms")
    ),
)

# Fields that no schema lists although the texts define them: class, field, revisions.
UNLISTED: Final[Mapping[tuple[type[Struct], str], tuple[str, ...]]] = {
    (t.RequestMeta, "traceparent"): REVISIONS,  # a reserved key of `_meta`, which is open
    (t.RequestMeta, "tracestate"): REVISIONS,
    (t.RequestMeta, "baggage"): REVISIONS,
    (t.RequestMeta, "related_task"): (R_2025_11_25,),  # the schema has the value's type alone
}

Properties = dict[str, bool]  # JSON name -> required


def schema_types(revision: str) -> dict[str, Properties]:
    """Return the object types of a revision; the tasks extension belongs to the newest."""
    text = (Path(__file__).parents[2] / "spec" / "shapes.json").read_text()
    everything: dict[str, dict[str, str]] = json.loads(text)
    found: dict[str, Properties] = {}
    for part in (revision, EXTENSION) if revision == R_2026_07_28 else (revision,):
        for path, properties in everything[part].items():
            here = found.setdefault(path, {})
            here.update(
                {name.removesuffix("?"): not name.endswith("?") for name in properties.split()}
            )
            if path.endswith(".params"):
                here.setdefault(
                    "_meta", False
                )  # from its base, which the generator of the schemas leaves out
    return found


def is_envelope(properties: Properties, revision: str) -> bool:
    """True if it is a JSON-RPC message. Requests inside results of 2026-07-28 are not."""
    return "jsonrpc" in properties or (
        properties.keys() == {"method", "params"} and revision != R_2026_07_28
    )


def pairs(revision: str) -> Iterator[tuple[str, type[Struct], Properties]]:
    for path, properties in schema_types(revision).items():
        if not is_envelope(properties, revision):
            for struct in structs_for(path):
                yield path, struct, properties


def json_names(struct: type[Struct]) -> dict[str, FieldInfo]:
    return {field.encode_name: field for field in fields(struct)}


def is_lenient(struct: type[Struct], field: str) -> bool:
    return any(issubclass(struct, base) and field == name for base, name, _ in LENIENT)


@pytest.mark.parametrize("revision", REVISIONS)
def test_schema_types_have_struct_or_reason(revision: str) -> None:
    for path, properties in schema_types(revision).items():
        if not properties:
            continue  # an object whose presence counts, or that is open: kept as a dict
        shaped = bool(structs_for(path)) and not is_envelope(properties, revision)
        excused = any(re.fullmatch(pattern, one_name(path)) for pattern, _ in NOT_STRUCTS)
        assert shaped or excused, path


@pytest.mark.requirement(
    "META-1", "META-14", "META-19", "PROG-1", "RES-2", "RES-3", "TOOL-2", "TOOL-14"
)
@pytest.mark.parametrize("revision", REVISIONS)
def test_schema_properties_have_field(revision: str) -> None:
    """A required property has no default, an optional one has. `LENIENT` lists the exceptions."""
    for path, struct, properties in pairs(revision):
        ours = json_names(struct)
        tag = struct.__struct_config__.tag_field
        for name, required in properties.items():
            if name == tag:
                continue
            assert name in ours, f"{path}.{name}"
            field = ours[name]
            has_default = field.default is not NODEFAULT
            assert field.default_factory is NODEFAULT
            if required:
                assert not has_default or is_lenient(struct, field.name), (
                    f"{path}.{name} is required"
                )
            else:
                assert has_default, f"{path}.{name} is optional"


@pytest.mark.requirement(
    "CAP-1", "CAP-2", "CONT-5", "META-1", "PROG-1", "RES-2", "TOOL-2", "TOOL-14"
)
@pytest.mark.parametrize("revision", REVISIONS)
def test_schema_missing_properties_are_gated(revision: str) -> None:
    known: dict[type[Struct], set[str]] = {}
    for _, struct, properties in pairs(revision):
        known.setdefault(struct, set()).update(properties)
    assert len(known) > 50
    for struct, names in known.items():
        for field in fields(struct):
            listed = UNLISTED.get((struct, field.name))
            expected = revision in listed if listed else field.encode_name in names
            assert admits(struct, field.name, revision) is expected, (
                f"{struct.__name__}.{field.name}"
            )


@pytest.mark.requirement("CONT-1", "CONT-2")
@pytest.mark.parametrize("revision", REVISIONS)
def test_schema_missing_types_are_gated(revision: str) -> None:
    known = {struct for _, struct, _ in pairs(revision)}
    named = {gate.type for gate in GATES if gate.field is None}
    for struct in {*named, *get_args(t.ContentBlock), *get_args(t.SamplingContent)}:
        assert admits(struct, None, revision) is (struct in known), struct.__name__


def test_schema_comparison_covers_every_struct() -> None:
    seen = {struct for revision in REVISIONS for _, struct, _ in pairs(revision)}
    ours = {
        found for found in vars(t).values() if isinstance(found, type) and issubclass(found, Struct)
    }
    # Base classes, and types that the schemas list under the name of their base.
    unseen = {t.Shape, t.Params, t.EmptyResult, t.DiscoverParams}
    assert ours - seen == unseen


def test_schema_exceptions_are_all_used() -> None:
    """An exception that no schema needs any more would hide a mistake."""
    required = {
        (struct, json_names(struct)[name].name)
        for revision in REVISIONS
        for _, struct, properties in pairs(revision)
        for name in properties
        if properties[name] and name != struct.__struct_config__.tag_field
    }
    for base, name, _ in LENIENT:
        assert any(issubclass(struct, base) and field == name for struct, field in required), (
            base,
            name,
        )
    paths = {one_name(path) for revision in REVISIONS for path in schema_types(revision)}
    for pattern, _ in NOT_STRUCTS:
        assert any(re.fullmatch(pattern, path) for path in paths), pattern


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (t.META_SERVER_INFO, "ResultMetaObject"),
        (t.META_SUBSCRIPTION_ID, "NotificationMetaObject"),
        (t.META_SUBSCRIPTION_ID, "SubscriptionsListenResultMetaObject"),
    ],
)
def test_schema_meta_keys_match(key: str, path: str) -> None:
    assert key in schema_types(R_2026_07_28)[path]
