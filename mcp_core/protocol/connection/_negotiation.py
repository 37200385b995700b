"""Version negotiation of a client: probe, handshake and fallback, as one generator.

1. The generator yields an `OpeningRequest` and is sent its `OpeningReply`. It has no messages, no
   clock and no transport, so its test covers the compatibility matrix as a table of replies.
2. Only a *modern* error shows that a server speaks a stateless revision. Any other error, or a
   timeout, means that it doesn't know `server/discover`. No single code can be relied on for that.
3. There is no fallback if the server cannot or will not respond now, for example with HTTP status
   401 or 503, because that tells nothing about its revisions.
4. Two modern errors also come from servers that need a handshake, which is therefore tried: -32601
   with HTTP status 404, which a gateway makes of an old server's error, and -32020 without HTTP,
   where there are no headers. If the handshake fails too, the probe's error counts.
5. What an earlier connection found out is a guess: the server may have been upgraded since. If it
   refuses the handshake that the guess saves the probe for, it is probed after all.

Sources: 2026-07-28, basic/versioning (Backward Compatibility) and basic/transports;
basic/lifecycle of earlier revisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._errors import ConnectFailed, Fault, PeerError, RevisionRefused
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, reader
from mcp_core.protocol.messages._events import Peer
from mcp_core.protocol.messages._responses import decode_error, read_leniently
from mcp_core.protocol.revisions._dialects import DIALECTS, Dialect, newest_common

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from msgspec import UnsetType

    from mcp_core._errors import McpTrioError
    from mcp_core.protocol.jsonrpc._codec import Envelope
    from mcp_core.protocol.revisions._config import Config
    from mcp_core.types import RequestId

__all__ = [
    "MODERN_ERRORS",
    "OpeningReply",
    "OpeningRequest",
    "VersionNegotiation",
    "is_modern_error",
    "negotiate_version",
    "opening_params",
    "reply_from",
]

T = TypeVar("T")


class OpeningRequest(Struct, frozen=True):
    """A request to send: `method` in `dialect`, with a timeout in seconds, None for no limit."""

    method: str
    dialect: Dialect
    timeout: float | None


class OpeningReply(Struct, frozen=True):
    """The outcome of an `OpeningRequest`: a result, an error, or neither after a timeout.

    Attributes:
        status: the HTTP status, None without HTTP, 0 if there was no HTTP response either.
        late: a result of the probe that arrived after its timeout.
        failure: the transport's error, if there was no JSON-RPC response.
        problems: what could not be read of the result is added to it, by its place.
    """

    result: Raw | bytes | None = None
    error: PeerError | None = None
    status: int | None = None
    late: Raw | bytes | None = None
    failure: McpTrioError | None = None
    problems: dict[str, str] = {}

    @property
    def is_inconclusive(self) -> bool:
        """True if the HTTP status tells nothing about the server's revisions."""
        status = self.status
        return status is not None and (status in _INCONCLUSIVE or status >= 500 or status == 0)

    @property
    def refused(self) -> bool:
        """True if the server has responded, and its response tells something about revisions."""
        answered = not (self.result is None and self.error is None and self.failure is None)
        return answered and not self.is_inconclusive


MODERN_ERRORS: Final = frozenset(
    code
    for dialect in DIALECTS.values()
    if not dialect.stateful
    for fault, code in dialect.codes.items()
    if fault in (Fault.HEADER_MISMATCH, Fault.MISSING_CAPABILITY, Fault.UNSUPPORTED_VERSION)
)
# What servers answer to `initialize` in a revision that they don't speak (basic/lifecycle, Error
# Handling, has the second one). An internal error says nothing about revisions.
_REFUSES_REVISION: Final = (-32601, -32602)
_UNSUPPORTED: Final = next(
    dialect.codes[Fault.UNSUPPORTED_VERSION]
    for dialect in DIALECTS.values()
    if not dialect.stateful
)
_HEADER_MISMATCH: Final = next(
    dialect.codes[Fault.HEADER_MISMATCH] for dialect in DIALECTS.values() if not dialect.stateful
)
_METHOD_NOT_FOUND: Final = -32601
# HTTP statuses that tell nothing about the server's revisions, apart from all above 499.
_INCONCLUSIVE: Final = frozenset({401, 403, 429})

_read_discovery = reader(t.DiscoverResult)
_read_initialization = reader(t.InitializeResult)


