"""`Server`: what is offered, declared with decorators.

Rules of this file:

1. Declaring is loud: what cannot be served raises where it is declared. What is declared is kept in order, so that lists are
   the same each time.
2. What requests come to is in `_answering.py`, and how each kind of thing is served in its own file.
3. Nothing here knows a runtime, a connection or a clock. A runtime makes a `Config` with `config()` for each
   conversation and asks `answer()` for each request.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, Unpack, overload

from msgspec import Raw, Struct

from mcp_core._config import Config, Limits
from mcp_core._dialects import ALL, known
from mcp_core._errors import Fault
from mcp_core._seal import KeyRing
from mcp_core._subscriptions import Change, changes
from mcp_core.types import (
    Icon,
    Implementation,
    PromptsCapability,
    RequestParams,
    ResourcesCapability,
    Result,
    ServerCapabilities,
    ToolsCapability,
)

from ._answering import Answers, refusal
from ._completion import Completer
from ._context import Context
from ._errors import DeclarationError
from ._invocation import Invocation
from ._methods import MethodEntry
from ._naming import check_icons
from ._pages import PAGE_SIZE, Lists
from ._prompts import PromptEntry, PromptOptions
from ._resources import ResourceEntry, ResourceOptions, TemplateEntry
from ._tools import ToolEntry, ToolOptions

if TYPE_CHECKING:
    from mcp_core._events import RequestReceived
    from mcp_core._hints import Cache
    from mcp_core._param_headers import ParamHeaders

__all__ = ["ChangeListener", "Middleware", "Proceed", "Server"]

# Given to a middleware: awaiting a call of it gives the result that will be sent.
Proceed: TypeAlias = Callable[[], Awaitable[Any]]
Middleware: TypeAlias = Callable[[Context[Any], Proceed], Awaitable[Any]]

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound="Middleware")

_TOOLS, _PROMPTS, _RESOURCES = changes(tools=True), changes(prompts=True), changes(resources=True)
_CHANGING_RESOURCES: Final = ResourcesCapability(subscribe=True, list_changed=True)

Lifespan: TypeAlias = Callable[["Server"], AbstractAsyncContextManager[Any]]


class ChangeListener(Protocol):
    """What `Server.attach` takes. `mcp_core.runtime.Service` says what each method does."""

    def changed(self, changes: Iterable[Change]) -> None: ...
    def page_visited(self, elicitation_id: str) -> None: ...


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
        page_size: how many entries a page of a list has at most, and fewer if they are long; 1,000 by default.
        cache: how long the lists, and what the server says of itself, may be kept and by whom (2026-07-28); not at all by
            default.
        logging: whether clients may be sent log messages, as with `Context.log`.
        lifespan: called with the server when it begins to serve; gives an async context manager, which is entered before the
            first request is taken and left after the last one has ended. Its value is `Context.lifespan`. A server that is
            served several times has several.
        keep_alive: seconds of silence after which a client is asked whether it lives; after as many more it is given up. For
            revisions with `ping`, and on transports that can die unnoticed; by default it never asks.
        state_keys: secrets of at least 32 random bytes, by name. With them is signed, not hidden, what a client is given to
            keep while its user answers a question (2026-07-28); the first signs, all are recognised. By default each process
            makes up its own, and then a client that comes back to another process, or after a restart, is refused: who runs
            several processes behind one address gives the same keys to all of them, and to nobody else. For a new key: add it
            behind the old one everywhere, then put it in front everywhere, and take the old one away ten minutes later.

    Raises:
        ValueError: a version is no revision of MCP, an extension has no proper identifier, a page has no entries, or a key is
            too short or has no proper name.
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
        page_size: int = PAGE_SIZE,
        cache: Cache | None = None,
        logging: bool = True,
        lifespan: Lifespan | None = None,
        keep_alive: float | None = None,
        state_keys: Mapping[str, bytes] | None = None,
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
        self._numbers = count()
        self._extensions = (
            {name: dict(settings) for name, settings in extensions.items()} if extensions else None
        )
        self._cache = cache
        self._logging = logging
        self._keep_alive = keep_alive
        self._ring = KeyRing(state_keys) if state_keys is not None else None
        self._lifespan = lifespan
        self.middlewares: list[Middleware] = []
        self._services: dict[ChangeListener, None] = {}
        self._lists = Lists(
            name,
            {
                "tools/list": self._tools,
                "resources/list": self._resources,
                "resources/templates/list": self._templates,
                "prompts/list": self._prompts,
            },
            page_size,
            cache,
        )
        self._config: Config | None = None
        self._answers = Answers(self._tools, self._resources, self._templates, self._prompts, self._lists)
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

        With `msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})` an argument that is a `str`, `int` or `bool` (and not
        None) is repeated by clients in the HTTP header `Mcp-Param-Region` (2026-07-28), for those on the way who route by it;
        so let it be no secret.

        Raises:
            DeclarationError: it cannot be served as declared, or there is a tool of that name.
        """
        return self._declared(self.add_tool, function, options)

    def add_tool(self, function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> None:
        """Like `tool`, for a function that is defined elsewhere."""
        entry = ToolEntry(function, options)
        self._add(self._tools, entry.name, entry, "tool", _TOOLS)

    def remove_tool(self, name: str) -> None:
        """Take a tool back.

        Raises:
            KeyError: there is none of that name.
        """
        self._remove(self._tools, name, _TOOLS)

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
            self._add(
                self._templates, uri, TemplateEntry(uri, function, options), "resource template", _RESOURCES
            )
        else:
            self._add(self._resources, uri, ResourceEntry(uri, function, options), "resource", _RESOURCES)

    def remove_resource(self, uri: str) -> None:
        """Take a resource or a template back, and the completions of its variables.

        Raises:
            KeyError: there is none with that URI.
        """
        self._remove(self._templates if "{" in uri else self._resources, uri, _RESOURCES)

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
        self._add(self._prompts, entry.name, entry, "prompt", _PROMPTS)

    def remove_prompt(self, name: str) -> None:
        """Take a prompt back, and the completions of its arguments.

        Raises:
            KeyError: there is none of that name.
        """
        self._remove(self._prompts, name, _PROMPTS)

    def completion(self, ref: str, argument: str, /, *, thread: bool = False) -> Callable[[F], F]:
        """Suggest values for an argument of a prompt, or for a variable of a resource template, while it is typed::

            @server.completion("review", "language")
            def languages(typed: str) -> list[str]:
                return [name for name in LANGUAGES if name.startswith(typed)]

        `ref` is the name of the prompt or the text of the template, declared before. The function takes what has been typed
        so far, as text. A second parameter, if it has one, gets the arguments that are chosen already, a dict of text: empty
        before 2025-06-18. It returns the suggestions, best first, as any iterable of strings, of which at most 100 are sent;
        or a `mcp_core.types.Completion`, to say how many there are in all. With `thread` a plain `def` runs in a worker
        thread, because it blocks.

        Raises:
            DeclarationError: it cannot be served as declared, there is no such prompt, template or argument, or it has a
                completion.
        """

        def declare(function: F) -> F:
            self.add_completion(ref, argument, function, thread=thread)
            return function

        return declare

    def add_completion(
        self, ref: str, argument: str, function: Callable[..., Any], /, *, thread: bool = False
    ) -> None:
        """Like `completion`, for a function that is defined elsewhere."""
        completer = Completer(function, thread)
        entry = self._prompts.get(ref) or self._templates.get(ref)
        if entry is None:
            raise DeclarationError(
                f"{completer.function.label}: there is no prompt or resource template {ref!r} yet"
            )
        entry.completers.add(argument, completer, repr(ref))
        self._declared_anew()

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

    def middleware(self, function: M, /) -> M:
        """Declare what stands around every request that is answered by what is declared here: tools, resources, prompts,
        completions, lists and methods of your own::

            @server.middleware
            async def timed(context: Context, proceed: Proceed) -> object:
                start = trio.current_time()
                try:
                    return await proceed()
                finally:
                    print(context.method, trio.current_time() - start, file=sys.stderr)

        `proceed()` gives the result that will be sent, a list as encoded bytes (`Raw`), or raises what the handler raised. A middleware may raise `McpError`
        or `ToolError` instead, give another result, or proceed again. The first one declared is the outermost. With any
        middleware each request runs in a task, a plain `def` too.

        Raises:
            DeclarationError: it is no `async def`.
        """
        called = function if inspect.isroutine(function) else type(function).__call__
        if not inspect.iscoroutinefunction(called):
            raise DeclarationError(
                f"a middleware is an `async def` of a context and `proceed`, not {function!r}"
            )
        self.middlewares.append(function)
        return function

    def _declared(self, add: Callable[..., None], function: Any, options: Any) -> Any:
        if function is not None:
            add(function, **options)
            return function

        def declare(function: F) -> F:
            add(function, **options)
            return function

        return declare

    def _add(
        self, entries: dict[str, Any], key: str, entry: Any, what: str, told: tuple[Change, ...] = ()
    ) -> None:
        if key in entries:
            raise DeclarationError(f"there is a {what} {key!r} already: {entries[key].function.label}")
        entry.number = next(self._numbers)
        entries[key] = entry
        self._declared_anew(told)

    def _remove(self, entries: dict[str, Any], key: str, told: tuple[Change, ...] = ()) -> None:
        del entries[key]
        self._declared_anew(told)

    def _declared_anew(self, told: tuple[Change, ...] = ()) -> None:
        self._lists.forget()
        self._config = None
        self._tell(told)

    # --- Changing ---------------------------------------------------------------------------------

    def changed(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        resource: str | Iterable[str] = (),
    ) -> None:
        """Tell every client that wants to hear of it that something has changed: the lists of `tools`, `prompts` or
        `resources`, or the contents of a `resource`, by its URI, or of several.

        May be called from any task or thread. It does not wait: a client that is slow to read is told once, however often
        something changed meanwhile. What is declared or taken back while serving is told without this. A resource means just
        that URI: who changes a part of something and wants that to be known as well names both.

        Raises:
            ValueError: nothing is named.
        """
        uris = (resource,) if isinstance(resource, str) else resource
        self._tell(changes(tools=tools, prompts=prompts, resources=resources, uris=uris))

    def _tell(self, told: tuple[Change, ...]) -> None:
        if told:
            for service in list(self._services):
                service.changed(told)

    def elicitation_complete(self, elicitation_id: str) -> None:
        """Tell the client that was asked to visit a page, with this id, that its user is done there (2025-11-25); it may make
        again what it was refused for want of that. May be called from any task or thread. Nobody is told twice, nor who was
        not asked; and in other revisions there is nothing to tell.
        """
        for service in list(self._services):
            service.page_visited(elicitation_id)

    def attach(self, service: ChangeListener) -> None:
        """A conversation begins, to be told of changes until it is detached. Services do this by themselves."""
        self._services[service] = None

    def detach(self, service: ChangeListener) -> None:
        """A conversation is over. Doing it twice does nothing."""
        self._services.pop(service, None)

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
                tools=ToolsCapability(list_changed=True) if self._tools else None,
                resources=_CHANGING_RESOURCES if self._resources or self._templates else None,
                prompts=PromptsCapability(list_changed=True) if self._prompts else None,
                completions={} if self._answers.completes else None,
                logging={} if self._logging else None,
            ),
            instructions=self.instructions,
            versions=self.versions,
            limits=self.limits,
            keep_alive=self._keep_alive,
            methods=[entry.row for entry in self._methods.values()],
            cache=self._cache,
        )

    @property
    def has_keys(self) -> bool:
        """Whether anything can have been signed with keys of this server."""
        return self._ring is not None

    def key_ring(self, entropy: Callable[[int], bytes]) -> KeyRing:
        """The keys that sign what clients are given to keep: those that were declared, or one made of `entropy` now."""
        if self._ring is None:
            self._ring = KeyRing({"process": entropy(32)})
        return self._ring

    def lifespan(self) -> AbstractAsyncContextManager[Any]:
        """The lifespan that the server was declared with, for a runtime to enter around the conversations that it serves, or
        one that does nothing and gives None."""
        return self._lifespan(self) if self._lifespan is not None else nullcontext()

    def param_headers(self, name: str) -> ParamHeaders | None:
        """The arguments of a tool that clients repeat in HTTP headers: path of each property with `"x-mcp-header"`, and what
        follows `Mcp-Param-`. None if there is no such tool."""
        entry = self._tools.get(name)
        return entry.param_headers if entry is not None else None

    def answer(self, request: RequestReceived) -> Result | Raw | Invocation:
        """What to do about a request: send a `Result` or `Raw` as it is, or run an `Invocation`.

        Raises:
            McpError: it is to be answered with this error.
        """
        name = request.method.name
        answer = self._answers.by_method.get(name)
        if answer is not None:
            return answer(request)
        entry = self._methods.get(name)
        if entry is None:
            raise refusal(request, Fault.METHOD_NOT_FOUND, f"Unknown method: {name}")
        return entry.prepare(request.params, request.peer.dialect)
