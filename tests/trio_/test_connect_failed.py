"""What a user reads when `connect(url)` comes to nothing: the cause and, where there is one, the cure; no method that he never called.

Each row is a server of this machine that plays its part in bytes, on a real socket. Names and certificates are in `test_dial.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trustme

from mcp_core import ALL
from mcp_trio import AuthRequired, ConnectFailed, connect
from tests.core.helpers import D, E
from tests.trio_.test_dial import environment, listening, theirs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core import McpTrioError

    Serve = Callable[[trio.abc.Stream], Awaitable[None]]

__all__ = ["environment"]

HTML = "text/html"
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
REFUSAL = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no host x here"}}'


def answering(status: str, body: str = "<html>", type: str = HTML, **headers: str) -> Serve:
    """Answers each request so."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {type}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    answer = "\r\n".join([*lines, "", body]).encode()

    async def serve(stream: trio.abc.Stream) -> None:
        received = bytearray()
        while data := await stream.receive_some():
            received += data
            head, end, rest = received.partition(b"\r\n\r\n")
            length = LENGTH.search(head)
            if end and len(rest) >= (int(length[1]) if length else 0):
                received.clear()
                await stream.send_all(answer)

    return serve


def saying(words: bytes, *, first: bool = False) -> Serve:
    """Says something, at once or when it is spoken to, and waits."""

    async def serve(stream: trio.abc.Stream) -> None:
        if not first:
            await stream.receive_some()
        await stream.send_all(words)
        await trio.sleep_forever()

    return serve


async def hang_up(stream: trio.abc.Stream) -> None:
    await stream.receive_some()


IS_THIS = "is this the URL of an MCP server?"
STRANGER = "the server's answer is no HTTP/1.1; is something else listening there?"
FAILURES: list[Any] = [
    (answering("404 Not Found"), f"HTTP status 404 Not Found: {IS_THIS}"),
    (answering("401 Unauthorized", www_authenticate="Bearer"), "HTTP status 401 Unauthorized: the server wants an access token, in the header authorization: connect with auth=True, or log in with `mcp-trio login`"),
    (answering("403 Forbidden"), "HTTP status 403 Forbidden: the server does not let us in, or not under this name"),
    (answering("403 Forbidden", REFUSAL, "application/json"), "HTTP status 403 Forbidden: the server does not let us in, or not under this name (no host x here)"),
    (answering("405 No"), f"HTTP status 405 Method Not Allowed: {IS_THIS}"),
    (answering("406 No"), "HTTP status 406 Not Acceptable: the server can answer neither by JSON nor by events. Is this the URL of an MCP server?"),
    (answering("500 Oh"), "HTTP status 500 Internal Server Error: its log may say why"),
    (answering("503 Busy", retry_after="7"), "HTTP status 503 Service Unavailable; try again after 7 s"),
    (answering("503 Busy", "later\n", "text/plain"), "HTTP status 503 Service Unavailable; try again later (later)"),
    (answering("307 There", location="https://there/mcp"), "HTTP status 307, redirects are not followed: connect to https://there/mcp instead"),
    (answering("200 OK"), f"the answer is of type 'text/html' instead of JSON or a stream of events; {IS_THIS}"),
    (answering("200 OK", "{}", "application/json"), f"the answer is none: not a JSON-RPC message: Object missing required field `jsonrpc`; {IS_THIS}"),
    (answering("200 OK", "", "application/json"), f"the server accepts it (status 200) and gives no answer; {IS_THIS}"),
    (answering("200 OK", "data: hello\n\n", "text/event-stream"), f"the stream ended without the answer; {IS_THIS}"),
    (answering("200 OK", "x", "application/json", content_encoding="gzip"), "the body is encoded (gzip), which was not asked for; is it a proxy that does that?"),
    (saying(b"SSH-2.0-OpenSSH_9.9\r\n", first=True), STRANGER),
    (saying(b"-ERR unknown command\r\n"), STRANGER),
    (saying(bytes(range(256))), STRANGER),
    (saying(b"\x15\x03\x01\x00\x02\x02\x46"), "the server speaks TLS; is its address https:// instead?"),
    (hang_up, "the server closed the connection without an answer; is it an HTTP server, with TLS or without as the URL says?"),
]  # fmt: skip


async def why(url: str, *versions: str) -> McpTrioError:
    with pytest.raises(ConnectFailed) as caught, trio.fail_after(10):
        await connect(url, versions=versions or ALL).__aenter__()
    return caught.value


@pytest.mark.parametrize(
    ("serve", "text"), FAILURES, ids=lambda each: each[:60] if isinstance(each, str) else ""
)
@pytest.mark.parametrize("versions", [(), (D,)], ids=["any revision", D])
async def test_the_cause_and_the_cure(serve: Serve, text: str, versions: tuple[str, ...]) -> None:
    async with listening(serve) as port:
        error = await why(f"http://127.0.0.1:{port}/mcp", *versions)
    assert str(error) == text
    assert isinstance(error.__cause__, AuthRequired) == ("401" in text)


@pytest.mark.parametrize("status", ["404 Not Found", "405 No"])
async def test_what_may_be_a_server_of_another_era(status: str) -> None:
    async with listening(answering(status)) as port:
        error = await why(f"http://127.0.0.1:{port}/mcp", E)
    assert str(error).startswith(f"the server does not speak {E} (HTTP status {status[:3]} ")
    assert str(error).endswith(f"{IS_THIS}). Allow an older revision to connect with a handshake.")


async def test_nobody_listens() -> None:
    async with listening(hang_up) as port:
        pass
    assert str(await why(f"http://127.0.0.1:{port}/mcp")) == (
        f"cannot connect to 127.0.0.1:{port}: connection refused; is the server running, and on this port?"
    )


async def test_with_tls_and_without() -> None:
    async with listening(hang_up, theirs(trustme.CA(), "127.0.0.1")) as port:
        assert str(await why(f"https://127.0.0.1:{port}/mcp")).startswith(
            f"the certificate of 127.0.0.1:{port} is not trusted: unable to get local issuer certificate; if"
        )
        assert "with TLS or without as the URL says?" in str(await why(f"http://127.0.0.1:{port}/mcp"))
    async with listening(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
        assert str(await why(f"https://127.0.0.1:{port}/mcp")) == (
            f"127.0.0.1:{port} does not speak TLS; is its address http:// instead?"
        )
