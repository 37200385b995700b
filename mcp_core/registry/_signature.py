"""From a signature to the reading of arguments: JSON to keyword arguments, and why that may fail.

Rules of this file:

1. It is the only one of the registry that catches msgspec's errors. What comes out is a `Misfit`, whose text
   is written for the model that chose the arguments: which one is wrong, and why.
2. A tool's arguments are decoded straight from the message into a Struct made from the signature: unknown
   names are refused and nothing is coerced, except that `3.0` is the integer 3, as in JSON Schema. msgspec is
   stricter than that, so arguments it refuses are read a second time with such numbers made whole. The good
   case pays nothing for it.
3. Arguments of prompts and variables of URI templates are text on the wire. Text is read leniently: "3" is an
   `int` where one is wanted, "true" a `bool`, and anything with more structure is read as JSON.

It does not know tools, dialects or error codes.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, time
from typing import Annotated, Any, Final

import msgspec
import msgspec.inspect
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import asdict

from ._errors import DeclarationError
from ._function import MISSING, Function, Parameter, plain, union_members
from ._schema import schema_of

__all__ = ["ArgumentReader", "Misfit", "NotAnObject", "TextReader", "check_type", "read_back", "read_object"]

# What reading JSON can raise: the four of msgspec, and TypeError for a member of a set that Python cannot put into one.
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError)
_IMMUTABLE: Final = (type(None), bool, int, float, str, bytes, tuple, frozenset)


class Misfit(Exception):
    """What was given does not fit what was declared; the text says where and why."""


class NotAnObject(Misfit):
    """What was given as arguments is no JSON object: the request itself is malformed."""

    def __init__(self) -> None:
        super().__init__("arguments has to be an object")


# --- Arguments of tools ---------------------------------------------------------------------------


class ArgumentReader:
    """Reads JSON arguments for one function. `schema` describes them; `read` gives keyword arguments.

    Raises `DeclarationError` when a parameter has a type that cannot come from JSON.
    """

    __slots__ = ("_decode", "_names", "_struct", "schema")

    def __init__(self, function: Function) -> None:
        for parameter in function.parameters:
            check_type(_field_type(parameter), f"{function.label}: parameter {parameter.name!r}")
        self._struct = msgspec.defstruct(
            "Arguments",
            [(p.name, _field_type(p), *_field_default(p)) for p in function.parameters],
            forbid_unknown_fields=True,
            kw_only=True,
            rename={p.name: p.wire_name for p in function.parameters},
        )
        self._decode = msgspec.json.Decoder(self._struct).decode
        self._names = [p.wire_name for p in function.parameters]
        self.schema = _argument_schema(self._struct, function)

    def __repr__(self) -> str:
        return f"<ArgumentReader {', '.join(self._names)}>"

    def read(self, arguments: Raw | bytes | UnsetType) -> dict[str, Any]:
        """The keyword arguments, defaults filled in. Absent `arguments` are an empty object, and so is null.

        Raises:
            Misfit: the arguments are not what the signature says.
            NotAnObject: they are no arguments at all.
        """
        if arguments is UNSET:
            arguments = b"{}"
        try:
            return asdict(self._decode(arguments))
        except _UNREADABLE as exc:
            return self._read_again(arguments, exc)

    def _read_again(self, arguments: Raw | bytes, first: Exception) -> dict[str, Any]:
        try:
            values = _decode_whole_numbers(arguments)
        except _UNREADABLE:
            raise Misfit(_explain(first, self._names)) from None
        if values is None:
            values = {}
        if not isinstance(values, dict):
            raise NotAnObject
        try:
            return asdict(msgspec.convert(values, self._struct, str_keys=True))
        except _UNREADABLE as exc:
            raise Misfit(_explain(exc, self._names)) from None


def _whole(literal: str) -> int | float:
    number = float(literal)
    if number in (float("inf"), float("-inf")):
        raise ValueError("Number out of range")
    return int(number) if number.is_integer() else number


_decode_whole_numbers: Final = msgspec.json.Decoder(float_hook=_whole).decode


def _field_type(parameter: Parameter) -> Any:
    annotation = Any if parameter.annotation is MISSING else _with_formats(parameter.annotation)
    if parameter.default is None and annotation is not Any and type(None) not in union_members(annotation):
        annotation = typing.Optional[annotation]  # noqa: UP045 - it may be something that has no `|`
    described = any(isinstance(e, Meta) and e.description for e in typing.get_args(parameter.annotation)[1:])
    if parameter.description and not described:
        annotation = Annotated[annotation, Meta(description=parameter.description)]
    return annotation


def _field_default(parameter: Parameter) -> tuple[Any, ...]:
    if parameter.required:
        return ()
    if isinstance(parameter.default, _IMMUTABLE):
        return (parameter.default,)
    # The very object, as Python does with defaults; msgspec would refuse or copy some.
    return (msgspec.field(default_factory=lambda: parameter.default),)


_FORMATS: Final = {datetime: "date-time", time: "time"}


def _with_formats(annotation: Any) -> Any:
    """Give `datetime` and `time` the format that msgspec leaves out when the time zone is optional.

    Only parameters are looked at, not the fields of their types: those can carry a `Meta` of their own.
    """
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in (datetime, time):
        return Annotated[annotation, Meta(extra_json_schema={"format": _FORMATS[annotation]})]
    if origin is Annotated:
        return Annotated[_with_formats(annotation.__origin__), *annotation.__metadata__]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_with_formats(part) for part in parts)]  # noqa: UP007 - computed members
    if origin in (list, set, frozenset, tuple, dict):
        return origin[tuple(_with_formats(part) for part in parts)]
    return annotation


def _argument_schema(struct: type[Struct], function: Function) -> dict[str, Any]:
    schema = schema_of(struct)
    schema.pop("title", None)
    properties = schema["properties"]
    for parameter in function.parameters:
        if not parameter.required:
            try:
                default = msgspec.json.decode(msgspec.json.encode(parameter.default))
            except (TypeError, ValueError):
                continue  # a default that JSON cannot say is not worth an error
            properties[parameter.wire_name]["default"] = default
    return schema


def _explain(exc: Exception, known: list[str]) -> str:
    """msgspec's message about arguments, in the words of someone who calls a function."""
    if isinstance(exc, RecursionError):
        return "Invalid arguments: nested too deeply"
    reason, _, path = str(exc).partition(" - at `$")
    path = path.removesuffix("`").removeprefix(".")
    if path:
        return f"Invalid argument `{path}`: {reason[:1].lower()}{reason[1:]}"
    missing = reason.removeprefix("Object missing required field ")
    if missing != reason:
        return f"Missing argument {missing}"
    unknown = reason.removeprefix("Object contains unknown field ")
    if unknown != reason:
        return f"Unknown argument {unknown}; the arguments are: {', '.join(known) or 'none'}"
    return f"Invalid arguments: {reason[:1].lower()}{reason[1:]}"


