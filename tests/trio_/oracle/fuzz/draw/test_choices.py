"""The choices that the fuzzer has with a server's tools."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("hypothesis")

from mcp_trio.oracle.fuzz.draw._choices import _has_task_support


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
