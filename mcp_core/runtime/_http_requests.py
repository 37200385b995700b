"""Make the requests of an `HttpClient`: on which connection, and how often.

Each request runs in its own task, as an `HttpRequestJob`, where all waiting happens. The `Pool`
decides which connection is used and whether a request may be sent again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from mcp_core._errors import ConnectFailed, ConnectionLost, McpTrioError
from mcp_core.http.client._http_client import HttpClient
from mcp_core.http.client._options import AuthAttemptLike, HttpCall
from mcp_core.http.client._pool import Pool, PoolDecision, keep_alive_seconds
from mcp_core.http.wire._messages import Action, Body, End, Head, RequestHead
from mcp_core.http.wire._recorder import ExchangeRecorderLike, HttpRecorderLike
from mcp_core.protocol.messages._events import NEED_DATA, PAUSED, Event

from ._job import Job
from ._runtime import EventLike

__all__ = [
    "AuthFlowRunner",
    "HttpClientRuntime",
    "HttpRequestJob",
    "HttpRequestRunner",
    "OnActions",
    "PooledConnection",
]

# For a server that has never sent a byte: the URL may be wrong.
_DOUBT: Final = "is it an HTTP server, with TLS or without as the URL says?"


# Takes a part of a response. Returns an event if reading must pause until that event is set.
OnActions: TypeAlias = Callable[[list[Action]], EventLike | None]


class PooledConnection(Protocol):
    """A connection to the server.

    The `HttpRequestRunner` closes it when it cannot be used again. The driver closes those that
    `HttpClientRuntime.discard` gets and, at its end, those that `Pool.clear` returns.
    """

    @property
    def protocol(self) -> str:
        """The protocol's name, such as "HTTP/2"."""

    @property
    def capacity(self) -> int:
        """The number of requests that it can carry at the same time now; 0 if it takes no more."""

    @property
    def received(self) -> bool:
        """True if anything has arrived since the last request was sent."""

    async def run(self, head: RequestHead, body: bytes, on_actions: OnActions) -> bool:
        """Send a request, and pass its response to `on_actions` in pieces, up to `End`.

        `head` is its head and `body` its complete content, empty for none.

        Return True if the connection may be used again. If `on_actions` returns an event, wait for
        it before more of this response is read. A connection that also carries other responses goes
        on reading them. It still passes on what arrives for this one, but stops extending its
        flow-control window.

        Raises:
            NotProcessed: the server says that it hasn't begun to process the request.
            ConnectionLost: the response is incomplete. What arrived was passed to `on_actions`.
            ValueError: the request cannot be sent in HTTP; nothing was sent.
        """

    def server_closed(self) -> bool:
        """Return True if an idle connection is known to be closed. This doesn't wait."""

    async def aclose(self) -> None:
        """Close the connection, also if cancelled."""


L = TypeVar("L", bound=PooledConnection)


class AuthFlowRunner(Protocol):
    """Gets the access tokens of requests. Both methods may raise any `McpTrioError`.

    The request then ends with that error.
    """

    async def ensure_token(self) -> None:
        """Get a token if one is needed. Called before each request."""

    async def handle_challenge(self, attempt: AuthAttemptLike) -> None:
        """Do what the last response to `attempt` demands. The request is then sent again.

        Its response was passed to `attempt.received`, which returned True.
        """


class HttpClientRuntime(Protocol[L]):
    """The driver of an `HttpRequestRunner`. Only `connect` waits."""

    async def connect(self) -> L:
        """Open a connection to the server, and return it.

        Raises:
            ConnectFailed: the server cannot be reached.
        """

    def discard(self, connections: list[L]) -> object:
        """Close `connections`, which have expired, without waiting for it."""

    def start_job(self, job: HttpRequestJob) -> object:
        """Run `job` in a task of its own. Call `pump` after its end."""

    def pump(self) -> object:
        """Call `HttpRequestRunner.run`, and set a timer to its `next_deadline`."""

    def clock(self) -> float:
        """Return the current time, on the `HttpClient`'s clock."""

    def new_event(self) -> EventLike:
        """Create an event of this runtime."""


