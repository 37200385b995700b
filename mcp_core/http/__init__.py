"""HTTP on top of the protocol, as a pure machine: heads and bodies in, facts and heads and bodies out.

A server is a `Site` of `Endpoint`s, whose requests are `Exchange`s; a client is an `HttpClient`. Nothing here knows sockets.
"""

from __future__ import annotations

from ._messages import Action, Body, End, Head, Headers, RequestHead

__all__ = ["Action", "Body", "End", "Head", "Headers", "RequestHead"]
