"""Short conversations for the tests of the judge."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from mcp_core.trace import Finding, Judge, TraceHeader, TraceLine
from mcp_core.trace.judge._revisions import MODERN

__all__ = [
    "CLIENT_CAPABILITIES",
    "EVERYTHING",
    "INFO",
    "META",
    "SERVER_CAPABILITIES",
    "C",
    "S",
    "Sent",
    "Start",
    "as_lines",
    "ask",
    "at",
    "error",
    "judge",
    "notify",
    "raw_client",
    "raw_server",
    "result",
]

META: Final = "io.modelcontextprotocol/"
INFO: Final = {"name": "x", "version": "1"}
Message: TypeAlias = dict[str, Any]

# Everything that each revision can declare.
CLIENT_CAPABILITIES: Final[Message] = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
    "tasks": {
        "list": {},
        "cancel": {},
        "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
    },
    "extensions": {META + "tasks": {}},
}
SERVER_CAPABILITIES: Final[Message] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
    "extensions": {META + "tasks": {}},
}
EVERYTHING: Final = (CLIENT_CAPABILITIES, SERVER_CAPABILITIES)
_CACHEABLE: Final = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)


class Sent(NamedTuple):
    """One line of a conversation: its sender, and a message or the text of the line.

    `is_raw` keeps the message as it is: without it, messages of 2026-07-28 get the members that
    each of them must have.
    """

    sender: Literal["client", "server"]
    message: Any
    is_raw: bool = False


def C(message: Any) -> Sent:  # noqa: N802 - a column of the tables
    """Return a line from the client."""
    return Sent("client", message)


def S(message: Any) -> Sent:  # noqa: N802
    """Return a line from the server."""
    return Sent("server", message)


def raw_client(message: Any) -> Sent:
    return Sent("client", message, True)


def raw_server(message: Any) -> Sent:
    return Sent("server", message, True)


def at(t: float, said: Sent) -> Sent:
    """Return a line that is sent `t` seconds after the beginning. Its message is kept as it is."""
    if isinstance(said.message, TraceLine):
        return Sent(said.sender, replace(said.message, t=t))
    return Sent(said.sender, TraceLine(t=t, sender=said.sender, raw=json.dumps(said.message)))


def ask(id: Any, method: str, **params: Any) -> Message:
    """Return a request. A trailing underscore of a name is left out: `from_`."""
    message: Message = {"jsonrpc": "2.0", "id": id, "method": method}
    return {**message, "params": _named(params)} if params else message


def notify(method: str, **params: Any) -> Message:
    message: Message = {"jsonrpc": "2.0", "method": method}
    return {**message, "params": _named(params)} if params else message


def result(id: Any, **members: Any) -> Message:
    return {"jsonrpc": "2.0", "id": id, "result": _named(members)}


def error(id: Any, code: Any = -32602, text: Any = "no", **members: Any) -> Message:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text, **members}}


def _named(members: dict[str, Any]) -> Message:
    return {key.rstrip("_") if key != "_meta" else key: value for key, value in members.items()}


class Start(NamedTuple):
    """How a conversation begins: with a handshake if its revision has one."""

    revision: str
    client: Message = CLIENT_CAPABILITIES
    server: Message = SERVER_CAPABILITIES

    def messages(self) -> list[Sent]:
        if self.revision in MODERN:
            return []
        info = {"name": "x", "version": "1"}
        return [
            C(
                ask(
                    "init",
                    "initialize",
                    protocolVersion=self.revision,
                    capabilities=self.client,
                    clientInfo=info,
                )
            ),
            S(
                result(
                    "init",
                    protocolVersion=self.revision,
                    capabilities=self.server,
                    serverInfo=info,
                )
            ),
            C(notify("notifications/initialized")),
        ]


def judge(
    start: Start | None, messages: list[Sent], revision: str = ""
) -> tuple[list[Finding], Judge]:
    """Judge a conversation that begins with `start`, and return the findings and the judge."""
    header = TraceHeader(format_version=1, observer="between", transport="stdio")
    judged = Judge(header, from_start=True)
    revision = start.revision if start is not None else revision
    findings: list[Finding] = []
    for line in as_lines(
        [*(start.messages() if start is not None else []), *messages], revision, start
    ):
        findings += judged.receive(line)
    findings += judged.close()
    return findings, judged


def as_lines(
    messages: Sequence[Sent], revision: str, start: Start | None = None
) -> Iterator[TraceLine]:
    """Yield the lines of a conversation."""
    methods: dict[Any, str] = {}
    for said in messages:
        message = said.message
        if revision in MODERN and not said.is_raw and isinstance(message, dict):
            message = _modern(said.sender, message, revision, methods, start)
        if isinstance(message, TraceLine):
            yield message
        elif isinstance(message, bytes):
            yield TraceLine(t=0.0, sender=said.sender, data=message)
        else:
            text = message if isinstance(message, str) else json.dumps(message)
            yield TraceLine(t=0.0, sender=said.sender, raw=text)


def _modern(
    sender: str,
    message: Message,
    revision: str,
    methods: dict[Any, str],
    start: Start | None,
) -> Message:
    """Return a message with the members that a revision without a handshake requires."""
    message = json.loads(json.dumps(message))
    if sender == "client" and "method" in message and "id" in message:
        methods[str(message["id"])] = message["method"]
        params = message.setdefault("params", {})
        meta = params.setdefault("_meta", {}) if isinstance(params, dict) else None
        if isinstance(meta, dict):
            declared = start.client if start is not None else CLIENT_CAPABILITIES
            meta.setdefault(META + "protocolVersion", revision)
            meta.setdefault(META + "clientCapabilities", declared)
            meta.setdefault(META + "clientInfo", INFO)
    if sender == "server" and isinstance(message.get("result"), dict):
        found = message["result"]
        found.setdefault("resultType", "complete")
        meta = found.setdefault("_meta", {})
        if isinstance(meta, dict):
            meta.setdefault(META + "serverInfo", INFO)
        is_complete = found["resultType"] == "complete"
        if methods.get(str(message.get("id"))) in _CACHEABLE and is_complete:
            found.setdefault("ttlMs", 0)
            found.setdefault("cacheScope", "private")
    return message
