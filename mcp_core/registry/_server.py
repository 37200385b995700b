"""`Server`: tools, resources, prompts and methods, declared with decorators.

1. What cannot be served raises `DeclarationError` where it is declared. Declarations keep their
   order, so that a list is the same each time.
2. A `Server` has no runtime, connection or clock. A runtime takes a `Config` from `config()` for
   each connection, and calls `answer()` for each request.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from itertools import chain
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    Unpack,
    overload,
)

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_core._errors import Fault
from mcp_core._keywords import NoOptions, check_keywords, refuse_keywords, shows_keywords
from mcp_core._limits import Limits
from mcp_core._on_first_use import type_on_first_use
from mcp_core.protocol.input_requests._request_state import KeyRing
from mcp_core.protocol.messages._events import RequestReceived
from mcp_core.protocol.revisions._config import CacheHint, Config
from mcp_core.protocol.revisions._declared_uris import with_declared_uris
from mcp_core.protocol.revisions._dialects import ALL, dialects_of
from mcp_core.protocol.revisions._methods import TASKS
from mcp_core.protocol.schema._param_headers import ParamHeaders
from mcp_core.protocol.subscriptions._server import Change, changes
from mcp_core.registry.entries._completion import Completer
from mcp_core.registry.entries._custom_methods import CustomMethodEntry
from mcp_core.registry.entries._invocation import Invocation, MountedCall
from mcp_core.registry.entries._prompts import PromptEntry, PromptOptions
from mcp_core.registry.entries._resources import (
    DirectoryOptions,
    ResourceEntry,
    ResourceOptions,
    TemplateEntry,
)
from mcp_core.registry.entries._tools import ToolEntry, ToolOptions
from mcp_core.registry.tasks._tasks import Tasks
from mcp_core.types import (
    CompleteParams,
    Icon,
    Implementation,
    PromptsCapability,
    RequestParams,
    ResourcesCapability,
    ResourceTemplateReference,
    Result,
    ServerCapabilities,
    TaskRequests,
    TasksCapability,
    ToolsCapability,
    ToolTasks,
)

from ._context import Context, collector_of
from ._declarations import LIST_CHANGES, Declarations
from ._errors import DeclarationError
from ._input_requests import RequestHost
from ._listeners import ChangeBus, ChangeListener, ChangeListeners
from ._lookup import RequestLookup, request_error
from ._pages import PAGE_SIZE, ListPages
from ._roots import RootsHook, check_hook
from ._url_elicitation import verify_url_elicitation
from ._validation import check_icons

if TYPE_CHECKING:
    from ._mounts import Mount
else:  # most servers have no mounts
    Mount = type_on_first_use("mcp_core.registry._mounts", "Mount")

__all__ = ["ChangeBus", "ChangeListener", "Middleware", "Proceed", "Server"]

# The second argument of a middleware. Awaiting a call of it gives the result that will be sent.
Proceed: TypeAlias = Callable[[], Awaitable[Any]]
# Runs around every handler: gets its context and `proceed`, and returns its result.
Middleware: TypeAlias = Callable[[Context[Any], Proceed], Awaitable[Any]]

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound=Middleware)
H = TypeVar("H", bound=RootsHook)
# Gets an `mcp_core.runtime.sharing.RemoteChange`, which a server that shares nothing doesn't load.
C = TypeVar("C", bound=Callable[[Any], Awaitable[object] | object])

# Bytes. As base64 they are 4 MiB, the largest message of many implementations.
_MAX_FILE_SIZE: Final = 3 * 1024 * 1024
_CALL_TOOL: Final = "tools/call"
_TASKS_CAPABILITY: Final = TasksCapability(
    list={}, cancel={}, requests=TaskRequests(tools=ToolTasks(call={}))
)
Lifespan: TypeAlias = Callable[["Server"], AbstractAsyncContextManager[Any]]


class PathLike(Protocol):
    """An object that stands for a path, such as a `pathlib.Path`."""

    def __fspath__(self) -> str: ...


class Server:
    """A declared server.

    ::

        server = Server("weather")

        @server.tool
        def forecast(city: str, days: int = 1) -> str:
            "The weather of the next days."
            return f"{city}: sun for {days} days"

    Decorators return the function unchanged. The `add_*` methods declare functions that are
    defined elsewhere.

    Args:
        name: the server's name, for programs.
        version: the server's own version.
        title: the server's name, for people.
        description: what the server is.
        instructions: how to use the server, for the model.
        website_url: the server's web site.
        icons: icons with `https:` or `data:` URIs.
        limits: upper bounds on what a peer can make grow; the defaults of `Limits` if None.
        versions: the revisions of MCP to serve; all by default.
        extensions: extensions of MCP by identifier (`com.example/thing`), each with its settings.
            Sent as the capability `extensions` in 2026-07-28, and as `experimental` in every
            revision.
        page_size: the maximum number of entries in a page of a list; 1,000 by default. A page of
            long entries has fewer.
        cache: how long, and by whom, the lists and the server's description may be cached
            (2026-07-28); not at all by default.
        logging: False to declare no `logging` capability; `Context.log` then raises.
        list_changed: False to declare no `listChanged`: clients aren't notified that a list has
            changed, and list again when they need it.
        subscriptions: False to declare no `subscribe`: clients can't subscribe to a resource, and
            aren't notified that its contents have changed.
        threads: True to run every plain `def` in a worker thread, unless it is declared with
            `thread=False`. By default a plain `def` runs in the event loop, which costs less, and
            must not block.
        lifespan: called with the server when it starts to serve; returns an async context manager.
            It is entered before the first request and left after the last one. Its value is
            `Context.lifespan`. A server that is served several times enters one each time.
        keep_alive: seconds without a message after which the client gets a `ping`. After as many
            seconds without a response the connection is closed. For revisions with `ping`, on
            transports that can fail unnoticed; None, the default, never sends one.
        state_keys: secrets of at least 32 random bytes, by name. They sign, but don't encrypt, the
            `requestState` that a client holds while it collects input (2026-07-28), and the tokens
            of `Context.url_elicitation`. The first key signs, all keys verify. By default each
            process draws its own key; a `requestState` of another process, or from before a
            restart, is then rejected. Give the same keys to all processes behind one address. To
            rotate: append the new key everywhere, then move it to the front everywhere, and remove
            the old one ten minutes later.
        tasks: where tasks are kept, and their limits; in memory by default. Tools run as tasks if
            they are declared with `task=`.

    Raises:
        ValueError: a version isn't a revision of MCP, an extension or a key has an invalid name,
            `page_size` is below 1, or a key is too short.
        TypeError: an option is unknown; the text says what other libraries' options are here. Or
            `subscriptions` isn't a boolean.
        DeclarationError: an icon has another URI than `https:` or `data:`, or an extension is the
            one for tasks, which this library doesn't serve.
    """

    @shows_keywords(NoOptions)
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
        cache: CacheHint | None = None,
        logging: bool = True,
        list_changed: bool = True,
        subscriptions: bool = True,
        threads: bool = False,
        lifespan: Lifespan | None = None,
        keep_alive: float | None = None,
        state_keys: Mapping[str, bytes] | None = None,
        tasks: Tasks | None = None,
        **_other: Unpack[NoOptions],
    ) -> None:
        refuse_keywords(_other, Server, "Server()")
        if not isinstance(subscriptions, bool):  # an object, in the official SDK
            raise TypeError(
                "subscriptions is True or False; `server.changed` says what has changed, and"
                " `store=` of what serves shares it with other workers"
            )
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
        self.versions = tuple(dialect.version for dialect in dialects_of(versions))
        self._declared = declared = Declarations(self)
        self._tools, self._prompts = declared.tools, declared.prompts
        self._resources, self._templates = declared.resources, declared.templates
        self._methods = declared.methods
        self._lifespans_held = 0
        if extensions and TASKS[1] in extensions:
            raise DeclarationError(
                f"the extension {TASKS[1]} is declared by itself when a tool is declared with task="
            )
        self.tasks = tasks if tasks is not None else Tasks()
        self._extensions = {name: dict(settings) for name, settings in (extensions or {}).items()}
        self._cache = cache
        self._logging = logging
        self._list_changed = True if list_changed else None  # None: the capability is absent
        self._subscribe = True if subscriptions else None
        self._threads = threads
        self._reported: set[str] = set()
        self._reported_at: dict[object, float] = {}
        self._keep_alive = keep_alive
        self._key_ring = KeyRing(state_keys) if state_keys is not None else None
        # What several processes share is signed with these: all of them have the same.
        self.shared_keys: KeyRing | None = self._key_ring
        self._lifespan = lifespan
        self._was_served = False
        self.middlewares: list[Middleware] = []
        self.roots_hooks: list[RootsHook] = []
        self.remote_change_hooks: list[Callable[[Any], Awaitable[object] | object]] = []
        self._notified = ChangeListeners(name)
        self._listeners = self._notified.clients
        self._lists = ListPages(
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
        self._lookup = declared.lookup = RequestLookup(
            self._tools, self._resources, self._templates, self._prompts, self._lists
        )
        self.config()  # an invalid argument raises here, not at the first connection

    def __repr__(self) -> str:
        return f"<Server {self.info.name!r} with {self._declared.text}>"

    if not TYPE_CHECKING:  # a type checker reports the mistake itself

        def __getattr__(self, name: str) -> Any:
            from mcp_core._other_names import SERVER, missing_attribute

            raise missing_attribute(self, name, SERVER)

    # --- Declarations -----------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    @shows_keywords(ToolOptions)
    def tool(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Declare `function` as a tool, with or without the keywords of `ToolOptions`.

        Return it, or without it a decorator (server/tools). The input schema comes from the
        signature: types, defaults, `Annotated[int, "a description"]` or
        `Annotated[int, msgspec.Meta(ge=1)]`, and the descriptions of the parameters in the
        docstring. A parameter annotated with `Context` is filled in by the runtime.

        The function may return text, `Image`, `Audio`, `File`, content blocks or a list of these;
        data, which becomes structured content; None; or a `CallToolResult`. To report an error to
        the model, it raises `ToolError`.

        With `msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})` clients repeat the
        argument in the HTTP header `Mcp-Param-Region` (2026-07-28), so that proxies can route by
        it. The argument is a `str`, `int` or `bool`, not None, and not a secret.

        Raises:
            DeclarationError: the function cannot be served as declared, or the name is in use.
            TypeError: an option is unknown, or a name is given without `name=`.
        """
        return self._declare(self.add_tool, function, options)

    @shows_keywords(ToolOptions)
    def add_tool(self, function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> None:
        """Declare `function`, which is defined elsewhere, as a tool, with `ToolOptions`.

        All else is as for `tool`.

        Raises:
            DeclarationError, TypeError: as for `tool`.
        """
        entry = ToolEntry(function, options, self._threads)
        self._add("tool", entry.name, entry)

    def remove_tool(self, name: str) -> None:
        """Remove the tool `name`. Subscribed clients are notified that the list has changed.

        Raises:
            KeyError: there is no tool of that name.
        """
        self._remove("tool", name)

    @shows_keywords(ResourceOptions)
    def resource(self, uri: str, /, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Declare a resource, or a resource template (RFC 6570) whose variables are parameters::

            @server.resource("weather://{city}")
            def weather(city: str) -> str: ...

        Return a decorator. `uri` is the URI, or the template; the keywords are `ResourceOptions`
        (server/resources).

        A variable matches one path segment, and never `..`, a separator or a drive letter (`C:`).
        `{+path}` matches several such segments, and never an absolute path. For texts that aren't
        paths there is `unchecked=["variable"]`. The function may return text, bytes,
        `Image`, `Audio`, `File`, `ResourceContents` or a list of these; a `ReadResourceResult`; or
        any other value that JSON can represent. For a missing resource it raises
        `ResourceNotFound`.

        Raises:
            DeclarationError: the function cannot be served as declared, the URI is in use, or the
                template is ambiguous.
            TypeError: an option is unknown, or the decorator was used without a URI.
        """

        if not isinstance(uri, str):
            raise TypeError(
                "@server.resource needs the URI: write @server.resource('notes://today')"
            )

        def declare(function: F) -> F:
            self.add_resource(uri, function, **options)
            return function

        return declare

    @shows_keywords(ResourceOptions)
    def add_resource(
        self, uri: str, function: Callable[..., Any], /, **options: Unpack[ResourceOptions]
    ) -> None:
        """Declare `function`, which is defined elsewhere, as a resource, with `ResourceOptions`.

        `uri` and all else are as for `resource`.

        Raises:
            DeclarationError, TypeError: as for `resource`.
        """
        if "{" in uri:
            template = TemplateEntry(uri, function, options, self._threads)
            self._add("resource template", uri, template)
        else:
            resource = ResourceEntry(uri, function, options, self._threads)
            self._add("resource", uri, resource)

    def remove_resource(self, uri: str) -> None:
        """Remove the resource `uri`, or a template with the completions of its variables.

        Subscribed clients are notified that the list has changed.

        Raises:
            KeyError: there is no resource or template with that URI.
        """
        self._remove("resource template" if "{" in uri else "resource", uri)

    @shows_keywords(DirectoryOptions)
    def add_directory(
        self,
        path: str | PathLike,
        uri: str,
        *,
        max_size: int = _MAX_FILE_SIZE,
        **options: Unpack[DirectoryOptions],
    ) -> None:
        """Declare the files below a directory as resources::

            server.add_directory("manual", "docs://manual")

        A client reads `docs://manual/guide/intro.md`, by the template `docs://manual/{+path}`. The
        resource `docs://manual` is a list as JSON, and so is each directory below: `entries` with
        `uri`, `name`, `mimeType` (`inode/directory` for directories) and `size`. A list has at most
        1,000 entries, chosen from at most 100,000: if the directory has more, `isComplete` is
        false. The template has completions.

        A file that is UTF-8 without NUL is sent as text, any other as a blob. So is a text whose
        JSON would be longer than the largest blob. The MIME type follows from the file's name.
        Files are read on request, in a worker thread, and nothing is watched: call `changed` if
        clients are to read something again.

        Nothing outside of the directory is read: links that lead out of it don't exist for clients,
        nor do FIFOs, sockets, devices, names that begin with a dot, and names that aren't UTF-8 or
        have control characters. On Windows neither do device names, names with a backslash or
        colon, and names that end in a dot or a space. A hard link can't be told from a file.

        Args:
            path: the directory.
            uri: its URI.
            max_size: the size in bytes above which a file isn't read, which is an error; 3 MiB by
                default, so that contents take at most 4 MiB of a message.
            options: see `DirectoryOptions`.

        To remove it, pass both URIs to `remove_resource`.

        Raises:
            DeclarationError: there is no such directory, the URI is invalid or in use, or has an
                expression, a query or a fragment.
            TypeError: an option is unknown.
        """
        from mcp_core.adapters._directory import DirectoryReader  # few servers read files

        check_keywords(options, DirectoryOptions, "Server.add_directory")
        reader = DirectoryReader(path, uri, max_size)
        name = options.get("name") or reader.name
        root = ResourceOptions(
            description="The list of the files, as JSON.", mime_type="application/json"
        )
        files = ResourceOptions(description="A file, or the list of a directory.")
        for each in root, files:
            each.update(options)  # type: ignore[typeddict-item]  # a part of them
            each["thread"] = True
        root["name"], files["name"] = name, f"{name} files"
        self.add_resource(reader.uri, reader.read_root, **root)
        try:
            self.add_resource(reader.template, reader.read, **files)
        except DeclarationError:
            self.remove_resource(reader.uri)
            raise
        self.add_completion(reader.template, "path", reader.complete, thread=True)

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(self, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...
    @shows_keywords(PromptOptions)
    def prompt(self, function: Any = None, /, **options: Unpack[PromptOptions]) -> Any:
        """Declare `function` as a prompt, with or without the keywords of `PromptOptions`.

        Return it, or without it a decorator (server/prompts). Its parameters are the prompt's
        arguments, converted from text to the annotated types. It may return text or content, which
        becomes a user message; `PromptMessage`; a list of these; or a `GetPromptResult`.

        Raises:
            DeclarationError: the function cannot be served as declared, or the name is in use.
            TypeError: an option is unknown, or a name is given without `name=`.
        """
        return self._declare(self.add_prompt, function, options)

    @shows_keywords(PromptOptions)
    def add_prompt(self, function: Callable[..., Any], /, **options: Unpack[PromptOptions]) -> None:
        """Declare `function`, which is defined elsewhere, as a prompt, with `PromptOptions`.

        All else is as for `prompt`.

        Raises:
            DeclarationError, TypeError: as for `prompt`.
        """
        entry = PromptEntry(function, options, self._threads)
        self._add("prompt", entry.name, entry)

    def remove_prompt(self, name: str) -> None:
        """Remove the prompt `name` and the completions of its arguments.

        Subscribed clients are notified that the list has changed.

        Raises:
            KeyError: there is no prompt of that name.
        """
        self._remove("prompt", name)

    def completion(
        self, ref: str, argument: str, /, *, thread: bool | None = None
    ) -> Callable[[F], F]:
        """Declare the completion of a prompt argument, or of a resource template variable::

            @server.completion("review", "language")
            def languages(typed: str) -> list[str]:
                return [name for name in LANGUAGES if name.startswith(typed)]

        The function gets the text that the user has typed so far. If it has a second parameter, it
        gets a dict with the arguments already chosen, as text; before 2025-06-18 it is empty. The
        function returns an iterable of strings, best first, of which at most 100 are sent; or a
        `mcp_core.types.Completion`, to give the total number.

        Return a decorator (server/utilities/completion).

        Args:
            ref: the prompt's name or the template's text, which is declared already.
            argument: the name of the prompt's argument or the template's variable.
            thread: True to run a plain `def` in a worker thread, because it blocks. By default the
                server's `threads` decides.

        Raises:
            DeclarationError: the function cannot be served as declared, there is no such prompt,
                template or argument, or the argument has a completion.
        """

        def declare(function: F) -> F:
            self.add_completion(ref, argument, function, thread=thread)
            return function

        return declare

    def add_completion(
        self,
        ref: str,
        argument: str,
        function: Callable[..., Any],
        /,
        *,
        thread: bool | None = None,
    ) -> None:
        """Declare `function`, which is defined elsewhere, as a completion.

        The other parameters are as for `completion`.

        Raises:
            DeclarationError: as for `completion`.
        """
        completer = Completer(function, thread, self._threads)
        entry = self._prompts.get(ref) or self._templates.get(ref)
        if entry is None:
            raise DeclarationError(
                f"{completer.function.label}: there is no prompt or resource template {ref!r} yet"
            )
        entry.completers.add(argument, completer, repr(ref))
        self._declarations_changed()

    def method(
        self,
        name: str,
        /,
        *,
        params: type[Struct] = RequestParams,
        result: type[Struct] | None = None,
        thread: bool | None = None,
    ) -> Callable[[F], F]:
        """Declare a method that MCP doesn't define. Return a decorator.

        The function takes an object of `params`, and returns a Struct, a dict, a dataclass or None.

        Args:
            name: the method's name, such as `"acme/reindex"`.
            params: the type of its params, preferably a subclass of `types.RequestParams`.
            result: the type of its result. It documents the method: what the function returns is
                not checked against it.
            thread: as for `completion`.

        Raises:
            DeclarationError: MCP defines that method, or it is declared already.
        """

        def declare(function: F) -> F:
            entry = CustomMethodEntry(name, function, params, result, thread, self._threads)
            self._add("method", name, entry)
            return function

        return declare

    def remove_method(self, name: str) -> None:
        """Remove the method `name`. On existing connections its requests get "Unknown method".

        Raises:
            KeyError: there is no method of that name.
        """
        self._remove("method", name)

    def middleware(self, function: M, /) -> M:
        """Declare `function` as a middleware around every request for tools, prompts and the like::

            @server.middleware
            async def timed(context: Context, proceed: Proceed) -> object:
                start = trio.current_time()
                try:
                    return await proceed()
                finally:
                    print(context.method, trio.current_time() - start, file=sys.stderr)

        It sees the requests that declarations of this server answer: completions, lists and
        methods of your own included. Awaiting `proceed()` gives the result that will be sent, for
        a list its encoded bytes (`Raw`), or raises the handler's exception. The middleware
        may return another result, raise `McpError` or `ToolError`, or call `proceed` again.

        The middleware that is declared first is the outermost. With a middleware each request runs
        in a task of its own, also a plain `def`. Return `function` itself.

        Raises:
            DeclarationError: the function isn't an `async def`.
        """
        called = function if inspect.isroutine(function) else type(function).__call__
        if not inspect.iscoroutinefunction(called):
            raise DeclarationError(
                f"a middleware is an `async def` of a context and `proceed`, not {function!r}"
            )
        self.middlewares.append(function)
        return function

    def on_roots_changed(self, function: H, /) -> H:
        """Declare `function` as a hook, called when a client notifies that its roots have changed::

            @server.on_roots_changed
            async def rescan(context: RootsContext) -> None:
                context.session_state["roots"] = await context.roots()

        A client does so until 2025-11-25, if it declared `roots.listChanged`. 2026-07-28 has no
        such notification: there a handler lists the roots whenever it needs them.

        The hook is an `async def`, or a function that doesn't block. All hooks are called, in the
        order of declaration. For one client they run once at a time: any number of notifications
        meanwhile lead to one more run. They are cancelled when the client is gone.
        An exception is written to the log, and ends that hook only. Return `function` itself
        (client/roots, Root List Changes).

        Raises:
            DeclarationError: the function hasn't one parameter.
        """
        check_hook(function, "changed roots", "RootsContext")
        self.roots_hooks.append(function)
        return function

    def on_remote_change(self, function: C, /) -> C:
        """Declare `function` as a hook, called when another worker of this server has a change::

            @server.on_remote_change
            async def reload(change: RemoteChange) -> None:
                declare_tools(await read_plugins(change.lifespan.database))

        Workers share changes if they are served with a `store=`. They hear that something has
        changed, and not what it is now. The hook runs before this worker's clients are notified, so
        that it can read and declare it anew. They are notified of what it declares or reports by
        `changed` together with the change; other workers aren't, since each has a hook of its own.

        The hook also runs before the server begins to serve, since a change during the lifespan
        wasn't heard, and whenever changes were missed. It is an `async def`, or a function that
        doesn't block. All hooks are called, in the order of declaration. They run once at a time:
        any number of changes meanwhile lead to one more run. After 10 s a hook is cancelled, and
        runs again when it has ended. What it raises is written to the log. Clients are notified in
        either case. Return `function` itself.

        Raises:
            DeclarationError: the function hasn't one parameter.
        """
        check_hook(function, "remote changes", "RemoteChange")
        self.remote_change_hooks.append(function)
        return function

    def enable(self, name: str, kind: Literal["tool", "prompt", "resource"] | None = None) -> None:
        """Show a tool, prompt, resource or template again that `disable` has hidden.

        Clients are notified that the list has changed. Do nothing if it isn't hidden.

        Args:
            name: the name of a tool or prompt, or the URI of a resource or template.
            kind: "tool", "prompt" or "resource", which is also for templates. Needed if there are
                several of that name.

        Raises:
            KeyError: there is none of that name.
            ValueError: there are several of that name, or there is no such kind.
            DeclarationError: it is disabled on the mounted server that has declared it.
        """
        self._set_enabled(name, kind, enabled=True)

    def disable(self, name: str, kind: Literal["tool", "prompt", "resource"] | None = None) -> None:
        """Hide a tool, prompt, resource or template from all clients, until `enable`.

        It isn't listed, and requests for it get the error for an unknown one. Calls that run go on,
        and results of tasks can be fetched. It keeps its place in the list, and its capability
        stays declared. Of a mounted server it is hidden here only. A new declaration is enabled.
        Of several workers only this one hides it: call it in each of them.

        Args:
            name: as for `enable`.
            kind: as for `enable`.

        Raises:
            KeyError, ValueError: as for `enable`.
        """
        self._set_enabled(name, kind, enabled=False)

    def _set_enabled(self, name: str, kind: str | None, *, enabled: bool) -> None:
        changed = self._declared.set_enabled(name, kind, enabled=enabled)
        if changed:
            self._declarations_changed(changed)

    def _declare(self, add: Callable[..., None], function: Any, options: Any) -> Any:
        """Declare `function` and return it, or return a decorator if `function` is None."""
        if isinstance(function, str):
            kind = add.__name__.removeprefix("add_")
            raise TypeError(
                f"@server.{kind}({function!r}): write @server.{kind}(name={function!r}), "
                f"or @server.{kind} alone for the function's own name"
            )
        if function is not None:
            add(function, **options)
            return function

        def declare(function: F) -> F:
            add(function, **options)
            return function

        return declare

    def _add(self, kind: str, key: str, entry: Any) -> None:
        self._declared.add(kind, key, entry)
        self._declarations_changed(LIST_CHANGES[kind])

    def _remove(self, kind: str, key: str) -> None:
        self._declared.remove(kind, key)
        self._declarations_changed(LIST_CHANGES[kind])

    def _declarations_changed(self, list_changes: tuple[Change, ...] = ()) -> None:
        for server in self._declared.with_outer():
            server._lists.discard_pages()
            server._config = None
        self._notify_listeners(list_changes)

    # --- Mounted servers --------------------------------------------------------------------------

    @shows_keywords(NoOptions)
    def mount(self, other: Server, prefix: str = "", **_other: Unpack[NoOptions]) -> None:
        """Offer everything that `other` declares, now and later, as a part of this server::

            main = Server("main")
            main.mount(weather, "weather")  # its tool `forecast` is `weather_forecast` here

        The handlers of `other` keep what is theirs: their `Context.server`, lifespan, middlewares
        and `session_state`. The middlewares of this server run around those of `other`, whose
        handlers and middlewares see their own names without the prefix. The lifespan of `other` is
        entered after that of this server, once each time that this server is served. Lists, limits,
        `state_keys`, authorization, `tasks`, `cache` and `page_size` are this server's. The
        instructions of both are joined, and so are their `extensions`.

        `other` may be mounted in several servers, or be served by itself as well. Do nothing if it
        is mounted with that prefix already, as by a lifespan that is entered again.

        Args:
            other: the server to mount.
            prefix: the names of its tools and prompts get it with an underscore. URIs and the names
                of methods stay as they are. "", the default, changes no name.

        Raises:
            DeclarationError: a name or URI is in use, `other` is or contains this server, `prefix`
                isn't of `A-Z a-z 0-9 . _ -` or ends in an underscore, an extension has other
                settings, or this server is being served and `other` has a lifespan, which nothing
                would enter.
            TypeError: `other` isn't a `Server`, or an option is unknown.
        """
        refuse_keywords(_other, Server.mount, "mount()")
        if not isinstance(other, Server):
            raise TypeError(
                f"server.mount takes a Server and a prefix of its names, not {other!r}: to serve"
                " several servers by path, give serve_http a mapping of paths"
            )
        from ._mounts import make_mount  # on first use: most servers have none

        around = self._declared.with_outer()
        mount = make_mount(around, other, prefix)
        if mount is None:
            return
        if any(server._lifespans_held for server in around):
            late = next((s for s in [other, *other.mounted_servers()] if s._lifespan), None)
            if late is not None:
                raise DeclarationError(
                    f"server {late.info.name!r} has a lifespan, and {self.info.name!r} is being"
                    " served: mount it before, or in the lifespan of the outer server"
                )
        self._declared.add_mount(mount)
        tables = other._declared.by_kind
        changed = [LIST_CHANGES[kind] for kind, entries in tables.items() if entries]
        self._declarations_changed(tuple(dict.fromkeys(chain.from_iterable(changed))))

    @property
    def mounts(self) -> Sequence[Mount]:
        """The mounts of servers in this one, each with its `server` and `prefix`. For runtimes."""
        return tuple(self._declared.mounts)

    def mounted_servers(self) -> list[Server]:
        """Return the servers that are mounted in this one, and in these, each once. For runtimes.

        A server comes before those that are mounted in it.
        """
        found: dict[Server, None] = {}
        for mount in self._declared.mounts:
            found.update(dict.fromkeys([mount.server, *mount.server.mounted_servers()]))
        return list(found)

    @contextmanager
    def lifespans_entered(self) -> Iterator[None]:
        """Return a context manager for a runtime that has entered the lifespans of all servers.

        In its block, `mount` refuses a server with a lifespan, which nothing would enter.
        """
        self._lifespans_held += 1
        try:
            yield
        finally:
            self._lifespans_held -= 1

    def all_roots_hooks(self) -> list[tuple[Server, RootsHook]]:
        """Return the hooks on changed roots of this server and of those mounted in it."""
        servers = [self, *self.mounted_servers()]
        return [(server, hook) for server in servers for hook in server.roots_hooks]

    # --- Notifications ----------------------------------------------------------------------------

    def changed(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        resource: str | Iterable[str] = (),
    ) -> None:
        """Notify every subscribed client of a change: of a list, or of a resource's contents.

        May be called from any task or thread, and doesn't wait. A client that is slow to read
        gets one notification for any number of changes. Declaring or removing something notifies
        by itself. A resource is matched by its exact URI: if others change with it, name them too.

        Args:
            tools: the list of tools has changed.
            prompts: the list of prompts has changed.
            resources: the list of resources has changed.
            resource: the URI of a resource whose contents have changed, or several URIs.

        Raises:
            ValueError: no change is named.
            TypeError: `resource` isn't a string or several, but a path, for example.
        """
        several = hasattr(resource, "__iter__") and not isinstance(resource, str)
        uris: Iterable[str] = resource if several else (resource,)  # type: ignore[assignment]
        self._notify_listeners(
            changes(tools=tools, prompts=prompts, resources=resources, uris=uris)
        )

    def _notify_listeners(self, changed: tuple[Change, ...]) -> None:
        if changed:
            for server in self._declared.with_outer():
                server._notified.notify(changed)

    def elicitation_complete(self, elicitation_id: str) -> None:
        """Notify the client whose user has finished on the page of `elicitation_id` (2025-11-25).

        The client may then repeat the request that needed it. May be called from any task or
        thread. Only the client that was sent to the page is notified, and only once. Other
        revisions have no such notification: their clients get nothing.
        """
        for server in self._declared.with_outer():
            for bus in server._notified.first_bus():
                bus.elicitation_completed(elicitation_id)
            for listener in server._notified:
                listener.elicitation_completed(elicitation_id)

    def verify_url_elicitation(self, token: str, name: str, *, principal: str, now: float) -> str:
        """Return the elicitation's id, after checking who has opened the page.

        For the page to which `Context.elicit_url` has sent a user. Call it before the page accepts
        anything (client/elicitation, Phishing). It may be called from any thread, in every process
        that has the same `state_keys`. Until it expires a token is valid any number of times: to
        accept a visit once, record the id that this returns. A mounted server also accepts tokens
        of the servers that it is mounted in: their keys sign for its handlers.

        Args:
            token: `UrlElicitation.token`, from the URL.
            name: the name that was given to `Context.url_elicitation`.
            principal: the visitor, as the login of the page knows them, never as the URL does. It
                is `Context.principal`: with a `JwtVerifier` it is `f"{issuer}#sub:{subject}"`. ""
                if the server runs without authorization. It then cannot know its users, and the
                token proves only that it has sent a user here.
            now: seconds since 1970, `time.time()`.

        Raises:
            InvalidUrlElicitation: the token was altered, has expired, or is for another
                page or user.
        """
        rings = [server._key_ring for server in self._declared.with_outer()]
        return verify_url_elicitation(rings, token, name, principal, now)

    def attach(self, listener: ChangeListener) -> None:
        """Notify `listener` of changes until `detach`. A `Service` attaches itself."""
        self._listeners[listener] = None

    def detach(self, listener: ChangeListener) -> None:
        """Stop notifying `listener`. Do nothing if it isn't attached."""
        self._listeners.pop(listener, None)

    def attach_bus(self, bus: ChangeBus) -> None:
        """Pass local changes on to `bus`, which shares them with other workers, until `detach_bus`.

        A server that is served several times at once has several buses. Only the first one that
        has joined shares changes, or each would share them. A bus that has joined attaches itself
        again, and so is behind those that have joined before it.

        Raises:
            ValueError: another bus has another store, whose workers would hear of nothing.
        """
        self._notified.add_bus(bus)

    def detach_bus(self, bus: ChangeBus) -> None:
        """Stop passing changes on to `bus`. Do nothing if it isn't attached."""
        self._notified.discard_bus(bus)

    def is_first_bus(self, bus: ChangeBus) -> bool:
        """Return True if it is `bus` that shares changes."""
        return bus in self._notified.first_bus()

    def deliver_changes(
        self,
        changed: Collection[Change],
        *,
        all_resources: bool = False,
        elicitation_ids: Iterable[str] = (),
    ) -> None:
        """Notify clients of what another worker has reported. It isn't shared again.

        Args:
            changed: what has changed.
            all_resources: True if the contents of each resource may have changed.
            elicitation_ids: the pages on which users have finished.
        """
        listeners = [each for server in self._declared.with_outer() for each in server._notified]
        for listener in listeners:
            if changed or all_resources:
                listener.changed(changed, all_resources=all_resources)
            for elicitation_id in elicitation_ids:
                listener.elicitation_completed(elicitation_id)

    # --- For runtimes -----------------------------------------------------------------------------

    def config(self) -> Config:
        """Return the `Config` for a new `Connection`, made of the current declarations.

        It is cached until the next declaration.
        """
        if self._config is None:
            self._config = self._make_config()
        return self._config

    def _make_config(self) -> Config:
        extensions = self.extensions
        instructions = self.instructions
        if self._declared.mounts:
            from ._mounts import joined_instructions

            instructions = joined_instructions(self)
        tasks: dict[str, Any] = {TASKS[1]: {}} if self._lookup.has_tasks else {}
        has_resources = self._resources or self._templates
        listed = self._list_changed
        resources = ResourcesCapability(subscribe=self._subscribe, list_changed=listed)
        return Config(
            self.info,
            ServerCapabilities(
                extensions={**extensions, **tasks} or None,
                experimental=extensions or None,
                tasks=_TASKS_CAPABILITY if self._lookup.has_tasks else None,
                tools=ToolsCapability(list_changed=listed) if self._tools else None,
                resources=resources if has_resources else None,
                prompts=PromptsCapability(list_changed=listed) if self._prompts else None,
                completions={} if self._lookup.has_completions else None,
                logging={} if self._logging else None,
            ),
            instructions=instructions,
            versions=self.versions,
            limits=self.limits,
            keep_alive=self._keep_alive,
            methods=[entry.row for entry in self._methods.values()],
            cache=self._cache,
            declared=self._lookup,
        )

    @property
    def extensions(self) -> dict[str, dict[str, Any]]:
        """The extensions that it was declared with, and those of the servers mounted in it."""
        found = dict(self._extensions)
        for mount in self._declared.mounts:
            found = {**mount.server.extensions, **found}
        return found

    @property
    def has_tasks(self) -> bool:
        """True if a tool runs as a task."""
        return self._lookup.has_tasks

    def may_be_task(self, request: RequestReceived) -> bool:
        """Return True if `request` may lead to a task. Call `answer` to know it.

        It doesn't read the arguments, so it tells the client nothing.
        """
        dialect = request.peer.dialect
        if dialect.tasks == "none" or request.method.name != _CALL_TOOL:
            return False
        entry = self._tools.get(request.params.name)
        return entry is not None and entry.task is not None

    def declared_names(self) -> tuple[Collection[str], Collection[str], Collection[str]]:
        """Return the names of its tools, prompts and own methods."""
        return self._tools.keys(), self._prompts.keys(), self._methods.keys()

    @property
    def has_keys(self) -> bool:
        """True if a key exists that can have signed a `requestState`."""
        return self._key_ring is not None

    def key_ring(self, entropy: Callable[[int], bytes]) -> KeyRing:
        """Return the keys that sign and verify `requestState`.

        Without `state_keys`, the first call draws a key: 32 bytes of `entropy`.
        """
        if self._key_ring is None:
            self._key_ring = KeyRing({"process": entropy(32)})
        return self._key_ring

    def use_state_keys(self, keys: Mapping[str, bytes]) -> None:
        """Use `keys` as with the argument `state_keys`, before the server is served.

        For programs that serve a server that is declared elsewhere, such as `mcp-trio run`.

        Raises:
            ValueError: it was declared with other keys, it is or was served, a key is too short, or
                a name is invalid.
        """
        if self._was_served:
            raise ValueError(
                f"server {self.info.name!r} is served already, and has signed with other keys: give"
                " it state_keys before"
            )
        if self.shared_keys is not None:
            raise ValueError(
                f"server {self.info.name!r} is declared with state_keys= already: use one or the"
                " other"
            )
        self._key_ring = self.shared_keys = KeyRing(keys)

    def lifespan(self) -> AbstractAsyncContextManager[Any]:
        """Return a new lifespan of this server alone, without those mounted in it.

        `mcp_core.runtime.open_lifespans` enters all of them around the connections that are served.
        Its value is None if the server was declared without one.
        """
        self._was_served = True
        return self._lifespan(self) if self._lifespan is not None else nullcontext()

    def is_first_report(self, label: str) -> bool:
        """Return True at the first call with `label`, the name of a function that blocks.

        Runtimes ask before they report the function to the log.
        """
        if label in self._reported:
            return False
        self._reported.add(label)
        return True

    def is_due_report(self, fault: object, now: float, interval: float) -> bool:
        """Return True unless `fault` was reported less than `interval` seconds ago, at `now`.

        A `visible=` asks before it is reported to the log.
        """
        last = self._reported_at.get(fault)
        if last is not None and now - last < interval:
            return False
        self._reported_at[fault] = now
        return True

    def param_headers(self, name: str) -> ParamHeaders | None:
        """Return the arguments of the tool `name` that clients repeat in HTTP headers.

        For each property with `"x-mcp-header"` it has the path and the header name's end after
        `Mcp-Param-` (2026-07-28, basic/transports). None if there is no such tool.
        """
        entry = self._tools.get(name)
        if entry is None or (entry.visibility is not None and not entry.visibility.is_enabled):
            return None
        headers: ParamHeaders = entry.param_headers
        return headers

    def find_tool(self, tool: str | Callable[..., Any]) -> ToolEntry | None:
        """Return the tool with the name `tool`, or declared with that function. None for none."""
        if isinstance(tool, str):
            return self._tools.get(tool)
        # A bound method is a new object each time, so `is` would not do.
        return next((entry for entry in self._tools.values() if entry.function.call == tool), None)

    def prepare_read(self, context: Context[Any], uri: str) -> Invocation:
        """Return the call that reads the resource `uri`, if the client of `context` sees it.

        Raises:
            McpError: there is no such resource.
        """
        collector = collector_of(context)
        found: Any = self._lookup.prepare_read(uri, collector.request, collector.host)
        invocation: Invocation
        invocation = found.prepare_alone() if isinstance(found, MountedCall) else found
        return invocation

    def as_declared(
        self, request: RequestReceived, host: RequestHost | None = None
    ) -> RequestReceived:
        """Return `request` with the URI that it names as it is declared, for its handler.

        `host` is as for `answer`. What is hidden from the sender has no other spelling either.
        """
        params = with_declared_uris(request.method.name, request.params, self._lookup)
        if params is request.params:
            return request
        match params:
            case CompleteParams(ref=ResourceTemplateReference(uri=text)):
                hidden = self._lookup.hides_template(text, request, host)
            case _:
                hidden = self._lookup.hides_uri(params.uri, request, host)
        return request if hidden else replace(request, params=params)

    def hides_uri(self, uri: str, request: RequestReceived, host: RequestHost | None) -> bool:
        """Return True if the sender of `request` doesn't see the resource `uri`.

        `host` is as for `answer`.
        """
        return self._lookup.hides_uri(uri, request, host)

    def hides_task_of(self, tool: str, request: RequestReceived, host: RequestHost | None) -> bool:
        """Return True if the sender of `request` doesn't see the tasks of `tool`.

        `host` is as for `answer`.
        """
        return self._lookup.hides_task_of(tool, request, host)

    def answer(
        self, request: RequestReceived, host: RequestHost | None = None
    ) -> Result | Raw | Invocation | MountedCall:
        """Return the response to `request`, or the `Invocation` that gives it.

        Send a `Result` or `Raw` as it is. A `MountedCall` is for a mounted server with middleware,
        inside of which the call is prepared. `host` is the `Service` at which it arrived: it knows
        who has sent it, for `visible=`. Without it the request's grant says that.

        Raises:
            McpError: the error to respond with.
        """
        name = request.method.name
        answer = self._lookup.by_method.get(name)
        if answer is not None:
            return answer(request, host)
        entry = self._methods.get(name)
        if entry is None:
            raise request_error(request, Fault.METHOD_NOT_FOUND, f"Unknown method: {name}")
        return entry.prepare(request.params, request.peer.dialect)
