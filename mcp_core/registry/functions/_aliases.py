"""Aliases of types: `type Rows = ...`, `TypeAliasType`, quoted names, and pydantic's `JsonValue`.

1. An alias is replaced by what it stands for. Only one that contains itself stays, as an `Alias`.
2. An alias that stands for itself, without a list or an object in between, describes no value.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Final, ForwardRef

__all__ = ["Alias", "evaluate", "expand_aliases"]

_UNIONS: Final = (typing.Union, types.UnionType)


class Alias:
    """An alias that contains itself, such as a type for any JSON.

    `name` is one for definitions in schemas. `value` is what the alias stands for, and contains
    this object. `stand_in` is for its reader.
    """

    __slots__ = ("is_used", "name", "stand_in", "value")

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: Any = None
        self.is_used = False
        self.stand_in: Any = None

    def __repr__(self) -> str:
        return self.name


def evaluate(annotation: Any, names: Mapping[str, Any], local: Mapping[str, Any]) -> Any:
    """Return an annotation with the names in its texts replaced by what they stand for.

    Raises:
        Exception: an annotation is code, which may raise anything.
    """
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    return typing.get_type_hints(
        holder, globalns=dict(names), localns=dict(local), include_extras=True
    )["it"]


def expand_aliases(annotation: Any, names: Mapping[str, Any], local: Mapping[str, Any]) -> Any:
    """Return an evaluated annotation without aliases. `names` and `local` are its namespaces.

    Raises:
        TypeError: an alias stands for itself.
        Exception: what an alias stands for cannot be evaluated.
    """
    return _expand(annotation, {**names, **local}, {}, ())


def _expand(
    part: Any, names: Mapping[str, Any], opened: Mapping[Any, Alias], direct: tuple[Any, ...]
) -> Any:
    """Expand `part`, a part of the values of the aliases in `opened`.

    In each alias of `direct`, it is the whole value, or a member of the union.
    """
    is_name = isinstance(part, ForwardRef)
    origin = typing.get_origin(part)
    if is_name or _is_alias(part) or _is_alias(origin):
        if _is_json_value(part):
            return Any
        key = part.__forward_arg__ if is_name else part
        name = key if is_name else getattr(part, "__name__", None) or repr(part)
        if key in direct:
            raise TypeError(f"the alias {name} stands for itself")
        if key in opened:
            opened[key].is_used = True
            return opened[key]
        alias = Alias(re.sub(r"\W+", "_", name).strip("_"))
        if is_name:
            value = evaluate(part, names, {})
        else:
            value, names = _value_of(part, origin, names)
        alias.value = _expand(value, names, {**opened, key: alias}, (*direct, key))
        return alias if alias.is_used else alias.value
    if origin is Annotated:
        inner = _expand(part.__origin__, names, opened, direct)
        return part if inner is part.__origin__ else Annotated[inner, *part.__metadata__]
    if origin is None or origin is typing.Literal:
        return part
    args = typing.get_args(part)
    inside = direct if origin in _UNIONS else ()
    expanded = tuple(_expand(each, names, opened, inside) for each in args)
    if all(new is old for new, old in zip(expanded, args, strict=True)):
        return part
    return typing.Union[expanded] if origin in _UNIONS else origin[expanded]  # noqa: UP007


def _is_alias(part: Any) -> bool:
    return hasattr(part, "__value__") and hasattr(part, "__type_params__")


def _is_json_value(part: Any) -> bool:
    """Return True for pydantic's `JsonValue`, which is any value that comes from JSON."""
    module = str(getattr(part, "__module__", ""))
    return getattr(part, "__name__", "") == "JsonValue" and module.startswith("pydantic.")


def _value_of(part: Any, origin: Any, names: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """Return the type that an alias stands for, and the names in it.

    A quoted name is one of the function's, the alias itself or one of its type parameters.
    """
    alias = origin if _is_alias(origin) else part
    parameters = {each.__name__: each for each in alias.__type_params__}
    names = {**names, alias.__name__: alias}
    value = evaluate(alias.__value__, names, parameters)
    return (value[typing.get_args(part)] if alias is origin else value), names
