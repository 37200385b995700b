"""The steps of classic cases: ids of their own, batches, stray responses, requests in parts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import h11
import pytest
import trio

from mcp_trio.oracle.fuzz._call_guard import CallGuard
from mcp_trio.oracle.fuzz._call_times import DEFAULT_CALL_TIMEOUT
from mcp_trio.oracle.fuzz._http import encode_chunks
from mcp_trio.oracle.fuzz._interoperable_json import is_interoperable
from mcp_trio.oracle.fuzz.play._player import Player, play_case
from tests.trio_.oracle.fuzz.memory_http import HttpResponse, played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import (
    BATCHED,
    NEW,
    OLD,
    BatchTarget,
    MemorySession,
    MemoryTarget,
    answers,
    answers_batches,
    same_each_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_trio.oracle.fuzz._case import Case, Outcome, Step

LIST: Step = ("request", "tools/list", {}, "int")


def again(id: int | str) -> list[Step]:
    return [("request", "tools/list", {}, [id]), ("wait",)] * 2


async def outcome_of(
    respond: Any, *steps: Step, revision: str = OLD, guard: CallGuard | None = None
) -> Outcome:
    target = MemoryTarget(same_each_time(respond))
    case = [("open", revision, "whole", "all"), *steps]
    return await play_case(target, case, Player(guard=guard))


def rows(outcome: Outcome) -> list[str]:
    return [each.row for each in outcome.faults]


# -- Ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [0, "", -1, "1", "caf\xe9", 2**53 + 1])
async def test_request_has_its_own_id(autojump_clock: Any, id: int | str) -> None:
    received = []

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        received.append(message)
        yield from answers(message)

    outcome = await outcome_of(respond, ("request", "tools/list", {}, [id]), ("wait",))
    assert [each["id"] for each in received if each["method"] == "tools/list"] == [id]
    assert not outcome.faults


@pytest.mark.parametrize("id", ["", 0])
async def test_request_without_response_is_found_for_any_id(autojump_clock: Any, id: Any) -> None:
    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        return iter(()) if message.get("id") == id else answers(message)

    outcome = await outcome_of(respond, ("request", "tools/list", {}, [id]), ("wait",))
    assert rows(outcome) == ["RPC-35"]


@pytest.mark.parametrize(("revision", "found"), [(OLD, []), (NEW, ["RPC-35"])])
async def test_id_that_comes_again_needs_a_response_where_it_is_allowed(
    autojump_clock: Any, revision: str, found: list[str]
) -> None:
    """Until 2025-11-25 an id is used once in a session, so what then happens isn't a fault."""
    seen: list[int] = []

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if message.get("id") == 77:
            seen.append(77)
            if len(seen) == 2:
                return iter(())
        return answers(message)

    assert rows(await outcome_of(respond, *again(77), revision=revision)) == found


async def test_large_id_may_be_rounded(autojump_clock: Any) -> None:
    """JSON lets programs read integers as doubles, as JavaScript does."""

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        id = message.get("id")
        rounded = {**message, "id": int(float(id))} if isinstance(id, int) else message
        yield from answers(rounded)

    outcome = await outcome_of(respond, ("request", "tools/list", {}, [2**53 + 1]), ("wait",))
    assert not outcome.faults
    small = await outcome_of(
        lambda message: answers({**message, "id": 7} if message.get("id") == 8 else message),
        ("request", "tools/list", {}, [8]),
        ("wait",),
    )
    assert set(rows(small)) == {"RPC-7", "RPC-35"}


@pytest.mark.parametrize(
    ("value", "is_understood"),
    [
        ({"a": [1, 2**53 - 1, 1e300, True, None, "x"]}, True),
        ({"a": 2**53}, False),
        ([-(2**53)], False),
        (json.loads("[" * 29 + "]" * 29), True),
        (json.loads("[" * 40 + "]" * 40), False),
    ],
)
def test_value_is_understood_by_every_reader(value: Any, is_understood: bool) -> None:
    assert is_interoperable(value) is is_understood


# -- Responses to no request -----------------------------------------------------------------------


@pytest.mark.parametrize(("revision", "count"), [(OLD, 1), (NEW, 0)])
async def test_reply_is_sent_where_clients_respond(
    autojump_clock: Any, revision: str, count: int
) -> None:
    received: list[Mapping[str, Any]] = []

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        received.append(message)
        yield from answers(message)

    step = ("reply", "none", {"error": {"code": 0, "message": ""}})
    outcome = await outcome_of(respond, step, LIST, ("wait",), revision=revision)
    assert not outcome.faults
    assert sum("error" in each for each in received) == count


