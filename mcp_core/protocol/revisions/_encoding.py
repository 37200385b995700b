"""Encoding of params and results, with the constant members that a revision adds.

1. A value of a caller or handler is never changed: members are spliced into its bytes.
2. `DialectConfig` has the encoded members, so usually nothing but the value is encoded here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct, to_builtins
from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._errors import LocalProtocolError
from mcp_core.protocol.jsonrpc._codec import check_object, encode, strip_white_space
from mcp_core.protocol.jsonrpc._unencodable import check_numbers, encode_exactly, unencodable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._config import DialectConfig
    from ._dialects import Dialect

__all__ = ["encode_params", "encode_request_params", "encode_result_parts"]

# Members of `_meta` in requests that only the connection may set.
_RESERVED: Final = frozenset(
    {
        "progressToken",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
        "io.modelcontextprotocol/clientInfo",
    }
)

# Results that may have long texts, in which nothing is searched: the registry has checked them.
_CHECKED: Final = frozenset({t.CallToolResult, t.GetPromptResult, t.ReadResourceResult})


def encode_params(dialect: Dialect, params: Struct | Mapping[str, Any] | None) -> bytes | None:
    """Encode params as the revision's JSON. Return None for None and for an empty object.

    Raises:
        LocalProtocolError: the revision cannot express a value in them.
        UnencodableValue: JSON cannot hold a value in them.
    """
    if params is None:
        return None
    if isinstance(params, Struct):
        encoded = dialect.encode(params)
    else:
        try:
            encoded = encode(params)
        except UnicodeEncodeError:
            raise unencodable(params) from None
        if b"null" in encoded:  # perhaps msgspec's word for NaN
            check_numbers(params)
    return None if encoded == b"{}" else encoded


def encode_request_params(
    config: DialectConfig,
    params: Struct | Mapping[str, Any] | None,
    meta: Mapping[str, Any] | None,
    progress_token: t.ProgressToken | None,
) -> bytes | None:
    """Encode a request's params, with its `_meta`. Return None if it has no params.

    `_meta` has the members that the revision requires, `meta`'s, and the progress token.

    Raises:
        LocalProtocolError: `meta` has a member that only the connection may set, or the params
            cannot be encoded.
    """
    if isinstance(params, t.RequestParams) and params.meta is not None:
        meta = {**to_builtins(config.dialect.fit(params.meta)), **(meta or {})}
        params = replace(params, meta=None)
    if isinstance(params, dict) and "_meta" in params:
        params = dict(params)
        meta = {**params.pop("_meta"), **(meta or {})}
    members = [config.request_meta_members] if config.request_meta_members else []
    if progress_token is not None:
        members.append(b'"progressToken":%b' % encode(progress_token))
    if meta:
        reserved = _RESERVED & meta.keys()
        if reserved:
            raise LocalProtocolError(
                f"_meta.{min(reserved)} is written by the connection, not by its caller"
            )
        members.append(encode_exactly(meta)[1:-1])
    encoded = encode_params(config.dialect, params)
    if not members:
        return encoded
    if encoded is None:
        return b'{"_meta":{%b}}' % b",".join(members)
    return b'{"_meta":{%b},%b' % (b",".join(members), encoded[1:])


def encode_result_parts(
    config: DialectConfig, result: Struct | Mapping[str, Any] | Raw
) -> tuple[bytes, bytes]:
    """Encode a result as the revision's JSON.

    Return it and the members to insert before its own, each with its comma: the arguments `result`
    and `members` of `jsonrpc._codec.encode_result`. A `Raw` result is already encoded, without
    `_meta`.

    Raises:
        ValueError: a `Raw` result isn't JSON object, or has a member that is inserted.
        UnencodableValue: JSON cannot hold part of the result.
    """
    if isinstance(result, t.Result):
        fitted = (
            result if type(result) in config.dialect.unchanged_types else config.dialect.fit(result)
        )
        if fitted.meta is None:
            members = (
                config.result_members if fitted.result_type is None else config.result_meta_member
            )
        else:
            members = config.result_type_member if fitted.result_type is None else b""
            if config.result_meta:
                fitted = replace(fitted, meta={**config.result_meta, **fitted.meta})
        try:
            encoded = encode(fitted)
        except UnicodeEncodeError:
            raise unencodable(fitted) from None
        if type(fitted) not in _CHECKED and b"null" in encoded:
            check_numbers(fitted)
        return encoded, members
    if isinstance(result, Raw):
        encoded = bytes(result)
        found = check_object(encoded)
        for name, inserted in (
            ("resultType", config.result_type_member),
            ("_meta", config.result_meta_member),
        ):
            if inserted and name in found:
                raise ValueError(f"a Raw result has no {name}: the connection writes that member")
        # Remove white space around the opening brace. `encode_result` replaces the first byte, and
        # takes only `{}` for an empty object.
        if encoded[1:2] not in (b'"', b"}"):
            encoded = strip_white_space(encoded)
        return encoded, config.result_members
    if isinstance(result, Struct):
        return config.dialect.encode(result), config.result_members
    type_member = b"" if "resultType" in result else config.result_type_member
    if config.result_meta:
        result = {**result, "_meta": {**config.result_meta, **result.get("_meta", {})}}
    return encode_exactly(result), type_member
