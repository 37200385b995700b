"""The recorder and its file: what goes wrong there is never felt by the conversation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from mcp_core.adapters import CannotRecord, Recorder, Recording, _recorder
from mcp_core.http import Body, End, Head, RequestHead
from mcp_core.trace import DamagedLine, TraceLine, read_trace
from tests.harness.world.waiting import PATIENCE, wait_until

POSIX = pytest.mark.skipif(os.name == "nt", reason="needs files as on POSIX")
POST = RequestHead(b"POST", b"/mcp", [(b"host", b"localhost")])
HEAD = Head(200, [(b"content-type", b"application/json")])


class Log:
    """The method `log` of a logger. `texts` are its messages."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, level: int, template: str, *args: object, exc_info: object = None) -> None:
        self.texts.append(template % args)


def open_file(record: Any, log: Log | None = None, **options: Any) -> Recorder:
    options = {"observer": "client", "transport": "stream", "entropy": bytes, **options}
    return Recorder(record, log=log or Log(), **options)


def read_lines(path: Path) -> list[TraceLine]:
    """Return the lines of a trace without damage."""
    _, lines = read_trace([path.read_bytes()])
    found = [line for _, line in lines]
    assert not [line for line in found if isinstance(line, DamagedLine)]
    return [line for line in found if isinstance(line, TraceLine)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.mcp.jsonl"


# -- The file --------------------------------------------------------------------------------------


@POSIX
def test_second_recorder_of_a_file_is_refused_and_harms_no_trace(path: Path) -> None:
    first = open_file(path)
    first.note("a note")
    with pytest.raises(CannotRecord, match="another recorder writes it"):
        open_file(path)
    first.close()
    assert [line.text for line in read_lines(path)] == ["a note"]
    open_file(path).close()  # now it may be replaced
    assert read_lines(path) == []


@pytest.mark.process
@POSIX
def test_file_of_another_process_is_refused(path: Path) -> None:
    recorder = open_file(path)
    code = f"from tests.core.adapters.test_recorder import open_file; open_file({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "another recorder writes it" in done.stderr
    recorder.close()


def test_error_of_a_file_names_it_and_its_reason(tmp_path: Path) -> None:
    with pytest.raises(CannotRecord) as caught:
        open_file(tmp_path)
    assert str(caught.value) == f"cannot record in {tmp_path}: is a directory"
    with pytest.raises(CannotRecord, match=r"cannot record in .*no.x: no such file or directory"):
        open_file(tmp_path / "no" / "x")


@POSIX
def test_file_that_another_program_truncates_begins_anew(path: Path) -> None:
    recorder = open_file(path)
    record = recorder.stream()
    record.sent(b"first\n")
    wait_until(lambda: b"first" in path.read_bytes())
    with path.open("r+b") as file:
        file.truncate()
    record.sent(b"second\n")
    wait_until(lambda: b"second" in path.read_bytes())
    record.sent(b"third\n")
    recorder.close()
    note, *rest = read_lines(path)
    assert (note.kind, note.text) == ("note", "the file was truncated")
    assert [line.raw for line in rest] == ["second", "third"]


def wait_for(word: bytes, file: Path) -> None:
    wait_until(lambda: word in file.read_bytes())


@POSIX
@pytest.mark.parametrize("creates", [False, True], ids=["moved", "moved, and created anew"])
def test_file_that_was_moved_is_followed_by_a_new_one(creates: bool, tmp_path: Path) -> None:
    """As by logrotate. The moved file is complete, and the new one is a trace of its own."""
    path, moved = tmp_path / "x.mcp.jsonl", tmp_path / "x.mcp.jsonl.1"
    recorder = open_file(path)
    record = recorder.stream()
    for word in (b"first", b"second"):
        record.sent(word + b"\n")
        wait_for(word, path)
        path.rename(moved)
        if creates:
            path.touch()
        record.sent(b"after " + word + b"\n")
        wait_until(lambda: path.exists() and path.stat().st_size)
        assert [line.raw for line in read_lines(moved)][-1] == word.decode()
    recorder.close()
    note, line = read_lines(path)
    assert (note.kind, note.text) == ("note", "the file before this one was moved")
    assert line.raw == "after second"
    assert path.stat().st_mode & 0o777 == 0o600


@POSIX
def test_file_that_was_moved_where_no_new_one_is_possible_goes_on(tmp_path: Path) -> None:
    """The open file goes on after one warning: a lost directory must not lose messages."""
    log = Log()
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    place.mkdir()
    recorder = open_file(place / "x", log)
    record = recorder.stream()
    record.sent(b"first\n")
    wait_until(lambda: b"first" in (place / "x").read_bytes())
    place.rename(elsewhere)
    for word in ("second", "third"):
        record.sent(word.encode() + b"\n")
        wait_for(word.encode(), elsewhere / "x")
    recorder.close()
    assert [line.raw for line in read_lines(elsewhere / "x")] == ["first", "second", "third"]
    (text,) = log.texts
    assert text.startswith(f"the trace {place / 'x'} was moved, and goes on in the moved file: ")


@POSIX
def test_file_after_one_that_was_moved_has_the_whole_limit(tmp_path: Path) -> None:
    """The size of the moved file doesn't count: `third` would not fit otherwise."""
    path, moved = tmp_path / "x", tmp_path / "x.1"
    recorder = open_file(Recording(path=path, file_limit=1_000_000))
    record = recorder.stream()
    half = b"-" * 700_000  # more than half of what a file takes
    record.sent(b"first" + half + b"\n")
    wait_for(b"first", path)
    path.rename(moved)
    record.sent(b"second\n")
    wait_until(path.exists)
    wait_for(b"second", path)
    record.sent(b"third" + half + b"\n")
    recorder.close()
    note, *rest = read_lines(path)
    assert note.kind == "note"
    assert [(line.raw or line.kind or "")[:6] for line in rest] == ["second", "third-"]


@POSIX
def test_file_that_was_moved_where_a_new_one_is_impossible_is_logged_each_time(
    tmp_path: Path,
) -> None:
    """The warning comes once per move, not once in the recorder's life."""
    log = Log()
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    place.mkdir()
    recorder = open_file(place / "x", log)
    record = recorder.stream()
    record.sent(b"first\n")
    wait_for(b"first", place / "x")
    for count in (1, 2):
        place.rename(elsewhere)
        record.sent(b"lost %d\n" % count)
        wait_for(b"lost %d" % count, elsewhere / "x")
        assert len(log.texts) == count
        place.mkdir()
        record.sent(b"found %d\n" % count)
        wait_until((place / "x").exists)
        wait_for(b"found %d" % count, place / "x")
        (elsewhere / "x").unlink()
        elsewhere.rmdir()
    recorder.close()


LIMIT = 4_000  # bytes of a file
TAKEN_AWAY = ("moved", "truncated", "truncated and moved")


def take_away(path: Path, moved: Path, how: str) -> None:
    """Do as logrotate does: `create`, `copytruncate`, or one after the other."""
    if "truncated" in how:
        with path.open("r+b") as file:
            file.truncate()
    if "moved" in how:
        path.rename(moved)


@POSIX
@pytest.mark.parametrize("how", TAKEN_AWAY)
@pytest.mark.parametrize("has_reader", [False, True], ids=["", "with a reader"])
@pytest.mark.parametrize("is_full", [False, True], ids=["open", "full"])
def test_file_that_was_taken_away_is_followed_by_a_new_one(
    is_full: bool, has_reader: bool, how: str, tmp_path: Path
) -> None:
    """A moved file that was full says how many lines it lacks, and the new one is a whole trace."""
    path, moved = tmp_path / "x", tmp_path / "x.1"
    log, texts = Log(), []
    options = {"on_line": lambda line: texts.append(line.raw)} if has_reader else {}
    recorder = open_file(Recording(path=path, file_limit=LIMIT), log, **options)
    record = recorder.stream()
    record.sent(b"first\n")
    wait_for(b"first", path)
    if is_full:
        record.sent(b"-" * LIMIT + b"\n")
        wait_until(lambda: log.texts)
    take_away(path, moved, how)
    record.sent(b"wakes the thread\n")
    wait_until(lambda: path.exists() and path.stat().st_size)
    record.sent(b"may be the rest of a message\n")
    record.sent(b"last\n")
    recorder.close()
    note, *rest = read_lines(path)
    text = "the file before this one was moved" if "moved" in how else "the file was truncated"
    assert (note.kind, note.text) == ("note", text)
    assert rest[-1].raw == "last"
    lines = list(rest)
    if how == "moved":
        first, *more = read_lines(moved)
        assert first.raw == "first"
        assert [line.kind for line in more] == ["lost"] * is_full
        lines += more
    elif how == "truncated and moved":
        assert moved.read_bytes() == b""
    # With a reader the line that wakes the thread is kept.
    assert sum(line.count or 0 for line in lines) == is_full * (1 if has_reader else 2)


@POSIX
def test_file_after_one_that_was_truncated_has_the_whole_limit(path: Path) -> None:
    recorder = open_file(Recording(path=path, file_limit=LIMIT))
    record = recorder.stream()
    half = b"-" * 2_000
    for word in (b"first", b"second", b"third"):
        record.sent(word + half + b"\n")
        wait_for(word, path)
        take_away(path, path, "truncated")
    recorder.close()


@POSIX
def test_file_that_was_moved_is_replaced_in_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recorder = open_file(Path("x"))
    record = recorder.stream()
    record.sent(b"first\n")
    wait_until(lambda: b"first" in Path("x").read_bytes())
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    (tmp_path / "x").rename(tmp_path / "y")
    record.sent(b"second\n")
    recorder.close()
    assert [line.raw for line in read_lines(tmp_path / "x")][-1] == "second"
    assert not Path("x").exists()


@POSIX
def test_pipe_without_a_reader_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(CannotRecord, match="it is a pipe that no program reads"):
        open_file(pipe)


@POSIX
def test_pipe_whose_reader_leaves_ends_the_recording_only(tmp_path: Path) -> None:
    pipe, log = tmp_path / "pipe", Log()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    recorder = open_file(pipe, log)
    os.close(reader)
    record = recorder.stream()
    record.sent(b"a\n")
    wait_until(lambda: log.texts)
    for _ in range(1000):
        record.sent(b"b" * 1000 + b"\n")
    assert not recorder._queue
    recorder.close()
    assert log.texts == [f"the trace {pipe} is not written any more: Broken pipe"]


@POSIX
def test_pipe_that_is_not_read_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`close` gives up after its timeout with a warning, and the queue stays in its limit."""
    monkeypatch.setattr(_recorder, "_CLOSE_TIMEOUT", 0.05)
    monkeypatch.setattr(_recorder, "_MAX_QUEUED", 100_000)
    pipe, log = tmp_path / "pipe", Log()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    recorder = open_file(pipe, log)
    record = recorder.stream()
    for _ in range(2_000):
        record.sent(b"x" * 1000 + b"\n")
    recorder.close()  # nothing is read from the pipe before it returns
    assert log.texts == [f"the end of the trace {pipe} may be missing: it is written slowly"]
    assert recorder._queued_bytes - recorder._taken_bytes <= 100_000
    while not recorder._closed.is_set():
        try:
            os.read(reader, 65_536)
        except BlockingIOError:
            time.sleep(0.001)
    os.close(reader)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_logged_once_and_keeps_no_memory() -> None:
    log = Log()
    recorder = open_file("/dev/full", log)
    wait_until(lambda: log.texts)
    record = recorder.stream()
    for _ in range(1000):
        record.sent(b"x\n")
    assert not recorder._queue
    recorder.close()
    assert log.texts == ["the trace /dev/full is not written any more: No space left on device"]


# -- Limits ----------------------------------------------------------------------------------------


@pytest.mark.perf
def test_gigabyte_of_messages_stays_within_the_limit_of_the_file(path: Path) -> None:
    """Memory stays bounded, and what is not written costs next to nothing."""
    log = Log()
    recorder = open_file(Recording(path=path, file_limit=2 * 1024 * 1024), log)
    record = recorder.stream()
    message = b"x" * (1024 * 1024 - 1) + b"\n"
    tracemalloc.start()
    try:
        for _ in range(1024):
            record.sent(message)
        recorder.close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024 * 1024
    assert path.stat().st_size <= 2 * 1024 * 1024
    *sent, lost = read_lines(path)
    assert lost.kind == "lost"
    assert len(sent) == 1
    # A message after a gap may be the rest of one. It is dropped, and not counted. How many gaps
    # there are depends on how often the thread has its turn: at most one for each other message.
    assert 512 <= sum(line.count or 1 for line in [*sent, lost]) <= 1024
    assert len(log.texts) == 1


class HeldUp:
    """A recorder whose thread cannot write before `go` is set."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, queued: int) -> None:
        self.go = threading.Event()
        write = os.write

        def slow_write(fd: int, data: Any) -> int:
            self.go.wait(PATIENCE)
            return write(fd, data)

        monkeypatch.setattr(_recorder, "_MAX_QUEUED", queued)
        monkeypatch.setattr("os.write", slow_write)
        self.recorder = open_file(path)

    def catch_up(self) -> None:
        self.go.set()
        wait_until(lambda: not self.recorder._queue)


def record_exchange(recorder: Recorder) -> None:
    exchange = recorder.begin(POST, b"{}", "1.1")
    exchange.response([HEAD, Body(b"{}"), End()])


def test_exchanges_that_are_lost_keep_no_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No recorded response lacks its request, and the trace counts the items that were dropped."""
    held_up = HeldUp(path, monkeypatch, queued=2_000)
    for _ in range(1_000):
        record_exchange(held_up.recorder)
    assert len(held_up.recorder._queue) <= 2_000 / _recorder._ITEM_SIZE
    held_up.catch_up()
    record_exchange(held_up.recorder)
    held_up.recorder.close()
    lines = read_lines(path)
    requests = {line.exchange for line in lines if line.http and line.http.method}
    responses = {line.exchange for line in lines if line.http and line.http.status}
    assert responses <= requests
    assert 1001 in responses
    assert sum(line.count or 0 for line in lines) >= 1_980


def test_websocket_of_a_lost_exchange_has_a_conversation_of_its_own(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_up = HeldUp(path, monkeypatch, queued=1)
    held_up.recorder.note("fills the queue")
    exchange = held_up.recorder.begin(POST, None, "1.1")
    exchange.response([Head(101, [])])
    socket = exchange.websocket()
    held_up.catch_up()
    socket.received(b"a")
    held_up.recorder.close()
    note, lost, message = read_lines(path)
    assert (note.kind, lost.kind, lost.count) == ("note", "lost", 2)
    assert (message.raw, message.conversation, message.exchange) == ("a", 1, 1)


def test_line_with_a_gap_is_not_continued_after_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_up = HeldUp(path, monkeypatch, queued=1)
    stream = held_up.recorder.stream()
    stream.sent(b'{"a":')
    stream.sent(b"[1,")  # the queue is full
    held_up.catch_up()
    stream.sent(b'2]}\n{"b":3}\n')
    held_up.recorder.close()
    lines = read_lines(path)
    assert [(line.kind, line.raw) for line in lines] == [("lost", None), (None, '{"b":3}')]


# -- The end ---------------------------------------------------------------------------------------

INTERRUPTED = """
import sys, trio
from mcp_trio.recording._open import open_recorder
async def main():
    async with open_recorder(sys.argv[1], "client", "stream") as recorder:
        record = recorder.stream()
        number = 0
        while True:
            record.sent(b"%d\\n" % number)
            number += 1
            if number == 1000:
                print("ready", flush=True)
            await trio.sleep(0)
trio.run(main)
"""


@pytest.mark.process
@POSIX
def test_trace_is_complete_after_an_interrupt_while_it_is_written(path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"ready\n"
    program.send_signal(signal.SIGINT)
    _, error = program.communicate(timeout=PATIENCE)
    assert b"KeyboardInterrupt" in error
    numbers = [int(line.raw or "") for line in read_lines(path) if line.raw]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 1000


# -- Lines that the caller makes -------------------------------------------------------------------


def test_lines_of_two_sources_are_different_conversations(path: Path) -> None:
    """Numbers and times of a source's own are replaced, as two sources may use the same ones."""
    recorder = open_file(path)
    first, second = recorder.lines(), recorder.lines()
    for source in (first, second, first):
        source.record(TraceLine(t=99, conversation=1, exchange=5, raw="a"))
    first.record(TraceLine(t=0, conversation=2, raw="b", sender="client"))
    recorder.close()
    found = read_lines(path)
    assert [(each.conversation, each.exchange) for each in found] == [
        (1, 1),
        (2, 2),
        (1, 1),
        (3, 0),
    ]
    times = [each.t for each in found]
    assert times == sorted(times)
    assert times[-1] < 99
    assert (found[-1].raw, found[-1].sender) == ("b", "client")


def test_lines_of_many_exchanges_keep_their_conversation_and_no_memory(path: Path) -> None:
    recorder = open_file(path)
    source = recorder.lines()
    for exchange in range(1, 3001):
        source.record(TraceLine(t=0, exchange=exchange))
    recorder.close()
    found = read_lines(path)
    assert {each.conversation for each in found} == {1}
    assert [each.exchange for each in found] == list(range(1, 3001))
    assert len(source._exchanges) == 1000


@pytest.mark.parametrize("name", ["message_limit", "file_limit"])
@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_recording_limit_that_is_not_positive_raises(path: Path, name: str, limit: float) -> None:
    options: dict[str, Any] = {name: limit}
    with pytest.raises(ValueError, match=rf"{name} has to be positive, not {limit}"):
        Recording(path=path, **options)


def test_line_with_a_long_message_has_its_beginning(path: Path) -> None:
    recorder = open_file(Recording(path=path, message_limit=5))
    recorder.lines().record(TraceLine(t=0, sender="client", raw="abcdé" * 2))
    recorder.close()
    (line,) = read_lines(path)
    assert line.raw == "abcd"
    assert line.truncated is not None
    assert line.truncated.size == 12


@pytest.mark.parametrize("with_secrets", [True, False])
def test_query_of_an_authorization_request_is_noted_only_with_secrets(
    path: Path, with_secrets: bool
) -> None:
    recorder = open_file(Recording(path=path, with_secrets=with_secrets))
    recorder.note_fetch("GET", "https://as.test/token?code=n0tf0ry0u", "200")
    recorder.close()
    [note] = [line.text for line in read_lines(path) if line.text]
    assert note.startswith("authorization: GET https://as.test/token?code=")
    assert note.endswith(": 200")
    assert ("n0tf0ry0u" in note) is with_secrets


# -- What each method records ----------------------------------------------------------------------


def record_everything(recorder: Recorder) -> None:
    """Record something sent, then something received, in each kind of conversation."""
    stream = recorder.stream()
    stream.sent(b"1\n")
    stream.received(b"2\n")
    exchange = recorder.begin(RequestHead(b"GET", b"/mcp", []), b"", "1.1")
    exchange.response([Head(101, [])])
    for socket in (recorder.websocket(), exchange.websocket()):
        socket.sent(b"1")
        socket.received(b"2")
        socket.sent_close(1000, "1")
        socket.received_close(1001, "2")


@pytest.mark.parametrize(
    ("observer", "ours"), [("client", "client"), ("server", "server"), ("between", "client")]
)
def test_sender_of_a_line_is_the_side_that_has_sent_it(
    path: Path, observer: str, ours: str
) -> None:
    """A proxy takes the client's part: it sends what the client sends."""
    recorder = open_file(path, observer=observer)
    record_everything(recorder)
    recorder.close()
    theirs = {"client": "server", "server": "client"}[ours]
    found = [line for line in read_lines(path) if line.http is None or not line.http.method]
    senders = [line.sender for line in found if line.http is None or line.http.status is None]
    assert senders == [*[ours, theirs] * 5]
    assert recorder.header.observer == observer


@pytest.mark.parametrize("with_secrets", [True, False])
@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ([], ""),
        (["a b", Path("c")], "'a b' c"),
        (["http://host/mcp"], "http://host/mcp"),
        (["http://host/mcp", "--x"], "http://host/mcp --x"),
        (["://"], "://"),
    ],
)
def test_target_of_the_header_is_a_url_or_words_for_a_shell(
    path: Path, target: list[Any], shown: str, with_secrets: bool
) -> None:
    recorder = open_file(Recording(path=path, with_secrets=with_secrets), target=target)
    recorder.close()
    assert recorder.header.target == shown
    assert bool(recorder.header.redacted) is not with_secrets


