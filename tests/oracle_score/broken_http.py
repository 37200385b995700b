"""Operators over HTTP: heads that aren't compared, wrong statuses, sessions that leak, streams."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core.http import RequestHead
from tests.oracle_score.broken_messages import NEW, OLD
from tests.oracle_score.http_wrapper import HttpExchange, HttpOperator, HttpReply
from tests.oracle_score.operators import TABLE
from tests.oracle_score.talks import Visit, visit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle_score.http_wrapper import HttpMutantTarget

Json = dict[str, Any]
WHOLE: Final = ("whole", "all")
META: Final = "io.modelcontextprotocol/"
LIST: Final[tuple[Any, ...]] = ("request", "tools/list", {}, "int")
LOCATE: Final = {"name": "locate", "arguments": {"region": "x"}}
ECHO: Final = ("call", "echo", {"text": "x"}, ())


def _old(*steps: Any) -> Visit:
    return visit([("open", OLD, *WHOLE), *steps])


def _new(*steps: Any) -> Visit:
    return visit([("open", NEW, *WHOLE), *steps])


def _fits_in_header(text: str) -> bool:
    """Return True if a text can be the value of a header as it is (RFC 9110, section 5.5)."""
    return text.isascii() and text.isprintable() and text == text.strip() != ""


class IgnoreHead(HttpOperator):
    """Doesn't compare or check what a header says."""

    def ask(self, exchange: HttpExchange) -> HttpReply | None:
        message, place = exchange.message, self.place
        is_new = exchange.get(b"mcp-protocol-version") == NEW.encode() or b"mcp-method" in dict(
            exchange.headers
        )
        params = message.get("params")
        if place == "Origin":
            exchange.set(b"origin", None)
        elif place == "Mcp-Name" and is_new and isinstance(params, dict):
            name = params.get("name", params.get("uri"))
            if isinstance(name, str) and exchange.get(b"mcp-name") and _fits_in_header(name):
                exchange.set(b"mcp-name", name.encode())
        elif place == "Mcp-Method" and is_new and _fits_in_header(exchange.rpc_method):
            exchange.set(b"mcp-method", exchange.rpc_method.encode())
        elif place == "Mcp-Method that is there" and exchange.get(b"mcp-method"):
            if not exchange.rpc_method or _fits_in_header(exchange.rpc_method):
                exchange.set(b"mcp-method", exchange.rpc_method.encode() or None)
        elif place == "Mcp-Param" and isinstance(params, dict) and params.get("name") == "locate":
            arguments = params.get("arguments")
            region = arguments.get("region") if isinstance(arguments, dict) else None
            if isinstance(region, str) and _fits_in_header(region):
                exchange.set(b"mcp-param-region", region.encode())
        elif place == "the version of a session" and exchange.get(b"mcp-session-id"):
            exchange.set(b"mcp-protocol-version", OLD.encode())
        elif place == "the version of a request" and is_new and isinstance(params, dict):
            meta = params.get("_meta")
            found = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
            if isinstance(found, str) and _fits_in_header(found):
                exchange.set(b"mcp-protocol-version", found.encode())
        return None


TABLE.add(
    "ignore-head",
    "A header is not checked, or not compared with the body.",
    IgnoreHead,
    {
        "Origin": ("HTTP-1", _old(("head", "origin", "tools/list", {}))),
        "Mcp-Name": (
            "HDR-3",
            _new(("head", "name", "tools/call", {"name": "echo", "arguments": {"text": "x"}})),
        ),
        "Mcp-Method": ("HDR-3", _new(("head", "none", "tools/list", {}))),
        "Mcp-Method that is there": ("HDR-3", _new(("head", "method", "tools/list", {}))),
        "Mcp-Param": (
            "HDR-11",
            _new(("page", "tools/list", "all"), ("head", "argument", "tools/call", LOCATE)),
        ),
        "the version of a session": ("SHL-29", _old(("head", "version", "ping", {}))),
        "the version of a request": ("SHM-3", _new(("head", "version", "tools/list", {}))),
    },
    server="http",
)


