"""Token requests of every grant: their content, and the handling of responses."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64decode
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import ECKey
from msgspec.structs import replace

from mcp_core.auth import (
    AuthorizationFailed,
    EnterpriseManaged,
    Fetch,
    FetchFailed,
    HttpResponse,
    Secret,
)
from mcp_core.auth._jose import private_key, read_jws
from mcp_core.auth.client._callback import code_challenge
from mcp_core.auth.client._dpop_signer import DpopSigner, new_seed
from mcp_core.auth.client._registration import ClientIdentity
from mcp_core.auth.client._token_request import TokenEndpointClient
from tests.core.auth.play import (
    AS,
    MCP,
    REDIRECT,
    Clock,
    Entropy,
    Script,
    authority,
    browsed,
    callback_reply,
    document_reply,
    form,
    oauth_error,
    play,
    play_to_failure,
    profile,
    status,
    token,
)

TOKEN = f"{AS}/token"
PUBLIC = ClientIdentity("c", "none")
IDP = "http://localhost:1004/token"
JAG = {"issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "token_type": "N_A"}


def applicant(
    identity: ClientIdentity = PUBLIC,
    *,
    bound: bool = False,
    local: bool = True,
    key: str | None = None,
    issuer: str | None = None,
    scopes: tuple[str, ...] | None = None,
    send_resource: bool = True,
    **metadata: Any,
) -> TokenEndpointClient:
    entropy = Entropy()
    prover = DpopSigner(new_seed(entropy), entropy=entropy, wall_time=Clock()) if bound else None
    members = (
        {"client_id": "c", "private_key": Secret(key), "issuer": AS} if key is not None else {}
    )
    known = profile(
        **{"issuer": issuer, "scopes": scopes, "send_resource": send_resource} | members
    )
    return TokenEndpointClient(
        authority(**metadata),
        identity,
        known,
        prover,
        allow_loopback=local,
        entropy=entropy,
        wall_time=Clock(),
    )


def basic(pair: str) -> str:
    return "Basic " + b64encode(pair.encode()).decode()


@pytest.mark.requirement("AF-3", "AQ-10")
@pytest.mark.parametrize(
    ("identity", "authorization", "fields"),
    [
        (PUBLIC, None, {"client_id": "c", "client_secret": None}),
        (
            ClientIdentity("a:b c", "client_secret_basic", Secret("ä/+")),
            basic("a%3Ab%20c:%C3%A4%2F%2B"),
            {"client_id": "a:b c", "client_secret": None},
        ),
        (
            ClientIdentity("c", "client_secret_post", Secret("s+&")),
            None,
            {"client_id": "c", "client_secret": "s+&"},
        ),
    ],
)
def test_token_request_each_method_authenticates_client(
    identity: ClientIdentity, authorization: str | None, fields: dict[str, str | None]
) -> None:
    """Basic percent-encodes id and secret before base64; POST puts them into the form."""
    expected = form(
        TOKEN,
        authorization,
        grant_type="refresh_token",
        refresh_token="r&1",
        resource=MCP,
        scope=None,
        **fields,
    )
    assert (
        play(applicant(identity).refresh(Secret("r&1")), [(expected, token("t2"))]).access_token
        == "t2"
    )


@pytest.mark.requirement("AF-1", "AF-3")
def test_authorization_code_is_redeemed_with_verifier() -> None:
    """The verifier's hash must be the challenge that the browser carried."""
    challenges = []

    def went(step: Any) -> None:
        browsed(f"{AS}/authorize", client_id="c", scope="a b", resource=MCP)(step)
        challenges.append(parse_qs(urlsplit(step.url).query)["code_challenge"][0])

    def redeemed(step: Any) -> None:
        form(
            TOKEN,
            grant_type="authorization_code",
            code="test-auth-code",
            redirect_uri=REDIRECT,
            client_id="c",
            resource=MCP,
        )(step)
        verifier = parse_qs(step.request.body.decode())["code_verifier"][0]
        assert code_challenge(Secret(verifier)) == challenges[0]

    script: Script = [(went, callback_reply()), (redeemed, token())]
    assert play(applicant().authorization_code(REDIRECT, ("a", "b")), script).access_token == "t1"