def negotiate_version(
    config: Config, known_peer: Peer | None = None
) -> Generator[OpeningRequest, OpeningReply, Peer]:
    """Find a common revision, and return the peer.

    `known_peer` is the peer of an earlier connection to the same server. Its revision is used
    without a probe. If the server refuses the handshake of that revision, the probe follows.

    Raises:
        ConnectFailed: there is no common revision, or the server rejected or did not answer.
    """
    if known_peer is not None and known_peer.dialect in config.dialects:
        if not known_peer.dialect.stateful:
            return known_peer
        return (yield from _initialize(config, known_peer.dialect, [], is_guess=True))
    if not config.stateless:
        return (yield from _initialize(config, config.stateful[0], []))
    tried: list[Dialect] = []
    outcome = yield from _probe(config, tried)
    if isinstance(outcome, Peer):
        return outcome
    if not config.stateful:
        raise ConnectFailed(
            f"the server does not speak {', '.join(config.versions)} ({outcome.reason}). "
            "Allow an older revision to connect with a handshake."
        )
    return (yield from _initialize(config, config.stateful[0], tried, refusal=outcome.refusal))


class VersionNegotiation:
    """A version negotiation in progress, with the id and the deadline of its current request.

    Call `advance` to begin and with every reply.

    Attributes:
        request: the last request, None before the first one and after success or failure.
        deadline: when the last request times out, None for never.
        needs_handshake: True, after success, if the server was probed and isn't stateless. False
            if it wasn't probed, or has answered the probe after its timeout.
    """

    __slots__ = (
        "_id",
        "_late_result",
        "_probe_id",
        "_probed",
        "_steps",
        "deadline",
        "needs_handshake",
        "request",
    )

    def __init__(self, config: Config, known_peer: Peer | None) -> None:
        self.request: OpeningRequest | None = None
        self.deadline: float | None = None
        self.needs_handshake = False
        self._probed = False
        self._steps = negotiate_version(config, known_peer)
        self._id: RequestId | None = None
        self._probe_id: RequestId | None = None  # of a probe that timed out
        self._late_result: Raw | None = None  # of that probe

    @property
    def probing(self) -> bool:
        """True if the last request was `server/discover`."""
        return self.request is not None and not self.request.dialect.stateful

    def advance(
        self, reply: OpeningReply | None, id: RequestId, now: float
    ) -> OpeningRequest | Peer:
        """Process the reply to the last request, None to begin.

        Return the peer, or the next request, which is to be sent with `id`.

        Raises:
            ConnectFailed: there is no common revision, or the server rejected or did not answer.
        """
        self.deadline = None
        if reply is not None:
            reply = replace(reply, late=self._late_result)
        try:
            request = self._steps.send(reply)  # type: ignore[arg-type]
        except ConnectFailed:
            # The negotiation has a result, so `probing` is False from now on.
            self.request = None
            raise
        except StopIteration as stop:
            self.request = None
            peer: Peer = stop.value
            self.needs_handshake = (
                self._probed and peer.dialect.stateful and self._late_result is None
            )
            return peer
        self.request = request
        self._probed = self._probed or self.probing
        self._id = id
        if request.timeout is not None:
            self.deadline = now + request.timeout
        return request

    def pause_timeout(self, now: float | None) -> None:
        """Pause the timeout if `now` is None, as while a user logs in; else restart it at `now`."""
        if self.request is not None and self.request.timeout is not None:
            self.deadline = None if now is None else now + self.request.timeout

    def is_due(self, now: float) -> bool:
        """Return True if the current request has timed out at `now`."""
        return self.deadline is not None and now >= self.deadline

    def time_out(self) -> RequestId:
        """Return the id of the current request, which has timed out.

        If it is the probe, `accept_late_response` accepts its result from now on. Call `advance`
        with an empty reply next.
        """
        assert self._id is not None
        if self.probing:
            self._probe_id = self._id
        return self._id

    def accept_late_response(self, id: RequestId, result: Raw | UnsetType) -> bool:
        """Store the result of a probe that has timed out. Return False for any other response.

        It is used if the handshake fails. Pass `UNSET` for an error response.
        """
        if id != self._probe_id or type(id) is not type(self._probe_id):
            return False
        self._late_result = None if result is UNSET else result
        return True


def reply_from(envelope: Envelope, status: int | None = None) -> OpeningReply:
    """Convert a response. A malformed error object counts as an error too."""
    if envelope.error is UNSET:
        assert envelope.result is not UNSET
        return OpeningReply(result=envelope.result, status=status)
    error = decode_error(envelope.error)
    return OpeningReply(
        error=error if isinstance(error, PeerError) else PeerError(0, str(error)), status=status
    )


def opening_params(request: OpeningRequest, config: Config) -> t.Params:
    """Build the params of a request of the version negotiation."""
    if not request.dialect.stateful:
        return t.DiscoverParams()
    return t.InitializeParams(
        protocol_version=request.dialect.version,
        capabilities=config.capabilities,
        client_info=config.info,
    )


