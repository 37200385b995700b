"""Asking a token endpoint for tokens: every grant, every way for a client to show who it is.

Rules of this file:

1. Every request names the `resource`, so that the token is good for this MCP server and no other.
2. Code, verifier, secret and refresh token go to the token endpoint of the authority that the `Applicant` was made for and to
   no other host. Only the ID token goes elsewhere: to the identity provider that the user named.
3. A refusal is told with the code and the text of the server, from which whatever we sent as a secret is struck out. Nothing is
   sent again, with one exception: when a nonce for the DPoP proof is asked for, once.

Sources: RFC 6749 sections 2.3, 4 to 6; RFC 7521, RFC 7523, RFC 8693, RFC 8707, RFC 9449 section 5; OAuth 2.1; extensions/auth of
modelcontextprotocol.io; draft-ietf-oauth-identity-assertion-authz-grant.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from mcp_core._jsonrpc import encode

from ._callback import authorization_url, code_in, new_pending
from ._errors import AuthorizationFailed, FetchFailed
from ._jose import BadKey, base64url, private_key, sign
from ._metadata import TokenReply, read_error, read_token
from ._registration import Identity
from ._secret import Secret
from ._steps import Browse, Fetch, HttpReply, HttpRequest
from ._urls import check_url, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._discovery import Authority
    from ._dpop import Prover
    from ._profile import ClientProfile, EnterpriseManaged
    from ._steps import Flow

__all__ = ["Applicant", "told_by"]

_URN: Final = "urn:ietf:params:oauth"
_JWT_BEARER: Final = f"{_URN}:grant-type:jwt-bearer"
_TOKEN_EXCHANGE: Final = f"{_URN}:grant-type:token-exchange"
_ID_JAG: Final = f"{_URN}:token-type:id-jag"
_ID_TOKEN: Final = f"{_URN}:token-type:id_token"
_ASSERTION_TYPE: Final = f"{_URN}:client-assertion-type:jwt-bearer"
_ASSERTION_LIFE: Final = 60  # seconds: it is made for the request it is sent with

_CURES: Final = {
    "invalid_client": "It does not know this client or its secret: check client_id and client_secret of the profile, or log in again.",
    "invalid_grant": "What was shown is expired, was used before, or belongs to another client: log in again.",
    "invalid_scope": "It does not give a scope that was asked for: check scopes of the profile.",
    "invalid_target": "It gives no tokens for this MCP server; its administrator has to add it.",
    "unauthorized_client": "It does not let this client get tokens in this way; its administrator has to allow it.",
    "unsupported_grant_type": "It does not give tokens in this way; set another grant in the profile.",
}

Form = dict[str, "str | Secret"]


class Applicant:
    """Who asks one authority for tokens, as one of its clients. `prover` binds the tokens to a key (DPoP), None for bearer tokens.

    Each method is a flow that ends with a `TokenReply` and raises `AuthorizationFailed`.
    """

    __slots__ = ("_authority", "_entropy", "_identity", "_local", "_profile", "_prover", "_wall_time")

    def __init__(
        self,
        authority: Authority,
        identity: Identity,
        profile: ClientProfile,
        prover: Prover | None,
        *,
        local: bool,
        entropy: Callable[[int], bytes],
        wall_time: Callable[[], float],
    ) -> None:
        self._authority = authority
        self._identity = identity
        self._profile = profile
        self._prover = prover
        self._local = local
        self._entropy = entropy
        self._wall_time = wall_time

    def authorization_code(self, redirect_uri: str, scopes: Sequence[str]) -> Flow[TokenReply]:
        """By a user in a browser."""
        pending = new_pending(self._authority, redirect_uri, self._entropy)
        url = authorization_url(self._authority, pending, self._identity.client_id, scopes, local=self._local)
        callback: str = yield Browse(url, redirect_uri)
        promised = self._authority.server.authorization_response_iss_parameter_supported is True
        code = code_in(callback, pending, iss_promised=promised)
        form: Form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": pending.verifier,
            "redirect_uri": redirect_uri,
        }
        return (yield from self._ask(form, ()))

    def refresh(self, token: Secret) -> Flow[TokenReply]:
        """With a refresh token, for the same scopes as before."""
        return (yield from self._ask({"grant_type": "refresh_token", "refresh_token": token}, ()))

    def client_credentials(self, scopes: Sequence[str]) -> Flow[TokenReply]:
        """As oneself."""
        return (yield from self._ask({"grant_type": "client_credentials"}, scopes))

    def jwt_bearer(self, assertion: str, scopes: Sequence[str]) -> Flow[TokenReply]:
        """With what somebody else signed about us."""
        form: Form = {"grant_type": _JWT_BEARER, "assertion": Secret(assertion)}
        return (yield from self._ask(form, scopes))

    def enterprise_managed(self, provider: EnterpriseManaged, scopes: Sequence[str]) -> Flow[TokenReply]:
        """With the ID token of the organisation, exchanged at its identity provider."""
        form: Form = {
            "grant_type": _TOKEN_EXCHANGE,
            "requested_token_type": _ID_JAG,
            "audience": self._authority.issuer,
            "resource": self._authority.resource,
            "subject_token": Secret(told_by(provider.id_token, "id_token")),
            "subject_token_type": _ID_TOKEN,
        }
        if scopes:
            form["scope"] = " ".join(scopes)
        there = Identity(
            provider.client_id,
            "client_secret_post" if provider.client_secret is not None else "none",
            provider.client_secret,
        )
        url = check_url(
            provider.token_endpoint, "the token_endpoint of the identity provider", local=self._local
        )
        headers = _authenticate(there, form)
        reply = yield from _fetch(url, headers, form)
        answer = _token_in(reply, form, there, f"the identity provider {shown(url)}")
        if answer.issued_token_type != _ID_JAG:
            raise AuthorizationFailed(
                f"the identity provider {shown(url)} gave no identity assertion (ID-JAG)"
            )
        return (yield from self.jwt_bearer(answer.access_token, scopes))

    def _ask(self, form: Form, scopes: Sequence[str]) -> Flow[TokenReply]:
        url = self._authority.server.token_endpoint
        server = f"the token endpoint of {shown(self._authority.issuer)}"
        if url is None:
            raise AuthorizationFailed(
                f"the authorization server {shown(self._authority.issuer)} has no token endpoint"
            )
        form["resource"] = self._authority.resource
        if scopes:
            form["scope"] = " ".join(scopes)
        reply = yield from self._send(url, form)
        asked_for_nonce = _error_code(reply) == "use_dpop_nonce"
        if self._prover is not None:
            fresh = self._prover.keep_nonce(url, reply.header("dpop-nonce"))
            if asked_for_nonce and fresh:
                reply = yield from self._send(url, form)
                self._prover.keep_nonce(url, reply.header("dpop-nonce"))
        answer = _token_in(reply, form, self._identity, server)
        kind = answer.token_type.lower()
        if kind != "bearer" and not (kind == "dpop" and self._prover is not None):
            raise AuthorizationFailed(f"{server} gave a token of a type that is not known here")
        return answer

    def _send(self, url: str, form: Form) -> Flow[HttpReply]:
        """One request, with a client assertion and a proof of its own."""
        sent = dict(form)
        headers = (
            self._assert(sent)
            if self._identity.method == "private_key_jwt"
            else _authenticate(self._identity, sent)
        )
        if self._prover is not None:
            headers.append(("dpop", self._prover.proof("POST", url)))
        return (yield from _fetch(url, headers, sent))

    def _assert(self, form: Form) -> list[tuple[str, str]]:
        """Sign that we are who we say (RFC 7523). The audience is the issuer, so that nobody else can use it."""
        assert self._profile.private_key is not None
        client_id, now = self._identity.client_id, int(self._wall_time())
        claims = {
            "iss": client_id,
            "sub": client_id,
            "aud": self._authority.issuer,
            "jti": base64url(self._entropy(16)),
            "iat": now,
            "exp": now + _ASSERTION_LIFE,
        }
        try:
            key = private_key(self._profile.private_key.reveal())
            algorithm = self._profile.signing_algorithm or key.algorithms[0]
            signed = sign({"alg": algorithm, "typ": "JWT"}, encode(claims), key)
        except (BadKey, ImportError) as exc:
            raise AuthorizationFailed(f"private_key of the profile cannot be used: {exc}") from exc
        form |= {
            "client_id": client_id,
            "client_assertion_type": _ASSERTION_TYPE,
            "client_assertion": Secret(signed),
        }
        return []


def told_by(ask: Callable[[], str], name: str) -> str:
    """What a function of the user's gives, `name` in his profile.

    Raises:
        AuthorizationFailed: it gives nothing.
    """
    try:
        text: object = ask()
    except Exception as exc:
        raise AuthorizationFailed(f"{name} of the profile's grant failed ({type(exc).__name__})") from exc
    if not isinstance(text, str) or not text:
        raise AuthorizationFailed(f"{name} of the profile's grant gave no text")
    return text


def _authenticate(identity: Identity, form: Form) -> list[tuple[str, str]]:
    """Show who we are: in `form`, or by the headers that are returned."""
    form["client_id"] = (
        identity.client_id
    )  # beside Basic it says nothing new, but the official Python SDK insists on it
    if identity.secret is None:
        return []
    if identity.method == "client_secret_post":
        form["client_secret"] = identity.secret
        return []
    # Each half is encoded by itself (RFC 6749 section 2.3.1), so that a colon in it does no harm. A space is %20, which is right too, and
    # which servers read that know no plus sign for it: authlib, the official Python SDK.
    pair = f"{quote(identity.client_id, safe='')}:{quote(identity.secret.reveal(), safe='')}"
    return [("authorization", f"Basic {b64encode(pair.encode()).decode()}")]


def _fetch(url: str, headers: list[tuple[str, str]], form: Form) -> Flow[HttpReply]:
    body = urlencode(
        {name: value if isinstance(value, str) else value.reveal() for name, value in form.items()}
    )
    headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("accept", "application/json"),
        *headers,
    ]
    try:
        reply: HttpReply = yield Fetch(HttpRequest("POST", url, headers, body.encode()))
    except FetchFailed as exc:
        raise AuthorizationFailed(f"no answer from the token endpoint {shown(url)}: {exc.reason}") from exc
    return reply


def _token_in(reply: HttpReply, form: Form, identity: Identity, server: str) -> TokenReply:
    secrets = [value for value in (*form.values(), identity.secret) if isinstance(value, Secret)]
    error = read_error(reply.body, secrets) if reply.status < 500 else None
    if reply.status == 200 and error is None:
        return read_token(reply.body)
    if error is None:
        raise AuthorizationFailed(
            f"{server} answered {reply.status}. Try again later, or tell its administrator."
        )
    detail = f" ({error.error_description})" if error.error_description else ""
    cure = _CURES.get(error.error, "Tell its administrator.")
    raise AuthorizationFailed(f"{server} gave no token: {error.error}{detail}. {cure}", error=error.error)


def _error_code(reply: HttpReply) -> str | None:
    error = read_error(reply.body) if reply.status != 200 else None
    return error.error if error is not None else None
