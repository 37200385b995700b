"""The way of the user through the browser: the request it carries there, and what it may bring back.

Rules of this file:

1. Before the browser is opened, what the answer has to match is written down in one record: issuer, state, verifier, redirect
   URI, resource. The record is used for one answer and then forgotten, so that a callback counts once.
2. An answer is judged in this order: is it ours (`state`), does it come from the right server (`iss`, as strings, without any
   normalisation), and only then is a code or an error looked at. Of an answer that fails one of the first two nothing is shown.
3. What stands twice in an answer is not trusted to mean either. Nor is it in a request: what a login asks for is ours to say, not the
   query of the endpoint's.

Sources: 2026-07-28 basic/authorization (Authorization Response Validation), RFC 6749 sections 4.1.1 and 4.1.2, RFC 7636, RFC 8707,
RFC 9207 section 2.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ._errors import AuthorizationFailed
from ._metadata import error_of
from ._pkce import challenge_of, new_secret
from ._secret import Opaque, Secret
from ._urls import check_url, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._discovery import Authority
    from ._steps import Browse

__all__ = ["Pending", "answers", "authorization_url", "code_in", "new_pending"]

_MAX_CALLBACK: Final = 16_384
_MAX_FIELDS: Final = 50
# What else would change the meaning of a request (RFC 6749, RFC 9101, OAuth 2.0 Multiple Response Type Encoding Practices).
_OURS: Final = frozenset({"scope", "request", "request_uri", "response_mode"})
# How the user said no, or the server for him.
_TEXTS: Final = {
    "access_denied": "the login was refused, by the user or by the authorization server",
    "invalid_scope": "the authorization server does not know, or does not give, a scope that was asked for",
    "unauthorized_client": "the authorization server does not let this client log users in",
    "temporarily_unavailable": "the authorization server is overloaded; try again later",
}


class Pending(Opaque, frozen=True):
    """An authorization request that is under way, and what its answer has to match."""

    issuer: str
    state: Secret
    verifier: Secret
    redirect_uri: str
    resource: str


def new_pending(authority: Authority, redirect_uri: str, entropy: Callable[[int], bytes]) -> Pending:
    """The record of a new request.

    Raises:
        AuthorizationFailed: the authorization server says nothing of PKCE with S256, so that codes would be unprotected.
    """
    if "S256" not in (authority.server.code_challenge_methods_supported or ()):
        raise AuthorizationFailed(
            f"the authorization server {shown(authority.issuer)} does not say that it supports PKCE with S256 "
            "(code_challenge_methods_supported), without which a code could be stolen. Its administrator has to turn it on."
        )
    return Pending(
        authority.issuer, new_secret(entropy), new_secret(entropy), redirect_uri, authority.resource
    )


def authorization_url(
    authority: Authority, pending: Pending, client_id: str, scopes: Sequence[str], *, local: bool
) -> str:
    """Where the browser has to go.

    Raises:
        AuthorizationFailed: the authorization server has no such place, or none that may be used.
    """
    endpoint = authority.server.authorization_endpoint
    if endpoint is None:
        raise AuthorizationFailed(
            f"the authorization server {shown(authority.issuer)} lets nobody log in by a browser"
        )
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": pending.redirect_uri,
        "state": pending.state.reveal(),
        "code_challenge": challenge_of(pending.verifier),
        "code_challenge_method": "S256",
        "resource": pending.resource,
    }
    if scopes:
        query["scope"] = " ".join(scopes)
    if "offline_access" in scopes:
        query["prompt"] = "consent"  # OpenID Connect ignores the scope without it
    there = {name for name, _ in parse_qsl(urlsplit(endpoint).query, keep_blank_values=True)}
    doubled = there & (query.keys() | _OURS)
    if doubled:
        raise AuthorizationFailed(
            f"the authorization_endpoint of {shown(authority.issuer)} says by itself what a login has to say "
            f"({', '.join(sorted(doubled))}): somebody else could be logged in. It is not used; tell who runs the server."
        )
    url = f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query, quote_via=quote)}"
    return check_url(url, "the authorization_endpoint of the authorization server", local=local)


def answers(browse: Browse, callback: str) -> bool:
    """Whether a request to the redirect URI is the answer to `browse`. A listener drops what is not and goes on listening: other
    programs and pages can reach it too."""
    try:
        sent, given = (_single(_fields(_query(url)), "state") for url in (browse.url, callback))
    except AuthorizationFailed:
        return False
    return sent is not None and given is not None and Secret(sent) == Secret(given)


def code_in(callback: str, pending: Pending, *, iss_promised: bool) -> Secret:
    """The code in the URL to which the browser was sent back. `iss_promised`: the server said that it always sends `iss`.

    Raises:
        AuthorizationFailed: there is none, or it cannot be trusted.
    """
    fields = _fields(_query(callback))
    state = _single(fields, "state")
    if state is None or Secret(state) != pending.state:
        raise AuthorizationFailed(
            "the browser came back with the answer to another login (state does not match). Log in again."
        )
    issuer = _single(fields, "iss")
    if issuer is None and iss_promised:
        raise AuthorizationFailed(
            f"the answer does not say which authorization server it is from, as {shown(pending.issuer)} promises (iss is "
            "missing). It is not used: it may come from another one."
        )
    if issuer is not None and issuer != pending.issuer:
        raise AuthorizationFailed(
            f"the answer comes from another authorization server than {shown(pending.issuer)} (iss does not match). It is not "
            "used: somebody may have tried to get at the code."
        )
    error = _single(fields, "error")
    if error is not None:
        raise _refusal(error, _single(fields, "error_description"))
    code = _single(fields, "code")
    if not code:
        raise AuthorizationFailed("the browser came back without a code and without an error. Log in again.")
    return Secret(code)


def _refusal(error: str, description: str | None) -> AuthorizationFailed:
    known = error_of(error, description)
    if known is None:
        return AuthorizationFailed(
            "the authorization server refused the login with an error that cannot be read"
        )
    text = _TEXTS.get(known.error, "the authorization server refused the login")
    detail = f" ({known.error_description})" if known.error_description else ""
    return AuthorizationFailed(f"{text}: {known.error}{detail}", error=known.error)


def _query(url: str) -> str:
    if len(url) > _MAX_CALLBACK:
        raise AuthorizationFailed(f"the browser came back with a URL of more than {_MAX_CALLBACK} characters")
    try:
        if url.isascii():
            return urlsplit(url).query
    except ValueError:
        pass
    raise AuthorizationFailed("the browser came back with something that is no URL")


def _fields(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise AuthorizationFailed("the browser came back with more parameters than any answer has") from None


def _single(fields: list[tuple[str, str]], name: str) -> str | None:
    found = [value for key, value in fields if key == name]
    if len(found) > 1:
        raise AuthorizationFailed(
            f"the browser came back with {name} twice, which no honest answer has. Log in again."
        )
    return found[0] if found else None
