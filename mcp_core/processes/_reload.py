"""The relay between a client on stdio and a server process that is replaced when its files change.

1. The client notices no new process. Its handshake, log level and subscriptions are repeated to the
   new process, and the responses to these are dropped. Then the client gets a notification of each
   list that the server had declared as changing, and of each resource that it had subscribed to.
2. A request that the old process did not answer gets an error: nothing is sent twice, because the
   first process may have run it.
3. Without a process, as after a change that doesn't import, each request gets an error.

The driver starts and stops processes. It calls `server_stopping`, `server_started` and
`server_failed`, and writes `data_for_client()` and `data_for_server()` after each call.

Sources: basic/lifecycle (until 2025-11-25); basic/patterns/subscriptions (2026-07-28).
"""

from __future__ import annotations

import enum
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw

from mcp_core._errors import Fault
from mcp_core._limits import CLIENT_LIMITS, Limits
from mcp_core.protocol.jsonrpc._body import parse_body
from mcp_core.protocol.jsonrpc._codec import (
    BadMessage,
    Envelope,
    InvalidPayload,
    encode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    reader,
    split_batch,
)
from mcp_core.protocol.jsonrpc._excerpt import Excerpt
from mcp_core.protocol.jsonrpc._framing import LineBuffer
from mcp_core.protocol.revisions._dialects import DIALECTS, LATEST
from mcp_core.protocol.subscriptions._server import ACKNOWLEDGED, LISTEN, LISTS, UPDATED
from mcp_core.types import META_SUBSCRIPTION_ID

if TYPE_CHECKING:
    from mcp_core.types import RequestId

__all__ = ["ReloadRelay"]

_INITIALIZE: Final = "initialize"
_INITIALIZED: Final = "notifications/initialized"
_CANCELLED: Final = "notifications/cancelled"
_SET_LEVEL: Final = "logging/setLevel"
_SUBSCRIBE: Final = "resources/subscribe"
_UNSUBSCRIBE: Final = "resources/unsubscribe"
# The member of `SubscriptionFilter` for each list.
_IN_FILTER: Final = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}
_INTERNAL: Final = DIALECTS[LATEST].codes[Fault.INTERNAL]  # the same in every revision
_RELOADED: Final = "the server was reloaded before it answered; send the request again"

_read_object = reader(dict[str, Any])


class _Phase(enum.Enum):
    STOPPED = "no process yet, or between two: messages of the client wait"
    REPLAYING = "the new process has the handshake, and messages of the client wait"
    RUNNING = "messages pass"
    FAILED = "there is no process until the next change"


