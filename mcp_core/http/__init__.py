"""HTTP on top of the protocol, as a pure machine: heads and bodies in, facts and heads and bodies out.

A server is a `Site` of `Endpoint`s, whose requests are `Exchange`s; a client is an `HttpClient`. A `WebSocket` has one for each end.
Nothing here knows the sockets of a system.
"""

from __future__ import annotations

from mcp_core.http.client._websocket_upgrade import WebSocketUpgrade
from mcp_core.http.wire._head_limits import HeadError
from mcp_core.http.wire._host_origin import HostOriginPolicy
from mcp_core.http.wire._http1 import head_end, head_fault, origin_form, unfinished_fault
from mcp_core.http.wire._http2_frames import (
    HTTP2_STREAMS,
    FrameWatch,
    GoAway,
    Http2Error,
    begins_http2,
    goaway,
    rst_stream,
)
from mcp_core.http.wire._http2_headers import (
    request_fields,
    request_head,
    response_fields,
    response_head,
    trailer_fault,
)
from mcp_core.http.wire._messages import Action, Body, End, Head, Headers, RequestHead
from mcp_core.http.wire._websocket import Close, Ping, Pong, Text, WebSocket, WebSocketAction
from mcp_core.http.wire._websocket_frames import WebSocketFrames
from mcp_core.urls._url import Url

from ._asgi import AsgiExchange
from ._asgi_socket import AsgiSocket, asgi_exchange
from ._call import Access, AccessAttempt, HttpCall, HttpClientOptions
from ._client import HttpClient
from ._conversation import Conversation
from ._endpoint import Endpoint
from ._exchange import Exchange
from ._guarding import Admission, Door, Guard, TurnedAway
from ._options import HttpLimits, HttpOptions, ServedOptions
from ._pool import NotProcessed, Place, Pool, idle_time
from ._site import PlainAnswer, Site

__all__ = [
    "HTTP2_STREAMS",
    "Access",
    "AccessAttempt",
    "Action",
    "Admission",
    "AsgiExchange",
    "AsgiSocket",
    "Body",
    "Close",
    "Conversation",
    "Door",
    "End",
    "Endpoint",
    "Exchange",
    "FrameWatch",
    "GoAway",
    "Guard",
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
    "NotProcessed",
    "Ping",
    "Place",
    "PlainAnswer",
    "Pong",
    "Pool",
    "RequestHead",
    "ServedOptions",
    "Site",
    "Text",
    "TurnedAway",
    "Url",
    "WebSocket",
    "WebSocketAction",
    "WebSocketFrames",
    "WebSocketUpgrade",
    "asgi_exchange",
    "begins_http2",
    "goaway",
    "head_end",
    "head_fault",
    "idle_time",
    "origin_form",
    "request_fields",
    "request_head",
    "response_fields",
    "response_head",
    "rst_stream",
    "trailer_fault",
    "unfinished_fault",
]
