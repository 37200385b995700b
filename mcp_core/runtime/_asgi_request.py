"""One request to an ASGI application, on any runtime: what it awaits, and in which order.

Most requests are complete once their body is read, so no task is started for them. A task that
receives (`http.disconnect`, WebSocket messages) runs only while a response is being streamed, or is
so long that sending it may block.
Translation between ASGI messages and HTTP is in `AsgiHttpExchange` and `AsgiWebSocket`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

from mcp_core.http.server._asgi_websocket import asgi_exchange
from mcp_core.http.server._exchange import Exchange
from mcp_core.http.server._router import Router
from mcp_core.http.server._session import HIGH_WATER

from ._runtime import EventLike

__all__ = ["AsgiRequest", "AsgiRuntime", "Receive", "Send"]

Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]


class AsgiRuntime(Protocol):
    """The driver of ASGI requests: a runtime, and a router whose events it processes."""

    @property
    def router(self) -> Router:
        """The router that the requests are passed to."""

    def clock(self) -> float:
        """Return the current time, on the clock that the router uses."""

    def new_event(self) -> EventLike:
        """Create an event of this runtime."""

    def pump(self) -> None:
        """Process the router's events. Call it after every call into the router; never waits."""

    def output_sent(self, exchange: Exchange) -> None:
        """Let handlers that wait for space in the output continue, unless `pump` did.

        Call it when the server has accepted the output of `exchange`, or never will.
        """

    async def authorize(self, exchange: Exchange) -> None:
        """Run the auth check of `exchange`, if it has one, until it is granted or denied."""

    def interruptible(self) -> AbstractAsyncContextManager[Callable[[], object]]:
        """Return a context that gives a function. The function ends the wait in the context's body.

        The context then ends without an exception. Call the function at most once.
        """

    def run_beside(
        self, function: Callable[[], Coroutine[Any, Any, bool]]
    ) -> AbstractAsyncContextManager[object]:
        """Run `function` in a second task while the context is entered.

        If it returns True the client has disconnected, and the body of the context may be
        cancelled. Leaving the context cancels the task, waits for it, and raises its exception.
        """


class AsgiRequest:
    """One call of an application with an `http` or `websocket` scope. Await `run` once.

    The request is its exchange's token: the driver calls `wake` on it.

    Args:
        runtime: the driver.
        scope: the scope of the call (ASGI, HTTP and WebSocket connection scope).
        receive: the server's function that gives the next message from the client.
        send: the server's function that sends a message to the client.
    """

    __slots__ = (
        "_asgi_exchange",
        "_interrupt",
        "_output_ready",
        "_receive",
        "_receive_ended",
        "_runtime",
        "_send",
        "_sending",
        "_wakeup",
    )

    def __init__(
        self, runtime: AsgiRuntime, scope: Mapping[str, Any], receive: Receive, send: Send
    ) -> None:
        self._runtime = runtime
        self._receive = receive
        self._send = send
        self._output_ready = False
        self._receive_ended = False
        self._sending = False
        self._interrupt: Callable[[], object] | None = None  # set while a body is awaited
        self._wakeup = runtime.new_event()
        # Last: from here on the router may call `wake`.
        self._asgi_exchange = asgi_exchange(runtime.router, scope, runtime.clock(), token=self)

    def __repr__(self) -> str:
        return f"<AsgiRequest {self._asgi_exchange!r}>"

    def wake(self) -> None:
        """Report that there is output to send, or that a paused WebSocket may receive again."""
        # Events are one-shot: each wake-up sets the current event and installs the next one.
        wakeup = self._wakeup
        self._wakeup = self._runtime.new_event()
        self._output_ready = True
        wakeup.set()
        interrupt = self._interrupt
        if interrupt is not None:
            self._interrupt = None
            interrupt()

    async def run(self) -> None:
        """Serve the request until its response is sent or the client disconnects."""
        exchange = self._asgi_exchange.exchange
        try:
            self._runtime.pump()
            await self._runtime.authorize(exchange)
            if exchange.reading:
                async with self._runtime.interruptible() as interrupt:
                    while exchange.reading:
                        # The request may be answered before its body is complete.
                        await self._receive_message(interrupt)
            if exchange.queued <= HIGH_WATER:
                await self._send_output()
            if not self._asgi_exchange.over:
                await self._stream_response()
        finally:
            # Also after cancellation: the router must not keep an exchange that has no task.
            self._disconnect()
            # They keep the body's buffered part in memory, which may be large if the request was
            # refused. The request and its exchange refer to each other, so only the garbage
            # collector frees them.
            del self._receive, self._send

    async def _stream_response(self) -> None:
        async with self._runtime.run_beside(self._receive_until_over):
            while not (self._asgi_exchange.over or self._receive_ended):
                while not self._output_ready:
                    await self._wakeup.wait()
                await self._send_output()

    async def _receive_until_over(self) -> bool:
        """Receive until the exchange is over. Return True if the client disconnected."""
        try:
            # Also while the last output is being sent: a client may disconnect without reading it.
            while not self._asgi_exchange.over or (self._sending and not self._asgi_exchange.gone):
                await self._receive_message()
                while self._asgi_exchange.paused:
                    await self._wakeup.wait()
            return self._asgi_exchange.gone
        finally:
            # The sending loop waits for output, which may never come if a server raises here.
            self._receive_ended = True
            self.wake()

    async def _receive_message(self, interrupt: Callable[[], object] | None = None) -> None:
        self._interrupt = interrupt
        message = await self._receive()
        self._interrupt = None
        self._asgi_exchange.receive(message, self._runtime.clock())
        self._runtime.pump()

    async def _send_output(self) -> None:
        """Send what is queued. It waits until the server has accepted it, which is backpressure."""
        self._output_ready = False  # before the queue is read, so that no later wake-up is lost
        self._sending = True
        messages = self._asgi_exchange.messages_to_send(self._runtime.clock())
        self._runtime.pump()
        try:
            for message in messages:
                if self._asgi_exchange.gone:
                    # The client disconnected during the last `send`. Some servers raise an
                    # exception if the application sends anything after that.
                    break
                await self._send(message)
        except OSError:  # ASGI: `send` raises it once the client has disconnected
            self._disconnect()
        self._sending = False
        self._runtime.output_sent(self._asgi_exchange.exchange)

    def _disconnect(self) -> None:
        """Detach from the exchange. Does nothing more once the response is complete."""
        self._asgi_exchange.disconnected(self._runtime.clock())
        self._runtime.pump()
        self._runtime.output_sent(self._asgi_exchange.exchange)
