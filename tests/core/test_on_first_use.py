"""A type on first use is imported when `typing.get_type_hints` evaluates an annotation with it."""

from __future__ import annotations

import json
import sys
import typing
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from mcp_core._on_first_use import names_on_first_use, type_on_first_use

if TYPE_CHECKING:
    from graphlib import TopologicalSorter as Sorter
else:
    Sorter = type_on_first_use("graphlib", "TopologicalSorter")

T = TypeVar("T")


def bare(value: Sorter) -> None: ...  # type: ignore[type-arg]
def first(value: Sorter | str | None) -> None: ...  # type: ignore[type-arg]
def last(value: str | Sequence[int] | Sorter) -> None: ...  # type: ignore[type-arg]
def nested(value: Callable[..., Coroutine[Any, Any, list[Sorter] | None]]) -> None: ...  # type: ignore[type-arg]
def generic(value: Sorter[T]) -> None: ...
def of_any(value: Sorter[Any] | None) -> None: ...


@pytest.mark.parametrize("function", [bare, first, last, nested, generic, of_any])
def test_type_is_imported_when_the_annotation_is_evaluated(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "graphlib", raising=False)
    hint = typing.get_type_hints(function)["value"]
    kind = sys.modules["graphlib"].TopologicalSorter
    expected: dict[Any, Any] = {
        bare: kind,
        first: kind | str | None,
        last: str | Sequence[int] | kind,
        nested: Callable[..., Coroutine[Any, Any, list[kind] | None]],  # type: ignore[valid-type]
        generic: kind[T],
        of_any: kind[Any] | None,
    }
    assert hint == expected[function]


def test_type_that_is_not_evaluated_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "graphlib", raising=False)
    stand_in = type_on_first_use("graphlib", "TopologicalSorter")
    assert [stand_in | None, str | stand_in, stand_in[T]]
    assert "graphlib" not in sys.modules


@pytest.mark.parametrize("index", [list[int], Sequence[int], int | None, "T", (T, T), None])
def test_type_with_an_index_that_the_reference_would_lose_is_refused(index: Any) -> None:
    """`list[int]` has the name `list`."""
    stand_in = type_on_first_use("graphlib", "TopologicalSorter")
    with pytest.raises(TypeError, match="takes a class or a type variable"):
        stand_in[index]


def test_name_of_a_package_is_imported_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is an attribute of the package from then on."""
    load = names_on_first_use("json", {".tool": ["main"], "graphlib": ["CycleError"]})
    for name in "main", "CycleError":
        monkeypatch.delattr(f"json.{name}", raising=False)
        found = load(name)
        assert found is getattr(json, name)
        monkeypatch.delattr(f"json.{name}")
    assert load("main").__module__ == "json.tool"
    monkeypatch.delattr("json.main")
    with pytest.raises(AttributeError, match="module 'json' has no attribute 'other'"):
        load("other")
