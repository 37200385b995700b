"""Random mutants after which the code does the same, so that no test can notice them.

A survivor of `python -m tests.spec.random_mutants` is printed with its key. It gets an entry here
only with a reason that holds for every input. What is unlikely, or hard to test, is no reason.

An entry is stale if no operator makes its change to the code any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.spec.code_match import SourceFile
from tests.spec.mutation_operators import find_places, make_mutant
from tests.spec.mutation_runner import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["EQUIVALENTS", "Equivalent", "find_stale_equivalents"]


@dataclass(frozen=True)
class Equivalent:
    """A change that nothing can notice.

    Attributes:
        where: `file::qualified.name`.
        old: the statement, as `ast.unparse` writes it, with `...` for bodies.
        new: the statement after the change.
        why: the reason.
    """

    where: str
    old: str
    new: str
    why: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.where, self.old, self.new


def find_stale_equivalents(entries: Iterable[Equivalent], root: Path = ROOT) -> list[str]:
    """Return a line for each entry whose change no operator makes to the code below `root`."""
    by_file: dict[str, list[Equivalent]] = {}
    for each in entries:
        by_file.setdefault(each.where.partition("::")[0], []).append(each)
    return [
        f"{each.where}: no operator makes {each.new!r} of {each.old!r}"
        for file, found in by_file.items()
        for each in _stale_of(file, found, root)
    ]


def _stale_of(file: str, entries: list[Equivalent], root: Path) -> list[Equivalent]:
    path = root / file
    if not path.is_file():
        return entries
    source = SourceFile(path.read_text("utf-8"))
    scopes = {each.where.partition("::")[2] for each in entries}
    keys = {
        make_mutant(source, file, place, index).key
        for place in find_places(source)
        if source.scope_at(source.start(place.node), source.end(place.node)) in scopes
        for index in range(len(place.choices))
    }
    return [each for each in entries if each.key not in keys]


_AFTER_FAILED_START = """\
    failed = any((link.write_error is not None for link in links))
    probe_unread = failed or child.unread > 0
    versions = client.versions_without_probe(probe_unread=probe_unread)
    if not versions:
        await child.aclose()
        from mcp_core.processes import with_exit_text
        text = with_exit_text(str(exc), child.describe_start())
        raise type(exc)(text) from exc
    options['versions'] = versions
    ended_by_probe = True
    continue"""

EQUIVALENTS: tuple[Equivalent, ...] = (
    Equivalent(
        "mcp_trio/oracle/bench/engine/_direct_stream.py::DirectStream.send_all",
        "if sent < len(data):\n    ...",
        "if True:\n    ...",
        "the rest is empty then, and trio sends nothing of it: only a checkpoint more",
    ),
    Equivalent(
        "mcp_trio/oracle/bench/engine/_stdio_load.py::StdioLoad._prepare",
        "self._only_call = call if self._last_call is None else None",
        "pass",
        "equal lines are then split and found one by one, with the same outcome: only slower",
    ),
    Equivalent(
        "mcp_trio/oracle/bench/calls/_recorded.py::_Player.__init__",
        "self._was_repeated = False",
        "self._was_repeated = True",
        "the first request is no repetition, and sets it before anything reads it",
    ),
    Equivalent(
        "mcp_core/adapters/_sqlite_file.py::TaskFile.page",
        "start = (rows[0][0], after)",
        "start = (rows[-1][0], after)",
        "a primary key selects one row",
    ),
    Equivalent(
        "mcp_core/runtime/_asgi_app.py::AsgiApplication.lifespan",
        "@asynccontextmanager\n"
        "async def lifespan(self, app: object=None) -> AsyncIterator[None]:\n    ...",
        "@asynccontextmanager\n"
        "async def lifespan(self, app: object=1) -> AsyncIterator[None]:\n    ...",
        "the argument is for frameworks that pass it, and is not used",
    ),
    Equivalent(
        "mcp_asyncio_shim/_runtime.py::AsyncioRuntime.drain",
        "await asyncio.sleep(0)",
        "await asyncio.sleep(-1)",
        "asyncio sleeps for one step of the loop if the time is 0 or less",
    ),
    Equivalent(
        "mcp_asyncio_shim/_tasks.py::AsyncioTaskRuntime.checkpoint",
        "await asyncio.sleep(0)",
        "await asyncio.sleep(-1)",
        "as above: one step of the loop",
    ),
    Equivalent(
        "mcp_asyncio_shim/_client.py::_Call.wait",
        "await (asyncio.sleep(0) if self.done else self._awake.wait())",
        "await (asyncio.sleep(-1) if self.done else self._awake.wait())",
        "as above: one step of the loop",
    ),
    Equivalent(
        "mcp_asyncio_shim/_link.py::Link.aclose",
        "error = closed.result()[0] if closed.done() else None",
        "error = closed.result()[-1] if closed.done() else None",
        "one awaitable has one result",
    ),
    Equivalent(
        "mcp_asyncio_shim/_runtime.py::open_recorder",
        "threads = ThreadPoolExecutor(1, 'mcp-recorder')",
        "threads = ThreadPoolExecutor(2, 'mcp-recorder')",
        "it gets one job, and starts a thread for each job only",
    ),
    Equivalent(
        "mcp_asyncio_shim/_stdio.py::_child_stderr",
        "transport, _ = await asyncio.get_running_loop().connect_read_pipe("
        "lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, 'rb', 0))",
        "transport, _ = await asyncio.get_running_loop().connect_read_pipe("
        "lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source, 'rb', -1))",
        "asyncio reads the descriptor, and only closes the file: its buffer stays empty",
    ),
    Equivalent(
        "mcp_core/runtime/tasks/_memory_store.py::MemoryTaskStore.__init__",
        "self._renewals = count(1)",
        "self._renewals = count(2)",
        "the numbers of renewals are only compared with each other",
    ),
    *(
        Equivalent(
            "mcp_trio/http_server/_h2_unread.py::UnreadResponses.__init__",
            "self.sent = 0",
            f"self.sent = {start}",
            "two counts are compared with each other only",
        )
        for start in (1, -1)
    ),
    Equivalent(
        "mcp_trio/_connect.py::_connect_child",
        f"try:\n    ...\nexcept ConnectFailed as exc:\n{_AFTER_FAILED_START}",
        f"try:\n    ...\nexcept Exception as exc:\n{_AFTER_FAILED_START}",
        "`Client.open` raises nothing else: what never opened is a ConnectFailed, for any cause",
    ),
    Equivalent(
        "mcp_trio/testing/_leaks.py::_has_no_children",
        "if not hasattr(os, 'waitid'):\n    ...",
        "if True:\n    ...",
        "without children, the list of children that is then made is empty",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/play/_stress_steps.py::_unread",
        "break",
        "continue",
        "a session that has ended stays so, and the rest of the loop sends nothing then",
    ),
    Equivalent(
        "mcp_core/runtime/tasks/_notifier.py::TaskNotifier.listen",
        "self._observe(key, 0, ())",
        "self._observe(key, -1, ())",
        "the serial numbers of records begin at 1",
    ),
    Equivalent(
        "mcp_core/runtime/tasks/_notifier.py::TaskNotifier._send",
        "if record.serial <= followed.serial:\n    ...",
        "if record.serial < followed.serial:\n    ...",
        "with the same serial number it is the same record, in which the client sees nothing new",
    ),
    Equivalent(
        "mcp_core/runtime/_asgi_request.py::AsgiRequest.__init__",
        "self._sending = False",
        "pass",
        "the first output is sent before the other task runs, which alone reads it",
    ),
    Equivalent(
        "mcp_core/runtime/_asgi_request.py::AsgiRequest.__init__",
        "self._sending = False",
        "self._sending = True",
        "the first output is sent before the other task runs, which alone reads it",
    ),
    Equivalent(
        "mcp_core/runtime/sharing/_contract.py::_check_closed",
        "worker = 1",
        "worker = 2",
        "a store that isn't open refuses all workers and positions",
    ),
    Equivalent(
        "mcp_core/trace/replay/_diff.py::_time_of",
        "last = max((each.messages[-1].t for each in trace.sessions), default=0.0)",
        "last = max((each.messages[-1].t for each in trace.sessions), default=1.0)",
        "a trace without sessions has no message whose times are compared",
    ),
    Equivalent(
        "mcp_core/trace/replay/_diff.py::_time_of",
        "last = max((each.messages[-1].t for each in trace.sessions), default=0.0)",
        "last = max((each.messages[-1].t for each in trace.sessions), default=-1.0)",
        "a trace without sessions has no message whose times are compared",
    ),
    Equivalent(
        "mcp_core/trace/replay/_client.py::ReplayClient._add_turn",
        "if item.answer is not None:\n    ...",
        "if True:\n    ...",
        "no message is None, so nothing looks for what is then kept under it",
    ),
    Equivalent(
        "mcp_core/trace/replay/_client.py::ReplayClient._receive_response",
        "turn = None if key is None else self._pending.pop(key, None)",
        "turn = None if False else self._pending.pop(key, None)",
        "no request is kept under None",
    ),
    Equivalent(
        "mcp_core/trace/replay/_server.py::ReplaySession._receive_response",
        "found = None if key is None else self._asked.pop(key, None)",
        "found = None if False else self._asked.pop(key, None)",
        "no request is kept under None",
    ),
    Equivalent(
        "mcp_core/trace/replay/_load.py::_marked",
        "return value",
        "return None",
        "only texts are compared with the recorded ones",
    ),
    Equivalent(
        "mcp_core/trace/logs/_reader.py::LogReader.__init__",
        "self._last_time = 0.0",
        "self._last_time = -1.0",
        "the first time is 0, and the later one of the two is taken",
    ),
    Equivalent(
        "mcp_core/http/wire/_http2_headers.py::_fields_fault",
        "if size > MAX_VALUE:\n    ...",
        "if True:\n    ...",
        "a head that is no longer than one value may be has neither a long value nor, with so few"
        " fields, too many bytes: only slower",
    ),
    Equivalent(
        "mcp_core/protocol/messages/_outbox.py::Outbox.take_lines",
        "if not messages:\n    ...",
        "if False:\n    ...",
        "the rest returns no bytes for no messages, too: only slower",
    ),
    Equivalent(
        "mcp_core/http/client/_streamable.py::StreamableHttpTransport.act",
        "break",
        "continue",
        "what may follow is another failure of the same handshake, which has failed then",
    ),
    Equivalent(
        "mcp_core/http/wire/_http2_frames.py::FrameWatch.receive",
        "self._goaway_payload += data[place:place + taken]",
        "self._goaway_payload += data[place:]",
        "only its first 8 bytes are read, and a shorter payload is an error before that",
    ),
    Equivalent(
        "mcp_trio/cli/_forms.py::_Choices.__init__",
        "self._titles = dict(zip(values or (), named or (), strict=True))",
        "self._titles = dict(zip(values or (), named or (), strict=False))",
        "titles of another number than the values are not taken",
    ),
    Equivalent(
        "mcp_trio/cli/_session.py::_run_session",
        "status = 0",
        "status = 1",
        "only a signal, which has its own status, or an error leaves the block before it is set",
    ),
    Equivalent(
        "mcp_trio/cli/_session.py::_run_session",
        "status = 0",
        "status = -1",
        "only a signal, which has its own status, or an error leaves the block before it is set",
    ),
    Equivalent(
        "mcp_trio/cli/configured/_consent.py::PausableTimeout.__init__",
        "self._left = 0.0",
        "pass",
        "the first question sets it, and only the end of a question reads it",
    ),
    Equivalent(
        "mcp_trio/cli/configured/_consent.py::PausableTimeout.__init__",
        "self._left = 0.0",
        "self._left = 1.0",
        "the first question sets it, and only the end of a question reads it",
    ),
    Equivalent(
        "mcp_trio/cli/configured/_consent.py::PausableTimeout.__init__",
        "self._left = 0.0",
        "self._left = -1.0",
        "the first question sets it, and only the end of a question reads it",
    ),
    Equivalent(
        "mcp_core/auth/server/_dpop_verifier.py::_normalize",
        "bare = re.split('[?#]', url, maxsplit=1)[0]",
        "bare = re.split('[?#]', url, maxsplit=0)[0]",
        "however often it is split, the first piece is the same",
    ),
    Equivalent(
        "mcp_core/registry/functions/_function.py::_resolver",
        "for name, cell in zip(free, getattr(code, '__closure__', None) or (), strict=True):\n"
        "    ...",
        "for name, cell in zip(free, getattr(code, '__closure__', None) or (), strict=False):\n"
        "    ...",
        "Python makes no function whose closure has another length than its free variables",
    ),
    Equivalent(
        "mcp_core/http/wire/_http1.py::head_end",
        "found = _EMPTY_LINE.search(data, max(seen - 2, 0))",
        "found = _EMPTY_LINE.search(data, max(seen - 3, 0))",
        "one byte more was looked through without an empty line: only slower",
    ),
    Equivalent(
        "mcp_core/auth/server/_scopes.py::RequiredScopes.of",
        "def of(self, method: str | None, params: Any=None) -> tuple[str, ...]:\n    ...",
        "def of(self, method: str | None, params: Any=1) -> tuple[str, ...]:\n    ...",
        "only methods that have params read them",
    ),
    Equivalent(
        "mcp_core/host/_canonical_json.py::_MAX_SAFE_INTEGER",
        "_MAX_SAFE_INTEGER: Final = 2 ** 53 - 1",
        "_MAX_SAFE_INTEGER: Final = 1 ** 53 - 1",
        "up to it both ways write the same digits: only slower",
    ),
    Equivalent(
        "mcp_trio/http_server/_h11_connection.py::H11ServerConnection._read_body",
        "if len(data) > self._body_left:\n    ...",
        "if len(data) >= self._body_left:\n    ...",
        "of as many bytes as the body has, all are the body and none follow it",
    ),
    Equivalent(
        "mcp_trio/http_server/_h11_connection.py::H11ServerConnection._run_exchange",
        "if self._pump_needed:\n    ...",
        "if True:\n    ...",
        "the driver is then pumped without anything to process: only slower",
    ),
    Equivalent(
        "mcp_core/runtime/_http_requests.py::HttpRequestRunner.run",
        "if http.drops:\n    ...",
        "if True:\n    ...",
        "without drops, calls_to_drop returns no key: only slower",
    ),
    Equivalent(
        "mcp_core/runtime/_http_requests.py::HttpRequestRunner.run",
        "if self._paused:\n    ...",
        "if True:\n    ...",
        "without paused requests the loop has no key: only slower",
    ),
    Equivalent(
        "mcp_core/runtime/_http_requests.py::HttpRequestRunner._exchange",
        "if isinstance(found, PoolDecision) or found.server_closed():\n    ...",
        "if True:\n    ...",
        "_other_connection asks the same, and returns a connection that isn't closed: only slower",
    ),
    Equivalent(
        "mcp_core/runtime/_http_requests.py::HttpRequestJob.__init__",
        "self.answered = False",
        "pass",
        "_exchange sets it before a response can arrive, and only a response reads it",
    ),
    Equivalent(
        "mcp_core/runtime/_http_requests.py::HttpRequestJob.__init__",
        "self.answered = False",
        "self.answered = True",
        "_exchange sets it before a response can arrive, and only a response reads it",
    ),
    Equivalent(
        "mcp_core/runtime/_http_requests.py::HttpRequestJob.__init__",
        "self.unauthorized = False",
        "pass",
        "_exchange sets it before a response can arrive, and only a response reads it",
    ),
    Equivalent(
        "mcp_core/runtime/_http_requests.py::HttpRequestJob.__init__",
        "self.unauthorized = False",
        "self.unauthorized = True",
        "_exchange sets it before a response can arrive, and only a response reads it",
    ),
    Equivalent(
        "mcp_core/runtime/_http_requests.py::HttpRequestJob.handle_actions",
        "self.keep_alive = None if value is None else keep_alive_seconds(value)",
        "self.keep_alive = None if False else keep_alive_seconds(value)",
        "keep_alive_seconds returns None without a header, too",
    ),
    Equivalent(
        "mcp_core/runtime/_http_requests.py::HttpRequestJob.dropped",
        "if not self._ended:\n    ...",
        "if True:\n    ...",
        "done does nothing once there is an outcome",
    ),
    Equivalent(
        "mcp_core/contract/_schemas.py::_outer",
        "return NO_SCHEMA if value is NO_SCHEMA or value is None else document(value[0])",
        "return NO_SCHEMA if value is NO_SCHEMA or value is None else document(value[-1])",
        "an inner document is a tuple of one value",
    ),
    Equivalent(
        "mcp_trio/host/_config_files.py::_find_project",
        "inside = above[:above.index(root) + 1]",
        "inside = above[:above.index(root) + 0]",
        "the root is the answer too if no directory below it has the file",
    ),
    *(
        Equivalent(
            "mcp_core/runtime/tasks/_held.py::HeldCalls.release",
            "key, size = self._calls.pop(task, ('', -1))",
            f"key, size = self._calls.pop(task, ('', {size}))",
            "any negative size ends the method, and one of 0 bytes leaves the sums as they are",
        )
        for size in ("-2", "-0")
    ),
    *(
        Equivalent(
            "mcp_core/runtime/tasks/_running.py::RunningTask._send_progress",
            "if not isfinite(progress) or not isfinite(total or 0.0):\n    ...",
            f"if not isfinite(progress) or not isfinite(total or {number}):\n    ...",
            "every finite number stands as well for a total of 0, or none",
        )
        for number in ("1.0", "-1.0")
    ),
    Equivalent(
        "mcp_core/runtime/_http_requests.py::HttpRequestRunner._exchange",
        "if self._waiting[0] or self._waiting[1]:\n    ...",
        "if True:\n    ...",
        "_wake_next looks at both queues itself, and wakes none: only slower",
    ),
    *(
        Equivalent(
            "mcp_trio/http_server/_h2_connection.py::H2ServerConnection._receive_body",
            "if type(stream.body) is not bytearray:\n    ...",
            f"if {condition}:\n    ...",
            "the body is then copied for each piece, or stays bytes: the same, only slower",
        )
        for condition in ("type(stream.body) is bytearray", "True", "False")
    ),
    Equivalent(
        "mcp_trio/http_server/_driver.py::HttpServerDriver.job_ended",
        "if not self._jobs:\n    ...",
        "if True:\n    ...",
        "a task that waits looks again whether jobs run, and waits on: only slower",
    ),
    Equivalent(
        "mcp_trio/http_server/_h11_heads.py::CHUNKED",
        "CHUNKED: Final = -1",
        "CHUNKED: Final = -2",
        "it is only compared, and no length is negative",
    ),
    Equivalent(
        "mcp_trio/testing/hostile/_client_attacks.py::_Wire.__init__",
        "self._last = 0.0",
        "pass",
        "it is read only once each connection has a response, which sets it",
    ),
    Equivalent(
        "mcp_trio/testing/hostile/_client_attacks.py::_Wire.__init__",
        "self._last = 0.0",
        "self._last = 1.0",
        "it is read only once each connection has a response, which sets it",
    ),
    Equivalent(
        "mcp_trio/testing/hostile/_client_attacks.py::_Wire.__init__",
        "self._last = 0.0",
        "self._last = -1.0",
        "it is read only once each connection has a response, which sets it",
    ),
    Equivalent(
        "mcp_trio/http_client/_h11_connection.py::H11ClientConnection._decode",
        "if not data.startswith(b'HTTP/'):\n    ...",
        "if True:\n    ...",
        "`require_http` accepts what begins like this: only slower",
    ),
    Equivalent(
        "mcp_trio/http_client/_h2_connection.py::_H2ClientStream.__init__",
        "self.body_left = -1",
        "self.body_left = -2",
        "it is only compared with 0, and every negative number means no declared length",
    ),
    Equivalent(
        "mcp_trio/http_client/_h2_connection.py::H2ClientConnection.__init__",
        "self._last_received = 0.0",
        "pass",
        "`open` waits for the first data, which sets it, and only a request's end reads it",
    ),
    Equivalent(
        "mcp_trio/http_client/_h2_connection.py::H2ClientConnection.__init__",
        "self._last_received = 0.0",
        "self._last_received = 1.0",
        "`open` waits for the first data, which sets it, and only a request's end reads it",
    ),
    Equivalent(
        "mcp_trio/http_client/_h2_connection.py::H2ClientConnection.__init__",
        "self._last_received = 0.0",
        "self._last_received = -1.0",
        "`open` waits for the first data, which sets it, and only a request's end reads it",
    ),
    Equivalent(
        "mcp_trio/http_client/_h2_connection.py::H2ClientConnection.__init__",
        "self._suspect = False",
        "self._suspect = True",
        "the first data sets it to False, and before that the capacity is 0 anyway",
    ),
    Equivalent(
        "mcp_trio/streams/_link.py::Link.pump",
        "if was_paused and (not self._pump.paused):\n    ...",
        "if was_paused or not self._pump.paused:\n    ...",
        "only the reader waits there, and it looks again: only slower",
    ),
    Equivalent(
        "mcp_trio/streams/_link.py::Link.pump",
        "if was_paused and (not self._pump.paused):\n    ...",
        "if True:\n    ...",
        "only the reader waits there, and it looks again: only slower",
    ),
    Equivalent(
        "mcp_trio/streams/_link.py::Link.pump",
        "if deadline != self._deadline:\n    ...",
        "if True:\n    ...",
        "the timer begins anew with the same deadline: only slower",
    ),
    Equivalent(
        "mcp_trio/streams/_link.py::Link.pump",
        "if self.conn.queued():\n    ...",
        "if True:\n    ...",
        "a writer that finds nothing to send waits again: only slower",
    ),
    Equivalent(
        "mcp_trio/_files.py::read_regular_file",
        "data = file.read(max_size + 1)",
        "data = file.read(max_size + 2)",
        "one byte more than the limit shows that the file is too large",
    ),
    Equivalent(
        "mcp_trio/http_client/_h2_connection.py::H2ClientConnection._apply_settings",
        "if self._http.encoder.header_table_size > _HEADER_TABLE_SIZE:\n    ...",
        "if self._http.encoder.header_table_size >= _HEADER_TABLE_SIZE:\n    ...",
        "the same size is set once more, which changes nothing",
    ),
    Equivalent(
        "mcp_asyncio_shim/_connect.py::_read_response",
        "raise response_error(exc, received=True, ended=False) from None",
        "raise response_error(exc, received=False, ended=False) from None",
        "`response_error` asks for what has arrived only if the connection has ended",
    ),
    Equivalent(
        "mcp_asyncio_shim/_stdio.py::_piped_child",
        "await asyncio.sleep(0)",
        "await asyncio.sleep(-1)",
        "as above: one step of the loop",
    ),
    Equivalent(
        "mcp_core/adapters/_sqlite_file.py::TaskFile.lost",
        "if len(records) >= size:\n    ...",
        "if len(records) > size:\n    ...",
        "the queries that follow may select no rows then: only slower",
    ),
    Equivalent(
        "mcp_trio/auth/_loopback.py::_open_listeners",
        "port = found[0].socket.getsockname()[1]",
        "port = found[-1].socket.getsockname()[1]",
        "it is read for the second address of `localhost` only, when the first has one listener",
    ),
    Equivalent(
        "mcp_core/host/_canonical_json.py::is_double",
        "if -_MAX_SAFE_INTEGER <= number <= _MAX_SAFE_INTEGER:\n    ...",
        "if -_MAX_SAFE_INTEGER <= number < _MAX_SAFE_INTEGER:\n    ...",
        "what follows finds that the largest one is a double, too: only slower",
    ),
    Equivalent(
        "mcp_trio/oracle/bench/engine/_http_reader.py::HttpReader._read_events",
        "if not is_candidate and (not (b'\"method\"' in event and b'\"id\"' in event)):\n    ...",
        "if not is_candidate and (not (b'\"method\"' in event or b'\"id\"' in event)):\n    ...",
        "a message without both members isn't taken after it is decoded: only slower",
    ),
    Equivalent(
        "mcp_core/host/config/_members.py::MemberReader.words",
        "return ()",
        "return None",
        "no words and None are the same to its only caller",
    ),
    Equivalent(
        "mcp_asyncio_shim/_stdio.py::_open_pipes",
        "source_file, sink_file = (os.fdopen(source, 'rb', 0), os.fdopen(sink, 'wb', 0))",
        "source_file, sink_file = (os.fdopen(source, 'rb', -1), os.fdopen(sink, 'wb', 0))",
        "as above: asyncio reads the descriptor, and only closes the file",
    ),
    Equivalent(
        "mcp_trio/oracle/bench/engine/_stdio_load.py::StdioLoad._take_equal",
        "ids = [data[at:at + DIGITS] for at in range(len(before), len(data), step)]",
        "ids = [data[:at + DIGITS] for at in range(len(before), len(data), step)]",
        "the lines aren't found to be equal then, and are read one by one: only slower",
    ),
    Equivalent(
        "mcp_trio/oracle/bench/calls/_script.py::_check_keys",
        "similar = get_close_matches(key[:_MAX_NAME], known, 1)",
        "similar = get_close_matches(key[:_MAX_NAME], known, 2)",
        "only the first one is used, which is the most similar one in both",
    ),
    Equivalent(
        "mcp_core/adapters/_sqlite_file.py::TaskFile._run",
        "sequence: int = self._one(self._writer, query)[0]",
        "sequence: int = self._one(self._writer, query)[-1]",
        "the query has one column",
    ),
    Equivalent(
        "mcp_core/adapters/_sqlite_file.py::TaskFile._create_tables",
        "if found:\n    ...",
        "if True:\n    ...",
        "a new file allows it already, and then nothing is done",
    ),
    Equivalent(
        "mcp_core/adapters/_sqlite_file.py::TaskFile.lost",
        "if len(records) >= size:\n    ...",
        "if False:\n    ...",
        "the queries of the other workers have the limit 0, and find nothing",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/_http.py::_ResponseState.__init__",
        "self.is_stream = False",
        "self.is_stream = True",
        "the head sets it, and comes before the first part of a body, which reads it",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/_http.py::_ResponseState.__init__",
        "self.status = 0",
        "self.status = 1",
        "it is only compared with 404, and with 300 and more",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/causes/_baseline.py::parse_ignored_row",
        "close = get_close_matches(row.upper(), known, 1) or get_close_matches(row, known, 1)",
        "close = get_close_matches(row.upper(), known, 1) or get_close_matches(row, known, 2)",
        "the best match is the first one, and only that is shown",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/causes/_baseline.py::parse_ignored_row",
        "close = get_close_matches(row.upper(), known, 1) or get_close_matches(row, known, 1)",
        "close = get_close_matches(row.upper(), known, 2) or get_close_matches(row, known, 1)",
        "as above",
    ),
    Equivalent(
        "mcp_trio/oracle/bench/engine/_http_load.py::HttpConnection.exchange",
        "if stream is None:\n    ...",
        "if True:\n    ...",
        "`connect` does nothing while there is a connection",
    ),
    Equivalent(
        "mcp_trio/oracle/bench/engine/_http_load.py::HttpConnection.exchange",
        "return state",
        "return None",
        "a response that ends with its connection is followed by no other in any state",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/_stdio.py::CommandTarget.__init__",
        "self._redactor = Redactor(token_bytes(32), secrets=self.secrets)",
        "self._redactor = Redactor(token_bytes(33), secrets=self.secrets)",
        "a random key that is longer makes pseudonyms that are as random",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/_http.py::UrlTarget.__init__",
        "redactor = Redactor(token_bytes(32), secrets=self.secrets)",
        "redactor = Redactor(token_bytes(33), secrets=self.secrets)",
        "as above",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/_stdio.py::StdioSession.disconnect",
        "await self._wait_for_exit(max(PROMPT_TIMEOUT, self.longest_start or 0.0))",
        "await self._wait_for_exit(max(PROMPT_TIMEOUT, self.longest_start or -1.0))",
        "both are less than the other time",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/_probe.py::probe",
        "if problem is not None:\n    ...",
        "if True:\n    ...",
        "without a problem the revision is spoken, and then no reason is shown",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/_call_times.py::CallTimes.add",
        "self._slowest[name] = max(seconds, self._slowest.get(name, 0.0))",
        "self._slowest[name] = max(seconds, self._slowest.get(name, -1.0))",
        "no call takes less than no time",
    ),
    Equivalent(
        "mcp_trio/oracle/bench/_requests.py::Mix.worker",
        "if len(self._calls) == 1:\n    ...",
        "if len(self._calls) == 0:\n    ...",
        "all draws are of the same call: only slower",
    ),
    Equivalent(
        "mcp_trio/oracle/bench/_requests.py::Mix.worker",
        "if len(self._calls) == 1:\n    ...",
        "if False:\n    ...",
        "all draws are of the same call: only slower",
    ),
    Equivalent(
        "mcp_trio/oracle/bench/engine/_http_reader.py::HttpReader._read_head",
        "if not head.closes and head.status >= 200:\n    ...",
        "if not head.closes and head.status > 200:\n    ...",
        "a head that isn't remembered is parsed again: only slower",
    ),
    Equivalent(
        "mcp_trio/oracle/replay/_stream.py::_chunks",
        "if size > _CHUNK:\n    ...",
        "if True:\n    ...",
        "the same bytes in more pieces",
    ),
    Equivalent(
        "mcp_core/adapters/_redis_tasks.py::RedisTaskStore.change",
        "return bool(removed[0])",
        "return bool(removed[-1])",
        "one task is removed, and there is one result",
    ),
    Equivalent(
        "mcp_core/adapters/_redis_client.py::RedisClient.execute",
        "return (await self.pipeline([(name, *arguments)]))[0]",
        "return (await self.pipeline([(name, *arguments)]))[-1]",
        "one command is sent, and there is one result",
    ),
    Equivalent(
        "mcp_core/registry/_pages.py::ListPages._start_after",
        "if not pages.start_after:\n    ...",
        "if True:\n    ...",
        "the same cursors and places are computed again",
    ),
    Equivalent(
        "mcp_core/tasks/_record.py::decode_record",
        "if not data.isascii():\n    ...",
        "if True:\n    ...",
        "ASCII is UTF-8, so that decoding it raises nothing",
    ),
    Equivalent(
        "mcp_core/tasks/_record.py::TaskLimits.kept_for",
        "if wish is None or wish >= self.max_ttl * 1000:\n    ...",
        "if wish is None or wish >= self.max_ttl * 1001:\n    ...",
        "a wish between the two is cut to the maximum below, too",
    ),
    Equivalent(
        "mcp_core/tasks/_leases.py::LeaseObserver.__init__",
        "self._last_look = 0.0",
        "self._last_look = 1.0",
        "the first look knows no worker, and the time since the last one counts for known ones",
    ),
    Equivalent(
        "mcp_core/urls/_uri_matcher.py::_parts_of",
        "only = variables[0]",
        "only = variables[-1]",
        "of several variables none is exploded here, and only the one of one has its name read",
    ),
    Equivalent(
        "mcp_core/host/_definition_warnings.py::find_warnings",
        "if len(found) >= _MAX_WARNINGS:\n    ...",
        "if len(found) > _MAX_WARNINGS:\n    ...",
        "more are found, and left out at the end",
    ),
    Equivalent(
        "mcp_core/host/_definition_warnings.py::find_warnings",
        "if len(found) >= _MAX_WARNINGS:\n    ...",
        "if False:\n    ...",
        "as above: the list is cut at the end",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/_stored_report.py::_form_of",
        "form = document.get('version', 1)",
        "form = document.get('version', 2)",
        "both are versions that are read, and no more depends on it",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/_interoperable_json.py::_largest",
        "return 0.0",
        "return 1.0",
        "its caller only asks whether it is finite",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/play/_waiting.py::_bounded_timeout",
        "return play.timeout * (SHORT_WAIT if play.session.drops_some else 1)",
        "return play.timeout * (SHORT_WAIT if play.session.drops_some else 0)",
        "`wait_until` takes 0 for the same timeout",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/play/_waiting.py::slow_start",
        "known = play.session.longest_start or 0.0",
        "known = play.session.longest_start or 1.0",
        "both are below the start that counts as slow",
    ),
    Equivalent(
        "mcp_core/http/wire/_http2_frames.py::FrameWatch._check_frame",
        "length = header[0] << 16 | header[1] << 8 | header[2]",
        "length = header[0] << 17 | header[1] << 8 | header[2]",
        "a first byte above 0 makes the frame too long either way",
    ),
    Equivalent(
        "mcp_core/http/wire/_http1.py::find_head_error",
        "if len(head) > MAX_VALUE and any((len(value) > MAX_VALUE for _, value in pairs)):"
        "\n    ...",
        "if len(head) >= MAX_VALUE and any((len(value) > MAX_VALUE for _, value in pairs)):"
        "\n    ...",
        "a head of this length has no longer value: only slower",
    ),
    Equivalent(
        "mcp_core/contract/_schemas.py::_SchemaComparison._prove_counts",
        "if least < count_of(wide, 'minProperties', 0):\n    ...",
        "if least < count_of(wide, 'minProperties', -1):\n    ...",
        "`least` is never below 0",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/habits/_table.py::read_exchange",
        "others = [each for number, each in received if number > place and each is not answers[0]"
        " and (not _is_initialized(each))]",
        "others = [each for number, each in received if number > place and each is not answers[-1]"
        " and (not _is_initialized(each))]",
        "there is one answer: with more of them there is no exchange",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/campaign/_examination.py::Examiner._confirm_drawn",
        "if (await self._confirm(longer, fault, plays=1))[0]:\n    ...",
        "if (await self._confirm(longer, fault, plays=1))[-1]:\n    ...",
        "there is a last play exactly if at least one has shown the fault",
    ),
    Equivalent(
        "mcp_trio/http_server/_connection.py::HttpServerConnection._write",
        "if len(data) <= WRITE_SIZE:\n    ...",
        "if len(data) < WRITE_SIZE:\n    ...",
        "bytes of just this size are sent as one piece by both",
    ),
    Equivalent(
        "mcp_trio/http_server/_connection.py::HttpServerConnection._write",
        "data = parts[0] if len(parts) == 1 else b''.join(parts)",
        "data = parts[-1] if len(parts) == 1 else b''.join(parts)",
        "there is one part",
    ),
    Equivalent(
        "mcp_trio/oracle/fuzz/play/_http_steps.py::_half",
        "async def _half(play: Play, place: str='body') -> None:\n    ...",
        "async def _half(play: Play, place: str='') -> None:\n    ...",
        "every place without a row of its own is one in the body",
    ),
    Equivalent(
        "mcp_core/host/config/_tree.py::ValueTree._find",
        "return 0",
        "return -1",
        "a place is never before the beginning of the text, so both are its first character",
    ),
    Equivalent(
        "mcp_core/host/config/_tree.py::_JsonTree._walk",
        "return (0, None)",
        "return (-1, None)",
        "a place is never before the beginning of the text, so both are its first character",
    ),
    Equivalent(
        "mcp_core/host/config/_tree.py::_TomlTree._find",
        "return 0",
        "return -1",
        "a place is never before the beginning of the text, so both are its first character",
    ),
    Equivalent(
        "mcp_core/host/config/_tree.py::_TomlTree._find",
        "for depth in range(len(names), 0, -1):\n    ...",
        "for depth in range(len(names), -1, -1):\n    ...",
        "no statement has an empty path, and a longer one was looked for before",
    ),
    Equivalent(
        "mcp_core/host/config/_beside.py::_of_excluded",
        "head = _WILD.split(tool, maxsplit=1)[0]",
        "head = _WILD.split(tool, maxsplit=0)[0]",
        "the first part is the same, with more parts or fewer after it",
    ),
    Equivalent(
        "mcp_core/host/config/_beside.py::_of_excluded",
        "head = _WILD.split(tool, maxsplit=1)[0]",
        "head = _WILD.split(tool, maxsplit=2)[0]",
        "the first part is the same, with more parts or fewer after it",
    ),
    Equivalent(
        "mcp_core/host/config/_beside.py::_setting",
        "break",
        "continue",
        "the value stays None, so each later step does the same",
    ),
    Equivalent(
        "mcp_core/host/config/_yaml.py::_YamlReader._begin",
        "if event.anchor:\n    ...",
        "if True:\n    ...",
        "no alias has the name None",
    ),
    Equivalent(
        "mcp_core/host/config/_yaml.py::_YamlReader._end",
        "if anchor:\n    ...",
        "if True:\n    ...",
        "no alias has the name None",
    ),
    Equivalent(
        "mcp_core/host/config/_yaml.py::_YamlReader._take_scalar",
        "if event.anchor:\n    ...",
        "if True:\n    ...",
        "no alias has the name None",
    ),
    Equivalent(
        "mcp_core/host/config/_restrictions.py::_find_restricting",
        "about_tools = bool(_TOOLS & words) or any((_TOOLS & _words(name) for name in path[:-1]))",
        "about_tools = bool(_TOOLS & words) or any((_TOOLS & _words(name) for name in path[:]))",
        "the words of the last name are looked at beside",
    ),
    Equivalent(
        "mcp_core/host/config/_opencode.py::_restriction",
        "for (pattern, effect, path), (head, is_open) in zip(rules, heads, strict=True):\n    ...",
        "for (pattern, effect, path), (head, is_open) in zip(rules, heads, strict=False):\n    ...",
        "there is one head for each rule",
    ),
    Equivalent(
        "mcp_core/host/config/_opencode.py::_may_match",
        "if '?' not in head:\n    ...",
        "if False:\n    ...",
        "without a ? both compare the shorter text with the beginning of the longer one",
    ),
    Equivalent(
        "mcp_core/trace/_messages.py::MessageBuffer.add",
        "if not self._size and len(data) <= self._limit:\n    ...",
        "if False:\n    ...",
        "one piece is kept as several are, in a copy",
    ),
    Equivalent(
        "mcp_core/trace/_messages.py::MessageBuffer.add",
        "if not self._size and len(data) <= self._limit:\n    ...",
        "if not self._size and len(data) < self._limit:\n    ...",
        "one piece is kept as several are, in a copy",
    ),
    Equivalent(
        "mcp_core/trace/_messages.py::MessageSplitter.feed",
        "if end == len(data) - 1:\n    ...",
        "if False:\n    ...",
        "a whole message is found as one of several is, too",
    ),
    Equivalent(
        "mcp_core/trace/_messages.py::MessageSplitter.feed",
        "if end == len(data) - 1:\n    ...",
        "if end == len(data) + 1:\n    ...",
        "a whole message is found as one of several is, too",
    ),
    Equivalent(
        "mcp_core/trace/_messages.py::MessageSplitter.feed",
        "if end == len(data) - 1:\n    ...",
        "if end == len(data) - 0:\n    ...",
        "a whole message is found as one of several is, too",
    ),
    Equivalent(
        "mcp_core/trace/_messages.py::MessageSplitter.feed",
        "if self._partial is None and (not self._skips)"
        " and (0 < len(data) <= self._limit):\n    ...",
        "if False:\n    ...",
        "a whole message is found as one of several is, too",
    ),
    Equivalent(
        "mcp_core/trace/_messages.py::MessageSplitter.feed",
        "if self._partial is None and (not self._skips)"
        " and (0 < len(data) <= self._limit):\n    ...",
        "if self._partial is None and (not self._skips)"
        " and (0 < len(data) < self._limit):\n    ...",
        "a whole message is found as one of several is, too",
    ),
    Equivalent(
        "mcp_core/trace/_messages.py::MessageSplitter.feed",
        "if self._partial is None and (not self._skips)"
        " and (0 < len(data) <= self._limit):\n    ...",
        "if self._partial is None and (not self._skips)"
        " and (1 < len(data) <= self._limit):\n    ...",
        "a whole message is found as one of several is, too",
    ),
    Equivalent(
        "mcp_core/trace/_messages.py::truncate",
        "if len(data) <= limit:\n    ...",
        "if False:\n    ...",
        "a buffer returns a message within its limit as it is",
    ),
    Equivalent(
        "mcp_core/trace/_messages.py::truncate",
        "if len(data) <= limit:\n    ...",
        "if len(data) < limit:\n    ...",
        "a buffer returns a message within its limit as it is",
    ),
    Equivalent(
        "mcp_core/http/wire/_http1.py::head_end",
        "found = _EMPTY_LINE.search(data, max(seen - 2, 0))",
        "found = _EMPTY_LINE.search(data, max(seen - 2, 1))",
        "an empty line at the first byte was found before",
    ),
    Equivalent(
        "mcp_core/protocol/subscriptions/_server.py::SubscriptionTable.publish",
        "if id is None and len(subscription.pending) > self._limits.task_ids:\n    ...",
        "if id is None and len(subscription.pending) >= self._limits.task_ids:\n    ...",
        "what drops a state counts those of tasks itself",
    ),
    Equivalent(
        "mcp_core/auth/client/_challenge.py::_parse_header",
        "at = 0",
        "at = -1",
        "a pattern that is matched from before the text is matched from its beginning",
    ),
    Equivalent(
        "mcp_core/tasks/_store.py::TaskQuotaExceeded.__init__",
        "super().__init__(limit)",
        "pass",
        "Python keeps an exception's arguments before it is initialized",
    ),
    Equivalent(
        "mcp_core/http/wire/_http1.py::head_end",
        "def head_end(data: bytes | bytearray, seen: int=0) -> int | None:\n    ...",
        "def head_end(data: bytes | bytearray, seen: int=1) -> int | None:\n    ...",
        "the search begins at 0 in both cases",
    ),
    Equivalent(
        "mcp_core/trace/judge/rules/_messages.py::_is_rejected",
        "return exchange.status >= 400 and (response is None or response.id is None)",
        "return exchange.status >= 399 and (response is None or response.id is None)",
        "399 is a redirect, which was handled before",
    ),
    Equivalent(
        "mcp_core/http/wire/_http1.py::head_end",
        "found = _EMPTY_LINE.search(data, max(seen - 2, 0))",
        "found = _EMPTY_LINE.search(data, max(seen - 2, -1))",
        "a pattern searches from 0 where a negative index is given",
    ),
    Equivalent(
        "mcp_core/protocol/connection/_keep_alive.py::KeepAlive.__init__",
        "self._ping_sent = False",
        "pass",
        "it is read with a deadline only, and what sets the deadline sets it too",
    ),
    Equivalent(
        "mcp_core/protocol/connection/_keep_alive.py::KeepAlive.__init__",
        "self._ping_sent = False",
        "self._ping_sent = True",
        "it is read with a deadline only, and what sets the deadline sets it too",
    ),
    Equivalent(
        "mcp_core/auth/server/_dpop_replay.py::ReplayCache._discard_expired",
        "self._first = first",
        "pass",
        "what is discarded again was discarded before",
    ),
    Equivalent(
        "mcp_core/auth/server/_dpop_replay.py::ReplayCache.__init__",
        "self._first = 0",
        "self._first = 1",
        "a new cache has nothing to discard",
    ),
    Equivalent(
        "mcp_core/auth/server/_dpop_replay.py::ReplayCache.__init__",
        "self._first = 0",
        "self._first = -1",
        "a new cache has nothing to discard",
    ),
    Equivalent(
        "mcp_core/http/client/_requests.py::StreamablePost.response_started",
        "if response.events is not None:\n    ...",
        "if True:\n    ...",
        "`reconnection` is read only for an event stream",
    ),
    Equivalent(
        "mcp_core/http/client/_requests.py::StreamablePost.reconnection",
        "reconnection: Reconnection | None = None",
        "reconnection: Reconnection | None = 1",
        "it is read only for an event stream, for which it is set",
    ),
    Equivalent(
        "mcp_core/http/client/_streamable.py::StreamableHttpTransport._act_on_plain",
        "self._standalone_stream = None",
        "pass",
        "dropping a stream whose call is over does nothing",
    ),
    Equivalent(
        "mcp_core/trace/_redaction.py::Redactor._is_elicited",
        "if len(path) > 3 or not path:\n    ...",
        "if len(path) > 4 or not path:\n    ...",
        "a value so deep in a message is none of those that are looked for",
    ),
    Equivalent(
        "mcp_core/trace/_redaction.py::Redactor._pseudonym",
        "while len(stream) < len(text):\n    ...",
        "while len(stream) <= len(text):\n    ...",
        "numbers beyond the last character are not used",
    ),
    Equivalent(
        "mcp_core/http/server/_auth.py::check_scope_names",
        "for known, more in zip(names, server.declared_names(), strict=True):\n    ...",
        "for known, more in zip(names, server.declared_names(), strict=False):\n    ...",
        "a server declares three kinds of names",
    ),
    Equivalent(
        "mcp_core/http/server/_endpoint.py::Endpoint._post_in_session",
        "self._reject(exchange, _checks.ID_IN_USE, ids[0] if len(ids) == 1 else None)",
        "self._reject(exchange, _checks.ID_IN_USE, ids[-1] if len(ids) == 1 else None)",
        "the last of one id is the first",
    ),
    Equivalent(
        "mcp_core/auth/server/_jwks.py::RemoteKeys._resume",
        "self._fetches += 1",
        "self._fetches += 2",
        "it is only compared for equality with an earlier value",
    ),
    Equivalent(
        "mcp_core/trace/judge/_message.py::holds_until",
        "return message.time + max(_HOLDS, seconds(message.result.get('ttlMs')) or 0.0)",
        "return message.time + max(_HOLDS, seconds(message.result.get('ttlMs')) or -1.0)",
        "the greater of it and a minute is a minute",
    ),
    Equivalent(
        "mcp_core/host/edit/_entries.py::find_entry_line",
        "position, node = (0, parse_json(text, client.syntax))",
        "position, node = (1, parse_json(text, client.syntax))",
        "the path has a part, so it is assigned again",
    ),
    Equivalent(
        "mcp_core/registry/functions/_types.py::Definitions.__init__",
        "self.numbers = count(1)",
        "self.numbers = count(0)",
        "a key is only compared with other keys",
    ),
    Equivalent(
        "mcp_core/host/_supervision.py::ServerSupervisor.__init__",
        "self._deaths = 0",
        "self._deaths = -1",
        "the event that begins to connect sets it",
    ),
    Equivalent(
        "mcp_core/protocol/messages/_responses.py::_result_event",
        "try:\n    ...\nexcept InvalidPayload:\n    if _read_result_type(raw).result_type in "
        "(None, _COMPLETE):\n        raise",
        "try:\n    ...\nexcept Exception:\n    if _read_result_type(raw).result_type in (None, "
        "_COMPLETE):\n        raise",
        "reading a result raises nothing else",
    ),
    Equivalent(
        "mcp_core/protocol/revisions/_encoding.py::encode_result_parts",
        "fitted = result if type(result) in config.dialect.unchanged_types else "
        "config.dialect.fit(result)",
        "fitted = result if False else config.dialect.fit(result)",
        "a result of such a type fits as it is",
    ),
    Equivalent(
        "mcp_core/trace/_json_redaction.py::encode_string",
        "if token.isascii():\n    ...",
        "if False:\n    ...",
        "a text of ASCII has no halves of surrogate pairs",
    ),
    Equivalent(
        "mcp_core/trace/judge/rules/_registry.py::Rule",
        "class Rule(Struct, frozen=True, kw_only=True):\n    ...",
        "class Rule(Struct, frozen=True, kw_only=False):\n    ...",
        "all rules are made with names",
    ),
    Equivalent(
        "mcp_core/host/edit/_toml_places.py::_end_of_statement",
        "depth += 1 if mark in '[{' else -1",
        "depth += 1 if mark in '[{_' else -1",
        "the pattern has no such mark",
    ),
    Equivalent(
        "mcp_core/protocol/messages/_lenient_results.py::LenientReader._read",
        "return self._read_list(typing.get_args(listed[0])[0], data, place, error)",
        "return self._read_list(typing.get_args(listed[-1])[0], data, place, error)",
        "no union of results has two lists",
    ),
    Equivalent(
        "mcp_core/protocol/messages/_lenient_results.py::LenientReader._read_block",
        "if len(items) == 1 and _first(items[0]) == b'{':\n    ...",
        "if len(items) == 1 and _first(items[-1]) == b'{':\n    ...",
        "it is the only one",
    ),
    Equivalent(
        "mcp_core/registry/functions/_pydantic.py::_lost",
        "parts = zip(value.items(), written.values(), strict=True)",
        "parts = zip(value.items(), written.values(), strict=False)",
        "they have the same lengths",
    ),
    Equivalent(
        "mcp_core/trace/logs/_values.py::ValueSplitter.__init__",
        "self._begins_at = 1",
        "self._begins_at = 0",
        "the beginning of an object sets it",
    ),
    Equivalent(
        "mcp_core/trace/judge/rules/_http.py::lost_session_is_not_served",
        "status, line = state.http.refused.get(state.http.request_key(exchange) or 0, (0, 0))",
        "status, line = state.http.refused.get(state.http.request_key(exchange) or 0, (0, 1))",
        "the line counts only with the status 404",
    ),
    Equivalent(
        "mcp_core/trace/judge/conversation/_negotiation.py::Negotiation.__init__",
        "self._discovered_until = 0.0",
        "self._discovered_until = 1.0",
        "nothing is discovered then",
    ),
    Equivalent(
        "mcp_core/trace/judge/conversation/_negotiation.py::Negotiation.__init__",
        "self._discovered_until = 0.0",
        "self._discovered_until = -1.0",
        "nothing is discovered then",
    ),
    Equivalent(
        "mcp_core/trace/judge/conversation/_negotiation.py::Negotiation.receive_served_version",
        "version = request.meta.get(META + 'protocolVersion') if self.rejected else None",
        "version = request.meta.get(META + 'protocolVersion') if True else None",
        "nothing is removed from an empty table",
    ),
    Equivalent(
        "mcp_core/trace/judge/conversation/_lists.py::Lists.__init__",
        "self._tools_until = 0.0",
        "self._tools_until = 1.0",
        "no tools are known then",
    ),
    Equivalent(
        "mcp_core/trace/judge/conversation/_lists.py::Lists.__init__",
        "self._tools_until = 0.0",
        "self._tools_until = -1.0",
        "no tools are known then",
    ),
    Equivalent(
        "mcp_core/protocol/messages/_lenient_results.py::LenientReader._read",
        "return self._read_list(typing.get_args(listed[0])[0], data, place, error)",
        "return self._read_list(typing.get_args(listed[0])[-1], data, place, error)",
        "the type of a list has one argument",
    ),
    Equivalent(
        "mcp_core/protocol/jsonrpc/_codec.py::has_duplicates",
        "def has_duplicates(data: Raw | bytes, inner: str | None=None) -> bool:\n    ...",
        "def has_duplicates(data: Raw | bytes, inner: str | None=1) -> bool:\n    ...",
        "no object has a member whose name is a number, so the search ends as without one",
    ),
    Equivalent(
        "mcp_core/protocol/subscriptions/_server.py::_Subscription.covered",
        "if self.spellings is None:\n    ...",
        "if True:\n    ...",
        "what changes the wanted URIs forgets their spellings, so these are always of the same",
    ),
    Equivalent(
        "mcp_core/protocol/connection/_negotiation.py::_UNSUPPORTED",
        "_UNSUPPORTED: Final = next((dialect.codes[Fault.UNSUPPORTED_VERSION] "
        "for dialect in DIALECTS.values() if not dialect.stateful))",
        "_UNSUPPORTED: Final = next((dialect.codes[Fault.UNSUPPORTED_VERSION] "
        "for dialect in DIALECTS.values() if True))",
        "the first revision of the table, the newest, is one without a handshake",
    ),
    Equivalent(
        "mcp_core/protocol/connection/_negotiation.py::_HEADER_MISMATCH",
        "_HEADER_MISMATCH: Final = next((dialect.codes[Fault.HEADER_MISMATCH] "
        "for dialect in DIALECTS.values() if not dialect.stateful))",
        "_HEADER_MISMATCH: Final = next((dialect.codes[Fault.HEADER_MISMATCH] "
        "for dialect in DIALECTS.values() if True))",
        "the first revision of the table, the newest, is one without a handshake",
    ),
    Equivalent(
        "mcp_core/protocol/connection/_requests.py::_LONGEST_ID",
        "_LONGEST_ID: Final = 17",
        "_LONGEST_ID: Final = 18",
        "no id in use has 18 characters as a number, since it is at most 2**53 - 1",
    ),
    Equivalent(
        "mcp_core/protocol/connection/_unreadable.py::UnreadableInput.message_received",
        "if self._unaddressed_for:\n    ...",
        "if True:\n    ...",
        "of no requests none is open",
    ),
    Equivalent(
        "mcp_core/protocol/input_requests/_rounds.py::_message_in",
        "return replace(message, content=message.content[0])",
        "return replace(message, content=message.content[-1])",
        "there is one block only",
    ),
    Equivalent(
        "mcp_core/host/config/_policy.py::_parse_pattern",
        (
            "@lru_cache(maxsize=1024)\ndef _parse_pattern(pattern: str) -> _UrlPattern | "
            "None:\n    ..."
        ),
        (
            "@lru_cache(maxsize=1025)\ndef _parse_pattern(pattern: str) -> _UrlPattern | "
            "None:\n    ..."
        ),
        "the size of a pure function's cache changes no result",
    ),
    Equivalent(
        "mcp_core/host/config/_policy.py::_parse_pattern",
        (
            "@lru_cache(maxsize=1024)\ndef _parse_pattern(pattern: str) -> _UrlPattern | "
            "None:\n    ..."
        ),
        (
            "@lru_cache(maxsize=1023)\ndef _parse_pattern(pattern: str) -> _UrlPattern | "
            "None:\n    ..."
        ),
        "the size of a pure function's cache changes no result",
    ),
    Equivalent(
        "mcp_core/host/config/_url_readings.py::read_target",
        (
            "@lru_cache(maxsize=256)\ndef read_target(target: str) -> frozenset[str] | None:\n "
            "   ..."
        ),
        (
            "@lru_cache(maxsize=257)\ndef read_target(target: str) -> frozenset[str] | None:\n "
            "   ..."
        ),
        "the size of a pure function's cache changes no result",
    ),
    Equivalent(
        "mcp_core/host/config/_url_readings.py::read_target",
        (
            "@lru_cache(maxsize=256)\ndef read_target(target: str) -> frozenset[str] | None:\n "
            "   ..."
        ),
        (
            "@lru_cache(maxsize=255)\ndef read_target(target: str) -> frozenset[str] | None:\n "
            "   ..."
        ),
        "the size of a pure function's cache changes no result",
    ),
    Equivalent(
        "mcp_core/host/_audit.py::_known",
        "@lru_cache(8)\ndef _known(secrets: frozenset[str]) -> KnownSecrets:\n    ...",
        "@lru_cache(9)\ndef _known(secrets: frozenset[str]) -> KnownSecrets:\n    ...",
        "the size of a pure function's cache changes no result",
    ),
    Equivalent(
        "mcp_core/host/_audit.py::_known",
        "@lru_cache(8)\ndef _known(secrets: frozenset[str]) -> KnownSecrets:\n    ...",
        "@lru_cache(7)\ndef _known(secrets: frozenset[str]) -> KnownSecrets:\n    ...",
        "the size of a pure function's cache changes no result",
    ),
    Equivalent(
        "mcp_core/adapters/_redis_client.py::_digest",
        "@lru_cache(64)\ndef _digest(script: str) -> str:\n    ...",
        "@lru_cache(65)\ndef _digest(script: str) -> str:\n    ...",
        "the size of a pure function's cache changes no result",
    ),
    Equivalent(
        "mcp_core/adapters/_redis_client.py::_digest",
        "@lru_cache(64)\ndef _digest(script: str) -> str:\n    ...",
        "@lru_cache(63)\ndef _digest(script: str) -> str:\n    ...",
        "the size of a pure function's cache changes no result",
    ),
    Equivalent(
        "mcp_core/host/_supervision.py::ServerSupervisor.__init__",
        "self._deaths = 0",
        "pass",
        "a server connects before it can end, and connecting sets it",
    ),
    Equivalent(
        "mcp_core/host/_supervision.py::ServerSupervisor.__init__",
        "self._deaths = 0",
        "self._deaths = 1",
        "a server connects before it can end, and connecting sets it",
    ),
    Equivalent(
        "mcp_core/host/_supervision.py::ServerSupervisor.__init__",
        "self._deaths = 0",
        "self._deaths = -1",
        "a server connects before it can end, and connecting sets it",
    ),
    Equivalent(
        "mcp_core/host/edit/_entries.py::find_entry_line",
        "position, node = (0, parse_json(text, client.syntax))",
        "position, node = (1, parse_json(text, client.syntax))",
        "the path has a name at least, whose position takes its place",
    ),
    Equivalent(
        "mcp_core/host/edit/_entries.py::find_entry_line",
        "position, node = (0, parse_json(text, client.syntax))",
        "position, node = (-1, parse_json(text, client.syntax))",
        "the path has a name at least, whose position takes its place",
    ),
    Equivalent(
        "mcp_core/host/edit/_removal.py::_find_removals",
        (
            "if not rest.replace(',', '', 1 if after is not None else 0).strip(' "
            "\\t\\r\\n'):\n    ..."
        ),
        (
            "if not rest.replace(',', '', 1 if after is not None else -1).strip(' "
            "\\t\\r\\n'):\n    ..."
        ),
        "without a comma at either side, the rest has commas in comments only",
    ),
    Equivalent(
        "mcp_core/host/edit/_removal.py::_comma_after",
        "commas = find_commas(text, position, min(starts, default=parent.end - 1))",
        "commas = find_commas(text, position, min(starts, default=parent.end - 0))",
        "the last character of an object is not a comma",
    ),
    Equivalent(
        "mcp_core/host/edit/_toml_places.py::find_toml_statements",
        "position = 0",
        "position = -1",
        "a pattern searches from 0 where a negative index is given",
    ),
    Equivalent(
        "mcp_core/host/edit/_toml_places.py::find_toml_places",
        "for depth in range(1, len(statement.path) + 1):\n    ...",
        "for depth in range(1, len(statement.path) + 2):\n    ...",
        "it looks at the whole path a second time",
    ),
    Equivalent(
        "mcp_core/host/edit/_toml_places.py::_read_part",
        "if part[0] not in '\"\\'':\n    ...",
        "if part[-1] not in '\"\\'':\n    ...",
        "a part that begins with a quote ends with it, and no other part has one",
    ),
    Equivalent(
        "mcp_core/host/edit/_toml_places.py::_end_of_statement",
        "depth += 1 if mark in '[{' else -1",
        "depth += 1 if mark in '[{_' else -1",
        "a mark is a bracket or a line feed",
    ),
    Equivalent(
        "mcp_core/host/edit/_toml_places.py::_end_of_string",
        "return len(text)",
        "return None",
        "in a text that tomllib has read, each string ends",
    ),
    Equivalent(
        "mcp_core/trace/judge/rules/_errors.py::prompt_needs_its_arguments",
        "return RuleFailure(f'a prompt is given without its required argument {show(min(m"
        "issing))}', (request.line,), is_certain=state.lists.changed.get('prompts/list', "
        "0) <= known.asked)",
        "return RuleFailure(f'a prompt is given without its required argument {show(min(m"
        "issing))}', (request.line,), is_certain=state.lists.changed.get('prompts/list', "
        "-1) <= known.asked)",
        "lines have numbers from 1 on",
    ),
    Equivalent(
        "mcp_core/trace/judge/rules/_errors.py::prompt_needs_its_arguments",
        "return RuleFailure(f'a prompt is given without its required argument {show(min(m"
        "issing))}', (request.line,), is_certain=state.lists.changed.get('prompts/list', "
        "0) <= known.asked)",
        "return RuleFailure(f'a prompt is given without its required argument {show(min(m"
        "issing))}', (request.line,), is_certain=state.lists.changed.get('prompts/list', "
        "1) <= known.asked)",
        "lines have numbers from 1 on",
    ),
    Equivalent(
        "mcp_core/trace/judge/_message.py::SeenRequest.__init__",
        "self.shares_token = False",
        "self.shares_token = True",
        "`Requests.add` sets it for requests with a token, and others aren't asked for it",
    ),
    Equivalent(
        "mcp_core/trace/judge/_message.py::holds_until",
        "return message.time + max(_HOLDS, seconds(message.result.get('ttlMs')) or 0.0)",
        "return message.time + max(_HOLDS, seconds(message.result.get('ttlMs')) or 1.0)",
        "`_HOLDS` is greater",
    ),
    Equivalent(
        "mcp_core/http/server/_websocket_session.py::WebSocketSessions.__init__",
        "self._numbers = count(1)",
        "self._numbers = count(2)",
        "they only tell checks apart",
    ),
    Equivalent(
        "mcp_core/host/edit/_toml_edit.py::set_toml_flag",
        "gap = '' if text[:last.end].endswith('\\n') else newline",
        "gap = '' if text[:].endswith('\\n') else newline",
        "a statement ends at a line feed or at the end of the text",
    ),
    Equivalent(
        "mcp_core/host/edit/_toml_edit.py::read_toml",
        "column = int(place[2]) if place and place[2] else None",
        "column = int(place[2]) if place and place[1] else None",
        "an error has both its line and its column, or neither",
    ),
    Equivalent(
        "mcp_core/trace/_redaction.py::Redactor._redact_head",
        "if target is None:\n    ...",
        "if True:\n    ...",
        "what is remembered is what would be made again",
    ),
    Equivalent(
        "mcp_core/trace/_redaction.py::Redactor._pseudonym",
        "if found is None:\n    ...",
        "if True:\n    ...",
        "what is remembered is what would be made again",
    ),
    Equivalent(
        "mcp_core/http/server/_session.py::Sessions.find_capacity_error",
        "if self._by_client.get(client, 0) >= quota:\n    ...",
        "if self._by_client.get(client, -1) >= quota:\n    ...",
        "a quota is at least 1",
    ),
    Equivalent(
        "mcp_core/http/server/_session.py::Sessions.find_capacity_error",
        "if self._uninitialized_by_client.get(client, 0) >= quota:\n    ...",
        "if self._uninitialized_by_client.get(client, -1) >= quota:\n    ...",
        "a quota is at least 1",
    ),
    Equivalent(
        "mcp_core/http/server/_session.py::OneShots.find_capacity_error",
        "held = self._by_client.get(client, 0)",
        "held = self._by_client.get(client, -1)",
        "a quota is at least 1",
    ),
    Equivalent(
        "mcp_core/host/config/_read.py::_FileReader.read",
        "if name in ('inputs', 'mcp') and name not in path[:1]:\n    ...",
        "if name in ('inputs', 'mcp') and name not in path[:2]:\n    ...",
        "no second name of a path is one of these",
    ),
    Equivalent(
        "mcp_core/registry/functions/_docstring.py::read_docstring",
        "parameters |= _numpy_entries(lines[position + 2:end])",
        "parameters |= _numpy_entries(lines[position + 1:end])",
        "the underline is no entry",
    ),
    Equivalent(
        "mcp_core/protocol/jsonrpc/_framing.py::LineBuffer._skip",
        "self._end = (self._end + data[-kept:])[-kept:]",
        "self._end = (self._end + data[:])[-kept:]",
        "only the last bytes of both are kept",
    ),
    Equivalent(
        "mcp_core/http/wire/_http2_frames.py::FrameWatch.__init__",
        "self._continuations = 0",
        "self._continuations = 1",
        "it is set when a head begins",
    ),
    Equivalent(
        "mcp_core/http/wire/_http2_frames.py::FrameWatch.__init__",
        "self._continuations = 0",
        "self._continuations = -1",
        "it is set when a head begins",
    ),
    Equivalent(
        "mcp_core/http/wire/_http2_frames.py::FrameWatch.__init__",
        "self._block = 0",
        "self._block = 1",
        "it is set when a head begins",
    ),
    Equivalent(
        "mcp_core/http/wire/_http2_frames.py::FrameWatch.__init__",
        "self._block = 0",
        "self._block = -1",
        "it is set when a head begins",
    ),
    Equivalent(
        "mcp_core/_known_secrets.py::KnownSecrets.__init__",
        "marks += [text[-tail:] for text, _, tail, _ in self._spellings if tail]",
        "marks += [text[-tail:] for text, _, tail, _ in self._spellings if True]",
        "a text that has all of a spelling has its beginning, too",
    ),
    Equivalent(
        "mcp_core/protocol/schema/_json_schema.py::JsonSchema.__init__",
        "self._references = 0",
        "self._references = 1",
        "each check begins to count anew",
    ),
    Equivalent(
        "mcp_core/protocol/schema/_json_schema.py::JsonSchema.__init__",
        "self._references = 0",
        "self._references = -1",
        "each check begins to count anew",
    ),
    Equivalent(
        "mcp_core/auth/_jose.py::private_key",
        "found = _read_jwk(encode(key.as_dict(private=False)))",
        "found = _read_jwk(encode(key.as_dict(private=True)))",
        "only its public members are read",
    ),
    Equivalent(
        "mcp_core/protocol/input_requests/_request_state.py::KeyRing.open",
        "parts = state.encode().split(b'.', 4)",
        "parts = state.encode().split(b'.', 5)",
        "more than four parts are refused, however many they are",
    ),
    Equivalent(
        "mcp_core/protocol/revisions/_encoding.py::encode_result_parts",
        "if encoded[1:2] not in (b'\"', b'}'):\n    ...",
        "if encoded[1:] not in (b'\"', b'}'):\n    ...",
        "there is no white space to be removed",
    ),
    Equivalent(
        "mcp_core/http/wire/_http2_frames.py::FrameWatch.__init__",
        "self._continuations = 0",
        "pass",
        "it is set when a head begins",
    ),
    Equivalent(
        "mcp_core/http/wire/_http2_frames.py::FrameWatch.__init__",
        "self._block = 0",
        "pass",
        "it is set when a head begins",
    ),
    Equivalent(
        "mcp_core/registry/_sampling_tools.py::ToolSampling.__init__",
        "self._round_key = ''",
        "pass",
        "`ask` sets it before `receive` reads it",
    ),
    Equivalent(
        "mcp_core/http/wire/_http2_frames.py::FrameWatch.receive",
        "if buffered:\n    ...",
        "if True:\n    ...",
        "an empty piece adds nothing",
    ),
    Equivalent(
        "mcp_core/trace/judge/_shapes.py::_Revision._array.check",
        "if item is not None:\n    ...",
        "if True:\n    ...",
        "no shape has an array of anything",
    ),
    Equivalent(
        "mcp_core/runtime/_time_limit.py::run_in_time",
        "return outcome[0]",
        "return outcome[-1]",
        "it is a tuple of one",
    ),
)
