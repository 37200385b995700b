"""The client's end of an HTTP/1.1 connection, in bytes, and a fake router.

`HttpWire` sends bytes on a stream and reads responses with its own reader, which knows lengths and
chunks. `FakeRouter` has the interface of `mcp_core.http.Router`, with a response for each path.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import trio
import trio.testing

from mcp_core.http import Body, End, Head, RequestHead
from mcp_trio import memory_pair
from mcp_trio.http_server._connection import AccessLogEntry
from mcp_trio.http_server._driver import HttpServerDriver, open_http_server_driver
from mcp_trio.http_server._h11_connection import H11ServerConnection
from tests.harness.world.waiting import patience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp_core.http import Action

__all__ = [
    "Answer",
    "FakeExchange",
    "FakeRouter",
    "HttpWire",
    "get",
    "post",
    "serving",
    "split_answers",
]


class Answer(NamedTuple):
    """One response as it was read. Header names are in lower case."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


def post(
    target: str = "/echo", body: bytes = b"", *headers: bytes, version: bytes = b"1.1"
) -> bytes:
    """Return a request with a body."""
    lines = [b"POST %b HTTP/%b" % (target.encode(), version), b"host: localhost", *headers]
    if not any(header.lower().startswith(b"transfer-encoding") for header in headers):
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join([*lines, b"", body])


def get(target: str = "/echo", *headers: bytes, method: bytes = b"GET") -> bytes:
    """Return a request without a body."""
    return b"\r\n".join(
        [b"%b %b HTTP/1.1" % (method, target.encode()), b"host: localhost", *headers, b"", b""]
    )


class HttpWire:
    """An HTTP client on `stream`."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.buffer = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def more(self) -> bool:
        """Read more. Return False at the end."""
        with trio.fail_after(patience()):
            data = bytes(await self.stream.receive_some(65_536))
        self.buffer += data
        return bool(data)

    async def answer(self, *, to: bytes = b"POST") -> Answer:
        """Return the next complete response. `to` is the method of its request.

        Raises:
            EOFError: the connection ended before that.
        """
        while (found := _first(self.buffer, to)) is None:
            if not await self.more():
                found = _first(self.buffer, to, ended=True)
                if found is None:
                    raise EOFError(self.buffer)
                break
        answer, self.buffer = found
        return answer

    async def ask(self, request: bytes) -> Answer:
        await self.send(request)
        return await self.answer(to=request.partition(b" ")[0])

    async def until(self, wanted: bytes) -> bytes:
        """Read until `wanted` has arrived, and return everything up to it."""
        while wanted not in self.buffer:
            if not await self.more():
                raise EOFError(self.buffer)
        before, _, self.buffer = self.buffer.partition(wanted)
        return before + wanted

    async def rest(self) -> bytes:
        """Return everything up to the end of the connection."""
        while await self.more():
            pass
        received, self.buffer = self.buffer, b""
        return received


def split_answers(data: bytes) -> list[Answer]:
    """Return the responses in all bytes of a connection.

    Raises:
        ValueError: the last one is not whole.
    """
    answers = []
    while data:
        found = _first(data, b"POST", ended=True)
        if found is None:
            raise ValueError(data)
        answers.append(found[0])
        data = found[1]
    return answers


def _first(data: bytes, method: bytes, *, ended: bool = False) -> tuple[Answer, bytes] | None:
    """Return the first response in `data`, to a request with `method`, and the bytes behind it."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None
    first, *lines = head.split(b"\r\n")
    line = re.fullmatch(rb"HTTP/1\.1 (\d{3}) [^\r]*", first)
    assert line is not None, first
    status = int(line[1])
    pairs = [line.split(b": ", 1) for line in lines]
    headers: dict[bytes, bytes] = {}
    for name, value in pairs:
        # Of our headers only challenges may occur several times.
        assert name.lower() not in headers or name.lower() == b"www-authenticate", (
            f"a header stands twice: {head!r}"
        )
        headers[name.lower()] = b", ".join(filter(None, [headers.get(name.lower()), value]))
    if method == b"HEAD" or status in (100, 204, 304):
        return Answer(status, headers, b""), rest
    if b"content-length" in headers:
        assert b"transfer-encoding" not in headers
        size = int(headers[b"content-length"])
        return (Answer(status, headers, rest[:size]), rest[size:]) if len(rest) >= size else None
    if headers.get(b"transfer-encoding") == b"chunked":
        body = b""
        while True:
            length, newline, rest = rest.partition(b"\r\n")
            if not newline or len(rest) < (size := int(length, 16)) + 2:
                return None
            assert rest[size : size + 2] == b"\r\n"
            body, rest = body + rest[:size], rest[size + 2 :]
            if not size:
                return Answer(status, headers, body), rest
    return (Answer(status, headers, rest), b"") if ended else None


# -- A site --------------------------------------------------------------------------------------


