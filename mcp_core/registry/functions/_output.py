"""Conversion of a tool's return value to a result in the peer's revision.

1. A result has `content` for the model and `structuredContent` for programs. Data (a Struct,
   dataclass, TypedDict, dict, number, list ...) is sent as both, with its JSON as text. Content is
   sent as `content` only.
2. The return annotation decides which it is, and gives data an `outputSchema`. A value of another
   type is a server error, and isn't sent. Without an annotation, or with one that allows content,
   the value decides, and there is no `outputSchema`.
3. A structured value that isn't an object is sent as it is, as `{"result": value}` with a schema
   to match, or as text only, by the revision's `Dialect.structured`.

Sources: server/tools, Structured Content and Output Schema.
"""

from __future__ import annotations

import collections.abc
import itertools
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from mcp_core.protocol.revisions._dialects import Dialect
from mcp_core.registry._errors import DeclarationError
from mcp_core.types import (
    CallToolResult,
    CreateTaskResult,
    InputRequiredResult,
    Result,
    TextContent,
)

from ._aliases import Alias, expand_aliases
from ._content import BLOCKS, MEDIA, block_of, blocks_of, check_result
from ._function import MISSING, strip_annotated, union_members
from ._pydantic import PydanticType, text_without_value, uses_pydantic
from ._schema import (
    DeclaredSchema,
    inline_root,
    leave_out_unencodable,
    schema_of,
    wrap_schema,
)
from ._signature import InvalidArguments, check_encoded, readable_type
from ._types import decode_hook, encode_value

__all__ = ["Output", "list_items"]

# A result may be an iterator, of which a list is made to send.
_ITERABLES: Final = (collections.abc.Iterable, collections.abc.Collection)
_NOT_ITERATED: Final = (list, tuple, dict, str, bytes, Result)
# Items of an iterator. Each has 2 bytes of JSON or more, and hardly a client reads one message of
# that size; an endless iterator would fill the memory.
_MAX_ITEMS: Final = 1_000_000
_LISTS: Final = (list, tuple, collections.abc.Sequence, *_ITERABLES)
_TEXTS: Final[Mapping[str, type]] = {"text": str, "none": types.NoneType}
_NO_TASKS: Final = (
    "returns CreateTaskResult: declare the tool with task=, and return what the task results in"
)
_NO_SCHEMA: Final = (
    "returns Annotated[CallToolResult, Model] or content, but a tool with a schema always returns "
    "structured content: leave the other types out, since a CallToolResult can have content too"
)
_BYTES: Final = (bytes, bytearray, memoryview)
_IS_ERROR: Final = (
    "a dictionary with isError is data, so the model would not see an error: raise "
    "ToolError(text), or return CallToolResult(content=[text], is_error=True)"
)


