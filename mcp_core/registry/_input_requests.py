"""Requests for input that are sent to the client while one of its requests is served.

1. Input is elicitation, sampling or roots. Until 2025-11-25 the server sends nested requests, on
   behalf of the client's request (client/elicitation, client/sampling, client/roots). In
   2026-07-28 the response lists the input requests, and the client repeats its request with the
   input responses (basic/patterns/mrtr). `InputCollector` serves both.
2. A runtime adds the waiting only: it enters a `NestedRequests`, waits to be woken and takes the
   result. In 2026-07-28 there is nothing to wait for: entering raises `NeedInput`.
3. A client that refuses, or sends an error or an invalid result, raises `McpError` in the
   handler. If the handler doesn't catch it, it becomes the error response.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from mcp_core._errors import (
    ConnectionLost,
    Fault,
    LocalProtocolError,
    McpError,
    PeerError,
    RemoteProtocolError,
    ToolError,
)
from mcp_core.protocol.connection._state import ENDING_STATES
from mcp_core.protocol.input_requests._kinds import INPUT_REQUESTS
from mcp_core.protocol.input_requests._request_state import InvalidRequestState
from mcp_core.protocol.input_requests._rounds import (
    ServerRoundTrips,
    retry_delay,
    to_request,
    without_undeclared_context,
)
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, reader
from mcp_core.protocol.messages._pending import PendingRequest
from mcp_core.protocol.revisions._capabilities import is_declared
from mcp_core.protocol.revisions._methods import Role
from mcp_core.types import (
    ElicitParams,
    ElicitRequest,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
    Task,
    TaskMetadata,
    URLElicitationRequiredData,
)

from ._trace_context import trace_context

if TYPE_CHECKING:
    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.input_requests._rounds import ErrorFinder
    from mcp_core.protocol.messages._events import (
        Peer,
        ProgressReceived,
        RequestReceived,
        TaskCreated,
    )
    from mcp_core.types import InputRequest, ReadResourceResult, RequestId

    from ._context import Context
    from ._errors import UrlElicitationRequired
    from ._sampling_tools import SampledConversation, ToolSampling
    from ._server import Server
    from .tasks._tasks import DetachableJob, RunningTaskLike

__all__ = [
    "CANNOT_AWAIT",
    "InputCollector",
    "NestedRequestSender",
    "NestedRequests",
    "RequestHost",
    "RuntimeLike",
    "SingleRequest",
    "TaskInput",
    "TimeLimitLike",
    "internal_error",
    "meta_of",
]

T = TypeVar("T")

CANNOT_AWAIT: Final = (
    "a plain def cannot await an answer: write an `async def`, or return InputRequiredResult"
)


class RuntimeLike(Protocol):
    """The part of `mcp_core.runtime.Runtime` that a handler's `Context` needs.

    `Runtime` documents each member.
    """

    @property
    def in_worker_thread(self) -> bool: ...

    def pump(self) -> None: ...

    def write_blocked(self, id: RequestId, /) -> bool: ...

    def drain(self, id: RequestId, /) -> Coroutine[Any, Any, None]: ...

    def release(self, id: RequestId, retry: float | None, /) -> bool: ...

    def send_nested(self, requests: NestedRequests[T], /) -> Coroutine[Any, Any, T]: ...

    def send_nested_task(self, request: SingleRequest[T], /) -> Coroutine[Any, Any, T]: ...

    def sample_with_tools(
        self, sampling: ToolSampling, /
    ) -> Coroutine[Any, Any, SampledConversation]: ...

    def read_resource(
        self, context: Context[Any], uri: str, /
    ) -> Coroutine[Any, Any, ReadResourceResult]: ...

    def request_task_input(self, task_input: TaskInput[T], /) -> Coroutine[Any, Any, T]: ...

    def detach(self, job: DetachableJob | None, /) -> Coroutine[Any, Any, bool]: ...

    def from_thread(self, function: Callable[[], Coroutine[Any, Any, T]], /) -> T: ...

    def report_hook(self, name: str, exc: BaseException, /) -> None: ...

    def warn(self, text: str, /) -> None: ...

    def monotonic(self) -> float: ...

    def shared_clock(self) -> float: ...

    def wall_time(self) -> float: ...

    def entropy(self, size: int, /) -> bytes: ...


class RequestHost(Protocol):
    """The part of `Service` that a handler's `Context` needs.

    `lifespan` is the server lifespan's value, or the `LifespanValues`. `principal` is the
    authenticated user, empty without authorization. `rate_key` is the name under which the client's
    calls of a tool are counted, "" for clients that nothing tells apart. `session_state` is a dict
    of this connection's handlers, and `mounted_states` has those of mounted servers.
    """

    @property
    def server(self) -> Server: ...

    @property
    def conn(self) -> Connection: ...

    @property
    def runtime(self) -> RuntimeLike: ...

    @property
    def lifespan(self) -> Any: ...

    @property
    def principal(self) -> str: ...

    @property
    def rate_key(self) -> str: ...

    @property
    def session_state(self) -> dict[str, Any]: ...

    @property
    def mounted_states(self) -> dict[Server, dict[str, Any]]: ...

    def remember_elicitation(self, elicitation_id: str, /) -> None:
        """Remember that the client's user was sent to a page with this elicitation id."""


