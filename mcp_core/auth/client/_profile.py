"""The configuration of a client towards authorization servers.

1. A configuration that cannot work raises `ValueError` when it is created, before any login.
2. Secrets have the type `Secret`, so a profile can be printed.

Sources: 2026-07-28 basic/authorization/client-registration; extensions/auth (client credentials,
enterprise-managed); RFC 7591 section 2, RFC 8252 sections 7 and 8.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_core.auth._secret import RedactedStruct, Secret
from mcp_core.urls._addresses import find_url_error, is_loopback_url
from mcp_core.urls._url import redacted_url

__all__ = ["AuthMethod", "ClientProfile", "EnterpriseManaged", "GrantType", "JwtBearer"]

AuthMethod: TypeAlias = Literal[
    "none", "client_secret_basic", "client_secret_post", "private_key_jwt"
]


class JwtBearer(RedactedStruct, frozen=True):
    """The JWT bearer grant (RFC 7523 section 2.1), for workloads.

    The client presents a JWT that its platform issued. `assertion` returns it and is called for
    each token request.
    """

    assertion: Callable[[], str]


class EnterpriseManaged(RedactedStruct, frozen=True):
    """The enterprise-managed grant: the organization's identity provider decides.

    No browser is opened. The client exchanges an ID token at the identity provider for an assertion
    (ID-JAG), and that assertion at the MCP server's authorization server for an access token.

    `id_token` returns the ID token and is called for each token request. `token_endpoint`,
    `client_id` and `client_secret` are the identity provider's.

    Raises:
        ValueError: `client_secret` isn't a `Secret`.
    """

    id_token: Callable[[], str]
    token_endpoint: str
    client_id: str
    client_secret: Secret | None = None

    def __post_init__(self) -> None:
        _check_secret("client_secret", self.client_secret)


GrantType: TypeAlias = (
    Literal["authorization_code", "client_credentials"] | JwtBearer | EnterpriseManaged
)


def _check_secret(name: str, value: object) -> None:
    """Raise `ValueError` if `value` is neither None nor a `Secret`."""
    if value is not None and not isinstance(value, Secret):
        raise ValueError(f"{name} must be a Secret, so that it is never printed: Secret(...)")


_EXTENSIONS: Final = {
    "client_credentials": "io.modelcontextprotocol/oauth-client-credentials",
    EnterpriseManaged: "io.modelcontextprotocol/enterprise-managed-authorization",
}


class ClientProfile(Struct, frozen=True, kw_only=True):
    """The description of this client for authorization servers, and its credentials.

    - `client_name` is shown to the user on the consent page.
    - `redirect_uri` is the URL to which the browser is redirected after the login: `https`, or
      `http` on loopback. Port 0 means any free port; the last login's port is preferred, and a
      client that registers dynamically adds a path of its own for each authorization server (RFC
      9700 section 4.4.2.2). With another port, a `client_id` or a `client_metadata_url`, the URL is
      used as it is.
    - `scopes` are requested at every login. With a user, those that the server demands are added;
      None: only those that it demands or publishes. Without a user, no others are ever requested;
      None: none, and the authorization server decides.
    - `client_id`, and `client_secret` or `private_key` (PEM), belong to a client that was
      registered by hand with the authorization server `issuer`. They are never sent to another one.
      Without `issuer`, which only a `client_id` alone may lack, they belong to the first
      authorization server that is used.
    - `issuer` is the only authorization server to use: its issuer identifier, character by
      character but for the slash after a bare origin. It is needed with `client_secret`, with
      `client_id` and `private_key`, and with an assertion. Otherwise a hostile MCP server could
      name a server of its own to get them.
    - `signing_algorithm` is the algorithm that `private_key` signs with. None: the most common one
      for the key.
    - `keep_secret`: store `client_secret` with the tokens, so that a client without this profile
      can renew them later.
    - `client_metadata_url` is the https URL of a document that describes this client (Client ID
      Metadata Document). With a `private_key` it needs no `issuer`: what the key signs is valid at
      one authorization server only.
    - `grant` is how the client gets tokens: by a user in a browser ("authorization_code"), with its
      own credentials ("client_credentials"), or with an assertion.
    - `offline_access`: request a refresh token if the authorization server has that scope.

    The next three drop a specification requirement, for an authorization server that doesn't fulfil
    it. What each opens is in docs/explanation/security.md. Each needs `issuer`:

    - `assume_pkce`: log in although the authorization server publishes no
      `code_challenge_methods_supported`. One that publishes the list has to have S256 in it.
    - `send_resource`: False sends no `resource`, so the authorization server chooses by the scopes
      what a token is for. It needs `scopes`, and then no others are ever requested, even if the
      MCP server demands them.
    - `metadata_issuer` is the `issuer` in the authorization server's metadata, character by
      character, if that isn't `issuer`. `iss` has to be equal to it. Tokens and registrations are
      stored under `issuer` all the same. None: it is `issuer`.

    Raises:
        ValueError: the options contradict each other.
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
    assume_pkce: bool = False
    send_resource: bool = True
    metadata_issuer: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.redirect_uri)
        try:
            _ = parts.port
        except ValueError:
            raise ValueError("redirect_uri has an invalid port") from None
        if parts.scheme != "https" and not (
            parts.scheme == "http" and is_loopback_url(self.redirect_uri)
        ):
            raise ValueError("redirect_uri is neither https nor http on loopback")
        if parts.fragment:
            raise ValueError("redirect_uri has a fragment")
        url = self.client_metadata_url
        if url is not None and (
            find_url_error(url, allow_loopback=False) or urlsplit(url).path in ("", "/")
        ):
            raise ValueError("client_metadata_url must be an https URL with a path")
        for name in ("client_secret", "private_key"):
            _check_secret(name, getattr(self, name))
        if self.client_secret is not None and self.client_id is None:
            raise ValueError("client_secret needs client_id")
        if self.keep_secret and self.client_secret is None:
            raise ValueError("keep_secret needs client_secret")
        has_client_id = self.client_id is not None or (
            url is not None and self.private_key is not None
        )
        if self.grant == "client_credentials" and not (
            has_client_id and (self.client_secret is not None or self.private_key is not None)
        ):
            raise ValueError("client_credentials needs client_id, and client_secret or private_key")
        if self.grant != "authorization_code" and not has_client_id:
            raise ValueError("without a user the client cannot register: set client_id")
        if not self.send_resource and not self.scopes:
            raise ValueError(
                "send_resource=False needs scopes: without resource, they alone say what a token "
                "is for, and the MCP server must not choose them"
            )
        if self.metadata_issuer == "":
            raise ValueError("metadata_issuer is empty")
        if self.issuer is None:
            self._check_no_credentials()
            self._check_no_deviation()
        elif (problem := find_url_error(self.issuer, allow_loopback=True)) is not None:
            raise ValueError(f"issuer {problem}: {redacted_url(self.issuer)}")

    def _check_no_credentials(self) -> None:
        """Raise `ValueError` if the profile has what may be sent to one issuer only."""
        credentials = None
        if self.client_secret is not None:
            credentials = "client_secret"
        elif self.client_id is not None and self.private_key is not None:
            credentials = "private_key"
        elif isinstance(self.grant, JwtBearer | EnterpriseManaged):
            credentials = f"the grant {type(self.grant).__name__}"
        if credentials is not None:
            raise ValueError(
                f"{credentials} needs issuer: the URL of the authorization server that the client "
                "is registered with, as the `issuer` of its metadata has it. Without it, an MCP "
                "server could have the credentials sent to another one."
            )

    def _check_no_deviation(self) -> None:
        """Raise `ValueError` if the profile drops a requirement for no issuer in particular."""
        deviation = None
        if self.assume_pkce:
            deviation = "assume_pkce"
        elif not self.send_resource:
            deviation = "send_resource=False"
        elif self.metadata_issuer is not None:
            deviation = "metadata_issuer"
        if deviation is not None:
            raise ValueError(
                f"{deviation} needs issuer: the one authorization server that it is for. Without "
                "it, an MCP server could name one for which it is dangerous."
            )

    @property
    def fixed_scopes(self) -> bool:
        """True if only `scopes` are ever requested, even if the MCP server demands others."""
        return not self.interactive or not self.send_resource

    @property
    def interactive(self) -> bool:
        """True if a user is needed to get a token."""
        return self.grant == "authorization_code"

    @property
    def application_type(self) -> Literal["native", "web"]:
        """The `application_type` of a registration (OpenID Connect Registration).

        It is "native" if the redirect URI is on this machine.
        """
        return "native" if is_loopback_url(self.redirect_uri) else "web"

    @property
    def extensions(self) -> dict[str, dict[str, object]]:
        """The MCP extensions to declare among the client's capabilities for this grant.

        They let the server know how the client gets its tokens.
        """
        name = _EXTENSIONS.get(self.grant if isinstance(self.grant, str) else type(self.grant))
        return {name: {}} if name is not None else {}
