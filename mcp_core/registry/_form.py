"""Elicitation forms: from a Python type to a restricted JSON Schema, and from content to an object.

1. A form is flat. Its fields are strings, numbers, booleans, and choices of one or of several
   values (client/elicitation, Requested Schema).
2. A constraint that a form cannot express raises `DeclarationError`. If it were left out, the user
   could enter a value that the server rejects later.
3. Content is validated as strictly as a tool's arguments. A number like `3.0` is the integer
   3.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, overload

import msgspec
import msgspec.inspect as mi
from msgspec import NODEFAULT, Struct

from mcp_core import types as t
from mcp_core.protocol.input_requests._kinds import exact_form_schema, find_error
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader

from ._errors import DeclarationError
from .functions._pydantic import PydanticType, uses_pydantic
from .functions._types import prepare_fields

__all__ = [
    "AcceptedElicitation",
    "CancelledElicitation",
    "DeclinedElicitation",
    "ElicitationResult",
    "Form",
    "as_form",
    "not_accepted",
]

T = TypeVar("T")


class AcceptedElicitation(Struct, Generic[T], frozen=True):
    """The user accepted (client/elicitation, Response Actions).

    `data` is the form's content, an object of its type; None for a page to visit. `action` is
    always "accept".
    """

    data: T
    action: Literal["accept"] = "accept"


class DeclinedElicitation(Struct, frozen=True):
    """The user declined explicitly. `action` is always "decline"."""

    action: Literal["decline"] = "decline"


class CancelledElicitation(Struct, frozen=True):
    """The user dismissed the dialog without a choice. `action` is always "cancel"."""

    action: Literal["cancel"] = "cancel"


# What an elicitation returns: `match` on the class, or compare `action` with "accept".
ElicitationResult: TypeAlias = AcceptedElicitation[T] | DeclinedElicitation | CancelledElicitation


def not_accepted(action: str) -> DeclinedElicitation | CancelledElicitation:
    """Return the result for an `action` that isn't "accept"."""
    return DeclinedElicitation() if action == "decline" else CancelledElicitation()


class Form(Generic[T]):
    """A form with the fields of a Struct, dataclass, TypedDict or pydantic model::

        class Seats(msgspec.Struct):
            count: Annotated[int, msgspec.Meta(ge=1, le=8, description="How many?")]
            where: Literal["aisle", "window"] = "aisle"

        SEATS = Form(Seats)

    A field is a `str`, `int`, `float`, `bool`, `date` or `datetime`; a `Literal` or `Enum` of
    strings, for one choice, or a list or set of these, for several; or one of these or None. It is
    required unless it has a default, which clients show.

    `msgspec.Meta` gives a field a title, a description (or `Annotated[..., "a description"]`) and
    bounds. With `extra_json_schema` it also gives a format (`{"format": "email"}`), or titles for
    choices (`{"oneOf": [{"const": "a", "title": "On the aisle"}, ...]}`). For a pydantic model
    `pydantic.Field` does the same.

    Do not ask for secrets in a form (client/elicitation, Requested Schema).

    Args:
        fields: the type; or a JSON Schema of that kind, which is sent as it is. The content is then
            a dict.

    Attributes:
        schema: the JSON Schema.

    Raises:
        DeclarationError: the type or the schema isn't suitable.
    """

    __slots__ = ("_integers", "_reader", "schema")

    @overload
    def __init__(self: Form[dict[str, Any]], fields: Mapping[str, Any]) -> None: ...
    @overload
    def __init__(self, fields: type[T]) -> None: ...
    def __init__(self, fields: Any) -> None:
        self._reader: Callable[[bytes], Any] | None = None
        self.schema: dict[str, Any]
        if isinstance(fields, Mapping):
            self.schema = dict(fields)
            label = "a form's schema"
        else:
            label = f"a form of {getattr(fields, '__name__', fields)}"
            if uses_pydantic(fields):
                pydantic_type = PydanticType(fields, label)
                self.schema = _flatten(pydantic_type.schema("validation"))
                self._reader = _pydantic_reader(pydantic_type)
            else:
                self.schema = _make_schema(fields, label)
                self._reader = reader(fields, at_once=True)
        try:
            parsed = exact_form_schema(self.question(""))
        except InvalidPayload as exc:
            raise DeclarationError(f"{label}: not a flat object of simple fields: {exc}") from None
        self._integers = {
            name for name, field in parsed.properties.items() if type(field) is t.IntegerSchema
        }
        if self._reader is not None:
            _check_supported(self.schema, msgspec.to_builtins(parsed), label)

    def __repr__(self) -> str:
        return f"<Form {', '.join(self.schema['properties'])}>"

    def question(self, message: str) -> t.ElicitRequest:
        """Return the elicitation to put into `InputRequiredResult.input_requests`.

        `message` tells the user what the form is for.
        """
        return t.ElicitRequest(t.ElicitParams(message=message, requested_schema=self.schema))

    def read(self, result: t.ElicitResult) -> ElicitationResult[T]:
        """Return the user's action and the form's content, from `result`.

        Raises:
            ValueError: the content doesn't fit the form.
        """
        reason = self.find_error(self.question(""), result)
        if reason:
            raise ValueError(reason)
        if result.action != "accept":
            return not_accepted(result.action)
        return AcceptedElicitation(self._read_content(result))

    def find_error(self, question: t.ElicitRequest, result: t.ElicitResult) -> str | None:
        """Return the reason why `result` doesn't fit the form that was sent as `question`.

        Return None if it fits, or if the user did not accept.
        """
        reason = find_error(question, result)
        if reason is None and result.action == "accept":
            try:
                self._read_content(result)
            except InvalidPayload as exc:
                return str(exc)
        return reason

    def _read_content(self, result: t.ElicitResult) -> T:
        content = result.content or {}
        for name in self._integers & content.keys():
            content = {**content, name: int(cast("float", content[name]))}
        if self._reader is None:
            return cast("T", content)
        return cast("T", self._reader(encode(content)))


