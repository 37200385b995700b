"""Types that msgspec alone doesn't read: paths, unions of objects, and pydantic's.

`prepare_type` puts a stand-in class in the place of such a type. msgspec hands values of a class
that it doesn't know to `decode_hook`, which is why this package's decoders have that hook.
"""

from __future__ import annotations

import functools
import re
import types
import typing
from collections import abc, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from itertools import count
from typing import Annotated, Any, ClassVar, Final, TypeAlias

import msgspec

from mcp_core.protocol.jsonrpc._unencodable import (
    check_numbers,
    may_lack_numbers,
    unencodable,
)

from ._aliases import Alias, contains_alias, expand_fields
from ._pydantic import (
    InvalidValue,
    PydanticType,
    fields_of,
    is_model,
    text_without_value,
    uses_pydantic,
)

__all__ = [
    "ANYTHING",
    "REFERENCE",
    "Definitions",
    "StandIn",
    "collect_definitions",
    "decode_hook",
    "encode_value",
    "is_known_class",
    "prepare_fields",
    "prepare_type",
    "schema_hook",
    "unreadable_field",
    "unsupported",
]

REFERENCE: Final = "#/$defs/{name}"  # to a definition, from anywhere in a schema

_GENERICS: Final = (
    list,
    set,
    frozenset,
    tuple,
    dict,
    abc.Collection,
    abc.Mapping,
    abc.MutableMapping,
    abc.MutableSequence,
    abc.MutableSet,
    abc.Sequence,
    abc.Set,
)
# What the schema of any value has, as msgspec takes no empty one from a hook.
ANYTHING: Final = "x-anything"
_LISTED: Final = (abc.Iterator, abc.Reversible, abc.KeysView, abc.ValuesView, deque)
_OBJECTS: Final = "a dataclass, a msgspec.Struct or a pydantic model"
# Attributes of Structs, dataclasses, classes of attrs, TypedDicts and named tuples.
_FIELDS: Final = (
    "__struct_fields__",
    "__dataclass_fields__",
    "__attrs_attrs__",
    "__required_keys__",
    "_fields",
)


# What completes the stand-ins of aliases.
_Pending: TypeAlias = list[Callable[[], None]]


