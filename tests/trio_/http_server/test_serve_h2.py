"""An MCP server over HTTP/2: calls, flow control, protocol detection, and other HTTP/2 clients."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
import trustme

from mcp_core.http import PlainResponse
from mcp_core.http.wire._http2_frames import PREFACE
from mcp_core.registry import Context, Server
from mcp_trio import serve_http
from tests.harness.jsonrpc import (
    C,
    D,
    E,
    Message,
    encoded,
    initialize,
    request,
    stateless_request,
)
from tests.harness.wire.http1_client import HttpWire, get
from tests.harness.wire.http2_client import H2Answer, H2Wire
from tests.harness.wire.http2_frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HELLO,
    RST_STREAM,
    frame,
    number,
    post,
    window,
)
from tests.harness.wire.http_session import events_in, served_over_http
from tests.harness.world.waiting import PATIENCE, patience
from tests.trio_.http_server.test_auth import StalledVerifier, guard, scoped_server

if TYPE_CHECKING:
    pass

MockClock = trio.testing.MockClock
wait = trio.testing.wait_all_tasks_blocked
CANCEL = 8
ROUTES = {"/healthz": lambda head: PlainResponse(200, b"ok\n")}


def make(notes: list[str]) -> Server:
    server = Server("teahouse")

    @server.tool
    def hello() -> str:
        """Return a greeting."""
        return "hello"

    @server.tool
    async def sleep(seconds: float) -> str:
        """Sleep."""
        try:
            await trio.sleep(seconds)
        except trio.Cancelled:
            notes.append("cancelled")
            raise
        return "slept"

    @server.tool
    async def steps(context: Context, count: int, size: int = 0) -> str:
        """Report progress."""
        for step in range(count):
            await context.progress(step, message="x" * size)
            notes.append(f"step {step}")
        return "there"

    return server


class H2Session(H2Wire):
    """A client in revision `version`, with the `session` that it was given."""

    def __init__(self, stream: trio.abc.Stream, version: str) -> None:
        super().__init__(stream)
        self.version = version
        self.session = b""
        self.id = -1

    def posting(self, message: Message, path: bytes = b"/mcp") -> bytes:
        """Return the bytes of a POST of `message` on a new stream; its number is then in `id`."""
        self.id += 2
        headers = [
            (b"content-type", b"application/json"),
            (b"accept", b"application/json, text/event-stream"),
        ]
        if message.get("method") != "initialize":
            headers.append((b"mcp-protocol-version", self.version.encode()))
        if self.session:
            headers.append((b"mcp-session-id", self.session))
        if self.version == E:
            headers.append((b"mcp-method", message["method"].encode()))
            if "name" in message.get("params", {}):
                headers.append((b"mcp-name", message["params"]["name"].encode()))
        return post(self.id, path, *headers) + frame(DATA, END_STREAM, self.id, encoded(message))

    async def post(self, message: Message) -> H2Answer:
        await self.send(self.posting(message))
        return await self.answer(self.id)

    def calling(
        self, id: Any, name: str, arguments: dict[str, Any] | None = None, **meta: Any
    ) -> Message:
        params = {"name": name, "arguments": arguments or {}}
        if self.version == E:
            return stateless_request(id, "tools/call", params, **meta)
        return request(id, "tools/call", {**params, "_meta": meta} if meta else params)

    async def shake_hands(self) -> None:
        await self.meet()
        if self.version != E:
            answer = await self.post(initialize(self.version))
            assert answer.status == 200, answer
            self.session = answer.headers[b"mcp-session-id"]
            assert (
                await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
            ).status == 202


def text_of(message: Message) -> str:
    text = message["result"]["content"][0]["text"]
    assert isinstance(text, str)
    return text


# -- Conversations -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2025-03-26", C, D, E])
async def test_http2_concurrent_calls(version: str, autojump_clock: MockClock) -> None:
    """Fifty calls on one connection end in reverse order, and a quick one isn't delayed."""
    async with served_over_http(make([])) as listener:
        session = H2Session(listener.connect(), version)
        await session.shake_hands()
        ids = []
        for seconds in range(50, 0, -1):
            await session.send(
                session.posting(session.calling(seconds, "sleep", {"seconds": seconds}))
            )
            ids.append(session.id)
        quick = await session.post(session.calling("quick", "hello"))
        assert quick.headers[b"content-type"] == b"application/json"
        assert text_of(json.loads(quick.body)) == "hello"
        assert trio.current_time() == 0
        for id in reversed(ids):
            answer = await session.answer(id)
            message = (
                json.loads(answer.body) if answer.body[:1] == b"{" else events_in(answer.body)[-1]
            )
            assert text_of(message) == "slept"
        assert trio.current_time() == 50


