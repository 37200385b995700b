"""Lookup of the declaration that a request names.

1. Every request gets a result, an `Invocation` or `McpError`. No declared function is called here.
2. A declaration may be removed while a connection is open. It is then unknown, as if it had never
   been declared.
3. A resource or template is found by its exact spelling, then by its normal form. Middleware,
   handlers and scopes get the URI as it is declared: their checks would else see another text than
   the one that was found.

Sources: server/tools, server/prompts, server/resources, server/utilities/completion, in every
revision.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from mcp_core._errors import Fault, McpError
from mcp_core.registry.entries._invocation import Invocation
from mcp_core.registry.functions._function import MISSING, Function
from mcp_core.registry.tasks._options import check_task
from mcp_core.types import PromptReference

from ._context import error_reporter
from ._validation import MAX_SHOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from msgspec import Raw

    from mcp_core.protocol.messages._events import RequestReceived
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.registry.entries._last_modified import OnError
    from mcp_core.registry.entries._prompts import PromptEntry
    from mcp_core.registry.entries._resources import ResourceEntry, TemplateEntry
    from mcp_core.registry.entries._tools import ToolEntry
    from mcp_core.types import Result
    from mcp_core.urls._normal_uri import UriSpellings

    from ._context import Context
    from ._pages import ListPages

__all__ = ["RequestLookup", "request_error"]


class RequestLookup:
    """The responses to requests for tools, resources, prompts and completions.

    `by_method` has a function for each method. The mappings are read at each request, so that they
    may change.
    """

    def __init__(
        self,
        tools: Mapping[str, ToolEntry],
        resources: Mapping[str, ResourceEntry],
        templates: Mapping[str, TemplateEntry],
        prompts: Mapping[str, PromptEntry],
        lists: ListPages,
    ) -> None:
        self._tools = tools
        self._resources = resources
        self._templates = templates
        self._prompts = prompts
        self._lists = lists
        # Of resources and templates, once a request named one that isn't known as it is spelled.
        self._spellings: tuple[UriSpellings, UriSpellings] | None = None
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
        return f"<RequestLookup from {self._lists!r}>"

    def add_spelling(self, uri: str) -> None:
        """Take note of a resource or template that was declared."""
        if self._spellings is not None:
            self._spellings["{" in uri].add(uri)

    def remove_spelling(self, uri: str) -> None:
        """Take note of a resource or template that was removed."""
        if self._spellings is not None:
            self._spellings["{" in uri].discard(uri)

    def _spelled(self) -> tuple[UriSpellings, UriSpellings]:
        if self._spellings is None:
            # On first use: most clients read URIs as they are listed.
            from mcp_core.urls._normal_uri import UriSpellings, normal_template

            self._spellings = (
                UriSpellings(self._resources),
                UriSpellings(self._templates, normal_template),
            )
        return self._spellings

    def declared_uri(self, uri: str) -> str:
        """Return the URI of a resource as it is declared, or `uri` if none has its normal form."""
        if uri in self._resources:
            return uri
        found = self._respell_fixed(uri)
        if found is None and not any(each.has_form(uri) for each in self._templates.values()):
            found = self._respell_templated(uri)
        return uri if found is None else found

    def declared_template(self, text: str) -> str:
        """Return a resource template as it is declared, or `text` if none has its normal form."""
        found = None if text in self._templates else self._spelled()[1].find(text)
        return text if found is None else found

    def _respell_fixed(self, uri: str) -> str | None:
        return self._spelled()[0].find(uri)

    def _respell_templated(self, uri: str) -> str | None:
        from mcp_core.urls._normal_uri import normal_uri

        normal = normal_uri(uri) if self._templates else None
        if normal is None:
            return None
        return next(filter(None, (each.respell(normal) for each in self._templates.values())), None)

    @property
    def has_completions(self) -> bool:
        """True if a prompt or a template has a completion."""
        entries: Iterable[PromptEntry | TemplateEntry] = chain(
            self._prompts.values(), self._templates.values()
        )
        return any(entry.completers for entry in entries)

    @property
    def has_tasks(self) -> bool:
        """True if a tool runs as a task."""
        return any(entry.task is not None for entry in self._tools.values())

    def _list(self, request: RequestReceived) -> Raw | Invocation:
        times = self._lists.present_times(request.method.name, request.peer.dialect)
        if times:
            return ListInvocation(
                partial(self._page, request), request, any(time.thread for time in times)
            )
        return self._page(request)

    def _page(self, request: RequestReceived, on_error: OnError | None = None) -> Raw:
        page = self._lists.get_page(
            request.method.name, request.params.cursor, request.peer.dialect, on_error
        )
        if page is None:
            raise request_error(request, Fault.INVALID_PARAMS, "Unknown cursor")
        return page

    def _call_tool(self, request: RequestReceived) -> Result | Invocation:
        params = request.params
        entry = self._tools.get(params.name)
        if entry is None:
            raise request_error(
                request, Fault.INVALID_PARAMS, f"Unknown tool: {params.name[:MAX_SHOWN]}"
            )
        dialect = request.peer.dialect
        task = None
        if entry.task is not None or dialect.tasks == "requested":
            task = check_task(entry.task, request, served=self.has_tasks)
        return entry.prepare(params.arguments, dialect, task)

    def _get_prompt(self, request: RequestReceived) -> Invocation:
        params = request.params
        entry = self._prompts.get(params.name)
        if entry is None:
            raise request_error(
                request, Fault.INVALID_PARAMS, f"Unknown prompt: {params.name[:MAX_SHOWN]}"
            )
        return entry.prepare(params.arguments, request.peer.dialect)

    def _read_resource(self, request: RequestReceived) -> Invocation:
        return self.prepare_read(request.params.uri, request.peer.dialect)

    def prepare_read(self, uri: str, dialect: Dialect) -> Invocation:
        """Return the call that reads the resource `uri`.

        Raises:
            McpError: there is no such resource.
        """
        entry = self._resources.get(uri) or self._resources.get(self._respell_fixed(uri) or uri)
        if entry is not None:
            return entry.prepare(dialect)
        for spelled in filter(None, (uri, self._respell_templated(uri))):
            for template in self._templates.values():
                invocation = template.prepare(spelled, dialect)
                if invocation is not None:
                    return invocation
        errors = (template.find_error(uri) for template in self._templates.values())
        error = next(filter(None, errors), None)
        text = f"Resource not found: {error}" if error else "Resource not found"
        raise McpError(dialect.codes[Fault.RESOURCE_NOT_FOUND], text, {"uri": uri})

    def _complete(self, request: RequestReceived) -> Result | Invocation:
        ref = request.params.ref
        entry: PromptEntry | TemplateEntry | None
        if isinstance(ref, PromptReference):
            kind = "prompt"
            name = ref.name
            entry = self._prompts.get(name)
        else:
            kind = "resource template"
            name = ref.uri
            entry = self._templates.get(self.declared_template(name))
        # Without any completion the capability wasn't declared, so the method doesn't exist.
        if (entry is None or not entry.completers) and not self.has_completions:
            raise request_error(
                request, Fault.METHOD_NOT_FOUND, f"this server does not offer {request.method.name}"
            )
        if entry is None:
            raise request_error(
                request, Fault.INVALID_PARAMS, f"Unknown {kind}: {name[:MAX_SHOWN]}"
            )
        return entry.completers.prepare(request.params, request.peer.dialect)


class ListInvocation(Invocation):
    """The page of a list for which the author's functions have to be called."""

    __slots__ = ()

    def __init__(
        self, page: Callable[[OnError], Raw], request: RequestReceived, thread: bool
    ) -> None:
        def make_page(context: Context) -> Raw:
            return page(error_reporter(context))

        label = f"a last_modified function of {request.method.name}"
        function = Function(make_page, "", label, False, "context", (), MISSING, "")
        super().__init__(function, thread, {}, request.peer.dialect)

    def result(self, value: Raw) -> Raw:
        return value


def request_error(
    request: RequestReceived, fault: Fault, message: str, data: Any = None
) -> McpError:
    """Return the exception to raise, with the peer revision's code for `fault`."""
    code = request.peer.dialect.codes[fault]
    return McpError(code, message) if data is None else McpError(code, message, data)
