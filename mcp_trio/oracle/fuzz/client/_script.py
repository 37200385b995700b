"""The server that follows a case: a correct server, except where the case says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from mcp_trio.oracle.fuzz._revisions import META, dialect_of

from ._questions import QUESTIONS, find_question, is_declared
from ._results import TASK_ID, error_of, open_result, server_result, task_view
from ._wrong_answers import ANSWERS, JUNK, LAST_BEFORE_EMPTY, Action, encoded, is_lawful, send

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_trio.oracle.fuzz._case import Case

__all__ = ["PUSHES", "Reaction", "ScriptedServer"]

PING_TIMEOUT: Final = 3_600.0  # seconds; the player has its own timeout
REFUSED_TIMEOUT: Final = PING_TIMEOUT  # no user and no model has to answer it
ASK_TIMEOUT: Final = 0.2  # seconds for code of the client's author
_OPENING: Final = ("initialize", "server/discover")
_UNSUPPORTED: Final = -32022
# Seconds before the response to `initialize`, so that the client reads early messages first.
OPENING_DELAY: Final = 0.015
MAX_METHODS: Final = 100
# How often a client may follow what has no end: more pages, another round, the request again.
MAX_FOLLOWED: Final = 100
MAX_REJECTED: Final = 20  # the same for a rejected version, because each error takes its time
FLOODS: Final = (1, 30, 1_000)


class Reaction(Struct, kw_only=True):
    """The server's actions for one message of the client.

    Attributes:
        actions: in their order.
        place: the request's number in the case.
        method: the request's method.
        http: over HTTP, how the response is made wrong; "" if it isn't. `number` is the variant.
        opens: True if it answers `initialize` with a result.
        lasts: True if the response is a stream that doesn't end.
    """

    actions: list[Action] = field(default_factory=list)
    place: int = 0
    method: str = ""
    http: str = ""
    number: int = 0
    opens: bool = False
    lasts: bool = False


class ScriptedServer:
    """A server that follows a case.

    Call `receive` with each message of the client, and carry out the reaction that it returns.

    Attributes:
        revision: the conversation's revision; empty before the first request.
        disturbed: what the server has done wrong; see `EXCUSED`.
        requests: how many requests the client has sent.
        asked: the methods of the server's requests, by id. `responses` has what came back.
        declared: the client's capabilities.
        called: the names of the tools that the client has called.
        endless: what the client has followed without an end: the method, the kind of answer, and
            how often. None before that.
        skipped: the method of a list whose last page had an empty cursor that the client hasn't
            followed, after it had followed others. "" for none.
        last_page: the place of the request for that page.
        methods: the methods of the client's first requests.
        client_info: the client's name and version, as it gives them.
    """

    def __init__(self, case: Case, *, is_http: bool = False) -> None:
        first = case[0] if case and case[0][0] == "serve" and len(case[0]) == 3 else None
        self.revisions: tuple[str, ...] = tuple(first[1]) if first is not None else ()
        self.tools: tuple[str, ...] = tuple(first[2]) if first is not None else ()
        self.revision = ""
        self.disturbed: set[str] = set()
        self.requests = 0
        self.asked: dict[int | str, str] = {}
        self.responses: dict[int | str, Mapping[str, Any]] = {}
        self.declared: Mapping[str, Any] = {}
        self.called: list[str] = []
        self.endless: tuple[str, str, int] | None = None
        self.skipped = ""
        self.last_page = 0
        self.methods: list[str] = []
        self.client_info: Mapping[str, Any] = {}
        self._is_http = is_http
        self._answers: dict[int, tuple[str, int]] = {}
        self._always: dict[int, tuple[str, int]] = {}
        self._lasting: dict[str, tuple[str, int]] = {}  # by method
        self._followed: dict[str, int] = {}  # answers of `_lasting`, by method
        self._pushes: dict[int, list[tuple[str, int]]] = {}
        self._http: dict[int, tuple[str, int]] = {}
        self._next_id = 5_000
        self._last = max((_place(step) for step in case[1:]), default=-1)
        for step in case[1:]:
            if len(step) != 4:
                continue
            kind, how, place, number = step
            if kind == "answer":
                self._answers[place] = how, number
            elif kind == "always":
                self._always[place] = how, number
            elif kind == "push":
                self._pushes.setdefault(place, []).append((how, number))
            elif kind == "http":
                self._http[place] = how, number

    @property
    def is_over(self) -> bool:
        """True if each step of the case was played."""
        return self.requests > self._last

    def begin_conversation(self) -> None:
        """Forget the state of the client's connection before this one."""
        self.revision = ""
        self.declared = {}

    def receive(self, message: Mapping[str, Any]) -> Reaction | None:
        """Return the server's reaction to a message, None if it does nothing."""
        id, method = message.get("id"), message.get("method")
        if not isinstance(method, str):
            if isinstance(id, int | str) and id in self.asked:
                self.responses[id] = message
            return None
        if "id" not in message or not isinstance(id, int | str):
            return None
        place = self.requests
        self.requests += 1
        if place < MAX_METHODS:
            self.methods.append(method)
        response = self._right_response(message, method)
        how, number = self._next_answer(place, method)
        self._watch_pages(message, method, how, number)
        reaction = Reaction(place=place, method=method)
        for name, variant in self._pushes.get(place, ()):
            reaction.actions += self._push(name, variant, message)
        if self._is_http and place in self._http:
            reaction.http, reaction.number = self._http[place]
            self._disturb(method, "session", "pairing")
        answer = ANSWERS.get(how, ANSWERS["right"])
        self._disturb_by(how, number, method)
        if method == "subscriptions/listen" and "result" in response and how == "right":
            reaction.lasts = True
            reaction.actions += self._acknowledge(message)
            return reaction
        if "result" not in response and how not in _ALSO_FOR_ERRORS:
            answer = ANSWERS["right"]
        if method == "initialize":
            reaction.actions.append(Action(kind="pause", seconds=OPENING_DELAY))
        reaction.actions += answer(response, message, number)
        reaction.opens = method == "initialize" and "result" in response
        return reaction

    def _next_answer(self, place: int, method: str) -> tuple[str, int]:
        """Return how a request is answered, and the number of the variant."""
        if place in self._always:
            self._lasting[method] = self._always[place]
        if place in self._answers or method not in self._lasting:
            return self._answers.get(place, ("right", 0))
        how, number = self._lasting[method]
        self._followed[method] = self._followed.get(method, 0) + 1
        limit = MAX_REJECTED if how == "unsupported" else MAX_FOLLOWED
        if self._followed[method] > limit:
            self.endless = self.endless or (method, how, limit)
        return how, number

    def _watch_pages(self, message: Mapping[str, Any], method: str, how: str, number: int) -> None:
        """Note whether the client takes the empty cursor of a page for the end of the list."""
        params = message.get("params")
        cursor = params.get("cursor") if isinstance(params, dict) else None
        if method == self.skipped and cursor == "":
            self.skipped = ""
        if how == "page" and number % 2 and cursor == LAST_BEFORE_EMPTY:
            self.skipped, self.last_page = method, self.requests

    def _disturb_by(self, how: str, number: int, method: str) -> None:
        """Note what an answer disturbs."""
        if how == "output":
            return  # what the client then sends doesn't depend on it
        if how == "revision":
            self.disturbed |= {"revision"} if method in _OPENING else set()
        elif not is_lawful(how, number, method, self.revision):
            self._disturb(method, "pairing", "rounds")
        elif how == "input":
            self.disturbed.add("tasks")
        elif how in ("error", "unsupported") and method in _OPENING:
            self.disturbed.add("handshake")

    def _disturb(self, method: str, *groups: str) -> None:
        self.disturbed.update(groups)
        if method in _OPENING:
            self.disturbed.add("handshake")
        if method.endswith("/list"):
            self.disturbed.add("pages")
        self.disturbed.add("tasks")

    def _right_response(self, message: Mapping[str, Any], method: str) -> dict[str, Any]:
        id, params = message["id"], message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        version = meta.get(META + "protocolVersion")
        info = meta.get(META + "clientInfo") or params.get("clientInfo")
        self.client_info = info if isinstance(info, dict) else self.client_info
        if method == "initialize":
            result = open_result(message, self.revisions)
            if result is None:
                return self._unsupported(id, params.get("protocolVersion"))
            self.revision = result["protocolVersion"]
            self._declare(params.get("capabilities"))
            return {"jsonrpc": "2.0", "id": id, "result": result}
        revision = self.revision
        if version is None and not revision and any(each.startswith(META) for each in meta):
            # The judge says what is missing. A client that is refused would show no other faults.
            stateless = (each for each in self.revisions if not dialect_of(each).stateful)
            revision = self.revision = next(stateless, "")
        if isinstance(version, str):
            found = version if set(self.revisions) & {version} else ""
            if not found:
                return self._unsupported(id, version)
            revision = self.revision = found
            self._declare(meta.get(META + "clientCapabilities"))
        name = params.get("name")
        if method == "tools/call" and isinstance(name, str) and name not in self.called:
            self.called.append(name)
        result = server_result(method, params, revision, self.tools, self.revisions)
        if method == "subscriptions/listen" and not dialect_of(revision).stateful:
            result = {}
        if result is None:
            return error_of(id, -32601, f"there is no method {method[:100]}")
        return {"jsonrpc": "2.0", "id": id, "result": result}

    def _declare(self, capabilities: Any) -> None:
        self.declared = capabilities if isinstance(capabilities, dict) else {}

    def _unsupported(self, id: Any, version: Any) -> dict[str, Any]:
        if all(dialect_of(each).stateful for each in self.revisions):
            return error_of(id, -32601, "there is no such method")
        data = {"supported": list(self.revisions), "requested": str(version)}
        return error_of(id, _UNSUPPORTED, "unsupported protocol version", data)

    def _acknowledge(self, message: Mapping[str, Any]) -> list[Action]:
        params = message.get("params")
        wanted = params.get("notifications") if isinstance(params, dict) else None
        note = {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "_meta": {META + "subscriptionId": message["id"]},
                "notifications": wanted if isinstance(wanted, dict) else {},
            },
        }
        return [send(note)]

    # -- Before an answer --------------------------------------------------------------------------

    def _push(self, name: str, number: int, request: Mapping[str, Any]) -> list[Action]:
        push = PUSHES.get(name)
        if push is None or (request.get("method") == "initialize" and name in _NOT_BEFORE):
            return []
        return list(push(self, number, request))

    def begin_question(self) -> None:
        """Note what a question to the client disturbs, which some revisions don't have."""
        self.disturbed.add("tasks")
        if not self.revision or not dialect_of(self.revision).stateful:
            self.disturbed |= {"era", "pairing"}

    def ask(self, method: str, params: Any, seconds: float, number: int = 0) -> list[Action]:
        """Return the actions that send a request to the client and wait for its response."""
        self._next_id += 1
        id: int | str = f"server-{self._next_id}" if number % 5 == 4 else self._next_id
        self.asked[id] = method
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = params
        return [send(message), Action(kind="await", id=id, seconds=seconds)]


