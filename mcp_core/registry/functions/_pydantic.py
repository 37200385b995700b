"""Pydantic's models, fields and types in signatures, without a dependency on pydantic.

1. They are recognised by their attributes. Pydantic is imported when a declared function uses it,
   so the author's program has imported it before.
2. An annotation that contains one of them anywhere is read, described and written by pydantic as a
   whole, with its own schema and error texts.
"""

from __future__ import annotations

import typing
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcp_core._errors import UnencodableValue
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, reader
from mcp_core.protocol.jsonrpc._unencodable import (
    check_numbers,
    find_unencodable,
    may_lack_numbers,
)
from mcp_core.registry._errors import DeclarationError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = [
    "InvalidValue",
    "PydanticType",
    "field_of",
    "fields_of",
    "has_pydantic_metadata",
    "is_field",
    "is_model",
    "runs_functions",
    "text_without_value",
    "uses_pydantic",
]

# The packages whose objects in `Annotated[...]` only pydantic reads.
_PACKAGES: Final = ("pydantic", "pydantic_core", "annotated_types")
_read_any = reader(object)
_Mode = typing.Literal["json", "python"]
# What pydantic's schema of a type has for a function that writes a value.
_WRITER: Final = "'serialization': {'type': 'function-"
# The packages of objects that are written as texts or integers.
_WRITTEN_AS_TEXTS: Final = ("pydantic", "pydantic_core", "ipaddress", "pathlib", "re")


def is_field(value: Any) -> bool:
    """Return True if `value` is what `pydantic.Field(...)` returns."""
    return type(value).__name__ == "FieldInfo" and _is_of_pydantic(value)


def is_model(annotation: Any) -> bool:
    """Return True for a class that pydantic reads: a model, a dataclass or a type of its own."""
    return isinstance(annotation, type) and (
        hasattr(annotation, "__pydantic_core_schema__")
        or hasattr(annotation, "__get_pydantic_core_schema__")
    )


def uses_pydantic(annotation: Any) -> bool:
    """Return True if pydantic has to read `annotation`, because of itself or a part of it.

    The fields of a Struct are no part: pydantic cannot read a Struct.
    """
    return has_pydantic_metadata(annotation) or any(map(is_model, _parts(annotation)))


def has_pydantic_metadata(annotation: Any) -> bool:
    """Return True if `Annotated[...]` in the annotation has metadata that only pydantic reads."""
    return any(
        any(map(_is_of_pydantic, getattr(part, "__metadata__", ()))) for part in _parts(annotation)
    )


def runs_functions(annotation: Any) -> bool:
    """Return True if pydantic may call functions to read `annotation`, or reads JSON in a text."""
    from pydantic import TypeAdapter

    schema = repr(TypeAdapter(annotation).core_schema)
    return "'type': 'function-" in schema or "'type': 'json'" in schema


def field_of(annotation: Any) -> Any:
    """Return the `Field(...)` in `Annotated[T, Field(...)]`, None without one."""
    return next(filter(is_field, getattr(annotation, "__metadata__", ())), None)