class TimeLimitLike(Protocol):
    """The time that a handler has left, as in `mcp_core.runtime`."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...


@contextmanager
def paused(limits: Iterable[TimeLimitLike]) -> Iterator[None]:
    """Return a context manager in which the clocks of `limits` stand still."""
    stopped = tuple(limits)
    for limit in stopped:
        limit.pause()
    try:
        yield
    finally:
        for limit in stopped:
            limit.resume()


class NestedRequestSender(Protocol):
    """The occasion for nested requests: a client's request, or a notification.

    `label` is its method. `related` is the request's id, None for a notification. `trace` is
    its trace context. `time_limits` don't go on while a response is awaited. The
    other members are `InputCollector`'s.
    """

    active_requests: list[NestedRequests[Any]]
    no_response_error: BaseException | None

    @property
    def host(self) -> RequestHost: ...

    @property
    def label(self) -> str: ...

    @property
    def peer(self) -> Peer: ...

    @property
    def related(self) -> RequestId | None: ...

    @property
    def trace(self) -> dict[str, str]: ...

    @property
    def time_limits(self) -> tuple[TimeLimitLike, ...]: ...


class NestedRequests(abc.ABC, Generic[T]):
    """Requests that are sent to a stateful client side by side, as a runtime sees them.

    Enter `entered(wake)`, wait until `wake` is called, or for at most `seconds` (None: without a
    limit), and leave it. Then call `result`.

    Args:
        sender: the client's request or notification on whose behalf they are sent.
    """

    seconds: float | None = None
    meta: Mapping[str, Any] = {}  # further members of `_meta` of each request

    def __init__(self, sender: NestedRequestSender) -> None:
        self._sender = sender
        self._responses: dict[str, Any] = {}
        self._sent: list[RequestId] = []
        self._error: BaseException | None = None
        self._wake: Callable[[], object]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {self._sender.label}, {len(self._sent)} asked>"

    @property
    def sender(self) -> NestedRequestSender:
        """The occasion for the requests."""
        return self._sender

    @abc.abstractmethod
    def _make_requests(self) -> Mapping[str, tuple[str, Struct | Mapping[str, Any] | None]]:
        """Return method and params of each request to send, by key. May raise instead."""

    @abc.abstractmethod
    def _make_result(self, responses: Mapping[str, Any]) -> T:
        """Return the result for the responses, by key."""

    @contextmanager
    def entered(self, wake: Callable[[], object]) -> Iterator[None]:
        """Return a context manager that sends the requests, and on exit cancels the unanswered.

        `wake` is called when all responses are here, or one of the requests has failed.

        Raises:
            NeedInput: the input requests go into the response; this handler run is over.
            McpError: the client did not declare the capability, or the server is shutting down.
            LocalProtocolError: the client's revision has no such request, or the client's own
                request is over.
        """
        sender = self._sender
        host = sender.host
        conn = host.conn
        requests = self._make_requests()
        if requests and conn.state in ENDING_STATES:
            raise McpError(sender.peer.dialect.codes[Fault.BUSY], "the server is being shut down")
        meta = {**sender.trace, **self.meta} if requests else None
        self._wake = wake
        sent = self._sent
        sender.active_requests.append(self)
        try:
            for key, (method, params) in requests.items():
                token = _NestedRequest(self, key, method)
                id = conn.send_request(
                    method, params, token=token, related=sender.related, meta=meta
                )
                sent.append(id)
                if isinstance(params, ElicitParams) and params.elicitation_id is not None:
                    host.remember_elicitation(params.elicitation_id)
            if sent:
                host.runtime.pump()
            elif self.seconds is None:
                wake()  # nothing to wait for: the response is known already
            with paused(sender.time_limits):
                yield
        finally:
            # A request isn't left open when its waiting task is gone, for example cancelled.
            sender.active_requests.remove(self)
            for id in sent:
                # Does nothing if the response has arrived.
                conn.send_cancel(id, "the answer is not needed any more")
            if len(self._responses) < len(sent):
                host.runtime.pump()

    def receive_response(
        self, key: str, method: str, response: Any, error: BaseException | None
    ) -> None:
        """Record the end of one request. Call `wake` if it was the last one, or failed.

        Args:
            key: the request's key.
            method: its method, for texts.
            response: the response, an object of the method's result type.
            error: the error with which it failed, None for a response.
        """
        if isinstance(error, PeerError):
            error = self._refused(method, error)
        elif isinstance(error, RemoteProtocolError):
            error = internal_error(self._sender.peer, str(error))
        if error is None:
            self._responses[key] = response
        else:
            self._error = error
            if isinstance(error, ConnectionLost):
                self._sender.no_response_error = error
        if self._error is not None or len(self._responses) == len(self._sent):
            self._wake()

    def _refused(self, method: str, error: PeerError) -> McpError:
        """Return what is raised for the client's error response to a request."""
        return McpError(error.code, f"the client refused {method}: {error.message}", error.data)

    def fail(self, error: BaseException) -> None:
        """Wake the waiting task with `error`: no further response will be accepted."""
        self._error = error
        self._sender.no_response_error = error
        self._wake()

    def result(self) -> T:
        """Return the result, after `entered` was left.

        Raises:
            McpError: the client refused, or sent an invalid result.
            ConnectionLost: the connection closed first.
            LocalProtocolError: the client's own request is over.
        """
        if self._error is not None:
            raise self._error
        return self._make_result(self._responses)


