"""The resource server: tables of heads, of challenges, and of the scopes of messages."""

from __future__ import annotations

import json
import traceback
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct

from mcp_core import types as t
from mcp_core.auth._jose import ASYMMETRIC, MAX_TOKEN, InvalidToken
from mcp_core.auth._metadata import read_resource_metadata
from mcp_core.auth._steps import Flow, HttpResponse
from mcp_core.auth.client._challenge import parse_auth_challenge, parse_challenges
from mcp_core.auth.server._grant import Grant, VerifierUnavailable
from mcp_core.auth.server._introspection import IntrospectionVerifier
from mcp_core.auth.server._jwt import JwtVerifier
from mcp_core.auth.server._protected_resource import AuthDenial, Await, PresentedCredentials
from mcp_core.auth.server._resource_server import OAuthResourceServer
from tests.core.auth.bad_tokens import BAD_TOKENS
from tests.core.auth.minting import (
    ISSUER,
    JKT,
    JWKS,
    JWKS_URI,
    NO_REPLY,
    NOW,
    RESOURCE,
    keys_reply,
    proof,
    run_with_replies,
    run_without_steps,
    token,
)
from tests.levels import fewer_examples

ME = Grant("me", "app", frozenset({"read"}))
BOUND = Grant("me", "app", frozenset({"read"}), jkt=JKT)
PLACE = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
WHERE = f'resource_metadata="{PLACE}"'
REFUSED = "the access token was refused: "
ALGS = f'algs="{" ".join(sorted(ASYMMETRIC))}"'
NONCE_KEY = b"n" * 32


class KnownTokenVerifier:
    """A verifier that knows one token."""

    def __init__(self, grant: Grant = ME, good: str = "good") -> None:
        self.grant, self.good = grant, good

    def __repr__(self) -> str:
        return "<Known>"

    def verify(self, token: str, now: float) -> Flow[Grant]:
        yield from ()
        if token == "down":
            raise VerifierUnavailable("no key of https://internal.example")
        if token != self.good:
            raise InvalidToken("the token is not known")
        return self.grant


def guard(verifier: Any = None, **options: Any) -> OAuthResourceServer:
    return OAuthResourceServer(
        options.pop("resource", RESOURCE), [ISSUER], verifier or KnownTokenVerifier(), **options
    )


def admit_head(
    by: OAuthResourceServer,
    *headers: tuple[bytes, bytes],
    method: bytes = b"POST",
    target: bytes = b"/mcp",
    now: float = NOW,
) -> Grant | AuthDenial:
    return run_without_steps(by.admit(method, target, list(headers), now))


def bearer(text: str = "good") -> tuple[bytes, bytes]:
    return b"authorization", b"Bearer " + text.encode()


def challenges(refusal: Grant | AuthDenial | PresentedCredentials | None) -> list[str]:
    assert isinstance(refusal, AuthDenial), refusal
    return [value.decode() for name, value in refusal.headers if name == b"www-authenticate"]


# -- The head of a request -------------------------------------------------------------------------

GOOD_HEADS: list[Any] = [
    [(b"authorization", b"Bearer good")],
    [(b"authorization", b"bearer good")],
    [(b"authorization", b"BEARER good")],
    [(b"authorization", b"bEaReR   good")],
    [(b"Authorization", b"Bearer good")],
    [(b"authorization", b" \tBearer good \t")],
    [(b"host", b"x"), (b"authorization", b"Bearer good"), (b"x-authorization", b"Bearer other")],
    [(b"authorization", b"Bearer good"), (b"dpop", b"whatever"), (b"dpop", b"twice")],
]

