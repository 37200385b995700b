"""Access to one MCP server: each request's token, and the reaction to a rejected one.

1. Tokens go only to the MCP server's origin, in a header and never in a URL.
2. A rejection starts at most one flow, and flows cannot loop. A token that was rejected before it
   was ever accepted isn't replaced by the same means: after a refresh comes a login, after a login
   an error.
3. A rejection belongs to the state in which its request was sent. If another flow ended since, its
   outcome counts: the request is sent again with the new token, or fails with that flow's
   exception. No second browser is opened.

Sources: 2026-07-28 basic/authorization (Access Token Usage, Refresh Tokens, Scope Challenge
Handling); RFC 6750, RFC 9449.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from mcp_core._errors import AuthRequired, McpTrioError
from mcp_core.auth._errors import AuthorizationFailed
from mcp_core.auth._resource_urls import (
    canonical_resource,
    check_url,
    distinct_redirect_uri,
    is_same_issuer,
    names_host,
    names_server,
    with_port_of,
)
from mcp_core.auth._steps import Flow, ListenForRedirect, Load, Save
from mcp_core.urls._addresses import (
    covers_url,
    is_internal_name,
    is_loopback_host,
    is_loopback_url,
    is_private_address,
    may_fetch,
    origin_of,
)
from mcp_core.urls._url import redacted_url

from ._callback import authorization_url, new_authorization_request, new_secret
from ._challenge import AuthChallenge, parse_auth_challenge
from ._discovery import AuthorizationServer, find_authorization_server
from ._dpop_signer import ALGORITHM, DpopSigner, is_dpop_available, new_seed
from ._profile import ClientProfile, EnterpriseManaged, JwtBearer
from ._registration import (
    ClientIdentity,
    forget_registration,
    identify,
    known_identity,
    load_registration,
)
from ._token_request import TokenEndpointClient, call_user_function
from ._tokens import Tokens, decode_tokens, encode_tokens, tokens_from_response, tokens_key

if TYPE_CHECKING:
    from mcp_core.auth._metadata import TokenResponse
    from mcp_core.auth._secret import Secret


__all__ = ["MAX_STEP_UPS", "AuthAttempt", "Authorizer", "LoginServer"]

K = TypeVar("K")
V = TypeVar("V")

MAX_STEP_UPS: Final = 3  # for one operation
# Operations are named by this side, but after a server's list of tools, which may be endless.
_MAX_OPERATIONS: Final = 256
_MAX_WARNINGS: Final = 16
# Seconds between attempts to renew after a failure. Without a pause, each request would wait for a
# failing renewal in turn.
_RENEW_RETRY_DELAY: Final = 10.0
_MAX_CHALLENGES: Final = 6  # challenges during one attempt
_MAX_CHALLENGE_TEXT: Final = 1000  # characters that an `AuthRequired` quotes
# How the current tokens were obtained.
_TokenSource: TypeAlias = Literal["login", "refresh"]
# Error codes of a failing authorization server. They say nothing about the refresh token.
_SERVER_ERRORS: Final = frozenset({"server_error", "temporarily_unavailable"})


class LoginServer(NamedTuple):
    """Where a user logs in for an MCP server, as the servers' metadata says.

    Args:
        issuer: the authorization server's issuer identifier.
        scopes: the scopes that a login requests, sorted.
        can_register: whether a client can register itself there.
        is_guessed: whether no metadata was found, so that only default endpoints could be tried.
        notes: what was ignored in the metadata, and how it deviates.
    """

    issuer: str
    scopes: tuple[str, ...]
    can_register: bool
    is_guessed: bool
    notes: tuple[str, ...]


class Authorizer:
    """The tokens for the MCP server at `server_url`, obtained as `profile` says.

    How to drive it:

    1. Run the flow `load()` once.
    2. Before a request: if `expires_soon()`, run the flow `renew()`.
    3. For each MCP request call `attempt()`. Send `AuthAttempt.headers()` with each HTTP request
       and pass each response to `AuthAttempt.received()`. If that returns True, run the flow
       `AuthAttempt.handle_challenge()` and send the request again.

    Only one flow of an authorizer may run at a time: the driver holds a lock around each. A flow
    that had to wait for the lock is run all the same; it sees the result of the one before.

    `entropy` returns random bytes that are fit for secrets, `wall_time` seconds since 1970.

    `generation` is incremented whenever the tokens may belong to another user. Discard what was
    cached for the old ones.
    """

    def __init__(
        self,
        server_url: str,
        profile: ClientProfile,
        *,
        entropy: Callable[[int], bytes],
        wall_time: Callable[[], float],
    ) -> None:
        self.generation = 0
        self._url = server_url.partition("#")[0]
        self._resource = canonical_resource(self._url)
        self._allow_loopback = is_loopback_url(self._url)
        self._server_address: str | None = None
        configured = [profile.issuer]
        if isinstance(profile.grant, EnterpriseManaged):
            configured.append(profile.grant.token_endpoint)
        self._configured_origins = frozenset(
            origin_of(each) for each in configured if each is not None
        )
        # As given, and with what the record of the login adds (`_with_settings`).
        self._given_profile = profile
        self._profile = profile
        self._entropy = entropy
        self._wall_time = wall_time
        # The last login's redirect URI. While it stays the same, so does the registration.
        self._redirect_uri = profile.redirect_uri
        self._tokens: Tokens | None = None
        self._auth_server: AuthorizationServer | None = None
        self._dpop_signer: DpopSigner | None = None
        # How the tokens were obtained, until the MCP server accepts them once. Then None.
        self._unconfirmed: _TokenSource | None = None
        # Replaced when a flow ends. An attempt records it when it sends a request (rule 3).
        self._epoch = object()
        self._last_failure: McpTrioError | None = None  # of the last flow; None: it succeeded
        self._step_ups: dict[str, int] = {}  # by operation
        # Sets of scopes that were requested again after a login that did not grant them.
        self._repeated_scopes: dict[frozenset[str], None] = {}
        self._renew_not_before = -math.inf
        self._warnings: list[str] = []

    def __repr__(self) -> str:
        tokens = self._tokens
        state = f"tokens of {redacted_url(tokens.issuer)}" if tokens is not None else "no tokens"
        return f"<Authorizer {redacted_url(self._resource)}: {state}>"

    def set_server_address(self, address: str | None) -> None:
        """Set the IP `address` at which the MCP server was reached.

        None if it is unknown, because a proxy makes the connection.
        """
        self._server_address = address

    def may_fetch(self, url: str, address: str, named_by: str | None = None) -> bool:
        """Return True if a `Fetch` of `url` may connect to `address`, to which its host resolved.

        - A URL in the user's configuration may be at any address: the profile's `issuer`, the
          identity provider.
        - A URL at the MCP server's origin may be at the address at which that server was reached.
          Its DNS could otherwise direct us to another host the next time.
        - A URL that a server named may be at a public address; on loopback if that server is; in a
          private network if that server was reached in one, because it could then fetch the URL
          itself. The server is the MCP server, or with `named_by` (see `Fetch`) that issuer.
        """
        origin = origin_of(url)
        if origin in self._configured_origins:
            return True
        server_address = self._server_address
        allow_private = server_address is not None and is_private_address(server_address)
        if origin == origin_of(self._url):
            if address == server_address:
                return True
            # Unknown, because a proxy connects. It may be a private address.
            allow_private = allow_private or server_address is None
        elif named_by is not None:
            issuer_host = self._host_of_issuer(named_by)
            return may_fetch(
                address,
                allow_loopback=is_loopback_host(issuer_host),
                allow_private=is_private_address(issuer_host),
            )
        return may_fetch(address, allow_loopback=self._allow_loopback, allow_private=allow_private)

    def _host_of_issuer(self, issuer: str) -> str:
        """Return the address that the metadata of `issuer` came from, or the host that it names."""
        auth_server = self._auth_server
        if auth_server is not None and auth_server.issuer == issuer and auth_server.address:
            return auth_server.address
        return urlsplit(issuer).hostname or ""

    def may_fetch_by_proxy(self, url: str, name: str) -> bool:
        """Return True if a `Fetch` of `url` may be sent to a proxy, which resolves its host `name`.

        A name of a private network is allowed under the conditions of `may_fetch`, and if the MCP
        server itself has such a name: its proxy leads into that network anyway.
        """
        origin = origin_of(url)
        if origin in self._configured_origins or origin == origin_of(self._url):
            return True
        if not is_internal_name(name):
            return True
        if self._allow_loopback:
            return False
        server = origin_of(self._url)[1]
        return is_internal_name(server) or is_private_address(self._server_address or server)

    def is_at_server(self, url: str) -> bool:
        """Return True if `url` is at the MCP server's origin.

        Only there may the driver present a client certificate that is meant for that server.
        """
        return origin_of(url) == origin_of(self._url)

    def take_warnings(self) -> list[str]:
        """Return the warnings since the last call, as lines for the log."""
        warnings = self._warnings
        self._warnings = []
        return warnings

    def attempt(self, operation: str = "") -> AuthAttempt:
        """Begin a request to the MCP server, and return it.

        `operation` identifies it in the count of step-ups, for example `tools/call add`.
        """
        return AuthAttempt(self, operation)

    def load(self) -> Flow[None]:
        """Load the stored tokens. Run this flow before all others.

        Tokens that cannot be read or don't fit the profile are ignored, with a warning.
        """
        data: bytes | None = yield Load(tokens_key(self._resource))
        if data is None:
            return
        tokens = decode_tokens(data)
        if tokens is None:
            self._warn(
                "the stored tokens cannot be read and are not used; the next login replaces them"
            )
            return
        problem = self._use(tokens)
        if problem is not None:
            self._warn(f"the stored tokens are not used: {problem}")

    def find_login(self, challenge: str) -> Flow[LoginServer]:
        """Find where a user would log in, up to the login page's URL. No token is requested.

        The client isn't registered either.

        Args:
            challenge: the `WWW-Authenticate` header of the MCP server's 401, "" if it has none.

        Raises:
            AuthorizationFailed: the metadata must not be used, or a login with it would fail.
        """
        parsed = parse_auth_challenge([challenge])
        found = yield from self._discover(parsed)
        request = new_authorization_request(
            found,
            self._redirect_uri,
            self._entropy,
            assume_pkce=self._profile.assume_pkce,
            send_resource=self._profile.send_resource,
        )
        scopes = self._scopes_to_request(parsed, found)
        authorization_url(found, request, "", scopes, allow_loopback=self._allow_loopback)
        return LoginServer(
            issuer=found.issuer,
            scopes=tuple(sorted(scopes)),
            can_register=found.metadata.registration_endpoint is not None,
            is_guessed=found.guessed,
            notes=found.notes,
        )

    def expires_soon(self) -> bool:
        """Return True if the token should be renewed now, before a server rejects it."""
        tokens = self._tokens
        if tokens is None or tokens.renew_at is None:
            return False
        if self._wall_time() < max(tokens.renew_at, self._renew_not_before):
            return False
        return tokens.refresh is not None or not self._profile.interactive

    def renew(self) -> Flow[bool]:
        """Get a new token without a user. Return False if that wasn't possible.

        A failure raises no exception: the token's next rejection decides what happens.
        """
        if not self.expires_soon():
            return True
        try:
            auth_server = yield from self._discover(AuthChallenge())
            done = (yield from self._adopt_stored(auth_server)) or (
                yield from self._refresh(auth_server)
            )
        except McpTrioError as exc:
            self._warn(f"the access token could not be renewed before it expires: {exc}")
            self._renew_not_before = self._wall_time() + _RENEW_RETRY_DELAY
            return False
        self._epoch = object()
        self._last_failure = None
        return done

    # -- Called by an attempt ----------------------------------------------------------------------

    def _headers(self, method: str, url: str) -> list[tuple[str, str]]:
        """Return the authorization headers, or none for a URL of another origin."""
        tokens = self._tokens
        if tokens is None or origin_of(url) != origin_of(self._url):
            return []
        if tokens.dpop_seed is None or self._dpop_signer is None:
            return [("authorization", f"Bearer {tokens.access.reveal()}")]
        proof = self._dpop_signer.create_proof(method, url, tokens.access)
        return [("authorization", f"DPoP {tokens.access.reveal()}"), ("dpop", proof)]

    def _run_unless_superseded(self, epoch: object, flow: Flow[None]) -> Flow[None]:
        """Run `flow`, unless another flow ended since `epoch`: then adopt its outcome."""
        if epoch is not self._epoch:
            if self._last_failure is not None:
                raise copy(self._last_failure) from self._last_failure
            return
        try:
            yield from flow
        except McpTrioError as exc:
            self._epoch = object()
            self._last_failure = exc
            raise
        self._epoch = object()
        self._last_failure = None

    def _handle_unauthorized(self, challenge: AuthChallenge) -> Flow[None]:
        """Handle a 401: get a token by the cheapest means that wasn't tried yet."""
        auth_server = yield from self._discover(challenge)
        if (yield from self._adopt_stored(auth_server)):
            return
        tokens = self._tokens
        if tokens is not None:
            # A bearer token is useless if the server has begun to require bound ones.
            must_bind = challenge.scheme == "dpop" and self._dpop_signer is None
            if self._unconfirmed == "login" and not must_bind:
                raise AuthRequired(
                    f"the MCP server {redacted_url(self._resource)} refuses the token that "
                    f"{redacted_url(auth_server.issuer)} has just given "
                    "for it: one of the two is set up wrongly. Its log should say why.",
                    challenge.scopes,
                )
            if (
                self._unconfirmed is None
                and not must_bind
                and (yield from self._refresh(auth_server))
            ):
                return
        try:
            yield from self._log_in(
                auth_server,
                self._scopes_to_request(challenge, auth_server),
                bind=_wants_bound_token(challenge, auth_server),
            )
        except AuthRequired as exc:
            if tokens is None:
                raise
            # Otherwise the user would think that there is no token.
            where = redacted_url(self._resource)
            text = f"the MCP server {where} does not accept the token of the last login; {exc}"
            raise AuthRequired(text, exc.scopes, challenge=exc.challenge) from exc

    def _handle_insufficient_scope(self, challenge: AuthChallenge, operation: str) -> Flow[None]:
        """Handle a 403 `insufficient_scope`: log in again for more scopes."""
        if self._tokens is None:
            yield from self._handle_unauthorized(challenge)
            return
        auth_server = self._auth_server
        if auth_server is None:
            auth_server = yield from self._discover(challenge)
        if (yield from self._adopt_stored(auth_server)):
            return
        wanted = frozenset(challenge.scopes)
        if self._profile.fixed_scopes and not wanted <= set(self._profile.scopes or ()):
            interactive = self._profile.interactive
            why = "With send_resource=False" if interactive else "Without a user"
            raise AuthRequired(
                f"the MCP server {redacted_url(self._resource)} demands the scopes "
                f"{' '.join(challenge.scopes)} for {operation or 'the request'}. {why}, "
                "only the scopes of the profile are requested: add them there if this client may "
                "have them.",
                # Without `resource` nothing may lead the user to request them by mistake.
                () if interactive else challenge.scopes,
            )
        count = self._step_ups.get(operation, 0)
        requested_before = wanted <= set(self._requested_scopes)
        if count >= MAX_STEP_UPS or (requested_before and wanted in self._repeated_scopes):
            raise AuthRequired(
                f"the MCP server {redacted_url(self._resource)} still refuses "
                f"{operation or 'the request'} after the "
                f"scopes it wants ({' '.join(challenge.scopes) or 'none named'}) were requested. "
                "They may not have been granted: ask its administrator.",
                challenge.scopes,
            )
        yield from self._log_in(auth_server, self._scopes_to_request(challenge, auth_server))
        # A failed login isn't counted: its exception ends the request, and a new request is
        # deliberate.
        _put_bounded(self._step_ups, operation, count + 1)
        if requested_before:
            # These scopes were requested and not granted. The user may decide otherwise, but is
            # asked only once more.
            _put_bounded(self._repeated_scopes, wanted, None)

    def _token_accepted(self) -> None:
        """Record that the MCP server accepted the current token."""
        self._unconfirmed = None

    # -- Parts of the flows ------------------------------------------------------------------------

    def _discover(self, challenge: AuthChallenge) -> Flow[AuthorizationServer]:
        """Discover the authorization server. Discard tokens of another one.

        Each run reads the MCP server's metadata again, so a change is noticed. The old
        authorization server's tokens are never sent to the new one.
        """
        check_url(self._url, "the URL of the MCP server", local=self._allow_loopback)
        tokens = self._tokens
        if (
            challenge.resource_metadata is None
            and tokens is not None
            and tokens.metadata_url is not None
        ):
            challenge = replace(challenge, resource_metadata=tokens.metadata_url)
        auth_server = yield from find_authorization_server(
            self._url,
            challenge,
            configured_issuer=self._profile.issuer,
            metadata_issuer=self._profile.metadata_issuer,
            token_issuer=tokens.issuer if tokens is not None else None,
            cached=self._auth_server,
        )
        previous = self._auth_server
        if previous is None or previous.notes != auth_server.notes:
            for note in auth_server.notes:
                self._warn(note)
        self._auth_server = auth_server
        if tokens is not None and not _is_of(tokens, auth_server):
            self._warn(
                "the MCP server now names the authorization server "
                f"{redacted_url(auth_server.issuer)}: "
                "the tokens of the old one are discarded"
            )
            self._tokens = None
            self._unconfirmed = None
            self._dpop_signer = None
            yield from self._replace_stored(tokens, None)
        return auth_server

    @property
    def _requested_scopes(self) -> tuple[str, ...]:
        """The scopes that were requested so far."""
        return self._tokens.requested_scopes if self._tokens is not None else ()

    def _scopes_to_request(
        self, challenge: AuthChallenge, auth_server: AuthorizationServer
    ) -> tuple[str, ...]:
        """Return the scopes to request.

        They are the scopes requested before, the profile's, and the challenge's. If neither profile
        nor challenge has any, the scopes that the MCP server publishes are added.

        Without a user who sees them, only the profile's scopes are requested. The same holds if no
        `resource` is sent: by its scopes the MCP server could choose what a token is for.
        """
        if not self._profile.interactive:
            return self._profile.scopes or ()
        needed: Sequence[str] = challenge.scopes
        if not needed and self._profile.scopes is None:
            needed = auth_server.scopes or ()
        scopes = dict.fromkeys((*self._requested_scopes, *(self._profile.scopes or ()), *needed))
        if self._profile.fixed_scopes:
            scopes = dict.fromkeys(self._profile.scopes or ())
        # With it, OpenID Connect servers issue a refresh token. Send it only beside other scopes:
        # alone it would replace the server's default scopes (RFC 6749 section 3.3).
        supported = auth_server.metadata.scopes_supported or ()
        if scopes and self._profile.offline_access and "offline_access" in supported:
            scopes["offline_access"] = None
        return tuple(scopes)

    def _log_in(
        self,
        auth_server: AuthorizationServer,
        scopes: tuple[str, ...],
        source: _TokenSource = "login",
        *,
        bind: bool = False,
    ) -> Flow[None]:
        """Get a token with the profile's grant, and store it.

        It is bound to a key if `bind` is set, or if the last token was.
        """
        if self._profile.interactive:
            any_port = urlsplit(self._profile.redirect_uri).port == 0
            redirect_uri = yield from self._redirect_uri_for(auth_server)
            try:
                self._redirect_uri = yield ListenForRedirect(redirect_uri, any_port)
            except AuthRequired as exc:
                if self._tokens is not None:
                    # A login by other means must not yield fewer scopes than there are now.
                    exc.scopes = scopes
                raise
        identity = yield from self._identify(auth_server, scopes)
        if bind and self._dpop_signer is None:
            self._dpop_signer = self._new_dpop_signer(new_seed(self._entropy))
        token_client = self._token_client(auth_server, identity)
        try:
            reply = yield from self._run_grant(token_client, scopes)
        except McpTrioError as exc:
            # An authorization server that no longer knows this client shows an error to the user
            # and never redirects the browser back. The next login must register again.
            if identity.from_storage and getattr(exc, "error", None) != "access_denied":
                yield from forget_registration(auth_server.issuer)
            raise
        for note in token_client.notes:
            self._warn(note)
        if source == "login":
            self.generation += 1
        yield from self._use_response(auth_server, identity, reply, scopes, source)

    def _redirect_uri_for(self, auth_server: AuthorizationServer) -> Flow[str]:
        """Return the redirect URI to listen at: the profile's URI, with the last login's port.

        With a free port it is one for this authorization server only, unless other redirect URIs
        are registered for this client than it sends itself.
        """
        profile = self._profile
        if urlsplit(profile.redirect_uri).port != 0:
            return profile.redirect_uri
        redirect_uri = with_port_of(profile.redirect_uri, self._redirect_uri)
        if known_identity(profile, auth_server.metadata) is not None:
            return redirect_uri
        # A client that was registered under the other spelling of the issuer stays registered.
        issuer, _ = yield from load_registration(auth_server.issuer)
        return distinct_redirect_uri(redirect_uri, issuer)

    def _identify(
        self, auth_server: AuthorizationServer, scopes: Sequence[str]
    ) -> Flow[ClientIdentity]:
        """Return the client's identity at the authorization server."""
        try:
            return (
                yield from identify(
                    self._profile,
                    auth_server.metadata,
                    redirect_uri=self._redirect_uri,
                    scopes=scopes,
                    now=self._wall_time(),
                )
            )
        except AuthorizationFailed as exc:
            if not auth_server.guessed:
                raise
            raise AuthRequired(
                f"the MCP server {redacted_url(self._resource)} requires authorization, but does "
                "not say where to "
                "get a token for it. If it uses API keys, send one with each request. "
                f"What was tried: {exc}"
            ) from exc

    def _run_grant(
        self, token_client: TokenEndpointClient, scopes: Sequence[str]
    ) -> Flow[TokenResponse]:
        """Request a token with the profile's grant."""
        grant = self._profile.grant
        if isinstance(grant, JwtBearer):
            assertion = call_user_function(grant.assertion, "assertion")
            return (yield from token_client.jwt_bearer(assertion, scopes))
        if isinstance(grant, EnterpriseManaged):
            return (yield from token_client.enterprise_managed(grant, scopes))
        if grant == "client_credentials":
            return (yield from token_client.client_credentials(scopes))
        new_scopes: tuple[str, ...] = ()
        if self._tokens is not None:
            known = {*self._requested_scopes, *(self._profile.scopes or ()), "offline_access"}
            new_scopes = tuple(scope for scope in scopes if scope not in known)
        return (
            yield from token_client.authorization_code(
                self._redirect_uri, scopes, server_url=self._resource, new_scopes=new_scopes
            )
        )

    def _refresh(self, auth_server: AuthorizationServer) -> Flow[bool]:
        """Get a new token without a user. Return False if only a login can get one."""
        tokens = self._tokens
        if tokens is None:
            return False
        if not self._profile.interactive:
            scopes = self._scopes_to_request(AuthChallenge(), auth_server)
            yield from self._log_in(auth_server, scopes, "refresh")
            return True
        identity = known_identity(self._profile, auth_server.metadata, tokens)
        if tokens.refresh is None or identity is None:
            return False
        token_client = self._token_client(auth_server, identity)
        try:
            reply = yield from token_client.refresh(tokens.refresh)
        except AuthorizationFailed as exc:
            if exc.error is None or exc.error in _SERVER_ERRORS:
                raise
            # Another process was faster: it used the refresh token and stored its successor.
            if (yield from self._adopt_stored(auth_server)):
                return True
            self._warn(f"the refresh token is no longer accepted: {exc}")
            if self._tokens is tokens:
                self._tokens = replace(tokens, refresh=None)
                yield from self._replace_stored(tokens, self._tokens)
            if identity.registered and exc.error == "invalid_client":
                yield from forget_registration(auth_server.issuer)
            return False
        for note in token_client.notes:
            self._warn(note)
        yield from self._use_response(
            auth_server, identity, reply, tokens.requested_scopes, "refresh"
        )
        return True

    def _use(self, tokens: Tokens) -> str | None:
        """Use `tokens` from now on. Return None, or the reason why they don't fit."""
        profile = self._given_profile
        if not (names_server(tokens.resource, self._url) or names_host(tokens.resource, self._url)):
            return "they are for another MCP server"
        if profile.client_id not in (None, tokens.client_id) or (
            profile.issuer is not None and not is_same_issuer(profile.issuer, tokens.issuer)
        ):
            return "they belong to another client or authorization server"
        try:
            profile = _with_settings(profile, tokens)
        except ValueError as exc:
            return f"their settings contradict each other: {exc}"
        dpop_signer: DpopSigner | None = None
        if tokens.dpop_seed is not None:
            try:
                dpop_signer = self._new_dpop_signer(tokens.dpop_seed)
            except AuthorizationFailed as exc:
                return str(exc)
        self._profile = profile
        self._tokens = tokens
        self._unconfirmed = None
        self._dpop_signer = dpop_signer
        last_redirect_uri = tokens.redirect_uri
        if last_redirect_uri is not None and urlsplit(profile.redirect_uri).port == 0:
            self._redirect_uri = with_port_of(profile.redirect_uri, last_redirect_uri)
        return None

    def _adopt_stored(self, auth_server: AuthorizationServer) -> Flow[bool]:
        """Adopt tokens that another process has stored. Return True if they are usable now.

        The other process has renewed them, or its user has logged in. Newer tokens that aren't
        usable now are adopted too, for their refresh token: using an old one twice may invalidate
        both. For the same reason the storage stays locked until this flow ends.
        """
        stored = yield from self._load_stored(to_replace=True)
        current = self._tokens
        if stored is None or (current is not None and stored.access == current.access):
            return False
        if not _is_of(stored, auth_server):
            return False
        if self._use(stored) is not None:
            return False
        # Tokens from the same login were only refreshed: the user is the same.
        if current is None or stored.login_id is None or stored.login_id != current.login_id:
            self.generation += 1
        return stored.renew_at is None or stored.renew_at > self._wall_time()

    def _replace_stored(self, tokens: Tokens, replacement: Tokens | None) -> Flow[None]:
        """Store `replacement` (None: delete), unless another process already replaced `tokens`."""
        stored = yield from self._load_stored()
        if stored is None or stored.access == tokens.access:
            data = encode_tokens(replacement) if replacement is not None else None
            yield Save(tokens_key(self._resource), data)

    def _load_stored(self, *, to_replace: bool = False) -> Flow[Tokens | None]:
        """Load and decode the stored tokens."""
        data: bytes | None = yield Load(tokens_key(self._resource), to_replace)
        return decode_tokens(data) if data is not None else None

    def _use_response(
        self,
        auth_server: AuthorizationServer,
        identity: ClientIdentity,
        reply: TokenResponse,
        scopes: tuple[str, ...],
        source: _TokenSource,
    ) -> Flow[None]:
        """Use and store a response's tokens."""
        previous = self._tokens
        tokens = tokens_from_response(
            reply,
            now=self._wall_time(),
            issuer=auth_server.issuer,
            resource=auth_server.resource,
            client_id=identity.client_id,
            refresh=previous.refresh if previous is not None and source == "refresh" else None,
        )
        dpop_seed = None
        if self._dpop_signer is not None and reply.token_type.lower() == "dpop":
            dpop_seed = self._dpop_signer.seed
        # The profile's secrets are stored only on request (`keep_secret`). A client without a
        # secret needs no profile for a refresh.
        keep_secret = self._profile.keep_secret and identity.secret is not None
        store_identity = identity.registered or identity.method == "none" or keep_secret
        login_id = previous.login_id if previous is not None and source == "refresh" else None
        self._tokens = replace(
            tokens,
            requested_scopes=scopes,
            login_id=login_id or new_secret(self._entropy).reveal(),
            metadata_url=auth_server.metadata_url,
            dpop_seed=dpop_seed,
            client_method=identity.method if store_identity else None,
            client_secret=identity.secret if store_identity else None,
            redirect_uri=self._redirect_uri,
            assume_pkce=self._profile.assume_pkce,
            send_resource=self._profile.send_resource,
            metadata_issuer=self._profile.metadata_issuer,
        )
        self._unconfirmed = source
        yield Save(tokens_key(self._resource), encode_tokens(self._tokens))

    def _token_client(
        self, auth_server: AuthorizationServer, identity: ClientIdentity
    ) -> TokenEndpointClient:
        return TokenEndpointClient(
            auth_server,
            identity,
            self._profile,
            self._dpop_signer,
            allow_loopback=self._allow_loopback,
            entropy=self._entropy,
            wall_time=self._wall_time,
        )

    def _new_dpop_signer(self, seed: Secret) -> DpopSigner:
        return DpopSigner(seed, entropy=self._entropy, wall_time=self._wall_time)

    def _warn(self, text: str) -> None:
        """Add a warning for the log. The oldest are dropped if there are too many."""
        self._warnings = [*self._warnings, text][-_MAX_WARNINGS:]


