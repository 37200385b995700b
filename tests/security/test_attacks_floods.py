"""Floods against a protected server: one client, or a stranger, must not lock out the others.

Each test plays the flood over a socket, with limits that are scaled down, and tests that another
client is served meanwhile.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import trio
from joserfc.jwk import ECKey

from mcp_core.auth import HttpRequest, HttpResponse, IntrospectionVerifier, OAuthResourceServer
from mcp_core.auth.server import _dpop_replay, _introspection
from mcp_trio import serve_http
from mcp_trio.http_server._auth import endpoint_auth
from tests.core.auth.minting import ISSUER, JKT
from tests.harness.wire.http1_client import HttpWire
from tests.security.test_attacks_server import (
    RESOURCE,
    AttackedSite,
    attacked,
    attacked_server,
    call,
    fresh,
)


def call_with_proof(site: AttackedSite, sub: str) -> bytes:
    token = site.token(sub=sub, cnf={"jkt": JKT})
    return call("whoami", f"dpop: {site.keep(fresh(token))}", token=f"DPoP {token}")


async def test_dpop_flood_of_one_user_does_not_lock_out_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eve fills the cache of 30 proofs; only Eve gets 429, and a replay is still noticed."""
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
    """Invented key ids use up the fetches: the honest user must wait, not log in again."""
    later = 0.0

    def with_later_clock(server: Any, _: Any) -> Any:
        return endpoint_auth(server, lambda: time.time() + later)

    monkeypatch.setattr("mcp_trio.http_server._serve.endpoint_auth", with_later_clock)
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


class StallingIssuer:
    """The introspection endpoint: it knows the tokens of `users`, and stalls for all others."""

    def __init__(self, *users: str) -> None:
        self.users = users
        self.stalled = 0
        self.full = trio.Event()  # three are stalled

    async def fetch(self, request: HttpRequest, **options: Any) -> HttpResponse:
        (token,) = parse_qs(request.body.decode())["token"]
        if token not in self.users:
            self.stalled += 1
            if self.stalled == 3:
                self.full.set()
            await trio.sleep_forever()
        claims = {"active": True, "aud": RESOURCE, "sub": token}
        return HttpResponse(200, [], json.dumps(claims).encode())


async def test_introspection_flood_of_unknown_tokens_does_not_lock_out_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The issuer stalls for each unknown token: three may wait, and Ann is served as before."""
    monkeypatch.setattr("mcp_trio.http_server._auth._MAX_FETCHES", 6)
    monkeypatch.setattr(_introspection, "_MAX_UNKNOWN", 3)
    issuer = StallingIssuer("ann")
    monkeypatch.setattr("mcp_trio.auth._fetch.fetch", issuer.fetch)
    verifier = IntrospectionVerifier(
        ISSUER,
        RESOURCE,
        endpoint=f"{ISSUER}/introspect",
        client_id="x",
        client_secret="y",
        cache_seconds=0,
    )
    guard = OAuthResourceServer(RESOURCE, [ISSUER], verifier)
    async with trio.open_nursery() as nursery:
        start = partial(serve_http, attacked_server([], ""), auth=guard)
        address = await nursery.start(start)
        wires = [HttpWire(await trio.open_tcp_stream("127.0.0.1", address.port)) for _ in range(12)]
        wire = wires.pop()
        assert (await wire.ask(call(token="ann"))).status == 200
        for index, each in enumerate(wires[:3]):
            await each.send(call(token=f"unknown-{index}"))
        await issuer.full.wait()
        for index, each in enumerate(wires[3:]):
            answer = await each.ask(call(token=f"unknown-{3 + index}"))
            assert (answer.status, answer.headers[b"retry-after"]) == (503, b"5")
        assert (await wire.ask(call(token="ann"))).status == 200
        assert issuer.stalled == 3
        for each in (wire, *wires):
            await each.stream.aclose()
        nursery.cancel_scope.cancel()


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_body_and_session_floods_of_full_size_do_not_lock_out_others() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "hostile.py"
    argv = [sys.executable, str(script), "--only", "bodies", "sessions"]
    ran = subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=100)
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["bodies_growth"] <= 128  # MiB
    assert found["sessions_growth"] <= 32
    for attack in "bodies", "sessions":
        assert found[f"{attack}_honest_served"] > 0
        assert found[f"{attack}_honest_failed"] == 0