_STATUSES: Final[dict[tuple[str, Any], int]] = {
    ("200 for an unknown method", -32601): 200,
    ("200 for a wrong header", -32020): 200,
}


class WrongStatus(HttpOperator):
    """Gives responses another status or type."""

    def reply(self, exchange: HttpExchange, reply: HttpReply) -> None:
        error = _decoded(reply.body).get("error", {})
        code = error.get("code") if isinstance(error, dict) else None
        is_notification = exchange.method == b"POST" and "id" not in exchange.message
        place = self.place
        if place == "200 for a notification" and is_notification and reply.status == 202:
            reply.status, reply.body = 200, b"{}"
            reply.set(b"content-type", b"application/json")
        elif place == "204 for a notification" and is_notification and reply.status == 202:
            reply.status = 204
        elif (place, code) in _STATUSES:
            reply.status = _STATUSES[place, code]
        elif place == "text/plain" and exchange.rpc_method == "tools/list":
            reply.set(b"content-type", b"text/plain")
        elif place == "buffered streams" and reply.get(b"content-type").startswith(b"text/event"):
            reply.set(b"x-accel-buffering", None)
        elif place == "a session id with a space" and exchange.rpc_method == "initialize":
            if reply.get(b"mcp-session-id"):
                self.kept["id"] = reply.get(b"mcp-session-id")
                reply.set(b"mcp-session-id", b"a b " + reply.get(b"mcp-session-id"))
        elif place == "JSON for GET" and exchange.method == b"GET" and reply.status == 200:
            reply.set(b"content-type", b"application/json")

    def ask(self, exchange: HttpExchange) -> HttpReply | None:
        given = exchange.get(b"mcp-session-id")
        if given.startswith(b"a b "):
            exchange.set(b"mcp-session-id", given[4:])
        if self.place == "JSON for GET" and exchange.method == b"GET":
            return HttpReply(200, [(b"content-type", b"application/json")], b"{}")
        return None


def _decoded(body: bytes | None) -> Json:
    try:
        found = json.loads(body or b"")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


TABLE.add(
    "wrong-status",
    "A response has another status, type or header.",
    WrongStatus,
    {
        "200 for a notification": ("HTTP-9", _old(("notify", "notifications/roots/list_changed"))),
        "204 for a notification": ("HTTP-9", _old(("notify", "notifications/roots/list_changed"))),
        "200 for an unknown method": ("SHM-5", _new(("request", "acme/none", {}, "int"))),
        "200 for a wrong header": ("SHM-6", _new(("head", "name", "tools/call", LOCATE))),
        "text/plain": ("HTTP-8", _old(LIST)),
        "buffered streams": ("SHM-15", _new(("call", "count", {"to": 2}, ("progress",)))),
        "a session id with a space": ("SHL-21", _old(LIST)),
        "JSON for GET": ("SHL-11", _old(("get", "stream"))),
    },
    server="http",
)


# Requests that another session gets, and results that the next one gets, by the place.
_MOVED: Final = {
    "levels of another one": "logging/setLevel",
    "subscriptions of another one": "resources/subscribe",
}
_MAX_EVENTS: Final = 1_000
_MIXED: Final = {
    "results of another one": ("tools/call", "echo"),
    "prompts of another one": ("prompts/get", "greet"),
}


def _params(exchange: HttpExchange) -> Json:
    found = exchange.message.get("params")
    return found if isinstance(found, dict) else {}


def _change_params(exchange: HttpExchange, params: Json) -> None:
    exchange.message = {**exchange.message, "params": params}
    exchange.body = json.dumps(exchange.message).encode()


