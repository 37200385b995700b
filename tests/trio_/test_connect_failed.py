"""Error texts of `connect(url)`: the cause and, where there is one, the cure. No internal names.

Each row is a server on this machine that sends bytes on a real socket. Names and certificates are
tested in `test_dial.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trustme

from mcp_core import ALL
from mcp_trio import AuthRequired, ConnectFailed, connect, connect_stdio
from tests.harness.jsonrpc import D, E
from tests.harness.world.waiting import PATIENCE
from tests.trio_.http_client.test_connector import environment, listening, theirs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core import McpTrioError

    Serve = Callable[[trio.abc.Stream], Awaitable[None]]

__all__ = ["environment"]

HTML = "text/html"
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
REFUSAL = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no host x here"}}'


def answering(status: str, body: str = "<html>", type: str = HTML, **headers: str) -> Serve:
    """Return a server that answers every request with this response."""
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
    """Return a server that sends `words`, at once or after the first bytes, and waits."""

    async def serve(stream: trio.abc.Stream) -> None:
        if not first:
            await stream.receive_some()
        await stream.send_all(words)
        await trio.sleep_forever()

    return serve


async def close_after(stream: trio.abc.Stream) -> None:
    await stream.receive_some()


IS_THIS = "is this the URL of an MCP server?"
STRANGER = "the server's answer is not HTTP/1.1; is something else listening there?"
FAILURES: list[Any] = [
    (answering("404 Not Found"), f"HTTP status 404 Not Found: {IS_THIS}"),
    (
        answering("401 Unauthorized", www_authenticate="Bearer"),
        (
            "HTTP status 401 Unauthorized: the server wants an access token, in the header"
            " authorization: connect with auth=True, or log in with `mcp-trio login`"
        ),
    ),
    (
        answering("403 Forbidden"),
        (
            "HTTP status 403 Forbidden: the server denies access, or does not accept this host"
            " name or origin"
        ),
    ),
    (
        answering("403 Forbidden", REFUSAL, "application/json"),
        (
            "HTTP status 403 Forbidden: the server denies access, or does not accept this host"
            " name or origin (no host x here)"
        ),
    ),
    (answering("405 No"), f"HTTP status 405 Method Not Allowed: {IS_THIS}"),
    (
        answering("406 No"),
        (
            "HTTP status 406 Not Acceptable: the server can send neither JSON nor an event"
            " stream. Is this the URL of an MCP server?"
        ),
    ),
    (answering("500 Oh"), "HTTP status 500 Internal Server Error: its log may say why"),
    (
        answering("503 Busy", retry_after="7"),
        "HTTP status 503 Service Unavailable; try again after 7 s",
    ),
    (
        answering("503 Busy", "later\n", "text/plain"),
        "HTTP status 503 Service Unavailable; try again later (later)",
    ),
    (
        answering("307 There", location="https://there/mcp"),
        (
            "HTTP status 307, a redirect to another origin, which is not followed: connect to"
            " https://there/mcp instead"
        ),
    ),
    (
        answering("200 OK"),
        f"the response is of type 'text/html' instead of JSON or an event stream, perhaps a login page; {IS_THIS}",
    ),
    (
        answering("200 OK", "{}", "application/json"),
        (
            "the response is invalid: not a JSON-RPC message: Object missing required field"
            f" `jsonrpc`; {IS_THIS}"
        ),
    ),
    (
        answering("200 OK", "", "application/json"),
        f"the server accepted the request (status 200) but sent no response to it; {IS_THIS}",
    ),
    (
        answering("200 OK", "data: hello\n\n", "text/event-stream"),
        f"the stream ended without the response; {IS_THIS}",
    ),
    (
        answering("200 OK", "x", "application/json", content_encoding="gzip"),
        "the body is encoded (gzip), which the client did not request; does a proxy encode it?",
    ),
    (saying(b"SSH-2.0-OpenSSH_9.9\r\n", first=True), STRANGER),
    (saying(b"-ERR unknown command\r\n"), STRANGER),
    (saying(bytes(range(256))), STRANGER),
    (
        saying(b"\x15\x03\x01\x00\x02\x02\x46"),
        "the server speaks TLS; is its address https:// instead?",
    ),
    (
        close_after,
        (
            "the server closed the connection without an answer; is it an HTTP server, with TLS or"
            " without as the URL says?"
        ),
    ),
]


async def why(url: str, *versions: str) -> McpTrioError:
    with pytest.raises(ConnectFailed) as caught, trio.fail_after(PATIENCE):
        await connect(url, versions=versions or ALL).__aenter__()
    return caught.value


@pytest.mark.parametrize(
    ("serve", "text"), FAILURES, ids=lambda each: each[:60] if isinstance(each, str) else ""
)
@pytest.mark.parametrize("versions", [(), (D,)], ids=["any revision", D])
async def test_connect_http_failure_names_cause_and_cure(
    serve: Serve, text: str, versions: tuple[str, ...]
) -> None:
    async with listening(serve) as port:
        error = await why(f"http://127.0.0.1:{port}/mcp", *versions)
    assert str(error) == text
    assert isinstance(error.__cause__, AuthRequired) == ("401" in text)


@pytest.mark.parametrize("status", ["404 Not Found", "405 No"])
async def test_connect_http_failure_suggests_an_older_revision(status: str) -> None:
    async with listening(answering(status)) as port:
        error = await why(f"http://127.0.0.1:{port}/mcp", E)
    assert str(error).startswith(f"the server does not speak {E} (HTTP status {status[:3]} ")
    assert str(error).endswith(f"{IS_THIS}). Allow an older revision to connect with a handshake.")


async def test_connect_http_refused_names_the_address() -> None:
    async with listening(close_after) as port:
        pass
    assert str(await why(f"http://127.0.0.1:{port}/mcp")) == (
        f"cannot connect to 127.0.0.1:{port}: connection refused; is the server running, and"
        " on this port?"
    )


async def test_connect_http_with_wrong_tls_setting_names_it() -> None:
    async with listening(close_after, theirs(trustme.CA(), "127.0.0.1")) as port:
        assert str(await why(f"https://127.0.0.1:{port}/mcp")).startswith(
            f"the certificate of 127.0.0.1:{port} is not trusted: unable to get local issuer"
            " certificate; if"
        )
        assert "with TLS or without as the URL says?" in str(
            await why(f"http://127.0.0.1:{port}/mcp")
        )
    async with listening(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
        assert str(await why(f"https://127.0.0.1:{port}/mcp")) == (
            f"127.0.0.1:{port} does not speak TLS; is its address http:// instead?"
        )


async def test_connect_to_a_missing_program_fails() -> None:
    with pytest.raises(ConnectFailed, match="no program of that name"):
        await connect(["no-such-program-anywhere"]).__aenter__()
    with pytest.raises(TypeError, match="argv must be a sequence of words"):
        await connect_stdio("no words").__aenter__()
    with pytest.raises(TypeError, match=r'write \["x", "--api-key", "\.\.\."\]$'):
        await connect_stdio("x --api-key CANARY").__aenter__()