def test_child_is_recorded_from_its_start_to_its_exit(path: Path) -> None:
    recorder = open_file(path)
    child = recorder.child(["server", "a b"])
    child.stderr(b"words\n")
    child.exited(-9)
    recorder.close()
    start, words, end = read_lines(path)
    assert (start.kind, start.text) == ("spawn", "server 'a b'")
    assert words.text == "words"
    assert (end.kind, end.status) == ("exit", -9)


def test_exchange_in_pieces_is_one_message_and_its_early_end_is_recorded_once(path: Path) -> None:
    """Nothing ends an exchange early that is complete."""
    recorder = open_file(path)
    exchange = recorder.begin(POST, None, "1.1")
    exchange.request_data(b'{"a"', end=False)
    exchange.request_data(b":1}", end=True)
    exchange.response([HEAD, Body(b"{}")])
    exchange.ended("server", "reset")
    exchange.ended("client", "reset")
    complete = recorder.begin(POST, b"{}", "1.1")
    complete.response([HEAD, Body(b"{}"), End()])
    complete.ended("client", "reset")
    recorder.close()
    lines = read_lines(path)
    assert [line.raw for line in lines if line.raw and "a" in line.raw] == ['{"a":1}']
    ends = [(line.exchange, line.end) for line in lines if line.end]
    assert ends == [(1, "reset"), (2, "complete")]