class LeakSession(HttpOperator):
    """Mixes sessions."""

    def ask(self, exchange: HttpExchange) -> HttpReply | None:
        given = exchange.get(b"mcp-session-id")
        ended: set[bytes] = self.kept.setdefault("ended", set())
        known: list[bytes] = self.kept.setdefault("known", [])
        place = self.place
        if place == "DELETE ends nothing" and exchange.method == b"DELETE" and given in known:
            return HttpReply(200, [], b"")
        if place == "DELETE ends another one" and exchange.method == b"DELETE":
            others = [each for each in known if each != given and each not in ended]
            if others and given in known:
                ended.add(others[-1])
                exchange.set(b"mcp-session-id", others[-1])
        elif place == "unknown session" and given and given not in known and known:
            exchange.set(b"mcp-session-id", known[-1])
        elif place == "no session" and not given and exchange.rpc_method not in ("", "initialize"):
            is_new = bool(exchange.get(b"mcp-method"))
            if known and not is_new:
                exchange.set(b"mcp-session-id", known[-1])
        elif exchange.rpc_method == _MOVED.get(place, "-"):
            others = [each for each in known if each not in (given, *ended)]
            if others:
                exchange.set(b"mcp-session-id", others[-1])
        if exchange.method == b"DELETE" and place in _MOVED:
            ended.add(given)
        return None

    def reply(self, exchange: HttpExchange, reply: HttpReply) -> None:
        id = reply.get(b"mcp-session-id")
        if id and exchange.rpc_method == "initialize":
            self.kept.setdefault("known", []).append(id)
            if self.place == "one id for all":
                first = self.kept["known"][0]
                reply.set(b"mcp-session-id", first)

    def messages(self, exchange: HttpExchange, message: Json) -> Iterator[Json]:
        given = exchange.get(b"mcp-session-id")
        asked = exchange.rpc_method, _params(exchange).get("name")
        if _MIXED.get(self.place) == asked and isinstance(message.get("result"), dict):
            former = self.kept.get("result")
            self.kept["result"] = (given, message["result"])
            if former is not None and former[0] != given:
                yield {**message, "result": former[1]}
                return
        yield message


class LeakValues(HttpOperator):
    """Keeps for all clients together: events, task ids, cursors, states and filters."""

    def ask(self, exchange: HttpExchange) -> HttpReply | None:
        params = _params(exchange)
        if self.place == "streams of another one" and exchange.method == b"GET":
            return self._resumed(exchange)
        if self.place == "task ids of another one":
            real = self.kept.get("tasks", {}).get(str(params.get("taskId")))
            if real is not None:
                exchange.set(b"mcp-name", real.encode() if exchange.get(b"mcp-name") else None)
                _change_params(exchange, {**params, "taskId": real})
        elif self.place == "cursors of another one" and "cursor" in params:
            last = self.kept.get(exchange.rpc_method, {})
            if params["cursor"] in last:
                cursor = {"cursor": last["last"]} if last["last"] else {}
                rest = {key: value for key, value in params.items() if key != "cursor"}
                _change_params(exchange, {**rest, **cursor})
        elif self.place == "filters of another one" and isinstance(
            own := params.get("notifications"), dict
        ):
            former, self.kept["filter"] = self.kept.get("filter", {}), own
            self.kept.setdefault("listens", []).append((exchange, own))
            lists = {name: True for name, wanted in former.items() if wanted is True}
            _change_params(exchange, {**params, "notifications": {**lists, **own}})
        elif self.place == "states of another one" and "requestState" in params:
            waiting = self.kept.get("waiting", {}).get(str(params.get("name")))
            if waiting is not None and params["requestState"] in self.kept["states"]:
                _change_params(exchange, {**params, **waiting})
        return None

    def pass_event(self, exchange: HttpExchange, block: bytes) -> None:
        id = next((each[3:].strip() for each in block.split(b"\n") if each[:3] == b"id:"), b"")
        if id and self.place == "streams of another one":
            events = self.kept.setdefault("events", [])
            events.append((id, exchange, block))
            del events[:-_MAX_EVENTS]

    def _resumed(self, exchange: HttpExchange) -> HttpReply | None:
        """Return the events after the one with the given id, whichever session has got it."""
        last, given = exchange.get(b"last-event-id"), exchange.get(b"mcp-session-id")
        events = self.kept.get("events", [])
        found = [place for place, (id, _, _) in enumerate(events) if last and id == last]
        if not found or events[found[-1]][1].get(b"mcp-session-id") == given:
            return None
        of = events[found[-1]][1]
        rest = [block + b"\n\n" for _, each, block in events[found[-1] + 1 :] if each is of]
        return HttpReply(200, [(b"content-type", b"text/event-stream")], b"".join(rest))

    def messages(self, exchange: HttpExchange, message: Json) -> Iterator[Json]:
        result = message.get("result")
        if message.get("method") == "notifications/subscriptions/acknowledged":
            own = [wanted for each, wanted in self.kept.get("listens", ()) if each is exchange]
            params = {**message["params"], **({"notifications": own[0]} if own else {})}
            yield {**message, "params": params}
        elif not isinstance(result, dict):
            yield message
        elif self.place == "task ids of another one":
            yield self._with_ids(exchange, message)
        else:
            yield message
            if "nextCursor" in result or exchange.rpc_method.endswith("/list"):
                known = self.kept.setdefault(exchange.rpc_method, {})
                known["last"] = result.get("nextCursor")
                known[result.get("nextCursor")] = True
            if result.get("resultType") == "input_required" and "requestState" in result:
                params = _params(exchange)
                waiting = self.kept.setdefault("waiting", {})
                waiting[str(params.get("name"))] = {
                    "arguments": params.get("arguments"),
                    "requestState": result["requestState"],
                }
                self.kept.setdefault("states", set()).add(result["requestState"])

    def _with_ids(self, exchange: HttpExchange, message: Json) -> Json:
        """Return a result with the task id that is made from the call's id."""
        result = message["result"]
        task = result.get("task", result)
        real = task.get("taskId") if isinstance(task, dict) else None
        ids, tasks = self.kept.setdefault("ids", {}), self.kept.setdefault("tasks", {})
        if isinstance(real, str) and exchange.rpc_method == "tools/call":
            made = hashlib.sha256(json.dumps(message.get("id")).encode()).hexdigest()[:32]
            ids[real], tasks[made] = made, real
        text = json.dumps(message)
        for known, made in ids.items():
            text = text.replace(known, made)
        found: Json = json.loads(text)
        return found


