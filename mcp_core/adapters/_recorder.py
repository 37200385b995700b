"""Write what crosses to a trace file, by a thread, while the conversation goes on.

1. A conversation never waits for the file. What it says is queued; if the queue is full, it is
   counted and dropped, and the trace says so.
2. Messages are split, redacted and encoded in the thread, which writes at least every 20 ms. A
   process that is killed loses no more than that.
3. A file that cannot be written is logged once. The conversation continues without it.
4. One recorder writes a file, which it locks. If another program truncates the file, or moves it
   away as logrotate does, the rest goes to a new file of that name, after a header.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct
from msgspec.structs import replace

from mcp_core._errors import McpTrioError
from mcp_core._launch_secrets import launch_secrets
from mcp_core._version import __version__
from mcp_core.http import Action, Body, End, RequestHead
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
    TruncatedMessage,
    WebSocketChannel,
    encode_line,
)

__all__ = [
    "CannotRecord",
    "ChildRecorder",
    "LineRecorder",
    "Recorder",
    "Recording",
    "StreamRecorder",
]

Observer: TypeAlias = Literal["client", "server", "between"]
Sender: TypeAlias = Literal["client", "server"]
# Makes lines of what was captured: called in the thread with the time and the capture.
MakeLines: TypeAlias = Callable[[float, Any], Iterable[TraceLine]]
OnLine: TypeAlias = Callable[[TraceLine], object]

_MAX_QUEUED: Final = 16 * 1024 * 1024  # bytes that wait for the thread
_ITEM_SIZE: Final = 200  # bytes of a queue item beside its data
_INTERVAL: Final = 0.02  # seconds for which the thread lets the queue fill
_CHUNK: Final = 64 * 1024  # bytes of one write
_CLOSE_TIMEOUT: Final = 2.0  # seconds for the rest of the queue at the end
_MESSAGE_LIMIT: Final = 1024 * 1024
_FILE_LIMIT: Final = 256 * 1024 * 1024

_MAX_NUMBERS: Final = 1000  # of exchanges that may go on in one `LineRecorder`

_WARNING: Final = 30  # as in `logging`
_ERROR: Final = 40


class CannotRecord(McpTrioError, OSError):
    """A trace file that cannot be opened. The text names the file and the reason."""

    strerror: str

    def __str__(self) -> str:
        return self.strerror


class Recording(Struct, frozen=True, kw_only=True):
    """A trace file to write, and what it may have.

    Attributes:
        path: the file. One that exists is replaced. Only its owner can read it.
        redact: JSON pointers (RFC 6901) of values to hide in each message, such as
            `/params/arguments/password`.
        with_secrets: whether everything is written, tokens included. By default credentials,
            session ids, task ids, results of elicitation and the like are hidden.
        secrets: texts to hide in all lines, also encoded or cut. Those below 6 characters do
            not count. Values of variables and headers of a launch are known without this.
        message_limit: bytes of a message that are written; of a longer one only the beginning is.
            1 MiB by default.
        file_limit: the file's maximum size in bytes. What follows is counted, and not written. 256
            MiB by default.

    Raises:
        ValueError: a limit isn't positive, or one of `redact` isn't a JSON pointer.
    """

    path: str | os.PathLike[str]
    redact: tuple[str, ...] = ()
    with_secrets: bool = False
    secrets: frozenset[str] = frozenset()
    message_limit: int = _MESSAGE_LIMIT
    file_limit: int = _FILE_LIMIT

    def __post_init__(self) -> None:
        for name in ("message_limit", "file_limit"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} has to be positive, not {getattr(self, name)}")
        Redactor(b"", self.redact)

    def __repr__(self) -> str:
        return f"<Recording in {os.fspath(self.path)}>"

    __rich_repr__ = None  # type: ignore[assignment]


class _Capture(Struct, gc=False):
    """A capture that waits in the queue for the thread.

    Thousands wait at once, and the garbage collector doesn't follow them.
    """

    time_ns: int
    make_lines: MakeLines
    what: Any
    size: int


class Recorder:
    """An open trace file, and the thread that writes it.

    It is an `HttpRecorderLike`. Its methods may be called from one thread, and never wait, but for
    `close`, which may be called from another one.

    Args:
        record: the file, or a `Recording` with options.
        observer: the side that records; `between` for a proxy.
        transport: the transport, for the header.
        target: the command's words, or the URL as the only word; empty if not known.
        entropy: returns so many random bytes.
        log: the method `log` of a `logging.Logger`.
        on_line: called in the thread with each line before it is written, without secrets, also
            with those that the file doesn't take. It must not wait or raise.
        secrets: known secrets, which are hidden everywhere, unless `record` says that the
            file has all of them. The secrets of `record` and `target` are known, too.
        fuzzer: the side that breaks rules on purpose, for the header; None for no side.

    Attributes:
        header: the trace's header.

    *Resource handling*: the file is open until `close`.

    Raises:
        CannotRecord: the file cannot be opened.
    """

    def __init__(
        self,
        record: str | os.PathLike[str] | Recording,
        observer: Observer,
        transport: str,
        target: Sequence[str | os.PathLike[str]] = (),
        *,
        entropy: Callable[[int], bytes],
        log: Callable[..., object],
        on_line: OnLine | None = None,
        secrets: Iterable[str] = (),
        fuzzer: Sender | None = None,
    ) -> None:
        recording = record if isinstance(record, Recording) else Recording(path=record)
        self._recording = recording
        self._log = log
        self._redactor = None
        if not recording.with_secrets:
            words = [os.fspath(word) for word in target]
            known = {*recording.secrets, *secrets, *launch_secrets(words)}
            self._redactor = Redactor(entropy(32), recording.redact, known)
        self._conversations = ConversationNumbers(single=observer == "client")
        self._exchanges = 0
        self._our_side: Sender = "server" if observer == "server" else "client"
        self._fd = _open(recording.path)
        self._is_file = stat.S_ISREG(os.fstat(self._fd).st_mode)
        # Where a file that was moved is replaced, although the process may change its directory.
        self._place = Path(recording.path).absolute() if self._is_file else None
        self._cannot_replace = False
        self._size = 0  # bytes in the file
        self._started_at = time.monotonic_ns()
        self.header = TraceHeader(
            format_version=FORMAT_VERSION,
            at=_utc_text(time.time()),
            by=f"mcp-trio {__version__}",
            observer=observer,
            transport=transport,
            target=self._redact_target(target),
            redacted=() if self._redactor is None else self._redactor.redacted,
            fuzzer=UNSET if fuzzer is None else fuzzer,
        )
        self._has_reader = on_line is not None  # which gets lines that the file doesn't take
        self._is_writable = True
        self._encoder = TraceEncoder(self.header, self._redactor, recording.file_limit, on_line)
        self._queue: deque[_Capture] = deque()
        # Written by one thread each, so that neither needs a lock.
        self._queued_bytes = 0
        self._taken_bytes = 0
        self._lost = 0  # lines that were dropped since the last one that was queued
        # False while the file is at its limit, and once it cannot be written.
        self._takes_lines = True

        self._awake = False
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="mcp-trio recorder", daemon=True).start()

    def __repr__(self) -> str:
        return f"<Recorder of {os.fspath(self._recording.path)}, {len(self._queue)} queued>"

    def _redact_target(self, target: Sequence[str | os.PathLike[str]]) -> str:
        words = [os.fspath(word) for word in target]
        if len(words) == 1 and "://" in words[0]:
            return words[0] if self._redactor is None else self._redactor.redact_url(words[0])
        return shlex.join(words if self._redactor is None else self._redactor.redact_command(words))

    # -- Channels ----------------------------------------------------------------------------------

    def stream(self) -> StreamRecorder:
        """Begin the recording of a conversation on a byte stream."""
        number = self._conversations.new()
        channel = StreamChannel(number, self._recording.message_limit)
        return StreamRecorder(self, channel, self._our_side)

    def child(self, command: Sequence[str | os.PathLike[str]]) -> ChildRecorder:
        """Begin the recording of a child process, whose conversation `stream` then records.

        `command` is the words of the command that starts it.
        """
        return ChildRecorder(
            self,
            ChildChannel(self._conversations.next_number, self._recording.message_limit),
            self._redact_target(command),
        )

    def lines(self) -> LineRecorder:
        """Begin the recording of conversations of which the caller makes the lines."""
        return LineRecorder(self, self._recording.message_limit)

    def websocket(self) -> WebSocketRecorder:
        """Begin the recording of a conversation over a WebSocket."""
        number = self._conversations.new()
        channel = WebSocketChannel(number, 0, self._recording.message_limit)
        return WebSocketRecorder(self, channel, self._our_side)

    def begin(self, head: RequestHead, body: bytes | None, http_version: str) -> ExchangeRecorder:
        """Begin the recording of an HTTP exchange. `body` is None if it follows in pieces."""
        number = self.new_exchange()
        channel = HttpChannel(number, self._conversations, self._recording.message_limit)
        size = 0 if body is None else len(body)
        is_recorded = self.put(channel.request, (head, body, http_version), size)
        return ExchangeRecorder(self, channel, self._our_side, is_recorded)

    def new_conversation(self) -> int:
        """Return the number of another conversation, of which a `LineRecorder` gives the lines."""
        return self._conversations.new()

    def new_exchange(self) -> int:
        """Return the number of another exchange, of which a `LineRecorder` gives the lines."""
        self._exchanges += 1
        return self._exchanges

    def note(self, text: str) -> None:
        """Write `text` as a note."""
        self.put(_note_line, text, len(text))

    def note_fetch(self, method: str, url: str, outcome: str) -> None:
        """Note a request for authorization. Its content is a secret, and isn't recorded.

        Args:
            method: the HTTP method.
            url: the URL; its query is hidden.
            outcome: the response's status, or why there is none.
        """
        shown = url if self._redactor is None else self._redactor.redact_url(url)
        self.note(f"authorization: {method} {shown}: {outcome}")

    # -- The queue ---------------------------------------------------------------------------------

    def put(self, make_lines: MakeLines, what: Any, size: int) -> bool:
        """Queue what was captured now. Return False if it was dropped.

        Args:
            make_lines: makes the lines of it, in this recorder's thread.
            what: the capture. It must not change later.
            size: its size in bytes.
        """
        if not self._takes_lines:
            self.drop(what)
            self._wake_thread()  # the file may have been moved, so that there is another one
            return False
        size += _ITEM_SIZE
        queued = self._queued_bytes - self._taken_bytes
        if queued and queued + size > _MAX_QUEUED:
            self.drop(what)
            return False
        if self._lost:
            self._queue.append(_Capture(time.monotonic_ns(), _lost_lines, self._lost, 0))
            self._lost = 0
        self._queued_bytes += size
        self._queue.append(_Capture(time.monotonic_ns(), make_lines, what, size))
        self._wake_thread()
        return True

    def _wake_thread(self) -> None:
        if not self._awake:
            self._awake = True
            self._wake.set()

    def drop(self, what: Any) -> None:
        """Count the lines of `what` as lost."""
        self._lost += what.count(b"\n") or 1 if isinstance(what, bytes) else 1

    def close(self) -> None:
        """Write what is queued and close the file. Wait for it, two seconds at most.

        Call it in a thread that may wait, once nothing is recorded any more.
        """
        self._closing.set()
        self._wake.set()
        if not self._closed.wait(_CLOSE_TIMEOUT):
            text = "the end of the trace %s may be missing: it is written slowly"
            self._log(_WARNING, text, self._path)

    @property
    def is_closed(self) -> bool:
        """True once everything that was queued is written, or cannot be."""
        return self._closed.is_set()

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
            beginning = self._begin_again()
            self._encoder.add_lost(self._lost)
            self._write(beginning + self._encoder.end(self._now()))
        except OSError as exc:
            self._fail(exc.strerror or str(exc))
        except Exception as exc:  # noqa: BLE001 - rule 3
            self._fail("internal error")
            self._log(_ERROR, "internal error of %r", self, exc_info=exc)
        finally:
            self._takes_lines = False
            self._queue.clear()  # nothing is kept that cannot be written
            os.close(self._fd)
            self._closed.set()

    def _write_queue(self) -> None:
        queue = self._queue
        lines: list[TraceLine] = []
        length = 0
        was_full = self._encoder.is_full
        while queue:
            capture = queue.popleft()
            self._taken_bytes += capture.size
            lines += capture.make_lines(self._seconds(capture.time_ns), capture.what)
            length += capture.size
            if length >= _CHUNK:
                self._write_lines(lines)
                lines.clear()
                length = 0
        self._write_lines(lines)
        if self._encoder.is_full and self._takes_lines:
            if not self._has_reader:
                self._takes_lines = False  # from here on they are only counted
            elif was_full:
                return
            self._log(
                _WARNING,
                "the trace %s has reached %d bytes, its limit: the rest is not recorded",
                self._path,
                self._recording.file_limit,
            )

    def _seconds(self, time_ns: int) -> float:
        """Return the time since the header with six digits."""
        return (time_ns - self._started_at) // 1000 / 1_000_000

    def _now(self) -> float:
        return self._seconds(time.monotonic_ns())

    def _write_lines(self, lines: Sequence[TraceLine]) -> None:
        if lines or self._encoder.is_full:
            # Before they are encoded: the limit holds for each file.
            beginning = self._begin_again()
            self._write(beginning + self._encoder.encode(lines))

    def _begin_again(self) -> bytes:
        """If another program has taken the file away, return the beginning of a new one, or b""."""
        if self._place is None or not self._size:
            return b""
        ours = os.fstat(self._fd)
        is_truncated = ours.st_size < self._size
        if self._follow_move(ours, is_truncated):
            text = "the file before this one was moved"
            end = self._encoder.end(self._now()) if is_truncated else b""
        elif is_truncated:
            text, end = "the file was truncated", self._encoder.end(self._now())
        else:
            return b""
        self._size = 0
        note = TraceLine(t=self._now(), kind="note", text=text)
        beginning = self._encoder.begin() + encode_line(note) + end
        self._takes_lines = True
        return beginning

    def _follow_move(self, ours: os.stat_result, is_truncated: bool) -> bool:
        """Open a new file if ours was moved. Return False if it wasn't, or that is impossible."""
        assert self._place is not None
        try:
            if os.path.samestat(ours, self._place.stat()):
                return False
        except OSError:
            pass  # there is no file of this name
        try:
            new = _open(self._place)
        except CannotRecord as exc:
            if not self._cannot_replace:
                self._cannot_replace = True
                text = "the trace %s was moved, and goes on in the moved file: %s"
                self._log(_WARNING, text, self._path, exc)
            return False
        if not is_truncated:
            self._write(self._encoder.end(self._now()))
        os.close(self._fd)
        self._fd = new
        self._cannot_replace = False
        return True

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self._is_writable:
            try:
                count = os.write(self._fd, rest)
            except OSError as exc:
                if not self._has_reader:
                    raise
                self._is_writable = False
                self._fail(exc.strerror or str(exc))
                return
            self._size += count
            rest = rest[count:]

    def _fail(self, reason: str) -> None:
        self._log(_ERROR, "the trace %s is not written any more: %s", self._path, reason)