# A head, the status of the response, and its error code.
BAD_HEADS: list[Any] = [
    pytest.param([], 401, None, id="nothing"),
    pytest.param([(b"authorization", b"")], 401, None, id="empty"),
    pytest.param([(b"authorization", b"  ")], 401, None, id="spaces"),
    pytest.param([(b"authorization", b"Basic bWU6c2VjcmV0")], 401, None, id="Basic"),
    pytest.param([(b"authorization", b"Digest username=x")], 401, None, id="Digest"),
    pytest.param([(b"authorization", b"DPoP good")], 401, None, id="DPoP, which is not offered"),
    pytest.param([(b"authorization", b"Bearergood")], 401, None, id="no space"),
    pytest.param([(b"authorization", b"good")], 401, None, id="a token alone"),
    pytest.param([(b"authorization", b"Bearer:good")], 401, None, id="a colon"),
    pytest.param([(b"authorization", b"Bearer\tgood")], 401, None, id="a tab"),
    pytest.param(
        [(b"authorization", b"\xc2\xa0Bearer good")], 401, None, id="a space beyond ASCII"
    ),
    pytest.param([(b"authorization", b'"Bearer good"')], 401, None, id="in quotes"),
    pytest.param([(b"x-auth", b"Bearer good")], 401, None, id="another header"),
    pytest.param([(b"proxy-authorization", b"Bearer good")], 401, None, id="for a proxy"),
    pytest.param([(b"cookie", b"access_token=good")], 401, None, id="a cookie"),
    pytest.param([(b"authorization", b"Bearer")], 400, "invalid_request", id="a scheme alone"),
    pytest.param(
        [(b"authorization", b"Bearer ")], 400, "invalid_request", id="a scheme and a space"
    ),
    pytest.param(
        [(b"authorization", b"Bearer good, Bearer other")], 400, "invalid_request", id="two in one"
    ),
    pytest.param([(b"authorization", b"Bearer good good")], 400, "invalid_request", id="two words"),
    pytest.param([(b"authorization", b"Bearer good,")], 400, "invalid_request", id="a comma"),
    pytest.param(
        [(b"authorization", b'Bearer "good"')], 400, "invalid_request", id="a quoted token"
    ),
    pytest.param(
        [(b"authorization", b"Bearer token=good;")], 400, "invalid_request", id="a parameter"
    ),
    pytest.param(
        [(b"authorization", b"Bearer go\xc3\xb6d")], 400, "invalid_request", id="not ASCII"
    ),
    pytest.param([(b"authorization", b"Bearer go\0od")], 400, "invalid_request", id="NUL"),
    pytest.param(
        [(b"authorization", b"Bearer good\r\nx: y")], 400, "invalid_request", id="a line end"
    ),
    pytest.param([(b"authorization", b"Bearer good\n")], 400, "invalid_request", id="a newline"),
    pytest.param(
        [(b"authorization", b"Bearer =good")], 400, "invalid_request", id="padding in front"
    ),
    pytest.param(
        [(b"authorization", b"Bearer go=od")], 400, "invalid_request", id="padding within"
    ),
    pytest.param([(b"authorization", b"Bearer ====")], 400, "invalid_request", id="padding alone"),
    pytest.param([bearer(), bearer()], 400, "invalid_request", id="twice"),
    pytest.param(
        [bearer(), (b"Authorization", b"Bearer good")],
        400,
        "invalid_request",
        id="twice, otherwise",
    ),
    pytest.param(
        [bearer(), (b"authorization", b"Basic x")], 400, "invalid_request", id="two schemes"
    ),
    pytest.param(
        [(b"authorization", b""), bearer()], 400, "invalid_request", id="an empty one first"
    ),
    pytest.param([bearer("bad")], 401, "invalid_token", id="a bad token"),
    pytest.param([bearer("GOOD")], 401, "invalid_token", id="another case"),
    pytest.param([bearer("good=")], 401, "invalid_token", id="more of it"),
    pytest.param([bearer("x" * (MAX_TOKEN + 1))], 401, "invalid_token", id="a character too many"),
    pytest.param([bearer("x" * 1_000_000)], 401, "invalid_token", id="1 MB"),
    pytest.param(
        [(b"authorization", b"Bearer " + b"\xff" * 1_000_000)],
        401,
        "invalid_token",
        id="1 MB of rubbish",
    ),
]


@pytest.mark.parametrize("headers", GOOD_HEADS)
def test_admit_valid_authorization_header_grants(headers: Any) -> None:
    assert admit_head(guard(), *headers) is ME


@pytest.mark.requirement("AR-1", "AR-3", "AR-4")
@pytest.mark.parametrize(("headers", "status", "error"), BAD_HEADS)
def test_admit_other_headers_are_denied(headers: Any, status: int, error: str | None) -> None:
    refusal = admit_head(guard(scopes=["read", "write"]), *headers)
    assert isinstance(refusal, AuthDenial)
    assert refusal.status == status
    (challenge,) = parse_challenges(challenges(refusal))
    assert challenge.scheme == "bearer"
    assert challenge.parameters.pop("resource_metadata") == PLACE
    assert challenge.parameters.pop("scope") == "read write"
    if error is None:
        # RFC 6750, 3.1: no error code for a request without credentials.
        assert challenge.parameters == {}
    else:
        assert challenge.parameters == {"error": error, "error_description": refusal.message}
    refused = REFUSED if error == "invalid_token" else ""
    assert refusal.message == refused + refusal.reason


def test_admit_token_of_maximum_length_is_verified() -> None:
    text = "x" * MAX_TOKEN
    assert admit_head(guard(KnownTokenVerifier(good=text)), bearer(text)) is ME


@pytest.mark.requirement("AR-14")
@pytest.mark.parametrize(
    "target",
    [
        b"/mcp?access_token=good",
        b"/mcp?token=good",
        b"/mcp?authorization=Bearer%20good",
        b"/mcp#access_token=good",
    ],
)
@pytest.mark.parametrize("method", [b"POST", b"GET", b"DELETE"])
def test_admit_token_in_query_is_ignored(method: bytes, target: bytes) -> None:
    refusal = admit_head(guard(), method=method, target=target)
    assert challenges(refusal) == [f"Bearer {WHERE}"]
    assert admit_head(guard(), bearer("bad"), method=method, target=target) == admit_head(
        guard(), bearer("bad")
    )


@given(st.binary(max_size=40).map(lambda rest: b"Bearer " + rest) | st.binary(max_size=40))
@example(b"Bearer good\x0b")
@example(b"Bearer \xa0good")
def test_read_credentials_any_bytes_give_token_or_denial(value: bytes) -> None:
    by = guard(dpop=True)
    found = by.read_credentials([(b"authorization", value)])
    if isinstance(found, PresentedCredentials):
        assert value.strip(b" \t").partition(b" ")[2].lstrip(b" ") == found.token.reveal().encode()
        assert set(found.token.reveal()) <= set(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="
        )
    else:
        assert found.status in (400, 401)
        assert len(parse_challenges(challenges(found))) == 2


