"""`ClientProfile`: valid options, and combinations that are rejected."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.auth import ClientProfile, EnterpriseManaged, JwtBearer, Secret

CIMD = "https://app.example.com/client.json"
SECRET = Secret("canary-4711")
ISSUER = "https://as.example.com"
MANAGED = EnterpriseManaged(lambda: "t", "https://idp.com/token", "c", SECRET)

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"redirect_uri": "http://e.com/cb"}, "neither https nor http on loopback"),
    ({"redirect_uri": "com.example.app:/cb"}, "neither https nor http on loopback"),
    ({"redirect_uri": "http://localhost/cb#x"}, "has a fragment"),
    ({"client_metadata_url": "https://e.com"}, "must be an https URL with a path"),
    ({"client_metadata_url": "https://e.com/"}, "must be an https URL with a path"),
    ({"client_metadata_url": "http://localhost/x.json"}, "must be an https URL with a path"),
    ({"client_metadata_url": "https://e.com/x#y"}, "must be an https URL with a path"),
    ({"redirect_uri": "http://localhost:99999/cb"}, "an invalid port"),
    ({"redirect_uri": "http://localhost:x/cb"}, "an invalid port"),
    (
        {"client_id": "c", "client_secret": "canary"},
        r"client_secret must be a Secret.*Secret\(\.\.\.\)",
    ),
    ({"client_id": "c", "private_key": "canary"}, "private_key must be a Secret"),
    ({"client_secret": SECRET}, "client_secret needs client_id"),
    ({"client_id": "c", "keep_secret": True}, "keep_secret needs client_secret"),
    ({"grant": "client_credentials"}, "needs client_id, and client_secret or private_key"),
    (
        {"grant": "client_credentials", "client_id": "c"},
        "needs client_id, and client_secret or private_key",
    ),
    ({"grant": "client_credentials", "client_metadata_url": CIMD}, "needs client_id"),
    ({"grant": JwtBearer(lambda: "x")}, "set client_id"),
    ({"grant": MANAGED}, "set client_id"),
    ({"client_id": "c", "client_secret": SECRET}, "client_secret needs issuer: the URL of"),
    ({"client_id": "c", "private_key": SECRET}, "private_key needs issuer"),
    ({"client_id": "c", "client_metadata_url": CIMD, "private_key": SECRET}, "needs issuer"),
    (
        {"grant": "client_credentials", "client_id": "c", "client_secret": SECRET},
        "client_secret needs issuer",
    ),
    ({"grant": JwtBearer(lambda: "x"), "client_id": "c"}, "the grant JwtBearer needs issuer"),
    ({"grant": MANAGED, "client_id": "c"}, "the grant EnterpriseManaged needs issuer"),
    (
        {"grant": MANAGED, "client_metadata_url": CIMD, "private_key": SECRET},
        "the grant EnterpriseManaged needs issuer",
    ),
    ({"assume_pkce": True}, "assume_pkce needs issuer: the one authorization server"),
    ({"assume_pkce": True, "client_id": "c"}, "assume_pkce needs issuer"),
    ({"send_resource": False, "scopes": ("a",)}, "send_resource=False needs issuer"),
    ({"metadata_issuer": "https://b.example"}, "metadata_issuer needs issuer"),
    ({"send_resource": False, "issuer": ISSUER}, "send_resource=False needs scopes"),
    ({"send_resource": False, "issuer": ISSUER, "scopes": ()}, "send_resource=False needs scopes"),
    ({"metadata_issuer": "", "issuer": ISSUER}, "metadata_issuer is empty"),
    ({"issuer": "as.example"}, "issuer is neither https nor http: 'as.example'"),
    ({"issuer": "http://as.example"}, "issuer is not https"),
    (
        {"issuer": "https://u:canary@as.example"},
        r"issuer contains a user name: '\.\.\.@as.example'",
    ),
]


@pytest.mark.requirement("AQ-4", "AG-6")
@pytest.mark.parametrize(("members", "text"), REFUSED)
def test_profile_contradictory_options_raise(members: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ClientProfile(**members)


def test_enterprise_managed_plain_secret_raises() -> None:
    with pytest.raises(ValueError, match="client_secret must be a Secret"):
        EnterpriseManaged(lambda: "t", "https://idp.com/token", "c", "canary")  # type: ignore[arg-type]


TAKEN: list[dict[str, Any]] = [
    {},
    {"redirect_uri": "https://e.com/cb"},
    {"redirect_uri": "http://[::1]:8080/cb"},
    {"client_metadata_url": CIMD},
    {"client_id": "c"},
    {"assume_pkce": True, "issuer": ISSUER},
    {"send_resource": False, "issuer": ISSUER, "scopes": ("a",)},
    {"metadata_issuer": "https://b.example/{tenantid}", "issuer": ISSUER},
    {"assume_pkce": False, "send_resource": True, "metadata_issuer": None},
    {"client_id": "c", "client_secret": SECRET, "issuer": ISSUER},
    {"client_id": "c", "private_key": SECRET, "issuer": "http://localhost:9000"},
    # A client assertion names the one server that it is for.
    {"client_metadata_url": CIMD, "private_key": SECRET},
    {
        "grant": "client_credentials",
        "client_id": "c",
        "client_secret": SECRET,
        "issuer": ISSUER,
    },
    {"grant": "client_credentials", "client_metadata_url": CIMD, "private_key": SECRET},
    {"grant": JwtBearer(lambda: "x"), "client_id": "c", "issuer": ISSUER},
    {"grant": MANAGED, "client_id": "c", "issuer": ISSUER},
]


@pytest.mark.parametrize("members", TAKEN)
def test_profile_valid_options_are_accepted(members: dict[str, Any]) -> None:
    profile = ClientProfile(**members)
    assert profile.interactive is ("grant" not in members)
    assert "canary" not in repr(profile)


@pytest.mark.requirement("AQ-6")
@pytest.mark.parametrize(
    ("redirect_uri", "type"),
    [
        ("http://127.0.0.1:0/callback", "native"),
        ("http://localhost:3000/callback", "native"),
        ("https://localhost/callback", "native"),
        ("https://e.com/callback", "web"),
    ],
)
def test_profile_application_type_depends_on_redirect_uri(redirect_uri: str, type: str) -> None:
    assert ClientProfile(redirect_uri=redirect_uri).application_type == type


@pytest.mark.requirement("AX-1", "AX-2", "AG-8")
@pytest.mark.parametrize(
    ("grant", "names"),
    [
        ("authorization_code", []),
        ("client_credentials", ["io.modelcontextprotocol/oauth-client-credentials"]),
        (MANAGED, ["io.modelcontextprotocol/enterprise-managed-authorization"]),
        (JwtBearer(lambda: "x"), []),
    ],
)
def test_profile_extensions_depend_on_grant(grant: Any, names: list[str]) -> None:
    profile = ClientProfile(grant=grant, client_id="c", client_secret=SECRET, issuer=ISSUER)
    assert profile.extensions == {name: {} for name in names}
