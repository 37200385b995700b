"""Requests to a token endpoint: every grant, and every way in which a client authenticates.

1. Every request names the `resource`, so the token is valid for this MCP server only, unless the
   profile says otherwise (`send_resource`).
2. Code, verifier, client secret and refresh token go only to the configured authorization server's
   token endpoint. Only the ID token goes elsewhere: to the identity provider that the user named.
3. A server error is reported with its code and its text, from which every secret that was sent is
   removed.

Sources: RFC 6749 sections 2.3, 4 to 6; RFC 7521, RFC 7523, RFC 8693, RFC 8707, RFC 9449 section 5;
OAuth 2.1; extensions/auth of modelcontextprotocol.io;
draft-ietf-oauth-identity-assertion-authz-grant.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from mcp_core.auth._errors import AuthorizationFailed, FetchFailed
from mcp_core.auth._jose import InvalidKey, base64url, private_key, sign
from mcp_core.auth._metadata import TokenResponse, read_error, read_token
from mcp_core.auth._resource_urls import check_url
from mcp_core.auth._secret import Secret
from mcp_core.auth._steps import Browse, Fetch, HttpRequest, HttpResponse
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.urls._url import redacted_url

from ._callback import (
    authorization_url,
    new_authorization_request,
    read_callback,
    resource_advice,
)
from ._registration import ClientIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core.auth._steps import Flow

    from ._discovery import AuthorizationServer
    from ._dpop_signer import DpopSigner
    from ._profile import ClientProfile, EnterpriseManaged

__all__ = ["TokenEndpointClient", "call_user_function"]

_URN: Final = "urn:ietf:params:oauth"
_JWT_BEARER: Final = f"{_URN}:grant-type:jwt-bearer"
_TOKEN_EXCHANGE: Final = f"{_URN}:grant-type:token-exchange"
_ID_JAG: Final = f"{_URN}:token-type:id-jag"
_ID_TOKEN: Final = f"{_URN}:token-type:id_token"
_ASSERTION_TYPE: Final = f"{_URN}:client-assertion-type:jwt-bearer"
_ASSERTION_LIFETIME: Final = 60  # seconds; an assertion is used for one request only

# RFC 6749 section 5.1 knows 200 only. Supabase answers 201.
_SUCCESSES: Final = frozenset({200, 201})

_ADVICE: Final = {
    "invalid_client": (
        "It does not know this client or its secret: check client_id and client_secret of the "
        "profile, or log in again."
    ),
    "invalid_grant": (
        "The code or token is expired, was used before, or belongs to another client: log in again."
    ),
    "invalid_scope": "It does not grant a requested scope: check scopes of the profile.",
    "invalid_target": "It issues no tokens for this MCP server; its administrator has to add it.",
    "unauthorized_client": (
        "It does not let this client get tokens in this way; its administrator has to allow it."
    ),
    "unsupported_grant_type": (
        "It does not give tokens in this way; set another grant in the profile."
    ),
}

Form = dict[str, "str | Secret"]


class TokenEndpointClient:
    """One client of one authorization server, for requests to its token endpoint.

    Each method is a flow. It returns a `TokenResponse` or raises `AuthorizationFailed`. With
    a `dpop_signer`, tokens are bound to its key; None: bearer tokens.

    `notes` say what was ignored in its responses, for the log.
    """

    __slots__ = (
        "_allow_loopback",
        "_auth_server",
        "_dpop_signer",
        "_entropy",
        "_identity",
        "_profile",
        "_wall_time",
        "notes",
    )

    def __init__(
        self,
        auth_server: AuthorizationServer,
        identity: ClientIdentity,
        profile: ClientProfile,
        dpop_signer: DpopSigner | None,
        *,
        allow_loopback: bool,
        entropy: Callable[[int], bytes],
        wall_time: Callable[[], float],
    ) -> None:
        self._auth_server = auth_server
        self._identity = identity
        self._profile = profile
        self._dpop_signer = dpop_signer
        self._allow_loopback = allow_loopback
        self._entropy = entropy
        self._wall_time = wall_time
        self.notes: list[str] = []

    def authorization_code(
        self,
        redirect_uri: str,
        scopes: Sequence[str],
        *,
        server_url: str = "",
        new_scopes: tuple[str, ...] = (),
    ) -> Flow[TokenResponse]:
        """Let a user log in in a browser. `server_url` and `new_scopes` are shown, see `Browse`."""
        pending = new_authorization_request(
            self._auth_server,
            redirect_uri,
            self._entropy,
            assume_pkce=self._profile.assume_pkce,
            send_resource=self._profile.send_resource,
        )
        url = authorization_url(
            self._auth_server,
            pending,
            self._identity.client_id,
            scopes,
            allow_loopback=self._allow_loopback,
        )
        callback: str = yield Browse(url, redirect_uri, server_url, new_scopes)
        iss_promised = (
            self._auth_server.metadata.authorization_response_iss_parameter_supported is True
        )
        code = read_callback(callback, pending, iss_required=iss_promised)
        form: Form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": pending.verifier,
            "redirect_uri": redirect_uri,
        }
        return (yield from self._request_token(form, ()))

    def refresh(self, token: Secret) -> Flow[TokenResponse]:
        """Redeem a refresh token, for the same scopes as before."""
        return (
            yield from self._request_token(
                {"grant_type": "refresh_token", "refresh_token": token}, ()
            )
        )

    def client_credentials(self, scopes: Sequence[str]) -> Flow[TokenResponse]:
        """Request a token with the client's own credentials."""
        return (yield from self._request_token({"grant_type": "client_credentials"}, scopes))

    def jwt_bearer(self, assertion: str, scopes: Sequence[str]) -> Flow[TokenResponse]:
        """Exchange an assertion that another party signed."""
        form: Form = {"grant_type": _JWT_BEARER, "assertion": Secret(assertion)}
        return (yield from self._request_token(form, scopes))

    def enterprise_managed(
        self, provider: EnterpriseManaged, scopes: Sequence[str]
    ) -> Flow[TokenResponse]:
        """Request a token with an ID token from the user's organization.

        The identity provider exchanges the ID token for an assertion, which `jwt_bearer` then uses.
        """
        form: Form = {
            "grant_type": _TOKEN_EXCHANGE,
            "requested_token_type": _ID_JAG,
            "audience": self._auth_server.iss,
            "subject_token": Secret(call_user_function(provider.id_token, "id_token")),
            "subject_token_type": _ID_TOKEN,
        }
        if self._profile.send_resource:
            form["resource"] = self._auth_server.resource
        if scopes:
            form["scope"] = " ".join(scopes)
        provider_identity = ClientIdentity(
            provider.client_id,
            "client_secret_post" if provider.client_secret is not None else "none",
            provider.client_secret,
        )
        url = check_url(
            provider.token_endpoint,
            "the token_endpoint of the identity provider",
            local=self._allow_loopback,
        )
        headers = _authenticate(provider_identity, form)
        reply = yield from _post_form(url, headers, form, named_by=None)
        token = self._parse_response(
            reply, form, provider_identity, f"the identity provider {redacted_url(url)}"
        )
        if token.issued_token_type != _ID_JAG:
            raise AuthorizationFailed(
                f"the identity provider {redacted_url(url)} gave no identity assertion (ID-JAG)"
            )
        return (yield from self.jwt_bearer(token.access_token, scopes))

    def _request_token(self, form: Form, scopes: Sequence[str]) -> Flow[TokenResponse]:
        """Send a token request for this resource and check the response."""
        url = self._auth_server.metadata.token_endpoint
        server = f"the token endpoint of {redacted_url(self._auth_server.issuer)}"
        if url is None:
            raise AuthorizationFailed(
                f"the authorization server {redacted_url(self._auth_server.issuer)} has no token "
                "endpoint"
            )
        if self._profile.send_resource:
            form["resource"] = self._auth_server.resource
        if scopes:
            form["scope"] = " ".join(scopes)
        reply = yield from self._send_request(url, form)
        nonce_required = _error_code(reply) == "use_dpop_nonce"
        if self._dpop_signer is not None:
            is_new = self._dpop_signer.store_nonce(url, reply.header("dpop-nonce"))
            # The only retry: a new nonce was required, so a proof with it may be accepted.
            if nonce_required and is_new:
                reply = yield from self._send_request(url, form)
                self._dpop_signer.store_nonce(url, reply.header("dpop-nonce"))
        token = self._parse_response(reply, form, self._identity, server)
        kind = token.token_type.lower()
        if kind != "bearer" and not (kind == "dpop" and self._dpop_signer is not None):
            raise AuthorizationFailed(f"{server} issued a token of an unknown type")
        return token

    def _parse_response(
        self, reply: HttpResponse, form: Form, identity: ClientIdentity, server: str
    ) -> TokenResponse:
        """Decode a token response, or raise `AuthorizationFailed` with the server's error."""
        secrets = [
            value for value in (*form.values(), identity.secret) if isinstance(value, Secret)
        ]
        error = read_error(reply.body, secrets) if reply.status < 500 else None
        if reply.status in _SUCCESSES and error is None:
            token, ignored = read_token(reply.body)
            if ignored:
                self.notes.append(
                    f"{server} gave a token with members that cannot be read, and are ignored: "
                    f"{', '.join(ignored)}"
                )
            return token
        if error is None:
            raise AuthorizationFailed(
                f"{server} answered {reply.status}. Try again later, or tell its administrator."
            )
        detail = f" ({error.error_description})" if error.error_description else ""
        advice = _ADVICE.get(error.error, "Tell its administrator.")
        raise AuthorizationFailed(
            f"{server} gave no token: {error.error}{detail}. {advice}{resource_advice(error)}",
            error=error.error,
        )

    def _send_request(self, url: str, form: Form) -> Flow[HttpResponse]:
        """Send one request. Each has its own client assertion and DPoP proof."""
        sent = dict(form)
        if self._identity.method == "private_key_jwt":
            headers: list[tuple[str, str]] = []
            self._add_client_assertion(sent)
        else:
            headers = _authenticate(self._identity, sent)
        if self._dpop_signer is not None:
            headers.append(("dpop", self._dpop_signer.create_proof("POST", url)))
        return (yield from _post_form(url, headers, sent, named_by=self._auth_server.issuer))

    def _add_client_assertion(self, form: Form) -> None:
        """Add a client assertion to `form` (RFC 7523)."""
        assert self._profile.private_key is not None
        client_id = self._identity.client_id
        now = int(self._wall_time())
        claims = {
            "iss": client_id,
            "sub": client_id,
            # The issuer, so that the assertion is useless at any other server.
            "aud": self._auth_server.iss,
            "jti": base64url(self._entropy(16)),
            "iat": now,
            "exp": now + _ASSERTION_LIFETIME,
        }
        try:
            key = private_key(self._profile.private_key.reveal())
            algorithm = self._profile.signing_algorithm or key.algorithms[0]
            signed = sign({"alg": algorithm, "typ": "JWT"}, encode(claims), key)
        except (InvalidKey, ImportError) as exc:
            raise AuthorizationFailed(f"private_key of the profile cannot be used: {exc}") from exc
        form |= {
            "client_id": client_id,
            "client_assertion_type": _ASSERTION_TYPE,
            "client_assertion": Secret(signed),
        }