class Output:
    """The output of one tool: its schema, and results made of its return values.

    Args:
        returns: the return annotation, or `MISSING`.
        declared: an output schema that replaces the one of the annotation.
        label: names the function in error texts.

    Attributes:
        is_iterable: True if a return value may be an iterator, of which `list_items` makes a list.

    Raises:
        DeclarationError: the annotation or the schema cannot be used.
    """

    __slots__ = (
        "_declared",
        "_decode",
        "_encode",
        "_is_object",
        "_schema",
        "_text_types",
        "_wrapped",
        "is_iterable",
    )

    def __init__(self, returns: Any, declared: Mapping[str, Any] | None, label: str) -> None:
        self._declared = (
            DeclaredSchema(declared, f"{label}: output_schema") if declared is not None else None
        )
        returns = _described(_without_input_required(returns), label)
        bare = strip_annotated(returns)
        self.is_iterable = (typing.get_origin(bare) or bare) in _ITERABLES
        if CreateTaskResult in union_members(returns):
            raise DeclarationError(f"{label} {_NO_TASKS}")
        kinds = _kinds(returns) if declared is None else {"open"}
        self._encode: Callable[[Any], bytes] = encode_value
        self._decode: Any = None
        self._schema: dict[str, Any] | None = None
        if self._declared is not None:
            self._schema = self._declared.schema
        elif _is_data(kinds, label):
            location = f"{label}: the return value"
            if uses_pydantic(returns):
                pydantic_type = PydanticType(returns, location)
                self._encode = pydantic_type.write
                self._schema = inline_root(pydantic_type.schema("serialization"))
                leave_out_unencodable(self._schema)
            else:
                returns = readable_type(returns, location)
                self._decode = msgspec.json.Decoder(returns, dec_hook=decode_hook).decode
                self._schema = schema_of(returns)
        # The allowed types of a tool whose annotation allows only text or None.
        self._text_types = tuple(_TEXTS[kind] for kind in kinds) if kinds <= _TEXTS.keys() else ()
        self._is_object = self._schema is not None and self._schema.get("type") == "object"
        # References in a declared schema start at its root, so it cannot be put inside another.
        can_wrap = self._schema is not None and self._declared is None
        self._wrapped = wrap_schema(self._schema) if self._schema is not None and can_wrap else None

    def __repr__(self) -> str:
        kind = "nothing" if self._schema is None else "an object" if self._is_object else "a value"
        return f"<Output promises {kind}>"

    def schema(self, dialect: Dialect) -> dict[str, Any] | None:
        """Return the `outputSchema` to list in this revision, or None."""
        if self._schema is None or dialect.structured == "none":
            return None
        return self._schema if self._is_object or dialect.structured == "any" else self._wrapped

    def result(self, value: Any, dialect: Dialect) -> Result:
        """Return the result for a return value.

        Raises:
            InvalidArguments: the value doesn't have the declared type or schema.
            TypeError: the value cannot be sent.
        """
        if isinstance(value, Result):
            if isinstance(value, CreateTaskResult):
                raise TypeError(f"the tool {_NO_TASKS}")
            return (
                self._adapt_result(value, dialect) if isinstance(value, CallToolResult) else value
            )
        if self.is_iterable:
            value = list_items(value)
        if self._text_types and not isinstance(value, self._text_types):
            raise InvalidArguments(f"the tool promises text and returned {type(value).__name__}")
        if self._schema is None:
            if type(value) is str:  # by far the most common value
                return CallToolResult(content=[TextContent(value)])
            blocks = blocks_of(value)
            if blocks is not None:
                result = CallToolResult(content=blocks)
                check_result(result)
                return result
        if type(value) is dict and value.get("isError") is True and not self._has_is_error:
            raise TypeError(_IS_ERROR)
        data = self._encoded(value)
        text = msgspec.json.decode(data) if data.startswith(b'"') else data.decode()
        return CallToolResult(
            content=[TextContent(text)], structured_content=self._structured(data, dialect)
        )

    def _adapt_result(self, result: CallToolResult, dialect: Dialect) -> CallToolResult:
        """Return a result that the tool made itself, adapted to the revision.

        Its content may hold strings, `Image`, `Audio` and `File`.
        """
        changes: dict[str, Any] = {}
        if not all(isinstance(item, BLOCKS) for item in result.content):
            blocks = [block_of(item) for item in result.content]
            if None in blocks:
                raise TypeError(
                    "the content of a CallToolResult is neither text nor content blocks"
                )
            changes["content"] = blocks
        if result.structured_content is not UNSET:
            content = result.structured_content
            data = encode_value(content) if result.is_error else self._encoded(content)
            changes["structured_content"] = self._structured(data, dialect)
        elif self._schema is not None and not result.is_error:
            raise InvalidArguments(
                "the tool promises structured content, and its CallToolResult has none"
            )
        adapted = replace(result, **changes) if changes else result
        check_result(adapted)
        return adapted

    def _encoded(self, value: Any) -> bytes:
        """Return the JSON of a value.

        Raises:
            InvalidArguments: the value doesn't have the declared type or schema.
        """
        try:
            data = self._encode(value)
        except ValueError as exc:  # of pydantic, or about what JSON cannot hold
            raise InvalidArguments(text_without_value(exc)) from None
        if self._decode is not None:
            check_encoded(data, self._decode)
        elif self._declared is not None:
            violation = self._declared.find_error(msgspec.json.decode(data))
            if violation is not None:
                path, reason = violation
                raise InvalidArguments(f"{path or 'the value'}: {reason}")
        return data

    def _structured(self, data: bytes, dialect: Dialect) -> Any:
        """Return `structuredContent` as JSON, or UNSET if the revision cannot have it."""
        if dialect.structured == "any" or (
            dialect.structured == "object" and data.startswith(b"{") and self._allows_object
        ):
            return Raw(data)
        if dialect.structured == "none" or self._declared is not None:
            return UNSET
        return Raw(b'{"result":%b}' % data)

    @property
    def _has_is_error(self) -> bool:
        """True if `isError` is data: a schema describes it."""
        return self._schema is not None and "isError" in self._schema.get("properties", ())

    @property
    def _allows_object(self) -> bool:
        """True if an object is sent as it is: without a schema, or if it describes an object."""
        return self._is_object or self._schema is None


