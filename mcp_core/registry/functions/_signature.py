"""Conversion of arguments to keyword arguments, as a signature declares them.

1. Only this file of the registry catches msgspec's errors. It raises `InvalidArguments`, whose text
   is for the model that chose the arguments: which one is invalid, and why.
2. A tool's arguments are decoded from the message into a Struct made from the signature. Unknown
   names are rejected and nothing is coerced, except that `3.0` is the integer 3, as in JSON Schema.
3. Arguments of prompts and variables of URI templates are text. Text is read leniently: "3" is an
   `int` if the signature has one, "true" a `bool`, and any structure is read as JSON.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, time
from typing import Annotated, Any, Final

import msgspec
import msgspec.inspect
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import asdict

from mcp_core.registry._errors import DeclarationError

from ._function import (
    MISSING,
    DefaultFactory,
    Function,
    Parameter,
    strip_annotated,
    union_members,
)
from ._pydantic import has_pydantic_metadata, runs_functions, text_without_value, uses_pydantic
from ._schema import schema_of
from ._types import (
    decode_hook,
    encode_value,
    is_known_class,
    prepare_fields,
    prepare_type,
    unreadable_field,
    unsupported,
)

__all__ = [
    "ArgumentReader",
    "ArgumentsNotAnObject",
    "InvalidArguments",
    "TextReader",
    "check_encoded",
    "read_object",
    "readable_type",
]

# What msgspec raises for invalid JSON. TypeError is for an unhashable member of a set.
_DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError)
_IMMUTABLE: Final = (type(None), bool, int, float, str, bytes, tuple, frozenset)


class InvalidArguments(Exception):
    """A value doesn't have the declared type or schema. The text says where and why."""


class ArgumentsNotAnObject(InvalidArguments):
    """The arguments aren't a JSON object: the request itself is malformed."""

    def __init__(self) -> None:
        super().__init__("arguments has to be an object")


# --- Arguments of tools ---------------------------------------------------------------------------


class ArgumentReader:
    """The reader of a tool's JSON arguments. `schema` describes them.

    Raises:
        DeclarationError: a parameter has a type that cannot be decoded from JSON.
    """

    __slots__ = ("_decode", "_names", "_struct", "schema")

    def __init__(self, function: Function) -> None:
        self._struct = msgspec.defstruct(
            "Arguments",
            [
                (p.name, _field_type(p, function.label), *_field_default(p))
                for p in function.parameters
            ],
            forbid_unknown_fields=True,
            kw_only=True,
            rename={p.name: p.wire_name for p in function.parameters},
        )
        self._decode = msgspec.json.Decoder(self._struct, dec_hook=decode_hook).decode
        self._names = [p.wire_name for p in function.parameters]
        self.schema = _argument_schema(self._struct, function)

    def __repr__(self) -> str:
        return f"<ArgumentReader {', '.join(self._names)}>"

    def read(self, arguments: Raw | bytes | UnsetType) -> dict[str, Any]:
        """Return the keyword arguments, with defaults.

        Absent arguments and null are an empty object.

        Raises:
            InvalidArguments: the arguments don't fit the signature.
            ArgumentsNotAnObject: they aren't a JSON object.
        """
        if arguments is UNSET:
            arguments = b"{}"
        try:
            return asdict(self._decode(arguments))
        except _DECODE_ERRORS as exc:
            # msgspec rejects `3.0` for an int. Only rejected arguments are decoded a second time.
            return self._read_whole_numbers(arguments, exc)

    def _read_whole_numbers(self, arguments: Raw | bytes, first: Exception) -> dict[str, Any]:
        """Read arguments again, with `3.0` as 3. `first` is the error of the first attempt."""
        try:
            values = _decode_whole_numbers(arguments)
        except _DECODE_ERRORS:
            raise InvalidArguments(_explain(first, self._names, None, {})) from None
        if values is None:
            values = {}
        if not isinstance(values, dict):
            raise ArgumentsNotAnObject
        try:
            return asdict(
                msgspec.convert(values, self._struct, str_keys=True, dec_hook=decode_hook)
            )
        except _DECODE_ERRORS as exc:
            raise InvalidArguments(_explain(exc, self._names, values, self.schema)) from None


def _parse_number(literal: str) -> int | float:
    number = float(literal)
    if number in (float("inf"), float("-inf")):
        raise ValueError("Number out of range")
    return int(number) if number.is_integer() else number


_decode_whole_numbers: Final = msgspec.json.Decoder(float_hook=_parse_number).decode


