"""The authorization scenarios of the official conformance suite, as lists of steps and replies.

A row is a step of the client and the reply of the suite's server, in the suite's order. What the
suite demands stands here as expected; a step that it forbids is in no list.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64decode
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl

import pytest
from joserfc.jwk import ECKey
from joserfc.jws import deserialize_compact

from mcp_core import AuthRequired
from mcp_core.auth import AuthorizationFailed, EnterpriseManaged, HttpResponse, JwtBearer, Secret
from tests.core.auth.play import (
    AS,
    MCP,
    MISSING,
    OAUTH,
    OIDC,
    OK,
    PRM,
    REDIRECT,
    RS,
    McpRequest,
    Script,
    authorizer,
    browsed,
    callback_reply,
    discovery,
    document_reply,
    first_login,
    forbidden,
    form,
    get,
    login,
    mcp,
    oauth_error,
    play,
    play_to_failure,
    posted,
    registered,
    resource,
    server,
    session,
    status,
    token,
    unauthorized,
)

TENANT = f"{AS}/tenant1"
CIMD = "https://conformance-test.local/client-metadata.json"
BASIC = "Basic " + b64encode(b"pre-registered-client:pre-registered-secret").decode()
URN = "urn:ietf:params:oauth"
JWT_BEARER = f"{URN}:grant-type:jwt-bearer"


def tenant_login(resource: str = MCP) -> Script:
    """Return the same login at an authorization server with a path."""
    fields = {"client_id": "test-client-id", "resource": resource}
    return [
        (posted(f"{TENANT}/register", client_name="tests"), registered()),
        (browsed(f"{TENANT}/authorize", **fields), callback_reply(TENANT)),
        (form(f"{TENANT}/token", grant_type="authorization_code", **fields), token()),
        (mcp("Bearer t1"), OK),
    ]


SCENARIOS: dict[str, Script] = {
    "metadata-default": first_login(),
    "metadata-var1": [
        (mcp(None), unauthorized(None)),
        (get(f"{RS}{PRM}/mcp"), resource()),
        (get(f"{AS}{OAUTH}"), MISSING),
        (get(f"{AS}{OIDC}"), server()),
        (posted(f"{AS}/register"), registered()),
        *login(),
        (mcp("Bearer t1"), OK),
    ],
    # the resource is the published origin, without a slash at the end; the root metadata is not
    # fetched
    "metadata-var2": [
        (mcp(None), unauthorized(None)),
        (get(f"{RS}{PRM}/mcp"), MISSING),
        (get(f"{RS}{PRM}"), resource(TENANT, resource=RS)),
        (get(f"{AS}{OAUTH}/tenant1"), server(TENANT)),
        *tenant_login(RS),
    ],
    "metadata-var3": [
        (mcp(None), unauthorized(f"{RS}/custom/metadata/location.json")),
        (get(f"{RS}/custom/metadata/location.json"), resource(TENANT)),
        (get(f"{AS}{OAUTH}/tenant1"), MISSING),
        (get(f"{AS}{OIDC}/tenant1"), MISSING),
        (get(f"{TENANT}{OIDC}"), server(TENANT)),
        *tenant_login(),
    ],
    "scope-from-www-authenticate": [
        (mcp(None), unauthorized(scope="mcp:basic")),
        *discovery(resource(scopes_supported=["mcp:basic", "mcp:read", "mcp:write"])),
        (posted(f"{AS}/register", scope="mcp:basic"), registered()),
        *login(scope="mcp:basic"),
        (mcp("Bearer t1"), OK),
    ],
    "scope-from-scopes-supported": [
        (mcp(None), unauthorized()),
        *discovery(resource(scopes_supported=["mcp:basic", "mcp:read", "mcp:write"])),
        (posted(f"{AS}/register"), registered()),
        *login(scope="mcp:basic mcp:read mcp:write"),
        (mcp("Bearer t1"), OK),
    ],
    "scope-omitted-when-undefined": [
        (mcp(None), unauthorized()),
        *discovery(),
        (posted(f"{AS}/register", scope=None), registered()),
        *login(scope=None),
        (mcp("Bearer t1"), OK),
    ],
    "offline-access-not-supported": [
        (mcp(None), unauthorized(scope="mcp:basic")),
        *discovery(metadata=server(scopes_supported=["mcp:basic", "mcp:read"])),
        (posted(f"{AS}/register"), registered()),
        *login(scope="mcp:basic", prompt=None),
        (mcp("Bearer t1"), OK),
    ],
    "iss-supported": first_login(),
    "iss-not-advertised": [
        (mcp(None), unauthorized()),
        *discovery(metadata=server(authorization_response_iss_parameter_supported=None)),
        (posted(f"{AS}/register"), registered()),
        *login(iss=None),
        (mcp("Bearer t1"), OK),
    ],
    "token-endpoint-auth-none": [
        (mcp(None), unauthorized()),
        *discovery(),
        (posted(f"{AS}/register", token_endpoint_auth_method="none"), registered(secret=None)),
        *login(),
        (mcp("Bearer t1"), OK),
    ],
    "token-endpoint-auth-basic": [
        (mcp(None), unauthorized()),
        *discovery(metadata=server(token_endpoint_auth_methods_supported=["client_secret_basic"])),
        (
            posted(f"{AS}/register", token_endpoint_auth_method="client_secret_basic"),
            registered(token_endpoint_auth_method="client_secret_basic"),
        ),
        (browsed(f"{AS}/authorize", client_id="test-client-id", resource=MCP), callback_reply()),
        (
            form(
                f"{AS}/token",
                "Basic " + b64encode(b"test-client-id:test-client-secret").decode(),
                client_secret=None,
                resource=MCP,
            ),
            token(),
        ),
        (mcp("Bearer t1"), OK),
    ],
    "token-endpoint-auth-post": [
        (mcp(None), unauthorized()),
        *discovery(metadata=server(token_endpoint_auth_methods_supported=["client_secret_post"])),
        (
            posted(f"{AS}/register", token_endpoint_auth_method="client_secret_post"),
            registered(token_endpoint_auth_method="client_secret_post"),
        ),
        (browsed(f"{AS}/authorize", client_id="test-client-id", resource=MCP), callback_reply()),
        (
            form(
                f"{AS}/token",
                client_id="test-client-id",
                client_secret="test-client-secret",
                resource=MCP,
            ),
            token(),
        ),
        (mcp("Bearer t1"), OK),
    ],
}


@pytest.mark.requirement("AC-4", "AC-9", "AC-10", "AC-11", "AF-1", "AF-3", "AF-6", "AQ-1", "AQ-3")
@pytest.mark.parametrize("name", SCENARIOS)
def test_login_scenarios_succeed(name: str) -> None:
    script = [*SCENARIOS[name], (mcp("Bearer t1"), OK)]
    assert play(session(authorizer(), "tools/list", "tools/call test-tool"), script) == 200


NEGATIVE: dict[str, tuple[Script, str]] = {
    "resource-mismatch": (
        [
            (mcp(None), unauthorized()),
            (get(f"{RS}{PRM}/mcp"), resource(resource="https://evil.example.com/mcp")),
        ],
        "is that of another resource",
    ),
    "metadata-issuer-mismatch": (
        [
            (mcp(None), unauthorized()),
            *discovery(metadata=server("https://attacker.example.com", AS)),
        ],
        "is that of another authorization server",
    ),
    **{
        name: (
            [
                (mcp(None), unauthorized()),
                *discovery(
                    metadata=server(authorization_response_iss_parameter_supported=promised)
                ),
                (posted(f"{AS}/register"), registered()),
                (browsed(f"{AS}/authorize"), callback_reply(iss)),
            ],
            text,
        )
        for name, promised, iss, text in (
            ("iss-supported-missing", True, None, "iss is missing"),
            ("iss-wrong-issuer", True, "https://evil.example.com", "iss does not match"),
            ("iss-unexpected", None, "https://evil.example.com", "iss does not match"),
            ("iss-normalized", True, f"{AS}/", "iss does not match"),
        )
    },
}


@pytest.mark.requirement("AC-7", "AC-12", "AF-9", "AF-10")
@pytest.mark.parametrize("name", NEGATIVE)
def test_login_scenarios_must_stop(name: str) -> None:
    script, text = NEGATIVE[name]
    failure = play_to_failure(session(authorizer()), script)
    assert isinstance(failure, AuthorizationFailed)
    assert text in str(failure)


@pytest.mark.requirement("AQ-2", "AQ-4")
def test_login_with_client_metadata_document_succeeds() -> None:
    fields = {"client_id": CIMD, "resource": MCP}
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(metadata=server(client_id_metadata_document_supported=True)),
        (browsed(f"{AS}/authorize", **fields), callback_reply()),
        (form(f"{AS}/token", grant_type="authorization_code", **fields), token()),
        (mcp("Bearer t1"), OK),
    ]
    play(session(authorizer(client_metadata_url=CIMD)), script)


@pytest.mark.requirement("AQ-2", "AQ-10")
def test_login_with_registered_client_succeeds() -> None:
    """The server has no registration endpoint, so the configured id and secret must do."""
    metadata = server(
        registration_endpoint=None, token_endpoint_auth_methods_supported=["client_secret_basic"]
    )
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(metadata=metadata),
        (browsed(f"{AS}/authorize", client_id="pre-registered-client"), callback_reply()),
        (form(f"{AS}/token", BASIC, grant_type="authorization_code", resource=MCP), token()),
        (mcp("Bearer t1"), OK),
    ]
    secret = Secret("pre-registered-secret")
    play(
        session(authorizer(client_id="pre-registered-client", client_secret=secret, issuer=AS)),
        script,
    )


@pytest.mark.requirement("AT-5", "AT-6", "AF-7")
def test_insufficient_scope_is_stepped_up() -> None:
    script: Script = [
        (mcp(None, "tools/list"), unauthorized(scope="mcp:basic")),
        *discovery(resource(scopes_supported=["mcp:profile"])),
        (posted(f"{AS}/register"), registered()),
        *login("t1", scope="mcp:basic"),
        (mcp("Bearer t1", "tools/list"), OK),
        (mcp("Bearer t1", "tools/call"), forbidden("mcp:write")),
        *login("t2", scope="mcp:basic mcp:write"),
        (mcp("Bearer t2", "tools/call"), OK),
    ]
    play(session(authorizer(), "tools/list", "tools/call"), script)


@pytest.mark.requirement("AT-7")
def test_insufficient_scope_after_step_up_is_not_retried() -> None:
    """One login, one more in case the user decides otherwise, and no third, for any operation."""
    auth = authorizer()
    store: dict[str, bytes] = {}
    script: Script = [
        (mcp(None), unauthorized(scope="mcp:admin")),
        *discovery(),
        (posted(f"{AS}/register"), registered()),
        *login("t1", scope="mcp:admin"),
        (mcp("Bearer t1"), forbidden("mcp:admin")),
        *login("t2", scope="mcp:admin"),
        (mcp("Bearer t2"), forbidden("mcp:admin")),
    ]
    failure = play_to_failure(session(auth, "tools/list"), script, store)
    assert isinstance(failure, AuthRequired)
    assert failure.scopes == ("mcp:admin",)
    assert "insufficient_scope" in failure.challenge
    again = play_to_failure(
        session(auth, "tools/call test-tool"), [(mcp("Bearer t2"), forbidden("mcp:admin"))], store
    )
    assert isinstance(again, AuthRequired)


@pytest.mark.requirement("AT-3", "AQ-8")
@pytest.mark.parametrize("wanted", [True, False])
def test_offline_access_scope_is_requested_if_supported(wanted: bool) -> None:
    """Asking for it adds `prompt=consent`, without which OpenID providers ignore the scope."""
    metadata = server(scopes_supported=["mcp:basic", "offline_access"])
    expected = {"scope": "mcp:basic offline_access", "prompt": "consent"}
    if not wanted:
        expected = {"scope": "mcp:basic", "prompt": None}  # type: ignore[dict-item]
    script: Script = [
        (mcp(None), unauthorized(scope="mcp:basic")),
        *discovery(metadata=metadata),
        (
            posted(f"{AS}/register", grant_types=["authorization_code", "refresh_token"]),
            registered(),
        ),
        *login(**expected),  # type: ignore[arg-type]
        (mcp("Bearer t1"), OK),
    ]
    play(session(authorizer(offline_access=wanted)), script)


@pytest.mark.requirement("AC-13", "AQ-7", "AT-2")
def test_authorization_server_moved_leads_to_new_registration() -> None:
    """Client id and refresh token belong to the old issuer, and the user is warned of the move."""
    new = "http://localhost:1003"
    script: Script = [
        (mcp(None), unauthorized(scope="mcp:basic")),
        *discovery(),
        (posted(f"{AS}/register"), registered("as1-client-id")),
        *login("t1", client_id="as1-client-id")[:1],
        (form(f"{AS}/token", client_id="as1-client-id"), token("t1", refresh_token="r1")),
        (mcp("Bearer t1"), OK),
        (mcp("Bearer t1"), unauthorized(scope="mcp:basic")),
        (get(f"{RS}{PRM}/mcp"), resource(new)),
        (get(f"{new}{OAUTH}"), server(new)),
        (posted(f"{new}/register", application_type="native"), registered("as2-client-id")),
        (
            browsed(f"{new}/authorize", client_id="as2-client-id", scope="mcp:basic"),
            callback_reply(new),
        ),
        (form(f"{new}/token", client_id="as2-client-id", refresh_token=None), token("t2")),
        (mcp("Bearer t2"), OK),
    ]
    store: dict[str, bytes] = {}
    auth = authorizer()
    play(session(auth, "tools/list", "tools/call test-tool"), script, store)
    assert {f"client:{AS}", f"client:{new}"} < set(store)
    (note,) = auth.take_warnings()
    assert "now names the authorization server" in note
    assert auth.generation == 2


@pytest.mark.requirement("AX-1", "AG-8")
def test_client_credentials_with_secret_are_exchanged() -> None:
    """No browser takes part: the secret goes into the Basic header, and no code is sent."""
    basic = "Basic " + b64encode(b"conformance-test-client:conformance-test-secret").decode()
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(),
        (
            form(f"{AS}/token", basic, grant_type="client_credentials", resource=MCP, code=None),
            token(),
        ),
        (mcp("Bearer t1"), OK),
    ]
    auth = authorizer(
        grant="client_credentials",
        client_id="conformance-test-client",
        client_secret=Secret("conformance-test-secret"),
        issuer=AS,
    )
    play(session(auth), script)


def claims_of(jwt: str, part: int = 1) -> dict[str, Any]:
    text = jwt.split(".")[part]
    claims: dict[str, Any] = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return claims


def pem() -> tuple[str, Any]:
    """Return a private key as the suite gives it (PKCS8, EC), and the key itself."""
    key = ECKey.generate_key("P-256", private=True)
    return key.as_pem(private=True).decode(), key


def verified(jwt: str, key: Any) -> None:
    deserialize_compact(jwt, key, algorithms=["ES256"])


def fields_of(step: Any) -> dict[str, str]:
    return dict(parse_qsl(step.request.body.decode()))


@pytest.mark.requirement("AX-1")
@pytest.mark.parametrize("algorithm", ["ES256", None])
def test_client_credentials_with_key_are_exchanged(algorithm: str | None) -> None:
    """The suite's server verifies signature and claims; the key implies an unset algorithm."""
    private, key = pem()

    def given(step: Any) -> HttpResponse:
        assertion = fields_of(step)["client_assertion"]
        verified(assertion, key)
        claims = claims_of(assertion)
        assert claims["iss"] == claims["sub"] == "conformance-test-client"
        assert claims["aud"] == AS
        assert claims["iat"] == 1_000_000 < claims["exp"]
        assert claims["jti"]
        return token()

    fields = {
        "grant_type": "client_credentials",
        "client_assertion_type": f"{URN}:client-assertion-type:jwt-bearer",
        "resource": MCP,
    }
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(metadata=server(token_endpoint_auth_methods_supported=["private_key_jwt"])),
        (form(f"{AS}/token", **fields), given),
        (mcp("Bearer t1"), OK),
    ]
    auth = authorizer(
        grant="client_credentials",
        client_id="conformance-test-client",
        private_key=Secret(private),
        signing_algorithm=algorithm,
        issuer=AS,
    )
    play(session(auth), script)


