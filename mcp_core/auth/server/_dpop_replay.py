"""The replay cache of DPoP proofs: each proof is accepted once, and no client can fill the cache.

1. A proof is stored until it is too old to be accepted. The proofs of one principal that were
   issued within the same few seconds are one group, and are stored and forgotten together.
2. If the cache is full, the principal with the most proofs loses its oldest groups. Their proofs
   could be accepted again now, so every proof of this principal that is as old is refused from then
   on. Other principals don't notice.
3. If no principal has many, there are more clients than can be stored. The oldest groups of all are
   then forgotten, and proofs as old are refused: the lifetime of proofs gets shorter for all.

Source: RFC 9449, section 11.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core._errors import McpTrioError

from ._grant import VerifierUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ReplayCache", "TooManyProofs"]

# Proofs and floors; some 30 MB. A principal alone may use 1,300 proofs a second for 75 seconds.
_MAX_STORED: Final = 100_000
# Seconds of one group. As long as this, a principal that is far too fast may have to wait.
_PERIOD: Final = 5.0
# A principal with fewer proofs is never the one that fills the cache.
_FEW: Final = 100


class TooManyProofs(McpTrioError):
    """A refused proof: its principal used too many, so it is unknown if this one was used before.

    A new proof of the same principal is accepted, at the latest in the next period.
    """

    def __init__(self, principal: str) -> None:
        super().__init__(f"too many DPoP proofs of {principal!r} in the last minute")


class ReplayCache:
    """The digests of used proofs.

    `max_age` is the time, in seconds, for which a proof is accepted after it was issued.
    """

    __slots__ = ("_count", "_first", "_floor", "_floors", "_groups", "_max_age", "_stored")

    def __init__(self, max_age: float) -> None:
        self._max_age = max_age
        # By the period's number, then by principal.
        self._groups: dict[int, dict[str, set[bytes]]] = {}
        self._stored: dict[str, int] = {}  # proofs by principal
        self._count = 0  # of all proofs
        # The first period in which new proofs are accepted: of a principal, and of all.
        self._floors: dict[str, int] = {}
        self._floor = 0
        self._first = 0  # the period of the oldest proof that isn't too old

    def __len__(self) -> int:
        return self._count

    def add(self, principal: str, digest: bytes, issued_at: float, now: float) -> bool:
        """Store a proof. Return False if it was used before.

        The times are in seconds since 1970. The proof isn't older than `max_age`.

        Raises:
            TooManyProofs: the principal used so many proofs that proofs from this time are
                forgotten.
            VerifierUnavailable: there are more clients than can be stored.
        """
        self._discard_expired(now)
        period = int(issued_at // _PERIOD)
        if digest in self._groups.get(period, _NO_GROUPS).get(principal, ()):
            return False
        if self._count + len(self._floors) >= _MAX_STORED:
            self._make_room(now)
        if period < self._floors.get(principal, period):
            raise TooManyProofs(principal)
        if period < self._floor or self._count + len(self._floors) >= _MAX_STORED:
            raise VerifierUnavailable("more clients use DPoP proofs at once than can be stored")
        self._groups.setdefault(period, {}).setdefault(principal, set()).add(digest)
        self._stored[principal] = self._stored.get(principal, 0) + 1
        self._count += 1
        return True

    def _discard_expired(self, now: float) -> None:
        """Forget the periods whose proofs are all too old."""
        first = int((now - self._max_age) // _PERIOD)
        if first == self._first:
            return
        self._first = first
        for period in [period for period in self._groups if period < first]:
            self._discard_period(period)
        for principal in [name for name, floor in self._floors.items() if floor <= first]:
            del self._floors[principal]

    def _make_room(self, now: float) -> None:
        """Forget old proofs of the principal with the most, or of all if no one has many."""
        # This looks at all principals, so it makes room for many proofs at once.
        greediest = max(self._stored, key=self._stored.__getitem__, default="")
        stored = self._stored.get(greediest, 0)
        if stored >= _FEW:
            for period in sorted(self._groups):
                if greediest in self._groups[period]:
                    self._discard_group(period, greediest)
                    self._floors[greediest] = period + 1
                    if self._stored.get(greediest, 0) <= stored // 2:
                        return
        current = int(now // _PERIOD)
        for period in sorted(self._groups):
            # The proofs of this moment are never refused, so theirs cannot be forgotten.
            if period >= current or self._count + len(self._floors) < _MAX_STORED * 15 // 16:
                return
            self._discard_period(period)
            self._floor = period + 1

    def _discard_period(self, period: int) -> None:
        for principal in tuple(self._groups[period]):
            self._discard_group(period, principal)
        del self._groups[period]

    def _discard_group(self, period: int, principal: str) -> None:
        size = len(self._groups[period].pop(principal))
        self._count -= size
        left = self._stored[principal] - size
        if left:
            self._stored[principal] = left
        else:
            del self._stored[principal]


_NO_GROUPS: Final[Mapping[str, set[bytes]]] = {}
