"""The resource server of OAuth 2.1: it authorizes requests and challenges rejected ones.

1. Tokens are verified here, by a verifier. All else is in the base class.
2. Beside the responses there: too many DPoP proofs, 429; a check that could not be completed, 503.
3. No text contains a part of a token, not even an exception of a verifier.

Sources: 2026-07-28 basic/authorization; RFC 9449, 9728.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable
from inspect import isawaitable
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_core.auth._jose import ASYMMETRIC, InvalidToken, require_joserfc
from mcp_core.auth._resource_urls import canonical_resource, resource_metadata_urls
from mcp_core.auth._secret import MIN_SECRET_LENGTH
from mcp_core.auth._steps import Step
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.urls._addresses import find_url_error
from mcp_core.urls._url import DEFAULT_PORTS

from ._dpop_replay import TooManyProofs
from ._dpop_verifier import DpopNonceRequired, DpopVerifier, InvalidDpopProof
from ._grant import Grant, TokenVerifier, VerifierFunction, VerifierUnavailable
from ._protected_resource import (
    DPOP,
    EXPIRED,
    AuthDenial,
    AuthFlow,
    Await,
    Headers,
    PresentedCredentials,
    ProtectedResource,
    printable,
)
from ._scopes import Scopes, checked_list, checked_scopes

__all__ = ["OAuthResourceServer"]

_RETRY_AFTER: Final = (b"retry-after", b"5")


class OAuthResourceServer(ProtectedResource):
    """The authorization of an MCP server: which tokens are valid, and what they permit.

    Pass it to the HTTP server (`auth=`). `mcp_core.http` calls `admit` for each request, `check`
    for each message in it, and serves `metadata()` at `metadata_paths` without authorization.

    Tokens are never passed on: not even a `Grant` has one. For requests to other servers, an MCP
    server needs tokens of its own.

    Args:
        resource: the MCP server's URI as clients know it, in front of any proxy. It is the audience
            of its tokens.
        authorization_servers: the issuers whose tokens are accepted, as `verifier` knows them.
        verifier: a `JwtVerifier`, an `IntrospectionVerifier`, or a function, `async` or not, from a
            token to a `Grant` or None. Such a function is responsible for everything: signature,
            expiry, and that the token is for this server.
        scopes: the scopes that every request needs.
        tool_scopes: further scopes by a tool's name: a mapping or a function. The function is
            also called with names that clients invent.
        resource_scopes: further scopes to read or subscribe to a resource, by its URI or by its URI
            template: a mapping or a function. A resource needs the scopes of each entry whose URI
            or template matches, and a template's completions need the template's scopes. The
            function gets the URI as the client wrote it, in any encoding, or the template.
        prompt_scopes: further scopes to get a prompt and its completions, by name: a mapping or a
            function.
        method_scopes: further scopes by method, such as `"acme/reindex"` or `"tools/list"`: a
            mapping or a function. The function is called with each method, also of notifications.
        satisfies: returns True if the scopes of a token include another scope, for scopes that
            imply others. Default: a scope must be listed.
        scopes_supported: the scopes in the metadata, by default `scopes`. Clients without other
            information request all of them.
        resource_name: the server's name for people.
        dpop: accept tokens that are bound to keys (RFC 9449), beside unbound ones. A proof is
            accepted once in each process.
        nonce_key: require a nonce in each proof. 32 bytes or more, the same in all processes of
            this server. A nonce is accepted for at most ten minutes.

    Raises:
        ValueError: `resource` or an issuer isn't a usable URL, or not in canonical form; or a
            scope is invalid.
        ImportError: `dpop` without joserfc: pip install 'mcp-trio[auth]'.
    """

    def __init__(
        self,
        resource: str,
        authorization_servers: Iterable[str],
        verifier: TokenVerifier | VerifierFunction,
        *,
        scopes: Iterable[str] = (),
        tool_scopes: Scopes | None = None,
        resource_scopes: Scopes | None = None,
        prompt_scopes: Scopes | None = None,
        method_scopes: Scopes | None = None,
        satisfies: Callable[[frozenset[str], str], bool] | None = None,
        scopes_supported: Iterable[str] | None = None,
        resource_name: str | None = None,
        dpop: bool = False,
        nonce_key: bytes | None = None,
    ) -> None:
        super().__init__(
            scopes=scopes,
            tool_scopes=tool_scopes,
            resource_scopes=resource_scopes,
            prompt_scopes=prompt_scopes,
            method_scopes=method_scopes,
            satisfies=satisfies,
        )
        self.resource = _checked_resource(resource)
        self._issuers = [_checked_issuer(issuer) for issuer in checked_list(authorization_servers)]
        if not self._issuers:
            raise ValueError("authorization_servers must name at least one issuer")
        self._verifier = verifier
        self.fetches = getattr(verifier, "fetches", False)
        self._scopes_supported = (
            self._required.always if scopes_supported is None else checked_scopes(scopes_supported)
        )
        self._resource_name = resource_name
        self._dpop_verifier: DpopVerifier | None = None
        if dpop:
            require_joserfc()
            self._dpop_verifier = DpopVerifier(nonce_key)
            self.credential_headers = ("dpop",)
            self._schemes[DPOP] = {"algs": " ".join(sorted(ASYMMETRIC))}
        elif nonce_key is not None:
            raise ValueError("nonce_key needs dpop=True")
        urls = resource_metadata_urls(self.resource)
        self._challenge_parameters["resource_metadata"] = urls[0]
        self.metadata_paths = tuple(urlsplit(url).path for url in urls)

    def __repr__(self) -> str:
        return f"<OAuthResourceServer of {self.resource}: {self._verifier!r}>"

    # -- Public metadata ---------------------------------------------------------------------------

    def metadata(self) -> bytes:
        """Return the protected resource metadata (RFC 9728) as JSON.

        Serve it at each of `metadata_paths`: the first one belongs to this resource, the root one
        only if no other resource claims it.
        """
        document: dict[str, Any] = {
            "resource": self.resource,
            "authorization_servers": self._issuers,
            "bearer_methods_supported": ["header"],
        }
        if self._scopes_supported:
            document["scopes_supported"] = list(self._scopes_supported)
        if self._resource_name is not None:
            document["resource_name"] = self._resource_name
        if self._dpop_verifier is not None:
            document["dpop_signing_alg_values_supported"] = sorted(ASYMMETRIC)
        return encode(document)

    # -- The head of a request ---------------------------------------------------------------------

    def admit(self, method: bytes, target: bytes, headers: Headers, now: float) -> AuthFlow:
        """Authorize a request's head. Return its token's grant, or a denial.

        This is a flow, which usually ends without a step. An exception from the application's
        verifier, other than `InvalidToken` and `VerifierUnavailable`, passes through: the request
        must then be denied.

        Scopes are checked here too, except for a POST: for its messages call `check`.

        Args:
            method: the request's method, such as `b"POST"`.
            target: path and query, as in the request's first line.
            headers: its headers, as pairs of name and value.
            now: the time in seconds since 1970.
        """
        credentials = self.read_credentials(headers)
        if isinstance(credentials, AuthDenial):
            return credentials
        try:
            grant = yield from self._verify_token(credentials.token.reveal(), now)
            self._check_binding(credentials, grant, method, target, now)
        except DpopNonceRequired as exc:
            denial = self._deny(401, "use_dpop_nonce", str(exc), scheme=DPOP)
            assert self._dpop_verifier is not None
            nonce = self._dpop_verifier.nonce(now) or ""
            denial.headers.append((b"dpop-nonce", nonce.encode()))
            return denial
        except InvalidDpopProof as exc:
            return self._deny(401, "invalid_dpop_proof", str(exc), scheme=DPOP)
        except InvalidToken as exc:
            return self._refuse(str(exc), credentials.scheme)
        except TooManyProofs as exc:
            message = "too many DPoP proofs were used; try again later with a new one"
            return AuthDenial(429, message, [_RETRY_AFTER], printable(str(exc)))
        except VerifierUnavailable as exc:
            message = "the token cannot be verified now; try again later"
            retry_after = (b"retry-after", b"%d" % max(1, math.ceil(exc.retry_after)))
            return AuthDenial(503, message, [retry_after], printable(str(exc)))
        if method != b"POST":
            scope_denial = self.check(grant)
            if scope_denial is not None:
                return scope_denial
        return grant

    def _verify_token(self, token: str, now: float) -> Generator[Step | Await, Any, Grant]:
        """Verify a token. Keep it out of exceptions from the application's verifier."""
        try:
            grant = yield from self._run_verifier(token, now)
        except (Exception, SystemExit) as exc:
            if len(token) < MIN_SECRET_LENGTH or not _reveals(token, exc):
                raise
            # A verifier such as `TOKENS[token]` raises a KeyError that contains the token.
            kind: type[Exception] = RuntimeError
            if isinstance(exc, InvalidToken):
                kind = InvalidToken
            elif isinstance(exc, VerifierUnavailable):
                kind = VerifierUnavailable
            problem = (
                f"the verifier raised {type(exc).__name__}, whose text is left out: the token is "
                "in it"
            )
            raise kind(problem).with_traceback(exc.__traceback__) from None
        if not isinstance(grant, Grant):
            raise TypeError("a verifier must return a Grant or None")
        return grant

    def _run_verifier(self, token: str, now: float) -> Generator[Step | Await, Any, Grant]:
        """Run the verifier: an object with `verify`, or a function."""
        verify = getattr(self._verifier, "verify", None)
        if verify is not None:
            grant: Grant = yield from verify(token, now)
            return grant
        assert callable(self._verifier)
        found = self._verifier(token)
        if isawaitable(found):
            found = yield Await(found)
        if found is None:
            raise InvalidToken("the token is not accepted here")
        # The other verifiers have checked the expiry. A function may leave it to us.
        if isinstance(found, Grant) and found.valid_until is not None and now >= found.valid_until:
            raise InvalidToken(EXPIRED)
        return found

    def _check_binding(
        self,
        credentials: PresentedCredentials,
        grant: Grant,
        method: bytes,
        target: bytes,
        now: float,
    ) -> None:
        """Raise `InvalidToken` unless token, scheme and proof fit together."""
        if grant.jkt is None:
            if credentials.scheme == DPOP:
                raise InvalidToken("the token is not bound to a key: send it as Bearer")
            return
        if self._dpop_verifier is None:
            raise InvalidToken("the token is bound to a key, which this server does not support")
        if credentials.proof is None:
            raise InvalidToken("the token is bound to a key: send it as DPoP, with a proof")
        # The resource's public URI may lack the path at which it is served here.
        parts = urlsplit(self.resource)
        served_at = f"{parts.scheme}://{parts.netloc}{target.decode('latin-1')}"
        self._dpop_verifier.verify(
            credentials.proof.reveal(),
            method=method.decode("latin-1"),
            urls=(self.resource, served_at),
            token=credentials.token.reveal(),
            thumbprint=grant.jkt,
            principal=grant.principal,
            now=now,
        )