@pytest.mark.parametrize("version", [D, E])
async def test_http2_progress_is_an_event_stream(version: str) -> None:
    async with served_over_http(make([])) as listener:
        session = H2Session(listener.connect(), version)
        await session.shake_hands()
        answer = await session.post(session.calling(1, "steps", {"count": 3}, progressToken="t"))
        assert answer.headers[b"content-type"] == b"text/event-stream"
        *steps, result = events_in(answer.body)
        assert [step["params"]["progress"] for step in steps] == [0, 1, 2]
        assert text_of(result) == "there"


@pytest.mark.parametrize("version", [D, E])
async def test_http2_handler_waits_for_the_window_of_its_client(
    version: str, autojump_clock: MockClock
) -> None:
    """Flow control reaches the handler, while other calls on the connection go on."""
    notes: list[str] = []
    async with served_over_http(make(notes)) as listener:
        session = H2Session(listener.connect(), version)
        await session.shake_hands()
        await session.send(window(0, 2**30))
        await session.send(
            session.posting(
                session.calling(1, "steps", {"count": 1_000, "size": 1_000}, progressToken="t")
            )
        )
        slow = session.id
        await wait()
        await session.settle()
        for id in range(2, 12):
            assert (
                text_of(json.loads((await session.post(session.calling(id, "hello"))).body))
                == "hello"
            )
        await wait()
        taken = len(notes)
        assert 50 < taken < 300  # sent, pulled from the exchange, and allowed to wait
        for id in range(12, 22):
            assert (
                text_of(json.loads((await session.post(session.calling(id, "hello"))).body))
                == "hello"
            )
        assert len(notes) == taken
        await session.send(window(slow, 100_000))
        await session.settle()
        await wait()
        assert taken < len(notes) < 500
        await session.send(window(slow, 2**30))
        answer = await session.answer(slow)
        assert len(notes) == 1_000
        assert text_of(events_in(answer.body)[-1]) == "there"


async def test_http2_reset_cancels_the_call_by_revision(autojump_clock: MockClock) -> None:
    notes: list[str] = []
    async with served_over_http(make(notes)) as listener:
        for version, cancels in (E, True), (D, False):
            session = H2Session(listener.connect(), version)
            await session.shake_hands()
            await session.send(session.posting(session.calling(1, "sleep", {"seconds": 100})))
            await session.settle()
            await session.send(frame(RST_STREAM, 0, session.id, number(CANCEL)))
            await session.settle()
            await wait()
            assert notes == (["cancelled"] if cancels else [])
            assert (await session.post(session.calling(2, "hello"))).status == 200
            notes.clear()


async def test_http2_shutdown_is_orderly(autojump_clock: MockClock) -> None:
    """An idle client, a silent one and a busy one each get the right goodbye."""
    notes: list[str] = []
    stop = trio.Event()
    async with served_over_http(make(notes), stop=stop, grace=5) as listener:
        busy, idle, silent = (
            H2Session(listener.connect(), E),
            H2Session(listener.connect(), E),
            H2Wire(listener.connect()),
        )
        await busy.shake_hands()
        await idle.shake_hands()
        await busy.send(busy.posting(busy.calling(1, "sleep", {"seconds": 3})))
        await busy.send(busy.posting(busy.calling(2, "sleep", {"seconds": 100})))
        await busy.settle()
        stop.set()
        assert await idle.end() == 0
        await idle.stream.aclose()
        assert not await silent.more()
        assert (await busy.until(GOAWAY)).number == 2**31 - 1
        assert (await busy.post(busy.calling(3, "hello"))).status == 503
        answer = await busy.answer(1)
        assert text_of(json.loads(answer.body)) == "slept"
        assert (await busy.answer(3)).whole
        assert notes == ["cancelled"]
        assert await busy.end() == 0


# -- Authorization -------------------------------------------------------------------------------


def guarded_call(session: H2Session, token: str) -> tuple[bytes, bytes]:
    """Return the head and the body of a call with `token`."""
    message = session.calling(1, "whoami")
    fields = [
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
        (b"mcp-protocol-version", E.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b"whoami"),
        (b"authorization", b"Bearer " + token.encode()),
    ]
    session.id += 2
    return post(session.id, b"/mcp", *fields), encoded(message)


