"""A fault of our own code is not taken for an invalid document, token, key or URL."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcp_core.auth import Secret
from mcp_core.auth import _jose as jose
from mcp_core.auth import _metadata as metadata
from mcp_core.auth import _resource_urls as resource_urls
from mcp_core.auth.client import _callback as callbacks
from mcp_core.auth.client import _discovery as discovery
from mcp_core.auth.client import _dpop_signer as dpop_signer
from mcp_core.auth.client import _registration as registration
from mcp_core.auth.client import _token_request as token_request
from mcp_core.auth.client import _tokens as tokens
from mcp_core.auth.client._registration import ClientIdentity
from mcp_core.auth.server import _dpop_verifier as dpop_verifier
from mcp_core.auth.server import _grant as grants
from mcp_core.auth.server import _introspection as introspection
from tests.core.auth.minting import (
    HOLDER,
    ISSUER,
    JKT,
    NOW,
    RESOURCE,
    keys_reply,
    proof,
    run_with_replies,
    token,
)
from tests.core.auth.play import AS, REDIRECT, Clock, Entropy, authority, profile

ENDPOINT = f"{ISSUER}/introspect"


class OwnFault(Exception):
    """A fault that no code expects."""


def fail_once(monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> None:
    """Have the first call of a function fail."""
    usual = getattr(place, name)
    calls: list[object] = []

    def failing(*arguments: Any, **keywords: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            raise OwnFault
        return usual(*arguments, **keywords)

    monkeypatch.setattr(place, name, failing)


def introspect() -> object:
    verifier = introspection.IntrospectionVerifier(
        ISSUER, RESOURCE, endpoint=ENDPOINT, client_id="rs", client_secret="s"
    )
    reply = keys_reply({"active": True, "sub": "a", "aud": RESOURCE})
    return run_with_replies(verifier.verify("t", NOW), [(ENDPOINT, reply)])


def verify_proof() -> None:
    dpop_verifier.DpopVerifier().verify(
        proof("t"),
        method="POST",
        urls=[RESOURCE],
        token="t",
        thumbprint=JKT,
        principal="alice",
        now=NOW,
    )


def read_the_callback() -> object:
    request = callbacks.new_authorization_request(authority(), REDIRECT, Entropy())
    state = request.state.reveal()
    url = f"{REDIRECT}?state={state}&iss={AS}&code=c"
    return callbacks.read_callback(url, request, iss_required=True)


def send_assertion() -> object:
    key = Secret(json.dumps(HOLDER.as_dict(private=True)))
    made_by = profile(client_id="c", private_key=key, issuer=AS)
    client = token_request.TokenEndpointClient(
        authority(),
        ClientIdentity("c", "private_key_jwt"),
        made_by,
        None,
        allow_loopback=True,
        entropy=Entropy(),
        wall_time=Clock(),
    )
    return next(client.client_credentials(()))


JWK = b'{"kty":"EC","crv":"P-256","x":"%b","y":"%b"}' % (b"A" * 43, b"A" * 43)
ROWS: list[tuple[Any, str, Callable[[], object]]] = [
    (grants, "parse_members", lambda: grants.read_claims(b"{}")),
    (grants, "_read_claims", lambda: grants.read_claims(b"{}")),
    (metadata, "_decode_any", lambda: metadata.is_json(b"{}")),
    (metadata, "_decode_error", lambda: metadata.read_error(b'{"error":"x"}')),
    (metadata, "_decode_token", lambda: metadata.read_token(b'{"access_token":"t"}')),
    (metadata, "_decode_members", lambda: metadata.read_token(b'{"access_token":5}')),
    (jose, "_read_header", lambda: jose.read_jws(token(), {"ES256"})),
    (jose, "parse_members", lambda: jose.read_jws(token(), {"ES256"})),
    (jose, "_read_key_set", lambda: jose.load_keys(b'{"keys":[]}')),
    (jose, "public_key", lambda: jose.load_keys(b'{"keys":[{}]}')),
    (jose, "_read_jwk", lambda: jose.public_key(JWK)),
    (jose, "_read_jwk", lambda: jose.private_key(HOLDER.as_dict(private=True))),
    (resource_urls, "urlsplit", lambda: resource_urls.with_port_of("http://a:0/", "http://b:1/")),
    (resource_urls, "origin_of", lambda: resource_urls.names_host("http://a/", "http://b/")),
    (callbacks, "urlsplit", read_the_callback),
    (callbacks, "parse_qsl", read_the_callback),
    (discovery, "urlsplit", lambda: discovery.is_relative("x")),
    (dpop_signer, "require_joserfc", dpop_signer.is_dpop_available),
    (
        dpop_signer,
        "new_key",
        lambda: dpop_signer.DpopSigner(Secret("A" * 43), entropy=Entropy(), wall_time=Clock()),
    ),
    (token_request, "private_key", send_assertion),
    (tokens, "_decode", lambda: tokens.decode_tokens(b"{}")),
    (
        registration,
        "_decode",
        lambda: registration._decode_registration(b"{}", AS, REDIRECT, (), NOW),
    ),
    (introspection, "parse_members", introspect),
    (dpop_verifier, "read_jws", verify_proof),
    (dpop_verifier, "public_key", verify_proof),
    (dpop_verifier, "parse_members", verify_proof),
]


@pytest.mark.parametrize(("place", "name", "call"), ROWS)
def test_fault_of_our_own_passes_through(
    place: Any, name: str, call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be hidden otherwise, and a peer would be blamed for it."""
    fail_once(monkeypatch, place, name)
    with pytest.raises(OwnFault):
        call()
