"""The answer to each request of MCP about what a server has declared: a result, a call to make, or an error.

Rules of this file:

1. Answering is total: whatever a peer asks for has an answer or raises `McpError`, and no function is called.
2. What a peer made up is repeated to it in part only: as much as a name may have.
3. A conversation may outlive a declaration: what was taken back is unknown, as if it had never been there.

It does not know how things are declared, nor what will run a call. Pages: server/tools, server/prompts, server/resources,
server/utilities/completion, of every revision.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from mcp_core._errors import Fault, McpError
from mcp_core.types import PromptReference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from msgspec import Raw

    from mcp_core._events import RequestReceived
    from mcp_core.types import Result

    from ._invocation import Invocation
    from ._pages import Lists
    from ._prompts import PromptEntry
    from ._resources import ResourceEntry, TemplateEntry
    from ._tools import ToolEntry

__all__ = ["Answers", "refusal"]

_SHOWN: Final = 128


class Answers:
    """Answers requests from what is declared at the time. `by_method` has a function for each method of MCP that is about
    it."""

    def __init__(
        self,
        tools: Mapping[str, ToolEntry],
        resources: Mapping[str, ResourceEntry],
        templates: Mapping[str, TemplateEntry],
        prompts: Mapping[str, PromptEntry],
        lists: Lists,
    ) -> None:
        self._tools = tools
        self._resources = resources
        self._templates = templates
        self._prompts = prompts
        self._lists = lists
        self.by_method: Mapping[str, Callable[[RequestReceived], Result | Raw | Invocation]] = {
            "tools/call": self._call_tool,
            "tools/list": self._list,
            "resources/read": self._read_resource,
            "resources/list": self._list,
            "resources/templates/list": self._list,
            "prompts/get": self._get_prompt,
            "prompts/list": self._list,
            "completion/complete": self._complete,
        }

    def __repr__(self) -> str:
        return f"<Answers from {self._lists!r}>"

    @property
    def completes(self) -> bool:
        """Whether anything declared has a completion."""
        owners: Iterable[PromptEntry | TemplateEntry] = chain(
            self._prompts.values(), self._templates.values()
        )
        return any(owner.completers for owner in owners)

    def _list(self, request: RequestReceived) -> Raw:
        page = self._lists.page(request.method.name, request.params.cursor, request.peer.dialect)
        if page is None:
            raise refusal(request, Fault.INVALID_PARAMS, "Unknown cursor")
        return page

    def _call_tool(self, request: RequestReceived) -> Result | Invocation:
        params = request.params
        entry = self._tools.get(params.name)
        if entry is None:
            raise refusal(request, Fault.INVALID_PARAMS, f"Unknown tool: {params.name[:_SHOWN]}")
        return entry.prepare(params.arguments, request.peer.dialect)

    def _get_prompt(self, request: RequestReceived) -> Invocation:
        params = request.params
        entry = self._prompts.get(params.name)
        if entry is None:
            raise refusal(request, Fault.INVALID_PARAMS, f"Unknown prompt: {params.name[:_SHOWN]}")
        return entry.prepare(params.arguments, request.peer.dialect)

    def _read_resource(self, request: RequestReceived) -> Invocation:
        uri = request.params.uri
        dialect = request.peer.dialect
        entry = self._resources.get(uri)
        if entry is not None:
            return entry.prepare(dialect)
        for template in self._templates.values():
            invocation = template.prepare(uri, dialect)
            if invocation is not None:
                return invocation
        raise refusal(request, Fault.RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})

    def _complete(self, request: RequestReceived) -> Result | Invocation:
        ref = request.params.ref
        owner: PromptEntry | TemplateEntry | None
        if isinstance(ref, PromptReference):
            owner, kind, name = self._prompts.get(ref.name), "prompt", ref.name
        else:
            owner, kind, name = self._templates.get(ref.uri), "resource template", ref.uri
        if (owner is None or not owner.completers) and not self.completes:
            raise refusal(
                request, Fault.METHOD_NOT_FOUND, f"this server does not offer {request.method.name}"
            )
        if owner is None:
            raise refusal(request, Fault.INVALID_PARAMS, f"Unknown {kind}: {name[:_SHOWN]}")
        return owner.completers.prepare(request.params, request.peer.dialect)


def refusal(request: RequestReceived, fault: Fault, message: str, data: Any = None) -> McpError:
    """The error to raise, with the code that the peer's revision has for `fault`."""
    code = request.peer.dialect.codes[fault]
    return McpError(code, message) if data is None else McpError(code, message, data)