class _Fallback(Struct, frozen=True):
    """A reply to the probe after which a handshake should be tried, because of `reason`.

    `refusal` is a modern error, as which the reply counts if the handshake fails too; else None.
    """

    reason: str
    refusal: PeerError | None = None


def _probe(
    config: Config, tried: list[Dialect]
) -> Generator[OpeningRequest, OpeningReply, Peer | _Fallback]:
    """Send `server/discover`. Its revision is appended to `tried`, each at most twice.

    Return the peer if the server speaks a common stateless revision.
    """
    dialect = config.stateless[0]
    while True:
        tried.append(dialect)
        reply = yield OpeningRequest("server/discover", dialect, config.probe_timeout)
        if reply.result is not None:
            discovery = _read_complete_discovery(reply.result, reply.problems)
            if discovery is None:
                return _Fallback("its result of server/discover is malformed")
            return _discovered_peer(config, discovery)
        if reply.error is None:
            _raise_if_inconclusive(reply, "the server did not answer server/discover")
            return _Fallback(str(reply.failure or "it did not answer server/discover"))
        if reply.error.code == _UNSUPPORTED:
            supported = _supported_versions(reply.error)
            mutual = newest_common(config.stateless, supported)
            # If the server lists the revision that it rejected, try once more: behind a load
            # balancer another process may respond.
            if mutual is not None and tried.count(mutual) < 2:
                dialect = mutual
                continue
            if mutual is not None:
                raise ConnectFailed(f"the server lists {mutual.version} but refuses it")
            if newest_common(config.stateful, supported) is not None:
                return _Fallback(f"it offers {', '.join(supported)}")
            raise RevisionRefused(_no_common_revision(config, supported))
        is_modern = is_modern_error(reply.error, reply.status)
        if is_modern and not _is_ambiguous(reply.error, reply.status):
            raise _refused_probe(reply.error) from reply.error
        _raise_if_inconclusive(reply, f"the server refused server/discover: {reply.error}")
        return _Fallback(
            f"it answered server/discover with {reply.error}", reply.error if is_modern else None
        )


def _initialize(
    config: Config,
    dialect: Dialect,
    tried: list[Dialect],
    *,
    is_guess: bool = False,
    refusal: PeerError | None = None,
) -> Generator[OpeningRequest, OpeningReply, Peer]:
    """Send `initialize`, and the probe if the server's refusal shows that it may be stateless.

    `tried` has the probes' revisions so far; the newest isn't probed a third time. `is_guess` is
    true if only an earlier connection says that the server needs a handshake. Then any refusal
    leads to the probe. `refusal` is the probe's error, to be raised if the server refuses the
    handshake too.
    """
    reply = yield OpeningRequest("initialize", dialect, config.initialize_timeout)
    # If the probe was answered after its timeout, the server is stateless although `initialize`
    # failed.
    late = None
    if reply.late is not None:
        late = _read_complete_discovery(reply.late, reply.problems)
    if late is not None and newest_common(config.stateless, late.supported_versions) is None:
        late = None
    try:
        return _initialized_peer(config, reply)
    except ConnectFailed:
        if late is not None:
            return _stateless_peer(config, late)
        modern = _may_be_stateless(config, reply, refusal) or (is_guess and reply.refused)
        if modern and config.stateless and tried.count(config.stateless[0]) < 2:
            outcome = yield from _probe(config, tried)
            if isinstance(outcome, Peer):
                return outcome
            refusal = outcome.refusal or refusal
        # A login that the handshake needs, for example, is more than what the probe says.
        if refusal is None or reply.is_inconclusive:
            raise
    raise _refused_probe(refusal) from refusal


def _initialized_peer(config: Config, reply: OpeningReply) -> Peer:
    """Return the peer that the reply to `initialize` describes.

    Raises:
        ConnectFailed: it describes none.
    """
    if reply.result is not None:
        return _handshake_peer(config, reply.result, reply.problems)
    if reply.error is not None:
        refused = reply.error.code in _REFUSES_REVISION or is_modern_error(
            reply.error, reply.status
        )
        kind = RevisionRefused if refused and not reply.is_inconclusive else ConnectFailed
        raise kind(f"the server refused initialize: {reply.error}") from reply.error
    _raise_if_inconclusive(reply, "the server did not answer initialize")
    if reply.failure is not None:
        raise ConnectFailed(str(reply.failure)) from reply.failure
    raise ConnectFailed(
        f"the server did not answer initialize within {config.initialize_timeout} s"
    )


def _may_be_stateless(config: Config, reply: OpeningReply, refusal: PeerError | None) -> bool:
    """Return True if an error response to `initialize` is one of a stateless server.

    A server that has refused the probe with `refusal` has to list a common revision.
    """
    return reply.error is not None and (
        (refusal is None and is_modern_error(reply.error, reply.status))
        or newest_common(config.stateless, _supported_versions(reply.error)) is not None
    )


