"""Access to one MCP server: which token goes with a request, and what to do when the server refuses one.

Rules of this file:

1. The tokens go to the origin of the MCP server and nowhere else, in a header and never in a URL.
2. Every refusal leads to at most one flow. A token that a login has just given and that the server never took is not replaced by
   another login; one that a refresh gave is replaced by a login. So there is no loop, however many requests are under way.
3. A refusal is judged by the state in which its request was sent. If another flow has ended since, its outcome counts: the
   request is sent again with the new token, or fails as that flow failed, and no second browser is opened.
4. Each 401 reads the metadata of the MCP server again. If it names another authorization server, or another resource, the tokens
   of the old one are forgotten and never shown to the new one.
5. More scopes are asked for together with those that were asked for before; at most `MAX_STEP_UPS` times for one operation, and
   once more than never for the same scopes.

Sources: 2026-07-28 basic/authorization (Access Token Usage, Refresh Tokens, Scope Challenge Handling); RFC 6750, RFC 9449.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec.structs import replace

from mcp_core._errors import AuthRequired, McpTrioError
from mcp_core.urls import is_local, is_private_address, may_fetch, origin_of

from ._applicant import Applicant, told_by
from ._challenge import Demand, demand_in
from ._discovery import Authority, find_authority
from ._dpop import ALGORITHM, Prover, can_sign, new_seed
from ._errors import AuthorizationFailed
from ._profile import EnterpriseManaged, JwtBearer
from ._registration import Identity, client_key, identify, known_identity
from ._steps import Listen, Load, Save
from ._tokens import Tokens, decode_tokens, encode_tokens, tokens_from, tokens_key
from ._urls import at_port_of, canonical_resource, check_url, covers, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ._metadata import TokenReply
    from ._profile import ClientProfile
    from ._secret import Secret
    from ._steps import Flow

__all__ = ["MAX_STEP_UPS", "Attempt", "Authorizer"]

MAX_STEP_UPS: Final = 3
# Names of operations come from our own side, but from a server's list of tools.
_MAX_OPERATIONS: Final = 256
_MAX_NOTES: Final = 16
# Seconds until a renewal that failed is tried again: requests should not wait for it one after the other.
_PAUSE: Final = 10.0
_MAX_TURNS: Final = 6
_MAX_CHALLENGE: Final = 1000
# How tokens came.
_How: TypeAlias = Literal["login", "refresh"]
# The authorization server failed; what we showed it may be good all the same.
_ITS_FAULT: Final = frozenset({"server_error", "temporarily_unavailable"})


class Authorizer:
    """Holds the tokens for the MCP server at `server_url` and gets them as `profile` says.

    It is driven like this. `load()` is run once. For each MCP request there is an `attempt()`, whose `headers()` go with each
    HTTP request; each response is shown to `Attempt.received()`, and if that says so the flow `Attempt.challenged()` is run and
    the request sent again. Before a request, if `expires_soon()`, the flow `renew()` is run. Only one flow of an authorizer may
    run at a time: the driver holds one lock around each. Whoever had to wait for the lock runs his flow all the same; it then
    sees what the other has brought.

    `entropy` gives random bytes fit for secrets, `wall_time` the seconds since 1970.

    `generation` grows whenever the tokens may be those of another user: what was cached for the old ones is not for the new ones.
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
        self._local = is_local(self._url)
        self._met: str | None = None
        named = [profile.issuer]
        if isinstance(profile.grant, EnterpriseManaged):
            named.append(profile.grant.token_endpoint)
        self._named = frozenset(origin_of(each) for each in named if each is not None)
        self._profile = profile
        self._entropy = entropy
        self._wall_time = wall_time
        # Where the browser came back to the last time: as long as that stays the same, nothing has to be registered again.
        self._redirect_uri = profile.redirect_uri
        self._tokens: Tokens | None = None
        self._authority: Authority | None = None
        self._prover: Prover | None = None
        # How the tokens came, until the server has taken them once.
        self._untried: _How | None = None
        self._epoch = 0
        self._failure: McpTrioError | None = None
        self._step_ups: dict[str, int] = {}
        self._repeated: dict[frozenset[str], None] = {}
        self._renew_after = 0.0
        self._notes: list[str] = []

    def __repr__(self) -> str:
        tokens = self._tokens
        state = f"tokens of {shown(tokens.issuer)}" if tokens is not None else "no tokens"
        return f"<Authorizer {shown(self._resource)}: {state}>"

    def met_at(self, address: str | None) -> None:
        """The MCP server was connected to at this IP address; None if somebody else connected us."""
        self._met = address

    def may_fetch(self, url: str, address: str) -> bool:
        """Whether a `Fetch` of `url`, which was judged as such before, may connect to this IP address, to which its host was resolved.

        What the user has named himself may be anywhere: `issuer` of the profile, the identity provider; and the MCP server where it was
        met, for whoever answers for its name could have us meet somebody else the next time. What servers have named is on the public
        internet; or on loopback if the MCP server is; or in a private network if the MCP server was met in one, and can reach itself
        what it could have us fetch.
        """
        origin, met = origin_of(url), self._met
        if origin in self._named:
            return True
        near = met is not None and is_private_address(met)
        if origin == origin_of(self._url):
            near = near or met is None
            if address == met:
                return True
        return may_fetch(address, local=self._local, near=near)

    def notes(self) -> list[str]:
        """What should be logged since the last call: things that were wrong and could be helped."""
        notes, self._notes = self._notes, []
        return notes

    def attempt(self, operation: str = "") -> Attempt:
        """A request to the MCP server is about to be made; `operation` names it for counting, such as `tools/call add`."""
        return Attempt(self, operation)

    def load(self) -> Flow[None]:
        """Take up the tokens of an earlier time. Tokens that cannot be read, or are not for us, are as good as none."""
        data: bytes | None = yield Load(tokens_key(self._resource))
        if data is None:
            return
        tokens = decode_tokens(data)
        if tokens is None:
            self._note("what was stored as tokens cannot be read and is not used; the next login replaces it")
            return
        fault = self._take(tokens)
        if fault is not None:
            self._note(f"the stored tokens are not used: {fault}")

    def expires_soon(self) -> bool:
        """Whether there is a token that should be renewed now, before it is refused."""
        tokens = self._tokens
        if tokens is None or tokens.renew_at is None:
            return False
        if self._wall_time() < max(tokens.renew_at, self._renew_after):
            return False
        return tokens.refresh is not None or not self._profile.interactive

    def renew(self) -> Flow[bool]:
        """Get a new token without a user; False if that was not possible. What then happens is up to the next refusal."""
        if not self.expires_soon():
            return True
        try:
            authority = yield from self._find(Demand())
            done = (yield from self._take_over(authority)) or (yield from self._refresh(authority))
        except McpTrioError as exc:
            self._note(f"the access token could not be renewed before it expires: {exc}")
            self._renew_after = self._wall_time() + _PAUSE
            return False
        self._epoch += 1
        self._failure = None
        return done

    # -- What an attempt asks for -------------------------------------------------------------------------------------------

    def _headers(self, method: str, url: str) -> list[tuple[str, str]]:
        tokens = self._tokens
        if tokens is None or origin_of(url) != origin_of(self._url):
            return []
        if tokens.dpop_seed is None or self._prover is None:
            return [("authorization", f"Bearer {tokens.access.reveal()}")]
        proof = self._prover.proof(method, url, tokens.access)
        return [("authorization", f"DPoP {tokens.access.reveal()}"), ("dpop", proof)]

    def _settle(self, epoch: int, flow: Flow[None]) -> Flow[None]:
        """Run `flow`, unless another has ended since `epoch`."""
        if epoch != self._epoch:
            flow.close()
            if self._failure is not None:
                raise copy(self._failure) from self._failure
            return
        try:
            yield from flow
        except McpTrioError as exc:
            self._epoch += 1
            self._failure = exc
            raise
        self._epoch += 1
        self._failure = None

    def _log_in_again(self, demand: Demand) -> Flow[None]:
        """The server wants a token, or another one."""
        authority = yield from self._find(demand)
        if (yield from self._take_over(authority)):
            return
        tokens = self._tokens
        if tokens is not None:
            # What we have is no use if the server has come to want tokens that are bound to a key.
            unbound = demand.scheme == "dpop" and self._prover is None
            if self._untried == "login" and not unbound:
                raise AuthRequired(
                    f"the MCP server {shown(self._resource)} refuses the token that {shown(authority.issuer)} has just given "
                    "for it: one of the two is set up wrongly. Its log should say why.",
                    demand.scopes,
                )
            if self._untried is None and not unbound and (yield from self._refresh(authority)):
                return
        yield from self._log_in(
            authority, self._scopes_for(demand, authority), bind=_binds(demand, authority)
        )

    def _step_up(self, demand: Demand, operation: str) -> Flow[None]:
        """The token is good, but not for this operation."""
        if self._tokens is None:
            yield from self._log_in_again(demand)
            return
        authority = self._authority
        if authority is None:
            authority = yield from self._find(demand)
        if (yield from self._take_over(authority)):
            return
        wanted = frozenset(demand.scopes)
        count = self._step_ups.get(operation, 0)
        again = wanted <= set(self._asked)
        if count >= MAX_STEP_UPS or (again and wanted in self._repeated):
            raise AuthRequired(
                f"the MCP server {shown(self._resource)} still refuses {operation or 'the request'} after the scopes it wants "
                f"({' '.join(demand.scopes) or 'none named'}) were asked for. They may not have been granted: ask its "
                "administrator.",
                demand.scopes,
            )
        yield from self._log_in(authority, self._scopes_for(demand, authority))
        # A login that fails does not count: it is an end by itself, and who asks for it again means it.
        _remember(self._step_ups, operation, count + 1)
        if again:
            # Asked for and not granted: the user might have decided otherwise, but is bothered once only.
            _remember(self._repeated, wanted, None)

    def _accepted(self) -> None:
        self._untried = None

    # -- The parts ----------------------------------------------------------------------------------------------------------

    def _find(self, demand: Demand) -> Flow[Authority]:
        """Who gives tokens now. Tokens that are of somebody else are forgotten."""
        check_url(self._url, "the URL of the MCP server", local=self._local)
        tokens = self._tokens
        if demand.resource_metadata is None and tokens is not None and tokens.metadata_url is not None:
            demand = replace(demand, resource_metadata=tokens.metadata_url)
        authority = yield from find_authority(
            self._url,
            demand,
            preset=self._profile.issuer,
            held=tokens.issuer if tokens is not None else None,
            known=self._authority,
        )
        self._authority = authority
        if tokens is not None and (tokens.issuer, tokens.resource) != (authority.issuer, authority.resource):
            self._note(
                f"the MCP server has moved to {shown(authority.issuer)}: the tokens of before are forgotten"
            )
            self._tokens, self._untried, self._prover = None, None, None
            yield from self._replace(tokens, None)
        return authority

    @property
    def _asked(self) -> tuple[str, ...]:
        return self._tokens.asked if self._tokens is not None else ()

    def _scopes_for(self, demand: Demand, authority: Authority) -> tuple[str, ...]:
        """What to ask for: what was asked for before, what the user always wants, and what the server demands - or publishes, if
        it demands nothing."""
        needed: Sequence[str] = demand.scopes
        if not needed and self._profile.scopes is None:
            needed = authority.scopes or ()
        scopes = dict.fromkeys((*self._asked, *(self._profile.scopes or ()), *needed))
        known = authority.server.scopes_supported or ()
        if (
            scopes
            and self._profile.offline_access
            and self._profile.interactive
            and "offline_access" in known
        ):
            scopes["offline_access"] = None
        return tuple(scopes)

    def _log_in(
        self, authority: Authority, scopes: tuple[str, ...], how: _How = "login", *, bind: bool = False
    ) -> Flow[None]:
        """Get a token from the start, bound to a key if `bind`, or if the last one was."""
        if self._profile.interactive:
            any_port = urlsplit(self._profile.redirect_uri).port == 0
            try:
                self._redirect_uri = yield Listen(self._redirect_uri, any_port)
            except AuthRequired as exc:
                if self._tokens is not None:
                    exc.scopes = (
                        scopes  # whoever logs in by other means must not end with fewer than there are
                    )
                raise
        identity = yield from self._identify(authority, scopes)
        if bind and self._prover is None:
            self._prover = self._new_prover(new_seed(self._entropy))
        applicant = self._applicant(authority, identity)
        try:
            reply = yield from self._apply(applicant, scopes)
        except McpTrioError as exc:
            # An authorization server that has forgotten us shows that to the user and never sends him back.
            if identity.recalled and getattr(exc, "error", None) != "access_denied":
                yield Save(client_key(authority.issuer), None)
            raise
        if how == "login":
            self.generation += 1
        yield from self._keep(authority, identity, reply, scopes, how)

    def _identify(self, authority: Authority, scopes: Sequence[str]) -> Flow[Identity]:
        try:
            return (
                yield from identify(
                    self._profile,
                    authority.server,
                    resource=self._resource,
                    redirect_uri=self._redirect_uri,
                    scopes=scopes,
                    now=self._wall_time(),
                )
            )
        except AuthorizationFailed as exc:
            if not authority.guessed:
                raise
            raise AuthRequired(
                f"the MCP server {shown(self._resource)} wants to know who asks, and does not say where to get a token for it. If "
                f"it takes keys of its own, send one with each request. What was tried: {exc}"
            ) from exc

    def _apply(self, applicant: Applicant, scopes: Sequence[str]) -> Flow[TokenReply]:
        grant = self._profile.grant
        if isinstance(grant, JwtBearer):
            return (yield from applicant.jwt_bearer(told_by(grant.assertion, "assertion"), scopes))
        if isinstance(grant, EnterpriseManaged):
            return (yield from applicant.enterprise_managed(grant, scopes))
        if grant == "client_credentials":
            return (yield from applicant.client_credentials(scopes))
        return (yield from applicant.authorization_code(self._redirect_uri, scopes))

    def _refresh(self, authority: Authority) -> Flow[bool]:
        """A new token without a user; False if there is none to be had."""
        tokens = self._tokens
        if tokens is None:
            return False
        if not self._profile.interactive:
            yield from self._log_in(authority, tokens.asked, "refresh")
            return True
        identity = known_identity(self._profile, authority.server, tokens)
        if tokens.refresh is None or identity is None:
            return False
        try:
            reply = yield from self._applicant(authority, identity).refresh(tokens.refresh)
        except AuthorizationFailed as exc:
            if exc.error is None or exc.error in _ITS_FAULT:
                raise
            if (yield from self._take_over(authority)):  # it was faster, and what we showed was used already
                return True
            self._note(f"the refresh token is no longer taken: {exc}")
            if self._tokens is tokens:
                self._tokens = replace(tokens, refresh=None)
                yield from self._replace(tokens, self._tokens)
            if identity.registered and exc.error == "invalid_client":
                yield Save(client_key(authority.issuer), None)
            return False
        yield from self._keep(authority, identity, reply, tokens.asked, "refresh")
        return True

    def _take(self, tokens: Tokens) -> str | None:
        """Use these tokens from now on; or what is wrong with that."""
        profile = self._profile
        if not covers(tokens.resource, self._url):
            return "they are for another MCP server"
        if profile.client_id not in (None, tokens.client_id) or profile.issuer not in (None, tokens.issuer):
            return "they belong to another client or authorization server"
        prover: Prover | None = None
        if tokens.dpop_seed is not None:
            try:
                prover = self._new_prover(tokens.dpop_seed)
            except AuthorizationFailed as exc:
                return str(exc)
        self._tokens, self._untried, self._prover = tokens, None, prover
        place = tokens.redirect_uri
        if place is not None and urlsplit(profile.redirect_uri).port == 0:
            self._redirect_uri = at_port_of(profile.redirect_uri, place)
        return None

    def _take_over(self, authority: Authority) -> Flow[bool]:
        """Whether another process has stored tokens since that are good now: it has renewed them, or its user has logged in. If
        they are merely newer they are taken as well, since a refresh token that is used twice may cost both of us ours; for which reason
        nobody else looks until this is over."""
        found = yield from self._stored(to_replace=True)
        ours = self._tokens
        if found is None or (ours is not None and found.access == ours.access):
            return False
        if (found.issuer, found.resource) != (authority.issuer, authority.resource) or self._take(found):
            return False
        self.generation += 1
        return found.renew_at is None or found.renew_at > self._wall_time()

    def _replace(self, tokens: Tokens, by: Tokens | None) -> Flow[None]:
        """Store something else in place of `tokens`, unless another process has done so."""
        found = yield from self._stored()
        if found is None or found.access == tokens.access:
            yield Save(tokens_key(self._resource), encode_tokens(by) if by is not None else None)

    def _stored(self, *, to_replace: bool = False) -> Flow[Tokens | None]:
        data: bytes | None = yield Load(tokens_key(self._resource), to_replace)
        return decode_tokens(data) if data is not None else None

    def _keep(
        self,
        authority: Authority,
        identity: Identity,
        reply: TokenReply,
        asked: tuple[str, ...],
        how: _How,
    ) -> Flow[None]:
        before = self._tokens
        tokens = tokens_from(
            reply,
            now=self._wall_time(),
            issuer=authority.issuer,
            resource=authority.resource,
            client_id=identity.client_id,
            refresh=before.refresh if before is not None and how == "refresh" else None,
        )
        bound = reply.token_type.lower() == "dpop" and self._prover is not None
        # Of what the profile says nothing that is secret is kept unasked; but a client without secrets needs no profile any more.
        asked_to = self._profile.keep_secret and identity.secret is not None
        kept = identity.registered or identity.method == "none" or asked_to
        self._tokens = replace(
            tokens,
            asked=asked,
            metadata_url=authority.metadata_url,
            dpop_seed=self._prover.seed if bound and self._prover is not None else None,
            client_method=identity.method if kept else None,
            client_secret=identity.secret if kept else None,
            redirect_uri=self._redirect_uri,
        )
        self._untried = how
        yield Save(tokens_key(self._resource), encode_tokens(self._tokens))

    def _applicant(self, authority: Authority, identity: Identity) -> Applicant:
        return Applicant(
            authority,
            identity,
            self._profile,
            self._prover,
            local=self._local,
            entropy=self._entropy,
            wall_time=self._wall_time,
        )

    def _new_prover(self, seed: Secret) -> Prover:
        return Prover(seed, entropy=self._entropy, wall_time=self._wall_time)

    def _note(self, text: str) -> None:
        self._notes = [*self._notes, text][-_MAX_NOTES:]


