"""Checks of requests: the peer's before they become events, our own before they are sent.

1. The peer's requests are checked in the specification's order (2026-07-28,
   basic/transports/streamable-http), which satisfies the earlier revisions too: the sender and its
   revision, whether that revision is served, the connection's state, the method, the sender's
   capabilities that the method asks for, the params. The first check that fails determines the
   error response.
2. The sender (`Peer`) is determined here and nowhere else: from `_meta` of the request
   (`_request_peer`), or from the handshake (`_session_peer`).
3. An invalid message of our own is an error of our caller: `LocalProtocolError`. Nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, field

from mcp_core import types as t
from mcp_core._errors import Fault, LocalProtocolError
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, has_duplicates, reader
from mcp_core.protocol.messages._events import Peer
from mcp_core.protocol.messages._rejection import RequestRejected, missing_capability
from mcp_core.protocol.revisions._capabilities import capability_object, is_declared
from mcp_core.protocol.revisions._dialects import Dialect, negotiate
from mcp_core.protocol.revisions._methods import METHODS, Method, Role, Step

from ._state import LIFECYCLE, State, next_state

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.protocol.jsonrpc._body import DecodedParams
    from mcp_core.protocol.messages._incoming import HeaderValidator
    from mcp_core.protocol.revisions._config import Config, DialectConfig

__all__ = [
    "AdmittedRequest",
    "admit",
    "may_become_task",
    "may_notify",
    "may_request",
]


class AdmittedRequest(Struct, gc=False):
    """A request that passed all checks.

    Attributes:
        row: its row in the table of methods.
        params: its params, an object of the type `row.params`.
        peer: its sender.
        dialect_config: our configuration for the sender's revision.
        progress_token: the token for progress notifications, None if it requests none.
    """

    row: Method
    params: Any
    peer: Peer
    dialect_config: DialectConfig
    progress_token: t.ProgressToken | None


class _PeerMeta(Struct):
    """The members of `_meta` that identify the sender, with any type of value."""

    version: Any = field(name="io.modelcontextprotocol/protocolVersion", default=None)
    capabilities: Any = field(name="io.modelcontextprotocol/clientCapabilities", default=None)


class _ParamsWithPeerMeta(Struct):
    meta: _PeerMeta | None = field(name="_meta", default=None)


class _ParamsMeta(Struct):
    """Params whose type has no field for `_meta`, such as a custom method's."""

    meta: t.RequestMeta | None = field(name="_meta", default=None)


# Looking up a member of an enum costs more than most comparisons with it.
_CLIENT = Role.CLIENT
_SERVER = Role.SERVER
_WORK = Step.WORK
_INITIALIZE = Step.INITIALIZE
_STATELESS = Step.STATELESS

_read_peer_meta = reader(_ParamsWithPeerMeta)
_read_params_meta = reader(_ParamsMeta, null_is_absent=True)
_read_members: Final[Callable[[Raw | bytes], dict[str, Raw]]] = reader(dict[str, Raw])

_SHUTTING_DOWN: Final = "the server is being shut down and takes no more requests"
# Methods that MCP doesn't define always pass: custom methods are up to the two sides.
_DEFINED: Final = frozenset(row.name for row in METHODS)
_HANDSHAKE_METHODS: Final = frozenset(row.name for row in METHODS if row.step is Step.INITIALIZE)


