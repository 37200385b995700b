"""The keys that verify an issuer's tokens: configured, or fetched from its JWKS when needed.

1. Tokens cannot make the server send requests at will. The only URL that is fetched is the
   configured one, or the one in the configured issuer's metadata. Unknown keys cause one fetch in
   half a minute, with a few in reserve; after a failure one in ten seconds.
2. If a key could not be looked up, the result is `VerifierUnavailable` (503), not `InvalidToken`
   (401): the token may be valid. So tokens of strangers, which name keys that don't exist, delay
   the use of a new key by at most half a minute, and no valid token is called invalid.
3. Flows that wait for the keys at the same time yield the same `Fetch` object. The driver runs it
   once and sends the reply to all of them. If the flow that started the fetch is closed, the others
   continue.

Sources: RFC 7517, 8414.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core._limits import Bucket, Rate
from mcp_core.auth._errors import AuthorizationFailed, FetchFailed
from mcp_core.auth._jose import InvalidKey, InvalidToken, load_keys
from mcp_core.auth._resource_urls import check_url
from mcp_core.auth._server_metadata import find_server_metadata
from mcp_core.auth._steps import MAX_BODY, Fetch, HttpRequest, HttpResponse
from mcp_core.urls._addresses import is_loopback_url, origin_of

from ._grant import VerifierUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.auth._jose import Jws, Key
    from mcp_core.auth._steps import Flow, Step

__all__ = ["RemoteKeys", "StaticKeys"]

# Fetches for unknown keys. Once in 30 s is also the default of jose and nimbus-jose-jwt. With the
# reserve, a few tokens of strangers don't delay the use of a new key at all.
_UNKNOWN_KEY_RATE: Final = Rate(per_second=1 / 30, burst=3)
_RETRY_INTERVAL: Final = 10.0  # seconds until a failed fetch is repeated
_MAX_AGE: Final = 3600.0  # seconds after which the keys are fetched again
_MAX_STALE_AGE: Final = 86400.0  # seconds without a successful fetch after which they are rejected

_UNKNOWN_KEY: Final = "the token is signed with a key that its issuer does not publish"
_UNCHECKED_KEY: Final = (
    "the token is signed with a key that its issuer did not publish when it was last asked"
)


class StaticKeys:
    """Keys that don't change."""

    __slots__ = ("_keys",)
    issuer: Final = None  # they don't say whose they are

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = keys

    def __repr__(self) -> str:
        return f"<{len(self._keys)} keys>"

    def find_key(self, jws: Jws, now: float) -> Flow[Key]:
        """Return the key with which a token claims to be signed.

        Raises:
            InvalidToken: there is no such key, or several keys fit.
        """
        yield from ()  # a flow as in `RemoteKeys`, but without steps
        key = _select_key(self._keys, jws)
        if key is None:
            raise InvalidToken(_UNKNOWN_KEY)
        return key


