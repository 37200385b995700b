"""The JSON documents of OAuth as types: metadata, registration and token responses, and errors.

1. Unknown members are ignored, and `null` counts as absent because many servers write it. A member
   with the wrong type makes the whole document invalid, unless `_REPAIRS` says otherwise.
2. What protects has no leniency: issuer, endpoints, scopes of metadata, the lists of PKCE, of
   authentication methods and of DPoP, the type of a token. The flag for `iss` counts as true unless
   it is absent, null, false or "false".
3. An invalid document raises one `AuthorizationFailed` that names the document and the member.
4. What this module returns is safe to use: a token fits into a header, an error text onto a
   terminal. No `repr` shows a secret.

URLs in metadata aren't checked here but in `_server_metadata.py` and `client/_discovery.py`, which
know whether the MCP server is on loopback.

Sources: RFC 9728 section 2, RFC 8414 section 2, RFC 7591 section 3.2, RFC 6749 sections 5.1 and
5.2, RFC 8693 section 2.2.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, quote_plus

from msgspec import Raw

from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader

from ._errors import AuthorizationFailed
from ._secret import MIN_SECRET_LENGTH, RedactedStruct, Secret
from ._steps import MAX_BODY

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "AuthorizationServerMetadata",
    "OAuthErrorResponse",
    "ProtectedResourceMetadata",
    "RegistrationResponse",
    "TokenResponse",
    "is_json",
    "is_token",
    "read_error",
    "read_registration",
    "read_resource_metadata",
    "read_server_metadata",
    "read_token",
    "sanitize_error",
]

T = TypeVar("T")

# Seconds. Ten years: a longer lifetime is a mistake, and a much longer one doesn't fit into a
# date.
_MAX_LIFETIME: Final = 315_360_000.0
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
# Error codes: RFC 6749 section 5.2 gives the characters, the limit of length is ours.
_CODE: Final = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]{1,64}")
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")
_MAX_DESCRIPTION: Final = 200  # characters of an error description


class ProtectedResourceMetadata(RedactedStruct, frozen=True):
    """The metadata that an MCP server publishes about itself (RFC 9728)."""

    resource: str
    authorization_servers: list[str] | None = None
    scopes_supported: list[str] | None = None


class AuthorizationServerMetadata(RedactedStruct, frozen=True):
    """The metadata of an authorization server.

    Sources: RFC 8414, OpenID Connect Discovery.
    """

    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    registration_endpoint: str | None = None
    jwks_uri: str | None = None
    scopes_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    code_challenge_methods_supported: list[str] | None = None
    client_id_metadata_document_supported: bool | None = None
    authorization_response_iss_parameter_supported: bool | None = None
    dpop_signing_alg_values_supported: list[str] | None = None


class RegistrationResponse(RedactedStruct, frozen=True):
    """The response to a dynamic client registration (RFC 7591)."""

    client_id: str
    client_secret: str | None = None
    client_secret_expires_at: float | None = None
    token_endpoint_auth_method: str | None = None
    scope: str | None = None


class TokenResponse(RedactedStruct, frozen=True):
    """A token response: an access token, or the assertion that a token exchange returns.

    `expires_in` is in seconds, or None if it isn't known.
    """

    access_token: str
    token_type: str = "Bearer"  # noqa: S105 - the kind of token, no token
    expires_in: float | str | None = None
    refresh_token: str | None = None
    scope: str | None = None
    issued_token_type: str | None = None

    @property
    def lifetime(self) -> float | None:
        """`expires_in` as a number of seconds, at most ten years; None if unknown or unusable.

        Some servers write `expires_in` as a string.
        """
        try:
            seconds = float(self.expires_in) if self.expires_in is not None else None
        except ValueError:
            return None
        if seconds is None or not isfinite(seconds):
            return None
        return min(max(seconds, 0.0), _MAX_LIFETIME)


class OAuthErrorResponse(RedactedStruct, frozen=True):
    """An OAuth error response: the code `error`, and a short text for people."""

    error: str
    error_description: str | None = None


_decode_resource_metadata: Final = reader(ProtectedResourceMetadata)
_decode_server_metadata: Final = reader(AuthorizationServerMetadata)
_decode_registration: Final = reader(RegistrationResponse)
_decode_token: Final = reader(TokenResponse)
_decode_error: Final = reader(OAuthErrorResponse)
_decode_members: Final = reader(dict[str, Raw])
_decode_any: Final = reader(Any)


def _iss_flag(value: Any) -> bool:
    """Return the flag for `iss` as it counts: taking it for false would remove a protection."""
    return value is not None and value is not False and value != "false"


def _scope(value: Any) -> str | None:
    """Return a scope: a text, as RFC 6749 section 3.3 requires, or a list."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return value if isinstance(value, str) else None


def _seconds(value: Any) -> float | str | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float | str) else value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _unless_null(value: Any) -> Any:
    return value