# -- Batches ---------------------------------------------------------------------------------------

PING = ["ping", {}, "int"]


async def batch_of(respond: Any, *members: Any) -> Outcome:
    case = [("open", BATCHED, "whole", "all"), ("batch", [*members]), ("wait",), LIST]
    return await play_case(BatchTarget(same_each_time(respond)), case, Player())


async def test_requests_of_a_batch_have_responses(autojump_clock: Any) -> None:
    outcome = await batch_of(answers_batches, PING, ["notifications/acme", {}, None], PING)
    assert not outcome.faults
    assert outcome.answered == 5  # initialize, the batch's, tools/list and the probe


async def test_request_of_a_batch_without_response_is_advice(autojump_clock: Any) -> None:
    """SDKs have given up batches, so it isn't the author's fault alone."""

    def respond(message: Any) -> Iterator[dict[str, Any]]:
        yield from answers_batches(message[:1] if isinstance(message, list) else message)

    outcome = await batch_of(respond, PING, PING)
    assert [(each.row, each.is_certain) for each in outcome.faults] == [("RPC-35", False)]


async def test_batch_with_calls_that_is_dropped_costs_the_time_of_one_call(
    autojump_clock: Any,
) -> None:
    """Its other requests can wait for the calls, and no tool of it counts as slow."""
    began = trio.current_time()
    call = ["tools/call", {"name": "one", "arguments": {}}, "int"]

    def respond(message: Any) -> Iterator[dict[str, Any]]:
        return iter(()) if isinstance(message, list) else answers_batches(message)

    outcome = await batch_of(respond, call, PING)
    assert outcome.faults == []
    assert outcome.slow == []
    assert trio.current_time() - began < DEFAULT_CALL_TIMEOUT + 5


def drops_batches(message: Any) -> Iterator[dict[str, Any]]:
    return iter(()) if isinstance(message, list) else answers_batches(message)


CALL_ONE = ["tools/call", {"name": "one", "arguments": {}}, "int"]
DROPPED: list[Step] = [("batch", [PING]), ("wait",)]


async def test_batch_with_calls_is_not_waited_for_long_after_another_was_dropped(
    autojump_clock: Any,
) -> None:
    """The first batch's ping is the same finding as without the calls, which weren't in its way."""
    faults = []
    for more in ([], [("batch", [CALL_ONE, PING]), ("wait",)] * 3):
        began = trio.current_time()
        case = [("open", BATCHED, "whole", "all"), *DROPPED, *more, LIST]
        outcome = await play_case(BatchTarget(same_each_time(drops_batches)), case, Player())
        faults.append([(each.row, each.cause, each.sentence) for each in outcome.faults])
        assert [(each.row, each.is_certain) for each in outcome.faults] == [("RPC-35", False)]
        assert trio.current_time() - began < DEFAULT_CALL_TIMEOUT
        assert not outcome.slow
    assert faults[0] == faults[1]


async def test_second_dropped_batch_with_calls_costs_little(autojump_clock: Any) -> None:
    began = trio.current_time()
    case = [("open", BATCHED, "whole", "all"), *[("batch", [CALL_ONE, PING]), ("wait",)] * 4]
    outcome = await play_case(BatchTarget(same_each_time(drops_batches)), case, Player())
    assert outcome.faults == []
    assert trio.current_time() - began < 2 * DEFAULT_CALL_TIMEOUT


@pytest.mark.parametrize(
    ("seconds", "steps"),
    [
        (3.0, [*DROPPED, ("batch", [CALL_ONE, PING]), ("wait",), LIST]),
        (3.0, [*DROPPED, ("batch", [CALL_ONE]), LIST, ("wait",), LIST, ("wait",)]),
        (8.0, [("batch", [CALL_ONE, PING]), ("wait",), LIST]),
        (12.0, [("batch", [CALL_ONE, PING]), ("wait",), LIST]),
    ],
    ids=["batches", "a request behind", "a tool", "a slower tool"],
)
async def test_server_whose_batches_take_long_is_not_accused(
    autojump_clock: Any, seconds: float, steps: list[Step]
) -> None:
    """It handles one message after the other."""
    target = BatchTarget(same_each_time(answers_batches), times={"batch": seconds})
    case = [("open", BATCHED, "whole", "all"), *steps]
    outcome = await play_case(target, case, Player())
    assert outcome.faults == []