class HttpRequestRunner(Generic[L]):
    """Makes the requests of an `HttpClient` on pooled connections.

    Call `run` after each call into the client, and `handle_timeout` at `next_deadline`. Neither
    waits.

    Attributes:
        protocol: the name of the newest connection's protocol, "" before the first connection.
        has_responded: whether the server has ever responded.

    Args:
        http: the client.
        driver: opens connections and starts tasks.
        on_event: called for each event, in order; must not wait.
        on_sent: called with each request's body.
        adapt_head: adapts the head of a request to the driver's connections, as a proxy needs it;
            None for no change.
        auth: gets access tokens, if the client uses authorization.
        recorder: records requests and responses; None for no recording.
    """

    def __init__(
        self,
        http: HttpClient,
        driver: HttpClientRuntime[L],
        on_event: Callable[[Event], object],
        *,
        on_sent: Callable[[bytes], object] | None = None,
        adapt_head: Callable[[RequestHead], RequestHead] | None = None,
        auth: AuthFlowRunner | None = None,
        recorder: HttpRecorderLike | None = None,
    ) -> None:
        self.http = http
        self.pool: Pool[L] = Pool()
        self.has_responded = False
        self.protocol = ""
        self.driver = driver
        self._adapt_head = adapt_head
        self.on_sent = on_sent
        self.auth = auth
        self._recorder = recorder
        self._jobs: dict[int, HttpRequestJob] = {}
        # Requests that wait for a connection: short ones, and long-lived ones.
        self._waiting: tuple[deque[EventLike], deque[EventLike]] = (deque(), deque())
        # By the request's key: the event that the reader of a paused stream waits for.
        self._paused: dict[int, EventLike] = {}
        self._on_event = on_event
        self._delivering = False

    def __repr__(self) -> str:
        return f"<HttpRequestRunner of {self.http!r}: {len(self._jobs)} under way>"

    @property
    def idle(self) -> bool:
        """True if no request is being made."""
        return not self._jobs

    def run(self) -> None:
        """Start and cancel requests, and process every event."""
        http = self.http
        on_event = self._on_event
        while True:
            # A `run` inside of `on_event` leaves later events to the one that called `on_event`.
            if not self._delivering:
                self._delivering = True
                try:
                    while (event := http.next_event()) is not NEED_DATA and event is not PAUSED:
                        on_event(event)
                finally:
                    self._delivering = False
            for call in http.calls_to_make(self.driver.clock()):
                job = self._jobs[call.key] = HttpRequestJob(self, call)
                self.driver.start_job(job)
            if http.drops:
                for key in http.calls_to_drop():
                    if key in self._jobs:
                        self._jobs[key].stop()
            if self._delivering or not http.events:
                break
        if self._paused:
            for key in [key for key in self._paused if not http.is_paused(key)]:
                self._paused.pop(key).set()

    def wait_if_paused(self, key: int) -> EventLike | None:
        """Return the event that the reader of the response to `key` has to wait for.

        None if it may read on. `key` is `HttpCall.key`.
        """
        if not self.http.is_paused(key):
            return None
        return self._paused.setdefault(key, self.driver.new_event())

    def next_deadline(self) -> float | None:
        """Return the time at which to call `handle_timeout`, or None."""
        of_pool = self.pool.deadline
        of_client = self.http.next_deadline()
        if of_pool is None or of_client is None:
            return of_client if of_pool is None else of_pool
        return min(of_pool, of_client)

    def handle_timeout(self, now: float) -> None:
        """Process the timeouts that are due at `now`. An early call does nothing."""
        self.http.handle_timeout(now)
        expired = self.pool.expired(now)
        if expired:
            self.driver.discard(expired)

    def stop(self) -> None:
        """Cancel all requests."""
        for job in list(self._jobs.values()):
            job.stop()

    # -- One request -----------------------------------------------------------------------------

    async def _exchange(self, job: HttpRequestJob) -> str | None:
        """Make a request. Return why its response is incomplete, or None if it is complete.

        Raises:
            _Unauthorized: the response demands another access token.
        """
        call = job.call
        tries = 0
        while True:
            tries += 1
            found = self.pool.acquire(call, self.driver.clock())
            if isinstance(found, PoolDecision) or found.server_closed():
                connection = await self._other_connection(call, found)
            else:
                connection = found
            reused = connection is not None
            complete = False
            job.answered = job.unauthorized = False
            job.keep_alive = job.record = None
            try:
                if connection is None:
                    connection = await self._connect(call)
                head = call.head if call.attempt is None else self.http.sign(call)
                if self._adapt_head is not None:
                    head = self._adapt_head(head)
                if self._recorder is not None:
                    job.record = self._begin_record(self._recorder, call, head, connection)
                self.http.request_started(call.key)
                complete = await connection.run(head, call.body, job.handle_actions)
                if job.unauthorized:
                    raise _Unauthorized
                return None
            except (ConnectFailed, ValueError) as exc:
                return str(exc)
            except ConnectionLost as exc:
                if job.record is not None:
                    job.record.ended("server", "reset")
                if not Pool.may_retry(call, exc, reused=reused, answered=job.answered, tries=tries):
                    assert connection is not None
                    return (
                        str(exc)
                        if self.has_responded or connection.received
                        else f"{exc}; {_DOUBT}"
                    )
            finally:
                if job.record is not None:
                    job.record.ended("client", "closed")
                if connection is None:
                    self.pool.discard(call)
                    self._wake_all()
                else:
                    close = self.pool.release(
                        connection,
                        self.driver.clock(),
                        complete=complete,
                        keep_alive_seconds=job.keep_alive,
                    )
                    if self._waiting[0] or self._waiting[1]:
                        self._wake_next(call)
                    if close:
                        await connection.aclose()

    async def _connect(self, call: HttpCall) -> L:
        connection = await self.driver.connect()
        was_shared = self.pool.shared
        self.pool.opened(call, connection)
        self.protocol = connection.protocol
        if was_shared or self.pool.shared:
            # Waiting requests may now share this connection, or have to know that it carries only
            # one.
            self._wake_all()
        return connection

    def _begin_record(
        self, recorder: HttpRecorderLike, call: HttpCall, head: RequestHead, connection: L
    ) -> ExchangeRecorderLike:
        headers = list(head.headers)
        if call.body:
            headers.append((b"content-length", b"%d" % len(call.body)))  # as the connection does
        head = RequestHead(head.method, head.target, headers)
        return recorder.begin(head, call.body, connection.protocol.removeprefix("HTTP/"))

    async def _other_connection(self, call: HttpCall, found: L | PoolDecision) -> L | None:
        """Wait until a request may use a connection. Return None if it is to open a new one.

        `found` is the pool's first answer: what to do, or a connection that turned out to be
        closed.
        """
        while True:
            if found is PoolDecision.WAIT:
                await self._wait(call)
            elif isinstance(found, PoolDecision):
                return None
            elif not found.server_closed():
                return found
            else:
                close = self.pool.release(found, self.driver.clock(), complete=False)
                self._wake_next(call)
                if close:
                    await found.aclose()
            found = self.pool.acquire(call, self.driver.clock())

    async def _wait(self, call: HttpCall) -> None:
        """Wait until a connection may be free."""
        event = self.driver.new_event()
        waiting = self._waiting[call.long_lived]
        waiting.append(event)
        try:
            await event.wait()
        except BaseException:
            if event in waiting:
                waiting.remove(event)
            else:
                self._wake_next(call)  # this request was woken and is cancelled: wake another
            raise

    def _wake_all(self) -> None:
        for waiting in self._waiting:
            while waiting:
                waiting.popleft().set()

    def _wake_next(self, call: HttpCall) -> None:
        queues = self._waiting if self.pool.shared else (self._waiting[call.long_lived],)
        for waiting in queues:
            if waiting:
                waiting.popleft().set()


