"""Floods against a protected server: one client, or a stranger, must not lock out the others.

Each test plays the flood over a socket, with limits that are scaled down, and tests that another
client is served meanwhile.
"""

from __future__ import annotations

import time

import pytest
from joserfc.jwk import ECKey

from mcp_core.auth.server import _dpop_replay
from tests.core.auth.minting import JKT
from tests.security.test_attacks_server import Site, attacked, call, fresh


def call_with_proof(site: Site, sub: str) -> bytes:
    token = site.token(sub=sub, cnf={"jkt": JKT})
    return call("whoami", f"dpop: {site.keep(fresh(token))}", token=f"DPoP {token}")


async def test_dpop_flood_of_one_user_does_not_lock_out_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_dpop_replay, "_MAX_STORED", 30)
    monkeypatch.setattr(_dpop_replay, "_FEW", 4)
    monkeypatch.setattr(_dpop_replay, "_PERIOD", 1e12)  # all of this is within one
    async with attacked(monkeypatch, dpop=True) as site:
        before = call_with_proof(site, "bob")
        assert (await site.ask(before)).status == 200
        wire = await site.wire()
        async with wire.stream:
            answers = [await wire.ask(call_with_proof(site, "eve")) for _ in range(40)]
        assert [answer.status for answer in answers] == [200] * 29 + [429] * 11
        assert answers[-1].headers[b"retry-after"] == b"5"
        assert b"www-authenticate" not in answers[-1].headers
        for sub in ("bob", "carl", "dora"):
            assert (await site.ask(call_with_proof(site, sub))).status == 200
        # The cache is full, and a replay is still noticed.
        assert (await site.ask(before)).status == 401
        monkeypatch.undo()


async def test_jwks_flood_of_unknown_keys_does_not_make_rotated_key_invalid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = 0.0
    monkeypatch.setattr("mcp_trio.http_server._auth.time", lambda: time.time() + later)
    async with attacked(monkeypatch) as site:
        assert (await site.ask(call(token=site.token()))).status == 200
        wire = await site.wire()
        async with wire.stream:
            answers = [await wire.ask(call(token=site.forged({"kid": f"k{n}"}))) for n in range(20)]
        assert [answer.status for answer in answers] == [401] * 3 + [503] * 17
        assert b'error="invalid_token"' in answers[0].headers[b"www-authenticate"]
        assert site.issuer.log.count("GET /jwks") == 4
        # The issuer rotates its keys.
        new = site.issuer._key = ECKey.generate_key("P-256", {"kid": "2", "use": "sig"})
        request = call(token=site.forged({"kid": "2"}, new))
        waiting = await site.ask(request)
        assert waiting.status == 503
        assert 1 <= int(waiting.headers[b"retry-after"]) <= 30
        assert b"www-authenticate" not in waiting.headers
        later = float(waiting.headers[b"retry-after"])
        assert (await site.ask(request)).status == 200
        assert site.issuer.log.count("GET /jwks") == 5
        monkeypatch.undo()
