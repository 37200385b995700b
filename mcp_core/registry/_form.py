"""Forms for a user to fill in: from a type to the few kinds of fields that every client can show, and back to an object.

Rules of this file:

1. A form is flat: its fields are text, numbers, yes or no, a choice of one or of several (client/elicitation, Requested
   Schema). What a form cannot say is refused when it is made, and never left out: a value would be refused later that the
   user was told is right.
2. Choices keep the order in which they were written, for a person reads them.
3. What was filled in is read as strictly as the arguments of a tool. A number like `3.0` is the integer 3.

It does not know who is asked, nor how.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Generic, Literal, TypeVar, cast, overload

import msgspec
import msgspec.inspect as mi
from msgspec import NODEFAULT, Struct

from mcp_core import types as t
from mcp_core._jsonrpc import Unreadable, encode, reader
from mcp_core._questions import form_of, misfit

from ._errors import DeclarationError

__all__ = ["Accepted", "Form", "Refused", "as_form"]

T = TypeVar("T")


class Accepted(Struct, Generic[T], frozen=True):
    """The user agreed. `data` is the form as it was filled in, None if there was none."""

    data: T
    action: Literal["accept"] = "accept"


class Refused(Struct, frozen=True):
    """The user did not agree: said no ("decline"), or only closed the question ("cancel")."""

    action: Literal["decline", "cancel"]


class Form(Generic[T]):
    """A form whose fields are those of a Struct, dataclass or TypedDict::

        class Seats(msgspec.Struct):
            count: Annotated[int, msgspec.Meta(ge=1, le=8, description="How many?")]
            where: Literal["aisle", "window"] = "aisle"

        SEATS = Form(Seats)

    A field is `str`, `int`, `float`, `bool`, `date` or `datetime`; a `Literal` or `Enum` of strings, as one choice or in a
    list or set as several; or one of these or None. It is required unless it has a default, which clients show. `msgspec.Meta`
    gives it a title, a description (or `Annotated[..., "a description"]`) and bounds, and with `extra_json_schema` a format
    (`{"format": "email"}`) or titles for choices (`{"oneOf": [{"const": "a", "title": "On the aisle"}, ...]}`).

    Or it is a JSON Schema of that kind, sent as it is; then what was filled in is a dict. Secrets do not belong into a form.

    `schema` is the JSON Schema.

    Raises:
        DeclarationError: it is no such type, or no such schema.
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
            self.schema = _schema(fields, label)
            self._reader = reader(fields)
        try:
            said = form_of(self.question(""))
        except Unreadable as exc:
            raise DeclarationError(f"{label}: it is no flat object of simple fields: {exc}") from None
        self._integers = {name for name, field in said.properties.items() if type(field) is t.IntegerSchema}
        if self._reader is not None:
            _refuse_unsaid(self.schema, msgspec.to_builtins(said), label)

    def __repr__(self) -> str:
        return f"<Form {', '.join(self.schema['properties'])}>"

    def question(self, message: str) -> t.ElicitRequest:
        """The question to put into `InputRequiredResult.input_requests`; `message` tells the user what it is for."""
        return t.ElicitRequest(t.ElicitParams(message=message, requested_schema=self.schema))

    def read(self, result: t.ElicitResult) -> Accepted[T] | Refused:
        """What the user did.

        Raises:
            ValueError: the form is not filled in as it should be.
        """
        problem = self.problem(self.question(""), result)
        if problem:
            raise ValueError(problem)
        if result.action != "accept":
            return Refused(result.action)
        return Accepted(self._data(result))

    def problem(self, question: t.ElicitRequest, result: t.ElicitResult) -> str | None:
        """Why the form, which was put as `question`, is not filled in as it should be; None if it is, or was refused."""
        problem = misfit(question, result)
        if problem is None and result.action == "accept":
            try:
                self._data(result)
            except Unreadable as exc:
                return str(exc)
        return problem

    def _data(self, result: t.ElicitResult) -> T:
        content = result.content or {}
        for name in self._integers & content.keys():
            content = {**content, name: int(cast("float", content[name]))}
        if self._reader is None:
            return cast("T", content)
        return cast("T", self._reader(encode(content)))


def as_form(fields: Any) -> Form[Any]:
    """The form that a type or schema makes, or that it is."""
    if isinstance(fields, Form):
        return fields
    return Form(fields) if isinstance(fields, Mapping) else _form_of_type(fields)


@lru_cache(maxsize=256)
def _form_of_type(fields: type[T]) -> Form[T]:
    return Form(fields)


# -- From a type to a schema -----------------------------------------------------------------------------------------------


