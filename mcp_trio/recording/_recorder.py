"""Write what crosses to a trace file, by a thread, while the conversation goes on.

1. A conversation never waits for the file. What it says is queued; if the queue is full, it is
   counted and dropped, and the trace says so.
2. Messages are split, redacted and encoded in the thread, which writes at least every 20 ms. A
   process that is killed loses no more than that.
3. A file that cannot be written is logged once. The conversation continues without it.
"""

from __future__ import annotations

import logging
import os
import secrets
import shlex
import stat
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import trio
from msgspec import Struct

from mcp_core import __version__
from mcp_core.http import Body, End
from mcp_core.trace import (
    FORMAT_VERSION,
    ChildChannel,
    ConversationNumbers,
    HttpChannel,
    Redactor,
    StreamChannel,
    TraceEncoder,
    TraceHeader,
    TraceLine,
    WebSocketChannel,
)

from ._errors import CannotRecord

if TYPE_CHECKING:
    from typing import TypeAlias

    from mcp_core.http import Action, RequestHead

    Observer: TypeAlias = Literal["client", "server", "between"]
    Sender: TypeAlias = Literal["client", "server"]
    # Makes lines of what was captured: called in the thread with the time and the capture.
    MakeLines: TypeAlias = Callable[[float, Any], Iterable[TraceLine]]

__all__ = ["Recorder", "Recording", "open_recorder"]

_MAX_QUEUED: Final = 16 * 1024 * 1024  # bytes that wait for the thread
_ITEM_SIZE: Final = 200  # bytes of an item of the queue beside its data
_INTERVAL: Final = 0.02  # seconds for which the thread lets the queue fill
_CHUNK: Final = 64 * 1024  # bytes of one write
_CLOSE_TIMEOUT: Final = 2.0  # seconds for the rest of the queue at the end
_MESSAGE_LIMIT: Final = 1024 * 1024
_FILE_LIMIT: Final = 256 * 1024 * 1024

_log = logging.getLogger("mcp_trio")


class Recording(Struct, frozen=True, kw_only=True):
    """A trace file to write, and what it may have.

    Attributes:
        path: the file. One that exists is replaced. Only its owner can read it.
        redact: JSON pointers (RFC 6901) of values to hide in each message, such as
            `/params/arguments/password`.
        with_secrets: whether everything is written, tokens included. By default credentials,
            session ids, task ids, results of elicitation and the like are hidden.
        message_limit: bytes of a message that are written; of a longer one only the beginning is.
            1 MiB by default.
        file_limit: bytes of the file. What follows is counted, and not written. 256 MiB by default.

    Raises:
        ValueError: a limit is not positive, or one of `redact` is not a JSON pointer.
    """

    path: str | os.PathLike[str]
    redact: tuple[str, ...] = ()
    with_secrets: bool = False
    message_limit: int = _MESSAGE_LIMIT
    file_limit: int = _FILE_LIMIT

    def __post_init__(self) -> None:
        for name in ("message_limit", "file_limit"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} has to be positive, not {getattr(self, name)}")
        Redactor(b"", self.redact)


