"""MCP over HTTP and WebSocket, for servers and clients, without I/O.

A server is a `Router` of `Endpoint`s, whose requests are `Exchange`s. A client is an `HttpClient`.
Both sides of a WebSocket use the class `WebSocket`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._errors import show_public_path
from mcp_core._on_first_use import names_on_first_use
from mcp_core.http.client._http1_response import (
    require_http,
    response_error,
    without_quoted_bytes,
)
from mcp_core.http.client._http_client import HttpClient
from mcp_core.http.client._options import (
    AuthAttemptLike,
    AuthorizerLike,
    HttpCall,
    HttpClientOptions,
    check_cleartext,
    find_cleartext_error,
)
from mcp_core.http.client._pool import NotProcessed, Pool, PoolDecision, keep_alive_seconds
from mcp_core.http.client._response import MAX_ERROR_BODY
from mcp_core.http.client._websocket_upgrade import WebSocketUpgrade
from mcp_core.http.server._asgi import AsgiHttpExchange
from mcp_core.http.server._asgi_websocket import AsgiWebSocket, asgi_exchange
from mcp_core.http.server._auth import (
    AuthCheck,
    AuthDenialLike,
    EndpointAuth,
    ResourceServerLike,
    check_scope_names,
)
from mcp_core.http.server._endpoint import Endpoint
from mcp_core.http.server._exchange import Exchange
from mcp_core.http.server._options import HttpLimits, HttpOptions, ServeOptions
from mcp_core.http.server._router import PlainResponse, Router
from mcp_core.http.server._session import Conversation
from mcp_core.http.wire._forwarded import TrustedProxies, end_to_end, end_to_end_trailers
from mcp_core.http.wire._head_limits import HEAD_TIMEOUT, MAX_RESPONSE_HEAD, HeadError
from mcp_core.http.wire._host_origin import (
    HostOriginPolicy,
    served_authority,
    warning_without_hosts,
)
from mcp_core.http.wire._http1 import (
    MAX_EMPTY_LINES,
    empty_lines,
    find_head_error,
    find_partial_head_error,
    head_end,
    origin_form,
    written_fields,
)
from mcp_core.http.wire._http2_frames import (
    MAX_CONCURRENT_STREAMS,
    FrameWatch,
    GoAway,
    Http2Error,
    begins_http2,
    goaway,
    rst_stream,
)
from mcp_core.http.wire._http2_headers import (
    encode_request_head,
    encode_response_head,
    find_trailer_error,
    request_head,
    response_head,
)
from mcp_core.http.wire._mcp_headers import message_headers
from mcp_core.http.wire._messages import Action, Body, End, Head, Headers, RequestHead
from mcp_core.http.wire._recorder import ExchangeRecorderLike as ExchangeRecorderLike
from mcp_core.http.wire._recorder import HttpRecorderLike as HttpRecorderLike
from mcp_core.http.wire._recorder import WebSocketRecorderLike as WebSocketRecorderLike
from mcp_core.http.wire._websocket import Close, Ping, Pong, Text, WebSocket, WebSocketAction
from mcp_core.http.wire._websocket_frames import WebSocketFrames
from mcp_core.protocol.schema._param_headers import ParamHeaders as ParamHeaders
from mcp_core.protocol.schema._param_headers import param_headers
from mcp_core.urls._url import Url

if TYPE_CHECKING:
    from mcp_core.http.wire._proxy_exchange import GatewayError as GatewayError
    from mcp_core.http.wire._proxy_exchange import ProxiedEnd as ProxiedEnd
    from mcp_core.http.wire._proxy_exchange import ProxiedExchange as ProxiedExchange
    from mcp_core.http.wire._proxy_exchange import gateway_timeout as gateway_timeout
    from mcp_core.http.wire._proxy_exchange import proxy_error_response as proxy_error_response
    from mcp_core.http.wire._proxy_policy import EndpointWatch as EndpointWatch
    from mcp_core.http.wire._proxy_policy import PassedRequest as PassedRequest
    from mcp_core.http.wire._proxy_policy import ProxyPolicy as ProxyPolicy
    from mcp_core.http.wire._proxy_policy import ProxyRefusal as ProxyRefusal
    from mcp_core.http.wire._proxy_policy import proxied_request_headers as proxied_request_headers

__all__ = [
    "HEAD_TIMEOUT",
    "MAX_CONCURRENT_STREAMS",
    "MAX_EMPTY_LINES",
    "MAX_ERROR_BODY",
    "MAX_RESPONSE_HEAD",
    "Action",
    "AsgiHttpExchange",
    "AsgiWebSocket",
    "AuthAttemptLike",
    "AuthCheck",
    "AuthDenialLike",
    "AuthorizerLike",
    "Body",
    "Close",
    "Conversation",
    "End",
    "Endpoint",
    "EndpointAuth",
    "EndpointWatch",
    "Exchange",
    "ExchangeRecorderLike",
    "FrameWatch",
    "GatewayError",
    "GoAway",
    "Head",
    "HeadError",
    "Headers",
    "HostOriginPolicy",
    "Http2Error",
    "HttpCall",
    "HttpClient",
    "HttpClientOptions",
    "HttpLimits",
    "HttpOptions",
    "HttpRecorderLike",
    "NotProcessed",
    "ParamHeaders",
    "PassedRequest",
    "Ping",
    "PlainResponse",
    "Pong",
    "Pool",
    "PoolDecision",
    "ProxiedEnd",
    "ProxiedExchange",
    "ProxyPolicy",
    "ProxyRefusal",
    "RequestHead",
    "ResourceServerLike",
    "Router",
    "ServeOptions",
    "Text",
    "TrustedProxies",
    "Url",
    "WebSocket",
    "WebSocketAction",
    "WebSocketFrames",
    "WebSocketRecorderLike",
    "WebSocketUpgrade",
    "asgi_exchange",
    "begins_http2",
    "check_cleartext",
    "check_scope_names",
    "empty_lines",
    "encode_request_head",
    "encode_response_head",
    "end_to_end",
    "end_to_end_trailers",
    "find_cleartext_error",
    "find_head_error",
    "find_partial_head_error",
    "find_trailer_error",
    "gateway_timeout",
    "goaway",
    "head_end",
    "keep_alive_seconds",
    "message_headers",
    "origin_form",
    "param_headers",
    "proxied_request_headers",
    "proxy_error_response",
    "request_head",
    "require_http",
    "response_error",
    "response_head",
    "rst_stream",
    "served_authority",
    "warning_without_hosts",
    "without_quoted_bytes",
    "written_fields",
]

# Only a proxy needs them.
_MODULES = {
    ".wire._proxy_exchange": (
        "GatewayError",
        "ProxiedEnd",
        "ProxiedExchange",
        "gateway_timeout",
        "proxy_error_response",
    ),
    ".wire._proxy_policy": (
        "EndpointWatch",
        "PassedRequest",
        "ProxyPolicy",
        "ProxyRefusal",
        "proxied_request_headers",
    ),
}

__getattr__ = names_on_first_use(__name__, _MODULES)
show_public_path(__name__, globals())