# Over HTTP there is no session before the response to `initialize`, and no stream.
_NOT_BEFORE: Final = (
    *("ping", "sampling", "elicitation", "roots", "unknown-request", "cancelled-request"),
)
# Answers that make sense when the right one is an error.
_ALSO_FOR_ERRORS: Final = (
    *("never", "close", "late", "id-type", "id-other", "odd-error", "odd-result", "half"),
    *("batch", "unsupported"),
)


def _place(step: tuple[Any, ...]) -> int:
    return step[2] if len(step) == 4 and isinstance(step[2], int) else -1


def _note(method: str, params: Any = None) -> Action:
    return send(
        {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
    )


def _variant(values: Any, number: int) -> Any:
    return values[number % len(values)]


def _ping(server: ScriptedServer, number: int, request: Mapping[str, Any]) -> list[Action]:
    if not server.revision or not dialect_of(server.revision).stateful:
        server.disturbed |= {"era", "pairing"}
        return server.ask("ping", None, ASK_TIMEOUT)
    return server.ask("ping", _variant((None, {}), number), PING_TIMEOUT, number)


def _asking(method: str) -> Any:
    def push(server: ScriptedServer, number: int, request: Mapping[str, Any]) -> list[Action]:
        server.begin_question()
        params, question = find_question(method, number, server.revision)
        if not question.fits(server.revision):
            server.disturbed |= {"pairing", "questions"}
        seconds = ASK_TIMEOUT if is_declared(method, server.declared) else REFUSED_TIMEOUT
        return server.ask(method, params, seconds, number // len(QUESTIONS[method]))

    return push


def _unknown_request(
    server: ScriptedServer, number: int, request: Mapping[str, Any]
) -> list[Action]:
    """Send a request that no client serves."""
    server.begin_question()
    method, params = _variant(_UNKNOWN, number)
    return server.ask(method, params, REFUSED_TIMEOUT)


_UNKNOWN: Final[tuple[tuple[str, Any], ...]] = (
    *(("acme/unknown", None), ("tools/list", None), ("", None), ("acme/unknown", {"a": 1})),
    *(("prompts/get", {}), ("initialize", {}), ("sampling/", None)),
)


def _request_and_cancel(
    server: ScriptedServer, number: int, request: Mapping[str, Any]
) -> list[Action]:
    """Send a request and cancel it at once."""
    server.begin_question()
    actions = server.ask("roots/list", None, ASK_TIMEOUT)
    note = _note("notifications/cancelled", {"requestId": actions[1].id, "reason": "no"})
    return [actions[0], note, actions[1]]


def _list_changed(server: ScriptedServer, number: int, request: Mapping[str, Any]) -> list[Action]:
    if not dialect_of(server.revision).stateful:
        server.disturbed.add("era")
    name = _variant(("tools", "prompts", "resources"), number)
    note = _note(f"notifications/{name}/list_changed")
    return [note] * _variant(FLOODS, number // 3)


def _progress(server: ScriptedServer, number: int, request: Mapping[str, Any]) -> list[Action]:
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    own: Any = "none" if token is None else token
    told = _variant(
        (
            [{"progressToken": own, "progress": each, "total": 3} for each in (1, 2, 3)],
            [{"progressToken": own, "progress": each} for each in (3, 2, 2, -1)],
            [{"progressToken": "unknown", "progress": 1}],
            [{"progressToken": own, "progress": "half"}, {"progress": 1}, {}],
            [{"progressToken": own, "progress": 1e308, "total": -1, "message": "\u001b[2J"}],
            [{"progressToken": own, "progress": each} for each in range(1_000)],
        ),
        number,
    )
    if token is None or number % 6:
        server.disturbed.add("pairing")
    return [_note("notifications/progress", each) for each in told]


def _log(server: ScriptedServer, number: int, request: Mapping[str, Any]) -> list[Action]:
    told: Any = _variant(
        (
            {"level": "info", "data": "one"},
            {"level": "loud", "data": None},
            {"level": 5},
            {"level": "error", "logger": ["a"], "data": {"a": [{}] * 50}},
            {"level": "info", "data": "\u001b]0;title\u0007\u202e"},
            {"level": "info", "data": "x" * 1_100_000},
            {"level": "info", "data": "x" * 6_000_000},
        ),
        number,
    )
    if number % 7 or not dialect_of(server.revision).stateful:
        server.disturbed.add("pairing")
    return [_note("notifications/message", told)]


def _wrong_notification(
    server: ScriptedServer, number: int, request: Mapping[str, Any]
) -> list[Action]:
    told: tuple[tuple[str, Any], ...] = (
        ("notifications/acme", {"a": 1}),
        ("notifications/acme", None),
        ("notifications/resources/updated", {"uri": "note:///none"}),
        ("notifications/resources/updated", {}),
        ("notifications/cancelled", {"requestId": request.get("id"), "reason": "no"}),
        ("notifications/cancelled", {"requestId": 123_456}),
        ("notifications/cancelled", {"requestId": None}),
        ("notifications/cancelled", {}),
        ("notifications/initialized", None),
        ("notifications/tools/list_changed", 82),
        ("notifications/tools/list_changed", []),
        ("notifications/tasks/status", task_view(server.revision, "working")),
        ("notifications/tasks/status", {"taskId": TASK_ID}),
        ("notifications/tasks", {"taskId": 5}),
        ("notifications/elicitation/complete", {"elicitationId": "none"}),
        ("notifications/subscriptions/acknowledged", {"_meta": {META + "subscriptionId": "none"}}),
        ("notifications/subscriptions/acknowledged", {}),
        ("tools/list", {}),
        ("", {}),
    )
    if number % len(told) > 1:  # a notification with an unknown method is legal
        server.disturbed |= {"pairing", "tasks"}
    return [_note(*_variant(told, number))]


def _response_to_nothing(
    server: ScriptedServer, number: int, request: Mapping[str, Any]
) -> list[Action]:
    server.disturbed.add("pairing")
    told: tuple[dict[str, Any], ...] = (
        {"jsonrpc": "2.0", "id": 424_242, "result": {}},
        {"jsonrpc": "2.0", "id": "none", "result": {}},
        error_of(None, -32700, "parse error"),
        error_of(424_242, -32603, "internal error"),
        error_of(0, -32603, "internal error"),
        {"jsonrpc": "2.0", "id": True, "result": {}},
    )
    return [send(_variant(told, number))]


def _junk(server: ScriptedServer, number: int, request: Mapping[str, Any]) -> list[Action]:
    server.disturbed |= {"pairing", "framing"}
    return [Action(kind="send", data=_variant(JUNK, number))]


def _empty_line(server: ScriptedServer, number: int, request: Mapping[str, Any]) -> list[Action]:
    return [Action(kind="send", data=_variant((b"", b"  ", b"\t"), number))]


def _note_batch(server: ScriptedServer, number: int, request: Mapping[str, Any]) -> list[Action]:
    server.disturbed |= {"pairing", "framing"}
    note = {"jsonrpc": "2.0", "method": "notifications/message"}
    note["params"] = {"level": "info", "data": "one"}  # type: ignore[assignment]
    ping = {"jsonrpc": "2.0", "id": 4_999, "method": "ping"}
    told = _variant(([note], [note, ping], [5], [[note]], [note] * 500), number)
    return [Action(kind="send", data=encoded(told))]


PUSHES: Final[dict[str, Any]] = {
    "ping": _ping,
    "sampling": _asking("sampling/createMessage"),
    "elicitation": _asking("elicitation/create"),
    "roots": _asking("roots/list"),
    "unknown-request": _unknown_request,
    "cancelled-request": _request_and_cancel,
    "list-changed": _list_changed,
    "progress": _progress,
    "log": _log,
    "notification": _wrong_notification,
    "response": _response_to_nothing,
    "junk": _junk,
    "empty-line": _empty_line,
    "batch": _note_batch,
}
"""What is sent before an answer, by name: functions of the server, the number, and the request."""