class Recorder:
    """An open trace file, and the thread that writes it.

    Its methods may be called from one thread, and never wait. `open_recorder` makes it.

    Args:
        recording: the file and its options.
        observer: the side that records.
        transport: the transport, for the header.
        target: the words of the command, or the URL as the only word; empty if not known.

    Raises:
        CannotRecord: the file cannot be opened.
    """

    def __init__(
        self, recording: Recording, observer: Observer, transport: str, target: Sequence[str] = ()
    ) -> None:
        self._recording = recording
        self._redactor = (
            None if recording.with_secrets else Redactor(secrets.token_bytes(32), recording.redact)
        )
        self._conversations = ConversationNumbers(single=observer == "client")
        self._exchanges = 0
        self._our_side: Sender = "server" if observer == "server" else "client"
        self._fd = _open(recording.path)
        self._started_at = time.monotonic()
        header = TraceHeader(
            format_version=FORMAT_VERSION,
            at=datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            by=f"mcp-trio {__version__}",
            observer=observer,
            transport=transport,
            target=self._redact_target(target),
            redacted=() if self._redactor is None else self._redactor.redacted,
        )
        self._encoder = TraceEncoder(header, self._redactor, recording.file_limit)
        self._queue: deque[tuple[float, MakeLines, Any, int]] = deque()
        # Written by one thread each, so that neither needs a lock.
        self._queued_bytes = 0
        self._taken_bytes = 0
        self._lost = 0  # lines that were dropped since the last one that was queued
        self._gaps: dict[Callable[[], object], None] = {}  # what to call after them
        self._awake = False
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="mcp-trio recorder", daemon=True).start()

    def __repr__(self) -> str:
        return f"<Recorder of {os.fspath(self._recording.path)}, {len(self._queue)} queued>"

    def _redact_target(self, words: Sequence[str]) -> str:
        if len(words) == 1 and "://" in words[0]:
            return words[0] if self._redactor is None else self._redactor.redact_url(words[0])
        return shlex.join(words if self._redactor is None else self._redactor.redact_command(words))

    # -- Channels ----------------------------------------------------------------------------------

    def stream(self) -> StreamRecorder:
        """Begin the recording of a conversation on a byte stream."""
        number = self._conversations.new()
        channel = StreamChannel(number, self._recording.message_limit)
        return StreamRecorder(self, channel, self._our_side)

    def child(self, command: Sequence[str]) -> ChildRecorder:
        """Begin the recording of a child process, whose conversation `stream` then records."""
        return ChildRecorder(
            self,
            ChildChannel(self._conversations.next_number, self._recording.message_limit),
            self._redact_target(command),
        )

    def websocket(self) -> WebSocketRecorder:
        """Begin the recording of a conversation over a WebSocket."""
        number = self._conversations.new()
        channel = WebSocketChannel(number, 0, self._recording.message_limit)
        return WebSocketRecorder(self, channel, self._our_side)

    def begin(self, head: RequestHead, body: bytes | None, http_version: str) -> ExchangeRecorder:
        """Begin the recording of an HTTP exchange. `body` is None if it follows in pieces."""
        self._exchanges += 1
        channel = HttpChannel(self._exchanges, self._conversations, self._recording.message_limit)
        exchange = ExchangeRecorder(self, channel, self._our_side)
        size = 0 if body is None else len(body)
        self.put(channel.request, (head, body, http_version), size, channel.skip)
        return exchange

    def note(self, text: str) -> None:
        """Write a note."""
        self.put(_note_line, text, len(text))

    def note_fetch(self, method: str, url: str, outcome: str) -> None:
        """Note a request for authorization. Its content is a secret, and is not recorded."""
        shown = url if self._redactor is None else self._redactor.redact_url(url)
        self.note(f"authorization: {method} {shown}: {outcome}")

    # -- The queue ---------------------------------------------------------------------------------

    def put(
        self,
        make_lines: MakeLines,
        what: Any,
        size: int,
        skip: Callable[[], object] = lambda: None,
    ) -> None:
        """Queue what was captured now.

        Args:
            make_lines: makes the lines of it, in the thread of this recorder.
            what: the capture. It must not change later.
            size: its size in bytes.
            skip: called in that thread if it was dropped, before the next capture.
        """
        size += _ITEM_SIZE
        queued = self._queued_bytes - self._taken_bytes
        if queued and queued + size > _MAX_QUEUED:
            self._lost += what.count(b"\n") or 1 if isinstance(what, bytes) else 1
            self._gaps[skip] = None
            return
        if self._lost:
            self._note_lost()
        self._queued_bytes += size
        self._queue.append((time.monotonic() - self._started_at, make_lines, what, size))
        if not self._awake:
            self._awake = True
            self._wake.set()

    def _note_lost(self) -> None:
        what = self._lost, list(self._gaps)
        self._lost = 0
        self._gaps.clear()
        self._queue.append((time.monotonic() - self._started_at, _lost_lines, what, 0))

    async def aclose(self) -> None:
        """Write what is queued and close the file, within two seconds, also if cancelled."""
        if self._lost:
            self._note_lost()
        self._closing.set()
        self._wake.set()
        with trio.CancelScope(shield=True):
            closed = await trio.to_thread.run_sync(self._closed.wait, _CLOSE_TIMEOUT)
        if not closed:
            _log.warning("the end of the trace %s may be missing: it is written slowly", self._path)

    @property
    def _path(self) -> str:
        return os.fspath(self._recording.path)

    # -- The thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._write(self._encoder.begin())
            while not self._closing.is_set() or self._queue:
                self._wake.wait()
                self._wake.clear()
                self._closing.wait(_INTERVAL)
                self._awake = False  # what is queued from here on wakes this thread again
                self._write_queue()
            self._write(self._encoder.end(round(time.monotonic() - self._started_at, 6)))
        except OSError as exc:
            self._fail(exc.strerror or str(exc))
        except Exception:  # noqa: BLE001 - rule 3
            self._fail("internal error")
            _log.exception("internal error of %r", self)
        finally:
            os.close(self._fd)
            self._closed.set()
        while not self._closing.is_set():  # nothing is kept that cannot be written
            self._wake.wait()
            self._wake.clear()
            self._awake = False
            while self._queue:
                self._taken_bytes += self._queue.popleft()[3]

    def _write_queue(self) -> None:
        queue = self._queue
        chunk: list[bytes] = []
        length = 0
        was_full = self._encoder.is_full
        while queue:
            t, make_lines, what, size = queue.popleft()
            self._taken_bytes += size
            data = self._encoder.encode(make_lines(round(t, 6), what))
            chunk.append(data)
            length += len(data)
            if length >= _CHUNK:
                self._write(b"".join(chunk))
                chunk.clear()
                length = 0
        if chunk:
            self._write(b"".join(chunk))
        if self._encoder.is_full and not was_full:
            _log.warning(
                "the trace %s has reached %d bytes, its limit: the rest is not recorded",
                self._path,
                self._recording.file_limit,
            )

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def _fail(self, reason: str) -> None:
        _log.error("the trace %s is not written any more: %s", self._path, reason)