def _is_of_pydantic(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in _PACKAGES or hasattr(
        value, "__get_pydantic_core_schema__"
    )


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield the annotation, its type arguments, and the fields of its dataclasses and such."""
    waiting, seen = [annotation], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        # `Annotated[T, ...]` has T as its origin, and the metadata among its arguments.
        origin = typing.get_origin(part)
        if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
            continue  # as its fields
        waiting += [part.__origin__] if origin is typing.Annotated else typing.get_args(part)
        # As `dataclasses.is_dataclass`, which takes longer to import than all of `registry.tasks`.
        is_dataclass = hasattr(part, "__dataclass_fields__")
        # Also of `typing_extensions`, the only ones that pydantic reads before Python 3.12.
        is_typed_dict = hasattr(part, "__required_keys__")
        if is_dataclass or is_typed_dict or hasattr(part, "_fields"):
            try:
                waiting += typing.get_type_hints(part, include_extras=True).values()
            except Exception:  # noqa: BLE001, S112 - annotations are code, checked later
                continue


class PydanticType:
    """The reader, writer and schemas of an annotation, by pydantic.

    Args:
        annotation: the annotation, with the metadata of `Annotated`.
        location: names it in error texts.

    Raises:
        DeclarationError: pydantic isn't installed, or cannot read the annotation.
    """

    __slots__ = ("_adapter", "_dump_mode", "_has_secrets")

    def __init__(self, annotation: Any, location: str) -> None:
        try:
            from pydantic import TypeAdapter
        except ImportError:
            raise DeclarationError(
                f"{location} uses annotations that only pydantic reads: pip install pydantic"
            ) from None
        try:
            with warnings.catch_warnings():
                # A parameter's name is read from its `Field(alias=...)` by us.
                warnings.filterwarnings("ignore", r"The '(validation_)?alias' attribute")
                self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            parts = repr(self._adapter.core_schema)
            self._dump_mode: _Mode = "json" if _WRITER in parts else "python"
            # The classes and functions of pydantic's secrets, and fields with such a name.
            self._has_secrets = "secret" in parts.lower()
            self.schema("validation")
        except Exception as exc:  # building a schema runs the code of the author's types
            reason = str(exc).partition(". ")[0].strip() or type(exc).__name__
            raise DeclarationError(
                f"{location} cannot be read by pydantic: {reason}; "
                "use types of pydantic only, or none, in one annotation"
            ) from exc

    def schema(self, mode: typing.Literal["validation", "serialization"]) -> dict[str, Any]:
        """Return the JSON Schema of what is read ("validation") or written ("serialization").

        References point into its own `$defs`.
        """
        return self._adapter.json_schema(mode=mode)

    def read(self, value: Any) -> Any:
        """Return the object for a value of JSON.

        Raises:
            InvalidValue: the value isn't valid. The text says each error.
        """
        # As JSON, since a strict model accepts text for a date from JSON only.
        try:
            return self._adapter.validate_json(msgspec.json.encode(value))
        except ValueError as exc:  # pydantic's ValidationError is one
            error = exc
        # Outside of the handler: a log shows the handled error of another one, with its values.
        from ._explanation import describe_errors

        raise InvalidValue(*describe_errors(error, value, has_secrets=self._has_secrets))

    def write(self, value: Any) -> bytes:
        """Return the JSON of an object.

        Raises:
            InvalidValue: it isn't of the annotated type.
            UnencodableValue: JSON cannot hold a part of it.
        """
        try:
            validated = self._adapter.validate_python(value)
        except ValueError as exc:
            error = exc
        else:
            return self._dump_json(validated)
        from ._explanation import describe_errors

        raise InvalidValue(*describe_errors(error))

    def _dump_json(self, validated: Any) -> bytes:
        """Return the JSON of a validated object, as `write`."""
        try:
            data = self._adapter.dump_json(validated, by_alias=True)
        except ValueError:  # half of a surrogate pair, or an exception of the author's serializer
            problem = find_unencodable(self._dump(validated))
            if problem:
                raise UnencodableValue(problem) from None
            raise
        # What pydantic writes for a number that JSON lacks, by its setting `ser_json_inf_nan`.
        if b"null" in data or b"NaN" in data or b"Infinity" in data:
            self._check_numbers(validated, data)
        return data

    def _check_numbers(self, value: Any, data: bytes) -> None:
        """Raise `UnencodableValue` if `value` has a number that `data` lacks: that has no JSON.

        In the mode for JSON pydantic has None for a NaN in what has no type. The other mode shows
        it, but is right only if the author has no functions that write something else for JSON.
        """
        if not may_lack_numbers(value, fields_of):
            return
        modes: tuple[_Mode, ...] = ("json",)
        if self._dump_mode == "python" and not _has_writers(value):
            modes = ("json", "python")
        for mode in modes:
            dumped = self._adapter.dump_python(value, mode=mode, by_alias=True)
            if not may_lack_numbers(dumped):
                continue
            try:
                dumped = _lost(dumped, _read_any(data))
            except InvalidPayload:  # a bare NaN, which isn't JSON
                pass
            check_numbers(dumped)

    def _dump(self, value: Any) -> Any:
        """Return what `value` is dumped as, in types of Python."""
        return self._adapter.dump_python(value, mode=self._dump_mode, by_alias=True)


def fields_of(value: Any) -> Any:
    """Return the fields of a model, None for what is written as text: a hook of encoders.

    Raises:
        TypeError: the value may be written as something else.
    """
    cls: Any = type(value)  # hashable, which mypy doesn't see
    if not _has_fields(cls):
        return None
    extra = value.__pydantic_extra__
    return {**value.__dict__, **extra} if extra else value.__dict__


@lru_cache(maxsize=256)
def _has_fields(cls: Any) -> bool:
    """Return True for a model that is written by its fields alone, False for a text."""
    decorators = getattr(cls, "__pydantic_decorators__", None)
    if decorators is None:
        if cls.__module__.partition(".")[0] in _WRITTEN_AS_TEXTS:
            return False
        raise TypeError
    if decorators.field_serializers or decorators.model_serializers or decorators.computed_fields:
        raise TypeError
    return True


def _has_writers(value: Any) -> bool:
    """Return True if an object in `value` is written by functions of its class."""
    waiting, seen = [value], set()
    for part in waiting:  # which grows
        if id(part) in seen:
            continue
        seen.add(id(part))
        if _WRITER in repr(getattr(type(part), "__pydantic_core_schema__", "")):
            return True
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple | set | frozenset):
            waiting += part
        else:
            waiting += getattr(part, "__dict__", {}).values()
            waiting += (getattr(part, "__pydantic_extra__", None) or {}).values()
    return False


def _lost(value: Any, written: Any) -> Any:
    """Return `value` with the numbers for which `written`, its JSON, has null, and no others.

    The members of an object are written in their order, those of a set in any.
    """
    if isinstance(value, float):
        return value if written is None else None
    if isinstance(value, dict) and isinstance(written, dict) and len(value) == len(written):
        parts = zip(value.items(), written.values(), strict=True)
        return {key: _lost(item, part) for (key, item), part in parts}
    if not isinstance(written, list):
        return None
    if isinstance(value, list | tuple) and len(value) == len(written):
        return [_lost(*pair) for pair in zip(value, written, strict=True)]
    if isinstance(value, set | frozenset) and None in written and None not in value:
        return [item for item in value if isinstance(item, float)]
    return None


class InvalidValue(ValueError):
    """A value isn't valid. The text may repeat the value, for the model that chose it.

    Attributes:
        without_value: the text for others, such as a log.
    """

    def __init__(self, text: str, without_value: str) -> None:
        super().__init__(text)
        self.without_value = without_value


def text_without_value(exc: Exception) -> str:
    """Return the text of msgspec's error, or of `InvalidValue`, without the value."""
    cause = exc if isinstance(exc, InvalidValue) else exc.__cause__
    if isinstance(cause, InvalidValue):
        return str(exc).replace(str(cause), cause.without_value, 1)
    return str(exc)
