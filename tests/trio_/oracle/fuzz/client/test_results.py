"""The results of a correct server, by method and revision."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_trio.oracle.fuzz.client._results import _result

OLD, NEW = "2025-11-25", "2026-07-28"


@pytest.mark.parametrize(
    "method", ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
)
def test_request_without_news_has_an_empty_result_where_it_exists(method: str) -> None:
    assert _result(method, {}, OLD, []) == {}
    assert _result(method, {}, NEW, []) is None


@pytest.mark.parametrize(
    ("method", "members"),
    [
        ("tools/list", {"tools"}),
        ("resources/list", {"resources"}),
        ("resources/templates/list", {"resourceTemplates"}),
        ("resources/read", {"contents"}),
        ("prompts/list", {"prompts"}),
        ("prompts/get", {"messages"}),
        ("completion/complete", {"completion"}),
    ],
)
@pytest.mark.parametrize("revision", [OLD, NEW])
def test_result_has_the_member_of_its_method(method: str, members: set[str], revision: str) -> None:
    found = _result(method, {}, revision, ["sum"])
    assert found is not None
    assert set(found) == members


@pytest.mark.parametrize("revision", [OLD, NEW])
def test_unknown_method_has_no_result(revision: str) -> None:
    assert _result("x/y", {}, revision, []) is None


@pytest.mark.parametrize(
    ("params", "uri"), [({"uri": "a:b"}, "a:b"), ({"uri": 5}, "note:///one"), ({}, "note:///one")]
)
def test_resource_that_is_read_has_the_uri_that_was_asked_for(
    params: dict[str, Any], uri: str
) -> None:
    found = _result("resources/read", params, OLD, [])
    assert found is not None
    assert found["contents"][0]["uri"] == uri


def test_call_becomes_a_task_where_the_client_asks_for_one() -> None:
    asked = _result("tools/call", {"task": {}}, OLD, [])
    assert asked is not None
    assert set(asked) == {"task"}
    others: list[tuple[dict[str, Any], str]] = [({}, OLD), ({"task": {}}, NEW)]
    for params, revision in others:
        found = _result("tools/call", params, revision, [])
        assert found is not None
        assert "content" in found