async def _opened(target: HttpMutantTarget) -> Any:
    """Return a session of another client, after its handshake."""
    from mcp_trio.oracle.fuzz.play._play import Play
    from mcp_trio.oracle.fuzz.play._waiting import exchange

    session = await target.open(keep=True)
    session.begin_case()
    session.revision, session.offers = OLD, "all"
    await exchange(Play(session, 2.0), "initialize", session.initialize_params(OLD))
    await session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    session.is_open = True
    return session


async def _settle(session: Any) -> None:
    while await session.wait_changed(trio.current_time() + 1):
        pass


async def _ask(session: Any, method: str, **params: Any) -> Json:
    message = {"jsonrpc": "2.0", "id": session.new_id("int"), "method": method, "params": params}
    await session.send(message)
    request = session.requests[-1]
    await _settle(session)
    return dict(request.answer or {})


async def _ended_is_served(target: HttpMutantTarget) -> bool:
    session = await _opened(target)
    await session.delete()
    return "result" in await _ask(session, "tools/list")


async def _other_is_ended(target: HttpMutantTarget) -> bool:
    one, other = await _opened(target), await _opened(target)
    await other.delete()
    return "result" not in await _ask(one, "tools/list")


async def _results_are_mixed(target: HttpMutantTarget) -> bool:
    one, other = await _opened(target), await _opened(target)
    await _ask(one, "tools/call", name="echo", arguments={"text": "of one"})
    found = await _ask(other, "tools/call", name="echo", arguments={"text": "of the other"})
    return "of one" in json.dumps(found)


async def _ids_are_equal(target: HttpMutantTarget) -> bool:
    one, other = await _opened(target), await _opened(target)
    return bool(one.session_id == other.session_id)