class _AnyInstance(type):
    """The metaclass of stand-ins: msgspec checks that `decode_hook` returned an instance."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class StandIn(metaclass=_AnyInstance):
    """The base of classes that stand in for a type in annotations for msgspec. No instances.

    Attributes:
        describe: returns the type's JSON Schema, or raises `TypeError`.
        read: returns the object for a value of JSON, or raises `ValueError`.
    """

    describe: ClassVar[Callable[[], dict[str, Any]]]
    read: ClassVar[Callable[[Any], Any]]


def prepare_type(annotation: Any, location: str) -> Any:
    """Return `annotation` with a `StandIn` for every part that msgspec cannot read.

    An annotation that msgspec can read is returned as it is. `location` names the annotation in
    error texts.

    Raises:
        DeclarationError: a part cannot be read.
    """
    pending: _Pending = []
    prepared = _prepare(annotation, location, pending)
    _complete(pending)
    return prepared


def _complete(pending: _Pending) -> None:
    for complete in pending:  # which grows
        complete()


def _prepare(annotation: Any, location: str, pending: _Pending) -> Any:
    """Do what `prepare_type` does. What completes the stand-ins of aliases is added to `pending`.

    Until then, classes whose fields have such an alias may wait for their stand-ins, too.
    """
    if uses_pydantic(annotation):
        pydantic_type = PydanticType(annotation, location)
        schema = pydantic_type.schema("validation")
        return _stand_in(pydantic_type.read, lambda: schema)
    if isinstance(annotation, Alias):
        return _stand_in_of_alias(annotation, location, pending)
    origin = typing.get_origin(annotation)
    parts = typing.get_args(annotation)
    if abc.Iterable in (annotation, origin):
        annotation, origin = list[parts or (Any,)], list  # type: ignore[misc]
    if origin is Annotated:
        inner = _prepare(annotation.__origin__, location, pending)
        same = inner is annotation.__origin__
        return annotation if same else Annotated[inner, *annotation.__metadata__]
    if origin in (typing.Union, types.UnionType):
        return _prepare_union(annotation, parts, location, pending)
    if origin in _GENERICS:
        prepared = tuple(_prepare(part, location, pending) for part in parts)
        return annotation if all(map(_same, prepared, parts)) else origin[prepared]
    return annotation


def prepare_fields(annotation: Any, location: str) -> None:
    """Replace aliases in the fields of the classes in `annotation` by what they stand for.

    They are replaced in the annotations of the class, where msgspec looks. A class that msgspec can
    read isn't changed.

    Raises:
        TypeError: a field cannot be read. The text names it.
        DeclarationError: as `prepare_type`.
    """
    if _is_readable(annotation):
        return
    found = list(_fields_with_aliases(annotation))
    before = {owner: owner.__annotations__ for _, owner, _ in found}
    try:
        _replace_fields(found, location)
    except BaseException:
        for owner, annotations in before.items():
            owner.__annotations__ = annotations
        raise


def _replace_fields(found: list[tuple[str, type[Any], Any]], location: str) -> None:
    for name, owner, expanded in found:
        if not contains_alias(expanded):
            _annotate(owner, name, expanded)
    # Every class has its readers before they are completed: one may read the others.
    pending: _Pending = []
    readers = []
    for name, owner, expanded in reversed(found):  # the inner classes first
        if contains_alias(expanded):
            field = f"field {name!r} of {owner.__name__}"
            reader = _prepare(expanded, f"{location}: {field}", pending)
            _annotate(owner, name, reader)
            readers.append((field, reader))
    _complete(pending)
    for field, reader in readers:
        try:
            _components([reader])
        except TypeError as exc:
            raise TypeError(f"{field}: {exc}") from exc


def _annotate(owner: type[Any], name: str, annotation: Any) -> None:
    owner.__annotations__ = {**owner.__annotations__, name: annotation}


def _fields_with_aliases(annotation: Any) -> Iterator[tuple[str, type[Any], Any]]:
    """Yield what `expand_fields` does for each class that msgspec cannot read."""
    waiting = [annotation]
    for cls in _classes(waiting):
        if not _is_readable(cls):
            for field in expand_fields(cls, _hints(cls)):
                waiting.append(field[2])
                yield field


def _classes(waiting: list[Any]) -> Iterator[type[Any]]:
    """Yield the classes in annotations and in fields of classes. `waiting` grows."""
    seen = set()
    for part in waiting:
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Alias):
            waiting.append(part.value)
        elif typing.get_origin(part) is not None:
            waiting += [getattr(part, "__origin__", None), *typing.get_args(part)]
        elif _has_fields(part):
            yield part
            waiting += _hints(part).values()


def _hints(cls: type[Any]) -> dict[str, Any]:
    """Return the types of a class's fields, {} if they cannot be evaluated."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
        return {
            name: hint
            for name, hint in hints.items()
            if ClassVar not in (hint, typing.get_origin(hint))
        }
    except Exception:  # noqa: BLE001 - annotations are code, whose errors msgspec reports
        return {}


def unreadable_field(annotation: Any) -> str:
    """Return the name of a field that msgspec cannot read, with its class, or "".

    The field's type is at fault itself, not a field of a class in it.
    """
    found = ""
    for cls in _classes([annotation]):
        for name, hint in _hints(cls).items():
            if not _is_readable(hint):
                found = f"field {name!r} of {cls.__name__}"
    return found


def _has_fields(part: Any) -> bool:
    """Return True for a class that msgspec reads by its annotations."""
    return (
        isinstance(part, type)
        and not is_model(part)
        and any(hasattr(part, name) for name in _FIELDS)
    )


def _same(left: Any, right: Any) -> bool:
    return left is right