class _NestedRequest(PendingRequest):
    """One request of a `NestedRequests`."""

    def __init__(self, owner: NestedRequests[Any], key: str, method: str) -> None:
        self._owner = owner
        self._key = key
        self._method = method

    def end(self, result: Any, error: BaseException | None) -> None:
        self._owner.receive_response(self._key, self._method, result, error)

    def on_task_created(self, event: TaskCreated) -> None:
        """Take the task of `event` for the response."""
        self._owner.receive_response(self._key, self._method, event.task, None)

    def on_progress(self, event: ProgressReceived) -> None:
        raise AssertionError("no progress was requested")  # pragma: no cover


class SingleRequest(NestedRequests[T]):
    """One request for input, from a handler that awaits the response.

    With `task_ttl`, in milliseconds, the client is asked to run it as a task. The result is then a
    `types.Task`, and `read_raw` reads the response when the task has ended.
    """

    def __init__(
        self,
        collector: InputCollector,
        input_request: InputRequest,
        key: str | None,
        find_error: ErrorFinder,
        read: Callable[[Any], T],
        task_ttl: int | None = None,
    ) -> None:
        super().__init__(collector)
        self._collector = collector
        self._input_request = input_request
        self._key = key
        self._task_ttl = task_ttl
        self._sent_key: str  # if it is sent
        self._find_error = find_error
        self._read = read
        self._response: Any = None

    def _make_requests(self) -> Mapping[str, tuple[str, Struct]]:
        collector = self._collector
        round_trips = collector.round_trips
        peer = collector.request.peer
        if not peer.dialect.stateful:
            self._response = round_trips.ask(self._input_request, self._key, self._find_error)
            return {}
        # Found if the handler is run again, after it returned an `InputRequiredResult`.
        key, self._response = round_trips.look_up(self._input_request, self._key, self._find_error)
        if self._response is not None:
            return {}
        method, params = to_request(self._input_request, peer, collector.host.runtime.entropy)
        if self._task_ttl is not None:
            params = replace(params, task=TaskMetadata(ttl=self._task_ttl))
        self._sent_key = key
        return {key: (method, params)}

    def read_raw(self, raw: Raw) -> T:
        """Return what the handler gets of the response `raw`, in JSON, of the client's task.

        Raises:
            McpError: it isn't a valid response.
        """
        row = INPUT_REQUESTS[type(self._input_request)]
        try:
            response = row.read_result(raw)
        except InvalidPayload as exc:
            text = f"the answer to {row.name} is invalid: {exc}"
            raise internal_error(self._collector.peer, text) from None
        return self._make_result({self._sent_key: response})

    def _make_result(self, responses: Mapping[str, Any]) -> T:
        collector = self._collector
        for key, response in responses.items():
            if isinstance(response, Task):
                return response  # type: ignore[return-value] # see the class
            reason = self._find_error(self._input_request, response)
            if reason:
                method = self._input_request.method
                raise internal_error(
                    collector.peer, f"the answer to {method} does not fit: {reason}"
                )
            collector.round_trips.store_response(key, response)
            self._response = response
        return self._read(self._response)