def _field_type(parameter: Parameter, label: str) -> Any:
    annotation = Any if parameter.annotation is MISSING else _with_formats(parameter.annotation)
    if (
        parameter.default is None
        and strip_annotated(annotation) is not Any
        and type(None) not in union_members(annotation)
    ):
        annotation = typing.Optional[annotation]  # noqa: UP045 - not every annotation has `|`
    annotation = readable_type(annotation, f"{label}: parameter {parameter.name!r}")
    _check_default(parameter, annotation, label)
    extras = typing.get_args(parameter.annotation)
    has_description = any(isinstance(extra, Meta) and extra.description for extra in extras)
    if parameter.description and not has_description:
        annotation = Annotated[annotation, Meta(description=parameter.description)]
    return annotation


def _check_default(parameter: Parameter, annotation: Any, label: str) -> None:
    """Raise `DeclarationError` if a default isn't a value that a peer could send.

    None is allowed for every type. What JSON cannot represent isn't in the schema. Only a value of
    JSON is judged: an object may be written in another way than it is read. Neither is what the
    author's own code reads, which may expect text and return a list.
    """
    default = parameter.default
    if default is None or parameter.required or not _is_json(default):
        return
    if isinstance(default, bool) and {int, float} & set(union_members(parameter.annotation)):
        return  # an int, for Python
    try:
        data = encode_value(default)
    except (TypeError, ValueError):
        return
    try:
        _decode_leniently(data, annotation)
    except msgspec.ValidationError as exc:
        if exc.__cause__ is not None and (  # an error of a hook
            not uses_pydantic(parameter.annotation) or runs_functions(parameter.annotation)
        ):
            return
        raise DeclarationError(
            f"{label}: the default {default!r} of parameter {parameter.name!r} "
            f"does not fit its type: {exc}"
        ) from exc
    except (Exception, SystemExit):  # noqa: BLE001, S110 - of a validator of the author's
        pass


def _is_json(value: Any) -> bool:
    """Return True for a value of the types of JSON, in lists, tuples and dicts."""
    kind = type(value)
    if kind in (list, tuple):
        return all(map(_is_json, value))
    if kind is dict:
        return all(map(_is_json, value)) and all(map(_is_json, value.values()))
    return kind in (types.NoneType, bool, int, float, str)


def _decode_leniently(data: bytes, annotation: Any) -> None:
    """Decode an argument as its type, with `3.0` for the integer 3.

    Raises:
        msgspec.ValidationError: it isn't of that type.
    """
    try:
        msgspec.json.decode(data, type=annotation, dec_hook=decode_hook)
    except msgspec.ValidationError as first:
        try:
            msgspec.convert(
                _decode_whole_numbers(data), annotation, str_keys=True, dec_hook=decode_hook
            )
        except msgspec.ValidationError:
            raise first from first.__cause__


def _field_default(parameter: Parameter) -> tuple[Any, ...]:
    if parameter.required:
        return ()
    if isinstance(parameter.default, DefaultFactory):
        return (msgspec.field(default_factory=parameter.default.make),)
    if isinstance(parameter.default, _IMMUTABLE):
        return (parameter.default,)
    # The same object in each call, as Python does. msgspec would copy or reject some defaults.
    return (msgspec.field(default_factory=lambda: parameter.default),)


_FORMATS: Final = {datetime: "date-time", time: "time"}


def _with_formats(annotation: Any) -> Any:
    """Return the annotation with a `format` for `datetime` and `time`.

    msgspec leaves it out if the time zone is optional. Only the parameter itself is changed, not
    the fields of its type: those can have a `Meta` of their own.
    """
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in (datetime, time):
        return Annotated[annotation, Meta(extra_json_schema={"format": _FORMATS[annotation]})]
    if origin is Annotated:
        return Annotated[_with_formats(annotation.__origin__), *annotation.__metadata__]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_with_formats(part) for part in parts)]  # noqa: UP007 - computed
    if parts and origin in (list, set, frozenset, tuple, dict):
        return origin[tuple(_with_formats(part) for part in parts)]
    return annotation


def _argument_schema(struct: type[Struct], function: Function) -> dict[str, Any]:
    schema = schema_of(struct)
    schema.pop("title", None)
    properties = schema["properties"]
    for parameter in function.parameters:
        if not parameter.required:
            try:
                default = msgspec.json.decode(encode_value(parameter.default))
            except (TypeError, ValueError):
                continue  # JSON cannot represent this default, which the schema may leave out
            properties[parameter.wire_name]["default"] = default
    return schema