def _stand_in_of_alias(alias: Alias, location: str, pending: _Pending) -> type[StandIn]:
    """Return a stand-in that reads a value as what the alias stands for, which contains it."""
    if alias.stand_in is not None:
        found: type[StandIn] = alias.stand_in
        return found

    def refuse(*_: Any) -> Any:
        raise TypeError(f"the alias {alias.name} cannot be read")

    # Where the value contains the alias, it gets this stand-in, too.
    stand_in = alias.stand_in = _stand_in(refuse, refuse)

    def complete() -> None:
        prepared = _prepare(alias.value, location, pending)

        def read(value: Any) -> Any:
            try:
                return _convert(value, prepared)
            except msgspec.ValidationError as exc:
                texts = [
                    text.replace(" - at `$", " in `$")
                    for text in (str(exc), text_without_value(exc))
                ]
                raise InvalidValue(*texts) from None

        stand_in.read = staticmethod(read)
        stand_in.describe = staticmethod(_Description(alias.name, [prepared], is_alias=True))

    pending.append(complete)
    return stand_in


class Definitions:
    """The definitions of one schema, which the results of `schema_hook` refer to.

    `schemas` has them by keys that no other definition has: each is a name, a space and a number.
    Definitions of classes are inside of them, as `$defs`.
    """

    def __init__(self) -> None:
        self.schemas: dict[str, dict[str, Any]] = {}
        self.keys: dict[_Description, str] = {}
        self.referenced: set[str] = set()
        self.numbers = count(1)


_definitions: ContextVar[Definitions | None] = ContextVar("definitions", default=None)


@contextmanager
def collect_definitions() -> Iterator[Definitions]:
    """Collect the definitions of the schema that is made while this is entered."""
    found = Definitions()
    token = _definitions.set(found)
    try:
        yield found
    finally:
        _definitions.reset(token)


class _Description:
    """The JSON Schema of several types, made when it is called: they may contain themselves.

    In one schema it is made once, if it is needed as a definition: a few aliases that refer to
    each other would make a huge schema otherwise.

    Args:
        name: for a definition.
        types: of which a value has one.
        is_alias: whether it is a definition even where it doesn't contain itself.
    """

    __slots__ = ("_is_alias", "_name", "_types")

    def __init__(self, name: str, types: list[Any], *, is_alias: bool = False) -> None:
        self._name = re.sub(r"\W+", "_", name).strip("_")
        self._types = types
        self._is_alias = is_alias

    def __call__(self) -> dict[str, Any]:
        found = _definitions.get()
        if found is None:  # it is only tried
            with collect_definitions():
                return self()
        key = found.keys.get(self)
        if key is None:
            key = found.keys[self] = f"{self._name} {next(found.numbers)}"
            schemas, definitions = _components(self._types)
            schema: dict[str, Any] = dict(schemas[0])
            if len(schemas) > 1:
                schema = {"anyOf": list(schemas)}
            if definitions:  # a stand-in's schema may have its own, and then there are none here
                schema["$defs"] = definitions
            if not self._is_alias and key not in found.referenced:
                del found.keys[self]
                return schema
            found.schemas[key] = schema
        found.referenced.add(key)
        return {"$ref": REFERENCE.format(name=key)}


def _components(types: list[Any]) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    return msgspec.json.schema_components(types, schema_hook=schema_hook, ref_template=REFERENCE)


def _convert(value: Any, annotation: Any = Any) -> Any:
    return msgspec.convert(value, annotation, dec_hook=decode_hook)


def _prepare_union(
    annotation: Any, parts: tuple[Any, ...], location: str, pending: _Pending
) -> Any:
    """Return a union as it is if msgspec can tell its members apart, otherwise a stand-in."""
    if _is_readable(annotation):
        return annotation
    none = type(None)
    members = [_prepare(part, location, pending) for part in parts if part is not none]
    optional = len(members) < len(parts)
    prepared: Any = typing.Union[tuple(members)]  # noqa: UP007 - computed
    if _is_readable(prepared):
        return typing.Optional[prepared] if optional else prepared  # noqa: UP045
    stand_in = members[0] if len(members) == 1 else _union_of(members)
    return typing.Optional[stand_in] if optional else stand_in  # noqa: UP045 - computed


def _is_readable(annotation: Any) -> bool:
    try:
        msgspec.json.Decoder(annotation)
    except (TypeError, RecursionError):  # an alias of Python 3.12 that contains itself
        return False
    return True


