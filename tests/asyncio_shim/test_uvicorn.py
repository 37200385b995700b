"""`python -m mcp_asyncio_shim --http` in this process: uvicorn's settings, its end, its log."""

from __future__ import annotations

import asyncio
import http.client
import io
import os
import re
import signal
import socket
import threading
from contextlib import asynccontextmanager, redirect_stderr
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import uvicorn

from mcp_asyncio_shim import _uvicorn
from mcp_asyncio_shim._uvicorn import CannotServe, serve_http
from mcp_core.adapters import HttpRunOptions, LastDeadline, Recording
from mcp_core.registry import Server
from mcp_core.runtime import LAST_GRACE, SHUTDOWN_GRACE
from tests.harness.jsonrpc import D, initialize, line
from tests.harness.world.loop import descriptors, run
from tests.harness.world.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

LOCAL = "127.0.0.1"


class Served:
    """The outcome of `serve_http`, its output on stderr, and its deadline's calls."""

    def __init__(self) -> None:
        self.stderr = io.StringIO()
        self.deadline: list[object] = []
        self.outcome: object = None
        self.failure: BaseException | None = None

    @property
    def lines(self) -> list[str]:
        return self.stderr.getvalue().splitlines()

    def run(
        self,
        visit: Callable[[str], object],
        options: HttpRunOptions,
        *,
        server: Server | None = None,
        recording: Recording | None = None,
        number: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Serve in this thread. Another calls `visit` with the URL, and then sends the signal."""
        over = threading.Event()

        def visitor() -> None:
            try:
                wait_until(lambda: over.is_set() or "\n" in self.stderr.getvalue())
                if over.is_set():
                    return
                visit(self.lines[0].split()[3])
            except BaseException as exc:  # noqa: BLE001 - `run` raises it
                self.failure = exc
            os.kill(os.getpid(), number)

        thread = threading.Thread(target=visitor)
        thread.start()
        try:
            with redirect_stderr(self.stderr):
                self.outcome = serve_http(server or Server("tea"), options, recording)
        except (KeyboardInterrupt, SystemExit) as exc:
            self.outcome = exc
        finally:
            over.set()
            thread.join()
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Nothing may be left: no descriptor, and no handler of a signal. None may end the tests."""
    result = Served()

    class Deadline(LastDeadline):
        def begin(self, seconds: float, cause: str, status: int | None = None) -> None:
            result.deadline.append((seconds, cause, status))

        def lifespan_ended(self) -> None:
            result.deadline.append("the lifespan has ended")

    def ignore(number: int, frame: object) -> None:
        pass

    monkeypatch.setattr(_uvicorn, "LastDeadline", Deadline)
    before = signal.signal(signal.SIGTERM, ignore)
    count = descriptors()
    try:
        yield result
        assert signal.getsignal(signal.SIGTERM) is ignore
        assert descriptors() == count
    finally:
        signal.signal(signal.SIGTERM, before)


def post(url: str, body: bytes, **headers: str) -> http.client.HTTPResponse:
    """POST a message, and read the response to its end."""
    address, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    connection.request(
        "POST",
        f"/{path}",
        body,
        {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        | {name.replace("_", "-"): value for name, value in headers.items()},
    )
    response = connection.getresponse()
    response.body = response.read()  # type: ignore[attr-defined]
    connection.close()
    return response


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "outcome"), [(signal.SIGTERM, SystemExit(143)), (signal.SIGINT, KeyboardInterrupt())]
)
def test_uvicorn_serves_until_a_signal(
    served: Served, tmp_path: Path, number: signal.Signals, outcome: BaseException
) -> None:
    """It greets, answers and writes a line for each exchange, and the signal decides the end."""
    seen: list[http.client.HTTPResponse] = []
    trace = tmp_path / "tea.mcp.jsonl"

    def visit(url: str) -> None:
        seen.append(post(f"{url}?secret=1", line(initialize(D))))

    options = HttpRunOptions(host=LOCAL, port=0, path="/tea", sse_path="/sse")
    served.run(visit, options, recording=Recording(path=trace), number=number)
    assert repr(served.outcome) == repr(outcome)
    greeting, sse, log = served.lines
    assert re.fullmatch(r"Serving tea at http://127\.0\.0\.1:\d+/tea \(Ctrl\+C ends it\)", greeting)
    assert sse == f"Clients of HTTP+SSE connect to {greeting.split()[3][:-4]}/sse"
    assert re.fullmatch(r"\d\d:\d\d:\d\d POST /tea 200 \d+ ms", log)
    [response] = seen
    assert response.status == 200
    assert response.getheader("server") is None
    assert "initialize" in trace.read_text()
    assert served.deadline == [
        (SHUTDOWN_GRACE + LAST_GRACE, number.name, 128 + number),
        "the lifespan has ended",
    ]


def test_uvicorn_serves_on_inherited_sockets(served: Served) -> None:
    """As after `--reload`: the greeting has the socket's port, and the socket is closed."""
    listening = socket.create_server((LOCAL, 0))
    port = listening.getsockname()[1]
    options = HttpRunOptions(host=LOCAL, port=0, fds=(listening.detach(),))
    urls: list[str] = []
    served.run(urls.append, options)
    assert urls == [f"http://{LOCAL}:{port}/mcp"]
    assert repr(served.outcome) == "SystemExit(143)"