class FakeExchange:
    """One request to a `FakeRouter`.

    `body` is what was received; `gone_at` is the time of a disconnect. `address`, `may_upgrade` and
    `http_version` are what the connection knows of the client.
    """

    conversation = None
    queued = 0
    auth_check = None
    socket = None
    mcp_method = ""
    address = ""
    may_upgrade = False
    http_version = ""

    def __init__(self, site: FakeRouter, head: RequestHead, token: Any) -> None:
        self.site = site
        self.head = head
        self.token = token
        self.body = b""
        self.reading = True
        self.over = False
        self.close_after = False
        self.gone_at: float | None = None
        self._actions: list[Action] = []

    def receive_data(self, data: bytes, now: float) -> None:
        assert self.reading
        assert self.gone_at is None
        self.body += data
        if not data:
            self.reading = False
            self.site.answer(self)

    def disconnected(self, now: float) -> None:
        assert self.gone_at is None
        self.gone_at, self.reading = now, False

    def send(self, *actions: Action) -> None:
        """Queue output, unless the client has disconnected."""
        if self.gone_at is None:
            self._actions += actions
            self.site.to_write.append(self)

    def actions_to_send(self) -> list[Action]:
        actions, self._actions = self._actions, []
        self.over = self.over or (bool(actions) and type(actions[-1]) is End)
        return actions


class FakeRouter:
    """A fake router: responses by path.

    `/echo`: the complete body. `/stream`: a head at once. `/nothing`: 204. `/refuse`: 403 without
    reading. `/hang-up`: 413, then close. `/fault`, `/fault-later`: an internal error. Others: what
    `on_complete` or the test says.
    """

    def __init__(self) -> None:
        self.exchanges: list[FakeExchange] = []
        self.to_write: list[FakeExchange] = []
        self.times: list[float] = []
        self.deadline: float | None = None
        self.log: list[str] = []
        self.on_complete: Callable[[FakeExchange], None] | None = None

    unread_limit = 1 << 24

    def begin(
        self,
        head: RequestHead,
        now: float,
        *,
        token: Any = None,
        address: str = "",
        may_upgrade: bool = False,
        http_version: str = "",
    ) -> Any:
        if head.target == b"/fault":
            raise ZeroDivisionError("a mistake of our own")
        exchange = FakeExchange(self, head, token)
        exchange.address = address
        exchange.may_upgrade = may_upgrade
        exchange.http_version = http_version
        self.exchanges.append(exchange)
        if head.target in (b"/refuse", b"/hang-up"):
            exchange.reading = False
            exchange.close_after = head.target == b"/hang-up"
            exchange.send(Head(413 if exchange.close_after else 403, []), Body(b"no"), End())
        return exchange

    def answer(self, exchange: FakeExchange) -> None:
        match exchange.head.target.partition(b"?")[0]:
            case b"/fault-later":
                raise ZeroDivisionError("a mistake of our own")
            case b"/stream":
                exchange.send(Head(200, [(b"content-type", b"text/event-stream")]))
            case b"/nothing":
                exchange.send(Head(204, []), End())
            case b"/bad-header":
                exchange.send(Head(200, [(b"x", b"a\r\nb")]), End())
            case b"/echo":
                headers = [
                    (b"content-type", b"text/plain"),
                    (b"content-length", b"%d" % len(exchange.body)),
                ]
                body = [Body(exchange.body)] if exchange.body else []
                exchange.send(Head(200, headers), *body, End())
        if self.on_complete is not None:
            self.on_complete(exchange)

    def receive_data(
        self, exchange: FakeExchange, data: bytes, now: float, *, end: bool = False
    ) -> None:
        exchange.receive_data(data, now)
        if data and end:
            exchange.receive_data(b"", now)

    def disconnected(self, exchange: FakeExchange, now: float) -> None:
        exchange.disconnected(now)

    def actions_to_send(self, exchange: FakeExchange) -> list[Action]:
        return exchange.actions_to_send()

    def pump(self, on_event: Any) -> None:
        ready, self.to_write = self.to_write, []
        for exchange in ready:
            exchange.token.wake()

    def next_deadline(self) -> float | None:
        return self.deadline

    def handle_timeout(self, now: float) -> None:
        if self.deadline is not None and now >= self.deadline:
            self.times.append(now)
            self.deadline = None

    def shutdown(self) -> None:
        self.log.append("shutdown")

    def close(self) -> None:
        self.log.append("close")


class LastStream(FakeRouter):
    """A fake router with a session that expires a minute after its stream has ended."""

    def disconnected(self, exchange: FakeExchange, now: float) -> None:
        super().disconnected(exchange, now)
        self.deadline = now + 60


class Serving:
    """A driver for a router, with connections to it. `open` is the number of served ones."""

    def __init__(self, driver: HttpServerDriver, nursery: trio.Nursery) -> None:
        self.driver = driver
        self.nursery = nursery
        self.access_log: list[AccessLogEntry] = []
        self.connections: list[H11ServerConnection] = []
        self.open = 0

    def connect(self, stream: trio.abc.Stream | None = None) -> HttpWire:
        """Return a new connection, or one on `stream`, whose other end the test uses itself."""
        ours, theirs = memory_pair()
        connection = H11ServerConnection(self.driver, stream or ours, self.access_log.append)
        self.connections.append(connection)
        self.open += 1

        async def serve() -> None:
            try:
                await connection.serve()
            finally:
                self.open -= 1

        self.nursery.start_soon(serve)
        return HttpWire(theirs)


@asynccontextmanager
async def serving(site: Any) -> AsyncIterator[Serving]:
    """Serve `site`. Open connections are cancelled at the end."""
    async with open_http_server_driver(site) as driver, trio.open_nursery() as nursery:
        yield Serving(driver, nursery)
        nursery.cancel_scope.cancel()
