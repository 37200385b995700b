"""The URLs of OAuth: canonical resources, what a resource covers, and where the metadata is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.auth import AuthorizationFailed
from mcp_core.auth._resource_urls import (
    canonical_resource,
    check_url,
    distinct_redirect_uri,
    is_root_metadata_url,
    issuer_metadata_urls,
    names_host,
    names_server,
    resource_metadata_urls,
    with_port_of,
)
from mcp_core.urls import find_url_error, origin_text
from tests.core.auth.play import PRM
from tests.core.urls.test_addresses import GOOD


@pytest.mark.requirement("AU-2", "AU-4")
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("url", GOOD)
def test_check_url_usable_url_is_returned(url: str, local: bool) -> None:
    assert check_url(url, "it", local=local) == url


def test_check_url_error_hides_credentials_and_query() -> None:
    with pytest.raises(AuthorizationFailed) as caught:
        check_url("https://user:hunter2@e.com/x?token=hunter3", "the token_endpoint", local=False)
    assert str(caught.value).startswith("the token_endpoint contains a user name: '...@e.com/x'.")


@given(st.text() | st.text().map(lambda text: f"https://{text}"))
def test_resource_urls_of_any_usable_url_do_not_raise(url: str) -> None:
    if find_url_error(url, allow_loopback=True) is None:
        canonical_resource(url)
        resource_metadata_urls(url)
        issuer_metadata_urls(url)
        assert names_server(url, url)


@pytest.mark.parametrize(
    ("url", "other", "expected"),
    [
        (
            "http://127.0.0.1:0/callback",
            "http://127.0.0.1:7777/x",
            "http://127.0.0.1:7777/callback",
        ),
        ("http://[::1]:0/callback", "http://[::1]:7777/x", "http://[::1]:7777/callback"),
        ("http://127.0.0.1:0/callback", "http://127.0.0.1/x", "http://127.0.0.1:0/callback"),
        ("http://127.0.0.1:0/callback", "http://127.0.0.1:x/", "http://127.0.0.1:0/callback"),
    ],
)
def test_port_of_other_url_is_taken_over(url: str, other: str, expected: str) -> None:
    assert with_port_of(url, other) == expected


CANONICAL = [
    ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
    ("https://mcp.example.com", "https://mcp.example.com"),
    ("https://mcp.example.com/", "https://mcp.example.com"),
    ("HTTPS://MCP.Example.COM:8443/Server/MCP", "https://mcp.example.com:8443/Server/MCP"),
    ("https://e.com/mcp/", "https://e.com/mcp/"),
    ("https://e.com/mcp?tenant=A#top", "https://e.com/mcp?tenant=A"),
]


@pytest.mark.requirement("AF-4")
@pytest.mark.parametrize(("url", "resource"), CANONICAL)
def test_canonical_resource_normalizes_scheme_and_host(url: str, resource: str) -> None:
    assert canonical_resource(url) == resource
    assert resource.startswith(origin_text(url))


NAMED = [
    # the published resource, the URL of the server, and what it names
    ("https://e.com/mcp", "https://e.com/mcp", "server"),
    ("https://e.com/mcp/", "https://e.com/mcp", "server"),
    ("https://e.com/mcp", "https://e.com/mcp/", "server"),
    ("https://E.COM:443/a/b", "https://e.com/a/b", "server"),
    ("https://e.com/mcp?x=1", "https://e.com/mcp?x=1", "server"),
    ("https://e.com/mcp", "https://e.com/mcp?x=1", "server"),
    ("https://e.com/", "https://e.com", "server and host"),
    ("https://e.com", "https://e.com/mcp", "host"),
    ("https://e.com/", "https://e.com/mcp", "host"),
    ("https://E.COM:443", "https://e.com/a/b", "host"),
    ("https://e.com/?x=1", "https://e.com/mcp?x=1", ""),
    ("https://e.com/a", "https://e.com/a/mcp", ""),
    ("https://e.com/mcp?x=1", "https://e.com/mcp?x=2", ""),
    ("https://e.com/mcp?x=1", "https://e.com/mcp", ""),
    ("https://e.com/mc", "https://e.com/mcp", ""),
    ("https://e.com/mcp/deeper", "https://e.com/mcp", ""),
    ("https://e.com/other", "https://e.com/mcp", ""),
    ("https://f.com/mcp", "https://e.com/mcp", ""),
    ("https://f.com", "https://e.com/mcp", ""),
    ("https://e.com.f.com/mcp", "https://e.com/mcp", ""),
    ("http://e.com/mcp", "https://e.com/mcp", ""),
    ("https://e.com:8443/mcp", "https://e.com/mcp", ""),
    ("https://e.com:x/mcp", "https://e.com/mcp", ""),
    ("https://[::1", "https://e.com/mcp", ""),
]


@pytest.mark.requirement("AC-7", "AF-4")
@pytest.mark.parametrize(("resource", "url", "named"), NAMED)
def test_resource_names_same_server_or_its_host_only(resource: str, url: str, named: str) -> None:
    assert names_server(resource, url) is ("server" in named)
    assert names_host(resource, url) is ("host" in named)


@pytest.mark.requirement("AC-7")
@pytest.mark.parametrize(
    ("location", "yes"),
    [
        (f"https://e.com{PRM}", True),
        (f"https://E.com:443{PRM}", True),
        (f"https://e.com{PRM}/", False),
        (f"https://e.com{PRM}/mcp", False),
        (f"https://e.com{PRM}?x=1", False),
        (f"https://e.com/mcp{PRM}", False),
        (f"https://f.com{PRM}", False),
        (f"https://e.com:8443{PRM}", False),
        ("https://[::1", False),
    ],
)
def test_root_metadata_url_is_one_place_only(location: str, yes: bool) -> None:
    assert is_root_metadata_url(location, "https://e.com/mcp") is yes


def test_distinct_redirect_uri_differs_per_issuer() -> None:
    uri = "http://127.0.0.1:4711/callback"
    found = {distinct_redirect_uri(uri, issuer) for issuer in ("https://a", "https://a/", "b")}
    assert len(found) == 3
    assert found == {distinct_redirect_uri(uri, each) for each in ("https://a", "https://a/", "b")}
    for each in found:
        assert re.fullmatch(r"http://127\.0\.0\.1:4711/callback/[A-Za-z0-9_-]{22}", each)
    assert distinct_redirect_uri("http://[::1]:1", "b").startswith("http://[::1]:1/")


WELL_KNOWN = [
    ("https://e.com/public/mcp", ["/public/mcp", ""]),
    ("https://e.com", [""]),
    ("https://e.com/", [""]),
    ("https://e.com/mcp?x=1", ["/mcp?x=1", ""]),
    ("https://e.com:8443/mcp", ["/mcp", ""]),
]


@pytest.mark.requirement("AC-5")
@pytest.mark.parametrize(("url", "paths"), WELL_KNOWN)
def test_resource_metadata_urls_most_specific_first(url: str, paths: list[str]) -> None:
    root = "/".join(url.split("/")[:3])
    expected = [f"{root}/.well-known/oauth-protected-resource{path}" for path in paths]
    assert resource_metadata_urls(url) == expected


ISSUERS = [
    (
        "https://a.com",
        ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"],
    ),
    (
        "https://a.com/",
        ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"],
    ),
    *(
        (
            f"https://a.com/tenant1{slash}",
            [
                "/.well-known/oauth-authorization-server/tenant1",
                "/.well-known/openid-configuration/tenant1",
                "/tenant1/.well-known/openid-configuration",
            ],
        )
        for slash in ("", "/")
    ),
]


@pytest.mark.requirement("AC-10", "AC-11")
@pytest.mark.parametrize(("issuer", "paths"), ISSUERS)
def test_issuer_metadata_urls_rfc8414_before_openid(issuer: str, paths: list[str]) -> None:
    assert issuer_metadata_urls(issuer) == [f"https://a.com{path}" for path in paths]