class _ChannelRecorder:
    """Records by one channel. What follows a capture that was dropped may be the rest of a message.

    Args:
        recorder: the recorder that makes this.
        channel: makes lines of what is captured.
    """

    __slots__ = ("_channel", "_has_gap", "_recorder")

    def __init__(self, recorder: Recorder, channel: Any) -> None:
        self._recorder = recorder
        self._channel = channel
        self._has_gap = False

    def _put(self, make_lines: MakeLines, what: Any, size: int) -> None:
        if self._has_gap:
            make_lines = partial(_after_gap, self._channel.skip, make_lines)
        self._has_gap = not self._recorder.put(make_lines, what, size)


def _after_gap(
    skip: Callable[[], object], make_lines: MakeLines, t: float, what: Any
) -> Iterable[TraceLine]:
    skip()
    return make_lines(t, what)


class StreamRecorder(_ChannelRecorder):
    """The recording of a conversation on a byte stream.

    Args:
        recorder: the recorder, whose `stream` makes this.
        channel: makes lines of the bytes.
        our_side: the side that records.
    """

    __slots__ = ("_received", "_sent")

    def __init__(self, recorder: Recorder, channel: StreamChannel, our_side: Sender) -> None:
        super().__init__(recorder, channel)
        ours, theirs = channel.client_data, channel.server_data
        if our_side == "server":
            ours, theirs = theirs, ours
        self._sent = ours
        self._received = theirs

    def sent(self, data: bytes) -> None:
        """Record `data`, which is about to be sent; `b""` for the stream's end."""
        self._put(self._sent, data, len(data))

    def received(self, data: bytes) -> None:
        """Record `data`, which was received; `b""` for the stream's end."""
        self._put(self._received, data, len(data))