def _discovered_peer(config: Config, discovery: t.DiscoverResult) -> Peer | _Fallback:
    if newest_common(config.stateless, discovery.supported_versions) is not None:
        return _stateless_peer(config, discovery)
    if newest_common(config.stateful, discovery.supported_versions) is not None:
        return _Fallback(f"it offers {', '.join(discovery.supported_versions)}")
    raise RevisionRefused(_no_common_revision(config, discovery.supported_versions))


def _stateless_peer(config: Config, discovery: t.DiscoverResult) -> Peer:
    dialect = newest_common(config.stateless, discovery.supported_versions)
    assert dialect is not None
    info = (discovery.meta or {}).get("io.modelcontextprotocol/serverInfo")
    return Peer(
        dialect=dialect,
        capabilities=discovery.capabilities,
        info=_read_implementation(info),
        instructions=discovery.instructions,
    )


def _handshake_peer(config: Config, raw: Raw | bytes, problems: dict[str, str]) -> Peer:
    try:
        result = _read(t.InitializeResult, _read_initialization, raw, problems)
    except InvalidPayload as exc:
        raise ConnectFailed(f"the server's answer to initialize cannot be read: {exc}") from None
    dialect = newest_common(config.stateful, [result.protocol_version])
    if dialect is None:
        raise RevisionRefused(
            f"the server answered with revision {result.protocol_version}; "
            f"spoken here: {', '.join(config.versions)}"
        )
    return Peer(
        dialect=dialect,
        capabilities=result.capabilities,
        info=result.server_info if result.server_info.name else None,
        instructions=result.instructions,
    )


def _read(
    kind: type[T], read: Callable[[Raw | bytes], T], raw: Raw | bytes, problems: dict[str, str]
) -> T:
    """Decode a result with `read`, or by its usable parts.

    Raises:
        InvalidPayload: what the opening needs cannot be read.
    """
    try:
        return read(raw)
    except InvalidPayload as exc:
        try:
            found, left_out = read_leniently(kind, raw, keeps_unknown=False)
        except InvalidPayload:
            raise exc from None
        problems |= left_out
        return found


def _read_complete_discovery(raw: Raw | bytes, problems: dict[str, str]) -> t.DiscoverResult | None:
    """Decode the result of `server/discover`. Return None if it is malformed or not complete."""
    try:
        result = _read(t.DiscoverResult, _read_discovery, raw, problems)
    except InvalidPayload:
        return None
    return result if result.result_type in (None, "complete") else None


def _read_implementation(info: Any) -> t.Implementation | None:
    """Return `info` as an object, None if it is malformed: it is for display only."""
    if not isinstance(info, dict) or not isinstance(info.get("name"), str):
        return None
    return t.Implementation(
        name=info["name"], version=str(info.get("version", "")), title=info.get("title")
    )


def _supported_versions(error: PeerError) -> list[str]:
    """Return the versions that an error response lists as supported, empty if it lists none."""
    supported = error.data.get("supported") if isinstance(error.data, dict) else None
    return (
        [version for version in supported if isinstance(version, str)]
        if isinstance(supported, list)
        else []
    )


def is_modern_error(error: PeerError, status: int | None) -> bool:
    """Return True if the specification has this error only in stateless revisions.

    `status` is the HTTP status, None without HTTP. Over HTTP that includes -32020 to a handshake,
    which lacks the headers of 2026-07-28 (basic/transports/streamable-http, Server Validation).
    """
    return error.code in MODERN_ERRORS or (status == 404 and error.code == _METHOD_NOT_FOUND)


def _is_ambiguous(error: PeerError, status: int | None) -> bool:
    """Return True for a modern error of the probe that servers with a handshake send as well."""
    return (status == 404 and error.code == _METHOD_NOT_FOUND) or (
        status is None and error.code == _HEADER_MISMATCH
    )


def _refused_probe(error: PeerError) -> ConnectFailed:
    return ConnectFailed(f"the server refused server/discover: {error}")


def _no_common_revision(config: Config, offered: Iterable[str]) -> str:
    theirs = ", ".join(offered) or "none"
    return f"no common revision: the server speaks {theirs}, we speak {', '.join(config.versions)}"


def _raise_if_inconclusive(reply: OpeningReply, what: str) -> None:
    """Raise `ConnectFailed` if the HTTP status tells nothing about revisions."""
    if reply.is_inconclusive:
        raise ConnectFailed(
            str(reply.failure or f"{what} (HTTP status {reply.status})")
        ) from reply.failure
