"""Steps for HTTP alone: heads that are wrong, streams, sessions, bodies that don't end.

    head what method params     send a request with one wrong header. What: origin, null-origin,
                                near-origin (its host begins like this machine's name), host,
                                accept, type, version, method, name, session (one that doesn't
                                exist), no-session, none (no method); and for the call of a tool
                                with a repeated argument: argument (another one), no-argument,
                                bad-argument (no base64)
    get how                     open the standalone stream, which is read until the case ends:
                                stream, resume, unknown, other (resume the other client's after
                                its first event)
    delete how                  end the session: own, unknown
    half place                  send a part of a request, on a connection that stays open. Place:
                                where it stops: start, head, end (of the head), body, chunk-size,
                                chunk
    release                     close the connections and streams that other steps have left open

A step that belongs to another revision, such as the end of a session in 2026-07-28, does nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mcp_core.http import RequestHead
from mcp_trio.oracle.fuzz._fault import TargetFault, level_of, link_of
from mcp_trio.oracle.fuzz._revisions import dialect_of

from ._waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._play import Play

__all__ = ["HTTP_STEPS"]

FOREIGN_ORIGIN: Final = b"https://mcp-trio-fuzz.example"
PARAM_PREFIX: Final = b"mcp-param-"
UNKNOWN_SESSION: Final = b"00000000-mcp-trio-fuzz"
_HEADS: Final[Mapping[str, tuple[bytes, bytes | None]]] = {
    "origin": (b"origin", FOREIGN_ORIGIN),
    "null-origin": (b"origin", b"null"),
    "near-origin": (b"origin", b"http://localhost.mcp-trio-fuzz.example"),
    "host": (b"host", b"mcp-trio-fuzz.example"),
    "accept": (b"accept", b"text/html"),
    "type": (b"content-type", b"text/plain"),
    "version": (b"mcp-protocol-version", b"1999-12-31"),
    "method": (b"mcp-method", b"prompts/list"),
    "name": (b"mcp-name", b"mcp-trio-fuzz-other"),
    "session": (b"mcp-session-id", UNKNOWN_SESSION),
    "no-session": (b"mcp-session-id", None),
    "none": (b"mcp-method", None),
    "argument": (PARAM_PREFIX, b"mcp-trio-fuzz-other"),
    "no-argument": (PARAM_PREFIX, None),
    "bad-argument": (PARAM_PREFIX, b"=?base64?!?="),
}
HALF: Final = 30  # bytes of a body of 63 that aren't sent


async def _head(play: Play, what: str, method: str, params: Any = "absent") -> None:
    session = play.session
    change = _HEADS.get(what)
    if change is None or not session.is_open:
        return
    name, value = change
    is_mirrored = dialect_of(session.revision).http.mirrored_headers
    if name in (b"mcp-method", b"mcp-name", PARAM_PREFIX) and not is_mirrored:
        return
    if what in ("session", "no-session") and session.session_id is None:
        return
    message = play.make_request(method, params)
    headers = session.headers_for(message)
    if name == PARAM_PREFIX:
        name = next((each for each, _ in headers if each.startswith(name)), b"")
        if not name:
            return
    headers = [each for each in headers if each[0] != name]
    if value is not None:
        headers.append((name, value))
    request = session.add_request(message, is_plain=False)
    request.is_owed = False
    session.last_sent = method
    body = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
    await session.post(body.encode("utf-8", "surrogatepass"), message, headers)
    await wait_until(play, lambda: request.answer is not None)
    if name == b"origin" and value and request.answer and "result" in request.answer:
        session.add_fault(
            TargetFault(
                kind="row",
                row="HTTP-1",
                method=method,
                level=level_of("HTTP-1"),
                # Another machine can be there for all, and pages in files are "null".
                is_certain=session.target.is_local and what != "null-origin",
                sentence=f"a request with the foreign Origin {value.decode()} is served",
                link=link_of("HTTP-1", session.revision),
            )
        )
    session.open.pop(request.id, None)


async def _get(play: Play, how: str) -> None:
    session = play.session
    if not session.is_open or not dialect_of(session.revision).http.sessions:
        return
    headers = [
        *((name, value) for name, value in session.headers_for(None) if name != b"accept"),
        (b"accept", b"text/event-stream"),
    ]
    if how == "resume" and session.event_id is not None:
        headers.append((b"last-event-id", session.event_id))
    elif how == "unknown":
        headers.append((b"last-event-id", b"mcp-trio-fuzz-none"))
    elif how == "other":
        other = play.clients.other
        last = None if other is None else other.first_event_id or other.event_id
        if last is None:
            return
        headers.append((b"last-event-id", last))
    await session.open_stream(RequestHead(b"GET", session.target.path, headers))


async def _delete(play: Play, how: str) -> None:
    session = play.session
    has_sessions = dialect_of(session.revision).http.sessions
    if not session.is_open or not has_sessions or session.session_id is None:
        return
    if how == "own":
        session.spent = True
        await session.delete()
        session.is_open = False
        return
    await session.delete(UNKNOWN_SESSION)


async def _half(play: Play, place: str = "body") -> None:
    session = play.session
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {}}}
    whole = session.encode_post(body)
    head, end, text = whole.partition(b"\r\n\r\n")
    chunked = head.rpartition(b"\r\n")[0] + b"\r\ntransfer-encoding: chunked" + end
    data = {
        "start": head[:4],
        "head": head[: len(head) // 2],
        "end": head + end,
        "chunk-size": chunked + b"%x" % len(text),
        "chunk": chunked + b"%x\r\n" % len(text) + text[:-HALF],
    }.get(place, whole[:-HALF])
    await session.hold(data)


async def _release(play: Play) -> None:
    await play.session.release()


HTTP_STEPS: Final[Mapping[str, Any]] = {
    "head": _head,
    "get": _get,
    "delete": _delete,
    "half": _half,
    "release": _release,
}