def test_uvicorn_without_a_lifespan_ends_at_once(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the cause, and stderr no greeting: it never listened."""

    @asynccontextmanager
    async def life(server: Server) -> AsyncIterator[None]:
        if server.info.name:
            raise OSError("no leaves")
        yield

    served.run(
        lambda url: None, HttpRunOptions(host=LOCAL, port=0), server=Server("t", lifespan=life)
    )
    assert served.outcome is False
    assert "no leaves" in caplog.text
    assert served.lines == []
    assert served.deadline == ["the lifespan has ended"]


def test_uvicorn_at_a_taken_port_says_so(served: Served) -> None:
    with socket.create_server((LOCAL, 0)) as taken:
        options = HttpRunOptions(host=LOCAL, port=taken.getsockname()[1])
        with pytest.raises(CannotServe, match=f"cannot listen on {LOCAL}:{options.port}: "):
            serve_http(Server("tea"), options, None)


class Stopped(Exception):
    """Ends `serve_http` where uvicorn would begin."""


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The settings with which `serve_http` would start uvicorn."""
    found: list[Any] = []

    async def serve(running: Any, sockets: object) -> NoReturn:
        found.append(running.config)
        raise Stopped

    monkeypatch.setattr(_uvicorn._UvicornServer, "serve", serve)
    return found


def test_uvicorn_trusts_no_proxy_and_has_limits(configured: list[Any]) -> None:
    """uvicorn's defaults are for a server behind a proxy, and have no limits."""
    with pytest.raises(Stopped):
        serve_http(Server("tea"), HttpRunOptions(host=LOCAL, port=0), None)
    [config] = configured
    assert {
        name: getattr(config, name)
        for name in (
            *("access_log", "lifespan", "limit_concurrency", "log_config", "proxy_headers"),
            *("server_header", "timeout_graceful_shutdown"),
        )
    } == {
        "access_log": False,  # ours has no secrets
        "lifespan": "on",  # one that fails must end the command
        "limit_concurrency": 2_000,
        "log_config": None,
        "proxy_headers": False,
        "server_header": False,
        "timeout_graceful_shutdown": 2,
    }


@pytest.mark.parametrize(("started", "status"), [(False, 143), (True, 3)])
def test_uvicorn_exit_that_is_no_failed_start_ends_the_process(
    started: bool, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal may come before the server has started, and a program may exit with status 3."""

    async def serve(running: Any, sockets: object) -> None:
        running.started = started
        raise SystemExit(status)

    monkeypatch.setattr(_uvicorn._UvicornServer, "serve", serve)
    with pytest.raises(SystemExit) as caught:
        serve_http(Server("tea"), HttpRunOptions(host=LOCAL, port=0), None)
    assert caught.value.code == status


def test_error_of_listening_that_is_not_the_system_s_propagates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> NoReturn:
        raise KeyError("ours")

    monkeypatch.setattr(_uvicorn, "listening_sockets", fail)
    with pytest.raises(KeyError, match="ours"):
        serve_http(Server("tea"), HttpRunOptions(host=LOCAL, port=0), None)


def test_uvicorn_that_ends_by_itself_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(running: Any, sockets: object) -> None:
        pass

    monkeypatch.setattr(_uvicorn._UvicornServer, "serve", serve)
    assert serve_http(Server("tea"), HttpRunOptions(host=LOCAL, port=0), None) is True


@pytest.mark.parametrize(
    ("host", "hosts", "warns"),
    [(LOCAL, (), False), ("0.0.0.0", (), True), ("0.0.0.0", ("tea.example",), False)],
)
def test_uvicorn_for_other_machines_asks_for_names(
    host: str,
    hosts: tuple[str, ...],
    warns: bool,
    configured: list[Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(Stopped):
        serve_http(Server("tea"), HttpRunOptions(host=host, port=0, hosts=hosts), None)
    assert ["name the hosts that clients use" in text for text in caplog.messages] == [True] * warns


@pytest.mark.parametrize(
    ("host", "address", "authority"),
    [
        (LOCAL, (LOCAL, 8000), "127.0.0.1:8000"),
        ("::1", ("::1", 8000, 0, 0), "[::1]:8000"),
        ("localhost", (LOCAL, 8000), "localhost:8000"),
    ],
)
def test_greeting_has_the_url_for_clients(
    host: str, address: tuple[Any, ...], authority: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With control characters of the server's name escaped. The first socket counts."""
    listening: list[Any] = [
        SimpleNamespace(getsockname=lambda each=each: each)
        for each in (address, ("::", 9999, 0, 0))
    ]
    _uvicorn._greet("t\x1b[1m", HttpRunOptions(host=host, port=0), listening)
    [greeting] = capsys.readouterr().err.splitlines()
    assert greeting == f"Serving t\\u001b[1m at http://{authority}/mcp (Ctrl+C ends it)"


class SilentClient:
    """A client's connection that never ends by itself."""

    def __init__(self, connections: set[Any]) -> None:
        self.transport = self
        self.calls: list[object] = []
        self._connections = connections
        self._connections.add(self)

    def shutdown(self) -> None:
        self.calls.append("shutdown")

    def abort(self) -> None:
        self.calls.append(("abort", asyncio.get_running_loop().time()))
        self._connections.discard(self)


def uvicorn_server(app: Any) -> Any:
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=2)
    return _uvicorn._UvicornServer(config, app, lambda: None, LastDeadline("tea"))


def test_uvicorn_ends_streams_then_slow_clients() -> None:
    """A client that doesn't read its response is disconnected after a second, before the limit."""
    order: list[object] = []

    class App:
        async def _shut_down(self) -> None:
            await asyncio.sleep(5)  # what the handlers get
            order.append("streams")

    async def lifespan_ends() -> None:
        order.append("lifespan")

    async def main() -> None:
        running = uvicorn_server(App())
        running.lifespan = SimpleNamespace(shutdown=lifespan_ends)
        running.servers = [await asyncio.start_server(lambda *_: None, LOCAL, 0)]
        address = running.servers[0].sockets[0].getsockname()
        connection = SilentClient(running.server_state.connections)
        began = asyncio.get_running_loop().time()
        shutting = asyncio.create_task(running.shutdown())
        await asyncio.sleep(0)
        with pytest.raises(ConnectionRefusedError):  # it accepts none meanwhile
            await asyncio.open_connection(*address)
        await shutting
        assert connection.calls == ["shutdown", ("abort", pytest.approx(began + 6))]

    run(main())
    assert order == ["streams", "lifespan"]


def test_uvicorn_that_ends_in_time_disconnects_no_client() -> None:
    class App:
        async def _shut_down(self) -> None:
            pass

    async def main() -> None:
        running = uvicorn_server(App())
        running.lifespan = SimpleNamespace(shutdown=App()._shut_down)
        running.servers = []
        await running.shutdown()
        later = SilentClient(running.server_state.connections)
        await asyncio.sleep(10)
        assert later.calls == []

    run(main())


def test_second_signal_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the system's own handler: uvicorn would wait for what runs once more."""
    calls: list[object] = []
    monkeypatch.setattr(signal, "signal", lambda *words: calls.append(words))
    monkeypatch.setattr(signal, "raise_signal", calls.append)
    running = uvicorn_server(None)
    running._deadline = SimpleNamespace(begin=lambda *words: calls.append(words))
    running.handle_exit(signal.SIGTERM, None)
    assert calls == [(SHUTDOWN_GRACE + LAST_GRACE, "SIGTERM", 143)]
    assert running.should_exit
    running.handle_exit(signal.SIGTERM, None)
    assert calls[1:3] == [(signal.SIGTERM, signal.SIG_DFL), signal.SIGTERM]


START = {"type": "http.response.start", "status": 404, "headers": []}
EXCHANGES: list[tuple[dict[str, Any], list[dict[str, Any]], str]] = [
    ({"type": "http", "method": "POST"}, [START, {"type": "http.response.body"}], "POST /a%1B 404"),
    ({"type": "http", "method": "PUT"}, [], "PUT /a%1B disconnected"),
    (
        {"type": "websocket"},
        [{"type": "websocket.accept"}, {"type": "websocket.close"}],
        "GET /a%1B 101",
    ),
    (
        {"type": "websocket"},
        [{"type": "websocket.http.response.start", "status": 403}],
        "GET /a%1B 403",
    ),
]


@pytest.mark.parametrize("error", [None, OSError("gone")])
@pytest.mark.parametrize(("scope", "messages", "expected"), EXCHANGES)
def test_access_log_has_a_line_for_each_exchange(
    scope: dict[str, Any],
    messages: list[dict[str, Any]],
    expected: str,
    error: OSError | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With status and milliseconds, also if the exchange fails. All messages are passed on."""
    now = iter((7.0, 7.25))
    times = {"perf_counter": lambda: next(now), "strftime": lambda pattern: pattern}
    monkeypatch.setattr(_uvicorn, "time", SimpleNamespace(**times))
    scope = {**scope, "raw_path": b"/a%1B", "query_string": b"secret=1"}
    received = object()
    sent: list[object] = []

    async def app(*words: Any) -> None:
        assert words[:2] == (scope, received)
        for message in messages:
            await words[2](message)
        if error is not None:
            raise error

    async def main() -> None:
        async def send(message: object) -> None:
            sent.append(message)

        await _uvicorn._AccessLog(app)(scope, received, send)  # type: ignore[arg-type]

    if error is None:
        run(main())
    else:
        with pytest.raises(OSError, match="gone"):
            asyncio.run(main())
    assert sent == messages
    assert capsys.readouterr().err == f"%H:%M:%S {expected} 250 ms\n"


def test_access_log_has_no_line_for_the_lifespan(capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[object] = []

    async def app(*words: Any) -> None:
        calls.append(words)

    words: Any = ({"type": "lifespan"}, object(), object())
    run(_uvicorn._AccessLog(app)(*words))  # type: ignore[arg-type]
    assert calls == [words]
    assert capsys.readouterr().err == ""
