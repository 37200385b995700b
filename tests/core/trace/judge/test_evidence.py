"""Which findings about a fuzzer's traces are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from mcp_core.trace import Judge, RecordedFinding, TraceHeader
from mcp_core.trace.judge import _evidence
from mcp_core.trace.judge._evidence import FuzzEvidence, FuzzRecording, find_evidence
from mcp_core.trace.judge._finding import Finding
from mcp_core.trace.judge._revisions import REVISIONS
from mcp_core.trace.judge.rows import ROWS

if TYPE_CHECKING:
    from collections.abc import Collection

Side = Literal["client", "server"]


def found(side: Side, row: str = "RPC-7", conversation: int = 1, **members: Any) -> Finding:
    members = {"level": "MUST", "lines": (4, 3), "sentence": "s", "link": "l"} | members
    return Finding(side=side, row=row, conversation=conversation, **members)


BREACH = found("client")
OTHERS = found("server", "RPC-8")


# -- A recording of a run --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("breach", "is_one"),
    [
        (BREACH, True),
        (found("client", level="SHOULD"), True),
        (found("client", level="MAY"), False),
        (found("client", is_certain=False), False),
        (OTHERS, False),
    ],
)
def test_run_is_judged_until_the_fuzzer_has_certainly_broken_a_rule(
    breach: Finding, *, is_one: bool
) -> None:
    """Other conversations go on being judged."""
    evidence = FuzzRecording("client")
    assert (evidence.fuzzer, evidence.left_out) == ("client", set())
    assert evidence.select([OTHERS, breach, OTHERS]) == (
        [OTHERS] if is_one else [each for each in (OTHERS, breach, OTHERS) if each is OTHERS]
    )
    assert evidence.left_out == ({"RPC-8"} if is_one else set())
    assert evidence.counted_rows(1) == (() if is_one else None)
    assert evidence.counted_rows(2) is None
    assert evidence.select([found("server", conversation=2)]) != []
    assert evidence.close("2025-11-25") == []


def test_breaches_of_many_conversations_are_known_by_the_last_of_the_earliest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All conversations up to that one count as breached."""
    monkeypatch.setattr(_evidence, "_MAX_BREACHED", 2)
    evidence = FuzzRecording("client")

    def judged() -> list[int]:
        return [number for number in range(1, 10) if evidence.counted_rows(number) is None]

    for number in (4, 6):
        assert not evidence.select([found("client", conversation=number)])
    assert judged() == [1, 2, 3, 5, 7, 8, 9]
    evidence.select([found("client", conversation=2)])
    assert judged() == [5, 7, 8, 9]
    evidence.select([found("client", conversation=1), found("client", conversation=8)])
    assert judged() == [7, 9]
    assert list(evidence._breached) == [1, 8]
    evidence.select([found("client", conversation=9)])
    assert judged() == [7]


# -- The trace of a finding ------------------------------------------------------------------------


FINDING = RecordedFinding(row="RPC-7", side="server", sentence="it hangs")


def test_other_rows_of_a_finding_are_judged_until_the_fuzzer_has_broken_a_rule() -> None:
    """The finding's own row is judged after that, too."""
    evidence = FuzzEvidence(FINDING)
    assert (evidence.fuzzer, evidence.left_out) == ("client", set())
    assert evidence.select([OTHERS]) == [OTHERS]
    assert evidence.counted_rows(1) is None
    uncertain = found("client", is_certain=False)
    assert evidence.select([uncertain, OTHERS]) == [OTHERS]
    assert evidence.select([BREACH, OTHERS, uncertain, OTHERS]) == []
    assert evidence.left_out == {"RPC-8"}
    assert evidence.counted_rows(1) == evidence.counted_rows(2) == ("RPC-7",)
    shown = found("server")
    assert evidence.select([shown]) == [shown]
    assert evidence.left_out == {"RPC-8"}


@pytest.mark.parametrize(
    ("judged", "reported", "expected"),
    [
        ([], [], ((1,), 1)),
        ([(False, (5,), 2)], [], ((5,), 2)),
        ([(False, (5,), 2), (False, (7,), 3)], [], ((5,), 2)),
        ([(True, (5,), 2)], [(5,)], None),
        ([(False, (5,), 2), (True, (7,), 3), (False, (8,), 3)], [(7,)], None),
    ],
)
def test_finding_is_reported_by_its_header_unless_the_messages_show_it(
    judged: Collection[tuple[bool, tuple[int, ...], int]],
    reported: list[tuple[int, ...]],
    expected: tuple[tuple[int, ...], int] | None,
) -> None:
    """Rows are findings of its row, by certainty, lines and conversation; then what is reported."""
    evidence = FuzzEvidence(FINDING)
    selected = evidence.select(
        [
            found("server", conversation=number, lines=lines, is_certain=is_certain)
            for is_certain, lines, number in judged
        ]
    )
    assert [each.lines for each in selected] == reported
    row = ROWS["RPC-7"]
    wanted = None
    if expected is not None:
        wanted = Finding(
            row="RPC-7",
            level=row.level,
            side="server",
            lines=expected[0],
            conversation=expected[1],
            sentence="it hangs",
            link=row.link("2025-03-26"),
        )
    assert evidence.close("2025-03-26") == ([] if wanted is None else [wanted])


@pytest.mark.parametrize(("verdict", "is_certain"), [("fail", True), ("inconclusive", False)])
def test_finding_without_a_row_has_no_link(
    verdict: Literal["fail", "inconclusive"], *, is_certain: bool
) -> None:
    evidence = FuzzEvidence(RecordedFinding(row="crash", side="client", verdict=verdict))
    assert evidence.fuzzer == "server"
    (reported,) = evidence.close("")
    assert (reported.level, reported.link, reported.is_certain) == ("MUST", "", is_certain)


def test_finding_in_an_unknown_revision_has_the_link_of_the_latest() -> None:
    (reported,) = FuzzEvidence(FINDING).close("")
    assert reported.link == ROWS["RPC-7"].link(REVISIONS[-1]) != ""


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        (None, None),
        ({"observer": "client"}, None),
        ({"observer": "client", "finding": FINDING}, FuzzEvidence),
        ({"observer": "server", "finding": FINDING}, None),
        ({"observer": "client", "fuzzer": "client"}, FuzzRecording),
        ({"observer": "server", "fuzzer": "client"}, None),
        ({"observer": "client", "fuzzer": "server", "finding": FINDING}, FuzzEvidence),
    ],
)
def test_header_of_a_fuzzer_is_believed_if_it_recorded_the_trace(
    header: dict[str, Any] | None, kind: type | None
) -> None:
    evidence = find_evidence(None if header is None else TraceHeader(format_version=1, **header))
    assert type(evidence) is (type(None) if kind is None else kind)
    if evidence is not None:
        assert evidence.fuzzer == "client"


def test_judge_of_a_fuzzer_s_trace_judges_the_other_side_from_the_start() -> None:
    judge = Judge(TraceHeader(format_version=1, observer="client", finding=FINDING))
    assert judge.unjudged == "client"
    assert judge._evidence is not None
    assert judge.left_out is judge._evidence.left_out
    assert judge._conversations.find(1).is_from_start
    other = Judge(TraceHeader(format_version=1, observer="server"), unjudged="server")
    assert (other.unjudged, other.left_out) == ("server", frozenset())
    assert not other._conversations.find(1).is_from_start