class LineRecorder:
    """The recording of conversations whose lines the caller makes, such as a case's.

    Lines get the time at which they are recorded, and numbers of this trace. Lines
    of two recorders of this kind are different conversations.

    Args:
        recorder: the recorder, whose `lines` makes this.
        limit: bytes of a message that are written.
    """

    __slots__ = ("_conversations", "_exchanges", "_limit", "_recorder")

    def __init__(self, recorder: Recorder, limit: int) -> None:
        self._recorder = recorder
        self._limit = limit
        # Numbers in this trace, by those that the lines have.
        self._conversations: dict[int, int] = {}
        self._exchanges: dict[int, int] = {}

    def record(self, line: TraceLine) -> None:
        """Record `line`."""
        recorder = self._recorder
        conversation = self._conversations.get(line.conversation)
        if conversation is None:
            conversation = recorder.new_conversation()
            _remember(self._conversations, line.conversation, conversation)
        exchange = self._exchanges.get(line.exchange) if line.exchange else 0
        if exchange is None:
            exchange = recorder.new_exchange()
            _remember(self._exchanges, line.exchange, exchange)
        size = len(line.raw or line.data or line.text or "")
        recorder.put(self._lines, (line, conversation, exchange), size)

    def _lines(self, t: float, what: tuple[TraceLine, int, int]) -> list[TraceLine]:
        line, conversation, exchange = what
        line = replace(line, t=t, conversation=conversation, exchange=exchange)
        if line.raw is not None and len(line.raw) > self._limit:
            data = line.raw.encode()
            truncated = TruncatedMessage(size=len(data), sha256=sha256(data).hexdigest())
            beginning = data[: self._limit].decode(errors="ignore")
            line = replace(line, raw=beginning, truncated=truncated)
        return [line]