@pytest.mark.requirement("AX-1", "AX-3")
def test_non_interactive_grants_send_their_form() -> None:
    expected = form(TOKEN, grant_type="client_credentials", scope="a b", resource=MCP)
    play(applicant().client_credentials(("a", "b")), [(expected, token())])
    bearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    expected = form(TOKEN, grant_type=bearer, assertion="x.y.z", scope=None, client_id="c")
    play(applicant().jwt_bearer("x.y.z", ()), [(expected, token())])


@pytest.mark.requirement("AX-2")
@pytest.mark.parametrize("secret", [None, "p"])
def test_enterprise_grant_exchanges_id_token_then_assertion(secret: str | None) -> None:
    """The identity provider's client and the authorization server's client differ."""
    managed = EnterpriseManaged(lambda: "id", IDP, "ic", Secret(secret) if secret else None)
    script: Script = [
        (
            form(
                IDP,
                subject_token="id",
                audience=AS,
                resource=MCP,
                scope="a",
                client_id="ic",
                client_secret=secret,
            ),
            document_reply(access_token="jag", **JAG),
        ),
        (
            form(
                TOKEN, assertion="jag", scope="a", resource=MCP, client_id="c", client_secret=None
            ),
            token(),
        ),
    ]
    assert play(applicant().enterprise_managed(managed, ("a",)), script).access_token == "t1"


@pytest.mark.requirement("AX-2")
@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (document_reply(access_token="x"), "gave no identity assertion"),
        (
            document_reply(access_token="x", **JAG | {"issued_token_type": "access_token"}),
            "gave no identity assertion",
        ),
        (
            oauth_error("invalid_grant", "expired: the-id-token"),
            r"the identity provider .* gave no token: invalid_grant \(expired: \.\.\.\)",
        ),
        (
            FetchFailed("slow"),
            "no answer from the token endpoint 'http://localhost:1004/token': slow",
        ),
    ],
)
def test_enterprise_grant_identity_provider_error_fails(reply: Any, text: str) -> None:
    managed = EnterpriseManaged(lambda: "the-id-token", IDP, "ic")
    with pytest.raises(AuthorizationFailed, match=text):
        play(applicant().enterprise_managed(managed, ()), [(form(IDP), reply)])


@pytest.mark.requirement("AU-2")
def test_enterprise_grant_unusable_provider_url_sends_nothing() -> None:
    managed = EnterpriseManaged(lambda: "id", "http://idp.com/token", "ic")
    with pytest.raises(
        AuthorizationFailed, match="token_endpoint of the identity provider is not https"
    ):
        play(applicant().enterprise_managed(managed, ()), [])


SECRETS = "the-refresh-token"
ANSWERS: list[tuple[Any, str, str | None]] = [
    (
        oauth_error("invalid_grant"),
        "gave no token: invalid_grant. The code or token is expired",
        "invalid_grant",
    ),
    (oauth_error("invalid_client", at=401), "check client_id and client_secret", "invalid_client"),
    (
        oauth_error("invalid_target"),
        "its administrator has to add it.*send_resource=False of the profile",
        "invalid_target",
    ),
    (status(201), "the answer of the token endpoint cannot be read", None),
    (status(201, token_type="Bearer"), "missing required field `access_token`", None),
    (status(201, error="invalid_grant"), "gave no token: invalid_grant", "invalid_grant"),
    (status(202, access_token="t"), "answered 202", None),
    (status(206, access_token="t"), "answered 206", None),
    (token(token_type=5), "cannot be read: .*token_type", None),
    (oauth_error("odd", "a\x07b"), r"odd \(a b\)\. Tell its administrator", "odd"),
    (oauth_error("use_dpop_nonce"), "gave no token: use_dpop_nonce", "use_dpop_nonce"),
    (oauth_error("x", f"bad {SECRETS} {SECRETS}"), r"x \(bad \.\.\. \.\.\.\)", "x"),
    (oauth_error(SECRETS), r"gave no token: \.\.\.\.", "..."),
    (
        document_reply(error="bad_code", error_description="no"),
        r"bad_code \(no\)",
        "bad_code",
    ),  # some servers use status 200
    (status(400), "answered 400. Try again later", None),
    (status(302, ("location", "https://e.com")), "answered 302", None),
    (status(500, error="invalid_grant"), "answered 500", None),
    (
        HttpResponse(200, [], b"access_token=x"),
        "the answer of the token endpoint cannot be read",
        None,
    ),
    (document_reply(access_token="a b"), "does not fit into a header", None),
    (token(token_type="mac"), "of an unknown type", None),
    (token(token_type="DPoP"), "of an unknown type", None),
    (FetchFailed("no such host"), "no answer from the token endpoint .*: no such host", None),
]


