"""What a tool returned, as the result that the peer's revision wants.

Rules of this file:

1. Two readers are served by one result: `content` for a model, `structuredContent` for a program. Data (a
   Struct, dataclass, TypedDict, dict, number, list ...) goes out as both, the text being its JSON. Content
   goes out as content.
2. The return annotation decides, if it says something. Data gets an `outputSchema` from it, and a value that
   is not of that type is the server's mistake, never sent. Without an annotation, or with one that admits
   content, the value decides and no schema is promised.
3. A structured value that is no object is sent as it is where the revision allows that, as `{"result":
   value}` with a schema to match where only objects are known, and as text alone before.
4. A result that the tool built itself is its own business; only what was promised is checked.

Which revision wants what is a field of its `Dialect`. Sources: server/tools, Structured Content and Output
Schema.
"""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from mcp_core._dialects import Dialect
from mcp_core.types import CallToolResult, InputRequiredResult, Result, TextContent

from ._content import BLOCKS, MEDIA, block_of, blocks_of
from ._errors import DeclarationError
from ._function import MISSING, plain, union_members
from ._schema import GivenSchema, schema_of, wrapped
from ._signature import Misfit, check_type, read_back

__all__ = ["Output"]

_LISTS: Final = (list, tuple, collections.abc.Sequence)
_TEXTS: Final[Mapping[str, type]] = {"text": str, "none": types.NoneType}
_BYTES: Final = (bytes, bytearray, memoryview)


class Output:
    """Makes results out of the return values of one tool.

    `returns` is the return annotation or `MISSING`, `given` an output schema that replaces what it says.
    Raises `DeclarationError` when neither can be used.
    """

    __slots__ = ("_decode", "_given", "_is_object", "_schema", "_texts", "_wrapped")

    def __init__(self, returns: Any, given: Mapping[str, Any] | None, label: str) -> None:
        self._given = GivenSchema(given, f"{label}: output_schema") if given is not None else None
        returns = _without_questions(returns)
        kinds = _kinds(returns) if given is None else {"open"}
        self._decode: Any = None
        self._schema: dict[str, Any] | None = None
        if self._given is not None:
            self._schema = self._given.schema
        elif _is_data(kinds, label):
            check_type(returns, f"{label}: the return value")
            self._decode = msgspec.json.Decoder(returns).decode
            self._schema = schema_of(returns)
        # What a tool that is annotated with nothing but text or None may return.
        self._texts = tuple(_TEXTS[kind] for kind in kinds) if kinds <= _TEXTS.keys() else ()
        self._is_object = self._schema is not None and self._schema.get("type") == "object"
        # References of a given schema start at its root, so it cannot be put inside another.
        can_wrap = self._schema is not None and self._given is None
        self._wrapped = wrapped(self._schema) if self._schema is not None and can_wrap else None

    def __repr__(self) -> str:
        kind = "nothing" if self._schema is None else "an object" if self._is_object else "a value"
        return f"<Output promises {kind}>"

    def schema(self, dialect: Dialect) -> dict[str, Any] | None:
        """The `outputSchema` to list in this revision."""
        if self._schema is None or dialect.structured == "none":
            return None
        return self._schema if self._is_object or dialect.structured == "any" else self._wrapped

    def result(self, value: Any, dialect: Dialect) -> Result:
        """The result for a return value.

        Raises:
            Misfit: it is not what the tool promised.
            TypeError: it cannot be sent at all.
        """
        if isinstance(value, Result):
            return self._completed(value, dialect) if isinstance(value, CallToolResult) else value
        if self._texts and not isinstance(value, self._texts):
            raise Misfit(f"the tool promises text and returned {type(value).__name__}")
        if self._schema is None:
            if type(value) is str:  # by far the most common value
                return CallToolResult(content=[TextContent(value)])
            blocks = blocks_of(value)
            if blocks is not None:
                return CallToolResult(content=blocks)
        data = msgspec.json.encode(value)
        self._check(data)
        text = msgspec.json.decode(data) if data.startswith(b'"') else data.decode()
        return CallToolResult(content=[TextContent(text)], structured_content=self._fitted(data, dialect))

    def _completed(self, result: CallToolResult, dialect: Dialect) -> CallToolResult:
        """A result that the tool built itself: its content made of blocks, its structured part fitted."""
        changes: dict[str, Any] = {}
        if not all(isinstance(item, BLOCKS) for item in result.content):
            blocks = [block_of(item) for item in result.content]
            if None in blocks:
                raise TypeError("the content of a CallToolResult is neither text nor content blocks")
            changes["content"] = blocks
        if result.structured_content is not UNSET:
            data = msgspec.json.encode(result.structured_content)
            if not result.is_error:
                self._check(data)
            changes["structured_content"] = self._fitted(data, dialect)
        elif self._schema is not None and not result.is_error:
            raise Misfit("the tool promises structured content, and its CallToolResult has none")
        return replace(result, **changes) if changes else result

    def _check(self, data: bytes) -> None:
        if self._decode is not None:
            read_back(data, self._decode)
        elif self._given is not None:
            fault = self._given.fault_of(msgspec.json.decode(data))
            if fault is not None:
                raise Misfit(f"{fault[0] or 'the value'}: {fault[1]}")

    def _fitted(self, data: bytes, dialect: Dialect) -> Any:
        if dialect.structured == "any" or (
            dialect.structured == "object" and data.startswith(b"{") and self._open
        ):
            return Raw(data)
        if dialect.structured == "none" or self._given is not None:
            return UNSET
        return Raw(b'{"result":%b}' % data)

    @property
    def _open(self) -> bool:
        """Whether an object needs no wrapping: it is what was promised, or nothing was."""
        return self._is_object or self._schema is None


def _without_questions(returns: Any) -> Any:
    """The annotation without `InputRequiredResult` among others: it is not what the tool gives in the end."""
    bare = plain(returns)
    if typing.get_origin(bare) not in (typing.Union, types.UnionType):
        return returns
    kept = tuple(part for part in typing.get_args(bare) if part is not InputRequiredResult)
    return typing.Union[kept]  # noqa: UP007 - computed members


def _is_data(kinds: set[str], label: str) -> bool:
    if "bytes" in kinds:
        raise DeclarationError(
            f"{label} returns bytes, which do not say what they are: return Image, Audio or File"
        )
    return "data" in kinds and not kinds & {"open", "content"}


def _kinds(annotation: Any) -> set[str]:
    """What values of a type are: text, none, content, data, bytes, or open if only the value can tell."""
    members = union_members(annotation)
    if len(members) > 1:
        return set().union(*(_kinds(member) for member in members))
    bare = plain(annotation)
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
        items = set().union(*(_kinds(part) for part in typing.get_args(bare) if part is not Ellipsis))
        return (items & {"open", "content"}) or ({"data"} if items else {"open"})
    return {"data"}