def admit(
    method: str,
    raw: Raw | bytes,
    role: Role,
    config: Config,
    state: State,
    session_peer: Peer | None,
    header_validator: HeaderValidator | None = None,
    decoded: DecodedParams | None = None,
) -> AdmittedRequest:
    """Check a request and return it as an `AdmittedRequest`.

    Args:
        method: the method's name.
        raw: the params as JSON.
        role: our role.
        config: our configuration.
        state: the connection's state.
        session_peer: the handshake's peer, None without a handshake.
        header_validator: applied to requests that carry their revision in `_meta`.
        decoded: the params, if they were decoded before.

    Raises:
        RequestRejected: a check failed.
    """
    row = config.receivable[role].get(method)
    params: Any = None
    params_error = ""
    task_error = False
    meta: t.RequestMeta | None = None
    # Usually the params are decoded once, `_meta` included. If they are invalid, `_meta` is decoded
    # by itself, because an unsupported revision is reported rather than invalid params.
    try:
        if row is not None:
            read = row.read_params
            params = read(raw) if decoded is None else decoded.get(read, raw)
        meta = params.meta if row is not None and row.has_meta else _read_params_meta(raw).meta
    except InvalidPayload as exc:
        params_error = str(exc)
        params = _without_task(row, raw) if row is not None else None
        task_error = params is not None
        meta = _peer_meta(raw) if params is None else params.meta
    step = row.step if row is not None else _WORK
    # The only distinction between stateless and stateful requests: the first identify their sender.
    if (
        meta is not None
        and (meta.protocol_version is not None or meta.client_capabilities is not None)
        and role is _SERVER
    ):
        version = meta.protocol_version
        if version is None or meta.client_capabilities is None:
            missing = "protocolVersion" if version is None else "clientCapabilities"
            raise RequestRejected(
                Fault.INVALID_PARAMS,
                f"_meta lacks io.modelcontextprotocol/{missing}",
                dialect=config.dialects[0],
            )
        if header_validator is not None:
            if has_duplicates(raw, "_meta"):
                # A proxy that reads the body may have seen another value than the handler would.
                text = "params or _meta has a member twice"
                raise RequestRejected(Fault.INVALID_REQUEST, text, dialect=config.dialects[0])
            head_params = raw if params is None else params
            head_row = _row_in(version, method, role, config)
            mismatch = header_validator.check_head(method, version, head_row, head_params)
            if mismatch is not None:
                raise _header_mismatch(mismatch, config)
        peer = _request_peer(version, meta, config, state)
    else:
        header_validator = None
        peer = _session_peer(step, params, params_error, role, config, state, session_peer)
    dialect = peer.dialect
    dialect_config = config.dialect_configs[role][dialect]
    row = dialect_config.receives.get(method)
    if row is None or row.result is None:
        raise RequestRejected(
            Fault.METHOD_NOT_FOUND,
            _not_found_text(method, dialect, role),
            {"supported": config.versions} if method in _HANDSHAKE_METHODS else UNSET,
            dialect=dialect,
        )
    if row.asks and not is_declared(peer.capabilities, row.asks):
        raise missing_capability(method, row.asks, dialect)
    if task_error and _runs_as_task(row, dialect, config):
        params = None
    if params is None:
        raise RequestRejected(
            Fault.INVALID_PARAMS,
            f"the params of {method} do not fit: {params_error}",
            dialect=dialect,
        )
    if header_validator is not None:
        mismatch = header_validator.check_params(row, params)
        if mismatch is not None:
            raise _header_mismatch(mismatch, config)
    return AdmittedRequest(
        row, params, peer, dialect_config, meta.progress_token if meta is not None else None
    )


def _row_in(version: str, method: str, role: Role, config: Config) -> Method | None:
    """Return the row of a method in a revision, None if that revision has no such method.

    Headers are checked before the method, and what they have to repeat depends on the row: a method
    that was removed from the revision needs no `Mcp-Name`.
    """
    dialect = config.by_version.get(version)
    return None if dialect is None else dialect.receives[role].get(method)


