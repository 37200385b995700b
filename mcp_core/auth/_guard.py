"""Who may enter a server, and what it says to who may not: the resource server of OAuth 2.1, without a byte of HTTP.

Rules of this file:

1. A request is judged by its head (`admit`): there is a token, exactly one, in `Authorization`, and it is good. Nothing of a
   query or a body is ever taken for a token.
2. And each of its messages is judged again when it is read (`check`), for only then it is known what is asked: whether the grant
   has all scopes that this takes. If not, all of them are named at once, so that the client need not come back for each.
3. No credentials are answered without an error, bad ones with `invalid_token` (401), too few scopes with `insufficient_scope`
   (403), what is no request for anything with `invalid_request` (400); and what cannot be told now with 503.
4. Nothing that a client or a function of the user says can leave the quotes of a challenge. A refusal tells one sentence, the
   same to the client and to the log but for 503, and nothing of a token is in it, nor in what a verifier raises.
5. A token is not handed on: not even a `Grant` has it. What a server asks of others it asks with tokens of its own.

It knows neither sessions nor what tools there are. 2026-07-28 basic/authorization; RFC 6750, 9449, 9728.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from inspect import isawaitable
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from mcp_core._jsonrpc import encode
from mcp_core.urls import DEFAULT_PORTS, url_fault

from ._grant import Grant, Verifier, VerifierFunction, VerifierUnavailable
from ._jose import ASYMMETRIC, MAX_TOKEN, BadToken, require
from ._proof import BadProof, NonceWanted, Proofs
from ._secret import Opaque, Secret
from ._steps import Step
from ._urls import canonical_resource, resource_metadata_urls

__all__ = ["Admission", "Await", "Guard", "Presented", "Refusal", "Scopes"]

Headers: TypeAlias = list[tuple[bytes, bytes]]
# Of a tool or a resource: what scopes it takes, by its name or URI.
Scopes: TypeAlias = Mapping[str, Iterable[str]] | Callable[[str], Iterable[str]]

_BEARER: Final = "Bearer"
_DPOP: Final = "DPoP"
_TOKEN: Final = re.compile(rb"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750, 2.1: b64token
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749, 3.3: scope-token
_UNSPEAKABLE: Final = re.compile(r"[^\x20\x21\x23-\x5b\x5d-\x7e]")  # RFC 6750, 3: in error_description
_EXPIRED: Final = "the token has expired"
_RETRY_AFTER: Final = (b"retry-after", b"5")
_SHORTEST_SECRET: Final = 6  # characters; what is shorter stands in any text


class Refusal(Struct, frozen=True):
    """How a request is turned down: `message` is for the client, `reason` for the log. The names of `headers` are in lower case."""

    status: int
    message: str
    headers: Headers
    reason: str


class Presented(Opaque, frozen=True):
    """What a request shows: a token, as Bearer or DPoP, and with the latter a proof."""

    token: Secret
    scheme: str = _BEARER
    proof: Secret | None = None


class Await(Struct, frozen=True):
    """A step of `Guard.admit`: await what the user's own verifier gave, and send in its result, or throw in what it raises."""

    awaitable: Awaitable[Grant | None]


Admission: TypeAlias = Generator[Step | Await, Any, Grant | Refusal]