async def _levels_are_mixed(target: HttpMutantTarget) -> bool:
    """The level that the second client sets is the first one's."""
    one, other = await _opened(target), await _opened(target)
    await _ask(other, "logging/setLevel", level="emergency")
    await _ask(one, "logging/setLevel", level="debug")
    await _ask(one, "tools/call", name="count", arguments={"to": 1})
    raws = [line.raw or "" for line in one.lines or () if line.sender == "server"]
    return not any("notifications/message" in raw for raw in raws)


async def _updates_are_mixed(target: HttpMutantTarget) -> bool:
    """The first client gets the update that only the second one has subscribed to."""
    one, other = await _opened(target), await _opened(target)
    stream = [*one.headers_for(None)[:1], (b"accept", b"text/event-stream")]
    stream.append((b"mcp-session-id", one.session_id))
    await one.open_stream(RequestHead(b"GET", target.path, stream))
    await _ask(other, "resources/subscribe", uri="note:///one")
    await _ask(other, "tools/call", name="change", arguments={"what": "note"})
    await _settle(one)
    return bool(one.updates)


async def _prompts_are_mixed(target: HttpMutantTarget) -> bool:
    one, other = await _opened(target), await _opened(target)
    await _ask(one, "prompts/get", name="greet", arguments={"name": "of one"})
    found = await _ask(other, "prompts/get", name="greet", arguments={"name": "of the other"})
    return "of one" in json.dumps(found)


async def _unknown_is_served(target: HttpMutantTarget) -> bool:
    session = await _opened(target)
    session.session_id = b"0123456789abcdef"
    return "result" in await _ask(session, "tools/list")


async def _none_is_served(target: HttpMutantTarget) -> bool:
    session = await _opened(target)
    session.session_id = None
    return "result" in await _ask(session, "tools/list")


TABLE.add(
    "leak-session",
    "One session ends, serves or is another one's.",
    LeakSession,
    {
        "DELETE ends nothing": ("SHL-24", visit(played=_ended_is_served)),
        "DELETE ends another one": ("SHL-24", visit(played=_other_is_ended)),
        "unknown session": ("SHL-24", visit(played=_unknown_is_served)),
        "no session": ("SHL-23", visit(played=_none_is_served)),
        "results of another one": ("RPC-7", visit(played=_results_are_mixed)),
        "one id for all": ("SHL-21", visit(played=_ids_are_equal)),
        "levels of another one": ("LOG-3", visit(played=_levels_are_mixed)),
        "subscriptions of another one": ("RES-5", visit(played=_updates_are_mixed)),
        "prompts of another one": ("RPC-7", visit(played=_prompts_are_mixed)),
    },
    server="http",
)


def _two(revision: str, *steps: Any) -> Visit:
    """Return a conversation of two clients. The second one's steps are in lists."""
    return visit(
        [
            ("open", revision, *WHOLE),
            ("on", 1, "open", revision, *WHOLE),
            *(("on", 1, *each[0]) if isinstance(each, list) else each for each in steps),
        ]
    )


def _confirm(text: str) -> tuple[Any, ...]:
    return ("call", "confirm", {"text": f"the text of the {text} client"}, ())


WAIT: Final = ("wait",)
RETRY: Final = ("retry", 0, "right")
COUNTED: Final = ("call", "count", {"to": 2}, ("progress",))
WORK: Final = ("call", "work", {"minutes": 1}, ("task",))
ALL_TOOLS: Final = ("page", "tools/list", "all")
MINE, THEIRS = _confirm("first"), _confirm("second")
TABLE.add(
    "leak-values",
    "An event, a task, a page or a state of one client is the other one's.",
    LeakValues,
    {
        "streams of another one": ("SHL-19", _two(OLD, COUNTED, WAIT, [("get", "other")], [WAIT])),
        "task ids of another one": (
            "TX-23",
            _two(NEW, *[WORK] * 2, WAIT, *[[WORK]] * 2, [WAIT]),
        ),
        "cursors of another one": (
            "PAGE-1",
            _two(OLD, LIST, WAIT, [ALL_TOOLS], ("page", "tools/list", "rest")),
        ),
        "filters of another one": (
            "SUB-2",
            _two(
                NEW,
                ("listen", {"toolsListChanged": True}),
                *([("listen", {})], [WAIT]),
                ("call", "change", {"what": "tools"}, ()),
                *(WAIT, [LIST], [WAIT]),
            ),
        ),
        "states of another one": (
            "RPC-7",
            _two(
                NEW,
                *(ALL_TOOLS, MINE, WAIT, RETRY, WAIT),
                *([each] for each in (THEIRS, WAIT, RETRY, WAIT)),
                *(MINE, WAIT, [THEIRS], [WAIT], RETRY, WAIT),
            ),
        ),
    },
    server="http",
)