def _remember(numbers: dict[int, int], theirs: int, ours: int) -> None:
    numbers[theirs] = ours
    if len(numbers) > _MAX_NUMBERS:
        del numbers[next(iter(numbers))]


class ChildRecorder(_ChannelRecorder):
    """The recording of a child process: its start, which is now, its stderr and its exit.

    Args:
        recorder: the recorder, whose `child` makes this.
        channel: makes lines of what the child does.
        command: the command without secrets, as a shell takes it.
    """

    __slots__ = ()

    def __init__(self, recorder: Recorder, channel: ChildChannel, command: str) -> None:
        super().__init__(recorder, channel)
        self._put(channel.spawned, command, len(command))

    def stderr(self, data: bytes) -> None:
        """Record `data`, a piece of its stderr."""
        self._put(self._channel.stderr, data, len(data))

    def exited(self, status: int) -> None:
        """Record its exit with `status`, as of `subprocess`: a signal is negative."""
        self._put(self._channel.exited, status, 0)


class WebSocketRecorder(_ChannelRecorder):
    """The recording of a WebSocket. `our_side` is the recorder's side."""

    __slots__ = ("_sides",)

    def __init__(
        self, recorder: Recorder, channel: WebSocketChannel | HttpChannel, our_side: Sender
    ) -> None:
        super().__init__(recorder, channel)
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
        self._put(self._channel.message, (sender, message), len(message))

    def _put_close(self, sender: Sender, code: int, reason: str) -> None:
        self._put(self._channel.close, (sender, code, reason), len(reason))