@given(
    st.lists(
        st.tuples(st.sampled_from([b"authorization", b"dpop", b"x"]), st.binary(max_size=20)),
        max_size=4,
    )
)
def test_admit_any_header_gives_grant_or_denial(headers: list[tuple[bytes, bytes]]) -> None:
    found = admit_head(guard(dpop=True), *headers)
    assert isinstance(found, AuthDenial)
    assert found.status in (400, 401)
    assert all(value.isascii() and value.decode().isprintable() for _, value in found.headers)


@pytest.mark.requirement("AR-1", "AR-10", "AR-11")
def test_admit_invalid_tokens_are_denied() -> None:
    by = guard(JwtVerifier(ISSUER, RESOURCE, jwks=JWKS), dpop=True)
    for name, text, _ in BAD_TOKENS:
        value = text.encode("utf-8", "surrogatepass")
        for headers in (
            [(b"authorization", b"Bearer " + value)],
            [(b"authorization", b"DPoP " + value), (b"dpop", proof("any").encode())],
        ):
            refusal = admit_head(by, *headers)
            assert isinstance(refusal, AuthDenial), name
            assert refusal.status in (400, 401), name
    assert isinstance(admit_head(by, bearer(token())), Grant)


def test_admit_verifier_unavailable_gives_503_without_reason() -> None:
    refusal = admit_head(guard(), bearer("down"))
    assert refusal == AuthDenial(
        503,
        "the token cannot be verified now; try again later",
        [(b"retry-after", b"5")],
        "no key of https://internal.example",
    )


def test_admit_first_token_fetches_keys() -> None:
    by = guard(JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI))
    flow = by.admit(b"POST", b"/mcp", [bearer(token())], NOW)
    grant = run_with_replies(flow, [(JWKS_URI, keys_reply())])
    assert isinstance(grant, Grant)
    assert grant.principal == f"{ISSUER}#sub:alice"
    down = guard(JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI))
    found = run_with_replies(
        down.admit(b"POST", b"/mcp", [bearer(token())], NOW), [(JWKS_URI, NO_REPLY)]
    )
    assert isinstance(found, AuthDenial)
    assert (found.status, "nobody is there" in found.reason) == (503, True)


def test_admit_introspects_opaque_token() -> None:
    endpoint = "https://as.example.com/introspect"
    by = guard(
        IntrospectionVerifier(
            ISSUER, RESOURCE, endpoint=endpoint, client_id="me", client_secret="x"
        )
    )
    response = HttpResponse(
        200, [], json.dumps({"active": True, "aud": RESOURCE, "sub": "alice"}).encode()
    )
    grant = run_with_replies(by.admit(b"POST", b"/mcp", [bearer()], NOW), [(endpoint, response)])
    assert isinstance(grant, Grant)


# -- A verifier function of the application --------------------------------------------------------


def test_admit_verifier_function_grants_or_denies() -> None:
    seen: list[str] = []

    def verify(text: str) -> Grant | None:
        seen.append(text)
        return ME if text == "good" else None

    assert admit_head(guard(verify), bearer()) is ME
    described = f"{REFUSED}the token is not accepted here"
    assert challenges(admit_head(guard(verify), bearer("bad"))) == [
        f'Bearer error="invalid_token", error_description="{described}", {WHERE}'
    ]
    assert seen == ["good", "bad"]


def test_admit_async_verifier_yields_await_step() -> None:
    async def verify(text: str) -> Grant | None:
        return ME if text == "good" else None

    for text, good in (("good", True), ("bad", False)):
        flow = guard(verify).admit(b"POST", b"/mcp", [bearer(text)], NOW)
        step = next(flow)
        assert isinstance(step, Await)
        with pytest.raises(StopIteration) as stop:
            flow.send(run(step.awaitable))
        assert (stop.value.value is ME) is good


def run(awaitable: Awaitable[Any]) -> Any:
    try:
        next(iter(awaitable.__await__()))
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits for something")


def test_admit_verifier_exception_denies_or_passes_through() -> None:
    """Only the two documented exceptions become a 401 or 503; a bug in the verifier propagates."""

    def raising(exc: Exception) -> OAuthResourceServer:
        def verify(text: str) -> Grant | None:
            raise exc

        return guard(verify)

    refusal = admit_head(raising(InvalidToken('not "yours"\r\nx: é\\')), bearer())
    assert challenges(refusal) == [
        f'Bearer error="invalid_token", error_description="{REFUSED}not ?yours???x: ??", {WHERE}'
    ]
    assert isinstance(refusal, AuthDenial)
    assert refusal.reason == 'not "yours"??x: é\\'  # one line in the log
    found = admit_head(raising(VerifierUnavailable("data\nbase")), bearer())
    assert isinstance(found, AuthDenial)
    assert (found.status, found.reason) == (503, "data?base")
    with pytest.raises(ZeroDivisionError):
        admit_head(raising(ZeroDivisionError()), bearer())
    flow = guard(lambda text: return_never_ready()).admit(b"POST", b"/mcp", [bearer()], NOW)
    step = next(flow)
    assert isinstance(step, Await)
    with pytest.raises(ZeroDivisionError):
        flow.throw(ZeroDivisionError())
    flow = guard(lambda text: return_never_ready()).admit(b"POST", b"/mcp", [bearer()], NOW)
    next(flow)
    with pytest.raises(StopIteration) as stop:
        flow.throw(InvalidToken("no"))
    assert stop.value.value.status == 401