@pytest.mark.parametrize(("reply", "text", "error"), ANSWERS)
def test_token_response_without_usable_token_fails(
    reply: Any, text: str, error: str | None
) -> None:
    with pytest.raises(AuthorizationFailed, match=text) as caught:
        play(applicant().refresh(Secret(SECRETS)), [(form(TOKEN), reply)])
    assert caught.value.error == error
    assert SECRETS not in f"{caught.value!r} {caught.value}"


@pytest.mark.parametrize(
    ("code", "text", "error"),
    [
        (200, "gave no token: invalid_grant", "invalid_grant"),
        (400, "gave no token: invalid_grant", "invalid_grant"),
        (499, "gave no token: invalid_grant", "invalid_grant"),
        (500, "answered 500", None),
        (503, "answered 503", None),
    ],
)
def test_token_error_of_a_server_that_fails_says_nothing(
    code: int, text: str, error: str | None
) -> None:
    """A proxy or a crash writes what it likes, and must not cost the refresh token."""
    script: Script = [(form(TOKEN), oauth_error("invalid_grant", at=code))]
    failed = play_to_failure(applicant().refresh(Secret("r1")), script)
    assert isinstance(failed, AuthorizationFailed)
    assert text in str(failed)
    assert failed.error == error


@pytest.mark.requirement("AF-1")
@pytest.mark.parametrize(
    ("promised", "iss", "good"),
    [
        (True, AS, True),
        (True, None, False),
        (False, None, True),
        (None, None, True),
        (False, "https://other.example", False),
        (None, "https://other.example", False),
    ],
)
def test_authorization_code_needs_the_issuer_that_was_promised(
    promised: bool | None, iss: str | None, good: bool
) -> None:
    who = applicant(authorization_response_iss_parameter_supported=promised)
    script: Script = [(browsed(f"{AS}/authorize"), callback_reply(iss))]
    flow = who.authorization_code(REDIRECT, ())
    if good:
        assert play(flow, [*script, (form(TOKEN), token())]).access_token == "t1"
    else:
        assert isinstance(play_to_failure(flow, script), AuthorizationFailed)


def test_token_request_without_endpoint_fails() -> None:
    with pytest.raises(AuthorizationFailed, match="has no token endpoint"):
        play(applicant(token_endpoint=None).refresh(Secret("r")), [])


@pytest.mark.parametrize("members", [{}, {"scope": ["a", "b"], "token_type": None}])
def test_token_response_created_is_read_like_ok(members: dict[str, Any]) -> None:
    reply = status(201, access_token="t2", **members)
    client = applicant()
    assert play(client.refresh(Secret("r")), [(form(TOKEN), reply)]).access_token == "t2"
    assert client.notes == []


def test_token_response_ignored_members_are_noted() -> None:
    client = applicant()
    reply = token(refresh_token=7, scope=9)
    assert play(client.refresh(Secret("r")), [(form(TOKEN), reply)]).refresh_token is None
    assert [note.partition("ignored: ")[2] for note in client.notes] == ["refresh_token, scope"]


def test_token_requests_without_resource() -> None:
    """`send_resource=False`: nowhere, neither at the identity provider."""
    client = applicant(send_resource=False, scopes=("a",), issuer=AS)
    expected = form(TOKEN, resource=None)
    for flow in (client.refresh(Secret("r")), client.client_credentials(("a",))):
        play(flow, [(expected, token())])
    managed = EnterpriseManaged(lambda: "id", IDP, "ic")
    script: Script = [
        (form(IDP, resource=None, audience=AS), document_reply(access_token="jag", **JAG)),
        (expected, token()),
    ]
    play(client.enterprise_managed(managed, ("a",)), script)


