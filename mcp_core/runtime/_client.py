"""The client side of one connection: its calls, callbacks, cache and subscriptions.

A driver adds a subclass with the abstract methods of `AbstractClient`: how to wait, how to run a
job, and what follows a call into the connection.

A call is a generator (`CallSteps`) that yields one request after the other. If the server asks for
input in a result (2026-07-28), the same generator sends the request again with the responses.
"""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, overload

from mcp_core import types as t
from mcp_core._errors import (
    CallTimeout,
    ConnectionLost,
    Fault,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
)
from mcp_core._keywords import shows_keywords
from mcp_core._on_first_use import type_on_first_use
from mcp_core.client._cache import ResultCache
from mcp_core.client._calls import (
    CallOptions,
    CallSteps,
    PagedList,
    Params,
    PendingCall,
    complete_argument,
)
from mcp_core.client._options import ClientConfigOptions, check_level
from mcp_core.client._status import ConnectionStatus
from mcp_core.protocol.connection._connection import Connection
from mcp_core.protocol.input_requests._rounds import ClientRoundTrips
from mcp_core.protocol.messages._events import (
    ChangesMissed,
    ConnectionClosed,
    Event,
    InputProblem,
    InputRequested,
    NotificationReceived,
    Peer,
    PeerReady,
    RequestCancelled,
    RequestReceived,
    TaskCreated,
)
from mcp_core.protocol.messages._pending import IgnoredRequest, connection_lost
from mcp_core.protocol.revisions._capabilities import is_declared
from mcp_core.protocol.revisions._config import Config
from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.protocol.revisions._methods import Role
from mcp_core.protocol.schema._output_schemas import OutputSchemas
from mcp_core.protocol.subscriptions._server import UPDATED, Change, changes

from ._callback_queue import CallbackQueue, NotificationCallbacks
from ._client_callbacks import (
    CallbackJob,
    ClientCallbacks,
    InputWait,
    ServerInitiatedRequests,
    wait_for_end,
)
from ._listen import Subscription, SubscriptionClient
from .client_tasks._hosted import HostedTasks
from .client_tasks._support import must_be_task, needs_task_code, runs_tasks, task_support

if TYPE_CHECKING:
    from mcp_core.types import RequestId

    from ._job import Job
    from ._typed_results import TypedToolResult
    from .client_tasks._poller import TaskPoller
    from .client_tasks._task import ClientTask
else:
    TypedToolResult = type_on_first_use("mcp_core.runtime._typed_results", "TypedToolResult")
    ClientTask = type_on_first_use("mcp_core.runtime.client_tasks._task", "ClientTask")

__all__ = ["AbstractClient"]

_CLIENT: Final = Role.CLIENT
_SERVER: Final = Role.SERVER
_LOG: Final = "notifications/message"
_CALL_TOOL: Final = "tools/call"
_TASKS: Final = "tasks/"  # the prefix of the methods about tasks
_TASK_NOTIFICATIONS: Final = ("notifications/tasks/status", "notifications/tasks")
_SET_LEVEL: Final = "logging/setLevel"
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"
_ROOTS_LIST: Final = "roots/list"
_ROOTS_CHANGED: Final = "notifications/roots/list_changed"
# Seconds. Servers that request the roots by themselves do so within half a second after the
# handshake (server-everything waits 350 ms), and a user notices a longer delay.
_ROOTS_TIMEOUT: Final = 1.0
# The member of a request's `_meta` that replaces `logging/setLevel` in 2026-07-28.
_META_LEVEL: Final = "io.modelcontextprotocol/logLevel"

T = TypeVar("T")