CANARY = "canary-5e1d"


def looked_up(text: str) -> Grant | None:
    return {"good": ME}[text]


def chained(text: str) -> Grant | None:
    try:
        return looked_up(text)
    except LookupError as exc:
        raise OSError("the table of tokens") from exc


def noted(text: str) -> Grant | None:
    exc = OSError("the table of tokens")
    exc.add_note(f"looked for {text}")
    raise exc


def grouped(text: str) -> Grant | None:
    raise ExceptionGroup("two of them", [OSError(), KeyError(text)])


def refusing(text: str) -> Grant | None:
    raise InvalidToken(f"{text} is invalid")


def verifier_unavailable(text: str) -> Grant | None:
    raise VerifierUnavailable(f"SELECT '{text}'")


class LeakyVerifier:
    """A verifier with a flow, whose exception contains the token."""

    def verify(self, text: str, now: float) -> Flow[Grant]:
        yield from ()
        raise KeyError(text)


@pytest.mark.parametrize(
    ("verifier", "kind"),
    [
        (looked_up, "KeyError"),
        (chained, "OSError"),
        (noted, "OSError"),
        (grouped, "ExceptionGroup"),
        (LeakyVerifier(), "KeyError"),
        (refusing, "InvalidToken"),
        (verifier_unavailable, "VerifierUnavailable"),
    ],
)
def test_admit_verifier_exception_with_token_is_redacted(verifier: Any, kind: str) -> None:
    reason = f"the verifier raised {kind}, whose text is left out: the token is in it"
    if kind in ("InvalidToken", "VerifierUnavailable"):
        refusal = admit_head(guard(verifier), bearer(CANARY))
        assert isinstance(refusal, AuthDenial)
        assert refusal.reason == reason
        assert CANARY not in repr(refusal)
    else:
        with pytest.raises(RuntimeError) as caught:
            admit_head(guard(verifier), bearer(CANARY))
        assert str(caught.value) == reason
        assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_admit_verifier_exception_short_token_is_not_redacted() -> None:
    with pytest.raises(KeyError, match="'e'"):
        admit_head(guard(looked_up), bearer("e"))


def return_never_ready() -> Awaitable[Grant | None]:
    class Never:
        def __await__(self) -> Iterator[Any]:
            raise AssertionError

    return Never()  # type: ignore[return-value]


@pytest.mark.parametrize("given", [True, "alice", {"sub": "alice"}, 0, False, ""])
def test_admit_verifier_other_result_raises_type_error(given: Any) -> None:
    with pytest.raises(TypeError, match="must return a Grant or None"):
        admit_head(guard(lambda text: given), bearer())


def test_admit_expired_grant_is_denied() -> None:
    assert isinstance(
        admit_head(guard(lambda text: Grant("me", expires_at=NOW + 1)), bearer()), Grant
    )
    assert isinstance(
        admit_head(guard(lambda text: Grant("me", expires_at=NOW)), bearer()), AuthDenial
    )
    # A `TokenVerifier` has checked that, with its leeway.
    assert isinstance(
        admit_head(guard(KnownTokenVerifier(Grant("me", expires_at=NOW))), bearer()), Grant
    )


# -- Challenges ------------------------------------------------------------------------------------


@pytest.mark.requirement("AR-3", "AR-4", "AR-5")
@pytest.mark.parametrize(
    ("options", "arguments", "wanted"),
    [
        ({}, (), [f"Bearer {WHERE}"]),
        ({"scopes": ["a", "b"]}, (), [f'Bearer scope="a b", {WHERE}']),
        (
            {"scopes": ["a", "b"]},
            ("invalid_token",),
            [f'Bearer error="invalid_token", scope="a b", {WHERE}'],
        ),
        (
            {"scopes": ["a"]},
            ("insufficient_scope", "why", ["a", "c"]),
            [f'Bearer error="insufficient_scope", error_description="why", scope="a c", {WHERE}'],
        ),
        ({"scopes": ["a"]}, (None, None, []), [f"Bearer {WHERE}"]),
        ({"dpop": True}, (), [f"Bearer {WHERE}", f"DPoP {WHERE}, {ALGS}"]),
        (
            {"dpop": True, "scopes": ["a"]},
            ("invalid_token", "why"),
            [
                f'Bearer error="invalid_token", error_description="why", scope="a", {WHERE}',
                f'DPoP scope="a", {WHERE}, {ALGS}',
            ],
        ),
    ],
)
def test_challenge_headers_exact_text(options: Any, arguments: Any, wanted: list[str]) -> None:
    made = guard(**options).challenge(*arguments)
    assert [value.decode() for _, value in made] == wanted
    assert {name for name, _ in made} == {b"www-authenticate"}