class _ReturnedRequests(NestedRequests[None]):
    """The input requests of an `InputRequiredResult` that a handler returned.

    Without input requests it is a pause, after which the handler is run again.
    """

    def __init__(self, collector: InputCollector, returned: InputRequiredResult) -> None:
        super().__init__(collector)
        self._collector = collector
        self._returned = returned
        if not returned.input_requests:
            self.seconds = retry_delay(collector.round_trips.round)

    def _make_requests(self) -> Mapping[str, tuple[str, Struct]]:
        collector = self._collector
        return collector.round_trips.nested_requests(self._returned, collector.host.runtime.entropy)

    def _make_result(self, responses: Mapping[str, Any]) -> None:
        self._collector.round_trips.resume(self._returned, responses)


class TaskInput(abc.ABC, Generic[T]):
    """Input requests of a handler that runs as a task: they are shown with the task.

    Pass `requests`, unless it is empty, to `task.request_input`, and its responses to
    `receive`. Then call `result`.
    """

    def __init__(self, collector: InputCollector, task: RunningTaskLike) -> None:
        self.task = task
        self.requests: Mapping[str, InputRequest] = {}
        self._collector = collector

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {self._collector.label}, {len(self.requests)} asked>"

    def paused(self) -> AbstractContextManager[None]:
        """Return a context manager for the wait, in which the handler's time stands still."""
        return paused(self._collector.time_limits)

    @abc.abstractmethod
    def receive(self, responses: Mapping[str, Raw]) -> None:
        """Receive the responses, undecoded, by the keys of `requests`.

        Raises:
            McpError: the client refused, or a response isn't valid.
        """

    @abc.abstractmethod
    def result(self) -> T:
        """Return what the handler gets."""

    def _decode(self, request: InputRequest, response: Raw) -> Any:
        """Decode a response.

        Raises:
            McpError: it is an error, or no response to this request.
        """
        peer = self._collector.peer
        try:
            refusal = _read_refusal(response)
            error = refusal.error
            if error is None:
                return INPUT_REQUESTS[type(request)].read_result(response)
        except InvalidPayload as exc:
            raise internal_error(
                peer, f"the answer to {request.method} is invalid: {exc}"
            ) from None
        text = error.message
        if refusal.from_client:
            text = f"the client refused {request.method}: {text}"
        raise McpError(error.code, text, error.data)


class _SingleTaskInput(TaskInput[T]):
    """One request for input, from a handler that awaits the response."""

    def __init__(
        self,
        collector: InputCollector,
        task: RunningTaskLike,
        input_request: InputRequest,
        key: str | None,
        find_error: ErrorFinder,
        read: Callable[[Any], T],
    ) -> None:
        super().__init__(collector, task)
        self._find_error = find_error
        self._read = read
        # Found if the client responded before the call became a task, or before it ran again.
        found, self._response = collector.round_trips.look_up(input_request, key, find_error)
        if self._response is None:
            request = without_undeclared_context(input_request, collector.peer)
            self.requests = {found: request}

    def receive(self, responses: Mapping[str, Raw]) -> None:
        for key, request in self.requests.items():
            response = self._decode(request, responses[key])
            reason = self._find_error(request, response)
            if reason:
                raise internal_error(
                    self._collector.peer, f"the answer to {request.method} does not fit: {reason}"
                )
            self._collector.round_trips.store_response(key, response)
            self._response = response

    def result(self) -> T:
        return self._read(self._response)