async def test_http2_token_check_does_not_block_other_streams() -> None:
    """The identity provider hangs; a health check on the same connection is answered."""
    slow = StalledVerifier()
    async with served_over_http(
        scoped_server(), auth={"/mcp": guard(slow)}, routes=ROUTES
    ) as listener:
        session = H2Session(listener.connect(), E)
        await session.meet()
        ends = []
        for token in "ann", "eve", "ann":
            head, body = guarded_call(session, token)
            await session.send(head, frame(DATA, 0, session.id, body[:10]))
            ends.append(frame(DATA, END_STREAM, session.id, body[10:]))
        await session.send(ends[0], ends[1])
        await slow.started.wait()
        await session.send(post(7, b"/healthz", flags=END_HEADERS | END_STREAM, method=b"GET"))
        assert (await session.answer(7)).status == 200
        assert session.answers.keys() == {7}
        slow.go.set()
        assert text_of(json.loads((await session.answer(1)).body)) == "ann"
        assert (await session.answer(3)).status == 401
        await session.send(ends[2])
        assert text_of(json.loads((await session.answer(5)).body)) == "ann"


async def test_http2_token_check_is_cancelled_with_its_stream() -> None:
    """A reset must reach even a check in progress, and the next request is checked anew."""
    slow = StalledVerifier()
    async with served_over_http(scoped_server(), auth={"/mcp": guard(slow)}) as listener:
        session = H2Session(listener.connect(), E)
        await session.meet()
        head, body = guarded_call(session, "ann")
        await session.send(head, frame(DATA, END_STREAM, session.id, body))
        await slow.started.wait()
        await session.send(frame(RST_STREAM, 0, session.id, number(CANCEL)))
        with trio.fail_after(patience()):
            await slow.left.wait()
        assert slow.over == ["cancelled"]
        slow.go.set()
        head, body = guarded_call(session, "ann")
        await session.send(head, frame(DATA, END_STREAM, session.id, body))
        assert text_of(json.loads((await session.answer(session.id)).body)) == "ann"


# -- Protocol detection --------------------------------------------------------------------------


async def test_http2_first_bytes_select_the_protocol() -> None:
    """The preface may arrive byte by byte, and half of one must not be answered."""
    async with served_over_http(make([]), routes=ROUTES) as listener:
        for size in 1, 5, 1_000:
            wire = H2Wire(listener.connect())
            sent = HELLO + post(1, b"/healthz", flags=END_HEADERS | END_STREAM, method=b"GET")
            for start in range(0, len(sent), size):
                await wire.send(sent[start : start + size])
            assert (await wire.answer(1)).body == b"ok\n"
        for size in 1, 1_000:
            plain = HttpWire(listener.connect())
            sent = get("/healthz")
            for start in range(0, len(sent), size):
                await plain.send(sent[start : start + size])
            assert (await plain.answer()).body == b"ok\n"
        plain = HttpWire(listener.connect())
        await plain.send(PREFACE[:-1] + b"x")
        assert (await plain.answer()).status == 505
        wire = H2Wire(listener.connect())
        await wire.send(b"HELP ME PLEASE\r\n")
        assert (await wire.until(GOAWAY)).payload[4:8] == number(1)
        for sent in b"", PREFACE[:10]:
            plain = HttpWire(listener.connect())
            if sent:
                await plain.send(sent)
            await plain.stream.send_eof()  # type: ignore[attr-defined]
            assert await plain.rest() == b""


