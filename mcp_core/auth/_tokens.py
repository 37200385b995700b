"""Access tokens with what belongs to them, and how they are kept.

Rules of this file:

1. A token knows who issued it, for which resource and to which client. It is used for nothing else, and a refresh token goes
   to no other authorization server than the one that gave it.
2. It is renewed a little before it expires: a tenth of its life, at most a minute.
3. Storage is bytes under a key. What cannot be read there is as good as nothing, and said once; it never stops anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcp_core._jsonrpc import Unreadable, encode, reader

from ._challenge import split_scopes
from ._metadata import is_token
from ._secret import Opaque, Secret

if TYPE_CHECKING:
    from ._metadata import TokenReply

__all__ = ["Tokens", "decode_tokens", "encode_tokens", "tokens_from", "tokens_key"]

_EARLIER: Final = 60.0
_SHARE: Final = 0.1


class Tokens(Struct, frozen=True, kw_only=True):
    """An access token. Times are wall-clock seconds; None means that it is not known when it ends.

    `scopes` is what was granted as far as the server told, `asked` what was asked for in all. `metadata_url` is where the MCP
    server said its metadata is; `dpop_seed` what makes the key that the token is bound to (see `_dpop.py`), None for a bearer token.
    `client_method` and `client_secret` are how a client shows who it is that registered itself, has no secret, or keeps it here (None: as
    the profile says). `redirect_uri` is where its browser came back to.
    """

    access: Secret
    issuer: str
    resource: str
    client_id: str
    refresh: Secret | None = None
    scopes: tuple[str, ...] | None = None
    asked: tuple[str, ...] = ()
    expires_at: float | None = None
    renew_at: float | None = None
    metadata_url: str | None = None
    dpop_seed: Secret | None = None
    client_method: str | None = None
    client_secret: Secret | None = None
    redirect_uri: str | None = None


class _Kept(Opaque, frozen=True, kw_only=True, omit_defaults=True):
    """The same as it is written; `layout` changes when an older library must not read it."""

    layout: int = 0
    access: str
    issuer: str
    resource: str
    client_id: str
    refresh: str | None = None
    scopes: list[str] | None = None
    asked: tuple[str, ...] = ()
    expires_at: float | None = None
    renew_at: float | None = None
    metadata_url: str | None = None
    dpop_seed: str | None = None
    client_method: str | None = None
    client_secret: str | None = None
    redirect_uri: str | None = None


_LAYOUT: Final = 1
_read: Final = reader(_Kept)


def tokens_key(resource: str) -> str:
    """Under which key the tokens for an MCP server are kept; `resource` is its canonical URI."""
    return f"tokens:{resource}"


def tokens_from(
    reply: TokenReply,
    *,
    now: float,
    issuer: str,
    resource: str,
    client_id: str,
    refresh: Secret | None = None,
) -> Tokens:
    """The tokens in an answer. `refresh` is the refresh token used for it, which stays unless there is a new one."""
    life = reply.lifetime
    return Tokens(
        access=Secret(reply.access_token),
        issuer=issuer,
        resource=resource,
        client_id=client_id,
        refresh=Secret(reply.refresh_token) if reply.refresh_token else refresh,
        scopes=split_scopes(reply.scope) if reply.scope is not None else None,
        expires_at=None if life is None else now + life,
        renew_at=None if life is None else now + life - min(_EARLIER, life * _SHARE),
    )


def encode_tokens(tokens: Tokens) -> bytes:
    """Tokens as bytes for the storage, which has to keep them from other users."""
    return encode(
        _Kept(
            layout=_LAYOUT,
            access=tokens.access.reveal(),
            issuer=tokens.issuer,
            resource=tokens.resource,
            client_id=tokens.client_id,
            refresh=tokens.refresh.reveal() if tokens.refresh else None,
            scopes=list(tokens.scopes) if tokens.scopes is not None else None,
            asked=tokens.asked,
            expires_at=tokens.expires_at,
            renew_at=tokens.renew_at,
            metadata_url=tokens.metadata_url,
            dpop_seed=tokens.dpop_seed.reveal() if tokens.dpop_seed else None,
            client_method=tokens.client_method,
            client_secret=tokens.client_secret.reveal() if tokens.client_secret else None,
            redirect_uri=tokens.redirect_uri,
        )
    )


def decode_tokens(data: bytes) -> Tokens | None:
    """What was kept, None if it cannot be read or has another layout."""
    try:
        kept = _read(data)
    except Unreadable:
        return None
    if kept.layout != _LAYOUT or not is_token(kept.access):
        return None
    return Tokens(
        access=Secret(kept.access),
        issuer=kept.issuer,
        resource=kept.resource,
        client_id=kept.client_id,
        refresh=Secret(kept.refresh) if kept.refresh else None,
        scopes=tuple(kept.scopes) if kept.scopes is not None else None,
        asked=kept.asked,
        expires_at=kept.expires_at,
        renew_at=kept.renew_at,
        metadata_url=kept.metadata_url,
        dpop_seed=Secret(kept.dpop_seed) if kept.dpop_seed else None,
        client_method=kept.client_method,
        client_secret=Secret(kept.client_secret) if kept.client_secret else None,
        redirect_uri=kept.redirect_uri,
    )