class ExchangeRecorder(Struct, gc=False, eq=False):
    """The recording of one HTTP exchange. It is a `Struct`, because one is made for each exchange.

    Args:
        recorder: the recorder, whose `begin` makes this.
        channel: makes lines of the exchange.
        our_side: the side that records.
        is_recorded: False if its request was lost. Then the rest of it is lost, too.
    """

    recorder: Recorder
    channel: HttpChannel
    our_side: Sender
    is_recorded: bool
    _is_over: bool = False
    _has_gap: bool = False

    def _put(self, make_lines: MakeLines, what: Any, size: int) -> None:
        if self.is_recorded:
            if self._has_gap:
                make_lines = partial(_after_gap, self.channel.skip, make_lines)
            self._has_gap = not self.recorder.put(make_lines, what, size)
        else:
            self.recorder.drop(what)

    def request_data(self, data: bytes, *, end: bool) -> None:
        """Record `data`, a piece of the request's body; `b""`, or one with `end`, is the last."""
        self._put(self.channel.request_data, (bytes(data), end), len(data))

    def response(self, actions: Sequence[Action]) -> None:
        """Record `actions`, part of the response."""
        size = 0
        for action in actions:
            if type(action) is Body:
                size += len(action.data)
        self._put(self.channel.response, tuple(actions), size)
        self._is_over = type(actions[-1]) is End

    def ended(self, side: Sender, reason: str) -> None:
        """Record that `side` has ended the exchange early, and the `reason`, such as `reset`.

        Harmless if it is complete.
        """
        if not self._is_over:
            self._is_over = True
            self._put(self.channel.ended, (side, reason), 0)

    def websocket(self) -> WebSocketRecorder:
        """Begin the recording of the WebSocket that the exchange has opened."""
        return WebSocketRecorder(self.recorder, self.channel, self.our_side)


