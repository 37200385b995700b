"""The parts of fuzz cases: valid messages are valid, and mutations mutate."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.reference_parser import classify
from mcp_core import DIALECTS, LATEST, Role
from mcp_trio.oracle.strategies._messages import VERSIONS, messages, responses
from mcp_trio.oracle.strategies._mutations import damaged, malformed, reordered, split
from mcp_trio.oracle.strategies._values import encoded


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("version", VERSIONS)
def test_fuzz_messages_of_each_revision_are_valid(version: str, role: Role) -> None:
    rows = DIALECTS[version].receives[role]

    @settings(max_examples=15, database=None, derandomize=True)
    @given(messages(version, role))
    def holds(message: dict[str, Any]) -> None:
        assert classify(encoded(message)).kind in ("request", "notification", "response")
        if "method" in message:
            rows[message["method"]].read_params(encoded(message.get("params", {})))

    holds()


@settings(max_examples=30, database=None, derandomize=True)
@given(st.data())
def test_fuzz_mutations_of_a_message_return_bytes(data: st.DataObject) -> None:
    line = encoded(data.draw(messages()))
    assert isinstance(data.draw(damaged(st.just(line))), bytes)
    assert data.draw(malformed(responses(LATEST))).startswith(b"{")
    assert b"".join(data.draw(split(st.just(line)))) == line
    assert set(data.draw(reordered(st.just([1, 2, 3])))) <= {1, 2, 3}


def test_fuzz_readme_example_runs() -> None:
    text = (Path(__file__).parents[2] / "fuzz" / "README.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(import .*?)```", text, re.DOTALL)
    space: dict[str, Any] = {}
    # The name is no path: Hypothesis would take the whole page for the source of the function.
    exec(compile(code, "<fuzz/README.md>", "exec"), space)
    settings(max_examples=20, database=None, derandomize=True)(
        space["test_server_after_malformed_message_responds"]
    )()
