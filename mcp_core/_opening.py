"""How a client finds out which revision to speak: probe, handshake, fallback, as one generator.

Rules of this file:

1. `opening()` yields what to ask and is sent what came back. It never sees a message, a clock or a transport, so the whole
   compatibility matrix is a table of replies in its test.
2. Only a *modern* error speaks for the stateless era. Any other error, and silence, means a server that does not know
   `server/discover`; no single code may be relied on for that.
3. No verdict is no reason to fall back: who may not enter (401), who is overloaded (503) says nothing about revisions.

Sources: 2026-07-28 basic/versioning (Backward Compatibility) and basic/transports; basic/lifecycle of the older ones.
The generator is used over pipes, where `Reply.status` is None, and over HTTP, where it is the status of the response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from . import types as t
from ._answers import error_of
from ._dialects import DIALECTS, Dialect, best
from ._errors import ConnectFailed, Fault, PeerError
from ._events import Peer
from ._jsonrpc import Unreadable, reader

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from msgspec import UnsetType

    from ._config import Config
    from ._errors import McpTrioError
    from ._jsonrpc import Envelope
    from .types import RequestId

__all__ = ["MODERN_ERRORS", "Ask", "Opener", "Reply", "opening", "question", "reply_in"]


class Ask(Struct, frozen=True):
    """A request that the opening needs: `method` in `dialect`, with an answer within `timeout` seconds."""

    method: str
    dialect: Dialect
    timeout: float | None


class Reply(Struct, frozen=True):
    """What came of an `Ask`: a result, an error or, with neither, silence until the deadline.

    `status` is the HTTP status, if there is one, and `failure` what else HTTP says if there is no JSON-RPC answer. `late` is a
    result of the probe that came after its deadline.
    """

    result: Raw | bytes | None = None
    error: PeerError | None = None
    status: int | None = None
    late: Raw | bytes | None = None
    failure: McpTrioError | None = None


MODERN_ERRORS: Final = frozenset(
    code
    for dialect in DIALECTS.values()
    if not dialect.stateful
    for fault, code in dialect.codes.items()
    if fault in (Fault.HEADER_MISMATCH, Fault.MISSING_CAPABILITY, Fault.UNSUPPORTED_VERSION)
)
_UNSUPPORTED: Final = next(d.codes[Fault.UNSUPPORTED_VERSION] for d in DIALECTS.values() if not d.stateful)
_METHOD_NOT_FOUND: Final = -32601
# These say that the server cannot or will not talk now, not which revisions it knows.
_NO_VERDICT: Final = frozenset({401, 403, 429})

_read_discovery = reader(t.DiscoverResult)
_read_initialization = reader(t.InitializeResult)


def opening(config: Config, verdict: Peer | None = None) -> Generator[Ask, Reply, Peer]:
    """Open a conversation; returns the peer.

    `verdict` is the peer of an earlier conversation with the same server: its revision is taken up without a probe.

    Raises:
        ConnectFailed: no common revision, or a server that did not open.
    """
    if verdict is not None and verdict.dialect in config.dialects:
        if not verdict.dialect.stateful:
            return verdict
        return (yield from _initialize(config, verdict.dialect))
    if not config.stateless:
        return (yield from _initialize(config, config.stateful[0]))
    found = yield from _probe(config)
    if isinstance(found, Peer):
        return found
    if not config.stateful:
        raise ConnectFailed(
            f"the server does not speak {', '.join(config.versions)} ({found}). "
            "Allow an older revision to connect with a handshake."
        )
    return (yield from _initialize(config, config.stateful[0]))


class Opener:
    """An `opening` under way: which question of it is out, as which request of ours, and until when.

    `ask` is the last question, None before the first and when it went well; `deadline` is when its time is up.
    """

    __slots__ = ("_id", "_late", "_late_id", "_steps", "ask", "deadline")

    def __init__(self, config: Config, verdict: Peer | None) -> None:
        self.ask: Ask | None = None
        self.deadline: float | None = None
        self._steps = opening(config, verdict)
        self._id: RequestId | None = None
        self._late_id: RequestId | None = None
        self._late: Raw | None = None

    @property
    def probing(self) -> bool:
        """Whether the last question was which revisions the server knows."""
        return self.ask is not None and not self.ask.dialect.stateful

    def advance(self, reply: Reply | None, id: RequestId, now: float) -> Ask | Peer:
        """Take it one step further: what to ask next, as request `id`, or the peer.

        Raises:
            ConnectFailed: it has come to nothing.
        """
        self.deadline = None
        try:
            ask = self._steps.send(replace(reply, late=self._late) if reply is not None else None)  # type: ignore[arg-type]
        except ConnectFailed:
            self.ask = (
                None  # there is a verdict; only silence and an end without a word leave the question open
            )
            raise
        except StopIteration as stop:
            self.ask = None
            peer: Peer = stop.value
            return peer
        self.ask, self._id = ask, id
        if ask.timeout is not None:
            self.deadline = now + ask.timeout
        return ask

    def hold(self, now: float | None) -> None:
        """While a user logs in (None) silence to the question that is out says nothing; its time begins anew at `now`."""
        if self.ask is not None and self.ask.timeout is not None:
            self.deadline = None if now is None else now + self.ask.timeout

    def time_is_up(self) -> RequestId | None:
        """Give up the question that is out; gives its request. An answer to the probe may still come."""
        if self.probing:
            self._late_id = self._id
        return self._id

    def takes_late(self, id: RequestId, result: Raw | UnsetType) -> bool:
        """Whether this response is the answer to a probe that had been given up. It is kept for a handshake that fails."""
        if id != self._late_id or type(id) is not type(self._late_id):
            return False
        self._late = None if result is UNSET else result
        return True


def reply_in(envelope: Envelope, status: int | None = None) -> Reply:
    """What a response says to the opening. An error object that is none is an error all the same."""
    if envelope.error is UNSET:
        assert envelope.result is not UNSET
        return Reply(result=envelope.result, status=status)
    error = error_of(envelope.error)
    return Reply(error=error if isinstance(error, PeerError) else PeerError(0, str(error)), status=status)


def question(ask: Ask, config: Config) -> t.Params:
    """The params of what `ask` wants to know."""
    if not ask.dialect.stateful:
        return t.DiscoverParams()
    return t.InitializeParams(
        protocol_version=ask.dialect.version, capabilities=config.capabilities, client_info=config.info
    )


def _probe(config: Config) -> Generator[Ask, Reply, Peer | str]:
    """The peer if the server is stateless, else the reason to think that it is not."""
    tried: list[Dialect] = []
    dialect = config.stateless[0]
    while True:
        tried.append(dialect)
        reply = yield Ask("server/discover", dialect, config.probe_timeout)
        if reply.result is not None:
            discovery = _discovery(reply.result)
            if discovery is None:
                return "its answer to server/discover is none"
            return _peer_in(config, discovery)
        if reply.error is None:
            _refuse_without_verdict(reply, "the server did not answer server/discover")
            return str(reply.failure or "it did not answer server/discover")
        if reply.error.code == _UNSUPPORTED:
            supported = _supported(reply.error)
            mutual = best(config.stateless, supported)
            # Who refuses what he lists is asked once more: another process may have refused than the one that lists.
            if mutual is not None and tried.count(mutual) < 2:
                dialect = mutual
                continue
            if mutual is not None:
                raise ConnectFailed(f"the server lists {mutual.version} but refuses it")
            if best(config.stateful, supported) is not None:
                return f"it offers {', '.join(supported)}"
            raise ConnectFailed(_nothing_mutual(config, supported))
        if reply.error.code in MODERN_ERRORS or (
            reply.status == 404 and reply.error.code == _METHOD_NOT_FOUND
        ):
            raise ConnectFailed(f"the server refused server/discover: {reply.error}") from reply.error
        _refuse_without_verdict(reply, f"the server refused server/discover: {reply.error}")
        return f"it answered server/discover with {reply.error}"


def _initialize(config: Config, dialect: Dialect) -> Generator[Ask, Reply, Peer]:
    reply = yield Ask("initialize", dialect, config.initialize_timeout)
    # A server that answered the probe too late is modern after all, whatever its way to fail here.
    late = _discovery(reply.late) if reply.late is not None else None
    modern = late is not None and best(config.stateless, late.supported_versions) is not None
    if reply.result is not None:
        try:
            return _peer_after_handshake(config, reply.result)
        except ConnectFailed:
            if not modern:
                raise
    if late is not None and modern:
        return _stateless_peer(config, late)
    if reply.error is None:
        _refuse_without_verdict(reply, "the server did not answer initialize")
        if reply.failure is not None:
            raise ConnectFailed(str(reply.failure)) from reply.failure
        raise ConnectFailed(f"the server did not answer initialize within {config.initialize_timeout} s")
    if config.stateless and (
        reply.error.code == _UNSUPPORTED or best(config.stateless, _supported(reply.error))
    ):
        found = yield from _probe(config)
        if isinstance(found, Peer):
            return found
    raise ConnectFailed(f"the server refused initialize: {reply.error}") from reply.error


def _peer_in(config: Config, discovery: t.DiscoverResult) -> Peer | str:
    if best(config.stateless, discovery.supported_versions) is not None:
        return _stateless_peer(config, discovery)
    if best(config.stateful, discovery.supported_versions) is not None:
        return f"it offers {', '.join(discovery.supported_versions)}"
    raise ConnectFailed(_nothing_mutual(config, discovery.supported_versions))


def _stateless_peer(config: Config, discovery: t.DiscoverResult) -> Peer:
    dialect = best(config.stateless, discovery.supported_versions)
    assert dialect is not None
    info = (discovery.meta or {}).get("io.modelcontextprotocol/serverInfo")
    return Peer(
        dialect=dialect,
        capabilities=discovery.capabilities,
        info=_implementation(info),
        instructions=discovery.instructions,
    )


def _peer_after_handshake(config: Config, raw: Raw | bytes) -> Peer:
    try:
        result = _read_initialization(raw)
    except Unreadable as exc:
        raise ConnectFailed(f"the server's answer to initialize cannot be read: {exc}") from None
    dialect = best(config.stateful, [result.protocol_version])
    if dialect is None:
        raise ConnectFailed(
            f"the server answered with revision {result.protocol_version}; spoken here: {', '.join(config.versions)}"
        )
    return Peer(
        dialect=dialect,
        capabilities=result.capabilities,
        info=result.server_info,
        instructions=result.instructions,
    )


def _discovery(raw: Raw | bytes) -> t.DiscoverResult | None:
    try:
        result = _read_discovery(raw)
    except Unreadable:
        return None
    return result if result.result_type in (None, "complete") else None


def _implementation(found: Any) -> t.Implementation | None:
    """Identity is for display: one that cannot be read is no reason to fail."""
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    return t.Implementation(
        name=found["name"], version=str(found.get("version", "")), title=found.get("title")
    )


def _supported(error: PeerError) -> list[str]:
    supported = error.data.get("supported") if isinstance(error.data, dict) else None
    return (
        [version for version in supported if isinstance(version, str)] if isinstance(supported, list) else []
    )


def _nothing_mutual(config: Config, offered: Iterable[str]) -> str:
    return f"no common revision: the server speaks {', '.join(offered) or 'none'}, we speak {', '.join(config.versions)}"


def _refuse_without_verdict(reply: Reply, what: str) -> None:
    if reply.status is not None and (reply.status in _NO_VERDICT or reply.status >= 500 or reply.status == 0):
        raise ConnectFailed(str(reply.failure or f"{what} (HTTP status {reply.status})")) from reply.failure