def _binds(demand: Demand, authority: Authority) -> bool:
    """Whether to ask for a token that is bound to a key. One that is stolen is no use, so it is wanted wherever both sides say that they
    know such tokens; and where the MCP server takes no others, whatever the authorization server says."""
    if demand.scheme == "dpop":
        return True
    known = authority.server.dpop_signing_alg_values_supported or ()
    return demand.dpop and ALGORITHM in known and can_sign()


def _remember(memory: dict[Any, Any], key: object, value: object) -> None:
    """As the newest; the oldest is forgotten if there are too many."""
    memory.pop(key, None)
    memory[key] = value
    if len(memory) > _MAX_OPERATIONS:
        del memory[next(iter(memory))]


class Attempt:
    """One request to the MCP server, sent as often as is worth while."""

    __slots__ = (
        "_authorizer",
        "_challenge",
        "_demand",
        "_epoch",
        "_fresh_nonce",
        "_operation",
        "_status",
        "_turns",
    )

    def __init__(self, authorizer: Authorizer, operation: str) -> None:
        self._authorizer = authorizer
        self._operation = operation
        self._epoch = authorizer._epoch
        self._status = 0
        self._demand = Demand()
        self._challenge = ""
        self._fresh_nonce = False
        self._turns = 0

    def __repr__(self) -> str:
        return f"<Attempt {self._operation!r}, last status {self._status}>"

    def headers(self, method: str, url: str) -> list[tuple[str, str]]:
        """What to send with an HTTP request, whatever its method. A new proof each time: headers are never sent twice. Nothing for
        another origin than that of the MCP server."""
        self._epoch = self._authorizer._epoch
        return self._authorizer._headers(method, url)

    def received(self, status: int, headers: Iterable[tuple[str, str]], url: str) -> bool:
        """A response came, whatever it is; names of `headers` in lower case. Whether it is worth while to run `challenged()`.

        To be called once for each response to a request that had `headers()`, when they are all there.
        """
        authorizer = self._authorizer
        found = list(headers)
        values = [value for name, value in found if name == "www-authenticate"]
        self._status = status
        self._demand = demand_in(values)
        self._challenge = ", ".join(values)[:_MAX_CHALLENGE]
        nonce = next((value for name, value in found if name == "dpop-nonce"), None)
        self._fresh_nonce = authorizer._prover is not None and authorizer._prover.keep_nonce(url, nonce)
        if status != 401 and status < 500 and self._epoch == authorizer._epoch:
            authorizer._accepted()
        return status == 401 or (status == 403 and self._demand.error == "insufficient_scope")

    def challenged(self) -> Flow[None]:
        """Do what the last response asks for. When it is done, the request is to be sent again, with new `headers()`.

        Raises:
            AuthRequired: somebody has to do something first.
            AuthorizationFailed: it was tried, and failed.
        """
        authorizer, demand = self._authorizer, self._demand
        self._turns += 1
        if self._turns > _MAX_TURNS:
            raise AuthRequired(
                f"the MCP server goes on refusing {self._operation or 'the request'} whatever token it is shown. Its log should "
                "say why.",
                demand.scopes,
                challenge=self._challenge,
            )
        if demand.error == "use_dpop_nonce" and self._fresh_nonce:
            return
        if self._status == 403:
            flow = authorizer._step_up(demand, self._operation)
        else:
            flow = authorizer._log_in_again(demand)
        try:
            yield from authorizer._settle(self._epoch, flow)
        except AuthRequired as exc:
            exc.challenge = exc.challenge or self._challenge
            raise
