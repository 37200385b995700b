"""Replay a client over HTTP, with a task for each request, on kept connections.

1. A notification or a response is sent alone: the next message waits until it has arrived.
2. Requests run side by side, up to a limit. At the limit, the requests are closed whose responses
   the client no longer waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_core import ConnectFailed, ConnectionLost
from mcp_core.trace import ReplayHttpClient
from mcp_trio._nursery import open_quiet_nursery

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.http import Action, ExchangeRecorderLike, HttpRecorderLike, Url
    from mcp_core.trace import ReplayClient, ReplayRequest
    from mcp_trio.http_client._connector import Connector
    from mcp_trio.http_client._h2_connection import H2ClientConnection
    from mcp_trio.http_client._h11_connection import H11ClientConnection

__all__ = ["play_over_http"]

_MAX_REQUESTS: Final = 32  # at once
_END_TIMEOUT: Final = 2.0  # seconds for the end of the session


async def play_over_http(
    client: ReplayClient,
    url: Url,
    connector: Connector,
    recorder: HttpRecorderLike,
    *,
    headers: Mapping[str, str],
    opens_stream: bool,
) -> None:
    """Play `client` against the server at `url`, until the client has finished.

    Args:
        client: the client of one recorded session.
        url: the endpoint.
        connector: opens connections to it.
        recorder: records the exchanges.
        headers: sent with each request.
        opens_stream: whether to open the session's event stream with GET.

    Raises:
        ConnectFailed: no connection could be opened.
    """
    http = ReplayHttpClient(url, headers)
    await _HttpPlayer(client, http, connector, recorder, opens_stream=opens_stream).run()


class _HttpPlayer:
    """The client of a recorded session, playing over HTTP."""

    def __init__(
        self,
        client: ReplayClient,
        http: ReplayHttpClient,
        connector: Connector,
        recorder: HttpRecorderLike,
        *,
        opens_stream: bool,
    ) -> None:
        self._client = client
        self._http = http
        self._connector = connector
        self._recorder = recorder
        self._opens_stream = opens_stream
        self._changed = trio.Event()
        self._running: dict[ReplayRequest, trio.CancelScope] = {}
        self._time_lock = trio.Lock()  # while it is held, no request of the client times out
        self._idle: list[H11ClientConnection | H2ClientConnection] = []

    async def run(self) -> None:
        first = await self._connector.connect()
        self._idle.append(first)
        self._client.begin(trio.current_time())
        try:
            async with open_quiet_nursery() as nursery:
                nursery.start_soon(self._keep_time)
                await self._send_all(nursery)
            await self._end_session()
        finally:
            with trio.CancelScope(shield=True):
                for connection in self._idle:
                    await connection.aclose()

    async def _send_all(self, nursery: trio.Nursery) -> None:
        while True:
            changed = self._changed
            messages = self._client.messages_to_send()
            for data in messages:
                request = self._http.post(data)
                if request.is_notice:
                    await self._run_notice(request)
                    self._begin_stream(nursery)
                else:
                    await self._wait_for_free_slot()
                    scope = self._running[request] = trio.CancelScope()
                    nursery.start_soon(self._run_limited, request, scope)
            if self._client.is_over and not messages:
                return
            if not messages:
                await changed.wait()

    def _begin_stream(self, nursery: trio.Nursery) -> None:
        """Open the session's event stream once the session exists."""
        request = self._http.open_stream() if self._opens_stream else None
        if request is not None:
            self._opens_stream = False
            nursery.start_soon(self._run_stream, request)

    async def _end_session(self) -> None:
        request = self._http.end_session()
        if request is not None:
            with trio.move_on_after(_END_TIMEOUT):
                await self._exchange(request)

    async def _run_notice(self, request: ReplayRequest) -> None:
        """Send a notification or a response. Give up after the client's timeout."""
        timeout = self._client.response_timeout
        begun_at = trio.current_time()
        async with self._time_lock:
            with trio.move_on_after(timeout) as waiting:
                await self._run(request)
            # The client could not send its next messages meanwhile: their deadlines move.
            self._client.postpone(trio.current_time() - begun_at)
        if waiting.cancelled_caught:
            self._client.note(f"no complete HTTP response to {request.name} within {timeout:g} s")

    async def _wait_for_free_slot(self) -> None:
        """Wait until another request may run. After a timeout, close requests to free a slot."""
        timeout = self._client.response_timeout
        deadline = trio.current_time() + timeout
        while len(self._running) >= _MAX_REQUESTS:
            with trio.move_on_at(deadline) as waiting:
                await self._changed.wait()
            if waiting.cancelled_caught:
                deadline += timeout
                for request, scope in self._running.items():
                    if not self._client.is_waiting_for(request.unanswered):
                        self._client.note(f"{request.name} was closed after {timeout:g} s")
                        scope.cancel()

    async def _run_limited(self, request: ReplayRequest, scope: trio.CancelScope) -> None:
        try:
            with scope:
                await self._run(request)
        finally:
            del self._running[request]
            self._wake()

    async def _run(self, request: ReplayRequest) -> None:
        """Send a request. If its event stream ends early, resume it until the response comes."""
        following: ReplayRequest | None = request
        last = request
        reason = ""
        while following is not None:
            last = following
            reason = await self._exchange(last)
            following = last.resumed() if last.unanswered else None
            if following is not None:
                await trio.sleep(following.retry)
        reason = reason or last.failure or "its HTTP response has no response to it"
        if last.unanswered:
            self._client.request_failed(last.unanswered, reason, trio.current_time())
        elif request.is_notice and (last.failure or reason.startswith("the")):
            self._client.note(f"the server did not accept a message: {reason}")
        self._wake()

    async def _run_stream(self, request: ReplayRequest) -> None:
        """Read the session's event stream. A server may refuse to open one."""
        following: ReplayRequest | None = request
        while following is not None:
            last = following
            await self._exchange(last)
            following = last.resumed()
            if following is not None:
                await trio.sleep(following.retry)

    async def _exchange(self, request: ReplayRequest) -> str:
        """Send one HTTP request. Return "", or why there is no complete HTTP response."""
        record = self._recorder.begin(request.head, request.body, "1.1")
        try:
            connection = self._idle.pop() if self._idle else await self._connector.connect()
        except ConnectFailed as exc:
            record.ended("server", "reset")
            return str(exc)
        reusable = False
        try:
            reusable = await connection.run(
                self._connector.absolute_head(request.head),
                request.body,
                lambda actions: self._receive(request, record, actions),
            )
        except ConnectionLost as exc:
            record.ended("server", "reset")
            return str(exc)
        except trio.Cancelled:
            record.ended("client", "closed")
            raise
        finally:
            if reusable:
                self._idle.append(connection)
            else:
                with trio.CancelScope(shield=True):
                    await connection.aclose()
        return ""

    def _receive(
        self, request: ReplayRequest, record: ExchangeRecorderLike, actions: list[Action]
    ) -> None:
        record.response(actions)
        for message in request.receive(actions):
            self._client.receive(message, trio.current_time())
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _keep_time(self) -> None:
        while True:
            changed = self._changed
            with trio.move_on_at(self._client.next_deadline) as timer:
                await changed.wait()
            if timer.cancelled_caught:
                async with self._time_lock:
                    self._client.advance(trio.current_time())
                self._wake()
