"""Aliases of types: `type Rows = ...`, `TypeAliasType`, quoted names, and pydantic's `JsonValue`.

1. An alias is replaced by what it stands for. Only one that contains itself stays, as an `Alias`.
2. An alias that stands for itself, without a list or an object in between, describes no value.
3. Quoted names in an alias are those of its module, or else of the function that uses it.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, ForwardRef, TypeAlias

import msgspec

__all__ = ["Alias", "contains_alias", "evaluate", "expand_aliases", "expand_fields"]

_UNIONS: Final = (typing.Union, types.UnionType)
_CONTAINS_ITSELF: Final = (
    "an alias that contains itself is read only in a Struct, without the Struct's type parameters, "
    "and in a pydantic model; use one of these, or Any"
)
# Returns an annotation with its quoted names replaced. The mapping has further names.
_Evaluate: TypeAlias = Callable[[Any, Mapping[str, Any]], Any]


class Alias:
    """An alias that contains itself, such as a type for any JSON.

    `name` is one for definitions in schemas. `value` is what the alias stands for, and contains
    this object; it is None while it is being expanded. `stand_in` is for its reader.
    """

    __slots__ = ("is_used", "name", "stand_in", "value")

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: Any = None
        self.is_used = False
        self.stand_in: Any = None

    @property
    def expanded(self) -> Any:
        """The annotation to write in its place."""
        return self if self.is_used else self.value

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


def _evaluate_in(module: str, annotation: Any, local: Mapping[str, Any]) -> Any:
    """Return an annotation evaluated with the names of the module that is called `module`."""
    # Of a class, `get_type_hints` finds the module, which the core cannot import.
    holder = type("Holder", (), {"__module__": module, "__annotations__": {"it": annotation}})
    return typing.get_type_hints(holder, localns=dict(local), include_extras=True)["it"]


def expand_aliases(
    annotation: Any, names: Mapping[str, Any] | None = None, local: Mapping[str, Any] | None = None
) -> Any:
    """Return an evaluated annotation without aliases. `names` and `local` are its namespaces.

    Raises:
        TypeError: an alias stands for itself.
        Exception: what an alias stands for cannot be evaluated.
    """
    known = {**(names or {}), **(local or {})}
    return _expand(annotation, lambda part, more: evaluate(part, known, more), {}, ())


def expand_fields(cls: type[Any], hints: Mapping[str, Any]) -> Iterator[tuple[str, type[Any], Any]]:
    """Yield each field with an alias: its name, the class that annotates it, the expanded type.

    Args:
        cls: the class.
        hints: its fields' types, evaluated.

    Raises:
        TypeError: an alias cannot be expanded or read. The text names the field.
    """
    for name, hint in hints.items():
        owners = (each for each in cls.__mro__ if name in getattr(each, "__annotations__", ()))
        owner = next(owners, cls)
        inside = dict(vars(owner))

        def resolve(
            part: Any, more: Mapping[str, Any], owner: Any = owner, inside: Any = inside
        ) -> Any:
            return _evaluate_in(owner.__module__, part, {**inside, **more})

        try:
            expanded = _expand(hint, resolve, {}, ())
        except Exception as exc:  # so is what an alias stands for
            raise TypeError(f"field {name!r} of {owner.__name__}: {exc}") from exc
        # A reader in the annotations of another class would be in the way of other libraries.
        if contains_alias(expanded) and (
            not issubclass(owner, msgspec.Struct) or getattr(hint, "__parameters__", None)
        ):
            raise TypeError(f"field {name!r} of {owner.__name__}: {_CONTAINS_ITSELF}")
        if expanded is not hint:
            yield name, owner, expanded


def contains_alias(annotation: Any) -> bool:
    """Return True if an expanded annotation has an `Alias`, which contains itself."""
    return isinstance(annotation, Alias) or any(map(contains_alias, typing.get_args(annotation)))


def _expand(
    part: Any, evaluate: _Evaluate, known: dict[Any, Alias], direct: tuple[Alias, ...]
) -> Any:
    """Expand `part`. `known` has the aliases that were met, so that each is expanded once.

    In each alias of `direct`, `part` is the whole value, or a member of the union.
    """
    is_name = isinstance(part, ForwardRef)
    origin = typing.get_origin(part)
    if is_name or _is_alias(part) or _is_alias(origin):
        if _is_json_value(part):
            return Any
        key = part.__forward_arg__ if is_name else part
        if key in known:
            return _expand_again(known[key], direct)
        name = key if is_name else getattr(part, "__name__", None) or repr(part)
        alias = known[key] = Alias(re.sub(r"\W+", "_", name).strip("_"))
        if is_name:
            value = evaluate(part, {})
        else:
            value, evaluate = _value_of(part, origin, evaluate)
        alias.value = _expand(value, evaluate, known, (*direct, alias))
        if is_name:
            del known[key]  # elsewhere, the name may be another module's
        return alias.expanded
    if origin is Annotated:
        inner = _expand(part.__origin__, evaluate, known, direct)
        return part if inner is part.__origin__ else Annotated[inner, *part.__metadata__]
    if origin is None or origin is typing.Literal:
        return part
    args = typing.get_args(part)
    inside = direct if origin in _UNIONS else ()
    expanded = tuple(_expand(each, evaluate, known, inside) for each in args)
    if all(new is old for new, old in zip(expanded, args, strict=True)):
        return part
    if origin in _UNIONS:
        return typing.Union[expanded]  # noqa: UP007 - computed
    # Special forms such as `NotRequired` take no tuple.
    return origin[expanded[0] if len(expanded) == 1 else expanded]


def _expand_again(alias: Alias, direct: tuple[Alias, ...]) -> Any:
    """Return what `alias`, which was met before, stands for in a place of `direct`."""
    waiting: list[Any] = [alias if alias.value is None else alias.value]
    seen: list[Alias] = []
    while waiting and direct:
        part = waiting.pop()
        if isinstance(part, Alias):
            if part in direct:
                raise TypeError(f"the alias {part} stands for itself")
            if part not in seen:
                seen.append(part)
                waiting.append(part.value)
        elif typing.get_origin(part) in (Annotated, *_UNIONS):
            waiting += [part.__origin__] if hasattr(part, "__metadata__") else typing.get_args(part)
    # One in a circle is written out once, or a few of them would make a huge schema.
    alias.is_used |= alias.value is None or contains_alias(alias.value)
    return alias.expanded


def _is_alias(part: Any) -> bool:
    return hasattr(part, "__value__") and hasattr(part, "__type_params__")


def _is_json_value(part: Any) -> bool:
    """Return True for pydantic's `JsonValue`, which is any value that comes from JSON."""
    module = str(getattr(part, "__module__", ""))
    return getattr(part, "__name__", "") == "JsonValue" and module.startswith("pydantic.")


def _value_of(part: Any, origin: Any, evaluate: _Evaluate) -> tuple[Any, _Evaluate]:
    """Return the type that an alias stands for, and how quoted names in it are evaluated.

    Such a name is the alias itself, one of its type parameters, of its module or the function's.
    """
    alias = origin if _is_alias(origin) else part

    def evaluate_in_alias(annotation: Any, more: Mapping[str, Any]) -> Any:
        known = {alias.__name__: alias, **more}
        try:
            return _evaluate_in(alias.__module__, annotation, known)
        except NameError:
            return evaluate(annotation, known)

    value = evaluate_in_alias(
        alias.__value__, {each.__name__: each for each in alias.__type_params__}
    )
    return (value[typing.get_args(part)] if alias is origin else value), evaluate_in_alias