def call_user_function(function: Callable[[], str], name: str) -> str:
    """Call the user's function and return its text. `name` is its name in the profile.

    Raises:
        AuthorizationFailed: it raises an exception or returns no text.
    """
    try:
        text: object = function()
    except Exception as exc:
        raise AuthorizationFailed(
            f"{name} of the profile's grant failed ({type(exc).__name__})"
        ) from exc
    if not isinstance(text, str) or not text:
        raise AuthorizationFailed(f"{name} of the profile's grant returned no text")
    return text


def _authenticate(identity: ClientIdentity, form: Form) -> list[tuple[str, str]]:
    """Add the client's credentials to `form`, or return the headers that carry them."""
    # Redundant beside Basic, but the official Python SDK requires it.
    form["client_id"] = identity.client_id
    if identity.secret is None:
        return []
    if identity.method == "client_secret_post":
        form["client_secret"] = identity.secret
        return []
    # Each part is encoded on its own (RFC 6749 section 2.3.1), so it may contain a colon. A space
    # becomes %20, not a plus sign: some servers decode only that (authlib, the official Python
    # SDK).
    pair = f"{quote(identity.client_id, safe='')}:{quote(identity.secret.reveal(), safe='')}"
    return [("authorization", f"Basic {b64encode(pair.encode()).decode()}")]


def _post_form(
    url: str, headers: list[tuple[str, str]], form: Form, *, named_by: str | None
) -> Flow[HttpResponse]:
    """Post `form` to a token endpoint. Return the response, of any status.

    `named_by` is the issuer that named `url`, None if it is configured.
    """
    body = urlencode(
        {name: value if isinstance(value, str) else value.reveal() for name, value in form.items()}
    )
    headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("accept", "application/json"),
        *headers,
    ]
    try:
        reply: HttpResponse = yield Fetch(
            HttpRequest("POST", url, headers, body.encode()), named_by
        )
    except FetchFailed as exc:
        raise AuthorizationFailed(
            f"no answer from the token endpoint {redacted_url(url)}: {exc.reason}"
        ) from exc
    return reply


def _error_code(reply: HttpResponse) -> str | None:
    """Return the OAuth error code of a response, or None if it has none."""
    error = read_error(reply.body) if reply.status not in _SUCCESSES else None
    return error.error if error is not None else None
