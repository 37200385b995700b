"""Client registration: the client_id and the authentication method for an authorization server.

1. The order is the specification's: pre-registered, Client ID Metadata Document, dynamic
   registration. If none is possible, `AuthRequired` is raised: a person has to register the client.
2. What one authorization server issued is stored under and with its issuer, and never sent to
   another. Configured credentials belong to the configured issuer. A client_id without a secret may
   lack one: then it belongs to the first authorization server in use, whichever MCP server named
   it. The URL of a metadata document isn't a secret and may go to every server.
   Of an issuer with two spellings (`issuer_spellings`), records of both count.
3. A stored registration is used only if it fits: same redirect URI, not expired, all scopes.

Sources: 2026-07-28 basic/authorization/client-registration; RFC 7591 sections 2 and 3, OpenID
Connect Registration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_core._errors import AuthRequired
from mcp_core.auth._errors import AuthorizationFailed, FetchFailed
from mcp_core.auth._metadata import RegistrationResponse, read_error, read_registration
from mcp_core.auth._resource_urls import is_same_issuer, issuer_spellings
from mcp_core.auth._secret import RedactedStruct, Secret
from mcp_core.auth._steps import Fetch, HttpRequest, HttpResponse, Load, Save
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader
from mcp_core.urls._url import redacted_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.auth._metadata import AuthorizationServerMetadata
    from mcp_core.auth._steps import Flow

    from ._profile import ClientProfile
    from ._tokens import Tokens

__all__ = [
    "ClientIdentity",
    "forget_registration",
    "identify",
    "known_identity",
    "load_registration",
    "registration_key",
]

_BASIC: Final = "client_secret_basic"
_POST: Final = "client_secret_post"
_NONE: Final = "none"
_JWT: Final = "private_key_jwt"
# In order of preference. A native app cannot keep a secret, so "none" is best.
_PREFERRED_METHODS: Final = (_NONE, _BASIC, _POST)


class ClientIdentity(Struct, frozen=True):
    """A client as one authorization server knows it.

    `method` is its authentication method at the token endpoint. `registered` is True if it was
    registered dynamically, `from_storage` if the registration was loaded from the storage.
    """

    client_id: str
    method: str
    secret: Secret | None = None
    registered: bool = False
    from_storage: bool = False


class _StoredRegistration(RedactedStruct, frozen=True, kw_only=True, omit_defaults=True):
    """A registration in the form in which it is stored."""

    issuer: str
    client_id: str
    method: str
    redirect_uri: str
    secret: str | None = None
    scope: str | None = None
    expires_at: float | None = None


_decode: Final = reader(_StoredRegistration)


def registration_key(issuer: str) -> str:
    """Return the storage key for the registration with an authorization server."""
    return f"client:{issuer}"


def load_registration(issuer: str) -> Flow[tuple[str, bytes | None]]:
    """Load the registration with an authorization server.

    Return two values: the spelling of `issuer` that it is stored under, and the registration. If
    nothing is stored, they are `issuer` itself and None.
    """
    for spelling in issuer_spellings(issuer):
        stored: bytes | None = yield Load(registration_key(spelling))
        if stored is not None:
            return spelling, stored
    return issuer, None


def forget_registration(issuer: str) -> Flow[None]:
    """Delete the registration with an authorization server, in each spelling."""
    for spelling in issuer_spellings(issuer):
        yield Save(registration_key(spelling), None)


def _issuer_key(client_id: str) -> str:
    """Return the storage key of the issuer that a client_id without a secret belongs to."""
    return f"issuer:{client_id}"


def identify(
    profile: ClientProfile,
    server: AuthorizationServerMetadata,
    *,
    redirect_uri: str,
    scopes: Sequence[str],
    now: float,
) -> Flow[ClientIdentity]:
    """Return the client's identity at `server`. Register it there if necessary.

    `now` is in seconds since 1970.

    Raises:
        AuthRequired: the client isn't registered and cannot register itself.
        AuthorizationFailed: the registration failed, or the configured credentials belong to
            another authorization server.
    """
    yield from _check_issuer(profile, server.issuer)
    identity = known_identity(profile, server)
    if identity is not None:
        return identity
    if server.registration_endpoint is None or not profile.interactive:
        raise AuthRequired(
            f"the authorization server {redacted_url(server.issuer)} has no dynamic registration. "
            "Register "
            "this client there by hand, with the redirect URI "
            f"{_redirect_uri_to_register(profile, redirect_uri)}, and set the client_id (and "
            "client_secret) that it gets."
        )
    _, stored = yield from load_registration(server.issuer)
    identity = _decode_registration(stored, server.issuer, redirect_uri, scopes, now)
    if identity is not None:
        return identity
    return (
        yield from _register(profile, server, server.registration_endpoint, redirect_uri, scopes)
    )


def _redirect_uri_to_register(profile: ClientProfile, redirect_uri: str) -> str:
    """Return the redirect URI to register by hand, for the text of an error.

    With port 0 in the profile the next login uses another port. Servers that support native apps
    accept any port on loopback (RFC 8252 section 7.3).
    """
    parts = urlsplit(profile.redirect_uri)
    if parts.port == 0:
        return f"{parts._replace(netloc=parts.netloc.removesuffix(':0')).geturl()} (at any port)"
    return redirect_uri


def known_identity(
    profile: ClientProfile, server: AuthorizationServerMetadata, tokens: Tokens | None = None
) -> ClientIdentity | None:
    """Return the client's identity at `server` as far as no request is needed, or None.

    With `tokens` the result is the identity to which they were issued, or None if it isn't
    available.
    """
    identity: ClientIdentity | None = None
    if profile.client_id is not None:
        identity = ClientIdentity(
            profile.client_id, _auth_method(profile, server), profile.client_secret
        )
    elif profile.client_metadata_url is not None and server.client_id_metadata_document_supported:
        identity = ClientIdentity(
            profile.client_metadata_url, _NONE if profile.private_key is None else _JWT
        )
    elif tokens is not None and tokens.client_method is not None:
        identity = ClientIdentity(
            tokens.client_id, tokens.client_method, tokens.client_secret, registered=True
        )
    if tokens is not None and identity is not None and identity.client_id != tokens.client_id:
        return None
    return identity


def _check_issuer(profile: ClientProfile, issuer: str) -> Flow[None]:
    """Check that `issuer` is the configured one, or the configured client_id's owner.

    Without a configured issuer, the first one that a client_id is used with is stored, and binding
    from then on for all MCP servers.
    """
    owner = profile.issuer
    if owner is None:
        if profile.client_id is None:
            return
        stored: bytes | None = yield Load(_issuer_key(profile.client_id))
        if stored is None:
            yield Save(_issuer_key(profile.client_id), issuer.encode())
            return
        owner = stored.decode(errors="replace")
    if is_same_issuer(owner, issuer):
        return
    named = f"the MCP server names the authorization server {redacted_url(issuer)}, but "
    if profile.client_id is None:
        raise AuthorizationFailed(
            f"{named}the issuer of the profile is {redacted_url(owner)}. Nothing secret was sent. "
            "If that server is right, correct issuer."
        )
    raise AuthorizationFailed(
        f"{named}the client_id was made for {redacted_url(owner)}. Nothing secret was sent. If "
        "that server is right, register there and set client_id and issuer of the profile."
    )


def _auth_method(profile: ClientProfile, server: AuthorizationServerMetadata) -> str:
    """Return the authentication method for a configured client_id."""
    if profile.private_key is not None:
        return _JWT
    if profile.client_secret is None:
        return _NONE
    supported = server.token_endpoint_auth_methods_supported or [_BASIC]
    return _POST if _POST in supported and _BASIC not in supported else _BASIC


def _decode_registration(
    data: bytes | None, issuer: str, redirect_uri: str, scopes: Sequence[str], now: float
) -> ClientIdentity | None:
    """Decode a stored registration. Return None if it cannot be read or doesn't fit."""
    if data is None:
        return None
    try:
        registration = _decode(data)
    except InvalidPayload:
        return None
    # A storage that mixes up its entries must not send a secret to another server.
    if not is_same_issuer(registration.issuer, issuer) or registration.redirect_uri != redirect_uri:
        return None
    if registration.expires_at is not None and registration.expires_at <= now:
        return None
    if registration.scope is not None and not set(scopes) <= set(registration.scope.split()):
        return None
    secret = Secret(registration.secret) if registration.secret else None
    return ClientIdentity(
        registration.client_id, registration.method, secret, registered=True, from_storage=True
    )