def _lost_lines(t: float, count: int) -> list[TraceLine]:
    return [TraceLine(t=t, kind="lost", count=count)]


def _note_line(t: float, text: str) -> list[TraceLine]:
    return [TraceLine(t=t, kind="note", text=text)]


def _utc_text(seconds: float) -> str:
    found = datetime.fromtimestamp(seconds, UTC)
    return found.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _open(path: str | os.PathLike[str]) -> int:
    """Open a file for writing that only its owner can read, and not through a link to a file.

    Raises:
        CannotRecord: it cannot be opened.
    """
    # O_NONBLOCK: a pipe without a reader is an error, and nothing to wait for. O_APPEND: if another
    # program truncates the file, no hole is left.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        fd = os.open(path, flags | _no_follow(path), 0o600)
    except OSError as exc:
        raise _cannot_record(path, exc) from exc
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            _lock(fd)
            if hasattr(os, "fchmod"):
                os.fchmod(fd, 0o600)
            # ext4 writes a file that was truncated to the disk when it is closed.
            if os.fstat(fd).st_size:
                os.ftruncate(fd, 0)
        if hasattr(os, "O_NONBLOCK"):
            os.set_blocking(fd, True)
    except OSError as exc:
        os.close(fd)
        raise _cannot_record(path, exc) from exc
    return fd


def _no_follow(path: str | os.PathLike[str]) -> int:
    """Return the flag that refuses a link, unless it leads to a device or a pipe: /dev/stderr."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  the path may be of another type
    except OSError:
        mode = stat.S_IFREG
    return getattr(os, "O_NOFOLLOW", 0) if stat.S_ISREG(mode) else 0


def _lock(fd: int) -> None:
    """Lock a file until it is closed, if the system can.

    Raises:
        BlockingIOError: another recorder has locked it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        pass  # some network file systems have no locks


def _cannot_record(path: str | os.PathLike[str], exc: OSError) -> CannotRecord:
    if isinstance(exc, BlockingIOError):
        reason = "another recorder writes it: give each recorder a file of its own"
    elif exc.errno == errno.ENXIO:
        reason = "it is a pipe that no program reads"
    elif exc.errno == errno.ELOOP:
        reason = "it is a symbolic link: remove it, or name the file that it leads to"
    else:
        reason = (exc.strerror or str(exc)).lower()
    return CannotRecord(exc.errno, f"cannot record in {os.fspath(path)}: {reason}")
