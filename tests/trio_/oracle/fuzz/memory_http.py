"""A server over HTTP in memory as a target of the fuzzer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import h11
import trio

from mcp_trio.oracle.fuzz._http import UrlTarget
from mcp_trio.oracle.fuzz.play._player import Player, play_case

from .memory_target import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_trio.oracle.fuzz._case import Case, Outcome

SESSION = "a-session-0123456789"
JSON, SSE = "application/json", "text/event-stream"


class HttpResponse(NamedTuple):
    """The response of the server to a request, sent once `after` is set.

    With `is_cut` the connection ends before the end of the response. `session` is in its head.
    """

    status: int = 200
    type: str = JSON
    body: bytes = b""
    is_cut: bool = False
    after: trio.Event | None = None
    session: str = SESSION


EMPTY_STREAM = HttpResponse(type=SSE)


def response_to(message: Mapping[str, Any]) -> HttpResponse:
    """Return what a correct server without features sends for a message."""
    for each in answers(message):
        return HttpResponse(body=json.dumps(each).encode())
    return HttpResponse(202)


class MemoryHttpServer:
    """A server with one session.

    Args:
        respond: returns the response to a message; to `{}` for a request without one.

    Attributes:
        received: the messages.
    """

    def __init__(
        self, nursery: trio.Nursery, respond: Callable[[Mapping[str, Any]], HttpResponse]
    ) -> None:
        self.received: list[Mapping[str, Any]] = []
        self._nursery = nursery
        self._respond = respond

    async def connect_stream(self) -> trio.abc.Stream:
        """Return a connection to the server."""
        await trio.lowlevel.checkpoint()
        ours, theirs = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self._serve, theirs)
        return ours

    async def _serve(self, stream: trio.StapledStream[Any, Any]) -> None:
        connection = h11.Connection(h11.SERVER)
        body = b""
        async with stream:
            while True:
                try:
                    event = connection.next_event()
                except h11.RemoteProtocolError:
                    return  # the client has sent a part of a request
                if event is h11.NEED_DATA:
                    connection.receive_data(bytes(await stream.receive_some()))
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    message = _decoded(body)
                    body = b""
                    self.received.append(message)
                    response = self._respond(message if isinstance(message, dict) else {})
                    if response.after is not None:
                        await response.after.wait()
                    await self._send(connection, stream, response)
                    if response.is_cut:
                        return
                    connection.start_next_cycle()
                elif not isinstance(event, h11.Request):
                    return

    async def _send(
        self, connection: h11.Connection, stream: trio.abc.SendStream, response: HttpResponse
    ) -> None:
        head = h11.Response(
            status_code=response.status,
            headers=[
                ("content-type", response.type),
                ("content-length", str(len(response.body) + response.is_cut)),
                ("mcp-session-id", response.session),
            ],
        )
        data = connection.send(head) or b""
        if response.body:
            data += connection.send(h11.Data(data=response.body)) or b""
        if not response.is_cut:
            data += connection.send(h11.EndOfMessage()) or b""
        await stream.send_all(data)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return {}


async def played_over_http(
    respond: Callable[[Mapping[str, Any]], HttpResponse], case: Case, player: Player | None = None
) -> tuple[Outcome, list[Mapping[str, Any]]]:
    """Play a case against a server in memory. Return what became of it, and what was received."""
    async with trio.open_nursery() as nursery:
        target = UrlTarget("http://127.0.0.1:1/mcp", nursery)
        server = MemoryHttpServer(nursery, respond)
        target._connector = server  # type: ignore[assignment]
        outcome = await play_case(target, case, player)
        nursery.cancel_scope.cancel()
    return outcome, server.received


def responds_with(
    response: HttpResponse, method: str = "tools/list"
) -> Callable[[Mapping[str, Any]], HttpResponse]:
    """Return the behaviour of a correct server, but for the requests of a method."""
    return lambda message: (
        response if message.get("method") == method and "id" in message else response_to(message)
    )


async def faults_of(
    respond: Callable[[Mapping[str, Any]], HttpResponse], *case: Any
) -> list[tuple[str, str, str]]:
    """Return kind, row and method of the faults that a case shows."""
    outcome, _ = await played_over_http(respond, list(case))
    return [(each.kind, each.row, each.method) for each in outcome.faults]