def as_form(fields: Any) -> Form[Any]:
    """Return the form of a type or JSON Schema; a `Form` is returned unchanged."""
    if isinstance(fields, Form):
        return fields
    return Form(fields) if isinstance(fields, Mapping) else _form_of_type(fields)


@lru_cache(maxsize=256)
def _form_of_type(fields: type[T]) -> Form[T]:
    return Form(fields)


# -- From a type to a schema -----------------------------------------------------------------------


def _make_schema(fields: Any, label: str) -> dict[str, Any]:
    try:
        prepare_fields(fields, label)
        kind, _ = _split_metadata(mi.type_info(fields))
        if not isinstance(kind, mi.StructType | mi.DataclassType | mi.TypedDictType) or getattr(
            kind, "array_like", False
        ):
            raise TypeError("a form is a Struct, a dataclass, a TypedDict or a JSON Schema")
        hints = typing.get_type_hints(kind.cls, include_extras=True)
    except Exception as exc:  # annotations are code, which may raise anything
        raise DeclarationError(f"{label}: {exc}") from exc
    properties: dict[str, Any] = {}
    for field in kind.fields:
        hint = hints[field.name]
        description = next(
            (text for text in getattr(hint, "__metadata__", ()) if type(text) is str), None
        )
        schema: dict[str, Any] = {"description": description} if description else {}
        schema |= _field_schema(
            field.type, list(_literal_values(hint)), f"{label}: field {field.name!r}"
        )
        default = field.default if field.default_factory is NODEFAULT else field.default_factory()
        if default is not NODEFAULT and default is not None:
            schema["default"] = msgspec.to_builtins(default, order="sorted")
        properties[field.encode_name] = schema
    required = [field.encode_name for field in kind.fields if field.required]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
    }


def _pydantic_reader(pydantic_type: PydanticType) -> Callable[[bytes], Any]:
    def read(content: bytes) -> Any:
        try:
            return pydantic_type.read(msgspec.json.decode(content))
        except ValueError as exc:
            raise InvalidPayload(str(exc)) from None

    return read


