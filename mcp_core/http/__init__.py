"""HTTP on top of the protocol, as a pure machine: heads and bodies in, facts and heads and bodies out.

A server is a `Site` of `Endpoint`s, whose requests are `Exchange`s; a client is an `HttpClient`. Nothing here knows sockets.
"""

from __future__ import annotations

from ._asgi import AsgiExchange
from ._authority import Gate
from ._call import Access, AccessAttempt, HttpCall, HttpClientOptions, Url
from ._client import HttpClient
from ._conversation import Conversation
from ._endpoint import Endpoint
from ._exchange import Exchange
from ._guarding import Admission, Door, Guard, TurnedAway
from ._http1 import HeadFault, head_end, head_fault, origin_form, unfinished_fault
from ._messages import Action, Body, End, Head, Headers, RequestHead
from ._options import HttpLimits, HttpOptions
from ._pool import Place, Pool, idle_time
from ._site import PlainAnswer, Site

__all__ = [
    "Access",
    "AccessAttempt",
    "Action",
    "Admission",
    "AsgiExchange",
    "Body",
    "Conversation",
    "Door",
    "End",
    "Endpoint",
    "Exchange",
    "Gate",
    "Guard",
    "Head",
    "HeadFault",
    "Headers",
    "HttpCall",
    "HttpClient",
    "HttpClientOptions",
    "HttpLimits",
    "HttpOptions",
    "Place",
    "PlainAnswer",
    "Pool",
    "RequestHead",
    "Site",
    "TurnedAway",
    "Url",
    "head_end",
    "head_fault",
    "idle_time",
    "origin_form",
    "unfinished_fault",
]
