"""A proxy on stdio: start the server, and pass its bytes and those of the client on.

1. Bytes pass unchanged and at once, each direction by a task of its own. No byte is parsed here, so
   junk, binary and endless lines pass like messages.
2. The server lives as long as a client would let it live: it gets the end of input and the signals
   of the client. If the client is gone, the server is ended, with all processes that it started.
3. What crosses is reported before it is passed on: in a trace no response precedes its request.
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
_SIGNAL_TIMEOUT: Final = 5.0  # seconds that a server has after its first signal
_POLL_INTERVAL: Final = 0.1  # seconds between two checks of a state that has no event
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
    """Start a server, and pass bytes between it and the client until it has ended.

    By default it gets the whole environment: the program that starts this one has chosen it for the
    server. Its stderr goes to ours, and the signals that this process gets are its own.

    Args:
        client: what the client sends is read from it, and the server's output is written to it.
        argv: the server's program and its arguments.
        env, inherit_env, cwd: as for `spawn`.
        shown: what is recorded in place of `argv`; empty for `argv`.
        recorder: gets what crosses, and what becomes of the server.
        grace: seconds that the server has to exit once the client is gone.

    Returns:
        the exit status of the server, as of `subprocess`: a signal is negative.

    *Resource handling*: at the end the server and all processes that it started have ended. The
    caller closes `client`.

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
                # A server without stdout has nothing more to say. Most have exited by now.
                await child.aclose()
    assert child.returncode is not None
    return child.returncode


class _StdioProxy:
    """The two directions of one conversation. Its methods run in tasks of `nursery`."""

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
        """Send a signal to the server. One that goes on is ended after five seconds.

        A second signal ends it sooner.
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
        """Pass on what the client sends, then its end. End the server once the client is gone."""
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
                # The server reads no more, and perhaps goes on writing. The client must not block.
                await _discard(source)
                break
        await sink.aclose()
        # The end of input can mean that the client has sent all its requests, or that it is gone.
        while not _is_reader_gone(self._client.send_stream):  # noqa: ASYNC110  there is no event
            await trio.sleep(_POLL_INTERVAL)
        await self._child.aclose()

    async def pass_responses(self) -> None:
        """Pass on what the server sends, until its end, or until the client reads no more."""
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
    """Return True if nothing reads what is written to a pipe or socket.

    Known where pipes can be polled; False elsewhere, where the next write finds it out.
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
    """Call `send` inside trio with each signal that would end this process, until the block ends.

    A signal that was ignored stays ignored. Outside the main thread, where Python delivers no
    signals, this does nothing. Enter it inside `trio.run`.
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