def _session_peer(
    step: Step,
    params: Any,
    params_error: str,
    role: Role,
    config: Config,
    state: State,
    known_peer: Peer | None,
) -> Peer:
    """Return the sender according to the handshake: an earlier one, or this request."""
    if role is _CLIENT and known_peer is not None and not known_peer.dialect.stateful:
        raise RequestRejected(
            Fault.INVALID_REQUEST,
            f"a server does not send requests in revision {known_peer.dialect.version}",
            dialect=known_peer.dialect,
            may_respond=False,
        )
    if not config.stateful:
        raise RequestRejected(
            Fault.INVALID_PARAMS,
            "the request's _meta must have io.modelcontextprotocol/protocolVersion and "
            "io.modelcontextprotocol/clientCapabilities",
            {"supported": config.versions},
            dialect=config.dialects[0],
            may_respond=role is _SERVER,
        )
    _check_state(state, step, known_peer.dialect if known_peer is not None else None)
    if step is _INITIALIZE:
        if params is None:
            raise RequestRejected(
                Fault.INVALID_PARAMS, f"the params of initialize do not fit: {params_error}"
            )
        dialect = negotiate(params.protocol_version, config.stateful)
        return Peer(dialect=dialect, capabilities=params.capabilities, info=params.client_info)
    if known_peer is not None:
        return known_peer
    if step is Step.PING:  # legal before the handshake, when nothing is known of the sender
        return Peer(dialect=config.stateful[0], capabilities=t.ClientCapabilities())
    raise RequestRejected(Fault.INVALID_REQUEST, "the conversation has not been initialized")


def _without_task(row: Method, raw: Raw | bytes) -> Any:
    """Decode invalid params again, without a member `task`. Return None if they are still invalid.

    A receiver that runs no such requests as tasks ignores `task`, even one that is malformed
    (2025-11-25, basic/utilities/tasks, Task Support and Handling).
    """
    if not row.task_needs:
        return None
    try:
        members = _read_members(raw)
        return None if members.pop("task", None) is None else row.read_params(encode(members))
    except InvalidPayload:
        return None


def _runs_as_task(row: Method, dialect: Dialect, config: Config) -> bool:
    """Return True if we run requests of `row` as tasks on request, as in 2025-11-25."""
    return dialect.tasks == "requested" and bool(row.task_needs) and config.declares(row.task_needs)


def _header_mismatch(mismatch: str, config: Config) -> RequestRejected:
    return RequestRejected(Fault.HEADER_MISMATCH, mismatch, dialect=config.dialects[0])


def _request_peer(version: str, meta: t.RequestMeta, config: Config, state: State) -> Peer:
    """Return the sender according to the request's `_meta`."""
    assert meta.client_capabilities is not None
    dialect = config.by_version.get(version)
    if dialect is None or dialect.stateful:
        raise RequestRejected(
            Fault.UNSUPPORTED_VERSION,
            f"protocol version {version[:64]} is not served for requests without a handshake",
            {"supported": config.versions, "requested": version},
            dialect=config.dialects[0],
        )
    if _STATELESS not in LIFECYCLE[state]:
        raise RequestRejected(Fault.BUSY, _SHUTTING_DOWN, dialect=dialect)
    return Peer(dialect, meta.client_capabilities, meta.client_info, meta.log_level)


def _check_state(state: State, step: Step, dialect: Dialect | None) -> None:
    """Reject the request if `step` isn't legal in `state`."""
    if step in LIFECYCLE[state]:
        return
    if state is State.CLOSING:
        raise RequestRejected(Fault.BUSY, _SHUTTING_DOWN, dialect=dialect)
    try:
        next_state(state, step)
    except LocalProtocolError as exc:
        raise RequestRejected(Fault.INVALID_REQUEST, str(exc), dialect=dialect) from None


def _peer_meta(raw: Raw | bytes) -> t.RequestMeta | None:
    """Return the part of `_meta` that identifies the sender, from params that are invalid.

    Return None if there is no such part.
    """
    try:
        meta = _read_peer_meta(raw).meta
    except InvalidPayload:
        return None
    if meta is None or (meta.version is None and meta.capabilities is None):
        return None
    declared = meta.capabilities
    extensions = declared.get("extensions") if isinstance(declared, dict) else None
    return t.RequestMeta(
        protocol_version=meta.version if isinstance(meta.version, str) else None,
        # The extensions matter: a method may ask for one, which is checked before the params.
        client_capabilities=t.ClientCapabilities(
            extensions=extensions if isinstance(extensions, dict) else None
        )
        if isinstance(declared, dict)
        else None,
    )