class BreakStream(HttpOperator):
    """Breaks the messages of responses."""

    def messages(self, exchange: HttpExchange, message: Json) -> Iterator[Json]:
        place = self.place
        is_response = "method" not in message
        # A second message in a body that is no stream breaks another row.
        is_call = exchange.rpc_method == "tools/call" and exchange.is_streamed
        if place == "goes on after the response" and is_response and is_call:
            yield message
            yield {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        elif place == "another id" and is_response and exchange.rpc_method == "prompts/list":
            yield {**message, "id": "other"}
        elif place == "responses twice" and is_response and is_call:
            yield message
            yield message
        elif place == "no response" and is_response and exchange.rpc_method == "prompts/get":
            return
        elif place == "the subscription's progress" and not is_response:
            is_listen = exchange.rpc_method == "subscriptions/listen"
            yield message
            if is_listen:
                params = {"progressToken": 1, "progress": 1}
                yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        else:
            yield message

    def ends_early(self, exchange: HttpExchange) -> bool:
        return self.place == "early end" and exchange.rpc_method == "tools/call"


def _progress(name: str = "count") -> tuple[Any, ...]:
    return ("call", name, {"to": 2}, ("progress",))


TABLE.add(
    "break-stream",
    "A response's stream has no response, a wrong one, or more than one.",
    BreakStream,
    {
        "goes on after the response": ("SHM-8", _new(_progress())),
        "another id": ("RPC-7", _old(("request", "prompts/list", {}, "int"))),
        "responses twice": ("RPC-7", _new(_progress())),
        "no response": ("RPC-35", _old(("request", "prompts/get", {"name": "plain"}, "int"))),
        "early end": ("RPC-35", visit([("open", "2025-06-18", *WHOLE), _progress()])),
        "the subscription's progress": (
            "PROG-3",
            _new(("listen", {"toolsListChanged": True}), ECHO, ("wait",), LIST, ("wait",)),
        ),
    },
    server="http",
)


class HangAtHalf(HttpOperator):
    """Serves nothing while a client is slow, or after something has gone wrong."""

    def ask(self, exchange: HttpExchange) -> HttpReply | None:
        place = self.place
        if (
            place == "500 after a broken body"
            and exchange.method == b"POST"
            and not exchange.message
        ):
            self.kept["broken"] = True
        if place == "500 after 100 requests":
            self.kept["count"] = self.kept.get("count", 0) + 1
            self.kept["broken"] = self.kept["count"] > 100
        if place == "500 after a foreign Origin" and exchange.get(b"origin"):
            self.kept["broken"] = True
        if self.kept.get("broken"):
            return HttpReply(500, [(b"content-type", b"text/plain")], b"internal error")
        return None


async def _fails_later(target: HttpMutantTarget) -> bool:
    session = await _opened(target)
    before = await _ask(session, "tools/list")
    await session.post(b'{"jsonrpc', None, session.headers_for(None))
    for _ in range(101):
        await session.post(b'{"jsonrpc', None, [*session.headers_for(None), (b"origin", b"null")])
    return "result" in before and "result" not in await _ask(session, "tools/list")


TABLE.add(
    "fail-later",
    "All requests get an error of the server after something that one client has sent.",
    HangAtHalf,
    {
        "500 after a broken body": ("RPC-35", visit(played=_fails_later)),
        "500 after 100 requests": ("RPC-35", visit(played=_fails_later)),
        "500 after a foreign Origin": ("RPC-35", visit(played=_fails_later)),
    },
    server="http",
)
