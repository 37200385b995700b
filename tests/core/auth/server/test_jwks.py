"""When keys are fetched and when not, flow by flow on a fake clock."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.auth._jose import InvalidToken, Jws, Key, public_key, read_jws
from mcp_core.auth._steps import Fetch, HttpResponse
from mcp_core.auth.server._grant import VerifierUnavailable
from mcp_core.auth.server._jwks import RemoteKeys, StaticKeys
from tests.core.auth.minting import (
    EC,
    ED,
    ISSUER,
    JWKS_URI,
    NO_REPLY,
    NOW,
    RSA,
    keys_reply,
    ours,
    public,
    run_with_replies,
    run_without_steps,
    token,
)

PLACE = f"{ISSUER}/.well-known/oauth-authorization-server"
OIDC = f"{ISSUER}/.well-known/openid-configuration"
OLD, NEW = keys_reply(public(EC)), keys_reply(public(EC, RSA))
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def by(alg: str) -> Jws:
    return read_jws(token(alg), [alg])


BY_EC, BY_RSA, BY_ED = by("ES256"), by("RS256"), by("EdDSA")


def published(reply: HttpResponse | None = OLD) -> RemoteKeys:
    """Return the keys at `JWKS_URI`, fetched at `NOW` unless `reply` is None."""
    keys = RemoteKeys(ISSUER, JWKS_URI)
    if reply is not None:
        assert run_with_replies(keys.find_key(BY_EC, NOW), [(JWKS_URI, reply)]).kid == "ec"
    return keys


def refused(keys: RemoteKeys, jws: Jws, now: float, script: list[Any] | None = None) -> str:
    with pytest.raises(InvalidToken) as caught:
        run_with_replies(keys.find_key(jws, now), script or [])
    return str(caught.value)


def unavailable(keys: RemoteKeys, jws: Jws, now: float, script: list[Any] | None = None) -> str:
    with pytest.raises(VerifierUnavailable) as caught:
        run_with_replies(keys.find_key(jws, now), script or [])
    return str(caught.value)


def test_static_keys_fetch_nothing() -> None:
    keys = StaticKeys([ours(EC)])
    assert run_without_steps(keys.find_key(BY_EC, NOW)).kid == "ec"
    with pytest.raises(InvalidToken, match="does not publish"):
        run_without_steps(keys.find_key(BY_RSA, NOW))
    assert repr(keys) == "<1 keys>"


def test_jwks_first_token_fetches_once() -> None:
    keys = RemoteKeys(ISSUER, JWKS_URI)
    flow = keys.find_key(BY_EC, NOW)
    step = next(flow)
    assert isinstance(step, Fetch)
    assert step.request.method == "GET"
    assert step.request.headers == [("accept", "application/jwk-set+json, application/json")]
    assert step.request.body == b""
    with pytest.raises(StopIteration) as stop:
        flow.send(OLD)
    assert isinstance(stop.value.value, Key)
    for later in (0.0, 1.0, HOUR - 1):
        assert run_without_steps(keys.find_key(BY_EC, NOW + later)).kid == "ec"
    assert repr(keys) == "<1 keys>"


def test_jwks_unknown_key_fetches_every_half_minute() -> None:
    """The other tokens get 503, and the time to wait."""
    keys = published()
    fetched_at: list[float] = []
    waits: dict[int, float] = {}
    for seconds in range(120):
        flow = keys.find_key(BY_RSA, NOW + seconds)
        try:
            step = next(flow)
            assert isinstance(step, Fetch)
            fetched_at.append(seconds)
            flow.send(OLD)
        except VerifierUnavailable as exc:
            waits[seconds] = exc.retry_after
        except InvalidToken:
            continue
    assert fetched_at == [0, 1, 2, 31, 61, 91]
    assert waits[3] == pytest.approx(27)
    assert waits[29] == pytest.approx(1)
    assert run_without_steps(keys.find_key(BY_EC, NOW + 120)).kid == "ec"


def test_jwks_rotated_key_is_never_called_invalid() -> None:
    """Strangers have used up all fetches for unknown keys when the issuer rotates."""
    keys = published()
    for _ in range(3):
        refused(keys, BY_ED, NOW + 100, [(JWKS_URI, OLD)])
    assert "when it was last asked" in unavailable(keys, BY_RSA, NOW + 101)
    assert run_with_replies(keys.find_key(BY_RSA, NOW + 130), [(JWKS_URI, NEW)]).kid == "rsa"


def test_jwks_rotated_keys_are_used() -> None:
    keys = published()
    assert run_with_replies(keys.find_key(BY_RSA, NOW + 1), [(JWKS_URI, NEW)]).kid == "rsa"
    assert run_without_steps(keys.find_key(BY_EC, NOW + 2)).kid == "ec"
    # The old key is withdrawn, which is noticed after an hour.
    only = keys_reply(public(RSA))
    assert run_with_replies(keys.find_key(BY_RSA, NOW + 1 + HOUR), [(JWKS_URI, only)]).kid == "rsa"
    assert "does not publish" in refused(keys, BY_EC, NOW + 2 + HOUR, [(JWKS_URI, only)])


def test_jwks_stale_keys_are_refetched_and_trusted_for_a_day() -> None:
    """An unreachable issuer must not stop a running service, but not for longer than a day."""
    keys = published()
    assert run_with_replies(keys.find_key(BY_EC, NOW + HOUR), [(JWKS_URI, NO_REPLY)]).kid == "ec"
    assert run_without_steps(keys.find_key(BY_EC, NOW + HOUR + 9)).kid == "ec"
    assert run_with_replies(keys.find_key(BY_EC, NOW + HOUR + 10), [(JWKS_URI, OLD)]).kid == "ec"
    assert (
        run_with_replies(
            keys.find_key(BY_EC, NOW + 2 * HOUR + DAY - 3601), [(JWKS_URI, NO_REPLY)]
        ).kid
        == "ec"
    )
    assert "nobody is there" in unavailable(
        keys, BY_EC, NOW + HOUR + DAY + 10, [(JWKS_URI, NO_REPLY)]
    )
    assert "nobody is there" in unavailable(keys, BY_EC, NOW + HOUR + DAY + 19)
    assert (
        run_with_replies(keys.find_key(BY_EC, NOW + HOUR + DAY + 20), [(JWKS_URI, OLD)]).kid == "ec"
    )


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (NO_REPLY, "could not be fetched: nobody is there"),
        (HttpResponse(500), "HTTP status 500"),
        (HttpResponse(404, [], OLD.body), "HTTP status 404"),
        (HttpResponse(302, [("location", "https://evil.example/keys")]), "HTTP status 302"),
        (HttpResponse(204), "HTTP status 204"),
        (HttpResponse(200, [], b""), "not a JWK Set"),
        (HttpResponse(200, [], b"<html>"), "not a JWK Set"),
        (HttpResponse(200, [], b'{"keys":{}}'), "not a JWK Set"),
        (HttpResponse(200, [], OLD.body + b" " * 65_536), "longer than 65536 bytes"),
        (keys_reply({"keys": []}), "none of them is a public signature key"),
        (
            keys_reply({"keys": [{"kty": "oct", "k": "AAAA"}]}),
            "none of them is a public signature key",
        ),
        (
            keys_reply({"keys": [EC.as_dict(private=True)]}),
            "none of them is a public signature key",
        ),
        (keys_reply({"keys": public(EC)["keys"] * 51}), "has 51 keys"),
    ],
)
def test_jwks_failed_fetch_is_unavailable_and_retried(reply: Any, words: str) -> None:
    keys = published(None)
    assert words in unavailable(keys, BY_EC, NOW, [(JWKS_URI, reply)])
    for later in (0.0, 1.0, 9.9):
        assert words in unavailable(keys, BY_EC, NOW + later)
    assert words in unavailable(keys, BY_EC, NOW + 10, [(JWKS_URI, reply)])
    assert run_with_replies(keys.find_key(BY_EC, NOW + 20), [(JWKS_URI, OLD)]).kid == "ec"
    # Known keys stay valid if a later fetch fails; unknown ones cannot be decided.
    assert words in unavailable(keys, BY_RSA, NOW + 20 + 5 * MINUTE, [(JWKS_URI, reply)])
    assert run_without_steps(keys.find_key(BY_EC, NOW + 21 + 5 * MINUTE)).kid == "ec"
    assert (
        run_with_replies(keys.find_key(BY_RSA, NOW + 31 + 5 * MINUTE), [(JWKS_URI, NEW)]).kid
        == "rsa"
    )


def test_jwks_of_65536_bytes_is_accepted() -> None:
    padded = HttpResponse(200, [], OLD.body + b" " * (65_536 - len(OLD.body)))
    assert run_with_replies(published(None).find_key(BY_EC, NOW), [(JWKS_URI, padded)]).kid == "ec"


def test_jwks_clock_set_back_still_fetches() -> None:
    keys = published()
    assert run_with_replies(keys.find_key(BY_RSA, NOW - DAY), [(JWKS_URI, NEW)]).kid == "rsa"
    assert run_without_steps(keys.find_key(BY_RSA, NOW - DAY + 1)).kid == "rsa"
    keys = published()
    refused(keys, BY_RSA, NOW + DAY, [(JWKS_URI, OLD)])
    refused(keys, BY_RSA, NOW + DAY + 1, [(JWKS_URI, OLD)])
    refused(keys, BY_ED, NOW, [(JWKS_URI, OLD)])  # older than the last fetch: fetched again
    refused(keys, BY_ED, NOW + 1, [(JWKS_URI, OLD)])
    refused(keys, BY_ED, NOW + 2, [(JWKS_URI, OLD)])
    assert "last asked" in unavailable(keys, BY_RSA, NOW + 3)
    assert run_with_replies(keys.find_key(BY_RSA, NOW + 31), [(JWKS_URI, NEW)]).kid == "rsa"


# -- Concurrent flows ------------------------------------------------------------------------------


def test_jwks_concurrent_flows_share_one_fetch() -> None:
    """All flows yield the same `Fetch` step, so the driver sends one request for all."""
    keys = published(None)
    flows = [
        keys.find_key(jws, NOW + index) for index, jws in enumerate((BY_EC, BY_EC, BY_RSA, BY_ED))
    ]
    steps = [next(flow) for flow in flows]
    assert all(step is steps[0] for step in steps)
    outcomes: list[str] = []
    for flow in flows:
        try:
            flow.send(NEW)
        except StopIteration as stop:
            outcomes.append(stop.value.kid)
        except InvalidToken as exc:
            outcomes.append(str(exc)[-15:])
    assert outcomes == ["ec", "ec", "rsa", "does not publish"[-15:]]
    assert run_without_steps(keys.find_key(BY_EC, NOW + 5)).kid == "ec"


def test_jwks_shared_fetch_failure_fails_all_flows() -> None:
    keys = published(None)
    flows = [keys.find_key(BY_EC, NOW) for _ in range(3)]
    for flow in flows:
        next(flow)
    for flow in flows:
        with pytest.raises(VerifierUnavailable, match="nobody is there"):
            flow.throw(NO_REPLY)


def test_jwks_first_flow_closed_others_get_reply() -> None:
    keys = published(None)
    first, second = keys.find_key(BY_EC, NOW), keys.find_key(BY_EC, NOW)
    assert next(first) is next(second)
    first.close()
    third = keys.find_key(BY_EC, NOW + 1)
    next(third)
    for flow in (second, third):
        with pytest.raises(StopIteration):
            flow.send(OLD)


def test_jwks_closed_flows_do_not_cause_more_fetches() -> None:
    keys = published(None)
    fetched_at = []
    for tenths in range(300):
        flow = keys.find_key(BY_EC, NOW + tenths / 10)
        try:
            next(flow)
        except VerifierUnavailable:
            continue
        else:
            fetched_at.append(tenths)
            flow.close()
    assert fetched_at == [0, 100, 200]


def test_jwks_reply_after_fetch_ended_is_ignored() -> None:
    keys = published(None)
    first = keys.find_key(BY_EC, NOW)
    next(first)
    first.close()
    second, third = keys.find_key(BY_EC, NOW + 10), keys.find_key(BY_RSA, NOW + 10)
    assert next(second) is next(third)
    with pytest.raises(StopIteration):
        second.send(NEW)
    # The third flow gets another outcome, which has no effect any more.
    with pytest.raises(StopIteration):
        third.throw(NO_REPLY)


# -- Where the keys are ----------------------------------------------------------------------------


def metadata(**more: Any) -> HttpResponse:
    return HttpResponse(
        200, [], json.dumps({"issuer": ISSUER, "token_endpoint": f"{ISSUER}/token"} | more).encode()
    )


def test_jwks_url_comes_from_issuer_metadata() -> None:
    keys = RemoteKeys(ISSUER, None)
    script = [(PLACE, HttpResponse(404)), (OIDC, metadata(jwks_uri=JWKS_URI)), (JWKS_URI, OLD)]
    assert run_with_replies(keys.find_key(BY_EC, NOW), script).kid == "ec"
    # The URL is looked up each time: the issuer may have moved its keys.
    elsewhere = f"{ISSUER}/new-keys"
    moved = [(PLACE, metadata(jwks_uri=elsewhere)), (elsewhere, NEW)]
    assert run_with_replies(keys.find_key(BY_RSA, NOW + HOUR), moved).kid == "rsa"


@pytest.mark.parametrize(
    ("uri", "found_at", "named_by"),
    [
        (JWKS_URI, None, None),  # configured
        (None, f"{ISSUER}/keys", None),
        (None, "https://AS.example.com:443/keys", None),
        (None, "https://as.example.com:8443/keys", ISSUER),
        (None, "https://cdn.example.com/keys", ISSUER),
        (None, "https://169.254.169.254/keys", ISSUER),
    ],
)
def test_jwks_url_of_other_origin_is_marked_named_by(
    uri: str | None, found_at: str | None, named_by: str | None
) -> None:
    flow = RemoteKeys(ISSUER, uri).find_key(BY_EC, NOW)
    step = next(flow)
    assert isinstance(step, Fetch)
    if found_at is not None:
        assert step.named_by is None
        step = flow.send(metadata(jwks_uri=found_at))
        assert isinstance(step, Fetch)
        assert step.request.url == found_at
    assert step.named_by == named_by


def test_jwks_concurrent_flows_share_metadata_fetch() -> None:
    keys = RemoteKeys(ISSUER, None)
    flows = [keys.find_key(BY_EC, NOW) for _ in range(3)]
    first = {id(next(flow)) for flow in flows}
    second = {id(flow.send(metadata(jwks_uri=JWKS_URI))) for flow in flows}
    assert len(first) == len(second) == 1
    assert first != second
    for flow in flows:
        with pytest.raises(StopIteration):
            flow.send(OLD)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([(PLACE, NO_REPLY)], "nobody is there"),
        ([(PLACE, HttpResponse(404)), (OIDC, HttpResponse(404))], "was not found"),
        ([(PLACE, metadata())], "no jwks_uri"),
        ([(PLACE, metadata(jwks_uri="http://as.example.com/keys"))], "is not https"),
        ([(PLACE, metadata(jwks_uri="file:///etc/passwd"))], "neither https nor http"),
        ([(PLACE, metadata(jwks_uri="https://u@as.example.com/keys"))], "user name"),
        (
            [(PLACE, metadata(issuer="https://evil.example", jwks_uri=JWKS_URI))],
            "another authorization server",
        ),
        ([(PLACE, metadata(jwks_uri=JWKS_URI)), (JWKS_URI, HttpResponse(503))], "HTTP status 503"),
    ],
)
def test_jwks_unusable_metadata_is_unavailable(script: list[Any], words: str) -> None:
    keys = RemoteKeys(ISSUER, None)
    assert words in unavailable(keys, BY_EC, NOW, script)
    assert words in unavailable(keys, BY_EC, NOW + 9)


def test_jwks_same_kid_two_algorithms_selects_by_algorithm() -> None:
    both = public(RSA, EC)
    for key in both["keys"]:
        key["kid"] = "same"
    keys = published(None)
    jws = read_jws(token("RS256", header={"kid": "same"}), ["RS256"])
    assert run_with_replies(keys.find_key(jws, NOW), [(JWKS_URI, keys_reply(both))]).kind == "RSA"
    assert (
        run_without_steps(
            keys.find_key(read_jws(token(header={"kid": "same"}), ["ES256"]), NOW)
        ).kind
        == "P-256"
    )
    assert public_key(json.dumps(both["keys"][1]).encode()).kid == "same"
    assert ED.kid == "ed"