@pytest.mark.requirement("AX-2", "AG-8")
def test_enterprise_managed_grant_is_exchanged() -> None:
    """The identity provider changes the ID token into an assertion, which buys the access token."""
    idp = "http://localhost:1004/token"
    basic = "Basic " + b64encode(b"conformance-test-client:conformance-test-secret").decode()
    exchange = {
        "grant_type": f"{URN}:grant-type:token-exchange",
        "requested_token_type": f"{URN}:token-type:id-jag",
        "subject_token": "the-id-token",
        "subject_token_type": f"{URN}:token-type:id_token",
        "audience": AS,
        "resource": MCP,
        "client_id": "idp-client",
    }
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(metadata=server(token_endpoint_auth_methods_supported=["client_secret_basic"])),
        (
            form(idp, **exchange),
            document_reply(
                access_token="the-id-jag",
                issued_token_type=f"{URN}:token-type:id-jag",
                token_type="N_A",
            ),
        ),
        (
            form(f"{AS}/token", basic, grant_type=JWT_BEARER, assertion="the-id-jag", resource=MCP),
            token(),
        ),
        (mcp("Bearer t1"), OK),
    ]
    auth = authorizer(
        grant=EnterpriseManaged(lambda: "the-id-token", idp, "idp-client"),
        client_id="conformance-test-client",
        client_secret=Secret("conformance-test-secret"),
        issuer=AS,
    )
    play(session(auth), script)