def _is_of(tokens: Tokens, auth_server: AuthorizationServer) -> bool:
    """Return True if `auth_server` has issued `tokens`, for the same resource."""
    return is_same_issuer(tokens.issuer, auth_server.issuer) and (
        tokens.resource == auth_server.resource
    )


def _with_settings(profile: ClientProfile, tokens: Tokens) -> ClientProfile:
    """Return `profile` with the settings of the login that got `tokens`, for their issuer only.

    The user wrote them for that login. A profile with an `issuer` has its own.

    Raises:
        ValueError: the settings contradict each other.
    """
    if profile.issuer is not None or (
        not tokens.assume_pkce and tokens.send_resource and tokens.metadata_issuer is None
    ):
        return profile
    return replace(
        profile,
        issuer=tokens.issuer,
        scopes=profile.scopes if tokens.send_resource else tokens.requested_scopes,
        assume_pkce=tokens.assume_pkce,
        send_resource=tokens.send_resource,
        metadata_issuer=tokens.metadata_issuer,
    )


def _wants_bound_token(challenge: AuthChallenge, auth_server: AuthorizationServer) -> bool:
    """Return True if a token should be bound to a key (DPoP).

    It should be if the MCP server accepts no other tokens, or if both servers announce DPoP: a
    bound token is useless to a thief.
    """
    if challenge.scheme == "dpop":
        return True
    supported = auth_server.metadata.dpop_signing_alg_values_supported or ()
    return challenge.dpop and ALGORITHM in supported and is_dpop_available()