def _explain(exc: Exception, known: list[str], values: Any, schema: Mapping[str, Any]) -> str:
    """Return msgspec's message, in terms of arguments, with what is allowed."""
    if isinstance(exc, RecursionError):
        return "Invalid arguments: nested too deeply"
    reason, path = _split_path(exc)
    if path:
        from ._explanation import add_allowed

        reason = add_allowed(reason, path, values, schema)
        return f"Invalid argument `{path.removeprefix('.')}`: {_uncapitalized(reason)}"
    missing = reason.removeprefix("Object missing required field ")
    if missing != reason:
        return f"Missing argument {missing}"
    unknown = reason.removeprefix("Object contains unknown field ")
    if unknown != reason:
        return f"Unknown argument {unknown}; the arguments are: {', '.join(known) or 'none'}"
    return f"Invalid arguments: {_uncapitalized(reason)}"


def _uncapitalized(reason: str) -> str:
    """Return a sentence with a small letter. A name at its beginning, as in `A.b: ...`, stays."""
    first = reason.partition(" ")[0]
    return reason[:1].lower() + reason[1:] if first.isalpha() else reason


def _split_path(exc: Exception) -> tuple[str, str]:
    """Return msgspec's reason and the path, "" for the whole value.

    The path is at the end. The reason may contain what looks like one, if it repeats a value.
    """
    reason, found, path = str(exc).rpartition(" - at `$")
    return (reason, path.removesuffix("`")) if found and path.endswith("`") else (str(exc), "")


# --- Text arguments -------------------------------------------------------------------------------


class _TextField(Struct, frozen=True):
    name: str
    required: bool
    is_text: bool
    annotation: Any
    read: Callable[[Any], Any]
    # What `Field(...)` in place of a default stands for, otherwise None.
    make_default: Callable[[], Any] | None

    @property
    def schema(self) -> dict[str, Any]:
        return schema_of(self.annotation)


class TextReader:
    """The reader of text arguments: of a prompt, or of the variables in a URI.

    Raises:
        DeclarationError: a parameter has a type that cannot be decoded from JSON.
    """

    __slots__ = ("_fields",)

    def __init__(self, function: Function) -> None:
        self._fields = {p.wire_name: _text_field(p, function.label) for p in function.parameters}

    def __repr__(self) -> str:
        return f"<TextReader {', '.join(self._fields)}>"

    def read(self, arguments: Mapping[str, str | list[str]]) -> dict[str, Any]:
        """Return the keyword arguments, without those that are left to the function's defaults.

        Empty text counts as absent if the argument has a default and another type than text:
        clients send it for an empty field of a form.

        Raises:
            InvalidArguments: an argument is missing, unknown, or not of the annotated type.
        """
        values: dict[str, Any] = {}
        for wire_name, text in arguments.items():
            field = self._fields.get(wire_name)
            if field is None:
                known = ", ".join(self._fields) or "none"
                raise InvalidArguments(
                    f"Unknown argument `{wire_name}`; the arguments are: {known}"
                )
            if text or field.required or field.is_text:
                try:
                    values[field.name] = field.read(text)
                except _DECODE_ERRORS as exc:
                    reason, path = _explain_text(exc, text, field.schema)
                    raise InvalidArguments(
                        f"Invalid argument `{wire_name}{path}`: {reason}"
                    ) from None
        for wire_name, field in self._fields.items():
            if field.name in values:
                continue
            if field.required:
                raise InvalidArguments(f"Missing argument `{wire_name}`")
            if field.make_default is not None:
                values[field.name] = field.make_default()
        return values


def _explain_text(
    exc: Exception, text: str | list[str], schema: Mapping[str, Any]
) -> tuple[str, str]:
    """Return why a text argument is invalid, and the path in it, "" for the whole text."""
    if isinstance(exc, RecursionError):
        return "nested too deeply", ""
    from ._explanation import add_allowed

    reason, path = _split_path(exc)
    value: Any = text
    if path and isinstance(text, str):
        with suppress(*_DECODE_ERRORS):  # of what follows the invalid part
            value = _decode_any(text)
    return _uncapitalized(add_allowed(reason, path, value, schema)), path


_TEXT: Final = (str, Any, MISSING)


def _default_of_field(parameter: Parameter) -> Callable[[], Any] | None:
    """Return a maker of the default, None if Python knows the default itself."""
    if not parameter.has_field or parameter.required:
        return None
    if isinstance(parameter.default, DefaultFactory):
        return parameter.default.make
    return lambda: parameter.default


