"""`Server`: what is offered, declared with decorators; and the answer to each request, running nothing.

Rules of this file:

1. Declaring is loud: what cannot be served raises where it is declared. Answering is total: it gives a
   result, a call to make, or an `McpError`, whatever the peer sent.
2. Lists are in the order of declaration, so they are the same each time. They are encoded once for each
   revision and kept until something is added or removed.
3. Nothing here knows a runtime, a connection or a clock. A runtime makes a `Config` with `config()` for each
   conversation and asks `answer()` for each request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, overload

from msgspec import Raw, Struct

from mcp_core._config import Config, Limits
from mcp_core._dialects import ALL, Dialect, known
from mcp_core._errors import Fault, McpError
from mcp_core.types import (
    Icon,
    Implementation,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PromptsCapability,
    RequestParams,
    ResourcesCapability,
    Result,
    ServerCapabilities,
    ToolsCapability,
)

from ._errors import DeclarationError
from ._invocation import Invocation
from ._methods import MethodEntry
from ._naming import check_icons
from ._prompts import PromptEntry, PromptOptions
from ._resources import ResourceEntry, ResourceOptions, TemplateEntry
from ._tools import ToolEntry, ToolOptions

if TYPE_CHECKING:
    from mcp_core._events import RequestReceived

__all__ = ["Server"]

F = TypeVar("F", bound=Callable[..., Any])

# How much of an unknown name is repeated to who made it up: as much as a name may have.
_SHOWN: Final = 128


class Server:
    """What one server offers.

    ::

        server = Server("weather")

        @server.tool
        def forecast(city: str, days: int = 1) -> str:
            "The weather of the next days."
            return f"{city}: sun for {days} days"

    Decorators give the function back unchanged. The `add_*` methods do the same for functions from elsewhere.

    Args:
        name: the server's name, for programs.
        version: the server's own version.
        title: its name for people.
        description: what it is.
        instructions: how to use it, for the model.
        website_url: where to read more.
        icons: pictures with `https:` or `data:` URIs.
        limits: upper bounds on what a peer can make grow; the defaults of `Limits` if None.
        versions: the revisions of MCP to serve; all by default.
        extensions: what is offered beyond MCP, by identifier (`com.example/thing`), each with its settings. Told as the
            capability `extensions` in 2026-07-28, and as `experimental`, which every revision has.

    Raises:
        ValueError: a version is no revision of MCP, or an extension has no proper identifier.
        DeclarationError: an icon has a URI that no client would follow.
    """

    def __init__(
        self,
        name: str,
        version: str = "0",
        *,
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] | None = None,
        limits: Limits | None = None,
        versions: Iterable[str] = ALL,
        extensions: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.info = Implementation(
            name=name,
            version=version,
            title=title,
            description=description,
            website_url=website_url,
            icons=check_icons(icons, f"server {name!r}"),
        )
        self.instructions = instructions
        self.limits = limits if limits is not None else Limits()
        self.versions = tuple(dialect.version for dialect in known(versions))
        self._tools: dict[str, ToolEntry] = {}
        self._prompts: dict[str, PromptEntry] = {}
        self._resources: dict[str, ResourceEntry] = {}
        self._templates: dict[str, TemplateEntry] = {}
        self._methods: dict[str, MethodEntry] = {}
        self._extensions = (
            {name: dict(settings) for name, settings in extensions.items()} if extensions else None
        )
        self._lists: dict[tuple[str, Dialect], Raw] = {}
        self._config: Config | None = None
        self._answers: dict[str, Callable[[RequestReceived], Result | Raw | Invocation]] = {
            "tools/call": self._call_tool,
            "tools/list": self._list,
            "resources/read": self._read_resource,
            "resources/list": self._list,
            "resources/templates/list": self._list,
            "prompts/get": self._get_prompt,
            "prompts/list": self._list,
        }
        self.config()  # what it refuses is better heard of here than at the first conversation

    def __repr__(self) -> str:
        counts = (
            (len(self._tools), "tools"),
            (len(self._resources) + len(self._templates), "resources"),
            (len(self._prompts), "prompts"),
            (len(self._methods), "methods"),
        )
        offered = ", ".join(f"{n} {what}" for n, what in counts if n)
        return f"<Server {self.info.name!r} with {offered or 'nothing'}>"

    # --- Declaring --------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Declare a tool: bare, or with the keywords of `ToolOptions`.

        The arguments' schema comes from the signature: types, defaults, `Annotated[int, "a description"]` or
        `Annotated[int, msgspec.Meta(ge=1)]`, and the parameters' descriptions in the docstring. A parameter
        annotated with `Context` is filled in. The function may return text, `Image`, `Audio`, `File`, content
        blocks or a list of these; data, which becomes structured content; None; or a `CallToolResult`. It
        raises `ToolError` to tell the model what went wrong.

        Raises:
            DeclarationError: it cannot be served as declared, or there is a tool of that name.
        """
        return self._declared(self.add_tool, function, options)

    def add_tool(self, function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> None:
        """Like `tool`, for a function that is defined elsewhere."""
        entry = ToolEntry(function, options)
        self._add(self._tools, entry.name, entry, "tool")

    def remove_tool(self, name: str) -> None:
        """Take a tool back.

        Raises:
            KeyError: there is none of that name.
        """
        self._remove(self._tools, name)

    def resource(self, uri: str, /, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Declare a resource by its URI, or by a URI template (RFC 6570), whose variables are parameters::

            @server.resource("weather://{city}")
            def weather(city: str) -> str: ...

        A variable is one path segment and cannot hold `..` or a separator. `{+path}` takes several, still
        without `..`. The function may return text, bytes, `Image`, `Audio`, `File`, `ResourceContents` or a
        list of these; a `ReadResourceResult`; or anything else that JSON can say. It raises
        `ResourceNotFound` when there is nothing.

        Raises:
            DeclarationError: it cannot be served as declared, there is a resource with that URI, or the
                template can be read in two ways.
        """

        def declare(function: F) -> F:
            self.add_resource(uri, function, **options)
            return function

        return declare

    def add_resource(
        self, uri: str, function: Callable[..., Any], /, **options: Unpack[ResourceOptions]
    ) -> None:
        """Like `resource`, for a function that is defined elsewhere."""
        if "{" in uri:
            self._add(self._templates, uri, TemplateEntry(uri, function, options), "resource template")
        else:
            self._add(self._resources, uri, ResourceEntry(uri, function, options), "resource")

    def remove_resource(self, uri: str) -> None:
        """Take a resource or a template back.

        Raises:
            KeyError: there is none with that URI.
        """
        self._remove(self._templates if "{" in uri else self._resources, uri)

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(self, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...
    def prompt(self, function: Any = None, /, **options: Unpack[PromptOptions]) -> Any:
        """Declare a prompt: bare, or with the keywords of `PromptOptions`.

        Its parameters are its arguments, converted from text to what they are annotated with. The function
        may return text or content, which the user then says; `PromptMessage`; a list of these; or a
        `GetPromptResult`.

        Raises:
            DeclarationError: it cannot be served as declared, or there is a prompt of that name.
        """
        return self._declared(self.add_prompt, function, options)

    def add_prompt(self, function: Callable[..., Any], /, **options: Unpack[PromptOptions]) -> None:
        """Like `prompt`, for a function that is defined elsewhere."""
        entry = PromptEntry(function, options)
        self._add(self._prompts, entry.name, entry, "prompt")

    def remove_prompt(self, name: str) -> None:
        """Take a prompt back.

        Raises:
            KeyError: there is none of that name.
        """
        self._remove(self._prompts, name)

    def method(
        self,
        name: str,
        /,
        *,
        params: type[Struct] = RequestParams,
        result: type[Struct] | None = None,
        thread: bool = False,
    ) -> Callable[[F], F]:
        """Declare a method that MCP does not define, like `"acme/reindex"`.

        The function takes an object of `params` (best a subclass of `mcp_core.types.RequestParams`) and
        returns a Struct, a dict, a dataclass or None.

        Raises:
            DeclarationError: MCP defines that method, or it is declared already.
        """

        def declare(function: F) -> F:
            self._add(self._methods, name, MethodEntry(name, function, params, result, thread), "method")
            return function

        return declare

    def remove_method(self, name: str) -> None:
        """Take a method back. On conversations that have begun it is then answered with "Unknown method".

        Raises:
            KeyError: there is none of that name.
        """
        self._remove(self._methods, name)

    def _declared(self, add: Callable[..., None], function: Any, options: Any) -> Any:
        if function is not None:
            add(function, **options)
            return function

        def declare(function: F) -> F:
            add(function, **options)
            return function

        return declare

    def _add(self, entries: dict[str, Any], key: str, entry: Any, what: str) -> None:
        if key in entries:
            raise DeclarationError(f"there is a {what} {key!r} already: {entries[key].function.label}")
        entries[key] = entry
        self._changed()

    def _remove(self, entries: dict[str, Any], key: str) -> None:
        del entries[key]
        self._changed()

    def _changed(self) -> None:
        self._lists.clear()
        self._config = None

    # --- Serving ----------------------------------------------------------------------------------

    def config(self) -> Config:
        """What a `Connection` needs to know of this server, as it is declared now. Kept until something is declared."""
        if self._config is None:
            self._config = self._configured()
        return self._config

    def _configured(self) -> Config:
        return Config(
            self.info,
            ServerCapabilities(
                extensions=self._extensions,
                experimental=self._extensions,
                tools=ToolsCapability() if self._tools else None,
                resources=ResourcesCapability() if self._resources or self._templates else None,
                prompts=PromptsCapability() if self._prompts else None,
            ),
            instructions=self.instructions,
            versions=self.versions,
            limits=self.limits,
            methods=[entry.row for entry in self._methods.values()],
        )

    def answer(self, request: RequestReceived) -> Result | Raw | Invocation:
        """What to do about a request: send a `Result` or `Raw` as it is, or run an `Invocation`.

        Raises:
            McpError: it is to be answered with this error.
        """
        name = request.method.name
        answer = self._answers.get(name)
        if answer is not None:
            return answer(request)
        entry = self._methods.get(name)
        if entry is None:
            raise _error(request, Fault.METHOD_NOT_FOUND, f"Unknown method: {name}")
        return entry.prepare(request.params, request.peer.dialect)

    def _call_tool(self, request: RequestReceived) -> Result | Invocation:
        params = request.params
        entry = self._tools.get(params.name)
        if entry is None:
            raise _error(request, Fault.INVALID_PARAMS, f"Unknown tool: {params.name[:_SHOWN]}")
        return entry.prepare(params.arguments, request.peer.dialect)

    def _get_prompt(self, request: RequestReceived) -> Invocation:
        params = request.params
        entry = self._prompts.get(params.name)
        if entry is None:
            raise _error(request, Fault.INVALID_PARAMS, f"Unknown prompt: {params.name[:_SHOWN]}")
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
        raise _error(request, Fault.RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})

    def _list(self, request: RequestReceived) -> Raw:
        # There is one page, so no cursor was ever given out.
        if request.params.cursor is not None:
            raise _error(request, Fault.INVALID_PARAMS, "Unknown cursor")
        dialect = request.peer.dialect
        key = (request.method.name, dialect)
        encoded = self._lists.get(key)
        if encoded is None:
            encoded = self._lists[key] = Raw(dialect.encode(self._page(request.method.name, dialect)))
        return encoded

    def _page(self, name: str, dialect: Dialect) -> Result:
        match name:
            case "tools/list":
                return ListToolsResult(tools=[entry.listed(dialect) for entry in self._tools.values()])
            case "prompts/list":
                return ListPromptsResult(prompts=[entry.listed for entry in self._prompts.values()])
            case "resources/list":
                return ListResourcesResult(resources=[entry.listed for entry in self._resources.values()])
            case _:
                templates = [entry.listed for entry in self._templates.values()]
                return ListResourceTemplatesResult(resource_templates=templates)


def _error(request: RequestReceived, fault: Fault, message: str, data: Any = None) -> McpError:
    code = request.peer.dialect.codes[fault]
    return McpError(code, message) if data is None else McpError(code, message, data)
