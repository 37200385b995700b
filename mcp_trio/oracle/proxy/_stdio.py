"""A proxy on stdio: start the server, and pass bytes between it and the client.

1. Bytes pass unchanged and at once. Each direction has its own task. Nothing is parsed here, so
   junk, binary data and endless lines pass like messages.
2. The proxy passes on the client's end of input and its signals. If the client disconnects, the
   proxy ends the server with all processes that it started.
3. Bytes are recorded before they are passed on, so no response precedes its request in a trace.
"""

from __future__ import annotations

import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core.runtime import READ_SIZE
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.streams._child import spawn

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from mcp_core.adapters import Recorder, StreamRecorder
    from mcp_trio.streams._child import ChildProcess, Grace
    from mcp_trio.streams._stdio import Streams

__all__ = ["forward_signals", "run_stdio_proxy"]

# The signals that a client, a terminal or a system sends to end a server.
_FORWARDED: Final = [
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    if name in signal.Signals.__members__
]
_SIGNAL_TIMEOUT: Final = 5.0  # seconds that a server has to exit after its first signal
_POLL_INTERVAL: Final = 0.1  # seconds between two checks whether the client has disconnected
_BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError)


async def run_stdio_proxy(
    client: Streams,
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    inherit_env: bool = True,
    cwd: str | os.PathLike[str] | None = None,
    shown: Sequence[str] = (),
    recorder: Recorder | None = None,
    grace: Grace | None = None,
) -> int:
    """Start a server, and pass bytes between it and the client until the server has ended.

    By default the server gets the whole environment, which the program that starts the proxy has
    chosen for it. The server's stderr goes to this process's stderr. Signals that this process
    receives are passed on to the server.

    Args:
        client: the streams to and from the client.
        argv: the server's program and its arguments.
        env, inherit_env, cwd: as for `spawn`.
        shown: recorded instead of `argv`; if empty, `argv` is recorded.
        recorder: records the bytes, and the server's stderr and exit status.
        grace: seconds that the server has to exit once the client has disconnected.

    Returns:
        the server's exit status. It is negative after a signal, as in `subprocess`.

    *Resource handling*: at the end the server has ended, and so have all processes that it
    started. The caller closes `client`.

    Raises:
        ConnectFailed: the server could not be started.
    """
    child_recorder = None if recorder is None else recorder.child(shown or argv)
    started = spawn(
        argv,
        env=env,
        inherit_env=inherit_env,
        cwd=cwd,
        grace=grace,
        recorder=child_recorder,
    )
    async with started as child:
        record = None if recorder is None else recorder.stream()
        async with open_quiet_nursery() as nursery:
            proxy = _StdioProxy(client, child, record, nursery)
            with forward_signals(proxy.send_signal):
                nursery.start_soon(proxy.pass_requests)
                await proxy.pass_responses()
                # A server that has closed stdout sends no more messages. Most have exited by now.
                await child.aclose()
    assert child.returncode is not None
    return child.returncode


class _StdioProxy:
    """One conversation, with a task in `nursery` for each direction."""

    def __init__(
        self,
        client: Streams,
        child: ChildProcess,
        record: StreamRecorder | None,
        nursery: trio.Nursery,
    ) -> None:
        self._client = client
        self._child = child
        self._record = record
        self._nursery = nursery
        self._was_signalled = False

    def send_signal(self, number: int) -> None:
        """Send a signal to the server, and end it if it hasn't exited after five seconds.

        A second signal ends it at once.
        """
        if self._child.returncode is not None or self._nursery.cancel_scope.cancel_called:
            return
        self._child.send_signal(number)
        timeout = 0.0 if self._was_signalled else _SIGNAL_TIMEOUT
        self._was_signalled = True
        self._nursery.start_soon(self._end_after, timeout)

    async def _end_after(self, seconds: float) -> None:
        await trio.sleep(seconds)
        await self._child.aclose()

    async def pass_requests(self) -> None:
        """Pass on the client's bytes and its end of input. End the server if the client is gone."""
        source, sink = self._client.receive_stream, self._child.stream.send_stream
        record = self._record
        while True:
            try:
                data = bytes(await source.receive_some(READ_SIZE))
            except _BROKEN:
                data = b""
            if record is not None:
                record.sent(data)
            if not data:
                break
            try:
                await sink.send_all(data)
            except _BROKEN:
                # The server has closed stdin but may still write. Read on, so that the client
                # doesn't block.
                await _discard(source)
                break
        await sink.aclose()
        # The client has either sent its last request and still reads, or it has disconnected.
        while not _is_reader_gone(self._client.send_stream):  # noqa: ASYNC110  there is no event
            await trio.sleep(_POLL_INTERVAL)
        await self._child.aclose()

    async def pass_responses(self) -> None:
        """Pass on the server's bytes, until it closes stdout or the client stops reading."""
        source, sink = self._child.stream.receive_stream, self._client.send_stream
        record = self._record
        try:
            while data := bytes(await source.receive_some(READ_SIZE)):
                if record is not None:
                    record.received(data)
                await sink.send_all(data)
        except _BROKEN:
            return
        if record is not None:
            record.received(b"")


async def _discard(source: trio.abc.ReceiveStream) -> None:
    with suppress(*_BROKEN):
        while await source.receive_some(READ_SIZE):
            pass


def _is_reader_gone(stream: Any) -> bool:
    """Return True if the reader of a pipe or socket has closed it.

    On systems that cannot poll pipes it is always False: the next write raises there.
    """
    if not (hasattr(stream, "fileno") and hasattr(select, "poll")):
        return False
    poll = select.poll()
    try:
        poll.register(stream.fileno(), 0)  # errors only
    except (OSError, ValueError):
        return True  # closed by us
    return bool(poll.poll(0))


@contextmanager
def forward_signals(send: Callable[[int], object]) -> Iterator[None]:
    """Call `send` with each signal that would end this process, until the block ends.

    `send` runs in trio's thread. A signal that was ignored stays ignored. Outside the main thread
    this does nothing, because Python delivers signals only there. Enter it inside `trio.run`.
    """
    token = trio.lowlevel.current_trio_token()
    former: dict[signal.Signals, Any] = {}

    def on_signal(number: int, _: object) -> None:
        token.run_sync_soon(send, number)

    try:
        if threading.current_thread() is threading.main_thread():
            for each in _FORWARDED:
                disposition = signal.getsignal(each)
                if disposition not in (signal.SIG_IGN, None):  # None: set by C code
                    former[each] = disposition
                    signal.signal(each, on_signal)
        yield
    finally:
        for each, disposition in former.items():
            signal.signal(each, disposition)
