"""Who we are to authorization servers, in names that a user sets.

Rules of this file:

1. What cannot work is refused when it is written down (`ValueError`), not when a user waits for a browser.
2. Secrets are `Secret`: a profile can be printed.

Sources: 2026-07-28 basic/authorization/client-registration; extensions/auth (client credentials, enterprise-managed);
RFC 7591 section 2, RFC 8252 sections 7 and 8.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_core.urls import is_local, url_fault

from ._secret import Opaque, Secret

__all__ = ["AuthMethod", "ClientProfile", "EnterpriseManaged", "GrantType", "JwtBearer"]

AuthMethod: TypeAlias = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]


class JwtBearer(Opaque, frozen=True):
    """A workload shows the JWT that its platform gave it (RFC 7523 section 2.1). `assertion` is asked for each time."""

    assertion: Callable[[], str]


class EnterpriseManaged(Opaque, frozen=True):
    """The identity provider of the organisation decides: its ID token is exchanged there for an assertion (ID-JAG), and that at the
    authorization server of the MCP server for a token. No browser is opened.

    `id_token` is asked for each time. `token_endpoint`, `client_id` and `client_secret` are those of the identity provider.

    Raises:
        ValueError: `client_secret` is no `Secret`.
    """

    id_token: Callable[[], str]
    token_endpoint: str
    client_id: str
    client_secret: Secret | None = None

    def __post_init__(self) -> None:
        _check_secret("client_secret", self.client_secret)


GrantType: TypeAlias = Literal["authorization_code", "client_credentials"] | JwtBearer | EnterpriseManaged


def _check_secret(name: str, value: object) -> None:
    if value is not None and not isinstance(value, Secret):
        raise ValueError(f"{name} is a Secret, so that nobody prints it: Secret(...)")


_EXTENSIONS: Final = {
    "client_credentials": "io.modelcontextprotocol/oauth-client-credentials",
    EnterpriseManaged: "io.modelcontextprotocol/enterprise-managed-authorization",
}


class ClientProfile(Struct, frozen=True, kw_only=True):
    """What authorization servers are told about this client, and what it has that they know it by.

    - `client_name` is shown to the user who is asked for consent.
    - `redirect_uri` is where the browser comes back to: `https`, or `http` on loopback. Port 0 means any that is free, the same one
      as the last time if it is.
    - `scopes` are asked for at every login, beside what the server demands; None: what the server demands or publishes.
    - `client_id`, and `client_secret` or `private_key` (PEM), are those of a client that somebody registered by hand with the
      authorization server `issuer`. Without `issuer` it is the first one that is met; credentials never go to another.
    - `keep_secret`: `client_secret` is kept with the tokens, for whoever comes later and renews them without this profile.
    - `client_metadata_url` is the https URL of a document that describes this client (Client ID Metadata Document).
    - `grant` is how tokens are got: by a user in a browser ("authorization_code"), with the client's own credentials
      ("client_credentials"), or with an assertion.
    - `offline_access` asks for a refresh token where the authorization server has a scope for that.

    Raises:
        ValueError: it contradicts itself.
    """

    client_name: str = "mcp-trio"
    redirect_uri: str = "http://127.0.0.1:0/callback"
    scopes: tuple[str, ...] | None = None
    client_id: str | None = None
    client_secret: Secret | None = None
    private_key: Secret | None = None
    signing_algorithm: str | None = None
    issuer: str | None = None
    keep_secret: bool = False
    client_metadata_url: str | None = None
    grant: GrantType = "authorization_code"
    offline_access: bool = True

    def __post_init__(self) -> None:
        parts = urlsplit(self.redirect_uri)
        try:
            _ = parts.port
        except ValueError:
            raise ValueError("redirect_uri has a port that is none") from None
        if parts.scheme != "https" and not (parts.scheme == "http" and is_local(self.redirect_uri)):
            raise ValueError("redirect_uri is neither https nor http on loopback")
        if parts.fragment:
            raise ValueError("redirect_uri has a fragment")
        url = self.client_metadata_url
        if url is not None and (url_fault(url, local=False) or urlsplit(url).path in ("", "/")):
            raise ValueError("client_metadata_url is no https URL with a path")
        for name in ("client_secret", "private_key"):
            _check_secret(name, getattr(self, name))
        if self.client_secret is not None and self.client_id is None:
            raise ValueError("client_secret without client_id")
        if self.keep_secret and self.client_secret is None:
            raise ValueError("keep_secret without client_secret")
        known = self.client_id is not None or (url is not None and self.private_key is not None)
        if self.grant == "client_credentials" and not (
            known and (self.client_secret is not None or self.private_key is not None)
        ):
            raise ValueError("client_credentials needs client_id, and client_secret or private_key")
        if self.grant != "authorization_code" and not known:
            raise ValueError("without a user there is no registration: give client_id")

    @property
    def interactive(self) -> bool:
        """Whether a user is needed to get a token."""
        return self.grant == "authorization_code"

    @property
    def application_type(self) -> Literal["native", "web"]:
        """What a registration calls this client (OpenID Connect Registration): native if the browser comes back to this machine."""
        return "native" if is_local(self.redirect_uri) else "web"

    @property
    def extensions(self) -> dict[str, dict[str, object]]:
        """What to declare among the client's `extensions`, for a server to know how it gets its tokens."""
        name = _EXTENSIONS.get(self.grant if isinstance(self.grant, str) else type(self.grant))
        return {name: {}} if name is not None else {}
