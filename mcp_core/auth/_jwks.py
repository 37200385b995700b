"""The keys by which an issuer's tokens are known: given, or fetched where it publishes them, when they are needed.

Rules of this file:

1. Whoever sends tokens must not make us send requests. One address is fetched, that of the configuration or of the metadata of
   the configured issuer, and nothing in a token names another. A key that is not known is a reason to fetch once in five
   minutes; after a failure, once in ten seconds.
2. Keys go out of date: after an hour they are fetched anew, and after a day without success they are not believed any more.
3. What cannot be told is no refusal: if the key of a token could not be looked for, that is `VerifierUnavailable` (503), not
   `BadToken` (401), for the token may be as good as ever.
4. Flows that wait for the keys at the same time yield one and the same `Fetch` object. Who runs them makes it once, and gives all
   of them its reply. If that one request is given up with the flow that came first, the next goes on.
5. What metadata say is good for one search: an issuer may move its keys. And it does not lead into the network of the server:
   keys at another origin than the issuer are fetched as something that the issuer has named (`Fetch.named_by`).

It does not know what is signed with the keys. RFC 7517, 8414.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core.urls import is_local, origin_of

from ._discovery import find_server
from ._errors import AuthorizationFailed, FetchFailed
from ._grant import VerifierUnavailable
from ._jose import BadKey, BadToken, load_keys
from ._steps import MAX_BODY, Fetch, HttpReply, HttpRequest
from ._urls import check_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._jose import Jws, Key
    from ._steps import Flow, Step

__all__ = ["GivenKeys", "PublishedKeys"]

# Seconds.
_REFETCH: Final = 300.0
_RETRY: Final = 10.0
_FRESH: Final = 3600.0
_BELIEVED: Final = 86400.0

_UNKNOWN: Final = "the token is signed with a key that its issuer does not publish"


class GivenKeys:
    """Keys that do not change."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = keys

    def __repr__(self) -> str:
        return f"<{len(self._keys)} keys>"

    def find(self, jws: Jws, now: float) -> Flow[Key]:
        """The key that a token was signed with, by what it says.

        Raises:
            BadToken: there is none, or it does not say which.
        """
        yield from ()
        key = _meant(self._keys, jws)
        if key is None:
            raise BadToken(_UNKNOWN)
        return key


class PublishedKeys:
    """The keys that `issuer` publishes at `uri`, or, if that is None, where its metadata says."""

    __slots__ = (
        "_asked_at",
        "_fetched_at",
        "_issuer",
        "_keys",
        "_problem",
        "_search",
        "_step",
        "_uri",
        "_waiting",
    )

    def __init__(self, issuer: str, uri: str | None) -> None:
        self._issuer = issuer
        self._uri = uri
        self._keys: Sequence[Key] = ()
        self._asked_at: float | None = None
        self._fetched_at: float | None = None
        self._problem: str | None = None
        # A search that is under way, what it wants done now, and how many flows wait for its end.
        self._search: Flow[Sequence[Key]] | None = None
        self._step: Step | None = None
        self._waiting = 0

    def __repr__(self) -> str:
        return f"<{len(self._keys)} keys>"

    def find(self, jws: Jws, now: float) -> Flow[Key]:
        """The key that a token was signed with, by what it says.

        Raises:
            BadToken: there is none, or it does not say which.
            VerifierUnavailable: that cannot be told now.
        """
        if self._fetched_at is None or not 0 <= now - self._fetched_at < _FRESH:
            yield from self._refresh(now)
        key = _meant(self._believed(now), jws)
        if key is None:
            yield from self._refresh(now)
            key = _meant(self._believed(now), jws)
        if key is not None:
            return key
        if self._problem is not None:
            raise VerifierUnavailable(self._problem)
        raise BadToken(_UNKNOWN)

    def _believed(self, now: float) -> Sequence[Key]:
        return self._keys if self._fetched_at is not None and now - self._fetched_at < _BELIEVED else ()

    def _refresh(self, now: float) -> Flow[None]:
        """Fetch the keys, unless that was done not long ago. What comes of it is in `_keys` and `_problem`."""
        if self._search is None:
            pause = _REFETCH if self._problem is None else _RETRY
            if self._asked_at is not None and 0 <= now - self._asked_at < pause:
                return
            self._asked_at = now
            self._problem = "the keys of the issuer were asked for and did not come"
            self._search = self._published()
            self._go_on(None, now)
        self._waiting += 1
        try:
            while self._step is not None:
                step = self._step
                answer: HttpReply | FetchFailed
                try:
                    answer = yield step
                except FetchFailed as exc:
                    answer = exc
                if step is self._step:
                    self._go_on(answer, now)
        finally:
            self._waiting -= 1
            # All who waited have gone. The next may ask again, but not at once, or hanging up would be a way to have us ask.
            if not self._waiting:
                self._search = self._step = None

    def _go_on(self, answer: HttpReply | FetchFailed | None, now: float) -> None:
        assert self._search is not None
        try:
            if isinstance(answer, FetchFailed):
                self._step = self._search.throw(answer)
            else:
                self._step = self._search.send(answer)
            return
        except StopIteration as done:
            self._keys, self._fetched_at, self._problem = done.value, now, None
        except (AuthorizationFailed, FetchFailed, BadKey) as exc:
            # What was known before is still believed, for a while.
            self._problem = f"the keys of the issuer could not be fetched: {exc}"
        self._search = self._step = None

    def _published(self) -> Flow[Sequence[Key]]:
        uri, named_by = self._uri, None
        if uri is None:
            local = is_local(self._issuer)
            metadata = yield from find_server(self._issuer, local=local)
            if metadata.jwks_uri is None:
                raise AuthorizationFailed("its metadata has no jwks_uri")
            uri = check_url(metadata.jwks_uri, "its jwks_uri", local=local)
            named_by = self._issuer if origin_of(uri) != origin_of(self._issuer) else None
        accepted = ("accept", "application/jwk-set+json, application/json")
        reply: HttpReply = yield Fetch(HttpRequest("GET", uri, [accepted]), named_by)
        if reply.status != 200:
            raise AuthorizationFailed(f"HTTP status {reply.status}")
        if len(reply.body) > MAX_BODY:
            raise AuthorizationFailed(f"they are longer than {MAX_BODY} bytes")
        keys = load_keys(reply.body)
        if not keys:
            raise AuthorizationFailed(
                "none of them is a public key for signatures of a kind that is used here"
            )
        return keys


def _meant(keys: Sequence[Key], jws: Jws) -> Key | None:
    """The one key that a token can mean. A key without a name may be any that is not there by name."""
    fitting = [key for key in keys if key.fits(jws.alg)]
    if jws.kid is not None:
        named = [key for key in fitting if key.kid == jws.kid]
        fitting = named or [key for key in fitting if key.kid is None]
    if len(fitting) > 1:
        raise BadToken("the token does not say which key it is signed with (kid)")
    return fitting[0] if fitting else None
