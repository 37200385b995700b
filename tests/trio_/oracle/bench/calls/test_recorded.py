"""Recorded conversations as load: who plays what, with which values, and the warnings before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.bench._verdicts import find_cause
from mcp_trio.oracle.bench.calls._recorded import NothingToPlay, Recorded, RecordedWork
from tests.core.trace.judge.conversations import C, S, Sent, ask, error, notify, result
from tests.core.trace.replay.traces import HANDSHAKE, call, recorded, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OLD = "2025-11-25"
NEW = "2026-07-28"
CHAIN = [
    C(ask(1, "tools/list")),
    S(result(1, tools=[], nextCursor="old")),
    C(ask(2, "tools/list", cursor="old")),
    S(result(2, tools=[])),
]


def work_of(said: Sequence[Sent], revision: str = OLD) -> RecordedWork:
    return Recorded(recorded(said)).work(revision)


def played(work: RecordedWork, answers: Sequence[Any], number: int = 0) -> list[Any]:
    """Return what a caller sends as name and cursor, given the answers to the calls before."""
    worker = work.worker(number, 0)
    return [
        (prepared.name.split()[-1], (prepared.params or {}).get("cursor"))
        for prepared in map(worker.next_call, answers)
    ]


def page(cursor: str) -> Mapping[str, Any]:
    return {"result": {"nextCursor": cursor}}


def test_conversation_repeats_from_its_start_with_new_values() -> None:
    work = work_of([*HANDSHAKE, *CHAIN])
    assert work.reads_answers
    answers: list[Any] = [None, page("a"), {"result": {}}, page("b")]
    lister = "tools/list"
    assert played(work, answers) == [(lister, None), (lister, "a"), (lister, None), (lister, "b")]


def test_callers_have_copies_and_begin_with_different_conversations() -> None:
    """A caller goes on with the next one, so that one caller plays them all."""
    said = [*HANDSHAKE, *CHAIN, *HANDSHAKE, C(call(3, "b")), S(text(3, "B"))]
    work = work_of(said)
    assert work.text == "3 recorded requests in 2 conversations"
    assert played(work, [None, page("a"), None, None], 0) == [
        ("tools/list", None),
        ("tools/list", "a"),
        ("b", None),
        ("tools/list", None),
    ]
    assert played(work, [None, None, page("z")], 1) == [
        ("b", None),
        ("tools/list", None),
        ("tools/list", "z"),
    ]


def test_next_turn_goes_on_where_the_last_one_stopped() -> None:
    """Otherwise only the beginning of a long conversation would ever be played."""
    said = [C(call(n, f"tool-{n}")) if k else S(text(n, "x")) for n in range(4) for k in (1, 0)]
    work = work_of(said)
    assert played(work, [None, None]) == [("tool-0", None), ("tool-1", None)]
    assert played(work, [None, None]) == [("tool-2", None), ("tool-3", None)]


def test_lost_response_with_values_is_asked_for_once_more() -> None:
    work = work_of(CHAIN)
    lister = "tools/list"
    assert played(work, [None, None, page("a")]) == [(lister, None), (lister, None), (lister, "a")]
    # Twice lost: what follows is sent with the recorded value.
    work = work_of(CHAIN)
    assert played(work, [None, None, None, None]) == [
        (lister, None),
        (lister, None),
        (lister, "old"),
        (lister, None),
    ]


def test_task_that_still_works_is_asked_for_after_a_pause() -> None:
    said = [
        C(call(1)),
        S(result(1, taskId="old")),
        C(ask(2, "tasks/get", taskId="old")),
        S(result(2, status="completed")),
    ]
    worker = work_of(said).worker(0, 0)
    worker.next_call(None)
    first = worker.next_call({"result": {"taskId": "new"}})
    again = worker.next_call({"result": {"status": "working", "pollIntervalMs": 700}})
    assert first.params == again.params == {"taskId": "new"}
    assert (first.think, again.think) == (0.0, 0.7)
    assert worker.next_call({"result": {"status": "completed"}}).name == "tools/call echo"


def test_calls_without_values_are_the_same_objects_and_need_no_responses() -> None:
    """The engine encodes the same object once, and decodes no response without need."""
    work = work_of([C(call(1)), S(text(1, "A"))])
    assert not work.reads_answers
    first, second = work.worker(0, 0), work.worker(1, 0)
    assert first.next_call(None) is first.next_call(None) is second.next_call(None)


@pytest.mark.parametrize("kind", ["input_required", "task"])
def test_result_that_is_not_the_last_one_is_no_error(kind: str) -> None:
    """The recorded client went on with it. In other calls such a result is an error."""
    message = {"id": 7, "result": {"resultType": kind}}
    prepared = work_of([C(call(1)), S(text(1, "A"))]).worker(0, 0).next_call(None)
    assert find_cause(message, b"7", may_continue=prepared.may_continue) == ""
    assert find_cause(message, b"7") == kind


def test_missing_parts_are_named_with_counts_and_lines() -> None:
    """The user reads them before the run, so that its figures aren't taken for the recording's."""
    said = [
        *HANDSHAKE,
        C(call(1, secret="‹redacted 1›")),
        S(text(1, "A")),
        C(call(2)),
        S(error(2)),
        *[C(notify("notifications/progress")) for _ in range(7)],
    ]
    assert work_of(said).warnings == [
        "left out 7: notifications (line 9, 10, 11, 12, 13, …)",
        (
            "redacted values are sent as they are in the recording: line 5;"
            " --record-secrets records all values"
        ),
        "1 of 2 requests failed when recorded, too",
    ]


def test_recording_of_another_revision_is_refused_with_the_cure() -> None:
    said = [*HANDSHAKE, C(call(1)), S(text(1, "A"))]
    assert Recorded(recorded(said)).era == OLD
    with pytest.raises(NothingToPlay) as info:
        work_of(said, NEW)
    assert str(info.value) == (
        "nothing in it can be sent to this target (1: requests of 2025-11-25, while the target"
        " speaks 2026-07-28 (line 5)): leave --era out to speak the recorded revision"
    )
    with pytest.raises(NothingToPlay, match=r"\(it has no requests\)"):
        work_of(HANDSHAKE)
    assert work_of(said, "2025-06-18").warnings == [
        "1 requests were recorded in 2025-11-25, and are sent in 2025-06-18"
    ]


class _ListedLoad:
    """A target with lists of names."""

    revision = OLD
    server = ""
    protocol = ""
    capabilities: Mapping[str, Any] = {}

    def __init__(self, answers: Mapping[tuple[str, str | None], Any]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def turn(self, *_: Any) -> Any:
        raise NotImplementedError

    def cut(self) -> bool:
        return False

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        self.asked.append(method)
        found: dict[str, Any] = self._answers[method, (params or {}).get("cursor")]
        return found


ANOTHER: list[Sent] = [
    each
    for n, name in enumerate(["pay", "echo", "pay", "order"])
    for each in (C(call(n, name)), S(text(n, "x")))
]
PROMPT = [C(ask(9, "prompts/get", name="greet")), S(result(9, messages=[]))]


@pytest.mark.parametrize(
    ("said", "answers", "sentences"),
    [
        (
            ANOTHER,
            {
                ("tools/list", None): {"result": {"tools": [{"name": "a"}], "nextCursor": "x"}},
                ("tools/list", "x"): {"result": {"tools": [{"name": "echo"}, 3, {"name": 4}]}},
            },
            ["3 of 4 requests name tools that the target doesn't list: pay (2), order (1)"],
        ),
        (
            [*ANOTHER, *PROMPT],
            {
                ("tools/list", None): {"error": {"code": -32601}},
                ("prompts/list", None): {"result": {"prompts": [{"name": "greet"}]}},
            },
            [
                (
                    "4 of 5 requests name tools that the target doesn't list: pay (2), echo (1),"
                    " order (1)"
                )
            ],
        ),
        (
            PROMPT,
            {("prompts/list", None): {"result": {"prompts": [{"name": "part"}]}}},
            ["1 of 1 requests name prompts that the target doesn't list: greet (1)"],
        ),
        (CHAIN, {}, []),
    ],
)
async def test_tools_that_a_target_lacks_are_counted(
    said: list[Sent], answers: Any, sentences: list[str]
) -> None:
    """A target is asked only for the lists of what is called."""
    load = _ListedLoad(answers)
    assert await work_of(said).missing(load) == sentences
    assert len(load.asked) == len(answers)


def test_called_tools_are_named_once_each() -> None:
    nameless = [C(ask(8, "tools/call", name=5)), S(error(8))]
    found = Recorded(recorded([*ANOTHER, *nameless, *PROMPT]))
    assert found.count == 6
    assert found.tools == ("pay", "echo", "order")


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, ", 1 more"), (9, ", 4 more")])
async def test_five_of_the_tools_that_a_target_lacks_are_named(count: int, more: str) -> None:
    said = [each for n in range(count) for each in (C(call(n, f"t{n}")), S(text(n, "x")))]
    load = _ListedLoad({("tools/list", None): {"result": {"tools": []}}})
    [sentence] = await work_of(said).missing(load)
    assert sentence == (
        f"{count} of {count} requests name tools that the target doesn't list:"
        f" t0 (1), t1 (1), t2 (1), t3 (1), t4 (1){more}"
    )


async def test_list_without_end_is_not_read_to_its_end() -> None:
    load = _ListedLoad({("tools/list", c): page("x") for c in (None, "x")})
    assert len(await work_of(ANOTHER).missing(load)) == 1
    assert len(load.asked) == 100