@fewer_examples(2)
@given(st.text(max_size=60), st.lists(st.text(max_size=9), max_size=4))
@example('", error="x', ['a", b="c'])
@example("\r\nset-cookie: a=b", ["\r\n"])
@example("\\", ["\\"])
@example("\ud800", ["\ud800"])
def test_challenge_any_text_stays_quoted(description: str, scopes: list[str]) -> None:
    ((_, value),) = guard().challenge("invalid_token", description, scopes)
    text = value.decode("ascii")
    assert text.isprintable()
    (challenge,) = parse_challenges([text])
    assert challenge.scheme == "bearer"
    assert set(challenge.parameters) <= {"error", "error_description", "scope", "resource_metadata"}
    assert challenge.parameters["error"] == "invalid_token"
    assert challenge.parameters["resource_metadata"] == PLACE
    assert len(challenge.parameters.get("error_description", "")) == len(description)
    assert set(challenge.parameters.get("scope", "").split()) <= set(scopes)


def test_challenge_is_parsed_by_own_client() -> None:
    by = guard(dpop=True, scopes=["a"], tool_scopes={"rm": ["b"]})
    demand = parse_auth_challenge(challenges(admit_head(by)))
    assert (demand.resource_metadata, demand.scopes, demand.error) == (PLACE, ("a",), None)
    demand = parse_auth_challenge(
        challenges(by.check(BOUND, "tools/call", t.CallToolParams(name="rm")))
    )
    assert (demand.resource_metadata, demand.scopes, demand.error) == (
        PLACE,
        ("a", "b"),
        "insufficient_scope",
    )


# -- Scopes of messages ----------------------------------------------------------------------------

WISHES = t.SubscriptionFilter(resource_subscriptions=["db://secret", "db://open", "db://other"])
TOOLS: dict[str, list[str]] = {"rm": ["write", "danger"], "ls": ["read"], "echo": []}
RESOURCES: dict[str, list[str]] = {
    "db://secret": ["secret"],
    "db://other": ["other", "read"],
    "db://a%2Fb": ["ab"],
}

PROMPTS = {"review": ["review"]}
METHODS = {"acme/reindex": ["admin"], "completion/complete": ["complete"]}


def completing(ref: t.PromptReference | t.ResourceTemplateReference) -> t.CompleteParams:
    return t.CompleteParams(ref=ref, argument=t.CompletionArgument(name="x", value=""))


# The method, its params, and the scopes that it needs beside "base".
ASKED: list[Any] = [
    ("tools/call", t.CallToolParams(name="rm"), ["write", "danger"]),
    ("tools/call", t.CallToolParams(name="ls"), ["read"]),
    ("tools/call", t.CallToolParams(name="echo"), []),
    ("tools/call", t.CallToolParams(name="unknown"), []),
    ("tools/call", t.CallToolParams(name="RM"), []),
    ("resources/read", t.ReadResourceParams(uri="db://secret"), ["secret"]),
    ("resources/read", t.ReadResourceParams(uri="db://%73ecre%74"), ["secret"]),
    ("resources/read", t.ReadResourceParams(uri="db://a/b"), ["ab"]),
    ("resources/read", t.ReadResourceParams(uri="db://open"), []),
    ("resources/subscribe", t.SubscribeParams(uri="db://other"), ["other", "read"]),
    ("resources/unsubscribe", t.UnsubscribeParams(uri="db://secret"), []),
    ("subscriptions/listen", t.ListenParams(notifications=WISHES), ["secret", "other", "read"]),
    (
        "subscriptions/listen",
        t.ListenParams(notifications=t.SubscriptionFilter(tools_list_changed=True)),
        [],
    ),
    ("tools/list", t.PaginatedParams(), []),
    ("prompts/get", t.GetPromptParams(name="rm"), []),
    ("prompts/get", t.GetPromptParams(name="review"), ["review"]),
    ("completion/complete", completing(t.PromptReference(name="review")), ["complete", "review"]),
    ("completion/complete", completing(t.PromptReference(name="other")), ["complete"]),
    ("completion/complete", completing(t.ResourceTemplateReference("db://other")),
        ["complete", "other", "read"]),
    ("completion/complete", completing(t.ResourceTemplateReference("db://{x}")), ["complete"]),
    ("acme/reindex", t.RequestParams(), ["admin"]),
    ("acme/other", t.RequestParams(), []),
    ("initialize", None, []),
    (None, None, []),
]  # fmt: skip


def tools_by_function(name: str) -> Iterator[str]:
    return iter(TOOLS.get(name, ()))


def resources_by_function(uri: str) -> list[str]:
    return RESOURCES.get(uri.replace("%73", "s").replace("%74", "t").replace("a/b", "a%2Fb"), [])


@pytest.mark.requirement("AR-5", "AR-6", "AR-7")
@pytest.mark.parametrize("functions", [False, True])
@pytest.mark.parametrize(("method", "params", "scopes"), ASKED)
def test_check_missing_scopes_names_all_needed_ones(
    method: str | None, params: Any, scopes: list[str], functions: bool
) -> None:
    """The challenge lists what a new token needs in full, as a new one replaces the old."""
    tools: Any = tools_by_function if functions else TOOLS
    resources: Any = resources_by_function if functions else RESOURCES
    prompts: Any = (lambda name: PROMPTS.get(name, [])) if functions else PROMPTS
    methods: Any = (lambda name: METHODS.get(name, [])) if functions else METHODS
    by = guard(
        scopes=["base"],
        tool_scopes=tools,
        resource_scopes=resources,
        prompt_scopes=prompts,
        method_scopes=methods,
    )
    needed = ["base", *scopes]
    assert by._required.of(method, params) == tuple(needed)
    assert by.check(Grant("me", scopes=frozenset(needed)), method, params) is None
    for missing in needed:
        refusal = by.check(Grant("me", scopes=frozenset(needed) - {missing}), method, params)
        assert refusal is not None
        assert refusal.status == 403
        described = 'error_description="the token lacks scopes that this request needs"'
        assert challenges(refusal) == [
            f'Bearer error="insufficient_scope", {described}, scope="{" ".join(needed)}", {WHERE}'
        ]
        assert refusal.reason.endswith(f"'{missing}' missing")
        assert missing not in refusal.message