WIF: Script = [
    (mcp(None), unauthorized()),
    *discovery(metadata=server(registration_endpoint=None)),
]


@pytest.mark.requirement("AX-3")
def test_workload_identity_assertion_is_exchanged() -> None:
    fields = {
        "grant_type": JWT_BEARER,
        "assertion": "valid-jwt",
        "client_id": "workload",
        "resource": MCP,
    }
    script = [*WIF, (form(f"{AS}/token", **fields), token()), (mcp("Bearer t1"), OK)]
    auth = authorizer(grant=JwtBearer(lambda: "valid-jwt"), client_id="workload", issuer=AS)
    play(session(auth), script)


@pytest.mark.requirement("AX-3")
@pytest.mark.parametrize("error", ["invalid_grant", "invalid_scope", "unauthorized_client"])
def test_wif_rejected_assertion_fails_at_once(error: str) -> None:
    script = [*WIF, (form(f"{AS}/token", grant_type=JWT_BEARER), oauth_error(error))]
    failure = play_to_failure(
        session(authorizer(grant=JwtBearer(lambda: "x"), client_id="workload", issuer=AS)), script
    )
    assert isinstance(failure, AuthorizationFailed)
    assert failure.error == error


class Proofs:
    """A checker for the proofs of one client, as in the suite: one key, no identifier twice."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.key: Any = None

    def check(
        self, proof: str, method: str, url: str, access: str | None, nonce: str | None
    ) -> None:
        header, claims = claims_of(proof, 0), claims_of(proof)
        assert (header["typ"], header["alg"]) == ("dpop+jwt", "ES256")
        assert set(header["jwk"]) == {"kty", "crv", "x", "y"}
        assert self.key in (None, header["jwk"])
        self.key = header["jwk"]
        verified(proof, ECKey.import_key(header["jwk"]))
        assert (claims["htm"], claims["htu"]) == (method, url)
        assert claims["iat"] == 1_000_000
        assert claims.get("nonce") == nonce
        if access is None:
            assert "ath" not in claims
        else:
            assert urlsafe_b64decode(claims["ath"] + "=") == sha256(access.encode()).digest()
        assert claims["jti"] not in self.seen
        self.seen.add(claims["jti"])

    def at_token_endpoint(self, reply: HttpResponse, nonce: str | None = None) -> Any:
        def given(step: Any) -> HttpResponse:
            self.check(dict(step.request.headers)["dpop"], "POST", f"{AS}/token", None, nonce)
            return reply

        return given

    def at_mcp(self, reply: HttpResponse, nonce: str | None = None) -> Any:
        def given(step: McpRequest) -> HttpResponse:
            self.check(step.headers["dpop"], "POST", MCP, "t1", nonce)
            return reply

        return given


@pytest.mark.requirement("AX-3")
@pytest.mark.parametrize("with_nonces", [False, True], ids=["dpop", "dpop-nonce"])
def test_login_with_dpop_binds_token(with_nonces: bool) -> None:
    """Each proof carries the nonce of its own server, and a nonce challenge costs one retry."""
    proofs = Proofs()
    code = form(f"{AS}/token", grant_type="authorization_code", code="test-auth-code")
    bound = token(token_type="DPoP")
    at_as = at_rs = None
    script: Script = [
        (mcp(None), unauthorized(scheme="DPoP")),
        *discovery(metadata=server(dpop_signing_alg_values_supported=["ES256"])),
        (posted(f"{AS}/register"), registered()),
        (browsed(f"{AS}/authorize"), callback_reply()),
    ]
    if with_nonces:
        at_as, at_rs = "as-nonce", "rs-nonce"
        challenge = status(400, ("dpop-nonce", at_as), error="use_dpop_nonce")
        script.append((code, proofs.at_token_endpoint(challenge)))
    script.append((code, proofs.at_token_endpoint(bound, at_as)))
    if with_nonces:
        www = (
            "www-authenticate",
            f'DPoP error="use_dpop_nonce", resource_metadata="{RS}{PRM}/mcp"',
        )
        script.append((mcp("DPoP t1"), proofs.at_mcp(status(401, www, ("dpop-nonce", "rs-nonce")))))
    script += [(mcp("DPoP t1"), proofs.at_mcp(OK, at_rs))] * 2
    play(session(authorizer(), "tools/list", "tools/call test-tool"), script)


@pytest.mark.requirement("AC-1", "AC-2")
def test_login_at_server_of_2025_03_26_uses_its_metadata() -> None:
    """There is no protected resource metadata: the MCP server's origin is itself the issuer."""
    script: Script = [
        (mcp(None), unauthorized(None)),
        (get(f"{RS}{PRM}/mcp"), MISSING),
        (get(f"{RS}{PRM}"), MISSING),
        (get(f"{RS}{OAUTH}"), server(RS, f"{RS}/oauth")),
        (posted(f"{RS}/oauth/register"), registered()),
        (
            browsed(f"{RS}/oauth/authorize", client_id="test-client-id", resource=MCP),
            callback_reply(RS),
        ),
        (
            form(f"{RS}/oauth/token", code="test-auth-code", redirect_uri=REDIRECT, resource=MCP),
            token(),
        ),
        (mcp("Bearer t1"), OK),
    ]
    play(session(authorizer()), script)


@pytest.mark.requirement("AC-1", "AC-2")
def test_login_at_server_of_2025_03_26_uses_default_endpoints() -> None:
    """Three 404s lead to `/authorize`, `/token` and `/register` at the origin."""
    script: Script = [
        (mcp(None), unauthorized(None)),
        (get(f"{RS}{PRM}/mcp"), MISSING),
        (get(f"{RS}{PRM}"), MISSING),
        (get(f"{RS}{OAUTH}"), MISSING),
        (posted(f"{RS}/register"), registered()),
        (browsed(f"{RS}/authorize", client_id="test-client-id"), callback_reply(None)),
        (
            form(
                f"{RS}/token", code="test-auth-code", client_id="test-client-id", client_secret=None
            ),
            token(),
        ),
        (mcp("Bearer t1"), OK),
    ]
    play(session(authorizer()), script)
