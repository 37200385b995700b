"""Schemas of types, and the errors of declared schemas. Their rules are tested in `tests/core`."""

from __future__ import annotations

import subprocess
import sys

import jsonschema
import msgspec
import pytest

from mcp_core.registry import DeclarationError
from mcp_core.registry.functions._schema import DeclaredSchema, schema_of, wrap_schema


class Leaf(msgspec.Struct):
    x: int


class Node(msgspec.Struct):
    leaf: Leaf
    next: Node | None = None


def test_schema_of_has_no_reference_at_its_root() -> None:
    leaf = {
        "title": "Leaf",
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
    }
    assert schema_of(int) == {"type": "integer"}
    assert schema_of(Leaf) == leaf
    assert schema_of(list[Leaf]) == {
        "type": "array",
        "items": {"$ref": "#/$defs/Leaf"},
        "$defs": {"Leaf": leaf},
    }


def test_schema_of_recursive_type_has_references() -> None:
    schema = schema_of(Node)
    assert schema["type"] == "object"
    assert set(schema["$defs"]) == {"Leaf", "Node"}
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"leaf": {"x": 1}, "next": {"leaf": {"x": 2}}})
    assert not validator.is_valid({"leaf": {"x": 1}, "next": {"leaf": {"x": "2"}}})


@pytest.mark.requirement("TOOL-8")
def test_wrapped_schema_keeps_its_definitions() -> None:
    schema = wrap_schema(schema_of(list[Node]))
    assert schema["type"] == "object"
    assert schema["required"] == ["result"]
    jsonschema.Draft202012Validator(schema).validate({"result": [{"leaf": {"x": 1}}]})
    assert wrap_schema({"type": "integer"}) == {
        "type": "object",
        "properties": {"result": {"type": "integer"}},
        "required": ["result"],
    }


@pytest.mark.requirement("JSCH-2", "JSCH-3", "JSCH-7")
def test_declared_schema_unusable_raises_with_its_label() -> None:
    schema = DeclaredSchema({"type": "integer"}, "tool 't': input_schema")
    assert schema.find_error("x") == ("", '"x" is not of type "integer"')
    assert not schema.describes_object
    for wrong in ({"type": 3}, {"$schema": "https://example.com/mine"}, {"$ref": "other.json"}):
        with pytest.raises(DeclarationError, match=r"^tool 't': input_schema: "):
            DeclaredSchema(wrong, "tool 't': input_schema")


@pytest.mark.process
def test_registry_import_does_not_load_jsonschema() -> None:
    """`import mcp_core.registry`, and tools without a declared schema, do not import it."""
    program = (
        "import sys\n"
        "from mcp_core.registry import Server\n"
        "server = Server('s')\n"
        "@server.tool(description='d')\n"
        "def f(x: int) -> list[int]: ...\n"
        "print(sorted({'jsonschema', 'referencing', 'asyncio', 'threading', 'logging',"
        " 'socket'} & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