# By type: the members that may break their RFC, and what each is read as. None drops the member;
# it is named unless it was null. All other members are required, or protect.
_REPAIRS: Final[dict[type, dict[str, Callable[[Any], Any]]]] = {
    AuthorizationServerMetadata: {
        "authorization_response_iss_parameter_supported": _iss_flag,
        "client_id_metadata_document_supported": _flag,
    },
    TokenResponse: {
        "token_type": _unless_null,
        "expires_in": _seconds,
        "refresh_token": _text,
        "scope": _scope,
        "issued_token_type": _text,
    },
}


def read_resource_metadata(body: bytes) -> ProtectedResourceMetadata:
    """Decode protected resource metadata.

    Raises:
        AuthorizationFailed: the document is invalid.
    """
    metadata, _ = _decode(
        ProtectedResourceMetadata, _decode_resource_metadata, body, "the metadata of the MCP server"
    )
    return metadata


def read_server_metadata(body: bytes) -> tuple[AuthorizationServerMetadata, tuple[str, ...]]:
    """Decode authorization server metadata. Return it, and the ignored members' names.

    Raises:
        AuthorizationFailed: the document is invalid.
    """
    return _decode(
        AuthorizationServerMetadata,
        _decode_server_metadata,
        body,
        "the metadata of the authorization server",
    )


def read_registration(body: bytes) -> RegistrationResponse:
    """Decode the response to a registration.

    Raises:
        AuthorizationFailed: the document is invalid, or its `client_id` isn't usable.
    """
    reply, _ = _decode(
        RegistrationResponse, _decode_registration, body, "the registration of this client"
    )
    if not _TOKEN.fullmatch(reply.client_id.replace(" ", "")):
        raise AuthorizationFailed(
            "the authorization server registered this client without a usable client_id"
        )
    return reply


def read_token(body: bytes) -> tuple[TokenResponse, tuple[str, ...]]:
    """Decode a token response. Return it, and the ignored members' names.

    Raises:
        AuthorizationFailed: the document is invalid, or the token doesn't fit into a header.
    """
    reply, ignored = _decode(TokenResponse, _decode_token, body, "the answer of the token endpoint")
    if not is_token(reply.access_token):
        raise AuthorizationFailed(
            "the token endpoint gave an access token that does not fit into a header"
        )
    return reply, ignored


def is_json(body: bytes) -> bool:
    """Return True if `body` is JSON of any kind, False for a page or an empty body.

    What begins like JSON and is nested too deeply to tell counts as JSON.
    """
    try:
        _decode_any(body)
    except InvalidPayload as exc:
        return isinstance(exc.__context__, RecursionError)
    return True


def is_token(text: str) -> bool:
    """Return True if `text` fits into an `Authorization` header as a token."""
    return _TOKEN.fullmatch(text) is not None


def read_error(body: bytes, secrets: Iterable[Secret] = ()) -> OAuthErrorResponse | None:
    """Decode an OAuth error response. Return None if `body` isn't one.

    The values in `secrets` are replaced by "..." in its texts.
    """
    try:
        reply = _decode_error(body[:MAX_BODY])
    except InvalidPayload:
        return None
    return sanitize_error(reply.error, reply.error_description, secrets)


def sanitize_error(
    error: str, description: str | None, secrets: Iterable[Secret] = ()
) -> OAuthErrorResponse | None:
    """Sanitize an error code and its description, which the peer wrote.

    Return None if the code isn't printable or too long. The values in `secrets` are replaced by
    "...", and unprintable characters of the description by spaces.
    """
    text = description or ""
    for hidden in secrets:
        secret = hidden.reveal()
        if len(secret) >= MIN_SECRET_LENGTH:
            # In all forms in which it is sent: plain, in a form, and in Basic authentication.
            in_form = quote_plus(secret, errors="replace")
            in_basic = quote(secret, "", errors="replace")
            for form in (secret, in_form, in_basic):
                error = error.replace(form, "...")
                text = text.replace(form, "...")
    if not _CODE.fullmatch(error):
        return None
    text = _UNPRINTABLE.sub(" ", text).strip()
    return OAuthErrorResponse(error, text[:_MAX_DESCRIPTION] or None)


def _decode(
    type: type[T], read: Callable[[bytes], T], body: bytes, document: str
) -> tuple[T, tuple[str, ...]]:
    """Decode `body`. Return the document and the ignored members' names.

    Raise `AuthorizationFailed` with a text about `document` if it is invalid.
    """
    if len(body) > MAX_BODY:
        raise AuthorizationFailed(f"{document} is longer than {MAX_BODY} bytes")
    try:
        return read(body), ()
    except InvalidPayload as exc:
        problem = exc
    ignored: list[str] = []
    try:
        members = _decode_members(body)
        for name, repair in _REPAIRS.get(type, {}).items():
            if name not in members:
                continue
            value = _decode_any(members[name])
            repaired = repair(value)
            if repaired is None:
                del members[name]
                if value is not None:
                    ignored.append(name)
            elif repaired is not value:
                members[name] = Raw(encode(repaired))
        return read(encode(members)), tuple(ignored)
    except InvalidPayload as exc:
        problem = exc
    raise AuthorizationFailed(f"{document} cannot be read: {problem}")