def _text_field(parameter: Parameter, label: str) -> _TextField:
    annotation = Any if parameter.annotation is MISSING else parameter.annotation
    annotation = readable_type(annotation, f"{label}: parameter {parameter.name!r}")
    _check_default(parameter, annotation, label)
    return _TextField(
        parameter.name,
        parameter.required,
        strip_annotated(parameter.annotation) in _TEXT,
        annotation,
        _text_reader(annotation),
        _default_of_field(parameter),
    )


def _text_reader(annotation: Any) -> Callable[[Any], Any]:
    decode = msgspec.json.Decoder(annotation, strict=False, dec_hook=decode_hook).decode
    allows_text = str in union_members(annotation)

    def read(text: str | list[str]) -> Any:
        try:
            return msgspec.convert(text, annotation, strict=False, dec_hook=decode_hook)
        except msgspec.ValidationError:
            # A type that allows text accepts any text, so its error is final.
            if allows_text or not isinstance(text, str):
                raise
            try:
                return decode(text)
            except (msgspec.ValidationError, RecursionError):
                raise  # as JSON it has the clearer error
            except _DECODE_ERRORS:
                pass
            raise

    return read


# --- Types and values -----------------------------------------------------------------------------

_UNION_CURE: Final = "a field can be one of several Structs with tag=True, or pydantic models"


def readable_type(annotation: Any, location: str) -> Any:
    """Return `annotation` as decoders with `decode_hook` read it.

    `location` names the annotation in error texts.

    Raises:
        DeclarationError: JSON cannot be decoded as `annotation`.
    """
    try:
        if not uses_pydantic(annotation):  # which reads aliases in fields itself
            prepare_fields(annotation, location)
        readable = prepare_type(annotation, location)
        for part in _parts_of(readable):
            # With a description msgspec makes a schema of any class, although it cannot decode it.
            if isinstance(part, msgspec.inspect.CustomType) and not is_known_class(part.cls):
                raise unsupported(part.cls)
            if isinstance(part, msgspec.inspect.StructType):
                _check_struct(part.cls)
        # Encode it now: otherwise `tools/list` would fail at the first client.
        msgspec.json.encode(schema_of(readable))
        msgspec.json.Decoder(readable, dec_hook=decode_hook)
    except DeclarationError:
        raise
    except Exception as exc:  # inspecting a type runs annotations, which may raise anything
        lines = str(exc).strip().splitlines() or [type(exc).__name__]
        field = unreadable_field(annotation)
        is_named = not field or lines[-1].startswith("field ")
        reason = lines[-1] if is_named else f"{field}: {lines[-1]}"
        cure = f"; {_UNION_CURE}" if field and "union" in reason else ""
        raise DeclarationError(
            f"{location} cannot be described by a JSON Schema: {reason}{cure}"
        ) from exc
    return readable


def _check_struct(cls: type) -> None:
    """Raise `TypeError` if pydantic's metadata is in a Struct, where msgspec ignores it."""
    cls = typing.get_origin(cls) or cls
    for name, hint in typing.get_type_hints(cls, include_extras=True).items():
        if has_pydantic_metadata(hint):
            raise TypeError(
                f"field {name!r} of {cls.__name__} is annotated for pydantic; "
                "use msgspec.Meta in a Struct, or a pydantic model"
            )


def _parts_of(annotation: Any) -> Iterator[msgspec.inspect.Type | msgspec.inspect.Field]:
    """Yield the type and all types and fields inside of it."""
    waiting: list[Any] = [msgspec.inspect.type_info(annotation)]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen and isinstance(part, msgspec.inspect.Type | msgspec.inspect.Field):
            seen.add(id(part))
            yield part
            for name in part.__struct_fields__:
                value = getattr(part, name)
                waiting += value if isinstance(value, tuple) else (value,)


_decode_any: Final = msgspec.json.Decoder().decode


def read_object(arguments: Raw | bytes | UnsetType) -> dict[str, Any]:
    """Return the arguments of a tool with a declared schema, not validated.

    Absent arguments and null are an empty object.

    Raises:
        InvalidArguments: they aren't JSON.
        ArgumentsNotAnObject: they aren't a JSON object.
    """
    if arguments is UNSET:
        return {}
    try:
        values = _decode_any(arguments)
    except _DECODE_ERRORS as exc:
        raise InvalidArguments(_explain(exc, [], None, {})) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ArgumentsNotAnObject
    return values


def check_encoded(data: bytes, decode: Callable[[bytes], Any]) -> Any:
    """Decode `data`, an encoded return value, as its declared type.

    Raises:
        InvalidArguments: it isn't of that type. The text doesn't repeat values.
    """
    try:
        return decode(data)
    except _DECODE_ERRORS as exc:
        raise InvalidArguments(text_without_value(exc)) from None
