"""Access tokens with their metadata, and their stored form.

1. A token is used only for the resource and the client that it was issued to. Its refresh token
   goes only to the authorization server that issued it.
2. Stored data that cannot be read counts as absent and never raises an exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcp_core.auth._metadata import is_token
from mcp_core.auth._secret import RedactedStruct, Secret
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader

from ._challenge import split_scopes

if TYPE_CHECKING:
    from mcp_core.auth._metadata import TokenResponse

__all__ = ["Tokens", "decode_tokens", "encode_tokens", "tokens_from_response", "tokens_key"]

# Tokens are renewed before they expire: by a tenth of their lifetime, at most by a minute.
_MAX_RENEW_MARGIN: Final = 60.0  # seconds
_RENEW_MARGIN_SHARE: Final = 0.1


class Tokens(Struct, frozen=True, kw_only=True):
    """An access token, its refresh token, and what is needed to use them.

    Times are in seconds since 1970, or None if the expiry is unknown.

    - `scopes` are those that the server granted, None if it did not say; `requested_scopes` are all
      that were requested.
    - `renew_at` is the time from which the token should be renewed, shortly before `expires_at`.
    - `metadata_url` is the `resource_metadata` URL in the MCP server's challenge.
    - `dpop_seed` is the seed of the key that the token is bound to, None for a bearer token.
    - `client_method` and `client_secret` say how the client authenticates. They are set if it is
      registered dynamically, has no secret, or stores its secret here; None: as the profile says.
    - `redirect_uri` is the login's redirect URI.
    - `login_id` is a random text that is the same for all tokens of one login, so that tokens
      refreshed by another process are known to belong to the same user. None: unknown.
    - `assume_pkce`, `send_resource` and `metadata_issuer` are the login profile's settings.
    """

    access: Secret
    issuer: str
    resource: str
    client_id: str
    refresh: Secret | None = None
    scopes: tuple[str, ...] | None = None
    requested_scopes: tuple[str, ...] = ()
    expires_at: float | None = None
    renew_at: float | None = None
    metadata_url: str | None = None
    dpop_seed: Secret | None = None
    client_method: str | None = None
    client_secret: Secret | None = None
    redirect_uri: str | None = None
    login_id: str | None = None
    assume_pkce: bool = False
    send_resource: bool = True
    metadata_issuer: str | None = None


class _StoredTokens(RedactedStruct, frozen=True, kw_only=True, omit_defaults=True):
    """`Tokens` in the form in which they are stored.

    `layout` changes when older versions of this library must not read the data.
    """

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
    login_id: str | None = None
    assume_pkce: bool = False
    send_resource: bool = True
    metadata_issuer: str | None = None


_LAYOUT: Final = 1
_decode: Final = reader(_StoredTokens)


def tokens_key(resource: str) -> str:
    """Return the storage key of the tokens for an MCP server. `resource` is its canonical URI."""
    return f"tokens:{resource}"


def tokens_from_response(
    reply: TokenResponse,
    *,
    now: float,
    issuer: str,
    resource: str,
    client_id: str,
    refresh: Secret | None = None,
) -> Tokens:
    """Build `Tokens` from a token response.

    `refresh` is the request's refresh token. It stays in use unless the response has a new one.
    """
    lifetime = reply.lifetime
    expires_at = None
    renew_at = None
    if lifetime is not None:
        expires_at = now + lifetime
        renew_at = expires_at - min(_MAX_RENEW_MARGIN, lifetime * _RENEW_MARGIN_SHARE)
    return Tokens(
        access=Secret(reply.access_token),
        issuer=issuer,
        resource=resource,
        client_id=client_id,
        refresh=Secret(reply.refresh_token) if reply.refresh_token else refresh,
        scopes=split_scopes(reply.scope) if reply.scope is not None else None,
        expires_at=expires_at,
        renew_at=renew_at,
    )


def encode_tokens(tokens: Tokens) -> bytes:
    """Encode tokens for the storage, which must keep them from other users."""
    return encode(
        _StoredTokens(
            layout=_LAYOUT,
            access=tokens.access.reveal(),
            issuer=tokens.issuer,
            resource=tokens.resource,
            client_id=tokens.client_id,
            refresh=tokens.refresh.reveal() if tokens.refresh else None,
            scopes=list(tokens.scopes) if tokens.scopes is not None else None,
            asked=tokens.requested_scopes,
            expires_at=tokens.expires_at,
            renew_at=tokens.renew_at,
            metadata_url=tokens.metadata_url,
            dpop_seed=tokens.dpop_seed.reveal() if tokens.dpop_seed else None,
            client_method=tokens.client_method,
            client_secret=tokens.client_secret.reveal() if tokens.client_secret else None,
            redirect_uri=tokens.redirect_uri,
            login_id=tokens.login_id,
            assume_pkce=tokens.assume_pkce,
            send_resource=tokens.send_resource,
            metadata_issuer=tokens.metadata_issuer,
        )
    )


def decode_tokens(data: bytes) -> Tokens | None:
    """Decode stored tokens. Return None if they cannot be read or have another layout."""
    try:
        stored = _decode(data)
    except InvalidPayload:
        return None
    if stored.layout != _LAYOUT or not is_token(stored.access):
        return None
    return Tokens(
        access=Secret(stored.access),
        issuer=stored.issuer,
        resource=stored.resource,
        client_id=stored.client_id,
        refresh=Secret(stored.refresh) if stored.refresh else None,
        scopes=tuple(stored.scopes) if stored.scopes is not None else None,
        requested_scopes=stored.asked,
        expires_at=stored.expires_at,
        renew_at=stored.renew_at,
        metadata_url=stored.metadata_url,
        dpop_seed=Secret(stored.dpop_seed) if stored.dpop_seed else None,
        client_method=stored.client_method,
        client_secret=Secret(stored.client_secret) if stored.client_secret else None,
        redirect_uri=stored.redirect_uri,
        login_id=stored.login_id,
        assume_pkce=stored.assume_pkce,
        send_resource=stored.send_resource,
        metadata_issuer=stored.metadata_issuer,
    )