class StreamRecorder:
    """The recording of a conversation on a byte stream. `our_side` is that of the recorder."""

    __slots__ = ("_channel", "_received", "_recorder", "_sent")

    def __init__(self, recorder: Recorder, channel: StreamChannel, our_side: Sender) -> None:
        self._recorder = recorder
        self._channel = channel
        ours, theirs = channel.client_data, channel.server_data
        if our_side == "server":
            ours, theirs = theirs, ours
        self._sent = ours
        self._received = theirs

    def sent(self, data: bytes) -> None:
        """Record bytes that are about to be sent; `b""` for the end of the stream."""
        self._recorder.put(self._sent, data, len(data), self._channel.skip)

    def received(self, data: bytes) -> None:
        """Record bytes that were received; `b""` for the end of the stream."""
        self._recorder.put(self._received, data, len(data), self._channel.skip)


class ChildRecorder:
    """The recording of a child process: its start, which is now, its stderr and its exit."""

    __slots__ = ("_channel", "_recorder")

    def __init__(self, recorder: Recorder, channel: ChildChannel, command: str) -> None:
        self._recorder = recorder
        self._channel = channel
        recorder.put(channel.spawned, command, len(command), channel.skip)

    def stderr(self, data: bytes) -> None:
        """Record a piece of its stderr."""
        self._recorder.put(self._channel.stderr, data, len(data), self._channel.skip)

    def exited(self, status: int) -> None:
        """Record its exit, as of `subprocess`: a signal is negative."""
        self._recorder.put(self._channel.exited, status, 0, self._channel.skip)