def test_numbers_of_conversations_and_exchanges_begin_at_one(path: Path) -> None:
    recorder = open_file(path)
    assert [recorder.new_conversation() for _ in range(2)] == [1, 2]
    assert [recorder.new_exchange() for _ in range(2)] == [1, 2]
    recorder.close()


def test_times_are_microseconds_since_the_header(path: Path) -> None:
    recorder = open_file(path)
    assert recorder._seconds(recorder._started_at + 1_234_567_999) == 1.234567
    states = [recorder.is_closed]
    recorder.close()
    assert [*states, recorder.is_closed] == [False, True]
    assert _recorder._utc_text(0) == "1970-01-01T00:00:00.000000Z"


def test_queue_takes_what_fits_exactly(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each item counts with 200 bytes more than its data."""
    held_up = HeldUp(path, monkeypatch, queued=1_000)
    put = held_up.recorder.put
    assert [put(_recorder._note_line, "x", 300) for _ in range(3)] == [True, True, False]
    held_up.catch_up()
    assert put(_recorder._note_line, "last", 300)
    held_up.recorder.close()
    lines = read_lines(path)
    assert [line.kind for line in lines] == ["note", "note", "lost", "note"]
    assert lines[2].count == 1


@pytest.mark.parametrize(
    ("what", "count"), [(b"a\nb\n", 2), (b"a\nb", 1), (b"a", 1), (b"", 1), ("a\nb\n", 1)]
)
def test_dropped_bytes_count_as_their_lines(path: Path, what: Any, count: int) -> None:
    recorder = open_file(path)
    recorder.drop(what)
    recorder.close()
    assert [line.count for line in read_lines(path)] == [count]


def test_file_that_takes_a_byte_at_a_time_is_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr("os.write", lambda fd, data: write(fd, bytes(data[:1])))
    recorder = open_file(path)
    recorder.note("a note")
    recorder.close()
    assert [line.text for line in read_lines(path)] == ["a note"]
    assert recorder._size == path.stat().st_size


@POSIX
def test_pipe_with_a_reader_gets_one_trace(tmp_path: Path) -> None:
    """A pipe has no size that could shrink, so it never begins anew."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    recorder = open_file(pipe)
    os.set_blocking(reader, True)
    stream = recorder.stream()
    found = b""
    for word in (b"first", b"second"):
        stream.sent(word + b"\n")
        while word not in found:
            found += os.read(reader, 65_536)
    recorder.close()
    os.close(reader)
    _, lines = read_trace([found])
    assert [line.raw for _, line in lines if isinstance(line, TraceLine)] == ["first", "second"]


@POSIX
def test_link_to_a_file_is_refused_and_one_to_a_device_is_followed(tmp_path: Path) -> None:
    """A link may lead to a file of another user, which is then overwritten."""
    link = tmp_path / "link"
    (tmp_path / "file").write_text("precious")
    link.symlink_to("file")
    with pytest.raises(CannotRecord, match="it is a symbolic link: remove it, or name the file"):
        open_file(link)
    assert (tmp_path / "file").read_text() == "precious"
    link.unlink()
    link.symlink_to("/dev/null")
    open_file(link).close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_reader_gets_each_line_although_the_disk_is_full() -> None:
    log, texts = Log(), []
    recorder = open_file("/dev/full", log, on_line=lambda line: texts.append(line.raw))
    stream = recorder.stream()
    for word in ("first", "second"):
        stream.sent(word.encode() + b"\n")
        wait_until(lambda word=word: word in texts)  # type: ignore[misc]
    recorder.close()
    assert texts == ["first", "second"]
    assert log.texts == ["the trace /dev/full is not written any more: No space left on device"]


def test_recording_hides_secrets_and_is_bounded_by_default(path: Path) -> None:
    recording = Recording(path=path)
    assert (recording.redact, recording.with_secrets, recording.secrets) == ((), False, frozenset())
    assert (recording.message_limit, recording.file_limit) == (1 << 20, 256 << 20)
    assert repr(recording) == f"<Recording in {path}>"


@pytest.mark.parametrize(("size", "is_whole"), [(4, True), (5, True), (6, False)])
def test_line_is_truncated_above_the_limit_only(path: Path, size: int, is_whole: bool) -> None:
    recorder = open_file(Recording(path=path, message_limit=5))
    recorder.lines().record(TraceLine(t=0, sender="client", raw="x" * size))
    recorder.close()
    (line,) = read_lines(path)
    assert line.raw == "x" * min(size, 5)
    assert (line.truncated is None) is is_whole