async def test_http2_silent_connection_times_out(autojump_clock: MockClock) -> None:
    async with served_over_http(make([])) as listener:
        wire = HttpWire(listener.connect())
        assert await wire.rest() == b""
        assert trio.current_time() == 10
        wire = HttpWire(listener.connect())
        await wire.send(PREFACE[:5])
        assert b" 408 " in await wire.rest()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def trusting(authority: trustme.CA, *protocols: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without the system's authorities
    authority.configure_trust(context)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


async def test_http2_over_tls_is_negotiated(authority: trustme.CA) -> None:
    """ALPN decides; a client that then speaks the other protocol gets that protocol's error."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, make([]), tls=context, routes=ROUTES))

        async def dial(*protocols: str) -> trio.SSLStream[trio.SocketStream]:
            tcp = await trio.open_tcp_stream("127.0.0.1", address.port)
            stream = trio.SSLStream(
                tcp, trusting(authority, *protocols), server_hostname="127.0.0.1"
            )
            await stream.do_handshake()
            return stream

        for protocols in ("h2", "http/1.1"), ("http/1.1", "h2"), ("h2",):
            stream = await dial(*protocols)  # the server prefers it to HTTP/1.1
            assert stream.selected_alpn_protocol() == "h2"
            wire = H2Wire(stream)
            await wire.send(
                HELLO, post(1, b"/healthz", flags=END_HEADERS | END_STREAM, method=b"GET")
            )
            assert (await wire.answer(1)).body == b"ok\n"
            await stream.aclose()
        # Without ALPN it is HTTP/1.1.
        for others in (), ("http/1.1",), ("spdy/1",):
            stream = await dial(*others)
            plain = HttpWire(stream)
            assert (await plain.ask(get("/healthz"))).body == b"ok\n"
            await stream.aclose()
        # A client that negotiates one and speaks the other gets an error.
        stream = await dial("h2")
        wire = H2Wire(stream)
        await wire.send(get("/healthz"))
        assert (await wire.until(GOAWAY)).payload[4:8] == number(1)
        await trio.aclose_forcefully(stream)
        stream = await dial("http/1.1")
        plain = HttpWire(stream)
        await plain.send(HELLO)
        assert (await plain.answer()).status == 505
        await trio.aclose_forcefully(stream)
        nursery.cancel_scope.cancel()


LAZY = """
import sys
import trio
from mcp_core.registry import Server
from tests.harness.wire.http_session import HttpSession, served_over_http

async def main():
    async with served_over_http(Server("x")) as listener:
        await HttpSession(listener.connect()).shake_hands()
    loaded = {name.partition(".")[0] for name in sys.modules}
    print(sorted(loaded & {"h2", "hpack", "hyperframe", "wsproto"}))

trio.run(main)
"""


PIPE = """
import atexit
import sys
import mcp_trio

modules = {"h11", "h2", "hpack", "wsproto"}
atexit.register(lambda: print(sorted(modules & set(sys.modules)), file=sys.stderr))
mcp_trio.run(mcp_trio.Server("x"))
"""


@pytest.mark.process
def test_http2_is_not_imported_by_a_stdio_server() -> None:
    words = [sys.executable, "-c", PIPE]
    sent = encoded(initialize(D)) + b"\n"
    done = subprocess.run(words, input=sent, capture_output=True, timeout=PATIENCE, check=True)
    assert json.loads(done.stdout)["result"]["protocolVersion"] == D
    assert done.stderr.splitlines()[-1] == b"[]"


@pytest.mark.process
def test_http2_is_not_imported_without_http2_clients() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LAZY], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout == "[]\n", done.stdout


# -- Other clients -------------------------------------------------------------------------------


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}")
    return found


async def run(*words: str) -> str:
    with trio.fail_after(PATIENCE):
        done = await trio.run_process(words, capture_stdout=True, capture_stderr=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


ASKING: Any = (
    *("-H", "content-type: application/json", "-H", "accept: application/json, text/event-stream"),
    *("-H", f"mcp-protocol-version: {E}", "-H", "mcp-method: tools/call", "-H", "mcp-name: hello"),
)
CALL = json.dumps(stateless_request(1, "tools/call", {"name": "hello", "arguments": {}}))


@pytest.mark.interop
async def test_http2_curl_with_prior_knowledge_is_answered() -> None:
    """An independent client shows that our frames are right, and that an Upgrade may be ignored."""
    curl = tool("curl")
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, make([]), routes=ROUTES))
        words = (
            curl,
            "-sS",
            "-w",
            "\n%{http_version} %{http_code}",
            *ASKING,
            "-d",
            CALL,
            address.url,
        )
        *body, last = (await run(*words[:2], "--http2-prior-knowledge", *words[2:])).splitlines()
        assert last == "2 200"
        assert text_of(json.loads("\n".join(body))) == "hello"
        # It offers an upgrade, which the server may ignore.
        *body, last = (await run(*words[:2], "--http2", *words[2:])).splitlines()
        assert last == "1.1 200"
        nursery.cancel_scope.cancel()


@pytest.mark.interop
async def test_http2_curl_over_tls_is_answered(authority: trustme.CA, tmp_path: Any) -> None:
    """An independent client negotiates HTTP/2, HTTP/1.1 or nothing at all."""
    curl = tool("curl")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, make([]), tls=context))
        for option, version in ("--http2", "2"), ("--http1.1", "1.1"), ("--no-alpn", "1.1"):
            words = (
                curl,
                "-sS",
                option,
                "--cacert",
                str(tmp_path / "ca.pem"),
                "-w",
                "\n%{http_version} %{http_code}",
            )
            *body, last = (await run(*words, *ASKING, "-d", CALL, address.url)).splitlines()
            assert last == f"{version} 200"
            assert text_of(json.loads("\n".join(body))) == "hello"
        nursery.cancel_scope.cancel()


@pytest.mark.interop
async def test_http2_h2load_gets_all_responses(tmp_path: Any) -> None:
    h2load = tool("h2load")
    (tmp_path / "call.json").write_text(CALL)
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, make([])))
        load = ("-n", "2000", "-c", "4", "-m", "100", "-d", str(tmp_path / "call.json"))
        output = await run(h2load, *load, *ASKING, address.url)
        assert "2000 succeeded, 0 failed, 0 errored, 0 timeout" in output
        assert "2000 2xx" in output
        nursery.cancel_scope.cancel()
