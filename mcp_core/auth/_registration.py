"""Under which name an authorization server knows us: as it was agreed by hand, by a document of ours, or by registration.

Rules of this file:

1. The order is that of the specification: pre-registered, Client ID Metadata Document, dynamic registration. If nothing of it is
   possible, somebody has to register us: `AuthRequired`.
2. Whatever one authorization server gave is kept under its issuer and never shown to another. Credentials set by hand belong
   to the issuer named beside them or else to the first one met; if the MCP server names another one later, that is an error
   and no reason to send them there. The URL of a metadata document is no secret and goes everywhere.
3. A registration is used again only if it fits: same redirect URI, not expired, the scopes that are now needed.

Sources: 2026-07-28 basic/authorization/client-registration; RFC 7591 sections 2 and 3, OpenID Connect Registration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_core._errors import AuthRequired
from mcp_core._jsonrpc import Unreadable, encode, reader

from ._errors import AuthorizationFailed, FetchFailed
from ._metadata import RegistrationReply, read_error, read_registration
from ._secret import Opaque, Secret
from ._steps import Fetch, HttpReply, HttpRequest, Load, Save
from ._urls import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._metadata import ServerMetadata
    from ._profile import ClientProfile
    from ._steps import Flow
    from ._tokens import Tokens

__all__ = ["Identity", "client_key", "identify", "known_identity"]

_BASIC, _POST, _NONE, _JWT = "client_secret_basic", "client_secret_post", "none", "private_key_jwt"
# A client on somebody's machine cannot keep a secret, so none is the best it can have.
_PREFERENCE: Final = (_NONE, _BASIC, _POST)


class Identity(Struct, frozen=True):
    """A client as one authorization server knows it, and how it shows that: `method` of the token endpoint.

    `registered` if it registered itself, `recalled` if that was an earlier time.
    """

    client_id: str
    method: str
    secret: Secret | None = None
    registered: bool = False
    recalled: bool = False


class _Kept(Opaque, frozen=True, kw_only=True, omit_defaults=True):
    """A registration as it is written."""

    client_id: str
    method: str
    redirect_uri: str
    secret: str | None = None
    scope: str | None = None
    expires_at: float | None = None


_read: Final = reader(_Kept)


def client_key(issuer: str) -> str:
    """Under which key the registration with an authorization server is kept."""
    return f"client:{issuer}"


def identify(
    profile: ClientProfile,
    server: ServerMetadata,
    *,
    resource: str,
    redirect_uri: str,
    scopes: Sequence[str],
    now: float,
) -> Flow[Identity]:
    """Who we are to `server`; `resource` is the canonical URI of the MCP server, `now` wall-clock seconds.

    Raises:
        AuthRequired: we are nobody there, and somebody has to register us.
        AuthorizationFailed: the registration failed, or the credentials belong to another authorization server.
    """
    if profile.client_id is not None:
        yield from _same_issuer(profile, server.issuer, f"issuer:{resource} {profile.client_id}")
    identity = known_identity(profile, server)
    if identity is not None:
        return identity
    if server.registration_endpoint is None or not profile.interactive:
        raise AuthRequired(
            f"the authorization server {shown(server.issuer)} registers no clients by itself. Register this one there by hand, with "
            f"the redirect URI {_to_register(profile, redirect_uri)}, and give the client_id (and client_secret) that it gets."
        )
    kept = yield Load(client_key(server.issuer))
    identity = _recalled(kept, redirect_uri, scopes, now)
    if identity is not None:
        return identity
    return (yield from _register(profile, server, server.registration_endpoint, redirect_uri, scopes))


def _to_register(profile: ClientProfile, redirect_uri: str) -> str:
    """The next time it is another port; who lets clients of somebody's own machine in takes any (RFC 8252 section 7.3)."""
    parts = urlsplit(profile.redirect_uri)
    if parts.port == 0:
        return f"{parts._replace(netloc=parts.netloc.removesuffix(':0')).geturl()} (at any port)"
    return redirect_uri


def known_identity(
    profile: ClientProfile, server: ServerMetadata, tokens: Tokens | None = None
) -> Identity | None:
    """Who we are there without asking anybody; with `tokens`, as whom we got them. None if nobody."""
    identity: Identity | None = None
    if profile.client_id is not None:
        identity = Identity(profile.client_id, _method(profile, server), profile.client_secret)
    elif profile.client_metadata_url is not None and server.client_id_metadata_document_supported:
        identity = Identity(profile.client_metadata_url, _NONE if profile.private_key is None else _JWT)
    elif tokens is not None and tokens.client_method is not None:
        identity = Identity(tokens.client_id, tokens.client_method, tokens.client_secret, registered=True)
    if tokens is not None and identity is not None and identity.client_id != tokens.client_id:
        return None
    return identity