class RemoteKeys:
    """The keys that `issuer` publishes at `uri`, or at the `jwks_uri` of its metadata if None.

    `issuer` is its issuer identifier as its metadata has it, None until that was fetched.
    """

    __slots__ = (
        "_bucket",
        "_error",
        "_fetched_at",
        "_fetches",
        "_fetching",
        "_issuer",
        "_keys",
        "_last_attempt_at",
        "_pending_step",
        "_uri",
        "_waiting_flows",
        "issuer",
    )

    def __init__(self, issuer: str, uri: str | None) -> None:
        self.issuer: str | None = None
        self._issuer = issuer
        self._uri = uri
        self._keys: Sequence[Key] = ()
        self._last_attempt_at: float | None = None
        self._fetched_at: float | None = None
        self._error: str | None = None
        self._fetches = 0  # that succeeded
        self._bucket = Bucket(_UNKNOWN_KEY_RATE)
        # A fetch in progress, the step that it waits for, and how many flows wait for its end.
        self._fetching: Flow[Sequence[Key]] | None = None
        self._pending_step: Step | None = None
        self._waiting_flows = 0

    def __repr__(self) -> str:
        return f"<{len(self._keys)} keys>"

    def find_key(self, jws: Jws, now: float) -> Flow[Key]:
        """Return the key with which a token claims to be signed. Fetch the keys if necessary.

        Raises:
            InvalidToken: there is no such key, or several keys fit.
            VerifierUnavailable: the keys could not be fetched, or were fetched too recently to
                fetch them again for an unknown key.
        """
        fetches = self._fetches
        if self._fetched_at is not None and now < self._fetched_at:
            self._bucket.restart(now)  # the clock was set back
        if self._fetched_at is None or not 0 <= now - self._fetched_at < _MAX_AGE:
            yield from self._refresh(now)
        key = _select_key(self._trusted_keys(now), jws)
        if key is None and self._fetches == fetches:
            # To wait for a fetch that is in progress costs nothing. After a failure the interval of
            # `_refresh` decides.
            if self._fetching is None and self._error is None:
                wait = self._bucket.take(now)
                if wait:
                    raise VerifierUnavailable(_UNCHECKED_KEY, retry_after=wait)
            yield from self._refresh(now)
            key = _select_key(self._trusted_keys(now), jws)
        if key is not None:
            return key
        if self._error is not None:
            raise VerifierUnavailable(self._error, retry_after=_RETRY_INTERVAL)
        raise InvalidToken(_UNKNOWN_KEY)

    def _trusted_keys(self, now: float) -> Sequence[Key]:
        """Return the keys, or none if the last successful fetch is too long ago."""
        return (
            self._keys
            if self._fetched_at is not None and now - self._fetched_at < _MAX_STALE_AGE
            else ()
        )

    def _refresh(self, now: float) -> Flow[None]:
        """Fetch the keys, unless that failed recently. The outcome is in `_keys` and `_error`.

        If a fetch is in progress, wait for it.
        """
        if self._fetching is None:
            last = self._last_attempt_at
            if self._error is not None and last is not None and 0 <= now - last < _RETRY_INTERVAL:
                return
            self._last_attempt_at = now
            self._error = "the keys of the issuer were requested, but did not arrive"
            self._fetching = self._fetch_keys()
            self._resume(None, now)  # runs to the first step
        self._waiting_flows += 1
        try:
            while self._pending_step is not None:
                step = self._pending_step
                outcome: HttpResponse | FetchFailed
                try:
                    outcome = yield step
                except FetchFailed as exc:
                    outcome = exc
                # Several flows may get the reply of one step. The first one resumes the fetch.
                if step is self._pending_step:
                    self._resume(outcome, now)
        finally:
            self._waiting_flows -= 1
            # If all waiting flows were closed, the fetch is abandoned. The next token may start
            # another one, but only after the usual interval: otherwise disconnecting clients could
            # cause any number of fetches.
            if not self._waiting_flows:
                self._fetching = None
                self._pending_step = None

    def _resume(self, outcome: HttpResponse | FetchFailed | None, now: float) -> None:
        """Resume the fetch with a response, and store its next step or its outcome."""
        assert self._fetching is not None
        try:
            if isinstance(outcome, FetchFailed):
                self._pending_step = self._fetching.throw(outcome)
            else:
                self._pending_step = self._fetching.send(outcome)
            return
        except StopIteration as done:
            self._keys = done.value
            self._fetched_at = now
            self._fetches += 1
            self._error = None
        except (AuthorizationFailed, FetchFailed, InvalidKey) as exc:
            # The keys that were fetched before stay valid for a while.
            self._error = f"the keys of the issuer could not be fetched: {exc}"
        self._fetching = None
        self._pending_step = None

    def _fetch_keys(self) -> Flow[Sequence[Key]]:
        """Fetch the keys, after the issuer's metadata if the URL isn't configured."""
        uri = self._uri
        named_by = None
        metadata = None
        if uri is None:
            # The URL is looked up for each fetch: the issuer may move its keys.
            local = is_loopback_url(self._issuer)
            found = yield from find_server_metadata(
                self._issuer, allow_loopback=local, cure=" With jwks_uri its metadata isn't needed."
            )
            metadata = found.metadata
            if metadata.jwks_uri is None:
                raise AuthorizationFailed("its metadata has no jwks_uri")
            uri = check_url(metadata.jwks_uri, "its jwks_uri", local=local)
            # Keys of another origin must not lead into another network (`may_fetch_named`).
            named_by = self._issuer if origin_of(uri) != origin_of(self._issuer) else None
        accept = ("accept", "application/jwk-set+json, application/json")
        reply: HttpResponse = yield Fetch(HttpRequest("GET", uri, [accept]), named_by)
        if reply.status != 200:
            raise AuthorizationFailed(f"HTTP status {reply.status}")
        if len(reply.body) > MAX_BODY:
            raise AuthorizationFailed(f"they are longer than {MAX_BODY} bytes")
        keys = load_keys(reply.body)
        if not keys:
            raise AuthorizationFailed("none of them is a public signature key of a supported kind")
        if metadata is not None:
            self.issuer = metadata.issuer
        return keys


def _select_key(keys: Sequence[Key], jws: Jws) -> Key | None:
    """Return the key that the token's header names, or None.

    A key without a `kid` is used if none with the token's `kid` fits.

    Raises:
        InvalidToken: several keys fit.
    """
    fitting = [key for key in keys if key.supports(jws.alg)]
    if jws.kid is not None:
        named = [key for key in fitting if key.kid == jws.kid]
        fitting = named or [key for key in fitting if key.kid is None]
    if len(fitting) > 1:
        raise InvalidToken("the token does not say which key it is signed with (kid)")
    return fitting[0] if fitting else None