class ReloadRelay:
    """The messages of one client, for one server process after the other. Nothing is awaited.

    Args:
        limits: `message` is the maximum length of a line; a longer one is dropped.

    Attributes:
        warnings: texts for the user; the driver takes them out.
    """

    def __init__(self, limits: Limits = CLIENT_LIMITS) -> None:
        self.warnings: list[str] = []
        self._limits = limits
        self._phase = _Phase.STOPPED
        self._failure = ""
        self._generation = 0  # the number of processes so far
        self._client_lines = LineBuffer(limits.message)
        self._server_lines = LineBuffer(limits.message)
        self._to_client: list[bytes] = []
        self._to_server: list[bytes] = []
        self._waiting: list[bytes] = []  # lines of the client
        self._pending: dict[RequestId, str] = {}  # the method of each request without a response
        self._replays: dict[RequestId, str] = {}  # the same for the relay's requests
        self._replay_numbers = count()
        # The server's id of each of its requests, by the id that the client knows. They differ
        # because a new process counts from the start.
        self._server_requests: dict[RequestId, RequestId] = {}
        # The state that is repeated to a new process.
        self._initialize: Envelope | None = None
        self._opened: dict[str, Any] | None = None  # the result of `initialize`
        self._initialized = False
        self._log_level: Raw | None = None
        self._subscribed: dict[str, Raw] = {}  # params of resources/subscribe, by URI
        self._listens: dict[RequestId, Envelope] = {}
        self._filters: dict[RequestId, dict[str, Any]] = {}  # accepted, by listen request
        self._unacknowledged: set[RequestId] = set()  # listens that were sent again

    def __repr__(self) -> str:
        return f"<ReloadRelay {self._phase.name}, process {self._generation}>"

    @property
    def accepts_input(self) -> bool:
        """True if the driver may read from the client. Otherwise its messages would only wait."""
        return self._phase in (_Phase.RUNNING, _Phase.FAILED)

    def data_for_client(self) -> bytes:
        """Return what is to be written to the client, once."""
        return _take_lines(self._to_client)

    def data_for_server(self) -> bytes:
        """Return what is to be written to the process that runs, once."""
        return _take_lines(self._to_server)

    # -- What happens to the process ------------------------------------------------------------

    def server_started(self) -> None:
        """Begin with a new process: repeat the handshake, then pass on the waiting lines."""
        self._generation += 1
        self._server_lines = LineBuffer(self._limits.message)
        if self._initialize is None or self._opened is None:
            if self._initialize is not None:
                self._send_to_server(self._initialize)  # the client still waits for its response
            self._run()
            return
        self._phase = _Phase.REPLAYING
        self._replay(_INITIALIZE, self._initialize.params)

    def server_stopping(self) -> None:
        """Detach from the process: answer its requests with an error, and ignore its output."""
        self._end_process(_RELOADED, keep_opening=True)
        self._phase = _Phase.STOPPED

    def server_failed(self, reason: str) -> None:
        """Answer requests with `reason` until the next `server_started`: the process has ended."""
        self._failure = f"{reason}; the server is started again when its files change"
        self._phase = _Phase.FAILED
        self._end_process(self._failure, keep_opening=False)
        waiting, self._waiting = self._waiting, []
        for line in waiting:
            self._handle_client_line(line)

    def _end_process(self, reason: str, *, keep_opening: bool) -> None:
        self._to_server.clear()
        self._replays.clear()
        self._unacknowledged.clear()
        for id, method in list(self._pending.items()):
            # These are sent again, so their responses are still to come.
            if id not in self._listens and not (keep_opening and method == _INITIALIZE):
                self._answer(id, reason)
        for id in self._server_requests:
            params = encode({"requestId": id, "reason": "the server was reloaded"})
            self._to_client.append(encode_notification(_CANCELLED, params))
        self._server_requests.clear()

    def _answer(self, id: RequestId, reason: str) -> None:
        method = self._pending.pop(id, "")
        self._listens.pop(id, None)
        self._filters.pop(id, None)
        if method == _INITIALIZE:
            self._initialize = None
        self._to_client.append(encode_error(id, encode({"code": _INTERNAL, "message": reason})))

    # -- The new process --------------------------------------------------------------------------

    def _replay(self, method: str, params: Raw | Any) -> None:
        id = f"mcp-trio-reload-{next(self._replay_numbers)}"
        self._replays[id] = method
        encoded = None if params is UNSET else bytes(params)
        self._to_server.append(encode_request(id, method, encoded))

    def _handle_replayed(self, method: str, envelope: Envelope) -> None:
        if envelope.error is not UNSET:
            self.warnings.append(
                f"the new server refuses {method}: {bytes(envelope.error).decode(errors='replace')}"
            )
        if method != _INITIALIZE:
            return
        found = {} if envelope.result is UNSET else _object(envelope.result)
        assert self._opened is not None
        for member in ("protocolVersion", "capabilities"):
            if found and found.get(member) != self._opened.get(member):
                self.warnings.append(
                    f"{member} of the server changed; a client sees that when it connects again"
                )
        if self._initialized:
            self._to_server.append(encode_notification(_INITIALIZED, None))
            if self._log_level is not None:
                self._replay(_SET_LEVEL, self._log_level)
            for params in self._subscribed.values():
                self._replay(_SUBSCRIBE, params)
            self._report_changes()
        self._run()

    def _report_changes(self) -> None:
        """Send a notification of each list declared as changing, and resource subscribed to."""
        assert self._opened is not None
        declared = self._opened.get("capabilities")
        for notification, change in LISTS.items():
            capability = declared.get(change.list) if isinstance(declared, dict) else None
            if isinstance(capability, dict) and capability.get("listChanged") is True:
                self._to_client.append(encode_notification(notification, None))
        for uri in self._subscribed:
            self._to_client.append(encode_notification(UPDATED, encode({"uri": uri})))

    def _run(self) -> None:
        """Repeat the subscriptions, pass on the waiting lines, and pass on messages from now on."""
        self._phase = _Phase.RUNNING
        for id, envelope in self._listens.items():
            self._send_to_server(envelope)
            if id in self._filters:
                self._unacknowledged.add(id)
        waiting, self._waiting = self._waiting, []
        for line in waiting:
            self._handle_client_line(line)

    def _send_to_server(self, envelope: Envelope) -> None:
        assert envelope.method is not UNSET
        assert envelope.id is not UNSET
        assert envelope.id is not None
        params = None if envelope.params is UNSET else bytes(envelope.params)
        self._to_server.append(encode_request(envelope.id, envelope.method, params))

    # -- Messages of the client -------------------------------------------------------------------

    def receive_from_client(self, data: bytes) -> None:
        """Process `data`, bytes from the client in chunks of any size."""
        self._client_lines.feed(data)
        while (line := self._client_lines.next_line()) is not None:
            if isinstance(line, Excerpt):
                if not line.is_rest:
                    self.warnings.append("a message of the client is too long, and was dropped")
                elif (id := line.identify(self._limits.id)[0]) is not None:
                    self._answer(id, f"the message is longer than {self._limits.message} bytes")
            else:
                self._handle_client_line(line)

    def _handle_client_line(self, line: bytes) -> None:
        if self._phase in (_Phase.STOPPED, _Phase.REPLAYING):
            self._waiting.append(line)
            return
        body = parse_body(line, self._limits)
        if body.is_batch and self._generation > 1:  # ids of its members may have to be replaced
            for member in split_batch(line):
                self._handle_client_line(member)
            return
        rewritten = None
        for message in body.messages:
            if isinstance(message, BadMessage):
                continue
            if message.method is UNSET:
                rewritten = self._restore_id(message)
            elif message.id is UNSET or message.id is None:
                self._handle_notification(message)
            elif self._phase is _Phase.FAILED:
                self._answer(message.id, self._failure)
            else:
                self._handle_request(message.id, message)
        if self._phase is _Phase.RUNNING:
            if body.is_array or rewritten is None:
                self._to_server.append(line)
            elif rewritten:
                self._to_server.append(rewritten)

    def _handle_request(self, id: RequestId, message: Envelope) -> None:
        assert message.method is not UNSET
        self._pending[id] = message.method
        if message.method == _INITIALIZE:
            self._initialize = message
        elif message.method == LISTEN:
            self._listens[id] = message
        elif message.params is UNSET:
            pass
        elif message.method == _SET_LEVEL:
            self._log_level = message.params
        elif message.method in (_SUBSCRIBE, _UNSUBSCRIBE):
            uri = str(_object(message.params).get("uri"))
            self._subscribed.pop(uri, None)
            if message.method == _SUBSCRIBE:
                self._subscribed[uri] = message.params

    def _handle_notification(self, message: Envelope) -> None:
        if message.method == _INITIALIZED:
            self._initialized = True
        elif message.method == _CANCELLED and message.params is not UNSET:
            id = _object(message.params).get("requestId")
            if isinstance(id, int | str):  # need not be answered any more
                self._pending.pop(id, None)
                self._listens.pop(id, None)
                self._filters.pop(id, None)

    def _restore_id(self, message: Envelope) -> bytes | None:
        """Return a response with the id that the server gave its request.

        It is empty if that server has ended, and None if the line can be passed on unchanged.
        """
        known = message.id
        if known is UNSET or known is None:
            return None
        if known not in self._server_requests:
            return b""
        id = self._server_requests.pop(known)
        if id == known:
            return None
        if message.result is not UNSET:
            return encode_result(id, bytes(message.result))
        assert message.error is not UNSET
        return encode_error(id, bytes(message.error))

    # -- Messages of the server -------------------------------------------------------------------

    def receive_from_server(self, data: bytes) -> None:
        """Process `data`, bytes from the process that runs; ignored while it is being stopped."""
        if self._phase in (_Phase.STOPPED, _Phase.FAILED):
            return
        self._server_lines.feed(data)
        while (line := self._server_lines.next_line()) is not None:
            if not isinstance(line, Excerpt):
                self._handle_server_line(line)
            elif not line.is_rest:
                self.warnings.append("a message of the server is too long, and was dropped")
            elif (id := line.identify(self._limits.id)[0]) in self._pending:
                assert id is not None
                self._answer(id, f"the response is longer than {self._limits.message} bytes")

    def _handle_server_line(self, line: bytes) -> None:
        body = parse_body(line, self._limits)
        if body.is_batch and self._generation > 1:
            for member in split_batch(line):
                self._handle_server_line(member)
            return
        rewritten: bytes | None = None
        for message in body.messages:
            if isinstance(message, BadMessage):
                continue
            if message.method is UNSET:
                rewritten = self._handle_response(message)
            elif message.id is UNSET or message.id is None:
                rewritten = self._handle_server_notification(message)
            else:
                rewritten = self._rename_request(message.id, message)
        if body.is_array or rewritten is None:
            self._to_client.append(line)
        elif rewritten:
            self._to_client.append(rewritten)

    def _handle_response(self, message: Envelope) -> bytes | None:
        id = message.id
        if id is UNSET or id is None:
            return None
        if id in self._replays:
            self._handle_replayed(self._replays.pop(id), message)
            return b""
        method = self._pending.pop(id, "")
        self._listens.pop(id, None)
        self._filters.pop(id, None)
        if method == _INITIALIZE:
            self._opened = None if message.result is UNSET else _object(message.result)
        return None

    def _handle_server_notification(self, message: Envelope) -> bytes | None:
        if message.params is UNSET:
            return None
        if message.method == ACKNOWLEDGED:
            params = _object(message.params)
            meta = params.get("_meta")
            id = meta.get(META_SUBSCRIPTION_ID) if isinstance(meta, dict) else None
            accepted = params.get("notifications")
            if isinstance(id, int | str) and id in self._listens and isinstance(accepted, dict):
                if id in self._unacknowledged:
                    self._unacknowledged.discard(id)
                    self._report_changes_on(id)
                    return b""  # the client got it from an earlier process
                self._filters[id] = accepted
        elif message.method == _CANCELLED:
            params = _object(message.params)
            old = params.get("requestId")
            for known, id in self._server_requests.items():
                if id == old and known != old:
                    return encode_notification(_CANCELLED, encode({**params, "requestId": known}))
        return None

    def _report_changes_on(self, id: RequestId) -> None:
        """Send a notification of each change that the subscription `id` is for."""
        for notification, change in LISTS.items():
            if change.list is not None and self._filters[id].get(_IN_FILTER[change.list]):
                params = encode({"_meta": {META_SUBSCRIPTION_ID: id}})
                self._to_client.append(encode_notification(notification, params))
        uris = self._filters[id].get("resourceSubscriptions")
        for uri in uris if isinstance(uris, list) else ():
            params = encode({"uri": uri, "_meta": {META_SUBSCRIPTION_ID: id}})
            self._to_client.append(encode_notification(UPDATED, params))

    def _rename_request(self, id: RequestId, message: Envelope) -> bytes | None:
        """Return a server request with an id that no earlier process has used.

        None if the first process has sent it: its ids stay.
        """
        if self._generation == 1:
            self._server_requests[id] = id
            return None
        known = f"{self._generation}-{encode(id).decode()}"
        self._server_requests[known] = id
        assert message.method is not UNSET
        params = None if message.params is UNSET else bytes(message.params)
        return encode_request(known, message.method, params)


def _object(data: Raw | bytes) -> dict[str, Any]:
    try:
        return _read_object(data)
    except InvalidPayload:
        return {}


def _take_lines(lines: list[bytes]) -> bytes:
    data = b"".join(line + b"\n" for line in lines)
    lines.clear()
    return data