def _same_issuer(profile: ClientProfile, issuer: str, key: str) -> Flow[None]:
    """Credentials made by hand belong to one authorization server."""
    owner = profile.issuer
    if owner is None:
        kept: bytes | None = yield Load(key)
        if kept is None:
            yield Save(key, issuer.encode())
            return
        owner = kept.decode(errors="replace")
    if owner != issuer:
        raise AuthorizationFailed(
            f"the MCP server now names the authorization server {shown(issuer)}, but the client_id was made for "
            f"{shown(owner)}. If that is right, register there and set client_id and issuer of the profile."
        )


def _method(profile: ClientProfile, server: ServerMetadata) -> str:
    if profile.private_key is not None:
        return _JWT
    if profile.client_secret is None:
        return _NONE
    supported = server.token_endpoint_auth_methods_supported or [_BASIC]
    return _POST if _POST in supported and _BASIC not in supported else _BASIC


def _recalled(kept: bytes | None, redirect_uri: str, scopes: Sequence[str], now: float) -> Identity | None:
    """An earlier registration, if it can be read and still fits."""
    if kept is None:
        return None
    try:
        found = _read(kept)
    except Unreadable:
        return None
    if found.redirect_uri != redirect_uri or (found.expires_at is not None and found.expires_at <= now):
        return None
    if found.scope is not None and not set(scopes) <= set(found.scope.split()):
        return None
    secret = Secret(found.secret) if found.secret else None
    return Identity(found.client_id, found.method, secret, registered=True, recalled=True)


def _register(
    profile: ClientProfile, server: ServerMetadata, endpoint: str, redirect_uri: str, scopes: Sequence[str]
) -> Flow[Identity]:
    supported = server.token_endpoint_auth_methods_supported or [_BASIC]
    method = next((name for name in _PREFERENCE if name in supported), _NONE)
    request: dict[str, object] = {
        "client_name": profile.client_name,
        "redirect_uris": [redirect_uri],
        "application_type": profile.application_type,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    }
    if scopes:
        request["scope"] = " ".join(scopes)
    headers = [("content-type", "application/json"), ("accept", "application/json")]
    try:
        reply: HttpReply = yield Fetch(HttpRequest("POST", endpoint, headers, encode(request)))
    except FetchFailed as exc:
        raise AuthorizationFailed(f"no registration with {shown(server.issuer)}: {exc.reason}") from exc
    if reply.status not in (200, 201):
        raise _refusal(reply, server.issuer, redirect_uri)
    found = read_registration(reply.body)
    identity = _registered(found, method, server.issuer)
    kept = _Kept(
        client_id=identity.client_id,
        method=identity.method,
        redirect_uri=redirect_uri,
        secret=identity.secret.reveal() if identity.secret else None,
        scope=found.scope,
        expires_at=found.client_secret_expires_at or None,  # 0 means never
    )
    yield Save(client_key(server.issuer), encode(kept))
    return identity


def _registered(found: RegistrationReply, asked: str, issuer: str) -> Identity:
    method = found.token_endpoint_auth_method or asked
    secret = Secret(found.client_secret) if found.client_secret else None
    if method not in _PREFERENCE or (method != _NONE and secret is None):
        raise AuthorizationFailed(
            f"the authorization server {shown(issuer)} registered this client for {method[:40]!r}, which it cannot do "
            f"{'without a secret' if method in _PREFERENCE else 'here'}. Register it by hand and set client_id."
        )
    return Identity(found.client_id, method, secret if method != _NONE else None, registered=True)


def _refusal(reply: HttpReply, issuer: str, redirect_uri: str) -> AuthorizationFailed:
    error = read_error(reply.body)
    said = f"status {reply.status}"
    if error is not None:
        said = error.error + (f" ({error.error_description})" if error.error_description else "")
    cure = "Register it by hand, and give the client_id that it gets."
    if error is not None and error.error == "invalid_redirect_uri":
        cure = f"It does not take the redirect URI {redirect_uri}: set another redirect_uri, or register by hand."
    return AuthorizationFailed(
        f"the authorization server {shown(issuer)} did not register this client: {said}. {cure}",
        error=error.error if error is not None else None,
    )