def _reveals(text: str, exc: BaseException) -> bool:
    """Return True if a log of `exc`, with its causes, notes and members, would show `text`."""
    pending: list[BaseException | None] = [exc]
    seen: set[int] = set()
    while pending:
        each = pending.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if text in f"{each} {each!r} {getattr(each, '__notes__', '')}":
            return True
        pending += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    return False


def _checked_resource(resource: str) -> str:
    """Return `resource`. Raise `ValueError` unless it is a canonical resource URI."""
    fault = find_url_error(resource, allow_loopback=True)
    if fault is not None:
        raise ValueError(f"resource {fault}: {resource!r}")
    parts = urlsplit(resource)
    if "?" in resource:
        raise ValueError(f"resource has a query: {resource!r}")
    if parts.port == DEFAULT_PORTS[parts.scheme]:
        raise ValueError(f"resource has the default port of its scheme: {resource!r}")
    canonical = canonical_resource(resource)
    if canonical != resource:
        raise ValueError(f"resource is not in its canonical form: write {canonical!r}")
    return resource


def _checked_issuer(issuer: str) -> str:
    """Return `issuer`. Raise `ValueError` unless it is a usable issuer URL."""
    fault = "has a query" if "?" in issuer else find_url_error(issuer, allow_loopback=True)
    if fault is not None:
        raise ValueError(f"an authorization server {fault}: {issuer!r}")
    return issuer
