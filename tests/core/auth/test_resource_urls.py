"""The URLs of OAuth: canonical resources, what a resource covers, and where the metadata is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.auth import AuthorizationFailed
from mcp_core.auth._resource_urls import (
    canonical_resource,
    check_url,
    covers,
    issuer_metadata_urls,
    redacted_url,
    resource_metadata_urls,
    with_port_of,
)
from mcp_core.urls import find_url_error, origin_text
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
    assert redacted_url("x\r\n" * 100) == repr(("x\r\n" * 100)[:120] + "...")


@given(st.text() | st.text().map(lambda text: f"https://{text}"))
def test_resource_urls_of_any_usable_url_do_not_raise(url: str) -> None:
    if find_url_error(url, allow_loopback=True) is None:
        canonical_resource(url)
        resource_metadata_urls(url)
        issuer_metadata_urls(url)
        assert covers(url, url)
    redacted_url(url)


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


COVERS = [
    ("https://e.com/mcp", "https://e.com/mcp", True),
    ("https://e.com/mcp/", "https://e.com/mcp", True),
    ("https://e.com", "https://e.com/mcp", True),
    ("https://e.com/", "https://e.com/mcp", True),
    ("https://E.COM:443/a", "https://e.com/a/b", True),
    ("https://e.com/mcp?x=1", "https://e.com/mcp?x=1", True),
    ("https://e.com/mcp", "https://e.com/mcp?x=1", True),
    ("https://e.com/mcp?x=1", "https://e.com/mcp?x=2", False),
    ("https://e.com/mc", "https://e.com/mcp", False),
    ("https://e.com/mcp/deeper", "https://e.com/mcp", False),
    ("https://e.com/other", "https://e.com/mcp", False),
    ("https://f.com/mcp", "https://e.com/mcp", False),
    ("https://e.com.f.com/mcp", "https://e.com/mcp", False),
    ("http://e.com/mcp", "https://e.com/mcp", False),
    ("https://e.com:8443/mcp", "https://e.com/mcp", False),
    ("https://e.com:x/mcp", "https://e.com/mcp", False),
]


@pytest.mark.requirement("AC-7", "AF-4")
@pytest.mark.parametrize(("resource", "url", "yes"), COVERS)
def test_covers_same_origin_and_parent_path_only(resource: str, url: str, yes: bool) -> None:
    assert covers(resource, url) is yes


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
