"""The browser part of a login: the authorization URL, and a table of callbacks."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_core.auth import AuthorizationFailed, Browse, Secret, is_callback_for
from mcp_core.auth.client._callback import (
    AuthorizationRequest,
    authorization_url,
    code_challenge,
    new_authorization_request,
    new_secret,
    read_callback,
)
from tests.core.auth.play import AS, MCP, REDIRECT, Entropy, authority

PENDING = AuthorizationRequest(AS, Secret("the-state"), Secret("the-verifier"), REDIRECT, MCP)


def came(*pairs: tuple[str, str], **fields: str | None) -> str:
    known: dict[str, str | None] = {"state": "the-state", "code": "the-code", "iss": AS}
    known |= fields
    query = [(name, value) for name, value in known.items() if value is not None]
    return f"{REDIRECT}?{urlencode([*query, *pairs])}"


@pytest.mark.requirement("AF-1", "AF-2", "AF-8")
def test_authorization_request_records_values_to_match() -> None:
    pending = new_authorization_request(authority("https://e.com/x", AS), REDIRECT, Entropy())
    assert (pending.issuer, pending.redirect_uri, pending.resource) == (
        AS,
        REDIRECT,
        "https://e.com/x",
    )
    assert pending.state != pending.verifier
    assert repr(pending) == "<AuthorizationRequest>"


@pytest.mark.requirement("AF-2")
@pytest.mark.parametrize("methods", [None, [], ["plain"], ["s256"]])
def test_authorization_request_without_s256_fails(methods: list[str] | None) -> None:
    with pytest.raises(AuthorizationFailed, match="does not say that it supports PKCE with S256"):
        new_authorization_request(
            authority(code_challenge_methods_supported=methods), REDIRECT, Entropy()
        )


@pytest.mark.requirement("AF-2")
@pytest.mark.parametrize("methods", [[], ["plain"], ["s256"]])
def test_assumed_pkce_never_overrules_a_list(methods: list[str]) -> None:
    with pytest.raises(AuthorizationFailed, match="does not say that") as caught:
        new_authorization_request(
            authority(code_challenge_methods_supported=methods),
            REDIRECT,
            Entropy(),
            assume_pkce=True,
        )
    assert "assume_pkce" not in str(caught.value)


@pytest.mark.requirement("AF-1", "AF-2")
def test_assumed_pkce_without_list_is_used_all_the_same() -> None:
    quiet = authority(code_challenge_methods_supported=None)
    with pytest.raises(AuthorizationFailed, match="set issuer and assume_pkce=True of the profile"):
        new_authorization_request(quiet, REDIRECT, Entropy())
    pending = new_authorization_request(quiet, REDIRECT, Entropy(), assume_pkce=True)
    url = authorization_url(quiet, pending, "c", (), allow_loopback=True)
    query = dict(parse_qsl(urlsplit(url).query))
    assert query["code_challenge_method"] == "S256"
    assert query["code_challenge"] == code_challenge(pending.verifier)


def test_authorization_url_without_resource() -> None:
    pending = new_authorization_request(authority(), REDIRECT, Entropy(), send_resource=False)
    url = authorization_url(authority(), pending, "c", ("a",), allow_loopback=True)
    assert "resource" not in dict(parse_qsl(urlsplit(url).query))
    # The endpoint must not choose it either.
    endpoint = authority(authorization_endpoint=f"{AS}/authorize?resource=x")
    with pytest.raises(AuthorizationFailed, match=r"already sets parameters .* \(resource\)"):
        authorization_url(endpoint, pending, "c", ("a",), allow_loopback=True)


@pytest.mark.requirement("AF-10")
def test_authorization_request_has_the_issuer_that_iss_will_be() -> None:
    named = replace(authority(issuer=AS), metadata_issuer="https://own.com")
    assert new_authorization_request(named, REDIRECT, Entropy()).issuer == "https://own.com"


def built_url(scopes: tuple[str, ...] = (), **more: Any) -> tuple[str, dict[str, str]]:
    url = authorization_url(authority(**more), PENDING, "client id", scopes, allow_loopback=True)
    return url, dict(parse_qsl(urlsplit(url).query, strict_parsing=True))


@pytest.mark.requirement("AF-3", "AF-5")
def test_authorization_url_has_all_parameters() -> None:
    url, query = built_url(("a", "b c"))
    assert query == {
        "response_type": "code",
        "client_id": "client id",
        "redirect_uri": REDIRECT,
        "state": "the-state",
        "code_challenge": code_challenge(Secret("the-verifier")),
        "code_challenge_method": "S256",
        "resource": MCP,
        "scope": "a b c",
    }
    assert "the-verifier" not in url
    assert "+" not in url


@pytest.mark.requirement("AF-6", "AT-3")
def test_authorization_url_scope_and_prompt_are_optional() -> None:
    assert "scope" not in built_url()[1]
    assert built_url(("a", "offline_access"))[1]["prompt"] == "consent"


def test_authorization_url_keeps_query_of_endpoint() -> None:
    url, query = built_url(authorization_endpoint=f"{AS}/authorize?tenant=1")
    assert url.startswith(f"{AS}/authorize?tenant=1&response_type=code&")
    assert query["tenant"] == "1"


@pytest.mark.parametrize(
    "name",
    "client_id redirect_uri state code_challenge scope request request_uri response_mode".split(),
)
def test_authorization_url_conflicting_query_fails(name: str) -> None:
    for query in (
        f"?{name}=x",
        f"?a=b&{name}",
        f"?{name.replace('_', '%5f')}=",
        f"?{name}=x&{name}=y",
    ):
        with pytest.raises(
            AuthorizationFailed, match=rf"already sets parameters of a login \({name}\)"
        ):
            built_url(authorization_endpoint=f"{AS}/authorize{query}")


def test_authorization_url_without_endpoint_fails() -> None:
    with pytest.raises(
        AuthorizationFailed, match="has no authorization endpoint, so a browser cannot log in"
    ):
        built_url(authorization_endpoint=None)


@pytest.mark.requirement("AU-4")
@pytest.mark.parametrize(
    "endpoint",
    ["javascript:alert(1)//", "--flag", f"{AS}/$(calc)", f"{AS}/" + "x" * 8000, "a:&calc"],
)
def test_authorization_url_unusable_endpoint_fails(endpoint: str) -> None:
    with pytest.raises(
        AuthorizationFailed, match="authorization_endpoint of the authorization server"
    ):
        built_url(authorization_endpoint=endpoint)


GOOD: list[tuple[str, bool]] = [
    (came(), True),
    (came(), False),
    (came(iss=None), False),
    (came(unknown="x"), True),
    (f"?state=the-state&code=the-code&iss={AS}", True),
    (came(code="a+b/c=&d%"), True),
]


@pytest.mark.requirement("AF-9")
@pytest.mark.parametrize(("callback", "promised"), GOOD)
def test_callback_valid_returns_code(callback: str, promised: bool) -> None:
    assert read_callback(callback, PENDING, iss_required=promised).reveal() in (
        "the-code",
        "a+b/c=&d%",
    )


BAD: list[tuple[str, bool, str]] = [
    (came(state=None), True, "state does not match"),
    (came(state=""), True, "state does not match"),
    (came(state="another"), True, "state does not match"),
    (came(state="The-State"), True, "state does not match"),
    (came(("state", "the-state")), True, "state twice"),
    (came(iss=None), True, "iss is missing"),
    (came(iss=""), False, "iss does not match"),
    (came(("iss", AS)), True, "iss twice"),
    *(
        (came(iss=iss), promised, "iss does not match")
        for promised in (True, False)
        for iss in (
            f"{AS}/",
            AS.upper(),
            f"{AS}:80",
            AS.replace("h", "%68", 1),
            "https://evil.example.com",
            f" {AS}",
        )
    ),
    (came(code=None), True, "without a code and without an error"),
    (came(code=""), True, "without a code and without an error"),
    (came(("code", "other")), True, "code twice"),
    (
        came(error="access_denied"),
        True,
        "^the login was refused, by the user or by the authorization server: access_denied$",
    ),
    (came(error="invalid_scope", error_description="no x"), True, r": invalid_scope \(no x\)$"),
    (
        came(error="invalid_target", error_description="AADSTS9010010"),
        True,
        r"invalid_target \(AADSTS9010010\)\. If it .* set issuer, scopes and send_resource=False",
    ),
    (
        came(error="invalid_request", error_description="'resource' isn't supported"),
        True,
        r"isn't supported\)\. If it .* set issuer, scopes and send_resource=False",
    ),
    (came(error="odd"), True, "^the authorization server refused the login: odd$"),
    (came(error="a\x1b[31m"), True, "with an error that cannot be read"),
    (came(error=""), True, "with an error that cannot be read"),
    (came(("error", "x"), error="y"), True, "error twice"),
    (came(code="x" * 20_000), True, "more than 16384 characters"),
    (came(*[("x", "y")] * 60), True, "with too many parameters"),
    (REDIRECT, True, "state does not match"),
    ("", True, "state does not match"),
    ("http://[", True, "not a URL"),
    (came() + "&x=\udc80", True, "not a URL"),
    (f"{REDIRECT}#state=the-state&code=c&iss={AS}", True, "state does not match"),
]


@pytest.mark.requirement("AF-5", "AF-9", "AF-10")
@pytest.mark.parametrize(("callback", "promised", "text"), BAD)
def test_callback_invalid_fails(callback: str, promised: bool, text: str) -> None:
    with pytest.raises(AuthorizationFailed, match=text) as caught:
        read_callback(callback, PENDING, iss_required=promised)
    assert "the-code" not in str(caught.value)
    assert "the-state" not in str(caught.value)


@pytest.mark.requirement("AF-11")
@pytest.mark.parametrize(
    "fields", [{"iss": "https://evil.example.com"}, {"iss": None}, {"state": "another"}]
)
def test_callback_wrong_state_hides_its_error(fields: dict[str, str | None]) -> None:
    words = {
        "error": "evil-error",
        "error_description": "evil-words",
        "error_uri": "https://evil-uri.com",
    }
    with pytest.raises(AuthorizationFailed) as caught:
        read_callback(came(**(words | fields)), PENDING, iss_required=True)
    assert caught.value.error is None
    assert not any(word in str(caught.value) for word in ("evil-error", "evil-words", "evil-uri"))


BROWSE = Browse(f"{AS}/authorize?state=the-state&x=y", REDIRECT)


@pytest.mark.requirement("AF-5")
@pytest.mark.parametrize(
    ("callback", "yes"),
    [
        (came(), True),
        (came(code=None, error="access_denied"), True),
        (came().replace("localhost", "LocalHost"), True),
        ("/callback?state=the-state&error=access_denied", False),
        (came().replace("/callback", "/callback/of-another-issuer"), False),
        (came().replace("/callback", "/other"), False),
        (came().replace("localhost:3000", "localhost:3001"), False),
        (came().replace("http:", "https:"), False),
        (came().replace("localhost", "evil.example"), False),
        (came(state="another"), False),
        (came(state="é"), False),
        (came(state=None), False),
        (came(("state", "the-state")), False),
        (came(*[("x", "y")] * 60), False),
        ("http://[", False),
        ("/favicon.ico", False),
    ],
)
def test_is_callback_matches_place_and_state_only(callback: str, yes: bool) -> None:
    assert is_callback_for(BROWSE, callback) is yes


def test_is_callback_request_without_state_is_false() -> None:
    assert not is_callback_for(Browse(f"{AS}/authorize", REDIRECT), came())


@given(
    st.text()
    | st.text().map(lambda text: f"{REDIRECT}?{text}")
    | st.text().map(lambda text: came(iss=text))
)
def test_callback_any_text_raises_authorization_failed_only(callback: str) -> None:
    is_callback_for(BROWSE, callback)
    with pytest.raises(AuthorizationFailed):
        read_callback(callback, PENDING, iss_required=True)


# -- PKCE ------------------------------------------------------------------------------------------


@pytest.mark.requirement("AF-1", "AF-2")
def test_code_challenge_equals_example_of_rfc_7636() -> None:
    verifier = Secret("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    assert code_challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_new_secret_has_256_bits() -> None:
    secret = new_secret(lambda size: b"\xfb" * size)
    assert secret.reveal() == "-_v7" * 10 + "-_s"