@pytest.mark.requirement("AR-7")
def test_admit_post_leaves_scopes_to_check() -> None:
    by = guard(scopes=["base"], tool_scopes=TOOLS)
    assert admit_head(by, bearer()) is ME
    refusal = by.check(ME, "tools/call", t.CallToolParams(name="rm"))
    assert parse_auth_challenge(challenges(refusal)).scopes == ("base", "write", "danger")
    for method in (b"GET", b"DELETE"):
        found = admit_head(by, bearer(), method=method)
        assert isinstance(found, AuthDenial)
        assert found.status == 403
        assert parse_auth_challenge(challenges(found)).scopes == ("base",)
    assert admit_head(guard(scopes=["read"]), bearer(), method=b"GET") is ME


@pytest.mark.requirement("AR-8")
def test_check_satisfies_accepts_implied_scopes() -> None:
    """With `satisfies=`, each needed scope is asked about once, up to the first one missing."""

    def satisfies(granted: frozenset[str], scope: str) -> bool:
        calls.append(scope)
        return scope in granted or "admin" in granted or f"{scope.partition(':')[0]}:*" in granted

    calls: list[str] = []
    by = guard(
        scopes=["base"],
        tool_scopes={"rm": ["files:write"], "ls": ["files:read"]},
        satisfies=satisfies,
    )
    rm, ls = t.CallToolParams(name="rm"), t.CallToolParams(name="ls")
    assert by.check(Grant("me", scopes=frozenset({"admin"})), "tools/call", rm) is None
    assert by.check(Grant("me", scopes=frozenset({"base", "files:*"})), "tools/call", ls) is None
    assert by.check(Grant("me", scopes=frozenset({"base", "mail:*"})), "tools/call", ls) is not None
    assert calls == ["base", "files:write", "base", "files:read", "base", "files:read"]


def test_check_unwritable_scope_is_missing_but_not_challenged() -> None:
    by = guard(tool_scopes=lambda name: [f"tool:{name}", "ok"])
    refusal = by.check(ME, "tools/call", t.CallToolParams(name='x", error="y\r\n'))
    assert refusal is not None
    assert parse_auth_challenge(challenges(refusal)).scopes == ("ok",)
    assert "\n" not in refusal.reason


def test_check_scope_function_returning_text_raises() -> None:
    with pytest.raises(ValueError, match="expected a list of texts"):
        guard(tool_scopes=lambda name: "read write").check(
            ME, "tools/call", t.CallToolParams(name="x")
        )


# -- Bound tokens ----------------------------------------------------------------------------------


def dpop(text: str = "good", *proofs: str) -> list[tuple[bytes, bytes]]:
    given = proofs or (proof(text),)
    return [
        (b"authorization", b"DPoP " + text.encode()),
        *((b"dpop", value.encode("latin-1")) for value in given),
    ]


def test_admit_bound_token_proof_is_accepted_once() -> None:
    """The replay gets both challenges, and the scheme's and header's case doesn't matter."""
    by = guard(KnownTokenVerifier(BOUND), dpop=True, scopes=["read"])
    assert admit_head(by, *dpop()) is BOUND
    refusal = admit_head(by, *dpop())
    assert isinstance(refusal, AuthDenial)
    assert refusal.status == 401
    assert challenges(refusal) == [
        f'Bearer scope="read", {WHERE}',
        (
            'DPoP error="invalid_dpop_proof", error_description="the proof was used before (jti)", '
            f'scope="read", {WHERE}, {ALGS}'
        ),
    ]
    assert admit_head(by, *dpop("good", proof("good", jti="p2", htm="GET")), method=b"GET") is BOUND
    assert (
        admit_head(
            by, (b"authorization", b"dpop good"), (b"DPoP", proof("good", jti="p3").encode())
        )
        is BOUND
    )


