"""The browser part of a login: the authorization request, and the callback to the redirect URI.

1. Everything that the callback has to match is recorded before the browser opens: issuer, state,
   verifier, redirect URI and resource. The record is used for one callback, then dropped.
2. A callback is checked in this order: its place, `state`, then `iss` (compared as strings, without
   normalization), then the error or the code. If one of the first three is wrong, none of its
   content is shown. The first two tell the callback from requests of strangers.
3. A parameter that occurs twice is rejected, in a callback and in the query of the authorization
   endpoint.

Sources: 2026-07-28 basic/authorization (Authorization Response Validation), RFC 6749 sections 4.1.1
and 4.1.2, RFC 7636, RFC 8707, RFC 9207 section 2.4, RFC 9700 section 4.4.2.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from mcp_core.auth._errors import AuthorizationFailed
from mcp_core.auth._jose import base64url
from mcp_core.auth._metadata import OAuthErrorResponse, sanitize_error
from mcp_core.auth._resource_urls import check_url
from mcp_core.auth._secret import RedactedStruct, Secret
from mcp_core.auth._steps import Browse
from mcp_core.urls._addresses import origin_of
from mcp_core.urls._url import redacted_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._discovery import AuthorizationServer

__all__ = [
    "AuthorizationRequest",
    "authorization_url",
    "code_challenge",
    "is_callback_for",
    "new_authorization_request",
    "new_secret",
    "read_callback",
    "resource_advice",
]

_MAX_CALLBACK: Final = 16_384  # characters

_MAX_FIELDS: Final = 50

# Bytes. base64url writes them as 43 characters, the shortest verifier that RFC 7636 allows.
_SECRET_SIZE: Final = 32

# Further parameters that would change the meaning of a request (RFC 6749, RFC 9101, OAuth 2.0
# Multiple Response Type Encoding Practices). We don't send them, and the endpoint must not add
# them.
_RESERVED_PARAMETERS: Final = frozenset({"scope", "request", "request_uri", "response_mode"})

# Texts for the error codes of RFC 6749 section 4.1.2.1.
_ERROR_TEXTS: Final = {
    "access_denied": "the login was refused, by the user or by the authorization server",
    "invalid_scope": "the authorization server does not know, or does not grant, a requested scope",
    "invalid_target": "the authorization server issues no tokens for this MCP server",
    "unauthorized_client": "the authorization server does not let this client log users in",
    "temporarily_unavailable": "the authorization server is overloaded; try again later",
}


class AuthorizationRequest(RedactedStruct, frozen=True):
    """An authorization request in progress: the values that its callback has to match.

    `issuer` is what `iss` has to be, `resource` what the token is for, None if that isn't sent.
    """

    issuer: str
    state: Secret
    verifier: Secret
    redirect_uri: str
    resource: str | None


def new_authorization_request(
    auth_server: AuthorizationServer,
    redirect_uri: str,
    entropy: Callable[[int], bytes],
    *,
    assume_pkce: bool = False,
    send_resource: bool = True,
) -> AuthorizationRequest:
    """Create the record of a new authorization request.

    `assume_pkce` and `send_resource` are the profile's settings.

    Raises:
        AuthorizationFailed: the authorization server doesn't announce PKCE with S256, without
            which a stolen code could be redeemed.
    """
    methods = auth_server.metadata.code_challenge_methods_supported
    if not (methods is None and assume_pkce) and "S256" not in (methods or ()):
        cure = "Its administrator has to turn it on."
        if methods is None:
            cure += (
                " If you know that it supports S256, set issuer and assume_pkce=True of the "
                "profile (`mcp-trio login --issuer --assume-pkce`)."
            )
        raise AuthorizationFailed(
            f"the authorization server {redacted_url(auth_server.issuer)} does not say that it "
            "supports PKCE with S256 "
            f"(code_challenge_methods_supported), without which a code could be stolen. {cure}"
        )
    return AuthorizationRequest(
        auth_server.iss,
        new_secret(entropy),
        new_secret(entropy),
        redirect_uri,
        auth_server.resource if send_resource else None,
    )


def authorization_url(
    auth_server: AuthorizationServer,
    request: AuthorizationRequest,
    client_id: str,
    scopes: Sequence[str],
    *,
    allow_loopback: bool,
) -> str:
    """Build the URL that the browser has to open.

    Raises:
        AuthorizationFailed: the authorization server has no authorization endpoint, or one that
            must not be used.
    """
    endpoint = auth_server.metadata.authorization_endpoint
    if endpoint is None:
        raise AuthorizationFailed(
            f"the authorization server {redacted_url(auth_server.issuer)} has no authorization "
            "endpoint, so a browser cannot log in"
        )
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": request.redirect_uri,
        "state": request.state.reveal(),
        "code_challenge": code_challenge(request.verifier),
        "code_challenge_method": "S256",
    }
    if request.resource is not None:
        query["resource"] = request.resource
    if scopes:
        query["scope"] = " ".join(scopes)
    if "offline_access" in scopes:
        query["prompt"] = "consent"  # without it OpenID Connect ignores the scope
    endpoint_parameters = {
        name for name, _ in parse_qsl(urlsplit(endpoint).query, keep_blank_values=True)
    }
    # `resource` too if it isn't sent: the endpoint must not choose what the token is for.
    conflicting = endpoint_parameters & (query.keys() | {"resource"} | _RESERVED_PARAMETERS)
    if conflicting:
        raise AuthorizationFailed(
            f"the authorization_endpoint of {redacted_url(auth_server.issuer)} already sets "
            f"parameters of a login ({', '.join(sorted(conflicting))}): another user could be "
            "logged in. "
            "It is not used; tell the administrator of the server."
        )
    url = f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query, quote_via=quote)}"
    return check_url(
        url, "the authorization_endpoint of the authorization server", local=allow_loopback
    )


def is_callback_for(browse: Browse, callback: str) -> bool:
    """Return True if the URL `callback` is the redirect for `browse`: by its place and its `state`.

    Other programs and web pages can reach the listener too. It ignores every request for which this
    is False, and continues to listen.
    """
    try:
        if not _is_same_place(callback, browse.redirect_uri):
            return False
        sent = _single_value(_parse_query(_url_query(browse.url)), "state")
        received = _single_value(_parse_query(_url_query(callback)), "state")
    except AuthorizationFailed:
        return False
    return sent is not None and received is not None and Secret(sent) == Secret(received)


def read_callback(callback: str, request: AuthorizationRequest, *, iss_required: bool) -> Secret:
    """Validate the callback URL and return its authorization code.

    `iss_required` is True if the server announced that it always sends `iss`.

    Raises:
        AuthorizationFailed: the callback has no code, or cannot be trusted.
    """
    parameters = _parse_query(_url_query(callback))
    state = _single_value(parameters, "state")
    if state is None or Secret(state) != request.state:
        raise AuthorizationFailed(
            "the browser came back with the answer to another login (state does not match). Log in "
            "again."
        )
    issuer = _single_value(parameters, "iss")
    if issuer is None and iss_required:
        raise AuthorizationFailed(
            "the answer does not say which authorization server it is from, as "
            f"{redacted_url(request.issuer)} promises (iss is "
            "missing). It is not used: it may come from another one."
        )
    if issuer is not None and issuer != request.issuer:
        raise AuthorizationFailed(
            "the answer comes from another authorization server than "
            f"{redacted_url(request.issuer)} (iss does not match). It is not "
            "used: an attacker may have tried to get the code."
        )
    error = _single_value(parameters, "error")
    if error is not None:
        raise _login_error(error, _single_value(parameters, "error_description"))
    code = _single_value(parameters, "code")
    if not code:
        raise AuthorizationFailed(
            "the browser came back without a code and without an error. Log in again."
        )
    return Secret(code)


def _is_same_place(url: str, redirect_uri: str) -> bool:
    """Return True if both URLs are equal up to the query, apart from case and default port.

    Each authorization server has its own place (`distinct_redirect_uri`).
    """
    try:
        if origin_of(url) != origin_of(redirect_uri):
            return False
    except ValueError:
        return False
    return (urlsplit(url).path or "/") == (urlsplit(redirect_uri).path or "/")


def _login_error(error: str, description: str | None) -> AuthorizationFailed:
    """Build the exception for an error in the callback."""
    readable = sanitize_error(error, description)
    if readable is None:
        return AuthorizationFailed(
            "the authorization server refused the login with an error that cannot be read"
        )
    text = _ERROR_TEXTS.get(readable.error, "the authorization server refused the login")
    detail = f" ({readable.error_description})" if readable.error_description else ""
    advice = resource_advice(readable)
    return AuthorizationFailed(f"{text}: {readable.error}{detail}{advice}", error=readable.error)


def resource_advice(error: OAuthErrorResponse) -> str:
    """Return what to do if the authorization server may have refused the parameter `resource`."""
    if error.error != "invalid_target" and "resource" not in (error.error_description or ""):
        return ""
    return (
        ". If it does not support the parameter resource, set issuer, scopes and "
        "send_resource=False of the profile (`mcp-trio login --issuer --scope --no-resource`)"
    )


def _url_query(url: str) -> str:
    """Return the query of a callback URL.

    Raise `AuthorizationFailed` if it isn't a URL or too long.
    """
    if len(url) > _MAX_CALLBACK:
        raise AuthorizationFailed(
            f"the browser came back with a URL of more than {_MAX_CALLBACK} characters"
        )
    try:
        if url.isascii():
            return urlsplit(url).query
    except ValueError:
        pass
    raise AuthorizationFailed("the browser came back with something that is not a URL")


def _parse_query(query: str) -> list[tuple[str, str]]:
    """Parse a query. Raise `AuthorizationFailed` if it has too many parameters."""
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise AuthorizationFailed("the browser came back with too many parameters") from None


def _single_value(parameters: list[tuple[str, str]], name: str) -> str | None:
    """Return a parameter's value, None if absent.

    Raise `AuthorizationFailed` if it is repeated.
    """
    found = [value for key, value in parameters if key == name]
    if len(found) > 1:
        raise AuthorizationFailed(
            f"the browser came back with {name} twice, which a valid response never has. Log in "
            "again."
        )
    return found[0] if found else None


def new_secret(entropy: Callable[[int], bytes]) -> Secret:
    """Return a new PKCE verifier, `state` or identifier.

    `entropy` returns that many random bytes. It must be fit for secrets.
    """
    return Secret(base64url(entropy(_SECRET_SIZE)))


def code_challenge(verifier: Secret) -> str:
    """Return the code challenge of `verifier` by S256 (RFC 7636 section 4.2).

    The method `plain` isn't implemented.
    """
    return base64url(sha256(verifier.reveal().encode()).digest())