def _schema(fields: Any, label: str) -> dict[str, Any]:
    try:
        kind, _ = _bare(mi.type_info(fields))
        if not isinstance(kind, mi.StructType | mi.DataclassType | mi.TypedDictType) or getattr(
            kind, "array_like", False
        ):
            raise TypeError("a form is a Struct, a dataclass, a TypedDict or a JSON Schema")
        hints = typing.get_type_hints(kind.cls, include_extras=True)
    except Exception as exc:  # annotations are code, so whatever code can raise
        raise DeclarationError(f"{label}: {exc}") from exc
    properties: dict[str, Any] = {}
    for field in kind.fields:
        hint = hints[field.name]
        described = next((word for word in getattr(hint, "__metadata__", ()) if type(word) is str), None)
        schema: dict[str, Any] = {"description": described} if described else {}
        schema |= _field(field.type, list(_literals(hint)), f"{label}: field {field.name!r}")
        default = field.default if field.default_factory is NODEFAULT else field.default_factory()
        if default is not NODEFAULT and default is not None:
            schema["default"] = msgspec.to_builtins(default, order="sorted")
        properties[field.encode_name] = schema
    required = [field.encode_name for field in kind.fields if field.required]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _field(kind: mi.Type, order: list[Any], label: str) -> dict[str, Any]:
    whole = kind
    kind, said = _bare(kind)
    if isinstance(kind, mi.UnionType):
        members = [member for member in kind.types if not isinstance(member, mi.NoneType)]
        if len(members) == 1:
            return _field(members[0], order, label) | said
    if isinstance(kind, mi.ListType | mi.SetType | mi.FrozenSetType | mi.VarTupleType):
        items = _choice(kind.item_type, order, label)
        if "oneOf" in items:
            items = {"anyOf": items["oneOf"]}
        bounds = _bounds(minItems=kind.min_length, maxItems=kind.max_length)
        return {"type": "array", "items": items, **bounds, **said}
    simple = _SIMPLE.get(type(kind))
    if simple is not None:
        return {**simple, **_limits(kind), **said}
    return _choice(whole, order, label)


def _choice(kind: mi.Type, order: list[Any], label: str) -> dict[str, Any]:
    kind, said = _bare(kind)
    values = _values(kind, order)
    if not values or not all(type(value) is str for value in values):
        raise DeclarationError(f"{label} is of a type that forms do not have")
    return {"type": "string", **({} if "oneOf" in said else {"enum": values}), **said}


_SIMPLE: Final[Mapping[type[mi.Type], dict[str, Any]]] = {
    mi.BoolType: {"type": "boolean"},
    mi.IntType: {"type": "integer"},
    mi.FloatType: {"type": "number"},
    mi.StrType: {"type": "string"},
    mi.DateType: {"type": "string", "format": "date"},
    mi.DateTimeType: {"type": "string", "format": "date-time"},
}


def _bare(kind: mi.Type) -> tuple[mi.Type, dict[str, Any]]:
    """A type without what is said about it, and that."""
    if isinstance(kind, mi.Metadata):
        return kind.type, kind.extra_json_schema or {}
    return kind, {}


def _limits(kind: mi.Type) -> dict[str, Any]:
    if isinstance(kind, mi.StrType):
        return _bounds(minLength=kind.min_length, maxLength=kind.max_length, pattern=kind.pattern)
    if isinstance(kind, mi.IntType):
        least = kind.ge if kind.gt is None else kind.gt + 1
        most = kind.le if kind.lt is None else kind.lt - 1
        return _bounds(minimum=least, maximum=most, multipleOf=kind.multiple_of)
    if isinstance(kind, mi.FloatType):
        bounds = _bounds(exclusiveMinimum=kind.gt, exclusiveMaximum=kind.lt, multipleOf=kind.multiple_of)
        return {**bounds, **_bounds(minimum=kind.ge, maximum=kind.le)}
    return {}


def _bounds(**bounds: Any) -> dict[str, Any]:
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _values(kind: mi.Type, order: list[Any]) -> list[Any]:
    """The choices of a type, as JSON has them."""
    if isinstance(kind, mi.LiteralType):
        return [value for value in order if value in kind.values] or list(kind.values)
    if isinstance(kind, mi.EnumType):
        return [member.value for member in kind.cls]
    return []


def _literals(annotation: Any) -> Iterator[Any]:
    """The values of every `Literal` in an annotation, in the order in which they were written; msgspec sorts them."""
    parts: Iterable[Any] = typing.get_args(annotation)
    if typing.get_origin(annotation) is Literal:
        yield from parts
    else:
        for part in parts:
            yield from _literals(part)


def _refuse_unsaid(schema: Mapping[str, Any], said: Mapping[str, Any], label: str) -> None:
    """Raise `DeclarationError` for what `schema` says and a form cannot."""
    for name, field in schema["properties"].items():
        unsaid = field.keys() - said["properties"][name].keys()
        if unsaid:
            raise DeclarationError(f"{label}: field {name!r} says {min(unsaid)}, which forms do not know")
