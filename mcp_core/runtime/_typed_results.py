"""Tool results whose data is decoded to a type of the caller: `call_tool(..., returns=Weather)`.

1. The data is `structuredContent`. Older revisions don't have this: there, the only text block is
   the data's JSON (server/tools, Structured Content).
2. Data that isn't an object is often sent as `{"result": value}`: until 2025-11-25 structured
   content has to be an object. It is unwrapped if the type doesn't describe an object.
"""

from __future__ import annotations

import functools
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec import UNSET

from mcp_core._errors import McpTrioError
from mcp_core.registry._errors import DeclarationError
from mcp_core.registry.functions._aliases import expand_aliases
from mcp_core.registry.functions._schema import schema_of
from mcp_core.registry.functions._signature import readable_type
from mcp_core.registry.functions._types import decode_hook
from mcp_core.types import CallToolResult, TextContent

__all__ = ["TypedToolResult", "UnexpectedResult", "result_reader"]

_WRAPPER: Final = {"result"}

T = TypeVar("T")


class UnexpectedResult(McpTrioError):
    """The data of a tool's result isn't of the type that the caller named with `returns`.

    The cause is the error of decoding.

    Args:
        message: the exception's text: the tool, the type, and what doesn't fit.
        result: the result as it arrived.
    """

    __module__ = "mcp_core.runtime"  # which exports it, for tracebacks and pickle

    def __init__(self, message: str, result: CallToolResult) -> None:
        super().__init__(message)
        self.result = result


# With a `__dict__`, because a field would be sent if the result were passed on to another client.
class TypedToolResult(CallToolResult, Generic[T], kw_only=True, dict=True):
    """The result of `call_tool(..., returns=T)`: a `CallToolResult` with `data`."""

    @property
    def data(self) -> T:
        """The structured content as an object of the type that the caller named.

        Raises:
            ToolError: the tool failed, as for `raise_for_error`.
        """
        self.raise_for_error()
        return cast("T", self.__dict__["_data"])


class _ResultReader:
    """Decodes the data of results to one type.

    Args:
        annotation: the type: a dataclass, Struct, TypedDict, pydantic model, or any that a tool may
            take as an argument.

    Raises:
        DeclarationError: JSON cannot be decoded as this type.
    """

    __slots__ = ("_annotation", "_is_object", "_readable")

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        try:
            expanded = expand_aliases(annotation)
        except Exception as exc:  # what an alias stands for is code
            raise DeclarationError(f"returns, {annotation!r}: {exc}") from exc
        self._readable = readable_type(expanded, "returns")
        self._is_object = schema_of(self._readable).get("type") == "object"

    def __repr__(self) -> str:
        return f"<_ResultReader of {_name_of(self._annotation)}>"

    def read(self, tool: str, result: CallToolResult) -> TypedToolResult[Any]:
        """Return the result of `tool` with its data.

        Raises:
            UnexpectedResult: the tool succeeded, and the data is missing or not of the type.
        """
        typed: TypedToolResult[Any] = TypedToolResult(
            **{name: getattr(result, name) for name in result.__struct_fields__}
        )
        if not result.is_error:
            try:
                typed.__dict__["_data"] = self._decode(result)
            except ValueError as exc:
                raise UnexpectedResult(
                    f"the result of tool {tool!r} is no {_name_of(self._annotation)}: {exc}", result
                ) from exc
        return typed

    def _decode(self, result: CallToolResult) -> Any:
        value = result.structured_content
        if value is UNSET:
            if self._annotation is str:
                return result.text
            value = _json_in_text(result)
        if not self._is_object and isinstance(value, dict) and value.keys() == _WRAPPER:
            try:
                return self._convert(value["result"])
            except ValueError:
                pass  # it may be what the type describes: `Weather | None` can have such a field
        return self._convert(value)

    def _convert(self, value: Any) -> Any:
        return msgspec.convert(value, self._readable, dec_hook=decode_hook, str_keys=True)


def result_reader(annotation: Any) -> _ResultReader:
    """Return the reader of results for a type. It is made once for each type.

    Raises:
        DeclarationError: JSON cannot be decoded as this type.
    """
    try:
        return _cached_reader(annotation)
    except TypeError:  # `Annotated` with metadata that cannot be hashed
        return _ResultReader(annotation)


_cached_reader: Final = functools.lru_cache(maxsize=256)(_ResultReader)


def _json_in_text(result: CallToolResult) -> Any:
    """Decode the only text of a result without structured content as JSON.

    Raises:
        ValueError: the content isn't a single text, or the text isn't JSON.
    """
    if len(result.content) != 1 or not isinstance(result.content[0], TextContent):
        raise ValueError("it has no structured content")
    try:
        return msgspec.json.decode(result.content[0].text)
    except ValueError:
        raise ValueError("it has no structured content, and its text is not JSON") from None


def _name_of(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