class Guard:
    """What protects a server: which tokens are good, and what they are good for.

    Give it to the server of HTTP (`auth=`). `mcp_core.http` calls `admit` for each request, `check` for each of its messages, and
    serves `metadata()` at `metadata_paths`, to everybody.

    Args:
        resource: the URI of the MCP server as clients know it, behind whatever stands before it; the audience of its tokens.
        authorization_servers: the issuers whose tokens are good, as `verifier` knows them.
        verifier: a `JwtVerifier`, an `IntrospectionVerifier`, or any function, `async` or not, from a token to a `Grant` or None.
            Such a function answers for everything: signature, expiry, and that the token is for this server and no other.
        scopes: what every request takes.
        tool_scopes: what further scopes a tool takes, by its name: a mapping, or a function, which is asked about names that clients
            make up, too.
        resource_scopes: the same for resources that are read or subscribed to, by URI. A mapping is for resources that were declared
            by their URI. For those of a template give a function: it gets the URI as the client wrote it, in any of its spellings.
        satisfies: whether the scopes of a token include another one, for scopes that stand above others. Without it only those
            that are there by name count.
        scopes_supported: what the metadata lists; else it is `scopes`. Clients that are told nothing better ask for all of them.
        resource_name: what people may call the server.
        dpop: whether tokens may be bound to keys (RFC 9449). Those that are not stay good. A proof is good once in each process.
        nonce_key: 32 bytes or more, known to all processes of this server: proofs then need a nonce, which has to be made for them
            within ten minutes.

    Raises:
        ValueError: `resource` or an issuer is no URL to use, or not in its canonical form; or a scope is none.
        ImportError: `dpop` without joserfc: pip install 'mcp-trio[auth]'.
    """

    def __init__(
        self,
        resource: str,
        authorization_servers: Iterable[str],
        verifier: Verifier | VerifierFunction,
        *,
        scopes: Iterable[str] = (),
        tool_scopes: Scopes | None = None,
        resource_scopes: Scopes | None = None,
        satisfies: Callable[[frozenset[str], str], bool] | None = None,
        scopes_supported: Iterable[str] | None = None,
        resource_name: str | None = None,
        dpop: bool = False,
        nonce_key: bytes | None = None,
    ) -> None:
        self.resource = _checked_resource(resource)
        self._issuers = [_checked_issuer(issuer) for issuer in _several(authorization_servers)]
        if not self._issuers:
            raise ValueError("authorization_servers names no issuer whose tokens are good")
        self._verifier = verifier
        self._scopes = _checked_scopes(scopes)
        self._tools = _lookup(tool_scopes, str)
        # The registry reads `%73` as `s` where a template wants it; so the two are one resource here.
        self._resources = _lookup(resource_scopes, unquote)
        self._satisfies = satisfies or _is_among
        self._supported = self._scopes if scopes_supported is None else _checked_scopes(scopes_supported)
        self._resource_name = resource_name
        self._proofs: Proofs | None = None
        if dpop:
            require()
            self._proofs = Proofs(nonce_key)
        elif nonce_key is not None:
            raise ValueError("nonce_key goes with dpop=True")
        urls = resource_metadata_urls(self.resource)
        self._metadata_url = urls[0]
        self.metadata_paths = tuple(urlsplit(url).path for url in urls)

    def __repr__(self) -> str:
        return f"<Guard of {self.resource}: {self._verifier!r}>"

    # -- What is public ------------------------------------------------------------------------------------------------

    def metadata(self) -> bytes:
        """The document of RFC 9728, as JSON, for all of `metadata_paths`: its own place, and the root, if nobody else's belongs there."""
        document: dict[str, Any] = {
            "resource": self.resource,
            "authorization_servers": self._issuers,
            "bearer_methods_supported": ["header"],
        }
        if self._supported:
            document["scopes_supported"] = list(self._supported)
        if self._resource_name is not None:
            document["resource_name"] = self._resource_name
        if self._proofs is not None:
            document["dpop_signing_alg_values_supported"] = sorted(ASYMMETRIC)
        return encode(document)

    def challenge(
        self,
        error: str | None = None,
        description: str | None = None,
        scopes: Iterable[str] | None = None,
        *,
        scheme: str = _BEARER,
    ) -> Headers:
        """The `WWW-Authenticate` headers of a refusal: one for Bearer and, where tokens may be bound, one for DPoP. The error is that
        of `scheme`, and `scopes` are those of what was asked for; None: of every request."""
        wanted = self._scopes if scopes is None else scopes
        common = {
            "scope": " ".join(scope for scope in wanted if _is_asked_for(scope)),
            "resource_metadata": self._metadata_url,
        }
        problem = {"error": error or "", "error_description": description or ""}
        offered = {_BEARER: {}, _DPOP: {"algs": " ".join(sorted(ASYMMETRIC))}}
        if self._proofs is None:
            del offered[_DPOP]
        headers = []
        for name, own in offered.items():
            parameters = (problem if name == scheme else {}) | common | own
            text = ", ".join(f'{key}="{_quotable(value)}"' for key, value in parameters.items() if value)
            headers.append((b"www-authenticate", f"{name} {text}".encode()))
        return headers

    # -- The head of a request -----------------------------------------------------------------------------------------

    def admit(self, method: bytes, target: bytes, headers: Headers, now: float) -> Admission:
        """Judge a request by its head; gives the grant of its token, or how it is refused.

        A flow: most often it ends at once, without a step. What a user's own verifier raises, other than `BadToken` and
        `VerifierUnavailable`, passes through: nobody was admitted. `now` is in seconds since 1970.

        Scopes are judged here unless the method is POST: then by `check`, for every message.
        """
        presented = self.token_of(headers)
        if isinstance(presented, Refusal):
            return presented
        try:
            grant = yield from self._verified(presented.token.reveal(), now)
            self._check_binding(presented, grant, method, target, now)
        except NonceWanted as exc:
            refusal = self._refused(401, "use_dpop_nonce", str(exc), scheme=_DPOP)
            assert self._proofs is not None
            nonce = self._proofs.nonce(now) or ""
            refusal.headers.append((b"dpop-nonce", nonce.encode()))
            return refusal
        except BadProof as exc:
            return self._refused(401, "invalid_dpop_proof", str(exc), scheme=_DPOP)
        except BadToken as exc:
            return self._refused(401, "invalid_token", str(exc), scheme=presented.scheme)
        except VerifierUnavailable as exc:
            message = "whether the token is good cannot be told now; try again later"
            return Refusal(503, message, [_RETRY_AFTER], _on_one_line(str(exc)))
        if method != b"POST":
            refused = self.check(grant)
            if refused is not None:
                return refused
        return grant

    def token_of(self, headers: Headers) -> Presented | Refusal:
        """The token of a request, unverified. It is nowhere but in `Authorization`, which stands once."""
        values = [value.strip(b" \t") for name, value in headers if name.lower() == b"authorization"]
        if len(values) > 1:
            return self._refused(400, "invalid_request", "there is more than one Authorization header")
        word, _, rest = (values[0] if values else b"").partition(b" ")
        scheme = {b"bearer": _BEARER, b"dpop": _DPOP if self._proofs is not None else None}.get(word.lower())
        if scheme is None:
            # A client that has nothing, or nothing for us, did nothing wrong so far (RFC 6750, 3.1).
            return self._refused(401, None, "an access token is needed, in an Authorization header")
        token = rest.lstrip(b" ")
        if len(token) > MAX_TOKEN:
            problem = f"the token is longer than {MAX_TOKEN} characters"
            return self._refused(401, "invalid_token", problem, scheme=scheme)
        if not _TOKEN.fullmatch(token):
            problem = "the Authorization header has no token after its scheme, or more than that"
            return self._refused(400, "invalid_request", problem, scheme=scheme)
        proof = None
        if scheme == _DPOP:
            proofs = [value.strip(b" \t") for name, value in headers if name.lower() == b"dpop"]
            if len(proofs) != 1:
                problem = "a DPoP header with a proof has to come along, once"
                return self._refused(401, "invalid_dpop_proof", problem, scheme=scheme)
            proof = Secret(proofs[0].decode("latin-1"))
        return Presented(Secret(token.decode()), scheme, proof)

    def _verified(self, token: str, now: float) -> Generator[Step | Await, Any, Grant]:
        try:
            grant = yield from self._judged(token, now)
        except (Exception, SystemExit) as exc:
            if len(token) < _SHORTEST_SECRET or not _is_told(token, exc):
                raise
            # `TOKENS[token]` is soon written, and says of a wrong one: KeyError, and which.
            kind = next(
                (kind for kind in (BadToken, VerifierUnavailable) if isinstance(exc, kind)), RuntimeError
            )
            problem = f"the verifier raised {type(exc).__name__}, whose text is left out: the token is in it"
            raise kind(problem).with_traceback(exc.__traceback__) from None
        if not isinstance(grant, Grant):
            raise TypeError("a verifier gives a Grant, or None")
        return grant

    def _judged(self, token: str, now: float) -> Generator[Step | Await, Any, Grant]:
        verify = getattr(self._verifier, "verify", None)
        if verify is not None:
            grant: Grant = yield from verify(token, now)
            return grant
        assert callable(self._verifier)
        found = self._verifier(token)
        if isawaitable(found):
            found = yield Await(found)
        if found is None:
            raise BadToken("the token is not good here")
        if isinstance(found, Grant) and found.good_until is not None and now >= found.good_until:
            raise BadToken(_EXPIRED)
        return found

    def _check_binding(
        self, presented: Presented, grant: Grant, method: bytes, target: bytes, now: float
    ) -> None:
        if grant.jkt is None:
            if presented.scheme == _DPOP:
                raise BadToken("the token is not bound to a key: send it as Bearer")
            return
        if self._proofs is None:
            raise BadToken("the token is bound to a key, and this server does not know such tokens")
        if presented.proof is None:
            raise BadToken("the token is bound to a key: send it as DPoP, with a proof")
        # The resource may be named without the path at which it is served.
        parts = urlsplit(self.resource)
        here = f"{parts.scheme}://{parts.netloc}{target.decode('latin-1')}"
        self._proofs.check(
            presented.proof.reveal(),
            method=method.decode("latin-1"),
            urls=(self.resource, here),
            token=presented.token.reveal(),
            jkt=grant.jkt,
            now=now,
        )

    # -- What is asked -------------------------------------------------------------------------------------------------

    def check(
        self, grant: Grant, method: str | None = None, params: Any = None, now: float | None = None
    ) -> Refusal | None:
        """Whether `grant` has the scopes for one message: a request `method` with its decoded `params`. Without them, for what takes no
        more than every request does: notifications, responses, a stream. With `now`, in seconds since 1970, also whether it still
        lasts: who was admitted by a head may send the message long after it."""
        scheme = _DPOP if grant.jkt else _BEARER
        if now is not None and grant.good_until is not None and now >= grant.good_until:
            return self._refused(401, "invalid_token", _EXPIRED, scheme=scheme)
        needed = self.scopes_for(method, params)
        missing = [scope for scope in needed if not self._satisfies(grant.scopes, scope)]
        if not missing:
            return None
        description = "the token has not all of the scopes that this takes"
        refused = self._refused(403, "insufficient_scope", description, needed, scheme=scheme)
        return Refusal(
            refused.status, refused.message, refused.headers, f"{description}: {' '.join(missing)!r} missing"
        )

    def scopes_for(self, method: str | None, params: Any = None) -> tuple[str, ...]:
        """All scopes that a request takes, each once."""
        needed = list(self._scopes)
        if method == "tools/call":
            needed += self._tools(params.name)
        elif method in ("resources/read", "resources/subscribe"):
            needed += self._resources(params.uri)
        elif method == "subscriptions/listen":
            for uri in params.notifications.resource_subscriptions or ():
                needed += self._resources(uri)
        return tuple(dict.fromkeys(needed))

    def _refused(
        self,
        status: int,
        error: str | None,
        message: str,
        scopes: Iterable[str] | None = None,
        *,
        scheme: str = _BEARER,
    ) -> Refusal:
        description = None if error is None else message
        challenges = self.challenge(error, description, scopes, scheme=scheme)
        return Refusal(status, message, challenges, _on_one_line(message))