def _flatten(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a pydantic model as a form's: without `$ref`, null and open bounds."""
    definitions = schema.get("$defs", {})
    return {
        "type": "object",
        "properties": {
            name: _flat_field(field, definitions)
            for name, field in schema.get("properties", {}).items()
        },
        **({"required": schema["required"]} if "required" in schema else {}),
    }


def _flat_field(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    field = dict(field)
    reference = field.pop("$ref", None)
    if reference is not None:
        # A definition's title is its class's name.
        definition = {**definitions[reference.rpartition("/")[2]], "title": None}
        field = {**definition, **field}
    members = [member for member in field.get("anyOf", ()) if member != {"type": "null"}]
    if len(members) == 1:
        del field["anyOf"]
        field = {**_flat_field(members[0], definitions), **field}
    if "items" in field:
        field["items"] = _flat_field(field["items"], definitions)
    if "const" in field:
        field["enum"] = [field.pop("const")]
    if field.get("type") == "integer":  # inclusive bounds, which integers always have
        for exclusive, inclusive, step in (
            ("exclusiveMinimum", "minimum", 1),
            ("exclusiveMaximum", "maximum", -1),
        ):
            if exclusive in field:
                field[inclusive] = field.pop(exclusive) + step
    return {name: value for name, value in field.items() if value is not None}


def _field_schema(kind: mi.Type, order: list[Any], label: str) -> dict[str, Any]:
    """Return the schema of one field. `order` has the values of its `Literal`s as written."""
    with_metadata = kind
    kind, extra = _split_metadata(kind)
    if isinstance(kind, mi.UnionType):
        members = [member for member in kind.types if not isinstance(member, mi.NoneType)]
        if len(members) == 1:
            return _field_schema(members[0], order, label) | extra
    if isinstance(kind, mi.ListType | mi.SetType | mi.FrozenSetType | mi.VarTupleType):
        items = _choice_schema(kind.item_type, order, label)
        if "oneOf" in items:
            # The specification titles several choices with `anyOf`, one choice with `oneOf`.
            items = {"anyOf": items["oneOf"]}
        bounds = _without_none(minItems=kind.min_length, maxItems=kind.max_length)
        return {"type": "array", "items": items, **bounds, **extra}
    simple = _SIMPLE.get(type(kind))
    if simple is not None:
        return {**simple, **_bounds(kind), **extra}
    return _choice_schema(with_metadata, order, label)


def _choice_schema(kind: mi.Type, order: list[Any], label: str) -> dict[str, Any]:
    kind, extra = _split_metadata(kind)
    values = _choice_values(kind, order)
    if not values or not all(type(value) is str for value in values):
        raise DeclarationError(f"{label} has a type that forms do not support")
    return {"type": "string", **({} if "oneOf" in extra else {"enum": values}), **extra}


_SIMPLE: Final[Mapping[type[mi.Type], dict[str, Any]]] = {
    mi.BoolType: {"type": "boolean"},
    mi.IntType: {"type": "integer"},
    mi.FloatType: {"type": "number"},
    mi.StrType: {"type": "string"},
    mi.DateType: {"type": "string", "format": "date"},
    mi.DateTimeType: {"type": "string", "format": "date-time"},
}


def _split_metadata(kind: mi.Type) -> tuple[mi.Type, dict[str, Any]]:
    """Return a type without its metadata, and the metadata's JSON Schema."""
    if isinstance(kind, mi.Metadata):
        return kind.type, kind.extra_json_schema or {}
    return kind, {}


def _bounds(kind: mi.Type) -> dict[str, Any]:
    if isinstance(kind, mi.StrType):
        return _without_none(
            minLength=kind.min_length, maxLength=kind.max_length, pattern=kind.pattern
        )
    if isinstance(kind, mi.IntType):
        # Written as inclusive bounds, which integers always have.
        minimum = kind.ge if kind.gt is None else kind.gt + 1
        maximum = kind.le if kind.lt is None else kind.lt - 1
        return _without_none(minimum=minimum, maximum=maximum, multipleOf=kind.multiple_of)
    if isinstance(kind, mi.FloatType):
        bounds = _without_none(
            exclusiveMinimum=kind.gt, exclusiveMaximum=kind.lt, multipleOf=kind.multiple_of
        )
        return {**bounds, **_without_none(minimum=kind.ge, maximum=kind.le)}
    return {}


def _without_none(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _choice_values(kind: mi.Type, order: list[Any]) -> list[Any]:
    """Return the choices of a type, as JSON values."""
    if isinstance(kind, mi.LiteralType):
        # msgspec sorts the values of a Literal. The user reads them, so keep the author's order.
        return [value for value in order if value in kind.values] or list(kind.values)
    if isinstance(kind, mi.EnumType):
        return [member.value for member in kind.cls]
    return []


def _literal_values(annotation: Any) -> Iterator[Any]:
    """Yield the values of every `Literal` in an annotation, in source order."""
    parts: Iterable[Any] = typing.get_args(annotation)
    if typing.get_origin(annotation) is Literal:
        yield from parts
    else:
        for part in parts:
            yield from _literal_values(part)


def _check_supported(schema: Mapping[str, Any], parsed: Mapping[str, Any], label: str) -> None:
    """Raise `DeclarationError` for a keyword of `schema` that forms don't have.

    `parsed` is the schema as it was decoded to the specification's types, which drop unknown
    keywords.
    """
    for name, field in schema["properties"].items():
        unsupported = field.keys() - parsed["properties"][name].keys()
        if unsupported:
            raise DeclarationError(
                f"{label}: field {name!r} uses {min(unsupported)}, which forms do not support"
            )