def list_items(value: Any) -> Any:
    """Return a list of the items of an iterator. Another value is returned as it is.

    Raises:
        ValueError: it has more than 1,000,000 items.
        BaseException: the iterator's exception.
    """
    # A future of asyncio has `__iter__`, too.
    is_iterable = hasattr(value, "__iter__") and not hasattr(value, "__await__")
    if isinstance(value, _NOT_ITERATED) or not is_iterable:
        return value
    if hasattr(value, "__len__"):
        return list(value)
    items = list(itertools.islice(value, _MAX_ITEMS + 1))
    if len(items) > _MAX_ITEMS:
        raise ValueError(f"the iterator has more than {_MAX_ITEMS:,} items: return fewer at a time")
    return items


def _without_input_required(returns: Any) -> Any:
    """Return the annotation without `InputRequiredResult`, which isn't the tool's output."""
    bare = strip_annotated(returns)
    if typing.get_origin(bare) not in (typing.Union, types.UnionType):
        return returns
    kept = tuple(part for part in typing.get_args(bare) if part is not InputRequiredResult)
    return typing.Union[kept]  # noqa: UP007 - computed members


def _described(returns: Any, label: str) -> Any:
    """Return the data's type: `Model` in the place of `Annotated[CallToolResult, Model]`.

    A text or other metadata isn't a type. Beside a `CallToolResult` without a model, or with `Any`,
    there is no schema.

    Raises:
        DeclarationError: content in a union with it would leave the tool without a schema.
    """
    origin = typing.get_origin(returns)
    if origin in (typing.Union, types.UnionType):
        parts = typing.get_args(returns)
        members = tuple(_described(part, label) for part in parts)
        pairs = list(zip(members, parts, strict=True))
        has_schema = any(new is not old and not _is_free(new) for new, old in pairs)
        others = [old for new, old in pairs if new is old is not CallToolResult]
        if has_schema and any(map(_is_free, others)):
            raise DeclarationError(f"{label} {_NO_SCHEMA}")
        return typing.Union[members]  # noqa: UP007 - computed
    if origin is typing.Annotated and returns.__origin__ is CallToolResult:
        for extra in returns.__metadata__:
            try:
                described = expand_aliases(extra)
            except Exception as exc:  # what an alias stands for is code
                raise DeclarationError(f"{label}: the return value, {extra!r}: {exc}") from exc
            if isinstance(described, type | Alias) or typing.get_origin(described) is not None:
                return described
    return returns


def _is_data(kinds: set[str], label: str) -> bool:
    if "bytes" in kinds:
        raise DeclarationError(
            f"{label} returns bytes, which have no MIME type: return Image, Audio or File"
        )
    return "data" in kinds and not kinds & {"open", "content"}


def _is_free(annotation: Any) -> bool:
    """Return True for a type whose values only decide what is sent, so that it has no schema."""
    return not _kinds(annotation).isdisjoint({"open", "content"})


def _kinds(annotation: Any) -> set[str]:
    """Return the kinds of values that a type allows: text, none, content, data, bytes, open.

    "open" means that only the value can decide.
    """
    members = union_members(annotation)
    if len(members) > 1:
        return set().union(*(_kinds(member) for member in members))
    bare = strip_annotated(annotation)
    if bare in (MISSING, Any, object):
        return {"open"}
    if bare in (None, types.NoneType, typing.NoReturn, typing.Never):
        return {"none"}
    if bare is str:
        return {"text"}
    if bare in _BYTES:
        return {"bytes"}
    if isinstance(bare, type) and issubclass(bare, (*BLOCKS, *MEDIA, Result)):
        return {"content"}
    if bare in _LISTS or typing.get_origin(bare) in _LISTS:
        items = set().union(*map(_kinds, typing.get_args(bare)))
        return (items & {"open", "content"}) or ({"data"} if items else {"open"})
    return {"data"}