def _register(
    profile: ClientProfile,
    server: AuthorizationServerMetadata,
    endpoint: str,
    redirect_uri: str,
    scopes: Sequence[str],
) -> Flow[ClientIdentity]:
    """Register the client dynamically (RFC 7591) and store the result."""
    supported = server.token_endpoint_auth_methods_supported or [_BASIC]
    method = next((name for name in _PREFERRED_METHODS if name in supported), _NONE)
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
        reply: HttpResponse = yield Fetch(
            HttpRequest("POST", endpoint, headers, encode(request)), server.issuer
        )
    except FetchFailed as exc:
        raise AuthorizationFailed(
            f"the registration with {redacted_url(server.issuer)} failed: {exc.reason}"
        ) from exc
    if reply.status not in (200, 201):
        raise _registration_error(reply, server.issuer, redirect_uri)
    registration = read_registration(reply.body)
    identity = _identity_from_response(registration, method, server.issuer)
    stored = _StoredRegistration(
        issuer=server.issuer,
        client_id=identity.client_id,
        method=identity.method,
        redirect_uri=redirect_uri,
        secret=identity.secret.reveal() if identity.secret else None,
        scope=registration.scope,
        expires_at=registration.client_secret_expires_at or None,  # 0 means never
    )
    yield Save(registration_key(server.issuer), encode(stored))
    return identity


def _identity_from_response(
    registration: RegistrationResponse, requested: str, issuer: str
) -> ClientIdentity:
    """Convert the response of a registration. Raise if the client cannot authenticate that way."""
    method = registration.token_endpoint_auth_method or requested
    secret = Secret(registration.client_secret) if registration.client_secret else None
    if method not in _PREFERRED_METHODS or (method != _NONE and secret is None):
        raise AuthorizationFailed(
            f"the authorization server {redacted_url(issuer)} registered this client for "
            f"{method[:40]!r}, which "
            f"{'needs a secret' if method in _PREFERRED_METHODS else 'is not supported'}. "
            "Register it by hand and set client_id."
        )
    return ClientIdentity(
        registration.client_id, method, secret if method != _NONE else None, registered=True
    )


def _registration_error(reply: HttpResponse, issuer: str, redirect_uri: str) -> AuthorizationFailed:
    """Build the exception for a registration that the authorization server rejected."""
    error = read_error(reply.body)
    problem = f"status {reply.status}"
    if error is not None:
        problem = error.error + (f" ({error.error_description})" if error.error_description else "")
    cure = "Register it by hand, and set the client_id that it gets."
    if error is not None and error.error == "invalid_redirect_uri":
        cure = (
            f"It does not accept the redirect URI {redirect_uri}: set another redirect_uri, or "
            "register by hand."
        )
    return AuthorizationFailed(
        f"the authorization server {redacted_url(issuer)} did not register this client: "
        f"{problem}. {cure}",
        error=error.error if error is not None else None,
    )
