"""OAuth 2.1 as MCP uses it, for clients and for resource servers, as flows without I/O.

A client has one `Authorizer` per MCP server. The driver runs its flows by executing their steps:
`Fetch`, `ListenForRedirect`, `Browse`, `Load` and `Save`.
A server has one `OAuthResourceServer` with a `JwtVerifier`, an `IntrospectionVerifier` or a
function of the application. Its flows' steps are `Fetch` and `Await`. A server without OAuth
has `ApiKeys`.
"""

from __future__ import annotations

from mcp_core._errors import show_public_path
from mcp_core.auth.client._authorizer import AuthAttempt, Authorizer, LoginServer
from mcp_core.auth.client._callback import is_callback_for
from mcp_core.auth.client._discovery import find_supported_scopes
from mcp_core.auth.client._loopback_login import LoopbackLogin
from mcp_core.auth.client._profile import ClientProfile, EnterpriseManaged, JwtBearer
from mcp_core.auth.server._api_keys import ApiKeys
from mcp_core.auth.server._grant import Grant, TokenVerifier, VerifierFunction, VerifierUnavailable
from mcp_core.auth.server._introspection import IntrospectionVerifier
from mcp_core.auth.server._jwt import JwtVerifier
from mcp_core.auth.server._protected_resource import AuthDenial, AuthFlow, Await
from mcp_core.auth.server._resource_server import OAuthResourceServer
from mcp_core.auth.server._scopes import Scopes
from mcp_core.urls._addresses import find_url_error, is_loopback_url, is_public_address, may_fetch

from ._errors import AuthorizationFailed, FetchFailed
from ._jose import InvalidToken
from ._secret import Secret
from ._steps import (
    MAX_BODY,
    Browse,
    Fetch,
    Flow,
    HttpRequest,
    HttpResponse,
    ListenForRedirect,
    Load,
    Save,
    Step,
)

__all__ = [
    "MAX_BODY",
    "ApiKeys",
    "AuthAttempt",
    "AuthDenial",
    "AuthFlow",
    "AuthorizationFailed",
    "Authorizer",
    "Await",
    "Browse",
    "ClientProfile",
    "EnterpriseManaged",
    "Fetch",
    "FetchFailed",
    "Flow",
    "Grant",
    "HttpRequest",
    "HttpResponse",
    "IntrospectionVerifier",
    "InvalidToken",
    "JwtBearer",
    "JwtVerifier",
    "ListenForRedirect",
    "Load",
    "LoginServer",
    "LoopbackLogin",
    "OAuthResourceServer",
    "Save",
    "Scopes",
    "Secret",
    "Step",
    "TokenVerifier",
    "VerifierFunction",
    "VerifierUnavailable",
    "find_supported_scopes",
    "find_url_error",
    "is_callback_for",
    "is_loopback_url",
    "is_public_address",
    "may_fetch",
]

show_public_path(__name__, globals())