def _not_found_text(method: str, dialect: Dialect, role: Role) -> str:
    row = dialect.receives[role].get(method)
    if row is None:
        return f"{method} is not a method that a {role.value} of revision {dialect.version} knows"
    if row.result is None:
        return f"{method} is a notification: it has no id"
    return f"this {role.value} does not offer {method}"


def may_request(method: str, peer: Peer, role: Role, config: Config, state: State) -> Method | None:
    """Check that `role` may send the request `method` to `peer` in `state`, and return its row.

    Return None for a custom method that isn't registered in `config`.

    Raises:
        LocalProtocolError: the method's name is empty, the revision has no such request, the peer
            or we did not declare the capability, or the request isn't legal in `state`.
    """
    if role is _SERVER and not peer.dialect.stateful:
        raise LocalProtocolError(
            f"a server sends no requests in revision {peer.dialect.version}: "
            f"return input_required, not {method}"
        )
    row = _row(method, peer, role, config, is_request=True)
    if peer.dialect.stateful:
        next_state(state, row.step if row is not None else _WORK)
    # A request needs a capability of the peer, a notification one of our own.
    if row is not None and not is_declared(peer.capabilities, row.needs):
        raise LocalProtocolError(
            f"the {role.other.value} did not declare the capability {'.'.join(row.needs)}, "
            f"which {method} needs",
            Fault.MISSING_CAPABILITY,
            {"requiredCapabilities": capability_object(row.needs)},
        )
    if row is not None and row.asks and not config.declares(row.asks):
        raise LocalProtocolError(
            f"{method} needs the capability {'.'.join(row.asks)}, which we did not declare",
            Fault.MISSING_CAPABILITY,
            {"requiredCapabilities": capability_object(row.asks)},
        )
    return row


def may_become_task(row: Method, params: Any, peer: Peer, config: Config) -> bool:
    """Return True if the response to our request may be a `CreateTaskResult`.

    Raises:
        LocalProtocolError: the params ask for a task, and the peer doesn't run such requests as
            tasks (2025-11-25, basic/utilities/tasks, Capabilities).
    """
    if not row.task_needs:
        return False
    if peer.dialect.tasks == "extension":
        return config.declares_tasks
    task = params.get("task") if isinstance(params, Mapping) else getattr(params, "task", None)
    if task is None or peer.dialect.tasks == "none":
        return False
    if not is_declared(peer.capabilities, row.task_needs):
        raise LocalProtocolError(
            f"the peer did not declare the capability {'.'.join(row.task_needs)}, so {row.name} "
            "cannot ask for a task",
            Fault.MISSING_CAPABILITY,
            {"requiredCapabilities": capability_object(row.task_needs)},
        )
    return True


def may_notify(method: str, peer: Peer, role: Role, config: Config, state: State) -> None:
    """Check that `role` may send the notification `method` to `peer` in `state`.

    Raises:
        LocalProtocolError: the revision has no such notification, we did not declare the
            capability, or the notification isn't legal in `state`.
    """
    row = _row(method, peer, role, config, is_request=False)
    if row is None:
        return
    if not config.declares(row.needs):
        raise LocalProtocolError(
            f"{method} needs the capability {'.'.join(row.needs)}, which we did not declare"
        )
    if peer.dialect.stateful:
        next_state(state, row.step)


def _row(method: str, peer: Peer, role: Role, config: Config, *, is_request: bool) -> Method | None:
    row = config.dialect_configs[role][peer.dialect].sends.get(method)
    if row is None and not method:
        raise LocalProtocolError("a method has a name, and this one is empty")
    if row is None and method in _DEFINED:
        version = peer.dialect.version
        raise LocalProtocolError(
            f"{method} is not something that a {role.value} sends in revision {version}"
        )
    if row is not None and (row.result is not None) is not is_request:
        raise LocalProtocolError(f"{method} is a {'notification' if is_request else 'request'}")
    return row