class WebSocketRecorder:
    """The recording of a WebSocket. `our_side` is that of the recorder."""

    __slots__ = ("_channel", "_recorder", "_sides")

    def __init__(
        self, recorder: Recorder, channel: WebSocketChannel | HttpChannel, our_side: Sender
    ) -> None:
        self._recorder = recorder
        self._channel = channel
        self._sides: tuple[Sender, Sender] = (
            ("client", "server") if our_side == "client" else ("server", "client")
        )

    def sent(self, message: bytes) -> None:
        """Record `message`, which is about to be sent."""
        self._put_message(self._sides[0], message)

    def received(self, message: bytes) -> None:
        """Record `message`, which was received."""
        self._put_message(self._sides[1], message)

    def sent_close(self, code: int, reason: str) -> None:
        """Record a close frame with `code` and `reason` that is about to be sent."""
        self._put_close(self._sides[0], code, reason)

    def received_close(self, code: int, reason: str) -> None:
        """Record a close frame that was received, with `code` and `reason`.

        The code is 1005 if the frame has none, and 1006 if the connection broke without a frame.
        """
        self._put_close(self._sides[1], code, reason)

    def _put_message(self, sender: Sender, message: bytes) -> None:
        channel = self._channel
        self._recorder.put(channel.message, (sender, message), len(message), channel.skip)

    def _put_close(self, sender: Sender, code: int, reason: str) -> None:
        channel = self._channel
        self._recorder.put(channel.close, (sender, code, reason), len(reason), channel.skip)


class ExchangeRecorder:
    """The recording of one HTTP exchange. `our_side` is that of the recorder."""

    __slots__ = ("_channel", "_is_over", "_our_side", "_recorder")

    def __init__(self, recorder: Recorder, channel: HttpChannel, our_side: Sender) -> None:
        self._recorder = recorder
        self._channel = channel
        self._our_side = our_side
        self._is_over = False

    def request_data(self, data: bytes, *, end: bool) -> None:
        """Record `data`, a piece of the request's body; `b""`, or one with `end`, is the last."""
        self._recorder.put(
            self._channel.request_data, (bytes(data), end), len(data), self._channel.skip
        )

    def response(self, actions: Sequence[Action]) -> None:
        """Record `actions`, a part of the response."""
        size = sum(len(action.data) for action in actions if type(action) is Body)
        self._recorder.put(self._channel.response, list(actions), size, self._channel.skip)
        self._is_over = type(actions[-1]) is End

    def ended(self, side: Sender, reason: str) -> None:
        """Record that `side` has ended the exchange early, and the `reason`, such as `reset`.

        Harmless if it is complete.
        """
        if not self._is_over:
            self._is_over = True
            self._recorder.put(self._channel.ended, (side, reason), 0, self._channel.skip)

    def websocket(self) -> WebSocketRecorder:
        """Begin the recording of the WebSocket that the exchange has opened."""
        return WebSocketRecorder(self._recorder, self._channel, self._our_side)


@asynccontextmanager
async def open_recorder(
    record: str | os.PathLike[str] | Recording | None,
    observer: Observer,
    transport: str,
    target: Sequence[str | os.PathLike[str]] = (),
) -> AsyncIterator[Recorder | None]:
    """Open the recorder of a conversation, or give None if `record` is None.

    Args:
        record: the file.
        observer: the side that records.
        transport: the transport, for the header.
        target: the words of the command, or the URL as the only word.

    Raises:
        CannotRecord: the file cannot be opened.
    """
    if record is None:
        yield None
        return
    if not isinstance(record, Recording):
        record = Recording(path=record)
    recorder = Recorder(record, observer, transport, [os.fspath(word) for word in target])
    try:
        yield recorder
    finally:
        await recorder.aclose()


def _lost_lines(t: float, what: tuple[int, list[Callable[[], object]]]) -> list[TraceLine]:
    count, skips = what
    for skip in skips:
        skip()
    return [TraceLine(t=t, kind="lost", count=count)]


def _note_line(t: float, text: str) -> list[TraceLine]:
    return [TraceLine(t=t, kind="note", text=text)]


def _open(path: str | os.PathLike[str]) -> int:
    """Open a file for writing that only its owner can read.

    Raises:
        CannotRecord: it cannot be opened.
    """
    # O_NONBLOCK: a pipe without a reader is an error, and nothing to wait for.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        raise CannotRecord(exc.errno, f"cannot record in {os.fspath(path)}: {reason}") from exc
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode) and hasattr(os, "fchmod"):
            os.fchmod(fd, 0o600)
        if hasattr(os, "O_NONBLOCK"):
            os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return fd