# --- Arguments that are text ----------------------------------------------------------------------


class _TextField(Struct, frozen=True):
    name: str
    required: bool
    is_text: bool
    read: Callable[[Any], Any]


class TextReader:
    """Reads text arguments (of a prompt, or taken from a URI) for one function.

    Raises `DeclarationError` when a parameter has a type that cannot come from JSON.
    """

    __slots__ = ("_fields",)

    def __init__(self, function: Function) -> None:
        self._fields = {
            p.wire_name: _TextField(
                p.name, p.required, plain(p.annotation) in _TEXT, _text_reader(p, function.label)
            )
            for p in function.parameters
        }

    def __repr__(self) -> str:
        return f"<TextReader {', '.join(self._fields)}>"

    def read(self, arguments: Mapping[str, str | list[str]]) -> dict[str, Any]:
        """The keyword arguments. What is left out is left to the function's own defaults.

        Empty text for an argument that has a default and is not meant to be text counts as left out: it is
        what forms send for a field that nobody filled in.

        Raises:
            Misfit: an argument is missing, unknown, or not what the annotation says.
        """
        values: dict[str, Any] = {}
        for wire_name, text in arguments.items():
            field = self._fields.get(wire_name)
            if field is None:
                raise Misfit(
                    f"Unknown argument `{wire_name}`; the arguments are: {', '.join(self._fields) or 'none'}"
                )
            if text or field.required or field.is_text:
                try:
                    values[field.name] = field.read(text)
                except _UNREADABLE as exc:
                    reason = str(exc)
                    raise Misfit(
                        f"Invalid argument `{wire_name}`: {reason[:1].lower()}{reason[1:]}"
                    ) from None
        for wire_name, field in self._fields.items():
            if field.required and wire_name not in arguments:
                raise Misfit(f"Missing argument `{wire_name}`")
        return values


_TEXT: Final = (str, Any, MISSING)


def _text_reader(parameter: Parameter, label: str) -> Callable[[Any], Any]:
    annotation = Any if parameter.annotation is MISSING else parameter.annotation
    check_type(annotation, f"{label}: parameter {parameter.name!r}")
    decode = msgspec.json.Decoder(annotation, strict=False).decode
    only_text = str in union_members(annotation)

    def read(text: str | list[str]) -> Any:
        try:
            return msgspec.convert(text, annotation, strict=False)
        except msgspec.ValidationError:
            if only_text or not isinstance(text, str):
                raise
            try:
                return decode(text)
            except _UNREADABLE:
                pass
            raise

    return read


# --- Everything else that msgspec reads -----------------------------------------------------------


def check_type(annotation: Any, place: str) -> None:
    """Raise `DeclarationError` when `annotation` cannot come from JSON; `place` names it."""
    try:
        # A list of tools that cannot be sent would be found out by the first peer that asks for it.
        msgspec.json.encode(schema_of(annotation))
        msgspec.json.Decoder(annotation)
        for part in _parts_of(annotation):
            # A description is schema enough for msgspec to describe such a type, which it reads from nothing.
            if isinstance(part, msgspec.inspect.CustomType):
                raise TypeError(f"type {part.cls.__name__} is not supported")
    except Exception as exc:  # building a type runs the annotations of everything in it
        reason = str(exc).strip().splitlines()[-1:] or [type(exc).__name__]
        raise DeclarationError(f"{place} cannot be described by a JSON Schema: {reason[0]}") from exc


def _parts_of(annotation: Any) -> Iterator[msgspec.inspect.Type | msgspec.inspect.Field]:
    """Everything that a type is made of, itself included."""
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
    """The arguments of a tool with a given schema, as they came; absent and null are an empty object.

    Raises:
        Misfit: they are not JSON.
        NotAnObject: they are JSON of another kind.
    """
    if arguments is UNSET:
        return {}
    try:
        values = _decode_any(arguments)
    except _UNREADABLE as exc:
        raise Misfit(_explain(exc, [])) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise NotAnObject
    return values


def read_back(data: bytes, decode: Callable[[bytes], Any]) -> Any:
    """Read `data`, which our side encoded, as the type it was declared to have.

    Raises:
        Misfit: it is not of that type.
    """
    try:
        return decode(data)
    except _UNREADABLE as exc:
        raise Misfit(str(exc)) from None
