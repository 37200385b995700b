"""`typing.get_type_hints`, `inspect.signature` and `help` work on everything public.

The second half proves that a name for type checkers only is found, and where it is said to be.
"""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, overload

import pytest

from tests.layering.docstrings import PACKAGES, WIRE, public
from tests.layering.hints import problems, violations
from tests.levels import long

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction as Ratio

    Checked = Decimal


@pytest.mark.parametrize("package", PACKAGES)
def test_annotations_of_package_can_be_evaluated(package: str) -> None:
    assert list(violations(package)) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_callables_of_package_have_a_signature(package: str) -> None:
    """Except for classes that Python itself constructs: it has no signature for these either.

    They are exceptions and `TypedDict`s, without an `__init__`.
    """
    for home, _, value in public():
        if home == package and isinstance(value, type | FunctionType):
            try:
                inspect.signature(value)
            except ValueError:
                assert isinstance(value, type)
                kind = next(base for base in value.__mro__ if base.__module__ == "builtins")
                with pytest.raises(ValueError, match="no signature found for builtin type"):
                    inspect.signature(kind)


# The types of the specification and of traces are many: their pages take 0.1 to 0.2 s.
_MANY = (WIRE, "mcp_core.trace")


@pytest.mark.parametrize("package", [long(each) if each in _MANY else each for each in PACKAGES])
def test_help_about_names_of_package_is_shown(package: str) -> None:
    for home, _, value in public():
        if home == package and isinstance(value, type | FunctionType):
            assert value.__name__ in pydoc.render_doc(value).partition("\n")[0]


# -- What is found ---------------------------------------------------------------------------------


class _Sample:
    price: Decimal

    def __init__(self, price: Decimal) -> None: ...

    @property
    def ratio(self) -> Ratio | None:
        return None

    def fine(self, number: int) -> None: ...

    @classmethod
    def of(cls, price: Decimal | None) -> None: ...


def _checked(price: Checked) -> None: ...


@overload
def _overloaded(price: Decimal) -> None: ...
@overload
def _overloaded(price: int) -> None: ...
def _overloaded(price: Any) -> None: ...


def _recursive(value: _Text) -> None: ...  # type: ignore[valid-type]


_Text = "list[_Text]"
Later = Callable[["Decimal"], object]
Word = Literal["Decimal"]
MOVE_DECIMAL = (
    "has `from decimal import Decimal` for type checkers only: move Decimal out of "
    "`if TYPE_CHECKING`, or, if that would load another module, write `type_on_first_use` in its "
    "`else`"
)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (
            _Sample,
            [
                f"x: {__name__} {MOVE_DECIMAL}",
                f"x.of: {__name__} {MOVE_DECIMAL}",
                f"x.ratio: {__name__} {MOVE_DECIMAL}".replace(
                    "import Decimal", "import Fraction as Ratio"
                )
                .replace("Decimal", "Ratio")
                .replace("from decimal", "from fractions"),
                f"x.__init__: {__name__} {MOVE_DECIMAL}",
            ],
        ),
        (_checked, ["x: NameError: name 'Checked' is not defined"]),
        (_overloaded, [f"x: {__name__} {MOVE_DECIMAL}"]),
        (_recursive, ["x: the annotation of value stays a text"]),
        (Later, ["x: NameError: name 'Decimal' is not defined"]),
        (Word, []),
        (_Sample.fine, []),
    ],
)
def test_name_for_type_checkers_only_is_found_with_its_import(
    value: object, found: list[str]
) -> None:
    assert list(problems("x", value)) == found
