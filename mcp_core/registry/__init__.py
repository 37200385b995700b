"""Authoring of servers: declarations of tools, resources, prompts and methods. Begin with `Server`.

Nothing in here does I/O, reads a clock or starts a task. A driver (`mcp_trio`, `mcp_asyncio_shim`)
serves a `Server` by means of `mcp_core.runtime.Service`, which calls the declared functions.
"""

from __future__ import annotations

from mcp_core._errors import show_public_path
from mcp_core.protocol.revisions._config import CacheHint
from mcp_core.registry.entries._invocation import Invocation
from mcp_core.registry.entries._prompts import PromptOptions
from mcp_core.registry.entries._resources import DirectoryOptions, ResourceOptions
from mcp_core.registry.entries._tools import ToolOptions
from mcp_core.registry.functions._content import Audio, File, Image
from mcp_core.registry.tasks._options import TaskOptions
from mcp_core.registry.tasks._tasks import CurrentTask, Tasks

from ._context import Context
from ._errors import DeclarationError, ResourceNotFound, UrlElicitationRequired
from ._form import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclinedElicitation,
    ElicitationResult,
    Form,
)
from ._input_requests import NestedRequests
from ._roots import RootsContext
from ._sampling_tools import SampledConversation
from ._server import Middleware, Proceed, Server
from ._url_elicitation import InvalidUrlElicitation, UrlElicitation
from ._visibility import Caller

__all__ = [
    "AcceptedElicitation",
    "Audio",
    "CacheHint",
    "Caller",
    "CancelledElicitation",
    "Context",
    "CurrentTask",
    "DeclarationError",
    "DeclinedElicitation",
    "DirectoryOptions",
    "ElicitationResult",
    "File",
    "Form",
    "Image",
    "InvalidUrlElicitation",
    "Invocation",
    "Middleware",
    "NestedRequests",
    "Proceed",
    "PromptOptions",
    "ResourceNotFound",
    "ResourceOptions",
    "RootsContext",
    "SampledConversation",
    "Server",
    "TaskOptions",
    "Tasks",
    "ToolOptions",
    "UrlElicitation",
    "UrlElicitationRequired",
]

show_public_path(__name__, globals())
