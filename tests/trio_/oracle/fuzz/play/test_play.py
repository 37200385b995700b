"""The state of a play: what its clients send, and when it is over."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from mcp_trio.oracle.fuzz._call_guard import CallGuard
from mcp_trio.oracle.fuzz._call_times import CallTimes
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz.play._play import Play, ToolNotAllowed
from tests.trio_.oracle.fuzz.play.stub_play import StubSession, stub_call, stub_list, stub_play_of

NEW = "2026-07-28"
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wipe"}}'


class SendingStubSession(StubSession):
    """A session that keeps the bytes that are sent, and has a member of `_meta`."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{"data": [], "of_meta": {"m": 1}, "exchange": False, **more})

    def meta(self, how: str) -> dict[str, Any]:
        return dict(self.of_meta) if how == "whole" else {}

    def new_id(self, how: Any) -> Any:
        return how[0] if isinstance(how, list) else super().new_id(how)

    async def send_bytes(self, data: bytes) -> None:
        """Keep bytes."""
        self.data.append(data)

    async def cancel_exchange(self, request: Any) -> bool:
        """Return whether the exchange is what is cancelled."""
        return bool(self.exchange)


def play_on(session: Any, **more: Any) -> Play:
    return Play(session, 2.0, **more)


def test_play_before_its_first_step_knows_nothing() -> None:
    session: Any = StubSession()
    play = play_on(session)
    assert play.session is session
    assert (play.selected, play.before_cancel, play.overdue_before_cancel) == (set(), 0, [])
    assert (play.has_disconnected, play.was_blocked, play.has_slow_twin) == (False, False, False)
    assert (play.timeout, play.echo, play.guard) == (2.0, None, None)
    assert (play.wanted, play.checks, play.stress.is_used) == (None, None, False)
    assert (play.call_times.longest, play.call_times.proves) == (10.0, False)
    assert (play.outcome.faults, play.outcome.steps) == ([], None)
    times = CallTimes(5.0)
    assert play_on(session, call_times=times).call_times is times


@pytest.mark.parametrize(
    ("wanted", "ended", "is_found", "is_over"),
    [
        (None, "", False, False),
        (("RPC-4", ""), "", True, True),
        (("RPC-5", ""), "", False, False),
        (None, "it has ended", False, True),
        (("RPC-4", ""), "it has ended", True, True),
    ],
)
def test_play_is_over_with_its_session_or_the_wanted_fault(
    wanted: Any, ended: str, is_found: bool, is_over: bool
) -> None:
    play = stub_play_of(ended=ended)
    play.wanted = wanted
    play.report(None)
    assert play.session.found == []
    play.report(TargetFault(kind="row", row="RPC-4"))
    assert (play.is_found(), play.is_over()) == (is_found, is_over)


@pytest.mark.parametrize(
    ("params", "options", "sent"),
    [
        ({}, {}, {"_meta": {"m": 1}}),
        ("absent", {}, {"_meta": {"m": 1}}),
        ({}, {"meta": "absent"}, None),
        ("absent", {"meta": "absent"}, None),
        ({"a": 1}, {"meta": "absent"}, {"a": 1}),
        ({"a": 1}, {}, {"a": 1, "_meta": {"m": 1}}),
        ({"_meta": {"m": 2, "n": 3}}, {}, {"_meta": {"m": 1, "n": 3}}),
        ({"_meta": 5}, {}, {"_meta": 5}),
        ({}, {"extra_meta": {"m": 4}}, {"_meta": {"m": 4}}),
        ([1], {}, [1]),
        (None, {}, None),
    ],
)
def test_request_has_its_params_and_the_meta_of_its_revision(
    params: Any, options: Any, sent: Any
) -> None:
    play = play_on(SendingStubSession())
    message = play.make_request("tools/list", params, **options)
    wanted = {"jsonrpc": "2.0", "id": 1_001, "method": "tools/list"}
    assert message == (wanted if sent is None and params is not None else wanted | {"params": sent})
    assert play.make_request("tools/list", {}, [7])["id"] == 7


@pytest.mark.parametrize(
    ("revision", "ids", "owed"),
    [
        ("2025-11-25", [[5], [5]], [True, False]),
        ("2025-11-25", [[5], [6]], [True, True]),
        ("2025-11-25", ["int", "int"], [True, True]),
        (NEW, [[5], [5]], [True, True]),
    ],
)
async def test_request_whose_id_comes_again_is_owed_nothing_in_a_session(
    revision: str, ids: Any, owed: list[bool]
) -> None:
    play = play_on(SendingStubSession(revision=revision))
    assert [(await play.send("tools/list", {}, id)).is_owed for id in ids] == owed
    assert all(each.is_plain for each in play.session.requests)
    assert not (await play.send("tools/list", {}, [2**60])).is_plain


