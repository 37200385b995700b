"""Lookup of requests: a result, an invocation or an error."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from mcp_core import Dialect
from mcp_core.registry import Invocation, Server
from mcp_core.types import CallToolResult, CompleteResult
from tests.core.registry.lookup_helpers import EVERY_DIALECT, A, E, answered, request

LONG = "n" * 1_000


def make() -> Server:
    server = Server("s")
    server.add_tool(lambda a: a, name="t", description="d")
    server.add_prompt(lambda a, b: "", name="p")
    server.add_prompt(lambda a: "", name="q")
    server.add_resource("x://y", lambda: "", name="r")
    server.add_resource("x://{a}/z", lambda a: "", name="s")
    server.add_completion("p", "a", lambda typed: [])
    server.add_completion("x://{a}/z", "a", lambda typed: [])
    return server


def completing(ref: str, argument: str) -> dict[str, Any]:
    kind = (
        {"type": "ref/resource", "uri": ref}
        if "://" in ref
        else {"type": "ref/prompt", "name": ref}
    )
    return {"ref": kind, "argument": {"name": argument, "value": ""}}


@pytest.mark.parametrize("dialect", EVERY_DIALECT)
@pytest.mark.parametrize(
    ("method", "params", "kind"),
    [
        ("tools/list", {}, Raw),
        ("resources/list", {}, Raw),
        ("resources/templates/list", {}, Raw),
        ("prompts/list", {}, Raw),
        ("tools/call", {"name": "t", "arguments": {"a": 1}}, Invocation),
        ("prompts/get", {"name": "p", "arguments": {"a": "1", "b": "2"}}, Invocation),
        ("resources/read", {"uri": "x://y"}, Invocation),
        ("resources/read", {"uri": "x://y/z"}, Invocation),
        ("completion/complete", completing("p", "a"), Invocation),
        ("completion/complete", completing("x://{a}/z", "a"), Invocation),
        ("completion/complete", completing("X://{a}/z", "a"), Invocation),
        ("completion/complete", completing("p", "b"), CompleteResult),
        ("completion/complete", completing("q", "a"), CompleteResult),
    ],
)
def test_lookup_declared_name_gives_its_kind(
    method: str, params: Any, kind: type, dialect: Dialect
) -> None:
    assert isinstance(make().answer(request(method, params, dialect)), kind)


def test_lookup_invalid_tool_arguments_give_an_error_result() -> None:
    plan = make().answer(request("tools/call", {"name": "t", "arguments": {"b": 1}}, E))
    assert isinstance(plan, CallToolResult)


@pytest.mark.parametrize("dialect", EVERY_DIALECT)
@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("tools/call", {"name": "none"}, "Unknown tool: none"),
        ("tools/call", {"name": LONG}, f"Unknown tool: {LONG[:128]}"),
        ("prompts/get", {"name": "none"}, "Unknown prompt: none"),
        ("prompts/get", {"name": LONG}, f"Unknown prompt: {LONG[:128]}"),
        ("completion/complete", completing("none", "a"), "Unknown prompt: none"),
        ("completion/complete", completing("x://y", "a"), "Unknown resource template: x://y"),
        ("tools/list", {"cursor": LONG}, "Unknown cursor"),
    ],
)
def test_lookup_unknown_name_is_invalid_params(
    method: str, params: Any, message: str, dialect: Dialect
) -> None:
    assert answered(make(), method, params, dialect) == {"code": -32602, "message": message}


@pytest.mark.parametrize(("dialect", "code"), [(A, -32002), (E, -32602)])
def test_lookup_unknown_resource_has_the_code_of_the_revision(dialect: Dialect, code: int) -> None:
    assert answered(make(), "resources/read", {"uri": "x://y/w"}, dialect) == {
        "code": code,
        "message": "Resource not found",
        "data": {"uri": "x://y/w"},
    }


def test_lookup_respells_no_uri_that_its_template_does_not_match() -> None:
    """Its normal form fits the template, but not the type of the variable."""

    def read(number: int) -> str:
        return ""

    server = Server("s")
    server.add_resource("x://host/{number}", read, name="r")
    assert [server._lookup.declared_uri(f"X://HOST/{value}") for value in ("7", "seven")] == [
        "x://host/7",
        "X://HOST/seven",
    ]


def test_lookup_without_completions_is_method_not_found() -> None:
    server = make()
    server.remove_prompt("p")
    server.remove_resource("x://{a}/z")
    for ref in "q", "p":
        assert answered(server, "completion/complete", completing(ref, "a")) == {
            "code": -32601,
            "message": "this server does not offer completion/complete",
        }


def test_lookup_repr_names_its_pages() -> None:
    assert repr(make()._lookup) == "<RequestLookup from <ListPages of 's', 0 encoded>>"


def test_lookup_hidden_template_gives_no_reason() -> None:
    """The reason would show that the template is there."""
    server = Server("s")
    shown = [True, False]
    server.add_resource("x://{path}", lambda path: "", name="r", visible=lambda _: shown[0])
    for reason in (": the value of `path` holds a `..`", ""):
        found = answered(server, "resources/read", {"uri": "x://.."})
        assert found["message"] == f"Resource not found{reason}"
        shown.pop(0)