def _is_told(text: str, exc: BaseException) -> bool:
    """Whether a log that shows an exception, with all that led to it, shows `text`."""
    left: list[BaseException | None] = [exc]
    seen: set[int] = set()
    while left:
        each = left.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if text in f"{each} {each!r} {getattr(each, '__notes__', '')}":
            return True
        left += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    return False


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)


def _quotable(text: str) -> str:
    return _UNSPEAKABLE.sub("?", text)


def _is_asked_for(scope: str) -> bool:
    # `offline_access` is between a client and its authorization server (2026-07-28): it makes no operation possible here.
    return _SCOPE.fullmatch(scope) is not None and scope != "offline_access"


def _is_among(granted: frozenset[str], scope: str) -> bool:
    return scope in granted


def _several(values: Iterable[str]) -> Iterable[str]:
    if isinstance(values, str):
        raise ValueError(f"a list of texts is wanted, not one text: [{values!r}]")
    return values


def _checked_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(_several(scopes)))
    for scope in found:
        if not _is_asked_for(scope):
            form = "printable ASCII without spaces, quotes and backslashes, and not offline_access"
            raise ValueError(f"{scope!r} is no scope of a resource: {form}")
    return found


def _lookup(scopes: Scopes | None, canonical: Callable[[str], str]) -> Callable[[str], Iterable[str]]:
    if scopes is None:
        return lambda name: ()
    if isinstance(scopes, Mapping):
        table = {canonical(name): _checked_scopes(needed) for name, needed in scopes.items()}
        return lambda name: table.get(canonical(name), ())
    asked = scopes
    return lambda name: _several(asked(name))


def _checked_resource(resource: str) -> str:
    fault = url_fault(resource, local=True)
    if fault is not None:
        raise ValueError(f"resource {fault}: {resource!r}")
    parts = urlsplit(resource)
    if "?" in resource:
        raise ValueError(f"resource has a query: {resource!r}")
    if parts.port == DEFAULT_PORTS[parts.scheme]:
        raise ValueError(f"resource has the port that goes without saying: {resource!r}")
    canonical = canonical_resource(resource)
    if canonical != resource:
        raise ValueError(f"resource is not in its canonical form: write {canonical!r}")
    return resource


def _checked_issuer(issuer: str) -> str:
    fault = "has a query" if "?" in issuer else url_fault(issuer, local=True)
    if fault is not None:
        raise ValueError(f"an authorization server {fault}: {issuer!r}")
    return issuer
