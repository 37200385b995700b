"""`client.listen()`: an `async with` block that subscribes, and an `async for` loop over changes.

`ClientSubscriptions` knows which message belongs to which subscription. This module connects
subscriptions with a connection and the tasks that wait. Every wait is a `PendingCall`, like any
other call. `async with` waits with the block's timeout, the loop without one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_core._errors import ConnectionLost, Fault, LocalProtocolError, RemoteProtocolError
from mcp_core.client._calls import CallOptions, CallSteps, CallWait, PendingCall
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.subscriptions._client import ClientSubscription, ClientSubscriptions
from mcp_core.protocol.subscriptions._server import Change

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.client._status import ConnectionStatus
    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.messages._events import Event

__all__ = ["Changes", "Subscription", "SubscriptionClient"]

_NO_LIMIT: Final[CallOptions] = {"timeout": None}
# A lost subscription is opened again after 1, 2, 4, 8 and 16 s, this many times in a row.
_ATTEMPTS: Final = 5
_FIRST_DELAY: Final = 1.0


class SubscriptionClient:
    """All subscriptions of one client.

    Args:
        conn: the client's connection.
        status: its status.
        call: makes a call, as `AbstractClient._call` does.
        pump: processes what a call into the connection has caused; never waits.
        later: calls a function after some seconds.
    """

    __slots__ = ("_conn", "_later", "_pump", "_status", "_subscriptions", "call")

    def __init__(
        self,
        conn: Connection,
        status: ConnectionStatus,
        call: Callable[[CallSteps[None], CallOptions], Awaitable[None]],
        pump: Callable[[], object],
        later: Callable[[float, Callable[[], object]], object],
    ) -> None:
        self._conn = conn
        self._status = status
        self._pump = pump
        self._later = later
        self._subscriptions = ClientSubscriptions()
        self.call = call

    def __repr__(self) -> str:
        return f"<SubscriptionClient on {self._conn!r}: {self._subscriptions!r}>"

    def open(self, wanted: tuple[Change, ...]) -> ClientSubscription:
        """Open a subscription. Always pass it to `close` in the end.

        Raises:
            ConnectionLost: the connection is closed.
        """
        self._status.require_alive()
        assert self._conn.peer is not None
        subscription = self._subscriptions.open(self._conn.peer, wanted)
        subscription.on_lost = partial(self._reopen_later, subscription)
        self._send_requests()
        return subscription

    def close(self, subscription: ClientSubscription) -> None:
        """End a subscription, and tell the server."""
        self.send_close(subscription)
        self._pump()

    def send_close(self, subscription: ClientSubscription) -> None:
        """End a subscription as `close` does, from within a step of a call: its caller pumps."""
        id = self._subscriptions.close(subscription)
        if id is not None:
            self._conn.send_cancel(id, "the subscription was closed")
        self._send_requests()

    def handle_event(self, event: Event) -> None:
        """Process one event. Responses must have been passed to their tokens before."""
        self._subscriptions.handle_event(event)
        self._send_requests()

    def wants(self, change: Change) -> bool:
        """Return True if a subscription names this very change, not a resource that contains it."""
        return self._subscriptions.covers(change)

    def _reopen_later(self, subscription: ClientSubscription, error: BaseException) -> bool:
        """Return True if a subscription that ended with `error` will be opened again."""
        lost = isinstance(error, ConnectionLost)
        busy = isinstance(error, RemoteProtocolError) and error.fault is Fault.BUSY
        if not (lost or busy) or self._conn.state is State.CLOSED:
            return False
        if subscription.consecutive_losses >= _ATTEMPTS:
            return False
        delay = _FIRST_DELAY * 2.0**subscription.consecutive_losses
        self._later(delay, partial(self._reopen, subscription))
        return True

    def _reopen(self, subscription: ClientSubscription) -> None:
        if self._conn.state is not State.CLOSED:
            assert self._conn.peer is not None
            self._subscriptions.reopen(subscription, self._conn.peer)
            self._send_requests()

    def _send_requests(self) -> None:
        while (request := self._subscriptions.next_request()) is not None:
            method, params, token = request
            try:
                token.id = self._conn.send_request(method, params, token=token)
            except LocalProtocolError as exc:
                token.end(None, exc)


class Subscription:
    """A subscription of `client.listen()`, for one `async with` block, which gets the `Changes`.

    The end of the block ends the subscription at the server.

    Args:
        client: the client's subscriptions.
        wanted: the changes to be notified of.
        options: the `CallOptions` of the request that opens it.

    Raises:
        RuntimeError: it is entered a second time.
        Exception: when it is entered, all that `AbstractClient.listen` names.
    """

    __slots__ = ("_client", "_options", "_subscription", "_wanted")

    def __init__(
        self, client: SubscriptionClient, wanted: tuple[Change, ...], options: CallOptions
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._options = options
        self._subscription: ClientSubscription | None = None

    def __repr__(self) -> str:
        return f"<Subscription {self._subscription or 'not entered'}>"

    async def __aenter__(self) -> Changes:
        if self._subscription is not None:
            raise RuntimeError("a subscription is for one block: call listen() again")
        self._subscription = self._client.open(self._wanted)
        changes = Changes(self._client, self._subscription)
        try:
            await self._client.call(changes._opened(), self._options)
            self._subscription.require_open()
        except BaseException:  # also when cancelled: the server must not keep the subscription
            self._client.close(self._subscription)
            raise
        return changes

    async def __aexit__(self, *_: object) -> None:
        assert self._subscription is not None
        self._client.close(self._subscription)


class Changes:
    """A subscription's changes, for `async for`.

    A change is given once, however often it happened since it was last given. The loop ends when
    the server ends the subscription, or the `async with` block is left. `listen` makes the object
    from the `client`'s subscriptions and this `subscription`.

    Raises:
        ConnectionLost: in the loop, after the last change: the connection ended, and changes may
            have been missed.
        PeerError: in the loop, after the last change: the server ended the subscription with an
            error.
    """

    __slots__ = ("_client", "_subscription", "_waiting")

    def __init__(self, client: SubscriptionClient, subscription: ClientSubscription) -> None:
        self._client = client
        self._subscription = subscription
        self._waiting: list[PendingCall[Any]] = []
        subscription.wake = self._wake

    def __repr__(self) -> str:
        return f"<Changes of {self._subscription!r}>"

    @property
    def honoured(self) -> tuple[Change, ...]:
        """The requested changes that the server has accepted."""
        return self._subscription.honoured

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change:
        while True:
            await self._client.call(self._changed(), _NO_LIMIT)
            # Only the task that returns a change takes it: a task cancelled in the wait loses none.
            change = self._subscription.next_change()
            if change is not None:
                return change
            if self._subscription.over:
                raise StopAsyncIteration

    def _opened(self) -> CallSteps[None]:
        while not self._subscription.settled:
            yield _ChangeWait(self._waiting, "listen")

    def _changed(self) -> CallSteps[None]:
        if not self._subscription.has_changes:
            yield _ChangeWait(self._waiting)

    def _wake(self) -> None:
        for call in list(self._waiting):
            call.end(None, None)


class _ChangeWait(CallWait):
    """A wait for a change, or the end, of a subscription. The call itself finds out which."""

    def __init__(self, waiting: list[PendingCall[Any]], name: str = "") -> None:
        self._waiting = waiting
        self.name = name
        self._call: PendingCall[Any]

    def begin(self, call: PendingCall[Any]) -> None:
        self._call = call
        self._waiting.append(call)

    def stop(self) -> None:
        self._waiting.remove(self._call)