class _ReturnedTaskInput(TaskInput[None]):
    """The input requests of an `InputRequiredResult` that a handler returned.

    The author's keys may come again in a later round, and a task's may not: the round's number is
    put in front.
    """

    def __init__(
        self, collector: InputCollector, task: RunningTaskLike, returned: InputRequiredResult
    ) -> None:
        super().__init__(collector, task)
        self._returned = returned
        self._responses: dict[str, Any] = {}
        self._prefix = f"{collector.round_trips.round}."
        self.requests = {
            self._prefix + key: without_undeclared_context(request, collector.peer)
            for key, request in collector.round_trips.check_returned(returned).items()
        }

    def receive(self, responses: Mapping[str, Raw]) -> None:
        self._responses = {
            key.removeprefix(self._prefix): self._decode(request, responses[key])
            for key, request in self.requests.items()
        }

    def result(self) -> None:
        self._collector.round_trips.resume(self._returned, self._responses)


class _Refusal(Struct):
    """The stored error of an input request that got no result, as in a JSON-RPC response.

    `from_client` is False if the server made the error, for example from an invalid response.
    """

    error: ErrorData | None = None
    from_client: bool = field(name="fromClient", default=True)


_read_refusal: Final = reader(_Refusal)


class InputCollector(Struct, eq=False):
    """The requests for input of one request.

    `active_requests` are those that wait for responses now. `no_response_error` is the exception
    that was raised in the handler because no response can come any more; None while one can.
    `task` is the task that the request became, None for an ordinary call. `time_limits` are those
    of the functions that run now: the handler, and tools that the client's model uses.
    """

    host: RequestHost
    request: RequestReceived
    active_requests: list[NestedRequests[Any]] = []
    no_response_error: BaseException | None = None
    task: RunningTaskLike | None = None
    time_limits: tuple[TimeLimitLike, ...] = ()
    # Created on first use: most requests never need input.
    _round_trips: ServerRoundTrips | None = None

    def __repr__(self) -> str:
        so_far = self._round_trips or "nothing so far"
        return f"<InputCollector for {self.request.method.name}: {so_far}>"

    @property
    def label(self) -> str:
        """The request's method."""
        return self.request.method.name

    @property
    def peer(self) -> Peer:
        """The client that has sent the request."""
        return self.request.peer

    @property
    def related(self) -> RequestId:
        """The request's id."""
        return self.request.id

    @property
    def trace(self) -> dict[str, str]:
        """The request's trace context."""
        return trace_context(meta_of(self.request))

    @property
    def round_trips(self) -> ServerRoundTrips:
        """The input requests and responses so far, including earlier runs'.

        Raises:
            InvalidRequestState: the request's `requestState` wasn't issued for it, or is expired.
        """
        if self._round_trips is None:
            host = self.host
            ring = host.server.key_ring(host.runtime.entropy)
            now = host.runtime.wall_time()
            self._round_trips = ServerRoundTrips(
                self.request, ring, principal=host.principal, now=now
            )
        return self._round_trips

    def verify_request_state(self) -> None:
        """Verify the `requestState` that came with the request.

        Raises:
            InvalidRequestState: it wasn't issued for this request, or is expired. Do not run the
                handler.
        """
        dialect = self.request.peer.dialect
        # Do not draw a key to verify what cannot have been signed.
        if not dialect.stateful and not self.host.server.has_keys:
            raise InvalidRequestState("this process has issued none")
        _ = self.round_trips

    def needs_nested_requests(self, outcome: Any) -> bool:
        """Return True if `outcome` lists input requests that must be sent as nested requests.

        Then await `ask_returned`, and run the handler again.
        """
        return isinstance(outcome, InputRequiredResult) and (
            self.task is not None or self.request.peer.dialect.stateful
        )

    @property
    def unanswered(self) -> bool:
        """True if the response must list input requests, even if the handler returned or raised."""
        return self._round_trips is not None and self._round_trips.input_required

    def ask(
        self,
        input_request: InputRequest,
        key: str | None,
        find_error: ErrorFinder,
        read: Callable[[Any], T],
        task_ttl: float | None = None,
    ) -> Coroutine[Any, Any, T]:
        """Request input and return what `read` makes of the client's result.

        Raises:
            RuntimeError: called in a worker thread.
        """
        runtime = self.host.runtime
        if runtime.in_worker_thread:
            raise RuntimeError(CANNOT_AWAIT)
        if self.task is not None:
            return runtime.request_task_input(
                _SingleTaskInput(self, self.task, input_request, key, find_error, read)
            )
        if task_ttl is not None and self._client_runs(input_request):
            ttl = round(task_ttl * 1000)
            return runtime.send_nested_task(
                SingleRequest(self, input_request, key, find_error, read, ttl)
            )
        return runtime.send_nested(SingleRequest(self, input_request, key, find_error, read))

    def _client_runs(self, input_request: InputRequest) -> bool:
        """Return True if the client runs such requests as tasks when it is asked to."""
        peer = self.peer
        if peer.dialect.tasks != "requested":
            return False
        needs = peer.dialect.receives[Role.CLIENT][input_request.method].task_needs
        return bool(needs) and is_declared(peer.capabilities, needs)

    def ask_returned(self, returned: InputRequiredResult) -> Coroutine[Any, Any, None]:
        """Send what a handler returned to a stateful client. Then run the handler again."""
        if self.task is not None:
            return self.host.runtime.request_task_input(
                _ReturnedTaskInput(self, self.task, returned)
            )
        return self.host.runtime.send_nested(_ReturnedRequests(self, returned))

    def request_ended(self) -> None:
        """Fail every request for input that still waits: the client's request has ended.

        The waiting task may be shielded from the handler's cancellation.
        """
        for waiting in list(self.active_requests):
            waiting.fail(
                LocalProtocolError("the request is over, so no response to it can be awaited")
            )

    def required(self, returned: InputRequiredResult | None) -> InputRequiredResult:
        """Return the response: the handler's input requests, or the result that it returned.

        Raises:
            McpError, LocalProtocolError: as for `ServerRoundTrips.input_required_result`.
        """
        return self.round_trips.input_required_result(self.host.runtime.wall_time(), returned)

    def url_elicitation_response(
        self, error: UrlElicitationRequired
    ) -> InputRequiredResult | ErrorData:
        """Return the response to a request whose user must visit a page first.

        In 2026-07-28 it is an input request, which is made once. In 2025-11-25 it is error -32042.

        Raises:
            ToolError: the user declined, or accepted but hasn't finished on the page.
            McpError: the client did not declare URL mode elicitation.
            LocalProtocolError: the URL is invalid.
        """
        peer = self.request.peer
        input_request = ElicitRequest(error.elicitation)
        if not peer.dialect.stateful:
            key = f"visit {error.elicitation.url}"
            response = self.round_trips.response(key, ElicitResult)
            if response is None:
                return InputRequiredResult(input_requests={key: input_request})
            url = error.elicitation.url
            if response.action == "accept":
                raise ToolError(f"{error.message} Call again once that is done at {url}")
            raise ToolError(f"{error.message} The user declined to visit {url}")
        _, params = to_request(input_request, peer, self.host.runtime.entropy)
        assert isinstance(params, ElicitParams)
        assert params.elicitation_id is not None
        self.host.remember_elicitation(params.elicitation_id)
        return ErrorData(error.code, error.message, URLElicitationRequiredData([params]))


def internal_error(peer: Peer, text: str) -> McpError:
    """Return the exception for a client whose response is invalid."""
    return McpError(peer.dialect.codes[Fault.INTERNAL], text)


class _RawMeta(Struct):
    """Params with the whole `_meta`, as it was sent."""

    meta: dict[str, Any] | None = field(name="_meta", default=None)


_read_raw_meta: Final = reader(_RawMeta)


def meta_of(request: RequestReceived) -> dict[str, Any]:
    """Return the whole `_meta` of a request, members that no revision defines included.

    It is empty if the request has none.

    Raises:
        McpError: it cannot be decoded.
    """
    try:
        return _read_raw_meta(request.raw).meta or {}
    except InvalidPayload as exc:
        code = request.peer.dialect.codes[Fault.INVALID_PARAMS]
        raise McpError(code, f"_meta cannot be read: {exc}") from None
