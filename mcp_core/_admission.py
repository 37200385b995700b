"""Whether a request of the peer is let in, and as whose: the ladder of checks between an envelope and an event.

Rules of this file:

1. The order of the checks is the specification's (2026-07-28, basic/transports/streamable-http; it satisfies the older
   texts too): who asks and in which revision, is that revision served, is this the time, is there such a method and do
   we offer it, are its params right. The first that fails is the answer.
2. Who asks is found here and nowhere else: `_meta` of this very request carries it (`_carried`), or the handshake settles
   it, now or before (`_settled`).
3. Nothing is changed here. `admit` is a function of what is known and gives an `Admission` or raises a `Refusal`.

In the good case the params are decoded once, `_meta` included. Only when they do not fit their type is `_meta` read a
second time and by itself, since a wrong revision is a better answer than wrong params.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import UNSET, Struct, field

from . import types as t
from ._dialects import Dialect, negotiate
from ._errors import Fault, LocalProtocolError
from ._events import Peer
from ._jsonrpc import Unreadable, reader
from ._methods import METHODS, Method, Role, Step
from ._state import LIFECYCLE, State, next_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from ._config import Config, Terms

__all__ = ["Admission", "Mirror", "Refusal", "admit"]


class Mirror(Protocol):
    """What a transport says of a request beside its message, as HTTP does in headers. Both give what does not agree, None if all
    does; `check_head` comes before it is asked whether there is such a revision or method, and gets params that
    may still be undecoded, because they do not fit; `check_params` after."""

    def check_head(self, method: str, version: str, row: Method | None, params: Any) -> str | None: ...

    def check_params(self, row: Method, params: Any) -> str | None: ...


class Admission(Struct, gc=False):
    """A request that may be carried out: its row, its params as an object of `row.params`, who asks and on which terms."""

    row: Method
    params: Any
    peer: Peer
    terms: Terms
    progress_token: t.ProgressToken | None


class Refusal(Exception):
    """Why a request is answered with an error. `dialect` gives the code of `fault`, None while no revision is known.

    `answerable` is False where the revision forbids even that answer.
    """

    def __init__(
        self,
        fault: Fault,
        message: str,
        data: Any = UNSET,
        *,
        dialect: Dialect | None = None,
        answerable: bool = True,
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.message = message
        self.data = data
        self.dialect = dialect
        self.answerable = answerable


class _Claim(Struct):
    """Of `_meta`, just what tells who is asking, with whatever type it has."""

    version: Any = field(name="io.modelcontextprotocol/protocolVersion", default=None)
    capabilities: Any = field(name="io.modelcontextprotocol/clientCapabilities", default=None)


class _Claimed(Struct):
    meta: _Claim | None = field(name="_meta", default=None)


class _Described(Struct):
    """`_meta` of params whose type has no place for it, as those of a custom method."""

    meta: t.RequestMeta | None = field(name="_meta", default=None)


# Looking up a member of an enum costs more than most checks that it is used in.
_CLIENT, _SERVER = Role.CLIENT, Role.SERVER
_WORK, _INITIALIZE, _STATELESS = Step.WORK, Step.INITIALIZE, Step.STATELESS
_read_claimed = reader(_Claimed)
_read_described = reader(_Described)
_ENDING: Final = "the server is being shut down and takes no more requests"
_OPENINGS: Final = frozenset(row.name for row in METHODS if row.step is Step.INITIALIZE)


def admit(
    method: str,
    raw: Raw | bytes,
    role: Role,
    config: Config,
    rows: Mapping[str, Method],
    state: State,
    remembered: Peer | None,
    mirror: Mirror | None = None,
) -> Admission:
    """Let a request in, or raise `Refusal`.

    `rows` are the methods that `role` receives in any revision served; `remembered` is the peer of the handshake; `mirror` has
    to agree with a request that carries who asks.
    """
    row = rows.get(method)
    params: Any = None
    problem = ""
    meta: t.RequestMeta | None = None
    try:
        if row is not None:
            params = row.read_params(raw)
        meta = params.meta if row is not None and row.has_meta else _read_described(raw).meta
    except Unreadable as exc:
        params = None
        problem = str(exc)
        meta = _claimed(raw)
    step = row.step if row is not None else _WORK
    # The one place where the two eras part: a request carries who asks, or that was settled before it.
    if (
        meta is not None
        and (meta.protocol_version is not None or meta.client_capabilities is not None)
        and role is _SERVER
    ):
        version = meta.protocol_version
        if version is None or meta.client_capabilities is None:
            missing = "protocolVersion" if version is None else "clientCapabilities"
            problem = f"_meta lacks io.modelcontextprotocol/{missing}"
            raise Refusal(Fault.INVALID_PARAMS, problem, dialect=config.dialects[0])
        if mirror is not None:
            mismatch = mirror.check_head(method, version, row, raw if params is None else params)
            if mismatch is not None:
                raise Refusal(Fault.HEADER_MISMATCH, mismatch, dialect=config.dialects[0])
        peer = _carried(version, meta, config, state)
    else:
        mirror = None
        peer = _settled(step, params, problem, role, config, state, remembered)
    dialect = peer.dialect
    terms = config.terms[role][dialect]
    row = terms.receives.get(method)
    if row is None or row.result is None:
        raise Refusal(
            Fault.METHOD_NOT_FOUND,
            _not_found(method, dialect, role),
            {"supported": config.versions} if method in _OPENINGS else UNSET,
            dialect=dialect,
        )
    if params is None:
        raise Refusal(Fault.INVALID_PARAMS, f"the params of {method} do not fit: {problem}", dialect=dialect)
    if mirror is not None:
        mismatch = mirror.check_params(row, params)
        if mismatch is not None:
            raise Refusal(Fault.HEADER_MISMATCH, mismatch, dialect=config.dialects[0])
    return Admission(row, params, peer, terms, meta.progress_token if meta is not None else None)


def _settled(
    step: Step,
    params: Any,
    problem: str,
    role: Role,
    config: Config,
    state: State,
    remembered: Peer | None,
) -> Peer:
    """Who asks, by the handshake: this request is one, or it came before."""
    if role is _CLIENT and remembered is not None and not remembered.dialect.stateful:
        raise Refusal(
            Fault.INVALID_REQUEST,
            f"a server does not send requests in revision {remembered.dialect.version}",
            dialect=remembered.dialect,
            answerable=False,
        )
    if not config.stateful:
        raise Refusal(
            Fault.INVALID_PARAMS,
            "the request's _meta must have io.modelcontextprotocol/protocolVersion and "
            "io.modelcontextprotocol/clientCapabilities",
            {"supported": config.versions},
            dialect=config.dialects[0],
            answerable=role is _SERVER,
        )
    _check_time(state, step, remembered.dialect if remembered is not None else None)
    if step is _INITIALIZE:
        if params is None:
            raise Refusal(Fault.INVALID_PARAMS, f"the params of initialize do not fit: {problem}")
        dialect = negotiate(params.protocol_version, config.stateful)
        return Peer(dialect=dialect, capabilities=params.capabilities, info=params.client_info)
    if remembered is not None:
        return remembered
    if step is Step.PING:
        return Peer(dialect=config.stateful[0], capabilities=t.ClientCapabilities())
    raise Refusal(Fault.INVALID_REQUEST, "the conversation has not been initialized")


def _carried(version: str, meta: t.RequestMeta, config: Config, state: State) -> Peer:
    """Who asks, by the request's own `_meta`."""
    assert meta.client_capabilities is not None
    dialect = config.by_version.get(version)
    if dialect is None or dialect.stateful:
        raise Refusal(
            Fault.UNSUPPORTED_VERSION,
            f"protocol version {version[:64]} is not served for requests without a handshake",
            {"supported": config.versions, "requested": version},
            dialect=config.dialects[0],
        )
    if _STATELESS not in LIFECYCLE[state]:
        raise Refusal(Fault.BUSY, _ENDING, dialect=dialect)
    return Peer(dialect, meta.client_capabilities, meta.client_info, meta.log_level)


def _check_time(state: State, step: Step, dialect: Dialect | None) -> None:
    if step in LIFECYCLE[state]:
        return
    if state is State.CLOSING:
        raise Refusal(Fault.BUSY, _ENDING, dialect=dialect)
    try:
        next_state(state, step)
    except LocalProtocolError as exc:
        raise Refusal(Fault.INVALID_REQUEST, str(exc), dialect=dialect) from None


def _claimed(raw: Raw | bytes) -> t.RequestMeta | None:
    """`_meta` as far as it tells who is asking, of params whose type is unknown or wrong."""
    try:
        claim = _read_claimed(raw).meta
    except Unreadable:
        return None
    if claim is None or (claim.version is None and claim.capabilities is None):
        return None
    return t.RequestMeta(
        protocol_version=claim.version if isinstance(claim.version, str) else None,
        client_capabilities=t.ClientCapabilities() if isinstance(claim.capabilities, dict) else None,
    )


def _not_found(method: str, dialect: Dialect, role: Role) -> str:
    row = dialect.receives[role].get(method)
    if row is None:
        return f"{method} is not a method that a {role.value} of revision {dialect.version} knows"
    if row.result is None:
        return f"{method} is a notification: it has no id"
    return f"this {role.value} does not offer {method}"