class HttpRequestJob(Job):
    """One request of an `HttpClient`, `call`, which `runner` makes.

    The first outcome counts; `failed` always raises.

    Attributes:
        answered: whether anything of a response to the last attempt has arrived.
        keep_alive: seconds for which the server keeps the connection, None if it names no time.
        unauthorized: whether the response demands another access token; the client doesn't get
            such a response.
        record: the last attempt's recording, None if it isn't recorded.
    """

    __slots__ = (
        "_ended",
        "_runner",
        "answered",
        "call",
        "keep_alive",
        "record",
        "unauthorized",
    )

    def __init__(self, runner: HttpRequestRunner[Any], call: HttpCall) -> None:
        super().__init__()
        self.call = call
        self.answered = False
        self.unauthorized = False
        self.keep_alive: float | None = None
        self.record: ExchangeRecorderLike | None = None
        self._runner = runner
        self._ended = False

    def __repr__(self) -> str:
        return f"<HttpRequestJob {self.call.key}, {'over' if self._ended else 'under way'}>"

    async def run(self) -> str | McpTrioError | None:
        """Make the request as often as authorization takes.

        Return why it failed, or None if its response is complete.
        """
        runner = self._runner
        call = self.call
        auth = runner.auth
        if call.body and runner.on_sent is not None:
            runner.on_sent(call.body)
        if auth is None or call.attempt is None:
            return await runner._exchange(self)
        http = runner.http
        driver = runner.driver
        try:
            while True:
                # Requests sent during shutdown (session DELETE, cancellations) never start an
                # interactive login.
                if not self.shutting_down:
                    await auth.ensure_token()
                try:
                    return await runner._exchange(self)
                except _Unauthorized:
                    pass
                http.pause_timeout(call.key, None)
                driver.pump()
                try:
                    await auth.handle_challenge(call.attempt)
                finally:
                    http.pause_timeout(call.key, driver.clock())
                    driver.pump()
        except McpTrioError as exc:
            return exc

    def handle_actions(self, actions: list[Action]) -> EventLike | None:
        """Pass `actions`, part of the response, to the client. See `PooledConnection.run`."""
        runner = self._runner
        call = self.call
        key = call.key
        self.answered = True
        runner.has_responded = True
        if self.record is not None:
            self.record.response(actions)
        http = runner.http
        now = runner.driver.clock()
        for action in actions:
            if type(action) is Body:
                http.response_data(key, action.data, now)
            elif type(action) is Head:
                value = dict(action.headers).get(b"keep-alive")
                self.keep_alive = None if value is None else keep_alive_seconds(value)
                if call.attempt is not None and http.is_retry_worthwhile(call, action):
                    self.unauthorized = True
                    # The rest of the response isn't needed. If it has arrived, which is usual,
                    # the connection can be used again; otherwise it is closed.
                    if type(actions[-1]) is not End:
                        raise _Unauthorized
                    return None
                http.response_started(key, action, now)
        # The end is reported when the connection is free again: it may lead to the next request.
        if type(actions[-1]) is End:
            return None
        runner.driver.pump()
        return runner.wait_if_paused(key)

    def done(self, result: str | McpTrioError | None) -> None:
        if self._ended:
            return
        self._ended = True
        runner = self._runner
        key = self.call.key
        del runner._jobs[key]
        runner._paused.pop(key, None)
        if isinstance(result, McpTrioError):
            runner.http.denied(key, result, runner.driver.clock())
        else:
            runner.http.response_ended(key, runner.driver.clock(), error=result)

    def failed(self, exc: BaseException) -> None:
        self.done("internal error of the client")
        raise exc

    def dropped(self) -> None:
        if not self._ended:
            self.done("the request was cancelled")


class _Unauthorized(Exception):
    """The response to a request demands another access token."""