def _union_of(members: list[Any]) -> type[StandIn]:
    """Return a stand-in that reads a value as the first member that accepts it.

    `str` is tried last: it accepts what other types read from text, such as a UUID.
    """
    ordered = sorted(members, key=lambda member: member is str)
    names = ", ".join(_name_of(member) for member in members)

    def read(value: Any) -> Any:
        reasons: list[str] = []
        others: list[str] = []
        for member in ordered:
            try:
                return _convert(value, member)
            except msgspec.ValidationError as exc:
                reasons.append(f"{_name_of(member)}: {exc}")
                others.append(f"{_name_of(member)}: {text_without_value(exc)}")
        from ._explanation import add_scalar

        expected = f"Expected one of {names}"
        raise InvalidValue(
            f"{add_scalar(expected, value)} ({'; '.join(reasons)})",
            f"{expected} ({'; '.join(others)})",
        )

    return _stand_in(read, _Description("_or_".join(map(_name_of, members)), members))


def _name_of(member: Any) -> str:
    return getattr(member, "__name__", str(member))


def _stand_in(
    reader: Callable[[Any], Any], description: Callable[[], dict[str, Any]]
) -> type[StandIn]:
    class Reader(StandIn):
        describe = staticmethod(description)
        read = staticmethod(reader)  # type: ignore[assignment]  # mypy binds it

    return Reader


def unsupported(cls: type[Any]) -> TypeError:
    """Return the error for a class that cannot be decoded from JSON."""
    cure = "list" if (typing.get_origin(cls) or cls) in _LISTED else _OBJECTS
    return TypeError(f"type {cls.__name__} is not supported; use {cure}")


def is_known_class(cls: Any) -> bool:
    """Return True if the hooks of this module read the class."""
    return isinstance(cls, type) and (
        cls is object or issubclass(cls, StandIn) or _is_path(cls) or is_model(cls)
    )


def _is_path(cls: type[Any]) -> bool:
    """Return True for `pathlib.Path` and its like: classes of paths, made from text."""
    return hasattr(cls, "__fspath__")


def decode_hook(cls: type[Any], value: Any) -> Any:
    """Return the object of a class that msgspec doesn't know, from a value of JSON.

    Raises:
        ValueError: the value isn't valid. msgspec adds where it is.
    """
    if cls is object:
        return value
    if issubclass(cls, StandIn):
        return cls.read(value)
    if _is_path(cls):
        if type(value) is not str or "\0" in value:
            raise ValueError("Expected a path")
        return cls(value)
    if is_model(cls):
        return _model_type(cls).read(value)  # type: ignore[arg-type]
    raise unsupported(cls)


# A class is hashable, which mypy doesn't see.
@functools.lru_cache(maxsize=256)
def _model_type(cls: type[Any]) -> PydanticType:
    return PydanticType(cls, cls.__name__)


def schema_hook(cls: type[Any]) -> dict[str, Any]:
    """Return the JSON Schema of a class that msgspec doesn't know.

    Raises:
        TypeError: this module doesn't know it either.
    """
    if cls is object:
        return {ANYTHING: True}
    if issubclass(cls, StandIn):
        return deepcopy(cls.describe())  # the caller moves definitions
    if _is_path(cls):
        return {"type": "string", "format": "path"}
    if is_model(cls):
        return _model_type(cls).schema("validation")  # type: ignore[arg-type]
    raise unsupported(cls)


def _encode_hook(value: Any) -> Any:
    if _is_path(type(value)):
        return value.__fspath__()
    serializer = getattr(type(value), "__pydantic_serializer__", None)
    if serializer is not None:
        return serializer.to_python(value, mode="json", by_alias=True)
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


_encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder(enc_hook=_encode_hook).encode


def encode_value(value: Any) -> bytes:
    """Return the JSON of a value of an author's function.

    Raises:
        UnencodableValue: JSON cannot hold part of the value.
        TypeError: a part of it has a type that has no JSON.
    """
    try:
        data = _encode(value)
    except UnicodeEncodeError:
        raise unencodable(value, _encode_hook) from None
    # Perhaps msgspec's word for NaN. The fields of models show it sooner than their dumps.
    if b"null" in data and may_lack_numbers(value, fields_of):
        check_numbers(value, _encode_hook)
    return data
