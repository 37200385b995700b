"""The documents of OAuth as types: metadata of a resource and of an authorization server, answers to registration and token
requests, and errors.

Rules of this file:

1. Members that are not needed are not looked at; `null` counts as absent, since many servers write it. A member of the wrong
   type spoils its document: who writes `"scopes_supported": "a b"` cannot be trusted with the rest.
2. What is wrong becomes one `AuthorizationFailed` that names the document and the member.
3. What leaves this file is safe to use: a token can stand in a header, an error text on a terminal. Nothing prints a secret.

URLs are not judged here but where it is known whether the MCP server is on loopback (`_discovery.py`).

Sources: RFC 9728 section 2, RFC 8414 section 2, RFC 7591 section 3.2, RFC 6749 sections 5.1 and 5.2, RFC 8693 section 2.2.1.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote, quote_plus

from mcp_core._jsonrpc import Unreadable, reader

from ._errors import AuthorizationFailed
from ._secret import Opaque, Secret
from ._steps import MAX_BODY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "ErrorReply",
    "RegistrationReply",
    "ResourceMetadata",
    "ServerMetadata",
    "TokenReply",
    "error_of",
    "is_token",
    "read_error",
    "read_registration",
    "read_resource_metadata",
    "read_server_metadata",
    "read_token",
]

T = TypeVar("T")

# Ten years: what is longer is a mistake, and what is far longer does not fit into a date.
_LONGEST: Final = 315_360_000.0
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_CODE: Final = re.compile(r"[\x20\x21\x23-\x5b\x5d-\x7e]{1,64}")
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")
_LONGEST_TEXT: Final = 200
_SHORTEST_SECRET: Final = 6


class ResourceMetadata(Opaque, frozen=True):
    """What an MCP server publishes about itself (RFC 9728)."""

    resource: str
    authorization_servers: list[str] | None = None
    scopes_supported: list[str] | None = None


class ServerMetadata(Opaque, frozen=True):
    """What an authorization server publishes about itself (RFC 8414, OpenID Connect Discovery)."""

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


class RegistrationReply(Opaque, frozen=True):
    """What a client was registered as (RFC 7591)."""

    client_id: str
    client_secret: str | None = None
    client_secret_expires_at: float | None = None
    token_endpoint_auth_method: str | None = None
    scope: str | None = None


class TokenReply(Opaque, frozen=True):
    """An access token, or the assertion that a token exchange gives. `expires_in` is in seconds, None if it is not known."""

    access_token: str
    token_type: str = "Bearer"  # noqa: S105 - the kind of token, no token
    expires_in: float | str | None = None
    refresh_token: str | None = None
    scope: str | None = None
    issued_token_type: str | None = None

    @property
    def lifetime(self) -> float | None:
        """`expires_in` as a number of seconds that can be added to a time; some servers write it as a string."""
        try:
            seconds = float(self.expires_in) if self.expires_in is not None else None
        except ValueError:
            return None
        if seconds is None or not isfinite(seconds):
            return None
        return min(max(seconds, 0.0), _LONGEST)


class ErrorReply(Opaque, frozen=True):
    """Why a request was refused: `error`, a code of OAuth, and a short text for people."""

    error: str
    error_description: str | None = None


_resource_metadata: Final = reader(ResourceMetadata)
_server_metadata: Final = reader(ServerMetadata)
_registration: Final = reader(RegistrationReply)
_token: Final = reader(TokenReply)
_error: Final = reader(ErrorReply)


def read_resource_metadata(body: bytes) -> ResourceMetadata:
    """Protected-resource metadata.

    Raises:
        AuthorizationFailed: it is none.
    """
    return _read(_resource_metadata, body, "the metadata of the MCP server")


def read_server_metadata(body: bytes) -> ServerMetadata:
    """Authorization-server metadata.

    Raises:
        AuthorizationFailed: it is none.
    """
    return _read(_server_metadata, body, "the metadata of the authorization server")


def read_registration(body: bytes) -> RegistrationReply:
    """The answer to a registration.

    Raises:
        AuthorizationFailed: it is none.
    """
    reply = _read(_registration, body, "the registration of this client")
    if not _TOKEN.fullmatch(reply.client_id.replace(" ", "")):
        raise AuthorizationFailed(
            "the authorization server registered this client without a usable client_id"
        )
    return reply


def read_token(body: bytes) -> TokenReply:
    """The answer to a token request.

    Raises:
        AuthorizationFailed: it is none, or the token cannot stand in a header.
    """
    reply = _read(_token, body, "the answer of the token endpoint")
    if not is_token(reply.access_token):
        raise AuthorizationFailed("the token endpoint gave an access token that cannot stand in a header")
    return reply


def is_token(text: str) -> bool:
    """Whether a text can stand in a header as a token."""
    return _TOKEN.fullmatch(text) is not None


def read_error(body: bytes, hide: Iterable[Secret] = ()) -> ErrorReply | None:
    """The error in an answer, with what is printable of its text; None if there is none. What is in `hide` is struck out."""
    try:
        reply = _error(body[:MAX_BODY])
    except Unreadable:
        return None
    return error_of(reply.error, reply.error_description, hide)


def error_of(error: str, description: str | None, hide: Iterable[Secret] = ()) -> ErrorReply | None:
    """An error and its text as a stranger wrote them, made fit to be shown."""
    text = description or ""
    for secret in (secret.reveal() for secret in hide):
        # What is shorter stands in any word, and was no secret.
        if len(secret) >= _SHORTEST_SECRET:
            # As it is, and as it is sent: in a form, and by Basic.
            for hidden in (secret, quote_plus(secret, errors="replace"), quote(secret, "", errors="replace")):
                error, text = error.replace(hidden, "..."), text.replace(hidden, "...")
    if not _CODE.fullmatch(error):
        return None
    text = _UNPRINTABLE.sub(" ", text).strip()
    return ErrorReply(error, text[:_LONGEST_TEXT] or None)


def _read(read: Callable[[bytes], T], body: bytes, what: str) -> T:
    if len(body) > MAX_BODY:
        raise AuthorizationFailed(f"{what} is longer than {MAX_BODY} bytes")
    try:
        return read(body)
    except Unreadable as exc:
        raise AuthorizationFailed(f"{what} cannot be read: {exc}") from None
