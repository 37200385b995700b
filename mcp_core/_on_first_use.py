"""Names whose modules are imported on first use: of a package, and in annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, TypeVar, Union, get_origin

__all__ = ["names_on_first_use", "type_on_first_use"]


def names_on_first_use(package: str, modules: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package that imports `modules` on first use of their names.

    The package declares the same names for type checkers, under `if TYPE_CHECKING`.

    Args:
        package: the package's `__name__`.
        modules: each module's names. A module that begins with `.` is relative to the package.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module_of[name], package), name)
        setattr(import_module(package), name, value)  # the next use doesn't come here
        return value

    return load


def type_on_first_use(module: str, name: str) -> Any:
    """Return a stand-in for a type, for annotations only: `typing.get_type_hints` imports it.

    For a public annotation whose type is in a module that must not be loaded with the annotation's
    own. Type checkers see the import itself::

        if TYPE_CHECKING:
            from mcp_core.registry import Server
        else:
            Server = type_on_first_use("mcp_core.registry", "Server")

    Args:
        module: the module of the type, not relative.
        name: the type's name there.
    """
    # A builtin: the expression is evaluated in the annotation's module.
    return _Reference(f"__import__({module!r}, fromlist=[{name!r}]).{name}")


class _Reference(str):
    """An expression for a type. `typing` takes a text for a forward reference, and evaluates it."""

    __slots__ = ()

    def __or__(self, other: Any) -> Any:
        return Union[str(self), other]  # noqa: UP007 (`|` is what this defines)

    def __ror__(self, other: Any) -> Any:
        return Union[other, str(self)]  # noqa: UP007

    def __getitem__(self, index: Any) -> Any:
        """Return the generic type with a type or variable that the annotation's module names."""
        if isinstance(index, TypeVar) or (isinstance(index, type) and get_origin(index) is None):
            return _Reference(f"{self}[{index.__name__}]")
        if isinstance(index, int | slice):  # `typing` looks at the text
            return super().__getitem__(index)
        raise TypeError(f"{self}[...] takes a class or a type variable here, not {index!r}")
