"""The docstrings of the public names: every parameter and every field is described.

The second half proves with small classes and functions that every rule can fail, and what counts as
a description.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict

import pytest
from msgspec import Struct

from mcp_asyncio_shim import asgi
from mcp_core.types import Result
from tests.layering.docstrings import PACKAGES, by_name, problems, public, violations
from tests.layering.rules import PUBLIC

if TYPE_CHECKING:
    from typing import Unpack


@pytest.fixture(scope="module", autouse=True)
def _all_are_imported() -> None:
    """Import all packages once for all tests."""
    by_name()


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_of_package_describe_every_parameter(package: str) -> None:
    assert list(violations(package)) == []


def test_packages_of_the_core_are_those_that_others_may_import() -> None:
    assert {name for name in PACKAGES if name.startswith("mcp_core")} == PUBLIC


def test_names_that_two_drivers_share_are_both_checked() -> None:
    assert {package for package, name, _ in public() if name == "Client"} == {
        "mcp_trio",
        "mcp_asyncio_shim",
    }


# -- What is found ---------------------------------------------------------------------------------


class _Options(TypedDict, total=False):
    """Options.

    Keys:
        size: a number of bytes.
    """

    size: int
    color: str


class _MoreOptions(_Options, total=False):
    """More options.

    Keys:
        shape: the outline.
    """

    shape: str


def _undocumented() -> None: ...


def _lacking(size: int, *sizes: int, color: str, **colors: str) -> None:
    """Take a size, and a color."""


def _lacking_error(size: int) -> None:
    """Take a `size`. An object of another type is no value."""
    if size:
        raise ValueError("too much")
    raise TypeError


def _lacking_options(box: str, **options: Unpack[_Options]) -> None:
    """Take a `box` and a `size`."""


class _Undocumented:
    size = 1


class _Lacking:
    """A box."""

    def __init__(self, size: int) -> None: ...

    @property
    def color(self) -> str: ...  # type: ignore[empty-body]

    def open(self, key: str, now: float) -> None:
        """Open the box."""

    @classmethod
    def made(cls, size: int) -> None:
        """Make a box."""

    @staticmethod
    def joined(size: int) -> None:
        """Join boxes."""

    def __call__(self, size: int) -> None: ...


class _LackingByBase(_Lacking):
    """A box, too."""


class _LackingStruct(Struct):
    """A box.

    Attributes:
        size: a number of bytes.
    """

    size: int
    color: str  # as for paints
    # The outline.
    shape: str
    depth: int


class _LackingResult(Result):
    """A result of two members, `meta` and `result_type` aside."""

    size: int = 0


@dataclass
class _LackingDataclass:
    size: int

    def __post_init__(self) -> None:
        raise ValueError


class _LackingTuple(NamedTuple):
    """A box."""

    size: int


class _LackingProtocol(Protocol):
    """A box."""

    @property
    def color(self) -> str: ...
    def open(self, key: str) -> None:
        """Open the box."""


FOUND: list[tuple[Any, list[str]]] = [
    (_undocumented, ["x: no docstring"]),
    (_lacking, ["x: size, color, sizes, colors"]),
    (_lacking_error, ["x: raises TypeError", "x: raises ValueError"]),
    (_lacking_options, ["x: _Options: color"]),
    (_Options, ["x: color"]),
    (_MoreOptions, ["x: size, color"]),
    (_Undocumented, ["x: no docstring"]),
    (
        _Lacking,
        [
            "x: size",
            "x.color: no docstring",
            "x.open: key, now",
            "x.made: size",
            "x.joined: size",
            "x.__call__: size",
        ],
    ),
    (_LackingStruct, ["x: depth"]),
    (_LackingResult, ["x: size"]),
    (_LackingDataclass, ["x: no docstring", "x: size", "x: raises ValueError"]),
    (_LackingTuple, ["x: size"]),
    (_LackingProtocol, ["x.color: no docstring", "x.open: key"]),
]


@pytest.mark.parametrize(("value", "found"), FOUND, ids=[value.__name__ for value, _ in FOUND])
def test_undescribed_name_is_found(value: Any, found: list[str]) -> None:
    assert list(problems("x", value)) == found


def test_undescribed_name_of_private_base_is_found() -> None:
    found = list(problems("x", _LackingByBase))
    assert "x: size" in found
    assert "x.open: key, now" in found


# -- What counts as a description ------------------------------------------------------------------


def _described(size: int, *sizes: int, color: str, _cache: Any = None, **colors: str) -> None:
    """Take a `size`, or several `*sizes`.

    Args:
        color, colors: as for paints.
    """


def _with_errors(size: int, error: Exception) -> None:
    """Raise an `error` that depends on `size`.

    Raises:
        LookupError: it is not zero.
    """

    def nested() -> None:
        raise ValueError

    if size:
        raise KeyError from error
    raise error


def _with_options(**options: Unpack[_Options]) -> None:
    """Take `_Options`."""


def _with_key(**options: Unpack[_Options]) -> None:
    """Take a `size` and a `color`."""


def _as_elsewhere(tool: object) -> None:
    """Find a tool, as `Server.find_tool` does."""


class _Described:
    """A box of `size` bytes, opened at the time `now`."""

    def __init__(self, size: int) -> None: ...

    def open(self, key: str, now: float) -> None:
        """Open the box with `key`."""

    def reopen(self, key: str) -> None:
        """Open the box again. The key is as for `open`."""

    def __call__(self, size: int) -> None: ...

    def _hidden(self, size: int) -> None: ...


class _DescribedByBase(_Described):
    def open(self, key: str, now: float) -> None: ...


class _DescribedByProtocol:
    """The `TokenVerifier` of a test."""

    def verify(self, token: str, now: float) -> None: ...


class _Kind(Enum):
    """A kind of box."""

    SMALL = 1


NOT_FOUND = [
    _described,
    _with_errors,
    _with_options,
    _with_key,
    _as_elsewhere,
    _Described,
    _DescribedByBase,
    _DescribedByProtocol,
    _Kind,
    Result,
    len,
    1,
]


@pytest.mark.parametrize("value", NOT_FOUND, ids=lambda value: getattr(value, "__name__", "1"))
def test_described_name_is_not_found(value: object) -> None:
    assert list(problems("x", value)) == []


def test_options_of_that_name_in_another_module_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = ModuleType("tests.other")
    vars(other)["_Options"] = object
    monkeypatch.setattr(sys, "modules", {other.__name__: other, **sys.modules})
    assert list(problems("x", _with_key)) == []


def test_options_may_be_imported_for_types_only() -> None:
    assert "ServeOptions" not in asgi.__globals__
    assert list(problems("x", asgi)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Take a size.",
        "Take a `Box.size`.",
        "Take ``size``.",
        "Take a `sized` box.",
        "Raises:\nsize: not indented.",
        "Take a box, as `Server` does.",
        "Take a box of `Server.tool`.",
    ],
)
def test_mention_that_is_no_description_is_not_accepted(text: str) -> None:
    def take(size: int) -> None: ...

    take.__doc__ = text
    assert list(problems("x", take)) == ["x: size"]