def _put_bounded(table: dict[K, V], key: K, value: V) -> None:
    """Insert `key` as the newest entry. Drop the oldest if there are too many."""
    table.pop(key, None)
    table[key] = value
    if len(table) > _MAX_OPERATIONS:
        del table[next(iter(table))]


class AuthAttempt:
    """One MCP request, `operation` of `authorizer`, which may take several HTTP requests."""

    __slots__ = (
        "_authorizer",
        "_challenge",
        "_challenge_count",
        "_challenge_text",
        "_epoch",
        "_has_new_nonce",
        "_operation",
        "_status",
    )

    def __init__(self, authorizer: Authorizer, operation: str) -> None:
        self._authorizer = authorizer
        self._operation = operation
        self._epoch: object  # the authorizer's when a request was sent last
        self._status = 0
        self._challenge = AuthChallenge()
        self._challenge_text = ""
        self._has_new_nonce: bool  # since the last response
        self._challenge_count = 0

    def __repr__(self) -> str:
        return f"<AuthAttempt {self._operation!r}, last status {self._status}>"

    def headers(self, method: str, url: str) -> list[tuple[str, str]]:
        """Return the headers to send with one HTTP request, `method` of the absolute `url`.

        Call it for every HTTP request: a DPoP proof must not be sent twice. The result is empty if
        `url` isn't at the MCP server's origin.
        """
        self._epoch = self._authorizer._epoch
        return self._authorizer._headers(method, url)

    def received(self, status: int, headers: Iterable[tuple[str, str]], url: str) -> bool:
        """Process a response's head. Return True if `handle_challenge()` should be run.

        Call it once for each response, of any `status`, to a request with `headers()` for `url`.
        The names of `headers` are in lower case.
        """
        authorizer = self._authorizer
        headers = list(headers)
        values = [value for name, value in headers if name == "www-authenticate"]
        self._status = status
        self._challenge = parse_auth_challenge(values)
        self._challenge_text = ", ".join(values)[:_MAX_CHALLENGE_TEXT]
        nonce = next((value for name, value in headers if name == "dpop-nonce"), None)
        self._has_new_nonce = (
            authorizer._dpop_signer is not None and authorizer._dpop_signer.store_nonce(url, nonce)
        )
        # A redirect or a 5xx says nothing about the token, and the response to an older token
        # nothing about the current one.
        says_nothing = status == 401 or status >= 500 or 300 <= status < 400
        if not says_nothing and self._epoch is authorizer._epoch:
            authorizer._token_accepted()
        return status == 401 or (status == 403 and self._challenge.error == "insufficient_scope")

    def covers(self, url: str) -> bool:
        """Return True if the current token is for the absolute `url`, by its resource.

        Without a token it is the resource that would be requested.
        """
        authorizer = self._authorizer
        tokens = authorizer._tokens
        return covers_url(authorizer._resource if tokens is None else tokens.resource, url)

    def handle_challenge(self) -> Flow[None]:
        """Satisfy the last response's challenge.

        Then send the request again, with new `headers()`.

        Raises:
            AuthRequired: a person has to act first.
            AuthorizationFailed: an attempt to get a token failed.
        """
        authorizer = self._authorizer
        challenge = self._challenge
        self._challenge_count += 1
        if self._challenge_count > _MAX_CHALLENGES:
            raise AuthRequired(
                f"the MCP server keeps refusing {self._operation or 'the request'} with every new "
                "token. "
                "Its log should say why.",
                challenge.scopes,
                challenge=self._challenge_text,
            )
        if challenge.error == "use_dpop_nonce" and self._has_new_nonce:
            return  # the next `headers()` has a proof with the nonce
        if self._status == 403:
            flow = authorizer._handle_insufficient_scope(challenge, self._operation)
        else:
            flow = authorizer._handle_unauthorized(challenge)
        try:
            yield from authorizer._run_unless_superseded(self._epoch, flow)
        except AuthRequired as exc:
            exc.challenge = exc.challenge or self._challenge_text
            raise
