"""The choices that the fuzzer has with a server's tools."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("hypothesis")

from mcp_core import LATEST
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.draw import _cases, _choices, _second_client
from mcp_trio.oracle.fuzz.draw._choices import (
    TASKS,
    CaseChoices,
    _has_task_support,
    _required_arguments,
)

OLD, NEW = "2025-11-25", "2026-07-28"


def offered(
    tools: list[dict[str, Any]] | None = None, *, allowed: tuple[str, ...] = ("a", "b"), **more: Any
) -> CaseChoices:
    """Return the choices with a server of two revisions, whose tools `a` and `b` may be called."""
    return CaseChoices(Offers(revisions=[NEW, OLD], tools=tools or [], **more), allowed)


@pytest.mark.parametrize(
    ("tool", "has_support"),
    [
        ({"execution": {"taskSupport": "optional"}}, True),
        ({"execution": {"taskSupport": "required"}}, True),
        ({"execution": {"taskSupport": "forbidden"}}, False),
        ({"execution": {"taskSupport": None}}, False),
        ({"execution": {}}, False),
        ({"execution": "optional"}, False),
        ({}, False),
    ],
)
def test_tool_can_be_a_task_if_it_says_so(tool: dict[str, Any], has_support: bool) -> None:
    assert _has_task_support(tool) is has_support


@pytest.mark.parametrize(
    ("schema", "required"),
    [
        ({"required": ["a", "b"], "properties": {"a": {}, "b": {"type": "string"}}}, ["a", "b"]),
        ({"required": ["a", "b"], "properties": {"a": {"default": 1}, "b": {}}}, ["b"]),
        ({"required": ["a", "b"], "properties": {"a": True}}, []),
        ({"required": ["a", 5], "properties": {"a": {}, "5": {}}}, ["a"]),
        ({"required": ["a"], "properties": ["a"]}, []),
        ({"required": ["a"]}, []),
        ({"required": "a", "properties": {"a": {}}}, []),
        ({"required": True, "properties": {"a": {}}}, []),
        ({"properties": {"a": {}}}, []),
        (True, []),
        (None, []),
    ],
)
def test_argument_is_required_if_it_is_described_and_has_no_default(
    schema: Any, required: list[str]
) -> None:
    """Without it, the call is surely wrong."""
    assert _required_arguments(schema) == required
    found = offered([{"name": "a"}, {"name": "b", "inputSchema": schema}])
    assert found.required == ([(1, required)] if required else [])


def test_tools_are_found_by_what_they_offer() -> None:
    """Each list has places among the tools that may be called."""
    text = {"type": "object", "properties": {"t": {"type": "string", "x-mcp-header": "T"}}}
    found = offered(
        [
            {"name": "other", "execution": {"taskSupport": "required"}, "inputSchema": text},
            {"name": "a"},
            {"name": ["a"]},
            {"name": "b", "execution": {"taskSupport": "optional"}, "inputSchema": text},
            {"description": "without a name"},
        ]
    )
    assert found.names == ["a", "b"]
    assert len(found.arguments) == 2
    assert (found.task_tools, found.mirrored_tools) == ([1], [1])
    assert found.text_tools == [(1, ["t"])]


def test_other_offers_are_those_that_have_a_name() -> None:
    found = offered(
        prompts=[{"name": "p"}, {"name": 5}, {}],
        resources=[{"uri": "n:///1"}, {"name": "x"}, {"uri": 5}],
    )
    assert [each["name"] for each in found.prompts] == ["p"]
    assert found.uris == ["n:///1", "5"]
    assert (found.http, found.stress, found.handings) == (False, False, [])
    assert (found.special, found.avoided, found.changers) == ([], set(), [])


@pytest.mark.parametrize(
    ("revisions", "known", "older", "main"),
    [
        ([], [LATEST], [], [LATEST]),
        ([NEW], [NEW], [], [NEW]),
        ([NEW, OLD, "2025-06-18"], [NEW, OLD, "2025-06-18"], ["2025-06-18"], [NEW, OLD]),
        ([OLD, "2025-06-18", "2025-03-26"], None, ["2025-06-18", "2025-03-26"], [OLD]),
    ],
)
def test_main_revisions_are_the_newest_one_of_each_kind(
    revisions: list[str], known: list[str] | None, older: list[str], main: list[str]
) -> None:
    found = CaseChoices(Offers(revisions=revisions), ())
    assert list(found.revisions) == (known or revisions)
    assert (found.older_revisions, found.main_revisions) == (older, main)


@pytest.mark.parametrize(
    ("declared", "has_changes", "has_tasks"),
    [
        ({}, False, False),
        ({"tools": {"listChanged": True}}, True, False),
        ({"tools": {"listChanged": False}}, False, False),
        ({"tools": {}, "resources": {"subscribe": True}}, True, False),
        ({"tools": {"other": True}, "logging": True}, False, False),
        ({"tools": {"listChanged": "yes"}}, False, False),
        ({"tasks": {}}, False, True),
        ({"extensions": {TASKS: {}}}, False, True),
        ({"extensions": {"acme/other": {}}}, False, False),
        ({"extensions": TASKS}, False, False),
    ],
)
def test_server_offers_what_it_declares_in_a_revision(
    declared: dict[str, Any], has_changes: bool, has_tasks: bool
) -> None:
    found = offered(capabilities={OLD: declared})
    assert (found.has_changes(OLD), found.has_tasks(OLD)) == (has_changes, has_tasks)
    assert (found.has_changes(NEW), found.has_tasks(NEW)) == (False, False)
    for name in ("tools", "tasks", "logging"):
        assert found.declares(OLD, name) is (name in declared)
        assert not found.declares(NEW, name)


@pytest.mark.parametrize("name", ["prompts", "templates"])
def test_completions_are_of_so_many_arguments_at_most(name: str) -> None:
    """A server can list any number."""
    arguments = [{"name": f"x{number}"} for number in range(600)]
    uri = "n:///{" + ",".join(f"x{number}" for number in range(600)) + "}"
    lists: dict[str, Any] = {
        "prompts": [{"name": "p", "arguments": arguments}],
        "templates": [{"uriTemplate": uri}],
    }
    found = offered(**{name: lists[name]}).completed
    assert [argument for _, argument in found] == [f"x{number}" for number in range(500)]


@pytest.mark.parametrize(
    ("answers", "suspects"),
    [
        ({"2025-06-18": "2025-03-26", "2025-03-26": "2024-11-05"}, [("2025-06-18", "2025-03-26")]),
        ({"2025-06-18": "2025-03-26", "2025-03-26": "2025-03-26"}, []),
        ({"2025-06-18": "2025-03-26"}, []),
        ({OLD: NEW, NEW: OLD}, [(NEW, OLD)]),  # without a handshake it can't be asked for
    ],
)
def test_revision_is_suspect_if_it_was_selected_and_is_not_when_it_is_asked_for(
    answers: dict[str, str], suspects: list[tuple[str, str]]
) -> None:
    assert offered(answers=answers).suspects == suspects


@pytest.mark.parametrize(
    ("module", "rates"),
    [
        (
            _cases,
            {
                "SECOND_CLIENTS": 4,
                "SPECIAL_AT_FIRST": 4,
                "SUSPECTS_AT_FIRST": 12,
                "SPECIAL_LATER": 200,
                "ENDS": 800,
                "HTTP_ENDS": 300,
                "DAMAGED": 7,
                "STRESS_DAMAGED": 4,
                "CASE_BYTES": 4096,
            },
        ),
        (_choices, {"MAX_COMPLETED": 500}),
        (_second_client, {"_LOGGING_CALLS": 3, "_RESUMED_CALLS": 3, "_SUBSCRIBED": 10}),
    ],
    ids=lambda each: getattr(each, "__name__", "").rpartition(".")[2],
)
def test_rate_of_a_kind_of_case_has_its_value(module: Any, rates: dict[str, Any]) -> None:
    """They share the time of a run: who changes one measures how many faults are found."""
    assert {name: getattr(module, name) for name in rates} == rates