async def test_call_in_a_batch_has_its_time_once_batches_turn_out_to_be_slow(
    autojump_clock: Any,
) -> None:
    """The response to the first batch comes late. The next step is played after the call's."""
    target = BatchTarget(same_each_time(answers_batches), times={"batch": 3.0})
    session = await target.open(keep=True)
    steps: list[Step] = [*DROPPED, ("batch", [CALL_ONE]), ("wait",), LIST]
    await Player().play([("open", BATCHED, "whole", "all"), *steps], session)
    await session.aclose()
    said = [line.raw or "" for line in session.lines or ()]
    [asked] = [place for place, raw in enumerate(said) if '"tools/list"' in raw]
    [call] = [json.loads(raw)[0]["id"] for raw in said if '"tools/call"' in raw]
    answered = [f'"id": {call},' in raw for raw in said].index(True)
    assert answered < asked


async def test_batch_where_there_are_none_needs_no_response(autojump_clock: Any) -> None:
    def respond(message: Any) -> Iterator[dict[str, Any]]:
        return iter(()) if isinstance(message, list) else answers(message)

    case = [("open", NEW, "whole", "all"), ("batch", [PING]), ("wait",), LIST]
    outcome = await play_case(BatchTarget(same_each_time(respond)), case, Player())
    assert not outcome.faults


async def test_rejected_batch_is_one_fault_and_no_missing_responses(autojump_clock: Any) -> None:
    def respond(message: Any) -> Iterator[dict[str, Any]]:
        if isinstance(message, list):
            error = {"code": -32600, "message": "no batches"}
            yield {"jsonrpc": "2.0", "id": None, "error": error}
        else:
            yield from answers_batches(message)

    assert rows(await batch_of(respond, PING, PING)) == ["RPC-20"]


async def test_batch_that_calls_a_denied_tool_is_not_sent(autojump_clock: Any) -> None:
    sent = []
    call = ["tools/call", {"name": "wipe"}, "int"]

    def respond(message: Any) -> Iterator[dict[str, Any]]:
        sent.append(message)
        yield from answers_batches(message)

    guard = CallGuard(set(), lambda: {"wipe"})
    case = [("open", BATCHED, "whole", "all"), ("batch", [PING, call])]
    await play_case(BatchTarget(same_each_time(respond)), case, Player(guard=guard))
    assert not any(isinstance(each, list) for each in sent)
    assert not guard.allows_step(("batch", [PING, call]))


@pytest.mark.parametrize("members", [[], [7], [["ping"]], [None, [1, 2]]])
async def test_batch_of_a_strange_report_is_harmless(autojump_clock: Any, members: Any) -> None:
    outcome = await batch_of(answers_batches, *members)
    assert "crash" not in rows(outcome)


# -- Requests in parts -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["head", "body", "chunks"])
@pytest.mark.parametrize("place", range(6))
async def test_request_in_parts_arrives_whole_over_http(
    autojump_clock: Any, how: str, place: int
) -> None:
    case = [("open", OLD, "whole", "all"), ("parts", how, place), ("wait",)]
    outcome, received = await played_over_http(response_to, case)
    (message,) = (each for each in received if each.get("method") == "tools/list")
    assert message["params"]["_meta"] == {"com.example/cut": "\xe9\u8336\U0001f375"}
    assert not outcome.faults


