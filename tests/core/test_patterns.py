"""Patterns that are compiled on first use: the same results, and no compiling before."""

from __future__ import annotations

import re

import pytest

from mcp_core import _patterns
from mcp_core._patterns import compile_on_first_use


def test_late_pattern_is_compiled_at_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def compile_(*source: object) -> re.Pattern[str]:
        compiled.append(source)
        return re.compile(*source)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(_patterns, "re", type("Re", (), {"compile": staticmethod(compile_)}))
    pattern = compile_on_first_use(r"a(b+)", re.IGNORECASE)
    assert compiled == []
    assert [found[1] for text in ("AB", "c", "abb") if (found := pattern.fullmatch(text))] == [
        "B",
        "bb",
    ]
    assert compiled == [(r"a(b+)", re.IGNORECASE)]


def test_late_pattern_has_what_a_pattern_has() -> None:
    pattern = compile_on_first_use(rb"(?P<x>[0-9]+)")
    expected = re.compile(rb"(?P<x>[0-9]+)")
    assert pattern.groups == expected.groups
    assert pattern.groupindex == expected.groupindex
    assert pattern.sub(b"n", b"a1b22") == b"anbn"
    assert [match.span() for match in pattern.finditer(b"1 22")] == [(0, 1), (2, 4)]


def test_late_pattern_with_a_fault_raises_at_the_first_use() -> None:
    pattern = compile_on_first_use("(")
    with pytest.raises(re.error):
        pattern.match("")
