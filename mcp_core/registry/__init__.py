"""Authoring a server: declare tools, resources, prompts and methods, without knowing what will run them.

Begin with `Server`. A driver (`mcp_trio`, `mcp_asyncio_shim`) serves it by a `mcp_core.runtime.Service`.

Rule: nothing in here does I/O, keeps time or starts a task; even a declared function is only ever called by a
runtime."""

from __future__ import annotations

from mcp_core._hints import Cache

from ._asking import Round
from ._content import Audio, File, Image
from ._context import Context
from ._errors import DeclarationError, ResourceNotFound, UrlElicitationRequired
from ._form import Accepted, Form, Refused
from ._invocation import Invocation
from ._server import Middleware, Proceed, Server
from ._uri_matcher import UriMatcher
from ._uri_template import UriTemplate

__all__ = [
    "Accepted",
    "Audio",
    "Cache",
    "Context",
    "DeclarationError",
    "File",
    "Form",
    "Image",
    "Invocation",
    "Middleware",
    "Proceed",
    "Refused",
    "ResourceNotFound",
    "Round",
    "Server",
    "UriMatcher",
    "UriTemplate",
    "UrlElicitationRequired",
]
