"""What a revision adds to a message: the constant members spliced into encoded params and results.

Rules of this file:

1. A value that a caller or handler gave is never changed; what is added is added to its bytes.
2. In the common case, no `_meta` of the caller's own, nothing is encoded here: bytes are joined.

It does not know which revisions add what: `Terms` has worked that out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct, to_builtins
from msgspec.structs import replace

from . import types as t
from ._errors import LocalProtocolError
from ._jsonrpc import encode, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._config import Terms
    from ._dialects import Dialect

__all__ = ["body", "stamped_params", "stamped_result"]

# Members of a request's `_meta` that only the connection may write.
_RESERVED: Final = frozenset(
    {
        "progressToken",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
        "io.modelcontextprotocol/clientInfo",
    }
)


def body(dialect: Dialect, params: Struct | Mapping[str, Any] | None) -> bytes | None:
    """Params as JSON of the revision, None for none.

    Raises:
        LocalProtocolError: they have half of a surrogate pair, which UTF-8 cannot say.
    """
    if params is None:
        return None
    try:
        encoded = dialect.encode(params) if isinstance(params, Struct) else encode(params)
    except UnicodeEncodeError as exc:
        raise LocalProtocolError(f"the params are not text that can be sent: {exc}") from None
    return None if encoded == b"{}" else encoded


def stamped_params(
    terms: Terms,
    params: Struct | Mapping[str, Any] | None,
    meta: Mapping[str, Any] | None,
    progress_token: t.ProgressToken | None,
) -> bytes | None:
    """The params of a request with the `_meta` that the revision wants, the caller's `meta` and the progress token.

    Raises:
        LocalProtocolError: `meta` has a member that is the connection's to write.
    """
    if isinstance(params, t.RequestParams) and params.meta is not None:
        meta = {**to_builtins(terms.dialect.fit(params.meta)), **(meta or {})}
        params = replace(params, meta=None)
    if isinstance(params, dict) and "_meta" in params:
        params = dict(params)
        meta = {**params.pop("_meta"), **(meta or {})}
    members = [terms.request_meta] if terms.request_meta else []
    if progress_token is not None:
        members.append(b'"progressToken":%b' % encode(progress_token))
    if meta:
        taken = _RESERVED & meta.keys()
        if taken:
            raise LocalProtocolError(f"_meta.{min(taken)} is written by the connection, not by its caller")
        members.append(encode(meta)[1:-1])
    encoded = body(terms.dialect, params)
    if not members:
        return encoded
    if encoded is None:
        return b'{"_meta":{%b}}' % b",".join(members)
    return b'{"_meta":{%b},%b' % (b",".join(members), encoded[1:])


def stamped_result(terms: Terms, result: Struct | Mapping[str, Any] | Raw) -> tuple[bytes, bytes]:
    """A result as JSON of the revision, and the members to put in front of it, each with its comma."""
    if isinstance(result, t.Result):
        fitted = result if type(result) in terms.dialect.unchanged else terms.dialect.fit(result)
        if fitted.meta is None:
            return encode(fitted), terms.stamp if fitted.result_type is None else terms.meta_stamp
        if terms.result_meta:
            fitted = replace(fitted, meta={**terms.result_meta, **fitted.meta})
        return encode(fitted), terms.type_stamp if fitted.result_type is None else b""
    if isinstance(result, Raw):
        encoded = bytes(result)
        # White space behind the brace, as others may write it, would be in the way of the members.
        return encoded if encoded[1:2] in (b'"', b"}") else one_line(encoded), terms.stamp
    if isinstance(result, Struct):
        return terms.dialect.encode(result), terms.stamp
    stamp = b"" if "resultType" in result else terms.type_stamp
    if terms.result_meta:
        result = {**result, "_meta": {**terms.result_meta, **result.get("_meta", {})}}
    return encode(result), stamp