@pytest.mark.parametrize("kind", ["Bearer", "bearer", "BEARER"])
def test_token_type_ignores_case(kind: str) -> None:
    play(applicant().refresh(Secret("r")), [(form(TOKEN), token(token_type=kind))])


NONCE = status(400, ("dpop-nonce", "n1"), error="use_dpop_nonce")
BOUND = token(token_type="DPoP")


@pytest.mark.requirement("AX-3")
@pytest.mark.parametrize(
    ("replies", "text"),
    [
        ([BOUND], None),
        ([token()], None),
        ([NONCE, BOUND], None),
        ([NONCE, NONCE], "use_dpop_nonce"),
        ([NONCE, status(400, ("dpop-nonce", "n2"), error="use_dpop_nonce")], "use_dpop_nonce"),
        ([oauth_error("use_dpop_nonce")], "use_dpop_nonce"),
        ([status(400, ("dpop-nonce", "n1"), error="invalid_grant")], "invalid_grant"),
    ],
)
def test_token_request_dpop_nonce_required_retries_once(
    replies: list[HttpResponse], text: str | None
) -> None:
    """Each try has a fresh proof; a second challenge, or one without a nonce, is an error."""
    proofs: list[str] = []

    def seen(step: Fetch) -> None:
        form(TOKEN)(step)
        proofs.append(dict(step.request.headers)["dpop"])

    flow = applicant(bound=True).refresh(Secret("r"))
    script: Script = [(seen, reply) for reply in replies]
    if text is None:
        play(flow, script)
    else:
        with pytest.raises(AuthorizationFailed, match=text):
            play(flow, script)
    assert len(set(proofs)) == len(replies)


@pytest.mark.requirement("AQ-4", "AX-1")
def test_client_assertion_has_claims_of_rfc_7523() -> None:
    """`jti` is new each time, so two assertions never match, and no secret is sent."""
    pem = ECKey.generate_key("P-256", private=True).as_pem(private=True).decode()
    fields = {
        "client_id": "c",
        "client_secret": None,
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    }
    seen: list[str] = []

    def signed(step: Fetch) -> None:
        form(TOKEN, **fields)(step)
        seen.append(parse_qs(step.request.body.decode())["client_assertion"][0])

    asker = applicant(ClientIdentity("c", "private_key_jwt"), key=pem)
    for _ in range(2):
        play(asker.client_credentials(()), [(signed, token())])
    claims = []
    for each in seen:
        header, payload, _ = each.split(".")
        assert decoded(header) == {"alg": "ES256", "typ": "JWT"}
        assert read_jws(each, ["ES256"]).verify(private_key(pem))
        claims.append(decoded(payload))
    names = [each.pop("jti") for each in claims]
    assert [len(name) for name in names] == [22, 22]  # 16 bytes
    assert names[0] != names[1]
    assert claims == [{"iss": "c", "sub": "c", "aud": AS, "iat": 1_000_000, "exp": 1_000_060}] * 2


def decoded(part: str) -> Any:
    return json.loads(urlsafe_b64decode(f"{part}=="))


def test_client_assertion_names_the_issuer_as_it_names_itself() -> None:
    pem = ECKey.generate_key("P-256", private=True).as_pem(private=True).decode()
    client = applicant(ClientIdentity("c", "private_key_jwt"), key=pem)
    client._auth_server = replace(client._auth_server, metadata_issuer="https://own.com")

    def signed(step: Fetch) -> None:
        jwt = parse_qs(step.request.body.decode())["client_assertion"][0]
        claims = jwt.split(".")[1]
        assert json.loads(urlsafe_b64decode(claims + "=="))["aud"] == "https://own.com"

    play(client.client_credentials(()), [(signed, token())])


@pytest.mark.parametrize(
    "key", ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"]
)
def test_client_assertion_invalid_private_key_fails(key: str) -> None:
    with pytest.raises(
        AuthorizationFailed, match="private_key of the profile cannot be used"
    ) as caught:
        play(applicant(ClientIdentity("c", "private_key_jwt"), key=key).client_credentials(()), [])
    assert "AAAA" not in str(caught.value)
