"""`Context`: what a handler can read about its request, and send while it runs.

1. `Context` is the same in every runtime. It reads the request and writes to the connection; the
   runtime only waits.
2. A cancelled handler may still send: nothing is sent for a request that has ended.
3. The same call requests input in every revision. `InputCollector` knows how it travels.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, overload

from msgspec import Struct

from mcp_core import types as t
from mcp_core._errors import LocalProtocolError
from mcp_core.protocol.input_requests._capabilities import CapabilityName, can_answer
from mcp_core.protocol.input_requests._kinds import find_elicitation_url_error, find_error
from mcp_core.protocol.input_requests._rounds import MAX_ROUNDS
from mcp_core.protocol.messages._events import GrantLike, Peer
from mcp_core.registry.functions._function import Injected
from mcp_core.types import LoggingLevel, RequestId

from ._errors import DeclarationError
from ._form import AcceptedElicitation, ElicitationResult, Form, as_form, not_accepted
from ._input_requests import CANNOT_AWAIT, InputCollector, meta_of
from ._lifespans import LifespanValues, lifespan_value
from ._sampling_tools import SAMPLING_ROUNDS, SampledConversation, ToolSampling, tools_for
from ._trace_context import trace_context
from ._url_elicitation import ELICITATION_LIFETIME, UrlElicitation, make_url_elicitation
from ._visibility import NO_HEADERS
from .tasks._tasks import CurrentTask, DetachableJob

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.messages._events import RequestReceived

    from ._input_requests import RuntimeLike
    from ._server import Server

    # A plain `Context` is a `Context[Any]`.
    L = TypeVar("L", default=Any)
else:
    from typing import TypeVar

    L = TypeVar("L")

__all__ = ["Context", "collector_of", "error_reporter", "mounted_context"]

T = TypeVar("T")
_FIRST_CHOICES: Final = ("auto", "required")
_NOWAIT: Final = ("progress", "log")  # the methods that a plain `def` can call in another form
_TOOL_CHOICES: Final = ("auto", "required", "none", None)  # None in a `ToolChoice`: the default
# Seconds, as long as a client waits for any response by default.
EXTENSION_TIMEOUT: Final = 60.0
R = TypeVar("R", t.ElicitResult, t.CreateMessageResult, t.ListRootsResult)


class Context(Injected, Generic[L]):
    """The request that a handler serves.

    Annotate a parameter of any position with it, and the runtime fills it in::

        @server.tool
        async def count(to: int, context: Context) -> int:
            "Count slowly."
            for step in range(to):
                await context.progress(step, to)
            return to

    `Context[Database]` gives the type checker the type of `lifespan`. Use the context only while
    the handler runs. In a plain `def` use the methods that end in `_nowait`. The runtime makes the
    context, of the `collector` of the request.

    Attributes:
        server: the server on which the handler was declared.
        lifespan: the server lifespan's value, None if it has none.
        state: a dict for what middleware passes to the handler.
        session_state: a dict that the handlers of all requests of one session share, for example
            to keep the roots. It ends with the session, or with the connection of stdio. In
            2026-07-28, which has no sessions, it is a new one for each request.
    """

    __slots__ = (
        "_collector",
        "_meta",
        "_request",
        "_task_job",
        "lifespan",
        "server",
        "session_state",
        "state",
    )

    def __init__(self, collector: InputCollector) -> None:
        host = collector.host
        self._collector = collector
        self._request = collector.request
        self._task_job: DetachableJob | None = None
        self._meta: dict[str, Any] | None = None
        self.server: Server = host.server
        lifespan = host.lifespan
        if isinstance(lifespan, LifespanValues):
            lifespan = lifespan_value(lifespan, host.server)
        self.lifespan: L = lifespan
        self.state: dict[str, Any] = {}
        self.session_state = host.session_state if self._request.peer.dialect.stateful else {}
        self.in_plain_def = False

    def __repr__(self) -> str:
        return f"<Context {self.method} id={self.request_id!r}>"

    if not TYPE_CHECKING:  # a type checker reports the mistake itself

        def __getattr__(self, name: str) -> Any:
            from mcp_core._other_names import CONTEXT, missing_attribute

            raise missing_attribute(self, name, CONTEXT)

    # -- The request -----------------------------------------------------------------------------

    @property
    def request_id(self) -> RequestId:
        """The request's JSON-RPC id."""
        return self._request.id

    @property
    def method(self) -> str:
        """The request's method: `"tools/call"`, `"resources/read"` and so on."""
        return self._request.method.name

    @property
    def params(self) -> Any:
        """The request's params, an object of the method's type in `mcp_core.types`.

        Do not change it.
        """
        return self._request.params

    @property
    def peer(self) -> Peer:
        """The client: revision, capabilities and, for display only, its name."""
        return self._request.peer

    @property
    def principal(self) -> str:
        """The authenticated user, the same for all tokens of one user at one issuer.

        Empty if the server runs without authorization.
        """
        return self._collector.host.principal

    @property
    def grant(self) -> GrantLike | None:
        """The grant of the request's access token: `scopes`, `client_id` and `claims`.

        It doesn't hold the token. None if the server runs without authorization.
        """
        return self._request.grant

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the HTTP request that the request came in, by name in lower case.

        They are the POST's own, also in a session, and over a WebSocket the upgrade's. Empty on
        other transports, and in a task that another process or an earlier run has begun. Without
        `authorization`, `proxy-authorization`, `cookie`, and what else `auth=` reads: `principal`
        and `grant` say what these have proved. `mcp-session-id` is left out too: another client
        could act in the session with it. The client can write anything into all other headers, so
        check them like arguments.

        Values of headers with one name are joined by ", " (RFC 9110, 5.3). Each byte is one
        character; a value in UTF-8 is `value.encode("latin-1").decode()`.
        """
        http = self._request.http
        return NO_HEADERS if http is None else http.headers

    @property
    def client_address(self) -> str:
        """The IP address of the client's HTTP connection, without a port.

        Behind one of `trusted_proxies` it is what that proxy says. "" on other transports, over a
        Unix socket, and where `headers` is empty. An address isn't an identity: see `principal`.
        """
        http = self._request.http
        return "" if http is None else http.client_address

    @property
    def meta(self) -> dict[str, Any]:
        """The request's whole `_meta`, members that no revision defines included.

        It is empty if the request has none.

        Raises:
            McpError: a member that no revision defines cannot be decoded. The other members were
                decoded when the request arrived.
        """
        if self._meta is None:
            self._meta = meta_of(self._request)
        return self._meta

    @property
    def trace(self) -> dict[str, str]:
        """The request's trace context: `traceparent`, `tracestate` and `baggage`.

        It holds those that are present and well-formed (W3C Trace Context). Pass
        `meta=context.trace` to a call to another server, to make it part of the same trace.

        Raises:
            McpError: as for `meta`.
        """
        return trace_context(self.meta)

    # -- Tasks -----------------------------------------------------------------------------------

    @property
    def task(self) -> CurrentTask | None:
        """The task as which this handler runs, None while it serves an ordinary call."""
        return self._collector.task

    def detach(self) -> Coroutine[Any, Any, bool]:
        """Make this call a task: its client gets the task now, and the result when it asks for it::

            @server.tool(task=TaskOptions(detach=None))
            async def publish(context: Context) -> str:
                answer = await context.elicit("As whom?", Name)
                await context.detach()
                return await publish_slowly(answer.data)

        The task is stored before this returns. From then on the client may disconnect, and
        `progress` sets the task's status message, `elicit` and the like show their requests with
        it. Return False, and change nothing, if the call cannot be a task: the tool wasn't declared
        with `task=`, or the client supports no tasks. Without effect in a task.

        Raises:
            McpError: there are too many tasks, or the server is shutting down.
            RuntimeError: called by a plain `def`.
        """
        self._check_may_await("detach")
        return self._runtime.detach(self._task_job)

    def bind_task_job(self, job: DetachableJob) -> None:
        """Let `detach` make a task from the call that `job` runs. For runtimes."""
        self._task_job = job

    @property
    def _runtime(self) -> RuntimeLike:
        return self._collector.host.runtime  # another one, once the call has become a task

    # -- Notifications ---------------------------------------------------------------------------

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Coroutine[Any, Any, None]:
        """Send the client a progress notification, if the request has a progress token.

        Await it. It waits while the client is slow to read (basic/utilities/progress).

        Args:
            progress: how much is done, in any unit. It must grow with each call.
            total: the value of `progress` at the end, None if unknown.
            message: what is being done, for the user.

        Raises:
            LocalProtocolError: a number is infinite or NaN.
            RuntimeError: called by a plain `def`.
        """
        self._check_may_await("progress")
        task = self._collector.task
        if task is not None:
            return task.progress(progress, total, message)
        return self._send(
            lambda: self._conn.send_progress(self.request_id, progress, total, message)
        )

    def progress_nowait(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Send a progress notification from a plain `def`. The parameters are as for `progress`.

        In a worker thread it blocks while the client is slow to read. Elsewhere the notification
        is dropped if too much is queued for the client.

        Raises:
            LocalProtocolError: a number is infinite or NaN.
        """
        task = self._collector.task
        if task is not None:
            task.progress_nowait(progress, total, message)
            return
        self._send_nowait(
            lambda: self._conn.send_progress(self.request_id, progress, total, message)
        )

    def log(
        self, level: LoggingLevel, data: Any, *, logger: str | None = None
    ) -> Coroutine[Any, Any, None]:
        """Send the client a log message about this request, if it wants messages of that level.

        Await it. It waits while the client is slow to read. Before 2026-07-28 a client that hasn't
        set a level gets `"info"` and above. In 2026-07-28 each request asks for log messages. Log
        no secrets: the message goes to the user of the client (server/utilities/logging).

        Args:
            level: `"debug"`, `"info"`, `"notice"`, `"warning"`, `"error"`, `"critical"`, `"alert"`
                or `"emergency"`.
            data: text, or any other value that JSON can represent.
            logger: the name of the part of the server that logs.

        Raises:
            LocalProtocolError: the level is unknown, or the server was declared with
                `logging=False`.
            TypeError, ValueError: `data` cannot be encoded as JSON.
            RuntimeError: called by a plain `def`.
        """
        self._check_may_await("log")
        task = self._collector.task
        if task is not None:
            return task.log(level, data, logger)
        return self._send(
            lambda: self._conn.send_log(level, data, logger=logger, related=self.request_id)
        )

    def log_nowait(self, level: LoggingLevel, data: Any, *, logger: str | None = None) -> None:
        """Send a log message from a plain `def`. The parameters are as for `log`.

        In a worker thread it blocks while the client is slow to read. Elsewhere the message is
        dropped if too much is queued for the client.

        Raises:
            LocalProtocolError: as for `log`.
            TypeError, ValueError: `data` cannot be encoded as JSON.
        """
        task = self._collector.task
        if task is not None:
            task.log_nowait(level, data, logger)
            return
        self._send_nowait(
            lambda: self._conn.send_log(level, data, logger=logger, related=self.request_id)
        )

    def notify(
        self, method: str, params: Struct | Mapping[str, Any] | None = None
    ) -> Coroutine[Any, Any, None]:
        """Send the client a notification of an extension, about this request::

            server = Server("mail", extensions={"com.example/inbox": {}})

            @server.tool
            async def watch(context: Context) -> str:
                await context.notify("notifications/inbox/new", {"from": "Ada"})

        Await it. It waits while the client is slow to read. A client that doesn't know the
        notification ignores it; what it declared is in `context.peer.capabilities`, as `extensions`
        in 2026-07-28 and as `experimental` before. For a notification of MCP use its own method,
        such as `progress`.

        Args:
            method: the notification's method.
            params: an object or a mapping of its members; None for none.

        Raises:
            LocalProtocolError: the server declares no extension, MCP defines the method, its name
                is empty, the request has ended, or the handler runs as a task.
            TypeError, ValueError: `params` cannot be encoded as JSON.
            RuntimeError: called by a plain `def`.
        """
        self._check_may_await("notify")
        from mcp_core.protocol.connection._extension_methods import check_extension_method

        conn = self._conn_for(method)
        check_extension_method(method, conn.config)

        def send() -> bool:
            conn.send_notification(method, params, related=self.request_id)
            return True

        return self._send(send)

    @overload
    def request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        *,
        timeout: float | None = EXTENSION_TIMEOUT,
    ) -> Coroutine[Any, Any, dict[str, Any]]: ...
    @overload
    def request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        *,
        returns: type[T],
        timeout: float | None = EXTENSION_TIMEOUT,
    ) -> Coroutine[Any, Any, T]: ...
    def request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        *,
        returns: type[Any] = dict,
        timeout: float | None = EXTENSION_TIMEOUT,
    ) -> Coroutine[Any, Any, Any]:
        """Send the client a request of an extension, and wait for its result.

        For clients of a revision before 2026-07-28, in which a server sends no requests, that have
        declared an extension of this server.

        Args:
            method: the request's method.
            params: an object or a mapping of its members; None for none.
            returns: the type of the result: a Struct, a dataclass or the like; a dict by default.
            timeout: seconds to wait for the response; None for no limit.

        Raises:
            McpError: the client declared none of this server's extensions, sent an error, or its
                result isn't of the type `returns`.
            CallTimeout: the client hasn't answered in time. Its request is cancelled.
            ConnectionLost: the connection closed first.
            LocalProtocolError: the revision has no such requests; and as for `notify`.
            TypeError, ValueError: `params` cannot be encoded as JSON, or `timeout` isn't above 0.
            RuntimeError: called by a plain `def`.
        """
        self._check_may_await("request")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, or None, not {timeout!r}")
        from ._extension_requests import ExtensionRequest

        self._conn_for(method)
        return self._runtime.send_nested(
            ExtensionRequest(self._collector, method, params, returns, timeout)
        )

    def _conn_for(self, method: str) -> Connection:
        """Return the connection on which to send `method`, of an extension."""
        if self._collector.task is not None:
            raise LocalProtocolError(f"{method} cannot be sent: a task has no connection")
        return self._conn

    # -- Resources of this server ----------------------------------------------------------------

    def read_resource(self, uri: str) -> Coroutine[Any, Any, t.ReadResourceResult]:
        """Read a resource of this server, as its client would, and return the contents.

        A resource with a `Context` parameter gets this context. Middleware and required scopes,
        which belong to the client's requests, don't apply: check what this client may read.

        Args:
            uri: the URI of a resource, or one that matches a template.

        Raises:
            McpError: there is no such resource.
            TypeError: its function asks the client by its return value.
            RuntimeError: called by a plain `def`.
            Exception: the function raised it.
        """
        self._check_may_await("read_resource")
        return self._runtime.read_resource(self, uri)

    @property
    def _conn(self) -> Connection:
        return self._collector.host.conn

    def _check_may_await(self, method: str) -> None:
        """Raise `RuntimeError` if a plain `def` calls `method`, which has to be awaited."""
        if self.in_plain_def or self._runtime.in_worker_thread:
            other = f"use context.{method}_nowait(), or " if method in _NOWAIT else ""
            raise RuntimeError(
                f"a plain def cannot await context.{method}(): {other}write an `async def`"
            )

    def _ask(
        self,
        request: t.InputRequest,
        key: str | None,
        find_error: Any,
        read: Callable[[Any], T],
        task_ttl: float | None = None,
    ) -> Coroutine[Any, Any, T]:
        if self.in_plain_def:
            raise RuntimeError(CANNOT_AWAIT)
        if task_ttl is not None and not task_ttl > 0:
            raise ValueError(f"task_ttl is a number of seconds above 0, or None, not {task_ttl!r}")
        return self._collector.ask(request, key, find_error, read, task_ttl)

    def _send(self, send: Callable[[], bool]) -> Coroutine[Any, Any, None]:
        runtime = self._runtime
        if send():
            runtime.pump()
        return runtime.drain(self.request_id)

    def _send_nowait(self, send: Callable[[], bool]) -> None:
        runtime = self._runtime
        if runtime.in_worker_thread:
            runtime.from_thread(lambda: self._send(send))
        # The event loop cannot block here, and an unread queue must not grow without bound.
        elif not runtime.write_blocked(self.request_id) and send():
            runtime.pump()

    def close_stream(self, retry: float | None = None) -> bool:
        """End the HTTP response now. The client reconnects for what is sent afterwards.

        For work that takes longer than a connection should stay open. `retry` is the reconnection
        time in seconds; None leaves it to the client. Return False, and do nothing, unless the
        request belongs to a session of 2025-11-25 over HTTP (basic/transports, Sending Messages to
        the Server).
        """
        released = self._runtime.release(self.request_id, retry)
        if released:
            self._runtime.pump()
        return released

    # -- Input -----------------------------------------------------------------------------------

    def can(self, capability: CapabilityName) -> bool:
        """Return True if the client can be asked for `capability` during this request.

        It has declared the capability, its revision has it, and the request is of a tool, a prompt
        or a resource. Without this check a client that cannot answer gets the error of its
        revision for that. A tool that wants the model to know ends with a result instead::

            if not context.can("sampling"):
                raise ToolError("This tool needs a client that lets it ask the model.")

        Args:
            capability: "elicitation.form" for `elicit`, "elicitation.url" for `elicit_url`,
                "sampling" for `sample`, "sampling.tools" for `sample` with tools,
                "sampling.context" for its `include_context`, or "roots". "elicitation" is True if
                the client can do either kind of elicitation.

        Raises:
            ValueError: there is no such capability.
        """
        return can_answer(capability, self.peer) and self._request.method.input_ok

    @overload
    def elicit(
        self,
        message: str,
        form: Form[T] | type[T],
        *,
        key: str | None = None,
        task_ttl: float | None = None,
    ) -> Coroutine[Any, Any, ElicitationResult[T]]: ...
    @overload
    def elicit(
        self,
        message: str,
        form: Mapping[str, Any],
        *,
        key: str | None = None,
        task_ttl: float | None = None,
    ) -> Coroutine[Any, Any, ElicitationResult[dict[str, Any]]]: ...
    def elicit(
        self,
        message: str,
        form: Any,
        *,
        key: str | None = None,
        task_ttl: float | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """Ask the user to fill in a form, and wait for the result (client/elicitation)::

            answer = await context.elicit("Where would you like to sit?", Seats)
            if answer.action != "accept":
                return "Nothing was booked."
            return f"Booked {answer.data.count} seats."

        For a tool, a prompt or a resource that is an `async def`. In 2026-07-28 the handler ends
        here: the client asks its user, repeats the request, and the handler is *run again from its
        beginning*. `elicit` then returns the result at once. So, for clients of that revision:

        - Code before the last elicitation runs once more for each of them, so it must be safe to
          repeat. Make changes after the last elicitation only.
        - An elicitation must be the same in each run. One that differs is a new one, and the
          request fails after ten rounds. If its text holds the time or a price, give it a `key`.
        - Elicitations of concurrent tasks go out in one round.
        - The client holds the user's earlier input in the meantime. It is signed, so it cannot be
          changed, but it isn't encrypted. It expires after ten minutes.

        Args:
            message: what the user is asked for, and why.
            form: a Struct, dataclass or TypedDict as described at `Form`, a `Form`, or a JSON
                Schema.
            key: a name for the elicitation, unique in this request. Needed if its text isn't the
                same in each run.
            task_ttl: seconds for which a client that runs such requests as tasks is asked to keep
                this one (2025-11-25). It is polled then, and a connection that is lost meanwhile
                loses no answer. Any other client is asked as usual. None, the default, asks for no
                task.

        Returns:
            `AcceptedElicitation` with an object of the form's type as `data`,
            `DeclinedElicitation` or `CancelledElicitation`.

        Raises:
            McpError: the client did not declare form mode elicitation, sent an error, or sent
                content that doesn't fit the form. If it isn't caught, it is the response.
            ConnectionLost: the connection closed first.
            DeclarationError: `form` isn't a valid form.
            LocalProtocolError: the request isn't of a tool, a prompt or a resource; the client's
                revision has no such fields; or the request is over.
            RuntimeError: called by a plain `def`.
            ValueError: `task_ttl` isn't positive.
        """
        made = as_form(form)
        return self._ask(made.question(message), key, made.find_error, made.read, task_ttl)

    def elicit_url(
        self, message: str, url: str, *, elicitation_id: str | None = None, key: str | None = None
    ) -> Coroutine[Any, Any, ElicitationResult[None]]:
        """Ask the user to visit a page, and wait for their consent (client/elicitation).

        For a login, a payment, or input that the client must not see. `AcceptedElicitation` means
        that the user agreed to open the page, not that they have finished there. The page itself
        must verify that its visitor is the same user, see `url_elicitation`: the link alone proves
        nothing. All else is as for `elicit`.

        Args:
            message: what the page is for.
            url: the page, `https:`, without a secret and without data about the user. `http:` only
                on a loopback address, for development.
            elicitation_id: a unique id. With it, `Server.elicitation_complete`
                tells the client that the user has finished (2025-11-25; the other revisions have
                no such notification).
            key: as for `elicit`.

        Returns:
            `AcceptedElicitation` without data, `DeclinedElicitation` or `CancelledElicitation`.

        Raises:
            McpError: the client did not declare URL mode elicitation, or sent an error.
            DeclarationError: `url` isn't such a URL, or holds a password.
            Exception: all else that `elicit` raises.
        """
        error = find_elicitation_url_error(url)
        if error:
            raise DeclarationError(f"context.elicit_url: {error}")
        if self.peer.dialect.lacks(t.ElicitParams, "elicitation_id"):
            elicitation_id = None  # a new id in each run would make each run ask anew
        params = t.ElicitParams(message=message, mode="url", url=url, elicitation_id=elicitation_id)
        return self._ask(t.ElicitRequest(params), key, find_error, _read_consent)

    def url_elicitation(
        self, name: str, *, lifetime: float = ELICITATION_LIFETIME
    ) -> UrlElicitation:
        """Return a signed token for the URL of a page, so that it can check who opens it::

            elicitation = context.url_elicitation("connect")
            url = f"https://example.com/connect?token={elicitation.token}"
            answer = await context.elicit_url(
                "Connect your calendar.", url, elicitation_id=elicitation.elicitation_id
            )

        The page logs its visitor in, and calls `Server.verify_url_elicitation` with their
        principal: the link may have been passed on to another user. The token names the user only
        to the server, and isn't a login. Each handler run gets the same one.

        Args:
            name: a name for the page. A token for one page isn't valid for another.
            lifetime: seconds until the token expires; ten minutes by default.
        """
        host = self._collector.host
        runtime = host.runtime
        return make_url_elicitation(
            self._collector.round_trips,
            host.server.key_ring(runtime.entropy),
            name,
            host.principal,
            lifetime=lifetime,
            now=runtime.wall_time(),
            entropy=runtime.entropy,
        )

    def sample(
        self,
        messages: str | Sequence[t.SamplingMessage],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        model_preferences: t.ModelPreferences | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tools: Sequence[t.Tool] | None = None,
        tool_choice: Literal["auto", "required", "none"] | t.ToolChoice | None = None,
        key: str | None = None,
        task_ttl: float | None = None,
    ) -> Coroutine[Any, Any, t.CreateMessageResult]:
        """Request a completion from the client's model, and wait for it (client/sampling).

        The handler may be run again, as for `elicit`. Deprecated in 2026-07-28.

        Args:
            messages: the conversation so far. A text is one user message.
            max_tokens: the result's maximum length, in the model's tokens.
            system_prompt: the client may change or ignore it, like the following arguments except
                for the tools.
            model_preferences: which model to select.
            temperature: the model's temperature.
            stop_sequences: texts at which the model stops.
            include_context: further context for the model. Left out if the client did not declare
                that it supports it.
            metadata: passed to the model's provider.
            tools: the tools that the model may use. A tool use is part of the result's content:
                run the tool, and call `sample` again with its result among the messages.
            tool_choice: whether the model may, must or must not use tools: "auto", "required" or
                "none", or one of these in a `types.ToolChoice`.
            key: as for `elicit`.
            task_ttl: as for `elicit`.

        Returns:
            The model's message, with its `stop_reason`.

        Raises:
            McpError: the client did not declare sampling (with tools), or its user declined.
            LocalProtocolError: also if a tool use in `messages` isn't followed by its result.
            ValueError: there is no such `tool_choice`.
            Exception: all else that `elicit` raises.
        """
        params = t.CreateMessageParams(
            messages=_messages(messages),
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            model_preferences=model_preferences,
            temperature=temperature,
            stop_sequences=list(stop_sequences) if stop_sequences is not None else None,
            include_context=include_context,
            metadata=dict(metadata) if metadata is not None else None,
            tools=list(tools) if tools is not None else None,
            tool_choice=_tool_choice(tool_choice),
        )
        return self._ask(t.CreateMessageRequest(params), key, find_error, _read_message, task_ttl)

    def sample_with_tools(
        self,
        messages: str | Sequence[t.SamplingMessage],
        tools: Sequence[Callable[..., Any] | str],
        *,
        max_tokens: int,
        max_rounds: int = SAMPLING_ROUNDS,
        system_prompt: str | None = None,
        model_preferences: t.ModelPreferences | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tool_choice: Literal["auto", "required"] = "auto",
        key: str | None = None,
    ) -> Coroutine[Any, Any, SampledConversation]:
        """Let the client's model use tools, which run here, until it has a final message::

            def stock(article: str) -> int:
                "The number of pieces in the warehouse."
                return warehouse[article]

            answer = await context.sample_with_tools(question, [stock, "prices"], max_tokens=500)
            return answer.text

        The client sees each message, and its user may decline any of them. Tool uses of one message
        run one after another. An exception of a tool becomes a result with `isError`: of a
        `ToolError` the model gets the text, of any other a reference, under which the log has it.
        A tool may itself call `elicit` and the like. Middleware and required scopes, which belong
        to the client's requests, don't apply to these tool uses; a tool's `timeout` and `rate` do.

        The handler may be run again, as for `elicit`. Tools aren't: their results are kept, signed
        but not encrypted, by the client. If the client sends the same retry twice, or the process
        dies meanwhile, a tool may run again. Since 2025-11-25; deprecated in 2026-07-28.

        Args:
            messages: as for `sample`.
            tools: functions, as for `Server.tool`, and names of tools of this server. A function
                that is a tool of this server is used as it was declared.
            max_tokens: the maximum length of each message.
            max_rounds: the maximum number of model messages, 2 to 10; 8 by default, so that in
                2026-07-28, where a call has ten rounds of input, two remain for other requests. In
                the last round the model must not use tools.
            system_prompt: as for `sample`, like the following arguments.
            model_preferences: which model to select.
            temperature: the model's temperature.
            stop_sequences: texts at which the model stops.
            include_context: further context for the model.
            metadata: passed to the model's provider.
            tool_choice: "required" if the model must use a tool in the first round.
            key: as for `elicit`.

        Returns:
            The last message with the whole conversation. Its `result.stop_reason` is "maxTokens" if
            it was cut off.

        Raises:
            McpError: the client did not declare sampling with tools, its user declined, or its
                model uses tools in the last round.
            DeclarationError: a function cannot be a tool, or the server has no tool of that name.
            ValueError: `max_rounds` or `tool_choice` is out of range.
            RuntimeError: called by a plain `def`.
            Exception: all else that `elicit` raises.
        """
        if self.in_plain_def or self._runtime.in_worker_thread:
            raise RuntimeError(CANNOT_AWAIT)
        if not 2 <= max_rounds <= MAX_ROUNDS:
            raise ValueError(f"max_rounds is from 2 to {MAX_ROUNDS}, not {max_rounds}")
        if tool_choice not in _FIRST_CHOICES:
            raise ValueError(f"tool_choice is 'auto' or 'required' here, not {tool_choice!r}")
        params = t.CreateMessageParams(
            messages=_messages(messages),
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            model_preferences=model_preferences,
            temperature=temperature,
            stop_sequences=list(stop_sequences) if stop_sequences is not None else None,
            include_context=include_context,
            metadata=dict(metadata) if metadata is not None else None,
            tool_choice=t.ToolChoice(tool_choice),
        )
        entries = tools_for(tools, self.server.find_tool)
        sampling = ToolSampling(self, self._collector, params, entries, max_rounds, key)
        return self._runtime.sample_with_tools(sampling)

    def roots(self, *, key: str | None = None) -> Coroutine[Any, Any, list[t.Root]]:
        """Request and return the client's roots, where the server should work (client/roots).

        Roots are guidance, not access control. The handler may be run again, and `key` is as for
        `elicit`. Deprecated in 2026-07-28.

        Raises:
            McpError: the client did not declare roots, or sent an error.
            Exception: all else that `elicit` raises.
        """
        return self._ask(t.ListRootsRequest(), key, find_error, _read_roots)

    # -- Input that a handler requests by returning `InputRequiredResult` ------------------------

    @overload
    def input_response(self, key: str, kind: Form[T]) -> ElicitationResult[T] | None: ...
    @overload
    def input_response(self, key: str, kind: type[R]) -> R | None: ...
    def input_response(self, key: str, kind: Any) -> Any:
        """Return the client's response to an input request that this handler returned earlier::

            @server.tool
            def book(flight: str, context: Context) -> str | InputRequiredResult:
                answer = context.input_response("seats", SEATS)
                if answer is None:
                    requests = {"seats": SEATS.question("How many seats?")}
                    return InputRequiredResult(input_requests=requests)
                if answer.action != "accept":
                    return "Nothing was booked."
                return f"{answer.data.count} seats on {flight}"

        Return None before the response arrives. A handler that returns an `InputRequiredResult` is
        run again with the responses to its `input_requests`, including earlier rounds', and
        with its `request_state`. With a state and no input requests it is run again a little
        later. This works in every revision, also in a plain `def`, for at most ten rounds.

        Args:
            key: the key in `input_requests`.
            kind: a `Form`, or the result's type: `ElicitResult`, `CreateMessageResult` or
                `ListRootsResult`. Content that doesn't fit the form counts as no response.

        Raises:
            McpError: what the client sent isn't a result of that type.
        """
        round_trips = self._collector.round_trips
        if not isinstance(kind, Form):
            return round_trips.response(key, kind)
        result = round_trips.response(key, t.ElicitResult)
        if result is None or kind.find_error(kind.question(""), result):
            return None
        return kind.read(result)

    @property
    def request_state(self) -> str | None:
        """The `request_state` that this handler returned in its last run, None in the first run."""
        return self._collector.round_trips.state


def collector_of(context: Context[Any]) -> InputCollector:
    """Return what collects the handler's requests for input."""
    return context._collector


def error_reporter(context: Context[Any]) -> Callable[[str, Exception], None]:
    """Return a function that logs what an author's function, which it names, has raised."""
    return context._runtime.report_hook


def mounted_context(
    context: Context[Any], server: Server, inner: Callable[[RequestReceived], RequestReceived]
) -> Context[Any]:
    """Return a context of the same request for the handlers of `server`.

    `server` is mounted in the server of `context`, and `inner` returns a request with its names.
    Only `state` is common to both.
    """
    collector = context._collector
    host = collector.host
    made: Context[Any] = Context(collector)
    made._request = inner(context._request)
    made._task_job = context._task_job
    made.server = server
    made.lifespan = lifespan_value(host.lifespan, server, mounted=True)
    made.state = context.state
    stateful = context.peer.dialect.stateful
    made.session_state = host.mounted_states.setdefault(server, {}) if stateful else {}
    return made


def _messages(messages: str | Sequence[t.SamplingMessage]) -> list[t.SamplingMessage]:
    if isinstance(messages, str):
        return [t.SamplingMessage("user", t.TextContent(messages))]
    return list(messages)


def _tool_choice(
    choice: Literal["auto", "required", "none"] | t.ToolChoice | None,
) -> t.ToolChoice | None:
    """Return the choice as it is sent.

    Raises:
        ValueError: there is no such choice.
    """
    if choice is None:
        return None
    made = choice if isinstance(choice, t.ToolChoice) else t.ToolChoice(choice)
    if made.mode not in _TOOL_CHOICES:
        raise ValueError(f"tool_choice is 'auto', 'required' or 'none', not {made.mode!r}")
    return made


def _read_consent(result: t.ElicitResult) -> ElicitationResult[None]:
    return AcceptedElicitation(None) if result.action == "accept" else not_accepted(result.action)


def _read_message(result: t.CreateMessageResult) -> t.CreateMessageResult:
    return result


def _read_roots(result: t.ListRootsResult) -> list[t.Root]:
    return result.roots
