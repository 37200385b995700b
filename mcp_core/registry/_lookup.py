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
from typing import TYPE_CHECKING, Any, TypeAlias

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
    from mcp_core.registry.entries._last_modified import OnError
    from mcp_core.registry.entries._prompts import PromptEntry
    from mcp_core.registry.entries._resources import ResourceEntry, TemplateEntry
    from mcp_core.registry.entries._tools import ToolEntry
    from mcp_core.types import Result
    from mcp_core.urls._normal_uri import UriSpellings

    from ._context import Context
    from ._input_requests import RequestHost
    from ._pages import Entry, ListPages

    _Answer: TypeAlias = Callable[[RequestReceived, RequestHost | None], Result | Raw | Invocation]

__all__ = ["RequestLookup", "request_error"]


class RequestLookup:
    """The responses to requests for tools, resources, prompts and completions.

    `by_method` has a function for each method, of the request and of the host at which it arrived.
    Without a host, visibility is decided by the request alone. The mappings are read at each
    request, so that they may change.
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
        self.by_method: Mapping[str, _Answer] = {
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
        return self._find_resource(uri)[0]

    def _find_resource(self, uri: str) -> tuple[str, ResourceEntry | TemplateEntry | None]:
        """Return `uri` as it is declared, and the entry that reads it, None if none does.

        It is the first template that it matches with values of its types. All that depends on which
        one has a URI goes by this: reads, subscriptions, scopes, and what middlewares see.
        """
        if uri in self._resources:
            return uri, self._resources[uri]
        spelled = self._respell_fixed(uri)
        if spelled is not None:
            return spelled, self._resources[spelled]
        template = self._find_template(uri)
        if template is None:
            spelled = self._respell_templated(uri)
            template = None if spelled is None else self._find_template(spelled)
            if spelled is not None and template is not None:
                return spelled, template
        return uri, template

    def _find_template(self, uri: str) -> TemplateEntry | None:
        return next((each for each in self._templates.values() if each.matches(uri)), None)

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

    def hides_uri(self, uri: str, request: RequestReceived, host: RequestHost | None) -> bool:
        """Return True if the sender of `request` doesn't see the resource `uri`."""
        _, entry = self._find_resource(uri)
        return (
            entry is not None
            and entry.visibility is not None
            and not entry.visibility.allows(request, host)
        )

    def hides_template(self, text: str, request: RequestReceived, host: RequestHost | None) -> bool:
        """Return True if the sender of `request` doesn't see the resource template `text`."""
        entry = self._templates.get(text)
        return (
            entry is not None
            and entry.visibility is not None
            and not entry.visibility.allows(request, host)
        )

    def hides_task_of(self, tool: str, request: RequestReceived, host: RequestHost | None) -> bool:
        """Return True if `visible=` hides the tasks of a tool from the sender of `request`."""
        entry = self._tools.get(tool)
        return (
            entry is not None
            and entry.visibility is not None
            and not entry.visibility.shows(request, host)
        )

    def _list(self, request: RequestReceived, host: RequestHost | None) -> Raw | Invocation:
        times = self._lists.present_times(request.method.name, request.peer.dialect)
        if times:
            return ListInvocation(
                partial(self._page, request, host), request, any(time.thread for time in times)
            )
        return self._page(request, host)

    def _page(
        self, request: RequestReceived, host: RequestHost | None, on_error: OnError | None = None
    ) -> Raw:
        page = self._lists.get_page(
            request.method.name,
            request.params.cursor,
            request.peer.dialect,
            on_error,
            partial(_shows, request, host),
        )
        if page is None:
            raise request_error(request, Fault.INVALID_PARAMS, "Unknown cursor")
        return page

    def _call_tool(self, request: RequestReceived, host: RequestHost | None) -> Result | Invocation:
        params = request.params
        entry = self._tools.get(params.name)
        if entry is None or (
            entry.visibility is not None and not entry.visibility.allows(request, host)
        ):
            raise request_error(
                request, Fault.INVALID_PARAMS, f"Unknown tool: {params.name[:MAX_SHOWN]}"
            )
        dialect = request.peer.dialect
        task = None
        if entry.task is not None or dialect.tasks == "requested":
            task = check_task(entry.task, request, served=self.has_tasks)
        return entry.prepare(params.arguments, dialect, task)

    def _get_prompt(self, request: RequestReceived, host: RequestHost | None) -> Invocation:
        params = request.params
        entry = self._prompts.get(params.name)
        if entry is None or (
            entry.visibility is not None and not entry.visibility.allows(request, host)
        ):
            raise request_error(
                request, Fault.INVALID_PARAMS, f"Unknown prompt: {params.name[:MAX_SHOWN]}"
            )
        return entry.prepare(params.arguments, request.peer.dialect)

    def _read_resource(self, request: RequestReceived, host: RequestHost | None) -> Invocation:
        return self.prepare_read(request.params.uri, request, host)

    def prepare_read(
        self, uri: str, request: RequestReceived, host: RequestHost | None
    ) -> Invocation:
        """Return the call that reads the resource `uri` for the sender of `request`.

        The declaration that has it decides: if it is hidden, no other template is asked, whose
        function may know nothing of who may see what.

        Raises:
            McpError: there is no such resource.
        """
        dialect = request.peer.dialect
        spelled, entry = self._find_resource(uri)
        if entry is not None and (
            entry.visibility is None or entry.visibility.allows(request, host)
        ):
            found = entry.prepare(spelled, dialect)
            if found is not None:
                return found
        errors = (
            template.find_error(uri)
            for template in self._templates.values()
            if template.visibility is None or template.visibility.allows(request, host)
        )
        error = next(filter(None, errors), None)
        text = f"Resource not found: {error}" if error else "Resource not found"
        raise McpError(dialect.codes[Fault.RESOURCE_NOT_FOUND], text, {"uri": uri})

    def _complete(self, request: RequestReceived, host: RequestHost | None) -> Result | Invocation:
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
        if (
            entry is not None
            and entry.visibility is not None
            and not entry.visibility.allows(request, host)
        ):
            entry = None
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


def _shows(request: RequestReceived, host: RequestHost | None, entry: Entry) -> bool:
    """Return True if the sender of `request` sees `entry`."""
    return entry.visibility is None or entry.visibility.allows(request, host)


def request_error(
    request: RequestReceived, fault: Fault, message: str, data: Any = None
) -> McpError:
    """Return the exception to raise, with the peer revision's code for `fault`."""
    code = request.peer.dialect.codes[fault]
    return McpError(code, message) if data is None else McpError(code, message, data)
