# ruff: noqa: E501 - code stands here as in its file
"""Small changes to the code, each of which a test of the manifest's rows has to notice.

    python -m tests.spec.mutations [--sample N] [--seed N] [--jobs N] [ROW ...]

A row whose mutation survives is not tested, although the manifest says so. A new row of the
manifest brings its mutation along.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.spec.mutation_runner import Mutation, chosen, copied, run_mutations, run_tests

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MUTATIONS"]

# Mutations by the groups of the manifest, in its order.
MUTATIONS: tuple[Mutation, ...] = (
    # JSON-RPC
    Mutation(
        ("RPC-1",), "mcp_core/jsonrpc/_codec.py", 'jsonrpc: Literal["2.0"]\n', "jsonrpc: str\n"
    ),
    Mutation(
        ("RPC-2",),
        "mcp_core/jsonrpc/_codec.py",
        "id: int | str | None | UnsetType = UNSET\n    method",
        "id: int | str | float | bool | None | UnsetType = UNSET\n    method",
    ),
    Mutation(
        ("RPC-3",),
        "mcp_core/jsonrpc/_codec.py",
        "        if id is None:\n            raise _invalid",
        "        if id == ():\n            raise _invalid",
    ),
    Mutation(
        ("RPC-4",),
        "mcp_core/connection/_requests.py",
        "self.next_id = id + 1",
        "self.next_id = len(self.table) + 1",
    ),
    Mutation(
        ("RPC-5",),
        "mcp_core/connection/_connection.py",
        "if id in self._incoming.table or (",
        "if (id in self._incoming.table and not id) or (",
    ),
    Mutation(
        ("RPC-6",),
        "mcp_core/connection/_connection.py",
        "        call = self._outgoing.table.pop(id, None)\n        if call is None:",
        "        call = self._outgoing.table.pop(int(id), None)\n        if call is None:",
    ),
    Mutation(
        ("RPC-7",),
        "mcp_core/jsonrpc/_codec.py",
        """return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(id), result)""",
        """return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(str(id)), result)""",
    ),
    Mutation(
        ("RPC-8",),
        "mcp_core/jsonrpc/_codec.py",
        "    if id is not None:\n        return b'{",
        "    if id is not None or not null_id:\n        return b'{",
    ),
    Mutation(
        ("RPC-9", "RPC-10"),
        "mcp_core/jsonrpc/_codec.py",
        "    if error is not UNSET:\n        raise _invalid(",
        "    if error is None:\n        raise _invalid(",
    ),
    Mutation(
        ("RPC-11",),
        "mcp_core/types/_base.py",
        "    code: int\n    message: str\n",
        "    code: int | str\n    message: str | None = None\n",
    ),
    Mutation(
        ("RPC-13",),
        "mcp_core/jsonrpc/_codec.py",
        """return b'{"jsonrpc":"2.0","method":%b}'""",
        """return b'{"jsonrpc":"2.0","id":null,"method":%b}'""",
    ),
    Mutation(
        ("RPC-14",),
        "mcp_core/connection/_connection.py",
        "            elif message.id is UNSET:\n",
        "            elif message.id is UNSET and message.method != 'notifications/progress':\n",
    ),
    Mutation(
        ("RPC-15",),
        "mcp_core/connection/_admission.py",
        "        params = _without_task(row, raw) if row is not None else None\n",
        "        params = row.read_params(b'{}') if row is not None and row.params is not t.CallToolParams else None\n",
    ),
    Mutation(
        ("RPC-16",),
        "mcp_core/messages/_responses.py",
        "_read_object = reader(dict[str, Any])",
        "_read_object = reader(Any)",
    ),
    Mutation(
        ("RPC-17", "RPC-26"),
        "mcp_core/jsonrpc/_codec.py",
        """        return BadMessage(Fault.PARSE, f"the message is not JSON: {_reason(exc)}")\n    try:""",
        """        return BadMessage(Fault.INVALID_REQUEST, f"the message is not JSON: {_reason(exc)}")\n    try:""",
    ),
    Mutation(
        ("RPC-18",),
        "mcp_core/revisions/_dialects.py",
        "Fault.METHOD_NOT_FOUND: -32601",
        "Fault.METHOD_NOT_FOUND: -32600",
    ),
    Mutation(
        ("RPC-19",),
        "mcp_core/jsonrpc/_codec.py",
        "class Envelope(Struct, gc=False):",
        "class Envelope(Struct, gc=False, forbid_unknown_fields=True):",
    ),
    Mutation(
        ("RPC-20", "RPC-23"),
        "mcp_core/revisions/_dialects.py",
        "null_error_id=True, batches=True",
        "null_error_id=True",
    ),
    Mutation(
        ("RPC-22",),
        "mcp_core/messages/_incoming.py",
        'message.method != "initialize" or',
        'message.method == "initialize" or',
    ),
    Mutation(
        ("RPC-24",),
        "mcp_core/jsonrpc/_body.py",
        "if not 0 < count <= limit:",
        "if not 0 <= count <= limit:",
    ),
    Mutation(
        ("RPC-25",), "mcp_core/messages/_incoming.py", "self.batches = False", "self.batches = True"
    ),
    Mutation(
        ("RPC-27", "RPC-29"),
        "mcp_core/connection/_admission.py",
        "            may_respond=False,\n",
        "",
    ),
    Mutation(
        ("RPC-28",),
        "mcp_core/connection/_admission.py",
        "if role is Role.SERVER and not peer.dialect.stateful:",
        "if role is Role.SERVER and peer is None:",
    ),
    Mutation(
        ("RPC-30",), "mcp_core/revisions/_dialects.py", 'result_type="complete"', 'result_type=""'
    ),
    Mutation(
        ("RPC-31",),
        "mcp_core/messages/_responses.py",
        "        if kind is None or kind == _COMPLETE:",
        "        if kind == _COMPLETE:",
    ),
    Mutation(
        ("RPC-32",),
        "mcp_core/messages/_responses.py",
        "    if kind != _INPUT_REQUIRED:",
        "    if kind is None:",
    ),
    Mutation(
        ("RPC-33",),
        "mcp_core/messages/_responses.py",
        "    if kind == _TASK:\n        if not",
        "    if kind is None:\n        if not",
    ),
    Mutation(
        ("RPC-34",),
        "mcp_core/connection/_builtin.py",
        "    return t.EmptyResult(), None",
        "    return t.ListToolsResult(tools=[]), None",
    ),
    Mutation(
        ("RPC-35",),
        "mcp_core/runtime/_service.py",
        "    def dropped(self) -> None:\n        if self._finished:",
        "    def dropped(self) -> None:\n        if not self._finished:",
    ),
    # _meta
    Mutation(
        ("META-1",),
        "mcp_core/types/_revisions.py",
        'Gate(_base.Listed, "meta", C)',
        'Gate(_base.Listed, "meta", D)',
    ),
    Mutation(
        ("META-2",),
        "mcp_core/revisions/_config.py",
        'r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"',
        'r"[A-Za-z](?:[A-Za-z0-9-]*)?"',
    ),
    Mutation(
        ("META-3",),
        "mcp_core/revisions/_config.py",
        "io.modelcontextprotocol/serverInfo",
        "org.mcp/serverInfo",
    ),
    Mutation(
        ("META-4",),
        "mcp_core/connection/_negotiation.py",
        "        info=_read_implementation(info),",
        "        info=t.Implementation(name=info['name'], version=info['version']),",
    ),
    Mutation(
        ("META-6",),
        "mcp_core/revisions/_config.py",
        "protocol_version=dialect.version,\n                    client_capabilities=dialect.fit(config.capabilities),",
        "protocol_version=dialect.version,",
    ),
    Mutation(
        ("META-7",),
        "mcp_core/revisions/_config.py",
        "                    client_info=dialect.fit(config.info),\n",
        "",
    ),
    Mutation(
        ("META-8",),
        "mcp_core/connection/_admission.py",
        "    if version is None or meta.client_capabilities is None:",
        "    if version is None:",
    ),
    Mutation(
        ("META-9", "CAP-5", "VER-7"),
        "mcp_core/connection/_admission.py",
        "return Peer(dialect, meta.client_capabilities, meta.client_info, meta.log_level)",
        "return Peer(dialect, t.ClientCapabilities(), meta.client_info, meta.log_level)",
    ),
    Mutation(
        ("META-10",),
        "mcp_core/revisions/_config.py",
        'meta = {"io.modelcontextprotocol/serverInfo": dialect.fit(config.info)}',
        "meta = {}",
    ),
    Mutation(
        ("META-12", "SUB-4"),
        "mcp_core/subscriptions/_server.py",
        "    meta = _subscription_meta(id) if id is not None else None",
        "    meta = None",
    ),
    Mutation(("META-13",), "mcp_core/registry/_trace_context.py", "(?!0{32})", ""),
    Mutation(
        ("META-14",),
        "mcp_core/connection/_admission.py",
        "meta.progress_token if meta is not None else None",
        "None",
    ),
    Mutation(
        ("META-15",),
        "mcp_core/connection/_builtin.py",
        'meta={t.META_RELATED_TASK: {"taskId": task_id}}',
        "meta=None",
    ),
    Mutation(
        ("META-16",),
        "mcp_core/types/_revisions.py",
        'Gate(_base.RequestMeta, "related_task", D, E)',
        'Gate(_base.RequestMeta, "related_task", D)',
    ),
    Mutation(
        ("META-19",),
        "mcp_core/types/_revisions.py",
        'Gate(_base.Listed, "icons", D)',
        'Gate(_base.Listed, "icons", E)',
    ),
    # JSON Schema
    Mutation(
        ("JSCH-5", "JSCH-7"),
        "mcp_core/schema/_json_schema.py",
        'if isinstance(reference, str) and not reference.startswith("#"):',
        "if not isinstance(reference, str):",
    ),
    # Life cycle
    Mutation(
        ("LIFE-1",),
        "mcp_core/connection/_negotiation.py",
        "        client_info=config.info,\n",
        "        client_info=t.Implementation(name='', version=''),\n",
    ),
    Mutation(
        ("LIFE-2",),
        "mcp_core/connection/_negotiation.py",
        "return (yield from _initialize(config, config.stateful[0], []))\n    tried",
        "return (yield from _initialize(config, config.stateful[-1], []))\n    tried",
    ),
    Mutation(
        ("LIFE-3",),
        "mcp_core/connection/_builtin.py",
        "        server_info=config.info,\n        instructions=config.instructions,\n",
        "        server_info=config.info,\n",
    ),
    Mutation(
        ("LIFE-4",),
        "mcp_core/revisions/_dialects.py",
        "if dialect.version == requested), served[0])",
        "if dialect.version == requested), served[-1])",
    ),
    Mutation(
        ("LIFE-5",),
        "mcp_core/connection/_negotiation.py",
        "    dialect = newest_common(config.stateful, [result.protocol_version])",
        "    dialect = newest_common(config.stateful, [result.protocol_version]) or config.stateful[0]",
    ),
    Mutation(
        ("LIFE-6",),
        "mcp_core/connection/_negotiation.py",
        """    raise ConnectFailed(f"the server refused initialize: {reply.error}") from reply.error""",
        """    raise ConnectFailed("the server refused initialize")""",
    ),
    Mutation(
        ("LIFE-7",),
        "mcp_core/connection/_connection.py",
        '            self.send_notification("notifications/initialized")\n',
        "",
    ),
    Mutation(
        ("LIFE-9",),
        "mcp_core/connection/_connection.py",
        "        if self.state is not State.READY and related is None:",
        "        if self.state is State.CLOSED:",
    ),
    Mutation(
        ("LIFE-10",),
        "mcp_core/connection/_admission.py",
        "    _check_state(state, step, known_peer.dialect if known_peer is not None else None)\n",
        "",
    ),
    Mutation(
        ("LIFE-12",),
        "mcp_core/connection/_admission.py",
        "    if step in LIFECYCLE[state]:",
        "    if step in LIFECYCLE[state] or step is _INITIALIZE:",
    ),
    Mutation(
        ("LIFE-14", "LIFE-15", "LIFE-13", "CAP-3"),
        "mcp_core/connection/_admission.py",
        "if row is not None and not is_declared(peer.capabilities, row.needs):",
        "if row is None and not peer.capabilities:",
    ),
    Mutation(
        ("LIFE-16", "CXL-4"),
        "mcp_core/connection/_requests.py",
        "if call is None or call.token is NEGOTIATION:",
        "if call is None:",
    ),
    Mutation(
        ("LIFE-17",),
        "mcp_core/connection/_requests.py",
        "        self.table.clear()\n        return lost",
        "        self.table.clear()\n        return []",
    ),
    Mutation(
        ("LIFE-21",),
        "mcp_core/client/_calls.py",
        "_TIMEOUT: Final = 60.0",
        "_TIMEOUT: Final = None",
    ),
    Mutation(
        ("LIFE-22",),
        "mcp_core/client/_calls.py",
        '_check_seconds("timeout", options.get("timeout", _TIMEOUT))',
        "_TIMEOUT",
    ),
    Mutation(
        ("LIFE-23",),
        "mcp_core/client/_calls.py",
        "total_deadline < quiet_deadline",
        "total_deadline > quiet_deadline",
    ),
    Mutation(
        ("LIFE-24",),
        "mcp_core/connection/_negotiation.py",
        "            self.deadline = now + request.timeout\n        return",
        "            pass\n        return",
    ),
    # Revisions
    Mutation(
        ("VER-1", "VER-6"),
        "mcp_core/connection/_admission.py",
        '{"supported": config.versions, "requested": version}',
        '{"supported": config.versions}',
    ),
    Mutation(
        ("VER-2",),
        "mcp_core/connection/_negotiation.py",
        "tried.count(mutual) < 2:",
        "tried.count(mutual) < 0:",
    ),
    Mutation(
        ("VER-3", "VER-5"),
        "mcp_core/connection/_builtin.py",
        "supported_versions=config.versions",
        "supported_versions=[peer.dialect.version]",
    ),
    Mutation(
        ("VER-9", "VER-14"),
        "mcp_core/connection/_admission.py",
        "        and role is _SERVER\n    ):",
        "        and role is _SERVER and session_peer is None\n    ):",
    ),
    Mutation(
        ("VER-12",),
        "mcp_core/revisions/_config.py",
        r"(?:\.{META_LABEL})*/[A-Za-z0-9]",
        r"(?:\.{META_LABEL})*/?[A-Za-z0-9]",
    ),
    Mutation(
        ("VER-13",),
        "mcp_core/revisions/_config.py",
        "for name, row in config.methods.items() if row.to in (role, None)}",
        "for name, row in config.methods.items() if row.to is role.other}",
    ),
    Mutation(
        ("VER-15",),
        "mcp_core/connection/_admission.py",
        '            {"supported": config.versions},\n            dialect=config.dialects[0],\n            may_respond',
        "            dialect=config.dialects[0],\n            may_respond",
    ),
    Mutation(
        ("VER-16",),
        "mcp_core/connection/_negotiation.py",
        "        if not known_peer.dialect.stateful:\n            return known_peer\n",
        "",
    ),
    Mutation(
        ("VER-17",),
        "mcp_core/connection/_negotiation.py",
        "            if newest_common(config.stateful, supported) is not None:",
        "            if supported is None:",
    ),
    Mutation(
        ("VER-18",),
        "mcp_core/connection/_negotiation.py",
        "    if newest_common(config.stateful, discovery.supported_versions) is not None:",
        "    if discovery is None:",
    ),
    Mutation(
        ("VER-19",),
        "mcp_core/revisions/_dialects.py",
        "(dialect for dialect in dialects if dialect.version in offered)",
        "(dialect for dialect in dialects if dialect.version <= max(offered, default=''))",
    ),
    # Capabilities
    Mutation(
        ("CAP-1",),
        "mcp_core/types/_revisions.py",
        'Gate(_base.ClientCapabilities, "elicitation", C)',
        'Gate(_base.ClientCapabilities, "elicitation", D)',
    ),
    Mutation(
        ("CAP-2",),
        "mcp_core/types/_revisions.py",
        'Gate(_base.RootsCapability, "list_changed", None, E)',
        'Gate(_base.RootsCapability, "list_changed", A)',
    ),
    Mutation(
        ("CAP-4",),
        "mcp_core/revisions/_dialects.py",
        "Fault.MISSING_CAPABILITY: -32021",
        "Fault.MISSING_CAPABILITY: -32602",
    ),
    Mutation(
        ("CAP-6", "CAP-7"),
        "mcp_core/revisions/_capabilities.py",
        "if row.result is None or is_declared(capabilities, row.needs)",
        "if row.result is None or capabilities",
    ),
    Mutation(
        ("CAP-8", "TSK-2", "TSK-3"),
        "mcp_core/connection/_admission.py",
        "    if not is_declared(peer.capabilities, row.task_needs):",
        "    if not is_declared(peer.capabilities, row.task_needs[:1]):",
    ),
    Mutation(
        ("CAP-9",),
        "mcp_core/revisions/_capabilities.py",
        "if member is None or member is False:",
        "if not member:",
    ),
    Mutation(
        ("CAP-10",),
        "mcp_core/input_requests/_kinds.py",
        '        elif is_declared(capabilities, (*needs, "url")):',
        '        elif is_declared(capabilities, (*needs, "form")):',
    ),
    # Ping
    Mutation(("PING-1", "PING-2"), "mcp_core/connection/_builtin.py", '    "ping": _ping,\n', ""),
    Mutation(
        ("PING-3", "PING-4"),
        "mcp_core/connection/_keep_alive.py",
        "        if self._ping_sent:",
        "        if not self._interval:",
    ),
    Mutation(
        ("PING-5",),
        "mcp_core/revisions/_methods.py",
        'Method("ping", BOTH, t.PingParams, t.EmptyResult, until=R_2026_07_28, step=Step.PING)',
        'Method("ping", BOTH, t.PingParams, t.EmptyResult, step=Step.PING)',
    ),
    # Cancellation
    Mutation(
        ("CXL-1",),
        "mcp_core/connection/_requests.py",
        "t.CancelledParams(request_id=id, reason=reason)",
        "t.CancelledParams(request_id=id)",
    ),
    Mutation(
        ("CXL-2", "CXL-3", "CXL-13"),
        "mcp_core/connection/_requests.py",
        "        del self.table[id]\n        params = ",
        "        params = ",
    ),
    Mutation(
        ("CXL-6",),
        "mcp_core/connection/_requests.py",
        "        if request.phase in _UNANSWERED:",
        "        if request.phase:",
    ),
    Mutation(
        ("CXL-7",),
        "mcp_core/connection/_builtin.py",
        "        or next_phase(request.phase, _REPORT) is None\n",
        "",
    ),
    Mutation(
        ("CXL-8",),
        "mcp_core/connection/_requests.py",
        "if request is None or next_phase(request.phase, RequestAction.CANCEL) is None:",
        "if request is None:",
    ),
    Mutation(
        ("CXL-9", "CXL-10"),
        "mcp_core/connection/_connection.py",
        "        if call is None:\n            self._unreadable_input()",
        "        if call is None:\n            self._emit_rejected('unknown id')\n            self._unreadable_input()",
    ),
    Mutation(
        ("CXL-11",),
        "mcp_core/connection/_connection.py",
        "        except InvalidPayload as exc:\n            self._emit_rejected(",
        "        except RecursionError as exc:\n            self._emit_rejected(",
    ),
    Mutation(
        ("CXL-17",),
        "mcp_core/connection/_requests.py",
        "        if call is None or call.row is None or not call.row.long_lived:",
        "        if call is None or call.row is None or call.row.long_lived:",
    ),
    Mutation(
        ("CXL-18",),
        "mcp_core/connection/_connection.py",
        "        self._outgoing.cancel_related(params.request_id)\n",
        "",
    ),
    # Progress
    Mutation(
        ("PROG-1",),
        "mcp_core/types/_revisions.py",
        'Gate(_lifecycle.ProgressParams, "message", B)',
        'Gate(_lifecycle.ProgressParams, "message", C)',
    ),
    Mutation(
        ("PROG-2",),
        "mcp_core/connection/_connection.py",
        "id if progress else None)",
        "1 if progress else None)",
    ),
    Mutation(
        ("PROG-3", "PROG-11"),
        "mcp_core/connection/_builtin.py",
        "        or request.progress_token is None\n",
        "",
    ),
    Mutation(
        ("PROG-4",),
        "mcp_core/connection/_builtin.py",
        "progress <= request.progress:",
        "progress < request.progress:",
    ),
    Mutation(
        ("PROG-5",),
        "mcp_core/connection/_connection.py",
        "        del self._incoming.table[id]\n\n    def _reject",
        "\n    def _reject",
    ),
    Mutation(
        ("PROG-6",),
        "mcp_core/connection/_builtin.py",
        'dialect.tasks != "requested"',
        'dialect.tasks == "requested"',
    ),
    Mutation(
        ("PROG-8",),
        "mcp_core/revisions/_methods.py",
        'Method("notifications/progress", C, t.ProgressParams, since=R_2026_07_28)',
        'Method("notifications/progress", BOTH, t.ProgressParams, since=R_2026_07_28)',
    ),
    Mutation(
        ("PROG-13",),
        "mcp_core/connection/_requests.py",
        "        if call is None or not call.wants_progress:",
        "        if call is None:",
    ),
    # Log messages
    Mutation(
        ("LOG-1",),
        "mcp_core/connection/_admission.py",
        "    if not config.declares(row.needs):",
        "    if config is None:",
    ),
    Mutation(
        ("LOG-2",),
        "mcp_core/connection/_builtin.py",
        "t.LoggingMessageParams(level=level, data=data, logger=logger, meta=meta)",
        "t.LoggingMessageParams(level=level, data=data, meta=meta)",
    ),
    Mutation(
        ("LOG-3",),
        "mcp_core/connection/_builtin.py",
        "replace(peer, log_level=params.level)",
        "peer",
    ),
    Mutation(
        ("LOG-4",),
        "mcp_core/revisions/_dialects.py",
        'log_level: t.LoggingLevel | None = "info"',
        'log_level: t.LoggingLevel | None = "debug"',
    ),
    Mutation(
        ("LOG-6",),
        "mcp_core/revisions/_methods.py",
        'Method("logging/setLevel", S, t.SetLevelParams, t.EmptyResult, until=R_2026_07_28,',
        'Method("logging/setLevel", S, t.SetLevelParams, t.EmptyResult,',
    ),
    Mutation(("LOG-7",), "mcp_core/revisions/_dialects.py", "log_level=None,", 'log_level="info",'),
    Mutation(
        ("LOG-8",),
        "mcp_core/connection/_requests.py",
        "return session_peer if same_session else request.peer",
        "return session_peer",
    ),
    Mutation(
        ("LOG-9",),
        "mcp_core/connection/_connection.py",
        "put_if_any(log_notification(peer, level, data, logger, related, meta))",
        "put_if_any(log_notification(peer, level, data, logger, None, meta))",
    ),
    # Pagination, completion
    Mutation(
        ("PAGE-1", "PAGE-2"),
        "mcp_core/client/_calls.py",
        "        self._cursor = page.next_cursor\n",
        "        self._cursor = None\n",
    ),
    Mutation(
        ("PAGE-3",),
        "mcp_core/client/_calls.py",
        'return None if self._cursor is None else {"cursor": self._cursor}',
        'return None if self._cursor is None else {"cursor": self._cursor.strip()}',
    ),
    Mutation(
        ("PAGE-4",),
        "mcp_core/client/_calls.py",
        "        if self._cursor is None:\n            self.has_more",
        "        if not self._cursor:\n            self.has_more",
    ),
    Mutation(
        ("COMP-3",),
        "mcp_core/registry/entries/_completion.py",
        "_MAX_VALUES: Final = 100",
        "_MAX_VALUES: Final = 101",
    ),
    Mutation(
        ("COMP-4",),
        "mcp_core/registry/entries/_completion.py",
        "dialect.codes[Fault.INVALID_PARAMS]",
        "dialect.codes[Fault.INTERNAL]",
    ),
    Mutation(
        ("COMP-5",),
        "mcp_core/registry/entries/_completion.py",
        "    sent = list(completion.values[:_MAX_VALUES])",
        "    sent = sorted(completion.values[:_MAX_VALUES])",
    ),
    # Cache
    Mutation(
        ("CACHE-1",),
        "mcp_core/revisions/_dialects.py",
        '(("ttl_ms", 0), ("cache_scope", "private"))',
        '(("ttl_ms", 0),)',
    ),
    Mutation(
        ("CACHE-4",),
        "mcp_core/client/_cache.py",
        "any(name in params for name in _INPUT_MEMBERS)",
        "not params",
    ),
    Mutation(
        ("CACHE-5",),
        "mcp_core/client/_cache.py",
        "now + min(result.ttl_ms, _MAX_TTL) / 1000",
        "now + min(result.ttl_ms, _MAX_TTL)",
    ),
    Mutation(
        ("CACHE-10",),
        "mcp_core/client/_cache.py",
        "        for method in methods:\n            if uri is None:",
        "        for method in methods[:0]:\n            if uri is None:",
    ),
    # Tasks
    Mutation(
        ("TSK-1",),
        "mcp_core/registry/_server.py",
        "tasks=_TASKS_CAPABILITY if self._lookup.has_tasks else None",
        "tasks=None",
    ),
    Mutation(
        ("TSK-4",),
        "mcp_core/registry/tasks/_options.py",
        "        if wanted and served:",
        "        if wanted and not served:",
    ),
    Mutation(
        ("TSK-5",),
        "mcp_core/registry/tasks/_options.py",
        "        raise _error(request, Fault.METHOD_NOT_FOUND, text)",
        "        raise _error(request, Fault.INVALID_PARAMS, text)",
    ),
    Mutation(
        ("TSK-7",),
        "mcp_core/runtime/tasks/_running.py",
        'options.detach == 0 or self.request.peer.dialect.tasks == "requested"',
        "options.detach == 0",
    ),
    Mutation(
        ("TSK-10", "TX-23"),
        "mcp_core/tasks/_record.py",
        "    return entropy(_ID_SIZE).hex()",
        "    return bytes(_ID_SIZE).hex()",
    ),
    Mutation(
        ("TSK-11",),
        "mcp_core/tasks/_states.py",
        '    "cancelled": {},',
        '    "cancelled": {Complete: "completed"},',
    ),
    Mutation(
        ("TSK-12", "TSK-22"),
        "mcp_core/runtime/tasks/_records.py",
        "if record is not None and self._runtime.wall_time() >= record.expires:",
        "if record is not None and self._runtime.wall_time() < 0:",
    ),
    Mutation(
        ("TSK-14",),
        "mcp_core/tasks/_views.py",
        "    if record.error is not None:\n        return record.error",
        "    if record.error is not None:\n        return t.ErrorData(INTERNAL_ERROR, '')",
    ),
    Mutation(
        ("TSK-15",),
        "mcp_core/runtime/tasks/_requests.py",
        "                if record.ended:\n                    return task_outcome(record)",
        "                if not record.open_requests:\n                    return task_outcome(record)",
    ),
    Mutation(
        ("TSK-17", "PROG-6"),
        "mcp_core/runtime/tasks/_channel.py",
        "        self._progress = service.conn.task_progress(request_id, task_id)",
        "        self._progress = None",
    ),
    Mutation(
        ("TSK-17",),
        "mcp_core/runtime/tasks/_requests.py",
        '        self.meta = {t.META_RELATED_TASK: {"taskId": task.id}}',
        "        self.meta = None",
    ),
    Mutation(
        ("TSK-19",),
        "mcp_core/runtime/tasks/_notifier.py",
        "            if visible == seen:",
        "            if visible != seen:",
    ),
    Mutation(
        ("TSK-20",),
        "mcp_core/runtime/tasks/_requests.py",
        "            next_cursor=shown[-1].id if len(page) > len(shown) else None,",
        "            next_cursor=None,",
    ),
    Mutation(
        ("TSK-21",),
        "mcp_core/runtime/tasks/_requests.py",
        '        if self.request.peer.dialect.tasks == "requested":',
        '        if self.request.peer.dialect.tasks == "none":',
    ),
    Mutation(
        ("TSK-23", "TX-11"),
        "mcp_core/tasks/_views.py",
        '    if record.is_error and dialect.tasks == "requested":',
        '    if record.is_error and dialect.tasks == "extension":',
    ),
    Mutation(
        ("TSK-24", "TX-19", "TX-23"),
        "mcp_core/runtime/_service.py",
        "            owner = sha256(user.encode()).hexdigest()",
        '            owner = ""',
    ),
    Mutation(
        ("TSK-24",),
        "mcp_core/runtime/tasks/_requests.py",
        "        if not owner and not self._service.runtime.single_peer:",
        "        if owner and not self._service.runtime.single_peer:",
    ),
    Mutation(
        ("TSK-25",),
        "mcp_core/runtime/tasks/_memory_store.py",
        "        if len(created) >= per_owner:",
        "        if len(created) > per_owner:",
    ),
    Mutation(
        ("TSK-26",),
        "mcp_core/runtime/tasks/_service.py",
        "        if asked is not None and asked.reachable:",
        "        if asked is not None:",
    ),
    Mutation(
        ("TSK-27",),
        "mcp_core/tasks/_views.py",
        "None if immediate_response is None else {t.META_IMMEDIATE_RESPONSE: immediate_response}",
        "None",
    ),
    Mutation(
        ("TX-2",),
        "mcp_core/registry/tasks/_options.py",
        "        if is_declared(request.peer.capabilities, TASKS):",
        "        if options is not None:",
    ),
    Mutation(
        ("TX-5",),
        "mcp_core/registry/tasks/_options.py",
        "raise _error(request, Fault.MISSING_CAPABILITY, text, missing)",
        "raise _error(request, Fault.MISSING_CAPABILITY, text)",
    ),
    Mutation(
        ("TX-6",),
        "mcp_core/tasks/_views.py",
        '_TASK: Final = "task"',
        '_TASK: Final = "complete"',
    ),
    Mutation(
        ("TX-7",),
        "mcp_core/runtime/tasks/_service.py",
        "            limit = await self.records.create(record)",
        "            limit = None\n            self.runtime.start_soon(partial(self.records.create, record))",
    ),
    Mutation(
        ("TX-8",),
        "mcp_core/runtime/tasks/_running.py",
        "        if self.detaches_at_once:",
        "        if options is not None:",
    ),
    Mutation(
        ("TX-9",),
        "mcp_core/tasks/_views.py",
        "    return min(max(tenth, limits.poll_interval), limits.max_poll_interval)",
        "    return min(tenth, limits.max_poll_interval)",
    ),
    Mutation(
        ("TX-10",),
        "mcp_core/tasks/_views.py",
        '        "input_requests": record.open_requests or None,',
        '        "input_requests": None,',
    ),
    Mutation(
        ("TX-12",),
        "mcp_core/tasks/_states.py",
        "    if action.key in record.open_requests or action.key in record.responses:",
        "    if action.key in record.open_requests:",
    ),
    Mutation(
        ("TX-14",),
        "mcp_core/tasks/_states.py",
        "    if action.key not in record.open_requests:\n        return record\n",
        "    if action.key not in record.open_requests:\n        raise TaskExpired\n",
    ),
    Mutation(
        ("TSK-6",),
        "mcp_core/types/_tools.py",
        "    ttl: _Milliseconds | UnsetType | None = UNSET",
        "    ttl: int | UnsetType | None = UNSET",
    ),
    Mutation(
        ("TSK-8",),
        "mcp_core/connection/_admission.py",
        'return dialect.tasks == "requested" and bool(row.task_needs) and config.declares(row.task_needs)',
        "return bool(row.task_needs)",
    ),
    # Tasks at the client
    Mutation(
        ("TSK-4",),
        "mcp_core/runtime/client_tasks/_calls.py",
        'if support not in ("optional", "required"):',
        'if support == "forbidden":',
    ),
    Mutation(
        ("TSK-5",),
        "mcp_core/runtime/client_tasks/_calls.py",
        'and (self._task_support or {}).get(tool) == "required"',
        'and (self._task_support or {}).get(tool) == "optional"',
    ),
    Mutation(
        ("TSK-3",),
        "mcp_core/runtime/client_tasks/_calls.py",
        "            and is_declared(peer.capabilities, TASK_CALLS)\n            and (self",
        "            and (self",
    ),
    Mutation(
        ("TSK-11",),
        "mcp_core/runtime/client_tasks/_task.py",
        "        if self.ended:\n            if details",
        "        if self.ended and task.status in FINAL_STATUSES:\n            if details",
    ),
    Mutation(
        ("TSK-13", "TX-24"),
        "mcp_core/runtime/client_tasks/_poller.py",
        "yield self._pause(task, self._poll_interval(task))",
        "yield self._pause(task, 0.05)",
    ),
    Mutation(
        ("TX-24",),
        "mcp_core/runtime/client_tasks/_poller.py",
        "        if left <= 0:\n",
        "        if left <= -1e9:\n",
    ),
    Mutation(
        ("TSK-16",),
        "mcp_core/runtime/client_tasks/_poller.py",
        '(task.ended or task.status == "input_required"):',
        "task.ended:",
    ),
    Mutation(
        ("TSK-17",),
        "mcp_core/runtime/_client_callbacks.py",
        "self._conn.send_result(event.id, _related(event, result))",
        "self._conn.send_result(event.id, result)",
    ),
    Mutation(
        ("TSK-18",),
        "mcp_core/runtime/client_tasks/_poller.py",
        'yield "tasks/get", t.GetTaskParams(task_id=task.id)',
        'yield "tasks/get", {"taskId": task.id, "_meta": {t.META_RELATED_TASK: {"taskId": task.id}}}',
    ),
    Mutation(
        ("TSK-19",),
        "mcp_core/runtime/client_tasks/_poller.py",
        "        if task is not None and not task.knows(params):\n            task.wake()",
        "        if task is not None:\n            task.update(params)\n            task.wake()",
    ),
    Mutation(
        ("TSK-20",),
        "mcp_core/runtime/client_tasks/_calls.py",
        'self._pages("tasks/list", "tasks", options)',
        'self._once("tasks/list", None)',
    ),
    Mutation(
        ("TSK-27",),
        "mcp_core/runtime/client_tasks/_calls.py",
        "meanwhile if isinstance(meanwhile, str) else None",
        "None",
    ),
    Mutation(
        ("CXL-5", "TX-18"),
        "mcp_core/runtime/client_tasks/_poller.py",
        "                self._cancel_soon(task)\n",
        "                pass\n",
    ),
    Mutation(
        ("PROG-6",),
        "mcp_core/connection/_requests.py",
        "            self.tasks[id] = call\n",
        "            pass\n",
    ),
    Mutation(
        ("TX-3",),
        "mcp_core/runtime/client_tasks/_calls.py",
        "        if isinstance(result, TaskCreated):\n            task = self._new_task(result, name, options)\n            task.end",
        "        if isinstance(result, TaskCreated) and result is None:\n            task = self._new_task(result, name, options)\n            task.end",
    ),
    Mutation(
        ("TX-9",),
        "mcp_core/runtime/client_tasks/_task.py",
        "            self.interval = max(seconds, _MIN_INTERVAL)",
        "            self.interval = min(self.interval, max(seconds, _MIN_INTERVAL))",
    ),
    Mutation(
        ("TX-12",),
        "mcp_core/runtime/client_tasks/_poller.py",
        "            elif known != digest:\n",
        "            elif known == b'':\n",
    ),
    Mutation(
        ("TX-13", "TX-15"),
        "mcp_core/runtime/client_tasks/_poller.py",
        "            task.answered |= digests\n",
        "            pass\n",
    ),
    Mutation(
        ("TX-16",),
        "mcp_core/runtime/client_tasks/_poller.py",
        "                check_input_request(request, config.capabilities)\n",
        "",
    ),
    Mutation(
        ("TX-17",),
        "mcp_core/runtime/client_tasks/_poller.py",
        "        task.update(result)\n        task.wake()\n",
        '        task.status = "cancelled"\n        task.wake()\n',
    ),
    Mutation(
        ("TX-1",),
        "mcp_core/revisions/_capabilities.py",
        "tasks=declared, extensions=extensions)",
        "tasks=declared, extensions=extensions, experimental=extensions)",
    ),
    Mutation(
        ("TX-4",),
        "mcp_core/messages/_responses.py",
        "        if not call.may_become_task:",
        "        if call.row is None:",
    ),
    Mutation(
        ("TX-20",),
        "mcp_core/subscriptions/_server.py",
        "        params = replace(status, meta=meta)",
        "        params = status",
    ),
    Mutation(
        ("TX-21",),
        "mcp_core/revisions/_methods.py",
        'needs=TASKS, asks=TASKS, name_field="task_id", non_idempotent=True',
        "needs=TASKS, asks=TASKS, non_idempotent=True",
    ),
    Mutation(
        ("TX-22",),
        "mcp_core/types/_revisions.py",
        'Gate(_base.ServerCapabilities, "tasks", D, E)',
        'Gate(_base.ServerCapabilities, "tasks", D)',
    ),
    # Input requests
    Mutation(
        ("MRTR-2",),
        "mcp_core/input_requests/_rounds.py",
        "        if not request.method.input_ok:\n            return _cannot_ask(request.method)\n",
        "",
    ),
    Mutation(
        ("MRTR-3",),
        "mcp_core/input_requests/_rounds.py",
        "        if not questions and returned.request_state is None:",
        "        if returned is None:",
    ),
    Mutation(
        ("MRTR-4",),
        "mcp_core/input_requests/_rounds.py",
        "            request_state=state,\n            result_type",
        "            request_state=None,\n            result_type",
    ),
    Mutation(
        ("MRTR-5", "ELIC-3"),
        "mcp_core/input_requests/_kinds.py",
        "            if not is_declared(capabilities, path):",
        "            if capabilities is None:",
    ),
    Mutation(
        ("MRTR-6",),
        "mcp_core/input_requests/_rounds.py",
        "            if key not in answers:\n                raise LocalProtocolError(",
        "            if key not in answers:\n                continue\n                raise LocalProtocolError(",
    ),
    Mutation(
        ("MRTR-7", "MRTR-9"),
        "mcp_core/input_requests/_rounds.py",
        "        self._state = state\n        self.pause",
        "        self._state = state and state.strip()\n        self.pause",
    ),
    Mutation(
        ("MRTR-8",),
        "mcp_core/input_requests/_rounds.py",
        "            if value is not None:\n                params[name] = value",
        "            params[name] = value",
    ),
    Mutation(
        ("MRTR-12", "MRTR-17"),
        "mcp_core/input_requests/_rounds.py",
        "        if self.round >= self._rounds:\n            raise Remote",
        "        if self.round >= 2:\n            raise Remote",
    ),
    Mutation(
        ("MRTR-13",),
        "mcp_core/input_requests/_request_state.py",
        "        if not hmac.compare_digest(",
        "        if signature and hmac.compare_digest(b'',",
    ),
    Mutation(
        ("MRTR-14",),
        "mcp_core/input_requests/_request_state.py",
        "        if body.digest != binding.digest:",
        "        if body.digest is binding:",
    ),
    Mutation(
        ("AU-7",),
        "mcp_core/input_requests/_request_state.py",
        "        if body.principal != _principal_digest(key, binding.principal):",
        "        if body.principal is None:",
    ),
    Mutation(
        ("MRTR-16", "SAMP-13"),
        "mcp_core/input_requests/_kinds.py",
        "    raise error\n",
        "    return t.ElicitResult(action='cancel')\n",
    ),
    Mutation(
        ("MRTR-18",),
        "mcp_core/input_requests/_rounds.py",
        "        self._keys_to_keep.update(content.responses)\n",
        "",
    ),
    # Subscriptions
    Mutation(
        ("SUB-1",),
        "mcp_core/subscriptions/_server.py",
        "prompts_list_changed=_PROMPTS in wanted or None",
        "prompts_list_changed=_TOOLS in wanted or None",
    ),
    Mutation(
        ("SUB-2",),
        "mcp_core/subscriptions/_server.py",
        "            if change in subscription.wanted or (",
        "            if subscription.wanted or change or (",
    ),
    Mutation(
        ("SUB-3",),
        "mcp_core/subscriptions/_server.py",
        "notifications=to_filter(wanted))",
        "notifications=subscription_filter)",
    ),
    Mutation(
        ("SUB-6",),
        "mcp_core/subscriptions/_client.py",
        "self.honoured = tuple(change for change in self.wanted if change in honoured)",
        "self.honoured = self.wanted",
    ),
    Mutation(
        ("SUB-8", "DEC-1"),
        "mcp_core/subscriptions/_server.py",
        "                t.ListenResult(meta=_subscription_meta(id)),",
        "                t.ListenResult(),",
    ),
    Mutation(
        ("SUB-16",),
        "mcp_core/subscriptions/_server.py",
        "        if self.listen_count >= limit:",
        "        if self.listen_count >= limit or not changes_in_filter(subscription_filter):",
    ),
    Mutation(
        ("TOOL-23", "RES-14", "PRM-5"),
        "mcp_core/subscriptions/_server.py",
        'return f"notifications/{self.list}/list_changed"',
        'return f"notifications/{self.list}/listChanged"',
    ),
    Mutation(
        ("RES-4", "RES-5"),
        "mcp_core/subscriptions/_server.py",
        "        del session.wanted[change]\n",
        "",
    ),
    # Tools, content, resources, prompts
    Mutation(
        ("TOOL-2", "TOOL-7"),
        "mcp_core/types/_revisions.py",
        'Gate(_tools.Tool, "annotations", B)',
        'Gate(_tools.Tool, "annotations", C)',
    ),
    Mutation(
        ("TOOL-4",),
        "mcp_core/registry/_lookup.py",
        "        if page is None:",
        "        if page is None or request.peer.capabilities.sampling is not None:",
    ),
    Mutation(
        ("TOOL-5",),
        "mcp_core/registry/_pages.py",
        "entries = list(self._entries[method].items())",
        "entries = sorted(self._entries[method].items())",
    ),
    Mutation(
        ("TOOL-6",),
        "mcp_core/registry/entries/_tools.py",
        "    if not schema.describes_object:",
        "    if schema is None:",
    ),
    Mutation(
        ("TOOL-8", "TOOL-9", "DEC-8"),
        "mcp_core/registry/functions/_output.py",
        """return Raw(b'{"result":%b}' % data)""",
        """return Raw(data)""",
    ),
    Mutation(
        ("TOOL-10",),
        "mcp_core/registry/functions/_output.py",
        "        elif self._schema is not None and not result.is_error:",
        "        elif self._schema is None and not result.is_error:",
    ),
    Mutation(
        ("TOOL-12", "TOOL-13"),
        "mcp_core/registry/functions/_output.py",
        "            content=[TextContent(text)], structured_content",
        "            content=[], structured_content",
    ),
    Mutation(
        ("TOOL-15",),
        "mcp_core/registry/entries/_tools.py",
        "content=[TextContent(text)], is_error=True",
        "content=[TextContent(text)]",
    ),
    Mutation(
        ("TOOL-16", "DEC-7"),
        "mcp_core/registry/entries/_tools.py",
        "            is_result = dialect.tool_argument_errors_are_results and (",
        "            is_result = (",
    ),
    Mutation(("TOOL-19",), "mcp_core/registry/_validation.py", "{1,128}", "{1,64}"),
    Mutation(
        ("TOOL-22",),
        "mcp_core/types/_tools.py",
        "return self.title or (self.annotations and self.annotations.title) or self.name",
        "return self.title or self.name",
    ),
    Mutation(
        ("TOOL-24", "DEC-13"),
        "mcp_core/revisions/_methods.py",
        'name_field="name", metered=True,',
        'name_field="name",',
    ),
    Mutation(
        ("CONT-1",),
        "mcp_core/types/_content.py",
        'class ResourceLink(Resource, tag_field="type", tag="resource_link"',
        'class ResourceLink(Resource, tag_field="type", tag="resourceLink"',
    ),
    Mutation(
        ("CONT-2", "CONT-7"),
        "mcp_core/types/_revisions.py",
        "Gate(_content.ResourceLink, None, C)",
        "Gate(_content.ResourceLink, None, A)",
    ),
    Mutation(
        ("CONT-3",),
        "mcp_core/types/_content.py",
        "    TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent\n",
        "    TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent | EmbeddedResource\n",
    ),
    Mutation(
        ("CONT-4",),
        "mcp_core/registry/functions/_content.py",
        "    if not _MIME_TYPE.fullmatch(mime_type):",
        "    if not mime_type:",
    ),
    Mutation(
        ("CONT-5",),
        "mcp_core/types/_revisions.py",
        'Gate(_base.Annotations, "last_modified", C)',
        'Gate(_base.Annotations, "last_modified", D)',
    ),
    Mutation(
        ("CONT-6",),
        "mcp_core/registry/entries/_resources.py",
        '            "text/plain" if isinstance(value, str) else "application/json"\n',
        '            "text/plain"\n',
    ),
    Mutation(
        ("CONT-8",),
        "mcp_core/registry/functions/_content.py",
        "return ResourceContents(uri=self.uri, mime_type=self.mime_type, text=self.data)",
        "return ResourceContents(uri=self.uri, text=self.data)",
    ),
    Mutation(
        ("RES-1",),
        "mcp_core/registry/_server.py",
        "ResourcesCapability(subscribe=True, list_changed=True)",
        "ResourcesCapability(list_changed=True)",
    ),
    Mutation(
        ("RES-6",),
        "mcp_core/revisions/_methods.py",
        'Method("resources/subscribe", S, t.SubscribeParams, t.EmptyResult, until=R_2026_07_28,',
        'Method("resources/subscribe", S, t.SubscribeParams, t.EmptyResult,',
    ),
    Mutation(
        ("RES-7", "ERR-2"),
        "mcp_core/revisions/_dialects.py",
        "Fault.RESOURCE_NOT_FOUND: -32002",
        "Fault.RESOURCE_NOT_FOUND: -32602",
    ),
    Mutation(
        ("RES-8", "ERR-5"),
        "mcp_core/revisions/_dialects.py",
        "        Fault.RESOURCE_NOT_FOUND: -32602,\n",
        "",
    ),
    Mutation(
        ("RES-11",),
        "mcp_core/registry/_validation.py",
        r"""r"[A-Za-z][A-Za-z0-9+.-]*:""",
        r"""r"[A-Za-z0-9+.-]*:""",
    ),
    Mutation(
        ("RES-12",),
        "mcp_core/urls/_uri_matcher.py",
        'return "holds a drive letter" if _DRIVE.match(segment) else None',
        "return None",
    ),
    Mutation(
        ("PRM-3",),
        "mcp_core/registry/entries/_prompts.py",
        "messages=[_as_message(item) for item in values], description=self._description",
        "messages=[_as_message(item) for item in values]",
    ),
    Mutation(
        ("PRM-4",),
        "mcp_core/registry/entries/_prompts.py",
        "raise McpError(dialect.codes[Fault.INVALID_PARAMS], str(exc)) from None",
        "raise McpError(dialect.codes[Fault.INTERNAL], str(exc)) from None",
    ),
    # What a client offers
    Mutation(
        ("SAMP-4",),
        "mcp_core/input_requests/_rounds.py",
        "    return replace(message, content=message.content[0])",
        "    return message",
    ),
    Mutation(
        ("SAMP-5",),
        "mcp_core/input_requests/_kinds.py",
        '        yield (*needs, "tools")',
        "        yield needs",
    ),
    Mutation(
        ("SAMP-6",),
        "mcp_core/input_requests/_rounds.py",
        '    if is_declared(peer.capabilities, ("sampling", "context")):',
        '    if is_declared(peer.capabilities, ("sampling",)):',
    ),
    Mutation(
        ("SAMP-7",),
        "mcp_core/input_requests/_kinds.py",
        "        if results and len(results) != len(blocks):",
        "        if results and not blocks:",
    ),
    Mutation(
        ("SAMP-8", "SAMP-9"),
        "mcp_core/input_requests/_kinds.py",
        "        if sorted(results) != sorted(pending):",
        "        if len(results) != len(pending):",
    ),
    Mutation(
        ("SAMP-12", "ERR-4"),
        "mcp_core/runtime/_client_callbacks.py",
        "_REJECTED: Final = -1",
        "_REJECTED: Final = -2",
    ),
    Mutation(
        ("SAMP-16",),
        "mcp_core/registry/_sampling_tools.py",
        "        if self._round == self._max_rounds:\n            self._params",
        "        if self._round > self._max_rounds:\n            self._params",
    ),
    Mutation(
        ("ELIC-2",),
        "mcp_core/input_requests/_kinds.py",
        '            yield (*needs, "url")\n',
        "            yield needs\n",
    ),
    Mutation(
        ("ELIC-9",),
        "mcp_core/input_requests/_kinds.py",
        "            answer = replace(answer, content=None)",
        "            answer = replace(answer)",
    ),
    Mutation(
        ("ELIC-10",),
        "mcp_core/input_requests/_kinds.py",
        "        if name not in content:",
        "        if not name:",
    ),
    Mutation(
        ("ELIC-11",),
        "mcp_core/runtime/_client_callbacks.py",
        "content={**_defaults(request), **answer}",
        "content={**answer}",
    ),
    Mutation(
        ("ELIC-13",),
        "mcp_core/input_requests/_rounds.py",
        "params = replace(params, elicitation_id=entropy(16).hex())",
        "pass",
    ),
    Mutation(
        ("ELIC-17",),
        "mcp_core/types/_revisions.py",
        'Gate(_client.ElicitParams, "elicitation_id", D, E)',
        'Gate(_client.ElicitParams, "elicitation_id", D)',
    ),
    Mutation(
        ("ROOT-3",),
        "mcp_core/input_requests/_kinds.py",
        'if not root.uri.startswith("file://"):',
        "if not root.uri:",
    ),
    Mutation(
        ("ROOT-5",),
        "mcp_core/runtime/_client_callbacks.py",
        "        return t.ErrorData(event.peer.dialect.codes[Fault.INTERNAL], ",
        "        return t.ErrorData(event.peer.dialect.codes[Fault.INVALID_PARAMS], ",
    ),
    # stdio
    Mutation(
        ("STDIO-1", "STDIO-6"),
        "mcp_core/jsonrpc/_framing.py",
        "            if end > start and chunk[end - 1] == _CR:",
        "            if end < start:",
    ),
    Mutation(
        ("STDIO-10", "LIFE-18"),
        "mcp_trio/streams/_child.py",
        "            self._signal(signal.SIGTERM)",
        "            self._signal(signal.SIGKILL)",
    ),
    # HTTP
    Mutation(
        ("HTTP-1", "HTTP-2"),
        "mcp_core/http/server/_checks.py",
        "return ErrorResponse(403, ",
        "return ErrorResponse(400, ",
    ),
    Mutation(
        ("HTTP-6",), "mcp_core/http/client/_streamable.py", 'JSON + b", " + EVENT_STREAM', "JSON"
    ),
    Mutation(
        ("HTTP-7",),
        "mcp_core/http/server/_checks.py",
        'return ErrorResponse(415, "the body must be',
        'return ErrorResponse(400, "the body must be',
    ),
    Mutation(
        ("HTTP-8",),
        "mcp_core/http/server/_exchange.py",
        '(status != 200 or self.reply_format != "sse")',
        "status != 200",
    ),
    Mutation(
        ("HTTP-9", "SHM-18"),
        "mcp_core/http/server/_endpoint.py",
        "400 if conversation.rejected else 202",
        "400 if conversation.rejected else 200",
    ),
    Mutation(("HTTP-10",), "mcp_core/http/wire/_sse.py", '            data += b"\\n"\n', ""),
    Mutation(
        ("HTTP-12",),
        "mcp_core/http/client/_transport.py",
        "            else _response_in(response.body, self.id)\n",
        "            else None\n",
    ),
    Mutation(
        ("SHL-2",),
        "mcp_core/http/server/_endpoint.py",
        "        if not session.batches:\n            body = body.as_message()\n",
        "",
    ),
    Mutation(
        ("SHL-6",),
        "mcp_core/http/server/_exchange.py",
        'self._actions.append(Body(encode_event(b"", id=id, retry=self.retry)))',
        'self._actions.append(Body(encode_event(b"", retry=self.retry)))',
    ),
    Mutation(
        ("SHL-7",),
        "mcp_core/http/server/_exchange.py",
        '            self._actions.append(Body(b"retry: %d\\n\\n" % retry))\n',
        "            pass\n",
    ),
    Mutation(
        ("SHL-8",),
        "mcp_core/http/client/_reconnect.py",
        "max(self._retry / 1000, _MIN_DELAY)",
        "max(self._retry / 100000, _MIN_DELAY)",
    ),
    Mutation(
        ("SHL-9",),
        "mcp_core/http/server/_session.py",
        "            self.forget(stream)\n\n    def drop_request",
        "            self.finished = True\n\n    def drop_request",
    ),
    Mutation(
        ("CXL-16",),
        "mcp_core/revisions/_dialects.py",
        "disconnect_cancels: bool = False",
        "disconnect_cancels: bool = True",
    ),
    Mutation(
        ("SHL-11",),
        "mcp_core/http/server/_checks.py",
        '    if accepts(parsed.headers.get(b"accept"), EVENT_STREAM):',
        "    if parsed.headers:",
    ),
    Mutation(
        ("SHL-12", "SHL-13"),
        "mcp_core/http/server/_session.py",
        "        if related is None or self.legacy_sse:\n            return self.standalone_stream",
        "        if related is None or self.legacy_sse:\n            return self.standalone_stream if self.legacy_sse else next(iter(self.stream_by_request.values()), self.standalone_stream)",
    ),
    Mutation(
        ("SHL-16", "SHL-17"),
        "mcp_core/http/server/_exchange.py",
        'id=b"%b-%d" % (name, number)',
        'id=b"0-%d" % number',
    ),
    Mutation(
        ("SHL-18",),
        "mcp_core/http/client/_requests.py",
        "            headers.append((LAST_EVENT_ID, last_id))",
        "            headers.append((LAST_EVENT_ID, b'0'))",
    ),
    Mutation(
        ("SHL-20", "SHL-21"),
        "mcp_core/http/server/_endpoint.py",
        "            exchange.begins_session = True\n",
        "",
    ),
    Mutation(
        ("SHL-21", "AU-6"),
        "mcp_core/http/server/_endpoint.py",
        "        name = self._entropy(16).hex().encode()",
        "        name = b'%032x' % (len(self.sessions) + 1)",
    ),
    Mutation(
        ("SHL-33",), "mcp_core/http/client/_streamable.py", 'rb"[!-~]{1,1024}"', 'rb"[ -~]{1,1024}"'
    ),
    Mutation(
        ("SHL-22",),
        "mcp_core/http/client/_streamable.py",
        "            headers.append((SESSION_ID, self.session))",
        "            pass",
    ),
    Mutation(
        ("SHL-23",),
        "mcp_core/http/server/_endpoint.py",
        "            self._reject(exchange, _checks.NOT_INITIALIZED)",
        "            self._reject(exchange, _checks.NO_SESSION)",
    ),
    Mutation(
        ("SHL-24",),
        "mcp_core/http/server/_checks.py",
        'ErrorResponse(404, "unknown session',
        'ErrorResponse(400, "unknown session',
    ),
    Mutation(
        ("SHL-25",),
        "mcp_core/http/client/_streamable.py",
        "            client.conn.reinitialize(now)\n",
        "            client.conn.close()\n",
    ),
    Mutation(
        ("SHL-26",),
        "mcp_core/http/client/_streamable.py",
        'SessionDelete(), b"DELETE"',
        'SessionDelete(), b"GET"',
    ),
    Mutation(
        ("SHL-27", "AU-6"),
        "mcp_core/http/server/_endpoint.py",
        "            or session.principal != exchange.principal\n",
        "",
    ),
    Mutation(
        ("SHL-28",),
        "mcp_core/http/client/_streamable.py",
        "            headers.append((PROTOCOL_VERSION, dialect.version.encode()))",
        "            pass",
    ),
    Mutation(
        ("SHL-30",),
        "mcp_core/http/server/_endpoint.py",
        'DIALECTS["2025-03-26"]',
        'DIALECTS["2025-06-18"]',
    ),
    Mutation(
        ("SHL-29", "SHL-32"),
        "mcp_core/http/server/_endpoint.py",
        "            return ErrorResponse(400, text)",
        "            return ErrorResponse(404, text)",
    ),
    Mutation(
        ("SHM-1", "SHM-2", "HDR-1"),
        "mcp_core/http/wire/_mcp_headers.py",
        "(METHOD, _encode_method(row.name))]",
        '(METHOD, b"x")]',
    ),
    Mutation(("SHM-5", "SHM-6"), "mcp_core/revisions/_dialects.py", "        -32601: 404,\n", ""),
    Mutation(("SHM-3", "HDR-3"), "mcp_core/revisions/_dialects.py", "        -32020: 400,\n", ""),
    Mutation(
        ("SHM-11", "CXL-14"),
        "mcp_core/revisions/_dialects.py",
        "                disconnect_cancels=True,\n",
        "",
    ),
    Mutation(
        ("SHM-13",), "mcp_core/revisions/_dialects.py", "                resumable=False,\n", ""
    ),
    Mutation(
        ("SHM-15",),
        "mcp_core/http/server/_exchange.py",
        'b"x-accel-buffering", b"no"',
        'b"x-accel-buffering", b"yes"',
    ),
    Mutation(
        ("SHM-14",),
        "mcp_core/http/server/_endpoint.py",
        "        id = None if modern else headers.get(SESSION_ID)",
        "        id = headers.get(SESSION_ID)",
    ),
    Mutation(
        ("HDR-2",),
        "mcp_core/revisions/_methods.py",
        'input_ok=True, name_field="name"),',
        "input_ok=True),",
    ),
    Mutation(
        ("HDR-4",),
        "mcp_core/http/wire/_mcp_headers.py",
        "        return None if text == name else _mismatch(NAME, text, name)",
        "        return None if text.lower() == name.lower() else _mismatch(NAME, text, name)",
    ),
    Mutation(
        ("HDR-8",),
        "mcp_core/schema/_param_headers.py",
        'return "true" if value else "false"',
        'return "1" if value else "0"',
    ),
    Mutation(
        ("HDR-12",),
        "mcp_core/schema/_param_headers.py",
        '_TYPES: Final = ("string", "integer", "boolean")',
        '_TYPES: Final = ("string", "integer", "boolean", "number")',
    ),
    Mutation(
        ("HDR-17",),
        "mcp_core/http/wire/_mcp_headers.py",
        "                    self._repeated.add(name)",
        "                    pass",
    ),
    Mutation(
        ("HDR-18",),
        "mcp_core/connection/_admission.py",
        'if has_duplicates(raw, "_meta"):',
        "if raw == b'':",
    ),
    # HTTP+SSE, opening
    Mutation(
        ("SSE-1", "SSE-2", "PROBE-8"),
        "mcp_core/http/server/_endpoint.py",
        'event=b"endpoint"',
        'event=b"message"',
    ),
    Mutation(
        ("SSE-5",),
        "mcp_core/http/client/_sse_transport.py",
        "        if endpoint.origin != self.client.url.origin:",
        "        if endpoint is None:",
    ),
    Mutation(
        ("PROBE-2",),
        "mcp_core/connection/_negotiation.py",
        '        return f"it answered server/discover with {reply.error}"',
        '        raise ConnectFailed("no")',
    ),
    Mutation(
        ("PROBE-3", "PROBE-10"),
        "mcp_core/connection/_negotiation.py",
        "    return error.code in MODERN_ERRORS or (",
        "    return (",
    ),
    Mutation(
        ("PROBE-6", "PROBE-7"),
        "mcp_core/http/client/_requests.py",
        "frozenset({400, 404, 405})",
        "frozenset({400})",
    ),
    Mutation(
        ("PROBE-9",),
        "mcp_core/connection/_negotiation.py",
        "status in _INCONCLUSIVE or status >= 500 or",
        "status >= 500 or",
    ),
    # Error codes, custom transports and methods, our decisions
    Mutation(
        ("ERR-1",),
        "mcp_core/revisions/_dialects.py",
        "Fault.INTERNAL: -32603",
        "Fault.INTERNAL: -32000",
    ),
    Mutation(
        ("ERR-6",),
        "mcp_core/revisions/_dialects.py",
        "Fault.HEADER_MISMATCH: -32020",
        "Fault.HEADER_MISMATCH: -32001",
    ),
    Mutation(
        ("ERR-7", "ERR-9"),
        "mcp_core/revisions/_dialects.py",
        "Fault.BUSY: 429,",
        "Fault.BUSY: -32029,",
    ),
    Mutation(
        ("ERR-10",),
        "mcp_core/connection/_connection.py",
        "        call = self._outgoing.table.pop(id, None)\n        if call is not None:\n            self._fail_request(id, call, error, ",
        "        call = self._outgoing.table.pop(id, None)\n        if call is not None:\n            self._fail_request(id, call, PeerError(0, str(error)), ",
    ),
    Mutation(
        ("ERR-11",),
        "mcp_core/connection/_negotiation.py",
        "MODERN_ERRORS: Final = frozenset(\n    code",
        "MODERN_ERRORS: Final = frozenset((-32001, -32003, -32004)) | frozenset(\n    code",
    ),
    Mutation(("CUST-2",), "docs/howto/websockets.md", "## The protocol\n", "## The rules\n"),
    Mutation(
        ("CUST-3",),
        "mcp_core/connection/_admission.py",
        "    if row is None and method in _DEFINED:",
        "    if row is None and not method:",
    ),
    Mutation(
        ("DEC-2",), "mcp_core/http/server/_exchange.py", "self.rules.statuses.get(code, 200)", "200"
    ),
    Mutation(
        ("DEC-3",),
        "mcp_core/revisions/_dialects.py",
        "Dialect(R_2025_03_26, null_error_id=True, ",
        "Dialect(R_2025_03_26, ",
    ),
    Mutation(
        ("DEC-5",),
        "mcp_core/http/server/_exchange.py",
        """body = b"[%b]" % b",".join([data for _, data, _ in stream.messages])""",
        """body = stream.messages[0][1]""",
    ),
    Mutation(
        ("DEC-9",),
        "mcp_core/_limits.py",
        "message: int = 4 * 1024 * 1024",
        "message: int = 8 * 1024 * 1024",
    ),
    Mutation(("DEC-11",), "mcp_core/http/wire/_media_types.py", ', b"*/*"):', "):"),
    Mutation(
        ("DEC-12",),
        "mcp_core/connection/_requests.py",
        "        if len(self.waiting) < limits.waiting:",
        "        if len(self.waiting) < 2 * limits.waiting:",
    ),
    Mutation(
        ("AG-1",),
        "mcp_core/http/wire/_mcp_headers.py",
        "proxy-connection expect accept accept-encoding",
        "proxy-connection authorization expect accept accept-encoding",
    ),
    Mutation(
        ("ELIC-18",),
        "mcp_core/urls/_page.py",
        '    if host.startswith(_PUNYCODE) or f".{_PUNYCODE}" in host:',
        "    if not host:",
    ),
    Mutation(
        ("ELIC-20",),
        "mcp_core/input_requests/_request_state.py",
        '_hmac(key, b"principal " + principal.encode',
        '_hmac(key, b"principal " + principal[:0].encode',
    ),
    # Authorization: transports, resource servers
    Mutation(
        ("AG-2",),
        "mcp_core/http/client/_response.py",
        "connect with auth=True, or log in with",
        "connect with a token, or log in with",
    ),
    Mutation(
        ("AG-4", "AR-2"),
        "mcp_core/auth/server/_resource_server.py",
        '            "authorization_servers": self._issuers,\n',
        '            "authorization_servers": [],\n',
    ),
    Mutation(
        ("AG-6",),
        "mcp_core/auth/client/_profile.py",
        '        if parts.scheme != "https" and not (',
        "        if not parts.scheme and not (",
    ),
    Mutation(
        ("AG-7",),
        "mcp_trio/auth/_storage.py",
        "(state.st_mode & _GROUP_AND_OTHERS or state.st_uid != os.geteuid())",
        "(state.st_uid != os.geteuid())",
    ),
    Mutation(
        ("AG-7",),
        "mcp_trio/auth/_storage.py",
        "        if state.st_mode & _WRITABLE_BY_OTHERS:",
        "        if not state.st_mode:",
    ),
    Mutation(
        ("AG-7",),
        "mcp_trio/auth/_keyring.py",
        "    keychains = [each for each in found if core.recommended(each)]",
        "    keychains = found",
    ),
    Mutation(
        ("AG-8", "AX-1", "AX-2"),
        "mcp_core/auth/client/_profile.py",
        "        return {name: {}} if name is not None else {}",
        "        return {}",
    ),
    Mutation(
        ("AR-1", "AR-10"),
        "mcp_core/auth/server/_protected_resource.py",
        "        return AuthDenial(401, text, challenges, printable(problem))",
        "        return AuthDenial(403, text, challenges, printable(problem))",
    ),
    Mutation(
        ("AR-3", "AR-4"),
        "mcp_core/auth/server/_resource_server.py",
        '        self._challenge_parameters["resource_metadata"] = urls[0]\n',
        "",
    ),
    Mutation(
        ("AR-5", "AR-7"),
        "mcp_core/auth/server/_protected_resource.py",
        '"insufficient_scope", description, needed, scheme=scheme',
        '"insufficient_scope", description, missing, scheme=scheme',
    ),
    Mutation(
        ("AR-6",),
        "mcp_core/auth/server/_protected_resource.py",
        'self._deny(403, "insufficient_scope",',
        'self._deny(401, "insufficient_scope",',
    ),
    Mutation(
        ("AR-8",),
        "mcp_core/auth/server/_protected_resource.py",
        "if not self._satisfies(grant.scopes, scope)",
        "if scope not in grant.scopes",
    ),
    Mutation(
        ("AR-5", "AR-7"),
        "mcp_core/auth/server/_scopes.py",
        "needed += self._by_prompt(params.ref.name)",
        "needed += ()",
    ),
    Mutation(
        ("AR-9",),
        "mcp_core/auth/server/_scopes.py",
        ' and scope != "offline_access"\n',
        "\n",
    ),
    Mutation(
        ("AR-11",),
        "mcp_core/auth/server/_grant.py",
        "    if not any(name in audience for name in names):",
        "    if not names:",
    ),
    Mutation(
        ("AR-13",),
        "mcp_core/http/server/_endpoint.py",
        "        if self.auth is None or verb not in AUTHORIZED_VERBS:",
        "        if self.auth is None or verb not in AUTHORIZED_VERBS or any(name == SESSION_ID for name, _ in head.headers):",
    ),
    Mutation(
        ("AR-17", "AU-6"),
        "mcp_core/http/server/_endpoint.py",
        "        exchange.principal = grant.principal\n",
        "",
    ),
    # Discovery and registration
    Mutation(
        ("AC-1",),
        "mcp_core/auth/client/_discovery.py",
        '        search, f"{root}/.well-known/oauth-authorization-server"',
        '        search, f"{url}/.well-known/oauth-authorization-server"',
    ),
    Mutation(
        ("AC-2",),
        "mcp_core/auth/client/_discovery.py",
        'token_endpoint=f"{root}/token"',
        'token_endpoint=f"{root}/oauth/token"',
    ),
    Mutation(
        ("AC-3",), "mcp_core/auth/_server_metadata.py", ', ("mcp-protocol-version", LATEST)]', "]"
    ),
    Mutation(
        ("AC-4",),
        "mcp_core/auth/client/_challenge.py",
        'scopes=split_scopes(merged.get("scope", "")),',
        "scopes=(),",
    ),
    Mutation(
        ("AC-5", "AC-6"),
        "mcp_core/auth/_resource_urls.py",
        '    return [f"{known}{parts.path}{query}", known]',
        '    return [known, f"{known}{parts.path}{query}"]',
    ),
    Mutation(
        ("AC-7",),
        "mcp_core/auth/client/_discovery.py",
        "(names_host(resource, url) and is_root_metadata_url(location, url))",
        "names_host(resource, url)",
    ),
    Mutation(
        ("AC-8",),
        "mcp_core/auth/client/_discovery.py",
        "issuer = preferred or offered[0]",
        "issuer = offered[0]",
    ),
    Mutation(
        ("AC-10", "AC-11"),
        "mcp_core/auth/_resource_urls.py",
        '("oauth-authorization-server", "openid-configuration")',
        '("openid-configuration", "oauth-authorization-server")',
    ),
    Mutation(
        ("AC-12",),
        "mcp_core/auth/_server_metadata.py",
        "        if metadata.issuer != issuer:",
        "        if metadata.issuer.rstrip('/') != issuer.rstrip('/'):",
    ),
    Mutation(
        ("AC-13", "AT-2"),
        "mcp_core/auth/client/_authorizer.py",
        "            self._tokens = None\n            self._unconfirmed = None\n            self._dpop_signer = None\n",
        "            pass\n",
    ),
    Mutation(
        ("AC-14",),
        "mcp_core/auth/_server_metadata.py",
        "        if reply.status >= 500 or",
        "        if reply.status >= 600 or",
    ),
    Mutation(
        ("AQ-2",),
        "mcp_core/auth/client/_registration.py",
        "and server.client_id_metadata_document_supported:",
        "and not server.registration_endpoint:",
    ),
    Mutation(
        ("AQ-6",),
        "mcp_core/auth/client/_registration.py",
        '        "application_type": profile.application_type,\n',
        "",
    ),
    Mutation(
        ("AQ-7",),
        "mcp_core/auth/client/_registration.py",
        '    return f"client:{issuer}"',
        '    return "client"',
    ),
    Mutation(
        ("AQ-7",),
        "mcp_core/auth/client/_registration.py",
        "(registration.issuer, registration.redirect_uri) != (issuer, redirect_uri)",
        "registration.redirect_uri != redirect_uri",
    ),
    Mutation(
        ("AQ-7",),
        "mcp_core/auth/client/_profile.py",
        "            self._check_no_credentials()\n",
        "            pass\n",
    ),
    Mutation(
        ("AQ-8",),
        "mcp_core/auth/client/_registration.py",
        '["authorization_code", "refresh_token"]',
        '["authorization_code"]',
    ),
    Mutation(
        ("AQ-9",),
        "mcp_core/auth/client/_registration.py",
        '"redirect_uris": [redirect_uri]',
        '"redirect_uris": [profile.redirect_uri]',
    ),
    Mutation(
        ("AQ-10",),
        "mcp_core/auth/client/_registration.py",
        "    return _POST if _POST in supported and _BASIC not in supported else _BASIC",
        "    return _BASIC",
    ),
    # Logins and tokens
    Mutation(
        ("AF-1",),
        "mcp_core/auth/client/_callback.py",
        "return base64url(sha256(verifier.reveal().encode()).digest())",
        "return verifier.reveal()",
    ),
    Mutation(
        ("AF-2",),
        "mcp_core/auth/client/_callback.py",
        '    if "S256" not in (auth_server.metadata.code_challenge_methods_supported or ()):',
        '    if "S256" not in (auth_server.metadata.code_challenge_methods_supported or ("S256",)):',
    ),
    Mutation(
        ("AF-3",),
        "mcp_core/auth/client/_token_request.py",
        '        form["resource"] = self._auth_server.resource\n',
        "",
    ),
    Mutation(
        ("AF-4",),
        "mcp_core/auth/_resource_urls.py",
        '    path = "" if parts.path == "/" else parts.path\n',
        "    path = parts.path\n",
    ),
    Mutation(
        ("AF-5",),
        "mcp_core/auth/client/_callback.py",
        "    if state is None or Secret(state) != request.state:",
        "    if state is None:",
    ),
    Mutation(
        ("AF-5",),
        "mcp_core/auth/client/_callback.py",
        "        if not _is_same_place(callback, browse.redirect_uri):",
        "        if not callback:",
    ),
    Mutation(
        ("AF-6",),
        "mcp_core/auth/client/_authorizer.py",
        "            needed = auth_server.scopes or ()",
        "            needed = ()",
    ),
    Mutation(
        ("AF-7",),
        "mcp_core/auth/client/_authorizer.py",
        "        needed: Sequence[str] = challenge.scopes\n",
        "        needed: Sequence[str] = [each for each in challenge.scopes if each in (auth_server.scopes or ())]\n",
    ),
    Mutation(
        ("AF-9",),
        "mcp_core/auth/client/_callback.py",
        "    if issuer is None and iss_required:",
        "    if issuer is None and not issuer and not state:",
    ),
    Mutation(
        ("AF-10",),
        "mcp_core/auth/client/_callback.py",
        "    if issuer is not None and issuer != request.issuer:",
        "    if issuer is not None and issuer.lower().rstrip('/') != request.issuer.lower().rstrip('/'):",
    ),
    Mutation(
        ("AF-11",),
        "mcp_core/auth/client/_callback.py",
        '    state = _single_value(parameters, "state")\n',
        '    if _single_value(parameters, "error"):\n        raise _login_error(_single_value(parameters, "error"), None)\n    state = _single_value(parameters, "state")\n',
    ),
    Mutation(
        ("AT-1", "AT-8"),
        "mcp_core/auth/client/_authorizer.py",
        """return [("authorization", f"Bearer {tokens""",
        """return [("x-token", f"Bearer {tokens""",
    ),
    Mutation(
        ("AT-2",),
        "mcp_core/auth/client/_authorizer.py",
        "        if tokens is None or origin_of(url) != origin_of(self._url):",
        "        if tokens is None:",
    ),
    Mutation(
        ("AT-3",),
        "mcp_core/auth/client/_authorizer.py",
        '        if scopes and self._profile.offline_access and "offline_access" in supported:',
        "        if scopes and self._profile.offline_access:",
    ),
    Mutation(
        ("AT-4",),
        "mcp_core/auth/client/_authorizer.py",
        '            if self._unconfirmed == "login" and not must_bind:',
        '            if self._unconfirmed == "never":',
    ),
    Mutation(
        ("AT-5", "AT-7"),
        "mcp_core/auth/client/_authorizer.py",
        "        _put_bounded(self._step_ups, operation, count + 1)\n",
        "",
    ),
    Mutation(
        ("AT-5",),
        "mcp_core/auth/client/_authorizer.py",
        "not wanted <= set(self._profile.scopes or ())",
        "not wanted",
    ),
    Mutation(
        ("AT-6",),
        "mcp_core/auth/client/_authorizer.py",
        "dict.fromkeys((*self._requested_scopes, *(",
        "dict.fromkeys((*(",
    ),
    Mutation(
        ("AU-1", "AU-4"),
        "mcp_core/urls/_addresses.py",
        "    if parts.scheme not in DEFAULT_PORTS:",
        "    if not parts.scheme:",
    ),
    Mutation(
        ("AU-2",),
        "mcp_core/urls/_addresses.py",
        '    if parts.scheme == "http" and not (allow_loopback and is_loopback_host(host)):',
        '    if parts.scheme == "http" and not is_loopback_host(host):',
    ),
    Mutation(
        ("AU-3",),
        "mcp_core/urls/_addresses.py",
        '"127.0.0.0/8", "169.254.0.0/16",',
        '"127.0.0.0/8",',
    ),
    Mutation(
        ("AU-3",),
        "mcp_core/auth/client/_authorizer.py",
        "        elif named_by is not None:",
        '        elif named_by == "":',
    ),
    Mutation(
        ("AX-1",),
        "mcp_core/auth/client/_token_request.py",
        '            "aud": self._auth_server.issuer,\n',
        '            "aud": self._auth_server.resource,\n',
    ),
    Mutation(
        ("AX-2",),
        "mcp_core/auth/client/_token_request.py",
        "        if token.issued_token_type != _ID_JAG:",
        "        if token.issued_token_type is None:",
    ),
    Mutation(
        ("AX-3",),
        "mcp_core/auth/client/_dpop_signer.py",
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
    options = parser.parse_args(arguments)
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