@pytest.mark.parametrize(
    ("params", "sent"), [("absent", None), ({}, None), ({"a": 1}, {"a": 1}), ([], []), (None, None)]
)
async def test_notification_has_params_unless_they_are_empty(params: Any, sent: Any) -> None:
    play = play_on(SendingStubSession())
    await play.notify("acme/a", params)
    [message] = play.session.sent
    wanted = {"jsonrpc": "2.0", "method": "acme/a"}
    has_params = params not in ("absent", {})
    assert message == (wanted | {"params": sent} if has_params else wanted)
    assert play.session.last_sent == "acme/a"
    await play.notify("acme/b")
    assert play.session.sent[1] == {"jsonrpc": "2.0", "method": "acme/b"}


ROOTS = {"id": 7, "method": "roots/list"}
WRONG = {"content": 7, "roots": "x", "action": None}


@pytest.mark.parametrize(
    ("request_", "how", "count", "members", "is_misled"),
    [
        (ROOTS, "right", 1, {"id": 7}, False),
        (ROOTS, "twice", 2, {"id": 7}, False),
        (ROOTS, "id", 1, {"id": "7-other"}, True),
        (ROOTS, "wrong", 1, {"id": 7, "result": WRONG}, True),
        (
            ROOTS,
            "error",
            1,
            {"id": 7, "error": {"code": -32603, "message": "not available"}},
            False,
        ),
        (
            {"id": 8, "method": "acme"},
            *("right", 1, {"id": 8, "error": {"code": -32601, "message": "not available"}}, False),
        ),
    ],
)
async def test_response_to_the_server_is_right_or_wrong_in_one_way(
    request_: Any, how: str, count: int, members: Any, is_misled: bool
) -> None:
    play = play_on(SendingStubSession())
    await play.respond_to(request_, how)
    sent = play.session.sent
    assert len(sent) == count
    assert all(members.items() <= each.items() and each == sent[0] for each in sent)
    assert ("result" in sent[0]) is ("error" not in members)
    assert play.session.is_misled is is_misled


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize(("make", "at"), [(stub_call, 3.0), (stub_list, 0.0)])
async def test_request_is_cancelled_by_its_exchange_or_a_notification(
    exchange: bool, make: Any, at: float, autojump_clock: Any
) -> None:
    """Only a call can go on nevertheless, so its time is noted."""
    await trio.sleep(3.0)
    play = play_on(SendingStubSession(exchange=exchange))
    request = make(id=9)
    await play.cancel_request(request)
    assert request.cancelled
    assert play.session.cancelled_at == at
    params = {"requestId": 9, "reason": "not needed"}
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    assert play.session.sent == ([] if exchange else [note])


def guarded() -> Play:
    return play_on(SendingStubSession(), guard=CallGuard(set(), lambda: {"wipe"}))


async def test_guard_stops_each_message_that_calls_a_tool() -> None:
    play = guarded()
    params = {"name": "wipe", "arguments": {}}
    for act in (play.send, play.notify):
        with pytest.raises(ToolNotAllowed):
            await act("tools/call", params)
    with pytest.raises(ToolNotAllowed):
        play.check_message("tools/call", params)
    assert play.session.sent == []
    await play.send("tools/list", {})
    assert len(play.session.sent) == 1
    await play_on(play.session).send("tools/call", params)
    assert len(play.session.sent) == 2


@pytest.mark.parametrize(
    ("parts", "count"),
    [
        ([b"{}", b"junk"], 2),
        ([CALL], 0),
        ([CALL[:30], CALL[30:]], 1),
        ([b"tools/", b"x", b"call"], 3),
    ],
)
async def test_guard_stops_bytes_that_call_a_tool_in_parts(parts: list[bytes], count: int) -> None:
    """A server may skip the line feed between two steps."""
    play = guarded()
    try:
        for part in parts:
            await play.send_bytes(part)
    except ToolNotAllowed:
        pass
    assert play.session.data == parts[:count]
    free = play_on(SendingStubSession())
    for part in parts:
        await free.send_bytes(part)
    assert free.session.data == parts


@pytest.mark.parametrize(("count", "sessions"), [(1, 1), (2, 2)])
async def test_results_of_each_client_are_checked(count: int, sessions: int) -> None:
    checked: list[Any] = []

    class NotingChecks:
        async def check(self, session: Any) -> None:
            """Note a session."""
            checked.append(session)

    play = play_on(StubSession(), checks=NotingChecks())
    play.clients.other = StubSession() if count == 2 else None
    await play.check_results()
    assert len(checked) == sessions
    await play_on(StubSession()).check_results()
    assert len(checked) == sessions
