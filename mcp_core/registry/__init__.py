"""Authoring a server: declare tools, resources, prompts and methods, without knowing what will run them.

Begin with `Server`. A runtime (`mcp_trio`, `mcp_asyncio_shim`) takes it and gives `Context` a body.

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
from ._middleware import Middleware, Proceed
from ._runtime import Runtime
from ._server import Server
from ._service import Job, Service
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
    "Job",
    "Middleware",
    "Proceed",
    "Refused",
    "ResourceNotFound",
    "Round",
    "Runtime",
    "Server",
    "Service",
    "UriMatcher",
    "UriTemplate",
    "UrlElicitationRequired",
]