@pytest.mark.parametrize(
    ("place", "end", "start"),
    [
        (0, b"\xc3", b"\xa9"),  # a character of two bytes
        (1, b"\xf0\x9f", b"\x8d\xb5"),  # one of four
        (2, rb"\u0", b"069st"),
        (3, b"{", b'"jsonrpc"'),
        (4, b"}", b"}"),
        (6, b"\xc3", b"\xa9"),
        (-1, b"", b""),
    ],
)
async def test_request_is_cut_within_a_character_an_escape_or_its_text(
    place: int, end: bytes, start: bytes, monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    """A reader that decodes each part alone fails. The last place is the middle."""
    parts: list[tuple[bytes, bytes]] = []

    async def send_parts(
        self: MemorySession, body: bytes, message: Mapping[str, Any], how: str, cut: int
    ) -> None:
        parts.append((body[:cut], body[cut:]))
        await self.send_text(body.decode(), message)

    monkeypatch.setattr(MemorySession, "send_parts", send_parts)
    case = [("open", OLD, "whole", "all"), ("parts", "body", place)]
    await play_case(MemoryTarget(same_each_time(answers)), case)
    [(first, rest)] = parts
    assert json.loads(first + rest)["method"] == "tools/list"
    assert first.endswith(end)
    assert rest.startswith(start)
    if place == 4:
        assert rest == b"}"
    elif place == -1:
        assert len(rest) - len(first) in (0, 1)


@pytest.mark.parametrize("ends", [False, True])
async def test_server_that_fails_at_a_request_in_parts_is_found(
    ends: bool, autojump_clock: Any
) -> None:
    """One never responds, and one ends the conversation."""

    def reply(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if message.get("method") != "tools/list":
            yield from answers(message)
        elif ends:
            session.end("it has closed its stdin")

    target = MemoryTarget(same_each_time(reply))
    session = await target.open()
    case = [("open", OLD, "whole", "all"), ("parts", "body", 0), ("wait",)]
    [fault] = (await Player().play(case, session)).faults
    assert fault.method == "tools/list"
    assert fault.kind == ("crash" if ends else "row")


def test_chunks_are_read_by_a_parser() -> None:
    parser = h11.Connection(h11.SERVER)
    head = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    parser.receive_data(head + encode_chunks(b"abc", b"x" * 20))
    body = b""
    while not isinstance(event := parser.next_event(), h11.EndOfMessage):
        body += bytes(event.data) if isinstance(event, h11.Data) else b""
    assert body == b"abc" + b"x" * 20


# -- Heads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "is_certain"), [("origin", True), ("near-origin", True), ("null-origin", False)]
)
async def test_served_foreign_origin_is_found(
    autojump_clock: Any, what: str, is_certain: bool
) -> None:
    def respond(message: Mapping[str, Any]) -> HttpResponse:
        if message.get("method") != "tools/list":
            return response_to(message)
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": []}}
        return HttpResponse(body=json.dumps(reply).encode())

    case = [("open", OLD, "whole", "all"), ("head", what, "tools/list", {})]
    outcome, _ = await played_over_http(respond, case)
    found = [each for each in outcome.faults if each.row == "HTTP-1"]
    assert [each.is_certain for each in found][:1] == [is_certain]


# -- Long lists ------------------------------------------------------------------------------------


def pages(
    next_of: Callable[[int], int | None], name_of: Callable[[int], str], asked: list[int]
) -> Any:
    """Return the answers of a server with pages of one tool each. `asked` gets their places."""

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if message.get("method") != "tools/list":
            for each in answers(message):
                if message["method"] == "initialize":
                    each["result"]["capabilities"] = {"tools": {}}
                yield each
            return
        place = int(message.get("params", {}).get("cursor", 0))
        asked.append(place)
        tool = {"name": name_of(place), "inputSchema": {"type": "object"}}
        found = next_of(place)
        more = {} if found is None else {"nextCursor": str(found)}
        yield {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [tool], **more}}

    return respond


@pytest.mark.parametrize(
    ("count", "how", "is_found"),
    [
        *((3, "all", True), (49, "all", True), (51, "all", False)),
        *((3, "whole", True), (51, "whole", True)),
        pytest.param(490, "whole", True, marks=pytest.mark.long),
    ],
)
async def test_circle_of_pages_is_found_up_to_the_pages_of_its_step(
    autojump_clock: Any, count: int, how: str, is_found: bool
) -> None:
    respond = pages(lambda at: at + 1 if at < count else 1, lambda at: f"t{at}", [])
    outcome = await outcome_of(respond, ("page", "tools/list", how), ("wait",))
    assert ("PAGE-1" in rows(outcome)) is is_found


async def test_name_on_two_pages_far_apart_is_found(autojump_clock: Any) -> None:
    respond = pages(
        lambda at: at + 1 if at < 80 else None, lambda at: "t0" if at == 70 else f"t{at}", []
    )
    twice = [("page", "tools/list", "whole")] * 2  # the list may have changed between two pages
    outcome = await outcome_of(respond, *twice, ("wait",))
    assert "TOOL-19" in rows(outcome)


@pytest.mark.long
async def test_list_without_end_is_left_after_500_pages(autojump_clock: Any) -> None:
    asked: list[int] = []
    respond = pages(lambda at: at + 1, lambda at: f"t{at}", asked)
    outcome = await outcome_of(respond, ("page", "tools/list", "whole"), ("wait",))
    assert len(asked) == 501
    assert rows(outcome) == []


async def test_slow_list_is_left_after_some_seconds(autojump_clock: Any) -> None:
    asked: list[int] = []
    respond = pages(lambda at: at + 1, lambda at: f"t{at}", asked)
    target = MemoryTarget(same_each_time(respond), times={"tools/list": 0.5})
    case: Case = [("open", OLD, "whole", "all"), ("page", "tools/list", "whole"), ("wait",)]
    outcome = await play_case(target, case, Player())
    assert 5 < len(asked) < 15
    assert rows(outcome) == []
