"""Names of a package whose modules are imported when the name is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["names_on_first_use"]


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