@pytest.mark.parametrize(
    ("grant", "headers", "error", "scheme"),
    [
        pytest.param(BOUND, [bearer()], "invalid_token", "bearer", id="bound, as Bearer"),
        pytest.param(
            BOUND,
            [bearer(), (b"dpop", proof("good").encode())],
            "invalid_token",
            "bearer",
            id="as Bearer, with a proof",
        ),
        pytest.param(ME, dpop(), "invalid_token", "dpop", id="not bound, as DPoP"),
        pytest.param(BOUND, dpop()[:1], "invalid_dpop_proof", "dpop", id="no proof"),
        pytest.param(BOUND, [*dpop(), dpop()[1]], "invalid_dpop_proof", "dpop", id="two proofs"),
        pytest.param(BOUND, dpop("good", ""), "invalid_dpop_proof", "dpop", id="an empty proof"),
        pytest.param(
            BOUND, dpop("good", proof("good") + ", x"), "invalid_dpop_proof", "dpop", id="a list"
        ),
        pytest.param(
            BOUND,
            dpop("good", proof("other")),
            "invalid_dpop_proof",
            "dpop",
            id="for another token",
        ),
        pytest.param(
            BOUND,
            dpop("good", proof("good", htm="GET")),
            "invalid_dpop_proof",
            "dpop",
            id="for another method",
        ),
        pytest.param(
            BOUND, dpop("good", proof("good", iat=NOW - 99)), "invalid_dpop_proof", "dpop", id="old"
        ),
        pytest.param(BOUND, dpop("good", "\xff" * 99), "invalid_dpop_proof", "dpop", id="rubbish"),
        pytest.param(BOUND, dpop("bad"), "invalid_token", "dpop", id="a bad token"),
        pytest.param(
            BOUND,
            [(b"authorization", b"DPoP"), dpop()[1]],
            "invalid_request",
            "dpop",
            id="no token",
        ),
        pytest.param(
            Grant("me", jkt="another"),
            dpop(),
            "invalid_dpop_proof",
            "dpop",
            id="bound to another key",
        ),
    ],
)
def test_admit_bound_token_without_valid_proof_is_denied(
    grant: Grant, headers: Any, error: str, scheme: str
) -> None:
    refusal = admit_head(guard(KnownTokenVerifier(grant), dpop=True), *headers)
    assert isinstance(refusal, AuthDenial)
    assert refusal.status == (400 if error == "invalid_request" else 401)
    found = {
        challenge.scheme: challenge.parameters
        for challenge in parse_challenges(challenges(refusal))
    }
    assert found.pop(scheme)["error"] == error
    (other,) = found.values()
    assert "error" not in other


def test_admit_bound_token_without_dpop_support_is_denied() -> None:
    refusal = admit_head(guard(KnownTokenVerifier(BOUND)), bearer())
    assert "bound to a key, which this server does not support" in challenges(refusal)[0]


def test_admit_proof_url_may_be_resource_or_served_path() -> None:
    by = guard(KnownTokenVerifier(BOUND), dpop=True, resource="https://mcp.example.com")
    urls = ["https://mcp.example.com", "https://mcp.example.com/", "https://mcp.example.com/mcp"]
    for index, url in enumerate(urls):
        headers = dpop("good", proof("good", htu=url, jti=str(index)))
        assert admit_head(by, *headers, target=b"/mcp?x=1") is BOUND
    for url in ("https://mcp.example.com/other", "https://evil.example/mcp"):
        assert isinstance(admit_head(by, *dpop("good", proof("good", htu=url))), AuthDenial)
    for target in (b"//evil.example/x", b"@evil.example/x", b"\xff\n", b"", b"*"):
        assert isinstance(
            admit_head(
                by, *dpop("good", proof("good", htu="https://evil.example/x")), target=target
            ),
            AuthDenial,
        )


def test_admit_proof_nonce_is_required_then_accepted() -> None:
    by = guard(KnownTokenVerifier(BOUND), dpop=True, nonce_key=NONCE_KEY)
    refusal = admit_head(by, *dpop())
    assert isinstance(refusal, AuthDenial)
    assert refusal.status == 401
    assert 'DPoP error="use_dpop_nonce"' in challenges(refusal)[1]
    (nonce,) = [value.decode() for name, value in refusal.headers if name == b"dpop-nonce"]
    assert admit_head(by, *dpop("good", proof("good", nonce=nonce))) is BOUND


def test_check_bound_token_missing_scopes_challenges_dpop() -> None:
    refusal = guard(dpop=True, scopes=["x"]).check(BOUND)
    assert [
        challenge.parameters.get("error") for challenge in parse_challenges(challenges(refusal))
    ] == [
        None,
        "insufficient_scope",
    ]


