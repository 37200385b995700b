"""A client for the tests of this folder: passes requests to a `Server` as a runtime does."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
from msgspec import Raw

from mcp_core import (
    DIALECTS,
    Connection,
    Dialect,
    McpError,
    Method,
    Peer,
    RequestReceived,
    Role,
)
from mcp_core.protocol.revisions._methods import METHODS
from mcp_core.registry import Context, Invocation, Server
from mcp_core.registry._input_requests import InputCollector
from mcp_core.runtime import Runtime, Service
from mcp_core.types import ClientCapabilities, ErrorData, Result

A, B, C, D, E = DIALECTS.values()
EVERY_DIALECT = (A, B, C, D, E)
ROWS: dict[str, Method] = {row.name: row for row in METHODS}


class Silent(Runtime):
    """A runtime that writes no log."""

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        raise AssertionError("nothing is served here")


def context_of(ask: RequestReceived, server: Server) -> Context:
    """Return the context of a function that serves `ask`."""
    service = Service(server, Connection(Role.SERVER, server.config()), Silent())
    return Context(InputCollector(service, ask))


def request(method: str | Method, params: Any = None, dialect: Dialect = E) -> RequestReceived:
    row = ROWS[method] if isinstance(method, str) else method
    raw = params if isinstance(params, bytes) else msgspec.json.encode(params or {})
    return RequestReceived(
        "id-1", row, row.read_params(raw), Peer(dialect, ClientCapabilities()), Raw(raw)
    )


def prepared(server: Server, method: str, params: Any = None, dialect: Dialect = E) -> Invocation:
    """Return the invocation for the request."""
    plan = server.answer(request(method, params, dialect))
    assert isinstance(plan, Invocation)
    return plan


def answered(server: Server, method: str | Method, params: Any = None, dialect: Dialect = E) -> Any:
    """Return the JSON of the result or of the error object.

    The exception of a handler has the reference "ref".
    """
    ask = request(method, params, dialect)
    answer: Any
    try:
        answer = server.answer(ask)
    except McpError as exc:
        answer = ErrorData(exc.code, exc.message, exc.data)
    if isinstance(answer, Invocation):
        answer = _run(answer, context_of(ask, server))
    if isinstance(answer, Result | ErrorData):
        return json.loads(dialect.encode(answer))
    return json.loads(msgspec.json.encode(answer))


def _run(plan: Invocation, context: Context) -> Any:
    try:
        value = plan.call(context if plan.wants_context else None)
        if plan.is_async:
            value = asyncio.run(_awaited(value))
        return plan.result(value)
    except BaseException as exc:  # noqa: BLE001 - as a runtime has to
        return plan.exception_response(exc, "ref")


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def called(server: Server, tool: str, arguments: Any = None, dialect: Dialect = E) -> Any:
    """Return the JSON of the response to `tools/call`."""
    params = {"name": tool} if arguments is None else {"name": tool, "arguments": arguments}
    return answered(server, "tools/call", params, dialect)


def text_of(result: Any) -> str:
    """Return the text of a result with a single text block."""
    (block,) = result["content"]
    assert block["type"] == "text"
    return str(block["text"])
