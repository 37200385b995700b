"""Steps that send something of their own: requests, calls, notifications and bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mcp_trio.oracle.fuzz._case import UNSUPPORTED_TASK, batch_members
from mcp_trio.oracle.fuzz._revisions import dialect_of

from ._play import Play
from ._stress_budget import MAX_CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_trio.oracle.fuzz._sent_request import SentRequest

__all__ = ["REQUEST_STEPS"]

MAX_BURST: Final = 500


async def _request(
    play: Play,
    method: str,
    params: Any = "absent",
    id: str | list[int | str] = "int",
    meta: str = "whole",
) -> None:
    await play.send(method, params, id, meta)


async def _call(play: Play, tool: str, arguments: Any, extra: tuple[str, ...] = ()) -> None:
    session = play.session
    handed: dict[str, Any] = {}
    if play.checks is not None:
        arguments, handed = await play.checks.prepare(session, tool, arguments)
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    is_task = "task" in extra or UNSUPPORTED_TASK in extra
    if is_task and dialect_of(session.revision).stateful:
        params["task"] = {"ttl": 60_000}
    more = {"progressToken": session.new_token()} if "progress" in extra else {}
    request = await play.send(
        "tools/call", params, "text" if "text" in extra else "int", extra_meta=more
    )
    if play.checks is not None:
        play.checks.note_handed(request, handed)


async def _hand(play: Play, tool: str, argument: str, value: str, place: int) -> None:
    if play.checks is not None:
        play.checks.hand(play.session, tool, argument, value, place)


async def _burst(play: Play, count: int, method: str, params: Any = "absent") -> None:
    # Over HTTP each request has a connection.
    limit = MAX_BURST if play.session.transport == "stdio" else MAX_CONNECTIONS
    for index in range(min(count, limit)):
        await play.send(method, params, "digits" if index % 3 == 0 else "int")


async def _batch(play: Play, members: list[Any]) -> None:
    """Send a batch. A server that rejects it gives one error, and no responses."""
    session = play.session
    messages: list[dict[str, Any]] = []
    requests: list[SentRequest] = []
    has_batches = dialect_of(session.revision).batches
    number = len(session.requests) + 1
    for method, params, id in batch_members(("batch", members)):
        if id is None:
            play.check_message(method, params)
            messages.append({"jsonrpc": "2.0", "method": method})
        else:
            messages.append(play.make_request(method, params, id))
            if has_batches:
                requests.append(session.add_request(messages[-1], is_plain=False))
                requests[-1].batch = number
    is_dropped = bool(requests) and session.drops(messages)
    for request in requests:
        request.is_dropped = request.is_dropped or is_dropped
    session.last_sent = "batch"
    await session.send_text(json.dumps(messages, separators=(",", ":")), {})
    if session.transport == "http" and session.last_status >= 300:
        for request in requests:
            session.open.pop(request.id, None)


async def _parts(play: Play, how: str, place: int) -> None:
    """Send a `tools/list` in two parts, with characters and escapes to be cut."""
    session = play.session
    message = play.make_request(
        "tools/list", {"_meta": {"com.example/cut": "\xe9\u8336\U0001f375"}}
    )
    body = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
    body = body.replace(b"list", b"l\\u0069st")
    cuts = (
        body.index(b"\xc3") + 1,
        body.index(b"\xf0") + 2,
        body.index(b"\\u0069") + 3,
        1,
        len(body) - 1,
        len(body) // 2,
    )
    session.add_request(message, is_plain=True)
    session.last_sent = "tools/list"
    await session.send_parts(body, message, how, cuts[place % len(cuts)])


async def _cancel(play: Play, place: int) -> None:
    session = play.session
    requests = [each for each in session.open.values() if not each.cancelled]
    if place < 0:
        await play.notify("notifications/cancelled", {"requestId": session.new_id("int")})
        return
    if not requests:
        return
    request = requests[place % len(requests)]
    if request.method == "initialize":
        return  # the one request that a client must not cancel
    play.before_cancel = len(session.requests)
    play.overdue_before_cancel = [each for each in session.open.values() if each.overdue]
    await play.cancel_request(request)


async def _reply(play: Play, id: int | str, members: dict[str, Any]) -> None:
    """Send a response to no request, in a revision in which clients respond."""
    session = play.session
    if dialect_of(session.revision).stateful:
        session.last_sent = "a response"
        await session.send({**members, "jsonrpc": "2.0", "id": id})


async def _mutate(play: Play, text: str) -> None:
    await play.send_bytes(text.encode("utf-8", "surrogatepass"))


async def _damage(play: Play, data: bytes) -> None:
    await play.send_bytes(data)


REQUEST_STEPS: Final[Mapping[str, Any]] = {
    "request": _request,
    "call": _call,
    "hand": _hand,
    "notify": Play.notify,
    "burst": _burst,
    "batch": _batch,
    "parts": _parts,
    "cancel": _cancel,
    "reply": _reply,
    "mutate": _mutate,
    "damage": _damage,
}
