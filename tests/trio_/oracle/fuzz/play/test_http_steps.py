"""Steps of the fuzzer that are for HTTP alone."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from mcp_trio.oracle.fuzz._call_guard import CallGuard
from mcp_trio.oracle.fuzz._sent_request import SentRequest
from mcp_trio.oracle.fuzz.play._http_steps import HTTP_STEPS
from mcp_trio.oracle.fuzz.play._play import Play
from mcp_trio.oracle.fuzz.play._player import Player
from tests.trio_.oracle.fuzz.memory_http import played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import OLD
from tests.trio_.oracle.fuzz.play.stub_play import StubSession

CALL = {"name": "wipe", "arguments": {}}


@pytest.mark.parametrize("is_allowed", [False, True])
async def test_wrong_head_of_a_call_is_sent_only_if_the_tool_may_be_called(
    autojump_clock: Any, is_allowed: bool
) -> None:
    case = [("open", OLD, "whole", "all"), ("head", "accept", "tools/call", CALL)]
    player = Player(guard=CallGuard({"wipe"} if is_allowed else set(), lambda: {"wipe"}))
    _, received = await played_over_http(response_to, case, player)
    assert ("tools/call" in [each.get("method") for each in received]) == is_allowed


# -- Each step, with a session that is a table -----------------------------------------------------

NEW = "2026-07-28"
HEADERS = [
    *((b"host", b"h"), (b"origin", b"o"), (b"accept", b"a"), (b"content-type", b"c")),
    *((b"mcp-session-id", b"s"), (b"mcp-method", b"m"), (b"mcp-param-a", b"p")),
]


class HttpStepSession(StubSession):
    """A session over HTTP that notes what is sent."""

    def __init__(self, **more: Any) -> None:
        values: dict[str, Any] = {
            "transport": "http",
            "session_id": b"s",
            "event_id": None,
            "first_event_id": None,
            "target": SimpleNamespace(is_local=True, path=b"/mcp"),
            "acts": [],
            "given": HEADERS,
            "answer": None,
        }
        super().__init__(**values | more)

    def headers_for(self, message: Any) -> list[tuple[bytes, bytes]]:
        return list(self.given)

    def add_request(self, message: Any, *, is_plain: bool) -> SentRequest:
        request = SentRequest(message, is_plain=is_plain, is_bounded=True)
        self.requests.append(request)
        self.open[request.id] = request
        return request

    async def post(self, body: bytes, message: Any, headers: Any) -> None:
        """Note a request, and respond to it at once if there is an answer."""
        assert json.loads(body) == message
        self.acts.append((message["method"], headers))
        self.requests[-1].answer = self.answer

    async def open_stream(self, head: Any) -> None:
        """Note a GET."""
        self.acts.append((head.method, head.target, list(head.headers)))

    async def delete(self, *id: bytes) -> None:
        """Note a DELETE."""
        self.acts.append(id)

    async def hold(self, data: bytes) -> None:
        """Note a part of a request."""
        self.acts.append(data)

    async def release(self) -> None:
        """Note the end of what is held."""
        self.acts.append("release")

    def encode_post(self, message: Any) -> bytes:
        body = json.dumps(message, separators=(",", ":")).encode()
        return b"POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(body) + body


async def step_of(name: str, *arguments: Any, **more: Any) -> Any:
    """Play one step, and return the session."""
    other = more.pop("other", None)
    play: Any = Play(HttpStepSession(**more), 2.0)
    play.clients.other = other
    await HTTP_STEPS[name](play, *arguments)
    return play.session


@pytest.mark.parametrize(
    ("what", "revision", "name", "value"),
    [
        ("origin", OLD, b"origin", b"https://mcp-trio-fuzz.example"),
        ("null-origin", OLD, b"origin", b"null"),
        ("near-origin", OLD, b"origin", b"http://localhost.mcp-trio-fuzz.example"),
        ("host", OLD, b"host", b"mcp-trio-fuzz.example"),
        ("accept", OLD, b"accept", b"text/html"),
        ("type", OLD, b"content-type", b"text/plain"),
        ("version", OLD, b"mcp-protocol-version", b"1999-12-31"),
        ("method", NEW, b"mcp-method", b"prompts/list"),
        ("name", NEW, b"mcp-name", b"mcp-trio-fuzz-other"),
        ("session", OLD, b"mcp-session-id", b"00000000-mcp-trio-fuzz"),
        ("no-session", OLD, b"mcp-session-id", None),
        ("none", NEW, b"mcp-method", None),
        ("argument", NEW, b"mcp-param-a", b"mcp-trio-fuzz-other"),
        ("no-argument", NEW, b"mcp-param-a", None),
        ("bad-argument", NEW, b"mcp-param-a", b"=?base64?!?="),
    ],
)
async def test_head_is_wrong_in_one_header(
    what: str, revision: str, name: bytes, value: bytes | None, autojump_clock: Any
) -> None:
    """No response is owed. It is waited for, and then the request is over."""
    session = await step_of("head", what, "tools/list", revision=revision)
    [(method, headers)] = session.acts
    assert method == session.last_sent == "tools/list"
    added = [] if value is None else [(name, value)]
    assert headers == [each for each in HEADERS if each[0] != name] + added
    [request] = session.requests
    assert (request.is_owed, request.is_plain, session.open) == (False, False, {})
    assert trio.current_time() == 2.0


@pytest.mark.parametrize(
    ("what", "more"),
    [
        ("acme", {}),
        ("origin", {"is_open": False}),
        ("session", {"session_id": None}),
        ("no-session", {"session_id": None}),
        *((each, {"revision": OLD}) for each in ("method", "name", "none", "argument")),
        *((each, {"revision": OLD}) for each in ("no-argument", "bad-argument")),
        ("argument", {"revision": NEW, "given": HEADERS[:-1]}),
        ("no-argument", {"revision": NEW, "given": HEADERS[:-1]}),
    ],
)
async def test_header_that_is_not_sent_cannot_be_wrong(
    what: str, more: Any, autojump_clock: Any
) -> None:
    session = await step_of("head", what, "tools/list", **more)
    assert (session.acts, session.requests, session.last_sent) == ([], [], "before")


@pytest.mark.parametrize(
    ("what", "is_local", "answer", "certain"),
    [
        ("origin", True, {"result": {}}, [True]),
        ("origin", False, {"result": {}}, [False]),
        ("null-origin", True, {"result": {}}, [False]),
        ("near-origin", True, {"result": {}}, [True]),
        ("host", True, {"result": {}}, []),
        ("origin", True, {"error": {}}, []),
        ("origin", True, None, []),
    ],
)
async def test_foreign_origin_that_is_served_is_a_fault(
    what: str, is_local: bool, answer: Any, certain: list[bool], autojump_clock: Any
) -> None:
    target = SimpleNamespace(is_local=is_local, path=b"/mcp")
    session = await step_of("head", what, "tools/list", target=target, answer=answer)
    assert [each.is_certain for each in session.found] == certain
    for fault in session.found:
        assert (fault.kind, fault.row, fault.method) == ("row", "HTTP-1", "tools/list")
        assert (fault.level, OLD in fault.link) == ("MUST", True)
        assert fault.sentence.startswith("a request with the foreign Origin ")
        assert fault.sentence.endswith(" is served")


@pytest.mark.parametrize(
    ("how", "more", "last"),
    [
        ("plain", {"event_id": b"9"}, None),
        ("resume", {"event_id": b"9"}, b"9"),
        ("resume", {}, None),
        ("unknown", {}, b"mcp-trio-fuzz-none"),
        ("other", {"other": HttpStepSession(first_event_id=b"1", event_id=b"2")}, b"1"),
        ("other", {"other": HttpStepSession(event_id=b"2")}, b"2"),
    ],
)
async def test_stream_is_opened_from_the_event_that_the_step_says(
    how: str, more: Any, last: bytes | None
) -> None:
    session = await step_of("get", how, **more)
    headers = [
        *(each for each in HEADERS if each[0] != b"accept"),
        (b"accept", b"text/event-stream"),
    ]
    added = [] if last is None else [(b"last-event-id", last)]
    assert session.acts == [(b"GET", b"/mcp", headers + added)]


@pytest.mark.parametrize(
    ("how", "more"),
    [
        ("plain", {"is_open": False}),
        ("plain", {"revision": NEW}),
        ("other", {}),
        ("other", {"other": HttpStepSession()}),
    ],
)
async def test_stream_is_not_opened_where_there_is_none(how: str, more: Any) -> None:
    assert (await step_of("get", how, **more)).acts == []


@pytest.mark.parametrize(
    ("how", "more", "acts", "is_open"),
    [
        ("own", {}, [()], False),
        ("unknown", {}, [(b"00000000-mcp-trio-fuzz",)], True),
        ("own", {"is_open": False}, [], False),
        ("own", {"revision": NEW}, [], True),
        ("own", {"session_id": None}, [], True),
    ],
)
async def test_session_is_deleted_if_there_is_one(
    how: str, more: Any, acts: list[Any], is_open: bool
) -> None:
    session = await step_of("delete", how, **more)
    assert (session.acts, session.is_open) == (acts, is_open)
    assert session.spent is (acts == [()])


HEAD = b"POST /mcp HTTP/1.1\r\nhost: h\r\n"
LENGTH = b"content-length: 62\r\n\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("place", "data"),
    [
        (("start",), b"POST"),
        (("head",), (HEAD + LENGTH)[: (len(HEAD + LENGTH) - 4) // 2]),
        (("end",), HEAD + LENGTH),
        (("chunk-size",), HEAD + CHUNKED + b"3e"),
        (("chunk",), HEAD + CHUNKED + b'3e\r\n{"jsonrpc":"2.0","id":1,"method"'),
        (("body",), HEAD + LENGTH + b'{"jsonrpc":"2.0","id":1,"method"'),
        ((), HEAD + LENGTH + b'{"jsonrpc":"2.0","id":1,"method"'),
    ],
)
async def test_request_is_held_up_to_its_place(place: tuple[str, ...], data: bytes) -> None:
    assert (await step_of("half", *place)).acts == [data]
    assert (await step_of("release")).acts == ["release"]
