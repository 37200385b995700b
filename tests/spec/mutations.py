# ruff: noqa: E501 - code stands here as in its file
"""Small changes to the code, each of which a test of the manifest's rows has to notice.

    python -m tests.spec.mutations [--check] [--sample N] [--seed N] [--jobs N] [ROW ...]

A row whose mutation survives is not tested, although the manifest says so. A new row of the
manifest brings its mutation along. `tests/spec/code_match.py` says how code is found.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.spec.equivalent_mutants import EQUIVALENTS, find_stale_equivalents
from tests.spec.mutation_runner import (
    Mutation,
    chosen,
    copied,
    find_broken,
    run_mutations,
    run_tests,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MUTATIONS"]

# Mutations by the groups of the manifest, in its order.
MUTATIONS: tuple[Mutation, ...] = (
    # JSON-RPC
    Mutation(
        ("RPC-1",),
        "mcp_core/protocol/jsonrpc/_codec.py::Envelope.jsonrpc",
        'jsonrpc: Literal["2.0"]',
        "jsonrpc: str",
    ),
    Mutation(
        ("RPC-2",),
        "mcp_core/protocol/jsonrpc/_codec.py::Envelope",
        "int | str",
        "int | str | float | bool",
    ),
    Mutation(("RPC-3",), "mcp_core/protocol/jsonrpc/_codec.py::decode", "id is None", "id == ()"),
    Mutation(
        ("RPC-4",),
        "mcp_core/protocol/connection/_requests.py::OutgoingRequests.send",
        "self.next_id = id + 1",
        "self.next_id = len(self.table) + 1",
    ),
    Mutation(
        ("RPC-5",),
        "mcp_core/protocol/connection/_connection.py::Connection._handle_request",
        "id in self._incoming.table",
        "id in self._incoming.table and not id",
    ),
    Mutation(
        ("RPC-6",),
        "mcp_core/protocol/connection/_connection.py::Connection._handle_response",
        "call = self._outgoing.table.pop(id, None)\nif call is None: ...",
        "call = self._outgoing.table.pop(int(id), None)\nif call is None: ...",
    ),
    Mutation(
        ("RPC-7",),
        "mcp_core/protocol/jsonrpc/_codec.py::encode_result",
        """return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(id), result)""",
        """return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(str(id)), result)""",
    ),
    Mutation(
        ("RPC-8",),
        "mcp_core/protocol/jsonrpc/_codec.py::encode_error",
        "id is not None",
        "id is not None or not null_id",
    ),
    Mutation(
        ("RPC-9", "RPC-10"),
        "mcp_core/protocol/jsonrpc/_codec.py::_response_payload",
        "if error is not UNSET: ...",
        "if error is None: ...",
    ),
    Mutation(
        ("RPC-11",),
        "mcp_core/types/_base.py::ErrorData",
        "code: int\nmessage: str",
        "code: int | str\nmessage: str | None = None",
    ),
    Mutation(
        ("RPC-13",),
        "mcp_core/protocol/jsonrpc/_codec.py::encode_notification",
        """b'{"jsonrpc":"2.0","method":%b}'""",
        """b'{"jsonrpc":"2.0","id":null,"method":%b}'""",
    ),
    Mutation(
        ("RPC-14",),
        "mcp_core/protocol/connection/_connection.py::Connection.next_event",
        "elif message.id is UNSET: ...",
        "elif message.id is UNSET and message.method != 'notifications/progress': ...",
    ),
    Mutation(
        ("RPC-15",),
        "mcp_core/protocol/connection/_admission.py::admit",
        "params = _without_task(row, raw) if row is not None else None",
        "params = row.read_params(b'{}') if row is not None and row.params is not t.CallToolParams else None",
    ),
    Mutation(
        ("RPC-16",),
        "mcp_core/protocol/messages/_responses.py::_read_object",
        "_read_object = reader(dict[str, Any])",
        "_read_object = reader(Any)",
    ),
    Mutation(
        ("RPC-17", "RPC-26"),
        "mcp_core/protocol/jsonrpc/_codec.py::_bad_envelope",
        "Fault.PARSE",
        "Fault.INVALID_REQUEST",
    ),
    Mutation(
        ("RPC-18",),
        "mcp_core/protocol/revisions/_dialects.py::_CODES",
        "Fault.METHOD_NOT_FOUND: -32601",
        "Fault.METHOD_NOT_FOUND: -32600",
    ),
    Mutation(
        ("RPC-19",),
        "mcp_core/protocol/jsonrpc/_codec.py::Envelope",
        "class Envelope(Struct, gc=False): ...",
        "class Envelope(Struct, gc=False, forbid_unknown_fields=True): ...",
    ),
    Mutation(
        ("RPC-20", "RPC-23"),
        "mcp_core/protocol/revisions/_dialects.py::DIALECTS",
        "null_error_id=True, batches=True",
        "null_error_id=True",
    ),
    Mutation(
        ("RPC-22",),
        "mcp_core/protocol/messages/_incoming.py::_batch_member",
        'message.method != "initialize"',
        'message.method == "initialize"',
    ),
    Mutation(
        ("RPC-24",),
        "mcp_core/protocol/jsonrpc/_body.py::_parse_batch",
        "if not 0 < count <= limit: ...",
        "if not 0 <= count <= limit: ...",
    ),
    Mutation(
        ("RPC-25",),
        "mcp_core/protocol/messages/_incoming.py::IncomingMessages.__init__",
        "self.batches = False",
        "self.batches = True",
    ),
    Mutation(
        ("RPC-27", "RPC-29"),
        "mcp_core/protocol/connection/_admission.py::_session_peer",
        "may_respond=False,",
        "",
    ),
    Mutation(
        ("RPC-28",),
        "mcp_core/protocol/connection/_admission.py::may_request",
        "if role is _SERVER and not peer.dialect.stateful: ...",
        "if role is _SERVER and peer is None: ...",
    ),
    Mutation(
        ("RPC-30",),
        "mcp_core/protocol/revisions/_dialects.py::DIALECTS",
        'result_type="complete"',
        'result_type=""',
    ),
    Mutation(
        ("RPC-31",),
        "mcp_core/protocol/messages/_responses.py::_result_event",
        "if kind is None or kind == _COMPLETE: ...",
        "if kind == _COMPLETE: ...",
    ),
    Mutation(
        ("RPC-32",),
        "mcp_core/protocol/messages/_responses.py::_other_event",
        "if kind != _INPUT_REQUIRED: ...",
        "if kind is None: ...",
    ),
    Mutation(
        ("RPC-33",),
        "mcp_core/protocol/messages/_responses.py::_other_event",
        "kind == _TASK",
        "kind is None",
    ),
    Mutation(
        ("RPC-34",),
        "mcp_core/protocol/connection/_builtin.py::_ping",
        "return t.EmptyResult(), None",
        "return t.ListToolsResult(tools=[]), None",
    ),
    Mutation(
        ("RPC-35",),
        "mcp_core/runtime/_service.py::RequestJob.dropped",
        "self._finished",
        "not self._finished",
    ),
    # _meta
    Mutation(
        ("META-1",),
        "mcp_core/types/_revisions.py::GATES",
        'Gate(_base.Listed, "meta", C)',
        'Gate(_base.Listed, "meta", D)',
    ),
    Mutation(
        ("META-2",),
        "mcp_core/protocol/revisions/_config.py::META_LABEL",
        'r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"',
        'r"[A-Za-z](?:[A-Za-z0-9-]*)?"',
    ),
    Mutation(
        ("META-3",),
        "mcp_core/protocol/revisions/_config.py::_ConfigByDialect.__missing__",
        '"io.modelcontextprotocol/serverInfo"',
        '"org.mcp/serverInfo"',
    ),
    Mutation(
        ("META-4",),
        "mcp_core/protocol/connection/_negotiation.py::_stateless_peer",
        "info=_read_implementation(info),",
        "info=t.Implementation(name=info['name'], version=info['version']),",
    ),
    Mutation(
        ("META-6",),
        "mcp_core/protocol/revisions/_config.py::_ConfigByDialect.__missing__",
        (
            "protocol_version=dialect.version,\n"
            "                    client_capabilities=dialect.fit(config.capabilities),"
        ),
        "protocol_version=dialect.version,",
    ),
    Mutation(
        ("META-7",),
        "mcp_core/protocol/revisions/_config.py::_ConfigByDialect.__missing__",
        "client_info=dialect.fit(config.info),",
        "",
    ),
    Mutation(
        ("META-8",),
        "mcp_core/protocol/connection/_admission.py::admit",
        "if version is None or meta.client_capabilities is None: ...",
        "if version is None: ...",
    ),
    Mutation(
        ("META-9", "CAP-5", "VER-7"),
        "mcp_core/protocol/connection/_admission.py::_request_peer",
        "return Peer(dialect, meta.client_capabilities, meta.client_info, meta.log_level)",
        "return Peer(dialect, t.ClientCapabilities(), meta.client_info, meta.log_level)",
    ),
    Mutation(
        ("META-10",),
        "mcp_core/protocol/revisions/_config.py::_ConfigByDialect.__missing__",
        'meta = {"io.modelcontextprotocol/serverInfo": dialect.fit(config.info)}',
        "meta = {}",
    ),
    Mutation(
        ("META-12", "SUB-4"),
        "mcp_core/protocol/subscriptions/_server.py::_build_notification",
        "meta = _subscription_meta(id) if id is not None else None",
        "meta = None",
    ),
    Mutation(
        ("META-13",),
        "mcp_core/registry/_trace_context.py::_TRACEPARENT",
        'r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?P<more>-.*)?"',
        'r"(?!ff)[0-9a-f]{2}-[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?P<more>-.*)?"',
    ),
    Mutation(
        ("META-14",),
        "mcp_core/protocol/connection/_admission.py::admit",
        "meta.progress_token if meta is not None else None",
        "None",
    ),
    Mutation(
        ("META-15",),
        "mcp_core/protocol/connection/_builtin.py::task_progress",
        'meta={t.META_RELATED_TASK: {"taskId": task_id}}',
        "meta=None",
    ),
    Mutation(
        ("META-16",),
        "mcp_core/types/_revisions.py::GATES",
        'Gate(_base.RequestMeta, "related_task", D, E)',
        'Gate(_base.RequestMeta, "related_task", D)',
    ),
    Mutation(
        ("META-19",),
        "mcp_core/types/_revisions.py::GATES",
        'Gate(_base.Listed, "icons", D)',
        'Gate(_base.Listed, "icons", E)',
    ),
    # JSON Schema
    Mutation(
        ("JSCH-5", "JSCH-7"),
        "mcp_core/protocol/schema/_json_schema.py::_reject_external_references",
        'if isinstance(reference, str) and not reference.startswith("#"): ...',
        "if not isinstance(reference, str): ...",
    ),
    # Life cycle
    Mutation(
        ("LIFE-1",),
        "mcp_core/protocol/connection/_negotiation.py::opening_params",
        "client_info=config.info,",
        "client_info=t.Implementation(name='', version=''),",
    ),
    Mutation(
        ("LIFE-2",),
        "mcp_core/protocol/connection/_negotiation.py::negotiate_version",
        "_initialize(config, config.stateful[0], [])",
        "_initialize(config, config.stateful[-1], [])",
    ),
    Mutation(
        ("LIFE-3",),
        "mcp_core/protocol/connection/_builtin.py::_initialize",
        "server_info=config.info,\ninstructions=config.instructions,",
        "server_info=config.info,",
    ),
    Mutation(
        ("LIFE-4",),
        "mcp_core/protocol/revisions/_dialects.py::negotiate",
        "served[0]",
        "served[-1]",
    ),
    Mutation(
        ("LIFE-5",),
        "mcp_core/protocol/connection/_negotiation.py::_handshake_peer",
        "dialect = newest_common(config.stateful, [result.protocol_version])",
        "dialect = newest_common(config.stateful, [result.protocol_version]) or config.stateful[0]",
    ),
    Mutation(
        ("LIFE-6",),
        "mcp_core/protocol/connection/_negotiation.py::_initialized_peer",
        'raise kind(f"the server refused initialize: {reply.error}") from reply.error',
        'raise kind("the server refused initialize")',
    ),
    Mutation(
        ("LIFE-7",),
        "mcp_core/protocol/connection/_connection.py::Connection._on_negotiated",
        'self.send_notification("notifications/initialized")',
        "",
    ),
    Mutation(
        ("LIFE-9",),
        "mcp_core/protocol/connection/_connection.py::Connection.send_request",
        "if self.state is not State.READY and related is None: ...",
        "if self.state is State.CLOSED: ...",
    ),
    Mutation(
        ("LIFE-10",),
        "mcp_core/protocol/connection/_admission.py::_session_peer",
        "_check_state(state, step, known_peer.dialect if known_peer is not None else None)",
        "",
    ),
    Mutation(
        ("LIFE-12",),
        "mcp_core/protocol/connection/_admission.py::_check_state",
        "if step in LIFECYCLE[state]: ...",
        "if step in LIFECYCLE[state] or step is _INITIALIZE: ...",
    ),
    Mutation(
        ("LIFE-14", "LIFE-15", "LIFE-13", "CAP-3"),
        "mcp_core/protocol/connection/_admission.py::may_request",
        "if row is not None and not is_declared(peer.capabilities, row.needs): ...",
        "if row is None and not peer.capabilities: ...",
    ),
    Mutation(
        ("LIFE-16", "CXL-4"),
        "mcp_core/protocol/connection/_requests.py::OutgoingRequests.cancel",
        "if call is None or call.token is NEGOTIATION: ...",
        "if call is None: ...",
    ),
    Mutation(
        ("LIFE-17",),
        "mcp_core/protocol/connection/_requests.py::OutgoingRequests.fail_all",
        "self.table.clear()\nreturn lost",
        "self.table.clear()\nreturn []",
    ),
    Mutation(
        ("LIFE-21",),
        "mcp_core/client/_calls.py::_TIMEOUT",
        "_TIMEOUT: Final = 60.0",
        "_TIMEOUT: Final = None",
    ),
    Mutation(
        ("LIFE-22",),
        "mcp_core/client/_calls.py::PendingCall.__init__",
        '_check_seconds("timeout", options.get("timeout", _TIMEOUT))',
        "_TIMEOUT",
    ),
    Mutation(
        ("LIFE-23",),
        "mcp_core/client/_calls.py::PendingCall._set_deadline",
        "total_deadline < quiet_deadline",
        "total_deadline > quiet_deadline",
    ),
    Mutation(
        ("LIFE-24",),
        "mcp_core/protocol/connection/_negotiation.py::VersionNegotiation.advance",
        "self.deadline = now + request.timeout",
        "pass",
    ),
    # Revisions
    Mutation(
        ("VER-1", "VER-6"),
        "mcp_core/protocol/connection/_admission.py::_request_peer",
        '{"supported": config.versions, "requested": version}',
        '{"supported": config.versions}',
    ),
    Mutation(
        ("VER-2",),
        "mcp_core/protocol/connection/_negotiation.py::_probe",
        "tried.count(mutual) < 2",
        "tried.count(mutual) < 0",
    ),
    Mutation(
        ("VER-3", "VER-5"),
        "mcp_core/protocol/connection/_builtin.py::_discover",
        "supported_versions=config.versions",
        "supported_versions=[peer.dialect.version]",
    ),
    Mutation(
        ("VER-9", "VER-14"),
        "mcp_core/protocol/connection/_admission.py::admit",
        (
            "meta is not None\n"
            "and (meta.protocol_version is not None or meta.client_capabilities is not None)\n"
            "and role is _SERVER"
        ),
        (
            "meta is not None\n"
            "and (meta.protocol_version is not None or meta.client_capabilities is not None)\n"
            "and role is _SERVER and session_peer is None"
        ),
    ),
    Mutation(
        ("VER-12",),
        "mcp_core/protocol/revisions/_config.py::_EXTENSION",
        r'rf"{META_LABEL}(?:\.{META_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"',
        r'rf"{META_LABEL}(?:\.{META_LABEL})*/?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"',
    ),
    Mutation(
        ("VER-13",),
        "mcp_core/protocol/revisions/_config.py::_ConfigByDialect.__missing__",
        "row.to in (role, None)",
        "row.to is role.other",
    ),
    Mutation(
        ("VER-15",),
        "mcp_core/protocol/connection/_admission.py::_session_peer",
        (
            "RequestRejected(\n"
            "    Fault.INVALID_PARAMS,\n"
            '    "the request\'s _meta must have io.modelcontextprotocol/protocolVersion and "\n'
            '    "io.modelcontextprotocol/clientCapabilities",\n'
            '    {"supported": config.versions},\n'
            "    dialect=config.dialects[0],\n"
            "    may_respond=role is _SERVER,\n"
            ")"
        ),
        (
            "RequestRejected(\n"
            "    Fault.INVALID_PARAMS,\n"
            '    "the request\'s _meta must have io.modelcontextprotocol/protocolVersion and "\n'
            '    "io.modelcontextprotocol/clientCapabilities",\n'
            "    dialect=config.dialects[0],\n"
            "    may_respond=role is _SERVER,\n"
            ")"
        ),
    ),
    Mutation(
        ("VER-16",),
        "mcp_core/protocol/connection/_negotiation.py::negotiate_version",
        "if not known_peer.dialect.stateful:\n    return known_peer",
        "",
    ),
    Mutation(
        ("VER-17",),
        "mcp_core/protocol/connection/_negotiation.py::_probe",
        "if newest_common(config.stateful, supported) is not None: ...",
        "if supported is None: ...",
    ),
    Mutation(
        ("VER-18",),
        "mcp_core/protocol/connection/_negotiation.py::_discovered_peer",
        "if newest_common(config.stateful, discovery.supported_versions) is not None: ...",
        "if discovery is None: ...",
    ),
    Mutation(
        ("VER-19",),
        "mcp_core/protocol/revisions/_dialects.py::newest_common",
        "(dialect for dialect in dialects if dialect.version in offered)",
        "(dialect for dialect in dialects if dialect.version <= max(offered, default=''))",
    ),
    # Capabilities
    Mutation(
        ("CAP-1",),
        "mcp_core/types/_revisions.py::GATES",
        'Gate(_base.ClientCapabilities, "elicitation", C)',
        'Gate(_base.ClientCapabilities, "elicitation", D)',
    ),
    Mutation(
        ("CAP-2",),
        "mcp_core/types/_revisions.py::GATES",
        'Gate(_base.RootsCapability, "list_changed", None, E)',
        'Gate(_base.RootsCapability, "list_changed", A)',
    ),
    Mutation(
        ("CAP-4",),
        "mcp_core/protocol/revisions/_dialects.py::_MODERN_CODES",
        "Fault.MISSING_CAPABILITY: -32021",
        "Fault.MISSING_CAPABILITY: -32602",
    ),
    Mutation(
        ("CAP-6", "CAP-7"),
        "mcp_core/protocol/revisions/_capabilities.py::supported_methods",
        "is_declared(capabilities, row.needs)",
        "capabilities",
    ),
    Mutation(
        ("CAP-8", "TSK-2", "TSK-3"),
        "mcp_core/protocol/connection/_admission.py::may_become_task",
        "if not is_declared(peer.capabilities, row.task_needs): ...",
        "if not is_declared(peer.capabilities, row.task_needs[:1]): ...",
    ),
    Mutation(
        ("CAP-9",),
        "mcp_core/protocol/revisions/_capabilities.py::is_declared",
        "if member is None or member is False: ...",
        "if not member: ...",
    ),
    Mutation(
        ("CAP-10",),
        "mcp_core/protocol/input_requests/_kinds.py::_needs",
        'elif is_declared(capabilities, (*needs, "url")): ...',
        'elif is_declared(capabilities, (*needs, "form")): ...',
    ),
    # Ping
    Mutation(
        ("PING-1", "PING-2"),
        "mcp_core/protocol/connection/_builtin.py::BUILTIN_RESULTS",
        '"ping": _ping,',
        "",
    ),
    Mutation(
        ("PING-3", "PING-4"),
        "mcp_core/protocol/connection/_keep_alive.py::KeepAlive.due",
        "if self._ping_sent: ...",
        "if not self._interval: ...",
    ),
    Mutation(
        ("PING-5",),
        "mcp_core/protocol/revisions/_methods.py::METHODS",
        'Method("ping", BOTH, t.PingParams, t.EmptyResult, until=R_2026_07_28, step=Step.PING)',
        'Method("ping", BOTH, t.PingParams, t.EmptyResult, step=Step.PING)',
    ),
    # Cancellation
    Mutation(
        ("CXL-1",),
        "mcp_core/protocol/connection/_requests.py::OutgoingRequests.cancel",
        "t.CancelledParams(request_id=id, reason=reason)",
        "t.CancelledParams(request_id=id)",
    ),
    Mutation(
        ("CXL-2", "CXL-3", "CXL-13"),
        "mcp_core/protocol/connection/_requests.py::OutgoingRequests.cancel",
        "del self.table[id]",
        "",
    ),
    Mutation(
        ("CXL-6",),
        "mcp_core/protocol/connection/_requests.py::IncomingRequests.get_unanswered",
        "if request.phase in _UNANSWERED: ...",
        "if request.phase: ...",
    ),
    Mutation(
        ("CXL-7",),
        "mcp_core/protocol/connection/_builtin.py::progress_notification",
        (
            "request is None\n"
            "or request.progress_token is None\n"
            "or next_phase(request.phase, _REPORT) is None"
        ),
        "request is None\nor request.progress_token is None",
    ),
    Mutation(
        ("CXL-8",),
        "mcp_core/protocol/connection/_requests.py::IncomingRequests.cancel",
        "if request is None or next_phase(request.phase, RequestAction.CANCEL) is None: ...",
        "if request is None: ...",
    ),
    Mutation(
        ("CXL-9", "CXL-10"),
        "mcp_core/protocol/connection/_connection.py::Connection._handle_response",
        "if known is None: ...",
        "if known is None:\n    self._emit_rejected('unknown id')\n    return",
    ),
    Mutation(
        ("CXL-11",),
        "mcp_core/protocol/connection/_connection.py::Connection._handle_notification",
        "InvalidPayload",
        "RecursionError",
    ),
    Mutation(
        ("CXL-17",),
        "mcp_core/protocol/connection/_requests.py::OutgoingRequests.end_long_lived",
        "call.row is None or not call.row.long_lived",
        "call.row is None or call.row.long_lived",
    ),
    Mutation(
        ("CXL-18",),
        "mcp_core/protocol/connection/_connection.py::Connection._on_cancelled",
        "self._outgoing.cancel_related(id)",
        "",
    ),
    # Progress
    Mutation(
        ("PROG-1",),
        "mcp_core/types/_revisions.py::GATES",
        'Gate(_lifecycle.ProgressParams, "message", B)',
        'Gate(_lifecycle.ProgressParams, "message", C)',
    ),
    Mutation(
        ("PROG-2",),
        "mcp_core/protocol/connection/_connection.py::Connection.send_request",
        "id if progress else None",
        "1 if progress else None",
    ),
    Mutation(
        ("PROG-3", "PROG-11"),
        "mcp_core/protocol/connection/_builtin.py::progress_notification",
        (
            "request is None\n"
            "or request.progress_token is None\n"
            "or next_phase(request.phase, _REPORT) is None"
        ),
        "request is None\nor next_phase(request.phase, _REPORT) is None",
    ),
    Mutation(
        ("PROG-4",),
        "mcp_core/protocol/connection/_builtin.py::progress_notification",
        "progress <= request.progress",
        "progress < request.progress",
    ),
    Mutation(
        ("PROG-5",),
        "mcp_core/protocol/connection/_connection.py::Connection",
        "self._outbox.put(response)\ndel self._incoming.table[id]",
        "self._outbox.put(response)",
    ),
    Mutation(
        ("PROG-6",),
        "mcp_core/protocol/connection/_builtin.py::task_progress",
        'request.dialect_config.dialect.tasks != "requested"',
        'request.dialect_config.dialect.tasks == "requested"',
    ),
    Mutation(
        ("PROG-8",),
        "mcp_core/protocol/revisions/_methods.py::METHODS",
        'Method("notifications/progress", C, t.ProgressParams, since=R_2026_07_28)',
        'Method("notifications/progress", BOTH, t.ProgressParams, since=R_2026_07_28)',
    ),
    Mutation(
        ("PROG-13",),
        "mcp_core/protocol/connection/_requests.py::OutgoingRequests.progress_event",
        "if not call.wants_progress: ...",
        "if False: ...",
    ),
    # Log messages
    Mutation(
        ("LOG-1",),
        "mcp_core/protocol/connection/_admission.py::may_notify",
        "if not config.declares(row.needs): ...",
        "if config is None: ...",
    ),
    Mutation(
        ("LOG-2",),
        "mcp_core/protocol/connection/_builtin.py::log_notification",
        "t.LoggingMessageParams(level=level, data=data, logger=logger, meta=meta)",
        "t.LoggingMessageParams(level=level, data=data, meta=meta)",
    ),
    Mutation(
        ("LOG-3",),
        "mcp_core/protocol/connection/_builtin.py::_set_level",
        "replace(peer, log_level=params.level)",
        "peer",
    ),
    Mutation(
        ("LOG-4",),
        "mcp_core/protocol/revisions/_dialects.py::Dialect.log_level",
        'log_level: t.LoggingLevel | None = "info"',
        'log_level: t.LoggingLevel | None = "debug"',
    ),
    Mutation(
        ("LOG-6",),
        "mcp_core/protocol/revisions/_methods.py::METHODS",
        (
            'Method("logging/setLevel", S, t.SetLevelParams, t.EmptyResult, until=R_2026_07_28,\n'
            'needs=("logging",))'
        ),
        'Method("logging/setLevel", S, t.SetLevelParams, t.EmptyResult,\nneeds=("logging",))',
    ),
    Mutation(
        ("LOG-7",),
        "mcp_core/protocol/revisions/_dialects.py::DIALECTS",
        "log_level=None,",
        'log_level="info",',
    ),
    Mutation(
        ("LOG-8",),
        "mcp_core/protocol/connection/_requests.py::IncomingRequests.log_recipient",
        "return session_peer if same_session else request.peer",
        "return session_peer",
    ),
    Mutation(
        ("LOG-9",),
        "mcp_core/protocol/connection/_connection.py::Connection.send_log",
        "log_notification(peer, level, data, logger, related, meta)",
        "log_notification(peer, level, data, logger, None, meta)",
    ),
    # Pagination, completion
    Mutation(
        ("PAGE-1", "PAGE-2"),
        "mcp_core/client/_calls.py::PagedList.add_page",
        "self._cursor = page.next_cursor",
        "self._cursor = None",
    ),
    Mutation(
        ("PAGE-3",),
        "mcp_core/client/_calls.py::PagedList.params",
        'return None if self._cursor is None else {"cursor": self._cursor}',
        'return None if self._cursor is None else {"cursor": self._cursor.strip()}',
    ),
    Mutation(
        ("PAGE-4",),
        "mcp_core/client/_calls.py::PagedList.add_page",
        "self._cursor is None",
        "not self._cursor",
    ),
    Mutation(
        ("COMP-3",),
        "mcp_core/registry/entries/_completion.py::_MAX_VALUES",
        "_MAX_VALUES: Final = 100",
        "_MAX_VALUES: Final = 101",
    ),
    Mutation(
        ("COMP-4",),
        "mcp_core/registry/entries/_completion.py::Completers.prepare",
        "dialect.codes[Fault.INVALID_PARAMS]",
        "dialect.codes[Fault.INTERNAL]",
    ),
    Mutation(
        ("COMP-5",),
        "mcp_core/registry/entries/_completion.py::_make_result",
        "sent = list(completion.values[:_MAX_VALUES])",
        "sent = sorted(completion.values[:_MAX_VALUES])",
    ),
    # Cache
    Mutation(
        ("CACHE-1",),
        "mcp_core/protocol/revisions/_dialects.py::DIALECTS",
        '(("ttl_ms", 0), ("cache_scope", "private"))',
        '(("ttl_ms", 0),)',
    ),
    Mutation(
        ("CACHE-4",),
        "mcp_core/client/_cache.py::_key",
        "any(name in params for name in _INPUT_MEMBERS)",
        "not params",
    ),
    Mutation(
        ("CACHE-5",),
        "mcp_core/client/_cache.py::ResultCache.put",
        "now + min(result.ttl_ms, _MAX_TTL) / 1000",
        "now + min(result.ttl_ms, _MAX_TTL)",
    ),
    Mutation(
        ("CACHE-10",),
        "mcp_core/client/_cache.py::ResultCache.invalidate",
        "for method in methods:\n    if uri is None: ...",
        "for method in methods[:0]:\n    if uri is None: ...",
    ),
    # Tasks
    Mutation(
        ("TSK-1",),
        "mcp_core/registry/_server.py::Server._make_config",
        "tasks=_TASKS_CAPABILITY if self._lookup.has_tasks else None",
        "tasks=None",
    ),
    Mutation(
        ("TSK-4",),
        "mcp_core/registry/tasks/_options.py::check_task",
        "if wanted and served: ...",
        "if wanted and not served: ...",
    ),
    Mutation(
        ("TSK-5",),
        "mcp_core/registry/tasks/_options.py::check_task",
        "raise _error(request, Fault.METHOD_NOT_FOUND, text)",
        "raise _error(request, Fault.INVALID_PARAMS, text)",
    ),
    Mutation(
        ("TSK-7",),
        "mcp_core/runtime/tasks/_running.py::TaskJob.detaches_at_once",
        'options.detach == 0 or self.request.peer.dialect.tasks == "requested"',
        "options.detach == 0",
    ),
    Mutation(
        ("TSK-10", "TX-23"),
        "mcp_core/tasks/_record.py::new_task_id",
        "return entropy(_ID_SIZE).hex()",
        "return bytes(_ID_SIZE).hex()",
    ),
    Mutation(
        ("TSK-11",),
        "mcp_core/tasks/_states.py::TRANSITIONS",
        '"cancelled": {},',
        '"cancelled": {Complete: "completed"},',
    ),
    Mutation(
        ("TSK-12", "TSK-22"),
        "mcp_core/runtime/tasks/_records.py::TaskRecords.get",
        "if record is not None and self._runtime.wall_time() >= record.expires: ...",
        "if record is not None and self._runtime.wall_time() < 0: ...",
    ),
    Mutation(
        ("TSK-14",),
        "mcp_core/tasks/_views.py::task_outcome",
        "if record.error is not None:\n    return record.error",
        "if record.error is not None:\n    return t.ErrorData(INTERNAL_ERROR, '')",
    ),
    Mutation(
        ("TSK-15",),
        "mcp_core/runtime/tasks/_requests.py::TaskRequestJob._result",
        "if record.ended:\n    return task_outcome(record)",
        "if not record.open_requests:\n    return task_outcome(record)",
    ),
    Mutation(
        ("TSK-17", "PROG-6"),
        "mcp_core/runtime/tasks/_channel.py::TaskChannel.__init__",
        "self._progress = service.conn.task_progress(request_id, task_id)",
        "self._progress = None",
    ),
    Mutation(
        ("TSK-17",),
        "mcp_core/runtime/tasks/_requests.py::TaskQuestion.__init__",
        'self.meta = {t.META_RELATED_TASK: {"taskId": task.id}}',
        "self.meta = None",
    ),
    Mutation(
        ("TSK-19",),
        "mcp_core/runtime/tasks/_notifier.py::TaskNotifier._send",
        "if followed.seen == seen: ...",
        "if followed.seen != seen: ...",
    ),
    Mutation(
        ("TSK-20",),
        "mcp_core/runtime/tasks/_requests.py::TaskRequestJob._list",
        "next_cursor=shown[-1].id if len(page) > len(shown) else None,",
        "next_cursor=None,",
    ),
    Mutation(
        ("TSK-21",),
        "mcp_core/runtime/tasks/_requests.py::TaskRequestJob._not_cancelled",
        'if self.request.peer.dialect.tasks == "requested": ...',
        'if self.request.peer.dialect.tasks == "none": ...',
    ),
    Mutation(
        ("TSK-23", "TX-11"),
        "mcp_core/tasks/_views.py::shown_status",
        'if record.is_error and dialect.tasks == "requested": ...',
        'if record.is_error and dialect.tasks == "extension": ...',
    ),
    Mutation(
        ("TSK-24", "TX-19", "TX-23"),
        "mcp_core/runtime/_service.py::Service.task_owner",
        "owner = sha256(user.encode()).hexdigest()",
        'owner = ""',
    ),
    Mutation(
        ("TSK-24",),
        "mcp_core/runtime/tasks/_requests.py::TaskRequestJob._list",
        "if not owner and not service.runtime.single_peer: ...",
        "if owner and not service.runtime.single_peer: ...",
    ),
    Mutation(
        ("TSK-25",),
        "mcp_core/runtime/tasks/_memory_store.py::MemoryTaskStore.create",
        "if used.tasks >= limits.per_key: ...",
        "if used.tasks > limits.per_key: ...",
    ),
    Mutation(
        ("TSK-26",),
        "mcp_core/runtime/tasks/_service.py::TaskService.claim_question",
        "if asked is not None and asked.reachable: ...",
        "if asked is not None: ...",
    ),
    Mutation(
        ("TSK-27",),
        "mcp_core/tasks/_views.py::create_task_result",
        "None if immediate_response is None else {t.META_IMMEDIATE_RESPONSE: immediate_response}",
        "None",
    ),
    Mutation(
        ("TX-2",),
        "mcp_core/registry/tasks/_options.py::check_task",
        "if is_declared(request.peer.capabilities, TASKS): ...",
        "if options is not None: ...",
    ),
    Mutation(
        ("TX-5",),
        "mcp_core/registry/tasks/_options.py::check_task",
        "raise _error(request, Fault.MISSING_CAPABILITY, text, missing)",
        "raise _error(request, Fault.MISSING_CAPABILITY, text)",
    ),
    Mutation(
        ("TX-6",),
        "mcp_core/tasks/_views.py::_TASK",
        '_TASK: Final = "task"',
        '_TASK: Final = "complete"',
    ),
    Mutation(
        ("TX-7",),
        "mcp_core/runtime/tasks/_service.py::TaskService.create",
        "limit = await self.records.create(record)",
        "limit = None\nself.runtime.start_soon(partial(self.records.create, record))",
    ),
    Mutation(
        ("TX-8",),
        "mcp_core/runtime/tasks/_running.py::TaskJob._before_handler",
        "if self.detaches_at_once: ...",
        "if options is not None: ...",
    ),
    Mutation(
        ("TX-9",),
        "mcp_core/tasks/_views.py::poll_interval",
        "return min(max(tenth, limits.poll_interval), limits.max_poll_interval)",
        "return min(tenth, limits.max_poll_interval)",
    ),
    Mutation(
        ("TX-10",),
        "mcp_core/tasks/_views.py::_outcome",
        '"input_requests": record.open_requests or None,',
        '"input_requests": None,',
    ),
    Mutation(
        ("TX-12",),
        "mcp_core/tasks/_states.py::_request_input",
        "if action.key in record.open_requests or action.key in record.responses: ...",
        "if action.key in record.open_requests: ...",
    ),
    Mutation(
        ("TX-14",),
        "mcp_core/tasks/_states.py::_receive_response",
        "if action.key not in record.open_requests:\n    return record",
        "if action.key not in record.open_requests:\n    raise TaskExpired",
    ),
    Mutation(
        ("TSK-6",),
        "mcp_core/types/_tools.py::TaskMetadata.ttl",
        "ttl: _Milliseconds | UnsetType | None = UNSET",
        "ttl: int | UnsetType | None = UNSET",
    ),
    Mutation(
        ("TSK-8",),
        "mcp_core/protocol/connection/_admission.py::_runs_as_task",
        'return dialect.tasks == "requested" and bool(row.task_needs) and config.declares(row.task_needs)',
        "return bool(row.task_needs)",
    ),
    # Tasks at the client
    Mutation(
        ("TSK-4",),
        "mcp_core/runtime/_client.py::AbstractClient._require_support",
        'if support.get(name) not in ("optional", "required"): ...',
        'if support.get(name) == "forbidden": ...',
    ),
    Mutation(
        ("TSK-5",),
        "mcp_core/runtime/client_tasks/_support.py::must_be_task",
        '"required"',
        '"optional"',
    ),
    Mutation(
        ("TSK-3",),
        "mcp_core/runtime/client_tasks/_support.py::runs_tasks",
        'peer.dialect.tasks == "requested" and is_declared(peer.capabilities, _TASK_CALLS)',
        'peer.dialect.tasks == "requested"',
    ),
    Mutation(
        ("TSK-11",),
        "mcp_core/runtime/client_tasks/_task.py::ClientTask.update",
        "self.ended",
        "self.ended and task.status in FINAL_STATUSES",
    ),
    Mutation(
        ("TSK-13", "TX-24"),
        "mcp_core/runtime/client_tasks/_poller.py::TaskPoller._step",
        "yield self._pause(task, self._poll_interval(task))",
        "yield self._pause(task, 0.05)",
    ),
    Mutation(
        ("TX-24",),
        "mcp_core/runtime/client_tasks/_poller.py::TaskPoller._pause",
        "if left <= 0: ...",
        "if left <= -1e9: ...",
    ),
    Mutation(
        ("TSK-16",),
        "mcp_core/runtime/client_tasks/_poller.py::TaskPoller._step",
        'task.ended or task.status == "input_required"',
        "task.ended",
    ),
    Mutation(
        ("TSK-17",),
        "mcp_core/runtime/_client_callbacks.py::ServerInitiatedRequests._send_response",
        "self._conn.send_result(event.id, _related(event, result))",
        "self._conn.send_result(event.id, result)",
    ),
    Mutation(
        ("TSK-18",),
        "mcp_core/runtime/client_tasks/_poller.py::TaskPoller.refresh",
        'yield "tasks/get", t.GetTaskParams(task_id=task.id)',
        'yield "tasks/get", {"taskId": task.id, "_meta": {t.META_RELATED_TASK: {"taskId": task.id}}}',
    ),
    Mutation(
        ("TSK-19",),
        "mcp_core/runtime/client_tasks/_poller.py::TaskPoller.notify",
        "if task is not None and not task.knows(params):\n    task.wake()",
        "if task is not None:\n    task.update(params)\n    task.wake()",
    ),
    Mutation(
        ("TSK-20",),
        "mcp_core/runtime/_client.py::AbstractClient.list_tasks",
        'self._pages("tasks/list", "tasks", options)',
        'self._once("tasks/list", None)',
    ),
    Mutation(
        ("TSK-27",),
        "mcp_core/runtime/client_tasks/_poller.py::TaskPoller._created_task",
        "meanwhile if isinstance(meanwhile, str) else None",
        "None",
    ),
    Mutation(
        ("CXL-5", "TX-18"),
        "mcp_core/runtime/client_tasks/_poller.py::TaskPoller.follow_own",
        "self._cancel_soon(task)",
        "pass",
    ),
    Mutation(
        ("PROG-6",),
        "mcp_core/protocol/connection/_requests.py::OutgoingRequests.response_event",
        "self.tasks[id] = call",
        "pass",
    ),
    Mutation(
        ("TX-3",),
        "mcp_core/runtime/_client.py::AbstractClient._tool_call",
        "if isinstance(result, TaskCreated) or result.is_error: ...",
        "if not isinstance(result, TaskCreated) and result.is_error: ...",
    ),
    Mutation(
        ("TX-9",),
        "mcp_core/runtime/client_tasks/_task.py::ClientTask.update",
        "self.interval = max(seconds, _MIN_INTERVAL)",
        "self.interval = min(self.interval, max(seconds, _MIN_INTERVAL))",
    ),
    Mutation(
        ("TX-12",),
        "mcp_core/runtime/client_tasks/_poller.py::TaskPoller._answer",
        "elif known != digest: ...",
        "elif known == b'': ...",
    ),
    Mutation(
        ("TX-13", "TX-15"),
        "mcp_core/runtime/client_tasks/_poller.py::TaskPoller._answer",
        "task.answered |= digests",
        "pass",
    ),
    Mutation(
        ("TX-16",),
        "mcp_core/runtime/client_tasks/_poller.py::TaskPoller._answer",
        "check_input_request(request, config.capabilities)",
        "",
    ),
    Mutation(
        ("TX-17",),
        "mcp_core/runtime/client_tasks/_poller.py::TaskPoller.cancel",
        "task.update(result)\ntask.wake()",
        'task.status = "cancelled"\ntask.wake()',
    ),
    Mutation(
        ("TX-1",),
        "mcp_core/protocol/revisions/_capabilities.py::with_tasks",
        "replace(capabilities, tasks=declared, extensions=extensions)",
        "replace(capabilities, tasks=declared, extensions=extensions, experimental=extensions)",
    ),
    Mutation(
        ("TX-4",),
        "mcp_core/protocol/messages/_responses.py::_other_event",
        "if not call.may_become_task: ...",
        "if call.row is None: ...",
    ),
    Mutation(
        ("TX-20",),
        "mcp_core/protocol/subscriptions/_server.py::_build_notification",
        "params = replace(status, meta=meta)",
        "params = status",
    ),
    Mutation(
        ("TX-21",),
        "mcp_core/protocol/revisions/_methods.py::METHODS",
        'needs=TASKS, asks=TASKS, name_field="task_id", non_idempotent=True',
        "needs=TASKS, asks=TASKS, non_idempotent=True",
    ),
    Mutation(
        ("TX-22",),
        "mcp_core/types/_revisions.py::GATES",
        'Gate(_base.ServerCapabilities, "tasks", D, E)',
        'Gate(_base.ServerCapabilities, "tasks", D)',
    ),
    # Input requests
    Mutation(
        ("MRTR-2",),
        "mcp_core/protocol/input_requests/_rounds.py::ServerRoundTrips._find_obstacle",
        "if not request.method.input_ok:\n    return _cannot_ask(request.method)",
        "",
    ),
    Mutation(
        ("MRTR-3",),
        "mcp_core/protocol/input_requests/_rounds.py::ServerRoundTrips._check_returned",
        "if not questions and returned.request_state is None: ...",
        "if returned is None: ...",
    ),
    Mutation(
        ("MRTR-4",),
        "mcp_core/protocol/input_requests/_rounds.py::ServerRoundTrips.input_required_result",
        (
            "replace(\n"
            "    returned,\n"
            "    input_requests={\n"
            "        key: without_undeclared_context(question, peer)\n"
            "        for key, question in questions.items()\n"
            "    }\n"
            "    or None,\n"
            "    request_state=state,\n"
            '    result_type="input_required",\n'
            ")"
        ),
        (
            "replace(\n"
            "    returned,\n"
            "    input_requests={\n"
            "        key: without_undeclared_context(question, peer)\n"
            "        for key, question in questions.items()\n"
            "    }\n"
            "    or None,\n"
            "    request_state=None,\n"
            '    result_type="input_required",\n'
            ")"
        ),
    ),
    Mutation(
        ("MRTR-5", "ELIC-3"),
        "mcp_core/protocol/input_requests/_kinds.py::missing_capabilities",
        "if not is_declared(capabilities, path): ...",
        "if capabilities is None: ...",
    ),
    Mutation(
        ("MRTR-6",),
        "mcp_core/protocol/input_requests/_rounds.py::ClientRoundTrips.set_responses",
        (
            "raise LocalProtocolError(\n"
            '    f"{question.method} has no answer, so the request cannot be retried"\n'
            ")"
        ),
        (
            "continue\n"
            "raise LocalProtocolError(\n"
            '    f"{question.method} has no answer, so the request cannot be retried"\n'
            ")"
        ),
    ),
    Mutation(
        ("MRTR-7", "MRTR-9"),
        "mcp_core/protocol/input_requests/_rounds.py::ClientRoundTrips.begin_round",
        "state",
        "state and state.strip()",
    ),
    Mutation(
        ("MRTR-8",),
        "mcp_core/protocol/input_requests/_rounds.py::ClientRoundTrips.set_responses",
        "if value is not None:\n    params[name] = value",
        "params[name] = value",
    ),
    Mutation(
        ("MRTR-12", "MRTR-17"),
        "mcp_core/protocol/input_requests/_rounds.py::ClientRoundTrips.begin_round",
        "self._rounds",
        "2",
    ),
    Mutation(
        ("MRTR-13",),
        "mcp_core/protocol/input_requests/_request_state.py::KeyRing.open",
        (
            "not hmac.compare_digest(\n"
            "    signature, _base64url(_hmac(key, state.encode()[: -len(signature) - 1]))\n"
            ")"
        ),
        (
            "signature and hmac.compare_digest(b'',\n"
            "    signature, _base64url(_hmac(key, state.encode()[: -len(signature) - 1]))\n"
            ")"
        ),
    ),
    Mutation(
        ("MRTR-14",),
        "mcp_core/protocol/input_requests/_request_state.py::KeyRing.open",
        "if body.digest != binding.digest: ...",
        "if body.digest is binding: ...",
    ),
    Mutation(
        ("AU-7",),
        "mcp_core/protocol/input_requests/_request_state.py::KeyRing.open",
        "if body.principal != _principal_digest(key, binding.principal): ...",
        "if body.principal is None: ...",
    ),
    Mutation(
        ("MRTR-16", "SAMP-13"),
        "mcp_core/protocol/input_requests/_kinds.py::response_to_error",
        "raise error",
        "return t.ElicitResult(action='cancel')",
    ),
    Mutation(
        ("MRTR-18",),
        "mcp_core/protocol/input_requests/_rounds.py::ServerRoundTrips._restore",
        "self._keys_to_keep.update(content.responses)",
        "",
    ),
    # Subscriptions
    Mutation(
        ("SUB-1",),
        "mcp_core/protocol/subscriptions/_server.py::to_filter",
        "prompts_list_changed=_PROMPTS in wanted or None",
        "prompts_list_changed=_TOOLS in wanted or None",
    ),
    Mutation(
        ("SUB-2",),
        "mcp_core/protocol/subscriptions/_server.py::SubscriptionTable.publish",
        "subscription.covered(change)",
        "[change]",
    ),
    Mutation(
        ("SUB-3",),
        "mcp_core/protocol/subscriptions/_server.py::SubscriptionTable.listen",
        "to_filter(wanted)",
        "subscription_filter",
    ),
    Mutation(
        ("SUB-6",),
        "mcp_core/protocol/subscriptions/_client.py::ClientSubscription.acknowledged",
        "self.honoured = tuple(change for change in self.wanted if change in honoured)",
        "self.honoured = self.wanted",
    ),
    Mutation(
        ("SUB-8", "DEC-1"),
        "mcp_core/protocol/subscriptions/_server.py::SubscriptionTable.end_all",
        "t.ListenResult(meta=_subscription_meta(id)),",
        "t.ListenResult(),",
    ),
    Mutation(
        ("SUB-16",),
        "mcp_core/protocol/subscriptions/_server.py::SubscriptionTable.check_listen",
        "if self.listen_count >= limit: ...",
        "if self.listen_count >= limit or not changes_in_filter(subscription_filter): ...",
    ),
    Mutation(
        ("TOOL-23", "RES-14", "PRM-5"),
        "mcp_core/protocol/subscriptions/_server.py::Change.method",
        'return f"notifications/{self.list}/list_changed"',
        'return f"notifications/{self.list}/listChanged"',
    ),
    Mutation(
        ("RES-4", "RES-5"),
        "mcp_core/protocol/subscriptions/_server.py::SubscriptionTable.unsubscribe",
        "del session.wanted[change]",
        "",
    ),
    # Tools, content, resources, prompts
    Mutation(
        ("TOOL-2", "TOOL-7"),
        "mcp_core/types/_revisions.py::GATES",
        'Gate(_tools.Tool, "annotations", B)',
        'Gate(_tools.Tool, "annotations", C)',
    ),
    Mutation(
        ("TOOL-4",),
        "mcp_core/registry/_lookup.py::RequestLookup._page",
        "if page is None: ...",
        "if page is None or request.peer.capabilities.sampling is not None: ...",
    ),
    Mutation(
        ("TOOL-5",),
        "mcp_core/registry/_pages.py::ListPages._encode_pages",
        "entries = list(self._entries[method].items())",
        "entries = sorted(self._entries[method].items())",
    ),
    Mutation(
        ("TOOL-6",),
        "mcp_core/registry/entries/_tools.py::_use_input_schema",
        "if not schema.describes_object: ...",
        "if schema is None: ...",
    ),
    Mutation(
        ("TOOL-8", "TOOL-9", "DEC-8"),
        "mcp_core/registry/functions/_output.py::Output._structured",
        """return Raw(b'{"result":%b}' % data)""",
        "return Raw(data)",
    ),
    Mutation(
        ("TOOL-10",),
        "mcp_core/registry/functions/_output.py::Output._adapt_result",
        "elif self._schema is not None and not result.is_error: ...",
        "elif self._schema is None and not result.is_error: ...",
    ),
    Mutation(
        ("TOOL-12", "TOOL-13"),
        "mcp_core/registry/functions/_output.py::Output.result",
        "[TextContent(text)]",
        "[]",
    ),
    Mutation(
        ("TOOL-15",),
        "mcp_core/registry/entries/_tools.py::_error_result",
        "content=[TextContent(whole_text(text))], is_error=True",
        "content=[TextContent(whole_text(text))]",
    ),
    Mutation(
        ("TOOL-16", "DEC-7"),
        "mcp_core/registry/entries/_tools.py::ToolEntry.prepare",
        (
            "dialect.tool_argument_errors_are_results and (\n"
            '    task is None or dialect.tasks == "extension"\n'
            ")"
        ),
        'task is None or dialect.tasks == "extension"',
    ),
    Mutation(
        ("TOOL-19",),
        "mcp_core/registry/_validation.py::_TOOL_NAME",
        'r"[A-Za-z0-9_.-]{1,128}"',
        'r"[A-Za-z0-9_.-]{1,64}"',
    ),
    Mutation(
        ("TOOL-22",),
        "mcp_core/types/_tools.py::Tool.display_name",
        "return self.title or (self.annotations and self.annotations.title) or self.name",
        "return self.title or self.name",
    ),
    Mutation(
        ("TOOL-24", "DEC-13"),
        "mcp_core/protocol/revisions/_methods.py::METHODS",
        'name_field="name", metered=True,',
        'name_field="name",',
    ),
    Mutation(
        ("CONT-1",),
        "mcp_core/types/_content.py::ResourceLink",
        'class ResourceLink(Resource, tag_field="type", tag="resource_link", kw_only=True): ...',
        'class ResourceLink(Resource, tag_field="type", tag="resourceLink", kw_only=True): ...',
    ),
    Mutation(
        ("CONT-2", "CONT-7"),
        "mcp_core/types/_revisions.py::GATES",
        "Gate(_content.ResourceLink, None, C)",
        "Gate(_content.ResourceLink, None, A)",
    ),
    Mutation(
        ("CONT-3",),
        "mcp_core/types/_content.py::SamplingContent",
        "TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent",
        "TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent | EmbeddedResource",
    ),
    Mutation(
        ("CONT-4",),
        "mcp_core/registry/functions/_content.py::_check_mime_type",
        "if not _MIME_TYPE.fullmatch(mime_type): ...",
        "if not mime_type: ...",
    ),
    Mutation(
        ("CONT-5",),
        "mcp_core/types/_revisions.py::GATES",
        'Gate(_base.Annotations, "last_modified", C)',
        'Gate(_base.Annotations, "last_modified", D)',
    ),
    Mutation(
        ("CONT-6",),
        "mcp_core/registry/entries/_resources.py::ResourceInvocation._as_contents",
        '"text/plain" if isinstance(value, str) else "application/json"',
        '"text/plain"',
    ),
    Mutation(
        ("CONT-8",),
        "mcp_core/registry/functions/_content.py::File.contents",
        "return ResourceContents(uri=self.uri, mime_type=self.mime_type, text=self.data)",
        "return ResourceContents(uri=self.uri, text=self.data)",
    ),
    Mutation(
        ("RES-1",),
        "mcp_core/registry/_server.py::Server._make_config",
        "ResourcesCapability(subscribe=self._subscribe, list_changed=listed)",
        "ResourcesCapability(list_changed=listed)",
    ),
    Mutation(
        ("RES-6",),
        "mcp_core/protocol/revisions/_methods.py::METHODS",
        (
            'Method("resources/subscribe", S, t.SubscribeParams, t.EmptyResult, until=R_2026_07_28,\n'
            'needs=("resources", "subscribe"))'
        ),
        (
            'Method("resources/subscribe", S, t.SubscribeParams, t.EmptyResult,\n'
            'needs=("resources", "subscribe"))'
        ),
    ),
    Mutation(
        ("RES-7", "ERR-2"),
        "mcp_core/protocol/revisions/_dialects.py::_CODES",
        "Fault.RESOURCE_NOT_FOUND: -32002",
        "Fault.RESOURCE_NOT_FOUND: -32602",
    ),
    Mutation(
        ("RES-8", "ERR-5"),
        "mcp_core/protocol/revisions/_dialects.py::_MODERN_CODES",
        "Fault.RESOURCE_NOT_FOUND: -32602,",
        "",
    ),
    Mutation(
        ("RES-11",),
        "mcp_core/registry/_validation.py::_URI",
        r'r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7f-\x9f\"<>\\^`{|}]*"',
        r'r"[A-Za-z0-9+.-]*:[^\x00-\x20\x7f-\x9f\"<>\\^`{|}]*"',
    ),
    Mutation(
        ("RES-12",),
        "mcp_core/urls/_uri_matcher.py::_find_part_error",
        'return "holds a drive letter" if _DRIVE.match(segment) else None',
        "return None",
    ),
    Mutation(
        ("PRM-3",),
        "mcp_core/registry/entries/_prompts.py::PromptInvocation.result",
        "messages=[_as_message(item) for item in values], description=self._description",
        "messages=[_as_message(item) for item in values]",
    ),
    Mutation(
        ("PRM-4",),
        "mcp_core/registry/entries/_prompts.py::PromptEntry.prepare",
        "raise McpError(dialect.codes[Fault.INVALID_PARAMS], str(exc)) from None",
        "raise McpError(dialect.codes[Fault.INTERNAL], str(exc)) from None",
    ),
    # What a client offers
    Mutation(
        ("SAMP-4",),
        "mcp_core/protocol/input_requests/_rounds.py::_message_in",
        "return replace(message, content=message.content[0])",
        "return message",
    ),
    Mutation(
        ("SAMP-5",),
        "mcp_core/protocol/input_requests/_kinds.py::_needs",
        'yield (*needs, "tools")',
        "yield needs",
    ),
    Mutation(
        ("SAMP-6",),
        "mcp_core/protocol/input_requests/_rounds.py::without_undeclared_context",
        'if is_declared(peer.capabilities, ("sampling", "context")): ...',
        'if is_declared(peer.capabilities, ("sampling",)): ...',
    ),
    Mutation(
        ("SAMP-7",),
        "mcp_core/protocol/input_requests/_kinds.py::_find_messages_error",
        "if results and len(results) != len(blocks): ...",
        "if results and not blocks: ...",
    ),
    Mutation(
        ("SAMP-8", "SAMP-9"),
        "mcp_core/protocol/input_requests/_kinds.py::_find_messages_error",
        "if sorted(results) != sorted(pending): ...",
        "if len(results) != len(pending): ...",
    ),
    Mutation(
        ("SAMP-12", "ERR-4"),
        "mcp_core/runtime/_client_callbacks.py::_REJECTED",
        "_REJECTED: Final = -1",
        "_REJECTED: Final = -2",
    ),
    Mutation(
        ("SAMP-16",),
        "mcp_core/registry/_sampling_tools.py::ToolSampling.ask",
        "self._round == self._max_rounds",
        "self._round > self._max_rounds",
    ),
    Mutation(
        ("ELIC-2",),
        "mcp_core/protocol/input_requests/_kinds.py::_needs",
        'yield (*needs, "url")',
        "yield needs",
    ),
    Mutation(
        ("ELIC-9",),
        "mcp_core/protocol/input_requests/_kinds.py::check_response",
        "answer = replace(answer, content=None)",
        "answer = replace(answer)",
    ),
    Mutation(
        ("ELIC-10",),
        "mcp_core/protocol/input_requests/_kinds.py::_find_content_error",
        "if name not in content: ...",
        "if not name: ...",
    ),
    Mutation(
        ("ELIC-11",),
        "mcp_core/runtime/_client_callbacks.py::_to_result",
        "content={**_defaults(request), **answer}",
        "content={**answer}",
    ),
    Mutation(
        ("ELIC-13",),
        "mcp_core/protocol/input_requests/_rounds.py::to_request",
        "params = replace(params, elicitation_id=entropy(16).hex())",
        "pass",
    ),
    Mutation(
        ("ELIC-17",),
        "mcp_core/types/_revisions.py::GATES",
        'Gate(_client.ElicitParams, "elicitation_id", D, E)',
        'Gate(_client.ElicitParams, "elicitation_id", D)',
    ),
    Mutation(
        ("ROOT-3",),
        "mcp_core/protocol/input_requests/_kinds.py::check_response",
        'if not root.uri.startswith("file://"): ...',
        "if not root.uri: ...",
    ),
    Mutation(
        ("ROOT-5",),
        "mcp_core/runtime/_client_callbacks.py::ServerInitiatedRequests._internal_error",
        "Fault.INTERNAL",
        "Fault.INVALID_PARAMS",
    ),
    # stdio
    Mutation(
        ("STDIO-1", "STDIO-6"),
        "mcp_core/protocol/jsonrpc/_framing.py::LineBuffer.next_line",
        "if end > start and chunk[end - 1] == _CR: ...",
        "if end < start: ...",
    ),
    Mutation(
        ("STDIO-10", "LIFE-18"),
        "mcp_trio/streams/_child.py::ChildProcess._terminate",
        "self._signal(signal.SIGTERM)",
        "self._signal(signal.SIGKILL)",
    ),
    # HTTP
    Mutation(
        ("HTTP-1", "HTTP-2"),
        "mcp_core/http/server/_checks.py::_origin",
        "403",
        "400",
    ),
    Mutation(
        ("HTTP-6",),
        "mcp_core/http/client/_streamable.py::_ACCEPT",
        'JSON + b", " + EVENT_STREAM',
        "JSON",
    ),
    Mutation(
        ("HTTP-7",),
        "mcp_core/http/server/_checks.py::_json",
        'ErrorResponse(415, "the body must be application/json, in UTF-8")',
        'ErrorResponse(400, "the body must be application/json, in UTF-8")',
    ),
    Mutation(
        ("HTTP-8",),
        "mcp_core/http/server/_exchange.py::Exchange._decide",
        '(status != 200 or self.reply_format != "sse")',
        "status != 200",
    ),
    Mutation(
        ("HTTP-9", "SHM-18"),
        "mcp_core/http/server/_endpoint.py::Endpoint._post",
        "400 if conversation.rejected else 202",
        "400 if conversation.rejected else 200",
    ),
    Mutation(
        ("HTTP-10",), "mcp_core/http/wire/_sse.py::SseDecoder._append_data", r'data += b"\n"', ""
    ),
    Mutation(
        ("HTTP-12",),
        "mcp_core/http/client/_operation.py::MessagePost.error_response",
        "_response_in(response.body, self.id)",
        "None",
    ),
    Mutation(
        ("SHL-2",),
        "mcp_core/http/server/_endpoint.py::Endpoint._post_in_session",
        "if not session.batches:\n    body = body.as_message()",
        "",
    ),
    Mutation(
        ("SHL-6",),
        "mcp_core/http/server/_exchange.py::Exchange.begin_stream",
        'self._actions.append(Body(encode_event(b"", id=id, retry=self.retry)))',
        'self._actions.append(Body(encode_event(b"", retry=self.retry)))',
    ),
    Mutation(
        ("SHL-7",),
        "mcp_core/http/server/_exchange.py::Exchange.end_for_reconnect",
        r'self._actions.append(Body(b"retry: %d\n\n" % retry))',
        "pass",
    ),
    Mutation(
        ("SHL-8",),
        "mcp_core/http/client/_reconnect.py::Reconnection.next_delay",
        "max(self._retry / 1000, _MIN_DELAY)",
        "max(self._retry / 100000, _MIN_DELAY)",
    ),
    Mutation(
        ("SHL-9",),
        "mcp_core/http/server/_session.py::Session",
        (
            "elif stream.long_lived or (\n"
            "    exchange.is_resumable and not stream.ended and (stream.messages or not stream.over)\n"
            "):\n"
            "    self._retain(stream)\n"
            "else:\n"
            "    self.forget(stream)"
        ),
        (
            "elif stream.long_lived or (\n"
            "    exchange.is_resumable and not stream.ended and (stream.messages or not stream.over)\n"
            "):\n"
            "    self._retain(stream)\n"
            "else:\n"
            "    self.finished = True"
        ),
    ),
    Mutation(
        ("CXL-16",),
        "mcp_core/protocol/revisions/_dialects.py::HttpRules.disconnect_cancels",
        "disconnect_cancels: bool = False",
        "disconnect_cancels: bool = True",
    ),
    Mutation(
        ("SHL-11",),
        "mcp_core/http/server/_checks.py::_accepts_events",
        'if accepts(parsed.headers.get(b"accept"), EVENT_STREAM): ...',
        "if parsed.headers: ...",
    ),
    Mutation(
        ("SHL-12", "SHL-13"),
        "mcp_core/http/server/_session.py::Session._message_stream",
        "if related is None or self.legacy_sse:\n    return self.standalone_stream",
        (
            "if related is None or self.legacy_sse:\n"
            "    return self.standalone_stream if self.legacy_sse else next(iter(self.stream_by_request.values()), self.standalone_stream)"
        ),
    ),
    Mutation(
        ("SHL-16", "SHL-17"),
        "mcp_core/http/server/_exchange.py::Exchange._take_messages",
        'id=b"%b-%d" % (name, number)',
        'id=b"0-%d" % number',
    ),
    Mutation(
        ("SHL-18",),
        "mcp_core/http/client/_streamable.py::StreamableHttpTransport._connect",
        "headers.append((LAST_EVENT_ID, last_id))",
        "headers.append((LAST_EVENT_ID, b'0'))",
    ),
    Mutation(
        ("SHL-20", "SHL-21"),
        "mcp_core/http/server/_endpoint.py::Endpoint._begin_session",
        "exchange.begins_session = True",
        "",
    ),
    Mutation(
        ("SHL-21", "AU-6"),
        "mcp_core/http/server/_endpoint.py::Endpoint._new_session",
        "name = self._entropy(16).hex().encode()",
        "name = b'%032x' % (len(self.sessions) + 1)",
    ),
    Mutation(
        ("SHL-33",),
        "mcp_core/http/client/_streamable.py::_SESSION_ID",
        'rb"[!-~]{1,1024}"',
        'rb"[ -~]{1,1024}"',
    ),
    Mutation(
        ("SHL-22",),
        "mcp_core/http/client/_streamable.py::StreamableHttpTransport.headers",
        "headers.append((SESSION_ID, self.session))",
        "pass",
    ),
    Mutation(
        ("SHL-23",),
        "mcp_core/http/server/_endpoint.py::Endpoint._post_without_session",
        "self._reject(exchange, _checks.NOT_INITIALIZED)",
        "self._reject(exchange, _checks.NO_SESSION)",
    ),
    Mutation(
        ("SHL-24",),
        "mcp_core/http/server/_checks.py::NO_SESSION",
        'ErrorResponse(404, "unknown session: begin a new one with initialize")',
        'ErrorResponse(400, "unknown session: begin a new one with initialize")',
    ),
    Mutation(
        ("SHL-25",),
        "mcp_core/http/client/_streamable.py::StreamableHttpTransport._session_lost",
        "state.conn.reinitialize(now)",
        "client.conn.close()",
    ),
    Mutation(
        ("SHL-26",),
        "mcp_core/http/client/_streamable.py::StreamableHttpTransport.close",
        'SessionDelete(), b"DELETE"',
        'SessionDelete(), b"GET"',
    ),
    Mutation(
        ("SHL-27", "AU-6"),
        "mcp_core/http/server/_endpoint.py::Endpoint._find_session",
        (
            "session is None\n"
            "or session.principal != exchange.principal\n"
            "or session.legacy_sse is not is_sse"
        ),
        "session is None\nor session.legacy_sse is not is_sse",
    ),
    Mutation(
        ("SHL-28",),
        "mcp_core/http/client/_streamable.py::StreamableHttpTransport.headers",
        "headers.append((PROTOCOL_VERSION, dialect.version.encode()))",
        "pass",
    ),
    Mutation(
        ("SHL-30",),
        "mcp_core/http/server/_endpoint.py::_DEFAULT_DIALECT",
        'DIALECTS["2025-03-26"]',
        'DIALECTS["2025-06-18"]',
    ),
    Mutation(
        ("SHL-29", "SHL-32"),
        "mcp_core/http/server/_endpoint.py::Endpoint._find_session",
        "return ErrorResponse(400, text)",
        "return ErrorResponse(404, text)",
    ),
    Mutation(
        ("SHM-1", "SHM-2", "HDR-1"),
        "mcp_core/http/wire/_mcp_headers.py::request_headers",
        "_METHOD_VALUES.get(row.name) or _encode_method(row.name)",
        'b"x"',
    ),
    Mutation(
        ("SHM-5", "SHM-6"),
        "mcp_core/protocol/revisions/_dialects.py::_MODERN_STATUSES",
        "-32601: 404,",
        "",
    ),
    Mutation(
        ("SHM-3", "HDR-3"),
        "mcp_core/protocol/revisions/_dialects.py::_MODERN_STATUSES",
        "-32020: 400,",
        "",
    ),
    Mutation(
        ("SHM-11", "CXL-14"),
        "mcp_core/protocol/revisions/_dialects.py::DIALECTS",
        "disconnect_cancels=True,",
        "",
    ),
    Mutation(
        ("SHM-13",), "mcp_core/protocol/revisions/_dialects.py::DIALECTS", "resumable=False,", ""
    ),
    Mutation(("SHM-15",), "mcp_core/http/server/_exchange.py::_EVENTS", 'b"no"', 'b"yes"'),
    Mutation(
        ("SHM-14",),
        "mcp_core/http/server/_endpoint.py::Endpoint._handle_head",
        "None if modern else headers.get(SESSION_ID) or session_in_target(head.target)",
        "headers.get(SESSION_ID) or session_in_target(head.target)",
    ),
    Mutation(
        ("HDR-2",),
        "mcp_core/protocol/revisions/_methods.py::METHODS",
        (
            'Method("prompts/get", S, t.GetPromptParams, t.GetPromptResult, needs=("prompts",),\n'
            'input_ok=True, name_field="name")'
        ),
        (
            'Method("prompts/get", S, t.GetPromptParams, t.GetPromptResult, needs=("prompts",),\n'
            "input_ok=True)"
        ),
    ),
    Mutation(
        ("HDR-4",),
        "mcp_core/http/wire/_mcp_headers.py::RequestHeaderValidator.check_head",
        "return None if text == name else _mismatch(NAME, text, name)",
        "return None if text.lower() == name.lower() else _mismatch(NAME, text, name)",
    ),
    Mutation(
        ("HDR-8",),
        "mcp_core/protocol/schema/_param_headers.py::format_value",
        'return "true" if value else "false"',
        'return "1" if value else "0"',
    ),
    Mutation(
        ("HDR-12",),
        "mcp_core/protocol/schema/_param_headers.py::_TYPES",
        '_TYPES: Final = ("string", "integer", "boolean")',
        '_TYPES: Final = ("string", "integer", "boolean", "number")',
    ),
    Mutation(
        ("HDR-17",),
        "mcp_core/http/wire/_mcp_headers.py::RequestHeaderValidator.__init__",
        "self._repeated.add(name)",
        "pass",
    ),
    Mutation(
        ("HDR-18",),
        "mcp_core/protocol/connection/_admission.py::admit",
        'if has_duplicates(raw, "_meta"): ...',
        "if raw == b'': ...",
    ),
    # HTTP+SSE, opening
    Mutation(
        ("SSE-1", "SSE-2", "PROBE-8"),
        "mcp_core/http/server/_endpoint.py::Endpoint._open_legacy_sse",
        'event=b"endpoint"',
        'event=b"message"',
    ),
    Mutation(
        ("SSE-5",),
        "mcp_core/http/client/_sse_transport.py::HttpSseTransport._endpoint_received",
        "if endpoint.origin != self.state.url.origin: ...",
        "if endpoint is None: ...",
    ),
    Mutation(
        ("PROBE-2",),
        "mcp_core/protocol/connection/_negotiation.py::_probe",
        'return _Fallback(f"it answered server/discover with {reply.error}", '
        "reply.error if is_modern else None)",
        'raise ConnectFailed("no")',
    ),
    Mutation(
        ("PROBE-3", "PROBE-10"),
        "mcp_core/protocol/connection/_negotiation.py::is_modern_error",
        "error.code in MODERN_ERRORS or (status == 404 and error.code == _METHOD_NOT_FOUND)",
        "status == 404 and error.code == _METHOD_NOT_FOUND",
    ),
    Mutation(
        ("PROBE-6", "PROBE-7"),
        "mcp_core/http/client/_requests.py::_NO_STREAMABLE_HTTP",
        "frozenset({400, 404, 405})",
        "frozenset({400})",
    ),
    Mutation(
        ("PROBE-9",),
        "mcp_core/protocol/connection/_negotiation.py::OpeningReply.is_inconclusive",
        "status in _INCONCLUSIVE or status >= 500 or status == 0",
        "status >= 500 or status == 0",
    ),
    # Error codes, custom transports and methods, our decisions
    Mutation(
        ("ERR-1",),
        "mcp_core/protocol/revisions/_dialects.py::_CODES",
        "Fault.INTERNAL: -32603",
        "Fault.INTERNAL: -32000",
    ),
    Mutation(
        ("ERR-6",),
        "mcp_core/protocol/revisions/_dialects.py::_CODES",
        "Fault.HEADER_MISMATCH: -32020",
        "Fault.HEADER_MISMATCH: -32001",
    ),
    Mutation(
        ("ERR-7", "ERR-9"),
        "mcp_core/protocol/revisions/_dialects.py::_MODERN_CODES",
        "Fault.BUSY: 429,",
        "Fault.BUSY: -32029,",
    ),
    Mutation(
        ("ERR-10",),
        "mcp_core/protocol/connection/_connection.py::Connection.receive_failure",
        "self._fail_request(id, call, error, OpeningReply(status=status, failure=error))",
        "self._fail_request(id, call, PeerError(0, str(error)), OpeningReply(status=status, failure=error))",
    ),
    Mutation(
        ("ERR-11",),
        "mcp_core/protocol/connection/_negotiation.py::MODERN_ERRORS",
        (
            "frozenset(\n"
            "    code\n"
            "    for dialect in DIALECTS.values()\n"
            "    if not dialect.stateful\n"
            "    for fault, code in dialect.codes.items()\n"
            "    if fault in (Fault.HEADER_MISMATCH, Fault.MISSING_CAPABILITY, Fault.UNSUPPORTED_VERSION)\n"
            ")"
        ),
        (
            "frozenset((-32001, -32003, -32004)) | frozenset(\n"
            "    code\n"
            "    for dialect in DIALECTS.values()\n"
            "    if not dialect.stateful\n"
            "    for fault, code in dialect.codes.items()\n"
            "    if fault in (Fault.HEADER_MISMATCH, Fault.MISSING_CAPABILITY, Fault.UNSUPPORTED_VERSION)\n"
            ")"
        ),
    ),
    Mutation(("CUST-2",), "docs/howto/websockets.md", "## The protocol\n", "## The rules\n"),
    Mutation(
        ("CUST-3",),
        "mcp_core/protocol/connection/_admission.py::_row",
        "if row is None and method in _DEFINED: ...",
        "if row is None and not method: ...",
    ),
    Mutation(
        ("DEC-2",),
        "mcp_core/http/server/_exchange.py::Exchange._decide",
        "self.rules.statuses.get(code, 200)",
        "200",
    ),
    Mutation(
        ("DEC-3",),
        "mcp_core/protocol/revisions/_dialects.py::DIALECTS",
        "Dialect(R_2025_03_26, null_error_id=True, batches=True)",
        "Dialect(R_2025_03_26, batches=True)",
    ),
    Mutation(
        ("DEC-5",),
        "mcp_core/http/server/_exchange.py::Exchange._send_json",
        'body = b"[%b]" % b",".join([data for _, data, _ in stream.messages])',
        "body = stream.messages[0][1]",
    ),
    Mutation(
        ("DEC-9",),
        "mcp_core/_limits.py::Limits.message",
        "message: int = 4 * 1024 * 1024",
        "message: int = 8 * 1024 * 1024",
    ),
    Mutation(
        ("DEC-11",),
        "mcp_core/http/wire/_media_types.py::_is_acceptable",
        '(type, type.partition(b"/")[0] + b"/*", b"*/*")',
        '(type, type.partition(b"/")[0] + b"/*")',
    ),
    Mutation(
        ("DEC-12",),
        "mcp_core/protocol/connection/_requests.py::IncomingRequests.add",
        "if len(self.waiting) < limits.waiting: ...",
        "if len(self.waiting) < 2 * limits.waiting: ...",
    ),
    Mutation(
        ("AG-1",),
        "mcp_core/http/wire/_mcp_headers.py::_RESERVED",
        (
            "frozenset(\n"
            '    """\n'
            "    host connection content-encoding content-length content-type transfer-encoding te trailer\n"
            "    upgrade keep-alive proxy-connection expect accept accept-encoding last-event-id\n"
            "    mcp-protocol-version mcp-session-id mcp-method mcp-name\n"
            '    """.split()\n'
            ")"
        ),
        (
            "frozenset(\n"
            '    """\n'
            "    host connection content-encoding content-length content-type transfer-encoding te trailer\n"
            "    upgrade keep-alive proxy-connection authorization expect accept accept-encoding last-event-id\n"
            "    mcp-protocol-version mcp-session-id mcp-method mcp-name\n"
            '    """.split()\n'
            ")"
        ),
    ),
    Mutation(
        ("ELIC-18",),
        "mcp_core/urls/_elicitation_url.py::_host_warnings",
        'if host.startswith(_PUNYCODE) or f".{_PUNYCODE}" in host: ...',
        "if not host: ...",
    ),
    Mutation(
        ("ELIC-20",),
        "mcp_core/protocol/input_requests/_request_state.py::_principal_digest",
        "principal",
        "principal[:0]",
    ),
    # Authorization: transports, resource servers
    Mutation(
        ("AG-2",),
        "mcp_core/http/client/_response.py::_STATUS_TEXTS",
        (
            '"Unauthorized: the server wants an access token, in the header authorization: "\n'
            '"connect with auth=True, or log in with `mcp-trio login`"'
        ),
        (
            '"Unauthorized: the server wants an access token, in the header authorization: "\n'
            '"connect with a token, or log in with `mcp-trio login`"'
        ),
    ),
    Mutation(
        ("AG-4", "AR-2"),
        "mcp_core/auth/server/_resource_server.py::OAuthResourceServer.metadata",
        '"authorization_servers": self._issuers,',
        '"authorization_servers": [],',
    ),
    Mutation(
        ("AG-6",),
        "mcp_core/auth/client/_profile.py::ClientProfile.__post_init__",
        'parts.scheme != "https"',
        "not parts.scheme",
    ),
    Mutation(
        ("AG-7",),
        "mcp_trio/auth/_storage.py::FileStorage.load",
        "(state.st_mode & _GROUP_AND_OTHERS or state.st_uid != os.geteuid())",
        "(state.st_uid != os.geteuid())",
    ),
    Mutation(
        ("AG-7",),
        "mcp_trio/auth/_storage.py::FileStorage._check_directory",
        "if state.st_mode & _WRITABLE_BY_OTHERS: ...",
        "if not state.st_mode: ...",
    ),
    Mutation(
        ("AG-7",),
        "mcp_trio/auth/_keyring.py::_find_backends",
        "keychains = [each for each in found if core.recommended(each)]",
        "keychains = found",
    ),
    Mutation(
        ("AG-8", "AX-1", "AX-2"),
        "mcp_core/auth/client/_profile.py::ClientProfile.extensions",
        "return {name: {}} if name is not None else {}",
        "return {}",
    ),
    Mutation(
        ("AR-1", "AR-10"),
        "mcp_core/auth/server/_protected_resource.py::ProtectedResource._refuse",
        "return AuthDenial(401, text, challenges, printable(problem))",
        "return AuthDenial(403, text, challenges, printable(problem))",
    ),
    Mutation(
        ("AR-3", "AR-4"),
        "mcp_core/auth/server/_resource_server.py::OAuthResourceServer.__init__",
        'self._challenge_parameters["resource_metadata"] = urls[0]',
        "",
    ),
    Mutation(
        ("AR-5", "AR-7"),
        "mcp_core/auth/server/_protected_resource.py::ProtectedResource.check_scopes",
        '"insufficient_scope", description, needed, scheme=scheme',
        '"insufficient_scope", description, missing, scheme=scheme',
    ),
    Mutation(
        ("AR-6",),
        "mcp_core/auth/server/_protected_resource.py::ProtectedResource.check_scopes",
        'self._deny(403, "insufficient_scope", description, needed, scheme=scheme)',
        'self._deny(401, "insufficient_scope", description, needed, scheme=scheme)',
    ),
    Mutation(
        ("AR-8",),
        "mcp_core/auth/server/_protected_resource.py::ProtectedResource.check_scopes",
        "not self._satisfies(grant.scopes, scope)",
        "scope not in grant.scopes",
    ),
    Mutation(
        ("AR-5", "AR-7"),
        "mcp_core/auth/server/_scopes.py::RequiredScopes.of",
        "needed += self._by_prompt(params.ref.name)",
        "needed += ()",
    ),
    Mutation(
        ("AR-9",),
        "mcp_core/auth/server/_scopes.py::is_resource_scope",
        '_SCOPE.fullmatch(scope) is not None and scope != "offline_access"',
        "_SCOPE.fullmatch(scope) is not None",
    ),
    Mutation(
        ("AR-11",),
        "mcp_core/auth/server/_grant.py::_check_audience",
        "if not any(name in audience for name in names): ...",
        "if not names: ...",
    ),
    Mutation(
        ("AR-13",),
        "mcp_core/http/server/_endpoint.py::Endpoint.begin",
        "if self.auth is None or verb not in AUTHORIZED_VERBS: ...",
        "if self.auth is None or verb not in AUTHORIZED_VERBS or any(name == SESSION_ID for name, _ in head.headers): ...",
    ),
    Mutation(
        ("AR-17", "AU-6"),
        "mcp_core/http/server/_endpoint.py::Endpoint._granted",
        "exchange.principal = grant.principal",
        "",
    ),
    # Discovery and registration
    Mutation(
        ("AC-1",),
        "mcp_core/auth/client/_discovery.py::_legacy_server_metadata",
        'search, f"{root}/.well-known/oauth-authorization-server"',
        'search, f"{url}/.well-known/oauth-authorization-server"',
    ),
    Mutation(
        ("AC-2",),
        "mcp_core/auth/client/_discovery.py::_default_server_metadata",
        'token_endpoint=f"{root}/token"',
        'token_endpoint=f"{root}/oauth/token"',
    ),
    Mutation(
        ("AC-3",),
        "mcp_core/auth/_server_metadata.py::MetadataSearch._fetch_following_redirects",
        '[("accept", "application/json"), ("mcp-protocol-version", LATEST)]',
        '[("accept", "application/json")]',
    ),
    Mutation(
        ("AC-4",),
        "mcp_core/auth/client/_challenge.py::parse_auth_challenge",
        'scopes=split_scopes(merged.get("scope", "")),',
        "scopes=(),",
    ),
    Mutation(
        ("AC-5", "AC-6"),
        "mcp_core/auth/_resource_urls.py::resource_metadata_urls",
        'return [f"{known}{parts.path}{query}", known]',
        'return [known, f"{known}{parts.path}{query}"]',
    ),
    Mutation(
        ("AC-7",),
        "mcp_core/auth/client/_discovery.py::_check_resource",
        "(names_host(resource, url) and is_root_metadata_url(location, url))",
        "names_host(resource, url)",
    ),
    Mutation(
        ("AC-8",),
        "mcp_core/auth/client/_discovery.py::find_authorization_server",
        "issuer = preferred or offered[0]",
        "issuer = offered[0]",
    ),
    Mutation(
        ("AC-10", "AC-11"),
        "mcp_core/auth/_resource_urls.py::issuer_metadata_urls",
        '("oauth-authorization-server", "openid-configuration")',
        '("openid-configuration", "oauth-authorization-server")',
    ),
    Mutation(
        ("AC-12",),
        "mcp_core/auth/_server_metadata.py::find_server_metadata",
        "elif not is_same_issuer(issuer, metadata.issuer): ...",
        "elif metadata.issuer.rstrip('/') != issuer.rstrip('/'): ...",
    ),
    Mutation(
        ("AC-12",),
        "mcp_core/auth/_server_metadata.py::find_server_metadata",
        "if metadata.issuer != metadata_issuer: ...",
        "if not is_same_issuer(metadata.issuer, metadata_issuer): ...",
    ),
    Mutation(
        ("AC-12",),
        "mcp_core/auth/client/_discovery.py::find_authorization_server",
        "if not is_configured: ...",
        "if configured_issuer is None: ...",
    ),
    Mutation(
        ("AC-13", "AT-2"),
        "mcp_core/auth/client/_authorizer.py::Authorizer._discover",
        "self._tokens = None\nself._unconfirmed = None\nself._dpop_signer = None",
        "pass",
    ),
    Mutation(
        ("AC-14",),
        "mcp_core/auth/_server_metadata.py::MetadataSearch.fetch",
        "reply.status >= 500",
        "reply.status >= 600",
    ),
    Mutation(
        ("AQ-2",),
        "mcp_core/auth/client/_registration.py::known_identity",
        "server.client_id_metadata_document_supported",
        "not server.registration_endpoint",
    ),
    Mutation(
        ("AQ-6",),
        "mcp_core/auth/client/_registration.py::_register",
        '"application_type": profile.application_type,',
        "",
    ),
    Mutation(
        ("AQ-7",),
        "mcp_core/auth/client/_registration.py::registration_key",
        'return f"client:{issuer}"',
        'return "client"',
    ),
    Mutation(
        ("AQ-7",),
        "mcp_core/auth/client/_registration.py::_decode_registration",
        "not is_same_issuer(registration.issuer, issuer) or registration.redirect_uri != redirect_uri",
        "registration.redirect_uri != redirect_uri",
    ),
    Mutation(
        ("AQ-7",),
        "mcp_core/auth/client/_profile.py::ClientProfile.__post_init__",
        "self._check_no_credentials()",
        "pass",
    ),
    Mutation(
        ("AQ-8",),
        "mcp_core/auth/client/_registration.py::_register",
        '["authorization_code", "refresh_token"]',
        '["authorization_code"]',
    ),
    Mutation(
        ("AQ-9",),
        "mcp_core/auth/client/_registration.py::_register",
        '"redirect_uris": [redirect_uri]',
        '"redirect_uris": [profile.redirect_uri]',
    ),
    Mutation(
        ("AQ-10",),
        "mcp_core/auth/client/_registration.py::_auth_method",
        "return _POST if _POST in supported and _BASIC not in supported else _BASIC",
        "return _BASIC",
    ),
    # Logins and tokens
    Mutation(
        ("AF-1",),
        "mcp_core/auth/client/_callback.py::code_challenge",
        "return base64url(sha256(verifier.reveal().encode()).digest())",
        "return verifier.reveal()",
    ),
    Mutation(
        ("AF-2",),
        "mcp_core/auth/client/_callback.py::new_authorization_request",
        'if not (methods is None and assume_pkce) and "S256" not in (methods or ()): ...',
        'if "S256" not in (methods or ("S256",)): ...',
    ),
    Mutation(
        ("AF-2",),
        "mcp_core/auth/client/_callback.py::new_authorization_request",
        'if not (methods is None and assume_pkce) and "S256" not in (methods or ()): ...',
        'if not assume_pkce and "S256" not in (methods or ()): ...',
    ),
    Mutation(
        ("AF-3",),
        "mcp_core/auth/client/_token_request.py::TokenEndpointClient._request_token",
        'form["resource"] = self._auth_server.resource',
        "",
    ),
    Mutation(
        ("AF-4",),
        "mcp_core/auth/_resource_urls.py::canonical_resource",
        'path = "" if parts.path == "/" else parts.path',
        "path = parts.path",
    ),
    Mutation(
        ("AF-5",),
        "mcp_core/auth/client/_callback.py::read_callback",
        "if state is None or Secret(state) != request.state: ...",
        "if state is None: ...",
    ),
    Mutation(
        ("AF-5",),
        "mcp_core/auth/client/_callback.py::is_callback_for",
        "if not _is_same_place(callback, browse.redirect_uri): ...",
        "if not callback: ...",
    ),
    Mutation(
        ("AF-6",),
        "mcp_core/auth/client/_authorizer.py::Authorizer._scopes_to_request",
        "needed = auth_server.scopes or ()",
        "needed = ()",
    ),
    Mutation(
        ("AF-7",),
        "mcp_core/auth/client/_authorizer.py::Authorizer._scopes_to_request",
        "needed: Sequence[str] = challenge.scopes",
        "needed: Sequence[str] = [each for each in challenge.scopes if each in (auth_server.scopes or ())]",
    ),
    Mutation(
        ("AF-9",),
        "mcp_core/auth/client/_callback.py::read_callback",
        "if issuer is None and iss_required: ...",
        "if issuer is None and not issuer and not state: ...",
    ),
    Mutation(
        ("AF-10",),
        "mcp_core/auth/client/_callback.py::read_callback",
        "if issuer is not None and issuer != request.issuer: ...",
        "if issuer is not None and issuer.lower().rstrip('/') != request.issuer.lower().rstrip('/'): ...",
    ),
    Mutation(
        ("AF-9",),
        "mcp_core/auth/_metadata.py::_iss_flag",
        'return value is not None and value is not False and value != "false"',
        "return value is True",
    ),
    Mutation(
        ("AF-11",),
        "mcp_core/auth/client/_callback.py::read_callback",
        'state = _single_value(parameters, "state")',
        (
            'if _single_value(parameters, "error"):\n'
            '    raise _login_error(_single_value(parameters, "error"), None)\n'
            'state = _single_value(parameters, "state")'
        ),
    ),
    Mutation(
        ("AT-1", "AT-8"),
        "mcp_core/auth/client/_authorizer.py::Authorizer._headers",
        '("authorization", f"Bearer {tokens.access.reveal()}")',
        '("x-token", f"Bearer {tokens.access.reveal()}")',
    ),
    Mutation(
        ("AT-2",),
        "mcp_core/auth/client/_authorizer.py::Authorizer._headers",
        "if tokens is None or origin_of(url) != origin_of(self._url): ...",
        "if tokens is None: ...",
    ),
    Mutation(
        ("AT-3",),
        "mcp_core/auth/client/_authorizer.py::Authorizer._scopes_to_request",
        'if scopes and self._profile.offline_access and "offline_access" in supported: ...',
        "if scopes and self._profile.offline_access: ...",
    ),
    Mutation(
        ("AT-4",),
        "mcp_core/auth/client/_authorizer.py::Authorizer._handle_unauthorized",
        'if self._unconfirmed == "login" and not must_bind: ...',
        'if self._unconfirmed == "never": ...',
    ),
    Mutation(
        ("AT-5", "AT-7"),
        "mcp_core/auth/client/_authorizer.py::Authorizer._handle_insufficient_scope",
        "_put_bounded(self._step_ups, operation, count + 1)",
        "",
    ),
    Mutation(
        ("AT-5",),
        "mcp_core/auth/client/_authorizer.py::Authorizer._handle_insufficient_scope",
        "not wanted <= set(self._profile.scopes or ())",
        "not wanted",
    ),
    Mutation(
        ("AT-6",),
        "mcp_core/auth/client/_authorizer.py::Authorizer._scopes_to_request",
        "(*self._requested_scopes, *(self._profile.scopes or ()), *needed)",
        "(*(self._profile.scopes or ()), *needed)",
    ),
    Mutation(
        ("AU-1", "AU-4"),
        "mcp_core/urls/_addresses.py::find_syntax_error",
        "if parts.scheme not in DEFAULT_PORTS: ...",
        "if not parts.scheme: ...",
    ),
    Mutation(
        ("AU-2",),
        "mcp_core/urls/_addresses.py::find_url_error",
        'if parts.scheme == "http" and not (allow_loopback and is_loopback_host(host)): ...',
        'if parts.scheme == "http" and not is_loopback_host(host): ...',
    ),
    Mutation(
        ("AU-3",),
        "mcp_core/urls/_addresses.py::_NOT_PUBLIC_4",
        '"127.0.0.0/8", "169.254.0.0/16",',
        '"127.0.0.0/8",',
    ),
    Mutation(
        ("AU-3",),
        "mcp_core/auth/client/_authorizer.py::Authorizer.may_fetch",
        "elif named_by is not None: ...",
        'elif named_by == "": ...',
    ),
    Mutation(
        ("AX-1",),
        "mcp_core/auth/client/_token_request.py::TokenEndpointClient._add_client_assertion",
        '"aud": self._auth_server.iss,',
        '"aud": self._auth_server.resource,',
    ),
    Mutation(
        ("AX-2",),
        "mcp_core/auth/client/_token_request.py::TokenEndpointClient.enterprise_managed",
        "if token.issued_token_type != _ID_JAG: ...",
        "if token.issued_token_type is None: ...",
    ),
    Mutation(
        ("AX-3",),
        "mcp_core/auth/client/_dpop_signer.py::DpopSigner.create_proof",
        '"htu": url.partition("?")[0].partition("#")[0]',
        '"htu": url',
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutations and return the exit code: 1 if one survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.spec.mutations")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="a row or a group of the manifest")
    parser.add_argument("--sample", type=int, metavar="N", help="run N mutations only")
    parser.add_argument("--seed", type=int, metavar="N", help="of the sample")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="copies to work in")
    parser.add_argument(
        "--no-baseline", action="store_true", help="do not run the tests on the unchanged code"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only say which entries, and which of equivalent_mutants.py, no longer match the code",
    )
    options = parser.parse_args(arguments)
    if options.check:
        broken = [*find_broken(MUTATIONS), *find_stale_equivalents(EQUIVALENTS)]
        count = len(MUTATIONS) + len(EQUIVALENTS)
        print(*broken, f"{len(broken)} of {count} no longer match the code", sep="\n")
        return 1 if broken else 0
    seed = secrets.randbits(32) if options.seed is None else options.seed
    selected = chosen(MUTATIONS, options.rows, options.sample, seed)
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{len(selected)} mutations of {len(MUTATIONS)}, seed {seed}", markup=False)
    if not selected:
        return 1
    if not options.no_baseline:
        # A test that fails anyway kills every mutation.
        rows = sorted({row for each in selected for row in each.rows})
        with copied() as root:
            failed, error = run_tests(root, rows)
        if failed or error:
            text = f"the unchanged code fails: {' '.join(sorted(failed))} {error}"
            console.print(text, markup=False)
            return 1
    survived = 0
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("mutations", total=len(selected))
        for outcome in run_mutations(selected, options.jobs):
            verdict = "killed" if outcome.killed else "SURVIVED"
            rest = f" ({' '.join(outcome.survived)})" if outcome.survived else ""
            line = f"{verdict:8} {outcome.seconds:5.1f} s {outcome.mutation}{rest} {outcome.error}"
            console.print(line.rstrip(), markup=False)
            survived += not outcome.killed
            progress.advance(task)
    console.print(f"{survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
