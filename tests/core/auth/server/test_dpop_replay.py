"""The replay cache: bounded, never accepts a proof twice, and only the greediest client notices."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.auth.server import _dpop_replay
from mcp_core.auth.server._dpop_replay import ReplayCache, TooManyProofs
from mcp_core.auth.server._grant import VerifierUnavailable
from tests.core.auth.minting import NOW
from tests.levels import fewer_examples

PERIOD = 5


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_dpop_replay, "_MAX_STORED", 64)
    monkeypatch.setattr(_dpop_replay, "_FEW", 4)


def size(cache: ReplayCache) -> int:
    return len(cache) + len(cache._floors)


def digest(*words: object) -> bytes:
    return sha256(repr(words).encode()).digest()


def use(cache: ReplayCache, principal: str, name: object, issued: float, now: float) -> bool:
    return cache.add(principal, digest(principal, name), issued, now)


def flood(cache: ReplayCache, principal: str, count: int, now: float) -> int:
    """Use `count` proofs of `principal`, all issued at `now`. Return how many were accepted."""
    accepted = 0
    for name in range(count):
        try:
            accepted += use(cache, principal, (now, name), now, now)
        except TooManyProofs:
            continue
    return accepted


def test_replay_cache_accepts_a_proof_once() -> None:
    cache = ReplayCache(60)
    assert use(cache, "ann", "a", NOW, NOW)
    assert use(cache, "ann", "b", NOW, NOW)
    for later in (0, 30, 60):
        assert not use(cache, "ann", "a", NOW, NOW + later)
    assert len(cache) == 2
    assert use(cache, "ann", "c", NOW + 61 + PERIOD, NOW + 61 + PERIOD)
    assert len(cache) == 1


def test_replay_cache_flood_of_one_does_not_refuse_others() -> None:
    cache = ReplayCache(60)
    assert use(cache, "bob", "first", NOW, NOW)
    for second in range(60):
        now = NOW + second
        flood(cache, "eve", 100, now)
        if second % 4 == 0:
            assert use(cache, "bob", second, now, now)
            assert not use(cache, "bob", second, now, now)
        if second % 10 == 0:
            assert use(cache, f"newcomer {second}", 0, now, now)
        assert size(cache) <= 64
    assert not use(cache, "bob", "first", NOW, NOW + 60)


def test_replay_cache_flood_harms_its_principal_for_one_period() -> None:
    cache = ReplayCache(60)
    start = NOW - NOW % PERIOD
    assert 32 <= flood(cache, "eve", 1000, start) <= 64
    with pytest.raises(TooManyProofs, match="too many DPoP proofs of 'eve'"):
        use(cache, "eve", "later", start + 4.9, start + 4.9)
    assert use(cache, "eve", "next", start + PERIOD, start + PERIOD)


def test_replay_cache_forgotten_proofs_are_refused() -> None:
    """Only the client that sends most loses times; what it forgot is never accepted twice."""
    cache = ReplayCache(60)
    start = NOW - NOW % PERIOD
    for name in range(20):
        assert use(cache, "eve", name, start + name, start + name)
    assert flood(cache, "ann", 64, start + 20) == 64 - 20
    # Eve has fewer proofs than ann, and has lost none.
    assert all(not use(cache, "eve", name, start + name, start + 21) for name in range(20))
    # Ann's forgotten proofs could be replayed, so none of that time is accepted any more.
    cache = ReplayCache(60)
    for name in range(64):
        assert use(cache, "ann", name, start + name % 20, start + 20)
    assert use(cache, "bob", 0, start + 20, start + 20)
    for name in range(64):
        try:
            assert not use(cache, "ann", name, start + name % 20, start + 20)
        except TooManyProofs:
            assert name % 20 < 10
    assert use(cache, "ann", "fresh", start + 20, start + 20)


def test_replay_cache_more_principals_than_places_shortens_the_lifetime() -> None:
    """All the same no proof is accepted twice, also from the times that were forgotten."""
    cache = ReplayCache(60)
    start = NOW - NOW % PERIOD
    used = {f"p{index}": start + index // 12 * PERIOD for index in range(60)}
    for principal, issued in used.items():
        assert use(cache, principal, 0, issued, start + 20)
    for index in range(200):
        now = start + 25 + index / 10
        used[f"q{index}"] = now
        assert use(cache, f"q{index}", 0, now, now)
        assert size(cache) <= 64
    with pytest.raises(VerifierUnavailable, match="more clients"):
        use(cache, "p0", 0, start, start + 45)
    for principal, issued in used.items():
        with suppress(VerifierUnavailable):
            assert not use(cache, principal, 0, issued, start + 45)


def test_replay_cache_full_of_this_moment_is_unavailable() -> None:
    cache = ReplayCache(60)
    for index in range(64):
        assert use(cache, f"p{index}", 0, NOW, NOW)
    with pytest.raises(VerifierUnavailable, match="more clients"):
        use(cache, "one more", 0, NOW, NOW)
    assert not use(cache, "p0", 0, NOW, NOW)
    assert use(cache, "one more", 0, NOW + PERIOD, NOW + PERIOD)


def test_replay_cache_refused_time_ends_when_its_proofs_are_too_old() -> None:
    """A floor takes a place, and is kept for as long as a forgotten proof could be replayed."""
    cache = ReplayCache(60)
    start = NOW - NOW % PERIOD
    flood(cache, "eve", 64, start)
    assert use(cache, "bob", 0, start, start)
    assert (len(cache), size(cache)) == (1, 2)
    for later in (PERIOD, 60, 64.9):
        with pytest.raises(TooManyProofs):
            use(cache, "eve", (start, 0), start, start + later)
        assert not use(cache, "bob", 0, start, start + later)
    assert use(cache, "eve", "new", start + 65, start + 65)
    assert (len(cache), size(cache)) == (1, 1)
    assert cache._stored == {"eve": 1}
    assert len(cache._groups) == 1


def test_replay_cache_greediest_principal_loses_the_older_half() -> None:
    cache = ReplayCache(60)
    start = NOW - NOW % PERIOD
    now = start + 7 * PERIOD
    for name in range(64):
        assert use(cache, "eve", name, start + name // 8 * PERIOD, now)
    assert use(cache, "bob", 0, start, now)
    assert (len(cache), size(cache)) == (33, 34)
    with pytest.raises(TooManyProofs):
        use(cache, "eve", "late", start + 4 * PERIOD - 0.1, now)
    assert not use(cache, "eve", 32, start + 4 * PERIOD, now)
    assert use(cache, "eve", "late", start + 4 * PERIOD, now)


@pytest.mark.parametrize(("each", "has_room"), [(4, True), (3, False)])
def test_replay_cache_principal_with_few_proofs_loses_none(each: int, has_room: bool) -> None:
    cache = ReplayCache(60)
    for place in range(64):
        assert use(cache, f"p{place // each}", place, NOW, NOW)
    if has_room:
        assert use(cache, "newcomer", 0, NOW, NOW)
        with pytest.raises(TooManyProofs):
            use(cache, "p0", 0, NOW, NOW)
    else:
        with pytest.raises(VerifierUnavailable):
            use(cache, "newcomer", 0, NOW, NOW)
        assert not use(cache, "p0", 0, NOW, NOW)
    assert not use(cache, "p1", each, NOW, NOW)


@pytest.mark.parametrize("has_floor", [False, True])
def test_replay_cache_of_many_principals_makes_room_for_a_sixteenth(has_floor: bool) -> None:
    """The oldest periods of all are forgotten until a sixteenth is free; floors take places too."""
    cache = ReplayCache(600)
    start = NOW - NOW % PERIOD
    if has_floor:
        flood(cache, "eve", 64, start)
    places = 63 if has_floor else 64
    now = start + 63 * PERIOD
    for place in range(places):
        assert use(cache, f"p{place}", 0, start + place * PERIOD, now)
    assert size(cache) == 64
    assert use(cache, "newcomer", 0, now, now)
    assert size(cache) == 60
    for place in range(places):
        if place < 5:
            with pytest.raises(VerifierUnavailable):
                use(cache, f"p{place}", 0, start + place * PERIOD, now)
        else:
            assert not use(cache, f"p{place}", 0, start + place * PERIOD, now)
    assert len(cache._groups) == 59


def test_replay_cache_floors_count_when_all_proofs_are_of_this_moment() -> None:
    cache = ReplayCache(60)
    flood(cache, "eve", 64, NOW)
    for place in range(63):
        assert use(cache, f"p{place}", 0, NOW, NOW)
    assert (len(cache), size(cache)) == (63, 64)
    with pytest.raises(VerifierUnavailable):
        use(cache, "newcomer", 0, NOW, NOW)


@fewer_examples(2)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"),  # principal
            st.integers(0, 30),  # name
            st.floats(-60, 15),  # time of issue, from now
            st.floats(0, 20),  # seconds since the proof before
        ),
        max_size=400,
    )
)
def test_replay_cache_any_sequence_is_bounded_and_accepts_nothing_twice(
    proofs: list[tuple[str, int, float, float]],
) -> None:
    """Principals flood with random names and times; refusing is allowed, accepting twice isn't."""
    cache = ReplayCache(60)
    accepted: set[tuple[str, int, float]] = set()
    now = float(NOW)
    for principal, name, ahead, pause in proofs:
        now += pause
        issued = round(now + ahead)
        if not -15 <= now - issued <= 60:
            continue
        key = principal, name, issued
        try:
            if cache.add(principal, digest(*key), issued, now):
                assert key not in accepted
                accepted.add(key)
        except (TooManyProofs, VerifierUnavailable):
            pass
        assert size(cache) <= 64
        assert len(cache) == sum(cache._stored.values())