class AbstractClient(abc.ABC):
    """The client side of one connection, without a runtime.

    Every call takes `CallOptions`. In addition to what its own docstring names, a call raises:

    - `PeerError`: the server responded with an error.
    - `CallTimeout`: there was no response in time. The server is notified that the request
      is cancelled, as it is when the caller is cancelled.
    - `ConnectionLost`: the connection ended first.
    - `LocalProtocolError`: the server's revision or capabilities don't allow the call, or
      `headers` are given and the transport has none; nothing was sent.
    - `RemoteProtocolError`: the response doesn't fit the request; or the server asks for input for
      which the client declared no capability, or asks again without end; or it lists more than
      `max_listing` allows.
    - `McpError`: the server asks for sampling or roots in the result (2026-07-28), and the callback
      refuses.
    - `ValueError`: an option is out of its range, or a header cannot be sent, or only unencrypted;
      nothing was sent.
    - `TypeError`: an option is unknown; nothing was sent.
    - `AuthRequired`: over HTTP, the server requires an access token.

    A call also raises any other exception of a callback that the server's result made necessary.

    Lists and resources may come from the cache; then nothing is sent (`cache` of
    `ClientConfigOptions`).

    Args:
        config: `client_config(client_options)`.
        options: this connection's options.
        clock: returns the current time, monotonic, in seconds.
        sleep: waits for a number of seconds.
        wall_time: returns the seconds since 1970.
        entropy: returns random bytes.

    Attributes:
        needs_handshake: True if the server was probed and speaks no stateless revision, which a
            `HandshakeCache` can remember for the next client. False also if it wasn't probed.
    """

    def __init__(
        self,
        config: Config,
        options: ClientConfigOptions,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
        wall_time: Callable[[], float],
        entropy: Callable[[int], bytes],
    ) -> None:
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self._conn = Connection(_CLIENT, config)
        self._status = ConnectionStatus(self._conn)
        self._cache = ResultCache() if options.get("cache", True) else None
        self._outputs = OutputSchemas(options.get("check_output", "error"), self._report)
        self._log_level = options.get("log_level")
        if self._log_level is None and options.get("on_log") is not None:
            self._log_level = "info"
        self._meta: Mapping[str, Any] = {}  # members that each request's `_meta` gets
        self._callbacks = ClientCallbacks(options)
        self._server_requests = ServerInitiatedRequests(
            self._conn,
            self._callbacks,
            self._start_job,
            self.pause_timeouts,
            self._log_error,
            HostedTasks(self._conn, wall_time, entropy),
            options.get("on_request") or {},
        )
        self._notification_callbacks = NotificationCallbacks(
            options, self._start_job, self._log_error
        )
        # By tool name: the tool's `taskSupport` (2025-11-25). None until the tools are listed.
        self._task_support: dict[str, str | None] | None = None
        self._poller: TaskPoller | None = None
        self._subscriptions: SubscriptionClient | None = None
        self._pending: dict[PendingCall[Any], None] = {}
        self.needs_handshake = False
        self._pause_count = 0  # responses and logins of this client that the server waits for

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._conn!r}>"

    if not TYPE_CHECKING:  # a type checker reports the mistake itself

        def __getattr__(self, name: str) -> Any:
            from mcp_core._other_names import CLIENT, missing_attribute

            raise missing_attribute(self, name, CLIENT)

    @property
    def peer(self) -> Peer:
        """The server's revision, capabilities, name and instructions."""
        peer = self._conn.peer
        assert peer is not None
        return peer

    @property
    def is_closed(self) -> bool:
        """True once the connection is closed: every further call raises `ConnectionLost`."""
        return self._status.is_closed

    def versions_without_probe(self, *, probe_unread: bool = False) -> list[str]:
        """Return the revisions to try with the same server, started again, after a failed opening.

        Empty if a second start is useless. `probe_unread` says that the server ended before it read
        the probe: it would end again.
        """
        return self._status.versions_without_probe(probe_unread=probe_unread)

    # -- What a driver adds, and what it calls ---------------------------------------------------

    @abc.abstractmethod
    async def _call(self, steps: CallSteps[T], options: CallOptions) -> T:
        """Begin a `PendingCall`, wait for it, and return its result.

        This is a checkpoint even if nothing is sent.
        """

    @abc.abstractmethod
    def _start_job(self, job: Job) -> None:
        """Run `job` in a task that ends with the client. Call `_pump` after its end."""

    @abc.abstractmethod
    def _pump(self) -> None:
        """Send what is queued and process the connection's events, without waiting."""

    @abc.abstractmethod
    def _log_error(self, problem: str, error: BaseException) -> None:
        """Log an error that ends no call."""

    @abc.abstractmethod
    def _log_warning(self, problem: str) -> None:
        """Log what is wrong with the server's messages."""

    def _open(self) -> None:
        """Begin the opening. `_status.settled` is true when it is over."""
        self._conn.open(self._clock(), known_peer=self._options.get("known_peer"))

    def _later(self, seconds: float, function: Callable[[], object]) -> None:
        """Call `function` after some seconds, unless the client is closed before."""

        def on_end(_: object, error: BaseException | None) -> None:
            if error is None:
                function()

        self._start_job(CallbackJob(partial(self._sleep, seconds), on_end))

    def _handle_event(self, event: Event) -> None:
        """Process one event, without waiting."""
        self._status.handle_event(event)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)
        if self._subscriptions is not None:
            self._subscriptions.handle_event(event)

    def _send(
        self, method: str, params: Params, call: PendingCall[Any], options: CallOptions
    ) -> RequestId:
        """Send a request for the pending `call`, and return the request's id."""
        self._status.require_alive()
        progress = meta = headers = None
        if options:  # most calls have none
            meta = options.get("meta")
            headers = options.get("headers")
            # Requests about a task are quick: only the tool call itself reports progress.
            if not method.startswith(_TASKS):
                progress = options.get("progress")
        if call not in self._pending:
            self._pending[call] = None  # `_register` inlined: it runs for each request
            call.pause_count += self._pause_count
            call.describe_silence = self._conn.describe_unreadable
            if progress is not None and call.progress_callbacks is None:
                call.progress_callbacks = CallbackQueue(
                    progress, self._start_job, call.progress_failed, call.progress_idle
                )
        if self._meta:
            meta = {**self._meta, **(meta or {})}
        if headers:
            if self._conn.check_headers is None:
                raise LocalProtocolError("this transport sends no headers")
            self._conn.check_headers(headers)
        # Also without a callback: a tool that reports progress keeps its call from timing out.
        wants_progress = progress is not None or method == _CALL_TOOL
        return self._conn.send_request(
            method, params, token=call, meta=meta, progress=wants_progress, headers=headers
        )

    def _register(self, call: PendingCall[Any]) -> None:
        """Let a call end with the connection, and pause with the other calls."""
        if call not in self._pending:
            self._pending[call] = None
            call.pause_count += self._pause_count
            call.describe_silence = self._conn.describe_unreadable

    def _end_call(self, call: PendingCall[Any]) -> None:
        """End a call that no task waits for any more. Cancel its request if it has no response."""
        self._pending.pop(call, None)
        call.abandon()
        if call.progress_callbacks is not None:
            call.progress_callbacks.abandon()
        if call.id is not None and self._conn.has_outgoing(call.id):
            self._conn.send_cancel(call.id, "the call was cancelled or timed out")

    def pause_timeouts(self, more: int) -> None:
        """Pause the timeouts of all calls while the server waits for this client.

        `more` is 1 when the server begins to wait, for example for a user's response or a login,
        and -1 when that wait is over. `max_timeout` goes on.
        """
        self._pause_count += more
        for call in self._pending:
            call.pause_timeout(more)

    def clear_cache(self) -> None:
        """Empty the cache: its results may belong to another user."""
        if self._cache is not None:
            self._cache = ResultCache()

    # -- Calls -----------------------------------------------------------------------------------

    @shows_keywords(CallOptions)
    async def list_tools(self, **options: Unpack[CallOptions]) -> list[t.Tool]:
        """Return all tools, page after page (server/tools). The keywords are `CallOptions`."""
        return await self._call(self._tools(options), options)

    @overload
    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> t.CallToolResult: ...
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: type[T],
        **options: Unpack[CallOptions],
    ) -> TypedToolResult[T]: ...
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: object,
        **options: Unpack[CallOptions],
    ) -> TypedToolResult[Any]: ...
    @shows_keywords(CallOptions)
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> t.CallToolResult:
        """Call a tool, and return its result (server/tools).

        A tool that failed gives a result with `is_error`, and `raise_for_error()` raises it::

            result = await client.call_tool("forecast", {"city": "Oslo"}, returns=Forecast)
            print(result.data.temperature)

        Args:
            name: the tool's name.
            arguments: its arguments, by name.
            returns: the type of the result's `data`: a dataclass, `msgspec.Struct`, TypedDict or
                pydantic model, or any other type that a tool may return. Structured content is
                decoded to it. Without structured content, the only text is decoded as JSON. A value
                in `{"result": value}` is unwrapped for a type that isn't an object. If the tool
                failed, `data` raises `ToolError`.
            options: see `CallOptions`.

        Raises:
            UnexpectedResult: the structured content is missing, or not of the type `returns`.
            DeclarationError: JSON cannot be decoded as the type `returns`; nothing was sent.
            InvalidToolResult: the result doesn't fit the output schema of an earlier `list_tools`,
                and `check_output` is "error".
        """
        if returns is None:
            return await self._call(self._tool_call(name, arguments, options), options)
        from ._typed_results import result_reader  # with the registry, which a client may not need

        reader = result_reader(returns)
        result = await self._call(self._tool_call(name, arguments, options), options)
        return reader.read(name, result)

    @shows_keywords(CallOptions)
    async def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        **options: Unpack[CallOptions],
    ) -> ClientTask:
        """Call a tool as a task, and return the task as soon as the server has created it::

            task = await client.start_tool("research", {"topic": "owls"})
            async for state in task.states():
                print(state.status, state.message)
            result = await task.result()

        A server of 2026-07-28 decides for each call whether it becomes a task. If it answers with
        a result at once, the returned task has ended already.

        Args:
            name: the tool's name.
            arguments: its arguments, by name.
            ttl: for how many seconds the server is asked to keep the task and its result. None
                leaves this to the server. The server may choose another time (2025-11-25).
            options: see `CallOptions`. They apply until the task is created. After that, `timeout`
                applies to each later response about the task, and `progress` is called until the
                task has ended (2025-11-25). An exception that `progress` raises then is logged.

        Raises:
            LocalProtocolError: the server or its revision has no tasks, the tool doesn't run as
                one (2025-11-25), or the client was connected with `tasks=False` (2026-07-28);
                nothing was sent.
            ValueError: `ttl` isn't positive, or infinite.
        """
        if ttl is not None and not 0 < ttl < inf:
            raise ValueError(f"ttl is a number of seconds above 0, or None, not {ttl!r}")
        return await self._call(self._start_tool(name, arguments, ttl, options), options)

    async def task(self, reference: str, *, timeout: float | None = 60.0) -> ClientTask:
        """Return a task that was started earlier, perhaps on another connection.

        If the caller still has this connection's `ClientTask`, that same object is returned.

        Args:
            reference: the `reference` of the task.
            timeout: seconds for each response about the task, None for no limit.

        Raises:
            InvalidTaskReference: the text isn't a reference.
            LocalProtocolError: this connection's revision isn't the task's.
            PeerError: the server has no such task any more, or it is another user's (-32602).
        """
        from .client_tasks._task import TaskReference

        found = TaskReference.parse(reference)
        if DIALECTS.get(found.revision) is not self.peer.dialect:
            raise LocalProtocolError(
                f"the task is of revision {found.revision}: connect with versions="
                f"[{found.revision!r}]"
            )
        poller = self._task_poller()
        task = poller.find(found, timeout)
        await task.refresh()
        poller.add(task)
        return task

    @shows_keywords(CallOptions)
    async def list_tasks(self, **options: Unpack[CallOptions]) -> list[t.Task]:
        """List the tasks of this client's user, page after page (2025-11-25).

        Args:
            options: see `CallOptions`.

        Raises:
            LocalProtocolError: the server doesn't list tasks; in 2026-07-28 none does.
        """
        return await self._call(self._pages("tasks/list", "tasks", options), options)

    @shows_keywords(CallOptions)
    async def list_resources(self, **options: Unpack[CallOptions]) -> list[t.Resource]:
        """Return all resources, page after page (server/resources), with `CallOptions`."""
        return await self._call(self._pages("resources/list", "resources", options), options)

    @shows_keywords(CallOptions)
    async def list_resource_templates(
        self, **options: Unpack[CallOptions]
    ) -> list[t.ResourceTemplate]:
        """Return all resource templates, page after page (server/resources), with `CallOptions`."""
        steps = self._pages("resources/templates/list", "resource_templates", options)
        return await self._call(steps, options)

    @shows_keywords(CallOptions)
    async def read_resource(self, uri: str, **options: Unpack[CallOptions]) -> t.ReadResourceResult:
        """Return the contents of the resource `uri` (server/resources), with `CallOptions`."""
        return await self._call(self._cached("resources/read", {"uri": uri}, options), options)

    @shows_keywords(CallOptions)
    async def list_prompts(self, **options: Unpack[CallOptions]) -> list[t.Prompt]:
        """Return all prompts, page after page (server/prompts), with `CallOptions`."""
        return await self._call(self._pages("prompts/list", "prompts", options), options)

    @shows_keywords(CallOptions)
    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> t.GetPromptResult:
        """Return the prompt `name`, filled in with `arguments` (server/prompts).

        The arguments' values are strings. The keywords are `CallOptions`.
        """
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return await self._call(self._once("prompts/get", params), options)

    @shows_keywords(CallOptions)
    async def complete(
        self,
        ref: str | t.PromptReference | t.ResourceTemplateReference,
        argument: str,
        value: str,
        *,
        arguments: Mapping[str, str] | None = None,
        **options: Unpack[CallOptions],
    ) -> t.Completion:
        """Return suggestions for an argument of a prompt, or a variable of a resource template.

        Source: server/utilities/completion.

        Args:
            ref: a prompt's name, or the text of a template: a text with `{` or `://` in it counts
                as a template. A reference of `mcp_core.types` names the kind.
            argument: the argument's or variable's name.
            value: what the user has typed so far.
            arguments: the arguments that are settled already. Revisions before 2025-06-18 don't
                send them.
            options: see `CallOptions`.
        """
        params = t.CompleteParams(
            ref=_reference(ref) if isinstance(ref, str) else ref,
            argument=t.CompletionArgument(argument, value),
            context=t.CompletionContext(arguments=dict(arguments)) if arguments else None,
        )
        return await self._call(complete_argument(params), options)

    @shows_keywords(CallOptions)
    async def set_log_level(self, level: t.LoggingLevel, **options: Unpack[CallOptions]) -> None:
        """Receive log messages of `level` and more severe ones (server/utilities/logging).

        Until 2025-11-25 this sends a request; in 2026-07-28 every later request carries the level,
        and nothing is sent now. The keywords are `CallOptions`.

        Raises:
            ValueError: the level doesn't exist.
        """
        check_level(level)
        await self._call(self._set_level(level), options)

    @shows_keywords(CallOptions)
    async def ping(self, **options: Unpack[CallOptions]) -> object:
        """Check that the server responds: by `ping`, or by `server/discover` in 2026-07-28.

        The keywords are `CallOptions` (basic/utilities/ping).
        """
        return await self._call(self._once(self.peer.dialect.ping, None), options)

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool | Iterable[str] = False,
        uris: Iterable[str] = (),
        timeout: float | None = 60.0,
    ) -> Subscription:
        """Subscribe to changes for the time of an `async with` block::

            async with client.listen(tools=True) as changes:
                async for change in changes:
                    ...

        Each `Change` has a `list` or a `uri`; `changes.honoured` holds the requested changes that
        the server has accepted. Any number of blocks may be open at once. The end of a block ends
        its subscription at the server.

        A change is given once, however often it happened before it was taken. Its `uri` may name a
        part of a requested resource.

        Args:
            tools: the list of tools.
            prompts: the list of prompts.
            resources: the list of resources if True; or URIs of resources, as `uris`.
            uris: the URIs of single resources.
            timeout: seconds for the block to begin; None for no limit.

        Raises:
            LocalProtocolError: at the beginning: the server doesn't announce such changes. The text
                names the capabilities that it did not declare; nothing was sent then. In the loop:
                the same, for a new session.
            PeerError: at the beginning: the server refused. In the loop: it ended the subscription
                with an error.
            ConnectionLost: at the beginning or in the loop, after the last change: changes may have
                been missed. If only the subscription's stream is lost, it is opened again, and
                everything counts as changed; after five failures in a row this is raised.
            CallTimeout: at the beginning.
            ValueError: nothing is wanted.
            TypeError: one string is given for URIs.
        """
        if isinstance(resources, str) or isinstance(uris, str):
            raise TypeError("give URIs as a list, even a single one")
        more_uris = () if isinstance(resources, bool) else resources
        wanted = changes(
            tools=tools, prompts=prompts, resources=resources is True, uris=(*more_uris, *uris)
        )
        return Subscription(self._subscription_client(), wanted, {"timeout": timeout})

    def roots_changed(self) -> None:
        """Tell the server that the roots have changed (client/roots). This doesn't wait.

        In 2026-07-28 nothing is sent: a server asks for the roots whenever it needs them.

        Raises:
            LocalProtocolError: there is no `on_roots`.
            ConnectionLost: the connection is closed.
        """
        self._status.require_alive()
        if _ROOTS_CHANGED in self.peer.dialect.receives[_SERVER]:
            self._conn.send_notification(_ROOTS_CHANGED)
            self._pump()

    async def notify(self, method: str, params: Params = None) -> None:
        """Send the server a notification of an extension, which `extensions` declares.

        A server that doesn't know it ignores it. For a notification of MCP use its own method, such
        as `roots_changed`.

        Args:
            method: the notification's method.
            params: an object or a mapping of its members; None for none.

        Raises:
            ConnectionLost: the connection is closed.
            LocalProtocolError: this client declares no extension, MCP defines the method, or its
                name is empty.
            TypeError, ValueError: `params` cannot be encoded as JSON.
        """
        await self._call(self._notify(method, params), {})

    async def roots_requested(self, timeout: float | None = _ROOTS_TIMEOUT) -> bool:
        """Wait until the server has requested the roots, and has the response (client/roots).

        Until 2025-11-25 a server requests them at any time after the handshake. Many do it at once,
        but a call that is made as soon as the client is connected may still arrive first, and find
        a server without roots. In 2026-07-28 a server requests them when it needs them, so this
        returns at once.

        Args:
            timeout: seconds to wait. Some servers never request them.

        Returns:
            True if calls find the server with the roots, False after the timeout.

        Raises:
            LocalProtocolError: there is no `on_roots`.
            ConnectionLost: the connection is closed.
        """
        self._status.require_alive()
        if self._options.get("on_roots") is None:
            raise LocalProtocolError("without on_roots, the server will not request the roots")
        try:
            await self._call(self._wait_for_roots(), {"timeout": timeout})
        except CallTimeout:
            return False
        return True

    async def wait_closed(self, timeout: float | None = None) -> ConnectionLost:
        """Wait until the connection is closed, and return why.

        Over HTTP only this client closes it. Raises `CallTimeout` after `timeout` seconds.
        """
        return await self._call(wait_for_end(self._status, self._register), {"timeout": timeout})

    @shows_keywords(CallOptions)
    async def request(
        self, method: str, params: Params = None, **options: Unpack[CallOptions]
    ) -> Any:
        """Send any request, without the cache, and return its result.

        Args:
            method: a method of MCP or a custom one.
            params: an object of the method's params type, or a mapping of its members.
            options: see `CallOptions`.

        Returns:
            An object of the method's result type; a dict for a method that MCP doesn't define.
        """
        return await self._call(self._once(method, params), options)

    # -- What calls are made of ------------------------------------------------------------------

    def _subscription_client(self) -> SubscriptionClient:
        if self._subscriptions is None:
            self._subscriptions = SubscriptionClient(
                self._conn, self._status, self._call, self._pump, self._later
            )
        return self._subscriptions

    def _task_poller(self) -> TaskPoller:
        if self._poller is None:
            from .client_tasks._poller import TaskPoller

            self._poller = TaskPoller(
                self._conn,
                self._status,
                self._callbacks,
                self._start_job,
                self._register,
                self._clock,
                self._sleep,
                self._outputs,
                self._subscription_client,
                self._call,
                self._log_error,
                self._report,
            )
        return self._poller

    def _notify(self, method: str, params: Params) -> CallSteps[None]:
        """Send a notification of an extension. There is nothing to wait for."""
        from mcp_core.protocol.connection._extension_methods import check_extension_method

        self._status.require_alive()
        check_extension_method(method, self._conn.config)
        self._conn.send_notification(method, params)
        yield from ()

    def _once(self, method: str, params: Params) -> CallSteps[Any]:
        """Send one request. Respond if its result asks for input."""
        result = yield method, params
        if isinstance(result, InputRequested):
            return (yield from self._send_with_input(method, params, result))
        return result

    def _send_with_input(
        self, method: str, params: Params, asked: InputRequested
    ) -> CallSteps[Any]:
        """Send a request again with the input that its result asked for, until that is final."""
        config = self._conn.config
        round_trips = ClientRoundTrips(method, params, self.peer, config.capabilities)
        result: Any = asked
        while isinstance(result, InputRequested):
            requests = round_trips.begin_round(result.requests, result.state)
            if len(requests) > config.limits.in_flight:
                raise RemoteProtocolError(
                    f"{method}: the server asks {len(requests)} questions at once"
                )
            work: dict[str, Callable[[], Awaitable[Any]]] = {
                key: partial(self._callbacks.respond_in_retry, request)
                for key, request in requests.items()
            }
            if not work:  # the server only asks to be called again a little later
                work[""] = partial(self._sleep, round_trips.pause)
            responses = yield InputWait(self._start_job, work)
            round_trips.set_responses(responses)
            result = yield method, round_trips.params
        return result

    def _wait_for_roots(self) -> CallSteps[None]:
        requests = self._server_requests
        if _ROOTS_LIST in self.peer.dialect.receives[_CLIENT] and not requests.roots_answered:
            yield requests.wait_for_roots(self._register)

    def _cached(
        self, method: str, params: Mapping[str, Any] | None, options: CallOptions
    ) -> CallSteps[Any]:
        """Return a fresh result from the cache, or send the request."""
        cache = self._cache
        if cache is None or options.get("meta") or options.get("headers"):
            return (yield from self._once(method, params))
        # The response's problems are appended to the caller's list, or to a new one.
        problems = options.setdefault("problems", [])
        found = cache.get(method, params, self._clock(), problems)
        if found is not None:
            return found
        generation = cache.generation
        known = len(problems)
        result = yield method, params
        if isinstance(result, InputRequested):
            # Not cached: the result depends on what the user says now.
            return (yield from self._send_with_input(method, params, result))
        cache.put(method, params, result, self._clock(), generation, problems[known:])
        return result

    def _pages(self, method: str, member: str, options: CallOptions) -> CallSteps[list[Any]]:
        """List all pages. Begin once more if the server no longer knows a cursor."""
        invalid_params = self.peer.dialect.codes[Fault.INVALID_PARAMS]
        limit = self._conn.config.limits.listing
        pages: PagedList[Any] = PagedList(method, member, limit)
        problems = options.get("problems", [])
        page_problems: list[str] = []
        options["problems"] = page_problems
        may_restart = True
        try:
            while pages.has_more:
                try:
                    pages.add_page((yield from self._cached(method, pages.params, options)))
                    pages.add_problems(page_problems)
                    page_problems.clear()
                except (PeerError, RemoteProtocolError) as exc:
                    # A cached page has led to a cursor that doesn't work, and would do so again.
                    if self._cache is not None:
                        self._cache.discard(method)
                    unknown_cursor = isinstance(exc, PeerError) and exc.code == invalid_params
                    # A cursor that has expired works when the list is read anew; one that never
                    # does may be the server's way to end a list.
                    if unknown_cursor and not may_restart and pages.refused():
                        continue
                    if not (may_restart and pages.params and unknown_cursor):
                        raise
                    may_restart = False
                    pages = PagedList(method, member, limit)
        finally:
            problems += pages.problems
            options["problems"] = problems
        if pages.problem:
            self._report(pages.problem, options)
        return pages.items

    def _report(self, problem: str, options: CallOptions) -> None:
        """Log what is wrong with the result of a call, and add it to what its caller gets."""
        self._log_warning(problem)
        options.setdefault("problems", []).append(problem)

    def _tools(self, options: CallOptions) -> CallSteps[list[t.Tool]]:
        tools = yield from self._pages("tools/list", "tools", options)
        if not self.peer.dialect.lacks(t.Tool, "output_schema"):
            self._outputs.replace_all(tools)
        self._task_support = task_support(tools)
        return tools

    def _tool_call(
        self, name: str, arguments: Mapping[str, Any] | None, options: CallOptions
    ) -> CallSteps[t.CallToolResult]:
        """Call a tool. If the call becomes a task, follow that to its end."""
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        if self._task_support and must_be_task(self.peer, self._task_support, name):
            params["task"] = {}
        try:
            result = yield from self._tool_request(params, options)
        except PeerError as exc:
            if exc.code != needs_task_code(self.peer) or not (
                yield from self._turns_out_as_task(params, options)
            ):
                raise
            params = {**params, "task": {}}
            result = yield from self._tool_request(params, options)
        if isinstance(result, TaskCreated) or result.is_error:
            return (yield from self._follow(result, params, options))
        self._outputs.check(name, result, options)
        return result

    def _follow(
        self,
        result: t.CallToolResult | TaskCreated,
        params: dict[str, Any],
        options: CallOptions,
    ) -> CallSteps[t.CallToolResult]:
        """Follow a call that became a task, or repeat it as one if the server demands that."""
        if not isinstance(result, TaskCreated):
            # Servers of the TypeScript SDK put the error into the text of a result.
            if f"MCP error {needs_task_code(self.peer)}" not in result.text:
                return result
            if not (yield from self._turns_out_as_task(params, options)):
                return result
            result = yield from self._tool_request({**params, "task": {}}, options)
            if not isinstance(result, TaskCreated):
                self._outputs.check(params["name"], result, options)
                return result
        return (yield from self._task_poller().follow_created(result, params["name"], options))

    def _turns_out_as_task(self, params: dict[str, Any], options: CallOptions) -> CallSteps[bool]:
        """Return True if a new list of tools shows that the tool runs only as a task.

        Return False if the tools were listed before this call.
        """
        if "task" in params or self._task_support is not None or not runs_tasks(self.peer):
            return False
        tools = yield from self._tools(options)
        return must_be_task(self.peer, task_support(tools), params["name"])

    def _start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        ttl: float | None,
        options: CallOptions,
    ) -> CallSteps[ClientTask]:
        """Call a tool as a task, and return the task once the server has created it."""
        dialect = self.peer.dialect
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        if dialect.tasks == "requested":
            yield from self._require_support(name, options)
            params["task"] = {} if ttl is None else {"ttl": round(ttl * 1000)}
        elif dialect.tasks == "none":
            raise LocalProtocolError(
                f"revision {dialect.version} has no tasks", Fault.MISSING_CAPABILITY
            )
        elif not self._conn.config.declares_tasks:
            raise LocalProtocolError("the client was connected with tasks=False")
        result = yield from self._tool_request(params, options)
        if isinstance(result, TaskCreated):
            return self._task_poller().start(result, name, options)
        return self._task_poller().ended_task(result, name)

    def _require_support(self, name: str, options: CallOptions) -> CallSteps[None]:
        """Check that a server of 2025-11-25 runs a tool as a task."""
        if not runs_tasks(self.peer):
            raise LocalProtocolError(
                "the server did not declare that it runs tools as tasks", Fault.MISSING_CAPABILITY
            )
        support = self._task_support
        if support is None:
            support = task_support((yield from self._tools(options)))
        if support.get(name) not in ("optional", "required"):
            raise LocalProtocolError(f"the tool {name!r} does not run as a task")

    def _tool_request(
        self, params: dict[str, Any], options: CallOptions
    ) -> CallSteps[t.CallToolResult | TaskCreated]:
        try:
            result: t.CallToolResult | TaskCreated = yield from self._once(_CALL_TOOL, params)
        except PeerError as exc:
            mismatch = exc.code == self.peer.dialect.codes[Fault.HEADER_MISMATCH]
            if self._conn.check_headers is None or not mismatch:
                raise
            # The list of tools says which arguments travel in headers, and ours is out of date
            # (2026-07-28, basic/transports).
            if self._cache is not None:
                self._cache.discard("tools/list")
            yield from self._tools(options)
            result = yield from self._once(_CALL_TOOL, params)
        return result

    def _set_level(self, level: t.LoggingLevel) -> CallSteps[None]:
        peer = self.peer
        if _SET_LEVEL in peer.dialect.receives[_SERVER]:
            yield _SET_LEVEL, t.SetLevelParams(level=level)
            self._log_level = level
        elif _has_logging(peer):
            self._meta = {_META_LEVEL: level}
        else:
            raise LocalProtocolError(
                "the server did not declare the capability logging, so it sends no log messages",
                Fault.MISSING_CAPABILITY,
            )

    # -- Events ----------------------------------------------------------------------------------

    def _handle_ready(self, event: PeerReady) -> None:
        """Set up the open connection, or the new session that replaces a lost one."""
        peer = event.peer
        negotiation = self._conn.negotiation
        if negotiation is not None and negotiation.needs_handshake:
            self.needs_handshake = True
        self._outputs.clear()
        self._task_support = None
        if peer.dialect.lacks(t.CacheableResult, "ttl_ms"):
            self._cache = None
        if self._log_level is None or not _has_logging(peer):
            return
        if _SET_LEVEL in peer.dialect.receives[_SERVER]:
            params = t.SetLevelParams(level=self._log_level)
            self._conn.send_request(_SET_LEVEL, params, token=IgnoredRequest(self._level_rejected))
        else:
            self._meta = {_META_LEVEL: self._log_level}

    def _level_rejected(self, error: BaseException) -> None:
        self._log_error("the server rejected the log level", error)

    def _handle_notification(self, notification: NotificationReceived) -> None:
        name = notification.method.name
        if self._cache is not None:
            self._cache.invalidate(name, self._updated_uri(notification))
        if name == _TOOLS_CHANGED:
            self._outputs.clear()
            self._task_support = None
        elif name in _TASK_NOTIFICATIONS and self._poller is not None:
            self._poller.notify(notification.params)
        self._notification_callbacks.call(name, notification.params)

    def _updated_uri(self, notification: NotificationReceived) -> str | None:
        """Return the URI of the one resource that a notification is about.

        None if it may also be about the resource that contains it, or about anything else.
        """
        if notification.method.name != UPDATED or self._subscriptions is None:
            return None
        uri: str = notification.params.uri
        return uri if self._subscriptions.wants(Change(uri=uri)) else None

    def _handle_problem(self, event: InputProblem) -> None:
        self._log_warning(event.problem)

    def _handle_missed(self, event: ChangesMissed) -> None:
        # The cache stays: nothing is cached in revisions whose notifications can be missed.
        self._outputs.clear()
        self._task_support = None

    def _handle_request(self, event: RequestReceived) -> None:
        self._server_requests.handle_request(event)

    def _handle_cancelled(self, event: RequestCancelled) -> None:
        self._server_requests.cancel(event.id)

    def _handle_closed(self, event: ConnectionClosed) -> None:
        # Calls that wait for a callback have no request in flight, so nothing else ends them.
        for call in list(self._pending):
            call.end(None, connection_lost(event))


_HANDLERS: Final[Mapping[type, Callable[[AbstractClient, Any], None]]] = {
    ChangesMissed: AbstractClient._handle_missed,
    NotificationReceived: AbstractClient._handle_notification,
    PeerReady: AbstractClient._handle_ready,
    RequestReceived: AbstractClient._handle_request,
    RequestCancelled: AbstractClient._handle_cancelled,
    ConnectionClosed: AbstractClient._handle_closed,
    InputProblem: AbstractClient._handle_problem,
}


def _reference(text: str) -> t.PromptReference | t.ResourceTemplateReference:
    if "{" in text or "://" in text:
        return t.ResourceTemplateReference(text)
    return t.PromptReference(text)


def _has_logging(peer: Peer) -> bool:
    return is_declared(peer.capabilities, peer.dialect.receives[_CLIENT][_LOG].needs)
