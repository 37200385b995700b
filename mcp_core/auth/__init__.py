"""OAuth 2.1 as MCP uses it, for clients and for resource servers, as flows without I/O.

A client has one `Authorizer` per MCP server. The driver runs its flows by executing their steps:
`Fetch`, `ListenForRedirect`, `Browse`, `Load` and `Save`.
A server has one `OAuthResourceServer` with a `JwtVerifier`, an `IntrospectionVerifier` or a
function of the application. The steps of its flows are `Fetch` and `Await`.
"""

from __future__ import annotations

from mcp_core.urls._addresses import is_local, is_public_address, may_fetch, url_fault

from ._authorizer import Attempt, Authorizer
from ._callback import answers
from ._errors import AuthorizationFailed, FetchFailed
from ._grant import Grant, Verifier, VerifierFunction, VerifierUnavailable
from ._guard import Admission, Await, Guard, Refusal, Scopes
from ._introspection import IntrospectionVerifier
from ._jose import BadToken
from ._jwt import JwtVerifier
from ._profile import ClientProfile, EnterpriseManaged, JwtBearer
from ._secret import Secret
from ._steps import MAX_BODY, Browse, Fetch, Flow, HttpReply, HttpRequest, Listen, Load, Save, Step

__all__ = [
    "MAX_BODY",
    "Admission",
    "Attempt",
    "AuthorizationFailed",
    "Authorizer",
    "Await",
    "BadToken",
    "Browse",
    "ClientProfile",
    "EnterpriseManaged",
    "Fetch",
    "FetchFailed",
    "Flow",
    "Grant",
    "Guard",
    "HttpReply",
    "HttpRequest",
    "IntrospectionVerifier",
    "JwtBearer",
    "JwtVerifier",
    "Listen",
    "Load",
    "Refusal",
    "Save",
    "Scopes",
    "Secret",
    "Step",
    "Verifier",
    "VerifierFunction",
    "VerifierUnavailable",
    "answers",
    "is_local",
    "is_public_address",
    "may_fetch",
    "url_fault",
]