# -- Metadata and options --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "paths"),
    [
        (RESOURCE,
            ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource")),
        ("https://e.com", ("/.well-known/oauth-protected-resource",)),
        ("https://e.com/a/b",
            ("/.well-known/oauth-protected-resource/a/b", "/.well-known/oauth-protected-resource")),
        ("https://e.com/a/",
            ("/.well-known/oauth-protected-resource/a/", "/.well-known/oauth-protected-resource")),
        ("http://127.0.0.1:8000/mcp",
            ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource")),
        ("https://[2001:db8::1]:8443", ("/.well-known/oauth-protected-resource",)),
    ],
)  # fmt: skip
def test_resource_metadata_paths_table(resource: str, paths: tuple[str, ...]) -> None:
    by = guard(resource=resource)
    assert by.metadata_paths == paths
    assert json.loads(by.metadata())["resource"] == resource
    (challenge,) = challenges(admit_head(by))
    assert challenge.endswith(f'{paths[0]}"')


def test_resource_metadata_document_has_all_members() -> None:
    """Members without a value are left out, and our own client reads the full document."""
    assert json.loads(guard().metadata()) == {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
    }
    full = OAuthResourceServer(
        RESOURCE,
        [ISSUER, f"{ISSUER}/other"],
        KnownTokenVerifier(),
        scopes=["a"],
        scopes_supported=["a", "b"],
        resource_name='Files "é"',
        dpop=True,
    )
    assert json.loads(full.metadata()) == {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER, f"{ISSUER}/other"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["a", "b"],
        "resource_name": 'Files "é"',
        "dpop_signing_alg_values_supported": sorted(ASYMMETRIC),
    }
    assert json.loads(guard(scopes=["b", "a", "b"]).metadata())["scopes_supported"] == ["b", "a"]
    # Our own client can read it.
    assert read_resource_metadata(full.metadata()).scopes_supported == ["a", "b"]


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        ("mcp.example.com", "resource is neither https nor http"),
        ("http://mcp.example.com/mcp", "resource is not https"),
        ("https://u@mcp.example.com", "user name"),
        ("https://mcp.example.com/mcp#x", "fragment"),
        ("https://mcp.example.com/mcp?x=1", "query"),
        ("https://mcp.example.com/mcp?", "query"),
        ("https://mcp.example.com/", "write 'https://mcp.example.com'"),
        ("https://MCP.example.com/mcp", "write 'https://mcp.example.com/mcp'"),
        ("HTTPS://mcp.example.com/mcp", "write 'https://mcp.example.com/mcp'"),
        ("https://mcp.example.com:443/mcp", "default port of its scheme"),
        ("http://localhost:80/mcp", "default port of its scheme"),
        ('https://mcp.example.com/"x', "characters"),
        ("https://mcp.example.com/a b", "characters"),
        ("", "characters"),
    ],
)
def test_resource_server_invalid_resource_raises(resource: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        guard(resource=resource)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scopes": "read"}, "a list of texts"),
        ({"scopes": ["a b"]}, "not a valid scope"),
        ({"scopes": [""]}, "not a valid scope"),
        ({"scopes": ['a"']}, "not a valid scope"),
        ({"scopes": ["ä"]}, "not a valid scope"),
        ({"tool_scopes": {"x": "read"}}, "a list of texts"),
        ({"tool_scopes": {"x": ["a\\"]}}, "not a valid scope"),
        ({"resource_scopes": {"x": ["a\n"]}}, "not a valid scope"),
        ({"resource_scopes": {"x:{a}{b}": ["a"]}}, "cannot be matched"),
        ({"resource_scopes": {"x:{a": ["a"]}}, "is never closed"),
        ({"prompt_scopes": {"x": "read"}}, "a list of texts"),
        ({"method_scopes": {"x": ["a\n"]}}, "not a valid scope"),
        ({"scopes_supported": ["a b"]}, "not a valid scope"),
        ({"nonce_key": NONCE_KEY}, "needs dpop=True"),
        ({"dpop": True, "nonce_key": b"short"}, "at least 32 are required"),
    ],
)
def test_resource_server_invalid_options_raise(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        guard(**options)


@pytest.mark.requirement("AR-9")
@pytest.mark.parametrize("name", ["scopes", "scopes_supported"])
def test_resource_server_offline_access_scope_raises(name: str) -> None:
    with pytest.raises(ValueError, match="offline_access"):
        guard(**{name: ["read", "offline_access"]})
    with pytest.raises(ValueError, match="offline_access"):
        guard(tool_scopes={"x": ["offline_access"]})


@pytest.mark.requirement("AR-9")
def test_challenge_omits_offline_access_of_function() -> None:
    refusal = guard(tool_scopes=lambda name: ["a", "offline_access"]).check(
        ME, "tools/call", t.CallToolParams(name="x")
    )
    assert parse_auth_challenge(challenges(refusal)).scopes == ("a",)


@pytest.mark.parametrize(
    ("issuers", "words"),
    [
        ([], "must name at least one issuer"),
        (ISSUER, "a list of texts"),
        (["http://as.example.com"], "not https"),
        (["https://as.example.com?x"], "query"),
        (["as"], "neither"),
    ],
)
def test_resource_server_invalid_issuers_raise(issuers: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        OAuthResourceServer(RESOURCE, issuers, KnownTokenVerifier())


# -- Secrets ---------------------------------------------------------------------------------------


def test_resource_server_reprs_show_no_token() -> None:
    """Logs show reprs: neither tokens nor proofs, however malformed, may reach them."""
    by = guard(KnownTokenVerifier(BOUND), dpop=True, nonce_key=b"canary" * 6)
    assert repr(by) == f"<OAuthResourceServer of {RESOURCE}: <Known>>"
    found = by.read_credentials(dpop("canary", "canary"))
    assert isinstance(found, PresentedCredentials)
    assert repr(found) == str(found) == "<PresentedCredentials>"
    for headers in (
        [bearer("canary")],
        dpop("canary"),
        [bearer("canary"), bearer("canary")],
        [(b"authorization", b"canary canary")],
        [(b"authorization", b"Bearer canary canary")],
        [bearer("canary" * 9999)],
        dpop("good", "canary"),
    ):
        refusal = admit_head(by, *headers)
        assert isinstance(refusal, AuthDenial)
        assert "canary" not in repr(refusal)


def test_grant_contains_no_token() -> None:
    text = token()
    grant = admit_head(guard(JwtVerifier(ISSUER, RESOURCE, jwks=JWKS)), bearer(text))
    assert isinstance(grant, Grant)
    assert isinstance(grant, Struct)
    everything = repr([getattr(grant, name) for name in grant.__struct_fields__])
    assert not any(part in everything for part in text.split("."))
